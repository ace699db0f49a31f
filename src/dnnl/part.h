// SPDX-License-Identifier: Apache-2.0
// A part of a float layer: one primitive of oneDNN for one thread, with the memories it works in,
// packed weights and what it does to its input and output. Only what compiles them includes this.
// Private to dnnl.
#ifndef DNNL_PART_H
#define DNNL_PART_H

#include "core/tensor/derived.h"
#include "dnnl/calls.h"
#include "dnnl/float_layers.h"

// Grown on demand; 64-byte aligned.
typedef struct work_memory {
    void *data;
    size_t size;
} work_memory;

/// What a part works in. One per index of a part: parts of different layers never run at once.
typedef struct part_memory {
    work_memory work;                    // the primitive's
    work_memory narrow;                  // its input in bfloat16
    work_memory share;                   // its share of the channels of y, side by side
    work_memory windows[MOST_LINKS - 1]; // rows between the links of a chain
} part_memory;

struct float_layers {
    dnnl_context dnnl;
    thread_pool *pool; // lent
    size_t thread_count;
    bool uses_bf16;
    bool is_used;        // a layer was compiled
    bool is_replica;     // place is another's
    part_memory *memory; // [thread_count + 1]: the parts of a layer, and the rest of a batch
};

enum { MOST_PARTS = 64 }; // of a layer that run at the same time
enum { SRC, WEIGHTS, BIAS, DST, WORK, MEMORIES };

/// Weights in the order that a primitive wants. Those of a model hang on its tensor, for all who
/// need them so; others are a part's own.
typedef struct packed_weights {
    derived_thing base; // `of` NULL: a part's own
    dnnl_memory_desc_t desc;
    derived_memory *memory; // that data lies in; NULL: data is its own
    void *data;
} packed_weights;

typedef struct float_part {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[MEMORIES]; // SRC, WEIGHTS, DST and WORK point to others' data
    dnnl_primitive_t narrowing;     // of `wide` to SRC; NULL: SRC is what is given
    dnnl_memory_t wide;
    packed_weights *weights; // reference owned; NULL: another part's
    void *bias;
    bool lends_weights;           // memory[WEIGHTS] is the first part's
    bool is_replica;              // primitives and memories of constants are another's
    struct {                      // which part of the layer it is
        size_t memory;            // the index of what it works in
        int64_t x_first, y_first; // elements
        size_t times;             // it runs so often, each time one step further
        int64_t x_step, y_step;
        // It makes `width` of the `y_width` channels of each of so many pixels; 0 pixels: all.
        int64_t pixels, width, y_width;
        bool adds; // to what y holds
    } at;
} float_part;

struct float_row_blocks; // dnnl/row blocks.c

struct float_layer {
    float_layers *shared;
    struct float_row_blocks
        *row_blocks; // in which parts run; NULL: all at once. A replica's are its model's.
    size_t part_count;
    float_part parts[];
};

/// A part to be: its memories as the caller gives them.
typedef struct part_form {
    dnnl_memory_desc_t given[MEMORIES]; // of the weights: as they come
    dnnl_memory_desc_t wanted_weights;  // in any order
    bool is_bf16;                       // weights and input are rounded, sums and output are not
    const float_part *lender;           // whose weights may be its own, too; NULL: nobody's
    const float *w, *bias;              // as they come; bias NULL: none
    const tare_tensor *model_weights;   // w lies in it, and others may want it packed; NULL: no
} part_form;

tare_status tare__work_reserve(work_memory *work, size_t size, tare_error *err);
/// desc: of a convolution or a product. *fits false: there is no fast form of it.
tare_status tare__float_part_compile(float_layer *layer, size_t index, const part_form *f,
                                     const void *desc, const float_epilogue *e, bool *fits,
                                     tare_error *err);
/// Makes part `index` of a layer the replica of a part that stays: primitives, weights and bias are
/// lent.
tare_status tare__float_part_replica(const float_part *of, float_layer *layer, size_t index,
                                     tare_error *err);
/// Frees all but `at`, which stays.
void tare__float_part_clear(float_part *part);
/// x and y: the layer's.
dnnl_status_t tare__float_part_run(const float_layer *layer, size_t index, const float *x,
                                   float *y);

// --- convolutions (dnnl/conv.c) ---

tare_status tare__float_conv_compile(float_layer *layer, size_t index, const float_conv *c,
                                     const float_epilogue *e, part_form f, bool *fits,
                                     tare_error *err);
bool tare__float_conv_has_rows(const float_conv *c); // into which an image can be cut
/// Rows [first, last) of the output, and the rows of the input, from *begin on, that they see.
float_conv tare__float_conv_rows(const float_conv *c, int64_t first, int64_t last, int64_t *begin);
/// A convolution of single pixels as one row of them; others as they are.
float_conv tare__float_conv_flat(const float_conv *c);

// --- chains in row blocks (dnnl/row_blocks.c) ---

dnnl_status_t tare__float_row_blocks_run(const float_layer *layer, const float *x, float *y);
/// Memory for the windows of a layer with row blocks.
tare_status tare__float_row_blocks_reserve(const float_layer *layer, tare_error *err);
void tare__float_row_blocks_destroy(struct float_row_blocks *row_blocks); // NULL is fine

// --- layers in parts (dnnl/layers.c) ---

part_form tare__part_form_of(const float_weights *w);
tare_status tare__float_layer_create(float_layers *l, size_t part_count, float_layer **out,
                                     tare_error *err);
/// A layer that failed, or has a part without a fast form, is none.
tare_status tare__float_layer_finish(float_layer *layer, tare_status status, bool fits,
                                     float_layer **out);
/// Among how many parts a layer of so many multiply-accumulates, or of what costs as much, is
/// shared, that can be cut into so many units.
size_t tare__float_part_count(const float_layers *l, double cost, int64_t units);
/// Do so many multiply-accumulates pay for rounding so many elements to bfloat16?
bool tare__is_worth_bf16(const float_layers *l, double macs, double elements);

#endif
