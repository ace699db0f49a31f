// SPDX-License-Identifier: Apache-2.0
// Measures of the difference between two models' values.
#include "compare/differences.h"
#include "tare/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool difference_add(difference *d, const tare_tensor *x, const tare_tensor *y) {
    const int64_t count = tare_tensor_element_count(x);
    if (tare_tensor_element_count(y) != count || tare_tensor_dtype(x) != TARE_FLOAT32 ||
        tare_tensor_dtype(y) != TARE_FLOAT32)
        return false;
    const float *a = tare_tensor_data(x), *b = tare_tensor_data(y);
    for (int64_t i = 0; i < count; i++) {
        const double error = (double)a[i] - (double)b[i];
        d->signal += (double)a[i] * (double)a[i];
        d->noise += error * error;
        if (fabs(error) > d->largest_error) d->largest_error = fabs(error);
    }
    return true;
}

double cosine_of(const float *x, const float *y, int64_t count) {
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < count; i++) {
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
        xy += (double)x[i] * (double)y[i];
    }
    const double length = sqrt(xx) * sqrt(yy);
    return length > 0 ? xy / length : xx == yy ? 1 : 0;
}

double signal_to_noise_db(const difference *d) {
    return d->noise > 0 ? 10 * log10(d->signal / d->noise) : (double)INFINITY;
}

difference difference_of(const tare_debug_row *row) {
    return (difference){row->reference, row->noise, row->max_abs_error};
}

const char *decibels_text(double db) {
    static char text[32];
    if (!isfinite(db)) return db > 0 ? "equal" : "none";
    (void)snprintf(text, sizeof text, "%.2f", db);
    return text;
}

// --- all values ---

typedef struct value_table {
    tare_debug_row *rows;
    size_t count;
} value_table;

// All figures of tare compare use this definition: the signal is the float model's value.
static double decibels_of(const tare_debug_row *row) {
    const difference d = difference_of(row);
    return signal_to_noise_db(&d);
}

// NaN is sorted as the worst value.
static int by_sqnr(const void *a, const void *b) {
    const tare_debug_row *x = a, *y = b;
    const double a_db = decibels_of(x), b_db = decibels_of(y);
    if (isnan(a_db) || isnan(b_db)) return isnan(b_db) - isnan(a_db);
    return (a_db > b_db) - (a_db < b_db);
}

static value_table table_of(const tare_debug_comparison *c, bool worst_first) {
    value_table t = {
        .rows = tare_memory_allocate(tare_debug_comparison_row_count(c) + 1, sizeof *t.rows)};
    for (size_t i = 0; t.rows != NULL && tare_debug_comparison_row(c, i, &t.rows[t.count]); i++)
        if (t.rows[t.count].element_count > 0) t.count++;
    if (worst_first && t.count > 0) qsort(t.rows, t.count, sizeof *t.rows, by_sqnr);
    return t;
}

void print_values(const tare_debug_comparison *c, bool worst_first) {
    const value_table t = table_of(c, worst_first);
    printf("%6s  %-20s  %-32s  %7s  %10s  %10s  %s\n", "handle", "float node", "node", "SQNR dB",
           "MSE", "max error", "operator");
    for (size_t i = 0; i < t.count; i++) {
        const tare_debug_row *r = &t.rows[i];
        char handle[32] = "-";
        if (r->handle != 0) (void)snprintf(handle, sizeof handle, "%" PRId64, r->handle);
        printf("%6s  %-20s  %-32s  %7s  %10.4g  %10.4g  %s\n", handle, r->reference_node, r->node,
               decibels_text(decibels_of(r)), r->mse, r->max_abs_error, r->target);
    }
    tare_memory_release(t.rows);
}

void write_values(const tare_debug_comparison *c, bool worst_first, json_out *json) {
    const value_table t = table_of(c, worst_first);
    json_out_string(json, "matched_by", tare_debug_comparison_by_handles(c) ? "handle" : "origin");
    json_out_open(json, "values", '[');
    for (size_t i = 0; i < t.count; i++) {
        const tare_debug_row *r = &t.rows[i];
        json_out_open(json, NULL, '{');
        if (r->handle != 0) json_out_integer(json, "handle", (uint64_t)r->handle);
        json_out_string(json, "float_node", r->reference_node);
        json_out_string(json, "node", r->node);
        json_out_string(json, "operator", r->target);
        json_out_number(json, "sqnr_db", decibels_of(r)); // infinite: null
        json_out_number(json, "mse", r->mse);
        json_out_number(json, "max_abs_error", r->max_abs_error);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
    tare_memory_release(t.rows);
}
