// SPDX-License-Identifier: Apache-2.0
// Indexing, sorting, scanning, choosing and creating, against values that PyTorch 2.15 computed.
#include "support/run.h"
#include "support/test.h"

#include "ops/op.h"

#define COUNT_OF(...) (sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define INTS(...)     ints(TARE_INT64, COUNT_OF(__VA_ARGS__), (const int64_t[]){__VA_ARGS__})
#define BYTES(...)    ints(TARE_UINT8, COUNT_OF(__VA_ARGS__), (const int64_t[]){__VA_ARGS__})

static tare_tensor *ints(tare_dtype dtype, size_t count, const int64_t *data) {
    tare_tensor *t = NULL;
    const int64_t shape[] = {(int64_t)count};
    CHECK_OK(tare_tensor_create(dtype, 1, shape, &t, NULL));
    for (size_t i = 0; i < count; i++) tare__tensor_set_int(t, (int64_t)i, data[i]);
    return t;
}

// 0 .. 11 as [3][4]
static tare_tensor *table(void) {
    return COUNTING(0, 1, 3, 4);
}

static tare_tensor *of_table(const char *expression) {
    return run_expression("x", expression, INPUTS(table()));
}
static tare_tensor *indexed(const char *expression, tare_tensor *i) {
    return run_expression("x, i", expression, INPUTS(table(), i));
}

static void check_refused(const char *expression, tare_tensor *i, const char *words) {
    module *m = model_of("x, i", expression);
    tare_tensor *inputs[] = {table(), i}, *out = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(run_model(m, inputs, 2, NULL, &out, err), TARE_INVALID_ARGUMENT);
    if (strstr(tare_error_message(err), words) == NULL)
        fail_msg("'%s' does not hold '%s'", tare_error_message(err), words);
    tare_error_destroy(err);
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
    tare__module_release(m);
}

static void tensors_of_indices_select(void **state) {
    (void)state;
    CHECK(indexed("torch.index_select(x, 1, i)", INTS(3, 0)), 3, 0, 7, 4, 11, 8);
    CHECK(indexed("x[i]", INTS(2, 0)), 8, 9, 10, 11, 0, 1, 2, 3);
    CHECK(indexed("x[(slice(None, None, None), i)]", INTS(-1, 1)), 3, 1, 7, 5, 11, 9);
    CHECK(indexed("x[(i, i)]", INTS(0, 2)), 0, 10);
    CHECK(indexed("x[(slice(0, 2, None), None, i)]", INTS(1)), 1, 5);
    CHECK(indexed("x[(Ellipsis, i, 1)]", INTS(2, 1)), 9, 5);
    CHECK(indexed("x[(i, slice(1, 3, None))]", INTS(2, 0)), 9, 10, 1, 2);
    CHECK(indexed("x[(i, slice(0, 4, 2))]", INTS(2, 0)), 8, 10, 0, 2);
    CHECK(run_expression("x, i", "t1 = x.unsqueeze(0); t1[(i, slice(None, None, None), i)]",
                         INPUTS(table(), INTS(0, 0))),
          0, 4, 8, 0, 4, 8);
    CHECK(run_expression("x, i", "t1 = i.view(3, 1); torch.gather(x, 1, t1)",
                         INPUTS(table(), INTS(3, 0, 1))),
          3, 4, 9);
}

static void wrong_indices_are_refused(void **state) {
    (void)state;
    check_refused("torch.index_select(x, 1, i)", INTS(4), "index 4 is outside of a dimension of 4");
    check_refused("x[i]", INTS(-4), "index -4 is outside of a dimension of 3");
    check_refused("x[i]", COUNTING(0, 1, 1), "must be torch.int64");
    check_refused("x[i]", BYTES(1, 0, 1), "mask");
    check_refused("x[(i, i, i)]", INTS(0, 1), "too many indices");
    check_refused("torch.gather(x, 0, i)", INTS(0), "do not fit");
    check_refused("t1 = torch.topk(x, 5); t1[0]", INTS(0), "k=5");
    check_refused("t1 = x[slice(0, 0, None)]; torch.argmax(t1, 0)", INTS(0), "nothing to compare");
    check_refused("torch.arange(0, 10, 0)", INTS(0), "out of range");
    check_refused("torch.bitwise_and(x, 1)", INTS(0), "integer");
}

