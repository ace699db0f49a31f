#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs attention modules into tests/data/attention.zip, for the test golden.attention: a float model, inputs,
and what torch 2.15 gives for them in float and quantized.

usage: pack_attention.py OUT.zip    (needs torch and safetensors)

As a custom module of FX mode an attention fails in torch; so its two swaps are made here by hand, between an
observer of every input and dequantize. With batch_first torch mixes up heads and positions: those cases
compute with transposed inputs, and turn the outputs around.
"""
import copy
import json
import pathlib
import sys
import tempfile
import warnings
import zipfile

import torch
from safetensors.torch import save_file
from torch import nn
from torch.ao.nn import quantizable, quantized
from torch.ao.quantization import default_qconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from tare_export import export  # noqa: E402

warnings.filterwarnings("ignore")


class SelfAttention(nn.Module):
    def __init__(self, **config):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, **config)

    def forward(self, x):
        output, weights = self.mha(x, x, x)
        return output, weights


class CrossAttention(nn.Module):
    def __init__(self, **config):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, **config)

    def forward(self, q, k, v):
        output, weights = self.mha(q, k, v, average_attn_weights=False)
        return output, weights


CASES = {
    "self": (SelfAttention, {}, [(11, 3, 8)]),
    "self_without_bias": (SelfAttention, {"bias": False}, [(11, 3, 8)]),
    "self_with_zeros": (SelfAttention, {"add_zero_attn": True}, [(11, 3, 8)]),
    "cross": (CrossAttention, {"kdim": 6, "vdim": 10}, [(9, 3, 8), (11, 3, 6), (11, 3, 10)]),
    "cross_batch_first": (CrossAttention, {"batch_first": True}, [(3, 9, 8), (3, 11, 8), (3, 11, 8)]),
}


def quantize(x):
    observer = default_qconfig.activation()
    observer(x)
    scale, zero_point = observer.calculate_qparams()
    return torch.quantize_per_tensor(x, float(scale), int(zero_point), torch.quint8)


def run_quantized(model, inputs):
    mha = copy.deepcopy(model.mha)
    first, mha.batch_first = mha.batch_first, False
    turned = [x.transpose(0, 1) for x in inputs] if first else inputs
    arguments = list(turned) * (3 if len(turned) == 1 else 1)
    mha.qconfig = default_qconfig
    observed = quantizable.MultiheadAttention.from_float(mha)
    observed(*arguments)
    made = quantized.MultiheadAttention.from_observed(observed)
    # An average over heads has ties, which the last bit of a scale decides.
    averages = len(inputs) == 1
    output, weights = made(*[quantize(x.contiguous()) for x in arguments], average_attn_weights=averages)
    return output.transpose(0, 1) if first else output, weights


def flat(prefix, values, out):
    for i, x in enumerate(values):
        out[f"{prefix}.{i}"] = (x.dequantize() if x.is_quantized else x).detach().contiguous().clone()


def case(name, folder):
    make, config, shapes = CASES[name]
    torch.manual_seed(1)
    model = make(**config).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.4)
    inputs = [torch.randn(shape) for shape in shapes]
    data = {}
    with torch.no_grad():
        flat("input", inputs, data)
        flat("float", model(*inputs), data)
        flat("converted", run_quantized(model, inputs), data)
    export(model, tuple(inputs), folder / "model.safetensors", leaves=["mha"])
    save_file(data, folder / "data.safetensors")
    (folder / "case.json").write_text(json.dumps({"inputs": [None] * len(inputs)}))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.backends.quantized.engine = "fbgemm"
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, \
            tempfile.TemporaryDirectory() as temporary:
        for name in CASES:
            folder = pathlib.Path(temporary) / name
            folder.mkdir()
            case(name, folder)
            for file in sorted(folder.iterdir()):
                member = zipfile.ZipInfo(f"{name}/{file.name}", (1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, file.read_bytes())


main()
