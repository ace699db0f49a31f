// SPDX-License-Identifier: Apache-2.0
// Arrays in NumPy's format: dtypes, order, both versions, and files damaged byte by byte.
#include "support/test.h"

#include "io/data/npy.h"
#include "support/temp.h"

// A version 1.0 file with this dict and the bytes 0, 1, 2, ...
static size_t make_file(unsigned char *out, const char *dict, size_t data_size) {
    const size_t length = strlen(dict);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)length;
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + 10, dict, length);
    for (size_t i = 0; i < data_size; i++) out[10 + length + i] = (unsigned char)i;
    return 10 + length + data_size;
}

static tare_status parse(unsigned char *bytes, size_t size, tare_tensor **out, tare_error *err) {
    storage *store = tare__storage_adopt(bytes, size, NULL, NULL);
    const tare_status status = tare__npy_parse(store, bytes, size, out, err);
    tare__storage_release(store);
    return status;
}

static void expect_refused(const char *dict, size_t data_size, tare_status expected,
                           const char *words) {
    unsigned char bytes[512];
    tare_tensor *t = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(parse(bytes, make_file(bytes, dict, data_size), &t, err), expected);
    if (!strstr(tare_error_message(err), words))
        fail_msg("'%s' does not say '%s'", tare_error_message(err), words);
    assert_null(t);
    tare_error_destroy(err);
}

static void dtypes_are_read(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        tare_dtype dtype;
    } rows[] = {{"<f4", TARE_FLOAT32}, {"<f8", TARE_FLOAT64}, {"<f2", TARE_FLOAT16},
                {"|i1", TARE_INT8},    {"|u1", TARE_UINT8},   {"<i2", TARE_INT16},
                {"<u2", TARE_UINT16},  {"<i4", TARE_INT32},   {"<i8", TARE_INT64},
                {"|b1", TARE_BOOL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _Alignas(16) unsigned char bytes[256];
        char dict[128];
        tare_tensor *t = NULL;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }",
                 rows[i].descr);
        const size_t data_size = 2 * tare_dtype_size(rows[i].dtype);
        CHECK_OK(parse(bytes, make_file(bytes, dict, data_size), &t, NULL));
        assert_int_equal(t->dtype, rows[i].dtype);
        assert_int_equal(t->ndim, 1);
        for (size_t b = 0; b < data_size; b++) assert_int_equal(((unsigned char *)t->data)[b], b);
        tare_tensor_release(t);
    }
}

static void fortran_order_is_transposed(void **state) {
    (void)state;
    const char *dict = "{\"shape\": (2, 3), \"fortran_order\": True, \"descr\": \"|u1\"}\n";
    unsigned char bytes[256];
    tare_tensor *t = NULL;
    CHECK_OK(parse(bytes, make_file(bytes, dict, 6), &t, NULL));
    assert_memory_equal(t->data, ((const unsigned char[]){0, 2, 4, 1, 3, 5}), 6);
    tare_tensor_release(t);
}

static void version_2_has_a_longer_length(void **state) {
    (void)state;
    const char *dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
    unsigned char bytes[256] = "\x93NUMPY\x02\x00";
    tare_tensor *t = NULL;
    bytes[8] = (unsigned char)strlen(dict);
    memcpy(bytes + 12, dict, strlen(dict));
    bytes[12 + strlen(dict)] = 9;
    CHECK_OK(parse(bytes, 13 + strlen(dict), &t, NULL));
    assert_int_equal(t->ndim, 0);
    assert_int_equal(tare__tensor_get(t, 0), 9);
    tare_tensor_release(t);
    bytes[6] = 4;
    assert_int_equal(parse(bytes, 13 + strlen(dict), &t, NULL), TARE_MALFORMED_FILE);
}

