// SPDX-License-Identifier: Apache-2.0
// Finds shapes with symbolic sizes by running the graph on shapes with two values of each symbol.
#include "io/pt2/write/sizes.h"

#include <inttypes.h>
#include <string.h>

#include "core/json/write.h"
#include "core/memory/alloc.h"
#include "io/pt2/expression.h"
#include "io/pt2/payload.h"
#include "ops/interpret.h"
#include "ops/op.h"

enum { MOST_SYMBOLS = 16, MOST_RUNS = MOST_SYMBOLS + 2, MOST_HINT = 1 << 16 };

// The value of one size in every run.
typedef struct numbers {
    int64_t in[MOST_RUNS];
} numbers;

typedef struct known_size {
    numbers n;
    const char *text; // the expression
} known_size;

typedef struct traced {
    bool is_known;
    value v; // owns references
} traced;

struct pt2_sizes {
    const module *root;
    const graph *g;
    json_t *about;  // the graph's export_json; may be NULL
    json_t **metas; // by id
    map symbols;    // name -> index + 1
    size_t run_count;
    map values[MOST_RUNS];      // of symbols in each run: name -> number
    traced *results[MOST_RUNS]; // by id
    known_size *sizes;
    size_t size_count, size_capacity;
    tare_error *why; // why a run failed
    arena memory;
    tare_error *err;
};

// --- metadata from the file ---

const json_t *tare__pt2_sizes_about(const pt2_sizes *s) {
    return s->about;
}

const json_t *tare__pt2_sizes_meta(const pt2_sizes *s, const node *n) {
    return s->metas[n->id];
}

// The entry {"shape": .., "dtype": .., "tensor": ..} of n, or of one of its results.
static const json_t *stored(const pt2_sizes *s, const node *n, int64_t item) {
    const json_t *meta = s->metas[n->id], *val = json_object_get(meta, "val");
    if (val == NULL) val = json_object_get(meta, "example");
    if (item < 0) return json_is_object(val) ? val : NULL;
    return json_is_array(val) ? json_array_get(val, (size_t)item) : NULL;
}

static const json_t *stored_number(const pt2_sizes *s, const node *n, const char **kind) {
    const json_t *symbolic = json_object_get(s->metas[n->id], "symbolic");
    void *first = symbolic != NULL ? json_object_iter((json_t *)symbolic) : NULL;
    if (first == NULL) return NULL;
    *kind = json_object_iter_key(first);
    return json_object_iter_value(first);
}

static const char *expression_of(const json_t *size) {
    return json_string_value(json_object_get(json_object_get(size, "as_expr"), "expr_str"));
}

static bool hint_of(const json_t *size, int64_t *out) {
    const json_t *hint =
        json_object_get(json_object_get(json_object_get(size, "as_expr"), "hint"), "as_int");
    *out = json_integer_value(hint);
    return json_is_integer(hint);
}

// A size in the file, evaluated for every run. False if it cannot be.
static bool evaluate(const pt2_sizes *s, const json_t *size, numbers *out) {
    const json_t *number = json_object_get(size, "as_int");
    const char *expression = expression_of(size);
    for (size_t k = 0; k < s->run_count; k++) {
        if (json_is_integer(number))
            out->in[k] = json_integer_value(number);
        else if (expression == NULL ||
                 !tare__expression_value(expression, &s->values[k], &out->in[k]))
            return false;
    }
    return true;
}

// --- symbols ---

static bool note_symbol(void *user, const char *name, size_t length) {
    pt2_sizes *s = user;
    char *copy = tare__arena_strndup(&s->memory, name, length);
    if (copy == NULL) return false;
    if (tare__map_has(&s->symbols, copy) || s->symbols.count == MOST_SYMBOLS) return true;
    return tare__map_set(&s->symbols, copy, tare__map_int(s->symbols.count + 1));
}

typedef bool (*size_visitor)(pt2_sizes *s, const json_t *size);

// Visits the sizes of all input tensors, and input numbers.
static bool each_input_size(pt2_sizes *s, size_visitor visit) {
    for (const node *n = s->g->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        const char *kind = NULL;
        const json_t *number = stored_number(s, n, &kind);
        if (number != NULL && !visit(s, number)) return false;
        const json_t *sizes = json_object_get(json_object_get(stored(s, n, -1), "tensor"), "sizes");
        for (size_t d = 0; d < json_array_size(sizes); d++)
            if (!visit(s, json_array_get(sizes, d))) return false;
    }
    return true;
}

