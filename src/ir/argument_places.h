// SPDX-License-Identifier: Apache-2.0
// Where a node stands among another one's arguments.
#ifndef IR_ARGUMENT_PLACES_H
#define IR_ARGUMENT_PLACES_H

#include "core/error.h"
#include "ir/graph.h"

/// Receives a node among the arguments, and where it stands: "args[0][1]", "kwargs.weight".
typedef tare_status (*argument_visitor)(void *user, node *arg, const char *place);
/// Visits every node among the arguments of `n`, inside lists too, each time it is mentioned.
tare_status tare__each_argument(const node *n, argument_visitor visit, void *user, tare_error *err);

#endif
