// SPDX-License-Identifier: Apache-2.0
// Files are replaced atomically whichever call fails; links, modes, leftovers and full disks.
#define _XOPEN_SOURCE 700 // mkdtemp, symlink, lchown

#include "support/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/system/file.h"
#include "core/system/system.h"
#include "tare/file.h"

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

// --- leftovers ---

static void put_file(const char *name) {
    char whole[200];
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fclose(f);
}

static bool has_file(const char *name) {
    char whole[200];
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    return access(whole, F_OK) == 0;
}

static void what_killed_writers_left_is_removed(void **state) {
    (void)state;
    put_file("model.bin.tmp-0123456789abcdef");
    put_file("model.bin.tmp-0123456789abcde");   // too short: not ours
    put_file("model.bin.tmp-0123456789abcdef0"); // too long
    put_file("other.bin.tmp-0123456789abcdef");
    CHECK_OK(write_file(path, "x", NULL));
    assert_false(has_file("model.bin.tmp-0123456789abcdef"));
    assert_true(has_file("model.bin.tmp-0123456789abcde"));
    assert_true(has_file("model.bin.tmp-0123456789abcdef0"));
    assert_true(has_file("other.bin.tmp-0123456789abcdef"));
}

static void what_is_being_written_stays(void **state) {
    (void)state;
    file_writer first, second;
    CHECK_OK(tare__file_begin(&first, path, NULL));
    CHECK_OK(tare__file_begin(&second, path, NULL));
    assert_string_not_equal(first.temporary, second.temporary);
    assert_int_equal(access(first.temporary, F_OK), 0);
    CHECK_OK(tare__file_write(&first, "first", 5, NULL));
    CHECK_OK(tare__file_write(&second, "second", 6, NULL));
    CHECK_OK(tare__file_commit(&second, NULL));
    check_content(path, "second");
    CHECK_OK(tare__file_commit(&first, NULL));
    check_content(path, "first");
}

static void a_name_as_long_as_any_can_be_written(void **state) {
    (void)state;
    char name[512];
    const int length = snprintf(name, sizeof name, "%s/", folder);
    memset(name + length, 'n', 255);
    name[length + 255] = '\0';
    CHECK_OK(write_file(name, "x", NULL));
    check_content(name, "x");
    assert_int_equal(remove(name), 0);
}

// In a folder that everybody may write to, another user can plant a link before we come.
static void links_of_others_in_shared_folders_are_refused(void **state) {
    (void)state;
    char target[128], link[128];
    if (geteuid() != 0) skip(); // nobody else's link can be made
    snprintf(target, sizeof target, "%s/target", folder);
    snprintf(link, sizeof link, "%s/planted", folder);
    CHECK_OK(write_file(target, "precious", NULL));
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(lchown(link, 12345, 12345), 0);
    CHECK_OK(write_file(link, "precious", NULL)); // the folder is ours alone
    assert_int_equal(chmod(folder, 01777), 0);
    tare_error *err = tare_error_create();
    assert_int_equal(write_file(link, "overwritten", err), TARE_IO);
    assert_non_null(strstr(tare_error_message(err), "another user's symbolic link"));
    assert_non_null(strstr(tare_error_hint(err), "folder of your own"));
    tare_error_destroy(err);
    check_content(target, "precious");
    assert_int_equal(chmod(folder, 0700), 0);
    remove(link);
}

// --- what fails on the way ---

// Each call on a file in turn: old bytes or new ones, and nothing beside them.
static void every_failing_call_leaves_the_old_file_or_the_new_one(void **state) {
    (void)state;
    bool done = false;
    for (long at = 1; !done; at++) {
        CHECK_OK(write_file(path, "old", NULL));
        const size_t before = count_files();
        faults_order((fault_order){.kinds = FAULT_FILES, .at = at});
        const tare_status status = write_file(path, "new", NULL);
        done = !faults_happened();
        faults_end();
        if (done || status == TARE_OK) {
            CHECK_OK(status);
            check_content(path, "new");
        }
        assert_true(status == TARE_OK || status == TARE_IO);
        CHECK_OK(write_file(path, "old", NULL)); // removes what could not be removed
        assert_int_equal(count_files(), before);
    }
}

static size_t synced_files, synced_folders;

static int count_fsync(int file) {
    struct stat info;
    assert_int_equal(fstat(file, &info), 0);
    synced_files += S_ISREG(info.st_mode);
    synced_folders += S_ISDIR(info.st_mode);
    return 0;
}

static int rename_synced(const char *from, const char *to) {
    assert_int_equal(synced_files, 1); // before the name counts
    assert_int_equal(synced_folders, 0);
    return rename(from, to);
}

static void bytes_and_then_names_go_to_the_disk(void **state) {
    (void)state;
    system_calls calls = tare__system_own;
    calls.fsync = count_fsync;
    calls.rename = rename_synced;
    tare__system_replace(&calls);
    const tare_status status = tare_file_write(path, "x", 1, NULL);
    tare__system_replace(NULL);
    CHECK_OK(status);
    assert_int_equal(synced_files, 1);
    assert_int_equal(synced_folders, 1);
}

static bool say_remote(int file) {
    (void)file;
    return true;
}

static void *refuse_to_map(size_t size, int file) {
    (void)size;
    (void)file;
    fail_msg("a file of a network was mapped");
    return NULL;
}

static void files_of_a_network_are_read(void **state) {
    (void)state;
    system_calls calls = tare__system_own;
    CHECK_OK(write_file(path, "far away", NULL));
    calls.is_remote = say_remote;
    calls.mmap = refuse_to_map;
    tare__system_replace(&calls);
    check_content(path, "far away");
    tare__system_replace(NULL);
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

static void more_standard_input_than_the_limit_is_refused(void **state) {
    (void)state;
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    CHECK_OK(write_file(path, "twelve bytes", NULL));
    assert_non_null(freopen(path, "r", stdin));
    tare_error *err = tare_error_create();
    assert_int_equal(tare__standard_input_read(11, &store, &data, &size, err), TARE_LIMIT_EXCEEDED);
    assert_string_equal(tare_error_message(err), "expected at most 11 bytes, found more");
    tare_error_destroy(err);
    assert_non_null(freopen(path, "r", stdin));
    assert_int_equal(tare__standard_input_read(12, &store, &data, &size, NULL), TARE_OK);
    assert_int_equal(size, 12);
    tare__storage_release(store);
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
        cmocka_unit_test(what_killed_writers_left_is_removed),
        cmocka_unit_test(what_is_being_written_stays),
        cmocka_unit_test(a_name_as_long_as_any_can_be_written),
        cmocka_unit_test(links_of_others_in_shared_folders_are_refused),
        cmocka_unit_test(every_failing_call_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(bytes_and_then_names_go_to_the_disk),
        cmocka_unit_test(files_of_a_network_are_read),
        cmocka_unit_test(impossible_places_are_refused),
        cmocka_unit_test(lost_memory_leaves_no_file_behind),
        cmocka_unit_test(standard_input_is_read_whole),
        cmocka_unit_test(more_standard_input_than_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
