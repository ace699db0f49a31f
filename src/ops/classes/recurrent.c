// SPDX-License-Identifier: Apache-2.0
// Recurrent modules: LSTM and GRU over sequences, and single cells.
#include "ops/classes/recurrent.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/math/f32.h"
#include "dnnl/float_kernels.h"
#include "ops/classes/reference.h"
#include "ops/families/families.h"
#include "ops/rules.h"

enum { SUFFIX_SIZE = 48 };

typedef enum cell_kind { CELL_LSTM, CELL_GRU, CELL_TANH, CELL_RELU } cell_kind;

typedef struct recurrent_plan {
    const tare_tensor *x, *h, *c; // the state may be absent
    cell_kind kind;
    bool is_cell, batch_first;
    int64_t steps, batch, inner, hidden, layers, directions;
    // Only for functions, which have no module: their weights, `weights_each` per layer and
    // direction. The result of a function over sequences is flat: output, h, c.
    const tare_tensor **weights;
    const tare_tensor *cell_weights[4]; // what `weights` is of the function of a cell
    size_t weights_each;
} recurrent_plan;

// Parameters of functions over sequences, and of those of cells.
enum { HX = 1, WEIGHTS, HAS_BIASES, NUM_LAYERS, DROPOUT, TRAIN, BIDIRECTIONAL, BATCH_FIRST };
enum { CELL_WEIGHTS = 2, CELL_BIASES = 4 };

static int64_t gate_count(cell_kind kind) {
    return kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1;
}

// --- reading a call ---

static tare_status read_kind(op_call *call, recurrent_plan *p) {
    const module *m = call->module;
    const char *op = m == NULL ? call->op->id : m->class->op != NULL ? m->class->op : "";
    p->is_cell = strstr(op, "_cell") != NULL;
    if (strncmp(op, "lstm", 4) == 0)
        p->kind = CELL_LSTM;
    else if (strncmp(op, "gru", 3) == 0)
        p->kind = CELL_GRU;
    else if (strncmp(op, "rnn", 3) == 0) {
        const value *v = m != NULL ? tare__module_config(m, "nonlinearity") : NULL;
        const bool relu = strncmp(op, "rnn_relu", 8) == 0 ||
                          (v != NULL && v->kind == VALUE_STRING && strcmp(v->as.text, "relu") == 0);
        p->kind = relu ? CELL_RELU : CELL_TANH;
    } else
        return tare__call_fail(call, "needs a recurrent module");
    return TARE_OK;
}

static tare_status read_state(op_call *call, recurrent_plan *p) {
    if (!tare__call_given(call, 1)) return TARE_OK;
    const value *v = call->param[1];
    const bool is_pair = (v->kind == VALUE_TUPLE || v->kind == VALUE_LIST) && v->count == 2;
    const value *h = p->kind == CELL_LSTM && is_pair ? &v->as.items[0] : v;
    const value *c = p->kind == CELL_LSTM && is_pair ? &v->as.items[1] : NULL;
    const int64_t count = p->layers * p->directions * p->batch * p->hidden;
    const bool fits =
        h->kind == VALUE_TENSOR && h->as.tensor->dtype == TARE_FLOAT32 &&
        h->as.tensor->count == count && (p->kind == CELL_LSTM) == (c != NULL) &&
        (c == NULL || (c->kind == VALUE_TENSOR && c->as.tensor->dtype == TARE_FLOAT32 &&
                       c->as.tensor->count == count));
    if (!fits) return tare__call_fail(call, "the state does not fit the input or the module");
    p->h = h->as.tensor;
    p->c = c != NULL ? c->as.tensor : NULL;
    return TARE_OK;
}

static tare_status read_module(op_call *call, recurrent_plan *p) {
    const module *m = call->module;
    p->hidden = tare__module_int(m, "hidden_size", 0);
    p->inner = tare__module_int(m, "input_size", 0);
    if (p->is_cell) return TARE_OK;
    p->layers = tare__module_int(m, "num_layers", 1);
    p->directions = tare__module_bool(m, "bidirectional", false) ? 2 : 1;
    p->batch_first = tare__module_bool(m, "batch_first", false);
    if (tare__module_int(m, "proj_size", 0) != 0)
        return tare__call_fail(call, "proj_size is not supported");
    return TARE_OK;
}