static void indices_say_where_to_put(void **state) {
    (void)state;
    CHECK(run_expression("x, i, y", "t1 = i.view(1, 2); torch.scatter(x, 1, t1, y)",
                         INPUTS(COUNTING(1, 1, 1, 4), INTS(3, 1), COUNTING(8, 1, 1, 2))),
          1, 9, 3, 8);
    CHECK(run_expression("x, i, y", "t1 = i.view(1, 2); torch.scatter_reduce(x, 1, t1, y, 'prod')",
                         INPUTS(COUNTING(1, 1, 1, 4), INTS(1, 1), COUNTING(8, 1, 1, 2))),
          1, 144, 3, 4);
    CHECK(run_expression("x, i, y", "t1 = i.view(1, 2); torch.scatter_add(x, 1, t1, y)",
                         INPUTS(COUNTING(1, 1, 1, 4), INTS(1, 1), COUNTING(8, 1, 1, 2))),
          1, 19, 3, 4);
    CHECK(run_expression("x, i, y", "torch.index_put(x, (i,), y)",
                         INPUTS(table(), INTS(1), COUNTING(20, 1, 4))),
          0, 1, 2, 3, 20, 21, 22, 23, 8, 9, 10, 11);
    CHECK(run_expression("x, i, y", "t1 = i.view(2, 1); torch.index_put(x, (t1, i), y)",
                         INPUTS(table(), INTS(2, 0), COUNTING(20, 1, 2, 2))),
          23, 1, 22, 3, 4, 5, 6, 7, 21, 9, 20, 11);
    CHECK(run_expression("x, i, y", "torch.ops.aten.index_put.default(x, [None, i], y)",
                         INPUTS(table(), INTS(3, 1), COUNTING(20, 1, 3, 2))),
          0, 21, 2, 20, 4, 23, 6, 22, 8, 25, 10, 24);
    CHECK(run_expression("x, i, y", "torch.ops.aten.index_put.default(x, [None, i], y)",
                         INPUTS(table(), INTS(3, -3), COUNTING(50, 1, 1))),
          0, 50, 2, 50, 4, 50, 6, 50, 8, 50, 10, 50);
    CHECK(run_expression("x, i, y", "torch.index_put(x, (i, i), y, True)",
                         INPUTS(table(), INTS(1, 1), COUNTING(20, 1, 2))),
          0, 1, 2, 3, 4, 46, 6, 7, 8, 9, 10, 11);
}

