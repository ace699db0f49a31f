// SPDX-License-Identifier: Apache-2.0
// Checks protobuf bytes before they are unpacked: protobuf-c recurses without a limit and merges
// repeated messages.
#ifndef IO_ONNX_READ_WIRE_H
#define IO_ONNX_READ_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { WIRE_DEEPEST = 64 };

/// Checks `size` bytes as a message of `descriptor`: tags and varints are complete, lengths fit,
/// messages are nested at most WIRE_DEEPEST deep, no singular message field occurs twice, strings
/// are UTF-8 without NUL. Errors name the field and the byte.
tare_status tare__wire_check(const ProtobufCMessageDescriptor *descriptor,
                             const unsigned char *bytes, size_t size, tare_error *err);

/// Reads the varint at *at and moves *at behind it; false if it does not end within `size` bytes.
bool tare__wire_varint(const unsigned char *bytes, size_t size, size_t *at, uint64_t *out);

#endif
