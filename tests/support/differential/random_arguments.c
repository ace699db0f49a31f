// SPDX-License-Identifier: Apache-2.0
// Arguments by the names of their parameters: what a row calls "kernel_size" or "dim" means the
// same in all rows. Names that are not in the table below are left to their defaults.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/differential/random_graph.h"

static uint32_t draw(call_draft *d, uint32_t below) {
    return choose(d->g->choices, below);
}

static bool is_row(const call_draft *d, const char *start) {
    return tare__starts_with(d->id, start);
}

static bool give(value *out, value v) {
    *out = v;
    return true;
}

static bool give_list(call_draft *d, value_kind kind, const value *items, uint32_t count,
                      value *out) {
    *out = tare__value_sequence(&d->g->memory, kind, count);
    if (out->as.items == NULL && count > 0) return false;
    if (count > 0) memcpy(out->as.items, items, count * sizeof *items);
    return true;
}

static bool give_ints(call_draft *d, const int64_t *ints, uint32_t count, value *out) {
    value items[2 * TARE_MAX_DIMS];
    for (uint32_t i = 0; i < count; i++) items[i] = tare__int(ints[i]);
    return give_list(d, d->g->spelling == SPELL_FX ? VALUE_TUPLE : VALUE_LIST, items, count, out);
}

// --- tensors at hand ---

static bool is_real(const tare_tensor *t) {
    return t->q == NULL && tare__dtype(t->dtype)->is_float;
}

static bool takes_quantized(const call_draft *d) {
    return is_row(d, "quantized.") || is_row(d, "tare.") || is_row(d, "int_repr") ||
           strcmp(d->id, "dequantize") == 0;
}

static bool takes_plain_integers(const call_draft *d) {
    return is_row(d, "decomposed.dequantize") || is_row(d, "bitwise");
}

static bool is_dynamic(const call_draft *d) {
    return strstr(d->id, "_dynamic") != NULL;
}

static bool suits_first(const call_draft *d, const tare_tensor *t) {
    if (strcmp(d->id, "item") == 0) return t->count == 1;
    if (takes_plain_integers(d)) return t->q == NULL && !tare__dtype(t->dtype)->is_float;
    if (takes_quantized(d) && !is_dynamic(d)) return t->q != NULL;
    if (d->op->traits & OP_MOVES_DATA) return true;
    if (is_row(d, "mat") || is_row(d, "addmm")) return is_real(t) && t->ndim >= 2;
    if (d->dims > 0) return is_real(t) && (t->ndim == d->dims + 2 || t->ndim == d->dims + 1);
    return is_real(t);
}

static bool any_tensor(const call_draft *d, const tare_tensor *t) {
    (void)d;
    return t->ndim >= 0;
}

static bool is_alike(const call_draft *d, const tare_tensor *t) {
    return d->x != NULL && tare__same_shape(t, d->x) && (t->q != NULL) == (d->x->q != NULL);
}

static bool is_mask(const call_draft *d, const tare_tensor *t) {
    (void)d;
    return t->dtype == TARE_BOOL;
}

static bool give_picked(call_draft *d, bool (*fits)(const call_draft *d, const tare_tensor *t),
                        value *out) {
    const drawn_value *found = random_pick(d->g, fits, d);
    if (found == NULL) return false;
    if (d->x == NULL) d->x = found->value.as.tensor;
    *out = tare__node_value(found->node);
    return true;
}

// A literal, or a size that another node gives.
static bool make_plain_number(call_draft *d, value *out) {
    for (size_t i = d->g->count; i-- > 0;) {
        const value_kind kind = d->g->values[i].value.kind;
        if ((kind == VALUE_INT || kind == VALUE_FLOAT) && draw(d, 2) == 0)
            return give(out, tare__node_value(d->g->values[i].node));
    }
    return give(out, draw(d, 2) == 0 ? tare__float(2.75) : tare__int(3));
}

// A quantized tensor, if need be a new one.
static bool make_quantized(call_draft *d, value *out) {
    if (give_picked(d, suits_first, out)) return true;
    const op_info *quantize = tare__op_by_id("quantize_per_tensor", 0);
    return strcmp(d->id, quantize->id) != 0 && random_graph_call(d->g, quantize) &&
           give_picked(d, suits_first, out);
}

static bool find_sequence(call_draft *d, value *out) {
    for (size_t i = d->g->count; i-- > 0;) {
        const value_kind kind = d->g->values[i].value.kind;
        if (kind == VALUE_TUPLE || kind == VALUE_LIST)
            return give(out, tare__node_value(d->g->values[i].node));
    }
    return false;
}

static bool give_vector(call_draft *d, int64_t size, value *out) {
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, 1, &size), out);
}

