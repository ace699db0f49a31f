// SPDX-License-Identifier: Apache-2.0
// Archives of arrays: what was written is read, and bombs and damage are refused.
#include "support/test.h"

#include <minizip/zip.h>
#include <zlib.h>

#include "io/data/npy.h"
#include "io/data/npz.h"
#include "replay/zip_memory.h"
#include "support/temp.h"

static tare_status parse(unsigned char *bytes, size_t size, map *out, tare_error *err) {
    storage *store = tare__storage_adopt(bytes, size, NULL, NULL);
    const tare_status status = tare__npz_parse(store, bytes, size, 0, out, err);
    tare__storage_release(store);
    return status;
}

// An archive of one member with any content, stored (level 0 and method 0) or deflated.
static zip_memory pack(const char *name, const void *bytes, size_t size, int method) {
    zip_memory memory = {0};
    zipFile zip = zip_open(&memory);
    const zip_fileinfo info = {0};
    assert_int_equal(zipOpenNewFileInZip(zip, name, &info, NULL, 0, NULL, 0, NULL, method, 6),
                     ZIP_OK);
    assert_int_equal(zipWriteInFileInZip(zip, bytes, (unsigned)size), ZIP_OK);
    zipCloseFileInZip(zip);
    zipClose(zip, NULL);
    return memory;
}

static text npy_bytes(const tare_tensor *t) {
    text bytes = {0};
    CHECK_OK(tare__npy_make_header(t, &bytes, NULL));
    tare__text_append_n(&bytes, t->data, tare__tensor_bytes(t));
    return bytes;
}

static tare_tensor *zeros(int64_t count) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, NULL));
    return t;
}

static map some_tensors(void) {
    static const float floats[] = {1, 2, 3, 4};
    static const int64_t integers[] = {5, 6};
    map tensors = {0};
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 2, (int64_t[]){2, 2}, floats, &t, NULL));
    assert_true(tare__map_set(&tensors, "x", t));
    CHECK_OK(tare_tensor_from_data(TARE_INT64, 1, (int64_t[]){2}, integers, &t, NULL));
    assert_true(tare__map_set(&tensors, "labels", t));
    return tensors;
}

static void what_was_written_is_read(void **state) {
    (void)state;
    map tensors = some_tensors(), back = {0};
    const char *path = temp_path("t.npz");
    CHECK_OK(tare__npz_write(path, &tensors, NULL));
    CHECK_OK(tare__npz_read(path, 0, &back, NULL));
    assert_int_equal(back.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const tare_tensor *was = tensors.entries[i].value, *is = back.entries[i].value;
        assert_string_equal(back.entries[i].key, tensors.entries[i].key);
        assert_int_equal(is->dtype, was->dtype);
        assert_int_equal(is->count, was->count);
        assert_memory_equal(is->data, was->data, tare__tensor_bytes(was));
    }
    tare__tensor_map_release(&tensors);
    tare__tensor_map_release(&back);
}

static void stored_members_are_views(void **state) {
    (void)state;
    tare_tensor *t = zeros(3);
    ((float *)t->data)[1] = 7;
    text bytes = npy_bytes(t);
    zip_memory archive = pack("a.npy", bytes.chars, bytes.length, 0);
    map back = {0};
    CHECK_OK(parse(archive.data, archive.size, &back, NULL));
    const tare_tensor *a = tare__map_get(&back, "a");
    assert_float_equal(tare__f32(a)[1], 7, 0);
    tare__tensor_map_release(&back);
    tare__text_release(&bytes);
    tare__free(archive.data);
    tare_tensor_release(t);
}

static void expect_refused(zip_memory archive, const char *words) {
    map back = {0};
    tare_error *err = tare_error_create();
    const tare_status status = parse(archive.data, archive.size, &back, err);
    assert_true(status == TARE_MALFORMED_FILE || status == TARE_UNSUPPORTED);
    if (!strstr(tare_error_message(err), words))
        fail_msg("'%s' does not say '%s'", tare_error_message(err), words);
    tare_error_destroy(err);
    tare__free(archive.data);
}

static void what_is_no_array_is_refused(void **state) {
    (void)state;
    expect_refused(pack("readme.txt", "hello", 5, 0), "'readme.txt' is not an array");
    expect_refused(pack("a.npy", "hello", 5, 0), "NUMPY");
    expect_refused(pack("a.npy", "hello", 5, 8), "too short");
    expect_refused((zip_memory){0}, "not a zip archive");
}

// The header of an array asks for a terabyte, the member holds nothing of it.
static void a_bomb_is_refused_before_memory_is_taken(void **state) {
    (void)state;
    const char *dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }";
    unsigned char bytes[256] = "\x93NUMPY\x01\x00";
    bytes[8] = (unsigned char)strlen(dict);
    memcpy(bytes + 10, dict, strlen(dict));
    expect_refused(pack("a.npy", bytes, 10 + strlen(dict), 8), "its elements take");
}

