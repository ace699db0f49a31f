// SPDX-License-Identifier: Apache-2.0
// Decoders of language whose cache of keys and values is state: token by token they give the logits
// that torch gives for all tokens at once, and each session has a cache of its own. Data:
// tests/data/decoder.zip, made by tests/data/pack_decoder.py.
#include "support/test.h"

#include <math.h>

#include "replay/case.h"
#include "support/models.h"

#define ARCHIVE "tests/data/decoder.zip"

enum { MOST_STEPS = 512, VOCABULARY = 32 };

typedef struct decoder {
    safetensors data;
    tare_model *model;
    const float *tokens, *logits; // [count], [count][VOCABULARY]
    int64_t count;
} decoder;

static decoder read_decoder(const char *name) {
    char members[64];
    decoder d = {.model = NULL};
    case_bytes data, model;
    snprintf(members, sizeof members, "%s/", name);
    const case_place place = {name, ARCHIVE, members};
    const tare_model_read_options options = {.struct_size = sizeof options, .copies_file = true};
    CHECK_DONE(case_read_file(&place, "data.safetensors", &data, job_error()));
    CHECK_DONE(case_read_file(&place, "model.pt2", &model, job_error()));
    CHECK_DONE(tare__safetensors_parse(data.store, data.data, data.size, &d.data, job_error()));
    CHECK_DONE(
        tare_model_read_memory(model.data, model.size, NULL, &options, &d.model, job_error()));
    tare__storage_release(data.store);
    tare__storage_release(model.store);
    const tare_tensor *tokens = tare__map_get(&d.data.tensors, "tokens");
    const tare_tensor *logits = tare__map_get(&d.data.tensors, "logits");
    assert_true(logits->shape[0] == tokens->count && logits->shape[1] == VOCABULARY);
    d.tokens = tare__f32(tokens);
    d.logits = tare__f32(logits);
    d.count = tokens->count;
    return d;
}

static void release_decoder(decoder *d) {
    tare_model_destroy(d->model);
    tare__safetensors_release(&d->data);
}

static tare_session *open_session(const decoder *d, bool reference) {
    const tare_session_options options = {.struct_size = sizeof options, .reference = reference};
    tare_session *session = NULL;
    CHECK_DONE(tare_session_create(d->model, &options, &session, job_error()));
    return session;
}

static tare_status run_token(tare_session *session, int64_t token, int64_t position,
                             tare_tensor **logits) {
    const int64_t shape[] = {1, 1};
    tare_tensor *inputs[2];
    size_t count = 0;
    CHECK_DONE(tare_tensor_from_data(TARE_INT64, 2, shape, &token, &inputs[0], job_error()));
    CHECK_DONE(tare_tensor_from_data(TARE_INT64, 1, shape, &position, &inputs[1], job_error()));
    const tare_status status = tare_session_run(session, (const tare_tensor *const *)inputs, 2,
                                                logits, 1, &count, job_error());
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
    return status;
}

static tare_tensor *token(tare_session *session, const decoder *d, int64_t at) {
    tare_tensor *logits = NULL;
    CHECK_DONE(run_token(session, (int64_t)d->tokens[at], at, &logits));
    assert_int_equal(logits->count, VOCABULARY);
    return logits;
}

static void check_logits(const char *name, const decoder *d, int64_t at, const tare_tensor *y) {
    for (int64_t i = 0; i < VOCABULARY; i++) {
        const float expected = d->logits[at * VOCABULARY + i], found = tare__f32(y)[i];
        if (!(fabsf(found - expected) <= 1e-5F * (1 + fabsf(expected))))
            fail_msg("%s: token %d, logit %d is %g, expected %g", name, (int)at, (int)i,
                     (double)found, (double)expected);
    }
}

// Every cache is written where it lies.
static void check_steps(const char *name, const tare_session *session) {
    tare_step step = {.struct_size = sizeof step};
    size_t written = 0;
    for (size_t i = 0; i < MOST_STEPS && tare_session_get_step(session, i, &step); i++) {
        if (strcmp(step.kind, "slices") != 0) continue;
        if (strcmp(step.why, "in place") != 0)
            fail_msg("%s: '%s' is written %s", name, step.node, step.why);
        written++;
    }
    assert_true(written >= 4); // two layers
}

static void tokens_one_by_one_give_what_all_give_at_once(void **state) {
    decoder d = read_decoder(*state);
    for (int reference = 0; reference < 2; reference++) {
        tare_session *session = open_session(&d, reference != 0);
        for (int64_t i = 0; i < d.count; i++) {
            tare_tensor *y = token(session, &d, i);
            check_logits(*state, &d, i, y);
            tare_tensor_release(y);
        }
        if (reference == 0) check_steps(*state, session);
        tare_session_destroy(session);
    }
    release_decoder(&d);
}

// Sessions of one model take turns; each has seen its own tokens alone. One that is reset begins
// anew, and the model never changes.
static void sessions_have_caches_of_their_own(void **state) {
    decoder d = read_decoder(*state);
    tare_session *first = open_session(&d, false), *second = open_session(&d, false);
    for (int64_t i = 0; i < d.count; i++) {
        tare_tensor *y = token(first, &d, i), *other = NULL;
        check_logits(*state, &d, i, y);
        CHECK_DONE(run_token(second, (int64_t)d.tokens[i] + 1, i, &other));
        tare_tensor_release(y);
        tare_tensor_release(other);
    }
    tare_session *fresh = open_session(&d, false);
    CHECK_DONE(tare_session_reset(second, job_error()));
    for (int64_t i = 0; i < d.count; i++) {
        tare_tensor *y = token(fresh, &d, i), *again = token(second, &d, i);
        check_same_tensor(again, y);
        tare_tensor_release(y);
        tare_tensor_release(again);
    }
    tare_session_destroy(first);
    tare_session_destroy(second);
    tare_session_destroy(fresh);
    release_decoder(&d);
}

