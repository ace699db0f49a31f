// SPDX-License-Identifier: Apache-2.0
// Swaps float modules and those of torch.ao.nn.qat and torch.ao.nn.intrinsic.qat.
#include "flow/fx/qat.h"

#include <string.h>

#include "flow/fold.h"
#include "flow/node_qconfigs.h"
#include "ops/classes/module_call.h"
#include "ops/op.h"

// --- torch's from_float ---

static tare_status check_weight(const module_class *class, const tare_observer_info *weight,
                                tare_error *err) {
    const bool is_bag = tare__class_op(class) == TARE_OP_EMBEDDING_BAG;
    if ((!is_bag && tare__class_op(class) != TARE_OP_EMBEDDING) ||
        weight->qscheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS)
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "Embedding%s weights requires a qscheme of "
                      "torch.per_channel_affine_float_qparams Got %s",
                      is_bag ? " Bag" : "", tare_qscheme_name(weight->qscheme));
}

// The fake quantizer of a weight must measure every batch anew.
static tare_status check_memoryless(const module_class *class, const tare_qconfig *q,
                                    tare_error *err) {
    if (!tare__starts_with(class->name, "torch.ao.nn.qat.dynamic.") ||
        tare__qconfig_is_memoryless(q))
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "Dynamic QAT requires a memoryless observer.This means a MovingAverage "
                      "observer with averaging constant equal to 1");
}

static tare_status add_bn(module *made, const module *bn, tare_error *err) {
    module *copy = NULL;
    TARE_TRY(tare__module_clone(bn, &copy, err));
    copy->training = true;
    const tare_status status = tare__module_set_child(made, "bn", copy, err);
    tare__module_release(copy);
    return status;
}

static tare_status add_fake_quant(prepare_pass *p, module *made, const tare_qconfig *q) {
    module *fake_quant = NULL;
    TARE_TRY(tare__observer_spec_instantiate(&p->base->model->context->observers, q->weight,
                                             &fake_quant, p->base->err));
    tare_status status = check_weight(made->class, tare__observer_info(fake_quant), p->base->err);
    if (status == TARE_OK)
        status = tare__module_set_child(made, "weight_fake_quant", fake_quant, p->base->err);
    tare__module_release(fake_quant);
    return status;
}

static tare_status fill(prepare_pass *p, module *made, const module *from, const tare_qconfig *q) {
    const module *weighted = from->class->role == ROLE_FUSED ? from->children[0].module : from;
    TARE_TRY(check_memoryless(made->class, q, p->base->err));
    TARE_TRY(tare__module_copy_config(made, weighted, p->base->err));
    TARE_TRY(tare__module_copy_tensors(made, weighted, p->base->err));
    for (size_t i = 0; i < from->child_count; i++)
        if (tare__class_op(from->children[i].module->class) == TARE_OP_BATCH_NORM)
            TARE_TRY(add_bn(made, from->children[i].module, p->base->err));
    return add_fake_quant(p, made, q);
}

static tare_status from_float(prepare_pass *p, const char *class_name, const module *from,
                              const tare_qconfig *q, module **out) {
    const registry *classes = &p->base->model->context->classes;
    const module_class *class = tare__class_find(classes, class_name);
    if (class == NULL)
        return tare__suggest(
            p->base->err,
            tare__fail(p->base->err, TARE_NOT_FOUND, "no QAT module class '%s'", class_name),
            class_name, tare__class_name_at, classes);
    if (class->forward != tare__qat_module_forward)
        return tare__fail(p->base->err, TARE_UNSUPPORTED,
                          "'%s' is no built-in QAT class, so nothing could fake quantize its "
                          "weight",
                          class_name);
    if (q->weight == NULL)
        return tare__fail(p->base->err, TARE_INVALID_ARGUMENT, "the qconfig of a %s has no weight",
                          from->class->name);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, p->base->err));
    return tare__module_hand_out(made, fill(p, made, from, q), out);
}

// --- torch's propagate_qconfig_ ---

// Transposed convolutions have their output channels on another axis than the measured one.
static tare_status check_qconfig(prepare_pass *p, const tare_qconfig *q, const module *m) {
    if (q == NULL || q->weight == NULL || !tare__op_has(tare__class_row(m->class), OP_TRANSPOSED))
        return TARE_OK;
    const char *weight = tare__observer_spec_class(q->weight);
    if (strcmp(weight, "PerChannelMinMaxObserver") != 0 &&
        strcmp(weight, "MovingAveragePerChannelMinMaxObserver") != 0)
        return TARE_OK;
    return tare__hint(
        p->base->err,
        tare__fail(p->base->err, TARE_INVALID_ARGUMENT,
                   "Per channel weight observer is not supported yet for ConvTranspose%dd.",
                   m->class->dims),
        "give '%s' a qconfig with a per-tensor weight observer", m->class->name);
}

static bool stands_before(const module *parent, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (parent->children[i].module == parent->children[index].module) return true;
    return false;
}

static tare_status swap_child(prepare_pass *p, module *parent, size_t index,
                              const tare_qconfig *q) {
    const module *child = parent->children[index].module;
    const tare_pattern_config *config =
        tare__backend_config_for_operator(p->base->backend, child->class->name);
    if (q == NULL || config == NULL || config->qat_module == NULL) return TARE_OK;
    module *made = NULL;
    TARE_TRY(from_float(p, config->qat_module, child, q, &made));
    const tare_status status =
        tare__module_set_child(parent, parent->children[index].name, made, p->base->err);
    tare__module_release(made);
    return status;
}

