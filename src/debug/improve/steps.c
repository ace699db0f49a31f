// SPDX-License-Identifier: Apache-2.0
// The steps of the ladder; each makes new prepared models from the best one's.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/system/clock.h"
#include "debug/improve/ladder.h"
#include "debug/improve/observers.h"
#include "flow/calibrate/range_histograms.h"
#include "runtime/tune/bias_correction.h"
#include "tare/bias_correction.h"

// Of the time left, what a step may take that is long on large data: later steps gain more.
#define LONG_SHARE (1.0 / 3)

// A step that is refused does not apply to the model.
static bool is_refused(tare_status status) {
    return status == TARE_UNSUPPORTED || status == TARE_INVALID_ARGUMENT;
}

static bool has_time(ladder *l, bool needs_data) {
    if (tare__ladder_is_over(l)) return false;
    if (tare__ladder_seconds_for(l, needs_data) > 0) return true;
    l->result.is_out_of_time = true;
    return false;
}

tare_status tare__ladder_try_made(ladder *l, const ladder_step *step, const char *what,
                                  prepared_maker make, int choice, bool needs_data) {
    tare_model *made = NULL;
    size_t count = 0;
    bool is_known = false;
    if (!step->is_last_word && !has_time(l, needs_data)) return TARE_OK;
    if (step->is_last_word && !(tare__ladder_seconds_for_last(l) > 0)) {
        l->result.is_out_of_time = true;
        return TARE_OK;
    }
    TARE_TRY(tare__ladder_knows_useless(l, step, what, &is_known));
    if (is_known) return TARE_OK;
    l->trial_begin_ns = tare__job_now_ns();
    const tare_status status = make(l, choice, &count, &made);
    if (status != TARE_OK || count == 0) l->trial_begin_ns = 0;
    if (is_refused(status)) return TARE_OK;
    TARE_TRY(status);
    if (count > 0) return tare__ladder_try_prepared(l, step, what, made, needs_data);
    tare_model_destroy(made);
    return TARE_OK;
}

// --- observers ---

static const struct {
    const char *class_name;
    double percentile;
    const char *what;
} observer_choices[] = {{"tare.MergeableHistogramObserver", 0, "least squared error"},
                        {"tare.MergeableHistogramObserver", 99.99, "percentile 99.99"},
                        {"tare.MergeableHistogramObserver", 99.9, "percentile 99.9"},
                        {"tare.MergeableHistogramObserver", TARE_BY_ENTROPY, "entropy"},
                        {"MinMaxObserver", 0, "minimum and maximum"},
                        {"HistogramObserver", 0, "torch's histogram"}};

// Where the calibration counted histograms, they give all choices but torch's.
static bool needs_calibration(const ladder *l, int choice) {
    return !tare__observers_can_hand_over(l->best.prepared, observer_choices[choice].class_name);
}

static tare_status make_observers(ladder *l, int choice, size_t *count, tare_model **out) {
    const char *class_name = observer_choices[choice].class_name;
    const double percentile = observer_choices[choice].percentile;
    return needs_calibration(l, choice) ? tare_replace_observers(l->best.prepared, class_name,
                                                                 percentile, count, out, l->err)
                                        : tare__hand_over_observers(l->best.prepared, class_name,
                                                                    percentile, count, out, l->err);
}

// Does the choice stand for observers of this class as they are?
static bool is_choice(int choice, const tare_observer_class *class) {
    const char *name = observer_choices[choice].class_name;
    return class != NULL && strcmp(class->name, name) == 0 &&
           strcmp(name, "tare.MergeableHistogramObserver") != 0;
}

static tare_status step_observers(ladder *l, const ladder_step *self) {
    const double left = tare__ladder_seconds_for(l, needs_calibration(l, 0));
    const double end = tare__ladder_seconds(l) + left * LONG_SHARE;
    const tare_observer_class *first = tare__range_class(l->best.prepared);
    for (int i = 0; i < (int)(sizeof observer_choices / sizeof *observer_choices); i++) {
        if (is_choice(i, first)) continue; // the step began with it
        if (i > 0 && tare__ladder_seconds(l) > end) {
            l->result.is_out_of_time = true;
            return TARE_OK;
        }
        TARE_TRY(tare__ladder_try_made(l, self, observer_choices[i].what, make_observers, i,
                                       needs_calibration(l, i)));
    }
    return TARE_OK;
}

// --- weights ---

static tare_status make_per_channel(ladder *l, int choice, size_t *count, tare_model **out) {
    (void)choice;
    return tare_weights_per_channel(l->best.prepared, count, out, l->err);
}

static tare_status step_per_channel(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "weights", make_per_channel, 0, false);
}

static tare_status make_clipped(ladder *l, int choice, size_t *count, tare_model **out) {
    (void)choice;
    return tare_clip_weights(l->best.prepared, count, out, l->err);
}

