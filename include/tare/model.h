// SPDX-License-Identifier: Apache-2.0
/// Models: a module tree, a graph, and the record of decisions about them.
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include <stdbool.h>

#include "tare/limits.h"
#include "tare/module.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A model. Functions that take it as const only read it; any number of threads may call them at
/// once, and runs of sessions (tare/session.h) are among them. Functions that take it without const
/// change it and need exclusive access: calibration, which changes the statistics of observers and
/// of batch norms in training mode, and setters such as tare_model_set_training.
typedef struct tare_model tare_model;

/// How far a model has passed through the flow.
typedef enum tare_model_stage {
    TARE_STAGE_FLOAT = 0,     // as it was trained
    TARE_STAGE_FUSED = 1,     // by tare_fuse_fx
    TARE_STAGE_PREPARED = 2,  // with observers or fake quantizers
    TARE_STAGE_REFERENCE = 3, // quantize and dequantize around float operators
    TARE_STAGE_LOWERED = 4,   // integer operators
} tare_model_stage;

/// Reads a model file: tare's own (safetensors with the graph in its metadata), a program of
/// torch.export (.pt2), or ONNX (opset 11 to 21). The first bytes tell the formats apart, not the
/// name. "-" is standard input. The caller destroys *out.
///
/// Weights are mapped, not copied, so the file must not change while the model lives; for files
/// that may change see tare_file_guard and copies_file. Files on network file systems are copied.
/// tare's own files are checked against the digests in them, by several threads if they are large;
/// files without digests (of other programs or earlier versions) are not checked.
///
/// context: further classes that the file may name; it must outlive the model. NULL: built-in
/// classes only. TARE_MALFORMED_FILE names the byte, the JSON path, the node or the tensor; TARE_IO
/// names the file.
TARE_API tare_status tare_model_read(const char *path, const tare_context *context,
                                     tare_model **out, tare_error *err);

/// A size for a dimension that an ONNX file gives a name ("seq") instead of a number.
typedef struct tare_dim_size {
    const char *name;
    int64_t size;
} tare_dim_size;
/// The shape of one input whose shape the file leaves out or partly open.
typedef struct tare_input_shape {
    const char *input;
    int ndim;
    const int64_t *shape; // [ndim]
} tare_input_shape;
/// How to read a model; zero means the default. The first dimension of an ONNX file's inputs is the
/// batch; unless the file fixes it, data of any batch size runs. Every other open size must be
/// given by `dims` or `shapes`. TARE_INVALID_ARGUMENT for sizes that the file does not leave open,
/// and for sizes for another format.
typedef struct tare_model_read_options {
    uint32_t struct_size;
    const tare_dim_size *dims;
    size_t dim_count;
    const tare_input_shape *shapes;
    size_t shape_count;
    /// Reads tare's own file even if its tensors, packed weights or graph do not match its digests
    /// because it was edited or damaged. Packed weights are used as they are.
    bool ignores_digests;
    /// Limits for reading. The model, and models that passes make from it, keep memory_bytes as the
    /// default limit of their data sources and sessions. NULL: the defaults.
    const tare_read_limits *limits;
    /// Copies the file into memory instead of mapping it, so that later changes to the file have no
    /// effect.
    bool copies_file;
} tare_model_read_options;
/// As tare_model_read, with options (NULL: defaults). TARE_LIMIT_EXCEEDED names the limit.
TARE_API tare_status tare_model_read_with(const char *path, const tare_context *context,
                                          const tare_model_read_options *options, tare_model **out,
                                          tare_error *err);
/// As tare_model_read_with, from `size` bytes in memory, such as a compiled-in array. Weights are
/// used in place, without a copy, if `bytes` is aligned to 64 bytes. The bytes must therefore stay
/// unchanged until the model, and all models and tensors that came from it, are destroyed; with
/// copies_file they may be freed at once. TARE_UNSUPPORTED for ONNX models with weights in separate
/// files. Errors say "memory" instead of a file name.
TARE_API tare_status tare_model_read_memory(const void *bytes, size_t size,
                                            const tare_context *context,
                                            const tare_model_read_options *options,
                                            tare_model **out, tare_error *err);
/// Writes the model in tare's own format, with its stage, statistics and decisions, as
/// tare_file_write does ("-": standard output). Equal models give equal bytes.
TARE_API tare_status tare_model_write(const tare_model *model, const char *path, tare_error *err);
/// Writes the graph as a program of torch.export, which torch.export.load of torch 2.9 and newer
/// reads: float, or converted to quantized_decomposed operators. Module stacks, open sizes and the
/// call signature of the original .pt2 file are kept; stage, statistics and decisions are not. The
/// file is written as by tare_file_write ("-": standard output). TARE_UNSUPPORTED, with the node,
/// for what such a program cannot hold: calls of modules (in prepared models and those of the FX
/// flow), quantized tensors, values of unknown shape.
TARE_API tare_status tare_model_write_pt2(const tare_model *model, const char *path,
                                          tare_error *err);
/// Frees a model and everything that it lends. Its sessions must be destroyed before. NULL is
/// allowed.
TARE_API void tare_model_destroy(tare_model *model);
/// The stage of the model.
TARE_API tare_model_stage tare_model_get_stage(const tare_model *model);
/// Is the model in training mode? At first the mode in its file, then that of
/// tare_model_set_training.
TARE_API bool tare_model_is_training(const tare_model *model);
/// Does the model come from a file of one of torch's ONNX exporters, which fold batch norms into
/// their convolutions? Training needs these batch norms; tools/tare_export.py keeps them.
TARE_API bool tare_model_norms_are_folded(const tare_model *model);

typedef enum tare_print_form {
    TARE_PRINT_MODEL = 0, // the modules and the code, as torch prints a GraphModule
    TARE_PRINT_NODES = 1, // the nodes, as torch prints a Graph
    TARE_PRINT_JSON = 2,  // the graph as in a model file
    TARE_PRINT_DOT = 3,   // for graphviz
    TARE_PRINT_STATE = 4, // the names of torch's state_dict(), one per line
} tare_print_form;
/// Writes the model as text in this form, by one call of `write`. TARE_IO if `write` returns false.
TARE_API tare_status tare_model_print(const tare_model *model, tare_print_form form,
                                      tare_writer write, void *user, tare_error *err);

/// The number of the graph's inputs.
TARE_API size_t tare_model_input_count(const tare_model *model);
/// The name of the index-th input: for an ONNX file the name in the file, otherwise the name of the
/// graph's argument, with the path to a nested value ("batch.ids", "pair.0"). NULL past the end.
/// Lent by the model.
TARE_API const char *tare_model_input_name(const tare_model *model, size_t index);

/// For a model lowered with keeps_original_weights: the index-th tensor from which the packed
/// weight of a function was made. packed: the attribute that the node reads ("_packed_weight_0").
/// The tensors are weight, bias, scales and zero points, ordered by size, largest first. Lent by
/// the model. NULL past the end, and if no tensors were kept.
TARE_API const tare_tensor *tare_model_original_weight(const tare_model *model, const char *packed,
                                                       size_t index);

/// Sizes of a model, for reports.
typedef struct tare_model_facts {
    uint32_t struct_size;
    uint64_t weight_bytes;           // of all tensors; a shared tensor counts once
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
