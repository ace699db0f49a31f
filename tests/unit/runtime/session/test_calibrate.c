// SPDX-License-Identifier: Apache-2.0
// From raw inputs to statistics: how the data is cut and shared out does not show.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#define NN "torch.nn."
#define CONV(in, out, kernel, pad, groups)                                                         \
    "in_channels=" #in ", out_channels=" #out ", kernel_size=(" #kernel ", " #kernel               \
    "), stride=(1, 1), padding=(" #pad ", " #pad "), dilation=(1, 1), groups=" #groups             \
    ", padding_mode='zeros'"

// --- models ---

typedef struct subject {
    const char *name, *data;
    tare_model *(*make)(void);
} subject;

// Weighted layers, norms that fold and one that does not, residuals, pooling.
static tare_model *make_convolutions(void) {
    module *root = new_tree();
    put_module(root, NULL, "stem", NN "Conv2d", CONV(3, 24, 3, 1, 1));
    put_module(root, NULL, "norm", NN "BatchNorm2d", "num_features=24");
    put_module(root, NULL, "relu", NN "ReLU", "");
    put_module(root, NULL, "deep", NN "Conv2d", CONV(24, 24, 3, 1, 24));
    put_module(root, NULL, "point", NN "Conv2d", CONV(24, 24, 1, 0, 1));
    put_module(root, NULL, "late", NN "BatchNorm2d", "num_features=24");
    put_module(root, NULL, "pool", NN "MaxPool2d",
               "kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False");
    put_module(root, NULL, "mean", NN "AdaptiveAvgPool2d", "output_size=(1, 1)");
    put_module(root, NULL, "linear", NN "Linear", "in_features=24, out_features=33");
    tare_model *model =
        new_model(NULL, root,
                  "def forward(self, x):\n"
                  "    stem = self.stem(x)\n"
                  "    norm = self.norm(stem)\n"
                  "    relu = self.relu(norm)\n"
                  "    deep = self.deep(relu)\n"
                  "    hardswish = torch.nn.functional.hardswish(deep, inplace = False)\n"
                  "    point = self.point(hardswish)\n"
                  "    add = relu + point\n"
                  "    relu_1 = torch.nn.functional.relu(add, inplace = False)\n"
                  "    late = self.late(relu_1)\n"
                  "    pool = self.pool(late)\n"
                  "    mean = self.mean(pool)\n"
                  "    flatten = torch.flatten(mean, 1)\n"
                  "    linear = self.linear(flatten)\n"
                  "    sigmoid = torch.sigmoid(linear)\n"
                  "    return sigmoid\n");
    graph *g = model->root->graph; // as exporters write it
    g->first->meta_json =
        tare__arena_strdup(&g->memory, "{\"example\": {\"shape\": [2, 3, 14, 14], "
                                       "\"dtype\": \"torch.float32\"}}");
    return model;
}

static tare_model *make_transformer(void) {
    module *root = new_tree();
    put_module(root, NULL, "before", NN "LayerNorm", "normalized_shape=(32,)");
    put_module(root, NULL, "after", NN "LayerNorm", "normalized_shape=(32,)");
    static const char *const square[] = {"q", "k", "v", "out"};
    for (size_t i = 0; i < 4; i++)
        put_module(root, NULL, square[i], NN "Linear", "in_features=32, out_features=32");
    put_module(root, NULL, "up", NN "Linear", "in_features=32, out_features=128");
    put_module(root, NULL, "down", NN "Linear", "in_features=128, out_features=32");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    before = self.before(x)\n"
                     "    q = self.q(before)\n"
                     "    k = self.k(before)\n"
                     "    v = self.v(before)\n"
                     "    transpose = k.transpose(1, 2)\n"
                     "    matmul = torch.matmul(q, transpose)\n"
                     "    softmax = torch.nn.functional.softmax(matmul, dim = -1)\n"
                     "    matmul_1 = torch.matmul(softmax, v)\n"
                     "    out = self.out(matmul_1)\n"
                     "    add = x + out\n"
                     "    after = self.after(add)\n"
                     "    up = self.up(after)\n"
                     "    gelu = torch.nn.functional.gelu(up)\n"
                     "    down = self.down(gelu)\n"
                     "    add_1 = add + down\n"
                     "    return add_1\n");
}

