// SPDX-License-Identifier: Apache-2.0
// Products of two quantized tensors, with a quantized or float result. The second operand is packed
// during the run; threads divide row blocks of the first. If the second operand is a vector, rows
// of the first are packed as the channels of a product with it instead.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/gemm/quantized_product.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum {
    MOST_INNER = 1 << 16, // sums of this many products are exact in floats
};

typedef struct matmul_step {
    matmul_call call; // its tensors are the plan's
    quantized_matmul numbers;
    const attention_kernels *kernels;
    const product_kernel *product;
    size_t a, b, y, scratch; // buffers
    size_t count, matrices;  // count: products; matrices: of b
    // Sizes in scratch: a matrix of b, packed, with the initial values of its sums; per thread,
    // floats, and rows of a as unsigned values.
    size_t quantized_bytes, matrix_bytes, float_bytes, thread_bytes;
    bool gives_quantized, is_by_vector; // is_by_vector: b has one column
    quantized_scheme scheme;
} matmul_step;

typedef struct matmul_run {
    const plan_run_state *run;
    const matmul_step *s;
    unsigned char *matrices, *threads;
} matmul_run;

// What the zero point of b subtracts from the results of a row of a, whose signed values have this
// sum.
static float offset_of(const matmul_step *s, int32_t sum) {
    const int64_t own = sum - (int64_t)s->numbers.a_zero * s->call.inner;
    return (float)tare__wrap_int32(s->numbers.b_zero * own) * s->numbers.factor;
}

// --- the second operand ---

static uint32_t *packed_at(const matmul_run *r, size_t matrix) {
    return (uint32_t *)(void *)(r->matrices + matrix * r->s->matrix_bytes);
}

static int32_t *starts_at(const matmul_run *r, size_t matrix) {
    return (int32_t *)(void *)(r->matrices + matrix * r->s->matrix_bytes + r->s->quantized_bytes);
}

// The zero point of a as an unsigned value.
static int32_t zero_of_a(const matmul_step *s) {
    return s->numbers.a_zero + 128;
}

static void pack_matrix(const matmul_run *r, size_t matrix) {
    const matmul_step *s = r->s;
    const size_t inner = (size_t)s->call.inner, columns = (size_t)s->call.columns;
    int32_t *starts = starts_at(r, matrix);
    const quantized_matrix m = {.x = (uint8_t *)tare__buffer_data(r->run, s->b) +
                                     matrix * inner * columns,
                                .step = columns,
                                .rows = inner,
                                .columns = columns,
                                .flip = (uint8_t)tare__signed_shift(s->call.b)};
    tare__quantized_product_pack(s->kernels, &m, packed_at(r, matrix), starts);
    for (size_t i = 0; i < columns; i++)
        starts[i] = tare__wrap_int32(-(int64_t)zero_of_a(s) * starts[i]);
}

static void pack_some(void *user, size_t first, size_t end, size_t worker) {
    (void)worker;
    for (size_t i = first; i < end; i++) pack_matrix(user, i);
}

// --- row blocks ---

// Adds the terms with the zero point of b to the sums of rows.
static void add_offsets(const matmul_step *s, const uint8_t *x, size_t rows, float *y) {
    const size_t inner = (size_t)s->call.inner, columns = (size_t)s->call.columns;
    const quantized_matrix m = {.x = x,
                                .step = inner,
                                .rows = rows,
                                .columns = inner,
                                .flip = (uint8_t)tare__signed_shift(s->call.a)};
    int32_t sums[QUANTIZED_ROW_BLOCK];
    s->kernels->sum_rows(&m, sums);
    for (size_t i = 0; i < rows; i++)
        s->kernels->scale(1, -offset_of(s, sums[i]), columns, y + i * columns);
}

static void run_row_block(void *user, size_t matrix, size_t first, size_t end, size_t worker) {
    const matmul_run *r = user;
    const matmul_step *s = r->s;
    const matmul_call *c = &s->call;
    const size_t inner = (size_t)c->inner, columns = (size_t)c->columns, all = (size_t)c->rows;
    const int64_t i = (int64_t)matrix;
    const size_t rows = end - first;
    const size_t a = (size_t)tare__strided_offset(c->batch_ndim, c->batch, c->a_stride, i);
    const size_t b = (size_t)tare__strided_offset(c->batch_ndim, c->batch, c->b_stride, i);
    const size_t at = ((size_t)i * all + first) * columns;
    unsigned char *own = r->threads + worker * s->thread_bytes;
    float *y = (float *)(void *)own;
    if (!s->gives_quantized) y = (float *)tare__buffer_data(r->run, s->y) + at;
    const uint8_t *x = (uint8_t *)tare__buffer_data(r->run, s->a) + (a * all + first) * inner;
    const quantized_product p = {.kernel = s->product,
                                 .x = x,
                                 .x_step = inner,
                                 .rows = rows,
                                 .tap_size = inner,
                                 .flip = (uint8_t)tare__signed_shift(c->a) ^ PRODUCT_SIGN_BIT,
                                 .as_unsigned = own + s->float_bytes,
                                 .w = packed_at(r, b),
                                 .channels = columns,
                                 .starts = starts_at(r, b),
                                 .multiplier = s->numbers.factor,
                                 .y = y,
                                 .y_step = columns};
    tare__quantized_product_run(&p);
    if (s->numbers.b_zero != 0) add_offsets(s, x, rows, y);
    if (s->gives_quantized)
        r->run->kernels->elementwise->quantize(&s->scheme, y, rows * columns,
                                               (uint8_t *)tare__buffer_data(r->run, s->y) + at);
}

