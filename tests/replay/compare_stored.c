// SPDX-License-Identifier: Apache-2.0
// What convert stored: buffers that the graph reads, and weights of lowered modules.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "replay/statistics.h"

/// Codes of 32 bits were rounded from float32 sums of their largest ones' size.
static double wide_tolerance(tare_dtype dtype, double most) {
    return dtype == TARE_INT32 ? floor(most * 0x1p-20) : 0;
}

static double code_tolerance(tare_dtype dtype, const json_t *values) {
    double most = 0;
    for (size_t i = 0; i < json_array_size(values); i++)
        most = fmax(most, fabs(json_number_value(json_array_get(values, i))));
    return wide_tolerance(dtype, most);
}

static bool stored_agree(tare_dtype dtype, const agreement *numbers, double tolerance, double a,
                         double b) {
    if (tare__dtype(dtype)->is_float) return floats_agree(numbers, a, b);
    return fabs(a - b) <= tolerance || integers_agree(numbers, a, b);
}

static void compare_constant(const char *name, const json_t *recorded, const tare_tensor *ours,
                             const agreement *numbers, findings *out) {
    const char *dtype = json_string_value(json_object_get(recorded, "dtype"));
    const json_t *shape = json_object_get(recorded, "shape");
    const json_t *values = json_object_get(recorded, "value");
    if (ours == NULL) {
        findings_add(out, FINDING_STRUCTURE, "constant %s: the converted model has none", name);
        return;
    }
    bool same = dtype != NULL && strcmp(dtype, tare_dtype_name(ours->dtype)) == 0 &&
                json_array_size(shape) == (size_t)ours->ndim;
    for (int i = 0; same && i < ours->ndim; i++)
        same = json_integer_value(json_array_get(shape, (size_t)i)) == ours->shape[i];
    if (!same) {
        char text_of_shape[128];
        tare__shape_text(ours->ndim, ours->shape, text_of_shape, sizeof text_of_shape);
        findings_add(out, FINDING_STRUCTURE,
                     "constant %s: expected %s with %zu dimensions, found %s %s", name,
                     dtype != NULL ? dtype : "?", json_array_size(shape),
                     tare_dtype_name(ours->dtype), text_of_shape);
        return;
    }
    const double tolerance = code_tolerance(ours->dtype, values);
    for (int64_t i = 0; i < ours->count && i < (int64_t)json_array_size(values); i++) {
        const double a = tare__tensor_get(ours, i);
        const double b = json_number_value(json_array_get(values, (size_t)i));
        if (stored_agree(ours->dtype, numbers, tolerance, a, b)) continue;
        findings_add(out, FINDING_STRUCTURE, "constant %s[%lld]: expected %.9g, found %.9g", name,
                     (long long)i, b, a);
        return;
    }
}

void compare_constants(const recorded_case *c, const tare_model *converted,
                       const agreement *numbers, findings *out) {
    const char *name = NULL;
    json_t *recorded = NULL;
    json_object_foreach(json_object_get(c->json, "constants"), name, recorded) compare_constant(
        name, recorded, tare__module_find_tensor(converted->root, name), numbers, out);
}

/// A recorded weight: weights.PATH.int_repr and its companions.
typedef struct weight {
    const char *path;
    const tare_tensor *ours, *quantized, *scale, *zero_point;
    finding_kind quantized_kind; // what a wrong code is
    findings *out;
} weight;

static bool compare_parameters(const weight *w) {
    const qparams *q = w->ours->q;
    if (q == NULL || q->count != w->scale->count || q->count != w->zero_point->count) {
        findings_add(w->out, FINDING_STRUCTURE, "weight %s: expected %lld scales, found %lld",
                     w->path, (long long)w->scale->count, q == NULL ? 0LL : (long long)q->count);
        return false;
    }
    static const agreement plain = {0};
    for (int64_t i = 0; i < q->count; i++) {
        const double scale = tare__tensor_get(w->scale, i);
        const double zero_point = tare__tensor_get(w->zero_point, i);
        if (floats_agree(&plain, q->scale[i], scale) && q->zero_point[i] == zero_point) continue;
        findings_add(w->out, FINDING_STRUCTURE,
                     "weight %s: channel %lld: expected scale %.9g and zero point %g, found %.9g "
                     "and %g",
                     w->path, (long long)i, scale, zero_point, q->scale[i], q->zero_point[i]);
        return false;
    }
    return true;
}

/// The recorded code of element i: torch keeps two 4-bit quantized values in a byte, the first one
/// low.
static double recorded_code(const weight *w, int64_t i) {
    if (w->ours->dtype != TARE_QUINT4X2) return tare__tensor_get(w->quantized, i);
    const int pair = (int)tare__tensor_get(w->quantized, i / 2);
    return i % 2 == 0 ? pair & 15 : pair >> 4;
}

