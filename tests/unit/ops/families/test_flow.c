// SPDX-License-Identifier: Apache-2.0
// Operators on graphs. What they compute is compared with torch in tests/golden/test_programs.c.
#include "support/models.h"
#include "support/run.h"
#include "support/test.h"

#include "ops/op.h"

#define BODY(lines, result) "def forward(self, x, y):\n" lines "    return " result "\n"
#define SUM                 "    s = x + y\n"
#define PRODUCT             "    m = x * y\n"
#define BELOW               BODY("    s = x.sum()\n    b = torch.lt(s, 10)\n", "b")
#define STEP                BODY(SUM PRODUCT, "(s, m)")

#define CALL(parameters, graphs, call, item)                                                       \
    "def forward(self, " parameters "):\n" graphs "    r = torch.ops.higher_order." call           \
    "\n    i = r[" item "]\n    return i\n"
#define BOTH "    a = self.first\n    b = self.second\n"
#define COND CALL("p, x, y", BOTH, "cond(p, a, b, [x, y])", "0")
#define LOOP CALL("x, y", BOTH, "while_loop(a, b, [x, y], [])", "1")
#define SCAN CALL("x, y", "    a = self.first\n", "scan(a, [x], [y], [])", "1")

static void put_graph(module *root, const char *name, const char *code) {
    tare_model *model = new_model(NULL, new_tree(), code);
    CHECK_DONE(tare__module_set_child(root, name, model->root, job_error()));
    tare_model_destroy(model);
}

// A model whose modules `first` and `second` are graphs.
static module *flow_of(const char *first, const char *second, const char *code) {
    module *root = new_tree();
    put_graph(root, "first", first);
    put_graph(root, "second", second);
    tare_model *model = new_model(NULL, root, code);
    module *made = tare__module_retain(model->root);
    tare_model_destroy(model);
    return made;
}

static tare_status run_flow(module *m, tare_tensor *const *inputs, size_t count, tare_tensor **out,
                            tare_error *err) {
    const tare_status status = run_model(m, inputs, count, NULL, out, err);
    for (size_t i = 0; i < count; i++) tare_tensor_release(inputs[i]);
    tare__module_release(m);
    return status;
}

static void check_flow_fails(module *m, tare_tensor *const *inputs, size_t count,
                             const char *words) {
    tare_tensor *made = NULL;
    CHECK_REFUSED(run_flow(m, inputs, count, &made, job_error()), TARE_INVALID_ARGUMENT, words);
}

static void the_predicate_chooses_the_branch(void **state) {
    (void)state;
    for (int holds = 0; holds < 2; holds++) {
        tare_tensor *made = NULL;
        module *m = flow_of(BODY(SUM, "(s,)"), BODY(PRODUCT, "(m,)"), COND);
        CHECK_DONE(run_flow(m, INPUTS(COUNTING(holds, 0, 1), COUNTING(1, 1, 2), COUNTING(3, 1, 2)),
                            &made, job_error()));
        if (holds)
            CHECK(made, 4, 6);
        else
            CHECK(made, 3, 8);
    }
}

// Each round reads what the last one left, also where values are swapped.
static void carried_values_may_change_places(void **state) {
    (void)state;
    tare_tensor *made = NULL;
    module *m = flow_of(BELOW, BODY(SUM, "(y, s)"), LOOP);
    CHECK_DONE(run_flow(m, INPUTS(COUNTING(1, 0, 1), COUNTING(1, 0, 1)), &made, job_error()));
    CHECK(made, 21); // 1 1, 1 2, 2 3, 3 5, 5 8, 8 13, 13 21
}

#define WRAP(call) CALL("x, y", "    a = self.first\n", call, "0")
#define CAST(device, enabled)                                                                      \
    WRAP("wrap_with_autocast('" device "', torch.bfloat16, " enabled ", None, a, x, y)")

static void contexts_run_their_graph(void **state) {
    (void)state;
    static const char *const calls[] = {WRAP("wrap_with_set_grad_enabled(False, a, x, y)"),
                                        CAST("cpu", "False"), CAST("cuda", "True")};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tare_tensor *made = NULL;
        module *m = flow_of(BODY(SUM, "(s,)"), BODY(SUM, "(s,)"), calls[i]);
        CHECK_DONE(run_flow(m, INPUTS(COUNTING(1, 1, 2), COUNTING(3, 1, 2)), &made, job_error()));
        CHECK(made, 4, 6);
    }
    check_flow_fails(flow_of(BODY(SUM, "(s,)"), BODY(SUM, "(s,)"), CAST("cpu", "True")),
                     INPUTS(COUNTING(1, 1, 2), COUNTING(3, 1, 2)), "autocast is not supported");
    check_flow_fails(
        flow_of(BODY(SUM, "(s,)"), BODY(SUM, "(s,)"), WRAP("wrap_with_set_grad_enabled(False, x)")),
        INPUTS(COUNTING(1, 1, 2), COUNTING(3, 1, 2)), "expected a module");
}

