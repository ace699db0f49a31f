// SPDX-License-Identifier: Apache-2.0
// Nodes that are written, and the interface of writing rules to the call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "io/onnx/schema.h"
#include "io/onnx/write/state.h"
#include "io/onnx/write/wire.h"

static const tare_tensor nothing = {.ndim = 0};

// --- failures ---

bool tare__out_failed(const onnx_out *o) {
    return o->status != TARE_OK;
}

void tare__out_try(onnx_out *o, tare_status status) {
    if (o->status == TARE_OK) o->status = status;
}

void tare__out_refuse(onnx_out *o, const char *format, ...) {
    char reason[400];
    va_list args;
    if (o->status != TARE_OK) return;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    o->status = tare__fail(o->call.err, TARE_UNSUPPORTED, "%s", reason);
}

void tare__out_note(onnx_out *o, const char *format, ...) {
    char sentence[400];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    text *notes = &o->w->notes;
    tare__text_append(notes, notes->length > 0 ? ",{\"node\":" : "{\"node\":");
    tare__text_json_string(notes, o->record->node->name);
    tare__text_append(notes, ",\"note\":");
    tare__text_json_string(notes, sentence);
    tare__text_char(notes, '}');
}

// --- the call ---

int tare__out_opset(const onnx_out *o) {
    return o->w->opset;
}

op_call *tare__out_call(onnx_out *o) {
    return &o->call;
}

bool tare__out_given(const onnx_out *o, size_t i) {
    return tare__call_given(&o->call, i);
}

const tare_tensor *tare__out_meta(onnx_out *o, size_t i) {
    const tare_tensor *t = NULL;
    if (!tare__out_failed(o)) tare__out_try(o, tare__call_need_tensor(&o->call, i, &t));
    return t != NULL ? t : &nothing;
}

const tare_tensor *tare__out_result_meta(onnx_out *o) {
    if (o->call.result.kind == VALUE_TENSOR) return o->call.result.as.tensor;
    tare__out_refuse(o, "its result is not one tensor");
    return &nothing;
}

tare_dtype tare__out_real_dtype(const onnx_out *o) {
    const value *v = &o->call.result;
    const tare_dtype dtype = v->kind == VALUE_TENSOR ? v->as.tensor->dtype : TARE_FLOAT32;
    return tare__dtype(dtype)->is_float ? dtype : TARE_FLOAT32;
}

const tare_tensor *tare__out_result_other(const onnx_out *o) {
    const bool known = o->other != NULL && o->other->result.kind == VALUE_TENSOR;
    return known ? o->other->result.as.tensor : NULL;
}

const value *tare__out_results_other(const onnx_out *o) {
    const bool known = o->other != NULL && tare__value_has_items(&o->other->result);
    return known ? &o->other->result : NULL;
}

bool tare__out_param_differs(const onnx_out *o, size_t i) {
    double a = 0, b = 0;
    if (o->other == NULL || i >= o->call.param_count) return false;
    const value *v = o->call.param[i], *w = o->other->call.param[i];
    return v != NULL && w != NULL && tare__call_number(v, &a) && tare__call_number(w, &b) && a != b;
}

const value *tare__out_other_param(const onnx_out *o, size_t i) {
    return o->other != NULL && i < o->call.param_count ? o->other->call.param[i] : NULL;
}

bool tare__out_other_ints(const onnx_out *o, size_t i, size_t capacity, int64_t *out,
                          size_t count) {
    size_t found = 0;
    op_call call;
    if (tare__out_other_param(o, i) == NULL) return false;
    call = o->other->call;
    call.err = NULL;
    return tare__call_int_list(&call, i, capacity, out, &found) == TARE_OK && found == count;
}

int64_t tare__out_int(onnx_out *o, size_t i, int64_t otherwise) {
    int64_t out = otherwise;
    if (!tare__out_failed(o)) tare__out_try(o, tare__call_int(&o->call, i, otherwise, &out));
    return out;
}

