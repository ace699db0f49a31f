// SPDX-License-Identifier: Apache-2.0
/// Models: a module tree, a graph, and the record of what was decided about them.
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include <stdbool.h>

#include "tare/limits.h"
#include "tare/module.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Immutable once handed out, but for calls that take it without const: calibration, which changes
/// observers' statistics and what batch norms learn, and setters such as tare_model_set_training.
/// Those want it alone. Calls that take it const only read it, and may do so beside each other in
/// any number of threads; so do the runs of sessions (session.h).
typedef struct tare_model tare_model;

/// What a model is in the flow.
typedef enum tare_model_stage {
    TARE_STAGE_FLOAT = 0,
    TARE_STAGE_FUSED = 1,
    TARE_STAGE_PREPARED = 2,
    TARE_STAGE_REFERENCE = 3,
    TARE_STAGE_LOWERED = 4,
} tare_model_stage;

/// Reads a model file: safetensors with the graph in its metadata, or ONNX (opset 11 to 21), told
/// apart by their bytes. Weights are mapped, not copied, so that the file must stay as it is while
/// the model lives: see tare_file_guard for files that do not. Files of a network's file system are
/// copied. context: what the file may name beyond built-in classes, and must outlive the model;
/// NULL: nothing. "-" is standard input. All bytes of one of our own files are held against the
/// digests that it was written with, by several threads where they are many; files without digests,
/// of others and of earlier versions, are read as they are. TARE_MALFORMED_FILE names the byte, the
/// JSON path, the node or the tensor; TARE_IO the file.
TARE_API tare_status tare_model_read(const char *path, const tare_context *context,
                                     tare_model **out, tare_error *err);

/// A size for the dimensions of inputs that an ONNX file names instead of giving one ("seq").
typedef struct tare_dim_size {
    const char *name;
    int64_t size;
} tare_dim_size;
/// The shape of one input, where the file has none or leaves sizes open.
typedef struct tare_input_shape {
    const char *input;
    int ndim;
    const int64_t *shape; // [ndim]
} tare_input_shape;
/// How to read a model; zero means the default. Of an ONNX file's inputs the first dimension is the
/// batch: 1 where nothing else is said, and data of any batch runs unless the file fixes it. Every
/// other open size must be given. Names that the file has not are refused, and so are sizes for a
/// file of another format.
typedef struct tare_model_read_options {
    uint32_t struct_size;
    const tare_dim_size *dims;
    size_t dim_count;
    const tare_input_shape *shapes;
    size_t shape_count;
    /// Reads one of our own files whose tensors, packed weights or graph are not those that the
    /// file has digests of: it was damaged or edited since it was written. Packed weights are used
    /// as they are.
    bool ignores_digests;
    /// What reading may take. The model, and what passes make of it, keep memory_bytes, which then
    /// is the default of data and sessions for it, too. NULL: the defaults.
    const tare_read_limits *limits;
    /// Reads the file into memory in place of mapping it, so that what others do to it later changes
    /// nothing: for files that others may write to. Costs the time of a copy, and its memory.
    bool copies_file;
} tare_model_read_options;
/// As tare_model_read. options may be NULL. TARE_LIMIT_EXCEEDED says which limit.
TARE_API tare_status tare_model_read_with(const char *path, const tare_context *context,
                                          const tare_model_read_options *options, tare_model **out,
                                          tare_error *err);
/// Writes the model with its stage, statistics and decisions: to a temporary name first, which is
/// renamed when all is written. "-" is standard output. Models of one content give the same bytes.
TARE_API tare_status tare_model_write(const tare_model *model, const char *path, tare_error *err);
/// Writes the graph as a program of torch.export, which torch.export.load of torch 2.9 and newer
/// reads: float, or converted to quantized_decomposed operators. What the .pt2 file said of module
/// stacks, open sizes and the call is kept. The stage, statistics and decisions are left out.
/// TARE_UNSUPPORTED, naming the node, for what no program can hold: calls of modules (so prepared
/// models and those of the FX flow), quantized tensors, values without a known shape. To a
/// temporary name first; "-" is standard output.
TARE_API tare_status tare_model_write_pt2(const tare_model *model, const char *path,
                                          tare_error *err);
TARE_API void tare_model_destroy(tare_model *model); // NULL is fine
TARE_API tare_model_stage tare_model_get_stage(const tare_model *model);
/// The mode of the whole model: that of its file, or what tare_model_set_training made it.
TARE_API bool tare_model_is_training(const tare_model *model);
/// Was it read from a file of one of torch's ONNX exporters, which fold batch norms into their
/// convolutions? Training would miss them; tools/tare_export.py keeps them.
TARE_API bool tare_model_norms_are_folded(const tare_model *model);

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

/// Of a model lowered with keeps_original_weights: the tensors that the packed weights of a
/// function (packed: the attribute that its node reads, "_packed_weight_0") were made of, weight,
/// bias, scales and zero points, the greatest first. Lent; NULL past the end, and where nothing was
/// kept.
TARE_API const tare_tensor *tare_model_original_weight(const tare_model *model, const char *packed,
                                                       size_t index);

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
