// SPDX-License-Identifier: Apache-2.0
// When a number of ours counts as the recorded one.
#ifndef REPLAY_AGREEMENT_H
#define REPLAY_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>

#define AGREEMENT_RELATIVE     1e-4
#define AGREEMENT_RELATIVE_QAT 2e-3 // behind batch norms that learn as they go

/// Two values that differ for an accepted reason: a scale one histogram bin away, a zero point on a
/// rounding boundary. Wherever the pair comes back, in a text or among the constants, it agrees.
typedef struct number_pair {
    double ours, recorded;
} number_pair;

typedef struct agreement { // zero-initialized accepts relative differences only
    double relative;       // 0: AGREEMENT_RELATIVE
    bool is_random;        // active dropout: what was measured says nothing
    number_pair *pairs;
    size_t count, capacity;
} agreement;

double agreement_relative(const agreement *a);
/// Floats: within the relative tolerance, or an accepted pair.
bool floats_agree(const agreement *a, double ours, double recorded);
/// Integers: equal, or an accepted pair.
bool integers_agree(const agreement *a, double ours, double recorded);
/// Codes and zero points of 32 bits: what float32 arithmetic made is known to its digits only.
bool wide_integers_agree(const agreement *a, double ours, double recorded);
bool agreement_accept(agreement *a, double ours, double recorded); // false when memory is gone
void agreement_release(agreement *a);

#endif