static bool give_sequence(call_draft *d, value *out) {
    if (find_sequence(d, out)) return true;
    return random_graph_call(d->g, tare__op_by_id("chunk", 0)) && find_sequence(d, out);
}

// Tensors of one shape, and how they are quantized.
static bool make_tensors(call_draft *d, value *out) {
    value items[3];
    if (is_row(d, "meshgrid"))
        return give_vector(d, 2, &items[0]) && give_vector(d, 3, &items[1]) &&
               give_list(d, VALUE_LIST, items, 2, out);
    const bool is_coded = takes_quantized(d);
    if (is_coded ? !make_quantized(d, &items[0]) : !give_picked(d, suits_first, &items[0]))
        return false;
    const uint32_t count = 1 + draw(d, 3);
    for (uint32_t i = 1; i < count; i++)
        if (!give_picked(d, is_alike, &items[i])) return false;
    return give_list(d, VALUE_LIST, items, count, out);
}

static bool give_one_element(call_draft *d, value *out) {
    const int64_t shape[] = {1};
    if (draw(d, 2) == 0 && give_picked(d, suits_first, out)) return true;
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, 1, shape), out);
}

static bool make_first(call_draft *d, value *out) {
    static const tare_dtype dtypes[] = {TARE_INT8, TARE_UINT8, TARE_INT64, TARE_BOOL, TARE_INT32};
    if (is_row(d, "math_") || is_row(d, "sym_")) return make_plain_number(d, out);
    if (strcmp(d->id, "item") == 0) return give_one_element(d, out);
    if (strcmp(d->id, "tuple") == 0) return give_sequence(d, out);
    if (is_row(d, "trace"))
        return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, 2, (int64_t[]){3, 4}),
                               out);
    if (is_row(d, "addmv")) return give_vector(d, 2, out);
    if (is_row(d, "quantized.cat")) return make_tensors(d, out);
    if (is_row(d, "embedding"))
        return random_constant(d, NULL, random_indices(d->g, 2, (int64_t[]){2, 3}, 5), out);
    if (takes_quantized(d) && !is_dynamic(d) && draw(d, 8) != 7) return make_quantized(d, out);
    if (d->x == NULL && takes_plain_integers(d) && draw(d, 3) == 0) {
        const tare_dtype dtype = dtypes[draw(d, is_row(d, "bitwise") ? 5 : 2)];
        const tare_tensor *like = d->g->inputs[0];
        tare_tensor *t = random_tensor(d->g, dtype, like->ndim, like->shape);
        d->x = t;
        return random_constant(d, NULL, t, out);
    }
    const bool is_odd = choose_rarely(d->g->choices, 8);
    return give_picked(d, is_odd ? any_tensor : suits_first, out) ||
           (!is_odd && give_picked(d, any_tensor, out));
}

// Broadcasts with x: of its shape with some sizes 1, or its last dimensions alone.
static bool make_broadcast(call_draft *d, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    const int skip = d->x->ndim > 0 ? (int)draw(d, (uint32_t)d->x->ndim) : 0;
    for (int i = skip; i < d->x->ndim; i++)
        shape[i - skip] = draw(d, 3) == 0 || i == 0 ? 1 : d->x->shape[i];
    const tare_dtype dtype = d->x->q != NULL ? TARE_FLOAT32 : d->x->dtype;
    return random_constant(d, NULL, random_tensor(d->g, dtype, d->x->ndim - skip, shape), out);
}

static bool make_number(call_draft *d, value *out) {
    static const double numbers[] = {0.5, 1, 2, -0.25, 0.1, 1.5, 0.015625, 3.7, -1, 0.01};
    if (draw(d, 3) == 0) return make_plain_number(d, out);
    if (draw(d, 3) == 0) return give(out, tare__int((int64_t)draw(d, 6) - 1));
    return give(out, tare__float(numbers[draw(d, sizeof numbers / sizeof *numbers)]));
}

static bool make_positive(call_draft *d, value *out) {
    static const double numbers[] = {0.5, 1, 2, 0.1, 0.75, 1.25, 0.05, 3};
    return give(out, tare__float(numbers[draw(d, sizeof numbers / sizeof *numbers)]));
}

// A matrix to multiply x by: [.., K] x [K, n].
static bool make_matrix(call_draft *d, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = d->x != NULL ? d->x->ndim : 0;
    if (ndim == 0) return false;
    memcpy(shape, d->x->shape, sizeof shape);
    if (ndim < 2) return make_broadcast(d, out);
    shape[ndim - 2] = d->x->shape[ndim - 1];
    shape[ndim - 1] = 1 + draw(d, 12);
    const int skip = ndim > 2 && draw(d, 2) == 0 ? ndim - 2 : 0;
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, ndim - skip, shape + skip),
                           out);
}

