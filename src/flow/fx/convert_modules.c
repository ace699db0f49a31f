// SPDX-License-Identifier: Apache-2.0
// Converts float modules with a quantized weight to reference modules.
#include <string.h>

#include "core/text/text.h"
#include "flow/fx/convert.h"
#include "flow/fx/module_refusal.h"
#include "flow/fx/qat.h"
#include "observe/dtype_roles.h"

static tare_status fit_groups(const tare_tensor *weight, const qparams *q, tare_error *err) {
    const int64_t row = weight->ndim > 0 ? weight->shape[weight->ndim - 1] : 0;
    if (q->count > 0 && weight->count > 0 && weight->count % q->count == 0 &&
        row % (weight->count / q->count) == 0)
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "%lld scales do not divide rows of %lld weights into equal groups",
                      (long long)q->count, (long long)row);
}

// A negative axis counts from the last dimension, as in Python.
static tare_status fit_axis(const tare_tensor *weight, const qparams **q, tare_error *err) {
    if (tare__qscheme_is_per_group((*q)->scheme)) return fit_groups(weight, *q, err);
    if (!tare__qscheme_is_per_channel((*q)->scheme)) return TARE_OK;
    const qparams *was = *q;
    const int axis = was->axis < 0 ? was->axis + weight->ndim : was->axis;
    if (axis < 0 || axis >= weight->ndim || weight->shape[axis] != was->count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%lld scales along axis %d do not fit a weight of %d dimensions",
                          (long long)was->count, was->axis, weight->ndim);
    if (axis == was->axis) return TARE_OK;
    qparams *made = tare__qparams_create(was->scheme, was->dtype, axis, was->count, was->scale,
                                         was->zero_point);
    if (made == NULL) return tare__out_of_memory(err);
    made->quant_min = was->quant_min;
    made->quant_max = was->quant_max;
    tare__qparams_release(was);
    *q = made;
    return TARE_OK;
}

static tare_status propose(const module *observer, const tare_tensor *weight, const qparams **out,
                           tare_error *err) {
    bool is_calibrated = false;
    TARE_TRY(tare__observer_qparams(observer, out, &is_calibrated, err));
    TARE_TRY(tare__convert_check(*out, err));
    return fit_axis(weight, out, err);
}

static tare_status observe(module *observer, const tare_tensor *weight, const qparams **out,
                           tare_error *err) {
    TARE_TRY(tare__observer_update(observer, weight, err));
    return propose(observer, weight, out, err);
}

// The conversion of a module.
typedef struct conversion {
    const node *node; // NULL: unknown, and there are no constraints
    const module *called;
    const module *float_module; // the called module, or the weighted child of a fused one
    module *trained;            // the fake quantizer of a QAT module's weight; else NULL
    const tare_qconfig *qconfig;
} conversion;

// In decomposed models the parameters are those of training.
static tare_status read_trained(convert_pass *c, const module *trained, const module *m,
                                weight_qparams *w) {
    w->dtype = tare__observer_info(trained)->dtype;
    return propose(trained, tare__module_tensor(m, w->name), &w->q, c->base->err);
}

// A new weight observer looks at the weight once; a trained fake quantizer looks at the folded
// weight again. A float16 weight has no parameters.
static tare_status observe_weight(convert_pass *c, const conversion *v, weight_qparams *w) {
    const module *m = v->float_module;
    module *observer = v->trained;
    if (observer != NULL && c->form == CONVERT_DECOMPOSED) return read_trained(c, observer, m, w);
    if (observer != NULL)
        tare__module_retain(observer);
    else
        TARE_TRY(tare__observer_spec_instantiate(&c->base->model->context->observers,
                                                 v->qconfig->weight, &observer, c->base->err));
    w->dtype = tare__observer_info(observer)->dtype;
    tare_status status = TARE_OK;
    if (tare__dtype_has_role(w->dtype, DTYPE_MEASURED))
        status = tare__at(c->base->err,
                          observe(observer, tare__module_tensor(m, w->name), &w->q, c->base->err),
                          "weight '%s'", w->name);
    tare__module_release(observer);
    return status;
}

// Recurrent modules have weights for each layer, direction, and for input and hidden state.
static bool is_weight(const named_tensor *t) {
    return t->tensor != NULL &&
           (strcmp(t->name, "weight") == 0 || tare__starts_with(t->name, "weight_"));
}

static tare_status observe_weights(convert_pass *c, const conversion *v, weight_qparams *weights,
                                   size_t *count) {
    const module *m = v->float_module;
    for (size_t i = 0; i < m->tensor_count; i++) {
        if (!is_weight(&m->tensors[i])) continue;
        weight_qparams *w = &weights[(*count)++];
        w->name = m->tensors[i].name;
        w->is_decomposed = c->form == CONVERT_DECOMPOSED;
        TARE_TRY(observe_weight(c, v, w));
    }
    if (*count > 0) return TARE_OK;
    return tare__fail(c->base->err, TARE_UNSUPPORTED, "%s has no tensor 'weight' to quantize",
                      m->class->name);
}

