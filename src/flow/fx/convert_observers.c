// SPDX-License-Identifier: Apache-2.0
// Convert: replaces every observer node by quantize and dequantize, or removes it.
#include <stdio.h>
#include <string.h>

#include "flow/fx/convert_custom.h"
#include "flow/lower/rewrite.h"
#include "flow/observer_site.h"
#include "observe/dtype_roles.h"
#include "ops/op.h"

static bool is_convertible(const tare_observer_info *info) {
    return tare__dtype_has_role(info->dtype, DTYPE_CONVERTED) || info->is_dynamic;
}

// The replacement of an observer node. Buffers are named after the operator of the values.
typedef struct replacement {
    convert_pass *convert;
    observer_site site;
    const module *module;
} replacement;

static tare_error *err_of(const replacement *r) {
    return r->convert->base->err;
}

static tare_status remove_observer(const replacement *r) {
    return tare__site_finish(&r->site, r->site.watched);
}

static bool is_unwanted(const replacement *r) {
    if (!tare__convert_has_no_qconfig(r->convert, r->site.watched)) return false;
    for (size_t i = 0; i < r->site.observer->user_count; i++)
        if (!tare__convert_has_no_qconfig(r->convert, r->site.observer->users[i])) return false;
    return true;
}

// The node whose scope names the buffers: the observed one, or the consumer if only that is
// quantized.
static const node *named_after(const replacement *r, bool is_input) {
    if (!is_input) return r->site.watched;
    for (size_t i = 0; i < r->site.observer->user_count; i++) {
        const node *user = r->site.observer->users[i];
        if (tare__function_op(user) == TARE_OP_LINEAR && tare__uses_first_name(user)) return user;
    }
    return r->site.observer->user_count > 0 ? r->site.observer->users[0] : NULL;
}

static tare_status choose_prefix(replacement *r) {
    const bool is_input = tare__convert_has_no_qconfig(r->convert, r->site.watched);
    const node *n = named_after(r, is_input);
    const char *path = n != NULL && n->scope_path != NULL ? n->scope_path : "";
    char *prefix =
        tare__arena_printf(&r->convert->base->scratch, "%s%s", path, is_input ? "_input" : "");
    if (prefix == NULL) return tare__out_of_memory(err_of(r));
    for (char *c = prefix; *c != '\0'; c++)
        if (*c == '.') *c = '_';
    r->site.prefix = prefix;
    return TARE_OK;
}

static tare_status insert_dequantize(const replacement *r, node *quantized) {
    node *dequantized = NULL;
    TARE_TRY(tare__insert_dequantize(r->convert->base, quantized, r->site.observer, &dequantized));
    return tare__site_finish(&r->site, dequantized);
}

static tare_dtype zero_point_dtype(const qparams *q) {
    return q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS ? TARE_FLOAT32 : TARE_INT64;
}

static tare_status replace_by_buffers(const replacement *r, const qparams *q) {
    const bool per_channel = tare__qscheme_is_per_channel(q->scheme);
    node *quantized = NULL;
    value args[5] = {tare__node_value(r->site.watched)};
    TARE_TRY(tare__site_insert_numbers(&r->site, "_scale_", TARE_FLOAT32, per_channel, q->count,
                                       q->scale, &args[1]));
    TARE_TRY(tare__site_insert_numbers(&r->site, "_zero_point_", zero_point_dtype(q), per_channel,
                                       q->count, q->zero_point, &args[2]));
    size_t count = 3;
    if (per_channel) args[count++] = tare__int(q->axis);
    args[count++] = tare__dtype_value(r->site.info->dtype);
    TARE_TRY(tare__site_call(
        &r->site, per_channel ? TARE_OP_QUANTIZE_PER_CHANNEL : TARE_OP_QUANTIZE_PER_TENSOR, args,
        count, &quantized));
    return insert_dequantize(r, quantized);
}

// Per-tensor parameters are literals, per-channel ones are buffers.
static tare_status replace_decomposed(const replacement *r, const qparams *q) {
    const decomposed_form form = {.zero_point_dtype = zero_point_dtype(q)};
    return tare__site_decompose(&r->site, q, &form);
}

static tare_status check_calibrated(const replacement *r, bool is_calibrated) {
    if (is_calibrated) return TARE_OK;
    if (r->convert->options->is_lenient)
        return TARE_DECIDE(r->convert->base, r->site.observer, "warning", "calibration",
                           "its observer has seen no data: scale 1, zero point 0");
    const tare_status status = tare__fail(
        err_of(r), TARE_INVALID_ARGUMENT, "node '%s': the observer '%s' of '%s' has seen no data",
        r->site.observer->name, r->site.observer->target, r->site.watched->name);
    return tare__hint(
        err_of(r), status,
        "calibrate the prepared model before it is converted; tare quantize: --calibrate DATA");
}

