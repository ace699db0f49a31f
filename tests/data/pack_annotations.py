#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs annotations that torchao's quantizers made into annotations.zip, for tests/golden/test_annotations.c.

usage: pack_annotations.py RECORDED

RECORDED has a folder NETWORK_(ns|s)_QUANTIZER for every network, exported by default or strictly, and
quantizer with its settings: case.json with is_qat, the quantizer and its annotations, and the float model.
Taken are a few of every network, so that all quantizers and settings occur. Annotations do not depend on
weights: these become zeros, which pack well. Equal folders give equal bytes.
"""
import itertools
import json
import pathlib
import struct
import sys
import zipfile

QUANTIZERS = ["xn_pc", "x86_qat", "arm", "x86", "xn_qat", "xpu_fns", "x86_dyn", "xn_dyn", "x86_fns", "arm_qat", "comp2", "x86_names",
              "x86_fp16", "x86_fns2", "xn_qatdyn", "x86_rr", "arm_fns", "x86_names2", "xpu", "comp", "x86_qatdyn", "arm_dyn", "emb"]
LARGEST = 40000
# Batch norms whose statistics are no tensors of the model are refused.
LEFT_OUT = ["bn_func"]


def only_zeros(path):
    """The file with zeros in place of all tensors but scalars."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = bytearray(data[8 + size:])
    for name, entry in header.items():
        if name != "__metadata__" and entry["shape"]:
            begin, end = entry["data_offsets"]
            body[begin:end] = bytes(end - begin)
    return data[:8 + size] + bytes(body)


def says_something(folder):
    path, model = folder / "case.json", folder / "model.safetensors"
    if not path.exists() or not model.exists() or model.stat().st_size > LARGEST:
        return False
    case = json.loads(path.read_text())
    return any(a["input_qspec_map"] or a["output_qspec"] for a in case.get("annotations", {}).values())


def choose(recorded):
    networks = sorted({f.name.rsplit("_" + m + "_", 1)[0] for f in recorded.iterdir() for m in ("ns", "s") if f"_{m}_" in f.name})
    order = itertools.cycle(QUANTIZERS)
    for number, network in enumerate(n for n in networks if n not in LEFT_OUT):
        taken = 0
        for _ in QUANTIZERS:
            folder = recorded / f"{network}_{'s' if number % 3 == 2 else 'ns'}_{next(order)}"
            if taken < 2 and says_something(folder):
                taken += 1
                yield folder
            elif taken == 2:
                break


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    empty = json.dumps({}).encode()
    empty = struct.pack("<Q", 8) + empty + b" " * (8 - len(empty))
    with zipfile.ZipFile(pathlib.Path(__file__).parent / "annotations.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for folder in choose(pathlib.Path(sys.argv[1])):
            case = json.loads((folder / "case.json").read_text())
            kept = {k: case[k] for k in ("is_qat", "quantizer", "annotations")}
            files = {"case.json": json.dumps(kept, separators=(",", ":")).encode(), "data.safetensors": empty,
                     "model.safetensors": only_zeros(folder / "model.safetensors")}
            for name, data in files.items():
                out.writestr(zipfile.ZipInfo(f"{folder.name}/{name}"), data, zipfile.ZIP_DEFLATED, 9)


main()