static bool note_symbols(pt2_sizes *s, const json_t *size) {
    const char *expression = expression_of(size);
    return expression == NULL || tare__expression_symbols(expression, note_symbol, s);
}

// Finds a symbol's value at export from a hint, e.g. 3 if the hint of Mul(2, s0) is 6. If several
// symbols of the expression are unknown, the others must be found from other sizes first.
static bool set_hint(pt2_sizes *s, const json_t *size) {
    const char *expression = expression_of(size);
    int64_t hint, now;
    if (expression == NULL || !hint_of(size, &hint) || hint < 0 || hint > INT32_MAX) return true;
    if (tare__expression_value(expression, &s->values[0], &now)) return true;
    for (size_t i = 0; i < s->symbols.count; i++) {
        const char *name = s->symbols.entries[i].key;
        if (tare__map_has(&s->values[0], name)) continue;
        for (int64_t guess = 0; guess <= (hint < MOST_HINT ? hint : MOST_HINT); guess++) {
            const int64_t tried = (hint + guess) % (hint + 1); // the hint itself first
            if (!tare__map_set(&s->values[0], name, tare__map_int((size_t)tried))) return false;
            if (tare__expression_value(expression, &s->values[0], &now) && now == hint) return true;
        }
        tare__map_remove(&s->values[0], name);
    }
    return true;
}

// Another value for a symbol: `step` more, or `step` less if that exceeds its range.
static int64_t changed(const pt2_sizes *s, const char *name, int64_t from, int64_t step) {
    const json_t *range = json_object_get(json_object_get(s->about, "range_constraints"), name);
    const json_t *most = json_object_get(range, "max_val");
    if (!json_is_integer(most) || from + step <= json_integer_value(most)) return from + step;
    return from > step ? from - step : from;
}

// Symbols without a hint get the least value of their range, but at least 2, because torch treats 0
// and 1 specially.
static bool set_other_hints(pt2_sizes *s) {
    for (size_t i = 0; i < s->symbols.count; i++) {
        const char *name = s->symbols.entries[i].key;
        if (tare__map_has(&s->values[0], name)) continue;
        const json_t *range = json_object_get(json_object_get(s->about, "range_constraints"), name);
        const json_int_t least = json_integer_value(json_object_get(range, "min_val"));
        const size_t chosen = least > 2 && least < MOST_HINT ? (size_t)least : 2;
        if (!tare__map_set(&s->values[0], name, tare__map_int(chosen))) return false;
    }
    return true;
}

// Run 0 uses the hints, run k + 1 changes the value of symbol k, and the last run changes all.
static tare_status choose_values(pt2_sizes *s) {
    // set_hint twice, for symbols that depend on a hint of a later size.
    if (!each_input_size(s, note_symbols) || !each_input_size(s, set_hint) ||
        !each_input_size(s, set_hint) || !set_other_hints(s))
        return tare__out_of_memory(s->err);
    s->run_count = s->symbols.count == 0 ? 1 : s->symbols.count + 2;
    for (size_t k = 1; k < s->run_count; k++)
        for (size_t i = 0; i < s->symbols.count; i++) {
            const char *name = s->symbols.entries[i].key;
            int64_t now = (int64_t)(size_t)tare__map_get(&s->values[0], name);
            if (k == i + 1) now = changed(s, name, now, 1);
            if (k == s->run_count - 1) now = changed(s, name, now, (int64_t)i + 2);
            if (!tare__map_set(&s->values[k], name, tare__map_int((size_t)now)))
                return tare__out_of_memory(s->err);
        }
    return TARE_OK;
}

// --- runs on shapes ---

static bool size_in_run(const pt2_sizes *s, size_t k, const json_t *size, int64_t *out) {
    const char *expression = expression_of(size);
    if (expression != NULL) return tare__expression_value(expression, &s->values[k], out);
    const json_t *number = json_is_integer(size) ? size : json_object_get(size, "as_int");
    *out = json_integer_value(number);
    return json_is_integer(number);
}

static tare_status unknown_input(const pt2_sizes *s, const node *n) {
    return tare__fail(s->why, TARE_INVALID_ARGUMENT, "the shape of input '%s' is not known",
                      n->target);
}

