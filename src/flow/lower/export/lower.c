// SPDX-License-Identifier: Apache-2.0
// Lowering of converted programs: the list of its steps, and helpers that they share.
#include "flow/lower/export/lower.h"

#include <string.h>

#include "core/struct_size.h"
#include "flow/export/convert.h"
#include "model/coverage.h"

// --- quantized values ---

const quantized_params *tare__quantized_given(const lowering *l, const node *n) {
    if (n == NULL || n->id >= l->capacity || l->params[n->id].dtype == TARE_DTYPE_UNSET)
        return NULL;
    return &l->params[n->id];
}

tare_status tare__note_quantized(lowering *l, const node *n, const quantized_params *params) {
    if (n->id >= l->capacity) {
        const size_t capacity = 2 * n->id + 64;
        quantized_params *larger = tare__arena_array(&l->p->scratch, capacity, sizeof *larger);
        if (larger == NULL) return tare__out_of_memory(l->p->err);
        if (l->capacity > 0) memcpy(larger, l->params, l->capacity * sizeof *larger);
        l->params = larger;
        l->capacity = capacity;
    }
    l->params[n->id] = *params;
    return TARE_OK;
}

bool tare__quantized_params_equal(const quantized_params *a, const quantized_params *b) {
    return a->dtype == b->dtype && a->scale == b->scale && a->zero_point == b->zero_point;
}

const quantized_params *tare__quantized_behind(const lowering *l, const node *dequantize) {
    return tare__is_dequantize_node(dequantize)
               ? tare__quantized_given(l, tare__node_arg(dequantize, 0))
               : NULL;
}

// --- endings ---

static bool is_relu(lowering *l, node *bound, const quantized_params *params) {
    int64_t least, most;
    return tare__quantized_bounds(l, bound, params, &least, &most) && least == params->zero_point &&
           most == tare__dtype(params->dtype)->max;
}

ending tare__ending_of(lowering *l, const node *n) {
    ending e = {0};
    node *reader = tare__only_reader(n);
    if (reader == NULL) return e;
    const op_info *op = tare__function_row(reader);
    if (tare__op_id(op) == TARE_OP_RELU)
        e.relu = reader;
    else if (tare__op_has(op, OP_BOUNDS))
        e.clamp = reader;
    node *last = e.relu != NULL ? e.relu : e.clamp;
    // A computed bound, or the clamped value as a bound, is not constant.
    if (last != NULL && (last->input_count != 1 || tare__node_arg(last, 0) != n))
        return (ending){0};
    if (last != NULL) reader = tare__only_reader(last);
    // The parameters of a quantize that was in the program before are unknown.
    const quantized_params *params =
        tare__is_quantize_node(reader) ? tare__quantized_given(l, reader) : NULL;
    if (params != NULL && tare__node_arg(reader, 0) != NULL) e.quantize = reader;
    if (e.clamp != NULL && params != NULL && is_relu(l, e.clamp, params)) {
        e.relu = e.clamp;
        e.clamp = NULL;
    }
    return e;
}

tare_status tare__write_nothing(lowering *l, node *n) {
    const char *overload = strrchr(n->target, '.');
    if (!tare__writes_first_argument(n)) return TARE_OK;
    const char *target = tare__arena_printf(&n->owner->memory, "%.*s%s",
                                            (int)(overload - n->target - 1), n->target, overload);
    if (target == NULL) return tare__out_of_memory(l->p->err);
    if (tare__op_function(target) == tare__op_function(n->target)) n->target = target;
    return TARE_OK;
}

// Rounding is monotone, so clamping quantized values equals clamping the values.
static tare_status bound_quantized(lowering *l, node *bound, const quantized_params *params) {
    TARE_TRY(
        TARE_DECIDE(l->p, bound, "lowered", bound->target, "clamps integers instead of floats"));
    TARE_TRY(tare__write_nothing(l, bound));
    return tare__note_quantized(l, bound, params);
}

// True for a ReLU that n includes, or bounds that clip none of n's quantized values.
static bool is_absorbed(lowering *l, const ending *e, const quantized_params *params) {
    const dtype_info *info = tare__dtype(params->dtype);
    int64_t least, most;
    if (e->relu != NULL) return true;
    return tare__quantized_bounds(l, e->clamp, params, &least, &most) && least == info->min &&
           most == info->max;
}

