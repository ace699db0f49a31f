// SPDX-License-Identifier: Apache-2.0
// A choice among up to 256 takes one byte, a larger one two.
#include "support/differential/choices.h"

static uint32_t next_byte(choices *c) {
    return c->next < c->count ? c->bytes[c->next++] : 0;
}

uint32_t choose(choices *c, uint32_t below) {
    if (below <= 1) return 0;
    uint32_t number = next_byte(c);
    if (below > 256) number = number << 8 | next_byte(c);
    return number % below;
}

bool choose_rarely(choices *c, uint32_t n) {
    return choose(c, n) == n - 1;
}

void choices_of_seed(uint64_t seed, uint8_t *out, size_t count) {
    uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        out[i] = (uint8_t)(state >> 56);
    }
}
