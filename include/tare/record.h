// SPDX-License-Identifier: Apache-2.0
/// The decision record: what was asked, what was decided, by which rule, at which node.
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

/// Decisions in the order in which they fell; *out lives as long as the model.
TARE_API size_t tare_model_decision_count(const tare_model *model);
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
TARE_API tare_status tare_model_coverage(const tare_model *model, tare_coverage *out,
                                         tare_error *err);

/// What a prepared model is going to be, before any data: its islands, the tensors converted
/// between them, and what stays float and why; of a converted model, what it is. As text or as JSON
/// (docs/schemas/preview.json).
TARE_API tare_status tare_model_preview(const tare_model *model, bool as_json, tare_writer write,
                                        void *user, tare_error *err);
/// TARE_UNSUPPORTED when a node stays float that a selector of the qconfig mapping asked to
/// quantize by name, type or order (the global qconfig asks for nothing in particular); it names
/// the first.
TARE_API tare_status tare_model_check_requests(const tare_model *model, tare_error *err);

/// The operator of the float model whose value a node of this model computes: the last of those
/// that were fused into it, "relu1" for a quantized conv1. NULL if it computes none (observers,
/// quantize). A float model answers with the name itself. Lent.
TARE_API const char *tare_model_float_node(const tare_model *model, const char *node);

/// One sentence per operator of the float model (or for one node, with every decision about it):
/// what it became and why. node NULL: all. TARE_NOT_FOUND with a suggestion when no decision names
/// the node.
TARE_API tare_status tare_model_explain(const tare_model *model, const char *node,
                                        tare_writer write, void *user, tare_error *err);
/// For one node: what was decided about it, which patterns did not match and why, its qconfig and
/// the selector that gave it, what each dtype config said with the constraint and both values, and
/// every edge at it with its observer and the rule behind it. The same as JSON, for all nodes or
/// one: {"operators": [..], "decisions": [..], "nodes": [..], "edges": [..]}
/// (docs/schemas/explain.json).
TARE_API tare_status tare_model_explain_json(const tare_model *model, const char *node,
                                             tare_writer write, void *user, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
