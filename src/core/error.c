// SPDX-License-Identifier: Apache-2.0
// Errors are fixed buffers, so that reporting a failure needs no memory.
#define CORE_ERROR_DEFINITIONS // compile the functions, not the analyser's macros
#include "core/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"

struct tare_error {
    tare_status status;
    char where[512];
    char message[1024];
    char hint[512];
};

const char *tare_status_name(tare_status status) {
    switch (status) {
#define TARE_STATUS_NAME(name, value, text)                                                        \
    case TARE_##name:                                                                              \
        return #name;
        TARE_STATUS_MAP(TARE_STATUS_NAME)
#undef TARE_STATUS_NAME
    }
    return "UNKNOWN";
}

tare_error *tare_error_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_error));
}

void tare_error_destroy(tare_error *error) {
    tare__free(error);
}

void tare_error_clear(tare_error *error) {
    if (error) *error = (tare_error){.status = TARE_OK};
}

tare_status tare_error_status(const tare_error *error) {
    return error ? error->status : TARE_OK;
}

const char *tare_error_where(const tare_error *error) {
    return error ? error->where : "";
}

const char *tare_error_message(const tare_error *error) {
    return error ? error->message : "";
}

const char *tare_error_hint(const tare_error *error) {
    return error ? error->hint : "";
}

// Marks a text that was cut off, without splitting a UTF-8 sequence.
static void mark_cut(char *out, size_t size) {
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)out[end] & 0xC0) == 0x80) end--;
    memcpy(out + end, "...", 4);
}

static void format_into(char *out, size_t size, const char *format, va_list args) {
    const int length = vsnprintf(out, size, format, args);
    if (length < 0) out[0] = '\0';
    if (length >= 0 && (size_t)length >= size) mark_cut(out, size);
}

tare_status tare__fail(tare_error *err, tare_status status, const char *format, ...) {
    if (!err) return status;
    // The arguments may point into err itself (a message that quotes an earlier one), so the
    // message is formatted before anything is cleared.
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    format_into(message, sizeof message, format, args);
    va_end(args);
    err->status = status;
    err->where[0] = err->hint[0] = '\0';
    memcpy(err->message, message, sizeof message);
    return status;
}

tare_status tare__out_of_memory(tare_error *err) {
    return tare__fail(err, TARE_OUT_OF_MEMORY, "out of memory");
}

tare_status tare__at(tare_error *err, tare_status status, const char *format, ...) {
    if (!err || status == TARE_OK) return status;
    char place[sizeof err->where];
    va_list args;
    va_start(args, format);
    format_into(place, sizeof place, format, args);
    va_end(args);
    // The outer place is kept whole; if both do not fit, the end of the inner one is cut.
    const size_t length = strlen(place);
    const char *joint = err->where[0] ? ": " : "";
    const int rest = snprintf(place + length, sizeof place - length, "%s%s", joint, err->where);
    if (rest >= 0 && (size_t)rest >= sizeof place - length) mark_cut(place, sizeof place);
    memcpy(err->where, place, sizeof place);
    return status;
}

tare_status tare__hint(tare_error *err, tare_status status, const char *format, ...) {
    if (!err) return status;
    va_list args;
    va_start(args, format);
    format_into(err->hint, sizeof err->hint, format, args);
    va_end(args);
    return status;
}

// A text of the caller's, cut to what fits.
static void copy_into(char *out, size_t size, const char *text) {
    const int length = snprintf(out, size, "%s", text ? text : "");
    if (length < 0) out[0] = '\0';
    if (length >= 0 && (size_t)length >= size) mark_cut(out, size);
}

tare_status tare_error_set(tare_error *error, tare_status status, const char *where,
                           const char *message, const char *hint) {
    if (status == TARE_OK) status = TARE_INTERNAL;
    if (!error) return status;
    tare_error filled = {.status = status}; // the texts may point into err itself
    copy_into(filled.where, sizeof filled.where, where);
    copy_into(filled.message, sizeof filled.message, message);
    copy_into(filled.hint, sizeof filled.hint, hint);
    *error = filled;
    return status;
}

enum { LONGEST_NAME = 127 };

static unsigned min3(unsigned a, unsigned b, unsigned c) {
    const unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and
// swaps of neighbours cost 1 each. UINT_MAX for names too long to compare.
static unsigned edit_distance(const char *a, const char *b) {
    const size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST_NAME || n > LONGEST_NAME) return UINT32_MAX;
    unsigned rows[3][LONGEST_NAME + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++) above[j] = (unsigned)j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            const unsigned cost = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + cost);
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
        unsigned *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[n];
}

const char *tare_nearest_name(const char *found,
                              const char *(*candidate)(const void *user, size_t i),
                              const void *user) {
    const size_t length = strlen(found);
    const size_t limit = length / 3 > 2 ? length / 3 : 2;
    const char *nearest = NULL;
    size_t least = limit + 1;
    for (size_t i = 0;; i++) {
        const char *name = candidate(user, i);
        if (!name) return nearest;
        const size_t distance = edit_distance(found, name);
        // A name is not similar if all its letters would change, however short it is.
        const size_t longer = strlen(name) > length ? strlen(name) : length;
        if (distance >= least || distance >= longer) continue;
        least = distance;
        nearest = name;
    }
}

tare_status tare__suggest(tare_error *err, tare_status status, const char *found,
                          const char *(*candidate)(const void *user, size_t i), const void *user) {
    if (!err) return status;
    const char *nearest = tare_nearest_name(found, candidate, user);
    return nearest ? tare__hint(err, status, "did you mean '%s'?", nearest) : status;
}

void tare__error_copy(tare_error *to, const tare_error *from) {
    if (to && from) *to = *from;
}
