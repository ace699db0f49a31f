// SPDX-License-Identifier: Apache-2.0
// Lowering of reference modules: dequantize - reference module - quantize becomes one integer
// module.
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "flow/lower/fx/lower.h"
#include "flow/lower/groups.h"
#include "ops/classes/reference.h"
#include "ops/quantized/frozen_rule.h"
#include "ops/quantized/layer.h"

static const module_class *quantized_class(const convert_pass *c, const module *from,
                                           fused_with fused) {
    return tare__class_triple(&c->base->model->context->classes, from->class->op, from->class->dims,
                              ROLE_QUANTIZED, fused);
}

// All weights of a module have the dtype of its qconfig.
static tare_dtype dtype_of_weight(const module *reference) {
    for (size_t i = 0; i < reference->config_count; i++) {
        const value *v = &reference->config[i].value;
        if (tare__starts_with(reference->config[i].name, "weight") && v->kind == VALUE_DTYPE)
            return v->as.dtype;
    }
    return TARE_DTYPE_UNSET;
}

static bool has_integer_dtype(const module *reference) {
    const tare_dtype dtype = dtype_of_weight(reference);
    return dtype == TARE_QINT8 || dtype == TARE_QUINT8;
}

// A padding mode that integer convolutions do not have; NULL: they have it.
static const char *foreign_padding(const module *reference) {
    const value *mode = reference != NULL ? tare__module_config(reference, "padding_mode") : NULL;
    if (mode == NULL || mode->kind != VALUE_STRING) return NULL;
    const bool is_known =
        strcmp(mode->as.text, "replicate") != 0 && strcmp(mode->as.text, "circular") != 0;
    return is_known ? NULL : mode->as.text;
}

static bool accepts_module(const convert_pass *c, const node *n, bool with_add) {
    const module *called = tare__called_module(c->base->model, n);
    if (called == NULL) return false;
    // A module that an earlier call lowered matches again: each call keeps its own output scale.
    if (called->class->role == ROLE_QUANTIZED)
        return (called->class->fused == FUSED_ADD || called->class->fused == FUSED_ADD_RELU) ==
               with_add;
    const module *reference = tare__reference_of(called);
    if (reference == NULL || !has_integer_dtype(reference)) return false;
    if (foreign_padding(reference) != NULL) return false;
    // Transposed convolutions are lowered separately; in torch their modules are no static pattern.
    const op_info *op = tare__class_row(reference->class);
    if (!tare__op_has(op, OP_CONVOLUTION) && tare__op_id(op) != TARE_OP_LINEAR) return false;
    const fused_with fused = called == reference ? FUSED_NONE : called->class->fused;
    if ((fused == FUSED_ADD || fused == FUSED_ADD_RELU) != with_add) return false;
    return quantized_class(c, reference, fused) != NULL;
}

static bool accepts_one_input(const convert_pass *c, const node *n) {
    return accepts_module(c, n, false);
}

static bool accepts_two_inputs(const convert_pass *c, const node *n) {
    return n->arg_count == 2 && tare__node_arg(n, 0) != NULL && tare__node_arg(n, 1) != NULL &&
           accepts_module(c, n, true);
}

// The parameters of a reference module's weights: configs and tensors NAME_SUFFIX for a tensor
// NAME.
static bool is_weight_param(const module *reference, const char *key) {
    static const char *const suffixes[] = {"_dtype", "_qscheme",   "_scale",    "_zero_point",
                                           "_axis",  "_quant_min", "_quant_max"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (!tare__ends_with(key, suffixes[i])) continue;
        const size_t length = strlen(key) - strlen(suffixes[i]);
        for (size_t k = 0; k < reference->tensor_count; k++) {
            const char *name = reference->tensors[k].name;
            if (strlen(name) == length && strncmp(name, key, length) == 0) return true;
        }
    }
    return false;
}

static bool is_weight(const module *reference, const char *name) {
    char key[256];
    (void)snprintf(key, sizeof key, "%s_dtype", name);
    return tare__module_config(reference, key) != NULL;
}

