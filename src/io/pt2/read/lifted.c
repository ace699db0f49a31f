// SPDX-License-Identifier: Apache-2.0
// Reads the program's top graph and undoes lifting, as torch's `.module()` does: lifted inputs
// become get_attr nodes of module tensors, and mutations of them become calls of copy_.
#include <string.h>

#include "io/pt2/argument.h"
#include "io/pt2/meta.h"
#include "io/pt2/read/graph.h"
#include "ops/op.h"

static const char guards_name[] = "_guards_fn";

// {"arg": {"name": x}}, or the name itself.
static tare_status name_of(pt2_reader *r, const json_at *spec, const char **out) {
    const json_at arg = tare__json_get(spec, "arg"), name = tare__json_get(&arg, "name");
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_expect(&arg, JSON_OBJECT, r->err));
    return tare__json_string(&name, out, r->err);
}

// --- inputs ---

// A tensor's node is named after its path, unless a node of the program has that name already.
static tare_status choose_name(pt2_reader *r, const char *target, const char **out) {
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

static tare_status bind_tensor(pt2_reader *r, const json_at *at, const char *target,
                               const map *tensors, bool is_parameter) {
    tare_tensor *t = tare__map_get(tensors, target);
    if (t == NULL) return tare__json_fail(at, r->err, "the archive has no data of '%s'", target);
    if (tare__module_find_tensor(r->root, target) != NULL ||
        tare__module_find(r->root, target) != NULL)
        return tare__json_fail(at, r->err, "'%s' occurs twice", target);
    const tare_status status = tare__module_set_tensor_path(r->root, target, t, is_parameter,
                                                            &tare__class_container, r->err);
    return status == TARE_OK ? TARE_OK : tare__json_place(at, status, r->err);
}

static tare_status add_tensor(pt2_reader *r, const json_at *spec, const char *key,
                              const map *tensors, bool is_parameter) {
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
    return tare__pt2_keep_value(r, &target_at, name, n);
}

static tare_status add_placeholder(pt2_reader *r, const json_at *at, const char *name,
                                   const value *otherwise) {
    const json_at none = {0};
    node *n = NULL;
    const node_spec spec = {.op = NODE_PLACEHOLDER,
                            .target = name,
                            .candidate = name,
                            .args = otherwise,
                            .arg_count = otherwise != NULL ? 1 : 0};
    // A name that is reserved in Python, like `input`, gets a number: input_1.
    TARE_TRY(tare__graph_insert(r->g, &spec, NULL, &n, r->err));
    TARE_TRY(tare__pt2_set_meta(n, &r->graph, &name, 1, &none, r->err));
    return tare__pt2_keep_value(r, at, name, n);
}

// {"as_tensor": {"name": "x"}} or a symbolic number's {"as_sym_int": {"as_name": "n"}}
tare_status tare__pt2_add_named_input(pt2_reader *r, const json_at *arg) {
    const char *kind = NULL, *key = NULL, *name = NULL;
    json_at body, inner;
    TARE_TRY(tare__pt2_union(arg, &kind, &body, r->err));
    TARE_TRY(tare__pt2_union(&body, &key, &inner, r->err));
    if (strcmp(key, "name") != 0 && strcmp(key, "as_name") != 0)
        return tare__json_fail(&body, r->err, "an input must have a name, found '%s'", key);
    TARE_TRY(tare__json_string(&inner, &name, r->err));
    return add_placeholder(r, arg, name, NULL);
}

static tare_status add_user_input(pt2_reader *r, const json_at *spec) {
    const json_at arg = tare__json_get(spec, "arg");
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    return tare__pt2_add_named_input(r, &arg);
}

// An argument that was fixed at export: its value is the default.
static tare_status add_constant_input(pt2_reader *r, const json_at *spec) {
    const json_at name_at = tare__json_get(spec, "name"), value_at = tare__json_get(spec, "value");
    const pt2_names names = {.values = &r->values, .memory = &r->scratch, .err = r->err};
    const char *name = NULL;
    value constant;
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_string(&name_at, &name, r->err));
    TARE_TRY(tare__pt2_argument(&names, &value_at, &constant));
    return add_placeholder(r, &name_at, name, &constant);
}

static tare_status add_buffer(pt2_reader *r, const json_at *spec) {
    const json_at persistent_at = tare__json_get(spec, "persistent");
    bool persistent;
    TARE_TRY(tare__json_bool(&persistent_at, &persistent, r->err));
    return add_tensor(r, spec, "buffer_name", persistent ? &r->weights : &r->constants, false);
}

static tare_status add_input(pt2_reader *r, const json_at *at) {
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

static tare_status add_guards(pt2_reader *r, const json_at *first) {
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
    TARE_TRY(tare__pt2_insert(r, &r->graph, &spec, &n));
    const json_at metadata = tare__json_get(first, "metadata"), none = {0};
    TARE_TRY(tare__pt2_set_meta(n, &none, NULL, 0, &metadata, r->err));
    n->debug_handle = 0; // it has no result
    return TARE_OK;
}

// Added last, after the modules of branches, as in torch.
static tare_status add_guards_module(pt2_reader *r) {
    module *guards = NULL;
    TARE_TRY(tare__module_create(tare__class_find(r->classes, "torch.export.GuardsFn"), &guards,
                                 r->err));
    const tare_status status = tare__module_set_child(r->root, guards_name, guards, r->err);
    tare__module_release(guards);
    return status;
}

// --- outputs ---

// Adds a write to a tensor or input at the end: copy_(its node, the value).
static tare_status add_copy(pt2_reader *r, const json_at *spec, node *into) {
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

static tare_status add_mutation(pt2_reader *r, const json_at *spec, const char *key,
                                const map *nodes) {
    const json_at name_at = tare__json_get(spec, key);
    const char *name = NULL;
    TARE_TRY(tare__json_expect(spec, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_string(&name_at, &name, r->err));
    node *into = tare__map_get(nodes, name);
    if (into == NULL)
        return tare__json_fail(&name_at, r->err, "'%s' is no input of the program", name);
    return add_copy(r, spec, into);
}

static tare_status add_output(pt2_reader *r, const json_at *at, value *items, uint32_t *count) {
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

static tare_status add_outputs(pt2_reader *r) {
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

static tare_status set_training(void *user, const char *path, module *m, tare_error *err) {
    (void)user, (void)path, (void)err;
    m->training = true;
    return TARE_OK;
}

tare_status tare__pt2_read_signed_graph(pt2_reader *r) {
    const json_at nodes = tare__json_get(&r->graph, "nodes");
    const json_at specs = tare__json_get(&r->signature, "input_specs");
    const json_at first = tare__json_item(&nodes, 0);
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, r->err));
    TARE_TRY(tare__json_expect(&specs, JSON_ARRAY, r->err));
    TARE_TRY(tare__pt2_note_names(r, &nodes));
    for (size_t i = 0; i < json_array_size(specs.value); i++) {
        const json_at at = tare__json_item(&specs, i);
        TARE_TRY(add_input(r, &at));
    }
    TARE_TRY(add_guards(r, &first));
    TARE_TRY(tare__pt2_read_nodes(r, &nodes));
    TARE_TRY(add_outputs(r));
    TARE_TRY(add_guards_module(r));
    // torch creates all these modules in train mode.
    TARE_TRY(tare__module_walk(r->root, set_training, NULL, r->err));
    return tare__graph_verify(r->g, r->err);
}
