// SPDX-License-Identifier: Apache-2.0
// Recorded observers: made from their arguments, shown the recorded tensors, compared bit for bit.
#include <stdio.h>
#include <string.h>

#include "core/tensor/half.h"
#include "core/text/text.h"
#include "observe/observer.h"
#include "replay/numerics.h"

// One case on its way. The first difference is kept.
typedef struct observed {
    const numerics_cases *cases;
    const json_t *one;
    text difference;
    tare_error *err;
} observed;

static void differ(observed *o, const char *what, size_t index, double found, double expected) {
    char left[32], right[32];
    if (o->difference.length > 0) return;
    tare__format_double(found, left);
    tare__format_double(expected, right);
    tare__text_printf(&o->difference, "%s[%zu] = %s, expected %s", what, index, left, right);
}

static void differ_in_count(observed *o, const char *what, size_t found, size_t expected) {
    if (found != expected && o->difference.length == 0)
        tare__text_printf(&o->difference, "%s has %zu values, expected %zu", what, found, expected);
}

// JSON holds the exact decimal of each float.
static void compare_list(observed *o, const char *what, const double *found, size_t count) {
    const json_t *expected = json_object_get(o->one, what);
    differ_in_count(o, what, count, json_array_size(expected));
    for (size_t i = 0; i < count && o->difference.length == 0; i++) {
        const double wanted = json_number_value(json_array_get(expected, i));
        if (found[i] != wanted) differ(o, what, i, found[i], wanted);
    }
}

static void compare_statistic(observed *o, const char *what, const map *state) {
    const tare_tensor *found = tare__map_get(state, what);
    const json_t *expected = json_object_get(o->one, what);
    differ_in_count(o, what, found != NULL ? (size_t)found->count : 0, json_array_size(expected));
    for (size_t i = 0; o->difference.length == 0 && i < json_array_size(expected); i++) {
        const double wanted = json_number_value(json_array_get(expected, i));
        const double kept = (double)tare__f32(found)[i];
        if (kept != wanted) differ(o, what, i, kept, wanted);
    }
}

static void compare_histogram(observed *o, const map *state) {
    const tare_tensor *expected = numerics_tensor(o->cases, o->one, "histogram");
    const tare_tensor *found = tare__map_get(state, "histogram");
    if (expected == NULL) return;
    differ_in_count(o, "histogram", found != NULL ? (size_t)found->count : 0,
                    (size_t)expected->count);
    for (int64_t i = 0; o->difference.length == 0 && i < expected->count; i++) {
        const float kept = tare__f32(found)[i], wanted = tare__f32(expected)[i];
        if (tare__float_bits(kept) != tare__float_bits(wanted))
            differ(o, "histogram", (size_t)i, (double)kept, (double)wanted);
    }
}

static tare_status compare_state(observed *o, const module *m) {
    map state = {0};
    const tare_status status = tare__observer_state_io.save(m, &state, o->err);
    if (status == TARE_OK) {
        compare_statistic(o, "min_val", &state);
        compare_statistic(o, "max_val", &state);
        compare_histogram(o, &state);
    }
    for (size_t i = 0; i < state.count; i++) tare_tensor_release(state.entries[i].value);
    tare__map_release(&state);
    return status;
}

static tare_status compare_qparams(observed *o, const module *m) {
    const qparams *q = NULL;
    bool is_calibrated = false;
    TARE_TRY(tare__observer_qparams(m, &q, &is_calibrated, o->err));
    compare_list(o, "scale", q->scale, (size_t)q->count);
    compare_list(o, "zero_point", q->zero_point, (size_t)q->count);
    if (!is_calibrated && o->difference.length == 0)
        tare__text_append(&o->difference, "says that it has seen nothing");
    tare__qparams_release(q);
    return TARE_OK;
}

static tare_status observe_batches(observed *o, module *m) {
    const json_int_t count = json_integer_value(json_object_get(o->one, "batches"));
    for (json_int_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "x%lld", (long long)i);
        const tare_tensor *x = numerics_tensor(o->cases, o->one, name);
        if (x == NULL)
            return tare__fail(o->err, TARE_MALFORMED_FILE, "tensor '%s' is missing", name);
        TARE_TRY(tare__observer_update(m, x, o->err));
    }
    return TARE_OK;
}

static tare_status make_observer(observed *o, module **out) {
    json_t *json = json_pack("{s:O, s:O}", "class", json_object_get(o->one, "class"), "kwargs",
                             json_object_get(o->one, "kwargs"));
    tare_observer_spec *spec = NULL;
    if (json == NULL) return tare__fail(o->err, TARE_MALFORMED_FILE, "lacks class or kwargs");
    const json_at at = tare__json_root(json);
    tare_status status = tare__observer_spec_from_json(&at, &spec, o->err);
    json_decref(json);
    TARE_TRY(status);
    status = tare__observer_spec_instantiate(NULL, spec, out, o->err);
    tare_observer_spec_release(spec);
    return status;
}

static tare_status run(observed *o, module **m) {
    TARE_TRY(make_observer(o, m));
    TARE_TRY(observe_batches(o, *m));
    TARE_TRY(compare_state(o, *m));
    return compare_qparams(o, *m);
}

// "NotImplementedError: Cannot .." against our message, which has no class of exceptions in front.
static void compare_error(observed *o, tare_status status) {
    const char *expected = json_string_value(json_object_get(o->one, "error"));
    const char *found = status != TARE_OK ? tare_error_message(o->err) : NULL;
    if (expected != NULL && strstr(expected, ": ") != NULL) expected = strstr(expected, ": ") + 2;
    if (expected == NULL && found != NULL)
        tare__text_append(&o->difference, found);
    else if (expected != NULL && found == NULL)
        tare__text_printf(&o->difference, "made what torch refuses: %s", expected);
    else if (expected != NULL && strcmp(expected, found) != 0)
        tare__text_printf(&o->difference, "refused with '%s', expected '%s'", found, expected);
}

static void run_case(const numerics_cases *cases, const json_t *one, text *label, text *difference,
                     tare_error *err) {
    module *m = NULL;
    observed o = {.cases = cases, .one = one, .err = err};
    compare_error(&o, run(&o, &m));
    tare__module_release(m);
    tare__text_append(label, json_string_value(json_object_get(one, "class")));
    *difference = o.difference;
}

const numerics_kind numerics_observers = {"observers", run_case};
