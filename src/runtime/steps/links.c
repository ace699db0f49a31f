// SPDX-License-Identifier: Apache-2.0
// Convolutions that are computed together in row blocks. Depthwise convolutions and their
// neighbours do little work for each element, so if the value between them does not fit the caches,
// its memory traffic dominates.
#include <string.h>

#include "runtime/plan/dispatch.h"
#include "runtime/steps/layer.h"
#include "runtime/steps/steps.h"

// Smaller values between two layers stay in the caches even without row blocks.
enum { LEAST_BYTES = 1 << 20 };

static bool read_image(const plan_record *r, float_conv *out) {
    op_call call = r->call;
    conv_call c;
    call.err = NULL;
    if (!tare__record_is(r, TARE_OP_CONV2D) || tare__conv_read(&call, &c) != TARE_OK) return false;
    *out = c.conv;
    return c.is_plain && c.conv.batch == 1;
}

static bool is_depthwise(const float_conv *c) {
    return c->groups > 1 && c->groups == c->in_channels && c->groups == c->out_channels;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    const struct float_layers *library = b->setting->layers;
    float_conv unused;
    return library != NULL && !tare__float_layers_use_bf16(library) && tare__plan_is_float(b, r) &&
           tare__layer_kind_of(r) != NULL && read_image(r, &unused);
}

// True if the convolution `next`, which reads record `last`, is faster if computed in row blocks
// together with the layer that `last` belongs to.
static bool is_link(const plan_builder *b, size_t layer, size_t last, size_t next) {
    const plan_record *r = &b->records[next];
    const size_t between = b->records[last].result;
    float_conv from, to;
    if (!heads(b, r) || r->inputs[0] != between) return false;
    if (tare__tensor_bytes(b->values[between].tensor) < LEAST_BYTES) return false;
    return read_image(&b->records[layer], &from) && read_image(r, &to) &&
           (is_depthwise(&from) || is_depthwise(&to));
}

static bool extend(plan_builder *b, size_t head) {
    size_t last = head, layer = head;
    bool adds = false;
    size_t next = tare__layer_extend(b, head, &last, &adds);
    for (size_t count = 1; count < MOST_LINKS && next != NOTHING && !adds; count++) {
        if (!is_link(b, layer, last, next)) break;
        tare__plan_append(b, head, &last, next);
        layer = next;
        next = tare__layer_extend(b, head, &last, &adds);
    }
    return last != head;
}

// --- planning ---

typedef struct links {
    size_t count;
    size_t heads[MOST_LINKS];
    layer_chain chains[MOST_LINKS];
    folded_norm folded[MOST_LINKS];
    float_link links[MOST_LINKS];
} links;

static bool read_links(const plan_builder *b, size_t head, links *l) {
    l->count = 0;
    for (size_t i = head; i != NOTHING; i = l->chains[l->count++].next) {
        l->heads[l->count] = i;
        if (!tare__layer_read(b, i, &l->chains[l->count])) return false;
    }
    return true;
}

static tare_status make_link(plan_builder *b, links *l, size_t index) {
    const layer_chain *chain = &l->chains[index];
    folded_norm *folded = &l->folded[index];
    op_call call = b->records[l->heads[index]].call;
    conv_call c;
    call.err = b->err;
    if (chain->norm != NULL) TARE_TRY(tare__layer_fold(b, &call, chain, folded));
    TARE_TRY(tare__conv_read(&call, &c));
    l->links[index] = (float_link){.conv = c.conv,
                                   .epilogue = chain->epilogue,
                                   .weights = tare__layer_weights(c.w, c.bias, folded)};
    return TARE_OK;
}

static tare_status compile(plan_builder *b, links *l, float_layer **out) {
    tare_status status = TARE_OK;
    memset(l->folded, 0, sizeof l->folded);
    for (size_t i = 0; i < l->count && status == TARE_OK; i++) status = make_link(b, l, i);
    if (status == TARE_OK)
        status = tare__float_layer_chain(b->setting->layers, l->links, l->count, out, b->err);
    for (size_t i = 0; i < l->count; i++) tare__folded_norm_release(&l->folded[i]);
    return status;
}

// Plans the layers separately if the library has no fast kernel for a row block.
static tare_status plan_apart(plan_builder *b, const links *l) {
    for (size_t i = 0; i < l->count; i++) {
        bool done = false;
        TARE_TRY(tare__plan_by_later_class(b, &tare__links_step, l->heads[i], &done));
        for (size_t r = l->heads[i]; !done && r != l->chains[i].next; r = b->records[r].next)
            TARE_TRY(tare__plan_call(b, r));
    }
    return TARE_OK;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    links l;
    float_layer *layer = NULL;
    if (!read_links(b, head, &l) || l.count == 1) return TARE_OK;
    TARE_TRY(compile(b, &l, &layer));
    *done = true;
    return layer != NULL ? tare__layer_add_step(b, head, &l.chains[l.count - 1], l.count, layer)
                         : plan_apart(b, &l);
}

const step_class tare__links_step = {
    .name = "layer",
    .heads = heads,
    .extend = extend,
    .plan = plan_chain,
};
