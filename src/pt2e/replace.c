// SPDX-License-Identifier: Apache-2.0
// Observers of exported programs become quantize and dequantize operators.
#include <string.h>

#include "pt2e/convert.h"
#include "pt2e/observers.h"
#include "quant/convert.h"

// One observer node under conversion.
typedef struct replacement {
    pass *p;
    node *observer, *watched;
    const module *module;
    const tare_observer_info *info;
    bool is_lenient;
} replacement;

static graph *graph_of(const replacement *r) {
    return r->p->model->root->graph;
}

static tare_status insert(const replacement *r, node_op op, const char *target, const value *args,
                          size_t arg_count, node **out) {
    const node_spec spec = {.op = op, .target = target, .args = args, .arg_count = arg_count};
    return tare__graph_insert(graph_of(r), &spec, r->observer, out, r->p->err);
}

static tare_status finish(const replacement *r, node *with) {
    TARE_TRY(tare__node_replace_uses(r->observer, with, NULL, r->p->err));
    return tare__graph_erase(graph_of(r), r->observer, r->p->err);
}

// --- parameters as buffers ---

// SCOPE_scale_N: the last part of the module's path where the watched value comes from.
static tare_status insert_buffer(const replacement *r, const char *suffix, tare_tensor *tensor,
                                 node **out) {
    module *root = r->p->model->root;
    const char *path = r->watched->scope_path != NULL ? r->watched->scope_path : "";
    const char *dot = strrchr(path, '.'), *name = NULL;
    for (size_t i = 0;; i++) {
        name =
            tare__arena_printf(&r->p->scratch, "%s%s%zu", dot != NULL ? dot + 1 : path, suffix, i);
        if (name == NULL || !tare__module_has_tensor(root, name)) break;
    }
    tare_status status = name == NULL
                             ? tare__out_of_memory(r->p->err)
                             : tare__module_set_tensor(root, name, tensor, false, r->p->err);
    tare_tensor_release(tensor);
    return status == TARE_OK ? insert(r, NODE_GET_ATTR, name, NULL, 0, out) : status;
}

static tare_status insert_numbers(const replacement *r, const char *suffix, tare_dtype dtype,
                                  int64_t count, const double *numbers, node **out) {
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(dtype, 1, &count, &t, r->p->err));
    for (int64_t i = 0; i < count; i++) tare__tensor_set(t, i, numbers[i]);
    return insert_buffer(r, suffix, t, out);
}

static tare_dtype zero_point_dtype(const module *observer, tare_qscheme scheme) {
    const tare_derive_rule *rule = tare__pt2e_rule(observer);
    if (rule != NULL)
        return rule->zero_point_dtype != TARE_DTYPE_UNSET ? rule->zero_point_dtype : TARE_INT32;
    if (scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS) return TARE_FLOAT32;
    return scheme == TARE_PER_CHANNEL_SYMMETRIC ? TARE_INT64 : TARE_INT32;
}

// --- the operators ---

// What dequantize has to give: the dtype of the watched value, where that is not float32.
static tare_status result_dtype(const replacement *r, tare_dtype *out) {
    tare_node_meta *meta = NULL;
    *out = TARE_FLOAT32;
    TARE_TRY(tare_node_meta_read((const tare_node *)r->watched, &meta, r->p->err));
    if (meta->value_count == 1 && meta->values[0].dtype != TARE_DTYPE_UNSET)
        *out = meta->values[0].dtype;
    tare_node_meta_destroy(meta);
    return TARE_OK;
}

static tare_status insert_dequantize(const replacement *r, const char *target, value *args,
                                     size_t count, node *quantized, node **out) {
    tare_dtype dtype = TARE_FLOAT32;
    TARE_TRY(result_dtype(r, &dtype));
    args[0] = tare__node_value(quantized);
    const keyword kwarg = {.name = "out_dtype", .value = tare__dtype_value(dtype)};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = target,
                            .args = args,
                            .arg_count = count,
                            .kwargs = &kwarg,
                            .kwarg_count = dtype != TARE_FLOAT32 ? 1 : 0};
    return tare__graph_insert(graph_of(r), &spec, r->observer, out, r->p->err);
}

static tare_status replace_by(const replacement *r, const qparams *q) {
    const bool per_channel = tare__qscheme_is_per_channel(q->scheme);
    value args[7] = {tare__node_value(r->watched), tare__float((float)q->scale[0]),
                     tare__int((int64_t)q->zero_point[0])};
    size_t count = 3;
    if (per_channel) {
        node *buffer = NULL;
        TARE_TRY(insert_numbers(r, "_scale_", TARE_FLOAT32, q->count, q->scale, &buffer));
        args[1] = tare__node_value(buffer);
        TARE_TRY(insert_numbers(r, "_zero_point_", zero_point_dtype(r->module, q->scheme), q->count,
                                q->zero_point, &buffer));
        args[2] = tare__node_value(buffer);
        args[count++] = tare__int(q->axis);
    }
    args[count++] = tare__int(q->quant_min);
    args[count++] = tare__int(q->quant_max);
    args[count++] = tare__dtype_value(tare__dtype(r->info->dtype)->storage);
    node *quantized = NULL, *dequantized = NULL;
    TARE_TRY(insert(r, NODE_CALL_FUNCTION,
                    per_channel ? DECOMPOSED "quantize_per_channel.default"
                                : DECOMPOSED "quantize_per_tensor.default",
                    args, count, &quantized));
    TARE_TRY(insert_dequantize(r,
                               per_channel ? DECOMPOSED "dequantize_per_channel.default"
                                           : DECOMPOSED "dequantize_per_tensor.default",
                               args, count, quantized, &dequantized));
    return finish(r, dequantized);
}

