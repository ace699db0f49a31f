// SPDX-License-Identifier: Apache-2.0
// Public functions for patterns. tare_node is the public name of node.
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/text/text.h"
#include "model/graph_view.h"
#include "model/model.h"
#include "ops/text/print.h"
#include "quantizers/patterns/capture.h"
#include "quantizers/patterns/ready_patterns.h"
#include "tare/subgraph.h"

struct tare_subgraph_pattern {
    subgraph_forms forms;
};

struct tare_subgraph_matches {
    const tare_subgraph_pattern *pattern;
    arena memory;
    subgraph_matches list;
};

void tare_subgraph_pattern_destroy(tare_subgraph_pattern *p) {
    if (p == NULL) return;
    tare__subgraph_forms_release(&p->forms);
    tare__free(p);
}

// --- examples ---

// Parses a constant by parsing a function that returns it.
static tare_status read_constant(arena *memory, const char *chars, value *out, tare_error *err) {
    text code = {0};
    graph *g = NULL;
    tare__text_printf(&code, "def forward(self):\n    return %s\n", chars);
    tare_status status = tare__text_status(&code, err);
    if (status == TARE_OK) status = tare__parse_code(code.chars, code.length, NULL, &g, err);
    tare__text_release(&code);
    const node *result = status == TARE_OK ? tare__graph_output(g) : NULL;
    if (status == TARE_MALFORMED_FILE || (status == TARE_OK && g->node_count != 1) ||
        (status == TARE_OK && result->arg_count != 1))
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "expected a constant, found '%s'", chars);
    if (status == TARE_OK)
        status = tare__value_copy(memory, &result->args[0], NULL, NULL, out, err);
    tare__graph_destroy(g);
    return status;
}

static tare_status read_example(arena *memory, const tare_pattern_example *from,
                                capture_example *out, tare_error *err) {
    capture_input *inputs = tare__arena_array(memory, from->input_count + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < from->input_count; i++) {
        const tare_pattern_input *given = &from->inputs[i];
        inputs[i] = (capture_input){.dtype = given->dtype,
                                    .shape = given->shape,
                                    .rank = (int)given->rank,
                                    .is_constant = given->constant != NULL};
        if (given->constant != NULL)
            TARE_TRY(read_constant(memory, given->constant, &inputs[i].constant, err));
    }
    *out = (capture_example){.inputs = inputs, .count = from->input_count};
    return TARE_OK;
}

static tare_status read_examples(arena *memory, const tare_pattern_options *o,
                                 capture_example **out, tare_error *err) {
    *out = tare__arena_array(memory, o->example_count + 1, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < o->example_count; i++)
        TARE_TRY(tare__at(err, read_example(memory, &o->examples[i], &(*out)[i], err),
                          "example %zu", i));
    return TARE_OK;
}

// --- patterns ---

static tare_status add_forms(tare_subgraph_pattern *p, const char *const *codes, size_t count,
                             const tare_pattern_options *o, tare_error *err) {
    const subgraph_options known = {.match_output = o->match_output,
                                    .match_placeholder = o->match_placeholder,
                                    .keeps_overlapping = o->keeps_overlapping,
                                    .ignore_literals = o->ignore_literals,
                                    .shares_parameters = o->shares_parameters};
    arena memory = {0};
    capture_example *examples = NULL;
    tare_status status = read_examples(&memory, o, &examples, err);
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        status = tare__subgraph_forms_add(&p->forms, codes[i], strlen(codes[i]), &known, examples,
                                          o->example_count, err);
        if (status != TARE_OK) status = tare__at(err, status, "form %zu", i);
    }
    tare__arena_release(&memory);
    return status;
}

tare_status tare_subgraph_pattern_create(const char *const *codes, size_t count,
                                         const tare_pattern_options *options,
                                         tare_subgraph_pattern **out, tare_error *err) {
    tare_pattern_options o = {0};
    if (options != NULL) tare__struct_copy(&o, sizeof o, options);
    tare_subgraph_pattern *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    const tare_status status = add_forms(p, codes, count, &o, err);
    if (status == TARE_OK)
        *out = p;
    else
        tare_subgraph_pattern_destroy(p);
    return status;
}

tare_status tare_subgraph_pattern_ready(const char *name, tare_subgraph_pattern **out,
                                        tare_error *err) {
    tare_subgraph_pattern *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__ready_pattern_forms(name, &p->forms, err);
    if (status == TARE_OK)
        *out = p;
    else
        tare_subgraph_pattern_destroy(p);
    return status;
}

tare_status tare_subgraph_find(const tare_subgraph_pattern *pattern, const tare_model *model,
                               tare_subgraph_matches **out, tare_error *err) {
    tare_subgraph_matches *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->pattern = pattern;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < pattern->forms.count && status == TARE_OK; i++)
        status = tare__subgraph_find(pattern->forms.items[i], model->root->graph, &made->memory,
                                     &made->list, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_subgraph_matches_destroy(made);
    return status;
}

void tare_subgraph_matches_destroy(tare_subgraph_matches *m) {
    if (m == NULL) return;
    tare__arena_release(&m->memory);
    tare__free(m);
}

size_t tare_subgraph_matches_count(const tare_subgraph_matches *m) {
    return m->list.count;
}

size_t tare_subgraph_match_form(const tare_subgraph_matches *m, size_t index) {
    size_t form = 0;
    while (form < m->pattern->forms.count &&
           m->pattern->forms.items[form] != m->list.items[index].pattern)
        form++;
    return form;
}

const tare_node *tare_subgraph_match_node(const tare_subgraph_matches *m, size_t index,
                                          const char *name) {
    return index < m->list.count
               ? (const tare_node *)tare__subgraph_node(&m->list.items[index], name)
               : NULL;
}

bool tare_subgraph_match_argument(const tare_subgraph_matches *m, size_t index, const char *name,
                                  tare_argument *out) {
    *out = (tare_argument){.struct_size = sizeof *out, .kind = TARE_ARGUMENT_NONE};
    const value *v =
        index < m->list.count ? tare__subgraph_value(&m->list.items[index], name) : NULL;
    if (v != NULL) tare__argument_of(v, out);
    return v != NULL;
}

bool tare_subgraph_match_edge(const tare_subgraph_matches *m, size_t index, const char *name,
                              size_t nth, tare_edge *out) {
    node *from = NULL, *to = NULL;
    if (index >= m->list.count ||
        !tare__subgraph_edge(&m->list.items[index], name, nth, &from, &to))
        return false;
    *out = (tare_edge){.from = (const tare_node *)from, .node = (const tare_node *)to};
    return true;
}
