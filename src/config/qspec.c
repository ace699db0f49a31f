// SPDX-License-Identifier: Apache-2.0
// pt2e quantization specs: immutable, and checked when they are created.
#include "config/qspec.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "observe/observer.h"

// --- the bias rule ---

// The bias is added to sums of products, so its scale is the product of the activation's and the
// weight's scales.
static tare_status derive_bias(void *user, const tare_qparams_view *sources, size_t count,
                               tare_qparams_sink sink, void *sink_user, tare_error *err) {
    (void)user;
    if (count != 2)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the bias rule derives from an activation and a weight, found %zu "
                          "sources",
                          count);
    if (sources[0].count != 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the bias rule needs one scale of the activation, found %lld",
                          (long long)sources[0].count);
    const int64_t channels = sources[1].count;
    double *scale = tare__alloc_zeroed((size_t)channels + 1, sizeof *scale);
    double *zero_point = tare__alloc_zeroed((size_t)channels + 1, sizeof *zero_point);
    tare_status status = TARE_OK;
    if (scale == NULL || zero_point == NULL) {
        status = tare__out_of_memory(err);
    } else {
        // Multiplies in float32 as torch does; observers propose float32.
        for (int64_t c = 0; c < channels; c++)
            scale[c] = (double)((float)sources[0].scale[0] * (float)sources[1].scale[c]);
        status = sink(sink_user, channels, scale, zero_point, err);
    }
    tare__free(scale);
    tare__free(zero_point);
    return status;
}

const tare_derive_rule *tare_derive_bias_rule(void) {
    static const tare_derive_rule rule = {.struct_size = sizeof rule,
                                          .name =
                                              "_derive_bias_qparams_from_act_and_weight_qparams",
                                          .derive = derive_bias};
    return &rule;
}

// --- creation and destruction ---

static void destroy(tare_qspec *spec) {
    tare_observer_spec_release(spec->fields.observer);
    for (size_t i = 0; i < spec->target_count; i++) {
        tare__free((char *)spec->targets[i].from);
        tare__free((char *)spec->targets[i].node);
    }
    tare__free(spec->targets);
    tare__free((char *)spec->rule.name);
    tare__free(spec);
}

tare_qspec *tare_qspec_retain(tare_qspec *spec) {
    if (spec != NULL) atomic_fetch_add_explicit(&spec->refcount, 1, memory_order_relaxed);
    return spec;
}

void tare_qspec_release(tare_qspec *spec) {
    if (spec == NULL) return;
    if (atomic_fetch_sub_explicit(&spec->refcount, 1, memory_order_acq_rel) == 1) destroy(spec);
}

