// SPDX-License-Identifier: Apache-2.0
// Assembles ModelProto and GraphProto around the written nodes.
#include "io/onnx/write/model.h"

#include <stdio.h>
#include <string.h>

#include "io/onnx/schema.h"
#include "io/onnx/write/wire.h"

// Field numbers of onnx.proto.
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_FROM = 1,
    NODE_TO = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_DOMAIN = 7,
    NODE_METADATA = 9,
    INFO_NAME = 1,
    INFO_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_ELEMENTS = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2
};

// The IR version that introduced an opset.
static int ir_version(int opset) {
    return opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : 7;
}

// --- inputs and outputs ---

static void write_info(const onnx_writer *w, text *out, unsigned field, const char *name, int type,
                       const tare_tensor *t, const tare_tensor *other) {
    text info = {0}, outer = {0}, tensor = {0}, shape = {0};
    char named[64];
    for (int d = 0; d < t->ndim; d++) {
        text dim = {0};
        const bool is_open = other != NULL && other->shape[d] != t->shape[d];
        const char *known = is_open ? tare__onnx_open_name(w, t->shape[d], other->shape[d]) : NULL;
        if (known != NULL)
            snprintf(named, sizeof named, "%s", known);
        else if (d == 0)
            snprintf(named, sizeof named, "batch");
        else
            snprintf(named, sizeof named, "%.40s_%d", name, d);
        if (is_open)
            tare__pb_string(&dim, DIM_PARAM, named);
        else
            tare__pb_int(&dim, DIM_VALUE, t->shape[d]);
        tare__pb_message(&shape, SHAPE_DIM, &dim);
    }
    tare__pb_int(&tensor, TENSOR_ELEMENTS, type);
    tare__pb_message(&tensor, TENSOR_SHAPE, &shape);
    tare__pb_message(&outer, TYPE_TENSOR, &tensor);
    tare__pb_string(&info, INFO_NAME, name);
    tare__pb_message(&info, INFO_TYPE, &outer);
    tare__pb_message(out, field, &info);
}

static int element_type(const tare_tensor *t) {
    return tare__onnx_type_of_dtype(tare__dtype(t->dtype)->storage);
}

static bool is_made(const onnx_writer *w, const char *name) {
    for (size_t i = 0; i < w->node_count; i++)
        for (size_t k = 0; k < w->nodes[i].output_count; k++)
            if (strcmp(w->nodes[i].outputs[k], name) == 0) return true;
    return false;
}

static void rename_value(onnx_writer *w, const char *from, const char *to) {
    for (size_t i = 0; i < w->node_count; i++) {
        out_node *n = &w->nodes[i];
        for (size_t k = 0; k < n->output_count; k++)
            if (strcmp(n->outputs[k], from) == 0) n->outputs[k] = to;
        for (size_t k = 0; k < n->input_count; k++)
            if (strcmp(n->inputs[k], from) == 0) n->inputs[k] = to;
    }
}

static const char *wanted_name(const onnx_writer *w) {
    const size_t index = w->output_names.count;
    return index < w->wanted_outputs.count ? w->wanted_outputs.items[index] : NULL;
}

// Each output of the file needs a node of its own.
tare_status tare__onnx_add_output(onnx_writer *w, const tare_tensor *t, const tare_tensor *other) {
    const node *last = tare__graph_output(w->root->graph);
    const out_record record = {.node = last};
    onnx_out o = {.w = w, .record = &record, .call = {.err = w->err}};
    o.on_quantized = true;
    const char *name = tare__out_quantized(&o, t);
    TARE_TRY(o.status);
    if (!is_made(w, name) || tare__map_has(&w->output_names, name))
        name = OUT(&o, "Identity", name);
    TARE_TRY(o.status);
    const char *wanted = wanted_name(w);
    if (wanted == NULL) wanted = name;
    if (!tare__map_set(&w->output_names, name, (void *)wanted)) return tare__out_of_memory(w->err);
    write_info(w, &w->outputs, GRAPH_OUTPUT, wanted, element_type(t), t, other);
    return tare__text_status(&w->outputs, w->err);
}

