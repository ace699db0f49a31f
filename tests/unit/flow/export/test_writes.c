// SPDX-License-Identifier: Apache-2.0
// Tensors that a program writes in place are observed, and quantized, with what was written.
#include <math.h>

#include "support/models.h"
#include "support/test.h"
#include "tare/pt2e.h"
#include "tare/quantizer.h"

#define ATEN "torch.ops.aten."
#define LINE "\n    "

static tare_model *program(const char *code) {
    return new_model(NULL, new_tree(), code);
}

// The prepared program computes what the program computes; so does what convert makes, nearly.
static void check_outcome(tare_model *m, tare_model *p) {
    const int64_t shape[] = {2, 3, 4};
    tare_tensor *x = new_input(3, shape);
    const tare_tensor *inputs[] = {x};
    tare_tensor *expected = result_of(m, inputs, 1), *found = result_of(p, inputs, 1);
    tare_model *converted = NULL;
    check_same_tensor(expected, found);
    tare_tensor_release(found);
    CHECK_DONE(tare_calibrate(p, inputs, 1, job_error()));
    CHECK_DONE(tare_convert_pt2e(p, NULL, &converted, job_error()));
    found = result_of(converted, inputs, 1);
    const float *a = tare_tensor_data(expected), *b = tare_tensor_data(found);
    float most = 0;
    for (int64_t i = 0; i < 24; i++) most = fmaxf(most, fabsf(a[i]));
    for (int64_t i = 0; i < 24; i++) assert_true(fabsf(a[i] - b[i]) < 0.1F * most);
    tare_tensor_release(expected);
    tare_tensor_release(found);
    tare_tensor_release(x);
    tare_model_destroy(converted);
    tare_model_destroy(p);
    tare_model_destroy(m);
}

static void what_is_written_through_views_is_observed(void **state) {
    (void)state;
    tare_model *m = program(
        "def forward(self, x):" LINE "y = " ATEN "zeros_like.default(x)" LINE "rows = " ATEN
        "slice.Tensor(y, 0, 0, 9223372036854775807)" LINE "row = " ATEN
        "select.int(rows, 1, 0)" LINE "last = " ATEN "select.int(x, 1, 2)" LINE "copy_ = " ATEN
        "copy_.default(row, last)" LINE "part = " ATEN "view.default(y, [2, 12])" LINE "end = " ATEN
        "slice.Tensor(part, 1, 8, 12)" LINE "fill_ = " ATEN "fill_.Scalar(end, 0.5)" LINE
        "mul = " ATEN "mul.Tensor(y, x)" LINE "return mul\n");
    tare_model *p = prepared_program(m);
    CHECK_HOLDS(printed(p), "= " ATEN "select_scatter.default(");
    CHECK_HOLDS(printed(p), "= " ATEN "view_as.default(");
    CHECK_LACKS(printed(p), "copy_.default");
    CHECK_LACKS(printed(p), "fill_.Scalar");
    check_outcome(m, p);
}

static void views_of_before_a_write_are_made_again(void **state) {
    (void)state;
    tare_model *m =
        program("def forward(self, x):" LINE "y = " ATEN "mul.Tensor(x, 1.5)" LINE "row = " ATEN
                "select.int(y, 1, 0)" LINE "add_ = " ATEN "add_.Tensor(y, x)" LINE "sub_ = " ATEN
                "sub_.Tensor(add_, 0.25)" LINE "unsqueeze = " ATEN "unsqueeze.default(row, 1)" LINE
                "mul = " ATEN "mul.Tensor(y, unsqueeze)" LINE "return mul\n");
    tare_model *p = prepared_program(m);
    const int64_t shape[] = {2, 3, 4};
    tare_tensor *x = new_input(3, shape);
    tare_tensor *found = result_of(p, (const tare_tensor *[]){x}, 1);
    const float *a = tare_tensor_data(x), *b = tare_tensor_data(found);
    for (int64_t i = 0; i < 24; i++) {
        const float y = a[i] * 1.5F + a[i] - 0.25F, first = a[i / 12 * 12 + i % 4];
        assert_true(fabsf(b[i] - y * (first * 1.5F + first - 0.25F)) < 1e-5F);
    }
    tare_tensor_release(x);
    tare_tensor_release(found);
    tare_model_destroy(p);
    tare_model_destroy(m);
}

static void a_write_that_nothing_else_reads_stays(void **state) {
    (void)state;
    tare_model *m =
        program("def forward(self, x):" LINE "y = " ATEN "mul.Tensor(x, x)" LINE "relu_ = " ATEN
                "relu_.default(y)" LINE "mul = " ATEN "mul.Tensor(relu_, x)" LINE "return mul\n");
    tare_model *p = prepared_program(m);
    CHECK_HOLDS(printed(p), ATEN "relu_.default(");
    check_outcome(m, p);
}

// Each read behind a write would make all views again.
static void views_beyond_all_measure_are_refused(void **state) {
    enum { VIEWS = 1500, WRITES = 300, LINE_BYTES = 96 };
    (void)state;
    const size_t room = (size_t)(VIEWS + 2 * WRITES + 8) * LINE_BYTES;
    char *code = malloc(room);
    assert_non_null(code);
    size_t at = (size_t)snprintf(code, room,
                                 "def forward(self, x):" LINE "v0 = " ATEN "zeros_like.default(x)");
    for (int i = 1; i <= VIEWS; i++)
        at += (size_t)snprintf(code + at, room - at, LINE "v%d = " ATEN "view.default(v%d, [24])",
                               i, i - 1);
    for (int i = 1; i <= WRITES; i++)
        at += (size_t)snprintf(code + at, room - at,
                               LINE "w%d = " ATEN "add_.Tensor(v0, x)" LINE "r%d = " ATEN
                                    "neg.default(v%d)",
                               i, i, VIEWS);
    (void)snprintf(code + at, room - at, LINE "return r%d\n", WRITES);
    tare_model *m = program(code), *p = NULL;
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    assert_int_equal(tare_prepare_pt2e(m, q, &p, job_error()), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_message(job_error()), "are more than"));
    tare_quantizer_destroy(q);
    tare_model_destroy(m);
    free(code);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_through_views_is_observed),
        cmocka_unit_test(views_of_before_a_write_are_made_again),
        cmocka_unit_test(views_beyond_all_measure_are_refused),
        cmocka_unit_test(a_write_that_nothing_else_reads_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
