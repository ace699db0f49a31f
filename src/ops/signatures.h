// SPDX-License-Identifier: Apache-2.0
// Signatures of overloads: the parameters of an operator of aten or quantized_decomposed, their
// order and defaults.
#ifndef OPS_SIGNATURES_H
#define OPS_SIGNATURES_H

#include "ir/value.h"

/// A row is "aten.cumsum.default(self dim * dtype=None) T": parameters, and results. Parameters
/// after '*' are keyword-only. A list parameter states its item type, and its length if the
/// signature fixes it: "size[i]", "stride[i2]": ints; [f], floats; [b], bools; [s], strings; [T],
/// tensors. A single item as default applies to every item.
typedef struct signature {
    const char *params; // `length` characters
    size_t length;
    // T, a tensor; T[], a list of them; i, f, b, a number; s, a number of any kind; several of
    // these: a tuple; "": nothing.
    const char *results;
} signature;

/// The signature of the overload that torch prints as "torch.ops.aten.relu.default"; false if there
/// is no row, nor one under its usual name (op.h).
bool tare__signature_of(const char *target, signature *out);
/// The same, but only of a row under this very name.
bool tare__signature_listed(const char *target, signature *out);

/// The row with this index, for listings and tests; NULL past the end.
const char *tare__signature_at(size_t index);

/// True if the result is a tuple or a list.
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
/// The value of the parameter if it is not given; false, and None, if it is required.
bool tare__signature_default(const signature_param *p, value *out);
/// Parses a constant as signatures write it: "None", "1e-05", "'none'", "torch.float32"; false if
/// it is none.
bool tare__signature_literal(const char *chars, size_t length, value *out);

#endif
