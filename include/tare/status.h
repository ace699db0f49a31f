// SPDX-License-Identifier: Apache-2.0
/// Statuses and errors. Every call that can fail returns a tare_status and takes an optional
/// tare_error last; outputs are written on success only, and on failure nothing that the caller
/// owns has changed.
///
/// What holds in all headers: pointers must not be NULL unless a comment allows it. What a call
/// hands out through a `**out` belongs to the caller, and the type's _destroy or _release takes it
/// back. A `const char *` that is returned is lent: it lives as long as the object it was asked of,
/// and static storage where there is none. Texts are UTF-8.
///
/// Structs that begin with struct_size: those that the caller fills may grow at their end in later
/// versions. struct_size is then sizeof the struct, or 0 for «as this header has it»; fields beyond
/// it count as zero. Those that the library fills say their size there, and do not grow.
#ifndef TARE_STATUS_H
#define TARE_STATUS_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One list: the enum, the names and the docs come from it.
#define TARE_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(INVALID_ARGUMENT, 1, "the caller broke the documented contract")                             \
    X(UNSUPPORTED, 2, "valid, but not supported here")                                             \
    X(MALFORMED_FILE, 3, "the file contradicts its format")                                        \
    X(OUT_OF_MEMORY, 4, "allocation failed")                                                       \
    X(IO, 5, "reading or writing failed")                                                          \
    X(NOT_FOUND, 6, "no such name")                                                                \
    X(INTERNAL, 7, "a bug in tare")                                                                \
    X(LIMIT_EXCEEDED, 8, "valid, but more than the caller's limits allow")

typedef enum tare_status {
#define TARE_STATUS_ENUM(name, value, text) TARE_##name = value,
    TARE_STATUS_MAP(TARE_STATUS_ENUM)
#undef TARE_STATUS_ENUM
} tare_status;

/// The name of a status ("INVALID_ARGUMENT"); "UNKNOWN" for any other number. Static storage.
TARE_API const char *tare_status_name(tare_status status);

/// What went wrong, where, and what to do about it. Owned by the caller, of fixed size, so that
/// filling it in never allocates. The next failing call overwrites it.
typedef struct tare_error tare_error;

/// Returns a cleared error, or NULL when memory is gone (calls accept NULL).
TARE_API tare_error *tare_error_create(void);
TARE_API void tare_error_destroy(tare_error *error); // NULL is fine
TARE_API void tare_error_clear(tare_error *error);   // TARE_OK and no texts; NULL is fine

/// What the last failing call returned. Of NULL, TARE_OK and "" here and below.
TARE_API tare_status tare_error_status(const tare_error *error);
/// Where: a file and offset, a JSON path, a node's name; "" when there is nothing to say.
TARE_API const char *tare_error_where(const tare_error *error);
/// One sentence: what was expected and what was found.
TARE_API const char *tare_error_message(const tare_error *error);
/// What to do about it; "" when there is nothing to say.
TARE_API const char *tare_error_hint(const tare_error *error);

/// The candidate nearest to `found` by edit distance, or NULL when none is near: what a message
/// suggests for a name that is not known. candidate(user, i) is the i-th name, NULL past the end.
TARE_API const char *tare_nearest_name(const char *found,
                                       const char *(*candidate)(const void *user, size_t i),
                                       const void *user);

#ifdef __cplusplus
}
#endif
#endif
