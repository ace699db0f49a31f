// SPDX-License-Identifier: Apache-2.0
// tare calibrate: runs a prepared model's observers on data and saves their statistics, or merges
// saved statistics.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/common.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/ranks.h"
#include "support/report.h"
#include "tare/memory.h"
#include "tare/tare.h"

typedef struct calibrate_options {
    const char *data, *shard, *output;
    int64_t batch, limit, threads, every;
    bool merge, resume, lenient, as_json, quiet;
    size_options sizes;
} calibrate_options;

typedef struct job {
    const calibrate_options *options;
    int64_t shard_index, shard_count;
    ranks ranks; // each calibrates a shard
    tare_model *model;
    tare_data *data;
    tare_error *err;
} job;

static void print_info(const job *j, const tare_calibration_info *info) {
    // If the state goes to standard output, messages go to standard error.
    FILE *stream = strcmp(j->options->output, "-") == 0 ? stderr : stdout;
    if (j->options->as_json) {
        json_out json = json_out_begin(stream);
        json_out_integer(&json, "samples", (uint64_t)info->sample_count);
        json_out_integer(&json, "shards", (uint64_t)info->shard_count);
        json_out_integer(&json, "done_shards", (uint64_t)info->done_shard_count);
        json_out_end(&json);
        return;
    }
    (void)fprintf(stream, "%" PRId64 " sample%s", info->sample_count,
                  info->sample_count == 1 ? "" : "s");
    if (info->shard_count > 1)
        (void)fprintf(stream, ", %" PRId64 " of %" PRId64 " shards", info->done_shard_count,
                      info->shard_count);
    (void)fprintf(stream, "\n");
}

static const char *stage_word(const tare_model *model) {
    switch (tare_model_get_stage(model)) {
    case TARE_STAGE_FLOAT:
        return "float";
    case TARE_STAGE_FUSED:
        return "fused";
    case TARE_STAGE_PREPARED:
        return "prepared";
    default:
        return "quantized";
    }
}

static tare_status open_job(job *j, const char *model) {
    const calibrate_options *o = j->options;
    const tare_data_options data = {.batch_size = o->batch,
                                    .sample_limit = o->limit,
                                    .shard_index = j->shard_index,
                                    .shard_count = j->shard_count,
                                    .is_finite = !o->lenient};
    if (j->ranks.index == 0) TRY(output_check(o->output));
    TRY(read_model(model, &o->sizes, &j->model, j->err));
    if (tare_model_get_stage(j->model) != TARE_STAGE_PREPARED)
        return fail_here(model, "tare quantize --stop prepare makes one",
                         "expected a prepared model, found a %s one", stage_word(j->model));
    TRY(j->shard_count > 1 ? tare_calibration_check_mergeable(j->model, j->err)
                           : tare_calibration_check(j->model, j->err));
    return tare_data_open(o->data, j->model, &data, &j->data, j->err);
}

static tare_status watch(job *j, const char *model, const char *state, int64_t *sample_count) {
    const calibrate_options *o = j->options;
    const tare_calibrate_options options = {.progress = progress_callback,
                                            .progress_user = "calibrating",
                                            .thread_count = (int)o->threads,
                                            .resume_path = o->resume ? state : NULL,
                                            .checkpoint_samples = o->every,
                                            .is_lenient = o->lenient};
    TRY(open_job(j, model));
    TRY(tare_calibrate_data(j->model, j->data, &options, sample_count, j->err));
    end_progress();
    TRY(warn_of_calibration_data("calibrate", j->model, j->err));
    return tare_calibration_write(j->model, j->data, *sample_count, state, j->err);
}

static tare_status watch_alone(job *j, const char *model) {
    tare_calibration_info info = {.shard_count = j->shard_count, .done_shard_count = 1};
    TRY(watch(j, model, j->options->output, &info.sample_count));
    print_info(j, &info);
    return TARE_OK;
}

static tare_status write_merged(job *j, const char *const *paths, size_t count) {
    tare_calibration_info info = {.struct_size = sizeof info};
    TRY(tare_calibration_merge(NULL, paths, count, j->options->output, &info, j->err));
    print_info(j, &info);
    return TARE_OK;
}

// Rank 0 writes the statistics of all ranks.
static tare_status watch_together(job *j, const char *model) {
    char state[1024];
    int64_t sample_count = 0;
    if (!output_temporary_path("shard", ".state", state, sizeof state))
        return fail_here("TMPDIR", NULL, "the folder's name is too long");
    j->shard_index = j->ranks.index;
    j->shard_count = j->ranks.count;
    if (j->ranks.index > 0) silence_progress();
    tare_status status = watch(j, model, state, &sample_count);
    status = ranks_merge_states(&j->ranks, state, status, j->err);
    if (status == TARE_OK && j->ranks.index == 0)
        status = write_merged(j, &(const char *){state}, 1);
    output_remove(state);
    return status;
}

static tare_status watch_data(job *j, const char *model) {
    if (j->options->shard == NULL) TRY(ranks_begin(&j->ranks));
    if (j->ranks.count <= 1) return watch_alone(j, model);
    if (!j->options->resume) return watch_together(j, model);
    return fail_here("--resume", "give each process its --shard and STATE, and merge them",
                     "works on one state; mpirun started %d processes", j->ranks.count);
}

static tare_status merge(job *j, const char *const *paths) {
    size_t count = 0;
    TRY(output_check(j->options->output));
    while (paths[count] != NULL) count++;
    return write_merged(j, paths, count);
}

/// "2/8", counted from 0.
static bool read_shard(const char *text, job *j) {
    long long index = 0, count = 0;
    int length = 0;
    if (sscanf(text, "%lld/%lld%n", &index, &count, &length) != 2 || text[length] != '\0')
        return false;
    j->shard_index = index;
    j->shard_count = count;
    return index >= 0 && count >= 1 && index < count && text[0] != '+' && text[0] != ' ';
}

