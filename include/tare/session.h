// SPDX-License-Identifier: Apache-2.0
/// Sessions run a model. A run never writes to the model, so any number of sessions in any number
/// of threads may share it, and sessions may be created and destroyed while others run. State that
/// a run of torch's module would change (running statistics of batch norms in training mode,
/// observers' statistics, tensors written in place) belongs to the session: it starts with the
/// model's values and is kept between runs. tare_calibrate and tare_calibrate_data are no runs of a
/// session; they change the model.
///
/// A session has one caller at a time. A call that starts while another call of the same session is
/// active, in this thread or another, fails with TARE_INVALID_ARGUMENT; a call without a status
/// then finds no plan or does nothing. tare_session_destroy must be the last call.
#ifndef TARE_SESSION_H
#define TARE_SESSION_H

#include "tare/model.h"
#include "tare/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_session tare_session;

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_session_options {
    uint32_t struct_size;
    /// The number of threads that share the work of convolutions, linear layers and other long
    /// steps, including the caller; 0: 1. They sleep between runs; short steps run on the caller
    /// alone. Integer results do not depend on the number; results of float convolutions and linear
    /// layers (oneDNN) may differ by rounding.
    int thread_count;
    bool reference; // runs the operators' reference implementations only, for comparison
    /// Computes float convolutions, linear layers and matrix products by tare's own code instead of
    /// oneDNN. This is slower, but the bits depend neither on the machine nor on the number of
    /// threads. TARE_FLOATS=portable in the environment does this for every session.
    bool portable_floats;
    /// Lets float convolutions and linear layers round weights and inputs to bfloat16 (8 bits of
    /// precision) where that is faster. The relative error of each product is below 2^-7.9; sums
    /// and results are float32. TARE_UNSUPPORTED without AVX512-BF16 in the machine or oneDNN in
    /// the build.
    bool bfloat16;
    /// When a plan is made, times the kernels that give equal bits on each layer's shape, and uses
    /// the fastest. This takes some milliseconds per layer and does not change results.
    bool tunes;
    /// A file that keeps these times between sessions. It is created if it does not exist, and
    /// written by the first run on inputs of new shapes. Implies `tunes`. NULL: the file named by
    /// TARE_TUNE_CACHE in the environment, if set. TARE_MALFORMED_FILE if the file is not such a
    /// cache.
    const char *tune_cache;
    /// The CPUs of the threads, by the system's numbers ("0,2-5"): one per thread; with
    /// thread_count 0 there are as many threads as CPUs. Each thread is pinned to its CPU, except
    /// the caller, for which the first CPU is meant: tare_thread_keep pins it. NULL: the system
    /// places threads. TARE_INVALID_ARGUMENT for CPUs that the calling thread may not use,
    /// TARE_UNSUPPORTED on systems other than Linux.
    const char *affinity;
    /// Microseconds that an idle thread spins before it sleeps, up to 1000000; 0: 5;
    /// TARE_SPIN_NONE: it sleeps at once. A spinning thread keeps its CPU busy, also between runs,
    /// which then start sooner. Within a run threads spin at least 20 microseconds, except with
    /// TARE_SPIN_NONE. TARE_INVALID_ARGUMENT with one thread, which never waits.
    int32_t spin_us;
    /// The most bytes that values of a run may take at one time, not counting inputs and the model.
    /// A node that needs more fails with TARE_LIMIT_EXCEEDED before allocating. 0: the limit that
    /// the model was read with (tare_model_read_options), or else the machine's memory.
    uint64_t memory_bytes;
} tare_session_options;
/// As spin_us: idle threads sleep at once.
#define TARE_SPIN_NONE (-1)

/// Creates a session and starts its threads. The model must outlive the session and must not change
/// while it exists. The first run on inputs of new shapes makes a plan for these shapes, with
/// packed weights. options may be NULL. The caller destroys *out.
TARE_API tare_status tare_session_create(const tare_model *model,
                                         const tare_session_options *options, tare_session **out,
                                         tare_error *err);
