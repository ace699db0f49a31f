// SPDX-License-Identifier: Apache-2.0
/// The numeric debugger: matches the values of two models that stem from the same value of the
/// float model, and measures how far they differ. Source: torchao 0.18's pt2e/_numeric_debugger.py.
#ifndef TARE_DEBUG_H
#define TARE_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/analyze.h"
#include "tare/graph.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- handles ---

/// Numbers the values of a model as torchao's generate_numeric_debug_handle does: every node
/// without a handle gets the next number after the largest one present, first in the graph, then in
/// the graphs of its control flow. Inputs, the output, get_attr nodes (inputs of torch's programs)
/// and guards have none. Passes keep handles: a fused or lowered node has the handle of its last
/// operator; an observer, quantize and dequantize have that of the value they process. Files keep
/// them. TARE_INVALID_ARGUMENT for NULL, and where no number is left.
TARE_API tare_status tare_debug_handles_generate(tare_model *model, tare_error *err);
/// The handle of a node; 0: none.
TARE_API int64_t tare_node_debug_handle(const tare_node *node);
/// Has any node of the model's graph a handle?
TARE_API bool tare_model_has_debug_handles(const tare_model *model);

// --- comparing ---

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_debug_options {
    uint32_t struct_size;
    int thread_count; // of each model's session; 0: 1
    /// Match by tare_model_float_node although both models have handles.
    bool by_origin;
    /// Keep ranges and histograms of the reference's values, for tare_debug_comparison_get_range.
    bool has_ranges;
} tare_debug_options;

/// A comparison of two models. One thread at a time may use it.
typedef struct tare_debug_comparison tare_debug_comparison;

/// Opens sessions of both models and matches their nodes. Where both have handles, the last node
/// with a handle in one model is matched with the last one in the other, as torchao's loggers are;
/// otherwise each node is matched with the one that tare_model_float_node names. So are the nodes
/// of graphs that operators of control flow run, which are called PATH/NODE. Both models must
/// outlive the comparison and must not change. options may be NULL. TARE_INVALID_ARGUMENT for
/// models that are not related: no node matches, or the reference lacks more than half of the
/// operators that `model` was made from. The caller destroys *out.
TARE_API tare_status tare_debug_comparison_create(const tare_model *reference,
                                                  const tare_model *model,
                                                  const tare_debug_options *options,
                                                  tare_debug_comparison **out, tare_error *err);
/// Frees a comparison. NULL is allowed.
TARE_API void tare_debug_comparison_destroy(tare_debug_comparison *comparison);

/// Room for the outputs of one model, `capacity` tensors; `count` becomes their number. The caller
/// releases them.
typedef struct tare_debug_outputs {
    tare_tensor **tensors;
    size_t capacity, count;
} tare_debug_outputs;

/// Runs both models on the same inputs, one tensor per model input, and adds the errors to the
/// rows. Quantized values are dequantized first. Memory holds the reference's values of one run
/// only, of all rounds of its loops. Both outputs may be NULL. TARE_INVALID_ARGUMENT for values of
/// different shapes ("Cannot compare tensors with different shapes: ref=.. vs actual=..").
TARE_API tare_status tare_debug_compare(tare_debug_comparison *comparison,
                                        const tare_tensor *const *inputs, size_t input_count,
                                        tare_debug_outputs *reference_outputs,
                                        tare_debug_outputs *outputs, tare_error *err);

/// One value in both models, over all runs so far, and over all rounds of a loop that both models
/// have run: y in the reference, x in the other model. Names are lent by the models and the
/// comparison.
typedef struct tare_debug_row {
    uint32_t struct_size;
    int64_t handle; // 0: matched by origin
    const char *reference_node, *node;
    const char *target;    // the target of the reference's node
    int64_t element_count; // 0: no run has computed it
    double signal;         // sum of x^2
    double reference;      // sum of y^2
    double noise;          // sum of (x - y)^2
    double max_abs_error;
    double mse;     // noise / element_count
    double sqnr_db; // 20 log10(|x| / |x - y|), torch's compute_sqnr; infinite where nothing differs
} tare_debug_row;

/// Reads the index-th row, in the order of `model`'s nodes; those of graphs inside come last. False
/// past the end.
TARE_API bool tare_debug_comparison_row(const tare_debug_comparison *comparison, size_t index,
                                        tare_debug_row *out);
/// The number of rows: one per pair of matched nodes.
TARE_API size_t tare_debug_comparison_row_count(const tare_debug_comparison *comparison);
/// Reads the range of the reference's values over all runs so far, for the index-th value that
/// `model` quantizes with one scale, and the range that this scale represents. The values are
/// quantized inputs and rows, in the order in which a run first computes them. Needs has_ranges. In
/// *out, `node` is the model's node, `value` the reference's ("": an input), and `layer` is "",
/// because several may read the value. Arrays are lent until the next run. False past the end.
TARE_API bool tare_debug_comparison_get_range(const tare_debug_comparison *comparison, size_t index,
                                              tare_tensor_range *out);
/// Were the nodes matched by handles?
TARE_API bool tare_debug_comparison_by_handles(const tare_debug_comparison *comparison);

#ifdef __cplusplus
}
#endif
#endif