static tare_status replace_static(const replacement *r) {
    TARE_TRY(tare__site_refuse_groups(&r->site));
    const qparams *q = NULL;
    bool is_calibrated = false;
    TARE_TRY(tare__observer_qparams(r->module, &q, &is_calibrated, err_of(r)));
    tare_status status = check_calibrated(r, is_calibrated);
    if (status == TARE_OK)
        status = tare__at(err_of(r), tare__convert_check(q, err_of(r)), "node '%s'",
                          r->site.observer->name);
    if (status == TARE_OK)
        status = tare__convert_apply_limits(r->convert, r->site.watched, r->module, &q);
    if (status == TARE_OK)
        status = r->convert->form == CONVERT_DECOMPOSED ? replace_decomposed(r, q)
                                                        : replace_by_buffers(r, q);
    tare__qparams_release(q);
    return status;
}

// torch's fbgemm and x86 engines use one bit less for dynamic quantization, because their kernels
// may saturate.
static bool reduces_range(const convert_pass *c) {
    return c->options->engine != TARE_ENGINE_QNNPACK && c->options->engine != TARE_ENGINE_ONEDNN;
}

static tare_status insert_item(const replacement *r, node *tuple, int64_t index, node **out) {
    const value args[] = {tare__node_value(tuple), tare__int(index)};
    return tare__site_call(&r->site, TARE_OP_GETITEM, args, 2, out);
}

// Each row (token) has its own scale, computed at run time.
static tare_status replace_rows(const replacement *r) {
    const value watched = tare__node_value(r->site.watched), dtype = tare__dtype_value(TARE_INT8);
    const value choose_args[] = {watched, dtype};
    node *chosen = NULL, *scale = NULL, *zero = NULL, *quantized = NULL, *dequantized = NULL;
    TARE_TRY(tare__site_call(&r->site, TARE_OP_DECOMPOSED_CHOOSE_QPARAMS_PER_TOKEN, choose_args, 2,
                             &chosen));
    TARE_TRY(insert_item(r, chosen, 0, &scale));
    TARE_TRY(insert_item(r, chosen, 1, &zero));
    const value low = tare__int(-128), high = tare__int(127);
    const value quantize_args[] = {
        watched, tare__node_value(scale), tare__node_value(zero), low, high, dtype};
    TARE_TRY(tare__site_call(&r->site, TARE_OP_DECOMPOSED_QUANTIZE_PER_TOKEN, quantize_args, 6,
                             &quantized));
    const value values_args[] = {tare__node_value(quantized),
                                 tare__node_value(scale),
                                 tare__node_value(zero),
                                 low,
                                 high,
                                 dtype,
                                 tare__dtype_value(TARE_FLOAT32)};
    TARE_TRY(tare__site_call(&r->site, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TOKEN, values_args, 7,
                             &dequantized));
    return tare__site_finish(&r->site, dequantized);
}

static tare_status replace_dynamic(const replacement *r) {
    const value args[] = {tare__node_value(r->site.watched), tare__dtype_value(r->site.info->dtype),
                          tare__bool(reduces_range(r->convert))};
    node *quantized = NULL;
    TARE_TRY(tare__site_call(&r->site, TARE_OP_QUANTIZE_PER_TENSOR_DYNAMIC, args, 3, &quantized));
    return insert_dequantize(r, quantized);
}

// A node computes the range at run time.
static tare_status replace_dynamic_decomposed(const replacement *r) {
    const tare_observer_info *info = r->site.info;
    const decomposed_form form = {.eps = info->has_eps ? (double)info->eps : 0};
    return tare__site_decompose_dynamic(&r->site, &form);
}

static tare_status replace_half(const replacement *r) {
    const value args[] = {tare__node_value(r->site.watched), tare__dtype_value(TARE_FLOAT16)};
    node *half = NULL;
    const op_name name = tare__op_method_name(tare__op_row(TARE_OP_TO));
    TARE_TRY(tare__site_insert(&r->site, NODE_CALL_METHOD, name.text, args, 2, &half));
    return insert_dequantize(r, half);
}

static tare_status replace(replacement *r) {
    if (is_unwanted(r) || !is_convertible(r->site.info)) return remove_observer(r);
    TARE_TRY(choose_prefix(r));
    const bool is_half = r->site.info->dtype == TARE_FLOAT16;
    if (r->site.info->is_dynamic && tare__qscheme_is_per_group(r->site.info->qscheme))
        return replace_rows(r);
    if (r->convert->form == CONVERT_DECOMPOSED) {
        if (is_half) return tare__site_decompose_half(&r->site);
        if (r->site.info->is_dynamic) return replace_dynamic_decomposed(r);
    }
    if (r->site.info->is_dynamic) return replace_dynamic(r);
    if (is_half) return replace_half(r);
    const dtype_role role = r->convert->form == CONVERT_DECOMPOSED ? DTYPE_CONVERTED : DTYPE_STATIC;
    if (tare__dtype_has_role(r->site.info->dtype, role)) return replace_static(r);
    // Other integer dtypes pass torch's support check, but stay observed (verified with torch
    // 2.15).
    r->convert->has_kept_observers = true;
    return TARE_OK;
}

