// SPDX-License-Identifier: Apache-2.0
// Calibrated observers against recorded ones.
#include <math.h>
#include <string.h>

#include "flow/export/observers.h"
#include "observe/fake_quantize.h"
#include "ops/text/print.h"
#include "replay/statistics.h"
#include "replay/text_compare.h"

/// One observer under comparison.
typedef struct watched {
    const char *path;
    const module *root, *module;
    const json_t *recorded;
    agreement *numbers;
    findings *out;
    map statistics; // our state: "min_val", "max_val", ..
} watched;

static double recorded_at(const json_t *list, size_t i) {
    const json_t *item = json_array_get(list, i);
    if (json_is_number(item)) return json_number_value(item);
    const char *special = json_string_value(json_object_get(item, "float"));
    if (special == NULL) return NAN;
    return strcmp(special, "inf") == 0 ? INFINITY : strcmp(special, "-inf") == 0 ? -INFINITY : NAN;
}

/// The width of what was seen, against which a difference near zero is judged.
static double span(const watched *w) {
    const json_t *low = json_object_get(w->recorded, "min_val");
    const json_t *high = json_object_get(w->recorded, "max_val");
    double most = 0;
    for (size_t i = 0; i < json_array_size(low); i++)
        most = fmax(most, fmax(fabs(recorded_at(low, i)), fabs(recorded_at(high, i))));
    return isfinite(most) ? most : 0;
}

static bool compare_extreme(const watched *w, const char *key) {
    const json_t *list = json_object_get(w->recorded, key);
    if (list == NULL) return true;
    const tare_tensor *ours = tare__map_get(&w->statistics, key);
    if (ours == NULL || (size_t)ours->count != json_array_size(list)) {
        findings_add(w->out, FINDING_STRUCTURE, "observer %s: expected %zu values of %s, found %zu",
                     w->path, json_array_size(list), key,
                     ours == NULL ? (size_t)0 : (size_t)ours->count);
        return false;
    }
    const double slack = span(w) * agreement_relative(w->numbers) * 0.01;
    for (int64_t i = 0; i < ours->count; i++) {
        const double a = tare__tensor_get(ours, i), b = recorded_at(list, (size_t)i);
        // null stands for an extreme of an observer that has seen nothing.
        const bool is_unseen = json_is_null(json_array_get(list, (size_t)i));
        if (is_unseen ? !isfinite(a) : floats_agree(w->numbers, a, b)) continue;
        if (fabs(a - b) <= slack) {
            (void)agreement_accept(w->numbers, fabs(a), fabs(b));
            continue;
        }
        findings_add(w->out, FINDING_STRUCTURE, "observer %s: expected %s %.9g, found %.9g",
                     w->path, key, b, a);
        return false;
    }
    return true;
}

static bool is_histogram(const watched *w) {
    return tare__map_has(&w->statistics, "histogram");
}

/// How far one bin of the histogram moves the scale.
static double bin_of_scale(const watched *w, const qparams *q) {
    const tare_tensor *counts = tare__map_get(&w->statistics, "histogram");
    const tare_tensor *low = tare__map_get(&w->statistics, "min_val");
    const tare_tensor *high = tare__map_get(&w->statistics, "max_val");
    const double width =
        (tare__tensor_get(high, 0) - tare__tensor_get(low, 0)) / (double)counts->count;
    // A symmetric scheme spreads the larger side over both.
    const double sides = q->scheme == TARE_PER_TENSOR_SYMMETRIC ? 2 : 1;
    return sides * width / (double)(q->quant_max - q->quant_min);
}

static void compare_scale(const watched *w, const qparams *q, int64_t i) {
    const double ours = q->scale[i];
    const double recorded = recorded_at(json_object_get(w->recorded, "scale"), (size_t)i);
    if (floats_agree(w->numbers, ours, recorded)) return;
    if (is_histogram(w) &&
        fabs(ours - recorded) <=
            bin_of_scale(w, q) * 1.01 + agreement_relative(w->numbers) * fabs(recorded)) {
        (void)agreement_accept(w->numbers, ours, recorded);
        return;
    }
    findings_add(w->out, FINDING_STRUCTURE, "observer %s: expected scale %.9g, found %.9g", w->path,
                 recorded, ours);
}

/// Does the zero point, before it is rounded, lie halfway between two integers? The start of a
/// histogram's range is known to a bin only, so any of its zero points may.
static bool is_on_boundary(const watched *w, const qparams *q, int64_t i) {
    if (is_histogram(w)) return true;
    const tare_tensor *low = tare__map_get(&w->statistics, "min_val");
    if (low == NULL || i >= low->count) return false;
    const double exact = fmin(tare__tensor_get(low, i), 0) / q->scale[i];
    const double off = fabs(exact - floor(exact) - 0.5);
    return off <= 2 * agreement_relative(w->numbers) * fmax(fabs(exact), 1);
}