double tare__out_double(onnx_out *o, size_t i, double otherwise) {
    double out = otherwise;
    if (!tare__out_failed(o)) tare__out_try(o, tare__call_double(&o->call, i, otherwise, &out));
    return out;
}

bool tare__out_bool(onnx_out *o, size_t i, bool otherwise) {
    bool out = otherwise;
    if (!tare__out_failed(o)) tare__out_try(o, tare__call_bool(&o->call, i, otherwise, &out));
    return out;
}

const char *tare__out_text(onnx_out *o, size_t i, const char *otherwise) {
    const char *out = otherwise;
    if (!tare__out_failed(o)) tare__out_try(o, tare__call_text(&o->call, i, otherwise, &out));
    return out;
}

int64_t tare__out_dim(onnx_out *o, size_t i, int64_t otherwise, int ndim) {
    int out = 0;
    if (!tare__out_failed(o)) tare__out_try(o, tare__call_dim(&o->call, i, otherwise, ndim, &out));
    return out;
}

// --- nodes ---

static const char *no_memory(onnx_out *o) {
    tare__out_try(o, tare__out_of_memory(o->call.err));
    return "";
}

// "conv1/Transpose": the name of the graph's node and the operator.
static const char *wish_for(onnx_out *o, const char *op_type) {
    return tare__arena_printf(&o->w->memory, "%s/%s", o->record->node->name, op_type);
}

const char *tare__out_node(onnx_out *o, const char *op_type, const char *const *inputs,
                           size_t input_count) {
    onnx_writer *w = o->w;
    if (tare__out_failed(o)) return "";
    if (!tare__grow((void **)&w->nodes, &w->node_capacity, w->node_count, sizeof *w->nodes))
        return no_memory(o);
    while (input_count > 0 && inputs[input_count - 1][0] == '\0') input_count--;
    out_node n = {.op_type = op_type, .from = o->record->node, .input_count = input_count};
    const char *wish = wish_for(o, op_type);
    n.inputs = tare__arena_array(&w->memory, input_count + 1, sizeof *n.inputs);
    n.outputs = tare__arena_array(&w->memory, 1, sizeof *n.outputs);
    if (wish == NULL || n.inputs == NULL || n.outputs == NULL) return no_memory(o);
    n.name = tare__out_unique(w, &w->node_names, wish);
    n.outputs[0] = tare__out_unique(w, &w->names, wish);
    n.output_count = 1;
    if (n.name == NULL || n.outputs[0] == NULL) return no_memory(o);
    if (input_count > 0) memcpy(n.inputs, inputs, input_count * sizeof *inputs);
    w->nodes[w->node_count++] = n;
    return n.outputs[0];
}

static out_node *last_node(onnx_out *o) {
    return tare__out_failed(o) || o->w->node_count == 0 ? NULL : &o->w->nodes[o->w->node_count - 1];
}

void tare__out_outputs(onnx_out *o, size_t count, const char **names) {
    out_node *n = last_node(o);
    const char **outputs =
        n != NULL ? tare__arena_array(&o->w->memory, count, sizeof *outputs) : NULL;
    for (size_t i = 0; i < count; i++) names[i] = "";
    if (n == NULL) return;
    if (outputs == NULL) {
        no_memory(o);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        outputs[i] = i == 0 ? n->outputs[0] : tare__out_unique(o->w, &o->w->names, n->outputs[0]);
        if (outputs[i] == NULL) {
            no_memory(o);
            return;
        }
        names[i] = outputs[i];
    }
    n->outputs = outputs;
    n->output_count = count;
}

void tare__out_optional(onnx_out *o) {
    out_node *n = last_node(o);
    if (n != NULL) n->has_optional = true;
}

void tare__out_mark_wrapping(onnx_out *o) {
    out_node *n = last_node(o);
    if (n != NULL) n->wraps = true;
}

