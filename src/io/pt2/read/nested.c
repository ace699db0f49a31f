// SPDX-License-Identifier: Apache-2.0
// Reads graphs that are arguments of nodes. Branches and loop bodies become modules; contexts
// without effect are inlined.
#include <string.h>

#include "io/pt2/argument.h"
#include "io/pt2/read/graph.h"

// --- branches and bodies ---

static tare_status add_branch_output(pt2_reader *r) {
    const json_at outputs = tare__json_get(&r->graph, "outputs");
    const json_at single = tare__json_get(&r->graph, "is_single_tensor_return");
    const pt2_names names = {.values = &r->values, .memory = &r->scratch, .err = r->err};
    TARE_TRY(tare__json_expect(&outputs, JSON_ARRAY, r->err));
    const size_t count = json_array_size(outputs.value);
    value given = tare__value_sequence(&r->scratch, VALUE_TUPLE, (uint32_t)count);
    node *n = NULL;
    if (given.as.items == NULL && count > 0) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        const json_at at = tare__json_item(&outputs, i);
        TARE_TRY(tare__pt2_argument(&names, &at, &given.as.items[i]));
    }
    if (json_is_true(single.value) && count == 1) given = given.as.items[0];
    const node_spec spec = {.op = NODE_OUTPUT,
                            .target = "output",
                            .candidate = "output",
                            .args = &given,
                            .arg_count = 1};
    return tare__graph_insert(r->g, &spec, NULL, &n, r->err);
}

// A branch has no lifted tensors; everything that it uses is an input.
static tare_status read_branch(pt2_reader *r) {
    const json_at nodes = tare__json_get(&r->graph, "nodes");
    const json_at inputs = tare__json_get(&r->graph, "inputs");
    TARE_TRY(tare__json_expect(&r->graph, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    TARE_TRY(tare__json_expect(&inputs, JSON_ARRAY, r->err));
    r->tensors = tare__json_get(&r->graph, "tensor_values");
    TARE_TRY(tare__pt2_note_names(r, &nodes));
    for (size_t i = 0; i < json_array_size(inputs.value); i++) {
        const json_at at = tare__json_item(&inputs, i);
        TARE_TRY(tare__pt2_add_named_input(r, &at));
    }
    TARE_TRY(tare__pt2_read_nodes(r, &nodes));
    TARE_TRY(add_branch_output(r));
    return tare__graph_verify(r->g, r->err);
}

static tare_status attach_branch(pt2_reader *r, const json_at *at, const char *name, module *branch,
                                 value *out) {
    node *n = NULL;
    if (r->reserved != NULL) TARE_TRY(tare__pt2_free_name(r, name, &name));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name, .candidate = name};
    if (tare__module_child(r->root, name) != NULL || tare__module_has_tensor(r->root, name))
        return tare__json_fail(at, r->err, "'%s' occurs twice", name);
    TARE_TRY(tare__module_set_child(r->root, name, branch, r->err));
    TARE_TRY(tare__pt2_insert(r, at, &spec, &n));
    *out = tare__node_value(n);
    return TARE_OK;
}

// {"name": "true_graph_0", "graph": ..}: a module under that name, which a node reads. JSON is
// nested 64 levels at most, and so are graphs.
tare_status tare__pt2_add_subgraph(void *user, const json_at *at, value *out) {
    pt2_reader *r = user;
    const json_at name_at = tare__json_get(at, "name");
    const char *name = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_string(&name_at, &name, r->err));
    if (!tare__is_identifier(name))
        return tare__json_fail(&name_at, r->err, "'%s' is no name of a graph", name);
    pt2_reader inner = {.archive = r->archive,
                        .classes = r->classes,
                        .graph = tare__json_get(at, "graph"),
                        .keeps_graphs = r->keeps_graphs || r->is_in_context,
                        .err = r->err};
    tare_status status = tare__pt2_make_root(&inner);
    if (status == TARE_OK) status = read_branch(&inner);
    if (status == TARE_OK) status = attach_branch(r, &name_at, name, inner.root, out);
    tare__pt2_release_graph(&inner);
    tare__module_release(inner.root);
    return status;
}

// --- contexts: torch.no_grad() and torch.autocast ---

bool tare__pt2_is_autocast(const json_at *target) {
    const char *name = json_string_value(target->value);
    return name != NULL && strcmp(name, "torch.ops.higher_order.wrap_with_autocast") == 0;
}

static const json_t *argument_of(const json_at *inputs, size_t i) {
    return json_object_get(json_array_get(inputs->value, i), "arg");
}

