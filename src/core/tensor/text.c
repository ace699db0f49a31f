// SPDX-License-Identifier: Apache-2.0
// Prints small tensors as torch does: one number format for all values, chosen from their
// magnitudes.
#include "core/tensor/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OPENING "tensor(["

enum { NUMBER_SIZE = 64, LINE_WIDTH = 80, SUMMARY_ABOVE = 1000, EDGE_COUNT = 3 };

typedef struct number_form {
    bool is_integral, is_scientific;
    size_t width;
} number_form;

// printf uses the locale's decimal point, which may be several bytes.
static void use_decimal_point(char *number) {
    const char *from = number;
    char *to = number;
    bool is_in_point = false;
    for (; *from != '\0'; from++) {
        const bool is_of_number = strchr("0123456789+-einfa", *from) != NULL;
        if (is_of_number)
            *to++ = *from;
        else if (!is_in_point)
            *to++ = '.';
        is_in_point = !is_of_number;
    }
    *to = '\0';
}

static void write_number(const number_form *form, double value, char out[NUMBER_SIZE]) {
    if (!isfinite(value)) {
        snprintf(out, NUMBER_SIZE, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    if (form->is_scientific)
        snprintf(out, NUMBER_SIZE, "%.4e", value);
    else if (form->is_integral)
        snprintf(out, NUMBER_SIZE, "%.0f.", value);
    else
        snprintf(out, NUMBER_SIZE, "%.4f", value);
    use_decimal_point(out);
}

static bool is_shown(size_t i, size_t count) {
    return count <= SUMMARY_ABOVE || i < EDGE_COUNT || i >= count - EDGE_COUNT;
}

static bool is_measured(float value) {
    return isfinite(value) && value != 0;
}

// Zeros do not influence the format; non-finite values influence neither format nor width.
static number_form choose_form(const float *values, size_t count) {
    number_form form = {.is_integral = true, .width = 1};
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_shown(i, count) || !is_measured(values[i])) continue;
        const double magnitude = fabs((double)values[i]);
        least = fmin(least, magnitude);
        most = fmax(most, magnitude);
        if (values[i] != ceilf(values[i])) form.is_integral = false;
    }
    if (most == 0) return form;
    form.is_scientific = most / least > 1000.0 || most > 1.0e8 || least < 1.0e-4;
    for (size_t i = 0; i < count; i++) {
        char number[NUMBER_SIZE];
        if (!is_shown(i, count) || !is_measured(values[i])) continue;
        write_number(&form, (double)values[i], number);
        if (strlen(number) > form.width) form.width = strlen(number);
    }
    return form;
}

static void append_padded(text *out, size_t width, const char *number) {
    const size_t length = strlen(number);
    if (length < width) tare__text_spaces(out, width - length);
    tare__text_append_n(out, number, length);
}

// The values to print: floats in one format, or integers.
typedef struct printed {
    const float *floats;
    const tare_tensor *integers; // NULL: floats
    size_t count;
    number_form form;
} printed;

static void write_item(const printed *p, size_t i, char out[NUMBER_SIZE]) {
    if (p->integers != NULL)
        snprintf(out, NUMBER_SIZE, "%.0f", tare__tensor_get(p->integers, (int64_t)i));
    else
        write_number(&p->form, (double)p->floats[i], out);
}

// Every integer counts for the width.
static void measure_integers(printed *p) {
    for (size_t i = 0; i < p->count; i++) {
        char number[NUMBER_SIZE];
        if (!is_shown(i, p->count)) continue;
        write_item(p, i, number);
        if (strlen(number) > p->form.width) p->form.width = strlen(number);
    }
}

static void append_items(text *out, const printed *p) {
    const size_t indent = sizeof OPENING - 1, room = LINE_WIDTH - (indent - 1);
    const size_t per_line = room / (p->form.width + 2) > 0 ? room / (p->form.width + 2) : 1;
    size_t in_line = 0;
    tare__text_append(out, OPENING);
    for (size_t i = 0; i < p->count; i++) {
        char number[NUMBER_SIZE];
        const bool is_gap = !is_shown(i, p->count);
        if (is_gap && i != EDGE_COUNT) continue;
        if (i > 0) tare__text_append(out, in_line == per_line ? ",\n" : ", ");
        if (in_line == per_line) {
            tare__text_spaces(out, indent);
            in_line = 0;
        }
        write_item(p, i, number);
        if (is_gap)
            tare__text_append(out, " ...");
        else
            append_padded(out, p->form.width, number);
        in_line++;
    }
    tare__text_append(out, "]");
}

void tare__text_float_tensor(text *out, const float *values, size_t count) {
    const printed p = {.floats = values, .count = count, .form = choose_form(values, count)};
    append_items(out, &p);
    tare__text_append(out, ")");
}

// torch omits the dtypes that a literal would have. The suffix moves to its own line if it would
// exceed the margin.
static void append_dtype(text *out, size_t start, tare_dtype dtype) {
    if (dtype == TARE_FLOAT32 || dtype == TARE_INT64) return;
    const char *chars = tare__text_chars(out) + start, *line = strrchr(chars, '\n');
    const size_t length = strlen(chars) - (line != NULL ? (size_t)(line - chars) + 1 : 0) + 2;
    const char *name = tare_dtype_name(dtype);
    const bool fits = length + strlen("dtype=") + strlen(name) + 2 <= LINE_WIDTH;
    tare__text_printf(out, fits ? ", dtype=%s" : ",\n       dtype=%s", name);
}

void tare__text_tensor(text *out, const tare_tensor *t) {
    const size_t start = out->length;
    printed p = {.count = (size_t)t->count, .form = {.width = 0}};
    if (t->dtype == TARE_FLOAT32) {
        p.floats = tare__f32(t);
        p.form = choose_form(p.floats, p.count);
    } else {
        p.integers = t;
        measure_integers(&p);
    }
    append_items(out, &p);
    append_dtype(out, start, t->dtype);
    tare__text_append(out, ")");
}
