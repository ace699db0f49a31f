// SPDX-License-Identifier: Apache-2.0
// Signatures of overloads: what arguments an operator of aten or quantized_decomposed takes, in
// which order, and with which defaults.
#ifndef OPS_SIGNATURES_H
#define OPS_SIGNATURES_H

#include "ir/value.h"

/// A row is "aten.cumsum.default(self dim * dtype=None) T": parameters, and results. Behind '*'
/// parameters are given by name only. A parameter that takes a list says of what, and of how many
/// if the signature fixes it: "size[i]", "stride[i2]": ints; [f], floats; [b], bools; [s],
/// strings; [T], tensors. A default for every item of a list is one item.
typedef struct signature {
    const char *params; // `length` characters
    size_t length;
    // T, a tensor; T[], a list of them; i, f, b, a number; s, a number of any kind; several of
    // these: a tuple; "": nothing.
    const char *results;
} signature;

/// Of the overload that torch prints as "torch.ops.aten.relu.default"; false if it has no row.
bool tare__signature_of(const char *target, signature *out);

/// Every row, for listings and tests; NULL past the end.
const char *tare__signature_at(size_t index);

/// Is the result a tuple or a list?
bool tare__signature_gives_several(const signature *s);

typedef struct signature_param {
    const char *name;
    size_t length;
    char list_of;  // 0: no list
    int list_size; // 0: of any length
    bool is_keyword_only;
    const char *fallback; // as text; NULL: it must be given
} signature_param;
/// Parameter i; false past the last one.
bool tare__signature_param(const signature *s, size_t i, signature_param *out);
/// The index of the parameter of this name; false, and their count, if there is none.
bool tare__signature_find(const signature *s, const char *name, size_t *index);
/// What the parameter is if it is left out; false, and None, if it must be given.
bool tare__signature_default(const signature_param *p, value *out);
/// A constant as signatures write them: "None", "1e-05", "'none'",
/// "torch.float32"; false if it is none.
bool tare__signature_literal(const char *chars, size_t length, value *out);

#endif
