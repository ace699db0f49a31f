// SPDX-License-Identifier: Apache-2.0
// A tree of modules: classes, constructor values, tensors, children. A module may stand under
// several names (torch shares observers so), hence the reference count.
#ifndef IR_MODULE_H
#define IR_MODULE_H

#include "core/error.h"
#include "core/memory/arena.h"
#include "core/tensor/tensor.h"
#include "core/text/text.h"
#include "ir/graph.h"
#include "ir/name_index.h"
#include "ir/value.h"

typedef struct module module;
struct op_call; // ops/call.h: a module's or function's arguments and result

/// What a class of modules does in the flow; with op, dims and fused it makes the triple from which
/// names, swaps and numerics follow, so that no pass lists classes.
typedef enum module_role {
    ROLE_CONTAINER, // torch.nn.Module, Sequential, GraphModule
    ROLE_FLOAT,
    ROLE_FUSED, // torch.ao.nn.intrinsic: children "0", "1", ..
    ROLE_QAT,
    ROLE_REFERENCE, // torch.ao.nn.quantized.reference
    ROLE_QUANTIZED, // torch.ao.nn.quantized, .intrinsic.quantized
    ROLE_DYNAMIC,   // torch.ao.nn.quantized.dynamic
    ROLE_GROUPED,   // float input and output, weights of a few bits with scales per group; ours
    ROLE_PACKED,    // weights of a quantized function: read by get_attr, never called or printed
    ROLE_OBSERVED,  // torch.ao.nn.quantizable: a custom module split into submodules with observers
    ROLE_OBSERVER,  // observers and fake quantizers: sit on an edge, return their input
} module_role;

/// Neighbours fused into a weighted module, in data-flow order.
typedef enum fused_with {
    FUSED_NONE = 0,
    FUSED_RELU,
    FUSED_BN,
    FUSED_BN_RELU,
    FUSED_LEAKY_RELU,
    FUSED_TANH,
    FUSED_ADD,
    FUSED_ADD_RELU,
} fused_with;

/// A class of modules: one constant row (or one registered at run time by a user).
typedef struct module_class {
    const char *name;       // public qualified name: "torch.nn.Conv2d"
    const char *print_name; // "Conv2d", "QuantizedConv2d(Reference)"
    const char *op; // the operator family: "conv", "linear", "batch_norm", "relu"; NULL if none
    module_role role;
    int dims; // spatial dimensions; 0 where it makes no sense
    fused_with fused;
    bool is_variant;      // another class has the same triple; this one is found by its name
    bool hides_children;  // printed without its children
    bool describes_items; // its description is a list of children, each on a line of its own
    /// What torch prints inside the parentheses (extra_repr). NULL: nothing.
    tare_status (*describe)(const module *m, text *out, tare_error *err);
    /// Shape rule: fills call->result with meta tensors. Then forward fills their data. ops/call.h.
    tare_status (*shape)(struct op_call *call);
    tare_status (*forward)(struct op_call *call);
    /// Checks config and tensors of a module read from a file (shapes, missing keys). NULL: nothing
    /// to check.
    tare_status (*check)(const module *m, tare_error *err);
    /// `state` of a module, e.g. an observer's statistics. NULL: the class has none.
    tare_status (*clone_state)(const void *state, void **out, tare_error *err);
    void (*destroy_state)(void *state);
    /// Names of the tensors that the state holds, '|' between. NULL: none.
    tare_status (*name_state)(const module *m, text *out, tare_error *err);
    const void *kind; // the class's own description, e.g. an observer_kind
} module_class;

typedef struct named_module {
    char *name; // first, for name_index
    module *module;
} named_module;

typedef struct named_tensor {
    char *name;          // first, for name_index
    tare_tensor *tensor; // NULL: registered as None (a Linear without bias)
    bool is_parameter;
} named_tensor;

struct module {
    size_t refcount; // trees belong to one thread at a time
    const module_class *class;
    arena memory;    // of config
    keyword *config; // the constructor's values
    size_t config_count;
    bool training;
    named_module *children;
    size_t child_count, child_capacity;
    name_index child_names;
    named_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    name_index tensor_names;
    graph *graph; // GraphModules only
    void *state;  // see clone_state
};

tare_status tare__module_create(const module_class *class, module **out, tare_error *err);
module *tare__module_retain(module *m);
void tare__module_release(module *m); // NULL is fine
/// The end of what makes a module: *out is m if the status is TARE_OK, else m is released. Returns
/// the status.
tare_status tare__module_hand_out(module *m, tare_status status, module **out);
/// A deep copy; modules shared inside the tree stay shared; tensors are shared by reference.
tare_status tare__module_clone(const module *m, module **out, tare_error *err);

