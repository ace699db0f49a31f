// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX model: refused, or a graph that is in order and tensors that may be read.
#include <stdint.h>
#include <stdlib.h>

#include "core/tensor/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef TARE_HAVE_ONNX

#include "io/onnx/onnx.h"

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {tables, sizeof tables / sizeof *tables, NULL, 0, 0};

static tare_status touch(void *user, const char *path, module *m, tare_error *err) {
    volatile double *sum = user;
    (void)path, (void)err;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *t = m->tensors[i].tensor;
        if (t == NULL || t->data == NULL || t->count == 0) continue;
        *sum = *sum + tare__tensor_get(t, 0) + tare__tensor_get(t, t->count - 1);
    }
    return TARE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    module *root = NULL;
    onnx_origin origin;
    volatile double sum = 0;
    const tare_read_limits limits = {.memory_bytes = 64 << 20};
    const tare_model_read_options options = {.limits = &limits};
    const tare_status status =
        tare__onnx_read(data, size, "-", &classes, NULL, &options, &root, &origin, NULL);
    if (status == TARE_INTERNAL) abort();
    if (status != TARE_OK) return 0;
    json_decref(origin.extra);
    if (tare__graph_verify(root->graph, NULL) != TARE_OK) abort();
    if (tare__module_walk(root, touch, (void *)&sum, NULL) != TARE_OK) abort();
    tare__module_release(root);
    return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)data, (void)size;
    return 0;
}

#endif
