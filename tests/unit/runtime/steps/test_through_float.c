// SPDX-License-Identifier: Apache-2.0
// Operators that have a step of floats and none of quantized values run as that one between
// conversions, in either layout, and give the bits of their references.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

// The operator that may be a call, on floats, and what y becomes of the quantized values q and p.
static const struct {
    const char *call, *line;
} lines[] = {
    {"", "torch.ops.quantized.instance_norm(q, None, None, 1e-05, 0.02, 120)"},
    {"", "torch.ops.quantized.instance_norm(p, None, None, 1e-05, 0.02, 120)"},
    {"", "torch.ops.quantized.group_norm(q, 3, None, None, 1e-05, 0.02, 120)"},
    {"amax", "torch.amax(q, (2, 3), True)"},
    {"amax", "torch.amax(p, 1, True)"},
    {"pad", "torch.nn.functional.pad(q, (1, 2, 0, 1))"},
    {"tare.sum", "torch.ops.tare.sum(q, 1, output_scale = 0.1, output_zero_point = 3)"},
    {"", "torch.ops.tare.div(q, p, output_scale = 0.1, output_zero_point = 3)"},
    {"", "torch.ops.tare.sub(q, q, output_scale = 0.1, output_zero_point = 3)"},
    {"quantized.softmax", "torch.ops.quantized.softmax(q, 1, 0.004, 0)"},
};

static tare_model *model_of(size_t i) {
    char code[768];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
                   "    p = torch.nn.functional.avg_pool2d(q, 3, 1, 1)\n" // lies channels last
                   "    y = %s\n"
                   "    b = y.dequantize()\n"
                   "    return b\n",
                   lines[i].line);
    return new_model(NULL, new_tree(), code);
}

static void check_steps(const tare_session *s, size_t i) {
    check_calls(s, lines[i].call, lines[i].line);
    assert_true(tare_session_step_count(s) > 3);
}

static void check(size_t i, const tare_tensor *x) {
    tare_model *model = model_of(i);
    check_plans(model, x, check_steps, i);
    tare_model_destroy(model);
}

static void steps_of_floats_stand_between_integers(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 6, 5, 4);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) check(i, x);
    tare_tensor_release(x);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 6, 5, 4);
    tare_model *model = model_of(1);
    check_run_without_memory(model, NULL, (const tare_tensor *[]){x}, 1);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_of_floats_stand_between_integers),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
