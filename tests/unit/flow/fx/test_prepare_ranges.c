// SPDX-License-Identifier: Apache-2.0
// Under tare's own mapping, what no single scale holds stays float; under torch's it is observed.
#include <math.h>

#include "model/pass.h"
#include "observe/observer.h"
#include "support/models.h"
#include "support/test.h"

#define NN     "torch.nn."
#define LINEAR "in_features=4, out_features=4"

static module *two_linears(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", LINEAR);
    put_module(root, NULL, "b", NN "Linear", LINEAR);
    return root;
}

static tare_model *prepared_by(const char *mapping_name, module *root, const char *code) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping(mapping_name);
    tare_model *model = new_model(NULL, root, code), *p = prepared(model, backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    return p;
}

static const module *input_observer(const tare_model *p, const char *name) {
    const node *n = tare__graph_find(p->root->graph, name);
    return tare__called_module(p, tare__node_arg(n, 0));
}

static const module *output_observer(const tare_model *p, const char *name) {
    const node *n = tare__graph_find(p->root->graph, name);
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__is_observer_node(p, n->users[i])) return tare__called_module(p, n->users[i]);
    return NULL;
}

static void observers_are_shared_along_operators_that_keep_values(void **state) {
    (void)state;
    static const char code[] = "def forward(self, x):\n    a = self.a(x)\n"
                               "    layer_norm = torch.nn.functional.layer_norm(a, (4,))\n"
                               "    reshape = layer_norm.reshape(-1, 4)\n    b = self.b(reshape)\n"
                               "    return b\n";
    // torch walks up from the reshape through the norm.
    tare_model *p = prepared_by("x86", two_linears(), code);
    assert_ptr_equal(input_observer(p, "b"), output_observer(p, "a"));
    tare_model_destroy(p);
    p = prepared_by("tare", two_linears(), code);
    assert_non_null(input_observer(p, "b"));
    assert_ptr_not_equal(input_observer(p, "b"), output_observer(p, "a"));
    CHECK_HOLDS(decided(p, "reshape"), "left float: it would share the observer of its input, "
                                       "which is float");
    assert_null(output_observer(p, "layer_norm"));
    tare_model_destroy(p);
    // A transpose of the layer's own values shares its observer as before.
    p = prepared_by("tare", two_linears(),
                    "def forward(self, x):\n    a = self.a(x)\n"
                    "    reshape = a.reshape(-1, 4)\n    b = self.b(reshape)\n    return b\n");
    assert_ptr_equal(input_observer(p, "b"), output_observer(p, "a"));
    tare_model_destroy(p);
}

static void sums_that_are_normalized_stay_float(void **state) {
    (void)state;
    static const char code[] =
        "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
        "    add = a + b\n    add_1 = add + x\n    view = add_1.view(-1, 4)\n"
        "    layer_norm = torch.nn.functional.layer_norm(view, (4,))\n"
        "    add_2 = a + b\n    return (layer_norm, add_2)\n";
    tare_model *p = prepared_by("tare", two_linears(), code);
    CHECK_HOLDS(decided(p, "add"), "left float: 'layer_norm' normalizes each row");
    CHECK_HOLDS(decided(p, "add_1"), "left float: 'layer_norm' normalizes each row");
    CHECK_HOLDS(decided(p, "view"), "left float: 'layer_norm' normalizes each row");
    CHECK_HOLDS(decided(p, "add_2"), "observed");
    tare_model_destroy(p);
    p = prepared_by("x86", two_linears(), code);
    CHECK_HOLDS(decided(p, "add"), "observed");
    tare_model_destroy(p);
}

static void what_is_computed_from_sizes_stays_float(void **state) {
    (void)state;
    // The number of steps of a padded convolution, as EnCodec computes it.
    static const char code[] = "def forward(self, x):\n    a = self.a(x)\n    size = a.size(0)\n"
                               "    truediv = size / 3\n    add = truediv + 1\n"
                               "    tensor = torch.tensor(size)\n    true_divide = tensor / 3\n"
                               "    add_1 = true_divide + 1\n    add_2 = a + add_1\n"
                               "    b = self.b(add_2)\n    return (b, add)\n";
    tare_model *p = prepared_by("tare", two_linears(), code);
    CHECK_HOLDS(decided(p, "add_1"), "left float: it is computed from sizes and integers");
    CHECK_HOLDS(decided(p, "add_2"), "observed");
    tare_model_destroy(p);
}

static void a_selector_of_the_user_s_own_wins(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("tare");
    tare_qconfig *qconfig = small_qconfig();
    tare_qconfig_mapping_set_module_name_object_type_order(mapping, "", "operator.add", 0, qconfig);
    tare_model *model = new_model(NULL, two_linears(),
                                  "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
                                  "    add = a + b\n"
                                  "    layer_norm = torch.nn.functional.layer_norm(add, (4,))\n"
                                  "    return layer_norm\n");
    tare_model *p = prepared(model, backend, mapping);
    CHECK_HOLDS(decided(p, "add"), "observed");
    tare_qconfig_release(qconfig);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void check_mask(const char *sum) {
    char code[512];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x, m):\n    a = self.a(x)\n%s"
                   "    sigmoid = torch.sigmoid(add)\n"
                   "    b = self.b(sigmoid)\n    return b\n",
                   sum);
    tare_model *p = prepared_by("tare", two_linears(), code);
    CHECK_HOLDS(decided(p, "add"), "left float: it holds the numbers of a mask");
    CHECK_HOLDS(decided(p, "sigmoid"), "left float: it reads the numbers of a mask");
    CHECK_HOLDS(decided(p, "b"), "observed");
    assert_null(output_observer(p, "add"));
    tare_model_destroy(p);
}

