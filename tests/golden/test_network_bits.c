// SPDX-License-Identifier: Apache-2.0
// What a quantized network gives does not depend on where or how it runs: the same bits on every
// instruction set, with any number of threads, by plan, by interpreter and by the operators'
// references, alone or among other samples. Float convolutions and linear layers that a library
// computes are the one exception; with our own in their place there is none.
// Data: tests/data/networks.zip, made by tests/data/pack_networks.py.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "golden/networks.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/tuning.h"

#define ROW(name, least_sqnr) name,
static const char *const networks[] = {NETWORKS(ROW)};
enum { COUNT = sizeof networks / sizeof *networks, BATCH = 16, RECORDED_BATCH = 2 };

// How a network becomes integers.
typedef struct form {
    const char *name;
    const char *backend;            // of FX mode; NULL: none
    const char *quantizer, *config; // of exported programs; both NULL: it stays float
    bool looks_at_all;              // at run time: codes of one sample depend on the others
    bool is_tuned;                  // too
} form;

static const form forms[] = {
    {"float", NULL, NULL, NULL, false},
    {"x86", "x86", NULL, NULL, false, true},   // unsigned codes, weights per channel
    {"qnnpack", "qnnpack", NULL, NULL, false}, // unsigned, per tensor
    {"xnnpack", NULL, "XNNPACKQuantizer", "\"is_per_channel\": true", false}, // signed
    {"xnnpack_tensor", NULL, "XNNPACKQuantizer", "", false},
    {"inductor", NULL, "X86InductorQuantizer", "", false, true},
    {"inductor_dynamic", NULL, "X86InductorQuantizer", "\"is_dynamic\": true", true},
};

// --- samples ---

static tare_tensor *empty_like(const tare_tensor *t, int64_t batch) {
    int64_t shape[TARE_MAX_DIMS];
    tare_tensor *out = NULL;
    memcpy(shape, t->shape, sizeof shape);
    shape[0] = batch;
    CHECK_DONE(tare_tensor_create(t->dtype, t->ndim, shape, &out, job_error()));
    return out;
}

static size_t sample_bytes(const tare_tensor *t) {
    return tare__tensor_bytes(t) / (size_t)t->shape[0];
}

// Sample i is a recorded one, turned by i elements, so that no two are the same.
static void fill_sample(const tare_tensor *recorded, int64_t i, tare_tensor *to) {
    const size_t bytes = sample_bytes(recorded), element = tare_dtype_size(recorded->dtype);
    const size_t turn = (size_t)i * element % bytes;
    const unsigned char *from =
        (const unsigned char *)recorded->data + (size_t)(i % recorded->shape[0]) * bytes;
    unsigned char *at = (unsigned char *)to->data + (size_t)i * bytes;
    memcpy(at, from + turn, bytes - turn);
    memcpy(at + bytes - turn, from, turn);
}

static tensors samples_like(const tensors *recorded) {
    tensors out = {.count = recorded->count};
    for (size_t k = 0; k < recorded->count; k++) {
        tare_tensor *all = empty_like(recorded->items[k], BATCH);
        for (int64_t i = 0; i < BATCH; i++) fill_sample(recorded->items[k], i, all);
        out.items[k] = all;
    }
    return out;
}

// Samples [first, first + count), in new tensors.
static tensors slice(const tensors *all, int64_t first, int64_t count) {
    tensors out = {.count = all->count};
    for (size_t k = 0; k < all->count; k++) {
        const tare_tensor *t = all->items[k];
        tare_tensor *part = empty_like(t, count);
        memcpy(part->data, (const unsigned char *)t->data + (size_t)first * sample_bytes(t),
               tare__tensor_bytes(part));
        out.items[k] = part;
    }
    return out;
}

// --- runs ---

typedef struct way {
    const char *isa;
    int threads;
    bool reference, is_watched, lets_library; // library: float layers by oneDNN
    const char *tune_cache;                   // NULL: nothing is tuned
} way;

