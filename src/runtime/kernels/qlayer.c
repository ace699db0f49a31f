// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions have kernels of their own; all else is a product.
#include "runtime/kernels/qlayer.h"

#include "core/alloc.h"
#include "runtime/kernels/qdepthwise.h"
#include "runtime/kernels/qlibrary.h"
#include "runtime/kernels/qproduct.h"

struct qlayer {
    qdepthwise *depthwise; // one of them; while it is chosen, the last two
    qproduct *product;
    qlibrary *library;
    bool by_library;
};

static tare_status pack(qlayer *l, const quantized_layer *layer, const tare_tensor *x,
                        const tare_tensor *y, isa_level isa, tare_error *err) {
    TARE_TRY(tare__qdepthwise_create(layer, x, y, isa, &l->depthwise, err));
    return l->depthwise != NULL ? TARE_OK
                                : tare__qproduct_create(layer, x, y, isa, &l->product, err);
}

tare_status tare__qlayer_create(const quantized_layer *layer, const tare_tensor *x,
                                const tare_tensor *y, isa_level isa, qlayer **out,
                                tare_error *err) {
    *out = NULL;
    qlayer *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    const tare_status status = pack(l, layer, x, y, isa, err);
    if (status == TARE_OK && (l->depthwise != NULL || l->product != NULL))
        *out = l;
    else
        tare__qlayer_destroy(l);
    return status;
}

void tare__qlayer_destroy(qlayer *layer) {
    if (layer == NULL) return;
    tare__qdepthwise_destroy(layer->depthwise);
    tare__qproduct_destroy(layer->product);
    tare__qlibrary_destroy(layer->library);
    tare__free(layer);
}

tare_status tare__qlayer_take_library(qlayer *layer, const quantized_layer *of,
                                      const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                      size_t thread_count, bool *done, tare_error *err) {
    if (layer->product != NULL)
        TARE_TRY(tare__qlibrary_create(of, x, y, isa, thread_count, &layer->library, err));
    *done = layer->library != NULL;
    layer->by_library = *done;
    return TARE_OK;
}

void tare__qlayer_choose(qlayer *layer, bool library, bool drop_other) {
    layer->by_library = library && layer->library != NULL;
    if (!drop_other) return;
    if (layer->by_library) {
        tare__qproduct_destroy(layer->product);
        layer->product = NULL;
    } else {
        tare__qlibrary_destroy(layer->library);
        layer->library = NULL;
    }
}

qlayer_form tare__qlayer_form(const qlayer *layer) {
    if (layer->by_library) return tare__qlibrary_form(layer->library);
    return layer->product != NULL ? tare__qproduct_form(layer->product)
                                  : tare__qdepthwise_form(layer->depthwise);
}

const char *tare__qlayer_refusal(const quantized_layer *layer, const tare_tensor *x) {
    return tare__qproduct_refusal(layer, x); // it covers what depthwise kernels do
}

void tare__qlayer_set_input(qlayer *layer, const qparams *weight, double scale,
                            int32_t zero_point) {
    tare__qproduct_set_input(layer->product, weight, scale, zero_point);
}

bool tare__qlayer_adds(const qlayer *layer) {
    return layer->product != NULL || layer->library != NULL;
}

size_t tare__qlayer_scratch_bytes(const qlayer *layer, size_t thread_count) {
    if (layer->by_library) return tare__qlibrary_scratch_bytes(layer->library, thread_count);
    return layer->product != NULL ? tare__qproduct_scratch_bytes(layer->product, thread_count)
                                  : tare__qdepthwise_scratch_bytes(layer->depthwise, thread_count);
}

void tare__qlayer_run(const qlayer *layer, const qlayer_run *run) {
    if (layer->by_library)
        tare__qlibrary_run(layer->library, run);
    else if (layer->product != NULL)
        tare__qproduct_run(layer->product, run);
    else
        tare__qdepthwise_run(layer->depthwise, run);
}
