// SPDX-License-Identifier: Apache-2.0
// User-defined quantizers with settings: annotate_level is called for each setting, with a filter
// for the nodes to which it applies.
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "quantizers/annotate.h"
#include "quantizers/quantizer.h"
#include "tare/quantizer.h"

typedef struct leveled {
    tare_quantizer_class class; // the user's class
    void *self;
    tare_level_annotator annotate_level;
    tare_quantizer_settings *settings;
} leveled;

struct tare_quantizer_level {
    const annotating *a;
    const tare_quantizer_settings *settings;
    const setting *setting;
    level_kind kind;
};

const tare_quantization_config *tare_level_config(const tare_quantizer_level *level) {
    return level->setting->is_none ? NULL : &level->setting->config;
}

bool tare_level_takes(const tare_quantizer_level *level, const tare_node *const *nodes,
                      size_t count) {
    bool has_operator = level->kind != LEVEL_OPERATOR;
    for (size_t i = 0; i < count; i++) {
        const node *n = (const node *)nodes[i];
        if (tare__is_marked(level->a, n)) return false;
        if (!tare__level_accepts(&level->a->sources, level->settings, level->kind, level->setting,
                                 n))
            return false;
        has_operator = has_operator || strcmp(n->target, level->setting->key) == 0;
    }
    return has_operator;
}

static tare_status run_level(const leveled *q, annotating *a, const setting *s, level_kind kind) {
    const tare_quantizer_level level = {
        .a = a, .settings = q->settings, .setting = s, .kind = kind};
    config_specs ignored;
    TARE_TRY(tare__config_specs(s, &ignored, a->err)); // only for torchao's checks
    return q->annotate_level(q->self, a->model, &level, a->err);
}

static tare_status run_list(const leveled *q, annotating *a, const setting_list *list,
                            level_kind kind) {
    for (size_t i = 0; i < list->count; i++) TARE_TRY(run_level(q, a, &list->items[i], kind));
    return TARE_OK;
}

static tare_status run(const leveled *q, annotating *a) {
    const tare_quantizer_settings *s = q->settings;
    TARE_TRY(tare__check_modules(a, s));
    for (size_t i = 0; i < s->operators.count; i++)
        TARE_TRY(tare__check_operator(a, s, s->operators.items[i].key));
    TARE_TRY(run_list(q, a, &s->module_names, LEVEL_NAME));
    TARE_TRY(run_list(q, a, &s->module_types, LEVEL_TYPE));
    TARE_TRY(run_list(q, a, &s->operators, LEVEL_OPERATOR));
    return s->has_global ? run_level(q, a, &s->global, LEVEL_GLOBAL) : TARE_OK;
}

// --- functions of the class ---

static tare_status transform(void *self, tare_model *model, tare_error *err) {
    const leveled *q = self;
    return q->class.transform_for_annotation != NULL
               ? q->class.transform_for_annotation(q->self, model, err)
               : TARE_OK;
}

static tare_status annotate(void *self, tare_model *model, tare_error *err) {
    const leveled *q = self;
    annotating a;
    tare_status status = tare__annotating_begin(&a, model, err);
    if (status == TARE_OK) status = run(q, &a);
    tare__annotating_end(&a);
    if (status != TARE_OK || q->class.annotate == NULL) return status;
    return q->class.annotate(q->self, model, err);
}

static tare_status validate(void *self, const tare_model *model, tare_error *err) {
    const leveled *q = self;
    return q->class.validate != NULL ? q->class.validate(q->self, model, err) : TARE_OK;
}

static tare_status call_back(void *self, const tare_model *model, tare_observer_map *observers,
                             tare_error *err) {
    const leveled *q = self;
    return q->class.prepare_obs_or_fq_callback != NULL
               ? q->class.prepare_obs_or_fq_callback(q->self, model, observers, err)
               : TARE_OK;
}

static void release(leveled *q) {
    tare_quantizer_settings_destroy(q->settings);
    tare__free(q);
}

static void destroy(void *self) {
    leveled *q = self;
    if (q->class.destroy != NULL) q->class.destroy(q->self);
    release(q);
}

tare_status tare_quantizer_create_leveled(const tare_quantizer_class *quantizer_class, void *self,
                                          tare_level_annotator annotate_level,
                                          const tare_quantizer_settings *settings,
                                          tare_quantizer **out, tare_error *err) {
    if (annotate_level == NULL || settings == NULL)
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "a quantizer with settings needs the settings and a function that annotates by them");
    leveled *q = tare__alloc_zeroed(1, sizeof *q);
    if (q == NULL) return tare__out_of_memory(err);
    tare__struct_copy(&q->class, sizeof q->class, quantizer_class);
    q->self = self;
    q->annotate_level = annotate_level;
    const tare_quantizer_class class = {.struct_size = sizeof class,
                                        .name = q->class.name,
                                        .transform_for_annotation = transform,
                                        .annotate = annotate,
                                        .validate = validate,
                                        .prepare_obs_or_fq_callback = call_back,
                                        .destroy = destroy};
    tare_status status = tare__settings_clone(settings, &q->settings, err);
    if (status == TARE_OK) status = tare_quantizer_create(&class, q, out, err);
    if (status == TARE_OK)
        (*out)->settings = q->settings;
    else
        release(q);
    return status;
}
