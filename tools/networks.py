# SPDX-License-Identifier: Apache-2.0
"""Networks in plain torch, shaped like those that people use: taggers and transformers with random weights."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class LstmTagger(nn.Module):
    """A label for each word: embedding, LSTM in both directions, linear head."""

    def __init__(self, words=10000, width=128, hidden=256, labels=17):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, labels)

    def forward(self, words):
        states, _ = self.lstm(self.embedding(words))
        return F.log_softmax(self.head(states), dim=-1)


class GruClassifier(nn.Module):
    """A class for a sequence of feature vectors, from the last state of two layers."""

    def __init__(self, features=40, hidden=256, classes=35):
        super().__init__()
        self.gru = nn.GRU(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, frames):
        states, _ = self.gru(frames)
        return self.head(states[:, -1])


# --- U-Net ---

def unet_block(ins, outs):
    layers = []
    for n in (ins, outs):
        layers += [nn.Conv2d(n, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """A mask for an image: four times down by pooling, up again by transposed convolutions, with what was seen there."""

    def __init__(self, width=32, masks=1):
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.pool = nn.MaxPool2d(2)
        self.down = nn.ModuleList(unet_block(i, o) for i, o in zip([3, *widths], widths))
        self.middle = unet_block(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[::-1])
        self.join = nn.ModuleList(unet_block(2 * w, w) for w in widths[::-1])
        self.head = nn.Conv2d(width, masks, 1)

    def forward(self, x):
        seen = []
        for down in self.down:
            seen.append(down(x))
            x = self.pool(seen[-1])
        x = self.middle(x)
        for up, join, s in zip(self.up, self.join, seen[::-1]):
            x = join(torch.cat([up(x), s], 1))
        return self.head(x)


# --- BERT ---

class BertSelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def split(self, x):
        return x.view(*x.size()[:-1], self.heads, self.head_width).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.head_width) + mask
        mixed = torch.matmul(nn.functional.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return mixed.view(mixed.size(0), mixed.size(1), self.heads * self.head_width)


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = BertSelfAttention(width, heads)
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Linear(width, 4 * width)
        self.activation = nn.GELU()
        self.output = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, mask):
        x = self.attention_norm(x + self.dropout(self.attention_output(self.attention(x, mask))))
        return self.norm(x + self.dropout(self.output(self.activation(self.intermediate(x)))))


class Bert(nn.Module):
    """Token, position and segment embeddings, layers with the norm behind the sum, a pooled first token."""

    def __init__(self, words=30522, width=768, layers=12, heads=12, positions=512):
        super().__init__()
        self.word_embeddings = nn.Embedding(words, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(positions, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def encode(self, input_ids, attention_mask, token_type_ids=None):
        length = input_ids.size()[1]
        x = self.word_embeddings(input_ids) + self.position_embeddings(self.position_ids[:, :length])
        if token_type_ids is not None:
            x = x + self.token_type_embeddings(token_type_ids)
        x = self.dropout(self.norm(x))
        mask = (1.0 - attention_mask[:, None, None, :].to(dtype=torch.float32)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        x = self.encode(input_ids, attention_mask, token_type_ids)
        return {"last_hidden_state": x, "pooler_output": torch.tanh(self.pooler(x[:, 0]))}


class MiniLm(Bert):
    """An encoder of sentences: the mean of the tokens that are not padding, of length one."""

    def __init__(self, words=30522, width=384, layers=6, heads=12, positions=512):
        super().__init__(words, width, layers, heads, positions)

    def forward(self, input_ids, attention_mask):
        x = self.encode(input_ids, attention_mask, torch.zeros_like(input_ids))
        weights = attention_mask.unsqueeze(-1).expand(x.size()).float()
        mean = torch.sum(x * weights, 1) / torch.clamp(weights.sum(1), min=1e-9)
        return F.normalize(mean, p=2, dim=1)


# --- GPT ---

class GptBlock(nn.Module):
    def __init__(self, width, heads, positions):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("bias", torch.tril(torch.ones(positions, positions)).view(1, 1, positions, positions))

    def attend(self, x):
        batch, length, width = x.size()
        q, k, v = self.c_attn(x).split(width, dim=2)
        k = k.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        q = q.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A decoder with learned positions; the head shares the weight of the embedding."""

    def __init__(self, words=50257, width=768, layers=12, heads=12, positions=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads, positions) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        positions = torch.arange(0, tokens.size(1), dtype=torch.long)
        x = self.wte(tokens) + self.wpe(positions)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


# --- Llama ---

class LlamaNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def rotate_half(x):
    x1, x2 = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return torch.cat((-x2, x1), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, self.head_width = heads, groups, width // heads
        self.input_layernorm, self.post_attention_layernorm = LlamaNorm(width), LlamaNorm(width)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, groups * self.head_width, bias=False)
        self.v_proj = nn.Linear(width, groups * self.head_width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def attend(self, x, cos, sin):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.head_width).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.groups, self.head_width).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.groups, self.head_width).transpose(1, 2)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k = torch.repeat_interleave(k, self.heads // self.groups, dim=1)
        v = torch.repeat_interleave(v, self.heads // self.groups, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.input_layernorm(x), cos, sin)
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    """A decoder with rotary positions, gated feed-forward layers and keys shared by groups of heads."""

    def __init__(self, words=32000, width=512, layers=8, heads=8, groups=4, inner=1376, positions=512):
        super().__init__()
        self.embed_tokens = nn.Embedding(words, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, groups, inner) for _ in range(layers))
        self.norm = LlamaNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        half = torch.arange(0, width // heads, 2).float() / (width // heads)
        angles = torch.outer(torch.arange(positions).float(), 10000.0 ** -half)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.embed_tokens(tokens)
        cos, sin = self.cos[:length], self.sin[:length]
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


class Seq2Seq(nn.Module):
    """torch.nn.Transformer between embeddings and a head, with its masks."""

    def __init__(self, words=8000, width=256, layers=3, heads=8):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.transformer = nn.Transformer(width, heads, layers, layers, 4 * width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, source, target):
        length = target.size(1)
        future = torch.triu(torch.ones(length, length), diagonal=1).bool()
        y = self.transformer(self.embedding(source), self.embedding(target), tgt_mask=future, tgt_is_causal=True,
                             src_key_padding_mask=source == 0)
        return self.head(y)


# --- the rest ---

class Layers(nn.Module):
    """Layers of torch.nn that none of the other networks has."""

    def __init__(self):
        super().__init__()
        self.pads = nn.Sequential(nn.ReflectionPad2d(1), nn.ReplicationPad2d((1, 0, 2, 1)), nn.CircularPad2d(1),
                                  nn.ZeroPad2d(1), nn.ConstantPad2d(1, 0.5))
        self.conv = nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect")
        self.norms = nn.Sequential(nn.InstanceNorm2d(8, affine=True), nn.GroupNorm(2, 8), nn.LocalResponseNorm(3))
        self.smooth = nn.Sequential(nn.CELU(0.5), nn.SELU(), nn.ELU(), nn.Softsign(), nn.Mish(), nn.Tanhshrink(),
                                    nn.LogSigmoid(), nn.Softplus())
        self.kinked = nn.Sequential(nn.Hardshrink(0.1), nn.Softshrink(0.1), nn.Threshold(-1.0, 0.2), nn.LeakyReLU(),
                                    nn.Hardtanh(-0.5, 3.0), nn.PReLU(8))
        self.glu = nn.GLU(1)
        self.drops = nn.Sequential(nn.Dropout2d(), nn.AlphaDropout(), nn.FeatureAlphaDropout())
        self.up = nn.Sequential(nn.UpsamplingBilinear2d(scale_factor=2), nn.UpsamplingNearest2d(size=(12, 10)))
        self.shuffle = nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2))
        self.pool = nn.AdaptiveMaxPool2d((4, 3))
        self.back = nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)
        self.shape = nn.Sequential(nn.Flatten(2), nn.Unflatten(1, (2, 3)), nn.RMSNorm(80))
        self.rows = nn.Sequential(nn.Conv1d(6, 4, 3), nn.BatchNorm1d(4), nn.AdaptiveMaxPool1d(9), nn.ReflectionPad1d(2))
        self.bag = nn.Linear(13, 5)

    def forward(self, x):
        x = self.norms(self.conv(self.pads(x)))
        x = self.glu(self.kinked(self.smooth(x) + x))
        x = self.back(self.pool(self.shuffle(self.up(self.drops(x)))))
        x = self.rows(self.shape(x[..., :8]).flatten(1, 2))
        return self.bag(x)


class Spellings(nn.Module):
    """Functions, methods and operators of tensors, in the ways that people write them."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4))
        self.constant = torch.tensor([1.0, -1.0, 0.5, 2.0])

    def numbers(self, x):
        batch, length, width = x.shape
        y = x.reshape(batch * length, -1).view(-1, width).contiguous()
        y = y[:, None].squeeze(1).unflatten(0, (batch, length)) + x.size(-1) // 2
        y = y * math.sqrt(x.size(2)) / (x.numel() / x.shape[0] + x.dim() - x.ndim)
        return y.expand(batch, length, width) + torch.zeros_like(x) + x.new_ones(1)

    def parts(self, x):
        first, second = x.chunk(2, dim=-1)
        a, b, c = torch.split(x, 1, dim=1)
        y = torch.cat([first, second], -1) + torch.stack((a, b, c)).mean(dim=0)
        y = y + x[:, [0, 2, 1]] + x[:, 1:2] - x[..., -1:] + x[:, ::2].sum(1, keepdim=True)
        return y + torch.roll(x, 1, 1).flip(-1) + x.transpose(1, 2).permute(0, 2, 1) + x.unbind(1)[0].unsqueeze(1)

    def masks(self, x):
        mask = (x > 0) & ~(x >= 1.5) | x.lt(-1)
        y = torch.where(mask, x, -x).masked_fill(x.abs() < 0.1, 0.25)
        causal = torch.tril(torch.ones(3, 3)).bool()
        scores = (x @ x.mT).masked_fill(~causal, float("-inf"))
        return y + torch.softmax(scores, dim=-1).matmul(x) + F.pad(x, (1, 1), value=0.5)[..., 1:-1]

    def forward(self, x):
        x = F.linear(F.linear(x, self.weight), self.weight.t()) * self.scale + self.constant
        x = x + self.table[:3] + F.embedding(torch.arange(3), self.table)
        x = torch.sigmoid(self.numbers(x)) * x.tanh() + F.silu(self.parts(x)) - self.masks(x).clamp(-2, 2)
        x = F.layer_norm(x, (4,)).add(1).mul(2).sub(0.5).div(1.5).pow(2).sqrt().neg()
        x = torch.maximum(x, x.amax(-1, keepdim=True) - 3) + torch.einsum("bij,kj->bik", x, self.table)[..., :1]
        norm = x.norm(dim=-1, keepdim=True) + torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        values, _ = torch.topk(x / norm, 2, dim=-1)
        return {"values": values, "sum": x.sum((1, 2)), "exp": torch.exp(-x.var(-1, unbiased=False))}
