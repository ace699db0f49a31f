// SPDX-License-Identifier: Apache-2.0
// Tensors: ownership, shapes, views, elements of every dtype, and quantization parameters.
#include "support/test.h"

#include <math.h>

#include "core/tensor/half.h"
#include "core/tensor/tensor.h"

static const int64_t shape_2x3[] = {2, 3};

static void a_tensor_holds_what_it_was_given(void **state) {
    (void)state;
    const float values[] = {1, 2, 3, 4, 5, 6};
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 2, shape_2x3, values, &t, NULL));
    assert_int_equal(tare_tensor_ndim(t), 2);
    assert_int_equal(tare_tensor_shape(t)[1], 3);
    assert_int_equal(tare_tensor_element_count(t), 6);
    assert_int_equal((uintptr_t)tare_tensor_data(t) % 64, 0);
    assert_memory_equal(tare_tensor_data(t), values, sizeof values);
    assert_int_equal(tare_tensor_qparam_count(t), 0);
    tare_tensor_release(tare_tensor_retain(t));
    tare_tensor_release(t);
    tare_tensor_release(NULL);
}

static void count_release(void *owner) {
    *(int *)owner += 1;
}

static void a_wrapped_tensor_uses_the_callers_memory(void **state) {
    (void)state;
    float values[6] = {1, 2, 3, 4, 5, 6};
    int releases = 0;
    tare_tensor *t = NULL, *rows = NULL;
    CHECK_OK(tare_tensor_wrap(TARE_FLOAT32, 2, shape_2x3, values, true, count_release, &releases,
                              &t, NULL));
    assert_ptr_equal(tare_tensor_data(t), values);
    assert_ptr_equal(tare_tensor_mutable_data(t), values);
    CHECK_OK(tare__tensor_rows(t, 1, 1, &rows, NULL));
    tare_tensor_release(t);
    assert_int_equal(releases, 0); // the rows still read it
    assert_true(tare__f32(rows)[0] == 4);
    tare_tensor_release(rows);
    assert_int_equal(releases, 1);
    CHECK_OK(tare_tensor_wrap(TARE_FLOAT32, 2, shape_2x3, values, false, NULL, NULL, &t, NULL));
    assert_null(tare_tensor_mutable_data(t));
    tare_tensor_release(t);
}