// The sizes follow from the first layer's weights.
static tare_status read_sizes(op_call *call, recurrent_plan *p) {
    if (p->weights[0]->ndim != 2 || p->weights[1]->ndim != 2)
        return tare__call_fail(call, "the weights must have 2 dimensions");
    p->inner = p->weights[0]->shape[1];
    p->hidden = p->weights[1]->shape[1];
    return TARE_OK;
}

// A cell has two weights and either two biases or none.
static tare_status read_cell_function(op_call *call, recurrent_plan *p) {
    const bool has_biases = tare__call_given(call, CELL_BIASES);
    p->weights = p->cell_weights;
    p->weights_each = has_biases ? 4 : 2;
    if (has_biases != tare__call_given(call, CELL_BIASES + 1))
        return tare__call_fail(call, "takes two biases or none");
    for (size_t i = 0; i < p->weights_each; i++)
        TARE_TRY(tare__call_need_tensor(call, CELL_WEIGHTS + i, &p->cell_weights[i]));
    return read_sizes(call, p);
}

static tare_status read_function(op_call *call, recurrent_plan *p) {
    bool has_biases, bidirectional;
    size_t count;
    TARE_TRY(tare__call_bool(call, HAS_BIASES, true, &has_biases));
    TARE_TRY(tare__call_int(call, NUM_LAYERS, 1, &p->layers));
    TARE_TRY(tare__call_bool(call, BIDIRECTIONAL, false, &bidirectional));
    TARE_TRY(tare__call_bool(call, BATCH_FIRST, false, &p->batch_first));
    TARE_TRY(tare__call_tensor_list(call, WEIGHTS, &p->weights, &count));
    p->directions = bidirectional ? 2 : 1;
    p->weights_each = has_biases ? 4 : 2;
    if (p->layers < 1 || p->layers > INT16_MAX ||
        count != (size_t)(p->layers * p->directions) * p->weights_each)
        return tare__call_fail(call,
                               "%zu weights do not fit %lld layers (proj_size is not supported)",
                               count, (long long)p->layers);
    return read_sizes(call, p);
}

static tare_status read_recurrent(op_call *call, recurrent_plan *p) {
    *p = (recurrent_plan){.steps = 1, .layers = 1, .directions = 1};
    TARE_TRY(read_kind(call, p));
    TARE_TRY(tare__need_float(call, 0, &p->x));
    if (p->x->ndim != (p->is_cell ? 2 : 3))
        return tare__call_fail(call, "input must have %d dimensions, found shape %s",
                               p->is_cell ? 2 : 3, tare__call_shape_text(call, p->x));
    TARE_TRY(call->module != NULL ? read_module(call, p)
             : p->is_cell         ? read_cell_function(call, p)
                                  : read_function(call, p));
    if (!p->is_cell) p->steps = p->x->shape[p->batch_first ? 1 : 0];
    p->batch = p->x->shape[p->is_cell || p->batch_first ? 0 : 1];
    if (p->hidden < 1 || p->hidden > INT32_MAX || p->layers < 1 || p->layers > INT16_MAX)
        return tare__call_fail(call, "hidden_size or num_layers is out of range");
    // Sizes of work space are products of these, and must not overflow.
    const int64_t rows = tare__size_product(p->steps, p->batch);
    const int64_t width = p->layers * p->directions * gate_count(p->kind) * p->hidden;
    if (tare__size_product(rows, width) > INT64_MAX / 64)
        return tare__call_fail(call, "input of shape %s is too large for hidden_size=%lld",
                               tare__call_shape_text(call, p->x), (long long)p->hidden);
    if (p->x->shape[p->x->ndim - 1] != p->inner)
        return tare__call_fail(call, "input of shape %s does not fit input_size=%lld",
                               tare__call_shape_text(call, p->x), (long long)p->inner);
    return read_state(call, p);
}

// --- shapes ---

static tare_status meta(op_call *call, int ndim, const int64_t *shape, value *out) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_meta(TARE_FLOAT32, ndim, shape, NULL, &t, call->err));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

// The state: h, or (h, c).
static tare_status state_result(op_call *call, const recurrent_plan *p, value *out) {
    const int64_t shape[] = {p->layers * p->directions, p->batch, p->hidden};
    const int64_t *sizes = p->is_cell ? shape + 1 : shape;
    const int ndim = p->is_cell ? 2 : 3;
    if (p->kind != CELL_LSTM) return meta(call, ndim, sizes, out);
    const value pair = tare__value_sequence(call->memory, VALUE_TUPLE, 2);
    if (pair.as.items == NULL) return tare__out_of_memory(call->err);
    *out = pair;
    TARE_TRY(meta(call, ndim, sizes, &pair.as.items[0]));
    return meta(call, ndim, sizes, &pair.as.items[1]);
}

