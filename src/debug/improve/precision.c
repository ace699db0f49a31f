// SPDX-License-Identifier: Apache-2.0
// The step that gives each layer its precision: float, 8 bits, or the fewer bits that it has. One
// integer program chooses for all layers, over the errors that they cause in the outputs, their
// measured times, conversions between them, and bytes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/clock.h"
#include "debug/improve/ladder.h"
#include "debug/improve/weight_observers.h"
#include "runtime/tune/layer_costs.h"

#include "model/islands.h"
#include "model/pass.h"
#include "tare/analyze.h"

#define MOST_ERROR  1e6  // of a layer, relative to the outputs: more is broken all the same
#define MARGIN_DB   2.0  // errors do not add up exactly
#define TIME_MARGIN 0.02 // of a run; neither do times
#define RACE_SHARE  0.05 // of the time left
#define LEAST_SHARE 0.25
#define GAP         1e-3
#define WORK_LIMIT  2e7                             // about a second
#define WIDER_ERROR (15.0 * 15.0 / (255.0 * 255.0)) // of 8 bits instead of 4, by their steps
#define WIDE_MARK   "8 bits: "
enum { SHARES = 6, ROUNDS = 3 };

// A layer to be left float, or widened; the state file has the same numbers as the reason.
typedef struct named_layer {
    const char *name;
    double alone_db;         // NaN: not measured
    double float_us, int_us; // NaN: unknown
} named_layer;

typedef struct names {
    named_layer *items;
    size_t count;
} names;

typedef struct chooser {
    ladder *l;
    const ladder_step *step;
    islands found; // of the best prepared model
    tare_model *reference, *floats, *wide_prepared, *wide;
    names widened; // layers whose weights have 8 bits in wide_prepared
    tare_analysis *analysis;
    layer_costs costs;
    choice_errors errors;
    choice_error *layers; // errors.layers
    double *values;       // errors.values
    double *alone_db;     // by layer; NaN: not measured
    layer_program program;
    program_costs now;     // of the best model, as the program sees it
    program_costs fastest; // of the fastest choice
    arena memory;
} chooser;

// --- names of layers, as the state file has them ---

// NAME, NAME (F for I us) or NAME (D dB; F for I us).
static tare_status read_layer(ladder *l, const char *from, size_t length, named_layer *out) {
    char *copy = tare__arena_printf(&l->memory, "%.*s", (int)length, from);
    if (copy == NULL) return tare__out_of_memory(l->err);
    char *numbers = strstr(copy, " (");
    *out = (named_layer){copy, (double)NAN, (double)NAN, (double)NAN};
    if (numbers == NULL) return TARE_OK;
    *numbers = '\0';
    numbers += 2;
    char *times = strstr(numbers, " dB; ");
    if (times != NULL) out->alone_db = strtod(numbers, NULL);
    times = times != NULL ? times + strlen(" dB; ") : numbers;
    out->float_us = strtod(times, &times);
    if (strncmp(times, " for ", 5) == 0) out->int_us = strtod(times + 5, NULL);
    return TARE_OK;
}

static tare_status split(ladder *l, const char *list, size_t length, names *out) {
    out->count = 0;
    out->items = tare__arena_array(&l->memory, length + 1, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(l->err);
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && list[end] != ',') end++;
        if (end > at) TARE_TRY(read_layer(l, list + at, end - at, &out->items[out->count++]));
        at = end + 2; // ", "
    }
    return TARE_OK;
}

static const char *join(ladder *l, const names *floats, const names *wide) {
    text what = {0};
    for (size_t i = 0; i < floats->count; i++) {
        const named_layer *layer = &floats->items[i];
        tare__text_printf(&what, "%s%s (", i > 0 ? ", " : "", layer->name);
        if (!isnan(layer->alone_db)) tare__text_printf(&what, "%.1f dB; ", layer->alone_db);
        tare__text_printf(&what, "%.1f for %.1f us)", layer->float_us, layer->int_us);
    }
    for (size_t i = 0; i < wide->count; i++)
        tare__text_printf(&what, "%s%s%s", i + floats->count > 0 ? ", " : "",
                          i > 0 ? "" : WIDE_MARK, wide->items[i].name);
    const char *made = what.failed ? NULL : tare__arena_strdup(&l->memory, tare__text_chars(&what));
    tare__text_release(&what);
    return made;
}

// --- trying a choice ---

