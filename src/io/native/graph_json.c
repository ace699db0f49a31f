// SPDX-License-Identifier: Apache-2.0
// Reads and writes graphs. Nodes are read in order into a scratch arena and inserted into the
// graph, which copies them. Later nodes refer to them by name.
#include "io/native/graph_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/json/write.h"
#include "io/native/debug_handle.h"
#include "io/native/node_json.h"
#include "io/native/value_json.h"
#include "ir/call_names.h"
#include "ops/classes/classes.h"
#include "ops/op.h"

static const char module_stack_key[] = "nn_module_stack";

typedef struct reader {
    graph *graph;
    module *owner;
    map nodes;     // name -> node *
    arena scratch; // arguments of the current node
    tare_error *err;
} reader;

static tare_status read_args(reader *r, const json_at *at, node_spec *spec) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, r->err));
    spec->arg_count = json_array_size(at->value);
    value *args = tare__arena_array(&r->scratch, spec->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < spec->arg_count; i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(tare__value_from_json(&item, &r->scratch, &r->nodes, &args[i], r->err));
    }
    spec->args = args;
    return TARE_OK;
}

static tare_status read_kwargs(reader *r, const json_at *at, node_spec *spec) {
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    keyword *kwargs =
        tare__arena_array(&r->scratch, json_object_size(at->value) + 1, sizeof *kwargs);
    if (kwargs == NULL) return tare__out_of_memory(r->err);
    const char *key = NULL;
    json_t *item = NULL;
    size_t count = 0;
    json_object_foreach((json_t *)at->value, key, item) {
        const json_at inside = tare__json_get(at, key);
        kwargs[count].name = key;
        TARE_TRY(
            tare__value_from_json(&inside, &r->scratch, &r->nodes, &kwargs[count].value, r->err));
        count++;
    }
    spec->kwargs = kwargs;
    spec->kwarg_count = count;
    return TARE_OK;
}

static bool tensor_exists(const module *m, const char *path) {
    for (;;) {
        const size_t length = strcspn(path, ".");
        if (path[length] == '\0') return tare__module_has_tensor(m, path);
        m = tare__module_child_n(m, path, length);
        if (m == NULL) return false;
        path += length + 1;
    }
}

static tare_status check_target(const reader *r, const json_at *at, const node_spec *spec) {
    if (spec->op != NODE_CALL_MODULE && spec->op != NODE_GET_ATTR) return TARE_OK;
    // get_attr may also read a module: the graph of a branch, or packed weights.
    if (tare__module_find(r->owner, spec->target) != NULL) return TARE_OK;
    if (spec->op == NODE_GET_ATTR && tensor_exists(r->owner, spec->target)) return TARE_OK;
    return tare__json_fail(at, r->err, "node '%s' %s '%s', which is not in the model",
                           spec->candidate, spec->op == NODE_GET_ATTR ? "reads" : "calls module",
                           spec->target);
}

