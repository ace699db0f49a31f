// SPDX-License-Identifier: Apache-2.0
// Sessions: a plan for each combination of input shapes; without a plan, the interpreter with plans
// of single calls. Also holds the state between runs.
#include "runtime/session/session.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/budget.h"
#include "core/struct_size.h"
#include "core/system/mapping.h"
#include "dnnl/float_kernels.h"
#include "dnnl/float_layers.h"
#include "ir/call_names.h"
#include "model/model.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/quantized/engine_rules.h"
#include "ops/run_changes.h"
#include "runtime/plan/call_plan.h"
#include "runtime/plan/profile.h"
#include "runtime/session/graph_plans.h"
#include "runtime/session/inputs.h"
#include "runtime/session/threads.h"
#include "runtime/tune/tuner.h"

// Handing work to a spinning thread and waiting for the last task takes about 2 us, in which a core
// does about half a million multiply-accumulates with its widest instructions. Waking a sleeping
// thread takes longer, but few sleep during a run.
enum { LEAST_SHARED_MACS = 1 << 19 };

// Plans that a session keeps; further shapes are planned again whenever they come. After this many
// refusals a graph is not tried again.
enum { MOST_PLANS = 4, MOST_REFUSALS = 4 };

// Facts about a node.
typedef struct node_entry {
    const struct op_info *op; // cached for the interpreter
    call_plans plans;
} node_entry;

// The entries of a graph by node id. A model has one graph, one for each standalone module, and
// those that operators of control flow run.
typedef struct graph_entries {
    struct graph_entries *next;
    const graph *graph;
    graph_plans plans; // of a graph that an operator of control flow runs
    char *path;        // of that graph: PATH of the names PATH/NODE; NULL before it runs
    size_t count;
    node_entry nodes[];
} graph_entries;

struct tare_session {
    const tare_model *model;
    module *own;         // a copy of the model's modules if runs change them; NULL: they do not
    atomic_bool is_busy; // a call is in progress
    bool reference, portable_floats, uses_bf16, is_profiled;
    int thread_count;
    requant_rule linear_rule, conv_rule;
    uint64_t memory_limit; // for results, in bytes; never 0
    float_kernels *floats;
    kernel_context kernels;
    graph_entries *graphs;
    scratch call_block; // scratch of the plans of single calls
    float_layers *layers;
    tuner *tuner;            // NULL: no tuning
    interpreter calls;       // runs what plans do not cover
    plan *plans[MOST_PLANS]; // newest first
    int refusal_count;
    session_inputs inputs;
    const char **states; // paths of tensors of `own` that runs may modify
    size_t state_count;
    bool sees_inside; // whether the watcher does
    tare_node_watcher watcher;
    void *watcher_user;
    // The outputs' names in the latest run: of its plan, or the session's own. Before the first
    // run, as far as the graph tells.
    const call_names *output_names;
    call_names own_names;
    arena name_memory;
};

static module *root_of(const tare_session *s) {
    return s->own != NULL ? s->own : s->model->root;
}

// --- what is kept per node ---

static graph_entries *entries_of(tare_session *s, const graph *g) {
    graph_entries *entries = s->graphs;
    while (entries != NULL && entries->graph != g) entries = entries->next;
    if (entries != NULL) return entries;
    entries = tare__alloc_zeroed(1, sizeof *entries + g->next_id * sizeof *entries->nodes);
    if (entries == NULL) return NULL;
    entries->graph = g;
    entries->count = g->next_id;
    entries->next = s->graphs;
    s->graphs = entries;
    return entries;
}

static node_entry *entry_of(tare_session *s, const node *n) {
    graph_entries *entries = entries_of(s, n->owner);
    return entries != NULL ? &entries->nodes[n->id] : NULL;
}

static void destroy_entries(graph_entries *entries) {
    while (entries != NULL) {
        graph_entries *next = entries->next;
        for (size_t i = 0; i < entries->count; i++)
            tare__call_plans_destroy(&entries->nodes[i].plans);
        tare__graph_plans_destroy(&entries->plans);
        tare__free(entries->path);
        tare__free(entries);
        entries = next;
    }
}

// --- hooks of the interpreter ---

static const struct op_info **remember(void *user, const node *n) {
    node_entry *e = entry_of(user, n);
    return e != NULL ? &e->op : NULL;
}

