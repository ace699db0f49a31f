// SPDX-License-Identifier: Apache-2.0
// Convert in FX mode: from a calibrated model to a reference or lowered model.
#include "flow/fx/convert.h"

#include "core/struct_size.h"
#include "flow/fx/equalize.h"
#include "flow/layer_calls.h"
#include "flow/lower/lower.h"
#include "flow/sound_weights.h"
#include "model/coverage.h"
#include "ops/op.h"

tare_qconfig *tare__convert_qconfig(const convert_pass *c, const node *n, bool *is_listed) {
    const prepared_node *known = tare__prepared_node(c->prepared, n->name);
    *is_listed = known != NULL;
    if (known == NULL) return NULL;
    const bool is_off = c->switched_off != NULL && c->switched_off[known - c->prepared->nodes];
    return is_off ? NULL : known->qconfig;
}

bool tare__convert_has_no_qconfig(const convert_pass *c, const node *n) {
    bool is_listed = false;
    if (c->prepared == NULL) return tare__map_get(&c->left_float, n->name) != NULL;
    return tare__convert_qconfig(c, n, &is_listed) == NULL && is_listed;
}

tare_status tare__convert_check(const qparams *q, tare_error *err) {
    if (tare__qscheme_is_per_tensor(q->scheme) && q->count != 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the observer proposed %lld scales, a per-tensor scheme has 1",
                          (long long)q->count);
    int64_t c = 0;
    switch (tare__qparams_fault(q, &c)) {
    case QPARAMS_BAD_SCALE:
        return tare__hint(err,
                          tare__fail(err, TARE_INVALID_ARGUMENT,
                                     "the observer proposed the scale %g at channel %lld",
                                     q->scale[c], (long long)c),
                          "are there NaNs or infinities in the weights or the data?");
    case QPARAMS_BAD_ZERO_POINT:
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the observer proposed the zero point %g at channel %lld, which %s does "
                          "not have",
                          q->zero_point[c], (long long)c, tare_dtype_name(q->dtype));
    case QPARAMS_FINE:
        break;
    }
    return TARE_OK;
}

static bool keeps_node(const void *user, const node *n) {
    (void)user;
    return tare__op_has(tare__node_row(n), OP_IMPURE) || tare__has_effect(n);
}

tare_status tare__convert_eliminate_dead(pass *p) {
    return tare__graph_eliminate_dead(p->model->root->graph, keeps_node, NULL, p->err);
}

static tare_status lower(convert_pass *c) {
    TARE_TRY(tare__lower_steps(c));
    TARE_TRY(tare__pass_rebuild(c->base, NULL));
    c->base->model->stage = TARE_STAGE_LOWERED;
    TARE_TRY(tare__coverage_finish(c->base->model, c->prepared, c->base->err));
    return tare__lower_explain_floats(c);
}

static tare_status run(convert_pass *c) {
    TARE_TRY(tare__convert_apply_mapping(c));
    TARE_TRY(tare__convert_apply_choices(c));
    TARE_TRY(tare__convert_find_limits(c));
    TARE_TRY(tare__convert_equalize(c));
    TARE_TRY(tare__convert_observe_weights(c));
    TARE_TRY(tare__convert_bounds(c));
    TARE_TRY(tare__convert_nodes(c));
    TARE_TRY(tare__convert_modules(c));
    TARE_TRY(tare__convert_eliminate_dead(c->base));
    TARE_TRY(tare__pass_rebuild(c->base, NULL));
    c->base->model->stage = TARE_STAGE_REFERENCE;
    if (c->form == CONVERT_LOWERED) {
        c->base->name = "lower";
        return lower(c);
    }
    return tare__coverage_finish(c->base->model, c->prepared, c->base->err);
}

static const tare_convert_custom_config no_custom_config;

static bool is_torchs(const prepared_state *s) {
    return s != NULL && s->mapping != NULL && !tare__qconfig_mapping_is_own(s->mapping);
}

// options: complete, with defaults filled in.
static tare_status convert_model(const tare_model *prepared, const tare_convert_options *known,
                                 convert_form form, tare_model **out, tare_error *err) {
    pass base;
    convert_pass c = {
        .base = &base, .options = known, .form = form, .prepared = prepared->prepared};
    c.custom = known->custom_config != NULL ? known->custom_config : &no_custom_config;
    TARE_TRY(tare__setter_status(&c.custom->failure, err));
    tare_status status = tare__pass_begin(&base, "convert", prepared, known->backend, err);
    base.is_torchs = is_torchs(prepared->prepared);
    if (status == TARE_OK) status = tare__refuse_unsound_weights(prepared, err);
    if (status == TARE_OK) {
        if (known->engine != TARE_ENGINE_DEFAULT) base.model->engine = known->engine;
        status = run(&c);
    }
    if (status == TARE_OK)
        status = tare__pass_preserve(&base, &c.custom->preserved_attributes, prepared->root,
                                     known->is_lenient);
    tare__map_release(&c.call_counts);
    return tare__pass_end(&base, status, out);
}

