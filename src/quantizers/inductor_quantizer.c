// SPDX-License-Identifier: Apache-2.0
// X86InductorQuantizer, ArmInductorQuantizer and XPUInductorQuantizer: their patterns, and how
// settings apply. Source: torchao 0.18.
#include <string.h>

#include "quantizers/builtin.h"
#include "quantizers/inductor.h"

#define ATEN(name) "torch.ops.aten." name
#define CONV1D     "torch.nn.Conv1d"
#define CONV2D     "torch.nn.Conv2d"
#define LINEAR     "torch.nn.Linear"
#define NORM       "torch.nn.BatchNorm2d"
#define ADD        "operator.add"
#define RELU       "torch.nn.ReLU"

// clang-format off
static const chain_row x86_rows[] = {
    {CHAIN_BN | CHAIN_ADD | CHAIN_UNARY, {CONV2D, NORM, ADD, RELU}},
    {CHAIN_BN | CHAIN_ADD, {CONV2D, NORM, ADD}},
    {CHAIN_BN | CHAIN_UNARY, {CONV2D, NORM, RELU}},
    {CHAIN_BN | CHAIN_UNARY, {CONV2D, NORM, "torch.nn.Hardtanh"}},
    {CHAIN_BN | CHAIN_UNARY, {CONV2D, NORM, "torch.nn.Hardswish"}},
    {CHAIN_BN | CHAIN_UNARY, {CONV2D, NORM, "torch.nn.ReLU6"}},
    {CHAIN_BN | CHAIN_UNARY, {CONV2D, NORM, "torch.nn.SiLU"}},
    {CHAIN_BN, {CONV2D, NORM}},
#define WITHOUT_NORM                                    \
    {CHAIN_ADD | CHAIN_UNARY, {CONV2D, ADD, RELU}},     \
    {CHAIN_ADD, {CONV2D, ADD}},                         \
    {CHAIN_UNARY, {CONV2D, RELU}},                      \
    {CHAIN_UNARY, {CONV2D, "torch.nn.Hardtanh"}},       \
    {CHAIN_UNARY, {CONV2D, "torch.nn.Hardswish"}},      \
    {CHAIN_UNARY, {CONV2D, "torch.nn.ReLU6"}},          \
    {CHAIN_UNARY, {CONV2D, "torch.nn.SiLU"}},           \
    {CHAIN_UNARY, {CONV1D, RELU}},                      \
    {0, {CONV2D}},                                      \
    {CHAIN_ADD | CHAIN_UNARY, {LINEAR, ADD, RELU}},     \
    {CHAIN_ADD, {LINEAR, ADD}},                         \
    {CHAIN_UNARY, {LINEAR, RELU}},                      \
    {CHAIN_UNARY, {LINEAR, "torch.nn.LeakyReLU"}},      \
    {CHAIN_UNARY, {LINEAR, "torch.nn.Tanh"}},           \
    {CHAIN_UNARY, {LINEAR, "torch.nn.GELU"}},           \
    {0, {LINEAR}}
    WITHOUT_NORM,
};
static const chain_row xpu_rows[] = {WITHOUT_NORM};
static const chain_row arm_rows[] = {
    {CHAIN_BN | CHAIN_ADD, {CONV2D, NORM, ADD}},
    {CHAIN_BN, {CONV2D, NORM}},
    {CHAIN_ADD, {CONV2D, ADD}},
    {0, {CONV2D}},
    {CHAIN_UNARY, {LINEAR, RELU}},
    {CHAIN_UNARY, {LINEAR, "torch.nn.LeakyReLU"}},
    {CHAIN_UNARY, {LINEAR, "torch.nn.Tanh"}},
    {CHAIN_UNARY, {LINEAR, "torch.nn.GELU"}},
    {0, {LINEAR}},
};

#define HANDS_ON ATEN("max_pool2d.default"), ATEN("cat.default"), ATEN("avg_pool2d.default"), \
                 ATEN("adaptive_avg_pool2d.default"), ATEN("flatten.using_ints")
