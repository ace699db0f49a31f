// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: refused, or tensors whose every byte may be read.
#include <stdlib.h>

#include "io/native/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    storage *store = tare__storage_adopt((void *)data, size, NULL, NULL);
    safetensors file = {0};
    if (tare__safetensors_parse(store, data, size, &file, NULL) == TARE_OK) {
        size_t bytes = 0;
        volatile double sum = 0;
        for (size_t i = 0; i < file.tensors.count; i++) {
            const tare_tensor *t = file.tensors.entries[i].value;
            for (int64_t e = 0; e < t->count; e++) sum += tare__tensor_get(t, e);
            bytes += tare__tensor_bytes(t);
        }
        (void)sum;
        if (bytes > size) abort(); // no byte has two owners
        tare__safetensors_release(&file);
    }
    tare__storage_release(store);
    return 0;
}
