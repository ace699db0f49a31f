// SPDX-License-Identifier: Apache-2.0
// Safetensors files: views of tensors, and every breach of the format refused by name.
#include "support/test.h"

#include "core/system/file.h"
#include "io/native/safetensors.h"
#include "support/temp.h"

// A file of this header and `data_size` bytes 0, 1, 2, ..; `claim` is the header length that it
// states.
static size_t make_file(unsigned char *out, const char *header, uint64_t claim, size_t data_size) {
    const size_t length = strlen(header);
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(claim >> 8 * i);
    memcpy(out + 8, header, length);
    for (size_t i = 0; i < data_size; i++) out[8 + length + i] = (unsigned char)i;
    return 8 + length + data_size;
}

static tare_status parse(unsigned char *bytes, size_t size, safetensors *out, tare_error *err) {
    storage *store = tare__storage_adopt(bytes, size, NULL, NULL);
    const tare_status status = tare__safetensors_parse(store, bytes, size, out, err);
    tare__storage_release(store);
    return status;
}

static void expect_refused(const char *header, size_t data_size, const char *words) {
    unsigned char bytes[1024];
    safetensors file = {0};
    tare_error *err = tare_error_create();
    const size_t size = make_file(bytes, header, strlen(header), data_size);
    assert_int_equal(parse(bytes, size, &file, err), TARE_MALFORMED_FILE);
    if (!strstr(tare_error_message(err), words))
        fail_msg("'%s' does not say '%s'", tare_error_message(err), words);
    assert_null(file.header);
    tare_error_destroy(err);
}

static void views_have_shape_dtype_and_data(void **state) {
    (void)state;
    const char *header = "{\"__metadata__\":{\"k\":\"v\"},"
                         "\"b\":{\"dtype\":\"I16\",\"shape\":[2,1],\"data_offsets\":[8,12]},"
                         "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"e\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[4,4]},"
                         "\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}";
    _Alignas(8) unsigned char bytes[1024];
    safetensors file = {0};
    CHECK_OK(parse(bytes, make_file(bytes, header, strlen(header), 12), &file, NULL));
    assert_int_equal(file.tensors.count, 4);
    const tare_tensor *b = tare__safetensors_get(&file, "b");
    assert_int_equal(b->dtype, TARE_INT16);
    assert_int_equal(b->ndim, 2);
    assert_int_equal(tare__tensor_get(b, 1), 11 << 8 | 10);
    assert_int_equal(tare__safetensors_get(&file, "e")->count, 0);
    assert_string_equal(tare__safetensors_metadata(&file, "k"), "v");
    assert_null(tare__safetensors_metadata(&file, "other"));
    assert_null(tare__safetensors_get(&file, "__metadata__"));
    tare__safetensors_release(&file);
}

static void data_off_its_alignment_is_copied(void **state) {
    (void)state;
    const char *header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                         "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]}}";
    _Alignas(8) unsigned char bytes[1024];
    safetensors file = {0};
    const size_t size = make_file(bytes, header, strlen(header), 9);
    CHECK_OK(parse(bytes, size, &file, NULL));
    const tare_tensor *b = tare__safetensors_get(&file, "b");
    assert_int_equal((uintptr_t)b->data % 8, 0);
    assert_memory_equal(b->data, bytes + size - 8, 8);
    tare__safetensors_release(&file);
}

static void what_breaks_the_format_is_refused(void **state) {
    (void)state;
    expect_refused("[]", 0, "expected an object");
    expect_refused("{\"a\":1}", 0, "expected an object");
    expect_refused("{\"a\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
                   "tensor 'a' has the unknown dtype 'F99'");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
                   "needs 8 bytes");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4,
                   "needs 4");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,5]}}", 4,
                   "outside");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-1,3]}}", 4,
                   "outside");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
                   "2 offsets");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
                   "expected a size from 0 up, found -1");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
                   "\"data_offsets\":[0,0]}}",
                   0, "overflows");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],"
                   "\"data_offsets\":[0,4]}}",
                   4, "9 dimensions");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4,
                   "unknown key 'x'");
    expect_refused("{\"__metadata__\":{\"k\":1}}", 0, "expected a string");
    expect_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                   "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                   2, "duplicate");
    expect_refused("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3,
                   "boolean value 2");
}

