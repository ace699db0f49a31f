// SPDX-License-Identifier: Apache-2.0
// Changes recorded cases, and looks whether their replay differs.
#include "replay/self_test.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay.h"

/// The names that the node of a text's first assignment has afterwards: one letter is another one.
static bool rename_node(recorded_case *c, const char *key) {
    const char *old = case_text(c, key);
    const char *code = old != NULL ? strstr(old, "\ndef forward") : NULL;
    const char *assigned = code != NULL ? strstr(code, " = ") : NULL;
    if (assigned == NULL) return false;
    char *changed = strdup(old);
    if (changed == NULL) return false;
    char *letter = changed + (assigned - old) - 1;
    *letter = *letter == 'q' ? 'r' : 'q';
    const bool is_set = json_object_set_new(c->json, key, json_string(changed)) == 0;
    free(changed);
    return is_set;
}

static bool rename_in_prepared(recorded_case *c, double step) {
    (void)step;
    return rename_node(c, "prepared_text");
}

static bool rename_in_converted(recorded_case *c, double step) {
    (void)step;
    return rename_node(c, "converted_text");
}

/// The first scale that a lowered module prints.
static bool change_printed_scale(recorded_case *c, double step) {
    (void)step;
    const char *old = case_text(c, "converted_text");
    const char *at = old != NULL ? strstr(old, ", scale=") : NULL;
    if (at == NULL) return false;
    at += strlen(", scale=");
    char *end = NULL;
    const double scale = strtod(at, &end);
    const size_t size = strlen(old) + 64;
    char *changed = malloc(size);
    if (changed == NULL) return false;
    (void)snprintf(changed, size, "%.*s%.17g%s", (int)(at - old), old, scale * 1.01, end);
    const bool is_set = json_object_set_new(c->json, "converted_text", json_string(changed)) == 0;
    free(changed);
    return is_set;
}

/// The first number under `list_key` of the first object under `key` that has some and is accepted.
static json_t *find_numbers(const recorded_case *c, const char *key, const char *list_key,
                            const char *name_part) {
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach(json_object_get(c->json, key), name, item) {
        json_t *list = json_object_get(item, list_key);
        if (json_array_size(list) > 0 && strstr(name, name_part) != NULL) return list;
    }
    return NULL;
}

/// One of 32 bits is known to a float's digits only: it moves by a thousandth more.
static bool add_to_integer(json_t *list, json_int_t by) {
    const json_t *old = json_array_get(list, 0);
    if (!json_is_integer(old)) return false;
    const json_int_t n = json_integer_value(old);
    return json_array_set_new(list, 0, json_integer(n + by + n / 1000)) == 0;
}

static bool multiply_real(json_t *list, double by) {
    const json_t *old = json_array_get(list, 0);
    return json_is_real(old) &&
           json_array_set_new(list, 0, json_real(json_real_value(old) * by)) == 0;
}

static bool change_zero_point(recorded_case *c, double step) {
    (void)step;
    return add_to_integer(find_numbers(c, "observers", "zero_point", ""), 2);
}

static bool change_scale(recorded_case *c, double step) {
    (void)step;
    return multiply_real(find_numbers(c, "observers", "scale", ""), 1.01);
}

static bool change_stored_zero_point(recorded_case *c, double step) {
    (void)step;
    return add_to_integer(find_numbers(c, "constants", "value", "_zero_point_"), 2);
}

static bool change_stored_scale(recorded_case *c, double step) {
    (void)step;
    return multiply_real(find_numbers(c, "constants", "value", "_scale_"), 1.01);
}

/// Float outputs have no step: they move by ten times what they may differ. What half precision
/// cannot show would be no change.
static double output_change(const tare_tensor *t, double step) {
    const bool is_half = tare_dtype_size(t->dtype) < 4;
    if (step > 0 && !is_half) return 2 * step;
    double most = 0;
    for (int64_t i = 0; i < t->count; i++) most = fmax(most, fabs(tare__tensor_get(t, i)));
    const double least = most > 0 ? most * (is_half ? 0.02 : 1e-3) : 1;
    return fmax(2 * step, least);
}

static bool has_quantized(const recorded_case *c, const char *key) {
    char codes[256];
    (void)snprintf(codes, sizeof codes, "%s.int_repr", key);
    return tare__safetensors_get(&c->data, codes) != NULL;
}