static void what_is_not_understood_is_refused(void **state) {
    (void)state;
#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"
    expect_refused(DICT("'>f4'", "False", "(1,)"), 4, TARE_UNSUPPORTED, "big-endian dtype '>f4'");
    expect_refused(DICT("'<c8'", "False", "(1,)"), 8, TARE_UNSUPPORTED, "dtype '<c8'");
    expect_refused(DICT("'|O'", "False", "(1,)"), 8, TARE_UNSUPPORTED, "dtype '|O'");
    expect_refused(DICT("''", "False", "(1,)"), 8, TARE_UNSUPPORTED, "dtype ''");
    expect_refused(DICT("[('a', '<f4')]", "False", "(1,)"), 4, TARE_UNSUPPORTED, "structures");
    expect_refused(DICT("'<f4'", "Maybe", "(1,)"), 4, TARE_MALFORMED_FILE, "True or False");
    expect_refused(DICT("'<f4'", "False", "(2,)"), 4, TARE_MALFORMED_FILE, "needs 8 bytes");
    expect_refused(DICT("'<f4'", "False", "(1,)"), 5, TARE_MALFORMED_FILE, "the file has 5");
    expect_refused(DICT("'<f4'", "False", "(-1,)"), 4, TARE_MALFORMED_FILE, "expected a size");
    expect_refused(DICT("'<f4'", "False", "(99999999999999999999,)"), 4, TARE_MALFORMED_FILE,
                   "64 bits");
    expect_refused(DICT("'<f4'", "False", "(4294967296, 4294967296)"), 4, TARE_MALFORMED_FILE,
                   "overflows");
    expect_refused(DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, TARE_UNSUPPORTED,
                   "8 dimensions");
    expect_refused(DICT("'<f4'", "False", "1"), 4, TARE_MALFORMED_FILE, "a tuple");
    expect_refused(DICT("'|b1'", "False", "(3,)"), 3, TARE_MALFORMED_FILE, "not a boolean");
    expect_refused(DICT("'<f4'", "False", "(1,)") " x", 4, TARE_MALFORMED_FILE, "nothing more");
    expect_refused("{'descr': '<f4', 'shape': (1,)}", 4, TARE_MALFORMED_FILE, "fortran_order");
    expect_refused("{'descr': '<f4', 'descr': '<f4'}", 4, TARE_MALFORMED_FILE, "once");
    expect_refused("{'descr' '<f4'}", 4, TARE_MALFORMED_FILE, "':'");
    expect_refused("{'descr': '<f4' 'shape': (1,)}", 4, TARE_MALFORMED_FILE, "'}'");
    expect_refused("{'descr", 4, TARE_MALFORMED_FILE, "string");
    expect_refused("[]", 4, TARE_MALFORMED_FILE, "a dict");
}

static tare_tensor *some_tensor(void) {
    static const int16_t numbers[] = {1, -2, 3, -4, 5, -6};
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_INT16, 2, (int64_t[]){2, 3}, numbers, &t, NULL));
    return t;
}

static void what_was_written_is_read(void **state) {
    (void)state;
    const char *path = temp_path("t.npy");
    tare_tensor *t = some_tensor(), *back = NULL;
    CHECK_OK(tare__npy_write(path, t, NULL));
    CHECK_OK(tare__npy_read(path, &back, NULL));
    assert_int_equal(back->dtype, TARE_INT16);
    assert_int_equal(back->shape[1], 3);
    assert_memory_equal(back->data, t->data, tare__tensor_bytes(t));
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    assert_int_equal((size - tare__tensor_bytes(t)) % 64, 0); // as NumPy aligns
    free(bytes);
    tare_tensor_release(t);
    tare_tensor_release(back);
}

static void quantized_tensors_are_not_written(void **state) {
    (void)state;
    qparams *q = tare__qparams_per_tensor(TARE_QINT8, 1, 0);
    tare_tensor *t = NULL;
    CHECK_OK(tare__tensor_quantized(1, (int64_t[]){2}, q, &t, NULL));
    assert_int_equal(tare__npy_write(temp_path("q.npy"), t, NULL), TARE_INVALID_ARGUMENT);
    tare_tensor_release(t);
    tare__qparams_release(q);
}

static void damaged_files_do_no_harm(void **state) {
    (void)state;
    const char *path = temp_path("whole.npy");
    tare_tensor *t = some_tensor();
    CHECK_OK(tare__npy_write(path, t, NULL));
    tare_tensor_release(t);
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *prefix = malloc(cut ? cut : 1);
        memcpy(prefix, bytes, cut);
        assert_int_equal(parse(prefix, cut, &t, NULL), TARE_MALFORMED_FILE);
        free(prefix);
    }
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1u << bit);
            if (parse(bytes, size, &t, NULL) == TARE_OK) tare_tensor_release(t);
            bytes[i] ^= (unsigned char)(1u << bit);
        }
    }
    free(bytes);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    const char *path = temp_path("memory.npy");
    tare_tensor *t = some_tensor(), *back = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__npy_write(path, t, NULL), )
    EVERY_ALLOCATION_FAILS(status, status = tare__npy_read(path, &back, NULL),
                           tare_tensor_release(back))
    tare_tensor_release(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_are_read),
        cmocka_unit_test(fortran_order_is_transposed),
        cmocka_unit_test(version_2_has_a_longer_length),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(quantized_tensors_are_not_written),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
