// SPDX-License-Identifier: Apache-2.0
// The flow of never-slower: the float model and the quantized model with all possible layers in
// integers run alternately, or their times are predicted; the layers that the cheapest combination
// leaves float are left out of the next quantized model, until nothing changes.
#include "tare/never_slower.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/struct_size.h"
#include "model/islands.h"
#include "model/pass.h"
#include "runtime/tune/layer_costs.h"
#include "runtime/tune/machine.h"
#include "tare/data.h"

enum { MOST_ROUNDS = 4, REASON_SIZE = 256, LEAST_GAIN_SHARE = 33 };
// The models: all layers float, all possible layers in integers, and the chosen combination.
enum { FLOATS, INTEGERS, CHOSEN, RACERS };

typedef struct trial {
    const tare_model *prepared;
    tare_quantize_without quantize;
    void *user;
    tare_never_slower_options options;
    tare_machine_peak machine; // of a prediction
    race_setting setting;
    tare_data *data;    // random inputs
    const char **names; // nodes of the prepared model that can stay float, in order
    size_t name_count;
    tare_model *models[RACERS]; // CHOSEN is NULL until something is chosen
    racer racers[RACERS];
    layer_costs costs;
    int64_t races;
    arena memory;
    tare_error *err;
} trial;

// --- inputs ---

static tare_status choose_machine(trial *t) {
    tare_machine_peak *m = &t->machine;
    if (!t->options.predicts) return TARE_OK;
    t->setting.machine = m;
    if (t->options.machine == NULL) return tare__machine_measure_briefly(m, t->err);
    tare__struct_copy(m, sizeof *m, t->options.machine);
    if (tare__is_peak(m->int8_gops) && tare__is_peak(m->float_gflops) && tare__is_peak(m->l2_gbs) &&
        (m->int8_vector_gops == 0 || tare__is_peak(m->int8_vector_gops)))
        return TARE_OK;
    return tare__fail(
        t->err, TARE_INVALID_ARGUMENT,
        "expected peaks of the machine from 0.001 to 1e9, found %g GOPS of int8 (%g by vectors), "
        "%g GFLOPS and %g GB/s from the L2 cache",
        m->int8_gops, m->int8_vector_gops, m->float_gflops, m->l2_gbs);
}

static tare_status choose_inputs(trial *t) {
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    t->setting.inputs = t->options.inputs;
    t->setting.input_count = t->options.input_count;
    t->setting.thread_count = t->options.thread_count;
    t->setting.seconds = t->options.seconds > 0 ? t->options.seconds : 1;
    if (t->setting.inputs != NULL) return TARE_OK;
    TARE_TRY(tare_data_open("random:1", t->prepared, NULL, &t->data, t->err));
    TARE_TRY(tare_data_next(t->data, &batch, &done, t->err));
    if (done) return tare__fail(t->err, TARE_INTERNAL, "there is no random sample");
    t->setting.inputs = batch.inputs;
    t->setting.input_count = batch.input_count;
    return TARE_OK;
}

// --- what can stay float ---

static tare_status list_names(trial *t) {
    islands found;
    TARE_TRY(tare__islands_find(t->prepared, &t->memory, &found, t->err));
    t->names = tare__arena_array(&t->memory, found.count + 1, sizeof *t->names);
    if (t->names == NULL) return tare__out_of_memory(t->err);
    for (size_t i = 0; i < found.count; i++)
        if (found.kinds[i] == ISLAND_INTEGER) t->names[t->name_count++] = found.nodes[i]->name;
    if (t->name_count > 0) return TARE_OK;
    return tare__fail(t->err, TARE_INVALID_ARGUMENT,
                      "nothing of the model is going to be in integers: there is nothing to time");
}

static size_t layer_of_name(const trial *t, const char *name) {
    const node *n = tare__graph_find(t->prepared->root->graph, name);
    return n->origin != NULL ? tare__layer_of(&t->costs, n->origin) : SIZE_MAX;
}

// --- words ---

static double us(int64_t ns) {
    return (double)ns * 1e-3;
}

