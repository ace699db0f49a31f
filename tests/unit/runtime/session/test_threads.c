// SPDX-License-Identifier: Apache-2.0
// Where the threads of sessions are and how long they look for work: options that are refused, and
// sessions beside each other, whose bits do not depend on any of it.
#include "support/test.h"

#include <pthread.h>

#include "core/memory/map.h"
#include "core/tensor/tensor.h"
#include "io/data/npz.h"
#include "support/processors.h"
#include "tare/quantize.h"
#include "tare/session.h"

typedef struct digits {
    tare_model *model; // in integers
    map images;
    const tare_tensor *x;
    tare_tensor *expected;
    int own[2]; // processors
    size_t own_count;
} digits;

static tare_model *quantize(const tare_model *model, const tare_tensor *x) {
    tare_qconfig_mapping *mapping = NULL;
    tare_model *prepared = NULL, *quantized = NULL;
    CHECK_OK(tare_qconfig_mapping_default("x86", false, -1, &mapping, NULL));
    const tare_prepare_options prepare = {.qconfig_mapping = mapping};
    CHECK_OK(tare_prepare_fx(model, &prepare, &prepared, NULL));
    CHECK_OK(tare_calibrate(prepared, &x, 1, NULL));
    CHECK_OK(tare_convert_fx(prepared, NULL, &quantized, NULL));
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
    return quantized;
}

static tare_status run(const tare_model *m, const tare_session_options *options,
                       const tare_tensor *x, tare_tensor **out) {
    tare_session *s = NULL;
    size_t count = 0;
    tare_status status = tare_session_create(m, options, &s, NULL);
    if (status == TARE_OK) status = tare_session_run(s, &x, 1, out, 1, &count, NULL);
    tare_session_destroy(s);
    return status;
}

static int set_up(void **state) {
    static digits d;
    tare_model *model = NULL;
    CHECK_OK(tare_model_read("data/digits/digits.safetensors", NULL, &model, NULL));
    CHECK_OK(tare__npz_read("data/digits/test.npz", 0, &d.images, NULL));
    d.x = tare__map_get(&d.images, "x");
    d.model = quantize(model, d.x);
    CHECK_OK(run(d.model, NULL, d.x, &d.expected));
    d.own_count = allowed_processors(d.own, 2);
    tare_model_destroy(model);
    *state = &d;
    return 0;
}

static int tear_down(void **state) {
    digits *d = *state;
    tare_tensor_release(d->expected);
    tare_model_destroy(d->model);
    tare__tensor_map_release(&d->images);
    return 0;
}

static void check_refused(const digits *d, tare_session_options options, tare_status expected,
                          const char *words) {
    tare_session *s = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(tare_session_create(d->model, &options, &s, err), expected);
    assert_null(s);
    if (strstr(tare_error_message(err), words) == NULL)
        fail_msg("expected '%s' in '%s'", words, tare_error_message(err));
    tare_error_destroy(err);
}

static void waiting_is_bounded_and_references_have_no_threads(void **state) {
    const digits *d = *state;
    check_refused(d, (tare_session_options){.spin_us = -2}, TARE_INVALID_ARGUMENT, "found -2");
    check_refused(d, (tare_session_options){.spin_us = 1000001}, TARE_INVALID_ARGUMENT, "1000001");
    check_refused(d, (tare_session_options){.reference = true, .spin_us = 9}, TARE_INVALID_ARGUMENT,
                  "spin_us");
    check_refused(d, (tare_session_options){.spin_us = 9}, TARE_INVALID_ARGUMENT, "no effect");
    check_refused(d, (tare_session_options){.thread_count = 1, .spin_us = TARE_SPIN_NONE},
                  TARE_INVALID_ARGUMENT, "no effect");
    check_refused(d, (tare_session_options){.reference = true, .affinity = "0"},
                  TARE_INVALID_ARGUMENT, "affinity");
    check_refused(d, (tare_session_options){.thread_count = 1025}, TARE_INVALID_ARGUMENT, "1025");
    check_refused(d, (tare_session_options){.thread_count = -1}, TARE_INVALID_ARGUMENT, "-1");
}

