// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Rows of floats and functions of their elements. With AVX-512.
#include "runtime/kernels/f32_avx512.h"
#include "runtime/kernels/rows.h"

#define ROWS(name)    name##__avx512vnni
#define ELEMENT_LOOPS f32_elements__avx512vnni
#define BINARY_LOOPS  f32_binary__avx512vnni
#include "core/math/element_loops.h"
#include "core/math/vector_rows.h"

#include "core/math/vector_columns.h"
