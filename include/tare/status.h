// SPDX-License-Identifier: Apache-2.0
/// Statuses and errors. Every function that can fail returns a tare_status and takes an optional
/// tare_error last. After a failure no output is written and the caller's objects are unchanged,
/// unless a comment says otherwise.
///
/// These rules hold for all headers. Pointers must not be NULL unless a comment allows it. An
/// object that a function returns through `**out` belongs to the caller, who passes it to the
/// type's _destroy or _release. A returned `const char *` is lent: it is valid as long as the
/// object that was passed, or has static storage if no object was passed. Strings are UTF-8.
/// Objects have no locks: a call that changes an object must not overlap with other calls on it,
/// unless a comment says otherwise. The reference counts of tensors, specs and qconfigs are atomic.
///
/// Structs that begin with struct_size may grow at their end in later versions if the caller fills
/// them. The caller sets struct_size to sizeof the struct, or to 0, which means the size in this
/// version of the header; fields beyond it count as zero. Structs that the library fills do not
/// grow; the library sets their struct_size.
#ifndef TARE_STATUS_H
#define TARE_STATUS_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The statuses: name, number, meaning.
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

/// What went wrong, where, and what to do about it. It has a fixed size, so filling it in never
/// allocates. The next failing call overwrites it. One thread at a time may use it.
typedef struct tare_error tare_error;

/// Creates a cleared error. Returns NULL when memory is exhausted; every function accepts that. The
/// caller destroys it.
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
/// What to do about it; "" if there is no advice, and for NULL. Lent as tare_error_where's.
TARE_API const char *tare_error_hint(const tare_error *error);

/// For callbacks: fills the error that the library passed (NULL is allowed) and returns `status`,
/// so that a callback can end with this call. where: the place; hint: what to do. Strings are
/// copied, and cut if they are longer than an error holds; NULL is "". A `status` of TARE_OK is
/// replaced by TARE_INTERNAL.
TARE_API tare_status tare_error_set(tare_error *error, tare_status status, const char *where,
                                    const char *message, const char *hint);

/// Suggests a name in place of the unknown name `found`: the candidate with the smallest edit
/// distance, or NULL if none is close. candidate(user, i) returns the i-th name, NULL past the end;
/// the result is one of these pointers.
TARE_API const char *tare_nearest_name(const char *found,
                                       const char *(*candidate)(const void *user, size_t i),
                                       const void *user);

#ifdef __cplusplus
}
#endif
#endif
