// SPDX-License-Identifier: Apache-2.0
// Reads and checks a quantized linear or convolution module.
#include "ops/quantized/layer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/quantized/packed.h"
#include "ops/quantized/quantized.h"
#include "ops/rules.h"

bool tare__has_byte_zero_points(const qparams *q) {
    for (int64_t c = 0; c < q->count; c++)
        if (!(q->zero_point[c] >= -128 && q->zero_point[c] <= 255)) return false;
    return true;
}

bool tare__is_byte_quantized(const tare_tensor *t) {
    return t->q != NULL && (t->dtype == TARE_QUINT8 || t->dtype == TARE_QINT8) &&
           tare__qscheme_is_per_tensor(t->q->scheme) && tare__has_byte_zero_points(t->q);
}

// --- output parameters and rule ---

tare_status tare__module_number(const module *m, const char *name, double *out, tare_error *err) {
    const tare_tensor *t = tare__module_tensor(m, name);
    if (t == NULL || t->count != 1 || t->data == NULL || t->q != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected one number as tensor '%s'",
                          m->class->name, name);
    *out = tare__tensor_get(t, 0);
    return TARE_OK;
}

// True if it is the tensor `name` of this call. Checked in every run, so the name is not built.
static bool is_of_call(const char *tensor, const char *name, const char *call_name) {
    const size_t length = strlen(name), joint = sizeof OUTPUT_NAME_JOINT - 1;
    return strncmp(tensor, name, length) == 0 &&
           strncmp(tensor + length, OUTPUT_NAME_JOINT, joint) == 0 &&
           strcmp(tensor + length + joint, call_name) == 0;
}

static tare_status output_number(const module *m, const char *call_name, const char *name,
                                 double *out, tare_error *err) {
    for (size_t i = 0; call_name != NULL && i < m->tensor_count; i++)
        if (is_of_call(m->tensors[i].name, name, call_name))
            return tare__module_number(m, m->tensors[i].name, out, err);
    return tare__module_number(m, name, out, err);
}

tare_status tare__module_output(const module *m, const char *call_name, double *scale,
                                double *zero_point, tare_error *err) {
    TARE_TRY(output_number(m, call_name, "scale", scale, err));
    return output_number(m, call_name, "zero_point", zero_point, err);
}

static tare_status set_output(const module *m, double scale, double zero_point,
                              quantized_layer *out, tare_error *err) {
    out->scale = scale;
    if (!isfinite(out->scale) || !((float)out->scale > 0) || !isfinite((float)out->scale))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a scale > 0, found %g",
                          m->class->name, out->scale);
    if (zero_point != rint(zero_point) || zero_point < -128 || zero_point > 255)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected a whole zero point in [-128, 255], found %g",
                          m->class->name, zero_point);
    out->zero_point = (int64_t)zero_point;
    return TARE_OK;
}

static tare_status read_output(const module *m, const char *call_name, quantized_layer *out,
                               tare_error *err) {
    double scale, zero_point;
    TARE_TRY(tare__module_output(m, call_name, &scale, &zero_point, err));
    return set_output(m, scale, zero_point, out, err);
}

// An addend is added before rounding, which the fixed-point rule does not support. Other fused
// activations are applied to the float accumulator, which only rule O (oneDNN) has.
static tare_status check_rule(const module *m, const quantized_layer *layer, tare_error *err) {
    if (layer->is_plain || layer->rule == REQUANT_O) return TARE_OK;
    if (layer->adds && layer->rule != REQUANT_FIXED_POINT) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected the rule %s, found '%s'",
                      m->class->name, layer->adds ? "F, O or Q" : "O",
                      tare__requant_rule_name(layer->rule));
}

static tare_status read_rule(const module *m, quantized_layer *out, tare_error *err) {
    const value *rule = tare__module_config(m, "rule");
    if (rule == NULL || rule->kind != VALUE_STRING)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected the config value 'rule'",
                          m->class->name);
    out->rule = tare__requant_rule_from_name(rule->as.text);
    if (out->rule == REQUANT_UNSET)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected the rule F, O, Q or fixed_point, found '%s'",
                          m->class->name, rule->as.text);
    return check_rule(m, out, err);
}

