// SPDX-License-Identifier: Apache-2.0
// An LSTM of separate operators: each product, sum and elementwise product of the gates is an
// operator with its own observer or quantization parameters.
#include <stdio.h>

#include "ops/classes/quantizable.h"
#include "ops/compose.h"
#include "ops/composed.h"
#include "ops/op.h"

static value integer(int64_t i) {
    return tare__int(i);
}

typedef struct lstm_state {
    value h, c;
} lstm_state;

// The gates of modules that have a linear layer for each gate (torch's split_gates).
static void split_gates(composer *c, const module *cell, value x, value h, value gates[4]) {
    static const char *const names[] = {"input", "forget", "cell", "output"};
    const module *ih = tare__module_child(cell, "igates"), *hh = tare__module_child(cell, "hgates");
    for (int i = 0; i < 4; i++)
        gates[i] = tare__compose_functional(c, tare__module_child(cell, "gates"), names[i], "add",
                                            tare__compose_child(c, ih, names[i], x),
                                            tare__compose_child(c, hh, names[i], h));
}

static void joint_gates(composer *c, const module *cell, value x, value h, value gates[4]) {
    const value sum =
        tare__compose_functional(c, cell, "gates", "add", tare__compose_child(c, cell, "igates", x),
                                 tare__compose_child(c, cell, "hgates", h));
    const value chunks = COMPOSE(c, "chunk", sum, integer(4), integer(1));
    for (uint32_t i = 0; i < 4; i++) gates[i] = tare__compose_item(c, chunks, i);
}

static lstm_state step(composer *c, const module *cell, value x, lstm_state s) {
    const module *ih = tare__module_child(cell, "igates");
    value gates[4];
    if (ih != NULL && tare__module_child(ih, "input") != NULL)
        split_gates(c, cell, x, s.h, gates);
    else
        joint_gates(c, cell, x, s.h, gates);
    const value input = tare__compose_child(c, cell, "input_gate", gates[0]);
    const value forget = tare__compose_child(c, cell, "forget_gate", gates[1]);
    const value fresh = tare__compose_child(c, cell, "cell_gate", gates[2]);
    const value output = tare__compose_child(c, cell, "output_gate", gates[3]);
    const value kept = tare__compose_functional(c, cell, "fgate_cx", "mul", forget, s.c);
    const value added = tare__compose_functional(c, cell, "igate_cgate", "mul", input, fresh);
    const value next =
        tare__compose_functional(c, cell, "fgate_cx_igate_cgate", "add", kept, added);
    const value y =
        tare__compose_functional(c, cell, "ogate_cy", "mul", output, COMPOSE(c, "tanh", next));
    return (lstm_state){y, next};
}

// One direction over x [steps][batch][inner]; *s becomes the final state.
static value run_direction(composer *c, const module *layer, value x, bool backwards,
                           lstm_state *s) {
    const module *cell = layer != NULL ? tare__module_child(layer, "cell") : NULL;
    const tare_tensor *t = tare__compose_tensor(c, x);
    if (cell == NULL) (void)tare__compose_fail(c, "the module has no cell");
    if (c->status != TARE_OK) return tare__none();
    const int64_t steps = t->shape[0];
    const value outputs = tare__compose_list(c, (size_t)steps);
    for (int64_t i = 0; i < steps && c->status == TARE_OK; i++) {
        const int64_t at = backwards ? steps - 1 - i : i;
        const size_t mark = c->count;
        *s = step(c, cell, COMPOSE(c, "select", x, integer(0), integer(at)), *s);
        const value kept[] = {s->h, s->c};
        tare__compose_forget(c, mark, kept, 2);
        outputs.as.items[at] = s->h;
    }
    return COMPOSE(c, "stack", outputs, integer(0));
}

typedef struct lstm_plan {
    const module *layers;
    int64_t hidden, directions, batch;
    bool batch_first;
} lstm_plan;

static lstm_plan read_plan(composer *c, value x) {
    const module *m = c->call->module;
    lstm_plan p = {.layers = tare__module_child(m, "layers"),
                   .hidden = tare__module_int(m, "hidden_size", 0),
                   .directions = tare__module_bool(m, "bidirectional", false) ? 2 : 1,
                   .batch_first = tare__module_bool(m, "batch_first", false)};
    const tare_tensor *t = tare__compose_tensor(c, x);
    if (t != NULL && (t->ndim != 3 || t->shape[0] < 1 || t->shape[1] < 1))
        (void)tare__compose_fail(c, "expected an input of 3 dimensions, none of them empty");
    if (p.layers == NULL || p.layers->child_count == 0 || p.hidden < 1)
        (void)tare__compose_fail(c, "the module has no layers");
    if (t != NULL && c->status == TARE_OK) p.batch = t->shape[p.batch_first ? 0 : 1];
    return p;
}

