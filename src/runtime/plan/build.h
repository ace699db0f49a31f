// SPDX-License-Identifier: Apache-2.0
// Inside of plans: what is known of a graph while its plan is made, and what a plan consists of.
#ifndef RUNTIME_PLAN_BUILD_H
#define RUNTIME_PLAN_BUILD_H

#include "core/memory/alloc.h"
#include "core/memory/pointer_index.h"
#include "ops/op.h"
#include "runtime/plan/plan.h"
#include "tare/session.h"

enum { PLACE_ALIGNMENT = 64 };
#define NOTHING SIZE_MAX // no place, value, record or group

// --- what a plan consists of ---

typedef enum place_kind {
    PLACE_ARENA,    // in the plan's memory
    PLACE_CONSTANT, // a module's tensor, or what was computed of them
    PLACE_INPUT,    // the caller's; data changes with every run
    PLACE_OUTPUT,   // handed out; made anew for every run
} place_kind;

/// A piece of memory that steps read and write. Views share their base's place.
typedef struct plan_place {
    place_kind kind;
    size_t bytes, offset; // within the plan's memory
    size_t first, last;   // steps that write and read it
    size_t whole, shift;  // the place that it is a part of, and the byte where; NOTHING: of none
    size_t pitch;         // of a part: bytes from a pixel to the next; 0: they follow each other
    bool has_parts;
    void *data;
} plan_place;

typedef struct plan_run_state {
    struct plan *plan;
    fast_context *fast;
    tare_error *err;
} plan_run_state;

/// What a step says of itself, for profiles.
typedef struct step_note {
    const char *kernel;      // what computes, if it has another name than the class
    char why[TARE_STEP_WHY]; // why it was chosen
    size_t weight_bytes;
    int64_t macs;          // as the operators' rows count them, unless it knows better
    bool multiplies_codes; // if the first tensor is one of codes, unless it knows better
    bool bits_may_differ;  // between machines: a library's arithmetic
} step_note;

/// A kind of step; `state` is its own.
typedef struct step_class {
    const char *name;
    tare_status (*run)(const plan_run_state *run, void *state);
    void (*destroy)(void *state); // NULL: state is in the plan's arena and owns nothing
    void (*describe)(const struct plan *p, const void *state, step_note *out);
    /// The state of the same step of a replica, which runs at the same time (plan/replicas.h). What
    /// is made of `state` does not outlive it, and `destroy` is for it, too. *out NULL: there is
    /// none, as everywhere where the function is NULL.
    tare_status (*replicate)(const struct plan *replica, const void *state, void **out,
                             tare_error *err);
    bool only_joins; // tensors to one, of which it writes what does not lie there
} step_class;

/// The state itself, which runs only read.
tare_status tare__step_share(const struct plan *replica, const void *state, void **out,
                             tare_error *err);

/// What is noted of a step while it is planned (plan/profile.c). Of tensors, the first of those
/// that it reads and writes.
typedef struct step_facts {
    const char *op;
    const char *const *nodes; // that it computes
    size_t node_count;
    const tare_tensor *x, *y;
    size_t x_place; // where x lies
    size_t bytes_in, bytes_out;
    int64_t macs;
    const char *declined; // of a call: why it has no step of its own
} step_facts;

void tare__step_say(step_note *note, const char *format, ...) TARE_PRINTF(2, 3);

typedef struct plan_step {
    const step_class *class;
    void *state;
    const char *node_name;
    step_facts facts;
} plan_step;

/// A tensor whose data is where its place is, which moves with inputs and outputs.
typedef struct placed_tensor {
    tare_tensor *tensor;
    size_t place;
} placed_tensor;

typedef struct plan_output {
    const tare_tensor *like;  // of one sample
    const tare_tensor *whole; // of all; like, where there is one
    size_t place;             // NOTHING: the plan's tail makes it, or what it is the tail of
    bool is_copied;           // the place is an input's, a constant's, another output's, a piece of
                              // another place or made of pieces
} plan_output;

/// What each sample leaves for the plan's tail (plan/batched_tail.h): a row of a place there.
typedef struct plan_handover {
    size_t place, bytes; // of one sample
    unsigned char *rows; // of all of them; NULL: there is no tail
} plan_handover;

struct plan {
    plan_setting setting;
    arena memory;          // what steps and calls point to; lives as long as the plan
    arena run_memory;      // calls' scratch, empty between runs
    tare_tensor **tensors; // references on every tensor that a call or step knows
    size_t tensor_count, tensor_capacity;
    plan_place *places;
    size_t place_count, place_capacity;
    plan_step *steps;
    size_t step_count, step_capacity;
    placed_tensor *moving; // of inputs and outputs
    size_t moving_count, moving_capacity;
    int64_t samples;      // that it runs for in turn; their results follow each other
    bool observes;        // a step looks at what passes, for statistics
    tare_tensor **inputs; // lent: among tensors; of one sample
    size_t *input_places; // NOTHING: nobody reads it
    size_t input_count;
    plan_output *outputs;
    size_t output_count, output_capacity;
    plan_profile *profile;   // NULL: runs are not timed
    plan_replicas *replicas; // NULL: there are none
    plan *tail;              // its last steps, of all samples at once; NULL: there is none
    plan_handover handover;
    void *block; // PLACE_ARENA
    size_t block_bytes, least_bytes;
};

