// SPDX-License-Identifier: Apache-2.0
// Recurrent modules: sizes, and four tensors for each layer and direction.
#include <stdio.h>
#include <string.h>

#include "support/differential/random_graph.h"

static int64_t gates_of(const char *id) {
    return tare__starts_with(id, "lstm") ? 4 : tare__starts_with(id, "gru") ? 3 : 1;
}

static bool put(call_draft *d, module *m, const char *kind, const char *suffix, int ndim,
                int64_t rows, int64_t columns) {
    const int64_t shape[] = {rows, columns};
    char name[48];
    value unused;
    d->module = m;
    snprintf(name, sizeof name, "%s%s", kind, suffix);
    return random_constant(d, name, random_tensor(d->g, TARE_FLOAT32, ndim, shape), &unused);
}

static bool put_layer(call_draft *d, module *m, const char *suffix, int64_t inputs, bool has_bias) {
    const int64_t hidden = tare__module_int(m, "hidden_size", 1), rows = gates_of(d->id) * hidden;
    return put(d, m, "weight_ih", suffix, 2, rows, inputs) &&
           put(d, m, "weight_hh", suffix, 2, rows, hidden) &&
           (!has_bias ||
            (put(d, m, "bias_ih", suffix, 1, rows, 0) && put(d, m, "bias_hh", suffix, 1, rows, 0)));
}

static bool set(call_draft *d, module *m, const char *key, value v) {
    return tare__module_set_config(m, key, &v, d->g->err) == TARE_OK;
}

bool random_recurrent(call_draft *d, module *m) {
    const bool is_cell = strstr(d->id, "_cell") != NULL;
    const bool has_bias = choose(d->g->choices, 3) != 0;
    const int64_t hidden = 1 + choose(d->g->choices, 9), layers = 1 + choose(d->g->choices, 2);
    const int64_t directions = is_cell ? 1 : 1 + choose(d->g->choices, 2);
    if (d->x == NULL || d->x->ndim < 1) return false;
    const int64_t inputs = d->x->shape[d->x->ndim - 1];
    if (!set(d, m, "input_size", tare__int(inputs)) ||
        !set(d, m, "hidden_size", tare__int(hidden)) || !set(d, m, "bias", tare__bool(has_bias)))
        return false;
    if (is_cell) return put_layer(d, m, "", inputs, has_bias);
    if (!set(d, m, "num_layers", tare__int(layers)) ||
        !set(d, m, "batch_first", tare__bool(choose(d->g->choices, 3) != 0)) ||
        !set(d, m, "bidirectional", tare__bool(directions == 2)))
        return false;
    for (int64_t i = 0; i < layers * directions; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, "_l%d%s", (int)(i / directions),
                 i % directions != 0 ? "_reverse" : "");
        if (!put_layer(d, m, suffix, i < directions ? inputs : hidden * directions, has_bias))
            return false;
    }
    return true;
}

// --- functions ---

enum { HIDDEN = 3 };

static bool constant(call_draft *d, int ndim, int64_t first, int64_t second, int64_t third,
                     value *out) {
    const int64_t shape[] = {first, second, third};
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, ndim, shape), out);
}

static bool give_list(call_draft *d, const value *items, uint32_t count, value *out) {
    *out = tare__value_sequence(&d->g->memory, VALUE_LIST, count);
    if (out->as.items == NULL) return false;
    memcpy(out->as.items, items, count * sizeof *items);
    return true;
}

bool random_recurrent_states(call_draft *d, value *out) {
    value items[2];
    const bool is_cell = strstr(d->id, "_cell") != NULL;
    if (d->x == NULL || d->x->ndim != (is_cell ? 2 : 3)) return false;
    const int64_t batch = d->x->shape[0];
    for (int i = 0; i < 2; i++)
        if (is_cell ? !constant(d, 2, batch, HIDDEN, 0, &items[i])
                    : !constant(d, 3, 1, batch, HIDDEN, &items[i]))
            return false;
    if (gates_of(d->id) == 4) return give_list(d, items, 2, out);
    *out = items[0];
    return true;
}

bool random_recurrent_weights(call_draft *d, value *out) {
    value items[4];
    const int64_t rows = gates_of(d->id) * HIDDEN;
    return d->x != NULL && d->x->ndim == 3 && constant(d, 2, rows, d->x->shape[2], 0, &items[0]) &&
           constant(d, 2, rows, HIDDEN, 0, &items[1]) && constant(d, 1, rows, 0, 0, &items[2]) &&
           constant(d, 1, rows, 0, 0, &items[3]) && give_list(d, items, 4, out);
}

bool random_cell_weight_ih(call_draft *d, value *out) {
    return d->x != NULL && d->x->ndim == 2 &&
           constant(d, 2, gates_of(d->id) * HIDDEN, d->x->shape[1], 0, out);
}

bool random_cell_weight_hh(call_draft *d, value *out) {
    return constant(d, 2, gates_of(d->id) * HIDDEN, HIDDEN, 0, out);
}

bool random_cell_bias(call_draft *d, value *out) {
    return constant(d, 1, gates_of(d->id) * HIDDEN, 0, 0, out);
}
