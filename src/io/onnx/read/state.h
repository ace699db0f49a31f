// SPDX-License-Identifier: Apache-2.0
// State of the import, for io/onnx/read, raise and lift, but not for rules.
#ifndef IO_ONNX_READ_STATE_H
#define IO_ONNX_READ_STATE_H

#include "io/onnx/read/import.h"
#include "io/onnx/read/inline.h"
#include "io/onnx/read/open.h"
#include "io/onnx/read/tensors.h"
#include "io/onnx/schema.h"
#include "ir/module.h"
#include "ops/classes/classes.h"
#include "ops/op.h"

/// The position of a node in the user's module tree, as far as the file states it.
typedef struct onnx_scope {
    const char *path;   // path of the innermost module: "layer1.0.conv1"; "" at the top
    const char *raw;    // the path as written, with renamed second calls ("relu_1")
    const char *type;   // public name of its class ("torch.nn.Conv2d"); NULL: not stated
    const char *target; // the function that torch called ("aten.relu.default"); NULL: not stated
    const char *call;   // name of the call ("relu_1"), shared by its nodes; NULL: not stated
    bool is_known;      // false: the file has no scopes, and path is ""
} onnx_scope;

/// What is known of a node of the draft.
typedef struct draft_info {
    value meta;  // its result; tensors without data, references owned
    value other; // the same for the other batch or stand-in sizes; VALUE_NONE: it
                 // fails for them
    const onnx_scope *scope;
    const char *file_name; // name of the file's node; "" if it has none
    tare_tensor *constant; // the tensor of a get_attr; lent
} draft_info;

/// A constant of the import.
typedef struct onnx_constant {
    const char *name;       // name of the initializer; NULL: computed
    node *attr;             // the get_attr that reads it; NULL: none yet
    tare_tensor *other;     // its value for the other batch or stand-in sizes, lent; NULL: the same
    value *entries;         // per element of an open constant (sizes.h); NULL: not open
    bool is_packed;         // elements of 4 bits, stored in bytes
    tare_tensor *quantized; // the integers that it is the dequantized form of, lent; NULL: none
    tare_tensor *turned; // of a matrix with scales of blocks along its columns: the integers of the
                         // transposed matrix, lent
} onnx_constant;

/// What a name of the file refers to.
typedef struct onnx_binding {
    value v;
} onnx_binding;

typedef struct onnx_import onnx_import;
struct onnx_import {
    const onnx_file *file;
    /// Translates a node of the file, the first member of an onnx_step, and binds its outputs.
    tare_status (*add_node)(onnx_import *in, const Onnx__NodeProto *n);
    const registry *classes;
    onnx_data_files data_files;
    map values;    // name -> onnx_binding *
    map constants; // "%p" of a tensor -> onnx_constant *
    map initializer_names;
    tare_tensor **tensors; // every constant, references owned
    size_t tensor_count, tensor_capacity;
    int64_t folded_macs_left; // cost limit of computing constants
    graph *draft;
    module *root;     // root of the draft, with constants and modules under generated names
    draft_info *info; // by node id of the draft
    size_t info_capacity;
    int64_t batch, other_batch; // sizes of dimension 0 of the inputs
    const onnx_open *open;      // open dimensions; NULL: at most the batch
    map sizes;                  // "13|31", the values for both stand-ins -> value * (a size)
    map numbers;                // function and arguments -> value *
    const node *blamed;         // the input whose open dimension caused a failure; NULL: unknown
    int blamed_dim;
    bool is_hopeless; // no given size would help
    size_t module_count;
    map nested_initializers; // "%p" of an initializer of a nested graph -> tensor, lent (nested.c)
    size_t nested_nodes;     // and names that nested graphs came to so far
    size_t sequence_items;   // of all sequences that were made so far
    int nested_depth;
    map scopes; // known paths, to recognize renamed second calls
    arena memory;
    tare_error *err;
};

struct onnx_call {
    onnx_import *in;
    const Onnx__NodeProto *node;
    const onnx_scope *scope;
    int opset;
    bool *attribute_read; // per attribute
    value *outputs;       // per output, as the rule set it
    arena scratch;
};

draft_info *tare__onnx_info(onnx_import *in, const node *n);
/// Adds a constant and consumes the reference to it, also on failure. name NULL: computed.
tare_status tare__onnx_add_constant(onnx_import *in, tare_tensor *t, const char *name);
onnx_constant *tare__onnx_constant_of(const onnx_import *in, const tare_tensor *t);
/// If `to` is the transpose of matrix `from` and `from` has integers, gives `to` the transposed
/// integers.
tare_status tare__onnx_transpose_quantized(onnx_import *in, const tare_tensor *from,
                                           const tare_tensor *to);
/// Adds a get_attr node to the draft that reads the constant.
tare_status tare__onnx_constant_node(onnx_import *in, tare_tensor *t, const onnx_scope *scope,
                                     node **out);
/// Adds the record of n, which was just inserted.
tare_status tare__onnx_add_info(onnx_import *in, const node *n, const onnx_scope *scope,
                                const char *file_name);
/// Sets the result of n by running shape rules on its arguments.
tare_status tare__onnx_infer(onnx_import *in, node *n);
tare_status tare__onnx_bind(onnx_import *in, const char *name, const value *v);

/// Reads a node's scope from its metadata or name (scope.c). A function's nodes without one have
/// the caller's.
tare_status tare__onnx_read_scope(onnx_import *in, onnx_step *step, const onnx_scope **out);
/// Replaces idioms of exporters (raise.c).
tare_status tare__onnx_raise(onnx_import *in);
/// Builds the model with modules and names as the user knows them (lift.c). The caller releases
/// *out.
tare_status tare__onnx_lift(onnx_import *in, module **out);

#endif