static void compare_zero_point(const watched *w, const qparams *q, int64_t i) {
    const double ours = q->zero_point[i];
    const double recorded = recorded_at(json_object_get(w->recorded, "zero_point"), (size_t)i);
    const bool is_integer = q->scheme != TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    if (is_integer ? integers_agree(w->numbers, ours, recorded)
                   : floats_agree(w->numbers, ours, recorded))
        return;
    if (is_integer && fabs(ours - recorded) == 1 && is_on_boundary(w, q, i)) {
        // A text shows a sign apart from the digits.
        (void)agreement_accept(w->numbers, ours, recorded);
        (void)agreement_accept(w->numbers, fabs(ours), fabs(recorded));
        return;
    }
    findings_add(w->out, FINDING_STRUCTURE, "observer %s: expected zero point %g, found %g",
                 w->path, recorded, ours);
}

static tare_status compare_qparams(const watched *w, tare_error *err) {
    const size_t count = json_array_size(json_object_get(w->recorded, "scale"));
    if (count == 0) return TARE_OK;
    const qparams *q = NULL;
    bool is_calibrated = false;
    TARE_TRY(tare__pt2e_qparams(w->root, w->module, &q, &is_calibrated, err));
    if ((size_t)q->count != count)
        findings_add(w->out, FINDING_STRUCTURE, "observer %s: expected %zu scales, found %lld",
                     w->path, count, (long long)q->count);
    for (int64_t i = 0; i < q->count && (size_t)q->count == count; i++) {
        compare_scale(w, q, i);
        compare_zero_point(w, q, i);
    }
    tare__qparams_release(q);
    return TARE_OK;
}

static tare_status compare_repr(const watched *w, tare_error *err) {
    const char *recorded = json_string_value(json_object_get(w->recorded, "repr"));
    if (recorded == NULL) return TARE_OK;
    text printed = {0};
    tare_status status = tare__print_module(w->module, &printed, err);
    if (status == TARE_OK) status = tare__text_status(&printed, err);
    if (status == TARE_OK)
        compare_texts("observer's repr", tare__text_chars(&printed), recorded, w->numbers, w->out);
    tare__text_release(&printed);
    return status;
}

static tare_status compare_one(watched *w, tare_error *err) {
    const char *class = json_string_value(json_object_get(w->recorded, "class"));
    const char *ours = tare__observer_class_of(w->module)->name;
    if (class == NULL || strcmp(class, ours) != 0) {
        findings_add(w->out, FINDING_STRUCTURE, "observer %s: expected a %s, found a %s", w->path,
                     class != NULL ? class : "?", ours);
        return TARE_OK;
    }
    const module *inner = tare__fake_quantize_kind_of(w->module) != NULL
                              ? tare__fake_quantize_observer(w->module)
                              : w->module;
    TARE_TRY(tare__observer_state_io.save(inner, &w->statistics, err));
    if (!compare_extreme(w, "min_val") || !compare_extreme(w, "max_val")) return TARE_OK;
    TARE_TRY(compare_qparams(w, err));
    return compare_repr(w, err);
}

static void compare_path(const module *root, const char *path, const module *m,
                         const json_t *recorded, agreement *numbers, findings *out) {
    if (m == NULL || m->class->role != ROLE_OBSERVER) {
        findings_add(out, FINDING_STRUCTURE, "observer %s: the prepared model has none there",
                     path);
        return;
    }
    watched w = {.root = root,
                 .path = path,
                 .module = m,
                 .recorded = recorded,
                 .numbers = numbers,
                 .out = out};
    tare_error *err = tare_error_create();
    if (compare_one(&w, err) != TARE_OK) findings_add_error(out, FINDING_STRUCTURE, path, err);
    tare_error_destroy(err);
    for (size_t i = 0; i < w.statistics.count; i++)
        tare_tensor_release(w.statistics.entries[i].value);
    tare__map_release(&w.statistics);
}

void compare_observers(const recorded_case *c, const tare_model *prepared, agreement *numbers,
                       findings *out) {
    const char *path = NULL;
    json_t *recorded = NULL;
    json_object_foreach(json_object_get(c->json, "observers"), path, recorded) compare_path(
        prepared->root, path, tare__module_find(prepared->root, path), recorded, numbers, out);
}
