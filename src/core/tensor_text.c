// SPDX-License-Identifier: Apache-2.0
// Small float tensors as torch prints them: one number form for all values, chosen from their
// magnitudes.
#include "core/tensor_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_SIZE = 64, LINE_WIDTH = 80, SUMMARY_ABOVE = 1000, EDGE_COUNT = 3 };

typedef struct number_form {
    bool is_integral, is_scientific;
    size_t width;
} number_form;

// printf writes the decimal point of the caller's locale, which may be several bytes.
static void use_decimal_point(char *number) {
    const char *from = number;
    char *to = number;
    bool is_in_point = false;
    for (; *from != '\0'; from++) {
        const bool is_part = strchr("0123456789+-einfa", *from) != NULL;
        if (is_part)
            *to++ = *from;
        else if (!is_in_point)
            *to++ = '.';
        is_in_point = !is_part;
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

// Zeros and non-finite values have no say in the form and none in the width.
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

static void append_value(text *out, const number_form *form, float value) {
    char number[NUMBER_SIZE];
    write_number(form, (double)value, number);
    const size_t length = strlen(number);
    if (length < form->width) tare__text_spaces(out, form->width - length);
    tare__text_append_n(out, number, length);
}

void tare__text_float_tensor(text *out, const float *values, size_t count) {
    static const char opening[] = "tensor([";
    const number_form form = choose_form(values, count);
    const size_t indent = sizeof opening - 1, room = LINE_WIDTH - (indent - 1);
    const size_t per_line = room / (form.width + 2) > 0 ? room / (form.width + 2) : 1;
    size_t in_line = 0;
    tare__text_append(out, opening);
    for (size_t i = 0; i < count; i++) {
        const bool is_gap = !is_shown(i, count);
        if (is_gap && i != EDGE_COUNT) continue;
        if (i > 0) tare__text_append(out, in_line == per_line ? ",\n" : ", ");
        if (in_line == per_line) {
            tare__text_spaces(out, indent);
            in_line = 0;
        }
        if (is_gap)
            tare__text_append(out, " ...");
        else
            append_value(out, &form, values[i]);
        in_line++;
    }
    tare__text_append(out, "])");
}
