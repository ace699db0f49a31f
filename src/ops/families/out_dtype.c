// SPDX-License-Identifier: Apache-2.0
// torch.ops.higher_order.out_dtype(op, dtype, *arguments): computes the operator in the common
// dtype of its tensors and `dtype`, and converts the result by truncation. Integer layers are
// computed with integers.
#include <string.h>

#include "core/math/float_to_int.h"
#include "ops/compose.h"
#include "ops/composed.h"
#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/rules.h"

// --- the operator ---

typedef struct allowed_op {
    const char *name, *id; // id: of the row
    const char *integer;   // of the row for integers; NULL: the same
} allowed_op;

#define ATEN "torch.ops.aten."
// Source: ALLOWABLE_OPS of PyTorch 2.15.
static const allowed_op allowed[] = {
    {ATEN "linear.default", "linear", "integer_linear"},
    {ATEN "mm.default", "matmul", "integer_linear"},
    {ATEN "conv2d.default", "conv2d", "integer_convolution"},
    {ATEN "convolution.default", "convolution", "integer_convolution"},
    {ATEN "mul.Tensor", "mul", NULL},
    {ATEN "mul.Scalar", "mul", NULL},
    {ATEN "div.Tensor", "div", NULL},
    {ATEN "div.Scalar", "div", NULL},
};

static const allowed_op *find_op(composer *c) {
    const value *given = c->call->arg_count > 0 ? &c->call->args[0] : NULL;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (given != NULL && given->kind == VALUE_TYPE &&
            strcmp(allowed[i].name, given->as.text) == 0)
            return &allowed[i];
    (void)tare__compose_fail(c, "out_dtype only allows linear, mm, conv2d, convolution, mul and "
                                "div of torch.ops.aten");
    return NULL;
}

// --- dtypes ---

static tare_dtype promote(tare_dtype found, const tare_tensor *t) {
    const tare_tensor other = {.ndim = 1, .dtype = found};
    const operand side[2] = {{.t = &other}, {.t = t}};
    return tare__common_dtype(side);
}

// Tensors with dimensions decide before those without; numbers matter only if they are floats.
static tare_dtype promoted_dtype(const op_call *call, tare_dtype wanted) {
    tare_dtype found = wanted;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 2; i < call->arg_count; i++) {
            const value *v = &call->args[i];
            if (v->kind == VALUE_TENSOR && (v->as.tensor->ndim > 0) == (pass == 0))
                found = promote(found, v->as.tensor);
            if (v->kind == VALUE_FLOAT && pass == 1 && !tare__dtype(found)->is_float)
                found = TARE_FLOAT32;
        }
    return found;
}

static value converted(composer *c, value v, tare_dtype dtype) {
    return v.kind == VALUE_TENSOR ? COMPOSE(c, "to", v, tare__dtype_value(dtype)) : v;
}

// --- the call ---

enum { MOST_ARGUMENTS = 9, TRANSPOSED = 6, GROUPS = 8 };

// Reduces the arguments of convolution to those of conv2d; transposed convolutions are refused.
// Returns their number.
static size_t plain_convolution(composer *c, value *args, size_t count) {
    if (count <= GROUPS) return count;
    const bool is_transposed = args[TRANSPOSED].kind != VALUE_BOOL || args[TRANSPOSED].as.boolean;
    if (is_transposed) (void)tare__compose_fail(c, "out_dtype has no transposed convolution");
    args[TRANSPOSED] = args[GROUPS];
    return TRANSPOSED + 1;
}

static value out_dtype(composer *c) {
    const op_call *call = c->call;
    const allowed_op *op = find_op(c);
    if (op == NULL) return tare__none();
    size_t count = call->arg_count > 2 ? call->arg_count - 2 : 0;
    if (call->arg_count < 2 || call->args[1].kind != VALUE_DTYPE || count > MOST_ARGUMENTS) {
        (void)tare__compose_fail(c, "out_dtype takes an operator, a dtype and its arguments");
        return tare__none();
    }
    const tare_dtype wanted = call->args[1].as.dtype, work = promoted_dtype(call, wanted);
    const bool in_integers = op->integer != NULL && !tare__dtype(work)->is_float;
    value args[MOST_ARGUMENTS];
    // Integer layers read whole numbers from float tensors, which represent 16-bit integers
    // exactly.
    for (size_t i = 0; i < count; i++)
        args[i] = converted(c, call->args[i + 2], in_integers ? TARE_FLOAT32 : work);
    if (in_integers && strcmp(op->id, "convolution") == 0)
        count = plain_convolution(c, args, count);
    if (in_integers && strcmp(op->id, "matmul") == 0 && count == 2)
        args[1] = COMPOSE(c, "transpose", args[1], tare__int(0), tare__int(1));
    const value made = tare__compose_op(c, in_integers ? op->integer : op->id, args, count);
    return converted(c, made, wanted);
}

