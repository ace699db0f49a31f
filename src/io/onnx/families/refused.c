// SPDX-License-Identifier: Apache-2.0
// ONNX operators that are known but not imported, each with the reason.
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"

// --- reading ---

static tare_status translate_quantized(onnx_call *c) {
    return tare__onnx_fail(c, "integer operators are not read: expected QuantizeLinear and "
                              "DequantizeLinear around float ones");
}
static tare_status translate_sequence(onnx_call *c) {
    return tare__onnx_fail(c, "optional values and functions of sequences are not supported");
}
static tare_status translate_text(onnx_call *c) {
    return tare__onnx_fail(c, "text is not supported");
}
static tare_status translate_random_numbers(onnx_call *c) {
    return tare__onnx_fail(c, "random numbers are not supported: a model must give the same output "
                              "for the same input");
}
static tare_status translate_data_dependent(onnx_call *c) {
    return tare__onnx_fail(c, "a result whose size depends on the data is not supported");
}
static tare_status translate_training(onnx_call *c) {
    return tare__onnx_fail(c, "losses are for training, which is not supported");
}
static tare_status translate_signal(onnx_call *c) {
    return tare__onnx_fail(c,
                           "signal processing is not supported: prepare the input outside of the "
                           "model");
}
static tare_status translate_missing(onnx_call *c) {
    return tare__onnx_fail(c, "this operator is not supported");
}

static const onnx_rule read_rows[] = {
    {"ConvInteger", .translate = translate_quantized},
    {"MatMulInteger", .translate = translate_quantized},
    {"QLinearConv", .translate = translate_quantized},
    {"QLinearMatMul", .translate = translate_quantized},
    {"Optional", .translate = translate_sequence},
    {"OptionalGetElement", .translate = translate_sequence},
    {"OptionalHasElement", .translate = translate_sequence},
    {"SequenceMap", .translate = translate_sequence},
    {"RegexFullMatch", .translate = translate_text},
    {"StringConcat", .translate = translate_text},
    {"StringNormalizer", .translate = translate_text},
    {"StringSplit", .translate = translate_text},
    {"TfIdfVectorizer", .translate = translate_text},
    {"Bernoulli", .translate = translate_random_numbers},
    {"Multinomial", .translate = translate_random_numbers},
    {"RandomNormal", .translate = translate_random_numbers},
    {"RandomNormalLike", .translate = translate_random_numbers},
    {"RandomUniform", .translate = translate_random_numbers},
    {"RandomUniformLike", .translate = translate_random_numbers},
    {"NonMaxSuppression", .translate = translate_data_dependent},
    {"Unique", .translate = translate_data_dependent},
    {"NegativeLogLikelihoodLoss", .translate = translate_training},
    {"SoftmaxCrossEntropyLoss", .translate = translate_training},
    {"BlackmanWindow", .translate = translate_signal},
    {"DFT", .translate = translate_signal},
    {"HammingWindow", .translate = translate_signal},
    {"HannWindow", .translate = translate_signal},
    {"ImageDecoder", .translate = translate_signal},
    {"MelWeightMatrix", .translate = translate_signal},
    {"STFT", .translate = translate_signal},
    {"AffineGrid", .translate = translate_missing},
    {"Col2Im", .translate = translate_missing},
    {"DeformConv", .translate = translate_missing},
    {"Det", .translate = translate_missing},
    {"GlobalLpPool", .translate = translate_missing},
    {"LpPool", .translate = translate_missing},
    {"MaxRoiPool", .translate = translate_missing},
    {"MaxUnpool", .translate = translate_missing},
    {"ReverseSequence", .translate = translate_missing},
    {"RoiAlign", .translate = translate_missing},
};

const onnx_family tare__onnx_refused_family = {.read = ONNX_RULES(read_rows)};
