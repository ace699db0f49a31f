// SPDX-License-Identifier: Apache-2.0
// Chooses the step of a call: the first kind of step, in order of priority, that can start with the
// call and plan it.
#ifndef RUNTIME_PLAN_DISPATCH_H
#define RUNTIME_PLAN_DISPATCH_H

#include "runtime/plan/values.h"

/// The first kind of step that can start with a record; NULL: none.
const step_class *tare__plan_class_of(const plan_builder *b, const plan_record *r);
/// True if the float result of `r`, which reads quantized values, has one reader, and that reader's
/// step takes the quantized values instead, element by element.
bool tare__plan_reader_takes_quantized(const plan_builder *b, const plan_record *r);
/// Joins records that one step can compute, and reserves slices of concatenations.
void tare__plan_join(plan_builder *b);
/// Adds the steps of a chain. *done is false if no kind of step can compute it.
tare_status tare__plan_by_class(plan_builder *b, size_t head, bool *done);
/// The same with the kinds of lower priority than `class`.
tare_status tare__plan_by_later_class(plan_builder *b, const step_class *class, size_t head,
                                      bool *done);
/// Adds a call step for a record.
tare_status tare__plan_call(plan_builder *b, size_t record);
/// Adds a step for a single record, or a call step.
tare_status tare__plan_one(plan_builder *b, size_t record);

// plan/note.c
/// Records which nodes each step of a chain computes, and their cost. The chain's steps begin at
/// `first_step`.
tare_status tare__plan_note_chain(plan_builder *b, size_t first_step, size_t head);

#endif
