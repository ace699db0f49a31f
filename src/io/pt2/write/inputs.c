// SPDX-License-Identifier: Apache-2.0
// Writes the inputs of a program: lifted parameters, buffers and constants, then user inputs.
#include <string.h>

#include "core/text/text.h"
#include "io/pt2/write/program.h"

static const size_t no_record = SIZE_MAX;

static const struct {
    const char *key, *path_key, *prefix;
} kinds[] = {
    [LIFTED_PARAMETER] = {"parameter", "parameter_name", "p_"},
    [LIFTED_BUFFER] = {"buffer", "buffer_name", "b_"},
    [LIFTED_CONSTANT] = {"tensor_constant", "tensor_constant_name", "c_"},
};

void tare__pt2_separate(text *list) {
    if (list->length > 0) tare__text_append(list, ", ");
}

// --- names ---

static tare_status take_name(program_writer *w, const char *wanted, const char **out) {
    *out = wanted;
    for (int k = 1; tare__map_has(&w->taken, *out); k++) {
        *out = tare__arena_printf(&w->memory, "%s_%d", wanted, k);
        if (*out == NULL) return tare__out_of_memory(w->err);
    }
    return tare__map_set(&w->taken, *out, w) ? TARE_OK : tare__out_of_memory(w->err);
}

// "conv.weight" -> "p_conv_weight"
static tare_status name_lifted(program_writer *w, lifted *l) {
    char *name = tare__arena_printf(&w->memory, "%s%s", kinds[l->kind].prefix, l->path);
    if (name == NULL) return tare__out_of_memory(w->err);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '.') *c = '_';
    return take_name(w, name, &l->name);
}

// --- lifted tensors ---

static const named_tensor *find_tensor(const module *root, const char *path) {
    for (;;) {
        const size_t length = strcspn(path, ".");
        if (path[length] == '\0') return tare__module_named_tensor(root, path);
        root = tare__module_child_n(root, path, length);
        if (root == NULL) return NULL;
        path += length + 1;
    }
}

static void classify(const program_writer *w, const named_tensor *t, lifted *l) {
    const json_t *kind_of =
        json_object_get(json_object_get(tare__pt2_sizes_about(w->sizes), "kinds"), l->path);
    const char *kind = json_is_string(kind_of) ? json_string_value(kind_of) : "";
    l->kind = strcmp(kind, "tensor_constant") == 0 ? LIFTED_CONSTANT
              : t->is_parameter                    ? LIFTED_PARAMETER
                                                   : LIFTED_BUFFER;
    l->is_persistent = l->kind != LIFTED_CONSTANT && strcmp(kind, "buffer") != 0;
    l->requires_grad = l->kind == LIFTED_PARAMETER && tare__dtype(t->tensor->dtype)->is_float &&
                       strcmp(kind, "frozen") != 0;
}

static tare_status lift(program_writer *w, const node *n) {
    if (tare__map_has(&w->lifted_at, n->target)) return TARE_OK;
    const module *branch = tare__module_find(w->root, n->target);
    if (branch != NULL && branch->graph != NULL) return TARE_OK;
    if (w->is_branch)
        return tare__fail(w->err, TARE_UNSUPPORTED,
                          "node '%s' reads '%s' inside of a branch or body, whose graph can only "
                          "take it as an input",
                          n->name, n->target);
    const named_tensor *t = find_tensor(w->root, n->target);
    if (t == NULL || t->tensor == NULL)
        return tare__fail(w->err, TARE_UNSUPPORTED,
                          "node '%s' reads '%s', which is no tensor: programs hold nothing else",
                          n->name, n->target);
    lifted *l = &w->lifted[w->lifted_count++];
    *l = (lifted){.reader = n, .path = n->target, .data = t->tensor};
    classify(w, t, l);
    return tare__map_set(&w->lifted_at, n->target, tare__map_int(w->lifted_count))
               ? TARE_OK
               : tare__out_of_memory(w->err);
}

