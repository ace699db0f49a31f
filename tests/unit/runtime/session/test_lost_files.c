// SPDX-License-Identifier: Apache-2.0
// Model files that are cut off while sessions run them.
#define _XOPEN_SOURCE 700 // truncate
#include "support/test.h"

#include <unistd.h>

#include "support/models.h"
#include "support/temp.h"
#include "tare/file.h"
#include "tare/session.h"

static const char *copy_of_digits(const char *name) {
    size_t size = 0;
    const char *path = temp_path(name);
    unsigned char *bytes = temp_read("data/digits/digits.safetensors", &size);
    temp_write(path, bytes, size);
    free(bytes);
    return path;
}

static tare_status run_once(const tare_model *model, tare_error *err) {
    tare_session *s = NULL;
    tare_tensor *x = NEW_INPUT(2, 1, 8, 8), *y = NULL;
    const tare_tensor *inputs[] = {x};
    size_t count = 0;
    CHECK_OK(tare_session_create(model, NULL, &s, err));
    const tare_status status = tare_session_run(s, inputs, 1, &y, 1, &count, err);
    assert_int_equal(y != NULL, status == TARE_OK);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_session_destroy(s);
    return status;
}

static tare_model *read_and_cut(const char *path, bool copies) {
    const tare_model_read_options options = {.struct_size = sizeof options, .copies_file = copies};
    tare_model *model = NULL;
    CHECK_OK(tare_model_read_with(path, NULL, &options, &model, NULL));
    assert_int_equal(truncate(path, 512), 0);
    return model;
}

static void a_run_on_a_file_that_was_cut_off_is_an_error(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    CHECK_OK(tare_file_guard(err));
    char path[256];
    snprintf(path, sizeof path, "%s", copy_of_digits("cut.safetensors"));
    tare_model *model = read_and_cut(path, false);
    assert_int_equal(run_once(model, err), TARE_IO);
    assert_string_equal(tare_error_where(err), path);
    assert_int_equal(tare_model_write(model, temp_path("written.safetensors"), err), TARE_IO);
    assert_int_not_equal(access(temp_path("written.safetensors"), F_OK), 0);
    tare_model_destroy(model);

    model = read_and_cut(copy_of_digits("copied.safetensors"), true);
    CHECK_OK(run_once(model, err));
    tare_model_destroy(model);
    tare_error_destroy(err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_on_a_file_that_was_cut_off_is_an_error)};
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
