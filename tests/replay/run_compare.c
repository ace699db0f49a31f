// SPDX-License-Identifier: Apache-2.0
// Outputs against recorded ones.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "replay/run.h"

static const double float_tolerance = 1e-4, equal_tolerance = 1e-5, least_equal = 0.99;

typedef struct comparison {
    const recorded_case *c;
    const run_result *run;
    size_t next_step;
    finding_kind kind;
    findings *out;
} comparison;

/// How far values lie apart.
typedef struct distance {
    double most;      // greatest difference
    int64_t at;       // where
    int64_t unequal;  // how many differ by more than the rounding of a float
    double magnitude; // greatest recorded absolute value
} distance;

static distance measure(const tare_tensor *ours, const tare_tensor *recorded) {
    distance d = {0};
    for (int64_t i = 0; i < ours->count; i++) {
        const double a = tare__tensor_get(ours, i), b = tare__tensor_get(recorded, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        // NaN or infinity against a number is as far as can be.
        const double apart = isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
        if (apart > d.most) {
            d.most = apart;
            d.at = i;
        }
        if (apart > equal_tolerance * fmax(fabs(a), fabs(b))) d.unequal++;
    }
    for (int64_t i = 0; i < recorded->count; i++)
        d.magnitude = fmax(d.magnitude, fabs(tare__tensor_get(recorded, i)));
    return d;
}

static bool same_shape(const comparison *k, const char *name, const tare_tensor *ours,
                       const tare_tensor *recorded) {
    if (ours->ndim == recorded->ndim &&
        memcmp(ours->shape, recorded->shape, (size_t)ours->ndim * sizeof *ours->shape) == 0)
        return true;
    char a[128], b[128];
    tare__shape_text(ours->ndim, ours->shape, a, sizeof a);
    tare__shape_text(recorded->ndim, recorded->shape, b, sizeof b);
    findings_add(k->out, k->kind, "output '%s': expected the shape %s, found %s", name, b, a);
    return false;
}

static void compare_values(const comparison *k, const char *name, const tare_tensor *ours,
                           const tare_tensor *recorded, double step) {
    if (!same_shape(k, name, ours, recorded)) return;
    const distance d = measure(ours, recorded);
    const double bound = step > 0 ? step * (1 + float_tolerance) : float_tolerance * d.magnitude;
    const double a = tare__tensor_get(ours, d.at), b = tare__tensor_get(recorded, d.at);
    if (!(d.most <= bound))
        findings_add(
            k->out, k->kind, "output '%s'[%lld]: expected %.9g, found %.9g, %.3g apart (%s %.3g)",
            name, (long long)d.at, b, a, d.most, step > 0 ? "one step is" : "allowed are", bound);
    else if (step > 0 && (double)d.unequal > (1 - least_equal) * (double)ours->count)
        findings_add(k->out, k->kind,
                     "output '%s': %lld of %lld values are not equal ([%lld]: expected %.9g, found "
                     "%.9g)",
                     name, (long long)d.unequal, (long long)ours->count, (long long)d.at, b, a);
}

static const tare_tensor *recorded_tensor(const comparison *k, const char *name,
                                          const char *suffix) {
    char key[256];
    (void)snprintf(key, sizeof key, "%s.%s", name, suffix);
    return tare__safetensors_get(&k->c->data, key);
}

/// A quantized output: its parameters, then the integers.
static void compare_quantized(const comparison *k, const char *name, const tare_tensor *ours,
                              const tare_tensor *quantized) {
    const tare_tensor *scale = recorded_tensor(k, name, "scale");
    const tare_tensor *zero_point = recorded_tensor(k, name, "zero_point");
    if (ours->q == NULL || scale == NULL || zero_point == NULL) {
        findings_add(k->out, k->kind, "output '%s': expected a quantized tensor", name);
        return;
    }
    const double s = tare__tensor_get(scale, 0), z = tare__tensor_get(zero_point, 0);
    if (fabs(ours->q->scale[0] - s) > equal_tolerance * s || ours->q->zero_point[0] != z)
        findings_add(k->out, k->kind,
                     "output '%s': expected scale %.9g and zero point %g, found %.9g and %g", name,
                     s, z, ours->q->scale[0], ours->q->zero_point[0]);
    else
        compare_values(k, name, ours, quantized, 1);
}

static void compare_tensor(comparison *k, const char *name, const tare_tensor *ours) {
    const size_t at = k->next_step++;
    const double step = at < k->run->step_count ? k->run->steps[at] : 0;
    const tare_tensor *quantized = recorded_tensor(k, name, "int_repr");
    const tare_tensor *recorded = tare__safetensors_get(&k->c->data, name);
    if (quantized != NULL)
        compare_quantized(k, name, ours, quantized);
    else if (recorded == NULL)
        findings_add(k->out, k->kind, "output '%s': nothing was recorded", name);
    else if (ours->q != NULL)
        findings_add(k->out, k->kind, "output '%s': expected floats, found a quantized tensor",
                     name);
    else
        compare_values(k, name, ours, recorded, step);
}

static void compare_value(comparison *k, const char *name, const value *v) {
    char inner[256];
    if (v->kind == VALUE_TENSOR) {
        compare_tensor(k, name, v->as.tensor);
    } else if (v->kind == VALUE_DICT) {
        for (uint32_t i = 0; i + 1 < v->count; i += 2) {
            const value *key = &v->as.items[i];
            if (key->kind == VALUE_INT)
                (void)snprintf(inner, sizeof inner, "%s.%lld", name, (long long)key->as.integer);
            else
                (void)snprintf(inner, sizeof inner, "%s.%s", name,
                               key->kind == VALUE_STRING ? key->as.text : "?");
            compare_value(k, inner, &v->as.items[i + 1]);
        }
    } else if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) {
            (void)snprintf(inner, sizeof inner, "%s.%u", name, i);
            compare_value(k, inner, &v->as.items[i]);
        }
    }
}

/// A model may return None: then nothing is recorded, and nothing is wanted.
static bool has_recorded(const recorded_case *c, const char *prefix) {
    const size_t length = strlen(prefix);
    for (size_t i = 0; i < c->data.tensors.count; i++) {
        const char *key = c->data.tensors.entries[i].key;
        if (strncmp(key, prefix, length) == 0 && (key[length] == '\0' || key[length] == '.'))
            return true;
    }
    return false;
}

void replay_compare(const recorded_case *c, const char *prefix, const run_result *r,
                    finding_kind kind, findings *out) {
    comparison k = {.c = c, .run = r, .kind = kind, .out = out};
    // What an exported program returns is flattened; one tensor was returned as it is.
    const bool is_flat = tare__value_has_items(&r->output) && r->output.count == 1 &&
                         tare__safetensors_get(&c->data, prefix) != NULL;
    compare_value(&k, prefix, is_flat ? &r->output.as.items[0] : &r->output);
    if (k.next_step == 0 && has_recorded(c, prefix))
        findings_add(out, kind, "output '%s': no tensor came out", prefix);
}
