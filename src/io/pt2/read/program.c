// SPDX-License-Identifier: Apache-2.0
// The program's graph, rebuilt as torch's `.module()` does: what was lifted into inputs becomes
// tensors of modules again, what is written into them becomes copy_.
#include <inttypes.h>
#include <string.h>

#include "core/json/json.h"
#include "core/tensor/map.h"
#include "io/pt2/about.h"
#include "io/pt2/argument.h"
#include "io/pt2/meta.h"
#include "io/pt2/payload.h"
#include "io/pt2/pt2.h"
#include "io/pt2/read/archive.h"
#include "io/pt2/signature.h"
#include "ir/call_names.h"
#include "ops/op.h"

enum { SCHEMA_MAJOR = 8, MOST_RESULTS = 4096 };
static const char guards_name[] = "_guards_fn";
static const char higher_order[] = "torch.ops.higher_order.";

typedef struct reader {
    pt2_archive *archive;
    const registry *classes;
    const char *model;      // the name of the one that is read
    map weights, constants; // tensors by name; references owned
    json_at graph, signature, tensors;
    module *root;
    graph *g;
    map values;  // what gives a value: name -> node *, lent
    map targets; // get_attr nodes by target, lent
    map taken;   // names of the program's own nodes
    // Of a graph that becomes a part of the one around it: names that its nodes cannot have, and
    // those that they get instead of their own, because they give results of that graph.
    const map *reserved;
    map renamed;        // lent
    bool is_in_context; // the arguments of an autocast that stays are being read
    bool keeps_graphs;  // what contexts hold stays in graphs: it is within one that matters
    arena scratch;
    tare_error *err;
} reader;

static tare_status keep_value(reader *r, const json_at *at, const char *name, node *n) {
    if (tare__map_has(&r->values, name))
        return tare__json_fail(at, r->err, "'%s' is given twice", name);
    return tare__map_set(&r->values, name, n) ? TARE_OK : tare__out_of_memory(r->err);
}

static bool is_free(const reader *r, const char *name) {
    return !tare__map_has(r->reserved, name) && tare__graph_find(r->g, name) == NULL &&
           tare__module_child(r->root, name) == NULL;
}

