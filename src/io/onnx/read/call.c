// SPDX-License-Identifier: Apache-2.0
// The interface of reading rules to their node: inputs, attributes, outputs and constants.
#define IO_ONNX_CALL_DEFINITIONS
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "io/onnx/read/order.h"
#include "io/onnx/read/sizes.h"

typedef Onnx__AttributeProto attribute;

// --- the node ---

const char *tare__onnx_op_type(const onnx_call *c) {
    return c->node->op_type;
}

int tare__onnx_opset(const onnx_call *c) {
    return c->opset;
}

arena *tare__onnx_arena(onnx_call *c) {
    return &c->scratch;
}

tare_error *tare__onnx_error(onnx_call *c) {
    return c->in->err;
}

tare_status tare__onnx_new_tensor(onnx_call *c, tare_dtype dtype, int ndim, const int64_t *shape,
                                  tare_tensor **out) {
    char sizes[200], what[256];
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_meta(dtype, ndim, shape, NULL, &t, c->in->err));
    tare__shape_text(ndim, shape, sizes, sizeof sizes);
    (void)snprintf(what, sizeof what, "a constant %s %s", tare_dtype_name(dtype), sizes);
    tare_status status =
        tare__budget_take(&c->in->data_files.budget, tare__tensor_bytes(t), what, c->in->err);
    if (status == TARE_OK) status = tare__tensor_allocate(t, c->in->err);
    if (status == TARE_OK)
        *out = t;
    else
        tare_tensor_release(t);
    return status;
}

// The place is not added here but once, by the caller of the rule.
static tare_status fail(onnx_call *c, tare_status status, const char *format, va_list arguments) {
    char message[500];
    vsnprintf(message, sizeof message, format, arguments);
    return tare__fail(c->in->err, status, "%s", message);
}

tare_status tare__onnx_fail(onnx_call *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const tare_status status = fail(c, TARE_UNSUPPORTED, format, arguments);
    va_end(arguments);
    return status;
}

tare_status tare__onnx_malformed(onnx_call *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const tare_status status = fail(c, TARE_MALFORMED_FILE, format, arguments);
    va_end(arguments);
    return status;
}

// --- inputs ---

tare_status tare__onnx_bind(onnx_import *in, const char *name, const value *v) {
    onnx_binding *b = tare__arena_alloc(&in->memory, sizeof *b);
    if (b == NULL) return tare__out_of_memory(in->err);
    b->v = *v;
    return tare__map_set(&in->values, name, b) ? TARE_OK : tare__out_of_memory(in->err);
}

size_t tare__onnx_input_count(const onnx_call *c) {
    return c->node->n_input;
}

value tare__onnx_input(const onnx_call *c, size_t i) {
    if (i >= c->node->n_input || c->node->input[i][0] == '\0') return tare__none();
    const onnx_binding *b = tare__map_get(&c->in->values, c->node->input[i]);
    return b != NULL ? b->v : tare__none();
}

tare_status tare__onnx_need_input(onnx_call *c, size_t i, const char *name, value *out) {
    *out = tare__onnx_input(c, i);
    if (out->kind != VALUE_NONE) return TARE_OK;
    return tare__onnx_malformed(c, "input %zu ('%s') is missing", i, name);
}

