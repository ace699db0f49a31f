// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as ONNX: one node for each layer, both directions in one. ONNX has its gates in
// another order; the weights of the model stay as they are, and are put in order by nodes that
// every runtime computes once.
#include <stdio.h>
#include <string.h>

#include "io/onnx/write/rules.h"

enum { MOST_GATES = 4, MOST_LAYERS = 64 };
// Parameters of functions.
enum { HX = 1, WEIGHTS, HAS_BIASES, NUM_LAYERS, BIDIRECTIONAL = 7, BATCH_FIRST };

typedef struct cell {
    const char *id, *op_type;
    int64_t gates;
    int order[MOST_GATES]; // ONNX's gate i is torch's gate order[i]
} cell;

static const cell cells[] = {
    {"lstm", "LSTM", 4, {0, 3, 1, 2}}, // i f g o -> i o f c
    {"gru", "GRU", 3, {1, 0, 2}},      // r z n -> z r h
    {"rnn", "RNN", 1, {0}},
};

typedef struct layers {
    const cell *cell;
    const module *module;        // or
    const tare_tensor **weights; // of a function, `each` per layer and direction
    size_t each;
    bool has_bias, is_relu, batch_first;
    int64_t count, directions, hidden;
} layers;

static const cell *find_cell(const char *id) {
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (strncmp(cells[i].id, id, strlen(cells[i].id)) == 0) return &cells[i];
    return NULL;
}

// --- reading the call ---

static void read_module(onnx_out *o, layers *l) {
    const module *m = tare__out_call(o)->module;
    const value *v = tare__module_config(m, "nonlinearity");
    l->module = m;
    l->has_bias = tare__module_bool(m, "bias", true);
    l->batch_first = tare__module_bool(m, "batch_first", false);
    l->count = tare__module_int(m, "num_layers", 1);
    l->directions = tare__module_bool(m, "bidirectional", false) ? 2 : 1;
    l->hidden = tare__module_int(m, "hidden_size", 0);
    l->is_relu = v != NULL && v->kind == VALUE_STRING && strcmp(v->as.text, "relu") == 0;
}

static void read_function(onnx_out *o, layers *l) {
    size_t count = 0;
    op_call *call = tare__out_call(o);
    tare__out_try(o, tare__call_tensor_list(call, WEIGHTS, &l->weights, &count));
    l->has_bias = tare__out_bool(o, HAS_BIASES, true);
    l->count = tare__out_int(o, NUM_LAYERS, 1);
    l->directions = tare__out_bool(o, BIDIRECTIONAL, false) ? 2 : 1;
    l->batch_first = tare__out_bool(o, BATCH_FIRST, false);
    l->each = l->has_bias ? 4 : 2;
    l->is_relu = strstr(call->op->id, "relu") != NULL;
    if (!tare__out_failed(o)) l->hidden = l->weights[1]->shape[1];
}

// --- weights ---

