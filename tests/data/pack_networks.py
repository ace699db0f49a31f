#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs small relatives of the networks that people have into tests/data/networks.zip, for the tests
golden.networks and golden.network_texts: model, inputs, torch's outputs, and what torch prints of them when it
quantizes them for x86 and qnnpack, after training and for it.

usage: pack_networks.py OUT.zip [NAME ..]    (needs torch and torchvision)

Values are rounded so that the archive stays small. Floors of the signal-to-noise ratio stand in the test. No data runs
through the prepared models that are printed: their scales are 1, and the texts say the graph alone. case.json holds
"lines", each different one once, and "texts": "BACKEND FORM STAGE" and the numbers of its lines, N or FIRST-LAST;
"left_float" are the types that the mapping leaves float.
"""
import copy
import json
import pathlib
import sys
import tempfile
import warnings
import zipfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import compare_torch  # noqa: E402
import export_models  # noqa: E402
import tare_export  # noqa: E402

OUTPUT_BITS = 7  # cleared: half a unit in the last place left is 2^-17 of a value


def add(archive, name, data):
    # A fixed date, so that the archive depends on the content only.
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def runs(numbers):
    """3 4 5 7 as "3-5 7"."""
    found = []
    for n in numbers:
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def case_of(name, module, inputs, options):
    """What torch prints: see above."""
    lines, texts = {}, {}
    floats = {form: compare_torch.left_float(name, form) for form in compare_torch.FORMS}
    given, _ = compare_torch.torchs_input(module, inputs, options)
    for backend in compare_torch.BACKENDS:
        for form in compare_torch.FORMS:
            found = compare_torch.torchs_texts(copy.deepcopy(given), inputs, backend, form, floats[form], False)
            for stage, text in found.items():
                if isinstance(text, Exception):
                    sys.exit(f"{name} {backend} {form} {stage}: {text}")
                numbers = [lines.setdefault(line, len(lines)) for line in text.rstrip("\n").split("\n")]
                texts[f"{backend} {form} {stage}"] = runs(numbers)
    return {"left_float": {form: list(floats[form]) for form in floats}, "texts": texts, "lines": list(lines)}


def pack(archive, name, folder):
    module, inputs = compare_torch.make(name, True)
    model, data = folder / "model.safetensors", folder / "data.safetensors"
    options = export_models.NETWORKS[name][2]["export"]
    outputs = tare_export.export(module, inputs, model, **options)
    export_models.coarsen(outputs, OUTPUT_BITS)
    tare_export.write_arrays(data, {f"{prefix}.{i}": t for prefix, tensors in (("input", inputs), ("float", outputs))
                                    for i, t in enumerate(tensors)})
    add(archive, f"{name}/case.json", json.dumps(case_of(name, module, inputs, options), separators=(",", ":")) + "\n")
    add(archive, f"{name}/model.safetensors", model.read_bytes())
    add(archive, f"{name}/data.safetensors", data.read_bytes())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, \
            tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or export_models.NETWORKS:
            pack(archive, name, pathlib.Path(folder))
            print(name, flush=True)


if __name__ == "__main__":
    main()