// --- products with a vector ---

// Rows of a as the channels of a product with the row b^T, at most a block of them.
typedef struct vector_block {
    const uint8_t *x, *vector;
    size_t rows;
    uint32_t *w;                 // of the worker: packed rows
    int32_t sums[PRODUCT_BLOCK]; // of rows, of values as int8
    float y[PRODUCT_BLOCK];
} vector_block;

static int64_t sum_of_vector(const matmul_step *s, const uint8_t *x) {
    const uint8_t flip = (uint8_t)tare__signed_shift(s->call.b);
    int64_t sum = 0;
    for (int64_t i = 0; i < s->call.inner; i++) sum += (int8_t)(x[i] ^ flip);
    return sum;
}

// The same sums, and the same operations on floats, as those of a row block.
static void multiply_vector(const matmul_step *s, vector_block *v, uint8_t *as_unsigned) {
    const size_t inner = (size_t)s->call.inner, lanes = tare__quantized_product_lanes(v->rows);
    const quantized_matrix m = {.x = v->x,
                                .step = inner,
                                .rows = v->rows,
                                .columns = inner,
                                .flip = (uint8_t)tare__signed_shift(s->call.a)};
    const int64_t of_vector = s->numbers.a_zero * sum_of_vector(s, v->vector);
    int32_t starts[PRODUCT_BLOCK] = {0};
    s->kernels->pack_rows(&m, lanes, v->w, v->sums);
    for (size_t i = 0; i < v->rows; i++)
        starts[i] = tare__wrap_int32(-128 * (int64_t)v->sums[i] - of_vector);
    const quantized_product p = {.kernel = s->product,
                                 .x = v->vector,
                                 .x_step = inner,
                                 .rows = 1,
                                 .tap_size = inner,
                                 .flip = (uint8_t)tare__signed_shift(s->call.b) ^ PRODUCT_SIGN_BIT,
                                 .as_unsigned = as_unsigned,
                                 .w = v->w,
                                 .channels = v->rows,
                                 .starts = starts,
                                 .multiplier = s->numbers.factor,
                                 .y = v->y,
                                 .y_step = v->rows};
    tare__quantized_product_run(&p);
    for (size_t i = 0; i < v->rows && s->numbers.b_zero != 0; i++)
        v->y[i] -= offset_of(s, v->sums[i]);
}

static void run_vector_block(void *user, size_t matrix, size_t first, size_t end, size_t worker) {
    const matmul_run *r = user;
    const matmul_step *s = r->s;
    const matmul_call *c = &s->call;
    const size_t inner = (size_t)c->inner, all = (size_t)c->rows;
    const int64_t i = (int64_t)matrix;
    const size_t a = (size_t)tare__strided_offset(c->batch_ndim, c->batch, c->a_stride, i);
    const size_t b = (size_t)tare__strided_offset(c->batch_ndim, c->batch, c->b_stride, i);
    unsigned char *own = r->threads + worker * s->thread_bytes;
    vector_block v = {.x = (uint8_t *)tare__buffer_data(r->run, s->a) + (a * all + first) * inner,
                      .vector = (uint8_t *)tare__buffer_data(r->run, s->b) + b * inner,
                      .rows = end - first,
                      .w = (uint32_t *)(void *)own};
    multiply_vector(s, &v, own + s->quantized_bytes);
    const size_t at = (size_t)i * all + first;
    if (s->gives_quantized)
        r->run->kernels->elementwise->quantize(&s->scheme, v.y, v.rows,
                                               (uint8_t *)tare__buffer_data(r->run, s->y) + at);
    else
        memcpy((float *)tare__buffer_data(r->run, s->y) + at, v.y, v.rows * sizeof *v.y);
}

static void run_vectors(matmul_run *r, unsigned char *memory, thread_pool *pool) {
    r->threads = memory;
    tare__parallel_nest(pool, r->s->count, (size_t)r->s->call.rows, PRODUCT_BLOCK, run_vector_block,
                        r);
}

// --- runs ---

