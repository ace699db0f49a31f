// SPDX-License-Identifier: Apache-2.0
/// Sessions: run a model. A session has one caller at a time; models may be shared.
#ifndef TARE_SESSION_H
#define TARE_SESSION_H

#include "tare/model.h"
#include "tare/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_session tare_session;

typedef struct tare_session_options {
    uint32_t struct_size;
    /// Threads that share the work of convolutions, linear layers and other long steps, the caller
    /// among them; 0: 1. They sleep between runs. Integer results are the same for every number;
    /// those of float convolutions and linear layers (oneDNN) may differ by rounding. Short layers
    /// and other operators run on the caller alone.
    int thread_count;
    bool reference; // run by the operators' references only, for comparison
    /// No library computes float convolutions, linear layers and products: ours do, slower, whose
    /// bits depend on neither the machine nor the number of threads. TARE_FLOATS=portable in the
    /// environment asks the same of every session.
    bool portable_floats;
} tare_session_options;

/// Chooses kernels. The model must outlive the session and stay as it is: the first run on inputs
/// of some shapes makes a plan for them, with packed weights. options may be NULL.
TARE_API tare_status tare_session_create(const tare_model *model,
                                         const tare_session_options *options, tare_session **out,
                                         tare_error *err);
TARE_API void tare_session_destroy(tare_session *session); // NULL is fine
/// Runs the model once. inputs: one tensor per model input. outputs: output_capacity tensors at
/// most; *output_count tells how many there are (nested tuples flattened left to right). The caller
/// releases them. TARE_INVALID_ARGUMENT for inputs whose shapes do not fit, at the node where they
/// do not.
TARE_API tare_status tare_session_run(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs,
                                      size_t output_capacity, size_t *output_count,
                                      tare_error *err);
/// Called after every node with its first result tensor, lent for the call (NULL if it is not a
/// tensor); a failure ends the run.
typedef tare_status (*tare_node_watcher)(void *user, const char *node_name,
                                         const tare_tensor *result, tare_error *err);
/// Sets the watcher of later runs; NULL: none.
TARE_API void tare_session_watch(tare_session *session, tare_node_watcher watcher, void *user);

/// The instruction set level in use: "scalar", "avx2", "avx512vnni" (TARE_ISA in the environment
/// forces a lower one). Static storage.
TARE_API const char *tare_isa_name(void);

#ifdef __cplusplus
}
#endif
#endif