// Takes the reference module over.
static tare_status install(convert_pass *c, const node *n, module *reference) {
    module *called = tare__called_module(c->base->model, n);
    if (called->class->role != ROLE_FUSED)
        return tare__pass_put_module(c->base, n->target, reference, TARE_OK);
    const tare_status status =
        tare__module_set_child(called, called->children[0].name, reference, c->base->err);
    tare__module_release(reference);
    return status;
}

static tare_status make_reference(convert_pass *c, const char *class_name, const conversion *v,
                                  module **out) {
    weight_qparams *weights =
        tare__arena_array(&c->base->scratch, v->float_module->tensor_count + 1, sizeof *weights);
    if (weights == NULL) return tare__out_of_memory(c->base->err);
    size_t count = 0;
    tare_status status = observe_weights(c, v, weights, &count);
    for (size_t i = 0; v->node != NULL && i < count && status == TARE_OK; i++)
        if (weights[i].q != NULL)
            status = tare__convert_apply_limits(c, v->node, v->called, &weights[i].q);
    if (status == TARE_OK)
        status = tare__reference_from_float(c->base->model->context, class_name, v->float_module,
                                            weights, count, out, c->base->err);
    for (size_t i = 0; i < count; i++) tare__qparams_release(weights[i].q);
    return status;
}

tare_status tare__convert_reference(convert_pass *c, const char *class_name,
                                    const module *float_module, const tare_qconfig *q,
                                    const node *n, const module *called, module **out) {
    const conversion v = {.node = n, .called = called, .float_module = float_module, .qconfig = q};
    return make_reference(c, class_name, &v, out);
}

static tare_status swap(convert_pass *c, const conversion *v) {
    const char *class_name =
        tare__backend_config_reference_module(c->base->backend, v->float_module->class->name);
    if (class_name == NULL)
        return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                          "No reference quantized module class configured for %s",
                          v->float_module->class->name);
    module *reference = NULL;
    TARE_TRY(make_reference(c, class_name, v, &reference));
    return install(c, v->node, reference);
}

static bool has_root_class(const convert_pass *c, const module *m) {
    return tare__backend_config_reference_module(c->base->backend, m->class->name) != NULL;
}

// Why a weighted module stays float, as a sentence in scratch memory; NULL: it is converted.
static tare_status find_refusal(convert_pass *c, const node *n, const module *called,
                                const tare_qconfig *q, const char **why) {
    const prepared_node *known = tare__prepared_node(c->prepared, n->name);
    *why = "";
    if (q == NULL || known == NULL || !known->is_observed)
        return TARE_OK; // prepare has recorded the reason
    return tare__module_refusal(c->base, called, q, why);
}

// Converts a QAT module to its float module, whether it is quantized or not.
static tare_status leave_training(convert_pass *c, const node *n, conversion *v) {
    const registry *classes = &c->base->model->context->classes;
    module *qat = tare__called_module(c->base->model, n);
    module *made = NULL;
    if (qat->class->role != ROLE_QAT) return TARE_OK;
    TARE_TRY(tare__qat_to_float(classes, qat, &made, c->base->err));
    v->trained = tare__module_retain(tare__module_child(qat, "weight_fake_quant"));
    v->called = made;
    return tare__pass_put_module(c->base, n->target, made, TARE_OK);
}

static tare_status convert_called(convert_pass *c, const node *n, conversion *v) {
    TARE_TRY(leave_training(c, n, v));
    v->float_module = v->called;
    if (v->called->class->role == ROLE_FUSED && v->called->child_count > 0)
        v->float_module = v->called->children[0].module;
    if (!has_root_class(c, v->float_module))
        return TARE_OK; // no weight, or converted by an earlier call
    bool is_listed = false;
    v->qconfig = tare__convert_qconfig(c, n, &is_listed);
    const char *why = NULL;
    TARE_TRY(find_refusal(c, n, v->called, v->qconfig, &why));
    if (why == NULL) return swap(c, v);
    if (why[0] == '\0') return TARE_OK;
    return TARE_DECIDE(c->base, n, "left float", "dtype configs", "%s", why);
}

static tare_status convert_module(convert_pass *c, const node *n) {
    conversion v = {.node = n, .called = tare__called_module(c->base->model, n)};
    if (v.called == NULL) return TARE_OK;
    const tare_status status = convert_called(c, n, &v);
    tare__module_release(v.trained);
    return status == TARE_OK ? status : tare__at(c->base->err, status, "node '%s'", n->name);
}

tare_status tare__convert_modules(convert_pass *c) {
    for (const node *n = c->base->model->root->graph->first; n != NULL; n = n->next)
        TARE_TRY(convert_module(c, n));
    return TARE_OK;
}
