// SPDX-License-Identifier: Apache-2.0
// Fake quantizer modules: creation, running, printing and checking.
#include "observe/fake_quantize.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/tensor/text.h"
#include "observe/classes/builtin.h"
#include "observe/classes/uniform.h"
#include "observe/observer_spec.h"
#include "ops/quantized/fake_quantize.h"

#define OBSERVER "activation_post_process"

const fake_quantize_kind *tare__fake_quantize_kind(const tare_observer_class *class) {
    return tare__builtin_is_fake_quantize(class) ? class->user : NULL;
}

const fake_quantize_kind *tare__fake_quantize_kind_of(const module *m) {
    return m->class->role == ROLE_OBSERVER ? tare__fake_quantize_kind(m->class->kind) : NULL;
}

const module *tare__fake_quantize_observer_const(const module *m) {
    return tare__module_child(m, OBSERVER);
}

module *tare__fake_quantize_observer_mutable(module *m) {
    return tare__module_child(m, OBSERVER);
}

// --- the observer's spec ---

tare_status tare__spec_int(const tare_observer_spec *spec, const char *name, bool *has,
                           int64_t *out, tare_error *err) {
    const observer_argument *a = tare__observer_spec_find(spec, name);
    *has = a != NULL && a->kind != ARGUMENT_NONE;
    if (!*has) return TARE_OK;
    if (a->kind != ARGUMENT_INT)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: argument '%s' must be an int, found %s",
                          spec->class_name, name, tare__argument_kind_name(a->kind));
    *out = a->as.integer;
    return TARE_OK;
}

tare_status tare__spec_double(const tare_observer_spec *spec, const char *name, double *out,
                              tare_error *err) {
    const observer_argument *a = tare__observer_spec_find(spec, name);
    if (a == NULL || a->kind == ARGUMENT_NONE) return TARE_OK;
    if (a->kind != ARGUMENT_DOUBLE && a->kind != ARGUMENT_INT)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: argument '%s' must be a float, found %s",
                          spec->class_name, name, tare__argument_kind_name(a->kind));
    *out = a->kind == ARGUMENT_INT ? (double)a->as.integer : a->as.real;
    return TARE_OK;
}

static bool is_own(const fake_quantize_kind *kind, const char *name) {
    for (const char *const *own = kind->own; *own != NULL; own++)
        if (strcmp(*own, name) == 0) return true;
    return false;
}

static tare_status begin_inner(const fake_quantize_kind *kind, const tare_observer_spec *spec,
                               tare_observer_spec **out, tare_error *err) {
    const observer_argument *given = tare__observer_spec_find(spec, "observer");
    const argument_kind is = given != NULL ? given->kind : ARGUMENT_NONE;
    if (is == ARGUMENT_OBSERVER) return tare__observer_spec_clone(given->as.observer, out, err);
    if (is != ARGUMENT_NONE && is != ARGUMENT_STRING)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: argument 'observer' must be an observer, found %s", spec->class_name,
                          tare__argument_kind_name(is));
    if (is == ARGUMENT_NONE && kind->needs_observer)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s needs the argument observer",
                          spec->class_name);
    *out = tare_observer_spec_create(is == ARGUMENT_STRING ? given->as.string
                                                           : "MovingAverageMinMaxObserver");
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

// The dtype whose limits apply: the inner spec's if it has one, else the outer's.
static tare_dtype dtype_of(const tare_observer_spec *spec) {
    const observer_argument *a = tare__observer_spec_find(spec, "dtype");
    return a != NULL && a->kind == ARGUMENT_DTYPE ? a->as.dtype : TARE_QUINT8;
}

static tare_status check_bounds(tare_dtype dtype, int64_t min, int64_t max, tare_error *err) {
    const dtype_info *info = tare__dtype(dtype);
    if (min < info->min) return tare__fail(err, TARE_INVALID_ARGUMENT, "quant_min out of bound");
    if (max > info->max) return tare__fail(err, TARE_INVALID_ARGUMENT, "quant_max out of bound");
    return TARE_OK;
}

