// SPDX-License-Identifier: Apache-2.0
// A tree of modules: classes, constructor values, tensors, children. A module may have several
// names (torch shares observers like this), so modules are reference-counted.
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
struct op_call; // ops/call.h: arguments and result of a module or function

/// The role of a module class in quantization. Together with op, dims and fused it determines
/// names, replacements and numerics, so that passes need no lists of classes.
typedef enum module_role {
    ROLE_CONTAINER, // torch.nn.Module, Sequential, GraphModule
    ROLE_FLOAT,
    ROLE_FUSED, // torch.ao.nn.intrinsic: children "0", "1", ..
    ROLE_QAT,
    ROLE_REFERENCE, // torch.ao.nn.quantized.reference
    ROLE_QUANTIZED, // torch.ao.nn.quantized, .intrinsic.quantized
    ROLE_DYNAMIC,   // torch.ao.nn.quantized.dynamic
    ROLE_GROUPED,   // tare's own: float input and output, low-bit weights with scales per group
    ROLE_PACKED,    // weights of a quantized function: read by get_attr, never called or printed
    ROLE_OBSERVED,  // torch.ao.nn.quantizable: a custom module split into submodules with observers
    ROLE_OBSERVER,  // observers and fake quantizers: return their input
} module_role;

/// Operators fused into a module with weights, in data-flow order.
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

/// A class of modules: constant data, or registered at run time by a user.
typedef struct module_class {
    const char *name;       // public qualified name: "torch.nn.Conv2d"
    const char *print_name; // "Conv2d", "QuantizedConv2d(Reference)"
    const char *op; // the operator family: "conv", "linear", "batch_norm", "relu"; NULL if none
    module_role role;
    int dims; // number of spatial dimensions; 0 if not applicable
    fused_with fused;
    bool is_variant;      // another class has equal op, role, dims and fused; found by name only
    bool hides_children;  // printed without its children
    bool describes_items; // its description is a list of children, each on a line of its own
    /// What torch prints inside the parentheses (extra_repr). NULL: nothing.
    tare_status (*describe)(const module *m, text *out, tare_error *err);
    /// Shape rule: sets call->result to meta tensors, whose data forward computes then. See
    /// ops/call.h.
    tare_status (*shape)(struct op_call *call);
    tare_status (*forward)(struct op_call *call);
    /// Checks config and tensors (shapes, missing keys) of a module that was read from a file.
    /// NULL: no checks.
    tare_status (*check)(const module *m, tare_error *err);
    /// Functions for the `state` of a module, such as an observer's statistics. NULL: the class has
    /// no state.
    tare_status (*clone_state)(const void *state, void **out, tare_error *err);
    void (*destroy_state)(void *state);
    /// Writes the names of the state's tensors, separated by '|'. NULL: none.
    tare_status (*name_state)(const module *m, text *out, tare_error *err);
    const void *kind; // a description of the class's own, such as an observer class
} module_class;

typedef struct named_module {
    char *name; // first member, for name_index
    module *module;
} named_module;

typedef struct named_tensor {
    char *name;          // first member, for name_index
    tare_tensor *tensor; // NULL: registered as None (a Linear without bias)
    bool is_parameter;
} named_tensor;