const tare_tensor *tare__onnx_meta(const onnx_call *c, const value *v) {
    if (v->kind == VALUE_NODE) v = &tare__onnx_info(c->in, v->as.node)->meta;
    return v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

tare_status tare__onnx_need_meta(onnx_call *c, size_t i, const char *name,
                                 const tare_tensor **out) {
    value v;
    TARE_TRY(tare__onnx_need_input(c, i, name, &v));
    *out = tare__onnx_meta(c, &v);
    return *out != NULL ? TARE_OK
                        : tare__onnx_malformed(c, "input %zu ('%s') is no tensor", i, name);
}

const tare_tensor *tare__onnx_constant(const onnx_call *c, size_t i) {
    const value v = tare__onnx_input(c, i);
    return v.kind == VALUE_TENSOR && !tare__onnx_is_open(c->in, v.as.tensor) ? v.as.tensor : NULL;
}

bool tare__onnx_is_packed_constant(const onnx_call *c, size_t i) {
    const tare_tensor *t = tare__onnx_constant(c, i);
    const onnx_constant *known = t != NULL ? tare__onnx_constant_of(c->in, t) : NULL;
    return known != NULL && known->is_packed;
}

// Fails for a constant that depends on open dimensions, where a rule needs plain numbers.
static tare_status open_input(onnx_call *c, size_t i, const char *name, const tare_tensor *t) {
    for (int64_t k = 0; k < t->count; k++) {
        const value v = tare__onnx_entry(c->in, t, k);
        tare__onnx_blame(c->in, &v);
    }
    return tare__onnx_fail(
        c, "input %zu ('%s') depends on an open dimension, expected constant numbers", i, name);
}

// Reads the values of a constant input. *out is NULL if an optional input is absent.
static tare_status constant_input(onnx_call *c, size_t i, const char *name, bool optional,
                                  const tare_tensor **out) {
    const value v = tare__onnx_input(c, i);
    *out = tare__onnx_constant(c, i);
    if (*out != NULL || (v.kind == VALUE_NONE && optional)) return TARE_OK;
    if (v.kind == VALUE_NONE) return tare__onnx_need_input(c, i, name, &(value){0});
    if (v.kind == VALUE_TENSOR) return open_input(c, i, name, v.as.tensor);
    const char *from = v.kind == VALUE_NODE ? tare__onnx_info(c->in, v.as.node)->file_name : "";
    tare__onnx_fail(
        c, "input %zu ('%s') depends on the data, through node '%s', but determines shapes", i,
        name, from);
    return tare__hint(c->in->err, TARE_UNSUPPORTED,
                      "fix the shapes at export, or simplify the file (onnxsim)");
}

tare_status tare__onnx_input_ints(onnx_call *c, size_t i, const char *name, size_t capacity,
                                  int64_t *out, size_t *count, bool *given) {
    const tare_tensor *t = NULL;
    TARE_TRY(constant_input(c, i, name, given != NULL, &t));
    *count = 0;
    if (given != NULL) *given = t != NULL;
    if (t == NULL) return TARE_OK;
    if (t->count > (int64_t)capacity)
        return tare__onnx_fail(c, "input %zu ('%s') has %" PRId64 " values, at most %zu fit", i,
                               name, t->count, capacity);
    if (tare__dtype(t->dtype)->is_float)
        return tare__onnx_malformed(c, "input %zu ('%s') must hold integers, found %s", i, name,
                                    tare_dtype_name(t->dtype));
    for (int64_t k = 0; k < t->count; k++)
        out[k] = t->dtype == TARE_INT64 ? ((const int64_t *)t->data)[k]
                                        : (int64_t)tare__tensor_get(t, k);
    *count = (size_t)t->count;
    return TARE_OK;
}

tare_status tare__onnx_input_number(onnx_call *c, size_t i, const char *name, double otherwise,
                                    double *out) {
    const tare_tensor *t = NULL;
    TARE_TRY(constant_input(c, i, name, true, &t));
    *out = otherwise;
    if (t == NULL) return TARE_OK;
    if (t->count != 1)
        return tare__onnx_malformed(c, "input %zu ('%s') must be one number, found %" PRId64, i,
                                    name, t->count);
    const double number = tare__tensor_get(t, 0);
    *out = t->dtype == TARE_FLOAT32 ? tare__double_of_float((float)number) : number;
    return TARE_OK;
}

// --- attributes ---

static const attribute *find(const onnx_call *c, const char *name, size_t *index) {
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const attribute *a = c->node->attribute[i];
        if (a->name == NULL || strcmp(a->name, name) != 0) continue;
        if (index != NULL) *index = i;
        return a;
    }
    return NULL;
}

bool tare__onnx_has_attr(const onnx_call *c, const char *name) {
    return find(c, name, NULL) != NULL;
}

void tare__onnx_ignore_attr(onnx_call *c, const char *name) {
    size_t i = 0;
    if (find(c, name, &i) != NULL) c->attribute_read[i] = true;
}

