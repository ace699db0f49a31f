// SPDX-License-Identifier: Apache-2.0
// Visits the nodes among a node's arguments, and tracks their paths.
#include "ir/argument_paths.h"

#include "core/text/text.h"

typedef struct walk {
    argument_visitor visit;
    void *user;
    text path;
    tare_error *err;
} walk;

static tare_status walk_value(walk *w, const value *v) {
    TARE_TRY(tare__text_status(&w->path, w->err));
    if (v->kind == VALUE_NODE) return w->visit(w->user, v->as.node, tare__text_chars(&w->path));
    if (!tare__value_has_items(v)) return TARE_OK;
    const size_t length = w->path.length;
    for (uint32_t i = 0; i < v->count; i++) {
        tare__text_printf(&w->path, "[%u]", (unsigned)i);
        TARE_TRY(walk_value(w, &v->as.items[i]));
        w->path.length = length;
        w->path.chars[length] = '\0';
    }
    return TARE_OK;
}

static tare_status walk_node(walk *w, const node *n) {
    for (size_t i = 0; i < n->arg_count; i++) {
        tare__text_clear(&w->path);
        tare__text_printf(&w->path, "args[%zu]", i);
        TARE_TRY(walk_value(w, &n->args[i]));
    }
    for (size_t i = 0; i < n->kwarg_count; i++) {
        tare__text_clear(&w->path);
        tare__text_printf(&w->path, "kwargs.%s", n->kwargs[i].name);
        TARE_TRY(walk_value(w, &n->kwargs[i].value));
    }
    return TARE_OK;
}

tare_status tare__each_argument(const node *n, argument_visitor visit, void *user,
                                tare_error *err) {
    walk w = {.visit = visit, .user = user, .err = err};
    const tare_status status = walk_node(&w, n);
    tare__text_release(&w.path);
    return status;
}
