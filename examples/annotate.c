// SPDX-License-Identifier: Apache-2.0
// How to write a quantizer: one function for each way to annotate, after PyTorch's tutorial on
// writing a Quantizer for PyTorch 2 export quantization. An annotation says how the tensors at a
// node are to be quantized: those that it reads, edge by edge, and the one that it gives. Prepare
// puts observers where it says so, convert makes quantize and dequantize of them. docs/pt2e.md
// walks through it.
//
// ctest: examples/data/annotate.pt2 examples/data/annotate_input.npy
#include <stdio.h>
#include <string.h>

#include "tare/tare.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

// 1. How a tensor is to be quantized: a spec. This one by an observer of its own, which is named
// with what it is made with.
typedef struct specs {
    tare_qspec *activation, *weight;
} specs;

static tare_status plain_spec(const char *observer_class, int64_t least, tare_qscheme scheme,
                              tare_qspec **out, tare_error *err) {
    tare_observer_spec *observer = tare_observer_spec_create(observer_class);
    tare_observer_spec_set_double(observer, "eps", 0x1p-12);
    const tare_qspec_fields fields = {.struct_size = sizeof fields,
                                      .dtype = TARE_INT8,
                                      .observer = observer,
                                      .has_quant_min = true,
                                      .quant_min = least,
                                      .has_quant_max = true,
                                      .quant_max = 127,
                                      .qscheme = scheme};
    const tare_status status = tare_qspec_create(&fields, out, err);
    tare_observer_spec_release(observer);
    return status;
}

static tare_status make_specs(specs *out, tare_error *err) {
    TRY(plain_spec("HistogramObserver", -128, TARE_PER_TENSOR_AFFINE, &out->activation, err));
    return plain_spec("MinMaxObserver", -127, TARE_PER_TENSOR_SYMMETRIC, &out->weight, err);
}

// The node that stands as an argument.
static const tare_node *argument(const tare_node *node, size_t index) {
    tare_argument a = {.struct_size = sizeof a};
    return tare_node_argument(node, index, &a) && a.kind == TARE_ARGUMENT_NODE ? a.node : NULL;
}

// 2. A common operator: both inputs and the output get an observer each.
static tare_status annotate_add(const specs *s, tare_model *model, const tare_node *add,
                                tare_error *err) {
    TRY(tare_model_annotate_input(model, add, argument(add, 0), s->activation, err));
    TRY(tare_model_annotate_input(model, add, argument(add, 1), s->activation, err));
    return tare_model_annotate_output(model, add, s->activation, err);
}

// 3. Shared parameters: the first input gets an observer, the other inputs and the output have the
// same one, so that none needs to be rescaled. It fits an addition as well as a concatenation.
static tare_status annotate_shared(const specs *s, tare_model *model, const tare_node *node,
                                   tare_error *err) {
    const tare_node *first = tare_node_input(node, 0);
    tare_qspec *shared = NULL;
    TRY(tare_model_annotate_input(model, node, first, s->activation, err));
    TRY(tare_qspec_create_shared((tare_edge){.from = first, .node = node}, &shared, err));
    tare_status status = tare_model_annotate_output(model, node, shared, err);
    for (size_t i = 1; i < tare_node_input_count(node) && status == TARE_OK; i++)
        status = tare_model_annotate_input(model, node, tare_node_input(node, i), shared, err);
    tare_qspec_release(shared);
    return status;
}

// 4. Fixed parameters: a sigmoid gives values between 0 and 1, so that 1/256 and 0 are known before
// any data.
static tare_status annotate_sigmoid(tare_model *model, const tare_node *sigmoid, tare_error *err) {
    const tare_qspec_fields fields = {.struct_size = sizeof fields,
                                      .dtype = TARE_UINT8,
                                      .has_quant_min = true,
                                      .quant_min = 0,
                                      .has_quant_max = true,
                                      .quant_max = 255,
                                      .qscheme = TARE_PER_TENSOR_AFFINE,
                                      .scale = 1.0 / 256.0,
                                      .zero_point = 0};
    tare_qspec *fixed = NULL;
    TRY(tare_qspec_create_fixed(&fields, &fixed, err));
    tare_status status =
        tare_model_annotate_input(model, sigmoid, argument(sigmoid, 0), fixed, err);
    if (status == TARE_OK) status = tare_model_annotate_output(model, sigmoid, fixed, err);
    tare_qspec_release(fixed);
    return status;
}