// --- weight and bias ---

static bool is_transposed(const module *m) {
    return strcmp(m->class->op, "conv_transpose") == 0;
}

static tare_status check_weight(const module *m, const quantized_layer *layer, int ndim,
                                tare_error *err) {
    const tare_tensor *w = layer->weight;
    const bool fits = w != NULL && w->dtype == TARE_QINT8 && w->q != NULL && w->data != NULL &&
                      w->q->scheme != TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS && w->ndim == ndim &&
                      tare__has_byte_zero_points(w->q);
    if (!fits)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected a qint8 tensor 'weight' with %d dimensions", m->class->name,
                          ndim);
    const int axis = is_transposed(m) ? 1 : 0;
    if (tare__qscheme_is_per_channel(w->q->scheme) && w->q->axis != axis)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected weight scales along axis %d, found axis %d", m->class->name,
                          axis, w->q->axis);
    return TARE_OK;
}

static tare_status check_bias(const module *m, const quantized_layer *layer, tare_error *err) {
    const tare_tensor *b = layer->bias;
    if (b == NULL || (b->dtype == TARE_FLOAT32 && b->ndim == 1 && b->data != NULL &&
                      b->shape[0] == layer->out_channels))
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "%s: expected a float32 bias of %" PRId64 " elements", m->class->name,
                      layer->out_channels);
}

// --- geometry ---

// Reads `dims` values of the config into the last of the three spatial dimensions.
static bool read_spatial(const module *m, const char *key, int dims, int64_t otherwise,
                         int64_t least, int64_t out[SPATIAL]) {
    for (int d = 0; d < SPATIAL; d++) out[d] = otherwise;
    if (tare__module_config(m, key) == NULL) return true;
    if (!tare__module_ints(m, key, (size_t)dims, out + SPATIAL - dims)) return false;
    for (int d = 0; d < SPATIAL; d++)
        if (out[d] < least || out[d] > 1 << 24) return false;
    return true;
}

static bool read_padding(const module *m, conv_geometry *g) {
    const value *padding = tare__module_config(m, "padding");
    if (padding == NULL || padding->kind != VALUE_STRING) {
        if (!read_spatial(m, "padding", g->dims, 0, 0, g->pad_before)) return false;
        memcpy(g->pad_after, g->pad_before, sizeof g->pad_after);
        return true;
    }
    const bool same = strcmp(padding->as.text, "same") == 0;
    if (!same && strcmp(padding->as.text, "valid") != 0) return false;
    for (int d = 0; same && d < SPATIAL; d++) {
        const int64_t total = g->dilation[d] * (g->kernel[d] - 1);
        g->pad_before[d] = total / 2;
        g->pad_after[d] = total - total / 2;
    }
    return true;
}

// Transposed convolutions only support zero padding, as in torch.
static bool read_padding_mode(const module *m, conv_geometry *g) {
    const value *mode = tare__module_config(m, "padding_mode");
    if (mode == NULL) return true;
    if (mode->kind != VALUE_STRING) return false;
    g->reflects = strcmp(mode->as.text, "reflect") == 0;
    return g->reflects ? !g->is_transposed : strcmp(mode->as.text, "zeros") == 0;
}

static bool read_channels(const module *m, const tare_tensor *w, conv_geometry *g) {
    g->groups = tare__module_int(m, "groups", 1);
    if (g->groups < 1 || g->groups > INT32_MAX || w->shape[0] < 1 || w->shape[1] < 1) return false;
    if (w->shape[0] % g->groups != 0 || w->shape[1] > INT64_MAX / g->groups) return false;
    g->out_channels = g->is_transposed ? w->shape[1] * g->groups : w->shape[0];
    g->in_channels = g->is_transposed ? w->shape[0] : w->shape[1] * g->groups;
    return true;
}

