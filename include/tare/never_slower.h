// SPDX-License-Identifier: Apache-2.0
/// Never slower: layers that integers make slower on this machine stay float, and the record says
/// so. The choice becomes part of the model, which then computes the same on every machine.
#ifndef TARE_NEVER_SLOWER_H
#define TARE_NEVER_SLOWER_H

#include "tare/calibration.h"
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
    double seconds;         // of each comparison, of which there are up to eight; 0: 1
    tare_progress progress; // told the comparisons; NULL: nobody is
    void *progress_user;
} tare_never_slower_options;

/// What came of it. Times are medians of whole runs in nanoseconds, from one comparison.
typedef struct tare_never_slower_result {
    uint32_t struct_size;
    /// Layers: operators that one step computes together, as a convolution with its activation.
    size_t layer_count; // that can be computed in integers
    size_t float_count; // of those, left float
    /// Layers kept in integers although they are slower than in float: leaving them float would
    /// cost more in conversions between them and their neighbours.
    size_t kept_count;
    uint64_t float_ns, integer_ns, chosen_ns; // all in float; all in integers; as it was chosen
} tare_never_slower_result;

/// Makes the quantized model with these nodes of the prepared one left float, from the same
/// calibration. The caller destroys *out.
typedef tare_status (*tare_quantize_without)(void *user, const tare_float_choice *choices,
                                             size_t count, tare_model **out, tare_error *err);

/// Chooses the layers to leave float, by time. Each layer of the quantized model is timed against
/// the same layer in float, alternating, conversions between float and integer included. The choice
/// minimizes the sum of the measured times: it is a minimum cut, so neither a layer nor any group
/// of neighbours gains by changing sides. The model is then made again and measured again until
/// nothing changes. A choice that does not make the whole model faster is undone. The record has
/// the times of each layer (pass "measure"). prepared: of either flow, calibrated. options may be
/// NULL. result: may be NULL, otherwise with struct_size set. TARE_UNSUPPORTED where sessions have
/// no plan of the model. The caller destroys *out.
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
