// SPDX-License-Identifier: Apache-2.0
// torch's four fake quantizers: which observer each contains, and how it computes its parameters.
#include "observe/fake_quantize.h"

#include <math.h>

#include "core/math/requant.h"
#include "core/memory/alloc.h"
#include "core/tensor/text.h"
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

// --- text ---

static void append_tensor(const module *m, const char *name, text *out) {
    tare__text_printf(out, "%s=", name);
    tare__text_tensor(out, tare__module_tensor(m, name));
}

static void append_switches(const module *m, text *out) {
    append_tensor(m, "fake_quant_enabled", out);
    tare__text_append(out, ", ");
    append_tensor(m, "observer_enabled", out);
}

static void append_parameters(const module *m, text *out) {
    tare__text_append(out, ", ");
    append_tensor(m, "scale", out);
    tare__text_append(out, ", ");
    append_tensor(m, "zero_point", out);
}

static void append_dtype(const tare_observer_info *info, text *out) {
    tare__text_printf(out, ", dtype=%s", tare_dtype_name(info->dtype));
}
static void append_limits(const tare_observer_info *info, text *out) {
    tare__text_printf(out, ", quant_min=%lld, quant_max=%lld", (long long)info->quant_min,
                      (long long)info->quant_max);
}
static void append_scheme(const tare_observer_info *info, text *out) {
    tare__text_printf(out, ", qscheme=%s", tare_qscheme_name(info->qscheme));
}

// The complete text of FixedQParamsFakeQuantize, which also begins that of the fused class.
static void describe_fixed(const module *m, text *out) {
    const tare_observer_info *info = tare__observer_info(m);
    append_switches(m, out);
    append_parameters(m, out);
    append_dtype(info, out);
    append_limits(info, out);
    append_scheme(info, out);
}

// --- FakeQuantize: any observer, its proposal after every batch ---

static tare_status take_proposal(module *m, const module *observer, tare_error *err) {
    const qparams *q = NULL;
    bool is_calibrated = false; // without observed data the parameters are torch's defaults
    TARE_TRY(tare__observer_qparams(observer, &q, &is_calibrated, err));
    const tare_status status = tare__fake_quantize_set(m, q->count, q->scale, q->zero_point, err);
    tare__qparams_release(q);
    return status;
}

static tare_status plain_step(module *m, const tare_tensor *x, tare_error *err) {
    module *observer = tare__fake_quantize_observer(m);
    if (!tare__fake_quantize_is_on(m, "observer_enabled")) return TARE_OK;
    TARE_TRY(tare__observer_update(observer, x, err));
    return take_proposal(m, observer, err);
}

static void describe_plain(const module *m, text *out) {
    const tare_observer_info *info = tare__observer_info(m);
    const bool is_per_channel = tare__qscheme_is_per_channel(info->qscheme);
    append_switches(m, out);
    append_limits(info, out);
    append_dtype(info, out);
    append_scheme(info, out);
    tare__text_printf(out, ", ch_axis=%d", is_per_channel ? info->channel_axis : -1);
    append_parameters(m, out);
}

static const char *const plain_own[] = {"observer", "quant_min", "quant_max", "is_dynamic", NULL};
static const fake_quantize_kind plain_kind = {.switch_dtype = TARE_UINT8,
                                              .observer_switch = "observer_enabled",
                                              .own = plain_own,
                                              .step = plain_step,
                                              .describe = describe_plain};

// --- FusedMovingAvgObsFakeQuantize: the parameters of torch's fused operator ---

// Computes the parameters from the running range, even while observing is switched off. Uses
// fbgemm's formula, not the observer's: the scale is a double until it is stored.
static tare_status choose_parameters(module *m, const range_state *range, tare_error *err) {
    const tare_observer_info *info = tare__observer_info(m);
    const bool is_symmetric =
        info->qscheme == TARE_PER_TENSOR_SYMMETRIC || info->qscheme == TARE_PER_CHANNEL_SYMMETRIC;
    double *scale = tare__alloc_zeroed((size_t)range->count + 1, 2 * sizeof *scale);
    if (scale == NULL) return tare__out_of_memory(err);
    double *zero_point = scale + range->count;
    for (int64_t c = 0; c < range->count; c++) {
        const dynamic_qparams q =
            tare__choose_dynamic_qparams(&(dynamic_range){.min = range->min[c],
                                                          .max = range->max[c],
                                                          .quant_min = (int32_t)info->quant_min,
                                                          .quant_max = (int32_t)info->quant_max,
                                                          .symmetric = is_symmetric});
        scale[c] = q.scale;
        zero_point[c] = q.zero_point;
    }
    const tare_status status = tare__fake_quantize_set(m, range->count, scale, zero_point, err);
    tare__free(scale);
    return status;
}

