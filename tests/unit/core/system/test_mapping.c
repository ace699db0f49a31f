// SPDX-License-Identifier: Apache-2.0
// Files that change while they are mapped.
#define _XOPEN_SOURCE 700 // truncate, sigaction
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/system/file.h"
#include "core/system/mapping.h"
#include "support/temp.h"
#include "tare/file.h"

enum { SIZE = 64 << 10 };

static storage *map(const char *path, const unsigned char **data) {
    storage *store = NULL;
    size_t size = 0;
    CHECK_OK(tare__file_map(path, &store, data, &size, NULL));
    assert_int_equal(size, SIZE);
    return store;
}

static const char *new_file(const char *name) {
    static unsigned char bytes[SIZE];
    const char *path = temp_path(name);
    memset(bytes, 7, sizeof bytes);
    temp_write(path, bytes, sizeof bytes);
    return path;
}

static void what_is_cut_off_becomes_zeros_and_an_error(void **state) {
    (void)state;
    const unsigned char *data = NULL, *other = NULL;
    tare_error *err = tare_error_create();
    CHECK_OK(tare_file_guard(err));
    CHECK_OK(tare_file_guard(err));
    char path[256];
    snprintf(path, sizeof path, "%s", new_file("cut"));
    storage *store = map(path, &data), *whole = map(new_file("whole"), &other);
    assert_int_equal(truncate(path, SIZE / 2), 0);
    CHECK_OK(tare__mapping_check(err)); // nobody has read it yet
    assert_int_equal(data[100], 7);
    assert_int_equal(data[SIZE - 1], 0);
    assert_int_equal(data[SIZE / 2], 0);
    assert_int_equal(other[SIZE - 1], 7);
    assert_int_equal(tare__mapping_check(err), TARE_IO);
    assert_string_equal(tare_error_where(err), path);
    assert_non_null(strstr(tare_error_message(err), "truncated"));
    assert_int_equal(tare_file_write(temp_path("made"), data, SIZE, err), TARE_IO);
    assert_int_not_equal(access(temp_path("made"), F_OK), 0);
    tare__storage_release(store);
    CHECK_OK(tare__mapping_check(err));
    CHECK_OK(tare_file_write(temp_path("made"), other, SIZE, err));
    tare__storage_release(whole);
    tare_error_destroy(err);
}

static void a_copy_does_not_change(void **state) {
    (void)state;
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    const char *path = new_file("copied");
    CHECK_OK(tare__file_read(path, &store, &data, &size, NULL));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(size, SIZE);
    assert_int_equal(data[SIZE - 1], 7);
    tare__storage_release(store);
}

static void more_files_than_the_guard_knows_are_read(void **state) {
    (void)state;
    enum { MANY = 600 };
    static storage *stores[MANY];
    const unsigned char *data = NULL;
    const char *path = new_file("many");
    for (size_t i = 0; i < MANY; i++) {
        stores[i] = map(path, &data);
        assert_int_equal(data[SIZE - 1], 7);
    }
    for (size_t i = 0; i < MANY; i++) tare__storage_release(stores[i]);
}

static void end_with_42(int number) {
    (void)number;
    _exit(42);
}

static int status_of_child(void (*handler)(int number)) {
    const pid_t child = fork();
    if (child == 0) {
        const struct sigaction before = {.sa_handler = handler};
        if (sigaction(SIGBUS, &before, NULL) != 0 || tare_file_guard(NULL) != TARE_OK) _exit(1);
        raise(SIGBUS);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

// First of all: the guard is installed once in a process.
static void other_signals_go_to_the_handler_before(void **state) {
    (void)state;
    const int handled = status_of_child(end_with_42), usual = status_of_child(SIG_DFL);
    assert_true(WIFEXITED(handled) && WEXITSTATUS(handled) == 42);
    assert_true(WIFSIGNALED(usual) && WTERMSIG(usual) == SIGBUS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_signals_go_to_the_handler_before),
        cmocka_unit_test(what_is_cut_off_becomes_zeros_and_an_error),
        cmocka_unit_test(a_copy_does_not_change),
        cmocka_unit_test(more_files_than_the_guard_knows_are_read),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
