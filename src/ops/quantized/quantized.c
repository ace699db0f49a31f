// SPDX-License-Identifier: Apache-2.0
// The functions that compute each family of quantized and dynamic modules.
#include "ops/quantized/quantized.h"

#include <string.h>

#include "ops/classes/module_call.h"
#include "ops/classes/recurrent.h"
#include "ops/op.h"
#include "ops/quantized/grouped.h"

// The same as for the float module.
static tare_status dynamic_recurrent_shape(op_call *call) {
    TARE_TRY(tare__call_bind(call, tare__op_by_id(call->module->class->op, 0)));
    return tare__recurrent_shape(call);
}

typedef struct family {
    module_role role;
    const char *op; // NULL: any other
    tare_status (*shape)(op_call *call);
    tare_status (*forward)(op_call *call);
    tare_status (*check)(const module *m, tare_error *err);
} family;

static const family families[] = {
    {ROLE_QUANTIZED, "linear", tare__quantized_linear_shape, tare__quantized_linear_forward,
     tare__quantized_layer_check},
    {ROLE_QUANTIZED, "conv", tare__quantized_conv_shape, tare__quantized_conv_forward,
     tare__quantized_layer_check},
    {ROLE_QUANTIZED, "conv_transpose", tare__quantized_conv_shape, tare__quantized_conv_forward,
     tare__quantized_layer_check},
    {ROLE_QUANTIZED, "embedding", tare__operator_module_shape, tare__operator_module_forward,
     tare__quantized_embedding_check},
    {ROLE_QUANTIZED, "embedding_bag", tare__operator_module_shape, tare__operator_module_forward,
     tare__quantized_embedding_check},
    {ROLE_QUANTIZED, NULL, tare__quantized_rule_shape, tare__quantized_rule_forward,
     tare__quantized_rule_check},
    {ROLE_GROUPED, NULL, tare__grouped_linear_shape, tare__grouped_linear_forward,
     tare__grouped_linear_check},
    {ROLE_DYNAMIC, "linear", tare__dynamic_linear_shape, tare__dynamic_linear_forward,
     tare__dynamic_linear_check},
    {ROLE_DYNAMIC, NULL, dynamic_recurrent_shape, tare__dynamic_recurrent_forward,
     tare__dynamic_recurrent_check},
};

static const family *family_of(const module *m) {
    const family *f = families;
    while (f->role != m->class->role || (f->op != NULL && strcmp(f->op, m->class->op) != 0))
        f++; // ends: each role has a row for any operator
    return f;
}

bool tare__quantized_module_has_rule(const module *m) {
    return m->class->role == ROLE_QUANTIZED &&
           family_of(m)->forward == tare__quantized_rule_forward;
}

tare_status tare__quantized_module_shape(op_call *call) {
    return family_of(call->module)->shape(call);
}

tare_status tare__quantized_module_forward(op_call *call) {
    if (tare__value_is_empty(&call->result)) return TARE_OK;
    return family_of(call->module)->forward(call);
}

tare_status tare__quantized_module_check(const module *m, tare_error *err) {
    return family_of(m)->check(m, err);
}
