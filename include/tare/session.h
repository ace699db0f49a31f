// SPDX-License-Identifier: Apache-2.0
/// Sessions run a model. A run never writes to the model: any number of sessions may share one, in
/// any number of threads, and may be created and destroyed while others run. State that a run of
/// torch's module would change (running statistics of batch norms in training, observers'
/// statistics, tensors that are written in place) belongs to the session: it starts as the model
/// has it and is kept between runs. tare_calibrate and tare_calibrate_data do change the model.
///
/// A session has one caller at a time. A call that starts while another call of that session is
/// active, in this thread or another, fails with TARE_INVALID_ARGUMENT; calls without a status then
/// find no plan, or do nothing. tare_session_destroy must be the last call.
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
    /// included; 0: 1. They sleep between runs. Integer results do not depend on the number; those
    /// of float convolutions and linear layers (oneDNN) may differ by rounding. Short layers and
    /// other operators run on the caller alone.
    int thread_count;
    bool reference; // run by the operators' references only, for comparison
    /// Computes float convolutions, linear layers and products by tare's own code instead of
    /// oneDNN: slower, with bits that depend neither on the machine nor on the number of threads.
    /// TARE_FLOATS=portable in the environment does so for every session.
    bool portable_floats;
    /// Lets float convolutions and linear layers round weights and inputs to bfloat16 (8 bits of
    /// precision) where that is faster: the relative error of each product is below 2^-7.9. Sums
    /// and results are float32. TARE_UNSUPPORTED where the machine (AVX512-BF16) or the build
    /// (oneDNN) cannot.
    bool bfloat16;
    /// Times the kernels of equal bits for each layer's shape when a plan is made, and uses the
    /// fastest; takes some milliseconds per layer. Results do not depend on it.
    bool tunes;
    /// The file that keeps these times between sessions; it is created if it does not exist, and
    /// written by the first run on inputs of new shapes. Implies `tunes`. NULL: the file that
    /// TARE_TUNE_CACHE in the environment names, if set. TARE_MALFORMED_FILE for a file of another
    /// kind.
    const char *tune_cache;
    /// The CPUs of the threads, by the system's numbers: "0,2-5", as many as threads; with
    /// thread_count 0 there are as many threads as CPUs. Each thread is pinned to its own. The
    /// first is the caller's, which no session moves (see tare_thread_keep). NULL: the system
    /// places threads. TARE_INVALID_ARGUMENT for CPUs that the calling thread may not use,
    /// TARE_UNSUPPORTED on systems other than Linux.
    const char *affinity;
    /// Microseconds that an idle thread spins before it sleeps, up to 1000000; 0: 5;
    /// TARE_SPIN_NONE: none. A spinning thread keeps its CPU busy, also between runs, which then
    /// start sooner. Within a run the time is at least 20, unless it is none. TARE_INVALID_ARGUMENT
    /// with one thread, which waits for no other.
    int32_t spin_us;
    /// The most bytes that the results of a run may take at a time, besides inputs and the model. A
    /// node that needs more fails with TARE_LIMIT_EXCEEDED before they are allocated. 0: the limit
    /// that the model was read with (tare_model_read_options), or else the machine's memory.
    uint64_t memory_bytes;
} tare_session_options;
#define TARE_SPIN_NONE (-1)

/// Creates a session and starts its threads. The model must outlive it and must not change
/// meanwhile. The first run on inputs of new shapes makes a plan for them, with packed weights. The
/// modules of a model that a run would change (training) are copied, without their tensors. options
/// may be NULL. The caller destroys *out.
TARE_API tare_status tare_session_create(const tare_model *model,
                                         const tare_session_options *options, tare_session **out,
                                         tare_error *err);
