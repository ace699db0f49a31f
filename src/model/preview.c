// SPDX-License-Identifier: Apache-2.0
// Preview of a prepared model's conversion: its islands, the conversions between them, and which
// operators stay float and why. Also checks whether explicit requests were fulfilled.
#include <string.h>

#include "model/coverage.h"
#include "model/islands.h"
#include "model/nested/nested.h"
#include "model/pass.h"

// Number of island members listed on a line: "conv1 (torch.ao.nn.intrinsic.ConvReLU2d), ..".
enum { MOST_NAMES = 6 };

// The islands of the graph, then those of the graphs inside, as they are written.
typedef struct listing {
    text *out;
    size_t number, quantize_count, dequantize_count;
    const char *separator; // JSON: before the next item
} listing;

static void write_members(const tare_model *model, const islands *x, size_t island,
                          const char *prefix, text *out) {
    size_t count = 0;
    for (size_t i = island; i < x->count; i++) {
        if (x->kinds[i] != x->kinds[island] || tare__island_of(x, i) != island) continue;
        if (count++ >= MOST_NAMES) continue;
        tare__text_printf(out, "%s%s%s (%s)", count > 1 ? ", " : "", prefix, x->nodes[i]->name,
                          tare__node_subject(model, x->nodes[i]));
    }
    if (count > MOST_NAMES) tare__text_printf(out, " and %zu more", count - MOST_NAMES);
    tare__text_char(out, '\n');
}

// Why prepare left a node float; "" if there is no such decision.
static const char *reason_of(const tare_model *model, const char *name) {
    const char *reason = "";
    for (size_t i = 0; i < model->decisions.count; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (strcmp(d->node, name) == 0 && strcmp(d->decision, "left float") == 0)
            reason = d->reason;
    }
    return reason;
}

static bool is_member(const islands *x, size_t i, island_kind kind) {
    return x->kinds[i] == kind && tare__island_of(x, i) == i;
}

static void write_islands(listing *l, const tare_model *model, const islands *x,
                          const char *prefix) {
    for (size_t i = 0; i < x->count; i++) {
        if (!is_member(x, i, ISLAND_FLOAT) && !is_member(x, i, ISLAND_INTEGER)) continue;
        tare__text_printf(l->out, "island %zu, %s: ", ++l->number,
                          x->kinds[i] == ISLAND_INTEGER ? "integers" : "float");
        write_members(model, x, i, prefix, l->out);
    }
}

static void write_floats(listing *l, const tare_model *model, const islands *x,
                         const char *prefix) {
    for (size_t i = 0; i < x->count; i++)
        if (x->kinds[i] == ISLAND_FLOAT)
            tare__text_printf(l->out, "float: %s%s (%s): %s\n", prefix, x->nodes[i]->name,
                              tare__node_subject(model, x->nodes[i]),
                              reason_of(model, x->nodes[i]->name));
}

static void name_to_json(const char *prefix, const node *n, text *out) {
    text name = {0};
    tare__text_printf(&name, "%s%s", prefix, n->name);
    tare__text_json_string(out, tare__text_chars(&name));
    if (name.failed) out->failed = true;
    tare__text_release(&name);
}

static void islands_to_json(listing *l, const tare_model *model, const islands *x,
                            const char *prefix) {
    (void)model;
    for (size_t i = 0; i < x->count; i++) {
        if (!is_member(x, i, ISLAND_FLOAT) && !is_member(x, i, ISLAND_INTEGER)) continue;
        tare__text_printf(l->out, "%s{\"kind\":\"%s\",\"nodes\":[", l->separator,
                          x->kinds[i] == ISLAND_INTEGER ? "integers" : "float");
        for (size_t k = i; k < x->count; k++) {
            if (x->kinds[k] != x->kinds[i] || tare__island_of(x, k) != i) continue;
            tare__text_append(l->out, k == i ? "" : ",");
            name_to_json(prefix, x->nodes[k], l->out);
        }
        tare__text_append(l->out, "]}");
        l->separator = ",";
    }
}

static void floats_to_json(listing *l, const tare_model *model, const islands *x,
                           const char *prefix) {
    for (size_t i = 0; i < x->count; i++) {
        if (x->kinds[i] != ISLAND_FLOAT) continue;
        tare__text_printf(l->out, "%s{\"name\":", l->separator);
        name_to_json(prefix, x->nodes[i], l->out);
        tare__text_append(l->out, ",\"operator\":");
        tare__text_json_string(l->out, tare__node_subject(model, x->nodes[i]));
        tare__text_append(l->out, ",\"reason\":");
        tare__text_json_string(l->out, reason_of(model, x->nodes[i]->name));
        tare__text_char(l->out, '}');
        l->separator = ",";
    }
}

// --- of all graphs ---

typedef void (*graph_lister)(listing *l, const tare_model *model, const islands *x,
                             const char *prefix);
typedef struct all_graphs {
    listing *list;
    graph_lister lister; // NULL: counts the conversions
} all_graphs;

static tare_status list_graph(void *user, const tare_model *model, const char *prefix,
                              tare_error *err) {
    const all_graphs *a = user;
    arena memory = {0};
    islands found;
    const tare_status status = tare__islands_find(model, &memory, &found, err);
    if (status == TARE_OK && a->lister != NULL) a->lister(a->list, model, &found, prefix);
    if (status == TARE_OK && a->lister == NULL) {
        a->list->quantize_count += found.quantize_count;
        a->list->dequantize_count += found.dequantize_count;
    }
    tare__arena_release(&memory);
    return status;
}

