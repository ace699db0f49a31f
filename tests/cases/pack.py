#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs recorded cases (folders with case.json, model.safetensors, data.safetensors) for tare-replay.

usage: pack.py CORPUS FX OWN PT2E CORPUS_PT2E [ARCHIVE..]

Writes an archive beside this script for every network below: its cases without training, and without
dynamic quantization but where that is what the network shows. And one for every group of cases by
name, of torch's own tests, of the corpus, and of models that were made for what both lack (custom
LSTM modules, the decomposed form on the fly, static float16). Of exported programs: the small cases of
torchao's own tests, and networks, some of which bring their archive (model.pt2), to be replayed from
that, too. Only the ARCHIVEs named, if any are. Equal cases give equal bytes.
"""
import json
import pathlib
import sys
import zipfile
import zlib

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
PT2E = {
    "pt2e": ["test_*"],
    "pt2e_networks": ["conv1d_*", "functional_*", "norm_mix_*", "tutorial_*", "add_mul_chain_*_0"],
    "from_pt2": ["linear_bn_*", "shared_module_*", "lstm_*"],
}
MOST_BYTES = 11000  # of a packed case of torchao's tests
FILES = ["case.json", "model.safetensors", "data.safetensors"]


def is_wanted(folder, network):
    case = json.loads((folder / "case.json").read_text())
    return not case["is_qat"] and ("_dynamic_" not in folder.name or network in DYNAMIC)


def packed_size(folder):
    return sum(len(zlib.compress((folder / name).read_bytes(), 9)) for name in FILES)


def pack(network, folders, files=FILES):
    target = pathlib.Path(__file__).parent / (network + ".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for folder in folders:
            for name in files:
                # A fixed date, so that the archive depends on the content only.
                member = zipfile.ZipInfo(f"{folder.name}/{name}", (1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, (folder / name).read_bytes())
    print(f"{network}: {len(folders)} cases, {target.stat().st_size} bytes")


def pack_fx(corpus, fx, own, is_named):
    for network in filter(is_named, NETWORKS):
        pack(network, [f for f in sorted(corpus.glob(network + "_*")) if is_wanted(f, network)])
    for group in filter(is_named, GROUPS):
        pack(group, sorted(f for pattern in GROUPS[group] for root in (corpus, fx, own)
                           for f in root.glob(pattern)))


def pack_pt2e(tests, corpus, is_named):
    for group in filter(is_named, PT2E):
        root = tests if group == "pt2e" else corpus
        folders = sorted(f for pattern in PT2E[group] for f in root.glob(pattern))
        if group == "pt2e":
            folders = [f for f in folders if packed_size(f) <= MOST_BYTES]
        pack(group, folders, FILES + ["model.pt2"] if group == "from_pt2" else FILES)


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    corpus, fx, own, pt2e, corpus_pt2e = (pathlib.Path(folder) for folder in sys.argv[1:6])
    wanted = sys.argv[6:]

    def is_named(archive):
        return not wanted or archive in wanted
    pack_fx(corpus, fx, own, is_named)
    pack_pt2e(pt2e, corpus_pt2e, is_named)


main()
