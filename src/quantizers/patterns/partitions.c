// SPDX-License-Identifier: Apache-2.0
// Collects partitions in one pass over the graph, then completes each of them.
#include "quantizers/patterns/partitions.h"

#include <string.h>

#include "core/text/text.h"

// --- collecting ---

typedef struct collector {
    const node_sources *sources;
    const char **wanted; // in canonical spelling
    const char *const *given;
    size_t wanted_count;
    arena *memory;
    partition *items;
    const char **calls; // the name of the call of each partition
    size_t count, capacity;
    tare_error *err;
} collector;

// Grows an array in an arena; the old array stays allocated.
static tare_status make_room(arena *memory, void **array, size_t *capacity, size_t count,
                             size_t element, tare_error *err) {
    if (count < *capacity) return TARE_OK;
    const size_t more = *capacity == 0 ? 4 : 2 * *capacity;
    void *grown = tare__arena_array(memory, more, element);
    if (grown == NULL) return tare__out_of_memory(err);
    if (count > 0) memcpy(grown, *array, count * element);
    *array = grown;
    *capacity = more;
    return TARE_OK;
}

static tare_status append(arena *memory, node_list *list, node *n, tare_error *err) {
    TARE_TRY(make_room(memory, (void **)&list->items, &list->capacity, list->count,
                       sizeof *list->items, err));
    list->items[list->count++] = n;
    return TARE_OK;
}

static bool holds(const node_list *list, const node *n) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == n) return true;
    return false;
}

static tare_status append_once(arena *memory, node_list *list, node *n, tare_error *err) {
    return holds(list, n) ? TARE_OK : append(memory, list, n, err);
}

static const char *find_wanted(const collector *c, const char *name) {
    for (size_t i = 0; name != NULL && i < c->wanted_count; i++)
        if (strcmp(c->wanted[i], name) == 0) return c->given[i];
    return NULL;
}

static tare_status add_to_partition(collector *c, const char *source, const char *call, node *n) {
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->items[i].source, source) == 0 && strcmp(c->calls[i], call) == 0)
            return append(c->memory, &c->items[i].nodes, n, c->err);
    size_t capacity = c->capacity;
    TARE_TRY(
        make_room(c->memory, (void **)&c->calls, &capacity, c->count, sizeof *c->calls, c->err));
    TARE_TRY(
        make_room(c->memory, (void **)&c->items, &c->capacity, c->count, sizeof *c->items, c->err));
    c->calls[c->count] = call;
    c->items[c->count] = (partition){.source = source};
    return append(c->memory, &c->items[c->count++].nodes, n, c->err);
}

static tare_status collect_node(collector *c, node *n) {
    const node_source *s = tare__node_source(c->sources, n);
    if (s->function != NULL) {
        const char *source = find_wanted(c, s->function);
        return source != NULL ? add_to_partition(c, source, s->call, n) : TARE_OK;
    }
    const char *source = find_wanted(c, s->torch_function);
    if (source != NULL) return add_to_partition(c, source, s->torch_call, n);
    if (n->op != NODE_CALL_FUNCTION) return TARE_OK;
    source = find_wanted(c, s->class);
    return source != NULL ? add_to_partition(c, source, s->path, n) : TARE_OK;
}

// --- completing ---

static tare_status complete(arena *memory, partition *p, tare_error *err) {
    for (size_t i = 0; i < p->nodes.count; i++) {
        node *n = p->nodes.items[i];
        for (size_t a = 0; a < n->arg_count; a++) {
            node *input = tare__node_arg(n, a);
            if (input != NULL && input->op != NODE_GET_ATTR && !holds(&p->nodes, input))
                TARE_TRY(append_once(memory, &p->inputs, input, err));
        }
        if (n->op == NODE_GET_ATTR) {
            TARE_TRY(append(memory, &p->params, n, err));
            continue;
        }
        for (size_t u = 0; u < n->user_count; u++)
            if (!holds(&p->nodes, n->users[u])) TARE_TRY(append_once(memory, &p->outputs, n, err));
    }
    return TARE_OK;
}

