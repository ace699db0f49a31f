// SPDX-License-Identifier: Apache-2.0
// Protobuf messages, field by field. What is written is canonical: fields in ascending order,
// defaults left out.
#ifndef IO_ONNX_WRITE_WIRE_H
#define IO_ONNX_WRITE_WIRE_H

#include <stdint.h>

#include "core/text/text.h"

void tare__pb_varint(text *out, uint64_t value);
void tare__pb_int(text *out, unsigned field, int64_t value);
void tare__pb_float(text *out, unsigned field, float value);
void tare__pb_bytes(text *out, unsigned field, const void *bytes, size_t size);
void tare__pb_string(text *out, unsigned field, const char *chars);
/// A message that stands in `inside`, which is released.
void tare__pb_message(text *out, unsigned field, text *inside);
/// Only the tag and the length: `size` bytes are to follow.
void tare__pb_head(text *out, unsigned field, uint64_t size);
/// {1: key, 2: value}, as StringStringEntryProto has it.
void tare__pb_entry(text *out, unsigned field, const char *key, const char *value);

#endif
