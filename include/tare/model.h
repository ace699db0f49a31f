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

/// Immutable, except for calls that take it without const: calibration, which changes observers'
/// statistics and what batch norms learn, and setters such as tare_model_set_training. These need
/// exclusive access. Calls that take it const only read it; any number of threads may make them at
/// once, and so may runs of sessions (tare/session.h).
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
/// apart by their first bytes. "-" is standard input. The caller destroys *out.
///
/// Weights are mapped, not copied, so the file must not change while the model lives;
/// tare_file_guard is for files that may. Files on network file systems are copied. Our own files
/// are checked against the digests that they were written with, by several threads if they are
/// large; files without digests (of other programs or earlier versions) are read unchecked.
///
/// context: classes that the file may name beyond the built-in ones; it must outlive the model.
/// NULL: none. TARE_MALFORMED_FILE names the byte, the JSON path, the node or the tensor; TARE_IO
/// names the file.
TARE_API tare_status tare_model_read(const char *path, const tare_context *context,
                                     tare_model **out, tare_error *err);

/// The size of a dimension that an ONNX file names instead of giving a number ("seq").
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
/// How to read a model; zero means the default. The first dimension of an ONNX file's inputs is the
/// batch: 1 by default, and data of any batch size runs unless the file fixes it. Every other open
/// size must be given. Unknown names are refused, and so are sizes for a file of another format.
typedef struct tare_model_read_options {
    uint32_t struct_size;
    const tare_dim_size *dims;
    size_t dim_count;
    const tare_input_shape *shapes;
    size_t shape_count;
    /// Reads a tare file although its tensors, packed weights or graph do not match the file's
    /// digests, because it was damaged or edited. Packed weights are used as they are.
    bool ignores_digests;
    /// Limits for reading. The model, and what passes make of it, keep memory_bytes as the default
    /// of data and sessions for it. NULL: the defaults.
    const tare_read_limits *limits;
    /// Copies the file into memory instead of mapping it, so later changes to the file have no
    /// effect. Costs the time and the memory of a copy.
    bool copies_file;
} tare_model_read_options;
/// As tare_model_read, with options (NULL: defaults). TARE_LIMIT_EXCEEDED names the limit.
TARE_API tare_status tare_model_read_with(const char *path, const tare_context *context,
                                          const tare_model_read_options *options, tare_model **out,
                                          tare_error *err);
/// As tare_model_read_with, from `size` bytes in memory: an array that is compiled in, or what came
/// over a network. Weights are used where they stand if that place is aligned for them, 64 bytes
/// for the whole; so the bytes must stay as they are until the model and all that came from it (the
/// models of passes, tensors) are destroyed. With copies_file they are copied, and are the
/// caller's again at once. ONNX models whose weights lie in files of their own are
/// TARE_UNSUPPORTED. Errors have "memory" in place of the file's name.
TARE_API tare_status tare_model_read_memory(const void *bytes, size_t size,
                                            const tare_context *context,
                                            const tare_model_read_options *options,
                                            tare_model **out, tare_error *err);
/// Writes the model with its stage, statistics and decisions. "-" is standard output. The file is
/// written under a temporary name and renamed at the end. Equal models give equal bytes.
TARE_API tare_status tare_model_write(const tare_model *model, const char *path, tare_error *err);
/// Writes the graph as a program of torch.export, which torch.export.load of torch 2.9 and newer
/// reads: float, or converted to quantized_decomposed operators. Module stacks, open sizes and the
/// call signature of the original .pt2 file are kept; stage, statistics and decisions are not. "-"
/// is standard output; other files are written under a temporary name first. TARE_UNSUPPORTED, with
/// the node, for what no program can hold: calls of modules (and so prepared models and those of
/// the FX flow), quantized tensors, values of unknown shape.
TARE_API tare_status tare_model_write_pt2(const tare_model *model, const char *path,
                                          tare_error *err);
/// Frees a model and all that it lends. Sessions of it must be gone. NULL is allowed.
TARE_API void tare_model_destroy(tare_model *model);
/// Where in the flow the model is.
TARE_API tare_model_stage tare_model_get_stage(const tare_model *model);
/// The mode of the whole model: as read from its file, or as set by tare_model_set_training.
TARE_API bool tare_model_is_training(const tare_model *model);
/// Does the model come from a file of one of torch's ONNX exporters, which fold batch norms into
/// their convolutions? Training needs these batch norms; tools/tare_export.py keeps them.
TARE_API bool tare_model_norms_are_folded(const tare_model *model);

typedef enum tare_print_form {
    TARE_PRINT_MODEL = 0, // as torch prints a GraphModule
    TARE_PRINT_NODES = 1, // as torch prints its graph
    TARE_PRINT_JSON = 2,  // the graph as it stands in a model file
    TARE_PRINT_DOT = 3,   // for graphviz
    TARE_PRINT_STATE = 4, // the tensors' names as torch's state_dict() lists them, a line each;
                          // without the statistics of observers
} tare_print_form;
/// Writes the model as text of that form, in one call of `write`. TARE_IO if `write` returns false.
TARE_API tare_status tare_model_print(const tare_model *model, tare_print_form form,
                                      tare_writer write, void *user, tare_error *err);

/// The number of the graph's inputs.
TARE_API size_t tare_model_input_count(const tare_model *model);
/// The name of the index-th input: of an ONNX file the file's name; else as the graph's argument is
/// called, with the path to what is nested in it ("batch.ids", "pair.0"). NULL past the end. Lent
/// by the model.
TARE_API const char *tare_model_input_name(const tare_model *model, size_t index);

/// For a model lowered with keeps_original_weights: a tensor from which the packed weights of a
/// function were made. packed: the attribute that the node reads ("_packed_weight_0"). index: 0, 1,
/// .. over weight, bias, scales and zero points, largest first. Lent by the model. NULL past the
/// end, and where nothing was kept.
TARE_API const tare_tensor *tare_model_original_weight(const tare_model *model, const char *packed,
                                                       size_t index);

/// Sizes, for reports.
typedef struct tare_model_facts {
    uint32_t struct_size;
    uint64_t weight_bytes;           // of all tensors, each once
    uint64_t parameter_count;        // elements of weights and biases
    uint64_t quantized_weight_bytes; // of quantized tensors
} tare_model_facts;
/// Fills *out with the sizes of the model. TARE_OUT_OF_MEMORY is the only error.
TARE_API tare_status tare_model_get_facts(const tare_model *model, tare_model_facts *out,
                                          tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