static tare_status out_dtype_shape(op_call *call) {
    return tare__composed_shape(call, out_dtype);
}

static tare_status out_dtype_reference(op_call *call) {
    return tare__composed_forward(call, out_dtype);
}

// --- integer layers: from float tensors of whole numbers to int32 ---

static tare_status integer_linear_shape(op_call *call) {
    linear_call l;
    TARE_TRY(tare__linear_read(call, &l));
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, l.x->shape, sizeof shape);
    shape[l.x->ndim - 1] = l.w->shape[0];
    return tare__call_result(call, TARE_INT32, l.x->ndim, shape, NULL);
}

static int64_t first_of(const tare_tensor *bias, int64_t channel) {
    return bias != NULL ? tare__cut_int64((double)tare__f32(bias)[channel]) : 0;
}

static tare_status integer_linear(op_call *call) {
    linear_call l;
    TARE_TRY(tare__linear_read(call, &l));
    tare_tensor *y = tare__call_out(call);
    const int64_t inner = l.w->shape[1], columns = l.w->shape[0];
    for (int64_t i = 0; i < y->count; i++) {
        const float *x = tare__f32(l.x) + i / columns * inner;
        const float *w = tare__f32(l.w) + i % columns * inner;
        int64_t sum = first_of(l.bias, i % columns);
        for (int64_t k = 0; k < inner; k++) sum += (int64_t)x[k] * (int64_t)w[k];
        tare__tensor_set_int(y, i, sum);
    }
    return TARE_OK;
}

static tare_status read_plain(op_call *call, conv_call *out) {
    TARE_TRY(tare__conv_read(call, out));
    return out->is_plain ? TARE_OK : tare__call_fail(call, "an input without a batch dimension");
}

static tare_status integer_convolution_shape(op_call *call) {
    conv_call c;
    TARE_TRY(read_plain(call, &c));
    int64_t shape[TARE_MAX_DIMS] = {c.conv.batch, c.conv.out_channels};
    const int dims = c.w->ndim - 2;
    for (int d = 0; d < dims; d++) shape[2 + d] = c.conv.out[3 - dims + d];
    return tare__call_result(call, TARE_INT32, c.w->ndim, shape, NULL);
}

// The sum for the output element at index `at`.
static int64_t window_sum(const conv_call *c, const float *x, const float *w, const int64_t at[3]) {
    const float_conv *s = &c->conv;
    int64_t sum = 0;
    for (int64_t i = 0; i < s->kernel[0] * s->kernel[1] * s->kernel[2]; i++) {
        const int64_t tap[] = {i / s->kernel[2] / s->kernel[1], i / s->kernel[2] % s->kernel[1],
                               i % s->kernel[2]};
        int64_t from = 0;
        bool is_inside = true;
        for (int d = 0; d < 3; d++) {
            const int64_t p = at[d] * s->stride[d] - s->pad[d] + tap[d] * s->dilation[d];
            is_inside = is_inside && p >= 0 && p < s->in[d];
            from = from * s->in[d] + p;
        }
        if (is_inside) sum += (int64_t)x[from] * (int64_t)w[i];
    }
    return sum;
}

static tare_status integer_convolution(op_call *call) {
    conv_call c;
    TARE_TRY(read_plain(call, &c));
    const float_conv *s = &c.conv;
    const int64_t in = s->in[0] * s->in[1] * s->in[2], out = s->out[0] * s->out[1] * s->out[2];
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    const int64_t in_group = s->in_channels / s->groups, out_group = s->out_channels / s->groups;
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t channel = i / out % s->out_channels, batch = i / out / s->out_channels;
        const int64_t position = i % out, first = channel / out_group * in_group;
        const int64_t at[] = {position / s->out[2] / s->out[1], position / s->out[2] % s->out[1],
                              position % s->out[2]};
        int64_t sum = first_of(c.bias, channel);
        for (int64_t k = 0; k < in_group; k++)
            sum += window_sum(&c, tare__f32(c.x) + (batch * s->in_channels + first + k) * in,
                              tare__f32(c.w) + (channel * in_group + k) * taps, at);
        tare__tensor_set_int(y, i, sum);
    }
    return TARE_OK;
}

// clang-format off
static const op_info rows[] = {
    {.id = "out_dtype", .functions = "torch.ops.higher_order.out_dtype", .params = "op|output_dtype|*args",
     .shape = out_dtype_shape, .reference = out_dtype_reference},
    {.id = "integer_linear", .params = "input|weight|bias", .traits = OP_WEIGHTED,
     .shape = integer_linear_shape, .reference = integer_linear},
    {.id = "integer_convolution", .params = "input|weight|bias|stride|padding|dilation|groups", .traits = OP_WEIGHTED,
     .shape = integer_convolution_shape, .reference = integer_convolution},
};
// clang-format on

const op_table tare__out_dtype_ops = OP_TABLE(rows);
