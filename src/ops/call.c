// SPDX-License-Identifier: Apache-2.0
// Binds arguments to parameters, provides typed access to them, and creates results.
#define OPS_CALL_DEFINITIONS
#include "ops/call.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/op.h"
#include "ops/signatures.h"

// The kind of an argument, for messages.
static const char *kind_name(const value *v) {
    static const char *const names[] = {
        [VALUE_NONE] = "None",         [VALUE_BOOL] = "a bool",
        [VALUE_INT] = "an int",        [VALUE_FLOAT] = "a float",
        [VALUE_STRING] = "a string",   [VALUE_NODE] = "a node",
        [VALUE_LIST] = "a list",       [VALUE_TUPLE] = "a tuple",
        [VALUE_DICT] = "a dict",       [VALUE_SLICE] = "a slice",
        [VALUE_ELLIPSIS] = "...",      [VALUE_DTYPE] = "a dtype",
        [VALUE_QSCHEME] = "a qscheme", [VALUE_LAYOUT] = "a layout",
        [VALUE_DEVICE] = "a device",   [VALUE_SYMBOL] = "a symbolic size",
        [VALUE_TYPE] = "a class",      [VALUE_SCALAR] = "a scalar",
        [VALUE_TENSOR] = "a tensor",   [VALUE_MODULE] = "packed weights",
    };
    return v == NULL ? "nothing" : names[v->kind];
}

static const char *name_of(const op_call *call) {
    if (call->op != NULL) return call->op->id;
    return call->module != NULL ? call->module->class->name : "call";
}

tare_status tare__call_at(op_call *call, tare_status status) {
    if (status == TARE_OK) return TARE_OK;
    return tare__at(call->err, status, "node '%s': %s",
                    call->node_name != NULL ? call->node_name : "", name_of(call));
}

tare_status tare__call_fail(op_call *call, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return tare__fail(call->err, TARE_INVALID_ARGUMENT, "node '%s': %s: %s",
                      call->node_name != NULL ? call->node_name : "", name_of(call), message);
}

// --- parameter names ---

typedef struct param_name {
    const char *text; // may hold a second name after '/'
    size_t length;
    bool variadic, config_only;
} param_name;

