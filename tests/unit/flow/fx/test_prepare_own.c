// SPDX-License-Identifier: Apache-2.0
// Under tare's own mapping: bounds and averages have ranges of their own, from observer to integer
// model, and islands of integers that do not pay stay float; under torch's nothing changes.
#include <math.h>
#include <stdlib.h>

#include "model/pass.h"
#include "support/models.h"
#include "support/test.h"

#define NN     "torch.nn."
#define LINEAR "in_features=4, out_features=4"
#define CONV   "in_channels=3, out_channels=3, kernel_size=(1, 1), stride=(1, 1)"

// From float to integers.
typedef struct flow {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *prepared, *lowered;
} flow;

static flow begin(const char *mapping, module *root, const char *code) {
    flow f = {.backend = builtin_backend("x86"), .mapping = default_mapping(mapping)};
    f.model = new_model(NULL, root, code);
    f.prepared = prepared(f.model, f.backend, f.mapping);
    return f;
}

static void end(flow *f) {
    tare_model_destroy(f->lowered);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->model);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_backend_config_destroy(f->backend);
}

static const module *output_observer(const tare_model *p, const char *name) {
    const node *n = tare__graph_find(p->root->graph, name);
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__is_observer_node(p, n->users[i])) return tare__called_module(p, n->users[i]);
    return NULL;
}

static module *two(const char *class, const char *config) {
    module *root = new_tree();
    put_module(root, NULL, "a", class, config);
    put_module(root, NULL, "b", class, config);
    put_module(root, NULL, "same", NN "Identity", "");
    return root;
}

// The greatest difference from the float model's results.
static double error_of(const flow *f, const tare_tensor *x) {
    tare_tensor *wanted = result_of(f->model, &x, 1), *found = result_of(f->lowered, &x, 1);
    double most = 0;
    assert_int_equal(wanted->count, found->count);
    for (int64_t i = 0; i < wanted->count; i++)
        most = fmax(most, fabs((double)tare__f32(wanted)[i] - (double)tare__f32(found)[i]));
    tare_tensor_release(wanted);
    tare_tensor_release(found);
    return most;
}

// --- bounds ---

static void check_bound(const char *between, const char *bound) {
    char code[512];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n    a = self.a(x)\n%s"
                   "    clamp = %s\n    b = self.b(clamp)\n    return b\n",
                   between, bound);
    flow f = begin("tare", two(NN "Linear", LINEAR), code);
    assert_null(output_observer(f.prepared, "a"));
    assert_non_null(output_observer(f.prepared, "clamp"));
    CALIBRATED(f.prepared, 64, 4);
    f.lowered = lowered(f.prepared, f.backend);
    // All of it in integers: only the result is dequantized.
    const char *first = strstr(printed(f.lowered), ".dequantize()");
    assert_non_null(first);
    assert_null(strstr(first + 1, ".dequantize()"));
    tare_tensor *x = NEW_INPUT(8, 4);
    assert_true(error_of(&f, x) < 0.1);
    tare_tensor_release(x);
    end(&f);
}

static void only_what_a_bound_lets_through_is_observed(void **state) {
    (void)state;
    check_bound("", "torch.nn.functional.relu6(a)");
    check_bound("", "torch.clamp(a, -0.25, 0.5)");
    check_bound("    same = self.same(a)\n", "torch.nn.functional.hardtanh(same)");
    check_bound("    view = a.view(-1, 4)\n", "torch.nn.functional.relu6(view)");
    // torch observes both, with one observer.
    flow f = begin("x86", two(NN "Linear", LINEAR),
                   "def forward(self, x):\n    a = self.a(x)\n"
                   "    relu6 = torch.nn.functional.relu6(a)\n    b = self.b(relu6)\n"
                   "    return b\n");
    assert_non_null(output_observer(f.prepared, "a"));
    assert_ptr_equal(output_observer(f.prepared, "a"), output_observer(f.prepared, "relu6"));
    end(&f);
}

