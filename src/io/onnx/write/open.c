// SPDX-License-Identifier: Apache-2.0
// Dimensions that stay open in the written file, in addition to the batch. A size is recognized by
// its values in two traces, and computed from the inputs' shapes as the graph does it.
#include <string.h>

#include "core/json/json.h"
#include "io/onnx/write/state.h"
#include "ops/ids.h"

// --- finding ---

// Reads the names of dimensions from the graph's description of an input.
static tare_status read_names(onnx_writer *w, const node *n, const char **out) {
    json_t *meta = NULL;
    if (n == NULL || n->meta_json == NULL) return TARE_OK;
    TARE_TRY(tare__json_parse(n->meta_json, strlen(n->meta_json), &meta, w->err));
    const json_t *shape = json_object_get(json_object_get(meta, "val"), "shape");
    bool fits = true;
    for (size_t d = 0; d < json_array_size(shape) && d < TARE_MAX_DIMS; d++) {
        const char *name = json_string_value(json_array_get(shape, d));
        if (name != NULL) fits &= (out[d] = tare__arena_strdup(&w->memory, name)) != NULL;
    }
    json_decref(meta);
    return fits ? TARE_OK : tare__out_of_memory(w->err);
}

static bool has_more_than_batch(const onnx_write_spec *spec) {
    for (size_t i = 0; i < spec->input_count; i++)
        for (int d = 1; d < spec->inputs[i].ndim; d++)
            if (spec->inputs[i].shape[d] < 0) return true;
    return false;
}

tare_status tare__onnx_find_open(onnx_writer *w) {
    const onnx_write_spec *spec = w->spec;
    if (!has_more_than_batch(spec)) return TARE_OK;
    w->dim_names =
        tare__arena_array(&w->memory, spec->input_count * TARE_MAX_DIMS, sizeof *w->dim_names);
    if (w->dim_names == NULL) return tare__out_of_memory(w->err);
    size_t i = 0;
    for (const node *n = w->root->graph->first; n != NULL && i < spec->input_count; n = n->next)
        if (tare__node_is_input(n)) TARE_TRY(read_names(w, n, &w->dim_names[i++ * TARE_MAX_DIMS]));
    for (i = 0; i < spec->input_count; i++)
        for (int d = 0; d < spec->inputs[i].ndim; d++)
            if (spec->inputs[i].shape[d] < 0)
                TARE_TRY(tare__onnx_open_add(&w->open, &w->memory, spec->inputs[i].name,
                                             spec->inputs[i].ndim, d,
                                             w->dim_names[i * TARE_MAX_DIMS + (size_t)d], w->err));
    return TARE_OK;
}

const char *tare__onnx_open_name(const onnx_writer *w, int64_t size, int64_t other) {
    for (size_t i = 0; i < w->open.count; i++) {
        const onnx_open_dim *d = &w->open.items[i];
        if (d->now == size && d->other == other) return d->is_named ? d->name : NULL;
    }
    return NULL;
}

// --- sizes ---

static void keep(onnx_out *o, int64_t size, int64_t other, const char *name) {
    char key[ONNX_SIZE_KEY];
    tare__onnx_size_key(size, other, key);
    if (!tare__out_failed(o) && !tare__map_set(&o->w->numbers, key, (void *)name))
        tare__out_try(o, tare__out_of_memory(o->call.err));
}

// The dimension of t that has both sizes; -1 if there is none.
static int find_dimension(const onnx_writer *w, const tare_tensor *t, const tare_tensor *u,
                          int64_t size, int64_t other) {
    if (t->ndim != u->ndim || tare__out_bound(w, t) == NULL) return -1;
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] == size && u->shape[d] == other) return d;
    return -1;
}

