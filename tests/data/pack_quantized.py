#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs small networks that others have quantized into tests/data/quantized.zip, for the test golden.quantized: the file,
inputs, and what its own runtime computes.

    pip install torch torchao onnx onnxruntime nncf numpy
    python tests/data/pack_quantized.py OUT.zip [NAME ..]

Small networks by ONNX Runtime's quantizer (QDQ, QOperator, dynamic), by NNCF, by torchao (static, dynamic, trained, weights alone)
and by torch's FX mode. ONNX Runtime runs without its optimizations, which round otherwise. With names of cases only these are made
again, and the others of OUT.zip stay. case.json holds "file", "operators": the least number in integers, and "error": the most, relative to
the greatest output.
"""
import argparse
import copy
import json
import pathlib
import struct
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import onnx
import onnxruntime
import torch
import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as x86
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static, shape_inference
from torch import nn
from torch.ao.quantization import get_default_qat_qconfig_mapping, get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_to_reference_fx, prepare_fx, prepare_qat_fx
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tare_export  # noqa: E402


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(x)) + x)
        return self.fc(torch.flatten(self.pool(y), 1))


class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
                               nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Hardswish(),
                               nn.Conv2d(8, 16, 1), nn.MaxPool2d(2))
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(self.f(x).mean((2, 3)))


class Parts(nn.Module):
    """A pool whose result two layers read, parts that are split, joined and shuffled, a norm by itself, a resized map."""

    def __init__(self):
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2)
        self.a, self.b = nn.Conv2d(4, 4, 1), nn.Conv2d(8, 8, 3, padding=1)
        self.n, self.fc = nn.BatchNorm2d(8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        left, right = x.chunk(2, 1)
        y = torch.cat([left, torch.relu(self.a(right))], 1)
        y = y.reshape(y.shape[0], 2, 4, 8, 8).transpose(1, 2).reshape(y.shape[0], 8, 8, 8)
        y = torch.relu(self.n(torch.relu(self.b(x)) + y))
        y = nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")
        return self.fc(nn.functional.max_pool2d(y, 16).flatten(1))


class Branches(nn.Module):
    """Depthwise layers that read one value, whose channels have scales of their own by NNCF."""

    def __init__(self):
        super().__init__()
        self.stem, self.wide = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 5, padding=2, groups=8)
        self.narrow, self.point = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 8, 1)
        self.fc = nn.Linear(8, 3)
        with torch.no_grad():
            self.stem.weight *= torch.logspace(-1, .5, 8).reshape(8, 1, 1, 1)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = torch.relu(self.point(torch.relu(self.wide(x) + self.narrow(x))))
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Encoder(nn.Module):
    def __init__(self, d=16, h=2):
        super().__init__()
        self.h = h
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).reshape(b, t, self.h, d // self.h).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = torch.softmax(q @ k.transpose(-1, -2) * (d // self.h) ** -0.5, -1) @ v
        x = self.n1(x + self.o(a.transpose(1, 2).reshape(b, t, d)))
        return self.n2(x + self.f2(nn.functional.gelu(self.f1(x))))


NETWORKS = {"residual": (Residual, (2, 3, 16, 16)), "depthwise": (Depthwise, (2, 3, 16, 16)), "parts": (Parts, (2, 3, 16, 16)),
            "branches": (Branches, (2, 3, 16, 16)), "encoder": (Encoder, (2, 6, 16))}


def network(name):
    torch.manual_seed(0)
    build, shape = NETWORKS[name]
    module, x = build(), torch.randn(shape)
    module.train()
    for _ in range(5):
        module(torch.randn_like(x) * 1.3 + 0.1)
    return module.eval(), x


def batches(x):
    return [x[i:i + 1] * factor for factor in (1, .7, 1.2) for i in range(2)]


class Reader:
    def __init__(self, x):
        self.left = iter([{"x": b.numpy()} for b in batches(x)])

    def get_next(self):
        return next(self.left, None)


def onnx_file(name, kind, folder):
    module, x = network(name)
    plain, ready, out = (str(folder / f) for f in ("plain.onnx", "ready.onnx", "model.onnx"))
    torch.onnx.export(module, (x[:1],), plain, dynamo=False, input_names=["x"], output_names=["y"], opset_version=17,
                      dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    shape_inference.quant_pre_process(plain, ready, skip_symbolic_shape=True)
    if kind == "dynamic":
        quantize_dynamic(ready, out)
    elif kind == "nncf":
        import nncf
        data = nncf.Dataset([{"x": b.numpy()} for b in batches(x)])
        onnx.save(nncf.quantize(onnx.load(plain), data, subset_size=6), out)
    elif kind.startswith("bits"):
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        form, bits, group, scheme, *level = kind.split("_")
        quantizer = MatMulNBitsQuantizer(
            onnx.load(ready), bits=int(bits), block_size=int(group), is_symmetric=scheme == "symmetric",
            accuracy_level=int(level[0]) if level else None, quant_format=QuantFormat.QDQ if form == "bitsQDQ" else QuantFormat.QOperator)
        quantizer.process()
        quantizer.model.save_model_to_file(out)
    else:
        form, dtype, channels = kind.split("_")
        # Of 16 bits in ONNX Runtime's own domain; a quantize for each reader, weights with zero points.
        extra = {"pairs": {"DedicatedQDQPair": True, "WeightSymmetric": False}, "own": {"UseQDQContribOps": True}}
        quantize_static(ready, out, Reader(x), quant_format=QuantFormat[form], activation_type=QuantType[dtype],
                        weight_type=QuantType.QInt8, per_channel=channels == "channels", extra_options=extra.get(channels, {}))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return out, x, onnxruntime.InferenceSession(out, options).run(None, {"x": x.numpy()})[0]


def program(name, kind, folder):
    """`prepared`: trained, and saved with its fake quantizers, which torch.export writes as operators; torch converts it. `observed`:
    given to tare_export.py as it was calibrated."""
    module, x = network(name)
    sizes = ({0: torch.export.Dim("n", max=64)},)
    trains = kind in ("trained", "prepared")
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=kind == "dynamic", is_qat=trains)
    quantizer = XNNPACKQuantizer().set_global(config)
    if kind == "x86":
        quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    graph = torch.export.export(copy.deepcopy(module).train(trains), (x,), dynamic_shapes=sizes).module()
    prepared = (prepare_qat_pt2e if trains else prepare_pt2e)(graph, quantizer)
    optimizer = torch.optim.SGD(prepared.parameters(), lr=.01)
    for batch in batches(x):
        loss = prepared(batch.repeat(2, *[1] * (x.dim() - 1))).square().mean()
        if trains:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    out = str(folder / "model.pt2")
    if kind == "prepared":
        torch.export.save(torch.export.export(prepared, (x,), dynamic_shapes=sizes), out)
    if trains:
        move_exported_model_to_eval(prepared)
    if kind == "observed":
        tare_export.export(copy.deepcopy(prepared), (x,), out)
    converted = convert_pt2e(prepared)
    if kind not in ("prepared", "observed"):
        torch.export.save(torch.export.export(converted, (x,), dynamic_shapes=sizes), out)
    return out, x, converted(x).detach().numpy()


def weights_file(name, kind, folder):
    """By torchao's quantize_: weights alone, in groups or rows; `rows8_zero`: with rows of inputs quantized on the fly, too."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, Int8WeightOnlyConfig, IntxWeightOnlyConfig
    from torchao.quantization import PerAxis, PerGroup, quantize_
    config = {"weights4": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(16)),
              "weights8": Int8WeightOnlyConfig,
              "rows8_zero": lambda: Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerAxis(0))}
    module, x = network(name)
    quantize_(module, config[kind]())
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("n", max=64)},)).run_decompositions({})
    out = str(folder / "model.pt2")
    torch.export.save(program, out)
    return out, x, module(x).detach().numpy()