static const char *reason_of(ladder *l, const named_layer *layer) {
    return isnan(layer->alone_db)
               ? tare__arena_printf(&l->memory, "%s; %.1f us in float for %.1f us",
                                    layer->float_us < layer->int_us ? "it is faster in float"
                                                                    : "its neighbours stay float",
                                    layer->float_us, layer->int_us)
               : tare__arena_printf(&l->memory,
                                    "quantized by itself it leaves %.1f dB of the outputs; %.1f us "
                                    "in float for %.1f us",
                                    layer->alone_db, layer->float_us, layer->int_us);
}

static tare_status add_floats(ladder *l, const names *floats, recipe *r) {
    const size_t count = r->choice_count + floats->count;
    tare_float_choice *choices = tare__arena_array(&l->memory, count + 1, sizeof *choices);
    if (choices == NULL) return tare__out_of_memory(l->err);
    if (r->choice_count > 0) memcpy(choices, r->choices, r->choice_count * sizeof *choices);
    r->choices = choices;
    for (size_t i = 0; i < floats->count; i++) {
        const char *why = reason_of(l, &floats->items[i]);
        if (why == NULL) return tare__out_of_memory(l->err);
        r->choices[r->choice_count++] =
            (tare_float_choice){.node = floats->items[i].name, .rule = "improve", .reason = why};
    }
    return TARE_OK;
}

static tare_status widen(ladder *l, const names *wide, tare_model **out) {
    const char **nodes = tare__arena_array(&l->memory, wide->count + 1, sizeof *nodes);
    if (nodes == NULL) return tare__out_of_memory(l->err);
    for (size_t i = 0; i < wide->count; i++) nodes[i] = wide->items[i].name;
    return tare_widen_weights(l->best.prepared, nodes, wide->count, NULL, out, l->err);
}

static tare_status try_names(ladder *l, const ladder_step *step, const names *floats,
                             const names *wide, bool *is_kept) {
    recipe r = l->best;
    tare_model *made = NULL;
    const char *what = join(l, floats, wide);
    if (what == NULL) return tare__out_of_memory(l->err);
    TARE_TRY(add_floats(l, floats, &r));
    if (wide->count > 0) TARE_TRY(widen(l, wide, &made));
    if (made != NULL) r.prepared = made;
    const tare_status status = tare__ladder_try(l, step, what, &r, is_kept);
    if (!*is_kept) tare_model_destroy(made);
    return status;
}

// --- what an earlier run found ---

static tare_status replay_one(ladder *l, const ladder_step *step, const char *what) {
    names floats, wide;
    bool is_known = false, is_kept = false;
    const char *mark = strstr(what, WIDE_MARK);
    const size_t length = mark != NULL ? (size_t)(mark - what) : strlen(what);
    const char *rest = mark != NULL ? mark + strlen(WIDE_MARK) : "";
    TARE_TRY(tare__ladder_knows_useless(l, step, what, &is_known));
    if (is_known) return TARE_OK;
    TARE_TRY(split(l, what, length, &floats));
    TARE_TRY(split(l, rest, strlen(rest), &wide));
    for (size_t i = 0; i < floats.count; i++)
        if (tare__graph_find(l->best.prepared->root->graph, floats.items[i].name) == NULL)
            return TARE_OK; // somebody changed the file
    return try_names(l, step, &floats, &wide, &is_kept);
}

// The times that led to the choice are not measured again.
static tare_status replay(ladder *l, const ladder_step *step) {
    const char *begin = tare__ladder_key(l, step, "");
    if (begin == NULL) return tare__out_of_memory(l->err);
    const size_t length = strlen(begin), count = l->book.count;
    for (size_t i = 0; i < count; i++) {
        const char *key = l->book.items[i].key;
        if (!l->book.items[i].is_new && strncmp(key, begin, length) == 0)
            TARE_TRY(replay_one(l, step, key + length));
    }
    return TARE_OK;
}

// --- errors ---

static double noise_of(double db) {
    const double noise = pow(10, -db / 10);
    return isnan(db) ? 0 : noise < MOST_ERROR ? noise : MOST_ERROR;
}

// The layer of the costs that a node of the prepared or the reference model is part of.
static size_t layer_of(const chooser *x, const tare_model *m, const char *name) {
    const node *n = tare__graph_find(m->root->graph, name);
    return n != NULL && n->origin != NULL ? tare__layer_of(&x->costs, n->origin) : SIZE_MAX;
}

