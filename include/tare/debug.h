// SPDX-License-Identifier: Apache-2.0
/// The numeric debugger: which values of two models are the same value of the float model, and how
/// far they are from each other. Source: torchao 0.18's pt2e/_numeric_debugger.py.
#ifndef TARE_DEBUG_H
#define TARE_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/graph.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- handles ---

/// Numbers the values of a model as torchao's generate_numeric_debug_handle does: every node that
/// has no handle gets the next one, beginning behind the greatest that is there; the graph first,
/// then those of its control flow. Inputs, the output, tensors read by get_attr (inputs of torch's
/// programs) and guards have none. Passes hand handles on: a fused or lowered node has that of the
/// last operator in it; an observer, quantize and dequantize have that of what they watch. Files
/// keep them. TARE_INVALID_ARGUMENT for NULL, and where no number is left.
TARE_API tare_status tare_debug_handles_generate(tare_model *model, tare_error *err);
/// The handle of a node; 0: none.
TARE_API int64_t tare_node_debug_handle(const tare_node *node);
TARE_API bool tare_model_has_debug_handles(const tare_model *model);

// --- comparing ---

typedef struct tare_debug_options {
    uint32_t struct_size;
    int thread_count; // of both sessions; 0: 1
    /// Match by origins although both models have handles.
    bool by_origin;
} tare_debug_options;

/// Two models and what has been seen of them. It has one caller at a time.
typedef struct tare_debug_comparison tare_debug_comparison;

/// Where both models have handles, the last node with a handle in one is compared with the last
/// one in the other, as torchao's loggers are. Otherwise each node is compared with the one whose
/// name is its origin: tare_model_float_node says what a node of `model` computes of `reference`.
/// Both models must outlive the comparison and stay as they are. options may be NULL.
TARE_API tare_status tare_debug_comparison_create(const tare_model *reference,
                                                  const tare_model *model,
                                                  const tare_debug_options *options,
                                                  tare_debug_comparison **out, tare_error *err);
TARE_API void tare_debug_comparison_destroy(tare_debug_comparison *comparison); // NULL is fine

/// Where outputs of one model go, as of tare_session_run; the caller releases them.
typedef struct tare_debug_outputs {
    tare_tensor **tensors;
    size_t capacity, count;
} tare_debug_outputs;

/// Runs both models on the same inputs, and adds how far their values are from each other: sums
/// only, so that memory holds the reference's values of one run, whatever the number of runs.
/// Quantized tensors are dequantized. Outputs may be NULL. TARE_INVALID_ARGUMENT for values of
/// different shapes ("Cannot compare tensors with different shapes: ref=.. vs actual=..").
TARE_API tare_status tare_debug_compare(tare_debug_comparison *comparison,
                                        const tare_tensor *const *inputs, size_t input_count,
                                        tare_debug_outputs *reference_outputs,
                                        tare_debug_outputs *outputs, tare_error *err);

/// One value of both models over all runs so far: y of the reference, x of the other. Names are
/// lent by the models.
typedef struct tare_debug_row {
    uint32_t struct_size;
    int64_t handle; // 0: matched by origin
    const char *reference_node, *node;
    const char *target;    // what the reference's node calls
    int64_t element_count; // 0: no run gave tensors
    double signal;         // sum of x^2
    double reference;      // sum of y^2
    double noise;          // sum of (x - y)^2
    double max_abs_error;
    double mse;     // noise / element_count
    double sqnr_db; // 20 log10(|x| / |x - y|), torch's compute_sqnr; infinite where nothing differs
} tare_debug_row;

/// Rows in the order of the other model's nodes, those matched at creation; false past the end.
TARE_API bool tare_debug_comparison_row(const tare_debug_comparison *comparison, size_t index,
                                        tare_debug_row *out);
TARE_API size_t tare_debug_comparison_row_count(const tare_debug_comparison *comparison);
/// Were the rows matched by handles?
TARE_API bool tare_debug_comparison_by_handles(const tare_debug_comparison *comparison);

#ifdef __cplusplus
}
#endif
#endif
