// SPDX-License-Identifier: Apache-2.0
// What a vendor does with the result: quantize a network for an accelerator that is described in
// JSON, walk the reference-quantized graph, and emit the accelerator's command list. The toy here
// multiplies u8 by s8 and rescales by shifts, so its backend config demands powers of two.
// docs/backend-config.md walks through it.
//
// ctest: data/digits examples/toy_accelerator.json
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tare/tare.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

// 1. From a float model to a reference-quantized one: integers are written as quantize, dequantize
// and float operators in between, which says all that a code generator must know and nothing about
// any kernel.
static tare_status calibrate(tare_model *prepared, const char *samples, tare_error *err) {
    tare_data *data = NULL;
    TRY(tare_data_open(samples, prepared, NULL, &data, err));
    const tare_status status = tare_calibrate_data(prepared, data, NULL, NULL, err);
    tare_data_close(data);
    return status;
}

static tare_status quantize(const tare_model *model, const tare_backend_config *backend,
                            const char *samples, tare_model **out, tare_error *err) {
    tare_qconfig_mapping *mapping = NULL;
    tare_model *prepared = NULL;
    TRY(tare_qconfig_mapping_default("fbgemm", false, -1, &mapping, err));
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = mapping};
    tare_status status = tare_prepare_fx(model, &options, &prepared, err);
    if (status == TARE_OK) status = calibrate(prepared, samples, err);
    if (status == TARE_OK)
        status = tare_convert_to_reference_fx(prepared, &(tare_convert_options){.backend = backend},
                                              out, err);
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
    return status;
}

// 2. Reading the reference form. `quantize_per_tensor(x, scale, zero_point, dtype)` makes an
// integer tensor; `dequantize` only marks that its user reads integers.
typedef struct walk {
    const tare_model *model;
    size_t command_count, host_count;
} walk;

static bool calls(const tare_node *n, tare_node_kind kind, const char *target) {
    return n != NULL && tare_node_get_kind(n) == kind && strcmp(tare_node_target(n), target) == 0;
}

static bool is_quantize(const tare_node *n) {
    return calls(n, TARE_NODE_CALL_FUNCTION, "torch.quantize_per_tensor");
}

static bool is_dequantize(const tare_node *n) {
    return calls(n, TARE_NODE_CALL_METHOD, "dequantize");
}

static const tare_node *node_argument(const tare_node *n, size_t i) {
    tare_argument a;
    return tare_node_argument(n, i, &a) && a.kind == TARE_ARGUMENT_NODE ? a.node : NULL;
}

// The exponent of a scale, which the backend config made a power of two.
static int exponent_of(double scale) {
    int exponent = 0;
    (void)frexp(scale, &exponent);
    return exponent - 1;
}

static int scale_exponent(const walk *w, const tare_node *quantize) {
    const tare_tensor *scale = tare_node_tensor(w->model, node_argument(quantize, 1));
    return exponent_of((double)*(const float *)tare_tensor_data(scale));
}

static long zero_point(const walk *w, const tare_node *quantize) {
    const tare_tensor *zero = tare_node_tensor(w->model, node_argument(quantize, 2));
    return (long)*(const int64_t *)tare_tensor_data(zero);
}

// Do all tensors come in as integers, and does the one result leave as integers?
static const tare_node *integer_result(const tare_node *n) {
    const size_t inputs = tare_node_input_count(n);
    for (size_t i = 0; i < inputs; i++)
        if (!is_dequantize(tare_node_input(n, i))) return NULL;
    const tare_node *user = tare_node_user(n, 0);
    return inputs > 0 && tare_node_user_count(n) == 1 && is_quantize(user) ? user : NULL;
}

// 3. The accelerator's instructions, one row for each operator that its config lists.
typedef struct instruction {
    const char *operator_name; // a module class or a function
    const char *mnemonic;
    bool has_weight;
} instruction;

static const instruction instructions[] = {
    {"torch.ao.nn.quantized.reference.Conv2d", "CONV", true},
    {"torch.ao.nn.intrinsic.ConvReLU2d", "CONV_RELU", true},
    {"torch.nn.MaxPool2d", "MAXPOOL", false},
    {"torch.nn.ReLU", "ADD_RELU", false}, // behind an add: see add_of
};

static const char *operator_of(const walk *w, const tare_node *n) {
    const tare_module *m = tare_node_module(w->model, n);
    return m != NULL ? tare_module_class_name(m) : tare_node_target(n);
}

static const instruction *find_instruction(const walk *w, const tare_node *n) {
    const char *name = operator_of(w, n);
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strcmp(instructions[i].operator_name, name) == 0) return &instructions[i];
    return NULL;
}

// The addition in front of a relu, which the accelerator does in the same pass.
static const tare_node *add_of(const tare_node *relu) {
    const tare_node *add = tare_node_input(relu, 0);
    return calls(add, TARE_NODE_CALL_FUNCTION, "operator.add") && tare_node_user_count(add) == 1
               ? add
               : NULL;
}

static void emit_inputs(const tare_node *n) {
    for (size_t i = 0; i < tare_node_input_count(n); i++)
        printf("%s %%%s", i > 0 ? "," : "",
               tare_node_name(tare_node_input(tare_node_input(n, i), 0)));
}

