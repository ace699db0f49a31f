// SPDX-License-Identifier: Apache-2.0
// The last steps of a batch that runs sample by sample, of all samples at once: the same bits as of
// each sample alone, whatever else is an output, and told as what they are.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

#include "core/system/clock.h"
#include "runtime/plan/batched_tail.h"
#include "runtime/plan/replicas.h"
#include "runtime/session/session.h"

#define NN "torch.nn."
#define CONV(in, out, size, pad, groups)                                                           \
    "in_channels=" #in ", out_channels=" #out ", kernel_size=(" #size ", " #size "), "             \
    "stride=(1, 1), padding=(" #pad ", " #pad "), dilation=(1, 1), groups=" #groups                \
    ", padding_mode='zeros'"
#define LINEAR(in, out) "in_features=" #in ", out_features=" #out

enum { SIZE = 96, MOST_SAMPLES = 16, MOST_THREADS = 4 };

// Pictures become vectors of 64, on which the networks go on.
#define MAP                                                                                        \
    "def forward(self, x):\n"                                                                      \
    "    first = self.first(x)\n"                                                                  \
    "    relu = torch.relu(first)\n"                                                               \
    "    deep = self.deep(relu)\n"
#define VECTORS                                                                                    \
    "    pool = torch.nn.functional.adaptive_avg_pool2d(deep, 1)\n"                                \
    "    flat = torch.flatten(pool, 1)\n"
#define PICTURES MAP VECTORS

static const char one_output[] = PICTURES "    up = self.up(flat)\n"
                                          "    act = torch.nn.functional.hardswish(up)\n"
                                          "    down = self.down(act)\n"
                                          "    return down\n";

// Pictures become small ones, beside whose layers' weights they are small.
static const char small_pictures[] =
    MAP "    small = torch.nn.functional.adaptive_avg_pool2d(deep, 4)\n"
        "    widened = self.widened(small)\n"
        "    active = torch.relu(widened)\n"
        "    narrow = self.narrow(active)\n"
        "    added = narrow + small\n"
        "    wider = self.wider(added)\n"
        "    pool = torch.nn.functional.adaptive_avg_pool2d(wider, 1)\n"
        "    flat = torch.flatten(pool, 1)\n"
        "    last = self.last(flat)\n"
        "    return last\n";

