// SPDX-License-Identifier: Apache-2.0
// Graphs inside a graph: those that operators of control flow run (ops/flow_op.h). Passes process
// each as a model of its own. In the records of the model around it, its nodes and operators are
// called PATH/NODE, where PATH is that of the module that has the graph; nodes inside keep such
// names as their origin.
#ifndef MODEL_NESTED_H
#define MODEL_NESTED_H

#include <string.h>

#include "model/model.h"

/// inner: the graph as a model, for reading, with its part of the decisions and annotations; its
/// operators are those of the model around it. prefix: "PATH/" of the names of its nodes.
typedef tare_status (*nested_visitor)(void *user, const tare_model *inner, const char *prefix,
                                      tare_error *err);
/// Visits the graphs inside, at any depth, in the order of the nodes that read them.
tare_status tare__nested_visit(const tare_model *model, nested_visitor visit, void *user,
                               tare_error *err);

/// NODE of the name "PATH/NODE"; NULL for other names.
static inline const char *tare__nested_name(const char *name, const char *path) {
    const size_t length = strlen(path);
    return strncmp(name, path, length) == 0 && name[length] == '/' ? name + length + 1 : NULL;
}
/// True if a name begins with that of a graph inside.
bool tare__nested_has(const tare_model *model, const char *name);

/// Makes a model of this stage from the graph of the module `root` at `path`, for a pass. Its part
/// of the records moves there; tare__nested_close puts the graph and records of the model that the
/// pass made in its place. `reader`: the node that reads the graph.
tare_status tare__nested_open(tare_model *outer, const node *reader, module *root,
                              tare_model_stage stage, tare_model **out, tare_error *err);
/// known: number of decisions that the opened model had.
tare_status tare__nested_close(tare_model *outer, const node *reader, tare_model *made,
                               size_t known, tare_error *err);

#endif
