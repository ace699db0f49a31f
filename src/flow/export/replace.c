// SPDX-License-Identifier: Apache-2.0
// Replaces observers of exported programs by quantize and dequantize operators.
#include <string.h>

#include "flow/export/convert.h"
#include "flow/export/observers.h"
#include "flow/fx/convert.h"
#include "observe/dtype_roles.h"

// The replacement of an observer node.
typedef struct replacement {
    pass *p;
    observer_site site;
    module *module;
    bool is_lenient;
} replacement;

// The last segment of the observed value's module path.
static const char *scope_of(const node *watched) {
    const char *path = watched->scope_path != NULL ? watched->scope_path : "";
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

static tare_dtype zero_point_dtype(const module *observer, tare_qscheme scheme) {
    const tare_derive_rule *rule = tare__pt2e_rule(observer);
    if (rule != NULL)
        return rule->zero_point_dtype != TARE_DTYPE_UNSET ? rule->zero_point_dtype : TARE_INT32;
    if (scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS) return TARE_FLOAT32;
    return scheme == TARE_PER_CHANNEL_SYMMETRIC ? TARE_INT64 : TARE_INT32;
}

// --- the operators ---

// The dtype that dequantize must return: that of the observed value, unless it is float32.
static tare_status result_dtype(const replacement *r, tare_dtype *out) {
    tare_node_meta *meta = NULL;
    *out = TARE_FLOAT32;
    TARE_TRY(tare_node_meta_read((const tare_node *)r->site.watched, &meta, r->p->err));
    if (meta->value_count == 1 && meta->values[0].dtype != TARE_DTYPE_UNSET)
        *out = meta->values[0].dtype;
    tare_node_meta_destroy(meta);
    return TARE_OK;
}

static tare_status tell(const replacement *r, const qparams *q) {
    const char *watched = r->site.watched->name;
    if (q->count > 1)
        return TARE_DECIDE(r->p, r->site.observer, "converted", "calibration",
                           "'%s' is quantized with a scale for each of %lld channels", watched,
                           (long long)q->count);
    return TARE_DECIDE(r->p, r->site.observer, "converted", "calibration",
                       "'%s' is quantized with scale %.9g and zero point %.9g", watched,
                       q->scale[0], q->zero_point[0]);
}

static tare_status replace_by(const replacement *r, const qparams *q) {
    TARE_TRY(tell(r, q));
    decomposed_form form = {.zero_point_dtype = zero_point_dtype(r->module, q->scheme)};
    TARE_TRY(result_dtype(r, &form.out_dtype));
    return tare__site_decompose(&r->site, q, &form);
}

static tare_status check_calibrated(const replacement *r, bool is_calibrated) {
    if (is_calibrated) return TARE_OK;
    if (r->is_lenient)
        return TARE_DECIDE(r->p, r->site.observer, "warning", "calibration",
                           "its observer has seen no data: scale 1, zero point 0");
    return tare__hint(r->p->err,
                      tare__fail(r->p->err, TARE_INVALID_ARGUMENT,
                                 "the observer '%s' of '%s' has seen no data",
                                 r->site.observer->target, r->site.watched->name),
                      "calibrate the prepared model before it is converted");
}

static tare_status ask(const replacement *r, const qparams **out, bool *is_calibrated) {
    return tare__pt2e_qparams(r->p->model->root, r->module, out, is_calibrated, r->p->err);
}

static tare_status replace_static(const replacement *r) {
    const qparams *q = NULL;
    bool is_calibrated = false, was_shown = false;
    TARE_TRY(ask(r, &q, &is_calibrated));
    if (!is_calibrated) {
        tare__qparams_release(q);
        TARE_TRY(tare__pt2e_watch_weights(r->p, r->module, &was_shown));
        TARE_TRY(ask(r, &q, &is_calibrated));
    }
    tare_status status = check_calibrated(r, is_calibrated);
    if (status == TARE_OK) status = tare__convert_check(q, r->p->err);
    if (status == TARE_OK) status = replace_by(r, q);
    tare__qparams_release(q);
    return status;
}

static tare_status replace_dynamic(const replacement *r) {
    const tare_observer_info *info = r->site.info;
    const tare_dtype dtype = tare__dtype(info->dtype)->storage;
    if (dtype != TARE_UINT8 && dtype != TARE_INT8)
        return tare__fail(r->p->err, TARE_UNSUPPORTED,
                          "only uint8 and int8 are supported in reference flow for dynamic "
                          "quantization right now");
    // Only observers that state an eps have one; fake quantizers do not.
    const bool has_eps = info->has_eps && r->module->child_count == 0;
    decomposed_form form = {.eps = has_eps ? (double)info->eps : 0};
    TARE_TRY(result_dtype(r, &form.out_dtype));
    return tare__site_decompose_dynamic(&r->site, &form);
}

static tare_status replace(const replacement *r) {
    if (r->site.info->is_dynamic) return replace_dynamic(r);
    if (tare__dtype_has_role(r->site.info->dtype, DTYPE_EXPORTED)) return replace_static(r);
    if (r->site.info->dtype == TARE_FLOAT16) return tare__site_decompose_half(&r->site);
    return tare__site_finish(&r->site, r->site.watched);
}

static tare_status replace_node(pass *p, node *n, bool is_lenient) {
    replacement r = {.p = p, .module = tare__called_module(p->model, n), .is_lenient = is_lenient};
    r.site = (observer_site){.p = p,
                             .observer = n,
                             .watched = tare__node_arg(n, 0),
                             .info = tare__observer_info(r.module)};
    if (r.site.watched == NULL)
        return tare__fail(p->err, TARE_INVALID_ARGUMENT, "an observer needs one input");
    r.site.prefix = scope_of(r.site.watched);
    return replace(&r);
}

tare_status tare__pt2e_replace_observers(pass *p, bool is_lenient) {
    const graph *g = p->model->root->graph;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (!tare__is_observer_node(p->model, n)) continue;
        const tare_status status = replace_node(p, n, is_lenient);
        if (status != TARE_OK) return tare__at(p->err, status, "node '%s'", n->name);
    }
    return tare__pt2e_eliminate_dead(p);
}