/// Stops the threads and frees the session; it must be the last call. NULL is allowed.
TARE_API void tare_session_destroy(tare_session *session);
/// Gives the tensors that runs have written over (a decoder's cache, running statistics) the values
/// that the model has, as in a new session. Plans and packed weights stay. After a run that failed
/// the session's state may be that of no run: this mends it, too.
TARE_API tare_status tare_session_reset(tare_session *session, tare_error *err);
/// The number of threads that share the work, the caller included.
TARE_API int tare_session_thread_count(const tare_session *session);
/// Pins the calling thread to the first processor that `affinity` names, where a session with that
/// affinity expects its caller. Threads inherit this from the thread that starts them, so create
/// sessions before. Errors as for the affinity of tare_session_create.
TARE_API tare_status tare_thread_keep(const char *affinity, tare_error *err);
/// Runs the model once. inputs: one tensor per model input. outputs: room for output_capacity
/// tensors; *output_count becomes their number (nested tuples flattened from left to right). The
/// caller releases the outputs; after a failure there are none. TARE_INVALID_ARGUMENT for inputs
/// of another dtype than the model states, with the input's name; whose shapes do not fit, with the
/// input's name where the number of dimensions is wrong, else with the node; and for too little
/// room.
TARE_API tare_status tare_session_run(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs,
                                      size_t output_capacity, size_t *output_count,
                                      tare_error *err);
/// As tare_session_run, into tensors of the caller's, such as an earlier run handed out: dtype,
/// shape and quantization parameters must be those of the outputs. They must not be shared and must
/// not overlap an input. For inputs of known shapes such a run allocates no memory, except inside
/// oneDNN (float layers), in steps of the kind "call", and where there is no plan.
TARE_API tare_status tare_session_run_into(tare_session *session, const tare_tensor *const *inputs,
                                           size_t input_count, tare_tensor *const *outputs,
                                           size_t output_count, tare_error *err);
/// As tare_session_run, by names. inputs: input_count tensors under the names of input_names, in
/// any order. Those that have defaults and stand at the model's end may be left out. outputs: room
/// for output_count tensors, those of output_names in that order; tare/shapes.h lists the names.
/// The caller releases them. TARE_NOT_FOUND, with a suggestion, for a name that the model does not
/// have; TARE_INVALID_ARGUMENT for an input that is missing or given twice.
TARE_API tare_status tare_session_run_named(tare_session *session, const char *const *input_names,
                                            const tare_tensor *const *inputs, size_t input_count,
                                            const char *const *output_names, tare_tensor **outputs,
                                            size_t output_count, tare_error *err);
/// As tare_model_write, with the weights of integer layers also in the order of the kernels. The
/// file is about twice as large; a session of it packs nothing and reads them from the mapped file.
/// They suit every instruction set. A later version that needs another order packs them again.
TARE_API tare_status tare_model_write_packed(const tare_model *model, const char *path,
                                             tare_error *err);
/// The number of tensors that the latest run gave. Before the first run, as far as the graph tells:
/// exact for exported programs and ONNX files, and where no module or function returns several
/// tensors (LSTM) that the model returns as they are.
TARE_API size_t tare_session_output_count(const tare_session *session);
/// The name of the index-th of them; NULL past the end. Names are unique. Of an ONNX file they are
/// the file's. Otherwise an output is called by its path in what the model returns, with the keys
/// of mappings, the fields of named tuples, and positions: "logits", "both.0". A single tensor is
/// "output"; an item of a tuple "output.0". Lent until the next run.
TARE_API const char *tare_session_output_name(const tare_session *session, size_t index);
/// What tare_model_verify found right.
typedef struct tare_model_verified {
    uint32_t struct_size;
    uint64_t digest_count; // of tensors that were held against the file's digests when it was read;
                           // 0: the file has none, or they were ignored
    uint64_t packed_count; // of packed weights that are, to the byte, what packing gives
} tare_model_verified;
/// Packs the weights of a model from a packed file again and compares. TARE_MALFORMED_FILE names
/// those that differ; TARE_UNSUPPORTED names those in a form that this version does not know.
TARE_API tare_status tare_model_verify(const tare_model *model, tare_model_verified *out,
                                       tare_error *err);
