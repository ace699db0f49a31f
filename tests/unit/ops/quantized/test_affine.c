// SPDX-License-Identifier: Apache-2.0
// torchao's affine primitives, and the observer of groups, to the last bit.
// Data: tests/data/affine.json, recorded by tests/data/record_affine.py with torchao 0.18.
#include "core/json/json.h"
#include "observe/observer.h"
#include "ops/quantized/quantize.h"
#include "support/models.h"
#include "support/run.h"
#include "support/test.h"

#define AO "torch.ops.torchao."

static tare_tensor *stored(const json_t *from) {
    int64_t shape[TARE_MAX_DIMS];
    tare_tensor *t = NULL;
    const json_t *sizes = json_object_get(from, "shape"), *values = json_object_get(from, "values");
    const size_t ndim = json_array_size(sizes);
    for (size_t d = 0; d < ndim; d++) shape[d] = json_integer_value(json_array_get(sizes, d));
    const tare_dtype dtype =
        tare_dtype_from_name(json_string_value(json_object_get(from, "dtype")));
    CHECK_DONE(tare_tensor_create(dtype, (int)ndim, shape, &t, job_error()));
    assert_int_equal(json_array_size(values), t->count);
    for (int64_t i = 0; i < t->count; i++)
        tare__tensor_set(t, i, (double)(float)json_number_value(json_array_get(values, (size_t)i)));
    return t;
}

static void check_stored(tare_tensor *t, const json_t *from, const char *what, size_t index) {
    tare_tensor *expected = stored(from);
    assert_int_equal(t->dtype, expected->dtype);
    assert_int_equal(t->ndim, expected->ndim);
    assert_true(tare__same_shape(t, expected));
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) != tare__tensor_get(expected, i))
            fail_msg("case %zu, %s, element %lld: expected %a, found %a", index, what, (long long)i,
                     tare__tensor_get(expected, i), tare__tensor_get(t, i));
    tare_tensor_release(expected);
    tare_tensor_release(t);
}

static const char *text_of(const json_t *one, const char *key) {
    return json_string_value(json_object_get(one, key));
}

static tare_tensor *chosen(const json_t *one, int item) {
    char code[256];
    (void)snprintf(code, sizeof code, "c = " AO "choose_qparams_affine.default(x, %s); c[%d]",
                   text_of(one, "choose"), item);
    return run_expression("x", code, INPUTS(stored(json_object_get(one, "x"))));
}

static tare_tensor *by_parameters(const json_t *one, const char *op, const char *x,
                                  const char *more) {
    char code[256];
    (void)snprintf(code, sizeof code, AO "%s.default(x, %s, s, z, %s%s)", op, text_of(one, "block"),
                   text_of(one, "range"), more);
    return run_expression("x, s, z", code,
                          INPUTS(stored(json_object_get(one, x)),
                                 stored(json_object_get(one, "scale")),
                                 stored(json_object_get(one, "zero"))));
}

static json_t *read_cases(json_t **file) {
    CHECK_DONE(tare__json_parse_file("tests/data/affine.json", file, job_error()));
    json_t *cases = json_object_get(*file, "cases");
    assert_true(json_array_size(cases) > 40);
    return cases;
}

static void primitives_equal_torchao(void **state) {
    (void)state;
    json_t *file = NULL, *cases = read_cases(&file);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        char output[64];
        (void)snprintf(output, sizeof output, ", %s", text_of(one, "output"));
        check_stored(chosen(one, 0), json_object_get(one, "scale"), "scale", i);
        check_stored(chosen(one, 1), json_object_get(one, "zero"), "zero point", i);
        check_stored(by_parameters(one, "quantize_affine", "x", ""), json_object_get(one, "codes"),
                     "codes", i);
        check_stored(by_parameters(one, "dequantize_affine", "codes", output),
                     json_object_get(one, "values"), "values", i);
    }
    json_decref(file);
}

static void check_observer(const json_t *observer, const json_t *x, size_t index) {
    tare_observer_spec *spec = NULL;
    module *m = NULL;
    const qparams *q = NULL;
    bool is_calibrated = false;
    const json_at at = tare__json_root(json_object_get(observer, "spec"));
    tare_tensor *seen = stored(x), *scale = stored(json_object_get(observer, "scale")),
                *zero = stored(json_object_get(observer, "zero"));
    CHECK_DONE(tare__observer_spec_from_json(&at, &spec, job_error()));
    CHECK_DONE(tare__observer_spec_instantiate(NULL, spec, &m, job_error()));
    CHECK_DONE(tare__observer_update(m, seen, job_error()));
    CHECK_DONE(tare__observer_qparams(m, &q, &is_calibrated, job_error()));
    assert_true(is_calibrated);
    assert_int_equal(q->count, scale->count);
    for (int64_t i = 0; i < q->count; i++)
        if (q->scale[i] != tare__tensor_get(scale, i) ||
            q->zero_point[i] != tare__tensor_get(zero, i))
            fail_msg("case %zu, group %lld: expected %a and %g, found %a and %g", index,
                     (long long)i, tare__tensor_get(scale, i), tare__tensor_get(zero, i),
                     q->scale[i], q->zero_point[i]);
    tare__qparams_release(q);
    tare__module_release(m);
    tare_observer_spec_release(spec);
    tare_tensor_release(seen);
    tare_tensor_release(scale);
    tare_tensor_release(zero);
}

