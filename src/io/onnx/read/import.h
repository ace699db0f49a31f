// SPDX-License-Identifier: Apache-2.0
// What a rule of an ONNX operator may use.
//
// The import walks the nodes in topological order and calls the rule of each. A rule says what its
// node computes as calls of torch's functions, by the names of the operator table (ops/): no
// modules, no names, no scopes. Afterwards the graph is *lifted*: a function that is called with
// constant parameters, or that stands alone in the scope of a module, becomes that module again
// (io/onnx/lift/lift.c). So write the function that torch would call:
//
//   static tare_status relu(onnx_call *c) {
//       return tare__onnx_one(c, "torch.nn.functional.relu", 1, &(value[]){tare__onnx_input(c,
//       0)});
//   }
//   static const onnx_rule rows[] = {{"Relu", .translate = relu}, ..};
//
// A value is one of: a node of the graph in the making (VALUE_NODE), a constant (VALUE_TENSOR with
// data, lent), nothing (VALUE_NONE: an optional input that is absent), or plain Python constants
// for arguments (tare__int, tare__float, tare__bool, tare__none, lists).
//
// A call whose arguments hold no node is computed at once, and its result is a constant: shape
// arithmetic disappears by itself. Every other call runs its operator's shape rule at once, so that
// tare__onnx_meta always knows dtype and shape of what a rule works on.
//
// A rule reads every attribute that it honours; one that the file has and no rule asked for is an
// error, so nothing is ignored silently.
// Private to io/onnx.
#ifndef IO_ONNX_READ_IMPORT_H
#define IO_ONNX_READ_IMPORT_H

#include "core/error.h"
#include "core/memory/arena.h"
#include "core/tensor/tensor.h"
#include "ir/graph.h"
#include "ir/value.h"

/// The node of the file that is being translated.
typedef struct onnx_call onnx_call;

/// How one operator of the default domain is translated. since, until: the first and the last opset
/// of the row; 0: no limit. The first row that fits is taken.
typedef struct onnx_rule {
    const char *op_type;
    int since, until;
    tare_status (*translate)(onnx_call *c);
} onnx_rule;

/// The rows of a family; io/onnx/families/families.h lists all families.
typedef struct onnx_rule_table {
    const onnx_rule *rows;
    size_t count;
} onnx_rule_table;
#define ONNX_RULES(rows)                                                                           \
    { (rows), sizeof(rows) / sizeof *(rows) }

// --- the node ---

const char *tare__onnx_op_type(const onnx_call *c);
int tare__onnx_opset(const onnx_call *c); // of the default domain: 11..21
arena *tare__onnx_arena(onnx_call *c);    // for arguments; freed after the rule
tare_error *tare__onnx_error(onnx_call *c);
/// Makes a tensor of zeros, within the memory limit of the file. The caller releases *out.
tare_status tare__onnx_new_tensor(onnx_call *c, tare_dtype dtype, int ndim, const int64_t *shape,
                                  tare_tensor **out);
/// Fails with TARE_UNSUPPORTED or TARE_MALFORMED_FILE, with node and operator as the place. The
/// message says what was expected and what was found.
tare_status tare__onnx_fail(onnx_call *c, const char *format, ...) TARE_PRINTF(2, 3);
tare_status tare__onnx_malformed(onnx_call *c, const char *format, ...) TARE_PRINTF(2, 3);

// As in core/error.h: shows the analyser that these functions always fail.
#if defined(__clang_analyzer__) && !defined(IO_ONNX_CALL_DEFINITIONS)
// NOLINTBEGIN(readability-identifier-naming)
#define tare__onnx_fail(c, ...) ((void)tare__onnx_fail(c, __VA_ARGS__), TARE_UNSUPPORTED)
#define tare__onnx_malformed(c, ...)                                                               \
    ((void)tare__onnx_malformed(c, __VA_ARGS__), TARE_MALFORMED_FILE)
// NOLINTEND(readability-identifier-naming)
#endif

// --- inputs ---

size_t tare__onnx_input_count(const onnx_call *c); // as written, absent ones included
/// Input i: a node, a constant, or VALUE_NONE where it is absent (past the end, or the empty name).
value tare__onnx_input(const onnx_call *c, size_t i);
/// The same, but an absent input is an error, which names the input ("weight").
tare_status tare__onnx_need_input(onnx_call *c, size_t i, const char *name, value *out);

