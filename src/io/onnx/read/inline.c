// SPDX-License-Identifier: Apache-2.0
// Replaces calls of functions by the functions' nodes. Functions may call functions, and a small
// file can describe a huge graph: depth and memory are limited.
#include "io/onnx/read/inline.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/map.h"
#include "io/onnx/read/order.h"
#include "io/onnx/read/wire.h"

enum {
    DEEPEST = 16,
    MOST_BYTES = 64 << 20, // of inlined nodes
    PIECE_BYTES = 48,      // what a name or an attribute takes in addition to its text
    MOST_KEY = 512,
    // Field numbers that the schema lacks.
    NODE_OVERLOAD = 8,
    FUNCTION_DEFAULTS = 11,
    FUNCTION_OVERLOAD = 13
};

typedef Onnx__NodeProto node_proto;
typedef Onnx__AttributeProto attribute;

typedef struct function {
    const Onnx__FunctionProto *proto;
    int opset;            // of the default domain; 0: not stated
    bool is_read;         // opset and defaults
    map attributes;       // names of the attributes it takes
    attribute **defaults; // of attributes with a default
    size_t default_count;
} function;

/// One call: what the names inside the function refer to.
typedef struct frame {
    const struct frame *outer;
    const function *f;
    onnx_step *caller;
    size_t id;
    map names;      // the function's inputs and outputs -> the caller's names
    map attributes; // name -> attribute *, of the call or the default
} frame;

typedef struct inliner {
    const onnx_file *file;
    map functions; // -> function *
    arena *memory;
    size_t bytes_left, call_count;
    node_proto **nodes;
    size_t count, capacity;
    tare_error *err;
} inliner;

// --- fields that the schema lacks ---

// Finds the next field with this tag from *at on and moves *at behind it; NULL at the end.
static const unsigned char *next_field(const ProtobufCMessage *m, unsigned tag, unsigned *at,
                                       size_t *size) {
    while (*at < m->n_unknown_fields) {
        const ProtobufCMessageUnknownField *field = &m->unknown_fields[(*at)++];
        size_t from = 0;
        uint64_t length = 0;
        if (field->tag == tag && field->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
            tare__wire_varint(field->data, field->len, &from, &length) &&
            length == field->len - from) {
            *size = (size_t)length;
            return field->data + from;
        }
    }
    return NULL;
}

// --- the functions ---

// Writes the key of a function: domain, name and overload; false if it is too long.
static bool write_key(const char *domain, const char *name, const ProtobufCMessage *m,
                      unsigned overload_tag, char out[MOST_KEY]) {
    size_t size = 0;
    unsigned at = 0;
    const unsigned char *overload = next_field(m, overload_tag, &at, &size);
    if (domain == NULL || strcmp(domain, "ai.onnx") == 0) domain = "";
    if (name == NULL) name = "";
    if (overload == NULL) overload = (const unsigned char *)"", size = 0;
    if (strnlen(domain, MOST_KEY) + strnlen(name, MOST_KEY) >= MOST_KEY - 3 ||
        strlen(domain) + strlen(name) + size >= MOST_KEY - 3)
        return false;
    snprintf(out, MOST_KEY, "%s:%s:%.*s", domain, name, (int)size, (const char *)overload);
    return true;
}

static const char *name_of(const function *f) {
    return f->proto->name != NULL ? f->proto->name : "";
}

static tare_status list_functions(inliner *l) {
    const Onnx__ModelProto *m = l->file->model;
    for (size_t i = 0; i < m->n_functions; i++) {
        const Onnx__FunctionProto *proto = m->functions[i];
        char key[MOST_KEY];
        function *f = tare__arena_alloc(l->memory, sizeof *f);
        if (f == NULL) return tare__out_of_memory(l->err);
        *f = (function){.proto = proto};
        if (!write_key(proto->domain, proto->name, &proto->base, FUNCTION_OVERLOAD, key))
            return tare__fail(l->err, TARE_UNSUPPORTED, "a function's name is too long");
        if (tare__map_has(&l->functions, key))
            return tare__fail(l->err, TARE_MALFORMED_FILE, "duplicate function '%s'", name_of(f));
        if (!tare__map_set(&l->functions, key, f)) return tare__out_of_memory(l->err);
    }
    return TARE_OK;
}