// The factors of addmm, whose product has x's shape.
static bool make_left(call_draft *d, value *out) {
    const int64_t shape[] = {d->x != NULL && d->x->ndim == 2 ? d->x->shape[0] : 2, 3};
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, 2, shape), out);
}

static bool make_right(call_draft *d, value *out) {
    const int64_t shape[] = {3, d->x != NULL && d->x->ndim == 2 ? d->x->shape[1] : 2};
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, 2, shape), out);
}

// The vector of addmv.
static bool make_factors(call_draft *d, value *out) {
    return give_vector(d, 3, out);
}

static bool make_boundaries(call_draft *d, value *out) {
    const int64_t shape[] = {5};
    tare_tensor *t = random_tensor(d->g, TARE_FLOAT32, 1, shape);
    for (int64_t i = 0; t != NULL && i < t->count; i++) tare__tensor_set(t, i, (double)i / 2 - 1);
    return random_constant(d, NULL, t, out);
}

// Places in x, an image or a volume.
static bool make_grid(call_draft *d, value *out) {
    const int ndim = d->x != NULL ? d->x->ndim : 4;
    const int64_t shape[] = {d->x != NULL && ndim > 0 ? d->x->shape[0] : 1, 2, 3, 2, 3};
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, ndim < 5 ? 4 : 5, shape),
                           out);
}

static bool make_other(call_draft *d, value *out) {
    if (d->x == NULL) return make_number(d, out);
    if (strstr(d->id, "pow") != NULL && draw(d, 3) != 0)
        return give(out, tare__int(1 + (int64_t)draw(d, 3)));
    if (is_row(d, "mat") && draw(d, 3) != 0) return make_matrix(d, out);
    switch (draw(d, 6)) {
    case 0:
        return d->x->q == NULL && make_broadcast(d, out);
    case 1:
        return make_number(d, out);
    case 2:
        return give_picked(d, any_tensor, out);
    default:
        return give_picked(d, is_alike, out);
    }
}

static bool make_alike(call_draft *d, value *out) {
    return d->x != NULL && give_picked(d, is_alike, out);
}

static bool make_vector(call_draft *d, value *out) {
    const int64_t shape[] = {1 + draw(d, 5)};
    return random_constant(d, NULL, random_tensor(d->g, TARE_FLOAT32, 1, shape), out);
}

static bool make_mask(call_draft *d, value *out) {
    if (is_row(d, "assert")) return give(out, tare__bool(true));
    if (draw(d, 2) == 0 && give_picked(d, is_mask, out)) return true;
    const tare_tensor *like = d->x != NULL ? d->x : d->g->inputs[0];
    tare_tensor *t = random_tensor(d->g, TARE_BOOL, like->ndim, like->shape);
    if (d->x == NULL) d->x = t;
    return random_constant(d, NULL, t, out);
}

// --- dimensions and sizes ---

static bool make_dim(call_draft *d, value *out) {
    const int ndim = d->x != NULL ? d->x->ndim : 4;
    d->dim = ndim > 0 ? (int)draw(d, (uint32_t)ndim) : 0;
    return give(out, tare__int(draw(d, 3) == 0 ? d->dim - ndim : d->dim));
}

static bool make_first_dim(call_draft *d, value *out) {
    return give_ints(d, (int64_t[]){0}, 1, out);
}

// Of movedim; elsewhere a tensor to put.
static bool make_dim_or_source(call_draft *d, value *out) {
    return is_row(d, "movedim") ? make_dim(d, out) : give_picked(d, is_alike, out);
}

static bool make_new_dim(call_draft *d, value *out) {
    const int ndim = d->x != NULL ? d->x->ndim : 3;
    return give(out, tare__int((int64_t)draw(d, (uint32_t)ndim + 1)));
}

static bool reduces(const call_draft *d) {
    const size_t keepdim = tare__op_param_index(d->op, "keepdim");
    return keepdim < tare__op_param_count(d->op);
}

// Of reductions: one, several, or those at the end.
static bool make_dims_or_dim(call_draft *d, value *out) {
    int64_t dims[TARE_MAX_DIMS];
    uint32_t count = 0;
    if (strcmp(d->id, "unsqueeze") == 0) return make_new_dim(d, out);
    if (!reduces(d) || d->x == NULL || draw(d, 2) == 0) return make_dim(d, out);
    for (int i = d->x->ndim - 1; i > 0 && count < 2; i--)
        if (draw(d, 3) != 2) dims[count++] = draw(d, 2) == 0 ? i : i - d->x->ndim;
    return give_ints(d, dims, count, out);
}

static int64_t size_at_dim(const call_draft *d) {
    return d->x != NULL && d->dim < d->x->ndim ? d->x->shape[d->dim] : 1;
}

