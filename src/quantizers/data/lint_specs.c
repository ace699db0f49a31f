// SPDX-License-Identifier: Apache-2.0
// Lint for rule files: finds well-formed specs that cannot work.
#include <stdio.h>
#include <string.h>

#include "config/qspec.h"
#include "core/text/text.h"
#include "observe/classes/builtin.h"
#include "observe/observer.h"
#include "quantizers/data/lint.h"

typedef struct spec_location {
    lint *l;
    char path[160];
    const tare_qspec *spec;
} spec_location;

static advice at_key(const spec_location *s, const char *key, const char *remedy) {
    advice made = {.remedy = remedy};
    (void)snprintf(made.path, sizeof made.path, "%.120s.%s", s->path, key);
    return made;
}

static bool is_per_channel(tare_qscheme scheme) {
    return scheme == TARE_PER_CHANNEL_AFFINE || scheme == TARE_PER_CHANNEL_SYMMETRIC ||
           scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
}

static tare_status check_range(const spec_location *s) {
    const tare_qspec_fields *f = &s->spec->fields;
    const dtype_info *dtype = tare__dtype(f->dtype);
    const advice low = at_key(s, "quant_min", "stay within the dtype"),
                 high = at_key(s, "quant_max", "stay within the dtype");
    if (f->has_quant_min != f->has_quant_max) {
        const advice both = at_key(s, f->has_quant_min ? "quant_max" : "quant_min", "give both");
        TARE_TRY(tare__lint_warning(s->l, &both, "the other end of the range is missing"));
    }
    if (dtype->min >= dtype->max) return TARE_OK; // not an integer dtype
    if (f->has_quant_min && (f->quant_min < dtype->min || f->quant_min > dtype->max))
        TARE_TRY(tare__lint_error(s->l, &low, "%s does not hold %lld", tare_dtype_name(f->dtype),
                                  (long long)f->quant_min));
    if (f->has_quant_max && (f->quant_max < dtype->min || f->quant_max > dtype->max))
        TARE_TRY(tare__lint_error(s->l, &high, "%s does not hold %lld", tare_dtype_name(f->dtype),
                                  (long long)f->quant_max));
    if (f->has_quant_min && f->has_quant_max && f->quant_min == f->quant_max)
        return tare__lint_error(s->l, &high, "a range of a single value cannot represent a tensor");
    return TARE_OK;
}

static tare_status check_fixed(const spec_location *s) {
    const tare_qspec_fields *f = &s->spec->fields;
    const advice scale = at_key(s, "scale", "give a positive one"),
                 zero_point = at_key(s, "zero_point", "move it into the range"),
                 range = at_key(s, "quant_min", "give the range that the parameters are for");
    if (!(f->scale > 0)) TARE_TRY(tare__lint_error(s->l, &scale, "no scale is %g", f->scale));
    if (!f->has_quant_min && !f->has_quant_max)
        return tare__lint_warning(s->l, &range, "fixed parameters have no range");
    if ((f->has_quant_min && f->zero_point < f->quant_min) ||
        (f->has_quant_max && f->zero_point > f->quant_max))
        return tare__lint_error(s->l, &zero_point, "%lld lies outside of %lld..%lld",
                                (long long)f->zero_point, (long long)f->quant_min,
                                (long long)f->quant_max);
    return TARE_OK;
}

static bool is_built_in(const char *name) {
    const tare_observer_class *class = NULL;
    for (size_t i = 0; (class = tare__builtin_observer_at(i)) != NULL; i++)
        if (strcmp(class->name, name) == 0) return true;
    return false;
}

static tare_status check_observer(const spec_location *s) {
    const tare_qspec_fields *f = &s->spec->fields;
    const char *class = f->observer != NULL ? tare__observer_spec_class(f->observer) : NULL;
    const advice named = at_key(s, "observer_or_fake_quant_ctr",
                                "name a built-in one; a context's has a dot in its name"),
                 scheme = at_key(s, "qscheme", "let scheme and observer agree"),
                 wait = at_key(s, "observer_or_fake_quant_ctr", "take PlaceholderObserver");
    if (class == NULL || strchr(class, '.') != NULL) return TARE_OK;
    if (!is_built_in(class))
        return tare__lint_error(s->l, &named, "there is no observer '%s'", class);
    const bool watches_channels = strstr(class, "PerChannel") != NULL;
    if (f->qscheme != TARE_QSCHEME_UNSET && strstr(class, "FakeQuantize") == NULL &&
        strcmp(class, "PlaceholderObserver") != 0 && watches_channels != is_per_channel(f->qscheme))
        TARE_TRY(tare__lint_error(s->l, &scheme, "%s does not give %s", class,
                                  tare_qscheme_name(f->qscheme)));
    if (tare__dtype(f->dtype)->is_float && strcmp(class, "PlaceholderObserver") != 0)
        return tare__lint_error(s->l, &wait, "%s is not an integer dtype, so nothing is observed",
                                tare_dtype_name(f->dtype));
    return TARE_OK;
}