/// Shape and dtype of a value, with data if it is a constant. NULL if it is no tensor. Lent.
const tare_tensor *tare__onnx_meta(const onnx_call *c, const value *v);
/// The meta of input i, which must be present.
tare_status tare__onnx_need_meta(onnx_call *c, size_t i, const char *name, const tare_tensor **out);
/// Input i if it is a constant; NULL otherwise, and if it depends on open sizes. Lent.
const tare_tensor *tare__onnx_constant(const onnx_call *c, size_t i);
/// True if input i is a constant with elements of 4 bits, stored as int8 or uint8.
bool tare__onnx_is_packed_constant(const onnx_call *c, size_t i);
/// Reads constant input i as integers (of any number of dimensions, flattened). If it is absent,
/// *count is 0 and *given false; with given NULL absence is an error. For a value that is not
/// constant the error says why it must be known.
tare_status tare__onnx_input_ints(onnx_call *c, size_t i, const char *name, size_t capacity,
                                  int64_t *out, size_t *count, bool *given);
/// The same for rules that accept open sizes: these are given as nodes, others as ints. At most
/// ONNX_MOST_SIZES.
enum { ONNX_MOST_SIZES = 64 };
tare_status tare__onnx_input_sizes(onnx_call *c, size_t i, const char *name, size_t capacity,
                                   value *out, size_t *count, bool *given);
/// The same for one number of any type, which must be present.
tare_status tare__onnx_input_scalar(onnx_call *c, size_t i, const char *name, value *out);
/// The size of dimension d of tensor x: an int, or a node if the dimension is open.
tare_status tare__onnx_size(onnx_call *c, const value *x, int d, value *out);
bool tare__onnx_size_is_open(const onnx_call *c, const value *x, int d);
/// True if two sizes (ints or nodes) are equal for all sizes of open dimensions.
bool tare__onnx_same_size(const onnx_call *c, const value *a, const value *b);
/// True if they are equal for the stand-in sizes.
bool tare__onnx_may_be_same_size(const onnx_call *c, const value *a, const value *b);
/// The value of a size for the first stand-in sizes of open dimensions.
int64_t tare__onnx_stand_in(const onnx_call *c, const value *v);
/// Reads constant input i as one number; `otherwise` if it is absent.
tare_status tare__onnx_input_number(onnx_call *c, size_t i, const char *name, double otherwise,
                                    double *out);

// --- attributes: each returns what the file says, or `otherwise`; a wrong type is an error ---

bool tare__onnx_has_attr(const onnx_call *c, const char *name); // does not mark it as read
tare_status tare__onnx_attr_int(onnx_call *c, const char *name, int64_t otherwise, int64_t *out);
tare_status tare__onnx_attr_bool(onnx_call *c, const char *name, bool otherwise, bool *out);
/// Gives the shortest double that rounds to the file's float: 0.1f reads as 0.1.
tare_status tare__onnx_attr_float(onnx_call *c, const char *name, double otherwise, double *out);
/// In the call's arena.
tare_status tare__onnx_attr_string(onnx_call *c, const char *name, const char *otherwise,
                                   const char **out);
/// If it is absent, *count is 0 and *given false. given may be NULL.
tare_status tare__onnx_attr_ints(onnx_call *c, const char *name, size_t capacity, int64_t *out,
                                 size_t *count, bool *given);
tare_status tare__onnx_attr_floats(onnx_call *c, const char *name, size_t capacity, double *out,
                                   size_t *count, bool *given);
tare_status tare__onnx_attr_strings(onnx_call *c, const char *name, size_t capacity,
                                    const char **out, size_t *count, bool *given);
/// A constant; VALUE_NONE if it is absent.
tare_status tare__onnx_attr_tensor(onnx_call *c, const char *name, value *out);
/// Accepts an attribute that has no effect here (memory layout, training only).
void tare__onnx_ignore_attr(onnx_call *c, const char *name);
/// The dtype for ONNX's number of an element type (attribute `to`, `dtype`); an error if tare has
/// none.
tare_status tare__onnx_dtype(onnx_call *c, int64_t data_type, tare_dtype *out);

// --- constants ---