static tare_status make_input(pt2_sizes *s, size_t k, const node *n, value *out) {
    const char *kind = NULL;
    const json_t *val = stored(s, n, -1), *number = stored_number(s, n, &kind);
    int64_t shape[TARE_MAX_DIMS];
    if (number != NULL) {
        if (!size_in_run(s, k, number, &shape[0])) return unknown_input(s, n);
        *out = tare__int(shape[0]);
        return TARE_OK;
    }
    if (val == NULL && n->arg_count > 0) {
        *out = n->args[0];
        return TARE_OK;
    }
    const json_t *tensor = json_object_get(val, "tensor");
    const json_t *sizes =
        json_object_get(tensor != NULL ? tensor : val, tensor != NULL ? "sizes" : "shape");
    const char *dtype = json_string_value(json_object_get(val, "dtype"));
    const size_t ndim = json_array_size(sizes);
    if (dtype == NULL || !json_is_array(sizes) || ndim > TARE_MAX_DIMS) return unknown_input(s, n);
    for (size_t d = 0; d < ndim; d++)
        if (!size_in_run(s, k, json_array_get(sizes, d), &shape[d])) return unknown_input(s, n);
    out->kind = VALUE_TENSOR;
    return tare__tensor_meta(tare_dtype_from_name(dtype), (int)ndim, shape, NULL, &out->as.tensor,
                             s->why);
}

typedef struct tracing {
    pt2_sizes *s;
    size_t k;
} tracing;

static tare_status keep_result(void *user, const node *n, const value *result, tare_error *err) {
    const tracing *t = user;
    traced *kept = &t->s->results[t->k][n->id];
    if (n->op == NODE_OUTPUT) return TARE_OK;
    TARE_TRY(tare__value_share(&t->s->memory, result, &kept->v, err));
    kept->is_known = true;
    return TARE_OK;
}

// A failure of the run is no error, because the file may state the sizes.
static tare_status trace(pt2_sizes *s, size_t k, value *inputs) {
    tracing t = {s, k};
    const interpreter it = {
        .root = s->root, .thread_count = 1, .shapes_only = true, .after = keep_result, .user = &t};
    value result = tare__none();
    size_t count = 0;
    tare_status status = TARE_OK;
    for (const node *n = s->g->first; n != NULL && status == TARE_OK; n = n->next)
        if (tare__node_is_input(n)) status = make_input(s, k, n, &inputs[count++]);
    if (status == TARE_OK)
        status = tare__interpret(&it, inputs, count, &s->memory, &result, s->why);
    if (status == TARE_OK) tare__value_release_tensors(&result);
    for (size_t i = 0; i < count; i++) tare__value_release_tensors(&inputs[i]);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(s->err) : TARE_OK;
}

static tare_status trace_all(pt2_sizes *s) {
    value *inputs = tare__arena_array(&s->memory, s->g->node_count + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(s->err);
    for (size_t k = 0; k < s->run_count; k++) {
        s->results[k] = tare__alloc_zeroed(s->g->next_id + 1, sizeof *s->results[k]);
        if (s->results[k] == NULL) return tare__out_of_memory(s->err);
        TARE_TRY(trace(s, k, inputs));
    }
    return TARE_OK;
}

// --- results ---

static const value *result_of(const pt2_sizes *s, size_t k, const node *n, int64_t item) {
    const traced *t = &s->results[k][n->id];
    if (!t->is_known) return NULL;
    if (item < 0) return &t->v;
    const bool has_items = t->v.kind == VALUE_LIST || t->v.kind == VALUE_TUPLE;
    return has_items && item < t->v.count ? &t->v.as.items[item] : NULL;
}

// The result's tensor in every run; false if a run has none.
static bool tensors_of(const pt2_sizes *s, const node *n, int64_t item,
                       const tare_tensor *out[MOST_RUNS]) {
    out[0] = NULL;
    for (size_t k = 0; k < s->run_count; k++) {
        const value *v = result_of(s, k, n, item);
        if (v == NULL || v->kind != VALUE_TENSOR) return false;
        out[k] = v->as.tensor;
        if (out[k]->ndim != out[0]->ndim) return false;
    }
    return out[0] != NULL;
}

pt2_kind tare__pt2_sizes_kind(const pt2_sizes *s, const node *n, int64_t item, pt2_kind otherwise) {
    const value *v = result_of(s, 0, n, item);
    const char *kind = "";
    if (item < 0 && stored_number(s, n, &kind) != NULL)
        return strcmp(kind, "as_sym_int") == 0     ? PT2_INT
               : strcmp(kind, "as_sym_float") == 0 ? PT2_FLOAT
                                                   : PT2_BOOL;
    if (v == NULL && stored(s, n, item) != NULL) return PT2_TENSOR;
    if (v == NULL && item < 0 && json_is_array(json_object_get(s->metas[n->id], "val")))
        return PT2_SEVERAL;
    if (v == NULL) return otherwise;
    switch (v->kind) {
    case VALUE_TENSOR:
        return PT2_TENSOR;
    case VALUE_INT:
        return PT2_INT;
    case VALUE_FLOAT:
        return PT2_FLOAT;
    case VALUE_BOOL:
        return PT2_BOOL;
    case VALUE_LIST:
    case VALUE_TUPLE:
        return PT2_SEVERAL;
    case VALUE_MODULE:
        return PT2_GRAPH;
    default:
        return PT2_NOTHING;
    }
}

size_t tare__pt2_sizes_count(const pt2_sizes *s, const node *n) {
    const value *v = result_of(s, 0, n, -1);
    if (v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE)) return v->count;
    return json_array_size(json_object_get(s->metas[n->id], "val"));
}

