#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs small relatives of the networks that people have into tests/data/networks.zip, for the test
golden.networks: model, inputs, torch's outputs.

usage: pack_networks.py OUT.zip [NAME ..]    (needs torch and torchvision)

Values are rounded so that the archive stays small. Floors of the signal-to-noise ratio stand in the test.
"""
import pathlib
import sys
import tempfile
import zipfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import export_models  # noqa: E402
import tare_export  # noqa: E402

OUTPUT_BITS = 7  # cleared: half a unit in the last place left is 2^-17 of a value


def add(archive, name, data):
    # A fixed date, so that the archive depends on the content only.
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def pack(archive, name, folder):
    module, inputs, _ = export_models.make(name, True)
    model, data = folder / "model.safetensors", folder / "data.safetensors"
    outputs = tare_export.export(module, inputs, model, **export_models.NETWORKS[name][2]["export"])
    export_models.coarsen(outputs, OUTPUT_BITS)
    tare_export.write_arrays(data, {f"{prefix}.{i}": t for prefix, tensors in (("input", inputs), ("float", outputs))
                                    for i, t in enumerate(tensors)})
    add(archive, f"{name}/case.json", "{}\n")
    add(archive, f"{name}/model.safetensors", model.read_bytes())
    add(archive, f"{name}/data.safetensors", data.read_bytes())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, \
            tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or export_models.NETWORKS:
            pack(archive, name, pathlib.Path(folder))


main()
