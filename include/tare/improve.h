// SPDX-License-Identifier: Apache-2.0
/// Improving a quantized model: a ladder of steps, each of which is tried, measured on samples that
/// calibrated nothing, and kept if it gains. Each step is a pass over the prepared model that can
/// be taken alone, and is explained in the record.
#ifndef TARE_IMPROVE_H
#define TARE_IMPROVE_H

#include "tare/calibration.h"
#include "tare/data.h"
#include "tare/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- steps ---

#define TARE_BY_ENTROPY (-1.0)
/// A prepared model, of either flow, whose activations are watched by observers of another class,
/// which have seen nothing: calibrate *out. class_name: "MinMaxObserver", "HistogramObserver" or
/// "tare.MergeableHistogramObserver", with the same dtype, scheme and range. percentile: of the
/// last one, in percent; 0: none; TARE_BY_ENTROPY: its range of least relative entropy. Observers
/// of fixed or dynamic parameters stay. The record has each observer that was replaced (pass
/// "improve", rule "observers"). *count may be NULL; else the number of them. TARE_NOT_FOUND for
/// other classes, TARE_UNSUPPORTED for fake quantizers. The caller destroys *out.
TARE_API tare_status tare_replace_observers(const tare_model *prepared, const char *class_name,
                                            double percentile, size_t *count, tare_model **out,
                                            tare_error *err);
/// A prepared model whose weights of convolutions and linear layers, where they have one scale, get
/// one for each output channel (symmetric int8). Its calibration is kept. Otherwise as
/// tare_replace_observers (rule "per-channel").
TARE_API tare_status tare_weights_per_channel(const tare_model *prepared, size_t *count,
                                              tare_model **out, tare_error *err);

/// A prepared model whose weights are clipped where their squared error is least, per tensor,
/// channel or group as before. Otherwise as tare_weights_per_channel (rule "weight-clipping").
TARE_API tare_status tare_clip_weights(const tare_model *prepared, size_t *count, tare_model **out,
                                       tare_error *err);
/// Cross-layer equalization: channels of values between layers are scaled so that the weights on
/// both sides have equal ranges, wherever the operators between keep scales: ReLU, pools, sums of
/// such values. The float results stay what they are, up to rounding. Observers have seen nothing:
/// calibrate *out (rule "equalization"). *count may be NULL; else the layers that changed. Source:
/// Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction (2019).
TARE_API tare_status tare_equalize_layers(const tare_model *prepared, size_t *count,
                                          tare_model **out, tare_error *err);

/// Rotates output channels of linear layers by Hadamard matrices, and back in the weights of the
/// linear layers that read them, where only data movement, or attention's product with its values,
/// stands between: large channels are spread over the others. The float results stay what they are,
/// up to rounding. Observers have seen nothing: calibrate *out (rule "rotation"). *count may be
/// NULL; else the layers whose outputs were rotated. Source: Ashkboos et al., QuaRot (2024); Liu et
/// al., SpinQuant (2024), its R2.
TARE_API tare_status tare_rotate_layers(const tare_model *prepared, size_t *count, tare_model **out,
                                        tare_error *err);

typedef enum tare_scale_method {
    TARE_SCALE_SMOOTH = 0, // SmoothQuant (Xiao et al., 2022): for what is read
    TARE_SCALE_AWQ = 1,    // AWQ (Lin et al., 2023): for weights of few bits
} tare_scale_method;
/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_scale_options {
    uint32_t struct_size;
    tare_scale_method method;
    int64_t sample_limit; // samples of the data that are looked at; 0: 64
    int thread_count;     // 0: 1
} tare_scale_options;
/// Moves scales of channels from what linear layers read into their weights, by the exponent of
/// least expected error for each value that is read. The inverse goes into the norm in front, or
/// a multiplication in front of the layers. Observers have seen nothing: calibrate *out (rules
/// "smoothing", "awq"). Otherwise as tare_equalize_layers. data: calibration data, read from its
/// beginning.
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
    int64_t sample_limit; // samples of the data that are looked at; 0: 64
    int thread_count;     // 0: 1
} tare_round_options;
/// Rounds the weights of linear layers and convolutions by what these read, so that their results
/// lose least, not the weights themselves. Weights of *out lie on the levels that converting finds
/// again. Rows of more than 2048 weights are left, and by AdaRound large layers; the record says
/// which. Its calibration is kept (rules "gptq", "adaround"). *count may be NULL; else the layers
/// that were rounded. data: calibration data, read from its beginning.
TARE_API tare_status tare_round_weights(const tare_model *prepared, tare_data *data,
                                        const tare_round_options *options, size_t *count,
                                        tare_model **out, tare_error *err);

