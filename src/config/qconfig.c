// SPDX-License-Identifier: Apache-2.0
// QConfigs: pairs of observer specs. torch's predefined ones are in
// backends/qconfigs/qconfigs.json.
#include "config/qconfig.h"

#include <string.h>

#include "config/embedded.h"
#include "core/memory/alloc.h"
#include "observe/observer_spec.h"

tare_qconfig *tare_qconfig_create(tare_observer_spec *activation, tare_observer_spec *weight) {
    if (activation == NULL) return NULL;
    tare_qconfig *q = tare__alloc_zeroed(1, sizeof *q);
    if (q == NULL) return NULL;
    atomic_init(&q->refcount, 1);
    q->activation = tare_observer_spec_retain(activation);
    q->weight = tare_observer_spec_retain(weight);
    return q;
}

tare_qconfig *tare_qconfig_retain(tare_qconfig *qconfig) {
    if (qconfig != NULL) atomic_fetch_add_explicit(&qconfig->refcount, 1, memory_order_relaxed);
    return qconfig;
}

void tare_qconfig_release(tare_qconfig *qconfig) {
    if (qconfig == NULL) return;
    if (atomic_fetch_sub_explicit(&qconfig->refcount, 1, memory_order_acq_rel) != 1) return;
    tare_observer_spec_release(qconfig->activation);
    tare_observer_spec_release(qconfig->weight);
    tare__free(qconfig);
}

bool tare_qconfig_equal(const tare_qconfig *a, const tare_qconfig *b) {
    if (a == b) return true;
    return a != NULL && b != NULL && tare__observer_spec_equal(a->activation, b->activation) &&
           tare__observer_spec_equal(a->weight, b->weight);
}

void tare_string_free(char *string) {
    tare__free(string);
}

// --- text and JSON ---

void tare__qconfig_text(const tare_qconfig *q, text *out) {
    if (q == NULL) {
        tare__text_append(out, "None");
        return;
    }
    tare__text_append(out, "QConfig(activation=");
    tare__observer_spec_text(q->activation, out);
    tare__text_append(out, ", weight=");
    if (q->weight != NULL)
        tare__observer_spec_text(q->weight, out);
    else
        tare__text_append(out, "None");
    tare__text_char(out, ')');
}

void tare__qconfig_to_json(const tare_qconfig *q, text *out) {
    if (q == NULL) {
        tare__text_append(out, "null");
        return;
    }
    const tare_observer_class *class =
        tare__observer_class_find(NULL, tare__observer_spec_class(q->activation));
    bool is_equalizer = false;
    if (class != NULL) (void)tare__observer_class_is_equalizer(class, &is_equalizer);
    tare__text_append(out, is_equalizer ? "{\"input_activation\": " : "{\"activation\": ");
    tare__observer_spec_to_json(q->activation, out);
    tare__text_append(out, ", \"weight\": ");
    if (q->weight != NULL)
        tare__observer_spec_to_json(q->weight, out);
    else
        tare__text_append(out, "null");
    tare__text_char(out, '}');
}

tare_status tare_qconfig_to_json(const tare_qconfig *qconfig, char **out, tare_error *err) {
    text json = {0};
    tare__qconfig_to_json(qconfig, &json);
    const tare_status status = tare__text_status(&json, err);
    if (status == TARE_OK) *out = tare__text_take(&json);
    tare__text_release(&json);
    return status;
}

static bool has_constant_1(const tare_observer_spec *spec) {
    const observer_argument *a = tare__observer_spec_find(spec, "averaging_constant");
    if (a == NULL) return false;
    return a->kind == ARGUMENT_INT ? a->as.integer == 1
                                   : a->kind == ARGUMENT_DOUBLE && a->as.real == 1;
}

bool tare__qconfig_is_memoryless(const tare_qconfig *q) {
    if (q->activation == NULL) return false;
    const observer_argument *inner = tare__observer_spec_find(q->activation, "observer");
    return has_constant_1(q->activation) || (inner != NULL && inner->kind == ARGUMENT_OBSERVER &&
                                             has_constant_1(inner->as.observer));
}

