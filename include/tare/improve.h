// SPDX-License-Identifier: Apache-2.0
/// Improving a quantized model. tare_improve tries steps one after the other, measures each on
/// samples that were not used for calibration, and keeps it if the outputs improve. Each step is a
/// pass over the prepared model that can also be called alone. The record explains it.
#ifndef TARE_IMPROVE_H
#define TARE_IMPROVE_H

#include "tare/calibration.h"
#include "tare/data.h"
#include "tare/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- steps ---

/// As `percentile` of tare_replace_observers: the range of least relative entropy.
#define TARE_BY_ENTROPY (-1.0)
/// Replaces the observers of activations in a prepared model of either flow by those of another
/// class, with the same dtype, scheme and range; observers with fixed or dynamic parameters stay.
/// `prepared` is not changed. The new observers have seen no data: calibrate *out. class_name:
/// "MinMaxObserver", "HistogramObserver" or "tare.MergeableHistogramObserver". percentile: of the
/// last class only, in percent; 0: none; TARE_BY_ENTROPY. The record has each replaced observer
/// (pass "improve", rule "observers"). count may be NULL; otherwise *count becomes their number.
/// TARE_NOT_FOUND for other classes, TARE_UNSUPPORTED for fake quantizers. The caller destroys
/// *out.
TARE_API tare_status tare_replace_observers(const tare_model *prepared, const char *class_name,
                                            double percentile, size_t *count, tare_model **out,
                                            tare_error *err);
/// Gives the weights of convolutions and linear layers that have a single scale one scale per
/// output channel (symmetric int8). The calibration is kept. Otherwise as tare_replace_observers
/// (rule "per-channel"); *count becomes the number of changed weights.
TARE_API tare_status tare_weights_per_channel(const tare_model *prepared, size_t *count,
                                              tare_model **out, tare_error *err);

/// Clips weights to the range with the least squared error, per tensor, channel or group as their
/// scheme is. Otherwise as tare_weights_per_channel (rule "weight-clipping").
TARE_API tare_status tare_clip_weights(const tare_model *prepared, size_t *count, tare_model **out,
                                       tare_error *err);
/// Gives weights of at most 4 bits in groups 8 bits, in the same groups, for these nodes of the
/// prepared model (NULL: all). Otherwise as tare_weights_per_channel (rule "precision").
TARE_API tare_status tare_widen_weights(const tare_model *prepared, const char *const *nodes,
                                        size_t node_count, size_t *count, tare_model **out,
                                        tare_error *err);
/// Cross-layer equalization: scales the channels of values between layers so that the weights on
/// both sides have equal ranges, wherever the operators in between commute with scaling (ReLU,
/// pools, sums). Float results stay the same up to rounding. Observers lose their statistics:
/// calibrate *out (rule "equalization"). count may be NULL; otherwise *count becomes the number of
/// changed layers. Otherwise as tare_replace_observers. Source: Nagel et al., Data-Free
/// Quantization Through Weight Equalization and Bias Correction (2019).
TARE_API tare_status tare_equalize_layers(const tare_model *prepared, size_t *count,
                                          tare_model **out, tare_error *err);

/// Rotates the output channels of linear layers by Hadamard matrices, and back in the weights of
/// the linear layers that read them. This spreads outlier channels over the others. Between the two
/// layers only data movement, or attention's product with its values, is allowed. Otherwise as
/// tare_equalize_layers (rule "rotation"); *count becomes the number of layers whose outputs were
/// rotated. Source: Ashkboos et al., QuaRot (2024); Liu et al., SpinQuant (2024), its R2.
TARE_API tare_status tare_rotate_layers(const tare_model *prepared, size_t *count, tare_model **out,
                                        tare_error *err);

