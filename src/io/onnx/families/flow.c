// SPDX-License-Identifier: Apache-2.0
// Branches, loops and sequences, in ONNX. A branch that a constant decides is read alone; otherwise
// both run, and their results are chosen. Loops with a known number of iterations are unrolled.
#include <math.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/read/nested.h"
#include "io/onnx/read/rules_common.h"

enum { MOST_ROUNDS = 4096 };

static const char advice[] = "export the model with torch.export (.pt2), whose cond and while_loop "
                             "run, or give open dimensions a size (--dim NAME=SIZE)";

static tare_status refuse(onnx_call *c, const char *why) {
    return tare__hint(tare__onnx_error(c), tare__onnx_fail(c, "%s", why), "%s", advice);
}

static value *new_values(onnx_call *c, size_t count) {
    return tare__arena_array(tare__onnx_arena(c), count + 1, sizeof(value));
}

// --- choices between results ---

static bool are_alike(const tare_tensor *a, const tare_tensor *b) {
    bool alike = a != NULL && b != NULL && a->dtype == b->dtype && a->ndim == b->ndim;
    for (int d = 0; alike && d < a->ndim; d++) alike = a->shape[d] == b->shape[d];
    return alike;
}

// Chooses one of two results of the same shape and dtype by a condition of the graph.
static tare_status choose(onnx_call *c, const value *condition, const value *a, const value *b,
                          value *out) {
    value holds = *condition;
    const tare_tensor *t = tare__onnx_meta(c, condition);
    if (t == NULL || t->count != 1)
        return refuse(c, "its condition is not one value computed from the inputs");
    if (a->kind == VALUE_LIST || b->kind == VALUE_LIST)
        return refuse(c, "a condition of the data chooses between sequences");
    if (!are_alike(tare__onnx_meta(c, a), tare__onnx_meta(c, b)))
        return refuse(c, "a condition of the data chooses between results of different shapes or "
                         "dtypes");
    TARE_TRY(tare__onnx_count_unrolled(c, t->ndim > 0 ? 2 : 1));
    if (t->ndim > 0) TARE_TRY(tare__onnx_reshape(c, condition, NULL, 0, &holds));
    return ONNX_CALL(c, out, "torch.where", holds, *a, *b);
}

// --- If ---

static tare_status run_branch(onnx_call *c, const char *name, value *outputs) {
    onnx_nested g;
    TARE_TRY(tare__onnx_attr_graph(c, name, &g));
    if (g.input_count != 0 || g.output_count != tare__onnx_output_count(c))
        return tare__onnx_malformed(c,
                                    "the graph '%s' has %zu inputs and %zu outputs, expected 0 "
                                    "and %zu",
                                    name, g.input_count, g.output_count,
                                    tare__onnx_output_count(c));
    return tare__onnx_run_nested(c, &g, NULL, outputs);
}

