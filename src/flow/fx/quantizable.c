// SPDX-License-Identifier: Apache-2.0
// LSTM and MultiheadAttention as custom modules, which are split into submodules.
#include "flow/fx/quantizable.h"

#include <stdio.h>
#include <string.h>

#include "flow/lower/fx/lower.h"
#include "ops/op.h"
#include "ops/quantized/quantize.h"
#include "ops/rules.h"

#define NN    "torch.nn."
#define NNQ   "torch.ao.nn.quantized."
#define NNQA  "torch.ao.nn.quantizable."
#define AO    "torch.ao.quantization."
#define WATCH "activation_post_process"

// The parameters for building a custom module.
typedef struct builder {
    const tare_context *context;
    const module *source; // the float module
    const tare_qconfig *qconfig;
    tare_error *err;
} builder;

bool tare__is_quantizable(const module_class *class) {
    return class->role == ROLE_OBSERVED && class->op != NULL;
}

// --- submodules ---

// Adds a child of a built-in class; lent.
static tare_status add_child(const builder *b, module *parent, const char *name,
                             const char *class_name, module **out) {
    module *made = NULL;
    TARE_TRY(
        tare__module_create(tare__class_find(&b->context->classes, class_name), &made, b->err));
    made->training = b->source->training;
    const tare_status status = tare__module_set_child(parent, name, made, b->err);
    tare__module_release(made); // the parent holds a reference
    *out = made;
    return status;
}

static tare_status add_children(const builder *b, module *parent, const char *class_name,
                                const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        module *made = NULL;
        TARE_TRY(add_child(b, parent, names[i], class_name, &made));
    }
    return TARE_OK;
}

// Rows [begin, begin + count) of a tensor, copied.
static tare_status rows_of(const tare_tensor *t, int64_t begin, int64_t count, tare_tensor **out,
                           tare_error *err) {
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    if (t->dtype != TARE_FLOAT32 || t->data == NULL || t->ndim < 1 || begin + count > shape[0])
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a projection of %lld rows does not fit its weights", (long long)count);
    const size_t row = t->shape[0] > 0 ? tare__tensor_bytes(t) / (size_t)t->shape[0] : 0;
    shape[0] = count;
    TARE_TRY(tare_tensor_create(t->dtype, t->ndim, shape, out, err));
    memcpy((*out)->data, (const char *)t->data + (size_t)begin * row, (size_t)count * row);
    return TARE_OK;
}

static tare_status set_int(module *m, const char *key, int64_t number, tare_error *err) {
    const value v = tare__int(number);
    return tare__module_set_config(m, key, &v, err);
}

static tare_status add_linear(const builder *b, module *parent, const char *name,
                              tare_tensor *weight, tare_tensor *bias) {
    module *made = NULL;
    if (weight == NULL || weight->ndim != 2)
        return tare__fail(b->err, TARE_INVALID_ARGUMENT, "%s: expected a weight for '%s'",
                          b->source->class->name, name);
    TARE_TRY(add_child(b, parent, name, NN "Linear", &made));
    TARE_TRY(set_int(made, "in_features", weight->shape[1], b->err));
    TARE_TRY(set_int(made, "out_features", weight->shape[0], b->err));
    TARE_TRY(tare__module_set_tensor(made, "weight", weight, true, b->err));
    return tare__module_set_tensor(made, "bias", bias, true, b->err);
}

// --- LSTM ---

static tare_tensor *gate_tensor(const builder *b, const char *kind, size_t layer, bool reverse) {
    char name[80];
    snprintf(name, sizeof name, "%s_l%zu%s", kind, layer, reverse ? "_reverse" : "");
    return tare__module_tensor(b->source, name);
}

static tare_status build_direction(const builder *b, module *parent, size_t layer, bool reverse) {
    static const char *const functionals[] = {"fgate_cx", "igate_cgate", "fgate_cx_igate_cgate",
                                              "ogate_cy"};
    static const char *const gates[] = {"gates"}, *const sigmoids[] = {"input_gate", "forget_gate"},
                             *const tanhs[] = {"cell_gate"}, *const last[] = {"output_gate"};
    module *one = NULL, *cell = NULL;
    TARE_TRY(
        add_child(b, parent, reverse ? "layer_bw" : "layer_fw", NNQA "_LSTMSingleLayer", &one));
    TARE_TRY(add_child(b, one, "cell", NNQA "LSTMCell", &cell));
    TARE_TRY(add_linear(b, cell, "igates", gate_tensor(b, "weight_ih", layer, reverse),
                        gate_tensor(b, "bias_ih", layer, reverse)));
    TARE_TRY(add_linear(b, cell, "hgates", gate_tensor(b, "weight_hh", layer, reverse),
                        gate_tensor(b, "bias_hh", layer, reverse)));
    TARE_TRY(add_children(b, cell, NNQ "FloatFunctional", gates, 1));
    TARE_TRY(add_children(b, cell, NN "Sigmoid", sigmoids, 2));
    TARE_TRY(add_children(b, cell, NN "Tanh", tanhs, 1));
    TARE_TRY(add_children(b, cell, NN "Sigmoid", last, 1));
    return add_children(b, cell, NNQ "FloatFunctional", functionals, 4);
}

