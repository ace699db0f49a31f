// SPDX-License-Identifier: Apache-2.0
// A look at protobuf bytes before they are unpacked: protobuf-c recurses without a limit and joins
// what occurs twice.
#ifndef IO_ONNX_READ_WIRE_H
#define IO_ONNX_READ_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { WIRE_DEEPEST = 64 };

/// Checks `size` bytes as a message of `descriptor`: tags and varints whole, lengths inside of what
/// holds them, at most WIRE_DEEPEST messages deep, no message field twice where it is not repeated,
/// strings UTF-8 without NUL. Errors name the field and the byte.
tare_status tare__wire_check(const ProtobufCMessageDescriptor *descriptor,
                             const unsigned char *bytes, size_t size, tare_error *err);

/// A varint at *at, which moves behind it; false where it does not end inside of `size` bytes.
bool tare__wire_varint(const unsigned char *bytes, size_t size, size_t *at, uint64_t *out);

#endif
