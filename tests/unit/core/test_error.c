// SPDX-License-Identifier: Apache-2.0
// What an error records: status, message, place, hint, cut texts, and the nearest known name.
#include "support/test.h"

static const char *const names[] = {"fbgemm", "qnnpack", "x86", "onednn", "native", NULL};

static const char *name_at(const void *user, size_t i) {
    return ((const char *const *)user)[i];
}

static void a_failure_is_recorded_with_places_and_hint(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    assert_int_equal(tare_error_status(err), TARE_OK);
    assert_int_equal(tare__fail(err, TARE_NOT_FOUND, "no backend '%s'", "x87"), TARE_NOT_FOUND);
    tare__at(err, TARE_NOT_FOUND, "node '%s'", "conv1");
    tare__at(err, TARE_NOT_FOUND, "model.safetensors");
    tare__suggest(err, TARE_NOT_FOUND, "x87", name_at, names);
    assert_int_equal(tare_error_status(err), TARE_NOT_FOUND);
    assert_string_equal(tare_error_message(err), "no backend 'x87'");
    assert_string_equal(tare_error_where(err), "model.safetensors: node 'conv1'");
    assert_string_equal(tare_error_hint(err), "did you mean 'x86'?");
    tare_error_destroy(err);
}

static void a_new_failure_forgets_the_old_one(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    tare__fail(err, TARE_IO, "first");
    tare__at(err, TARE_IO, "here");
    tare__hint(err, TARE_IO, "try again");
    tare__fail(err, TARE_INTERNAL, "after: %s", tare_error_message(err));
    assert_string_equal(tare_error_message(err), "after: first");
    assert_string_equal(tare_error_where(err), "");
    assert_string_equal(tare_error_hint(err), "");
    tare_error_clear(err);
    assert_int_equal(tare_error_status(err), TARE_OK);
    assert_string_equal(tare_error_message(err), "");
    tare_error_destroy(err);
}

static void every_call_accepts_no_error(void **state) {
    (void)state;
    assert_int_equal(tare__fail(NULL, TARE_IO, "x"), TARE_IO);
    assert_int_equal(tare__at(NULL, TARE_IO, "x"), TARE_IO);
    assert_int_equal(tare__hint(NULL, TARE_IO, "x"), TARE_IO);
    assert_int_equal(tare__suggest(NULL, TARE_IO, "x", name_at, names), TARE_IO);
    assert_string_equal(tare_error_message(NULL), "");
    tare_error_clear(NULL);
    tare_error_destroy(NULL);
    tare__error_copy(NULL, NULL);
}

static void long_texts_are_cut_between_characters(void **state) {
    (void)state;
    char umlauts[2401];
    for (size_t i = 0; i < 2400; i += 2) memcpy(umlauts + i, "\xC3\xA4", 3);
    tare_error *err = tare_error_create();
    tare__fail(err, TARE_IO, "x%s", umlauts);
    const char *message = tare_error_message(err);
    const size_t length = strlen(message);
    assert_true(length > 1000 && length < 1024);
    assert_string_equal(message + length - 3, "...");
    assert_int_equal((unsigned char)message[length - 4], 0xA4);
    for (int i = 0; i < 100; i++) tare__at(err, TARE_IO, "place %d", i);
    assert_ptr_equal(strstr(tare_error_where(err), "place 99: place 98"), tare_error_where(err));
    tare_error_destroy(err);
}

static void the_nearest_name_is_found_by_edits(void **state) {
    (void)state;
    assert_string_equal(tare_nearest_name("fbgem", name_at, names), "fbgemm");
    assert_string_equal(tare_nearest_name("oendnn", name_at, names), "onednn"); // one swap
    assert_string_equal(tare_nearest_name("qnpack", name_at, names), "qnnpack");
    assert_string_equal(tare_nearest_name("x86", name_at, names), "x86");
    assert_null(tare_nearest_name("tensorrt", name_at, names));
    assert_null(tare_nearest_name("y", name_at, names));
    assert_null(tare_nearest_name("", name_at, names));
    char longest[300];
    memset(longest, 'q', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(tare_nearest_name(longest, name_at, names));
}

static void statuses_have_names(void **state) {
    (void)state;
    assert_string_equal(tare_status_name(TARE_OK), "OK");
    assert_string_equal(tare_status_name(TARE_MALFORMED_FILE), "MALFORMED_FILE");
    assert_string_equal(tare_status_name((tare_status)99), "UNKNOWN");
}

static void errors_are_copied(void **state) {
    (void)state;
    tare_error *a = tare_error_create(), *b = tare_error_create();
    tare__fail(a, TARE_IO, "gone");
    tare__error_copy(b, a);
    assert_string_equal(tare_error_message(b), "gone");
    tare_error_destroy(a);
    tare_error_destroy(b);
    tare__alloc_fail_at(1);
    assert_null(tare_error_create());
    tare__alloc_fail_at(0);
}

static void callbacks_fill_errors(void **state) {
    (void)state;
    tare_error *e = tare_error_create();
    assert_int_equal(tare_error_set(e, TARE_UNSUPPORTED, "node 'a'", "no", NULL), TARE_UNSUPPORTED);
    assert_int_equal(tare_error_status(e), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_where(e), "node 'a'");
    assert_string_equal(tare_error_hint(e), "");
    // Texts of the error itself may be given again.
    tare_error_set(e, TARE_OK, NULL, tare_error_where(e), tare_error_message(e));
    assert_int_equal(tare_error_status(e), TARE_INTERNAL);
    assert_string_equal(tare_error_message(e), "node 'a'");
    assert_string_equal(tare_error_hint(e), "no");
    char longest[3000];
    memset(longest, 'q', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    tare_error_set(e, TARE_IO, longest, longest, longest);
    assert_int_equal(strlen(tare_error_message(e)), 1023);
    assert_string_equal(tare_error_message(e) + 1020, "...");
    assert_int_equal(tare_error_set(NULL, TARE_IO, NULL, NULL, NULL), TARE_IO);
    tare_error_destroy(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_recorded_with_places_and_hint),
        cmocka_unit_test(a_new_failure_forgets_the_old_one),
        cmocka_unit_test(every_call_accepts_no_error),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(the_nearest_name_is_found_by_edits),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(errors_are_copied),
        cmocka_unit_test(callbacks_fill_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
