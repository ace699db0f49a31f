// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model file. What is accepted is run on small inputs of several shapes: attributes
// and tensors that make no sense must end in an error.
#include <stdint.h>
#include <stdlib.h>

#include "bounded_run.h"
#include "io/native/model_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};

static void run_model(module *root) {
    static const struct {
        tare_dtype dtype;
        int ndim;
        int64_t shape[4];
    } inputs[] = {
        {TARE_FLOAT32, 2, {2, 3}},         {TARE_FLOAT32, 3, {2, 3, 10}},
        {TARE_FLOAT32, 4, {1, 3, 10, 10}}, {TARE_FLOAT32, 4, {0, 3, 10, 10}},
        {TARE_FLOAT16, 2, {2, 3}},         {TARE_INT64, 2, {2, 3}},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        run_bounded_on(root, inputs[i].dtype, inputs[i].ndim, inputs[i].shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    storage *store = tare__storage_adopt((void *)data, size, NULL, NULL);
    safetensors file = {0};
    module *root = NULL;
    json_t *extra = NULL;
    if (store == NULL) abort();
    if (tare__safetensors_parse(store, data, size, &file, NULL) == TARE_OK &&
        tare__model_from_file_unchecked(&file, &classes, NULL, &root, &extra, NULL) == TARE_OK)
        run_model(root);
    tare__module_release(root);
    json_decref(extra);
    tare__safetensors_release(&file);
    tare__storage_release(store);
    return 0;
}
