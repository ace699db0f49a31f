// SPDX-License-Identifier: Apache-2.0
// A module's constructor values, children and tensors. module_tree.c handles trees.
#include "ir/module.h"

#include <string.h>

#include "core/memory/alloc.h"

tare_status tare__module_create(const module_class *class, module **out, tare_error *err) {
    module *m = tare__alloc_zeroed(1, sizeof *m);
    if (!m) return tare__out_of_memory(err);
    m->refcount = 1;
    m->class = class;
    m->training = true; // like a new torch.nn.Module
    *out = m;
    return TARE_OK;
}

module *tare__module_retain(module *m) {
    if (m) m->refcount++;
    return m;
}

static void destroy(module *m) {
    for (size_t i = 0; i < m->child_count; i++) {
        tare__free(m->children[i].name);
        tare__module_release(m->children[i].module);
    }
    for (size_t i = 0; i < m->tensor_count; i++) {
        tare__free(m->tensors[i].name);
        tare_tensor_release(m->tensors[i].tensor);
    }
    if (m->state && m->class->destroy_state) m->class->destroy_state(m->state);
    tare__free(m->children);
    tare__free(m->tensors);
    tare__name_index_release(&m->child_names);
    tare__name_index_release(&m->tensor_names);
    tare__graph_destroy(m->graph);
    tare__arena_release(&m->memory);
    tare__free(m);
}

void tare__module_release(module *m) {
    if (m && --m->refcount == 0) destroy(m);
}

tare_status tare__module_hand_out(module *m, tare_status status, module **out) {
    if (status == TARE_OK)
        *out = m;
    else
        tare__module_release(m);
    return status;
}

const value *tare__module_config(const module *m, const char *key) {
    for (size_t i = 0; i < m->config_count; i++)
        if (strcmp(m->config[i].name, key) == 0) return &m->config[i].value;
    return NULL;
}

static tare_status append_config(module *m, const char *key, const value *v, tare_error *err) {
    keyword *config = tare__arena_array(&m->memory, m->config_count + 1, sizeof *config);
    const char *name = tare__arena_strdup(&m->memory, key);
    if (!config || !name) return tare__out_of_memory(err);
    if (m->config_count) memcpy(config, m->config, m->config_count * sizeof *config);
    config[m->config_count] = (keyword){name, *v};
    m->config = config;
    m->config_count++;
    return TARE_OK;
}

tare_status tare__module_set_config(module *m, const char *key, const value *v, tare_error *err) {
    value copy = tare__none();
    TARE_TRY(tare__value_copy(&m->memory, v, NULL, NULL, &copy, err));
    for (size_t i = 0; i < m->config_count; i++) {
        if (strcmp(m->config[i].name, key) != 0) continue;
        m->config[i].value = copy;
        return TARE_OK;
    }
    return append_config(m, key, &copy, err);
}

tare_status tare__module_copy_config(module *to, const module *from, tare_error *err) {
    for (size_t i = 0; i < from->config_count; i++)
        TARE_TRY(tare__module_set_config(to, from->config[i].name, &from->config[i].value, err));
    return TARE_OK;
}

tare_status tare__module_copy_tensors(module *to, const module *from, tare_error *err) {
    for (size_t i = 0; i < from->tensor_count; i++)
        TARE_TRY(tare__module_set_tensor(to, from->tensors[i].name, from->tensors[i].tensor,
                                         from->tensors[i].is_parameter, err));
    return TARE_OK;
}

int64_t tare__module_int(const module *m, const char *key, int64_t otherwise) {
    const value *v = tare__module_config(m, key);
    return v && v->kind == VALUE_INT ? v->as.integer : otherwise;
}

double tare__module_double(const module *m, const char *key, double otherwise) {
    const value *v = tare__module_config(m, key);
    double number = 0;
    return v && v->kind != VALUE_BOOL && tare__value_number(v, &number) ? number : otherwise;
}

bool tare__module_bool(const module *m, const char *key, bool otherwise) {
    const value *v = tare__module_config(m, key);
    return v && v->kind == VALUE_BOOL ? v->as.boolean : otherwise;
}

bool tare__module_ints(const module *m, const char *key, size_t count, int64_t *out) {
    const value *v = tare__module_config(m, key);
    if (!v) return false;
    const bool is_sequence = v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
    if (!is_sequence && v->kind != VALUE_INT) return false;
    if (is_sequence && v->count != count) return false;
    for (size_t i = 0; is_sequence && i < count; i++)
        if (v->as.items[i].kind != VALUE_INT) return false;
    for (size_t i = 0; i < count; i++)
        out[i] = is_sequence ? v->as.items[i].as.integer : v->as.integer;
    return true;
}

