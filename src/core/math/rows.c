// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Functions of rows and of elements, in plain C.
#include "core/math/vector_scalar.h"

#define ROWS(name)    name##__scalar
#define ELEMENT_LOOPS f32_elements__scalar
#define BINARY_LOOPS  f32_binary__scalar
#include "core/math/element_loops.h"
#include "core/math/vector_rows.h"

#include "core/math/vector_columns.h"

const row_functions tare__scalar_rows = ROW_FUNCTIONS_OF(scalar);