static tare_status copy_targets(tare_qspec *spec, const tare_edge_name *targets, size_t count,
                                tare_error *err) {
    spec->targets = tare__alloc_zeroed(count + 1, sizeof *spec->targets);
    if (spec->targets == NULL) return tare__out_of_memory(err);
    spec->target_count = count;
    for (size_t i = 0; i < count; i++) {
        spec->targets[i].node = tare__strdup(targets[i].node);
        if (targets[i].from != NULL) spec->targets[i].from = tare__strdup(targets[i].from);
        if (spec->targets[i].node == NULL ||
            (targets[i].from != NULL && spec->targets[i].from == NULL))
            return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static tare_status copy_rule(tare_qspec *spec, const tare_derive_rule *rule, tare_error *err) {
    tare__struct_copy(&spec->rule, sizeof spec->rule, rule);
    spec->rule.name = tare__strdup(rule->name != NULL ? rule->name : "");
    return spec->rule.name != NULL ? TARE_OK : tare__out_of_memory(err);
}

// --- checks, with torch's messages ---

static tare_status check_range(const tare_qspec_fields *f, tare_error *err) {
    if (f->has_quant_min && f->has_quant_max && f->quant_min > f->quant_max)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "quant_min %lld must be <= quant_max %lld.",
                          (long long)f->quant_min, (long long)f->quant_max);
    if (f->has_channel_axis && f->channel_axis < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "Ch_axis is < 0.");
    return TARE_OK;
}

static tare_status check_known(const tare_qspec_fields *f, tare_error *err) {
    if (*tare_dtype_name(f->dtype) == '\0')
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a spec needs a dtype");
    if (f->qscheme != TARE_QSCHEME_UNSET && *tare_qscheme_name(f->qscheme) == '\0')
        return tare__fail(err, TARE_INVALID_ARGUMENT, "no qscheme %d", (int)f->qscheme);
    return TARE_OK;
}

static tare_status check(tare_qspec_kind kind, const tare_qspec_fields *f, size_t target_count,
                         const tare_derive_rule *rule, tare_error *err) {
    if (kind == TARE_QSPEC_SHARED) return TARE_OK;
    TARE_TRY(check_known(f, err));
    const bool has_observer = f->observer != NULL;
    if (has_observer != (kind == TARE_QSPEC_PLAIN))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          has_observer ? "only a QuantizationSpec has an observer"
                                       : "a QuantizationSpec needs an observer");
    if (kind == TARE_QSPEC_FIXED && f->has_channel_axis)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a FixedQParamsQuantizationSpec has no ch_axis");
    if (kind != TARE_QSPEC_FIXED && (f->scale != 0 || f->zero_point != 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "only a FixedQParamsQuantizationSpec has a scale and a zero point");
    if (kind == TARE_QSPEC_DERIVED && (target_count == 0 || rule == NULL || rule->derive == NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a DerivedQuantizationSpec needs derived_from and derive_qparams_fn");
    if (has_observer) TARE_TRY(tare__observer_spec_status(f->observer, err));
    return kind == TARE_QSPEC_PLAIN ? check_range(f, err) : TARE_OK;
}

tare_status tare__qspec_make(tare_qspec_kind kind, const tare_qspec_fields *fields,
                             const tare_edge_name *targets, size_t target_count,
                             const tare_derive_rule *rule, tare_qspec **out, tare_error *err) {
    tare_qspec_fields known = {0};
    if (fields != NULL) tare__struct_copy(&known, sizeof known, fields);
    known.struct_size = sizeof known;
    TARE_TRY(check(kind, &known, target_count, rule, err));
    tare_qspec *spec = tare__alloc_zeroed(1, sizeof *spec);
    if (spec == NULL) return tare__out_of_memory(err);
    atomic_init(&spec->refcount, 1);
    spec->kind = kind;
    spec->fields = known;
    spec->fields.observer = tare_observer_spec_retain(known.observer);
    tare_status status = copy_targets(spec, targets, target_count, err);
    if (status == TARE_OK && kind == TARE_QSPEC_DERIVED) status = copy_rule(spec, rule, err);
    if (status == TARE_OK)
        *out = spec;
    else
        destroy(spec);
    return status;
}

tare_status tare__qspec_map_targets(const tare_qspec *spec,
                                    tare_edge_name (*replace)(void *user, tare_edge_name target),
                                    void *user, tare_qspec **out, tare_error *err) {
    tare_edge_name *targets = tare__alloc_zeroed(spec->target_count + 1, sizeof *targets);
    if (targets == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < spec->target_count; i++) targets[i] = replace(user, spec->targets[i]);
    const tare_status status = tare__qspec_make(spec->kind, &spec->fields, targets,
                                                spec->target_count, &spec->rule, out, err);
    tare__free(targets);
    return status;
}

tare_status tare_qspec_create(const tare_qspec_fields *fields, tare_qspec **out, tare_error *err) {
    return tare__qspec_make(TARE_QSPEC_PLAIN, fields, NULL, 0, NULL, out, err);
}

tare_status tare_qspec_create_fixed(const tare_qspec_fields *fields, tare_qspec **out,
                                    tare_error *err) {
    return tare__qspec_make(TARE_QSPEC_FIXED, fields, NULL, 0, NULL, out, err);
}

static tare_edge_name name_edge(const tare_edge *edge) {
    return (tare_edge_name){.from = edge->from != NULL ? tare_node_name(edge->from) : NULL,
                            .node = tare_node_name(edge->node)};
}

tare_status tare_qspec_create_shared(tare_edge target, tare_qspec **out, tare_error *err) {
    if (target.node == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a shared spec needs an edge or a node");
    const tare_edge_name name = name_edge(&target);
    return tare__qspec_make(TARE_QSPEC_SHARED, NULL, &name, 1, NULL, out, err);
}

tare_status tare_qspec_create_derived(const tare_qspec_fields *fields,
                                      const tare_edge *derived_from, size_t count,
                                      const tare_derive_rule *rule, tare_qspec **out,
                                      tare_error *err) {
    tare_edge_name *names = tare__alloc_zeroed(count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        if (derived_from[i].node == NULL)
            status = tare__fail(err, TARE_INVALID_ARGUMENT, "derived_from[%zu] has no node", i);
        else
            names[i] = name_edge(&derived_from[i]);
    }
    if (status == TARE_OK)
        status = tare__qspec_make(TARE_QSPEC_DERIVED, fields, names, count, rule, out, err);
    tare__free(names);
    return status;
}

// --- reading ---

tare_qspec_kind tare_qspec_get_kind(const tare_qspec *spec) {
    return spec->kind;
}

void tare_qspec_get_fields(const tare_qspec *spec, tare_qspec_fields *out) {
    *out = spec->fields;
}

bool tare_qspec_target(const tare_qspec *spec, size_t index, tare_edge_name *out) {
    if (index >= spec->target_count) return false;
    *out = spec->targets[index];
    return true;
}

const tare_derive_rule *tare_qspec_rule(const tare_qspec *spec) {
    return spec->kind == TARE_QSPEC_DERIVED ? &spec->rule : NULL;
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool tare__edge_name_equal(const tare_edge_name *a, const tare_edge_name *b) {
    return same_text(a->from, b->from) && same_text(a->node, b->node);
}

void tare__edge_name_text(const tare_edge_name *edge, text *out) {
    if (edge->from != NULL)
        tare__text_printf(out, "('%s', '%s')", edge->from, edge->node);
    else
        tare__text_printf(out, "'%s'", edge->node);
}

static bool fields_equal(const tare_qspec_fields *a, const tare_qspec_fields *b) {
    return a->dtype == b->dtype && tare__observer_spec_equal(a->observer, b->observer) &&
           a->has_quant_min == b->has_quant_min && a->quant_min == b->quant_min &&
           a->has_quant_max == b->has_quant_max && a->quant_max == b->quant_max &&
           a->qscheme == b->qscheme && a->has_channel_axis == b->has_channel_axis &&
           a->channel_axis == b->channel_axis && a->is_dynamic == b->is_dynamic &&
           a->scale == b->scale && a->zero_point == b->zero_point;
}

bool tare_qspec_equal(const tare_qspec *a, const tare_qspec *b) {
    if (a == b) return true;
    if (a == NULL || b == NULL || a->kind != b->kind || a->target_count != b->target_count)
        return false;
    for (size_t i = 0; i < a->target_count; i++)
        if (!tare__edge_name_equal(&a->targets[i], &b->targets[i])) return false;
    return a->rule.derive == b->rule.derive && a->rule.user == b->rule.user &&
           fields_equal(&a->fields, &b->fields);
}
