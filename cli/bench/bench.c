// SPDX-License-Identifier: Apache-2.0
// tare bench: how long a model takes, alone or against another in turns.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/bench.h"
#include "options/session.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/report.h"
#include "tare/memory.h"
#include "tare/tare.h"

enum {
    LEAST_RUNS = 15, // of each model, however slow
    MOST_RUNS = 20000,
    WARM_UP_RUNS = 3,
    TURN_MS = 60,
    RANDOM_BATCHES = 64,
    OUTPUT_CAPACITY = 64,
};

typedef struct bench_options {
    const char *input, *against, *roofline;
    int64_t batch, seconds;
    bool layers, memory, as_json, quiet;
    session_settings session;
    size_options sizes;
} bench_options;

/// One model that is timed.
typedef struct subject {
    const char *path;
    tare_model *model;
    tare_session *session;
    double load_ms, start_ms; // reading the file; packing weights and choosing kernels
    double *run_ms;           // sorted when the runs are over
    size_t run_count;
} subject;

typedef struct job {
    const bench_options *options;
    subject subjects[2];
    size_t subject_count;
    tare_data *data;
    tare_batch batch;
    tare_machine_peak peak; // where layers are told
    layer_list layers;
    tare_session_options setting;
    tare_error *err;
} job;

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool is_onnx(const char *path) {
    const char *ending = strrchr(path, '.');
    return ending != NULL && strcmp(ending, ".onnx") == 0;
}

// Sizes are for the ONNX files; without one they are refused where they are read.
static size_options sizes_of(const job *j, const subject *s) {
    size_options sizes = j->options->sizes;
    bool is_mixed = false;
    for (size_t i = 0; i < j->subject_count; i++) is_mixed |= is_onnx(j->subjects[i].path);
    if (is_mixed && !is_onnx(s->path)) sizes.dims = sizes.shapes = NULL;
    return sizes;
}

static tare_status load(job *j, subject *s) {
    const double begin = now_ms();
    const size_options sizes = sizes_of(j, s);
    TRY(read_model(s->path, &sizes, &s->model, j->err));
    if (tare_model_get_stage(s->model) == TARE_STAGE_REFERENCE)
        (void)fprintf(
            stderr,
            "tare bench: note: %s is quantized, but computes in floats between quantize and "
            "dequantize;\n'tare quantize %s -o OUT' lowers it to integers\n",
            s->path, s->path);
    s->load_ms = now_ms() - begin;
    s->run_ms = tare_memory_allocate(MOST_RUNS, sizeof *s->run_ms);
    return s->run_ms != NULL ? TARE_OK : TARE_OUT_OF_MEMORY;
}

static int thread_count(const job *j) {
    return tare_session_thread_count(j->subjects[0].session);
}

static bool tells_layers(const job *j) {
    return j->options->layers || j->options->roofline != NULL;
}

static tare_status start(job *j, subject *s) {
    const double begin = now_ms();
    TRY(tare_session_create(s->model, &j->setting, &s->session, j->err));
    s->start_ms = now_ms() - begin;
    return tells_layers(j) ? tare_session_profile(s->session, true, j->err) : TARE_OK;
}

/// The next whole batch; from the beginning again when there is none left. Inputs that stay the
/// same would let the processor learn them by heart, and flatter code that branches on them.
static tare_status next_batch(job *j) {
    const int64_t size = j->options->batch;
    int64_t found = 0;
    for (int round = 0; round < 2; round++) {
        bool done = false;
        TRY(tare_data_next(j->data, &j->batch, &done, j->err));
        if (!done && j->batch.size >= size) return TARE_OK;
        if (!done) found = j->batch.size;
        TRY(tare_data_rewind(j->data, j->err));
    }
    const char *input = j->options->input != NULL ? j->options->input : "random";
    if (found == 0) return fail_here(input, "name data that has samples", "no data");
    return fail_here(input, "lower --batch, or name more data",
                     "a batch of %lld samples asked for, but there are only %lld", (long long)size,
                     (long long)found);
}

