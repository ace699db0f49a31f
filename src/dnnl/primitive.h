// SPDX-License-Identifier: Apache-2.0
// The share of a float layer that one thread computes: a primitive of oneDNN with its memories and
// packed weights. Only files that compile primitives include this.
// Private to dnnl.
#ifndef DNNL_PRIMITIVE_H
#define DNNL_PRIMITIVE_H

#include "core/tensor/derived.h"
#include "dnnl/calls.h"
#include "dnnl/float_layers.h"

// Grown on demand; 64-byte aligned.
typedef struct work_memory {
    void *data;
    size_t size;
} work_memory;

/// Scratch memory of the primitives of one index: those of different layers never run at once.
typedef struct primitive_memory {
    work_memory work;                    // the primitive's
    work_memory narrow;                  // its input in bfloat16
    work_memory share;                   // its share of the channels of y, side by side
    work_memory windows[MOST_LINKS - 1]; // rows between the links of a chain
} primitive_memory;

struct float_layers {
    dnnl_context dnnl;
    thread_pool *pool; // lent
    size_t thread_count;
    bool uses_bf16;
    bool is_used;    // a layer was compiled
    bool is_replica; // `dnnl` is another's
    primitive_memory
        *memory; // [thread_count + 1]: the primitives of a layer, and the rest of a batch
};

enum { MOST_PRIMITIVES = 64 }; // of a layer that run at the same time
enum { SRC, WEIGHTS, BIAS, DST, WORK, MEMORIES };

/// Weights in the order that a primitive wants. Those of a model belong to its tensor, and all
/// primitives that need this order share them; others are a primitive's own.
typedef struct packed_weights {
    derived_item base; // `of` NULL: a primitive's own
    dnnl_memory_desc_t desc;
    derived_memory *memory; // with the data; NULL: the primitive owns its data
    void *data;
} packed_weights;

typedef struct float_primitive {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[MEMORIES]; // SRC, WEIGHTS, DST and WORK point to others' data
    dnnl_primitive_t narrowing;     // from `wide` to SRC; NULL: SRC is the input
    dnnl_memory_t wide;
    packed_weights *weights; // reference owned; NULL: another primitive's
    void *bias;
    bool lends_weights;           // memory[WEIGHTS] is the first primitive's
    bool is_replica;              // primitives and memories of constants are another's
    struct {                      // its share of the layer
        size_t memory;            // the index of its scratch memory
        int64_t x_first, y_first; // elements
        size_t times;             // it runs so often, each time one step further
        int64_t x_step, y_step;
        // It makes `width` of the `y_width` channels of each of so many pixels; 0 pixels: all.
        int64_t pixels, width, y_width;
        bool adds; // to what y holds
    } at;
} float_primitive;

struct float_row_blocks; // dnnl/row_blocks.c

struct float_layer {
    float_layers *shared;
    struct float_row_blocks
        *row_blocks; // in which primitives run; NULL: all at once. A replica's are its model's.
    bool images_are_alike; // a convolution's, whose bits do not depend on the number of images
    size_t primitive_count;
    float_primitive primitives[];
};

/// How to compile a primitive: its memories as the caller provides them.
typedef struct primitive_form {
    dnnl_memory_desc_t given[MEMORIES]; // of the weights: as they come
    dnnl_memory_desc_t wanted_weights;  // in any order
    bool is_bf16;                       // weights and input are rounded, sums and output are not
    const float_primitive *lender;      // shares its weights, too; NULL: none
    const float *w, *bias;              // as they come; bias NULL: none
    const tare_tensor
        *model_weights; // a tensor of the model with w, whose packed weights are shared; NULL: none
} primitive_form;

tare_status tare__work_reserve(work_memory *work, size_t size, tare_error *err);
/// desc: of a convolution or a product. *fits false: there is no fast form of it.
tare_status tare__float_primitive_compile(float_layer *layer, size_t index, const primitive_form *f,
                                          const void *desc, const float_epilogue *e, bool *fits,
                                          tare_error *err);
/// Makes primitive `index` of a layer a replica of `of`, which lends it the oneDNN primitives,
/// weights and bias, and must outlive it.
tare_status tare__float_primitive_replica(const float_primitive *of, float_layer *layer,
                                          size_t index, tare_error *err);
/// The library's name of its implementation, or "".
const char *tare__float_primitive_kernel(const float_primitive *p);
/// Frees all but `at`, which stays.
void tare__float_primitive_clear(float_primitive *p);
/// x and y: the layer's.
dnnl_status_t tare__float_primitive_run(const float_layer *layer, size_t index, const float *x,
                                        float *y);

// --- convolutions (dnnl/conv.c) ---

tare_status tare__float_conv_compile(float_layer *layer, size_t index, const float_conv *c,
                                     const float_epilogue *e, primitive_form f, bool *fits,
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

// --- layers in primitives (dnnl/layers.c) ---

primitive_form tare__primitive_form_of(const float_weights *w);
tare_status tare__float_layer_create(float_layers *l, size_t primitive_count, float_layer **out,
                                     tare_error *err);
/// *out: the layer, unless it failed or a primitive has no fast form.
tare_status tare__float_layer_finish(float_layer *layer, tare_status status, bool fits,
                                     float_layer **out);
/// The number of shares of a layer that costs as much as this many multiply-accumulates and can be
/// cut into so many units.
size_t tare__float_share_count(const float_layers *l, double cost, int64_t units);
/// True if this many multiply-accumulates justify rounding this many elements to bfloat16.
bool tare__is_worth_bf16(const float_layers *l, double macs, double elements);

#endif
