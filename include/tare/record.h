// SPDX-License-Identifier: Apache-2.0
/// The decision record: what was requested, what was decided, by which rule, at which node.
#ifndef TARE_RECORD_H
#define TARE_RECORD_H

#include <stdbool.h>

#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One decision. Strings are lent and never NULL ("" when there is nothing to say).
typedef struct tare_decision {
    uint32_t struct_size;
    const char *pass;    // "fuse", "prepare", "convert", "lower", "measure"
    const char *node;    // the node's name
    const char *subject; // its operator: "torch.nn.Conv2d"
    const char
        *decision;      // "fused", "quantized", "left float", "observed", "lowered", "measured", ..
    const char *rule;   // the selector, pattern or constraint that decided
    const char *reason; // one sentence
} tare_decision;

/// The number of decisions in the record.
TARE_API size_t tare_model_decision_count(const tare_model *model);
/// Reads the index-th decision, in the order in which they were taken. Its strings are lent by the
/// model. TARE_INVALID_ARGUMENT past the end.
TARE_API tare_status tare_model_decision_at(const tare_model *model, size_t index,
                                            tare_decision *out, tare_error *err);

/// How much of a model is computed in integers, counted over the operators of the float model.
typedef struct tare_coverage {
    uint32_t struct_size;
    uint64_t op_count, quantized_op_count;
    uint64_t macs, quantized_macs; // 0 until a shape is known (calibration)
    uint64_t weight_bytes, quantized_weight_bytes;
    uint64_t float_island_count; // maximal connected groups of float operators
    uint64_t conversion_count;   // tensors quantized or dequantized between islands
} tare_coverage;
/// Counts how much of the model is computed in integers. TARE_OUT_OF_MEMORY is the only error.
TARE_API tare_status tare_model_coverage(const tare_model *model, tare_coverage *out,
                                         tare_error *err);

/// A node with the island that it is in, as TARE_PRINT_DOT draws it. Texts are lent by the model,
/// arrays for the call that hands it out.
typedef struct tare_island_node {
    uint32_t struct_size;
    const char *name, *subject; // subject: its operator, "torch.nn.Conv2d"
    /// "float", "integers"; "conversion" (quantize, dequantize), "observer", "data" (inputs,
    /// attributes, the output); "plain" where nothing has been decided.
    const char *kind;
    size_t island;                // the index of the island's first node; SIZE_MAX: it is in none
    const char *const *operators; // [operator_count]: of the float model, that it computes, in
    size_t operator_count;        // order; the last is the one that tare_model_float_node names
    const size_t *inputs;         // [input_count]: indices of the nodes that it reads, each once
    size_t input_count;
} tare_island_node;
/// Called with every node of the graph, in execution order, from index 0 on. A failure ends the
/// walk.
typedef tare_status (*tare_island_visitor)(void *user, size_t index, const tare_island_node *node,
                                           tare_error *err);
/// Visits the nodes of a model with their islands: connected groups of integers or of floats. Of a
/// prepared model: what it is going to be. Errors: those of the visitor and TARE_OUT_OF_MEMORY.
TARE_API tare_status tare_model_visit_islands(const tare_model *model, tare_island_visitor visit,
                                              void *user, tare_error *err);

/// Writes what a prepared model will become, before it is calibrated: its float islands, the
/// tensors converted between them, and what stays float and why; of a converted model, what it is.
/// As text or as JSON (docs/schemas/preview.json). TARE_IO if `write` returns false.
TARE_API tare_status tare_model_preview(const tare_model *model, bool as_json, tare_writer write,
                                        void *user, tare_error *err);
/// TARE_UNSUPPORTED, with the first such node, where a node stays float although a selector of the
/// qconfig mapping names it by name, type or order. The global qconfig requests no operator in
/// particular, but something must be quantized of all that it is for.
TARE_API tare_status tare_model_check_requests(const tare_model *model, tare_error *err);

/// The name of the float model's operator whose value a node computes: the last one that was fused
/// into it, "relu1" for a quantized conv1. For a float model the node's own name. NULL if the node
/// computes none (observers, quantize). Lent by the model.
TARE_API const char *tare_model_float_node(const tare_model *model, const char *node);

/// Writes what each operator of the float model became, and why, one sentence per operator. node:
/// for this one, with every decision about it; NULL: for all. TARE_NOT_FOUND, with a suggestion,
/// when no decision names the node. TARE_IO if `write` returns false.
TARE_API tare_status tare_model_explain(const tare_model *model, const char *node,
                                        tare_writer write, void *user, tare_error *err);
/// Writes the full record as JSON, for all nodes (NULL) or one: {"operators": [..], "decisions":
/// [..], "nodes": [..], "edges": [..]} (docs/schemas/explain.json). It has the decisions about each
/// node, the patterns that did not match and why, the qconfig and the selector that gave it, the
/// verdict of each dtype config with the constraint and both values, and every edge with its
/// observer and the rule behind it. Errors as for tare_model_explain.
TARE_API tare_status tare_model_explain_json(const tare_model *model, const char *node,
                                             tare_writer write, void *user, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
