// SPDX-License-Identifier: Apache-2.0
// Elements by tensors of indices as ONNX.
#include <string.h>

#include "io/onnx/write/rules.h"

static const char *integers(onnx_out *o, size_t i) {
    return tare__out_operand(o, i, TARE_INT64);
}

static void index_select(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    const char *y = OUT(o, "Gather", tare__out_input(o, 0), integers(o, 2));
    tare__out_attr_int(o, "axis", axis);
    tare__out_result(o, y);
}

// ONNX wants the other dimensions as large as the input's; torch takes smaller ones.
static void gather(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *index = tare__out_meta(o, 2);
    const int64_t axis = tare__out_dim(o, 1, 0, x->ndim);
    for (int d = 0; d < x->ndim && d < index->ndim; d++)
        if (d != axis && x->shape[d] != index->shape[d])
            tare__out_refuse(o, "GatherElements of fewer elements than dimension %d has", d);
    const char *y = OUT(o, "GatherElements", tare__out_input(o, 0), integers(o, 2));
    tare__out_attr_int(o, "axis", axis);
    tare__out_result(o, y);
}

// --- scatter ---

static const char *updates(onnx_out *o, tare_dtype dtype) {
    const value *v = tare__out_call(o)->param[3];
    const char *x = tare__out_operand(o, 3, dtype);
    if (v != NULL && v->kind == VALUE_TENSOR && v->as.tensor->ndim > 0) return x;
    return OUT(o, "Expand", x, OUT(o, "Shape", integers(o, 2)));
}

static void scatter_with(onnx_out *o, const char *reduction) {
    const tare_tensor *x = tare__out_meta(o, 0), *index = tare__out_meta(o, 2);
    const int64_t axis = tare__out_dim(o, 1, 0, x->ndim);
    const value *v = tare__out_call(o)->param[3];
    if (v != NULL && v->kind == VALUE_TENSOR && v->as.tensor->ndim > 0)
        for (int d = 0; d < index->ndim && d < v->as.tensor->ndim; d++)
            if (index->shape[d] != v->as.tensor->shape[d])
                tare__out_refuse(o, "ScatterElements needs as many updates as indices");
    if (*reduction != '\0' && tare__out_opset(o) < 16)
        tare__out_refuse(o, "ScatterElements reduces from opset 16 on");
    const char *y = OUT(o, "ScatterElements", tare__out_input(o, 0), integers(o, 2),
                        updates(o, x->q != NULL ? TARE_FLOAT32 : x->dtype));
    tare__out_attr_int(o, "axis", axis);
    if (*reduction != '\0') tare__out_attr_text(o, "reduction", reduction);
    tare__out_result(o, y);
}

static const char *reduction_of(onnx_out *o, const char *name) {
    static const struct {
        const char *ours, *theirs;
        int since;
    } names[] = {
        {"", "", 0},         {"add", "add", 16},  {"sum", "add", 16}, {"multiply", "mul", 16},
        {"prod", "mul", 16}, {"amax", "max", 18}, {"amin", "min", 18}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].ours, name) == 0 && tare__out_opset(o) >= names[i].since)
            return names[i].theirs;
    tare__out_refuse(o, "ScatterElements has no reduction '%s' in this opset", name);
    return "";
}

static void scatter(onnx_out *o) {
    scatter_with(o, reduction_of(o, tare__out_text(o, 4, "")));
}

static void scatter_add(onnx_out *o) {
    scatter_with(o, "add");
}

static void scatter_reduce(onnx_out *o) {
    if (!tare__out_bool(o, 5, true))
        tare__out_refuse(o, "ScatterElements reduces with what was there");
    scatter_with(o, reduction_of(o, tare__out_text(o, 4, "")));
}

// --- index_put ---

// Indices of the first dimensions [..], side by side in a new last one.
static const char *places(onnx_out *o, const value *list, const tare_tensor **largest) {
    const char *parts[TARE_MAX_DIMS];
    const int64_t last = -1;
    for (uint32_t i = 0; i < list->count; i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_TENSOR || v->as.tensor->dtype == TARE_BOOL || i >= TARE_MAX_DIMS) {
            tare__out_refuse(o, "index_put by anything but integers of the first dimensions");
            return "";
        }
        if (*largest == NULL || v->as.tensor->count > (*largest)->count) *largest = v->as.tensor;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const tare_tensor *t = list->as.items[i].as.tensor;
        const char *x = tare__out_cast(o, tare__out_codes(o, t), t->dtype, TARE_INT64);
        if (t != *largest) x = OUT(o, "Expand", x, OUT(o, "Shape", tare__out_codes(o, *largest)));
        parts[i] = tare__out_unsqueeze(o, x, &last, 1);
    }
    if (list->count == 1) return parts[0];
    const char *y = tare__out_node(o, "Concat", parts, list->count);
    tare__out_attr_int(o, "axis", -1);
    return y;
}

static void index_put(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *largest = NULL;
    const value *list = tare__out_call(o)->param[1];
    const bool adds = tare__out_bool(o, 3, false);
    if (list == NULL || !tare__value_has_items(list) || list->count == 0) {
        tare__out_refuse(o, "its indices are missing");
        return;
    }
    if (adds && tare__out_opset(o) < 16) tare__out_refuse(o, "ScatterND adds from opset 16 on");
    if (tare__out_failed(o)) return;
    const char *at = places(o, list, &largest);
    if (tare__out_failed(o) || largest == NULL) return;
    int64_t shape[2 * TARE_MAX_DIMS];
    size_t ndim = 0;
    for (int d = 0; d < largest->ndim; d++) shape[ndim++] = largest->shape[d];
    for (int d = (int)list->count; d < x->ndim; d++) shape[ndim++] = x->shape[d];
    if (tare__out_result_other(o) != NULL && list->count < (size_t)x->ndim &&
        tare__out_result_other(o)->shape[x->ndim - 1] != x->shape[x->ndim - 1])
        tare__out_refuse(o, "index_put of sizes that follow the batch");
    const char *values =
        OUT(o, "Expand", tare__out_operand(o, 2, x->dtype), tare__out_ints(o, shape, ndim));
    const char *y = OUT(o, "ScatterND", tare__out_input(o, 0), at, values);
    if (adds) tare__out_attr_text(o, "reduction", "add");
    tare__out_result(o, y);
}

static const onnx_write_rule rows[] = {
    {"gather", "GatherElements", .write = gather},
    {"index_put", "ScatterND", .write = index_put},
    {"index_select", "Gather", .write = index_select},
    {"scatter", "ScatterElements", .write = scatter},
    {"scatter_add", "ScatterElements", 16, .write = scatter_add},
    {"scatter_reduce", "ScatterElements", 16, .write = scatter_reduce},
};

const onnx_write_table tare__onnx_write_index_rules = ONNX_WRITE_RULES(rows);
