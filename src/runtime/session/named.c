// SPDX-License-Identifier: Apache-2.0
// Runs with inputs and outputs by name.
#include <string.h>

#include "core/memory/alloc.h"
#include "model/model.h"
#include "runtime/session/session.h"

typedef struct named_run {
    tare_session *session;
    const tare_model *model;
    arena memory;
    const tare_tensor **inputs; // in the model's order
    size_t input_count;
    tare_tensor **results; // all outputs; references owned
    size_t result_count;
    tare_error *err;
} named_run;

// --- inputs ---

static const char *input_name_at(const void *user, size_t index) {
    return tare_model_input_name(user, index);
}

static tare_status put_input(named_run *r, const char *name, const tare_tensor *t) {
    const char *known = NULL;
    for (size_t i = 0; (known = tare_model_input_name(r->model, i)) != NULL; i++) {
        if (strcmp(known, name) != 0) continue;
        if (r->inputs[i] != NULL)
            return tare__fail(r->err, TARE_INVALID_ARGUMENT, "input '%s' is given twice", name);
        r->inputs[i] = t;
        return TARE_OK;
    }
    return tare__suggest(r->err,
                         tare__fail(r->err, TARE_NOT_FOUND, "the model has no input '%s'", name),
                         name, input_name_at, r->model);
}

static tare_status order_inputs(named_run *r, const char *const *names,
                                const tare_tensor *const *inputs, size_t count) {
    const size_t most = tare_model_input_count(r->model);
    r->inputs = tare__arena_array(&r->memory, most + 1, sizeof *r->inputs);
    if (r->inputs == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        if (names[i] == NULL || inputs[i] == NULL)
            return tare__fail(r->err, TARE_INVALID_ARGUMENT, "input %zu is NULL", i);
        TARE_TRY(put_input(r, names[i], inputs[i]));
    }
    // Inputs that are missing at the end: the run uses defaults, or reports what is missing.
    for (r->input_count = most; r->input_count > 0 && r->inputs[r->input_count - 1] == NULL;)
        r->input_count--;
    for (size_t i = 0; i < r->input_count; i++)
        if (r->inputs[i] == NULL)
            return tare__fail(r->err, TARE_INVALID_ARGUMENT, "input '%s' is missing",
                              tare_model_input_name(r->model, i));
    return TARE_OK;
}

// --- outputs ---

static tare_status run_for(named_run *r, size_t capacity) {
    r->results = tare__alloc_zeroed(capacity + 1, sizeof(tare_tensor *));
    if (r->results == NULL) return tare__out_of_memory(r->err);
    const tare_status status = tare__session_run_counted(
        r->session, r->inputs, r->input_count, r->results, capacity, &r->result_count, r->err);
    if (status == TARE_OK) return TARE_OK;
    tare__free(r->results);
    r->results = NULL;
    return status;
}

// If a result is a tuple, there are more outputs than the graph tells: runs again with room for
// all.
static tare_status run_all(named_run *r) {
    const size_t expected = tare_session_output_count(r->session);
    const tare_status status = run_for(r, expected);
    return status != TARE_OK && r->result_count > expected ? run_for(r, r->result_count) : status;
}

static const char *result_name_at(const void *user, size_t index) {
    const named_run *r = user;
    return tare_session_output_name(r->session, index);
}

static tare_status find_result(const named_run *r, const char *name, size_t *out) {
    if (name == NULL) return tare__fail(r->err, TARE_INVALID_ARGUMENT, "an output's name is NULL");
    for (size_t i = 0; i < r->result_count; i++) {
        *out = i;
        if (strcmp(tare_session_output_name(r->session, i), name) == 0) return TARE_OK;
    }
    return tare__suggest(r->err,
                         tare__fail(r->err, TARE_NOT_FOUND, "the model has no output '%s'", name),
                         name, result_name_at, r);
}

static tare_status pick_outputs(named_run *r, const char *const *names, tare_tensor **outputs,
                                size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) TARE_TRY(find_result(r, names[i], &at));
    for (size_t i = 0; i < count; i++)
        if (find_result(r, names[i], &at) == TARE_OK)
            outputs[i] = tare_tensor_retain(r->results[at]);
    return TARE_OK;
}

static void end_run(named_run *r) {
    for (size_t i = 0; r->results != NULL && i < r->result_count; i++)
        tare_tensor_release(r->results[i]);
    tare__free(r->results);
    tare__arena_release(&r->memory);
}

tare_status tare_session_run_named(tare_session *session, const char *const *input_names,
                                   const tare_tensor *const *inputs, size_t input_count,
                                   const char *const *output_names, tare_tensor **outputs,
                                   size_t output_count, tare_error *err) {
    if (session == NULL || (input_count > 0 && (input_names == NULL || inputs == NULL)) ||
        (output_count > 0 && (output_names == NULL || outputs == NULL)))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a run needs a session, names, inputs and outputs");
    named_run r = {.session = session, .model = tare__session_model(session), .err = err};
    tare_status status = order_inputs(&r, input_names, inputs, input_count);
    if (status == TARE_OK) status = run_all(&r);
    if (status == TARE_OK) status = pick_outputs(&r, output_names, outputs, output_count);
    end_run(&r);
    return status;
}
