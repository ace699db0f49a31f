// SPDX-License-Identifier: Apache-2.0
/// The decision record: for each node the request, the decision and the rule behind it.
#ifndef TARE_RECORD_H
#define TARE_RECORD_H

#include <stdbool.h>

#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One decision. Strings are lent by the model and never NULL ("" if there is none).
typedef struct tare_decision {
    uint32_t struct_size;
    const char *pass; // the pass that decided: "fuse", "prepare", "convert", "lower", "measure", ..
    const char *node; // the node's name
    const char *subject;  // its operator: "torch.nn.Conv2d"
    const char *decision; // "fused", "quantized", "left float", "observed", "lowered", ..
    const char *rule;     // the selector, pattern or constraint that decided
    const char *reason;   // one sentence
} tare_decision;

/// The number of decisions in the record.
TARE_API size_t tare_model_decision_count(const tare_model *model);
/// Reads the index-th decision, in the order in which they were made. TARE_INVALID_ARGUMENT past
/// the end.
TARE_API tare_status tare_model_decision_at(const tare_model *model, size_t index,
                                            tare_decision *out, tare_error *err);

/// The share of a model that is computed in integers, counted over the operators of the float
/// model and those of the graphs that operators of control flow run, whose names are GRAPH/NODE;
/// each counts once, however often its graph runs. Multiply-accumulates are those of all rounds.
typedef struct tare_coverage {
    uint32_t struct_size;
    uint64_t op_count, quantized_op_count;
    uint64_t macs, quantized_macs; // multiply-accumulates; 0 until shapes are known (calibration)
    uint64_t weight_bytes, quantized_weight_bytes;
    uint64_t float_island_count; // maximal connected groups of float operators
    uint64_t conversion_count;   // tensors quantized or dequantized between islands
    /// while_loops: their rounds depend on the data, and one is counted.
    uint64_t open_loop_count;
} tare_coverage;
/// Computes the coverage of the model. TARE_OUT_OF_MEMORY is the only error.
TARE_API tare_status tare_model_coverage(const tare_model *model, tare_coverage *out,
                                         tare_error *err);

/// A node and its island, as TARE_PRINT_DOT draws them. Strings are lent by the model, arrays for
/// the call of the visitor.
typedef struct tare_island_node {
    uint32_t struct_size;
    const char *name, *subject; // subject: its operator, "torch.nn.Conv2d"
    /// "float", "integers", "conversion" (quantize, dequantize), "observer", "data" (inputs,
    /// attributes, the output), or "plain": no decision has been made about it.
    const char *kind;
    size_t island; // the index of the island's first node; SIZE_MAX: none
    /// [operator_count]: the float model's operators that it computes, in order; the last one is
    /// that of tare_model_float_node.
    const char *const *operators;
    size_t operator_count;
    const size_t *inputs; // [input_count]: indices of the nodes that it reads, each once
    size_t input_count;
} tare_island_node;
/// Called with every node of the graph, in execution order, from index 0 on. A failure ends the
/// walk.
typedef tare_status (*tare_island_visitor)(void *user, size_t index, const tare_island_node *node,
                                           tare_error *err);
/// Visits the nodes of a model with their islands, which are connected groups of integer or of
/// float operators. For a prepared model, the islands are those that convert will make. Errors:
/// those of the visitor and TARE_OUT_OF_MEMORY.
TARE_API tare_status tare_model_visit_islands(const tare_model *model, tare_island_visitor visit,
                                              void *user, tare_error *err);

/// Writes a preview of a prepared model, which needs no calibration: its float islands, the tensors
/// converted between islands, and the operators that stay float, with reasons; for a converted
/// model, the actual ones. As text or as JSON (docs/schemas/preview.json). TARE_IO if `write`
/// returns false.
TARE_API tare_status tare_model_preview(const tare_model *model, bool as_json, tare_writer write,
                                        void *user, tare_error *err);
/// Checks that requests were honoured. TARE_UNSUPPORTED, with the first such node, if a node stays
/// float although a selector of the qconfig mapping requests it by name, type or order, or if the
/// global qconfig quantizes no operator at all.
TARE_API tare_status tare_model_check_requests(const tare_model *model, tare_error *err);

/// The name of the float model's operator whose value a node computes. For a fused node this is its
/// last operator ("relu1" for a quantized conv1), in a float model the node itself. NULL for
/// observers, quantize nodes and others that compute none. Lent by the model.
TARE_API const char *tare_model_float_node(const tare_model *model, const char *node);

/// Writes for each operator of the float model one sentence that says what it became, and why.
/// node: only for this one, with every decision about it; NULL: for all. TARE_NOT_FOUND, with a
/// suggestion, if no decision names the node. TARE_IO if `write` returns false.
TARE_API tare_status tare_model_explain(const tare_model *model, const char *node,
                                        tare_writer write, void *user, tare_error *err);
/// Writes the full record as JSON, for all nodes (NULL) or one: {"operators": [..], "decisions":
/// [..], "nodes": [..], "edges": [..]} (docs/schemas/explain.json). It has the decisions about each
/// node, the patterns that did not match and why, the qconfig and its selector, the verdict on each
/// dtype config with the constraint and both values, and every edge with its observer and the rule
/// behind it. Errors as for tare_model_explain.
TARE_API tare_status tare_model_explain_json(const tare_model *model, const char *node,
                                             tare_writer write, void *user, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
