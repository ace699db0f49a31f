// SPDX-License-Identifier: Apache-2.0
// Programs of torch.export: what they become.
#include "support/exported.h"
#include "support/models.h"
#include "support/pt2_bytes.h"
#include "support/test.h"

#include <string.h>

#include "io/pt2/pt2.h"
#include "ops/text/print.h"

static void programs_become_graph_modules(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    module *root = NULL;
    text printed = {0};
    assert_true(tare__pt2_is_archive(bytes.data, bytes.size));
    CHECK_DONE(pt2_read_bytes(&bytes, &root, job_error()));
    CHECK_OK(tare__print_model(root, &printed, NULL));
    assert_string_equal(
        tare__text_chars(&printed),
        "GraphModule(\n  (a): Module()\n  (_guards_fn): GuardsFn()\n)\n\n"
        "def forward(self, x):\n"
        "    x, = fx_pytree.tree_flatten_spec(([], {'x':x}), self._in_spec)\n"
        "    a_w = self.a.w;  a_w = None\n"
        "    a_tied = self.a.tied\n"
        "    b = self.b\n"
        "    _guards_fn = self._guards_fn(x);  _guards_fn = None\n"
        "    mul = torch.ops.aten.mul.Tensor(x, a_tied);  a_tied = None\n"
        "    sym_size = torch.ops.aten.sym_size.int(x, 0);  x = None\n"
        "    view = torch.ops.aten.view.default(mul, [sym_size, 4]);  sym_size = None\n"
        "    split = torch.ops.aten.split.Tensor(view, 2, 1);  view = None\n"
        "    first = split[0];  split = None\n"
        "    copy__default = torch.ops.aten.copy_.default(b, mul);  b = mul = "
        "copy__default = None\n"
        "    return pytree.tree_unflatten((first,), self._out_spec)\n");
    tare__text_release(&printed);
    tare__module_release(root);
    tare__free(bytes.data);
}

static void tensors_are_placed_as_the_table_says(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    module *root = NULL;
    CHECK_DONE(pt2_read_bytes(&bytes, &root, job_error()));
    const tare_tensor *w = tare__module_find_tensor(root, "a.w");
    const double expected[] = {1, 3, 2, 4}; // the record is transposed
    for (int64_t i = 0; i < 4; i++) assert_true(tare__tensor_get(w, i) == expected[i]);
    assert_ptr_equal(tare__module_find_tensor(root, "a.tied"), tare__module_find_tensor(root, "b"));
    tare__module_release(root);
    tare__free(bytes.data);
}

static void sources_and_open_sizes_are_kept(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    module *root = NULL;
    CHECK_DONE(pt2_read_bytes(&bytes, &root, job_error()));
    const node *mul = tare__graph_find(root->graph, "mul");
    assert_string_equal(mul->scope_path, "a");
    assert_string_equal(mul->scope_type, "torch.nn.Linear");
    assert_string_equal(
        mul->meta_json,
        "{\"val\": {\"shape\": [null, 4], \"dtype\": \"torch.float32\", \"tensor\": {\"dtype\": 7, "
        "\"sizes\": [{\"as_expr\": {\"expr_str\": \"Symbol('s77')\", \"hint\": {\"as_int\": 2}}}, "
        "{\"as_int\": 4}], \"strides\": [{\"as_int\": 4}, {\"as_int\": 1}], \"requires_grad\": "
        "false, \"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7, "
        "\"storage_offset\": {\"as_int\": 0}}}, \"nn_module_stack\": "
        "[[\"L__self__\", \"\", \"my.Net\"], [\"L__self__a\", \"a\", "
        "\"torch.nn.modules.linear.Linear\"]], \"torch_fn\": [\"mul_1\", "
        "\"method_descriptor.mul\"], \"stack_trace\": \"line\"}");
    tare__module_release(root);
    tare__free(bytes.data);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    module *root = NULL;
    tare_status status;
    EVERY_ALLOCATION_FAILS(status, status = pt2_read_bytes(&bytes, &root, NULL),
                           tare__module_release(root));
    tare__free(bytes.data);
}

// The row takes a dimension there, torch's overload a tensor.
static void calls_of_other_results_than_torch_gives_are_not_written(void **state) {
    (void)state;
    tare_model *model = new_exported(NULL, "def forward(self, x):\n"
                                           "    both = torch.ops.aten.max.other(x, 1)\n"
                                           "    values = both[0]\n"
                                           "    return (values,)\n");
    CHECK_REFUSED(tare_model_write_pt2(model, "/dev/null", job_error()), TARE_UNSUPPORTED,
                  "node 'both': 'torch.ops.aten.max.other' gives one tensor in torch");
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_become_graph_modules),
        cmocka_unit_test(tensors_are_placed_as_the_table_says),
        cmocka_unit_test(sources_and_open_sizes_are_kept),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(calls_of_other_results_than_torch_gives_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
