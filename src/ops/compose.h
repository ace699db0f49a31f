// SPDX-License-Identifier: Apache-2.0
// Operators and modules whose forward consists of calls of others, as in Python: a recurrent layer
// with quantized gates, attention made of linear layers. The same forward works for float and
// quantized tensors, because the called rows handle both.
// Private to ops.
#ifndef OPS_COMPOSE_H
#define OPS_COMPOSE_H

#include "ops/call.h"

/// The state of a composed forward. The first failure is stored in `status` and turns all later
/// calls into no-ops, so that a forward needs no error checks. The composer owns all results until
/// it ends.
typedef struct composer {
    const op_call *call; // of the composed module
    bool shapes_only;
    /// With shapes_only: called for each operator call; the arguments are then in the call's
    /// memory. May be NULL.
    tare_status (*shaped)(void *user, const op_call *call);
    void *user;
    /// Functions that run the row `id` on the arguments of a call, and a module on an input.
    /// composed.c sets them, so that rows that compose do not depend on the table of all rows.
    tare_status (*run_row)(op_call *call, const char *id, bool shapes_only);
    tare_status (*run_module)(const op_call *like, const module *m, const value *input,
                              bool shapes_only, value *out);
    tare_status status;
    value *owned;
    size_t count, capacity;
} composer;

/// Calls the row `id` with positional arguments. A plan records only these calls: if a forward
/// wrote directly to the data of a result, the plan would miss it.
value tare__compose_op(composer *c, const char *id, const value *args, size_t count);
#define COMPOSE(c, id, ...)                                                                        \
    tare__compose_op((c), (id), (const value[]){__VA_ARGS__},                                      \
                     sizeof((const value[]){__VA_ARGS__}) / sizeof(value))
/// Runs a child of m on one argument, then the child's observer activation_post_process if it has
/// one. A child that is absent or has no forward returns `in`.
value tare__compose_child(composer *c, const module *m, const char *child, value in);
/// Calls "add" or "mul" as a child FloatFunctional, whose observer records the result, or a
/// QFunctional, which quantizes it with its scale and zero point.
value tare__compose_functional(composer *c, const module *m, const char *child, const char *op,
                               value a, value b);
/// A float tensor of zeros; if `like` is quantized, of its dtype with scale 1 and zero point 0.
value tare__compose_zeros(composer *c, const tare_tensor *like, int ndim, const int64_t *shape);
/// A list of `count` values that the caller sets.
value tare__compose_list(composer *c, size_t count);
/// The tensor of a value. NULL after a failure; a value of another kind is a failure.
const tare_tensor *tare__compose_tensor(composer *c, value v);
/// Item i of a tuple or list; None after a failure.
value tare__compose_item(composer *c, value v, uint32_t i);
tare_status tare__compose_fail(composer *c, const char *what);

/// Parameter i of the composed call; None if it was not given.
value tare__compose_param(const composer *c, size_t i);
/// The same, or `otherwise` if it was not given or is None.
value tare__compose_param_or(const composer *c, size_t i, value otherwise);
/// Parameter i, which must be a tensor; NULL after a failure.
const tare_tensor *tare__compose_need(composer *c, size_t i);
/// Reads a number, with a default, which is also returned after a failure.
int64_t tare__compose_int(composer *c, size_t i, int64_t otherwise);
double tare__compose_double(composer *c, size_t i, double otherwise);
bool tare__compose_bool(composer *c, size_t i, bool otherwise);
/// A list value of these ints.
value tare__compose_ints(composer *c, const int64_t *ints, size_t count);
/// A tuple of `count` items, (first, None, ..). The others would only be used by a backward pass.
value tare__compose_with_nones(composer *c, value first, size_t count);
/// The tuple (first, second).
value tare__compose_pair(composer *c, value first, value second);

/// Releases the results created since `owned` had `mark` entries, except those in `kept`.
void tare__compose_forget(composer *c, size_t mark, const value *kept, size_t kept_count);

/// The row of an operator composed by the function NAME, which returns the result.
#define COMPOSED_ROW(name, names, method_names, parameters)                                        \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .forward = name                                                                            \
    }

#endif
