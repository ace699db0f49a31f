#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs recorded cases of exported programs into exported.zip, for tests/golden/test_exported.c.

usage: pack_exported.py CORPUS_PT2E PT2E

Takes of every network the case with parameters per tensor and one in training, and of the other cases
the first that has an operator which none before it has. Of each: the float model, inputs and float
outputs, the float text; of some the archive that torch.export.save wrote. Equal cases give equal bytes.
"""
import json
import pathlib
import struct
import sys
import zipfile

TRAINING = ["conv1d_xnnpack_qat_0", "tutorial_bn_xnnpack_qat_0"]
# A file written after a run that moved its buffer; large ones.
LEFT_OUT = ["test_quantize_in_place_ops_0", "tiny_resnet_xnnpack_tensor_0"]
LARGEST = 60000
ARCHIVES = ["conv1d_xnnpack_qat_0", "functional_xnnpack_tensor_0", "lstm_xnnpack_tensor_0",
            "text_tagger_xnnpack_tensor_0", "tutorial_bn_xnnpack_tensor_0"]


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def only(path, wanted):
    """A safetensors file with the tensors whose names are wanted."""
    header, data = read(path)
    kept, body = {}, b""
    for name in sorted(n for n in header if wanted(n)):
        entry = dict(header[name])
        begin, end = entry["data_offsets"]
        entry["data_offsets"] = [len(body), len(body) + end - begin]
        body += data[begin:end]
        kept[name] = entry
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def operators(folder):
    graph = json.loads(read(folder / "model.safetensors")[0]["__metadata__"]["tare.graph"])
    return {node["target"] for node in graph["nodes"] if node["op"] == "call_function"}


def choose(corpus, others):
    seen, chosen = set(), []
    for folder in sorted(corpus.iterdir()):
        if folder.name not in LEFT_OUT and (
                folder.name.endswith("_xnnpack_tensor_0") or folder.name in TRAINING):
            chosen.append(folder)
            seen |= operators(folder)
    for folder in sorted(others.iterdir()):
        if (folder.name not in LEFT_OUT and operators(folder) - seen
                and sum(f.stat().st_size for f in folder.iterdir()) < LARGEST):
            chosen.append(folder)
            seen |= operators(folder)
    return chosen


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    corpus, others = (pathlib.Path(folder) for folder in sys.argv[1:])
    target = pathlib.Path(__file__).with_name("exported.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, data):
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, data)

        for folder in choose(corpus, others):
            case = json.loads((folder / "case.json").read_text())
            kept = {key: case[key] for key in ("source", "kind", "float_text", "inputs") if key in case}
            add(f"{folder.name}/case.json", json.dumps(kept, indent=1))
            add(f"{folder.name}/data.safetensors",
                only(folder / "data.safetensors", lambda n: n.split(".")[0] in ("input", "float")))
            if folder.name in ARCHIVES:
                add(f"{folder.name}/model.pt2", (folder / "model.pt2").read_bytes())
            add(f"{folder.name}/model.safetensors", (folder / "model.safetensors").read_bytes())
    print(f"{target.name}: {target.stat().st_size} bytes")


main()