tare_status tare__recurrent_shape(op_call *call) {
    recurrent_plan p;
    TARE_TRY(read_recurrent(call, &p));
    if (p.is_cell) return state_result(call, &p, &call->result);
    const int64_t width = p.directions * p.hidden;
    const int64_t shape[] = {p.batch_first ? p.batch : p.steps, p.batch_first ? p.steps : p.batch,
                             width};
    const bool is_flat = p.weights != NULL && p.kind == CELL_LSTM;
    TARE_TRY(tare__call_result_tuple(call, is_flat ? 3 : 2));
    value *items = call->result.as.items;
    TARE_TRY(meta(call, 3, shape, &items[0]));
    if (!is_flat) return state_result(call, &p, &items[1]);
    const int64_t state[] = {p.layers * p.directions, p.batch, p.hidden};
    TARE_TRY(meta(call, 3, state, &items[1]));
    return meta(call, 3, state, &items[2]);
}

// --- one step ---

// gi, gh: the gates' products with the input and the hidden state; gh is also work space. Updates h
// and c.
static void step_lstm(const element_loop *f, int64_t n, const float *gi, float *gh, float *h,
                      float *c) {
    for (int64_t k = 0; k < 4 * n; k++) gh[k] = gi[k] + gh[k];
    f[ELEMENT_SIGMOID](gh, gh, 2 * n, NULL);
    f[ELEMENT_TANH](gh + 2 * n, gh + 2 * n, n, NULL);
    f[ELEMENT_SIGMOID](gh + 3 * n, gh + 3 * n, n, NULL);
    for (int64_t k = 0; k < n; k++) c[k] = gh[n + k] * c[k] + gh[k] * gh[2 * n + k];
    f[ELEMENT_TANH](c, gh, n, NULL);
    for (int64_t k = 0; k < n; k++) h[k] = gh[3 * n + k] * gh[k];
}

static void step_gru(const element_loop *f, int64_t n, const float *gi, float *gh, float *h) {
    for (int64_t k = 0; k < 2 * n; k++) gh[k] = gi[k] + gh[k];
    f[ELEMENT_SIGMOID](gh, gh, 2 * n, NULL);
    float *fresh = gh + 2 * n;
    for (int64_t k = 0; k < n; k++) fresh[k] = gi[2 * n + k] + gh[k] * fresh[k];
    f[ELEMENT_TANH](fresh, fresh, n, NULL);
    for (int64_t k = 0; k < n; k++) h[k] = (h[k] - fresh[k]) * gh[n + k] + fresh[k];
}

static void step_plain(const element_loop *f, cell_kind kind, int64_t n, const float *gi,
                       const float *gh, float *h) {
    for (int64_t k = 0; k < n; k++) {
        const float sum = gi[k] + gh[k];
        h[k] = kind != CELL_TANH && sum < 0 ? 0.0f : sum;
    }
    if (kind == CELL_TANH) f[ELEMENT_TANH](h, h, n, NULL);
}

static void step_one(const element_loop *f, cell_kind kind, int64_t n, const float *gi, float *gh,
                     float *h, float *c) {
    if (c != NULL) // only LSTMs have a cell state
        step_lstm(f, n, gi, gh, h, c);
    else if (kind == CELL_GRU)
        step_gru(f, n, gi, gh, h);
    else
        step_plain(f, kind, n, gi, gh, h);
}

typedef struct layer_run {
    const recurrent_plan *p;
    const gate_source *gates;
    arena *memory;
    tare_error *err;
    const float *x; // [steps][batch][inner]
    int64_t inner;
    float *y; // [steps][batch][directions * hidden]; NULL: only the state is wanted
} layer_run;

