// SPDX-License-Identifier: Apache-2.0
// Functions of one float in loops over many, with the same bits from every kind of vectors.
#ifndef CORE_ELEMENTS_H
#define CORE_ELEMENTS_H

#include <stdint.h>

/// y[i] = f(x[i]) with parameters p[0], p[1], .. of f. y may be x.
typedef void (*element_loop)(const float *x, float *y, int64_t count, const float *p);

typedef enum element_kind {
    ELEMENT_OTHER, // none of elements.def
#define ELEMENT(kind, name, value) ELEMENT_##kind,
#include "core/elements.def"
#undef ELEMENT
    ELEMENT_COUNT,
} element_kind;

/// In plain C.
extern const element_loop f32_elements__scalar[ELEMENT_COUNT];

#endif
