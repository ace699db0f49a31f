// SPDX-License-Identifier: Apache-2.0
// Indexing, slicing and splitting; and queries of shapes.
#include <string.h>

#include "ops/families/families.h"
#include "ops/families/gather.h"
#include "ops/families/index/index.h"
#include "ops/rules.h"

// --- indexing with ints, slices, None and Ellipsis ---

typedef struct index_state {
    gather in, *out; // dimensions go from `in` to `out`
    int next;        // of in
} index_state;

static void append_dim(index_state *s, int64_t size, int64_t stride) {
    gather *g = s->out;
    g->size[g->ndim] = size;
    g->stride[g->ndim++] = stride;
}

// Reads a bound of a slice as in Python: it may be absent or negative, and is clamped.
static tare_status bound_of(op_call *call, const value *v, int64_t size, int64_t otherwise,
                            int64_t *out) {
    *out = otherwise;
    if (v->kind == VALUE_NONE) return TARE_OK;
    if (!tare__call_integer(v, out)) return tare__call_fail(call, "a slice must have ints");
    if (*out < 0) *out += size;
    *out = *out < 0 ? 0 : *out > size ? size : *out;
    return TARE_OK;
}

// The elements start, start + step, .. of a dimension; a step beyond its end is reduced to it.
typedef struct cut {
    int64_t start, step, count;
} cut;

static tare_status cut_of(op_call *call, const value *slice, int64_t size, cut *out) {
    int64_t stop, step = 1;
    TARE_TRY(bound_of(call, &slice->as.items[0], size, 0, &out->start));
    TARE_TRY(bound_of(call, &slice->as.items[1], size, size, &stop));
    const value *given = &slice->as.items[2];
    if ((given->kind != VALUE_NONE && !tare__call_integer(given, &step)) || step < 1)
        return tare__call_fail(call, "a slice's step must be a positive int");
    out->step = step > size && size > 0 ? size : step;
    out->count = stop > out->start ? (stop - out->start - 1) / step + 1 : 0;
    return TARE_OK;
}

tare_status tare__slice_of(op_call *call, const value *slice, int64_t size, int64_t *start,
                           int64_t *step, int64_t *count) {
    cut c;
    TARE_TRY(cut_of(call, slice, size, &c));
    *start = c.start;
    *step = c.step;
    *count = c.count;
    return TARE_OK;
}

static tare_status apply_slice(op_call *call, index_state *s, const value *slice) {
    const int64_t stride = s->in.stride[s->next];
    cut c;
    TARE_TRY(cut_of(call, slice, s->in.size[s->next], &c));
    s->out->offset += c.start * stride;
    append_dim(s, c.count, c.count > 1 ? stride * c.step : stride);
    s->next++;
    return TARE_OK;
}

static tare_status apply_int(op_call *call, index_state *s, int64_t i) {
    const int64_t size = s->in.size[s->next];
    if (i < -size || i >= size)
        return tare__call_fail(call, "index %lld is outside of a dimension of %lld", (long long)i,
                               (long long)size);
    s->out->offset += (i < 0 ? i + size : i) * s->in.stride[s->next++];
    return TARE_OK;
}

static void keep_dims(index_state *s, int count) {
    for (int i = 0; i < count; i++, s->next++)
        append_dim(s, s->in.size[s->next], s->in.stride[s->next]);
}

static tare_status apply_index(op_call *call, index_state *s, const value *v, int consumed) {
    int64_t i;
    if (v->kind == VALUE_NONE)
        append_dim(s, 1, 0);
    else if (v->kind == VALUE_ELLIPSIS)
        keep_dims(s, s->in.ndim - consumed);
    else if (s->next >= s->in.ndim)
        return tare__call_fail(call, "too many indices");
    else if (v->kind == VALUE_SLICE)
        return apply_slice(call, s, v);
    else if (v->kind != VALUE_BOOL && tare__call_integer(v, &i))
        return apply_int(call, s, i);
    else
        return tare__call_fail(call, "an index must be an int, a slice, None or Ellipsis");
    return TARE_OK;
}