// Stable: within a kind in the order of the graph.
static tare_status sort_lifted(program_writer *w) {
    lifted *sorted = tare__arena_array(&w->memory, w->lifted_count + 1, sizeof *sorted);
    size_t count = 0;
    if (sorted == NULL) return tare__out_of_memory(w->err);
    for (int kind = LIFTED_PARAMETER; kind <= LIFTED_CONSTANT; kind++)
        for (size_t i = 0; i < w->lifted_count; i++)
            if ((int)w->lifted[i].kind == kind) sorted[count++] = w->lifted[i];
    w->lifted = sorted;
    for (size_t i = 0; i < count; i++) {
        if (!tare__map_set(&w->lifted_at, sorted[i].path, tare__map_int(i + 1)))
            return tare__out_of_memory(w->err);
        TARE_TRY(name_lifted(w, &sorted[i]));
    }
    return TARE_OK;
}

static bool share_data(const lifted *a, const lifted *b) {
    return a->data->data == b->data->data && a->data->count > 0 &&
           a->is_persistent == b->is_persistent && a->data->dtype == b->data->dtype &&
           a->data->count == b->data->count;
}

// Names that share data share a record.
static void number_records(program_writer *w, lifted_kind kind, bool is_persistent, size_t *count) {
    for (size_t i = 0; i < w->lifted_count; i++) {
        lifted *l = &w->lifted[i];
        if (l->kind != kind || l->is_persistent != is_persistent) continue;
        for (size_t k = 0; k < w->lifted_count && l->record == no_record; k++)
            if (share_data(&w->lifted[k], l)) l->record = w->lifted[k].record;
        if (l->record == no_record) l->record = (*count)++;
    }
}

static void number_all_records(program_writer *w) {
    size_t weights = 0, constants = 0;
    for (size_t i = 0; i < w->lifted_count; i++) w->lifted[i].record = no_record;
    number_records(w, LIFTED_PARAMETER, true, &weights);
    number_records(w, LIFTED_BUFFER, true, &weights);
    // torch's order.
    number_records(w, LIFTED_CONSTANT, false, &constants);
    number_records(w, LIFTED_BUFFER, false, &constants);
}

static bool is_kept_name(void *user, const map_entry *entry) {
    (void)user;
    return entry->value != NULL;
}

static tare_status lift_all(program_writer *w) {
    w->lifted = tare__arena_array(&w->memory, w->g->node_count + 1, sizeof *w->lifted);
    if (w->lifted == NULL) return tare__out_of_memory(w->err);
    for (const node *n = w->g->first; n != NULL; n = n->next) {
        if (n->op == NODE_GET_ATTR) TARE_TRY(lift(w, n));
        void *keeps = n->op != NODE_GET_ATTR ? w : NULL;
        if (n->op != NODE_PLACEHOLDER && !tare__map_set(&w->taken, n->name, keeps))
            return tare__out_of_memory(w->err);
    }
    // Names of get_attr nodes are free, because lifted inputs have their own names.
    tare__map_keep(&w->taken, is_kept_name, NULL);
    TARE_TRY(sort_lifted(w));
    number_all_records(w);
    for (const node *n = w->g->first; n != NULL; n = n->next)
        if (n->op == NODE_GET_ATTR) {
            const size_t at = (size_t)tare__map_get(&w->lifted_at, n->target);
            w->given[n->id] = at > 0 ? (pt2_given){w->lifted[at - 1].name, PT2_TENSOR}
                                     : (pt2_given){NULL, PT2_GRAPH};
        }
    return TARE_OK;
}

static tare_status write_lifted(program_writer *w, const lifted *l) {
    text *specs = &w->input_specs;
    tare__pt2_separate(&w->inputs);
    tare__pt2_write_named(&w->inputs, (pt2_given){l->name, PT2_TENSOR});
    tare__pt2_separate(&w->tensor_values);
    tare__text_json_string(&w->tensor_values, l->name);
    tare__text_append(&w->tensor_values, ": ");
    TARE_TRY(
        tare__pt2_sizes_data(w->sizes, l->reader, l->data, l->requires_grad, &w->tensor_values));
    tare__pt2_separate(specs);
    tare__text_printf(specs, "{\"%s\": {\"arg\": {\"name\": ", kinds[l->kind].key);
    tare__text_json_string(specs, l->name);
    tare__text_printf(specs, "}, \"%s\": ", kinds[l->kind].path_key);
    tare__text_json_string(specs, l->path);
    if (l->kind == LIFTED_BUFFER)
        tare__text_printf(specs, ", \"persistent\": %s", l->is_persistent ? "true" : "false");
    tare__text_append(specs, "}}");
    return tare__text_status(specs, w->err);
}

