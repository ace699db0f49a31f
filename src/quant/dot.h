// SPDX-License-Identifier: Apache-2.0
// A model as a graphviz drawing.
#ifndef QUANT_DOT_H
#define QUANT_DOT_H

#include "quant/model.h"

/// Nodes computed in integers are filled green, float ones white.
tare_status tare__print_dot(const tare_model *model, text *out, tare_error *err);

#endif