static tare_status open_data(job *j) {
    char spec[64];
    const long long size = j->options->batch;
    const long long batches = size <= INT32_MAX / RANDOM_BATCHES ? RANDOM_BATCHES : 1;
    (void)snprintf(spec, sizeof spec, "random:%lld", batches * size);
    const char *input = j->options->input != NULL ? j->options->input : spec;
    const tare_data_options options = {.batch_size = size};
    TRY(tare_data_open(input, j->subjects[0].model, &options, &j->data, j->err));
    return next_batch(j);
}

static tare_status run_once(job *j, subject *s, double *ms) {
    tare_tensor *outputs[OUTPUT_CAPACITY] = {NULL};
    size_t count = 0;
    const double begin = now_ms();
    TRY(tare_session_run(s->session, j->batch.inputs, j->batch.input_count, outputs,
                         OUTPUT_CAPACITY, &count, j->err));
    *ms = now_ms() - begin;
    for (size_t i = 0; i < count; i++) tare_tensor_release(outputs[i]);
    return TARE_OK;
}

/// A model's turn, of one run at least. Beside another model the first run brings its data back
/// into the caches, as it would be there if the model ran alone; it is not counted.
static tare_status take_turn(job *j, subject *s) {
    double unused = 0;
    const double begin = now_ms();
    if (j->subject_count > 1) TRY(run_once(j, s, &unused));
    do {
        TRY(next_batch(j));
        TRY(run_once(j, s, &s->run_ms[s->run_count]));
        s->run_count++;
    } while (s->run_count < MOST_RUNS && now_ms() - begin < TURN_MS);
    return TARE_OK;
}

static bool is_enough(const job *j, double ms) {
    const double budget_ms = 1e3 * (double)j->options->seconds;
    bool is_full = false, is_short = false;
    for (size_t s = 0; s < j->subject_count; s++) {
        is_full = is_full || j->subjects[s].run_count == MOST_RUNS;
        is_short = is_short || j->subjects[s].run_count < LEAST_RUNS;
    }
    return is_full || (!is_short && ms > budget_ms);
}

/// The models run in turns, so that a machine that changes its pace changes it for both.
static tare_status time_runs(job *j) {
    double unused = 0;
    for (int i = 0; i < WARM_UP_RUNS; i++)
        for (size_t s = 0; s < j->subject_count; s++) TRY(run_once(j, &j->subjects[s], &unused));
    const double begin = now_ms();
    while (!is_enough(j, now_ms() - begin)) {
        const int64_t runs = (int64_t)j->subjects[0].run_count;
        show_progress("timing", runs * j->batch.size, 0); // between the turns, not in them
        for (size_t s = 0; s < j->subject_count; s++) TRY(take_turn(j, &j->subjects[s]));
    }
    return TARE_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const subject *s, double part) {
    return s->run_ms[(size_t)(part * (double)(s->run_count - 1) + 0.5)];
}

