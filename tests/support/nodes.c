// SPDX-License-Identifier: Apache-2.0
// Building graphs in few words.
#include "support/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

graph *new_graph(void) {
    graph *g = NULL;
    assert_int_equal(tare__graph_create(&g, NULL), TARE_OK);
    return g;
}

node *new_node(graph *g, node_op op, const char *target, const value *args, size_t arg_count) {
    const node_spec spec = {.op = op, .target = target, .args = args, .arg_count = arg_count};
    node *n = NULL;
    assert_int_equal(tare__graph_insert(g, &spec, NULL, &n, NULL), TARE_OK);
    return n;
}

node *new_placeholder(graph *g, const char *target) {
    return new_node(g, NODE_PLACEHOLDER, target, NULL, 0);
}

node *new_call(graph *g, const char *target, node *a, node *b) {
    const value args[] = {tare__node_value(a), tare__node_value(b)};
    return new_node(g, NODE_CALL_FUNCTION, target, args, b ? 2 : 1);
}

node *new_output(graph *g, node *returned) {
    return new_node(g, NODE_OUTPUT, "output", VALUES(tare__node_value(returned)));
}

const char *name_for(graph *g, const char *candidate) {
    const char *name = NULL;
    assert_int_equal(tare__graph_name(g, candidate, &name, NULL), TARE_OK);
    return name;
}

static char names[4096];

static void append(const node *n) {
    const size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s%s", length ? " " : "", n->name);
}

const char *node_names(const graph *g) {
    names[0] = '\0';
    for (const node *n = g->first; n; n = n->next) append(n);
    return names;
}

const char *user_names(const node *n) {
    names[0] = '\0';
    for (size_t i = 0; i < n->user_count; i++) append(n->users[i]);
    return names;
}
