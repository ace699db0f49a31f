// SPDX-License-Identifier: Apache-2.0
// Samples of a batch on threads of their own: the same bits as one after the other, whatever the
// batch and the threads, and failures are told.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

#include <pthread.h>

#include "core/system/clock.h"
#include "runtime/plan/replicas.h"
#include "runtime/session/session.h"

#define NN "torch.nn."
#define CONV(in, out, groups)                                                                      \
    "in_channels=" #in ", out_channels=" #out ", kernel_size=(3, 3), stride=(1, 1), "              \
    "padding=(1, 1), dilation=(1, 1), groups=" #groups ", padding_mode='zeros'"

enum { SIZE = 48, MOST_SAMPLES = 17, MOST_THREADS = 4 };

// Layers, a sum, pooling, a mean, and outputs that are others' or the caller's.
static const char code[] = "def forward(self, x):\n"
                           "    first = self.first(x)\n"
                           "    relu = torch.relu(first)\n"
                           "    deep = self.deep(relu)\n"
                           "    add = deep + relu\n"
                           "    wide = self.wide(add)\n"
                           "    pool = torch.nn.functional.max_pool2d(wide, 2)\n"
                           "    mean = torch.nn.functional.adaptive_avg_pool2d(pool, 1)\n"
                           "    return (mean, wide, x)\n";

static tare_model *real_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "first", NN "Conv2d", CONV(4, 32, 1));
    put_module(root, NULL, "deep", NN "Conv2d", CONV(32, 32, 32));
    put_module(root, NULL, "wide", NN "Conv2d", CONV(32, 24, 1));
    return new_model(NULL, root, code);
}

static tare_model *integer_model(void) {
    tare_model *real = real_model();
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *watched = prepared(real, backend, mapping);
    CALIBRATED(watched, 2, 4, SIZE, SIZE);
    tare_model *out = lowered(watched, backend);
    tare_model_destroy(watched);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(real);
    return out;
}

// `some` are the first samples of `all`.
static void check_first(const run_outputs *some, const run_outputs *all) {
    assert_int_equal(some->count, all->count);
    for (size_t i = 0; i < all->count; i++) {
        const tare_tensor *few = some->at[i], *whole = all->at[i];
        const size_t sample = tare__tensor_bytes(whole) / (size_t)whole->shape[0];
        assert_int_equal(tare__tensor_bytes(few), sample * (size_t)few->shape[0]);
        assert_memory_equal(few->data, whole->data, tare__tensor_bytes(few));
    }
}

// --- bits ---

static int64_t block_count(const tare_session *s) {
    tare_plan_memory memory;
    assert_true(tare_session_get_memory(s, &memory));
    return memory.block_count;
}

static bool runs_by_sample(const tare_session *s) {
    return tare__session_plan(s)->samples > 1;
}

static void check_batch(tare_session *s, int threads, const tare_tensor *all, int64_t samples,
                        const run_outputs *expected) {
    tare_tensor *x = NULL;
    CHECK_DONE(tare__tensor_rows(all, 0, samples, &x, job_error()));
    const tare_tensor *in = x;
    run_outputs out = outputs_of(s, &in, 1);
    check_first(&out, expected);
    for (size_t i = 0; i < out.count; i++)
        memset(out.at[i]->data, 0xff, tare__tensor_bytes(out.at[i]));
    CHECK_DONE(tare_session_run_into(s, &in, 1, out.at, out.count, job_error()));
    check_first(&out, expected);
    const bool has_round = runs_by_sample(s) && samples >= threads;
    assert_int_equal(block_count(s), has_round ? threads : 1);
    if (samples >= 16 && threads > 1) assert_true(runs_by_sample(s));
    release_outputs(&out);
    tare_tensor_release(x);
}

static void check_bits(tare_model *model) {
    static const int64_t batches[] = {17, 1, 2, 3, 5, 16};
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *alone = session_on(model, 1);
    run_outputs expected = outputs_of(alone, &in, 1);
    assert_int_equal(expected.count, 3);
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        tare_session *s = session_on(model, threads);
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
            check_batch(s, threads, x, batches[i], &expected);
        tare_session_destroy(s);
    }
    release_outputs(&expected);
    tare_session_destroy(alone);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void floats_have_the_same_bits(void **state) {
    (void)state;
    check_bits(real_model());
}

static void integers_have_the_same_bits(void **state) {
    (void)state;
    check_bits(integer_model());
}

