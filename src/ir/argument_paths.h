// SPDX-License-Identifier: Apache-2.0
// The paths of nodes within another node's arguments.
#ifndef IR_ARGUMENT_PATHS_H
#define IR_ARGUMENT_PATHS_H

#include "core/error.h"
#include "ir/graph.h"

/// Receives a node among the arguments, and its path: "args[0][1]", "kwargs.weight".
typedef tare_status (*argument_visitor)(void *user, node *arg, const char *path);
/// Visits every node among the arguments of `n`, inside lists too, each time it is mentioned.
tare_status tare__each_argument(const node *n, argument_visitor visit, void *user, tare_error *err);

#endif