typedef enum tare_scale_method {
    TARE_SCALE_SMOOTH = 0, // SmoothQuant (Xiao et al., 2022): for quantized activations
    TARE_SCALE_AWQ = 1,    // AWQ (Lin et al., 2023): for weights of few bits
} tare_scale_method;
/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_scale_options {
    uint32_t struct_size;
    tare_scale_method method;
    int64_t sample_limit; // samples of the data to use; 0: 64
    int thread_count;     // 0: 1
    double seconds;       // after which further layers stay as they are; 0: no limit
} tare_scale_options;
/// Scales the input channels of linear layers down and their weights up by the same factors, with
/// the exponent of least expected error for each input value. The inverse factors go into the norm
/// in front of the layers, or into a new multiplication. Otherwise as tare_equalize_layers (rules
/// "smoothing", "awq"). data: calibration data, read from its beginning.
TARE_API tare_status tare_scale_inputs(const tare_model *prepared, tare_data *data,
                                       const tare_scale_options *options, size_t *count,
                                       tare_model **out, tare_error *err);

typedef enum tare_round_method {
    TARE_ROUND_GPTQ = 0,     // Frantar et al., 2022
    TARE_ROUND_ADAROUND = 1, // Nagel et al., 2020
} tare_round_method;
/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_round_options {
    uint32_t struct_size;
    tare_round_method method;
    int64_t sample_limit; // samples of the data to use; 0: 64
    int thread_count;     // 0: 1
    double seconds;       // after which further layers stay as they are; 0: no limit
} tare_round_options;
/// Rounds the weights of linear layers and convolutions so that the error of the layers' results on
/// the data is least, instead of the error of the weights. The weights of *out lie on quantization
/// levels, which converting keeps. Layers with more than 2048 weights per output channel are left
/// as they are, and by AdaRound large layers, too; the record says which. The calibration is kept
/// (rules "gptq", "adaround"). Otherwise as tare_equalize_layers; *count becomes the number of
/// rounded layers. data: calibration data, read from its beginning.
TARE_API tare_status tare_round_weights(const tare_model *prepared, tare_data *data,
                                        const tare_round_options *options, size_t *count,
                                        tare_model **out, tare_error *err);

typedef enum tare_dynamic_form {
    TARE_DYNAMIC_ROWS = 0,    // a scale for each row (token), symmetric int8
    TARE_DYNAMIC_TENSORS = 1, // a scale and zero point for all of an input, uint8
} tare_dynamic_form;
/// Has the inputs of linear modules with 8-bit weights quantized in each run, by the range that
/// they have then, instead of by that of the calibration. Their results are floats. For models of
/// FX mode. nodes: the layers (NULL: all). The calibration is kept. Converting leaves layers float
/// that the backend does not take in this form. Otherwise as tare_weights_per_channel (rule
/// "dynamic"); *count becomes the number of changed layers.
TARE_API tare_status tare_quantize_dynamically(const tare_model *prepared, tare_dynamic_form form,
                                               const char *const *nodes, size_t node_count,
                                               size_t *count, tare_model **out, tare_error *err);

// --- trying the steps ---

/// Converts a calibrated prepared model with these nodes left float: to the model that is going to
/// run, or (as_reference) to the reference form that tare_analyze takes. tare_improve destroys
/// *out.
typedef tare_status (*tare_quantize_prepared)(void *user, const tare_model *prepared,
                                              bool as_reference, const tare_float_choice *choices,
                                              size_t count, tare_model **out, tare_error *err);

/// Why a trial was not kept.
typedef enum tare_improve_refusal {
    TARE_REFUSED_NOT = 0,         // it was kept
    TARE_REFUSED_NO_GAIN = 1,     // the outputs do not improve enough
    TARE_REFUSED_FEW_SAMPLES = 2, // they improve over all samples, but not on average of a sample
    TARE_REFUSED_TOO_SLOW = 3,    // more than `most_slower` allows
    TARE_REFUSED_TOO_LARGE = 4,   // more than `most_larger` allows
} tare_improve_refusal;