tare_status tare__end_in_quantized(lowering *l, node *n, const ending *e, bool has_relu) {
    const quantized_params params = *tare__quantized_given(l, e->quantize);
    TARE_TRY(tare__note_quantized(l, n, &params));
    node *bound = e->relu != NULL ? e->relu : e->clamp, *last = n;
    if (bound != NULL && (e->relu == NULL || has_relu) && is_absorbed(l, e, &params))
        TARE_TRY(tare__absorb_relu(l->p, bound, n));
    else if (bound != NULL) {
        TARE_TRY(bound_quantized(l, bound, &params));
        last = bound;
    }
    return tare__replace_quantize(l->p, e->quantize, last);
}

static bool gives_quantized(const void *user, const node *dequantize) {
    return tare__quantized_behind(user, dequantize) != NULL;
}

tare_status tare__read_quantized(lowering *l, node *n) {
    return tare__bypass_dequantize(l->p, n, gives_quantized, l);
}

// --- the pass ---

static tare_status lower(const tare_model *converted, tare_engine engine, tare_model **out,
                         tare_error *err);

static tare_status lower_branch(void *user, const tare_model *branch, size_t number,
                                tare_model **out, tare_error *err) {
    const lowering *l = user;
    (void)number;
    return lower(branch, l->engine, out, err);
}

static tare_status run(lowering *l) {
    pass *p = l->p;
    p->model->engine = l->engine;
    TARE_TRY(tare__pt2e_join_chosen(l));
    TARE_TRY(tare__coverage_begin(p->model, p->err)); // of a program that was converted before
    TARE_TRY(tare__pt2e_bind_constants(p, true));
    if (p->model->is_inner) TARE_TRY(tare__pt2e_fold_quantize(p)); // of weights that were bound
    TARE_TRY(tare__pt2e_each_branch(p, TARE_STAGE_REFERENCE, lower_branch, l));
    TARE_TRY(tare__pt2e_lower_modules(l));
    TARE_TRY(tare__pt2e_lower_grouped(l));
    TARE_TRY(tare__pt2e_lower_channels(l));
    TARE_TRY(tare__pt2e_lower_tensors(l));
    TARE_TRY(tare__pt2e_lower_boundaries(l));
    TARE_TRY(tare__pt2e_merge_quantize(l));
    TARE_TRY(tare__pt2e_lift_quantize(l));
    TARE_TRY(tare__pt2e_sink_dequantize(l));
    TARE_TRY(tare__pt2e_lower_layers(l));
    TARE_TRY(tare__pt2e_lower_dynamic(l));
    TARE_TRY(tare__pt2e_lower_products(l));
    TARE_TRY(tare__pt2e_lower_operators(l));
    TARE_TRY(tare__pt2e_drop_dead_counters(l));
    // Nodes that were dequantized for other readers are not used any more.
    TARE_TRY(tare__pt2e_eliminate_dead(p));
    TARE_TRY(tare__pt2e_bound_layers(l));
    TARE_TRY(tare__pt2e_explain_floats(l));
    TARE_TRY(tare__pass_rebuild(p, NULL));  // erases the tensors from which weights were packed
    tare_model_clear_annotations(p->model); // they refer to edges that were removed
    p->model->stage = TARE_STAGE_LOWERED;
    return tare__coverage_finish(p->model, NULL, p->err);
}

static tare_status lower(const tare_model *converted, tare_engine engine, tare_model **out,
                         tare_error *err) {
    pass p;
    lowering l = {.p = &p, .engine = engine};
    tare_status status = tare__pass_begin(&p, "lower", converted, NULL, err);
    if (status == TARE_OK) status = run(&l);
    return tare__pass_end(&p, status, out);
}

tare_status tare_lower_pt2e(const tare_model *converted, const tare_lower_pt2e_options *options,
                            tare_model **out, tare_error *err) {
    tare_lower_pt2e_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (converted == NULL || converted->stage != TARE_STAGE_REFERENCE)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "lower: expected a model that tare_convert_pt2e made");
    return lower(converted, known.engine, out, err);
}
