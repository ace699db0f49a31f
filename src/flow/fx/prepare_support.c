// SPDX-License-Identifier: Apache-2.0
// Prepare: checks whether the backend supports a qconfig. Every refusal has a reason of one
// sentence.
#include <stdarg.h>
#include <stdio.h>

#include "config/constraints.h"
#include "config/qconfig.h"
#include "flow/fx/module_refusal.h"
#include "flow/fx/prepare.h"

// A check of a qconfig against the dtype configs of a pattern.
typedef struct support_query {
    prepare_pass *pass;
    const prepare_node *entry; // the entry with the qconfig
    const node *root;
    const prepare_node *root_entry;  // its target_info has the wanted dtypes
    const tare_dtype_config *config; // being checked
    const char *role;                // the field that is checked: "input_dtype"
    support_log *log;                // NULL: not logged
    dtypes_try *attempt;             // log of the config
    size_t passed;                   // checks that the config has passed
    bool is_supported;
    bool is_out_of_memory;
} support_query;

// A value of a constraint, as text.
typedef struct shown {
    char chars[64];
} shown;

static shown show_number(double number) {
    shown s;
    (void)snprintf(s.chars, sizeof s.chars, "%.9g", number);
    return s;
}

static shown show_name(const char *name) {
    shown s;
    (void)snprintf(s.chars, sizeof s.chars, "%s", name);
    return s;
}

// Logs the violated constraint and both values. role "": the key is the whole name.
static void note(support_query *q, const char *key, const char *wanted, const char *found,
                 const char *why) {
    if (q->attempt == NULL) return;
    arena *a = &q->pass->base->scratch;
    q->attempt->constraint = q->role[0] != '\0' ? tare__arena_printf(a, "%s.%s", q->role, key)
                                                : tare__arena_strdup(a, key);
    q->attempt->wanted = tare__arena_strdup(a, wanted);
    q->attempt->found = tare__arena_strdup(a, found);
    q->attempt->why = tare__arena_strdup(a, why);
    q->is_out_of_memory |=
        !q->attempt->constraint || !q->attempt->wanted || !q->attempt->found || !q->attempt->why;
}

static void refuse(support_query *q, const char *key, shown wanted, shown found, const char *format,
                   ...) TARE_PRINTF(5, 6);