static void honest_zeros_are_read(void **state) {
    (void)state;
    tare_tensor *t = zeros(1 << 18);
    map tensors = {0}, back = {0};
    const char *path = temp_path("zeros.npz");
    assert_true(tare__map_set(&tensors, "x", t));
    CHECK_OK(tare__npz_write(path, &tensors, NULL));
    size_t size = 0;
    free(temp_read(path, &size));
    assert_true(size < 2048); // a ratio of more than 512 is possible
    CHECK_OK(tare__npz_read(path, 0, &back, NULL));
    tare__tensor_map_release(&tensors);
    tare__tensor_map_release(&back);
}

// Each array is within the limit, and the directory says that they are not together: of the first
// nothing is inflated, so that its damage stays unknown.
static void archives_are_held_to_the_limit_before_anything_is_inflated(void **state) {
    (void)state;
    map tensors = {0}, back = {0};
    tare_error *err = tare_error_create();
    const char *path = temp_path("large.npz");
    assert_true(tare__map_set(&tensors, "a", zeros(1 << 18)));
    assert_true(tare__map_set(&tensors, "b", zeros(1 << 18)));
    CHECK_OK(tare__npz_write(path, &tensors, NULL));
    CHECK_OK(tare__npz_read(path, (2 << 20) + 256, &back, err));
    tare__tensor_map_release(&back);
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    memset(bytes + 40, 0xff, 100);
    temp_write(path, bytes, size);
    free(bytes);
    assert_int_equal(tare__npz_read(path, (2 << 20) + 255, &back, err), TARE_LIMIT_EXCEEDED);
    assert_non_null(strstr(tare_error_message(err), "member 'b.npy' would take 1.0 MiB"));
    assert_non_null(strstr(tare_error_hint(err), "--max-memory"));
    tare_error_destroy(err);
    tare__tensor_map_release(&tensors);
}

static void damaged_files_do_no_harm(void **state) {
    (void)state;
    map tensors = some_tensors(), back = {0};
    const char *path = temp_path("whole.npz");
    CHECK_OK(tare__npz_write(path, &tensors, NULL));
    tare__tensor_map_release(&tensors);
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *prefix = malloc(cut ? cut : 1);
        memcpy(prefix, bytes, cut);
        if (parse(prefix, cut, &back, NULL) == TARE_OK)
            fail_msg("%zu of %zu bytes were read", cut, size);
        free(prefix);
    }
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1u << bit);
            if (parse(bytes, size, &back, NULL) == TARE_OK) tare__tensor_map_release(&back);
            bytes[i] ^= (unsigned char)(1u << bit);
        }
    }
    free(bytes);
}

static void a_changed_byte_of_data_is_noticed(void **state) {
    (void)state;
    tare_tensor *t = zeros(16);
    text bytes = npy_bytes(t);
    zip_memory archive = pack("a.npy", bytes.chars, bytes.length, 0);
    archive.data[30 + 5 + bytes.length - 1] ^= 1; // the last of the member's bytes
    expect_refused(archive, "checksum");
    tare__text_release(&bytes);
    tare_tensor_release(t);
}

// Both checksums are changed, the member's and the directory's.
static void inflated_data_is_held_against_its_checksum(void **state) {
    (void)state;
    enum { MEMBER_CHECKSUM = 14, ENTRY_CHECKSUM = 16 };
    tare_tensor *t = zeros(16);
    text bytes = npy_bytes(t);
    zip_memory archive = pack("a.npy", bytes.chars, bytes.length, 8);
    size_t entry = 0;
    while (memcmp(archive.data + entry, "PK\1\2", 4) != 0) entry++;
    archive.data[MEMBER_CHECKSUM] ^= 1;
    archive.data[entry + ENTRY_CHECKSUM] ^= 1;
    expect_refused(archive, "checksum");
    tare__text_release(&bytes);
    tare_tensor_release(t);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    map tensors = some_tensors(), back = {0};
    const char *path = temp_path("memory.npz");
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__npz_write(path, &tensors, NULL), )
    EVERY_ALLOCATION_FAILS(status, status = tare__npz_read(path, 0, &back, NULL),
                           tare__tensor_map_release(&back))
    tare__tensor_map_release(&tensors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(stored_members_are_views),
        cmocka_unit_test(what_is_no_array_is_refused),
        cmocka_unit_test(a_bomb_is_refused_before_memory_is_taken),
        cmocka_unit_test(honest_zeros_are_read),
        cmocka_unit_test(archives_are_held_to_the_limit_before_anything_is_inflated),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(a_changed_byte_of_data_is_noticed),
        cmocka_unit_test(inflated_data_is_held_against_its_checksum),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
