// SPDX-License-Identifier: Apache-2.0
// Calls of overloads of aten, and what PyTorch 2.15 computed for the same text.
#ifndef SUPPORT_ATEN_CASES_H
#define SUPPORT_ATEN_CASES_H

#include <math.h>
#include <stddef.h>

typedef struct aten_case {
    const char *call;  // "@" stands for "torch.ops.aten."
    const char *shape; // "2x3"
    const double *values;
    size_t count;
} aten_case;
#define VALUES(...)                                                                                \
    (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)

/// Runs each call with the inputs x [2][3][4] from -1.5 by 0.125, i [1][2][4][4] from -1.5 by 0.25,
/// w [2][2][3][3] from -0.75 by 0.125, v (0.5, 0.75), and compares shape and values.
void check_aten_cases(const aten_case *cases, size_t count);
/// The call with "torch.ops.aten." for "@". Static storage.
const char *spelled_aten(const char *call);
/// The call fails on x [2][2] with a message that holds these words.
void refuse_aten(const char *call, const char *words);

#endif
