// SPDX-License-Identifier: Apache-2.0
// The integers of a reference model's layer: what a lowered layer would contain, for backends that
// have their own lowering.
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/function_call.h"
#include "flow/layer_bias.h"
#include "ops/classes/reference.h"
#include "ops/op.h"
#include "tare/handoff.h"

typedef struct layer_integers {
    tare_integer_layer shown; // first, because the caller has its address
    const tare_model *model;
    biased_layer found;
    tare_tensor *weight, *bias, *sums; // references owned
    arena memory;
    tare_error *err;
} layer_integers;

static const node *look(const tare_node *n) {
    return (const node *)n;
}

// --- constants ---

enum { MOST_DEPTH = 4 }; // dequantize, quantize, a tensor

typedef struct reader {
    const tare_model *model;
    arena *memory;
    tare_error *err;
} reader;

static tare_status evaluate(const reader *r, const node *n, int depth, tare_tensor **out);

// Replaces nodes among the arguments by their tensors; the caller releases them.
static tare_status evaluate_arguments(const reader *r, const node *n, int depth, op_call *call) {
    value *args = tare__arena_array(r->memory, n->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(r->err);
    call->args = args;
    call->arg_count = n->arg_count;
    for (size_t i = 0; i < n->arg_count; i++) {
        args[i] = n->args[i];
        if (args[i].kind != VALUE_NODE) continue;
        args[i] = tare__none();
        tare_tensor *t = NULL;
        TARE_TRY(evaluate(r, n->args[i].as.node, depth + 1, &t));
        args[i] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    }
    return TARE_OK;
}

static void release_arguments(const op_call *call) {
    for (size_t i = 0; call->args != NULL && i < call->arg_count; i++)
        if (call->args[i].kind == VALUE_TENSOR) tare_tensor_release(call->args[i].as.tensor);
}

static tare_status take_result(op_call *call, tare_tensor **out) {
    const bool is_tensor = call->result.kind == VALUE_TENSOR;
    if (is_tensor) *out = tare_tensor_retain(call->result.as.tensor);
    tare__value_release_tensors(&call->result);
    return is_tensor
               ? TARE_OK
               : tare__fail(call->err, TARE_UNSUPPORTED, "'%s' is no tensor", call->node_name);
}

static tare_status evaluate_call(const reader *r, const node *n, int depth, tare_tensor **out) {
    op_call call = {.node_name = n->name,
                    .function = n->op == NODE_CALL_FUNCTION ? n->target : NULL,
                    .memory = r->memory,
                    .thread_count = 1,
                    .err = r->err};
    const op_info *op = tare__node_row(n);
    if (op == NULL || n->kwarg_count > 0 || depth >= MOST_DEPTH)
        return tare__fail(r->err, TARE_UNSUPPORTED, "'%s' is computed, not stored", n->name);
    tare_status status = evaluate_arguments(r, n, depth, &call);
    if (status == TARE_OK) status = tare__call_bind(&call, op);
    if (status == TARE_OK) status = tare__op_run(&call, false);
    if (status == TARE_OK) status = take_result(&call, out);
    release_arguments(&call);
    return status;
}

// A tensor of the model, or computed from such tensors by a few calls. The caller releases *out.
static tare_status evaluate(const reader *r, const node *n, int depth, tare_tensor **out) {
    if (n->op != NODE_GET_ATTR) return evaluate_call(r, n, depth, out);
    tare_tensor *t = tare__module_find_tensor(r->model->root, n->target);
    if (t == NULL || t->data == NULL)
        return tare__fail(r->err, TARE_UNSUPPORTED, "'%s' is no tensor of the model", n->target);
    *out = tare_tensor_retain(t);
    return TARE_OK;
}

// --- parameters of quantize and dequantize ---

static bool read_number(const tare_model *model, const value *v, double *out) {
    if (v == NULL) return false;
    if (v->kind != VALUE_NODE) return tare__value_number(v, out);
    const node *n = v->as.node;
    const tare_tensor *t =
        n->op == NODE_GET_ATTR ? tare__module_find_tensor(model->root, n->target) : NULL;
    if (t == NULL || t->data == NULL || t->count != 1) return false;
    *out = tare__tensor_get(t, 0);
    return true;
}

// The arguments may come from a file, so they are checked.
static bool fill_qparams(tare_dtype dtype, double scale, double zero_point, const double *range,
                         tare_node_qparams *out) {
    const double least = -0x1p31, most = 0x1p31 - 1;
    const bool is_fine = isfinite((float)scale) && (float)scale > 0 && range[0] >= least &&
                         range[0] < range[1] && range[1] <= most && zero_point >= range[0] &&
                         zero_point <= range[1] && zero_point == floor(zero_point);
    if (!is_fine) return false;
    *out = (tare_node_qparams){.struct_size = sizeof *out,
                               .dtype = dtype,
                               .scale = scale,
                               .zero_point = (int64_t)zero_point,
                               .quant_min = (int64_t)range[0],
                               .quant_max = (int64_t)range[1]};
    return true;
}

static bool full_range(tare_dtype dtype, double *range) {
    const bool is_signed = dtype == TARE_QINT8 || dtype == TARE_INT8;
    const bool is_wide = dtype == TARE_QINT32 || dtype == TARE_INT32;
    range[0] = is_wide ? -0x1p31 : is_signed ? -128 : 0;
    range[1] = is_wide ? 0x1p31 - 1 : is_signed ? 127 : 255;
    return is_signed || is_wide || dtype == TARE_QUINT8 || dtype == TARE_UINT8;
}

static bool read_call(const tare_model *model, const function_call *call, tare_node_qparams *out) {
    const value *dtype = tare__function_argument(call, "dtype");
    double scale = 0, zero_point = 0, range[2];
    if (dtype == NULL || dtype->kind != VALUE_DTYPE ||
        !read_number(model, tare__function_argument(call, "scale"), &scale) ||
        !read_number(model, tare__function_argument(call, "zero_point"), &zero_point))
        return false;
    const bool is_ranged =
        read_number(model, tare__function_argument(call, "quant_min"), &range[0]) &&
        read_number(model, tare__function_argument(call, "quant_max"), &range[1]);
    if (!is_ranged && !full_range(dtype->as.dtype, range)) return false;
    return fill_qparams(dtype->as.dtype, scale, zero_point, range, out);
}

static bool is_per_tensor(op_id id) {
    return OP_IS_ANY(id, TARE_OP_QUANTIZE_PER_TENSOR, TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR,
                     TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR);
}

bool tare_node_get_qparams(const tare_model *model, const tare_node *n, tare_node_qparams *out) {
    const node *at = look(n);
    // In FX mode a dequantize has the parameters of its input.
    if (at != NULL && tare__node_op(at) == TARE_OP_DEQUANTIZE) at = tare__node_arg(at, 0);
    if (at == NULL || !is_per_tensor(tare__node_op(at))) return false;
    arena memory = {0};
    function_call call;
    const bool found = tare__function_bind(&memory, (node *)at, &call) && // NOLINT: only read
                       read_call(model, &call, out);
    tare__arena_release(&memory);
    return found;
}

static bool dequantizes(const node *n) {
    return n != NULL && tare__op_has(tare__node_row(n), OP_DEQUANTIZES);
}

// --- the weight ---

static tare_status refuse(const layer_integers *l, const char *why) {
    return tare__fail(l->err, TARE_UNSUPPORTED, "%s", why);
}

static reader reader_of(layer_integers *l) {
    return (reader){l->model, &l->memory, l->err};
}

// A number from a list of scales or zero points, or a single number.
static tare_status read_list(layer_integers *l, const value *v, tare_tensor **list,
                             double *number) {
    const reader r = reader_of(l);
    *list = NULL;
    if (v == NULL) return refuse(l, "its weight's parameters are missing");
    if (v->kind == VALUE_NODE) return evaluate(&r, v->as.node, 1, list);
    return tare__value_number(v, number) ? TARE_OK
                                         : refuse(l, "its weight's parameters are no numbers");
}

static tare_status make_qparams(layer_integers *l, const function_call *call,
                                const tare_tensor *integers, const tare_tensor *scales,
                                const tare_tensor *zeros, const double *numbers, qparams **out) {
    const value *axis_value = tare__function_argument(call, "axis");
    const int64_t count = scales != NULL ? scales->count : 1;
    double axis = 0;
    if (axis_value != NULL && !tare__value_number(axis_value, &axis))
        return refuse(l, "its weight's axis is no number");
    if (axis < 0) axis += integers->ndim;
    const bool is_per_channel = axis_value != NULL;
    if (axis < 0 || axis >= integers->ndim || (zeros != NULL && zeros->count != count) ||
        (is_per_channel && integers->shape[(int)axis] != count) || (!is_per_channel && count != 1))
        return refuse(l, "its weight's parameters do not fit its shape");
    double *all = tare__arena_array(&l->memory, (size_t)count * 2 + 1, sizeof *all);
    if (all == NULL) return tare__out_of_memory(l->err);
    for (int64_t c = 0; c < count; c++) {
        all[c] = scales != NULL ? tare__tensor_get(scales, c) : numbers[0];
        all[count + c] = zeros != NULL ? tare__tensor_get(zeros, c) : numbers[1];
    }
    *out = tare__qparams_create(is_per_channel ? TARE_PER_CHANNEL_AFFINE : TARE_PER_TENSOR_AFFINE,
                                integers->dtype == TARE_INT8 ? TARE_QINT8 : TARE_QUINT8, (int)axis,
                                count, all, all + count);
    return *out != NULL ? TARE_OK : tare__out_of_memory(l->err);
}

// In exported programs and decomposed models a dequantize reads plain integers.
static tare_status qualify(layer_integers *l, const node *dequantize, const tare_tensor *integers) {
    function_call call;
    tare_tensor *scales = NULL, *zeros = NULL;
    double numbers[2] = {0};
    qparams *q = NULL;
    if (integers->dtype != TARE_INT8 && integers->dtype != TARE_UINT8)
        return refuse(l, "its weight has no 8-bit integers");
    if (!tare__function_bind(&l->memory, (node *)dequantize, &call)) // NOLINT: only read
        return refuse(l, "its weight's dequantize is not known");
    const bool is_per_channel =
        tare__op_id(call.bound.op) == TARE_OP_DECOMPOSED_DEQUANTIZE_PER_CHANNEL;
    tare_status status =
        read_list(l, tare__function_argument(&call, is_per_channel ? "scales" : "scale"), &scales,
                  &numbers[0]);
    if (status == TARE_OK)
        status = read_list(
            l, tare__function_argument(&call, is_per_channel ? "zero_points" : "zero_point"),
            &zeros, &numbers[1]);
    if (status == TARE_OK) status = make_qparams(l, &call, integers, scales, zeros, numbers, &q);
    if (status == TARE_OK) status = tare__tensor_requalify(integers, q, &l->weight, l->err);
    tare__qparams_release(q);
    tare_tensor_release(scales);
    tare_tensor_release(zeros);
    return status;
}

static tare_status read_function_weight(layer_integers *l) {
    const node *dequantize = l->found.weight;
    const reader r = reader_of(l);
    tare_tensor *t = NULL;
    if (!dequantizes(dequantize) || tare__node_arg(dequantize, 0) == NULL)
        return refuse(l, "its weight is float");
    TARE_TRY(evaluate(&r, tare__node_arg(dequantize, 0), 1, &t));
    if (t->q != NULL) {
        l->weight = t;
        return TARE_OK;
    }
    const tare_status status = qualify(l, dequantize, t);
    tare_tensor_release(t);
    return status;
}

static tare_status read_weight(layer_integers *l) {
    int64_t channel = 0;
    if (l->found.module == NULL)
        TARE_TRY(read_function_weight(l));
    else if (l->found.module->class->role != ROLE_REFERENCE)
        return refuse(l, "its weight is float");
    else
        TARE_TRY(tare__reference_weight(l->found.module, &l->weight, l->err));
    const tare_tensor *w = l->weight;
    if (w->q == NULL || (w->dtype != TARE_QINT8 && w->dtype != TARE_QUINT8))
        return refuse(l, "its weight has no 8-bit integers");
    if (w->ndim < 2 || w->count == 0) return refuse(l, "its weight has no channels");
    if (tare__qscheme_is_per_group(w->q->scheme))
        return refuse(l, "its weight's parameters change within a channel");
    if (tare__qparams_fault(w->q, &channel) != QPARAMS_FINE)
        return tare__fail(l->err, TARE_UNSUPPORTED,
                          "channel %lld of its weight has no sound parameters", (long long)channel);
    return TARE_OK;
}

// --- channels ---

// The position of a weight's element: [O][I/groups][..], or [I][O/groups][..] if transposed.
typedef struct channel_map {
    bool is_transposed;
    int64_t groups, inputs, outputs, taps; // inputs, outputs: sizes of dimensions 0 and 1
} channel_map;

static int64_t channel_of(const channel_map *m, int64_t element) {
    const int64_t row = element / (m->outputs * m->taps);
    if (!m->is_transposed) return row;
    const int64_t group = row / (m->inputs / m->groups);
    return group * m->outputs + element / m->taps % m->outputs;
}

static int64_t group_count(layer_integers *l) {
    const node *n = l->found.node;
    double groups = 1;
    function_call call;
    if (l->found.module != NULL) return tare__module_int(l->found.module, "groups", 1);
    if (!tare__function_bind(&l->memory, (node *)n, &call)) return 1; // NOLINT: only read
    const value *v = tare__function_argument(&call, "groups");
    return v != NULL && tare__value_number(v, &groups) && groups >= 1 && groups < 0x1p31
               ? (int64_t)groups
               : 1;
}

static tare_status map_channels(layer_integers *l, channel_map *out) {
    const tare_tensor *w = l->weight;
    const op_info *op = l->found.module != NULL ? tare__class_row(l->found.module->class)
                                                : tare__function_row(l->found.node);
    *out = (channel_map){.is_transposed = tare__op_has(op, OP_TRANSPOSED),
                         .groups = group_count(l),
                         .inputs = w->shape[0],
                         .outputs = w->shape[1],
                         .taps = w->count / (w->shape[0] * w->shape[1])};
    if (out->groups < 1 || out->inputs % out->groups != 0)
        return refuse(l, "its groups do not divide its channels");
    l->shown.channel_count = out->is_transposed ? out->outputs * out->groups : out->inputs;
    return TARE_OK;
}

// Per-channel parameters are along the output channels; if transposed, within a group.
static tare_status check_axis(const layer_integers *l, const channel_map *m) {
    const qparams *q = l->weight->q;
    const bool is_per_channel = tare__qscheme_is_per_channel(q->scheme);
    return !is_per_channel || q->axis == (m->is_transposed ? 1 : 0)
               ? TARE_OK
               : refuse(l, "its weight's parameters do not lie along the output channels");
}

static double weight_scale(const layer_integers *l, int64_t channel) {
    const qparams *q = l->weight->q;
    return q->scale[channel % q->count];
}

static tare_status sum_weights(layer_integers *l, const channel_map *m) {
    TARE_TRY(tare_tensor_create(TARE_INT32, 1, &l->shown.channel_count, &l->sums, l->err));
    uint32_t *sums = l->sums->data; // wraps around like machine arithmetic
    for (int64_t i = 0; i < l->weight->count; i += m->taps) {
        uint32_t *sum = &sums[channel_of(m, i)];
        for (int64_t k = i; k < i + m->taps; k++)
            *sum += (uint32_t)tare__tensor_get_int(l->weight, k);
    }
    return TARE_OK;
}

// --- the bias ---

static int32_t saturate(double x, int64_t *count) {
    const double least = -0x1p31, most = 0x1p31 - 1;
    *count += x < least || x > most;
    return (int32_t)(x < least ? least : x > most ? most : x);
}

static tare_status scale_bias(layer_integers *l, const tare_tensor *bias) {
    if (bias->count != l->shown.channel_count)
        return refuse(l, "its bias does not have a value for each channel");
    TARE_TRY(tare_tensor_create(TARE_INT32, 1, &l->shown.channel_count, &l->bias, l->err));
    int32_t *out = l->bias->data;
    for (int64_t c = 0; c < bias->count; c++) {
        const double x = tare__tensor_get(bias, c) / (l->shown.input.scale * weight_scale(l, c));
        if (isnan(x)) return refuse(l, "its bias is not a number");
        out[c] = saturate(nearbyint(x), &l->shown.saturated_bias_count);
    }
    return TARE_OK;
}

static tare_status read_bias(layer_integers *l) {
    const reader r = reader_of(l);
    tare_tensor *bias = NULL;
    if (l->found.bias != NULL)
        TARE_TRY(evaluate(&r, l->found.bias, 1, &bias));
    else
        bias = tare_tensor_retain(tare__layer_bias(l->model, &l->found));
    if (bias == NULL) return TARE_OK;
    const tare_status status =
        bias->data != NULL ? scale_bias(l, bias) : refuse(l, "its bias has no values");
    tare_tensor_release(bias);
    return status;
}

// --- input and output ---

static tare_status read_input(layer_integers *l) {
    const node *n = tare__node_arg(l->found.node, 0);
    if (!dequantizes(n)) return refuse(l, "its input is float");
    l->shown.input_node = (const tare_node *)n;
    return tare_node_get_qparams(l->model, l->shown.input_node, &l->shown.input)
               ? TARE_OK
               : refuse(l, "its input's parameters are not constant");
}

static bool is_relu(const tare_model *model, const node *n) {
    const module *m = tare__called_module(model, n);
    return (m != NULL ? tare__class_op(m->class) : tare__node_op(n)) == TARE_OP_RELU;
}

static void find_output(layer_integers *l, fused_with fused) {
    tare_integer_layer *shown = &l->shown;
    const node *n = l->found.node, *user = n->user_count == 1 ? n->users[0] : NULL;
    shown->has_relu = fused == FUSED_RELU;
    if (user != NULL && is_relu(l->model, user) && tare__node_arg(user, 0) == n) {
        shown->has_relu = true;
        user = user->user_count == 1 ? user->users[0] : NULL;
    }
    const tare_node *quantize = (const tare_node *)user;
    if (user != NULL && !dequantizes(user) &&
        tare_node_get_qparams(l->model, quantize, &shown->output)) {
        shown->output_node = quantize;
        shown->output_min = shown->output.quant_min;
        shown->output_max = shown->output.quant_max;
        if (shown->has_relu && shown->output_min < shown->output.zero_point)
            shown->output_min = shown->output.zero_point;
        return;
    }
    shown->has_relu = fused == FUSED_RELU; // a separate relu behind the layer is another operator
    shown->output = (tare_node_qparams){.struct_size = sizeof shown->output, .scale = 1};
}

static void fix_multiplier(double multiplier, int32_t *fixed, int32_t *shift) {
    int exponent = 0;
    double mantissa = nearbyint(frexp(multiplier, &exponent) * 0x1p31);
    if (mantissa == 0x1p31) {
        mantissa /= 2;
        exponent++;
    }
    *fixed = (int32_t)mantissa;
    *shift = exponent;
}

static tare_status fill_multipliers(layer_integers *l) {
    const size_t count = (size_t)l->shown.channel_count;
    double *multiplier = tare__arena_array(&l->memory, count + 1, sizeof *multiplier);
    int32_t *fixed = tare__arena_array(&l->memory, count + 1, sizeof *fixed);
    int32_t *shift = tare__arena_array(&l->memory, count + 1, sizeof *shift);
    if (multiplier == NULL || fixed == NULL || shift == NULL) return tare__out_of_memory(l->err);
    for (size_t c = 0; c < count; c++) {
        multiplier[c] = l->shown.input.scale * weight_scale(l, (int64_t)c) / l->shown.output.scale;
        if (!isfinite(multiplier[c])) return refuse(l, "its scales are out of range");
        fix_multiplier(multiplier[c], &fixed[c], &shift[c]);
    }
    l->shown.multiplier = multiplier;
    l->shown.fixed_multiplier = fixed;
    l->shown.shift = shift;
    return TARE_OK;
}

// --- the whole ---

static tare_status fill(layer_integers *l) {
    channel_map channels;
    const module *called = tare__called_module(l->model, l->found.node);
    const fused_with fused = called != NULL ? called->class->fused : FUSED_NONE;
    if (fused != FUSED_NONE && fused != FUSED_RELU)
        return refuse(l, "another operator than a relu is fused into it");
    TARE_TRY(read_input(l));
    TARE_TRY(read_weight(l));
    TARE_TRY(map_channels(l, &channels));
    TARE_TRY(check_axis(l, &channels));
    TARE_TRY(sum_weights(l, &channels));
    TARE_TRY(read_bias(l));
    find_output(l, fused);
    l->shown.module = (const tare_module *)l->found.module;
    l->shown.weight = l->weight;
    l->shown.bias = l->bias;
    l->shown.weight_sums = l->sums;
    return fill_multipliers(l);
}

tare_status tare_integer_layer_create(const tare_model *model, const tare_node *n,
                                      const tare_integer_layer **out, tare_error *err) {
    if (model == NULL || n == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a model and a node, found NULL");
    layer_integers *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    l->shown.struct_size = sizeof l->shown;
    l->model = model;
    l->err = err;
    tare__layer_find(model, (node *)look(n), &l->found); // NOLINT: only read
    const tare_status status = l->found.node != NULL
                                   ? fill(l)
                                   : refuse(l, "it is neither a convolution nor a linear layer");
    l->err = NULL;
    if (status == TARE_OK) {
        *out = &l->shown;
        return TARE_OK;
    }
    tare_integer_layer_destroy(&l->shown);
    return tare__at(err, status, "node '%s'", tare_node_name(n));
}

void tare_integer_layer_destroy(const tare_integer_layer *layer) {
    layer_integers *l = (layer_integers *)layer; // NOLINT: shown is its first member
    if (l == NULL) return;
    tare_tensor_release(l->weight);
    tare_tensor_release(l->bias);
    tare_tensor_release(l->sums);
    tare__arena_release(&l->memory);
    tare__free(l);
}
