// SPDX-License-Identifier: Apache-2.0
// Matrices that products read and write in place, also with transposed heads (steps/attention.c).
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_MATRICES_H
#define RUNTIME_STEPS_MATRICES_H

#include "runtime/gemm/floats/blocks.h"
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

/// Products that follow each other in attention: scores of queries and keys, and their mixture of
/// values. Each is computed by the library, if there is one and the product is not small.
typedef struct attention_products {
    int64_t queries, keys, width, value_width; // above 0
    bool keys_are_rows;                        // [keys][width]; else [width][keys]
    bool library_scores, library_mixes;
    size_t query_block;  // queries that are computed at a time, so that scores stay in the cache
    size_t thread_bytes; // memory of a thread: FLOAT_BLOCK_MEMORY floats, then scores
} attention_products;
/// Chooses the rest for the sizes that *p has. False if the memory cannot be counted.
bool tare__attention_products_init(attention_products *p, bool has_library);
/// Queries [first, end) of matrix q, with keys and values of the matrices k and v.
typedef struct query_block {
    int64_t q, k, v, first, end;
} query_block;
/// The scores of a block in the memory of its thread: [end - first][keys].
static inline float *tare__scores_in(float *memory) {
    return memory + FLOAT_BLOCK_MEMORY;
}
tare_status tare__attention_score(const plan_run_state *run, const attention_products *p,
                                  const matrices *q, const matrices *k, const query_block *b,
                                  float *memory);
/// y: laid out as matrices like q's.
tare_status tare__attention_mix(const plan_run_state *run, const attention_products *p,
                                const matrices *v, const matrices *y, const query_block *b,
                                float *memory);
static inline bool tare__products_call_library(const attention_products *p) {
    return p->library_scores || p->library_mixes;
}
/// Names the kernel of a step's float products. what: says more of the step; NULL: nothing.
void tare__describe_float_products(const plan *p, bool calls_library, const char *what,
                                   step_note *out);
/// What multiplies in a run.
static inline float_multiplier tare__multiplier_of(const plan_run_state *run, bool by_library,
                                                   float *memory) {
    return (float_multiplier){by_library ? run->plan->setting.layers : NULL,
                              &run->kernels->rows->functions, memory};
}
/// Scratch memory of `bytes` for each thread, one after another.
tare_status tare__plan_thread_scratch(plan_builder *b, size_t bytes, size_t *out);

static inline int64_t tare__matrix_offset(const matrices *m, int64_t i) {
    return i / m->group * m->outer_step + i % m->group * m->step;
}
static inline float *tare__matrix_at(const plan_run_state *run, const matrices *m, int64_t i) {
    return (float *)tare__buffer_data(run, m->buffer) + tare__matrix_offset(m, i);
}

#endif