static tare_status plan_index(op_call *call, gather *g) {
    const value *index = call->param[1];
    if (index == NULL) return tare__call_fail(call, "the index is missing");
    const bool is_list = index->kind == VALUE_TUPLE || index->kind == VALUE_LIST;
    const value *items = is_list ? index->as.items : index;
    const uint32_t count = is_list ? index->count : 1;
    TARE_TRY(tare__gather_begin(call, g));
    index_state s = {.in = *g, .out = g};
    g->ndim = 0;
    int consumed = 0, made = 0, open = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].kind == VALUE_NONE)
            made++;
        else if (items[i].kind == VALUE_ELLIPSIS)
            open++;
        else
            consumed++;
    }
    if (open > 1) return tare__call_fail(call, "an index has at most one Ellipsis");
    if (s.in.ndim + made > TARE_MAX_DIMS) return tare__call_fail(call, "too many dimensions");
    for (uint32_t i = 0; i < count; i++) TARE_TRY(apply_index(call, &s, &items[i], consumed));
    keep_dims(&s, s.in.ndim - s.next);
    g->out_ndim = g->ndim;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
    return TARE_OK;
}

static tare_status share_item(op_call *call, const value *item) {
    return tare__value_share(call->memory, item, &call->result, call->err);
}

// Computes sequence[start:stop:step] of a list or tuple.
static tare_status slice_of(op_call *call, const value *sequence, const value *slice) {
    cut c;
    TARE_TRY(cut_of(call, slice, sequence->count, &c));
    const value taken = tare__value_sequence(call->memory, sequence->kind, (uint32_t)c.count);
    if (taken.as.items == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < c.count; i++)
        taken.as.items[i] = sequence->as.items[c.start + i * c.step];
    return share_item(call, &taken);
}

static tare_status item_of(op_call *call, const value *container, const value *index) {
    if (container->kind == VALUE_DICT) {
        for (uint32_t i = 0; i + 1 < container->count; i += 2)
            if (tare__value_equal(&container->as.items[i], index))
                return share_item(call, &container->as.items[i + 1]);
        return tare__call_fail(call, "the dict has no such key");
    }
    if (index->kind == VALUE_SLICE) return slice_of(call, container, index);
    int64_t i;
    if (!tare__call_integer(index, &i) || i < -(int64_t)container->count ||
        i >= (int64_t)container->count)
        return tare__call_fail(call, "no such element in a sequence of %u", container->count);
    return share_item(call, &container->as.items[i < 0 ? i + container->count : i]);
}

static tare_status getitem_shape(op_call *call) {
    const value *from = call->param[0];
    if (from == NULL || call->param[1] == NULL) return tare__call_fail(call, "needs two arguments");
    if (from->kind == VALUE_TENSOR && tare__index_has_tensor(call->param[1]))
        return tare__index_shape(call);
    if (from->kind == VALUE_TENSOR) return tare__gather_shape(call, plan_index);
    if (from->kind == VALUE_TUPLE || from->kind == VALUE_LIST || from->kind == VALUE_DICT)
        return item_of(call, from, call->param[1]);
    return tare__call_fail(call, "only tensors, sequences and dicts have elements");
}

static tare_status getitem_reference(op_call *call) {
    if (tare__index_has_tensor(call->param[1])) return tare__index_reference(call);
    return tare__gather_reference(call, plan_index);
}

static tare_status getitem_parts(op_call *call, call_parts *out) {
    return tare__index_has_tensor(call->param[1]) ? tare__index_parts(call, out) : TARE_OK;
}

static tare_status getitem_box(op_call *call, size_t index, gather *out) {
    (void)index;
    *out = (gather){0};
    if (tare__call_tensor(call, 0) == NULL || tare__index_has_tensor(call->param[1]))
        return TARE_OK;
    return plan_index(call, out);
}

// tuple([a, b]): the same values, nothing is computed.
static tare_status tuple_shape(op_call *call) {
    const value *from = call->param[0];
    if (from == NULL || (from->kind != VALUE_TUPLE && from->kind != VALUE_LIST))
        return tare__call_fail(call, "takes one list or tuple");
    TARE_TRY(tare__value_share(call->memory, from, &call->result, call->err));
    call->result.kind = VALUE_TUPLE;
    return TARE_OK;
}

// --- one slice along a dimension ---

static tare_status narrow_to(op_call *call, gather *g, int dim, int64_t start, int64_t length) {
    if (start < 0) start += g->size[dim];
    if (start < 0 || length < 0 || length > g->size[dim] - start)
        return tare__call_fail(call, "[%lld, %lld + %lld) lies outside of a dimension of %lld",
                               (long long)start, (long long)start, (long long)length,
                               (long long)g->size[dim]);
    g->offset += start * g->stride[dim];
    g->size[dim] = g->out_shape[dim] = length;
    return TARE_OK;
}

