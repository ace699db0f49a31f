// SPDX-License-Identifier: Apache-2.0
// Runs a model in every way; where results differ, searches the first node whose value differs.
#include "support/differential/differential.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "io/onnx/onnx.h"
#include "ops/text/print.h"
#include "runtime/kernels/isa.h"
#include "runtime/plan/samples.h"
#include "tare/tare.h"

enum { MOST_RESULTS = 16, FLOW_BYTES = 4 };

typedef struct results {
    tare_tensor *items[MOST_RESULTS];
    size_t count;
} results;

// How a model runs.
typedef struct way {
    const char *isa;
    int threads;
    bool reference, is_watched, lets_library;
} way;

static void release(results *r) {
    for (size_t i = 0; i < r->count; i++) tare_tensor_release(r->items[i]);
    r->count = 0;
}

// --- runs ---

static tare_status see(void *user, const char *name, const tare_tensor *result, tare_error *err) {
    (void)user, (void)name, (void)result, (void)err;
    return TARE_OK;
}

// Floats of a library are no promise.
static bool has_library_step(const tare_session *s) {
    tare_step step = {.struct_size = sizeof step};
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        if (step.bits_may_differ) return true;
    return tare_session_step_count(s) == 0;
}

// NULL: it failed, and d->err says why.
static tare_session *open_session(differential *d, const tare_model *model, const way *w) {
    tare_session *session = NULL;
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = w->threads,
                                          .reference = w->reference,
                                          .portable_floats = !w->lets_library};
    if (setenv("TARE_ISA", w->isa, 1) != 0) abort();
    if (tare_session_create(model, &options, &session, d->err) != TARE_OK) return NULL;
    if (w->is_watched) tare_session_watch(session, see, NULL);
    return session;
}

// Twice: the first run makes the plan, the second finds what the first one left, in a session's own
// copy of what it writes, too. *may_differ: by a
// library's floats.
static tare_status run(differential *d, const tare_model *model, const way *w,
                       const tare_tensor *const *inputs, results *out, bool *may_differ) {
    tare_session *session = open_session(d, model, w);
    tare_status status = session != NULL ? TARE_OK : TARE_INTERNAL;
    *out = (results){.count = 0};
    *may_differ = false;
    if (d->coverage != NULL) d->coverage->runs++;
    for (int turn = 0; turn < 2 && status == TARE_OK; turn++) {
        release(out);
        status = tare_session_run(session, inputs, d->input_count, out->items, MOST_RESULTS,
                                  &out->count, d->err);
        if (status != TARE_OK) out->count = 0;
    }
    if (status == TARE_OK && w->lets_library) *may_differ = has_library_step(session);
    tare_session_destroy(session);
    return status;
}

static const char *best_level(void) {
    return tare__isa_level_name(tare__isa_detect());
}

static const char *words_of(const way *w, char *out, size_t size) {
    snprintf(out, size, "%s, %d threads%s%s%s", w->isa, w->threads,
             w->reference ? ", references" : "", w->is_watched ? ", interpreted" : "",
             w->lets_library ? ", with a library" : "");
    return out;
}

// --- comparing ---

static bool is_same_element(const tare_tensor *a, const tare_tensor *b, int64_t i, int64_t j) {
    const size_t size = tare_dtype_size(a->dtype);
    if (memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)j * size,
               size) == 0)
        return true;
    // IEEE leaves a NaN's payload open.
    return tare__dtype(a->dtype)->is_float && isnan(tare__tensor_get(a, i)) &&
           isnan(tare__tensor_get(b, j));
}

static bool is_alike(const tare_tensor *a, const tare_tensor *b) {
    return a->dtype == b->dtype && tare__same_shape(a, b) && (a->q == NULL) == (b->q == NULL) &&
           (a->q == NULL || tare__qparams_equal(a->q, b->q));
}

// The first element of `found` that differs from `expected`, whose elements begin at `from`; -1:
// none does.
static int64_t find_difference(const tare_tensor *expected, int64_t from,
                               const tare_tensor *found) {
    for (int64_t i = 0; i < found->count; i++)
        if (!is_same_element(expected, found, from + i, i)) return i;
    return -1;
}

static void say_tensor(text *out, const char *what, const tare_tensor *t) {
    char shape[128];
    tare__shape_text(t->ndim, t->shape, shape, sizeof shape);
    tare__text_printf(out, "%s: %s %s", what, tare_dtype_name(t->dtype), shape);
    if (t->q != NULL)
        tare__text_printf(out, " scale %.17g zero point %g", t->q->scale[0], t->q->zero_point[0]);
    tare__text_append(out, "\n");
}