static void refuse(support_query *q, const char *key, shown wanted, shown found, const char *format,
                   ...) {
    q->is_supported = false;
    if (q->log == NULL) return;
    char sentence[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    // The config that passed most checks is probably the intended one.
    if (tare__text_chars(&q->log->why)[0] == '\0' || q->passed > q->log->passed) {
        tare__text_clear(&q->log->why);
        tare__text_append(&q->log->why, sentence);
        q->log->passed = q->passed;
    }
    note(q, key, wanted.chars, found.chars, sentence);
}

static void check_range(support_query *q, const tare_observer_info *info,
                        const tare_dtype_constraints *c, const char *what) {
    const uint32_t both = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
    if ((c->set & both) != both) return;
    const bool is_low = info->has_range && (double)info->quant_min < c->quant_min_lower_bound;
    const bool is_of_min = is_low || !info->has_range;
    const char *key = is_of_min ? "quant_min_lower_bound" : "quant_max_upper_bound";
    const shown wanted =
        show_number(is_of_min ? c->quant_min_lower_bound : c->quant_max_upper_bound);
    if (!info->has_range) {
        refuse(q, key, wanted, show_name("no range"),
               "the qconfig's %s must specify quant_min and quant_max, as the backend limits them",
               what);
    } else if (is_low || (double)info->quant_max > c->quant_max_upper_bound) {
        refuse(q, key, wanted,
               show_number(is_low ? (double)info->quant_min : (double)info->quant_max),
               "the qconfig's %s range (%lld, %lld) does not fall within the backend's (%g, %g)",
               what, (long long)info->quant_min, (long long)info->quant_max,
               c->quant_min_lower_bound, c->quant_max_upper_bound);
    }
}

static void check_scale_min(support_query *q, const tare_observer_info *info,
                            const tare_dtype_constraints *c, const char *what) {
    if (!(c->set & TARE_SET_SCALE_MIN)) return;
    const shown wanted = show_number(c->scale_min_lower_bound);
    if (!info->has_eps)
        refuse(q, "scale_min_lower_bound", wanted, show_name("no eps"),
               "the qconfig's %s must specify eps, because the backend has a smallest scale", what);
    else if ((double)info->eps < c->scale_min_lower_bound)
        refuse(q, "scale_min_lower_bound", wanted, show_number((double)info->eps),
               "the qconfig's %s eps (%.9g) is smaller than the backend's smallest scale (%.9g)",
               what, (double)info->eps, c->scale_min_lower_bound);
}

static tare_status check_fixed(support_query *q, const tare_observer_info *info,
                               const tare_dtype_constraints *c) {
    const uint32_t both = TARE_SET_SCALE_EXACT | TARE_SET_ZERO_POINT_EXACT;
    if ((c->set & both) != both) return TARE_OK;
    // torch exempts float16_static_qconfig and float16_dynamic_qconfig, because float16 has no
    // parameters.
    if (info->dtype == TARE_FLOAT16) return TARE_OK;
    const bool is_scale = (double)info->fixed_scale != c->scale_exact_match;
    if (!info->has_fixed_qparams)
        refuse(q, "scale_exact_match", show_number(c->scale_exact_match),
               show_name("no fixed qparams"),
               "the operator has fixed quantization parameters: its qconfig must use a "
               "FixedQParamsObserver");
    else if (is_scale || info->fixed_zero_point != c->zero_point_exact_match)
        refuse(q, is_scale ? "scale_exact_match" : "zero_point_exact_match",
               show_number(is_scale ? c->scale_exact_match : (double)c->zero_point_exact_match),
               show_number(is_scale ? (double)info->fixed_scale : (double)info->fixed_zero_point),
               "the qconfig's fixed scale %.9g and zero point %lld are not the backend's %.9g and "
               "%lld",
               (double)info->fixed_scale, (long long)info->fixed_zero_point, c->scale_exact_match,
               (long long)c->zero_point_exact_match);
    return TARE_OK;
}

// Not in torch: constraints of accelerators on the scheme.
static tare_status check_qscheme(support_query *q, const tare_observer_info *info,
                                 const tare_dtype_constraints *c, const char *what) {
    if (info->qscheme == TARE_QSCHEME_UNSET) return TARE_OK;
    if (c->set & TARE_SET_QSCHEMES && !(c->allowed_qschemes & TARE_QSCHEME_BIT(info->qscheme))) {
        text allowed = {0};
        tare__qschemes_to_text(c->allowed_qschemes, &allowed);
        refuse(q, "allowed_qschemes", show_name(tare__text_chars(&allowed)),
               show_name(tare_qscheme_name(info->qscheme)),
               "the backend wants the %s to be %s, the qconfig's is %s", what,
               tare__text_chars(&allowed), tare_qscheme_name(info->qscheme));
        const tare_status status = tare__text_status(&allowed, q->pass->base->err);
        tare__text_release(&allowed);
        return status;
    }
    if (c->set & TARE_SET_CHANNEL_AXIS && tare__qscheme_is_per_channel(info->qscheme) &&
        info->channel_axis != c->channel_axis)
        refuse(q, "channel_axis", show_number((double)c->channel_axis),
               show_number(info->channel_axis),
               "the backend wants the channels of the %s along axis %lld, the qconfig's are "
               "along axis %d",
               what, (long long)c->channel_axis, info->channel_axis);
    return TARE_OK;
}

// torch's _qconfig_satisfies_dtype_config_constraints.
static tare_status check_constraints(support_query *q, const tare_observer_spec *spec,
                                     const tare_dtype_constraints *c, const char *what) {
    if (spec == NULL || c->dtype == TARE_DTYPE_UNSET) return TARE_OK; // as in torch
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, spec, &info));
    if (info.dtype != c->dtype) return TARE_OK;
    check_range(q, &info, c, what);
    if (q->is_supported) check_scale_min(q, &info, c, what);
    if (q->is_supported) TARE_TRY(check_qscheme(q, &info, c, what));
    return q->is_supported ? check_fixed(q, &info, c) : TARE_OK;
}