static tare_status execute(void *user, const node *n, op_call *call, bool *handled) {
    tare_session *s = user;
    node_entry *e = entry_of(s, n);
    if (e == NULL) return tare__out_of_memory(call->err);
    const plan_setting setting = {.it = &s->calls, .kernels = &s->kernels, .layers = s->layers};
    return tare__call_plans_run(&e->plans, &setting, &s->call_block, n, call, handled);
}

typedef struct graph_search {
    const graph *wanted;
    char *path; // NULL: not found yet
} graph_search;

static tare_status find_graph(void *user, const char *path, module *m, tare_error *err) {
    graph_search *s = user;
    if (s->path != NULL || m->graph != s->wanted) return TARE_OK;
    s->path = tare__strdup(path);
    return s->path != NULL ? TARE_OK : tare__out_of_memory(err);
}

// Behind a module that has a graph itself comes a slash, as in the names of records.
static tare_status name_graph(module *root, graph_entries *entries, tare_error *err) {
    graph_search s = {.wanted = entries->graph};
    TARE_TRY(tare__module_walk(root, find_graph, &s, err));
    for (size_t i = 0; s.path != NULL && s.path[i] != '\0'; i++) {
        const module *m = s.path[i] == '.' ? tare__module_find_n(root, s.path, i) : NULL;
        if (m != NULL && m->graph != NULL) s.path[i] = '/';
    }
    entries->path = s.path != NULL ? s.path : tare__strdup("");
    return entries->path != NULL ? TARE_OK : tare__out_of_memory(err);
}

// The entries of a graph that an operator of control flow runs, with its path.
static tare_status named_entries_of(tare_session *s, const graph *g, graph_entries **out,
                                    tare_error *err) {
    *out = entries_of(s, g);
    if (*out == NULL) return tare__out_of_memory(err);
    return (*out)->path == NULL ? name_graph(root_of(s), *out, err) : TARE_OK;
}

static tare_status run_graph(void *user, const interpreter *it, const value *inputs, size_t count,
                             arena *memory, value *out, bool *handled, tare_error *err) {
    tare_session *s = user;
    graph_entries *entries = NULL;
    TARE_TRY(named_entries_of(s, it->root->graph, &entries, err));
    entries->plans.is_profiled = s->is_profiled;
    const plan_setting setting = {.kernels = &s->kernels, .layers = s->layers, .tuner = s->tuner};
    return tare__graph_plans_run(&entries->plans, &setting, it, inputs, count, memory, out, handled,
                                 err);
}

static const tare_tensor *first_tensor(const value *v) {
    if (v->kind == VALUE_TENSOR) return v->as.tensor;
    if (!tare__value_has_items(v)) return NULL;
    for (uint32_t i = 0; i < v->count; i++) {
        const tare_tensor *t = first_tensor(&v->as.items[i]);
        if (t != NULL) return t;
    }
    return NULL;
}

// Not where only shapes are computed, before the graph runs.
static tare_status watch_inside(tare_session *s, const node *n, const tare_tensor *result,
                                tare_error *err) {
    text name = {0};
    if (result != NULL && result->data == NULL && result->count > 0) return TARE_OK;
    graph_entries *entries = NULL;
    TARE_TRY(named_entries_of(s, n->owner, &entries, err));
    tare__text_printf(&name, "%s/%s", entries->path, n->name);
    tare_status status = tare__text_status(&name, err);
    if (status == TARE_OK)
        status = s->watcher(s->watcher_user, tare__text_chars(&name), result, err);
    tare__text_release(&name);
    return status;
}

static tare_status after(void *user, const node *n, const value *result, tare_error *err) {
    tare_session *s = user;
    const tare_tensor *t = first_tensor(result);
    return n->owner != root_of(s)->graph ? watch_inside(s, n, t, err)
                                         : s->watcher(s->watcher_user, n->name, t, err);
}

// --- sessions ---

static interpreter interpreter_of(tare_session *s) {
    return (interpreter){
        .root = root_of(s),
        .own = s->own,
        .linear_rule = s->linear_rule,
        .conv_rule = s->conv_rule,
        .thread_count = s->thread_count,
        .kernels = s->floats,
        .memory_limit = s->memory_limit,
        .after = s->watcher != NULL ? after : NULL,
        .sees_inside = s->watcher != NULL && s->sees_inside,
        .execute = s->reference ? NULL : execute,
        .remember = s->reference ? NULL : remember,
        .run_graph = s->reference || s->watcher != NULL ? NULL : run_graph,
        .user = s,
    };
}

