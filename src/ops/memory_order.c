// SPDX-License-Identifier: Apache-2.0
// torch's rules for the memory formats of results.
#include "ops/memory_order.h"

#include <string.h>

#include "ops/op.h"
#include "ops/quantized/engine_rules.h"

enum { PER_PLANE = 2 }; // dimensions before those of a plane: batch and channels

// Memory formats of quantized results where torch's kernels do not keep the input's: convolutions
// and batch norms return channels last, others contiguous tensors.
static const struct {
    const char *prefix; // of the operator's name
    bool is_channels_last;
} makers[] = {
#define QUANTIZED_RESULT(prefix, is_channels_last) {prefix, is_channels_last},
#include "ops/rows/rows.def"
};

// The name of the operator: "conv2d" for a function, "conv" for a module; "" if there is none.
static const char *name_of(const op_call *call) {
    static const char quantized[] = "quantized.";
    if (call->module != NULL) return call->module->class->op != NULL ? call->module->class->op : "";
    if (call->op == NULL) return "";
    const bool has_prefix = strncmp(call->op->id, quantized, strlen(quantized)) == 0;
    return call->op->id + (has_prefix ? strlen(quantized) : 0);
}

// True if a tensor, or all tensors of a list (cat), are channels last.
static bool is_channels_last(const value *v, int ndim, bool *found) {
    if (v->kind == VALUE_TENSOR) {
        *found = true;
        return v->as.tensor->is_channels_last && v->as.tensor->ndim == ndim;
    }
    bool all = true;
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++)
            all = is_channels_last(&v->as.items[i], ndim, found) && all;
    return all;
}

static bool inherits(const op_call *call, int ndim) {
    bool found = false;
    for (size_t i = 0; i < call->arg_count; i++) {
        const bool is_last = is_channels_last(&call->args[i], ndim, &found);
        if (found) return is_last;
    }
    return false;
}

static bool lies_channels_last(const op_call *call, const tare_tensor *made) {
    const char *name = name_of(call);
    for (size_t i = 0; made->q != NULL && i < sizeof makers / sizeof *makers; i++)
        if (strncmp(name, makers[i].prefix, strlen(makers[i].prefix)) == 0)
            return makers[i].is_channels_last;
    const bool moves = call->op != NULL && (call->op->traits & OP_MOVES_DATA);
    if (moves && strcmp(name, "cat") != 0) return false;
    return inherits(call, made->ndim);
}

void tare__note_memory_order(op_call *call) {
    if (call->result.kind != VALUE_TENSOR || tare__call_is_done(call)) return;
    tare_tensor *made = call->result.as.tensor;
    const bool is_last = made->ndim > PER_PLANE && lies_channels_last(call, made);
    // The field is only written if it changes: an observer returns its input, which other threads
    // may read.
    if (made->is_channels_last != is_last) made->is_channels_last = is_last;
}

// True if torch treats x as contiguous. If both formats have the same order, pooling treats it as
// channels last, and a mean as contiguous.
static bool is_plain_order(const tare_tensor *x, bool is_pool) {
    int64_t plane = 1;
    for (int d = PER_PLANE; d < x->ndim; d++) plane *= x->shape[d];
    const bool is_either = x->ndim > PER_PLANE && (x->shape[1] == 1 || plane == 1);
    return is_either ? !is_pool : !x->is_channels_last;
}

bool tare__rounds_with_zero_point(const op_call *call, const tare_tensor *x) {
    const bool is_mean = strcmp(call->op->id, "mean") == 0;
    const bool is_pool = strstr(call->op->id, "avg_pool") != NULL;
    const bool is_planar = x->ndim == PER_PLANE + 2 || (is_pool && x->ndim < PER_PLANE + 2);
    // QNNPACK averages 2-d images by a rule of its own.
    if (is_planar && tare__rule_adds_in_fixed_point(call->linear_rule)) return false;
    return (is_mean || is_pool) && is_plain_order(x, is_pool);
}
