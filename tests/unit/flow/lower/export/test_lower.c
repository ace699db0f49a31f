// SPDX-License-Identifier: Apache-2.0
// Lowered programs give the quantized values of the converted ones: layers, and whole models.
#include "support/test.h"

#include <inttypes.h>
#include <math.h>

#include "support/exported.h"
#include "support/models.h"
#include "support/programs.h"
#include "support/temp.h"

// --- layers ---

typedef struct layer_case {
    const char *call; // of x, w and b
    int64_t weight[5], input[5];
    int ndim; // of both
    int axis; // of the weight's scales
    const char *lowered;
} layer_case;

static const layer_case layers[] = {
    {"linear.default(x, w, b)", {6, 7}, {3, 7}, 2, 0, "linear"},
    {"linear.default(x, w)", {6, 7}, {2, 3, 7}, 2, -1, "linear"},
    {"conv1d.default(x, w, b, [2], [1])", {6, 3, 3}, {2, 3, 11}, 3, 0, "conv1d"},
    {"conv2d.default(x, w, b, [1, 1], [1, 1])", {6, 3, 3, 3}, {2, 3, 6, 5}, 4, 0, "conv2d"},
    {"conv2d.default(x, w, b, [1, 1], [1, 1], [1, 1], 4)",
     {4, 1, 3, 3},
     {1, 4, 6, 5},
     4,
     -1,
     "conv2d"},
    {"conv3d.default(x, w)", {2, 3, 2, 2, 2}, {1, 3, 4, 3, 3}, 5, 0, "conv3d"},
    {"conv_transpose2d.input(x, w, b, [2, 2])",
     {3, 6, 2, 2},
     {1, 3, 3, 4},
     4,
     -1,
     "conv_transpose2d"},
    {"conv_transpose1d.default(x, w, b, [2])", {3, 6, 2}, {1, 3, 7}, 3, 1, "conv_transpose1d"},
};
enum { LAYER_COUNT = sizeof layers / sizeof *layers };

static program layer_program(const layer_case *c, bool is_signed, const char *activation) {
    program p = new_program("v");
    const grid x = random_grid(is_signed, 0.01), y = random_grid(is_signed, 0.05);
    const bool is_transposed = strstr(c->call, "transpose") != NULL;
    quantized(&p, "x", "v", &x);
    put_weight(&p, c->ndim, c->weight, c->axis);
    put_floats(&p, "b", c->weight[is_transposed ? 1 : 0], 0.5);
    line(&p, "y = torch.ops.aten.%s", c->call);
    if (activation != NULL) line(&p, "z = torch.ops.aten.%s", activation);
    quantized(&p, "result", activation != NULL ? "z" : "y", &y);
    return p;
}

static void layers_give_the_integers_of_the_converted_program(void **state) {
    (void)state;
    for (size_t i = 0; i < (size_t)4 * LAYER_COUNT; i++) {
        const layer_case *c = &layers[i / 4];
        program p = layer_program(c, i % 2 == 0, i % 4 >= 2 ? "relu.default(y)" : NULL);
        tare_tensor *x = new_input(c->ndim == 2 && c->input[2] > 0 ? 3 : c->ndim, c->input);
        tare_model *m = checked(&p, "result", &x, 1);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "torch.ops.quantized.%s", c->lowered);
        CHECK_HOLDS(printed(m), wanted);
        CHECK_LACKS(printed(m), "torch.ops.quantized_decomposed");
        CHECK_HOLDS(decided(m, "y"),
                    "lower: lowered: computed in integers by torch.ops.quantized.");
        tare_model_destroy(m);
        tare_tensor_release(x);
    }
}

static void bounds_of_one_layer_are_its_own(void **state) {
    (void)state;
    program p = layer_program(&layers[3], true, "hardtanh_.default(y, 0.0, 6.0)");
    tare_tensor *x = NEW_INPUT(2, 3, 6, 5);
    tare_model *m = checked(&p, "result", &x, 1);
    CHECK_LACKS(printed(m), "hardtanh");
    CHECK_HOLDS(decided(m, "z"), "lower: lowered: computed in integers by torch.ops.quantized.");
    tare_model_destroy(m);
    tare_tensor_release(x);
}

