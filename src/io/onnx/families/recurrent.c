// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN in ONNX, which orders the gates differently than torch. Reading: as torch's
// modules. Writing: one node per layer with both directions; weights stay those of the model, and
// nodes that every runtime evaluates once reorder them.
#include <stdio.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

typedef struct recurrent_kind {
    const char *class_name;
    size_t gates;
    size_t order[4]; // the position of torch's gate i in the file
    const char *activations[3];
    size_t activation_count;
    bool has_cell; // a second state
} recurrent_kind;

static const recurrent_kind lstm_kind = {
    "torch.nn.LSTM", 4, {0, 2, 3, 1}, {"Sigmoid", "Tanh", "Tanh"}, 3, true}; // iofc -> ifgo
static const recurrent_kind gru_kind = {"torch.nn.GRU",      3, {1, 0, 2},
                                        {"Sigmoid", "Tanh"}, 2, false}; // zrh -> rzn
static const recurrent_kind rnn_kind = {"torch.nn.RNN", 1, {0}, {"Tanh"}, 1, false};

typedef struct recurrent {
    const recurrent_kind *kind;
    value x;
    const tare_tensor *w, *r, *b; // [directions][gates * hidden][..]; b may be NULL
    int64_t directions, hidden, inner;
    value steps, batch; // ints, or nodes for open sizes
    bool reversed, batch_first;
    bool is_relu; // an RNN's activation
} recurrent;

// --- reading ---

static tare_status read_activations(onnx_call *c, recurrent *q) {
    const char *names[6];
    size_t count = 0;
    bool given = false;
    TARE_TRY(tare__onnx_attr_strings(c, "activations", 6, names, &count, &given));
    if (!given) return TARE_OK;
    const recurrent_kind *k = q->kind;
    if (count != k->activation_count * (size_t)q->directions)
        return tare__onnx_malformed(c, "%zu activations, expected %zu", count,
                                    k->activation_count * (size_t)q->directions);
    q->is_relu = k->gates == 1 && strcmp(names[0], "Relu") == 0;
    for (size_t i = 0; i < count; i++) {
        const char *expected = q->is_relu ? "Relu" : k->activations[i % k->activation_count];
        if (strcmp(names[i], expected) != 0)
            return tare__onnx_fail(c, "activation %s is not supported, expected torch's %s",
                                   names[i], expected);
    }
    return TARE_OK;
}

// Refuses what torch's modules cannot do.
static tare_status refuse_extras(onnx_call *c, const recurrent *q) {
    static const char *const unknown[] = {"clip", "activation_alpha", "activation_beta"};
    bool forgets = false;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (tare__onnx_has_attr(c, unknown[i]))
            return tare__onnx_fail(c, "attribute '%s' is not supported", unknown[i]);
    TARE_TRY(tare__onnx_attr_bool(c, "input_forget", false, &forgets));
    if (forgets) return tare__onnx_fail(c, "input_forget is not supported");
    if (tare__onnx_input(c, 7).kind != VALUE_NONE)
        return tare__onnx_fail(c, "peepholes (input P) are not supported");
    const tare_tensor *lengths = tare__onnx_constant(c, 4);
    bool full = tare__onnx_input(c, 4).kind == VALUE_NONE || lengths != NULL;
    for (int64_t i = 0; lengths != NULL && i < lengths->count; i++)
        full = full && q->steps.kind == VALUE_INT &&
               tare__tensor_get_int(lengths, i) == q->steps.as.integer;
    if (!full)
        return tare__onnx_fail(c, "sequences of different lengths (sequence_lens) are not "
                                  "supported");
    return TARE_OK;
}

static tare_status read_weights(onnx_call *c, recurrent *q) {
    static const char *const names[] = {"W", "R", "B"};
    const tare_tensor **into[] = {&q->w, &q->r, &q->b};
    const int64_t width = (int64_t)q->kind->gates * q->hidden;
    const int64_t sizes[] = {q->inner, q->hidden, 2};
    for (size_t i = 0; i < 3; i++) {
        const value v = tare__onnx_input(c, i + 1);
        if (i == 2 && v.kind == VALUE_NONE) continue;
        *into[i] = tare__onnx_constant(c, i + 1);
        const tare_tensor *t = *into[i];
        if (t == NULL) return tare__onnx_fail(c, "input '%s' must be constant", names[i]);
        if (t->dtype != TARE_FLOAT32 || t->count != q->directions * width * sizes[i])
            return tare__onnx_malformed(c, "input '%s' does not fit hidden_size=%lld", names[i],
                                        (long long)q->hidden);
    }
    return TARE_OK;
}