static void sort_by_position(node_list *list, const size_t *position) {
    for (size_t i = 1; i < list->count; i++) { // lists are short
        node *n = list->items[i];
        size_t at = i;
        for (; at > 0 && position[list->items[at - 1]->id] > position[n->id]; at--)
            list->items[at] = list->items[at - 1];
        list->items[at] = n;
    }
}

static bool is_accepted(const partition *p, const node_filter *filter) {
    if (filter == NULL || filter->accepts == NULL) return true;
    for (size_t i = 0; i < p->nodes.count; i++)
        if (!filter->accepts(filter->user, p->nodes.items[i])) return false;
    return true;
}

// Groups by source as torch does: sources in the order of their first nodes, and the calls of each.
static void group_by_source(const collector *c, const node_filter *filter, partition_list *out) {
    for (size_t i = 0; i < c->count; i++) {
        bool is_first = true;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = c->items[j].source != c->items[i].source;
        for (size_t j = i; is_first && j < c->count; j++)
            if (c->items[j].source == c->items[i].source && is_accepted(&c->items[j], filter))
                out->items[out->count++] = c->items[j];
    }
}

static tare_status spell_wanted(collector *c, const char *const *wanted, size_t count) {
    c->given = wanted;
    c->wanted = tare__arena_array(c->memory, count + 1, sizeof *c->wanted);
    if (c->wanted == NULL) return tare__out_of_memory(c->err);
    for (size_t i = 0; i < count; i++) {
        c->wanted[i] = tare__source_name(c->memory, wanted[i]);
        if (c->wanted[i] == NULL) return tare__out_of_memory(c->err);
    }
    c->wanted_count = count;
    return TARE_OK;
}

tare_status tare__source_partitions(const graph *g, const node_sources *sources,
                                    const char *const *wanted, size_t wanted_count,
                                    const node_filter *filter, arena *memory, partition_list *out,
                                    tare_error *err) {
    collector c = {.sources = sources, .memory = memory, .err = err};
    TARE_TRY(spell_wanted(&c, wanted, wanted_count));
    size_t *position = tare__arena_array(memory, g->next_id + 1, sizeof *position);
    if (position == NULL) return tare__out_of_memory(err);
    size_t at = 0;
    for (node *n = g->first; n != NULL; n = n->next) {
        position[n->id] = at++;
        TARE_TRY(collect_node(&c, n));
    }
    for (size_t i = 0; i < c.count; i++) {
        TARE_TRY(complete(memory, &c.items[i], err));
        sort_by_position(&c.items[i].inputs, position);
        sort_by_position(&c.items[i].outputs, position);
    }
    *out = (partition_list){0};
    out->items = tare__arena_array(memory, c.count + 1, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(err);
    group_by_source(&c, filter, out);
    return TARE_OK;
}

static bool is_same_source(const char *name, const char *wanted) {
    arena memory = {0};
    const char *spelt = name != NULL ? tare__source_name(&memory, wanted) : NULL;
    const bool is_same = spelt != NULL && strcmp(spelt, name) == 0;
    tare__arena_release(&memory);
    return is_same;
}

bool tare__node_is_from(const node_sources *sources, const node *n, const char *const *wanted) {
    const node_source *s = tare__node_source(sources, n);
    for (; *wanted != NULL; wanted++) {
        if (s->function != NULL) {
            if (is_same_source(s->function, *wanted)) return true;
            continue;
        }
        if (is_same_source(s->torch_function, *wanted)) return true;
        if (n->op == NODE_CALL_FUNCTION && is_same_source(s->class, *wanted)) return true;
    }
    return false;
}

bool tare__partitions_are_connected(const partition *a, const partition *b) {
    for (size_t i = 0; i < a->nodes.count; i++) {
        const node *n = a->nodes.items[i];
        for (size_t u = 0; u < n->user_count; u++)
            if (holds(&b->nodes, n->users[u])) return true;
    }
    return false;
}

// --- chains ---

// clang-format off
static const char *const conv1d[] = {"torch.nn.Conv1d", "torch.nn.functional.conv1d", NULL};
static const char *const conv2d[] = {"torch.nn.Conv2d", "torch.nn.functional.conv2d", NULL};
static const char *const pool[] = {"torch.nn.AdaptiveAvgPool2d", "torch.nn.functional.adaptive_avg_pool2d", NULL};
static const char *const relu[] = {"torch.nn.ReLU", "torch.nn.functional.relu", "torch.nn.functional.relu_", NULL};
static const char *const norm[] = {"torch.nn.BatchNorm2d", "torch.nn.functional.batch_norm", NULL};
static const char *const hardtanh[] = {"torch.nn.Hardtanh", "torch.nn.functional.hardtanh", "torch.nn.functional.hardtanh_", NULL};
static const char *const add[] = {"torch.add", "operator.add", "operator.iadd", "add", "add_", NULL};
static const char *const mul[] = {"torch.mul", "operator.mul", "operator.imul", "mul", "mul_", NULL};
// clang-format on
static const equivalent_group groups[] = {conv1d, conv2d, pool, relu, norm, hardtanh, add, mul};
const equivalents tare__equivalents = {groups, sizeof groups / sizeof *groups};

static equivalent_group group_of(const equivalents *same, const char *type) {
    for (size_t g = 0; g < same->count; g++)
        for (equivalent_group name = same->groups[g]; *name != NULL; name++)
            if (strcmp(*name, type) == 0) return same->groups[g];
    return NULL;
}

static bool mean_the_same(const equivalents *same, const char *a, const char *b) {
    const equivalent_group group = group_of(same, a);
    return strcmp(a, b) == 0 || (group != NULL && group == group_of(same, b));
}

static tare_status check_types(const equivalents *same, const char *const *types, size_t count,
                               tare_error *err) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (mean_the_same(same, types[i], types[j]))
                return tare__fail(err, TARE_INVALID_ARGUMENT,
                                  "Invalid partition types: '%s' and '%s'. Each type in the "
                                  "sequence must be unique",
                                  types[j], types[i]);
    return TARE_OK;
}

