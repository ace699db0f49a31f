// SPDX-License-Identifier: Apache-2.0
// Any text as a graph over a few tensors. What is accepted is run: no arguments may make an
// operator read or write where it must not, or compute what C leaves undefined.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bounded_run.h"
#include "ops/classes/classes.h"
#include "ops/text/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *name;
    tare_dtype dtype;
    int ndim;
    int64_t shape[4];
} tensors[] = {
    {"f", TARE_FLOAT32, 4, {2, 4, 5, 3}},
    {"w", TARE_FLOAT32, 4, {4, 2, 2, 1}},
    {"m", TARE_FLOAT32, 2, {4, 3}},
    {"v", TARE_FLOAT32, 1, {4}},
    {"s", TARE_FLOAT32, 0, {0}},
    {"e", TARE_FLOAT32, 3, {0, 4, 2}},
    {"h", TARE_FLOAT16, 2, {4, 3}},
    {"i", TARE_INT64, 2, {2, 3}},
    {"k", TARE_INT32, 1, {4}},
    {"b", TARE_BOOL, 2, {4, 3}},
    {"d", TARE_FLOAT64, 1, {4}},
    {"z", TARE_INT64, 1, {4}},
};

static void add(module *root, const char *name, tare_tensor *t, tare_status made) {
    if (made != TARE_OK || tare__module_set_tensor(root, name, t, false, NULL) != TARE_OK) abort();
    tare_tensor_release(t);
}

// q: one scale; c: a scale per channel.
static void add_quantized(module *root) {
    const int64_t shape[] = {4, 3};
    const double scales[] = {0.5, 0.25, 0.125, 2}, zeros[4] = {0};
    const qparams *q = tare__qparams_per_tensor(TARE_QUINT8, 0.1, 128);
    const qparams *c =
        tare__qparams_create(TARE_PER_CHANNEL_AFFINE, TARE_QINT8, 0, 4, scales, zeros);
    tare_tensor *t = NULL;
    tare_status made = tare__tensor_quantized(2, shape, q, &t, NULL);
    if (made == TARE_OK) memset(t->data, 130, 12);
    add(root, "q", t, made);
    made = tare__tensor_quantized(2, shape, c, &t, NULL);
    add(root, "c", t, made);
    tare__qparams_release(q);
    tare__qparams_release(c);
}

static void add_tensors(module *root) {
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        tare_tensor *t = NULL;
        const tare_status made =
            tare_tensor_create(tensors[i].dtype, tensors[i].ndim, tensors[i].shape, &t, NULL);
        const bool is_zero = tensors[i].name[0] == 'z';
        if (made == TARE_OK && !is_zero) fill(t);
        add(root, tensors[i].name, t, made);
    }
    add_quantized(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int64_t shape[] = {1, 4, 6, 6};
    module *root = NULL;
    if (tare__module_create(&tare__class_graph_module, &root, NULL) != TARE_OK) abort();
    add_tensors(root);
    if (tare__parse_code((const char *)data, size, root, &root->graph, NULL) == TARE_OK)
        run_bounded_on(root, TARE_FLOAT32, 4, shape);
    tare__module_release(root);
    return 0;
}