// Creates the observer to check everything else: eps, averaging constants, allowed schemes.
static tare_status check_made(const spec_location *s, tare_error *scratch) {
    const tare_qspec_fields *f = &s->spec->fields;
    const advice at = at_key(s, "observer_or_fake_quant_ctr", "give what the observer can be");
    const bool is_qat = s->l->q->settings->global.config.is_qat;
    tare_observer_spec *observer = NULL;
    tare_observer_info info;
    if (s->spec->kind == TARE_QSPEC_DERIVED) return TARE_OK;
    if (f->observer != NULL && !is_built_in(tare__observer_spec_class(f->observer)))
        return TARE_OK; // a class of a context, which is not available here
    tare_status status = tare__qspec_observer(NULL, s->spec, is_qat, &observer, scratch);
    if (status == TARE_OK) status = tare__observer_spec_info(NULL, observer, &info, scratch);
    tare_observer_spec_release(observer);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(s->l->err);
    return status == TARE_OK ? TARE_OK
                             : tare__lint_error(s->l, &at, "%.400s", tare_error_message(scratch));
}

static tare_status check_fields(const spec_location *s) {
    const tare_qspec *spec = s->spec;
    const advice axis = at_key(s, "ch_axis", "say which dimension has the channels"),
                 sources = at_key(s, "derived_from", "name the activation and the weight");
    TARE_TRY(check_range(s));
    if (is_per_channel(spec->fields.qscheme) && !spec->fields.has_channel_axis)
        TARE_TRY(tare__lint_error(s->l, &axis, "a scheme per channel needs an axis"));
    if (spec->kind == TARE_QSPEC_FIXED) return check_fixed(s);
    if (spec->kind == TARE_QSPEC_PLAIN) return check_observer(s);
    if (strcmp(spec->rule.name, tare_derive_bias_rule()->name) == 0 && spec->target_count != 2)
        return tare__lint_error(s->l, &sources, "the bias rule takes two sources, not %zu",
                                spec->target_count);
    return TARE_OK;
}

static tare_status check_spec(lint *l, const char *name, const tare_qspec *spec,
                              tare_error *scratch) {
    spec_location s = {.l = l, .spec = spec};
    const size_t before = l->error_count;
    (void)snprintf(s.path, sizeof s.path, "$.specs.%.120s", name);
    if (spec->kind == TARE_QSPEC_SHARED) return TARE_OK;
    TARE_TRY(check_fields(&s));
    return l->error_count == before ? check_made(&s, scratch) : TARE_OK;
}

// --- the config ---

typedef tare_status (*config_getter)(const tare_quantization_config *config, tare_qspec **out,
                                     tare_error *err);

static tare_status check_field(lint *l, const char *key, config_getter get, tare_error *scratch) {
    tare_qspec *ignored = NULL;
    advice at = {.remedy = "give a spec that this entry can have"};
    (void)snprintf(at.path, sizeof at.path, "$.config.%s", key);
    const tare_status status = get(&l->q->settings->global.config, &ignored, scratch);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(l->err);
    return status == TARE_OK ? TARE_OK
                             : tare__lint_error(l, &at, "%.400s", tare_error_message(scratch));
}

static tare_status check_training(lint *l) {
    const tare_quantization_config *c = &l->q->settings->global.config;
    const tare_qspec *const specs[] = {c->input_activation, c->output_activation, c->weight};
    const advice at = {.path = "$.config.is_qat",
                       .remedy = "fake quantizers for training, observers without"};
    for (size_t i = 0; i < 3; i++) {
        const tare_observer_spec *observer = specs[i] != NULL ? specs[i]->fields.observer : NULL;
        const char *class = observer != NULL ? tare__observer_spec_class(observer) : NULL;
        if (class == NULL || !is_built_in(class)) continue;
        if ((strstr(class, "FakeQuantize") != NULL) != c->is_qat)
            return tare__lint_warning(l, &at,
                                      c->is_qat ? "%s does not fake quantize, as training needs"
                                                : "%s is for training, is_qat is not set",
                                      class);
    }
    return TARE_OK;
}

tare_status tare__lint_specs(lint *l) {
    tare_error *scratch = tare_error_create();
    tare_status status = scratch != NULL ? TARE_OK : tare__out_of_memory(l->err);
    for (size_t i = 0; i < l->q->specs.count && status == TARE_OK; i++)
        status = check_spec(l, l->q->specs.entries[i].key, l->q->specs.entries[i].value, scratch);
    if (status == TARE_OK)
        status = check_field(l, "input_activation", tare_input_act_qspec, scratch);
    if (status == TARE_OK)
        status = check_field(l, "output_activation", tare_output_act_qspec, scratch);
    if (status == TARE_OK) status = check_field(l, "weight", tare_weight_qspec, scratch);
    if (status == TARE_OK) status = check_field(l, "bias", tare_bias_qspec, scratch);
    if (status == TARE_OK) status = check_training(l);
    tare_error_destroy(scratch);
    return status;
}
