// SPDX-License-Identifier: Apache-2.0
// The observers of input-weight equalization: they record the range of each input channel, and of
// each input channel of a weight, both along axis 1. They propose no parameters; convert reads
// their ranges.
#include "core/tensor/tensor.h"
#include "core/text/text.h"
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"
#include "observe/observer_spec.h"

// The difference between the two classes; a class's `user`.
typedef struct equalization_kind {
    bool is_input;
} equalization_kind;

// Kinds of the inner observer. The address identifies which of the two classes a state belongs to.
static const range_kind input_range = {
    .name = "PerChannelMinMaxObserver", .is_per_channel = true, .join = &tare__join_extremes};
static const range_kind weight_range = {
    .name = "PerChannelMinMaxObserver", .is_per_channel = true, .join = &tare__join_extremes};

static tare_qscheme per_channel(tare_qscheme scheme) {
    if (scheme == TARE_PER_TENSOR_AFFINE) return TARE_PER_CHANNEL_AFFINE;
    return scheme == TARE_PER_TENSOR_SYMMETRIC ? TARE_PER_CHANNEL_SYMMETRIC : scheme;
}

// Arguments for the inner observer, from those of the outer one.
static tare_status inner_spec(const equalization_kind *kind, const tare_observer_args *args,
                              tare_observer_spec *spec, tare_error *err) {
    tare_dtype dtype = kind->is_input ? TARE_QUINT8 : TARE_QINT8;
    tare_qscheme scheme = TARE_PER_TENSOR_AFFINE;
    int64_t bound = 0;
    tare_observer_args_dtype(args, "dtype", &dtype);
    tare_observer_args_qscheme(args, "qscheme", &scheme);
    if (kind->is_input && tare__qscheme_is_per_channel(scheme))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "Input qscheme must be per-tensor");
    tare_observer_spec_set_int(spec, "ch_axis", 1);
    tare_observer_spec_set_dtype(spec, "dtype", dtype);
    tare_observer_spec_set_qscheme(spec, "qscheme", per_channel(scheme));
    if (tare_observer_args_int(args, "quant_min", &bound))
        tare_observer_spec_set_int(spec, "quant_min", bound);
    if (tare_observer_args_int(args, "quant_max", &bound))
        tare_observer_spec_set_int(spec, "quant_max", bound);
    return tare__observer_spec_status(spec, err);
}

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    const equalization_kind *kind = user;
    argument_use uses[8] = {0};
    tare_observer_spec *spec = tare_observer_spec_create("PerChannelMinMaxObserver");
    if (spec == NULL) return tare__out_of_memory(err);
    tare_status status = inner_spec(kind, args, spec, err);
    const tare_observer_args inner = {.spec = spec, .uses = uses};
    if (status == TARE_OK)
        status = tare__range_create((void *)(kind->is_input ? &input_range : &weight_range), &inner,
                                    state, info, err);
    tare_observer_spec_release(spec);
    info->has_qparams = false;
    return status;
}

static tare_status update(void *state, const tare_tensor *x, tare_error *err) {
    if (x->ndim < 2 || x->ndim > 5)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "InputEqualizationObserver only supports Linear and Conv layers");
    return tare__range_update(state, x, err);
}

// Printed as torch prints a child module, on a line of its own.
static tare_status describe(const void *state, tare_writer write, void *user, tare_error *err) {
    const bool is_input = ((const range_state *)state)->kind == &input_range;
    text line = {0};
    tare__text_printf(&line, "(%s): PerChannelMinMaxObserver(",
                      is_input ? "input_obs" : "weight_col_obs");
    const tare_status status = tare__range_describe(state, tare__text_append_writer, &line, err);
    tare__text_char(&line, ')');
    return tare__text_write(&line, status, write, user, err);
}

static const char *const arguments[] = {"dtype", "qscheme", "quant_min", "quant_max", NULL};
#define EQUALIZATION_OBSERVER                                                                      \
    .struct_size = sizeof(tare_observer_class), .arguments = arguments, .create = create,          \
    .destroy = tare__range_destroy, .clone = tare__range_clone, .update = update,                  \
    .describe = describe, .save = tare__range_save, .load = tare__range_load,                      \
    .merge = tare__range_merge

static const equalization_kind input_kind = {.is_input = true};
static const equalization_kind weight_kind = {.is_input = false};
const tare_observer_class tare__input_equalization_observer = {
    EQUALIZATION_OBSERVER, .name = "_InputEqualizationObserver", .user = (void *)&input_kind};
const tare_observer_class tare__weight_equalization_observer = {
    EQUALIZATION_OBSERVER, .name = "_WeightEqualizationObserver", .user = (void *)&weight_kind};
