// SPDX-License-Identifier: Apache-2.0
/// Bias correction: subtracts the mean rounding error of each output channel from the layer's bias.
///
/// The error of a quantized layer is not centred: with few weights per output channel its mean over
/// data is not zero, and later layers see the shift. Layers are corrected one after the other, each
/// on the outputs of the quantized network in which all earlier layers are corrected:
///
///   bias'[c] = bias[c] + mean(float output[c]) - mean(quantized output[c])
///
/// over samples and positions, before the activation. Source: Nagel et al., Data-Free Quantization
/// Through Weight Equalization and Bias Correction (2019), section 4.2 and appendix D, on data.
#ifndef TARE_BIAS_CORRECTION_H
#define TARE_BIAS_CORRECTION_H

#include "tare/calibration.h"
#include "tare/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The correction of one layer's bias. The name is lent for the call.
typedef struct tare_corrected_bias {
    uint32_t struct_size;
    const char *node; // of the prepared model
    int64_t channel_count;
    double largest_shift, rms_shift; // of the change, over the channels
    bool is_new;                     // the layer had no bias
} tare_corrected_bias;
/// Receives the correction of one layer, lent for the call. A failure ends the work.
typedef tare_status (*tare_bias_watcher)(void *user, const tare_corrected_bias *bias,
                                         tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_bias_correction_options {
    uint32_t struct_size;
    /// The largest number of samples to correct with; 0: 32. A model with a fixed batch size uses
    /// whole batches. Memory holds the values between two layers for all these samples.
    int64_t sample_limit;
    int thread_count;          // including the caller; 0: 1
    tare_bias_watcher watcher; // called for each corrected layer, in order; NULL: none
    void *watcher_user;
    tare_progress progress; // called for samples in float, then for layers; NULL: none
    void *progress_user;
    /// Time limit in seconds; 0: none. By the time that the first samples take in float, fewer
    /// samples are used, or no layer is corrected; layers for which no time is left stay as they
    /// are. The result then depends on the clock.
    double seconds;
} tare_bias_correction_options;

/// What tare_correct_biases did.
typedef struct tare_bias_correction_result {
    uint32_t struct_size;
    int64_t sample_count; // samples used; 0: there was no time, or no layer to correct
    size_t layer_count;   // corrected layers
    size_t skipped_count; // quantized layers not corrected; the record says why
} tare_bias_correction_result;

/// Makes the reference form of a prepared model with the options under which it is going to be
/// converted. tare_correct_biases destroys *out.
typedef tare_status (*tare_quantize_reference)(void *user, const tare_model *prepared,
                                               tare_model **out, tare_error *err);

/// Corrects the biases of a calibrated prepared model of either flow; converting *out gives the
/// corrected network. `prepared` is not changed. The corrected layers are the convolutions,
/// transposed convolutions and linear layers with a quantized weight, as modules or functions; a
/// layer without a bias gets one. Layers that are called more than once, that share or compute
/// their bias, and those in subgraphs of control flow stay as they are. The record has every layer
/// (pass "correct biases").
///
/// Where samples are independent (see tare_calibrate_data) each runs by itself on one thread, and
/// sums are taken in double in the order of the samples, so the bits do not depend on the number of
/// threads or the batch size. options may be NULL. result may be NULL; the library sets its
/// struct_size. The caller destroys *out.
///
/// TARE_INVALID_ARGUMENT for data without samples, for observers that have seen none, and for
/// models in training mode. TARE_UNSUPPORTED for models with fake quantizers, because training has
/// corrected their biases, and with input-weight equalization, which changes the units of outputs.
TARE_API tare_status tare_correct_biases(const tare_model *prepared, tare_data *data,
                                         tare_quantize_reference quantize, void *user,
                                         const tare_bias_correction_options *options,
                                         tare_bias_correction_result *result, tare_model **out,
                                         tare_error *err);
/// As tare_correct_biases, for models of tare_prepare_fx: tare_convert_to_reference_fx with the
/// options `convert` (may be NULL) makes the reference form.
TARE_API tare_status tare_correct_biases_fx(const tare_model *prepared, tare_data *data,
                                            const tare_convert_options *convert,
                                            const tare_bias_correction_options *options,
                                            tare_bias_correction_result *result, tare_model **out,
                                            tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
