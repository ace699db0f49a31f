// SPDX-License-Identifier: Apache-2.0
// Wraps standard output and standard error, so that all commands' output is escaped.
#define _GNU_SOURCE // fopencookie
#include "support/terminal.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

// --- characters ---

// The length of a UTF-8 sequence by its first byte; 0: no sequence begins so.
static size_t sequence_length(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

// The number of valid bytes among the first `size` bytes of a sequence.
static size_t valid_length(const unsigned char *at, size_t size) {
    size_t i = 1;
    while (i < size && (at[i] & 0xc0) == 0x80) i++;
    const bool is_overlong =
        i > 1 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90));
    const bool is_beyond = i > 1 && ((at[0] == 0xed && at[1] > 0x9f) || // surrogates
                                     (at[0] == 0xf4 && at[1] > 0x8f));
    return is_overlong || is_beyond ? 1 : i;
}

static uint32_t decode(const unsigned char *at, size_t length) {
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = at[0] & masks[length];
    for (size_t i = 1; i < length; i++) code = code << 6 | (at[i] & 0x3f);
    return code;
}

static bool is_control(uint32_t code) {
    const bool is_line = code == '\n' || code == '\t';
    const bool turns_text = code == 0x61c || code == 0x200e || code == 0x200f ||
                            (code >= 0x202a && code <= 0x202e) ||
                            (code >= 0x2066 && code <= 0x2069);
    return (code < 0x20 && !is_line) || (code >= 0x7f && code < 0xa0) || turns_text ||
           code == 0x2028 || code == 0x2029;
}

size_t escape_character(const char *at, size_t size, char out[ESCAPE_SIZE]) {
    const unsigned char *bytes = (const unsigned char *)at;
    const size_t length = sequence_length(bytes[0]);
    const size_t there = length < size ? length : size;
    uint32_t code = bytes[0];
    out[0] = '\0';
    bool is_broken = length == 0;
    if (!is_broken && length > 1) {
        is_broken = valid_length(bytes, there) < there;
        if (!is_broken && there < length) return 0;
    }
    if (!is_broken) code = decode(bytes, length);
    if (is_broken || is_control(code)) (void)snprintf(out, ESCAPE_SIZE, "\\u%04x", code & 0xffff);
    return is_broken ? 1 : length;
}

// --- streams ---

typedef struct guard {
    FILE *stream;
    char begun[4]; // an incomplete character
    size_t begun_size;
} guard;

// The two standard streams of the program, hence global.
static guard output_guard, error_guard;

FILE *raw_terminal(void) {
    return error_guard.stream != NULL ? error_guard.stream : stderr;
}

#ifdef __GLIBC__

// Writes all complete characters; returns the number of their bytes.
static size_t write_characters(FILE *stream, const char *chars, size_t size) {
    size_t done = 0, plain = 0; // [plain, done) is written unchanged
    while (done < size) {
        char escaped[ESCAPE_SIZE];
        const size_t length = escape_character(chars + done, size - done, escaped);
        if (length == 0) break;
        if (escaped[0] != '\0') {
            (void)fwrite(chars + plain, 1, done - plain, stream);
            (void)fputs(escaped, stream);
            plain = done + length;
        }
        done += length;
    }
    (void)fwrite(chars + plain, 1, done - plain, stream);
    return done;
}

static size_t write_begun(guard *g, const char *chars, size_t size) {
    size_t taken = 0;
    while (g->begun_size > 0 && taken < size) {
        char joined[5];
        const size_t before = g->begun_size;
        memcpy(joined, g->begun, before);
        joined[before] = chars[taken];
        const size_t done = write_characters(g->stream, joined, before + 1);
        taken++;
        g->begun_size = before + 1 - done;
        memcpy(g->begun, joined + done, g->begun_size);
    }
    return taken;
}

static ssize_t write_guarded(void *user, const char *chars, size_t size) {
    guard *g = user;
    size_t at = write_begun(g, chars, size);
    at += write_characters(g->stream, chars + at, size - at);
    if (at < size) { // fewer than 4 bytes
        memcpy(g->begun + g->begun_size, chars + at, size - at);
        g->begun_size += size - at;
    }
    // 0 tells the stream that writing failed.
    return fflush(g->stream) == 0 && !ferror(g->stream) ? (ssize_t)size : 0;
}

static FILE *open_guard(guard *g, FILE *stream) {
    g->stream = stream;
    FILE *guarded = fopencookie(g, "w", (cookie_io_functions_t){.write = write_guarded});
    // Without memory for the wrapper, the stream is used as it is.
    if (guarded == NULL) return stream;
    (void)setvbuf(guarded, NULL, _IOLBF, BUFSIZ);
    return guarded;
}

void guard_terminals(void) {
    if (isatty(STDOUT_FILENO)) stdout = open_guard(&output_guard, stdout);
    stderr = open_guard(&error_guard, stderr);
}

#else

// Other C libraries have no such streams; there, errors are escaped where they are printed.
void guard_terminals(void) {
    (void)output_guard;
}

#endif