// h or c of the whole module as [layers * directions][batch][hidden].
static value whole_state(composer *c, const lstm_plan *p, const tare_tensor *x, uint32_t i) {
    const op_call *call = c->call;
    const int64_t shape[] = {(int64_t)p->layers->child_count * p->directions, p->batch, p->hidden};
    const value *given = call->arg_count > 1 ? &call->args[1] : NULL;
    if (given == NULL || given->kind == VALUE_NONE) return tare__compose_zeros(c, x, 3, shape);
    const value v = tare__compose_item(c, *given, i);
    const tare_tensor *t = tare__compose_tensor(c, v);
    if (t == NULL) return tare__none();
    if (t->count != shape[0] * shape[1] * shape[2])
        (void)tare__compose_fail(c, "the state does not fit the input or the module");
    return COMPOSE(c, "reshape", v, integer(shape[0]), integer(shape[1]), integer(shape[2]));
}

// Layer `index`: x becomes its output, and `last` gets the final state of each direction.
static value run_layer(composer *c, const lstm_plan *p, size_t index, value x, value h, value cell,
                       lstm_state last[2]) {
    const module *layer = p->layers->children[index].module;
    value y[2] = {tare__none(), tare__none()};
    for (int64_t d = 0; d < p->directions; d++) {
        const value at = integer((int64_t)index * p->directions + d);
        last[d] = (lstm_state){COMPOSE(c, "select", h, integer(0), at),
                               COMPOSE(c, "select", cell, integer(0), at)};
        const module *one = tare__module_child(layer, d == 0 ? "layer_fw" : "layer_bw");
        y[d] = run_direction(c, one, x, d == 1, &last[d]);
    }
    if (p->directions == 1 || c->status != TARE_OK) return y[0];
    const value both = tare__compose_list(c, 2);
    if (c->status != TARE_OK) return both;
    both.as.items[0] = y[0];
    both.as.items[1] = y[1];
    return COMPOSE(c, "cat", both, integer(2));
}

// Both directions of a layer are stacked first, then the layers are concatenated, as in torch: a
// quantized result has the scale of its first input, so the order matters.
static value stack_states(composer *c, const lstm_plan *p, const lstm_state *last, bool of_cell) {
    const size_t layers = p->layers->child_count, directions = (size_t)p->directions;
    const value all = tare__compose_list(c, layers);
    for (size_t i = 0; i < layers && c->status == TARE_OK; i++) {
        const value one = tare__compose_list(c, directions);
        for (size_t d = 0; d < directions && c->status == TARE_OK; d++) {
            const lstm_state *s = &last[i * 2 + d];
            one.as.items[d] = of_cell ? s->c : s->h;
        }
        const value stacked = COMPOSE(c, "stack", one, integer(0));
        if (c->status == TARE_OK) all.as.items[i] = stacked;
    }
    return COMPOSE(c, "cat", all, integer(0));
}

static value pair(composer *c, value a, value b) {
    value made = tare__compose_list(c, 2);
    if (c->status != TARE_OK) return made;
    made.kind = VALUE_TUPLE;
    made.as.items[0] = a;
    made.as.items[1] = b;
    return made;
}

static value forward(composer *c) {
    if (c->call->arg_count < 1 || c->call->arg_count > 2 || c->call->kwarg_count > 0)
        (void)tare__compose_fail(c, "takes an input and, if there is one, a state (h, c)");
    value x = c->status == TARE_OK ? c->call->args[0] : tare__none();
    const lstm_plan p = read_plan(c, x);
    if (c->status != TARE_OK) return tare__none();
    const tare_tensor *input = x.as.tensor;
    lstm_state *last =
        tare__arena_array(c->call->memory, 2 * p.layers->child_count + 1, sizeof *last);
    if (last == NULL) {
        c->status = tare__out_of_memory(c->call->err);
        return tare__none();
    }
    if (p.batch_first) x = COMPOSE(c, "transpose", x, integer(0), integer(1));
    const value h = whole_state(c, &p, input, 0), cell = whole_state(c, &p, input, 1);
    for (size_t i = 0; i < p.layers->child_count && c->status == TARE_OK; i++)
        x = run_layer(c, &p, i, x, h, cell, last + 2 * i);
    if (p.batch_first) x = COMPOSE(c, "transpose", x, integer(0), integer(1));
    return pair(c, x, pair(c, stack_states(c, &p, last, false), stack_states(c, &p, last, true)));
}

tare_status tare__quantizable_lstm_shape(op_call *call) {
    return tare__composed_shape(call, forward);
}

tare_status tare__quantizable_lstm_forward(op_call *call) {
    return tare__composed_forward(call, forward);
}
