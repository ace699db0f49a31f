// SPDX-License-Identifier: Apache-2.0
// The form in which getters see matches.
#include "flow/match.h"

size_t tare_match_count(const tare_match *match) {
    return match ? match->count : 0;
}

const tare_match *tare_match_nested(const tare_match *match, size_t i) {
    return match && i < match->count ? match->items[i].nested : NULL;
}

const tare_match_node *tare_match_node_at(const tare_match *match, size_t i) {
    return match && i < match->count ? match->items[i].node : NULL;
}

const char *tare_match_node_name(const tare_match_node *match_node) {
    return match_node ? tare__match_node_get(match_node)->name : NULL;
}

const tare_match_node *tare_match_node_input(const tare_match_node *match_node, size_t i) {
    if (!match_node) return NULL;
    return tare__match_node_from(tare__node_arg(tare__match_node_get(match_node), i));
}

const tare_match_node *tare__match_default_root(const tare_match *match) {
    while (match && match->count > 0) {
        const match_item *last = &match->items[match->count - 1];
        if (last->node) return last->node;
        match = last->nested;
    }
    return NULL;
}

const node *tare__match_root(const tare_pattern_config *config, const tare_match *match) {
    const tare_match_node *root =
        config->root_node_getter != NULL
            ? config->root_node_getter(config->root_node_getter_user, match)
            : tare__match_default_root(match);
    return root != NULL ? tare__match_node_get(root) : NULL;
}

tare_status tare__match_list_create(arena *a, size_t capacity, match_list *out, tare_error *err) {
    *out = (match_list){tare__arena_array(a, capacity, sizeof(match_item)), 0};
    return out->items != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__match_nest(arena *a, const match_list *items, match_item *out, tare_error *err) {
    tare_match *nested = tare__arena_alloc(a, sizeof *nested);
    if (nested == NULL) return tare__out_of_memory(err);
    *nested = (tare_match){.count = items->count, .items = items->items};
    *out = (match_item){.nested = nested};
    return TARE_OK;
}

// out NULL: only counts them.
static size_t add_nodes(const tare_match *match, const node **out, size_t count) {
    for (size_t i = 0; i < match->count; i++) {
        const match_item *item = &match->items[i];
        if (item->nested != NULL)
            count = add_nodes(item->nested, out, count);
        else if (item->node == NULL || item->is_wildcard)
            continue;
        else if (out != NULL)
            out[count++] = tare__match_node_get(item->node);
        else
            count++;
    }
    return count;
}

tare_status tare__match_flatten(arena *a, const tare_match *match, match_nodes *out,
                                tare_error *err) {
    out->count = add_nodes(match, NULL, 0);
    out->items = tare__arena_array(a, out->count + 1, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(err);
    (void)add_nodes(match, out->items, 0);
    return TARE_OK;
}
