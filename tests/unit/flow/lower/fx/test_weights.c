// SPDX-License-Identifier: Apache-2.0
// Functions with a weight, lowered to functions on packed weights.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include <math.h>

#include "model/pass.h"

static const char dynamic_mapping[] =
    "{\"global\": {\"activation\": {\"class\": \"PlaceholderObserver\", \"kwargs\": {\"dtype\": "
    "\"torch.quint8\", \"quant_min\": 0, \"quant_max\": 255, \"is_dynamic\": true}}, \"weight\": "
    "{\"class\": \"MinMaxObserver\", \"kwargs\": {\"dtype\": \"torch.qint8\", \"qscheme\": "
    "\"torch.per_tensor_symmetric\"}}}}";

static void put_parameter(module *root, const char *name, int ndim, const int64_t *shape) {
    tare_tensor *t = new_input(ndim, shape);
    CHECK_DONE(
        tare__module_set_tensor_path(root, name, t, true, &tare__class_container, job_error()));
    tare_tensor_release(t);
}
#define PUT(root, name, ...)                                                                       \
    put_parameter((root), (name), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),        \
                  (const int64_t[]){__VA_ARGS__})

// Everything that the codes below name.
static tare_model *model_of_integer(const char *code) {
    module *root = new_tree();
    put_module(root, NULL, "relu", "torch.nn.ReLU", "");
    PUT(root, "w", 3, 4);
    PUT(root, "v", 3, 3);
    PUT(root, "b", 3);
    PUT(root, "k1", 3, 2, 2);
    PUT(root, "k2", 4, 2, 3, 3);
    PUT(root, "k3", 3, 2, 2, 2, 2);
    PUT(root, "b4", 4);
    PUT(root, "t2", 4, 2, 2, 2);
    PUT(root, "blk.0.w", 3, 4);
    return new_model(NULL, root, code);
}

typedef struct flow {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *prepared, *lowered;
} flow;

static tare_tensor *faster_result_of(const tare_model *model, const tare_tensor *const *inputs,
                                     size_t count) {
    tare_session *session = NULL;
    tare_tensor *out = NULL;
    size_t found = 0;
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    for (int turn = 0; turn < 2; turn++) { // the second one uses what the first one packed
        tare_tensor_release(out);
        CHECK_DONE(tare_session_run(session, inputs, count, &out, 1, &found, job_error()));
    }
    tare_session_destroy(session);
    return out;
}

