// SPDX-License-Identifier: Apache-2.0
// interpolate as ONNX's Resize.
#include <string.h>

#include "io/onnx/write/rules.h"

enum { SIZE = 1, SCALE, MODE, ALIGN, RECOMPUTE };

typedef struct modes {
    const char *mode, *nearest, *coordinates;
} modes;

static bool read_modes(onnx_out *o, modes *m) {
    const char *mode = tare__out_text(o, MODE, "nearest");
    const bool aligns = tare__out_bool(o, ALIGN, false);
    if (strcmp(mode, "nearest") == 0)
        *m = (modes){"nearest", "floor", "asymmetric"};
    else if (strcmp(mode, "nearest-exact") == 0)
        *m = (modes){"nearest", "round_prefer_ceil", "half_pixel"};
    else if (strstr(mode, "linear") != NULL)
        *m = (modes){"linear", "floor", aligns ? "align_corners" : "half_pixel"};
    else
        tare__out_refuse(o, "Resize has no mode for '%s'", mode);
    return !tare__out_failed(o);
}

// One scale for each dimension as float32; sizes where torch computes them so.
static const char *scales(onnx_out *o, const tare_tensor *x, const tare_tensor *y) {
    const value *v = tare__out_call(o)->param[SCALE];
    const int64_t count = x->ndim;
    tare_tensor *t = NULL;
    if (tare__out_failed(o)) return "";
    tare__out_try(o, tare_tensor_create(TARE_FLOAT32, 1, &count, &t, tare__out_call(o)->err));
    for (int d = 0; t != NULL && d < x->ndim; d++) {
        double scale = (double)y->shape[d] / (double)x->shape[d];
        const bool is_list = v != NULL && tare__value_has_items(v);
        if (d < 2)
            scale = 1;
        else if (is_list)
            tare__call_number(&v->as.items[v->count == 1 ? 0 : d - 2], &scale);
        else if (v != NULL && v->kind != VALUE_NONE)
            tare__call_number(v, &scale);
        tare__f32(t)[d] = (float)scale;
    }
    const char *name = t != NULL ? tare__out_constant(o, t, "scales") : "";
    tare_tensor_release(t);
    return name;
}

static void interpolate(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *y = tare__out_result_meta(o);
    const tare_tensor *other = tare__out_result_other(o);
    const bool by_scale = tare__out_given(o, SCALE) && !tare__out_given(o, SIZE) &&
                          !tare__out_bool(o, RECOMPUTE, false);
    modes m = {"", "", ""};
    if (!read_modes(o, &m)) return;
    const char *in = tare__out_input(o, 0);
    const char *made = by_scale
                           ? OUT(o, "Resize", in, "", scales(o, x, y))
                           : OUT(o, "Resize", in, "", "",
                                 tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL,
                                                 (size_t)y->ndim));
    tare__out_attr_text(o, "mode", m.mode);
    tare__out_attr_text(o, "coordinate_transformation_mode", m.coordinates);
    if (strcmp(m.mode, "nearest") == 0) tare__out_attr_text(o, "nearest_mode", m.nearest);
    tare__out_result(o, made);
}

static const onnx_write_rule rows[] = {
    {"interpolate", "Resize", .write = interpolate},
};

const onnx_write_table tare__onnx_write_resize_rules = ONNX_WRITE_RULES(rows);
