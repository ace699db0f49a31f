// SPDX-License-Identifier: Apache-2.0
// Internal definition of models.
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdatomic.h>

#include "config/backend_functions.h"
#include "config/custom_config.h"
#include "config/qconfig.h"
#include "core/text/text.h"
#include "io/data/data.h"
#include "io/images/preprocess.h"
#include "ir/module.h"
#include "model/annotation.h"
#include "model/facts.h"
#include "model/record.h"
#include "observe/observer.h"
#include "observe/seen_inputs.h"
#include "ops/classes/classes.h"
#include "tare/model.h"
#include "tare/preprocess.h"
#include "tare/quantize.h"

/// User-defined extensions. The built-in context has none.
struct tare_context {
    registry classes;
    observer_classes observers;
    tare_derive_rule *rules; // names owned
    size_t rule_count, rule_capacity;
    backend_functions functions;
};
/// The context itself, or the built-in one for NULL.
const tare_context *tare__context_or_builtin(const tare_context *context);

struct tare_preprocess {
    preprocess steps;
};

/// What convert needs to know from prepare, by node name.
typedef struct prepared_node {
    char *name;
    tare_qconfig *qconfig;      // NULL: do not quantize
    bool is_observed;           // in a pattern that was matched and is supported
    tare_qconfig *equalization; // NULL: do not equalize
} prepared_node;
typedef struct prepared_state prepared_state;
/// A module that was prepared separately, and its path.
typedef struct prepared_child {
    char *path;
    prepared_state *state;
} prepared_child;
struct prepared_state {
    _Atomic int refcount; // shared by models; immutable once a model has it
    map by_name;          // -> prepared_node
    prepared_node *nodes;
    size_t node_count, capacity;
    index_list input_quantized, output_quantized; // of the custom config
    tare_qconfig_mapping *mapping; // as extended by prepare; NULL if it came from a file without it
    bool is_qat;
    prepared_child *children; // standalone modules
    size_t child_count, child_capacity;
};
tare_status tare__prepared_state_create(size_t capacity, prepared_state **out, tare_error *err);
/// Adds a reference; NULL is fine.
prepared_state *tare__prepared_state_retain(prepared_state *s);
void tare__prepared_state_release(prepared_state *s); // NULL is fine
/// Adds a node, up to `capacity`; the qconfig is retained.
tare_status tare__prepared_state_add(prepared_state *s, const char *name, tare_qconfig *qconfig,
                                     bool is_observed, tare_error *err);
/// Takes ownership of `child`, after a failure too.
tare_status tare__prepared_state_add_child(prepared_state *s, const char *path,
                                           prepared_state *child, tare_error *err);
const prepared_state *tare__prepared_child(const prepared_state *s, const char *path); // or NULL
prepared_node *tare__prepared_node(const prepared_state *s, const char *name); // NULL if unknown

/// An operator of the float model, which explain and coverage track through the passes.
typedef struct traced_op {
    char *name, *subject; // node name in the float model; its operator
    bool is_quantized;    // computed in integers in this model
    int64_t macs;         // 0 until known
    char *fused_into;     // the node that computes it now, if that is another one; else NULL
    size_t last;          // index of the last operator that is fused into this one
} traced_op;

struct tare_model {
    const tare_context *context;
    module *root; // a GraphModule: root->graph is the graph
    tare_model_stage stage;
    tare_engine engine; // of lowered models; never TARE_ENGINE_DEFAULT
    record decisions;
    fact_book facts;              // of prepare; empty before
    prepared_state *prepared;     // stage PREPARED only
    struct float_kernels *floats; // for calibration, created when it begins; NULL before
    map op_names;                 // name -> index + 1 in ops
    traced_op *ops;               // the float model's calls, in order
    size_t op_count, op_capacity;
    uint64_t float_island_count, conversion_count; // of converted models
    annotation_book annotations;                   // of pt2e's quantizers
    tare_preprocess *preprocess;                   // for pictures; NULL: not declared
    seen_inputs seen;                              // of calibration over data
    uint64_t digest_count; // number of tensors checked against the file's digests
    // The float model came from one of torch's ONNX exporters, which fold batch norms, so QAT would
    // train without them. tools/tare_export.py keeps them.
    bool norms_are_folded;
    uint64_t memory_limit; // of bytes for data and results, set by the caller; 0: the defaults
    bool is_inner; // the graph is inside of another one (model/nested/nested.h), for a pass only
};

/// Creates a model with `root` (takes over the reference on success) and the decisions of `from`
/// (may be NULL).
tare_status tare__model_create(const tare_context *context, module *root, tare_model_stage stage,
                               const tare_model *from, tare_model **out, tare_error *err);

#endif
