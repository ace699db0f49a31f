// SPDX-License-Identifier: Apache-2.0
// Small models and the flow over them, in few words. What fails here fails the test, and says what
// the library said.
#ifndef SUPPORT_MODELS_H
#define SUPPORT_MODELS_H

#include "model/model.h"
#include "tare/tare.h"

/// One error for all calls of a test; the last failure stays in it until the next failing call.
tare_error *job_error(void);
/// CHECK_DONE(tare_fuse_fx(m, b, &out, job_error()))
#define CHECK_DONE(call) check_done((call), #call)
void check_done(tare_status status, const char *call);
/// The call failed with this status, and its message (or its place) holds these words.
#define CHECK_REFUSED(call, status, words) check_refused((call), status, words, #call)
void check_refused(tare_status status, tare_status wanted, const char *words, const char *call);
/// `whole` holds `words`.
#define CHECK_HOLDS(whole, words) check_holds((whole), (words), true)
#define CHECK_LACKS(whole, words) check_holds((whole), (words), false)
void check_holds(const char *whole, const char *words, bool wanted);

/// A GraphModule without a graph.
module *new_tree(void);
/// A module of a class at a path. config: constructor values as Python writes keywords
/// ("in_features=2, out_features=3"). Weights, biases and statistics of the class are filled with
/// small numbers that depend on the index only.
module *put_module(module *root, const tare_context *context, const char *path, const char *class,
                   const char *config);
/// The tree with the graph of `code` ("def forward(self, x): ..") as a float model. Takes `root`.
tare_model *new_model(const tare_context *context, module *root, const char *code);
/// Two linear layers, `a` and `b`, with a relu between them; sizes of the input, between them and
/// of the output.
tare_model *linear_relu_linear(int ins, int between, int outs);
/// "conv_relu": examples/data/tutorial_conv_relu.safetensors and the like.
tare_model *read_example(const char *name);
/// A float tensor of this shape with numbers between -1 and 1.
#define NEW_INPUT(...)                                                                             \
    new_input((int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
              (const int64_t[]){__VA_ARGS__})
tare_tensor *new_input(int ndim, const int64_t *shape);
/// A quint8 or qint8 tensor of these parameters, of code 0.
tare_tensor *new_integers(tare_dtype dtype, int ndim, const int64_t *shape, double scale,
                          int64_t zero_point);

/// What the printing and explaining functions write; static storage, good for the next four calls.
const char *printed(const tare_model *model);
const char *explained(const tare_model *model, const char *name); // NULL: all
/// "pass: decision: reason [rule]" of the last decision about a node; "" if there is none. Same
/// storage.
const char *decided(const tare_model *model, const char *name);

/// examples/my_backend.json and examples/my_mapping.json.
tare_backend_config *my_backend(void);
tare_qconfig_mapping *my_mapping(void);
tare_backend_config *builtin_backend(const char *name);
/// torch's default mapping of that name.
tare_qconfig_mapping *default_mapping(const char *name);
/// A qconfig of MinMax observers: quint8 0..127 (eps 2^-12) for activations, symmetric qint8 for
/// weights.
tare_qconfig *small_qconfig(void);

/// prepare with these; calibrate with one input of this shape; convert. Each consumes nothing.
tare_model *prepared(const tare_model *model, const tare_backend_config *backend,
                     const tare_qconfig_mapping *mapping);
void calibrated(tare_model *model, size_t ndim, const int64_t *shape);
#define CALIBRATED(model, ...)                                                                     \
    calibrated((model), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                  \
               (const int64_t[]){__VA_ARGS__})
tare_model *referenced(const tare_model *model, const tare_backend_config *backend);
tare_model *lowered(const tare_model *model, const tare_backend_config *backend);
/// A program prepared by XNNPACKQuantizer with its defaults.
tare_model *prepared_program(const tare_model *program);
/// data/digits, calibrated on random numbers and lowered for x86.
tare_model *digits_in_integers(void);
/// The batch x as data for a model, from a temporary file of that name (.npz).
tare_data *data_in_file(const tare_model *model, const char *name, tare_tensor *x);
/// Runs a model on tensors through its operators' references; the first output.
tare_tensor *result_of(const tare_model *model, const tare_tensor *const *inputs, size_t count);
/// What explain says of each operator has a reason that is about it (replay/explained.h).
void check_explained(const tare_model *model);
/// Equal dtype, shape and bytes.
void check_same_tensor(const tare_tensor *a, const tare_tensor *b);

#endif
