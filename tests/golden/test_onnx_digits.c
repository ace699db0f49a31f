// SPDX-License-Identifier: Apache-2.0
// The demo's network as an ONNX file (tools/train_digits.py --onnx) and in our own format give the
// same quantized model: the same file but for what is noted at nodes about where they came from.
#include "support/test.h"

#ifdef TARE_HAVE_ONNX

#include "core/json/json.h"
#include "io/native/safetensors.h"
#include "support/models.h"
#include "support/temp.h"

enum { CALIBRATION_IMAGES = 128 };

// The quantized model's file.
static void quantize(const char *name, const char *backend_name, const char *out_path) {
    char path[64];
    tare_model *model = NULL;
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    const tare_data_options options = {
        .struct_size = sizeof options, .batch_size = 32, .sample_limit = CALIBRATION_IMAGES};
    snprintf(path, sizeof path, "data/digits/%s", name);
    tare_backend_config *backend = builtin_backend(backend_name);
    tare_qconfig_mapping *mapping = default_mapping(backend_name);
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    tare_model *p = prepared(model, backend, mapping);
    CHECK_DONE(tare_data_open("data/digits/train.npz", p, &options, &data, job_error()));
    for (;;) {
        CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
        if (done) break;
        CHECK_DONE(tare_calibrate(p, batch.inputs, batch.input_count, job_error()));
    }
    tare_data_close(data);
    tare_model *q = lowered(p, backend);
    CHECK_DONE(tare_model_write(q, out_path, job_error()));
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void check_tensors(const safetensors *a, const safetensors *b) {
    assert_true(a->tensors.count > 10);
    assert_int_equal(a->tensors.count, b->tensors.count);
    for (size_t i = 0; i < a->tensors.count; i++) {
        const char *name = a->tensors.entries[i].key;
        const tare_tensor *other = tare__safetensors_get(b, name);
        if (other == NULL) fail_msg("no tensor '%s'", name);
        check_same_tensor(tare__safetensors_get(a, name), other);
    }
}

// The graph without what nodes note, and without the names that only the ONNX file gives.
static json_t *graph_of(const safetensors *file) {
    json_t *made = NULL, *nodes = NULL, *n = NULL;
    size_t i;
    const char *chars = tare__safetensors_metadata(file, "tare.graph");
    assert_non_null(chars);
    CHECK_DONE(tare__json_parse(chars, strlen(chars), &made, job_error()));
    nodes = json_object_get(made, "nodes");
    assert_true(json_array_size(nodes) > 10);
    json_array_foreach(nodes, i, n)(void) json_object_del(n, "meta");
    (void)json_object_del(made, "names");
    return made;
}

static void both_files_give_one_model(void **state) {
    const char *backend = *state;
    const char *paths[] = {temp_path("own.safetensors"), temp_path("onnx.safetensors")};
    safetensors files[2];
    quantize("digits.safetensors", backend, paths[0]);
    quantize("digits.onnx", backend, paths[1]);
    for (int i = 0; i < 2; i++)
        CHECK_DONE(tare__safetensors_read(paths[i], &files[i], job_error()));
    check_tensors(&files[0], &files[1]);
    json_t *own = graph_of(&files[0]), *onnx = graph_of(&files[1]);
    assert_true(json_equal(own, onnx));
    json_decref(own);
    json_decref(onnx);
    for (int i = 0; i < 2; i++) tare__safetensors_release(&files[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(both_files_give_one_model, (void *)"x86"),
        cmocka_unit_test_prestate(both_files_give_one_model, (void *)"qnnpack"),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