// 5. Derived parameters: a bias is added to sums of products, so its scale is the product of the
// two scales, and no data has to be watched for it. (tare_derive_bias_rule() is this very rule.)
static tare_status derive_bias(void *user, const tare_qparams_view *sources, size_t count,
                               tare_qparams_sink sink, void *sink_user, tare_error *err) {
    const float scale = (float)sources[0].scale[0] * (float)sources[1].scale[0];
    const double wide = scale, zero_point = 0;
    (void)user, (void)count; // as many as derived_from has: activation and weight
    return sink(sink_user, 1, &wide, &zero_point, err);
}

static const tare_derive_rule bias_rule = {
    .struct_size = sizeof bias_rule, .name = "derive_bias", .derive = derive_bias};

static tare_status annotate_conv_inputs(const specs *s, tare_model *model, const tare_node *conv,
                                        tare_error *err) {
    const tare_node *input = argument(conv, 0), *weight = argument(conv, 1);
    const tare_edge derived_from[] = {{.from = input, .node = conv},
                                      {.from = weight, .node = conv}};
    const tare_qspec_fields fields = {.struct_size = sizeof fields,
                                      .dtype = TARE_INT32,
                                      .has_quant_min = true,
                                      .quant_min = INT32_MIN,
                                      .has_quant_max = true,
                                      .quant_max = INT32_MAX,
                                      .qscheme = TARE_PER_TENSOR_SYMMETRIC};
    tare_qspec *bias = NULL;
    TRY(tare_model_annotate_input(model, conv, input, s->activation, err));
    TRY(tare_model_annotate_input(model, conv, weight, s->weight, err));
    TRY(tare_qspec_create_derived(&fields, derived_from, 2, &bias_rule, &bias, err));
    const tare_status status = tare_model_annotate_input(model, conv, argument(conv, 2), bias, err);
    tare_qspec_release(bias);
    return status;
}

static tare_status annotate_convolution(const specs *s, tare_model *model, const tare_node *conv,
                                        tare_error *err) {
    TRY(annotate_conv_inputs(s, model, conv, err));
    return tare_model_annotate_output(model, conv, s->activation, err);
}

// 6. A pattern, written in torch's functions, as the network was: what an exporter makes of them is
// found, and would be if it made something else tomorrow. Between convolution and relu there is no
// observer, so that a backend can compute both at once. The names say what a match shall tell.
static const char *const conv_relu_pattern[] = {
    "def forward(self, x, weight, bias):\n"
    "    conv = torch.nn.functional.conv2d(x, weight, bias)\n"
    "    relu = torch.nn.functional.relu(conv)\n"
    "    return (relu, {'input': x, 'conv': conv, 'output': relu})\n",
};

static tare_status annotate_conv_relu(const specs *s, tare_model *model,
                                      const tare_subgraph_matches *matches, size_t index,
                                      tare_error *err) {
    const tare_node *conv = tare_subgraph_match_node(matches, index, "conv");
    const tare_node *relu = tare_subgraph_match_node(matches, index, "output");
    TRY(annotate_conv_inputs(s, model, conv, err));
    TRY(tare_model_mark_annotated(model, conv, true, err));
    TRY(tare_model_annotate_rule(model, conv, "conv_relu_pattern", err)); // for tare explain
    TRY(tare_model_annotate_output(model, relu, s->activation, err));
    TRY(tare_model_annotate_rule(model, relu, "conv_relu_pattern", err));
    return tare_model_mark_annotated(model, relu, true, err);
}

static tare_status annotate_conv_relus(const specs *s, tare_model *model, tare_error *err) {
    // Strides and paddings may be any.
    const tare_pattern_options options = {.struct_size = sizeof options, .ignore_literals = true};
    tare_subgraph_pattern *pattern = NULL;
    tare_subgraph_matches *matches = NULL;
    TRY(tare_subgraph_pattern_create(conv_relu_pattern, 1, &options, &pattern, err));
    tare_status status = tare_subgraph_find(pattern, model, &matches, err);
    for (size_t i = 0; status == TARE_OK && i < tare_subgraph_matches_count(matches); i++)
        status = annotate_conv_relu(s, model, matches, i, err);
    tare_subgraph_matches_destroy(matches);
    tare_subgraph_pattern_destroy(pattern);
    return status;
}