static bool make_place(call_draft *d, value *out) { // within the dimension
    const int64_t size = size_at_dim(d), at = (int64_t)draw(d, size > 255 ? 255 : (uint32_t)size);
    return give(out, tare__int(draw(d, 4) == 0 ? at - size : at));
}

static bool make_end(call_draft *d, value *out) {
    if (d->x == NULL) return give(out, tare__int(1 + (int64_t)draw(d, 9)));
    if (draw(d, 3) == 0) return give(out, tare__int(INT64_MAX));
    return give(out, tare__int(1 + (int64_t)draw(d, (uint32_t)size_at_dim(d))));
}

static bool make_count(call_draft *d, value *out) {
    return give(out, tare__int(1 + (int64_t)draw(d, 3)));
}

static bool make_small(call_draft *d, value *out) {
    return give(out, tare__int((int64_t)draw(d, 5) - 2));
}

// One number for all spatial dimensions, or a list.
static bool make_window(call_draft *d, int64_t least, uint32_t ways, value *out) {
    int64_t sizes[3];
    const bool is_one = draw(d, 2) == 0 && d->g->spelling != SPELL_ATEN;
    for (int i = 0; i < 3; i++) sizes[i] = least + (int64_t)draw(d, ways);
    if (is_one) return give(out, tare__int(sizes[0]));
    return give_ints(d, sizes, (uint32_t)(d->dims > 0 ? d->dims : 2), out);
}

static bool make_kernel(call_draft *d, value *out) {
    return make_window(d, 1, 3, out);
}

static bool make_stride(call_draft *d, value *out) {
    return make_window(d, 1, draw(d, 2) == 0 ? 1 : 3, out);
}

static bool pads(const call_draft *d) {
    return is_row(d, "pad") || is_row(d, "zero_pad");
}

static bool make_padding(call_draft *d, value *out) {
    static const char *const words[] = {"same", "valid"};
    int64_t sizes[6];
    const bool is_conv = is_row(d, "conv") && !is_row(d, "conv_transpose");
    if (is_conv && choose_rarely(d->g->choices, 6))
        return give(out, tare__string(words[draw(d, 2)]));
    if (!pads(d)) return make_window(d, 0, 2, out);
    const uint32_t pairs = d->dims > 0 ? (uint32_t)d->dims : 1 + draw(d, 3);
    for (uint32_t i = 0; i < 2 * pairs; i++) sizes[i] = (int64_t)draw(d, 3);
    return give_ints(d, sizes, 2 * pairs, out);
}

static bool make_dilation(call_draft *d, value *out) {
    return make_window(d, 1, 2, out);
}

static bool make_output_padding(call_draft *d, value *out) {
    return make_window(d, 0, draw(d, 2) == 0 ? 1 : 2, out);
}

static bool make_groups(call_draft *d, value *out) {
    if (!is_row(d, "conv") && !is_row(d, "integer"))
        return random_groups(d) && give(out, tare__int(d->groups));
    return give(out, tare__int(d->groups));
}

static bool make_output_size(call_draft *d, value *out) {
    return make_window(d, 1, 7, out);
}

// Of a view: the samples stay apart, and the rest is joined, cut or kept.
static bool make_shape(call_draft *d, value *out) {
    int64_t sizes[TARE_MAX_DIMS + 2];
    const tare_tensor *x = d->x;
    uint32_t count = 0;
    if (x == NULL || x->ndim == 0) return give_ints(d, (int64_t[]){1}, 1, out);
    const int joined = 1 + (int)draw(d, (uint32_t)x->ndim);
    sizes[count++] = draw(d, 3) == 0 ? x->shape[0] : -1;
    const bool is_known = sizes[0] != -1;
    for (int i = 1; i < joined && i < x->ndim; i++) sizes[count++] = x->shape[i];
    if (joined >= x->ndim) return give_ints(d, sizes, count, out);
    int64_t rest = 1;
    for (int i = joined; i < x->ndim; i++) rest *= x->shape[i];
    const bool is_cut = rest % 2 == 0 && draw(d, 2) == 0;
    if (is_cut) sizes[count++] = 2;
    sizes[count++] = is_known && draw(d, 2) == 0 ? -1 : is_cut ? rest / 2 : rest;
    return give_ints(d, sizes, count, out);
}

