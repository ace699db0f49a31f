// SPDX-License-Identifier: Apache-2.0
// Shortcuts on quantized values give what computing every element gives: look-up tables, lines of
// broadcasts.
#include "support/run.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

#include "core/math/requant.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/quantize.h"

enum { MANY = 2000, FEW = 500 };

static tare_tensor *first(tare_tensor *t, int64_t count) {
    tare_tensor *part = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 1, &count, t->data, &part, NULL));
    return part;
}

// A large tensor is looked up, a small one computed.
static void check_table(const char *expression) {
    tare_tensor *x = COUNTING(-10, 0.01, MANY), *few = first(x, FEW);
    tare_tensor *table = run_expression("x", expression, &x, 1);
    tare_tensor *each = run_expression("x", expression, &few, 1);
    assert_int_equal(table->count, MANY);
    assert_memory_equal(table->data, each->data, tare__tensor_bytes(each));
    assert_float_not_equal(tare__f32(table)[MANY - 1], tare__f32(table)[MANY / 2], 0);
    tare_tensor_release(table);
    tare_tensor_release(each);
}

static void tables_hold_what_each_element_gives(void **state) {
    (void)state;
    static const char *const types[] = {"100, torch.quint8", "-20, torch.qint8"};
    static const char *const functions[] = {
        "torch.nn.functional.relu6(q)",
        "torch.clamp(q, -3.0, 4.5)",
        "torch.sigmoid(q)",
        "torch.tanh(q)",
        "torch.ops.quantized.hardswish(q, output_scale = 0.07, output_zero_point = 12)",
        "torch.ops.quantized.leaky_relu(q, 0.1, False, output_scale = 0.1, output_zero_point = 9)",
        "torch.ops.quantized.dropout(q, output_scale = 0.2, output_zero_point = 50)"};
    for (size_t t = 0; t < 2; t++)
        for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
            char expression[400];
            snprintf(expression, sizeof expression,
                     "q = torch.quantize_per_tensor(x, 0.08, %s); y = %s; y.dequantize()", types[t],
                     functions[f]);
            check_table(expression);
        }
}

static void check_average(const char *average, tare_tensor *x, double first, double second) {
    char expression[200];
    snprintf(expression, sizeof expression,
             "q = torch.quantize_per_tensor(x, 1.0, 77, torch.quint8); y = %s; y.dequantize()",
             average);
    tare_tensor *y = run_expression("x", expression, &x, 1);
    assert_int_equal(y->count, 2);
    assert_float_equal(tare__f32(y)[0], first, 0);
    assert_float_equal(tare__f32(y)[1], second, 0);
    tare_tensor_release(y);
}

// torch rounds the averages -0.5 and 1.5 to even quantized values where the zero point is in the
// sum, 76.5 and 78.5, and to even numbers where it is added afterwards: where channels lie
// innermost, which is so behind a convolution and whenever there is one channel.
static void ties_of_averages_fall_by_the_order_in_memory(void **state) {
    (void)state;
    check_average("q.mean(1)", COUNTING(-1, 1, 2, 2), -1, 1);
    check_average("q.mean([2, 3])", COUNTING(-1, 1, 1, 2, 1, 2), -1, 1);
    check_average("torch.nn.functional.adaptive_avg_pool2d(q, 1)", COUNTING(-1, 1, 1, 2, 1, 2), -1,
                  1);
    check_average("torch._C._nn.avg_pool2d(q, (1, 2))", COUNTING(-1, 1, 2, 1, 1, 2), 0, 2);
}

#define QUANTIZED                                                                                  \
    "p = torch.quantize_per_tensor(x, 0.1, 60, torch.quint8); "                                    \
    "q = torch.quantize_per_tensor(y, 0.05, 10, torch.quint8); "