static const struct network {
    const char *what, *code;
    size_t outputs;
    bool has_none; // no tail
} networks[] = {
    {"layers in a row", one_output, 1},
    {"outputs from before, across and behind, and the input",
     MAP "    exp = torch.exp(deep)\n"
         "    mean = torch.mean(exp, [2, 3])\n" VECTORS "    up = self.up(flat)\n"
         "    down = self.down(up)\n"
         "    return (down, flat, mean, x)\n",
     4},
    {"an output from before twice",
     MAP "    exp = torch.exp(deep)\n"
         "    mean = torch.mean(exp, [2, 3])\n" VECTORS "    up = self.up(flat)\n"
         "    down = self.down(up)\n"
         "    return (mean, down, mean)\n",
     3},
    {"an output that the tail reads",
     MAP "    exp = torch.exp(deep)\n"
         "    mean = torch.mean(exp, [2, 3])\n"
         "    up = self.up(mean)\n"
         "    down = self.down(up)\n"
         "    return (mean, down, mean)\n",
     3},
    {"an output that is written over what the tail reads",
     MAP "    exp = torch.exp(deep)\n"
         "    mean = torch.mean(exp, [2, 3])\n"
         "    sine = torch.sin(mean)\n"
         "    up = self.up(sine)\n"
         "    down = self.down(up)\n"
         "    return (down, sine)\n",
     2},
    {"a picture that becomes floats last",
     PICTURES "    up = self.up(flat)\n"
              "    down = self.down(up)\n"
              "    return (deep, down)\n",
     2, true},
    {"the same output twice",
     PICTURES "    up = self.up(flat)\n"
              "    down = self.down(up)\n"
              "    return (up, down, flat, flat)\n",
     4},
    {"a residual sum",
     PICTURES "    up = self.up(flat)\n"
              "    down = self.down(up)\n"
              "    add = down + flat\n"
              "    return add\n",
     1},
    {"two layers of one vector",
     PICTURES "    up = self.up(flat)\n"
              "    wide = self.wide(flat)\n"
              "    add = up + wide\n"
              "    down = self.down(add)\n"
              "    return (down, add)\n",
     2},
    {"layers that are joined in place where there is one sample",
     PICTURES "    up = self.up(flat)\n"
              "    wide = self.wide(flat)\n"
              "    cat = torch.cat([wide, up], 1)\n"
              "    return (cat, up)\n",
     2},
    {"a layer of joined integers",
     PICTURES "    up = self.up(flat)\n"
              "    wide = self.wide(flat)\n"
              "    cat = torch.cat([wide, up], 1)\n"
              "    both = self.both(cat)\n"
              "    return (both, wide)\n",
     2},
    {"a layer of joined floats", // torch.concat is not quantized
     PICTURES "    up = self.up(flat)\n"
              "    wide = self.wide(flat)\n"
              "    concat = torch.concat([wide, up], 1)\n"
              "    both = self.both(concat)\n"
              "    return (both, concat)\n",
     2},
    {"a layer that is joined with what came before, in place where there is one sample",
     MAP "    exp = torch.exp(deep)\n"
         "    mean = torch.mean(exp, [2, 3])\n" VECTORS "    up = self.up(flat)\n"
         "    concat = torch.concat([mean, up], 1)\n"
         "    return concat\n",
     1, true},
    {"a layer that is joined with what it reads",
     PICTURES "    up = self.up(flat)\n"
              "    cat = torch.cat([flat, up], 1)\n"
              "    return cat\n",
     1},
    {"layers of two vectors",
     MAP "    low = torch.nn.functional.adaptive_avg_pool2d(relu, 1)\n"
         "    row = torch.flatten(low, 1)\n" VECTORS "    up = self.up(flat)\n"
         "    wide = self.wide(row)\n"
         "    add = up + wide\n"
         "    return add\n",
     1, true},
    {"floats behind integers",
     PICTURES "    up = self.up(flat)\n"
              "    down = self.down(up)\n"
              "    softmax = torch.nn.functional.softmax(down, dim=1)\n"
              "    return (softmax, down)\n",
     2},
    {"small pictures", small_pictures, 1},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static tare_model *real_model(const char *code) {
    module *root = new_tree();
    put_module(root, NULL, "first", NN "Conv2d", CONV(4, 64, 1, 0, 1));
    put_module(root, NULL, "deep", NN "Conv2d", CONV(64, 64, 3, 1, 64));
    put_module(root, NULL, "up", NN "Linear", LINEAR(64, 1024));
    put_module(root, NULL, "wide", NN "Linear", LINEAR(64, 1024));
    put_module(root, NULL, "down", NN "Linear", LINEAR(1024, 64));
    put_module(root, NULL, "both", NN "Linear", LINEAR(2048, 64));
    put_module(root, NULL, "widened", NN "Conv2d", CONV(64, 256, 3, 1, 1));
    put_module(root, NULL, "narrow", NN "Conv2d", CONV(256, 64, 1, 0, 1));
    put_module(root, NULL, "wider", NN "Conv2d", CONV(64, 512, 3, 1, 1));
    put_module(root, NULL, "last", NN "Linear", LINEAR(512, 256));
    put_module(root, NULL, "thin", NN "Conv2d", CONV(64, 8, 1, 0, 1));
    put_module(root, NULL, "fan", NN "Linear", LINEAR(9, 16384));
    return new_model(NULL, root, code);
}

static tare_model *integer_model(const char *code) {
    tare_model *real = real_model(code);
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_qconfig_mapping_set_object_type(mapping, "torch.mean", NULL); // it stays one of floats
    tare_model *watched = prepared(real, backend, mapping);
    CALIBRATED(watched, 2, 4, SIZE, SIZE);
    tare_model *out = lowered(watched, backend);
    tare_model_destroy(watched);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(real);
    return out;
}

static tare_plan_memory memory_of(const tare_session *s) {
    tare_plan_memory memory;
    assert_true(tare_session_get_memory(s, &memory));
    return memory;
}

static bool runs_by_sample(const tare_session *s) {
    return tare__session_plan(s)->samples > 1;
}

// --- bits ---

// What each sample gives alone.
static void run_alone(const tare_model *model, const tare_tensor *all, run_outputs *out) {
    tare_session *s = session_of(model, false);
    for (int64_t i = 0; i < MOST_SAMPLES; i++) {
        tare_tensor *x = NULL;
        CHECK_DONE(tare__tensor_rows(all, i, 1, &x, job_error()));
        const tare_tensor *in = x;
        out[i] = outputs_of(s, &in, 1);
        tare_tensor_release(x);
    }
    tare_session_destroy(s);
}

static void check_rows(const run_outputs *of_batch, const run_outputs *alone, int64_t samples) {
    for (size_t i = 0; i < of_batch->count; i++) {
        const tare_tensor *whole = of_batch->at[i];
        const size_t bytes = tare__tensor_bytes(alone[0].at[i]);
        assert_int_equal(tare__tensor_bytes(whole), (size_t)samples * bytes);
        for (int64_t n = 0; n < samples; n++)
            assert_memory_equal((const char *)whole->data + (size_t)n * bytes, alone[n].at[i]->data,
                                bytes);
    }
}

static void check_batch(tare_session *s, const tare_tensor *all, int64_t samples,
                        const run_outputs *alone) {
    tare_tensor *x = NULL;
    CHECK_DONE(tare__tensor_rows(all, 0, samples, &x, job_error()));
    const tare_tensor *in = x;
    run_outputs out = outputs_of(s, &in, 1);
    assert_int_equal(out.count, alone[0].count);
    check_rows(&out, alone, samples);
    for (size_t i = 0; i < out.count; i++)
        memset(out.at[i]->data, 0xff, tare__tensor_bytes(out.at[i]));
    CHECK_DONE(tare_session_run_into(s, &in, 1, out.at, out.count, job_error()));
    check_rows(&out, alone, samples);
    release_outputs(&out);
    tare_tensor_release(x);
}

static void check_network(const struct network *n, const tare_model *model, const tare_tensor *x) {
    static const int64_t batches[] = {2, 3, 5, 16};
    static const int threads[] = {1, 2, MOST_THREADS};
    run_outputs alone[MOST_SAMPLES];
    run_alone(model, x, alone);
    assert_int_equal(alone[0].count, n->outputs);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        tare_session *s = session_on(model, threads[t]);
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            check_batch(s, x, batches[i], alone);
            const bool is_large = batches[i] == 16 || batches[i] >= threads[t];
            if (is_large && (threads[t] > 1 || batches[i] == 16)) assert_true(runs_by_sample(s));
            assert_int_equal(memory_of(s).tail_step > 0, runs_by_sample(s) && !n->has_none);
        }
        tare_session_destroy(s);
    }
    for (size_t i = 0; i < MOST_SAMPLES; i++) release_outputs(&alone[i]);
}