static void every_byte_belongs_to_one_tensor(void **state) {
    (void)state;
    const char *one = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    expect_refused(one, 3, "1 bytes of data belong to no tensor");
    expect_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3,
                   "begins at");
    expect_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                   3, "tensor 'b' begins at byte 1");
}

static void the_header_length_is_checked(void **state) {
    (void)state;
    unsigned char bytes[64];
    safetensors file = {0};
    tare_error *err = tare_error_create();
    assert_int_equal(parse(bytes, 7, &file, err), TARE_MALFORMED_FILE);
    assert_non_null(strstr(tare_error_message(err), "7 bytes"));
    assert_int_equal(parse(bytes, make_file(bytes, "{}", 3, 0), &file, err), TARE_MALFORMED_FILE);
    assert_non_null(strstr(tare_error_message(err), "past the file"));
    assert_int_equal(parse(bytes, make_file(bytes, "{}", UINT64_MAX, 0), &file, err),
                     TARE_MALFORMED_FILE);
    assert_non_null(strstr(tare_error_message(err), "over the limit"));
    tare_error_destroy(err);
}

static map some_tensors(void) {
    static const float floats[] = {1.5f, -2};
    static const int64_t integers[] = {-7};
    static const int8_t bytes[] = {1, 2, 3};
    map tensors = {0};
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_INT8, 1, (int64_t[]){3}, bytes, &t, NULL));
    assert_true(tare__map_set(&tensors, "q", t));
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 2, (int64_t[]){2, 1}, floats, &t, NULL));
    assert_true(tare__map_set(&tensors, "z", t));
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 2, (int64_t[]){0, 1}, floats, &t, NULL));
    assert_true(tare__map_set(&tensors, "a \"quoted\" name", t));
    CHECK_OK(tare_tensor_from_data(TARE_INT64, 0, NULL, integers, &t, NULL));
    assert_true(tare__map_set(&tensors, "n", t));
    return tensors;
}

static void release_tensors(map *tensors) {
    for (size_t i = 0; i < tensors->count; i++) tare_tensor_release(tensors->entries[i].value);
    tare__map_release(tensors);
}

static void what_was_written_is_read(void **state) {
    (void)state;
    map tensors = some_tensors();
    json_t *metadata = json_pack("{s:s}", "note", "line\nbreak");
    const char *path = temp_path("t.safetensors");
    safetensors file = {0};
    CHECK_OK(tare__safetensors_write(path, &tensors, metadata, NULL));
    CHECK_OK(tare__safetensors_read(path, &file, NULL));
    assert_int_equal(file.tensors.count, tensors.count);
    assert_string_equal(tare__safetensors_metadata(&file, "note"), "line\nbreak");
    for (size_t i = 0; i < tensors.count; i++) {
        const tare_tensor *was = tensors.entries[i].value;
        const tare_tensor *is = tare__safetensors_get(&file, tensors.entries[i].key);
        assert_non_null(is);
        assert_int_equal(is->dtype, was->dtype);
        assert_int_equal(is->ndim, was->ndim);
        assert_memory_equal(is->shape, was->shape, (size_t)was->ndim * sizeof *was->shape);
        assert_int_equal((uintptr_t)is->data % tare_dtype_size(is->dtype), 0);
        if (was->count) assert_memory_equal(is->data, was->data, tare__tensor_bytes(was));
    }
    // The widest come first; the header is padded to 8 bytes.
    assert_string_equal(file.tensors.entries[0].key, "n");
    assert_string_equal(file.tensors.entries[3].key, "q");
    tare__safetensors_release(&file);
    json_decref(metadata);
    release_tensors(&tensors);
}

