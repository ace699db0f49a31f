// SPDX-License-Identifier: Apache-2.0
// Stores the packed weights of integer layers in model files, so that sessions read them from the
// mapped file. Those of product kernels serve all machines, those of depthwise kernels machines
// with the writer's register width.
#include <string.h>

#include "core/memory/alloc.h"
#include "model/model_io.h"
#include "ops/op.h"
#include "ops/quantized/engine_rules.h"
#include "runtime/gemm/depthwise_weights.h"
#include "runtime/gemm/product_weights.h"
#include "runtime/kernels/isa.h"
#include "tare/session.h"

// True for weights that kernels take from a plain quantized tensor.
static bool has_plain_quantized(const tare_tensor *w) {
    return w != NULL && w->dtype == TARE_QINT8 && w->data != NULL && w->count > 0 &&
           !tare__has_zero_points(w);
}

// *fits: it is a layer of the product kernels.
static tare_status read_layer(const module *m, quantized_layer *out, bool *fits, tare_error *err) {
    const module_class *class = m->class;
    const tare_tensor *w = tare__module_tensor(m, "weight");
    const bool is_packed =
        class->role == ROLE_QUANTIZED || class->role == ROLE_PACKED || class->role == ROLE_DYNAMIC;
    *fits = false;
    if (!is_packed || !has_plain_quantized(w)) return TARE_OK;
    if (tare__class_op(class) == TARE_OP_LINEAR) {
        *out = (quantized_layer){.module = m, .weight = w};
        *fits = w->ndim == 2;
    } else if (tare__op_has(tare__class_row(class), OP_CONVOLUTION) &&
               class->role != ROLE_DYNAMIC) {
        TARE_TRY(tare__quantized_weights_read(m, out, err));
        *fits = !out->conv.is_transposed;
    }
    return TARE_OK;
}

static bool is_listed(const model_packings *list, const tare_tensor *weight) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].weight == weight) return true;
    return false;
}

static tare_status pack_product(const quantized_layer *layer, model_packing *p, tare_error *err) {
    const product_form form = tare__product_form_of(layer);
    const derived_key key = tare__product_key(layer->weight, &form);
    packed_weights *packed = NULL;
    memcpy(p->numbers, key.numbers, sizeof p->numbers);
    TARE_TRY(tare__product_weights_get(layer->weight, &form, &packed, err));
    const tare_status status = tare__product_weights_bytes(packed, &form, &p->bytes, err);
    tare__packed_weights_release(packed);
    return status;
}

// The properties of windows and weights that packing depends on, for images of any size.
static subconvolution subconvolution_of(const quantized_layer *layer) {
    const conv_geometry *g = &layer->conv;
    subconvolution sub = {.windows = {.addends = 1,
                                      .planes = (size_t)g->kernel[D],
                                      .rows = (size_t)g->kernel[H],
                                      .columns = (size_t)g->kernel[W]},
                          .taps = {.are_plain = true,
                                   .groups = (size_t)g->groups,
                                   .outs = (size_t)g->out_channels,
                                   .ins = (size_t)g->in_channels}};
    for (int d = 0; d < SPATIAL; d++) {
        sub.windows.stride[d] = (size_t)g->stride[d];
        sub.windows.step[d] = (size_t)g->dilation[d];
    }
    return sub;
}

static tare_status pack_depthwise(const quantized_layer *layer, const subconvolution *sub,
                                  model_packing *p, tare_error *err) {
    isa_level isa;
    packed_weights *packed = NULL;
    TARE_TRY(tare__isa_choose(&isa, err));
    const depthwise_form form =
        tare__depthwise_form_of(tare__depthwise_choose(isa), &sub->windows, sub->taps.outs);
    const derived_key key = tare__depthwise_key(layer->weight, &form);
    memcpy(p->numbers, key.numbers, sizeof p->numbers);
    TARE_TRY(tare__depthwise_weights_get(layer->weight, &form, &sub->taps, &packed, err));
    const tare_status status = tare__depthwise_weights_bytes(packed, &form, &p->bytes, err);
    tare__packed_weights_release(packed);
    return status;
}

static tare_status add_layer(model_packings *list, const quantized_layer *layer, tare_error *err) {
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return tare__out_of_memory(err);
    model_packing *p = &list->items[list->count];
    *p = (model_packing){.weight = layer->weight};
    const subconvolution sub = subconvolution_of(layer);
    const bool is_depthwise =
        layer->weight->ndim > 2 && !layer->adds && tare__depthwise_fits(&sub.taps, &sub.windows);
    TARE_TRY(is_depthwise ? pack_depthwise(layer, &sub, p, err) : pack_product(layer, p, err));
    list->count++;
    return TARE_OK;
}

static tare_status visit(void *user, const char *path, module *m, tare_error *err) {
    model_packings *list = user;
    quantized_layer layer;
    bool fits;
    (void)path;
    TARE_TRY(read_layer(m, &layer, &fits, err));
    return fits && !is_listed(list, layer.weight) ? add_layer(list, &layer, err) : TARE_OK;
}

tare_status tare_model_write_packed(const tare_model *model, const char *path, tare_error *err) {
    if (model == NULL || path == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a model and a path");
    model_packings list = {0};
    tare_status status = tare__module_walk(model->root, visit, &list, err);
    if (status == TARE_OK) status = tare__model_write_packed(model, path, &list, err);
    for (size_t i = 0; i < list.count; i++) tare_tensor_release(list.items[i].bytes);
    tare__free(list.items);
    return status;
}
