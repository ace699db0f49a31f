#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs what ONNX Runtime computes from files that `tare export --to onnx` writes into tests/data/onnx_export.zip, for the
test golden.onnx_export: the quantized model, inputs, ONNX Runtime's outputs.

    pip install numpy onnx onnxruntime
    python tools/export_models.py build/models --small
    python tests/data/pack_onnx_export.py OUT.zip build/models --tare build/bin/tare NAME ..

case.json holds "crc", of the graph that ONNX Runtime has read, "opset", and "steps": the scale of the last quantization
before each output, by which it may differ. Run it again when what is written changes, after tools/check_onnx_export.py.
"""
import argparse
import json
import pathlib
import struct
import sys
import tempfile
import zipfile
import zlib

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_onnx_export as check  # noqa: E402

OPSET = 18
TYPES = {"float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL"}


def add(archive, name, data):
    # A fixed date, so that the archive depends on the content only.
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def safetensors(arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        bytes_of = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": TYPES[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(bytes_of)]}
        data += bytes_of
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def pack(archive, tare, stem, folder):
    model, out = check.convert(tare, stem, "int8", folder), folder / "model.onnx"
    check.run(tare, "export", model, "--to", "onnx", "--opset", OPSET, "-o", out)
    inputs, proto = check.arrays(f"{stem}.inputs.npz"), onnx.load(out)
    runner = check.session(out)
    fed = check.feed(runner, inputs)
    outputs = runner.run(None, fed)
    steps = [check.step_of(proto, o.name, a) for o, a in zip(proto.graph.output, outputs, strict=True)]
    arrays = {f"input.{i}": a for i, a in enumerate(fed.values())} | {f"output.{i}": a for i, a in enumerate(outputs)}
    case = {"crc": zlib.crc32(proto.graph.SerializeToString()), "opset": OPSET, "steps": steps}
    name = pathlib.Path(stem).name
    add(archive, f"{name}/case.json", json.dumps(case) + "\n")
    add(archive, f"{name}/model.safetensors", model.read_bytes())
    add(archive, f"{name}/data.safetensors", safetensors(arrays))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--tare", default="build/bin/tare")
    options = parser.parse_args()
    with zipfile.ZipFile(options.out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in options.names:
            with tempfile.TemporaryDirectory() as folder:
                pack(archive, options.tare, options.folder / name, pathlib.Path(folder))
            print(name, flush=True)


if __name__ == "__main__":
    main()