static tare_status refuse_bf16(tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "bfloat16 needs oneDNN: it excludes references and portable floats");
}

static tare_status name_outputs(tare_session *s, const value *result, tare_error *err) {
    tare__arena_clear(&s->name_memory);
    s->output_names = &s->own_names;
    return tare__output_names(s->model->root->graph, result, &s->name_memory, &s->own_names, err);
}

static tare_status prepare_fast(tare_session *s, tare_error *err) {
    s->kernels.space.least_shared_macs = LEAST_SHARED_MACS;
    const float_provider *floats = &tare__portable_floats;
    if (!s->portable_floats) TARE_TRY(tare__float_provider_choose(&floats, err));
    TARE_TRY(tare__float_kernels_create(floats, &s->floats, err));
    if (floats != &tare__portable_floats)
        TARE_TRY(tare__float_layers_create(s->kernels.space.pool, s->uses_bf16, &s->layers, err));
    else if (s->uses_bf16)
        return refuse_bf16(err);
    s->calls = interpreter_of(s);
    return TARE_OK;
}

static tare_status prepare_tuner(tare_session *s, const tare_session_options *options,
                                 tare_error *err) {
    const char *path = options->tune_cache;
    if (path == NULL) path = getenv("TARE_TUNE_CACHE");
    if (path != NULL && path[0] == '\0') path = NULL;
    return options->tunes || path != NULL ? tare__tuner_create(path, &s->tuner, err) : TARE_OK;
}