static tare_status set_limits(const fake_quantize_kind *kind, const tare_observer_spec *spec,
                              tare_dtype dtype, tare_observer_spec *inner, tare_error *err) {
    bool has_min = false, has_max = false;
    int64_t min = kind->quant_min, max = kind->quant_max;
    TARE_TRY(tare__spec_int(spec, "quant_min", &has_min, &min, err));
    TARE_TRY(tare__spec_int(spec, "quant_max", &has_max, &max, err));
    if (kind->quant_max == 0 && !(has_min && has_max)) return TARE_OK;
    if (kind->limits_must_differ && min >= max)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "quant_min must be strictly less than quant_max.");
    if (min > max)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "quant_min must be less than or equal to quant_max");
    TARE_TRY(check_bounds(dtype, min, max, err));
    tare_observer_spec_set_int(inner, "quant_min", min);
    tare_observer_spec_set_int(inner, "quant_max", max);
    return TARE_OK;
}

static tare_status fill_inner(const fake_quantize_kind *kind, const tare_observer_spec *spec,
                              tare_observer_spec *inner, tare_error *err) {
    const bool names_dtype = tare__observer_spec_find(inner, "dtype") != NULL;
    const tare_dtype dtype = dtype_of(names_dtype ? inner : spec);
    for (size_t i = 0; i < spec->count; i++)
        if (!is_own(kind, spec->arguments[i].name))
            tare__observer_spec_set(inner, spec->arguments[i].name, &spec->arguments[i]);
    TARE_TRY(set_limits(kind, spec, dtype, inner, err));
    const observer_argument *dynamic = tare__observer_spec_find(spec, "is_dynamic");
    if (dynamic != NULL && is_own(kind, "is_dynamic"))
        tare__observer_spec_set(inner, "is_dynamic", dynamic);
    return tare__observer_spec_status(inner, err);
}

tare_status tare__fake_quantize_inner(const tare_observer_class *class,
                                      const tare_observer_spec *spec, tare_observer_spec **out,
                                      tare_error *err) {
    const fake_quantize_kind *kind = tare__fake_quantize_kind(class);
    tare_observer_spec *inner = NULL;
    TARE_TRY(begin_inner(kind, spec, &inner, err));
    tare_status status = tare__observer_spec_status(inner, err);
    if (status == TARE_OK) status = fill_inner(kind, spec, inner, err);
    const tare_observer_class *known = tare__observer_class_find(NULL, inner->class_name);
    if (status == TARE_OK && known != NULL && tare__fake_quantize_kind(known) != NULL)
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "the observer of a %s cannot be a %s",
                            class->name, known->name);
    if (status == TARE_OK)
        *out = inner;
    else
        tare_observer_spec_release(inner);
    return status;
}

// --- creation ---

static tare_status check_fit(const fake_quantize_kind *kind, const tare_observer_class *inner,
                             tare_error *err) {
    if (kind->fits == NULL || kind->fits(inner)) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s", kind->misfit);
}

static tare_status check_inner(const fake_quantize_kind *kind, const tare_observer_class *inner,
                               const tare_observer_info *info, tare_error *err) {
    TARE_TRY(check_fit(kind, inner, err));
    if (info->qscheme != TARE_QSCHEME_UNSET && info->has_range) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "Only per channel and per tensor quantization are supported in fake quantize "
                      "got qscheme: %s",
                      info->qscheme != TARE_QSCHEME_UNSET ? tare_qscheme_name(info->qscheme)
                                                          : "None");
}

tare_status tare__fake_quantize_info(const observer_classes *classes,
                                     const tare_observer_class *class,
                                     const tare_observer_spec *spec, tare_observer_info *out,
                                     tare_error *err) {
    tare_observer_spec *inner = NULL;
    TARE_TRY(tare__fake_quantize_inner(class, spec, &inner, err));
    const tare_observer_class *watching = tare__observer_class_find(classes, inner->class_name);
    tare_status status = tare__observer_spec_info(classes, inner, out, err);
    if (status == TARE_OK) status = check_inner(class->user, watching, out, err);
    tare_observer_spec_release(inner);
    return status;
}

tare_status tare__fake_quantize_set_buffer(module *m, const char *name, tare_dtype dtype, double v,
                                           tare_error *err) {
    const int64_t one = 1;
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(dtype, 1, &one, &t, err));
    tare__tensor_set(t, 0, v);
    const tare_status status = tare__module_set_tensor(m, name, t, false, err);
    tare_tensor_release(t);
    return status;
}

