// SPDX-License-Identifier: Apache-2.0
// Source: PKWARE's APPNOTE.TXT 6.3, sections 4.3 and 4.5.3.
#include "io/zip/read.h"

#include <string.h>

static uint64_t number_at(const unsigned char *at, size_t width) {
    uint64_t number = 0;
    while (width-- > 0) number = number << 8 | at[width];
    return number;
}

// --- the end of the archive ---

enum {
    END_SIZE = 22,
    END_COUNT_AT = 10, // of entries; the directory's size and offset follow
    END_COMMENT_AT = 20,
    LONGEST_COMMENT = 0xFFFF,
    LOCATOR_SIZE = 20,
    LOCATOR_OFFSET_AT = 8,
    BIG_END_SIZE = 56,
    BIG_END_COUNT_AT = 32,
};

// The last possible end record. Bytes after its comment do not belong to the archive.
static bool find_end(const unsigned char *data, size_t size, size_t *out) {
    if (size < END_SIZE) return false;
    const size_t last = size - END_SIZE;
    const size_t first = last > LONGEST_COMMENT ? last - LONGEST_COMMENT : 0;
    for (size_t at = last + 1; at-- > first;)
        if (memcmp(data + at, "PK\5\6", 4) == 0) {
            *out = at;
            return true;
        }
    return false;
}

// 64-bit numbers are in a separate record, to which a locator before the end record points.
static bool find_big_end(const unsigned char *data, size_t end, size_t *out) {
    if (end < LOCATOR_SIZE + BIG_END_SIZE) return false;
    const unsigned char *locator = data + end - LOCATOR_SIZE;
    if (memcmp(locator, "PK\6\7", 4) != 0) return false;
    const uint64_t offset = number_at(locator + LOCATOR_OFFSET_AT, 8);
    if (offset > end - LOCATOR_SIZE - BIG_END_SIZE || memcmp(data + offset, "PK\6\6", 4) != 0)
        return false;
    *out = (size_t)offset;
    return true;
}

bool tare__zip_open(const unsigned char *data, size_t size, zip_directory *out) {
    size_t end, at;
    if (!find_end(data, size, &end)) return false;
    const uint64_t comment = number_at(data + end + END_COMMENT_AT, 2);
    *out = (zip_directory){
        .data = data, .size = size, .ends_with_its_record = size - end - END_SIZE == comment};
    const bool is_big = find_big_end(data, end, &at);
    if (!is_big) at = end;
    const unsigned char *numbers = data + at + (is_big ? BIG_END_COUNT_AT : END_COUNT_AT);
    const size_t count_width = is_big ? 8 : 2, width = is_big ? 8 : 4;
    const uint64_t length = number_at(numbers + count_width, width);
    const uint64_t offset = number_at(numbers + count_width + width, width);
    if (offset > at || length > at - offset) return false;
    out->count = number_at(numbers, count_width);
    out->shift = at - offset - length;
    out->at = (size_t)(out->shift + offset);
    out->end = at;
    return true;
}

// --- entries ---

// The extra field of 64-bit numbers between `at` and `end`; NULL if there is none.
static const unsigned char *find_big_field(const unsigned char *at, const unsigned char **end) {
    while (*end - at >= 4) {
        const size_t length = (size_t)number_at(at + 2, 2);
        if (length > (size_t)(*end - at) - 4) return NULL;
        if (number_at(at, 2) == 1) {
            *end = at + 4 + length;
            return at + 4;
        }
        at += 4 + length;
    }
    return NULL;
}

// A number that does not fit 32 bits is in the extra field, in the order of the header.
static bool widen(uint64_t *number, const unsigned char **at, const unsigned char *end) {
    if (*number != UINT32_MAX) return true;
    if (*at == NULL || end - *at < 8) return false;
    *number = number_at(*at, 8);
    *at += 8;
    return true;
}

zip_step tare__zip_next(zip_directory *d, zip_entry *out) {
    enum {
        HEADER_SIZE = 46,
        FLAGS_AT = 8,
        METHOD_AT = 10,
        CHECKSUM_AT = 16,
        PACKED_AT = 20,
        SIZE_AT = 24,
        NAME_LENGTH_AT = 28, // the lengths of the extra field and the comment follow
        OFFSET_AT = 42
    };
    if (d->count == 0) return ZIP_END;
    const unsigned char *header = d->data + d->at;
    if (d->end - d->at < HEADER_SIZE || memcmp(header, "PK\1\2", 4) != 0) return ZIP_BROKEN;
    const size_t name_length = (size_t)number_at(header + NAME_LENGTH_AT, 2);
    const size_t extra_length = (size_t)number_at(header + NAME_LENGTH_AT + 2, 2);
    const size_t comment_length = (size_t)number_at(header + NAME_LENGTH_AT + 4, 2);
    const size_t length = HEADER_SIZE + name_length + extra_length + comment_length;
    if (d->end - d->at < length) return ZIP_BROKEN;
    const unsigned char *extra = header + HEADER_SIZE + name_length, *end = extra + extra_length;
    const unsigned char *big = find_big_field(extra, &end);
    *out = (zip_entry){.name = (const char *)header + HEADER_SIZE,
                       .name_length = name_length,
                       .packed_size = number_at(header + PACKED_AT, 4),
                       .size = number_at(header + SIZE_AT, 4),
                       .offset = number_at(header + OFFSET_AT, 4),
                       .method = (unsigned)number_at(header + METHOD_AT, 2),
                       .flags = (unsigned)number_at(header + FLAGS_AT, 2),
                       .checksum = (uint32_t)number_at(header + CHECKSUM_AT, 4)};
    const bool has_sizes = widen(&out->size, &big, end) && widen(&out->packed_size, &big, end) &&
                           widen(&out->offset, &big, end);
    out->offset = out->offset > UINT64_MAX - d->shift ? UINT64_MAX : out->offset + d->shift;
    d->at += length;
    d->count--;
    return has_sizes ? ZIP_ENTRY : ZIP_LACKS_SIZES;
}

// The header beside the data may lack sizes and checksum, but always has the name.
const unsigned char *tare__zip_find_data(const zip_directory *d, const zip_entry *e) {
    enum { HEADER_SIZE = 30, NAME_LENGTH_AT = 26 };
    if (e->offset > d->size || d->size - e->offset < HEADER_SIZE) return NULL;
    const unsigned char *header = d->data + e->offset;
    const uint64_t name_length = number_at(header + NAME_LENGTH_AT, 2);
    const uint64_t length = HEADER_SIZE + name_length + number_at(header + NAME_LENGTH_AT + 2, 2);
    if (memcmp(header, "PK\3\4", 4) != 0 || length > d->size - e->offset ||
        name_length != e->name_length || memcmp(header + HEADER_SIZE, e->name, e->name_length) != 0)
        return NULL;
    return e->packed_size <= d->size - e->offset - length ? header + length : NULL;
}
