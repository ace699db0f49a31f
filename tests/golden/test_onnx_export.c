// SPDX-License-Identifier: Apache-2.0
// Networks as ONNX and back: the file that is written gives the same model again, printed and in
// its integers and outputs; and ONNX Runtime has computed from such files what we compute.
// Data: tests/data/networks.zip; tests/data/onnx_export.zip, made by
// tests/data/pack_onnx_export.py with ONNX Runtime.
#include "support/test.h"

#include <math.h>

#include "core/json/json.h"
#include "golden/networks.h"
#include "io/native/model_file.h"
#include "model/model.h"
#include "replay/case.h"
#include "support/models.h"
#include "support/temp.h"

#ifndef TARE_HAVE_ONNX

int main(void) {
    return skip_tests("this build has no ONNX");
}

#else

#include <zlib.h>

static tare_model *written_and_read(const tare_model *model, int opset, bool external_data) {
    const char *path = temp_path("model.onnx");
    tare_model *again = NULL;
    const tare_onnx_options options = {
        .struct_size = sizeof options, .opset = opset, .external_data = external_data};
    CHECK_DONE(tare_model_write_onnx(model, path, &options, job_error()));
    CHECK_DONE(tare_model_read(path, NULL, &again, job_error()));
    return again;
}

// --- the same model again ---

// Integers, scales and zero points; floats that the file holds as integers are within their step.
static tare_status check_tensors(void *user, const char *path, module *m, tare_error *err) {
    const module *root = user, *again = tare__module_find(root, path);
    (void)err;
    assert_non_null(again);
    assert_ptr_equal(again->class, m->class);
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *a = m->tensors[i].tensor;
        const tare_tensor *b = tare__module_tensor(again, m->tensors[i].name);
        assert_int_equal(a != NULL, b != NULL);
        if (a == NULL || b == NULL) continue;
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->count, b->count);
        if (a->q != NULL) assert_true(tare__qparams_equal(a->q, b->q));
        const bool is_bias = a->dtype == TARE_FLOAT32 && a->ndim == 1; // or may be one
        const bool is_exact = a->q != NULL || (m->class->role == ROLE_CONTAINER && !is_bias) ||
                              strstr(m->tensors[i].name, "scale") != NULL;
        if (is_exact) assert_memory_equal(a->data, b->data, tare__tensor_bytes(a));
    }
    return TARE_OK;
}

static text print_of(const tare_model *model) {
    text out = {0};
    CHECK_DONE(
        tare_model_print(model, TARE_PRINT_MODEL, tare__text_append_writer, &out, job_error()));
    CHECK_DONE(
        tare_model_print(model, TARE_PRINT_NODES, tare__text_append_writer, &out, job_error()));
    return out;
}

static void check_again(const char *name, const tare_model *model, int opset, const tensors *inputs,
                        bool is_exact) {
    tare_model *again = written_and_read(model, opset, opset == 17);
    text before = print_of(model), after = print_of(again);
    if (strcmp(tare__text_chars(&before), tare__text_chars(&after)) != 0)
        fail_msg("%s, opset %d: what is read back prints as\n%s", name, opset,
                 tare__text_chars(&after));
    tare__text_release(&before);
    tare__text_release(&after);
    assert_int_equal(tare_model_get_stage(model), tare_model_get_stage(again));
    assert_int_equal(tare_model_decision_count(model), tare_model_decision_count(again));
    assert_int_equal(tare__module_walk(model->root, check_tensors, again->root, NULL), TARE_OK);
    tensors expected = run_tensors(model, inputs), found = run_tensors(again, inputs);
    assert_int_equal(expected.count, found.count);
    for (size_t i = 0; is_exact && i < found.count; i++)
        check_same_tensor(expected.items[i], found.items[i]);
    release_tensors(&expected);
    release_tensors(&found);
    // Once is enough where the outputs are the very same.
    if (is_exact) {
        tare_model_destroy(again);
        return;
    }
    // Biases have become the integers that the file holds: from now on nothing changes any more.
    tare_model *third = written_and_read(again, opset, false);
    expected = run_tensors(again, inputs);
    found = run_tensors(third, inputs);
    for (size_t i = 0; i < found.count; i++) check_same_tensor(expected.items[i], found.items[i]);
    release_tensors(&expected);
    release_tensors(&found);
    tare_model_destroy(third);
    tare_model_destroy(again);
}

