// SPDX-License-Identifier: Apache-2.0
// Sessions that share a model: what a run changes belongs to its session, as to torch's module, and
// the model stays as it is. Threads, a session each, give the bits of a session alone.
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ops/classes/classes.h"
#include "support/exported.h"
#include "support/models.h"
#include "support/temp.h"

// What torch leaves in a converted program whose batch norm no pattern took
// (test_qat_conv_bn_fusion_literal_args): a counter that nobody reads.
#define COUNTED                                                                                    \
    "def forward(self, x):\n"                                                                      \
    "    count = self.count\n"                                                                     \
    "    add_ = torch.ops.aten.add_.Tensor(count, 1)\n"                                            \
    "    weight = self.weight\n"                                                                   \
    "    conv2d = torch.ops.aten.conv2d.default(x, weight)\n"                                      \
    "    return conv2d\n"

// And the same with the norm in training, whose variance scales the weight of the next batch
// (conv1d_x86_qat).
#define TRAINED                                                                                    \
    "def forward(self, x):\n"                                                                      \
    "    weight = self.weight\n"                                                                   \
    "    gamma = self.gamma\n"                                                                     \
    "    beta = self.beta\n"                                                                       \
    "    mean = self.mean\n"                                                                       \
    "    var = self.var\n"                                                                         \
    "    count = self.count\n"                                                                     \
    "    add_ = torch.ops.aten.add_.Tensor(count, 1)\n"                                            \
    "    add = torch.ops.aten.add.Tensor(var, 1e-05)\n"                                            \
    "    sqrt = torch.ops.aten.sqrt.default(add)\n"                                                \
    "    div = torch.ops.aten.div.Tensor(gamma, sqrt)\n"                                           \
    "    reshape = torch.ops.aten.reshape.default(div, [-1, 1, 1, 1])\n"                           \
    "    mul = torch.ops.aten.mul.Tensor(weight, reshape)\n"                                       \
    "    conv2d = torch.ops.aten.conv2d.default(x, mul)\n"                                         \
    "    batch_norm = torch.ops.aten.batch_norm.default(conv2d, gamma, beta, mean, var, True, "    \
    "0.1, 1e-05, False)\n"                                                                         \
    "    add_1 = torch.ops.aten.add.Tensor(batch_norm, var)\n"                                     \
    "    return add_1\n"

// Counts its runs in a slice of a tensor, through a view.
#define COUNTING                                                                                   \
    "def forward(self, x):\n"                                                                      \
    "    seen = self.seen\n"                                                                       \
    "    select = torch.ops.aten.select.int(seen, 0, 1)\n"                                         \
    "    add_ = torch.ops.aten.add_.Tensor(select, 1)\n"                                           \
    "    add = torch.ops.aten.add.Tensor(x, add_)\n"                                               \
    "    return add\n"

static void put(module *root, const char *name, tare_tensor *t) {
    CHECK_OK(tare__module_set_tensor(root, name, t, false, NULL));
    tare_tensor_release(t);
}

static void put_ones(module *root, const char *name, int64_t count) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, NULL));
    for (int64_t i = 0; i < count; i++) tare__f32(t)[i] = 1;
    put(root, name, t);
}

static tare_model *exported(const char *code) {
    module *root = new_tree();
    tare_tensor *count = NULL;
    put(root, "weight", NEW_INPUT(4, 4, 3, 3));
    put_ones(root, "gamma", 4);
    put_ones(root, "var", 4);
    put_ones(root, "beta", 4);
    put_ones(root, "mean", 4);
    put_ones(root, "seen", 2);
    CHECK_OK(tare__tensor_scalar_int(0, &count, NULL));
    put(root, "count", count);
    return new_exported(root, code);
}

static tare_model *counted(void) {
    return exported(COUNTED);
}

static tare_model *trained(void) {
    return exported(TRAINED);
}

static tare_model *counting(void) {
    return exported(COUNTING);
}

// Batch norm of the FX flow, in training.
static tare_model *normed(void) {
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=4, out_channels=4, kernel_size=(3, 3)");
    put_module(root, NULL, "bn", "torch.nn.BatchNorm2d", "num_features=4");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    conv = self.conv(x)\n"
                                  "    bn = self.bn(conv)\n"
                                  "    return bn\n");
    CHECK_OK(tare_model_set_training(model, true, NULL));
    return model;
}