static bool change_output(recorded_case *c, double step) {
    map *tensors = &c->data.tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        const char *key = tensors->entries[i].key;
        tare_tensor *old = tensors->entries[i].value, *changed = NULL;
        if (strncmp(key, "converted", 9) != 0 || old->count == 0) continue;
        if (tare__ends_with(key, ".scale") || tare__ends_with(key, ".zero_point")) continue;
        if (has_quantized(c, key)) continue; // then they are what is compared
        if (tare__tensor_copy(old, &changed, NULL) != TARE_OK) return false;
        const bool is_integer = !tare__dtype(old->dtype)->is_float;
        const double before = tare__tensor_get(old, 0);
        const double by = is_integer ? (before >= 2 ? -2 : 2) : output_change(old, step);
        tare__tensor_set(changed, 0, before + by);
        tensors->entries[i].value = changed;
        return true;
    }
    return false;
}

/// The mark of the first annotated node that has a spec: false for true, or the other way round.
static bool change_annotation(recorded_case *c, double step) {
    (void)step;
    const char *name = NULL;
    json_t *one = NULL;
    const char *class =
        json_string_value(json_object_get(json_object_get(c->json, "quantizer"), "class"));
    if (class == NULL || strstr(class, "Inductor") == NULL ||
        strncmp(c->name, "test_filter", 11) == 0)
        return false; // a test's own: then the recorded annotations are what is taken
    json_object_foreach(json_object_get(c->json, "annotations"), name, one) {
        const bool is_marked = json_is_true(json_object_get(one, "_annotated"));
        return json_object_set_new(one, "_annotated", json_boolean(!is_marked)) == 0;
    }
    return false;
}

typedef struct change {
    const char *what;
    bool (*apply)(recorded_case *c, double step); // false: the case has nothing of the kind
    bool is_value;                                // half (b) alone can see it
} change;

static const change changes[] = {
    {"a node's name in the prepared text", rename_in_prepared, false},
    {"a node's name in the converted text", rename_in_converted, false},
    {"an observer's zero point by 2", change_zero_point, false},
    {"an observer's scale by 1 %", change_scale, false},
    {"a stored zero point by 2", change_stored_zero_point, false},
    {"a stored scale by 1 %", change_stored_scale, false},
    {"a printed scale by 1 %", change_printed_scale, false},
    {"an annotation's mark", change_annotation, false},
    {"an output by 2 steps", change_output, true},
};

/// What a change may touch, to be put back.
typedef struct original {
    json_t *json;
    map_entry *entries;
    size_t count;
} original;

static bool save(const recorded_case *c, original *out) {
    out->count = c->data.tensors.count;
    out->json = json_deep_copy(c->json);
    out->entries = calloc(out->count + 1, sizeof *out->entries);
    if (out->json == NULL || out->entries == NULL) return false;
    memcpy(out->entries, c->data.tensors.entries, out->count * sizeof *out->entries);
    return true;
}

static void restore(recorded_case *c, original *saved) {
    if (saved->json != NULL) {
        json_decref(c->json);
        c->json = saved->json;
    }
    for (size_t i = 0; saved->entries != NULL && i < saved->count; i++) {
        map_entry *now = &c->data.tensors.entries[i];
        if (now->value == saved->entries[i].value) continue;
        tare_tensor_release(now->value);
        now->value = saved->entries[i].value;
    }
    free(saved->entries);
}

static void try_change(recorded_case *c, const change *one, double step, findings *out) {
    original saved = {0};
    findings seen = {0};
    if (!save(c, &saved)) {
        findings_add(out, FINDING_STRUCTURE, "memory is gone");
    } else if (one->apply(c, step)) {
        replay(c, &seen, &step);
        const size_t count =
            one->is_value ? seen.structure_count + seen.value_count : seen.structure_count;
        if (count == 0)
            findings_add(out, FINDING_STRUCTURE, "nobody saw that %s was changed", one->what);
        else
            tare__text_printf(&out->detail, "%s: %s\n", one->what, tare__text_chars(&seen.first));
    }
    findings_release(&seen);
    restore(c, &saved);
}

void self_test(recorded_case *c, bool is_known, findings *out) {
    findings unchanged = {0};
    double step = 0;
    replay(c, &unchanged, &step);
    const bool differs = is_known ? unchanged.structure_count > 0 : findings_any(&unchanged);
    if (differs)
        findings_add(out, FINDING_STRUCTURE, "differs unchanged: %s",
                     tare__text_chars(&unchanged.first));
    const bool has_values = unchanged.value_count == 0;
    findings_release(&unchanged);
    if (differs) return;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (has_values || !changes[i].is_value) try_change(c, &changes[i], step, out);
}
