// SPDX-License-Identifier: Apache-2.0
// Parameters of float layers' calls, read as the references read them, for other executors.
#ifndef OPS_LAYER_CALL_H
#define OPS_LAYER_CALL_H

#include "core/math/rows.h"
#include "dnnl/float_kernels.h"
#include "ops/call.h"

/// A bound call of conv1d, conv2d or conv3d. Tensors are lent.
typedef struct conv_call {
    float_conv conv;
    const tare_tensor *x, *w, *bias; // bias: NULL if there is none
    bool is_plain;                   // x has a batch dimension, and its padding is zeros
} conv_call;
tare_status tare__conv_read(op_call *call, conv_call *out);
/// The same for conv_transpose1d, 2d or 3d: w [in_channels][out_channels / groups][kernel..]; pad
/// is cropped from the output.
tare_status tare__transposed_conv_read(op_call *call, conv_call *out);

/// A bound call of linear: x [..][in], w [out][in], bias [out] or NULL.
typedef struct linear_call {
    const tare_tensor *x, *w, *bias;
} linear_call;
tare_status tare__linear_read(op_call *call, linear_call *out);

/// A bound call of matmul, of floats, integers or quantized bytes: a [batch..][rows][inner], b
/// [batch..][inner] [columns], or one row or column without that dimension.
typedef struct matmul_call {
    const tare_tensor *a, *b;
    int64_t rows, inner, columns;
    int batch_ndim;
    int64_t batch[TARE_MAX_DIMS], a_stride[TARE_MAX_DIMS], b_stride[TARE_MAX_DIMS]; // in matrices
} matmul_call;
tare_status tare__matmul_read(op_call *call, matmul_call *out);
/// Counts the matrices in as few dimensions as possible, of the operands only: tare__matmul_result
/// is told before.
void tare__matmul_join_batch(matmul_call *p);
/// Sets the call's result to a tensor of the product's shape and of the operands' dtype (float32
/// for quantized ones).
tare_status tare__matmul_result(op_call *call, const matmul_call *m);
int64_t tare__matmul_macs(const op_call *call);
/// True for a product of 8-bit quantized tensors, which is computed with integer sums.
bool tare__matmul_is_of_quantized(const op_call *call);
/// Such a call's numbers. With signed quantized values a, b (unsigned ones count as 128 less):
///   y = f32(sum of (a - a_zero) * b) * factor - f32(b_zero * sum of (a - a_zero)) * factor
/// over the inner dimension; integers are int32 modulo 2^32. quantized.matmul quantizes y.
typedef struct quantized_matmul {
    float factor;
    int32_t a_zero, b_zero;
} quantized_matmul;
quantized_matmul tare__quantized_matmul_of(const matmul_call *m);
tare_status tare__quantized_matmul_compute(op_call *call);

/// A bound call of grouped_mm: rows of x [rows][inner] in groups, which end at `ends` [groups],
/// times w [groups][inner][columns]. Rows after the last group become 0.
typedef struct grouped_mm_call {
    const tare_tensor *x, *w, *ends;
} grouped_mm_call;
tare_status tare__grouped_mm_read(op_call *call, grouped_mm_call *out);
/// The row at which group e ends that begins at row `from`; fails if there is none.
tare_status tare__grouped_mm_end(op_call *call, const grouped_mm_call *g, int64_t e, int64_t from,
                                 int64_t *end);

/// A bound call of a pooling row. Unused dimensions of the three have size 1 and one window.
typedef struct pool_call {
    const tare_tensor *x;
    int dims;
    int64_t planes; // everything before the pooled dimensions
    int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    bool ceil_mode, count_pad;
    bool has_indices;         // of a max pool: also returns the indices of the maxima
    int64_t divisor;          // avg_pool's divisor_override; 0: none
    bool is_max, is_adaptive; // set by tare__pool_read
} pool_call;

/// The input elements of one output element. `area` includes padding.
typedef struct pool_window {
    int64_t begin[3], end[3];
    double area; // a product of three sizes may exceed int64
} pool_window;

/// *known: false if no executor supports the call: not a pooling, or one with indices.
tare_status tare__pool_read(op_call *call, pool_call *out, bool *known);
pool_window tare__pool_window_at(const pool_call *p, const int64_t at[3]);
double tare__pool_divisor(const pool_call *p, const pool_window *w);
/// True if every window has one element along the last dimensions, and their pixels, which may
/// stand for channels, are many or at least as many as these.
bool tare__pool_keeps_last(const pool_call *p);
/// For pixels that are rows of `channels`: makes dimensions that the windows keep part of the
/// channels, from the last one on. Each element is computed as before.
void tare__pool_join_channels(pool_call *p, size_t *channels);

