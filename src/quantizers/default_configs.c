// SPDX-License-Identifier: Apache-2.0
// The default configs of the built-in quantizers as a table. Source: torchao 0.18's get_*_config.
#include <string.h>

#include "core/error.h"
#include "core/struct_size.h"
#include "tare/quantizer.h"

typedef struct config_row {
    const char *quantizer;
    tare_dtype act_dtype; // UNSET: activations stay float
    int64_t act_min, act_max;
    int64_t weight_min, weight_max;
    bool knows_per_channel, knows_modes, knows_reduce_range, knows_ranges;
    bool is_per_channel; // the default
    bool has_no_axis;    // the spec of a per-tensor weight has no ch_axis
    bool keeps_output_when_dynamic;
} config_row;

static const config_row rows[] = {
    {.quantizer = "XNNPACKQuantizer",
     .act_dtype = TARE_INT8,
     .act_min = -128,
     .act_max = 127,
     .weight_min = -127,
     .weight_max = 127,
     .knows_per_channel = true,
     .knows_modes = true,
     .knows_ranges = true},
    {.quantizer = "X86InductorQuantizer",
     .act_dtype = TARE_UINT8,
     .act_max = 255,
     .weight_min = -128,
     .weight_max = 127,
     .knows_modes = true,
     .knows_reduce_range = true,
     .is_per_channel = true,
     .keeps_output_when_dynamic = true},
    {.quantizer = "ArmInductorQuantizer",
     .act_dtype = TARE_INT8,
     .act_min = -128,
     .act_max = 127,
     .weight_min = -128,
     .weight_max = 127,
     .knows_modes = true,
     .has_no_axis = true,
     .keeps_output_when_dynamic = true},
    {.quantizer = "XPUInductorQuantizer",
     .act_dtype = TARE_INT8,
     .act_min = -128,
     .act_max = 127,
     .weight_min = -128,
     .weight_max = 127,
     .is_per_channel = true},
    {.quantizer = "EmbeddingQuantizer"},
};

static const char *row_name(const void *unused, size_t i) {
    (void)unused;
    return i < sizeof rows / sizeof *rows ? rows[i].quantizer : NULL;
}

static tare_status find_row(const char *name, const config_row **out, tare_error *err) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].quantizer, name) != 0) continue;
        *out = &rows[i];
        return TARE_OK;
    }
    return tare__suggest(
        err, tare__fail(err, TARE_NOT_FOUND, "no quantizer '%s' with a default config", name), name,
        row_name, NULL);
}

static tare_status check_options(const config_row *row, const tare_quantization_options *o,
                                 tare_error *err) {
    const char *what = NULL;
    if (o->is_per_channel && !row->knows_per_channel) what = "is_per_channel";
    if ((o->is_qat || o->is_dynamic) && !row->knows_modes)
        what = o->is_qat ? "is_qat" : "is_dynamic";
    if (o->reduce_range && !row->knows_reduce_range) what = "reduce_range";
    if ((o->has_act_range || o->has_weight_range) && !row->knows_ranges)
        what = o->has_act_range ? "act_range" : "weight_range";
    if (what == NULL) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "the default config of %s has no option '%s'",
                      row->quantizer, what);
}

// An observer with eps 2^-12, or a fake quantizer with this eps around `inner`. Takes ownership of
// `inner`.
static tare_observer_spec *observer(const char *name, tare_observer_spec *inner) {
    tare_observer_spec *made = tare_observer_spec_create(name);
    tare_observer_spec_set_double(made, "eps", 0x1p-12);
    if (inner != NULL) tare_observer_spec_set_observer(made, "observer", inner);
    tare_observer_spec_release(inner);
    return made;
}

static tare_observer_spec *activation_observer(const tare_quantization_options *o) {
    if (o->is_dynamic && o->is_qat) {
        tare_observer_spec *inner = tare_observer_spec_create("MovingAverageMinMaxObserver");
        tare_observer_spec_set_int(inner, "averaging_constant", 1);
        return observer("FakeQuantize", inner);
    }
    if (o->is_qat) return observer("FusedMovingAvgObsFakeQuantize", NULL);
    return observer(o->is_dynamic ? "PlaceholderObserver" : "HistogramObserver", NULL);
}

