// SPDX-License-Identifier: Apache-2.0
// tare bench: the time of a model's runs, alone or alternating with another model's.
#include <stdio.h>
#include <string.h>

#include "bench/measure.h"
#include "support/output.h"
#include "support/report.h"

typedef struct bench_options {
    const char *input, *against, *roofline;
    int64_t batch, seconds;
    bool layers, memory, as_json, quiet;
    session_settings session;
    size_options sizes;
} bench_options;

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_models(const bench_job *j) {
    printf("%-28s  %10s  %10s  %10s  %10s  %12s\n", "model", "median ms", "quartile", "quartile",
           "p90 ms", "samples/s");
    for (size_t i = 0; i < j->subject_count; i++) {
        const bench_subject *s = &j->subjects[i];
        printf("%-28s  %10.4f  %10.4f  %10.4f  %10.4f  %12.1f\n", file_name(s->path),
               bench_quantile(s, 0.5), bench_quantile(s, 0.25), bench_quantile(s, 0.75),
               bench_quantile(s, 0.9), 1e3 * (double)j->batch.size / bench_quantile(s, 0.5));
    }
    if (j->subject_count > 1) printf("speed ratio: %.2f\n", bench_speed_ratio(j));
    printf("%zu runs, batch %lld, %d thread%s, %s; load %.2f ms, start %.2f ms\n",
           j->subjects[0].run_count, (long long)j->batch.size, bench_thread_count(j),
           bench_thread_count(j) > 1 ? "s" : "", tare_isa_name(), j->subjects[0].load_ms,
           j->subjects[0].start_ms);
}

static void print_text(const bench_job *j) {
    print_models(j);
    if (bench_tells_layers(j)) print_peak(&j->peak, bench_thread_count(j));
    if (j->settings.layers) print_layers(&j->layers, &j->peak, j->subject_count > 1);
    if (!j->settings.memory) return;
    print_plan_memory(j->subjects[0].session);
    printf("peak memory: %.1f MB\n", (double)bench_peak_bytes() * 1e-6);
}

static tare_status draw(const bench_job *j, const char *path) {
    char title[512];
    (void)snprintf(title, sizeof title, "%s, batch %lld, %d thread%s, %s",
                   file_name(j->subjects[0].path), (long long)j->batch.size, bench_thread_count(j),
                   bench_thread_count(j) > 1 ? "s" : "", tare_isa_name());
    return write_roofline(path, title, &j->layers, &j->peak);
}

static tare_status run_job(bench_job *j, const bench_options *o) {
    if (o->roofline != NULL) TRY(output_check(o->roofline));
    TRY(bench_run(j));
    if (o->roofline != NULL) TRY(draw(j, o->roofline));
    if (!o->as_json) {
        print_text(j);
        return TARE_OK;
    }
    json_out json = json_out_begin(stdout);
    bench_write(j, &json);
    json_out_end(&json);
    return TARE_OK;
}

static int run(const command *self, int argc, char **argv) {
    bench_options o = {.session = SESSION_DEFAULTS};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.quiet || o.as_json) silence_progress();
    tare_session_options setting = {0};
    if (!read_session_settings(self->name, &o.session, &setting)) return EXIT_WRONG_USAGE;
    bench_job j = {.settings = {.input = o.input,
                                .batch = o.batch,
                                .seconds = o.seconds,
                                .layers = o.layers,
                                .memory = o.memory,
                                .has_roofline = o.roofline != NULL,
                                .session = &o.session,
                                .sizes = &o.sizes},
                   .subjects = {{.path = operands[0]}, {.path = o.against}},
                   .subject_count = o.against != NULL ? 2 : 1,
                   .setting = setting,
                   .err = tare_error_create()};
    const int exit_status = finish_job(self->name, run_job(&j, &o), j.err);
    bench_release(&j);
    tare_error_destroy(j.err);
    return exit_status;
}

#define FIELD(name) offsetof(bench_options, name)
static const option options[] = {
    {.name = "against",
     .value = "MODEL",
     .help = "time this model as well, interleaved with the first",
     .details =
         "Both models alternate in turns of 60 ms; the first run of a turn is not counted. The "
         "speed ratio "
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
     .help = "samples per run",
     .default_value = "1",
     .kind = OPTION_NUMBER,
     .most = INT32_MAX,
     .offset = FIELD(batch)},
    {.name = "seconds",
     .value = "N",
     .help = "seconds to spend on timing",
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
                "this model is slower), the kernel, and the reason for it. Then lists the layers "
                "that are slower than in the other model, and those that oneDNN computes in float, "
                "whose last bits may differ between machines.",
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
     .details = "Prints the layout of the plan's memory block, its size and the smallest possible "
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
