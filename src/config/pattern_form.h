// SPDX-License-Identifier: Apache-2.0
// Patterns as users write them, and in the form that passes compare: names to kinds, simple to
// complex form, JSON and text.
#ifndef CONFIG_PATTERN_FORM_H
#define CONFIG_PATTERN_FORM_H

#include "core/json/emit.h"
#include "core/json/json.h"
#include "core/memory/arena.h"
#include "ir/pattern.h"

/// An operator by its name (not copied): a capitalized last word means a module class, a name
/// without dots a method, MatchAllNode anything, the rest functions. Refuses names that are not
/// qualified.
tare_status tare__pattern_from_name(const char *name, pattern *out, tare_error *err);
/// A deep copy in `a`.
tare_status tare__pattern_copy(arena *a, const pattern *p, pattern *out, tare_error *err);
/// A deep copy in `a` under canonical names: the public names of classes, the names that functions
/// print.
tare_status tare__pattern_canonical(arena *a, const pattern *p, pattern *out, tare_error *err);
/// Forward to complex form: (a, b) -> (b, a), (a, b, c) -> (c, (b, a)). Shares names with
/// `forward`.
tare_status tare__pattern_reverse(arena *a, const pattern *forward, pattern *out, tare_error *err);
/// Every tuple of a complex pattern begins with an operator and has arguments.
tare_status tare__pattern_check(const pattern *p, tare_error *err);
/// The canonical form of one name, of a class or a function; may point into buffer.
const char *tare__operator_canonical(const char *name, char *buffer, size_t size);

/// Nested lists of names and constants, spelling kept; names are lent by the JSON value.
tare_status tare__pattern_from_json(arena *a, const json_at *at, pattern *out, tare_error *err);
void tare__pattern_emit(const pattern *p, json_emitter *e);
/// "(torch.nn.ReLU, (operator.add, torch.nn.Conv2d, MatchAllNode))".
void tare__pattern_to_text(const pattern *p, text *out);

#endif
