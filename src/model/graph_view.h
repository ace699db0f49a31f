// SPDX-License-Identifier: Apache-2.0
// Internal functions for public functions that return nodes or values.
#ifndef MODEL_GRAPH_VIEW_H
#define MODEL_GRAPH_VIEW_H

#include "ir/value.h"
#include "tare/graph.h"

void tare__argument_of(const value *v, tare_argument *out);

#endif