static tare_observer_spec *weight_observer(bool is_qat, bool is_per_channel) {
    if (is_qat)
        return observer("FusedMovingAvgObsFakeQuantize",
                        tare_observer_spec_create(is_per_channel
                                                      ? "MovingAveragePerChannelMinMaxObserver"
                                                      : "MovingAverageMinMaxObserver"));
    return observer(is_per_channel ? "PerChannelMinMaxObserver" : "MinMaxObserver", NULL);
}

// Creates a spec. Takes ownership of the observer.
static tare_status make_spec(tare_qspec_fields *f, tare_qspec **out, tare_error *err) {
    f->struct_size = sizeof *f;
    const tare_status status =
        f->observer != NULL ? tare_qspec_create(f, out, err) : tare__out_of_memory(err);
    tare_observer_spec_release(f->observer);
    return status;
}

static tare_status make_activations(const config_row *row, const tare_quantization_options *o,
                                    tare_quantization_config *out, tare_error *err) {
    tare_qspec_fields f = {.dtype = row->act_dtype,
                           .observer = activation_observer(o),
                           .has_quant_min = true,
                           .has_quant_max = true,
                           .quant_min = o->has_act_range ? o->act_min : row->act_min,
                           .quant_max = o->has_act_range  ? o->act_max
                                        : o->reduce_range ? 127
                                                          : row->act_max,
                           .qscheme = TARE_PER_TENSOR_AFFINE,
                           .is_dynamic = o->is_dynamic};
    TARE_TRY(make_spec(&f, &out->input_activation, err));
    if (!o->is_dynamic || row->keeps_output_when_dynamic)
        out->output_activation = tare_qspec_retain(out->input_activation);
    return TARE_OK;
}

static tare_status make_weight(const config_row *row, const tare_quantization_options *o,
                               tare_qspec **out, tare_error *err) {
    const bool is_per_channel = row->is_per_channel || o->is_per_channel;
    tare_qspec_fields f = {.dtype = TARE_INT8,
                           .observer = weight_observer(o->is_qat, is_per_channel),
                           .has_quant_min = true,
                           .has_quant_max = true,
                           .quant_min = o->has_weight_range ? o->weight_min : row->weight_min,
                           .quant_max = o->has_weight_range ? o->weight_max : row->weight_max,
                           .qscheme = is_per_channel ? TARE_PER_CHANNEL_SYMMETRIC
                                                     : TARE_PER_TENSOR_SYMMETRIC,
                           .has_channel_axis = is_per_channel || !row->has_no_axis};
    return make_spec(&f, out, err);
}

// The spec of an embedding's table: a scale and a float zero point for each row.
static tare_status make_embedding(tare_qspec **out, tare_error *err) {
    tare_qspec_fields f = {.dtype = TARE_UINT8,
                           .observer = observer("PerChannelMinMaxObserver", NULL),
                           .qscheme = TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS,
                           .has_channel_axis = true};
    return make_spec(&f, out, err);
}

tare_status tare_quantization_config_default(const char *quantizer,
                                             const tare_quantization_options *options,
                                             tare_quantization_config *out, tare_error *err) {
    const config_row *row = NULL;
    tare_quantization_options o = {0};
    if (options != NULL) tare__struct_copy(&o, sizeof o, options);
    TARE_TRY(find_row(quantizer, &row, err));
    TARE_TRY(check_options(row, &o, err));
    tare_quantization_config made = {.struct_size = sizeof made, .is_qat = o.is_qat};
    tare_status status = TARE_OK;
    if (row->act_dtype != TARE_DTYPE_UNSET) {
        status = make_activations(row, &o, &made, err);
        if (status == TARE_OK) status = make_weight(row, &o, &made.weight, err);
    } else {
        status = make_embedding(&made.weight, err);
    }
    if (status == TARE_OK)
        *out = made;
    else
        tare_quantization_config_release(&made);
    return status;
}
