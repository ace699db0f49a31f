#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs small decoders of language with a cache of keys and values into tests/data/decoder.zip, for the test golden.decoder: the
program for one token a call, tokens, and the logits that torch gives for all of them in one call.

    pip install torch transformers
    python tests/data/pack_decoder.py OUT.zip

float and int8: tools/build_decoder.py. qwen2: transformers' Qwen2 with its static cache, whose program writes over constants
(training form) and over buffers (decomposed: copies at the end).
"""
import argparse
import io
import json
import pathlib
import struct
import sys
import warnings
import zipfile

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import build_decoder  # noqa: E402

TOKENS = [3, 5, 7, 9, 11, 2]


def ours(cache):
    sizes = "x --layers 2 --hidden 32 --heads 4 --kv-heads 2 --ffn 48 --vocab 32 --length 16 --cache " + cache
    options = build_decoder.options(sizes.split())
    with torch.no_grad():
        full = build_decoder.build(options)(torch.tensor([TOKENS]), torch.arange(len(TOKENS)))
    return build_decoder.export(build_decoder.build(options), 1), full


def qwen2(decomposed):
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache, convert_and_export_with_cache

    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=16, attn_implementation="sdpa", tie_word_embeddings=False)).eval()
    model.generation_config = GenerationConfig(use_cache=True, cache_implementation="static", max_length=16,
                                               cache_config={"batch_size": 1, "max_cache_len": 16})
    with torch.no_grad():
        full = model(torch.tensor([TOKENS])).logits
        if decomposed:
            return convert_and_export_with_cache(model).run_decompositions({}), full
        inputs = {"input_ids": torch.tensor([[3]]), "cache_position": torch.tensor([0])}
        return torch.export.export(TorchExportableModuleWithStaticCache(model), (), inputs, strict=False), full


CASES = {"float": lambda: ours("float"), "int8": lambda: ours("int8"), "qwen2": lambda: qwen2(False),
         "qwen2_decomposed": lambda: qwen2(True)}


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
    archive.writestr(member, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    with zipfile.ZipFile(args.out, "w") as archive:
        for name, make in CASES.items():
            program, full = make()
            file = io.BytesIO()
            torch.export.save(program, file)
            add(archive, f"{name}/data.safetensors", safetensors({"tokens": np.array(TOKENS), "logits": full[0].numpy()}))
            add(archive, f"{name}/model.pt2", file.getvalue())


if __name__ == "__main__":
    main()
