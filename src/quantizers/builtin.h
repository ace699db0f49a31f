// SPDX-License-Identifier: Apache-2.0
// The built-in quantizers and their functions.
// Private to quantizers.
#ifndef QUANTIZERS_BUILTIN_H
#define QUANTIZERS_BUILTIN_H

#include "quantizers/settings.h"

/// The `self` of a built-in quantizer.
typedef struct builtin_quantizer {
    tare_quantizer_settings *settings;
    const struct builtin_row *row;
} builtin_quantizer;

/// Receives a name, lent for the call.
typedef void (*name_visitor)(void *user, const char *name);

typedef struct builtin_row {
    const char *name;
    tare_status (*transform)(void *self, tare_model *model, tare_error *err); // NULL: nothing
    tare_status (*annotate)(void *self, tare_model *model, tare_error *err);
    /// Refuses settings that the quantizer does not support.
    tare_status (*check)(const struct builtin_row *row, const tare_quantizer_settings *settings,
                         tare_error *err);
    /// Lists the rules in the order in which they are tried, and the operators that settings may
    /// name.
    void (*each_rule)(const struct builtin_row *row, name_visitor visit, void *user);
    void (*each_operator)(const struct builtin_row *row, name_visitor visit, void *user);
    const void *recipe;
} builtin_row;
/// The table entry of a built-in quantizer; NULL for others.
const builtin_row *tare__builtin_row_of(const tare_quantizer *q);

tare_status tare__xnnpack_transform(void *self, tare_model *model, tare_error *err);
tare_status tare__xnnpack_annotate(void *self, tare_model *model, tare_error *err);
tare_status tare__xnnpack_check(const struct builtin_row *row,
                                const tare_quantizer_settings *settings, tare_error *err);

void tare__xnnpack_each_rule(const struct builtin_row *row, name_visitor visit, void *user);
void tare__xnnpack_each_operator(const struct builtin_row *row, name_visitor visit, void *user);

void tare__inductor_each_rule(const struct builtin_row *row, name_visitor visit, void *user);
void tare__inductor_each_operator(const struct builtin_row *row, name_visitor visit, void *user);
tare_status tare__inductor_annotate(void *self, tare_model *model, tare_error *err);
tare_status tare__inductor_check(const struct builtin_row *row,
                                 const tare_quantizer_settings *settings, tare_error *err);
extern const struct inductor_recipe tare__x86_recipe, tare__arm_recipe, tare__xpu_recipe;

void tare__embedding_each_rule(const struct builtin_row *row, name_visitor visit, void *user);
tare_status tare__embedding_annotate(void *self, tare_model *model, tare_error *err);
tare_status tare__embedding_check(const struct builtin_row *row,
                                  const tare_quantizer_settings *settings, tare_error *err);

#endif
