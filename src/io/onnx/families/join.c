// SPDX-License-Identifier: Apache-2.0
// Concatenation and splitting, in ONNX.
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

static tare_status translate_concat(onnx_call *c) {
    const size_t count = tare__onnx_input_count(c);
    value list;
    const tare_tensor *t = NULL;
    int64_t axis;
    value *items = tare__arena_array(tare__onnx_arena(c), count + 1, sizeof *items);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_need_input(c, i, "inputs", &items[i]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "inputs", &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    if (count == 1) return tare__onnx_give(c, &items[0]);
    TARE_TRY(tare__onnx_list(c, items, count, &list));
    const value args[] = {list, tare__int(axis)};
    return tare__onnx_one(c, "torch.cat", 2, args);
}

// Reads the sizes of the outputs: from the attribute before opset 13, then from an input. Without
// either all are equal, except that the last may be smaller.
static tare_status read_slice_sizes(onnx_call *c, int64_t total, size_t outputs, int64_t *sizes,
                                    bool *equal) {
    size_t count = 0;
    bool given = false;
    int64_t declared = (int64_t)outputs;
    if (tare__onnx_opset(c) < 13)
        TARE_TRY(tare__onnx_attr_ints(c, "split", outputs, sizes, &count, &given));
    else
        TARE_TRY(tare__onnx_input_ints(c, 1, "split", outputs, sizes, &count, &given));
    if (tare__onnx_opset(c) >= 18)
        TARE_TRY(tare__onnx_attr_int(c, "num_outputs", declared, &declared));
    if (declared != (int64_t)outputs || (given && count != outputs))
        return tare__onnx_malformed(c, "%lld slices for %zu outputs",
                                    given ? (long long)count : (long long)declared, outputs);
    const int64_t each = (total + declared - 1) / declared;
    int64_t left = total;
    *equal = true;
    for (size_t i = 0; i < outputs; i++) {
        if (!given) sizes[i] = left < each ? left : each;
        *equal = *equal && sizes[i] == sizes[0];
        left -= sizes[i];
    }
    return TARE_OK;
}

// A split with open sizes, or along an open dimension.
static tare_status split_open(onnx_call *c, const value *x, int64_t axis, value *slices) {
    value sizes[ONNX_MOST_SIZES], list;
    size_t count = 0;
    bool given = false;
    const size_t outputs = tare__onnx_output_count(c);
    if (tare__onnx_opset(c) >= 13)
        TARE_TRY(tare__onnx_input_sizes(c, 1, "split", ONNX_MOST_SIZES, sizes, &count, &given));
    if (!given || count != outputs)
        return tare__onnx_fail(
            c, "the sizes of slices of an open dimension must be given by input 'split'");
    TARE_TRY(tare__onnx_list(c, sizes, count, &list));
    return ONNX_CALL(c, slices, "torch.split", *x, list, tare__int(axis));
}

static bool has_open_slices(const onnx_call *c, const value *x, int64_t axis) {
    const value split = tare__onnx_input(c, 1);
    return tare__onnx_holds_open(c->in, &split) ||
           (tare__onnx_size_is_open(c, x, (int)axis) && split.kind != VALUE_NONE);
}

static tare_status split_known(onnx_call *c, const value *x, int64_t total, int64_t axis,
                               value *slices) {
    value list;
    bool equal = false;
    const size_t outputs = tare__onnx_output_count(c);
    int64_t *sizes = tare__arena_array(tare__onnx_arena(c), outputs + 1, sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(read_slice_sizes(c, total, outputs, sizes, &equal));
    if (tare__onnx_size_is_open(c, x, (int)axis) || (equal && sizes[0] > 0))
        return ONNX_CALL(c, slices, "torch.chunk", *x, tare__int((int64_t)outputs),
                         tare__int(axis));
    TARE_TRY(tare__onnx_ints(c, sizes, outputs, &list));
    return ONNX_CALL(c, slices, "torch.split", *x, list, tare__int(axis));
}

static tare_status translate_split(onnx_call *c) {
    value x, slices;
    const tare_tensor *t = NULL;
    int64_t axis;
    const size_t outputs = tare__onnx_output_count(c);
    TARE_TRY(tare__onnx_need_first(c, "input", &x, &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    if (outputs == 0) return tare__onnx_malformed(c, "there are no outputs");
    if (has_open_slices(c, &x, axis))
        TARE_TRY(split_open(c, &x, axis, &slices));
    else
        TARE_TRY(split_known(c, &x, t->shape[axis], axis, &slices));
    for (size_t i = 0; i < outputs; i++) {
        if (!tare__onnx_wants_output(c, i)) continue;
        value slice;
        TARE_TRY(tare__onnx_item(c, &slices, (int64_t)i, &slice));
        tare__onnx_set_output(c, i, &slice);
    }
    return TARE_OK;
}

static const onnx_rule read_rows[] = {
    {"Concat", .translate = translate_concat},
    {"Split", .translate = translate_split},
};

// --- writing ---

// --- cat, stack ---

static const char *join(onnx_out *o, const char *op_type, int64_t axis, bool stacks) {
    const op_call *call = tare__out_call(o);
    const value *list = call->param[0];
    const tare_tensor *y = tare__out_result_meta(o);
    const tare_dtype dtype = y->q != NULL ? TARE_FLOAT32 : y->dtype;
    if (list == NULL || !tare__value_has_items(list) || list->count == 0) {
        tare__out_refuse(o, "its tensors are missing");
        return "";
    }
    const char **operands = tare__arena_array(call->memory, list->count, sizeof *operands);
    size_t count = 0;
    if (operands == NULL) {
        tare__out_try(o, tare__out_of_memory(call->err));
        return "";
    }
    for (uint32_t i = 0; i < list->count && !tare__out_failed(o); i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_TENSOR) {
            tare__out_refuse(o, "an item is not a tensor");
            break;
        }
        const tare_tensor *t = v->as.tensor;
        if (!stacks && t->ndim == 1 && t->count == 0 && y->ndim > 1)
            continue; // torch ignores such tensors
        const char *x = tare__out_cast(o, tare__out_tensor(o, t),
                                       t->q != NULL ? TARE_FLOAT32 : t->dtype, dtype);
        operands[count++] = stacks ? tare__out_unsqueeze(o, x, &axis, 1) : x;
    }
    if (tare__out_failed(o)) return "";
    const char *made = tare__out_node(o, op_type, operands, count);
    tare__out_attr_int(o, "axis", axis);
    return made;
}

static void write_cat(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_result_meta(o)->ndim);
    tare__out_result(o, join(o, "Concat", axis, false));
}

static void write_stack(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_result_meta(o)->ndim);
    tare__out_result(o, join(o, "Concat", axis, true));
}

// --- split, chunk, unbind ---

static bool other_sizes_differ(onnx_out *o, int64_t axis) {
    const value *other = tare__out_results_other(o), *own = &tare__out_call(o)->result;
    if (other == NULL) return false;
    if (other->count != own->count) return true;
    for (uint32_t i = 0; i < own->count; i++) {
        const value *a = &own->as.items[i], *b = &other->as.items[i];
        if (a->kind == VALUE_TENSOR && b->kind == VALUE_TENSOR && axis < a->as.tensor->ndim &&
            a->as.tensor->ndim == b->as.tensor->ndim && own->count > 1 &&
            a->as.tensor->shape[axis] != b->as.tensor->shape[axis])
            return true;
    }
    return false;
}

static void write_slices(onnx_out *o, size_t dim_at, bool drops_dim) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, dim_at, 0, x->ndim);
    const value *result = &tare__out_call(o)->result;
    const char *in = tare__out_input(o, 0);
    int64_t start = 0;
    if (!drops_dim && other_sizes_differ(o, axis))
        tare__out_refuse(o, "slices of the batch are not written");
    for (uint32_t i = 0; i < result->count && !tare__out_failed(o); i++) {
        const tare_tensor *slice = result->as.items[i].as.tensor;
        const int64_t size = drops_dim ? 1 : slice->shape[axis];
        tare__out_result_item(o, i,
                              drops_dim ? tare__out_take(o, in, start, axis)
                                        : tare__out_slice(o, in, axis, start, start + size, 1));
        start += size;
    }
}

static void write_split(onnx_out *o) {
    write_slices(o, 2, false);
}

static void write_unbind(onnx_out *o) {
    write_slices(o, 1, true);
}

static const onnx_write_rule write_rows[] = {
    {"cat", "Concat", .write = write_cat},
    {"chunk", "Slice", .write = write_split},
    {"split", "Slice", .write = write_split},
    {"stack", "Unsqueeze, Concat", .write = write_stack},
    {"unbind", "Gather", .write = write_unbind},
};

const onnx_family tare__onnx_join_family = {.read = ONNX_RULES(read_rows),
                                            .write = ONNX_WRITE_RULES(write_rows)};