static tare_status read_recurrent(onnx_call *c, const recurrent_kind *kind, recurrent *q) {
    const tare_tensor *x = NULL;
    size_t direction = 0;
    *q = (recurrent){.kind = kind};
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &q->x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &x));
    TARE_TRY(
        ONNX_CHOICE(c, "direction", "forward", &direction, "forward", "reverse", "bidirectional"));
    TARE_TRY(tare__onnx_attr_int(c, "hidden_size", 0, &q->hidden));
    if (tare__onnx_opset(c) >= 14)
        TARE_TRY(tare__onnx_attr_bool(c, "layout", false, &q->batch_first));
    if (x->ndim != 3 || q->hidden < 1 || q->hidden > INT32_MAX)
        return tare__onnx_malformed(c, "expected 3 dimensions and a hidden_size, found %d and %lld",
                                    x->ndim, (long long)q->hidden);
    q->directions = direction == 2 ? 2 : 1;
    q->reversed = direction == 1;
    TARE_TRY(tare__onnx_size(c, &q->x, q->batch_first ? 1 : 0, &q->steps));
    TARE_TRY(tare__onnx_size(c, &q->x, q->batch_first ? 0 : 1, &q->batch));
    q->inner = x->shape[2];
    TARE_TRY(read_activations(c, q));
    TARE_TRY(read_weights(c, q));
    return refuse_extras(c, q);
}

// --- weights in torch's order ---

// Reorders the rows of one direction, and of one half of B: [gates * hidden][width].
static tare_status reordered(onnx_call *c, const recurrent *q, const tare_tensor *t, int64_t first,
                             int64_t width, bool is_bias, value *out) {
    const int64_t rows = (int64_t)q->kind->gates * q->hidden, shape[] = {rows, width};
    const size_t bytes = (size_t)(q->hidden * width) * sizeof(float);
    tare_tensor *made = NULL;
    TARE_TRY(tare__onnx_new_floats(c, is_bias ? 1 : 2, shape, &made));
    for (size_t g = 0; g < q->kind->gates; g++)
        memcpy((char *)made->data + g * bytes,
               tare__f32(t) + first + (int64_t)q->kind->order[g] * q->hidden * width, bytes);
    return tare__onnx_take_tensor(c, made, out);
}

static tare_status name_tensor(onnx_call *c, const char *stem, int64_t direction, keyword *k) {
    k->name =
        tare__arena_printf(tare__onnx_arena(c), "%s_l0%s", stem, direction > 0 ? "_reverse" : "");
    return k->name != NULL ? TARE_OK : tare__out_of_memory(tare__onnx_error(c));
}

static tare_status make_tensors(onnx_call *c, const recurrent *q, keyword *tensors, size_t *count) {
    const int64_t rows = (int64_t)q->kind->gates * q->hidden;
    *count = 0;
    for (int64_t d = 0; d < q->directions; d++) {
        keyword *k = &tensors[*count];
        TARE_TRY(name_tensor(c, "weight_ih", d, &k[0]));
        TARE_TRY(reordered(c, q, q->w, d * rows * q->inner, q->inner, false, &k[0].value));
        TARE_TRY(name_tensor(c, "weight_hh", d, &k[1]));
        TARE_TRY(reordered(c, q, q->r, d * rows * q->hidden, q->hidden, false, &k[1].value));
        *count += 2;
        if (q->b == NULL) continue;
        TARE_TRY(name_tensor(c, "bias_ih", d, &k[2]));
        TARE_TRY(reordered(c, q, q->b, 2 * d * rows, 1, true, &k[2].value));
        TARE_TRY(name_tensor(c, "bias_hh", d, &k[3]));
        TARE_TRY(reordered(c, q, q->b, (2 * d + 1) * rows, 1, true, &k[3].value));
        *count += 2;
    }
    return TARE_OK;
}