// The function that a node calls; NULL if it calls none.
static function *find_function(const inliner *l, const node_proto *n) {
    char key[MOST_KEY];
    if (l->functions.count == 0 || !write_key(n->domain, n->op_type, &n->base, NODE_OVERLOAD, key))
        return NULL;
    return tare__map_get(&l->functions, key);
}

static tare_status read_opset(inliner *l, function *f) {
    for (size_t i = 0; i < f->proto->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = f->proto->opset_import[i];
        if (set->domain != NULL && *set->domain != '\0' && strcmp(set->domain, "ai.onnx") != 0)
            continue;
        TARE_TRY(tare__onnx_check_opset("its function", set->version, l->err));
        f->opset = (int)set->version;
    }
    return TARE_OK;
}

// --- defaults of attributes: unpacked into the arena, so plain ones only ---

typedef struct unpacking {
    arena *memory;
    bool failed; // memory ran out
} unpacking;

static void *allocate(void *user, size_t size) {
    unpacking *u = user;
    void *memory = tare__arena_alloc(u->memory, size > 0 ? size : 1);
    u->failed |= memory == NULL;
    return memory;
}

static void release_nothing(void *user, void *memory) {
    (void)user;
    (void)memory;
}

static tare_status read_default(inliner *l, const unsigned char *bytes, size_t size,
                                attribute **out) {
    unpacking u = {.memory = l->memory};
    ProtobufCAllocator allocator = {allocate, release_nothing, &u};
    TARE_TRY(tare__wire_check(&onnx__attribute_proto__descriptor, bytes, size, l->err));
    attribute *a = onnx__attribute_proto__unpack(&allocator, size, bytes);
    if (u.failed) return tare__out_of_memory(l->err);
    if (a == NULL || a->name == NULL)
        return tare__fail(l->err, TARE_MALFORMED_FILE,
                          "a default value of its function has no name");
    if (a->t != NULL || a->g != NULL || a->n_tensors > 0 || a->n_graphs > 0)
        return tare__fail(l->err, TARE_UNSUPPORTED,
                          "the attribute '%s' of its function has a tensor or a graph as its "
                          "default, expected numbers or text",
                          a->name);
    *out = a;
    return TARE_OK;
}

static tare_status read_attributes(inliner *l, function *f) {
    const ProtobufCMessage *m = &f->proto->base;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    f->defaults = tare__arena_array(l->memory, m->n_unknown_fields + 1, sizeof *f->defaults);
    if (f->defaults == NULL) return tare__out_of_memory(l->err);
    for (unsigned at = 0; (bytes = next_field(m, FUNCTION_DEFAULTS, &at, &size)) != NULL;) {
        attribute **made = &f->defaults[f->default_count];
        TARE_TRY(read_default(l, bytes, size, made));
        if (!tare__map_set(&f->attributes, (*made)->name, NULL)) return tare__out_of_memory(l->err);
        f->default_count++;
    }
    for (size_t i = 0; i < f->proto->n_attribute; i++)
        if (!tare__map_set(&f->attributes, f->proto->attribute[i], NULL))
            return tare__out_of_memory(l->err);
    return TARE_OK;
}

static tare_status read_function(inliner *l, function *f) {
    if (f->is_read) return TARE_OK;
    TARE_TRY(read_opset(l, f));
    TARE_TRY(read_attributes(l, f));
    f->is_read = true;
    return TARE_OK;
}

// --- steps ---

static tare_status spend(inliner *l, size_t bytes) {
    if (bytes > l->bytes_left) {
        tare__fail(l->err, TARE_UNSUPPORTED,
                   "the nodes of the model's functions take more than %d MiB", MOST_BYTES >> 20);
        return tare__hint(l->err, TARE_UNSUPPORTED, "no exporter writes such a file");
    }
    l->bytes_left -= bytes;
    return TARE_OK;
}

