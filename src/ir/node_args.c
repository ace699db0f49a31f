// SPDX-License-Identifier: Apache-2.0
// Arguments of nodes, and the lists of users that depend on them.
#include <string.h>

#include "ir/graph.h"

// Visits every occurrence of a node in these arguments, in order, including repeated ones.
static void each_mention(const value *args, size_t arg_count, const keyword *kwargs,
                         size_t kwarg_count, void (*visit)(void *, node *), void *user) {
    for (size_t i = 0; i < arg_count; i++) tare__value_each_node(&args[i], visit, user);
    for (size_t i = 0; i < kwarg_count; i++) tare__value_each_node(&kwargs[i].value, visit, user);
}

void tare__node_each_input(const node *n, void (*visit)(void *user, node *input), void *user) {
    for (size_t i = 0; i < n->input_count; i++) visit(user, n->inputs[i]);
}

node *tare__node_arg(const node *n, size_t i) {
    return i < n->arg_count && n->args[i].kind == VALUE_NODE ? n->args[i].as.node : NULL;
}

const value *tare__node_kwarg(const node *n, const char *name) {
    for (size_t i = 0; i < n->kwarg_count; i++)
        if (strcmp(n->kwargs[i].name, name) == 0) return &n->kwargs[i].value;
    return NULL;
}

typedef struct reserving {
    const node *user;
    size_t mention_count;
    tare_status status;
    tare_error *err;
} reserving;

// Makes room for one more user, and checks that the input belongs to the same graph. This is done
// first, so that changing the arguments cannot fail halfway.
static void reserve_user(void *user, node *input) {
    reserving *r = user;
    r->mention_count++;
    if (r->status != TARE_OK) return;
    if (!input || input->owner != r->user->owner) {
        r->status = tare__fail(r->err, TARE_INTERNAL, "node '%s' cannot use '%s' of another graph",
                               r->user->name, input ? input->name : "NULL");
        return;
    }
    if (input->user_count < input->user_capacity) return;
    const size_t capacity = input->user_capacity ? input->user_capacity * 2 : 2;
    node **users = tare__arena_array(&input->owner->memory, capacity, sizeof(node *));
    if (!users) {
        r->status = tare__out_of_memory(r->err);
        return;
    }
    if (input->user_count) memcpy(users, input->users, input->user_count * sizeof(node *));
    input->users = users;
    input->user_capacity = capacity;
}

static void drop_user(node *input, const node *user) {
    for (size_t i = input->user_count; i-- > 0;) {
        if (input->users[i] != user) continue;
        memmove(&input->users[i], &input->users[i + 1],
                (input->user_count - i - 1) * sizeof(node *));
        input->user_count--;
        return;
    }
}

// Adds n to the input's users. Old uses are removed already, so a repeated occurrence can only be
// the last entry.
static void add_input(void *user, node *input) {
    node *n = user;
    if (input->user_count && input->users[input->user_count - 1] == n) return;
    input->users[input->user_count++] = n;
    n->inputs[n->input_count++] = input;
}

typedef struct replacing {
    const node *old;
    node *with;
} replacing;

static node *replace(void *user, node *n) {
    const replacing *r = user;
    return n == r->old ? r->with : n;
}

// Copies arguments into the graph's arena and sets them as the node's.
static tare_status take_args(node *n, const value *args, size_t arg_count, const keyword *kwargs,
                             size_t kwarg_count, replacing *r, tare_error *err) {
    arena *a = &n->owner->memory;
    value *new_args = tare__arena_array(a, arg_count, sizeof *new_args);
    keyword *new_kwargs = tare__arena_array(a, kwarg_count, sizeof *new_kwargs);
    if (!new_args || !new_kwargs) return tare__out_of_memory(err);
    node *(*const translate)(void *, node *) = r ? replace : NULL;
    for (size_t i = 0; i < arg_count; i++)
        TARE_TRY(tare__value_copy(a, &args[i], translate, r, &new_args[i], err));
    for (size_t i = 0; i < kwarg_count; i++) {
        new_kwargs[i].name = tare__arena_strdup(a, kwargs[i].name);
        if (!new_kwargs[i].name) return tare__out_of_memory(err);
        TARE_TRY(tare__value_copy(a, &kwargs[i].value, translate, r, &new_kwargs[i].value, err));
    }
    reserving room = {.user = n, .status = TARE_OK, .err = err};
    each_mention(new_args, arg_count, new_kwargs, kwarg_count, reserve_user, &room);
    TARE_TRY(room.status);
    node **inputs = tare__arena_array(a, room.mention_count, sizeof(node *));
    if (!inputs) return tare__out_of_memory(err);

    for (size_t i = 0; i < n->input_count; i++) drop_user(n->inputs[i], n);
    n->inputs = inputs;
    n->input_count = 0;
    n->args = new_args;
    n->arg_count = arg_count;
    n->kwargs = new_kwargs;
    n->kwarg_count = kwarg_count;
    each_mention(n->args, n->arg_count, n->kwargs, n->kwarg_count, add_input, n);
    return TARE_OK;
}

tare_status tare__node_set_args(node *n, const value *args, size_t arg_count, const keyword *kwargs,
                                size_t kwarg_count, tare_error *err) {
    return take_args(n, args, arg_count, kwargs, kwarg_count, NULL, err);
}

tare_status tare__node_replace_input(node *n, node *old, node *with, tare_error *err) {
    replacing r = {old, with};
    return take_args(n, n->args, n->arg_count, n->kwargs, n->kwarg_count, &r, err);
}

tare_status tare__node_replace_uses(node *old, node *with, const node *except, tare_error *err) {
    if (old == with) return TARE_OK;
    // Each replacement removes a user from old's list, except the one to keep.
    for (size_t kept = 0; old->user_count > kept;) {
        node *user = old->users[kept];
        if (user == except)
            kept++;
        else
            TARE_TRY(tare__node_replace_input(user, old, with, err));
    }
    return TARE_OK;
}