// Of a network of any inputs, on one thread and on four; are the samples of the latter apart?
static bool is_alike(tare_model *m, const tare_tensor *const *x, size_t count) {
    tare_tensor *alone = NULL, *shared = NULL;
    tare_session *one = session_on(m, 1), *four = session_on(m, MOST_THREADS);
    size_t outputs = 0;
    CHECK_DONE(tare_session_run(one, x, count, &alone, 1, &outputs, job_error()));
    CHECK_DONE(tare_session_run(four, x, count, &shared, 1, &outputs, job_error()));
    assert_memory_equal(alone->data, shared->data, tare__tensor_bytes(alone));
    const bool is_apart = tare__plan_replica_count(tare__session_plan(four)) > 1;
    tare_tensor_release(alone);
    tare_tensor_release(shared);
    tare_session_destroy(one);
    tare_session_destroy(four);
    tare_model_destroy(m);
    return is_apart;
}

static void masks_are_those_of_the_sample(void **state) {
    (void)state;
    static const char *const masks[] = {
        "def forward(self, x, mask):\n"
        "    relu = torch.relu(x)\n"
        "    out = torch._C._nn.scaled_dot_product_attention(relu, relu, relu, mask)\n"
        "    return out\n",
        "def forward(self, x, mask):\n"
        "    relu = torch.relu(x)\n"
        "    neg = mask * -3.0\n"
        "    out = torch._C._nn.scaled_dot_product_attention(relu, relu, relu, neg)\n"
        "    return out\n"};
    tare_tensor *x = NEW_INPUT(16, 4, 128, 64), *mask = NEW_INPUT(16, 1, 128, 128);
    for (size_t i = 0; i < 2; i++) {
        const tare_tensor *const in[] = {x, mask};
        assert_true(is_alike(new_model(NULL, new_tree(), masks[i]), in, 2));
    }
    tare_tensor_release(x);
    tare_tensor_release(mask);
}

// Its samples have to do with each other.
static void a_batch_that_is_measured_stays_whole(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(32, 4, 192, 192);
    for (int64_t i = 0; i < x->count / 2; i++) tare__f32(x)[i] *= 4;
    const tare_tensor *in = x;
    assert_false(is_alike(new_model(NULL, new_tree(),
                                    "def forward(self, x):\n"
                                    "    relu = torch.relu(x)\n"
                                    "    bn = torch.nn.functional.batch_norm(relu, None, None)\n"
                                    "    out = torch.relu(bn)\n"
                                    "    return out\n"),
                          &in, 1));
    tare_tensor_release(x);
}

// A round that is nearly full is run as one, the rest of others by all threads together.
static void threads_share_what_is_left(void **state) {
    (void)state;
    static const struct {
        int threads;
        int64_t samples, of_replicas;
    } rows[] = {{2, 16, 16}, {2, 17, 16}, {3, 17, 15}, {4, 17, 16}, {4, 19, 16}, {8, 15, 15}};
    tare_model *model = integer_model();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_tensor *x = NEW_INPUT(rows[i].samples, 4, SIZE, SIZE);
        const tare_tensor *in = x;
        tare_session *s = session_on(model, rows[i].threads);
        run_outputs out = outputs_of(s, &in, 1);
        assert_int_equal(tare__plan_replica_samples(tare__session_plan(s)), rows[i].of_replicas);
        release_outputs(&out);
        tare_session_destroy(s);
        tare_tensor_release(x);
    }
    tare_model_destroy(model);
}

// --- profiles ---

// One run's time, and the share of it that the steps tell.
static double share_of_steps(tare_session *s, const tare_tensor *in) {
    CHECK_DONE(tare_session_profile(s, true, job_error()));
    const uint64_t begin = tare__now_ns();
    run_outputs out = outputs_of(s, &in, 1);
    const uint64_t all = tare__now_ns() - begin;
    release_outputs(&out);
    uint64_t sum = 0;
    tare_step step;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        assert_int_equal(step.run_count, 1);
        assert_true(step.median_ns > 0);
        sum += step.median_ns;
    }
    assert_true(sum <= all);
    return (double)sum / (double)all;
}

