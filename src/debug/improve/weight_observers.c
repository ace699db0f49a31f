// SPDX-License-Identifier: Apache-2.0
// Steps that change the observers of weights: a scale per channel, or ranges with least squared
// error.
#include "debug/improve/weight_observers.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "observe/observer_spec.h"
#include "tare/improve.h"

// --- specs ---

tare_status tare__spec_like(const tare_observer_spec *old, const char *class_name,
                            tare_observer_spec **out, tare_error *err) {
    static const char *const arguments[] = {
        "dtype", "qscheme", "reduce_range", "quant_min", "quant_max", "eps", NULL};
    tare_observer_spec *spec = tare_observer_spec_create(class_name);
    if (spec == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; arguments[i] != NULL; i++) {
        const observer_argument *a = tare__observer_spec_find(old, arguments[i]);
        if (a != NULL) tare__observer_spec_set(spec, arguments[i], a);
    }
    *out = spec;
    return TARE_OK;
}

static const char *class_by_error(tare_qscheme scheme) {
    if (tare__qscheme_is_per_group(scheme)) return "tare.PerGroupMSEObserver";
    return tare__qscheme_is_per_channel(scheme) ? "tare.PerChannelMSEObserver" : "tare.MSEObserver";
}

tare_status tare__make_by_error(const observer_classes *classes, const tare_observer_spec *old,
                                const tare_observer_info *info, tare_observer_spec **out,
                                tare_error *err) {
    static const char *const extremes[] = {"MinMaxObserver",
                                           "MovingAverageMinMaxObserver",
                                           "PerChannelMinMaxObserver",
                                           "MovingAveragePerChannelMinMaxObserver",
                                           "tare.PerGroupMinMaxObserver",
                                           "HistogramObserver"};
    bool is_known = false;
    (void)classes;
    *out = NULL;
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++)
        is_known = is_known || strcmp(tare__observer_spec_class(old), extremes[i]) == 0;
    if (!is_known || info->is_dynamic || info->qscheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS)
        return TARE_OK;
    TARE_TRY(tare__spec_like(old, class_by_error(info->qscheme), out, err));
    tare_observer_spec_set_qscheme(*out, "qscheme", info->qscheme);
    if (tare__qscheme_is_per_group(info->qscheme))
        tare_observer_spec_set_int(*out, "group_size", info->group_size);
    else if (tare__qscheme_is_per_channel(info->qscheme))
        tare_observer_spec_set_int(*out, "ch_axis", info->channel_axis);
    return TARE_OK;
}

tare_status tare__spec_by_error(const observer_classes *classes, const tare_observer_spec *old,
                                tare_observer_spec **out, tare_error *err) {
    tare_observer_info info = {0};
    TARE_TRY(tare__observer_spec_info(classes, old, &info, err));
    return tare__make_by_error(classes, old, &info, out, err);
}

static tare_status make_per_channel(const observer_classes *classes, const tare_observer_spec *old,
                                    const tare_observer_info *info, tare_observer_spec **out,
                                    tare_error *err) {
    (void)classes;
    *out = NULL;
    if ((info->dtype != TARE_QINT8 && info->dtype != TARE_INT8) || info->is_dynamic ||
        !tare__qscheme_is_per_tensor(info->qscheme))
        return TARE_OK;
    TARE_TRY(tare__spec_like(old, "PerChannelMinMaxObserver", out, err));
    tare_observer_spec_set_dtype(*out, "dtype", info->dtype);
    tare_observer_spec_set_qscheme(*out, "qscheme", TARE_PER_CHANNEL_SYMMETRIC);
    return TARE_OK;
}

// Weights of fewer bits in groups, which kernels read two to a byte.
static tare_status make_wide(const observer_classes *classes, const tare_observer_spec *old,
                             const tare_observer_info *info, tare_observer_spec **out,
                             tare_error *err) {
    enum { PACKED_LEVELS = 16 };
    (void)classes;
    *out = NULL;
    if (info->dtype != TARE_QINT8 || info->is_dynamic ||
        !tare__qscheme_is_per_group(info->qscheme) ||
        info->quant_max - info->quant_min >= PACKED_LEVELS)
        return TARE_OK;
    TARE_TRY(tare__spec_like(old, tare__observer_spec_class(old), out, err));
    tare_observer_spec_set_int(*out, "quant_min", INT8_MIN);
    tare_observer_spec_set_int(*out, "quant_max", INT8_MAX);
    tare_observer_spec_set_int(*out, "group_size", info->group_size);
    return TARE_OK;
}

// --- changing ---

// For modules: the qconfig that prepare recorded for the node has the weight's observer.
static tare_status change_qconfig(weight_change *w, const node *n) {
    const observer_classes *classes = &w->p->model->context->observers;
    const prepared_state *own = w->p->model->prepared;
    prepared_node *known = own != NULL ? tare__prepared_node(own, n->name) : NULL;
    tare_observer_info info = {0};
    tare_observer_spec *spec = NULL;
    if (known == NULL || known->qconfig == NULL || known->qconfig->weight == NULL) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(w->p, known->qconfig->weight, &info));
    TARE_TRY(w->make(classes, known->qconfig->weight, &info, &spec, w->p->err));
    if (spec == NULL) return TARE_OK;
    tare_qconfig *q = tare_qconfig_create(known->qconfig->activation, spec);
    tare_observer_spec_release(spec);
    if (q == NULL) return tare__out_of_memory(w->p->err);
    tare_qconfig_release(known->qconfig);
    known->qconfig = q;
    w->count++;
    return TARE_DECIDE(w->p, n, "observed", w->rule, "%s", w->why);
}

