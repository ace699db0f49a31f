// SPDX-License-Identifier: Apache-2.0
// The parser's state, and values in argument lists.
// Private to ops/text.
#ifndef OPS_TEXT_PARSE_VALUE_H
#define OPS_TEXT_PARSE_VALUE_H

#include "core/memory/map.h"
#include "core/text/text.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "ops/text/lexer.h"

typedef struct parser {
    lexer lexer;
    token now, next;     // the token to be read, and the one after it
    const module *model; // NULL: targets are not checked
    graph *g;
    map nodes;     // name -> node
    arena scratch; // values and names before they are added to the graph
    value *stack;  // items of containers that are still open
    size_t stack_count, stack_capacity;
    int depth; // of containers
    node *first_parameter;
    const char *returned; // the type after "->"; may be NULL
    bool has_calls;       // something other than parameters and tensors was read
    tare_error *err;
} parser;

tare_status tare__parse_advance(parser *p);
/// Reads exactly this symbol or name.
tare_status tare__parse_expect(parser *p, const char *symbol);
/// Reads this symbol or name if it comes next; *out: it did.
tare_status tare__parse_accept(parser *p, const char *symbol, bool *out);
/// A name, copied into the scratch arena.
tare_status tare__parse_name(parser *p, const char **out);
/// Appends "a.b.c", as far as it goes, to `out`.
tare_status tare__parse_dotted(parser *p, text *out);
/// The node of this name; NULL if there is none.
node *tare__parse_node(const parser *p, const token *t);
/// One value. Lives in the scratch arena.
tare_status tare__parse_value(parser *p, value *out);
tare_status tare__parse_string(parser *p, const char **out);
/// Parses values up to `close`, which is consumed; `is_single` (may be NULL): one value without a
/// comma.
tare_status tare__parse_items(parser *p, const char *close, value_kind kind, value *out,
                              bool *is_single);
tare_status tare__parse_push(parser *p, const value *v);
/// Pops everything above `mark` off the stack, as a sequence of this kind.
tare_status tare__parse_pop(parser *p, size_t mark, value_kind kind, value *out);

#endif