// The weights of dynamic and weight-only functions may not have been observed during calibration.
tare_status tare__convert_observe_weights(convert_pass *c) {
    for (const node *n = c->base->model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_FUNCTION) continue;
        const tare_pattern_config *config =
            tare__backend_config_for_operator(c->base->backend, n->target);
        const int64_t index =
            config != NULL ? tare__pattern_config_input_index(config, "weight") : -1;
        const value *given = tare__node_kwarg(n, "weight");
        node *weight = given != NULL && given->kind == VALUE_NODE ? given->as.node : NULL;
        if (weight == NULL && index >= 0) weight = tare__node_arg(n, (size_t)index);
        if (weight == NULL || !tare__is_observer_node(c->base->model, weight)) continue;
        const value wanted = tare__node_value(weight);
        value found = tare__none();
        TARE_TRY(tare__pass_fold(c->base, &wanted, 1, n, &found));
        tare__value_release_tensors(&found);
    }
    return TARE_OK;
}

static tare_status convert_observer(convert_pass *c, node *n) {
    replacement r = {.convert = c, .module = tare__called_module(c->base->model, n)};
    r.site = (observer_site){.p = c->base,
                             .observer = n,
                             .watched = tare__node_arg(n, 0),
                             .info = tare__observer_info(r.module)};
    if (r.site.watched == NULL)
        return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                          "node '%s': an observer needs one input", n->name);
    if (r.site.watched->id < c->first_new && c->gives_quantized[r.site.watched->id])
        return tare__convert_custom_result(c, n, r.site.watched);
    return replace(&r);
}

static tare_status convert_call(convert_pass *c, node *n) {
    const module *m = tare__called_module(c->base->model, n);
    if (m == NULL) return TARE_OK;
    if (m->class->role == ROLE_OBSERVER) return convert_observer(c, n);
    const bool is_stub = tare__class_op(m->class) == TARE_OP_DEQUANT_STUB;
    if (is_stub && tare__node_arg(n, 0) != NULL)
        return tare__convert_custom_result(c, n, tare__node_arg(n, 0));
    const prepared_state *standalone = tare__prepared_child(c->prepared, n->target);
    if (standalone != NULL && m->graph != NULL)
        return tare__convert_standalone_call(c, n, standalone);
    const char *quantized =
        tare__class_pairs_get(&c->custom->observed_to_quantized, m->class->name);
    return quantized != NULL ? tare__convert_custom_call(c, n, quantized) : TARE_OK;
}

static tare_status convert_node(convert_pass *c, node *n, int64_t *input_count) {
    switch (n->op) {
    case NODE_PLACEHOLDER:
        return tare__convert_input(c, n, (*input_count)++);
    case NODE_OUTPUT:
        return tare__convert_output(c, n);
    case NODE_CALL_MODULE:
        return convert_call(c, n);
    case NODE_GET_ATTR:
    case NODE_CALL_FUNCTION:
    case NODE_CALL_METHOD:
        break;
    }
    return TARE_OK;
}

// --- what stays observed ---

// A search among the neighbours of a node.
typedef struct kept_search {
    const tare_model *model;
    const node *observer; // NULL: none found
} kept_search;

static void look_for_observer(void *user, node *neighbour) {
    kept_search *s = user;
    if (s->observer == NULL && tare__is_observer_node(s->model, neighbour)) s->observer = neighbour;
}

// An operator computes in float if its inputs or its result are still observed.
static tare_status explain_kept(const convert_pass *c, const node *n) {
    const prepared_node *known = tare__prepared_node(c->prepared, n->name);
    kept_search s = {.model = c->base->model};
    if (known == NULL || !known->is_observed) return TARE_OK;
    tare__node_each_input(n, look_for_observer, &s);
    for (size_t i = 0; i < n->user_count; i++) look_for_observer(&s, n->users[i]);
    if (s.observer == NULL) return TARE_OK;
    const module *m = tare__called_module(s.model, s.observer);
    return TARE_DECIDE(c->base, n, "left float", "dtype",
                       "FX graph mode has no quantize operator for %s: '%s' stays in the graph, "
                       "and its values stay float",
                       tare_dtype_name(tare__observer_info(m)->dtype), s.observer->name);
}

static tare_status explain_all_kept(const convert_pass *c) {
    if (!c->has_kept_observers) return TARE_OK;
    for (const node *n = c->base->model->root->graph->first; n != NULL; n = n->next)
        TARE_TRY(explain_kept(c, n));
    return TARE_OK;
}

// --- all nodes ---

tare_status tare__convert_nodes(convert_pass *c) {
    // As in torch, the walk covers only the nodes that existed before.
    const graph *g = c->base->model->root->graph;
    int64_t input_count = 0;
    const size_t first_new = c->first_new = g->next_id;
    c->gives_quantized =
        tare__arena_array(&c->base->scratch, first_new + 1, sizeof *c->gives_quantized);
    if (c->gives_quantized == NULL) return tare__out_of_memory(c->base->err);
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (n->id < first_new) TARE_TRY(convert_node(c, n, &input_count));
    }
    return explain_all_kept(c);
}