/// The plan holds a reference from here on.
tare_status tare__plan_keep_tensor(plan *p, tare_tensor *t, tare_error *err);

/// A step that has this many elements to look at is shared by threads.
enum { LEAST_SHARED_ELEMENTS = 1 << 15 };
static inline thread_pool *tare__threads_for(const plan_run_state *run, int64_t elements) {
    return elements >= LEAST_SHARED_ELEMENTS ? run->fast->space.pool : NULL;
}

static inline void *tare__place_data(const plan_run_state *run, size_t place) {
    return run->plan->places[place].data;
}

// --- while it is made ---

typedef enum plan_layout {
    LAYOUT_PLAIN,         // row-major, as tensors are
    LAYOUT_CHANNELS_LAST, // [N][spatial..][C] of a tensor [N][C][spatial..]
    LAYOUT_COUNT,
} plan_layout;

typedef struct plan_value {
    tare_tensor *tensor; // lent: among the plan's
    size_t base;         // the value that this one is a view of; itself
    size_t place[LAYOUT_COUNT];
    size_t uses_left; // by records not emitted yet, and by the result
    size_t consumer;  // the last record that reads it
    bool is_constant, is_input;
    // The record of what is emitted when somebody wants the result in a place of its own, and the
    // value that it reads: of a transposition that swaps dimensions 1 and 2 of 4, or the codes that
    // become floats for elementwise operators alone. Else NOTHING.
    size_t deferred, swapped, coded;
    // Of a view of what lies channels last alone: that value, until somebody wants the view itself.
    size_t viewed;
    // Codes that a concatenation puts, channels last, among others: its value, and the first
    // channel there (steps/quantized_cat.c). NOTHING: they stand alone.
    size_t joined, joined_at;
    // Of the plain layout: the value that a concatenation makes it a piece of, and the byte where
    // (steps/cat.c); and where the pieces of this value lie. NOTHING: none.
    size_t within, within_at, whole;
    size_t gathered; // the place of a copy without gaps of what lies so; NOTHING: there is none
} plan_value;

/// One call of the graph, in order.
typedef struct plan_record {
    const node *node;
    op_call call;
    op_compute compute;
    const size_t *inputs; // distinct values, in order of first mention
    size_t input_count;
    size_t result; // the value of a result that is one tensor; else NOTHING
    bool is_observer, is_view;
    size_t group; // the index of the record with which it is emitted: the last one of its chain
    size_t next;  // in its chain, in data-flow order; NOTHING at the end
    size_t head;  // of its chain
} plan_record;

typedef struct plan_builder {
    plan *plan;
    const plan_setting *setting;
    arena scratch; // until the plan is made
    plan_value *values;
    size_t value_count, value_capacity;
    pointer_index by_tensor, by_storage; // to values; of those in one storage to the latest
    plan_record *records;
    size_t record_count, record_capacity;
    size_t *touched; // places that the next step reads or writes
    size_t touched_count, touched_capacity;
    memory_budget budget;          // of constants that are computed
    struct dynamic_codes *dynamic; // the floats that were quantized on the fly so far
    step_facts facts;              // of the next step
    const char *declined;          // why the planner of the chain at hand made no step
    tare_error *err;
} plan_builder;

// plan/trace.c
/// Runs the graph's shape rules on meta tensors like the inputs: fills values, records and
/// the plan's inputs and outputs.
tare_status tare__plan_trace(plan_builder *b, const tare_tensor *const *inputs, size_t count);
/// Makes a tensor known, which the plan holds from here on.
tare_status tare__plan_add_value(plan_builder *b, tare_tensor *t, size_t *out);
/// The value of a tensor; NOTHING if it is not known.
size_t tare__plan_find_value(const plan_builder *b, const tare_tensor *t);

// plan/chain.c
/// Joins records with those whose work the same step can do.
void tare__plan_join(plan_builder *b);

// steps/quantized_cat.c
/// Finds the codes whose steps can write them where a concatenation wants them.
tare_status tare__plan_find_parts(plan_builder *b);
// steps/cat.c
/// Finds the pieces of a concatenation, whose steps can write them where it wants them.
void tare__plan_find_pieces(plan_builder *b, const plan_record *r);

// steps/quantized_cat.c
/// Copies codes that lie apart to where they follow each other.
extern const step_class tare__gather_class;
tare_status tare__gather_state(plan_builder *b, const tare_tensor *t, size_t from, size_t place,
                               void **out);

