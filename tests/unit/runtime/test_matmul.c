// SPDX-License-Identifier: Apache-2.0
// Products of two tensors of floats that stand alone are one step of a plan, which gives what the
// reference gives, but for rounding.
#include "support/models.h"
#include "support/test.h"

#include <math.h>

#include "core/tensor.h"
#include "runtime/session.h"

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

static tare_tensor *run(const tare_model *model, const tare_tensor *const *inputs,
                        const tare_session_options *options, bool *has_step) {
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    tare_step step = {.struct_size = sizeof step};
    CHECK_DONE(tare_session_create(model, options, &s, job_error()));
    CHECK_DONE(tare_session_run(s, inputs, 2, &y, 1, &count, job_error()));
    *has_step = false;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        *has_step = *has_step || strcmp(step.kind, "matmul") == 0;
    tare_session_destroy(s);
    return y;
}

static void check_close(const tare_tensor *found, const tare_tensor *expected, size_t index) {
    assert_int_equal(found->count, expected->count);
    for (int64_t i = 0; i < found->count; i++) {
        const float a = tare__f32(found)[i], b = tare__f32(expected)[i];
        if (!(fabsf(a - b) <= 2e-5F * (1 + fabsf(b))))
            fail_msg("product %zu, element %lld: %g, not %g", index, (long long)i, (double)a,
                     (double)b);
    }
}

static void check_product(size_t index) {
    const product *p = &products[index];
    const tare_session_options reference = {.reference = true, .portable_floats = true};
    tare_model *model = model_of(p);
    tare_tensor *x = new_input(p->a_ndim, p->a), *w = new_input(p->b_ndim, p->b);
    const tare_tensor *inputs[] = {x, w};
    bool has_step;
    tare_tensor *expected = run(model, inputs, &reference, &has_step);
    for (int threads = 1; threads <= 3; threads++) {
        const tare_session_options options = {.thread_count = threads};
        tare_tensor *y = run(model, inputs, &options, &has_step);
#ifdef TARE_HAVE_DNNL
        assert_true(has_step);
#endif
        check_close(y, expected, index);
        tare_tensor_release(y);
    }
    tare_tensor_release(expected);
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
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(
        status,
        {
            tare_session *session = NULL;
            tare_tensor *y = NULL;
            size_t count = 0;
            status = tare_session_create(model, NULL, &session, job_error());
            if (status == TARE_OK)
                status = tare_session_run(session, inputs, 2, &y, 1, &count, job_error());
            tare_tensor_release(y);
            tare_session_destroy(session);
        },
        (void)0);
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