static tare_status prepare(tare_session *s, const tare_session_options *given, tare_error *err) {
    tare_session_options options = {0};
    if (given != NULL) tare__struct_copy(&options, sizeof options, given);
    s->reference = options.reference;
    s->portable_floats = options.portable_floats;
    s->uses_bf16 = options.bfloat16;
    if (s->reference && s->uses_bf16) return refuse_bf16(err);
    if (s->reference && (options.tunes || options.tune_cache != NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a session of references has no kernels to tune (tunes)");
    s->memory_limit =
        tare__run_budget(options.memory_bytes != 0 ? options.memory_bytes : s->model->memory_limit)
            .limit;
    TARE_TRY(tare__session_inputs_describe(s->model, &s->inputs, err));
    TARE_TRY(tare__session_start_threads(&options, &s->thread_count, &s->kernels.space.pool, err));
    const engine_query linear = {.groups = 1}, conv = {.is_conv = true, .groups = 1};
    s->linear_rule = tare__engine_rule(s->model->engine, &linear);
    s->conv_rule = tare__engine_rule(s->model->engine, &conv);
    TARE_TRY(name_outputs(s, NULL, err));
    TARE_TRY(tare__isa_choose(&s->kernels.isa, err));
    s->kernels.elementwise = tare__elementwise_choose(s->kernels.isa);
    s->kernels.rows = tare__row_kernels_choose(s->kernels.isa);
    if (s->reference) return TARE_OK;
    TARE_TRY(prepare_fast(s, err));
    return prepare_tuner(s, &options, err);
}

static tare_status create(const tare_model *model, module *own, const tare_session_options *options,
                          tare_session **out, tare_error *err) {
    tare_session *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    s->model = model;
    s->own = tare__module_retain(own);
    atomic_init(&s->is_busy, false);
    const tare_status status = prepare(s, options, err);
    if (status != TARE_OK) {
        tare_session_destroy(s);
        return status;
    }
    *out = s;
    return TARE_OK;
}

// Finds the tensors that runs may modify and plans can write.
static tare_status find_states(tare_session *s, tare_error *err) {
    s->states = tare__alloc_zeroed(s->model->root->graph->node_count + 1, sizeof *s->states);
    if (s->states == NULL) return tare__out_of_memory(err);
    s->state_count = tare__run_written_tensors(s->model->root, s->states);
    return TARE_OK;
}

// Copies the modules. Tensors are shared with the model, and replaced when a run changes them.
static tare_status copy_what_changes(const module *root, module **out, tare_error *err) {
    bool changes = false;
    TARE_TRY(tare__run_changes_modules(root, &changes, err));
    return changes ? tare__module_clone(root, out, err) : TARE_OK;
}

tare_status tare_session_create(const tare_model *model, const tare_session_options *options,
                                tare_session **out, tare_error *err) {
    module *own = NULL;
    if (model == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a session needs a model");
    TARE_TRY(copy_what_changes(model->root, &own, err));
    tare_session *made = NULL;
    tare_status status = create(model, own, options, &made, err);
    if (status == TARE_OK && own != NULL) status = find_states(made, err);
    tare__module_release(own);
    if (status == TARE_OK)
        *out = made;
    else
        tare_session_destroy(made);
    return status;
}

tare_status tare__session_create_feeding(tare_model *model, const tare_session_options *options,
                                         tare_session **out, tare_error *err) {
    return create(model, model->root, options, out, err);
}

void tare_session_destroy(tare_session *session) {
    if (session == NULL) return;
    for (size_t i = 0; i < MOST_PLANS; i++) tare__plan_destroy(session->plans[i]);
    destroy_entries(session->graphs);
    tare__session_inputs_release(&session->inputs);
    tare__tuner_destroy(session->tuner);
    tare__float_layers_destroy(session->layers);
    tare__float_kernels_destroy(session->floats);
    tare__scratch_release(&session->call_block);
    tare__thread_pool_destroy(session->kernels.space.pool);
    tare__module_release(session->own);
    tare__free(session->states);
    tare__arena_release(&session->name_memory);
    tare__free(session);
}

// --- one caller at a time ---

// The flag is the only member that calls with a const session write.
bool tare__session_enter(const tare_session *session) {
    if (session == NULL) return false;
    atomic_bool *is_busy = &((tare_session *)session)->is_busy; // NOLINT
    return !atomic_exchange_explicit(is_busy, true, memory_order_acquire);
}

void tare__session_leave(const tare_session *session) {
    atomic_bool *is_busy = &((tare_session *)session)->is_busy; // NOLINT
    atomic_store_explicit(is_busy, false, memory_order_release);
}

static tare_status enter(const tare_session *session, tare_error *err) {
    if (tare__session_enter(session)) return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT,
                   "the session is busy: another call of it has begun and not returned");
    return tare__hint(err, status,
                      "a session has one caller at a time: make a session for each thread, they "
                      "share the model and its packed weights");
}

// user: the session's modules.
static tare_status restore(void *user, const char *path, module *m, tare_error *err) {
    module *root = user, *own = *path != '\0' ? tare__module_find(root, path) : root;
    for (size_t i = 0; own != NULL && i < m->tensor_count; i++)
        TARE_TRY(tare__module_set_tensor(own, m->tensors[i].name, m->tensors[i].tensor,
                                         m->tensors[i].is_parameter, err));
    return TARE_OK;
}

tare_status tare_session_reset(tare_session *session, tare_error *err) {
    TARE_TRY(enter(session, err));
    const bool is_shared = session->own == NULL || session->own == session->model->root;
    const tare_status status =
        is_shared ? TARE_OK : tare__module_walk(session->model->root, restore, session->own, err);
    tare__session_leave(session);
    return status;
}

int tare_session_thread_count(const tare_session *session) {
    return session->thread_count;
}

void tare_session_watch(tare_session *session, tare_node_watcher watcher, void *user) {
    if (!tare__session_enter(session)) return;
    session->watcher = watcher;
    session->watcher_user = user;
    tare__session_leave(session);
}

void tare__session_see_inside(tare_session *session) {
    session->sees_inside = true;
}

const tare_model *tare__session_model(const tare_session *session) {
    return session->model;
}

size_t tare_session_output_count(const tare_session *session) {
    return session->output_names->count;
}

const char *tare_session_output_name(const tare_session *session, size_t index) {
    const call_names *names = session->output_names;
    return index < names->count ? names->items[index] : NULL;
}

tare_status tare_session_write_nesting(const tare_session *session, tare_writer write, void *user,
                                       tare_error *err) {
    text out = {0};
    if (session == NULL || write == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a session and a writer");
    const char *tree = session->output_names->tree;
    tare__text_append(&out, tree != NULL ? tree : "null");
    return tare__text_write(&out, TARE_OK, write, user, err);
}

const plan *tare__session_plan(const tare_session *session) {
    return session->plans[0];
}

// The graphs are listed newest first.
const plan *tare__session_nested_plan(const tare_session *session, size_t index,
                                      const char **path) {
    size_t count = 0;
    for (const graph_entries *e = session->graphs; e != NULL; e = e->next)
        count += e->plans.plans[0] != NULL;
    for (const graph_entries *e = session->graphs; e != NULL; e = e->next) {
        if (e->plans.plans[0] == NULL || --count != index) continue;
        *path = e->path;
        return e->plans.plans[0];
    }
    return NULL;
}

static tare_status profile(tare_session *session, bool on, tare_error *err) {
    session->is_profiled = on;
    for (graph_entries *e = session->graphs; e != NULL; e = e->next)
        TARE_TRY(tare__graph_plans_profile(&e->plans, on, err));
    return tare__plans_profile(session->plans, MOST_PLANS, on, err);
}

tare_status tare_session_profile(tare_session *session, bool on, tare_error *err) {
    TARE_TRY(enter(session, err));
    const tare_status status = profile(session, on, err);
    tare__session_leave(session);
    return status;
}

// --- running ---

typedef struct output_list {
    tare_tensor **tensors;
    size_t count, capacity; // count may exceed capacity: how many there are
} output_list;

// Collects tensors from left to right, each with a reference for the caller.
static void collect(const value *v, output_list *out) {
    if (v->kind == VALUE_TENSOR) {
        if (out->count < out->capacity) out->tensors[out->count] = tare_tensor_retain(v->as.tensor);
        out->count++;
    } else if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) collect(&v->as.items[i], out);
    }
}

static tare_status too_many(size_t count, size_t capacity, tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "the model has %zu outputs, there is room for %zu", count, capacity);
}

