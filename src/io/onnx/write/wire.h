// SPDX-License-Identifier: Apache-2.0
// Writes protobuf messages field by field, in canonical form: fields in ascending order, without
// default values.
#ifndef IO_ONNX_WRITE_WIRE_H
#define IO_ONNX_WRITE_WIRE_H

#include <stdint.h>

#include "core/text/text.h"

void tare__pb_varint(text *out, uint64_t value);
void tare__pb_int(text *out, unsigned field, int64_t value);
void tare__pb_float(text *out, unsigned field, float value);
void tare__pb_bytes(text *out, unsigned field, const void *bytes, size_t size);
void tare__pb_string(text *out, unsigned field, const char *chars);
/// A nested message; releases `inside`.
void tare__pb_message(text *out, unsigned field, text *inside);
/// Only tag and length; the caller appends `size` bytes.
void tare__pb_head(text *out, unsigned field, uint64_t size);
/// The entry {1: key, 2: value} of StringStringEntryProto.
void tare__pb_entry(text *out, unsigned field, const char *key, const char *value);

#endif