static void sums_with_masks_stay_float(void **state) {
    (void)state;
    check_mask("    mul = m * -3.4028234663852886e+38\n    add = a + mul\n");
    check_mask("    mul = m * -10000.0\n    view = mul.view(1, 4)\n    add = view + a\n");
    check_mask("    w = torch.where(m, a, -1e9)\n    add = w + 1.0\n");
    tare_model *p = prepared_by("tare", two_linears(),
                                "def forward(self, x, m):\n    a = self.a(x)\n    mul = m * -2.0\n"
                                "    add = a + mul\n    b = self.b(add)\n    return b\n");
    CHECK_HOLDS(decided(p, "add"), "observed");
    tare_model_destroy(p);
}

static void constants_with_infinities_are_masks(void **state) {
    (void)state;
    module *root = two_linears();
    tare_tensor *mask = new_input(2, (const int64_t[]){4, 4});
    ((float *)mask->data)[1] = -INFINITY;
    CHECK_DONE(tare__module_set_tensor(root, "mask", mask, false, job_error()));
    tare_tensor_release(mask);
    tare_model *p = prepared_by("tare", root,
                                "def forward(self, x):\n    a = self.a(x)\n    mask = self.mask\n"
                                "    add = a + mask\n    b = self.b(add)\n    return b\n");
    CHECK_HOLDS(decided(p, "add"), "left float: it holds the numbers of a mask");
    tare_model_destroy(p);
}

// The fixed parameters of sigmoid are those of its result.
static void a_float_input_of_sigmoid_has_a_range_of_its_own(void **state) {
    (void)state;
    static const char code[] = "def forward(self, x):\n    a = self.a(x)\n"
                               "    chunk = torch.chunk(a, 2, 1)\n    getitem = chunk[0]\n"
                               "    sigmoid = torch.sigmoid(getitem)\n"
                               "    cat = torch.cat([sigmoid, sigmoid], 1)\n    b = self.b(cat)\n"
                               "    return b\n";
    static const struct {
        const char *mapping, *input;
    } rows[] = {{"x86", "FixedQParamsObserver"}, {"tare", "HistogramObserver"}};
    for (size_t i = 0; i < 2; i++) {
        tare_model *p = prepared_by(rows[i].mapping, two_linears(), code);
        CHECK_HOLDS(input_observer(p, "sigmoid")->class->name, rows[i].input);
        CHECK_HOLDS(output_observer(p, "sigmoid")->class->name, "FixedQParamsObserver");
        tare_model_destroy(p);
    }
}

// The fixed range of tanh is coarser than small results; nothing quantized reads them.
static void results_with_a_fixed_range_stay_float(void **state) {
    (void)state;
    static const char code[] =
        "def forward(self, x):\n    a = self.a(x)\n    tanh = torch.tanh(a)\n"
        "    reshape = tanh.reshape(-1, 4)\n    sigmoid = torch.sigmoid(a)\n"
        "    b = self.b(sigmoid)\n    return (reshape, b, sigmoid)\n";
    tare_model *p = prepared_by("tare", two_linears(), code);
    CHECK_HOLDS(decided(p, "tanh"), "left float: its result is the model's");
    CHECK_HOLDS(decided(p, "reshape"), "left float: it would share the observer of its input");
    assert_null(output_observer(p, "tanh"));
    CHECK_HOLDS(decided(p, "a"), "observed");
    assert_non_null(output_observer(p, "a"));
    CHECK_HOLDS(decided(p, "sigmoid"), "observed"); // 'b' reads it, too
    tare_model_destroy(p);
    p = prepared_by("x86", two_linears(), code);
    CHECK_HOLDS(decided(p, "tanh"), "observed");
    tare_model_destroy(p);
}

// .. unless the caller wants the output quantized.
static void results_that_leave_quantized_are_observed(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("tare");
    tare_prepare_custom_config *custom = tare_prepare_custom_config_create();
    tare_prepare_custom_config_set_output_quantized_indexes(custom, (const int64_t[]){0}, 1);
    tare_model *model = new_model(NULL, two_linears(),
                                  "def forward(self, x):\n    a = self.a(x)\n"
                                  "    tanh = torch.tanh(a)\n    return tanh\n");
    const tare_prepare_options options = {
        .backend = backend, .qconfig_mapping = mapping, .custom_config = custom};
    tare_model *p = NULL;
    CHECK_DONE(tare_prepare_fx(model, &options, &p, job_error()));
    CHECK_HOLDS(decided(p, "tanh"), "observed");
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_prepare_custom_config_destroy(custom);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_float_input_of_sigmoid_has_a_range_of_its_own),
        cmocka_unit_test(observers_are_shared_along_operators_that_keep_values),
        cmocka_unit_test(sums_that_are_normalized_stay_float),
        cmocka_unit_test(results_with_a_fixed_range_stay_float),
        cmocka_unit_test(results_that_leave_quantized_are_observed),
        cmocka_unit_test(what_is_computed_from_sizes_stays_float),
        cmocka_unit_test(a_selector_of_the_user_s_own_wins),
        cmocka_unit_test(sums_with_masks_stay_float),
        cmocka_unit_test(constants_with_infinities_are_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