static tare_status visit_children(prepare_pass *p, module *parent, const char *path,
                                  qconfig_choice inherited);

static tare_status visit_child(prepare_pass *p, module *parent, size_t index, const char *path,
                               qconfig_choice inherited) {
    module *child = parent->children[index].module;
    const char *full = tare__arena_printf(&p->base->scratch, "%s%s%s", path,
                                          *path != '\0' ? "." : "", parent->children[index].name);
    if (full == NULL) return tare__out_of_memory(p->base->err);
    const qconfig_choice typed = tare__qconfig_by_type(p->mapping, child->class->name, inherited);
    const qconfig_choice found = tare__qconfig_by_exact_name(p->mapping, full, typed);
    tare_status status = check_qconfig(p, found.qconfig, child);
    if (status != TARE_OK) return tare__at(p->base->err, status, "module '%s'", full);
    TARE_TRY(visit_children(p, child, full, found));
    if (!p->is_qat || parent->class->role == ROLE_FUSED || stands_before(parent, index))
        return TARE_OK;
    status = swap_child(p, parent, index, found.qconfig);
    return status == TARE_OK ? status : tare__at(p->base->err, status, "module '%s'", full);
}

// As torch, looks only at children of the root, by name.
static bool is_passed_over(const prepare_pass *p, const char *path, const named_module *child) {
    const tare_prepare_custom_config *c = p->custom;
    if (*path != '\0') return false;
    return tare__name_list_has(&c->non_traceable_names, child->name) ||
           tare__name_list_has(&c->non_traceable_classes, child->module->class->name);
}

static tare_status visit_children(prepare_pass *p, module *parent, const char *path,
                                  qconfig_choice inherited) {
    for (size_t i = 0; i < parent->child_count; i++)
        if (!is_passed_over(p, path, &parent->children[i]))
            TARE_TRY(visit_child(p, parent, i, path, inherited));
    return TARE_OK;
}

tare_status tare__prepare_modules(prepare_pass *p) {
    TARE_TRY(visit_children(p, p->base->model->root, "", tare__qconfig_global(p->mapping)));
    if (!p->is_qat) return TARE_OK;
    return tare__mapping_extend_by_qat(p->base->backend, p->mapping, p->base->err);
}

// --- torch's to_float ---

static tare_status make_float(const registry *classes, const module *qat, module **out,
                              tare_error *err) {
    const module_class *class =
        tare__class_triple(classes, qat->class->op, qat->class->dims, ROLE_FLOAT, FUSED_NONE);
    if (class == NULL)
        return tare__fail(err, TARE_UNSUPPORTED, "no float class belongs to '%s'",
                          qat->class->name);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, err));
    made->training = qat->training;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < qat->config_count && status == TARE_OK; i++)
        if (strcmp(qat->config[i].name, QAT_FREEZE_BN) != 0)
            status = tare__module_set_config(made, qat->config[i].name, &qat->config[i].value, err);
    if (status == TARE_OK) status = tare__module_copy_tensors(made, qat, err);
    return tare__module_hand_out(made, status, out);
}

static tare_status fold_bn(const module *qat, module **weighted, tare_error *err) {
    const module *bn = tare__module_child(qat, "bn");
    module *folded = NULL;
    if (bn == NULL) return TARE_OK;
    TARE_TRY(tare__fold_batch_norm(*weighted, bn, &folded, err));
    tare__module_release(*weighted);
    *weighted = folded;
    return TARE_OK;
}

static tare_status add_child(module *fused, const char *name, module *child, tare_error *err) {
    child->training = fused->training;
    return tare__module_set_child(fused, name, child, err);
}

static tare_status with_relu(const registry *classes, const module *qat, module *weighted,
                             module **out, tare_error *err) {
    module *fused = NULL, *relu = NULL;
    const module_class *class =
        tare__class_triple(classes, qat->class->op, qat->class->dims, ROLE_FUSED, FUSED_RELU);
    if (class == NULL)
        return tare__fail(err, TARE_UNSUPPORTED, "no fused class belongs to '%s'",
                          qat->class->name);
    TARE_TRY(tare__module_create(class, &fused, err));
    fused->training = qat->training;
    tare_status status =
        tare__module_create(tare__class_find(classes, "torch.nn.ReLU"), &relu, err);
    if (status == TARE_OK) status = add_child(fused, "0", weighted, err);
    if (status == TARE_OK) status = add_child(fused, "1", relu, err);
    tare__module_release(relu);
    return tare__module_hand_out(fused, status, out);
}

tare_status tare__qat_to_float(const registry *classes, const module *qat, module **out,
                               tare_error *err) {
    const fused_with fused = qat->class->fused;
    module *weighted = NULL;
    TARE_TRY(make_float(classes, qat, &weighted, err));
    tare_status status = fold_bn(qat, &weighted, err);
    if (status == TARE_OK && (fused == FUSED_RELU || fused == FUSED_BN_RELU)) {
        status = with_relu(classes, qat, weighted, out, err);
        tare__module_release(weighted);
        return status;
    }
    return tare__module_hand_out(weighted, status, out);
}