static tare_status plan_narrow(op_call *call, gather *g) {
    int dim;
    int64_t start, length;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_dim(call, 1, 0, g->ndim, &dim));
    TARE_TRY(tare__call_int(call, 2, 0, &start));
    TARE_TRY(tare__call_int(call, 3, 0, &length));
    if (g->ndim == 0) return tare__call_fail(call, "the input has no dimensions");
    return narrow_to(call, g, dim, start, length);
}

static tare_status plan_select(op_call *call, gather *g) {
    int dim;
    int64_t index;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_dim(call, 1, 0, g->ndim, &dim));
    TARE_TRY(tare__call_int(call, 2, 0, &index));
    if (g->ndim == 0) return tare__call_fail(call, "the input has no dimensions");
    TARE_TRY(narrow_to(call, g, dim, index, 1));
    tare__gather_drop(g, dim);
    g->out_ndim = g->ndim;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
    return TARE_OK;
}

GATHER_OPERATOR(narrow, plan_narrow)
GATHER_OPERATOR(select, plan_select)

// --- a tuple of slices ---

typedef struct split_plan {
    int dim;
    bool drops_dim; // unbind
    int64_t size, total, count;
    const value *sizes; // a list of sizes instead of `size`; or NULL
} split_plan;

typedef tare_status (*split_planner)(op_call *call, const tare_tensor *x, split_plan *p);

static tare_status read_dim(op_call *call, size_t i, const tare_tensor *x, split_plan *p) {
    TARE_TRY(tare__call_dim(call, i, 0, x->ndim, &p->dim));
    if (x->ndim == 0) return tare__call_fail(call, "the input has no dimensions");
    p->total = x->shape[p->dim];
    return TARE_OK;
}

// As in torch, chunks have equal sizes, rounded up, so there may be fewer than requested.
static tare_status plan_chunk(op_call *call, const tare_tensor *x, split_plan *p) {
    int64_t chunks;
    TARE_TRY(read_dim(call, 2, x, p));
    TARE_TRY(tare__call_int(call, 1, 1, &chunks));
    if (chunks < 1) return tare__call_fail(call, "chunks must be positive");
    p->size = p->total > 0 ? (p->total - 1) / chunks + 1 : 0;
    p->count = p->size > 0 ? (p->total - 1) / p->size + 1 : chunks;
    return TARE_OK;
}

static tare_status plan_split(op_call *call, const tare_tensor *x, split_plan *p) {
    TARE_TRY(read_dim(call, 2, x, p));
    const value *v = call->param[1];
    if (v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE)) {
        p->sizes = v;
        p->count = v->count;
        return TARE_OK;
    }
    TARE_TRY(tare__call_int(call, 1, 0, &p->size));
    if (p->size < 1) return tare__call_fail(call, "split_size must be positive");
    p->count = p->total > 0 ? (p->total - 1) / p->size + 1 : 1;
    return TARE_OK;
}

static tare_status plan_unbind(op_call *call, const tare_tensor *x, split_plan *p) {
    TARE_TRY(read_dim(call, 1, x, p));
    p->drops_dim = true;
    p->size = 1;
    p->count = p->total;
    return TARE_OK;
}

static tare_status slice_at(op_call *call, const tare_tensor *x, const split_plan *p, int64_t i,
                            int64_t *start, gather *g) {
    int64_t length = p->size;
    if (p->sizes != NULL && !tare__call_integer(&p->sizes->as.items[i], &length))
        return tare__call_fail(call, "sizes must be ints");
    if (p->sizes == NULL && length > p->total - *start) length = p->total - *start;
    tare__gather_dense(x, g);
    TARE_TRY(narrow_to(call, g, p->dim, *start, length));
    *start += length;
    if (!p->drops_dim) return TARE_OK;
    tare__gather_drop(g, p->dim);
    g->out_ndim = g->ndim;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
    return TARE_OK;
}

static tare_status each_slice(op_call *call, split_planner plan, bool compute) {
    const tare_tensor *x;
    split_plan p = {0};
    int64_t start = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(plan(call, x, &p));
    if (p.count > VALUE_MOST_ITEMS)
        return tare__call_fail(call, "%lld parts are too many", (long long)p.count);
    if (!compute) TARE_TRY(tare__call_result_tuple(call, (uint32_t)p.count));
    for (int64_t i = 0; i < p.count; i++) {
        gather g;
        tare_tensor *t = NULL;
        TARE_TRY(slice_at(call, x, &p, i, &start, &g));
        if (compute) {
            tare__gather_run(&g, call->result.as.items[i].as.tensor);
            continue;
        }
        TARE_TRY(tare__gather_meta(call, &g, &t));
        call->result.as.items[i] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    }
    if (p.sizes != NULL && start != p.total)
        return tare__call_fail(call, "the sizes add up to %lld, expected %lld", (long long)start,
                               (long long)p.total);
    return TARE_OK;
}

