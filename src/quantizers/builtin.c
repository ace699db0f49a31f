// SPDX-License-Identifier: Apache-2.0
// The table of built-in quantizers, and their creation.
#include "quantizers/builtin.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "quantizers/quantizer.h"

static const builtin_row rows[] = {
    {.name = "XNNPACKQuantizer",
     .transform = tare__xnnpack_transform,
     .annotate = tare__xnnpack_annotate,
     .check = tare__xnnpack_check,
     .each_rule = tare__xnnpack_each_rule,
     .each_operator = tare__xnnpack_each_operator},
    {.name = "X86InductorQuantizer",
     .annotate = tare__inductor_annotate,
     .check = tare__inductor_check,
     .each_rule = tare__inductor_each_rule,
     .each_operator = tare__inductor_each_operator,
     .recipe = &tare__x86_recipe},
    {.name = "ArmInductorQuantizer",
     .annotate = tare__inductor_annotate,
     .check = tare__inductor_check,
     .each_rule = tare__inductor_each_rule,
     .each_operator = tare__inductor_each_operator,
     .recipe = &tare__arm_recipe},
    {.name = "XPUInductorQuantizer",
     .annotate = tare__inductor_annotate,
     .check = tare__inductor_check,
     .each_rule = tare__inductor_each_rule,
     .each_operator = tare__inductor_each_operator,
     .recipe = &tare__xpu_recipe},
    {.name = "EmbeddingQuantizer",
     .annotate = tare__embedding_annotate,
     .check = tare__embedding_check,
     .each_rule = tare__embedding_each_rule},
};

const char *tare_quantizer_builtin_name_at(size_t i) {
    return i < sizeof rows / sizeof *rows ? rows[i].name : NULL;
}

static const char *name_at(const void *unused, size_t i) {
    (void)unused;
    return tare_quantizer_builtin_name_at(i);
}

static tare_status find_row(const char *name, const builtin_row **out, tare_error *err) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *out = &rows[i];
        return TARE_OK;
    }
    tare__fail(err, TARE_NOT_FOUND, "no built-in quantizer '%s'", name);
    tare__hint(err, TARE_NOT_FOUND, "see tare_quantizer_builtin_name_at, or tare quantizer list");
    return tare__suggest(err, TARE_NOT_FOUND, name, name_at, NULL);
}

static tare_status default_settings(const char *name, tare_quantizer_settings **out,
                                    tare_error *err) {
    tare_quantization_config config;
    TARE_TRY(tare_quantization_config_default(name, NULL, &config, err));
    *out = tare_quantizer_settings_create();
    tare_quantizer_settings_set_global(*out, &config);
    tare_quantization_config_release(&config);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

static void destroy(void *self) {
    builtin_quantizer *q = self;
    tare_quantizer_settings_destroy(q->settings);
    tare__free(q);
}

static tare_status make(const builtin_row *row, builtin_quantizer *q, tare_quantizer **out,
                        tare_error *err) {
    const tare_quantizer_class class = {.struct_size = sizeof class,
                                        .name = row->name,
                                        .transform_for_annotation = row->transform,
                                        .annotate = row->annotate,
                                        .destroy = destroy};
    q->row = row;
    TARE_TRY(row->check(row, q->settings, err));
    TARE_TRY(tare_quantizer_create(&class, q, out, err));
    (*out)->settings = q->settings;
    return TARE_OK;
}

tare_status tare_quantizer_builtin(const char *name, const tare_quantizer_settings *settings,
                                   tare_quantizer **out, tare_error *err) {
    const builtin_row *row = NULL;
    TARE_TRY(find_row(name, &row, err));
    builtin_quantizer *q = tare__alloc_zeroed(1, sizeof *q);
    if (q == NULL) return tare__out_of_memory(err);
    tare_status status = settings != NULL ? tare__settings_clone(settings, &q->settings, err)
                                          : default_settings(name, &q->settings, err);
    if (status == TARE_OK) status = make(row, q, out, err);
    if (status == TARE_OK) return TARE_OK;
    destroy(q);
    return tare__at(err, status, "%s", name);
}

const builtin_row *tare__builtin_row_of(const tare_quantizer *q) {
    return q->class.destroy == destroy ? ((const builtin_quantizer *)q->self)->row : NULL;
}