/// The outcome of one trial of a step. Strings are lent for the call.
typedef struct tare_improve_trial {
    uint32_t struct_size;
    const char *step;           // a name of tare_improve_step_name
    const char *what;           // a phrase: the observer or the layers
    double before_db, after_db; // SQNR of the outputs on the check samples
    double before_ms, after_ms; // of a run on one sample; NaN: measured by an earlier call only
    int64_t before_bytes, after_bytes; // of the model's tensors
    double seconds;                    // the trial's duration
    bool is_kept;
    bool is_resumed;              // read from state_path, not measured again
    const char *why;              // a phrase, why it was not kept; "" if it was
    tare_improve_refusal refusal; // the same for programs
} tare_improve_trial;
/// Receives each trial. A failure ends the work.
typedef tare_status (*tare_improve_watcher)(void *user, const tare_improve_trial *trial,
                                            tare_error *err);
/// Receives each model that is better than all before it, lent for the call. A failure ends the
/// work.
typedef tare_status (*tare_model_watcher)(void *user, const tare_model *model, tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_improve_options {
    uint32_t struct_size;
    /// Time limit; 0: 300. A step begins only if there is time for it, by what earlier ones took;
    /// long ones are cut short. Time for bias correction, which comes last, is set aside, and a
    /// third of it for `precision`, which finds the fast models; both run even if it is over.
    double seconds;
    double target_db; // no further trial once the outputs have this SQNR; 0: none
    /// The largest slowdown of a run that a step may cost, as a fraction of the first model's time,
    /// or, where some layers are faster in float, of that of the fastest choice for each. Steps get
    /// 95 % of it, as times have errors. 0: 0.1, but 1 if the outputs of all models within
    /// it have less than 5 dB: such a model is of no use, however fast.
    double most_slower;
    const char *steps; // names of steps, separated by ',', in the order of trial; NULL: all
    /// A file that keeps every outcome. If it exists, the trials in it are not made again. It is
    /// valid for one model, its data and its steps. NULL: none.
    const char *state_path;
    int thread_count; // 0: 1
    tare_improve_watcher trials;
    void *trials_user;
    tare_model_watcher better;
    void *better_user;
    /// The largest growth of the model's tensors that a step may cost, as a fraction of the first
    /// model's bytes; 0: 0.25, but of those of the fastest choice for each layer if that takes
    /// more, and 1 if the outputs of all models within the limits have less than 5 dB.
    double most_larger;
    /// The float model as it was given, whose outputs models are measured by. NULL: `prepared`, in
    /// floats.
    const tare_model *exact;
} tare_improve_options;

typedef struct tare_improve_result {
    uint32_t struct_size;
    double before_db, after_db;
    double before_ms, after_ms;
    size_t trial_count, kept_count, resumed_count;
    bool is_out_of_time; // the time limit ended the work before all trials
} tare_improve_result;

/// Tries steps on a calibrated prepared model and returns the best quantized model found, which may
/// be that without any step. calibration: the data that `prepared` was calibrated with; it is read
/// again when a step changes observers. check: other samples, on which models are measured. options
/// may be NULL. result may be NULL; the library sets its struct_size. best_prepared may be NULL;
/// otherwise *best_prepared becomes the prepared model from which *out was made, or NULL if that is
/// `prepared`. The caller destroys both. A step that cannot be applied to the model is skipped;
/// other errors end the work.
TARE_API tare_status tare_improve(const tare_model *prepared, tare_data *calibration,
                                  tare_data *check, tare_quantize_prepared quantize, void *user,
                                  const tare_improve_options *options, tare_improve_result *result,
                                  tare_model **best_prepared, tare_model **out, tare_error *err);
/// The name of the index-th step, in the order of trial; NULL past the end. *what becomes a phrase
/// that says what the step does. Static storage.
TARE_API const char *tare_improve_step_name(size_t index, const char **what);

#ifdef __cplusplus
}
#endif
#endif
