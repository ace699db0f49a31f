// SPDX-License-Identifier: Apache-2.0
// Padding and cropping, in ONNX.
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

// --- Pad ---

enum { MOST_AMOUNTS = 2 * TARE_MAX_DIMS };

static bool is_zero(const value *v) {
    return v->kind == VALUE_INT && v->as.integer == 0;
}

// Converts [begin of each axis.., end of each axis..] to torch's pairs, which start with the last
// dimension. Leading dimensions without padding are left out.
static tare_status read_pads(onnx_call *c, const tare_tensor *t, value *amounts, size_t *count) {
    value pads[MOST_AMOUNTS];
    int64_t axes[TARE_MAX_DIMS];
    size_t pad_count, axis_count = 0;
    bool has_axes = false;
    TARE_TRY(tare__onnx_input_sizes(c, 1, "pads", MOST_AMOUNTS, pads, &pad_count, NULL));
    if (tare__onnx_opset(c) >= 18)
        TARE_TRY(tare__onnx_input_ints(c, 3, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    for (int d = 0; !has_axes && d < t->ndim; d++) axes[axis_count++] = d;
    if (pad_count != 2 * axis_count)
        return tare__onnx_malformed(c, "%zu pads for %zu axes", pad_count, axis_count);
    for (size_t i = 0; i < MOST_AMOUNTS; i++) amounts[i] = tare__int(0);
    *count = 0;
    for (size_t i = 0; i < axis_count; i++) {
        int64_t axis;
        TARE_TRY(tare__onnx_axis(c, axes[i], t->ndim, &axis));
        const size_t pair = (size_t)(t->ndim - 1 - (int)axis);
        amounts[2 * pair] = pads[i];
        amounts[2 * pair + 1] = pads[axis_count + i];
        const bool pads_any = !is_zero(&pads[i]) || !is_zero(&pads[axis_count + i]);
        if (pads_any && *count < 2 * pair + 2) *count = 2 * pair + 2;
    }
    return TARE_OK;
}

static tare_status translate_pad(onnx_call *c) {
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    value args[4], amounts[MOST_AMOUNTS];
    const tare_tensor *t = NULL;
    size_t count = 0, mode = 0;
    double fill;
    TARE_TRY(tare__onnx_need_first(c, "data", &args[0], &t));
    const bool is_float = tare__dtype(t->dtype)->is_float;
    TARE_TRY(ONNX_CHOICE(c, "mode", "constant", &mode, "constant", "reflect", "edge", "wrap"));
    TARE_TRY(read_pads(c, t, amounts, &count));
    TARE_TRY(tare__onnx_input_number(c, 2, "constant_value", 0, &fill));
    if (count == 0) return tare__onnx_give(c, &args[0]);
    args[1] = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, (uint32_t)count);
    if (args[1].as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    memcpy(args[1].as.items, amounts, count * sizeof *amounts);
    args[2] = tare__string(modes[mode]);
    args[3] = is_float ? tare__float(fill) : tare__int(tare__cut_int64(fill));
    return tare__onnx_one(c, "torch.nn.functional.pad", mode == 0 ? 4 : 3, args);
}

// --- CenterCropPad: each axis is cropped or padded with zeros around its center ---

static tare_status crop_or_pad(onnx_call *c, value *x, int64_t axis, int64_t wanted) {
    const tare_tensor *t = tare__onnx_meta(c, x);
    const int64_t size = t->shape[axis], ndim = t->ndim;
    if (tare__onnx_size_is_open(c, x, (int)axis))
        return tare__onnx_fail(c,
                               "cropping or padding an open dimension to a size is not supported");
    if (size >= wanted)
        return size == wanted ? TARE_OK
                              : ONNX_CALL(c, x, "torch.narrow", *x, tare__int(axis),
                                          tare__int((size - wanted) / 2), tare__int(wanted));
    int64_t amounts[MOST_AMOUNTS] = {0};
    value list;
    const size_t pair = (size_t)(ndim - 1 - axis);
    amounts[2 * pair] = (wanted - size) / 2;
    amounts[2 * pair + 1] = wanted - size - (wanted - size) / 2;
    TARE_TRY(tare__onnx_int_tuple(c, amounts, 2 * pair + 2, &list));
    return ONNX_CALL(c, x, "torch.nn.functional.pad", *x, list);
}

static tare_status translate_center_crop_pad(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t wanted[TARE_MAX_DIMS], axes[TARE_MAX_DIMS];
    size_t count, axis_count = 0;
    bool has_axes = false;
    TARE_TRY(tare__onnx_need_first(c, "input_data", &x, &t));
    const int ndim = t->ndim;
    TARE_TRY(tare__onnx_input_ints(c, 1, "shape", TARE_MAX_DIMS, wanted, &count, NULL));
    TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    for (int d = 0; !has_axes && d < ndim; d++) axes[axis_count++] = d;
    if (axis_count != count)
        return tare__onnx_malformed(c, "%zu sizes for %zu axes", count, axis_count);
    for (size_t i = 0; i < count; i++) {
        int64_t axis;
        TARE_TRY(tare__onnx_axis(c, axes[i], ndim, &axis));
        if (wanted[i] < 0)
            return tare__onnx_malformed(c, "size %zu is %lld, expected at least 0", i,
                                        (long long)wanted[i]);
        TARE_TRY(crop_or_pad(c, &x, axis, wanted[i]));
    }
    return tare__onnx_give(c, &x);
}

static const onnx_rule read_rows[] = {
    {"CenterCropPad", 18, .translate = translate_center_crop_pad},
    {"Pad", .translate = translate_pad},
};

// --- writing ---

typedef struct pad_sizes {
    int64_t pads[2 * TARE_MAX_DIMS]; // before each dimension, then after each
} pad_sizes;

// torch's pairs start with the last dimension.
static pad_sizes torch_pads(onnx_out *o, bool other) {
    const tare_tensor *x = tare__out_meta(o, 0);
    int64_t given[2 * TARE_MAX_DIMS];
    size_t count = 0;
    pad_sizes p = {{0}};
    tare__out_try(
        o, tare__call_int_list(tare__out_call(o), 1, sizeof given / sizeof *given, given, &count));
    if (other && !tare__out_other_ints(o, 1, sizeof given / sizeof *given, given, count)) return p;
    if (count == 1 && x->ndim > 2) // of a module: the same on all sides of the spatial dimensions
        for (; count < 2 * ((size_t)x->ndim - 2); count++) given[count] = given[0];
    for (size_t i = 0; i + 1 < count && i / 2 < (size_t)x->ndim; i += 2) {
        const int d = x->ndim - 1 - (int)(i / 2);
        p.pads[d] = given[i];
        p.pads[x->ndim + d] = given[i + 1];
    }
    return p;
}

static void pad_by(onnx_out *o, const char *mode, const char *number) {
    const pad_sizes p = torch_pads(o, false);
    const bool follows = tare__out_other_param(o, 1) != NULL;
    const pad_sizes others = follows ? torch_pads(o, true) : p;
    const size_t count = 2 * (size_t)tare__out_meta(o, 0)->ndim;
    const char *y = OUT(o, "Pad", tare__out_input(o, 0),
                        tare__out_sizes(o, p.pads, others.pads, count), number);
    tare__out_attr_text(o, "mode", mode);
    tare__out_result(o, y);
}

// Circular padding: the end is prepended and the beginning is appended.
static void wrap(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const char *y = tare__out_input(o, 0), *operands[3];
    pad_sizes p = torch_pads(o, false);
    const pad_sizes others = torch_pads(o, tare__out_other_param(o, 1) != NULL);
    if (memcmp(&p, &others, sizeof p) != 0)
        tare__out_refuse(o, "circular padding with open sizes is not written");
    for (int d = 0; d < x->ndim && !tare__out_failed(o); d++) {
        const int64_t before = p.pads[d], after = p.pads[x->ndim + d];
        size_t count = 0;
        if (before < 0 || after < 0)
            tare__out_refuse(o, "negative circular padding is not written");
        if (before == 0 && after == 0) continue;
        if (before > 0) operands[count++] = tare__out_slice(o, y, d, -before, INT64_MAX, 1);
        operands[count++] = y;
        if (after > 0) operands[count++] = tare__out_slice(o, y, d, 0, after, 1);
        y = tare__out_node(o, "Concat", operands, count);
        tare__out_attr_int(o, "axis", d);
    }
    tare__out_result(o, y);
}

static void write_pad(onnx_out *o) {
    const char *mode = tare__out_text(o, 2, "constant");
    const tare_tensor *x = tare__out_meta(o, 0);
    if (strcmp(mode, "constant") == 0) {
        const tare_dtype dtype = x->q != NULL ? TARE_FLOAT32 : x->dtype;
        const bool given = tare__out_given(o, 3) && tare__out_double(o, 3, 0) != 0;
        pad_by(o, "constant", given ? tare__out_operand(o, 3, dtype) : "");
    } else if (strcmp(mode, "reflect") == 0) {
        pad_by(o, "reflect", "");
    } else if (strcmp(mode, "replicate") == 0) {
        pad_by(o, "edge", "");
    } else if (strcmp(mode, "circular") == 0) {
        wrap(o);
    } else {
        tare__out_refuse(o, "Pad has no mode for '%s'", mode);
    }
}

static void write_zero_pad(onnx_out *o) {
    pad_by(o, "constant", "");
}

static const onnx_write_rule write_rows[] = {
    {"pad", "Pad", .takes_open_sizes = true, .write = write_pad},
    {"zero_pad", "Pad", .write = write_zero_pad},
};

const onnx_family tare__onnx_pad_family = {.read = ONNX_RULES(read_rows),
                                           .write = ONNX_WRITE_RULES(write_rows)};