// One direction of one layer; h and c, [batch][hidden], end as the final state.
static tare_status run_direction(const layer_run *r, const char *suffix, bool backwards, float *h,
                                 float *c) {
    const recurrent_plan *p = r->p;
    const int64_t width = gate_count(p->kind) * p->hidden, rows = p->steps * p->batch;
    float *gi = tare__arena_array(r->memory, (size_t)(rows * width) + 1, sizeof *gi);
    float *gh = tare__arena_array(r->memory, (size_t)(p->batch * width) + 1, sizeof *gh);
    if (gi == NULL || gh == NULL) return tare__out_of_memory(r->err);
    const gate_request of_input = {
        .suffix = suffix, .x = r->x, .rows = rows, .inner = r->inner, .width = width, .y = gi};
    const gate_request of_hidden = {.suffix = suffix,
                                    .of_hidden = true,
                                    .x = h,
                                    .rows = p->batch,
                                    .inner = p->hidden,
                                    .width = width,
                                    .y = gh};
    const element_loop *functions =
        r->gates->functions != NULL ? r->gates->functions : f32_elements__scalar;
    TARE_TRY(r->gates->product(r->gates->user, &of_input));
    for (int64_t s = 0; s < p->steps; s++) {
        const int64_t t = backwards ? p->steps - 1 - s : s;
        TARE_TRY(r->gates->product(r->gates->user, &of_hidden));
        for (int64_t b = 0; b < p->batch; b++) {
            float *row = h + b * p->hidden;
            step_one(functions, p->kind, p->hidden, gi + (t * p->batch + b) * width, gh + b * width,
                     row, c != NULL ? c + b * p->hidden : NULL);
            if (r->y != NULL)
                memcpy(r->y +
                           ((t * p->batch + b) * p->directions + (backwards ? 1 : 0)) * p->hidden,
                       row, (size_t)p->hidden * sizeof *row);
        }
    }
    return TARE_OK;
}

// --- layers ---

// [a][b][width] -> [b][a][width]
static void swap_first_two(const float *from, int64_t a, int64_t b, int64_t width, float *to) {
    for (int64_t i = 0; i < a; i++)
        for (int64_t j = 0; j < b; j++)
            memcpy(to + (j * a + i) * width, from + (i * b + j) * width,
                   (size_t)width * sizeof *to);
}

typedef struct state {
    float *h, *c; // [layers * directions][batch][hidden]; c is only used by LSTMs, else NULL
} state;

static void fill_state(float *to, const tare_tensor *from, size_t bytes) {
    if (from != NULL)
        memcpy(to, from->data, bytes);
    else
        memset(to, 0, bytes);
}

// The final state's tensors, filled with the initial one (zeros if there is none).
static state begin_state(op_call *call, const recurrent_plan *p) {
    const value *v = p->is_cell ? &call->result : &call->result.as.items[1];
    const bool is_pair = p->kind == CELL_LSTM;
    const bool is_flat = p->weights != NULL && !p->is_cell; // h and c follow each other
    const value *pair = is_flat ? v : v->as.items;
    state s = {tare__f32(is_pair ? pair[0].as.tensor : v->as.tensor),
               is_pair ? tare__f32(pair[1].as.tensor) : NULL};
    const size_t bytes = (size_t)(p->layers * p->directions * p->batch * p->hidden) * sizeof(float);
    fill_state(s.h, p->h, bytes);
    if (s.c != NULL) fill_state(s.c, p->c, bytes);
    return s;
}

static tare_status run_cell(op_call *call, const recurrent_plan *p, const gate_source *gates) {
    const layer_run r = {.p = p,
                         .gates = gates,
                         .memory = call->memory,
                         .err = call->err,
                         .x = tare__f32(p->x),
                         .inner = p->x->shape[1]};
    const state s = begin_state(call, p);
    return run_direction(&r, "", false, s.h, s.c);
}

static void suffix_of(int64_t layer, bool is_reverse, char out[SUFFIX_SIZE]) {
    snprintf(out, SUFFIX_SIZE, "_l%lld%s", (long long)layer, is_reverse ? "_reverse" : "");
}

static tare_status run_layer(layer_run *r, int64_t layer, const state *s) {
    const int64_t each = r->p->batch * r->p->hidden;
    for (int64_t d = 0; d < r->p->directions; d++) {
        char suffix[SUFFIX_SIZE];
        suffix_of(layer, d > 0, suffix);
        const int64_t at = (layer * r->p->directions + d) * each;
        TARE_TRY(run_direction(r, suffix, d > 0, s->h + at, s->c != NULL ? s->c + at : NULL));
    }
    return TARE_OK;
}

