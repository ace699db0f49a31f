#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/programs.zip with torch 2.15 and torchao 0.18, for tests/golden/test_programs.c.

Small models that between them have what a program can hold: open batches and sizes computed from them,
keyword arguments, nested containers, None, values that were fixed at export, dtypes and memory formats as
arguments, several results, buffers that are written, converted models, control flow. Of each: what
torch.export.save wrote (NAME.pt2), and what it was given and gave in one call or two (NAME.safetensors:
"0.in.0", "0.out.0", "1.in.0", ..).

usage: record_programs.py [ZIP]
"""
import io
import math
import pathlib
import sys
import zipfile

import torch
from safetensors.torch import save
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F
from torch.utils import _pytree as pytree

torch.set_num_threads(1)


class Containers(nn.Module):
    """Nested inputs and outputs, None, keywords, fixed numbers and flags."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0]), persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.linear.bias.requires_grad_(False)

    def forward(self, pair, table, flag: bool, nothing, *, scale, power: int):
        a, (b, c) = pair
        y = self.linear(a + b) * self.mask * scale
        if flag:
            y = y**power
        y = y + torch.tensor([0.5, -0.5, 0.25])
        top = torch.topk(y, 2)
        return {"y": y, "parts": [c.split(2, dim=1), None], "top": (top.values, top.indices)}, table["k"] - 1


class Open(nn.Module):
    """A batch and a length that are open, views and numbers computed from them."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.attend = nn.Linear(8, 8)

    def forward(self, x):
        n, t = x.shape
        y = self.embed(x)
        y = self.attend(y.reshape(n * t, 8)).view(n, t, 2, 4).transpose(1, 2)
        steps = torch.arange(t) * 2 + n
        z = torch.cat([y, y], dim=2)
        return z.reshape(n, -1, 4)[:, : t + 1], steps, F.pad(y, (0, 1)).sum(-1) / t


class Arguments(nn.Module):
    """Dtypes, memory formats, strings, lists of floats and of optional tensors, strided weights."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding="same").to(memory_format=torch.channels_last)
        self.tied = nn.Conv2d(3, 4, 3, padding=1)
        self.tied.weight = self.conv.weight

    def forward(self, x):
        y = self.conv(x.contiguous(memory_format=torch.channels_last)) + self.tied(x)
        y = F.gelu(y, approximate="tanh").to(torch.float64).float()
        i = torch.tensor([0, 2])
        z = y[:, i].clone()
        z = F.interpolate(z, scale_factor=(2.0, 2.0), mode="nearest")
        w = torch.full_like(z, float("-inf"), dtype=torch.float32)
        return torch.where(z > 0, z, w), torch.zeros(2, dtype=torch.int32), y.max(dim=1)[0]


class Writes(nn.Module):
    """Buffers and inputs that are written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x, into):
        self.seen += x.mean((0, 2, 3))
        into.mul_(2)
        return x.relu() + self.seen.sum()


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.bn(self.conv(x)).relu()
        return self.linear(F.adaptive_avg_pool2d(y + y, 1).flatten(1))


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)


class Cond(Flow):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.linear(x).relu(), lambda x: x * 2, (x,))


class While(Flow):
    def forward(self, i, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, self.linear(x)), (i, x))


class Scan(Flow):
    def forward(self, init, xs):
        from torch._higher_order_ops.scan import scan

        def step(carry, x):
            y = self.linear(x)
            return carry + y, y.relu()

        return scan(step, init, xs)


class Map(Flow):
    def forward(self, xs, y):
        from torch._higher_order_ops.map import map as map_op

        return map_op(lambda x, y: self.linear(x) * y, xs, y)


class Choice(nn.Module):
    """A network with a choice of two networks in it, one with layers of its own."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.first, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8, 5)

    def bright(self, x):
        return self.second(self.norm(self.first(x)).relu()) + x

    def dark(self, x):
        return F.max_pool2d(self.second(x).relu(), 3, stride=1, padding=1)

    def forward(self, x):
        y = self.stem(x).relu()
        y = torch.cond(x.mean() > 0, self.bright, self.dark, (y,))
        return self.head(y.mean((2, 3)))


