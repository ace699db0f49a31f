// SPDX-License-Identifier: Apache-2.0
/// Shapes: names, dtypes and sizes of a model's inputs, outputs and nodes, known before a run.
#ifndef TARE_SHAPES_H
#define TARE_SHAPES_H

#include "tare/graph.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What is known of a tensor.
typedef struct tare_tensor_info {
    uint32_t struct_size;
    const char *name;             // of the input, the output, or the node that gives it
    tare_dtype dtype;             // UNSET: not known
    int ndim;                     // -1: not known, and shape means nothing
    int64_t shape[TARE_MAX_DIMS]; // outermost first; -1: any size, as the batch's
    /// Of an input: the sizes are those that the exporter or calibration saw. Others may run, too.
    bool is_example;
    bool is_optional;         // an input that a run may leave out
    tare_qscheme qscheme;     // UNSET: not quantized
    double scale, zero_point; // of per-tensor schemes: value = (element - zero_point) * scale
} tare_tensor_info;

/// The shapes of a model's values. Immutable.
typedef struct tare_shapes tare_shapes;

/// Computes the shapes of all values, without running anything. given: the shapes of inputs of
/// which the model says none, or of which it leaves sizes open; -1 leaves a size open. A size of a
/// value is open (-1) if it changes with an open size of an input. An input whose dtype the model
/// does not say counts as float32 here. What cannot be known before a run is said by
/// tare_shapes_unknown, and is no error.
///
/// TARE_NOT_FOUND, with a suggestion, for an input that the model does not have;
/// TARE_INVALID_ARGUMENT for a shape that contradicts what the model says. The model must outlive
/// *out, which the caller destroys.
TARE_API tare_status tare_shapes_infer(const tare_model *model, const tare_input_shape *given,
                                       size_t given_count, tare_shapes **out, tare_error *err);
/// Frees the shapes. NULL is allowed.
TARE_API void tare_shapes_destroy(tare_shapes *shapes);
/// Why some shapes are not known, or known for one size of the batch only: the input or the node,
/// and the reason. NULL: all are known. Lent by the shapes.
TARE_API const char *tare_shapes_unknown(const tare_shapes *shapes);
/// The number of inputs, in the order of tare_session_run.
TARE_API size_t tare_shapes_input_count(const tare_shapes *shapes);
/// Reads what is known of the index-th input. False past the end. The name is lent by the model.
TARE_API bool tare_shapes_input(const tare_shapes *shapes, size_t index, tare_tensor_info *out);
/// The number of outputs, in the order of tare_session_run.
TARE_API size_t tare_shapes_output_count(const tare_shapes *shapes);
/// Reads what is known of the index-th output. False past the end. Its name is that of
/// tare_session_output_name ("logits", "both.0", "output"). The name is lent by the shapes.
TARE_API bool tare_shapes_output(const tare_shapes *shapes, size_t index, tare_tensor_info *out);
/// Reads what is known of the index-th tensor that a node gives: 0 for a tensor, 0, 1, .. for a
/// tuple, flattened from left to right. False past the end, for nodes that give no tensor, and
/// where nothing is known. The name is lent by the model.
TARE_API bool tare_shapes_node(const tare_shapes *shapes, const tare_node *node, size_t index,
                               tare_tensor_info *out);

#ifdef __cplusplus
}
#endif
#endif
