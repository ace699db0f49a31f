// SPDX-License-Identifier: Apache-2.0
// Integer products with scales that are computed at run time, as dynamic quantizers write them:
//
//   DynamicQuantizeLinear - MatMulInteger - Cast - Mul by both scales
//
// They become the product of the dequantized operands. ConvInteger likewise.
#include <string.h>

#include "core/memory/map.h"
#include "io/onnx/read/expand.h"
#include "io/onnx/read/inline.h"

typedef Onnx__NodeProto node_proto;

// The node that produces a value, and how it is read.
typedef struct value_use {
    const node_proto *giver, *reader; // producer, and the last reader
    size_t reader_count;
} value_use;

typedef struct product_search {
    const Onnx__GraphProto *g;
    arena *memory;
    map uses; // name -> value_use *
    tare_error *err;
} product_search;

static bool is_call(const node_proto *n, const char *op_type, size_t input_count) {
    return n != NULL && n->op_type != NULL && strcmp(n->op_type, op_type) == 0 &&
           n->n_input == input_count && n->n_output > 0 &&
           (n->domain == NULL || *n->domain == '\0' || strcmp(n->domain, "ai.onnx") == 0);
}

static value_use *use_of(product_search *s, const char *name) {
    value_use *u = tare__map_get(&s->uses, name);
    if (u != NULL) return u;
    u = tare__arena_alloc(s->memory, sizeof *u);
    if (u == NULL) return NULL;
    *u = (value_use){.reader_count = 0};
    return tare__map_set(&s->uses, name, u) ? u : NULL;
}

static tare_status list_node(product_search *s, const node_proto *n) {
    for (size_t i = 0; i < n->n_input + n->n_output; i++) {
        const bool is_read = i < n->n_input;
        value_use *u = use_of(s, is_read ? n->input[i] : n->output[i - n->n_input]);
        if (u == NULL) return tare__out_of_memory(s->err);
        if (!is_read) u->giver = n;
        if (is_read) u->reader = n;
        u->reader_count += is_read;
    }
    return TARE_OK;
}

static tare_status list_uses(product_search *s) {
    for (size_t i = 0; i < s->g->n_node; i++) TARE_TRY(list_node(s, s->g->node[i]));
    // The graph's outputs count as read.
    for (size_t i = 0; i < s->g->n_output; i++) {
        value_use *u = s->g->output[i]->name != NULL ? use_of(s, s->g->output[i]->name) : NULL;
        if (u != NULL) u->reader_count += 2;
    }
    return TARE_OK;
}

static const node_proto *only_reader(const product_search *s, const char *name) {
    const value_use *u = tare__map_get(&s->uses, name);
    return u != NULL && u->reader_count == 1 ? u->reader : NULL;
}

static const node_proto *giver_of(const product_search *s, const char *name) {
    const value_use *u = tare__map_get(&s->uses, name);
    return u != NULL ? u->giver : NULL;
}

static char *other_input(const node_proto *n, const char *name) {
    return n->input[strcmp(n->input[0], name) == 0 ? 1 : 0];
}

bool tare__onnx_find_product(const onnx_products *p, const node_proto *n, onnx_product *out) {
    const product_search *s = p->search;
    const bool is_conv = is_call(n, "ConvInteger", 4);
    if (!is_conv && !is_call(n, "MatMulInteger", 4)) return false;
    const node_proto *quantize = giver_of(s, n->input[0]);
    const node_proto *cast = only_reader(s, n->output[0]);
    if (!is_call(quantize, "DynamicQuantizeLinear", 1) || quantize->n_output != 3 ||
        !is_call(cast, "Cast", 1) || strcmp(n->input[0], quantize->output[0]) != 0 ||
        strcmp(n->input[2], quantize->output[2]) != 0)
        return false;
    const node_proto *scaled = only_reader(s, cast->output[0]);
    if (!is_call(scaled, "Mul", 2)) return false;
    const node_proto *scales = giver_of(s, other_input(scaled, cast->output[0]));
    if (!is_call(scales, "Mul", 2)) return false;
    const bool has_scale = strcmp(scales->input[0], quantize->output[1]) == 0 ||
                           strcmp(scales->input[1], quantize->output[1]) == 0;
    *out = (onnx_product){
        .becomes = is_conv ? "Conv" : "MatMul",
        .input = {n->input[0], quantize->output[1], n->input[2]},
        .weight = {n->input[1], other_input(scales, quantize->output[1]), n->input[3]},
        .weight_axis = is_conv ? 0 : -1,
        .absorbed = {cast, scaled},
        .output = scaled->output[0]};
    return has_scale;
}

tare_status tare__onnx_products_begin(const Onnx__GraphProto *g, arena *memory, onnx_products *out,
                                      tare_error *err) {
    product_search *s = tare__arena_alloc(memory, sizeof *s);
    *out = (onnx_products){.search = s};
    if (s == NULL) return tare__out_of_memory(err);
    *s = (product_search){.g = g, .memory = memory, .err = err};
    return list_uses(s);
}

void tare__onnx_products_end(onnx_products *p) {
    if (p->search != NULL) tare__map_release(&p->search->uses);
}