static tare_status see(void *user, const char *name, const tare_tensor *result, tare_error *err) {
    (void)user, (void)name, (void)result, (void)err;
    return TARE_OK;
}

// The first `count` samples from `first` on, in one run. False: the network has a fixed batch.
static bool run(const tare_model *model, const way *w, const tensors *all, int64_t first,
                int64_t count, tensors *out) {
    tare_tensor *results[MOST_TENSORS] = {0};
    tare_session *session = NULL;
    tensors inputs = slice(all, first, count);
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = w->threads,
                                          .reference = w->reference,
                                          .portable_floats = !w->lets_library,
                                          .tune_cache = w->tune_cache};
    *out = (tensors){0};
    assert_int_equal(setenv("TARE_ISA", w->isa, 1), 0);
    CHECK_DONE(tare_session_create(model, &options, &session, job_error()));
    if (w->is_watched) tare_session_watch(session, see, NULL); // no plan
    const tare_status status = tare_session_run(session, inputs.items, inputs.count, results,
                                                MOST_TENSORS, &out->count, job_error());
    tare_session_destroy(session);
    release_tensors(&inputs);
    if (status == TARE_INVALID_ARGUMENT) return false;
    CHECK_DONE(status);
    for (size_t i = 0; i < out->count; i++) out->items[i] = results[i];
    return true;
}

typedef struct subject {
    const char *network, *form;
    bool looks_at_all;
    const tare_model *model;
    const tensors *samples;
    tensors expected; // of all samples
} subject;

static const char *words_of(const way *w) {
    static char words[128];
    snprintf(words, sizeof words, "%s, %d threads%s%s%s%s", w->isa, w->threads,
             w->reference ? ", references" : "", w->is_watched ? ", interpreted" : "",
             w->lets_library ? ", with a library" : "", w->tune_cache != NULL ? ", tuned" : "");
    return words;
}

// Samples from `first` on have the bits expected of them.
static void check_found(const subject *s, const way *w, const tensors *found, int64_t first,
                        int64_t count) {
    assert_int_equal(found->count, s->expected.count);
    for (size_t k = 0; k < found->count; k++) {
        const tare_tensor *x = s->expected.items[k], *y = found->items[k];
        assert_int_equal(x->dtype, y->dtype);
        const size_t bytes = tare__tensor_bytes(y), from = (size_t)first * sample_bytes(x);
        assert_int_equal(bytes, (size_t)count * sample_bytes(x));
        if (memcmp((const unsigned char *)x->data + from, y->data, bytes) != 0)
            fail_msg("%s, %s: %s: other bits in output %zu of samples %d to %d", s->network,
                     s->form, words_of(w), k, (int)first, (int)(first + count - 1));
    }
}

static void check_way(const subject *s, const way *w, int64_t first, int64_t count) {
    tensors found;
    assert_true(run(s->model, w, s->samples, first, count, &found));
    check_found(s, w, &found, first, count);
    release_tensors(&found);
}

// --- what is checked ---

static const char *best_level(void) {
    return tare__isa_level_name(tare__isa_detect());
}

static bool has_float_layers(const tare_model *model) {
    tare_coverage coverage = {.struct_size = sizeof coverage};
    CHECK_DONE(tare_model_coverage(model, &coverage, job_error()));
    return coverage.quantized_op_count == 0 || coverage.float_island_count > 0;
}

// Builds with sanitizers: TARE_FAULTS is "few" there.
static bool is_slow_build(void) {
    const char *wanted = getenv("TARE_FAULTS");
    return wanted != NULL && strcmp(wanted, "few") == 0;
}

// batch: of the runs that give what is expected, by one thread on the best level, and of those
// compared. The interpreter calls what plans call: slow builds ask it on the best level only.
static void check_ways(const subject *s, int64_t batch) {
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        const char *level = tare__isa_level_name((isa_level)isa);
        const bool is_best = strcmp(level, best_level()) == 0;
        check_way(s, &(way){level, 2}, 0, batch);
        if (is_best) check_way(s, &(way){level, 4}, 0, batch);
        if (is_best || !is_slow_build())
            check_way(s, &(way){level, 2, .is_watched = true}, 0, batch);
    }
    const way reference = {best_level(), 1, .reference = true};
    check_way(s, &reference, 0, s->looks_at_all || batch < 4 ? batch : 4);
    const way library = {best_level(), 1, .lets_library = true};
    if (!has_float_layers(s->model)) check_way(s, &library, 0, batch);
}

