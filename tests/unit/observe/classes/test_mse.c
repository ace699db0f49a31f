// SPDX-License-Identifier: Apache-2.0
// Observers of weights by error: better than extremes, and exact where values lie on a grid.
#include "support/observers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"

enum { ROWS = 4, COLUMNS = 64, COUNT = ROWS * COLUMNS };

static const qparams *proposal(const char *class, const char *arguments, const tare_tensor *x) {
    char json[512];
    (void)snprintf(json, sizeof json, "{\"class\": \"%s\", \"kwargs\": {%s}}", class, arguments);
    module *m = made(json);
    CHECK_OK(tare__observer_update(m, x, NULL));
    const qparams *q = qparams_of(m);
    tare__module_release(m);
    return q;
}

static double dequantized(const qparams *q, int64_t index, float x) {
    const int64_t range = index / (COUNT / q->count);
    double code = nearbyint((double)x / q->scale[range]) + q->zero_point[range];
    code = fmin(fmax(code, (double)q->quant_min), (double)q->quant_max);
    return (code - q->zero_point[range]) * q->scale[range];
}

static double error_of(const qparams *q, const tare_tensor *x) {
    double sum = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        const double rest =
            (double)((const float *)x->data)[i] - dequantized(q, i, ((const float *)x->data)[i]);
        sum += rest * rest;
    }
    return sum;
}

static tare_tensor *bell_shaped(void) {
    float values[COUNT];
    uint32_t seed = 5;
    for (int i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int k = 0; k < 8; k++) sum += noise(&seed);
        values[i] = sum * (float)(1 + i / COLUMNS);
    }
    return floats(2, (int64_t[]){ROWS, COLUMNS}, values);
}

static const struct {
    const char *least_error, *extremes, *arguments;
} kinds[] = {
    {"tare.MSEObserver", "MinMaxObserver",
     "\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_symmetric\", \"quant_min\": -8, "
     "\"quant_max\": 7"},
    {"tare.MSEObserver", "MinMaxObserver",
     "\"dtype\": \"torch.quint8\", \"quant_min\": 0, \"quant_max\": 15"},
    {"tare.PerChannelMSEObserver", "PerChannelMinMaxObserver",
     "\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_channel_symmetric\", \"quant_min\": -4, "
     "\"quant_max\": 3"},
    {"tare.PerChannelMSEObserver", "PerChannelMinMaxObserver",
     "\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_channel_symmetric\""},
    {"tare.PerGroupMSEObserver", "tare.PerGroupMinMaxObserver",
     "\"dtype\": \"torch.qint8\", \"group_size\": 16, \"quant_min\": -8, \"quant_max\": 7"},
    {"tare.PerGroupMSEObserver", "tare.PerGroupMinMaxObserver",
     "\"dtype\": \"torch.quint8\", \"qscheme\": \"tare.per_group_affine\", \"group_size\": 32, "
     "\"quant_min\": 0, \"quant_max\": 3"},
};

static void the_error_is_less_than_that_of_extremes(void **state) {
    (void)state;
    tare_tensor *x = bell_shaped();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const qparams *own = proposal(kinds[k].least_error, kinds[k].arguments, x);
        const qparams *wide = proposal(kinds[k].extremes, kinds[k].arguments, x);
        const bool is_coarse = strstr(kinds[k].arguments, "quant_min") != NULL;
        assert_int_equal(own->count, wide->count);
        assert_true(error_of(own, x) <= (is_coarse ? 0.95 : 1.0) * error_of(wide, x));
        tare__qparams_release(own);
        tare__qparams_release(wide);
    }
    tare_tensor_release(x);
}

// What one observer made of values is what the next one finds in them.
static void values_on_a_grid_keep_it(void **state) {
    (void)state;
    tare_tensor *x = bell_shaped();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const qparams *first = proposal(kinds[k].least_error, kinds[k].arguments, x);
        float values[COUNT];
        double power = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            values[i] = (float)dequantized(first, i, ((const float *)x->data)[i]);
            power += (double)values[i] * (double)values[i];
        }
        tare_tensor *rounded = floats(2, (int64_t[]){ROWS, COLUMNS}, values);
        const qparams *second = proposal(kinds[k].least_error, kinds[k].arguments, rounded);
        assert_true(error_of(second, rounded) <= 1e-12 * power);
        tare_tensor_release(rounded);
        tare__qparams_release(first);
        tare__qparams_release(second);
    }
    tare_tensor_release(x);
}

// Zeros, one value, what is not finite: a range comes out.
static void odd_weights_have_ranges(void **state) {
    (void)state;
    static const float values[][3] = {
        {0, 0, 0}, {3, 3, 3}, {-1e-42F, 0, 1e-42F}, {-3e38F, 3e38F, 1}, {INFINITY, 1, 2}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        tare_tensor *x = row(3, values[i]);
        const qparams *q = proposal("tare.MSEObserver", "\"dtype\": \"torch.quint8\"", x);
        assert_true(q->scale[0] > 0);
        tare__qparams_release(q);
        tare_tensor_release(x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_is_less_than_that_of_extremes),
        cmocka_unit_test(values_on_a_grid_keep_it),
        cmocka_unit_test(odd_weights_have_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
