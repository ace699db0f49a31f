// SPDX-License-Identifier: Apache-2.0
// Layers of weights in groups: plans give the reference's bits at every level of instructions, for
// any number of rows and threads.
#include "ops/quantized/grouped.h"
#include "ops/quantized/quantize.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

typedef struct form {
    int64_t ins, outs, group;
    int bits;
    bool is_affine, quantizes_input, has_relu, has_bias;
} form;

static tare_tensor *weight_of(const form *f) {
    const int64_t shape[] = {f->outs, f->ins}, count = f->outs * f->ins / f->group;
    tare_tensor *real = new_input(2, shape), *codes = NULL;
    double *numbers = calloc((size_t)count * 2, sizeof *numbers);
    const int64_t half = f->bits == 4 ? 8 : 128;
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = (1.0 + (double)(i * 37 % 11) / 16) / (double)half;
        numbers[count + i] = f->is_affine ? (double)(i * 29 % 13 - 6) : 0;
    }
    qparams *q =
        tare__qparams_create(TARE_PER_GROUP_AFFINE, TARE_QINT8, 0, count, numbers, numbers + count);
    q->quant_min = -half;
    q->quant_max = half - 1;
    CHECK_DONE(tare__quantize_tensor(real, q, &codes, job_error()));
    tare__qparams_release(q);
    tare_tensor_release(real);
    free(numbers);
    return codes;
}

static tare_model *layer_of(const form *f) {
    module *root = new_tree();
    module *m = put_module(root, NULL, "a",
                           f->has_relu ? "tare.GroupedLinearReLU" : "tare.GroupedLinear", "");
    tare_tensor *weight = weight_of(f), *bias = new_input(1, &f->outs);
    const value dtype = tare__dtype_value(f->quantizes_input ? TARE_INT8 : TARE_FLOAT32);
    CHECK_DONE(tare__grouped_set_weight(m, weight, job_error()));
    CHECK_DONE(tare__module_set_config(m, "activation_dtype", &dtype, job_error()));
    CHECK_DONE(tare__module_set_tensor(m, "bias", f->has_bias ? bias : NULL, true, job_error()));
    tare_tensor_release(weight);
    tare_tensor_release(bias);
    return new_model(NULL, root, "def forward(self, x):\n    a = self.a(x)\n    return a");
}

static void check_step(const tare_session *s, size_t unused) {
    (void)unused;
    assert_int_equal(count_steps(s, "grouped layer", NULL), 1);
}

static void check_form(const form *f, int64_t rows) {
    tare_model *model = layer_of(f);
    const int64_t shape[] = {rows, f->ins};
    tare_tensor *x = new_input(2, shape);
    if (rows > 2) tare__f32(x)[f->ins] = NAN; // of the second row
    tare_tensor *expected = output_with(model, &(tare_session_options){.reference = true}, x);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        for (int threads = 1; threads <= 3; threads++) {
            tare_session *s = session_on(model, threads);
            tare_tensor *y = output_of(s, x);
            check_step(s, 0);
            for (int64_t i = 0; i < y->count; i++) {
                const float a = tare__f32(y)[i], b = tare__f32(expected)[i];
                if (memcmp(&a, &b, sizeof a) != 0 && !(a != a && b != b))
                    fail_msg("%s, %d threads, %lld rows, output %lld: %a instead of %a",
                             tare__isa_level_name((isa_level)isa), threads, (long long)rows,
                             (long long)i, (double)a, (double)b);
            }
            tare_tensor_release(y);
            tare_session_destroy(s);
        }
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void plans_give_the_references_bits(void **state) {
    (void)state;
    static const form forms[] = {
        {64, 50, 32, 4, false, false, false, true},   {64, 50, 32, 4, true, false, true, true},
        {64, 70, 32, 4, false, true, false, false},   {96, 130, 32, 4, true, true, true, true},
        {128, 33, 128, 8, false, false, false, true}, {128, 64, 64, 8, true, true, false, true},
        {40, 16, 40, 8, false, true, true, true},     {40, 16, 40, 8, true, false, false, true}};
    static const int64_t rows[] = {1, 2, 3, 5, 8, 11};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) check_form(&forms[i], rows[r]);
}

// Enough weights that threads share them.
static void threads_share_a_large_layer(void **state) {
    (void)state;
    const form f = {256, 1000, 64, 4, true, true, false, true};
    check_form(&f, 1);
}

// Groups that no line of quantized values fills stay with the reference.
static void odd_groups_run_as_references(void **state) {
    (void)state;
    const form f = {12, 5, 6, 4, false, false, false, true};
    tare_model *model = layer_of(&f);
    tare_tensor *x = NEW_INPUT(2, 12);
    tare_session *s = session_on(model, 1);
    tare_tensor *y = output_of(s, x);
    assert_int_equal(count_steps(s, "grouped layer", NULL), 0);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_session_destroy(s);
    tare_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const form f = {64, 50, 32, 4, true, true, false, true};
    tare_model *model = layer_of(&f);
    tare_tensor *x = NEW_INPUT(2, 64);
    const tare_tensor *const inputs[] = {x};
    const tare_session_options options = {.thread_count = 1};
    check_run_without_memory(model, &options, inputs, 1);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_give_the_references_bits),
        cmocka_unit_test(threads_share_a_large_layer),
        cmocka_unit_test(odd_groups_run_as_references),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