static void bounds_become_those_of_layers(void **state) {
    (void)state;
    // Scale and zero point as an observer has them that saw values from 0 to 6.
    static const struct {
        int64_t zero_point;
        double scale;
        const char *lowered;
    } cases[] = {{-128, 6.0 / 255, "y = torch.ops.quantized.conv2d_relu(q_x, "},
                 {-128, 3.0 / 255, "y = torch.ops.quantized.conv2d_relu(q_x, "},
                 {-28, 3.0 / 255, "y = torch.ops.quantized.conv2d_relu(q_x, "},
                 {-128, 8.0 / 255, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p = new_program("v");
        const grid x = random_grid(true, 0.01);
        const grid y = {true, (double)(float)cases[i].scale, cases[i].zero_point, -128, 127};
        quantized(&p, "x", "v", &x);
        put_weight(&p, 4, layers[3].weight, 0);
        put_floats(&p, "b", 6, 0.5);
        line(&p, "y = torch.ops.aten.%s", layers[3].call);
        line(&p, "z = torch.ops.aten.relu6.default(y)");
        quantized(&p, "result", "z", &y);
        tare_tensor *input = NEW_INPUT(2, 3, 6, 5);
        for (int64_t k = 0; k < input->count; k++) tare__f32(input)[k] *= 4;
        tare_model *m = checked(&p, "result", &input, 1);
        CHECK_LACKS(printed(m), "relu6");
        if (cases[i].lowered != NULL) {
            CHECK_HOLDS(printed(m), cases[i].lowered);
        } else {
            const module *packed = tare__module_find(m->root, "_packed_weight_0");
            assert_int_equal(tare__module_int(packed, "code_min", 0), -128);
            assert_int_equal(tare__module_int(packed, "code_max", 0), 63);
        }
        tare_model_destroy(m);
        tare_tensor_release(input);
    }
}

static void bounds_behind_a_quantize_become_those_of_layers(void **state) {
    (void)state;
    program p = new_program("v");
    const grid x = random_grid(true, 0.01), y = random_grid(true, 0.05);
    quantized(&p, "x", "v", &x);
    put_weight(&p, 4, layers[3].weight, 0);
    put_floats(&p, "b", 6, 0.5);
    line(&p, "y = torch.ops.aten.%s", layers[3].call);
    quantized(&p, "d", "y", &y);
    line(&p, "z = torch.ops.aten.hardtanh_.default(d, 0.0, 6.0)");
    quantized(&p, "result", "z", &y);
    tare_tensor *input = NEW_INPUT(2, 3, 6, 5);
    tare_model *m = checked(&p, "result", &input, 1);
    CHECK_LACKS(printed(m), "hardtanh");
    tare_model_destroy(m);
    tare_tensor_release(input);
}

static void narrow_ranges_stay_narrow(void **state) {
    (void)state;
    program p = new_program("v");
    const grid x = {false, 0.02, 40, 0, 127};
    quantized(&p, "result", "v", &x);
    tare_tensor *input = NEW_INPUT(4, 300);
    for (int64_t i = 0; i < input->count; i++) tare__f32(input)[i] *= 4;
    tare_model *m = checked(&p, "result", &input, 1);
    CHECK_HOLDS(printed(m), "torch.clamp(q_result, -0.79");
    tare_model_destroy(m);
    tare_tensor_release(input);
}

static void int32_biases_join_the_sum(void **state) {
    (void)state;
    program p = new_program("v");
    const grid x = random_grid(true, 0.01), y = random_grid(true, 0.05);
    const int64_t weight[] = {6, 7}, bias[] = {6};
    quantized(&p, "x", "v", &x);
    put_weight(&p, 2, weight, -1);
    put_integers(&p, "steps", TARE_INT32, 1, bias, -3000, 3000);
    line(&p,
         "b = " DECOMPOSED "dequantize_per_tensor.default(steps, %.17g, 0, -2147483648, "
         "2147483647, torch.int32)",
         (double)((float)x.scale * 0.0131F));
    line(&p, "y = torch.ops.aten.linear.default(x, w, b)");
    quantized(&p, "result", "y", &y);
    tare_tensor *input = NEW_INPUT(5, 7);
    tare_model *m = checked(&p, "result", &input, 1);
    const module *packed = tare__module_find(m->root, "_packed_weight_0");
    assert_string_equal(tare__module_config(packed, "rule")->as.text, "Q");
    tare_model_destroy(m);
    tare_tensor_release(input);
}

static void layers_before_floats_give_floats(void **state) {
    (void)state;
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        const layer_case *c = &layers[i];
        program p = layer_program(c, i % 2 == 0, "gelu.default(y)");
        tare_tensor *x = new_input(c->ndim == 2 && c->input[2] > 0 ? 3 : c->ndim, c->input);
        tare_model *m = checked(&p, "result", &x, 1);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "y = torch.ops.tare.%s_float(", c->lowered);
        CHECK_HOLDS(printed(m), wanted);
        CHECK_HOLDS(decided(m, "z"), "lower: left float: its input 'y' is float [inputs]");
        tare_model_destroy(m);
        tare_tensor_release(x);
    }
}