/// Folded batch norms give weights that float arithmetic rounded: a code on a boundary may move.
static bool may_move(double ours, double recorded, int64_t *moved, int64_t count) {
    return fabs(ours - recorded) == 1 && ++*moved * 1000 <= count;
}

static void compare_quantized(const weight *w) {
    const int64_t per_byte = w->ours->dtype == TARE_QUINT4X2 ? 2 : 1;
    if (w->quantized->count * per_byte != w->ours->count) {
        findings_add(w->out, FINDING_STRUCTURE, "weight %s: expected %lld elements, found %lld",
                     w->path, (long long)w->quantized->count * (long long)per_byte,
                     (long long)w->ours->count);
        return;
    }
    int64_t moved = 0;
    for (int64_t i = 0; i < w->ours->count; i++) {
        const double a = tare__tensor_get(w->ours, i), b = recorded_code(w, i);
        if (a == b || may_move(a, b, &moved, w->ours->count)) continue;
        findings_add(w->out, w->quantized_kind,
                     "weight %s[%lld]: expected the integer %g, found %g", w->path, (long long)i, b,
                     a);
        return;
    }
}

static const tare_tensor *companion(const recorded_case *c, const char *path, const char *suffix) {
    char key[640];
    (void)snprintf(key, sizeof key, "weights.%s.%s", path, suffix);
    return tare__safetensors_get(&c->data, key);
}

/// torch's fbgemm unpacks the weights of transposed convolutions out of memory that nobody wrote:
/// it gives other quantized values each time it is asked. What was recorded of them may be no value
/// at all.
static finding_kind quantized_kind(const tare_model *converted, const char *path) {
    char parent[512];
    const char *dot = strrchr(path, '.');
    (void)snprintf(parent, sizeof parent, "%.*s", dot != NULL ? (int)(dot - path) : 0, path);
    const module *m = tare__module_find(converted->root, parent);
    const bool is_transposed =
        m != NULL && m->class->op != NULL && strcmp(m->class->op, "conv_transpose") == 0;
    return is_transposed ? FINDING_VALUE : FINDING_STRUCTURE;
}

void compare_weights(const recorded_case *c, const tare_model *converted, findings *out) {
    static const char prefix[] = "weights.", suffix[] = ".int_repr";
    for (size_t i = 0; i < c->data.tensors.count; i++) {
        const char *key = c->data.tensors.entries[i].key;
        const size_t length = strlen(key), around = sizeof prefix + sizeof suffix - 2;
        if (length <= around || !tare__starts_with(key, prefix) || !tare__ends_with(key, suffix))
            continue;
        char path[512];
        (void)snprintf(path, sizeof path, "%.*s", (int)(length - around), key + sizeof prefix - 1);
        const weight w = {.path = path,
                          .ours = tare__module_find_tensor(converted->root, path),
                          .quantized = c->data.tensors.entries[i].value,
                          .scale = companion(c, path, "scale"),
                          .zero_point = companion(c, path, "zero_point"),
                          .quantized_kind = quantized_kind(converted, path),
                          .out = out};
        if (w.ours == NULL || w.scale == NULL || w.zero_point == NULL)
            findings_add(out, FINDING_STRUCTURE, "weight %s: the converted model has none", path);
        else if (compare_parameters(&w))
            compare_quantized(&w);
    }
}

// --- constants of exported programs ---

static bool frozen_agree(const tare_tensor *ours, const tare_tensor *recorded, const char *name,
                         findings *out) {
    bool same = ours != NULL && ours->dtype == recorded->dtype && ours->count == recorded->count;
    if (!same) {
        findings_add(out, FINDING_STRUCTURE, "%s: the converted model has other integers", name);
        return false;
    }
    double most = 0;
    for (int64_t i = 0; i < recorded->count; i++)
        most = fmax(most, fabs(tare__tensor_get(recorded, i)));
    int64_t moved = 0;
    for (int64_t i = 0; i < ours->count && same; i++) {
        const double a = tare__tensor_get(ours, i), b = tare__tensor_get(recorded, i);
        same =
            fabs(a - b) <= wide_tolerance(ours->dtype, most) || may_move(a, b, &moved, ours->count);
        if (!same)
            findings_add(out, FINDING_STRUCTURE, "%s[%lld]: expected the integer %g, found %g",
                         name, (long long)i, b, a);
    }
    return same;
}

tare_status use_recorded_quantized(const recorded_case *c, tare_model *converted, findings *out,
                                   tare_error *err) {
    static const char prefix[] = "frozen.";
    for (size_t i = 0; i < c->data.tensors.count; i++) {
        const map_entry *e = &c->data.tensors.entries[i];
        if (!tare__starts_with(e->key, prefix)) continue;
        const char *name = e->key + sizeof prefix - 1;
        const tare_tensor *ours = tare__module_tensor(converted->root, name);
        if (frozen_agree(ours, e->value, name, out))
            TARE_TRY(tare__module_set_tensor(converted->root, name, e->value, false, err));
    }
    return TARE_OK;
}
