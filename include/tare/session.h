// SPDX-License-Identifier: Apache-2.0
/// Sessions: run a model. A run never writes to the model: any number of sessions may share one, in
/// any number of threads, and come and go while others run. What a run of torch's module would
/// change (running statistics of batch norms in training, observers' statistics, tensors that are
/// written in place) is the session's own: it begins as the model has it, stays from run to run of
/// that session, and goes with it. tare_calibrate and tare_calibrate_data change the model.
///
/// A session has one caller at a time. A call that begins while another call of that session is
/// inside, in this thread or another, is refused with TARE_INVALID_ARGUMENT; calls without a status
/// find no plan then, or do nothing. tare_session_destroy must be the last call.
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
    /// Float convolutions and linear layers may round their weights and inputs to bfloat16 (8
    /// bits), where that is faster: each product is off by less than 2^-7.9 of its size. Sums and
    /// results are float32. TARE_UNSUPPORTED where the machine (AVX512-BF16) or the build (oneDNN)
    /// cannot.
    bool bfloat16;
    /// Times kernels that give the same bits, on this machine and for each layer's shape, when a
    /// plan is made, which takes some milliseconds per layer, and takes the fastest. Results do not
    /// depend on it.
    bool tunes;
    /// Where to keep what was timed, so that it is timed once: a file that is made when it is not
    /// there, and written by the first run on inputs of new shapes. Asks for `tunes`. NULL: what
    /// TARE_TUNE_CACHE in the environment names, if that does. TARE_MALFORMED_FILE for another
    /// file.
    const char *tune_cache;
    /// Processors of the threads, by the system's numbers: "0,2-5", as many as threads; with
    /// thread_count 0 there are as many threads as processors. Each thread stays on its own; the
    /// first is the caller's, which no session moves (see tare_thread_keep). NULL: the system
    /// places threads. TARE_INVALID_ARGUMENT for those that the calling thread may not use,
    /// TARE_UNSUPPORTED on systems other than Linux.
    const char *affinity;
    /// Microseconds that a thread looks for work before it sleeps, up to 1000000; 0: 5;
    /// TARE_SPIN_NONE: none. Whoever looks keeps a processor busy, also between runs, which begin
    /// sooner for it. Within a run it is 20 at least, unless it is none. TARE_INVALID_ARGUMENT
    /// where there is one thread, which waits for no other.
    int32_t spin_us;
    /// Bytes that the results of a run may take at a time, beside inputs and the model: a node that
    /// wants more is refused, with TARE_LIMIT_EXCEEDED, before it gets them. 0: the limit that the
    /// model was read with (tare_model_read_options), or else the machine's memory.
    uint64_t memory_bytes;
} tare_session_options;
#define TARE_SPIN_NONE (-1)

/// Chooses kernels. The model must outlive the session, and nobody may change it meanwhile: the
/// first run on inputs of some shapes makes a plan for them, with packed weights. A model that
/// changes when torch runs it is copied but for its tensors. options may be NULL.
TARE_API tare_status tare_session_create(const tare_model *model,
                                         const tare_session_options *options, tare_session **out,
                                         tare_error *err);
TARE_API void tare_session_destroy(tare_session *session); // NULL is fine
/// The threads of a session, its caller among them.
TARE_API int tare_session_thread_count(const tare_session *session);
/// Keeps the calling thread on the first of the processors that `affinity` names, where a session
/// with that affinity expects its caller. Threads that it starts later inherit that, so sessions
/// come first. Errors as tare_session_create's.
TARE_API tare_status tare_thread_keep(const char *affinity, tare_error *err);
/// Runs the model once. inputs: one tensor per model input. outputs: output_capacity tensors at
/// most; *output_count tells how many there are (nested tuples flattened left to right). The caller
/// releases them. TARE_INVALID_ARGUMENT for inputs whose shapes do not fit, at the node where they
/// do not.
TARE_API tare_status tare_session_run(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs,
                                      size_t output_capacity, size_t *output_count,
                                      tare_error *err);
/// The same into tensors of the caller's, as a run before handed them out: dtype, shape and, where
/// they are quantized, parameters are those of the outputs. No one else may hold them, and they
/// overlap no input. For inputs of shapes seen before, such a run allocates no memory, but for
/// oneDNN's own in float layers, for steps of the kind "call", and where there is no plan.
TARE_API tare_status tare_session_run_into(tare_session *session, const tare_tensor *const *inputs,
                                           size_t input_count, tare_tensor *const *outputs,
                                           size_t output_count, tare_error *err);
