// SPDX-License-Identifier: Apache-2.0
// The step that leaves layers float: the worst ones, alone and in groups.
#include <string.h>

#include "debug/improve/ladder.h"
#include "model/islands.h"
#include "model/pass.h"
#include "tare/analyze.h"

enum { MOST_LAYERS = 64 };

static bool is_chosen(const recipe *r, const char *name) {
    for (size_t i = 0; i < r->choice_count; i++)
        if (strcmp(r->choices[i].node, name) == 0) return true;
    return false;
}

typedef struct choice_maker {
    ladder *l;
    islands found; // of the prepared model
    recipe r;      // grows
    const char *reason;
    text what;
} choice_maker;

static bool computes_integers(const choice_maker *m, const node *n) {
    return m->found.kinds[m->found.positions[n->id]] == ISLAND_INTEGER;
}

// Adds a node that would be computed with integers.
static tare_status choose(choice_maker *m, const node *n) {
    if (n == NULL || !computes_integers(m, n) || is_chosen(&m->r, n->name)) return TARE_OK;
    m->r.choices[m->r.choice_count++] = (tare_float_choice){
        .node = tare__arena_strdup(&m->l->memory, n->name), .rule = "improve", .reason = m->reason};
    tare__text_printf(&m->what, "%s%s", m->what.length > 0 ? ", " : "", n->name);
    return TARE_OK;
}

// Adds a layer and the operators before it, whose results would otherwise be quantized for it.
static tare_status choose_layer(choice_maker *m, const char *name, bool with_inputs) {
    const tare_model *prepared = m->l->best.prepared;
    const node *n = tare__graph_find(prepared->root->graph, name);
    if (n == NULL) return TARE_OK;
    if (n->op != NODE_OUTPUT) TARE_TRY(choose(m, n));
    for (size_t i = 0; i < n->input_count && with_inputs; i++) {
        const node *from = tare__behind_observers(prepared, n->inputs[i]);
        if (from != NULL && tare__node_is_call(from)) TARE_TRY(choose(m, from));
    }
    return TARE_OK;
}

// Tries to leave the layers of ranks from..to float, if they limit the model's accuracy.
static tare_status try_layers(ladder *l, const ladder_step *self, const tare_analysis *a,
                              size_t from, size_t to, bool with_inputs, bool *is_kept) {
    choice_maker m = {.l = l, .r = l->best};
    const size_t most = l->best.prepared->root->graph->node_count;
    tare_layer_error layer;
    TARE_TRY(tare__islands_find(l->best.prepared, &l->memory, &m.found, l->err));
    m.r.choices = tare__arena_array(&l->memory, most + 1, sizeof *m.r.choices);
    if (m.r.choices == NULL) return tare__out_of_memory(l->err);
    if (l->best.choice_count > 0)
        memcpy(m.r.choices, l->best.choices, l->best.choice_count * sizeof *m.r.choices);
    tare_status status = TARE_OK;
    for (size_t i = from; i < to && status == TARE_OK && tare_analysis_get_worst(a, i, &layer);
         i++) {
        m.reason = tare__arena_printf(
            &l->memory, "quantized by itself it leaves %.1f dB of the outputs", layer.alone_db);
        if (m.reason == NULL) status = tare__out_of_memory(l->err);
        if (status == TARE_OK) status = choose_layer(&m, layer.node, with_inputs);
    }
    if (status == TARE_OK && m.what.failed) status = tare__out_of_memory(l->err);
    if (status == TARE_OK && m.r.choice_count > l->best.choice_count)
        status = tare__ladder_try(l, self, tare__text_chars(&m.what), &m.r, is_kept);
    tare__text_release(&m.what);
    return status;
}

static tare_status rank_layers(ladder *l, tare_model **reference, tare_analysis **out) {
    const double left = l->options.seconds - tare__ladder_seconds(l);
    const tare_analyze_options options = {.struct_size = sizeof options,
                                          .seconds = left > 4 ? left / 4 : 1,
                                          .thread_count = l->options.thread_count};
    TARE_TRY(tare__ladder_make(l, &l->best, true, reference));
    TARE_TRY(tare_data_rewind(l->check, l->err));
    return tare_analyze(*reference, l->check, &options, out, l->err);
}

// True unless the layer's error is much smaller than the model's.
static bool holds_back(const ladder *l, const tare_layer_error *layer) {
    return !(layer->alone_db > l->best_worth.db + 20 || layer->local_db > 60);
}

// Tries each layer alone, and if that does not gain, together with its producers.
static tare_status try_single(ladder *l, const ladder_step *self, const tare_analysis *a) {
    tare_layer_error layer;
    for (size_t i = 0;
         i < MOST_LAYERS && tare_analysis_get_worst(a, i, &layer) && !tare__ladder_is_over(l);
         i++) {
        bool is_kept = false;
        if (!holds_back(l, &layer)) continue;
        TARE_TRY(try_layers(l, self, a, i, i + 1, false, &is_kept));
        if (!is_kept && !tare__ladder_is_over(l))
            TARE_TRY(try_layers(l, self, a, i, i + 1, true, &is_kept));
    }
    return TARE_OK;
}

// Several layers together may gain what no single one does.
static tare_status try_groups(ladder *l, const ladder_step *self, const tare_analysis *a) {
    for (size_t count = 4; count <= MOST_LAYERS && !tare__ladder_is_over(l); count *= 2) {
        bool is_kept = false;
        TARE_TRY(try_layers(l, self, a, 0, count, false, &is_kept));
    }
    return TARE_OK;
}

tare_status tare__step_float_layers(ladder *l, const ladder_step *self) {
    tare_model *reference = NULL;
    tare_analysis *a = NULL;
    tare_status status = rank_layers(l, &reference, &a);
    if (status == TARE_OK) status = try_single(l, self, a);
    if (status == TARE_OK) status = try_groups(l, self, a);
    tare_analysis_destroy(a);
    tare_model_destroy(reference);
    return status;
}