static tare_status push(inliner *l, onnx_step *step) {
    if (l->count == l->capacity) {
        const size_t wanted = l->capacity > 0 ? 2 * l->capacity : 64;
        node_proto **grown = tare__arena_array(l->memory, wanted, sizeof(node_proto *));
        if (grown == NULL) return tare__out_of_memory(l->err);
        if (l->count > 0) memcpy(grown, l->nodes, l->count * sizeof(node_proto *));
        l->nodes = grown;
        l->capacity = wanted;
    }
    l->nodes[l->count++] = &step->node;
    return TARE_OK;
}

// The caller's name for a value of the function; NULL if memory ran out.
static char *renamed(inliner *l, const frame *at, const char *name) {
    char *known = tare__map_get(&at->names, name);
    if (known != NULL || *name == '\0') return known != NULL ? known : (char *)name;
    return tare__arena_printf(l->memory, "@%zu:%s", at->id, name);
}

static tare_status rename_all(inliner *l, const frame *at, char **names, size_t count,
                              char ***out) {
    char **made = tare__arena_array(l->memory, count + 1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(l->err);
    for (size_t i = 0; i < count; i++) {
        TARE_TRY(spend(l, strlen(names[i]) + PIECE_BYTES));
        made[i] = renamed(l, at, names[i]);
        if (made[i] == NULL) return tare__out_of_memory(l->err);
    }
    *out = made;
    return TARE_OK;
}

// Replaces a reference to an attribute by its value; NULL if the call does not give it.
static tare_status resolve(inliner *l, const frame *at, attribute *a, attribute **out) {
    *out = a;
    if (a->ref_attr_name == NULL || *a->ref_attr_name == '\0') return TARE_OK;
    const attribute *given = tare__map_get(&at->attributes, a->ref_attr_name);
    *out = NULL;
    if (given == NULL) return TARE_OK;
    if (a->has_type && given->has_type && a->type != given->type)
        return tare__fail(l->err, TARE_MALFORMED_FILE,
                          "its attribute '%s' refers to '%s', which has another type",
                          a->name != NULL ? a->name : "", a->ref_attr_name);
    attribute *made = tare__arena_alloc(l->memory, sizeof *made);
    if (made == NULL) return tare__out_of_memory(l->err);
    TARE_TRY(spend(l, sizeof *made));
    *made = *given;
    made->name = a->name;
    *out = made;
    return TARE_OK;
}

static tare_status resolve_all(inliner *l, const frame *at, node_proto *n) {
    attribute **from = n->attribute;
    const size_t count = n->n_attribute;
    TARE_TRY(spend(l, count * PIECE_BYTES));
    n->attribute = tare__arena_array(l->memory, count + 1, sizeof *n->attribute);
    if (n->attribute == NULL) return tare__out_of_memory(l->err);
    n->n_attribute = 0;
    for (size_t i = 0; i < count; i++) {
        attribute *a = NULL;
        TARE_TRY(resolve(l, at, from[i], &a));
        if (a != NULL) n->attribute[n->n_attribute++] = a;
    }
    return TARE_OK;
}

// "gelu/Mul_3"; the only node of a function has the name of the call.
static tare_status name_node(inliner *l, const frame *at, node_proto *n) {
    const node_proto *caller = &at->caller->node;
    const char *outer = caller->name != NULL && *caller->name != '\0' ? caller->name
                        : caller->n_output > 0                        ? caller->output[0]
                                                                      : "";
    const char *own = n->name != NULL && *n->name != '\0' ? n->name
                      : n->op_type != NULL                ? n->op_type
                                                          : "";
    TARE_TRY(spend(l, strlen(outer) + strlen(own) + PIECE_BYTES));
    n->name = at->f->proto->n_node == 1 ? tare__arena_strdup(l->memory, outer)
                                        : tare__arena_printf(l->memory, "%s/%s", outer, own);
    return n->name != NULL ? TARE_OK : tare__out_of_memory(l->err);
}

static tare_status make_step(inliner *l, const node_proto *n, const frame *at, onnx_step **out) {
    onnx_step *step = tare__arena_alloc(l->memory, sizeof *step);
    if (step == NULL) return tare__out_of_memory(l->err);
    *step = (onnx_step){.node = *n, .opset = l->file->opset};
    *out = step;
    if (at == NULL) return TARE_OK;
    step->opset = at->f->opset;
    step->caller = at->caller;
    TARE_TRY(spend(l, sizeof *step));
    TARE_TRY(rename_all(l, at, n->input, n->n_input, &step->node.input));
    TARE_TRY(rename_all(l, at, n->output, n->n_output, &step->node.output));
    TARE_TRY(resolve_all(l, at, &step->node));
    return name_node(l, at, &step->node);
}

// --- calls ---

static tare_status bind(inliner *l, frame *at, const char *formal, char *actual) {
    if (*formal == '\0')
        return tare__fail(l->err, TARE_MALFORMED_FILE,
                          "an input or output of its function '%s' "
                          "has no name",
                          name_of(at->f));
    TARE_TRY(spend(l, strlen(formal) + PIECE_BYTES));
    return tare__map_set(&at->names, formal, actual) ? TARE_OK : tare__out_of_memory(l->err);
}

static tare_status bind_inputs(inliner *l, frame *at) {
    static char absent[] = "";
    const Onnx__FunctionProto *proto = at->f->proto;
    const node_proto *caller = &at->caller->node;
    if (caller->n_input > proto->n_input)
        return tare__fail(l->err, TARE_MALFORMED_FILE,
                          "%zu inputs, but its function '%s' takes %zu", caller->n_input,
                          name_of(at->f), proto->n_input);
    for (size_t i = 0; i < proto->n_input; i++) {
        if (tare__map_has(&at->names, proto->input[i]))
            return tare__fail(l->err, TARE_MALFORMED_FILE, "its function '%s' has two inputs '%s'",
                              name_of(at->f), proto->input[i]);
        TARE_TRY(bind(l, at, proto->input[i], i < caller->n_input ? caller->input[i] : absent));
    }
    return TARE_OK;
}

// For an output that is also an input of the function, or another output.
static tare_status add_identity(inliner *l, const frame *at, char *from, char *to) {
    static char op_type[] = "Identity";
    node_proto n = ONNX__NODE_PROTO__INIT;
    onnx_step *step = tare__arena_alloc(l->memory, sizeof *step);
    char **names = tare__arena_array(l->memory, 2, sizeof *names);
    if (step == NULL || names == NULL) return tare__out_of_memory(l->err);
    names[0] = from;
    names[1] = to;
    n.input = &names[0];
    n.output = &names[1];
    n.n_input = n.n_output = 1;
    n.op_type = op_type;
    n.name = at->caller->node.name;
    *step = (onnx_step){.node = n, .opset = l->file->opset, .caller = at->caller};
    TARE_TRY(spend(l, sizeof *step + (size_t)2 * PIECE_BYTES));
    return push(l, step);
}

static tare_status bind_outputs(inliner *l, frame *at) {
    const Onnx__FunctionProto *proto = at->f->proto;
    const node_proto *caller = &at->caller->node;
    if (caller->n_output > proto->n_output)
        return tare__fail(l->err, TARE_MALFORMED_FILE, "%zu outputs, but its function '%s' has %zu",
                          caller->n_output, name_of(at->f), proto->n_output);
    for (size_t i = 0; i < caller->n_output; i++) {
        char *actual = caller->output[i];
        if (*actual == '\0') continue;
        char *known = tare__map_get(&at->names, proto->output[i]);
        if (known != NULL)
            TARE_TRY(add_identity(l, at, known, actual));
        else
            TARE_TRY(bind(l, at, proto->output[i], actual));
    }
    return TARE_OK;
}

static tare_status bind_attribute(inliner *l, frame *at, attribute *a) {
    const char *name = a->name != NULL ? a->name : "";
    TARE_TRY(spend(l, strlen(name) + PIECE_BYTES));
    if (!tare__map_has(&at->f->attributes, name))
        return tare__fail(l->err, TARE_MALFORMED_FILE, "its function '%s' takes no attribute '%s'",
                          name_of(at->f), name);
    return tare__map_set(&at->attributes, name, a) ? TARE_OK : tare__out_of_memory(l->err);
}

static tare_status bind_attributes(inliner *l, frame *at) {
    const node_proto *caller = &at->caller->node;
    for (size_t i = 0; i < at->f->default_count; i++)
        TARE_TRY(bind_attribute(l, at, at->f->defaults[i]));
    for (size_t i = 0; i < caller->n_attribute; i++)
        TARE_TRY(bind_attribute(l, at, caller->attribute[i]));
    return TARE_OK;
}

static tare_status check_depth(inliner *l, const frame *at) {
    size_t depth = 0;
    for (const frame *outer = at->outer; outer != NULL; outer = outer->outer) {
        if (outer->f == at->f) {
            tare__fail(l->err, TARE_MALFORMED_FILE, "the function '%s' calls itself",
                       name_of(at->f));
            return tare__hint(l->err, TARE_MALFORMED_FILE, "no exporter writes such a file");
        }
        if (++depth == DEEPEST)
            return tare__fail(l->err, TARE_UNSUPPORTED,
                              "the model's functions call each other more than %d deep", DEEPEST);
    }
    return TARE_OK;
}

static tare_status add_node(inliner *l, const node_proto *n, const frame *at);

static tare_status fill(inliner *l, frame *at, function *f) {
    TARE_TRY(check_depth(l, at));
    TARE_TRY(read_function(l, f));
    TARE_TRY(bind_inputs(l, at));
    TARE_TRY(bind_outputs(l, at));
    TARE_TRY(bind_attributes(l, at));
    for (size_t i = 0; i < f->proto->n_node; i++) TARE_TRY(add_node(l, f->proto->node[i], at));
    return TARE_OK;
}

static tare_status add_call(inliner *l, onnx_step *caller, function *f, const frame *outer) {
    frame at = {.outer = outer, .f = f, .caller = caller, .id = ++l->call_count};
    const tare_status status = fill(l, &at, f);
    tare__map_release(&at.names);
    tare__map_release(&at.attributes);
    return status;
}

static bool is_default_domain(const char *domain) {
    return domain == NULL || *domain == '\0' || strcmp(domain, "ai.onnx") == 0;
}

static tare_status add_node(inliner *l, const node_proto *n, const frame *at) {
    char where[300];
    onnx_step *step = NULL;
    TARE_TRY(make_step(l, n, at, &step));
    function *f = find_function(l, n);
    tare_status status = TARE_OK;
    if (f != NULL)
        status = add_call(l, step, f, at);
    else if (at != NULL && step->opset == 0 && is_default_domain(n->domain))
        status = tare__fail(l->err, TARE_MALFORMED_FILE, "its function '%s' states no opset",
                            name_of(at->f));
    else
        return push(l, step);
    if (status == TARE_OK || at != NULL) return status; // the outermost call adds the place
    tare__onnx_describe_node(n, where, sizeof where);
    return tare__at(l->err, status, "%s", where);
}

tare_status tare__onnx_inline(const onnx_file *f, arena *memory, Onnx__GraphProto *out,
                              tare_error *err) {
    const Onnx__GraphProto *g = f->model->graph;
    inliner l = {.file = f, .memory = memory, .bytes_left = MOST_BYTES, .err = err};
    tare_status status = list_functions(&l);
    for (size_t i = 0; i < g->n_node && status == TARE_OK; i++)
        status = add_node(&l, g->node[i], NULL);
    for (size_t i = 0; i < l.functions.count; i++)
        tare__map_release(&((function *)l.functions.entries[i].value)->attributes);
    tare__map_release(&l.functions);
    *out = *g;
    out->node = l.nodes;
    out->n_node = l.count;
    return status;
}