static tare_status step_clipping(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "weights", make_clipped, 0, false);
}

static tare_status make_equalized(ladder *l, int choice, size_t *count, tare_model **out) {
    (void)choice;
    return tare_equalize_layers(l->best.prepared, count, out, l->err);
}

static tare_status step_equalization(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "layers", make_equalized, 0, true);
}

static tare_status make_rotated(ladder *l, int choice, size_t *count, tare_model **out) {
    (void)choice;
    return tare_rotate_layers(l->best.prepared, count, out, l->err);
}

static tare_status step_rotation(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "linear layers", make_rotated, 0, true);
}

static tare_status make_scaled(ladder *l, int choice, size_t *count, tare_model **out) {
    const tare_scale_options options = {.struct_size = sizeof options,
                                        .method = (tare_scale_method)choice,
                                        .thread_count = l->options.thread_count,
                                        .seconds = tare__ladder_seconds_for(l, true) * LONG_SHARE};
    return tare_scale_inputs(l->best.prepared, l->calibration, &options, count, out, l->err);
}

static tare_status step_smoothing(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "linear layers", make_scaled, TARE_SCALE_SMOOTH, true);
}

static tare_status step_awq(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "linear layers", make_scaled, TARE_SCALE_AWQ, true);
}

static tare_status make_rounded(ladder *l, int choice, size_t *count, tare_model **out) {
    const tare_round_options options = {.struct_size = sizeof options,
                                        .method = (tare_round_method)choice,
                                        .thread_count = l->options.thread_count,
                                        .seconds = tare__ladder_seconds_for(l, false)};
    return tare_round_weights(l->best.prepared, l->calibration, &options, count, out, l->err);
}

static tare_status step_gptq(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "weights", make_rounded, TARE_ROUND_GPTQ, false);
}

static tare_status step_adaround(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "weights", make_rounded, TARE_ROUND_ADAROUND, false);
}

// --- biases ---

static tare_status quantize_reference(void *user, const tare_model *prepared, tare_model **out,
                                      tare_error *err) {
    const ladder *l = user;
    recipe r = l->best;
    (void)err;                           // that of the ladder is used
    r.prepared = (tare_model *)prepared; // NOLINT: only read
    return tare__ladder_make(l, &r, true, out);
}

static tare_status make_corrected(ladder *l, int choice, size_t *count, tare_model **out) {
    tare_bias_correction_result result = {.struct_size = sizeof result};
    // The mean of a channel over positions needs few samples.
    const tare_bias_correction_options options = {.struct_size = sizeof options,
                                                  .sample_limit = CORRECTION_SAMPLES,
                                                  .thread_count = l->options.thread_count,
                                                  .seconds =
                                                      fmax(tare__ladder_seconds_for_last(l), 1e-9)};
    (void)choice;
    TARE_TRY(tare_data_rewind(l->calibration, l->err));
    TARE_TRY(tare_correct_biases(l->best.prepared, l->calibration, quantize_reference,
                                 (ladder *)l, // NOLINT: only read
                                 &options, &result, out, l->err));
    *count = result.layer_count;
    if (*count == 0 && tare__bias_correction_is_late(l->best.prepared, *out))
        l->result.is_out_of_time = true;
    return TARE_OK;
}

static tare_status step_bias_correction(ladder *l, const ladder_step *self) {
    return tare__ladder_try_made(l, self, "biases", make_corrected, 0, false);
}

// --- all ---

const ladder_step *tare__ladder_step_at(size_t index) {
    static const ladder_step steps[] = {
        {"per-channel", "a scale for each output channel of weights", step_per_channel},
        {"equalization", "equal ranges of channels across layers", step_equalization},
        {"smoothing", "scales of channels moved from what linear layers read into weights",
         step_smoothing, .may_slow = true},
        {"rotation", "channels between linear layers rotated, and back", step_rotation},
        {"observers", "least error, percentiles, entropy, minimum and maximum, torch's histogram",
         step_observers, .chooses_ranges = true},
        {"dynamic",
         "what linear layers read quantized in each run, by row where the backend allows",
         tare__step_dynamic, .may_slow = true},
        {"precision",
         "float or more bits for the layers that gain most by it, within limits of time and bytes",
         tare__step_precision, .may_slow = true, .chooses_speed = true},
        {"awq", "weights of large inputs rounded more finely", step_awq, .may_slow = true},
        {"weight-clipping", "ranges of weights by squared error", step_clipping},
        {"gptq", "rounding of weights that makes good what other columns lose", step_gptq},
        {"adaround", "weights rounded up or down by what outputs lose; small layers",
         step_adaround},
        {"bias-correction", "subtract the mean rounding error from biases", step_bias_correction,
         .is_last_word = true},
    };
    return index < sizeof steps / sizeof *steps ? &steps[index] : NULL;
}