static const tare_observer_spec *activation_of(const support_query *q) {
    const tare_qconfig *qconfig = q->entry->qconfig.qconfig;
    return qconfig != NULL ? qconfig->activation : NULL;
}

static const char *name_of(tare_dtype dtype) {
    return dtype == TARE_DTYPE_UNSET ? "no dtype" : tare_dtype_name(dtype);
}

static tare_status check_activation(support_query *q) {
    const tare_dtype_constraints *c = &q->config->input;
    q->role = "input_dtype";
    if (c->dtype == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, q->root_entry->info.input, &info));
    if (info.dtype != c->dtype) {
        refuse(q, "dtype", show_name(name_of(c->dtype)), show_name(name_of(info.dtype)),
               "the backend wants %s inputs, the qconfig gives %s", name_of(c->dtype),
               name_of(info.dtype));
        return TARE_OK;
    }
    q->passed++;
    if ((q->config->is_dynamic > 0) != info.is_dynamic) {
        q->role = "";
        refuse(q, "is_dynamic", show_name(q->config->is_dynamic > 0 ? "true" : "false"),
               show_name(info.is_dynamic ? "true" : "false"),
               "the backend wants %s quantization here, the qconfig is %s",
               q->config->is_dynamic > 0 ? "dynamic" : "static",
               info.is_dynamic ? "dynamic" : "static");
        return TARE_OK;
    }
    q->passed++;
    return check_constraints(q, activation_of(q), c, "activation");
}

static tare_status check_weight(support_query *q) {
    const tare_dtype_constraints *c = &q->config->weight;
    q->role = "weight_dtype";
    if (c->dtype == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, q->root_entry->info.weight, &info));
    if (info.dtype != c->dtype) {
        refuse(q, "dtype", show_name(name_of(c->dtype)), show_name(name_of(info.dtype)),
               "the backend wants %s weights, the qconfig gives %s", name_of(c->dtype),
               name_of(info.dtype));
        return TARE_OK;
    }
    q->passed++;
    const tare_qconfig *qconfig = q->entry->qconfig.qconfig;
    return check_constraints(q, qconfig != NULL ? qconfig->weight : NULL, c, "weight");
}

static tare_status check_bias(support_query *q) {
    if (q->config->bias == TARE_DTYPE_UNSET) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(q->pass->base, q->root_entry->info.bias, &info));
    q->role = "";
    if (info.dtype != q->config->bias)
        refuse(q, "bias_dtype", show_name(name_of(q->config->bias)), show_name(name_of(info.dtype)),
               "the backend wants a %s bias, the qconfig gives %s", name_of(q->config->bias),
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
    q->role = "output_dtype";
    if (c->dtype == TARE_DTYPE_UNSET || !q->is_supported) return TARE_OK;
    tare_observer_info info;
    TARE_TRY(
        tare__pass_spec_info(q->pass->base, tare__prepare_node(q->pass, last)->info.output, &info));
    // A dynamically quantized operator has a float result.
    const tare_dtype dtype = info.is_dynamic ? TARE_FLOAT32 : info.dtype;
    if (dtype != c->dtype) {
        refuse(q, "dtype", show_name(name_of(c->dtype)), show_name(name_of(dtype)),
               "the backend gives %s outputs, the qconfig wants %s", name_of(c->dtype),
               name_of(dtype));
        return TARE_OK;
    }
    return check_constraints(q, activation_of(q), c, "activation");
}

bool tare__prepare_has_module_weight(const prepare_match *match) {
    return match->config != NULL && match->root->op == NODE_CALL_MODULE &&
           match->config->root_module != NULL && match->config->reference_quantized_module != NULL;
}

