// SPDX-License-Identifier: Apache-2.0
/// Accuracy: how far a quantized model is from its float one, which layers cost how much of it,
/// why, and what to do. Works on the reference form of a model, in which each layer can be computed
/// in floats or as it is quantized: nothing is converted again to test a layer.
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

/// Receives what both models give for one batch: [count] float32 tensors each, lent for the call.
/// For metrics of the caller's own.
typedef tare_status (*tare_prediction_watcher)(void *user, const tare_tensor *const *floats,
                                               const tare_tensor *const *quantized, size_t count,
                                               const tare_batch *batch, tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_analyze_options {
    uint32_t struct_size;
    /// The model that is going to run, made from the same prepared one: the verdict is about its
    /// outputs. NULL: about those of the reference form, computed as it is written.
    const tare_model *quantized;
    /// The verdict and the error of each layer by itself only: a few runs.
    bool is_brief;
    int64_t sample_limit; // 0: 32
    /// Time for tests of single layers, on the first batch of the data, which begin with the worst
    /// ones, at least one. 0: 60. When is_brief: of the whole analysis; the verdict has one batch in
    /// any case, layers that no time is left for have a local_db of NaN, and more batches follow
    /// while there is time.
    double seconds;
    /// Memory, and space in the folder for temporary files (TMPDIR, else /tmp), that intermediate
    /// values are kept in. What does not fit is computed again, but for the layers' float values of
    /// the batch at hand, which are always kept. 0: 256 MiB, and 4 GiB.
    uint64_t memory_bytes, disk_bytes;
    int thread_count;                    // 0: 1
    tare_prediction_watcher predictions; // NULL: nobody is told
    void *predictions_user;
    tare_progress progress; // told the samples, then the layers; NULL: nobody is
    void *progress_user;
    /// A reference form whose floats are the exact ones for the verdict, where steps of improvement
    /// changed those of `reference`: that of the prepared model before them. NULL: `reference`.
    const tare_model *exact;
} tare_analyze_options;

typedef struct tare_analysis tare_analysis;

/// Runs `data` through the reference form of a model, in floats and in several quantized ways.
/// reference: what tare_convert_to_reference_fx or tare_convert_pt2e (with keeps_quantize, so that
/// the float weights are in it) made; it is not changed, and must outlive *out, as options'
/// `quantized` must the call. options may be NULL. TARE_INVALID_ARGUMENT for models of another
/// stage, and for data without samples. The caller destroys *out.
TARE_API tare_status tare_analyze(const tare_model *reference, tare_data *data,
                                  const tare_analyze_options *options, tare_analysis **out,
                                  tare_error *err);
/// Frees an analysis. NULL is allowed.
TARE_API void tare_analysis_destroy(tare_analysis *analysis);

/// How far the outputs are from the float model's, over all samples and outputs.
typedef struct tare_verdict {
    uint32_t struct_size;
    int64_t sample_count;
    double sqnr_db;       // 10 log10(sum y^2 / sum (y - x)^2), y the float outputs; may be infinite
    double cosine;        // of a sample's outputs x and y, the mean over samples
    double max_abs_error; // infinite where an output is not finite
    bool has_classes;     // the first output is [samples][classes]
    bool has_labels;      // and the data has labels
    int64_t agreeing_count;                   // samples whose winning class is the float model's
    int64_t float_correct, quantized_correct; // with labels
} tare_verdict;
/// Reads the verdict.
TARE_API void tare_analysis_get_verdict(const tare_analysis *analysis, tare_verdict *out);

/// The error of one layer: an operator that reads quantized values, or has a quantized weight.
/// Ratios are signal to noise in dB, signal being the float model's; NaN: not measured. Names are
/// lent by the analysis.
typedef struct tare_layer_error {
    uint32_t struct_size;
    const char *node;       // of the reference form
    const char *float_node; // the operator of the float model
    const char *op;         // what it is: "torch.nn.Conv2d"
    double local_db;        // of its result where it alone is quantized and reads exact values
    double weights_db;      // the same with only its weight quantized
    double activations_db;  // the same with only what it reads quantized
    double cumulative_db;   // of its result where the whole model is quantized
    double cumulative_cosine;
    double alone_db;    // of the model's outputs with this layer alone quantized
    double without_db;  // of the model's outputs with all but this layer quantized
    const char *cause;  // of the worst finding about it, a sentence; "" where there is none
    const char *remedy; // what to do, a sentence; "" where there is nothing to say
    double reads_db;    // of the quantized values that it reads, the worst of them
} tare_layer_error;
/// The number of layers, in the order of the graph.
TARE_API size_t tare_analysis_layer_count(const tare_analysis *analysis);
/// Reads a layer. False past the end.
TARE_API bool tare_analysis_get_layer(const tare_analysis *analysis, size_t index,
                                      tare_layer_error *out);
/// Reads the layers in another order, the worst one first: by what the model's outputs lose by it,
/// where that was measured, else by local_db, else by reads_db. False past the end.
TARE_API bool tare_analysis_get_worst(const tare_analysis *analysis, size_t rank,
                                      tare_layer_error *out);

enum { TARE_HISTOGRAM_BINS = 64 };
/// What is known of one tensor that is quantized. Ranges are of all samples; arrays are lent by the
/// analysis.
typedef struct tare_tensor_range {
    uint32_t struct_size;
    const char *node;  // that quantizes it; the layer's, for the weight of a module
    const char *value; // the node of the float model that gives it; "": an input, or a weight
    const char *layer; // that reads it
    bool is_weight;
    bool has_qparams; // one scale and zero point, known before a run
    double scale;
    int64_t zero_point, quant_min, quant_max;
    double low, high;           // what can be represented; 0 without qparams
    double seen_low, seen_high; // finite values below 1e30 in magnitude
    int64_t element_count;
    int64_t saturated_count; // beyond low and high
    int64_t masked_count;    // infinite, or 1e30 or more in magnitude
    double sqnr_db;          // of rounding and cutting off alone; NaN: not measured
    int64_t channel_count;   // of channel_low, channel_high
    const double *channel_low, *channel_high;
    double histogram_low, histogram_high; // of the first batch
    const uint64_t *histogram;            // [TARE_HISTOGRAM_BINS]; zeros when is_brief
} tare_tensor_range;
/// The number of quantized tensors, activations first.
TARE_API size_t tare_analysis_range_count(const tare_analysis *analysis);
/// Reads one. False past the end.
TARE_API bool tare_analysis_get_range(const tare_analysis *analysis, size_t index,
                                      tare_tensor_range *out);

/// Something that costs accuracy, and what to do about it.
typedef struct tare_finding {
    uint32_t struct_size;
    const char *kind;           // "outlier-channel", ..; docs/accuracy.md lists them
    const char *layer;          // node of the reference form
    const char *tensor;         // node that quantizes the tensor; the layer, for its weight
    double db;                  // how much the layer loses: alone_db, else local_db
    const char *cause, *remedy; // a sentence each
    const char *step;           // of tare_improve that does it; "": none
} tare_finding;
/// The number of findings, the costliest first.
TARE_API size_t tare_analysis_finding_count(const tare_analysis *analysis);
/// Reads one. False past the end.
TARE_API bool tare_analysis_get_finding(const tare_analysis *analysis, size_t index,
                                        tare_finding *out);

#ifdef __cplusplus
}
#endif
#endif