static void say_times(const trial *t, const layer_cost *layer, char *out, size_t size) {
    const int64_t more = layer->stays_float ? layer->boundary_ns - layer->other_ns
                                            : layer->other_ns - layer->boundary_ns;
    const int threads = t->setting.thread_count > 1 ? t->setting.thread_count : 1;
    const int written =
        snprintf(out, size,
                 "%s%.1f us in integers, %.1f us in float, which takes %.1f us %s of conversions (",
                 t->options.predicts ? "predicted " : "", us(layer->int_ns), us(layer->float_ns),
                 us(llabs(more)), more >= 0 ? "more" : "less");
    const size_t used = written > 0 && (size_t)written < size ? (size_t)written : size;
    if (t->options.predicts)
        (void)snprintf(out + used, size - used, "%.0f GOPS of int8, %.0f GFLOPS, %.0f GB/s)",
                       t->machine.int8_gops, t->machine.float_gflops, t->machine.l2_gbs);
    else
        (void)snprintf(out + used, size - used, "%s, %d thread%s)", tare_isa_name(), threads,
                       threads > 1 ? "s" : "");
}

// --- making models ---

static tare_status make_without(trial *t, const tare_float_choice *choices, size_t count,
                                tare_model **out) {
    tare_model *made = NULL;
    TARE_TRY(t->quantize(t->user, choices, count, &made, t->err));
    if (made == NULL)
        return tare__fail(t->err, TARE_INVALID_ARGUMENT, "no quantized model was made");
    *out = made;
    return TARE_OK;
}

static tare_status make_floats(trial *t) {
    tare_float_choice *choices = tare__arena_array(&t->memory, t->name_count, sizeof *choices);
    if (choices == NULL) return tare__out_of_memory(t->err);
    for (size_t i = 0; i < t->name_count; i++)
        choices[i] = (tare_float_choice){.node = t->names[i]};
    return make_without(t, choices, t->name_count, &t->models[FLOATS]);
}

static tare_status make_chosen(trial *t, tare_model **out) {
    size_t count = 0;
    tare_float_choice *choices = tare__arena_array(&t->memory, t->name_count, sizeof *choices);
    if (choices == NULL) return tare__out_of_memory(t->err);
    for (size_t i = 0; i < t->name_count; i++) {
        const size_t layer = layer_of_name(t, t->names[i]);
        if (layer == SIZE_MAX || !t->costs.items[layer].stays_float) continue;
        char words[REASON_SIZE];
        say_times(t, &t->costs.items[layer], words, sizeof words);
        char *reason = tare__arena_strdup(&t->memory, words);
        if (reason == NULL) return tare__out_of_memory(t->err);
        choices[count++] =
            (tare_float_choice){.node = t->names[i],
                                .rule = t->options.predicts ? "cost model" : "never slower",
                                .reason = reason};
    }
    return make_without(t, choices, count, out);
}

// --- rounds ---

static racer *current(trial *t) {
    return &t->racers[t->models[CHOSEN] != NULL ? CHOSEN : INTEGERS];
}

// Times the float model, the best model so far, and one more (NULL: none).
static tare_status race(trial *t, racer *more) {
    racer *racers[RACERS] = {&t->racers[FLOATS], current(t), more};
    if (t->options.progress != NULL)
        TARE_TRY(t->options.progress(t->options.progress_user, ++t->races, 0, t->err));
    return tare__race(racers, more != NULL ? 3 : 2, &t->setting, t->err);
}

static void drop(trial *t, size_t i) {
    tare__racer_release(&t->racers[i]);
    tare_model_destroy(t->models[i]);
    t->models[i] = NULL;
}

static size_t count_chosen(const trial *t) {
    size_t count = 0;
    for (size_t i = 0; i < t->costs.count; i++)
        count += t->costs.items[i].exists && t->costs.items[i].stays_float;
    return count;
}

static void forget_choice(trial *t, const bool *before) {
    for (size_t i = 0; i < t->costs.count; i++) t->costs.items[i].stays_float = before[i];
}

// Predicted times do not tell smaller gains from errors.
static bool is_faster(const trial *t, uint64_t ns, uint64_t than) {
    return t->options.predicts ? ns + than / LEAST_GAIN_SHARE < than : ns < than;
}