static tare_model *prepared_for(bool is_qat) {
    tare_model *model = normed(), *made = NULL;
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(tare_qconfig_mapping_default("x86", is_qat, -1, &mapping, job_error()));
    const tare_prepare_options options = {.qconfig_mapping = mapping};
    CHECK_OK(tare_model_set_training(model, is_qat, NULL));
    CHECK_DONE(
        (is_qat ? tare_prepare_qat_fx : tare_prepare_fx)(model, &options, &made, job_error()));
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
    return made;
}

static tare_model *observed(void) {
    return prepared_for(false);
}

static tare_model *fake_quantized(void) {
    return prepared_for(true);
}

// Its weights are packed once, by whichever session asks first.
static tare_model *packed(void) {
    tare_model *observing = observed(), *made = NULL;
    CALIBRATED(observing, 1, 4, 6, 6);
    CHECK_DONE(tare_convert_fx(observing, NULL, &made, job_error()));
    tare_model_destroy(observing);
    return made;
}

typedef struct kind {
    const char *name;
    tare_model *(*make)(void);
} kind;
static const kind kinds[] = {
    {"counted", counted}, {"trained", trained},   {"counting", counting},
    {"normed", normed},   {"observed", observed}, {"fake quantized", fake_quantized},
    {"packed", packed},
};
enum { KINDS = sizeof kinds / sizeof *kinds, RUNS = 8, THREADS = 8 };

// --- one thread ---

static tare_session *session_of(const tare_model *model, bool reference) {
    const tare_session_options options = {.reference = reference};
    tare_session *s = NULL;
    CHECK_DONE(tare_session_create(model, &options, &s, job_error()));
    return s;
}

static tare_tensor *run(tare_session *s, const tare_tensor *x) {
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_run(s, &x, 1, &y, 1, &count, job_error()));
    return y;
}

