#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs programs that torch.export wrote of the networks in networks.zip into tests/data/network_programs.zip, for the
test golden.network_programs: NAME/model.pt2, of some NAME/train.pt2 in training mode, and NAME/case.json with what
torchao's prepare_pt2e and convert_pt2e make of them, by XNNPACKQuantizer and X86InductorQuantizer.

usage: pack_network_programs.py NETWORKS.zip OUT.zip [NAME ..]    (needs torch, torchvision and torchao)

Tensors that networks.zip has under the same name are zeros here, so that the archive stays small. No data runs through
the prepared programs: their scales are 1. case.json holds "lines", each different one once; "texts": "FORM STAGE" and
the numbers of its lines, N or FIRST-LAST; "sums": "FORM STAGE" and the CRC-32 of a text that is not there; "refused":
FORM and torchao's words where it cannot prepare the program.
"""
import json
import logging
import pathlib
import sys
import tempfile
import warnings
import zipfile
import zlib

import safetensors.torch
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import compare_pt2e  # noqa: E402
import compare_torch  # noqa: E402
import export_models  # noqa: E402
from pack_networks import add, runs  # noqa: E402

# Programs in training mode are as large as the others; these have all that the others have.
TRAINED = ("resnet18", "mobilenet_v2", "bert", "lstm_tagger")
WHOLE = {"x86 convert"}
# The names of items that nobody reads stay taken in torch's graph, though not in a copy of it or in a file.
LEFT_OUT = {("layers", "xnnpack_dynamic"), ("layers", "x86_dynamic")}


def texts_of(exported, forms):
    for form in forms:
        for stage, text in compare_pt2e.torchs_texts(exported, form).items():
            yield form, stage, text


def case_of(name, programs):
    lines, texts, sums, refused = {}, {}, {}, {}
    for is_training, exported in programs.items():
        forms = [form for form in compare_pt2e.FORMS if compare_pt2e.is_qat(form) == is_training
                 and (name, form) not in LEFT_OUT]
        for form, stage, text in texts_of(exported, forms):
            title = f"{form} {stage}"
            if isinstance(text, Exception):
                refused[form] = f"{type(text).__name__}: {text}"
            elif title in WHOLE:
                texts[title] = runs([lines.setdefault(line, len(lines)) for line in text.rstrip("\n").split("\n")])
            else:
                sums[title] = zlib.crc32(text.encode())
    return {"texts": texts, "sums": sums, "refused": refused, "lines": list(lines)}


def clear_known(exported, known):
    """Zeros where networks.zip has the value, under each name of the tensor."""
    tensors = {name: t for name, t in [*exported.state_dict.items(), *exported.constants.items()]
               if isinstance(t, torch.Tensor)}
    kept = {t.data_ptr() for name, t in tensors.items() if name not in known or not torch.equal(known[name], t)}
    with torch.no_grad():
        for t in tensors.values():
            if t.data_ptr() not in kept:
                t.zero_()


def pack(archive, name, known, folder):
    programs = {False: None, True: None} if name in TRAINED else {False: None}
    for is_training in programs:
        module, inputs = compare_torch.make(name, True)
        programs[is_training] = export_models.program(module.train(is_training), inputs)
    case = case_of(name, programs)
    for is_training, exported in programs.items():
        clear_known(exported, known)
        path = folder / "program.pt2"
        torch.export.save(exported, path)
        add(archive, f"{name}/{'train' if is_training else 'model'}.pt2", path.read_bytes())
    add(archive, f"{name}/case.json", json.dumps(case, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    with zipfile.ZipFile(sys.argv[1]) as networks, tempfile.TemporaryDirectory() as folder, \
            zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sys.argv[3:] or export_models.NETWORKS:
            known = safetensors.torch.load(networks.read(f"{name}/model.safetensors"))
            pack(archive, name, known, pathlib.Path(folder))
            print(name, flush=True)


if __name__ == "__main__":
    main()
