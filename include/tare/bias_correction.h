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
    double largest_shift, rms_shift; // of what was added, over the channels
    bool is_new;                     // the layer had no bias
} tare_corrected_bias;
typedef tare_status (*tare_bias_watcher)(void *user, const tare_corrected_bias *bias,
                                         tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_bias_correction_options {
    uint32_t struct_size;
    /// The largest number of samples to correct with; 0: 32. Models that take one batch size only
    /// use whole batches. The values between two layers are in memory for all samples at once.
    int64_t sample_limit;
    int thread_count;          // at work, the caller among them; 0: 1
    tare_bias_watcher watcher; // told each corrected layer, in order; NULL: nobody is
    void *watcher_user;
    tare_progress progress; // told samples in float, then layers; NULL: nobody is
    void *progress_user;
} tare_bias_correction_options;

typedef struct tare_bias_correction_result {
    uint32_t struct_size;
    int64_t sample_count; // that it was corrected with
    size_t layer_count;   // that were corrected
    size_t skipped_count; // quantized layers that could not be; the record says why
} tare_bias_correction_result;

/// Makes the reference form of a prepared model, as it is going to be quantized. The caller
/// destroys *out.
typedef tare_status (*tare_quantize_reference)(void *user, const tare_model *prepared,
                                               tare_model **out, tare_error *err);

/// A prepared model, of either flow and calibrated, with corrected biases: converting *out gives
/// the corrected network. Layers: convolutions, transposed ones, and linear layers, as modules or
/// as functions, whose weight is quantized; those without a bias get one. Left as they are: layers
/// that are called more than once, or share their bias or compute it, and those inside of graphs
/// within the graph. The record has every layer (pass "correct biases").
///
/// Where samples are independent (as of tare_calibrate_data) each runs by itself, on one thread,
/// and sums are double, in the order of the samples: the same bits for any number of threads and
/// any cut into batches. result: may be NULL, else its struct_size is set; options: may be NULL.
///
/// TARE_INVALID_ARGUMENT for data without samples, observers that have seen none, and models in
/// training mode; TARE_UNSUPPORTED for fake quantizers, whose training has corrected the biases,
/// and for input-weight equalization, which changes the units of outputs.
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
