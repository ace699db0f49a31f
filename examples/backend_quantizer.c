// SPDX-License-Identifier: Apache-2.0
// A backend's quantizer on a whole network: ResNet-18 as torch.export.save wrote it is annotated,
// calibrated, converted, printed as torch prints it, lowered to integers and run.
//
// The backend is the one of PyTorch's tutorial on writing a Quantizer: it computes convolutions,
// linear layers and additions of int8, each with a relu if there is one, adds biases of int32 to
// exact sums, and passes pooled and flattened tensors on as they are. examples/annotate.c shows the
// ways to annotate one by one; here they work together.
//
// ctest: tests/data/small_resnet18/model.pt2 tests/data/small_resnet18/input.npz
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tare/tare.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

// --- what the backend supports ---

// The settings of a quantizer, and what it makes of them for one model.
typedef struct backend {
    tare_quantization_config config;
    tare_qspec *activation, *output, *weight; // lent by the config
} backend;

static bool is_one_of(const tare_node *node, const char *const *targets) {
    for (; *targets != NULL; targets++)
        if (strcmp(tare_node_target(node), *targets) == 0) return true;
    return false;
}

#define ATEN(name) "torch.ops.aten." name
static const char *const layers[] = {ATEN("conv2d.default"), ATEN("linear.default"), NULL};
static const char *const adds[] = {ATEN("add.Tensor"), ATEN("add_.Tensor"), NULL};
static const char *const relus[] = {ATEN("relu.default"), ATEN("relu_.default"), NULL};
static const char *const keepers[] = {ATEN("max_pool2d.default"),
                                      ATEN("adaptive_avg_pool2d.default"),
                                      ATEN("flatten.using_ints"), NULL};

// Where the result of a node is complete: behind its relu, if that is the one reader.
static const tare_node *end_of(const tare_node *node) {
    const tare_node *user = tare_node_user_count(node) == 1 ? tare_node_user(node, 0) : NULL;
    return user != NULL && is_one_of(user, relus) ? user : node;
}

static tare_status annotate_output(const backend *b, tare_model *model, const tare_node *node,
                                   const char *rule, tare_error *err) {
    const tare_node *end = end_of(node);
    TRY(tare_model_annotate_output(model, end, b->output, err));
    TRY(tare_model_mark_annotated(model, end, true, err));
    TRY(tare_model_mark_annotated(model, node, true, err));
    TRY(tare_model_annotate_rule(model, end, rule, err));
    return tare_model_annotate_rule(model, node, rule, err);
}

static const tare_node *argument(const tare_node *node, size_t index) {
    tare_argument a = {.struct_size = sizeof a};
    return tare_node_argument(node, index, &a) && a.kind == TARE_ARGUMENT_NODE ? a.node : NULL;
}

static tare_status annotate_layer(const backend *b, tare_model *model, const tare_node *layer,
                                  tare_error *err) {
    const tare_node *input = argument(layer, 0), *weight = argument(layer, 1);
    const tare_edge derived_from[] = {{input, layer}, {weight, layer}};
    const tare_qspec_fields fields = {.struct_size = sizeof fields,
                                      .dtype = TARE_INT32,
                                      .has_quant_min = true,
                                      .quant_min = INT32_MIN,
                                      .has_quant_max = true,
                                      .quant_max = INT32_MAX,
                                      .qscheme = TARE_PER_TENSOR_SYMMETRIC};
    tare_qspec *bias = NULL;
    TRY(tare_model_annotate_input(model, layer, input, b->activation, err));
    TRY(tare_model_annotate_input(model, layer, weight, b->weight, err));
    TRY(tare_qspec_create_derived(&fields, derived_from, 2, tare_derive_bias_rule(), &bias, err));
    const tare_status status =
        argument(layer, 2) != NULL
            ? tare_model_annotate_input(model, layer, argument(layer, 2), bias, err)
            : TARE_OK;
    tare_qspec_release(bias);
    return status == TARE_OK ? annotate_output(b, model, layer, "layer", err) : status;
}

static tare_status annotate_add(const backend *b, tare_model *model, const tare_node *add,
                                tare_error *err) {
    TRY(tare_model_annotate_input(model, add, argument(add, 0), b->activation, err));
    TRY(tare_model_annotate_input(model, add, argument(add, 1), b->activation, err));
    return annotate_output(b, model, add, "add", err);
}

// Pooled values lie in the range of those that came in.
static tare_status annotate_keeper(const backend *b, tare_model *model, const tare_node *node,
                                   tare_error *err) {
    const tare_node *input = argument(node, 0);
    tare_qspec *shared = NULL;
    TRY(tare_model_annotate_input(model, node, input, b->activation, err));
    TRY(tare_qspec_create_shared((tare_edge){input, node}, &shared, err));
    const tare_status status = tare_model_annotate_output(model, node, shared, err);
    tare_qspec_release(shared);
    TRY(status);
    TRY(tare_model_annotate_rule(model, node, "keeper", err));
    return tare_model_mark_annotated(model, node, true, err);
}

static tare_status annotate(void *self, tare_model *model, tare_error *err) {
    for (const tare_node *n = tare_model_first_node(model); n != NULL; n = tare_node_next(n)) {
        if (is_one_of(n, layers)) TRY(annotate_layer(self, model, n, err));
        if (is_one_of(n, adds)) TRY(annotate_add(self, model, n, err));
        if (is_one_of(n, keepers)) TRY(annotate_keeper(self, model, n, err));
    }
    return TARE_OK;
}

