// SPDX-License-Identifier: Apache-2.0
// Parses a pattern's code: separates the dictionary of names from the results, and converts calls
// to aten.
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/text/print.h"
#include "quantizers/patterns/capture.h"
#include "quantizers/patterns/subgraph.h"

static tare_status take_names(subgraph_pattern *p, const value *dict, tare_error *err) {
    p->names = tare__arena_array(&p->memory, dict->count + 1, sizeof *p->names);
    if (p->names == NULL) return tare__out_of_memory(err);
    for (uint32_t i = 0; i + 1 < dict->count; i += 2) {
        const value *key = &dict->as.items[i], *v = &dict->as.items[i + 1];
        if (key->kind != VALUE_STRING || v->kind != VALUE_NODE)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "the dictionary of a pattern names nodes by strings");
        const char *name = tare__arena_strdup(&p->memory, key->as.text);
        if (name == NULL) return tare__out_of_memory(err);
        p->names[p->name_count++] = (subgraph_name){.name = name, .node = v->as.node};
    }
    return TARE_OK;
}

// Removes the dictionary: (a, b, {..}) becomes (a, b).
static tare_status take_dictionary(subgraph_pattern *p, node *output, tare_error *err) {
    const value *result = &output->args[0];
    const bool is_list = result->kind == VALUE_TUPLE || result->kind == VALUE_LIST;
    const value *last = is_list && result->count > 0 ? &result->as.items[result->count - 1] : NULL;
    if (last == NULL || last->kind != VALUE_DICT) return TARE_OK;
    if (result->count < 2)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expecting the pattern graph to have at least two outputs");
    TARE_TRY(take_names(p, last, err));
    value results = *result;
    results.count--;
    return tare__node_set_args(output, &results, 1, NULL, 0, err);
}

static tare_status check_live(const graph *g, tare_error *err) {
    for (const node *n = g->first; n != NULL; n = n->next) {
        if (n->op == NODE_OUTPUT || n->op == NODE_PLACEHOLDER || n->user_count > 0) continue;
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "node '%s': no result of the pattern needs it (dead code)", n->name);
    }
    return TARE_OK;
}

static tare_status find_anchors(subgraph_pattern *p, node *output, tare_error *err) {
    p->returned = output->inputs;
    p->returned_count = output->input_count;
    p->anchors = tare__arena_array(&p->memory, output->input_count + 1, sizeof(node *));
    if (p->anchors == NULL) return tare__out_of_memory(err);
    if (p->options.match_output) {
        p->anchors[p->anchor_count++] = output;
        return TARE_OK;
    }
    for (size_t i = 0; i < output->input_count; i++)
        if (output->inputs[i]->user_count == 1 && output->inputs[i]->op != NODE_PLACEHOLDER)
            p->anchors[p->anchor_count++] = output->inputs[i];
    if (p->anchor_count > 0) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "SubgraphMatcher cannot be initialized with an empty pattern");
}

static tare_status complete(subgraph_pattern *p, tare_error *err) {
    node *output = tare__graph_output(p->graph);
    if (output == NULL || output->arg_count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a pattern needs a return");
    TARE_TRY(take_dictionary(p, output, err));
    TARE_TRY(tare__capture(p, p->options.example, err));
    p->options.example = NULL;
    TARE_TRY(check_live(p->graph, err));
    return find_anchors(p, output, err);
}

tare_status tare__subgraph_parse(const char *code, size_t size, const subgraph_options *options,
                                 subgraph_pattern **out, tare_error *err) {
    subgraph_pattern *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    p->options = *options;
    tare_status status = tare__parse_code(code, size, NULL, &p->graph, err);
    if (status == TARE_OK) status = complete(p, err);
    if (status == TARE_OK) {
        *out = p;
        return TARE_OK;
    }
    tare__subgraph_destroy(p);
    return tare__at(err, status, "pattern");
}

void tare__subgraph_destroy(subgraph_pattern *p) {
    if (p == NULL) return;
    tare__graph_destroy(p->graph);
    tare__arena_release(&p->memory);
    tare__free(p);
}
