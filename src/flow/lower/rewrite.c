// SPDX-License-Identifier: Apache-2.0
// Rewrites of dequantize - operator - quantize that both modes use.
#include "flow/lower/rewrite.h"

#include <string.h>

#include "flow/pack.h"
#include "model/coverage.h"

bool tare__is_quantize_node(const node *n) {
    return tare__function_op(n) == TARE_OP_QUANTIZE_PER_TENSOR;
}

bool tare__is_dequantize_node(const node *n) {
    return tare__calls_method(n, TARE_OP_DEQUANTIZE);
}

tare_status tare__insert_dequantize(pass *p, node *quantized, node *before, node **out) {
    const value input = tare__node_value(quantized);
    const op_name name = tare__op_method_name(tare__op_row(TARE_OP_DEQUANTIZE));
    const node_spec spec = {
        .op = NODE_CALL_METHOD, .target = name.text, .args = &input, .arg_count = 1};
    return tare__graph_insert(quantized->owner, &spec, before, out, p->err);
}

// The dequantize nodes among a node's inputs.
typedef struct bypass {
    bool (*takes)(const void *user, const node *dequantize);
    const void *user;
    node **found;
    size_t count;
} bypass;

static void collect(void *user, node *input) {
    bypass *b = user;
    if (tare__is_dequantize_node(input) && tare__node_arg(input, 0) != NULL &&
        (b->takes == NULL || b->takes(b->user, input)))
        b->found[b->count++] = input;
}

tare_status tare__bypass_dequantize(pass *p, node *n,
                                    bool (*takes)(const void *user, const node *dequantize),
                                    const void *user) {
    // Inputs change during the walk, so they are listed first.
    bypass b = {.takes = takes, .user = user};
    b.found = tare__arena_array(&p->scratch, n->input_count + 1, sizeof *b.found);
    if (b.found == NULL) return tare__out_of_memory(p->err);
    tare__node_each_input(n, collect, &b);
    for (size_t i = 0; i < b.count; i++)
        TARE_TRY(tare__node_replace_input(n, b.found[i], tare__node_arg(b.found[i], 0), p->err));
    return TARE_OK;
}

const op_info *tare__quantized_form(const op_info *op, bool wants_relu, bool *has_relu) {
    const op_info *with_relu = wants_relu ? tare__op_form(op, FORM_QUANTIZED_RELU) : NULL;
    *has_relu = with_relu != NULL;
    return *has_relu ? with_relu : tare__op_form(op, FORM_QUANTIZED);
}

// Arguments without a meaning for values.
static bool is_meaningless(const function_call *call, const char *name, const value *v) {
    static const char *const names[] = {"inplace", "cudnn_enable", "cudnn_enabled", "_stacklevel"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    const op_id id = tare__op_id(call->bound.op);
    const bool is_bool = v->kind == VALUE_BOOL;
    if (strcmp(name, "training") == 0 || strcmp(name, "return_indices") == 0)
        return is_bool && !v->as.boolean;
    // What does not train keeps its statistics as they are.
    if (strcmp(name, "momentum") == 0)
        return id == TARE_OP_BATCH_NORM || id == TARE_OP_INSTANCE_NORM;
    if (id != TARE_OP_INSTANCE_NORM) return false;
    if (strcmp(name, "use_input_stats") == 0) return is_bool && v->as.boolean;
    return strcmp(name, "running_mean") == 0 || strcmp(name, "running_var") == 0;
}

// Do they share a name? Each may have several.
static bool is_same_parameter(const op_info *a, size_t i, const op_info *b, size_t j) {
    char name[64];
    return (tare__op_param_name(a, i, name, sizeof name) > 0 && tare__op_param_is(b, j, name)) ||
           (tare__op_param_name(b, j, name, sizeof name) > 0 && tare__op_param_is(a, i, name));
}

bool tare__form_keeps_place(const op_info *op, const op_info *form, size_t i) {
    return is_same_parameter(op, i, form, i);
}

const value *tare__form_argument(const function_call *call, const op_info *form, size_t j) {
    for (size_t i = 0; i < call->bound.param_count; i++)
        if (is_same_parameter(call->bound.op, i, form, j)) return call->bound.param[i];
    return NULL;
}

static bool has_parameter(const op_info *op, size_t i, const op_info *form) {
    for (size_t j = 0; j < tare__op_param_count(form); j++)
        if (is_same_parameter(op, i, form, j)) return true;
    return false;
}

bool tare__form_takes(const function_call *call, const op_info *form) {
    char name[64];
    for (size_t i = 0; i < call->bound.param_count; i++) {
        const value *v = call->bound.param[i];
        if (v == NULL || v->kind == VALUE_NONE || has_parameter(call->bound.op, i, form)) continue;
        if (tare__op_param_name(call->bound.op, i, name, sizeof name) == 0 ||
            !is_meaningless(call, name, v))
            return false;
    }
    return true;
}

tare_status tare__retarget(pass *p, node *n, const op_info *form, const value *args, size_t count) {
    const char *target = tare__arena_strdup(&n->owner->memory, tare__op_function_name(form).text);
    if (target == NULL) return tare__out_of_memory(p->err);
    TARE_TRY(TARE_DECIDE(p, n, "lowered", target, "computed in integers by %s", target));
    n->op = NODE_CALL_FUNCTION;
    n->target = target;
    return tare__node_set_args(n, args, count, NULL, 0, p->err);
}

tare_status tare__replace_quantize(pass *p, node *quantize, node *n) {
    TARE_TRY(tare__node_replace_uses(quantize, n, NULL, p->err));
    return tare__graph_erase(quantize->owner, quantize, p->err);
}

tare_status tare__absorb_bound(pass *p, node *bound, node *n) {
    TARE_TRY(tare__coverage_fused(p->model, bound->origin, n->origin, p->err));
    n->debug_handle = bound->debug_handle;
    TARE_TRY(tare__node_replace_uses(bound, n, NULL, p->err));
    return tare__graph_erase(bound->owner, bound, p->err);
}

tare_status tare__absorb_relu(pass *p, node *relu, node *n) {
    TARE_TRY(TARE_DECIDE(p, relu, "lowered", n->target, "computed in integers by %s", n->target));
    return tare__absorb_bound(p, relu, n);
}

// Fuses the sum with the preceding layer.
static tare_status join_layer(pass *p, const node *layer, const packed_call *call) {
    if (call->n == layer) return TARE_OK;
    TARE_TRY(TARE_DECIDE(p, layer, "lowered", tare__op_function_name(call->form).text,
                         "computed in integers by '%s', with its sum", call->n->name));
    return tare__coverage_fused(p->model, layer->origin, call->n->origin, p->err);
}

tare_status tare__call_packed(pass *p, const function_call *layer, module *packed,
                              packed_call *call) {
    node *weights = NULL;
    TARE_TRY(tare__insert_packed(p, packed, layer->function, call->before, &weights));
    call->args[call->weights] = tare__node_value(weights);
    TARE_TRY(join_layer(p, layer->function, call));
    return tare__retarget(p, call->n, call->form, call->args, call->arg_count);
}
