// SPDX-License-Identifier: Apache-2.0
// MatMulNBits and scales of blocks: what is read, what is refused, and what layers with weights in
// groups become in a file. golden.quantized compares with ONNX Runtime.
#include "support/test.h"

#ifndef TARE_HAVE_ONNX

int main(void) {
    return skip_tests("this build has no ONNX");
}

#else

#include <math.h>

#include "ops/quantized/grouped.h"
#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/temp.h"

enum { ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_INT32 = 6 };

static void add_raw(text *g, const char *name, int type, int64_t count, const void *bytes,
                    size_t size) {
    text t = {0};
    pb_int(&t, 1, count);
    pb_int(&t, 2, type);
    pb_text(&t, 8, name);
    pb_bytes(&t, 9, bytes, size);
    pb_message(g, 5, t);
}

// A product of [1][K] with N columns in blocks of 16, of which everything can be said otherwise.
typedef struct product {
    int64_t ins, outs, bits, block, accuracy, code_count, zero_count, order_step;
    bool has_real_zeros, has_bias;
    float zero, scale;
} product;

static const product usual = {.ins = 32, .outs = 3, .bits = 4, .block = 16, .scale = 0.5F};

// Byte i of the codes.
static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 37 + 11);
}

static int64_t blocks_of(const product *p) {
    return (p->ins + p->block - 1) / p->block;
}

static void add_weights(text *g, const product *p) {
    static uint8_t codes[4096];
    float scales[64], zeros[64];
    int32_t order[64];
    const int64_t blocks = blocks_of(p), count = p->outs * blocks * p->block * p->bits / 8;
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = byte_at(i);
    for (size_t i = 0; i < 64; i++) scales[i] = p->scale * (float)(i % 2 == 0 ? 1 : -1);
    for (size_t i = 0; i < 64; i++) zeros[i] = p->zero;
    for (int32_t i = 0; i < 64; i++) order[i] = i / (int32_t)p->block * (int32_t)p->order_step;
    add_raw(g, "b", ONNX_UINT8, p->code_count > 0 ? p->code_count : count, codes,
            (size_t)(p->code_count > 0 ? p->code_count : count));
    add_raw(g, "s", ONNX_FLOAT, p->outs * blocks, scales, (size_t)(p->outs * blocks) * 4);
    if (p->has_real_zeros)
        add_raw(g, "z", ONNX_FLOAT, p->outs * blocks, zeros, (size_t)(p->outs * blocks) * 4);
    if (p->zero_count > 0) add_raw(g, "z", ONNX_UINT8, p->zero_count, codes, (size_t)p->zero_count);
    if (p->order_step > 0) add_raw(g, "order", ONNX_INT32, p->ins, order, (size_t)p->ins * 4);
    if (p->has_bias) add_raw(g, "bias", ONNX_FLOAT, p->outs, scales, (size_t)p->outs * 4);
}

static tare_status read_product(const product *p, tare_model **out) {
    char inputs[64], shape[16];
    text g = {0};
    const bool has_zeros = p->has_real_zeros || p->zero_count > 0;
    snprintf(inputs, sizeof inputs, "x b s %s %s %s", has_zeros ? "z" : "-",
             p->order_step > 0 ? "order" : "-", p->has_bias ? "bias" : "-");
    text call = onnx_node("MatMulNBits", "fc", inputs, "y");
    onnx_attr_int(&call, "K", p->ins);
    onnx_attr_int(&call, "N", p->outs);
    onnx_attr_int(&call, "bits", p->bits);
    onnx_attr_int(&call, "block_size", p->block);
    onnx_attr_int(&call, "accuracy_level", p->accuracy);
    pb_text(&call, 7, "com.microsoft");
    onnx_add_node(&g, call);
    snprintf(shape, sizeof shape, "N,%d", (int)(p->ins < 64 ? p->ins : 64));
    onnx_input(&g, "x", shape);
    onnx_output(&g, "y");
    add_weights(&g, p);
    text file = onnx_model(g, 17);
    const tare_status status =
        tare_model_read_memory(tare__text_chars(&file), file.length, NULL, NULL, out, job_error());
    tare__text_release(&file);
    return status;
}

