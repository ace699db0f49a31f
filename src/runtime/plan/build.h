// SPDX-License-Identifier: Apache-2.0
// The contents of a plan.
#ifndef RUNTIME_PLAN_BUILD_H
#define RUNTIME_PLAN_BUILD_H

#include "core/memory/alloc.h"
#include "core/memory/pointer_index.h"
#include "ops/op.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/step.h"

enum { BUFFER_ALIGNMENT = 64 };
#define NOTHING SIZE_MAX // no buffer, value, record or group

typedef enum buffer_kind {
    BUFFER_ARENA,    // in the plan's memory
    BUFFER_CONSTANT, // a tensor of a module, or computed from such tensors
    BUFFER_INPUT,    // the caller's; its address changes with every run
    BUFFER_OUTPUT,   // returned to the caller; allocated for every run
    BUFFER_STATE,    // the session's; persists between runs
} buffer_kind;

/// A buffer that steps read and write. Views share their base's buffer.
typedef struct plan_buffer {
    buffer_kind kind;
    size_t bytes, offset; // offset: within the plan's memory
    size_t first, last;   // first and last step that writes or reads it
    size_t whole,
        shift;    // for a slice: the buffer it is part of, and its first byte there; else NOTHING
    size_t pitch; // of a slice: bytes from a pixel to the next; 0: contiguous
    bool has_slices;
    void *data;
} plan_buffer;

typedef struct plan_step {
    const step_class *class;
    void *state;
    const char *node_name;
    step_facts facts;
} plan_step;

/// A tensor whose data pointer is set in every run to the address of its buffer.
typedef struct placed_tensor {
    tare_tensor *tensor;
    size_t buffer;
} placed_tensor;

typedef struct plan_output {
    const tare_tensor *like;  // shape of one sample
    const tare_tensor *whole; // shape of all samples; equal to `like` for a single sample
    size_t buffer;            // NOTHING: the plan's tail computes it
    bool is_copied;           // the buffer is an input, a constant, another output, a slice
                              // of another one, or consists of slices
} plan_output;

/// A tensor of the model that a run modifies: in place, or by a copy at the end.
typedef struct plan_state {
    const char *path;   // lent by the graph
    tare_tensor *first; // its value before the run, one of the plan's tensors
    tare_tensor *last;  // its value after the run; `first`: unchanged
    size_t buffer;      // of `first`
    size_t from;        // buffer of `last`; equal to `buffer`: written in place
} plan_state;

/// The result of each sample for the plan's tail (plan/batched_tail.h): a row of a buffer of the
/// tail.
typedef struct plan_handover {
    size_t buffer, bytes; // bytes: of one sample
    unsigned char *rows;  // of all samples; NULL: there is no tail
} plan_handover;

struct plan {
    plan_setting setting;
    arena memory;          // of everything that steps and calls refer to; lives as long as the plan
    arena run_memory;      // scratch of calls, empty between runs
    tare_tensor **tensors; // references to all tensors of calls and steps
    size_t tensor_count, tensor_capacity;
    plan_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    plan_step *steps;
    size_t step_count, step_capacity;
    placed_tensor *moving; // of inputs and outputs
    size_t moving_count, moving_capacity;
    int64_t samples;       // number of samples to run one by one; their results are concatenated
    bool observes;         // a step is an observer
    bool joins_rows;       // a layer is planned as setting.samples says
    tare_tensor **inputs;  // lent, from `tensors`; shapes of one sample
    size_t *input_buffers; // NOTHING: the input is not read
    size_t input_count;
    plan_output *outputs;
    size_t output_count, output_capacity;
    plan_state *states; // in `memory`
    size_t state_count;
    call_names output_names; // in `memory`; empty in a plan of a single call
    plan_profile *profile;   // NULL: runs are not timed
    plan_replicas *replicas; // NULL: there are none
    plan *tail;              // the last steps, for all samples at once; NULL: none
    plan_handover handover;
    bool is_of_call; // its block is lent, and may differ in every run
    void *block;     // memory of BUFFER_ARENA
    size_t block_bytes, least_bytes;
};

/// Adds a reference to a tensor that the plan uses.
tare_status tare__plan_keep_tensor(plan *p, tare_tensor *t, tare_error *err);

/// A step over at least this many elements is divided among threads.
enum { LEAST_SHARED_ELEMENTS = 1 << 15 };
static inline thread_pool *tare__threads_for(const plan_run_state *run, int64_t elements) {
    return elements >= LEAST_SHARED_ELEMENTS ? run->kernels->space.pool : NULL;
}

static inline void *tare__buffer_data(const plan_run_state *run, size_t buffer) {
    return run->plan->buffers[buffer].data;
}

// plan/run.c
/// Runs one sample of the inputs and outputs.
tare_status tare__plan_run_sample(plan *p, const tare_tensor *const *inputs,
                                  tare_tensor *const *outputs, int64_t sample, tare_error *err);

// plan/memory.c
/// True if the buffer has memory of its own in the plan's block.
bool tare__plan_is_laid_out(const plan_buffer *buffer);
/// Assigns offsets to the buffers in the plan's memory and allocates the block, except for the plan
/// of a single call. TARE_UNSUPPORTED if a run would need more than `most` bytes.
tare_status tare__plan_lay_out(plan *p, uint64_t most, tare_error *err);
/// Uses this block of block_bytes for the buffers from now on.
void tare__plan_take_block(plan *p, void *block);

#endif
