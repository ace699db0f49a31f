// SPDX-License-Identifier: Apache-2.0
// Lint for backend configs: errors, which no quantization can satisfy, and warnings about entries
// without effect or with an unintended one. torch accepts all of them. Passes refuse errors; the
// lint function reports both.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/backend_config.h"
#include "config/builtin_names.h"
#include "config/constraints.h"
#include "config/pattern_form.h"
#include "model/model.h"
#include "model/user_class.h"
#include "ops/op.h"

typedef struct lint {
    const tare_backend_config *backend;
    const tare_context *context;
    size_t index;                      // of the pattern that is being checked
    const tare_pattern_config *config; // its config
    tare_backend_finding_visitor visit;
    void *user;
    size_t count;
    tare_status status; // of the first failed call, after which nothing is checked
    tare_error *err;
} lint;

// A path within the pattern's config, and how to fix it.
typedef struct advice {
    char path[96];
    const char *remedy;
} advice;

static void tell(lint *l, const advice *at, bool is_error, const char *problem) {
    char path[160];
    text shown = {0}; // the pattern, as the user wrote it
    if (l->status != TARE_OK) return;
    (void)snprintf(path, sizeof path, "$.configs[%zu]%s", l->index, at->path);
    tare__pattern_to_text(tare__pattern_config_given(l->config), &shown);
    const tare_backend_finding finding = {.struct_size = sizeof finding,
                                          .path = path,
                                          .pattern = tare__text_chars(&shown),
                                          .problem = problem,
                                          .remedy = at->remedy,
                                          .is_error = is_error};
    l->status = tare__text_status(&shown, l->err);
    if (l->status == TARE_OK) l->status = l->visit(l->user, &finding, l->err);
    tare__text_release(&shown);
    if (l->status == TARE_OK) l->count++;
}