static named_items children_of(const module *m) {
    return (named_items){m->children, sizeof *m->children, m->child_count};
}
static named_items tensors_of(const module *m) {
    return (named_items){m->tensors, sizeof *m->tensors, m->tensor_count};
}

static named_module *find_child(const module *m, const char *name, size_t length) {
    const named_items children = children_of(m);
    const ptrdiff_t i = tare__name_index_find(&m->child_names, &children, name, length);
    return i == NAME_INDEX_NONE ? NULL : &m->children[i];
}

module *tare__module_child_n_mutable(module *m, const char *name, size_t length) {
    const named_module *child = find_child(m, name, length);
    return child ? child->module : NULL;
}

const module *tare__module_child_n_const(const module *m, const char *name, size_t length) {
    const named_module *child = find_child(m, name, length);
    return child ? child->module : NULL;
}

module *tare__module_child_mutable(module *m, const char *name) {
    return tare__module_child_n(m, name, strlen(name));
}

const module *tare__module_child_const(const module *m, const char *name) {
    return tare__module_child_n(m, name, strlen(name));
}

tare_status tare__module_set_child(module *m, const char *name, module *child, tare_error *err) {
    named_module *old = find_child(m, name, strlen(name));
    if (old) {
        module *dropped = old->module;
        old->module = tare__module_retain(child); // first: it may be the same one
        tare__module_release(dropped);
        return TARE_OK;
    }
    if (!tare__grow((void **)&m->children, &m->child_capacity, m->child_count, sizeof *m->children))
        return tare__out_of_memory(err);
    named_items children = children_of(m);
    char *copy = tare__name_index_reserve(&m->child_names, &children) ? tare__strdup(name) : NULL;
    if (!copy) return tare__out_of_memory(err);
    m->children[m->child_count++] = (named_module){copy, tare__module_retain(child)};
    children = children_of(m);
    tare__name_index_add(&m->child_names, &children);
    return TARE_OK;
}

void tare__module_remove_child(module *m, const char *name) {
    named_module *child = find_child(m, name, strlen(name));
    if (!child) return;
    tare__free(child->name);
    tare__module_release(child->module);
    const size_t index = (size_t)(child - m->children);
    memmove(child, child + 1, (m->child_count - index - 1) * sizeof *child);
    m->child_count--;
    const named_items left = children_of(m);
    tare__name_index_refill(&m->child_names, &left);
}

static named_tensor *find_tensor(const module *m, const char *name) {
    const named_items tensors = tensors_of(m);
    const ptrdiff_t i = tare__name_index_find(&m->tensor_names, &tensors, name, strlen(name));
    return i == NAME_INDEX_NONE ? NULL : &m->tensors[i];
}

const named_tensor *tare__module_named_tensor(const module *m, const char *name) {
    return find_tensor(m, name);
}

tare_tensor *tare__module_tensor(const module *m, const char *name) {
    const named_tensor *found = find_tensor(m, name);
    return found ? found->tensor : NULL;
}

bool tare__module_has_tensor(const module *m, const char *name) {
    return find_tensor(m, name) != NULL;
}

tare_status tare__module_set_tensor(module *m, const char *name, tare_tensor *tensor,
                                    bool is_parameter, tare_error *err) {
    named_tensor *old = find_tensor(m, name);
    if (old) {
        tare_tensor *dropped = old->tensor;
        old->tensor = tare_tensor_retain(tensor);
        old->is_parameter = is_parameter;
        tare_tensor_release(dropped);
        return TARE_OK;
    }
    if (!tare__grow((void **)&m->tensors, &m->tensor_capacity, m->tensor_count, sizeof *m->tensors))
        return tare__out_of_memory(err);
    named_items tensors = tensors_of(m);
    char *copy = tare__name_index_reserve(&m->tensor_names, &tensors) ? tare__strdup(name) : NULL;
    if (!copy) return tare__out_of_memory(err);
    m->tensors[m->tensor_count++] = (named_tensor){copy, tare_tensor_retain(tensor), is_parameter};
    tensors = tensors_of(m);
    tare__name_index_add(&m->tensor_names, &tensors);
    return TARE_OK;
}

void tare__module_remove_tensor(module *m, const char *name) {
    named_tensor *tensor = find_tensor(m, name);
    if (!tensor) return;
    tare__free(tensor->name);
    tare_tensor_release(tensor->tensor);
    const size_t index = (size_t)(tensor - m->tensors);
    memmove(tensor, tensor + 1, (m->tensor_count - index - 1) * sizeof *tensor);
    m->tensor_count--;
    const named_items left = tensors_of(m);
    tare__name_index_refill(&m->tensor_names, &left);
}
