// SPDX-License-Identifier: Apache-2.0
// Steps on small networks: the float results stay, and what was uneven is even.
#include <math.h>
#include <string.h>

#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"
#include "tare/improve.h"

// --- helpers ---

static tare_model *prepare(const tare_model *model) {
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *m = NULL;
    const tare_prepare_options options = {.qconfig_mapping = mapping};
    CHECK_DONE(tare_prepare_fx(model, &options, &m, job_error()));
    tare_qconfig_mapping_destroy(mapping);
    return m;
}

static double distance(const tare_model *a, const tare_model *b, const tare_tensor *x) {
    tare_tensor *y = result_of(a, &x, 1), *z = result_of(b, &x, 1);
    double largest = 0, size = 0;
    for (int64_t i = 0; i < y->count; i++) {
        size = fmax(size, fabs((double)tare__f32(y)[i]));
        largest = fmax(largest, fabs((double)tare__f32(y)[i] - (double)tare__f32(z)[i]));
    }
    tare_tensor_release(y);
    tare_tensor_release(z);
    assert_true(size > 0);
    return largest / size;
}

// Of the integer model.
static tare_tensor *quantized_result(const tare_model *prepared, const tare_backend_config *backend,
                                     const tare_tensor *x) {
    tare_model *integers = lowered(prepared, backend);
    tare_tensor *y = result_of(integers, &x, 1);
    tare_model_destroy(integers);
    return y;
}

static void scale_values(const tare_model *m, const char *path, int64_t first, int64_t count,
                         float by) {
    float *values = tare__f32(tare__module_find_tensor(m->root, path));
    for (int64_t i = 0; i < count; i++) values[first + i] *= by;
}

// --- cross-layer equalization ---

static tare_model *residual_network(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Conv2d",
               "in_channels=2, out_channels=4, kernel_size=3, padding=1");
    put_module(root, NULL, "b", "torch.nn.Conv2d",
               "in_channels=4, out_channels=4, kernel_size=3, padding=1, groups=4");
    put_module(root, NULL, "c", "torch.nn.Conv2d", "in_channels=4, out_channels=4, kernel_size=1");
    put_module(root, NULL, "d", "torch.nn.Conv2d", "in_channels=4, out_channels=3, kernel_size=1");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    a = self.a(x)\n"
                     "    relu = torch.relu(a)\n"
                     "    b = self.b(relu)\n"
                     "    c = self.c(b)\n"
                     "    add = a + c\n"
                     "    pool = torch.nn.functional.max_pool2d(add, 2)\n"
                     "    d = self.d(pool)\n"
                     "    return d\n");
}

static double peak(const float *w, int64_t count, int64_t stride) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)w[i * stride]));
    return most;
}

// The worst ratio of what a channel has in b's rows and in c's columns.
static double unevenness(const tare_model *m) {
    const float *b = tare__f32(tare__module_find_tensor(m->root, "b.weight"));
    const float *c = tare__f32(tare__module_find_tensor(m->root, "c.weight"));
    double worst = 1;
    for (int64_t k = 0; k < 4; k++)
        worst = fmax(worst, exp(fabs(log(peak(b + 9 * k, 9, 1) / peak(c + k, 4, 4)))));
    return worst;
}

