// SPDX-License-Identifier: Apache-2.0
// What a plan consists of.
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
    BUFFER_CONSTANT, // a module's tensor, or what was computed of them
    BUFFER_INPUT,    // the caller's; data changes with every run
    BUFFER_OUTPUT,   // handed out; made anew for every run
    BUFFER_STATE,    // the session's; stays from run to run
} buffer_kind;

/// A buffer that steps read and write. Views share their base's buffer.
typedef struct plan_buffer {
    buffer_kind kind;
    size_t bytes, offset; // within the plan's memory
    size_t first, last;   // steps that write and read it
    size_t whole, shift;  // the buffer that it is a slice of, and its first byte; NOTHING: none
    size_t pitch;         // of a slice: bytes from a pixel to the next; 0: without gaps
    bool has_slices;
    void *data;
} plan_buffer;

typedef struct plan_step {
    const step_class *class;
    void *state;
    const char *node_name;
    step_facts facts;
} plan_step;

/// A tensor whose data pointer follows its buffer, which changes from run to run.
typedef struct placed_tensor {
    tare_tensor *tensor;
    size_t buffer;
} placed_tensor;

typedef struct plan_output {
    const tare_tensor *like;  // of one sample
    const tare_tensor *whole; // of all; like, where there is one
    size_t buffer;            // NOTHING: the plan's tail makes it, or what it is the tail of
    bool is_copied;           // the buffer is an input's, a constant's, another output's, a slice
                              // of another one or made of slices
} plan_output;

/// A tensor of the model that a run writes over: in place, or by a copy at the end.
typedef struct plan_state {
    const char *path;   // lent by the graph
    tare_tensor *first; // among the plan's: what a run finds
    tare_tensor *last;  // what it leaves; `first`: nothing else
    size_t buffer;      // of `first`
    size_t from;        // of `last`; the same: written in place
} plan_state;

/// What each sample leaves for the plan's tail (plan/batched_tail.h): a row of a buffer there.
typedef struct plan_handover {
    size_t buffer, bytes; // of one sample
    unsigned char *rows; // of all of them; NULL: there is no tail
} plan_handover;

struct plan {
    plan_setting setting;
    arena memory;          // what steps and calls point to; lives as long as the plan
    arena run_memory;      // calls' scratch, empty between runs
    tare_tensor **tensors; // references on every tensor that a call or step knows
    size_t tensor_count, tensor_capacity;
    plan_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    plan_step *steps;
    size_t step_count, step_capacity;
    placed_tensor *moving; // of inputs and outputs
    size_t moving_count, moving_capacity;
    int64_t samples;      // that it runs for in turn; their results follow each other
    bool observes;        // a step looks at what passes, for statistics
    tare_tensor **inputs; // lent: among tensors; of one sample
    size_t *input_buffers; // NOTHING: nobody reads it
    size_t input_count;
    plan_output *outputs;
    size_t output_count, output_capacity;
    plan_state *states; // in `memory`
    size_t state_count;
    call_names output_names; // in `memory`; empty in the plan of a call
    plan_profile *profile;   // NULL: runs are not timed
    plan_replicas *replicas; // NULL: there are none
    plan *tail;              // its last steps, of all samples at once; NULL: there is none
    plan_handover handover;
    bool is_of_call; // its block is lent, and may be another in every run
    void *block;     // BUFFER_ARENA
    size_t block_bytes, least_bytes;
};

/// The plan holds a reference from here on.
tare_status tare__plan_keep_tensor(plan *p, tare_tensor *t, tare_error *err);

/// A step that has this many elements to look at is shared by threads.
enum { LEAST_SHARED_ELEMENTS = 1 << 15 };
static inline thread_pool *tare__threads_for(const plan_run_state *run, int64_t elements) {
    return elements >= LEAST_SHARED_ELEMENTS ? run->kernels->space.pool : NULL;
}

static inline void *tare__buffer_data(const plan_run_state *run, size_t buffer) {
    return run->plan->buffers[buffer].data;
}

// plan/run.c
/// Runs one of the samples that inputs and outputs consist of.
tare_status tare__plan_run_sample(plan *p, const tare_tensor *const *inputs,
                                  tare_tensor *const *outputs, int64_t sample, tare_error *err);

// plan/memory.c
/// Has it a buffer of its own in the plan's memory?
bool tare__plan_is_laid_out(const plan_buffer *buffer);
/// Gives the buffers of the plan's memory their offsets, and allocates it, but for a plan of a
/// call. TARE_UNSUPPORTED where a run would take more than `most` bytes.
tare_status tare__plan_lay_out(plan *p, uint64_t most, tare_error *err);
/// The buffers are in this block of block_bytes from now on.
void tare__plan_take_block(plan *p, void *block);

#endif