static tare_status check_calibrated(const replacement *r, bool is_calibrated) {
    if (is_calibrated) return TARE_OK;
    if (r->is_lenient)
        return TARE_DECIDE(r->p, r->observer, "warning", "calibration",
                           "its observer has seen no data: scale 1, zero point 0");
    return tare__hint(r->p->err,
                      tare__fail(r->p->err, TARE_INVALID_ARGUMENT,
                                 "the observer '%s' of '%s' has seen no data", r->observer->target,
                                 r->watched->name),
                      "calibrate the prepared model before it is converted");
}

static tare_status replace_static(const replacement *r) {
    const qparams *q = NULL;
    bool is_calibrated = false;
    TARE_TRY(tare__pt2e_qparams(r->p->model->root, r->module, &q, &is_calibrated, r->p->err));
    tare_status status = check_calibrated(r, is_calibrated);
    if (status == TARE_OK) status = tare__convert_check(q, r->p->err);
    if (status == TARE_OK) status = replace_by(r, q);
    tare__qparams_release(q);
    return status;
}

static tare_status insert_item(const replacement *r, node *tuple, int64_t index, node **out) {
    const value args[] = {tare__node_value(tuple), tare__int(index)};
    return insert(r, NODE_CALL_FUNCTION, "operator.getitem", args, 2, out);
}

static tare_status replace_dynamic(const replacement *r) {
    const tare_observer_info *info = r->info;
    const tare_dtype dtype = tare__dtype(info->dtype)->storage;
    if (dtype != TARE_UINT8 && dtype != TARE_INT8)
        return tare__fail(r->p->err, TARE_UNSUPPORTED,
                          "only uint8 and int8 are supported in reference flow for dynamic "
                          "quantization right now");
    const value least = tare__int(info->quant_min), most = tare__int(info->quant_max);
    // Only an observer that says so has an eps of its own; fake quantizers do not.
    const bool has_eps = info->has_eps && r->module->child_count == 0;
    const value choose[] = {tare__node_value(r->watched), least, most,
                            tare__float(has_eps ? (double)info->eps : 0x1p-23),
                            tare__dtype_value(dtype)};
    node *chosen = NULL, *scale = NULL, *zero_point = NULL, *quantized = NULL, *dequantized = NULL;
    TARE_TRY(insert(r, NODE_CALL_FUNCTION,
                    info->qscheme == TARE_PER_TENSOR_SYMMETRIC ? DECOMPOSED
                        "choose_qparams_symmetric.tensor"
                                                               : DECOMPOSED "choose_qparams.tensor",
                    choose, 5, &chosen));
    TARE_TRY(insert_item(r, chosen, 0, &scale));
    TARE_TRY(insert_item(r, chosen, 1, &zero_point));
    value args[] = {tare__node_value(r->watched),
                    tare__node_value(scale),
                    tare__node_value(zero_point),
                    least,
                    most,
                    tare__dtype_value(dtype)};
    TARE_TRY(insert(r, NODE_CALL_FUNCTION, DECOMPOSED "quantize_per_tensor.tensor", args, 6,
                    &quantized));
    TARE_TRY(insert_dequantize(r, DECOMPOSED "dequantize_per_tensor.tensor", args, 6, quantized,
                               &dequantized));
    return finish(r, dequantized);
}

static tare_status replace_half(const replacement *r) {
    static const char target[] = DECOMPOSED "convert_element_type.no_fuse";
    value args[] = {tare__node_value(r->watched), tare__dtype_value(TARE_FLOAT16)};
    node *half = NULL, *full = NULL;
    TARE_TRY(insert(r, NODE_CALL_FUNCTION, target, args, 2, &half));
    args[0] = tare__node_value(half);
    args[1] = tare__dtype_value(TARE_FLOAT32);
    TARE_TRY(insert(r, NODE_CALL_FUNCTION, target, args, 2, &full));
    return finish(r, full);
}

static bool is_converted(tare_dtype dtype) {
    switch (dtype) {
    case TARE_QUINT8:
    case TARE_QINT8:
    case TARE_QINT32:
    case TARE_QUINT4X2:
    case TARE_UINT8:
    case TARE_INT8:
    case TARE_UINT16:
    case TARE_INT16:
    case TARE_INT32:
    case TARE_FLOAT8_E5M2:
    case TARE_FLOAT8_E4M3FN:
        return true;
    default:
        return false;
    }
}

static tare_status replace(const replacement *r) {
    if (r->info->is_dynamic) return replace_dynamic(r);
    if (is_converted(r->info->dtype)) return replace_static(r);
    if (r->info->dtype == TARE_FLOAT16) return replace_half(r);
    return finish(r, r->watched);
}

tare_status tare__pt2e_replace_observers(pass *p, bool is_lenient) {
    const graph *g = p->model->root->graph;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (!tare__is_observer_node(p->model, n)) continue;
        replacement r = {.p = p,
                         .observer = n,
                         .watched = tare__node_arg(n, 0),
                         .module = tare__called_module(p->model, n),
                         .is_lenient = is_lenient};
        r.info = tare__observer_info(r.module);
        tare_status status = r.watched != NULL ? replace(&r)
                                               : tare__fail(p->err, TARE_INVALID_ARGUMENT,
                                                            "an observer needs one input");
        if (status != TARE_OK) return tare__at(p->err, status, "node '%s'", n->name);
    }
    return tare__pt2e_eliminate_dead(p);
}
