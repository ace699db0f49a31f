// SPDX-License-Identifier: Apache-2.0
// Times a model, alone or alternating with another.
#ifndef CLI_BENCH_MEASURE_H
#define CLI_BENCH_MEASURE_H

#include "bench/bench.h"
#include "options/session.h"
#include "support/models.h"

/// The options of a measurement.
typedef struct bench_settings {
    const char *input; // NULL: random data
    int64_t batch, seconds;
    bool layers, memory; // print them; for layers also measures the machine's peak
    bool has_roofline;
    const session_settings *session;
    const size_options *sizes;
} bench_settings;

/// A model to be timed.
typedef struct bench_subject {
    const char *path;
    const tare_model *model; // given, or NULL: read from `path`
    tare_model *own;         // the model that was read
    tare_session *session;
    double load_ms, start_ms; // reading the file; packing weights and choosing kernels
    double *run_ms;           // sorted at the end
    size_t run_count;
} bench_subject;

typedef struct bench_job {
    bench_settings settings;
    bench_subject subjects[2];
    size_t subject_count;
    tare_data *data;
    tare_batch batch;
    tare_machine_peak peak; // if layers are printed
    layer_list layers, other_layers;
    tare_session_options setting;
    tare_error *err; // lent
} bench_job;

/// Times the subjects, whose paths must be set.
tare_status bench_run(bench_job *j);
void bench_release(bench_job *j);

bool bench_tells_layers(const bench_job *j);
int bench_thread_count(const bench_job *j);
/// A quantile of a subject's times; fraction: 0 to 1.
double bench_quantile(const bench_subject *s, double fraction);
/// The second subject's median divided by the first one's.
double bench_speed_ratio(const bench_job *j);
/// Peak resident memory of this process, in bytes.
uint64_t bench_peak_bytes(void);
/// Writes the output of tare bench --json into an open object.
void bench_write(const bench_job *j, json_out *json);

#endif