// Whether the chosen model is faster than the best one. If so, it becomes the best one.
static tare_status try_choice(trial *t, bool *is_better) {
    tare_model *made = NULL;
    racer r = {0};
    tare__layer_costs_note_boundaries(&t->costs);
    TARE_TRY(make_chosen(t, &made));
    tare_status status = tare__racer_create(made, &t->setting, &r, t->err);
    if (status == TARE_OK) status = race(t, &r);
    *is_better = status == TARE_OK && is_faster(t, r.median_ns, current(t)->median_ns);
    if (!*is_better) {
        tare__racer_release(&r);
        tare_model_destroy(made);
        return status;
    }
    drop(t, CHOSEN);
    t->models[CHOSEN] = made;
    t->racers[CHOSEN] = r;
    return TARE_OK;
}

static tare_status run_round(trial *t, bool *is_done) {
    bool *before = tare__arena_array(&t->memory, t->costs.count + 1, sizeof *before);
    if (before == NULL) return tare__out_of_memory(t->err);
    TARE_TRY(tare__layer_costs_add(&t->costs, &t->racers[FLOATS], current(t), t->err));
    for (size_t i = 0; i < t->costs.count; i++) before[i] = t->costs.items[i].stays_float;
    const size_t count = count_chosen(t);
    TARE_TRY(tare__layer_costs_choose(&t->costs, t->err));
    *is_done = count_chosen(t) == count;
    if (*is_done) return TARE_OK;
    bool is_better = false;
    TARE_TRY(try_choice(t, &is_better));
    if (is_better) return TARE_OK;
    forget_choice(t, before);
    *is_done = true;
    return TARE_OK;
}

static tare_status start(trial *t) {
    TARE_TRY(make_floats(t));
    TARE_TRY(make_without(t, NULL, 0, &t->models[INTEGERS]));
    for (size_t i = FLOATS; i <= INTEGERS; i++)
        TARE_TRY(tare__racer_create(t->models[i], &t->setting, &t->racers[i], t->err));
    return tare__layer_costs_begin(&t->costs, t->models[FLOATS], &t->setting, t->err);
}

// The final race decides between the choice and the model without it.
static tare_status run_rounds(trial *t) {
    bool is_done = false;
    TARE_TRY(start(t));
    TARE_TRY(race(t, NULL));
    for (int i = 0; i < MOST_ROUNDS && !is_done; i++) TARE_TRY(run_round(t, &is_done));
    if (t->models[CHOSEN] == NULL) return TARE_OK;
    TARE_TRY(race(t, &t->racers[INTEGERS]));
    if (is_faster(t, t->racers[CHOSEN].median_ns, t->racers[INTEGERS].median_ns)) return TARE_OK;
    drop(t, CHOSEN);
    for (size_t i = 0; i < t->costs.count; i++) t->costs.items[i].stays_float = false;
    return TARE_OK;
}

// --- what is told ---

// A layer that stays in integers although it is slower by itself.
static bool is_kept(const layer_cost *layer) {
    return layer->exists && layer->may_be_int && !layer->stays_float &&
           layer->int_ns > layer->float_ns;
}

static void fill_result(trial *t, tare_never_slower_result *out) {
    *out = (tare_never_slower_result){.struct_size = sizeof *out,
                                      .float_ns = t->racers[FLOATS].median_ns,
                                      .integer_ns = t->racers[INTEGERS].median_ns,
                                      .chosen_ns = current(t)->median_ns};
    for (size_t i = 0; i < t->costs.count; i++) {
        const layer_cost *layer = &t->costs.items[i];
        if (!layer->exists || !layer->may_be_int || layer->int_ns + layer->float_ns == 0) continue;
        out->layer_count++;
        out->float_count += layer->stays_float;
        out->kept_count += is_kept(layer);
    }
}