// What differs, if anything does.
static bool same_results(text *out, const results *expected, const results *found) {
    if (expected->count != found->count) {
        tare__text_printf(out, "%zu outputs, not %zu\n", found->count, expected->count);
        return false;
    }
    for (size_t k = 0; k < found->count; k++) {
        const tare_tensor *x = expected->items[k], *y = found->items[k];
        if (!is_alike(x, y)) {
            tare__text_printf(out, "output %zu is another tensor\n", k);
            say_tensor(out, "  expected", x);
            say_tensor(out, "  found", y);
            return false;
        }
        const int64_t at = find_difference(x, 0, y);
        if (at < 0) continue;
        tare__text_printf(out, "output %zu, element %lld: %.17g, not %.17g\n", k, (long long)at,
                          tare__tensor_get(y, at), tare__tensor_get(x, at));
        say_tensor(out, "  of", x);
        return false;
    }
    return true;
}

// --- findings ---

static bool append_text(void *user, const char *chars, size_t length) {
    tare__text_append_n(user, chars, length);
    return true;
}

static void say_model(text *out, const tare_model *model) {
    (void)tare_model_print(model, TARE_PRINT_MODEL, append_text, out, NULL);
    (void)tare_model_print(model, TARE_PRINT_NODES, append_text, out, NULL);
}

// The model cut off behind a node; NULL: there is none.
static tare_model *cut_behind(const tare_model *model, const char *name) {
    module *root = NULL;
    tare_model *cut = NULL;
    if (tare__module_clone(model->root, &root, NULL) != TARE_OK) return NULL;
    node *end = tare__graph_output(root->graph), *last = tare__graph_find(root->graph, name);
    value result = tare__node_value(last);
    if (last == NULL || tare__node_set_args(end, &result, 1, NULL, 0, NULL) != TARE_OK ||
        tare__model_create(NULL, root, model->stage, NULL, &cut, NULL) != TARE_OK) {
        tare__module_release(root);
        return NULL;
    }
    cut->engine = model->engine;
    return cut;
}

static bool differs(differential *d, const tare_model *model, const way *w, text *out) {
    const way reference = {best_level(), 1, .reference = true};
    results expected, found;
    bool may_differ;
    if (run(d, model, &reference, d->inputs, &expected, &may_differ) != TARE_OK) return false;
    const bool runs = run(d, model, w, d->inputs, &found, &may_differ) == TARE_OK;
    const bool same = runs && same_results(out, &expected, &found);
    release(&expected);
    release(&found);
    return !same;
}

// What the plan consists of.
static void say_steps(differential *d, const tare_model *model, const way *w) {
    tare_session *s = open_session(d, model, w);
    tare_step step = {.struct_size = sizeof step};
    results found = {.count = 0};
    if (s != NULL && tare_session_run(s, d->inputs, d->input_count, found.items, MOST_RESULTS,
                                      &found.count, NULL) == TARE_OK)
        for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
            tare__text_printf(d->finding, "step %zu: %s of '%s' (%s): %s\n", i, step.kind,
                              step.node, step.kernel, step.why);
    release(&found);
    tare_session_destroy(s);
}

// Of two ways that differ: the first node where they do.
static void say_node(differential *d, const tare_model *model, const way *w) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        tare_model *cut = tare__node_is_call(n) ? cut_behind(model, n->name) : NULL;
        text out = {0};
        const bool found = cut != NULL && differs(d, cut, w, &out);
        if (found) {
            tare__text_printf(d->finding, "as the only output, node '%s' differs: %s", n->name,
                              tare__text_chars(&out));
            say_steps(d, cut, w);
        }
        tare__text_release(&out);
        tare_model_destroy(cut);
        if (found) return;
    }
}

static const char *file_path(const char *name);

static bool report(differential *d, const tare_model *model, const char *form, const char *what,
                   const text *difference) {
    text *out = d->finding;
    if (tare_model_write(model, file_path("found.safetensors"), NULL) == TARE_OK)
        tare__text_printf(out, "-- the model is kept: %s\n", file_path("found.safetensors"));
    tare__text_printf(out, "%s: %s: %s", form, what, tare__text_chars(difference));
    for (size_t i = 0; i < d->input_count; i++) say_tensor(out, "input", d->inputs[i]);
    say_model(out, model);
    return false;
}

