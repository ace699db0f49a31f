// SPDX-License-Identifier: Apache-2.0
// The state of a plan in the making: calls, values, and the buffers of values.
#ifndef RUNTIME_PLAN_VALUES_H
#define RUNTIME_PLAN_VALUES_H

#include "runtime/plan/build.h"

typedef enum plan_layout {
    LAYOUT_PLAIN,         // row-major, as tensors are
    LAYOUT_CHANNELS_LAST, // [N][spatial..][C] of a tensor [N][C][spatial..]
    LAYOUT_COUNT,
} plan_layout;

/// The buffers of a value in a layout.
typedef struct plan_placement {
    size_t buffer; // NOTHING: none in this layout
    // The concatenation that it is a slice of: its value, and the byte of a pixel, or of all, where
    // the slice begins. NOTHING: of none.
    size_t slice_of, slice_at;
    size_t whole;  // the buffer of slices of this value, before it is the value's own
    size_t packed; // of a slice: the buffer of a copy without gaps; NOTHING: there is none
} plan_placement;

/// The source of a deferred value, which has no buffer until a step needs one. Readers may read the
/// source instead.
typedef struct plan_source {
    enum plan_source_kind {
        SOURCE_NONE,
        SOURCE_VIEW,      // a view of a value that is channels last only
        SOURCE_SWAPPED,   // a transposition that swaps dimensions 1 and 2 of 4
        SOURCE_REPEATED,  // matrices of keys or values, once for each of the queries' heads
        SOURCE_QUANTIZED, // floats of quantized values, for elementwise operators alone
    } kind;
    size_t value;
    size_t record; // that makes it; of no view
} plan_source;

typedef struct plan_value {
    tare_tensor *tensor; // lent: among the plan's
    size_t base;         // the value that this one is a view of; itself
    plan_placement placement[LAYOUT_COUNT];
    plan_source source;
    size_t uses_left; // by records not emitted yet, and by the result
    size_t consumer;  // the last record that reads it
    bool is_constant, is_input, is_state;
} plan_value;

/// One call of the graph, in order.
typedef struct plan_record {
    const node *node;
    op_call call;
    op_id op; // of the call
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
    size_t *touched; // buffers that the next step reads or writes
    size_t touched_count, touched_capacity;
    memory_budget budget;              // of constants that are computed
    struct dynamic_quantized *dynamic; // the floats that were quantized on the fly so far
    const step_class *const *classes;  // in order of priority, NULL behind the last one
    const step_class *call;            // what none of them takes; NULL: TARE_UNSUPPORTED
    step_facts facts;                  // of the next step
    const char *declined;              // why no step took the chain at hand
    tare_error *err;
} plan_builder;

// plan/trace.c
/// Makes a tensor known, which the plan holds from here on.
tare_status tare__plan_add_value(plan_builder *b, tare_tensor *t, size_t *out);
/// The value of a tensor; NOTHING if it is not known.
size_t tare__plan_find_value(const plan_builder *b, const tare_tensor *t);

// plan/values.c
tare_status tare__plan_new_buffer(plan_builder *b, buffer_kind kind, size_t bytes, size_t *out);
/// The next step reads or writes this buffer.
tare_status tare__plan_touch(plan_builder *b, size_t buffer);
/// Memory that the next step works in.
tare_status tare__plan_new_scratch(plan_builder *b, size_t bytes, size_t *out);
/// Why the class at work leaves its chain to others: `why` lasts as long as the program.
static inline tare_status tare__plan_decline(plan_builder *b, const char *why) {
    b->declined = why;
    return TARE_OK;
}
static inline tare_status tare__plan_decline_operator(plan_builder *b) {
    return tare__plan_decline(b, "this operator has no step of its own");
}
/// Adds a step, which reads and writes what was asked for since the last one. `state` is taken
/// over, also by a failure.
tare_status tare__plan_add_step(plan_builder *b, const step_class *class, void *state,
                                const node *n);
