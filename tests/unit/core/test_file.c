// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 // mkdtemp, symlink

#include "support/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

static char folder[64], path[128];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/tare-test-file-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/model.bin", folder);
    return 0;
}

static size_t count_files(void) {
    DIR *d = opendir(folder);
    size_t count = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') remove(name);
    }
    closedir(d);
    return rmdir(folder);
}

static tare_status write_file(const char *to, const char *bytes, tare_error *err) {
    file_writer w;
    TARE_TRY(tare__file_begin(&w, to, err));
    const tare_status status = tare__file_write(&w, bytes, strlen(bytes), err);
    if (status == TARE_OK) return tare__file_commit(&w, err);
    tare__file_abort(&w);
    return status;
}

static void check_content(const char *of, const char *expected) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    CHECK_OK(tare__file_map(of, &store, &data, &size, NULL));
    assert_int_equal(size, strlen(expected));
    if (size) assert_memory_equal(data, expected, size);
    tare__storage_release(store);
}

static void what_was_written_is_mapped(void **state) {
    (void)state;
    CHECK_OK(write_file(path, "hello", NULL));
    check_content(path, "hello");
    CHECK_OK(write_file(path, "", NULL));
    check_content(path, "");
    assert_int_equal(count_files(), 1);
}

static void nothing_appears_before_the_commit(void **state) {
    (void)state;
    CHECK_OK(write_file(path, "old", NULL));
    file_writer w;
    CHECK_OK(tare__file_begin(&w, path, NULL));
    CHECK_OK(tare__file_write(&w, "new", 3, NULL));
    fflush(w.stream);
    check_content(path, "old");
    assert_int_equal(count_files(), 2);
    tare__file_abort(&w);
    tare__file_abort(&w);
    check_content(path, "old");
    assert_int_equal(count_files(), 1);
}

static void the_umask_and_old_modes_are_kept(void **state) {
    (void)state;
    struct stat info;
    remove(path);
    const mode_t before = umask(027);
    CHECK_OK(write_file(path, "x", NULL));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    chmod(path, 0604);
    CHECK_OK(write_file(path, "y", NULL));
    stat(path, &info);
    assert_int_equal(info.st_mode & 0777, 0604);
    umask(before);
}

static void a_link_stays_a_link(void **state) {
    (void)state;
    char link[128];
    struct stat info;
    snprintf(link, sizeof link, "%s/link", folder);
    CHECK_OK(write_file(path, "x", NULL));
    assert_int_equal(symlink("model.bin", link), 0);
    CHECK_OK(write_file(link, "through", NULL));
    check_content(path, "through");
    lstat(link, &info);
    assert_true(S_ISLNK(info.st_mode));
}

static void devices_are_written_in_place(void **state) {
    (void)state;
    struct stat info;
    CHECK_OK(write_file("/dev/null", "x", NULL));
    stat("/dev/null", &info);
    assert_true(S_ISCHR(info.st_mode));
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    tare_error *err = tare_error_create();
    assert_int_equal(write_file("/dev/full", "x", err), TARE_IO);
    assert_non_null(strstr(tare_error_message(err), "No space left"));
    assert_string_equal(tare_error_where(err), "/dev/full");
    tare_error_destroy(err);
}

static void expect_refusal(const char *name, const char *message) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    tare_error *err = tare_error_create();
    assert_int_equal(tare__file_map(name, &store, &data, &size, err), TARE_IO);
    assert_null(store);
    if (!strstr(tare_error_message(err), message)) fail_msg("%s", tare_error_message(err));
    assert_string_equal(tare_error_where(err), name);
    tare_error_destroy(err);
}

static void what_is_no_file_is_not_read(void **state) {
    (void)state;
    char missing[128], fifo[128];
    snprintf(missing, sizeof missing, "%s/missing", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_refusal(missing, "No such file");
    expect_refusal(folder, "found a directory");
    expect_refusal(fifo, "found a device, pipe or socket");
    expect_refusal("/dev/zero", "found a device, pipe or socket");
}

static void impossible_places_are_refused(void **state) {
    (void)state;
    char nowhere[128];
    snprintf(nowhere, sizeof nowhere, "%s/none/x", folder);
    tare_error *err = tare_error_create();
    assert_int_equal(write_file(folder, "x", err), TARE_IO);
    assert_non_null(strstr(tare_error_message(err), "found a directory"));
    assert_int_equal(write_file(nowhere, "x", err), TARE_IO);
    assert_non_null(strstr(tare_error_message(err), "cannot create: No such file"));
    tare_error_destroy(err);
}

static void lost_memory_leaves_no_file_behind(void **state) {
    (void)state;
    CHECK_OK(write_file(path, "old", NULL));
    const size_t before = count_files();
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(
        status,
        {
            status = write_file(path, "new", NULL);
            assert_int_equal(count_files(), before);
        },
        (void)0)
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    EVERY_ALLOCATION_FAILS(status, status = tare__file_map(path, &store, &data, &size, NULL),
                           tare__storage_release(store))
    check_content(path, "new");
}

static void standard_input_is_read_whole(void **state) {
    (void)state;
    char *bytes = malloc(200001);
    memset(bytes, 'a', 200000);
    bytes[200000] = '\0';
    CHECK_OK(write_file(path, bytes, NULL));
    assert_non_null(freopen(path, "r", stdin));
    check_content("-", bytes);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_mapped),
        cmocka_unit_test(nothing_appears_before_the_commit),
        cmocka_unit_test(the_umask_and_old_modes_are_kept),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(devices_are_written_in_place),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(what_is_no_file_is_not_read),
        cmocka_unit_test(impossible_places_are_refused),
        cmocka_unit_test(lost_memory_leaves_no_file_behind),
        cmocka_unit_test(standard_input_is_read_whole),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