// new_exported gives every value four dimensions of [1, 4, 4, 4].
static void residuals_are_added_to_the_sums(void **state) {
    (void)state;
    static const struct {
        tare_engine engine;
        const char *rule;
    } engines[] = {{TARE_ENGINE_DEFAULT, "F"}, {TARE_ENGINE_QNNPACK, "Q"}, {TARE_ENGINE_X86, "O"}};
    for (size_t n = 0; n < 24; n++) {
        program p = new_program("v, u");
        const size_t i = n % 8;
        const bool is_signed = i % 2 == 0;
        p.engine = engines[n / 8].engine;
        const grid x = random_grid(is_signed, 0.01), y = random_grid(is_signed, 0.05);
        const grid other = random_grid(is_signed, 0.02);
        const int64_t weight[] = {4, 4, 3, 3};
        quantized(&p, "x", "v", &x);
        quantized(&p, "r", "u", &other);
        put_weight(&p, 4, weight, 0);
        put_floats(&p, "b", 4, 0.5);
        line(&p, "y = torch.ops.aten.conv2d.default(x, w, b, [1, 1], [1, 1])");
        line(&p, i % 4 < 2 ? "z = torch.ops.aten.add.Tensor(y, r)"
                           : "z = torch.ops.aten.add_.Tensor(r, y)");
        if (i >= 4) line(&p, "t = torch.ops.aten.relu.default(z)");
        quantized(&p, "result", i >= 4 ? "t" : "z", &y);
        tare_tensor *inputs[] = {NEW_INPUT(1, 4, 4, 4), NEW_INPUT(1, 4, 4, 4)};
        tare_model *m = checked(&p, "result", inputs, 2);
        CHECK_HOLDS(printed(m), i >= 4 ? "z = torch.ops.quantized.conv2d_add_relu(q_x, q_r, "
                                       : "z = torch.ops.quantized.conv2d_add(q_x, q_r, ");
        CHECK_HOLDS(decided(m, "y"), "lower: lowered: computed in integers by 'z', with its sum");
        const module *packed = tare__module_find(m->root, "_packed_weight_0");
        assert_string_equal(tare__module_config(packed, "rule")->as.text, engines[n / 8].rule);
        tare_model_destroy(m);
        for (size_t k = 0; k < 2; k++) tare_tensor_release(inputs[k]);
    }
}

