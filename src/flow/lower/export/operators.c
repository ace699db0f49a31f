// SPDX-License-Identifier: Apache-2.0
// Lowering of operators without a weight: dequantize - operator - quantize. Operators that only
// move or clamp values work on the quantized values; sums and products of two tensors have
// functions of their own; all others become one function defined as quantize(op(dequantize(x))).
#include <string.h>

#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"
#include "model/coverage.h"

// A call between quantized values.
typedef struct operator_call {
    lowering *l;
    node *n;
    function_call call; // of n
    ending end;
    quantized_params result;
} operator_call;

// The parameters of the i-th argument; NULL: it is no dequantized tensor.
static const quantized_params *quantized_of(const operator_call *c, size_t i) {
    const value *v = i < c->call.bound.param_count ? c->call.bound.param[i] : NULL;
    return v != NULL && v->kind == VALUE_NODE ? tare__quantized_behind(c->l, v->as.node) : NULL;
}

static bool is_operator(const operator_call *c, op_id id) {
    return tare__op_id(c->call.bound.op) == id;
}

// --- what its inputs are ---

typedef struct survey {
    const operator_call *c;
    size_t float_count, same_count, other_count; // other: quantized with other parameters
    bool mixes_dtypes;
} survey;

static void look(void *user, node *input) {
    survey *s = user;
    const quantized_params *quantized = tare__quantized_behind(s->c->l, input);
    if (quantized == NULL)
        s->float_count++;
    else if (tare__quantized_params_equal(quantized, &s->c->result))
        s->same_count++;
    else
        s->other_count++;
    if (quantized != NULL && quantized->dtype != s->c->result.dtype) s->mixes_dtypes = true;
}

static survey survey_of(const operator_call *c) {
    survey s = {.c = c};
    tare__node_each_input(c->n, look, &s);
    return s;
}

// --- on the quantized values themselves ---

static tare_status finish_on_quantized(const operator_call *c) {
    TARE_TRY(tare__write_nothing(c->l, c->n));
    TARE_TRY(TARE_DECIDE(c->l->p, c->n, "lowered", c->n->target, "computed on integers"));
    TARE_TRY(tare__read_quantized(c->l, c->n));
    return tare__end_in_quantized(c->l, c->n, &c->end, false);
}

static bool moves(const operator_call *c) {
    return (c->call.bound.op->traits & OP_MOVES_DATA) != 0;
}

static bool works_on_quantized(const operator_call *c, const survey *s) {
    const unsigned keeps = c->call.bound.op->traits & (OP_MOVES_DATA | OP_KEEPS_QPARAMS);
    // Indices are not floats; other operators would mix floats with quantized values.
    const bool takes_indices = moves(c) && quantized_of(c, 0) != NULL;
    return keeps != 0 && s->same_count > 0 && s->other_count == 0 &&
           (s->float_count == 0 || takes_indices);
}

// The maximum of values is the maximum of their quantized values, without rounding.
static bool is_exact_on_quantized(const operator_call *c, const survey *s) {
    if (s->other_count != 1 || s->same_count > 0 || s->mixes_dtypes || quantized_of(c, 0) == NULL)
        return false;
    return moves(c) || tare__op_has(c->call.bound.op, OP_GREATEST) || is_operator(c, TARE_OP_RELU);
}

// The operator keeps its input's parameters, and its result is requantized.
static tare_status finish_with_other_quantized(const operator_call *c) {
    lowering *l = c->l;
    node *n = c->n, *made = NULL;
    const quantized_params own = *quantized_of(c, 0);
    TARE_TRY(tare__write_nothing(l, n));
    TARE_TRY(TARE_DECIDE(l->p, n, "lowered", n->target,
                         "computed on integers with the output's parameters"));
    TARE_TRY(tare__read_quantized(l, n));
    TARE_TRY(tare__note_quantized(l, n, &own));
    const value x = tare__node_value(n);
    const keyword output[] = {{"output_scale", tare__float(c->result.scale)},
                              {"output_zero_point", tare__int(c->result.zero_point)}};
    const op_name identity = tare__op_function_name(tare__op_row(TARE_OP_TARE_IDENTITY));
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = identity.text,
                            .args = &x,
                            .arg_count = 1,
                            .kwargs = output,
                            .kwarg_count = 2};
    TARE_TRY(tare__graph_insert(n->owner, &spec, n->next, &made, l->p->err));
    made->debug_handle = n->debug_handle;
    // Readers of the operator's floats read the dequantized result.
    TARE_TRY(tare__node_replace_uses(n, made, made, l->p->err));
    return tare__end_in_quantized(l, made, &c->end, false);
}

