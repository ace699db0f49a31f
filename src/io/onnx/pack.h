// SPDX-License-Identifier: Apache-2.0
// Elements of 4 bits, two in a byte, the first in the lower half.
// Private to io/onnx.
#ifndef IO_ONNX_PACK_H
#define IO_ONNX_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/tensor/tensor.h"

/// ONNX's numbers of the element types that are packed.
enum { ONNX_UINT4 = 21, ONNX_INT4 = 22 };

bool tare__onnx_is_packed(int type);
/// The size in bytes of `count` elements. `size`: bytes of one element of a type that is not
/// packed.
uint64_t tare__onnx_packed_bytes(int type, uint64_t count, size_t size);
/// Writes the elements from index `first` (even) on to at most `capacity` bytes. Returns how many
/// bytes were written.
size_t tare__onnx_pack(const tare_tensor *t, int64_t first, unsigned char *out, size_t capacity);
/// Unpacks all elements of t (int8 or uint8) from packed bytes.
void tare__onnx_unpack(int type, const unsigned char *bytes, tare_tensor *t);

#endif