// No kernel of filters of one channel adds anything.
static void depthwise_layers_leave_sums_alone(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        program p = new_program("v, u");
        const grid x = random_grid(false, 0.01), y = random_grid(false, 0.05);
        const grid other = random_grid(false, 0.02);
        const int64_t weight[] = {4, 1, 3, 3};
        quantized(&p, "x", "v", &x);
        quantized(&p, "r", "u", &other);
        put_weight(&p, 4, weight, 0);
        put_floats(&p, "b", 4, 0.5);
        line(&p, "y = torch.ops.aten.conv2d.default(x, w, b, [1, 1], [1, 1], [1, 1], 4)");
        line(&p, "z = torch.ops.aten.add.Tensor(y, r)");
        if (i == 1) line(&p, "t = torch.ops.aten.relu.default(z)");
        quantized(&p, "result", i == 1 ? "t" : "z", &y);
        tare_tensor *inputs[] = {NEW_INPUT(1, 4, 4, 4), NEW_INPUT(1, 4, 4, 4)};
        tare_model *m = checked(&p, "result", inputs, 2);
        CHECK_HOLDS(printed(m), "y = torch.ops.tare.conv2d_float(");
        CHECK_LACKS(printed(m), "conv2d_add");
        tare_model_destroy(m);
        for (size_t k = 0; k < 2; k++) tare_tensor_release(inputs[k]);
    }
}

// A quantize that the program wrote itself is not one that convert made of an observer.
static void quantizes_of_the_program_are_left_alone(void **state) {
    (void)state;
    program p = new_program("v");
    const grid x = random_grid(false, 0.01);
    quantized(&p, "x", "v", &x);
    line(&p, "y = torch.ops.aten.exp.default(x)");
    line(&p, "q = torch.quantize_per_tensor(y, 0.05, 3, torch.quint8)");
    line(&p, "r = q.dequantize()");
    p.output_scale = 0.05;
    tare_tensor *input = NEW_INPUT(5, 7);
    tare_model *m = checked(&p, "r", &input, 1);
    CHECK_HOLDS(decided(m, "y"), "lower: left float: 'q' reads its value as float [readers]");
    tare_model_destroy(m);
    tare_tensor_release(input);
}

// The constant is one code, not one for each of the layer's.
static void a_constant_is_added_to_what_a_layer_gives(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        program p = new_program("v");
        const bool is_signed = i % 2 == 0;
        const grid x = random_grid(is_signed, 0.01), h = random_grid(is_signed, 0.05);
        const grid k = random_grid(is_signed, 0.02), z = random_grid(is_signed, 0.06);
        const int64_t weight[] = {6, 7}, one[] = {1};
        quantized(&p, "x", "v", &x);
        put_weight(&p, 2, weight, 0);
        put_integers(&p, "code", is_signed ? TARE_INT8 : TARE_UINT8, 1, one, 40, 60);
        dequantized(&p, "k", "code", &k);
        line(&p, "y = torch.ops.aten.linear.default(x, w)");
        quantized(&p, "h", "y", &h);
        line(&p,
             i < 2 ? "s = torch.ops.aten.add.Tensor(h, k)" : "s = torch.ops.aten.add.Tensor(k, h)");
        quantized(&p, "result", "s", &z);
        tare_tensor *input = NEW_INPUT(9, 7);
        tare_model *m = checked(&p, "result", &input, 1);
        CHECK_HOLDS(printed(m), "torch.ops.quantized.linear(");
        CHECK_HOLDS(printed(m), "torch.ops.quantized.add(");
        tare_model_destroy(m);
        tare_tensor_release(input);
    }
}

static void unsigned_weights_become_signed_ones(void **state) {
    (void)state;
    program p = new_program("v");
    const grid x = random_grid(false, 0.01), y = random_grid(false, 0.05);
    const grid w = {false, 0.01, 131, 0, 255};
    const int64_t weight[] = {6, 7};
    quantized(&p, "x", "v", &x);
    put_integers(&p, "frozen", TARE_UINT8, 2, weight, 0, 255);
    dequantized(&p, "w", "frozen", &w);
    line(&p, "y = torch.ops.aten.linear.default(x, w)");
    quantized(&p, "result", "y", &y);
    tare_tensor *input = NEW_INPUT(5, 7);
    tare_model *m = checked(&p, "result", &input, 1);
    CHECK_HOLDS(printed(m), "torch.ops.quantized.linear(");
    tare_model_destroy(m);
    tare_tensor_release(input);
}

// --- on the fly ---

