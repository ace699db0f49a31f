// SPDX-License-Identifier: Apache-2.0
// Train and eval of exported programs, whose calls say themselves whether they train.
#include "support/models.h"
#include "support/run.h"
#include "support/test.h"
#include "tare/session.h"

static const char code[] =
    "def forward(self, x, w, b):\n"
    "    mean = self.mean\n"
    "    var = self.var\n"
    "    dropout = torch.ops.aten.dropout.default(x, 0.25, True)\n"
    "    batch_norm = torch.ops.aten.batch_norm.default(dropout, w, b, mean, var, True, 0.5, 0.75, "
    "False)\n"
    "    return batch_norm\n";

static tare_model *exported(void) {
    module *root = new_tree();
    tare_tensor *mean = COUNTING(2, 0, 1), *var = COUNTING(3.25, 0, 1);
    CHECK_OK(tare__module_set_tensor(root, "mean", mean, false, NULL));
    CHECK_OK(tare__module_set_tensor(root, "var", var, false, NULL));
    tare_tensor_release(mean);
    tare_tensor_release(var);
    return new_model(NULL, root, code);
}

// x is 1, 5: mean 3, variance 4, unbiased 8.
static void check_run(const tare_model *m, const double expected[2]) {
    tare_tensor *inputs[] = {COUNTING(1, 4, 2, 1), COUNTING(1, 0, 1), COUNTING(0, 0, 1)};
    tare_tensor *y = result_of(m, (const tare_tensor *const *)inputs, 3);
    check_floats(y, expected, 2);
    for (size_t i = 0; i < 3; i++) tare_tensor_release(inputs[i]);
}

static void check_session(const tare_model *m, const double expected[2]) {
    tare_tensor *inputs[] = {COUNTING(1, 4, 2, 1), COUNTING(1, 0, 1), COUNTING(0, 0, 1)};
    tare_session *session = NULL;
    tare_tensor *outputs[1] = {NULL};
    size_t count = 0;
    CHECK_DONE(tare_session_create(m, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, (const tare_tensor *const *)inputs, 3, outputs, 1, &count,
                                job_error()));
    check_floats(outputs[0], expected, 2);
    for (size_t i = 0; i < 3; i++) tare_tensor_release(inputs[i]);
    tare_session_destroy(session);
}

static const double in_training[] = {-2 / 2.1794494717703365, 2 / 2.1794494717703365};
static const double in_evaluation[] = {-0.5, 1.5}; // (x - 2) / sqrt(3.25 + 0.75)

static void the_mode_is_one_of_runs(void **state) {
    (void)state;
    tare_model *m = exported();
    const tare_tensor *mean = tare__module_tensor(m->root, "mean");
    char *before = strdup(printed(m));
    CHECK_DONE(tare_model_set_training(m, false, job_error()));
    check_run(m, in_evaluation);
    check_session(m, in_evaluation);
    assert_true(tare__tensor_get(mean, 0) == 2); // nothing was learned
    assert_string_equal(printed(m), before);     // neither rate, momentum nor eps were lost
    CHECK_DONE(tare_model_set_training(m, true, job_error()));
    check_run(m, in_training);
    free(before);
    tare_model_destroy(m);
}

static void without_a_mode_the_calls_decide(void **state) {
    (void)state;
    tare_model *m = exported();
    check_run(m, in_training); // in a session, which learns for itself
    assert_true(tare__tensor_get(tare__module_tensor(m->root, "mean"), 0) == 2);
    tare_tensor *inputs[] = {COUNTING(1, 4, 2, 1), COUNTING(1, 0, 1), COUNTING(0, 0, 1)}, *y;
    CHECK_DONE(run_model(m->root, inputs, 3, NULL, &y, job_error()));
    check_floats(y, in_training, 2);
    for (size_t i = 0; i < 3; i++) tare_tensor_release(inputs[i]);
    assert_true(tare__tensor_get(tare__module_tensor(m->root, "mean"), 0) == 2.5);
    assert_true(tare__tensor_get(tare__module_tensor(m->root, "var"), 0) == 3.25 / 2 + 8.0 / 2);
    tare_model_destroy(m);
}

static tare_status annotate_nothing(void *self, tare_model *model, tare_error *err) {
    (void)self;
    (void)model;
    (void)err;
    return TARE_OK;
}

static void passes_keep_the_mode(void **state) {
    (void)state;
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "none", .annotate = annotate_nothing};
    tare_model *m = exported(), *p = NULL, *c = NULL;
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_model_set_training(m, false, job_error()));
    CHECK_DONE(tare_quantizer_create(&class, NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    check_run(p, in_evaluation);
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    check_run(c, in_evaluation);
    tare_quantizer_destroy(q);
    tare_model_destroy(c);
    tare_model_destroy(p);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mode_is_one_of_runs),
        cmocka_unit_test(without_a_mode_the_calls_decide),
        cmocka_unit_test(passes_keep_the_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