// --- the state ---

static bool is_zero(const tare_tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) != 0) return false;
    return true;
}

// VALUE_NONE if the initial state is zero, torch's default.
static tare_status read_state(onnx_call *c, const recurrent *q, size_t i, value *out) {
    const tare_tensor *known = tare__onnx_constant(c, i);
    *out = tare__onnx_input(c, i);
    if (out->kind == VALUE_NONE || (known != NULL && is_zero(known))) {
        *out = tare__none();
        return TARE_OK;
    }
    return q->batch_first ? ONNX_CALL(c, out, "torch.transpose", *out, tare__int(0), tare__int(1))
                          : TARE_OK;
}

static tare_status zero_state(onnx_call *c, const recurrent *q, value *out) {
    const int64_t shape[] = {q->directions, q->batch.as.integer, q->hidden};
    const value sizes[] = {tare__int(shape[0]), q->batch, tare__int(shape[2])},
                zero = tare__float(0);
    tare_tensor *t = NULL;
    if (q->batch.kind == VALUE_NODE) return tare__onnx_full(c, sizes, 3, TARE_FLOAT32, &zero, out);
    TARE_TRY(tare__onnx_new_floats(c, 3, shape, &t));
    return tare__onnx_take_tensor(c, t, out);
}

static tare_status make_state(onnx_call *c, const recurrent *q, value *out) {
    value pair[2] = {tare__none(), tare__none()};
    TARE_TRY(read_state(c, q, 5, &pair[0]));
    if (q->kind->has_cell) TARE_TRY(read_state(c, q, 6, &pair[1]));
    *out = pair[0];
    if (!q->kind->has_cell) return TARE_OK;
    if (pair[0].kind == VALUE_NONE && pair[1].kind == VALUE_NONE) return TARE_OK;
    for (int i = 0; i < 2; i++)
        if (pair[i].kind == VALUE_NONE) TARE_TRY(zero_state(c, q, &pair[i]));
    *out = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, 2);
    if (out->as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    memcpy(out->as.items, pair, sizeof pair);
    return TARE_OK;
}

// --- the outputs ---

static tare_status flip_steps(onnx_call *c, const recurrent *q, value *x) {
    const int64_t dim = 0;
    value dims;
    if (!q->reversed) return TARE_OK;
    TARE_TRY(tare__onnx_ints(c, &dim, 1, &dims));
    return ONNX_CALL(c, x, "torch.flip", *x, dims);
}

