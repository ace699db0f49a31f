// SPDX-License-Identifier: Apache-2.0
// Matrices that products read and write in place, also with transposed heads (steps/attention.c).
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_MATRICES_H
#define RUNTIME_STEPS_MATRICES_H

#include "runtime/plan/values.h"

/// The layout of the matrices of [..][rows][columns]: plain, or with the dimensions of rows and
/// matrices swapped.
typedef struct matrices {
    size_t buffer;
    int64_t row_step, step, outer_step; // strides of rows, matrices, and groups of `group` matrices
    int64_t group;
} matrices;

/// Describes the matrices of `t` [..][rows][columns] in plain order, or swapped: the data is
/// [n][rows][group][columns]. Does not set the buffer.
matrices tare__plan_describe_matrices(const tare_tensor *t, bool is_swapped);
/// The matrices of a value that the next step reads; if it is transposed heads, those before the
/// transposition.
tare_status tare__plan_read_matrices(plan_builder *b, const tare_tensor *t, matrices *out);

/// The kind of deferral (step_class.defer) of the records that make keys or values of int8 numbers
/// and a scale for each row, where attention with one query reads these as they are: the conversion
/// and the product.
int tare__attention_defers(const plan_builder *b, const plan_record *r);

static inline int64_t tare__matrix_offset(const matrices *m, int64_t i) {
    return i / m->group * m->outer_step + i % m->group * m->step;
}
static inline float *tare__matrix_at(const plan_run_state *run, const matrices *m, int64_t i) {
    return (float *)tare__buffer_data(run, m->buffer) + tare__matrix_offset(m, i);
}

#endif
