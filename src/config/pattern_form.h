// SPDX-License-Identifier: Apache-2.0
// Converts patterns as users write them to the form that passes compare: classifies names, converts
// simple patterns to complex form, reads and writes JSON, and prints.
#ifndef CONFIG_PATTERN_FORM_H
#define CONFIG_PATTERN_FORM_H

#include "core/json/emit.h"
#include "core/json/json.h"
#include "core/memory/arena.h"
#include "ir/pattern.h"

/// Classifies an operator by its name (not copied): MatchAllNode matches anything, a capitalized
/// last word is a module class, a name without dots a method, any other a function. Refuses names
/// that are not qualified.
tare_status tare__pattern_from_name(const char *name, pattern *out, tare_error *err);
/// A deep copy in `a`.
tare_status tare__pattern_copy(arena *a, const pattern *p, pattern *out, tare_error *err);
/// A deep copy in `a` with canonical names: public names of classes, and the names of functions
/// that torch prints.
tare_status tare__pattern_canonical(arena *a, const pattern *p, pattern *out, tare_error *err);
/// Converts forward order to complex form: (a, b) -> (b, a), (a, b, c) -> (c, (b, a)). Shares names
/// with `forward`.
tare_status tare__pattern_reverse(arena *a, const pattern *forward, pattern *out, tare_error *err);
/// Checks that every tuple of a complex pattern begins with an operator and has arguments.
tare_status tare__pattern_check(const pattern *p, tare_error *err);
/// The canonical name of a class or a function; may point into buffer.
const char *tare__operator_canonical(const char *name, char *buffer, size_t size);

/// Reads nested lists of names and constants; names stay as spelled, and are lent by the JSON
/// value.
tare_status tare__pattern_from_json(arena *a, const json_at *at, pattern *out, tare_error *err);
void tare__pattern_emit(const pattern *p, json_emitter *e);
/// Example: "(torch.nn.ReLU, (operator.add, torch.nn.Conv2d, MatchAllNode))".
void tare__pattern_to_text(const pattern *p, text *out);

#endif
