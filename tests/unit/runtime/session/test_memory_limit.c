// SPDX-License-Identifier: Apache-2.0
// Results of a run, and the memory that its caller allows.
#include "support/models.h"
#include "support/run.h"
#include "support/temp.h"
#include "support/test.h"

static tare_status run_with(tare_model *model, const tare_session_options *options,
                            const tare_tensor *x) {
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_create(model, options, &s, job_error()));
    const tare_status status = tare_session_run(s, &x, 1, &y, 1, &count, job_error());
    if (status == TARE_OK) tare_tensor_release(y);
    tare_session_destroy(s);
    return status;
}

// 4 KiB in, 4 MiB between, 4 KiB out.
static tare_model *wide_model(void) {
    return new_model(NULL, new_tree(),
                     "def forward(self, x):\n"
                     "    wide = x.expand(1024, 1024)\n"
                     "    sum_1 = wide + wide\n"
                     "    y = sum_1.sum(0)\n"
                     "    return y\n");
}

static void a_result_beyond_the_limit_is_refused_by_node_and_shape(void **state) {
    (void)state;
    tare_model *model = wide_model();
    tare_tensor *x = NEW_INPUT(1, 1024);
    for (int reference = 0; reference < 2; reference++) {
        const tare_session_options small = {.reference = reference == 1, .memory_bytes = 3 << 20};
        const tare_session_options enough = {.reference = reference == 1, .memory_bytes = 9 << 20};
        CHECK_REFUSED(run_with(model, &small, x), TARE_LIMIT_EXCEEDED, "[1024, 1024]");
        CHECK_REFUSED(run_with(model, &small, x), TARE_LIMIT_EXCEEDED, "node '");
        CHECK_REFUSED(run_with(model, &small, x), TARE_LIMIT_EXCEEDED, "--max-memory");
        CHECK_DONE(run_with(model, &enough, x));
    }
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// Each of a chain of results is 4 MiB, and two of them live at a time.
static void what_is_not_needed_any_more_does_not_count(void **state) {
    (void)state;
    tare_model *model = new_model(NULL, new_tree(),
                                  "def forward(self, x):\n"
                                  "    a = x + 1\n    b = a + 1\n    c = b + 1\n    d = c + 1\n"
                                  "    e = d + 1\n    f = e + 1\n    return f\n");
    tare_tensor *x = NEW_INPUT(1, 1024, 1024);
    const tare_session_options two = {.reference = true, .memory_bytes = 8 << 20};
    const tare_session_options one = {.reference = true, .memory_bytes = 7 << 20};
    CHECK_DONE(run_with(model, &two, x));
    CHECK_REFUSED(run_with(model, &one, x), TARE_LIMIT_EXCEEDED, "with 4.0 MiB already in use");
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// A row of each is kept, and with it the whole.
static void views_count_what_they_keep(void **state) {
    (void)state;
    tare_model *model = new_model(NULL, new_tree(),
                                  "def forward(self, x):\n"
                                  "    a = x + 1\n    a_1 = a.reshape(1048576)\n"
                                  "    b = x + 2\n    b_1 = b.reshape(1048576)\n"
                                  "    c = x + 3\n    c_1 = c.reshape(1048576)\n"
                                  "    y = torch.cat([a_1, b_1, c_1])\n"
                                  "    return y\n");
    tare_tensor *x = NEW_INPUT(1, 1024, 1024);
    const tare_session_options small = {.reference = true, .memory_bytes = 23 << 20};
    const tare_session_options enough = {.reference = true, .memory_bytes = 24 << 20};
    CHECK_REFUSED(run_with(model, &small, x), TARE_LIMIT_EXCEEDED, "with 12 MiB already in use");
    CHECK_DONE(run_with(model, &enough, x));
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// No machine has what these shapes ask for; nothing is allocated to find that out.
static void absurd_shapes_are_refused_without_a_limit_of_the_callers(void **state) {
    (void)state;
    tare_model *model = new_model(NULL, new_tree(),
                                  "def forward(self, x):\n"
                                  "    a = x.expand(1099511627776, 1024)\n"
                                  "    y = a + a\n"
                                  "    return y\n");
    tare_tensor *x = NEW_INPUT(1, 1024);
    CHECK_REFUSED(run_with(model, NULL, x), TARE_LIMIT_EXCEEDED, "[1099511627776, 1024]");
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void sessions_and_calibration_keep_to_the_models_limit(void **state) {
    (void)state;
    tare_model *made = wide_model(), *model = NULL, *ready = NULL;
    tare_tensor *x = NEW_INPUT(1, 1024);
    const tare_read_limits limits = {.memory_bytes = 3 << 20};
    const tare_model_read_options options = {.limits = &limits};
    const char *path = temp_path("wide.safetensors");
    CHECK_DONE(tare_model_write(made, path, job_error()));
    CHECK_DONE(tare_model_read_with(path, NULL, &options, &model, job_error()));
    CHECK_REFUSED(run_with(model, NULL, x), TARE_LIMIT_EXCEEDED, "[1024, 1024]");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    ready = prepared(model, backend, mapping); // what passes make keeps the limit
    const tare_tensor *input = x;
    CHECK_REFUSED(tare_calibrate(ready, &input, 1, job_error()), TARE_LIMIT_EXCEEDED,
                  "[1024, 1024]");
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(ready);
    tare_model_destroy(model);
    tare_model_destroy(made);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_beyond_the_limit_is_refused_by_node_and_shape),
        cmocka_unit_test(what_is_not_needed_any_more_does_not_count),
        cmocka_unit_test(views_count_what_they_keep),
        cmocka_unit_test(absurd_shapes_are_refused_without_a_limit_of_the_callers),
        cmocka_unit_test(sessions_and_calibration_keep_to_the_models_limit),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
