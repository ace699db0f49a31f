// SPDX-License-Identifier: Apache-2.0
// Writes reference modules, quantized modules and the functions of torch.ops.quantized by their
// definition: quantize(op(dequantize(x))).
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/families/layer.h"
#include "io/onnx/families/quantize.h"
#include "io/onnx/write/state.h"
#include "ops/classes/module_call.h"
#include "ops/quantized/dynamic.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/packed.h"
#include "ops/quantized/rule.h"

// --- weights ---

const char *tare__out_transposed_weight(onnx_out *o, const char *w) {
    const onnx_writer *writer = o->w;
    const out_node *found = NULL;
    for (size_t i = writer->node_count; i-- > 0 && found == NULL;)
        if (strcmp(writer->nodes[i].outputs[0], w) == 0) found = &writer->nodes[i];
    const bool is_quantized = found != NULL && strcmp(found->op_type, "DequantizeLinear") == 0 &&
                              found->input_count == 3 &&
                              tare__out_find_tensor(writer, found->inputs[0]) != NULL;
    if (!is_quantized) return tare__out_swap(o, w, 2, 0, 1);
    const char *quantized = found->inputs[0], *scale = found->inputs[1], *zero = found->inputs[2];
    const out_tensor *scales = tare__out_find_tensor(writer, scale);
    if (scales != NULL && scales->t->ndim == 2) return tare__out_swap(o, w, 2, 0, 1); // of groups
    const bool is_per_channel = scales != NULL && scales->t->ndim == 1;
    const char *y = OUT(o, "DequantizeLinear", tare__out_swap(o, quantized, 2, 0, 1), scale, zero);
    if (is_per_channel) tare__out_attr_int(o, "axis", 1);
    return y;
}

// --- reference modules ---

// Replaces each weight that has quantization parameters by its quantized value.
static void write_reference_module(onnx_out *o) {
    op_call *call = tare__out_call(o);
    value stand_ins[OP_MAX_PARAMS];
    char name[64];
    if (call->op == NULL) {
        tare__out_refuse(o, "ONNX export does not support a %s", call->module->class->name);
        return;
    }
    for (size_t i = 0; i < call->param_count; i++) {
        if (call->param[i] == NULL || call->param[i]->kind != VALUE_TENSOR ||
            tare__op_param_name(call->op, i, name, sizeof name) == 0 ||
            call->param[i]->as.tensor != tare__module_tensor(call->module, name))
            continue;
        const tare_tensor *quantized = tare__out_quantized_weight(o, call->module, name);
        if (quantized == NULL) continue;
        stand_ins[i] = (value){.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)quantized};
        call->param[i] = &stand_ins[i];
    }
    const value *params[OP_MAX_PARAMS];
    memcpy(params, call->param, sizeof params);
    tare__out_as(o, call->op->id, params, call->param_count);
}

// --- layers ---

static void fill_shape(const conv_geometry *g, const tare_tensor *x, conv_shape *c) {
    const int first = SPATIAL - g->dims;
    *c = (conv_shape){.dims = g->dims,
                      .is_transposed = g->is_transposed,
                      .is_unbatched = x->ndim == g->dims + 1,
                      .groups = g->groups,
                      .padding_mode = g->reflects ? "reflect" : NULL};
    for (int d = 0; d < g->dims; d++) {
        c->kernel[d] = g->kernel[first + d];
        c->stride[d] = g->stride[first + d];
        c->dilation[d] = g->dilation[first + d];
        c->pad_before[d] = g->pad_before[first + d];
        c->pad_after[d] = g->pad_after[first + d];
        c->output_padding[d] = g->output_padding[first + d];
    }
}

static const char *layer_weight(onnx_out *o, const quantized_layer *layer) {
    const tare_tensor *w = layer->weight;
    const char *name = tare__out_tensor(o, w);
    const int64_t *k = layer->conv.kernel + SPATIAL - layer->conv.dims;
    if (layer->conv.dims == 0 || w->ndim == layer->conv.dims + 2) return name;
    int64_t shape[5] = {w->shape[0], w->shape[1]};
    for (int d = 0; d < layer->conv.dims; d++) shape[2 + d] = k[d];
    return tare__out_reshape(o, name, shape, (size_t)layer->conv.dims + 2);
}

// An activation that lowering expressed by bounds of the quantized values.
static const char *bounded(onnx_out *o, const char *y, const quantized_layer *layer) {
    const tare_tensor *t = tare__out_result_meta(o);
    if (t->q == NULL) return y;
    const bool cuts_below = layer->quantized_min > t->q->quant_min;
    const bool cuts_above = layer->quantized_max < t->q->quant_max;
    const double scale = t->q->scale[0], zero = t->q->zero_point[0];
    if (!cuts_below && !cuts_above) return y;
    if (!cuts_above && (double)layer->quantized_min == zero) return OUT(o, "Relu", y);
    const char *low = "", *high = "";
    if (cuts_below)
        low = tare__out_number(o, TARE_FLOAT32, ((double)layer->quantized_min - zero) * scale);
    if (cuts_above)
        high = tare__out_number(o, TARE_FLOAT32, ((double)layer->quantized_max - zero) * scale);
    return OUT(o, "Clip", y, low, high);
}

