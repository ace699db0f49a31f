// SPDX-License-Identifier: Apache-2.0
// ONNX LSTM, GRU and RNN as torch's modules. Both stack the gates' weights, in another order.
#include <stdio.h>
#include <string.h>

#include "io/onnx/read/rules_common.h"

typedef struct recurrent_kind {
    const char *class_name;
    size_t gates;
    size_t order[4]; // where torch's gate i stands in the file
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
    int64_t directions, hidden, inner, steps, batch;
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
            return tare__onnx_fail(c, "activation %s is not supported where torch has %s", names[i],
                                   expected);
    }
    return TARE_OK;
}

// What torch's modules have no counterpart for.
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
        full = full && tare__tensor_get_int(lengths, i) == q->steps;
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
    q->steps = x->shape[q->batch_first ? 1 : 0];
    q->batch = x->shape[q->batch_first ? 0 : 1];
    q->inner = x->shape[2];
    TARE_TRY(read_activations(c, q));
    TARE_TRY(read_weights(c, q));
    return refuse_extras(c, q);
}

// --- weights in torch's order ---

// Rows of one direction and, of B, one half: [gates * hidden][width].
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

// VALUE_NONE where it begins with zeros, which is what torch begins with.
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
    const int64_t shape[] = {q->directions, q->batch, q->hidden};
    tare_tensor *t = NULL;
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
    const int64_t sizes[] = {q->steps, q->batch, q->directions, q->hidden};
    const int64_t plain[] = {0, 2, 1, 3}, batch_first[] = {1, 0, 2, 3};
    if (!tare__onnx_wants_output(c, 0)) return TARE_OK;
    TARE_TRY(flip_steps(c, q, &y));
    if (q->directions == 1 && !q->batch_first) {
        TARE_TRY(ONNX_CALL(c, &y, "torch.unsqueeze", y, tare__int(1)));
    } else {
        TARE_TRY(tare__onnx_reshape(c, &y, sizes, 4, &y));
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

static tare_status lstm(onnx_call *c) {
    return translate(c, &lstm_kind);
}

static tare_status rnn(onnx_call *c) {
    return translate(c, &rnn_kind);
}

// torch applies the reset gate behind the hidden state's product, as linear_before_reset says.
static tare_status gru(onnx_call *c) {
    bool before;
    TARE_TRY(tare__onnx_attr_bool(c, "linear_before_reset", false, &before));
    if (!before)
        return tare__onnx_fail(c, "linear_before_reset=0 is not supported: torch.nn.GRU multiplies "
                                  "before it resets");
    return translate(c, &gru_kind);
}

static const onnx_rule rows[] = {
    {"GRU", .translate = gru},
    {"LSTM", .translate = lstm},
    {"RNN", .translate = rnn},
};

const onnx_rule_table tare__onnx_recurrent_rules = ONNX_RULES(rows);
