// SPDX-License-Identifier: Apache-2.0
// Float layers compiled once for a shape, with packed weights and fused epilogues, by a library's
// kernels (oneDNN), if there is one. Images are channels last.
#ifndef DNNL_FLOAT_LAYERS_H
#define DNNL_FLOAT_LAYERS_H

#include "core/math/elements.h"
#include "core/threads/threads.h"
#include "dnnl/float_kernels.h"

/// Operations on a layer's result before it is stored, in order.
enum { MOST_EPILOGUES = 6 };
typedef struct float_epilogue {
    size_t count;
    struct {
        bool adds;                       // y += what y holds before; else
        element_kind kind;               // one that tare__float_layer_applies, with
        float p[ELEMENT_MAX_PARAMETERS]; // its parameters
    } steps[MOST_EPILOGUES];
} float_epilogue;
/// True if layers can apply this function.
bool tare__float_layer_applies(element_kind kind);

typedef struct float_layers float_layers; // what layers share; one per session
typedef struct float_layer float_layer;

/// *out is NULL where this build has no such library. pool (lent; NULL: the caller alone): who
/// shares the work of a layer. uses_bf16: weights and inputs of layers are rounded to bfloat16
/// where that pays; products are added up in float32, and outputs are float32. TARE_UNSUPPORTED
/// where machine or build cannot. The caller destroys *out, after its layers.
tare_status tare__float_layers_create(thread_pool *pool, bool uses_bf16, float_layers **out,
                                      tare_error *err);
void tare__float_layers_destroy(float_layers *l); // NULL is fine
bool tare__float_layers_use_bf16(const float_layers *l);
/// The same for one thread that runs replicas of its layers. `of` outlives *out.
tare_status tare__float_layers_replica(const float_layers *of, float_layers **out, tare_error *err);

/// The weights and bias of a layer (bias may be NULL). Both are packed, and not needed afterwards.
/// is_model: w is a tensor of the model, whose packed weights all sessions share.
typedef struct float_weights {
    const tare_tensor *w;
    const float *bias;
    bool is_model;
} float_weights;

/// y [batch][out..][out_channels] of x [batch][in..][in_channels], with weights as in float_conv.
/// *out is NULL if the library has no fast form of it. What is computed depends on neither the
/// batch nor the number of threads, as far as the library's kernels go over images and rows.
tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float_weights *w, float_layer **out, tare_error *err);
/// Convolutions of one image, each of the result of the one before, in row blocks, so that
/// intermediate rows stay in the caches. *out is NULL if the library has no fast form of one.
typedef struct float_link {
    float_conv conv;
    float_epilogue epilogue; // adds: in the last one only
    float_weights weights;
} float_link;
enum { MOST_LINKS = 4 };
tare_status tare__float_layer_chain(float_layers *l, const float_link *links, size_t count,
                                    float_layer **out, tare_error *err);
/// y [rows][columns] = x [rows][inner] * w (transposed: [columns][inner]) + bias.
tare_status tare__float_layer_product(float_layers *l, const float_product *p,
                                      const float_epilogue *e, const float_weights *w,
                                      float_layer **out, tare_error *err);
/// Before a run of layers, or, if `others`, of anything else of the same library:
/// TARE_OUT_OF_MEMORY where it could lack memory in it.
tare_status tare__float_layers_expect_run(const float_layers *l, bool others, tare_error *err);
tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err);
/// A layer that may run at the same time as `of`, on one thread: it shares the compiled primitives
/// and packed weights of `of`, which must outlive it. in: a replica of the layers that contain
/// `of`.
tare_status tare__float_layer_replica(const float_layer *of, float_layers *in, float_layer **out,
                                      tare_error *err);
/// True for a convolution that computes each image with the same bits, however many there are, as
/// does any other one with the same weights and the same implementation.
bool tare__float_layer_images_are_alike(const float_layer *layer);
/// The library's name of its implementation; static storage. *weight_bytes: as packed.
const char *tare__float_layer_kernel(const float_layer *layer, size_t *weight_bytes);
void tare__float_layer_destroy(float_layer *layer); // NULL is fine

/// Computes a part of a product. On the calling thread alone; other threads may do so at the same
/// time.
tare_status tare__float_layers_multiply(float_layers *l, const float_block *b, const float *x,
                                        const float *w, float *y, tare_error *err);

#endif