static bool make_size(call_draft *d, value *out) {
    int64_t sizes[TARE_MAX_DIMS];
    const tare_tensor *x = d->x;
    if (strstr(d->id, "interpolate") != NULL && draw(d, 2) == 0) return give(out, tare__none());
    d->has_size = true;
    if (is_row(d, "as_strided") && x != NULL) return give_ints(d, x->shape, (uint32_t)x->ndim, out);
    if (is_row(d, "view") || is_row(d, "reshape")) return make_shape(d, out);
    if (is_row(d, "interpolate") || is_row(d, "tare.interpolate"))
        return give_ints(d, (int64_t[]){1 + draw(d, 9), 1 + draw(d, 9), 2},
                         x != NULL && x->ndim > 2 ? (uint32_t)x->ndim - 2 : 2, out);
    if (is_row(d, "local_response")) return make_count(d, out);
    if (x == NULL || is_row(d, "new_") || is_row(d, "zeros") || is_row(d, "ones"))
        return give_ints(d, (int64_t[]){1 + draw(d, 4), 1 + draw(d, 4)}, 1 + draw(d, 2), out);
    for (int i = 0; i < x->ndim; i++) // expand, as_strided
        sizes[i] = x->shape[i] == 1 ? 1 + draw(d, 3) : draw(d, 2) == 0 ? -1 : x->shape[i];
    return give_ints(d, sizes, (uint32_t)x->ndim, out);
}

static bool make_order(call_draft *d, value *out) { // of all dimensions
    int64_t dims[TARE_MAX_DIMS];
    const int ndim = d->x != NULL ? d->x->ndim : 0;
    for (int i = 0; i < ndim; i++) dims[i] = i;
    if (is_row(d, "flip") || is_row(d, "roll")) return give_ints(d, (int64_t[]){ndim - 1}, 1, out);
    for (int i = ndim - 1; i > 0; i--) {
        const int j = (int)draw(d, (uint32_t)i + 1);
        const int64_t kept = dims[i];
        dims[i] = dims[j];
        dims[j] = kept;
    }
    return give_ints(d, dims, (uint32_t)ndim, out);
}

static bool make_repeats(call_draft *d, value *out) {
    int64_t counts[TARE_MAX_DIMS];
    const int ndim = d->x != NULL ? d->x->ndim : 1;
    if (is_row(d, "repeat_interleave")) return make_count(d, out);
    for (int i = 0; i < ndim; i++) counts[i] = i > 0 && draw(d, 3) == 0 ? 2 : 1;
    return give_ints(d, counts, (uint32_t)ndim, out);
}

static bool make_strides(call_draft *d, value *out) {
    int64_t steps[TARE_MAX_DIMS] = {0}, step = 1;
    if (!is_row(d, "as_strided")) return make_stride(d, out);
    for (int i = d->x->ndim - 1; i >= 0; i--) {
        steps[i] = step;
        step *= d->x->shape[i];
    }
    return give_ints(d, steps, (uint32_t)d->x->ndim, out);
}

static bool make_unflattened(call_draft *d, value *out) {
    const int64_t size = size_at_dim(d);
    return give_ints(d, (int64_t[]){size % 2 == 0 ? 2 : 1, -1}, 2, out);
}

static bool make_splits(call_draft *d, value *out) {
    const int64_t size = size_at_dim(d);
    if (size > 1 && draw(d, 2) == 0) return give_ints(d, (int64_t[]){1, size - 1}, 2, out);
    return give(out, tare__int((size + 1) / 2));
}

static bool make_length(call_draft *d, value *out) {
    return give(out, tare__int(1 + (int64_t)draw(d, 2)));
}

static bool make_normalized(call_draft *d, value *out) {
    if (d->x == NULL || d->x->ndim == 0) return false;
    const int ndim = d->x->ndim;
    d->normalized = ndim > 2 && draw(d, 3) == 0 ? 2 : 1;
    return give_ints(d, d->x->shape + ndim - d->normalized, (uint32_t)d->normalized, out);
}

// --- indices ---

static bool make_index(call_draft *d, value *out) {
    int64_t shape[TARE_MAX_DIMS] = {1 + (int64_t)draw(d, 4)};
    int ndim = 1;
    if (strcmp(d->id, "getitem") == 0 || is_row(d, "select")) return make_place(d, out);
    if (is_row(d, "index_add") || is_row(d, "index_copy"))
        shape[0] = size_at_dim(d);
    else if (!is_row(d, "index_select") && d->x != NULL) { // gather and scatter
        ndim = d->x->ndim;
        memcpy(shape, d->x->shape, sizeof shape);
        if (d->dim < ndim && is_row(d, "gather")) shape[d->dim] = 1 + draw(d, 4);
    }
    return random_constant(d, NULL, random_indices(d->g, ndim, shape, size_at_dim(d)), out);
}

