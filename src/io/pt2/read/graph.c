// SPDX-License-Identifier: Apache-2.0
// Reads a program's graphs: the names of nodes, and their calls.
#include "io/pt2/read/graph.h"

#include <string.h>

#include "io/pt2/argument.h"
#include "io/pt2/meta.h"
#include "ops/op.h"

enum { MOST_RESULTS = 4096 };
static const char higher_order[] = "torch.ops.higher_order.";

tare_status tare__pt2_make_root(pt2_reader *r) {
    const value name = tare__string("GraphModule");
    TARE_TRY(tare__module_create(&tare__class_graph_module, &r->root, r->err));
    TARE_TRY(tare__module_set_config(r->root, "class_name", &name, r->err));
    TARE_TRY(tare__graph_create(&r->g, r->err));
    r->root->graph = r->g;
    return TARE_OK;
}

void tare__pt2_release_graph(pt2_reader *r) {
    tare__map_release(&r->values);
    tare__map_release(&r->renamed);
    tare__map_release(&r->targets);
    tare__map_release(&r->taken);
    tare__arena_release(&r->scratch);
}

// --- names ---

tare_status tare__pt2_keep_value(pt2_reader *r, const json_at *at, const char *name, node *n) {
    if (tare__map_has(&r->values, name))
        return tare__json_fail(at, r->err, "'%s' is given twice", name);
    return tare__map_set(&r->values, name, n) ? TARE_OK : tare__out_of_memory(r->err);
}

static bool is_free(const pt2_reader *r, const char *name) {
    return !tare__map_has(r->reserved, name) && tare__graph_find(r->g, name) == NULL &&
           tare__module_child(r->root, name) == NULL;
}