// What the quantize node at `name` reads, in the float model.
static const node *value_of(const chooser *x, const char *name) {
    const node *quantize = tare__graph_find(x->reference->root->graph, name);
    const node *read = quantize != NULL ? tare__node_arg(quantize, 0) : NULL;
    const node *n = read != NULL ? tare__graph_find(x->floats->root->graph, read->name) : NULL;
    return n != NULL && x->costs.elements[n->id] > 0 ? n : NULL;
}

static double sum_reads(const chooser *x, const char *layer, double scale) {
    double sum = 0;
    tare_tensor_range r;
    for (size_t i = 0; tare_analysis_get_range(x->analysis, i, &r); i++) {
        if (r.is_weight || strcmp(r.layer, layer) != 0) continue;
        const double noise = noise_of(r.sqnr_db);
        const node *n = value_of(x, r.node);
        sum += noise;
        if (scale > 0 && n != NULL) x->values[n->id] += noise * scale;
    }
    return sum;
}

// The error that a layer causes alone is shared by its weight and the values that it reads, in
// proportion to what each of them loses by rounding.
static void share_error(const chooser *x, const tare_layer_error *e) {
    const size_t layer = layer_of(x, x->reference, e->node);
    const double alone = noise_of(e->alone_db), weight = noise_of(e->weights_db);
    const double reads = noise_of(e->activations_db), all = weight + reads;
    const double by_weight = all > 0 ? alone * weight / all : 0;
    const double values = sum_reads(x, e->node, 0);
    const double by_values = all > 0 ? alone - by_weight : alone;
    if (layer != SIZE_MAX) {
        x->layers[layer].error += values > 0 ? by_weight : alone;
        if (!(x->alone_db[layer] <= e->alone_db)) x->alone_db[layer] = e->alone_db;
    }
    if (values > 0) (void)sum_reads(x, e->node, by_values / values);
}

// --- bytes ---

static tare_status add_bytes(void *user, const char *path, module *m, tare_error *err) {
    double *bytes = user;
    (void)path, (void)err;
    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].tensor != NULL)
            *bytes += (double)tare__tensor_bytes(m->tensors[i].tensor);
    return TARE_OK;
}

static tare_status weight_bytes(const chooser *x, node *n, double *out) {
    const tare_model *m = x->l->best.prepared;
    biased_layer layer;
    *out = 0;
    if (n->op == NODE_CALL_MODULE)
        return tare__module_walk(tare__called_module(m, n), add_bytes, out, x->l->err);
    tare__layer_find(m, n, &layer);
    if (layer.node != NULL && layer.tensor != NULL) *out = (double)tare__tensor_bytes(layer.tensor);
    return TARE_OK;
}

// Of 4 bits, a weight has half a byte, and a share of its group's scale and zero point.
static tare_status note_bytes(const chooser *x) {
    enum { FLOAT_BYTES = 4 };
    for (size_t i = 0; i < x->found.count; i++) {
        node *n = (node *)x->found.nodes[i]; // NOLINT: only read
        const size_t layer = n->origin != NULL && x->found.kinds[i] == ISLAND_INTEGER
                                 ? tare__layer_of(&x->costs, n->origin)
                                 : SIZE_MAX;
        double bytes = 0;
        if (layer == SIZE_MAX) continue;
        TARE_TRY(weight_bytes(x, n, &bytes));
        choice_error *e = &x->layers[layer];
        e->float_bytes += bytes;
        e->int_bytes += bytes / FLOAT_BYTES / (e->has_wide ? 2 : 1);
        e->wide_bytes += bytes / FLOAT_BYTES;
    }
    return TARE_OK;
}

// --- times ---

static tare_status make_floats(chooser *x) {
    ladder *l = x->l;
    recipe r = l->best;
    names all = {.count = 0};
    TARE_TRY(tare__islands_find(l->best.prepared, &x->memory, &x->found, l->err));
    all.items = tare__arena_array(&x->memory, x->found.count + 1, sizeof *all.items);
    if (all.items == NULL) return tare__out_of_memory(l->err);
    for (size_t i = 0; i < x->found.count; i++) {
        const char *name = x->found.nodes[i]->name;
        bool is_chosen = x->found.kinds[i] != ISLAND_INTEGER;
        for (size_t k = 0; k < r.choice_count && !is_chosen; k++)
            is_chosen = strcmp(r.choices[k].node, name) == 0;
        if (!is_chosen) all.items[all.count++] = (named_layer){.name = name};
        if (is_chosen) x->found.kinds[i] = ISLAND_FLOAT;
    }
    TARE_TRY(add_floats(l, &all, &r));
    return tare__ladder_make(l, &r, false, &x->floats);
}