// a and c give what the sum ties together; b is grouped; everything has a channel of a thousandth.
static void equalization_crosses_sums_pools_and_grouped_layers(void **state) {
    (void)state;
    tare_model *model = residual_network();
    scale_values(model, "a.weight", 0, 18, 1000);
    scale_values(model, "b.weight", 9, 9, 0.001F);
    scale_values(model, "c.weight", 8, 4, 100);
    tare_model *first = prepare(model), *made = NULL;
    tare_tensor *x = NEW_INPUT(2, 2, 6, 6);
    size_t count = 0;
    CHECK_DONE(tare_equalize_layers(first, &count, &made, job_error()));
    assert_int_equal(count, 4);
    assert_true(distance(first, made, x) < 1e-5);
    // Between b and c, which nothing else reads, each channel has one range on both sides.
    assert_true(unevenness(first) > 20);
    assert_true(unevenness(made) < 1.1);
    CHECK_HOLDS(decided(made, "a"), "equalization");
    tare_tensor_release(x);
    tare_model_destroy(made);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

// A sigmoid between two layers, and a result that the model gives, keep their scales.
static void equalization_leaves_what_it_may_not_scale(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Linear", "in_features=3, out_features=4");
    put_module(root, NULL, "b", "torch.nn.Linear", "in_features=4, out_features=4");
    put_module(root, NULL, "c", "torch.nn.Linear", "in_features=4, out_features=2");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    a = self.a(x)\n"
                                  "    sigmoid = torch.sigmoid(a)\n"
                                  "    b = self.b(sigmoid)\n"
                                  "    c = self.c(b)\n"
                                  "    return (c, b)\n");
    scale_values(model, "a.weight", 0, 3, 1000);
    scale_values(model, "b.weight", 0, 4, 1000);
    tare_model *first = prepare(model), *made = NULL;
    size_t count = 9;
    CHECK_DONE(tare_equalize_layers(first, &count, &made, job_error()));
    assert_int_equal(count, 0);
    tare_model_destroy(made);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

// --- rotations ---

static tare_model *attention_network(void) {
    module *root = new_tree();
    for (int i = 0; i < 5; i++)
        put_module(root, NULL, (const char *[]){"q", "k", "v", "o", "last"}[i], "torch.nn.Linear",
                   i < 4 ? "in_features=32, out_features=32" : "in_features=32, out_features=6");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    q = self.q(x)\n"
                     "    k = self.k(x)\n"
                     "    v = self.v(x)\n"
                     "    q_view = q.view(2, 5, 4, 8)\n"
                     "    q_heads = q_view.transpose(1, 2)\n"
                     "    k_view = k.view(2, 5, 4, 8)\n"
                     "    k_heads = k_view.permute(0, 2, 3, 1)\n"
                     "    v_view = v.view(2, 5, -1, 8)\n"
                     "    v_heads = v_view.transpose(1, 2)\n"
                     "    scores = torch.matmul(q_heads, k_heads)\n"
                     "    weights = torch.nn.functional.softmax(scores, dim=-1)\n"
                     "    mixed = torch.matmul(weights, v_heads)\n"
                     "    back = mixed.transpose(1, 2)\n"
                     "    joined = back.reshape(2, 5, -1)\n"
                     "    o = self.o(joined)\n"
                     "    last = self.last(o)\n"
                     "    return last\n");
}

// Values are rotated within heads, and what o gives within all its channels; queries and keys,
// which go into a product of their own, are not.
static void rotations_change_no_float_result(void **state) {
    (void)state;
    tare_model *model = attention_network();
    scale_values(model, "v.weight", 3 * 32, 32, 100); // a channel of large values
    tare_model *first = prepare(model), *made = NULL;
    tare_tensor *x = NEW_INPUT(2, 5, 32);
    size_t count = 0;
    CHECK_DONE(tare_rotate_layers(first, &count, &made, job_error()));
    assert_int_equal(count, 2);
    assert_true(distance(first, made, x) < 1e-5);
    CHECK_HOLDS(decided(made, "v"), "rotated by a Hadamard matrix of size 8");
    CHECK_HOLDS(decided(made, "last"), "undoes a rotation, by a Hadamard matrix of size 32");
    // The large channel is spread over its head.
    const float *w = tare__f32(tare__module_find_tensor(made->root, "v.weight"));
    double least = INFINITY, most = 0;
    for (int row = 0; row < 8; row++) {
        const double at = peak(w + row * 32, 32, 1);
        least = fmin(least, at);
        most = fmax(most, at);
    }
    assert_true(most < 1.5 * least);
    tare_tensor_release(x);
    tare_model_destroy(made);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

// An activation between, another reader, a last dimension that cuts blocks.
static void rotations_stay_out_of_what_is_not_linear(void **state) {
    (void)state;
    static const char *const between[] = {
        "    y = torch.relu(a)\n    z = self.b(y)\n    return z\n",
        "    z = self.b(a)\n    return (z, a)\n",
        "    y = a.transpose(0, 1)\n    z = self.b(y)\n    return z\n",
        "    y = a.reshape(-1, 3)\n    z = self.c(y)\n    return z\n"};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        char code[256];
        module *root = new_tree();
        put_module(root, NULL, "a", "torch.nn.Linear", "in_features=8, out_features=8");
        put_module(root, NULL, "b", "torch.nn.Linear", "in_features=8, out_features=8");
        put_module(root, NULL, "c", "torch.nn.Linear", "in_features=3, out_features=8");
        (void)snprintf(code, sizeof code, "def forward(self, x):\n    a = self.a(x)\n%s",
                       between[i]);
        tare_model *model = new_model(NULL, root, code), *first = prepare(model), *made = NULL;
        size_t count = 9;
        CHECK_DONE(tare_rotate_layers(first, &count, &made, job_error()));
        assert_int_equal(count, 0);
        tare_model_destroy(made);
        tare_model_destroy(first);
        tare_model_destroy(model);
    }
}