// --- sums and products ---

static bool is_binary(const operator_call *c, const survey *s) {
    value operands[2];
    return (is_operator(c, TARE_OP_ADD) || is_operator(c, TARE_OP_MUL)) &&
           tare__function_operands(&c->call, operands) && quantized_of(c, 0) != NULL &&
           quantized_of(c, 1) != NULL && !s->mixes_dtypes;
}

static tare_status finish_binary(const operator_call *c) {
    bool has_relu = false;
    const op_info *form = tare__quantized_form(c->call.bound.op, c->end.relu != NULL, &has_relu);
    value args[4] = {*c->call.bound.param[0], *c->call.bound.param[1], tare__float(c->result.scale),
                     tare__int(c->result.zero_point)};
    for (size_t i = 0; i < 2; i++) args[i] = tare__node_value(tare__node_arg(args[i].as.node, 0));
    TARE_TRY(tare__retarget(c->l->p, c->n, form, args, 4));
    return tare__end_in_quantized(c->l, c->n, &c->end, has_relu);
}

// --- the general rule ---

// The row that computes the operator by this rule; NULL: there is none.
static const op_info *rule_of(const operator_call *c, const survey *s) {
    static const op_form forms[] = {FORM_BY_RULE, FORM_QUANTIZED};
    const bool is_list = is_operator(c, TARE_OP_CAT);
    if (s->mixes_dtypes || (is_list ? s->float_count > 0 : quantized_of(c, 0) == NULL)) return NULL;
    for (size_t i = 0; i < 2; i++) {
        const op_info *row = tare__op_form(c->call.bound.op, forms[i]);
        if (row != NULL && tare__op_param_index(row, "output_scale") < tare__op_param_count(row) &&
            tare__form_takes(&c->call, row))
            return row;
    }
    return NULL;
}

// Arguments are positional as far as possible, then by name.
static tare_status finish_by_rule(const operator_call *c, const op_info *row) {
    lowering *l = c->l;
    value args[OP_MAX_PARAMS];
    keyword kwargs[OP_MAX_PARAMS + 2];
    size_t arg_count = 0, kwarg_count = 0;
    char name[64];
    for (size_t i = 0; tare__op_param_name(row, i, name, sizeof name) > 0; i++) {
        const value *v = tare__form_argument(&c->call, row, i);
        if (v == NULL || v->kind == VALUE_NONE) continue;
        if (i == arg_count) {
            args[arg_count++] = *v;
            continue;
        }
        const char *copy = tare__arena_strdup(&l->p->scratch, name);
        if (copy == NULL) return tare__out_of_memory(l->p->err);
        kwargs[kwarg_count++] = (keyword){copy, *v};
    }
    kwargs[kwarg_count++] = (keyword){"output_scale", tare__float(c->result.scale)};
    kwargs[kwarg_count++] = (keyword){"output_zero_point", tare__int(c->result.zero_point)};
    TARE_TRY(tare__retarget(l->p, c->n, row, args, arg_count));
    TARE_TRY(tare__node_set_args(c->n, args, arg_count, kwargs, kwarg_count, l->p->err));
    TARE_TRY(tare__read_quantized(l, c->n));
    return tare__end_in_quantized(l, c->n, &c->end, false);
}

// --- one operator ---

// In training mode batch norms use the batch's statistics. A dropout is treated as its input in any
// mode.
static bool trains(const operator_call *c) {
    const value *v = tare__function_argument(&c->call, "training");
    return v != NULL && v->kind == VALUE_BOOL && v->as.boolean &&
           !is_operator(c, TARE_OP_DROPOUT) &&
           !is_operator(c, TARE_OP_INSTANCE_NORM); // its argument says that it has no statistics
}

