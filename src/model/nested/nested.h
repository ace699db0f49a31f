// SPDX-License-Identifier: Apache-2.0
// Graphs inside a graph: those that operators of control flow run (ops/flow_op.h). Passes process
// each as a model of its own. In the records of the model around it, its nodes and operators are
// called PATH/NODE, where PATH is that of the module that has the graph; nodes inside keep such
// names as their origin. The records are sorted by graph once, so that work is linear in their
// length, however many graphs there are.
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

// --- rows by graph ---

/// Rows of a list by the graph that they are about: those of graph g are items[first[g]] up to, not
/// including, items[first[g + 1]]. Behind the last graph come those of the graph around them.
typedef struct nested_rows {
    size_t *items, *first;
} nested_rows;

/// The records with a row per node or operator.
typedef enum nested_record {
    NESTED_DECISIONS,
    NESTED_ANNOTATIONS,
    NESTED_OPERATORS,
    NESTED_RECORDS
} nested_record;

/// The graphs directly inside a model, and the rows of its records by graph.
typedef struct nested_graphs { // zero-initialized is empty
    arena memory;
    const node **readers; // of each graph the first node that reads it, in the graph's order
    size_t count;
    map numbers; // path -> number of the graph + 1
    nested_rows rows[NESTED_RECORDS];
    tare_model **made; // what a pass made of each graph; NULL: nothing yet
    size_t *known;     // numbers of decisions that it began with
} nested_graphs;

/// `out` is to be released after a failure, too.
tare_status tare__nested_list(const tare_model *model, nested_graphs *out, tare_error *err);
void tare__nested_release(nested_graphs *g);
/// Sorts `count` rows; name(list, row) is the name of the node that a row is about, or NULL. The
/// result lives as long as `g`.
tare_status tare__nested_sort(nested_graphs *g, const void *list, size_t count,
                              const char *(*name)(const void *list, size_t row), nested_rows *out,
                              tare_error *err);
/// Copies the rows of a graph to a record of the model `inner`, with the names that nodes have in
/// the graph.
tare_status tare__nested_copy(const nested_graphs *g, nested_record which, size_t number,
                              const tare_model *outer, tare_model *inner, tare_error *err);

// --- passes ---

/// Makes a model of this stage from the graph, for a pass, with its part of the records.
tare_status tare__nested_open(nested_graphs *g, size_t number, const tare_model *outer,
                              tare_model_stage stage, tare_model **out, tare_error *err);
/// Puts the graph of the model that the pass made in the place of the opened one. On success takes
/// over the model, whose records are put in by tare__nested_join.
tare_status tare__nested_close(nested_graphs *g, size_t number, tare_model *outer, tare_model *made,
                               tare_error *err);
/// When all graphs are closed: puts their records in the place of those that they began with.
tare_status tare__nested_join(nested_graphs *g, tare_model *outer, tare_error *err);

#endif
