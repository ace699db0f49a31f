// SPDX-License-Identifier: Apache-2.0
/// Statuses and errors. Every call that can fail returns a tare_status and takes an optional
/// tare_error last. On failure it writes no output, and nothing that the caller owns has changed;
/// exceptions are stated.
///
/// All headers: pointers must not be NULL unless a comment allows it. An object handed out through
/// a `**out` belongs to the caller, who gives it to the type's _destroy or _release. A returned
/// `const char *` is lent: it lives as long as the object that was asked, or is in static storage
/// where there is none. Texts are UTF-8. Objects have no locks: a call that changes an object needs
/// it alone, unless a comment says otherwise. The reference counts of tensors, specs and qconfigs
/// are atomic.
///
/// Structs that begin with struct_size: those that the caller fills may grow at their end in later
/// versions. struct_size is then sizeof the struct, or 0 for «as this header has it»; fields beyond
/// it count as zero. Those that the library fills have their size there and do not grow.
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

/// What went wrong, where, and what to do about it. Its size is fixed, so filling it in never
/// allocates. The next failing call overwrites it. One thread at a time.
typedef struct tare_error tare_error;

/// A cleared error; NULL when memory is gone, which every call accepts. The caller destroys it.
TARE_API tare_error *tare_error_create(void);
/// Frees an error. NULL is allowed.
TARE_API void tare_error_destroy(tare_error *error);
/// Sets the status to TARE_OK and the texts to "". NULL is allowed.
TARE_API void tare_error_clear(tare_error *error);

/// The status of the last call that failed with this error. TARE_OK for NULL.
TARE_API tare_status tare_error_status(const tare_error *error);
/// The place of the failure: a file and offset, a JSON path, a node's name. "" where there is none,
/// and for NULL. Lent until the error is cleared, destroyed or filled again.
TARE_API const char *tare_error_where(const tare_error *error);
/// One sentence: what was expected and what was found. "" for NULL. Lent as tare_error_where's.
TARE_API const char *tare_error_message(const tare_error *error);
/// What to do about it; "" where there is nothing to say, and for NULL. Lent as tare_error_where's.
TARE_API const char *tare_error_hint(const tare_error *error);

/// For callbacks: fills the error that the library handed in, and returns `status`, so that it can
/// end the callback. The texts are copied, and cut where they are longer than an error holds;
/// where: the place, hint: what to do; NULL: "". error may be NULL. TARE_INTERNAL for TARE_OK,
/// which is no failure.
TARE_API tare_status tare_error_set(tare_error *error, tare_status status, const char *where,
                                    const char *message, const char *hint);

/// The candidate with the smallest edit distance to `found`, or NULL when none is close: a
/// suggestion for an unknown name. candidate(user, i) returns the i-th name, and NULL past the end.
/// The result is lent by `candidate`.
TARE_API const char *tare_nearest_name(const char *found,
                                       const char *(*candidate)(const void *user, size_t i),
                                       const void *user);

#ifdef __cplusplus
}
#endif
#endif