static tare_status build_lstm(const builder *b, module *made) {
    const int64_t layers = tare__module_int(b->source, "num_layers", 1);
    const bool both = tare__module_bool(b->source, "bidirectional", false);
    module *list = NULL;
    if (tare__module_int(b->source, "proj_size", 0) != 0)
        return tare__fail(b->err, TARE_UNSUPPORTED, "an LSTM with proj_size cannot be taken apart");
    TARE_TRY(add_child(b, made, "layers", NN "ModuleList", &list));
    for (int64_t i = 0; i < layers; i++) {
        char name[32];
        module *layer = NULL;
        snprintf(name, sizeof name, "%lld", (long long)i);
        TARE_TRY(add_child(b, list, name, NNQA "_LSTMLayer", &layer));
        for (int d = 0; d < (both ? 2 : 1); d++)
            TARE_TRY(build_direction(b, layer, (size_t)i, d == 1));
    }
    return TARE_OK;
}

// --- attention ---

// Rows of the packed projections, or the projection's own weight.
static tare_status build_projection(const builder *b, module *made, int64_t i) {
    static const char *const names[] = {"linear_Q", "linear_K", "linear_V"};
    static const char *const owns[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    const int64_t embed = tare__module_int(b->source, "embed_dim", 0);
    const tare_tensor *packed = tare__module_tensor(b->source, "in_proj_weight");
    const tare_tensor *biases = tare__module_tensor(b->source, "in_proj_bias");
    tare_tensor *weight = NULL, *bias = NULL;
    tare_status status = TARE_OK;
    if (packed != NULL)
        status = rows_of(packed, i * embed, embed, &weight, b->err);
    else
        weight = tare_tensor_retain(tare__module_tensor(b->source, owns[i]));
    if (status == TARE_OK && biases != NULL)
        status = rows_of(biases, i * embed, embed, &bias, b->err);
    if (status == TARE_OK) status = add_linear(b, made, names[i], weight, bias);
    tare_tensor_release(weight);
    tare_tensor_release(bias);
    return status;
}

static tare_status build_attention(const builder *b, module *made) {
    static const char *const biases[] = {"bias_k", "bias_v"};
    static const char *const products[] = {"q_scaling_product"};
    static const char *const stubs[] = {"quant_attn_output", "quant_attn_output_weights"};
    static const char *const leaves[] = {"dequant_q", "dequant_k", "dequant_v"};
    const module *out = tare__module_child(b->source, "out_proj");
    if (out == NULL)
        return tare__fail(b->err, TARE_INVALID_ARGUMENT, "%s: expected a child 'out_proj'",
                          b->source->class->name);
    for (int i = 0; i < 2; i++) {
        tare_tensor *t = tare__module_tensor(b->source, biases[i]);
        if (t != NULL) TARE_TRY(tare__module_set_tensor(made, biases[i], t, true, b->err));
    }
    TARE_TRY(add_linear(b, made, "out_proj", tare__module_tensor(out, "weight"),
                        tare__module_tensor(out, "bias")));
    for (int64_t i = 0; i < 3; i++) TARE_TRY(build_projection(b, made, i));
    TARE_TRY(add_children(b, made, NNQ "FloatFunctional", products, 1));
    TARE_TRY(add_children(b, made, AO "QuantStub", stubs, 2));
    return add_children(b, made, AO "DeQuantStub", leaves, 3);
}

// --- observers inside ---

static bool is_class(const module *m, const char *name) {
    return strcmp(m->class->name, name) == 0;
}

// torch's eager prepare observes layers with weights, functional modules, and quant stubs.
static bool is_watched(const module *m) {
    const bool is_weighted = tare__op_has(tare__class_row(m->class), OP_WEIGHTED);
    return (m->class->role == ROLE_FLOAT && is_weighted) || is_class(m, NNQ "FloatFunctional") ||
           is_class(m, AO "QuantStub");
}

static tare_status watch(const builder *b, module *m) {
    for (size_t i = 0; i < m->child_count; i++) {
        module *child = m->children[i].module, *observer = NULL;
        if (!is_watched(child)) {
            TARE_TRY(watch(b, child));
            continue;
        }
        TARE_TRY(tare__observer_spec_instantiate(&b->context->observers, b->qconfig->activation,
                                                 &observer, b->err));
        const tare_status status = tare__module_set_child(child, WATCH, observer, b->err);
        tare__module_release(observer);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status build(const builder *b, module *made) {
    made->training = b->source->training;
    TARE_TRY(tare__module_copy_config(made, b->source, b->err));
    TARE_TRY(tare__class_op(made->class) == TARE_OP_LSTM ? build_lstm(b, made)
                                                         : build_attention(b, made));
    return watch(b, made);
}

tare_status tare__quantizable_observe(const tare_context *context, const module_class *observed,
                                      const module *float_module, const tare_qconfig *q,
                                      module **out, tare_error *err) {
    const builder b = {.context = context, .source = float_module, .qconfig = q, .err = err};
    if (float_module->class->op == NULL || strcmp(float_module->class->op, observed->op) != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "Expected a module that %s observes, got %s",
                          observed->name, float_module->class->name);
    if (q == NULL || q->activation == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "The float module must have 'qconfig'");
    module *made = NULL;
    TARE_TRY(tare__module_create(observed, &made, err));
    return tare__module_hand_out(made, build(&b, made), out);
}

// --- quantized submodules ---

typedef struct quantizer {
    convert_pass *pass;
    const tare_qconfig *qconfig;
} quantizer;

static tare_error *err_of(const quantizer *z) {
    return z->pass->base->err;
}

static tare_status quantize_tree(const quantizer *z, const module_class *class, const module *from,
                                 module **out);

// Scale and zero point from the submodule's observer, in the form of torch's modules. Products with
// a constant are not observed, as in torch: 1 and 0.
static tare_status propose(const quantizer *z, const module *submodule, tare_tensor **scale,
                           tare_tensor **zero_point) {
    const module *observer = tare__module_child(submodule, WATCH);
    const qparams *q = NULL;
    bool is_calibrated = false;
    if (observer == NULL)
        return tare__fail(err_of(z), TARE_INVALID_ARGUMENT, "a %s without its observer",
                          submodule->class->name);
    TARE_TRY(tare__observer_qparams(observer, &q, &is_calibrated, err_of(z)));
    tare_status status = tare__convert_check(q, err_of(z));
    if (status == TARE_OK && !is_calibrated && submodule->class->role == ROLE_FLOAT &&
        !z->pass->options->is_lenient)
        status =
            tare__fail(err_of(z), TARE_INVALID_ARGUMENT, "an observer inside has seen no data");
    if (status == TARE_OK) status = tare__tensor_scalar_float((float)q->scale[0], scale, err_of(z));
    if (status == TARE_OK)
        status = tare__tensor_scalar_int((int64_t)q->zero_point[0], zero_point, err_of(z));
    tare__qparams_release(q);
    return status;
}

static tare_status quantize_linear(const quantizer *z, const module *submodule, tare_tensor *scale,
                                   tare_tensor *zero_point, module **out) {
    module *reference = NULL;
    TARE_TRY(tare__convert_reference(z->pass, NNQ "reference.Linear", submodule, z->qconfig, NULL,
                                     NULL, &reference));
    const tare_status status =
        tare__quantized_from(z->pass, reference, FUSED_NONE, scale, zero_point, out);
    tare__module_release(reference);
    return status;
}

static tare_status hold_output(const quantizer *z, const char *class_name, tare_tensor *scale,
                               tare_tensor *zero_point, module **out) {
    const registry *classes = &z->pass->base->model->context->classes;
    module *made = NULL;
    TARE_TRY(tare__module_create(tare__class_find(classes, class_name), &made, err_of(z)));
    tare_status status = tare__module_set_tensor(made, "scale", scale, false, err_of(z));
    if (status == TARE_OK)
        status = tare__module_set_tensor(made, "zero_point", zero_point, false, err_of(z));
    return tare__module_hand_out(made, status, out);
}

static tare_status quantize_functional(const quantizer *z, const module *submodule,
                                       tare_tensor *scale, tare_tensor *zero_point, module **out) {
    (void)submodule;
    module *made = NULL, *identity = NULL;
    const registry *classes = &z->pass->base->model->context->classes;
    TARE_TRY(hold_output(z, NNQ "QFunctional", scale, zero_point, &made));
    tare_status status =
        tare__module_create(tare__class_find(classes, NN "Identity"), &identity, err_of(z));
    if (status == TARE_OK) status = tare__module_set_child(made, WATCH, identity, err_of(z));
    tare__module_release(identity);
    return tare__module_hand_out(made, status, out);
}

static tare_status quantize_stub(const quantizer *z, const module *submodule, tare_tensor *scale,
                                 tare_tensor *zero_point, module **out) {
    const value dtype =
        tare__dtype_value(tare__observer_info(tare__module_child(submodule, WATCH))->dtype);
    module *made = NULL;
    TARE_TRY(hold_output(z, NNQ "Quantize", scale, zero_point, &made));
    return tare__module_hand_out(made, tare__module_set_config(made, "dtype", &dtype, err_of(z)),
                                 out);
}

static tare_status quantize_watched(const quantizer *z, const module *submodule, module **out) {
    tare_tensor *scale = NULL, *zero_point = NULL;
    tare_status status = propose(z, submodule, &scale, &zero_point);
    if (status == TARE_OK)
        status = (is_class(submodule, NNQ "FloatFunctional") ? quantize_functional
                  : is_class(submodule, AO "QuantStub")
                      ? quantize_stub
                      : quantize_linear)(z, submodule, scale, zero_point, out);
    tare_tensor_release(scale);
    tare_tensor_release(zero_point);
    return status;
}

static tare_status quantize_submodule(const quantizer *z, const module *submodule, module **out) {
    const registry *classes = &z->pass->base->model->context->classes;
    if (is_watched(submodule)) return quantize_watched(z, submodule, out);
    const module_class *made = is_class(submodule, AO "DeQuantStub")
                                   ? tare__class_find(classes, NNQ "DeQuantize")
                                   : submodule->class;
    return quantize_tree(z, made, submodule, out);
}

static tare_status fill_tree(const quantizer *z, module *made, const module *from) {
    made->training = from->training;
    TARE_TRY(tare__module_copy_config(made, from, err_of(z)));
    TARE_TRY(tare__module_copy_tensors(made, from, err_of(z)));
    for (size_t i = 0; i < from->child_count; i++) {
        module *child = NULL;
        TARE_TRY(tare__at(err_of(z), quantize_submodule(z, from->children[i].module, &child),
                          "'%s'", from->children[i].name));
        const tare_status status =
            tare__module_set_child(made, from->children[i].name, child, err_of(z));
        tare__module_release(child);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status quantize_tree(const quantizer *z, const module_class *class, const module *from,
                                 module **out) {
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, err_of(z)));
    return tare__module_hand_out(made, fill_tree(z, made, from), out);
}

// The extra key and value rows of an attention become quint8, each with its own range.
static tare_status quantize_rows(const quantizer *z, module *made) {
    static const char *const names[] = {"bias_k", "bias_v"};
    for (int i = 0; i < 2; i++) {
        const tare_tensor *t = tare__module_tensor(made, names[i]);
        if (t == NULL) continue;
        dynamic_range range = {.quant_min = 0, .quant_max = 255};
        tare__find_range(t, &range.min, &range.max);
        const dynamic_qparams chosen = tare__choose_dynamic_qparams(&range);
        qparams *q = tare__qparams_per_tensor(TARE_QUINT8, chosen.scale, chosen.zero_point);
        tare_tensor *quantized = NULL;
        if (q == NULL) return tare__out_of_memory(err_of(z));
        tare_status status = tare__quantize_tensor(t, q, &quantized, err_of(z));
        tare__qparams_release(q);
        if (status == TARE_OK)
            status = tare__module_set_tensor(made, names[i], quantized, false, err_of(z));
        tare_tensor_release(quantized);
        TARE_TRY(status);
    }
    return TARE_OK;
}

tare_status tare__quantizable_quantize(convert_pass *c, const module_class *quantized,
                                       const module *observed, const tare_qconfig *q,
                                       module **out) {
    const quantizer z = {.pass = c, .qconfig = q};
    module *made = NULL;
    if (q == NULL || q->weight == NULL)
        return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                          "a %s needs a qconfig to be quantized", observed->class->name);
    TARE_TRY(quantize_tree(&z, quantized, observed, &made));
    return tare__module_hand_out(made, quantize_rows(&z, made), out);
}
