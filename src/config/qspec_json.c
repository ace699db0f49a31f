// SPDX-License-Identifier: Apache-2.0
// Reads and writes quantization specs as JSON: {"spec": "QuantizationSpec", "dtype": "torch.int8",
// ..}.
#include <string.h>

#include "config/qspec.h"
#include "core/memory/alloc.h"
#include "observe/observer.h"

static const char *const kind_names[] = {
    [TARE_QSPEC_PLAIN] = "QuantizationSpec",
    [TARE_QSPEC_FIXED] = "FixedQParamsQuantizationSpec",
    [TARE_QSPEC_SHARED] = "SharedQuantizationSpec",
    [TARE_QSPEC_DERIVED] = "DerivedQuantizationSpec",
};

// --- writing ---

static void write_int(text *out, const char *key, bool has, int64_t v) {
    if (has)
        tare__text_printf(out, ", \"%s\": %lld", key, (long long)v);
    else
        tare__text_printf(out, ", \"%s\": null", key);
}

static void write_edge(const tare_edge_name *edge, text *out) {
    if (edge->from != NULL) {
        tare__text_append(out, "{\"edge\": [");
        tare__text_json_string(out, edge->from);
        tare__text_append(out, ", ");
        tare__text_json_string(out, edge->node);
        tare__text_append(out, "]}");
    } else {
        tare__text_append(out, "{\"node\": ");
        tare__text_json_string(out, edge->node);
        tare__text_char(out, '}');
    }
}

static void write_derived(const tare_qspec *spec, text *out) {
    tare__text_append(out, ", \"derived_from\": [");
    for (size_t i = 0; i < spec->target_count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        write_edge(&spec->targets[i], out);
    }
    tare__text_append(out, "], \"derive_qparams_fn\": ");
    tare__text_json_string(out, spec->rule.name);
}

static void write_fields(const tare_qspec *spec, text *out) {
    const tare_qspec_fields *f = &spec->fields;
    tare__text_printf(out, ", \"dtype\": \"%s\"", tare_dtype_name(f->dtype));
    if (spec->kind == TARE_QSPEC_FIXED) {
        tare__text_append(out, ", \"scale\": ");
        tare__text_json_double(out, f->scale);
        write_int(out, "zero_point", true, f->zero_point);
    }
    write_int(out, "quant_min", f->has_quant_min, f->quant_min);
    write_int(out, "quant_max", f->has_quant_max, f->quant_max);
    if (f->qscheme != TARE_QSCHEME_UNSET)
        tare__text_printf(out, ", \"qscheme\": \"%s\"", tare_qscheme_name(f->qscheme));
    else
        tare__text_append(out, ", \"qscheme\": null");
    if (f->has_channel_axis) write_int(out, "ch_axis", true, f->channel_axis);
    tare__text_printf(out, ", \"is_dynamic\": %s", f->is_dynamic ? "true" : "false");
    if (spec->kind == TARE_QSPEC_DERIVED) write_derived(spec, out);
    if (f->observer == NULL) return;
    tare__text_append(out, ", \"observer_or_fake_quant_ctr\": ");
    tare__observer_spec_to_json(f->observer, out);
}

void tare__qspec_to_json(const tare_qspec *spec, text *out) {
    if (spec == NULL) {
        tare__text_append(out, "null");
        return;
    }
    tare__text_printf(out, "{\"spec\": \"%s\"", kind_names[spec->kind]);
    if (spec->kind == TARE_QSPEC_SHARED) {
        tare__text_append(out, ", \"edge_or_node\": ");
        write_edge(&spec->targets[0], out);
    } else {
        write_fields(spec, out);
    }
    tare__text_char(out, '}');
}

// --- reading ---

static bool is_given(const json_at *object, const char *key) {
    return tare__json_has(object, key) && !json_is_null(tare__json_get(object, key).value);
}