// 7. The quantizer: patterns first, then a walk over what is left.
static bool calls(const tare_node *node, const char *name) {
    static const char prefix[] = "torch.ops.aten.";
    const char *target = tare_node_target(node);
    return tare_node_get_kind(node) == TARE_NODE_CALL_FUNCTION &&
           strncmp(target, prefix, strlen(prefix)) == 0 &&
           strcmp(target + strlen(prefix), name) == 0;
}

static tare_status annotate_node(const specs *s, tare_model *model, const tare_node *node,
                                 tare_error *err) {
    if (tare_annotation_is_marked(tare_model_annotation(model, node))) return TARE_OK;
    if (calls(node, "conv2d.default")) return annotate_convolution(s, model, node, err);
    if (calls(node, "cat.default")) return annotate_shared(s, model, node, err);
    if (calls(node, "sigmoid.default")) return annotate_sigmoid(model, node, err);
    if (!calls(node, "add.Tensor")) return TARE_OK;
    // One of each kind, to show both.
    const bool is_first = strcmp(tare_node_name(node), "add") == 0;
    return is_first ? annotate_add(s, model, node, err) : annotate_shared(s, model, node, err);
}

static tare_status annotate(void *self, tare_model *model, tare_error *err) {
    TRY(annotate_conv_relus(self, model, err));
    for (const tare_node *n = tare_model_first_node(model); n != NULL; n = tare_node_next(n))
        TRY(annotate_node(self, model, n, err));
    return TARE_OK;
}

// 8. The flow: prepare, show it data, convert.
static tare_status calibrate(tare_model *prepared, const char *samples, tare_error *err) {
    tare_data *data = NULL;
    TRY(tare_data_open(samples, prepared, NULL, &data, err));
    const tare_status status = tare_calibrate_data(prepared, data, NULL, NULL, err);
    tare_data_close(data);
    return status;
}

static bool print_to_stdout(void *user, const char *chars, size_t length) {
    (void)user;
    return fwrite(chars, 1, length, stdout) == length;
}

static tare_status quantize(const tare_model *model, const tare_quantizer *quantizer,
                            const char *samples, tare_error *err) {
    tare_model *prepared = NULL, *converted = NULL;
    TRY(tare_prepare_pt2e(model, quantizer, &prepared, err));
    tare_status status = calibrate(prepared, samples, err);
    if (status == TARE_OK) status = tare_convert_pt2e(prepared, NULL, &converted, err);
    if (status == TARE_OK)
        status = tare_model_print(converted, TARE_PRINT_MODEL, print_to_stdout, NULL, err);
    tare_model_destroy(converted);
    tare_model_destroy(prepared);
    return status;
}

static tare_status run(const char *path, const char *samples, specs *s, tare_error *err) {
    const tare_quantizer_class tutorial = {
        .struct_size = sizeof tutorial, .name = "TutorialQuantizer", .annotate = annotate};
    tare_quantizer *quantizer = NULL;
    tare_model *model = NULL;
    TRY(make_specs(s, err));
    TRY(tare_quantizer_create(&tutorial, s, &quantizer, err));
    tare_status status = tare_model_read(path, NULL, &model, err);
    if (status == TARE_OK) status = quantize(model, quantizer, samples, err);
    tare_model_destroy(model);
    tare_quantizer_destroy(quantizer);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s PROGRAM.pt2 SAMPLES\n", argv[0]);
        return 2;
    }
    specs s = {NULL, NULL};
    tare_error *err = tare_error_create();
    const tare_status status = run(argv[1], argv[2], &s, err);
    if (status != TARE_OK)
        fprintf(stderr, "%s: %s: %s\n", argv[0], tare_error_where(err), tare_error_message(err));
    tare_qspec_release(s.activation);
    tare_qspec_release(s.weight);
    tare_error_destroy(err);
    return status == TARE_OK ? 0 : 1;
}