// Records the times of layers that stay in integers; convert records those of the others. Predicted
// ones are left out: a model that is all in integers then has the same record on every machine.
static tare_status record_times(trial *t) {
    tare_model *made = t->models[t->models[CHOSEN] != NULL ? CHOSEN : INTEGERS];
    if (t->options.predicts) return TARE_OK;
    for (size_t i = 0; i < t->name_count; i++) {
        const node *n = tare__graph_find(t->prepared->root->graph, t->names[i]);
        const size_t layer = layer_of_name(t, t->names[i]);
        if (layer == SIZE_MAX || t->costs.items[layer].stays_float) continue;
        char words[REASON_SIZE];
        say_times(t, &t->costs.items[layer], words, sizeof words);
        const tare_decision d = {.pass = "measure",
                                 .node = n->name,
                                 .subject = tare__node_subject(t->prepared, n),
                                 .decision = "measured",
                                 .rule = "never slower"};
        TARE_TRY(tare__record_add(&made->decisions, &d, t->err, "%s", words));
    }
    return TARE_OK;
}

static void release(trial *t) {
    for (size_t i = 0; i < RACERS; i++) drop(t, i);
    tare__layer_costs_release(&t->costs);
    tare_data_close(t->data);
    tare__arena_release(&t->memory);
}

static tare_status choose(trial *t) {
    TARE_TRY(choose_inputs(t));
    TARE_TRY(list_names(t));
    return run_rounds(t);
}

// What cannot be predicted is quantized all the same; the quantization's own failure is repeated.
static tare_status quantize_without_choice(trial *t) {
    tare_error_clear(t->err);
    for (size_t i = 0; i < RACERS; i++) drop(t, i);
    for (size_t i = 0; i < t->costs.count; i++) t->costs.items[i].exists = false;
    return make_without(t, NULL, 0, &t->models[INTEGERS]);
}

static tare_status run(trial *t) {
    TARE_TRY(choose_machine(t));
    const tare_status status = choose(t);
    if (t->options.predicts && (status == TARE_INVALID_ARGUMENT || status == TARE_UNSUPPORTED))
        return quantize_without_choice(t);
    TARE_TRY(status);
    tare__layer_costs_note_boundaries(&t->costs);
    return record_times(t);
}

tare_status tare_never_slower(const tare_model *prepared, tare_quantize_without quantize,
                              void *user, const tare_never_slower_options *options,
                              tare_never_slower_result *result, tare_model **out, tare_error *err) {
    trial t = {.prepared = prepared, .quantize = quantize, .user = user, .err = err};
    if (prepared == NULL || quantize == NULL || out == NULL ||
        prepared->stage != TARE_STAGE_PREPARED)
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "never slower: expected a prepared model and a function that quantizes it");
    if (options != NULL) tare__struct_copy(&t.options, sizeof t.options, options);
    const tare_status status = run(&t);
    if (status == TARE_OK) {
        if (result != NULL) fill_result(&t, result);
        tare_model **made = &t.models[t.models[CHOSEN] != NULL ? CHOSEN : INTEGERS];
        tare__racer_release(current(&t)); // before the caller takes its model
        *out = *made;
        *made = NULL;
    }
    release(&t);
    return status;
}

// --- FX mode ---

typedef struct fx_flow {
    const tare_model *prepared;
    tare_convert_options convert;
} fx_flow;

static tare_status convert_without(void *user, const tare_float_choice *choices, size_t count,
                                   tare_model **out, tare_error *err) {
    const fx_flow *flow = user;
    tare_convert_options options = flow->convert;
    options.struct_size = sizeof options;
    options.float_choices = choices;
    options.float_choice_count = count;
    return tare_convert_fx(flow->prepared, &options, out, err);
}

tare_status tare_convert_never_slower_fx(const tare_model *prepared,
                                         const tare_convert_options *convert,
                                         const tare_never_slower_options *options,
                                         tare_never_slower_result *result, tare_model **out,
                                         tare_error *err) {
    fx_flow flow = {.prepared = prepared};
    if (convert != NULL) tare__struct_copy(&flow.convert, sizeof flow.convert, convert);
    if (flow.convert.float_choice_count > 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "never slower: convert's options have choices already");
    return tare_never_slower(prepared, convert_without, &flow, options, result, out, err);
}