static tare_status fill(module *m, const fake_quantize_kind *kind, module *observer,
                        const tare_observer_spec *spec, tare_error *err) {
    const bool has_float_zero =
        tare__observer_info(observer)->qscheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    TARE_TRY(tare__fake_quantize_set_buffer(m, "fake_quant_enabled", kind->switch_dtype, 1, err));
    TARE_TRY(tare__fake_quantize_set_buffer(m, "observer_enabled", kind->switch_dtype, 1, err));
    TARE_TRY(tare__fake_quantize_set_buffer(m, "scale", TARE_FLOAT32, 1, err));
    TARE_TRY(tare__fake_quantize_set_buffer(m, "zero_point",
                                            has_float_zero ? TARE_FLOAT32 : TARE_INT32, 0, err));
    TARE_TRY(tare__module_set_child(m, OBSERVER, observer, err));
    return kind->fill != NULL ? kind->fill(m, spec, err) : TARE_OK;
}

tare_status tare__fake_quantize_create(const observer_classes *classes, const module_class *row,
                                       const tare_observer_spec *spec, module **out,
                                       tare_error *err) {
    const tare_observer_class *class = row->kind;
    tare_observer_spec *inner = NULL;
    module *observer = NULL, *made = NULL;
    TARE_TRY(tare__fake_quantize_inner(class, spec, &inner, err));
    tare_status status = tare__observer_spec_instantiate(classes, inner, &observer, err);
    tare_observer_spec_release(inner);
    TARE_TRY(status);
    status = check_inner(class->user, tare__observer_class_of(observer),
                         tare__observer_info(observer), err);
    if (status == TARE_OK) status = tare__module_create(row, &made, err);
    if (status == TARE_OK) status = fill(made, class->user, observer, spec, err);
    tare__module_release(observer);
    return tare__module_hand_out(made, status, out);
}

// --- switches and parameters ---

bool tare__fake_quantize_is_on(const module *m, const char *switch_name) {
    const tare_tensor *t = tare__module_tensor(m, switch_name);
    return t != NULL && t->count > 0 && tare__tensor_get(t, 0) == 1;
}

// Sets a new tensor, because copies of a model share the old one.
tare_status tare__fake_quantize_switch(module *m, const char *switch_name, bool on,
                                       tare_error *err) {
    const tare_tensor *was = tare__module_tensor(m, switch_name);
    return was != NULL ? tare__fake_quantize_set_buffer(m, switch_name, was->dtype, on ? 1 : 0, err)
                       : TARE_OK;
}

static tare_status replace(module *m, const char *name, int64_t count, const double *values,
                           tare_error *err) {
    const named_tensor *was = tare__module_named_tensor(m, name);
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(was->tensor->dtype, 1, &count, &t, err));
    for (int64_t i = 0; i < count; i++) tare__tensor_set(t, i, values[i]);
    const tare_status status = tare__module_set_tensor(m, name, t, was->is_parameter, err);
    tare_tensor_release(t);
    return status;
}

tare_status tare__fake_quantize_set(module *m, int64_t count, const double *scale,
                                    const double *zero_point, tare_error *err) {
    TARE_TRY(replace(m, "scale", count, scale, err));
    return replace(m, "zero_point", count, zero_point, err);
}

tare_status tare__fake_quantize_qparams(const module *m, const qparams **out, bool *is_calibrated,
                                        tare_error *err) {
    const module *observer = tare__fake_quantize_observer(m);
    const named_tensor *scale = tare__module_named_tensor(m, "scale");
    if (!scale->is_parameter) return tare__observer_qparams(observer, out, is_calibrated, err);
    // Learned parameters: the scale at least eps, the zero point an integer within the limits.
    const tare_observer_info *info = tare__observer_info(observer);
    const tare_tensor *zero_point = tare__module_tensor(m, "zero_point");
    const double min = (double)tare__module_int(m, "quant_min", 0);
    const double max = (double)tare__module_int(m, "quant_max", 255);
    const int64_t count = scale->tensor->count;
    double *values = tare__alloc_zeroed((size_t)count, 2 * sizeof *values);
    if (values == NULL) return tare__out_of_memory(err);
    for (int64_t i = 0; i < count; i++) {
        const double rounded = rint(tare__tensor_get(zero_point, i));
        values[i] = fmax(tare__tensor_get(scale->tensor, i), 0x1p-23);
        values[count + i] = fmin(fmax(rounded, min), max);
    }
    qparams *made = tare__qparams_create(info->qscheme, info->dtype, info->channel_axis, count,
                                         values, values + count);
    tare__free(values);
    if (made == NULL) return tare__out_of_memory(err);
    made->quant_min = (int64_t)min;
    made->quant_max = (int64_t)max;
    *out = made;
    *is_calibrated = true;
    return TARE_OK;
}

