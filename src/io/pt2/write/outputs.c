// SPDX-License-Identifier: Apache-2.0
// Writes the outputs of a program, and its call signature.
#include <string.h>

#include "core/json/write.h"
#include "io/pt2/write/program.h"

// --- outputs ---

static const char *mutation_key(const lifted *l) {
    return l == NULL                     ? "user_input_mutation"
           : l->kind == LIFTED_PARAMETER ? "parameter_mutation"
                                         : "buffer_mutation";
}

static tare_status write_mutation(program_writer *w, const node *n) {
    const node *into = n->args[0].as.node;
    const size_t at = (size_t)tare__map_get(&w->lifted_at, into->target);
    const lifted *l = into->op == NODE_GET_ATTR && at > 0 ? &w->lifted[at - 1] : NULL;
    const pt2_given g = w->given[n->args[1].as.node->id];
    text *specs = &w->output_specs;
    if (g.name == NULL || g.kind != PT2_TENSOR)
        return tare__fail(w->err, TARE_UNSUPPORTED, "node '%s' copies what is not a tensor",
                          n->name);
    tare__pt2_separate(&w->outputs);
    tare__pt2_write_named(&w->outputs, g);
    tare__pt2_separate(specs);
    tare__text_printf(specs, "{\"%s\": {\"arg\": {\"name\": ", mutation_key(l));
    tare__text_json_string(specs, g.name);
    tare__text_printf(specs, "}, \"%s\": ",
                      l == NULL                     ? "user_input_name"
                      : l->kind == LIFTED_PARAMETER ? "parameter_name"
                                                    : "buffer_name");
    tare__text_json_string(specs, l == NULL ? w->given[into->id].name : l->path);
    tare__text_append(specs, "}}");
    return tare__text_status(specs, w->err);
}

// Containers are flattened; the call's signature describes them.
static tare_status write_output(program_writer *w, const node *n, const value *v) {
    if (tare__value_has_items(v)) {
        const uint32_t step = v->kind == VALUE_DICT ? 2 : 1;
        for (uint32_t i = step - 1; i < v->count; i += step)
            TARE_TRY(write_output(w, n, &v->as.items[i]));
        return TARE_OK;
    }
    text argument = {0};
    const pt2_scribe scribe = {w->given, &argument, w->err};
    const tare_status status = tare__pt2_write_argument(&scribe, n, v, 0);
    tare__pt2_separate(&w->outputs);
    tare__text_append(&w->outputs, tare__text_chars(&argument));
    tare__pt2_separate(&w->output_specs);
    tare__text_printf(&w->output_specs, "{\"user_output\": {\"arg\": %s}}",
                      tare__text_chars(&argument));
    tare__text_release(&argument);
    return status;
}

tare_status tare__pt2_write_outputs(program_writer *w) {
    const node *output = tare__graph_output(w->g);
    for (const node *n = w->g->first; n != NULL; n = n->next)
        if (tare__pt2_is_mutation(n)) TARE_TRY(write_mutation(w, n));
    if (output != NULL && output->arg_count > 0)
        TARE_TRY(write_output(w, output, &output->args[0]));
    return tare__text_status(&w->output_specs, w->err);
}

// --- the call ---

static const char leaf[] = "{\"type\": null, \"context\": null, \"children_spec\": []}";

static void open_tree(text *out, const char *type) {
    tare__text_printf(out,
                      "{\"type\": \"builtins.%s\", \"context\": \"null\", "
                      "\"children_spec\": [",
                      type);
}

static void write_dict(const value *v, text *out);

static void write_tree(const value *v, text *out) {
    if (v->kind == VALUE_DICT) {
        write_dict(v, out);
        return;
    }
    if (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE) {
        tare__text_append(out, leaf);
        return;
    }
    open_tree(out, v->kind == VALUE_LIST ? "list" : "tuple");
    for (uint32_t i = 0; i < v->count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        write_tree(&v->as.items[i], out);
    }
    tare__text_append(out, "]}");
}

// The keys of a dict are a JSON list in a string.
static void write_dict(const value *v, text *out) {
    text keys = {0};
    tare__text_char(&keys, '[');
    for (uint32_t i = 0; i < v->count; i += 2) {
        const value *key = &v->as.items[i];
        if (i > 0) tare__text_append(&keys, ", ");
        tare__text_json_string(&keys, key->kind == VALUE_STRING ? key->as.text : "");
    }
    tare__text_char(&keys, ']');
    tare__text_append(out, "{\"type\": \"builtins.dict\", \"context\": ");
    tare__text_json_string(out, tare__text_chars(&keys));
    tare__text_append(out, ", \"children_spec\": [");
    for (uint32_t i = 1; i < v->count; i += 2) {
        if (i > 1) tare__text_append(out, ", ");
        write_tree(&v->as.items[i], out);
    }
    tare__text_append(out, "]}");
    out->failed = out->failed || keys.failed;
    tare__text_release(&keys);
}

static void write_input_tree(const graph *g, text *out) {
    bool is_first = true;
    open_tree(out, "tuple");
    open_tree(out, "tuple");
    for (const node *n = g->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        if (!is_first) tare__text_append(out, ", ");
        is_first = false;
        tare__text_append(out, leaf);
    }
    tare__text_append(out, "]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", "
                           "\"children_spec\": []}]}");
}

// The output of an exported graph is flattened, and its original structure is unknown. A single
// value is assumed to have been returned as such.
static void write_output_tree(const graph *g, text *out) {
    const node *output = tare__graph_output(g);
    const value none = tare__none(),
                *v = output != NULL && output->arg_count > 0 ? &output->args[0] : &none;
    const bool is_flat = g->pytree_signature != NULL && v->kind == VALUE_TUPLE && v->count == 1;
    write_tree(is_flat ? &v->as.items[0] : v, out);
}

static void write_tree_text(const graph *g, void (*write)(const graph *g, text *out), text *out) {
    text tree = {0};
    tare__text_append(&tree, "[1, ");
    write(g, &tree);
    tare__text_char(&tree, ']');
    tare__text_json_string(out, tare__text_chars(&tree));
    out->failed = out->failed || tree.failed;
    tare__text_release(&tree);
}

tare_status tare__pt2_write_calls(const program_writer *w, text *out) {
    const json_t *kept = json_object_get(tare__pt2_sizes_about(w->sizes), "module_call_graph");
    if (kept != NULL) {
        tare__json_write(kept, out);
        return tare__text_status(out, w->err);
    }
    tare__text_append(out, "[{\"fqn\": \"\", \"signature\": {\"inputs\": [], \"outputs\": [], "
                           "\"in_spec\": ");
    write_tree_text(w->g, write_input_tree, out);
    tare__text_append(out, ", \"out_spec\": ");
    write_tree_text(w->g, write_output_tree, out);
    tare__text_append(out, ", \"forward_arg_names\": [");
    bool is_first = true;
    for (const node *n = w->g->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        if (!is_first) tare__text_append(out, ", ");
        is_first = false;
        tare__text_json_string(out, n->target);
    }
    tare__text_append(out, "]}}]");
    return tare__text_status(out, w->err);
}