/// The value's buffer in a layout, which the next step reads. A step converts it where the value
/// has only the other layout.
tare_status tare__plan_read(plan_builder *b, size_t value, plan_layout layout, size_t *buffer);
/// The value's buffer, for another value that shares it without a copy. No step reads it yet.
tare_status tare__plan_share(plan_builder *b, size_t value, plan_layout layout, size_t *buffer);
/// A new buffer for a value that the next step writes.
tare_status tare__plan_write(plan_builder *b, size_t value, plan_layout layout, size_t *buffer);
/// The buffer that the slices of a value are written to. It becomes the value's own by
/// tare__plan_write_whole, when all slices are written. by_step: the next step writes some.
tare_status tare__plan_place_whole(plan_builder *b, size_t value, plan_layout layout,
                                   size_t *buffer);
tare_status tare__plan_write_whole(plan_builder *b, size_t value, plan_layout layout, bool by_step);
/// As tare__plan_write, in the buffer of `input` (which the next step reads in this layout) if that
/// is as large and not needed any more; *is_same tells.
tare_status tare__plan_write_over(plan_builder *b, size_t value, size_t input, plan_layout layout,
                                  size_t *buffer, bool *is_same);
bool tare__plan_may_write_over(const plan_builder *b, size_t value, size_t input,
                               plan_layout layout);
/// Quantized values channels last: a row of channels for each pixel.
typedef struct plan_pixels {
    size_t buffer, pitch; // bytes from a pixel to the next
    const char *slice_of; // the node that concatenates them in place; NULL: none
} plan_pixels;
/// As tare__plan_read and tare__plan_write, channels last, of values that may lie between others.
tare_status tare__plan_read_pixels(plan_builder *b, size_t value, plan_pixels *out);
tare_status tare__plan_write_pixels(plan_builder *b, size_t value, plan_pixels *out);
/// The buffer alone, which no step writes yet.
tare_status tare__plan_place_pixels(plan_builder *b, size_t value, plan_pixels *out);
/// Is the value to be a slice of a concatenation in this layout?
static inline bool tare__plan_is_slice(const plan_builder *b, size_t v, plan_layout layout) {
    return b->values[v].placement[layout].slice_of != NOTHING;
}
/// Does the value lie between others?
bool tare__plan_lies_apart(const plan_builder *b, size_t value);
static inline void tare__step_say_slice(step_note *note, const plan_pixels *y) {
    if (y->slice_of != NULL) tare__step_say(note, "; in place for %s", y->slice_of);
}

bool tare__plan_has_buffer(const plan_builder *b, size_t value);
/// The source of a value of this kind; NOTHING: it has none.
static inline size_t tare__plan_source(const plan_builder *b, size_t v,
                                       enum plan_source_kind kind) {
    const plan_source *source = &b->values[v].source;
    return source->kind == kind ? source->value : NOTHING;
}
/// The quantized values that a value without a buffer is made of; NOTHING: of none.
size_t tare__plan_quantized_of(const plan_builder *b, size_t value);
/// The layout that a value already has, channels last if it has both.
plan_layout tare__plan_layout(const plan_builder *b, size_t value);
/// Have both layouts the same order of elements for this tensor (or has it none but the plain one)?
bool tare__plan_layouts_agree(const tare_tensor *t);
/// Forgets the buffers that were asked for since the last step.
void tare__plan_forget_touched(plan_builder *b);
/// Whoever reads a value reads what it is made of, too: adds `more` to the uses of both.
void tare__plan_count_uses(plan_builder *b, size_t value, ptrdiff_t more);
/// A view of another value, until somebody wants it; false: it has to lie somewhere at once.
bool tare__plan_defer_view(plan_builder *b, size_t view, size_t of);
/// The same of matrices that are repeated when somebody wants them.
bool tare__plan_view_repeated(plan_builder *b, size_t view, size_t of);
/// Keeps a buffer's contents until after the last step.
void tare__plan_keep_to_end(plan *p, size_t buffer);

#endif