// --- the ladder ---

/// Makes a model from a prepared, calibrated one with these nodes left float: as it is going to
/// run, or its reference form for tare_analyze. The caller destroys *out.
typedef tare_status (*tare_quantize_prepared)(void *user, const tare_model *prepared,
                                              bool as_reference, const tare_float_choice *choices,
                                              size_t count, tare_model **out, tare_error *err);

/// A step that was tried. Texts are lent for the call.
typedef struct tare_improve_trial {
    uint32_t struct_size;
    const char *step;           // as tare_improve_step_name has it
    const char *what;           // a phrase: the observer, the layers
    double before_db, after_db; // of the outputs on the check's samples
    double before_ms, after_ms; // of a run on one of them; NaN: known from an earlier ladder only
    int64_t before_bytes, after_bytes; // of tensors in the model
    double seconds;                    // that the trial took
    bool is_kept;
    bool is_resumed; // known from state_path, not measured again
    const char *why; // it was not kept, a phrase; "" otherwise
} tare_improve_trial;
typedef tare_status (*tare_improve_watcher)(void *user, const tare_improve_trial *trial,
                                            tare_error *err);
/// Told of each model that is better than all before, lent for the call.
typedef tare_status (*tare_model_watcher)(void *user, const tare_model *model, tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_improve_options {
    uint32_t struct_size;
    double seconds;     // after which no trial begins but that of bias correction; 0: 300
    double target_db;   // at which the ladder ends; 0: none
    double most_slower; // of a run, by leaving layers float, while the outputs have 20 dB: 0.15 for
                        // 15 percent; 0: that
    const char *steps;  // names of steps with ',' between, in the order of trial; NULL: all
    /// A file that every outcome is written to, and from which the ladder goes on: trials that are
    /// in it are not made again. It belongs to a model, its data and its steps. NULL: none.
    const char *state_path;
    int thread_count; // 0: 1
    tare_improve_watcher trials;
    void *trials_user;
    tare_model_watcher better;
    void *better_user;
} tare_improve_options;

typedef struct tare_improve_result {
    uint32_t struct_size;
    double before_db, after_db;
    double before_ms, after_ms;
    size_t trial_count, kept_count, resumed_count;
    bool is_out_of_time; // trials were left
} tare_improve_result;

/// Tries steps on a prepared, calibrated model and returns the best quantized model found, which
/// may be the first. calibration: what it was calibrated with; read again when observers change.
/// check: samples that are in neither. options and result may be NULL; result has its struct_size
/// set. best_prepared: may be NULL, else *best_prepared is the prepared model that *out was made
/// from, or NULL where it is the given one. The caller destroys both.
TARE_API tare_status tare_improve(const tare_model *prepared, tare_data *calibration,
                                  tare_data *check, tare_quantize_prepared quantize, void *user,
                                  const tare_improve_options *options, tare_improve_result *result,
                                  tare_model **best_prepared, tare_model **out, tare_error *err);
/// The index-th step that the ladder knows, in its order, with what it does in a phrase; NULL past
/// the end. Static storage.
TARE_API const char *tare_improve_step_name(size_t index, const char **what);

#ifdef __cplusplus
}
#endif
#endif
