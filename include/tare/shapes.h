// SPDX-License-Identifier: Apache-2.0
/// Shapes: the names, dtypes and sizes of a model's inputs, outputs and nodes, before a run.
#ifndef TARE_SHAPES_H
#define TARE_SHAPES_H

#include "tare/graph.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What is known about a tensor before a run.
typedef struct tare_tensor_info {
    uint32_t struct_size;
    const char *name;             // of the input, the output, or the node that computes it
    tare_dtype dtype;             // UNSET: not known
    int ndim;                     // -1: not known; shape is then not set
    int64_t shape[TARE_MAX_DIMS]; // outermost first; -1: open, such as the batch
    /// For an input: the sizes are an example, from the exporter or calibration; other sizes may
    /// run, too.
    bool is_example;
    bool is_optional;         // for an input: a run may leave it out
    tare_qscheme qscheme;     // UNSET: not quantized
    double scale, zero_point; // of per-tensor schemes: value = (element - zero_point) * scale
} tare_tensor_info;

/// The shapes of a model's values. Immutable.
typedef struct tare_shapes tare_shapes;

/// Computes the shapes of all values, without a run. given: [given_count], shapes of inputs whose
/// shape the model leaves out or partly open; -1 leaves a size open. A size of a value is open (-1)
/// if it depends on an open size of an input. An input without a stated dtype counts as float32. A
/// shape that cannot be known before a run is not an error; tare_shapes_unknown tells.
///
/// TARE_NOT_FOUND, with a suggestion, for an input that the model does not have;
/// TARE_INVALID_ARGUMENT for a shape that contradicts the model's. The model must outlive *out,
/// which the caller destroys.
TARE_API tare_status tare_shapes_infer(const tare_model *model, const tare_input_shape *given,
                                       size_t given_count, tare_shapes **out, tare_error *err);
/// Frees the shapes. NULL is allowed.
TARE_API void tare_shapes_destroy(tare_shapes *shapes);
/// Why some shapes are not known, or known for one batch size only: a sentence with the input or
/// node and the reason. NULL: all are known. Lent by the shapes.
TARE_API const char *tare_shapes_unknown(const tare_shapes *shapes);
/// The number of inputs, in the order of tare_session_run.
TARE_API size_t tare_shapes_input_count(const tare_shapes *shapes);
/// Reads the index-th input. False past the end. The name is lent by the model.
TARE_API bool tare_shapes_input(const tare_shapes *shapes, size_t index, tare_tensor_info *out);
/// The number of outputs, in the order of tare_session_run.
TARE_API size_t tare_shapes_output_count(const tare_shapes *shapes);
/// Reads the index-th output. False past the end. Its name is that of tare_session_output_name
/// ("logits", "both.0", "output"). The name is lent by the shapes.
TARE_API bool tare_shapes_output(const tare_shapes *shapes, size_t index, tare_tensor_info *out);
/// Reads the index-th tensor of a node's result: index 0 for a tensor; 0, 1, .. for a tuple,
/// flattened from left to right. False past the end, for nodes without a tensor result, and if
/// nothing is known. The name is lent by the model.
TARE_API bool tare_shapes_node(const tare_shapes *shapes, const tare_node *node, size_t index,
                               tare_tensor_info *out);

#ifdef __cplusplus
}
#endif
#endif