static void error(lint *l, const advice *at, const char *format, ...) TARE_PRINTF(3, 4);
static void error(lint *l, const advice *at, const char *format, ...) {
    char problem[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    tell(l, at, true, problem);
}

static void warning(lint *l, const advice *at, const char *format, ...) TARE_PRINTF(3, 4);
static void warning(lint *l, const advice *at, const char *format, ...) {
    char problem[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    tell(l, at, false, problem);
}

static bool is_set(const tare_dtype_constraints *c, uint32_t bits) {
    return (c->set & bits) == bits;
}

static advice inside(const advice *role, const char *key, const char *remedy) {
    advice made = {.remedy = remedy};
    (void)snprintf(made.path, sizeof made.path, "%.60s.%s", role->path, key);
    return made;
}

static void check_exact(lint *l, const advice *role, const tare_dtype_constraints *c) {
    const advice at = inside(role, "scale_exact_match", "give a positive scale");
    if (!is_set(c, TARE_SET_SCALE_EXACT) != !is_set(c, TARE_SET_ZERO_POINT_EXACT)) {
        const advice both = inside(
            role, is_set(c, TARE_SET_SCALE_EXACT) ? "scale_exact_match" : "zero_point_exact_match",
            "set both, or neither");
        warning(l, &both,
                "scale_exact_match and zero_point_exact_match are enforced only together");
    }
    if (is_set(c, TARE_SET_SCALE_EXACT) && !(c->scale_exact_match > 0))
        error(l, &at, "no scale is %g", c->scale_exact_match);
    if (is_set(c, TARE_SET_SCALE_EXACT | TARE_SET_SCALE_MIN) &&
        c->scale_exact_match < c->scale_min_lower_bound)
        error(l, &(advice){.path = "", .remedy = "lower the bound or drop it"},
              "scale_exact_match %g is below scale_min_lower_bound %g", c->scale_exact_match,
              c->scale_min_lower_bound);
    int exponent = 0;
    if (is_set(c, TARE_SET_SCALE_EXACT | TARE_SET_POWER_OF_TWO) && c->scale_exact_match > 0 &&
        frexp(c->scale_exact_match, &exponent) != 0.5)
        error(l, &at, "scale_exact_match %g is no power of two, which scale_power_of_two demands",
              c->scale_exact_match);
}

static void check_scale(lint *l, const advice *role, const tare_dtype_constraints *c) {
    if (is_set(c, TARE_SET_SCALE_MIN) && !isfinite((float)c->scale_min_lower_bound)) {
        const advice at = inside(role, "scale_min_lower_bound", "give a bound that float32 holds");
        error(l, &at, "no scale is as great as %g", c->scale_min_lower_bound);
        return;
    }
    if (is_set(c, TARE_SET_SCALE_MIN | TARE_SET_SCALE_MAX) &&
        c->scale_min_lower_bound > c->scale_max_upper_bound) {
        const advice at = inside(role, "scale_max_upper_bound", "swap or widen the bounds");
        error(l, &at, "scale_min_lower_bound %g is above scale_max_upper_bound %g",
              c->scale_min_lower_bound, c->scale_max_upper_bound);
    } else if (is_set(c, TARE_SET_SCALE_MAX) && !(c->scale_max_upper_bound > 0)) {
        const advice at = inside(role, "scale_max_upper_bound", "give a positive bound");
        error(l, &at, "no scale is as small as %g", c->scale_max_upper_bound);
    }
}

static void check_range(lint *l, const advice *role, const tare_dtype_constraints *c) {
    const bool has_min = is_set(c, TARE_SET_QUANT_MIN), has_max = is_set(c, TARE_SET_QUANT_MAX);
    if (has_min != has_max) {
        const advice at = inside(role, has_min ? "quant_min_lower_bound" : "quant_max_upper_bound",
                                 "set the other one too");
        warning(l, &at,
                "quant_min_lower_bound and quant_max_upper_bound are enforced only together");
    }
    if (!has_min || !has_max) return;
    const advice at = inside(role, "quant_min_lower_bound", "swap or widen the bounds");
    const dtype_info *dtype = tare__dtype(c->dtype);
    if (c->quant_min_lower_bound > c->quant_max_upper_bound)
        error(l, &at, "quant_min_lower_bound %g is above quant_max_upper_bound %g",
              c->quant_min_lower_bound, c->quant_max_upper_bound);
    else if (dtype->min < dtype->max && (c->quant_max_upper_bound < (double)dtype->min ||
                                         c->quant_min_lower_bound > (double)dtype->max))
        error(l, &at, "%s holds %lld..%lld, nothing of which lies in %g..%g",
              tare_dtype_name(c->dtype), (long long)dtype->min, (long long)dtype->max,
              c->quant_min_lower_bound, c->quant_max_upper_bound);
}

// Checks the exact zero point against the bounds of the integers.
static void check_zero_point(lint *l, const advice *role, const tare_dtype_constraints *c) {
    double low = -INFINITY, high = INFINITY;
    if (is_set(c, TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX)) {
        low = c->quant_min_lower_bound;
        high = c->quant_max_upper_bound;
    }
    const double exact = (double)c->zero_point_exact_match;
    if (is_set(c, TARE_SET_ZERO_POINT_EXACT) && (exact < low || exact > high)) {
        const advice at = inside(role, "zero_point_exact_match", "move it into the range");
        error(l, &at, "zero_point_exact_match %g is outside of %g..%g", exact, low, high);
    }
    if (is_set(c, TARE_SET_ZERO_POINT_MIN)) low = fmax(low, (double)c->zero_point_lower_bound);
    if (is_set(c, TARE_SET_ZERO_POINT_MAX)) high = fmin(high, (double)c->zero_point_upper_bound);
    if (c->set & (TARE_SET_ZERO_POINT_MIN | TARE_SET_ZERO_POINT_MAX) && low > high) {
        const advice at = inside(role,
                                 is_set(c, TARE_SET_ZERO_POINT_MIN) ? "zero_point_lower_bound"
                                                                    : "zero_point_upper_bound",
                                 "let the bounds overlap");
        error(l, &at, "no zero point lies in %g..%g", low, high);
    }
}

static void check_qschemes(lint *l, const advice *role, const tare_dtype_constraints *c) {
    const uint32_t per_channel = TARE_QSCHEME_BIT(TARE_PER_CHANNEL_AFFINE) |
                                 TARE_QSCHEME_BIT(TARE_PER_CHANNEL_SYMMETRIC) |
                                 TARE_QSCHEME_BIT(TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS);
    if (!is_set(c, TARE_SET_CHANNEL_AXIS | TARE_SET_QSCHEMES) || c->allowed_qschemes & per_channel)
        return;
    const advice at = inside(role, "channel_axis", "drop it, or allow a per-channel scheme");
    warning(l, &at, "channel_axis bounds per-channel schemes, and allowed_qschemes has none");
}

// Checks for values without their TARE_SET_ bits. Only configs created in C can have them, because
// reading a file sets the bits.
static void check_bits(lint *l, const advice *role, const tare_dtype_constraints *c) {
    const char *key = tare__constraints_without_bit(c);
    if (key == NULL) return;
    const advice at = inside(role, key, "set it by its tare_dtype_constraints_set_ function");
    warning(l, &at, "%s has a value but not its TARE_SET_ bit, so it has no effect", key);
}

static void check_tensor(lint *l, size_t i, const char *key, const tare_dtype_constraints *c) {
    advice role = {.remedy = ""};
    (void)snprintf(role.path, sizeof role.path, ".dtype_configs[%zu].%s", i, key);
    check_bits(l, &role, c);
    check_range(l, &role, c);
    check_scale(l, &role, c);
    check_exact(l, &role, c);
    check_zero_point(l, &role, c);
    check_qschemes(l, &role, c);
}

static bool same_dtypes(const tare_dtype_config *a, const tare_dtype_config *b) {
    return tare__constraints_equal(&a->input, &b->input) &&
           tare__constraints_equal(&a->output, &b->output) &&
           tare__constraints_equal(&a->weight, &b->weight) && a->bias == b->bias &&
           (a->is_dynamic > 0) == (b->is_dynamic > 0);
}

static void check_dtypes(lint *l) {
    const dtype_config_list *list = &l->config->dtype_configs;
    // A pattern that is only fused needs no dtypes.
    if (list->count == 0 && !tare__pattern_config_has_fuser(l->config))
        warning(l, &(advice){.path = "", .remedy = "add dtype_configs, or drop the pattern"},
                "without dtype_configs nothing is ever quantized");
    for (size_t i = 0; i < list->count; i++) {
        const tare_dtype_config *d = &list->items[i];
        check_tensor(l, i, "input_dtype", &d->input);
        check_tensor(l, i, "output_dtype", &d->output);
        check_tensor(l, i, "weight_dtype", &d->weight);
        for (size_t k = 0; k < i; k++) {
            advice at = {.remedy = "drop one"};
            (void)snprintf(at.path, sizeof at.path, ".dtype_configs[%zu]", i);
            if (same_dtypes(&list->items[k], d))
                warning(l, &at, "dtype_configs %zu and %zu are equal", k, i);
        }
    }
}

static void check_fuser(lint *l) {
    const tare_pattern_config *p = l->config;
    const bool has_fuser = tare__pattern_config_has_fuser(p);
    const advice fused = {.path = ".fused_module", .remedy = "give a fuser_method, or drop it"};
    const advice fuser = {.path = ".fuser_method", .remedy = "fuse two operators or more"};
    const advice getter = {.path = ".extra_inputs_getter",
                           .remedy = "give a fuser_method, or drop it"};
    if (p->fused_module && !has_fuser)
        error(l, &fused, "fused_module %s has no fuser_method to make it", p->fused_module);
    if (has_fuser && p->complex->kind != PATTERN_TUPLE)
        warning(l, &fuser, "fuser_method has only one operator to fuse");
    if (p->extra_inputs_getter && !has_fuser)
        warning(l, &getter, "extra_inputs_getter is called only by a fuser, and there is none");
    char made[256] = "", public_name[256];
    const fuser_name *row = NULL;
    if (!p->fuser_method || !p->fused_module ||
        tare__fuser_find(p->fuser_method, &row, made, sizeof made, NULL) != TARE_OK || !made[0])
        return;
    const char *canonical = tare__operator_canonical(made, public_name, sizeof public_name);
    if (strcmp(canonical, p->fused_module) != 0)
        warning(l, &(advice){.path = ".fused_module", .remedy = "name what the fuser makes"},
                "fused_module is %s, but fuser_method makes %s", p->fused_module, canonical);
}

static void check_modules(lint *l) {
    const tare_pattern_config *p = l->config;
    const advice root = {.path = ".root_module",
                         .remedy = "name the reference module, or drop the root"};
    const advice reference = {.path = ".reference_quantized_module_for_root",
                              .remedy = "name the root_module"};
    // A fusion pattern has a root but no reference module; the pattern of the fused module has
    // both.
    if (p->root_module && !p->reference_quantized_module && !tare__pattern_config_has_fuser(p))
        warning(l, &root, "root_module works only with reference_quantized_module_for_root");
    if (p->reference_quantized_module && !p->root_module)
        warning(l, &reference, "reference_quantized_module_for_root works only with root_module");
}

// --- classes ---

static void check_class(lint *l, const char *key, const char *name, unsigned roles,
                        const char *wanted) {
    advice at = {.remedy = "correct the name, or register the class in a context"};
    if (name == NULL) return;
    (void)snprintf(at.path, sizeof at.path, ".%s", key);
    const registry *classes = &tare__context_or_builtin(l->context)->classes;
    const module_class *class = tare__class_find(classes, name);
    if (class == NULL) {
        warning(l, &at, "%s %s is not a known module class", key, name);
        return;
    }
    // A custom class has the same role in every position.
    if (tare__user_class(class) != NULL || (roles & 1u << class->role) != 0) return;
    at.remedy = "name a class of that kind";
    warning(l, &at, "%s %s is not %s", key, name, wanted);
}

static void check_classes(lint *l) {
    const tare_pattern_config *p = l->config;
    check_class(l, "root_module", p->root_module, 1u << ROLE_FLOAT | 1u << ROLE_FUSED,
                "a float module");
    check_class(l, "qat_module", p->qat_module, 1u << ROLE_QAT, "a module for training");
    check_class(l, "reference_quantized_module_for_root", p->reference_quantized_module,
                1u << ROLE_REFERENCE, "a reference module");
    check_class(l, "fused_module", p->fused_module,
                1u << ROLE_FLOAT | 1u << ROLE_FUSED | 1u << ROLE_QAT, "a fused module");
}

static bool has_pattern_for(const lint *l, const char *name) {
    for (size_t i = 0; i < l->backend->count; i++) {
        const pattern *p = l->backend->configs[i]->complex;
        if (p->kind == PATTERN_MODULE && strcmp(p->name, name) == 0) return true;
    }
    return false;
}

// Warns about a fused module without a pattern of its own, which would never be quantized.
static void check_fused_pattern(lint *l) {
    const tare_pattern_config *p = l->config;
    const advice at = {.path = ".fused_module", .remedy = "add a pattern with dtype_configs"};
    if (p->fused_module == NULL || p->dtype_configs.count > 0 || !tare__pattern_config_has_fuser(p))
        return;
    if (!has_pattern_for(l, p->fused_module))
        warning(l, &at, "no pattern is for %s, so the fused module stays float", p->fused_module);
}

// --- dtypes ---

static void check_dtype_name(lint *l, size_t i, const char *key, tare_dtype dtype) {
    static const struct {
        tare_dtype found, meant;
    } rows[] = {{TARE_INT8, TARE_QINT8}, {TARE_UINT8, TARE_QUINT8}, {TARE_INT32, TARE_QINT32}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (dtype != rows[k].found) continue;
        advice at = {.remedy = "name the quantized dtype"};
        (void)snprintf(at.path, sizeof at.path, ".dtype_configs[%zu].%s", i, key);
        warning(l, &at, "the observers of a qconfig give %s, not %s",
                tare_dtype_name(rows[k].meant), tare_dtype_name(dtype));
    }
}

// No observer of these dtypes is replaced, and no engine has kernels for them.
static void check_width(lint *l, size_t i, const char *key, tare_dtype dtype) {
    advice at = {.remedy = "name torch.quint8 or torch.qint8"};
    if (dtype != TARE_INT16 && dtype != TARE_UINT16) return;
    (void)snprintf(at.path, sizeof at.path, ".dtype_configs[%zu].%s", i, key);
    warning(l, &at, "FX graph mode has no quantize operator for %s: the values stay float",
            tare_dtype_name(dtype));
}

// True if the operator outputs tensors; sizes and shapes are never observed.
static bool gives_tensors(const pattern *p) {
    const op_info *op = p->kind == PATTERN_METHOD     ? tare__op_method(p->name)
                        : p->kind == PATTERN_FUNCTION ? tare__op_function(p->name)
                                                      : NULL;
    return p->kind == PATTERN_MODULE || p->kind == PATTERN_TUPLE ||
           (op != NULL && !tare__op_has(op, OP_NOT_ON_TENSORS));
}

static void check_meaning(lint *l, size_t i, const tare_dtype_config *d) {
    advice at = {.remedy = "set output_dtype to torch.float"};
    const bool gives_quantized =
        d->output.dtype != TARE_DTYPE_UNSET && !tare__dtype(d->output.dtype)->is_float;
    (void)snprintf(at.path, sizeof at.path, ".dtype_configs[%zu].output_dtype", i);
    if (d->is_dynamic > 0 && gives_quantized)
        warning(l, &at, "the output of dynamic quantization is float, not %s",
                tare_dtype_name(d->output.dtype));
    at.remedy = "choose another observation_type, or float dtypes";
    if (l->config->observation_type == TARE_INPUT_OUTPUT_NOT_OBSERVED && gives_quantized &&
        gives_tensors(l->config->complex))
        warning(l, &at, "INPUT_OUTPUT_NOT_OBSERVED has no effect beside %s: the output is observed",
                tare_dtype_name(d->output.dtype));
}

static void check_use(lint *l) {
    const dtype_config_list *list = &l->config->dtype_configs;
    for (size_t i = 0; i < list->count; i++) {
        const tare_dtype_config *d = &list->items[i];
        check_dtype_name(l, i, "input_dtype", d->input.dtype);
        check_dtype_name(l, i, "output_dtype", d->output.dtype);
        check_dtype_name(l, i, "weight_dtype", d->weight.dtype);
        check_width(l, i, "input_dtype", d->input.dtype);
        check_width(l, i, "output_dtype", d->output.dtype);
        check_meaning(l, i, d);
    }
}

// --- patterns ---

// True if the name is that of a known module class, function or method.
static bool is_known(const lint *l, const pattern *p) {
    const registry *classes = &tare__context_or_builtin(l->context)->classes;
    switch (p->kind) {
    case PATTERN_MODULE:
        return tare__class_find(classes, p->name) != NULL;
    case PATTERN_FUNCTION:
        return tare__op_function(p->name) != NULL;
    case PATTERN_METHOD:
        return tare__op_method(p->name) != NULL;
    case PATTERN_ANY:
    case PATTERN_LITERAL:
    case PATTERN_TUPLE:
        break;
    }
    return true;
}

static void check_names(lint *l, const pattern *p) {
    if (!is_known(l, p))
        warning(l,
                &(advice){.path = "",
                          .remedy = p->kind == PATTERN_MODULE
                                        ? "correct the name, or register the class in a context"
                                        : "correct the name"},
                "%s is not a known %s, so the pattern never matches", p->name,
                p->kind == PATTERN_MODULE     ? "module class"
                : p->kind == PATTERN_FUNCTION ? "function"
                                              : "method");
    for (size_t i = 0; p->kind == PATTERN_TUPLE && i < p->item_count; i++)
        // Strings among the arguments of an operator are parsed as methods here.
        if (i == 0 || p->items[i].kind != PATTERN_METHOD) check_names(l, &p->items[i]);
}

static const op_info *row_of(const lint *l, const pattern *p) {
    const registry *classes = &tare__context_or_builtin(l->context)->classes;
    if (p->kind == PATTERN_FUNCTION) return tare__op_function(p->name);
    if (p->kind == PATTERN_METHOD) return tare__op_method(p->name);
    const module_class *class =
        p->kind == PATTERN_MODULE ? tare__class_find(classes, p->name) : NULL;
    return class != NULL ? tare__class_row(class) : NULL;
}

// Warns about patterns in forward order in complex form: torch's first patterns were reversed, such
// as (relu, conv) for a relu after a convolution. No operator before a weighted one is ever fused
// with it.
static void check_order(lint *l, const pattern *p) {
    const pattern *first = p;
    if (p->kind != PATTERN_TUPLE || p->item_count == 0) return;
    while (first->kind == PATTERN_TUPLE && first->item_count == 2) first = &first->items[1];
    const op_info *last_row = row_of(l, &p->items[0]), *first_row = row_of(l, first);
    if (first == p || !tare__op_has(last_row, OP_WEIGHTED) || first_row == NULL ||
        tare__op_has(first_row, OP_WEIGHTED))
        return;
    warning(l, &(advice){.path = "", .remedy = "list the operators in forward order"},
            "%s is last and %s first: patterns are in forward order, weighted operators first",
            p->items[0].name, first->name);
}

static void check_reach(lint *l, const tare_pattern_config *const *sorted) {
    for (size_t i = 0; sorted[i] != l->config; i++) {
        if (!tare__pattern_covers(sorted[i]->complex, l->config->complex)) continue;
        text other = {0};
        tare__pattern_to_text(tare__pattern_config_given(sorted[i]), &other);
        warning(l, &(advice){.path = "", .remedy = "drop one, or make the other one narrower"},
                "the pattern %s is tried before and matches everything that this one does",
                tare__text_chars(&other));
        tare__text_release(&other);
        return;
    }
}

// Checks a pattern config; names and matching can only give warnings.
static void check_config(lint *l) {
    check_dtypes(l);
    check_fuser(l);
    check_modules(l);
}

// Where a pattern stands in the user's file.
static size_t place_of(const tare_backend_config *config, size_t index) {
    const tare_pattern_config *p = config->configs[index];
    return p->has_place && !p->is_inherited ? p->place : index;
}

tare_status tare_backend_config_lint(const tare_backend_config *config, const tare_context *context,
                                     tare_backend_finding_visitor visit, void *user, size_t *count,
                                     tare_error *err) {
    TARE_TRY(tare__backend_config_status(config, err));
    arena memory = {0};
    const tare_pattern_config **sorted = NULL;
    lint l = {.backend = config, .context = context, .visit = visit, .user = user, .err = err};
    l.status = tare__backend_config_sorted(config, &memory, &sorted, err);
    for (size_t i = 0; i < config->count && l.status == TARE_OK; i++) {
        l.index = place_of(config, i);
        l.config = config->configs[i];
        if (l.config->is_inherited) continue; // the user can change nothing there
        check_names(&l, l.config->complex);
        check_order(&l, l.config->complex);
        check_reach(&l, sorted);
        check_classes(&l);
        check_fused_pattern(&l);
        check_use(&l);
        check_config(&l);
    }
    tare__arena_release(&memory);
    if (l.status == TARE_OK) *count = l.count;
    return l.status;
}

static tare_status refuse_error(void *user, const tare_backend_finding *finding, tare_error *err) {
    (void)user;
    if (!finding->is_error) return TARE_OK;
    const tare_status status = tare__fail(err, TARE_INVALID_ARGUMENT, "%s", finding->problem);
    tare__hint(err, status, "%s", finding->remedy);
    return tare__at(err, status, "%s: pattern %s", finding->path, finding->pattern);
}

tare_status tare_backend_config_check(const tare_backend_config *config, tare_error *err) {
    TARE_TRY(tare__backend_config_status(config, err));
    lint l = {.backend = config, .visit = refuse_error, .err = err};
    for (size_t i = 0; i < config->count && l.status == TARE_OK; i++) {
        l.index = place_of(config, i);
        l.config = config->configs[i];
        check_config(&l);
    }
    return l.status == TARE_OK
               ? TARE_OK
               : tare__at(err, l.status, "backend config '%s'", tare_backend_config_name(config));
}
