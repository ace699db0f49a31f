// SPDX-License-Identifier: Apache-2.0
// Switches a model between training and evaluation, and its observers, fake quantizers and batch
// norms on and off.
#include <string.h>

#include "core/text/text.h"
#include "model/model.h"
#include "observe/fake_quantize.h"
#include "ops/classes/module_call.h"
#include "ops/interpret.h"
#include "ops/op.h"

// --- train and eval ---

// Calls of exported programs have an argument that says whether they train.
static bool is_exported_call(const node *n) {
    return tare__function_op(n) == TARE_OP_BATCH_NORM && tare__aten_name(n->target) != NULL;
}

static tare_status set_exported_mode(module *m, bool training, tare_error *err) {
    const value mode = tare__bool(training);
    for (const node *n = m->graph != NULL ? m->graph->first : NULL; n != NULL; n = n->next)
        if (is_exported_call(n)) return tare__module_set_config(m, EXPORTED_TRAINING, &mode, err);
    return TARE_OK;
}

static tare_status set_mode(module *m, bool training, tare_error *err) {
    m->training = training;
    TARE_TRY(set_exported_mode(m, training, err));
    if (tare__module_bool(m, QAT_FREEZE_BN, false)) return TARE_OK;
    for (size_t i = 0; i < m->child_count; i++)
        TARE_TRY(set_mode(m->children[i].module, training, err));
    return TARE_OK;
}

tare_status tare_model_set_training(tare_model *model, bool training, tare_error *err) {
    if (model == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a model, found NULL");
    return set_mode(model->root, training, err);
}

// --- every module of a prepared model ---

typedef struct change {
    tare_status (*apply)(module *m, const struct change *c, tare_error *err);
    bool on;
    tare_learnable_mode mode;
} change;

static tare_status visit(void *user, const char *path, module *m, tare_error *err) {
    const change *c = user;
    (void)path;
    return c->apply(m, c, err);
}

static tare_status change_all(tare_model *model, change c, tare_error *err) {
    if (model == NULL || model->stage != TARE_STAGE_PREPARED)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected a prepared model (see tare_prepare_qat_fx)");
    return tare__module_walk(model->root, visit, &c, err);
}

static tare_status switch_observer(module *m, const change *c, tare_error *err) {
    const fake_quantize_kind *kind = tare__fake_quantize_kind_of(m);
    if (kind == NULL) return TARE_OK;
    return tare__fake_quantize_switch(m, kind->observer_switch, c->on, err);
}

tare_status tare_model_enable_observer(tare_model *prepared, bool enabled, tare_error *err) {
    return change_all(prepared, (change){.apply = switch_observer, .on = enabled}, err);
}

static tare_status switch_fake_quant(module *m, const change *c, tare_error *err) {
    if (tare__fake_quantize_kind_of(m) == NULL) return TARE_OK;
    return tare__fake_quantize_switch(m, "fake_quant_enabled", c->on, err);
}

tare_status tare_model_enable_fake_quant(tare_model *prepared, bool enabled, tare_error *err) {
    return change_all(prepared, (change){.apply = switch_fake_quant, .on = enabled}, err);
}

// torch's two functions handle only the convolutions, not LinearBn1d.
static tare_status freeze(module *m, const change *c, tare_error *err) {
    const module_class *class = m->class;
    module *bn = tare__module_child(m, "bn");
    const bool has_bn = class->fused == FUSED_BN || class->fused == FUSED_BN_RELU;
    if (class->role != ROLE_QAT || !has_bn || bn == NULL ||
        !tare__op_has(tare__class_row(class), OP_CONVOLUTION))
        return TARE_OK;
    const value frozen = tare__bool(c->on);
    TARE_TRY(tare__module_set_config(m, QAT_FREEZE_BN, &frozen, err));
    bn->training = !c->on;
    return TARE_OK;
}

tare_status tare_model_freeze_bn_stats(tare_model *prepared, bool frozen, tare_error *err) {
    return change_all(prepared, (change){.apply = freeze, .on = frozen}, err);
}

static tare_status set_learnable(module *m, const change *c, tare_error *err) {
    if (!tare__module_has_tensor(m, "learning_enabled") || tare__fake_quantize_kind_of(m) == NULL)
        return TARE_OK;
    const bool learns = c->mode == TARE_LEARNABLE_LEARN;
    const bool rounds = c->mode != TARE_LEARNABLE_OBSERVE;
    TARE_TRY(tare__fake_quantize_switch(m, "learning_enabled", learns, err));
    TARE_TRY(tare__fake_quantize_switch(m, "fake_quant_enabled", rounds, err));
    return tare__fake_quantize_switch(m, "static_enabled", !learns, err);
}

tare_status tare_model_set_learnable_mode(tare_model *prepared, tare_learnable_mode mode,
                                          tare_error *err) {
    if (mode < TARE_LEARNABLE_LEARN || mode > TARE_LEARNABLE_OBSERVE)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%d is no mode of learnable fake quantizers",
                          (int)mode);
    return change_all(prepared, (change){.apply = set_learnable, .mode = mode}, err);
}