static tare_status fused_step(module *m, const tare_tensor *x, tare_error *err) {
    module *observer = tare__fake_quantize_observer(m);
    range_state *range = tare__observer_state(observer);
    const bool observes = tare__fake_quantize_is_on(m, "observer_enabled");
    TARE_TRY(tare__range_update_fused(range, x, observes, err));
    if (!tare__fake_quantize_is_on(m, "fake_quant_enabled") || range->count == 0) return TARE_OK;
    return choose_parameters(m, range, err);
}

static void describe_fused(const module *m, text *out) {
    describe_fixed(m, out);
    const range_state *range = tare__observer_state(tare__fake_quantize_observer(m));
    tare__text_printf(out, ", reduce_range=%s", range->base.reduce_range ? "True" : "False");
}

static bool is_moving_average(const tare_observer_class *inner) {
    return inner == &tare__moving_average_min_max_observer ||
           inner == &tare__moving_average_per_channel_observer;
}

static const fake_quantize_kind fused_kind = {
    .switch_dtype = TARE_INT64,
    .observer_switch = "observer_enabled",
    .own = plain_own,
    .quant_max = 255,
    .fits = is_moving_average,
    .misfit = "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver",
    .step = fused_step,
    .describe = describe_fused};

// --- FixedQParamsFakeQuantize ---

static bool is_fixed(const tare_observer_class *inner) {
    return inner == &tare__fixed_qparams_observer;
}

static tare_status fill_fixed(module *m, const tare_observer_spec *spec, tare_error *err) {
    (void)spec;
    return take_proposal(m, tare__fake_quantize_observer(m), err);
}

static tare_status fixed_step(module *m, const tare_tensor *x, tare_error *err) {
    (void)m;
    (void)x;
    (void)err;
    return TARE_OK;
}

static const char *const fixed_own[] = {"observer", NULL};
static const fake_quantize_kind fixed_kind = {
    .switch_dtype = TARE_UINT8,
    .observer_switch = "observer_enabled",
    .own = fixed_own,
    .needs_observer = true,
    .fits = is_fixed,
    .misfit = "FixedQParamsFakeQuantize's observer must be a FixedQParamsObserver",
    .fill = fill_fixed,
    .step = fixed_step,
    .describe = describe_fixed};

// --- _LearnableFakeQuantize: scale and zero point are parameters ---

static tare_status add_parameter(module *m, const char *name, int64_t count, double v,
                                 tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, err));
    for (int64_t i = 0; i < count; i++) tare__tensor_set(t, i, v);
    tare__module_remove_tensor(m, name);
    const tare_status status = tare__module_set_tensor(m, name, t, true, err);
    tare_tensor_release(t);
    return status;
}

static tare_status add_parameters(module *m, const tare_observer_spec *spec, tare_error *err) {
    bool has_length = false;
    int64_t length = -1;
    double scale = 1, zero_point = 0;
    TARE_TRY(tare__spec_int(spec, "channel_len", &has_length, &length, err));
    TARE_TRY(tare__spec_double(spec, "scale", &scale, err));
    TARE_TRY(tare__spec_double(spec, "zero_point", &zero_point, err));
    if (length != -1 && length <= 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "Channel size must be a positive integer.");
    const int64_t count = length == -1 ? 1 : length;
    TARE_TRY(add_parameter(m, "scale", count, scale, err));
    return add_parameter(m, "zero_point", count, zero_point, err);
}

static tare_status set_limits(module *m, const tare_observer_spec *spec, tare_error *err) {
    bool is_given = false;
    int64_t min = 0, max = 255;
    TARE_TRY(tare__spec_int(spec, "quant_min", &is_given, &min, err));
    TARE_TRY(tare__spec_int(spec, "quant_max", &is_given, &max, err));
    const value min_value = tare__int(min), max_value = tare__int(max);
    TARE_TRY(tare__module_set_config(m, "quant_min", &min_value, err));
    return tare__module_set_config(m, "quant_max", &max_value, err);
}

static tare_status fill_learnable(module *m, const tare_observer_spec *spec, tare_error *err) {
    TARE_TRY(set_limits(m, spec, err));
    TARE_TRY(add_parameters(m, spec, err));
    TARE_TRY(tare__fake_quantize_set_buffer(m, "static_enabled", TARE_UINT8, 1, err));
    TARE_TRY(tare__fake_quantize_set_buffer(m, "learning_enabled", TARE_UINT8, 0, err));
    return tare__fake_quantize_set_buffer(m, "eps", TARE_FLOAT32, 0x1p-23, err);
}