void tare__out_of_runtime(onnx_out *o) {
    out_node *n = last_node(o);
    if (n != NULL) n->domain = ONNX_RUNTIME_DOMAIN;
}

// Field numbers of AttributeProto.
enum {
    NODE_ATTRIBUTE = 5,
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TYPE = 20,
    TYPE_FLOAT = 1,
    TYPE_INT = 2,
    TYPE_STRING = 3,
    TYPE_INTS = 7,
    TYPE_STRINGS = 8
};

static void end_attribute(onnx_out *o, text *attribute, int type) {
    out_node *n = last_node(o);
    tare__pb_int(attribute, ATTR_TYPE, type);
    if (n != NULL)
        tare__pb_message(&n->attributes, NODE_ATTRIBUTE, attribute);
    else
        tare__text_release(attribute);
    if (n != NULL && n->attributes.failed) no_memory(o);
}

void tare__out_attr_int(onnx_out *o, const char *name, int64_t i) {
    text a = {0};
    tare__pb_string(&a, ATTR_NAME, name);
    tare__pb_int(&a, ATTR_I, i);
    end_attribute(o, &a, TYPE_INT);
}

void tare__out_attr_float(onnx_out *o, const char *name, double f) {
    text a = {0};
    tare__pb_string(&a, ATTR_NAME, name);
    tare__pb_float(&a, ATTR_F, (float)f);
    end_attribute(o, &a, TYPE_FLOAT);
}

void tare__out_attr_text(onnx_out *o, const char *name, const char *chars) {
    text a = {0};
    tare__pb_string(&a, ATTR_NAME, name);
    tare__pb_string(&a, ATTR_S, chars);
    end_attribute(o, &a, TYPE_STRING);
}

void tare__out_attr_ints(onnx_out *o, const char *name, const int64_t *ints, size_t count) {
    text a = {0};
    tare__pb_string(&a, ATTR_NAME, name);
    for (size_t i = 0; i < count; i++) tare__pb_int(&a, ATTR_INTS, ints[i]);
    end_attribute(o, &a, TYPE_INTS);
}

void tare__out_attr_texts(onnx_out *o, const char *name, const char *chars, size_t count) {
    text a = {0};
    tare__pb_string(&a, ATTR_NAME, name);
    for (size_t i = 0; i < count; i++) tare__pb_string(&a, ATTR_STRINGS, chars);
    end_attribute(o, &a, TYPE_STRINGS);
}

// --- what rules need again and again ---

const char *tare__out_cast(onnx_out *o, const char *x, tare_dtype from, tare_dtype to) {
    const int type = tare__onnx_type_of_dtype(tare__dtype(to)->storage);
    if (tare__dtype(from)->storage == tare__dtype(to)->storage) return x;
    if (type == 0) tare__out_refuse(o, "ONNX has no element type for %s", tare_dtype_name(to));
    const char *made = OUT(o, "Cast", x);
    tare__out_attr_int(o, "to", type);
    return made;
}

const char *tare__out_reshape(onnx_out *o, const char *x, const int64_t *shape, size_t count) {
    return OUT(o, "Reshape", x, tare__out_ints(o, shape, count));
}

const char *tare__out_transpose(onnx_out *o, const char *x, const int64_t *order, size_t count) {
    const char *made = OUT(o, "Transpose", x);
    tare__out_attr_ints(o, "perm", order, count);
    return made;
}

const char *tare__out_swap(onnx_out *o, const char *x, int ndim, int a, int b) {
    int64_t order[TARE_MAX_DIMS];
    for (int d = 0; d < ndim; d++) order[d] = d == a ? b : d == b ? a : d;
    return a == b ? x : tare__out_transpose(o, x, order, (size_t)ndim);
}

const char *tare__out_unsqueeze(onnx_out *o, const char *x, const int64_t *axes, size_t count) {
    return OUT(o, "Unsqueeze", x, tare__out_ints(o, axes, count));
}

