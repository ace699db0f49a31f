// SPDX-License-Identifier: Apache-2.0
// What a vendor does with the result: quantize a network for an accelerator that is described in
// JSON, walk the reference-quantized graph, and emit the accelerator's command list. The toy here
// multiplies u8 by s8 and rescales by shifts, so its backend config demands powers of two.
// docs/backend-config.md walks through it.
//
//     handoff MODEL DATA BACKEND     quantizes a float model first
//     handoff MODEL                  walks a model as it is, whatever it is
//
// ctest: data/digits/digits.safetensors data/digits/train.npz examples/toy_accelerator.json
#include <inttypes.h>
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
// integer tensor; `dequantize` only marks that its user reads integers. Graphs may hold anything
// else, too: all that is no instruction of the accelerator is left to the host.
typedef struct walk {
    const tare_model *model;
    const tare_shapes *shapes;
    size_t command_count, host_count;
} walk;

static const tare_node *first_input(const tare_node *n) {
    return n != NULL ? tare_node_input(n, 0) : NULL;
}

static bool is_dequantize(const walk *w, const tare_node *n) {
    tare_node_qparams q;
    return n != NULL && tare_node_calls(n, "dequantize") && tare_node_get_qparams(w->model, n, &q);
}

static bool is_quantize(const walk *w, const tare_node *n) {
    tare_node_qparams q;
    return n != NULL && !tare_node_calls(n, "dequantize") && tare_node_get_qparams(w->model, n, &q);
}

// The quantize that alone reads n; NULL: n's result is needed as float.
static const tare_node *quantized_result(const walk *w, const tare_node *n) {
    const tare_node *user = n != NULL ? tare_node_only_user(n) : NULL;
    return is_quantize(w, user) ? user : NULL;
}

static bool reads_integers(const walk *w, const tare_node *n, size_t count) {
    if (tare_node_input_count(n) != count) return false;
    for (size_t i = 0; i < count; i++)
        if (!is_dequantize(w, tare_node_input(n, i))) return false;
    return true;
}

static const char *operator_of(const walk *w, const tare_node *n) {
    const tare_module *m = tare_node_module(w->model, n);
    return m != NULL ? tare_module_class_name(m) : tare_node_target(n);
}

// 3. The accelerator's instructions, one row for each operator that its config lists.
typedef struct instruction {
    const char *operator_name; // a module class or a function
    const char *mnemonic;
    size_t inputs; // tensors
    bool has_weight;
    const char *then; // the module class of what it does in the same pass; NULL: nothing
} instruction;

static const instruction instructions[] = {
    {"torch.ao.nn.quantized.reference.Conv2d", "CONV", 1, true, NULL},
    {"torch.ao.nn.intrinsic.ConvReLU2d", "CONV_RELU", 1, true, NULL},
    {"torch.nn.MaxPool2d", "MAXPOOL", 1, false, NULL},
    {"operator.add", "ADD_RELU", 2, false, "torch.nn.ReLU"},
};

// What n begins: an instruction, the node whose result it gives, and the quantize behind that.
typedef struct command {
    const instruction *with;
    const tare_node *last, *result;
} command;

static bool begin_command(const walk *w, const tare_node *n, const instruction *with,
                          command *out) {
    *out = (command){.with = with, .last = n};
    if (strcmp(with->operator_name, operator_of(w, n)) != 0 || !reads_integers(w, n, with->inputs))
        return false;
    if (with->then != NULL) {
        out->last = tare_node_only_user(n);
        if (out->last == NULL || strcmp(operator_of(w, out->last), with->then) != 0) return false;
    }
    out->result = quantized_result(w, out->last);
    return out->result != NULL;
}

static bool find_command(const walk *w, const tare_node *n, command *out) {
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (begin_command(w, n, &instructions[i], out)) return true;
    return false;
}

// Does a command that begins before n give n's result?
static bool is_within_command(const walk *w, const tare_node *n) {
    command c;
    return find_command(w, n, &c) ||
           (first_input(n) != NULL && find_command(w, first_input(n), &c) && c.last == n);
}

// 4. Writing them.
static void print_scale(double scale) {
    int exponent = 0;
    if (frexp(scale, &exponent) == 0.5)
        printf("scale 2^%d", exponent - 1);
    else
        printf("scale %.9g", scale);
}

static void print_shape(const walk *w, const tare_node *n) {
    tare_tensor_info info;
    if (w->shapes == NULL || !tare_shapes_node(w->shapes, n, 0, &info)) return;
    for (int d = 0; d < info.ndim; d++) {
        printf("%s", d == 0 ? " [" : "x");
        if (info.shape[d] < 0)
            printf("N");
        else
            printf("%" PRId64, info.shape[d]);
    }
    printf(info.ndim > 0 ? "]" : "");
}

static void print_integers(const walk *w, const tare_node *quantize) {
    tare_node_qparams q;
    if (!tare_node_get_qparams(w->model, quantize, &q)) return;
    printf(" ;");
    print_shape(w, quantize);
    printf(" %s, ", tare_dtype_name(q.dtype));
    print_scale(q.scale);
    printf(", zero %" PRId64 "\n", q.zero_point);
}

