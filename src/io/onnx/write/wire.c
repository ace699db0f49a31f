// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format: varints, lengths, fixed words.
#include "io/onnx/write/wire.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

void tare__pb_varint(text *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) tare__text_char(out, (char)(unsigned char)(value | 0x80));
    tare__text_char(out, (char)(unsigned char)value);
}

static void tag(text *out, unsigned field, unsigned wire) {
    tare__pb_varint(out, field << 3 | wire);
}

void tare__pb_int(text *out, unsigned field, int64_t value) {
    tag(out, field, WIRE_VARINT);
    tare__pb_varint(out, (uint64_t)value);
}

void tare__pb_float(text *out, unsigned field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    tag(out, field, WIRE_FIXED32);
    for (int i = 0; i < 4; i++) tare__text_char(out, (char)(unsigned char)(bits >> 8 * i));
}

void tare__pb_head(text *out, unsigned field, uint64_t size) {
    tag(out, field, WIRE_LENGTH);
    tare__pb_varint(out, size);
}

void tare__pb_bytes(text *out, unsigned field, const void *bytes, size_t size) {
    tare__pb_head(out, field, size);
    tare__text_append_n(out, bytes, size);
}

void tare__pb_string(text *out, unsigned field, const char *chars) {
    tare__pb_bytes(out, field, chars, strlen(chars));
}

void tare__pb_message(text *out, unsigned field, text *inside) {
    tare__pb_bytes(out, field, tare__text_chars(inside), inside->length);
    out->failed |= inside->failed;
    tare__text_release(inside);
}

void tare__pb_entry(text *out, unsigned field, const char *key, const char *value) {
    text entry = {0};
    tare__pb_string(&entry, 1, key);
    tare__pb_string(&entry, 2, value);
    tare__pb_message(out, field, &entry);
}
