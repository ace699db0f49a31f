// SPDX-License-Identifier: Apache-2.0
// Writes a model as a graphviz graph.
// Private to model.
#ifndef MODEL_DOT_H
#define MODEL_DOT_H

#include "model/model.h"

/// Integer nodes are green, float nodes red, conversions yellow, observers blue; before a decision
/// nodes are white. In converted models each island, a connected group of integer or float nodes,
/// is a cluster. Equal models give equal text.
tare_status tare__print_dot(const tare_model *model, text *out, tare_error *err);

#endif
