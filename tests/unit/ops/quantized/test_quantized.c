// SPDX-License-Identifier: Apache-2.0
// Integer references where no recorded vectors exist: transposed convolution, scalar operands, the
// engines' rules, modules that cannot be right.
#include "support/test.h"

#include "ops/classes/classes.h"
#include "ops/classes/module_call.h"
#include "ops/op.h"
#include "ops/quantized/engine_rules.h"
#include "ops/quantized/layer.h"
#include "support/models.h"

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};

static tare_tensor *make(tare_dtype dtype, int ndim, const int64_t *shape, double scale,
                         int64_t zero_point) {
    tare_tensor *t = new_integers(dtype, ndim, shape, scale, zero_point);
    for (int64_t i = 0; i < t->count; i++)
        tare__store_quantized(t, i, (int32_t)(i * 37 % 251 - 100));
    return t;
}

static void set_tensor(module *m, const char *name, tare_tensor *t) {
    CHECK_OK(tare__module_set_tensor(m, name, t, false, NULL));
    tare_tensor_release(t);
}

static void set_config(module *m, const char *key, value v) {
    CHECK_OK(tare__module_set_config(m, key, &v, NULL));
}

static module *make_fused_layer(const char *op, int dims, fused_with fused, tare_tensor *weight) {
    module *m = NULL;
    tare_tensor *scale = NULL, *zero_point = NULL;
    const module_class *class = tare__class_triple(&classes, op, dims, ROLE_QUANTIZED, fused);
    assert_non_null(class);
    CHECK_OK(tare__module_create(class, &m, NULL));
    CHECK_OK(tare__tensor_scalar_float(0.5F, &scale, NULL));
    CHECK_OK(tare__tensor_scalar_int(60, &zero_point, NULL));
    set_tensor(m, "weight", weight);
    set_tensor(m, "scale", scale);
    set_tensor(m, "zero_point", zero_point);
    CHECK_OK(tare__module_set_tensor(m, "bias", NULL, true, NULL));
    set_config(m, "rule", tare__string("F"));
    return m;
}

static module *make_layer(const char *op, int dims, tare_tensor *weight) {
    return make_fused_layer(op, dims, FUSED_NONE, weight);
}

static tare_tensor *run_layer(module *m, tare_tensor *x) {
    arena memory = {0};
    const value input = {.kind = VALUE_TENSOR, .as.tensor = x};
    op_call call = {
        .module = m, .node_name = "layer", .args = &input, .arg_count = 1, .memory = &memory};
    CHECK_OK(tare__module_run(&call, false));
    tare__arena_release(&memory);
    assert_int_equal(call.result.kind, VALUE_TENSOR);
    return call.result.as.tensor;
}

// --- transposed convolution ---

enum {
    GROUPS = 2,
    INS = 4,
    OUTS = 6,
    SIZE = 4,
    KERNEL = 3,
    STRIDE = 2,
    PAD = 1,
    OUTPUT_PADDING = 1
};
enum { OUT_SIZE = (SIZE - 1) * STRIDE - 2 * PAD + KERNEL + OUTPUT_PADDING };

// Every input element is spread over the outputs that it reaches: the definition, written the other
// way round than the reference gathers it.
static void scatter(const tare_tensor *x, const tare_tensor *w,
                    int64_t sums[OUTS][OUT_SIZE][OUT_SIZE]) {
    const int64_t zx = (int64_t)x->q->zero_point[0], zw = (int64_t)w->q->zero_point[0];
    memset(sums, 0, sizeof(int64_t[OUTS][OUT_SIZE][OUT_SIZE]));
    for (int64_t i = 0; i < INS; i++)
        for (int64_t k = 0; k < OUTS / GROUPS * KERNEL * KERNEL; k++)
            for (int64_t p = 0; p < SIZE * SIZE; p++) {
                const int64_t o = i / (INS / GROUPS) * (OUTS / GROUPS) + k / KERNEL / KERNEL;
                const int64_t row = p / SIZE * STRIDE - PAD + k / KERNEL % KERNEL;
                const int64_t column = p % SIZE * STRIDE - PAD + k % KERNEL;
                if (row < 0 || row >= OUT_SIZE || column < 0 || column >= OUT_SIZE) continue;
                sums[o][row][column] +=
                    (tare__load_quantized(x, i * SIZE * SIZE + p) - zx) *
                    (tare__load_quantized(w, i * (OUTS / GROUPS) * KERNEL * KERNEL + k) - zw);
            }
}

static void transposed_convolution_spreads_each_input(void **state) {
    (void)state;
    static int64_t sums[OUTS][OUT_SIZE][OUT_SIZE];
    tare_tensor *x = make(TARE_QUINT8, 4, (int64_t[]){1, INS, SIZE, SIZE}, 0.03, 101);
    module *m =
        make_layer("conv_transpose", 2,
                   make(TARE_QINT8, 4, (int64_t[]){INS, OUTS / GROUPS, KERNEL, KERNEL}, 0.02, 3));
    set_config(m, "groups", tare__int(GROUPS));
    set_config(m, "stride", tare__int(STRIDE));
    set_config(m, "padding", tare__int(PAD));
    set_config(m, "output_padding", tare__int(OUTPUT_PADDING));
    tare_tensor *y = run_layer(m, x);
    assert_int_equal(y->count, OUTS * OUT_SIZE * OUT_SIZE);
    scatter(x, tare__module_tensor(m, "weight"), sums);
    const requant_spec spec = {.rule = REQUANT_F,
                               .channel_count = OUTS,
                               .input_scale = 0.03,
                               .weight_scale = (double[]){0.02},
                               .weight_scale_count = 1,
                               .output_scale = 0.5,
                               .output_zero_point = 60,
                               .quant_max = 255};
    requant *r = NULL;
    CHECK_OK(tare__requant_create(&spec, &r, NULL));
    for (int64_t i = 0; i < y->count; i++)
        assert_int_equal(tare__load_quantized(y, i),
                         tare__requantize(r, 0, (int32_t)(&sums[0][0][0])[i]));
    tare__requant_destroy(r);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare__module_release(m);
}