static void samples_give_what_they_give_alone(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    for (size_t i = 0; i < NETWORKS; i++) {
        print_message("%s\n", networks[i].what);
        tare_model *model = integer_model(networks[i].code);
        check_network(&networks[i], model, x);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

// On one thread; several divide every step of a tail.
static void small_pictures_beside_their_weights_are_of_the_tail(void **state) {
    static const char *const first[] = {"widened", "last"};
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    tare_model *model = integer_model(small_pictures);
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        const tare_tensor *in = x;
        tare_step step;
        tare_session *s = session_on(model, threads);
        run_outputs out = outputs_of(s, &in, 1);
        assert_true(runs_by_sample(s));
        for (size_t i = memory_of(s).tail_step; tare_session_get_step(s, i, &step); i++)
            if (step.weight_bytes > 0) break;
        assert_string_equal(step.node, first[threads - 1]);
        release_outputs(&out);
        tare_session_destroy(s);
    }
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// Layers of floats with a row of each sample are computed as with a single row, and a library's
// convolutions compute every image alike, on any number of threads.
static void so_are_layers_of_floats(void **state) {
    static const struct {
        const char *code, *first;
    } cases[] = {{one_output, "up"}, {small_pictures, "widened"}};
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_model *model = real_model(cases[i].code);
        run_outputs alone[MOST_SAMPLES];
        run_alone(model, x, alone);
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            tare_session *s = session_on(model, threads);
            tare_step step;
            check_batch(s, x, MOST_SAMPLES, alone);
            assert_true(runs_by_sample(s) && memory_of(s).tail_step > 0);
            for (size_t k = memory_of(s).tail_step; tare_session_get_step(s, k, &step); k++)
                if (step.weight_bytes > 0) break;
            assert_string_equal(step.node, cases[i].first);
            tare_session_destroy(s);
        }
        for (size_t k = 0; k < MOST_SAMPLES; k++) release_outputs(&alone[k]);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

// Whatever kernels the samples' layers are timed for.
static void tuned_samples_have_a_tail(void **state) {
    (void)state;
    static const tare_session_options tuning = {.thread_count = 2, .tunes = true};
    tare_model *model = integer_model(one_output);
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    run_outputs alone[MOST_SAMPLES];
    run_alone(model, x, alone);
    tare_session *s = session_with(model, &tuning);
    check_batch(s, x, MOST_SAMPLES, alone);
    assert_true(memory_of(s).tail_step > 0);
    for (size_t i = 0; i < MOST_SAMPLES; i++) release_outputs(&alone[i]);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// --- where there is none ---

// Takes the model.
static void check_none(tare_model *model, const tare_session_options *options) {
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *s = session_with(model, options);
    run_outputs out = outputs_of(s, &in, 1);
    assert_true(runs_by_sample(s));
    assert_int_equal(memory_of(s).tail_step, 0);
    release_outputs(&out);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static const tare_session_options two_threads = {.thread_count = 2};

// A library may sum many rows in another order than one.
static void layers_of_rounded_floats_stay_with_their_samples(void **state) {
    (void)state;
    static const tare_session_options rounding = {.thread_count = 2, .bfloat16 = true};
    tare_model *model = real_model(one_output);
    tare_session *s = NULL;
    const tare_status status = tare_session_create(model, &rounding, &s, NULL);
    tare_session_destroy(s);
    if (status != TARE_OK) tare_model_destroy(model);
    if (status != TARE_OK) skip();
    check_none(model, &rounding);
}

static void a_tail_reads_nothing_of_pictures(void **state) {
    (void)state;
    check_none(integer_model(PICTURES "    up = self.up(flat)\n"
                                      "    down = self.down(up)\n"
                                      "    gate = torch.sigmoid(down)\n"
                                      "    plane = gate.view(-1, 64, 1, 1)\n"
                                      "    mul = deep * plane\n"
                                      "    return mul\n"),
               &two_threads);
}

static void a_few_weights_are_read_as_they_are_met(void **state) {
    (void)state;
    check_none(integer_model(PICTURES "    act = torch.nn.functional.hardswish(flat)\n"
                                      "    return act\n"),
               &two_threads);
}

// The plan of so many samples, which run at once.
static tare_session *session_of_samples(const tare_model *model, int64_t samples) {
    tare_tensor *x = NEW_INPUT(samples, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *s = session_on(model, 1);
    run_outputs out = outputs_of(s, &in, 1);
    assert_false(runs_by_sample(s));
    release_outputs(&out);
    tare_tensor_release(x);
    return s;
}

// What is joined first is a constant, of other bytes than what samples leave beside it, though both
// fill a buffer of as many.
static void samples_leave_what_the_first_step_reads(void **state) {
    (void)state;
    enum { SAMPLES = 2 };
    tare_model *model = integer_model(MAP "    thin = self.thin(relu)\n"
                                          "    exp = torch.exp(thin)\n"
                                          "    mean = torch.mean(exp, [2, 3])\n"
                                          "    level = torch.mean(exp, [1, 2, 3])\n"
                                          "    column = level.view(-1, 1)\n"
                                          "    ones = torch.ones_like(column)\n"
                                          "    concat = torch.concat([ones, mean], 1)\n"
                                          "    fan = self.fan(concat)\n"
                                          "    return fan\n");
    tare_session *of_one = session_of_samples(model, 1);
    tare_session *of_all = session_of_samples(model, SAMPLES);
    const plan *one = tare__session_plan(of_one);
    const tail_steps tail = tare__plan_find_tail(one, tare__session_plan(of_all), SAMPLES);
    assert_int_equal(tail.one, 3); // quantized values, the layer and floats again
    assert_string_equal(one->steps[one->step_count - tail.one - 1].node_name, "concat");
    tare_session_destroy(of_one);
    tare_session_destroy(of_all);
    tare_model_destroy(model);
}

// --- what is told ---

static void steps_and_places_are_told(void **state) {
    (void)state;
    tare_model *model = integer_model(one_output);
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *s = session_on(model, 2);
    run_outputs out = outputs_of(s, &in, 1);
    const tare_plan_memory memory = memory_of(s);
    tare_step step;
    tare_plan_place buffer;
    int64_t end[2] = {0, 0}, macs = 0, weight_bytes = 0;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        weight_bytes += step.weight_bytes;
        assert_int_equal(step.input_shape[0], MOST_SAMPLES);
        assert_int_equal(step.output_shape[0], MOST_SAMPLES);
        if (i < memory.tail_step) continue;
        macs += step.macs;
        assert_int_equal(step.output_bytes,
                         step.output_shape[0] * step.output_shape[1] *
                             (strncmp(step.node, "dequantize", 10) == 0 ? 4 : 1));
    }
    assert_int_equal(macs, MOST_SAMPLES * 2 * 64 * 1024);
    assert_int_equal(weight_bytes, memory.weight_bytes);
    for (size_t i = 0; tare_session_get_place(s, i, &buffer); i++) {
        const bool is_tail = buffer.is_tail;
        assert_int_equal(buffer.first_step >= memory.tail_step, is_tail);
        assert_true(buffer.first_step <= buffer.last_step);
        assert_true(buffer.last_step < (is_tail ? tare_session_step_count(s) : memory.tail_step));
        if (buffer.offset + buffer.bytes > end[is_tail])
            end[is_tail] = buffer.offset + buffer.bytes;
    }
    assert_int_equal(end[0], memory.block_bytes);
    assert_int_equal(end[1], memory.tail_bytes);
    assert_true(memory.tail_bytes < memory.block_bytes / 8);
    release_outputs(&out);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void times_are_those_of_the_run(void **state) {
    (void)state;
    tare_model *model = integer_model(one_output);
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *s = session_on(model, 2);
    run_outputs out = outputs_of(s, &in, 1);
    release_outputs(&out);
    CHECK_DONE(tare_session_profile(s, true, job_error()));
    const uint64_t begin = tare__now_ns();
    for (int run = 0; run < 2; run++) {
        out = outputs_of(s, &in, 1);
        release_outputs(&out);
    }
    const uint64_t all = tare__now_ns() - begin;
    uint64_t sum = 0;
    tare_step step;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        assert_int_equal(step.run_count, 2);
        assert_true(step.median_ns > 0);
        sum += step.median_ns;
    }
    assert_true(sum <= all);
    CHECK_DONE(tare_session_profile(s, false, job_error()));
    assert_true(tare_session_get_step(s, memory_of(s).tail_step, &step));
    assert_int_equal(step.run_count, 0);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// --- memory and failures ---

static void runs_allocate_nothing(void **state) {
    (void)state;
    tare_model *model = integer_model(networks[1].code);
    tare_tensor *x = NEW_INPUT(5, 4, SIZE, SIZE);
    const tare_tensor *in = x;
    tare_session *s = session_on(model, 2);
    run_outputs out = outputs_of(s, &in, 1);
    assert_true(memory_of(s).tail_step > 0);
    CHECK_DONE(tare_session_run_into(s, &in, 1, out.at, out.count, job_error()));
    tare__alloc_fail_at(1);
    const tare_status status = tare_session_run_into(s, &in, 1, out.at, out.count, NULL);
    const bool was_asked = tare__alloc_failed();
    tare__alloc_fail_at(0);
    assert_int_equal(status, TARE_OK);
    assert_false(was_asked);
    release_outputs(&out);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = integer_model(networks[1].code);
    tare_tensor *x = NEW_INPUT(3, 4, SIZE, SIZE);
    check_profile_without_memory(model, x);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static tare_status fail_step(const plan_run_state *run, void *state) {
    (void)state;
    return tare__fail(run->err, TARE_UNSUPPORTED, "a step of a tail");
}

static void a_failure_is_told_and_passes(void **state) {
    (void)state;
    static const step_class failing = {.name = "failing", .run = fail_step};
    tare_model *model = integer_model(one_output);
    tare_tensor *x = NEW_INPUT(MOST_SAMPLES, 4, SIZE, SIZE), *none[MOST_OUTPUTS];
    run_outputs alone[MOST_SAMPLES];
    run_alone(model, x, alone);
    tare_session *s = session_on(model, 2);
    const tare_tensor *in = x;
    size_t count = 0;
    check_batch(s, x, MOST_SAMPLES, alone);
    plan_step *step = &tare__session_plan(s)->tail->steps[0];
    const step_class *usual = step->class;
    step->class = &failing;
    CHECK_REFUSED(tare_session_run(s, &in, 1, none, MOST_OUTPUTS, &count, job_error()),
                  TARE_UNSUPPORTED, "a step of a tail");
    step->class = usual;
    check_batch(s, x, MOST_SAMPLES, alone);
    for (size_t i = 0; i < MOST_SAMPLES; i++) release_outputs(&alone[i]);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_give_what_they_give_alone),
        cmocka_unit_test(small_pictures_beside_their_weights_are_of_the_tail),
        cmocka_unit_test(tuned_samples_have_a_tail),
        cmocka_unit_test(so_are_layers_of_floats),
        cmocka_unit_test(layers_of_rounded_floats_stay_with_their_samples),
        cmocka_unit_test(a_tail_reads_nothing_of_pictures),
        cmocka_unit_test(a_few_weights_are_read_as_they_are_met),
        cmocka_unit_test(samples_leave_what_the_first_step_reads),
        cmocka_unit_test(steps_and_places_are_told),
        cmocka_unit_test(times_are_those_of_the_run),
        cmocka_unit_test(runs_allocate_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_failure_is_told_and_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