static bool make_indices(call_draft *d, value *out) {
    value items[TARE_MAX_DIMS];
    const int64_t shape[] = {1 + (int64_t)draw(d, 3)};
    const int ndim = d->x != NULL ? d->x->ndim : 1;
    const int at = (int)draw(d, (uint32_t)ndim);
    for (int i = 0; i < at; i++) items[i] = tare__none();
    if (!random_constant(d, NULL,
                         random_indices(d->g, 1, shape, d->x != NULL ? d->x->shape[at] : 1),
                         &items[at]))
        return false;
    return give_list(d, VALUE_LIST, items, (uint32_t)at + 1, out);
}

static bool give_floats(call_draft *d, const char *name, int ndim, const int64_t *shape,
                        value *out) {
    return random_constant(d, name, random_tensor(d->g, TARE_FLOAT32, ndim, shape), out);
}

static bool make_source(call_draft *d, value *out) {
    if (strstr(d->id, "attention") != NULL) return give_picked(d, is_alike, out);
    if (is_row(d, "assert")) return give(out, tare__string("a message"));
    if (is_row(d, "diagonal_scatter") && d->x != NULL && d->x->ndim == 2) {
        const int64_t count = d->x->shape[0] < d->x->shape[1] ? d->x->shape[0] : d->x->shape[1];
        return give_floats(d, NULL, 1, &count, out);
    }
    if (is_row(d, "slice_scatter") || is_row(d, "copy")) return give_picked(d, is_alike, out);
    if (is_row(d, "select_scatter") && d->x != NULL && d->x->ndim > 1)
        return give_floats(d, NULL, d->x->ndim - 1, d->x->shape + 1, out);
    return draw(d, 2) == 0 ? make_number(d, out) : give_picked(d, is_alike, out);
}

// --- quantization parameters ---

static int64_t channels_at_axis(const call_draft *d) {
    return d->x != NULL && d->x->ndim > 1 ? d->x->shape[1] : 1;
}

static bool make_axis(call_draft *d, value *out) {
    (void)d;
    return give(out, tare__int(1));
}

static bool is_per_token(const call_draft *d) {
    return strstr(d->id, "per_token") != NULL;
}

// Scales and zero points of channels, of tokens, or of groups of them.
static int shape_of_params(const call_draft *d, int64_t *shape) {
    if (d->x == NULL || (!is_per_token(d) && strstr(d->id, "group") == NULL)) {
        shape[0] = channels_at_axis(d);
        return 1;
    }
    memcpy(shape, d->x->shape, sizeof d->x->shape);
    if (d->x->ndim > 0) shape[d->x->ndim - 1] = 1;
    return d->x->ndim;
}

static bool make_scales(call_draft *d, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = shape_of_params(d, shape);
    tare_tensor *t = random_tensor(d->g, TARE_FLOAT32, ndim, shape);
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__tensor_set(t, i, fabs(tare__tensor_get(t, i)) / 16 + 0.01);
    return random_constant(d, NULL, t, out);
}

static bool make_zero_points(call_draft *d, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = shape_of_params(d, shape);
    const tare_dtype dtype = is_row(d, "fake_quantize") ? TARE_INT32 : TARE_INT64;
    tare_tensor *t = NULL;
    if (tare_tensor_create(dtype, ndim, shape, &t, d->g->err) != TARE_OK) return false;
    for (int64_t i = 0; i < t->count && draw(d, 2) == 0; i++)
        tare__tensor_set_int(t, i, (int64_t)draw(d, 100));
    return random_constant(d, NULL, t, out);
}

static bool make_scale(call_draft *d, value *out) {
    if (is_row(d, "fake_quantize_per_channel")) return make_scales(d, out);
    static const double scales[] = {0.05, 0.0625, 0.013, 0.25, 0.5, 0.0078125, 0.1};
    return give(out, tare__float(scales[draw(d, sizeof scales / sizeof *scales)]));
}

static bool is_signed_integers(const call_draft *d) {
    if (d->x != NULL && d->x->q != NULL) return d->x->dtype == TARE_QINT8;
    if (d->x != NULL && !tare__dtype(d->x->dtype)->is_float) return d->x->dtype != TARE_UINT8;
    return d->is_signed;
}

static bool make_zero_point(call_draft *d, value *out) {
    if (is_row(d, "fake_quantize_per_channel")) return make_zero_points(d, out);
    const int64_t at = (int64_t)draw(d, 8) * 16;
    return give(out, tare__int(is_signed_integers(d) ? at - 64 : at));
}

static bool make_quant_min(call_draft *d, value *out) {
    return give(out, tare__int(is_signed_integers(d) ? -128 : 0));
}

static bool make_quant_max(call_draft *d, value *out) {
    return give(out, tare__int(is_signed_integers(d) ? 127 : 255));
}