static void a_second_reader_wants_what_the_bound_cuts_off(void **state) {
    (void)state;
    flow f = begin("tare", two(NN "Linear", LINEAR),
                   "def forward(self, x):\n    a = self.a(x)\n"
                   "    relu6 = torch.nn.functional.relu6(a)\n    add = a + relu6\n"
                   "    b = self.b(add)\n    return b\n");
    assert_non_null(output_observer(f.prepared, "a"));
    assert_ptr_equal(output_observer(f.prepared, "a"), output_observer(f.prepared, "relu6"));
    end(&f);
}

// --- averages ---

static void check_average(const char *average, const char *call) {
    char code[512];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n    a = self.a(x)\n    mean = %s\n"
                   "    b = self.b(mean)\n    return b\n",
                   average);
    flow f = begin("tare", two(NN "Conv2d", CONV), code);
    assert_non_null(output_observer(f.prepared, "mean"));
    assert_ptr_not_equal(output_observer(f.prepared, "a"), output_observer(f.prepared, "mean"));
    CALIBRATED(f.prepared, 8, 3, 6, 6);
    f.lowered = lowered(f.prepared, f.backend);
    CHECK_HOLDS(printed(f.lowered), call);
    // A step of the layer's range would be several times as wide.
    tare_tensor *x = NEW_INPUT(2, 3, 6, 6);
    assert_true(error_of(&f, x) < 0.02);
    tare_tensor_release(x);
    end(&f);
}

static void averages_have_a_range_of_their_own(void **state) {
    (void)state;
    check_average("torch.nn.functional.adaptive_avg_pool2d(a, (1, 1))",
                  "torch.ops.tare.adaptive_avg_pool2d(a, output_size = (1, 1), output_scale = ");
    check_average("a.mean((2, 3), keepdim = True)",
                  "torch.ops.tare.mean(a, dim = (2, 3), keepdim = True, output_scale = ");
    check_average("torch.mean(a, axis = (2, 3), keepdim = True)",
                  "torch.ops.tare.mean(a, dim = (2, 3), keepdim = True, output_scale = ");
    check_average("torch._C._nn.avg_pool2d(a, 6)",
                  "torch.ops.tare.avg_pool2d(a, kernel_size = 6, output_scale = ");
    // Of few values it is about as wide as they are, and torch shares all.
    static const char few[] = "def forward(self, x):\n    a = self.a(x)\n"
                              "    mean = torch._C._nn.avg_pool2d(a, 2)\n    b = self.b(mean)\n"
                              "    return b\n";
    static const char all[] = "def forward(self, x):\n    a = self.a(x)\n"
                              "    mean = a.mean((2, 3), keepdim = True)\n    b = self.b(mean)\n"
                              "    return b\n";
    const char *const shared[][2] = {{"tare", few}, {"x86", all}};
    for (size_t i = 0; i < 2; i++) {
        flow f = begin(shared[i][0], two(NN "Conv2d", CONV), shared[i][1]);
        assert_ptr_equal(output_observer(f.prepared, "a"), output_observer(f.prepared, "mean"));
        end(&f);
    }
}

static void a_product_with_a_number_has_a_range_of_its_own(void **state) {
    (void)state;
    flow f = begin("tare", two(NN "Linear", LINEAR),
                   "def forward(self, x):\n    a = self.a(x)\n    mul = 8.0 * a\n"
                   "    b = self.b(mul)\n    return b\n");
    assert_ptr_not_equal(output_observer(f.prepared, "a"), output_observer(f.prepared, "mul"));
    CALIBRATED(f.prepared, 64, 4);
    f.lowered = lowered(f.prepared, f.backend);
    CHECK_HOLDS(printed(f.lowered), "torch.ops.quantized.mul(8.0, a)");
    end(&f);
}

// --- islands ---