// --- running ---

static tare_status step_on(module *m, const tare_tensor *floats, tare_error *err) {
    const tare_status status = tare__fake_quantize_kind_of(m)->step(m, floats, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", m->class->print_name);
}

tare_status tare__fake_quantize_update(module *m, const tare_tensor *x, tare_error *err) {
    tare_tensor *floats = NULL;
    TARE_TRY(tare__observed_floats(x, &floats, err));
    const tare_status status = step_on(m, floats, err);
    tare_tensor_release(floats);
    return status;
}

tare_status tare__fake_quantize_shape(op_call *call) {
    if (call->arg_count != 1 || call->args[0].kind != VALUE_TENSOR)
        return tare__call_fail(call, "a fake quantizer takes one tensor");
    tare_tensor *x = call->args[0].as.tensor;
    if (!tare__dtype(x->dtype)->is_float)
        return tare__call_fail(call, "a fake quantizer takes floats, found %s",
                               tare_dtype_name(x->dtype));
    if (tare__fake_quantize_is_on(call->module, "fake_quant_enabled"))
        return tare__call_result(call, x->dtype, x->ndim, x->shape, NULL);
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = tare_tensor_retain(x)};
    return TARE_OK;
}

// The learnable class stores its zero point as a float, which is rounded here: a half is added, the
// sum is clamped and truncated.
static tare_status cut_zero_point(const tare_tensor *zero_point, const fake_quantizer *f,
                                  tare_tensor **out, tare_error *err) {
    TARE_TRY(tare_tensor_create(TARE_INT32, zero_point->ndim, zero_point->shape, out, err));
    for (int64_t i = 0; i < zero_point->count; i++) {
        const float moved = tare__f32(zero_point)[i] + 0.5F;
        const double cut = fmin(fmax((double)moved, (double)f->quant_min), (double)f->quant_max);
        tare__tensor_set(*out, i, trunc(cut));
    }
    return TARE_OK;
}

static tare_status quantize_with(fake_quantizer *f, const module *m, const tare_tensor *x,
                                 tare_tensor *y, tare_error *err) {
    tare_tensor *cut = NULL;
    if (tare__module_named_tensor(m, "zero_point")->is_parameter) {
        f->quant_min = tare__module_int(m, "quant_min", 0);
        f->quant_max = tare__module_int(m, "quant_max", 255);
        TARE_TRY(cut_zero_point(f->zero_point, f, &cut, err));
        f->zero_point = cut;
    }
    const tare_status status = tare__fake_quantize_check(f, x, err);
    if (status == TARE_OK) tare__fake_quantize_into(f, x, y);
    tare_tensor_release(cut);
    return status;
}

static tare_status quantize(const module *m, const tare_tensor *x, tare_tensor *y,
                            tare_error *err) {
    const tare_observer_info *info = tare__observer_info(m);
    fake_quantizer f = {.scale = tare__module_tensor(m, "scale"),
                        .zero_point = tare__module_tensor(m, "zero_point"),
                        .axis = -1,
                        .quant_min = info->quant_min,
                        .quant_max = info->quant_max};
    if (tare__qscheme_is_per_channel(info->qscheme))
        f.axis = info->channel_axis < 0 ? info->channel_axis + x->ndim : info->channel_axis;
    return quantize_with(&f, m, x, y, err);
}

// Half and double inputs are computed in float32 and converted back.
static tare_status quantize_any(op_call *call, const tare_tensor *floats) {
    tare_tensor *out = tare__call_out(call), *made = NULL;
    if (out->dtype == TARE_FLOAT32) return quantize(call->module, floats, out, call->err);
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, floats->ndim, floats->shape, &made, call->err));
    const tare_status status = quantize(call->module, floats, made, call->err);
    for (int64_t i = 0; status == TARE_OK && i < out->count; i++)
        tare__tensor_set(out, i, (double)tare__f32(made)[i]);
    tare_tensor_release(made);
    return status;
}

