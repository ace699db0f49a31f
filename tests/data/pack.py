#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs recorded cases into tests/data/float_text.tar.gz: of every distinct float model its file, with
zeros in place of the tensors' values (which no text shows) and without the nodes' metadata, and the
text that torch 2.15 prints for it.

usage: pack.py OUT.tar.gz CASES..    (each of CASES is a folder with a folder per case)
"""
import gzip
import io
import json
import pathlib
import struct
import sys
import tarfile


def model_without_values(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    graph = json.loads(header["__metadata__"]["tare.graph"])
    for node in graph["nodes"]:
        node.pop("meta", None)
    header["__metadata__"]["tare.graph"] = json.dumps(graph, separators=(",", ":"))
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    size = max([entry["data_offsets"][1] for entry in tensors], default=0)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(size)


def add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def main(out, folders):
    seen = set()
    # No time and no name in the header: equal cases give equal bytes.
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for folder in folders:
                for case in sorted(pathlib.Path(folder).iterdir()):
                    text = json.loads((case / "case.json").read_text())["float_text"].encode()
                    model = model_without_values(case / "model.safetensors")
                    if (model, text) in seen:
                        continue
                    seen.add((model, text))
                    add(archive, f"{case.name}/model.safetensors", model)
                    add(archive, f"{case.name}/float_text.txt", text)
    print(f"{len(seen)} models", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
