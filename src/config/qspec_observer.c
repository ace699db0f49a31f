// SPDX-License-Identifier: Apache-2.0
// Converts quantization specs of pt2e to observer specs.
#include "config/qspec.h"

#include <string.h>

#include "observe/classes/builtin.h"
#include "observe/classes/derived.h"
#include "observe/observer_spec.h"

const tare_observer_class *tare__qspec_own_class(const observer_classes *all,
                                                 const tare_observer_spec *spec) {
    for (size_t i = 0; all != NULL && i < all->user_count; i++)
        if (strcmp(all->user[i]->name, tare__observer_spec_class(spec)) == 0) return all->user[i];
    return NULL;
}

static void set_int(tare_observer_spec *spec, const char *name, bool has, int64_t v) {
    const observer_argument a = {.kind = has ? ARGUMENT_INT : ARGUMENT_NONE,
                                 .as.integer = has ? v : 0};
    tare__observer_spec_set(spec, name, &a);
}

static void set_scheme(tare_observer_spec *spec, tare_qscheme scheme) {
    const observer_argument a = {.kind = scheme != TARE_QSCHEME_UNSET ? ARGUMENT_QSCHEME
                                                                      : ARGUMENT_NONE,
                                 .as.qscheme = scheme};
    tare__observer_spec_set(spec, "qscheme", &a);
}

// The spec's fields override the constructor's arguments, even if they are None.
static void set_fields(tare_observer_spec *spec, const tare_qspec_fields *f) {
    tare_observer_spec_set_dtype(spec, "dtype", f->dtype);
    set_int(spec, "quant_min", f->has_quant_min, f->quant_min);
    set_int(spec, "quant_max", f->has_quant_max, f->quant_max);
    set_scheme(spec, f->qscheme);
}

static bool takes(const tare_observer_class *own, const char *argument) {
    if (own == NULL) return true;
    for (const char *const *a = own->arguments; a != NULL && *a != NULL; a++)
        if (strcmp(*a, argument) == 0) return true;
    return false;
}

static tare_status plain_spec(const observer_classes *classes, const tare_qspec *from,
                              tare_observer_spec **out, tare_error *err) {
    const tare_qspec_fields *f = &from->fields;
    const tare_observer_class *own = tare__qspec_own_class(classes, f->observer);
    tare_observer_spec *spec = NULL;
    TARE_TRY(tare__observer_spec_clone(f->observer, &spec, err));
    if (takes(own, "dtype")) tare_observer_spec_set_dtype(spec, "dtype", f->dtype);
    if (takes(own, "quant_min")) set_int(spec, "quant_min", f->has_quant_min, f->quant_min);
    if (takes(own, "quant_max")) set_int(spec, "quant_max", f->has_quant_max, f->quant_max);
    if (takes(own, "qscheme")) set_scheme(spec, f->qscheme);
    if (takes(own, "is_dynamic")) tare_observer_spec_set_bool(spec, "is_dynamic", f->is_dynamic);
    // As in torch, the class's name decides which constructors take an axis.
    const bool has_axis = own != NULL
                              ? takes(own, "ch_axis")
                              : strstr(tare__observer_spec_class(spec), "PerChannel") != NULL;
    if (has_axis && f->has_channel_axis)
        tare_observer_spec_set_int(spec, "ch_axis", f->channel_axis);
    *out = spec;
    return TARE_OK;
}

static tare_status fixed_spec(const tare_qspec *from, bool is_qat, tare_observer_spec **out,
                              tare_error *err) {
    tare_observer_spec *spec = tare_observer_spec_create("FixedQParamsObserver");
    if (spec == NULL) return tare__out_of_memory(err);
    set_fields(spec, &from->fields);
    tare_observer_spec_set_double(spec, "scale", from->fields.scale);
    tare_observer_spec_set_int(spec, "zero_point", from->fields.zero_point);
    tare_observer_spec_set_bool(spec, "is_dynamic", from->fields.is_dynamic);
    *out = spec;
    if (!is_qat) return TARE_OK;
    *out = tare_observer_spec_create("FixedQParamsFakeQuantize");
    tare_observer_spec_set_observer(*out, "observer", spec);
    tare_observer_spec_release(spec);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status derived_spec(const tare_qspec *from, tare_observer_spec **out, tare_error *err) {
    tare_observer_spec *spec = tare_observer_spec_create(tare__derived_observer.name);
    if (spec == NULL) return tare__out_of_memory(err);
    set_fields(spec, &from->fields);
    set_int(spec, "ch_axis", from->fields.has_channel_axis, from->fields.channel_axis);
    *out = spec;
    return TARE_OK;
}

tare_status tare__qspec_observer(const observer_classes *classes, const tare_qspec *from,
                                 bool is_qat, tare_observer_spec **out, tare_error *err) {
    switch (from->kind) {
    case TARE_QSPEC_FIXED:
        return fixed_spec(from, is_qat, out, err);
    case TARE_QSPEC_DERIVED:
        return derived_spec(from, out, err);
    default:
        return plain_spec(classes, from, out, err);
    }
}