static tare_status run_layers(op_call *call, const recurrent_plan *p, const gate_source *gates) {
    const int64_t width = p->directions * p->hidden, rows = p->steps * p->batch;
    const int64_t inner = p->x->shape[2];
    layer_run r = {.p = p,
                   .gates = gates,
                   .memory = call->memory,
                   .err = call->err,
                   .x = tare__f32(p->x),
                   .inner = inner};
    float *first = tare__arena_array(call->memory, (size_t)(rows * inner) + 1, sizeof *first);
    if (first == NULL) return tare__out_of_memory(call->err);
    if (p->batch_first) {
        swap_first_two(r.x, p->batch, p->steps, inner, first);
        r.x = first;
    }
    const state s = begin_state(call, p);
    assert(p->layers >= 1); // as read_recurrent left it
    for (int64_t layer = 0; layer < p->layers; layer++) {
        r.y = tare__arena_array(call->memory, (size_t)(rows * width) + 1, sizeof *r.y);
        if (r.y == NULL) return tare__out_of_memory(call->err);
        TARE_TRY(run_layer(&r, layer, &s));
        r.x = r.y;
        r.inner = width;
    }
    float *out = tare__f32(call->result.as.items[0].as.tensor);
    if (p->batch_first)
        swap_first_two(r.y, p->steps, p->batch, width, out);
    else
        memcpy(out, r.y, (size_t)(rows * width) * sizeof *out);
    return TARE_OK;
}

tare_status tare__recurrent_run(op_call *call, const gate_source *gates) {
    recurrent_plan p;
    TARE_TRY(read_recurrent(call, &p));
    return p.is_cell ? run_cell(call, &p, gates) : run_layers(call, &p, gates);
}

tare_status tare__recurrent_each_suffix(const module *m,
                                        tare_status (*visit)(void *user, const char *suffix,
                                                             tare_error *err),
                                        void *user, tare_error *err) {
    if (strstr(m->class->op, "_cell") != NULL) return visit(user, "", err);
    const int64_t layers = tare__module_int(m, "num_layers", 1);
    const int64_t directions = tare__module_bool(m, "bidirectional", false) ? 2 : 1;
    for (int64_t i = 0; i < layers && layers <= INT16_MAX; i++)
        for (int64_t d = 0; d < directions; d++) {
            char suffix[SUFFIX_SIZE];
            suffix_of(i, d > 0, suffix);
            TARE_TRY(visit(user, suffix, err));
        }
    return TARE_OK;
}

// --- float and reference modules ---

// The weights of one layer and direction, kept across time steps, because those of a reference
// module are quantized and dequantized when loaded.
typedef struct float_gates {
    op_call *call;
    char suffix[SUFFIX_SIZE];
    tare_tensor *weight[2], *bias[2]; // of the input, of the hidden state; references owned
} float_gates;

static void drop_weights(float_gates *g) {
    for (int i = 0; i < 2; i++) {
        tare_tensor_release(g->weight[i]);
        tare_tensor_release(g->bias[i]);
        g->weight[i] = g->bias[i] = NULL;
    }
}

// A function takes its weights as a list: for every layer and direction weight_ih, weight_hh and,
// with biases, bias_ih, bias_hh.
static tare_status load_listed(float_gates *g, const char *suffix) {
    recurrent_plan p;
    TARE_TRY(read_recurrent(g->call, &p));
    for (int64_t layer = 0; layer < p.layers; layer++)
        for (int64_t d = 0; d < p.directions; d++) {
            char name[SUFFIX_SIZE] = ""; // that of a cell
            if (!p.is_cell) suffix_of(layer, d > 0, name);
            if (strcmp(name, suffix) != 0) continue;
            const tare_tensor **w = p.weights + (size_t)(layer * p.directions + d) * p.weights_each;
            for (size_t i = 0; i < 2; i++) {
                g->weight[i] = tare_tensor_retain((tare_tensor *)w[i]); // NOLINT: only read
                g->bias[i] =
                    p.weights_each == 4 ? tare_tensor_retain((tare_tensor *)w[2 + i]) : NULL;
            }
        }
    return TARE_OK;
}

static tare_status load_weights(float_gates *g, const char *suffix) {
    const module *m = g->call->module;
    drop_weights(g);
    snprintf(g->suffix, sizeof g->suffix, "%s", suffix);
    if (m == NULL) return load_listed(g, suffix);
    for (int i = 0; i < 2; i++) {
        char name[SUFFIX_SIZE + 16];
        snprintf(name, sizeof name, "weight_%s%s", i == 0 ? "ih" : "hh", suffix);
        if (tare__module_tensor(m, name) == NULL)
            return tare__call_fail(g->call, "the module has no tensor '%s'", name);
        TARE_TRY(tare__reference_values(m, name, &g->weight[i], g->call->err));
        snprintf(name, sizeof name, "bias_%s%s", i == 0 ? "ih" : "hh", suffix);
        g->bias[i] = tare_tensor_retain(tare__module_tensor(m, name));
    }
    return TARE_OK;
}