static tare_status find_slice(op_call *call, split_planner plan, size_t index, gather *out) {
    const tare_tensor *x;
    split_plan p = {0};
    int64_t start = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(plan(call, x, &p));
    for (size_t i = 0; i <= index; i++) TARE_TRY(slice_at(call, x, &p, (int64_t)i, &start, out));
    return TARE_OK;
}

#define SPLIT_OPERATOR(name)                                                                       \
    static tare_status name##_shape(op_call *call) {                                               \
        return each_slice(call, plan_##name, false);                                               \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return each_slice(call, plan_##name, true);                                                \
    }                                                                                              \
    static tare_status name##_box(op_call *call, size_t index, gather *out) {                      \
        return find_slice(call, plan_##name, index, out);                                          \
    }
SPLIT_OPERATOR(chunk)
SPLIT_OPERATOR(split)
SPLIT_OPERATOR(unbind)

// --- queries ---

static tare_status shape_tuple(op_call *call, const tare_tensor *x) {
    TARE_TRY(tare__call_result_tuple(call, (uint32_t)x->ndim));
    for (int d = 0; d < x->ndim; d++) call->result.as.items[d] = tare__int(x->shape[d]);
    return TARE_OK;
}

static tare_status size_shape(op_call *call) {
    const tare_tensor *x;
    int dim;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (!tare__call_given(call, 1)) return shape_tuple(call, x);
    TARE_TRY(tare__call_dim(call, 1, 0, x->ndim, &dim));
    if (x->ndim == 0) return tare__call_fail(call, "the input has no dimensions");
    call->result = tare__int(x->shape[dim]);
    return TARE_OK;
}

static tare_status dim_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    call->result = tare__int(x->ndim);
    return TARE_OK;
}

// The strides of a dense, row-major tensor.
static tare_status stride_shape(op_call *call) {
    const tare_tensor *x;
    int dim;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (tare__call_given(call, 1)) {
        TARE_TRY(tare__call_dim(call, 1, 0, x->ndim, &dim));
        if (x->ndim == 0) return tare__call_fail(call, "the input has no dimensions");
        call->result = tare__int(tare__inner_count(x, dim));
        return TARE_OK;
    }
    TARE_TRY(tare__call_result_tuple(call, (uint32_t)x->ndim));
    for (int d = 0; d < x->ndim; d++) call->result.as.items[d] = tare__int(tare__inner_count(x, d));
    return TARE_OK;
}

static tare_status numel_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    call->result = tare__int(x->count);
    return TARE_OK;
}

// x.T reverses all dimensions, x.mT swaps the last two.
static tare_status plan_attribute(op_call *call, gather *g) {
    const char *name;
    TARE_TRY(tare__call_text(call, 1, "", &name));
    if (strcmp(name, "mT") != 0) return tare__gather_reverse(call, g);
    TARE_TRY(tare__gather_begin(call, g));
    const gather dense = *g;
    const int last = g->ndim - 1;
    if (last < 1) return tare__call_fail(call, "mT needs at least two dimensions");
    for (int d = last - 1; d <= last; d++) {
        g->size[d] = g->out_shape[d] = dense.size[2 * last - 1 - d];
        g->stride[d] = dense.stride[2 * last - 1 - d];
    }
    return TARE_OK;
}

// An item of a named tuple, as topk, sort, max and others give it.
static tare_status item_by_name(op_call *call, const char *name) {
    const value *from = call->param[0];
    const uint32_t at = strcmp(name, "indices") == 0 ? 1 : 0;
    if (from->count != 2 || (at == 0 && strcmp(name, "values") != 0))
        return tare__call_fail(call, "a tuple of %u has no item '%s'", from->count, name);
    return tare__value_share(call->memory, &from->as.items[at], &call->result, call->err);
}

static tare_status getattr_shape(op_call *call) {
    const tare_tensor *x;
    const char *name;
    TARE_TRY(tare__call_text(call, 1, "", &name));
    if (call->param[0] != NULL && call->param[0]->kind == VALUE_TUPLE)
        return item_by_name(call, name);
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (strcmp(name, "shape") == 0) return shape_tuple(call, x);
    if (strcmp(name, "ndim") == 0) return dim_shape(call);
    if (strcmp(name, "T") == 0 || strcmp(name, "mT") == 0)
        return tare__gather_shape(call, plan_attribute);
    if (strcmp(name, "data") == 0) return tare__shape_identity(call);
    if (strcmp(name, "dtype") == 0)
        call->result = tare__dtype_value(x->dtype);
    else if (strcmp(name, "is_quantized") == 0)
        call->result = tare__bool(x->q != NULL);
    else if (strcmp(name, "device") == 0)
        call->result = (value){.kind = VALUE_DEVICE, .as.text = "cpu"};
    else
        return tare__call_fail(call, "a tensor's attribute '%s' is not supported", name);
    return TARE_OK;
}

