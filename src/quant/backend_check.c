// SPDX-License-Identifier: Apache-2.0
// Lint of backend configs: what is allowed, but cannot mean what was meant. Torch accepts all of
// it.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "quant/backend_config.h"
#include "quant/builtin_names.h"
#include "quant/pattern_form.h"

typedef struct lint {
    const tare_backend_config *backend;
    const tare_pattern_config *config; // the one that is looked at
    text *out;
    size_t count;
} lint;

static void found(lint *l, const char *format, ...) TARE_PRINTF(2, 3);
static void found(lint *l, const char *format, ...) {
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    tare__text_append(l->out, "pattern ");
    tare__pattern_to_text(tare__pattern_config_given(l->config), l->out);
    tare__text_printf(l->out, ": %s\n", sentence);
    l->count++;
}

static bool is_set(const tare_dtype_constraints *c, uint32_t bits) {
    return (c->set & bits) == bits;
}

static void check_exact(lint *l, const char *role, const tare_dtype_constraints *c) {
    if (!is_set(c, TARE_SET_SCALE_EXACT) != !is_set(c, TARE_SET_ZERO_POINT_EXACT))
        found(l, "%s: scale_exact_match and zero_point_exact_match are enforced only together",
              role);
    if (is_set(c, TARE_SET_SCALE_EXACT) && c->scale_exact_match <= 0)
        found(l, "%s: no scale is %g", role, c->scale_exact_match);
    if (is_set(c, TARE_SET_SCALE_EXACT | TARE_SET_SCALE_MIN) &&
        c->scale_exact_match < c->scale_min_lower_bound)
        found(l, "%s: scale_exact_match %g is below scale_min_lower_bound %g", role,
              c->scale_exact_match, c->scale_min_lower_bound);
    const double zero_point = (double)c->zero_point_exact_match;
    if (is_set(c, TARE_SET_ZERO_POINT_EXACT | TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX) &&
        (zero_point < c->quant_min_lower_bound || zero_point > c->quant_max_upper_bound))
        found(l, "%s: zero_point_exact_match %g is outside of %g..%g", role, zero_point,
              c->quant_min_lower_bound, c->quant_max_upper_bound);
}

static void check_bounds(lint *l, const char *role, const tare_dtype_constraints *c) {
    if (!is_set(c, TARE_SET_QUANT_MIN) != !is_set(c, TARE_SET_QUANT_MAX))
        found(l, "%s: quant_min_lower_bound and quant_max_upper_bound are enforced only together",
              role);
    if (is_set(c, TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX) &&
        c->quant_min_lower_bound > c->quant_max_upper_bound)
        found(l, "%s: quant_min_lower_bound %g is above quant_max_upper_bound %g", role,
              c->quant_min_lower_bound, c->quant_max_upper_bound);
    if (is_set(c, TARE_SET_SCALE_MIN | TARE_SET_SCALE_MAX) &&
        c->scale_min_lower_bound > c->scale_max_upper_bound)
        found(l, "%s: scale_min_lower_bound %g is above scale_max_upper_bound %g", role,
              c->scale_min_lower_bound, c->scale_max_upper_bound);
    if (is_set(c, TARE_SET_SCALE_MAX))
        found(l, "%s: scale_max_upper_bound is kept but not enforced", role);
    check_exact(l, role, c);
}

static bool same_constraints(const tare_dtype_constraints *a, const tare_dtype_constraints *b) {
    const struct {
        uint32_t bit;
        bool is_same;
    } fields[] = {
        {TARE_SET_QUANT_MIN, a->quant_min_lower_bound == b->quant_min_lower_bound},
        {TARE_SET_QUANT_MAX, a->quant_max_upper_bound == b->quant_max_upper_bound},
        {TARE_SET_SCALE_MIN, a->scale_min_lower_bound == b->scale_min_lower_bound},
        {TARE_SET_SCALE_MAX, a->scale_max_upper_bound == b->scale_max_upper_bound},
        {TARE_SET_SCALE_EXACT, a->scale_exact_match == b->scale_exact_match},
        {TARE_SET_ZERO_POINT_EXACT, a->zero_point_exact_match == b->zero_point_exact_match},
    };
    if (a->dtype != b->dtype || a->set != b->set) return false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (a->set & fields[i].bit && !fields[i].is_same) return false;
    return true;
}

static bool same_dtypes(const tare_dtype_config *a, const tare_dtype_config *b) {
    return same_constraints(&a->input, &b->input) && same_constraints(&a->output, &b->output) &&
           same_constraints(&a->weight, &b->weight) && a->bias == b->bias &&
           (a->is_dynamic > 0) == (b->is_dynamic > 0);
}

static void check_dtypes(lint *l) {
    const dtype_config_list *list = &l->config->dtype_configs;
    // Without dtypes a pattern still makes sense where it only fuses.
    if (list->count == 0 && !tare__pattern_config_has_fuser(l->config))
        found(l, "without dtype_configs nothing is ever quantized");
    for (size_t i = 0; i < list->count; i++) {
        const tare_dtype_config *d = &list->items[i];
        check_bounds(l, "input_dtype", &d->input);
        check_bounds(l, "output_dtype", &d->output);
        check_bounds(l, "weight_dtype", &d->weight);
        for (size_t k = 0; k < i; k++)
            if (same_dtypes(&list->items[k], d))
                found(l, "dtype_configs %zu and %zu are equal", k, i);
    }
}

static void check_fuser(lint *l) {
    const tare_pattern_config *p = l->config;
    const bool has_fuser = tare__pattern_config_has_fuser(p);
    if (p->fused_module && !has_fuser)
        found(l, "fused_module %s has no fuser_method to make it", p->fused_module);
    if (has_fuser && p->complex->kind != PATTERN_TUPLE)
        found(l, "fuser_method has only one operator to fuse");
    if (p->extra_inputs_getter && !has_fuser)
        found(l, "extra_inputs_getter is asked only by a fuser, and there is none");
    char made[256] = "", public_name[256];
    const fuser_name *row = NULL;
    if (!p->fuser_method || !p->fused_module ||
        tare__fuser_find(p->fuser_method, &row, made, sizeof made, NULL) != TARE_OK || !made[0])
        return;
    const char *canonical = tare__operator_canonical(made, public_name, sizeof public_name);
    if (strcmp(canonical, p->fused_module) != 0)
        found(l, "fused_module is %s, but fuser_method makes %s", p->fused_module, canonical);
}

static void check_modules(lint *l) {
    const tare_pattern_config *p = l->config;
    // A fusion pattern names its root without a reference; the fused module's own pattern has both.
    if (p->root_module && !p->reference_quantized_module && !tare__pattern_config_has_fuser(p))
        found(l, "root_module works only with reference_quantized_module_for_root");
    if (p->reference_quantized_module && !p->root_module)
        found(l, "reference_quantized_module_for_root works only with root_module");
}

tare_status tare_backend_config_lint(const tare_backend_config *config, tare_writer write,
                                     void *user, size_t *count, tare_error *err) {
    TARE_TRY(tare_backend_config_check(config, err));
    text out = {0};
    lint l = {.backend = config, .out = &out};
    for (size_t i = 0; i < config->count; i++) {
        l.config = config->configs[i];
        check_dtypes(&l);
        check_fuser(&l);
        check_modules(&l);
    }
    const tare_status status = tare__text_write(&out, TARE_OK, write, user, err);
    if (status == TARE_OK) *count = l.count;
    return status;
}