static void qint8_activations_give_qint8(void **state) {
    (void)state;
    tare_tensor *x = make(TARE_QINT8, 2, (int64_t[]){3, 5}, 0.03, 4);
    module *m = make_layer("linear", 0, make(TARE_QINT8, 2, (int64_t[]){2, 5}, 0.02, 0));
    tare_tensor *y = run_layer(m, x);
    assert_int_equal(y->dtype, TARE_QINT8);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare__module_release(m);
}

// --- scalar operands ---

static void check_scalar(const char *function, double number, double scale, double zero_point) {
    arena memory = {0};
    tare_tensor *x = make(TARE_QUINT8, 1, (int64_t[]){7}, 0.031, 120);
    const value args[] = {{.kind = VALUE_TENSOR, .as.tensor = x}, tare__float(number)};
    op_call call = {.node_name = "y", .args = args, .arg_count = 2, .memory = &memory};
    const op_info *op = tare__op_function(function);
    assert_non_null(op);
    CHECK_OK(tare__call_bind(&call, op));
    CHECK_OK(tare__op_run(&call, false));
    const qparams *q = call.result.as.tensor->q;
    assert_true(q->scale[0] == scale);
    assert_true(q->zero_point[0] == zero_point);
    tare__value_release_tensors(&call.result);
    tare_tensor_release(x);
    tare__arena_release(&memory);
}

static void adding_a_number_moves_the_zero_point(void **state) {
    (void)state;
    check_scalar("torch.ops.quantized.add", 0.5, 0.031, 104);
    check_scalar("torch.ops.quantized.add", 50, 0.21250196078431371, 0);
    check_scalar("torch.ops.quantized.add", -50, 0.21067843137254902, 255);
    check_scalar("torch.ops.quantized.mul", 2, 0.062, 120);
    check_scalar("torch.ops.quantized.mul", -2, 0.062, 135);
}

// --- rules and checks ---

static void x86_leaves_awkward_convolutions_to_fbgemm(void **state) {
    (void)state;
    const engine_query linear = {.groups = 1}, conv = {.is_conv = true, .groups = 100};
    const engine_query many = {.is_conv = true, .groups = 101};
    const engine_query shifted = {.is_conv = true, .groups = 1, .has_weight_zero_points = true};
    const engine_query padded = {.is_conv = true, .groups = 1, .has_output_padding = true};
    assert_int_equal(tare__engine_rule(TARE_ENGINE_DEFAULT, &linear), REQUANT_F);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_X86, &conv), REQUANT_O);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_X86, &many), REQUANT_F);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_X86, &shifted), REQUANT_F);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_X86, &padded), REQUANT_F);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_ONEDNN, &many), REQUANT_O);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_QNNPACK, &linear), REQUANT_Q);
    assert_int_equal(tare__engine_rule(TARE_ENGINE_FBGEMM, &conv), REQUANT_F);
}

static void check_module_refused(module *m, const char *word) {
    tare_error *err = tare_error_create();
    assert_int_equal(m->class->check(m, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), word));
    tare_error_destroy(err);
}

static void modules_that_cannot_be_right_are_refused(void **state) {
    (void)state;
    module *m = make_layer("conv", 2, make(TARE_QINT8, 4, (int64_t[]){4, 3, 2, 2}, 0.02, 0));
    CHECK_OK(m->class->check(m, NULL));
    set_config(m, "groups", tare__int(3));
    check_module_refused(m, "groups");
    set_config(m, "groups", tare__int(1));
    set_config(m, "rule", tare__string("Z"));
    check_module_refused(m, "'Z'");
    set_config(m, "rule", tare__string("O"));
    set_tensor(m, "scale", make(TARE_QUINT8, 1, (int64_t[]){1}, 1, 0));
    check_module_refused(m, "scale");
    tare__module_release(m);
}

static void sums_are_for_rules_that_have_floats(void **state) {
    (void)state;
    module *m = make_fused_layer("conv", 2, FUSED_ADD,
                                 make(TARE_QINT8, 4, (int64_t[]){4, 3, 2, 2}, 0.02, 0));
    static const char *const rules[] = {"F", "O", "Q"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        set_config(m, "rule", tare__string(rules[i]));
        CHECK_OK(m->class->check(m, NULL));
    }
    set_config(m, "rule", tare__string("fixed_point"));
    check_module_refused(m, "expected the rule F, O or Q, found 'fixed_point'");
    tare__module_release(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_convolution_spreads_each_input),
        cmocka_unit_test(qint8_activations_give_qint8),
        cmocka_unit_test(adding_a_number_moves_the_zero_point),
        cmocka_unit_test(x86_leaves_awkward_convolutions_to_fbgemm),
        cmocka_unit_test(modules_that_cannot_be_right_are_refused),
        cmocka_unit_test(sums_are_for_rules_that_have_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