static tare_model *make_sequence(void) {
    module *root = new_tree();
    put_module(root, NULL, "wide", NN "Conv1d",
               "in_channels=12, out_channels=20, kernel_size=(5,), stride=(2,), padding=(2,), "
               "dilation=(1,), groups=1, padding_mode='zeros'");
    put_module(root, NULL, "norm", NN "BatchNorm1d", "num_features=20");
    put_module(root, NULL, "pool", NN "AvgPool1d", "kernel_size=(3,), stride=(1,), padding=(1,)");
    put_module(root, NULL, "head", NN "Linear", "in_features=40, out_features=5");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    wide = self.wide(x)\n"
                     "    norm = self.norm(wide)\n"
                     "    pool = self.pool(norm)\n"
                     "    cat = torch.cat([norm, pool], 1)\n"
                     "    mean = cat.mean(2)\n"
                     "    tanh = torch.tanh(mean)\n"
                     "    head = self.head(tanh)\n"
                     "    return head\n");
}

static const subject subjects[] = {
    {"convolutions", "random:37:3:3x14x14", make_convolutions},
    {"transformer", "random:37:4:17x32", make_transformer},
    {"sequence", "random:37:5:12x31", make_sequence},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static tare_qconfig_mapping *mapping_of(const char *activations) {
    tare_observer_spec *activation = tare_observer_spec_create(activations);
    tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(weight, "qscheme", TARE_PER_TENSOR_SYMMETRIC);
    tare_qconfig *q = tare_qconfig_create(activation, weight);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    tare_qconfig_release(q);
    tare_observer_spec_release(activation);
    tare_observer_spec_release(weight);
    return mapping;
}

static tare_model *prepare(const subject *s, const char *activations) {
    tare_model *model = s->make();
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of(activations);
    tare_model *out = prepared(model, backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    return out;
}

// --- runs ---

typedef struct cut {
    int64_t batch, shards;
    int threads;
} cut;

// One shard's state into FOLDER/name.
static void watch(const subject *s, const char *observer, const cut *how, int64_t shard,
                  const char *name) {
    tare_model *model = prepare(s, observer);
    const tare_data_options options = {
        .batch_size = how->batch, .shard_index = shard, .shard_count = how->shards};
    const tare_calibrate_options calibrate = {.thread_count = how->threads};
    tare_data *data = NULL;
    int64_t count = 0;
    CHECK_DONE(tare_data_open(s->data, model, &options, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(model, data, &calibrate, &count, job_error()));
    CHECK_DONE(tare_calibration_write(model, data, count, temp_path(name), job_error()));
    tare_data_close(data);
    tare_model_destroy(model);
}

static void check_equal_files(const char *a, const char *b, const char *what) {
    size_t x_size = 0, y_size = 0;
    unsigned char *x = temp_read(a, &x_size), *y = temp_read(b, &y_size);
    if (x_size != y_size || memcmp(x, y, x_size) != 0) fail_msg("other bytes for %s", what);
    free(x);
    free(y);
}

static void check_cut(const subject *s, const char *observer, const cut *how) {
    enum { MOST = 5 };
    char what[128], paths[MOST][256];
    const char *list[MOST];
    (void)snprintf(what, sizeof what, "%s, %s: batches of %d, %d shards, %d threads", s->name,
                   observer, (int)how->batch, (int)how->shards, how->threads);
    for (int64_t i = 0; i < how->shards; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%d.state", (int)i);
        watch(s, observer, how, i, name);
        (void)snprintf(paths[i], sizeof paths[i], "%s", temp_path(name));
        // Merged in another order for every number of shards and threads.
        list[(i * (how->shards % 2 != 0 ? 2 : 1) + how->threads) % how->shards] = paths[i];
    }
    CHECK_DONE(tare_calibration_merge(NULL, list, (size_t)how->shards, temp_path("merged.state"),
                                      NULL, job_error()));
    check_equal_files(temp_path("whole.state"), temp_path("merged.state"), what);
}

static void check_cuts(const char *observer) {
    static const int64_t batches[] = {1, 7, 16};
    for (size_t i = 0; i < SUBJECTS; i++) {
        watch(&subjects[i], observer, &(cut){.batch = 37, .shards = 1, .threads = 1}, 0,
              "whole.state");
        for (size_t b = 0; b < 3; b++)
            for (int64_t shards = 1; shards <= 5; shards++) {
                // 37 samples are no five batches of 16.
                if ((37 + batches[b] - 1) / batches[b] < shards) continue;
                for (int threads = 1; threads <= 4; threads *= 2)
                    check_cut(&subjects[i], observer, &(cut){batches[b], shards, threads});
            }
    }
}

static void no_cut_shows_in_histograms(void **state) {
    (void)state;
    check_cuts("tare.MergeableHistogramObserver");
}

static void no_cut_shows_in_extremes(void **state) {
    (void)state;
    check_cuts("MinMaxObserver");
}

// The same activations, on every level that the machine has: the input, and what only moves or
// compares it.
static void no_level_shows_in_the_same_activations(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "relu", NN "ReLU", "");
    put_module(root, NULL, "linear", NN "Linear", "in_features=40, out_features=1");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    relu = self.relu(x)\n"
                                  "    linear = self.linear(x)\n"
                                  "    return (relu, linear)\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of("tare.MergeableHistogramObserver");
    static const char *const levels[] = {"scalar", "avx2", "avx512vnni"};
    unsigned char *first = NULL;
    size_t first_size = 0;
    for (size_t i = 0; i < 3; i++) {
        tare_model *p = prepared(model, backend, mapping);
        tare_data *data = NULL;
        assert_int_equal(setenv("TARE_ISA", levels[i], 1), 0);
        if (strcmp(tare_isa_name(), levels[i]) == 0) {
            CHECK_DONE(tare_data_open("random:50:3:40", p, NULL, &data, job_error()));
            CHECK_DONE(tare_calibrate_data(p, data, NULL, NULL, job_error()));
            map saved = {0};
            const module *observer = tare__module_find(p->root, "activation_post_process_0");
            assert_non_null(observer);
            CHECK_DONE(tare__observer_state_io.save(observer, &saved, job_error()));
            CHECK_DONE(tare__safetensors_write(temp_path("level"), &saved, NULL, job_error()));
            size_t size = 0;
            unsigned char *bytes = temp_read(temp_path("level"), &size);
            if (first == NULL) {
                first = bytes;
                first_size = size;
            } else {
                assert_int_equal(size, first_size);
                assert_memory_equal(bytes, first, size);
                free(bytes);
            }
            for (size_t k = 0; k < saved.count; k++) tare_tensor_release(saved.entries[k].value);
            tare__map_release(&saved);
        }
        tare_data_close(data);
        tare_model_destroy(p);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    free(first);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
}

// --- going on ---

static tare_status stop_at(void *user, int64_t done, int64_t total, tare_error *err) {
    (void)total;
    const int64_t *most = user;
    return *most > 0 && done >= *most ? tare__fail(err, TARE_IO, "stopped") : TARE_OK;
}

typedef struct job {
    const char *observer, *data;
    int64_t batch, limit, stop;
    int threads;
} job;

// Up to `stop` samples (0: all) with checkpoints in `path`; the finished state is written there.
static tare_status run_job(const job *j, const char *path) {
    tare_model *model = prepare(&subjects[0], j->observer);
    const tare_data_options options = {.batch_size = j->batch, .sample_limit = j->limit};
    int64_t stop = j->stop, count = 0;
    const tare_calibrate_options calibrate = {.thread_count = j->threads,
                                              .progress = stop_at,
                                              .progress_user = &stop,
                                              .resume_path = path,
                                              .checkpoint_samples = 8};
    tare_data *data = NULL;
    CHECK_DONE(tare_data_open(j->data, model, &options, &data, job_error()));
    tare_status status = tare_calibrate_data(model, data, &calibrate, &count, job_error());
    if (status == TARE_OK) status = tare_calibration_write(model, data, count, path, job_error());
    tare_data_close(data);
    tare_model_destroy(model);
    return status;
}

static const char raw[] = "random:37:3:3x14x14";

static void stopped_work_goes_on_to_the_same_bytes(void **state) {
    (void)state;
    static const char *const observers[] = {"tare.MergeableHistogramObserver", "MinMaxObserver",
                                            "HistogramObserver", "MovingAverageMinMaxObserver"};
    char whole[256], stepwise[256];
    for (size_t i = 0; i < 4; i++)
        for (int threads = 1; threads <= 2; threads++) {
            (void)snprintf(whole, sizeof whole, "%s/w%zu-%d", temp_folder(), i, threads);
            (void)snprintf(stepwise, sizeof stepwise, "%s/p%zu-%d", temp_folder(), i, threads);
            const job all = {observers[i], raw, 4, 0, 0, threads};
            CHECK_DONE(run_job(&all, whole));
            for (int64_t stop = 10; stop < 37; stop += 12) {
                const job step = {observers[i], raw, 4, 0, stop, threads};
                CHECK_REFUSED(run_job(&step, stepwise), TARE_IO, "stopped");
            }
            // What is not finished is said to be so.
            tare_model *fresh = prepare(&subjects[0], observers[i]);
            CHECK_REFUSED(tare_calibration_read(fresh, stepwise, NULL, job_error()),
                          TARE_INVALID_ARGUMENT, "not finished");
            CHECK_REFUSED(tare_calibration_merge(NULL, (const char *[]){stepwise}, 1,
                                                 temp_path("never"), NULL, job_error()),
                          TARE_INVALID_ARGUMENT, "not finished");
            tare_model_destroy(fresh);
            CHECK_DONE(run_job(&all, stepwise));
            check_equal_files(whole, stepwise, observers[i]);
            CHECK_DONE(run_job(&all, stepwise)); // nothing is left to do
            check_equal_files(whole, stepwise, observers[i]);
        }
}

static void other_work_is_not_gone_on_with(void **state) {
    (void)state;
    static const char observer[] = "tare.MergeableHistogramObserver";
    const char *path = temp_path("other");
    CHECK_REFUSED(run_job(&(job){observer, raw, 4, 0, 20, 1}, path), TARE_IO, "stopped");
    static const job others[] = {
        {observer, raw, 8, 0, 0, 1},
        {observer, raw, 4, 30, 0, 1},
        {observer, "random:37:4:3x14x14", 4, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_REFUSED(run_job(&others[i], path), TARE_INVALID_ARGUMENT, "belongs to another job");
    CHECK_REFUSED(run_job(&(job){"MinMaxObserver", raw, 4, 0, 0, 1}, path), TARE_INVALID_ARGUMENT,
                  "with other observers");
    CHECK_DONE(run_job(&(job){observer, raw, 4, 0, 0, 1}, path));
    CHECK_REFUSED(run_job(&(job){observer, raw, 4, 30, 0, 1}, path), TARE_INVALID_ARGUMENT,
                  "belongs to another job");
}

// --- what cannot be cut ---

// A sample by itself is its own mean, and nothing would be left of it.
static void samples_that_meet_run_in_their_batches(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "linear", NN "Linear", "in_features=6, out_features=4");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    mean = x.mean(0)\n"
                                  "    sub = x - mean\n"
                                  "    linear = self.linear(sub)\n"
                                  "    mean_1 = linear.mean(0)\n"
                                  "    return mean_1\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of("MinMaxObserver");
    tare_model *p = prepared(model, backend, mapping);
    const tare_data_options options = {.batch_size = 5};
    const tare_calibrate_options calibrate = {.thread_count = 2};
    const qparams *q = NULL;
    bool is_calibrated = false;
    tare_data *data = NULL;
    CHECK_DONE(tare_data_open("random:10:1:6", p, &options, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(p, data, &calibrate, NULL, job_error()));
    const module *observer = tare__module_find(p->root, "activation_post_process_2");
    assert_non_null(observer);
    CHECK_DONE(tare__observer_qparams(observer, &q, &is_calibrated, job_error()));
    assert_true(q->scale[0] > 0.01);
    tare__qparams_release(q);
    tare_data_close(data);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// Dimension 0 is a sequence: shapes follow it, but no part of it stands for itself.
static void sequences_along_dimension_0_are_not_cut(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "linear", NN "Linear", "in_features=6, out_features=4");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    cumsum = torch.cumsum(x, 0)\n"
                                  "    linear = self.linear(cumsum)\n"
                                  "    return linear\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of("MinMaxObserver");
    double scales[2] = {0};
    for (int i = 0; i < 2; i++) {
        tare_model *p = prepared(model, backend, mapping);
        const tare_data_options options = {.batch_size = i == 0 ? 30 : 1};
        const qparams *q = NULL;
        bool is_calibrated = false;
        tare_data *data = NULL;
        CHECK_DONE(tare_data_open("random:30:1:6", p, &options, &data, job_error()));
        CHECK_DONE(tare_calibrate_data(p, data, NULL, NULL, job_error()));
        const module *observer = tare__module_find(p->root, "activation_post_process_0");
        assert_non_null(observer);
        CHECK_DONE(tare__observer_qparams(observer, &q, &is_calibrated, job_error()));
        scales[i] = q->scale[0];
        tare__qparams_release(q);
        tare_data_close(data);
        tare_model_destroy(p);
    }
    assert_true(scales[0] > 1.5 * scales[1]); // sums of thirty, and of one
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// A program that was exported for one sample: batches are samples, and threads share them out.
static void a_fixed_batch_of_one_is_shared_out(void **state) {
    (void)state;
    tare_model *model = make_sequence();
    graph *g = model->root->graph;
    g->first->meta_json = tare__arena_strdup(
        &g->memory, "{\"val\": {\"shape\": [1, 12, 31], \"dtype\": \"torch.float32\"}}");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of("tare.MergeableHistogramObserver");
    for (int threads = 1; threads <= 3; threads++) {
        tare_model *p = prepared(model, backend, mapping);
        const tare_calibrate_options calibrate = {.thread_count = threads};
        int64_t count = 0;
        tare_data *data = NULL;
        CHECK_DONE(tare_data_open("random:20:1", p, NULL, &data, job_error()));
        CHECK_DONE(tare_calibrate_data(p, data, &calibrate, &count, job_error()));
        assert_int_equal(count, 20);
        CHECK_DONE(tare_calibration_write(p, data, count, temp_path(threads == 1 ? "one" : "more"),
                                          job_error()));
        if (threads > 1) check_equal_files(temp_path("one"), temp_path("more"), "threads");
        tare_data_close(data);
        tare_model_destroy(p);
    }
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    tare_model *model = prepare(&subjects[0], "MinMaxObserver");
    tare_data *data = NULL;
    CHECK_DONE(tare_data_open(raw, model, NULL, &data, job_error()));
    const tare_calibrate_options threads = {.thread_count = -1};
    CHECK_REFUSED(tare_calibrate_data(model, data, &threads, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "threads");
    const tare_calibrate_options every = {.checkpoint_samples = 4};
    CHECK_REFUSED(tare_calibrate_data(model, data, &every, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "needs a path");
    tare_data_close(data);
    tare_model_destroy(model);
}

// The first sample that fails is the one that is told of, whoever ran it.
static void a_failure_on_any_thread_is_told(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "linear", NN "Linear", "in_features=4, out_features=4");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    sqrt = torch.sqrt(x)\n"
                                  "    linear = self.linear(sqrt)\n"
                                  "    return linear\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of("tare.MergeableHistogramObserver");
    for (int threads = 1; threads <= 3; threads++) {
        tare_model *p = prepared(model, backend, mapping);
        tare_data *data = NULL;
        const tare_calibrate_options calibrate = {.thread_count = threads};
        CHECK_DONE(tare_data_open("random:20:1:4", p, NULL, &data, job_error()));
        CHECK_REFUSED(tare_calibrate_data(p, data, &calibrate, NULL, job_error()),
                      TARE_INVALID_ARGUMENT, "found NaN");
        tare_data_close(data);
        tare_model_destroy(p);
    }
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static tare_status few_samples(const tare_model *like, tare_qconfig_mapping *mapping,
                               tare_backend_config *backend, const char *path) {
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = mapping};
    const tare_data_options pairs = {.batch_size = 2};
    const tare_calibrate_options calibrate = {
        .thread_count = 2, .resume_path = path, .checkpoint_samples = 2};
    tare_model *p = NULL;
    tare_data *data = NULL;
    tare_status status = tare_prepare_fx(like, &options, &p, NULL);
    if (status == TARE_OK) status = tare_data_open("random:4:1:4", p, &pairs, &data, NULL);
    if (status == TARE_OK) status = tare_calibrate_data(p, data, &calibrate, NULL, NULL);
    tare_data_close(data);
    tare_model_destroy(p);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "linear", NN "Linear", "in_features=4, out_features=4");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    linear = self.linear(x)\n"
                                  "    return linear\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = mapping_of("MinMaxObserver");
    const char *path = temp_path("memory");
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = few_samples(model, mapping, backend, path),
                           (void)remove(path));
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cut_shows_in_histograms),
        cmocka_unit_test(no_cut_shows_in_extremes),
        cmocka_unit_test(no_level_shows_in_the_same_activations),
        cmocka_unit_test(stopped_work_goes_on_to_the_same_bytes),
        cmocka_unit_test(other_work_is_not_gone_on_with),
        cmocka_unit_test(samples_that_meet_run_in_their_batches),
        cmocka_unit_test(sequences_along_dimension_0_are_not_cut),
        cmocka_unit_test(a_fixed_batch_of_one_is_shared_out),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_failure_on_any_thread_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