/// A bound call of index_copy, or of index_put with one index vector after whole dimensions: slices
/// of `source` [outer][count][inner] are written to indices along a dimension of x
/// [outer][size][inner].
typedef struct slices_call {
    const tare_tensor *x, *indices, *source;
    int dim;
    int64_t outer, count, size, inner;
} slices_call;
/// *is_known: false if the call writes other elements.
tare_status tare__slices_read(op_call *call, slices_call *out, bool *is_known);
/// Writes the slices to y, which holds a copy of x. Indices are checked first: after a failure y is
/// unchanged.
tare_status tare__slices_put(op_call *call, const slices_call *s, void *y);

/// A bound call of embedding: indices of any shape, table [rows][width] of floats, or of quantized
/// values with a scale and a zero point for each row.
typedef struct embedding_call {
    const tare_tensor *indices, *table;
} embedding_call;
tare_status tare__embedding_read(op_call *call, embedding_call *out);
/// Reads the i-th index; fails, naming the call, if there is no such row.
tare_status tare__embedding_row(op_call *call, const embedding_call *e, int64_t i, int64_t *out);
/// The factors of a quantized row, whose elements are fma(q, scale, bias).
void tare__embedding_factors(const tare_tensor *table, int64_t row, float *scale, float *bias);

/// A bound call of embedding_bag: `count` bags of rows. Rows of index `padding_index` are skipped.
typedef struct embedding_bags {
    embedding_call rows;
    const tare_tensor *offsets, *sample_weights; // NULL: bags of equal length; weights of 1
    int64_t count, padding_index;
    enum { BAG_SUM, BAG_MEAN, BAG_MAX } mode;
} embedding_bags;
tare_status tare__embedding_bags_read(op_call *call, embedding_bags *out);
/// Reads the range of bag i among the indices, [*begin, *end); fails, naming the call, if it is
/// invalid.
tare_status tare__embedding_bag_at(op_call *call, const embedding_bags *b, int64_t i,
                                   int64_t *begin, int64_t *end);

/// A bound call of interpolate: x [N][C][..]. `in`, `out` and `step` describe three dimensions: the
/// last `dims` are those of x, which are resized; the others are 1.
typedef enum resize_mode {
    RESIZE_NEAREST,
    RESIZE_NEAREST_EXACT,
    RESIZE_LINEAR,
    RESIZE_CUBIC, // of two dimensions
} resize_mode;
typedef struct resize_call {
    const tare_tensor *x;
    int dims;
    resize_mode mode;
    bool align_corners;
    int64_t in[3], out[3];
    float step[3]; // input elements per output element
} resize_call;
tare_status tare__resize_read(op_call *call, resize_call *out);
/// The input elements along dimension d that contribute to output element i, and their weights.
enum { RESIZE_MOST_TAPS = 4, RESIZE_MOST_PLANE_TAPS = 16 };
typedef struct resize_taps {
    int count;
    int64_t at[RESIZE_MOST_TAPS];
    float weight[RESIZE_MOST_TAPS];
} resize_taps;
resize_taps tare__resize_taps_of(const resize_call *r, int d, int64_t i);
/// The elements of a plane that contribute to an output element, by its taps along each dimension:
///   y = ((0 + weight[0] * x[at[0]]) + weight[1] * x[at[1]]) + ..
typedef struct resize_plane_taps {
    size_t count;
    int64_t at[RESIZE_MOST_PLANE_TAPS];
    float weight[RESIZE_MOST_PLANE_TAPS];
} resize_plane_taps;
resize_plane_taps tare__resize_plane_taps_of(const resize_call *r,
                                             const resize_taps *const taps[3]);

/// A bound call of pad: x, and the number of elements before and after each dimension; negative
/// numbers crop.
typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } pad_mode;
typedef struct pad_call {
    const tare_tensor *x;
    int64_t before[TARE_MAX_DIMS], after[TARE_MAX_DIMS];
    pad_mode mode;
    double constant;
} pad_call;
tare_status tare__pad_read(op_call *call, pad_call *out);
/// An array [in..] that is padded to [out..], dimensions in memory order. Each element of the last
/// dimension consists of `unit` elements of `element` bytes, which are copied together.
typedef struct pad_box {
    pad_mode mode;
    int ndim;
    int64_t in[TARE_MAX_DIMS], out[TARE_MAX_DIMS], before[TARE_MAX_DIMS];
    size_t element, unit;
    unsigned char fill[8]; // an element of the constant
} pad_box;
/// For arrays that have the dimensions `order` of `call`, outermost first. y: the result.
pad_box tare__pad_box_of(const pad_call *call, const int *order, const tare_tensor *y);
/// The number of rows of the result along the last dimension; and the computation of rows [first,
/// end).
int64_t tare__pad_row_count(const pad_box *b);
void tare__pad_rows(const pad_box *b, const void *x, int64_t first, int64_t end, void *y);