// The name itself, or the name with a number if it is taken.
tare_status tare__pt2_free_name(pt2_reader *r, const char *name, const char **out) {
    *out = tare__map_get(&r->renamed, name);
    if (*out != NULL) return TARE_OK;
    *out = name;
    for (int k = 1; !is_free(r, *out); k++) {
        *out = tare__arena_printf(&r->scratch, "%s_%d", name, k);
        if (*out == NULL) return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

tare_status tare__pt2_insert(pt2_reader *r, const json_at *at, const node_spec *spec, node **out) {
    if (r->reserved != NULL && spec->candidate != NULL) {
        node_spec inner = *spec;
        TARE_TRY(tare__pt2_free_name(r, spec->candidate, &inner.candidate));
        return tare__graph_insert(r->g, &inner, NULL, out, r->err);
    }
    TARE_TRY(tare__graph_insert(r->g, spec, NULL, out, r->err));
    if (spec->candidate != NULL && strcmp((*out)->name, spec->candidate) != 0)
        return tare__json_fail(at, r->err,
                               "a node cannot be named '%s': the name is taken or reserved",
                               spec->candidate);
    return TARE_OK;
}

// Collects the names of nodes and of their items, which get_attr nodes of tensors must not take.
tare_status tare__pt2_note_names(pt2_reader *r, const json_at *nodes) {
    for (size_t i = 0; i < json_array_size(nodes->value); i++) {
        const json_t *n = json_array_get(nodes->value, i);
        const char *name = json_string_value(json_object_get(n, "name"));
        if (name != NULL && !tare__map_set(&r->taken, name, r)) return tare__out_of_memory(r->err);
    }
    const char *name = NULL;
    json_t *item = NULL;
    if (!json_is_object(r->tensors.value)) return TARE_OK;
    json_object_foreach(
        (json_t *)r->tensors.value, name,
        item) if (!tare__map_set(&r->taken, name, r)) return tare__out_of_memory(r->err);
    return TARE_OK;
}

// --- nodes ---

static tare_status read_result(pt2_reader *r, const json_at *at, pt2_results *out) {
    const char *key = NULL, *inner_key = NULL;
    json_at body, inner;
    TARE_TRY(tare__pt2_union(at, &key, &body, r->err));
    if (strcmp(key, "as_none") == 0) return TARE_OK;
    if (out->count == MOST_RESULTS)
        return tare__json_fail(at, r->err, "more than %d results", MOST_RESULTS);
    TARE_TRY(tare__pt2_union(&body, &inner_key, &inner, r->err));
    return tare__json_string(&inner, &out->names[out->count++], r->err);
}

// A list of tensors is one output; a tuple is as many as it has items.
tare_status tare__pt2_read_results(pt2_reader *r, const json_at *outputs, pt2_results *out) {
    TARE_TRY(tare__json_expect(outputs, JSON_ARRAY, r->err));
    const json_at first = tare__json_item(outputs, 0), list = tare__json_get(&first, "as_tensors");
    const bool is_list = json_array_size(outputs->value) == 1 && json_is_object(first.value) &&
                         tare__json_has(&first, "as_tensors");
    const json_at *all = is_list ? &list : outputs;
    TARE_TRY(tare__json_expect(all, JSON_ARRAY, r->err));
    const size_t count = json_array_size(all->value);
    *out = (pt2_results){.names = tare__arena_array(&r->scratch, count + 1, sizeof *out->names),
                         .are_items = is_list || count > 1};
    if (out->names == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        const json_at item = tare__json_item(all, i), name = tare__json_get(&item, "name");
        if (!is_list)
            TARE_TRY(read_result(r, &item, out));
        else
            TARE_TRY(tare__json_string(&name, &out->names[out->count++], r->err));
    }
    return TARE_OK;
}

static tare_status read_arguments(pt2_reader *r, const json_at *inputs, node_spec *spec) {
    const pt2_names names = {&r->values, &r->scratch, r->err, tare__pt2_add_subgraph, r};
    TARE_TRY(tare__json_expect(inputs, JSON_ARRAY, r->err));
    const size_t count = json_array_size(inputs->value);
    value *args = tare__arena_array(&r->scratch, count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(&r->scratch, count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        const json_at at = tare__json_item(inputs, i), arg = tare__json_get(&at, "arg");
        const json_at name = tare__json_get(&at, "name"), kind_at = tare__json_get(&at, "kind");
        int64_t kind = 1; // older writers leave it out
        TARE_TRY(tare__json_expect(&at, JSON_OBJECT, r->err));
        if (json_is_integer(kind_at.value)) TARE_TRY(tare__json_int(&kind_at, &kind, r->err));
        if (kind == 2) {
            TARE_TRY(tare__json_string(&name, &kwargs[spec->kwarg_count].name, r->err));
            TARE_TRY(tare__pt2_argument(&names, &arg, &kwargs[spec->kwarg_count++].value));
        } else {
            TARE_TRY(tare__pt2_argument(&names, &arg, &args[spec->arg_count++]));
        }
    }
    spec->args = args;
    spec->kwargs = kwargs;
    return TARE_OK;
}

static tare_status read_target(pt2_reader *r, const json_at *at, const char **out) {
    const char *target = NULL;
    TARE_TRY(tare__json_string(at, &target, r->err));
    const bool is_flow = tare__starts_with(target, higher_order);
    if ((is_flow && tare__op_function(target) == NULL) || target[0] == '#')
        return tare__json_place(
            at, tare__fail(r->err, TARE_UNSUPPORTED, "calls of '%s' are not supported", target),
            r->err);
    // Python's operators on sizes.
    if (tare__starts_with(target, "_operator.")) target++;
    *out = tare__function_canonical(target);
    return TARE_OK;
}

// Adds a getitem node for every result that is used.
static tare_status add_items(pt2_reader *r, const json_at *at, node *n, const char *candidate,
                             const pt2_results *res, const json_at *metadata) {
    for (size_t i = 0; i < res->count; i++) {
        char unused[512];
        (void)snprintf(unused, sizeof unused, "%s_unused_%zu", candidate, i);
        if (strcmp(unused, res->names[i]) == 0) continue;
        const value args[] = {tare__node_value(n), tare__int((int64_t)i)};
        const node_spec spec = {.op = NODE_CALL_FUNCTION,
                                .target = "operator.getitem",
                                .candidate = res->names[i],
                                .args = args,
                                .arg_count = 2};
        node *item = NULL;
        TARE_TRY(tare__pt2_insert(r, at, &spec, &item));
        TARE_TRY(tare__pt2_set_meta(item, &r->graph, &res->names[i], 1, metadata, r->err));
        TARE_TRY(tare__pt2_keep_value(r, at, res->names[i], item));
    }
    return TARE_OK;
}

static tare_status add_node(pt2_reader *r, const json_at *at) {
    const json_at target = tare__json_get(at, "target"), inputs = tare__json_get(at, "inputs");
    const json_at outputs = tare__json_get(at, "outputs"), name = tare__json_get(at, "name");
    const json_at metadata = tare__json_get(at, "metadata");
    const json_at single = tare__json_get(at, "is_hop_single_tensor_return");
    node_spec spec = {.op = NODE_CALL_FUNCTION};
    pt2_results res;
    node *n = NULL;
    size_t graph_at = 0;
    bool done = false;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    if (!r->keeps_graphs && tare__pt2_is_idle_context(&target, &inputs, &graph_at))
        TARE_TRY(tare__pt2_inline_graph(r, at, graph_at, &done));
    if (done) return TARE_OK;
    TARE_TRY(read_target(r, &target, &spec.target));
    r->is_in_context = tare__pt2_is_autocast(&target);
    TARE_TRY(read_arguments(r, &inputs, &spec));
    TARE_TRY(tare__pt2_read_results(r, &outputs, &res));
    // Even a single result of a graph is in a tuple, unless the node states otherwise.
    if (tare__starts_with(spec.target, higher_order) && json_is_false(single.value))
        res.are_items = true;
    if (json_is_string(name.value))
        TARE_TRY(tare__json_string(&name, &spec.candidate, r->err));
    else if (!res.are_items && res.count == 1)
        spec.candidate = res.names[0];
    TARE_TRY(tare__pt2_insert(r, at, &spec, &n));
    TARE_TRY(tare__pt2_set_meta(n, &r->graph, res.names, res.count, &metadata, r->err));
    const char *called = spec.candidate != NULL ? spec.candidate : n->name;
    if (res.are_items) return add_items(r, at, n, called, &res, &metadata);
    return res.count == 1 ? tare__pt2_keep_value(r, at, res.names[0], n) : TARE_OK;
}

tare_status tare__pt2_read_nodes(pt2_reader *r, const json_at *nodes) {
    for (size_t i = 0; i < json_array_size(nodes->value); i++) {
        const json_at at = tare__json_item(nodes, i);
        TARE_TRY(add_node(r, &at));
        tare__arena_release(&r->scratch);
    }
    return TARE_OK;
}
