// SPDX-License-Identifier: Apache-2.0
// What counts batches and is never read goes when a program is lowered; what is read stays.
#include "support/test.h"

#include "support/exported.h"
#include "support/models.h"
#include "tare/pt2e.h"

static tare_model *lowered_of(const char *code) {
    module *root = new_tree();
    tare_tensor *count = NULL;
    tare_model *made = NULL;
    CHECK_OK(tare__tensor_scalar_int(3, &count, NULL));
    CHECK_OK(tare__module_set_tensor(root, "count", count, false, NULL));
    tare_tensor_release(count);
    tare_model *model = new_exported(root, code);
    model->stage = TARE_STAGE_REFERENCE;
    CHECK_DONE(tare_lower_pt2e(model, NULL, &made, job_error()));
    tare_model_destroy(model);
    return made;
}

static void a_counter_that_nobody_reads_is_dropped(void **state) {
    (void)state;
    tare_model *model = lowered_of("def forward(self, x):\n"
                                   "    count = self.count\n"
                                   "    add_ = torch.ops.aten.add_.Tensor(count, 1)\n"
                                   "    relu = torch.ops.aten.relu.default(x)\n"
                                   "    return relu\n");
    CHECK_LACKS(printed(model), "count");
    CHECK_HOLDS(decided(model, "add_"), "dropped");
    assert_null(tare__module_find_tensor(model->root, "count"));
    tare_model_destroy(model);
}

static void counters_that_are_read_stay(void **state) {
    static const char *const codes[] = {
        // Its result.
        "def forward(self, x):\n"
        "    count = self.count\n"
        "    add_ = torch.ops.aten.add_.Tensor(count, 1)\n"
        "    add = torch.ops.aten.add.Tensor(x, add_)\n"
        "    return add\n",
        // The tensor, by the same read and by another.
        "def forward(self, x):\n"
        "    count = self.count\n"
        "    add_ = torch.ops.aten.add_.Tensor(count, 1)\n"
        "    add = torch.ops.aten.add.Tensor(x, count)\n"
        "    return add\n",
        "def forward(self, x):\n"
        "    count = self.count\n"
        "    add_ = torch.ops.aten.add_.Tensor(count, 1)\n"
        "    count_1 = self.count\n"
        "    add = torch.ops.aten.add.Tensor(x, count_1)\n"
        "    return add\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        tare_model *model = lowered_of(codes[i]);
        CHECK_HOLDS(printed(model), "add_.Tensor(count, 1)");
        tare_model_destroy(model);
    }
}

// Nothing but an input is written here, which is the caller's.
static void writes_over_other_values_stay(void **state) {
    (void)state;
    tare_model *model = lowered_of("def forward(self, x):\n"
                                   "    relu_ = torch.ops.aten.relu_.default(x)\n"
                                   "    neg = torch.ops.aten.neg.default(x)\n"
                                   "    return neg\n");
    CHECK_HOLDS(printed(model), "relu_.default(x)");
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_that_nobody_reads_is_dropped),
        cmocka_unit_test(counters_that_are_read_stay),
        cmocka_unit_test(writes_over_other_values_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