static float weight_at(const product *p, int64_t o, int64_t k) {
    const int64_t row = blocks_of(p) * p->block * p->bits / 8, each = 8 / p->bits;
    const unsigned byte = byte_at((size_t)(o * row + k / each));
    const unsigned code = byte >> (unsigned)(k % each * p->bits) & ((1U << p->bits) - 1);
    const int64_t block = o * blocks_of(p) + k / p->block;
    float zero = p->has_real_zeros ? p->zero : (float)(1 << (p->bits - 1));
    if (p->zero_count > 0) { // a row of them begins with a byte
        const int64_t at = k / p->block, per_row = p->zero_count / p->outs;
        const unsigned zeros = byte_at((size_t)(o * per_row + at / each));
        zero = (float)(zeros >> (unsigned)(at % each * p->bits) & ((1U << p->bits) - 1));
    }
    return ((float)code - zero) * p->scale * (block % 2 == 0 ? 1 : -1);
}

static void check_product(product p, const char *printed_part) {
    tare_model *model = NULL;
    CHECK_DONE(read_product(&p, &model));
    assert_int_equal(tare_model_get_stage(model), TARE_STAGE_REFERENCE);
    CHECK_HOLDS(printed(model), printed_part);
    tare_tensor *x = NEW_INPUT(2, (int)p.ins);
    tare_tensor *y = result_of(model, (const tare_tensor *const *)&x, 1);
    for (int64_t i = 0; i < y->count; i++) {
        double sum = 0;
        for (int64_t k = 0; k < p.ins; k++)
            sum += (double)(tare__f32(x)[i / p.outs * p.ins + k] * weight_at(&p, i % p.outs, k));
        if (p.has_bias) sum += (double)(p.scale * (float)(i % p.outs % 2 == 0 ? 1 : -1));
        // Rows of 8 bits are as exact as their steps.
        const double most = p.accuracy == 4 ? 0.02 * (double)p.ins : 1e-5 * (1 + fabs(sum));
        assert_true(fabs((double)tare__f32(y)[i] - sum) <= most);
    }
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_model_destroy(model);
}

static void products_with_blocks_are_layers(void **state) {
    (void)state;
    product p = usual;
    check_product(p, "(fc): GroupedLinear(in_features=32, out_features=3, bits=4, group_size=16, "
                     "weight_zero_point=False, bias=False)");
    p.has_bias = true;
    p.zero_count = 3;
    check_product(p, "weight_zero_point=True, bias=True");
    p = usual;
    p.accuracy = 4;
    check_product(p, "activation_dtype=torch.int8");
    p = usual;
    p.bits = 8;
    p.has_real_zeros = true;
    p.zero = 117;
    check_product(p, "bits=8, group_size=16, weight_zero_point=True");
    p = usual;
    p.order_step = 1; // the inputs in their order
    check_product(p, "group_size=16");
}

// Blocks that do not divide the inputs are halved until they do; codes of 2 bits lie in 4, and
// those of an odd row in 8.
static void blocks_that_do_not_fit_become_shorter_groups(void **state) {
    (void)state;
    product p = usual;
    p.ins = 40;
    p.zero_count = 6; // 3 blocks in 2 bytes
    check_product(p, "bits=4, group_size=8, weight_zero_point=True");
    p.zero_count = 0;
    p.ins = 33;
    check_product(p, "bits=8, group_size=1, weight_zero_point=True");
    p = usual;
    p.bits = 2;
    check_product(p, "bits=4, group_size=16, weight_zero_point=True");
}