tare_status tare__onnx_name_outputs(onnx_writer *w) {
    map named = {0};
    bool fits = true;
    for (size_t i = 0; i < w->output_names.count; i++) {
        const map_entry *e = &w->output_names.entries[i];
        rename_value(w, e->key, e->value);
        fits &= tare__map_set(&named, e->value, NULL);
    }
    tare__map_release(&w->output_names);
    w->output_names = named;
    return fits ? TARE_OK : tare__out_of_memory(w->err);
}

static void write_inputs(const onnx_writer *w, text *out) {
    for (size_t i = 0; i < w->spec->input_count; i++) {
        const tare_tensor *t = w->trace.inputs[i].as.tensor;
        const tare_tensor *other = w->has_other ? w->other.inputs[i].as.tensor : NULL;
        write_info(w, out, GRAPH_INPUT, tare__out_bound(w, t), element_type(t), t, other);
    }
}

// --- nodes ---

static void python_list(const char *a, const char *b, const char *c, text *out) {
    const char *const items[] = {a, b, c};
    tare__text_char(out, '[');
    for (int i = 0; i < 3; i++) {
        if (items[i] == NULL) continue;
        if (i > 0) tare__text_append(out, ", ");
        tare__text_quoted(out, items[i]);
    }
    tare__text_char(out, ']');
}

// Writes the node's position in the module tree, as torch's exporter does.
static void write_scope(const onnx_writer *w, const node *n, text *out) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__module_find(w->root, n->target) : NULL;
    const char *path = m != NULL ? n->target : n->scope_path;
    const char *type = m != NULL ? m->class->name : n->scope_type;
    const bool is_inside = path != NULL && *path != '\0' && type != NULL;
    text names = {0}, classes = {0};
    python_list("", is_inside ? path : NULL, n->name, &names);
    python_list("torch.nn.Module", is_inside ? type : NULL, n->target, &classes);
    tare__pb_entry(out, NODE_METADATA, "pkg.torch.onnx.name_scopes", tare__text_chars(&names));
    tare__pb_entry(out, NODE_METADATA, "pkg.torch.onnx.class_hierarchy",
                   tare__text_chars(&classes));
    out->failed |= names.failed || classes.failed;
    tare__text_release(&names);
    tare__text_release(&classes);
}

static void write_node(const onnx_writer *w, const out_node *n, text *out) {
    text bytes = {0};
    for (size_t i = 0; i < n->input_count; i++) tare__pb_string(&bytes, NODE_FROM, n->inputs[i]);
    for (size_t i = 0; i < n->output_count; i++) tare__pb_string(&bytes, NODE_TO, n->outputs[i]);
    tare__pb_string(&bytes, NODE_NAME, n->name);
    tare__pb_string(&bytes, NODE_TYPE, n->op_type);
    tare__text_append_n(&bytes, tare__text_chars(&n->attributes), n->attributes.length);
    if (n->domain != NULL) tare__pb_string(&bytes, NODE_DOMAIN, n->domain);
    if (n->from != NULL) write_scope(w, n->from, &bytes);
    tare__pb_message(out, GRAPH_NODE, &bytes);
}

// --- what nothing reads ---

static bool is_read(const map *read, const out_node *n) {
    for (size_t k = 0; k < n->output_count; k++)
        if (tare__map_has(read, n->outputs[k])) return true;
    return false;
}

// Drops nodes whose results are not read (they were made for a form that was then not used), and
// optional outputs that nobody reads.
static bool drop_unread_nodes(onnx_writer *w, map *read) {
    bool fits = true;
    size_t kept = w->node_count;
    for (size_t i = w->node_count; i-- > 0;) {
        out_node *n = &w->nodes[i];
        if (!is_read(read, n)) {
            tare__text_release(&n->attributes);
            continue;
        }
        if (n->has_optional && !tare__map_has(read, n->outputs[n->output_count - 1]))
            n->output_count--;
        for (size_t k = 0; k < n->input_count; k++) fits &= tare__map_set(read, n->inputs[k], NULL);
        w->nodes[--kept] = *n;
    }
    if (kept < w->node_count)
        memmove(w->nodes, w->nodes + kept, (w->node_count - kept) * sizeof *w->nodes);
    w->node_count -= kept;
    return fits;
}

