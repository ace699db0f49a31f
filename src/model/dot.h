// SPDX-License-Identifier: Apache-2.0
// A model as a graphviz drawing.
// Private to model.
#ifndef MODEL_DOT_H
#define MODEL_DOT_H

#include "model/model.h"

/// Integers green, floats red, conversions yellow, observers blue; white where nothing is decided.
/// In converted models each island, a connected group of integers or of floats, is a cluster. Equal
/// models give equal text.
tare_status tare__print_dot(const tare_model *model, text *out, tare_error *err);

#endif
