// SPDX-License-Identifier: Apache-2.0
// The observer of derived quantization parameters: those of a bias are computed from the parameters
// of the layer's activation and weight. It observes nothing; convert computes its parameters after
// all others.
#include "observe/classes/derived.h"

#include <string.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "observe/classes/builtin.h"
#include "observe/classes/uniform.h"

static tare_status check_axis(const tare_observer_info *info, bool has_axis, tare_error *err) {
    const bool is_per_channel = info->qscheme == TARE_PER_CHANNEL_AFFINE ||
                                info->qscheme == TARE_PER_CHANNEL_SYMMETRIC ||
                                info->qscheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    return is_per_channel && !has_axis
               ? tare__fail(err, TARE_INVALID_ARGUMENT,
                            "Must provide a valid ch_axis if qscheme is per channel")
               : TARE_OK;
}

static tare_status read_info(const tare_observer_args *args, tare_observer_info *info,
                             tare_error *err) {
    int64_t axis = 0;
    if (!tare_observer_args_dtype(args, "dtype", &info->dtype))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "needs the argument dtype");
    tare_observer_args_qscheme(args, "qscheme", &info->qscheme);
    const bool has_axis = tare_observer_args_int(args, "ch_axis", &axis);
    if (axis < 0 || axis > 7)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "ch_axis %lld", (long long)axis);
    info->channel_axis = (int)axis;
    const bool has_min = tare_observer_args_int(args, "quant_min", &info->quant_min);
    const bool has_max = tare_observer_args_int(args, "quant_max", &info->quant_max);
    info->has_range = has_min && has_max;
    return check_axis(info, has_axis, err);
}

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    TARE_TRY(read_info(args, info, err));
    derived_state *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *state = made;
    return TARE_OK;
}

static void destroy(void *state) {
    derived_state *s = state;
    for (size_t i = 0; i < s->source_count; i++) tare__free(s->sources[i]);
    tare__free(s->sources);
    tare__free((char *)s->rule.name);
    tare__free(s);
}

static tare_status clone(const void *state, void **out, tare_error *err) {
    const derived_state *s = state;
    derived_state *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    const tare_status status =
        tare__derived_set(made, &s->rule, (const char *const *)s->sources, s->source_count, err);
    if (status == TARE_OK)
        *out = made;
    else
        destroy(made);
    return status;
}

tare_status tare__derived_set(derived_state *s, const tare_derive_rule *rule,
                              const char *const *sources, size_t count, tare_error *err) {
    s->sources = tare__alloc_zeroed(count + 1, sizeof *s->sources);
    if (s->sources == NULL) return tare__out_of_memory(err);
    s->source_count = count;
    for (size_t i = 0; i < count; i++)
        if ((s->sources[i] = tare__strdup(sources[i])) == NULL) return tare__out_of_memory(err);
    s->rule = *rule;
    s->rule.name = tare__strdup(rule->name != NULL ? rule->name : "");
    return s->rule.name != NULL ? TARE_OK : tare__out_of_memory(err);
}

static const char *const arguments[] = {"dtype",   "quant_min", "quant_max",
                                        "qscheme", "ch_axis",   NULL};
const tare_observer_class tare__derived_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "DerivedObserverOrFakeQuantize",
    .arguments = arguments,
    .create = create,
    .destroy = destroy,
    .clone = clone,
};
