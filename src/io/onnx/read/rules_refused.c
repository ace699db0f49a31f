// SPDX-License-Identifier: Apache-2.0
// ONNX operators that are known and not imported, with the reason. (Others are unknown.)
#include "io/onnx/read/rules_common.h"

static tare_status control_flow(onnx_call *c) {
    return tare__onnx_fail(c, "control flow is not supported: a model must run the same operators "
                              "on every input");
}
static tare_status quantized(onnx_call *c) {
    return tare__onnx_fail(c, "integer operators are not read: expected QuantizeLinear and "
                              "DequantizeLinear around float ones");
}
static tare_status sequence(onnx_call *c) {
    return tare__onnx_fail(c, "sequences and optional values are not supported");
}
static tare_status text(onnx_call *c) {
    return tare__onnx_fail(c, "text is not supported");
}
static tare_status random_numbers(onnx_call *c) {
    return tare__onnx_fail(c, "random numbers are not supported: a model must give the same output "
                              "for the same input");
}
static tare_status data_dependent(onnx_call *c) {
    return tare__onnx_fail(c, "a result whose size depends on the data is not supported");
}
static tare_status training(onnx_call *c) {
    return tare__onnx_fail(c, "losses are for training, which is not supported");
}
static tare_status signal(onnx_call *c) {
    return tare__onnx_fail(c,
                           "signal processing is not supported: prepare the input outside of the "
                           "model");
}
static tare_status missing(onnx_call *c) {
    return tare__onnx_fail(c, "this operator is not supported");
}

static const onnx_rule rows[] = {
    {"If", .translate = control_flow},
    {"Loop", .translate = control_flow},
    {"Scan", .translate = control_flow},
    {"ConvInteger", .translate = quantized},
    {"MatMulInteger", .translate = quantized},
    {"QLinearConv", .translate = quantized},
    {"QLinearMatMul", .translate = quantized},
    {"ConcatFromSequence", .translate = sequence},
    {"Optional", .translate = sequence},
    {"OptionalGetElement", .translate = sequence},
    {"OptionalHasElement", .translate = sequence},
    {"SequenceAt", .translate = sequence},
    {"SequenceConstruct", .translate = sequence},
    {"SequenceEmpty", .translate = sequence},
    {"SequenceErase", .translate = sequence},
    {"SequenceInsert", .translate = sequence},
    {"SequenceLength", .translate = sequence},
    {"SequenceMap", .translate = sequence},
    {"SplitToSequence", .translate = sequence},
    {"RegexFullMatch", .translate = text},
    {"StringConcat", .translate = text},
    {"StringNormalizer", .translate = text},
    {"StringSplit", .translate = text},
    {"TfIdfVectorizer", .translate = text},
    {"Bernoulli", .translate = random_numbers},
    {"Multinomial", .translate = random_numbers},
    {"RandomNormal", .translate = random_numbers},
    {"RandomNormalLike", .translate = random_numbers},
    {"RandomUniform", .translate = random_numbers},
    {"RandomUniformLike", .translate = random_numbers},
    {"NonMaxSuppression", .translate = data_dependent},
    {"Unique", .translate = data_dependent},
    {"NegativeLogLikelihoodLoss", .translate = training},
    {"SoftmaxCrossEntropyLoss", .translate = training},
    {"BlackmanWindow", .translate = signal},
    {"DFT", .translate = signal},
    {"HammingWindow", .translate = signal},
    {"HannWindow", .translate = signal},
    {"ImageDecoder", .translate = signal},
    {"MelWeightMatrix", .translate = signal},
    {"STFT", .translate = signal},
    {"AffineGrid", .translate = missing},
    {"Col2Im", .translate = missing},
    {"DeformConv", .translate = missing},
    {"Det", .translate = missing},
    {"GlobalLpPool", .translate = missing},
    {"GridSample", .translate = missing},
    {"LpPool", .translate = missing},
    {"MaxRoiPool", .translate = missing},
    {"MaxUnpool", .translate = missing},
    {"ReverseSequence", .translate = missing},
    {"RoiAlign", .translate = missing},
};

const onnx_rule_table tare__onnx_refused_rules = ONNX_RULES(rows);
