// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking of 4-bit elements.
#include "io/onnx/pack.h"

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

void tare__onnx_unpack(int type, const unsigned char *bytes, tare_tensor *t) {
    unsigned char *to = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        const unsigned four = (unsigned)bytes[i / 2] >> (i % 2 == 0 ? 0 : 4) & 15U;
        const bool is_negative = type == ONNX_INT4 && four >= 8;
        to[i] = (unsigned char)(is_negative ? four | 0xf0U : four);
    }
}
