// SPDX-License-Identifier: Apache-2.0
// Lowering: keeps the float tensors from which weights were packed, on request.
#include <stdio.h>

#include "flow/lower/fx/lower.h"

// The prefix of their names in the module of packed weights.
#define ORIGINAL "original_"

typedef struct collecting {
    convert_pass *pass;
    bool *is_wanted;            // by node id
    const named_tensor **found; // in torch's order
    size_t count;
} collecting;

static void want(void *user, node *input) {
    collecting *c = user;
    c->is_wanted[input->id] = true;
}

// Parameters precede buffers in a state dict.
static void collect(collecting *c, const node *first, bool are_parameters) {
    const module *root = c->pass->base->model->root;
    for (const node *n = first; n != NULL; n = n->next) {
        if (!c->is_wanted[n->id] || n->op != NODE_GET_ATTR) continue;
        const named_tensor *t = tare__module_find_named_tensor(root, n->target);
        if (t != NULL && t->tensor != NULL && t->is_parameter == are_parameters)
            c->found[c->count++] = t;
    }
}

// Largest first; equal sizes keep their order.
static void sort(collecting *c) {
    for (size_t i = 1; i < c->count; i++)
        for (size_t j = i; j > 0 && c->found[j - 1]->tensor->count < c->found[j]->tensor->count;
             j--) {
            const named_tensor *t = c->found[j];
            c->found[j] = c->found[j - 1];
            c->found[j - 1] = t;
        }
}

tare_status tare__keep_original_weights(convert_pass *p, module *packed, const value *wanted,
                                        size_t count, const node *before) {
    const graph *g = before->owner;
    arena *memory = &p->base->scratch;
    collecting c = {.pass = p,
                    .is_wanted = tare__arena_array(memory, g->next_id + 1, sizeof(bool)),
                    .found = tare__arena_array(memory, g->node_count + 1, sizeof(void *))};
    if (c.is_wanted == NULL || c.found == NULL) return tare__out_of_memory(p->base->err);
    for (size_t i = 0; i < count; i++) tare__value_each_node(&wanted[i], want, &c);
    for (const node *n = before->prev; n != NULL; n = n->prev)
        if (c.is_wanted[n->id]) tare__node_each_input(n, want, &c);
    collect(&c, g->first, true);
    collect(&c, g->first, false);
    sort(&c);
    for (size_t i = 0; i < c.count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, ORIGINAL "%zu", i);
        TARE_TRY(tare__module_set_tensor(packed, name, c.found[i]->tensor, false, p->base->err));
    }
    return TARE_OK;
}

const tare_tensor *tare_model_original_weight(const tare_model *model, const char *packed,
                                              size_t index) {
    char name[32];
    const module *m = packed != NULL ? tare__module_find(model->root, packed) : NULL;
    if (m == NULL || m->class->role != ROLE_PACKED) return NULL;
    (void)snprintf(name, sizeof name, ORIGINAL "%zu", index);
    return tare__module_tensor(m, name);
}