def module_file(name, kind, folder):
    """`.._prepared`: given to tare_export.py as it was trained or calibrated."""
    module, x = network(name)
    trains = kind.startswith("fx_trained")
    mapping = (get_default_qat_qconfig_mapping if trains else get_default_qconfig_mapping)("x86")
    prepared = (prepare_qat_fx if trains else prepare_fx)(module.train(trains), mapping, (x,))
    optimizer = torch.optim.SGD(prepared.parameters(), lr=.01)
    for factor in (1, .7, 1.2):
        loss = prepared(x * factor).square().mean()
        if trains:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    out = str(folder / "model.safetensors")
    if kind.endswith("prepared"):
        tare_export.export(copy.deepcopy(prepared).eval(), (x,), out)
    reference = convert_to_reference_fx(prepared.eval())
    if not kind.endswith("prepared"):
        tare_export.export(reference, (x,), out)
    return out, x, reference(x).detach().numpy()


# Network, who, how, least operators in integers, most error.
CASES = [
    ("residual", onnx_file, "QDQ_QUInt8_channels", 6, 1e-5),
    ("residual", onnx_file, "QDQ_QInt8_tensor", 6, 1e-5),
    ("residual", onnx_file, "QOperator_QUInt8_channels", 6, 1e-5),
    ("residual", onnx_file, "dynamic", 1, 1e-5),
    ("residual", onnx_file, "nncf", 6, 1e-5),
    ("residual", onnx_file, "QDQ_QUInt8_pairs", 6, 1e-5),
    ("residual", onnx_file, "QDQ_QUInt16_own", 0, 1e-4),
    ("residual", program, "trained", 8, 1e-5),
    ("residual", program, "prepared", 8, 1e-5),
    ("residual", module_file, "fx", 7, 1e-5),
    ("residual", module_file, "fx_trained", 7, 1e-5),
    ("residual", module_file, "fx_prepared", 7, 1e-5),
    ("residual", module_file, "fx_trained_prepared", 7, 1e-5),
    ("depthwise", onnx_file, "QDQ_QInt8_channels", 7, 1e-5),
    ("depthwise", onnx_file, "QOperator_QUInt8_tensor", 7, 1e-5),
    ("depthwise", onnx_file, "nncf", 7, 1e-5),
    ("depthwise", program, "static", 8, 1e-5),
    ("depthwise", program, "prepared", 8, 1e-2),  # a step: one value lies between two integers
    ("depthwise", program, "observed", 8, 1e-5),
    ("depthwise", module_file, "fx_trained", 8, 1e-5),
    ("parts", onnx_file, "QDQ_QUInt8_channels", 13, 1e-5),
    ("parts", onnx_file, "QOperator_QUInt8_tensor", 12, 1e-5),
    ("parts", onnx_file, "nncf", 12, 1e-5),
    ("branches", onnx_file, "nncf", 11, 1e-5),
    ("encoder", onnx_file, "QDQ_QUInt8_channels", 23, 1e-5),
    ("encoder", onnx_file, "QOperator_QUInt8_channels", 30, 1e-5),
    ("encoder", onnx_file, "dynamic", 6, 1e-5),
    # Layers of 16 and 64 inputs, whose sums are of floats; blocks of 32 and 64 are longer than some rows.
    ("encoder", onnx_file, "bits_4_16_symmetric", 0, 1e-5),
    ("encoder", onnx_file, "bits_4_32_affine", 0, 1e-5),
    ("encoder", onnx_file, "bits_8_16_affine", 0, 1e-5),
    ("encoder", onnx_file, "bits_4_16_symmetric_4", 6, 5e-3),  # rows of 8 bits: ours have one scale, theirs one a block
    ("encoder", onnx_file, "bitsQDQ_4_16_symmetric", 0, 1e-5),
    ("encoder", onnx_file, "bitsQDQ_4_16_affine", 0, 1e-5),
    ("encoder", program, "dynamic", 6, 1e-5),
    ("encoder", program, "x86", 6, 1e-5),
    ("encoder", weights_file, "weights4", 0, 1e-5),
    ("encoder", weights_file, "weights8", 0, 1e-5),
    ("encoder", weights_file, "rows8_zero", 0, 1e-5),
]


