#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs thirteen small networks of tools/zoo.py into tests/data/zoo.zip, for the test golden.zoo: model, samples to
calibrate and to measure with, torch's outputs, and the signal-to-noise ratio that ONNX Runtime's static int8 (QDQ, per
channel) keeps of them with the same samples.

usage: pack_zoo.py OUT.zip [NAME ..]    (needs torch, timm, transformers, onnx and onnxruntime)

Values are rounded so that the archive stays small. case.json: {"peer_sqnr": dB}.
"""
import json
import pathlib
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import export_models  # noqa: E402
import tare_export  # noqa: E402
import zoo  # noqa: E402
from pack_networks import add  # noqa: E402

WEIGHT_BITS, SAMPLE_BITS, OUTPUT_BITS = 16, 17, 7  # cleared
_WORDS = {"vocab_size": 1100, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
_PAIR = {"vocab_size": 1100, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64}
_GROUPED = {**_WORDS, "num_key_value_heads": 1}
# As in tools/zoo.py: model's class, configuration's, its sizes, inputs.
NETWORKS = {
    "bert_masked": ("BertModel", "BertConfig", {**_WORDS, "max_position_embeddings": 64}, "masked words"),
    "albert": ("AlbertModel", "AlbertConfig", {**_WORDS, "embedding_size": 8, "max_position_embeddings": 64}, "words"),
    "bart": ("BartModel", "BartConfig", _PAIR, "pairs"),
    "gpt2": ("GPT2Model", "GPT2Config", {"vocab_size": 1100, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}, "words"),
    "llama": ("LlamaModel", "LlamaConfig", _GROUPED, "words"),
    "gemma2": ("Gemma2Model", "Gemma2Config", {**_GROUPED, "head_dim": 8, "hidden_size": 16}, "words"),
    "bloom": ("BloomModel", "BloomConfig", {"vocab_size": 1100, "hidden_size": 16, "n_layer": 2, "n_head": 2}, "words"),
    "vit": ("ViTModel", "ViTConfig", {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
                                      "intermediate_size": 48, "image_size": 32, "patch_size": 8}, "picture of 32"),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig",
                  {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2],
                   "decoder_hidden_size": 16}, "picture of 32"),
    "mobilenet_v1": ("MobileNetV1Model", "MobileNetV1Config", {"depth_multiplier": 0.0625, "min_depth": 4}, "picture of 32"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config",
                 {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
                  "conv_dim": [8, 8, 8, 8, 8, 8, 8], "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}, "sound"),
    "edgenext": None,
    "cait": None,
}


def make_cait(generator):
    """A class token that attends to the patches, in front of norms and layer scales whose gains differ from channel to channel."""
    from timm.models.cait import Cait
    module = Cait(img_size=32, patch_size=8, embed_dim=24, depth=2, depth_token_only=1, num_heads=2, num_classes=10)
    with torch.no_grad():
        for name, x in module.named_parameters():
            if "gamma" in name or ("norm" in name and name.endswith("weight")):
                x.copy_(torch.exp(0.5 * torch.randn(x.shape, generator=generator)))
    return module.eval(), lambda count: {"x": zoo.inputs_of("picture of 32", count, generator)["pixel_values"]}


def make(name, generator):
    if name == "cait":
        return make_cait(generator)
    if name == "edgenext":
        from timm.models.edgenext import EdgeNeXt
        module = EdgeNeXt(num_classes=10, depths=(1, 1, 2, 1), dims=(8, 16, 24, 32), heads=(2, 2, 2, 2), d2_scales=(2, 2, 2, 2))
        return module.eval(), lambda count: {"x": zoo.inputs_of("picture of 64", count, generator)["pixel_values"]}
    zoo.TRANSFORMERS[name] = NETWORKS[name]
    return zoo.make(f"transformers/{name}", generator)


def coarse(tensors, bits):
    tensors = [t.detach() for t in tensors if t.is_floating_point()]
    export_models.coarsen(tensors, bits)


def pack(archive, name, folder):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    module, inputs = make(name, generator)
    calibration, tests = inputs(zoo.CALIBRATION), inputs(zoo.CALIBRATION)
    coarse([*calibration.values(), *tests.values()], SAMPLE_BITS)
    export_models.settle(module, [calibration])
    module.eval()
    coarse([*module.parameters(), *module.buffers()], WEIGHT_BITS)
    model, data = folder / "model.safetensors", folder / "data.safetensors"
    with torch.no_grad():
        tare_export.export(module, (), str(model), kwargs=tests)
        outputs = [t.clone() for t in tare_export.flatten(module(**tests)) if isinstance(t, torch.Tensor)]
        zoo.write_onnx(module, {n: t[:zoo.EXAMPLES] for n, t in tests.items()}, str(folder / "model.onnx"))
    np.savez(folder / "calibration.npz", **{n: t.numpy() for n, t in calibration.items()})
    np.savez(folder / "inputs.npz", **{n: t.numpy() for n, t in tests.items()})
    peer = zoo.measure_peer(folder, folder / "model.onnx", zoo.first_tensor(outputs).numpy(), 0)
    coarse(outputs, OUTPUT_BITS)
    arrays = {"input": tests.values(), "calibration": calibration.values(), "float": outputs}
    tare_export.write_arrays(data, {f"{prefix}.{i}": t for prefix, tensors in arrays.items() for i, t in enumerate(tensors)})
    add(archive, f"{name}/case.json", json.dumps({"peer_sqnr": round(peer["sqnr"], 2)}) + "\n")
    add(archive, f"{name}/model.safetensors", model.read_bytes())
    add(archive, f"{name}/data.safetensors", data.read_bytes())
    print(name, peer, f"{model.stat().st_size} and {data.stat().st_size} bytes", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    zoo.load()
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sys.argv[2:] or NETWORKS:
            with tempfile.TemporaryDirectory() as folder:
                pack(archive, name, pathlib.Path(folder))


if __name__ == "__main__":
    main()