// With 8 bits for all weights of fewer, to see which layers have such weights and what they take.
static tare_status make_wide(chooser *x) {
    ladder *l = x->l;
    size_t count = 0;
    recipe r = l->best;
    const tare_status status =
        tare_widen_weights(l->best.prepared, NULL, 0, &count, &x->wide_prepared, l->err);
    if (status == TARE_UNSUPPORTED || (status == TARE_OK && count == 0)) return TARE_OK;
    TARE_TRY(status);
    r.prepared = x->wide_prepared;
    return tare__ladder_make(l, &r, false, &x->wide);
}

// Sessions without a plan have no steps, so times are unknown: then all of them are 0.
static tare_status open_racer(const chooser *x, const tare_model *m, const race_setting *setting,
                              racer *out) {
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = setting->thread_count};
    const tare_status status = tare__racer_create(m, setting, out, x->l->err);
    if (status != TARE_UNSUPPORTED) return status;
    *out = (racer){.model = m};
    return tare_session_create(m, &options, &out->session, x->l->err);
}

// The layer whose weight a decision of tare_widen_weights is about: a module's own, or that of the
// observer's reader.
static const node *widened_layer(const chooser *x, const tare_decision *d) {
    const node *n = strcmp(d->rule, "precision") == 0
                        ? tare__graph_find(x->wide_prepared->root->graph, d->node)
                        : NULL;
    if (n == NULL || !tare__is_observer_node(x->wide_prepared, n)) return n;
    return n->user_count > 0 ? n->users[0] : NULL;
}

static tare_status list_widened(chooser *x) {
    if (x->wide == NULL) return TARE_OK;
    const record *decisions = &x->wide_prepared->decisions;
    x->widened.items = tare__arena_array(&x->l->memory, decisions->count + 1, sizeof(named_layer));
    if (x->widened.items == NULL) return tare__out_of_memory(x->l->err);
    for (size_t i = x->l->best.prepared->decisions.count; i < decisions->count; i++) {
        const node *n = widened_layer(x, &decisions->items[i]);
        const size_t layer = n != NULL ? layer_of(x, x->wide_prepared, n->name) : SIZE_MAX;
        if (layer == SIZE_MAX) continue;
        x->layers[layer].has_wide = true;
        const char *name = tare__arena_strdup(&x->l->memory, n->name);
        if (name == NULL) return tare__out_of_memory(x->l->err);
        x->widened.items[x->widened.count++] = (named_layer){.name = name};
    }
    return TARE_OK;
}

enum { FLOATS, BEST, WIDE, RACERS };

// A layer's time is that of the latest model that has it in integers, so that of the best one comes
// last.
static tare_status add_times(chooser *x, racer *racers) {
    tare_error *err = x->l->err;
    if (x->wide != NULL) {
        TARE_TRY(tare__layer_costs_add(&x->costs, &racers[FLOATS], &racers[WIDE], err));
        for (size_t i = 0; i < x->costs.count; i++)
            x->layers[i].wide_ns = (double)x->costs.items[i].int_ns;
    }
    return tare__layer_costs_add(&x->costs, &racers[FLOATS], &racers[BEST], err);
}

static tare_status race(chooser *x, const tare_model *best, const race_setting *setting) {
    const tare_model *const models[RACERS] = {x->floats, best, x->wide};
    racer racers[RACERS] = {{0}}, *running[RACERS];
    tare_status status = TARE_OK;
    size_t count = 0;
    bool has_steps = true;
    for (size_t i = 0; i < RACERS && status == TARE_OK; i++) {
        if (models[i] == NULL) continue;
        running[count++] = &racers[i];
        status = open_racer(x, models[i], setting, &racers[i]);
        has_steps &= status == TARE_OK && tare_session_step_count(racers[i].session) > 0;
    }
    if (status == TARE_OK && has_steps) status = tare__race(running, count, setting, x->l->err);
    if (status == TARE_OK)
        status = tare__layer_costs_begin(&x->costs, x->floats, setting, x->l->err);
    if (status == TARE_OK) {
        x->layers = tare__arena_array(&x->memory, x->costs.count + 1, sizeof *x->layers);
        status = x->layers != NULL ? add_times(x, racers) : tare__out_of_memory(x->l->err);
    }
    for (size_t i = 0; i < RACERS; i++) tare__racer_release(&racers[i]);
    return status;
}