static bool report_failure(differential *d, const tare_model *model, const char *form,
                           const char *what) {
    text why = {0};
    tare__text_printf(&why, "%s: %s\n", tare_error_where(d->err), tare_error_message(d->err));
    const bool reported = report(d, model, form, what, &why);
    tare__text_release(&why);
    return reported;
}

// --- ways to run ---

typedef struct subject {
    differential *d;
    const tare_model *model;
    const char *form;
    results expected;
} subject;

static bool check_way(const subject *s, const way *w) {
    char words[96];
    results found;
    text difference = {0};
    bool may_differ, same = true;
    words_of(w, words, sizeof words);
    if (run(s->d, s->model, w, s->d->inputs, &found, &may_differ) != TARE_OK)
        return report_failure(s->d, s->model, s->form, words);
    if (!may_differ) same = same_results(&difference, &s->expected, &found);
    if (!same) {
        (void)report(s->d, s->model, s->form, words, &difference);
        say_node(s->d, s->model, w);
    }
    release(&found);
    tare__text_release(&difference);
    return same;
}

static bool check_ways(const subject *s) {
    const char *best = best_level();
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++)
        if (!check_way(s, &(way){tare__isa_level_name((isa_level)isa), 1})) return false;
    return check_way(s, &(way){best, 2}) && check_way(s, &(way){best, 3}) &&
           check_way(s, &(way){best, 2, .is_watched = true}) &&
           check_way(s, &(way){best, 1, .lets_library = true});
}

// --- samples ---

static bool are_apart(const subject *s) {
    const differential *d = s->d;
    bool apart = false;
    const int64_t batch = d->inputs[0]->shape[0];
    const tare_batch all = {.struct_size = sizeof all,
                            .inputs = d->inputs,
                            .input_count = d->input_count,
                            .size = batch};
    if (batch < 2 || s->expected.count == 0) return false;
    for (size_t k = 0; k < s->expected.count; k++)
        if (s->expected.items[k]->ndim == 0 || s->expected.items[k]->shape[0] != batch)
            return false;
    return tare__samples_by_rule(s->model, &all, &apart, NULL) == TARE_OK && apart;
}

static bool same_sample(text *out, const results *expected, const results *found, int64_t sample) {
    for (size_t k = 0; k < found->count && k < expected->count; k++) {
        const tare_tensor *x = expected->items[k], *y = found->items[k];
        if (!tare__is_sample(y, x, x->shape[0])) continue; // it does not follow the batch
        const int64_t at = find_difference(x, sample * y->count, y);
        if (at < 0) continue;
        tare__text_printf(out, "sample %lld of output %zu, element %lld: %.17g, not %.17g\n",
                          (long long)sample, k, (long long)at, tare__tensor_get(y, at),
                          tare__tensor_get(x, sample * y->count + at));
        return false;
    }
    return true;
}

static bool check_sample(const subject *s, int64_t sample) {
    differential *d = s->d;
    const way alone = {best_level(), 1 + (int)(sample % 2)};
    tare_tensor *rows[MOST_RANDOM_INPUTS] = {NULL};
    results found;
    text difference = {0};
    bool may_differ, same = true;
    for (size_t i = 0; i < d->input_count; i++)
        if (tare__tensor_rows(d->inputs[i], sample, 1, &rows[i], NULL) != TARE_OK) abort();
    if (run(d, s->model, &alone, (const tare_tensor *const *)rows, &found, &may_differ) != TARE_OK)
        same = report_failure(d, s->model, s->form, "a sample alone");
    else if (!same_sample(&difference, &s->expected, &found, sample))
        same = report(d, s->model, s->form, "a sample alone", &difference);
    release(&found);
    for (size_t i = 0; i < d->input_count; i++) tare_tensor_release(rows[i]);
    tare__text_release(&difference);
    return same;
}

static bool check_samples(const subject *s) {
    if (!are_apart(s)) return true;
    const int64_t batch = s->d->inputs[0]->shape[0];
    return check_sample(s, 0) && check_sample(s, batch - 1);
}

// --- ways through files and texts ---

static const char *folder(void) {
    static char path[64];
    if (path[0] != '\0') return path;
    strcpy(path, "/tmp/tare-differential-XXXXXX");
    if (mkdtemp(path) == NULL) abort();
    return path;
}

static const char *file_path(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    return path;
}

