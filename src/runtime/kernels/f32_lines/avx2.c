// SPDX-License-Identifier: Apache-2.0
// Lines of floats and functions of their elements. With AVX2.
#include "runtime/kernels/f32_avx2.h"
#include "runtime/kernels/lines.h"

#define LINES(name)   name##__avx2
#define ELEMENT_LOOPS f32_elements__avx2
#define PAIR_LOOPS    f32_pairs__avx2
#include "core/element_loops.h"
#include "core/vector_lines.h"

#include "core/vector_columns.h"
