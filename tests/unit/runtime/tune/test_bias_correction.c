// SPDX-License-Identifier: Apache-2.0
// Bias correction: afterwards the mean of every layer's output is the float model's, whichever way
// a graph has the layer, and whatever the threads and batches.

#include "support/test.h"

#include <math.h>

#include "core/system/clock.h"
#include "core/tensor/tensor.h"
#include "golden/networks.h"
#include "runtime/tune/bias_correction.h"
#include "support/models.h"
#include "tare/bias_correction.h"

#define NN "torch.nn."
enum { SAMPLES = 6, LAYERS = 6, MOST_NODES = 16, MOST_CHANNELS = 64 };

// --- models ---

// Without bias, fused with a relu, depthwise, transposed, and functions with and without one.
static tare_model *ladder(void) {
    module *root = new_tree();
    put_module(root, NULL, "stem", NN "Conv2d",
               "in_channels=3, out_channels=8, kernel_size=3, padding=1, bias=False");
    put_module(root, NULL, "deep", NN "Conv2d",
               "in_channels=8, out_channels=8, kernel_size=3, padding=1, groups=8");
    put_module(root, NULL, "point", NN "Conv2d", "in_channels=8, out_channels=6, kernel_size=1");
    put_module(root, NULL, "relu", NN "ReLU", "");
    put_module(root, NULL, "grow", NN "ConvTranspose2d",
               "in_channels=6, out_channels=4, kernel_size=2, stride=2");
    put_module(root, NULL, "shape", NN "Linear", "in_features=256, out_features=10");
    put_module(root, NULL, "last", NN "Linear", "in_features=10, out_features=5");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    stem = self.stem(x)\n"
                     "    hardswish = torch.nn.functional.hardswish(stem, inplace = False)\n"
                     "    deep = self.deep(hardswish)\n"
                     "    hardswish_1 = torch.nn.functional.hardswish(deep, inplace = False)\n"
                     "    point = self.point(hardswish_1)\n"
                     "    relu = self.relu(point)\n"
                     "    grow = self.grow(relu)\n"
                     "    flatten = torch.flatten(grow, 1)\n"
                     "    shape_weight = self.shape.weight\n"
                     "    linear = torch._C._nn.linear(flatten, shape_weight)\n"
                     "    last_weight = self.last.weight\n"
                     "    last_bias = self.last.bias\n"
                     "    linear_1 = torch._C._nn.linear(linear, last_weight, bias = last_bias)\n"
                     "    return linear_1\n");
}

static const char *const ladder_nodes[] = {"stem", "deep", "grow", "linear", "linear_1", NULL};

typedef struct flow {
    tare_model *model, *prepared;
    tare_backend_config *backend;
} flow;

static const char data_spec[] = "random:6:1:3x4x4";