static void results_of_rounds_are_stacked(void **state) {
    (void)state;
    tare_tensor *made = NULL;
    module *m = flow_of(STEP, BODY("", "x"), SCAN);
    CHECK_DONE(run_flow(m, INPUTS(COUNTING(1, 0, 1), COUNTING(1, 1, 3, 1)), &made, job_error()));
    CHECK(made, 1, 4, 12); // carried: 1, 2, 4
}

static void nothing_to_go_along_gives_nothing(void **state) {
    (void)state;
    tare_tensor *made = NULL;
    module *m = flow_of(STEP, BODY("", "x"), SCAN);
    CHECK_DONE(run_flow(m, INPUTS(COUNTING(1, 0, 1), COUNTING(1, 1, 0, 1)), &made, job_error()));
    assert_int_equal(made->shape[0], 0);
    tare_tensor_release(made);
}

static void graphs_that_do_not_fit_are_refused(void **state) {
    (void)state;
    check_flow_fails(flow_of(BODY(SUM, "(s,)"), BODY("    c = torch.cat([x, y])\n", "(c,)"), COND),
                     INPUTS(COUNTING(0, 0, 1), COUNTING(1, 1, 2), COUNTING(3, 1, 2)),
                     "another shape or dtype");
    check_flow_fails(flow_of(BODY(SUM, "(s,)"), BODY("", "(x, y)"), COND),
                     INPUTS(COUNTING(0, 0, 1), COUNTING(1, 1, 2), COUNTING(3, 1, 2)),
                     "gives 2 results, expected 1");
    check_flow_fails(flow_of(BODY(SUM, "(s,)"), BODY("", "(x, y)"), COND),
                     INPUTS(COUNTING(0, 0, 2), COUNTING(1, 1, 2), COUNTING(3, 1, 2)),
                     "one bool as predicate");
    check_flow_fails(flow_of(BODY("", "x"), BODY(SUM, "(y, s)"), LOOP),
                     INPUTS(COUNTING(1, 0, 2), COUNTING(1, 0, 2)), "something else than a bool");
    check_flow_fails(flow_of(BODY(SUM, "(s,)"), BODY("", "x"), SCAN),
                     INPUTS(COUNTING(1, 0, 1), counting(1, 0, 0, (const int64_t[]){0})),
                     "first dimension");
    check_flow_fails(flow_of(BODY(SUM, "(s,)"), BODY("", "x"),
                             CALL("x, y", "    a = self.first\n", "scan(a, [x], [], [])", "1")),
                     INPUTS(COUNTING(1, 0, 1), COUNTING(1, 0, 1)), "nothing to go along");
    check_flow_fails(
        flow_of(BODY(SUM, "(s,)"), BODY("", "x"), CALL("x, y", "", "scan(x, [x], [y], [])", "1")),
        INPUTS(COUNTING(1, 0, 1), COUNTING(1, 0, 1)), "a module with a graph");
}

static void loops_without_end_are_ended(void **state) {
    (void)state;
    check_flow_fails(flow_of(BELOW, BODY("", "(x, y)"), LOOP),
                     INPUTS(COUNTING(1, 0, 1), COUNTING(1, 0, 1)), "does not end within");
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    module *m = flow_of(STEP, BODY("", "x"), SCAN);
    tare_tensor *inputs[] = {COUNTING(1, 0, 1), COUNTING(1, 1, 3, 1)}, *made = NULL;
    tare_status status;
    EVERY_ALLOCATION_FAILS(status, status = run_model(m, inputs, 2, NULL, &made, NULL),
                           tare_tensor_release(made));
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
    tare__module_release(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_predicate_chooses_the_branch),
        cmocka_unit_test(carried_values_may_change_places),
        cmocka_unit_test(contexts_run_their_graph),
        cmocka_unit_test(results_of_rounds_are_stacked),
        cmocka_unit_test(nothing_to_go_along_gives_nothing),
        cmocka_unit_test(graphs_that_do_not_fit_are_refused),
        cmocka_unit_test(loops_without_end_are_ended),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