static tare_status float_product_of(void *user, const gate_request *r) {
    float_gates *g = user;
    if (g->weight[0] == NULL || strcmp(g->suffix, r->suffix) != 0)
        TARE_TRY(load_weights(g, r->suffix));
    const int side = r->of_hidden ? 1 : 0;
    const tare_tensor *w = g->weight[side], *bias = g->bias[side];
    const bool fits = w->dtype == TARE_FLOAT32 && w->ndim == 2 && w->shape[0] == r->width &&
                      w->shape[1] == r->inner &&
                      (bias == NULL || (bias->dtype == TARE_FLOAT32 && bias->count == r->width));
    if (!fits) return tare__call_fail(g->call, "the weights '%s' do not fit the module", r->suffix);
    const float_product product = {
        .rows = r->rows, .inner = r->inner, .columns = r->width, .transposed = true};
    return tare__float_multiply(g->call->kernels, &product, r->x, tare__f32(w),
                                bias != NULL ? tare__f32(bias) : NULL, r->y, g->call->err);
}

tare_status tare__recurrent_compute(op_call *call, const element_loop *functions) {
    float_gates g = {.call = call};
    const gate_source source = {.user = &g, .product = float_product_of, .functions = functions};
    const tare_status status = tare__recurrent_run(call, &source);
    drop_weights(&g);
    return status;
}

static tare_status recurrent_reference(op_call *call) {
    return tare__recurrent_compute(call, NULL);
}

bool tare__recurrent_is_float(const op_call *call) {
    const module *m = call->module;
    return call->op != NULL && call->op->reference == recurrent_reference &&
           (m == NULL || m->class->role == ROLE_FLOAT);
}

static int64_t recurrent_macs(const op_call *call) {
    recurrent_plan p;
    op_call quiet = *call;
    quiet.err = NULL;
    if (read_recurrent(&quiet, &p) != TARE_OK) return 0;
    const int64_t width = p.x->shape[p.x->ndim - 1], above = p.directions * p.hidden;
    const int64_t inner = width + (p.layers - 1) * above + p.layers * p.hidden;
    const int64_t outer = p.steps * p.batch * p.directions * gate_count(p.kind) * p.hidden;
    return tare__size_product(outer, inner);
}

#define RECURRENT(name)                                                                            \
    {                                                                                              \
        .id = name, .params = "input|hx", .module_inputs = "input|hx", .traits = OP_WEIGHTED,      \
        .shape = tare__recurrent_shape, .reference = recurrent_reference, .macs = recurrent_macs   \
    }

#define FUNCTION(name, aten)                                                                       \
    {                                                                                              \
        .id = name "_function", .functions = "torch.ops.aten." aten ".input|torch." aten,          \
        .params = "input|hx|params|has_biases|num_layers|dropout|train|bidirectional|batch_first", \
        .traits = OP_WEIGHTED, .shape = tare__recurrent_shape, .reference = recurrent_reference,   \
        .macs = recurrent_macs                                                                     \
    }

#define CELL(name)                                                                                 \
    {                                                                                              \
        .id = name "_function", .functions = "torch.ops.aten." name ".default|torch." name,        \
        .params = "input|hx|w_ih|w_hh|b_ih|b_hh", .traits = OP_WEIGHTED,                           \
        .shape = tare__recurrent_shape, .reference = recurrent_reference, .macs = recurrent_macs   \
    }

static const op_info rows[] = {
    FUNCTION("lstm", "lstm"),
    FUNCTION("gru", "gru"),
    FUNCTION("rnn_tanh", "rnn_tanh"),
    FUNCTION("rnn_relu", "rnn_relu"),
    CELL("lstm_cell"),
    CELL("gru_cell"),
    CELL("rnn_tanh_cell"),
    CELL("rnn_relu_cell"),
    RECURRENT("lstm"),
    RECURRENT("gru"),
    RECURRENT("lstm_cell"),
    RECURRENT("gru_cell"),
    RECURRENT("rnn_cell"),
    RECURRENT("rnn"),
};

const op_table tare__recurrent_ops = OP_TABLE(rows);
