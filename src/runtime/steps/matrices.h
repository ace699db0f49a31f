// SPDX-License-Identifier: Apache-2.0
// Matrices that products read and write in place, transposed heads among them (steps/attention.c).
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_MATRICES_H
#define RUNTIME_STEPS_MATRICES_H

#include "runtime/plan/values.h"

/// The layout of a matrix of [..][rows][columns]: plain, or with the dimensions of rows and
/// matrices swapped.
typedef struct matrices {
    size_t buffer;
    int64_t row_step, step, outer_step; // between rows, matrices, and groups of `group` matrices
    int64_t group;
} matrices;

/// Matrices of `t` [..][rows][columns] in the plain order; or swapped: the data is [n][rows][group]
/// [columns]. Without the buffer.
matrices tare__plan_describe_matrices(const tare_tensor *t, bool is_swapped);
/// Of a value that the next step reads, in front of a transposition of heads if one made it.
tare_status tare__plan_read_matrices(plan_builder *b, const tare_tensor *t, matrices *out);

static inline int64_t tare__matrix_offset(const matrices *m, int64_t i) {
    return i / m->group * m->outer_step + i % m->group * m->step;
}
static inline float *tare__matrix_at(const plan_run_state *run, const matrices *m, int64_t i) {
    return (float *)tare__buffer_data(run, m->buffer) + tare__matrix_offset(m, i);
}

#endif