static void equal_tensors_give_equal_bytes(void **state) {
    (void)state;
    map tensors = some_tensors(), reversed = {0};
    for (size_t i = tensors.count; i-- > 0;)
        assert_true(tare__map_set(&reversed, tensors.entries[i].key, tensors.entries[i].value));
    const char *first = temp_path("first.safetensors"), *second = temp_path("second.safetensors");
    CHECK_OK(tare__safetensors_write(first, &tensors, NULL, NULL));
    CHECK_OK(tare__safetensors_write(second, &reversed, NULL, NULL));
    size_t first_size = 0, second_size = 0;
    unsigned char *a = temp_read(first, &first_size), *b = temp_read(second, &second_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(a, b, first_size);
    free(a);
    free(b);
    tare__map_release(&reversed);
    release_tensors(&tensors);
}

static void what_has_no_form_is_not_written(void **state) {
    (void)state;
    qparams *q = tare__qparams_per_tensor(TARE_QUINT8, 0.5, 3);
    tare_tensor *t = NULL;
    map tensors = {0};
    CHECK_OK(tare__tensor_quantized(1, (int64_t[]){2}, q, &t, NULL));
    assert_true(tare__map_set(&tensors, "t", t));
    const char *path = temp_path("none.safetensors");
    assert_int_equal(tare__safetensors_write(path, &tensors, NULL, NULL), TARE_INVALID_ARGUMENT);
    tare_tensor_release(t);
    CHECK_OK(tare__tensor_meta(TARE_FLOAT32, 1, (int64_t[]){2}, NULL, &t, NULL));
    assert_true(tare__map_set(&tensors, "t", t));
    assert_int_equal(tare__safetensors_write(path, &tensors, NULL, NULL), TARE_INVALID_ARGUMENT);
    release_tensors(&tensors);
    tare__qparams_release(q);
}

// Cut anywhere or with any byte of the header replaced, a file is refused or read, and nothing else
// happens.
static void damaged_files_do_no_harm(void **state) {
    (void)state;
    map tensors = some_tensors();
    const char *path = temp_path("whole.safetensors");
    CHECK_OK(tare__safetensors_write(path, &tensors, NULL, NULL));
    release_tensors(&tensors);
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t cut = 0; cut < size; cut++) {
        safetensors file = {0};
        unsigned char *prefix = malloc(cut ? cut : 1);
        memcpy(prefix, bytes, cut);
        assert_int_equal(parse(prefix, cut, &file, NULL), TARE_MALFORMED_FILE);
        free(prefix);
    }
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            safetensors file = {0};
            bytes[i] ^= (unsigned char)(1u << bit);
            const tare_status status = parse(bytes, size, &file, NULL);
            assert_true(status == TARE_OK || status == TARE_MALFORMED_FILE);
            tare__safetensors_release(&file);
            bytes[i] ^= (unsigned char)(1u << bit);
        }
    }
    free(bytes);
}

static void errors_name_the_file(void **state) {
    (void)state;
    const char *path = temp_path("short.safetensors");
    safetensors file = {0};
    tare_error *err = tare_error_create();
    temp_write(path, "abc", 3);
    assert_int_equal(tare__safetensors_read(path, &file, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_where(err), path);
    tare_error_destroy(err);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    map tensors = some_tensors();
    const char *path = temp_path("memory.safetensors");
    safetensors file = {0};
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__safetensors_write(path, &tensors, NULL, NULL), )
    EVERY_ALLOCATION_FAILS(status, status = tare__safetensors_read(path, &file, NULL),
                           tare__safetensors_release(&file))
    release_tensors(&tensors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_have_shape_dtype_and_data),
        cmocka_unit_test(data_off_its_alignment_is_copied),
        cmocka_unit_test(what_breaks_the_format_is_refused),
        cmocka_unit_test(every_byte_belongs_to_one_tensor),
        cmocka_unit_test(the_header_length_is_checked),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(equal_tensors_give_equal_bytes),
        cmocka_unit_test(what_has_no_form_is_not_written),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
