// SPDX-License-Identifier: Apache-2.0
// Steps that change who watches: other observers of activations, one scale a channel for weights.
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/layer_bias.h"
#include "model/pass.h"
#include "observe/fake_quantize.h"
#include "observe/observer_spec.h"
#include "tare/improve.h"

typedef struct replacing {
    pass base;
    const char *class_name, *rule;
    double percentile;
    struct {
        module *old, *made; // with references, so that addresses tell them apart
    } * pairs;
    size_t pair_count, pair_capacity;
    size_t count;
    tare_error *err;
} replacing;

static const char *const arguments[] = {
    "dtype", "qscheme", "reduce_range", "quant_min", "quant_max", "eps", NULL};

// A spec of the class with what both classes know.
static tare_status spec_like(const replacing *r, const tare_observer_spec *old, const char *name,
                             tare_observer_spec **out) {
    tare_observer_spec *spec = tare_observer_spec_create(name);
    if (spec == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; arguments[i] != NULL; i++) {
        const observer_argument *a = tare__observer_spec_find(old, arguments[i]);
        if (a != NULL) tare__observer_spec_set(spec, arguments[i], a);
    }
    *out = spec;
    return TARE_OK;
}

// --- observers of activations ---

static bool watches_constant(const tare_model *model, const node *n) {
    const node *read = tare__behind_observers(model, tare__node_arg(n, 0));
    return read != NULL && read->op == NODE_GET_ATTR;
}

static bool is_replaceable(const tare_model *model, const node *n) {
    static const char *const ranges[] = {"MinMaxObserver", "MovingAverageMinMaxObserver",
                                         "HistogramObserver", "tare.MergeableHistogramObserver"};
    const module *m = tare__called_module(model, n);
    if (!tare__is_observer_node(model, n) || watches_constant(model, n)) return false;
    const tare_observer_info *info = tare__observer_info(m);
    if (info->is_dynamic || info->has_fixed_qparams || !info->has_qparams) return false;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (strcmp(tare__observer_class_of(m)->name, ranges[i]) == 0) return true;
    return false;
}

static tare_status make_observer(replacing *r, const module *old, module **out) {
    tare_observer_spec *of_old = NULL, *spec = NULL;
    TARE_TRY(tare__observer_spec_of(old, &of_old, r->err));
    tare_status status = spec_like(r, of_old, r->class_name, &spec);
    if (status == TARE_OK && r->percentile > 0)
        tare_observer_spec_set_double(spec, "percentile", r->percentile);
    if (status == TARE_OK)
        status =
            tare__observer_spec_instantiate(&r->base.model->context->observers, spec, out, r->err);
    tare_observer_spec_release(of_old);
    tare_observer_spec_release(spec);
    return status;
}

// NULL: not yet. is_new: it is one of those that were made.
static module *find_made(const replacing *r, const module *m, bool *is_new) {
    *is_new = false;
    for (size_t i = 0; i < r->pair_count; i++) {
        if (r->pairs[i].made == m) *is_new = true;
        if (r->pairs[i].old == m) return r->pairs[i].made;
    }
    return NULL;
}

static tare_status add_pair(replacing *r, module *old, module **out) {
    module *made = NULL;
    if (!tare__grow((void **)&r->pairs, &r->pair_capacity, r->pair_count, sizeof *r->pairs))
        return tare__out_of_memory(r->err);
    TARE_TRY(make_observer(r, old, &made));
    r->pairs[r->pair_count].old = tare__module_retain(old);
    r->pairs[r->pair_count++].made = made;
    r->count++;
    *out = made;
    return TARE_OK;
}

// Modules that stand at several places, as observers of a group do, stay one.
static tare_status replace_module(replacing *r, const node *n) {
    module *old = tare__called_module(r->base.model, n);
    bool is_new = false;
    module *made = find_made(r, old, &is_new);
    if (is_new) return TARE_OK;
    if (made == NULL) TARE_TRY(add_pair(r, old, &made));
    TARE_TRY(TARE_DECIDE(&r->base, n, "observed", r->rule, "by %s instead of %s", r->class_name,
                         tare__observer_class_of(old)->name));
    return tare__module_set_path(r->base.model->root, n->target, made, &tare__class_container,
                                 r->err);
}

