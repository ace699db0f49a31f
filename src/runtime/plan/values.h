// SPDX-License-Identifier: Apache-2.0
// The state of the planner: calls, values, and the buffers of values.
#ifndef RUNTIME_PLAN_VALUES_H
#define RUNTIME_PLAN_VALUES_H

#include "runtime/plan/build.h"

typedef enum plan_layout {
    LAYOUT_PLAIN,         // row-major, as tensors are
    LAYOUT_CHANNELS_LAST, // [N][spatial..][C] of a tensor [N][C][spatial..]
    LAYOUT_COUNT,
} plan_layout;

/// The buffers of a value in one layout.
typedef struct plan_placement {
    size_t buffer; // NOTHING: none in this layout
    // If the value is a slice of a concatenation: the concatenation's value, and the byte offset of
    // the slice within a pixel, or within the whole. NOTHING: no slice.
    size_t slice_of, slice_at;
    size_t whole;  // the buffer for the slices of this value, until the value has it itself
    size_t packed; // of a slice: the buffer of a contiguous copy; NOTHING: none
} plan_placement;

/// The source of a deferred value, which has no buffer until a step needs one. Its readers may read
/// the source instead.
typedef struct plan_source {
    enum plan_source_kind {
        SOURCE_NONE,
        SOURCE_VIEW,      // a view of a value that exists channels last only
        SOURCE_SWAPPED,   // a transposition of dimensions 1 and 2 of 4
        SOURCE_REPEATED,  // matrices of keys or values that are repeated for heads of queries
        SOURCE_QUANTIZED, // floats of quantized values, for elementwise operators only
        SOURCE_INT8,      // floats of plain int8 values
        SOURCE_SCALED,    // such floats times `also`, a scale for each row: a cache of attention
    } kind;
    size_t value;
    size_t also;   // the record's second input; NOTHING: it has none
    size_t record; // that computes it; NOTHING for a view
} plan_source;

typedef struct plan_value {
    tare_tensor *tensor; // lent, from the plan's tensors
    size_t base;         // the value that this one is a view of, or itself
    plan_placement placement[LAYOUT_COUNT];
    plan_source source;
    size_t uses_left; // readers not planned yet, and the graph's result
    size_t consumer;  // the last record that reads it
    bool is_constant, is_input, is_state;
} plan_value;

/// One call of the graph.
typedef struct plan_record {
    const node *node;
    op_call call;
    op_id op; // of the call
    op_compute compute;
    const size_t *inputs; // distinct values, in order of first use
    size_t input_count;
    size_t result; // the value of the result if it is a single tensor; else NOTHING
    bool is_observer, is_view;
    size_t group; // the last record of its chain, with which it is emitted
    size_t next;  // the next record of its chain, in data-flow order; NOTHING at the end
    size_t head;  // the first record of its chain
} plan_record;

typedef struct plan_builder {
    plan *plan;
    const plan_setting *setting;
    arena scratch; // freed when the plan is made
    plan_value *values;
    size_t value_count, value_capacity;
    pointer_index by_tensor, by_storage; // tensor -> value; storage -> its latest value
    plan_record *records;
    size_t record_count, record_capacity;
    size_t *touched; // buffers of the next step
    size_t touched_count, touched_capacity;
    memory_budget budget;              // for constants that are computed
    struct dynamic_quantized *dynamic; // quantized on the fly so far
    const step_class *const *classes;  // in order of priority, ends with NULL
    const step_class *call; // for calls that no kind takes; NULL: these are TARE_UNSUPPORTED
    step_facts facts;       // about the next step
    const char *declined;   // why no step computes the present chain
    tare_error *err;
} plan_builder;

// plan/trace.c
/// Adds a tensor as a value; the plan holds a reference.
tare_status tare__plan_add_value(plan_builder *b, tare_tensor *t, size_t *out);
/// The value of a tensor; NOTHING if there is none.
size_t tare__plan_find_value(const plan_builder *b, const tare_tensor *t);

// plan/values.c
tare_status tare__plan_new_buffer(plan_builder *b, buffer_kind kind, size_t bytes, size_t *out);
/// Notes that the next step reads or writes this buffer.
tare_status tare__plan_touch(plan_builder *b, size_t buffer);
/// Allocates scratch memory for the next step.
tare_status tare__plan_new_scratch(plan_builder *b, size_t bytes, size_t *out);
/// Records why the present kind of step does not take its chain. `why` must be a string constant.
static inline tare_status tare__plan_decline(plan_builder *b, const char *why) {
    b->declined = why;
    return TARE_OK;
}
static inline tare_status tare__plan_decline_operator(plan_builder *b) {
    return tare__plan_decline(b, "this operator has no step of its own");
}
/// Adds a step with the buffers noted since the last one. Takes over `state`, also on failure.
tare_status tare__plan_add_step(plan_builder *b, const step_class *class, void *state,
                                const node *n);