static void dynamic_layers_choose_as_the_converted_program(void **state) {
    (void)state;
    static const char *const chains[][3] = {
        {"choose_qparams.tensor", "-128, 127", "torch.int8"},
        {"choose_qparams.tensor", "0, 255", "torch.uint8"},
        {"choose_qparams.tensor", "0, 127", "torch.uint8"},
        {"choose_qparams_symmetric.tensor", "-127, 127", "torch.int8"},
    };
    for (size_t i = 0; i < 8; i++) {
        const char *const *chain = chains[i / 2];
        program p = new_program("v");
        const int64_t weight[] = {6, 7};
        put_weight(&p, 2, weight, 0);
        put_floats(&p, "b", 6, 0.5);
        line(&p, "c = " DECOMPOSED "%s(v, %s, 0.000244140625, %s)", chain[0], chain[1], chain[2]);
        line(&p, "s = c[0]");
        line(&p, "t = c[1]");
        line(&p, "q = " DECOMPOSED "quantize_per_tensor.tensor(v, s, t, %s, %s)", chain[1],
             chain[2]);
        line(&p, "x = " DECOMPOSED "dequantize_per_tensor.tensor(q, s, t, %s, %s)", chain[1],
             chain[2]);
        line(&p, "y = torch.ops.aten.linear.default(x, w, b)");
        if (i % 2 == 1) line(&p, "z = torch.ops.aten.relu.default(y)");
        p.output_scale = 0.001; // floats, whose sums are taken in another order
        tare_tensor *input = NEW_INPUT(2, 3, 7);
        tare_model *m = checked(&p, i % 2 == 1 ? "z" : "y", &input, 1);
        CHECK_HOLDS(printed(m), i % 2 == 1 ? "torch.ops.tare.linear_relu_dynamic(v, "
                                           : "torch.ops.tare.linear_dynamic(v, ");
        CHECK_LACKS(printed(m), "choose_qparams");
        tare_model_destroy(m);
        tare_tensor_release(input);
    }
}

static void tables_are_looked_up_as_integers(void **state) {
    (void)state;
    program p = new_program("v");
    const int64_t table[] = {9, 4}, rows[] = {9};
    tare_tensor *scales = NULL, *indices = NULL, *zeros = NULL;
    put_integers(&p, "frozen", TARE_UINT8, 2, table, 0, 255);
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, rows, &scales, NULL));
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, rows, &zeros, NULL));
    for (int64_t i = 0; i < 9; i++) {
        tare__f32(scales)[i] = (float)random_scale(0.01);
        tare__f32(zeros)[i] = (float)random_between(0, 2550) / 10;
    }
    put_tensor(&p, "scales", scales);
    put_tensor(&p, "zeros", zeros);
    line(&p, "scales = self.scales");
    line(&p, "zeros = self.zeros");
    line(&p, "w = " DECOMPOSED "dequantize_per_channel.default(frozen, scales, zeros, 0, 0, 255, "
             "torch.uint8)");
    line(&p, "y = torch.ops.aten.embedding.default(w, v)");
    p.output_scale = 0.001;
    const int64_t count = 5, numbers[] = {8, 0, 3, 3, 7};
    CHECK_OK(tare_tensor_from_data(TARE_INT64, 1, &count, numbers, &indices, NULL));
    tare_model *m = checked(&p, "y", &indices, 1);
    CHECK_HOLDS(printed(m), "w = self._quantized_table_0");
    CHECK_HOLDS(decided(m, "y"), "lower: lowered: its rows are looked up as integers");
    tare_model_destroy(m);
    tare_tensor_release(indices);
}