static tare_status getattr_reference(op_call *call) {
    return tare__gather_reference(call, plan_attribute);
}

static tare_status getattr_box(op_call *call, size_t index, gather *out) {
    (void)index;
    return plan_attribute(call, out);
}

static tare_status assert_shape(op_call *call) {
    const char *message;
    bool holds;
    TARE_TRY(tare__call_bool(call, 0, false, &holds));
    TARE_TRY(tare__call_text(call, 1, "assertion failed", &message));
    return holds ? TARE_OK : tare__call_fail(call, "%s", message);
}

// --- rows ---

#define ATEN(name) "torch.ops.aten." name
#define SELECT_ROW(name, more_traits, names, method_names, parameters)                             \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS | (more_traits), .shape = name##_shape,         \
        .reference = name##_reference, .box = name##_box                                           \
    }
#define SLICE_ROW(name, names, method_names, parameters)                                           \
    SELECT_ROW(name, 0, names, method_names, parameters)
#define SPLIT_ROW(name, names, method_names, parameters)                                           \
    SELECT_ROW(name, OP_ALONG_DIM, names, method_names, parameters)
#define QUESTION(name, names, method_names, parameters, rule)                                      \
    {                                                                                              \
        .id = name, .functions = names, .methods = method_names, .params = parameters,             \
        .traits = OP_NOT_ON_TENSORS, .shape = rule                                                 \
    }

// clang-format off
static const op_info rows[] = {
    {.id = "tuple", .functions = "tuple", .params = "iterable", .traits = OP_MOVES_DATA, .shape = tuple_shape},
    {.id = "getitem", .functions = "operator.getitem", .params = "input|index", .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS | OP_PICKS_ITEM,
     .shape = getitem_shape, .reference = getitem_reference, .parts = getitem_parts, .box = getitem_box},
    SLICE_ROW(narrow, "torch.narrow|" ATEN("narrow.default") "|" ATEN("narrow_copy.default"), "narrow", "input/self|dim|start|length"),
    {.id = "select", .functions = "torch.select|" ATEN("select.int") "|" ATEN("select_copy.int"), .methods = "select", .params = "input/self|dim|index",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .put_back = "select_scatter", .shape = select_shape, .reference = select_reference, .box = select_box},
    SPLIT_ROW(chunk, "torch.chunk|" ATEN("chunk.default") "|" ATEN("unsafe_chunk.default"), "chunk", "input/self|chunks|dim"),
    SPLIT_ROW(split, "torch.functional.split|" ATEN("split.Tensor") "|" ATEN("unsafe_split.Tensor") "|" ATEN("split_copy.Tensor") "|" ATEN("split_with_sizes_copy.default") "|" ATEN("split_with_sizes.default") "|" ATEN("split.sizes"), "split", "input/self/tensor|split_size_or_sections/split_size/split_sizes|dim"),
    SPLIT_ROW(unbind, "torch.unbind|" ATEN("unbind.int") "|" ATEN("unbind_copy.int"), "unbind", "input/self|dim"),
    {.id = "getattr", .functions = "getattr", .params = "input|name", .traits = OP_MOVES_DATA | OP_NOT_ON_TENSORS,
     .shape = getattr_shape, .reference = getattr_reference, .box = getattr_box},
    QUESTION("size", ATEN("sym_size.int"), "size", "input/self|dim", size_shape),
    QUESTION("dim", NULL, "dim|ndimension", "input", dim_shape),
    QUESTION("tensor_stride", ATEN("sym_stride.int"), "stride", "input/self|dim", stride_shape),
    QUESTION("numel", "torch.numel|" ATEN("sym_numel.default"), "numel|nelement", "input/self", numel_shape),
    {.id = "assert", .functions = "torch._assert|torch.ops.aten._assert_scalar.default|torch.ops.aten._assert_async.msg", .params = "condition/self|message/assert_msg", .traits = OP_IMPURE | OP_NOT_ON_TENSORS, .shape = assert_shape},
};
// clang-format on

const op_table tare__select_ops = OP_TABLE(rows);