/// The value's buffer in a layout, read by the next step. If the value has only the other layout, a
/// step that converts it is inserted.
tare_status tare__plan_read(plan_builder *b, size_t value, plan_layout layout, size_t *buffer);
/// The value's buffer, for another value that shares it. No step reads it yet.
tare_status tare__plan_share(plan_builder *b, size_t value, plan_layout layout, size_t *buffer);
/// A new buffer for a value, written by the next step.
tare_status tare__plan_write(plan_builder *b, size_t value, plan_layout layout, size_t *buffer);
/// The buffer to which the slices of a value are written. When all are, tare__plan_write_whole
/// makes it the value's own. by_step: the next step writes some slices.
tare_status tare__plan_place_whole(plan_builder *b, size_t value, plan_layout layout,
                                   size_t *buffer);
tare_status tare__plan_write_whole(plan_builder *b, size_t value, plan_layout layout, bool by_step);
/// As tare__plan_write, but in the buffer of `input` (which the next step reads in this layout) if
/// it is large enough and not needed any more. *is_same tells whether that is so.
tare_status tare__plan_write_over(plan_builder *b, size_t value, size_t input, plan_layout layout,
                                  size_t *buffer, bool *is_same);
bool tare__plan_may_write_over(const plan_builder *b, size_t value, size_t input,
                               plan_layout layout);
/// Quantized values, channels last: each pixel is a row of channels.
typedef struct plan_pixels {
    size_t buffer, pitch; // bytes from a pixel to the next
    const char *slice_of; // the node that concatenates the slices; NULL: no slice
} plan_pixels;
/// As tare__plan_read and tare__plan_write, channels last, for values that may be slices.
tare_status tare__plan_read_pixels(plan_builder *b, size_t value, plan_pixels *out);
tare_status tare__plan_write_pixels(plan_builder *b, size_t value, plan_pixels *out);
/// Assigns the buffer only; no step writes it yet.
tare_status tare__plan_place_pixels(plan_builder *b, size_t value, plan_pixels *out);
/// True if the value is to be a slice of a concatenation in this layout.
static inline bool tare__plan_is_slice(const plan_builder *b, size_t v, plan_layout layout) {
    return b->values[v].placement[layout].slice_of != NOTHING;
}
/// True if the value is stored with gaps, as a slice.
bool tare__plan_lies_apart(const plan_builder *b, size_t value);
static inline void tare__step_say_slice(step_note *note, const plan_pixels *y) {
    if (y->slice_of != NULL) tare__step_say(note, "; in place for %s", y->slice_of);
}

bool tare__plan_has_buffer(const plan_builder *b, size_t value);
/// The source of a value if it is of this kind; else NOTHING.
static inline size_t tare__plan_source(const plan_builder *b, size_t v,
                                       enum plan_source_kind kind) {
    const plan_source *source = &b->values[v].source;
    return source->kind == kind ? source->value : NOTHING;
}
/// The quantized source of a value without a buffer; NOTHING: none.
size_t tare__plan_quantized_of(const plan_builder *b, size_t value);
/// A layout in which the value exists: channels last if it has both.
plan_layout tare__plan_layout(const plan_builder *b, size_t value);
/// True if both layouts have the same order of elements for this tensor, or it only has the plain
/// one.
bool tare__plan_layouts_agree(const tare_tensor *t);
/// Discards the buffers noted since the last step.
void tare__plan_forget_touched(plan_builder *b);
/// Adds `more` to the uses of a value and of its sources.
void tare__plan_count_uses(plan_builder *b, size_t value, ptrdiff_t more);
/// Makes a view of another value a deferred value. Returns false if it needs a buffer now.
bool tare__plan_defer_view(plan_builder *b, size_t view, size_t of);
/// The same for repeated matrices.
bool tare__plan_view_repeated(plan_builder *b, size_t view, size_t of);
/// Keeps a buffer's contents until the end of the run.
void tare__plan_keep_to_end(plan *p, size_t buffer);

#endif