// A reference module keeps the float weight and its parameters: the shift of an output channel is
// input scale x weight scale / output scale.
static void emit_weight(const walk *w, const tare_node *n, const tare_node *result) {
    const tare_module *m = tare_node_module(w->model, n);
    const tare_module *inner = tare_module_child(m, "0");
    const tare_module *weighted = inner != NULL ? inner : m;
    const tare_tensor *weight = tare_module_tensor(weighted, "weight");
    const tare_tensor *scales = tare_module_tensor(weighted, "weight_scale");
    const float *scale = tare_tensor_data(scales);
    const int64_t channels = tare_tensor_element_count(scales);
    const int input = scale_exponent(w, tare_node_input(tare_node_input(n, 0), 0));
    const int output = scale_exponent(w, result);
    int least = 0, most = 0;
    for (int64_t c = 0; c < channels; c++) {
        const int shift = output - input - exponent_of((double)scale[c]);
        least = c == 0 || shift < least ? shift : least;
        most = c == 0 || shift > most ? shift : most;
    }
    printf(", @%s", tare_node_target(n));
    for (int d = 0; d < tare_tensor_ndim(weight); d++)
        printf("%s%lld", d == 0 ? " " : "x", (long long)tare_tensor_shape(weight)[d]);
    printf(" shift %d..%d", least, most);
}

static void emit_integer(walk *w, const instruction *with, const tare_node *n,
                         const tare_node *result) {
    const tare_node *add = add_of(n);
    printf("%-9s %%%s <-", with->mnemonic, tare_node_name(result));
    emit_inputs(add != NULL ? add : n);
    if (with->has_weight) emit_weight(w, n, result);
    printf(" ; u8, scale 2^%d, zero %ld\n", scale_exponent(w, result), zero_point(w, result));
    w->command_count++;
}

static void emit_host(walk *w, const tare_node *n) {
    printf("%-9s %%%s <-", "HOST", tare_node_name(n));
    for (size_t i = 0; i < tare_node_input_count(n); i++)
        printf("%s %%%s", i > 0 ? "," : "", tare_node_name(tare_node_input(n, i)));
    printf(" ; %s, float\n", operator_of(w, n));
    w->host_count++;
}

// Is n an operator, or the first half of one, whose command its last node emits?
static bool waits_for_relu(const tare_node *n) {
    const tare_node *user = tare_node_user(n, 0);
    return calls(n, TARE_NODE_CALL_FUNCTION, "operator.add") && tare_node_user_count(n) == 1 &&
           add_of(user) == n && is_quantize(tare_node_user(user, 0));
}

static void emit_call(walk *w, const tare_node *n) {
    if (waits_for_relu(n)) return;
    const tare_node *add = add_of(n);
    const tare_node *result = add != NULL ? tare_node_user(n, 0) : integer_result(n);
    const instruction *with = find_instruction(w, n);
    if (result != NULL && with != NULL)
        emit_integer(w, with, n, result);
    else
        emit_host(w, n);
}

static void emit(walk *w, const tare_node *n) {
    const tare_node_kind kind = tare_node_get_kind(n);
    if (kind == TARE_NODE_PLACEHOLDER) {
        printf("%-9s %%%s ; float\n", "INPUT", tare_node_name(n));
    } else if (kind == TARE_NODE_OUTPUT) {
        printf("%-9s %%%s\n", "OUTPUT", tare_node_name(tare_node_input(n, 0)));
    } else if (is_quantize(n)) {
        const tare_node *source = node_argument(n, 0);
        // An operator's result was told with the operator; what is left enters from the host.
        if (tare_node_get_kind(source) != TARE_NODE_PLACEHOLDER) return;
        printf("%-9s %%%s <- %%%s ; u8, scale 2^%d, zero %ld\n", "QUANTIZE", tare_node_name(n),
               tare_node_name(source), scale_exponent(w, n), zero_point(w, n));
        w->command_count++;
    } else if (is_dequantize(n) || kind == TARE_NODE_GET_ATTR) {
        return;
    } else {
        emit_call(w, n);
    }
}

static tare_status hand_off(const char *folder, const char *config, tare_error *err) {
    char path[512], samples[512];
    (void)snprintf(path, sizeof path, "%s/digits.safetensors", folder);
    (void)snprintf(samples, sizeof samples, "%s/train.npz", folder);
    tare_backend_config *backend = NULL;
    tare_model *model = NULL, *reference = NULL;
    tare_status status = tare_backend_config_read(config, &backend, err);
    if (status == TARE_OK) status = tare_model_read(path, NULL, &model, err);
    if (status == TARE_OK) status = quantize(model, backend, samples, &reference, err);
    if (status == TARE_OK) {
        walk w = {.model = reference};
        printf("; for %s\n", tare_backend_config_name(backend));
        const tare_node *n = tare_model_first_node(reference);
        for (; n != NULL; n = tare_node_next(n)) emit(&w, n);
        printf("; %zu commands, %zu operators on the host\n", w.command_count, w.host_count);
    }
    tare_model_destroy(reference);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
    return status;
}

int main(int argc, char **argv) {
    tare_error *err = tare_error_create();
    const tare_status status = hand_off(argc > 1 ? argv[1] : "data/digits",
                                        argc > 2 ? argv[2] : "examples/toy_accelerator.json", err);
    if (status != TARE_OK)
        fprintf(stderr, "handoff: %s: %s (%s)\n", tare_error_where(err), tare_error_message(err),
                tare_error_hint(err));
    tare_error_destroy(err);
    return status == TARE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
