// SPDX-License-Identifier: Apache-2.0
// The kind and shape of every value of a program, for the writer. Sizes may be dynamic.
// Private to io/pt2/write.
#ifndef IO_PT2_WRITE_SIZES_H
#define IO_PT2_WRITE_SIZES_H

#include "core/json/json.h"
#include "core/text/text.h"
#include "ir/module.h"

/// The graph is run on shapes: with the sizes that dynamic dimensions had at export, then with each
/// symbol changed. A node's shape from the file is kept if it agrees with the runs. For nodes that
/// passes inserted, expressions of the symbols are derived from the runs.
typedef struct pt2_sizes pt2_sizes;

tare_status tare__pt2_sizes_create(const module *root, pt2_sizes **out, tare_error *err);
void tare__pt2_sizes_destroy(pt2_sizes *s); // NULL is fine

typedef enum pt2_kind {
    PT2_NOTHING,
    PT2_TENSOR,
    PT2_INT,
    PT2_FLOAT,
    PT2_BOOL,
    PT2_SEVERAL,
    PT2_GRAPH, // of a branch or body
} pt2_kind;

/// The kind of n's result, or of its item `item` (negative: the whole result). `otherwise`: the
/// kind to be returned if it is unknown.
pt2_kind tare__pt2_sizes_kind(const pt2_sizes *s, const node *n, int64_t item, pt2_kind otherwise);
/// The number of n's results if there are several; 0 if unknown.
size_t tare__pt2_sizes_count(const pt2_sizes *s, const node *n);
/// Appends the tensor's entry of `tensor_values`.
tare_status tare__pt2_sizes_tensor(const pt2_sizes *s, const node *n, int64_t item, text *out);
/// The same for a tensor that n reads, which is always written contiguously.
tare_status tare__pt2_sizes_data(const pt2_sizes *s, const node *n, const tare_tensor *t,
                                 bool requires_grad, text *out);
/// Appends the number's entry of `sym_int_values` and the like.
tare_status tare__pt2_sizes_number(const pt2_sizes *s, const node *n, text *out);
/// The graph's export_json and the node's meta as JSON, lent; NULL if it has none.
const json_t *tare__pt2_sizes_about(const pt2_sizes *s);
const json_t *tare__pt2_sizes_meta(const pt2_sizes *s, const node *n);

#endif