static void wrapping_copies_what_is_not_aligned_and_fails_without_a_release(void **state) {
    (void)state;
    _Alignas(8) char bytes[32] = {0};
    int releases = 0;
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_wrap(TARE_FLOAT32, 2, shape_2x3, bytes + 1, true, count_release, &releases,
                              &t, NULL));
    assert_int_equal(releases, 1); // copied: the bytes are the caller's again
    assert_int_equal((uintptr_t)tare_tensor_data(t) % 4, 0);
    tare_tensor_release(t);
    assert_int_equal(tare_tensor_wrap(TARE_QUINT8, 2, shape_2x3, bytes, true, count_release,
                                      &releases, &t, NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_tensor_wrap(TARE_FLOAT32, 1, (int64_t[]){-1}, bytes, true, count_release,
                                      &releases, &t, NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(releases, 1);
}

static void scalars_and_empty_tensors_exist(void **state) {
    (void)state;
    tare_tensor *scalar = NULL, *whole = NULL, *empty = NULL;
    CHECK_OK(tare__tensor_scalar_float(2.5F, &scalar, NULL));
    CHECK_OK(tare__tensor_scalar_int(-7, &whole, NULL));
    CHECK_OK(tare_tensor_create(TARE_INT8, 2, (int64_t[]){0, 5}, &empty, NULL));
    assert_int_equal(scalar->count, 1);
    assert_true(tare__tensor_get(scalar, 0) == 2.5 && tare__tensor_get(whole, 0) == -7);
    assert_int_equal(empty->count, 0);
    tare_tensor_release(scalar);
    tare_tensor_release(whole);
    tare_tensor_release(empty);
}

static void impossible_shapes_are_refused(void **state) {
    (void)state;
    tare_tensor *t = NULL;
    tare_error *err = tare_error_create();
    const int64_t negative[] = {2, -1}, huge[] = {INT64_MAX / 2, 3}, wide[] = {INT64_MAX / 4, 3};
    const int64_t hidden[] = {0, INT64_MAX, INT64_MAX};
    assert_int_equal(tare_tensor_create(TARE_INT8, 2, negative, &t, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "[2, -1]"));
    assert_int_equal(tare_tensor_create(TARE_INT8, 2, huge, &t, err), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_tensor_create(TARE_INT64, 2, wide, &t, err), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_tensor_create(TARE_INT8, 3, hidden, &t, err), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_tensor_create(TARE_INT8, 9, hidden, &t, err), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_tensor_create(TARE_DTYPE_UNSET, 0, NULL, &t, err), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_tensor_create(TARE_QINT8, 0, NULL, &t, err), TARE_INVALID_ARGUMENT);
    assert_null(t);
    tare_error_destroy(err);
}

static void every_dtype_reads_what_was_written(void **state) {
    (void)state;
    for (int i = 1; i < TARE_DTYPE_COUNT; i++) {
        const dtype_info *info = tare__dtype((tare_dtype)i);
        tare_tensor *t = NULL;
        CHECK_OK(tare_tensor_create(info->storage, 1, (int64_t[]){3}, &t, NULL));
        tare__tensor_set(t, 1, 1.0);
        assert_true(tare__tensor_get(t, 0) == 0 && tare__tensor_get(t, 1) == 1);
        tare__tensor_set(t, 2, -1e300);
        if (!info->is_float && info->storage != TARE_BOOL)
            assert_true(tare__tensor_get(t, 2) == (double)tare__dtype(info->storage)->min);
        tare__tensor_set(t, 2, NAN);
        if (info->is_float) assert_true(isnan(tare__tensor_get(t, 2)));
        tare_tensor_release(t);
    }
}

static void dequantizing_subtracts_then_scales(void **state) {
    (void)state;
    qparams *q = tare__qparams_per_tensor(TARE_QUINT8, 0.1, 77);
    tare_tensor *t = NULL, *values = NULL;
    CHECK_OK(tare__tensor_quantized(2, shape_2x3, q, &t, NULL));
    for (int i = 0; i < 6; i++) tare__tensor_set(t, i, 51 * i);
    CHECK_OK(tare_tensor_to_float(t, &values, NULL));
    for (int i = 0; i < 6; i++) assert_true(tare__f32(values)[i] == (float)(51 * i - 77) * 0.1F);
    assert_true(tare_tensor_scale(t, 0) == 0.1 && tare_tensor_zero_point(t, 0) == 77);
    assert_true(tare_tensor_scale(t, 1) == 0);
    assert_int_equal(tare_tensor_qscheme(t), TARE_PER_TENSOR_AFFINE);
    tare_tensor_release(values);
    tare_tensor_release(t);
    tare__qparams_release(q);
}

static void channels_follow_their_axis(void **state) {
    (void)state;
    const double scale[] = {1, 2, 4}, zero_point[] = {0, 1, 0.5};
    for (int axis = 0; axis < 3; axis++) {
        int64_t shape[] = {2, 2, 2};
        shape[axis] = 3;
        qparams *q = tare__qparams_create(TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS, TARE_QUINT8, axis,
                                          3, scale, zero_point);
        tare_tensor *t = NULL, *values = NULL;
        CHECK_OK(tare__tensor_quantized(3, shape, q, &t, NULL));
        CHECK_OK(tare_tensor_to_float(t, &values, NULL));
        for (int64_t i = 0; i < 12; i++) {
            const int64_t at[] = {i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
            const int64_t c = at[axis];
            assert_true(tare__f32(values)[i] == (float)((0 - zero_point[c]) * scale[c]));
        }
        tare_tensor_release(values);
        tare_tensor_release(t);
        tare__qparams_release(q);
    }
}

static void parameters_must_fit_the_shape(void **state) {
    (void)state;
    const double scale[] = {1, 2, 4}, zero_point[] = {0, 0, 0};
    qparams *q = tare__qparams_create(TARE_PER_CHANNEL_AFFINE, TARE_QINT8, 1, 3, scale, zero_point);
    qparams *beyond =
        tare__qparams_create(TARE_PER_CHANNEL_AFFINE, TARE_QINT8, 2, 3, scale, zero_point);
    tare_tensor *t = NULL, *other = NULL;
    CHECK_OK(tare__tensor_quantized(2, shape_2x3, q, &t, NULL));
    assert_int_equal(tare__tensor_quantized(2, shape_2x3, beyond, &other, NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare__tensor_meta(TARE_QUINT8, 2, shape_2x3, q, &other, NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare__tensor_reshape(t, 1, (int64_t[]){6}, &other, NULL),
                     TARE_INVALID_ARGUMENT);
    CHECK_OK(tare__tensor_reshape(t, 3, (int64_t[]){1, 3, 2}, &other, NULL));
    tare_tensor_release(other);
    tare_tensor_release(t);
    assert_false(tare__qparams_equal(q, beyond));
    tare__qparams_release(q);
    tare__qparams_release(beyond);
}

static void shared_bytes_are_not_writable(void **state) {
    (void)state;
    tare_tensor *t = NULL, *shaped = NULL, *integers = NULL, *copy = NULL;
    qparams *q = tare__qparams_per_tensor(TARE_QINT8, 0.5, 0);
    CHECK_OK(tare__tensor_quantized(2, shape_2x3, q, &t, NULL));
    assert_ptr_equal(tare_tensor_mutable_data(t), t->data);
    CHECK_OK(tare__tensor_reshape(t, 1, (int64_t[]){6}, &shaped, NULL));
    CHECK_OK(tare__tensor_requalify(t, NULL, &integers, NULL));
    CHECK_OK(tare__tensor_copy(t, &copy, NULL));
    assert_int_equal(integers->dtype, TARE_INT8);
    assert_ptr_equal(shaped->data, t->data);
    assert_null(tare_tensor_mutable_data(t));
    assert_null(tare_tensor_mutable_data(shaped));
    assert_non_null(tare_tensor_mutable_data(copy));
    assert_true(tare__qparams_equal(copy->q, q));
    tare_tensor_release(t);
    tare_tensor_release(shaped);
    assert_non_null(tare_tensor_mutable_data(integers)); // the last owner
    tare_tensor_release(integers);
    tare_tensor_release(copy);
    qparams *wrong = tare__qparams_per_tensor(TARE_QUINT8, 0.5, 0);
    CHECK_OK(tare_tensor_create(TARE_INT8, 0, NULL, &t, NULL));
    assert_int_equal(tare__tensor_requalify(t, wrong, &copy, NULL), TARE_INVALID_ARGUMENT);
    tare_tensor_release(t);
    tare__qparams_release(wrong);
    tare__qparams_release(q);
}

static int releases;
static void views_stay_within_their_storage(void **state) {
    (void)state;
    _Alignas(8) static unsigned char bytes[32];
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    releases = 0;
    storage *store = tare__storage_adopt(bytes, sizeof bytes, &releases, count_release);
    tare_tensor *t = NULL, *unaligned = NULL;
    CHECK_OK(tare__tensor_view(store, 8, TARE_INT32, 2, shape_2x3, NULL, &t, NULL));
    assert_ptr_equal(t->data, bytes + 8);
    assert_null(tare_tensor_mutable_data(t));
    CHECK_OK(tare__tensor_view(store, 7, TARE_INT32, 2, shape_2x3, NULL, &unaligned, NULL));
    assert_memory_equal(unaligned->data, bytes + 7, 24);
    tare_tensor *none = NULL;
    assert_int_equal(tare__tensor_view(store, 9, TARE_INT32, 2, shape_2x3, NULL, &none, NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare__tensor_view(store, SIZE_MAX, TARE_INT8, 0, NULL, NULL, &none, NULL),
                     TARE_INVALID_ARGUMENT);
    tare__storage_release(store);
    assert_int_equal(releases, 0);
    tare_tensor_release(t);
    assert_int_equal(releases, 1);
    tare_tensor_release(unaligned);
}

static void a_meta_tensor_gets_its_data_later(void **state) {
    (void)state;
    tare_tensor *t = NULL, *values = NULL;
    CHECK_OK(tare__tensor_meta(TARE_FLOAT32, 2, shape_2x3, NULL, &t, NULL));
    assert_null(tare_tensor_data(t));
    assert_null(tare_tensor_mutable_data(t));
    assert_int_equal(tare_tensor_to_float(t, &values, NULL), TARE_INVALID_ARGUMENT);
    CHECK_OK(tare__tensor_allocate(t, NULL));
    const void *data = tare_tensor_data(t);
    CHECK_OK(tare__tensor_allocate(t, NULL));
    assert_ptr_equal(tare_tensor_data(t), data);
    tare_tensor_release(t);
}

static void shapes_are_written(void **state) {
    (void)state;
    char out[32];
    tare__shape_text(4, (int64_t[]){1, 3, 8, 8}, out, sizeof out);
    assert_string_equal(out, "[1, 3, 8, 8]");
    tare__shape_text(0, NULL, out, sizeof out);
    assert_string_equal(out, "[]");
    tare__shape_text(2, (int64_t[]){123456, 3}, out, 6);
    assert_string_equal(out, "[1234");
}

static void int64_becomes_float_in_one_rounding(void **state) {
    (void)state;
    const int64_t value = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1; // by way of double: a tie
    tare_tensor *t = NULL, *values = NULL;
    CHECK_OK(tare__tensor_scalar_int(value, &t, NULL));
    CHECK_OK(tare_tensor_to_float(t, &values, NULL));
    assert_true(tare__f32(values)[0] == 0x1.000002p60F);
    tare_tensor_release(values);
    tare_tensor_release(t);
}

static void half_floats_round_to_even(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x10000; code++) {
        const float value = tare__float16_to_float((uint16_t)code);
        if (isnan(value))
            assert_true((code & 0x7FFF) > 0x7C00);
        else
            assert_int_equal(tare__float_to_float16(value), code);
        const float brain = tare__bfloat16_to_float((uint16_t)code);
        if (!isnan(brain)) assert_int_equal(tare__float_to_bfloat16(brain), code);
    }
    // Between neighbours: ties to the even code, all else to the nearer one.
    for (uint16_t code = 0; code < 0x7BFF; code++) {
        const float low = tare__float16_to_float(code);
        const float high = tare__float16_to_float((uint16_t)(code + 1));
        const float middle = (low + high) / 2;
        assert_int_equal(tare__float_to_float16(middle), code + (code & 1));
        assert_int_equal(tare__float_to_float16(nextafterf(middle, low)), code);
        assert_int_equal(tare__float_to_float16(-nextafterf(middle, high)), (code + 1) | 0x8000);
    }
    assert_int_equal(tare__float_to_float16(65519.996F), 0x7BFF);
    assert_int_equal(tare__float_to_float16(65520.0F), 0x7C00);
    assert_int_equal(tare__float_to_float16(-INFINITY), 0xFC00);
    assert_int_equal(tare__float_to_bfloat16(1.00390625F), 0x3F80); // a tie
    assert_int_equal(tare__float_to_bfloat16(1.01171875F), 0x3F82);
    assert_true(isnan(tare__bfloat16_to_float(tare__float_to_bfloat16(NAN))));
}

static void small_floats_read_and_write(void **state) {
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        const float a = tare__float8_e5m2_to_float((uint8_t)code);
        const float b = tare__float8_e4m3fn_to_float((uint8_t)code);
        if (!isnan(a)) assert_int_equal(tare__float_to_float8_e5m2(a), code);
        if (!isnan(b)) assert_int_equal(tare__float_to_float8_e4m3fn(b), code);
    }
    assert_true(tare__float8_e4m3fn_to_float(0x7E) == 448.0F);
    assert_true(tare__float8_e4m3fn_to_float(0x01) == 0x1p-9F);
    assert_true(isnan(tare__float8_e4m3fn_to_float(0xFF)));
    assert_true(tare__float8_e5m2_to_float(0x7B) == 57344.0F);
    assert_true(isinf(tare__float8_e5m2_to_float(0x7C)));
    assert_int_equal(tare__float_to_float8_e4m3fn(464.0F), 0x7E);
    assert_int_equal(tare__float_to_float8_e4m3fn(465.0F), 0x7F);
    assert_int_equal(tare__float_to_float8_e5m2(61439.0F), 0x7B);
    assert_int_equal(tare__float_to_float8_e5m2(61440.0F), 0x7C);
}

static tare_status make_and_convert(void) {
    qparams *q = tare__qparams_per_tensor(TARE_QINT8, 0.5, 1);
    if (!q) return TARE_OUT_OF_MEMORY;
    tare_tensor *t = NULL, *copy = NULL, *values = NULL, *view = NULL;
    tare_status status = tare__tensor_quantized(2, shape_2x3, q, &t, NULL);
    if (status == TARE_OK) status = tare__tensor_copy(t, &copy, NULL);
    if (status == TARE_OK) status = tare_tensor_to_float(copy, &values, NULL);
    if (status == TARE_OK) status = tare__tensor_reshape(values, 1, (int64_t[]){6}, &view, NULL);
    tare_tensor_release(t);
    tare_tensor_release(copy);
    tare_tensor_release(values);
    tare_tensor_release(view);
    tare__qparams_release(q);
    return status;
}

static void lost_memory_is_an_error_without_leaks(void **state) {
    (void)state;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = make_and_convert(), (void)0)
}

static void views_of_nothing_have_data(void **state) {
    (void)state;
    const int64_t shape[] = {0, 3};
    tare_tensor *t = NULL;
    storage *store = tare__storage_adopt(NULL, 0, NULL, NULL);
    CHECK_OK(tare__tensor_view(store, 0, TARE_FLOAT32, 2, shape, NULL, &t, NULL));
    assert_int_equal(t->count, 0);
    assert_non_null(t->data); // else it would be one of a shape alone
    tare_tensor_release(t);
    tare__storage_release(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_nothing_have_data),
        cmocka_unit_test(a_tensor_holds_what_it_was_given),
        cmocka_unit_test(scalars_and_empty_tensors_exist),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(every_dtype_reads_what_was_written),
        cmocka_unit_test(dequantizing_subtracts_then_scales),
        cmocka_unit_test(channels_follow_their_axis),
        cmocka_unit_test(parameters_must_fit_the_shape),
        cmocka_unit_test(shared_bytes_are_not_writable),
        cmocka_unit_test(views_stay_within_their_storage),
        cmocka_unit_test(a_meta_tensor_gets_its_data_later),
        cmocka_unit_test(shapes_are_written),
        cmocka_unit_test(int64_becomes_float_in_one_rounding),
        cmocka_unit_test(a_wrapped_tensor_uses_the_callers_memory),
        cmocka_unit_test(wrapping_copies_what_is_not_aligned_and_fails_without_a_release),
        cmocka_unit_test(half_floats_round_to_even),
        cmocka_unit_test(small_floats_read_and_write),
        cmocka_unit_test(lost_memory_is_an_error_without_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