// plan/emit.c
/// Turns records into steps.
tare_status tare__plan_emit(plan_builder *b);

tare_status tare__plan_new_place(plan_builder *b, place_kind kind, size_t bytes, size_t *out);
/// The next step reads or writes this place.
tare_status tare__plan_touch(plan_builder *b, size_t place);
/// Memory that the next step works in.
tare_status tare__plan_new_scratch(plan_builder *b, size_t bytes, size_t *out);
/// Why the planner at work leaves its chain to calls: `why` lasts as long as the program.
static inline tare_status tare__plan_decline(plan_builder *b, const char *why) {
    b->declined = why;
    return TARE_OK;
}
/// Adds a step, which reads and writes what was asked for since the last one. `state` is taken
/// over, also by a failure.
tare_status tare__plan_add_step(plan_builder *b, const step_class *class, void *state,
                                const node *n);
/// The value's place in a layout, with a step that converts it if it has only the other one; the
/// next step reads it.
tare_status tare__plan_read(plan_builder *b, size_t value, plan_layout layout, size_t *place);
/// The same for another value that is to lie there: no step reads it by that.
tare_status tare__plan_share(plan_builder *b, size_t value, plan_layout layout, size_t *place);
/// A new place for a value that the next step writes.
tare_status tare__plan_write(plan_builder *b, size_t value, plan_layout layout, size_t *place);
/// Where the pieces of a value lie, which is no place of the value before all of them are written
/// there; and that they are, with or without the next step.
tare_status tare__plan_place_whole(plan_builder *b, size_t value, size_t *place);
tare_status tare__plan_write_whole(plan_builder *b, size_t value, bool by_step);
/// As tare__plan_write, in the place of `input` (read in this layout by the next step) if nobody
/// needs that any more and it is as large; *is_same tells.
tare_status tare__plan_write_over(plan_builder *b, size_t value, size_t input, plan_layout layout,
                                  size_t *place, bool *is_same);
bool tare__plan_may_write_over(const plan_builder *b, size_t value, size_t input,
                               plan_layout layout);
/// Codes channels last: a line of channels for each pixel.
typedef struct plan_lines {
    size_t place, pitch; // bytes from a pixel to the next
    const char *joined;  // the node that concatenates them in place; NULL: none
} plan_lines;
/// As tare__plan_read and tare__plan_write, channels last, of codes that may lie between others.
tare_status tare__plan_read_lines(plan_builder *b, size_t value, plan_lines *out);
tare_status tare__plan_write_lines(plan_builder *b, size_t value, plan_lines *out);
/// The place alone, which no step writes yet.
tare_status tare__plan_place_lines(plan_builder *b, size_t value, plan_lines *out);
/// Does the value lie between others?
bool tare__plan_lies_apart(const plan_builder *b, size_t value);
static inline void tare__step_say_joined(step_note *note, const plan_lines *y) {
    if (y->joined != NULL) tare__step_say(note, "; in place for %s", y->joined);
}

bool tare__plan_has_place(const plan_builder *b, size_t value);
/// The codes that a value without a place is made of; NOTHING: of none.
size_t tare__plan_codes_of(const plan_builder *b, size_t value);
/// The layout in which a value already lies, channels last if in both.
plan_layout tare__plan_layout(const plan_builder *b, size_t value);
/// Have both layouts the same order of elements for this tensor (or has it none but the plain one)?
bool tare__plan_layouts_agree(const tare_tensor *t);
/// Is it the call of this row, on float32 tensors alone, with one float32 result?
bool tare__plan_is_float(const plan_builder *b, const plan_record *r);
static inline const char *tare__record_op(const plan_record *r) {
    return r->call.op != NULL ? r->call.op->id : "";
}

// What emits a chain that begins with some operator. *done false: each of its records becomes a
// call. A planner adds nothing to the plan before it knows that it will be done.
typedef tare_status (*chain_planner)(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_call(plan_builder *b, size_t record); // steps/call.c

// plan/profile.c
/// Of a chain's steps from `first_step` on: the nodes that each computes, and what they cost.
tare_status tare__plan_note_chain(plan_builder *b, size_t first_step, size_t head);

// plan.c
/// Runs one of the samples that inputs and outputs consist of.
tare_status tare__plan_run_sample(plan *p, const tare_tensor *const *inputs,
                                  tare_tensor *const *outputs, int64_t sample, tare_error *err);

// plan/memory.c
/// Is it a piece of the plan's memory by itself?
bool tare__plan_is_laid_out(const plan_place *place);
/// Gives the places of the plan's memory their offsets, and allocates it. TARE_UNSUPPORTED where a
/// run would take more than `most` bytes.
tare_status tare__plan_lay_out(plan *p, uint64_t most, tare_error *err);

#endif
