// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npz archive, and as one .npy array.
#include "io/data/npy.h"
#include "io/data/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const tare_tensor *t) {
    volatile double sum = 0;
    for (int64_t e = 0; e < t->count; e++) sum += tare__tensor_get(t, e);
    (void)sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    storage *store = tare__storage_adopt((void *)data, size, NULL, NULL);
    map arrays = {0};
    tare_tensor *t = NULL;
    if (tare__npz_parse(store, data, size, 0, &arrays, NULL) == TARE_OK) {
        for (size_t i = 0; i < arrays.count; i++) touch(arrays.entries[i].value);
        tare__tensor_map_release(&arrays);
    }
    if (tare__npy_parse(store, data, size, &t, NULL) == TARE_OK) {
        touch(t);
        tare_tensor_release(t);
    }
    tare__storage_release(store);
    return 0;
}
