// SPDX-License-Identifier: Apache-2.0
// Constants whose sizes follow the batch as ONNX; all others are in the file as they are.
#include "io/onnx/write/rules.h"

// A number, as often as the result is large.
static void filled(onnx_out *o, const char *number) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    tare__out_result(
        o, OUT(o, "Expand", number,
               tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, (size_t)y->ndim)));
}

static void zeros(onnx_out *o) {
    filled(o, tare__out_number(o, tare__out_result_meta(o)->dtype, 0));
}

static void ones(onnx_out *o) {
    filled(o, tare__out_number(o, tare__out_result_meta(o)->dtype, 1));
}

// The number itself may follow the batch no more than it is written to.
static void full(onnx_out *o) {
    const size_t at = tare__op_param_index(tare__out_call(o)->op, "fill_value");
    const tare_dtype dtype = tare__out_result_meta(o)->dtype;
    if (tare__out_param_differs(o, at)) tare__out_refuse(o, "a number that follows the batch");
    filled(o, tare__out_operand(o, at, dtype));
}

static void arange(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    const bool has_end = tare__out_given(o, 1);
    const double start = has_end ? tare__out_double(o, 0, 0) : 0, step = tare__out_double(o, 2, 1);
    if (tare__out_param_differs(o, 2) || (has_end && tare__out_param_differs(o, 0)))
        tare__out_refuse(o, "a range whose start or step follows the batch");
    const char *count = tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, 1);
    const int64_t only = 0;
    count = tare__out_cast(o, tare__out_squeeze(o, count, &only, 1), TARE_INT64, y->dtype);
    const char *first = tare__out_number(o, y->dtype, start),
               *by = tare__out_number(o, y->dtype, step);
    const char *end = OUT(o, "Add", first, OUT(o, "Mul", count, by));
    tare__out_result(o, OUT(o, "Range", first, end, by));
}

static const onnx_write_rule rows[] = {
    {"arange", "Range", .takes_sizes = true, .write = arange},
    {"full", "Expand", .takes_sizes = true, .write = full},
    {"full_like", "Expand", .takes_sizes = true, .write = full},
    {"new_full", "Expand", .takes_sizes = true, .write = full},
    {"new_ones", "Expand", .takes_sizes = true, .write = ones},
    {"new_zeros", "Expand", .takes_sizes = true, .write = zeros},
    {"ones", "Expand", .takes_sizes = true, .write = ones},
    {"ones_like", "Expand", .takes_sizes = true, .write = ones},
    {"zeros", "Expand", .takes_sizes = true, .write = zeros},
    {"zeros_like", "Expand", .takes_sizes = true, .write = zeros},
};

const onnx_write_table tare__onnx_write_create_rules = ONNX_WRITE_RULES(rows);
