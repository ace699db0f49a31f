// SPDX-License-Identifier: Apache-2.0
// Quantize and DeQuantize: the boundary of a quantized region inside a custom module.
#include "core/tensor/text.h"
#include "ops/classes/quantizable.h"
#include "ops/compose.h"
#include "ops/composed.h"
#include "ops/op.h"
#include "ops/text/print.h"

static value argument(composer *c) {
    if (c->call->arg_count == 1 && c->call->kwarg_count == 0) return c->call->args[0];
    (void)tare__compose_fail(c, "takes one argument");
    return tare__none();
}

static value own_tensor(const module *m, const char *name) {
    tare_tensor *t = tare__module_tensor(m, name);
    return t != NULL ? (value){.kind = VALUE_TENSOR, .as.tensor = t} : tare__none();
}

static value own_dtype(const module *m) {
    const value *dtype = tare__module_config(m, "dtype");
    return dtype != NULL ? *dtype : tare__dtype_value(TARE_QUINT8);
}

static value quantize(composer *c) {
    const module *m = c->call->module;
    return COMPOSE(c, "quantize_per_tensor", argument(c), own_tensor(m, "scale"),
                   own_tensor(m, "zero_point"), own_dtype(m));
}

static value dequantize(composer *c) {
    return COMPOSE(c, "dequantize", argument(c));
}

tare_status tare__quantize_module_shape(op_call *call) {
    return tare__composed_shape(call, quantize);
}
tare_status tare__quantize_module_forward(op_call *call) {
    return tare__composed_forward(call, quantize);
}
tare_status tare__dequantize_module_shape(op_call *call) {
    return tare__composed_shape(call, dequantize);
}
tare_status tare__dequantize_module_forward(op_call *call) {
    return tare__composed_forward(call, dequantize);
}

tare_status tare__quantize_module_check(const module *m, tare_error *err) {
    static const char *const names[] = {"scale", "zero_point"};
    for (int i = 0; i < 2; i++) {
        const tare_tensor *t = tare__module_tensor(m, names[i]);
        if (t == NULL || t->count != 1)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected one number as tensor '%s'",
                              m->class->name, names[i]);
    }
    return TARE_OK;
}

tare_status tare__describe_quantize(const module *m, text *out, tare_error *err) {
    const value dtype = own_dtype(m);
    const tare_tensor *scale = tare__module_tensor(m, "scale");
    const tare_tensor *zero_point = tare__module_tensor(m, "zero_point");
    const float shown = scale != NULL ? (float)tare__tensor_get(scale, 0) : 1;
    tare__text_append(out, "scale=");
    tare__text_float_tensor(out, &shown, 1);
    tare__text_printf(out, ", zero_point=tensor([%.0f])",
                      zero_point != NULL ? tare__tensor_get(zero_point, 0) : 0.0);
    tare__text_append(out, ", dtype=");
    tare__print_value(&dtype, out);
    return tare__text_status(out, err);
}