class Rounds(nn.Module):
    """Layers in the rounds of a scan, a map and a loop, one after another."""

    def __init__(self):
        super().__init__()
        self.read, self.keep = nn.Linear(4, 8), nn.Linear(8, 8)
        self.each = nn.Linear(8, 8)
        self.refine = nn.Linear(8, 8)

    def forward(self, state, steps, count):
        from torch._higher_order_ops.map import map as map_op
        from torch._higher_order_ops.scan import scan
        from torch._higher_order_ops.while_loop import while_loop

        def step(carry, x):
            y = (self.read(x) + self.keep(carry)).relu()
            return y, y * 1

        last, all = scan(step, state, steps)
        all = map_op(lambda y, s: self.each(y).relu() + s, all, state)
        _, last = while_loop(lambda i, y: i > 0, lambda i, y: (i - 1, self.refine(y).relu() + y), (count, last))
        return last, all


class Contexts(nn.Module):
    """Layers within torch.no_grad() and autocasts that do nothing on a CPU."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            y = self.first(x)
            z = y.relu()
        with torch.no_grad():
            w = z * 2
            v = w.split(4, -1)[0] + 1
        with torch.autocast("cuda", dtype=torch.float16):
            u = self.second(w)
            with torch.autocast("cpu", enabled=False):
                u = u + 1
        return {"scores": u, "rest": (v, y)}


class Pictures(nn.Module):
    """Convolutions on pictures of any size: pooled, resized, padded, normalized and joined."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.pointwise = nn.Conv2d(8, 8, 1)
        self.gate = nn.Conv2d(8, 8, 1)
        self.merge = nn.Conv2d(16, 8, 3, padding=1)
        self.head = nn.Linear(8 * 5, 5)

    def forward(self, x):
        a = self.norm(self.stem(x)).relu()
        b = a + F.hardswish(self.pointwise(self.depthwise(a)))
        b = b * torch.sigmoid(self.gate(b.mean((2, 3), keepdim=True)))
        c = F.interpolate(F.max_pool2d(b, 2), size=b.shape[2:], mode="nearest")
        d = self.merge(torch.cat([b, c], 1)).relu()
        pooled = [F.adaptive_avg_pool2d(d, n).flatten(1) for n in (1, 2)]
        return {"scores": self.head(torch.cat(pooled, 1)), "map": d}


