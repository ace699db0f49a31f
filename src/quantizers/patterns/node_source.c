// SPDX-License-Identifier: Apache-2.0
// Finds the origin of each node, with all names in canonical spelling.
#include "quantizers/patterns/node_source.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "ops/classes/classes.h"
#include "ops/op.h"

const char *tare__source_name(arena *memory, const char *name) {
    static const char in_c[] = "_operator."; // the C module of Python's operators
    char public_name[512];
    if (tare__starts_with(name, in_c)) name++;
    const char *canonical = tare__function_canonical(name);
    if (canonical != name && strcmp(canonical, name) != 0)
        return tare__arena_strdup(memory, canonical);
    if (strlen(name) >= sizeof public_name) return tare__arena_strdup(memory, name);
    tare__class_public_name(name, public_name, sizeof public_name);
    return tare__arena_strdup(memory, public_name);
}

static tare_status keep_name(arena *memory, const char *name, const char **out, tare_error *err) {
    *out = tare__source_name(memory, name);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status keep_torch_function(arena *memory, const char *name, const char *call,
                                       node_source *s, tare_error *err) {
    s->torch_function = tare__arena_strndup(memory, name, strcspn(name, "."));
    s->torch_call = call;
    return s->torch_function != NULL ? TARE_OK : tare__out_of_memory(err);
}

// torch_fn is "method_descriptor.add_" for a call of "add_". Without torch_fn, the operator's name
// is used: "torch.ops.aten.add_.Tensor".
static tare_status read_torch_function(arena *memory, const node *n, const tare_node_meta *meta,
                                       node_source *s, tare_error *err) {
    const char *dot = meta->torch_function != NULL ? strchr(meta->torch_function, '.') : NULL;
    if (dot != NULL) return keep_torch_function(memory, dot + 1, meta->torch_call, s, err);
    const char *name = n->op == NODE_CALL_FUNCTION ? tare__aten_name(n->target) : NULL;
    return name != NULL ? keep_torch_function(memory, name, n->name, s, err) : TARE_OK;
}

static tare_status read_source(arena *memory, const node *n, const tare_node_meta *meta,
                               node_source *s, tare_error *err) {
    s->meta = meta;
    if (meta->source_count > 0) {
        const tare_source_info *last = &meta->sources[meta->source_count - 1];
        s->call = last->name;
        TARE_TRY(keep_name(memory, last->function, &s->function, err));
    } else {
        TARE_TRY(read_torch_function(memory, n, meta, s, err));
    }
    if (meta->module_count == 0) return TARE_OK;
    const tare_source_info *inner = &meta->modules[meta->module_count - 1];
    s->path = inner->name;
    return keep_name(memory, inner->function, &s->class, err);
}

tare_status tare__node_sources_read(const graph *g, node_sources *out, tare_error *err) {
    *out = (node_sources){0};
    out->by_id = tare__arena_array(&out->memory, g->next_id + 1, sizeof *out->by_id);
    out->metas = tare__arena_array(&out->memory, g->next_id + 1, sizeof *out->metas);
    if (out->by_id == NULL || out->metas == NULL) {
        tare__node_sources_release(out);
        return tare__out_of_memory(err);
    }
    out->count = g->next_id;
    tare_status status = TARE_OK;
    for (const node *n = g->first; n != NULL && status == TARE_OK; n = n->next) {
        status = tare_node_meta_read((const tare_node *)n, &out->metas[n->id], err);
        if (status == TARE_OK)
            status = read_source(&out->memory, n, out->metas[n->id], &out->by_id[n->id], err);
    }
    if (status != TARE_OK) tare__node_sources_release(out);
    return status;
}

void tare__node_sources_release(node_sources *s) {
    for (size_t i = 0; s->metas != NULL && i < s->count; i++) tare_node_meta_destroy(s->metas[i]);
    tare__arena_release(&s->memory);
    *s = (node_sources){0};
}

const node_source *tare__node_source(const node_sources *s, const node *n) {
    static const tare_node_meta no_meta = {0};
    static const node_source none = {.meta = &no_meta};
    return n->id < s->count && s->by_id[n->id].meta != NULL ? &s->by_id[n->id] : &none;
}

const tare_value_info *tare__node_tensor_info(const node_sources *s, const node *n) {
    const tare_node_meta *meta = tare__node_source(s, n)->meta;
    return meta->has_value && !meta->value_is_tuple && meta->value_count == 1 ? &meta->values[0]
                                                                              : NULL;
}

bool tare_node_meta_in_class(const tare_node_meta *meta, const char *class_name) {
    char a[512], b[512];
    tare__class_public_name(class_name, a, sizeof a);
    for (size_t i = 0; i < meta->module_count; i++) {
        tare__class_public_name(meta->modules[i].function, b, sizeof b);
        if (strcmp(a, b) == 0) return true;
    }
    return false;
}

bool tare_node_meta_in_module(const tare_node_meta *meta, const char *path) {
    static const char self[] = "L['self'].";
    for (size_t i = 0; i < meta->module_count; i++) {
        const char *name = meta->modules[i].name;
        if (tare__starts_with(name, self)) name += strlen(self);
        if (strcmp(name, path) == 0) return true;
    }
    return false;
}

bool tare__node_is_in_class(const node_sources *s, const node *n, const char *class_name) {
    return tare_node_meta_in_class(tare__node_source(s, n)->meta, class_name);
}

bool tare__node_is_in_module(const node_sources *s, const node *n, const char *path) {
    return tare_node_meta_in_module(tare__node_source(s, n)->meta, path);
}