static const char *activated(onnx_out *o, const char *y, const quantized_layer *layer) {
    const op_call *call = tare__out_call(o);
    const module *m = call->module;
    const fused_with fused = m != NULL ? m->class->fused : FUSED_NONE;
    const tare_tensor *addend = layer->adds ? tare__call_layer_addend(call) : NULL;
    if (layer->adds && addend == NULL) tare__out_refuse(o, "its addend is not a tensor");
    if (addend != NULL) y = OUT(o, "Add", y, tare__out_tensor(o, addend));
    if (layer->relu || fused == FUSED_ADD_RELU) y = OUT(o, "Relu", y);
    if (fused == FUSED_TANH) y = OUT(o, "Tanh", y);
    if (fused == FUSED_LEAKY_RELU) {
        y = OUT(o, "LeakyRelu", y);
        tare__out_attr_float(o, "alpha", tare__module_double(m, "negative_slope", 0.01));
    }
    return bounded(o, y, layer);
}

static void write_layer(onnx_out *o) {
    op_call *call = tare__out_call(o);
    quantized_layer layer = {0};
    tare__out_try(o, tare__call_layer_read(call, &layer));
    if (tare__out_failed(o)) return;
    const tare_tensor *x = tare__call_layer_input(call);
    const char *in = tare__out_tensor(o, x), *w = layer_weight(o, &layer), *y;
    const char *bias = layer.bias != NULL ? tare__out_tensor(o, layer.bias) : "";
    if (layer.conv.dims > 0) {
        conv_shape c;
        fill_shape(&layer.conv, x, &c);
        y = tare__out_conv(o, &c, in, w, bias);
    } else {
        const char *transposed = x->ndim == 2 ? NULL : tare__out_transposed_weight(o, w);
        y = tare__out_linear(o, x->ndim, in, w, transposed, bias);
    }
    tare__out_result(o, activated(o, y, &layer));
}

// --- layers that quantize their input when they run ---

static dynamic_spec spec_of(const dynamic_weights *w) {
    if (!w->is_decomposed)
        return tare__out_dynamic_spec(false, w->reduce_range && w->rule != REQUANT_Q);
    return (dynamic_spec){.quant_min = w->quant_min,
                          .quant_max = w->quant_max,
                          .eps = (double)w->eps,
                          .storage = w->quant_min < 0 ? TARE_INT8 : TARE_UINT8,
                          .symmetric = w->is_symmetric,
                          .middle = w->symmetric_zero_point};
}

static void write_dynamic_layer(onnx_out *o) {
    op_call *call = tare__out_call(o);
    dynamic_weights w = {0};
    bool relu = false;
    tare__out_try(o, tare__dynamic_linear_read(call, &w, &relu));
    if (tare__out_failed(o)) return;
    const tare_tensor *x = tare__call_layer_input(call);
    const char *in = tare__out_tensor(o, x), *weight = tare__out_tensor(o, w.weight);
    if (w.weight->dtype == TARE_FLOAT16) {
        weight = tare__out_cast(o, weight, TARE_FLOAT16, TARE_FLOAT32);
    } else {
        const char *scale, *zero_point;
        const dynamic_spec s = spec_of(&w);
        in = tare__out_quantize_dynamic(o, x, in, &s, &scale, &zero_point);
        in = OUT(o, "DequantizeLinear", in, scale, zero_point);
    }
    const char *bias = w.bias != NULL ? tare__out_tensor(o, w.bias) : "";
    const char *transposed = x->ndim == 2 ? NULL : tare__out_transposed_weight(o, weight);
    const char *y = tare__out_linear(o, x->ndim, in, weight, transposed, bias);
    tare__out_result(o, relu ? OUT(o, "Relu", y) : y);
}

static void write_dynamic_module(onnx_out *o) {
    const char *op = tare__out_call(o)->module->class->op;
    if (op != NULL && strcmp(op, "linear") == 0)
        write_dynamic_layer(o);
    else
        tare__out_refuse(o, "ONNX has no %s with dynamically quantized gates",
                         tare__out_call(o)->module->class->print_name);
}

// --- every other module ---

static void embedding_module(onnx_out *o) {
    const op_call *call = tare__out_call(o);
    const tare_tensor *w = tare__module_tensor(call->module, "weight");
    if (w == NULL || call->arg_count < 1 || call->args[0].kind != VALUE_TENSOR) {
        tare__out_refuse(o, "its weight or its indices are missing");
        return;
    }
    const char *table = tare__out_tensor(o, w);
    tare__out_result(o, OUT(o, "Gather", table, tare__out_quantized(o, call->args[0].as.tensor)));
}

static void ruled_module(onnx_out *o) {
    module_rule rule;
    op_call *call = tare__out_call(o);
    tare__out_try(o, tare__module_rule_bind(call, &rule));
    if (tare__out_failed(o)) return;
    if (rule.rule.relu) tare__out_then_relu(o);
    tare__out_as(o, rule.rule.op->id, rule.rule.param, OP_MAX_PARAMS);
}