static tare_status read_edge(const json_at *at, tare_edge_name *out, tare_error *err) {
    static const char *const keys[] = {"edge", "node", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    if (json_object_size(at->value) != 1)
        return tare__json_fail(at, err, "expected \"edge\" or \"node\"");
    if (tare__json_has(at, "node")) {
        const json_at name = tare__json_get(at, "node");
        *out = (tare_edge_name){0};
        return tare__json_string(&name, &out->node, err);
    }
    const json_at edge = tare__json_get(at, "edge");
    TARE_TRY(tare__json_expect(&edge, JSON_ARRAY, err));
    if (json_array_size(edge.value) != 2)
        return tare__json_fail(&edge, err, "an edge is two nodes, found %zu",
                               json_array_size(edge.value));
    const json_at from = tare__json_item(&edge, 0), to = tare__json_item(&edge, 1);
    TARE_TRY(tare__json_string(&from, &out->from, err));
    return tare__json_string(&to, &out->node, err);
}

static tare_status read_shared(const json_at *at, tare_qspec **out, tare_error *err) {
    static const char *const keys[] = {"spec", "edge_or_node", NULL};
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at target_at = tare__json_get(at, "edge_or_node");
    tare_edge_name target = {0};
    TARE_TRY(read_edge(&target_at, &target, err));
    return tare__qspec_make(TARE_QSPEC_SHARED, NULL, &target, 1, NULL, out, err);
}

static tare_status read_optional_int(const json_at *at, const char *key, bool *has, int64_t *out,
                                     tare_error *err) {
    *has = is_given(at, key);
    const json_at v = tare__json_get(at, key);
    return *has ? tare__json_int(&v, out, err) : TARE_OK;
}

static tare_status read_types(const json_at *at, tare_qspec_fields *f, tare_error *err) {
    const json_at dtype_at = tare__json_get(at, "dtype"), scheme_at = tare__json_get(at, "qscheme");
    const char *name = NULL;
    TARE_TRY(tare__json_string(&dtype_at, &name, err));
    f->dtype = tare_dtype_from_name(name);
    if (f->dtype == TARE_DTYPE_UNSET) return tare__json_fail(&dtype_at, err, "no dtype '%s'", name);
    if (!is_given(at, "qscheme")) return TARE_OK;
    TARE_TRY(tare__json_string(&scheme_at, &name, err));
    f->qscheme = tare_qscheme_from_name(name);
    return f->qscheme != TARE_QSCHEME_UNSET
               ? TARE_OK
               : tare__json_fail(&scheme_at, err, "no qscheme '%s'", name);
}

static tare_status read_fields(const json_at *at, tare_qspec_fields *f, tare_error *err) {
    TARE_TRY(read_types(at, f, err));
    TARE_TRY(read_optional_int(at, "quant_min", &f->has_quant_min, &f->quant_min, err));
    TARE_TRY(read_optional_int(at, "quant_max", &f->has_quant_max, &f->quant_max, err));
    TARE_TRY(read_optional_int(at, "ch_axis", &f->has_channel_axis, &f->channel_axis, err));
    if (!is_given(at, "is_dynamic")) return TARE_OK;
    const json_at dynamic = tare__json_get(at, "is_dynamic");
    return tare__json_bool(&dynamic, &f->is_dynamic, err);
}

static tare_status read_plain(const json_at *at, tare_qspec **out, tare_error *err) {
    static const char *const keys[] = {
        "spec",    "dtype",   "quant_min",  "quant_max",
        "qscheme", "ch_axis", "is_dynamic", "observer_or_fake_quant_ctr",
        NULL};
    tare_qspec_fields f = {.struct_size = sizeof f};
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(read_fields(at, &f, err));
    const json_at observer = tare__json_get(at, "observer_or_fake_quant_ctr");
    TARE_TRY(tare__observer_spec_from_json(&observer, &f.observer, err));
    const tare_status status = tare_qspec_create(&f, out, err);
    tare_observer_spec_release(f.observer);
    return status;
}

static tare_status read_fixed(const json_at *at, tare_qspec **out, tare_error *err) {
    static const char *const keys[] = {"spec",       "dtype",      "scale",
                                       "zero_point", "quant_min",  "quant_max",
                                       "qscheme",    "is_dynamic", NULL};
    tare_qspec_fields f = {.struct_size = sizeof f};
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(read_fields(at, &f, err));
    const json_at scale = tare__json_get(at, "scale"),
                  zero_point = tare__json_get(at, "zero_point");
    TARE_TRY(tare__json_double(&scale, &f.scale, err));
    TARE_TRY(tare__json_int(&zero_point, &f.zero_point, err));
    return tare_qspec_create_fixed(&f, out, err);
}

tare_status tare__derive_rule_from_json(const json_at *at, const tare_derive_rule *rules,
                                        size_t rule_count, const tare_derive_rule **out,
                                        tare_error *err) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, err));
    *out = strcmp(name, tare_derive_bias_rule()->name) == 0 ? tare_derive_bias_rule() : NULL;
    for (size_t i = 0; i < rule_count && *out == NULL; i++)
        if (strcmp(name, rules[i].name) == 0) *out = &rules[i];
    if (*out != NULL) return TARE_OK;
    return tare__hint(err, tare__json_fail(at, err, "no rule '%s' to derive by", name),
                      "tare_context_add_derive_rule makes one known");
}