static tare_status hand_out(const value *result, tare_tensor **outputs, size_t capacity,
                            size_t *count, tare_error *err) {
    output_list list = {.tensors = outputs, .capacity = capacity};
    collect(result, &list);
    *count = list.count;
    if (list.count <= capacity) return TARE_OK;
    for (size_t i = 0; i < capacity; i++) tare_tensor_release(outputs[i]);
    return too_many(list.count, capacity, err);
}

static tare_status share_inputs(arena *memory, const tare_tensor *const *inputs, size_t count,
                                value **out, tare_error *err) {
    value *values = tare__arena_array(memory, count + 1, sizeof *values);
    if (values == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (inputs[i] == NULL)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "input %zu is NULL", i);
        // Inputs are never written: in-place operators return their result instead.
        values[i] = (value){.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)inputs[i]};
    }
    *out = values;
    return TARE_OK;
}

static tare_status run(tare_session *s, arena *memory, const tare_tensor *const *inputs,
                       size_t input_count, value *result, tare_error *err) {
    const interpreter it = interpreter_of(s);
    value *values = NULL;
    TARE_TRY(share_inputs(memory, inputs, input_count, &values, err));
    return tare__interpret(&it, values, input_count, memory, result, err);
}

static tare_status interpret(tare_session *s, const tare_tensor *const *inputs, size_t input_count,
                             tare_tensor **outputs, size_t capacity, size_t *count,
                             tare_error *err) {
    arena memory = {0};
    value result = tare__none();
    tare_status status = run(s, &memory, inputs, input_count, &result, err);
    // The run may have made plans of graphs inside.
    if (status == TARE_OK && s->tuner != NULL) status = tare__tuner_save(s->tuner, err);
    if (status == TARE_OK) status = name_outputs(s, &result, err);
    if (status == TARE_OK) status = hand_out(&result, outputs, capacity, count, err);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    return status;
}

// --- running by plans ---

static void keep_plan(tare_session *s, size_t from, plan *p) {
    for (size_t i = from; i > 0; i--) s->plans[i] = s->plans[i - 1];
    s->plans[0] = p;
    s->output_names = tare__plan_output_names(p);
}

static tare_status make_plan(tare_session *s, const tare_tensor *const *inputs, size_t count,
                             plan **out) {
    const plan_setting setting = {.it = &s->calls,
                                  .kernels = &s->kernels,
                                  .layers = s->layers,
                                  .tuner = s->tuner,
                                  .states = s->states,
                                  .state_count = s->state_count};
    plan *p = NULL;
    tare_status status = tare__plan_make(&setting, s->model, inputs, count, &p, NULL);
    if (status == TARE_OK && s->is_profiled) status = tare__plan_start_profile(p, NULL);
    if (status == TARE_OK)
        *out = p;
    else
        tare__plan_destroy(p);
    return status;
}