// --- sizes as text ---

static tare_status keep_size(pt2_sizes *s, const numbers *n, const char *expression) {
    for (size_t i = 0; i < s->size_count; i++)
        if (memcmp(s->sizes[i].n.in, n->in, s->run_count * sizeof *n->in) == 0) return TARE_OK;
    if (!tare__grow((void **)&s->sizes, &s->size_capacity, s->size_count, sizeof *s->sizes))
        return tare__out_of_memory(s->err);
    s->sizes[s->size_count++] = (known_size){*n, expression};
    return TARE_OK;
}

// Collects the expressions of all sizes in the file. Sizes of nodes that passes inserted are mostly
// among them.
static tare_status keep_sizes_of(pt2_sizes *s, const json_t *tensor) {
    const json_t *sizes = json_object_get(tensor, "sizes");
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        const json_t *size = json_array_get(sizes, d);
        numbers n;
        if (expression_of(size) != NULL && evaluate(s, size, &n))
            TARE_TRY(keep_size(s, &n, expression_of(size)));
    }
    return TARE_OK;
}

static tare_status keep_known_sizes(pt2_sizes *s) {
    for (const node *n = s->g->first; n != NULL; n = n->next) {
        const json_t *val = json_object_get(s->metas[n->id], "val");
        TARE_TRY(keep_sizes_of(s, json_object_get(val, "tensor")));
        for (size_t i = 0; i < json_array_size(val); i++)
            TARE_TRY(keep_sizes_of(s, json_object_get(json_array_get(val, i), "tensor")));
    }
    return TARE_OK;
}

static bool is_same_in_all(const pt2_sizes *s, const numbers *n) {
    for (size_t k = 1; k < s->run_count; k++)
        if (n->in[k] != n->in[0]) return false;
    return true;
}

// Tries to write a size as c0 + c1 s1 + c2 s2 .. The factors follow from the runs with one changed
// symbol; the last run verifies the result.
static bool write_affine(const pt2_sizes *s, const numbers *n, text *out) {
    int64_t factors[MOST_SYMBOLS] = {0}, constant = n->in[0], proof;
    const size_t last = s->run_count - 1;
    for (size_t i = 0; i < s->symbols.count; i++) {
        const char *name = s->symbols.entries[i].key;
        const int64_t before = (int64_t)(size_t)tare__map_get(&s->values[0], name);
        const int64_t after = (int64_t)(size_t)tare__map_get(&s->values[i + 1], name);
        if (after == before || (n->in[i + 1] - n->in[0]) % (after - before) != 0) return false;
        factors[i] = (n->in[i + 1] - n->in[0]) / (after - before);
        constant -= factors[i] * before;
    }
    proof = constant;
    tare__text_printf(out, "Add(Integer(%" PRId64 ")", constant);
    for (size_t i = 0; i < s->symbols.count; i++) {
        const char *name = s->symbols.entries[i].key;
        proof += factors[i] * (int64_t)(size_t)tare__map_get(&s->values[last], name);
        if (factors[i] != 0)
            tare__text_printf(
                out, ", Mul(Integer(%" PRId64 "), Symbol('%s', positive=True, integer=True))",
                factors[i], name);
    }
    tare__text_char(out, ')');
    return proof == n->in[last];
}

