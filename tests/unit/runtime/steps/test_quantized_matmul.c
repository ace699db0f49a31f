// SPDX-License-Identifier: Apache-2.0
// Products of two tensors of quantized bytes: sessions give the reference's bits for every level,
// shape and zero point, and what floats give.
#include "support/test.h"

#include <math.h>

#include "core/tensor/tensor.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"

typedef struct matmul_case {
    int a_ndim, b_ndim;
    int64_t a[4], b[4];
} matmul_case;

static tare_tensor *run(const tare_model *m, const tare_tensor *const *x, bool reference,
                        int threads) {
    const tare_session_options options = {.reference = reference, .thread_count = threads};
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    tare_step step = {.struct_size = sizeof step};
    size_t count = 0, i = 0;
    CHECK_DONE(tare_session_create(m, &options, &s, job_error()));
    CHECK_DONE(tare_session_run(s, x, 2, &y, 1, &count, job_error()));
    while (tare_session_get_step(s, i, &step) && strcmp(step.kind, "quantized matmul") != 0) i++;
    assert_true(reference || i < tare_session_step_count(s));
    const int64_t inner = x[0]->shape[x[0]->ndim - 1];
    assert_true(reference || step.macs == y->count * inner);
    tare_session_destroy(s);
    return y;
}

static void check_case(const matmul_case *c, const char *dtype, int a_zero, int b_zero,
                       bool gives_quantized) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, a, b):\n"
                   "    qa = torch.quantize_per_tensor(a, 0.011, %d, torch.%s)\n"
                   "    qb = torch.quantize_per_tensor(b, 0.009, %d, torch.%s)\n"
                   "    y = %s\n%s",
                   a_zero, dtype, b_zero, dtype,
                   gives_quantized ? "torch.ops.quantized.matmul(qa, qb, 0.03, 60)"
                                   : "torch.ops.tare.matmul_float(qa, qb)",
                   gives_quantized ? "    z = y.dequantize()\n    return z\n" : "    return y\n");
    tare_model *m = new_model(NULL, new_tree(), code);
    tare_tensor *a = new_input(c->a_ndim, c->a), *b = new_input(c->b_ndim, c->b);
    const tare_tensor *inputs[] = {a, b};
    tare_tensor *expected = run(m, inputs, true, 1);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_tensor *found = run(m, inputs, false, 1 + isa % 3);
        check_same_tensor(found, expected);
        tare_tensor_release(found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_model_destroy(m);
}

static void sessions_give_the_references_bits(void **state) {
    (void)state;
    static const matmul_case cases[] = {
        {2, 2, {1, 1}, {1, 1}},
        {2, 2, {25, 7}, {7, 65}},
        {2, 2, {49, 130}, {130, 17}},
        {4, 4, {2, 3, 5, 33}, {2, 3, 33, 40}},
        {4, 2, {2, 3, 5, 8}, {8, 16}},
        {3, 4, {3, 6, 9}, {2, 1, 9, 4}},
        {1, 2, {9}, {9, 5}},
        {2, 1, {4, 9}, {9}},
        {3, 3, {5, 150, 67}, {5, 67, 1}},
        {3, 2, {3, 64, 256}, {256, 1}},
        {4, 4, {2, 3, 1, 16}, {2, 1, 16, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int gives_quantized = 0; gives_quantized < 2; gives_quantized++) {
            check_case(&cases[i], "quint8", 120, 128, gives_quantized != 0);
            check_case(&cases[i], "quint8", 0, 3, gives_quantized != 0);
            check_case(&cases[i], "qint8", -7, 0, gives_quantized != 0);
            check_case(&cases[i], "qint8", 127, -128, gives_quantized != 0);
        }
}

static void integers_give_what_floats_give(void **state) {
    (void)state;
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, a, b):\n"
                              "    qa = torch.quantize_per_tensor(a, 0.02, 90, torch.quint8)\n"
                              "    qb = torch.quantize_per_tensor(b, 0.02, 200, torch.quint8)\n"
                              "    fa = qa.dequantize()\n"
                              "    fb = qb.dequantize()\n"
                              "    y = torch.ops.tare.matmul_float(qa, qb)\n"
                              "    z = torch.matmul(fa, fb)\n"
                              "    d = y - z\n"
                              "    return d\n");
    tare_tensor *a = NEW_INPUT(2, 30, 64), *b = NEW_INPUT(2, 64, 21);
    const tare_tensor *inputs[] = {a, b};
    tare_tensor *d = run(m, inputs, false, 1);
    for (int64_t i = 0; i < d->count; i++) assert_true(fabs((double)tare__f32(d)[i]) < 1e-4);
    tare_tensor_release(d);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_model_destroy(m);
}

// By the general rule, which takes floats beside integers; what stands around it is planned.
static void floats_beside_integers_are_left_to_the_rule(void **state) {
    (void)state;
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, a):\n"
                              "    q = torch.quantize_per_tensor(a, 0.011, 120, torch.quint8)\n"
                              "    t = torch.transpose(a, 1, 2)\n"
                              "    y = torch.ops.quantized.matmul(q, t, 0.03, 60)\n"
                              "    z = y.dequantize()\n"
                              "    return z\n");
    tare_tensor *a = NEW_INPUT(2, 30, 64);
    tare_session *reference = session_of(m, true), *s = session_of(m, false);
    tare_tensor *expected = output_of(reference, a), *found = output_of(s, a);
    check_same_tensor(found, expected);
    check_calls(s, "quantized.matmul", "floats beside integers");
    tare_tensor_release(found);
    tare_tensor_release(expected);
    tare_session_destroy(s);
    tare_session_destroy(reference);
    tare_tensor_release(a);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_beside_integers_are_left_to_the_rule),
        cmocka_unit_test(sessions_give_the_references_bits),
        cmocka_unit_test(integers_give_what_floats_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
