// SPDX-License-Identifier: Apache-2.0
// Classes without weighted products: activations, pooling, norms, and data movement.
#include "ops/classes/class_row.h"

// clang-format off
#define CLASS_FIELDS(name, ...) static const field name[] = {__VA_ARGS__, {.form = FIELD_END}};
#include "ops/rows/rows.def"

#define FLOAT_CLASS(NAME, FAMILY, DIMS, FIELDS) CLASS(NN, NAME, NAME, FLOAT, FAMILY, DIMS, NONE, FIELDS)
#define QUANTIZED_CLASS(NAME, FAMILY, DIMS, FIELDS) \
    CLASS(NNQ, NAME, "Quantized" NAME, QUANTIZED, FAMILY, DIMS, NONE, FIELDS)
// A float class whose quantized form keeps its name and its text.
#define BOTH_CLASSES(NAME, FAMILY, DIMS, FIELDS) \
    FLOAT_CLASS(NAME, FAMILY, DIMS, FIELDS), QUANTIZED_CLASS(NAME, FAMILY, DIMS, FIELDS)

#define FLOAT_CLASSES_1D_TO_3D(NAME, FAMILY, FIELDS)                                               \
    FLOAT_CLASS(NAME "1d", FAMILY, 1, FIELDS), FLOAT_CLASS(NAME "2d", FAMILY, 2, FIELDS),          \
    FLOAT_CLASS(NAME "3d", FAMILY, 3, FIELDS)
#define QUANTIZED_CLASSES_1D_TO_3D(NAME, FAMILY, FIELDS)                                           \
    QUANTIZED_CLASS(NAME "1d", FAMILY, 1, FIELDS), QUANTIZED_CLASS(NAME "2d", FAMILY, 2, FIELDS),  \
    QUANTIZED_CLASS(NAME "3d", FAMILY, 3, FIELDS)

static const module_class rows[] = {
#define CLASSES(...) __VA_ARGS__,
#include "ops/rows/rows.def"
};
// clang-format on

const class_table tare__plain_classes = {rows, sizeof rows / sizeof *rows};