static bool is_read_tensor(void *user, const map_entry *entry) {
    return tare__map_has(user, entry->key);
}

static bool drop_unread_tensors(onnx_writer *w, const map *read) {
    size_t kept = 0;
    tare__map_keep(&w->tensor_names, is_read_tensor, (void *)read);
    for (size_t i = 0; i < w->tensor_count; i++) {
        const out_tensor t = w->tensors[i];
        w->tensors[i].t = NULL;
        if (tare__map_has(read, t.name))
            w->tensors[kept++] = t;
        else
            tare_tensor_release((tare_tensor *)t.t);
    }
    w->tensor_count = kept;
    bool fits = true;
    for (size_t i = 0; i < kept; i++)
        fits &= tare__map_set(&w->tensor_names, w->tensors[i].name, tare__map_int(i + 1));
    return fits;
}

static tare_status drop_unread(onnx_writer *w) {
    map read = {0};
    bool fits = true;
    for (size_t i = 0; i < w->output_names.count; i++)
        fits &= tare__map_set(&read, w->output_names.entries[i].key, NULL);
    fits = fits && drop_unread_nodes(w, &read) && drop_unread_tensors(w, &read);
    tare__map_release(&read);
    return fits ? TARE_OK : tare__out_of_memory(w->err);
}

// --- the whole ---

static void write_opset(text *out, const char *domain, int version) {
    text opset = {0};
    if (domain != NULL) tare__pb_string(&opset, OPSET_DOMAIN, domain);
    tare__pb_int(&opset, OPSET_VERSION, version);
    tare__pb_message(out, MODEL_OPSET, &opset);
}

static bool has_runtime_nodes(const onnx_writer *w) {
    for (size_t i = 0; i < w->node_count; i++)
        if (w->nodes[i].domain != NULL) return true;
    return false;
}

static tare_status write_foot(onnx_writer *w, text *out) {
    text sources = {0};
    write_opset(out, NULL, w->opset);
    if (has_runtime_nodes(w)) write_opset(out, ONNX_RUNTIME_DOMAIN, 1);
    if (w->spec->json == NULL) return TARE_OK;
    const tare_status status = tare__onnx_sources(w, &sources);
    tare__pb_entry(out, MODEL_METADATA, ONNX_MODEL_KEY, w->spec->json);
    tare__pb_entry(out, MODEL_METADATA, ONNX_TENSORS_KEY, tare__text_chars(&sources));
    tare__text_release(&sources);
    return status;
}

tare_status tare__onnx_assemble(onnx_writer *w, onnx_image *out) {
    TARE_TRY(drop_unread(w));
    TARE_TRY(write_foot(w, &out->foot));
    tare__pb_int(&out->head, MODEL_IR, ir_version(w->opset));
    tare__pb_string(&out->head, MODEL_PRODUCER, "tare");
    tare__pb_string(&out->head, MODEL_PRODUCER_VERSION, w->spec->producer_version);
    for (size_t i = 0; i < w->node_count; i++) write_node(w, &w->nodes[i], &out->nodes);
    tare__pb_string(&out->nodes, GRAPH_NAME, "main");
    write_inputs(w, &out->tail);
    tare__text_append_n(&out->tail, tare__text_chars(&w->outputs), w->outputs.length);
    const text *const sections[] = {&out->head, &out->nodes, &out->tail, &out->foot};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        TARE_TRY(tare__text_status(sections[i], w->err));
    out->tensors = w->tensors; // the image now owns them, with their names
    out->tensor_count = w->tensor_count;
    out->memory = w->memory;
    w->memory = (arena){0};
    w->tensors = NULL;
    w->tensor_count = 0;
    return TARE_OK;
}