static bool make_dtype(call_draft *d, value *out) {
    static const tare_dtype plain[] = {TARE_FLOAT32, TARE_INT64,   TARE_INT32,    TARE_BOOL,
                                       TARE_FLOAT16, TARE_FLOAT64, TARE_BFLOAT16, TARE_UINT8};
    if (is_row(d, "quantize_per"))
        return give(out, tare__dtype_value(d->is_signed ? TARE_QINT8 : TARE_QUINT8));
    if (is_row(d, "decomposed.") && strcmp(d->id, "decomposed.convert_element_type") != 0)
        return give(out, tare__dtype_value(is_signed_integers(d) ? TARE_INT8 : TARE_UINT8));
    if (is_row(d, "to") || is_row(d, "decomposed."))
        return give(out, tare__dtype_value(plain[draw(d, sizeof plain / sizeof *plain)]));
    return give(out, draw(d, 2) == 0 ? tare__none() : tare__dtype_value(TARE_FLOAT32));
}

// --- words and switches ---

static bool make_bool(call_draft *d, value *out) {
    return give(out, tare__bool(draw(d, 2) == 1));
}

static bool make_true(call_draft *d, value *out) {
    (void)d;
    return give(out, tare__bool(true));
}

static bool make_one(call_draft *d, value *out) {
    (void)d;
    return give(out, tare__int(1));
}

static bool make_zero(call_draft *d, value *out) {
    (void)d;
    return give(out, tare__float(0));
}

static bool make_false(call_draft *d, value *out) {
    (void)d;
    return give(out, tare__bool(false));
}

static bool make_mode(call_draft *d, value *out) {
    static const char *const pads_by[] = {"constant", "reflect", "replicate", "circular"};
    static const char *const sizes_by[] = {"nearest", "bilinear", "bicubic", "linear", "trilinear"};
    static const char *const joins_by[] = {"mean", "sum", "max"};
    if (pads(d)) return give(out, tare__string(pads_by[draw(d, 4)]));
    if (is_row(d, "embedding")) return give(out, tare__string(joins_by[draw(d, 3)]));
    return give(out, tare__string(sizes_by[draw(d, 5)]));
}

static bool make_factor(call_draft *d, value *out) {
    if (d->has_size) return give(out, tare__none());
    return give(out, draw(d, 2) == 0 ? tare__int(2) : tare__float(1.5));
}

static bool make_approximation(call_draft *d, value *out) {
    return give(out, tare__string(draw(d, 2) == 0 ? "none" : "tanh"));
}

static bool make_rounding(call_draft *d, value *out) {
    return give(out, tare__string(draw(d, 2) == 0 ? "floor" : "trunc"));
}

static bool make_reduce(call_draft *d, value *out) {
    static const char *const sums[] = {"sum", "prod", "amax", "amin", "mean"};
    static const char *const plain[] = {"add", "multiply"};
    return give(out,
                tare__string(is_row(d, "scatter_reduce") ? sums[draw(d, 5)] : plain[draw(d, 2)]));
}

static bool make_equation(call_draft *d, value *out) {
    static const char *const equations[] = {"ij,jk->ik",     "bij,bjk->bik",   "...ij,...kj->...ik",
                                            "bchw,bchw->bc", "bhwc,bkc->bhwk", "...i,...i->...",
                                            "...i->...",     "...ij->...ji"};
    return give(out, tare__string(equations[draw(d, sizeof equations / sizeof *equations)]));
}

static bool make_padding_mode(call_draft *d, value *out) {
    static const char *const modes[] = {"zeros", "zeros", "reflect", "replicate", "circular"};
    return give(out, tare__string(modes[draw(d, 5)]));
}

static bool make_attribute(call_draft *d, value *out) {
    static const char *const names[] = {"shape", "ndim", "dtype", "device"};
    return give(out, tare__string(names[draw(d, 4)]));
}

static bool make_eps(call_draft *d, value *out) {
    return give(out, tare__float(draw(d, 2) == 0 ? 1e-5 : 0.001));
}

// --- constructors' values ---

static bool make_last_size(call_draft *d, value *out) {
    if (d->x == NULL || d->x->ndim == 0) return false;
    return give(out, tare__int(d->x->shape[d->x->ndim - 1]));
}

static bool make_channels(call_draft *d, value *out) {
    return give(out, tare__int(random_channels(d)));
}

static bool make_outputs(call_draft *d, value *out) {
    if (strstr(d->id, "conv") == NULL) return give(out, tare__int(1 + (int64_t)draw(d, 20)));
    // Its groups divide them.
    if (!random_groups(d)) return false;
    return give(out, tare__int(d->groups * (1 + (int64_t)draw(d, d->groups > 4 ? 2 : 10))));
}

static bool make_five(call_draft *d, value *out) {
    (void)d;
    return give(out, tare__int(5));
}

// --- the table ---

typedef struct argument_row {
    const char *names; // '|' between
    bool is_needed;
    bool (*make)(call_draft *d, value *out);
} argument_row;

