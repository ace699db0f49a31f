// SPDX-License-Identifier: Apache-2.0
// Operators of the core ATen set that give more than their module spelling does, or less: one name
// for all convolutions, normalizations and pooling with what only a backward pass reads. Such
// further results are None.
#include <string.h>

#include "ops/compose.h"
#include "ops/families/families.h"

static value param(const op_call *call, size_t i) {
    return i < call->param_count && call->param[i] != NULL ? *call->param[i] : tare__none();
}

// (result, None, ..)
static value with_nones(composer *c, value first, size_t count) {
    value tuple = tare__compose_list(c, count);
    if (c->status != TARE_OK) return tuple;
    tuple.kind = VALUE_TUPLE;
    tuple.as.items[0] = first;
    for (size_t i = 1; i < count; i++) tuple.as.items[i] = tare__none();
    return tuple;
}

#define COMPOSED(name)                                                                             \
    static tare_status name##_shape(op_call *call) {                                               \
        return tare__composed_shape(call, name);                                                   \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__composed_forward(call, name);                                                 \
    }

// --- convolution: the dimensions follow from the weight ---

enum { STRIDE = 3, PADDING, DILATION, TRANSPOSED, OUTPUT_PADDING, GROUPS };

// The call becomes one of the row that it is.
static tare_status convolution_shape(op_call *call) {
    const tare_tensor *w;
    bool transposed;
    TARE_TRY(tare__call_need_tensor(call, 1, &w));
    TARE_TRY(tare__call_bool(call, TRANSPOSED, false, &transposed));
    const op_info *row = tare__op_by_id(transposed ? "conv_transpose" : "conv", w->ndim - 2);
    if (w->ndim < 3 || row == NULL)
        return tare__call_fail(call, "weight has %d dimensions, expected 3 to 5", w->ndim);
    const value *given[OP_MAX_PARAMS];
    memcpy(given, call->param, sizeof given);
    memset(call->param + PADDING + 1, 0, sizeof given - (PADDING + 1) * sizeof *given);
    call->op = row;
    call->param_count = tare__op_param_count(row);
    call->param[tare__op_param_index(row, "dilation")] = given[DILATION];
    call->param[tare__op_param_index(row, "groups")] = given[GROUPS];
    if (transposed)
        call->param[tare__op_param_index(row, "output_padding")] = given[OUTPUT_PADDING];
    return row->shape(call);
}

// Reached where tensors are converted to float first: the shape rule has chosen the row by then.
static tare_status convolution_reference(op_call *call) {
    return call->op->reference(call);
}

// --- normalizations: input, weight, bias, running_mean, running_var, [training,] momentum, eps ---

static value batch_norm_of(composer *c, value mean, value var, value training, value eps) {
    const op_call *call = c->call;
    const value made = COMPOSE(c, "batch_norm", param(call, 0), mean, var, param(call, 1),
                               param(call, 2), training, tare__float(0), eps);
    return with_nones(c, made, 3);
}

static value batch_norm_no_training(composer *c) {
    return batch_norm_of(c, param(c->call, 3), param(c->call, 4), tare__bool(false),
                         param(c->call, 6));
}
COMPOSED(batch_norm_no_training)

// In training: the functional form returns the statistics of the batch beside; what becomes of the
// running ones is said by the operator that writes them.
static value batch_norm_no_stats(composer *c) {
    return batch_norm_of(c, tare__none(), tare__none(), tare__bool(true), param(c->call, 5));
}
COMPOSED(batch_norm_no_stats)

static value native_layer_norm(composer *c) {
    const op_call *call = c->call;
    return with_nones(c,
                      COMPOSE(c, "layer_norm", param(call, 0), param(call, 1), param(call, 2),
                              param(call, 3), param(call, 4)),
                      3);
}
COMPOSED(native_layer_norm)

// --- max_pool2d_with_indices ---

// Integers of up to 24 bits go through float unchanged.
static value max_pool2d_with_indices(composer *c) {
    const op_call *call = c->call;
    const value x = param(call, 0);
    const bool is_integer = x.kind == VALUE_TENSOR && x.as.tensor->q == NULL &&
                            !tare__dtype(x.as.tensor->dtype)->is_float;
    const value from = is_integer ? COMPOSE(c, "to", x, tare__dtype_value(TARE_FLOAT32)) : x;
    value made = COMPOSE(c, "max_pool2d", from, param(call, 1), param(call, 2),
                         call->param[3] != NULL ? param(call, 3) : tare__int(0),
                         call->param[4] != NULL ? param(call, 4) : tare__int(1),
                         call->param[5] != NULL ? param(call, 5) : tare__bool(false));
    if (is_integer) made = COMPOSE(c, "to", made, tare__dtype_value(x.as.tensor->dtype));
    return with_nones(c, made, 2);
}
COMPOSED(max_pool2d_with_indices)

// --- adaptive_max_pool ---

#define ADAPTIVE_MAX_POOL(n)                                                                       \
    static value adaptive_max_pool##n##d_with_indices(composer *c) {                               \
        return with_nones(                                                                         \
            c, COMPOSE(c, "adaptive_max_pool" #n "d", param(c->call, 0), param(c->call, 1)), 2);   \
    }                                                                                              \
    COMPOSED(adaptive_max_pool##n##d_with_indices)
ADAPTIVE_MAX_POOL(1)
ADAPTIVE_MAX_POOL(2)
ADAPTIVE_MAX_POOL(3)

// --- rows ---

#define ATEN "torch.ops.aten."
#define ADAPTIVE_ROW(name)                                                                         \
    {                                                                                              \
        .id = #name "_with_indices", .functions = ATEN #name ".default",                           \
        .params = "input/self|output_size", .shape = name##_with_indices_shape,                    \
        .reference = name##_with_indices_reference                                                 \
    }

// clang-format off
static const op_info rows[] = {
    {.id = "convolution", .functions = ATEN "convolution.default|torch.convolution",
     .params = "input|weight|bias|stride|padding|dilation|transposed|output_padding|groups", .traits = OP_WEIGHTED,
     .shape = convolution_shape, .reference = convolution_reference},
    {.id = "batch_norm_no_training", .functions = ATEN "_native_batch_norm_legit_no_training.default",
     .params = "input|weight|bias|running_mean|running_var|momentum|eps",
     .shape = batch_norm_no_training_shape, .reference = batch_norm_no_training_reference},
    {.id = "batch_norm_no_stats", .functions = ATEN "_native_batch_norm_legit.no_stats",
     .params = "input|weight|bias|training|momentum|eps",
     .shape = batch_norm_no_stats_shape, .reference = batch_norm_no_stats_reference},
    {.id = "native_layer_norm", .functions = ATEN "native_layer_norm.default",
     .params = "input|normalized_shape|weight|bias|eps", .shape = native_layer_norm_shape, .reference = native_layer_norm_reference},
    {.id = "max_pool2d_with_indices", .functions = ATEN "max_pool2d_with_indices.default",
     .params = "input/self|kernel_size|stride|padding|dilation|ceil_mode",
     .shape = max_pool2d_with_indices_shape, .reference = max_pool2d_with_indices_reference},
    ADAPTIVE_ROW(adaptive_max_pool1d),
    ADAPTIVE_ROW(adaptive_max_pool2d),
    ADAPTIVE_ROW(adaptive_max_pool3d),
};
// clang-format on

const op_table tare__core_aten_ops = OP_TABLE(rows);
