// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Rows of floats and functions of their elements. With NEON.
#include "runtime/kernels/f32_neon.h"
#include "runtime/kernels/rows.h"

#define ROWS(name)    name##__neon
#define ELEMENT_LOOPS f32_elements__neon
#define BINARY_LOOPS  f32_binary__neon
#include "core/math/element_loops.h"
#include "core/math/vector_rows.h"

#include "core/math/vector_columns.h"