static void check_network(void **state) {
    const char *name = *state;
    char members[64];
    recorded_case c;
    tare_model *model = NULL;
    snprintf(members, sizeof members, "%s/", name);
    const case_place place = {name, "tests/data/networks.zip", members};
    CHECK_DONE(case_read(&place, &c, job_error()));
    CHECK_DONE(case_model(&c, &model, job_error()));
    const tensors inputs = tensors_of(&c.data, "input");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CHECK_DONE(tare_calibrate(p, inputs.items, inputs.count, job_error()));
    tare_model *reference = referenced(p, backend), *integers = lowered(p, backend);
    check_again(name, model, 13, &inputs, true);
    check_again(name, reference, 17, &inputs, false);
    check_again(name, integers, 21, &inputs, false);
    tare_model_destroy(integers);
    tare_model_destroy(reference);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    case_release(&c);
}

#define NAME(name, sqnr) name,
static const char *const names[] = {NETWORKS(NAME)};

// --- exported programs ---

static void check_program(void **state) {
    const char *name = *state;
    static const char *const quantizers[] = {"XNNPACKQuantizer", "X86InductorQuantizer"};
    char members[64];
    recorded_case c;
    tare_model *model = NULL;
    snprintf(members, sizeof members, "%s/", name);
    const case_place place = {name, "tests/data/exported.zip", members};
    CHECK_DONE(case_read(&place, &c, job_error()));
    CHECK_DONE(case_model(&c, &model, job_error()));
    const tensors inputs = tensors_of(&c.data, "input");
    check_again(name, model, 13, &inputs, true);
    for (int i = 0; i < 2; i++) {
        tare_quantizer *q = NULL;
        tare_model *p = NULL, *converted = NULL, *integers = NULL;
        CHECK_DONE(tare_quantizer_builtin(quantizers[i], NULL, &q, job_error()));
        CHECK_DONE(tare_prepare_pt2e(model, q, &p, job_error()));
        CHECK_DONE(tare_calibrate(p, inputs.items, inputs.count, job_error()));
        CHECK_DONE(tare_convert_pt2e(p, NULL, &converted, job_error()));
        check_explained(converted);
        CHECK_DONE(tare_lower_pt2e(converted, NULL, &integers, job_error()));
        check_explained(integers);
        check_again(name, converted, 18, &inputs, false);
        check_again(name, integers, 21, &inputs, false);
        tare_model_destroy(integers);
        tare_model_destroy(converted);
        tare_model_destroy(p);
        tare_quantizer_destroy(q);
    }
    tare_model_destroy(model);
    case_release(&c);
}

#define PROGRAM(name) name "_xnnpack_tensor_0"
static const char *const programs[] = {
    PROGRAM("add_mul_chain"), PROGRAM("conv1d"),        PROGRAM("encoder_layer"),
    PROGRAM("functional"),    PROGRAM("inception"),     PROGRAM("inverted_residual"),
    PROGRAM("lstm"),          PROGRAM("shared_module"), PROGRAM("text_tagger"),
    PROGRAM("unet"),
};

// --- what ONNX Runtime computed ---

// The bytes of the graph: field 7 of the model.
static unsigned long graph_crc(const char *path) {
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    unsigned long crc = 0;
    for (size_t at = 0; at < size;) {
        uint64_t length = 0;
        const unsigned tag = bytes[at++];
        for (int shift = 0;; shift += 7) {
            length |= (uint64_t)(bytes[at] & 0x7f) << shift;
            if (bytes[at++] < 0x80) break;
        }
        if ((tag & 7) != 2) continue;
        if (tag >> 3 == 7) crc = crc32(0, bytes + at, (uInt)length);
        at += length;
    }
    free(bytes);
    return crc;
}

