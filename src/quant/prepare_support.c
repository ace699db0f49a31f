// SPDX-License-Identifier: Apache-2.0
// Prepare: does the backend support what a qconfig asks for? Every refusal says why in one
// sentence.
#include <stdarg.h>
#include <stdio.h>

#include "quant/constraints.h"
#include "quant/prepare.h"

// One question to the dtype configs of a pattern.
typedef struct support_query {
    prepare_pass *pass;
    const prepare_node *entry; // whose qconfig is asked about
    const node *root;
    const prepare_node *root_entry;  // whose target_info holds the wanted dtypes
    const tare_dtype_config *config; // the one under test
    text *why;                       // NULL: nobody asks
    bool is_supported;
} support_query;

static void refuse(support_query *q, const char *format, ...) TARE_PRINTF(2, 3);
static void refuse(support_query *q, const char *format, ...) {
    q->is_supported = false;
    if (q->why == NULL) return;
    char sentence[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    tare__text_clear(q->why);
    tare__text_append(q->why, sentence);
}

static void check_range(support_query *q, const tare_observer_info *info,
                        const tare_dtype_constraints *c, const char *what) {
    const uint32_t both = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
    if ((c->set & both) != both) return;
    if (!info->has_range) {
        refuse(q,
               "the qconfig's %s must specify quant_min and quant_max, as the backend limits them",
               what);
    } else if ((double)info->quant_min < c->quant_min_lower_bound ||
               (double)info->quant_max > c->quant_max_upper_bound) {
        refuse(q, "the qconfig's %s range (%lld, %lld) does not fall within the backend's (%g, %g)",
               what, (long long)info->quant_min, (long long)info->quant_max,
               c->quant_min_lower_bound, c->quant_max_upper_bound);
    }
}

static void check_scale_min(support_query *q, const tare_observer_info *info,
                            const tare_dtype_constraints *c, const char *what) {
    if (!(c->set & TARE_SET_SCALE_MIN)) return;
    if (!info->has_eps)
        refuse(q, "the qconfig's %s must specify eps, as the backend has a least scale", what);
    else if ((double)info->eps < c->scale_min_lower_bound)
        refuse(q, "the qconfig's %s eps (%.9g) is smaller than the backend's least scale (%.9g)",
               what, (double)info->eps, c->scale_min_lower_bound);
}

static tare_status check_fixed(support_query *q, const tare_observer_info *info,
                               const tare_dtype_constraints *c) {
    const uint32_t both = TARE_SET_SCALE_EXACT | TARE_SET_ZERO_POINT_EXACT;
    if ((c->set & both) != both) return TARE_OK;
    // torch exempts float16_static_qconfig and float16_dynamic_qconfig: half floats have no
    // qparams.
    if (info->dtype == TARE_FLOAT16) return TARE_OK;
    if (!info->has_fixed_qparams)
        refuse(q, "the operator has fixed quantization parameters: its qconfig must use a "
                  "FixedQParamsObserver");
    else if ((double)info->fixed_scale != c->scale_exact_match ||
             info->fixed_zero_point != c->zero_point_exact_match)
        refuse(q,
               "the qconfig's fixed scale %.9g and zero point %lld are not the backend's %.9g and "
               "%lld",
               (double)info->fixed_scale, (long long)info->fixed_zero_point, c->scale_exact_match,
               (long long)c->zero_point_exact_match);
    return TARE_OK;
}

// Beyond torch: what an accelerator demands of the scheme.
static tare_status check_qscheme(support_query *q, const tare_observer_info *info,
                                 const tare_dtype_constraints *c, const char *what) {
    if (info->qscheme == TARE_QSCHEME_UNSET) return TARE_OK;
    if (c->set & TARE_SET_QSCHEMES && !(c->allowed_qschemes & TARE_QSCHEME_BIT(info->qscheme))) {
        text allowed = {0};
        tare__qschemes_to_text(c->allowed_qschemes, &allowed);
        refuse(q, "the backend wants the %s to be %s, the qconfig's is %s", what,
               tare__text_chars(&allowed), tare_qscheme_name(info->qscheme));
        const tare_status status = tare__text_status(&allowed, q->pass->base->err);
        tare__text_release(&allowed);
        return status;
    }
    if (c->set & TARE_SET_CHANNEL_AXIS && tare__qscheme_is_per_channel(info->qscheme) &&
        info->channel_axis != c->channel_axis)
        refuse(q,
               "the backend wants the channels of the %s along axis %lld, the qconfig's are "
               "along axis %d",
               what, (long long)c->channel_axis, info->channel_axis);
    return TARE_OK;
}

// torch's _qconfig_satisfies_dtype_config_constraints.
static tare_status check_constraints(support_query *q, const tare_observer_spec *spec,
                                     const tare_dtype_constraints *c, const char *what) {
    if (spec == NULL || c->dtype == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, spec, &info));
    if (info.dtype != c->dtype) return TARE_OK;
    check_range(q, &info, c, what);
    if (q->is_supported) check_scale_min(q, &info, c, what);
    if (q->is_supported) TARE_TRY(check_qscheme(q, &info, c, what));
    return q->is_supported ? check_fixed(q, &info, c) : TARE_OK;
}