static tare_status measure_times(chooser *x) {
    ladder *l = x->l;
    tare_model *made = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    const double left = tare__ladder_seconds_for(l, false);
    TARE_TRY(make_floats(x));
    TARE_TRY(make_wide(x));
    if (l->best_model == NULL) TARE_TRY(tare__ladder_make(l, &l->best, false, &made));
    tare_status status = tare_data_rewind(l->check, l->err);
    if (status == TARE_OK) status = tare_data_next(l->check, &batch, &done, l->err);
    const race_setting setting = {batch.inputs, batch.input_count, l->options.thread_count,
                                  fmin(1, fmax(0.1, RACE_SHARE * left))};
    if (status == TARE_OK) status = race(x, made != NULL ? made : l->best_model, &setting);
    tare_model_destroy(made);
    return status;
}

static tare_status begin_errors(chooser *x) {
    const size_t nodes = x->floats->root->graph->next_id;
    x->values = tare__arena_array(&x->memory, nodes + 1, sizeof *x->values);
    x->alone_db = tare__arena_array(&x->memory, x->costs.count + 1, sizeof *x->alone_db);
    if (x->values == NULL || x->alone_db == NULL) return tare__out_of_memory(x->l->err);
    for (size_t i = 0; i < x->costs.count; i++) x->alone_db[i] = (double)NAN;
    return TARE_OK;
}

static tare_status measure_errors(chooser *x) {
    ladder *l = x->l;
    const double left = tare__ladder_seconds_for(l, false);
    const tare_analyze_options options = {.struct_size = sizeof options,
                                          .sample_limit = 1,
                                          .seconds = fmax(left / 4, 1e-3),
                                          .thread_count = l->options.thread_count};
    tare_layer_error e;
    TARE_TRY(tare__ladder_make(l, &l->best, true, &x->reference));
    TARE_TRY(tare_data_rewind(l->check, l->err));
    TARE_TRY(tare_analyze(x->reference, l->check, &options, &x->analysis, l->err));
    for (size_t i = 0; tare_analysis_get_layer(x->analysis, i, &e); i++) share_error(x, &e);
    return TARE_OK;
}

// --- the program ---

static tare_status solve(chooser *x, const program_goal *goal) {
    return tare__program_solve(&x->program.program, goal, &x->program.solution, x->l->err);
}

static tare_status build(chooser *x) {
    const program_goal as_it_is = {.weights = {1, 1, 1},
                                   .limits = {(double)INFINITY, (double)INFINITY, (double)INFINITY},
                                   .takes_first = true};
    for (size_t i = 0; i < x->costs.count; i++)
        x->layers[i].wide_error = x->layers[i].error * WIDER_ERROR;
    x->errors = (choice_errors){.layers = x->layers, .values = x->values};
    tare__program_release(&x->program.program);
    x->program = (layer_program){.own = NULL};
    TARE_TRY(tare__layer_costs_program(&x->costs, &x->errors, &x->program, x->l->err));
    TARE_TRY(solve(x, &as_it_is));
    x->now = x->program.solution.sums;
    return TARE_OK;
}

// Within a share of what the model may still grow and slow down, or, if it has done so already, a
// share of what is too much.
static double limit_of(double now, double best, double most, double share) {
    return best > 0 ? now * (1 + (most / best - 1) * (most > best ? share : 1)) : (double)INFINITY;
}

// A run takes more or less time than the sum of its layers, so the program does not use all that a
// run may take.
static worth_limits room_left(const chooser *x, double share, bool costs_more) {
    const ladder *l = x->l;
    const worth_limits most = tare__ladder_limits(l, costs_more);
    const double most_ms = fmax(l->fastest_ms, most.ms - TIME_MARGIN * l->fastest_ms);
    const double more_bytes = (most.bytes - (double)l->best_worth.bytes) * share;
    const double ns = limit_of(x->now.of[COST_NS], l->best_worth.ms, most_ms, share);
    const double bytes = x->now.of[COST_BYTES] + more_bytes;
    // Measured, the fastest choice may gain more than the program expects of it.
    const bool is_far = l->best_worth.ms > most.ms;
    const bool has_limit = l->options.most_larger > 0;
    return (worth_limits){is_far ? fmax(ns, x->fastest.of[COST_NS] * (1 + TIME_MARGIN)) : ns,
                          is_far && !has_limit ? fmax(bytes, x->fastest.of[COST_BYTES]) : bytes};
}

