// SPDX-License-Identifier: Apache-2.0
// Patterns of calls, written as torch prints code, and their matches in a draft.
// Private to io/onnx.
#ifndef IO_ONNX_RAISE_MATCH_H
#define IO_ONNX_RAISE_MATCH_H

#include "io/onnx/raise/raise.h"

enum { IDIOM_MOST_NODES = 48 };

typedef struct idiom_match idiom_match;

/// Several calls that are one operator. The parameters of `pattern` are placeholders; the first
/// letter says what they match: 'c' a constant number, 'w' a constant tensor, 'd' a plain argument
/// (dimensions), any other letter a result that is not constant. Numbers match within a relative
/// error of 1e-4. Operands of add and mul match in either order, and a division by a number also
/// matches a product with its reciprocal. Constant tensors of one element are numbers.
typedef struct idiom {
    const char *needs;                // id of an operator that every match contains
    const char *parameters, *pattern; // "x", "a = torch.sigmoid(x); x * a"
    const char *result;               // the replacement, with the same names
    /// Match only calls of one scope, if the file states scopes: users write the same calls, and
    /// what they wrote is kept.
    bool of_one_call;
    /// A further condition on the match. It may bind names that `result` uses. NULL: none.
    tare_status (*check)(idiom_match *m, bool *holds);
} idiom;

struct idiom_match {
    onnx_import *in;
    arena *memory;
    const char *names[IDIOM_MOST_NODES];
    value values[IDIOM_MOST_NODES];
    size_t count;
    node *root; // the last of the calls
};

/// The value of a name; VALUE_NONE if it is not bound.
value tare__match_value(const idiom_match *m, const char *name);
tare_status tare__match_bind(idiom_match *m, const char *name, value v);
/// Its shape and dtype; NULL if it is no tensor.
const tare_tensor *tare__match_meta(const idiom_match *m, const char *name);
/// Shape and dtype of the root's result.
const tare_tensor *tare__match_root_meta(const idiom_match *m);
/// A check: the result has the shape and dtype of `x`, so no constant broadcasts it to a larger
/// shape.
tare_status tare__match_keeps_shape(idiom_match *m, bool *holds);
bool tare__match_same_shape(const tare_tensor *a, const tare_tensor *b); // false for NULL
/// The data of a name that is a constant tensor.
const tare_tensor *tare__match_constant(const idiom_match *m, const char *name);

/// Parsed idioms. The caller releases them, also after a failure.
typedef struct idiom_set {
    const idiom **rows;
    graph **patterns, **results; // NULL: cannot occur in the draft
    const op_info **lasts;       // the last operator of each pattern
    size_t count;
} idiom_set;
/// Parses the idioms of all families that can occur in the draft.
tare_status tare__idioms_open(onnx_import *in, idiom_set *out);
void tare__idioms_release(idiom_set *s);
/// Replaces the calls of the first idiom that ends at n by its result. Calls whose results have
/// other users stay.
tare_status tare__idioms_apply(const idiom_set *s, onnx_import *in, node *n, bool *applied);

#endif