static const char *name_of(tare_dtype dtype) {
    return dtype == TARE_DTYPE_UNSET ? "no dtype" : tare_dtype_name(dtype);
}

static tare_status check_activation(support_query *q) {
    const tare_dtype_constraints *c = &q->config->input;
    if (c->dtype == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, q->root_entry->info.input, &info));
    if (info.dtype != c->dtype) {
        refuse(q, "the backend wants %s inputs, the qconfig gives %s", name_of(c->dtype),
               name_of(info.dtype));
    } else if ((q->config->is_dynamic > 0) != info.is_dynamic) {
        refuse(q, "the backend wants %s quantization here, the qconfig is %s",
               q->config->is_dynamic > 0 ? "dynamic" : "static",
               info.is_dynamic ? "dynamic" : "static");
    } else {
        return check_constraints(q, q->entry->qconfig.qconfig->activation, c, "activation");
    }
    return TARE_OK;
}

static tare_status check_weight(support_query *q) {
    const tare_dtype_constraints *c = &q->config->weight;
    if (c->dtype == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, q->root_entry->info.weight, &info));
    if (info.dtype != c->dtype) {
        refuse(q, "the backend wants %s weights, the qconfig gives %s", name_of(c->dtype),
               name_of(info.dtype));
        return TARE_OK;
    }
    return check_constraints(q, q->entry->qconfig.qconfig->weight, c, "weight");
}

static tare_status check_bias(support_query *q) {
    if (q->config->bias == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, q->root_entry->info.bias, &info));
    if (info.dtype != q->config->bias)
        refuse(q, "the backend wants a %s bias, the qconfig gives %s", name_of(q->config->bias),
               name_of(info.dtype));
    return TARE_OK;
}

static tare_status check_arg(support_query *q, const value *v) {
    if (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE) {
        for (uint32_t i = 0; i < v->count && q->is_supported; i++)
            TARE_TRY(check_arg(q, &v->as.items[i]));
        return TARE_OK;
    }
    if (v->kind != VALUE_NODE || !q->is_supported) return TARE_OK;
    if (tare__is_weight_arg(q->root_entry, q->root, v->as.node)) return check_weight(q);
    if (tare__is_bias_arg(q->root_entry, q->root, v->as.node)) return check_bias(q);
    return check_activation(q);
}

static tare_status check_output(support_query *q, const node *last) {
    const tare_dtype_constraints *c = &q->config->output;
    if (c->dtype == TARE_DTYPE_UNSET || !q->is_supported) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(
        tare__pass_spec_info(q->pass->base, tare__prepare_node(q->pass, last)->info.output, &info));
    // What is quantized dynamically comes out in float.
    const tare_dtype dtype = info.is_dynamic ? TARE_FLOAT32 : info.dtype;
    if (dtype != c->dtype) {
        refuse(q, "the backend gives %s outputs, the qconfig wants %s", name_of(c->dtype),
               name_of(dtype));
        return TARE_OK;
    }
    return check_constraints(q, q->entry->qconfig.qconfig->activation, c, "activation");
}

tare_status tare__prepare_is_supported(prepare_pass *p, const prepare_node *entry, bool *out,
                                       text *why) {
    const prepare_match *match = entry->match;
    *out = false;
    if (entry->qconfig.qconfig == NULL) return TARE_OK;
    if (match->config == NULL) { // a module of the custom config: no pattern limits it
        *out = true;
        return TARE_OK;
    }
    support_query q = {.pass = p, .entry = entry, .root = match->root, .why = why};
    q.root_entry = tare__prepare_node(p, match->root);
    const dtype_config_list *configs = &match->config->dtype_configs;
    if (configs->count == 0) refuse(&q, "the backend only fuses this pattern, it lists no dtypes");
    for (size_t i = 0; i < configs->count && !*out; i++) {
        q.config = &configs->items[i];
        q.is_supported = true;
        for (size_t a = 0; a < match->root->arg_count; a++)
            TARE_TRY(check_arg(&q, &match->root->args[a]));
        for (size_t k = 0; k < match->root->kwarg_count; k++)
            TARE_TRY(check_arg(&q, &match->root->kwargs[k].value));
        TARE_TRY(check_output(&q, match->last));
        *out = q.is_supported;
    }
    return TARE_OK;
}