typedef struct chainer {
    const partition_list *lists; // [width]
    const partition **row;       // [width]
    arena *memory;
    chain_list *out;
    tare_error *err;
} chainer;

static tare_status extend(chainer *c, size_t at) {
    chain_list *out = c->out;
    if (at == out->width) {
        TARE_TRY(make_room(c->memory, (void **)&out->items, &out->capacity, out->count,
                           out->width * sizeof *out->items, c->err));
        memcpy(out->items + out->count++ * out->width, c->row, out->width * sizeof *c->row);
        return TARE_OK;
    }
    for (size_t i = 0; i < c->lists[at].count; i++) {
        const partition *next = &c->lists[at].items[i];
        if (at > 0 && !tare__partitions_are_connected(c->row[at - 1], next)) continue;
        c->row[at] = next;
        TARE_TRY(extend(c, at + 1));
    }
    return TARE_OK;
}

tare_status tare__sequential_partitions(const graph *g, const node_sources *sources,
                                        const char *const *types, size_t type_count,
                                        const equivalents *same, const node_filter *filter,
                                        arena *memory, chain_list *out, tare_error *err) {
    TARE_TRY(check_types(same, types, type_count, err));
    partition_list *lists = tare__arena_array(memory, type_count + 1, sizeof *lists);
    const partition **row = tare__arena_array(memory, type_count + 1, sizeof *row);
    if (lists == NULL || row == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < type_count; i++) {
        const equivalent_group group = group_of(same, types[i]);
        size_t count = 1;
        if (group != NULL)
            for (count = 0; group[count] != NULL;) count++;
        TARE_TRY(tare__source_partitions(g, sources, group != NULL ? group : &types[i], count,
                                         filter, memory, &lists[i], err));
    }
    *out = (chain_list){.width = type_count};
    chainer c = {.lists = lists, .row = row, .memory = memory, .out = out, .err = err};
    return type_count > 0 ? extend(&c, 0) : TARE_OK;
}