// Steps tell the time of all samples, not of one. Where others use the processors, a run waits
// between its steps: of several runs one must not.
static void times_are_those_of_the_run(void **state) {
    (void)state;
    tare_model *model = integer_model();
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    tare_session *s = session_on(model, 2);
    const tare_tensor *in = x;
    run_outputs out = outputs_of(s, &in, 1);
    release_outputs(&out);
    assert_int_equal(block_count(s), 2);
    double share = 0;
    for (int run = 0; run < 1000 && share < 0.25; run++) share = share_of_steps(s, x);
    assert_true(share >= 0.25);
    CHECK_DONE(tare_session_profile(s, false, job_error()));
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// --- failures ---

static tare_status fail_step(const plan_run_state *run, void *state) {
    (void)state;
    return tare__fail(run->err, TARE_UNSUPPORTED, "a step of a replica");
}

// A thread that sleeps through a run takes no sample: sooner or later it takes one.
static tare_status run_until_it_fails(tare_session *s, const tare_tensor *in) {
    tare_status status = TARE_OK;
    for (int turn = 0; turn < 1000 && status == TARE_OK; turn++) {
        run_outputs out = {0};
        status = tare_session_run(s, &in, 1, out.at, MOST_OUTPUTS, &out.count, job_error());
        if (status == TARE_OK) release_outputs(&out);
    }
    return status;
}

static void a_failure_is_told_and_passes(void **state) {
    (void)state;
    static const step_class failing = {.name = "failing", .run = fail_step};
    tare_model *model = integer_model();
    tare_tensor *x = NEW_INPUT(16, 4, SIZE, SIZE);
    tare_session *s = session_on(model, 2);
    const tare_tensor *in = x;
    run_outputs expected = outputs_of(s, &in, 1);
    for (size_t t = 0; t < 2; t++) {
        plan_step *step = &tare__plan_replica(tare__session_plan(s), t)->steps[1];
        const step_class *usual = step->class;
        step->class = &failing;
        for (int turn = 0; turn < 2; turn++)
            CHECK_REFUSED(run_until_it_fails(s, in), TARE_UNSUPPORTED, "a step of a replica");
        step->class = usual;
        run_outputs out = outputs_of(s, &in, 1);
        check_first(&out, &expected);
        release_outputs(&out);
    }
    release_outputs(&expected);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *models[] = {real_model(), integer_model()};
    tare_tensor *x = NEW_INPUT(5, 4, SIZE, SIZE);
    for (size_t i = 0; i < 2; i++) {
        check_profile_without_memory(models[i], x);
        tare_model_destroy(models[i]);
    }
    tare_tensor_release(x);
}

// --- sessions beside each other ---

typedef struct neighbour {
    const tare_model *model;
    const tare_tensor *x;
    const run_outputs *expected;
    bool is_equal;
} neighbour;

static void *run_beside(void *user) {
    neighbour *n = user;
    const tare_session_options options = {.thread_count = 2};
    tare_session *s = NULL;
    n->is_equal = tare_session_create(n->model, &options, &s, NULL) == TARE_OK;
    for (int turn = 0; turn < 5 && n->is_equal; turn++) {
        run_outputs out = {0};
        n->is_equal =
            tare_session_run(s, &n->x, 1, out.at, MOST_OUTPUTS, &out.count, NULL) == TARE_OK &&
            out.count == n->expected->count;
        for (size_t i = 0; i < out.count && n->is_equal; i++)
            n->is_equal = memcmp(out.at[i]->data, n->expected->at[i]->data,
                                 tare__tensor_bytes(out.at[i])) == 0;
        release_outputs(&out);
    }
    tare_session_destroy(s);
    return NULL;
}

static void sessions_run_beside_each_other(void **state) {
    (void)state;
    enum { NEIGHBOURS = 3 };
    tare_model *model = integer_model();
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *alone = session_on(model, 1);
    neighbour neighbours[NEIGHBOURS];
    pthread_t threads[NEIGHBOURS];
    run_outputs expected = outputs_of(alone, &in, 1);
    for (int i = 0; i < NEIGHBOURS; i++) {
        neighbours[i] = (neighbour){.model = model, .x = x, .expected = &expected};
        assert_int_equal(pthread_create(&threads[i], NULL, run_beside, &neighbours[i]), 0);
    }
    for (int i = 0; i < NEIGHBOURS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < NEIGHBOURS; i++) assert_true(neighbours[i].is_equal);
    release_outputs(&expected);
    tare_session_destroy(alone);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_have_the_same_bits),
        cmocka_unit_test(integers_have_the_same_bits),
        cmocka_unit_test(masks_are_those_of_the_sample),
        cmocka_unit_test(a_batch_that_is_measured_stays_whole),
        cmocka_unit_test(threads_share_what_is_left),
        cmocka_unit_test(times_are_those_of_the_run),
        cmocka_unit_test(a_failure_is_told_and_passes),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(sessions_run_beside_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