static tare_status read_geometry(const module *m, const tare_tensor *w, conv_geometry *g,
                                 tare_error *err) {
    *g = (conv_geometry){.dims = m->class->dims, .is_transposed = is_transposed(m)};
    for (int d = 0; d < SPATIAL; d++) {
        const int from = d - (SPATIAL - g->dims);
        g->kernel[d] = from < 0 ? 1 : w->shape[2 + from];
        if (g->kernel[d] < 1 || g->kernel[d] > INT32_MAX)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: the weight has an empty kernel",
                              m->class->name);
    }
    const bool ok = read_channels(m, w, g) && read_spatial(m, "stride", g->dims, 1, 1, g->stride) &&
                    read_spatial(m, "dilation", g->dims, 1, 1, g->dilation) &&
                    read_spatial(m, "output_padding", g->dims, 0, 0, g->output_padding) &&
                    read_padding(m, g) && read_padding_mode(m, g);
    if (ok) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "%s: stride, padding, dilation or groups do not make a quantized convolution",
                      m->class->name);
}

bool tare__conv_output_size(const conv_geometry *g, const int64_t *in, int64_t *out) {
    for (int d = 0; d < SPATIAL; d++) {
        const int64_t reach = g->dilation[d] * (g->kernel[d] - 1),
                      pads = g->pad_before[d] + g->pad_after[d];
        if (in[d] < 1 || in[d] > INT32_MAX) return false;
        if (g->is_transposed) {
            out[d] = (in[d] - 1) * g->stride[d] - pads + reach + g->output_padding[d] + 1;
            if (out[d] < 1) return false;
            continue;
        }
        if (in[d] + pads < reach + 1) return false;
        if (g->reflects && (g->pad_before[d] >= in[d] || g->pad_after[d] >= in[d])) return false;
        out[d] = (in[d] + pads - reach - 1) / g->stride[d] + 1;
    }
    return true;
}

bool tare__conv_sizes(const conv_geometry *g, const tare_tensor *x, int64_t sizes[5]) {
    if (x->ndim != g->dims + 2 && x->ndim != g->dims + 1) return false;
    const int batched = x->ndim == g->dims + 2 ? 1 : 0;
    sizes[0] = batched ? x->shape[0] : 1;
    sizes[1] = x->shape[batched];
    for (int d = 0; d < SPATIAL; d++) {
        const int from = d - (SPATIAL - g->dims);
        sizes[2 + d] = from < 0 ? 1 : x->shape[batched + 1 + from];
    }
    return true;
}

// --- reading ---

// Reads everything except the output's parameters.
tare_status tare__quantized_weights_read(const module *m, quantized_layer *out, tare_error *err) {
    const fused_with fused = m->class->fused;
    *out = (quantized_layer){
        .module = m,
        .weight = tare__module_tensor(m, "weight"),
        .bias = tare__module_tensor(m, "bias"),
        .relu = fused == FUSED_RELU || fused == FUSED_ADD_RELU,
        .is_plain = fused == FUSED_NONE || fused == FUSED_RELU,
        .adds = fused == FUSED_ADD || fused == FUSED_ADD_RELU,
        .quantized_min = tare__module_int(m, "code_min", INT8_MIN),
        .quantized_max = tare__module_int(m, "code_max", UINT8_MAX),
    };
    const bool is_linear = strcmp(m->class->op, "linear") == 0;
    TARE_TRY(check_weight(m, out, is_linear ? 2 : m->class->dims + 2, err));
    if (!is_linear) TARE_TRY(read_geometry(m, out->weight, &out->conv, err));
    out->out_channels = is_linear ? out->weight->shape[0] : out->conv.out_channels;
    if (out->weight->q->count != 1 && out->weight->q->count != out->out_channels)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected 1 or %" PRId64 " weight scales, found %" PRId64,
                          m->class->name, out->out_channels, out->weight->q->count);
    TARE_TRY(check_bias(m, out, err));
    return read_rule(m, out, err);
}

tare_status tare__quantized_layer_read(const module *m, const char *call_name, quantized_layer *out,
                                       tare_error *err) {
    TARE_TRY(tare__quantized_weights_read(m, out, err));
    return read_output(m, call_name, out, err);
}

const module *tare__call_layer_module(const op_call *call) {
    return call->module != NULL ? call->module : tare__packed_argument(call);
}

