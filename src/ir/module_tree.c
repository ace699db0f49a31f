// SPDX-License-Identifier: Apache-2.0
// Trees of modules: paths, walks, clones, and rebuilding like torch's GraphModule.
#include <string.h>

#include "core/memory/alloc.h"
#include "ir/module.h"

// Deeper trees are refused, so that an untrusted path cannot overflow the stack in a recursive
// walk.
enum { MAX_DEPTH = 64 };

// The direct child named by the first `length` characters of path; created if there is none.
static tare_status make_child(module *m, const char *path, size_t length,
                              const module_class *container, module **out, tare_error *err) {
    module *child = tare__module_child_n(m, path, length);
    if (!child) {
        char *name = tare__strndup(path, length);
        if (!name) return tare__out_of_memory(err);
        tare_status status = tare__module_create(container, &child, err);
        if (status == TARE_OK) status = tare__module_set_child(m, name, child, err);
        tare__module_release(child); // its parent holds a reference now
        tare__free(name);
        TARE_TRY(status);
    }
    *out = child;
    return TARE_OK;
}

// The parent of the last component of `path`; missing modules are created as containers.
static tare_status make_parent(module *root, const char *path, const module_class *container,
                               module **parent, const char **last, tare_error *err) {
    module *at = root;
    int depth = 1;
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        if (dot == path) break;
        if (++depth > MAX_DEPTH)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "a path has more than %d components",
                              MAX_DEPTH);
        TARE_TRY(make_child(at, path, (size_t)(dot - path), container, &at, err));
    }
    if (!*path || *path == '.')
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a path has an empty component");
    *parent = at;
    *last = path;
    return TARE_OK;
}

tare_status tare__module_set_path(module *root, const char *path, module *child,
                                  const module_class *container, tare_error *err) {
    module *parent = NULL;
    const char *name = NULL;
    TARE_TRY(make_parent(root, path, container, &parent, &name, err));
    return tare__module_set_child(parent, name, child, err);
}

tare_status tare__module_set_tensor_path(module *root, const char *path, tare_tensor *tensor,
                                         bool is_parameter, const module_class *container,
                                         tare_error *err) {
    module *parent = NULL;
    const char *name = NULL;
    TARE_TRY(make_parent(root, path, container, &parent, &name, err));
    return tare__module_set_tensor(parent, name, tensor, is_parameter, err);
}

// Follows the components of `path` up to `end`.
static const module *follow(const module *root, const char *path, const char *end) {
    const module *at = root;
    while (at && path < end) {
        const char *dot = memchr(path, '.', (size_t)(end - path));
        const char *stop = dot ? dot : end;
        at = tare__module_child_n(at, path, (size_t)(stop - path));
        path = dot ? dot + 1 : end;
    }
    return at;
}

const module *tare__module_find_n(const module *m, const char *path, size_t length) {
    return follow(m, path, path + length);
}

const module *tare__module_find_const(const module *m, const char *path) {
    return tare__module_find_n(m, path, strlen(path));
}

module *tare__module_find_mutable(module *m, const char *path) {
    return (module *)tare__module_find_const(m, path); // NOLINT: it lies in what the caller changes
}

const named_tensor *tare__module_find_named_tensor(const module *root, const char *path) {
    const char *dot = strrchr(path, '.');
    const module *owner = dot ? follow(root, path, dot) : root;
    return owner ? tare__module_named_tensor(owner, dot ? dot + 1 : path) : NULL;
}

tare_tensor *tare__module_find_tensor(const module *root, const char *path) {
    const named_tensor *found = tare__module_find_named_tensor(root, path);
    return found ? found->tensor : NULL;
}

tare_status tare__module_replace_tensor(module *root, const char *path, tare_tensor *tensor,
                                        tare_error *err) {
    const named_tensor *old = tare__module_find_named_tensor(root, path);
    if (!old || !old->tensor) return TARE_OK;
    return tare__module_set_tensor_path(root, path, tensor, old->is_parameter, NULL, err);
}

const char *tare__module_free_name(const module *m, arena *memory, const char *prefix,
                                   size_t *number) {
    for (;; ++*number) {
        const char *name = tare__arena_printf(memory, "%s%zu", prefix, *number);
        if (name == NULL || (!tare__module_has_tensor(m, name) && !tare__module_child(m, name)))
            return name;
    }
}

typedef struct walking {
    tare_status (*visit)(void *user, const char *path, module *m, tare_error *err);
    void *user;
    text path;
} walking;

static tare_status walk(walking *w, module *m, tare_error *err) {
    TARE_TRY(tare__text_status(&w->path, err));
    TARE_TRY(w->visit(w->user, tare__text_chars(&w->path), m, err));
    const size_t length = w->path.length;
    for (size_t i = 0; i < m->child_count; i++) {
        if (length) tare__text_char(&w->path, '.');
        tare__text_append(&w->path, m->children[i].name);
        TARE_TRY(walk(w, m->children[i].module, err));
        w->path.length = length;
        w->path.chars[length] = '\0';
    }
    return TARE_OK;
}

