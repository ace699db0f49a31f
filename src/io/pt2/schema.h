// SPDX-License-Identifier: Apache-2.0
// Signatures of the operators that programs call: archives name every argument.
// Private to io/pt2.
#ifndef IO_PT2_SCHEMA_H
#define IO_PT2_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

/// "aten.split.Tensor", "self split_size dim", "T[]". A parameter that takes a list says of what:
/// "sizes[i]", ints; [f], floats; [b], bools; [s], strings; [T], tensors. After a '*' parameters
/// are given by name only. Results: T, a tensor; T[], a list of them; i, f, b, a number; s, a
/// number of any kind; several of these: a tuple; "": nothing.
typedef struct pt2_schema {
    const char *name, *params, *results;
} pt2_schema;

/// Of the operator that torch prints as "torch.ops.aten.relu.default"; NULL if it has no row.
const pt2_schema *tare__pt2_schema(const char *target);

typedef struct pt2_param {
    const char *name;
    size_t length;
    char list_of; // 0: no list
    bool is_keyword_only;
} pt2_param;
/// Parameter i; false past the last one.
bool tare__pt2_schema_param(const pt2_schema *s, size_t i, pt2_param *out);

#endif
