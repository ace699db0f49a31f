// SPDX-License-Identifier: Apache-2.0
/// Models: a module tree, a graph, and the record of what was decided about them.
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include "tare/module.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Immutable once handed out, but for the observers' statistics during calibration.
typedef struct tare_model tare_model;

/// What a model is in the flow.
typedef enum tare_model_stage {
    TARE_STAGE_FLOAT = 0,
    TARE_STAGE_FUSED = 1,
    TARE_STAGE_PREPARED = 2,
    TARE_STAGE_REFERENCE = 3,
    TARE_STAGE_LOWERED = 4,
} tare_model_stage;

/// Reads a model file (safetensors with the graph in its metadata). Weights are mapped, not copied,
/// so that the file must stay as it is while the model lives. context: what the file may name
/// beyond built-in classes, and must outlive the model; NULL: nothing. "-" is standard input.
/// TARE_MALFORMED_FILE names the byte or the JSON path; TARE_IO the file.
TARE_API tare_status tare_model_read(const char *path, const tare_context *context,
                                     tare_model **out, tare_error *err);
/// Writes the model with its stage, statistics and decisions: to a temporary name first, which is
/// renamed when all is written. "-" is standard output. Models of one content give the same bytes.
TARE_API tare_status tare_model_write(const tare_model *model, const char *path, tare_error *err);
TARE_API void tare_model_destroy(tare_model *model); // NULL is fine
TARE_API tare_model_stage tare_model_get_stage(const tare_model *model);

typedef enum tare_print_form {
    TARE_PRINT_MODEL = 0, // as torch prints a GraphModule
    TARE_PRINT_NODES = 1, // as torch prints its graph
    TARE_PRINT_JSON = 2,  // the graph as it stands in a model file
    TARE_PRINT_DOT = 3,   // for graphviz
    TARE_PRINT_STATE = 4, // the tensors' names as torch's state_dict() lists them, a line each;
                          // without the statistics of observers
} tare_print_form;
/// Writes the model as text of that form, in one piece.
TARE_API tare_status tare_model_print(const tare_model *model, tare_print_form form,
                                      tare_writer write, void *user, tare_error *err);

/// The graph's inputs in their order, by the names of their arguments; NULL past the end.
TARE_API size_t tare_model_input_count(const tare_model *model);
TARE_API const char *tare_model_input_name(const tare_model *model, size_t index);

/// Sizes, for reports.
typedef struct tare_model_facts {
    uint32_t struct_size;
    uint64_t weight_bytes;           // of all tensors, each once
    uint64_t parameter_count;        // elements of weights and biases
    uint64_t quantized_weight_bytes; // of quantized tensors
} tare_model_facts;
TARE_API tare_status tare_model_get_facts(const tare_model *model, tare_model_facts *out,
                                          tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