#define X86_DEFAULT HANDS_ON, ATEN("conv1d.default"), ATEN("conv2d.default"), ATEN("linear.default"), ATEN("mul.Tensor")
static const char *const x86_default[] = {X86_DEFAULT, NULL};
static const char *const x86_operators[] = {X86_DEFAULT, ATEN("matmul.default"), NULL};
static const char *const arm_default[] = {ATEN("conv2d.default"), ATEN("linear.default"), NULL};
static const char *const arm_operators[] = {ATEN("conv2d.default"), ATEN("linear.default"), ATEN("matmul.default"), NULL};
#define F "torch.nn.functional."
static const char *const x86_types[] = {
    F "conv1d", ATEN("conv1d.default"), CONV2D, ATEN("conv2d.default"), F "conv2d", ATEN("conv2d.default"),
    LINEAR, ATEN("linear.default"), F "linear", ATEN("linear.default"),
    "torch.nn.MaxPool2d", ATEN("max_pool2d.default"), F "max_pool2d", ATEN("max_pool2d.default"),
    "torch.cat", ATEN("cat.default"),
    "torch.nn.AvgPool2d", ATEN("avg_pool2d.default"), F "avg_pool2d", ATEN("avg_pool2d.default"),
    "torch.nn.AdaptiveAvgPool2d", ATEN("adaptive_avg_pool2d.default"), F "adaptive_avg_pool2d", ATEN("adaptive_avg_pool2d.default"),
    "torch.flatten", ATEN("flatten.using_ints"), "torch.matmul", ATEN("matmul.default"), "torch.mul", ATEN("mul.Tensor"), NULL};
static const char *const arm_types[] = {
    CONV2D, ATEN("conv2d.default"), F "conv2d", ATEN("conv2d.default"), LINEAR, ATEN("linear.default"), F "linear", ATEN("linear.default"),
    "torch.matmul", ATEN("matmul.default"), NULL};
#define ROWS(list) .rows = (list), .row_count = sizeof(list) / sizeof *(list)
const inductor_recipe tare__x86_recipe = {.default_operators = x86_default, .operators = x86_operators, .types = x86_types,
                                          ROWS(x86_rows), .has_mul = true, .propagates = true, .has_max_pool = true};
const inductor_recipe tare__xpu_recipe = {.default_operators = x86_default, .operators = x86_operators, .types = x86_types,
                                          ROWS(xpu_rows), .has_mul = true, .propagates = true};
const inductor_recipe tare__arm_recipe = {.default_operators = arm_default, .operators = arm_operators, .types = arm_types,
                                          ROWS(arm_rows)};
// clang-format on

bool tare__name_is_listed(const char *name, const char *const *list) {
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0) return true;
    return false;
}

// --- annotations ---

tare_status tare__inductor_takes(const inductor_level *l, node *const *nodes, size_t count,
                                 bool *out) {
    *out = false;
    return tare__is_any_marked(l->a, nodes, count) ? TARE_OK : l->accepts(l, nodes, count, out);
}

tare_status tare__inductor_leave_float(const inductor_level *l, node *const *nodes, size_t count) {
    tare_annotation *annotation = NULL;
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__annotate_anew(l->a, nodes[i], &annotation));
    return TARE_OK;
}

static void note_output(const inductor_level *l, const node *n, bool is_last) {
    if (n->id < l->a->sources.count) l->a->gives_quantized[n->id] = is_last;
}

tare_status tare__inductor_layer(const inductor_level *l, node *layer, bool is_last,
                                 tare_annotation **out) {
    TARE_TRY(tare__annotate_layer(l->a, layer, &l->specs, out));
    note_output(l, layer, is_last);
    return TARE_OK;
}

tare_status tare__inductor_plain(const inductor_level *l, node *n, bool is_last,
                                 tare_annotation **out) {
    TARE_TRY(tare__annotate_anew(l->a, n, out));
    note_output(l, n, is_last);
    return TARE_OK;
}

// --- levels ---

static tare_status accepts_module(const inductor_level *l, node *const *nodes, size_t count,
                                  bool *out) {
    *out = true;
    for (size_t i = 0; i < count && *out; i++)
        *out = tare__node_is_in_module(&l->a->sources, nodes[i], l->setting->key);
    return TARE_OK;
}