static const tare_tensor *weight_of(onnx_out *o, const layers *l, int64_t layer, int64_t direction,
                                    int which) {
    static const char *const stems[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    char name[64];
    if (l->module == NULL)
        return l->weights[(size_t)(layer * l->directions + direction) * l->each + (size_t)which];
    snprintf(name, sizeof name, "%s_l%lld%s", stems[which], (long long)layer,
             direction > 0 ? "_reverse" : "");
    const tare_tensor *codes = tare__out_weight_codes(o, l->module, name);
    const tare_tensor *t = codes != NULL ? codes : tare__module_tensor(l->module, name);
    if (t == NULL) tare__out_refuse(o, "it has no tensor '%s'", name);
    return t;
}

static const char *in_order(onnx_out *o, const layers *l, const char *x) {
    const char *gates[MOST_GATES] = {"", "", "", ""}, *ordered[MOST_GATES];
    const size_t count = (size_t)l->cell->gates;
    if (count == 1) return x;
    OUT(o, "Split", x);
    tare__out_outputs(o, count, gates);
    tare__out_attr_int(o, "axis", 0);
    if (tare__out_opset(o) >= 18) tare__out_attr_int(o, "num_outputs", (int64_t)count);
    for (size_t g = 0; g < count; g++) ordered[g] = gates[l->cell->order[g]];
    const char *y = tare__out_node(o, "Concat", ordered, count);
    tare__out_attr_int(o, "axis", 0);
    return y;
}

// W [directions][gates * hidden][..], or both biases [directions][2 * gates * hidden].
static const char *weights(onnx_out *o, const layers *l, int64_t layer, int which) {
    const char *each[2] = {"", ""};
    const int64_t first = 0;
    for (int64_t d = 0; d < l->directions; d++) {
        const tare_tensor *t = weight_of(o, l, layer, d, which);
        if (t == NULL) return "";
        const char *x = in_order(o, l, tare__out_tensor(o, t));
        if (which >= 2) {
            const tare_tensor *of_hidden = weight_of(o, l, layer, d, which + 1);
            if (of_hidden == NULL) return "";
            x = OUT(o, "Concat", x, in_order(o, l, tare__out_tensor(o, of_hidden)));
            tare__out_attr_int(o, "axis", 0);
        }
        each[d] = tare__out_unsqueeze(o, x, &first, 1);
    }
    if (l->directions == 1) return each[0];
    const char *y = OUT(o, "Concat", each[0], each[1]);
    tare__out_attr_int(o, "axis", 0);
    return y;
}

// --- states ---

// The states that a layer begins with: [directions][batch][hidden] of all layers' tensor.
static const char *initial(onnx_out *o, const layers *l, int64_t layer, size_t which) {
    const value *hx = tare__out_given(o, HX) ? tare__out_call(o)->param[HX] : NULL;
    const bool is_pair = hx != NULL && tare__value_has_items(hx);
    const value *v = is_pair && which < hx->count ? &hx->as.items[which] : is_pair ? NULL : hx;
    if (v == NULL || v->kind != VALUE_TENSOR) return "";
    const char *x = tare__out_tensor(o, v->as.tensor);
    if (l->count == 1) return x;
    return tare__out_slice(o, x, 0, layer * l->directions, (layer + 1) * l->directions, 1);
}

static const char *joined(onnx_out *o, const layers *l, const char *const *states) {
    if (l->count == 1) return states[0];
    const char *y = tare__out_node(o, "Concat", states, (size_t)l->count);
    tare__out_attr_int(o, "axis", 0);
    return y;
}

// --- the whole ---

// [steps][directions][batch][hidden] -> [steps][batch][directions * hidden]
static const char *flattened(onnx_out *o, const layers *l, const char *y) {
    const int64_t only = 1, order[] = {0, 2, 1, 3};
    const int64_t shape[] = {0, 0, l->directions * l->hidden};
    if (l->directions == 1) return tare__out_squeeze(o, y, &only, 1);
    return tare__out_reshape(o, tare__out_transpose(o, y, order, 4), shape, 3);
}

static const char *one_layer(onnx_out *o, const layers *l, int64_t layer, const char *x,
                             const char *last[2]) {
    const bool is_lstm = l->cell->gates == 4;
    const char *all[3];
    const char *w = weights(o, l, layer, 0), *r = weights(o, l, layer, 1);
    const char *b = l->has_bias ? weights(o, l, layer, 2) : "";
    const char *h = initial(o, l, layer, 0), *c = is_lstm ? initial(o, l, layer, 1) : "";
    OUT(o, l->cell->op_type, x, w, r, b, "", h, c);
    tare__out_outputs(o, is_lstm ? 3 : 2, all);
    tare__out_attr_text(o, "direction", l->directions == 2 ? "bidirectional" : "forward");
    tare__out_attr_int(o, "hidden_size", l->hidden);
    if (l->cell->gates == 3) tare__out_attr_int(o, "linear_before_reset", 1);
    if (l->is_relu) tare__out_attr_texts(o, "activations", "Relu", (size_t)l->directions);
    last[0] = all[1];
    last[1] = is_lstm ? all[2] : "";
    return flattened(o, l, all[0]);
}

static void give(onnx_out *o, const layers *l, const char *y, const char *h, const char *c) {
    const value *result = &tare__out_call(o)->result;
    const bool is_lstm = l->cell->gates == 4;
    if (!tare__value_has_items(result) || result->count < 2) {
        tare__out_refuse(o, "its result is not a sequence and a state");
        return;
    }
    tare__out_result_item(o, 0, y);
    if (!is_lstm || result->as.items[1].kind == VALUE_TENSOR) {
        tare__out_result_item(o, 1, h);
        if (is_lstm) tare__out_result_item(o, 2, c);
        return;
    }
    tare__out_result_at(o, &result->as.items[1].as.items[0], h);
    tare__out_result_at(o, &result->as.items[1].as.items[1], c);
}

static void recurrent(onnx_out *o) {
    op_call *call = tare__out_call(o);
    layers l = {.cell = find_cell(call->op->id)};
    const char *states[2][MOST_LAYERS], *last[2];
    if (call->module != NULL)
        read_module(o, &l);
    else
        read_function(o, &l);
    if (l.cell == NULL || l.count < 1 || l.count > MOST_LAYERS) {
        tare__out_refuse(o, "more layers than are written");
        return;
    }
    if (tare__out_failed(o)) return;
    const char *x = tare__out_input(o, 0);
    if (l.batch_first) x = tare__out_swap(o, x, 3, 0, 1);
    for (int64_t i = 0; i < l.count; i++) {
        x = one_layer(o, &l, i, x, last);
        states[0][i] = last[0];
        states[1][i] = last[1];
    }
    if (l.batch_first) x = tare__out_swap(o, x, 3, 0, 1);
    const char *h = joined(o, &l, states[0]), *c = "";
    if (l.cell->gates == 4) c = joined(o, &l, states[1]);
    give(o, &l, x, h, c);
}

// --- single cells ---

// x * W^T + b of all gates, apart.
static void cell_gates(onnx_out *o, const char *x, int which, int64_t count,
                       const char *gates[MOST_GATES]) {
    static const char *const stems[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const module *m = tare__out_call(o)->module;
    const tare_tensor *codes = tare__out_weight_codes(o, m, stems[which]);
    const tare_tensor *w = codes != NULL ? codes : tare__module_tensor(m, stems[which]);
    const tare_tensor *b = tare__module_tensor(m, stems[which + 2]);
    for (int64_t i = 0; i < MOST_GATES; i++) gates[i] = "";
    if (w == NULL) tare__out_refuse(o, "it has no tensor '%s'", stems[which]);
    if (tare__out_failed(o)) return;
    gates[0] = OUT(o, "Gemm", x, tare__out_tensor(o, w), b != NULL ? tare__out_tensor(o, b) : "");
    tare__out_attr_int(o, "transB", 1);
    if (count == 1) return;
    OUT(o, "Split", gates[0]);
    tare__out_outputs(o, (size_t)count, gates);
    tare__out_attr_int(o, "axis", 1);
    if (tare__out_opset(o) >= 18) tare__out_attr_int(o, "num_outputs", count);
}

// What a cell begins with: state `which`, or zeros.
static const char *cell_state(onnx_out *o, uint32_t which) {
    const op_call *call = tare__out_call(o);
    const value *hx = tare__out_given(o, HX) ? call->param[HX] : NULL;
    const value *v = hx != NULL && tare__value_has_items(hx) ? &hx->as.items[which] : hx;
    if (v != NULL && v->kind == VALUE_TENSOR) return tare__out_tensor(o, v->as.tensor);
    tare__out_refuse(o, "a cell needs its state");
    return "";
}

static const char *sum_of(onnx_out *o, const char *op_type, const char *a, const char *b) {
    const char *sum = OUT(o, "Add", a, b);
    return op_type != NULL ? OUT(o, op_type, sum) : sum;
}

static void lstm_cell(onnx_out *o) {
    const char *gi[MOST_GATES], *gh[MOST_GATES];
    cell_gates(o, tare__out_input(o, 0), 0, 4, gi);
    cell_gates(o, cell_state(o, 0), 1, 4, gh);
    const char *in = sum_of(o, "Sigmoid", gi[0], gh[0]), *keep = sum_of(o, "Sigmoid", gi[1], gh[1]);
    const char *fresh = sum_of(o, "Tanh", gi[2], gh[2]), *out = sum_of(o, "Sigmoid", gi[3], gh[3]);
    const char *c = OUT(o, "Add", OUT(o, "Mul", keep, cell_state(o, 1)), OUT(o, "Mul", in, fresh));
    tare__out_result_item(o, 0, OUT(o, "Mul", out, OUT(o, "Tanh", c)));
    tare__out_result_item(o, 1, c);
}

static void gru_cell(onnx_out *o) {
    const char *gi[MOST_GATES], *gh[MOST_GATES], *h = cell_state(o, 0);
    cell_gates(o, tare__out_input(o, 0), 0, 3, gi);
    cell_gates(o, h, 1, 3, gh);
    const char *r = sum_of(o, "Sigmoid", gi[0], gh[0]), *z = sum_of(o, "Sigmoid", gi[1], gh[1]);
    const char *fresh = sum_of(o, "Tanh", gi[2], OUT(o, "Mul", r, gh[2]));
    tare__out_result(o, OUT(o, "Add", OUT(o, "Mul", OUT(o, "Sub", h, fresh), z), fresh));
}

static void rnn_cell(onnx_out *o) {
    const char *gi[MOST_GATES], *gh[MOST_GATES];
    const value *v = tare__module_config(tare__out_call(o)->module, "nonlinearity");
    const bool is_relu = v != NULL && v->kind == VALUE_STRING && strcmp(v->as.text, "relu") == 0;
    cell_gates(o, tare__out_input(o, 0), 0, 1, gi);
    cell_gates(o, cell_state(o, 0), 1, 1, gh);
    tare__out_result(o, sum_of(o, is_relu ? "Relu" : "Tanh", gi[0], gh[0]));
}

static const onnx_write_rule rows[] = {
    {"gru", "GRU", .write = recurrent},
    {"gru_cell", "Gemm, Sigmoid, Tanh", .write = gru_cell},
    {"gru_function", "GRU", .write = recurrent},
    {"lstm", "LSTM", .write = recurrent},
    {"lstm_cell", "Gemm, Sigmoid, Tanh", .write = lstm_cell},
    {"lstm_function", "LSTM", .write = recurrent},
    {"rnn", "RNN", .write = recurrent},
    {"rnn_cell", "Gemm, Tanh", .write = rnn_cell},
    {"rnn_relu_function", "RNN", .write = recurrent},
    {"rnn_tanh_function", "RNN", .write = recurrent},
};

const onnx_write_table tare__onnx_write_recurrent_rules = ONNX_WRITE_RULES(rows);