static program_goal least_error(const chooser *x, double share) {
    const worth_limits limits = room_left(x, share, x->l->may_cost_more);
    return (program_goal){
        .weights = {[COST_ERROR] = 1},
        .limits =
            {[COST_ERROR] = (double)INFINITY, [COST_NS] = limits.ms, [COST_BYTES] = limits.bytes},
        .gap = GAP,
        .work_limit = WORK_LIMIT};
}

// What makes a model sound at the least cost.
static program_goal sound_at_least_cost(const chooser *x, bool costs_more) {
    const double aim = pow(10, -(SOUND_DB + MARGIN_DB) / 10);
    const double found = pow(10, -x->l->best_worth.db / 10);
    const worth_limits limits = room_left(x, 1, costs_more);
    program_goal goal = {
        .weights = {[COST_NS] = 1 / fmax(x->now.of[COST_NS], 1),
                    [COST_BYTES] = 1 / fmax(x->now.of[COST_BYTES], 1)},
        .limits =
            {[COST_ERROR] = (double)INFINITY, [COST_NS] = limits.ms, [COST_BYTES] = limits.bytes},
        .gap = GAP,
        .work_limit = WORK_LIMIT};
    if (found < MOST_ERROR) goal.limits[COST_ERROR] = x->now.of[COST_ERROR] * aim / found;
    return goal;
}

static bool is_sound(const ladder *l) {
    return l->best_worth.db >= SOUND_DB;
}

// --- from the solution to a model ---

static bool is_widened(const chooser *x, const char *name) {
    const size_t layer = layer_of(x, x->l->best.prepared, name);
    return layer != SIZE_MAX && tare__layer_program_is_wide(&x->program, layer);
}

static tare_status add_float(const chooser *x, const node *n, names *floats) {
    const size_t layer = layer_of(x, x->l->best.prepared, n->name);
    if (layer == SIZE_MAX || !x->costs.items[layer].may_be_int ||
        !tare__layer_program_is_float(&x->program, layer))
        return TARE_OK;
    named_layer *made = &floats->items[floats->count++];
    *made = (named_layer){.name = tare__arena_strdup(&x->l->memory, n->name),
                          .alone_db = x->alone_db[layer],
                          .float_us = (double)x->costs.items[layer].float_ns * 1e-3,
                          .int_us = (double)x->costs.items[layer].int_ns * 1e-3};
    return made->name != NULL ? TARE_OK : tare__out_of_memory(x->l->err);
}

static tare_status list_solution(const chooser *x, names *floats, names *wide) {
    ladder *l = x->l;
    *floats = *wide = (names){.count = 0};
    floats->items = tare__arena_array(&l->memory, x->found.count + 1, sizeof *floats->items);
    wide->items = tare__arena_array(&l->memory, x->widened.count + 1, sizeof *wide->items);
    if (floats->items == NULL || wide->items == NULL) return tare__out_of_memory(l->err);
    for (size_t i = 0; i < x->found.count; i++)
        if (x->found.kinds[i] == ISLAND_INTEGER) TARE_TRY(add_float(x, x->found.nodes[i], floats));
    for (size_t i = 0; i < x->widened.count; i++)
        if (is_widened(x, x->widened.items[i].name))
            wide->items[wide->count++] = x->widened.items[i];
    return TARE_OK;
}

static tare_status try_solution(const chooser *x, bool *is_kept) {
    names floats, wide;
    TARE_TRY(list_solution(x, &floats, &wide));
    if (floats.count + wide.count == 0) return TARE_OK;
    return try_names(x->l, x->step, &floats, &wide, is_kept);
}

// *out stays NULL if the solution is the best model.
static tare_status make_solution(const chooser *x, tare_model **out) {
    ladder *l = x->l;
    recipe r = l->best;
    tare_model *prepared = NULL;
    names floats, wide;
    TARE_TRY(list_solution(x, &floats, &wide));
    if (floats.count + wide.count == 0) return TARE_OK;
    TARE_TRY(add_floats(l, &floats, &r));
    if (wide.count > 0) TARE_TRY(widen(l, &wide, &prepared));
    if (prepared != NULL) r.prepared = prepared;
    const tare_status status = tare__ladder_make(l, &r, false, out);
    tare_model_destroy(prepared);
    return status;
}