// --- scales of what layers read ---

static tare_model *block(bool has_residual) {
    module *root = new_tree();
    module *norm = put_module(root, NULL, "norm", "torch.nn.LayerNorm", "normalized_shape=(8,)");
    for (int i = 0; i < 2; i++) {
        tare_tensor *t = NEW_INPUT(8);
        for (int k = 0; k < 8; k++) tare__f32(t)[k] = i == 0 ? 0.05F : 0.01F * (float)k;
        if (i == 0) tare__f32(t)[3] = 100; // a channel of large values
        CHECK_DONE(tare__module_set_tensor(norm, i == 0 ? "weight" : "bias", t, true, job_error()));
        tare_tensor_release(t);
    }
    put_module(root, NULL, "up", "torch.nn.Linear", "in_features=8, out_features=16");
    put_module(root, NULL, "down", "torch.nn.Linear", "in_features=16, out_features=8");
    return new_model(NULL, root,
                     has_residual ? "def forward(self, x):\n"
                                    "    norm = self.norm(x)\n"
                                    "    up = self.up(norm)\n"
                                    "    gelu = torch.nn.functional.gelu(up)\n"
                                    "    down = self.down(gelu)\n"
                                    "    add = down + norm\n"
                                    "    return add\n"
                                  : "def forward(self, x):\n"
                                    "    norm = self.norm(x)\n"
                                    "    up = self.up(norm)\n"
                                    "    gelu = torch.nn.functional.gelu(up)\n"
                                    "    down = self.down(gelu)\n"
                                    "    return down\n");
}

