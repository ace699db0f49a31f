// SPDX-License-Identifier: Apache-2.0
// The networks of tests/data/networks.zip, made by tests/data/pack_networks.py, and the least
// signal-to-noise ratio of their integer outputs in dB, over many samples: some 1.5 dB below what
// was measured, with oneDNN and without.
#ifndef GOLDEN_NETWORKS_H
#define GOLDEN_NETWORKS_H

#include <jansson.h>

#include "replay/case.h"
#include "tare/tare.h"

// clang-format off
#define NETWORKS(X)                                                                                \
    X("resnet18", 24) X("resnet50", 25) X("mobilenet_v2", 17) X("mobilenet_v3_small", 15)          \
    X("mobilenet_v3_large", 11) X("efficientnet_b0", 11) X("vgg11", 27) X("densenet121", 19)       \
    X("inception_v3", 13) X("googlenet", 14) X("shufflenet_v2_x1_0", 19) X("squeezenet1_1", 20)    \
    X("mnasnet1_0", 16) X("regnet_y_400mf", 23) X("convnext_tiny", 22) X("vit_b_16", 25)           \
    X("swin_t", 19) X("deeplabv3_resnet50", 22) X("fcn_resnet50", 24)                              \
    X("lraspp_mobilenet_v3_large", 25) X("lstm_tagger", 60) X("gru_classifier", 33)                \
    X("bert", 20) X("minilm", 22) X("gpt", 26) X("llama", 24) X("seq2seq", 27) X("layers", 31)     \
    X("spellings", 34)
// clang-format on

enum { MOST_TENSORS = 4 };

typedef struct tensors {
    const tare_tensor *items[MOST_TENSORS];
    size_t count;
} tensors;

/// One of tests/data/networks.zip; the caller gives it to case_release.
void read_network(const char *name, recorded_case *out);
/// A file of tests/data/network_programs.zip.
void read_program_file(const char *name, const char *file, case_bytes *out);
/// Such a file as an exported program. A "model.pt2" has zeros in place of the values that the
/// recorded network has, and takes them from there. Needs the folder of support/temp.h.
tare_model *read_program(const recorded_case *recorded, const char *file);
/// Prepared by a built-in quantizer. config: members of its settings' config object, as JSON.
tare_model *prepare_program(const tare_model *model, const char *quantizer, const char *config,
                            bool is_qat);

/// PREFIX.0, PREFIX.1, ..: lent; there must be one.
tensors tensors_of(const safetensors *data, const char *prefix);
/// In a session; the caller releases the results.
tensors run_tensors(const tare_model *model, const tensors *inputs);
void release_tensors(tensors *t);
/// 20 log10(|x| / |x - y|) over all outputs.
double sqnr_of(const tensors *expected, const tensors *found);
/// Of `found` against the float model, over 32 random samples where the inputs are floats, else
/// over these inputs.
double sqnr_over_many(const tare_model *exact, const tare_model *found, const tensors *inputs);
/// Within 1e-4 of each output's greatest value.
void check_near(const char *name, const tensors *expected, const tensors *found);
/// Images and frames: standard normal, as the batch norms have seen. Words: the recorded ones.
void calibrate_network(tare_model *prepared, const tensors *inputs);

/// The preview of a prepared model tells the float islands and conversions of the reference form
/// that convert makes of it.
void check_preview(const tare_model *prepared, const tare_model *reference);

/// "3-5 8": these of the lines, of case.json. The caller frees it with tare__free.
char *text_of_lines(const json_t *lines, const char *numbers);

#endif