def safetensors(arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        bytes_of = np.ascontiguousarray(array, dtype=np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(bytes_of)]}
        data += bytes_of
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def add(archive, name, data):
    # A fixed date, so that the archive depends on the content only.
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def case_name(case):
    name, make, kind = case[:3]
    return f"{name}_{kind.lower()}{'' if make in (onnx_file, module_file) else '_pt2'}"


def kept(path, made):
    """The members of the archive's other cases."""
    if not pathlib.Path(path).exists():
        return {}
    with zipfile.ZipFile(path) as archive:
        return {n: archive.read(n) for n in archive.namelist() if n.split("/")[0] not in made}


def members_of(case):
    name, make, kind, operators, error = case
    with tempfile.TemporaryDirectory() as folder:
        path, x, y = make(name, kind, pathlib.Path(folder))
        text = {"file": pathlib.Path(path).name, "operators": operators, "error": error}
        return {"case.json": (json.dumps(text, indent=1) + "\n").encode(),
                "data.safetensors": safetensors({"input.0": x.numpy(), "output.0": y}), text["file"]: pathlib.Path(path).read_bytes()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    chosen = {case_name(c) for c in CASES} if not args.names else set(args.names)
    order = [case_name(c) for c in CASES]
    members = {n: data for n, data in kept(args.out, chosen).items() if n.split("/")[0] in order}
    for case in CASES:
        if case_name(case) in chosen:
            members |= {f"{case_name(case)}/{n}": data for n, data in members_of(case).items()}
    with zipfile.ZipFile(args.out, "w") as archive:
        for name in sorted(members, key=lambda n: order.index(n.split("/")[0])):
            add(archive, name, members[name])


if __name__ == "__main__":
    main()
