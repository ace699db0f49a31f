// SPDX-License-Identifier: Apache-2.0
// Facts: what prepare found out about every node and edge, for explain, as tables of strings with
// named columns. The decision record contains the resulting decisions as sentences.
// Private to model.
#ifndef MODEL_FACTS_H
#define MODEL_FACTS_H

#include "core/json/json.h"
#include "core/memory/arena.h"
#include "core/memory/map.h"

typedef enum fact_kind {
    FACT_NODE,    // every call of the graph, once
    FACT_PATTERN, // a backend pattern that contains the node's operator but did not match
    FACT_DTYPES,  // a dtype config of the matched pattern
    FACT_EDGE,    // from a node to an argument of another, once
    FACT_KINDS,
} fact_kind;

/// Columns by kind. "" if there is no value.
enum {
    NODE_NAME,
    NODE_OPERATOR,
    NODE_PATTERN, // the backend's, or the quantizer's rule
    NODE_PLACE,
    NODE_QCONFIG,
    NODE_SECTION,
    NODE_KEY,
    NODE_QUANTIZER,  // the quantizer that annotated it
    NODE_OUTPUT_SPEC // the spec of its output
};
enum { PATTERN_OF, PATTERN_TEXT, PATTERN_WHY };
enum {
    DTYPES_OF,
    DTYPES_INDEX,
    DTYPES_OUTCOME,    // "accepted" or "refused"
    DTYPES_CONSTRAINT, // "input_dtype.quant_max_upper_bound"
    DTYPES_WANTED,
    DTYPES_FOUND,
    DTYPES_WHY
};
enum {
    EDGE_FROM,
    EDGE_TO,
    EDGE_ARGUMENT, // "args[0][1]", "kwargs.weight"
    EDGE_ROLE,     // "input", "weight", "bias"
    EDGE_OBSERVER, // the module's path
    EDGE_CLASS,    // class of the observer
    EDGE_RULE
};
enum { FACT_COLUMNS = 9 };

typedef struct fact {
    const char *columns[FACT_COLUMNS];
} fact;
typedef struct fact_table {
    fact *rows;
    size_t count, capacity;
} fact_table;
typedef struct fact_book {
    arena memory;
    fact_table tables[FACT_KINDS];
} fact_book;

/// Adds a row. columns: all columns of the kind, copied; NULL counts as "".
tare_status tare__facts_add(fact_book *f, fact_kind kind, const char *const *columns,
                            tare_error *err);
#define TARE_FACT(f, kind, err, ...)                                                               \
    tare__facts_add((f), (kind), (const char *const[FACT_COLUMNS]){__VA_ARGS__}, (err))
tare_status tare__facts_copy(fact_book *to, const fact_book *from, tare_error *err);
/// Adds the facts of a part of the model that was prepared separately; its nodes are renamed to
/// PATH, separator, NODE.
tare_status tare__facts_append_inner(fact_book *to, const fact_book *from, const char *path,
                                     char separator, tare_error *err);
void tare__facts_release(fact_book *f);
bool tare__facts_are_empty(const fact_book *f);
/// Writes {"nodes": [..], "patterns": [..], ..}; empty columns are omitted.
void tare__facts_to_json(const fact_book *f, text *out);
tare_status tare__facts_from_json(fact_book *f, const json_at *at, tare_error *err);

/// The name of a column in JSON.
const char *tare__fact_column(fact_kind kind, size_t column);

#endif