// Recognizes a context without effect here, whose graph can be inlined: gradient modes, and an
// autocast that is disabled or for another device. graph_at: index of the graph among the
// arguments.
bool tare__pt2_is_idle_context(const json_at *target, const json_at *inputs, size_t *graph_at) {
    enum { CAST_DEVICE = 0, CAST_ENABLED = 2, CAST_GRAPH = 4 };
    const char *name = json_string_value(target->value);
    *graph_at = 1;
    if (name != NULL && strcmp(name, "torch.ops.higher_order.wrap_with_set_grad_enabled") == 0)
        return true;
    const json_t *enabled = json_object_get(argument_of(inputs, CAST_ENABLED), "as_bool");
    const char *device =
        json_string_value(json_object_get(argument_of(inputs, CAST_DEVICE), "as_string"));
    *graph_at = CAST_GRAPH;
    return tare__pt2_is_autocast(target) && device != NULL &&
           (strcmp(device, "cpu") != 0 || json_is_false(enabled));
}

// The name in {"as_tensor": {"name": "x"}}; NULL for any other argument.
static const char *name_in(const json_t *argument) {
    const json_t *tensor = json_object_get(argument, "as_tensor");
    return json_string_value(json_object_get(tensor, "name"));
}

// Binds the graph's inputs to the nodes of the call's arguments. *fits false: one is no tensor.
static tare_status bind_arguments(pt2_reader *r, pt2_reader *inner, const json_at *inputs,
                                  size_t first, bool *fits) {
    const json_at taken = tare__json_get(&inner->graph, "inputs");
    TARE_TRY(tare__json_expect(&taken, JSON_ARRAY, r->err));
    const size_t count = json_array_size(taken.value);
    *fits = json_array_size(inputs->value) == first + count;
    for (size_t i = 0; i < count && *fits; i++) {
        const char *from = name_in(argument_of(inputs, first + i)),
                   *to = name_in(json_array_get(taken.value, i));
        node *n = from != NULL ? tare__map_get(&r->values, from) : NULL;
        *fits = n != NULL && to != NULL;
        if (*fits) TARE_TRY(tare__pt2_keep_value(inner, &taken, to, n));
    }
    return TARE_OK;
}

// A node of the graph that computes a result of the call gets the name of the result, the first one
// if it computes several.
static tare_status rename_results(pt2_reader *r, pt2_reader *inner, const pt2_results *res,
                                  bool *fits) {
    const json_at outputs = tare__json_get(&inner->graph, "outputs");
    TARE_TRY(tare__json_expect(&outputs, JSON_ARRAY, r->err));
    *fits = json_array_size(outputs.value) == res->count;
    for (size_t i = 0; i < res->count && *fits; i++) {
        const char *name = name_in(json_array_get(outputs.value, i));
        *fits = name != NULL;
        if (name == NULL || tare__map_has(&inner->renamed, name)) continue;
        if (!tare__map_set(&inner->renamed, name, (void *)res->names[i]))
            return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

static tare_status keep_results(pt2_reader *r, const pt2_reader *inner, const json_at *at,
                                const pt2_results *res) {
    const json_at outputs = tare__json_get(&inner->graph, "outputs");
    for (size_t i = 0; i < res->count; i++) {
        const char *name = name_in(json_array_get(outputs.value, i));
        node *n = tare__map_get(&inner->values, name);
        if (n == NULL) return tare__json_fail(at, r->err, "no node of its graph gives '%s'", name);
        TARE_TRY(tare__pt2_keep_value(r, at, res->names[i], n));
    }
    return TARE_OK;
}

static tare_status read_inlined(pt2_reader *r, pt2_reader *inner, const json_at *at,
                                const json_at *inputs, size_t graph_at, bool *done) {
    const json_at outputs = tare__json_get(at, "outputs");
    const json_at nodes = tare__json_get(&inner->graph, "nodes");
    pt2_results res;
    bool fits = false;
    TARE_TRY(tare__pt2_read_results(r, &outputs, &res));
    TARE_TRY(bind_arguments(r, inner, inputs, graph_at + 1, &fits));
    if (fits) TARE_TRY(rename_results(r, inner, &res, &fits));
    if (!fits) return TARE_OK;
    *done = true;
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    TARE_TRY(tare__pt2_read_nodes(inner, &nodes));
    return keep_results(r, inner, at, &res);
}

// Nothing is done unless all inputs and outputs of the graph are tensors.
tare_status tare__pt2_inline_graph(pt2_reader *r, const json_at *at, size_t graph_at, bool *done) {
    const json_at inputs = tare__json_get(at, "inputs");
    const json_at item = tare__json_item(&inputs, graph_at);
    const json_at argument = tare__json_get(&item, "arg");
    const json_at held = tare__json_get(&argument, "as_graph");
    TARE_TRY(tare__json_expect(&held, JSON_OBJECT, r->err));
    pt2_reader inner = {.archive = r->archive,
                        .classes = r->classes,
                        .root = r->root,
                        .g = r->g,
                        .graph = tare__json_get(&held, "graph"),
                        .reserved = r->reserved != NULL ? r->reserved : &r->taken,
                        .err = r->err};
    TARE_TRY(tare__json_expect(&inner.graph, JSON_OBJECT, r->err));
    inner.tensors = tare__json_get(&inner.graph, "tensor_values");
    const tare_status status = read_inlined(r, &inner, at, &inputs, graph_at, done);
    tare__pt2_release_graph(&inner);
    return status;
}