static void a_run_leaves_the_model_as_it_was(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 4, 6, 6);
    for (size_t i = 0; i < 2 * (size_t)KINDS; i++) {
        tare_model *model = kinds[i / 2].make();
        size_t before_size = 0, after_size = 0;
        CHECK_DONE(tare_model_write(model, temp_path("model"), job_error()));
        unsigned char *before = temp_read(temp_path("model"), &before_size);
        tare_session *s = session_of(model, i % 2 == 0);
        for (int n = 0; n < 3; n++) tare_tensor_release(run(s, x));
        CHECK_DONE(tare_model_write(model, temp_path("model"), job_error()));
        unsigned char *after = temp_read(temp_path("model"), &after_size);
        if (before_size != after_size || memcmp(before, after, after_size) != 0)
            fail_msg("%s: a run changed the model", kinds[i / 2].name);
        free(before);
        free(after);
        tare_session_destroy(s);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

static void a_session_keeps_what_its_runs_changed(void **state) {
    (void)state;
    tare_model *model = counting();
    tare_tensor *x = NEW_INPUT(1, 4, 4, 4);
    for (int n = 0; n < 2; n++) {
        tare_session *s = session_of(model, n == 0);
        for (int i = 0; i < 3; i++) {
            tare_tensor *y = run(s, x);
            assert_float_equal(tare__f32(y)[0], tare__f32(x)[0] + 2 + (float)i, 0);
            tare_tensor_release(y);
        }
        tare_session_destroy(s);
    }
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// --- many ---

typedef struct job {
    const tare_model *model;
    const tare_tensor *x;
    tare_tensor *wanted[RUNS]; // of a session's first, second, .. run
    atomic_int wrong;
    atomic_bool is_over;
} job;

// Runs a session of its own; nothing of cmocka, which knows one thread.
static void check_runs(job *j) {
    tare_session *s = NULL;
    if (tare_session_create(j->model, NULL, &s, NULL) != TARE_OK) j->wrong++;
    for (int i = 0; i < RUNS && s != NULL; i++) {
        tare_tensor *y = NULL;
        size_t count = 0;
        if (tare_session_run(s, &j->x, 1, &y, 1, &count, NULL) != TARE_OK ||
            y->count != j->wanted[i]->count ||
            memcmp(y->data, j->wanted[i]->data, tare__tensor_bytes(y)) != 0)
            j->wrong++;
        tare_tensor_release(y);
    }
    tare_session_destroy(s);
}

static void *check_once(void *user) {
    check_runs(user);
    return NULL;
}

static void *check_until_over(void *user) {
    job *j = user;
    do check_runs(j);
    while (!j->is_over);
    return NULL;
}

static bool drop(void *user, const char *chars, size_t length) {
    (void)user, (void)chars, (void)length;
    return true;
}

// And others read the model, too.
static void *come_and_go(void *user) {
    job *j = user;
    for (int i = 0; i < 16; i++) {
        tare_session *s = NULL;
        tare_model_facts facts;
        if (tare_session_create(j->model, NULL, &s, NULL) != TARE_OK ||
            tare_model_get_facts(j->model, &facts, NULL) != TARE_OK ||
            tare_model_print(j->model, TARE_PRINT_JSON, drop, NULL, NULL) != TARE_OK)
            j->wrong++;
        tare_session_destroy(s);
    }
    j->is_over = true;
    return NULL;
}

static void in_threads(job *j, void *(*first)(void *), void *(*others)(void *)) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i == 0 ? first : others, j), 0);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void check_kind(const kind *k, void *(*first)(void *), void *(*others)(void *)) {
    tare_model *model = k->make();
    tare_tensor *x = NEW_INPUT(1, 4, 6, 6);
    job j = {.model = model, .x = x};
    tare_session *alone = session_of(model, false);
    for (int i = 0; i < RUNS; i++) j.wanted[i] = run(alone, x);
    tare_session_destroy(alone);
    in_threads(&j, first, others);
    if (j.wrong > 0) fail_msg("%s: %d runs differ", k->name, (int)j.wrong);
    for (int i = 0; i < RUNS; i++) tare_tensor_release(j.wanted[i]);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void eight_sessions_on_one_model_give_the_bits_of_one(void **state) {
    (void)state;
    for (size_t i = 0; i < KINDS; i++) check_kind(&kinds[i], check_once, check_once);
}

static void sessions_come_and_go_beside_those_that_run(void **state) {
    (void)state;
    for (size_t i = 0; i < KINDS; i++) check_kind(&kinds[i], come_and_go, check_until_over);
}

// --- one caller ---

typedef struct intruder {
    tare_session *session;
    const tare_tensor *x;
    int calls, refused; // of those that can say so
    bool saw_plan, is_inside;
    char words[512];
} intruder;

static void note(intruder *i, tare_status status, const tare_error *err) {
    i->calls++;
    i->refused += status == TARE_INVALID_ARGUMENT;
    (void)snprintf(i->words, sizeof i->words, "%s: %s", tare_error_message(err),
                   tare_error_hint(err));
}

static void *intrude(void *user) {
    intruder *i = user;
    tare_tensor *y = NULL;
    tare_step step;
    tare_plan_memory memory;
    size_t count = 0;
    tare_error *err = tare_error_create();
    note(i, tare_session_run(i->session, &i->x, 1, &y, 1, &count, err), err);
    note(i, tare_session_run_into(i->session, &i->x, 1, &y, 0, err), err);
    note(i, tare_session_profile(i->session, true, err), err);
    tare_session_watch(i->session, NULL, NULL);
    i->saw_plan = tare_session_step_count(i->session) > 0 ||
                  tare_session_get_step(i->session, 0, &step) ||
                  tare_session_get_memory(i->session, &memory);
    tare_error_destroy(err);
    return NULL;
}

// Once from another thread, once from the watcher itself.
static tare_status watch(void *user, const char *node_name, const tare_tensor *result,
                         tare_error *err) {
    intruder *i = user;
    pthread_t other;
    (void)node_name, (void)result, (void)err;
    if (i->is_inside) return TARE_OK;
    i->is_inside = true;
    if (pthread_create(&other, NULL, intrude, i) == 0) (void)pthread_join(other, NULL);
    (void)intrude(i);
    return TARE_OK;
}

static void a_second_caller_is_refused(void **state) {
    (void)state;
    tare_model *model = counted();
    tare_tensor *x = NEW_INPUT(1, 4, 6, 6);
    intruder i = {.session = session_of(model, false), .x = x};
    tare_session_watch(i.session, watch, &i);
    tare_tensor_release(run(i.session, x));
    assert_true(i.is_inside);
    assert_int_equal(i.calls, 6);
    assert_int_equal(i.refused, 6);
    assert_false(i.saw_plan);
    CHECK_HOLDS(i.words, "the session is busy");
    CHECK_HOLDS(i.words, "a session for each thread");
    tare_session_watch(i.session, NULL, NULL); // the call has returned
    tare_tensor_release(run(i.session, x));
    tare_session_destroy(i.session);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_leaves_the_model_as_it_was),
        cmocka_unit_test(a_session_keeps_what_its_runs_changed),
        cmocka_unit_test(eight_sessions_on_one_model_give_the_bits_of_one),
        cmocka_unit_test(sessions_come_and_go_beside_those_that_run),
        cmocka_unit_test(a_second_caller_is_refused),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