// The i-th name of "a|b/c|*d|!e"; false past the end.
static bool param_at(const char *params, size_t i, param_name *out) {
    bool config_only = false;
    const char *at = params;
    for (size_t k = 0; at != NULL && *at != '\0'; k++) {
        const char *end = strchr(at, '|');
        const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        config_only = config_only || *at == '!';
        if (k == i) {
            const size_t mark = *at == '*' || *at == '!' ? 1 : 0;
            *out = (param_name){at + mark, length - mark, *at == '*', config_only};
            return true;
        }
        at = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static bool param_is_named(const param_name *p, const char *name) {
    const size_t length = strlen(name);
    const char *at = p->text, *end = p->text + p->length;
    while (at < end) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const size_t size = (size_t)((slash != NULL ? slash : end) - at);
        if (size == length && memcmp(at, name, length) == 0) return true;
        at += size + 1;
    }
    return false;
}

size_t tare__op_param_count(const op_info *op) {
    size_t count = 0;
    param_name name;
    while (param_at(op->params, count, &name)) count++;
    return count;
}

bool tare__op_param_is(const op_info *op, size_t i, const char *name) {
    param_name p;
    return param_at(op->params, i, &p) && param_is_named(&p, name);
}

size_t tare__op_param_index(const op_info *op, const char *name) {
    size_t i = 0;
    param_name p;
    while (param_at(op->params, i, &p) && !param_is_named(&p, name)) i++;
    return i;
}

size_t tare__op_param_name(const op_info *op, size_t i, char *out, size_t size) {
    param_name p;
    if (!param_at(op->params, i, &p)) return 0;
    const char *slash = memchr(p.text, '/', p.length);
    const size_t length = slash != NULL ? (size_t)(slash - p.text) : p.length;
    snprintf(out, size, "%.*s", (int)length, p.text);
    return length;
}

// --- binding ---

// Passes the remaining positional arguments as one tuple; a single list or tuple is passed as it
// is.
static tare_status bind_rest(op_call *call, size_t from, const value **out) {
    const size_t count = call->arg_count > from ? call->arg_count - from : 0;
    if (count == 0) return TARE_OK;
    const value *first = &call->args[from];
    if (count == 1 &&
        (first->kind == VALUE_LIST || first->kind == VALUE_TUPLE || first->kind == VALUE_NONE)) {
        *out = first;
        return TARE_OK;
    }
    value *rest = tare__arena_alloc(call->memory, sizeof *rest);
    if (rest == NULL) return tare__out_of_memory(call->err);
    *rest = tare__value_sequence(call->memory, VALUE_TUPLE, (uint32_t)count);
    if (rest->as.items == NULL) return tare__out_of_memory(call->err);
    memcpy(rest->as.items, first, count * sizeof *first);
    *out = rest;
    return TARE_OK;
}

static tare_status bind_keyword(op_call *call, const op_info *op, const keyword *k) {
    param_name p;
    for (size_t i = 0; param_at(op->params, i, &p); i++) {
        if (p.config_only || !param_is_named(&p, k->name)) continue;
        if (call->param[i] != NULL)
            return tare__call_fail(call, "argument '%s' is given twice", k->name);
        call->param[i] = &k->value;
        return TARE_OK;
    }
    return tare__call_fail(call, "unknown argument '%s'", k->name);
}

// --- overloads with arguments in the order of their signature (op_info.overloads) ---

// The next remark of "-x|mode=linear)"; false past the last one.
static bool next_remark(const char **at, const char **chars, size_t *length) {
    *at += **at == '|' ? 1 : 0;
    *chars = *at;
    *length = strcspn(*at, "|)");
    *at += *length;
    return *length > 0;
}

// True if the remarks "-x|-y" contain "-name".
static bool is_ignored(const char *remarks, const char *name) {
    const char *chars;
    size_t length;
    while (next_remark(&remarks, &chars, &length))
        if (*chars == '-' && tare__is_word(chars + 1, length - 1, name)) return true;
    return false;
}

// Binds a parameter to the string that the overload implies: "mode=linear".
static tare_status bind_constant(op_call *call, const char *chars, size_t length) {
    const char *equals = memchr(chars, '=', length);
    if (equals == NULL) return TARE_OK;
    const char *name = tare__arena_strndup(call->memory, chars, (size_t)(equals - chars));
    const char *chosen =
        tare__arena_strndup(call->memory, equals + 1, length - (size_t)(equals - chars) - 1);
    value *v = tare__arena_alloc(call->memory, sizeof *v);
    if (name == NULL || chosen == NULL || v == NULL) return tare__out_of_memory(call->err);
    const size_t i = tare__op_param_index(call->op, name);
    assert(i < call->param_count);
    *v = tare__string(chosen);
    call->param[i] = v;
    return TARE_OK;
}

// The k-th positional argument of an overload. Remarks of functions without a signature list all
// arguments: "torch.tensor(fill_value)".
static bool positional_at(const char *function, const char *remarks, size_t k,
                          signature_param *out) {
    signature s;
    if (tare__signature_of(function, &s))
        return tare__signature_param(&s, k, out) && !out->is_keyword_only;
    *out = (signature_param){0};
    while (next_remark(&remarks, &out->name, &out->length))
        if (k-- == 0) return true;
    return false;
}

static tare_status bind_positional(op_call *call, const char *remarks) {
    signature_param p;
    for (size_t k = 0; k < call->arg_count; k++) {
        if (!positional_at(call->function, remarks, k, &p))
            return tare__call_fail(call, "takes at most %zu arguments, found %zu", k,
                                   call->arg_count);
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)p.length, p.name);
        const size_t i = tare__op_param_index(call->op, name);
        assert(i < call->param_count || is_ignored(remarks, name));
        if (i < call->param_count) call->param[i] = &call->args[k];
    }
    return TARE_OK;
}

static tare_status bind_overload(op_call *call, const char *remarks) {
    const char *at = remarks, *chars;
    size_t length;
    TARE_TRY(bind_positional(call, remarks));
    while (next_remark(&at, &chars, &length)) TARE_TRY(bind_constant(call, chars, length));
    for (size_t k = 0; k < call->kwarg_count; k++)
        if (!is_ignored(remarks, call->kwargs[k].name))
            TARE_TRY(bind_keyword(call, call->op, &call->kwargs[k]));
    return TARE_OK;
}

const op_info *tare__op_of_family(const op_table *family, const char *id) {
    for (size_t i = 0; i < family->count; i++) {
        const op_info *op = &family->rows[i];
        if (op->id[0] == id[0] && strcmp(op->id, id) == 0) return op;
    }
    return NULL;
}

static const char *remarks_on(const op_info *op, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = op->overloads; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ' ? 1 : 0;
        if (strncmp(at, name, length) != 0) continue;
        if (at[length] == '(') return at + length + 1;
        if (at[length] == ' ' || at[length] == '\0') return "";
    }
    return NULL;
}