static tare_status watch(void *user, const char *name, const tare_tensor *result, tare_error *err) {
    (void)name, (void)result, (void)err;
    ++*(int *)user;
    return TARE_OK;
}

// Runs by a plan and by the interpreter go on where the other has stopped.
static void plans_and_the_interpreter_share_the_state(void **state) {
    decoder d = read_decoder(*state);
    tare_session *session = open_session(&d, false);
    int nodes = 0;
    for (int64_t i = 0; i < d.count; i++) {
        tare_session_watch(session, i % 2 == 1 ? watch : NULL, &nodes);
        tare_tensor *y = token(session, &d, i);
        check_logits(*state, &d, i, y);
        tare_tensor_release(y);
    }
    assert_true(nodes > 0);
    tare_session_destroy(session);
    release_decoder(&d);
}

// A position beyond the cache's end, before and after others: the cache stays as it was.
static void what_does_not_fit_is_refused(void **state) {
    decoder d = read_decoder(*state);
    tare_session *session = open_session(&d, false);
    for (int64_t i = 0; i < d.count; i++) {
        tare_tensor *y = token(session, &d, i), *none = NULL;
        check_logits(*state, &d, i, y);
        tare_tensor_release(y);
        assert_int_not_equal(run_token(session, 1, 16, &none), TARE_OK);
        assert_null(none);
    }
    tare_session_destroy(session);
    release_decoder(&d);
}

static void an_allocation_that_fails_is_an_error(void **state) {
    decoder d = read_decoder(*state);
    tare_status status = TARE_OK;
    tare_session *session = NULL;
    tare_tensor *y = NULL;
    const int64_t shape[] = {1, 1}, number = 0;
    tare_tensor *inputs[2];
    size_t count = 0;
    CHECK_DONE(tare_tensor_from_data(TARE_INT64, 2, shape, &number, &inputs[0], job_error()));
    CHECK_DONE(tare_tensor_from_data(TARE_INT64, 1, shape, &number, &inputs[1], job_error()));
    SOME_ALLOCATIONS_FAIL(
        97, status,
        {
            status = tare_session_create(d.model, NULL, &session, NULL);
            if (status == TARE_OK)
                status = tare_session_run(session, (const tare_tensor *const *)inputs, 2, &y, 1,
                                          &count, NULL);
            if (status == TARE_OK) tare_tensor_release(y);
            tare_session_destroy(session);
            session = NULL;
        },
        (void)0);
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
    release_decoder(&d);
}

// The layers' weights in groups of 8 bits and the inputs' rows as well: integers, so that a plan
// gives the bits of the references.
static void quantized_weights_keep_the_state(void **state) {
    decoder d = read_decoder(*state);
    tare_backend_config *backend = builtin_backend("tare");
    tare_qconfig_mapping *m = default_mapping("int8_dynamic_activation_int8_weight");
    tare_model *made = prepared(d.model, backend, m), *out = lowered(made, backend);
    CHECK_HOLDS(printed(out), "GroupedLinear(");
    tare_model_destroy(d.model);
    d.model = out;
    tare_session *session = open_session(&d, false);
    double most = 0;
    for (int64_t i = 0; i < d.count; i++) {
        tare_tensor *y = token(session, &d, i);
        for (int64_t k = 0; k < VOCABULARY; k++)
            most = fmax(most, fabs((double)(tare__f32(y)[k] - d.logits[i * VOCABULARY + k])));
        tare_tensor_release(y);
    }
    assert_true(most > 0 && most < 0.1); // of logits up to 2
    check_steps(*state, session);
    tare_session_destroy(session);
    tare_model_destroy(made);
    tare_qconfig_mapping_destroy(m);
    tare_backend_config_destroy(backend);
    release_decoder(&d);
}

#define TEST_OF(name, test) cmocka_unit_test_prestate(test, (void *)(name))

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_OF("float", tokens_one_by_one_give_what_all_give_at_once),
        TEST_OF("int8", tokens_one_by_one_give_what_all_give_at_once),
        TEST_OF("qwen2", tokens_one_by_one_give_what_all_give_at_once),
        TEST_OF("qwen2_decomposed", tokens_one_by_one_give_what_all_give_at_once),
        TEST_OF("float", sessions_have_caches_of_their_own),
        TEST_OF("int8", sessions_have_caches_of_their_own),
        TEST_OF("qwen2", sessions_have_caches_of_their_own),
        TEST_OF("int8", plans_and_the_interpreter_share_the_state),
        TEST_OF("qwen2_decomposed", plans_and_the_interpreter_share_the_state),
        TEST_OF("float", what_does_not_fit_is_refused),
        TEST_OF("float", an_allocation_that_fails_is_an_error),
        TEST_OF("float", quantized_weights_keep_the_state),
        TEST_OF("qwen2_decomposed", quantized_weights_keep_the_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
