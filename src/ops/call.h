// SPDX-License-Identifier: Apache-2.0
// A call of an operator or module: arguments bound to parameters, and the result. Every row of the
// operator and class tables has a shape rule, which determines dtype and shape of the result, and a
// reference, which computes it; the caller allocates the result in between.
#ifndef OPS_CALL_H
#define OPS_CALL_H

#include "core/math/requant.h"
#include "core/memory/arena.h"
#include "core/memory/budget.h"
#include "ir/module.h"
#include "ir/value.h"

#define OP_MAX_PARAMS 16

struct op_info;
struct float_kernels;
struct interpreter;

typedef struct op_call {
    const struct op_info *op; // NULL for modules without an operator row
    const module *module;     // the called module; NULL for functions and methods
    module *own;              // the model if the run may change it and `module`; NULL: it may not
    const char *function;     // name of the called function, which selects an overload; or NULL
    const char *node_name;    // for messages
    const value *param[OP_MAX_PARAMS]; // bound by position or keyword; NULL: not given
    size_t param_count;                // of the row
    bool is_bound; // the shape rule of a module has bound its parameters already
    // The graph reads only the first item of the result: the others may be None.
    bool only_first;
    const value *args; // all positional arguments as given (variadic operators, user modules)
    size_t arg_count;
    const keyword *kwargs; // keyword arguments as given
    size_t kwarg_count;
    value result; // filled by the shape rule with meta tensors (references owned by the call)
    memory_budget *budget; // of the run, for results; NULL: limited by the machine's memory only
    arena *memory;         // scratch; lives until the graph's run ends; list results live here
    enum requant_rule linear_rule,
        conv_rule; // for quantized functions without a module of their own
    // How the graph of the call is run, for graphs that it runs itself; NULL: by references. Valid
    // during the call only.
    const struct interpreter *it;
    int thread_count;
    struct float_kernels
        *kernels; // float convolution and matrix products (float_kernels.h); NULL: portable
    /// Replaces the tensor of an argument, as torch does in place; NULL: such changes are
    /// discarded.
    tare_status (*write)(void *writer, const value *argument, tare_tensor *now);
    void *writer;
    tare_error *err;
} op_call;

/// Fills the data of a call's result: the reference of a row or class.
typedef tare_status (*op_compute)(op_call *call);

/// Binds call->args and call->kwargs to the row's parameters. Errors name the node, the operator
/// and the argument if it is unknown or given twice.
tare_status tare__call_bind(op_call *call, const struct op_info *op);

/// Access to parameters by index, with defaults. Errors name the node and the parameter, and state
/// what was expected and found.
const tare_tensor *tare__call_tensor(const op_call *call,
                                     size_t i); // NULL if absent or not a tensor
tare_status tare__call_need_tensor(op_call *call, size_t i, const tare_tensor **out);
tare_status tare__call_int(op_call *call, size_t i, int64_t otherwise, int64_t *out);
tare_status tare__call_double(op_call *call, size_t i, double otherwise, double *out);
tare_status tare__call_bool(op_call *call, size_t i, bool otherwise, bool *out);
/// Reads `count` ints from a list or tuple of `count` ints or one, or from an int, which applies to
/// all.
tare_status tare__call_ints(op_call *call, size_t i, size_t count, int64_t otherwise, int64_t *out);
/// Reads a list or tuple of at most `capacity` ints, or one int, without repeating it.
tare_status tare__call_int_list(op_call *call, size_t i, size_t capacity, int64_t *out,
                                size_t *count);
/// Reads a dimension of a tensor with `ndim` dimensions; negative ones are counted from the end.
tare_status tare__call_dim(op_call *call, size_t i, int64_t otherwise, int ndim, int *out);
/// Reads a dtype; `otherwise` if it is absent or None, which is an error if `otherwise` is unset.
tare_status tare__call_dtype(op_call *call, size_t i, tare_dtype otherwise, tare_dtype *out);
/// Reads a string; `otherwise` if it is absent or None.
tare_status tare__call_text(op_call *call, size_t i, const char *otherwise, const char **out);
/// Converts a bool, int, float, scalar or tensor of one element to a number; false for others.
bool tare__call_number(const value *v, double *out);
/// Converts any value but a float to an int if it is a whole number in range; false for others.
bool tare__call_integer(const value *v, int64_t *out);
/// True if the parameter was given and is not None.
bool tare__call_given(const op_call *call, size_t i);
/// The tensors of a list or tuple parameter, lent, in the call's memory. At least one.
tare_status tare__call_tensor_list(op_call *call, size_t i, const tare_tensor ***out,
                                   size_t *count);
/// Sets the result to a meta tensor of this shape. For shape rules.
tare_status tare__call_result(op_call *call, tare_dtype dtype, int ndim, const int64_t *shape,
                              const qparams *q);
/// Sets the result to this tensor and takes a new reference. If it has data, nothing is computed.
void tare__call_result_tensor(op_call *call, tare_tensor *t);
/// Sets the result to a tuple of `count` values in the call's memory, which must be set next.
tare_status tare__call_result_tuple(op_call *call, uint32_t count);
/// Sets item i of such a tuple to a meta tensor of this shape. For shape rules.
tare_status tare__call_result_item(op_call *call, uint32_t i, tare_dtype dtype, int ndim,
                                   const int64_t *shape);
/// Sets the result to a tuple of two meta tensors of one shape, such as values and their indices.
/// For shape rules.
tare_status tare__call_result_pair(op_call *call, tare_dtype first, tare_dtype second, int ndim,
                                   const int64_t *shape);
/// True if the shape rule returned a tensor with data, such as an argument, so that nothing has to
/// be computed. False for an observer, which returns its input but also records it.
bool tare__call_is_done(const op_call *call);
tare_tensor *tare__call_out(op_call *call); // the result tensor; for references
/// Replaces parameter i, a tensor of the model, by `count` floats. For references.
tare_status tare__call_overwrite(op_call *call, size_t i, int64_t count, const float *data);
/// The module `m` if the run may change it as torch does: its statistics and tensors may be
/// replaced. NULL if it may not.
module *tare__call_own(const op_call *call, const module *m);
/// Returns `status`; adds node and operator to the message of a failure.
tare_status tare__call_at(op_call *call, tare_status status);
/// Fails with TARE_INVALID_ARGUMENT; the message names node and operator.
tare_status tare__call_fail(op_call *call, const char *format, ...) TARE_PRINTF(2, 3);

// As in core/error.h: tells the static analyzer that the call fails.
#if defined(__clang_analyzer__) && !defined(OPS_CALL_DEFINITIONS)
// NOLINTNEXTLINE(readability-identifier-naming)
#define tare__call_fail(call, ...) ((void)tare__call_fail(call, __VA_ARGS__), TARE_INVALID_ARGUMENT)
#endif

#endif
