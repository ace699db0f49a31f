// SPDX-License-Identifier: Apache-2.0
// Patterns of calls, written as torch prints code, and their matches in a draft.
// Private to io/onnx.
#ifndef IO_ONNX_RAISE_MATCH_H
#define IO_ONNX_RAISE_MATCH_H

#include "io/onnx/raise/raise.h"

enum { IDIOM_MOST_NODES = 48 };

typedef struct idiom_match idiom_match;

/// Calls that are one operator. Parameters of `pattern` stand for what a match finds; their first
/// letter says what that may be: 'c' a constant number, 'w' a constant tensor, 'd' a plain argument
/// (dimensions), any other letter a result that is not constant. Numbers match within 1e-4 of
/// themselves, add and mul in either order, a division by a number also as a product with its
/// reciprocal; constant tensors of one element are numbers.
typedef struct idiom {
    const char *needs;                // the id of an operator without which a file does not hold it
    const char *parameters, *pattern; // "x", "a = torch.sigmoid(x); x * a"
    const char *result;               // the same of the replacement, on the same names
    /// Only where the file says that it was one call, if it says so: people write it too, and what
    /// they wrote stays.
    bool of_one_call;
    /// Does it hold for this match? It may bind further names that `result` uses. NULL: it holds.
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

/// What a name stands for; VALUE_NONE where it is not bound.
value tare__match_value(const idiom_match *m, const char *name);
tare_status tare__match_bind(idiom_match *m, const char *name, value v);
/// Its shape and dtype; NULL where it is no tensor.
const tare_tensor *tare__match_meta(const idiom_match *m, const char *name);
/// The shape and dtype of what the calls give.
const tare_tensor *tare__match_root_meta(const idiom_match *m);
/// A check: the result has the shape and dtype of `x`, so that no constant of more than one element
/// made it larger.
tare_status tare__match_keeps_shape(idiom_match *m, bool *holds);
bool tare__match_same_shape(const tare_tensor *a, const tare_tensor *b); // false for NULL
/// Its data, where it is a constant tensor.
const tare_tensor *tare__match_constant(const idiom_match *m, const char *name);

/// Idioms ready to be looked for. The caller releases them, after a failure too.
typedef struct idiom_set {
    const idiom **rows;
    graph **patterns, **results; // NULL: not needed
    const op_info **lasts;       // the operators that patterns end in
    size_t count;
} idiom_set;
/// Those of all families that the draft may hold.
tare_status tare__idioms_open(onnx_import *in, idiom_set *out);
void tare__idioms_release(idiom_set *s);
/// Puts the first idiom that ends at n in place of its calls. Results that something else uses too
/// keep them.
tare_status tare__idioms_apply(const idiom_set *s, onnx_import *in, node *n, bool *applied);

#endif
