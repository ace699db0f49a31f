// SPDX-License-Identifier: Apache-2.0
// The import's own state (io/onnx/read/, but not the rules).
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

/// Where in the user's module tree a node of the file stands, as far as the file says.
typedef struct onnx_scope {
    const char *path;   // of the innermost module: "layer1.0.conv1"; "" at the top
    const char *raw;    // the same as written, where a second call was renamed ("relu_1")
    const char *type;   // its class's public name ("torch.nn.Conv2d"); NULL: the file does not say
    const char *target; // what torch called there ("aten.relu.default"); NULL: not said
    const char *call;   // which call it was ("relu_1"): nodes of one call share it; NULL: not said
    bool is_known;      // false: the file has no scopes, and path is ""
} onnx_scope;

/// What the import knows of a node of the draft.
typedef struct draft_info {
    value meta;  // its result: tensors without data; references owned
    value other; // the same if the batch, or what is open, had another size; VALUE_NONE: that does
                 // not work
    const onnx_scope *scope;
    const char *file_name; // of the file's node; "" if it has none
    tare_tensor *constant; // of a get_attr; lent
} draft_info;

/// A constant: who it is.
typedef struct onnx_constant {
    const char *name;       // of the initializer; NULL: computed
    node *attr;             // the get_attr that reads it; NULL: none yet
    tare_tensor *other;     // what it would be if the batch had another size, lent; NULL: the same
    value *entries;         // of an open constant (sizes.h), per element; NULL: numbers
    bool is_packed;         // elements of 4 bits, in bytes here
    tare_tensor *quantized; // the integers that it was dequantized from, lent; NULL: none
    tare_tensor *turned;    // of a matrix with scales of blocks along its columns: the same of the
                            // transposed matrix, lent
} onnx_constant;

/// What a name of the file stands for.
typedef struct onnx_binding {
    value v;
} onnx_binding;

typedef struct onnx_import {
    const onnx_file *file;
    const registry *classes;
    onnx_data_files data_files;
    map values;    // name -> onnx_binding *
    map constants; // "%p" of a tensor -> onnx_constant *
    map initializer_names;
    tare_tensor **tensors; // every constant, references owned
    size_t tensor_count, tensor_capacity;
    int64_t folded_macs_left; // what computing constants may cost
    graph *draft;
    module *root;     // of the draft: constants and modules under names of its own
    draft_info *info; // by node id of the draft
    size_t info_capacity;
    int64_t batch, other_batch; // sizes of dimension 0 of the inputs
    const onnx_open *open;      // dimensions that stay open; NULL: at most the batch
    map sizes;                  // "13|31", what a size is for both stand-ins -> value *
    map numbers;                // a function and its arguments -> value *
    const node *blamed;         // the input whose open dimension was in the way; NULL: not known
    int blamed_dim;
    bool is_hopeless; // no size would help
    size_t module_count;
    map scopes; // paths that were seen, for renamed second calls
    arena memory;
    tare_error *err;
} onnx_import;

struct onnx_call {
    onnx_import *in;
    const Onnx__NodeProto *node;
    const onnx_scope *scope;
    int opset;
    bool *attribute_read; // per attribute
    value *outputs;       // per output, what the rule set
    arena scratch;
};

draft_info *tare__onnx_info(onnx_import *in, const node *n);
/// Takes over a reference (also on failure) on a constant; name NULL: computed.
tare_status tare__onnx_add_constant(onnx_import *in, tare_tensor *t, const char *name);
onnx_constant *tare__onnx_constant_of(const onnx_import *in, const tare_tensor *t);
/// A node that is the constant, in the draft.
/// Of a matrix `to` that is `from` with its dimensions swapped: its integers, where `from` has
/// some.
tare_status tare__onnx_transpose_quantized(onnx_import *in, const tare_tensor *from,
                                           const tare_tensor *to);
tare_status tare__onnx_constant_node(onnx_import *in, tare_tensor *t, const onnx_scope *scope,
                                     node **out);
/// Room for what is known of n, which was just inserted.
tare_status tare__onnx_add_info(onnx_import *in, const node *n, const onnx_scope *scope,
                                const char *file_name);
/// Sets the result of n by running shape rules on what is known of its arguments.
tare_status tare__onnx_infer(onnx_import *in, node *n);
tare_status tare__onnx_bind(onnx_import *in, const char *name, const value *v);

/// Reads a node's scope from its metadata or its name (scope.c). Nodes of functions that say none
/// have their caller's.
tare_status tare__onnx_read_scope(onnx_import *in, onnx_step *step, const onnx_scope **out);
/// Recognizes idioms of exporters (raise.c).
tare_status tare__onnx_raise(onnx_import *in);
/// The model: modules and names as the user knows them (lift.c). The caller releases *out.
tare_status tare__onnx_lift(onnx_import *in, module **out);

#endif
