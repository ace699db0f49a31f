// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Rows of floats and functions of their elements. With AVX2.
#include "runtime/kernels/f32_avx2.h"
#include "runtime/kernels/rows.h"

#define ROWS(name)    name##__avx2
#define ELEMENT_LOOPS f32_elements__avx2
#define BINARY_LOOPS  f32_binary__avx2
#include "core/math/element_loops.h"
#include "core/math/vector_rows.h"

#include "core/math/vector_columns.h"
