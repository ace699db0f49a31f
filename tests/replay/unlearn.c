// SPDX-License-Identifier: Apache-2.0
// A run in training moves each running statistic s to a * s + c, where a = (1 - momentum)^calls and
// c depends on the inputs alone. One run of a copy tells calls and c; then s is solved for.
#include "replay/unlearn.h"

#include <math.h>
#include <string.h>

#include "flow/export/steps.h"
#include "replay/run.h"

static int64_t batches(const module *bn) {
    const tare_tensor *t = tare__module_tensor(bn, "num_batches_tracked");
    return t != NULL && t->count == 1 ? (int64_t)tare__tensor_get(t, 0) : 0;
}

/// In exported programs the statistics stand in a plain container, and a function follows them.
static bool is_exported(const module *m) {
    return m->class->role == ROLE_CONTAINER &&
           tare__module_tensor(m, "num_batches_tracked") != NULL &&
           tare__module_tensor(m, "running_mean") != NULL;
}

static bool learns(const module *m) {
    if (is_exported(m)) return true;
    return m->training && m->class->op != NULL && strcmp(m->class->op, "batch_norm") == 0 &&
           tare__module_tensor(m, "running_mean") != NULL;
}

static tare_status take_least(void *user, const char *path, module *m, tare_error *err) {
    (void)path;
    (void)err;
    int64_t *least = user;
    if (learns(m) && (*least < 0 || batches(m) < *least)) *least = batches(m);
    return TARE_OK;
}

int64_t unlearn_limit(const tare_model *model) {
    int64_t least = -1;
    (void)tare__module_walk(model->root, take_least, &least, NULL);
    return least > 0 ? least : 0;
}

typedef struct undoing {
    const module *after; // the same tree after one more run
    int64_t runs;
} undoing;

static tare_status undo_one(module *bn, const module *after, const char *name, int64_t runs,
                            tare_error *err) {
    const tare_tensor *now = tare__module_tensor(bn, name),
                      *next = tare__module_tensor(after, name);
    const double keep = 1 - tare__module_double(bn, "momentum", 0.1);
    const double a = pow(keep, (double)(batches(after) - batches(bn)));
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_copy(now, &t, err));
    for (int64_t i = 0; i < now->count; i++) {
        const double learned = tare__tensor_get(next, i) - a * tare__tensor_get(now, i);
        double s = tare__tensor_get(now, i);
        for (int64_t k = 0; k < runs; k++) s = (s - learned) / a;
        tare__tensor_set(t, i, s);
    }
    const tare_status status = tare__module_set_tensor(bn, name, t, false, err);
    tare_tensor_release(t);
    return status;
}

/// The graph shows the count of batches, too. torch's folding of constants runs the counter once
/// more (docs/differences.md), so that one run is left.
static tare_status undo_count(module *bn, const module *after, int64_t runs, tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_copy(tare__module_tensor(bn, "num_batches_tracked"), &t, err));
    const int64_t calls = batches(after) - batches(bn);
    tare__tensor_set(t, 0, (double)(batches(bn) - runs * calls + calls));
    const tare_status status = tare__module_set_tensor(bn, "num_batches_tracked", t, false, err);
    tare_tensor_release(t);
    return status;
}

static tare_status undo(void *user, const char *path, module *m, tare_error *err) {
    const undoing *u = user;
    const module *after = tare__module_find(u->after, path);
    if (!learns(m) || batches(after) == batches(m)) return TARE_OK;
    TARE_TRY(undo_one(m, after, "running_mean", u->runs, err));
    TARE_TRY(undo_one(m, after, "running_var", u->runs, err));
    return is_exported(m) ? undo_count(m, after, u->runs, err) : TARE_OK;
}

tare_status unlearn(const recorded_case *c, tare_model *model, const value *inputs, size_t count,
                    int64_t runs, tare_error *err) {
    tare_model *once_more = NULL;
    run_result result;
    if (runs == 0) return TARE_OK;
    TARE_TRY(case_model(c, &once_more, err));
    tare_status status = replay_run(once_more, inputs, count, &result, err);
    if (status == TARE_OK) {
        undoing u = {.after = once_more->root, .runs = runs};
        replay_run_release(&result);
        status = tare__module_walk(model->root, undo, &u, err);
    }
    tare_model_destroy(once_more);
    return status;
}

// --- buffers that the program writes ---

/// What a buffer was before a run took it to a * s + c, told from two runs more; elements that no
/// run moves are left.
static tare_status undo_write(module *m, const char *name, const tare_tensor *next,
                              const tare_tensor *last, tare_error *err) {
    const tare_tensor *now = tare__module_tensor(m, name);
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_copy(now, &t, err));
    for (int64_t i = 0; i < now->count; i++) {
        const double first = tare__tensor_get(next, i) - tare__tensor_get(now, i);
        const double second = tare__tensor_get(last, i) - tare__tensor_get(next, i);
        if (first != 0 && second != 0)
            tare__tensor_set(t, i, tare__tensor_get(now, i) - first * (first / second));
    }
    const tare_status status = tare__module_set_tensor(m, name, t, false, err);
    tare_tensor_release(t);
    return status;
}

typedef struct two_runs {
    const module *next, *last; // the same tree after one and after two more runs
} two_runs;

static tare_status undo_writes(void *user, const char *path, module *m, tare_error *err) {
    const two_runs *r = user;
    const module *next = tare__module_find(r->next, path), *last = tare__module_find(r->last, path);
    for (size_t i = 0; i < m->tensor_count; i++) {
        const named_tensor *t = &m->tensors[i];
        if (t->is_parameter || t->tensor == NULL || !tare__dtype(t->tensor->dtype)->is_float)
            continue;
        TARE_TRY(undo_write(m, t->name, tare__module_tensor(next, t->name),
                            tare__module_tensor(last, t->name), err));
    }
    return TARE_OK;
}

static tare_status run_times(const recorded_case *c, const value *inputs, size_t count, int times,
                             tare_model **out, tare_error *err) {
    TARE_TRY(case_model(c, out, err));
    tare_status status = TARE_OK;
    for (int i = 0; i < times && status == TARE_OK; i++) {
        run_result result;
        status = replay_run(*out, inputs, count, &result, err);
        if (status == TARE_OK) replay_run_release(&result);
    }
    return status;
}

bool writes_buffers(const tare_model *model) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        const node *written = tare__writes_first_argument(n) ? tare__node_arg(n, 0) : NULL;
        if (written != NULL && written->op == NODE_GET_ATTR) return true;
    }
    return false;
}

tare_status unlearn_writes(const recorded_case *c, tare_model *model, const value *inputs,
                           size_t count, tare_error *err) {
    tare_model *next = NULL, *last = NULL;
    if (!writes_buffers(model)) return TARE_OK;
    tare_status status = run_times(c, inputs, count, 1, &next, err);
    if (status == TARE_OK) status = run_times(c, inputs, count, 2, &last, err);
    if (status == TARE_OK) {
        two_runs r = {next->root, last->root};
        status = tare__module_walk(model->root, undo_writes, &r, err);
    }
    tare_model_destroy(next);
    tare_model_destroy(last);
    return status;
}
