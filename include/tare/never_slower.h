// SPDX-License-Identifier: Apache-2.0
/// Never slower: what loses time in integers on the machine at hand stays float, and the model says
/// so. A model that was made so computes the same everywhere: what was chosen is part of it.
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
    /// What the models run on while they are timed: one tensor per model input. Their shapes, the
    /// batch among them, are those for which it is decided. NULL: one sample of random numbers,
    /// where the model says their shape.
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
    /// Of those in integers, slower than in float by themselves; leaving them float too would cost
    /// more for the conversions of what their neighbours give and take.
    size_t kept_count;
    uint64_t float_ns, integer_ns, chosen_ns; // all in float; all in integers; as it was chosen
} tare_never_slower_result;

/// Makes the quantized model with these nodes of the prepared one left float, from the same
/// calibration. The caller destroys *out.
typedef tare_status (*tare_quantize_without)(void *user, const tare_float_choice *choices,
                                             size_t count, tare_model **out, tare_error *err);

/// Times every layer of the quantized model, conversions between floats and integers included,
/// against the same layer in float, in turns; chooses the layers to leave float so that the sum of
/// what was measured is least (a minimum cut: neither a layer nor any group of neighbours would
/// gain by changing sides), makes the model anew, and measures again until nothing changes. A
/// choice that does not make the whole faster is taken back. The record has the times of each layer
/// (pass "measure"). prepared: of either flow, calibrated. result: may be NULL, else its
/// struct_size is set. TARE_UNSUPPORTED where sessions have no plan of the model.
TARE_API tare_status tare_never_slower(const tare_model *prepared, tare_quantize_without quantize,
                                       void *user, const tare_never_slower_options *options,
                                       tare_never_slower_result *result, tare_model **out,
                                       tare_error *err);
/// tare_convert_fx so. `convert` must not have choices of its own.
TARE_API tare_status tare_convert_never_slower_fx(const tare_model *prepared,
                                                  const tare_convert_options *convert,
                                                  const tare_never_slower_options *options,
                                                  tare_never_slower_result *result,
                                                  tare_model **out, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