const char *tare__op_overload(const op_info *op, const char *name) {
    op_name usual;
    const char *remarks = remarks_on(op, name);
    return remarks == NULL && tare__overload_usual_name(name, &usual) ? remarks_on(op, usual.text)
                                                                      : remarks;
}

tare_status tare__call_bind(op_call *call, const op_info *op) {
    call->op = op;
    memset(call->param, 0, sizeof call->param);
    call->param_count = tare__op_param_count(op);
    const char *remarks = call->function != NULL ? tare__op_overload(op, call->function) : NULL;
    if (remarks != NULL) return bind_overload(call, remarks);
    param_name p = {0};
    size_t taken = 0;
    bool variadic = false;
    for (size_t i = 0; i < call->param_count && param_at(op->params, i, &p) && !p.config_only;
         i++) {
        variadic = p.variadic;
        if (variadic) {
            TARE_TRY(bind_rest(call, i, &call->param[i]));
            break;
        }
        if (i < call->arg_count) call->param[i] = &call->args[i];
        taken++;
    }
    if (!variadic && call->arg_count > taken)
        return tare__call_fail(call, "takes at most %zu arguments, found %zu", taken,
                               call->arg_count);
    for (size_t k = 0; k < call->kwarg_count; k++)
        TARE_TRY(bind_keyword(call, op, &call->kwargs[k]));
    return TARE_OK;
}

// --- typed access ---

static tare_status wrong_kind(op_call *call, size_t i, const char *expected) {
    char name[64] = "";
    if (call->op != NULL) tare__op_param_name(call->op, i, name, sizeof name);
    return tare__call_fail(call, "argument '%s' (%zu) must be %s, found %s", name, i + 1, expected,
                           kind_name(call->param[i]));
}

bool tare__call_given(const op_call *call, size_t i) {
    return call->param[i] != NULL && call->param[i]->kind != VALUE_NONE;
}