// What was lowered computes what the reference form stands for, within a few steps; faster kernels
// and a file change nothing.
static void check_results(const flow *f, size_t ndim, const int64_t *shape) {
    tare_model *r = referenced(f->prepared, f->backend), *read = NULL;
    CHECK_DONE(tare_model_write(f->lowered, temp_path("m.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("m.safetensors"), NULL, &read, job_error()));
    assert_string_equal(printed(read), printed(f->lowered));
    tare_tensor *x = new_input((int)ndim, shape);
    const tare_tensor *inputs[] = {x, x};
    const size_t count = tare_model_input_count(f->lowered);
    tare_tensor *got = result_of(f->lowered, inputs, count), *wanted = result_of(r, inputs, count);
    tare_tensor *fast = faster_result_of(f->lowered, inputs, count);
    tare_tensor *again = result_of(read, inputs, count);
    check_same_tensor(got, fast);
    check_same_tensor(got, again);
    assert_int_equal(got->count, wanted->count);
    for (int64_t i = 0; i < got->count; i++)
        if (fabs(tare__tensor_get(got, i) - tare__tensor_get(wanted, i)) > 0.08)
            fail_msg("%lld: %g, wanted %g", (long long)i, tare__tensor_get(got, i),
                     tare__tensor_get(wanted, i));
    tare_tensor *const tensors[] = {got, wanted, fast, again, x};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) tare_tensor_release(tensors[i]);
    tare_model_destroy(r);
    tare_model_destroy(read);
}

static flow flow_of(tare_model *model, bool is_dynamic, size_t ndim, const int64_t *shape) {
    flow f = {.backend = builtin_backend("native"), .model = model};
    if (is_dynamic)
        CHECK_DONE(tare_qconfig_mapping_from_json(dynamic_mapping, sizeof dynamic_mapping - 1,
                                                  &f.mapping, job_error()));
    else
        f.mapping = default_mapping("x86");
    f.prepared = prepared(f.model, f.backend, f.mapping);
    calibrated(f.prepared, ndim, shape);
    f.lowered = lowered(f.prepared, f.backend);
    check_results(&f, ndim, shape);
    return f;
}
#define FLOW(code, is_dynamic, ...)                                                                \
    flow_of(model_of_integer(code), (is_dynamic),                                                  \
            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                              \
            (const int64_t[]){__VA_ARGS__})

static void drop(flow *f) {
    tare_model_destroy(f->lowered);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->model);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_backend_config_destroy(f->backend);
}

static void functions_read_packed_weights(void **state) {
    (void)state;
    flow f = FLOW("def forward(self, x):\n"
                  "    k2 = self.k2\n    b4 = self.b4\n"
                  "    conv2d = torch.conv2d(x, k2, b4, (1, 1), (1, 1), (1, 1), 1)\n"
                  "    relu = torch.nn.functional.relu(conv2d, inplace = False)\n"
                  "    t2 = self.t2\n"
                  "    conv_transpose2d = torch.conv_transpose2d(relu, t2, None, (2, 2), (0, 0), "
                  "(0, 0), 1, (1, 1))\n"
                  "    reshape = conv_transpose2d.reshape(1, 2, -1)\n"
                  "    k1 = self.k1\n"
                  "    conv1d = torch.conv1d(reshape, k1, None, 1, 0, 1, 1)\n"
                  "    return conv1d\n",
                  false, 1, 2, 5, 5);
    CHECK_HOLDS(
        printed(f.lowered),
        "    _packed_weight_0 = self._packed_weight_0\n"
        "    _scale_1 = self._scale_1\n"
        "    _zero_point_1 = self._zero_point_1\n"
        "    conv2d = torch.ops.quantized.conv2d_relu(quantize_per_tensor, _packed_weight_0, "
        "_scale_1, _zero_point_1);  quantize_per_tensor = _packed_weight_0 = _scale_1 = "
        "_zero_point_1 = None\n"
        "    _packed_weight_1 = self._packed_weight_1\n"
        "    _scale_3 = self._scale_3\n"
        "    _zero_point_3 = self._zero_point_3\n"
        "    conv_transpose2d = torch.ops.quantized.conv_transpose2d(conv2d, _packed_weight_1, "
        "_scale_3, _zero_point_3);  conv2d = _packed_weight_1 = _scale_3 = _zero_point_3 = None\n"
        "    reshape = conv_transpose2d.reshape(1, 2, -1);  conv_transpose2d = None\n"
        "    _packed_weight_2 = self._packed_weight_2\n"
        "    _scale_6 = self._scale_6\n"
        "    _zero_point_6 = self._zero_point_6\n"
        "    conv1d = torch.ops.quantized.conv1d(reshape, _packed_weight_2, _scale_6, "
        "_zero_point_6);  reshape = _packed_weight_2 = _scale_6 = _zero_point_6 = None\n"
        "    dequantize_7 = conv1d.dequantize();  conv1d = None\n");
    assert_true(strncmp(printed(f.lowered), "GraphModule()\n", 14) == 0);
    CHECK_HOLDS(decided(f.lowered, "conv2d"), "torch.ops.quantized.conv2d_relu");
    assert_null(tare__module_find_tensor(f.lowered->root, "k2")); // nothing reads it any more
    tare_coverage c;
    CHECK_DONE(tare_model_coverage(f.lowered, &c, job_error()));
    assert_int_equal(c.quantized_op_count, c.op_count);
    drop(&f);
}

static void volumes_and_products_are_lowered(void **state) {
    (void)state;
    flow f = FLOW("def forward(self, x):\n    k3 = self.k3\n    b = self.b\n"
                  "    conv3d = torch.conv3d(x, k3, b, (1, 1, 1), (0, 0, 0), (1, 1, 1), 1)\n"
                  "    relu = self.relu(conv3d)\n    return relu\n",
                  false, 1, 2, 3, 3, 3);
    CHECK_HOLDS(printed(f.lowered), "    conv3d = torch.ops.quantized.conv3d_relu(");
    drop(&f);
    f = FLOW("def forward(self, x):\n    w = self.w\n    v = self.v\n    b = self.b\n"
             "    linear = torch._C._nn.linear(x, w)\n"
             "    linear_1 = torch._C._nn.linear(linear, v, b)\n    return linear_1\n",
             false, 5, 4);
    CHECK_HOLDS(printed(f.lowered), "    linear_1 = torch.ops.quantized.linear(linear, "
                                    "_packed_weight_1, _scale_3, _zero_point_3);");
    drop(&f);
}

static void keywords_and_plain_numbers_are_understood(void **state) {
    (void)state;
    static const struct {
        const char *call, *wanted;
    } rows[] = {
        {"torch.conv2d(x, k2, b4, padding = 1)", "conv2d(quantize_per_tensor, _packed_weight_0"},
        {"torch.conv2d(x, weight = k2, bias = b4, stride = 2, dilation = (1, 1))", "conv2d("},
        {"torch.conv2d(x, k2, None, 1, 'same')", "conv2d("},
        {"torch.conv2d(input = x, weight = k2)", "conv2d(quantize_per_tensor, _packed_weight_0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char code[512];
        snprintf(code, sizeof code,
                 "def forward(self, x):\n    k2 = self.k2\n    b4 = self.b4\n    conv2d = %s\n"
                 "    return conv2d\n",
                 rows[i].call);
        flow f = FLOW(code, false, 1, 2, 5, 5);
        CHECK_HOLDS(printed(f.lowered), "torch.ops.quantized.");
        CHECK_HOLDS(printed(f.lowered), rows[i].wanted);
        drop(&f);
    }
    flow f = FLOW("def forward(self, x):\n    w = self.w\n    b = self.b\n"
                  "    linear = torch._C._nn.linear(x, weight = w, bias = b)\n"
                  "    return linear\n",
                  false, 5, 4);
    CHECK_HOLDS(printed(f.lowered), "    linear = torch.ops.quantized.linear(");
    drop(&f);
}

static void packed_weights_are_named_after_the_scope(void **state) {
    (void)state;
    tare_model *model =
        model_of_integer("def forward(self, x):\n    blk_0_w = getattr(self.blk, \"0\").w\n"
                         "    linear = torch._C._nn.linear(x, blk_0_w)\n"
                         "    linear_1 = torch._C._nn.linear(x, blk_0_w)\n"
                         "    return (linear, linear_1)\n");
    tare__graph_find(model->root->graph, "linear")->scope_path = "blk.0";
    tare__graph_find(model->root->graph, "linear_1")->scope_path = "blk.0";
    const int64_t shape[] = {5, 4};
    flow f = {
        .backend = builtin_backend("native"), .mapping = default_mapping("x86"), .model = model};
    f.prepared = prepared(f.model, f.backend, f.mapping);
    calibrated(f.prepared, 2, shape);
    f.lowered = lowered(f.prepared, f.backend);
    CHECK_HOLDS(printed(f.lowered), "    blk_0_packed_weight_0 = self.blk_0_packed_weight_0\n");
    CHECK_HOLDS(printed(f.lowered), "    blk_0_packed_weight_1 = self.blk_0_packed_weight_1\n");
    drop(&f);
}

static void a_relu_without_a_fused_form_follows_on_the_integers(void **state) {
    (void)state;
    flow f = FLOW("def forward(self, x):\n    t2 = self.t2\n"
                  "    conv_transpose2d = torch.conv_transpose2d(x, t2, None, (2, 2))\n"
                  "    relu = torch.nn.functional.relu(conv_transpose2d, inplace = False)\n"
                  "    return relu\n",
                  false, 1, 4, 3, 3);
    CHECK_HOLDS(printed(f.lowered), "    relu = torch.nn.functional.relu(conv_transpose2d, inplace "
                                    "= False);  conv_transpose2d = None\n");
    drop(&f);
}

static void weights_are_computed_once(void **state) {
    (void)state;
    flow f = FLOW("def forward(self, x):\n    w = self.w\n    neg = torch.neg(w)\n"
                  "    linear = torch._C._nn.linear(x, neg)\n    return linear\n",
                  false, 5, 4);
    CHECK_HOLDS(printed(f.lowered), "    linear = torch.ops.quantized.linear(");
    CHECK_LACKS(printed(f.lowered), "torch.neg");
    drop(&f);
}

static void weights_that_depend_on_the_input_stay(void **state) {
    (void)state;
    flow f = FLOW("def forward(self, x, y):\n    linear = torch._C._nn.linear(x, y)\n"
                  "    return linear\n",
                  false, 5, 4);
    CHECK_HOLDS(printed(f.lowered), "    linear = torch._C._nn.linear(");
    drop(&f);
    // A bias, too.
    f = FLOW("def forward(self, x):\n    w = self.w\n    exp = torch.exp(x)\n"
             "    select = exp.sum(1)\n"
             "    linear = torch._C._nn.linear(x, w, select)\n    return linear\n",
             false, 3, 4);
    CHECK_HOLDS(printed(f.lowered), "    linear = torch._C._nn.linear(");
    drop(&f);
}

static void dynamic_functions_quantize_by_themselves(void **state) {
    (void)state;
    flow f = FLOW("def forward(self, x):\n    w = self.w\n    v = self.v\n    b = self.b\n"
                  "    linear = torch._C._nn.linear(x, w, bias = b)\n    relu = self.relu(linear)\n"
                  "    linear_1 = torch._C._nn.linear(relu, v)\n"
                  "    exp = torch.exp(linear_1)\n    return exp\n",
                  true, 5, 4);
    CHECK_HOLDS(printed(f.lowered),
                "GraphModule()\n\ndef forward(self, x):\n"
                "    _packed_weight_0 = self._packed_weight_0\n"
                "    linear = torch.ops.quantized.linear_relu_dynamic(x, _packed_weight_0, True);  "
                "x = _packed_weight_0 = None\n"
                "    _packed_weight_1 = self._packed_weight_1\n"
                "    linear_1 = torch.ops.quantized.linear_dynamic(linear, _packed_weight_1, True);"
                "  linear = _packed_weight_1 = None\n"
                "    exp = torch.exp(linear_1);  linear_1 = None\n    return exp\n");
    tare_coverage c;
    CHECK_DONE(tare_model_coverage(f.lowered, &c, job_error()));
    assert_int_equal(c.quantized_op_count, 3); // exp reads floats
    assert_int_equal(c.op_count, 4);
    drop(&f);
}

static void packed_weights_serve_their_own_function_only(void **state) {
    (void)state;
    static const struct {
        const char *target, *words;
        bool wants_weights;
    } rows[] = {
        {"torch.ops.quantized.conv2d", "cannot use the weights of a tare.PackedLinear", true},
        {"torch.ops.quantized.linear_dynamic", "at most 3 arguments", true},
        {"torch.ops.quantized.linear", "expected packed weights", false},
        {"torch.ops.quantized.add", "", true},
        {"torch.nn.functional.relu", "", true},
        {"torch.cat", "", true},
    };
    flow f = FLOW("def forward(self, x):\n    w = self.w\n"
                  "    linear = torch._C._nn.linear(x, w)\n    return linear\n",
                  false, 5, 4);
    tare_tensor *x = NEW_INPUT(5, 4), *y = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *broken = lowered(f.prepared, f.backend);
        node *n = tare__graph_find(broken->root->graph, "linear");
        n->target = rows[i].target;
        if (!rows[i].wants_weights)
            CHECK_DONE(tare__node_replace_input(n, tare__node_arg(n, 1), tare__node_arg(n, 0),
                                                job_error()));
        for (int reference = 0; reference < 2; reference++) {
            const tare_session_options options = {.reference = reference == 1};
            tare_session *s = NULL;
            size_t count = 0;
            CHECK_DONE(tare_session_create(broken, &options, &s, job_error()));
            CHECK_REFUSED(
                tare_session_run(s, (const tare_tensor *const *)&x, 1, &y, 1, &count, job_error()),
                TARE_INVALID_ARGUMENT, rows[i].words);
            tare_session_destroy(s);
        }
        tare_model_destroy(broken);
    }
    tare_tensor_release(x);
    drop(&f);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char code[] =
        "def forward(self, x):\n    k2 = self.k2\n    b4 = self.b4\n"
        "    conv2d = torch.conv2d(x, k2, b4, padding = 1)\n"
        "    relu = torch.nn.functional.relu(conv2d, inplace = False)\n    return relu\n";
    flow f = FLOW(code, false, 1, 2, 3, 3);
    const tare_convert_options options = {.backend = f.backend};
    tare_model *out = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_convert_fx(f.prepared, &options, &out, NULL),
                           tare_model_destroy(out))
    tare_tensor *x = NEW_INPUT(1, 2, 3, 3), *y = NULL;
    tare_session *s = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_create(f.lowered, NULL, &s, job_error()));
    EVERY_ALLOCATION_FAILS(
        status,
        status = tare_session_run(s, (const tare_tensor *const *)&x, 1, &y, 1, &count, NULL),
        tare_tensor_release(y))
    tare_session_destroy(s);
    tare_tensor_release(x);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_read_packed_weights),
        cmocka_unit_test(volumes_and_products_are_lowered),
        cmocka_unit_test(keywords_and_plain_numbers_are_understood),
        cmocka_unit_test(packed_weights_are_named_after_the_scope),
        cmocka_unit_test(a_relu_without_a_fused_form_follows_on_the_integers),
        cmocka_unit_test(weights_are_computed_once),
        cmocka_unit_test(weights_that_depend_on_the_input_stay),
        cmocka_unit_test(dynamic_functions_quantize_by_themselves),
        cmocka_unit_test(packed_weights_serve_their_own_function_only),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
