// SPDX-License-Identifier: Apache-2.0
// Functions of lines and of elements, in plain C.
#include "core/vector_scalar.h"

#define LINES(name)   name##__scalar
#define ELEMENT_LOOPS f32_elements__scalar
#define PAIR_LOOPS    f32_pairs__scalar
#include "core/element_loops.h"
#include "core/vector_lines.h"

#include "core/vector_columns.h"
