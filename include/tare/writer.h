// SPDX-License-Identifier: Apache-2.0
/// Writers receive the text that the library makes; the library itself never prints.
#ifndef TARE_WRITER_H
#define TARE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Receives `length` characters, lent for the call and not NUL-terminated. `user` is the argument
/// that was passed with the writer. Returning false stops the call that writes, which then fails
/// with TARE_IO.
typedef bool (*tare_writer)(void *user, const char *chars, size_t length);

#ifdef __cplusplus
}
#endif
#endif