static bool can_plan(const tare_session *s, const tare_tensor *const *inputs, size_t count) {
    if (s->reference || s->watcher != NULL || s->refusal_count == MOST_REFUSALS) return false;
    for (size_t i = 0; i < count; i++)
        if (inputs[i] == NULL || inputs[i]->data == NULL) return false;
    return true;
}

static plan *kept_plan(tare_session *s, const tare_tensor *const *inputs, size_t count) {
    for (size_t i = 0; i < MOST_PLANS && s->plans[i] != NULL; i++) {
        plan *p = s->plans[i];
        if (!tare__plan_fits(p, inputs, count)) continue;
        keep_plan(s, i, p);
        return p;
    }
    return NULL;
}

// *out is NULL if the interpreter has to run; it also reports inputs that do not fit.
static tare_status find_plan(tare_session *s, const tare_tensor *const *inputs, size_t count,
                             plan **out, tare_error *err) {
    const bool may_plan = can_plan(s, inputs, count);
    *out = may_plan ? kept_plan(s, inputs, count) : NULL;
    if (*out != NULL) return TARE_OK;
    TARE_TRY(tare__session_inputs_check(&s->inputs, inputs, count, err));
    if (!may_plan) return TARE_OK;
    const tare_status status = make_plan(s, inputs, count, out);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(err);
    if (status != TARE_OK) s->refusal_count++;
    if (status != TARE_OK) return TARE_OK;
    tare__plan_destroy(s->plans[MOST_PLANS - 1]);
    keep_plan(s, MOST_PLANS - 1, *out);
    return s->tuner != NULL ? tare__tuner_save(s->tuner, err) : TARE_OK;
}

tare_status tare__session_make_plan(tare_session *session, const tare_tensor *const *inputs,
                                    size_t input_count, tare_error *err) {
    plan *unused = NULL;
    TARE_TRY(enter(session, err));
    const tare_status status = find_plan(session, inputs, input_count, &unused, err);
    tare__session_leave(session);
    return status;
}

static tare_status run_plan(plan *p, const tare_tensor *const *inputs, tare_tensor **outputs,
                            size_t capacity, size_t *count, tare_error *err) {
    TARE_TRY(tare__plan_run(p, inputs, outputs, capacity, count, err));
    return *count > capacity ? too_many(*count, capacity, err) : TARE_OK;
}

static tare_status run_either(tare_session *s, const tare_tensor *const *inputs, size_t input_count,
                              tare_tensor **outputs, size_t capacity, size_t *count,
                              tare_error *err) {
    plan *p = NULL;
    TARE_TRY(find_plan(s, inputs, input_count, &p, err));
    if (p != NULL) return run_plan(p, inputs, outputs, capacity, count, err);
    const tare_status status = interpret(s, inputs, input_count, outputs, capacity, count, err);
    return *count > capacity
               ? status
               : tare__session_inputs_blame(&s->inputs, inputs, input_count, status, err);
}