/// A bound call that computes each row of x [..][count] independently into y [..][results]
/// (op_info.row_function).
typedef struct row_call {
    const tare_tensor *x;
    int64_t count, results; // elements of a row of x and of y, which are contiguous
    /// Computes one row. y may be x if tare__row_call_is_in_place. NULL: the call does not compute
    /// rows, or parameters that the graph computes have no data yet.
    void (*run)(const struct row_call *c, const row_functions *k, const float *x, float *y);
    bool reads_again;           // x is read again after y was written
    const float *weight, *bias; // [count] of a norm, or NULL
    float eps;
} row_call;
/// Computes rows that lie one behind the other.
static inline void tare__row_call_run(const row_call *c, const row_functions *k, size_t rows,
                                      const float *x, float *y) {
    for (size_t i = 0; i < rows; i++, x += c->count, y += c->results) c->run(c, k, x, y);
}
static inline bool tare__row_call_is_in_place(const row_call *c) {
    return !c->reads_again && c->results == c->count;
}

/// The tensors that a bound cat joins, in order, in the call's memory.
tare_status tare__cat_inputs(op_call *call, const tare_tensor ***out, size_t *count);

/// A bound call of batch_norm outside of training: mean and var [C], weight and bias [C] or NULL.
typedef struct batch_norm_call {
    const tare_tensor *x;
    const float *mean, *var, *weight, *bias;
    double eps;
} batch_norm_call;
/// *known: false if the call uses the statistics of the batch.
tare_status tare__batch_norm_read(op_call *call, batch_norm_call *out, bool *known);
/// y = x * scale + shift; the product and the sum are rounded separately.
void tare__batch_norm_factors(const batch_norm_call *n, int64_t c, float *scale, float *shift);

/// A bound call of group_norm, or of instance_norm with the input's own statistics: x [N][C][..],
/// weight and bias [C] or NULL.
typedef struct group_norm_call {
    const tare_tensor *x;
    const float *weight, *bias;
    int64_t groups, each, inner; // each: channels per group; inner: elements per channel
    double eps;
} group_norm_call;
tare_status tare__group_norm_read(op_call *call, group_norm_call *out);
/// *own: false if the call uses running statistics; then it is a batch norm, and *out does not
/// apply.
tare_status tare__instance_norm_read(op_call *call, group_norm_call *out, bool *own);
/// The scale and shift of channel c in a group with these moments.
void tare__group_norm_factors(const group_norm_call *g, int64_t c, float mean, float variance,
                              float *scale, float *shift);

/// A bound call of scaled_dot_product_attention: q [batch..][queries][width],
/// k [..][keys][width], v [..][keys][value_width].
typedef struct attention_call {
    const tare_tensor *q, *k, *v, *mask; // mask may be NULL
    int64_t queries, keys, width, value_width;
    int batch_ndim;
    int64_t batch[TARE_MAX_DIMS];                             // of q
    int64_t k_stride[TARE_MAX_DIMS], v_stride[TARE_MAX_DIMS]; // in matrices
    int64_t group;                                            // heads of q that share one of k
    int64_t mask_shape[TARE_MAX_DIMS], mask_stride[TARE_MAX_DIMS];
    bool is_causal;
    float scale;
} attention_call;
tare_status tare__attention_read(op_call *call, attention_call *out);
/// The matrices of k and v, and the first element of the mask, that belong to q's matrix `i`.
typedef struct attention_offsets {
    int64_t k, v, mask;
} attention_offsets;
attention_offsets tare__attention_offsets_of(const attention_call *a, int64_t i);
/// 128 if a tensor's unsigned values become signed by subtracting 128 (or flipping a bit); else 0.
int32_t tare__signed_shift(const tare_tensor *t);
/// True for attention of 8-bit quantized tensors, which is computed with integer sums.
bool tare__attention_is_of_quantized(const op_call *call);
/// Such a call's numbers. With signed quantized values q, k, v (unsigned ones count as 128 less):
///   u[s] = f32(sum over i of (q[i] - query_zero) * k[s][i]) * factor, in units of log2, masked
///   w[s] = tare__exp2_quantized(u[s] - max u), total = sum of w
///   y[c] = (f32(sum over s of w[s] * v[s][c]) * value_scale) * (1 / total) + offset
/// Sums are int32 modulo 2^32. A query that may attend to no key gets zeros.
typedef struct quantized_attention {
    float factor, value_scale, offset;
    int32_t query_zero;
} quantized_attention;
quantized_attention tare__quantized_attention_of(const attention_call *a);
/// Adds a query's row of the mask to its scores.
void tare__quantized_attention_mask(const attention_call *a, const attention_offsets *offsets,
                                    int64_t query, float *scores);
/// Computes the weights of queries [first, end) from scores [end - first][keys], their rows of the
/// product of matrices of q and k: scales the scores, adds the mask and applies softmax to each
/// row.
void tare__attention_weigh(const attention_call *a, const attention_offsets *offsets, int64_t first,
                           int64_t end, const row_functions *k, float *scores);

#endif
