// SPDX-License-Identifier: Apache-2.0
// Paths of nodes within another node's arguments.
#ifndef IR_ARGUMENT_PATHS_H
#define IR_ARGUMENT_PATHS_H

#include "core/error.h"
#include "ir/graph.h"

/// Receives a node among the arguments and its path: "args[0][1]", "kwargs.weight".
typedef tare_status (*argument_visitor)(void *user, node *arg, const char *path);
/// Visits every occurrence of a node among the arguments of `n`, inside lists too.
tare_status tare__each_argument(const node *n, argument_visitor visit, void *user, tare_error *err);

#endif
