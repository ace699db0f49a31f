// SPDX-License-Identifier: Apache-2.0
// The networks of tests/data/networks.zip, made by tests/data/pack_networks.py, and the least
// signal-to-noise ratio of their integer outputs in dB: some 4 dB below what was measured.
#ifndef GOLDEN_NETWORKS_H
#define GOLDEN_NETWORKS_H

// clang-format off
#define NETWORKS(X)                                                                                \
    X("resnet18", 18) X("resnet50", 20) X("mobilenet_v2", 15) X("mobilenet_v3_small", 14)          \
    X("mobilenet_v3_large", 11) X("efficientnet_b0", 11) X("vgg11", 29) X("densenet121", 15)       \
    X("inception_v3", 13) X("googlenet", 17) X("shufflenet_v2_x1_0", 25) X("squeezenet1_1", 18)    \
    X("mnasnet1_0", 16) X("regnet_y_400mf", 23) X("convnext_tiny", 20) X("vit_b_16", 24)           \
    X("swin_t", 13) X("deeplabv3_resnet50", 19) X("fcn_resnet50", 20)                              \
    X("lraspp_mobilenet_v3_large", 24) X("lstm_tagger", 57) X("gru_classifier", 36)                \
    X("bert", 17) X("minilm", 19) X("gpt", 23) X("llama", 21) X("seq2seq", 24) X("layers", 28)     \
    X("spellings", 40)
// clang-format on

#endif