/// Stops the threads and frees the session; it must be the last call. NULL is allowed.
TARE_API void tare_session_destroy(tare_session *session);
/// Resets the session's state (a decoder's cache, running statistics) to the model's values, as in
/// a new session. Plans and packed weights stay. A run that fails may leave the state half changed;
/// this call repairs it.
TARE_API tare_status tare_session_reset(tare_session *session, tare_error *err);
/// The number of threads that share the work, the caller included.
TARE_API int tare_session_thread_count(const tare_session *session);
/// Pins the calling thread to the first CPU of `affinity`, the one that a session with this
/// affinity leaves to its caller. New threads inherit the CPU of the thread that starts them, so
/// create sessions before this call. Errors as for `affinity` of tare_session_create.
TARE_API tare_status tare_thread_keep(const char *affinity, tare_error *err);
/// Runs the model once. inputs: one tensor per model input. outputs: room for output_capacity
/// tensors; *output_count becomes their number (nested tuples are flattened from left to right).
/// The caller releases the outputs; after a failure there are none. TARE_INVALID_ARGUMENT for an
/// input of another dtype or number of dimensions than the model states, with the input's name; for
/// shapes that an operator does not accept, with the node; and if there is too little room.
TARE_API tare_status tare_session_run(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs,
                                      size_t output_capacity, size_t *output_count,
                                      tare_error *err);
/// As tare_session_run, into tensors of the caller, such as outputs of an earlier run. Their
/// dtypes, shapes and quantization parameters must be those of the outputs. They must not be shared
/// with others and must not overlap an input. Once a plan for the input shapes exists, such a run
/// allocates no memory, except inside oneDNN (float layers) and in steps of the kind "call".
TARE_API tare_status tare_session_run_into(tare_session *session, const tare_tensor *const *inputs,
                                           size_t input_count, tare_tensor *const *outputs,
                                           size_t output_count, tare_error *err);
/// As tare_session_run, by names. inputs: [input_count], named by input_names, in any order; the
/// model's last inputs may be left out if they have defaults. outputs: [output_count], filled with
/// the outputs that output_names names, in that order. tare/shapes.h lists the names. The caller
/// releases the outputs. TARE_NOT_FOUND, with a suggestion, for a name that the model does not
/// have; TARE_INVALID_ARGUMENT for an input that is missing or given twice.
TARE_API tare_status tare_session_run_named(tare_session *session, const char *const *input_names,
                                            const tare_tensor *const *inputs, size_t input_count,
                                            const char *const *output_names, tare_tensor **outputs,
                                            size_t output_count, tare_error *err);
/// As tare_model_write, with packed weights: the weights of integer layers are stored a second
/// time, in the order in which kernels read them, which is the same for every instruction set. The
/// file is about twice as large; a session of it packs nothing and reads the packed weights from
/// the mapped file. A later version of the library that needs another order packs them again.
TARE_API tare_status tare_model_write_packed(const tare_model *model, const char *path,
                                             tare_error *err);
/// The number of output tensors of the latest run; before the first run, of the graph. That number
/// is exact for exported programs and ONNX files; for other models, unless the model returns the
/// tuple of a module or function (LSTM) as it is.
TARE_API size_t tare_session_output_count(const tare_session *session);
/// The name of the index-th output tensor; NULL past the end. Names are unique. For an ONNX file
/// they are the names in the file. Otherwise a name is the path in the value that the model
/// returns, made of keys of mappings, fields of named tuples, and positions: "logits", "both.0". A
/// single tensor is "output", an item of a tuple "output.0". Lent until the next run.
TARE_API const char *tare_session_output_name(const tare_session *session, size_t index);
/// Writes how the outputs of the latest run nest in what the model returns (before the first run:
/// as far as the graph tells), as JSON. A number is the output tensor at this position. A container
/// is
/// {"type": "tuple", "items": [..]}; its type is "tuple", "list", "dict", "namedtuple" or "object"
/// (another class). A dict, a named tuple and most objects have "keys", one per item; the last two
/// have the "name" of their class. {"value": ..} is a result that is not a tensor. Quantizing keeps
/// the nesting. TARE_IO if the writer fails.
TARE_API tare_status tare_session_write_nesting(const tare_session *session, tare_writer write,
                                                void *user, tare_error *err);
/// What tare_model_verify has checked.
typedef struct tare_model_verified {
    uint32_t struct_size;
    uint64_t digest_count; // tensors whose digests were checked when the file was read; 0: the file
                           // has none, or they were ignored
    uint64_t packed_count; // packed weights that equal the result of packing
} tare_model_verified;
/// Packs the weights of a model from a packed file again and compares them with the file's.
/// TARE_MALFORMED_FILE names weights that differ; TARE_UNSUPPORTED names those in a form that this
/// version does not know.
TARE_API tare_status tare_model_verify(const tare_model *model, tare_model_verified *out,
                                       tare_error *err);
/// Called after every node with its first result tensor, lent for the call (NULL if the result is
/// not a tensor). A failure ends the run, which returns it.
typedef tare_status (*tare_node_watcher)(void *user, const char *node_name,
                                         const tare_tensor *result, tare_error *err);
