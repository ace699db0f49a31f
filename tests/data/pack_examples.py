#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs complete examples (model, settings and every text that torch 2.15 prints on the way) into
tests/data/examples.zip, for the test golden.examples.

usage: pack_examples.py EXAMPLES OUT.zip    (needs torch and safetensors)

EXAMPLES is a folder of texts with the sections `model` (code), `prepared`, `reference`, .. as printed, and
the lists of state names. Each model is built again with the seed that it was printed with; what the
settings ask for stands in the table below, in the form of tare's configs.
"""
import json
import pathlib
import re
import sys
import tempfile
import zipfile

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from tare_export import export  # noqa: E402

LSTM = {"torch.nn.LSTM": "torch.ao.nn.quantizable.LSTM"}
QUANTIZED_LSTM = {"torch.ao.nn.quantizable.LSTM": "torch.ao.nn.quantized.LSTM"}
FBGEMM = {"default": "fbgemm"}


def named(name, **types):
    """A mapping of named qconfigs: the global one, and one for each class of torch.nn."""
    return {"global": name, "object_type": [[f"torch.nn.{t}", q] for t, q in types.items()]}


def standalone(config):
    return {"standalone_module_name": [["sub", None, None, config, None]]}


# What differs from the defaults: engine and mapping of fbgemm, the native backend, no training.
SETTINGS = {
    "03": {"qconfig_mapping": {"default_qat": "fbgemm"}, "is_qat": True},
    "04": {"qconfig_mapping": named("default_dynamic_qconfig")},
    "05": {"qconfig_mapping": named("float16_dynamic_qconfig")},
    "07": {"qconfig_mapping": named("default_qconfig", Embedding="float_qparams_weight_only_qconfig",
                                    EmbeddingBag="float_qparams_weight_only_qconfig_4bit")},
    "08": {"qconfig_mapping": named("default_dynamic_qconfig")},
    "11": {"prepare_custom_config": {"input_quantized_idxs": [1], "output_quantized_idxs": [0]}},
    "12": {"prepare_custom_config": standalone({"input_quantized_idxs": [0], "output_quantized_idxs": [0]}),
           "leaves": ["sub"]},
    "13": {"prepare_custom_config": standalone(None), "leaves": ["sub"]},
    "14": {"qconfig_mapping": named("default_qconfig"),
           "prepare_custom_config": {"float_to_observed_custom_module_class": {"static": LSTM}},
           "convert_custom_config": {"observed_to_quantized_custom_module_class": {"static": QUANTIZED_LSTM}}},
    "15": {"qconfig_mapping": named("default_qconfig"), "equalization": named("default_equalization_qconfig")},
    "16": {"engine": "onednn", "backend": "onednn", "qconfig_mapping": {"default": "onednn"}},
    "17": {"qconfig_mapping": {**FBGEMM, "module_name": [["blk.1.l", None]]}},
}
SECTIONS = {"prepared, before calibration: print(model)": "prepared", "prepared: print(graph)": "prepared_nodes",
            "reference: print(model)": "reference", "decomposed reference: print(model)": "decomposed",
            "lowered: print(model)": "lowered"}


def plain(text):
    """As tare prints: without runs of blank lines and torch's hint."""
    text = text.replace("\n\n\n\n", "\n\n").split("# To see more debug info")[0]
    return text.rstrip() + "\n"


def read_texts(source):
    texts = {}
    for part in re.split(r"^## ", source, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        for line in re.findall(r"^(\w+) state_dict keys: (.*)$", body, flags=re.M):
            texts[line[0] + "_state"] = line[1].replace(" ", "\n") + "\n"
        if title in SECTIONS:
            texts[SECTIONS[title]] = plain(re.split(r"^\w+ state_dict keys:", body, flags=re.M)[0])
    return texts


def example(path, folder):
    source = path.read_text()
    number = path.name[:2]
    settings = {"engine": "fbgemm", "backend": "native", "qconfig_mapping": FBGEMM, "is_qat": False,
                **SETTINGS.get(number, {})}
    leaves = settings.pop("leaves", [])
    code = source.split("## model", 1)[1].split("\n", 1)[1].split("\n## ")[0]
    names = {"torch": torch, "nn": nn, "F": F, "__name__": "example"}
    torch.manual_seed(0)
    exec(code, names)  # noqa: S102, the examples are our own
    inputs = names["inputs"]()
    model = names["Model"]().train(settings["is_qat"])
    export(model, inputs, folder / "model.safetensors", leaves=leaves, keep_defaults=True)
    save_file({f"input.{i}": x.contiguous() for i, x in enumerate(inputs)}, folder / "data.safetensors")
    (folder / "case.json").write_text(json.dumps({**settings, **read_texts(source)}))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, \
            tempfile.TemporaryDirectory() as temporary:
        for path in sorted(pathlib.Path(sys.argv[1]).glob("*.txt")):
            folder = pathlib.Path(temporary) / path.stem
            folder.mkdir()
            example(path, folder)
            for file in sorted(folder.iterdir()):
                # A fixed date, so that the archive depends on the content only.
                member = zipfile.ZipInfo(f"{path.stem}/{file.name}", (1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, file.read_bytes())


main()
