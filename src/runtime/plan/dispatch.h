// SPDX-License-Identifier: Apache-2.0
// Chooses the step of a call: the first class, in order of priority, that heads the call and can
// plan it.
#ifndef RUNTIME_PLAN_DISPATCH_H
#define RUNTIME_PLAN_DISPATCH_H

#include "runtime/plan/values.h"

/// The first class that heads a record; NULL: none.
const step_class *tare__plan_class_of(const plan_builder *b, const plan_record *r);
/// Is the float result of `r`, which reads quantized values, read once, by a step that takes those,
/// element by element?
bool tare__plan_reader_takes_quantized(const plan_builder *b, const plan_record *r);
/// Joins records that one step can do together, and reserves slices of concatenations.
void tare__plan_join(plan_builder *b);
/// Adds what computes the chain. *done false: no class can.
tare_status tare__plan_by_class(plan_builder *b, size_t head, bool *done);
/// The same by the classes behind `class`, for what it would compute with more.
tare_status tare__plan_by_later_class(plan_builder *b, const step_class *class, size_t head,
                                      bool *done);
/// A record by a call.
tare_status tare__plan_call(plan_builder *b, size_t record);
/// A record by a class, or a call.
tare_status tare__plan_one(plan_builder *b, size_t record);

// plan/note.c
/// Of a chain's steps from `first_step` on: the nodes that each computes, and what they cost.
tare_status tare__plan_note_chain(plan_builder *b, size_t first_step, size_t head);

#endif