static void check_bad(product p, tare_status status, const char *words) {
    tare_model *model = NULL;
    CHECK_REFUSED(read_product(&p, &model), status, words);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    product p = usual;
    p.bits = 3;
    check_bad(p, TARE_UNSUPPORTED, "expected 2, 4 or 8 bits, found 3");
    p = usual;
    p.block = 24;
    check_bad(p, TARE_MALFORMED_FILE, "a block_size of 16, 32, .. 32768, found 32, 3 and 24");
    p = usual;
    p.code_count = 47;
    check_bad(p, TARE_MALFORMED_FILE, "'B' has 47 elements, expected 16 for each of 3 outputs");
    p = usual;
    p.zero_count = 4;
    check_bad(p, TARE_MALFORMED_FILE, "'zero_points' has 4 elements");
    p = usual;
    p.has_real_zeros = true;
    p.zero = 7.5F;
    check_bad(p, TARE_UNSUPPORTED, "zero point 7.5 is not an integer of 4 bits");
    p.zero = 16;
    check_bad(p, TARE_UNSUPPORTED, "zero point 16 is not an integer of 4 bits");
    p = usual;
    p.order_step = 2;
    check_bad(p, TARE_UNSUPPORTED, "not adjacent (g_idx)");
    p = usual;
    p.scale = INFINITY;
    check_bad(p, TARE_INVALID_ARGUMENT, "'weight_scale' is inf");
}

// --- writing ---

static tare_model *network(const char *mapping) {
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Linear", "in_features=64, out_features=12");
    put_module(root, NULL, "b", "torch.nn.Linear", "in_features=64, out_features=12, bias=False");
    tare_model *model = new_model(
        NULL, root,
        "def forward(self, x):\n    a = self.a(x)\n    relu = torch.nn.functional.relu(a)\n"
        "    b = self.b(x)\n    add = relu + b\n    return add");
    tare_backend_config *backend = builtin_backend("tare");
    tare_qconfig_mapping *m = default_mapping(mapping);
    tare_model *made = prepared(model, backend, m), *out = lowered(made, backend);
    tare_model_destroy(model);
    tare_model_destroy(made);
    tare_qconfig_mapping_destroy(m);
    tare_backend_config_destroy(backend);
    return out;
}

static tare_status write_as(const tare_model *model, int opset) {
    const int64_t sizes[] = {-1, 64};
    const tare_input_shape shape = {"x", 2, sizes};
    const tare_onnx_options options = {
        .struct_size = sizeof options, .opset = opset, .shapes = &shape, .shape_count = 1};
    return tare_model_write_onnx(model, temp_path("groups.onnx"), &options, job_error());
}

static void check_round_trip(const char *mapping, int opset) {
    tare_model *model = network(mapping), *again = NULL;
    tare_tensor *x = NEW_INPUT(3, 64);
    CHECK_DONE(write_as(model, opset));
    CHECK_DONE(tare_model_read(temp_path("groups.onnx"), NULL, &again, job_error()));
    assert_string_equal(printed(model), printed(again));
    tare_tensor *expected = result_of(model, (const tare_tensor *const *)&x, 1);
    tare_tensor *y = result_of(again, (const tare_tensor *const *)&x, 1);
    check_same_tensor(y, expected);
    tare_tensor_release(expected);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(again);
    tare_model_destroy(model);
}

static void layers_come_back_from_files(void **state) {
    (void)state;
    static const char *const mappings[] = {"int4_weight_only_g32", "int8_weight_only",
                                           "int8_dynamic_activation_int4_weight_g32"};
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
        check_round_trip(mappings[i], 18);
        check_round_trip(mappings[i], 21);
    }
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state) {
    (void)state;
    tare_model *model = network("int4_weight_only_g32"), *read = NULL;
    tare_status status = TARE_OK;
    for (int opset = 18; opset <= 21; opset += 3) {
        SOME_ALLOCATIONS_FAIL(31, status, status = write_as(model, opset), (void)0);
        SOME_ALLOCATIONS_FAIL(31, status,
                              status = tare_model_read(temp_path("groups.onnx"), NULL, &read, NULL),
                              tare_model_destroy(read));
    }
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_with_blocks_are_layers),
        cmocka_unit_test(blocks_that_do_not_fit_become_shorter_groups),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(layers_come_back_from_files),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#endif
