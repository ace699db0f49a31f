// SPDX-License-Identifier: Apache-2.0
// The wire format: a tag (field number and kind), then a varint, 4 or 8 bytes, or a length and that
// many bytes. Source: protobuf's «Encoding».
#include "io/onnx/read/wire.h"

#include <stdbool.h>
#include <string.h>

#include "core/text/text.h"

enum { KIND_VARINT = 0, KIND_FIXED64 = 1, KIND_BYTES = 2, KIND_FIXED32 = 5 };

typedef struct scan {
    const unsigned char *bytes; // of the whole file
    tare_error *err;
} scan;

bool tare__wire_varint(const unsigned char *bytes, size_t size, size_t *at, uint64_t *out) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (*at >= size) return false;
        const unsigned char byte = bytes[(*at)++];
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return *out = result, true;
    }
    return false;
}

static tare_status broken(const scan *s, size_t at, const char *message) {
    tare__fail(s->err, TARE_MALFORMED_FILE, "byte %zu: %s", at, message);
    return tare__hint(s->err, TARE_MALFORMED_FILE,
                      "the file is damaged or cut off: export or copy it again");
}

static tare_status check_text(const scan *s, const ProtobufCFieldDescriptor *field, size_t at,
                              size_t end) {
    while (at < end) {
        // The zeros behind the last byte make a sequence that is cut off invalid.
        char window[5] = {0};
        memcpy(window, s->bytes + at, end - at < 4 ? end - at : 4);
        const size_t length = window[0] == '\0' ? 0 : tare__utf8_length(window);
        if (length == 0)
            return tare__fail(s->err, TARE_MALFORMED_FILE, "byte %zu: field '%s' is not UTF-8 text",
                              at, field->name);
        at += length;
    }
    return TARE_OK;
}

static tare_status check_message(const scan *s, const ProtobufCMessageDescriptor *d, size_t at,
                                 size_t end, int depth);

// `field` is NULL for numbers that the schema lacks. Fields of another kind than in the schema are
// refused by protobuf-c itself.
static tare_status check_bytes(const scan *s, const ProtobufCFieldDescriptor *field, size_t at,
                               size_t end, int depth) {
    if (field == NULL) return TARE_OK;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return check_message(s, field->descriptor, at, end, depth + 1);
    if (field->type == PROTOBUF_C_TYPE_STRING) return check_text(s, field, at, end);
    return TARE_OK;
}

// protobuf-c merges a message field that occurs twice, in time quadratic in the file's size. No
// writer produces such files.
static tare_status note_field(const scan *s, const ProtobufCMessageDescriptor *d,
                              const ProtobufCFieldDescriptor *field, size_t at, uint64_t *seen) {
    if (field == NULL || field->type != PROTOBUF_C_TYPE_MESSAGE ||
        field->label == PROTOBUF_C_LABEL_REPEATED)
        return TARE_OK;
    const uint64_t bit = UINT64_C(1) << (unsigned)((field - d->fields) & 63);
    if (*seen & bit)
        return tare__fail(s->err, TARE_MALFORMED_FILE, "byte %zu: field '%s' occurs twice", at,
                          field->name);
    *seen |= bit;
    return TARE_OK;
}

static tare_status skip_number(const scan *s, unsigned kind, size_t *at, size_t end) {
    uint64_t ignored = 0;
    const size_t width = kind == KIND_FIXED64 ? 8 : 4;
    if (kind == KIND_VARINT)
        return tare__wire_varint(s->bytes, end, at, &ignored)
                   ? TARE_OK
                   : broken(s, *at, "a number does not end");
    if (kind != KIND_FIXED32 && kind != KIND_FIXED64)
        return broken(s, *at, "a field of an unknown kind");
    if (end - *at < width) return broken(s, *at, "a number is cut off");
    *at += width;
    return TARE_OK;
}

static tare_status check_message(const scan *s, const ProtobufCMessageDescriptor *d, size_t at,
                                 size_t end, int depth) {
    uint64_t seen = 0;
    if (depth > WIRE_DEEPEST) {
        tare__fail(s->err, TARE_MALFORMED_FILE,
                   "byte %zu: messages are nested more than %d deep, in '%s'", at, WIRE_DEEPEST,
                   d->short_name);
        return tare__hint(s->err, TARE_MALFORMED_FILE, "no exporter writes such a file");
    }
    while (at < end) {
        const size_t begin = at;
        uint64_t tag = 0, length = 0;
        if (!tare__wire_varint(s->bytes, end, &at, &tag))
            return broken(s, begin, "a tag is cut off");
        if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
            return broken(s, begin, "no field has this number");
        if ((tag & 7) != KIND_BYTES) {
            TARE_TRY(skip_number(s, (unsigned)(tag & 7), &at, end));
            continue;
        }
        if (!tare__wire_varint(s->bytes, end, &at, &length) || length > end - at)
            return broken(s, begin, "a field is longer than its message");
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
        TARE_TRY(note_field(s, d, field, begin, &seen));
        TARE_TRY(check_bytes(s, field, at, at + (size_t)length, depth));
        at += (size_t)length;
    }
    return TARE_OK;
}

tare_status tare__wire_check(const ProtobufCMessageDescriptor *descriptor,
                             const unsigned char *bytes, size_t size, tare_error *err) {
    const scan s = {.bytes = bytes, .err = err};
    return check_message(&s, descriptor, 0, size, 1);
}