static const program_goal fastest = {
    .weights = {[COST_NS] = 1}, .limits = {(double)INFINITY, (double)INFINITY, (double)INFINITY}};

// For a run that continues this one.
static tare_status write_fastest(ladder *l) {
    const trial_outcome o = {
        .key = (char[]){FASTEST_KEY}, .ms = l->fastest_ms, .bytes = l->fastest_bytes};
    return tare__trials_add(&l->book, &o, l->err);
}

// The fastest choice for each layer, which other choices must not exceed by too much, is run:
// predicted times would make the limit too strict.
static tare_status time_fastest(chooser *x) {
    ladder *l = x->l;
    double ms = (double)INFINITY;
    tare_model *made = NULL;
    TARE_TRY(solve(x, &fastest));
    x->fastest = x->program.solution.sums;
    TARE_TRY(make_solution(x, &made));
    tare_status status = made != NULL ? tare__ladder_time_model(l, made, &ms) : TARE_OK;
    const double known_ms =
        l->fastest_ms > 0 ? l->fastest_ms : fmin(l->first_worth.ms, l->best_worth.ms);
    l->fastest_ms = fmin(known_ms, ms);
    if (status == TARE_OK && ms < known_ms) {
        status = tare__ladder_bytes(l, made, &l->fastest_bytes);
        tare_model_destroy(l->fastest_model);
        l->fastest_model = made;
        made = NULL;
    }
    tare_model_destroy(made);
    return status == TARE_OK ? write_fastest(l) : status;
}

static tare_status try_goal(chooser *x, const program_goal *goal, bool *is_kept) {
    if (tare__ladder_is_over(x->l)) return TARE_OK;
    TARE_TRY(solve(x, goal));
    return x->program.solution.is_feasible ? try_solution(x, is_kept) : TARE_OK;
}

// True if the last solution was refused for its time. trials: how many there were before it; if it
// led to no new one, the solutions that were refused tell.
static bool is_too_slow(const chooser *x, size_t trials, double *slow_ns) {
    const trial_book *book = &x->l->book;
    const double ns = x->program.solution.sums.of[COST_NS];
    const double most = tare__ladder_limits(x->l, x->l->may_cost_more).ms;
    const bool is_slow =
        book->count > trials ? book->items[book->count - 1].ms > most : ns >= *slow_ns;
    if (is_slow) *slow_ns = fmin(*slow_ns, ns);
    return is_slow;
}

// Times of a layer in float are those between neighbours in float: a view costs nothing there, but
// a copy between integers. If the program counted on such a gain and the model was too slow, it
// chooses once more as if no layer were faster in float.
static tare_status try_doubting(chooser *x, bool *is_kept) {
    const size_t count = x->costs.count;
    int64_t *measured = tare__arena_array(&x->memory, count + 1, sizeof *measured);
    if (measured == NULL) return tare__out_of_memory(x->l->err);
    for (size_t i = 0; i < count; i++) {
        layer_cost *c = &x->costs.items[i];
        measured[i] = c->float_ns;
        if (c->may_be_int && c->float_ns < c->int_ns) c->float_ns = c->int_ns;
    }
    tare_status status = build(x);
    for (size_t i = 0; i < count; i++) x->costs.items[i].float_ns = measured[i];
    TARE_TRY(status);
    for (double share = 1; share >= LEAST_SHARE && !*is_kept; share /= 2) {
        const program_goal goal = least_error(x, share);
        TARE_TRY(try_goal(x, &goal, is_kept));
    }
    return *is_kept ? TARE_OK : build(x);
}

// The largest share of the allowed growth that a run keeps, by bisection, and then none of it.
static tare_status try_shares(chooser *x, bool *is_kept) {
    double low = 0, high = 1, share = 1, slow_ns = (double)INFINITY;
    for (int i = 0; i < SHARES && !*is_kept && high > low; i++) {
        const program_goal goal = least_error(x, share);
        const size_t trials = x->l->book.count;
        TARE_TRY(try_goal(x, &goal, is_kept));
        const bool is_slow = is_too_slow(x, trials, &slow_ns);
        *(is_slow ? &high : &low) = share;
        share = (low + high) / 2;
        if (i == 0 && is_slow) TARE_TRY(try_doubting(x, is_kept));
    }
    if (*is_kept) return TARE_OK;
    const program_goal goal = least_error(x, 0);
    return try_goal(x, &goal, is_kept);
}

