// SPDX-License-Identifier: Apache-2.0
// Any text as the digests of a model file that has a few tensors.
#include <stdlib.h>
#include <string.h>

#include "io/native/model_digests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(safetensors *file, const char *name, tare_dtype dtype, int64_t count) {
    tare_tensor *t = NULL;
    if (tare_tensor_create(dtype, 1, &count, &t, NULL) != TARE_OK ||
        !tare__map_set(&file->tensors, name, t))
        abort();
}

static void check(const char *digests, tare_status *status) {
    safetensors file = {.header = json_pack("{s:{s:s, s:s}}", "__metadata__", MODEL_GRAPH, "{}",
                                            MODEL_DIGESTS, digests)};
    if (file.header == NULL) return; // not UTF-8: no header could hold it
    add(&file, "w.packed", TARE_UINT8, 64);
    add(&file, "w.int_repr", TARE_INT8, 6);
    add(&file, "bias", TARE_FLOAT32, 2);
    model_digests *found = NULL;
    size_t count = 0;
    *status = tare__model_digests_begin(&file, &found, NULL);
    if (*status == TARE_OK) *status = tare__model_digests_end(found, &count, NULL);
    tare__safetensors_release(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tare_status status = TARE_MALFORMED_FILE;
    char *json = malloc(size + 1);
    if (json == NULL) return 0;
    if (size > 0) memcpy(json, data, size);
    json[size] = '\0';
    check(json, &status);
    if (status != TARE_OK && status != TARE_MALFORMED_FILE) abort();
    free(json);
    return 0;
}