static void remove_folder(void) {
    (void)remove(folder());
}

static void note_folder(void) {
    static bool is_noted;
    if (!is_noted) (void)atexit(remove_folder);
    is_noted = true;
}

// A model that came back gives the same bits, by a plan of its own.
static bool check_copy(const subject *s, const tare_model *copy, const char *what) {
    const way plan = {best_level(), 1};
    results found;
    text difference = {0};
    bool may_differ, same = true;
    if (run(s->d, copy, &plan, s->d->inputs, &found, &may_differ) != TARE_OK)
        return report_failure(s->d, s->model, s->form, what);
    if (!same_results(&difference, &s->expected, &found)) {
        (void)report(s->d, s->model, s->form, what, &difference);
        tare__text_append(s->d->finding, "-- and the copy:\n");
        say_model(s->d->finding, copy);
        same = false;
    }
    release(&found);
    tare__text_release(&difference);
    return same;
}

typedef tare_status (*model_writer)(const subject *s, const char *path);

static tare_status write_own(const subject *s, const char *path) {
    return tare_model_write(s->model, path, s->d->err);
}

static tare_status write_packed(const subject *s, const char *path) {
    return tare_model_write_packed(s->model, path, s->d->err);
}

static tare_status write_program(const subject *s, const char *path) {
    return tare_model_write_pt2(s->model, path, s->d->err);
}

// An exported program knows the shapes of its inputs; others are told.
static tare_status write_onnx(const subject *s, const char *path) {
    const differential *d = s->d;
    tare_input_shape shapes[MOST_RANDOM_INPUTS];
    tare_onnx_options options = {.struct_size = sizeof options, .shapes = shapes};
    size_t input = 0;
    for (const node *n = s->model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER || input == d->input_count) continue;
        const tare_tensor *x = d->inputs[input++];
        data_input known;
        TARE_TRY(tare__describe_input(n, &known, d->err));
        if (known.ndim < 0 || known.is_example)
            shapes[options.shape_count++] = (tare_input_shape){n->target, x->ndim, x->shape};
    }
    return tare_model_write_onnx(s->model, path, &options, d->err);
}

typedef struct other_tree {
    const module *root;
    bool same;
} other_tree;

static tare_status compare_tensors(void *user, const char *path, module *m, tare_error *err) {
    other_tree *other = user;
    const module *found = tare__module_find(other->root, path);
    (void)err;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *x = m->tensors[i].tensor;
        const tare_tensor *y =
            found != NULL ? tare__module_tensor(found, m->tensors[i].name) : NULL;
        if (x != NULL && (y == NULL || !is_alike(x, y) || find_difference(x, 0, y) >= 0))
            other->same = false;
    }
    return TARE_OK;
}

// ONNX files hold integers of float weights and biases, which come back as what these stand for.
static bool has_same_tensors(const tare_model *model, const tare_model *copy) {
    other_tree other = {copy->root, true};
    (void)tare__module_walk(model->root, compare_tensors, &other, NULL);
    return other.same;
}

// may_refuse: the format does not hold everything.
static bool check_file(const subject *s, model_writer write, const char *name, bool may_refuse) {
    differential *d = s->d;
    tare_model *copy = NULL;
    note_folder();
    const char *path = file_path(name);
    const tare_status written = write(s, path);
    if (may_refuse && (written == TARE_UNSUPPORTED || written == TARE_INVALID_ARGUMENT))
        return true;
    if (written != TARE_OK) return report_failure(d, s->model, s->form, name);
    const tare_status status = tare_model_read(path, NULL, &copy, d->err);
    bool same = true;
    if (status != TARE_OK)
        same = report_failure(d, s->model, s->form, name);
    else if (!may_refuse || has_same_tensors(s->model, copy))
        same = check_copy(s, copy, name);
    tare_model_destroy(copy);
    if (same)
        (void)remove(path);
    else
        tare__text_printf(d->finding, "-- the file is kept: %s\n", path);
    return same;
}

static bool is_same_text(const subject *s, const graph *read) {
    text before = {0}, after = {0};
    bool same = tare__print_code(s->model->root->graph, &before, NULL) == TARE_OK &&
                tare__print_code(read, &after, NULL) == TARE_OK &&
                strcmp(tare__text_chars(&before), tare__text_chars(&after)) == 0;
    if (!same) {
        tare__text_printf(&before, "-- read again:\n%s", tare__text_chars(&after));
        same = report(s->d, s->model, s->form, "as text", &before);
    }
    tare__text_release(&before);
    tare__text_release(&after);
    return same;
}