class Encoder(nn.Module):
    """Attention over any number of positions: masks, ranges, expanded and joined tokens."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.positions = nn.Embedding(32, 16)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.before, self.after = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.slope = nn.Parameter(torch.rand(2, 1, 1))

    def forward(self, ids, mask):
        n, t = ids.shape
        x = self.words(ids) + self.positions(torch.arange(t, device=ids.device))
        x = torch.cat([self.token.expand(n, -1, -1), x], 1)
        seen = torch.cat([mask.new_ones(n, 1), mask], 1)[:, None, None, :].bool()
        steps = torch.arange(t + 1)
        bias = (steps[None, :] - steps[:, None]).abs() * -self.slope
        scores = torch.where(seen, bias, float("-inf"))
        q, k, v = self.qkv(self.before(x)).view(n, t + 1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = (q @ k.transpose(-2, -1) / math.sqrt(8) + scores).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, t + 1, 16))
        x = x + self.down(F.gelu(self.up(self.after(x))))
        weights = seen[:, 0, 0, :, None].to(x.dtype)
        return {"last_hidden_state": x, "pooled": (x * weights).sum(1) / weights.sum(1)}


def tensors(tree):
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def keep(files, name, program, *calls):
    saved = io.BytesIO()
    torch.export.save(program, saved)
    files[f"{name}.pt2"] = saved.getvalue()
    recorded = {}
    for k, (args, kwargs) in enumerate(calls):
        for i, t in enumerate(tensors((args, kwargs))):
            recorded[f"{k}.in.{i}"] = t.clone().contiguous()
        fresh = torch.export.load(io.BytesIO(saved.getvalue())).module()
        for i, t in enumerate(tensors(fresh(*args, **kwargs))):
            recorded[f"{k}.out.{i}"] = t.detach().clone().contiguous()
    files[f"{name}.safetensors"] = save(recorded)


def quantized(model, x, quantizer, dynamic):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    prepared = prepare_pt2e(export(model, (x,), dynamic_shapes=dynamic).module(), quantizer)
    prepared(x)
    return export(convert_pt2e(prepared), (x,), dynamic_shapes=dynamic)


def record_plain(files):
    args = ((torch.randn(2, 4), (torch.randn(2, 4), torch.randn(2, 6))), {"k": torch.ones(2)}, True, None)
    kwargs = {"scale": torch.tensor(2.0), "power": 2}
    keep(files, "containers", export(Containers().eval(), args, kwargs), (args, kwargs))
    n, t = Dim("n", min=2, max=64), Dim("t", min=2, max=32)
    x, y = torch.randint(0, 10, (2, 5)), torch.randint(0, 10, (3, 7))
    keep(files, "open", export(Open().eval(), (x,), dynamic_shapes=({0: n, 1: t},)), ((x,), {}), ((y,), {}))
    x = torch.randn(2, 3, 6, 6)
    keep(files, "arguments", export(Arguments().eval(), (x,)), ((x,), {}))
    args = (torch.randn(2, 2, 4, 4), torch.randn(3))
    program = export(Writes(), args).run_decompositions({})
    keep(files, "writes", program, ((args[0], args[1].clone()), {}))


def record_quantized(files):
    import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as inductor
    import torchao.testing.pt2e._xnnpack_quantizer as xnnpack

    x, n = torch.randn(2, 2, 5, 5), Dim("n", min=1, max=64)
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    static = xnnpack.XNNPACKQuantizer().set_global(config)
    program = quantized(Small().eval(), x, static, ({0: n},))
    keep(files, "static", program, ((x,), {}), ((torch.randn(3, 2, 5, 5),), {}))
    dynamic = inductor.X86InductorQuantizer()
    dynamic.set_global(inductor.get_default_x86_inductor_quantization_config(is_dynamic=True))
    keep(files, "dynamic", quantized(Small().eval(), x, dynamic, None), ((x,), {}))


def record_flow(files):
    x, y = torch.randn(2, 3), -torch.ones(2, 3)
    keep(files, "cond", export(Cond().eval(), (x,)), ((x,), {}), ((y,), {}))
    i, j = torch.tensor(3), torch.tensor(1)
    keep(files, "while_loop", export(While().eval(), (i, x)), ((i, x), {}), ((j, y), {}))
    xs = torch.randn(4, 2, 3)
    keep(files, "scan", export(Scan().eval(), (x, xs)), ((x, xs), {}), ((y, -xs), {}))
    keep(files, "map", export(Map().eval(), (xs, x)), ((xs, x), {}), ((-xs, y), {}))


def record_nested(files):
    torch.manual_seed(1)
    model = Choice().eval()
    model.norm.running_mean.uniform_(-0.5, 0.5)
    model.norm.running_var.uniform_(0.5, 2)
    pictures = [torch.randn(2, 3, 10, 10) + shift for shift in (0.5, -0.5)]
    keep(files, "choice", export(model, (pictures[0],)), *(((x,), {}) for x in pictures))
    calls = [((torch.randn(3, 8), torch.randn(n, 3, 4), torch.tensor(rounds)), {}) for n, rounds in ((6, 2), (6, 0))]
    keep(files, "rounds", export(Rounds().eval(), calls[0][0]), *calls)


def record_open(files):
    n = Dim("n", min=1, max=64)
    x = torch.randn(2, 4)
    program = export(Contexts().eval(), (x,), dynamic_shapes=({0: n},))
    keep(files, "contexts", program, ((x,), {}), ((torch.randn(3, 4),), {}))
    height, width = Dim("height", min=8, max=512), Dim("width", min=8, max=512)
    pictures = [torch.randn(shape) for shape in ((2, 3, 24, 20), (1, 3, 16, 16), (3, 3, 17, 21))]
    model = settled(Pictures(), torch.randn(8, 3, 24, 20))
    program = export(model, (pictures[0],), dynamic_shapes=({0: n, 2: height, 3: width},))
    keep(files, "pictures", program, *(((x,), {}) for x in pictures))
    t = Dim("t", min=2, max=32)
    calls = [((torch.randint(0, 20, shape), (torch.rand(shape) < 0.8).long()), {}) for shape in ((2, 5), (1, 9), (4, 3))]
    program = export(Encoder().eval(), calls[0][0], dynamic_shapes=({0: n, 1: t}, {0: n, 1: t}))
    keep(files, "encoder", program, *calls)


def settled(model, x):
    """Norms that have seen data."""
    model.train()
    for _ in range(20):
        model(x)
    return model.eval()


def main():
    data = pathlib.Path(__file__).resolve().parent.parent / "tests/data"
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else data / "programs.zip"
    files = {}
    torch.manual_seed(0)
    with torch.no_grad():
        record_plain(files)
        record_flow(files)
        record_quantized(files)
        record_open(files)
        record_nested(files)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, files[name])


if __name__ == "__main__":
    main()