// If a mapped file lost its weights during the run, the results are invalid.
static tare_status check_mappings(tare_tensor **outputs, size_t count, tare_error *err) {
    const tare_status status = tare__mapping_check(err);
    for (size_t i = 0; i < count && status != TARE_OK; i++) {
        tare_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}

tare_status tare__session_run_counted(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs, size_t capacity,
                                      size_t *count, tare_error *err) {
    *count = 0;
    TARE_TRY(enter(session, err));
    tare_status status = run_either(session, inputs, input_count, outputs, capacity, count, err);
    if (status == TARE_OK) status = check_mappings(outputs, *count, err);
    tare__session_leave(session);
    return status;
}

tare_status tare_session_run(tare_session *session, const tare_tensor *const *inputs,
                             size_t input_count, tare_tensor **outputs, size_t output_capacity,
                             size_t *output_count, tare_error *err) {
    size_t found = 0;
    if (session == NULL || (inputs == NULL && input_count > 0) || output_count == NULL ||
        (outputs == NULL && output_capacity > 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a run needs a session, inputs and outputs");
    TARE_TRY(tare__session_run_counted(session, inputs, input_count, outputs, output_capacity,
                                       &found, err));
    *output_count = found;
    return TARE_OK;
}

// --- into the caller's tensors ---

static bool overlap(const tare_tensor *a, const tare_tensor *b) {
    const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return x < y + tare__tensor_bytes(b) && y < x + tare__tensor_bytes(a);
}

static bool overlaps_any(const tare_tensor *output, const tare_tensor *const *others,
                         size_t count) {
    for (size_t i = 0; i < count; i++)
        if (others[i] != NULL && others[i]->data != NULL && overlap(output, others[i])) return true;
    return false;
}

static tare_status check_outputs(const tare_tensor *const *inputs, size_t input_count,
                                 tare_tensor *const *outputs, size_t count, tare_error *err) {
    for (size_t i = 0; i < count; i++) {
        tare_tensor *out = outputs[i];
        if (out == NULL || (tare_tensor_mutable_data(out) == NULL && out->count > 0))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "output %zu: expected a writable tensor that is not shared", i);
        if (overlaps_any(out, inputs, input_count) ||
            overlaps_any(out, (const tare_tensor *const *)outputs, i))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "output %zu shares its memory with another tensor", i);
    }
    return TARE_OK;
}

static tare_status copy_result(const tare_tensor *from, tare_tensor *to, size_t index,
                               tare_error *err) {
    TARE_TRY(tare__plan_check_output(index, from, to, err));
    if (from->count > 0) memcpy(to->data, from->data, tare__tensor_bytes(to));
    return TARE_OK;
}

static tare_status interpret_into(tare_session *s, const tare_tensor *const *inputs,
                                  size_t input_count, tare_tensor *const *outputs, size_t count,
                                  tare_error *err) {
    size_t found = 0;
    tare_tensor **made = tare__alloc_zeroed(count + 1, sizeof(tare_tensor *));
    if (made == NULL) return tare__out_of_memory(err);
    tare_status status = interpret(s, inputs, input_count, made, count, &found, err);
    if (status == TARE_OK) status = tare__plan_check_count(found, count, err);
    for (size_t i = 0; status == TARE_OK && i < count; i++)
        status = copy_result(made[i], outputs[i], i, err);
    for (size_t i = 0; i < found && i < count; i++) tare_tensor_release(made[i]);
    tare__free(made);
    return status;
}

static tare_status run_either_into(tare_session *s, const tare_tensor *const *inputs,
                                   size_t input_count, tare_tensor *const *outputs, size_t count,
                                   tare_error *err) {
    plan *p = NULL;
    TARE_TRY(check_outputs(inputs, input_count, outputs, count, err));
    TARE_TRY(find_plan(s, inputs, input_count, &p, err));
    return p != NULL ? tare__plan_run_into(p, inputs, outputs, count, err)
                     : interpret_into(s, inputs, input_count, outputs, count, err);
}

tare_status tare_session_run_into(tare_session *session, const tare_tensor *const *inputs,
                                  size_t input_count, tare_tensor *const *outputs,
                                  size_t output_count, tare_error *err) {
    if (session == NULL || (inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a run needs a session, inputs and outputs");
    TARE_TRY(enter(session, err));
    tare_status status = run_either_into(session, inputs, input_count, outputs, output_count, err);
    if (status == TARE_OK) status = tare__mapping_check(err);
    tare__session_leave(session);
    return status;
}

static tare_status feed_interpreter(tare_session *s, const tare_tensor *const *inputs, size_t count,
                                    tare_error *err) {
    arena memory = {0};
    value result = tare__none();
    const tare_status status = run(s, &memory, inputs, count, &result, err);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    return status;
}

static tare_status feed_plan(plan *p, const tare_tensor *const *inputs, tare_error *err) {
    size_t count = tare__plan_output_count(p);
    tare_tensor **outputs = tare__alloc_zeroed(count + 1, sizeof(tare_tensor *));
    if (outputs == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__plan_run(p, inputs, outputs, count, &count, err);
    for (size_t i = 0; i < count; i++) tare_tensor_release(outputs[i]);
    tare__free(outputs);
    return status;
}

tare_status tare__session_feed(tare_session *session, const tare_tensor *const *inputs,
                               size_t input_count, tare_error *err) {
    plan *p = NULL;
    TARE_TRY(find_plan(session, inputs, input_count, &p, err));
    return p != NULL ? feed_plan(p, inputs, err)
                     : feed_interpreter(session, inputs, input_count, err);
}