// Without effect outside of training.
static bool is_dropped(const operator_call *c, const survey *s) {
    return is_operator(c, TARE_OP_DROPOUT) && s->same_count == 1;
}

static tare_status drop(const operator_call *c) {
    tare_error *err = c->l->p->err;
    TARE_TRY(TARE_DECIDE(c->l->p, c->n, "lowered", c->n->target, "changes nothing"));
    node *quantized = tare__node_arg(tare__node_arg(c->n, 0), 0);
    TARE_TRY(tare__coverage_fused(c->l->p->model, c->n->origin, quantized->origin, err));
    return tare__replace_quantize(c->l->p, c->end.quantize, quantized);
}

static tare_status lower_constants(const operator_call *c) {
    for (size_t i = 0; i < c->n->input_count; i++)
        TARE_TRY(tare__lower_constant(c->l, c->n->inputs[i]));
    return TARE_OK;
}

static tare_status lower(const operator_call *c) {
    TARE_TRY(lower_constants(c));
    const survey s = survey_of(c);
    if (s.same_count + s.other_count == 0 || trains(c)) return TARE_OK;
    if (is_dropped(c, &s) && c->end.relu == NULL && c->end.clamp == NULL) return drop(c);
    if (works_on_quantized(c, &s)) return finish_on_quantized(c);
    if (is_binary(c, &s)) return finish_binary(c);
    if (is_exact_on_quantized(c, &s)) return finish_with_other_quantized(c);
    const op_info *row = rule_of(c, &s);
    return row != NULL ? finish_by_rule(c, row) : TARE_OK;
}

// It would overwrite a value that others still read.
static bool writes_shared(const node *n) {
    const node *written = tare__writes_first_argument(n) ? tare__node_arg(n, 0) : NULL;
    return written != NULL && written->user_count > 1;
}

// --- quantized values of other parameters ---

// quantize(dequantize(quantized values)): no operation, or a table.
static tare_status requantize(lowering *l, node *n) {
    const node *source = tare__node_arg(n, 0);
    const quantized_params *from = tare__quantized_behind(l, source),
                           *to = tare__quantized_given(l, n);
    if (from == NULL || to == NULL || from->dtype != to->dtype) return TARE_OK;
    node *quantized = tare__node_arg(source, 0);
    if (tare__quantized_params_equal(from, to))
        return tare__node_replace_uses(n, quantized, NULL, l->p->err);
    const value x = tare__node_value(quantized);
    const keyword output[] = {{"output_scale", tare__float(to->scale)},
                              {"output_zero_point", tare__int(to->zero_point)}};
    TARE_TRY(tare__retarget(l->p, n, tare__op_row(TARE_OP_TARE_IDENTITY), &x, 1));
    return tare__node_set_args(n, &x, 1, output, 2, l->p->err);
}

static tare_status visit(lowering *l, node *n) {
    if (tare__is_quantize_node(n)) return requantize(l, n);
    operator_call c = {.l = l, .n = n, .end = tare__ending_of(l, n)};
    if (writes_shared(n) || !tare__function_bind(&l->p->scratch, n, &c.call)) return TARE_OK;
    if (c.call.bound.op->traits & OP_NOT_ON_TENSORS)
        return tare__read_quantized(l, n); // returns a size
    const quantized_params *result = tare__quantized_given(l, c.end.quantize);
    if (result == NULL || (c.call.bound.op->traits & OP_WEIGHTED)) return TARE_OK;
    if (tare__pt2e_stays_float(l->p, n)) return TARE_OK;
    // An operator that converts dtypes cannot be between quantized values.
    const unsigned kept = c.call.bound.op->traits & (OP_ANY_DTYPE | OP_KEEPS_QPARAMS);
    if (kept == OP_ANY_DTYPE) return TARE_OK;
    c.result = *result;
    return tare__at(l->p->err, lower(&c), "node '%s'", n->name);
}

tare_status tare__pt2e_lower_operators(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) TARE_TRY(visit(l, n));
    return TARE_OK;
}
