// SPDX-License-Identifier: Apache-2.0
// Lines of floats and functions of their elements. With AVX-512.
#include "runtime/kernels/f32_avx512.h"
#include "runtime/kernels/lines.h"

#define LINES(name)   name##__avx512vnni
#define ELEMENT_LOOPS f32_elements__avx512vnni
#define PAIR_LOOPS    f32_pairs__avx512vnni
#include "core/element_loops.h"
#include "core/vector_lines.h"

#include "core/vector_columns.h"
