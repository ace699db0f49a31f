// SPDX-License-Identifier: Apache-2.0
// Bytes as choices: whoever gives the bytes steers what is made of them. Past their end every
// choice is 0, so that fewer bytes make something smaller.
#ifndef SUPPORT_DIFFERENTIAL_CHOICES_H
#define SUPPORT_DIFFERENTIAL_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct choices {
    const uint8_t *bytes;
    size_t count, next;
} choices;

/// A number below `below`, which is at least 1; takes a byte, two where one does not reach.
uint32_t choose(choices *c, uint32_t below);
/// True for one byte in `n`, never past the end.
bool choose_rarely(choices *c, uint32_t n);
static inline bool choices_are_left(const choices *c) {
    return c->next < c->count;
}

/// Bytes of a seed into out, for tests that have no fuzzer.
void choices_of_seed(uint64_t seed, uint8_t *out, size_t count);

#endif