static void write_quantized_module(onnx_out *o) {
    const char *op = tare__out_call(o)->module->class->op;
    if (op == NULL)
        tare__out_refuse(o, "ONNX export does not support it");
    else if (strcmp(op, "linear") == 0 || strcmp(op, "conv") == 0 ||
             strcmp(op, "conv_transpose") == 0)
        write_layer(o);
    else if (strcmp(op, "embedding") == 0)
        embedding_module(o);
    else if (strcmp(op, "quantize_per_tensor") == 0 || strcmp(op, "dequantize") == 0)
        tare__out_result(o, tare__out_tensor(o, tare__out_call(o)->args[0].as.tensor));
    else if (strcmp(op, "embedding_bag") == 0)
        tare__out_refuse(o, "ONNX has no sums of embeddings");
    else
        ruled_module(o);
}

static void write_observer_module(onnx_out *o) {
    tare__out_refuse(o, "observers and fake quantizers are not part of a finished model: convert "
                        "it first");
}

static void write_fused_module(onnx_out *o) {
    tare__out_refuse(o, "a fused module with two inputs is not written");
}

// --- functions ---

static void arithmetic(onnx_out *o) {
    const char *id = tare__out_call(o)->op->id;
    const char *op_type = strstr(id, "add") != NULL ? "Add" : "Mul";
    if (strstr(id, "relu") != NULL) tare__out_then_relu(o);
    tare__out_result(o, OUT(o, op_type, tare__out_operand(o, 0, TARE_FLOAT32),
                            tare__out_operand(o, 1, TARE_FLOAT32)));
}

static void write_ruled(onnx_out *o) {
    rule_call rule;
    bool known = false;
    tare__out_try(o, tare__function_rule_bind(tare__out_call(o), &rule, &known));
    if (!known) tare__out_refuse(o, "ONNX export does not support it");
    if (tare__out_failed(o)) return;
    if (rule.relu) tare__out_then_relu(o);
    tare__out_as(o, rule.op->id, rule.param, OP_MAX_PARAMS);
}

#define AND_RELU(name, nodes, function)                                                            \
    {"quantized." name, nodes, .write = function}, {                                               \
        "quantized." name "_relu", nodes ", Relu", .write = function                               \
    }
#define FLOATS(name, nodes)                                                                        \
    { "quantized." name "_float", nodes, .write = write_layer }

// clang-format off
static const onnx_write_rule write_rows[] = {
    {"dynamic.module", "DynamicQuantizeLinear, Gemm, MatMul", .write = write_dynamic_module},
    {"fused.module", "", .write = write_fused_module},
    {"observer.module", "", .write = write_observer_module},
    {"quantized.module", "Conv, Gemm, MatMul, and those of the float operators", .write = write_quantized_module},
    {"reference.module", "those of the float module", .write = write_reference_module},
    FLOATS("linear", "Gemm, MatMul"),
    {"quantized.linear_decomposed_dynamic", "DynamicQuantizeLinear, Gemm, MatMul", .write = write_dynamic_layer},
    {"quantized.linear_relu_decomposed_dynamic", "DynamicQuantizeLinear, Gemm, MatMul, Relu", .write = write_dynamic_layer},
    {ONNX_RULED, "those of the float operator", .write = write_ruled},
    AND_RELU("add", "Add", arithmetic),
    AND_RELU("mul", "Mul", arithmetic),
    AND_RELU("linear", "Gemm, MatMul", write_layer),
    AND_RELU("conv1d", "Conv", write_layer),
    AND_RELU("conv2d", "Conv", write_layer),
    AND_RELU("conv3d", "Conv", write_layer),
    AND_RELU("conv2d_add", "Conv, Add", write_layer),
    {"quantized.conv_transpose1d", "ConvTranspose", .write = write_layer},
    {"quantized.conv_transpose2d", "ConvTranspose", .write = write_layer},
    {"quantized.conv_transpose3d", "ConvTranspose", .write = write_layer},
    FLOATS("conv1d", "Conv"),
    FLOATS("conv2d", "Conv"),
    FLOATS("conv3d", "Conv"),
    FLOATS("conv_transpose1d", "ConvTranspose"),
    FLOATS("conv_transpose2d", "ConvTranspose"),
    FLOATS("conv_transpose3d", "ConvTranspose"),
    {"quantized.linear_dynamic", "DynamicQuantizeLinear, Gemm, MatMul", .write = write_dynamic_layer},
    {"quantized.linear_relu_dynamic", "DynamicQuantizeLinear, Gemm, MatMul, Relu", .write = write_dynamic_layer},
    {"quantized.linear_dynamic_fp16", "Gemm, MatMul", .write = write_dynamic_layer},
    {"quantized.linear_relu_dynamic_fp16", "Gemm, MatMul, Relu", .write = write_dynamic_layer},
};
// clang-format on

const onnx_family tare__onnx_quantized_family = {.write = ONNX_WRITE_RULES(write_rows)};
