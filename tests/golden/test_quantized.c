// SPDX-License-Identifier: Apache-2.0
// Networks that others have quantized: they are known as quantized, become integers as they are,
// and give what their own runtime computes. Data: tests/data/quantized.zip, made by
// tests/data/pack_quantized.py.
#include "support/test.h"

#include <math.h>

#include "core/json/json.h"
#include "golden/networks.h"
#include "replay/case.h"
#include "support/models.h"
#include "tare/debug.h"

#define ARCHIVE "tests/data/quantized.zip"

static const char *const onnx_names[] = {
    "residual_qdq_quint8_channels",
    "residual_qdq_qint8_tensor",
    "residual_qoperator_quint8_channels",
    "residual_dynamic",
    "residual_nncf",
    "residual_qdq_quint8_pairs",
    "residual_qdq_quint16_own",
    "depthwise_qdq_qint8_channels",
    "depthwise_qoperator_quint8_tensor",
    "depthwise_nncf",
    "parts_qdq_quint8_channels",
    "parts_qoperator_quint8_tensor",
    "parts_nncf",
    "branches_nncf",
    "encoder_qdq_quint8_channels",
    "encoder_qoperator_quint8_channels",
    "encoder_dynamic",
    "encoder_bits_4_16_symmetric",
    "encoder_bits_4_32_affine",
    "encoder_bits_8_16_affine",
    "encoder_bits_4_16_symmetric_4",
    "encoder_bitsqdq_4_16_symmetric",
    "encoder_bitsqdq_4_16_affine",
};
static const char *const program_names[] = {
    "residual_trained_pt2",
    "depthwise_static_pt2",
    "depthwise_observed_pt2",
    "encoder_dynamic_pt2",
    "encoder_x86_pt2",
    "encoder_weights4_pt2",
    "encoder_weights8_pt2",
    "encoder_rows8_zero_pt2",
};

// Prepared by torch, trained, and saved with their fake quantizers.
static const char *const prepared_names[] = {
    "residual_prepared_pt2",
    "depthwise_prepared_pt2",
};

static const char *const module_names[] = {
    "residual_fx",
    "residual_fx_trained",
    "residual_fx_prepared",
    "residual_fx_trained_prepared",
    "depthwise_fx_trained",
};

typedef struct quantized_file {
    safetensors data;
    tare_model *model;
    double operators, error;
} quantized_file;

static double number(const case_bytes *json, const char *key) {
    json_t *root = json_loadb((const char *)json->data, json->size, 0, NULL);
    const double found = json_number_value(json_object_get(root, key));
    json_decref(root);
    return found;
}

static quantized_file read_case(const char *name, const char *file) {
    char members[64];
    quantized_file q = {.model = NULL};
    case_bytes json, data, model;
    snprintf(members, sizeof members, "%s/", name);
    const case_place place = {name, ARCHIVE, members};
    const tare_model_read_options options = {.struct_size = sizeof options, .copies_file = true};
    CHECK_DONE(case_read_file(&place, "case.json", &json, job_error()));
    CHECK_DONE(case_read_file(&place, "data.safetensors", &data, job_error()));
    CHECK_DONE(case_read_file(&place, file, &model, job_error()));
    q.operators = number(&json, "operators");
    q.error = number(&json, "error");
    CHECK_DONE(tare__safetensors_parse(data.store, data.data, data.size, &q.data, job_error()));
    CHECK_DONE(
        tare_model_read_memory(model.data, model.size, NULL, &options, &q.model, job_error()));
    tare__storage_release(json.store);
    tare__storage_release(data.store);
    tare__storage_release(model.store);
    return q;
}

static void check_result(const char *name, const quantized_file *q, const tare_model *model) {
    const tensors inputs = tensors_of(&q->data, "input"), wanted = tensors_of(&q->data, "output");
    tensors found = run_tensors(model, &inputs);
    const tare_tensor *x = wanted.items[0], *y = found.items[0];
    double greatest = 0, apart = 0;
    assert_int_equal(x->count, y->count);
    for (int64_t i = 0; i < x->count; i++) {
        greatest = fmax(greatest, fabs(tare__tensor_get(x, i)));
        apart = fmax(apart, fabs(tare__tensor_get(x, i) - tare__tensor_get(y, i)));
    }
    if (!(apart <= q->error * greatest))
        fail_msg("%s, stage %d: %g of the greatest output apart", name, tare_model_get_stage(model),
                 apart / greatest);
    release_tensors(&found);
}

