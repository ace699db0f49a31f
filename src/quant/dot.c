// SPDX-License-Identifier: Apache-2.0
// A model as a graphviz drawing.
#include "quant/dot.h"

#include "quant/coverage.h"
#include "quant/pass.h"

typedef struct edge_writer {
    text *out;
    const node *to;
} edge_writer;

static void write_edge(void *user, node *from) {
    const edge_writer *w = user;
    tare__text_printf(w->out, "  n%zu -> n%zu;\n", from->id, w->to->id);
}

tare_status tare__print_dot(const tare_model *model, text *out, tare_error *err) {
    tare__text_append(out, "digraph model {\n  node [shape=box, style=filled, fillcolor=white];\n");
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        const traced_op *op = tare__traced_op(model, n->origin);
        text label = {0};
        tare__text_printf(&label, "%s\n%s", n->name, tare__node_subject(model, n));
        tare__text_printf(out, "  n%zu [label=", n->id);
        tare__text_json_string(out, tare__text_chars(&label)); // DOT quotes strings as JSON does
        tare__text_append(out,
                          op != NULL && op->is_quantized ? ", fillcolor=palegreen];\n" : "];\n");
        if (label.failed) out->failed = true;
        tare__text_release(&label);
        edge_writer w = {out, n};
        tare__node_each_input(n, write_edge, &w);
    }
    tare__text_append(out, "}\n");
    return tare__text_status(out, err);
}