static void check_scaling(bool has_residual, tare_scale_method method) {
    tare_model *model = block(has_residual);
    tare_model *first = prepare(model), *made = NULL;
    tare_tensor *x = NEW_INPUT(4, 5, 8);
    tare_data *data = data_in_file(model, "x.npz", x);
    size_t count = 0;
    const tare_scale_options options = {.struct_size = sizeof options, .method = method};
    CHECK_DONE(tare_scale_inputs(first, data, &options, &count, &made, job_error()));
    assert_true(count >= 1);
    assert_true(distance(first, made, x) < 1e-4);
    const tare_scale_options none = {.struct_size = sizeof none, .method = method, .seconds = 1e-9};
    tare_model *unchanged = NULL;
    size_t none_count = 9;
    CHECK_DONE(tare_scale_inputs(first, data, &none, &none_count, &unchanged, job_error()));
    assert_int_equal(none_count, 0);
    tare_model_destroy(unchanged);
    if (has_residual) {
        CHECK_HOLDS(printed(made), "scaled_input");
        CHECK_HOLDS(decided(made, "up"), "a new multiplication in front");
    } else {
        CHECK_HOLDS(decided(made, "up"), "from the norm in front");
    }
    // It is quantized and runs like any other.
    CALIBRATED(made, 4, 5, 8);
    tare_model *integers = NULL;
    CHECK_DONE(tare_convert_fx(made, NULL, &integers, job_error()));
    assert_true(distance(first, integers, x) < 0.1);
    tare_model_destroy(integers);
    tare_data_close(data);
    tare_tensor_release(x);
    tare_model_destroy(made);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

static void scales_move_into_weights(void **state) {
    (void)state;
    for (int method = TARE_SCALE_SMOOTH; method <= TARE_SCALE_AWQ; method++) {
        check_scaling(true, (tare_scale_method)method);
        check_scaling(false, (tare_scale_method)method);
    }
}

// --- bits of weights ---

static int64_t bits_of(const tare_model *prepared, const tare_backend_config *backend,
                       const char *path) {
    const tare_convert_options options = {.struct_size = sizeof options, .backend = backend};
    tare_model *integers = NULL;
    CHECK_DONE(tare_convert_fx(prepared, &options, &integers, job_error()));
    const int64_t bits = tare__module_int(tare__module_find(integers->root, path), "bits", 0);
    tare_model_destroy(integers);
    return bits;
}

// Of 4 bits in groups, named layers get 8; those of 8 bits stay as they are.
static void weights_of_few_bits_get_more(void **state) {
    (void)state;
    tare_model *model = attention_network(), *first = NULL, *made = NULL, *again = NULL;
    tare_qconfig_mapping *mapping = default_mapping("int4_weight_only_g32");
    tare_backend_config *backend = builtin_backend("tare");
    const tare_prepare_options options = {.qconfig_mapping = mapping, .backend = backend};
    CHECK_DONE(tare_prepare_fx(model, &options, &first, job_error()));
    static const char *const nodes[] = {"k", "last", "scores", "nobody"};
    size_t count = 0;
    CHECK_DONE(tare_widen_weights(first, nodes, 4, &count, &made, job_error()));
    assert_int_equal(count, 2);
    CHECK_HOLDS(decided(made, "k"), "8 bits instead of fewer");
    assert_int_equal(bits_of(made, backend, "q"), 4);
    assert_int_equal(bits_of(made, backend, "k"), 8);
    assert_int_equal(bits_of(made, backend, "last"), 8);
    CHECK_DONE(tare_widen_weights(made, NULL, 0, &count, &again, job_error()));
    assert_int_equal(count, 3);
    assert_int_equal(bits_of(again, backend, "q"), 8);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(again);
    tare_model_destroy(made);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

// --- rounding ---

static double squared(const tare_tensor *a, const tare_tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const double rest = (double)tare__f32(a)[i] - (double)tare__f32(b)[i];
        sum += rest * rest;
    }
    return sum;
}

// Weights of 3 bits, activations of 8, on the digits: each way loses less than nearest levels.
static void rounding_by_inputs_loses_less(void **state) {
    (void)state;
    tare_model *model = NULL, *first = NULL;
    tare_qconfig_mapping *mapping = NULL;
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    const tare_data_options options = {.batch_size = 16, .sample_limit = 64};
    CHECK_DONE(tare_model_read("data/digits/digits.safetensors", NULL, &model, job_error()));
    CHECK_DONE(tare_qconfig_mapping_read("tests/data/weights_3_bits.json", &mapping, job_error()));
    const tare_prepare_options prepare_options = {.qconfig_mapping = mapping};
    CHECK_DONE(tare_prepare_fx(model, &prepare_options, &first, job_error()));
    CHECK_DONE(tare_data_open("data/digits/train.npz", model, &options, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(first, data, NULL, NULL, job_error()));
    CHECK_DONE(tare_data_rewind(data, job_error()));
    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    tare_tensor *x = NULL;
    CHECK_DONE(tare__tensor_copy(batch.inputs[0], &x, job_error()));
    tare_tensor *exact = result_of(model, (const tare_tensor *const *)&x, 1);
    tare_tensor *plain = quantized_result(first, NULL, x);
    const double before = squared(exact, plain);
    for (int method = TARE_ROUND_GPTQ; method <= TARE_ROUND_ADAROUND; method++) {
        const tare_round_options o = {.struct_size = sizeof o, .method = (tare_round_method)method};
        tare_model *made = NULL;
        size_t count = 0;
        CHECK_DONE(tare_round_weights(first, data, &o, &count, &made, job_error()));
        assert_true(count >= 4);
        CHECK_HOLDS(explained(made, "conv2"), "its weight is rounded to suit its input");
        tare_tensor *y = quantized_result(made, NULL, x);
        assert_true(squared(exact, y) < (method == TARE_ROUND_GPTQ ? 0.3 : 0.6) * before);
        tare_tensor_release(y);
        tare_model_destroy(made);
        // Without time nothing is rounded, and the record says so.
        const tare_round_options none = {
            .struct_size = sizeof none, .method = o.method, .seconds = 1e-9};
        CHECK_DONE(tare_round_weights(first, data, &none, &count, &made, job_error()));
        assert_int_equal(count, 0);
        CHECK_HOLDS(explained(made, "conv2"), "no time was left for it");
        tare_model_destroy(made);
    }
    tare_tensor_release(x);
    tare_tensor_release(exact);
    tare_tensor_release(plain);
    tare_data_close(data);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

// --- inputs quantized in each run ---

static double squared_of_row(const tare_tensor *a, const tare_tensor *b, int64_t row) {
    const int64_t size = a->shape[1];
    double sum = 0;
    for (int64_t i = row * size; i < (row + 1) * size; i++) {
        const double rest = (double)tare__f32(a)[i] - (double)tare__f32(b)[i];
        sum += rest * rest;
    }
    return sum;
}

// One row is 100 times as large as the others, which static ranges round to nothing.
static void rows_get_scales_of_their_own(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("tare");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = linear_relu_linear(32, 32, 8), *first = prepared(model, backend, mapping),
               *made = NULL;
    tare_tensor *x = NEW_INPUT(4, 32);
    for (int i = 0; i < 32; i++) tare__f32(x)[i] *= 100;
    tare_data *data = data_in_file(model, "x.npz", x);
    CHECK_DONE(tare_calibrate_data(first, data, NULL, NULL, job_error()));
    tare_tensor *exact = result_of(model, (const tare_tensor *const *)&x, 1);
    tare_tensor *fixed = quantized_result(first, backend, x);
    size_t count = 0;
    CHECK_DONE(
        tare_quantize_dynamically(first, TARE_DYNAMIC_ROWS, NULL, 0, &count, &made, job_error()));
    assert_int_equal(count, 2);
    assert_true(distance(first, made, x) < 1e-6);
    CHECK_HOLDS(decided(made, "a"), "each row of its input is quantized in each run");
    tare_tensor *rows = quantized_result(made, backend, x);
    assert_true(squared_of_row(exact, rows, 2) < 1e-3 * squared_of_row(exact, fixed, 2));
    tare_tensor_release(rows);
    tare_tensor_release(fixed);
    tare_tensor_release(exact);
    tare_model_destroy(made);
    tare_data_close(data);
    tare_tensor_release(x);
    tare_model_destroy(first);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// Named layers alone; x86 takes a scale for the whole input, and none for rows.
static void layers_become_dynamic_where_the_backend_takes_it(void **state) {
    (void)state;
    static const char *const nodes[] = {"b", "relu", "nobody"};
    tare_backend_config *backend = builtin_backend("x86");
    tare_model *model = linear_relu_linear(32, 32, 8), *first = prepare(model), *made = NULL;
    CALIBRATED(first, 4, 32);
    size_t count = 0;
    CHECK_DONE(tare_quantize_dynamically(first, TARE_DYNAMIC_TENSORS, nodes, 3, &count, &made,
                                         job_error()));
    assert_int_equal(count, 1);
    tare_model *integers = lowered(made, backend);
    assert_string_equal(tare__module_find(integers->root, "b")->class->name,
                        "torch.ao.nn.quantized.dynamic.Linear");
    tare_model_destroy(integers);
    tare_model_destroy(made);
    CHECK_DONE(
        tare_quantize_dynamically(first, TARE_DYNAMIC_ROWS, NULL, 0, &count, &made, job_error()));
    integers = lowered(made, backend);
    assert_string_equal(tare__module_find(integers->root, "b")->class->name, "torch.nn.Linear");
    tare_model_destroy(integers);
    tare_model_destroy(made);
    CHECK_REFUSED(
        tare_quantize_dynamically(first, (tare_dynamic_form)2, NULL, 0, NULL, &made, job_error()),
        TARE_INVALID_ARGUMENT, "no such form");
    tare_model_destroy(first);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

// --- weights of few bits for large inputs ---

// A norm makes a channel of each group 500 times as large as the others: its weights get the levels
// of the group.
static void awq_suits_weights_of_3_bits(void **state) {
    (void)state;
    module *root = new_tree();
    module *norm = put_module(root, NULL, "norm", "torch.nn.LayerNorm", "normalized_shape=(64,)");
    tare_tensor *t = NEW_INPUT(64), *x = NEW_INPUT(16, 64);
    for (int k = 0; k < 64; k++) tare__f32(t)[k] = k % 32 == 3 ? 500 : 1;
    CHECK_DONE(tare__module_set_tensor(norm, "weight", t, true, job_error()));
    put_module(root, NULL, "up", "torch.nn.Linear", "in_features=64, out_features=32");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    norm = self.norm(x)\n"
                                  "    up = self.up(norm)\n"
                                  "    return up\n");
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(
        tare_qconfig_mapping_read("tests/data/weights_3_bits_groups.json", &mapping, job_error()));
    tare_backend_config *backend = builtin_backend("tare");
    tare_model *first = prepared(model, backend, mapping), *made = NULL;
    tare_data *data = data_in_file(model, "x.npz", x);
    const tare_scale_options options = {.struct_size = sizeof options, .method = TARE_SCALE_AWQ};
    size_t count = 0;
    CHECK_DONE(tare_scale_inputs(first, data, &options, &count, &made, job_error()));
    assert_int_equal(count, 1);
    tare_tensor *exact = result_of(model, (const tare_tensor *const *)&x, 1);
    tare_tensor *plain = quantized_result(first, backend, x);
    tare_tensor *scaled = quantized_result(made, backend, x);
    assert_true(squared(exact, scaled) < 0.1 * squared(exact, plain));
    tare_tensor_release(scaled);
    tare_tensor_release(plain);
    tare_tensor_release(exact);
    tare_data_close(data);
    tare_model_destroy(made);
    tare_model_destroy(first);
    tare_backend_config_destroy(backend);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
    tare_tensor_release(x);
    tare_tensor_release(t);
}

// --- what is refused ---

static void what_steps_cannot_work_on_is_refused(void **state) {
    (void)state;
    tare_model *model = block(false), *first = prepare(model), *made = NULL;
    const tare_scale_options scale = {.struct_size = sizeof scale, .method = 7};
    const tare_round_options rounds = {.struct_size = sizeof rounds, .thread_count = -1};
    CHECK_REFUSED(tare_equalize_layers(model, NULL, &made, job_error()), TARE_INVALID_ARGUMENT,
                  "prepared");
    CHECK_REFUSED(tare_clip_weights(NULL, NULL, &made, job_error()), TARE_INVALID_ARGUMENT,
                  "prepared");
    CHECK_REFUSED(tare_scale_inputs(first, NULL, &scale, NULL, &made, job_error()),
                  TARE_INVALID_ARGUMENT, "expected data");
    CHECK_REFUSED(tare_round_weights(first, NULL, &rounds, NULL, &made, job_error()),
                  TARE_INVALID_ARGUMENT, "expected data");
    assert_null(made);
    tare_model_destroy(first);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equalization_crosses_sums_pools_and_grouped_layers),
        cmocka_unit_test(equalization_leaves_what_it_may_not_scale),
        cmocka_unit_test(rotations_change_no_float_result),
        cmocka_unit_test(rotations_stay_out_of_what_is_not_linear),
        cmocka_unit_test_setup_teardown(scales_move_into_weights, temp_make, temp_remove),
        cmocka_unit_test(weights_of_few_bits_get_more),
        cmocka_unit_test(rounding_by_inputs_loses_less),
        cmocka_unit_test_setup_teardown(rows_get_scales_of_their_own, temp_make, temp_remove),
        cmocka_unit_test(layers_become_dynamic_where_the_backend_takes_it),
        cmocka_unit_test_setup_teardown(awq_suits_weights_of_3_bits, temp_make, temp_remove),
        cmocka_unit_test(what_steps_cannot_work_on_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