static tare_status copy_config(module *to, const module *from, tare_error *err) {
    for (size_t i = 0; i < from->config_count; i++) {
        const char *key = from->config[i].name;
        if (is_weight_param(from, key)) continue;
        TARE_TRY(tare__module_set_config(to, key, &from->config[i].value, err));
    }
    return TARE_OK;
}

// Copies the parameter of a fused activation: a leaky relu's slope.
static tare_status copy_activation(module *to, const module *called, tare_error *err) {
    const module *activation = tare__module_child(called, "1");
    const value *slope =
        activation != NULL ? tare__module_config(activation, "negative_slope") : NULL;
    return slope != NULL ? tare__module_set_config(to, "negative_slope", slope, err) : TARE_OK;
}

static tare_status set_output(module *m, tare_tensor *scale, tare_tensor *zero_point,
                              tare_error *err) {
    TARE_TRY(tare__module_set_tensor(m, "scale", scale, false, err));
    return tare__module_set_tensor(m, "zero_point", zero_point, false, err);
}

// A weight is quantized, or converted to float16. The rounding rule of integer layers is stored
// with it; an embedding needs none.
static tare_status copy_weight(const convert_pass *c, module *to, const module *from,
                               const char *name) {
    tare_tensor *weight = NULL;
    TARE_TRY(tare__reference_quantized(from, name, &weight, c->base->err));
    tare_status status = tare__module_set_tensor(to, name, weight, true, c->base->err);
    const op_info *op = tare__class_row(to->class);
    if (status == TARE_OK && weight->q != NULL && op != NULL && (op->traits & OP_WEIGHTED) != 0)
        status = tare__module_set_rule(to, c->base->model->engine, weight, c->base->err);
    tare_tensor_release(weight);
    return status;
}

static tare_status copy_tensors(const convert_pass *c, module *to, const module *from) {
    if (from->class->role != ROLE_REFERENCE)
        return tare__module_copy_tensors(to, from, c->base->err);
    for (size_t i = 0; i < from->tensor_count; i++) {
        const named_tensor *t = &from->tensors[i];
        if (is_weight_param(from, t->name)) continue;
        TARE_TRY(is_weight(from, t->name)
                     ? copy_weight(c, to, from, t->name)
                     : tare__module_set_tensor(to, t->name, t->tensor, true, c->base->err));
    }
    return TARE_OK;
}

// torch's qnnpack packs a zero bias for a convolution without one, and prints it.
static tare_status add_missing_bias(const convert_pass *c, module *m) {
    if (c->base->model->engine != TARE_ENGINE_QNNPACK || m->class->role != ROLE_QUANTIZED ||
        !tare__op_has(tare__class_row(m->class), OP_CONVOLUTION | OP_TRANSPOSED) ||
        tare__module_tensor(m, "bias") != NULL)
        return TARE_OK;
    const int64_t count = tare__module_int(m, "out_channels", 0);
    tare_tensor *zeros = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &count, &zeros, c->base->err));
    for (int64_t i = 0; i < count; i++) tare__f32(zeros)[i] = 0.0f;
    const tare_status status = tare__module_set_tensor(m, "bias", zeros, true, c->base->err);
    tare_tensor_release(zeros);
    return status;
}

// Creates a module of `class` from `from`.
static tare_status make_module(convert_pass *c, const module_class *class, const module *from,
                               module **out) {
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, c->base->err));
    made->training = from->training;
    tare_status status = copy_config(made, from, c->base->err);
    if (status == TARE_OK) status = copy_tensors(c, made, from);
    if (status == TARE_OK) status = add_missing_bias(c, made);
    return tare__module_hand_out(made, status, out);
}

tare_status tare__quantized_from(convert_pass *c, const module *from, fused_with fused,
                                 tare_tensor *scale, tare_tensor *zero_point, module **out) {
    *out = NULL;
    const module_class *class = quantized_class(c, from, fused);
    if (class == NULL) return TARE_OK;
    module *made = NULL;
    TARE_TRY(make_module(c, class, from, &made));
    return tare__module_hand_out(made, set_output(made, scale, zero_point, c->base->err), out);
}