static int check_options(const command *self, const calibrate_options *o,
                         const char *const *operands, job *j) {
    j->shard_count = 1;
    if (o->resume && strcmp(o->output, "-") == 0)
        return wrong_usage(self->name, NULL, "--resume needs a STATE that is a file");
    if (!o->merge && operands[1] != NULL)
        return wrong_usage(self->name, "states are merged with --merge",
                           "one operand too many: '%s'", operands[1]);
    if (o->shard != NULL && !read_shard(o->shard, j))
        return wrong_usage(self->name, NULL, "--shard: expected I/N with 0 <= I < N, found '%s'",
                           o->shard);
    return EXIT_JOB_DONE;
}

static int run(const command *self, int argc, char **argv) {
    calibrate_options o = {0};
    const char **operands = tare_memory_allocate((size_t)argc + 5, sizeof *operands);
    job j = {.options = &o};
    if (operands == NULL) return finish_job(self->name, TARE_OUT_OF_MEMORY, NULL);
    int exit_status = EXIT_WRONG_USAGE;
    if (parse_arguments(self, argc, argv, &o, operands))
        exit_status = check_options(self, &o, operands, &j);
    if (o.quiet || o.as_json) silence_progress();
    if (exit_status == EXIT_JOB_DONE) {
        j.err = tare_error_create();
        const tare_status status = o.merge ? merge(&j, operands) : watch_data(&j, operands[0]);
        exit_status = finish_job(self->name, status, j.err);
    }
    tare_data_close(j.data);
    tare_model_destroy(j.model);
    tare_error_destroy(j.err);
    tare_memory_release(operands);
    ranks_end(&j.ranks);
    return exit_status;
}

#define FIELD(name) offsetof(calibrate_options, name)
static const option options[] = {
    {.name = "data",
     .letter = 'd',
     .value = "DATA",
     .help = "data to calibrate on",
     .kind = OPTION_FILE,
     .is_required = true,
     .offset = FIELD(data)},
    {.name = "merge",
     .help = "merge STATE files",
     .details = "For observers that merge (MinMaxObserver, PerChannelMinMaxObserver, "
                "tare.MergeableHistogramObserver) the result has the same bytes as one pass over "
                "all data. Other observers, states of other models, shards that are in two states, "
                "and models prepared for training, which change with the data, are refused.",
     .kind = OPTION_FLAG,
     .excludes = "data|shard|batch|limit|threads|resume|every|lenient|max-memory",
     .offset = FIELD(merge)},
    {.name = "output",
     .letter = 'o',
     .value = "STATE",
     .help = "the file to write; '-': standard output",
     .kind = OPTION_FILE,
     .writes = "",
     .is_required = true,
     .offset = FIELD(output)},
    {.name = "shard",
     .value = "I/N",
     .help = "take every N-th batch, from the I-th on (0 <= I < N)",
     .kind = OPTION_TEXT,
     .offset = FIELD(shard)},
    {.name = "batch",
     .value = "N",
     .help = "samples per batch",
     .default_value = "16",
     .kind = OPTION_NUMBER,
     .offset = FIELD(batch)},
    {.name = "limit",
     .value = "N",
     .help = "calibrate on the first N samples",
     .kind = OPTION_NUMBER,
     .offset = FIELD(limit)},
    THREADS_OPTION(calibrate_options, threads),
    {.name = "resume",
     .help = "continue from STATE, and write it from time to time",
     .details = "If interrupted, the same command continues from the last STATE that was written.",
     .kind = OPTION_FLAG,
     .offset = FIELD(resume)},
    {.name = "every",
     .value = "N",
     .help = "write STATE every N samples",
     .library_default = "512",
     .kind = OPTION_NUMBER,
     .requires = "resume",
     .offset = FIELD(every)},
    {.name = "lenient",
     .help = "accept infinities in the data",
     .details = "The masks of some models have them.",
     .kind = OPTION_FLAG,
     .offset = FIELD(lenient)},
    JSON_OPTION(calibrate_options, as_json),
    QUIET_OPTION(calibrate_options, quiet),
    MEMORY_OPTION(calibrate_options, sizes),
    {.name = NULL},
};

const command calibrate_command = {
    .name = "calibrate",
    .summary = "calibrate a prepared model, in shards if needed",
    .operands = {"PREPARED|STATE"},
    .least_operands = 1,
    .takes_more_operands = true,
    .options = options,
    .details = "STATE holds the statistics of the observers, for tare quantize --state. "
               "Shards of the same data with the same --batch and --limit merge to the same bytes "
               "as one pass, for observers that merge: MinMaxObserver, PerChannelMinMaxObserver "
               "and tare.MergeableHistogramObserver. For these the result does not depend on "
               "--batch and --threads.\n\n"
               "mpirun -n N tare calibrate divides the data among N processes, and the first one "
               "writes the merged STATE, for observers that merge. TMPDIR, or /tmp, holds a state "
               "or two for each. This needs a tare that was built with -DTARE_MPI=ON.",
    .example =
        "tare quantize net.safetensors --backend x86 --qconfig examples/minmax.json "
        "--stop prepare \\\n"
        "    -o prepared.safetensors\n"
        "tare calibrate prepared.safetensors --data photos/ --shard 0/2 -o 0.state\n"
        "tare calibrate prepared.safetensors --data photos/ --shard 1/2 -o 1.state\n"
        "tare calibrate --merge 0.state 1.state -o all.state\n"
        "tare quantize prepared.safetensors --backend x86 --state all.state -o int8.safetensors\n",
    .run = run,
};