static tare_status keep_string(reader *r, const char *chars, const char **out) {
    *out = tare__arena_strdup(&r->graph->memory, chars);
    return *out != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

// The last of [[key, path, class], ..] is the module that was running when the node was traced.
static tare_status read_scope(reader *r, const json_at *stack, node *n) {
    TARE_TRY(tare__json_expect(stack, JSON_ARRAY, r->err));
    const size_t depth = json_array_size(stack->value);
    if (depth == 0) return TARE_OK;
    const json_at last = tare__json_item(stack, depth - 1);
    TARE_TRY(tare__json_expect(&last, JSON_ARRAY, r->err));
    const json_at path_at = tare__json_item(&last, 1), class_at = tare__json_item(&last, 2);
    const char *path = NULL, *class = NULL;
    TARE_TRY(tare__json_string(&path_at, &path, r->err));
    TARE_TRY(tare__json_string(&class_at, &class, r->err));
    char public_name[512];
    if (strlen(class) >= sizeof public_name)
        return tare__json_fail(&class_at, r->err, "a class name of more than %zu bytes",
                               sizeof public_name - 1);
    tare__class_public_name(class, public_name, sizeof public_name);
    TARE_TRY(keep_string(r, path, &n->scope_path));
    return keep_string(r, public_name, &n->scope_type);
}

static tare_status keep_json(reader *r, const json_at *at, const char **out) {
    text json = {0};
    tare__json_write(at->value, &json);
    tare_status status = tare__text_status(&json, r->err);
    if (status == TARE_OK) status = keep_string(r, tare__text_chars(&json), out);
    tare__text_release(&json);
    return status;
}

static tare_status read_meta(reader *r, const json_at *at, node *n) {
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    if (tare__json_has(at, module_stack_key)) {
        const json_at stack = tare__json_get(at, module_stack_key);
        TARE_TRY(read_scope(r, &stack, n));
    }
    TARE_TRY(
        tare__debug_handle_read(json_object_get(at->value, "custom"), &n->debug_handle, r->err));
    return keep_json(r, at, &n->meta_json);
}

// The node's own handle, which differs from that in `meta` if passes have changed it.
static tare_status read_handle(reader *r, const json_at *at, node *n) {
    const json_at handle = tare__json_get(at, "debug_handle");
    if (!tare__json_has(at, "debug_handle")) return TARE_OK;
    TARE_TRY(tare__json_int(&handle, &n->debug_handle, r->err));
    return n->debug_handle >= 0
               ? TARE_OK
               : tare__json_fail(&handle, r->err, "expected 0 or more, found %" PRId64,
                                 n->debug_handle);
}

static tare_status read_extras(reader *r, const json_at *at, node *n) {
    if (tare__json_has(at, "type")) {
        const json_at type = tare__json_get(at, "type");
        const char *annotation = NULL;
        TARE_TRY(tare__json_string(&type, &annotation, r->err));
        TARE_TRY(keep_string(r, annotation, &n->annotation));
    }
    if (tare__json_has(at, "origin")) {
        const json_at origin = tare__json_get(at, "origin");
        const char *name = NULL;
        TARE_TRY(tare__json_string(&origin, &name, r->err));
        TARE_TRY(keep_string(r, name, &n->origin));
    }
    if (tare__json_has(at, "meta")) {
        const json_at meta = tare__json_get(at, "meta");
        TARE_TRY(read_meta(r, &meta, n));
    }
    return read_handle(r, at, n);
}

static tare_status read_op(const json_at *at, node_op *op, tare_error *err) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, err));
    return tare__node_op_from_name(name, op) ? TARE_OK
                                             : tare__json_fail(at, err, "unknown op '%s'", name);
}