const value *tare__module_config(const module *m, const char *key); // NULL if absent
/// Sets a constructor value (copied).
tare_status tare__module_set_config(module *m, const char *key, const value *v, tare_error *err);
/// Sets every constructor value, or every tensor, that `from` has.
tare_status tare__module_copy_config(module *to, const module *from, tare_error *err);
tare_status tare__module_copy_tensors(module *to, const module *from, tare_error *err);
/// Typed reads with torch's defaults: the value, or `otherwise` when absent or of another kind.
int64_t tare__module_int(const module *m, const char *key, int64_t otherwise);
double tare__module_double(const module *m, const char *key, double otherwise);
bool tare__module_bool(const module *m, const char *key, bool otherwise);
/// An int, or a list/tuple of `count` ints, spread into out[count]; false if it is neither.
bool tare__module_ints(const module *m, const char *key, size_t count, int64_t *out);

/// A direct child or NULL, and the module at a path "layer1.0.conv1" ("" is the module itself) or
/// NULL. What is found in a const tree is const: who may not change a tree finds nothing in it that
/// could be changed.
const module *tare__module_child_const(const module *m, const char *name);
module *tare__module_child_mutable(module *m, const char *name);
const module *tare__module_child_n_const(const module *m, const char *name, size_t length);
module *tare__module_child_n_mutable(module *m, const char *name, size_t length);
const module *tare__module_find_const(const module *m, const char *path);
module *tare__module_find_mutable(module *m, const char *path);
// NOLINTBEGIN(readability-identifier-naming)
#define MODULE_AS_CONST(m, function)                                                               \
    _Generic((m), const module * : function##_const, module * : function##_mutable)
#define tare__module_child(m, name) MODULE_AS_CONST(m, tare__module_child)(m, name)
#define tare__module_child_n(m, name, length)                                                      \
    MODULE_AS_CONST(m, tare__module_child_n)(m, name, length)
#define tare__module_find(m, path) MODULE_AS_CONST(m, tare__module_find)(m, path)
// NOLINTEND(readability-identifier-naming)
/// Binds a direct child (takes a new reference). An existing name keeps its position and drops its
/// module.
tare_status tare__module_set_child(module *m, const char *name, module *child, tare_error *err);
void tare__module_remove_child(module *m, const char *name);
/// Binds by path; missing parents become torch.nn.Module containers of class `container`. Paths of
/// more than 64 components are refused, so that trees can be walked by recursion.
tare_status tare__module_set_path(module *root, const char *path, module *child,
                                  const module_class *container, tare_error *err);

/// A tensor of this module, lent; NULL if absent or None.
tare_tensor *tare__module_tensor(const module *m, const char *name);
bool tare__module_has_tensor(const module *m, const char *name); // registered, even as None
/// The entry of a registered tensor, or NULL; lent until the module changes.
const named_tensor *tare__module_named_tensor(const module *m, const char *name);
/// Registers or replaces (takes a new reference; tensor NULL registers None).
tare_status tare__module_set_tensor(module *m, const char *name, tare_tensor *tensor,
                                    bool is_parameter, tare_error *err);
void tare__module_remove_tensor(module *m, const char *name);
/// By path "layer1.0.conv1.weight", lent.
tare_tensor *tare__module_find_tensor(const module *root, const char *path);
const named_tensor *tare__module_find_named_tensor(const module *root, const char *path);
tare_status tare__module_set_tensor_path(module *root, const char *path, tare_tensor *tensor,
                                         bool is_parameter, const module_class *container,
                                         tare_error *err);

/// {prefix}{N}, which no tensor and no child of m has, in `memory`; NULL: out of memory. *number:
/// the least N to try, then the one that was found.
const char *tare__module_free_name(const module *m, arena *memory, const char *prefix,
                                   size_t *number);

/// Replaces the tensor at this path. No effect if there is none.
tare_status tare__module_replace_tensor(module *root, const char *path, tare_tensor *tensor,
                                        tare_error *err);

/// Visits the tree in registration order, parents first; path is "" at the root. A module under two
/// names is visited twice. Stops at the first failure and returns it.
tare_status tare__module_walk(module *root,
                              tare_status (*visit)(void *user, const char *path, module *m,
                                                   tare_error *err),
                              void *user, tare_error *err);

/// Rebuilds `root` as torch's GraphModule constructor does: only what the graph's call_module and
/// get_attr targets reach, in order of first appearance, parents of dotted targets as plain
/// containers, and shares these modules. Direct tensors come first as they appear. *out has its own
/// reference to g's ownership: g moves into *out on success.
tare_status tare__module_from_graph(module *root, graph *g, const module_class *container,
                                    const module_class *graph_module, module **out,
                                    tare_error *err);

#endif