// A prepared one is converted first, with what its observers have learned.
static void convert(quantized_file *q) {
    tare_model *converted = NULL;
    assert_int_equal(tare_model_get_stage(q->model), TARE_STAGE_PREPARED);
    CHECK_DONE(tare_model_set_training(q->model, false, job_error()));
    CHECK_DONE(tare_convert_pt2e(q->model, NULL, &converted, job_error()));
    check_explained(converted);
    tare_model_destroy(q->model);
    q->model = converted;
}

// Compared layer by layer, the lowered model has the values of the model as it came.
static void check_layers(const char *name, const quantized_file *q, const tare_model *lowered) {
    const tensors inputs = tensors_of(&q->data, "input");
    tare_debug_comparison *c = NULL;
    tare_debug_row row = {.struct_size = sizeof row};
    CHECK_DONE(tare_debug_comparison_create(q->model, lowered, NULL, &c, job_error()));
    CHECK_DONE(tare_debug_compare(c, (const tare_tensor *const *)inputs.items, inputs.count,
                                  NULL, NULL, job_error()));
    assert_true(tare_debug_comparison_row_count(c) > 0);
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++)
        if (row.element_count > 0 && !(row.sqnr_db > 30))
            fail_msg("%s: '%s' and '%s' are %g dB apart", name, row.reference_node, row.node,
                     row.sqnr_db);
    tare_debug_comparison_destroy(c);
}

// Every layer multiplies the codes that the file has.
static void check_groups(const tare_model *lowered) {
    CHECK_HOLDS(printed(lowered), "(f2): GroupedLinear(in_features=64, out_features=16");
    assert_null(strstr(printed(lowered), " Linear("));
    assert_null(strstr(printed(lowered), "(Reference)"));
    CHECK_LACKS(explained(lowered, NULL), "GroupedLinear): quantized: it reads quantized values");
}

static void check_file(const char *name, const char *file) {
    tare_model *lowered = NULL;
    tare_coverage c = {.struct_size = sizeof c};
    quantized_file q = read_case(name, file);
    if (strstr(name, "_prepared_pt2") != NULL) convert(&q);
    assert_int_equal(tare_model_get_stage(q.model), TARE_STAGE_REFERENCE);
    check_result(name, &q, q.model);
    CHECK_DONE(tare_lower(q.model, NULL, &lowered, job_error()));
    check_explained(lowered);
    CHECK_DONE(tare_model_coverage(lowered, &c, job_error()));
    if ((double)c.quantized_op_count < q.operators)
        fail_msg("%s: %llu operators in integers, expected %g", name,
                 (unsigned long long)c.quantized_op_count, q.operators);
    check_result(name, &q, lowered);
    check_layers(name, &q, lowered);
    if (strstr(name, "_bits") != NULL) check_groups(lowered);
    tare_model_destroy(lowered);
    tare_model_destroy(q.model);
    tare__safetensors_release(&q.data);
}

static void check_program(void **state) {
    check_file(*state, "model.pt2");
}

static void check_module(void **state) {
    check_file(*state, "model.safetensors");
}

static void check_onnx(void **state) {
#ifdef TARE_HAVE_ONNX
    check_file(*state, "model.onnx");
#else
    (void)state;
    skip();
#endif
}

static struct CMUnitTest test_of(const char *name, void (*check)(void **state)) {
    return (struct CMUnitTest){.name = name, .test_func = check, .initial_state = (void *)name};
}

int main(void) {
    enum {
        ONNX_NAMES = sizeof onnx_names / sizeof *onnx_names,
        PROGRAMS = sizeof program_names / sizeof *program_names,
        PREPARED = sizeof prepared_names / sizeof *prepared_names,
        MODULES = sizeof module_names / sizeof *module_names
    };
    struct CMUnitTest tests[ONNX_NAMES + PROGRAMS + PREPARED + MODULES];
    size_t count = 0;
    for (size_t i = 0; i < ONNX_NAMES; i++) tests[count++] = test_of(onnx_names[i], check_onnx);
    for (size_t i = 0; i < PROGRAMS; i++) tests[count++] = test_of(program_names[i], check_program);
    for (size_t i = 0; i < PREPARED; i++)
        tests[count++] = test_of(prepared_names[i], check_program);
    for (size_t i = 0; i < MODULES; i++) tests[count++] = test_of(module_names[i], check_module);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