// Symmetric int8 weights, int8 activations watched by histograms: as XNNPACK has them.
static tare_status make_backend(backend *b, tare_quantizer **out, tare_error *err) {
    const tare_quantizer_class row = {
        .struct_size = sizeof row, .name = "BackendQuantizer", .annotate = annotate};
    TRY(tare_quantization_config_default("XNNPACKQuantizer", NULL, &b->config, err));
    TRY(tare_input_act_qspec(&b->config, &b->activation, err));
    TRY(tare_output_act_qspec(&b->config, &b->output, err));
    TRY(tare_weight_qspec(&b->config, &b->weight, err));
    return tare_quantizer_create(&row, b, out, err);
}

// --- the flow ---

static bool print_to_stdout(void *user, const char *chars, size_t length) {
    (void)user;
    return fwrite(chars, 1, length, stdout) == length;
}

static tare_status calibrate(tare_model *prepared, const char *samples, tare_error *err) {
    tare_data *data = NULL;
    TRY(tare_data_open(samples, prepared, NULL, &data, err));
    const tare_status status = tare_calibrate_data(prepared, data, NULL, NULL, err);
    tare_data_close(data);
    return status;
}

static tare_status quantize(const tare_model *model, const tare_quantizer *quantizer,
                            const char *samples, tare_model **lowered, tare_error *err) {
    tare_model *prepared = NULL, *converted = NULL;
    TRY(tare_prepare_pt2e(model, quantizer, &prepared, err));
    tare_status status = calibrate(prepared, samples, err);
    if (status == TARE_OK) status = tare_convert_pt2e(prepared, NULL, &converted, err);
    tare_model_destroy(prepared);
    if (status == TARE_OK)
        status = tare_model_print(converted, TARE_PRINT_MODEL, print_to_stdout, NULL, err);
    if (status == TARE_OK) status = tare_lower_pt2e(converted, NULL, lowered, err);
    tare_model_destroy(converted);
    return status;
}

// --- the result, in integers ---

static tare_status print_coverage(const tare_model *lowered, tare_error *err) {
    tare_coverage c = {.struct_size = sizeof c};
    TRY(tare_model_coverage(lowered, &c, err));
    printf("%llu of %llu operators in integers\n", (unsigned long long)c.quantized_op_count,
           (unsigned long long)c.op_count);
    return TARE_OK;
}

// The first output for one batch; the caller releases it.
static tare_status run_model(const tare_model *model, const tare_batch *batch, tare_tensor **out,
                             tare_error *err) {
    tare_session *session = NULL;
    size_t count = 0;
    TRY(tare_session_create(model, NULL, &session, err));
    const tare_status status =
        tare_session_run(session, batch->inputs, batch->input_count, out, 1, &count, err);
    tare_session_destroy(session);
    return status;
}

static void print_outputs(const tare_tensor *x, const tare_tensor *y) {
    const float *a = tare_tensor_data(x), *b = tare_tensor_data(y);
    const int64_t count = tare_tensor_element_count(x);
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < count; i++) {
        printf("%s%.6g", i > 0 ? " " : "", (double)b[i]);
        signal += (double)a[i] * a[i];
        noise += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    printf("\n%.1f dB from the float network\n", 10 * log10(signal / noise));
}

static tare_status compare(const tare_model *model, const tare_model *lowered, const char *samples,
                           tare_error *err) {
    tare_data *data = NULL;
    tare_batch batch = {0};
    tare_tensor *x = NULL, *y = NULL;
    bool done = false;
    TRY(tare_data_open(samples, model, NULL, &data, err));
    tare_status status = tare_data_next(data, &batch, &done, err);
    if (status == TARE_OK) status = run_model(model, &batch, &x, err);
    if (status == TARE_OK) status = run_model(lowered, &batch, &y, err);
    if (status == TARE_OK) print_outputs(x, y);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_data_close(data);
    return status;
}

static tare_status run(const char *path, const char *samples, backend *b, tare_error *err) {
    tare_quantizer *quantizer = NULL;
    tare_model *model = NULL, *lowered = NULL;
    TRY(make_backend(b, &quantizer, err));
    tare_status status = tare_model_read(path, NULL, &model, err);
    if (status == TARE_OK) status = quantize(model, quantizer, samples, &lowered, err);
    if (status == TARE_OK) status = print_coverage(lowered, err);
    if (status == TARE_OK) status = compare(model, lowered, samples, err);
    tare_model_destroy(lowered);
    tare_model_destroy(model);
    tare_quantizer_destroy(quantizer);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s PROGRAM.pt2 SAMPLES\n", argv[0]);
        return 2;
    }
    backend b = {.activation = NULL};
    tare_error *err = tare_error_create();
    const tare_status status = run(argv[1], argv[2], &b, err);
    if (status != TARE_OK)
        fprintf(stderr, "%s: %s: %s\n", argv[0], tare_error_where(err), tare_error_message(err));
    tare_quantization_config_release(&b.config);
    tare_error_destroy(err);
    return status == TARE_OK ? 0 : 1;
}
