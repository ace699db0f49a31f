// SPDX-License-Identifier: Apache-2.0
// Products of two tensors of floats that stand alone are one step of a plan, which gives what the
// reference gives, but for rounding.
#include "support/test.h"

#include <string.h>

#include "support/models.h"
#include "support/plan_checks.h"

typedef struct product {
    int a_ndim, b_ndim;
    int64_t a[4], b[4];
    bool swaps; // dimensions 1 and 2 of a, which the step reads through
} product;

static const product products[] = {
    {2, 2, {7, 19}, {19, 33}, false},
    {2, 2, {1, 300}, {300, 1}, false},
    {3, 3, {6, 5, 20}, {6, 20, 9}, false},
    {4, 4, {3, 5, 49, 32}, {3, 5, 32, 49}, false},
    {4, 4, {3, 5, 49, 32}, {3, 1, 32, 49}, false}, // matrices that several products read
    {4, 3, {3, 5, 49, 32}, {5, 32, 49}, false},
    {3, 2, {4, 50, 40}, {40, 60}, false},
    {2, 4, {50, 40}, {2, 3, 40, 60}, false},
    {4, 4, {2, 49, 5, 32}, {2, 5, 32, 49}, true},
    {2, 2, {400, 90}, {90, 70}, false}, // of which threads take rows
};
enum { PRODUCTS = sizeof products / sizeof *products };

static tare_model *model_of(const product *p) {
    return new_model(NULL, new_tree(),
                     p->swaps ? "def forward(self, x, w):\n"
                                "    heads = torch.transpose(x, 1, 2)\n"
                                "    y = torch.matmul(heads, w)\n"
                                "    return y\n"
                              : "def forward(self, x, w):\n"
                                "    y = torch.matmul(x, w)\n"
                                "    return y\n");
}

static void check_product(size_t index) {
    const product *p = &products[index];
    char what[32];
    tare_model *model = model_of(p);
    tare_tensor *x = new_input(p->a_ndim, p->a), *w = new_input(p->b_ndim, p->b);
    const tare_tensor *inputs[] = {x, w};
    tare_session *reference = session_with(model, &portable_reference);
    run_outputs expected = outputs_of(reference, inputs, 2);
    (void)snprintf(what, sizeof what, "product %zu", index);
    for (int threads = 1; threads <= 3; threads++) {
        tare_session *s = session_on(model, threads);
        run_outputs y = outputs_of(s, inputs, 2);
#ifdef TARE_HAVE_DNNL
        assert_true(count_steps(s, "matmul", NULL) > 0);
#endif
        check_near_floats(y.at[0], expected.at[0], 2e-5F, what);
        release_outputs(&y);
        tare_session_destroy(s);
    }
    release_outputs(&expected);
    tare_session_destroy(reference);
    tare_tensor_release(x);
    tare_tensor_release(w);
    tare_model_destroy(model);
}

static void steps_give_what_the_reference_gives(void **state) {
    (void)state;
    for (size_t i = 0; i < PRODUCTS; i++) check_product(i);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = model_of(&products[8]);
    tare_tensor *x = new_input(4, products[8].a), *w = new_input(4, products[8].b);
    const tare_tensor *inputs[] = {x, w};
    check_run_without_memory(model, NULL, inputs, 2);
    tare_tensor_release(x);
    tare_tensor_release(w);
    tare_model_destroy(model);
}

// --- groups of rows ---

enum { GROUPS = 5, GROUP_ROWS = 40, GROUP_INNER = 24, GROUP_COLUMNS = 17 };

static tare_model *model_of_groups(void) {
    return new_model(NULL, new_tree(),
                     "def forward(self, x, w, ends):\n"
                     "    e = ends.to(torch.int32)\n"
                     "    y = torch.nn.functional.grouped_mm(x, w, offs = e)\n"
                     "    return y\n");
}

static void check_groups(const float ends[GROUPS]) {
    tare_model *model = model_of_groups();
    tare_tensor *x = NEW_INPUT(GROUP_ROWS, GROUP_INNER);
    tare_tensor *w = NEW_INPUT(GROUPS, GROUP_INNER, GROUP_COLUMNS), *e = NEW_INPUT(GROUPS);
    memcpy(tare__f32(e), ends, GROUPS * sizeof *ends);
    const tare_tensor *inputs[] = {x, w, e};
    tare_session *reference = session_with(model, &portable_reference);
    run_outputs expected = outputs_of(reference, inputs, 3);
    for (int threads = 1; threads <= 2; threads++) {
        tare_session *s = session_on(model, threads);
        run_outputs y = outputs_of(s, inputs, 3);
#ifdef TARE_HAVE_DNNL
        assert_int_equal(count_steps(s, "matmul groups", NULL), 1);
        assert_int_equal(count_steps(s, "call", NULL), 0);
#endif
        check_near_floats(y.at[0], expected.at[0], 2e-5F, "groups");
        release_outputs(&y);
        tare_session_destroy(s);
    }
    release_outputs(&expected);
    tare_session_destroy(reference);
    tare_tensor_release(x);
    tare_tensor_release(w);
    tare_tensor_release(e);
    tare_model_destroy(model);
}

// Groups may be empty, and rows may follow the last one.
static void groups_are_multiplied_by_their_matrices(void **state) {
    (void)state;
    check_groups((const float[]){7, 8, 24, 31, 40});
    check_groups((const float[]){0, 20, 20, 33, 37});
    check_groups((const float[]){0, 0, 0, 0, 0});
}

static void ends_of_groups_that_do_not_rise_are_an_error(void **state) {
    static const float ends[GROUPS] = {9, 8, 20, 30, 40};
    (void)state;
    tare_model *model = model_of_groups();
    tare_tensor *x = NEW_INPUT(GROUP_ROWS, GROUP_INNER), *y = NULL;
    tare_tensor *w = NEW_INPUT(GROUPS, GROUP_INNER, GROUP_COLUMNS), *e = NEW_INPUT(GROUPS);
    memcpy(tare__f32(e), ends, sizeof ends);
    tare_session *s = session_on(model, 1);
    tare_error *err = tare_error_create();
    size_t count = 0;
    const tare_tensor *inputs[] = {x, w, e};
    assert_int_not_equal(tare_session_run(s, inputs, 3, &y, 1, &count, err), TARE_OK);
    assert_non_null(strstr(tare_error_message(err), "group 1 ends at row 8 of 40, expected 9"));
    tare_error_destroy(err);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_tensor_release(w);
    tare_tensor_release(e);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_multiplied_by_their_matrices),
        cmocka_unit_test(ends_of_groups_that_do_not_rise_are_an_error),
        cmocka_unit_test(steps_give_what_the_reference_gives),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