/// Peak resident memory of this process, in bytes.
static uint64_t peak_bytes(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static double speed_ratio(const job *j) {
    return quantile(&j->subjects[1], 0.5) / quantile(&j->subjects[0], 0.5);
}

static void print_subject_json(const subject *s, int64_t batch, json_out *json, const char *key) {
    json_out_open(json, key, '{');
    json_out_string(json, "file", s->path);
    json_out_number(json, "load_ms", s->load_ms);
    json_out_number(json, "start_ms", s->start_ms);
    json_out_integer(json, "runs", s->run_count);
    json_out_number(json, "median_ms", quantile(s, 0.5));
    json_out_number(json, "lower_ms", quantile(s, 0.25));
    json_out_number(json, "upper_ms", quantile(s, 0.75));
    json_out_number(json, "p10_ms", quantile(s, 0.1));
    json_out_number(json, "p90_ms", quantile(s, 0.9));
    json_out_number(json, "samples_per_second", 1e3 * (double)batch / quantile(s, 0.5));
    json_out_close(json, '}');
}

static void print_json(const job *j) {
    const bool has_other = j->subject_count > 1;
    json_out json = json_out_begin(stdout);
    json_out_string(&json, "isa", tare_isa_name());
    json_out_integer(&json, "batch", (uint64_t)j->batch.size);
    json_out_integer(&json, "threads", (uint64_t)thread_count(j));
    print_threads_json(&j->options->session, &json);
    print_machine_json(tells_layers(j) ? &j->peak : NULL, &json);
    print_subject_json(&j->subjects[0], j->batch.size, &json, "model");
    if (has_other) {
        print_subject_json(&j->subjects[1], j->batch.size, &json, "against");
        json_out_number(&json, "speed_ratio", speed_ratio(j));
    }
    if (j->options->layers) print_layers_json(&j->layers, &j->peak, has_other, &json);
    if (j->options->memory) {
        json_out_integer(&json, "peak_bytes", peak_bytes());
        print_plan_memory_json(j->subjects[0].session, &json);
    }
    json_out_end(&json);
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_models(const job *j) {
    printf("%-28s  %10s  %10s  %10s  %10s  %12s\n", "model", "median ms", "quartile", "quartile",
           "p90 ms", "samples/s");
    for (size_t i = 0; i < j->subject_count; i++) {
        const subject *s = &j->subjects[i];
        printf("%-28s  %10.4f  %10.4f  %10.4f  %10.4f  %12.1f\n", file_name(s->path),
               quantile(s, 0.5), quantile(s, 0.25), quantile(s, 0.75), quantile(s, 0.9),
               1e3 * (double)j->batch.size / quantile(s, 0.5));
    }
    if (j->subject_count > 1) printf("speed ratio: %.2f\n", speed_ratio(j));
    printf("%zu runs, batch %lld, %d thread%s, %s; load %.2f ms, start %.2f ms\n",
           j->subjects[0].run_count, (long long)j->batch.size, thread_count(j),
           thread_count(j) > 1 ? "s" : "", tare_isa_name(), j->subjects[0].load_ms,
           j->subjects[0].start_ms);
}

static void print_text(const job *j) {
    print_models(j);
    if (tells_layers(j)) print_peak(&j->peak, thread_count(j));
    if (j->options->layers) print_layers(&j->layers, &j->peak, j->subject_count > 1);
    if (!j->options->memory) return;
    print_plan_memory(j->subjects[0].session);
    printf("peak memory: %.1f MB\n", (double)peak_bytes() * 1e-6);
}

static tare_status read_layers(job *j) {
    if (!tells_layers(j)) return TARE_OK;
    const tare_session *against = j->subject_count > 1 ? j->subjects[1].session : NULL;
    TRY(layer_list_read(&j->layers, j->subjects[0].session, against));
    if (j->options->roofline == NULL) return TARE_OK;
    char title[512];
    (void)snprintf(title, sizeof title, "%s, batch %lld, %d thread%s, %s",
                   file_name(j->subjects[0].path), (long long)j->batch.size, thread_count(j),
                   thread_count(j) > 1 ? "s" : "", tare_isa_name());
    return write_roofline(j->options->roofline, title, &j->layers, &j->peak);
}

static tare_status run_job(job *j) {
    if (j->options->roofline != NULL) TRY(output_check(j->options->roofline));
    for (size_t i = 0; i < j->subject_count; i++) TRY(load(j, &j->subjects[i]));
    TRY(open_data(j));
    for (size_t i = 0; i < j->subject_count; i++) TRY(start(j, &j->subjects[i]));
    if (tells_layers(j)) TRY(tare_machine_measure(thread_count(j), &j->peak, j->err));
    TRY(keep_thread(&j->options->session, j->err)); // threads that start later would inherit it
    TRY(time_runs(j));
    end_progress();
    for (size_t i = 0; i < j->subject_count; i++)
        qsort(j->subjects[i].run_ms, j->subjects[i].run_count, sizeof(double), by_size);
    TRY(read_layers(j));
    if (j->options->as_json)
        print_json(j);
    else
        print_text(j);
    return TARE_OK;
}

static int run(const command *self, int argc, char **argv) {
    bench_options o = {.session = SESSION_DEFAULTS};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.quiet || o.as_json) silence_progress();
    tare_session_options setting = {0};
    if (!read_session_settings(self->name, &o.session, &setting)) return EXIT_WRONG_USAGE;
    job j = {.options = &o,
             .subjects = {{.path = operands[0]}, {.path = o.against}},
             .subject_count = o.against != NULL ? 2 : 1,
             .setting = setting};
    j.err = tare_error_create();
    const int exit_status = finish_job(self->name, run_job(&j), j.err);
    layer_list_release(&j.layers);
    tare_data_close(j.data);
    for (size_t i = 0; i < 2; i++) {
        tare_session_destroy(j.subjects[i].session);
        tare_model_destroy(j.subjects[i].model);
        tare_memory_release(j.subjects[i].run_ms);
    }
    tare_error_destroy(j.err);
    return exit_status;
}

#define FIELD(name) offsetof(bench_options, name)
static const option options[] = {
    {.name = "against",
     .value = "MODEL",
     .help = "time this model as well, interleaved with the first",
     .details =
         "Both models take turns of 60 ms; the first run of a turn is not counted. The speed ratio "
         "is the other model's median divided by this model's: above 1, this model is faster.",
     .kind = OPTION_FILE,
     .offset = FIELD(against)},
    {.name = "input",
     .letter = 'i',
     .value = "DATA",
     .help = "data to run on",
     .library_default = "random:N",
     .details = "If the model does not state the shapes of its inputs, give them: --input "
                "random:64:0:3x224x224.",
     .kind = OPTION_FILE,
     .offset = FIELD(input)},
    {.name = "batch",
     .value = "N",
     .help = "samples of a run",
     .default_value = "1",
     .kind = OPTION_NUMBER,
     .most = INT32_MAX,
     .offset = FIELD(batch)},
    {.name = "seconds",
     .value = "N",
     .help = "time to spend",
     .default_value = "2",
     .kind = OPTION_NUMBER,
     .offset = FIELD(seconds)},
    SESSION_OPTIONS(bench_options, session),
    {.name = "layers",
     .help = "print the time of each layer, its kernel and why",
     .details = "For each step of a run: the median time of the latest runs, its share of the "
                "total, billions of operations and gigabytes per second, the share of the measured "
                "peak of this machine, the speed ratio to the other model if both compute the node "
                "(if a step of the other model computes several nodes: of all of them; '!' where "
                "this model is slower), the kernel, and the reason for it. Then the layers that "
                "are slower than in the other model, and those computed by the float arithmetic of "
                "a library, whose last bits may differ between machines.",
     .kind = OPTION_FLAG,
     .offset = FIELD(layers)},
    {.name = "roofline",
     .value = "OUT.svg",
     .help = "write a roofline chart of the layers",
     .details =
         "Operations per second over operations per byte, with the measured limits of arithmetic "
         "and of reading from L2, L3 and memory. The title of a dot names its layer.",
     .kind = OPTION_FILE,
     .writes = "",
     .offset = FIELD(roofline)},
    {.name = "memory",
     .help = "print the plan's memory, and the peak of the process",
     .details = "Prints the layout of the plan's memory block, its size and the least possible "
                "size, the number of blocks if threads run whole samples of a batch, the size of "
                "the packed weights, and the peak memory of the whole process.",
     .kind = OPTION_FLAG,
     .offset = FIELD(memory)},
    JSON_OPTION(bench_options, as_json),
    QUIET_OPTION(bench_options, quiet),
    SIZE_OPTIONS(bench_options, sizes),
    {.name = NULL},
};

const command bench_command = {
    .name = "bench",
    .summary = "time a model, alone or against another",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details = "Prints median, quartiles and 90th percentile of the runs of about --seconds "
               "seconds, after a warm-up. TARE_ISA in the environment forces a lower instruction "
               "set (scalar, avx2).",
    .run = run,
};
