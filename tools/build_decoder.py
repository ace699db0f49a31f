#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder of language, shaped as Llama and Qwen2 are, with random weights and a cache of keys and values, as a program of
torch.export: a call takes tokens and their positions, writes their keys and values into its cache and gives logits. The cache
is state of the program, which each session of tare has for itself.

    python3 tools/build_decoder.py OUT.pt2                              # 0.5 billion parameters, as Qwen2-0.5B
    python3 tools/build_decoder.py OUT.pt2 --layers 2 --hidden 64 --heads 4 --kv-heads 2 --ffn 128 --vocab 256 --length 64

--cache int8 keeps keys and values in 8 bits, with a scale for each head and position. --tokens is how many tokens a call takes.
Needs torch.
"""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


class Cache(nn.Module):
    """[1][heads][length][width], of floats or of bytes with a scale for each row."""

    def __init__(self, kind, heads, length, width):
        super().__init__()
        self.is_int8 = kind == "int8"
        shape = (1, heads, length, width)
        self.register_buffer("values", torch.zeros(shape, dtype=torch.int8 if self.is_int8 else torch.float32))
        if self.is_int8:
            self.register_buffer("scales", torch.zeros(1, heads, length, 1))

    def forward(self, x, position):
        if not self.is_int8:
            self.values.index_copy_(2, position, x)
            return self.values
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
        self.values.index_copy_(2, position, torch.round(x / scale).clamp(-128, 127).to(torch.int8))
        self.scales.index_copy_(2, position, scale)
        return self.values.to(torch.float32) * self.scales


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads, self.kv_heads, self.width = o.heads, o.kv_heads, o.hidden // o.heads
        self.q_proj = nn.Linear(o.hidden, o.hidden)
        self.k_proj, self.v_proj = (nn.Linear(o.hidden, o.kv_heads * self.width) for _ in range(2))
        self.o_proj = nn.Linear(o.hidden, o.hidden, bias=False)
        self.keys, self.values = (Cache(o.cache, o.kv_heads, o.length, self.width) for _ in range(2))

    def split(self, x, heads):
        return x.view(1, x.shape[1], heads, self.width).transpose(1, 2)

    @staticmethod
    def rotate(x, cos, sin):
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat([-right, left], -1) * sin

    def forward(self, x, position, cos, sin, mask):
        q = self.rotate(self.split(self.q_proj(x), self.heads), cos, sin)
        k = self.keys(self.rotate(self.split(self.k_proj(x), self.kv_heads), cos, sin), position)
        v = self.values(self.split(self.v_proj(x), self.kv_heads), position)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(o.hidden), Norm(o.hidden)
        self.self_attn = Attention(o)
        self.gate_proj, self.up_proj = (nn.Linear(o.hidden, o.ffn, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(o.ffn, o.hidden, bias=False)

    def forward(self, x, *rest):
        x = x + self.self_attn(self.input_layernorm(x), *rest)
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Decoder(nn.Module):
    def __init__(self, o):
        super().__init__()
        width = o.hidden // o.heads
        self.embed_tokens = nn.Embedding(o.vocab, o.hidden)
        self.layers = nn.ModuleList(Block(o) for _ in range(o.layers))
        self.norm, self.lm_head = Norm(o.hidden), nn.Linear(o.hidden, o.vocab, bias=False)
        angle = torch.arange(o.length)[:, None] * (1e6 ** (-torch.arange(0, width, 2) / width))[None]
        self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1), persistent=False)
        self.register_buffer("sin", torch.cat([angle.sin()] * 2, -1), persistent=False)
        self.register_buffer("places", torch.arange(o.length), persistent=False)

    def forward(self, tokens, position):
        """tokens [1][n] and position [n], of int64: logits [1][n][vocab]"""
        cos, sin = (F.embedding(position, t) for t in (self.cos, self.sin))
        mask = self.places[None] <= position[:, None]
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, position, cos, sin, mask)
        return self.lm_head(self.norm(x))


def build(o):
    torch.manual_seed(0)
    return Decoder(o).eval()


def export(module, count):
    """The program for `count` tokens a call; its buffers that are written are state."""
    tokens, position = torch.zeros(1, count, dtype=torch.int64), torch.arange(count)
    with torch.no_grad():
        return torch.export.export(module, (tokens, position))


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, default in (("layers", 24), ("hidden", 896), ("heads", 14), ("kv-heads", 2), ("ffn", 4864), ("vocab", 151936),
                          ("length", 512), ("tokens", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--cache", choices=("float", "int8"), default="float")
    return parser.parse_args(arguments)


def main():
    o = options()
    torch.export.save(export(build(o), o.tokens), o.out)


if __name__ == "__main__":
    main()