static tare_status translate_if(onnx_call *c) {
    const size_t count = tare__onnx_output_count(c);
    value condition, *then = new_values(c, count), *otherwise = new_values(c, count);
    double holds = 0;
    bool is_known;
    if (then == NULL || otherwise == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(tare__onnx_need_input(c, 0, "cond", &condition));
    tare__onnx_decided(c, &condition, &holds, &is_known);
    tare__onnx_ignore_attr(c, "then_branch");
    tare__onnx_ignore_attr(c, "else_branch");
    if (!is_known || holds != 0) TARE_TRY(run_branch(c, "then_branch", then));
    if (!is_known || holds == 0) TARE_TRY(run_branch(c, "else_branch", otherwise));
    for (size_t i = 0; i < count; i++) {
        value chosen = holds != 0 ? then[i] : otherwise[i];
        if (!is_known) TARE_TRY(choose(c, &condition, &then[i], &otherwise[i], &chosen));
        tare__onnx_set_output(c, i, &chosen);
    }
    return TARE_OK;
}

// --- Loop ---

// An unrolled loop: the values of one iteration, and what its iterations gave.
typedef struct unrolled {
    onnx_nested body;
    size_t carried_count, given_count; // given: outputs with an item for each iteration
    value *inputs, *outputs;           // of the body
    value *items;                      // [capacity][given]
    size_t capacity;                   // iterations that `items` has room for
    int64_t rounds;
} unrolled;

// Room for twice as many iterations, or for `rounds`. A loop's items grow with the iterations that
// it runs, which are counted: their number in the file may be far larger.
static tare_status grow_items(onnx_call *c, unrolled *u, size_t rounds) {
    const size_t wanted = rounds > 2 * u->capacity ? rounds : 2 * u->capacity;
    value *grown = new_values(c, u->given_count * wanted);
    if (grown == NULL) return tare__out_of_memory(tare__onnx_error(c));
    if (u->capacity > 0) memcpy(grown, u->items, u->given_count * u->capacity * sizeof *grown);
    u->items = grown;
    u->capacity = wanted;
    return TARE_OK;
}

static tare_status begin(onnx_call *c, size_t inputs, size_t outputs, size_t given, unrolled *out) {
    if (out->body.input_count != inputs || out->body.output_count != outputs)
        return tare__onnx_malformed(c,
                                    "its body has %zu inputs and %zu outputs, expected %zu and "
                                    "%zu",
                                    out->body.input_count, out->body.output_count, inputs, outputs);
    out->given_count = given;
    out->inputs = new_values(c, inputs);
    out->outputs = new_values(c, outputs);
    return out->inputs != NULL && out->outputs != NULL ? TARE_OK
                                                       : tare__out_of_memory(tare__onnx_error(c));
}

// Joins the items of given output i along a new dimension.
static tare_status join_items(onnx_call *c, const unrolled *u, size_t i, int64_t axis, value *out) {
    const size_t count = (size_t)u->rounds;
    value list, *items = new_values(c, count);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t k = 0; k < count; k++) items[k] = u->items[k * u->given_count + i];
    TARE_TRY(tare__onnx_list(c, items, count, &list));
    return ONNX_CALL(c, out, "torch.stack", list, tare__int(axis));
}

// The number of iterations in input 0; MOST_ROUNDS + 1 if there is no limit.
static tare_status read_rounds(onnx_call *c, int64_t *out) {
    const value given = tare__onnx_input(c, 0);
    double number = INFINITY;
    bool is_known = true;
    if (given.kind != VALUE_NONE) tare__onnx_decided(c, &given, &number, &is_known);
    if (!is_known)
        return refuse(c, "the number of iterations depends on the data or on an open "
                         "dimension");
    if (given.kind != VALUE_NONE && given.as.tensor->dtype != TARE_INT64)
        return tare__onnx_malformed(c, "the number of iterations is of %s, expected torch.int64",
                                    tare_dtype_name(given.as.tensor->dtype));
    *out = number > MOST_ROUNDS ? MOST_ROUNDS + 1 : number < 0 ? 0 : (int64_t)number;
    return TARE_OK;
}

// Takes the body's results over, if the loop goes on by `condition` (VALUE_NONE: by a constant).
static tare_status carry(onnx_call *c, unrolled *u, const value *condition) {
    for (size_t i = 0; i < u->carried_count; i++) {
        value *kept = &u->inputs[2 + i];
        if (condition->kind == VALUE_NONE)
            *kept = u->outputs[1 + i];
        else
            TARE_TRY(choose(c, condition, &u->outputs[1 + i], kept, kept));
    }
    const size_t round = (size_t)u->rounds;
    if (round == u->capacity) TARE_TRY(grow_items(c, u, round + 1));
    for (size_t i = 0; i < u->given_count; i++)
        u->items[round * u->given_count + i] = u->outputs[1 + u->carried_count + i];
    return TARE_OK;
}

// The loop goes on as long as all conditions so far hold. *goes_on: false at a constant one that
// does not. *open: the conditions of the data; VALUE_NONE: none so far.
static tare_status follow_condition(onnx_call *c, const value *condition, value *open,
                                    bool *goes_on) {
    double holds = 1;
    bool is_known;
    tare__onnx_decided(c, condition, &holds, &is_known);
    *goes_on = !is_known || holds != 0;
    if (is_known) return TARE_OK;
    const tare_tensor *t = tare__onnx_meta(c, condition);
    if (t == NULL || t->count != 1 || t->dtype != TARE_BOOL)
        return refuse(c, "its condition is not one value computed from the inputs");
    if (open->kind == VALUE_NONE) {
        *open = *condition;
        return TARE_OK;
    }
    return ONNX_CALL(c, open, "torch.logical_and", *open, *condition);
}