// --- user inputs ---

tare_status tare__pt2_note_value(program_writer *w, const node *n, int64_t item, pt2_given g) {
    text *const tables[] = {[PT2_TENSOR] = &w->tensor_values,
                            [PT2_INT] = &w->sym_int_values,
                            [PT2_FLOAT] = &w->sym_float_values,
                            [PT2_BOOL] = &w->sym_bool_values};
    text *table = tables[g.kind];
    tare__pt2_separate(table);
    tare__text_json_string(table, g.name);
    tare__text_append(table, ": ");
    return g.kind == PT2_TENSOR ? tare__pt2_sizes_tensor(w->sizes, n, item, table)
                                : tare__pt2_sizes_number(w->sizes, n, table);
}

// An argument that was fixed at export is written as the value that it had.
static tare_status write_fixed(program_writer *w, const node *n) {
    text constant = {0};
    const pt2_scribe scribe = {w->given, &constant, w->err};
    tare_status status = tare__pt2_write_argument(&scribe, n, &n->args[0], 0);
    tare__pt2_separate(&w->inputs);
    tare__pt2_separate(&w->input_specs);
    tare__text_append(&w->inputs, tare__text_chars(&constant));
    tare__text_append(&w->input_specs, "{\"constant_input\": {\"name\": ");
    tare__text_json_string(&w->input_specs, w->given[n->id].name);
    tare__text_printf(&w->input_specs, ", \"value\": %s}}", tare__text_chars(&constant));
    tare__text_release(&constant);
    w->given[n->id].name = NULL;
    // In an exported program only guards read it: its value is in the graph.
    for (size_t i = 0; i < n->user_count && status == TARE_OK; i++)
        if (!tare__pt2_is_guard(w, n->users[i]))
            status = tare__fail(w->err, TARE_UNSUPPORTED,
                                "input '%s' has a default and no known shape: give it a shape, or "
                                "put its value into the graph",
                                n->target);
    return status;
}

static tare_status write_user_input(program_writer *w, const node *n) {
    const json_t *meta = tare__pt2_sizes_meta(w->sizes, n);
    const bool is_described = json_object_get(meta, "val") != NULL ||
                              json_object_get(meta, "symbolic") != NULL ||
                              json_object_get(meta, "example") != NULL;
    pt2_given *g = &w->given[n->id];
    TARE_TRY(take_name(w, n->target, &g->name));
    if (!is_described && n->arg_count > 0) return write_fixed(w, n);
    g->kind = tare__pt2_sizes_kind(w->sizes, n, -1, PT2_TENSOR);
    if (g->kind != PT2_TENSOR && g->kind != PT2_INT)
        return tare__fail(w->err, TARE_UNSUPPORTED,
                          "input '%s' is neither a tensor nor a whole number", n->target);
    TARE_TRY(tare__pt2_note_value(w, n, -1, *g));
    tare__pt2_separate(&w->inputs);
    tare__pt2_write_named(&w->inputs, *g);
    tare__pt2_separate(&w->input_specs);
    tare__text_append(&w->input_specs, "{\"user_input\": {\"arg\": ");
    tare__pt2_write_named(&w->input_specs, *g);
    tare__text_append(&w->input_specs, "}}");
    return tare__text_status(&w->input_specs, w->err);
}

tare_status tare__pt2_write_inputs(program_writer *w) {
    TARE_TRY(lift_all(w));
    for (size_t i = 0; i < w->lifted_count; i++) TARE_TRY(write_lifted(w, &w->lifted[i]));
    for (const node *n = w->g->first; n != NULL; n = n->next)
        if (n->op == NODE_PLACEHOLDER) TARE_TRY(write_user_input(w, n));
    return TARE_OK;
}