/// Called after every node with its first result tensor, lent for the call (NULL if the result is
/// no tensor). A failure ends the run.
typedef tare_status (*tare_node_watcher)(void *user, const char *node_name,
                                         const tare_tensor *result, tare_error *err);
/// Sets the watcher of later runs; NULL: none. Runs with a watcher use the interpreter. A watcher
/// must not call its session.
TARE_API void tare_session_watch(tare_session *session, tare_node_watcher watcher, void *user);

// --- what a run consists of ---

/// One step of a plan. The first run on inputs of new shapes makes a plan of steps for them; where
/// there is no plan (see tare_session_step_count), nodes run one by one.
#define TARE_STEP_WHY 192
typedef struct tare_step {
    uint32_t struct_size;
    const char *kind;         // "code layer", "reorder", "call"
    const char *node;         // the first that it computes or works for; "": none
    const char *op;           // operator of that node: "conv2d"; "": none
    const char *const *nodes; // all that it computes, in order, fused ones included
    size_t node_count;
    int input_ndim, output_ndim; // of the first tensor that it reads, and writes
    int64_t input_shape[TARE_MAX_DIMS], output_shape[TARE_MAX_DIMS];
    int64_t input_bytes, output_bytes; // of all of them, without weights
    int64_t weight_bytes;              // as packed
    int64_t macs;                      // multiply-accumulates
    const char *kernel;                // "qu8_product__avx512vnni"
    char why[TARE_STEP_WHY];           // why this kernel, in words; may be empty
    bool multiplies_codes;             // products are of integers, not of floats
    /// Computed by oneDNN's float arithmetic: its last bits may differ between machines.
    bool bits_may_differ;
    size_t run_count;                       // while profiling was on; 0: the times mean nothing
    uint64_t lower_ns, median_ns, upper_ns; // quartiles of the latest of these runs
} tare_step;

/// Switches the timing of steps on or off and clears earlier times. It costs about 30 ns per step
/// and run; without it no clock is read.
TARE_API tare_status tare_session_profile(tare_session *session, bool on, tare_error *err);
/// The number of steps in the plan of the latest run. 0 where there is none: before the first run,
/// in sessions with `reference` or a watcher, and for models whose shapes depend on data.
TARE_API size_t tare_session_step_count(const tare_session *session);
/// Reads a step of that plan. False past the end. Texts are lent until the next run, which may
/// replace the plan.
TARE_API bool tare_session_get_step(const tare_session *session, size_t index, tare_step *out);

/// The memory of a plan. One block holds all values between steps; a place is the part of it that
/// one value has. There is one block, or one per thread where threads run whole samples of a batch.
/// Where samples run one by one, the last steps may run once for all of them, in a block of their
/// own.
typedef struct tare_plan_memory {
    uint32_t struct_size;
    int64_t block_bytes;  // of one block
    int64_t least_bytes;  // the most that lives at once: no block could be smaller
    int64_t weight_bytes; // packed
    int64_t block_count;
    int64_t tail_bytes; // of the block of steps that run once for all samples
    size_t tail_step;   // the first of them; 0: none do
} tare_plan_memory;
typedef struct tare_plan_place {
    uint32_t struct_size;
    int64_t offset, bytes;        // in the block of its steps
    size_t first_step, last_step; // that write and read it
    bool is_tail;                 // that block is the one of steps that run once for all samples
} tare_plan_place;
/// Reads the memory use of that plan. False where there is none.
TARE_API bool tare_session_get_memory(const tare_session *session, tare_plan_memory *out);
/// Reads one place of that plan's memory. False past the end, and where there is no plan.
TARE_API bool tare_session_get_place(const tare_session *session, size_t index,
                                     tare_plan_place *out);

/// The instruction set level in use: "scalar", "avx2", "avxvnni" or "avx512vnni"; on 64-bit Arm
/// "scalar", "neon", "neondot" or "i8mm". TARE_ISA in the environment selects a lower one. Static
/// storage.
TARE_API const char *tare_isa_name(void);

#ifdef __cplusplus
}
#endif
#endif