static tare_status accepts_one(const inductor_level *l, node *const *nodes, size_t count,
                               const char *const *operators, const char *what, bool *out) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += tare__calls(nodes[i], operators);
    *out = found == 1;
    if (found <= 1) return TARE_OK;
    return tare__fail(l->a->err, TARE_UNSUPPORTED,
                      "node '%s': Several nodes within a single pattern are %s.", nodes[0]->name,
                      what);
}

static tare_status accepts_operator(const inductor_level *l, node *const *nodes, size_t count,
                                    bool *out) {
    const char *const operators[] = {l->setting->key, NULL};
    return accepts_one(l, nodes, count, operators, l->setting->key, out);
}

static tare_status accepts_default(const inductor_level *l, node *const *nodes, size_t count,
                                   bool *out) {
    return accepts_one(l, nodes, count, l->recipe->default_operators,
                       "default quantizable operations", out);
}

// Example: "Conv2d, add, ReLU".
static void chain_name(const chain_row *row, text *out) {
    for (size_t i = 0; i < 4 && row->types[i] != NULL; i++)
        tare__text_printf(out, "%s%s", i > 0 ? ", " : "", strrchr(row->types[i], '.') + 1);
}

static tare_status name_chain(annotating *a, const chain_row *row) {
    text name = {0};
    chain_name(row, &name);
    tare_status status = tare__text_status(&name, a->err);
    a->rule = tare__arena_strdup(&a->memory, tare__text_chars(&name));
    tare__text_release(&name);
    return status == TARE_OK && a->rule == NULL ? tare__out_of_memory(a->err) : status;
}

static const char matmul[] = "matmul", mul[] = "mul", propagation[] = "propagation";

void tare__inductor_each_rule(const struct builtin_row *row, name_visitor visit, void *user) {
    const inductor_recipe *recipe = row->recipe;
    for (size_t i = 0; i < recipe->row_count; i++) {
        text name = {0};
        chain_name(&recipe->rows[i], &name);
        visit(user, tare__text_chars(&name));
        tare__text_release(&name);
    }
    visit(user, matmul);
    if (recipe->has_mul) visit(user, mul);
    if (recipe->propagates) visit(user, propagation);
}

void tare__inductor_each_operator(const struct builtin_row *row, name_visitor visit, void *user) {
    const inductor_recipe *recipe = row->recipe;
    for (const char *const *o = recipe->operators; *o != NULL; o++) visit(user, *o);
}

static tare_status run_level(inductor_level *l) {
    TARE_TRY(tare__config_specs(l->setting, &l->specs, l->a->err));
    const bool has_norms = l->setting->is_none || l->specs.is_qat;
    for (size_t i = 0; i < l->recipe->row_count; i++)
        if (has_norms || !(l->recipe->rows[i].members & CHAIN_BN)) {
            TARE_TRY(name_chain(l->a, &l->recipe->rows[i]));
            TARE_TRY(tare__inductor_chain(l, &l->recipe->rows[i]));
        }
    l->a->rule = matmul;
    TARE_TRY(tare__inductor_matmul(l));
    l->a->rule = mul;
    if (l->recipe->has_mul) TARE_TRY(tare__inductor_mul(l));
    l->a->rule = propagation;
    return l->recipe->propagates ? tare__inductor_propagate(l) : TARE_OK;
}

// The operator to which a setting by operator, module type or function applies; NULL: none.
static const char *operator_of(const inductor_recipe *recipe, const char *key) {
    if (tare__name_is_listed(key, recipe->operators)) return key;
    for (size_t i = 0; recipe->types[i] != NULL; i += 2)
        if (strcmp(recipe->types[i], key) == 0) return recipe->types[i + 1];
    return NULL;
}

static tare_status run_operators(annotating *a, const inductor_recipe *recipe,
                                 const tare_quantizer_settings *settings,
                                 const setting_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        setting s = list->items[i];
        s.key = (char *)operator_of(recipe, s.key);
        inductor_level l = {.a = a, .recipe = recipe, .setting = &s, .accepts = accepts_operator};
        tare__annotating_by(a, settings, &list->items[i]);
        TARE_TRY(tare__check_operator(a, settings, s.key));
        TARE_TRY(run_level(&l));
    }
    return TARE_OK;
}