// Timing takes its time; these have convolutions of all kinds.
static bool has_many_shapes(const char *network) {
    static const char *const names[] = {"resnet18", "mobilenet_v2", "googlenet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], network) == 0) return true;
    return false;
}

// With what is fastest here, and with the opposite of all that was chosen.
static void check_tuned(const subject *s, int64_t batch) {
    const char *path = temp_path("tune.json");
    const way tuned[] = {{best_level(), 1, .tune_cache = path},
                         {best_level(), 2, .tune_cache = path}};
    (void)remove(path);
    for (size_t i = 0; i < 2; i++) check_way(s, &tuned[i], 0, batch);
    const size_t count = oppose_choices(path);
    for (size_t i = 0; i < 2 && count > 0; i++) check_way(s, &tuned[i], 0, batch);
}

static void check_alone(const subject *s) {
    static const int64_t chosen[] = {0, 5, BATCH - 1};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        check_way(s, &(way){best_level(), 1 + (int)i}, chosen[i], 1);
    for (int isa = 0; isa < (int)tare__isa_detect(); isa++)
        check_way(s, &(way){tare__isa_level_name((isa_level)isa), 1}, 5, 1);
}

static void check_model(const char *network, const form *f, const tare_model *model,
                        const tensors *samples) {
    subject s = {.network = network,
                 .form = f->name,
                 .looks_at_all = f->looks_at_all,
                 .model = model,
                 .samples = samples};
    const way first = {best_level(), 1};
    if (run(model, &first, samples, 0, BATCH, &s.expected)) {
        check_ways(&s, BATCH);
        if (f->is_tuned && has_many_shapes(network)) check_tuned(&s, RECORDED_BATCH);
        if (!f->looks_at_all) check_alone(&s);
    } else {
        assert_true(run(model, &first, samples, 0, RECORDED_BATCH, &s.expected));
        check_ways(&s, RECORDED_BATCH);
    }
    release_tensors(&s.expected);
}

// --- networks ---

static tare_model *quantized_by(const form *f, const tare_model *model, const tensors *inputs) {
    tare_backend_config *backend = builtin_backend(f->backend);
    tare_qconfig_mapping *mapping = default_mapping(f->backend);
    tare_model *p = prepared(model, backend, mapping);
    calibrate_network(p, inputs);
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

static tare_model *lowered_program(const form *f, const tare_model *program,
                                   const tensors *inputs) {
    tare_model *p = prepare_program(program, f->quantizer, f->config, false), *c = NULL,
               *out = NULL;
    calibrate_network(p, inputs);
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    check_explained(c);
    CHECK_DONE(tare_lower_pt2e(c, NULL, &out, job_error()));
    check_explained(out);
    tare_model_destroy(c);
    tare_model_destroy(p);
    return out;
}

static void check_network(void **state) {
    const char *name = *state;
    recorded_case c;
    tare_model *model = NULL;
    read_network(name, &c);
    CHECK_DONE(case_model(&c, &model, job_error()));
    tare_model *program = read_program(&c, "model.pt2");
    const tensors inputs = tensors_of(&c.data, "input");
    tensors samples = samples_like(&inputs);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form *f = &forms[i];
        tare_model *q = NULL;
        if (f->backend != NULL) q = quantized_by(f, model, &inputs);
        if (f->quantizer != NULL) q = lowered_program(f, program, &inputs);
        check_model(name, f, q != NULL ? q : model, &samples);
        tare_model_destroy(q);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    release_tensors(&samples);
    tare_model_destroy(program);
    tare_model_destroy(model);
    case_release(&c);
}

int main(void) {
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = networks[i], .test_func = check_network, .initial_state = (void *)networks[i]};
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