static void engines_round_in_their_way(void **state) {
    (void)state;
    static const struct {
        tare_engine engine;
        const char *rule;
    } cases[] = {{TARE_ENGINE_DEFAULT, "F"}, {TARE_ENGINE_QNNPACK, "Q"}, {TARE_ENGINE_ONEDNN, "O"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tare_lower_pt2e_options options = {.struct_size = sizeof options,
                                                 .engine = cases[i].engine};
        program p = layer_program(&layers[3], true, NULL);
        tare_model *m = converted(&p, "result"), *l = NULL;
        CHECK_DONE(tare_lower_pt2e(m, &options, &l, job_error()));
        const module *packed = tare__module_find(l->root, "_packed_weight_0");
        assert_string_equal(tare__module_config(packed, "rule")->as.text, cases[i].rule);
        tare_model_destroy(l);
        tare_model_destroy(m);
    }
}

static void weights_may_keep_their_quantize(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) { // a scale for all, a scale per channel
        program p = new_program("v");
        const grid x = random_grid(true, 0.01), y = random_grid(true, 0.05);
        const grid g = {true, 0.0131, 0, -127, 127};
        const int64_t channels = 6;
        tare_tensor *scales = NULL;
        quantized(&p, "x", "v", &x);
        put_floats(&p, "flat", 42, 1.5);
        line(&p, "real = torch.ops.aten.view.default(flat, [6, 7])");
        if (i == 0) {
            quantized(&p, "w", "real", &g);
        } else {
            CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &channels, &scales, NULL));
            for (int64_t k = 0; k < channels; k++)
                tare__f32(scales)[k] = (float)random_scale(0.005);
            put_tensor(&p, "scales", scales);
            line(&p, "scales = self.scales");
            put_integers(&p, "zeros", TARE_INT64, 1, &channels, 0, 0);
            line(&p,
                 "q_w = " DECOMPOSED "quantize_per_channel.default(real, scales, zeros, 0, -127, "
                 "127, torch.int8)");
            line(&p,
                 "w = " DECOMPOSED "dequantize_per_channel.default(q_w, scales, zeros, 0, -127, "
                 "127, torch.int8)");
        }
        line(&p, "y = torch.ops.aten.linear.default(x, w)");
        quantized(&p, "result", "y", &y);
        tare_tensor *input = NEW_INPUT(5, 7);
        tare_model *m = checked(&p, "result", &input, 1);
        CHECK_HOLDS(printed(m), "y = torch.ops.quantized.linear(q_x, ");
        tare_model_destroy(m);
        tare_tensor_release(input);
    }
}