static tare_status list_all(const tare_model *model, listing *l, graph_lister lister,
                            tare_error *err) {
    all_graphs a = {l, lister};
    l->separator = "";
    TARE_TRY(list_graph(&a, model, "", err));
    return tare__nested_visit(model, list_graph, &a, err);
}

static tare_status write_preview(const tare_model *model, listing *l, tare_error *err) {
    TARE_TRY(list_all(model, l, write_islands, err));
    TARE_TRY(list_all(model, l, NULL, err));
    tare__text_printf(l->out, "conversions: %zu tensors quantized, %zu dequantized\n",
                      l->quantize_count, l->dequantize_count);
    return list_all(model, l, write_floats, err);
}

static tare_status preview_to_json(const tare_model *model, listing *l, tare_error *err) {
    tare__text_append(l->out, "{\"islands\":[");
    TARE_TRY(list_all(model, l, islands_to_json, err));
    TARE_TRY(list_all(model, l, NULL, err));
    tare__text_printf(l->out, "],\"quantized_tensors\":%zu,\"dequantized_tensors\":%zu,\"float\":[",
                      l->quantize_count, l->dequantize_count);
    TARE_TRY(list_all(model, l, floats_to_json, err));
    tare__text_append(l->out, "]}\n");
    return TARE_OK;
}

tare_status tare_model_preview(const tare_model *model, bool as_json, tare_writer write, void *user,
                               tare_error *err) {
    text out = {0};
    listing l = {.out = &out};
    if (model->stage < TARE_STAGE_PREPARED)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "preview: expected a prepared model, found one that is not");
    const tare_status status = (as_json ? preview_to_json : write_preview)(model, &l, err);
    return tare__text_write(&out, status, write, user, err);
}

// --- requests ---

// True if the node is, or will be, computed in integers.
static bool is_honoured(const tare_model *model, const fact *about) {
    const char *name = about->columns[NODE_NAME];
    if (model->stage == TARE_STAGE_PREPARED && strchr(name, '/') != NULL) { // of a graph inside
        const char *place = about->columns[NODE_PLACE];
        return strcmp(place, "annotated") == 0 || strcmp(place, "inside") == 0;
    }
    if (model->stage == TARE_STAGE_PREPARED) {
        const node *n = tare__graph_find(model->root->graph, name);
        if (model->prepared == NULL)
            return n == NULL || tare__annotation_takes(&model->annotations, n);
        const prepared_node *known = tare__prepared_node(model->prepared, name);
        return known == NULL || (known->is_observed && reason_of(model, name)[0] == '\0');
    }
    const traced_op *op = tare__traced_op(model, name);
    return op == NULL || tare__traced_carrier(model, op)->is_quantized;
}

static bool is_asked(const fact *about) {
    return about->columns[NODE_QUANTIZER][0] != '\0'
               ? strcmp(about->columns[NODE_PLACE], "left out") != 0
               : about->columns[NODE_QCONFIG][0] != '\0';
}

// True if a specific selector requested it, not the global setting.
static bool is_selected(const fact *about) {
    const char *section = about->columns[NODE_SECTION];
    return section[0] != '\0' && strcmp(section, "global") != 0;
}

// Requests: the first ones that were not fulfilled, how many were not (count, selected_count), and
// how many were (honoured_count).
typedef struct requests {
    const fact *first, *first_selected;
    size_t count, selected_count, honoured_count;
} requests;

static requests find_requests(const tare_model *model) {
    const fact_table *nodes = &model->facts.tables[FACT_NODE];
    requests r = {0};
    for (size_t i = 0; i < nodes->count; i++) {
        const fact *about = &nodes->rows[i];
        if (!is_asked(about)) continue;
        if (is_honoured(model, about)) {
            r.honoured_count++;
            continue;
        }
        // Neither a selector nor the global setting: not a request.
        if (about->columns[NODE_SECTION][0] == '\0') continue;
        if (r.count++ == 0) r.first = about;
        if (is_selected(about) && r.selected_count++ == 0) r.first_selected = about;
    }
    return r;
}

tare_status tare_model_check_requests(const tare_model *model, tare_error *err) {
    const requests r = find_requests(model);
    const bool is_whole = r.honoured_count == 0 && r.count > r.selected_count;
    const fact *about = is_whole ? r.first : r.first_selected;
    if (r.selected_count == 0 && !is_whole) return TARE_OK;
    const char *name = about->columns[NODE_NAME], *reason = reason_of(model, name);
    if (reason[0] == '\0') reason = "tare has no integer form of it";
    tare_status status;
    char more[48] = "";
    if (r.selected_count > 1)
        (void)snprintf(more, sizeof more, " (and %zu more)", r.selected_count - 1);
    if (!is_whole)
        status = tare__fail(
            err, TARE_UNSUPPORTED,
            "node '%s' (%s): the %s selector '%s' asks to quantize it, but it stays float: %s%s",
            name, about->columns[NODE_OPERATOR], about->columns[NODE_SECTION],
            about->columns[NODE_KEY], reason, more);
    else
        status = tare__fail(err, TARE_UNSUPPORTED,
                            "the whole model was asked for, but all %zu operators stay float, "
                            "the first '%s' (%s): %s",
                            r.count, name, about->columns[NODE_OPERATOR], reason);
    return tare__hint(err, status, "tare explain MODEL --node %s shows which patterns were tried",
                      name);
}