static const argument_row rows[] = {
    {"input|self|x|X|a|qx|qa|query|iterable", true, make_first},
    {"other|qb|exponent", true, make_other},
    {"mat1|batch1|mat", true, make_left},
    {"mat2|batch2", true, make_right},
    {"key|qaccum|tensor1|tensor2|target", true, make_alike},
    {"vec2", true, make_vector},
    {"condition|mask", true, make_mask},
    {"attn_mask", false, make_mask},
    {"tensors|operands|args|inputs", true, make_tensors},
    {"dim", false, make_dims_or_dim},
    {"axis", true, make_axis},
    {"dim0|dim1|start_dim", true, make_dim},
    {"dims", true, make_order},
    {"start|step|end_dim", false, make_place},
    {"end", true, make_end},
    {"vec", true, make_factors},
    {"source|destination", true, make_dim_or_source},
    {"boundaries", true, make_boundaries},
    {"grid", true, make_grid},
    {"dims_self|dims_other", true, make_first_dim},
    {"N|C|HxW", true, make_one},
    {"group", true, make_one},
    {"length", true, make_length},
    {"index", true, make_index},
    {"indices", true, make_indices},
    {"values|src|value|message", true, make_source},
    {"fill_value|min|max|min_val|max_val|threshold", true, make_number},
    {"alpha|beta|negative_slope|lambd|ord", false, make_positive},
    {"kernel_size", true, make_kernel},
    {"stride", false, make_strides},
    {"padding", false, make_padding},
    {"pad", true, make_padding},
    {"dilation", false, make_dilation},
    {"output_padding", false, make_output_padding},
    {"groups|num_groups", true, make_groups},
    {"output_size", true, make_output_size},
    {"size", true, make_size},
    {"shape", true, make_shape},
    {"sizes|unflattened_size", true, make_unflattened},
    {"split_size_or_sections", true, make_splits},
    {"chunks|n|m|k|upscale_factor|downscale_factor|steps", true, make_count},
    {"group_size", true, make_last_size},
    {"repeats", true, make_repeats},
    {"shifts", true, make_small},
    {"diagonal", false, make_small},
    {"correction|divisor_override", false, make_count},
    {"normalized_shape", true, make_normalized},
    {"weight", true, random_weight},
    {"bias", false, random_bias},
    {"running_mean|mean", true, random_mean},
    {"running_var|var", true, random_variance},
    {"scale|output_scale", true, make_scale},
    {"zero_point|output_zero_point", true, make_zero_point},
    {"scales", true, make_scales},
    {"zero_points", true, make_zero_points},
    {"quant_min", true, make_quant_min},
    {"quant_max", true, make_quant_max},
    {"dtype", true, make_dtype},
    {"keepdim|ceil_mode|count_include_pad|is_causal|descending|largest|unbiased|align_corners|"
     "symmetric|inplace|include_self|accumulate|elementwise_affine|reduce_range",
     false, make_bool},
    {"training|transposed|use_input_stats|train|bidirectional", true, make_false},
    {"has_biases|batch_first", true, make_true},
    {"num_layers", true, make_one},
    {"dropout", true, make_zero},
    {"hx", true, random_recurrent_states},
    {"params", true, random_recurrent_weights},
    {"w_ih", true, random_cell_weight_ih},
    {"w_hh", true, random_cell_weight_hh},
    {"b_ih|b_hh", true, random_cell_bias},
    {"mode", false, make_mode},
    {"scale_factor", true, make_factor},
    {"approximate", false, make_approximation},
    {"rounding_mode", false, make_rounding},
    {"reduce", false, make_reduce},
    {"equation", true, make_equation},
    {"padding_mode", false, make_padding_mode},
    {"name", true, make_attribute},
    {"eps", true, make_eps},
    {"in_features", true, make_last_size},
    {"in_channels|num_features|num_channels", true, make_channels},
    {"out_features|out_channels", true, make_outputs},
    {"num_parameters", false, make_channels},
    {"num_embeddings", true, make_five},
    {"embedding_dim", true, make_outputs},
};

static const argument_row *find_row(const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *at = rows[i].names; *at != '\0';) {
            const size_t size = strcspn(at, "|");
            if (size == length && memcmp(at, name, length) == 0) return &rows[i];
            at += size + (at[size] == '|' ? 1 : 0);
        }
    return NULL;
}

bool random_argument_is_known(const char *name, bool *is_needed) {
    const argument_row *row = find_row(name);
    *is_needed = row != NULL && row->is_needed;
    return row != NULL;
}

bool random_argument(call_draft *d, const char *name, value *out) {
    const argument_row *row = find_row(name);
    return row != NULL && row->make(d, out);
}