// Writes the expression of a size; false if none was found.
static bool find_expression(const pt2_sizes *s, const numbers *n, text *out) {
    if (is_same_in_all(s, n)) {
        tare__text_printf(out, "Integer(%" PRId64 ")", n->in[0]);
        return true;
    }
    for (size_t i = 0; i < s->size_count; i++)
        if (memcmp(s->sizes[i].n.in, n->in, s->run_count * sizeof *n->in) == 0) {
            tare__text_append(out, s->sizes[i].text);
            return true;
        }
    return write_affine(s, n, out);
}

static void write_size(const pt2_sizes *s, const numbers *n, const text *expression, text *out) {
    if (is_same_in_all(s, n)) {
        tare__text_printf(out, "{\"as_int\": %" PRId64 "}", n->in[0]);
        return;
    }
    tare__text_append(out, "{\"as_expr\": {\"expr_str\": ");
    tare__text_json_string(out, tare__text_chars(expression));
    tare__text_printf(out, ", \"hint\": {\"as_int\": %" PRId64 "}}}", n->in[0]);
}

static tare_status no_expression(const pt2_sizes *s, const node *n) {
    tare__fail(
        s->err, TARE_UNSUPPORTED,
        "node '%s': a size depends on the inputs' open sizes in a way that cannot be written",
        n->name);
    return tare__hint(s->err, TARE_UNSUPPORTED, "export the model with fixed sizes");
}

// --- tensors ---

// True if the file's sizes agree with all runs. They may not, because passes copy meta between
// nodes.
static bool agrees(const pt2_sizes *s, const json_t *val, const tare_tensor *const *tensors) {
    const json_t *tensor = json_object_get(val, "tensor");
    const json_t *sizes = json_object_get(tensor, "sizes");
    if ((int)json_array_size(sizes) != tensors[0]->ndim) return false;
    const char *dtype = json_string_value(json_object_get(val, "dtype"));
    if (dtype == NULL || tare_dtype_from_name(dtype) != tensors[0]->dtype) return false;
    for (int d = 0; d < tensors[0]->ndim; d++) {
        const json_t *size = json_array_get(sizes, (size_t)d);
        numbers n;
        int64_t hint;
        if (evaluate(s, size, &n)) {
            for (size_t k = 0; k < s->run_count; k++)
                if (n.in[k] != tensors[k]->shape[d]) return false;
        } else if (!hint_of(size, &hint) || hint != tensors[0]->shape[d]) {
            return false;
        }
    }
    return true;
}

static void write_rest(int code, bool requires_grad, text *out) {
    tare__text_printf(out,
                      "], \"storage_offset\": {\"as_int\": 0}, \"dtype\": %d, \"requires_grad\": "
                      "%s, \"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7}",
                      code, requires_grad ? "true" : "false");
}

static tare_status write_sizes(const pt2_sizes *s, const node *n, const tare_tensor *const *tensors,
                               text *out) {
    tare__text_append(out, "{\"sizes\": [");
    for (int d = 0; d < tensors[0]->ndim; d++) {
        numbers size;
        text expression = {0};
        for (size_t k = 0; k < s->run_count; k++) size.in[k] = tensors[k]->shape[d];
        const bool found = find_expression(s, &size, &expression);
        if (d > 0) tare__text_append(out, ", ");
        if (found) write_size(s, &size, &expression, out);
        out->failed = out->failed || expression.failed;
        tare__text_release(&expression);
        if (!found) return no_expression(s, n);
    }
    return TARE_OK;
}

// A stride is the product of the later sizes, in sympy's canonical form.
static tare_status write_stride(const pt2_sizes *s, const node *n, int d,
                                const tare_tensor *const *tensors, text *out) {
    numbers stride;
    text product = {0};
    bool found = true;
    for (size_t k = 0; k < s->run_count; k++) stride.in[k] = 1;
    tare__text_append(&product, "Mul(Integer(1)");
    for (int e = d + 1; e < tensors[0]->ndim; e++) {
        numbers size;
        for (size_t k = 0; k < s->run_count; k++) {
            size.in[k] = tensors[k]->shape[e] > 1 ? tensors[k]->shape[e] : 1;
            stride.in[k] *= size.in[k];
        }
        tare__text_append(&product, ", ");
        found = found && find_expression(s, &size, &product);
    }
    tare__text_char(&product, ')');
    if (found) write_size(s, &stride, &product, out);
    out->failed = out->failed || product.failed;
    tare__text_release(&product);
    return found ? TARE_OK : no_expression(s, n);
}