const tare_tensor *tare__call_layer_input(const op_call *call) {
    const value *x = NULL;
    if (call->module == NULL)
        x = call->param[PACKED_INPUT];
    else if (call->arg_count > 0)
        x = &call->args[0];
    return x != NULL && x->kind == VALUE_TENSOR ? x->as.tensor : NULL;
}

const tare_tensor *tare__call_layer_addend(const op_call *call) {
    const value *v = call->module == NULL  ? call->param[PACKED_ADDEND]
                     : call->arg_count > 1 ? &call->args[1]
                                           : NULL;
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

tare_status tare__call_layer_read(op_call *call, quantized_layer *out) {
    if (call->module != NULL)
        return tare__quantized_layer_read(call->module, call->node_name, out, call->err);
    const module *m = NULL;
    double scale, zero_point;
    TARE_TRY(tare__packed_weights(call, &m));
    TARE_TRY(tare__quantized_weights_read(m, out, call->err));
    out->relu = tare__packed_has_relu(call);
    out->gives_floats = tare__packed_gives_floats(call);
    out->adds = tare__packed_adds(call);
    if (out->gives_floats) return TARE_OK;
    if (out->adds) {
        out->is_plain = false;
        TARE_TRY(tare__call_at(call, check_rule(m, out, call->err)));
    }
    TARE_TRY(tare__call_double(call, PACKED_SCALE, 0, &scale));
    TARE_TRY(tare__call_double(call, PACKED_ZERO_POINT, 0, &zero_point));
    return tare__call_at(call, set_output(m, scale, zero_point, out, call->err));
}

tare_status tare__quantized_layer_check(const module *m, tare_error *err) {
    quantized_layer layer;
    return tare__quantized_layer_read(m, NULL, &layer, err);
}

tare_status tare__quantized_layer_requant(const quantized_layer *layer, const qparams *input,
                                          const qparams *output, requant **out, tare_error *err) {
    const qparams *w = layer->weight->q;
    const requant_spec floats = {
        .rule = REQUANT_O,
        .channel_count = layer->out_channels,
        .input_scale = input->scale[0],
        .weight_scale = w->scale,
        .weight_scale_count = w->count,
        .bias = layer->bias != NULL ? tare__f32(layer->bias) : NULL,
        .output_scale = 1,
        .quant_max = UINT8_MAX,
    };
    if (layer->gives_floats) return tare__requant_create(&floats, out, err);
    const requant_spec spec = {
        .rule = layer->rule,
        .channel_count = layer->out_channels,
        .input_scale = input->scale[0],
        .weight_scale = w->scale,
        .weight_scale_count = w->count,
        .bias = layer->bias != NULL ? tare__f32(layer->bias) : NULL,
        .output_scale = output->scale[0],
        .output_zero_point = (int64_t)output->zero_point[0],
        .quant_min = tare__clamp_int(layer->quantized_min, output->quant_min, output->quant_max),
        .quant_max = tare__clamp_int(layer->quantized_max, output->quant_min, output->quant_max),
        .relu = layer->relu,
    };
    return tare__requant_create(&spec, out, err);
}

// --- quantized values ---

tare_status tare__centered_quantized(const tare_tensor *t, int16_t **out, tare_error *err) {
    int16_t *quantized = tare__realloc_array(NULL, (size_t)t->count + 1, sizeof *quantized);
    if (quantized == NULL) return tare__out_of_memory(err);
    const bool per_channel = tare__qscheme_is_per_channel(t->q->scheme);
    const int64_t inner = per_channel ? tare__inner_count(t, t->q->axis) : 1;
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t c = per_channel ? i / inner % t->q->count : 0;
        quantized[i] = (int16_t)(tare__load_quantized(t, i) - (int32_t)t->q->zero_point[c]);
    }
    *out = quantized;
    return TARE_OK;
}

int32_t tare__dot_quantized(const int16_t *x, const int16_t *w, int64_t count) {
    int64_t acc = 0;
    for (int64_t k = 0; k < count; k++) {
        const int32_t product = x[k] * w[k];
        acc += product;
    }
    return tare__wrap_int32(acc);
}
