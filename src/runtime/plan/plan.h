// SPDX-License-Identifier: Apache-2.0
// Plans: a graph prepared for inputs of given shapes. Shapes are inferred once, every value has a
// buffer, layers are packed for their kernels and fused with the operators that follow them, and
// any other call is a prepared call of its operator's reference. Results equal the interpreter's:
// bit for bit for integers, within float tolerance otherwise.
#ifndef RUNTIME_PLAN_PLAN_H
#define RUNTIME_PLAN_PLAN_H

#include "ops/interpret.h"
#include "runtime/kernels/context.h"
#include "tare/model.h"

struct float_layers; // dnnl/float_layers.h

/// The settings that all plans of a session share; all lent.
typedef struct plan_setting {
    const interpreter *it; // runs the graph without a plan; outlives the plan
    kernel_context *kernels;
    struct float_layers *layers; // NULL: every float layer is a call of its reference
    struct tuner *tuner;         // runtime/tune/tuner.h; NULL: each layer uses its default kernel
    const char *const *states;   // paths of tensors that runs may modify (plan/states.h)
    size_t state_count;
    /// 0, or the samples of the inputs: layers with a row of each are to have the same bits as with
    /// the row of one.
    int64_t samples;
} plan_setting;

typedef struct plan plan;
typedef struct plan_profile plan_profile;
typedef struct plan_replicas plan_replicas;

/// Makes a plan for inputs of these shapes and dtypes. TARE_UNSUPPORTED if the graph or its inputs
/// cannot be planned: results whose shapes depend on data, modules in training mode, quantized
/// inputs. Other failures of shape inference are returned unchanged. The caller destroys *out.
tare_status tare__plan_create(const plan_setting *setting, const tare_tensor *const *inputs,
                              size_t input_count, plan **out, tare_error *err);
void tare__plan_destroy(plan *p); // NULL is allowed
/// A plan of one call that was shaped for the meta tensors `inputs`, without a block of its own.
/// *is_known is false if no step computes such calls, and then, or if no step can plan this one,
/// TARE_UNSUPPORTED is returned.
tare_status tare__plan_create_call(const plan_setting *setting, const node *n, const op_call *call,
                                   const tare_tensor *const *inputs, size_t input_count, plan **out,
                                   bool *is_known);
/// As tare__plan_create, or a plan that runs each sample of the inputs separately, if that gives
/// the same results and is faster (plan/by_sample.c). The tuner is used only for the chosen plan.
tare_status tare__plan_make(const plan_setting *setting, const tare_model *model,
                            const tare_tensor *const *inputs, size_t input_count, plan **out,
                            tare_error *err);
/// Turns a plan for one sample into one that runs `samples` samples one by one.
tare_status tare__plan_repeat(plan *p, int64_t samples, tare_error *err);
bool tare__plan_fits(const plan *p, const tare_tensor *const *inputs, size_t input_count);
/// Runs the plan on inputs that fit. *count is the number of output tensors. If they fit into
/// `capacity`, they are returned, with references for the caller; otherwise none is.
tare_status tare__plan_run(plan *p, const tare_tensor *const *inputs, tare_tensor **outputs,
                           size_t capacity, size_t *count, tare_error *err);

/// TARE_INVALID_ARGUMENT unless `given` has the shape, dtype and parameters of `like`, the index-th
/// output.
tare_status tare__plan_check_output(size_t index, const tare_tensor *like, const tare_tensor *given,
                                    tare_error *err);
tare_status tare__plan_check_count(size_t found, size_t given, tare_error *err);
/// Runs the plan and writes the outputs to the caller's tensors, which must have the outputs'
/// shapes, dtypes and parameters, and overlap neither each other nor the inputs.
tare_status tare__plan_run_into(plan *p, const tare_tensor *const *inputs,
                                tare_tensor *const *outputs, size_t output_count, tare_error *err);

size_t tare__plan_output_count(const plan *p);
const call_names *tare__plan_output_names(const plan *p);

/// For tests and listings: the steps in order, followed by those of the batched tail
/// (plan/batched_tail.h).
size_t tare__plan_step_count(const plan *p);
/// The name of a step ("conv", "call"); NULL past the end.
const char *tare__plan_step_name(const plan *p, size_t index);
/// The size of the block for intermediate results. *least: the largest sum of results that are live
/// at one time, a lower bound of the size.
size_t tare__plan_bytes(const plan *p, size_t *least);

#endif