static void a_processor_of_its_own_for_each_thread_or_none(void **state) {
    const digits *d = *state;
    char two[32];
    if (d->own_count < 2) skip();
    (void)snprintf(two, sizeof two, "%d,%d", d->own[0], d->own[1]);
    check_refused(d, (tare_session_options){.thread_count = 3, .affinity = two},
                  TARE_INVALID_ARGUMENT, "each of 3 threads, found 2");
    check_refused(d, (tare_session_options){.thread_count = 1, .affinity = two},
                  TARE_INVALID_ARGUMENT, "each of 1 threads, found 2");
    check_refused(d, (tare_session_options){.affinity = "8191"}, TARE_INVALID_ARGUMENT, "8191");
    check_refused(d, (tare_session_options){.affinity = "0-"}, TARE_INVALID_ARGUMENT, "'0-'");
    tare_session *s = NULL;
    const tare_session_options options = {.affinity = two};
    CHECK_OK(tare_session_create(d->model, &options, &s, NULL));
    assert_int_equal(tare_session_thread_count(s), 2);
    tare_session_destroy(s);
}

typedef struct caller {
    const digits *d;
    tare_session_options options;
    pthread_t thread;
    bool is_wrong;
} caller;

static void *run_often(void *user) {
    caller *c = user;
    for (int i = 0; i < 8 && !c->is_wrong; i++) {
        tare_tensor *y = NULL;
        c->is_wrong = run(c->d->model, &c->options, c->d->x, &y) != TARE_OK ||
                      memcmp(y->data, c->d->expected->data, tare__tensor_bytes(y)) != 0;
        tare_tensor_release(y);
    }
    return NULL;
}

// One model, more threads than processors, some of which look and some of which sleep.
static void sessions_beside_each_other_give_the_same_bits(void **state) {
    const digits *d = *state;
    char forth[32], back[32];
    const bool has_two = d->own_count >= 2;
    (void)snprintf(forth, sizeof forth, "%d,%d", d->own[0], d->own[1]);
    (void)snprintf(back, sizeof back, "%d,%d", d->own[1], d->own[0]);
    caller callers[] = {
        {.options = {.thread_count = 2, .affinity = has_two ? forth : NULL, .spin_us = 1000}},
        {.options = {.thread_count = 2, .affinity = has_two ? back : NULL, .spin_us = -1}},
        {.options = {.thread_count = 3, .spin_us = 50}},
        {.options = {.thread_count = 4}},
    };
    enum { CALLERS = sizeof callers / sizeof *callers };
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i].d = d;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, run_often, &callers[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_false(callers[i].is_wrong);
    }
}

static void the_caller_moves_when_it_says_so(void **state) {
    const digits *d = *state;
    char two[32];
    int left[2];
    if (d->own_count < 2) skip();
    (void)snprintf(two, sizeof two, "%d,%d", d->own[1], d->own[0]);
    assert_int_equal(tare_thread_keep(NULL, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_thread_keep("8191", NULL), TARE_INVALID_ARGUMENT);
    CHECK_OK(tare_thread_keep(two, NULL));
    assert_int_equal(allowed_processors(left, 2), 1);
    assert_int_equal(left[0], d->own[1]);
    assert_int_equal(current_processor(), d->own[1]);
    allow_processors(d->own, 2);
}

static void creation_survives_every_failed_allocation(void **state) {
    const digits *d = *state;
    char two[32];
    if (d->own_count < 2) skip();
    (void)snprintf(two, sizeof two, "%d,%d", d->own[0], d->own[1]);
    const tare_session_options options = {.affinity = two, .spin_us = TARE_SPIN_NONE};
    tare_session *s = NULL;
    tare_status status;
    EVERY_ALLOCATION_FAILS(status, status = tare_session_create(d->model, &options, &s, NULL),
                           tare_session_destroy(s))
    EVERY_ALLOCATION_FAILS(status, status = tare_thread_keep(two, NULL), (void)0)
    allow_processors(d->own, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_bounded_and_references_have_no_threads),
        cmocka_unit_test(a_processor_of_its_own_for_each_thread_or_none),
        cmocka_unit_test(sessions_beside_each_other_give_the_same_bits),
        cmocka_unit_test(the_caller_moves_when_it_says_so),
        cmocka_unit_test(creation_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