static tare_status replace_all(replacing *r) {
    tare_status status = TARE_OK;
    for (const node *n = r->base.model->root->graph->first; n != NULL && status == TARE_OK;
         n = n->next) {
        const module *m = tare__called_module(r->base.model, n);
        if (m != NULL && m->class->role == ROLE_OBSERVER && tare__fake_quantize_kind_of(m) != NULL)
            status =
                tare__fail(r->err, TARE_UNSUPPORTED,
                           "node '%s': fake quantizers were trained with their observers", n->name);
        if (status == TARE_OK && m != NULL && is_replaceable(r->base.model, n))
            status = replace_module(r, n);
    }
    return status;
}

static void end(replacing *r) {
    for (size_t i = 0; i < r->pair_count; i++) {
        tare__module_release(r->pairs[i].old);
        tare__module_release(r->pairs[i].made);
    }
    tare__free(r->pairs);
}

static tare_status check_prepared(const tare_model *prepared, tare_model **out, tare_error *err) {
    if (prepared != NULL && out != NULL && prepared->stage == TARE_STAGE_PREPARED) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "improve: expected a prepared model");
}

static tare_status finish(replacing *r, tare_status status, size_t *count, tare_model **out) {
    if (status == TARE_OK && count != NULL) *count = r->count;
    end(r);
    return tare__pass_end(&r->base, status, out);
}

static tare_status begin(replacing *r, const tare_model *prepared) {
    TARE_TRY(tare__pass_begin(&r->base, "improve", prepared, NULL, r->err));
    r->base.model->prepared = tare__prepared_state_retain(prepared->prepared);
    return TARE_OK;
}

tare_status tare_replace_observers(const tare_model *prepared, const char *class_name,
                                   double percentile, size_t *count, tare_model **out,
                                   tare_error *err) {
    static const char *const classes[] = {"MinMaxObserver", "HistogramObserver",
                                          "tare.MergeableHistogramObserver"};
    bool is_known = false;
    TARE_TRY(check_prepared(prepared, out, err));
    for (size_t i = 0; i < sizeof classes / sizeof *classes && class_name != NULL; i++)
        is_known = is_known || strcmp(class_name, classes[i]) == 0;
    if (!is_known)
        return tare__fail(err, TARE_NOT_FOUND, "'%s' is no observer of ranges that can be chosen",
                          class_name != NULL ? class_name : "NULL");
    replacing r = {
        .class_name = class_name, .rule = "observers", .percentile = percentile, .err = err};
    tare_status status = begin(&r, prepared);
    if (status == TARE_OK) status = replace_all(&r);
    return finish(&r, status, count, out);
}

// --- weights ---

static tare_status per_channel_spec(const replacing *r, const tare_observer_spec *old,
                                    tare_observer_spec **out) {
    TARE_TRY(spec_like(r, old, "PerChannelMinMaxObserver", out));
    tare_observer_spec_set_dtype(*out, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(*out, "qscheme", TARE_PER_CHANNEL_SYMMETRIC);
    return TARE_OK;
}

static bool is_per_tensor_int8(const tare_observer_info *info) {
    return info->dtype == TARE_QINT8 && !info->is_dynamic && info->qscheme != TARE_QSCHEME_UNSET &&
           !tare__qscheme_is_per_channel(info->qscheme);
}

// Modules: what prepare noted of the node says who will look at the weight.
static tare_status change_qconfig(replacing *r, const node *n, prepared_state *own) {
    prepared_node *known = tare__prepared_node(own, n->name);
    tare_observer_info info = {0};
    if (known == NULL || known->qconfig == NULL || known->qconfig->weight == NULL) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(&r->base, known->qconfig->weight, &info));
    if (!is_per_tensor_int8(&info)) return TARE_OK;
    tare_observer_spec *spec = NULL;
    TARE_TRY(per_channel_spec(r, known->qconfig->weight, &spec));
    tare_qconfig *q = tare_qconfig_create(known->qconfig->activation, spec);
    tare_observer_spec_release(spec);
    if (q == NULL) return tare__out_of_memory(r->err);
    tare_qconfig_release(known->qconfig);
    known->qconfig = q;
    r->count++;
    return TARE_DECIDE(&r->base, n, "observed", r->rule, "its weight has a scale for each channel");
}