static void lines_are_compared_and_sorted(void **state) {
    (void)state;
    CHECK(of_table("torch.argmax(x)"), 11);
    CHECK(of_table("torch.argmax(x, 0, True)"), 2, 2, 2, 2);
    CHECK(of_table("torch.argmin(x, 1)"), 0, 0, 0);
    CHECK(of_table("t1 = torch.max(x, 1); t1[0]"), 3, 7, 11);
    CHECK(of_table("t1 = torch.min(x, 0); t1[1]"), 0, 0, 0, 0);
    CHECK(of_table("torch.max(x)"), 11);
    CHECK(of_table("t1 = 5 - x; torch.max(x, t1)"), 5, 4, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    CHECK(of_table("t1 = torch.topk(x, 2, 1); t1[1]"), 3, 2, 3, 2, 3, 2);
    CHECK(of_table("t1 = torch.topk(x, 1, 0, False); t1[0]"), 0, 1, 2, 3);
    CHECK(of_table("t1 = torch.sort(x, 1, True); t1[0]"), 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8);
    CHECK(of_table("t1 = x % 2; torch.argsort(t1, 1)"), 0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3);
}

static void lines_are_scanned(void **state) {
    (void)state;
    CHECK(of_table("torch.cumsum(x, 0)"), 0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 21);
    CHECK(of_table("t1 = x + 1; torch.cumprod(t1, 1)"), 1, 2, 6, 24, 5, 30, 210, 1680, 9, 90, 990,
          11880);
    CHECK(of_table("torch.tril(x)"), 0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10, 0);
    CHECK(of_table("torch.triu(x, 1)"), 0, 1, 2, 3, 0, 0, 6, 7, 0, 0, 0, 11);
}

static void elements_are_chosen(void **state) {
    (void)state;
    CHECK(of_table("t1 = x > 5; torch.where(t1, x, -1)"), -1, -1, -1, -1, -1, -1, 6, 7, 8, 9, 10,
          11);
    CHECK(indexed("t2 = x[0]; t1 = t2 > 1; torch.where(t1, i, 0.5)", INTS(7, 8, 9, 10)), 0.5, 0.5,
          9, 10);
    CHECK(indexed("torch.clamp(i, -1, 2)", INTS(-5, 0, 5)), -1, 0, 2);
    CHECK(indexed("torch.nn.functional.pad(i, (1, 2), 'constant', 7)", INTS(1, 2)), 7, 1, 2, 7, 7);
    CHECK(indexed("torch.nonzero(i)", INTS(0, 3, 0, 4)), 1, 3);
    CHECK(of_table("t1 = x[0]; torch.logical_not(t1)"), 1, 0, 0, 0);
    CHECK(of_table("t3 = x[0]; t2 = t3 * 0; t1 = t2 / 0; torch.isnan(t1)"), 1, 1, 1, 1);
    CHECK(of_table("t2 = x[0]; t1 = 1 / t2; torch.isinf(t1)"), 1, 0, 0, 0);
    CHECK(of_table("t2 = x[0]; t1 = t2 - 1; torch.sign(t1)"), -1, 0, 1, 1);
}

static void bits_follow_the_dtype(void **state) {
    (void)state;
    CHECK(indexed("i & 6", INTS(5, 7)), 4, 6);
    CHECK(indexed("i | 8", INTS(5, 7)), 13, 15);
    CHECK(indexed("i ^ 7", INTS(5, -1)), 2, -8);
    CHECK(indexed("~i", INTS(5, -1)), -6, 0);
    CHECK(indexed("torch.bitwise_not(i)", BYTES(5)), 250);
    CHECK(indexed("torch.bitwise_left_shift(i, 7)", BYTES(3)), 128);
    CHECK(indexed("i >> 1", INTS(-5, 5)), -3, 2);
    CHECK(indexed("torch.div(i, 2, rounding_mode = 'trunc')", INTS(-5, 5)), -2, 2);
    CHECK(indexed("torch.fmod(i, 3)", INTS(-5, 5)), -2, 2);
}

static void reductions_follow_torch(void **state) {
    (void)state;
    CHECK(of_table("t1 = x + 1; torch.prod(t1, 1)"), 24, 1680, 11880);
    CHECK(of_table("torch.any(x, 1)"), 1, 1, 1);
    CHECK(of_table("torch.all(x, 1)"), 0, 1, 1);
    CHECK(of_table("torch.logsumexp(x, 1)"), 3.44018969, 7.44018969, 11.44018969);
    CHECK(of_table("torch.var(x, 1)"), 1.66666667, 1.66666667, 1.66666667);
    CHECK(of_table("torch.std(x, 0, unbiased = False)"), 3.26598632, 3.26598632, 3.26598632,
          3.26598632);
    CHECK(of_table("torch.linalg.vector_norm(x, 2, 1)"), 3.74165739, 11.22497216, 19.13112647);
    CHECK(of_table("torch.linalg.vector_norm(x, 2, 1, dtype = None, out = None)"), 3.74165739,
          11.22497216, 19.13112647);
    CHECK(of_table("t1 = x - 5; torch.linalg.vector_norm(t1, 1)"), 36);
}

static void tensors_are_made(void **state) {
    (void)state;
    CHECK(of_table("torch.arange(5)"), 0, 1, 2, 3, 4);
    CHECK(of_table("torch.arange(1, 2, 0.25)"), 1, 1.25, 1.5, 1.75);
    CHECK(of_table("torch.arange(3, 0, -1)"), 3, 2, 1);
    CHECK(of_table("torch.full((2,), 1.5)"), 1.5, 1.5);
    CHECK(of_table("torch.zeros(1, 2)"), 0, 0);
    CHECK(of_table("t1 = x[0]; torch.ones_like(t1)"), 1, 1, 1, 1);
    CHECK(of_table("torch.eye(2, 3)"), 1, 0, 0, 0, 1, 0);
    CHECK(of_table("x.new_ones(2)"), 1, 1);
    CHECK(of_table("t1 = x.size(1); t2 = t1 & 6; torch.full((t2,), t2)"), 4, 4, 4, 4);
}

static void named_tuples_have_items(void **state) {
    (void)state;
    CHECK(run_expression("x", "t = torch.topk(x, 1); getattr(t, 'values')",
                         INPUTS(COUNTING(1, 1, 3))),
          3);
    CHECK(run_expression("x", "t = torch.topk(x, 1); getattr(t, 'indices')",
                         INPUTS(COUNTING(1, 1, 3))),
          2);
}

static void elementary_functions_follow_torch(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double at_half;
    } functions[] = {{"tan", 0.546302490},
                     {"asin", 0.523598776},
                     {"acos", 1.04719755},
                     {"atan", 0.463647609},
                     {"sinh", 0.521095305},
                     {"cosh", 1.12762597},
                     {"asinh", 0.481211825},
                     {"atanh", 0.549306144},
                     {"log1p", 0.405465108},
                     {"expm1", 0.648721271},
                     {"log2", -1},
                     {"exp2", 1.41421356},
                     {"trunc", 0}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char expression[64];
        snprintf(expression, sizeof expression, "torch.%s(x)", functions[i].name);
        check_floats(run_expression("x", expression, INPUTS(COUNTING(0.5, 0, 1))),
                     &functions[i].at_half, 1);
    }
    CHECK(run_expression("x", "torch.acosh(x)", INPUTS(COUNTING(2, 0, 1))), 1.31695790);
    CHECK(run_expression("x", "t1 = -x; torch.atan2(x, t1)", INPUTS(COUNTING(2, 0, 1))),
          2.35619449);
}