tare_status tare__fake_quantize_forward(op_call *call) {
    const module *m = call->module;
    module *own = tare__call_own(call, m);
    tare_tensor *floats = NULL;
    TARE_TRY(tare__observed_floats(call->args[0].as.tensor, &floats, call->err));
    const bool is_on = tare__fake_quantize_is_on(m, "fake_quant_enabled");
    tare_status status = own != NULL ? step_on(own, floats, call->err) : TARE_OK;
    if (status == TARE_OK && is_on) {
        status = quantize_any(call, floats);
        if (status != TARE_OK) tare__at(call->err, status, "%s", m->class->print_name);
    }
    tare_tensor_release(floats);
    if (status == TARE_OK || call->node_name == NULL) return status;
    return tare__at(call->err, status, "node '%s'", call->node_name);
}

tare_status tare__fake_quantize_describe(const module *m, text *out, tare_error *err) {
    const fake_quantize_kind *kind = tare__fake_quantize_kind_of(m);
    if (kind->describe != NULL) kind->describe(m, out);
    return tare__text_status(out, err);
}

// --- files ---

static tare_status check_tensor(const module *m, const char *name, bool may_be_many,
                                tare_error *err) {
    const tare_tensor *t = tare__module_tensor(m, name);
    if (t != NULL && t->ndim == 1 && t->count > 0 && (may_be_many || t->count == 1) &&
        !tare__tensor_is_quantized(t))
        return TARE_OK;
    return tare__fail(err, TARE_MALFORMED_FILE, "a %s needs a tensor '%s' of %s",
                      m->class->print_name, name, may_be_many ? "one dimension" : "one value");
}

// Checks scales and zero points. A learned scale may be negative: it is raised to eps wherever it
// is used.
static tare_status check_numbers(const module *m, tare_error *err) {
    const named_tensor *scale = tare__module_named_tensor(m, "scale");
    const tare_tensor *zero_point = tare__module_tensor(m, "zero_point");
    for (int64_t c = 0; c < scale->tensor->count; c++) {
        const double number = tare__tensor_get(scale->tensor, c);
        if (!isfinite(number) || (!scale->is_parameter && !(number > 0)))
            return tare__fail(err, TARE_MALFORMED_FILE,
                              "the scale of a %s must be positive and finite, found %g at "
                              "channel %lld",
                              m->class->print_name, number, (long long)c);
        if (!isfinite(tare__tensor_get(zero_point, c)))
            return tare__fail(err, TARE_MALFORMED_FILE,
                              "the zero point of a %s must be finite, found %g at channel %lld",
                              m->class->print_name, tare__tensor_get(zero_point, c), (long long)c);
    }
    return TARE_OK;
}

static tare_status check_parameters(const module *m, tare_error *err) {
    TARE_TRY(check_tensor(m, "scale", true, err));
    TARE_TRY(check_tensor(m, "zero_point", true, err));
    const tare_tensor *scale = tare__module_tensor(m, "scale");
    const tare_tensor *zero_point = tare__module_tensor(m, "zero_point");
    const bool is_zero = zero_point->dtype == TARE_INT32 || zero_point->dtype == TARE_FLOAT32;
    if (scale->dtype == TARE_FLOAT32 && is_zero && scale->count == zero_point->count)
        return check_numbers(m, err);
    return tare__fail(err, TARE_MALFORMED_FILE,
                      "scale and zero_point of a %s must be of one size, float32 and int32 or "
                      "float32, found %lld %s and %lld %s",
                      m->class->print_name, (long long)scale->count, tare_dtype_name(scale->dtype),
                      (long long)zero_point->count, tare_dtype_name(zero_point->dtype));
}

// Checks a module that was read from a file. The observer's state is read afterwards.
tare_status tare__fake_quantize_module_check(const module *m, tare_error *err) {
    const module *observer = tare__fake_quantize_observer(m);
    if (observer == NULL || observer->class->role != ROLE_OBSERVER ||
        observer->class->clone_state == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "a %s needs an observer '%s'",
                          m->class->print_name, OBSERVER);
    const fake_quantize_kind *kind = tare__fake_quantize_kind_of(m);
    TARE_TRY(check_fit(kind, observer->class->kind, err));
    TARE_TRY(check_tensor(m, "fake_quant_enabled", false, err));
    TARE_TRY(check_tensor(m, kind->observer_switch, false, err));
    return check_parameters(m, err);
}