const tare_tensor *tare__call_tensor(const op_call *call, size_t i) {
    const value *v = call->param[i];
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

tare_status tare__call_need_tensor(op_call *call, size_t i, const tare_tensor **out) {
    *out = tare__call_tensor(call, i);
    return *out != NULL ? TARE_OK : wrong_kind(call, i, "a tensor");
}

bool tare__call_number(const value *v, double *out) {
    if (v->kind == VALUE_TENSOR) {
        const tare_tensor *t = v->as.tensor;
        if (t->count != 1 || t->data == NULL || t->q != NULL) return false;
        *out = tare__tensor_get(t, 0);
        return true;
    }
    return tare__value_number(v, out);
}

bool tare__call_integer(const value *v, int64_t *out) {
    double number;
    if (v->kind == VALUE_INT) {
        *out = v->as.integer;
        return true;
    }
    if (v->kind == VALUE_FLOAT || !tare__call_number(v, &number)) return false;
    if (!(fabs(number) < 0x1p62) || number != floor(number)) return false;
    *out = (int64_t)number;
    return true;
}

tare_status tare__call_int(op_call *call, size_t i, int64_t otherwise, int64_t *out) {
    *out = otherwise;
    if (!tare__call_given(call, i)) return TARE_OK;
    return tare__call_integer(call->param[i], out) ? TARE_OK : wrong_kind(call, i, "an int");
}

tare_status tare__call_double(op_call *call, size_t i, double otherwise, double *out) {
    *out = otherwise;
    if (!tare__call_given(call, i)) return TARE_OK;
    return tare__call_number(call->param[i], out) ? TARE_OK : wrong_kind(call, i, "a number");
}

tare_status tare__call_bool(op_call *call, size_t i, bool otherwise, bool *out) {
    double number = otherwise ? 1 : 0;
    if (tare__call_given(call, i) && !tare__call_number(call->param[i], &number))
        return wrong_kind(call, i, "a bool");
    *out = number != 0;
    return TARE_OK;
}

tare_status tare__call_text(op_call *call, size_t i, const char *otherwise, const char **out) {
    *out = otherwise;
    if (!tare__call_given(call, i)) return TARE_OK;
    if (call->param[i]->kind != VALUE_STRING) return wrong_kind(call, i, "a string");
    *out = call->param[i]->as.text;
    return TARE_OK;
}

tare_status tare__call_dtype(op_call *call, size_t i, tare_dtype otherwise, tare_dtype *out) {
    *out = otherwise;
    if (!tare__call_given(call, i) && otherwise != TARE_DTYPE_UNSET) return TARE_OK;
    const value *v = call->param[i];
    if (v == NULL || v->kind != VALUE_DTYPE) return wrong_kind(call, i, "a dtype");
    *out = v->as.dtype;
    return TARE_OK;
}

tare_status tare__call_int_list(op_call *call, size_t i, size_t capacity, int64_t *out,
                                size_t *count) {
    const value *v = call->param[i];
    if (v == NULL) return wrong_kind(call, i, "ints");
    const bool is_list = v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
    const value *items = is_list ? v->as.items : v;
    *count = is_list ? v->count : 1;
    if (*count > capacity)
        return tare__call_fail(call, "%zu values are too many, at most %zu fit", *count, capacity);
    for (size_t k = 0; k < *count; k++)
        if (!tare__call_integer(&items[k], &out[k])) return wrong_kind(call, i, "ints");
    return TARE_OK;
}

tare_status tare__call_ints(op_call *call, size_t i, size_t count, int64_t otherwise,
                            int64_t *out) {
    for (size_t k = 0; k < count; k++) out[k] = otherwise;
    if (!tare__call_given(call, i)) return TARE_OK;
    int64_t given[TARE_MAX_DIMS];
    size_t found = 0;
    TARE_TRY(tare__call_int_list(call, i, TARE_MAX_DIMS, given, &found));
    if (found == 0) return TARE_OK; // torch: an empty list is the default
    if (found != 1 && found != count)
        return tare__call_fail(call, "expected 1 or %zu values, found %zu", count, found);
    for (size_t k = 0; k < count; k++) out[k] = given[found == 1 ? 0 : k];
    return TARE_OK;
}

tare_status tare__call_dim(op_call *call, size_t i, int64_t otherwise, int ndim, int *out) {
    int64_t dim;
    TARE_TRY(tare__call_int(call, i, otherwise, &dim));
    const int range = ndim > 0 ? ndim : 1; // a scalar has dimensions 0 and -1
    if (dim < -range || dim >= range)
        return tare__call_fail(call, "dimension %lld is outside of [%d, %d]", (long long)dim,
                               -range, range - 1);
    *out = (int)(dim < 0 ? dim + range : dim);
    return TARE_OK;
}

tare_status tare__call_tensor_list(op_call *call, size_t i, const tare_tensor ***out,
                                   size_t *count) {
    const value *v = call->param[i];
    if (v == NULL || (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE) || v->count == 0)
        return wrong_kind(call, i, "a list of tensors");
    const tare_tensor **list = tare__arena_array(call->memory, v->count, sizeof *list);
    if (list == NULL) return tare__out_of_memory(call->err);
    for (uint32_t k = 0; k < v->count; k++) {
        if (v->as.items[k].kind != VALUE_TENSOR) return wrong_kind(call, i, "a list of tensors");
        list[k] = v->as.items[k].as.tensor;
    }
    *out = list;
    *count = v->count;
    return TARE_OK;
}

// --- results ---

tare_status tare__call_result(op_call *call, tare_dtype dtype, int ndim, const int64_t *shape,
                              const qparams *q) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__call_at(call, tare__tensor_meta(dtype, ndim, shape, q, &t, call->err)));
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

void tare__call_result_tensor(op_call *call, tare_tensor *t) {
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = tare_tensor_retain(t)};
}

tare_status tare__call_result_tuple(op_call *call, uint32_t count) {
    const value tuple = tare__value_sequence(call->memory, VALUE_TUPLE, count);
    if (tuple.as.items == NULL) return tare__out_of_memory(call->err);
    call->result = tuple;
    return TARE_OK;
}

tare_status tare__call_result_item(op_call *call, uint32_t i, tare_dtype dtype, int ndim,
                                   const int64_t *shape) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__call_at(call, tare__tensor_meta(dtype, ndim, shape, NULL, &t, call->err)));
    call->result.as.items[i] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

tare_status tare__call_result_pair(op_call *call, tare_dtype first, tare_dtype second, int ndim,
                                   const int64_t *shape) {
    TARE_TRY(tare__call_result_tuple(call, 2));
    TARE_TRY(tare__call_result_item(call, 0, first, ndim, shape));
    return tare__call_result_item(call, 1, second, ndim, shape);
}

tare_status tare__call_overwrite(op_call *call, size_t i, int64_t count, const float *data) {
    tare_tensor *now = NULL;
    if (call->write == NULL) return TARE_OK;
    TARE_TRY(tare_tensor_from_data(TARE_FLOAT32, 1, &count, data, &now, call->err));
    const tare_status status = call->write(call->writer, call->param[i], now);
    tare_tensor_release(now);
    return status;
}

module *tare__call_own(const op_call *call, const module *m) {
    return call->own != NULL ? (module *)m : NULL; // NOLINT: the run may change m
}