// Instantiates a spec of a built-in class, so that errors in its arguments are reported with their
// place. Custom classes are not instantiated here.
static bool watches_by_user_class(const tare_observer_class *class,
                                  const tare_observer_spec *spec) {
    const observer_argument *inner = tare__observer_spec_find(spec, "observer");
    return tare__observer_class_is_fake_quantize(class) && inner != NULL &&
           inner->kind == ARGUMENT_OBSERVER &&
           tare__observer_class_find(NULL, inner->as.observer->class_name) == NULL;
}

static tare_status read_spec(const json_at *at, tare_observer_spec **out, tare_error *err) {
    tare_observer_spec *spec = NULL;
    tare_observer_info unused = {.struct_size = sizeof unused};
    TARE_TRY(tare__observer_spec_from_json(at, &spec, err));
    const tare_observer_class *class =
        tare__observer_class_find(NULL, tare__observer_spec_class(spec));
    tare_status status = TARE_OK;
    if (class != NULL && !watches_by_user_class(class, spec))
        status = tare__observer_spec_info(NULL, spec, &unused, err);
    if (status != TARE_OK) {
        tare_observer_spec_release(spec);
        return tare__json_place(at, status, err);
    }
    *out = spec;
    return TARE_OK;
}

tare_status tare__qconfig_from_json(const json_at *at, tare_qconfig **out, tare_error *err) {
    static const char *const keys[] = {"activation", "input_activation", "weight", NULL};
    tare_observer_spec *activation = NULL, *weight = NULL;
    if (json_is_null(at->value)) {
        *out = NULL;
        return TARE_OK;
    }
    if (json_is_string(at->value)) {
        const tare_status named = tare_qconfig_named(json_string_value(at->value), out, err);
        return named == TARE_OK ? named : tare__json_place(at, named, err);
    }
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    // The key is "input_activation" in an EqualizationQConfig.
    const bool is_equalizer = tare__json_has(at, "input_activation");
    if (is_equalizer && tare__json_has(at, "activation"))
        return tare__json_fail(at, err, "'activation' and 'input_activation' exclude each other");
    const json_at activation_at =
        tare__json_get(at, is_equalizer ? "input_activation" : "activation");
    const json_at weight_at = tare__json_get(at, "weight");
    tare_status status = read_spec(&activation_at, &activation, err);
    if (status == TARE_OK && tare__json_has(at, "weight") && !json_is_null(weight_at.value))
        status = read_spec(&weight_at, &weight, err);
    if (status == TARE_OK) {
        *out = tare_qconfig_create(activation, weight);
        if (*out == NULL) status = tare__out_of_memory(err);
    }
    tare_observer_spec_release(activation);
    tare_observer_spec_release(weight);
    return status;
}

// --- torch's predefined qconfigs ---

// The keys of qconfigs.json in the same order; a test checks that they agree.
static const char *const names[] = {
    "default_qconfig",
    "default_debug_qconfig",
    "default_per_channel_qconfig",
    "default_dynamic_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "per_channel_dynamic_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "default_qat_qconfig",
    "default_dynamic_qat_qconfig",
    "default_weight_only_qconfig",
    "default_activation_only_qconfig",
    "default_qat_qconfig_v2",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_quint8_weight_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "_default_fp32_placeholder_qconfig",
    "_default_quint8_placeholder_qconfig",
    "default_equalization_qconfig",
};

const char *tare_qconfig_name_at(size_t index) {
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

static const char *suggested_name_at(const void *user, size_t index) {
    (void)user;
    return tare_qconfig_name_at(index);
}

tare_status tare__embedded_json(const char *name, json_t **out, tare_error *err) {
    const embedded_file *file = tare__embedded_find(name);
    if (file == NULL) return tare__fail(err, TARE_INTERNAL, "'%s' was not built in", name);
    return tare__json_parse((const char *)file->data, file->size, out, err);
}

tare_status tare_qconfig_named(const char *name, tare_qconfig **out, tare_error *err) {
    json_t *json = NULL;
    if (name == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "a QConfig needs a name");
    TARE_TRY(tare__embedded_json("qconfigs/qconfigs.json", &json, err));
    const json_at root = tare__json_root(json), at = tare__json_get(&root, name);
    const tare_status status =
        at.value != NULL
            ? tare__qconfig_from_json(&at, out, err)
            : tare__suggest(err, tare__fail(err, TARE_NOT_FOUND, "there is no QConfig '%s'", name),
                            name, suggested_name_at, NULL);
    json_decref(json);
    return status;
}