static tare_status unroll(onnx_call *c, unrolled *u, int64_t rounds) {
    value open = tare__none(), condition = tare__onnx_input(c, 1), round;
    bool goes_on = true;
    const bool has_condition = condition.kind != VALUE_NONE;
    if (has_condition) TARE_TRY(follow_condition(c, &condition, &open, &goes_on));
    for (u->rounds = 0; goes_on && u->rounds < rounds; u->rounds++) {
        if (u->rounds == MOST_ROUNDS || (open.kind != VALUE_NONE && rounds > MOST_ROUNDS))
            return refuse(c, "a loop without a known number of iterations");
        if (open.kind != VALUE_NONE && u->given_count > 0)
            return refuse(c, "a condition of the data decides how many items a loop gives");
        const int64_t index = u->rounds;
        tare_tensor *number = NULL, *always = NULL;
        TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, 0, NULL, &number));
        tare__tensor_set_int(number, 0, index);
        TARE_TRY(tare__onnx_take_tensor(c, number, &round));
        u->inputs[0] = round;
        if (!has_condition && index == 0) {
            TARE_TRY(tare__onnx_new_tensor(c, TARE_BOOL, 0, NULL, &always));
            tare__tensor_set_int(always, 0, 1);
            TARE_TRY(tare__onnx_take_tensor(c, always, &condition));
        }
        u->inputs[1] = condition;
        TARE_TRY(tare__onnx_run_nested(c, &u->body, u->inputs, u->outputs));
        TARE_TRY(carry(c, u, &open));
        condition = u->outputs[0];
        TARE_TRY(follow_condition(c, &condition, &open, &goes_on));
    }
    return TARE_OK;
}

static tare_status translate_loop(onnx_call *c) {
    unrolled u = {.carried_count =
                      tare__onnx_input_count(c) > 2 ? tare__onnx_input_count(c) - 2 : 0};
    const size_t outputs = tare__onnx_output_count(c);
    int64_t rounds = 0;
    TARE_TRY(tare__onnx_attr_graph(c, "body", &u.body));
    if (u.body.output_count < 1 + u.carried_count || outputs + 1 != u.body.output_count)
        return tare__onnx_malformed(c, "its body has %zu outputs, expected %zu",
                                    u.body.output_count, outputs + 1);
    TARE_TRY(read_rounds(c, &rounds));
    TARE_TRY(begin(c, 2 + u.carried_count, outputs + 1, outputs - u.carried_count, &u));
    for (size_t i = 0; i < u.carried_count; i++)
        TARE_TRY(tare__onnx_need_input(c, 2 + i, "v_initial", &u.inputs[2 + i]));
    TARE_TRY(unroll(c, &u, rounds));
    for (size_t i = 0; i < outputs; i++) {
        value made = tare__none();
        const bool is_empty = i >= u.carried_count && u.rounds == 0; // of items: not supported
        if (!tare__onnx_wants_output(c, i) || is_empty) continue;
        if (i < u.carried_count)
            made = u.inputs[2 + i];
        else
            TARE_TRY(join_items(c, &u, i - u.carried_count, 0, &made));
        tare__onnx_set_output(c, i, &made);
    }
    return TARE_OK;
}

// --- Scan ---

enum { MOST_SCANNED = 64 };

typedef struct scanned {
    size_t state_count, input_count, given_count;
    int64_t axes[MOST_SCANNED], given_axes[MOST_SCANNED];
    int64_t backwards[MOST_SCANNED], given_backwards[MOST_SCANNED];
    value slices[MOST_SCANNED]; // of each scanned input, a tuple
    int64_t rounds;
} scanned;

// An optional attribute of `count` ints, 0 if it is absent.
static tare_status read_each(onnx_call *c, const char *name, size_t count, int64_t *out) {
    size_t found = 0;
    bool given = false;
    for (size_t i = 0; i < count; i++) out[i] = 0;
    TARE_TRY(tare__onnx_attr_ints(c, name, MOST_SCANNED, out, &found, &given));
    return !given || found == count
               ? TARE_OK
               : tare__onnx_malformed(c, "attribute '%s' has %zu numbers, expected %zu", name,
                                      found, count);
}