static void the_observer_of_groups_equals_torchao(void **state) {
    (void)state;
    json_t *file = NULL, *cases = read_cases(&file);
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i), *observer = json_object_get(one, "observer");
        if (observer == NULL) continue;
        check_observer(observer, json_object_get(one, "x"), i);
        count++;
    }
    assert_true(count > 15);
    json_decref(file);
}

// What a quantized tensor per group says, it says as the primitives do.
static void tensors_of_groups_quantize_and_dequantize_alike(void **state) {
    (void)state;
    const double scale[] = {0.5, 0.25, 1, 2}, zero[] = {0, 1, -2, 0};
    const float values[] = {1, -1, 0.3F, 8, 0.5F, 0.1F, 100, -100, 2, 3.5F, 4.5F, -3, 1, 2, 3, 5};
    const int64_t shape[] = {2, 8};
    qparams *q = tare__qparams_create(TARE_PER_GROUP_AFFINE, TARE_QINT8, 0, 4, scale, zero);
    tare_tensor *x = NULL, *codes = NULL, *back = NULL;
    q->quant_min = -8;
    q->quant_max = 7;
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 2, shape, values, &x, job_error()));
    CHECK_DONE(tare__quantize_tensor(x, q, &codes, job_error()));
    static const int8_t expected[] = {2, -2, 1, 7, 3, 1, 7, -8, 0, 2, 2, -5, 0, 1, 2, 2};
    assert_memory_equal(codes->data, expected, sizeof expected);
    assert_int_equal(tare__group_size(codes), 4);
    CHECK_DONE(tare_tensor_to_float(codes, &back, job_error()));
    for (int64_t i = 0; i < 16; i++)
        assert_true(tare__f32(back)[i] ==
                    (float)(expected[i] - (int)zero[i / 4]) * (float)scale[i / 4]);
    tare_tensor_release(x);
    tare_tensor_release(codes);
    tare_tensor_release(back);
    tare__qparams_release(q);
}

static void groups_must_divide_rows(void **state) {
    (void)state;
    const double scale[] = {1, 1, 1}, zero[] = {0, 0, 0};
    const int64_t shape[] = {2, 8}, none[] = {0, 8};
    qparams *q = tare__qparams_create(TARE_PER_GROUP_AFFINE, TARE_QINT8, 0, 3, scale, zero);
    tare_tensor *t = NULL;
    CHECK_REFUSED(tare__tensor_quantized(2, shape, q, &t, job_error()), TARE_INVALID_ARGUMENT,
                  "3 scales do not divide rows of 8 elements");
    CHECK_REFUSED(tare__tensor_quantized(2, none, q, &t, job_error()), TARE_INVALID_ARGUMENT,
                  "needs at least one element");
    tare__qparams_release(q);
}

static void check_bad_call(const char *code, const char *words) {
    module *m = model_of("x, s, z", code);
    tare_tensor *const inputs[] = {COUNTING(0, 1, 2, 8), COUNTING(1, 1, 4), COUNTING(0, 0, 4)};
    tare_tensor *out = NULL;
    CHECK_REFUSED(run_model(m, inputs, 3, NULL, &out, job_error()), TARE_INVALID_ARGUMENT, words);
    for (size_t i = 0; i < 3; i++) tare_tensor_release(inputs[i]);
    tare__module_release(m);
}

static void what_cannot_be_meant_is_refused(void **state) {
    (void)state;
    check_bad_call(AO "quantize_affine.default(x, [1, 3], s, z, torch.int8)", "to be divisible by");
    check_bad_call(AO "quantize_affine.default(x, [4], s, z, torch.int8)", "Got input dim:2");
    check_bad_call(AO "quantize_affine.default(x, [1, 2], s, z, torch.int8)",
                   "4 scales and 4 zero points do not fit 8 blocks");
    check_bad_call(AO "quantize_affine.default(x, [1, 4], s, z, torch.int8, -200, 7)",
                   "no range of torch.int8");
    check_bad_call(AO "quantize_affine.default(x, [1, 4], s, z, torch.float32)",
                   "Unsupported dtype");
    check_bad_call(AO "dequantize_affine.default(x, [1, 4], s, z, torch.int8)",
                   "Expected: torch.int8, got: torch.float32");
    check_bad_call(AO "choose_qparams_affine.default(x, 'OTHER', [1, 4], torch.int8)",
                   "Unsupported mapping type: OTHER");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primitives_equal_torchao),
        cmocka_unit_test(the_observer_of_groups_equals_torchao),
        cmocka_unit_test(tensors_of_groups_quantize_and_dequantize_alike),
        cmocka_unit_test(groups_must_divide_rows),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