// The input, or else the argument of the call, with such a dimension; NULL if there is none.
static const tare_tensor *find_tensor(const onnx_out *o, int64_t size, int64_t other, int *dim) {
    const onnx_writer *w = o->w;
    for (size_t i = 0; i < w->spec->input_count; i++) {
        const tare_tensor *t = w->trace.inputs[i].as.tensor;
        *dim = find_dimension(w, t, w->other.inputs[i].as.tensor, size, other);
        if (*dim >= 0) return t;
    }
    if (o->other == NULL) return NULL;
    const op_call *a = &o->record->call, *b = &o->other->call;
    for (size_t i = 0; i < a->arg_count && i < b->arg_count; i++) {
        if (a->args[i].kind != VALUE_TENSOR || b->args[i].kind != VALUE_TENSOR) continue;
        *dim = find_dimension(w, a->args[i].as.tensor, b->args[i].as.tensor, size, other);
        if (*dim >= 0) return a->args[i].as.tensor;
    }
    return NULL;
}

bool tare__out_knows_size(const onnx_out *o, int64_t size, int64_t other) {
    int dim;
    char key[ONNX_SIZE_KEY];
    tare__onnx_size_key(size, other, key);
    return tare__map_has(&o->w->numbers, key) || find_tensor(o, size, other, &dim) != NULL;
}

const char *tare__out_open_size(onnx_out *o, int64_t size, int64_t other) {
    int dim;
    char key[ONNX_SIZE_KEY];
    tare__onnx_size_key(size, other, key);
    const char *made = tare__map_get(&o->w->numbers, key);
    if (made != NULL) return made;
    const tare_tensor *t = find_tensor(o, size, other, &dim);
    if (t == NULL) {
        tare__out_refuse(o, "a size depends on open dimensions in a way that is not written");
        return "";
    }
    made = tare__out_slice(o, OUT(o, "Shape", tare__out_quantized(o, t)), 0, dim, dim + 1, 1);
    keep(o, size, other, made);
    return made;
}

// --- arithmetic ---

static const struct {
    op_id op;
    const char *op_type;
} functions[] = {
    {TARE_OP_ADD, "Add"},          {TARE_OP_SUB, "Sub"},       {TARE_OP_MUL, "Mul"},
    {TARE_OP_FLOOR_DIVIDE, "Div"}, {TARE_OP_REMAINDER, "Mod"}, {TARE_OP_SYM_MAX, "Max"},
    {TARE_OP_SYM_MIN, "Min"},
};

static const char *function_of(const op_call *call) {
    const op_id op = tare__op_id(call->op);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].op == op) return functions[i].op_type;
    return NULL;
}

// A number, which may be a size, as a vector of one element.
static const char *operand(onnx_out *o, const value *a, const value *b) {
    if (a == NULL || b == NULL || a->kind != VALUE_INT || b->kind != VALUE_INT) {
        tare__out_refuse(o, "a number that is not an int is not written");
        return "";
    }
    return tare__out_sizes(o, &a->as.integer, &b->as.integer, 1);
}

static bool is_large(int64_t size) {
    enum { LEAST_LARGE = 12 };
    return size >= LEAST_LARGE;
}

void tare__out_number_node(onnx_out *o) {
    const value *a = &o->record->result, *b = o->other != NULL ? &o->other->result : NULL;
    const bool follows =
        b != NULL && a->kind == VALUE_INT && b->kind == VALUE_INT && a->as.integer != b->as.integer;
    char key[ONNX_SIZE_KEY];
    if (o->w->open.count == 0 || !follows) return;
    tare__onnx_size_key(a->as.integer, b->as.integer, key);
    if (tare__map_has(&o->w->numbers, key)) return;
    if (tare__op_id(o->call.op) == TARE_OP_SIZE) {
        (void)tare__out_open_size(o, a->as.integer, b->as.integer);
        return;
    }
    // Small quotients and remainders of different sizes are often equal by chance.
    if (!is_large(a->as.integer) || !is_large(b->as.integer)) return;
    const char *op_type = function_of(&o->call);
    const op_call *other = &o->other->call;
    if (op_type == NULL) return; // nodes that need it are refused later
    const char *left = operand(o, o->call.param[0], other->param[0]);
    const char *right = operand(o, o->call.param[1], other->param[1]);
    if (!tare__out_failed(o)) keep(o, a->as.integer, b->as.integer, OUT(o, op_type, left, right));
}