static tare_status run_matmul(const plan_run_state *run, void *state) {
    const matmul_step *s = state;
    unsigned char *memory = tare__buffer_data(run, s->scratch);
    matmul_run r = {.run = run, .s = s, .matrices = memory};
    thread_pool *pool = tare__workspace_pool(&run->kernels->space, s->count * (size_t)s->call.rows *
                                                                       (size_t)s->call.inner *
                                                                       (size_t)s->call.columns);
    if (s->is_by_vector) {
        run_vectors(&r, memory, pool);
        return TARE_OK;
    }
    r.threads = r.matrices + s->matrices * s->matrix_bytes;
    tare__parallel(pool, s->matrices, 1, pack_some, &r);
    tare__parallel_nest(pool, s->count, (size_t)s->call.rows, QUANTIZED_ROW_BLOCK, run_row_block,
                        &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const matmul_step *s = state;
    (void)p;
    out->kernel = s->product->name;
    tare__step_say(out, s->is_by_vector
                            ? "integers: rows of the first tensor times a vector of the second"
                            : "integers: product of two tensors, one packed in the run");
    if (!s->gives_quantized) tare__step_say(out, ", to floats");
}

// --- planning ---

// With a vector: only memory of each thread, for a block of packed rows and the vector as unsigned
// values.
static void lay_out_vectors(matmul_step *s) {
    const size_t inner = (size_t)s->call.inner, most = (size_t)s->call.rows;
    const size_t rows = most < PRODUCT_BLOCK ? most : PRODUCT_BLOCK;
    s->quantized_bytes =
        tare__round_up(tare__quantized_product_bytes(inner, rows), BUFFER_ALIGNMENT);
    s->thread_bytes = s->quantized_bytes + tare__round_up(inner, BUFFER_ALIGNMENT);
}

static void lay_out(matmul_step *s) {
    const size_t inner = (size_t)s->call.inner, columns = (size_t)s->call.columns;
    if (s->is_by_vector) {
        lay_out_vectors(s);
        return;
    }
    s->quantized_bytes =
        tare__round_up(tare__quantized_product_bytes(inner, columns), BUFFER_ALIGNMENT);
    s->matrix_bytes = s->quantized_bytes + tare__quantized_product_lanes(columns) * sizeof(int32_t);
    s->float_bytes =
        tare__round_up(QUANTIZED_ROW_BLOCK * columns * sizeof(float), BUFFER_ALIGNMENT);
    s->thread_bytes =
        s->float_bytes + tare__round_up(QUANTIZED_ROW_BLOCK * inner, BUFFER_ALIGNMENT);
}

static tare_status assign_buffers(plan_builder *b, const plan_record *r, matmul_step *s) {
    const size_t threads = tare__thread_count(b->setting->kernels->space.pool);
    const size_t bytes =
        (s->is_by_vector ? 0 : s->matrices * s->matrix_bytes) + threads * s->thread_bytes;
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, s->call.a), LAYOUT_PLAIN, &s->a));
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, s->call.b), LAYOUT_PLAIN, &s->b));
    TARE_TRY(tare__plan_new_scratch(b, bytes, &s->scratch));
    return tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y);
}

static bool is_of_bytes(const op_call *call, size_t i) {
    const tare_tensor *x = tare__call_tensor(call, i);
    return x != NULL && tare__is_byte_quantized(x);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_QUANTIZED_MATMUL, TARE_OP_QUANTIZED_MATMUL_FLOAT,
                                TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

// Mixed operands and other quantized types are left to the reference.
static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    if (!is_of_bytes(&r->call, 0) || !is_of_bytes(&r->call, 1)) return TARE_OK;
    const tare_tensor *y = b->values[r->result].tensor;
    op_call call = r->call;
    matmul_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (matmul_step){.kernels = tare__attention_choose(b->setting->kernels->isa),
                       .gives_quantized = y->q != NULL};
    call.err = b->err;
    TARE_TRY(tare__matmul_read(&call, &s->call));
    tare__matmul_join_batch(&s->call);
    const matmul_call *c = &s->call;
    if (y->count == 0 || c->inner == 0 || c->inner > MOST_INNER ||
        tare__plan_find_value(b, c->a) == NOTHING || tare__plan_find_value(b, c->b) == NOTHING)
        return TARE_OK;
    s->numbers = tare__quantized_matmul_of(c);
    if (s->gives_quantized) s->scheme = tare__quantized_scheme_of(y);
    s->count = (size_t)(y->count / c->rows / c->columns);
    s->matrices = (size_t)(c->b->count / c->inner / c->columns);
    s->is_by_vector = c->columns == 1;
    // The rows of the first tensor are then its channels.
    s->product = tare__product_choose_for(b->setting->kernels->isa,
                                          s->is_by_vector ? 1 : (size_t)c->rows, (size_t)c->inner,
                                          s->is_by_vector ? (size_t)c->rows : (size_t)c->columns);
    lay_out(s);
    TARE_TRY(assign_buffers(b, r, s));
    *done = true;
    return tare__plan_add_step(b, &tare__quantized_matmul_step, s, r->node);
}

const step_class tare__quantized_matmul_step = {
    .name = "quantized matmul",
    .heads = heads,
    .plan = plan_chain,
    .run = run_matmul,
    .describe = describe,
    .replicate = tare__step_share,
};