// If the best model takes longer than the limit still, also after the time is over.
static tare_status try_fastest(chooser *x, bool *is_kept) {
    const ladder *l = x->l;
    if (*is_kept || l->best_worth.ms <= tare__ladder_limits(l, l->may_cost_more).ms) return TARE_OK;
    TARE_TRY(solve(x, &fastest));
    return try_solution(x, is_kept);
}

// A model that the limits keep below what is sound: the last trial, which is going to be refused,
// tells the price of a sound one.
static tare_status try_goals(chooser *x, bool *is_kept) {
    const bool costs_more = x->l->may_cost_more;
    if (!is_sound(x->l)) {
        const program_goal goal = sound_at_least_cost(x, costs_more);
        TARE_TRY(try_goal(x, &goal, is_kept));
    }
    if (!*is_kept) TARE_TRY(try_shares(x, is_kept));
    const bool is_useful = x->l->best_worth.db >= USELESS_DB;
    if (*is_kept || is_sound(x->l) || costs_more || !is_useful) return TARE_OK;
    const program_goal price = sound_at_least_cost(x, true);
    return try_goal(x, &price, is_kept);
}

// --- the step ---

static void release(chooser *x) {
    tare__program_release(&x->program.program);
    tare__layer_costs_release(&x->costs);
    tare_analysis_destroy(x->analysis);
    tare_model_destroy(x->reference);
    tare_model_destroy(x->floats);
    tare_model_destroy(x->wide);
    tare_model_destroy(x->wide_prepared);
    tare__arena_release(&x->memory);
}

// is_brief: errors are not measured, and only the fastest choice is tried.
static tare_status run_round(ladder *l, const ladder_step *self, bool is_brief, bool *is_kept) {
    chooser x = {.l = l, .step = self};
    l->trial_begin_ns = tare__job_now_ns();
    tare_status status = measure_times(&x);
    if (status == TARE_OK) status = list_widened(&x);
    if (status == TARE_OK) status = note_bytes(&x);
    if (status == TARE_OK) status = begin_errors(&x);
    if (status == TARE_OK && !is_brief) status = measure_errors(&x);
    if (status == TARE_OK) status = build(&x);
    if (status == TARE_OK) status = time_fastest(&x);
    if (status == TARE_OK && !is_brief) status = try_goals(&x, is_kept);
    if (status == TARE_OK) status = try_fastest(&x, is_kept);
    release(&x);
    l->trial_begin_ns = 0;
    return status;
}

// A model that was not sound before has other errors afterwards; else the program chose for good.
static tare_status run_rounds(ladder *l, const ladder_step *self) {
    bool is_kept = true, was_sound = false;
    for (int i = 0; i < ROUNDS && is_kept && !was_sound; i++) {
        const bool is_brief = tare__ladder_seconds_for(l, false) < CHOICE_MODELS * l->try_seconds;
        was_sound = is_sound(l);
        is_kept = false;
        l->result.is_out_of_time |= is_brief;
        if (is_brief && (i > 0 || l->may_cost_more)) return TARE_OK;
        TARE_TRY(run_round(l, self, is_brief, &is_kept));
        if (is_brief || tare__ladder_is_over(l)) return TARE_OK;
    }
    return TARE_OK;
}

tare_status tare__step_precision(ladder *l, const ladder_step *self) {
    const char *key = tare__ladder_key(l, self, "");
    char *ended = key != NULL ? tare__arena_printf(&l->memory, "end of %s", key) : NULL;
    if (ended == NULL) return tare__out_of_memory(l->err);
    const bool was_out_of_time = l->result.is_out_of_time;
    TARE_TRY(replay(l, self));
    if (tare__trials_find(&l->book, ended) != NULL) return TARE_OK;
    l->result.is_out_of_time = false;
    TARE_TRY(run_rounds(l, self));
    // Not its end if the target was reached: another job may want more.
    const bool is_cut = tare__ladder_is_over(l) || l->result.is_out_of_time;
    l->result.is_out_of_time |= was_out_of_time;
    if (is_cut) return TARE_OK;
    const trial_outcome o = {.key = ended, .db = l->best_worth.db, .bytes = l->best_worth.bytes};
    return tare__trials_add(&l->book, &o, l->err);
}