/// Sets the watcher of later runs; NULL: none. Runs with a watcher execute node by node, without a
/// plan. A watcher must not call its session.
TARE_API void tare_session_watch(tare_session *session, tare_node_watcher watcher, void *user);

// --- the steps and the memory of a plan ---

/// The size of tare_step.why.
#define TARE_STEP_WHY 192
/// One step of a plan, which computes one or several nodes.
typedef struct tare_step {
    uint32_t struct_size;
    const char *kind;         // "quantized layer", "reorder", "call"
    const char *node;         // the first node that it computes or works for; "": none
    const char *op;           // operator of that node: "conv2d"; "": none
    const char *const *nodes; // all nodes that it computes, in order, fused ones included
    size_t node_count;
    int input_ndim, output_ndim; // of the first tensor that it reads and writes
    int64_t input_shape[TARE_MAX_DIMS], output_shape[TARE_MAX_DIMS];
    int64_t input_bytes, output_bytes; // of all tensors that it reads and writes, without weights
    int64_t weight_bytes;              // as packed
    int64_t macs;                      // multiply-accumulates
    const char *kernel;                // "qu8_product__avx512vnni"
    char why[TARE_STEP_WHY];           // why this kernel, in words; may be empty
    bool multiplies_codes;             // multiplies integers, not floats
    /// oneDNN computes it in float: the last bits may differ between machines.
    bool bits_may_differ;
    size_t run_count;                       // runs while profiling was on; 0: there are no times
    uint64_t lower_ns, median_ns, upper_ns; // quartiles over the latest of these runs
} tare_step;

/// Switches the timing of steps on or off and clears earlier times. Timing costs about 30 ns per
/// step and run.
TARE_API tare_status tare_session_profile(tare_session *session, bool on, tare_error *err);
/// The number of steps in the plan of the latest run. 0 if there is no plan: before the first run,
/// in sessions with `reference` or a watcher, and for models whose shapes depend on data. Their
/// nodes run one by one.
TARE_API size_t tare_session_step_count(const tare_session *session);
/// Reads the index-th step of that plan. False past the end. Strings are lent until the next run,
/// which may replace the plan.
TARE_API bool tare_session_get_step(const tare_session *session, size_t index, tare_step *out);

/// Reads the index-th step of the graphs that operators of control flow run (cond, map, scan,
/// while_loop): those of the newest plan of each graph, in the order in which the graphs first ran.
/// *path: that of the graph; a node of it is called PATH/NODE. Times are those of one round,
/// and part of the time of the step that runs the graph. False past the end. Strings are lent as
/// those of tare_session_get_step.
TARE_API bool tare_session_get_nested_step(const tare_session *session, size_t index,
                                           tare_step *out, const char **path);

/// The memory of a plan. A block holds the buffers of all values between steps. There is one
/// block, or one per thread if threads run whole samples of a batch. If samples run one by one, the
/// last steps may run once for the whole batch; they have a block of their own.
typedef struct tare_plan_memory {
    uint32_t struct_size;
    int64_t block_bytes; // of one block
    int64_t least_bytes; // the most bytes that are in use at one time: a lower bound of block_bytes
    int64_t weight_bytes; // of packed weights
    int64_t block_count;
    int64_t tail_bytes; // of the block of steps that run once for the whole batch
    size_t tail_step;   // the first of these steps; 0: there are none
} tare_plan_memory;
/// The buffer of one value.
typedef struct tare_plan_place {
    uint32_t struct_size;
    int64_t offset, bytes;        // in its block
    size_t first_step, last_step; // the step that writes it, and the last one that reads it
    bool is_tail;                 // it is in the block of steps that run once for the whole batch
} tare_plan_place;
/// Reads the memory of the plan of the latest run. False if there is no plan.
TARE_API bool tare_session_get_memory(const tare_session *session, tare_plan_memory *out);
/// Reads the index-th buffer of that plan. False past the end, and if there is no plan.
TARE_API bool tare_session_get_place(const tare_session *session, size_t index,
                                     tare_plan_place *out);

/// The instruction set level in use: "scalar", "avx2", "avxvnni", "avx512vnni" or "amxint8"; on
/// 64-bit Arm "scalar", "neon", "neondot" or "i8mm". TARE_ISA in the environment selects a lower
/// one. Linux is asked to let the process use AMX unless TARE_ISA names a lower level. Static
/// storage.
TARE_API const char *tare_isa_name(void);

#ifdef __cplusplus
}
#endif
#endif
