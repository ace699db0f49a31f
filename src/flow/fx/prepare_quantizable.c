// SPDX-License-Identifier: Apache-2.0
// Prepare: results of custom modules that return tuples of quantized tensors. Each tensor gets a
// stub, which convert replaces by dequantize. They are not observed, because the module has
// observers inside.
#include <stdio.h>

#include "flow/fx/prepare.h"
#include "flow/fx/quantizable.h"
#include "flow/insert.h"
#include "ops/op.h"

enum { MOST_ITEMS = 4 };

typedef struct splitter {
    prepare_pass *pass;
    node *last;     // the node inserted last
    const char *at; // position in the description
} splitter;

static tare_status insert_row(splitter *s, op_id id, const value *args, size_t count, node **out) {
    graph *g = s->pass->base->model->root->graph;
    const op_name name = tare__op_function_name(tare__op_row(id));
    const node_spec spec = {
        .op = NODE_CALL_FUNCTION, .target = name.text, .args = args, .arg_count = count};
    TARE_TRY(tare__graph_insert(g, &spec, s->last->next, out, s->pass->base->err));
    s->last = *out;
    return TARE_OK;
}

static tare_status insert_stub(splitter *s, node *of, node **out) {
    pass *base = s->pass->base;
    module *stub = NULL;
    size_t number = 0;
    char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "%s_", tare__op_row(TARE_OP_DEQUANT_STUB)->id);
    const module_class *class =
        tare__class_find(&base->model->context->classes, "torch.ao.quantization.DeQuantStub");
    TARE_TRY(tare__module_create(class, &stub, base->err));
    const tare_status status =
        tare__call_new_module(base, stub, prefix, &number, of, s->last->next, out);
    tare__module_release(stub);
    if (status == TARE_OK) s->last = *out;
    return status;
}

// Replaces getitem nodes of a tuple by the tuple's items.
static tare_status reroute(splitter *s, node *tuple, node *const *items, size_t count) {
    tare_error *err = s->pass->base->err;
    for (size_t i = 0; i < tuple->user_count; i++) {
        node *user = tuple->users[i];
        const bool takes = tare__function_op(user) == TARE_OP_GETITEM && user->arg_count == 2 &&
                           user->args[1].kind == VALUE_INT;
        const int64_t index = takes ? user->args[1].as.integer : -1;
        if (index >= 0 && (size_t)index < count)
            TARE_TRY(tare__node_replace_uses(user, items[index], NULL, err));
    }
    return TARE_OK;
}

static tare_status combine(splitter *s, node *const *items, size_t count, node **out) {
    const value list = tare__value_sequence(&s->pass->base->scratch, VALUE_LIST, (uint32_t)count);
    if (list.as.items == NULL) return tare__out_of_memory(s->pass->base->err);
    for (size_t i = 0; i < count; i++) list.as.items[i] = tare__node_value(items[i]);
    return insert_row(s, TARE_OP_TUPLE, &list, 1, out);
}

// Takes all items out of a tuple, adds a stub to each, and builds a new tuple.
static tare_status split(splitter *s, node *from, node **out) {
    node *items[MOST_ITEMS] = {0};
    size_t count = 0;
    for (s->at++; *s->at != ')'; count++) {
        const value args[] = {tare__node_value(from), tare__int((int64_t)count)};
        node *item = NULL;
        TARE_TRY(insert_row(s, TARE_OP_GETITEM, args, 2, &item));
        if (*s->at == '(')
            TARE_TRY(split(s, item, &items[count]));
        else
            TARE_TRY(insert_stub(s, item, &items[count]));
        s->at++;
    }
    return combine(s, items, count, out);
}

// Makes users of the new tuple's items read the items directly.
static tare_status shorten(splitter *s, node *tuple) {
    node *items[MOST_ITEMS] = {0};
    const value *list = &tuple->args[0];
    for (uint32_t i = 0; i < list->count; i++) items[i] = list->as.items[i].as.node;
    TARE_TRY(reroute(s, tuple, items, list->count));
    for (uint32_t i = 0; i < list->count; i++)
        if (tare__function_op(items[i]) == TARE_OP_TUPLE) TARE_TRY(shorten(s, items[i]));
    return TARE_OK;
}

// The structure of the result of an LSTM or an attention: 'T' is a tensor, parentheses a tuple.
static const char *result_of(const prepare_pass *p, const node *n) {
    const module *m = tare__called_module(p->base->model, n);
    if (m == NULL || !tare__is_quantizable(m->class)) return NULL;
    return tare__class_op(m->class) == TARE_OP_LSTM ? "(T(TT))" : "(TT)";
}

tare_status tare__prepare_split_result(prepare_pass *p, node *n, bool *is_split) {
    splitter s = {.pass = p, .last = n, .at = result_of(p, n)};
    tare_error *err = p->base->err;
    *is_split = s.at != NULL;
    if (s.at == NULL) return TARE_OK;
    const size_t user_count = n->user_count;
    node **users = tare__arena_array(&p->base->scratch, user_count + 1, sizeof(node *));
    if (users == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < user_count; i++) users[i] = n->users[i];
    node *whole = NULL;
    TARE_TRY(split(&s, n, &whole));
    for (size_t i = 0; i < user_count; i++)
        TARE_TRY(tare__node_replace_input(users[i], n, whole, err));
    return shorten(&s, whole);
}