static tare_status write_tensor(const pt2_sizes *s, const node *n,
                                const tare_tensor *const *tensors, bool requires_grad, text *out) {
    const int code = tare__pt2_dtype_code(tensors[0]->dtype);
    if (code == 0)
        return tare__fail(s->err, TARE_UNSUPPORTED,
                          "node '%s': tensors of %s cannot be written to a program", n->name,
                          tare_dtype_name(tensors[0]->dtype));
    TARE_TRY(write_sizes(s, n, tensors, out));
    tare__text_append(out, "], \"strides\": [");
    for (int d = 0; d < tensors[0]->ndim; d++) {
        if (d > 0) tare__text_append(out, ", ");
        TARE_TRY(write_stride(s, n, d, tensors, out));
    }
    write_rest(code, requires_grad, out);
    return tare__text_status(out, s->err);
}

tare_status tare__pt2_sizes_data(const pt2_sizes *s, const node *n, const tare_tensor *t,
                                 bool requires_grad, text *out) {
    const tare_tensor *tensors[MOST_RUNS] = {t};
    for (size_t k = 1; k < s->run_count; k++) tensors[k] = t;
    return write_tensor(s, n, tensors, requires_grad, out);
}

// If no run determined the shape, that of the file is written.
static tare_status write_stored(const pt2_sizes *s, const node *n, const json_t *val, text *out) {
    const json_t *shape = json_object_get(val, "shape");
    const char *dtype = json_string_value(json_object_get(val, "dtype"));
    tare_tensor *t = NULL;
    int64_t sizes[TARE_MAX_DIMS];
    const size_t ndim = json_array_size(shape);
    bool is_known = dtype != NULL && json_is_array(shape) && ndim <= TARE_MAX_DIMS;
    for (size_t d = 0; is_known && d < ndim; d++) {
        sizes[d] = json_integer_value(json_array_get(shape, d));
        is_known = json_is_integer(json_array_get(shape, d)) && sizes[d] >= 0;
    }
    if (!is_known) {
        tare__fail(s->err, TARE_UNSUPPORTED, "the shape of node '%s' is unknown: %s", n->name,
                   tare_error_message(s->why));
        return tare__hint(s->err, TARE_UNSUPPORTED, "a .pt2 file states the shape of every value");
    }
    TARE_TRY(tare__tensor_meta(tare_dtype_from_name(dtype), (int)ndim, sizes, NULL, &t, s->err));
    const tare_status status = tare__pt2_sizes_data(s, n, t, false, out);
    tare_tensor_release(t);
    return status;
}

// The strides of an elementwise operator's operand, which its result has, too; NULL: unknown.
static const json_t *strides_like(const pt2_sizes *s, const node *n,
                                  const tare_tensor *const *tensors) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    const node *x = n->input_count > 0 ? n->inputs[0] : NULL;
    const tare_tensor *from[MOST_RUNS];
    const json_t *tensor = NULL;
    if (op == NULL || x == NULL || (op->traits & (OP_ELEMENTWISE | OP_ANY_DTYPE)) == 0 ||
        !tensors_of(s, x, -1, from) || from[0]->ndim != tensors[0]->ndim ||
        memcmp(from[0]->shape, tensors[0]->shape, sizeof from[0]->shape) != 0)
        return NULL;
    const json_t *val = stored(s, x, -1);
    if (val != NULL && agrees(s, val, from)) tensor = json_object_get(val, "tensor");
    return json_object_get(tensor, "strides");
}

static tare_status write_like(const pt2_sizes *s, const node *n, const tare_tensor *const *tensors,
                              const json_t *strides, text *out) {
    const int code = tare__pt2_dtype_code(tensors[0]->dtype);
    TARE_TRY(write_sizes(s, n, tensors, out));
    tare__text_append(out, "], \"strides\": [");
    for (size_t d = 0; d < json_array_size(strides); d++) {
        if (d > 0) tare__text_append(out, ", ");
        tare__json_write(json_array_get(strides, d), out);
    }
    write_rest(code, false, out);
    return tare__text_status(out, s->err);
}

