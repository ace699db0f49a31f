// SPDX-License-Identifier: Apache-2.0
// Modules for quantization-aware training, which fake-quantize their weights (torch.ao.nn.qat and
// torch.ao.nn.intrinsic.qat).
#include <math.h>
#include <string.h>

#include "ops/classes/module_call.h"
#include "ops/classes/module_check.h"
#include "ops/op.h"

static bool has_bn(const module_class *class) {
    return class->fused == FUSED_BN || class->fused == FUSED_BN_RELU;
}
static bool has_relu(const module_class *class) {
    return class->fused == FUSED_RELU || class->fused == FUSED_BN_RELU;
}

// The index of the parameter that the module's tensor of this name is bound to, or a number past
// the last.
static size_t param_of(const op_call *call, const char *name) {
    for (size_t i = 0; i < call->param_count; i++)
        if (tare__op_param_is(call->op, i, name)) return i;
    return OP_MAX_PARAMS;
}

// --- a batch norm's factor ---

// Per output channel: gamma / sqrt(running_var + eps), with the running statistics before this
// batch. They keep the weight's quantization grid stable, unlike statistics of the batch.
static tare_status scale_factor(op_call *call, const module *bn, int64_t channels, float **out) {
    const tare_tensor *var = tare__module_tensor(bn, "running_var");
    const tare_tensor *gamma = tare__module_tensor(bn, "weight");
    const float eps = (float)tare__module_double(bn, "eps", 1e-5);
    if (var == NULL || gamma == NULL || var->count != channels || gamma->count != channels ||
        var->dtype != TARE_FLOAT32 || gamma->dtype != TARE_FLOAT32)
        return tare__call_fail(call, "bn needs float32 tensors 'running_var' and 'weight' of %lld",
                               (long long)channels);
    *out = tare__arena_array(call->memory, (size_t)channels + 1, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(call->err);
    for (int64_t c = 0; c < channels; c++)
        (*out)[c] = tare__f32(gamma)[c] / sqrtf(tare__f32(var)[c] + eps);
    return TARE_OK;
}

static tare_status scale_weight(op_call *call, const tare_tensor *weight, const float *factor,
                                tare_tensor **out) {
    const int64_t inner = weight->count / (weight->shape[0] > 0 ? weight->shape[0] : 1);
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, weight->ndim, weight->shape, out, call->err));
    for (int64_t i = 0; i < weight->count; i++)
        tare__f32(*out)[i] = tare__f32(weight)[i] * factor[i / inner];
    return TARE_OK;
}

// Divides by the factor again and adds the bias, which the convolution left out.
static void unscale(const op_call *call, tare_tensor *y, const float *factor,
                    const tare_tensor *bias) {
    const int axis = y->ndim - 1 - call->module->class->dims;
    int64_t inner = 1;
    for (int d = axis + 1; d < y->ndim; d++) inner *= y->shape[d];
    float *values = tare__f32(y);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t c = i / inner % y->shape[axis];
        values[i] /= factor[c];
        if (bias != NULL) values[i] += tare__f32(bias)[c];
    }
}

// --- the operator ---

static tare_status quantize_weight(op_call *call, const tare_tensor *weight, value *out) {
    const module *fake_quant = tare__module_child(call->module, "weight_fake_quant");
    const value given = {.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)weight};
    if (fake_quant == NULL) return tare__call_fail(call, "has no 'weight_fake_quant'");
    TARE_TRY(tare__module_run_on(call, fake_quant, &given, false, out));
    const tare_tensor *t = out->kind == VALUE_TENSOR ? out->as.tensor : NULL;
    if (t != NULL && t->dtype == weight->dtype && tare__same_shape(t, weight)) return TARE_OK;
    tare__value_release_tensors(out);
    return tare__call_fail(call, "weight_fake_quant changes the weight's shape or dtype");
}

// Runs the operator with the fake quantized weight in place of the module's.
static tare_status compute_with(op_call *call, size_t at, const tare_tensor *weight) {
    value made;
    TARE_TRY(quantize_weight(call, weight, &made));
    const value *own = call->param[at];
    call->param[at] = &made;
    const tare_status status = tare__op_compute(call);
    call->param[at] = own;
    tare__value_release_tensors(&made);
    return status;
}

static tare_status run_bn(op_call *call, const module *bn) {
    value made;
    TARE_TRY(tare__module_run_on(call, bn, &call->result, false, &made));
    tare__value_release_tensors(&call->result);
    call->result = made;
    return TARE_OK;
}

// torch's _forward_approximate: one convolution with the scaled weight.
static tare_status compute_with_bn(op_call *call, size_t at, const tare_tensor *weight) {
    static const value none = {.kind = VALUE_NONE};
    const module *bn = tare__module_child(call->module, "bn");
    const tare_tensor *bias = tare__module_tensor(call->module, "bias");
    const size_t bias_at = param_of(call, "bias");
    float *factor = NULL;
    tare_tensor *scaled = NULL;
    if (bn == NULL || weight->dtype != TARE_FLOAT32 || weight->ndim < 1)
        return tare__call_fail(call, "needs a float32 weight and a child 'bn'");
    TARE_TRY(scale_factor(call, bn, weight->shape[0], &factor));
    TARE_TRY(scale_weight(call, weight, factor, &scaled));
    if (bias_at < call->param_count) call->param[bias_at] = &none;
    tare_status status = compute_with(call, at, scaled);
    tare_tensor_release(scaled);
    if (status != TARE_OK) return status;
    unscale(call, tare__call_out(call), factor, bias);
    return run_bn(call, bn);
}

tare_status tare__qat_module_shape(op_call *call) {
    return tare__operator_module_shape(call);
}

// ReLU in any float dtype: half-precision inputs give half-precision results.
static void clamp_at_zero(tare_tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) < 0) tare__tensor_set(t, i, 0);
}

tare_status tare__qat_module_forward(op_call *call) {
    TARE_TRY(tare__operator_module_bind(call));
    const module_class *class = call->module->class;
    const size_t at = param_of(call, "weight");
    const tare_tensor *weight = tare__module_tensor(call->module, "weight");
    if (weight == NULL || at >= call->param_count)
        return tare__call_fail(call, "a %s has no weight", class->name);
    TARE_TRY(has_bn(class) ? compute_with_bn(call, at, weight) : compute_with(call, at, weight));
    if (has_relu(class)) clamp_at_zero(tare__call_out(call));
    return TARE_OK;
}

tare_status tare__qat_module_check(const module *m, tare_error *err) {
    const module *fake_quant = tare__module_child(m, "weight_fake_quant");
    const module *bn = tare__module_child(m, "bn");
    if (fake_quant == NULL || fake_quant->class->role != ROLE_OBSERVER)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "a %s needs a fake quantizer "
                          "'weight_fake_quant'",
                          m->class->name);
    if (has_bn(m->class) &&
        (bn == NULL || bn->class->op == NULL || strcmp(bn->class->op, "batch_norm") != 0))
        return tare__fail(err, TARE_MALFORMED_FILE, "a %s needs a batch norm 'bn'", m->class->name);
    return tare__operator_module_check(m, err);
}