tare_status tare__module_walk(module *root,
                              tare_status (*visit)(void *user, const char *path, module *m,
                                                   tare_error *err),
                              void *user, tare_error *err) {
    walking w = {.visit = visit, .user = user};
    const tare_status status = walk(&w, root, err);
    tare__text_release(&w.path);
    return status;
}

// Modules with several references, and their clones.
typedef struct module_pair {
    const module *from;
    module *to;
} module_pair;

typedef struct cloning {
    module_pair *shared;
    size_t count, capacity;
} cloning;

static tare_status clone(cloning *c, const module *from, module **out, tare_error *err);

static tare_status clone_contents(cloning *c, const module *from, module *to, tare_error *err) {
    to->training = from->training;
    TARE_TRY(tare__module_copy_config(to, from, err));
    TARE_TRY(tare__module_copy_tensors(to, from, err));
    if (from->graph) TARE_TRY(tare__graph_clone(from->graph, &to->graph, err));
    if (from->state && from->class->clone_state)
        TARE_TRY(from->class->clone_state(from->state, &to->state, err));
    for (size_t i = 0; i < from->child_count; i++) {
        module *child = NULL;
        TARE_TRY(clone(c, from->children[i].module, &child, err));
        const tare_status status = tare__module_set_child(to, from->children[i].name, child, err);
        tare__module_release(child);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status remember(cloning *c, const module *from, module *to, tare_error *err) {
    if (from->refcount < 2) return TARE_OK; // has only one parent, so it is not found again
    if (!tare__grow((void **)&c->shared, &c->capacity, c->count, sizeof *c->shared))
        return tare__out_of_memory(err);
    c->shared[c->count++] = (module_pair){from, to};
    return TARE_OK;
}

static tare_status clone(cloning *c, const module *from, module **out, tare_error *err) {
    for (size_t i = 0; from->refcount > 1 && i < c->count; i++) {
        if (c->shared[i].from != from) continue;
        *out = tare__module_retain(c->shared[i].to);
        return TARE_OK;
    }
    module *to = NULL;
    TARE_TRY(tare__module_create(from->class, &to, err));
    tare_status status = remember(c, from, to, err);
    if (status == TARE_OK) status = clone_contents(c, from, to, err);
    return tare__module_hand_out(to, status, out);
}

tare_status tare__module_clone(const module *m, module **out, tare_error *err) {
    cloning c = {0};
    const tare_status status = clone(&c, m, out, err);
    tare__free(c.shared);
    return status;
}

static tare_status missing(const node *n, tare_error *err) {
    return tare__fail(err, TARE_NOT_FOUND,
                      "node '%s' refers to '%s', which the model does not have", n->name,
                      n->target);
}

// Copies the target of a node: a tensor, or a module with everything in it.
static tare_status copy_field(module *from, module *to, const char *name, const node *n,
                              tare_error *err) {
    const named_tensor *tensor = tare__module_named_tensor(from, name);
    if (tensor) return tare__module_set_tensor(to, name, tensor->tensor, tensor->is_parameter, err);
    module *child = tare__module_child(from, name);
    if (child) return tare__module_set_child(to, name, child, err);
    return missing(n, err);
}

// torch's _copy_attr. If a parent is shared already as a whole, copying has no effect.
static tare_status copy_target(module *from, module *to, const node *n,
                               const module_class *container, tare_error *err) {
    const char *path = n->target;
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        const size_t length = (size_t)(dot - path);
        from = tare__module_child_n(from, path, length);
        if (!from) return missing(n, err);
        TARE_TRY(make_child(to, path, length, container, &to, err));
        if (from == to) return TARE_OK;
    }
    return copy_field(from, to, path, n, err);
}

static tare_status copy_targets(module *root, const graph *g, const module_class *container,
                                module *to, tare_error *err) {
    to->training = root->training;
    for (const node *n = g->first; n; n = n->next)
        if (n->op == NODE_CALL_MODULE || n->op == NODE_GET_ATTR)
            TARE_TRY(copy_target(root, to, n, container, err));
    return TARE_OK;
}

tare_status tare__module_from_graph(module *root, graph *g, const module_class *container,
                                    const module_class *graph_module, module **out,
                                    tare_error *err) {
    module *m = NULL;
    TARE_TRY(tare__module_create(graph_module, &m, err));
    const tare_status status = copy_targets(root, g, container, m, err);
    if (status != TARE_OK) {
        tare__module_release(m);
        return status;
    }
    m->graph = g;
    *out = m;
    return TARE_OK;
}
