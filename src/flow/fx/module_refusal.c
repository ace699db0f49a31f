// SPDX-License-Identifier: Apache-2.0
// Decides which weighted modules convert leaves float (torch's
// _is_qconfig_supported_by_dtype_configs). Prepare asks the same, so that a preview shows what
// convert will do.
#include "flow/fx/module_refusal.h"

#include "observe/dtype_roles.h"

static tare_dtype or_float(tare_dtype dtype) {
    return dtype == TARE_DTYPE_UNSET ? TARE_FLOAT32 : dtype;
}

static bool accepts(const tare_dtype_config *d, const tare_observer_info *activation,
                    tare_dtype weight) {
    const tare_dtype input = or_float(d->input.dtype), output = or_float(d->output.dtype);
    if (or_float(d->weight.dtype) != weight || input != activation->dtype) return false;
    if (d->is_dynamic > 0) return activation->is_dynamic && output == TARE_FLOAT32;
    const bool is_half = activation->dtype == TARE_FLOAT16 && weight == TARE_FLOAT16;
    return output == activation->dtype &&
           or_float(d->bias) == (is_half ? TARE_FLOAT16 : TARE_FLOAT32);
}

// The entry to compare with in the sentence: if possible, one with the same input dtype.
static const tare_dtype_config *nearest(const dtype_config_list *list,
                                        const tare_observer_info *activation) {
    for (size_t i = 0; i < list->count; i++) {
        const tare_dtype_config *d = &list->items[i];
        if (or_float(d->input.dtype) == activation->dtype &&
            (d->is_dynamic > 0) == activation->is_dynamic)
            return d;
    }
    return &list->items[0];
}

static tare_status tell(pass *p, const dtype_config_list *list,
                        const tare_observer_info *activation, tare_dtype weight, const char **why) {
    const tare_dtype_config *d = nearest(list, activation);
    *why = tare__arena_printf(
        &p->scratch, "the backend takes %s inputs with %s weights%s, the qconfig gives %s and %s%s",
        tare_dtype_name(or_float(d->input.dtype)), tare_dtype_name(or_float(d->weight.dtype)),
        d->is_dynamic > 0 ? ", dynamically" : "", tare_dtype_name(or_float(activation->dtype)),
        tare_dtype_name(or_float(weight)), activation->is_dynamic ? ", dynamically" : "");
    return *why != NULL ? TARE_OK : tare__out_of_memory(p->err);
}

bool tare__groups_fit(const module *called, const tare_observer_info *weight, int64_t *row,
                      int64_t *group) {
    const bool is_fused =
        called != NULL && called->class->role == ROLE_FUSED && called->child_count > 0;
    const module *m = is_fused ? called->children[0].module : called;
    const tare_tensor *w = m != NULL ? tare__module_tensor(m, "weight") : NULL;
    if (!tare__qscheme_is_per_group(weight->qscheme) || weight->group_size < 1 || w == NULL ||
        w->ndim < 1)
        return true;
    *row = w->shape[w->ndim - 1];
    *group = weight->group_size;
    return *row > 0 && *row % *group == 0;
}

static tare_status refuse_groups(pass *p, int64_t row, int64_t group, const char **why) {
    *why = tare__arena_printf(&p->scratch,
                              "its rows of %lld weights do not divide into groups of %lld",
                              (long long)row, (long long)group);
    return *why != NULL ? TARE_OK : tare__out_of_memory(p->err);
}

tare_status tare__module_refusal(pass *p, const module *called, const tare_qconfig *q,
                                 const char **why) {
    const tare_pattern_config *config =
        tare__backend_config_for_operator(p->backend, called->class->name);
    tare_observer_info activation, weight;
    *why = NULL;
    TARE_TRY(tare__pass_spec_info(p, q->activation, &activation));
    TARE_TRY(tare__pass_spec_info(p, q->weight, &weight));
    bool is_supported = false;
    for (size_t i = 0; config != NULL && i < config->dtype_configs.count && !is_supported; i++)
        is_supported = accepts(&config->dtype_configs.items[i], &activation, weight.dtype);
    if (config == NULL || config->dtype_configs.count == 0) {
        *why = tare__arena_printf(&p->scratch, "the backend '%s' lists no dtypes for %s by itself",
                                  tare_backend_config_name(p->backend), called->class->name);
        return *why != NULL ? TARE_OK : tare__out_of_memory(p->err);
    }
    if (!is_supported) return tell(p, &config->dtype_configs, &activation, weight.dtype, why);
    int64_t row, group;
    if (!tare__groups_fit(called, &weight, &row, &group)) return refuse_groups(p, row, group, why);
    if (!tare__dtype_has_role(weight.dtype, DTYPE_WEIGHT))
        *why = "the qconfig asks for no quantized weight";
    return TARE_OK;
}