const char *tare__out_squeeze(onnx_out *o, const char *x, const int64_t *axes, size_t count) {
    return OUT(o, "Squeeze", x, tare__out_ints(o, axes, count));
}

const char *tare__out_reduce(onnx_out *o, const char *op_type, const char *x, const int64_t *axes,
                             size_t count, bool keeps) {
    const bool by_input = tare__out_opset(o) >= (strcmp(op_type, "ReduceSum") == 0 ? 13 : 18);
    const char *made =
        by_input ? OUT(o, op_type, x, tare__out_ints(o, axes, count)) : OUT(o, op_type, x);
    if (!by_input) tare__out_attr_ints(o, "axes", axes, count);
    tare__out_attr_int(o, "keepdims", keeps);
    return made;
}

const char *tare__out_slice(onnx_out *o, const char *x, int64_t axis, int64_t start, int64_t end,
                            int64_t step) {
    return OUT(o, "Slice", x, tare__out_ints(o, &start, 1), tare__out_ints(o, &end, 1),
               tare__out_ints(o, &axis, 1), tare__out_ints(o, &step, 1));
}

const char *tare__out_take(onnx_out *o, const char *x, int64_t i, int64_t axis) {
    const char *y = OUT(o, "Gather", x, tare__out_number(o, TARE_INT64, (double)i));
    tare__out_attr_int(o, "axis", axis);
    return y;
}

const char *tare__out_clip(onnx_out *o, const char *x, tare_dtype dtype, double low, double high) {
    return OUT(o, "Clip", x, tare__out_number(o, dtype, low), tare__out_number(o, dtype, high));
}

// True if QuantizeLinear of this opset can produce the type. DequantizeLinear also accepts int32.
static bool can_quantize(int opset, tare_dtype dtype) {
    return dtype == TARE_UINT8 || dtype == TARE_INT8 ||
           (opset >= 21 && (dtype == TARE_UINT16 || dtype == TARE_INT16));
}

// The number of groups in a row of a matrix with group-wise scales.
static int64_t groups_in_row(onnx_out *o, const char *x, const qparams *q, int64_t *size) {
    const out_tensor *t = tare__out_find_tensor(o->w, x);
    *size = 0;
    if (!tare__qscheme_is_per_group(q->scheme)) return 1;
    if (tare__out_opset(o) < 21)
        tare__out_refuse(o, "DequantizeLinear has group-wise scales from opset 21 on");
    const bool is_matrix = t != NULL && t->t->ndim == 2;
    if (!is_matrix)
        tare__out_refuse(o, "group-wise scales are only written for matrices of the model");
    if (!is_matrix || tare__out_failed(o)) return 1;
    *size = t->t->count / q->count;
    return t->t->shape[1] / *size;
}

static const char *linear(onnx_out *o, const char *op_type, const char *x, const qparams *q) {
    const char *scale, *zero_point;
    int64_t size = 0;
    const int64_t groups = groups_in_row(o, x, q, &size);
    const tare_dtype plain = tare__dtype(q->dtype)->storage;
    const bool is_bias = plain == TARE_INT32 && strcmp(op_type, "DequantizeLinear") == 0;
    if (!can_quantize(tare__out_opset(o), plain) && !is_bias)
        tare__out_refuse(o, "%s takes %s %s", op_type, tare_dtype_name(plain),
                         plain == TARE_INT16 || plain == TARE_UINT16 ? "from opset 21 on"
                                                                     : "in no opset");
    tare__out_qparams(o, q, groups, plain, &scale, &zero_point);
    const char *made = OUT(o, op_type, x, scale, zero_point);
    if (tare__qscheme_is_per_channel(q->scheme)) tare__out_attr_int(o, "axis", q->axis);
    if (size != 0) tare__out_attr_int(o, "block_size", size);
    return made;
}

