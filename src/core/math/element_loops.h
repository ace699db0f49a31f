// SPDX-License-Identifier: Apache-2.0
// Loops over the functions of core/math/elements.def and core/math/binary.def, and tables of these
// loops. The including file must include a kind of vectors first, and define the names of the
// tables, ELEMENT_LOOPS and BINARY_LOOPS.
#include "core/math/elements.h"
#include "core/math/vector_functions.h"

#define P(i) v_set(p[i])
#define ELEMENT(kind, name, value)                                                                 \
    static inline vec one_##name(vec v, const float *p) {                                          \
        (void)p;                                                                                   \
        return value;                                                                              \
    }                                                                                              \
    static void loop_##name(const float *x, float *y, int64_t count, const float *p) {             \
        size_t left = (size_t)count;                                                               \
        for (; left >= WIDTH; left -= WIDTH, x += WIDTH, y += WIDTH)                               \
            v_store(y, one_##name(v_load(x), p));                                                  \
        if (left > 0) v_store_first(y, one_##name(v_load_first(x, left), p), left);                \
    }
#include "core/math/elements.def"
#undef P

const element_loop ELEMENT_LOOPS[ELEMENT_COUNT] = {
#define ELEMENT(kind, name, value) [ELEMENT_##kind] = loop_##name,
#include "core/math/elements.def"
};

#define BINARY(kind, name, value)                                                                  \
    static inline vec both_##name(vec a, vec b) {                                                  \
        return value;                                                                              \
    }                                                                                              \
    static void binary_##name(const float *a, int64_t a_step, const float *b, int64_t b_step,      \
                              float *y, int64_t count) {                                           \
        const size_t whole = (size_t)count / WIDTH * WIDTH, left = (size_t)count - whole;          \
        const vec first = v_set(*a), second = v_set(*b);                                           \
        for (size_t i = 0; i < whole; i += WIDTH)                                                  \
            v_store(y + i, both_##name(a_step != 0 ? v_load(a + i) : first,                        \
                                       b_step != 0 ? v_load(b + i) : second));                     \
        if (left == 0) return;                                                                     \
        const vec last = both_##name(a_step != 0 ? v_load_first(a + whole, left) : first,          \
                                     b_step != 0 ? v_load_first(b + whole, left) : second);        \
        v_store_first(y + whole, last, left);                                                      \
    }
#include "core/math/binary.def"
#undef BINARY

const binary_loop BINARY_LOOPS[BINARY_COUNT] = {
#define BINARY(kind, name, value) [BINARY_##kind] = binary_##name,
#include "core/math/binary.def"
#undef BINARY
};