// A setting by module type applies to the operator of such modules, wherever it is called.
static tare_status run(annotating *a, const inductor_recipe *recipe,
                       const tare_quantizer_settings *s) {
    const tare_quantizer_settings names_only = {.module_names = s->module_names,
                                                .is_lenient = s->is_lenient};
    TARE_TRY(tare__check_modules(a, &names_only));
    for (size_t i = 0; i < s->module_names.count; i++) {
        inductor_level l = {.a = a,
                            .recipe = recipe,
                            .setting = &s->module_names.items[i],
                            .accepts = accepts_module};
        tare__annotating_by(a, s, l.setting);
        TARE_TRY(run_level(&l));
    }
    TARE_TRY(run_operators(a, recipe, s, &s->module_types));
    TARE_TRY(run_operators(a, recipe, s, &s->operators));
    inductor_level l = {
        .a = a, .recipe = recipe, .setting = &s->global, .accepts = accepts_default};
    tare__annotating_by(a, s, &s->global);
    if (s->has_global && !s->global.is_none) TARE_TRY(run_level(&l));
    return recipe->propagates ? tare__inductor_outputs(a, recipe) : TARE_OK;
}

tare_status tare__inductor_annotate(void *self, tare_model *model, tare_error *err) {
    const builtin_quantizer *q = self;
    annotating a;
    tare_status status = tare__annotating_begin(&a, model, err);
    if (status == TARE_OK) status = run(&a, q->row->recipe, q->settings);
    tare__annotating_end(&a);
    return status;
}

// --- settings ---

typedef struct mode {
    bool has_qat, is_qat, has_dynamic, is_dynamic;
} mode;

static tare_status check_mode(mode *m, const setting *s, tare_error *err) {
    if (s->is_none) return TARE_OK;
    if (m->has_qat && m->is_qat != s->config.is_qat)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Mixed QAT and Non-QAT quantization config is not supported.");
    m->has_qat = true;
    m->is_qat = s->config.is_qat;
    if (s->config.input_activation == NULL) return TARE_OK;
    tare_qspec_fields f;
    tare_qspec_get_fields(s->config.input_activation, &f);
    if (m->has_dynamic && m->is_dynamic != f.is_dynamic)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Mixed dynamic and static quantization config is not supported.");
    m->has_dynamic = true;
    m->is_dynamic = f.is_dynamic;
    return TARE_OK;
}

static tare_status check_list(mode *m, const setting_list *list, tare_error *err) {
    for (size_t i = 0; i < list->count; i++)
        TARE_TRY(tare__at(err, check_mode(m, &list->items[i], err), "'%s'", list->items[i].key));
    return TARE_OK;
}

static tare_status check_types(const inductor_recipe *recipe, const setting_list *list,
                               tare_error *err) {
    for (size_t i = 0; i < list->count; i++)
        if (operator_of(recipe, list->items[i].key) == NULL)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "Unable to customize quantization config for '%s'",
                              list->items[i].key);
    return TARE_OK;
}

static const setting *setting_at(const tare_quantizer_settings *s, size_t i) {
    return i < s->module_types.count ? &s->module_types.items[i]
                                     : &s->operators.items[i - s->module_types.count];
}

// Refuses two settings for one operator. (torchao would use the later one.)
static tare_status check_unique(const inductor_recipe *recipe, const tare_quantizer_settings *s,
                                tare_error *err) {
    const size_t count = s->module_types.count + s->operators.count;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            const char *a = setting_at(s, j)->key, *b = setting_at(s, i)->key;
            if (strcmp(operator_of(recipe, a), operator_of(recipe, b)) == 0)
                return tare__fail(err, TARE_INVALID_ARGUMENT,
                                  "'%s' and '%s' mean the same operator", a, b);
        }
    return TARE_OK;
}

tare_status tare__inductor_check(const struct builtin_row *row, const tare_quantizer_settings *s,
                                 tare_error *err) {
    mode m = {0};
    TARE_TRY(check_types(row->recipe, &s->module_types, err));
    TARE_TRY(check_types(row->recipe, &s->operators, err));
    TARE_TRY(check_unique(row->recipe, s, err));
    TARE_TRY(check_list(&m, &s->module_names, err));
    TARE_TRY(check_list(&m, &s->module_types, err));
    TARE_TRY(check_list(&m, &s->operators, err));
    return s->has_global ? check_mode(&m, &s->global, err) : TARE_OK;
}
