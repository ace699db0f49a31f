// SPDX-License-Identifier: Apache-2.0
// Forwards that consist of calls of other operators and modules, as Python code would: a recurrent
// layer with quantized gates, an attention of linear layers. The same calls work for float and
// quantized tensors, because the rows handle both.
// Private to ops.
#ifndef OPS_COMPOSE_H
#define OPS_COMPOSE_H

#include "ops/call.h"

/// The first failure is kept in `status` and makes every later step an empty one, so that a
/// forward reads from top to bottom. Results are lent until the composer ends.
typedef struct composer {
    const op_call *call; // of the composed module
    bool shapes_only;
    /// With shapes_only: called for each operator call, whose arguments are then in the call's
    /// memory. May be NULL.
    tare_status (*shaped)(void *user, const op_call *call);
    void *user;
    /// Runs the row `id` on the arguments of a call; and a module on an input. A composition is
    /// begun with both (composed.c), so that the rows that compose need not the table of all rows.
    tare_status (*run_row)(op_call *call, const char *id, bool shapes_only);
    tare_status (*run_module)(const op_call *like, const module *m, const value *input,
                              bool shapes_only, value *out);
    tare_status status;
    value *owned;
    size_t count, capacity;
} composer;

/// Calls the row `id` with positional arguments. A plan records only these calls: direct writes of
/// a forward into a result's data would be lost.
value tare__compose_op(composer *c, const char *id, const value *args, size_t count);
#define COMPOSE(c, id, ...)                                                                        \
    tare__compose_op((c), (id), (const value[]){__VA_ARGS__},                                      \
                     sizeof((const value[]){__VA_ARGS__}) / sizeof(value))
/// A child of m on one argument, then its observer, a child activation_post_process, if it has one.
/// `child` may be absent or not to be run: the result is `in` then.
value tare__compose_child(composer *c, const module *m, const char *child, value in);
/// FloatFunctional and QFunctional: "add" or "mul", observed by an observer or quantized with the
/// child's scale and zero point.
value tare__compose_functional(composer *c, const module *m, const char *child, const char *op,
                               value a, value b);
/// A tensor that is all zeros, quantized as `like` with scale 1 and zero point 0 if that is.
value tare__compose_zeros(composer *c, const tare_tensor *like, int ndim, const int64_t *shape);
/// A list of `count` values, to be filled.
value tare__compose_list(composer *c, size_t count);
/// The tensor in a value; NULL after a failure or if it is none, which is one.
const tare_tensor *tare__compose_tensor(composer *c, value v);
/// The i-th of a tuple or list; None after a failure.
value tare__compose_item(composer *c, value v, uint32_t i);
tare_status tare__compose_fail(composer *c, const char *what);

/// Parameter i of the composed call; None if it was not given.
value tare__compose_param(const composer *c, size_t i);
/// The same, or `otherwise` if it was not given or is None.
value tare__compose_param_or(const composer *c, size_t i, value otherwise);
/// Parameter i, which must be a tensor; NULL after a failure.
const tare_tensor *tare__compose_need(composer *c, size_t i);
/// Numbers among the parameters, with defaults; the default after a failure.
int64_t tare__compose_int(composer *c, size_t i, int64_t otherwise);
double tare__compose_double(composer *c, size_t i, double otherwise);
bool tare__compose_bool(composer *c, size_t i, bool otherwise);
/// A list of ints.
value tare__compose_ints(composer *c, const int64_t *ints, size_t count);
/// (first, None, ..), `count` items: what only a backward pass would read.
value tare__compose_with_nones(composer *c, value first, size_t count);
/// (first, second)
value tare__compose_pair(composer *c, value first, value second);

/// Releases the results created since `owned` had `mark` results, except `kept`, which move up.
void tare__compose_forget(composer *c, size_t mark, const value *kept, size_t kept_count);

/// The row of an operator that is composed by the function NAME, which returns the result.
#define COMPOSED_ROW(name, names, method_names, parameters)                                        \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .forward = name                                                                            \
    }

#endif