tare_tensor *tare__call_out(op_call *call) {
    return call->result.kind == VALUE_TENSOR ? call->result.as.tensor : NULL;
}

void tare__value_release_tensors(value *v) {
    if (v->kind == VALUE_TENSOR) {
        tare_tensor_release(v->as.tensor);
        *v = tare__none();
    } else if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) tare__value_release_tensors(&v->as.items[i]);
    }
}

static void retain_tensors(value *v) {
    if (v->kind == VALUE_TENSOR)
        tare_tensor_retain(v->as.tensor);
    else if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) retain_tensors(&v->as.items[i]);
}

// True if v has at most *left items and is not nested too deeply. Without limits, a few operators
// that concatenate a list with itself could exceed all memory, or nest lists deeper than the stack.
static bool is_small(const value *v, uint32_t *left, int depth) {
    if (!tare__value_has_items(v)) return true;
    if (depth == VALUE_MOST_DEPTH || v->count > *left) return false;
    *left -= v->count;
    for (uint32_t i = 0; i < v->count; i++)
        if (!is_small(&v->as.items[i], left, depth + 1)) return false;
    return true;
}

tare_status tare__value_share(arena *memory, const value *v, value *out, tare_error *err) {
    uint32_t left = VALUE_MOST_ITEMS;
    if (!is_small(v, &left, 0))
        return tare__fail(err, TARE_UNSUPPORTED,
                          "a result has more than %d items, or nests deeper than %d",
                          VALUE_MOST_ITEMS, VALUE_MOST_DEPTH);
    TARE_TRY(tare__value_copy(memory, v, NULL, NULL, out, err));
    retain_tensors(out);
    return TARE_OK;
}

bool tare__value_has_data(const value *v) {
    if (v->kind == VALUE_TENSOR) return v->as.tensor->data != NULL;
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++)
            if (!tare__value_has_data(&v->as.items[i])) return false;
    return true;
}

bool tare__value_is_empty(const value *v) {
    if (v->kind == VALUE_TENSOR) return v->as.tensor->count == 0;
    if (!tare__value_has_items(v) || v->count == 0) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (!tare__value_is_empty(&v->as.items[i])) return false;
    return true;
}

bool tare__call_is_done(const op_call *call) {
    const bool looks = call->module != NULL && call->module->class->role == ROLE_OBSERVER;
    return !looks && tare__value_has_data(&call->result);
}

static tare_status allocate(value *v, tare_error *err) {
    if (v->kind == VALUE_TENSOR) return tare__tensor_allocate(v->as.tensor, err);
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) TARE_TRY(allocate(&v->as.items[i], err));
    return TARE_OK;
}

static void count_missing(const value *v, uint64_t *bytes, const tare_tensor **largest) {
    if (v->kind == VALUE_TENSOR && v->as.tensor->data == NULL) {
        const tare_tensor *t = v->as.tensor;
        const uint64_t more = tare__tensor_bytes(t);
        *bytes = more > UINT64_MAX - *bytes ? UINT64_MAX : *bytes + more;
        if (*largest == NULL || more > tare__tensor_bytes(*largest)) *largest = t;
    } else if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) count_missing(&v->as.items[i], bytes, largest);
    }
}

// Without a budget, small results are not checked against the machine's memory.
enum { SMALL_BYTES = 1 << 28 };

static tare_status take_memory(op_call *call) {
    const tare_tensor *largest = NULL;
    uint64_t bytes = 0;
    char shape[200], what[256];
    count_missing(&call->result, &bytes, &largest);
    if (largest == NULL || (call->budget == NULL && bytes <= SMALL_BYTES)) return TARE_OK;
    memory_budget own = {0};
    if (call->budget == NULL) own = tare__run_budget(0);
    memory_budget *budget = call->budget != NULL ? call->budget : &own;
    tare__shape_text(largest->ndim, largest->shape, shape, sizeof shape);
    (void)snprintf(what, sizeof what, "a result %s %s", tare_dtype_name(largest->dtype), shape);
    return tare__call_at(call, tare__budget_take(budget, bytes, what, call->err));
}

uint64_t tare__call_memory_left(const op_call *call) {
    bool is_enough = false;
    if (call->budget == NULL) return 0;
    (void)tare__budget_has(call->budget, UINT64_MAX, &is_enough, NULL); // recounts
    const memory_budget *b = call->budget;
    return b->used < b->limit ? b->limit - b->used : 1;
}

tare_status tare__call_allocate(op_call *call) {
    TARE_TRY(take_memory(call));
    return allocate(&call->result, call->err);
}
