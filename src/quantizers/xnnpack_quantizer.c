// SPDX-License-Identifier: Apache-2.0
// XNNPACKQuantizer: its annotators in order, and the settings that apply to each. Source: torchao
// 0.18; settings by operator as in ExecuTorch's version.
#include <string.h>

#include "core/text/text.h"
#include "quantizers/builtin.h"
#include "quantizers/xnnpack.h"

tare_status tare__xnnpack_check(const struct builtin_row *row, const tare_quantizer_settings *s,
                                tare_error *err) {
    (void)row;
    for (size_t i = 0; i < s->module_names.count; i++)
        if (s->module_names.items[i].is_none)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "module '%s':  quantization_config == None is not supported yet",
                              s->module_names.items[i].key);
    return TARE_OK;
}

tare_status tare__xnnpack_transform(void *self, tare_model *model, tare_error *err) {
    const op_name add = tare__overload_name(tare__add_calls[0]);
    const op_name mul = tare__overload_name(tare__mul_calls[0]);
    const char *const targets[] = {add.text, mul.text, NULL};
    (void)self;
    return tare_model_lift_scalars(model, targets, err);
}

// --- annotators ---

enum { QAT_ONLY = 4 };

static const op_overload linears[] = {OVERLOAD(LINEAR, "default"), OVERLOADS_END};
static const op_overload convs[] = {OVERLOAD(CONV1D, "default"),
                                    OVERLOAD(CONV1D, "padding"),
                                    OVERLOAD(CONV2D, "default"),
                                    OVERLOAD(CONV2D, "padding"),
                                    OVERLOAD(CONV3D, "default"),
                                    OVERLOAD(CONV3D, "padding"),
                                    OVERLOADS_END};
static const op_overload plain_convs[] = {OVERLOAD(CONV1D, "default"), OVERLOAD(CONV2D, "default"),
                                          OVERLOADS_END};
static const op_overload transposed[] = {OVERLOAD(CONV_TRANSPOSE1D, "default"),
                                         OVERLOAD(CONV_TRANSPOSE2D, "input"),
                                         OVERLOAD(CONV_TRANSPOSE3D, "input"), OVERLOADS_END};
static const op_overload plain_transposed[] = {OVERLOAD(CONV_TRANSPOSE1D, "default"),
                                               OVERLOAD(CONV_TRANSPOSE2D, "input"), OVERLOADS_END};
static const op_overload grus[] = {OVERLOAD(GRU_FUNCTION, "input"), OVERLOADS_END};

// clang-format off
static const xnnpack_annotator static_annotators[] = {
    {"conv_bn_relu", convs, plain_convs, true, tare__xnnpack_normed_layer},
    {"conv_bn", convs, plain_convs, false, tare__xnnpack_normed_layer},
    {"conv_transpose_bn_relu", transposed, plain_transposed, true, tare__xnnpack_normed_layer},
    {"conv_transpose_bn", transposed, plain_transposed, false, tare__xnnpack_normed_layer},
    {"linear_relu", linears, linears, true, tare__xnnpack_layer},
    {"linear", linears, linears, false, tare__xnnpack_linear},
    {"conv_relu", convs, convs, true, tare__xnnpack_layer},
    {"conv", convs, plain_convs, false, tare__xnnpack_layer},
    {"conv_transpose_relu", transposed, transposed, true, tare__xnnpack_layer},
    {"adaptive_avg_pool2d", tare__pool_calls, tare__pool_calls, false, tare__xnnpack_adaptive_avg_pool2d},
    {"gru_io_only", grus, grus, false, tare__xnnpack_gru_io_only},
    {"add_relu", tare__add_calls, tare__add_calls, true, tare__xnnpack_binary},
    {"add", tare__add_calls, tare__add_calls, false, tare__xnnpack_binary},
    {"mul_relu", tare__mul_calls, tare__mul_calls, true, tare__xnnpack_binary},
    {"mul", tare__mul_calls, tare__mul_calls, false, tare__xnnpack_binary},
    {"cat", tare__cat_calls, tare__cat_calls, false, tare__xnnpack_cat},
};
static const xnnpack_annotator dynamic_annotators[] = {
    {"linear", linears, linears, false, tare__xnnpack_linear},
};
// clang-format on

static bool has_operator(const xnnpack_annotator *x, const char *name) {
    for (const op_overload *o = x->operators; o->op != TARE_OP_NONE; o++)
        if (strcmp(tare__overload_name(*o).text, name) == 0) return true;
    return false;
}

static const char propagation[] = "propagation";

void tare__xnnpack_each_rule(const struct builtin_row *row, name_visitor visit, void *user) {
    (void)row;
    for (size_t i = 0; i < sizeof static_annotators / sizeof *static_annotators; i++)
        visit(user, static_annotators[i].name);
    visit(user, propagation);
}

