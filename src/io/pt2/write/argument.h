// SPDX-License-Identifier: Apache-2.0
// Writes values as arguments of a program's nodes.
// Private to io/pt2/write.
#ifndef IO_PT2_WRITE_ARGUMENT_H
#define IO_PT2_WRITE_ARGUMENT_H

#include "core/text/text.h"
#include "io/pt2/write/sizes.h"

typedef struct pt2_given {
    const char *name; // of the value in the archive; NULL: it cannot be used as an argument
    pt2_kind kind;
} pt2_given;

typedef struct pt2_scribe {
    const pt2_given *given; // by node id
    text *out;
    tare_error *err;
    /// Appends a graph as an argument; NULL: graphs are not allowed as arguments.
    tare_status (*write_graph)(void *user, const node *reader, text *out);
    void *user;
} pt2_scribe;

/// Appends {"as_ints": [1, 2]} and similar. list_of: the element kind of an empty list
/// (ops/signatures.h).
tare_status tare__pt2_write_argument(const pt2_scribe *w, const node *user, const value *v,
                                     char list_of);
/// Appends {"as_tensor": {"name": "x"}}, or the corresponding form for another kind.
void tare__pt2_write_named(text *out, pt2_given g);
/// Appends a number; NaN and infinities are strings.
void tare__pt2_write_float(text *out, double d);

#endif
