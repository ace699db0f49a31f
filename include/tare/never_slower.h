// SPDX-License-Identifier: Apache-2.0
/// Never slower: leaves those layers float that are slower in integers on this machine, by measured
/// times or by predicted ones. The choice becomes part of the model, which then computes the same
/// on every machine. The record explains it.
#ifndef TARE_NEVER_SLOWER_H
#define TARE_NEVER_SLOWER_H

#include "tare/calibration.h"
#include "tare/machine.h"
#include "tare/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_never_slower_options {
    uint32_t struct_size;
    /// The inputs of the timed runs: one tensor per model input. The choice holds for their shapes
    /// and batch size. NULL: one sample of random numbers, where the model says its shape.
    const tare_tensor *const *inputs;
    size_t input_count;
    int thread_count;       // of the sessions; 0: 1
    double seconds;         // of each comparison, of which there are up to six; 0: 1
    tare_progress progress; // called for each comparison; NULL: none
    void *progress_user;
    /// Predicts times instead of measuring them: from the plans, and from the machine's peaks.
    /// Nothing runs, and the same peaks, build and instruction set give the same model. Predicted
    /// times of products and of conversions are within 15 % of measured ones for about half of the
    /// layers; those of depthwise layers, copies and pools may differ by a factor of two.
    bool predicts;
    /// With `predicts`: the peaks; those on integers, floats and the L2 cache are used. NULL: they
    /// are measured, which takes about 0.05 s.
    const tare_machine_peak *machine;
} tare_never_slower_options;

/// The outcome. Times are medians of whole runs in nanoseconds, from one comparison; predicted
/// times are sums over the steps.
typedef struct tare_never_slower_result {
    uint32_t struct_size;
    /// A layer is a group of operators that one step computes together, such as a convolution with
    /// its activation.
    size_t layer_count; // layers that can be computed in integers
    size_t float_count; // of those, left float
    /// Layers kept in integers although they are slower than in float: leaving them float would
    /// cost more in conversions between them and their neighbours.
    size_t kept_count;
    uint64_t float_ns, integer_ns, chosen_ns; // of the float model, the integer model, and *out
} tare_never_slower_result;

/// Makes the quantized model from the same calibration, with these nodes of the prepared model left
/// float. tare_never_slower destroys *out.
typedef tare_status (*tare_quantize_without)(void *user, const tare_float_choice *choices,
                                             size_t count, tare_model **out, tare_error *err);

/// Chooses by time which layers stay float. Runs of the quantized and the float model alternate,
/// and each layer is timed in both, including conversions between float and integers. The choice is
/// a minimum cut and minimizes the sum of the measured times: no layer and no group of neighbours
/// would gain from the other form. The model is then made and measured again, until the choice is
/// stable, at most four times. A choice that does not make the whole model faster is undone. The
/// record has the times of each layer (pass "measure"). With predicted times it has those of the
/// layers left float (rule "cost model"), and a model without a plan, whose input shapes are
/// unknown, or of which nothing is in integers, is quantized without a choice: result->layer_count
/// is 0. prepared: calibrated, of either flow. options may be NULL. result may be NULL; the library
/// sets its struct_size. TARE_UNSUPPORTED if sessions make no plan for the model whose times are
/// measured. TARE_INVALID_ARGUMENT for peaks that are not positive. The caller destroys *out.
TARE_API tare_status tare_never_slower(const tare_model *prepared, tare_quantize_without quantize,
                                       void *user, const tare_never_slower_options *options,
                                       tare_never_slower_result *result, tare_model **out,
                                       tare_error *err);
/// As tare_never_slower, with tare_convert_fx as `quantize`. convert: its options, which may be
/// NULL and must not choose float nodes themselves.
TARE_API tare_status tare_convert_never_slower_fx(const tare_model *prepared,
                                                  const tare_convert_options *convert,
                                                  const tare_never_slower_options *options,
                                                  tare_never_slower_result *result,
                                                  tare_model **out, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