tare_status tare__convert_standalone(convert_pass *c, const module *observed,
                                     const prepared_state *state, const char *path, module **out) {
    tare_error *err = c->base->err;
    module *copy = NULL;
    tare_model *prepared = NULL, *made = NULL;
    // torch uses the reference form within a decomposed model, too, and no custom config.
    const convert_form form = c->form == CONVERT_LOWERED ? CONVERT_LOWERED : CONVERT_REFERENCE;
    tare_convert_options options = *c->options;
    options.custom_config = NULL;
    options.qconfig_mapping = NULL;
    options.float_choice_count = 0;
    options.backend = c->base->backend;
    options.engine = c->base->model->engine;
    TARE_TRY(tare__module_clone(observed, &copy, err));
    tare_status status = tare__model_create(c->base->model->context, copy, TARE_STAGE_PREPARED,
                                            NULL, &prepared, err);
    if (status != TARE_OK) {
        tare__module_release(copy);
        return status;
    }
    prepared->prepared = (prepared_state *)state; // NOLINT: lent for the call, and only read
    status = convert_model(prepared, &options, form, &made, err);
    prepared->prepared = NULL;
    tare_model_destroy(prepared);
    TARE_TRY(status);
    status =
        tare__record_append_inner(&c->base->model->decisions, &made->decisions, 0, path, '.', err);
    if (status == TARE_OK) *out = tare__module_retain(made->root);
    tare_model_destroy(made);
    return status;
}

static tare_status convert(const tare_model *prepared, const tare_convert_options *options,
                           convert_form form, tare_model **out, tare_error *err) {
    tare_convert_options known = {0};
    if (prepared == NULL || prepared->stage != TARE_STAGE_PREPARED)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "incoming model must be produced by prepare_fx");
    if (prepared->prepared == NULL)
        return tare__hint(err,
                          tare__fail(err, TARE_INVALID_ARGUMENT,
                                     "the model was prepared by a quantizer's annotations"),
                          "tare_convert_pt2e converts it");
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (tare_engine_name(known.engine)[0] == '\0')
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%d is no engine", (int)known.engine);
    return convert_model(prepared, &known, form, out, err);
}

tare_status tare_convert_to_reference_fx(const tare_model *prepared,
                                         const tare_convert_options *options, tare_model **out,
                                         tare_error *err) {
    return convert(prepared, options, CONVERT_REFERENCE, out, err);
}

tare_status tare_convert_to_reference_decomposed_fx(const tare_model *prepared,
                                                    const tare_convert_options *options,
                                                    tare_model **out, tare_error *err) {
    return convert(prepared, options, CONVERT_DECOMPOSED, out, err);
}

tare_status tare_convert_fx(const tare_model *prepared, const tare_convert_options *options,
                            tare_model **out, tare_error *err) {
    return convert(prepared, options, CONVERT_LOWERED, out, err);
}

// Operators without a record were not asked to stay float.
static tare_status lower_reference(convert_pass *c, tare_engine engine) {
    pass *p = c->base;
    if (engine != TARE_ENGINE_DEFAULT) p->model->engine = engine;
    TARE_TRY(tare__coverage_begin(p->model, p->err));
    TARE_TRY(tare__record_decided(&p->model->decisions, "left float", &c->left_float, p->err));
    return lower(c);
}

tare_status tare__lower_fx(const tare_model *reference, tare_engine engine, tare_model **out,
                           tare_error *err) {
    static const tare_convert_options none;
    pass base;
    convert_pass c = {
        .base = &base, .options = &none, .form = CONVERT_LOWERED, .custom = &no_custom_config};
    tare_status status = tare__pass_begin(&base, "lower", reference, NULL, err);
    base.is_torchs = is_torchs(reference->prepared);
    if (status == TARE_OK) status = lower_reference(&c, engine);
    tare__map_release(&c.call_counts);
    tare__map_release(&c.left_float);
    return tare__pass_end(&base, status, out);
}