struct module {
    size_t refcount; // not atomic: trees belong to one thread at a time
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
/// Ends the creation of a module: sets *out to m if the status is TARE_OK, else releases m. Returns
/// the status.
tare_status tare__module_hand_out(module *m, tare_status status, module **out);
/// A deep copy; modules shared inside the tree stay shared; tensors are shared by reference.
tare_status tare__module_clone(const module *m, module **out, tare_error *err);

const value *tare__module_config(const module *m, const char *key); // NULL if absent
/// Sets a constructor value (copied).
tare_status tare__module_set_config(module *m, const char *key, const value *v, tare_error *err);
/// Sets all constructor values, or all tensors, of `from` in `to`.
tare_status tare__module_copy_config(module *to, const module *from, tare_error *err);
tare_status tare__module_copy_tensors(module *to, const module *from, tare_error *err);
/// Typed access to constructor values: returns `otherwise` if the value is missing or of another
/// kind.
int64_t tare__module_int(const module *m, const char *key, int64_t otherwise);
double tare__module_double(const module *m, const char *key, double otherwise);
bool tare__module_bool(const module *m, const char *key, bool otherwise);
/// Reads an int, which is repeated, or a list or tuple of `count` ints into out[count]; false for
/// anything else.
bool tare__module_ints(const module *m, const char *key, size_t count, int64_t *out);

/// A direct child, or the module at a path "layer1.0.conv1" ("" is the module itself); NULL if
/// there is none. In a const tree the result is const.
const module *tare__module_child_const(const module *m, const char *name);
module *tare__module_child_mutable(module *m, const char *name);
const module *tare__module_child_n_const(const module *m, const char *name, size_t length);
module *tare__module_child_n_mutable(module *m, const char *name, size_t length);
const module *tare__module_find_const(const module *m, const char *path);
/// The same, by the first `length` characters of a path.
const module *tare__module_find_n(const module *m, const char *path, size_t length);
module *tare__module_find_mutable(module *m, const char *path);
// NOLINTBEGIN(readability-identifier-naming)
#define MODULE_AS_CONST(m, function)                                                               \
    _Generic((m), const module * : function##_const, module * : function##_mutable)
#define tare__module_child(m, name) MODULE_AS_CONST(m, tare__module_child)(m, name)
#define tare__module_child_n(m, name, length)                                                      \
    MODULE_AS_CONST(m, tare__module_child_n)(m, name, length)
#define tare__module_find(m, path) MODULE_AS_CONST(m, tare__module_find)(m, path)
// NOLINTEND(readability-identifier-naming)
/// Sets a direct child (adds a reference). An existing name keeps its position, and its module is
/// released.
tare_status tare__module_set_child(module *m, const char *name, module *child, tare_error *err);
void tare__module_remove_child(module *m, const char *name);
/// Sets a module by path; missing parents are created as torch.nn.Module containers of class
/// `container`. Refuses paths with more than 64 components, so that trees can be walked
/// recursively.
tare_status tare__module_set_path(module *root, const char *path, module *child,
                                  const module_class *container, tare_error *err);

/// A tensor of this module, lent; NULL if absent or None.
tare_tensor *tare__module_tensor(const module *m, const char *name);
bool tare__module_has_tensor(const module *m, const char *name); // registered, even as None
/// The entry of a registered tensor, or NULL; lent until the module changes.
const named_tensor *tare__module_named_tensor(const module *m, const char *name);
/// Registers or replaces a tensor (adds a reference; tensor NULL registers None).
tare_status tare__module_set_tensor(module *m, const char *name, tare_tensor *tensor,
                                    bool is_parameter, tare_error *err);
void tare__module_remove_tensor(module *m, const char *name);
/// A tensor by its path "layer1.0.conv1.weight", lent.
tare_tensor *tare__module_find_tensor(const module *root, const char *path);
const named_tensor *tare__module_find_named_tensor(const module *root, const char *path);
tare_status tare__module_set_tensor_path(module *root, const char *path, tare_tensor *tensor,
                                         bool is_parameter, const module_class *container,
                                         tare_error *err);

/// An unused name {prefix}{N} for a tensor or child of m, in `memory`; NULL: out of memory.
/// *number: the smallest N to try; returns the N found.
const char *tare__module_free_name(const module *m, arena *memory, const char *prefix,
                                   size_t *number);

/// Replaces the tensor at this path; does nothing if there is none.
tare_status tare__module_replace_tensor(module *root, const char *path, tare_tensor *tensor,
                                        tare_error *err);

/// Visits all modules in registration order, parents first; path is "" at the root. A module with
/// two names is visited twice. Stops at the first failure and returns it.
tare_status tare__module_walk(module *root,
                              tare_status (*visit)(void *user, const char *path, module *m,
                                                   tare_error *err),
                              void *user, tare_error *err);

/// Rebuilds `root` like torch's GraphModule constructor: copies only what the graph's call_module
/// and get_attr targets refer to, in order of first occurrence, with plain containers as parents of
/// dotted targets; the modules are shared. Direct tensors are in order of occurrence, too. *out
/// owns g on success.
tare_status tare__module_from_graph(module *root, graph *g, const module_class *container,
                                    const module_class *graph_module, module **out,
                                    tare_error *err);

#endif