// (q - zero point) * scale, for zero points that are not integers.
static const char *by_floats(onnx_out *o, const char *quantized, const qparams *q) {
    const char *scale, *zero_point;
    tare__out_qparams(o, q, 1, TARE_FLOAT32, &scale, &zero_point);
    if (q->axis != 0) tare__out_refuse(o, "zero points along axis %d must be integers", q->axis);
    const char *x = tare__out_cast(o, quantized, TARE_UINT8, TARE_FLOAT32);
    const int64_t last = 1;
    return OUT(o, "Mul", OUT(o, "Sub", x, tare__out_unsqueeze(o, zero_point, &last, 1)),
               tare__out_unsqueeze(o, scale, &last, 1));
}

const char *tare__out_dequantize(onnx_out *o, const char *quantized, const qparams *q) {
    if (tare__out_failed(o)) return "";
    return q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS
               ? by_floats(o, quantized, q)
               : linear(o, "DequantizeLinear", quantized, q);
}

const char *tare__out_quantize(onnx_out *o, const char *x, const qparams *q) {
    if (tare__out_failed(o)) return "";
    if (q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS)
        tare__out_refuse(o, "QuantizeLinear requires integer zero points");
    return linear(o, "QuantizeLinear", x, q);
}

// --- results ---

// Names the value after the graph's node, if it was created for this call.
static const char *rename_value(onnx_out *o, const char *x) {
    onnx_writer *w = o->w;
    size_t i = w->node_count;
    const char *name = NULL;
    while (i > 0 && w->nodes[i - 1].from == o->record->node) i--;
    for (size_t k = i; k < w->node_count && name == NULL; k++)
        for (size_t j = 0; j < w->nodes[k].output_count; j++)
            if (w->nodes[k].outputs[j] == x && strchr(x, '/') != NULL) {
                name = tare__out_unique(w, &w->names, o->record->node->name);
                if (name == NULL) return no_memory(o);
                tare__map_remove(&w->names, x);
                w->nodes[k].outputs[j] = name;
                break;
            }
    if (name == NULL) return x;
    for (size_t k = i; k < w->node_count; k++)
        for (size_t j = 0; j < w->nodes[k].input_count; j++)
            if (w->nodes[k].inputs[j] == x) w->nodes[k].inputs[j] = name;
    return name;
}

static void bind(onnx_out *o, const tare_tensor *t, const char *x) {
    if (tare__out_failed(o)) return;
    const char *name = rename_value(o, x);
    if (!tare__out_failed(o) && !tare__out_bind(o->w, t, name)) no_memory(o);
}

void tare__out_result_raw(onnx_out *o, const char *x) {
    const tare_tensor *t = tare__out_result_meta(o);
    bind(o, t, x);
}

void tare__out_then_relu(onnx_out *o) {
    o->then_relu = true;
}

void tare__out_result(onnx_out *o, const char *x) {
    if (o->then_relu) x = OUT(o, "Relu", x);
    const tare_tensor *t = tare__out_result_meta(o);
    tare__out_result_raw(o, t->q != NULL && !o->on_quantized ? tare__out_quantize(o, x, t->q) : x);
}

void tare__out_result_at(onnx_out *o, const value *v, const char *x) {
    if (v->kind != VALUE_TENSOR) {
        tare__out_refuse(o, "an item of its result is not a tensor");
        return;
    }
    const tare_tensor *t = v->as.tensor;
    if (t->q != NULL && !o->on_quantized) x = tare__out_quantize(o, x, t->q);
    if (!tare__out_failed(o) && !tare__out_bind(o->w, t, x)) no_memory(o);
}

void tare__out_result_item(onnx_out *o, uint32_t i, const char *x) {
    if (!tare__value_has_items(&o->call.result) || i >= o->call.result.count) {
        tare__out_refuse(o, "its result has no item %u", i);
        return;
    }
    tare__out_result_at(o, &o->call.result.as.items[i], x);
}