tare_status tare__pt2_sizes_tensor(const pt2_sizes *s, const node *n, int64_t item, text *out) {
    const json_t *val = stored(s, n, item), *whole = json_object_get(val, "tensor");
    const tare_tensor *tensors[MOST_RUNS];
    const bool is_traced = tensors_of(s, n, item, tensors);
    if (whole != NULL && (!is_traced || agrees(s, val, tensors))) {
        tare__json_write(whole, out);
        return tare__text_status(out, s->err);
    }
    if (!is_traced) return write_stored(s, n, val, out);
    const json_t *strides = strides_like(s, n, tensors);
    if (strides != NULL && tare__pt2_dtype_code(tensors[0]->dtype) != 0)
        return write_like(s, n, tensors, strides, out);
    return write_tensor(s, n, tensors, false, out);
}

tare_status tare__pt2_sizes_number(const pt2_sizes *s, const node *n, text *out) {
    const char *kind = NULL;
    const json_t *kept = stored_number(s, n, &kind);
    if (kept != NULL) {
        tare__json_write(kept, out);
        return tare__text_status(out, s->err);
    }
    const value *first = result_of(s, 0, n, -1);
    numbers number = {0};
    text expression = {0};
    if (first != NULL && first->kind == VALUE_FLOAT) {
        tare__text_append(out, "{\"as_float\": ");
        tare__text_json_double(out, first->as.real);
        tare__text_char(out, '}');
        return tare__text_status(out, s->err);
    }
    if (first != NULL && first->kind == VALUE_BOOL) {
        tare__text_printf(out, "{\"as_bool\": %s}", first->as.boolean ? "true" : "false");
        return tare__text_status(out, s->err);
    }
    for (size_t k = 0; k < s->run_count; k++) {
        const value *v = result_of(s, k, n, -1);
        if (v == NULL || v->kind != VALUE_INT) return write_stored(s, n, NULL, out);
        number.in[k] = v->as.integer;
    }
    const bool found = find_expression(s, &number, &expression);
    if (found) write_size(s, &number, &expression, out);
    out->failed = out->failed || expression.failed;
    tare__text_release(&expression);
    return found ? tare__text_status(out, s->err) : no_expression(s, n);
}

// --- the whole ---

static tare_status read_metas(pt2_sizes *s) {
    s->metas = tare__alloc_zeroed(s->g->next_id + 1, sizeof(json_t *));
    if (s->metas == NULL) return tare__out_of_memory(s->err);
    if (s->g->export_json != NULL)
        TARE_TRY(tare__json_parse(s->g->export_json, strlen(s->g->export_json), &s->about, s->err));
    for (const node *n = s->g->first; n != NULL; n = n->next)
        if (n->meta_json != NULL)
            TARE_TRY(
                tare__json_parse(n->meta_json, strlen(n->meta_json), &s->metas[n->id], s->err));
    return TARE_OK;
}

static tare_status build(pt2_sizes *s) {
    TARE_TRY(read_metas(s));
    TARE_TRY(choose_values(s));
    TARE_TRY(trace_all(s));
    return keep_known_sizes(s);
}

tare_status tare__pt2_sizes_create(const module *root, pt2_sizes **out, tare_error *err) {
    pt2_sizes *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    s->root = root;
    s->g = root->graph;
    s->err = err;
    s->why = tare_error_create();
    const tare_status status = s->why != NULL ? build(s) : tare__out_of_memory(err);
    if (status == TARE_OK)
        *out = s;
    else
        tare__pt2_sizes_destroy(s);
    return status;
}

void tare__pt2_sizes_destroy(pt2_sizes *s) {
    if (s == NULL) return;
    for (size_t k = 0; k < MOST_RUNS; k++) {
        for (size_t id = 0; s->results[k] != NULL && id < s->g->next_id; id++)
            tare__value_release_tensors(&s->results[k][id].v);
        tare__free(s->results[k]);
        tare__map_release(&s->values[k]);
    }
    for (size_t id = 0; s->metas != NULL && id < s->g->next_id; id++) json_decref(s->metas[id]);
    tare__free(s->metas);
    json_decref(s->about);
    tare__map_release(&s->symbols);
    tare__free(s->sizes);
    tare_error_destroy(s->why);
    tare__arena_release(&s->memory);
    tare__free(s);
}