/// Writes the model as tare_model_write does, with the weights of integer layers in the order of
/// the kernels, too: the file is about twice as large, and a session of it packs nothing and reads
/// them where the file is mapped. They suit every instruction set; what a later version wants in
/// another order, it packs again.
TARE_API tare_status tare_model_write_packed(const tare_model *model, const char *path,
                                             tare_error *err);
/// What tare_model_verify found right.
typedef struct tare_model_verified {
    uint32_t struct_size;
    uint64_t digest_count; // of tensors that were held against the file's digests when it was read;
                           // 0: the file has none, or they were ignored
    uint64_t packed_count; // of packed weights that are, to the byte, what packing gives
} tare_model_verified;
/// Packs the weights of a model anew whose file has them packed, and compares. TARE_MALFORMED_FILE
/// names those that differ, TARE_UNSUPPORTED those in a form that this version does not know.
TARE_API tare_status tare_model_verify(const tare_model *model, tare_model_verified *out,
                                       tare_error *err);
/// Called after every node with its first result tensor, lent for the call (NULL if it is not a
/// tensor); a failure ends the run.
typedef tare_status (*tare_node_watcher)(void *user, const char *node_name,
                                         const tare_tensor *result, tare_error *err);
/// Sets the watcher of later runs; NULL: none. A watcher may not call its session.
TARE_API void tare_session_watch(tare_session *session, tare_node_watcher watcher, void *user);

// --- what a run consists of ---

/// The first run on inputs of some shapes makes a plan of steps for them; where there is none (see
/// tare_session_step_count), nodes run one by one.
#define TARE_STEP_WHY 192
typedef struct tare_step {
    uint32_t struct_size;
    const char *kind;         // "code layer", "reorder", "call"
    const char *node;         // that it begins with, or works for; "": the plan's own
    const char *op;           // of that node: "conv2d"; "": none of an operator's
    const char *const *nodes; // all that it computes, in order; those fused into it, too
    size_t node_count;
    int input_ndim, output_ndim; // of the first tensor that it reads, and writes
    int64_t input_shape[TARE_MAX_DIMS], output_shape[TARE_MAX_DIMS];
    int64_t input_bytes, output_bytes; // of all of them, without weights
    int64_t weight_bytes;              // as packed
    int64_t macs;                      // multiply-accumulates
    const char *kernel;                // what computes: "qu8_product__avx512vnni"
    char why[TARE_STEP_WHY];           // why that, in words; may be empty
    bool multiplies_codes;             // else floats; where there is something to multiply
    /// It is computed by a library's float arithmetic: its last bits are not ours to fix, and may
    /// differ between machines.
    bool bits_may_differ;
    size_t run_count;                       // while profiling was on; 0: the times mean nothing
    uint64_t lower_ns, median_ns, upper_ns; // quartiles of the latest of these runs
} tare_step;

/// Times every step of later runs, and forgets the times of earlier ones; a session that is not
/// profiled looks at no clock. Costs some 30 ns per step and run.
TARE_API tare_status tare_session_profile(tare_session *session, bool on, tare_error *err);
/// Steps of the plan of the latest run; 0 where there is none: no run yet, a session of references
/// or with a watcher, or a model whose shapes depend on data.
TARE_API size_t tare_session_step_count(const tare_session *session);
/// False past the last one. Texts are lent until the next run, which may replace the plan.
TARE_API bool tare_session_get_step(const tare_session *session, size_t index, tare_step *out);

/// Memory of that plan. A block holds all results between steps; its pieces are places. There is
/// one block, or one for each thread where threads run whole samples of a batch. Where samples run
/// one by one, the last steps may run once for all of them, in a block of their own.
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
/// False where there is no plan, and past the last place.
TARE_API bool tare_session_get_memory(const tare_session *session, tare_plan_memory *out);
TARE_API bool tare_session_get_place(const tare_session *session, size_t index,
                                     tare_plan_place *out);

/// The instruction set level in use: "scalar", "avx2", "avxvnni" or "avx512vnni", on 64-bit Arm
/// "scalar", "neon", "neondot" or "i8mm" (TARE_ISA in the environment forces a lower one). Static
/// storage.
TARE_API const char *tare_isa_name(void);

#ifdef __cplusplus
}
#endif
#endif