static void watch_data(tare_model *m) {
    tare_data *data = NULL;
    CHECK_DONE(tare_data_open(data_spec, m, NULL, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(m, data, NULL, NULL, job_error()));
    tare_data_close(data);
}

static flow open_flow(tare_model *model) {
    flow f = {.model = model, .backend = builtin_backend("native")};
    tare_qconfig_mapping *mapping = default_mapping("qnnpack");
    f.prepared = prepared(model, f.backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    return f;
}

static flow open_calibrated(tare_model *model) {
    const flow f = open_flow(model);
    watch_data(f.prepared);
    return f;
}

static void close_flow(const flow *f) {
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->model);
    tare_backend_config_destroy(f->backend);
}

typedef struct quantizer {
    const tare_convert_options *convert;
    uint64_t nap; // nanoseconds that it takes longer
} quantizer;

static tare_status quantize(void *user, const tare_model *p, tare_model **out, tare_error *err) {
    const quantizer *q = user;
    tare__job_clock_pass(q->nap);
    return tare_convert_to_reference_fx(p, q->convert, out, err);
}

static tare_status correct_by(const flow *f, const quantizer *q,
                              const tare_bias_correction_options *options, int64_t batch_size,
                              tare_bias_correction_result *result, tare_model **out) {
    const tare_data_options cut = {.batch_size = batch_size};
    tare_data *data = NULL;
    TARE_TRY(tare_data_open(data_spec, f->prepared, &cut, &data, job_error()));
    const tare_status status =
        q->nap > 0 ? tare_correct_biases(f->prepared, data, quantize, (void *)q, // NOLINT: read
                                         options, result, out, job_error())
                   : tare_correct_biases_fx(f->prepared, data, q->convert, options, result, out,
                                            job_error());
    tare_data_close(data);
    return status;
}

static tare_status correct(const flow *f, const tare_bias_correction_options *options,
                           int64_t batch_size, tare_model **out) {
    const tare_convert_options convert = {.struct_size = sizeof convert, .backend = f->backend};
    return correct_by(f, &(quantizer){.convert = &convert}, options, batch_size, NULL, out);
}

static tare_model *corrected(const flow *f) {
    tare_model *out = NULL;
    CHECK_DONE(correct(f, NULL, 0, &out));
    return out;
}

// --- what nodes give on average ---

typedef struct node_means {
    const char *const *names;
    double sum[MOST_NODES][MOST_CHANNELS];
    int64_t channels[MOST_NODES], count[MOST_NODES];
} node_means;

static tare_status add_node(void *user, const char *name, const tare_tensor *t, tare_error *err) {
    node_means *m = user;
    (void)err;
    for (size_t i = 0; m->names[i] != NULL; i++) {
        if (strcmp(m->names[i], name) != 0) continue;
        const int64_t inner = t->ndim == 4 ? t->shape[2] * t->shape[3] : 1;
        m->channels[i] = t->shape[1];
        m->count[i] += t->count / t->shape[1];
        assert_true(t->shape[1] <= MOST_CHANNELS);
        for (int64_t k = 0; k < t->count; k++)
            m->sum[i][k / inner % t->shape[1]] += (double)tare__f32(t)[k];
    }
    return TARE_OK;
}

static node_means means_of(const tare_model *m, const char *spec, const char *const *names) {
    const tare_session_options options = {.reference = true};
    const tare_data_options one = {.batch_size = 1};
    node_means means = {.names = names};
    tare_session *session = NULL;
    tare_data *data = NULL;
    CHECK_DONE(tare_session_create(m, &options, &session, job_error()));
    tare_session_watch(session, add_node, &means);
    CHECK_DONE(tare_data_open(spec, m, &one, &data, job_error()));
    for (bool done = false; !done;) {
        tare_batch batch = {.struct_size = sizeof batch};
        CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
        tare_tensor *out[4];
        size_t count = 0;
        if (done) break;
        CHECK_DONE(tare_session_run(session, batch.inputs, batch.input_count, out, 4, &count,
                                    job_error()));
        for (size_t i = 0; i < count; i++) tare_tensor_release(out[i]);
    }
    tare_data_close(data);
    tare_session_destroy(session);
    return means;
}

// How far the means are from each other, over all channels.
static double distance(const node_means *a, const node_means *b, size_t i) {
    double most = 0;
    assert_true(a->count[i] > 0 && a->count[i] == b->count[i]);
    for (int64_t c = 0; c < a->channels[i]; c++) {
        const double d = fabs(a->sum[i][c] - b->sum[i][c]) / (double)a->count[i];
        if (d > most) most = d;
    }
    return most;
}

static void check_means(const node_means *exact, const node_means *before,
                        const node_means *after) {
    for (size_t i = 0; exact->names[i] != NULL; i++) {
        if (!(distance(exact, before, i) > 1e-4))
            fail_msg("%s: nothing to correct", exact->names[i]);
        if (!(distance(exact, after, i) < 2e-6))
            fail_msg("%s: the mean is off by %g", exact->names[i], distance(exact, after, i));
    }
}

// --- tests ---

static void every_layer_has_the_mean_of_the_float_model(void **state) {
    const flow f = open_calibrated(ladder());
    (void)state;
    tare_model *better = corrected(&f), *was = referenced(f.prepared, f.backend),
               *is = referenced(better, f.backend);
    const node_means exact = means_of(f.model, data_spec, ladder_nodes),
                     before = means_of(was, data_spec, ladder_nodes),
                     after = means_of(is, data_spec, ladder_nodes);
    check_means(&exact, &before, &after);
    tare_model_destroy(is);
    tare_model_destroy(was);
    tare_model_destroy(better);
    close_flow(&f);
}

static tare_model *first_layer(bool has_relu) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", "in_channels=3, out_channels=8, kernel_size=3");
    put_module(root, NULL, "b", NN "ReLU", "");
    return new_model(NULL, root,
                     has_relu ? "def forward(self, x):\n"
                                "    a = self.a(x)\n"
                                "    b = self.b(a)\n"
                                "    return b\n"
                              : "def forward(self, x):\n"
                                "    a = self.a(x)\n"
                                "    return a\n");
}