static tare_status check_groups(support_query *q, const tare_observer_info *weight) {
    const module *called = tare__called_module(q->pass->base->model, q->root);
    int64_t row, group;
    if (tare__groups_fit(called, weight, &row, &group)) return TARE_OK;
    refuse(q, "group_size", show_number((double)row), show_number((double)group),
           "its rows of %lld weights do not divide into groups of %lld", (long long)row,
           (long long)group);
    return TARE_OK;
}

// torch checks the weights of modules only in convert, where those with another dtype stay float.
// Prepare does the same for explicit mappings.
static tare_status check_module_weight(support_query *q) {
    const prepare_pass *p = q->pass;
    if (!tare__prepare_has_module_weight(q->entry->match) || !q->is_supported || p->leaves_weights)
        return TARE_OK;
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(p->base, q->root_entry->info.weight, &info));
    if (info.dtype != q->config->weight.dtype && !tare__qconfig_mapping_is_own(p->mapping))
        return TARE_OK;
    TARE_TRY(check_weight(q));
    return q->is_supported ? check_groups(q, &info) : TARE_OK;
}

static tare_status try_config(support_query *q, size_t index) {
    const prepare_match *match = q->entry->match;
    q->config = &match->config->dtype_configs.items[index];
    q->is_supported = true;
    q->passed = 0;
    if (q->attempt != NULL) *q->attempt = (dtypes_try){.index = index};
    for (size_t a = 0; a < match->root->arg_count; a++)
        TARE_TRY(check_arg(q, &match->root->args[a]));
    for (size_t k = 0; k < match->root->kwarg_count; k++)
        TARE_TRY(check_arg(q, &match->root->kwargs[k].value));
    TARE_TRY(check_output(q, match->last));
    TARE_TRY(check_module_weight(q));
    if (q->attempt != NULL) q->attempt->is_accepted = q->is_supported;
    return q->is_out_of_memory ? tare__out_of_memory(q->pass->base->err) : TARE_OK;
}

tare_status tare__prepare_is_supported(prepare_pass *p, const prepare_node *entry, bool *out,
                                       support_log *log) {
    const prepare_match *match = entry->match;
    *out = false;
    if (match->refusal != NULL) return TARE_OK;
    // An operator inside a pattern may have no qconfig: its last operator and its root determine
    // what is quantized.
    if (tare__prepare_node(p, match->last)->qconfig.qconfig == NULL) return TARE_OK;
    if (match->config == NULL) { // a module of the custom config, without a pattern
        *out = true;
        return TARE_OK;
    }
    support_query q = {.pass = p, .entry = entry, .root = match->root, .role = "", .log = log};
    q.root_entry = tare__prepare_node(p, match->root);
    const size_t count = match->config->dtype_configs.count;
    if (log != NULL) {
        log->tries = tare__arena_array(&p->base->scratch, count + 1, sizeof *log->tries);
        if (log->tries == NULL) return tare__out_of_memory(p->base->err);
        log->count = 0;
    }
    if (count == 0)
        refuse(&q, "dtype_configs", show_name(""), show_name(""),
               "the backend only fuses this pattern, it lists no dtypes");
    for (size_t i = 0; i < count && !*out; i++) {
        if (log != NULL) q.attempt = &log->tries[log->count++];
        TARE_TRY(try_config(&q, i));
        *out = q.is_supported;
    }
    return TARE_OK;
}

tare_status tare__prepare_weight_refusal(prepare_pass *p, const prepare_node *entry,
                                         support_log *log) {
    const prepare_match *match = entry->match;
    if (entry->try_count == 0 || !tare__prepare_has_module_weight(match)) return TARE_OK;
    support_query q = {.pass = p,
                       .entry = entry,
                       .root = match->root,
                       .root_entry = tare__prepare_node(p, match->root),
                       .config = &match->config->dtype_configs.items[entry->try_count - 1],
                       .role = "",
                       .log = log,
                       .is_supported = true};
    return check_weight(&q);
}