static void check_outputs(const char *name, const tensors *expected, const tensors *found,
                          const json_at *steps) {
    assert_int_equal(expected->count, found->count);
    for (size_t i = 0; i < found->count; i++) {
        const json_at at = tare__json_item(steps, i);
        double step = 0;
        CHECK_DONE(tare__json_double(&at, &step, job_error()));
        const tare_tensor *x = expected->items[i], *y = found->items[i];
        assert_int_equal(x->count, y->count);
        for (int64_t k = 0; k < x->count; k++) {
            const double apart = fabs(tare__tensor_get(x, k) - tare__tensor_get(y, k));
            if (!(apart <= 1.001 * step))
                fail_msg("%s: element %lld of output %zu is %g steps from ONNX Runtime's", name,
                         (long long)k, i, apart / step);
        }
    }
}

static tare_model *lowered_model(const recorded_case *c) {
    module *root = NULL;
    tare_model *model = NULL;
    CHECK_DONE(tare__model_from_file(&c->model, &tare__context_or_builtin(NULL)->classes, NULL,
                                     &root, NULL, job_error()));
    CHECK_DONE(tare__model_create(NULL, root, TARE_STAGE_LOWERED, NULL, &model, job_error()));
    return model;
}

static void check_recorded(void **state) {
    const char *name = *state;
    char members[64];
    recorded_case c;
    snprintf(members, sizeof members, "%s/", name);
    const case_place place = {name, "tests/data/onnx_export.zip", members};
    CHECK_DONE(case_read(&place, &c, job_error()));
    tare_model *model = lowered_model(&c);
    const json_at root = tare__json_root(c.json), crc_at = tare__json_get(&root, "crc");
    const json_at opset_at = tare__json_get(&root, "opset"), steps = tare__json_get(&root, "steps");
    int64_t crc = 0, opset = 0;
    CHECK_DONE(tare__json_int(&crc_at, &crc, job_error()));
    CHECK_DONE(tare__json_int(&opset_at, &opset, job_error()));
    const tare_onnx_options options = {.struct_size = sizeof options, .opset = (int)opset};
    CHECK_DONE(tare_model_write_onnx(model, temp_path("m.onnx"), &options, job_error()));
    if (graph_crc(temp_path("m.onnx")) != (unsigned long)crc)
        fail_msg("%s: the file is another one than ONNX Runtime has read: record it again with "
                 "tests/data/pack_onnx_export.py",
                 name);
    const tensors inputs = tensors_of(&c.data, "input"), outputs = tensors_of(&c.data, "output");
    tensors found = run_tensors(model, &inputs);
    check_outputs(name, &outputs, &found, &steps);
    release_tensors(&found);
    tare_model_destroy(model);
    case_release(&c);
}

static const char *const recorded[] = {"gru_classifier", "layers",    "lstm_tagger",
                                       "resnet18",       "spellings", "vit_b_16"};

int main(void) {
    enum {
        NAMES = sizeof names / sizeof *names,
        RECORDED = sizeof recorded / sizeof *recorded,
        PROGRAMS = sizeof programs / sizeof *programs
    };
    struct CMUnitTest tests[NAMES + RECORDED + PROGRAMS];
    for (size_t i = 0; i < NAMES; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = check_network, .initial_state = (void *)names[i]};
    for (size_t i = 0; i < RECORDED; i++)
        tests[NAMES + i] = (struct CMUnitTest){
            .name = recorded[i], .test_func = check_recorded, .initial_state = (void *)recorded[i]};
    for (size_t i = 0; i < PROGRAMS; i++)
        tests[NAMES + RECORDED + i] = (struct CMUnitTest){
            .name = programs[i], .test_func = check_program, .initial_state = (void *)programs[i]};
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#endif
