#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records small networks as both of torch's ONNX exporters write them, for the test golden.onnx_blocks.

    python tools/record_onnx_blocks.py tests/data/onnx_blocks.zip [NAME ..]

needs torch, onnx and onnxscript; no test runs it. Of each block:

    EXPORTER_OPSET.onnx     what the exporter wrote when it was asked for that opset
    EXPORTER.safetensors    our own format of the module, batch norms folded in the arithmetic of that exporter
    data.safetensors        an input, torch's output for it, batches to calibrate with
    case.json               the opset of each file, and how many of its nodes have names of scopes

Lines of Python source, which dynamo writes beside every node, are left out of the files.
"""
import argparse
import contextlib
import copy
import io
import json
import os
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

import tare_export
from export_models import coarsen

OPSETS = (13, 17, 18)
BATCHES = 3

# --- the blocks ---


class Tutorial(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 3)
        self.conv = nn.Conv2d(3, 3, 3)
        self.bn = nn.BatchNorm2d(3)
        self.relu = nn.ReLU()
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        return self.sigmoid(self.relu(self.bn(self.conv(self.linear(x)))))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
                                      nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class BasicBlock(nn.Module):
    def __init__(self, before, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class TinyResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 16, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.layer1(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class InvertedResidual(nn.Module):
    def __init__(self, channels=8, hidden=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, 1, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return x + self.conv(x)


def conv_bn_relu(before, channels, size, padding=0):
    return nn.Sequential(nn.Conv2d(before, channels, size, padding=padding, bias=False),
                         nn.BatchNorm2d(channels, eps=0.001), nn.ReLU())


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.b1 = conv_bn_relu(8, 4, 1)
        self.b2 = nn.Sequential(conv_bn_relu(8, 4, 1), conv_bn_relu(4, 8, 3, 1))
        self.b3 = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn_relu(8, 4, 1))
        self.pool = nn.AvgPool2d(2)

    def forward(self, x):
        return self.pool(torch.cat([self.b1(x), self.b2(x), self.b3(x), F.avg_pool2d(x, 3, 1, 1)], 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        self.pool = nn.MaxPool2d(2)
        self.mid = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.up(self.mid(self.pool(a)))
        return F.interpolate(self.out(torch.cat([a, b], 1)), scale_factor=2, mode="nearest")


class TextTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 12)
        self.fc1, self.fc2 = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, idx):
        return self.fc2(F.relu(self.fc1(self.emb(idx))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(6, 8, 1), nn.Linear(8, 3)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.fc(y)


class Functional(nn.Module):
    """Everything by function and method instead of by module."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(4, 3, 3, 3) * 0.2), nn.Parameter(torch.randn(4) * 0.1)
        self.lw = nn.Parameter(torch.randn(5, 4) * 0.3)

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.w, self.b, padding=1))
        x = F.max_pool2d(x, 2)
        x = F.hardtanh(x, -1.0, 1.0)
        x = x.mean([2, 3])
        return F.linear(x, self.lw).sigmoid()


class AddMulChain(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1)

    def forward(self, x):
        a, b = self.c1(x), self.c2(x)
        y = torch.relu(a + b)
        z = (a * b).clamp(-1, 1)
        return torch.relu(y * z + 2) * 0.5


class SharedModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.relu = nn.Linear(6, 6), nn.ReLU()

    def forward(self, x):
        y = self.relu(self.fc(x))
        return self.relu(self.fc(y)) + y + x


class Conv1dNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(), nn.MaxPool1d(2),
                                 nn.Conv1d(4, 4, 3, dilation=2), nn.LeakyReLU(0.1))

    def forward(self, x):
        return self.net(x)


class LinearBn(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bn, self.act, self.out = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.act(self.bn(self.fc(x))))