// Each call of a quantized module keeps its own output scale (torch uses the last one for all). No
// effect on a module with one call.
static tare_status set_call_output(convert_pass *c, module *m, const node *call, tare_tensor *scale,
                                   tare_tensor *zero_point) {
    if (tare__map_get(&c->call_counts, call->target) == tare__map_int(1)) return TARE_OK;
    tare_error *err = c->base->err;
    arena *memory = &c->base->scratch;
    const char *of_scale = tare__arena_printf(memory, "scale" OUTPUT_NAME_JOINT "%s", call->name);
    const char *of_zero =
        tare__arena_printf(memory, "zero_point" OUTPUT_NAME_JOINT "%s", call->name);
    if (of_scale == NULL || of_zero == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__module_set_tensor(m, of_scale, scale, false, err));
    TARE_TRY(tare__module_set_tensor(m, of_zero, zero_point, false, err));
    return set_output(m, scale, zero_point, err); // as in torch's text: that of the last call
}

tare_status tare__swap_quantized(convert_pass *c, const node *call, const node *scale,
                                 const node *zero_point) {
    module *called = tare__called_module(c->base->model, call), *made = NULL;
    if (called == NULL) return TARE_OK;
    tare_tensor *s = tare__attribute(c, scale), *z = tare__attribute(c, zero_point);
    if (called->class->role == ROLE_QUANTIZED) return set_call_output(c, called, call, s, z);
    const bool is_fused = called->class->role == ROLE_FUSED && called->child_count > 0;
    const module *from = is_fused ? called->children[0].module : called;
    TARE_TRY(tare__quantized_from(c, from, called->class->fused, s, z, &made));
    if (made == NULL) return TARE_OK; // runs on quantized tensors as it is
    tare_status status = copy_activation(made, called, c->base->err);
    if (status == TARE_OK) status = set_call_output(c, made, call, s, z);
    return tare__pass_put_module(c->base, call->target, made, status);
}

static tare_status lower_module(convert_pass *c, const static_match *m) {
    tare_error *err = c->base->err;
    graph *g = c->base->model->root->graph;
    TARE_TRY(tare__at(err, tare__swap_quantized(c, m->reference, m->scale, m->zero_point),
                      "node '%s'", m->reference->name));
    TARE_TRY(tare__bypass_dequantize(c->base, m->reference, NULL, NULL));
    const module *made = tare__called_module(c->base->model, m->reference);
    TARE_TRY(TARE_DECIDE(c->base, m->reference, "lowered", made->class->name,
                         "computed in integers by %s", made->class->print_name));
    TARE_TRY(tare__replace_quantize(c->base, m->quantize, m->reference));
    if (m->relu != NULL) {
        TARE_TRY(TARE_DECIDE(c->base, m->relu, "lowered", made->class->name,
                             "its zero point is the smallest value: computed by '%s'",
                             m->reference->name));
        TARE_TRY(tare__absorb_bound(c->base, m->relu, m->reference));
    }
    TARE_TRY(tare__graph_erase(g, m->scale, err));
    return tare__graph_erase(g, m->zero_point, err);
}

// Quantized values from zero on: a ReLU before the quantize changes nothing. It occurs behind a
// linear layer with a batch norm, which has no fused class.
static bool clamps_at_zero(const convert_pass *c, const static_match *m) {
    const tare_tensor *zero_point = tare__attribute(c, m->zero_point);
    const value *dtype = &m->quantize->args[m->quantize->arg_count - 1];
    return zero_point != NULL && zero_point->count == 1 && dtype->kind == VALUE_DTYPE &&
           tare__tensor_get_int(zero_point, 0) == tare__dtype(dtype->as.dtype)->min;
}

static tare_status lower_by(convert_pass *c,
                            bool (*accepts)(const convert_pass *c, const node *reference),
                            size_t argument_count) {
    for (node *n = c->base->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        static_match m;
        if (!tare__match_static(c, n, accepts, argument_count, &m)) continue;
        if (m.relu != NULL && !clamps_at_zero(c, &m)) continue; // the relu would be lost
        TARE_TRY(lower_module(c, &m));
    }
    return TARE_OK;
}