/// Lists for arguments. tuple: (1, 1) instead of [1, 1].
tare_status tare__onnx_list(onnx_call *c, const value *items, size_t count, value *out);
tare_status tare__onnx_ints(onnx_call *c, const int64_t *ints, size_t count, value *out);
tare_status tare__onnx_int_tuple(onnx_call *c, const int64_t *ints, size_t count, value *out);
/// A constant tensor made by the rule. Consumes the caller's reference, also on failure.
tare_status tare__onnx_take_tensor(onnx_call *c, tare_tensor *t, value *out);
/// The values of integers of the file (x, a constant), as a float constant. quantized: x with its
/// parameters; its reference is consumed, also on failure. A module that takes the constant as its
/// weight becomes a reference module.
tare_status tare__onnx_dequantized(onnx_call *c, const tare_tensor *x, tare_tensor *quantized,
                                   value *out);
/// The same for integers with block-wise scales. values: the dequantized values. quantized: the
/// integers in groups along the last dimension, of x or of x transposed (is_turned); NULL if they
/// form no such groups. Both references are consumed.
tare_status tare__onnx_dequantized_blocks(onnx_call *c, const tare_tensor *x, tare_tensor *values,
                                          tare_tensor *quantized, bool is_turned, value *out);
/// A one-dimensional int64 constant.
tare_status tare__onnx_int_tensor(onnx_call *c, const int64_t *ints, size_t count, value *out);

// --- calls ---

/// A call of a function by any name of the operator table ("torch.cat", "operator.add",
/// "torch.nn.functional.relu"). kwargs may be NULL. 0-dimensional constants become plain numbers;
/// other constants become tensors of the model.
typedef struct onnx_emit {
    const char *target;
    const value *args;
    size_t arg_count;
    const keyword *kwargs;
    size_t kwarg_count;
} onnx_emit;
tare_status tare__onnx_function(onnx_call *c, const onnx_emit *e, value *out);
/// The same for a method ("view", "permute"); args[0] is self. Computed at once if all arguments
/// are constants.
tare_status tare__onnx_method(onnx_call *c, const onnx_emit *e, value *out);
/// Item i of a call that returns a tuple (torch.split, an LSTM).
tare_status tare__onnx_item(onnx_call *c, const value *tuple, int64_t i, value *out);

/// A call of a module, for operators that torch has only as modules (LSTM, GRU). The module's path
/// is the node's scope. Tensors are constants.
typedef struct onnx_module {
    const char *class_name; // "torch.nn.LSTM"
    const keyword *config;
    size_t config_count;
    const keyword *tensors; // VALUE_TENSOR constants by name ("weight_ih_l0"), parameters
    size_t tensor_count;
    const value *args;
    size_t arg_count;
} onnx_module;
tare_status tare__onnx_module(onnx_call *c, const onnx_module *m, value *out);

/// Reshapes x to `dims`, as in torch's reshape (one may be -1). If the import can prove that the
/// first size is the batch, the call fits any batch size.
tare_status tare__onnx_reshape(onnx_call *c, const value *x, const int64_t *dims, size_t count,
                               value *out);
/// The same with sizes that may be nodes, as tare__onnx_size returns them.
tare_status tare__onnx_reshape_to(onnx_call *c, const value *x, const value *dims, size_t count,
                                  value *out);
/// A constant that has a row for each sample, with a constant difference between rows
/// (arange(batch)), becomes a computation from an input's size. Other constants are left as they
/// are.
tare_status tare__onnx_follow_batch(onnx_call *c, value *constant);
/// Reshapes x to the sizes in constant input i, as ONNX's Reshape does (a 0 keeps x's size unless
/// allows_zeros). If the file computes the sizes from shapes, the batch may be any of them.
tare_status tare__onnx_reshape_by(onnx_call *c, const value *x, size_t i, bool allows_zeros,
                                  value *out);
/// Sizes `from` to `from + count` of tensor x as a constant that records how it depends on the
/// batch.
tare_status tare__onnx_sizes(onnx_call *c, const value *x, size_t from, size_t count, value *out);

// --- outputs ---

size_t tare__onnx_output_count(const onnx_call *c);
/// True if output i is used; false if its name is empty.
bool tare__onnx_wants_output(const onnx_call *c, size_t i);
void tare__onnx_set_output(onnx_call *c, size_t i, const value *v);

/// The whole rule of an operator that is one function: calls target(args..) for output 0.
tare_status tare__onnx_one(onnx_call *c, const char *target, size_t arg_count, const value *args);
/// The same with keyword arguments.
tare_status tare__onnx_one_with(onnx_call *c, const onnx_emit *e);

#endif
