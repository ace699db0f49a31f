// SPDX-License-Identifier: Apache-2.0
// Products of two tensors of floats that stand alone are one step of a plan, which gives what the
// reference gives, but for rounding.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_give_what_the_reference_gives),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
