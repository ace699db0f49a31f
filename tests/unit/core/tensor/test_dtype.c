// SPDX-License-Identifier: Apache-2.0
// Dtypes and quantization schemes are found by their names and torch's synonyms.
#include "support/test.h"

#include "core/tensor/tensor.h"

static void every_dtype_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 1; i < TARE_DTYPE_COUNT; i++) {
        const tare_dtype dtype = (tare_dtype)i;
        const dtype_info *info = tare__dtype(dtype);
        const char *name = tare_dtype_name(dtype);
        assert_true(strncmp(name, "torch.", 6) == 0);
        assert_int_equal(tare_dtype_from_name(name), dtype);
        assert_int_equal(tare_dtype_from_name(name + 6), dtype);
        assert_true(tare_dtype_size(dtype) == tare_dtype_size(info->storage) && info->size > 0);
        assert_string_equal(info->file_name, tare__dtype(info->storage)->file_name);
        assert_int_equal(tare__dtype_from_file_name(info->file_name), info->storage);
        assert_int_equal(info->is_quantized, info->storage != dtype);
        assert_int_equal(info->is_float, info->min == info->max);
    }
}

static void names_that_mean_nothing_are_unset(void **state) {
    (void)state;
    assert_int_equal(tare_dtype_from_name("torch.complex64"), TARE_DTYPE_UNSET);
    assert_int_equal(tare_dtype_from_name(""), TARE_DTYPE_UNSET);
    assert_int_equal(tare_dtype_from_name("torch."), TARE_DTYPE_UNSET);
    assert_int_equal(tare__dtype_from_file_name("C64"), TARE_DTYPE_UNSET);
    assert_string_equal(tare_dtype_name((tare_dtype)1000), "");
    assert_string_equal(tare_dtype_name((tare_dtype)-1), "");
    assert_int_equal(tare_dtype_size(TARE_DTYPE_UNSET), 0);
}

static void synonyms_of_torch_are_known(void **state) {
    (void)state;
    assert_int_equal(tare_dtype_from_name("torch.float"), TARE_FLOAT32);
    assert_int_equal(tare_dtype_from_name("torch.long"), TARE_INT64);
    assert_int_equal(tare_dtype_from_name("half"), TARE_FLOAT16);
}

static void every_qscheme_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 1; i < TARE_QSCHEME_COUNT; i++) {
        const char *name = tare_qscheme_name((tare_qscheme)i);
        assert_int_equal(tare_qscheme_from_name(name), i);
        // Ours keep their prefix, torch's may lose it.
        const bool is_ours = strncmp(name, "tare.", 5) == 0;
        assert_int_equal(tare_qscheme_from_name(is_ours ? name : name + strlen("torch.")), i);
    }
    assert_string_equal(tare_qscheme_name(TARE_PER_CHANNEL_SYMMETRIC),
                        "torch.per_channel_symmetric");
    assert_int_equal(tare_qscheme_from_name("torch.per_row"), TARE_QSCHEME_UNSET);
    assert_string_equal(tare_qscheme_name((tare_qscheme)77), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_found_by_its_name),
        cmocka_unit_test(names_that_mean_nothing_are_unset),
        cmocka_unit_test(synonyms_of_torch_are_known),
        cmocka_unit_test(every_qscheme_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
