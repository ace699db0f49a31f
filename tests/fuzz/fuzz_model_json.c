// SPDX-License-Identifier: Apache-2.0
// Any text as the graph of a model file that has a few tensors. What is accepted must be written,
// and read again as the same model.
#include <stdlib.h>
#include <string.h>

#include "io/native/model_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};

static void add(safetensors *file, const char *name, tare_dtype dtype, int ndim,
                const int64_t *shape) {
    tare_tensor *t = NULL;
    if (tare_tensor_create(dtype, ndim, shape, &t, NULL) != TARE_OK ||
        !tare__map_set(&file->tensors, name, t))
        abort();
}

static void read_and_write(const char *json, text *out, tare_status expected) {
    safetensors file = {.header = json_pack("{s:{s:s}}", "__metadata__", "tare.graph", json)};
    if (file.header == NULL) return; // not UTF-8: no header could hold it
    module *root = NULL;
    json_t *extra = NULL;
    add(&file, "fc.weight", TARE_FLOAT32, 2, (int64_t[]){2, 3});
    add(&file, "fc.bias", TARE_FLOAT32, 1, (int64_t[]){2});
    add(&file, "q.int_repr", TARE_INT8, 2, (int64_t[]){2, 3});
    add(&file, "q.scale", TARE_FLOAT64, 1, (int64_t[]){1});
    add(&file, "q.zero_point", TARE_INT64, 1, (int64_t[]){1});
    const tare_status status = tare__model_from_file(&file, &classes, NULL, &root, &extra, NULL);
    if (expected == TARE_OK && status != TARE_OK) abort();
    if (status == TARE_OK && tare__model_to_json(root, NULL, extra, out, NULL) != TARE_OK) abort();
    tare__module_release(root);
    json_decref(extra);
    tare__safetensors_release(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *json = malloc(size + 1);
    if (json == NULL) return 0;
    if (size > 0) memcpy(json, data, size);
    json[size] = '\0';
    text first = {0}, second = {0};
    read_and_write(json, &first, TARE_MALFORMED_FILE);
    // A shared tensor is stored under the first of its names, which the file above may not have.
    if (first.length > 0 && strstr(first.chars, "\"aliases\"") == NULL) {
        read_and_write(first.chars, &second, TARE_OK);
        if (strcmp(first.chars, second.chars) != 0) abort();
    }
    tare__text_release(&first);
    tare__text_release(&second);
    free(json);
    return 0;
}