// What follows a layer within its module does not change what is wrong with the layer.
static void a_fused_layer_is_corrected_before_its_activation(void **state) {
    const flow plain = open_calibrated(first_layer(false)),
               fused = open_calibrated(first_layer(true));
    tare_model *a = corrected(&plain), *b = corrected(&fused);
    (void)state;
    CHECK_HOLDS(printed(b), "ConvReLU2d");
    check_same_tensor(tare__module_find_tensor(a->root, "a.bias"),
                      tare__module_find_tensor(b->root, "a.0.bias"));
    tare_model_destroy(b);
    tare_model_destroy(a);
    close_flow(&fused);
    close_flow(&plain);
}

static tare_status convert_program(void *user, const tare_model *p, tare_model **out,
                                   tare_error *err) {
    (void)user;
    return tare_convert_pt2e(p, NULL, out, err);
}

static void layers_of_programs_are_corrected(void **state) {
    static const char *const names[] = {"conv2d", "conv2d_1", "conv2d_7", "conv2d_19", NULL};
    const char *spec = "tests/data/small_resnet18/input.npz";
    tare_model *model = NULL, *better = NULL, *was = NULL, *is = NULL;
    tare_data *data = NULL;
    tare_bias_correction_result result = {.struct_size = sizeof result};
    (void)state;
    CHECK_DONE(tare_model_read("tests/data/small_resnet18/model.pt2", NULL, &model, job_error()));
    tare_model *p = prepare_program(model, "XNNPACKQuantizer", "", false);
    CHECK_DONE(tare_data_open(spec, p, NULL, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(p, data, NULL, NULL, job_error()));
    CHECK_DONE(tare_data_rewind(data, job_error()));
    CHECK_DONE(tare_model_set_training(p, false, job_error()));
    CHECK_DONE(
        tare_correct_biases(p, data, convert_program, NULL, NULL, &result, &better, job_error()));
    assert_int_equal(result.layer_count, 21);
    assert_int_equal(result.skipped_count, 0);
    CHECK_HOLDS(decided(better, "conv2d_7"), "correct biases: corrected: ");
    CHECK_DONE(tare_convert_pt2e(p, NULL, &was, job_error()));
    CHECK_DONE(tare_convert_pt2e(better, NULL, &is, job_error()));
    const node_means exact = means_of(p, spec, names), before = means_of(was, spec, names),
                     after = means_of(is, spec, names);
    check_means(&exact, &before, &after);
    tare_model_destroy(is);
    tare_model_destroy(was);
    tare_model_destroy(better);
    tare_data_close(data);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

typedef struct told {
    size_t count, new_count;
} told;

static tare_status count_layer(void *user, const tare_corrected_bias *bias, tare_error *err) {
    told *t = user;
    (void)err;
    assert_true(bias->largest_shift >= bias->rms_shift && bias->rms_shift > 0);
    t->count++;
    t->new_count += bias->is_new;
    return TARE_OK;
}

static void layers_without_a_bias_get_one(void **state) {
    const flow f = open_calibrated(ladder());
    told seen = {0};
    const tare_bias_correction_options options = {
        .struct_size = sizeof options, .watcher = count_layer, .watcher_user = &seen};
    tare_model *better = NULL;
    (void)state;
    CHECK_DONE(correct(&f, &options, 0, &better));
    assert_int_equal(seen.count, 6);
    assert_int_equal(seen.new_count, 2);
    assert_null(tare__module_find_tensor(f.prepared->root, "stem.bias"));
    assert_non_null(tare__module_find_tensor(better->root, "stem.bias"));
    CHECK_HOLDS(decided(better, "stem"), "a new bias of 8 channels");
    CHECK_HOLDS(printed(better), "linear_bias = self.linear_bias");
    CHECK_LACKS(printed(f.prepared), "linear_bias");
    tare_model *q = lowered(better, f.backend);
    CHECK_HOLDS(printed(q), "torch.ops.quantized.linear");
    tare_model_destroy(q);
    tare_model_destroy(better);
    close_flow(&f);
}

static void check_same_biases(const tare_model *a, const tare_model *b) {
    static const char *const paths[] = {"stem.bias", "deep.bias",   "point.0.bias",
                                        "grow.bias", "linear_bias", "last.bias"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        check_same_tensor(tare__module_find_tensor(a->root, paths[i]),
                          tare__module_find_tensor(b->root, paths[i]));
}

static void threads_and_batches_do_not_show(void **state) {
    const flow f = open_calibrated(ladder());
    tare_model *wanted = corrected(&f);
    (void)state;
    for (int threads = 1; threads <= 4; threads++)
        for (int64_t batch = 1; batch <= SAMPLES; batch++) {
            const tare_bias_correction_options options = {.struct_size = sizeof options,
                                                          .thread_count = threads};
            tare_model *found = NULL;
            CHECK_DONE(correct(&f, &options, batch, &found));
            check_same_biases(wanted, found);
            tare_model_destroy(found);
        }
    tare_model_destroy(wanted);
    close_flow(&f);
}

static void no_more_samples_are_read_than_asked_for(void **state) {
    const flow f = open_calibrated(ladder());
    const tare_bias_correction_options few = {.struct_size = sizeof few, .sample_limit = 5};
    tare_model *all = corrected(&f), *cut = NULL, *by_one = NULL;
    (void)state;
    CHECK_DONE(correct(&f, &few, 4, &cut)); // in the middle of a batch
    CHECK_DONE(correct(&f, &few, 1, &by_one));
    CHECK_HOLDS(decided(cut, "stem"), "(5 samples)");
    check_same_biases(cut, by_one);
    const tare_tensor *a = tare__module_find_tensor(all->root, "deep.bias"),
                      *b = tare__module_find_tensor(cut->root, "deep.bias");
    assert_memory_not_equal(a->data, b->data, 8 * sizeof(float));
    tare_model_destroy(by_one);
    tare_model_destroy(cut);
    tare_model_destroy(all);
    close_flow(&f);
}

// --- a time limit, by a clock that moves only in naps ---

static int hold_clock(void **state) {
    (void)state;
    tare__job_clock_hold();
    return 0;
}

// After each round of samples in float; after layers only if no sample was dropped.
static tare_status take_a_nap(void *user, int64_t done, int64_t total, tare_error *err) {
    (void)done, (void)err;
    if (total == SAMPLES + LAYERS) tare__job_clock_pass(*(const uint64_t *)user);
    return TARE_OK;
}

// Corrects with one sample a batch; the caller destroys *out.
static tare_bias_correction_result correct_in_time(const flow *f, double seconds, uint64_t nap,
                                                   int threads, tare_model **out) {
    const tare_bias_correction_options options = {.struct_size = sizeof options,
                                                  .progress = take_a_nap,
                                                  .progress_user = &nap,
                                                  .thread_count = threads,
                                                  .seconds = seconds};
    const tare_convert_options convert = {.struct_size = sizeof convert, .backend = f->backend};
    const quantizer q = {.convert = &convert};
    tare_bias_correction_result result = {.struct_size = sizeof result};
    CHECK_DONE(correct_by(f, &q, &options, 1, &result, out));
    assert_int_equal(result.layer_count + result.skipped_count, LAYERS);
    return result;
}

// Quantized runs are expected to take twice as long as those in float.
static void fewer_samples_are_used_where_time_is_short(void **state) {
    const flow f = open_calibrated(ladder());
    tare_model *found = NULL;
    (void)state;
    const tare_bias_correction_result r = correct_in_time(&f, 4, 600000000, 1, &found);
    assert_int_equal(r.sample_count, 2);
    CHECK_HOLDS(decided(found, "stem"), "samples)");
    tare_model_destroy(found);
    close_flow(&f);
}

// Four samples run at a time, in 0.9 s; with the quantized runs they would take 2.7 s.
static void samples_that_have_run_are_dropped_if_they_do_not_fit(void **state) {
    const flow f = open_calibrated(ladder());
    tare_model *found = NULL;
    (void)state;
    const tare_bias_correction_result r = correct_in_time(&f, 2.2, 900000000, 4, &found);
    assert_in_range(r.sample_count, 1, 3);
    CHECK_HOLDS(decided(found, "stem"), "samples)");
    tare_model_destroy(found);
    close_flow(&f);
}

// Time is left when the first sample has run, but too little for its quantized run.
static void where_no_sample_fits_no_layer_is_corrected(void **state) {
    const flow f = open_calibrated(ladder());
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        tare_model *found = NULL;
        const double seconds = threads == 1 ? 1 : 0.3;
        const tare_bias_correction_result r =
            correct_in_time(&f, seconds, 500000000, threads, &found);
        assert_int_equal(r.sample_count, 0);
        assert_int_equal(r.layer_count, 0);
        CHECK_HOLDS(decided(found, "stem"), "not corrected: the time was over");
        tare_model_destroy(found);
    }
    close_flow(&f);
}

// What comes before the first sample is not part of what a sample takes.
static void slow_quantization_costs_no_samples(void **state) {
    const flow f = open_calibrated(ladder());
    const tare_convert_options convert = {.struct_size = sizeof convert, .backend = f.backend};
    const quantizer slow = {.convert = &convert, .nap = 1500000000};
    const tare_bias_correction_options options = {.struct_size = sizeof options, .seconds = 4};
    tare_bias_correction_result r = {.struct_size = sizeof r};
    tare_model *found = NULL;
    (void)state;
    CHECK_DONE(correct_by(&f, &slow, &options, 1, &r, &found));
    assert_int_equal(r.sample_count, SAMPLES);
    assert_int_equal(r.layer_count, LAYERS);
    tare_model_destroy(found);
    close_flow(&f);
}

static void without_time_no_layer_is_corrected(void **state) {
    const flow f = open_calibrated(ladder());
    const tare_bias_correction_options options = {.struct_size = sizeof options, .seconds = 1e-9};
    tare_model *found = NULL;
    (void)state;
    CHECK_DONE(correct(&f, &options, 1, &found));
    CHECK_HOLDS(decided(found, "stem"), "not corrected: the time was over");
    check_same_tensor(tare__module_find_tensor(f.prepared->root, "last.bias"),
                      tare__module_find_tensor(found->root, "last.bias"));
    tare_model_destroy(found);
    close_flow(&f);
}

// The record of the model that was given tells of another job.
static void the_record_tells_whether_time_was_short(void **state) {
    flow f = open_calibrated(ladder());
    const tare_bias_correction_options options = {.struct_size = sizeof options, .seconds = 1e-9};
    tare_model *late = NULL, *first = f.prepared;
    (void)state;
    CHECK_DONE(correct(&f, &options, 1, &late));
    assert_true(tare__bias_correction_is_late(first, late));
    f.prepared = late;
    tare_model *better = corrected(&f);
    assert_false(tare__bias_correction_is_late(late, better));
    tare_model_destroy(better);
    tare_model_destroy(late);
    f.prepared = first;
    close_flow(&f);
}

// Nor of batches that cannot be cut into samples.
static void a_batch_that_runs_as_a_whole_is_cut_short(void **state) {
    const tare_bias_correction_options few = {.struct_size = sizeof few, .sample_limit = 5};
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", "in_channels=3, out_channels=8, kernel_size=3");
    const flow f = open_calibrated(new_model(NULL, root,
                                             "def forward(self, x):\n"
                                             "    a = self.a(x)\n"
                                             "    mean = torch.mean(a, dim = [0], keepdim = True)\n"
                                             "    sub = a - mean\n"
                                             "    return sub\n"));
    tare_model *cut = NULL, *other = NULL;
    (void)state;
    CHECK_DONE(correct(&f, &few, 4, &cut));
    CHECK_DONE(correct(&f, &few, 6, &other));
    CHECK_HOLDS(decided(cut, "a"), "(5 samples)");
    CHECK_HOLDS(decided(other, "a"), "(5 samples)");
    tare_model_destroy(other);
    tare_model_destroy(cut);
    close_flow(&f);
}

static void what_layers_share_stays_as_it_is(void **state) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=4, out_features=4");
    put_module(root, NULL, "b", NN "Linear", "in_features=4, out_features=4");
    const flow f = open_calibrated(
        new_model(NULL, root,
                  "def forward(self, x):\n"
                  "    a = self.a(x)\n"
                  "    a_1 = self.a(a)\n"
                  "    b_weight = self.b.weight\n"
                  "    b_bias = self.b.bias\n"
                  "    linear = torch._C._nn.linear(a_1, b_weight, bias = b_bias)\n"
                  "    linear_1 = torch._C._nn.linear(linear, b_weight, bias = b_bias)\n"
                  "    return linear_1\n"));
    tare_model *better = corrected(&f);
    (void)state;
    CHECK_HOLDS(decided(better, "a_1"), "not corrected: its module is called more than once");
    CHECK_HOLDS(decided(better, "linear"), "not corrected: its bias has other readers");
    check_same_tensor(tare__module_find_tensor(f.prepared->root, "a.bias"),
                      tare__module_find_tensor(better->root, "a.bias"));
    tare_model_destroy(better);
    close_flow(&f);
}

// --- refusals ---

static tare_status convert_to_the_end(void *user, const tare_model *p, tare_model **out,
                                      tare_error *err) {
    (void)user;
    return tare_convert_fx(p, NULL, out, err);
}

static void what_cannot_be_corrected_is_refused(void **state) {
    flow f = open_flow(ladder());
    tare_data *data = NULL;
    tare_model *out = NULL;
    tare_bias_correction_options options = {.struct_size = sizeof options, .thread_count = -1};
    (void)state;
    CHECK_REFUSED(correct(&f, NULL, 0, &out), TARE_INVALID_ARGUMENT, "observer");
    watch_data(f.prepared);
    CHECK_REFUSED(correct(&f, &options, 0, &out), TARE_INVALID_ARGUMENT, "threads");
    options = (tare_bias_correction_options){.struct_size = sizeof options, .sample_limit = -1};
    CHECK_REFUSED(correct(&f, &options, 0, &out), TARE_INVALID_ARGUMENT, "samples");
    CHECK_DONE(tare_data_open(data_spec, f.prepared, NULL, &data, job_error()));
    CHECK_REFUSED(tare_correct_biases_fx(f.model, data, NULL, NULL, NULL, &out, job_error()),
                  TARE_INVALID_ARGUMENT, "prepared model");
    CHECK_REFUSED(tare_correct_biases(f.prepared, data, convert_to_the_end, NULL, NULL, NULL, &out,
                                      job_error()),
                  TARE_INVALID_ARGUMENT, "expected the reference form");
    CHECK_REFUSED(tare_correct_biases_fx(f.prepared, NULL, NULL, NULL, NULL, &out, job_error()),
                  TARE_INVALID_ARGUMENT, "expected data");
    tare_batch batch = {.struct_size = sizeof batch};
    for (bool done = false; !done;) CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    CHECK_REFUSED(tare_correct_biases_fx(f.prepared, data, NULL, NULL, NULL, &out, job_error()),
                  TARE_INVALID_ARGUMENT, "no samples");
    CHECK_DONE(tare_model_set_training(f.prepared, true, job_error()));
    CHECK_REFUSED(correct(&f, NULL, 0, &out), TARE_INVALID_ARGUMENT, "training mode");
    assert_null(out);
    tare_data_close(data);
    close_flow(&f);
}

static void models_that_training_corrects_are_refused(void **state) {
    flow f = {.model = first_layer(true), .backend = builtin_backend("x86")};
    tare_qconfig_mapping *mapping = NULL;
    tare_model *out = NULL;
    (void)state;
    CHECK_DONE(tare_qconfig_mapping_default("x86", true, -1, &mapping, job_error()));
    CHECK_DONE(tare_prepare_qat_fx(
        f.model, &(tare_prepare_options){.backend = f.backend, .qconfig_mapping = mapping},
        &f.prepared, job_error()));
    CHECK_DONE(tare_model_set_training(f.prepared, false, job_error()));
    CHECK_REFUSED(correct(&f, NULL, 0, &out), TARE_UNSUPPORTED, "fake quantizers");
    tare_qconfig_mapping_destroy(mapping);
    close_flow(&f);
}

static void every_allocation_may_fail(void **state) {
    const flow f = open_calibrated(first_layer(true));
    const tare_bias_correction_options options = {.struct_size = sizeof options, .thread_count = 2};
    tare_model *out = NULL;
    tare_status status = TARE_OK;
    (void)state;
    SOME_ALLOCATIONS_FAIL(3, status, status = correct(&f, &options, 4, &out),
                          tare_model_destroy(out));
    close_flow(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_has_the_mean_of_the_float_model),
        cmocka_unit_test(a_fused_layer_is_corrected_before_its_activation),
        cmocka_unit_test(layers_of_programs_are_corrected),
        cmocka_unit_test(layers_without_a_bias_get_one),
        cmocka_unit_test(threads_and_batches_do_not_show),
        cmocka_unit_test(no_more_samples_are_read_than_asked_for),
        cmocka_unit_test(fewer_samples_are_used_where_time_is_short),
        cmocka_unit_test(samples_that_have_run_are_dropped_if_they_do_not_fit),
        cmocka_unit_test(where_no_sample_fits_no_layer_is_corrected),
        cmocka_unit_test(slow_quantization_costs_no_samples),
        cmocka_unit_test(without_time_no_layer_is_corrected),
        cmocka_unit_test(the_record_tells_whether_time_was_short),
        cmocka_unit_test(a_batch_that_runs_as_a_whole_is_cut_short),
        cmocka_unit_test(what_layers_share_stays_as_it_is),
        cmocka_unit_test(what_cannot_be_corrected_is_refused),
        cmocka_unit_test(models_that_training_corrects_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, hold_clock, NULL);
}
