// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements. The elements of the output are read from the input with
// constant strides, over a row-major box whose sizes multiply to the output's count. Permuting,
// slicing, repeating and shuffling have this form.
#ifndef OPS_FAMILIES_GATHER_H
#define OPS_FAMILIES_GATHER_H

#include "ops/call.h"
#include "ops/op.h"

enum { GATHER_MAX_DIMS = 2 * TARE_MAX_DIMS };

typedef struct gather {
    const tare_tensor *x;
    int ndim; // of the box; its sizes multiply to the output's element count
    int64_t size[GATHER_MAX_DIMS], stride[GATHER_MAX_DIMS], offset; // strides in elements of x
    int out_ndim;
    int64_t out_shape[TARE_MAX_DIMS];
} gather;

/// Begins with a box of x unchanged: its own sizes and strides. The output has the shape of the box
/// unless set otherwise.
tare_status tare__gather_begin(op_call *call, gather *g);
void tare__gather_dense(const tare_tensor *x, gather *g);
/// A box of x with its dimensions reversed.
tare_status tare__gather_reverse(op_call *call, gather *g);
void tare__gather_drop(gather *g, int d); // removes box dimension d
/// A result tensor for the box: a view of x if the elements keep their order, else a meta tensor.
/// Fails like tare__call_result.
tare_status tare__gather_meta(op_call *call, const gather *g, tare_tensor **out);
/// Copies the elements to y, which has data and the shape of the output.
void tare__gather_run(const gather *g, tare_tensor *y);

/// Defines NAME_shape, NAME_reference and NAME_box of an operator with one result, from a function
/// that plans its box.
typedef tare_status (*gather_planner)(op_call *call, gather *g);
tare_status tare__gather_shape(op_call *call, gather_planner plan);
tare_status tare__gather_reference(op_call *call, gather_planner plan);
#define GATHER_OPERATOR(name, plan)                                                                \
    static tare_status name##_shape(op_call *call) {                                               \
        return tare__gather_shape(call, plan);                                                     \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__gather_reference(call, plan);                                                 \
    }                                                                                              \
    static tare_status name##_box(op_call *call, size_t index, gather *out) {                      \
        (void)index;                                                                               \
        return plan(call, out);                                                                    \
    }

#endif
