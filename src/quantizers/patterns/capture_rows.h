// SPDX-License-Identifier: Apache-2.0
// torch.export's way from torch's functions and methods to aten operators, as rows.
// Private to quantizers/patterns.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_ROWS_H
#define QUANTIZERS_PATTERNS_CAPTURE_ROWS_H

#include <stddef.h>

typedef struct capture_row {
    // Functions, and methods with a dot before them, '|' between: "torch.relu|.relu".
    const char *names;
    const char *aten; // without "torch.ops.aten."
    // What is called with, '|' between. "!": must be given; "&": a tensor; "#": a constant; "*a":
    // takes the remaining arguments, or the one list that stands there.
    const char *params;
    // What aten is called with, '|' between: a parameter by its name, or a constant. "a*2": a
    // number becomes a list of two; "a=1": 1 is spelt where a was not given; "a:1": only before
    // others;
    // "@a": by keyword, where it was given; "?": anything, as it depends on the exporting machine.
    // NULL: the parameters as they are.
    const char *args;
    const char *in_place; // the operator with inplace=True; NULL: there is no such parameter
    int rank;             // of the first argument; 0: any
    const char *before;   // an operator that the first argument goes through; NULL: none
} capture_row;

/// The rows in order; NULL past the end. Of those for one name the first that fits is taken.
const capture_row *tare__capture_row_at(size_t index);

#endif