static void models_that_are_not_converted_are_refused(void **state) {
    (void)state;
    tare_model *m = new_model(NULL, new_tree(), "def forward(self, x):\n    return x\n"), *l = NULL;
    CHECK_REFUSED(tare_lower_pt2e(m, NULL, &l, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a model that tare_convert_pt2e made");
    tare_model_destroy(m);
}

// Layers of every ending, operators of every kind, a table and a layer quantized on the fly.
static program large_program(void) {
    program p = new_program("v, u, i");
    const grid x = random_grid(true, 0.01), y = random_grid(true, 0.05);
    const grid other = random_grid(true, 0.02);
    const int64_t weight[] = {4, 4, 3, 3}, table[] = {9, 4}, rows[] = {9};
    quantized(&p, "x", "v", &x);
    quantized(&p, "r", "u", &other);
    put_weight(&p, 4, weight, 0);
    put_floats(&p, "b", 4, 0.5);
    line(&p, "c = torch.ops.aten.conv2d.default(x, w, b, [1, 1], [1, 1])");
    line(&p, "a = torch.ops.aten.add.Tensor(c, r)");
    quantized(&p, "d", "a", &y);
    line(&p, "c2 = torch.ops.aten.conv2d.default(d, w, b, [1, 1], [1, 1])");
    line(&p, "h = torch.ops.aten.hardtanh_.default(c2, 0.0, 6.0)");
    quantized(&p, "e", "h", &y);
    line(&p, "m = torch.ops.aten.max_pool2d.default(e, [2, 2])");
    quantized(&p, "f", "m", &other);
    line(&p, "j = torch.ops.aten.cat.default([f, f], 1)");
    line(&p, "g = torch.ops.aten.gelu.default(j)");
    quantized(&p, "k", "g", &x);
    line(&p, "k2 = torch.ops.aten.mul.Tensor(k, k)");
    quantized(&p, "l", "k2", &x);
    line(&p, "c3 = torch.ops.aten.conv2d.default(d, w, b, [2, 2], [1, 1])");
    line(&p, "o = torch.ops.aten.mean.default(c3)");
    put_integers(&p, "rows", TARE_UINT8, 2, table, 0, 255);
    put_floats(&p, "row_scales", rows[0], 0.01);
    tare_tensor *scales = tare__module_tensor(p.root, "row_scales");
    for (int64_t k = 0; k < scales->count; k++)
        tare__f32(scales)[k] = 0.001F + fabsf(tare__f32(scales)[k]);
    put_floats(&p, "row_zeros", rows[0], 20);
    line(&p, "t = " DECOMPOSED "dequantize_per_channel.default(rows, row_scales, row_zeros, 0, 0, "
             "255, torch.uint8)");
    line(&p, "n = torch.ops.aten.embedding.default(t, i)");
    line(&p, "q1 = torch.ops.aten.add.Tensor(n, o)");
    quantized(&p, "result", "q1", &x);
    p.output_scale = x.scale;
    return p;
}

static void fill_inputs(tare_tensor *inputs[3]) {
    const int64_t count = 5, numbers[] = {8, 0, 3, 3, 7};
    inputs[0] = NEW_INPUT(1, 4, 4, 4);
    inputs[1] = NEW_INPUT(1, 4, 4, 4);
    CHECK_OK(tare_tensor_from_data(TARE_INT64, 1, &count, numbers, &inputs[2], NULL));
}

static void lowered_models_come_back_from_files(void **state) {
    (void)state;
    program p = large_program();
    tare_tensor *inputs[3];
    fill_inputs(inputs);
    tare_model *m = checked(&p, "[l, result]", inputs, 3), *back = NULL;
    CHECK_LACKS(printed(m), "quantized_decomposed");
    const char *path = temp_path("lowered.safetensors");
    CHECK_DONE(tare_model_write(m, path, job_error()));
    CHECK_DONE(tare_model_read(path, NULL, &back, job_error()));
    assert_string_equal(printed(m), printed(back));
    // Codes and floats that weights were packed from are gone.
    assert_null(tare__module_tensor(m->root, "frozen"));
    assert_null(tare__module_tensor(m->root, "b"));
    assert_null(tare__module_tensor(m->root, "rows"));
    assert_string_equal(explained(m, NULL), explained(back, NULL));
    tare_tensor *a = result_of(m, (const tare_tensor *const *)inputs, 3);
    tare_tensor *b = result_of(back, (const tare_tensor *const *)inputs, 3);
    check_same_tensor(a, b);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_model_destroy(back);
    tare_model_destroy(m);
    for (size_t i = 0; i < 3; i++) tare_tensor_release(inputs[i]);
}

static void memory_may_end_at_any_place(void **state) {
    (void)state;
    program p = large_program();
    tare_model *m = converted(&p, "[l, result]"), *l = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_lower_pt2e(m, NULL, &l, NULL),
                           (tare_model_destroy(l), l = NULL));
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_give_the_integers_of_the_converted_program),
        cmocka_unit_test(bounds_of_one_layer_are_its_own),
        cmocka_unit_test(bounds_become_those_of_layers),
        cmocka_unit_test(bounds_behind_a_quantize_become_those_of_layers),
        cmocka_unit_test(narrow_ranges_stay_narrow),
        cmocka_unit_test(int32_biases_join_the_sum),
        cmocka_unit_test(layers_before_floats_give_floats),
        cmocka_unit_test(residuals_are_added_to_the_sums),
        cmocka_unit_test(depthwise_layers_leave_sums_alone),
        cmocka_unit_test(quantizes_of_the_program_are_left_alone),
        cmocka_unit_test(a_constant_is_added_to_what_a_layer_gives),
        cmocka_unit_test(unsigned_weights_become_signed_ones),
        cmocka_unit_test(dynamic_layers_choose_as_the_converted_program),
        cmocka_unit_test(tables_are_looked_up_as_integers),
        cmocka_unit_test(engines_round_in_their_way),
        cmocka_unit_test(weights_may_keep_their_quantize),
        cmocka_unit_test(models_that_are_not_converted_are_refused),
        cmocka_unit_test(lowered_models_come_back_from_files),
        cmocka_unit_test(memory_may_end_at_any_place),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
