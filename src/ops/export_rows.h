// SPDX-License-Identifier: Apache-2.0
// Which functions and methods of torch become which overloads of aten in torch.export. The
// arguments follow from the overload's signature.
#ifndef OPS_EXPORT_ROWS_H
#define OPS_EXPORT_ROWS_H

#include "ops/op.h"
#include "ops/signatures.h"

typedef struct export_row {
    const char *overload; // without "torch.ops.aten."
    // Namespaces that contain the function: T, torch; F, torch.nn.functional; N, torch._C._nn; O,
    // operator; M, methods. A name with a trailing underscore writes its first argument.
    const char *namespaces;
    // Python's parameters in order, a space between, where they are not those of the signature:
    // "name/name in the signature"; the second is left out where it is the same, or "self" for
    // "input". A mark is a condition: "!", given; "&", a tensor; "#", a constant; "'", a string;
    // "^", left out; "~s", the string s, or nothing; "!~s", the string s. "=1": 1 is spelt where it
    // was not given.
    // "*name" takes the remaining arguments, or the one list that stands there.
    const char *params;
    const char *names;  // other functions, and methods with a dot before them; NULL: none
    int rank;           // of the first argument; 0: any
    const char *before; // an overload that is applied to the first argument; NULL: none
} export_row;

/// The rows in order; NULL past the end. Of those for one name the first that fits is taken.
const export_row *tare__export_row_at(size_t index);
/// The overload with its namespace.
op_name tare__export_target(const char *overload, bool is_in_place);

typedef struct export_call {
    const export_row *row;
    op_name target; // the overload that it becomes
    signature signature;
    bool is_in_place; // by its name: it has no parameter `inplace`
} export_call;

/// True if the node calls a function of this row.
bool tare__export_call_of(const export_row *row, const node *n, export_call *out);

typedef struct export_word {
    const char *chars;
    size_t length;
} export_word;

typedef struct export_param {
    export_word name, argument, string, fallback; // of length 0: there is none
    char mark;                                    // one of ! & # ' ^; 0: none
    bool takes_rest, is_keyword_only;
} export_param;

/// Parameter i of Python's function; false past the last one.
bool tare__export_param(const export_call *c, size_t i, export_param *out);
/// The index of the one with this name; false if there is none.
bool tare__export_param_named(const export_call *c, const char *name, size_t *index);
/// The index of the one that gives this argument of the overload; false if there is none.
bool tare__export_param_of(const export_call *c, const signature_param *argument, size_t *index);

#endif