static bool check_text(const subject *s) {
    text printed = {0};
    graph *read = NULL;
    bool same = true;
    if (tare__print_model(s->model->root, &printed, s->d->err) != TARE_OK ||
        tare__parse_code(tare__text_chars(&printed), printed.length, s->model->root, &read,
                         s->d->err) != TARE_OK)
        same = report_failure(s->d, s->model, s->form, "as text");
    else
        same = is_same_text(s, read);
    tare__graph_destroy(read);
    tare__text_release(&printed);
    return same;
}

// Programs with fake quantizers are models that are being trained, or refused.
static bool has_fake_quantize(const tare_model *model) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_FUNCTION && strstr(n->target, "aten.fake_quantize_per") != NULL)
            return true;
    return false;
}

static bool check_files(const subject *s) {
    if (!check_text(s) || !check_file(s, write_own, "model.safetensors", false) ||
        !check_file(s, write_packed, "packed.safetensors", false))
        return false;
#ifdef TARE_HAVE_ONNX
    if (!check_file(s, write_onnx, "model.onnx", true)) return false;
#else
    (void)write_onnx;
#endif
    return !tare_model_is_exported(s->model) || has_fake_quantize(s->model) ||
           check_file(s, write_program, "model.pt2", true);
}

// --- coverage ---

static const op_info *row_of(const tare_model *model, const node *n) {
    if (n->op == NODE_CALL_FUNCTION) return tare__op_function(n->target);
    if (n->op == NODE_CALL_METHOD) return tare__op_method(n->target);
    if (n->op != NODE_CALL_MODULE) return NULL;
    const module *m = tare__module_find(model->root, n->target);
    return m != NULL && m->class->op != NULL ? tare__op_by_id(m->class->op, m->class->dims) : NULL;
}

static void count_model(differential_coverage *c, const tare_model *model, const char *form) {
    if (c == NULL) return;
    c->models++;
    const size_t before = (size_t)tare__map_get(&c->forms, form);
    (void)tare__map_set(&c->forms, form, tare__map_int(before + 1));
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        const op_info *row = row_of(model, n);
        for (size_t i = 0; row != NULL && i < MOST_ROWS && tare__op_at(i) != NULL; i++)
            c->rows[i] += tare__op_at(i) == row;
    }
}

void differential_coverage_release(differential_coverage *coverage) {
    tare__map_release(&coverage->forms);
}

// --- entry points ---

bool differential_compare(differential *d, const tare_model *model, const char *form) {
    const way reference = {best_level(), 1, .reference = true};
    if (d->finding == NULL) {
        count_model(d->coverage, model, form);
        return true;
    }
    subject s = {.d = d, .model = model, .form = form};
    bool may_differ;
    // What the references refuse (an operator without a quantized form), no way needs to compute.
    if (run(d, model, &reference, d->inputs, &s.expected, &may_differ) != TARE_OK) return true;
    count_model(d->coverage, model, form);
    const bool same = check_ways(&s) && check_samples(&s) && check_files(&s);
    release(&s.expected);
    return same;
}

static bool check_graph(random_graph *g, differential *d) {
    tare_model *model = random_graph_model(g);
    if (model == NULL) return true;
    for (size_t i = 0; i < g->input_count; i++) d->inputs[i] = g->inputs[i];
    d->input_count = g->input_count;
    if (d->coverage != NULL) d->coverage->graphs++;
    // Observers that saw NaNs give nothing that could be compared.
    const bool same =
        differential_compare(d, model, "float") && (g->is_wild || differential_quantize(d, model));
    tare_model_destroy(model);
    return same;
}

bool differential_check(const uint8_t *bytes, size_t count, differential_coverage *coverage,
                        text *finding) {
    // The first bytes choose the flow, so that a graph that grows stays in it.
    const size_t head = count < FLOW_BYTES ? count : FLOW_BYTES;
    choices flow = {.bytes = bytes, .count = head};
    choices c = {.bytes = bytes + head, .count = count - head};
    random_graph g;
    differential d = {
        .choices = &flow, .coverage = coverage, .finding = finding, .err = tare_error_create()};
    const bool same = !random_graph_draw(&g, &c) || check_graph(&g, &d);
    random_graph_release(&g);
    tare_error_destroy(d.err);
    (void)unsetenv("TARE_ISA");
    return same;
}