// Splits a scanned input into slices of size 1. The sizes are stated, so that no other length fits.
static tare_status split_scanned(onnx_call *c, scanned *s, size_t i) {
    value x, list;
    const tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_input(c, s->state_count + i, "scan input", &x));
    TARE_TRY(tare__onnx_need_meta(c, s->state_count + i, "scan input", &t));
    TARE_TRY(tare__onnx_axis(c, s->axes[i], t->ndim, &s->axes[i]));
    const int64_t length = t->shape[s->axes[i]];
    if (tare__onnx_size_is_open(c, &x, (int)s->axes[i]) || length > MOST_ROUNDS)
        return refuse(c, "the number of iterations depends on an open dimension or is too large");
    if (i > 0 && length != s->rounds)
        return tare__onnx_malformed(c, "its inputs have different lengths");
    s->rounds = length;
    int64_t *ones = tare__arena_array(tare__onnx_arena(c), (size_t)length + 1, sizeof *ones);
    if (ones == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (int64_t k = 0; k < length; k++) ones[k] = 1;
    TARE_TRY(tare__onnx_ints(c, ones, (size_t)length, &list));
    return ONNX_CALL(c, &s->slices[i], "torch.split", x, list, tare__int(s->axes[i]));
}

static tare_status read_scan(onnx_call *c, unrolled *u, scanned *s) {
    int64_t scanned_count = 0;
    const size_t inputs = tare__onnx_input_count(c), outputs = tare__onnx_output_count(c);
    TARE_TRY(tare__onnx_attr_graph(c, "body", &u->body));
    TARE_TRY(tare__onnx_attr_int(c, "num_scan_inputs", 0, &scanned_count));
    if (scanned_count < 1 || scanned_count > MOST_SCANNED || (size_t)scanned_count > inputs)
        return tare__onnx_malformed(c, "num_scan_inputs is %lld for %zu inputs",
                                    (long long)scanned_count, inputs);
    s->input_count = (size_t)scanned_count;
    s->state_count = inputs - s->input_count;
    if (outputs < s->state_count || outputs - s->state_count > MOST_SCANNED)
        return tare__onnx_malformed(c, "there are %zu outputs for %zu states", outputs,
                                    s->state_count);
    s->given_count = outputs - s->state_count;
    TARE_TRY(read_each(c, "scan_input_axes", s->input_count, s->axes));
    TARE_TRY(read_each(c, "scan_input_directions", s->input_count, s->backwards));
    TARE_TRY(read_each(c, "scan_output_axes", s->given_count, s->given_axes));
    TARE_TRY(read_each(c, "scan_output_directions", s->given_count, s->given_backwards));
    for (size_t i = 0; i < s->input_count; i++) TARE_TRY(split_scanned(c, s, i));
    TARE_TRY(begin(c, inputs, outputs, s->given_count, u));
    u->rounds = s->rounds;
    return grow_items(c, u, (size_t)s->rounds);
}

static tare_status scan_round(onnx_call *c, unrolled *u, const scanned *s, int64_t round) {
    TARE_TRY(tare__onnx_count_unrolled(c, s->input_count)); // squeezed; the run counts the slices
    for (size_t i = 0; i < s->input_count; i++) {
        value slice;
        const int64_t at = s->backwards[i] != 0 ? s->rounds - 1 - round : round;
        TARE_TRY(tare__onnx_item(c, &s->slices[i], at, &slice));
        TARE_TRY(ONNX_CALL(c, &u->inputs[s->state_count + i], "torch.squeeze", slice,
                           tare__int(s->axes[i])));
    }
    TARE_TRY(tare__onnx_run_nested(c, &u->body, u->inputs, u->outputs));
    for (size_t i = 0; i < s->state_count; i++) u->inputs[i] = u->outputs[i];
    for (size_t i = 0; i < s->given_count; i++) {
        const int64_t at = s->given_backwards[i] != 0 ? s->rounds - 1 - round : round;
        u->items[(size_t)at * s->given_count + i] = u->outputs[s->state_count + i];
    }
    return TARE_OK;
}