void tare__xnnpack_each_operator(const struct builtin_row *row, name_visitor visit, void *user) {
    (void)row;
    for (size_t i = 0; i < sizeof static_annotators / sizeof *static_annotators; i++) {
        bool is_new = true; // annotators of one operator share its list
        for (size_t k = 0; k < i; k++)
            is_new = is_new && static_annotators[k].operators != static_annotators[i].operators;
        for (const op_overload *o = static_annotators[i].operators; is_new && o->op != TARE_OP_NONE;
             o++)
            visit(user, tare__overload_name(*o).text);
    }
}

// target: run only the annotators of this operator, for settings by operator; NULL: all.
static tare_status run_level(const xnnpack_level *l, bool is_dynamic, const char *target) {
    const xnnpack_annotator *list = is_dynamic ? dynamic_annotators : static_annotators;
    const size_t count = is_dynamic ? sizeof dynamic_annotators / sizeof *list
                                    : sizeof static_annotators / sizeof *list;
    for (size_t i = !is_dynamic && !l->specs.is_qat ? QAT_ONLY : 0; i < count; i++) {
        l->a->rule = list[i].name;
        if (target == NULL || has_operator(&list[i], target))
            TARE_TRY(list[i].annotate(l, &list[i]));
    }
    return TARE_OK;
}

// --- nodes that a setting applies to ---

typedef struct key_filter {
    const annotating *a;
    const tare_quantizer_settings *settings;
    const char *key;
} key_filter;

static bool is_in_name(void *user, const node *n) {
    const key_filter *f = user;
    return tare__node_is_in_module(&f->a->sources, n, f->key);
}

static bool is_in_type(void *user, const node *n) {
    const key_filter *f = user;
    return tare__node_is_in_class(&f->a->sources, n, f->key);
}

static bool is_in_no_list(void *user, const node *n) {
    const key_filter *f = user;
    const setting_list *names = &f->settings->module_names, *types = &f->settings->module_types;
    for (size_t i = 0; i < names->count; i++)
        if (tare__node_is_in_module(&f->a->sources, n, names->items[i].key)) return false;
    for (size_t i = 0; i < types->count; i++)
        if (tare__node_is_in_class(&f->a->sources, n, types->items[i].key)) return false;
    return true;
}

typedef struct xnnpack_run {
    annotating *a;
    const tare_quantizer_settings *settings;
    bool is_dynamic; // from the global config, for all settings
} xnnpack_run;

// Marks the operator's nodes without specs, so that no later setting applies to them.
static tare_status leave_float(const xnnpack_level *l, const char *target) {
    const char *const targets[] = {target, NULL};
    l->a->rule = NULL;
    for (const node *n = l->a->g->first; n != NULL; n = n->next)
        if (tare__calls(n, targets) && l->filter.accepts(l->filter.user, n) &&
            !tare__is_marked(l->a, n))
            TARE_TRY(tare__mark(l->a, n));
    return TARE_OK;
}

static tare_status run_setting(const xnnpack_run *r, const setting *s, const char *target,
                               bool (*accepts)(void *user, const node *n)) {
    key_filter filter = {.a = r->a, .settings = r->settings, .key = s->key};
    xnnpack_level l = {.a = r->a, .filter = {.accepts = accepts, .user = &filter}};
    tare__annotating_by(r->a, r->settings, s);
    // For settings by module nothing is marked: the later settings skip such nodes anyway.
    if (s->is_none) return target != NULL ? leave_float(&l, target) : TARE_OK;
    TARE_TRY(tare__config_specs(s, &l.specs, r->a->err));
    return run_level(&l, r->is_dynamic, target);
}

static tare_status run_list(const xnnpack_run *r, const setting_list *list,
                            bool (*accepts)(void *user, const node *n), bool is_by_operator) {
    for (size_t i = 0; i < list->count; i++) {
        const setting *s = &list->items[i];
        TARE_TRY(run_setting(r, s, is_by_operator ? s->key : NULL, accepts));
    }
    return TARE_OK;
}

static tare_status run(annotating *a, const tare_quantizer_settings *s) {
    const tare_qspec *input = s->has_global ? s->global.config.input_activation : NULL;
    tare_qspec_fields fields = {0};
    if (input != NULL) tare_qspec_get_fields(input, &fields);
    const xnnpack_run r = {.a = a, .settings = s, .is_dynamic = fields.is_dynamic};
    TARE_TRY(tare__check_modules(a, s));
    for (size_t i = 0; i < s->operators.count; i++)
        TARE_TRY(tare__check_operator(a, s, s->operators.items[i].key));
    TARE_TRY(run_list(&r, &s->module_names, is_in_name, false));
    TARE_TRY(run_list(&r, &s->module_types, is_in_type, false));
    TARE_TRY(run_list(&r, &s->operators, is_in_no_list, true));
    if (s->has_global) TARE_TRY(run_setting(&r, &s->global, NULL, is_in_no_list));
    a->rule = propagation;
    a->section = a->key = NULL;
    return tare__xnnpack_propagate(a);
}

tare_status tare__xnnpack_annotate(void *self, tare_model *model, tare_error *err) {
    const builtin_quantizer *q = self;
    annotating a;
    tare_status status = tare__annotating_begin(&a, model, err);
    if (status == TARE_OK) status = run(&a, q->settings);
    tare__annotating_end(&a);
    return status;
}