// Where an operand is expanded first there is nothing to broadcast.
static void check_broadcast(const char *function, tare_tensor *x, tare_tensor *y) {
    char expanded[400], broadcast[400];
    snprintf(broadcast, sizeof broadcast, QUANTIZED "r = %s(p, q, 0.3, 70); r.dequantize()",
             function);
    snprintf(expanded, sizeof expanded,
             QUANTIZED "a = p.expand(2, 3, 4, 5); b = q.expand(2, 3, 4, 5); "
                       "r = %s(a, b, 0.3, 70); r.dequantize()",
             function);
    tare_tensor *const inputs[] = {tare_tensor_retain(x), tare_tensor_retain(y)};
    tare_tensor *const again[] = {x, y};
    tare_tensor *found = run_expression("x, y", broadcast, inputs, 2);
    tare_tensor *expected = run_expression("x, y", expanded, again, 2);
    assert_int_equal(found->count, 2 * 3 * 4 * 5);
    assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
    tare_tensor_release(found);
    tare_tensor_release(expected);
}

static void sums_and_products_broadcast_in_lines(void **state) {
    (void)state;
    static const char *const functions[] = {"torch.ops.quantized.add", "torch.ops.quantized.mul",
                                            "torch.ops.quantized.add_relu"};
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        check_broadcast(functions[f], COUNTING(-6, 0.1, 2, 3, 4, 5), COUNTING(0, 1, 1, 3, 1, 1));
        check_broadcast(functions[f], COUNTING(-6, 0.1, 2, 3, 4, 5), COUNTING(0, 1, 5));
        check_broadcast(functions[f], COUNTING(-6, 0.1, 2, 3, 4, 5), COUNTING(0, 0.1, 2, 1, 4, 1));
        check_broadcast(functions[f], COUNTING(0, 0.5, 3, 1, 5), COUNTING(-3, 0.1, 2, 3, 4, 5));
        check_broadcast(functions[f], COUNTING(0, 0.5, 2, 3, 1, 1), COUNTING(-3, 0.1, 4, 5));
        check_broadcast(functions[f], COUNTING(0, 0.5, 1), COUNTING(-3, 0.1, 2, 3, 4, 5));
        check_broadcast(functions[f], COUNTING(-6, 0.1, 2, 3, 4, 5), COUNTING(0, 0.1, 2, 3, 4, 5));
    }
}

// Every float of interest under a scale: ties, ends of the range, what is no number.
static void check_quantize(tare_dtype dtype, double scale, int64_t zero_point) {
    enum { COUNT = 4000 };
    static const float special[] = {NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 0.0F, -0.0F, 1e-45F};
    tare_tensor *x = COUNTING(0, 0, COUNT), *y = NULL, *back = NULL;
    for (int i = 0; i < COUNT; i++) tare__f32(x)[i] = (float)((i - COUNT / 2) * 0.25 * scale);
    memcpy(tare__f32(x), special, sizeof special);
    const qparams *q = tare__qparams_per_tensor(dtype, scale, zero_point);
    CHECK_OK(tare__quantize_tensor(x, q, &y, NULL));
    CHECK_OK(tare_tensor_to_float(y, &back, NULL));
    for (int i = 0; i < COUNT; i++) {
        const int64_t code = tare__quantize(tare__f32(x)[i], tare__inverse_scale(scale), zero_point,
                                            q->quant_min, q->quant_max);
        const float real = (float)(code - zero_point) * (float)scale;
        if (tare__load_quantized(y, i) != code)
            fail_msg("%g: expected %lld, found %d", (double)tare__f32(x)[i], (long long)code,
                     tare__load_quantized(y, i));
        assert_memory_equal(&tare__f32(back)[i], &real, sizeof real);
    }
    tare__qparams_release(q);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_tensor_release(back);
}

static void bytes_are_quantized_as_one_number_is(void **state) {
    (void)state;
    static const double scales[] = {1, 0.1, 0.0078125, 3e-6, 1e6};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        const int64_t zero_points[] = {0, 1, 100, 127, 128, 255};
        for (size_t z = 0; z < sizeof zero_points / sizeof *zero_points; z++) {
            check_quantize(TARE_QUINT8, scales[s], zero_points[z]);
            check_quantize(TARE_QINT8, scales[s], zero_points[z] - 128);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_hold_what_each_element_gives),
        cmocka_unit_test(ties_of_averages_fall_by_the_order_in_memory),
        cmocka_unit_test(sums_and_products_broadcast_in_lines),
        cmocka_unit_test(bytes_are_quantized_as_one_number_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