static tare_status translate_scan(onnx_call *c) {
    unrolled u = {0};
    scanned s = {0};
    TARE_TRY(read_scan(c, &u, &s));
    for (size_t i = 0; i < s.state_count; i++)
        TARE_TRY(tare__onnx_need_input(c, i, "initial state", &u.inputs[i]));
    for (int64_t round = 0; round < s.rounds; round++) TARE_TRY(scan_round(c, &u, &s, round));
    for (size_t i = 0; i < s.state_count; i++) tare__onnx_set_output(c, i, &u.inputs[i]);
    for (size_t i = 0; i < s.given_count; i++) {
        value made;
        TARE_TRY(join_items(c, &u, i, s.given_axes[i], &made));
        tare__onnx_set_output(c, s.state_count + i, &made);
    }
    return TARE_OK;
}

// --- sequences ---

static tare_status need_sequence(onnx_call *c, size_t i, value *out) {
    TARE_TRY(tare__onnx_need_input(c, i, "input_sequence", out));
    return out->kind == VALUE_LIST ? TARE_OK
                                   : tare__onnx_malformed(c, "input %zu is no sequence", i);
}

static tare_status give_sequence(onnx_call *c, const value *items, size_t count) {
    value made;
    TARE_TRY(tare__onnx_sequence(c, items, count, &made));
    tare__onnx_set_output(c, 0, &made);
    return TARE_OK;
}

static tare_status translate_sequence_empty(onnx_call *c) {
    tare__onnx_ignore_attr(c, "dtype");
    return give_sequence(c, NULL, 0);
}

static tare_status translate_sequence_construct(onnx_call *c) {
    const size_t count = tare__onnx_input_count(c);
    value *items = new_values(c, count);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_need_input(c, i, "inputs", &items[i]));
    return give_sequence(c, items, count);
}

static tare_status need_items(onnx_call *c, value *out) {
    TARE_TRY(need_sequence(c, 0, out));
    return out->count > 0 ? TARE_OK : tare__onnx_malformed(c, "the sequence is empty");
}

// A position from an optional input: from 0 to `most`; absent: `most`.
static tare_status read_position(onnx_call *c, size_t i, size_t count, size_t most, size_t *out) {
    const value given = tare__onnx_input(c, i);
    double at = (double)most;
    bool is_known = true;
    if (given.kind != VALUE_NONE) tare__onnx_decided(c, &given, &at, &is_known);
    if (!is_known) return refuse(c, "a position in a sequence depends on the data");
    if (at < 0) at += (double)count;
    if (!(at >= 0 && at <= (double)most))
        return tare__onnx_malformed(c, "position %g in a sequence of %zu", at, count);
    *out = (size_t)at;
    return TARE_OK;
}

// A sequence and the position of one of its items.
static tare_status need_item_at(onnx_call *c, value *sequence, size_t *at) {
    TARE_TRY(need_items(c, sequence));
    return read_position(c, 1, sequence->count, sequence->count - 1, at);
}

static tare_status translate_sequence_insert(onnx_call *c) {
    value sequence, item;
    size_t at = 0;
    TARE_TRY(need_sequence(c, 0, &sequence));
    TARE_TRY(tare__onnx_need_input(c, 1, "tensor", &item));
    TARE_TRY(read_position(c, 2, sequence.count, sequence.count, &at));
    value *items = new_values(c, sequence.count + 1);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t i = 0; i <= sequence.count; i++)
        items[i] = i == at ? item : sequence.as.items[i < at ? i : i - 1];
    return give_sequence(c, items, sequence.count + 1);
}

static tare_status translate_sequence_at(onnx_call *c) {
    value sequence;
    size_t at = 0;
    TARE_TRY(need_item_at(c, &sequence, &at));
    return tare__onnx_give(c, &sequence.as.items[at]);
}

static tare_status translate_sequence_erase(onnx_call *c) {
    value sequence;
    size_t at = 0;
    TARE_TRY(need_item_at(c, &sequence, &at));
    value *items = new_values(c, sequence.count);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t i = 0, k = 0; i < sequence.count; i++)
        if (i != at) items[k++] = sequence.as.items[i];
    return give_sequence(c, items, sequence.count - 1);
}

