// SPDX-License-Identifier: Apache-2.0
/// Accuracy: measures how far a quantized model is from its float model and how much each layer
/// contributes, and names causes and remedies. The analysis runs the reference form of a model, in
/// which each layer can be computed in float or quantized; no layer is converted again for a test.
#ifndef TARE_ANALYZE_H
#define TARE_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/calibration.h"
#include "tare/data.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Receives the outputs of both models for one batch: [count] float32 tensors each, in the order of
/// the model's outputs, lent for the call. It serves metrics of the caller's own. A failure ends
/// the analysis, which returns it.
typedef tare_status (*tare_prediction_watcher)(void *user, const tare_tensor *const *floats,
                                               const tare_tensor *const *quantized, size_t count,
                                               const tare_batch *batch, tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_analyze_options {
    uint32_t struct_size;
    /// The model that is going to run, made from the same prepared model: the verdict compares its
    /// outputs with the float ones. NULL: the outputs of the reference form, computed as it is
    /// written.
    const tare_model *quantized;
    /// Measures only the verdict and the error of each layer by itself, which takes a few runs.
    bool is_brief;
    int64_t sample_limit; // 0: 32
    /// Time limit in seconds; 0: 60. It bounds the tests of single layers, which run on the first
    /// batch, start with the worst layer and test at least one. With is_brief it bounds the whole
    /// analysis: the verdict covers at least one batch and more while time is left; layers for
    /// which no time is left have a local_db of NaN. Where the first batch's verdict is below 10
    /// dB, every layer is measured all the same.
    double seconds;
    /// Bytes of memory, and of disk in the folder for temporary files (TMPDIR, else /tmp), for
    /// intermediate values; 0: 256 MiB and 4 GiB. Values that fit in neither are computed again.
    /// The layers' float values of the current batch are always kept.
    uint64_t memory_bytes, disk_bytes;
    int thread_count;                    // 0: 1
    tare_prediction_watcher predictions; // NULL: none is called
    void *predictions_user;
    tare_progress progress; // called for samples, then for layers; NULL: none
    void *progress_user;
    /// The model whose float outputs the verdict compares with: the float model as it was given, so
    /// that the verdict covers what fusing and preparing changed, too; or, where that is not at
    /// hand and steps of tare_improve have changed the float weights of `reference`, the reference
    /// form made from the prepared model before these steps. NULL: `reference`.
    const tare_model *exact;
} tare_analyze_options;

typedef struct tare_analysis tare_analysis;

/// Runs `data` through the reference form of a model, in float and with different layers quantized.
/// reference: the result of tare_convert_to_reference_fx, or of tare_convert_pt2e with
/// keeps_quantize (which keeps the float weights); it is not changed and must outlive *out. options
/// may be NULL. TARE_INVALID_ARGUMENT for models of another stage and for data without samples. The
/// caller destroys *out.
TARE_API tare_status tare_analyze(const tare_model *reference, tare_data *data,
                                  const tare_analyze_options *options, tare_analysis **out,
                                  tare_error *err);
/// Frees an analysis. NULL is allowed.
TARE_API void tare_analysis_destroy(tare_analysis *analysis);

/// The distance between the model's outputs and the float model's, over all samples and outputs.
typedef struct tare_verdict {
    uint32_t struct_size;
    int64_t sample_count;
    double sqnr_db;       // 10 log10(sum y^2 / sum (y - x)^2), y the float outputs; may be infinite
    double cosine;        // between a sample's outputs x and y; the mean over samples
    double max_abs_error; // infinite where an output is not finite
    bool has_classes;     // the first output is [samples][classes]
    bool has_labels;      // and the data has labels
    int64_t agreeing_count;                   // samples whose top class is the float model's
    int64_t float_correct, quantized_correct; // with labels
} tare_verdict;
/// Reads the verdict.
TARE_API void tare_analysis_get_verdict(const tare_analysis *analysis, tare_verdict *out);

/// 10 log10(sum y^2 / sum (y - x)^2), y the float outputs of `exact` and x those of `reference`:
/// what fusing, preparing and steps of tare_improve changed before anything was quantized. Rounding
/// of floats leaves 100 dB and more; may be infinite. NaN: no `exact` was given.
TARE_API double tare_analysis_preparation_db(const tare_analysis *analysis);

/// The error of one layer: an operator that reads quantized values, or has a quantized weight.
/// Fields in dB are signal-to-noise ratios, where the signal is the float model's value; NaN: not
/// measured. Strings are lent by the analysis.
typedef struct tare_layer_error {
    uint32_t struct_size;
    const char *node;       // of the reference form
    const char *float_node; // the operator of the float model
    const char *op;         // the operator's name: "torch.nn.Conv2d"
    double local_db;        // of its result, with only this layer quantized and exact inputs
    double weights_db;      // as local_db, with only its weight quantized
    double activations_db;  // as local_db, with only its inputs quantized
    double cumulative_db;   // of its result, with the whole model quantized
    double cumulative_cosine;
    double alone_db;    // of the model's outputs, with only this layer quantized
    double without_db;  // of the model's outputs, with all layers but this one quantized
    const char *cause;  // a sentence about its first finding that costs accuracy; "": no finding
    const char *remedy; // a sentence about what to do; "": no remedy known
    double reads_db;    // of its worst quantized input
} tare_layer_error;
/// The number of layers, in the order of the graph.
TARE_API size_t tare_analysis_layer_count(const tare_analysis *analysis);
/// Reads the index-th layer. False past the end.
TARE_API bool tare_analysis_get_layer(const tare_analysis *analysis, size_t index,
                                      tare_layer_error *out);
/// Reads the layer at a rank, 0 being the worst. Layers are ranked by alone_db where that was
/// measured, else by local_db, else by reads_db. False past the end.
TARE_API bool tare_analysis_get_worst(const tare_analysis *analysis, size_t rank,
                                      tare_layer_error *out);

enum { TARE_HISTOGRAM_BINS = 64 };
/// Statistics of one quantized tensor. Ranges cover all samples; strings and arrays are lent by the
/// analysis.
typedef struct tare_tensor_range {
    uint32_t struct_size;
    const char *node;  // the node that quantizes it; for the weight of a module: the layer's
    const char *value; // the float model's node that computes it; "": an input, or a weight
    const char *layer; // the node that reads it
    bool is_weight;
    bool has_qparams; // one scale and zero point, known before a run
    double scale;
    int64_t zero_point, quant_min, quant_max;
    double low, high;           // the range that can be represented; 0 without qparams
    double seen_low, seen_high; // the range of finite values below 1e30 in magnitude
    int64_t element_count;
    int64_t saturated_count; // elements below low or above high
    int64_t masked_count;    // elements that are infinite, or 1e30 or more in magnitude
    double sqnr_db;          // of rounding and clipping alone; NaN: not measured
    int64_t channel_count;   // the length of channel_low and channel_high
    const double *channel_low, *channel_high;
    double histogram_low, histogram_high; // the range of the bins; of the first batch
    const uint64_t *histogram;            // [TARE_HISTOGRAM_BINS]; zeros when is_brief
} tare_tensor_range;
/// The number of quantized tensors, activations first.
TARE_API size_t tare_analysis_range_count(const tare_analysis *analysis);
/// Reads the index-th quantized tensor. False past the end.
TARE_API bool tare_analysis_get_range(const tare_analysis *analysis, size_t index,
                                      tare_tensor_range *out);

/// A cause of lost accuracy and its remedy. Strings are lent by the analysis.
typedef struct tare_finding {
    uint32_t struct_size;
    const char *kind;           // "outlier-channel", ..; docs/accuracy.md lists them
    const char *layer;          // the layer's node in the reference form
    const char *tensor;         // the node that quantizes the tensor; for a weight: the layer
    double db;                  // of the layer: alone_db, else local_db
    const char *cause, *remedy; // a sentence each
    const char *step;           // the step of tare_improve that is the remedy; "": none
} tare_finding;
/// The number of findings: causes by descending cost, then what follows from them, then what costs
/// little or nothing.
TARE_API size_t tare_analysis_finding_count(const tare_analysis *analysis);
/// Reads the index-th finding. False past the end.
TARE_API bool tare_analysis_get_finding(const tare_analysis *analysis, size_t index,
                                        tare_finding *out);

#ifdef __cplusplus
}
#endif
#endif