// The integers of the weight, and how far the sum of each output channel is shifted.
static tare_status print_weight(const walk *w, const tare_node *n, tare_error *err) {
    const tare_integer_layer *layer = NULL;
    TRY(tare_integer_layer_create(w->model, n, &layer, err));
    int least = 0, most = 0;
    for (int64_t c = 0; c < layer->channel_count; c++) {
        const int shift = 1 - layer->shift[c]; // of a power of two: 2^30 * 2^(shift - 31)
        least = c == 0 || shift < least ? shift : least;
        most = c == 0 || shift > most ? shift : most;
    }
    int64_t pads[2] = {0}, strides[2] = {1, 1};
    if (layer->module != NULL) {
        (void)tare_module_config_ints(layer->module, "padding", 2, pads);
        (void)tare_module_config_ints(layer->module, "stride", 2, strides);
    }
    printf(", @%s", tare_node_target(n));
    for (int d = 0; d < tare_tensor_ndim(layer->weight); d++)
        printf("%s%" PRId64, d == 0 ? " " : "x", tare_tensor_shape(layer->weight)[d]);
    printf(" stride %" PRId64 " pad %" PRId64 "%s shift %d..%d", strides[0], pads[0],
           layer->bias != NULL ? " bias i32" : "", least, most);
    tare_integer_layer_destroy(layer);
    return TARE_OK;
}

static tare_status emit_command(walk *w, const tare_node *n, const command *c, tare_error *err) {
    printf("%-9s %%%s <-", c->with->mnemonic, tare_node_name(c->result));
    for (size_t i = 0; i < c->with->inputs; i++)
        printf("%s %%%s", i > 0 ? "," : "", tare_node_name(first_input(tare_node_input(n, i))));
    if (c->with->has_weight) TRY(print_weight(w, n, err));
    print_integers(w, c->result);
    w->command_count++;
    return TARE_OK;
}

static void emit_inputs(const char *mnemonic, const tare_node *n) {
    printf("%-9s %%%s <-", mnemonic, tare_node_name(n));
    for (size_t i = 0; i < tare_node_input_count(n); i++)
        printf("%s %%%s", i > 0 ? "," : "", tare_node_name(tare_node_input(n, i)));
}

static void emit_host(walk *w, const tare_node *n) {
    emit_inputs("HOST", n);
    printf(" ;");
    print_shape(w, n);
    printf(" %s, float\n", operator_of(w, n));
    w->host_count++;
}

// A quantize of what the host computed; the others were told with their commands.
static void emit_quantize(walk *w, const tare_node *n) {
    const tare_node *source = first_input(n);
    if (source != NULL && is_within_command(w, source)) return;
    printf("%-9s %%%s <- %%%s", "QUANTIZE", tare_node_name(n),
           source != NULL ? tare_node_name(source) : "?");
    print_integers(w, n);
    w->command_count++;
}

static tare_status emit_call(walk *w, const tare_node *n, tare_error *err) {
    command c;
    if (find_command(w, n, &c)) return emit_command(w, n, &c, err);
    if (!is_within_command(w, n)) emit_host(w, n);
    return TARE_OK;
}

static tare_status emit(walk *w, const tare_node *n, tare_error *err) {
    switch (tare_node_get_kind(n)) {
    case TARE_NODE_PLACEHOLDER:
        printf("%-9s %%%s ;", "INPUT", tare_node_name(n));
        print_shape(w, n);
        printf(" float\n");
        return TARE_OK;
    case TARE_NODE_OUTPUT:
        emit_inputs("OUTPUT", n);
        printf("\n");
        return TARE_OK;
    case TARE_NODE_GET_ATTR:
        return TARE_OK;
    case TARE_NODE_CALL_MODULE:
    case TARE_NODE_CALL_FUNCTION:
    case TARE_NODE_CALL_METHOD:
        break;
    }
    if (is_dequantize(w, n)) return TARE_OK;
    if (!is_quantize(w, n)) return emit_call(w, n, err);
    emit_quantize(w, n);
    return TARE_OK;
}

static tare_status emit_all(const tare_model *model, tare_error *err) {
    tare_shapes *shapes = NULL;
    TRY(tare_shapes_infer(model, NULL, 0, &shapes, err));
    walk w = {.model = model, .shapes = shapes};
    tare_status status = TARE_OK;
    const tare_node *n = tare_model_first_node(model);
    for (; n != NULL && status == TARE_OK; n = tare_node_next(n)) status = emit(&w, n, err);
    printf("; %zu commands, %zu operators on the host\n", w.command_count, w.host_count);
    tare_shapes_destroy(shapes);
    return status;
}

static tare_status hand_off(char **argv, bool quantizes, tare_error *err) {
    tare_backend_config *backend = NULL;
    tare_model *model = NULL, *reference = NULL;
    tare_status status = tare_model_read(argv[1], NULL, &model, err);
    if (status == TARE_OK && quantizes) status = tare_backend_config_read(argv[3], &backend, err);
    if (status == TARE_OK && quantizes) {
        printf("; for %s\n", tare_backend_config_name(backend));
        status = quantize(model, backend, argv[2], &reference, err);
    }
    if (status == TARE_OK) status = emit_all(quantizes ? reference : model, err);
    tare_model_destroy(reference);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: handoff MODEL [DATA BACKEND]\n");
        return EXIT_FAILURE;
    }
    tare_error *err = tare_error_create();
    const tare_status status = hand_off(argv, argc == 4, err);
    if (status != TARE_OK)
        fprintf(stderr, "handoff: %s: %s (%s)\n", tare_error_where(err), tare_error_message(err),
                tare_error_hint(err));
    tare_error_destroy(err);
    return status == TARE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