static tare_status translate_sequence_length(onnx_call *c) {
    value sequence, made;
    tare_tensor *length = NULL;
    TARE_TRY(need_sequence(c, 0, &sequence));
    TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, 0, NULL, &length));
    tare__tensor_set_int(length, 0, sequence.count);
    TARE_TRY(tare__onnx_take_tensor(c, length, &made));
    return tare__onnx_give(c, &made);
}

static tare_status translate_concat_from_sequence(onnx_call *c) {
    value sequence, list, made;
    int64_t axis = 0;
    bool is_new = false;
    TARE_TRY(need_items(c, &sequence));
    TARE_TRY(tare__onnx_attr_int(c, "axis", 0, &axis));
    TARE_TRY(tare__onnx_attr_bool(c, "new_axis", false, &is_new));
    TARE_TRY(tare__onnx_list(c, sequence.as.items, sequence.count, &list));
    TARE_TRY(ONNX_CALL(c, &made, is_new ? "torch.stack" : "torch.cat", list, tare__int(axis)));
    return tare__onnx_give(c, &made);
}

// The sizes of the slices: a list, one size for all but the last, or 1.
static tare_status read_slices(onnx_call *c, int64_t total, int64_t *sizes, size_t *count,
                               bool *given) {
    int64_t each = 1;
    TARE_TRY(tare__onnx_input_ints(c, 1, "split", MOST_ROUNDS, sizes, count, given));
    const value split = tare__onnx_input(c, 1);
    const tare_tensor *t = tare__onnx_meta(c, &split);
    if (*given && t != NULL && t->ndim > 0) return TARE_OK;
    if (*given) each = sizes[0];
    if (each < 1 || total / each + (total % each != 0) > MOST_ROUNDS)
        return tare__onnx_malformed(c, "slices of %lld of a size of %lld", (long long)each,
                                    (long long)total);
    for (*count = 0; total > 0; total -= each) sizes[(*count)++] = total < each ? total : each;
    return TARE_OK;
}

static tare_status translate_split_to_sequence(onnx_call *c) {
    value x, list, slices;
    const tare_tensor *t = NULL;
    int64_t axis, keeps = 1;
    size_t count = 0;
    bool given = false;
    TARE_TRY(tare__onnx_need_first(c, "input", &x, &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_int(c, "keepdims", 1, &keeps));
    if (tare__onnx_size_is_open(c, &x, (int)axis))
        return refuse(c, "the length of a sequence depends on an open dimension");
    int64_t *sizes = tare__arena_array(tare__onnx_arena(c), MOST_ROUNDS, sizeof *sizes);
    value *items = new_values(c, MOST_ROUNDS);
    if (sizes == NULL || items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(read_slices(c, t->shape[axis], sizes, &count, &given));
    TARE_TRY(tare__onnx_count_unrolled(c, !given && keeps == 0 ? 2 * count : count));
    TARE_TRY(tare__onnx_ints(c, sizes, count, &list));
    TARE_TRY(ONNX_CALL(c, &slices, "torch.split", x, list, tare__int(axis)));
    for (size_t i = 0; i < count; i++) {
        TARE_TRY(tare__onnx_item(c, &slices, (int64_t)i, &items[i]));
        if (!given && keeps == 0)
            TARE_TRY(ONNX_CALL(c, &items[i], "torch.squeeze", items[i], tare__int(axis)));
    }
    return give_sequence(c, items, count);
}

static const onnx_rule read_rows[] = {
    {"ConcatFromSequence", .translate = translate_concat_from_sequence},
    {"If", .translate = translate_if},
    {"Loop", .translate = translate_loop},
    {"Scan", .translate = translate_scan},
    {"SequenceAt", .translate = translate_sequence_at},
    {"SequenceConstruct", .translate = translate_sequence_construct},
    {"SequenceEmpty", .translate = translate_sequence_empty},
    {"SequenceErase", .translate = translate_sequence_erase},
    {"SequenceInsert", .translate = translate_sequence_insert},
    {"SequenceLength", .translate = translate_sequence_length},
    {"SplitToSequence", .translate = translate_split_to_sequence},
};

const onnx_family tare__onnx_flow_family = {.read = ONNX_RULES(read_rows)};
