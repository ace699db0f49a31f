// SPDX-License-Identifier: Apache-2.0
// Loops over the functions of core/elements.def, and the table of them. The file that includes this
// has included a kind of vectors and defines ELEMENT_LOOPS, the name of the table.
#include "core/elements.h"
#include "core/vector_functions.h"

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
        if (left > 0) v_store_part(y, one_##name(v_load_part(x, left), p), left);                  \
    }
#include "core/elements.def"
#undef ELEMENT
#undef P

const element_loop ELEMENT_LOOPS[ELEMENT_COUNT] = {
#define ELEMENT(kind, name, value) [ELEMENT_##kind] = loop_##name,
#include "core/elements.def"
#undef ELEMENT
};