// [steps][batch][directions * hidden] -> Y [steps][directions][batch][hidden], with layout 1
// [batch][steps][directions][hidden]
static tare_status give_sequence(onnx_call *c, const recurrent *q, value y) {
    const value sizes[] = {q->steps, q->batch, tare__int(q->directions), tare__int(q->hidden)};
    const int64_t plain[] = {0, 2, 1, 3}, batch_first[] = {1, 0, 2, 3};
    if (!tare__onnx_wants_output(c, 0)) return TARE_OK;
    TARE_TRY(flip_steps(c, q, &y));
    if (q->directions == 1 && !q->batch_first) {
        TARE_TRY(ONNX_CALL(c, &y, "torch.unsqueeze", y, tare__int(1)));
    } else {
        TARE_TRY(tare__onnx_reshape_to(c, &y, sizes, 4, &y));
        TARE_TRY(tare__onnx_permute(c, &y, q->batch_first ? batch_first : plain, 4, &y));
    }
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

static tare_status give_state(onnx_call *c, const recurrent *q, value state) {
    for (size_t i = 0; i < (q->kind->has_cell ? 2 : 1); i++) {
        value h = state;
        if (!tare__onnx_wants_output(c, i + 1)) continue;
        if (q->kind->has_cell) TARE_TRY(tare__onnx_item(c, &state, (int64_t)i, &h));
        if (q->batch_first)
            TARE_TRY(ONNX_CALL(c, &h, "torch.transpose", h, tare__int(0), tare__int(1)));
        tare__onnx_set_output(c, i + 1, &h);
    }
    return TARE_OK;
}

static tare_status call_module(onnx_call *c, const recurrent *q, value *out) {
    value args[2] = {q->x};
    keyword tensors[8];
    size_t count;
    const keyword config[] = {{"input_size", tare__int(q->inner)},
                              {"hidden_size", tare__int(q->hidden)},
                              {"num_layers", tare__int(1)},
                              {"bias", tare__bool(q->b != NULL)},
                              {"batch_first", tare__bool(false)},
                              {"dropout", tare__float(0)},
                              {"bidirectional", tare__bool(q->directions == 2)},
                              {"nonlinearity", tare__string(q->is_relu ? "relu" : "tanh")}};
    const size_t config_count = sizeof config / sizeof *config - (q->kind->gates == 1 ? 0 : 1);
    TARE_TRY(make_state(c, q, &args[1]));
    TARE_TRY(make_tensors(c, q, tensors, &count));
    return tare__onnx_module(c,
                             &(onnx_module){.class_name = q->kind->class_name,
                                            .config = config,
                                            .config_count = config_count,
                                            .tensors = tensors,
                                            .tensor_count = count,
                                            .args = args,
                                            .arg_count = args[1].kind == VALUE_NONE ? 1 : 2},
                             out);
}

static tare_status translate(onnx_call *c, const recurrent_kind *kind) {
    recurrent q;
    value pair, y, state = tare__none();
    TARE_TRY(read_recurrent(c, kind, &q));
    if (q.batch_first)
        TARE_TRY(ONNX_CALL(c, &q.x, "torch.transpose", q.x, tare__int(0), tare__int(1)));
    TARE_TRY(flip_steps(c, &q, &q.x));
    TARE_TRY(call_module(c, &q, &pair));
    TARE_TRY(tare__onnx_item(c, &pair, 0, &y));
    TARE_TRY(give_sequence(c, &q, y));
    if (tare__onnx_wants_output(c, 1) || tare__onnx_wants_output(c, 2))
        TARE_TRY(tare__onnx_item(c, &pair, 1, &state));
    return give_state(c, &q, state);
}

static tare_status translate_lstm(onnx_call *c) {
    return translate(c, &lstm_kind);
}

static tare_status translate_rnn(onnx_call *c) {
    return translate(c, &rnn_kind);
}

// torch applies the reset gate after the hidden state's product, which is linear_before_reset.
static tare_status translate_gru(onnx_call *c) {
    bool before;
    TARE_TRY(tare__onnx_attr_bool(c, "linear_before_reset", false, &before));
    if (!before)
        return tare__onnx_fail(c, "linear_before_reset=0 is not supported: torch.nn.GRU applies "
                                  "the reset gate after the product");
    return translate(c, &gru_kind);
}

static const onnx_rule read_rows[] = {
    {"GRU", .translate = translate_gru},
    {"LSTM", .translate = translate_lstm},
    {"RNN", .translate = translate_rnn},
};

// --- writing ---

enum { MOST_GATES = 4, MOST_LAYERS = 64 };
// Indices of the functions' parameters.
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
    const tare_tensor **weights; // of a function: `each` tensors per layer and direction
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
    const tare_tensor *quantized = tare__out_quantized_weight(o, l->module, name);
    const tare_tensor *t = quantized != NULL ? quantized : tare__module_tensor(l->module, name);
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

// The initial states of a layer: [directions][batch][hidden] of the tensor of all layers.
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

static void write_recurrent(onnx_out *o) {
    op_call *call = tare__out_call(o);
    layers l = {.cell = find_cell(call->op->id)};
    const char *states[2][MOST_LAYERS], *last[2];
    if (call->module != NULL)
        read_module(o, &l);
    else
        read_function(o, &l);
    if (l.cell == NULL || l.count < 1 || l.count > MOST_LAYERS) {
        tare__out_refuse(o, "too many layers");
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

// Computes x * W^T + b and splits it into the gates.
static void cell_gates(onnx_out *o, const char *x, int which, int64_t count,
                       const char *gates[MOST_GATES]) {
    static const char *const stems[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const module *m = tare__out_call(o)->module;
    const tare_tensor *quantized = tare__out_quantized_weight(o, m, stems[which]);
    const tare_tensor *w = quantized != NULL ? quantized : tare__module_tensor(m, stems[which]);
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

// The initial state `which` of a cell, or zeros.
static const char *cell_state(onnx_out *o, uint32_t which) {
    const op_call *call = tare__out_call(o);
    const value *hx = tare__out_given(o, HX) ? call->param[HX] : NULL;
    const value *v = hx != NULL && tare__value_has_items(hx) ? &hx->as.items[which] : hx;
    if (v != NULL && v->kind == VALUE_TENSOR) return tare__out_tensor(o, v->as.tensor);
    tare__out_refuse(o, "a cell without its state is not written");
    return "";
}

static const char *sum_of(onnx_out *o, const char *op_type, const char *a, const char *b) {
    const char *sum = OUT(o, "Add", a, b);
    return op_type != NULL ? OUT(o, op_type, sum) : sum;
}

static void write_lstm_cell(onnx_out *o) {
    const char *gi[MOST_GATES], *gh[MOST_GATES];
    cell_gates(o, tare__out_input(o, 0), 0, 4, gi);
    cell_gates(o, cell_state(o, 0), 1, 4, gh);
    const char *in = sum_of(o, "Sigmoid", gi[0], gh[0]), *keep = sum_of(o, "Sigmoid", gi[1], gh[1]);
    const char *fresh = sum_of(o, "Tanh", gi[2], gh[2]), *out = sum_of(o, "Sigmoid", gi[3], gh[3]);
    const char *c = OUT(o, "Add", OUT(o, "Mul", keep, cell_state(o, 1)), OUT(o, "Mul", in, fresh));
    tare__out_result_item(o, 0, OUT(o, "Mul", out, OUT(o, "Tanh", c)));
    tare__out_result_item(o, 1, c);
}

static void write_gru_cell(onnx_out *o) {
    const char *gi[MOST_GATES], *gh[MOST_GATES], *h = cell_state(o, 0);
    cell_gates(o, tare__out_input(o, 0), 0, 3, gi);
    cell_gates(o, h, 1, 3, gh);
    const char *r = sum_of(o, "Sigmoid", gi[0], gh[0]), *z = sum_of(o, "Sigmoid", gi[1], gh[1]);
    const char *fresh = sum_of(o, "Tanh", gi[2], OUT(o, "Mul", r, gh[2]));
    tare__out_result(o, OUT(o, "Add", OUT(o, "Mul", OUT(o, "Sub", h, fresh), z), fresh));
}

static void write_rnn_cell(onnx_out *o) {
    const char *gi[MOST_GATES], *gh[MOST_GATES];
    const value *v = tare__module_config(tare__out_call(o)->module, "nonlinearity");
    const bool is_relu = v != NULL && v->kind == VALUE_STRING && strcmp(v->as.text, "relu") == 0;
    cell_gates(o, tare__out_input(o, 0), 0, 1, gi);
    cell_gates(o, cell_state(o, 0), 1, 1, gh);
    tare__out_result(o, sum_of(o, is_relu ? "Relu" : "Tanh", gi[0], gh[0]));
}

static const onnx_write_rule write_rows[] = {
    {"gru", "GRU", .write = write_recurrent},
    {"gru_cell", "Gemm, Sigmoid, Tanh", .write = write_gru_cell},
    {"gru_function", "GRU", .write = write_recurrent},
    {"lstm", "LSTM", .write = write_recurrent},
    {"lstm_cell", "Gemm, Sigmoid, Tanh", .write = write_lstm_cell},
    {"lstm_function", "LSTM", .write = write_recurrent},
    {"rnn", "RNN", .write = write_recurrent},
    {"rnn_cell", "Gemm, Tanh", .write = write_rnn_cell},
    {"rnn_relu_function", "RNN", .write = write_recurrent},
    {"rnn_tanh_function", "RNN", .write = write_recurrent},
};

const onnx_family tare__onnx_recurrent_family = {.read = ONNX_RULES(read_rows),
                                                 .write = ONNX_WRITE_RULES(write_rows)};
