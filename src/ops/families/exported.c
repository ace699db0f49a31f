// SPDX-License-Identifier: Apache-2.0
// Operators that only occur in exported programs: checks of inputs and metadata, conversions of
// tensors to numbers, and copies into tensors.
#include <string.h>

#include "ops/families/families.h"
#include "ops/rules.h"

// Nothing is computed: the checked conditions were fixed at export, and rows check shapes.
static tare_status nothing_shape(op_call *call) {
    call->result = tare__none();
    return TARE_OK;
}

static tare_status item_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->count != 1 || x->data == NULL || x->q != NULL)
        return tare__call_fail(call, "needs one known element, found shape %s",
                               tare__call_shape_text(call, x));
    const double number = tare__tensor_get(x, 0);
    if (x->dtype == TARE_BOOL)
        call->result = tare__bool(number != 0);
    else if (tare__dtype(x->dtype)->is_float)
        call->result = tare__float(number);
    else
        call->result = tare__int(tare__tensor_get_int(x, 0));
    return TARE_OK;
}

// --- copy: a tensor converted to the shape and dtype of another ---

static tare_status copy_shape(op_call *call) {
    const tare_tensor *x, *src;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &src));
    TARE_TRY(tare__broadcast(call, x, src, &ndim, shape));
    if (ndim != x->ndim || memcmp(shape, x->shape, (size_t)ndim * sizeof *shape) != 0 ||
        x->q != NULL || src->q != NULL)
        return tare__call_fail(call, "src of shape %s does not fit %s",
                               tare__call_shape_text(call, src), tare__call_shape_text(call, x));
    if (src->dtype != x->dtype || !tare__same_shape(src, x)) return tare__shape_same(call);
    // Tensors are never overwritten, so a copy without changes may share the data.
    call->result = (value){
        .kind = VALUE_TENSOR,
        .as.tensor = tare_tensor_retain((tare_tensor *)src)}; // NOLINT: counted, not changed
    return TARE_OK;
}

static tare_status copy_reference(op_call *call) {
    const tare_tensor *src;
    int64_t stride[TARE_MAX_DIMS];
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(tare__call_need_tensor(call, 1, &src));
    tare__broadcast_strides(src, y->ndim, y->shape, stride);
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set(y, i,
                         tare__tensor_get(src, tare__strided_offset(y->ndim, y->shape, stride, i)));
    return TARE_OK;
}

// --- rows ---

static const op_info rows[] = {
    {.id = "guards",
     .params = "*inputs",
     .module_inputs = "*",
     .traits = OP_IMPURE | OP_NOT_ON_TENSORS,
     .shape = nothing_shape},
    {.id = "assert_tensor_metadata",
     .functions = "torch.ops.aten._assert_tensor_metadata.default",
     .params = "a|size|stride|dtype|device|layout",
     .traits = OP_IMPURE | OP_NOT_ON_TENSORS,
     .shape = nothing_shape},
    {.id = "item",
     .functions = "torch.ops.aten.item.default|torch.ops.aten._local_scalar_dense.default",
     .methods = "item",
     .params = "input/self",
     .traits = OP_NOT_ON_TENSORS | OP_SHAPED_BY_DATA,
     .shape = item_shape},
    {.id = "copy",
     .functions = "torch.ops.aten.copy.default|torch.ops.aten.copy_.default",
     .methods = "copy_",
     .params = "input/self|src|non_blocking",
     .traits = OP_ELEMENTWISE | OP_ANY_DTYPE,
     .shape = copy_shape,
     .reference = copy_reference},
};

const op_table tare__exported_ops = OP_TABLE(rows);