// For functions and operators: an observer in the graph.
static tare_status change_observer(weight_change *w, const node *observer) {
    const observer_classes *classes = &w->p->model->context->observers;
    const module *old = tare__called_module(w->p->model, observer);
    tare_observer_spec *of_old = NULL, *spec = NULL;
    module *made = NULL;
    TARE_TRY(tare__observer_spec_of(old, &of_old, w->p->err));
    tare_status status = w->make(classes, of_old, tare__observer_info(old), &spec, w->p->err);
    if (status == TARE_OK && spec != NULL)
        status = tare__observer_spec_instantiate(classes, spec, &made, w->p->err);
    tare_observer_spec_release(of_old);
    tare_observer_spec_release(spec);
    TARE_TRY(status);
    if (made == NULL) return TARE_OK;
    w->count++;
    return tare__pass_put_module(w->p, observer->target, made,
                                 TARE_DECIDE(w->p, observer, "observed", w->rule, "%s", w->why));
}

tare_status tare__weight_change_layer(weight_change *w, const biased_layer *layer) {
    if (layer->module != NULL) return change_qconfig(w, layer->node);
    return layer->weight != NULL && tare__is_observer_node(w->p->model, layer->weight)
               ? change_observer(w, layer->weight)
               : TARE_OK;
}

// Copies the state, because models share theirs.
static tare_status copy_state(const prepared_state *from, prepared_state **out, tare_error *err) {
    prepared_state *made = NULL;
    TARE_TRY(tare__prepared_state_create(from->node_count, &made, err));
    tare_status status = TARE_OK;
    for (size_t i = 0; i < from->node_count && status == TARE_OK; i++) {
        status = tare__prepared_state_add(made, from->nodes[i].name, from->nodes[i].qconfig,
                                          from->nodes[i].is_observed, err);
        if (status == TARE_OK && from->nodes[i].equalization != NULL)
            status = tare__fail(err, TARE_UNSUPPORTED,
                                "improve: the model is equalized, so its weights must not change");
    }
    if (status == TARE_OK && (from->child_count > 0 || from->input_quantized.count > 0 ||
                              from->output_quantized.count > 0))
        status = tare__fail(err, TARE_UNSUPPORTED,
                            "improve: the model has standalone modules, or quantized inputs");
    if (status != TARE_OK) {
        tare__prepared_state_release(made);
        return status;
    }
    made->mapping = NULL;
    made->is_qat = from->is_qat;
    *out = made;
    return TARE_OK;
}

tare_status tare__weight_change_begin(const weight_change *w) {
    tare_model *m = w->p->model;
    prepared_state *own = NULL;
    if (m->prepared == NULL) return TARE_OK;
    TARE_TRY(copy_state(m->prepared, &own, w->p->err));
    tare__prepared_state_release(m->prepared);
    m->prepared = own;
    return TARE_OK;
}

// --- the steps ---

tare_status tare__improve_begin(pass *p, const tare_model *prepared, tare_model **out,
                                tare_error *err) {
    if (prepared == NULL || out == NULL || prepared->stage != TARE_STAGE_PREPARED)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "improve: expected a prepared model");
    TARE_TRY(tare__pass_begin(p, "improve", prepared, NULL, err));
    p->model->prepared = tare__prepared_state_retain(prepared->prepared);
    return TARE_OK;
}

static bool is_named(const weight_change *w, const node *n) {
    bool found = w->nodes == NULL;
    for (size_t i = 0; i < w->node_count && !found; i++) found = strcmp(w->nodes[i], n->name) == 0;
    return found;
}

static tare_status change_all(weight_change *w) {
    TARE_TRY(tare__weight_change_begin(w));
    for (node *n = w->p->model->root->graph->first; n != NULL; n = n->next) {
        biased_layer layer;
        if (!is_named(w, n)) continue;
        tare__layer_find(w->p->model, n, &layer);
        if (layer.node != NULL) TARE_TRY(tare__weight_change_layer(w, &layer));
    }
    return TARE_OK;
}

static tare_status change_weights(const tare_model *prepared, const weight_change *how,
                                  size_t *count, tare_model **out, tare_error *err) {
    pass p = {0};
    weight_change w = *how;
    w.p = &p;
    TARE_TRY(tare__improve_begin(&p, prepared, out, err));
    const tare_status status = change_all(&w);
    if (status == TARE_OK && count != NULL) *count = w.count;
    return tare__pass_end(&p, status, out);
}

tare_status tare_weights_per_channel(const tare_model *prepared, size_t *count, tare_model **out,
                                     tare_error *err) {
    weight_change w = {.rule = "per-channel",
                       .why = "its weight has a scale for each channel",
                       .make = make_per_channel};
    return change_weights(prepared, &w, count, out, err);
}

tare_status tare_clip_weights(const tare_model *prepared, size_t *count, tare_model **out,
                              tare_error *err) {
    weight_change w = {.rule = "weight-clipping",
                       .why = "the range of its weight is the one of least squared error",
                       .make = tare__make_by_error};
    return change_weights(prepared, &w, count, out, err);
}

tare_status tare_widen_weights(const tare_model *prepared, const char *const *nodes,
                               size_t node_count, size_t *count, tare_model **out,
                               tare_error *err) {
    weight_change w = {.rule = "precision",
                       .why = "its weight has 8 bits instead of fewer",
                       .nodes = nodes,
                       .node_count = node_count,
                       .make = make_wide};
    return change_weights(prepared, &w, count, out, err);
}
