// SPDX-License-Identifier: Apache-2.0
#include "io/onnx/write_pack.h"

bool tare__onnx_is_packed(int type) {
    return type == ONNX_UINT4 || type == ONNX_INT4;
}

uint64_t tare__onnx_packed_bytes(int type, uint64_t count, size_t size) {
    return tare__onnx_is_packed(type) ? (count + 1) / 2 : count * size;
}

size_t tare__onnx_pack(const tare_tensor *t, int64_t first, unsigned char *out, size_t capacity) {
    const unsigned char *from = t->data;
    size_t size = 0;
    for (int64_t i = first; i < t->count && size < capacity; i += 2, size++) {
        const unsigned low = from[i] & 15U, high = i + 1 < t->count ? from[i + 1] & 15U : 0;
        out[size] = (unsigned char)(low | high << 4);
    }
    return size;
}