class NormMix(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.g, self.i = nn.Conv2d(4, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)
        self.elu, self.prelu = nn.ELU(), nn.PReLU()

    def forward(self, x):
        return self.prelu(self.i(self.elu(self.g(self.c(x)))))


class Activations(nn.Module):
    """Modules without parameters that ONNX spells as something else."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.six, self.tanh, self.clip = nn.ReLU6(), nn.Hardtanh(), nn.Hardtanh(-0.5, 0.75)
        self.swish, self.silu, self.gelu = nn.Hardswish(), nn.SiLU(), nn.GELU()
        self.gate, self.flat = nn.Hardsigmoid(), nn.Flatten()
        self.pool, self.head = nn.AdaptiveAvgPool2d(2), nn.Linear(16, 5)

    def forward(self, x):
        x = self.conv(x)
        x = self.six(x) + self.tanh(x) + self.clip(x)
        x = self.swish(x) + self.silu(x) + self.gelu(x) * self.gate(x)
        return self.head(self.flat(self.pool(x)))


def normal(*shape):
    return lambda generator: torch.randn(shape, generator=generator)


BLOCKS = {
    "tutorial": (Tutorial, normal(1, 3, 10, 10)), "lenet": (LeNet, normal(2, 1, 12, 12)),
    "tiny_resnet": (TinyResNet, normal(2, 3, 12, 12)), "inverted_residual": (InvertedResidual, normal(1, 8, 7, 7)),
    "inception": (Inception, normal(1, 8, 8, 8)), "unet": (UNet, normal(1, 3, 8, 8)),
    "text_tagger": (TextTagger, lambda generator: torch.randint(0, 50, (3, 7), generator=generator)),
    "lstm": (Lstm, normal(5, 2, 6)), "functional": (Functional, normal(2, 3, 8, 8)),
    "add_mul_chain": (AddMulChain, normal(1, 2, 5, 5)), "shared_module": (SharedModule, normal(3, 6)),
    "conv1d": (Conv1dNet, normal(2, 2, 16)), "linear_bn": (LinearBn, normal(4, 6)),
    "norm_mix": (NormMix, normal(2, 4, 6, 6)), "activations": (Activations, normal(2, 3, 6, 6)),
}


def make(name):
    """(module in eval mode, input, batches to calibrate with)."""
    kind, new_input = BLOCKS[name]
    generator = torch.Generator().manual_seed(7)
    torch.manual_seed(7)
    module = kind()
    for m in module.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0.0, 0.3)
            nn.init.normal_(m.running_mean, 0.0, 0.3)
            nn.init.uniform_(m.running_var, 0.3, 1.5)
    inputs = [new_input(generator) for _ in range(1 + BATCHES)]
    coarsen([*module.parameters(), *module.buffers(), *inputs], 12)
    return module.eval(), inputs[0], inputs[1:]


# --- batch norms, folded as the exporters do: their orders of operations give different last bits ---

def folded_torchscript(layer, norm):
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    weight = layer.weight * scale.reshape([-1] + [1] * (layer.weight.ndim - 1))
    if layer.bias is None:
        return weight, norm.bias - norm.running_mean * scale
    return weight, (layer.bias - norm.running_mean) * scale + norm.bias


def folded_dynamo(layer, norm):
    gamma, beta, mean, var, weight = (t.numpy() for t in (norm.weight, norm.bias, norm.running_mean, norm.running_var,
                                                          layer.weight))
    scale = gamma / np.sqrt(var + norm.eps)
    bias = np.zeros_like(mean) if layer.bias is None else layer.bias.numpy()
    weight = weight * scale.reshape([-1] + [1] * (weight.ndim - 1))
    return torch.from_numpy(weight), torch.from_numpy((bias - mean) * scale + beta)


CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
EXPORTERS = {
    "torchscript": (folded_torchscript, CONVOLUTIONS),
    "dynamo": (folded_dynamo, CONVOLUTIONS + (nn.Linear,)),
}


def fold(traced, exporter):
    """Folds the batch norms of a torch.fx.GraphModule that the exporter folds."""
    arithmetic, kinds = EXPORTERS[exporter]
    for node in list(traced.graph.nodes):
        if node.op != "call_module" or not isinstance(traced.get_submodule(node.target), nn.modules.batchnorm._BatchNorm):
            continue
        before = node.args[0]
        layer = traced.get_submodule(before.target)
        if not isinstance(layer, kinds):
            continue
        with torch.no_grad():
            weight, bias = arithmetic(layer, traced.get_submodule(node.target))
        layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
        traced.delete_submodule(node.target)
    traced.recompile()
    return traced


# --- files ---

def write_reference(module, example, exporter, path):
    traced, examples = tare_export.trace(copy.deepcopy(module), (example,))
    fold(traced, exporter)
    tensors, aliases = tare_export._tensors_of(traced)
    graph = tare_export.graph_of(traced, examples)
    if aliases:
        graph["aliases"] = aliases
    tare_export.write_model(path, graph, tensors)
    return traced


def onnx_of(module, example, exporter, opset):
    """The file, without what hangs on the machine that wrote it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "block.onnx")
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if exporter == "dynamo":
                torch.onnx.export(copy.deepcopy(module), (example,), path, dynamo=True, opset_version=opset,
                                  external_data=False, verbose=False)
            else:
                torch.onnx.export(copy.deepcopy(module), (example,), path, dynamo=False, opset_version=opset)
        made = onnx.load(path)
    for node in made.graph.node:
        node.doc_string = ""
        for p in [p for p in node.metadata_props if p.key == "pkg.torch.onnx.stack_trace"]:
            node.metadata_props.remove(p)
    return made