// Before IR version 4 a file may leave the type out; it follows from the field that is set.
static int type_of(const attribute *a) {
    if (a->has_type && a->type != 0) return (int)a->type;
    if (a->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    if (a->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (a->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    if (a->t != NULL) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (a->n_floats > 0) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    if (a->n_strings > 0) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

// Finds an attribute and marks it as read; NULL if the node has none of this name.
static tare_status take(onnx_call *c, const char *name, int type, const char *type_name,
                        const attribute **out) {
    size_t i = 0;
    *out = find(c, name, &i);
    if (*out == NULL) return TARE_OK;
    c->attribute_read[i] = true;
    if ((*out)->ref_attr_name != NULL && (*out)->ref_attr_name[0] != '\0')
        return tare__onnx_malformed(
            c, "attribute '%s' refers to an attribute of a function, outside of any function",
            name);
    if (type_of(*out) == type) return TARE_OK;
    return tare__onnx_malformed(c, "attribute '%s' must be %s, found type %d", name, type_name,
                                type_of(*out));
}
#define TAKE(kind, text, out)                                                                      \
    TARE_TRY(take(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##kind, text, out))

tare_status tare__onnx_attr_int(onnx_call *c, const char *name, int64_t otherwise, int64_t *out) {
    const attribute *a = NULL;
    TAKE(INT, "an int", &a);
    *out = a != NULL ? a->i : otherwise;
    return TARE_OK;
}

tare_status tare__onnx_attr_bool(onnx_call *c, const char *name, bool otherwise, bool *out) {
    int64_t number = 0;
    TARE_TRY(tare__onnx_attr_int(c, name, otherwise ? 1 : 0, &number));
    *out = number != 0;
    return TARE_OK;
}

tare_status tare__onnx_attr_float(onnx_call *c, const char *name, double otherwise, double *out) {
    const attribute *a = NULL;
    TAKE(FLOAT, "a float", &a);
    *out = a != NULL ? tare__double_of_float(a->f) : otherwise;
    return TARE_OK;
}

static tare_status text_of(onnx_call *c, const char *name, const ProtobufCBinaryData *s,
                           const char **out) {
    if (s->len > 0 && memchr(s->data, '\0', s->len) != NULL)
        return tare__onnx_malformed(c, "attribute '%s' is no text", name);
    *out = tare__arena_strndup(&c->scratch, s->len > 0 ? (const char *)s->data : "", s->len);
    return *out != NULL ? TARE_OK : tare__out_of_memory(c->in->err);
}

tare_status tare__onnx_attr_string(onnx_call *c, const char *name, const char *otherwise,
                                   const char **out) {
    const attribute *a = NULL;
    TAKE(STRING, "a string", &a);
    *out = otherwise;
    return a != NULL ? text_of(c, name, &a->s, out) : TARE_OK;
}

static tare_status check_count(onnx_call *c, const char *name, size_t found, size_t capacity) {
    if (found <= capacity) return TARE_OK;
    return tare__onnx_fail(c, "attribute '%s' has %zu values, at most %zu fit", name, found,
                           capacity);
}

tare_status tare__onnx_attr_ints(onnx_call *c, const char *name, size_t capacity, int64_t *out,
                                 size_t *count, bool *given) {
    const attribute *a = NULL;
    TAKE(INTS, "ints", &a);
    *count = a != NULL ? a->n_ints : 0;
    if (given != NULL) *given = a != NULL;
    TARE_TRY(check_count(c, name, *count, capacity));
    for (size_t i = 0; i < *count; i++) out[i] = a->ints[i];
    return TARE_OK;
}

tare_status tare__onnx_attr_floats(onnx_call *c, const char *name, size_t capacity, double *out,
                                   size_t *count, bool *given) {
    const attribute *a = NULL;
    TAKE(FLOATS, "floats", &a);
    *count = a != NULL ? a->n_floats : 0;
    if (given != NULL) *given = a != NULL;
    TARE_TRY(check_count(c, name, *count, capacity));
    for (size_t i = 0; i < *count; i++) out[i] = tare__double_of_float(a->floats[i]);
    return TARE_OK;
}

tare_status tare__onnx_attr_strings(onnx_call *c, const char *name, size_t capacity,
                                    const char **out, size_t *count, bool *given) {
    const attribute *a = NULL;
    TAKE(STRINGS, "strings", &a);
    *count = a != NULL ? a->n_strings : 0;
    if (given != NULL) *given = a != NULL;
    TARE_TRY(check_count(c, name, *count, capacity));
    for (size_t i = 0; i < *count; i++) TARE_TRY(text_of(c, name, &a->strings[i], &out[i]));
    return TARE_OK;
}

tare_status tare__onnx_attr_tensor(onnx_call *c, const char *name, value *out) {
    const attribute *a = NULL;
    TAKE(TENSOR, "a tensor", &a);
    *out = tare__none();
    if (a == NULL) return TARE_OK;
    if (a->t == NULL) return tare__onnx_malformed(c, "attribute '%s' has no tensor", name);
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_read_tensor(c->in->file, &c->in->data_files, a->t, &t, c->in->err));
    return tare__onnx_take_tensor(c, t, out);
}

tare_status tare__onnx_dtype(onnx_call *c, int64_t data_type, tare_dtype *out) {
    *out = tare__onnx_type_to_dtype(data_type);
    if (*out != TARE_DTYPE_UNSET) return TARE_OK;
    return tare__onnx_fail(c, "elements of type %lld (%s) are not supported", (long long)data_type,
                           tare__onnx_type_name(data_type));
}

// --- constants ---

static tare_status sequence(onnx_call *c, value_kind kind, size_t count, value *out) {
    if (count > UINT32_MAX) return tare__onnx_fail(c, "a list of %zu items is too long", count);
    *out = tare__value_sequence(&c->scratch, kind, (uint32_t)count);
    return out->as.items != NULL || count == 0 ? TARE_OK : tare__out_of_memory(c->in->err);
}

tare_status tare__onnx_list(onnx_call *c, const value *items, size_t count, value *out) {
    TARE_TRY(sequence(c, VALUE_LIST, count, out));
    if (count > 0) memcpy(out->as.items, items, count * sizeof *items);
    return TARE_OK;
}

static tare_status int_sequence(onnx_call *c, value_kind kind, const int64_t *ints, size_t count,
                                value *out) {
    TARE_TRY(sequence(c, kind, count, out));
    for (size_t i = 0; i < count; i++) out->as.items[i] = tare__int(ints[i]);
    return TARE_OK;
}

tare_status tare__onnx_ints(onnx_call *c, const int64_t *ints, size_t count, value *out) {
    return int_sequence(c, VALUE_LIST, ints, count, out);
}

tare_status tare__onnx_int_tuple(onnx_call *c, const int64_t *ints, size_t count, value *out) {
    return int_sequence(c, VALUE_TUPLE, ints, count, out);
}

// "conv.weight" for "conv.weight_quantized", as ONNX Runtime's quantizer names quantized weights.
static const char *name_of_values(onnx_call *c, const char *name) {
    static const char ending[] = "_quantized";
    if (name == NULL || !tare__ends_with(name, ending)) return name;
    return tare__arena_strndup(&c->in->memory, name, strlen(name) - (sizeof ending - 1));
}

// Adds the dequantized floats as a constant under the name of the integers.
static tare_status add_values(onnx_call *c, const tare_tensor *x, tare_tensor *values, value *out) {
    const char *name = name_of_values(c, tare__onnx_constant_of(c->in, x)->name);
    TARE_TRY(tare__onnx_add_constant(c->in, values, name));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = values};
    return TARE_OK;
}

tare_status tare__onnx_dequantized(onnx_call *c, const tare_tensor *x, tare_tensor *quantized,
                                   value *out) {
    onnx_import *in = c->in;
    tare_tensor *values = NULL;
    TARE_TRY(tare__onnx_add_constant(in, quantized, NULL));
    TARE_TRY(tare_tensor_to_float(quantized, &values, in->err));
    TARE_TRY(add_values(c, x, values, out));
    if (quantized->dtype != TARE_QINT32) tare__onnx_constant_of(in, values)->quantized = quantized;
    return TARE_OK;
}

tare_status tare__onnx_dequantized_blocks(onnx_call *c, const tare_tensor *x, tare_tensor *values,
                                          tare_tensor *quantized, bool is_turned, value *out) {
    const tare_status status = add_values(c, x, values, out);
    if (quantized == NULL) return status;
    if (status != TARE_OK) {
        tare_tensor_release(quantized);
        return status;
    }
    TARE_TRY(tare__onnx_add_constant(c->in, quantized, NULL));
    onnx_constant *known = tare__onnx_constant_of(c->in, values);
    *(is_turned ? &known->turned : &known->quantized) = quantized;
    return TARE_OK;
}

tare_status tare__onnx_take_tensor(onnx_call *c, tare_tensor *t, value *out) {
    TARE_TRY(tare__onnx_add_constant(c->in, t, NULL));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

tare_status tare__onnx_int_tensor(onnx_call *c, const int64_t *ints, size_t count, value *out) {
    const int64_t shape[] = {(int64_t)count};
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(TARE_INT64, 1, shape, &t, c->in->err));
    if (count > 0) memcpy(t->data, ints, count * sizeof *ints);
    return tare__onnx_take_tensor(c, t, out);
}

// --- outputs ---

size_t tare__onnx_output_count(const onnx_call *c) {
    return c->node->n_output;
}

bool tare__onnx_wants_output(const onnx_call *c, size_t i) {
    return i < c->node->n_output && c->node->output[i][0] != '\0';
}

// The values are bound to the outputs' names after the rule has returned.
void tare__onnx_set_output(onnx_call *c, size_t i, const value *v) {
    if (i < c->node->n_output) c->outputs[i] = *v;
}

tare_status tare__onnx_one_with(onnx_call *c, const onnx_emit *e) {
    value out;
    TARE_TRY(tare__onnx_function(c, e, &out));
    tare__onnx_set_output(c, 0, &out);
    return TARE_OK;
}

tare_status tare__onnx_one(onnx_call *c, const char *target, size_t arg_count, const value *args) {
    const onnx_emit e = {.target = target, .args = args, .arg_count = arg_count};
    return tare__onnx_one_with(c, &e);
}
