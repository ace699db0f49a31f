#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs recorded cases (folders with case.json, model.safetensors, data.safetensors) for tare-replay.

usage: pack.py CORPUS FX OWN

Writes an archive beside this script for every network below: its cases without training, and without
dynamic quantization but where that is what the network shows. And one for every group of cases by
name, of torch's own tests, of the corpus, and of models that were made for what both lack (custom
LSTM modules, the decomposed form on the fly, static float16). Equal cases give equal bytes.
"""
import json
import pathlib
import sys
import zipfile

NETWORKS = ["conv1d", "functional", "inverted_residual", "lenet", "linear_bn", "lstm", "shared_module",
            "tiny_resnet", "tutorial"]
DYNAMIC = ["functional", "lstm"]
GROUPS = {
    "qat": ["conv1d_*_qat_*", "linear_bn_*_qat_*", "tutorial_*qat_*",
            "shared_module_native_qat_*"],
    "fx_qat": ["test_conv_bn_relu_[236]", "test_qat_*_[03]", "test_qbatch_norm_4",
               "test_fixed_qparams_ops_2", "test_convert_qconfig_*", "test_qconfig_qat_*",
               "test_linear_module_4", "test_cat_3"],
    "fx_config": ["test_quantized_*", "test_ave_pool_with_*",
                  "test_functional_conv_[0-9]", "test_functional_linear_[0-5]",
                  "test_general_*", "test_multiple_qconfigs*", "test_qconfig_module*", "test_return_none*",
                  "test_dict_output*", "test_output_lists*", "test_ref_*", "test_float_functional*"],
    "fx_dynamic": ["test_dynamic_*", "test_mul_add_fp16_*", "test_preserve_qconfig_*", "test_rnn_*"],
    "fx_embedding": ["test_embedding_*", "test_not_used_*"],
    "custom_lstm": ["custom_lstm*"],
    "flows": ["flow_*"],
}
FILES = ["case.json", "model.safetensors", "data.safetensors"]


def is_wanted(folder, network):
    case = json.loads((folder / "case.json").read_text())
    return not case["is_qat"] and ("_dynamic_" not in folder.name or network in DYNAMIC)


def pack(network, folders, target):
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for folder in folders:
            for name in FILES:
                # A fixed date, so that the archive depends on the content only.
                member = zipfile.ZipInfo(f"{folder.name}/{name}", (1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, (folder / name).read_bytes())
    print(f"{network}: {len(folders)} cases, {target.stat().st_size} bytes")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    corpus, fx, own = (pathlib.Path(folder) for folder in sys.argv[1:])
    for network in NETWORKS:
        folders = [f for f in sorted(corpus.glob(network + "_*")) if is_wanted(f, network)]
        pack(network, folders, pathlib.Path(__file__).parent / (network + ".zip"))
    for group, patterns in GROUPS.items():
        folders = sorted(f for pattern in patterns for root in (corpus, fx, own)
                         for f in root.glob(pattern))
        pack(group, folders, pathlib.Path(__file__).parent / (group + ".zip"))


main()
