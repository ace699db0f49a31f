// SPDX-License-Identifier: Apache-2.0
// Sharing groups: a union-find over annotated edges and nodes.
#include "flow/export/sharing.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"

// --- collecting ---

// Node names are identifiers, so they cannot contain the separator.
#define KEY_NAME "%s>%s"

static tare_status key_name(const char *from, const char *name, text *out, tare_error *err) {
    tare__text_clear(out);
    tare__text_printf(out, KEY_NAME, from != NULL ? from : "", name);
    return tare__text_status(out, err);
}

void tare__qspec_keys_release(qspec_keys *keys) {
    tare__map_release(&keys->by_name);
}

// NULL means "", as in keys.
static bool same_name(const char *a, const char *b) {
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool is_key(const qspec_key *key, const char *from, const char *node_name) {
    return same_name(key->from != NULL ? key->from->name : NULL, from) &&
           same_name(key->node->name, node_name);
}

size_t tare__qspec_keys_find(const qspec_keys *keys, const char *from, const char *node_name) {
    char name[512];
    const int length = snprintf(name, sizeof name, KEY_NAME, from != NULL ? from : "", node_name);
    if (length >= 0 && (size_t)length < sizeof name)
        return tare__map_has(&keys->by_name, name) ? (size_t)tare__map_get(&keys->by_name, name)
                                                   : keys->count;
    for (size_t i = 0; i < keys->count; i++) // allocated now, so that lookups cannot fail
        if (is_key(&keys->items[i], from, node_name)) return i;
    return keys->count;
}

void tare__qspec_key_text(const qspec_key *key, text *out) {
    const tare_edge_name edge = {.from = key->from != NULL ? key->from->name : NULL,
                                 .node = key->node->name};
    tare__edge_name_text(&edge, out);
}

static tare_status add(qspec_keys *keys, node *from, node *n, tare_qspec *spec, text *name,
                       tare_error *err) {
    TARE_TRY(key_name(from != NULL ? from->name : NULL, n->name, name, err));
    if (!tare__map_set(&keys->by_name, tare__text_chars(name), tare__map_int(keys->count)))
        return tare__out_of_memory(err);
    keys->items[keys->count++] = (qspec_key){.from = from, .node = n, .spec = spec};
    return TARE_OK;
}

static node *find_input(const node *n, const char *name) {
    for (size_t i = 0; i < n->input_count; i++)
        if (strcmp(n->inputs[i]->name, name) == 0) return n->inputs[i];
    return NULL;
}

static tare_status collect_node(qspec_keys *keys, node *n, const tare_annotation *a, text *name,
                                tare_error *err) {
    for (size_t i = 0; i < a->input_count; i++) {
        node *input = find_input(n, a->inputs[i].input);
        if (input == NULL)
            return tare__fail(err, TARE_NOT_FOUND,
                              "node '%s' is annotated with a spec for its input '%s', which it "
                              "does not read",
                              n->name, a->inputs[i].input);
        TARE_TRY(add(keys, input, n, a->inputs[i].spec, name, err));
    }
    return a->output != NULL ? add(keys, NULL, n, a->output, name, err) : TARE_OK;
}

static size_t most_keys(const tare_model *model) {
    size_t count = 0;
    for (size_t i = 0; i < model->annotations.by_node.count; i++) {
        const tare_annotation *a = model->annotations.by_node.entries[i].value;
        count += a->input_count + 1;
    }
    return count;
}

tare_status tare__qspec_keys_collect(const tare_model *model, arena *memory, qspec_keys *out,
                                     tare_error *err) {
    *out = (qspec_keys){0};
    out->items = tare__arena_array(memory, most_keys(model) + 1, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(err);
    text name = {0};
    tare_status status = TARE_OK;
    for (node *n = model->root->graph->first; n != NULL && status == TARE_OK; n = n->next) {
        const tare_annotation *a = tare__annotation_find(&model->annotations, n->name);
        if (a != NULL) status = collect_node(out, n, a, &name, err);
    }
    tare__text_release(&name);
    if (status != TARE_OK) tare__qspec_keys_release(out);
    return status;
}

// --- what shared specs point at ---

static bool is_shared(const qspec_key *key) {
    return key->spec != NULL && key->spec->kind == TARE_QSPEC_SHARED;
}

static tare_status refuse_target(const qspec_key *key, tare_error *err) {
    text names = {0};
    tare__qspec_key_text(key, &names);
    tare__text_append(&names, " is to share with ");
    tare__edge_name_text(&key->spec->targets[0], &names);
    const tare_status status =
        tare__fail(err, TARE_NOT_FOUND, "%s, which is not annotated", tare__text_chars(&names));
    tare__text_release(&names);
    return status;
}

static tare_status find_targets(qspec_keys *keys, tare_error *err) {
    for (size_t i = 0; i < keys->count; i++) {
        qspec_key *key = &keys->items[i];
        key->parent = i;
        if (!is_shared(key)) continue;
        const tare_edge_name *t = &key->spec->targets[0];
        key->target = tare__qspec_keys_find(keys, t->from, t->node);
        if (key->target == keys->count) return refuse_target(key, err);
    }
    return TARE_OK;
}

static void find_roots(qspec_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        size_t at = i;
        while (is_shared(&keys->items[at])) at = keys->items[at].target;
        keys->items[i].root_spec = keys->items[at].spec;
    }
}

// --- groups ---

static size_t find(qspec_keys *keys, size_t i) {
    while (keys->items[i].parent != i) {
        keys->items[i].parent = keys->items[keys->items[i].parent].parent;
        i = keys->items[i].parent;
    }
    return i;
}

// Merges the group of `b` into the group of `a`.
static void join(qspec_keys *keys, size_t a, size_t b, bool is_implicit) {
    const size_t left = find(keys, a), right = find(keys, b);
    if (left != right && keys->items[b].joined == 0) {
        keys->items[b].joined = a + 1;
        keys->items[b].joined_implicitly = is_implicit;
    }
    // The first key in order represents the group: trees stay shallow enough, and equal runs give
    // equal trees.
    if (left < right)
        keys->items[right].parent = left;
    else
        keys->items[left].parent = right;
}

// The attributes that torch compares, which do not include the observer.
static bool is_compatible(const tare_qspec *a, const tare_qspec *b) {
    if (a == NULL || b == NULL) return false;
    const tare_qspec_fields *x = &a->fields, *y = &b->fields;
    const bool is_fixed = a->kind == TARE_QSPEC_FIXED;
    if (is_fixed != (b->kind == TARE_QSPEC_FIXED)) return false;
    return x->dtype == y->dtype && x->is_dynamic == y->is_dynamic &&
           x->has_quant_min == y->has_quant_min && x->quant_min == y->quant_min &&
           x->has_quant_max == y->has_quant_max && x->quant_max == y->quant_max &&
           x->qscheme == y->qscheme && x->has_channel_axis == y->has_channel_axis &&
           x->channel_axis == y->channel_axis && x->scale == y->scale &&
           x->zero_point == y->zero_point;
}

static void join_if_compatible(qspec_keys *keys, size_t edge, const char *from, const char *name) {
    const size_t other = tare__qspec_keys_find(keys, from, name);
    if (other < keys->count &&
        is_compatible(keys->items[edge].root_spec, keys->items[other].root_spec))
        join(keys, other, edge, true);
}

static void share_implicitly(qspec_keys *keys, size_t edge, const tare_model *model) {
    const qspec_key *key = &keys->items[edge];
    const tare_annotation *a = tare__annotation_find(&model->annotations, key->node->name);
    if (a == NULL || !a->allows_sharing) return;
    for (size_t i = 0; i < key->from->user_count; i++)
        if (key->from->users[i] != key->node)
            join_if_compatible(keys, edge, key->from->name, key->from->users[i]->name);
    join_if_compatible(keys, edge, NULL, key->from->name);
}

static tare_status number_groups(qspec_keys *keys, tare_error *err) {
    size_t *numbers = tare__alloc_zeroed(keys->count + 1, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < keys->count; i++) {
        size_t *number = &numbers[find(keys, i)];
        if (*number == 0) *number = ++keys->group_count;
        keys->items[i].group = *number - 1;
    }
    tare__free(numbers);
    return TARE_OK;
}

tare_status tare__qspec_keys_share(qspec_keys *keys, const tare_model *model, tare_error *err) {
    TARE_TRY(find_targets(keys, err));
    TARE_TRY(tare__qspec_keys_check_rings(keys, false, err));
    find_roots(keys);
    for (size_t i = 0; i < keys->count; i++) {
        if (keys->items[i].from != NULL) share_implicitly(keys, i, model);
        if (is_shared(&keys->items[i])) join(keys, keys->items[i].target, i, false);
    }
    TARE_TRY(number_groups(keys, err));
    return tare__qspec_keys_check_rings(keys, true, err);
}