static void einsum_sums_products(void **state) {
    (void)state;
    CHECK(of_table("torch.functional.einsum('ij->j', x)"), 12, 15, 18, 21);
    CHECK(of_table("torch.functional.einsum('ij,kj->ik', x, x)"), 14, 38, 62, 38, 126, 214, 62, 214,
          366);
    CHECK(of_table("t = x.unsqueeze(0); torch.functional.einsum('...ij,...kj->...ik', t, x)"), 14,
          38, 62, 38, 126, 214, 62, 214, 366);
    CHECK(of_table("t = x[slice(0, 2, None)]; u = t[(slice(None, None, None), slice(0, 2, None))]; "
                   "torch.functional.einsum('ii', u)"),
          5);
    CHECK(of_table("torch.functional.einsum('ba', x)"), 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    // Products of matrices with batches on either side, in another order, and transposed.
    CHECK(
        of_table("t = x.unsqueeze(0); u = x.unsqueeze(1); torch.functional.einsum('bij,kbj->kib', "
                 "t, u)"),
        14, 38, 62, 38, 126, 214, 62, 214, 366);
    CHECK(of_table("torch.functional.einsum('ij,ik->jk', x, x)"), 80, 92, 104, 116, 92, 107, 122,
          137, 104, 122, 140, 158, 116, 137, 158, 179);
    CHECK(of_table("torch.functional.einsum('ij,ij->i', x, x)"), 14, 126, 366);
    CHECK(of_table("t = x[0]; torch.functional.einsum('i,j->ji', t, t)"), 0, 0, 0, 0, 0, 1, 2, 3, 0,
          2, 4, 6, 0, 3, 6, 9);
    // One that is broadcast drops out.
    CHECK(
        of_table("t = x.unsqueeze(0); u = torch.cat((t, t), 0); s = u.sum(2); v = s.unsqueeze(2); "
                 "w = x[0]; y = w.unsqueeze(0); z = y.unsqueeze(0); "
                 "torch.functional.einsum('bij,bkj->bik', v, z)"),
        36, 132, 228, 36, 132, 228);
    // One is summed alone: no product of matrices.
    CHECK(of_table("torch.functional.einsum('ij,kl->ik', x, x)"), 36, 132, 228, 132, 484, 836, 228,
          836, 1444);
    CHECK(of_table("t = x.unsqueeze(0); torch.functional.einsum('bij,bkj->bik', t, t)"), 14, 38, 62,
          38, 126, 214, 62, 214, 366);
    check_refused("torch.functional.einsum('ijk->i', x)", INTS(0), "dimensions are named");
    check_refused("torch.functional.einsum('ij->k', x)", INTS(0), "no operand has");
    check_refused("torch.functional.einsum('ij,jk->ik', x)", INTS(0), "other operands");
    check_refused("torch.functional.einsum('ij,ji->i', x, x)", INTS(0), "differ");
    check_refused("torch.functional.einsum('i!->i', x)", INTS(0), "does not fit");
}

// Masks and integers of one dtype run through whole rows, broadcast or not; others element by
// element.
static void bits_and_choices_broadcast(void **state) {
    (void)state;
    CHECK(of_table("a = x > 2; b = x < 7; c = a & b; c.to(torch.float32)"), 0, 0, 0, 1, 1, 1, 1, 0,
          0, 0, 0, 0);
    CHECK(of_table("a = x > 2; b = a[0]; c = a ^ b; c.to(torch.float32)"), 0, 0, 0, 0, 1, 1, 1, 0,
          1, 1, 1, 0);
    CHECK(of_table("a = x.to(torch.int64); t = x[0]; b = t.to(torch.int64); c = a | b; "
                   "c.to(torch.float32)"),
          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    CHECK(of_table("a = x.to(torch.int32); b = x > 5; c = a & b; c.to(torch.float32)"), 0, 0, 0, 0,
          0, 0, 0, 1, 0, 1, 0, 1);
    CHECK(of_table("a = x > 5; t = x[0]; torch.where(a, x, t)"), 0, 1, 2, 3, 0, 1, 6, 7, 8, 9, 10,
          11);
    CHECK(of_table("t = x[0]; a = t > 1; torch.where(a, x, -1)"), -1, -1, 2, 3, -1, -1, 6, 7, -1,
          -1, 10, 11);
    CHECK(of_table("t = x[0]; a = t > 1; b = x > 0; c = torch.where(a, b, False); "
                   "c.to(torch.float32)"),
          0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1);
    CHECK(of_table("a = x > 5; b = x.to(torch.int64); torch.where(a, b, x)"), 0, 1, 2, 3, 4, 5, 6,
          7, 8, 9, 10, 11);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    module *m = model_of(
        "x", "t1 = torch.topk(x, 2); t0 = t1[1]; s = t0 - 1; g = torch.gather(x, 1, s); t2 = "
             "s[(slice(None, None, None), 0)]; t3 = g[(slice(None, None, None), slice(0, "
             "1, None))]; p = torch.index_put(x, (t2,), t3); t5 = p > 3; t6 = "
             "torch.cumsum(p, 0); t4 = torch.where(t5, p, t6); torch.logsumexp(t4, 1)");
    tare_tensor *x = table(), *out = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = run_model(m, &x, 1, NULL, &out, NULL),
                           tare_tensor_release(out));
    tare_tensor_release(x);
    tare__module_release(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_indices_select),
        cmocka_unit_test(wrong_indices_are_refused),
        cmocka_unit_test(indices_say_where_to_put),
        cmocka_unit_test(lines_are_compared_and_sorted),
        cmocka_unit_test(lines_are_scanned),
        cmocka_unit_test(elements_are_chosen),
        cmocka_unit_test(bits_follow_the_dtype),
        cmocka_unit_test(reductions_follow_torch),
        cmocka_unit_test(tensors_are_made),
        cmocka_unit_test(elementary_functions_follow_torch),
        cmocka_unit_test(named_tuples_have_items),
        cmocka_unit_test(einsum_sums_products),
        cmocka_unit_test(bits_and_choices_broadcast),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