// The name itself, or that with a number.
static tare_status free_name(reader *r, const char *name, const char **out) {
    *out = tare__map_get(&r->renamed, name);
    if (*out != NULL) return TARE_OK;
    *out = name;
    for (int k = 1; !is_free(r, *out); k++) {
        *out = tare__arena_printf(&r->scratch, "%s_%d", name, k);
        if (*out == NULL) return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

static tare_status insert(reader *r, const json_at *at, const node_spec *spec, node **out) {
    if (r->reserved != NULL && spec->candidate != NULL) {
        node_spec inner = *spec;
        TARE_TRY(free_name(r, spec->candidate, &inner.candidate));
        return tare__graph_insert(r->g, &inner, NULL, out, r->err);
    }
    TARE_TRY(tare__graph_insert(r->g, spec, NULL, out, r->err));
    if (spec->candidate != NULL && strcmp((*out)->name, spec->candidate) != 0)
        return tare__json_fail(at, r->err,
                               "a node cannot be named '%s': the name is taken or reserved",
                               spec->candidate);
    return TARE_OK;
}

// {"arg": {"name": x}}, or the name itself.
static tare_status name_of(reader *r, const json_at *spec, const char **out) {
    const json_at arg = tare__json_get(spec, "arg"), name = tare__json_get(&arg, "name");
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_expect(&arg, JSON_OBJECT, r->err));
    return tare__json_string(&name, out, r->err);
}

// --- inputs ---

// A tensor's node is named after its path, unless a node of the program has that name already.
static tare_status choose_name(reader *r, const char *target, const char **out) {
    const char *candidate = NULL;
    TARE_TRY(tare__graph_candidate(r->g, NODE_GET_ATTR, target, &candidate, r->err));
    char *base = tare__arena_strdup(&r->scratch, candidate);
    if (base == NULL) return tare__out_of_memory(r->err);
    for (char *c = base; *c != '\0'; c++)
        if (*c == '.') *c = '_';
    *out = base;
    for (int k = 1; tare__map_has(&r->taken, *out) || tare__graph_find(r->g, *out) != NULL; k++) {
        *out = tare__arena_printf(&r->scratch, "%s_%d", base, k);
        if (*out == NULL) return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

static tare_status bind_tensor(reader *r, const json_at *at, const char *target, const map *tensors,
                               bool is_parameter) {
    tare_tensor *t = tare__map_get(tensors, target);
    if (t == NULL) return tare__json_fail(at, r->err, "the archive has no data of '%s'", target);
    if (tare__module_find_tensor(r->root, target) != NULL ||
        tare__module_find(r->root, target) != NULL)
        return tare__json_fail(at, r->err, "'%s' is there twice", target);
    const tare_status status = tare__module_set_tensor_path(r->root, target, t, is_parameter,
                                                            &tare__class_container, r->err);
    return status == TARE_OK ? TARE_OK : tare__json_place(at, status, r->err);
}

static tare_status add_tensor(reader *r, const json_at *spec, const char *key, const map *tensors,
                              bool is_parameter) {
    const json_at target_at = tare__json_get(spec, key), none = {0};
    const char *target = NULL, *name = NULL, *candidate = NULL;
    node *n = NULL;
    TARE_TRY(name_of(r, spec, &name));
    TARE_TRY(tare__json_string(&target_at, &target, r->err));
    TARE_TRY(bind_tensor(r, &target_at, target, tensors, is_parameter));
    TARE_TRY(choose_name(r, target, &candidate));
    const node_spec made = {.op = NODE_GET_ATTR, .target = target, .candidate = candidate};
    TARE_TRY(tare__graph_insert(r->g, &made, NULL, &n, r->err));
    TARE_TRY(tare__pt2_set_meta(n, &r->graph, &name, 1, &none, r->err));
    if (!tare__map_set(&r->targets, target, n)) return tare__out_of_memory(r->err);
    return keep_value(r, &target_at, name, n);
}

static tare_status add_placeholder(reader *r, const json_at *at, const char *name,
                                   const value *otherwise) {
    const json_at none = {0};
    node *n = NULL;
    const node_spec spec = {.op = NODE_PLACEHOLDER,
                            .target = name,
                            .candidate = name,
                            .args = otherwise,
                            .arg_count = otherwise != NULL ? 1 : 0};
    // A name that Python reserves, as `input`, becomes another: input_1.
    TARE_TRY(tare__graph_insert(r->g, &spec, NULL, &n, r->err));
    TARE_TRY(tare__pt2_set_meta(n, &r->graph, &name, 1, &none, r->err));
    return keep_value(r, at, name, n);
}

// {"as_tensor": {"name": "x"}} or a symbolic number's {"as_sym_int": {"as_name": "n"}}
static tare_status add_named_input(reader *r, const json_at *arg) {
    const char *kind = NULL, *key = NULL, *name = NULL;
    json_at body, inner;
    TARE_TRY(tare__pt2_union(arg, &kind, &body, r->err));
    TARE_TRY(tare__pt2_union(&body, &key, &inner, r->err));
    if (strcmp(key, "name") != 0 && strcmp(key, "as_name") != 0)
        return tare__json_fail(&body, r->err, "an input must have a name, found '%s'", key);
    TARE_TRY(tare__json_string(&inner, &name, r->err));
    return add_placeholder(r, arg, name, NULL);
}

static tare_status add_user_input(reader *r, const json_at *spec) {
    const json_at arg = tare__json_get(spec, "arg");
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    return add_named_input(r, &arg);
}

// An argument that was fixed at export: its value is the default.
static tare_status add_constant_input(reader *r, const json_at *spec) {
    const json_at name_at = tare__json_get(spec, "name"), value_at = tare__json_get(spec, "value");
    const pt2_names names = {.values = &r->values, .memory = &r->scratch, .err = r->err};
    const char *name = NULL;
    value constant;
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_string(&name_at, &name, r->err));
    TARE_TRY(tare__pt2_argument(&names, &value_at, &constant));
    return add_placeholder(r, &name_at, name, &constant);
}

static tare_status add_buffer(reader *r, const json_at *spec) {
    const json_at persistent_at = tare__json_get(spec, "persistent");
    bool persistent;
    TARE_TRY(tare__json_bool(&persistent_at, &persistent, r->err));
    return add_tensor(r, spec, "buffer_name", persistent ? &r->weights : &r->constants, false);
}

static tare_status add_input(reader *r, const json_at *at) {
    const char *kind = NULL;
    json_at spec;
    TARE_TRY(tare__pt2_union(at, &kind, &spec, r->err));
    if (strcmp(kind, "parameter") == 0)
        return add_tensor(r, &spec, "parameter_name", &r->weights, true);
    if (strcmp(kind, "buffer") == 0) return add_buffer(r, &spec);
    if (strcmp(kind, "tensor_constant") == 0)
        return add_tensor(r, &spec, "tensor_constant_name", &r->constants, false);
    if (strcmp(kind, "user_input") == 0) return add_user_input(r, &spec);
    if (strcmp(kind, "constant_input") == 0) return add_constant_input(r, &spec);
    return tare__json_fail(at, r->err, "inputs of the kind '%s' are not supported", kind);
}

static tare_status add_guards(reader *r, const json_at *first) {
    node *n = NULL;
    size_t count = 0;
    value *args = tare__arena_array(&r->scratch, r->g->node_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(r->err);
    for (node *p = r->g->first; p != NULL; p = p->next)
        if (p->op == NODE_PLACEHOLDER) args[count++] = tare__node_value(p);
    const node_spec spec = {.op = NODE_CALL_MODULE,
                            .target = guards_name,
                            .candidate = guards_name,
                            .args = args,
                            .arg_count = count};
    TARE_TRY(insert(r, &r->graph, &spec, &n));
    const json_at metadata = tare__json_get(first, "metadata"), none = {0};
    TARE_TRY(tare__pt2_set_meta(n, &none, NULL, 0, &metadata, r->err));
    n->debug_handle = 0; // it gives no value
    return TARE_OK;
}

// The last one, as torch adds it: graphs stand before it.
static tare_status add_guards_module(reader *r) {
    module *guards = NULL;
    TARE_TRY(tare__module_create(tare__class_find(r->classes, "torch.export.GuardsFn"), &guards,
                                 r->err));
    const tare_status status = tare__module_set_child(r->root, guards_name, guards, r->err);
    tare__module_release(guards);
    return status;
}

// --- nodes ---

typedef struct results {
    const char **names;
    size_t count;
    bool are_items; // of a tuple or list, each to be taken out by getitem
} results;

static tare_status read_result(reader *r, const json_at *at, results *out) {
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
static tare_status read_results(reader *r, const json_at *outputs, results *out) {
    TARE_TRY(tare__json_expect(outputs, JSON_ARRAY, r->err));
    const json_at first = tare__json_item(outputs, 0), list = tare__json_get(&first, "as_tensors");
    const bool is_list = json_array_size(outputs->value) == 1 && json_is_object(first.value) &&
                         tare__json_has(&first, "as_tensors");
    const json_at *all = is_list ? &list : outputs;
    TARE_TRY(tare__json_expect(all, JSON_ARRAY, r->err));
    const size_t count = json_array_size(all->value);
    *out = (results){.names = tare__arena_array(&r->scratch, count + 1, sizeof *out->names),
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

static tare_status add_subgraph(void *user, const json_at *at, value *out);

static tare_status read_arguments(reader *r, const json_at *inputs, node_spec *spec) {
    const pt2_names names = {&r->values, &r->scratch, r->err, add_subgraph, r};
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

static tare_status read_target(reader *r, const json_at *at, const char **out) {
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

// Where a result has the node's own name there is nothing to take out.
static tare_status add_items(reader *r, const json_at *at, node *n, const char *candidate,
                             const results *res, const json_at *metadata) {
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
        TARE_TRY(insert(r, at, &spec, &item));
        TARE_TRY(tare__pt2_set_meta(item, &r->graph, &res->names[i], 1, metadata, r->err));
        TARE_TRY(keep_value(r, at, res->names[i], item));
    }
    return TARE_OK;
}

static bool is_autocast(const json_at *target) {
    const char *name = json_string_value(target->value);
    return name != NULL && strcmp(name, "torch.ops.higher_order.wrap_with_autocast") == 0;
}

static bool is_wrapper(const json_at *target, const json_at *inputs, size_t *graph_at);
static tare_status inline_graph(reader *r, const json_at *at, size_t graph_at, bool *done);

static tare_status add_node(reader *r, const json_at *at) {
    const json_at target = tare__json_get(at, "target"), inputs = tare__json_get(at, "inputs");
    const json_at outputs = tare__json_get(at, "outputs"), name = tare__json_get(at, "name");
    const json_at metadata = tare__json_get(at, "metadata");
    const json_at single = tare__json_get(at, "is_hop_single_tensor_return");
    node_spec spec = {.op = NODE_CALL_FUNCTION};
    results res;
    node *n = NULL;
    size_t graph_at = 0;
    bool done = false;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    if (!r->keeps_graphs && is_wrapper(&target, &inputs, &graph_at))
        TARE_TRY(inline_graph(r, at, graph_at, &done));
    if (done) return TARE_OK;
    TARE_TRY(read_target(r, &target, &spec.target));
    r->is_in_context = is_autocast(&target);
    TARE_TRY(read_arguments(r, &inputs, &spec));
    TARE_TRY(read_results(r, &outputs, &res));
    // A graph's only result stands in a tuple all the same, unless the node says otherwise.
    if (tare__starts_with(spec.target, higher_order) && json_is_false(single.value))
        res.are_items = true;
    if (json_is_string(name.value))
        TARE_TRY(tare__json_string(&name, &spec.candidate, r->err));
    else if (!res.are_items && res.count == 1)
        spec.candidate = res.names[0];
    TARE_TRY(insert(r, at, &spec, &n));
    TARE_TRY(tare__pt2_set_meta(n, &r->graph, res.names, res.count, &metadata, r->err));
    const char *called = spec.candidate != NULL ? spec.candidate : n->name;
    if (res.are_items) return add_items(r, at, n, called, &res, &metadata);
    return res.count == 1 ? keep_value(r, at, res.names[0], n) : TARE_OK;
}

// --- outputs ---

// What is written into a tensor or an input, at the end: copy_(its node, the value).
static tare_status add_copy(reader *r, const json_at *spec, node *into) {
    const json_at arg = tare__json_get(spec, "arg");
    const pt2_names names = {.values = &r->values, .memory = &r->scratch, .err = r->err};
    value args[2] = {tare__node_value(into)};
    node *n = NULL;
    TARE_TRY(tare__pt2_value_named(&names, &arg, &args[1]));
    const node_spec made = {.op = NODE_CALL_FUNCTION,
                            .target = "torch.ops.aten.copy_.default",
                            .args = args,
                            .arg_count = 2};
    return tare__graph_insert(r->g, &made, NULL, &n, r->err);
}

static tare_status add_mutation(reader *r, const json_at *spec, const char *key, const map *nodes) {
    const json_at name_at = tare__json_get(spec, key);
    const char *name = NULL;
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_string(&name_at, &name, r->err));
    node *into = tare__map_get(nodes, name);
    if (into == NULL)
        return tare__json_fail(&name_at, r->err, "'%s' is no input of the program", name);
    return add_copy(r, spec, into);
}

static tare_status add_output(reader *r, const json_at *at, value *items, uint32_t *count) {
    const pt2_names names = {.values = &r->values, .memory = &r->scratch, .err = r->err};
    const char *kind = NULL;
    json_at spec;
    TARE_TRY(tare__pt2_union(at, &kind, &spec, r->err));
    if (strcmp(kind, "user_output") == 0) {
        const json_at arg = tare__json_get(&spec, "arg");
        TARE_TRY(tare__json_expect(&spec, JSON_OBJECT, r->err));
        return tare__pt2_argument(&names, &arg, &items[(*count)++]);
    }
    if (strcmp(kind, "buffer_mutation") == 0)
        return add_mutation(r, &spec, "buffer_name", &r->targets);
    if (strcmp(kind, "parameter_mutation") == 0)
        return add_mutation(r, &spec, "parameter_name", &r->targets);
    if (strcmp(kind, "user_input_mutation") == 0)
        return add_mutation(r, &spec, "user_input_name", &r->values);
    return tare__json_fail(at, r->err, "outputs of the kind '%s' are not supported", kind);
}

static tare_status add_outputs(reader *r) {
    const json_at specs = tare__json_get(&r->signature, "output_specs");
    TARE_TRY(tare__json_expect(&specs, JSON_ARRAY, r->err));
    const size_t count = json_array_size(specs.value);
    value tuple = tare__value_sequence(&r->scratch, VALUE_TUPLE, (uint32_t)count + 1);
    node *n = NULL;
    if (tuple.as.items == NULL) return tare__out_of_memory(r->err);
    tuple.count = 0;
    for (size_t i = 0; i < count; i++) {
        const json_at at = tare__json_item(&specs, i);
        TARE_TRY(add_output(r, &at, tuple.as.items, &tuple.count));
    }
    const node_spec spec = {.op = NODE_OUTPUT,
                            .target = "output",
                            .candidate = "output",
                            .args = &tuple,
                            .arg_count = 1};
    return tare__graph_insert(r->g, &spec, NULL, &n, r->err);
}

// --- the whole ---

// Names of nodes and their items, which no tensor's node may take.
static tare_status note_names(reader *r, const json_at *nodes) {
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

static tare_status set_training(void *user, const char *path, module *m, tare_error *err) {
    (void)user, (void)path, (void)err;
    m->training = true;
    return TARE_OK;
}

static tare_status read_nodes(reader *r, const json_at *nodes) {
    for (size_t i = 0; i < json_array_size(nodes->value); i++) {
        const json_at at = tare__json_item(nodes, i);
        TARE_TRY(add_node(r, &at));
        tare__arena_release(&r->scratch);
    }
    return TARE_OK;
}

static tare_status read_graph(reader *r) {
    const json_at nodes = tare__json_get(&r->graph, "nodes");
    const json_at specs = tare__json_get(&r->signature, "input_specs");
    const json_at first = tare__json_item(&nodes, 0);
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    TARE_TRY(tare__json_expect(&specs, JSON_ARRAY, r->err));
    TARE_TRY(note_names(r, &nodes));
    for (size_t i = 0; i < json_array_size(specs.value); i++) {
        const json_at at = tare__json_item(&specs, i);
        TARE_TRY(add_input(r, &at));
    }
    TARE_TRY(add_guards(r, &first));
    TARE_TRY(read_nodes(r, &nodes));
    TARE_TRY(add_outputs(r));
    TARE_TRY(add_guards_module(r));
    // Every module is as it was made, which is in training.
    TARE_TRY(tare__module_walk(r->root, set_training, NULL, r->err));
    return tare__graph_verify(r->g, r->err);
}

// --- graphs of branches and bodies ---

static tare_status make_root(reader *r) {
    const value name = tare__string("GraphModule");
    TARE_TRY(tare__module_create(&tare__class_graph_module, &r->root, r->err));
    TARE_TRY(tare__module_set_config(r->root, "class_name", &name, r->err));
    TARE_TRY(tare__graph_create(&r->g, r->err));
    r->root->graph = r->g;
    return TARE_OK;
}

static void release_graph(reader *r) {
    tare__map_release(&r->values);
    tare__map_release(&r->renamed);
    tare__map_release(&r->targets);
    tare__map_release(&r->taken);
    tare__arena_release(&r->scratch);
}

static tare_status add_branch_output(reader *r) {
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

// A graph takes all that it needs as inputs; it reads no weights.
static tare_status read_branch(reader *r) {
    const json_at nodes = tare__json_get(&r->graph, "nodes");
    const json_at inputs = tare__json_get(&r->graph, "inputs");
    TARE_TRY(tare__json_expect(&r->graph, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    TARE_TRY(tare__json_expect(&inputs, JSON_ARRAY, r->err));
    r->tensors = tare__json_get(&r->graph, "tensor_values");
    TARE_TRY(note_names(r, &nodes));
    for (size_t i = 0; i < json_array_size(inputs.value); i++) {
        const json_at at = tare__json_item(&inputs, i);
        TARE_TRY(add_named_input(r, &at));
    }
    TARE_TRY(read_nodes(r, &nodes));
    TARE_TRY(add_branch_output(r));
    return tare__graph_verify(r->g, r->err);
}

static tare_status attach_branch(reader *r, const json_at *at, const char *name, module *branch,
                                 value *out) {
    node *n = NULL;
    if (r->reserved != NULL) TARE_TRY(free_name(r, name, &name));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name, .candidate = name};
    if (tare__module_child(r->root, name) != NULL || tare__module_has_tensor(r->root, name))
        return tare__json_fail(at, r->err, "'%s' is there twice", name);
    TARE_TRY(tare__module_set_child(r->root, name, branch, r->err));
    TARE_TRY(insert(r, at, &spec, &n));
    *out = tare__node_value(n);
    return TARE_OK;
}

// {"name": "true_graph_0", "graph": ..}: a module under that name, which a node reads. JSON is
// nested 64 levels at most, and so are graphs.
static tare_status add_subgraph(void *user, const json_at *at, value *out) {
    reader *r = user;
    const json_at name_at = tare__json_get(at, "name");
    const char *name = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_string(&name_at, &name, r->err));
    if (!tare__is_identifier(name))
        return tare__json_fail(&name_at, r->err, "'%s' is no name of a graph", name);
    reader inner = {.archive = r->archive,
                    .classes = r->classes,
                    .graph = tare__json_get(at, "graph"),
                    .keeps_graphs = r->keeps_graphs || r->is_in_context,
                    .err = r->err};
    tare_status status = make_root(&inner);
    if (status == TARE_OK) status = read_branch(&inner);
    if (status == TARE_OK) status = attach_branch(r, &name_at, name, inner.root, out);
    release_graph(&inner);
    tare__module_release(inner.root);
    return status;
}

// --- graphs of contexts: torch.no_grad() and torch.autocast ---

static const json_t *argument_of(const json_at *inputs, size_t i) {
    return json_object_get(json_array_get(inputs->value, i), "arg");
}

// A context that changes nothing here, whose graph could as well stand around: one of gradients,
// and an autocast that is disabled, or for another device. graph_at: where the graph stands among
// the arguments.
static bool is_wrapper(const json_at *target, const json_at *inputs, size_t *graph_at) {
    enum { CAST_DEVICE = 0, CAST_ENABLED = 2, CAST_GRAPH = 4 };
    const char *name = json_string_value(target->value);
    *graph_at = 1;
    if (name != NULL && strcmp(name, "torch.ops.higher_order.wrap_with_set_grad_enabled") == 0)
        return true;
    const json_t *enabled = json_object_get(argument_of(inputs, CAST_ENABLED), "as_bool");
    const char *device =
        json_string_value(json_object_get(argument_of(inputs, CAST_DEVICE), "as_string"));
    *graph_at = CAST_GRAPH;
    return is_autocast(target) && device != NULL &&
           (strcmp(device, "cpu") != 0 || json_is_false(enabled));
}

// {"as_tensor": {"name": "x"}}: a value of a node; NULL: anything else.
static const char *name_in(const json_t *argument) {
    const json_t *tensor = json_object_get(argument, "as_tensor");
    return json_string_value(json_object_get(tensor, "name"));
}

// The graph's inputs are the nodes of the call's arguments; false if one is no node.
static tare_status bind_arguments(reader *r, reader *inner, const json_at *inputs, size_t first,
                                  bool *fits) {
    const json_at taken = tare__json_get(&inner->graph, "inputs");
    TARE_TRY(tare__json_expect(&taken, JSON_ARRAY, r->err));
    const size_t count = json_array_size(taken.value);
    *fits = json_array_size(inputs->value) == first + count;
    for (size_t i = 0; i < count && *fits; i++) {
        const char *from = name_in(argument_of(inputs, first + i)),
                   *to = name_in(json_array_get(taken.value, i));
        node *n = from != NULL ? tare__map_get(&r->values, from) : NULL;
        *fits = n != NULL && to != NULL;
        if (*fits) TARE_TRY(keep_value(inner, &taken, to, n));
    }
    return TARE_OK;
}

// The first node that gives a result takes its name.
static tare_status rename_results(reader *r, reader *inner, const results *res, bool *fits) {
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

static tare_status keep_results(reader *r, const reader *inner, const json_at *at,
                                const results *res) {
    const json_at outputs = tare__json_get(&inner->graph, "outputs");
    for (size_t i = 0; i < res->count; i++) {
        const char *name = name_in(json_array_get(outputs.value, i));
        node *n = tare__map_get(&inner->values, name);
        if (n == NULL) return tare__json_fail(at, r->err, "no node of its graph gives '%s'", name);
        TARE_TRY(keep_value(r, at, res->names[i], n));
    }
    return TARE_OK;
}

static tare_status read_inlined(reader *r, reader *inner, const json_at *at, const json_at *inputs,
                                size_t graph_at, bool *done) {
    const json_at outputs = tare__json_get(at, "outputs");
    const json_at nodes = tare__json_get(&inner->graph, "nodes");
    results res;
    bool fits = false;
    TARE_TRY(read_results(r, &outputs, &res));
    TARE_TRY(bind_arguments(r, inner, inputs, graph_at + 1, &fits));
    if (fits) TARE_TRY(rename_results(r, inner, &res, &fits));
    if (!fits) return TARE_OK;
    *done = true;
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    TARE_TRY(read_nodes(inner, &nodes));
    return keep_results(r, inner, at, &res);
}

// Not done where the graph takes or gives anything but tensors.
static tare_status inline_graph(reader *r, const json_at *at, size_t graph_at, bool *done) {
    const json_at inputs = tare__json_get(at, "inputs");
    const json_at item = tare__json_item(&inputs, graph_at);
    const json_at argument = tare__json_get(&item, "arg");
    const json_at held = tare__json_get(&argument, "as_graph");
    TARE_TRY(tare__json_expect(&held, JSON_OBJECT, r->err));
    reader inner = {.archive = r->archive,
                    .classes = r->classes,
                    .root = r->root,
                    .g = r->g,
                    .graph = tare__json_get(&held, "graph"),
                    .reserved = r->reserved != NULL ? r->reserved : &r->taken,
                    .err = r->err};
    TARE_TRY(tare__json_expect(&inner.graph, JSON_OBJECT, r->err));
    inner.tensors = tare__json_get(&inner.graph, "tensor_values");
    const tare_status status = read_inlined(r, &inner, at, &inputs, graph_at, done);
    release_graph(&inner);
    return status;
}

// --- the program ---

static tare_status check_schema(const json_at *top, tare_error *err) {
    const json_at version = tare__json_get(top, "schema_version");
    const json_at major_at = tare__json_get(&version, "major");
    int64_t major;
    TARE_TRY(tare__json_expect(top, JSON_OBJECT, err));
    TARE_TRY(tare__json_expect(&version, JSON_OBJECT, err));
    TARE_TRY(tare__json_int(&major_at, &major, err));
    if (major == SCHEMA_MAJOR) return TARE_OK;
    tare__json_fail(&major_at, err,
                    "the program is of schema version %" PRId64 ", this reader knows version %d",
                    major, SCHEMA_MAJOR);
    return tare__hint(err, TARE_MALFORMED_FILE, "export the model again with torch 2.9 or newer");
}

static tare_status read_program(reader *r, const json_at *top) {
    const json_at inside = tare__json_get(top, "graph_module");
    const json_at calls = tare__json_get(&inside, "module_call_graph");
    TARE_TRY(check_schema(top, r->err));
    TARE_TRY(tare__json_expect(&inside, JSON_OBJECT, r->err));
    r->graph = tare__json_get(&inside, "graph");
    r->signature = tare__json_get(&inside, "signature");
    TARE_TRY(tare__json_expect(&r->graph, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_expect(&r->signature, JSON_OBJECT, r->err));
    r->tensors = tare__json_get(&r->graph, "tensor_values");
    TARE_TRY(read_graph(r));
    TARE_TRY(tare__pt2_keep_about(r->g, top, r->err));
    TARE_TRY(tare__pt2_set_signature(r->g, &calls, r->err));
    return tare__call_names_read(r->g, &inside, r->err);
}

static tare_status read_json(reader *r) {
    json_t *json = NULL;
    const char *member = tare__arena_printf(&r->archive->names, "models/%s.json", r->model);
    if (member == NULL) return tare__out_of_memory(r->err);
    TARE_TRY(tare__pt2_read_json(r->archive, member, &json));
    const json_at top = tare__json_root(json);
    const tare_status status = read_program(r, &top);
    json_decref(json);
    return status == TARE_OK ? TARE_OK : tare__at(r->err, status, "%s", member);
}

// A small text member; absent: "".
static tare_status read_text(pt2_archive *a, const char *name, char out[16]) {
    pt2_bytes bytes;
    out[0] = '\0';
    if (!tare__pt2_has(a, name)) return TARE_OK;
    TARE_TRY(tare__pt2_read_member(a, name, &bytes));
    const size_t length = bytes.size < 15 ? bytes.size : 15;
    memcpy(out, bytes.data, length);
    out[length] = '\0';
    tare__storage_release(bytes.store);
    return TARE_OK;
}

static tare_status check_archive(pt2_archive *a) {
    char format[16], version[16], order[16];
    TARE_TRY(read_text(a, "archive_format", format));
    TARE_TRY(read_text(a, "archive_version", version));
    TARE_TRY(read_text(a, "byteorder", order));
    if (format[0] != '\0' && strcmp(format, "pt2") != 0)
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "the archive's format is '%s', expected 'pt2'", format);
    if (version[0] != '\0' && strcmp(version, "0") != 0)
        return tare__fail(a->err, TARE_UNSUPPORTED,
                          "the archive is of version %s, this reader knows version 0", version);
    if (order[0] != '\0' && strcmp(order, "little") != 0)
        return tare__fail(a->err, TARE_UNSUPPORTED,
                          "the archive's data are of byte order '%s', expected 'little'", order);
    return TARE_OK;
}

// "models/NAME.json": the one called model, or the only one.
static tare_status find_model(reader *r) {
    static const char prefix[] = "models/", suffix[] = ".json";
    size_t count = 0;
    for (size_t i = 0; i < r->archive->members.count; i++) {
        const char *key = r->archive->members.entries[i].key;
        if (!tare__starts_with(key, prefix) || !tare__ends_with(key, suffix) ||
            strlen(key) < sizeof prefix + sizeof suffix - 1)
            continue;
        const char *name = tare__arena_strndup(&r->archive->names, key + sizeof prefix - 1,
                                               strlen(key) - sizeof prefix - sizeof suffix + 2);
        if (name == NULL) return tare__out_of_memory(r->err);
        if (r->model == NULL || strcmp(name, "model") == 0) r->model = name;
        count++;
    }
    if (count == 0)
        return tare__fail(r->err, TARE_MALFORMED_FILE, "the archive has no member 'models/*.json'");
    if (count > 1 && strcmp(r->model, "model") != 0)
        return tare__fail(r->err, TARE_UNSUPPORTED,
                          "the archive holds %zu programs, and none is called 'model'", count);
    return TARE_OK;
}

static tare_status read_archive(reader *r) {
    TARE_TRY(check_archive(r->archive));
    TARE_TRY(find_model(r));
    TARE_TRY(tare__pt2_read_payloads(r->archive, "data/weights/", r->model, &r->weights));
    TARE_TRY(tare__pt2_read_payloads(r->archive, "data/constants/", r->model, &r->constants));
    TARE_TRY(make_root(r));
    return read_json(r);
}

// Whatever contradicts itself has no better advice.
static tare_status advise(tare_status status, tare_error *err) {
    const bool is_known = err == NULL || tare_error_hint(err)[0] != '\0';
    if (status == TARE_MALFORMED_FILE && !is_known)
        return tare__hint(err, status,
                          "the file is damaged, or something else than torch.export.save wrote it");
    if (status == TARE_UNSUPPORTED && !is_known)
        return tare__hint(err, status,
                          "export the model again with torch 2.15, without what is not supported");
    return status;
}

tare_status tare__pt2_read(storage *store, const unsigned char *data, size_t size,
                           const registry *classes, uint64_t memory_limit, module **root,
                           tare_error *err) {
    pt2_archive archive;
    TARE_TRY(tare__pt2_open(store, data, size, memory_limit, err, &archive));
    reader r = {.archive = &archive, .classes = classes, .err = err};
    const tare_status status = read_archive(&r);
    tare__tensor_map_release(&r.weights);
    tare__tensor_map_release(&r.constants);
    release_graph(&r);
    tare__pt2_close(&archive);
    if (status == TARE_OK)
        *root = r.root;
    else
        tare__module_release(r.root);
    return advise(status, err);
}

static bool is_of_program(const char *name) {
    return strstr(name, "/models/") != NULL || strstr(name, "/data/weights/") != NULL ||
           tare__ends_with(name, "/archive_format");
}

static bool is_name_of_program(const char *chars, size_t length) {
    char name[1024] = "";
    if (length >= sizeof name) return false;
    memcpy(name, chars, length);
    return is_of_program(name);
}

// The first member mostly tells, also of a file whose end, with the directory, is missing.
static bool begins_like_program(const unsigned char *data, size_t size) {
    enum { HEADER_SIZE = 30, LENGTH_AT = 26 };
    if (size < HEADER_SIZE) return false;
    const size_t length = data[LENGTH_AT] | (size_t)data[LENGTH_AT + 1] << 8;
    if (length > size - HEADER_SIZE) return false;
    return is_name_of_program((const char *)data + HEADER_SIZE, length);
}

bool tare__pt2_is_archive(const unsigned char *data, size_t size) {
    if (size < 4 || memcmp(data, "PK\3\4", 4) != 0) return false;
    if (begins_like_program(data, size)) return true;
    // Names are enough; what is wrong with such a file is told when it is read.
    zip_directory directory;
    zip_entry entry;
    bool found = false;
    if (!tare__zip_open(data, size, &directory)) return false;
    while (!found && tare__zip_next(&directory, &entry) == ZIP_ENTRY)
        found = is_name_of_program(entry.name, entry.name_length);
    return found;
}
