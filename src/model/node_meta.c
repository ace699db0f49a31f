// SPDX-License-Identifier: Apache-2.0
// The exporter's metadata of a node: the modules and functions in which it was traced, and its
// result.
#include <string.h>

#include "core/json/json.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "ir/graph.h"
#include "tare/pt2e.h"

typedef struct node_meta {
    tare_node_meta view; // first member: the public part
    arena memory;
} node_meta;

static tare_status keep_text(node_meta *m, const json_at *at, const char **out, tare_error *err) {
    const char *chars = NULL;
    TARE_TRY(tare__json_string(at, &chars, err));
    *out = tare__arena_strdup(&m->memory, chars);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

// Reads [[.., name, function], ..]; only the last two items count.
static tare_status read_stack(node_meta *m, const json_at *list, size_t width,
                              const tare_source_info **out, size_t *count, tare_error *err) {
    TARE_TRY(tare__json_expect(list, JSON_ARRAY, err));
    const size_t size = json_array_size(list->value);
    tare_source_info *items = tare__arena_array(&m->memory, size + 1, sizeof *items);
    if (items == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < size; i++) {
        const json_at item = tare__json_item(list, i);
        TARE_TRY(tare__json_expect(&item, JSON_ARRAY, err));
        const json_at name = tare__json_item(&item, width - 2);
        const json_at function = tare__json_item(&item, width - 1);
        TARE_TRY(keep_text(m, &name, &items[i].name, err));
        TARE_TRY(keep_text(m, &function, &items[i].function, err));
    }
    *out = items;
    *count = size;
    return TARE_OK;
}

static tare_status read_value(node_meta *m, const json_at *at, tare_value_info *out,
                              tare_error *err) {
    *out = (tare_value_info){0};
    if (!json_is_object(at->value) || !tare__json_has(at, "shape")) return TARE_OK; // not a tensor
    const json_at shape = tare__json_get(at, "shape"), dtype = tare__json_get(at, "dtype");
    const char *dtype_name = NULL;
    TARE_TRY(tare__json_expect(&shape, JSON_ARRAY, err));
    TARE_TRY(tare__json_string(&dtype, &dtype_name, err));
    out->dtype = tare_dtype_from_name(dtype_name);
    out->rank = json_array_size(shape.value);
    int64_t *sizes = tare__arena_array(&m->memory, out->rank + 1, sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(err);
    for (size_t d = 0; d < out->rank; d++) {
        const json_at size = tare__json_item(&shape, d);
        sizes[d] = -1; // a symbolic size
        if (json_is_integer(size.value)) TARE_TRY(tare__json_int(&size, &sizes[d], err));
    }
    out->shape = sizes;
    return TARE_OK;
}

static tare_status read_values(node_meta *m, const json_at *val, tare_error *err) {
    const bool is_list = json_is_array(val->value);
    const size_t count = is_list ? json_array_size(val->value) : 1;
    tare_value_info *values = tare__arena_array(&m->memory, count + 1, sizeof *values);
    if (values == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        const json_at item = is_list ? tare__json_item(val, i) : *val;
        TARE_TRY(read_value(m, &item, &values[i], err));
    }
    m->view.values = values;
    m->view.value_count = count;
    m->view.has_value = true;
    m->view.value_is_tuple = is_list;
    return TARE_OK;
}

static tare_status read_torch_function(node_meta *m, const json_at *root, tare_error *err) {
    const json_at pair = tare__json_get(root, "torch_fn");
    if (!tare__json_has(root, "torch_fn")) return TARE_OK;
    TARE_TRY(tare__json_expect(&pair, JSON_ARRAY, err));
    const json_at call = tare__json_item(&pair, 0), function = tare__json_item(&pair, 1);
    TARE_TRY(keep_text(m, &call, &m->view.torch_call, err));
    return keep_text(m, &function, &m->view.torch_function, err);
}

static tare_status read_meta(node_meta *m, const json_t *json, tare_error *err) {
    const json_at root = tare__json_root(json);
    const json_at modules = tare__json_get(&root, "nn_module_stack");
    const json_at sources = tare__json_get(&root, "source_fn_stack");
    const json_at val = tare__json_get(&root, "val");
    if (tare__json_has(&root, "nn_module_stack"))
        TARE_TRY(read_stack(m, &modules, 3, &m->view.modules, &m->view.module_count, err));
    if (tare__json_has(&root, "source_fn_stack"))
        TARE_TRY(read_stack(m, &sources, 2, &m->view.sources, &m->view.source_count, err));
    if (tare__json_has(&root, "val")) TARE_TRY(read_values(m, &val, err));
    return read_torch_function(m, &root, err);
}

tare_status tare_node_meta_read(const tare_node *view, tare_node_meta **out, tare_error *err) {
    const node *n = (const node *)view;
    node_meta *m = tare__alloc_zeroed(1, sizeof *m);
    if (m == NULL) return tare__out_of_memory(err);
    m->view.struct_size = sizeof m->view;
    json_t *json = NULL;
    tare_status status = TARE_OK;
    if (n->meta_json != NULL) {
        status = tare__json_parse(n->meta_json, strlen(n->meta_json), &json, err);
        if (status == TARE_OK) status = read_meta(m, json, err);
        json_decref(json);
    }
    if (status == TARE_OK) {
        *out = &m->view;
        return TARE_OK;
    }
    tare_node_meta_destroy(&m->view);
    return tare__at(err, status, "meta of node '%s'", n->name);
}

void tare_node_meta_destroy(tare_node_meta *meta) {
    if (meta == NULL) return;
    node_meta *m = (node_meta *)meta;
    tare__arena_release(&m->memory);
    tare__free(m);
}
