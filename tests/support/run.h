// SPDX-License-Identifier: Apache-2.0
// Running graphs that are written as text. What fails here fails the test.
#ifndef SUPPORT_RUN_H
#define SUPPORT_RUN_H

#include "dnnl/float_kernels.h"
#include "ops/interpret.h"

/// A GraphModule whose forward is `code`; parameters "x, y" and an expression are enough,
/// with statements before it: model_of("x", "y = x + 1; torch.relu(y)"). The caller releases it.
module *model_of(const char *parameters, const char *expression);
/// start, start + step, ..
tare_tensor *counting(double start, double step, int ndim, const int64_t *shape);
#define COUNTING(start, step, ...)                                                                 \
    counting(start, step, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),               \
             (const int64_t[]){__VA_ARGS__})

/// Interprets model on `count` tensors; a result that is one tensor (the caller's reference) into
/// *out.
tare_status run_model(module *model, tare_tensor *const *inputs, size_t count,
                      float_kernels *kernels, tare_tensor **out, tare_error *err);
/// model_of and run_model on inputs whose references are taken; must succeed.
tare_tensor *run_expression(const char *parameters, const char *expression,
                            tare_tensor *const *inputs, size_t count);
/// Compares with float values to a relative 1e-6 (and the same absolute), and releases t.
void check_floats(tare_tensor *t, const double *expected, size_t count);
/// Tensors as an array and its length, for run_expression; expected values for check_floats.
#define INPUTS(...)                                                                                \
    (tare_tensor *const[]){__VA_ARGS__},                                                           \
        sizeof((tare_tensor *const[]){__VA_ARGS__}) / sizeof(void *)
#define CHECK(t, ...)                                                                              \
    check_floats(t, (const double[]){__VA_ARGS__},                                                 \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

#endif
