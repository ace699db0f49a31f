// SPDX-License-Identifier: Apache-2.0
// The overloads of aten that torch.export records for torch's functions and methods. The arguments
// follow from the overload's signature.
#ifndef OPS_EXPORT_ROWS_H
#define OPS_EXPORT_ROWS_H

#include "ops/op.h"
#include "ops/signatures.h"

typedef struct export_row {
    const char *overload; // without "torch.ops.aten."
    // Namespaces that contain the function: T, torch; F, torch.nn.functional; N, torch._C._nn; O,
    // operator; M, methods. A name with a trailing underscore writes its first argument.
    const char *namespaces;
    // The parameters of Python's function in order, separated by spaces, if they are not those of
    // the signature: "name/name in the signature". The second name is omitted if it is the same, or
    // "self" for "input". A mark after the name is a condition on the argument: "!", given; "&", a
    // tensor; "#", a constant; "'", a string; "^", omitted; "~s", the string s or omitted; "!~s",
    // the string s. "=1": if the argument is omitted, 1 is passed to the overload. "*name" takes
    // the remaining arguments, or a single list given instead.
    const char *params;
    const char *names;  // other functions, and methods with a dot before them; NULL: none
    int rank;           // of the first argument; 0: any
    const char *before; // an overload that is applied to the first argument; NULL: none
} export_row;

/// The row with this index; NULL past the end. Among rows for one name the first that fits applies.
const export_row *tare__export_row_at(size_t index);
/// The full name of an overload, "torch.ops.aten.relu_.default".
op_name tare__export_target(const char *overload, bool is_in_place);

typedef struct export_call {
    const export_row *row;
    op_name target; // the full name of the overload
    signature signature;
    bool is_in_place; // by the name of the function, which then has no parameter `inplace`
} export_call;

/// True if the node calls a function of this row.
bool tare__export_call_of(const export_row *row, const node *n, export_call *out);

typedef struct export_word {
    const char *chars;
    size_t length;
} export_word;

typedef struct export_param {
    export_word name, argument, string, fallback; // length 0: none
    char mark;                                    // one of ! & # ' ^; 0: none
    bool takes_rest, is_keyword_only;
} export_param;

/// Parameter i of Python's function; false past the last one.
bool tare__export_param(const export_call *c, size_t i, export_param *out);
/// The index of the parameter with this name; false if there is none.
bool tare__export_param_named(const export_call *c, const char *name, size_t *index);
/// The index of the parameter that is passed as this argument of the overload; false if there is
/// none.
bool tare__export_param_of(const export_call *c, const signature_param *argument, size_t *index);

#endif
