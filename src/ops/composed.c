// SPDX-License-Identifier: Apache-2.0
// Runs composed operators: their shapes, their results, and the calls that they consist of.
#include "ops/composed.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ops/classes/module_call.h"
#include "ops/compose.h"
#include "ops/op.h"

static tare_status run_row(op_call *call, const char *id, bool shapes_only) {
    const op_info *op = tare__op_by_id(id, 0);
    if (op == NULL) return tare__fail(call->err, TARE_INTERNAL, "there is no operator '%s'", id);
    TARE_TRY(tare__call_bind(call, op));
    return tare__op_run(call, shapes_only);
}

static composer begin(const op_call *call) {
    return (composer){.call = call, .run_row = run_row, .run_module = tare__module_run_on};
}

static tare_status compose(composer *c, value (*forward)(composer *c), value *out) {
    const value result = forward(c);
    if (c->status == TARE_OK)
        c->status = tare__value_share(c->call->memory, &result, out, c->call->err);
    tare__compose_forget(c, 0, NULL, 0);
    tare__free(c->owned);
    return c->status;
}

tare_status tare__composed_shape(op_call *call, value (*forward)(composer *c)) {
    composer c = begin(call);
    c.shapes_only = true;
    return compose(&c, forward, &call->result);
}

tare_status tare__composed_calls(const op_call *call,
                                 tare_status (*shaped)(void *user, const op_call *call), void *user,
                                 value *out) {
    composer c = begin(call);
    c.shapes_only = true;
    c.shaped = shaped;
    c.user = user;
    return compose(&c, call->op->forward, out);
}

// Copies a single tensor to the tensor of the shape rule, whose address other objects may already
// hold; false if it does not fit.
static bool fill(tare_tensor *to, const tare_tensor *from) {
    const bool fits = to->data != NULL && from->data != NULL && to->dtype == from->dtype &&
                      to->q == from->q && tare__tensor_bytes(to) == tare__tensor_bytes(from);
    if (fits) memcpy(to->data, from->data, tare__tensor_bytes(to));
    return fits;
}

// If the result is not a single tensor, or cannot be copied, the computed tensors replace those of
// the shape rule.
tare_status tare__composed_forward(op_call *call, value (*forward)(composer *c)) {
    value made = tare__none();
    composer c = begin(call);
    TARE_TRY(compose(&c, forward, &made));
    if (made.kind == VALUE_TENSOR && call->result.kind == VALUE_TENSOR &&
        fill(call->result.as.tensor, made.as.tensor)) {
        tare__value_release_tensors(&made);
        return TARE_OK;
    }
    tare__value_release_tensors(&call->result);
    call->result = made;
    return TARE_OK;
}