// Sets the proposed parameters. A single scale is repeated for all channels, as torch's copy_
// broadcasts it.
static tare_status spread_proposal(module *m, const qparams *q, tare_error *err) {
    const int64_t count = tare__module_tensor(m, "scale")->count;
    if (q->count != count && q->count != 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the observer proposed %lld scales for %lld",
                          (long long)q->count, (long long)count);
    double *scale = tare__alloc_zeroed((size_t)count, 2 * sizeof *scale);
    if (scale == NULL) return tare__out_of_memory(err);
    for (int64_t i = 0; i < count; i++) {
        scale[i] = q->scale[q->count == 1 ? 0 : i];
        scale[count + i] = q->zero_point[q->count == 1 ? 0 : i];
    }
    const tare_status status = tare__fake_quantize_set(m, count, scale, scale + count, err);
    tare__free(scale);
    return status;
}

static tare_status follow_observer(module *m, const tare_tensor *x, tare_error *err) {
    module *observer = tare__fake_quantize_observer(m);
    const qparams *q = NULL;
    bool is_calibrated = false;
    TARE_TRY(tare__observer_update(observer, x, err));
    TARE_TRY(tare__observer_qparams(observer, &q, &is_calibrated, err));
    const tare_status status = spread_proposal(m, q, err);
    tare__qparams_release(q);
    return status;
}

// Limits a learned scale to at least eps; is_symmetric: sets the zero point to 0.
static tare_status tidy_parameters(module *m, bool is_learned, bool is_symmetric, tare_error *err) {
    const tare_tensor *scale = tare__module_tensor(m, "scale");
    const tare_tensor *zero_point = tare__module_tensor(m, "zero_point");
    const int64_t count = scale->count;
    double *kept = tare__alloc_zeroed((size_t)count, 2 * sizeof *kept);
    if (kept == NULL) return tare__out_of_memory(err);
    for (int64_t i = 0; i < count; i++) {
        const double s = tare__tensor_get(scale, i);
        kept[i] = is_learned && s < 0x1p-23 ? 0x1p-23 : s;
        kept[count + i] = is_symmetric ? 0 : tare__tensor_get(zero_point, i);
    }
    const tare_status status = tare__fake_quantize_set(m, count, kept, kept + count, err);
    tare__free(kept);
    return status;
}

static tare_status learnable_step(module *m, const tare_tensor *x, tare_error *err) {
    const bool is_static = tare__fake_quantize_is_on(m, "static_enabled");
    const tare_qscheme scheme = tare__observer_info(m)->qscheme;
    const bool is_symmetric =
        scheme == TARE_PER_TENSOR_SYMMETRIC || scheme == TARE_PER_CHANNEL_SYMMETRIC;
    if (is_static) TARE_TRY(follow_observer(m, x, err));
    const bool is_on = tare__fake_quantize_is_on(m, "fake_quant_enabled");
    return tidy_parameters(m, !is_static, is_symmetric && is_on, err);
}

static const char *const learnable_own[] = {
    "observer",   "quant_min",   "quant_max",        "scale",
    "zero_point", "channel_len", "use_grad_scaling", NULL};
static const fake_quantize_kind learnable_kind = {.switch_dtype = TARE_UINT8,
                                                  .observer_switch = "static_enabled",
                                                  .own = learnable_own,
                                                  .needs_observer = true,
                                                  .quant_max = 255,
                                                  .limits_must_differ = true,
                                                  .fill = fill_learnable,
                                                  .step = learnable_step};

// --- descriptors ---

// Arguments other than these are passed to the observer.
#define OBSERVER_ARGUMENTS "observer", "ch_axis", "averaging_constant", "bins", UNIFORM_ARGUMENTS

static const char *const arguments[] = {OBSERVER_ARGUMENTS, NULL};
static const char *const learnable_arguments[] = {
    OBSERVER_ARGUMENTS, "scale", "zero_point", "channel_len", "use_grad_scaling", NULL};

// Fake quantizers are modules of their own kind (observe/fake_quantize.c), so that their
// descriptors have none of an observer's functions.
#define FAKE_QUANTIZE(descriptor, class_name, names, kind)                                         \
    const tare_observer_class descriptor = {.struct_size = sizeof(tare_observer_class),            \
                                            .name = class_name,                                    \
                                            .arguments = names,                                    \
                                            .user = (void *)&kind}
FAKE_QUANTIZE(tare__fake_quantize_class, "FakeQuantize", arguments, plain_kind);
FAKE_QUANTIZE(tare__fused_moving_average_fake_quantize_class, "FusedMovingAvgObsFakeQuantize",
              arguments, fused_kind);
FAKE_QUANTIZE(tare__fixed_qparams_fake_quantize_class, "FixedQParamsFakeQuantize", fixed_own,
              fixed_kind);
FAKE_QUANTIZE(tare__learnable_fake_quantize_class, "_LearnableFakeQuantize", learnable_arguments,
              learnable_kind);
