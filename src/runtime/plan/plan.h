// SPDX-License-Identifier: Apache-2.0
// Plans: a graph prepared for inputs of given shapes. Shapes are inferred once, every value has a
// buffer, layers are packed in the layout of their kernels and fused with what follows them, and
// any other call is a prepared call of its operator's row. Results agree with the interpreter's:
// bit for bit where integers are computed, within float tolerance elsewhere.
#ifndef RUNTIME_PLAN_PLAN_H
#define RUNTIME_PLAN_PLAN_H

#include "ops/interpret.h"
#include "runtime/kernels/context.h"
#include "tare/model.h"

struct float_layers; // dnnl/float_layers.h

/// What plans of one session share; all lent.
typedef struct plan_setting {
    const interpreter *it; // how the graph runs without a plan; outlives the plan
    kernel_context *kernels;
    struct float_layers *layers; // NULL: every layer is a call of its row
    struct tuner *tuner;         // runtime/tune/tuner.h; NULL: each layer's usual kernel
    const char *const *states;   // paths of tensors that runs may write over (plan/states.h)
    size_t state_count;
} plan_setting;

typedef struct plan plan;
typedef struct plan_profile plan_profile;
typedef struct plan_replicas plan_replicas;

/// A plan for inputs like these (shapes and dtypes count). TARE_UNSUPPORTED if the graph or its
/// inputs cannot be planned: results whose shapes depend on data, modules in training, quantized
/// inputs. Any other failure of shape inference is returned as it is. The caller destroys *out.
tare_status tare__plan_create(const plan_setting *setting, const tare_tensor *const *inputs,
                              size_t input_count, plan **out, tare_error *err);
void tare__plan_destroy(plan *p); // NULL is fine
/// A plan of one call, which has been shaped on the meta tensors `inputs`, without a block of its
/// own. *is_known false: no step is for such calls; TARE_UNSUPPORTED, too, if none can compute it.
tare_status tare__plan_create_call(const plan_setting *setting, const node *n, const op_call *call,
                                   const tare_tensor *const *inputs, size_t input_count, plan **out,
                                   bool *is_known);
/// The same, or a plan that runs for each sample of these inputs in turn, if that gives the same
/// and pays (plan/by_sample.c). Only the plan that is chosen asks the tuner.
tare_status tare__plan_make(const plan_setting *setting, const tare_model *model,
                            const tare_tensor *const *inputs, size_t input_count, plan **out,
                            tare_error *err);
/// Makes a plan for one sample one for `samples` of them, which it takes in turn.
tare_status tare__plan_repeat(plan *p, int64_t samples, tare_error *err);
bool tare__plan_fits(const plan *p, const tare_tensor *const *inputs, size_t input_count);
/// Runs on inputs that fit. *count tells how many output tensors there are; as many as fit into
/// `capacity` are handed out, with references for the caller; none if there are more.
tare_status tare__plan_run(plan *p, const tare_tensor *const *inputs, tare_tensor **outputs,
                           size_t capacity, size_t *count, tare_error *err);

/// TARE_INVALID_ARGUMENT unless a given tensor can be the index-th output, which is like `like`.
tare_status tare__plan_check_output(size_t index, const tare_tensor *like, const tare_tensor *given,
                                    tare_error *err);
tare_status tare__plan_check_count(size_t found, size_t given, tare_error *err);
/// The same into the caller's tensors, whose shapes, dtypes and parameters must be those of the
/// outputs. They overlap neither each other nor the inputs.
tare_status tare__plan_run_into(plan *p, const tare_tensor *const *inputs,
                                tare_tensor *const *outputs, size_t output_count, tare_error *err);

size_t tare__plan_output_count(const plan *p);
const call_names *tare__plan_output_names(const plan *p);

/// For tests and listings: the steps in order, those of a tail last (plan/batched_tail.h).
size_t tare__plan_step_count(const plan *p);
/// By name ("conv", "call"); NULL past the end.
const char *tare__plan_step_name(const plan *p, size_t index);
/// Bytes of intermediate results: what the plan's block holds, and the greatest sum of those that
/// live at once, below which no plan could go.
size_t tare__plan_bytes(const plan *p, size_t *least);

#endif