// Functions and operators: an observer in the graph watches the weight.
static tare_status change_observer(replacing *r, const node *observer) {
    const module *old = tare__called_module(r->base.model, observer);
    if (!is_per_tensor_int8(tare__observer_info(old)) &&
        tare__observer_info(old)->dtype != TARE_INT8)
        return TARE_OK;
    if (tare__qscheme_is_per_channel(tare__observer_info(old)->qscheme)) return TARE_OK;
    tare_observer_spec *of_old = NULL, *spec = NULL;
    module *made = NULL;
    TARE_TRY(tare__observer_spec_of(old, &of_old, r->err));
    tare_status status = spec_like(r, of_old, "PerChannelMinMaxObserver", &spec);
    if (status == TARE_OK) {
        tare_observer_spec_set_qscheme(spec, "qscheme", TARE_PER_CHANNEL_SYMMETRIC);
        status = tare__observer_spec_instantiate(&r->base.model->context->observers, spec, &made,
                                                 r->err);
    }
    tare_observer_spec_release(of_old);
    tare_observer_spec_release(spec);
    TARE_TRY(status);
    r->count++;
    return tare__pass_put_module(&r->base, observer->target, made,
                                 TARE_DECIDE(&r->base, observer, "observed", r->rule,
                                             "the weight has a scale for each channel"));
}

static tare_status change_layer(replacing *r, node *n, prepared_state *own) {
    biased_layer layer;
    tare__layer_find(r->base.model, n, &layer);
    if (layer.node == NULL) return TARE_OK;
    if (layer.module != NULL) return own != NULL ? change_qconfig(r, n, own) : TARE_OK;
    return layer.weight != NULL && tare__is_observer_node(r->base.model, layer.weight)
               ? change_observer(r, layer.weight)
               : TARE_OK;
}

// A state of its own: models share theirs.
static tare_status copy_state(const prepared_state *from, prepared_state **out, tare_error *err) {
    prepared_state *made = NULL;
    TARE_TRY(tare__prepared_state_create(from->node_count, &made, err));
    tare_status status = TARE_OK;
    for (size_t i = 0; i < from->node_count && status == TARE_OK; i++) {
        status = tare__prepared_state_add(made, from->nodes[i].name, from->nodes[i].qconfig,
                                          from->nodes[i].is_observed, err);
        if (status == TARE_OK && from->nodes[i].equalization != NULL)
            status = tare__fail(err, TARE_UNSUPPORTED,
                                "per channel: the model is equalized, which needs one scale");
    }
    if (status == TARE_OK && (from->child_count > 0 || from->input_quantized.count > 0 ||
                              from->output_quantized.count > 0))
        status = tare__fail(err, TARE_UNSUPPORTED,
                            "per channel: the model has standalone modules, or quantized inputs");
    if (status != TARE_OK) {
        tare__prepared_state_release(made);
        return status;
    }
    made->mapping = NULL;
    made->is_qat = from->is_qat;
    *out = made;
    return TARE_OK;
}

static tare_status change_all(replacing *r) {
    tare_model *m = r->base.model;
    prepared_state *own = NULL;
    if (m->prepared != NULL) {
        TARE_TRY(copy_state(m->prepared, &own, r->err));
        tare__prepared_state_release(m->prepared);
        m->prepared = own;
    }
    for (node *n = m->root->graph->first; n != NULL; n = n->next) TARE_TRY(change_layer(r, n, own));
    return TARE_OK;
}

tare_status tare_weights_per_channel(const tare_model *prepared, size_t *count, tare_model **out,
                                     tare_error *err) {
    TARE_TRY(check_prepared(prepared, out, err));
    replacing r = {.class_name = "PerChannelMinMaxObserver", .rule = "per-channel", .err = err};
    tare_status status = begin(&r, prepared);
    if (status == TARE_OK) status = change_all(&r);
    return finish(&r, status, count, out);
}
