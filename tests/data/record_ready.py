#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python tests/data/record_ready.py > tests/data/ready_patterns.json

Networks as torch.export writes them, and how often ready-made patterns occur in them, for
tests/unit/quantizers/patterns/test_ready_patterns.c. Needs torch 2.15."""
import json
import operator
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)


class Of(nn.Module):
    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *x):
        return self.function(self, *x)


def conv(i=3, o=3, k=3, **more):
    return nn.Conv2d(i, o, k, **more)


def attention(s, x):
    b, t, d = x.shape
    q, k, v = [m(x).view(b, t, 2, d // 2).transpose(1, 2) for m in (s.q, s.k, s.v)]
    p = torch.softmax(q @ k.transpose(-2, -1) / 2.0, -1)
    return s.o((p @ v).transpose(1, 2).reshape(b, t, d))


def projections():
    return {n: nn.Linear(8, 8) for n in "qkvo"}


def by_hand_norm(s, x):
    m = x.mean(-1, keepdim=True)
    return (x - m) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) * s.n.weight + s.n.bias


def by_hand_rms(s, x):
    return s.n.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


image, vector, tokens = torch.rand(2, 3, 8, 8), torch.rand(2, 8), torch.rand(2, 4, 8)
ACTS = {"relu": nn.ReLU, "relu6": nn.ReLU6, "hardtanh": nn.Hardtanh, "hardswish": nn.Hardswish, "hardsigmoid": nn.Hardsigmoid,
        "silu": nn.SiLU, "mish": nn.Mish, "gelu": nn.GELU, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "sigmoid": nn.Sigmoid,
        "tanh": nn.Tanh}
# Name, module, inputs, expected matches, in training.
NETS = [(f"conv2d_{a}", nn.Sequential(conv(), make(), conv(stride=2, padding=1), nn.BatchNorm2d(3), make()), [image],
         {f"conv_{a}": 1, f"conv2d_bn_{a}": 1, f"linear_{a}": 0, a: 2}, False) for a, make in ACTS.items()]
NETS += [(f"linear_{a}", nn.Sequential(nn.Linear(8, 8), make(), nn.Linear(8, 8, bias=False), make()), [x],
          {f"linear_{a}": 2, a: 2, f"conv_{a}": 0}, False) for (a, make), x in zip(ACTS.items(), [vector, tokens] * 6)]
for a in ("relu", "relu6", "hardtanh", "hardswish", "silu", "leaky_relu", "elu"):
    NETS.append((f"{a}_in_place", nn.Sequential(conv(), nn.BatchNorm2d(3), ACTS[a](inplace=True)), [image],
                 {f"conv_bn_{a}": 1, "conv": 1, "conv_bn": 1}, True))
NETS += [
    ("conv1d", nn.Sequential(nn.Conv1d(3, 4, 3, padding="same"), nn.BatchNorm1d(4), nn.ReLU(), nn.Conv1d(4, 4, 3)),
     [torch.rand(2, 3, 9)], {"conv1d_bn_relu": 1, "conv1d": 2, "conv": 2, "conv2d": 0}, True),
    ("conv3d", nn.Sequential(nn.Conv3d(3, 4, 3), nn.ReLU()), [torch.rand(1, 3, 5, 5, 5)], {"conv3d_relu": 1, "conv_relu": 1}, False),
    ("transposed", nn.Sequential(nn.ConvTranspose2d(3, 4, 2, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 4, 2)),
     [image], {"conv_transpose_bn_relu": 1, "conv_transpose2d": 2, "conv": 0}, True),
    ("linear_bn", nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()), [vector], {"linear_bn_relu": 1, "linear_bn": 1}, True),
    ("residual", Of(lambda s, x: F.relu(s.b(s.c(x)) + x), c=conv(padding=1), b=nn.BatchNorm2d(3)), [image],
     {"residual_add": 1, "residual_add_relu": 1, "conv_bn_add_relu": 1, "conv_add": 0, "add_relu": 1}, True),
    ("residual_last", Of(lambda s, x: x + s.c(x), c=conv(padding=1)), [image], {"residual_add": 1, "conv_add": 1, "add": 1}, False),
    ("residual_in_place", Of(lambda s, x: F.relu_(operator.iadd(s.c(x), x)), c=conv(padding=1)), [image],
     {"residual_add_relu": 1, "conv_add_relu": 1}, False),
    ("scaled_sum", Of(lambda s, x: torch.add(s.c(x), x, alpha=2), c=conv(padding=1)), [image], {"residual_add": 0, "add": 0}, False),
    ("attention", Of(attention, **projections()), [tokens], {"attention": 1, "linear": 4, "softmax": 1, "matmul": 2}, False),
    ("sdpa", Of(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v)), [torch.rand(1, 2, 4, 8) for _ in range(3)], {"fused_attention": 1}, False),
    ("sdpa_scaled", Of(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)),
     [torch.rand(1, 2, 4, 8) for _ in range(3)], {"fused_attention": 1}, False),
    ("masked", Of(lambda s, q, k, v, m: F.dropout(torch.softmax(torch.bmm(q, k) * 0.5 + m, 2), 0.1, True) @ v),
     [torch.rand(2, 4, 8), torch.rand(2, 8, 4), torch.rand(2, 4, 8), torch.rand(4, 4)], {"attention": 1}, False),
    ("encoder", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), [tokens], {"layer_norm": 2, "linear_relu": 1}, True),
    ("layer_norms", nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-6)), [tokens], {"layer_norm": 2}, False),
    ("by_hand_norm", Of(by_hand_norm, n=nn.LayerNorm(8)), [tokens], {"layer_norm": 1}, False),
    ("rms_norm", nn.RMSNorm(8), [tokens], {"rms_norm": 1}, False),
    ("by_hand_rms", Of(by_hand_rms, n=nn.RMSNorm(8)), [tokens], {"rms_norm": 1}, False),
    ("group_norm", nn.GroupNorm(1, 3), [image], {"group_norm": 1}, False),
    ("batch_norm", nn.BatchNorm2d(3), [image], {"batch_norm": 1}, True),
    ("gelu_by_hand", Of(lambda s, x: x * 0.5 * (torch.erf(x / 2**0.5) + 1.0)), [vector], {"gelu": 1}, False),
    ("swish_by_hand", Of(lambda s, x: x * torch.sigmoid(x)), [vector], {"silu": 1, "sigmoid": 1}, False),
    ("hardswish_by_hand", Of(lambda s, x: x * F.relu6(x + 3) / 6), [vector], {"hardswish": 1, "relu6": 1}, False),
    ("embedding", Of(lambda s, x: s.e(x) + s.p(x), e=nn.Embedding(9, 8, padding_idx=0), p=nn.Embedding(9, 8)),
     [torch.randint(0, 9, (2, 4))], {"embedding": 2, "add": 1}, False),
    ("lstm", nn.LSTM(8, 8, num_layers=2, bidirectional=True), [tokens], {"lstm": 1, "gru": 0}, False),
    ("lstm_plain", nn.LSTM(8, 8, bias=False, batch_first=True), [tokens], {"lstm": 1}, True),
    ("gru", nn.GRU(8, 8), [tokens], {"gru": 1, "lstm": 0}, False),
    ("squeeze_excite", Of(lambda s, x: x * F.hardsigmoid(s.b(F.relu(s.a(F.adaptive_avg_pool2d(x, 1))))), a=conv(3, 2, 1), b=conv(2, 3, 1)),
     [image], {"squeeze_excite": 1, "global_pool": 1}, False),
    ("squeeze_excite_mean", Of(lambda s, x: torch.sigmoid(s.b(F.silu(s.a(x.mean([2, 3], keepdim=True))))) * x, a=conv(3, 2, 1), b=conv(2, 3, 1)),
     [image], {"squeeze_excite": 1}, False),
    ("cats", Of(lambda s, x: torch.cat([x, F.relu(x), s.c(x)], 1), c=conv(padding=1)), [image], {"cat": 1}, False),
    ("pools", nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2, padding=1), nn.AdaptiveAvgPool2d(1)), [image],
     {"max_pool": 1, "avg_pool": 1, "global_pool": 1}, False),
    ("products", Of(lambda s, x, y: F.relu(x * y) @ y.t()), [vector, vector + 1], {"mul": 1, "mul_relu": 1, "matmul": 1}, False),
]


def spell(v):
    if isinstance(v, torch.fx.Node):
        return v.name
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(spell(i) for i in v) + "]"
    return repr(v)


def code_of(module):
    """The graph with its tensors as parameters."""
    lines, params = [], []
    for n in module.graph.nodes:
        if n.op in ("placeholder", "get_attr"):
            params.append(n.name)
        elif n.op == "output":
            lines.append(f"return ({', '.join(spell(a) for a in n.args[0])},)")
        elif n.target is operator.getitem:
            lines.append(f"{n.name} = {spell(n.args[0])}[{n.args[1]}]")
        else:
            args = [spell(a) for a in n.args] + [f"{k} = {spell(v)}" for k, v in n.kwargs.items()]
            lines.append(f"{n.name} = torch.ops.{n.target}({', '.join(args)})")
    return "\n    ".join([f"def forward(self, {', '.join(params)}):", *lines]) + "\n"


def record(name, module, inputs, expected, trains):
    exported = torch.export.export(module.train(trains), tuple(inputs)).module(check_guards=False)
    exported.graph.eliminate_dead_code()
    return {"name": name, "exported": code_of(exported), "matches": expected}


if __name__ == "__main__":
    print(json.dumps([record(*net) for net in NETS], indent=0))