// The tensor that a module reads through quantize_per_tensor_dynamic and dequantize; NULL: there is
// none.
static node *dynamic_input(const node *n) {
    const node *quantize =
        n->op == NODE_CALL_MODULE ? tare__dynamic_quantize(tare__node_arg(n, 0)) : NULL;
    return quantize != NULL ? tare__node_arg(quantize, 0) : NULL;
}

// Replaces the reference module that node n calls by the module of `role`.
static tare_status swap_reference(convert_pass *c, const node *n, const module *called,
                                  const module *reference, module_role role) {
    const module_class *class = tare__class_triple(
        &c->base->model->context->classes, reference->class->op, reference->class->dims, role,
        called == reference ? FUSED_NONE : called->class->fused);
    if (class == NULL) return TARE_OK;
    module *made = NULL;
    TARE_TRY(make_module(c, class, reference, &made));
    return tare__pass_put_module(c->base, n->target, made, TARE_OK);
}

// A module that quantizes its input reads the float tensor; the quantize nodes become unused.
static tare_status lower_dynamic(convert_pass *c, node *n, node *input) {
    module *called = tare__called_module(c->base->model, n);
    const module *reference = tare__reference_of(called);
    if (reference != NULL) {
        if (!has_integer_dtype(reference) && dtype_of_weight(reference) != TARE_FLOAT16)
            return TARE_OK;
        TARE_TRY(swap_reference(c, n, called, reference, ROLE_DYNAMIC));
        called = tare__called_module(c->base->model, n);
    }
    // Neither a reference module nor lowered by an earlier call.
    if (called == NULL || called->class->role != ROLE_DYNAMIC) return TARE_OK;
    TARE_TRY(TARE_DECIDE(c->base, n, "lowered", tare__node_subject(c->base->model, n),
                         "its input is quantized at run time"));
    return tare__node_replace_input(n, tare__node_arg(n, 0), input, c->base->err);
}

// True for a module whose weight alone is quantized: its input is not float.
static bool is_weight_only(const module *reference) {
    const op_info *op = tare__class_row(reference->class);
    return op != NULL && (op->traits & OP_WEIGHTED) == 0 && op->quantized != NULL;
}

static tare_status lower_weight_only(convert_pass *c, const node *n) {
    const module *called = tare__called_module(c->base->model, n);
    const module *reference = tare__reference_of(called);
    if (reference == NULL || reference != called || !is_weight_only(reference)) return TARE_OK;
    TARE_TRY(swap_reference(c, n, called, reference, ROLE_QUANTIZED));
    return TARE_DECIDE(c->base, n, "lowered", tare__node_subject(c->base->model, n),
                       "its rows are looked up as integers");
}

static tare_status tell_of_padding(convert_pass *c) {
    for (node *n = c->base->model->root->graph->first; n != NULL; n = n->next) {
        const module *called = tare__called_module(c->base->model, n);
        const char *mode = called != NULL ? foreign_padding(tare__reference_of(called)) : NULL;
        if (mode != NULL)
            TARE_TRY(TARE_DECIDE(c->base, n, "left float", "padding mode",
                                 "its padding_mode is '%s', integer convolutions have 'zeros' and "
                                 "'reflect'",
                                 mode));
    }
    return TARE_OK;
}

tare_status tare__lower_modules(convert_pass *c) {
    TARE_TRY(tell_of_padding(c));
    TARE_TRY(lower_by(c, accepts_one_input, 1));
    TARE_TRY(lower_by(c, accepts_two_inputs, 2));
    for (node *n = c->base->model->root->graph->first; n != NULL; n = n->next) {
        node *input = dynamic_input(n);
        if (n->op == NODE_CALL_MODULE && tare__calls_agree(c, n))
            TARE_TRY(tare__lower_groups(c->base, n));
        TARE_TRY(input != NULL ? lower_dynamic(c, n, input) : lower_weight_only(c, n));
    }
    return TARE_OK;
}