static void islands_without_a_product_stay_float(void **state) {
    (void)state;
    static const char code[] = "def forward(self, x):\n    a = self.a(x)\n    sin = torch.sin(a)\n"
                               "    tanh = torch.tanh(sin)\n    mul = tanh * 30.0\n"
                               "    cos = torch.cos(mul)\n    b = self.b(cos)\n    return b\n";
    flow f = begin("tare", two(NN "Linear", LINEAR), code);
    CHECK_HOLDS(decided(f.prepared, "tanh"),
                "left float: its neighbours are float and it has no matrix product");
    CHECK_HOLDS(decided(f.prepared, "mul"), "left float: its neighbours are float");
    CHECK_HOLDS(decided(f.prepared, "a"), "observed");
    CHECK_HOLDS(decided(f.prepared, "b"), "observed");
    assert_null(output_observer(f.prepared, "sin"));
    assert_null(output_observer(f.prepared, "tanh"));
    end(&f);
    f = begin("x86", two(NN "Linear", LINEAR), code);
    CHECK_HOLDS(decided(f.prepared, "tanh"), "observed");
    end(&f);
    // Beside a layer, or at the model's input, they stay in integers.
    f = begin("tare", two(NN "Linear", LINEAR),
              "def forward(self, x):\n    tanh = torch.tanh(x)\n    a = self.a(x)\n"
              "    tanh_1 = torch.tanh(a)\n    cos = torch.cos(tanh)\n"
              "    sin = torch.sin(tanh_1)\n    return (cos, sin)\n");
    CHECK_HOLDS(decided(f.prepared, "tanh"), "observed");
    CHECK_HOLDS(decided(f.prepared, "tanh_1"), "observed");
    end(&f);
}

// --- names ---

// torch's backends have patterns for torch.flatten and the method permute alone.
static void operators_that_move_values_are_known_by_any_name(void **state) {
    static const char *const calls[] = {"self.flat(a)", "a.flatten(0)", "torch.permute(a, (1, 0))",
                                        "torch.reshape(a, (-1,))"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char code[256];
        module *root = two(NN "Linear", LINEAR);
        put_module(root, NULL, "flat", NN "Flatten", "start_dim=0, end_dim=-1");
        (void)snprintf(code, sizeof code,
                       "def forward(self, x):\n    a = self.a(x)\n    moved = %s\n"
                       "    view = moved.view(4, 4)\n    b = self.b(view)\n    return b\n",
                       calls[i]);
        flow f = begin("tare", root, code);
        CHECK_HOLDS(decided(f.prepared, "moved"), "observed");
        CALIBRATED(f.prepared, 4, 4);
        f.lowered = lowered(f.prepared, f.backend);
        const char *first = strstr(printed(f.lowered), ".dequantize()"); // of the result
        assert_non_null(first);
        assert_null(strstr(first + 1, ".dequantize()"));
        tare_tensor *x = NEW_INPUT(4, 4);
        assert_true(error_of(&f, x) < 0.05);
        tare_tensor_release(x);
        end(&f);
    }
    module *root = two(NN "Linear", LINEAR);
    put_module(root, NULL, "flat", NN "Flatten", "start_dim=0, end_dim=-1");
    flow f = begin("x86", root,
                   "def forward(self, x):\n    a = self.a(x)\n    moved = self.flat(a)\n"
                   "    view = moved.view(4, 4)\n    b = self.b(view)\n    return b\n");
    CHECK_HOLDS(decided(f.prepared, "moved"), "left float: the backend 'x86' has no pattern");
    end(&f);
}

// --- weights ---

static void the_greatest_weight_of_a_channel_is_a_level(void **state) {
    (void)state;
    flow f = begin("tare", two(NN "Linear", LINEAR),
                   "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n    return b\n");
    CALIBRATED(f.prepared, 64, 4);
    f.lowered = lowered(f.prepared, f.backend);
    const tare_tensor *w = tare__module_find_tensor(f.lowered->root, "a.weight");
    assert_non_null(w);
    assert_int_equal(w->dtype, TARE_QINT8);
    for (int64_t row = 0; row < 4; row++) {
        int most = 0;
        for (int64_t k = 0; k < 4; k++) {
            const int q = ((const int8_t *)w->data)[4 * row + k];
            assert_true(q >= -127);
            most = abs(q) > most ? abs(q) : most;
        }
        assert_int_equal(most, 127);
    }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_a_bound_lets_through_is_observed),
        cmocka_unit_test(a_second_reader_wants_what_the_bound_cuts_off),
        cmocka_unit_test(averages_have_a_range_of_their_own),
        cmocka_unit_test(a_product_with_a_number_has_a_range_of_its_own),
        cmocka_unit_test(islands_without_a_product_stay_float),
        cmocka_unit_test(operators_that_move_values_are_known_by_any_name),
        cmocka_unit_test(the_greatest_weight_of_a_channel_is_a_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