static tare_status insert(reader *r, const json_at *at, const node_spec *spec) {
    node *n = NULL;
    TARE_TRY(tare__graph_insert(r->graph, spec, NULL, &n, r->err));
    if (strcmp(n->name, spec->candidate) != 0)
        return tare__json_fail(at, r->err,
                               "a node cannot be named '%s': the name is taken or reserved",
                               spec->candidate);
    TARE_TRY(read_extras(r, at, n));
    return tare__map_set(&r->nodes, n->name, n) ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status read_node(reader *r, const json_at *at) {
    static const char *const keys[] = {"name", "op",     "target", "args",         "kwargs",
                                       "type", "origin", "meta",   "debug_handle", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at name = tare__json_get(at, "name"), op = tare__json_get(at, "op");
    const json_at target = tare__json_get(at, "target"), args = tare__json_get(at, "args");
    const json_at kwargs = tare__json_get(at, "kwargs");
    node_spec spec = {0};
    TARE_TRY(tare__json_string(&name, &spec.candidate, r->err));
    TARE_TRY(read_op(&op, &spec.op, r->err));
    TARE_TRY(tare__json_string(&target, &spec.target, r->err));
    TARE_TRY(check_target(r, &target, &spec));
    if (spec.op == NODE_CALL_FUNCTION) spec.target = tare__function_canonical(spec.target);
    TARE_TRY(read_args(r, &args, &spec));
    TARE_TRY(read_kwargs(r, &kwargs, &spec));
    return insert(r, at, &spec);
}

static tare_status read_codegen(reader *r, const json_at *at) {
    static const char *const keys[] = {"pytree", NULL};
    static const char *const pytree_keys[] = {"signature", "flatten", "export", NULL};
    if (json_is_string(at->value)) {
        if (strcmp(json_string_value(at->value), "plain") == 0) return TARE_OK;
        return tare__json_fail(at, r->err, "unknown codegen '%s'", json_string_value(at->value));
    }
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at pytree = tare__json_get(at, "pytree");
    TARE_TRY(tare__json_expect(&pytree, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(&pytree, pytree_keys, r->err));
    const json_at signature = tare__json_get(&pytree, "signature");
    const json_at flatten = tare__json_get(&pytree, "flatten");
    const char *chars = NULL;
    TARE_TRY(tare__json_string(&signature, &chars, r->err));
    TARE_TRY(keep_string(r, chars, &r->graph->pytree_signature));
    TARE_TRY(tare__json_string(&flatten, &chars, r->err));
    TARE_TRY(keep_string(r, chars, &r->graph->pytree_flatten));
    if (!tare__json_has(&pytree, "export")) return TARE_OK;
    const json_at about = tare__json_get(&pytree, "export");
    TARE_TRY(tare__json_expect(&about, JSON_OBJECT, r->err));
    return keep_json(r, &about, &r->graph->export_json);
}

// ["x", "mask"]; absent: none.
static tare_status read_name_list(reader *r, const json_at *names, const char *key,
                                  call_names *out) {
    const json_at list = tare__json_get(names, key);
    if (!tare__json_has(names, key)) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, r->err));
    const size_t count = json_array_size(list.value);
    out->items = tare__arena_array(&r->scratch, count + 1, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(r->err);
    for (; out->count < count; out->count++) {
        const json_at item = tare__json_item(&list, out->count);
        TARE_TRY(tare__json_string(&item, &out->items[out->count], r->err));
    }
    return TARE_OK;
}

// Without `names`, an exported program's names follow from what the exporter stored.
static tare_status read_names(reader *r, const json_at *object) {
    static const char *const keys[] = {"inputs", "outputs", NULL};
    const json_at names = tare__json_get(object, "names");
    call_names inputs = {0}, outputs = {0};
    if (!tare__json_has(object, "names")) {
        const json_at codegen = tare__json_get(object, "codegen");
        const json_at pytree = tare__json_get(&codegen, "pytree");
        const json_at about = tare__json_get(&pytree, "export");
        return tare__call_names_read(r->graph, &about, r->err);
    }
    TARE_TRY(tare__json_expect(&names, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(&names, keys, r->err));
    TARE_TRY(read_name_list(r, &names, "inputs", &inputs));
    TARE_TRY(read_name_list(r, &names, "outputs", &outputs));
    return tare__call_names_set(r->graph, &inputs, &outputs, r->err);
}

static tare_status read_graph(reader *r, const json_at *object) {
    const json_at nodes = tare__json_get(object, "nodes");
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(nodes.value); i++) {
        const json_at at = tare__json_item(&nodes, i);
        TARE_TRY(read_node(r, &at));
        tare__arena_release(&r->scratch);
    }
    if (tare__json_has(object, "codegen")) {
        const json_at codegen = tare__json_get(object, "codegen");
        TARE_TRY(read_codegen(r, &codegen));
    }
    TARE_TRY(read_names(r, object));
    // A graph that fails verification is an error of the file here, not of a pass.
    const tare_status status = tare__graph_verify(r->graph, r->err);
    return status == TARE_INTERNAL
               ? tare__json_fail(&nodes, r->err, "%s", tare_error_message(r->err))
               : status;
}

tare_status tare__graph_from_json(const json_at *object, module *owner, graph **out,
                                  tare_error *err) {
    reader r = {.owner = owner, .err = err};
    tare_status status = tare__graph_create(&r.graph, err);
    if (status == TARE_OK) status = read_graph(&r, object);
    tare__map_release(&r.nodes);
    tare__arena_release(&r.scratch);
    if (status == TARE_OK)
        *out = r.graph;
    else
        tare__graph_destroy(r.graph);
    return status;
}

// --- the arguments of one node ---

typedef struct written_arguments {
    reader reader;
    json_t *json; // holds the names of keywords
    node_spec spec;
} written_arguments;

static tare_status parse_arguments(written_arguments *w, const char *chars) {
    static const char *const keys[] = {"args", "kwargs", NULL};
    reader *r = &w->reader;
    TARE_TRY(tare__json_parse(chars, strlen(chars), &w->json, r->err));
    const json_at at = tare__json_root(w->json);
    TARE_TRY(tare__json_expect(&at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(&at, keys, r->err));
    const json_at args = tare__json_get(&at, "args"), kwargs = tare__json_get(&at, "kwargs");
    if (tare__json_has(&at, "args")) TARE_TRY(read_args(r, &args, &w->spec));
    return tare__json_has(&at, "kwargs") ? read_kwargs(r, &kwargs, &w->spec) : TARE_OK;
}

static tare_status begin_arguments(written_arguments *w, const graph *g, const node *before,
                                   const char *chars) {
    for (node *n = g->first; n != NULL && n != before; n = n->next)
        if (!tare__map_set(&w->reader.nodes, n->name, n)) return tare__out_of_memory(w->reader.err);
    return parse_arguments(w, chars);
}

static void end_arguments(written_arguments *w) {
    json_decref(w->json);
    tare__map_release(&w->reader.nodes);
    tare__arena_release(&w->reader.scratch);
}

tare_status tare__graph_insert_json(graph *g, const node_spec *spec, const char *arguments,
                                    node *before, node **out, tare_error *err) {
    written_arguments w = {.reader = {.err = err}, .spec = *spec};
    tare_status status = begin_arguments(&w, g, before, arguments);
    if (status == TARE_OK) status = tare__graph_insert(g, &w.spec, before, out, err);
    end_arguments(&w);
    return status;
}

tare_status tare__node_set_json(node *n, const char *arguments, tare_error *err) {
    written_arguments w = {.reader = {.err = err}};
    tare_status status = begin_arguments(&w, n->owner, n, arguments);
    if (status == TARE_OK)
        status = tare__node_set_args(n, w.spec.args, w.spec.arg_count, w.spec.kwargs,
                                     w.spec.kwarg_count, err);
    end_arguments(&w);
    return status;
}

// --- writing ---

// A node that a pass inserted has a scope but no meta; a module stack with one entry stores it.
static void write_meta(const node *n, text *out) {
    if (n->meta_json != NULL) {
        tare__text_printf(out, ", \"meta\": %s", n->meta_json);
    } else if (n->scope_type != NULL) {
        tare__text_printf(out, ", \"meta\": {\"%s\": [[\"\", ", module_stack_key);
        tare__text_json_string(out, n->scope_path);
        tare__text_append(out, ", ");
        tare__text_json_string(out, n->scope_type);
        tare__text_append(out, "]]}");
    }
}

static tare_status write_node(const node *n, text *out, tare_error *err) {
    tare__text_append(out, "{\"name\": ");
    tare__text_json_string(out, n->name);
    tare__text_printf(out, ", \"op\": \"%s\", \"target\": ", tare__node_op_name(n->op));
    tare__text_json_string(out, n->target);
    tare__text_append(out, ", \"args\": [");
    for (size_t i = 0; i < n->arg_count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(tare__value_to_json(&n->args[i], out, err));
    }
    tare__text_append(out, "], \"kwargs\": {");
    for (size_t i = 0; i < n->kwarg_count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__text_json_string(out, n->kwargs[i].name);
        tare__text_append(out, ": ");
        TARE_TRY(tare__value_to_json(&n->kwargs[i].value, out, err));
    }
    tare__text_char(out, '}');
    if (n->annotation != NULL) {
        tare__text_append(out, ", \"type\": ");
        tare__text_json_string(out, n->annotation);
    }
    if (n->origin != NULL) {
        tare__text_append(out, ", \"origin\": ");
        tare__text_json_string(out, n->origin);
    }
    // Also writes 0 if `meta` still has a handle of the exporter's that the node has lost.
    if (n->debug_handle != 0 || (n->meta_json != NULL && strstr(n->meta_json, "_debug_handle")))
        tare__text_printf(out, ", \"debug_handle\": %" PRId64, n->debug_handle);
    write_meta(n, out);
    tare__text_char(out, '}');
    return TARE_OK;
}

static void write_name_list(const char *key, const call_names *names, text *out) {
    tare__text_printf(out, "\"%s\": [", key);
    for (size_t i = 0; i < names->count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__text_json_string(out, names->items[i]);
    }
    tare__text_char(out, ']');
}

static void write_names(const graph *g, text *out) {
    if (g->export_json != NULL || g->input_names.count + g->output_names.count == 0) return;
    tare__text_append(out, ", \"names\": {");
    write_name_list("inputs", &g->input_names, out);
    tare__text_append(out, ", ");
    write_name_list("outputs", &g->output_names, out);
    tare__text_char(out, '}');
}

static void write_codegen(const graph *g, text *out) {
    if (g->pytree_signature == NULL) {
        tare__text_append(out, "\"plain\"");
        return;
    }
    tare__text_append(out, "{\"pytree\": {\"signature\": ");
    tare__text_json_string(out, g->pytree_signature);
    tare__text_append(out, ", \"flatten\": ");
    tare__text_json_string(out, g->pytree_flatten);
    if (g->export_json != NULL) tare__text_printf(out, ", \"export\": %s", g->export_json);
    tare__text_append(out, "}}");
}

tare_status tare__graph_to_json(const graph *g, text *out, tare_error *err) {
    tare__text_append(out, "\"nodes\": [");
    for (const node *n = g->first; n != NULL; n = n->next) {
        if (n != g->first) tare__text_append(out, ", ");
        TARE_TRY(write_node(n, out, err));
    }
    tare__text_append(out, "], \"codegen\": ");
    write_codegen(g, out);
    write_names(g, out);
    return TARE_OK;
}