static tare_status read_targets(const json_at *list, tare_edge_name **out, size_t *count,
                                tare_error *err) {
    TARE_TRY(tare__json_expect(list, JSON_ARRAY, err));
    *count = json_array_size(list->value);
    *out = tare__alloc_zeroed(*count + 1, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < *count; i++) {
        const json_at item = tare__json_item(list, i);
        TARE_TRY(read_edge(&item, &(*out)[i], err));
    }
    return TARE_OK;
}

static tare_status read_derived(const json_at *at, const tare_derive_rule *rules, size_t rule_count,
                                tare_qspec **out, tare_error *err) {
    static const char *const keys[] = {
        "spec",    "dtype",      "quant_min",    "quant_max",         "qscheme",
        "ch_axis", "is_dynamic", "derived_from", "derive_qparams_fn", NULL};
    tare_qspec_fields f = {.struct_size = sizeof f};
    const tare_derive_rule *rule = NULL;
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(read_fields(at, &f, err));
    const json_at rule_at = tare__json_get(at, "derive_qparams_fn");
    const json_at list = tare__json_get(at, "derived_from");
    TARE_TRY(tare__derive_rule_from_json(&rule_at, rules, rule_count, &rule, err));
    tare_edge_name *targets = NULL;
    size_t count = 0;
    tare_status status = read_targets(&list, &targets, &count, err);
    if (status == TARE_OK)
        status = tare__qspec_make(TARE_QSPEC_DERIVED, &f, targets, count, rule, out, err);
    tare__free(targets);
    return status;
}

tare_status tare__qspec_from_json(const json_at *at, const tare_derive_rule *rules,
                                  size_t rule_count, tare_qspec **out, tare_error *err) {
    *out = NULL;
    if (json_is_null(at->value)) return TARE_OK;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    const json_at kind_at = tare__json_get(at, "spec");
    const char *kind = NULL;
    TARE_TRY(tare__json_string(&kind_at, &kind, err));
    tare_status status = TARE_OK;
    if (strcmp(kind, kind_names[TARE_QSPEC_PLAIN]) == 0)
        status = read_plain(at, out, err);
    else if (strcmp(kind, kind_names[TARE_QSPEC_FIXED]) == 0)
        status = read_fixed(at, out, err);
    else if (strcmp(kind, kind_names[TARE_QSPEC_SHARED]) == 0)
        status = read_shared(at, out, err);
    else if (strcmp(kind, kind_names[TARE_QSPEC_DERIVED]) == 0)
        status = read_derived(at, rules, rule_count, out, err);
    else
        status = tare__json_fail(&kind_at, err, "no kind of spec '%s'", kind);
    return status == TARE_OK || *tare_error_where(err) != '\0' ? status
                                                               : tare__json_place(at, status, err);
}
