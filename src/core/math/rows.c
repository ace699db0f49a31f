// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Functions of lines and of elements, in plain C.
#include "core/math/vector_scalar.h"

#define LINES(name)   name##__scalar
#define ELEMENT_LOOPS f32_elements__scalar
#define PAIR_LOOPS    f32_pairs__scalar
#include "core/math/element_loops.h"
#include "core/math/vector_rows.h"

#include "core/math/vector_columns.h"