def check_weights(made, traced, name):
    """The reference's weights are those of the file, to the bit, turned or not."""
    stored = {numpy_helper.to_array(t).tobytes() for t in made.graph.initializer}
    stored |= {numpy_helper.to_array(t).T.tobytes() for t in made.graph.initializer}
    for path, m in traced.named_modules():
        if not isinstance(m, CONVOLUTIONS + (nn.Linear,)):
            continue
        for key, t in m.named_parameters(recurse=False):
            if t.detach().numpy().tobytes() not in stored:
                sys.exit(f"{name}: {path}.{key} is not in the file: the exporter folds in another way")


def add(archive, name, data):
    # A fixed date, so that the archive depends on the content only.
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def has_scope(node):
    return node.name.startswith("/") or any(p.key == "pkg.torch.onnx.name_scopes" for p in node.metadata_props)


def record(archive, name, folder):
    module, example, batches = make(name)
    with torch.no_grad():
        output = module(example)
    path, files = os.path.join(folder, "file"), {}
    for exporter in EXPORTERS:
        traced = write_reference(module, example, exporter, path)
        add(archive, f"{name}/{exporter}.safetensors", open(path, "rb").read())
        for opset in OPSETS:
            stem = f"{exporter}_{opset}"
            made = onnx_of(module, example, exporter, opset)
            check_weights(made, traced, f"{name}/{stem}")
            add(archive, f"{name}/{stem}.onnx", made.SerializeToString(deterministic=True))
            files[stem] = {"opset": made.opset_import[0].version, "nodes": len(made.graph.node),
                           "scoped": sum(map(has_scope, made.graph.node))}
    tare_export.write_arrays(path, {"input": example, "output": output,
                                    **{f"batch.{i}": t for i, t in enumerate(batches)}})
    add(archive, f"{name}/data.safetensors", open(path, "rb").read())
    add(archive, f"{name}/case.json", json.dumps(files, indent=1) + "\n")
    print(name, json.dumps(files), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Record small networks as both of torch's ONNX exporters write them.")
    parser.add_argument("archive")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: " + ", ".join(BLOCKS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with zipfile.ZipFile(options.archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, \
            tempfile.TemporaryDirectory() as folder:
        for name in options.names or BLOCKS:
            record(archive, name, folder)


if __name__ == "__main__":
    main()
