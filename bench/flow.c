// SPDX-License-Identifier: Apache-2.0
// What a model costs on its way: load time, calibration throughput, latency in float and in
// integers, peak memory. Times are medians; float and integer runs take turns, so that both see the
// same machine.
//
// usage: flow [MODEL SHAPE [RUNS]]
//
// SHAPE is one sample's, as 3x224x224. By default: the digits network.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tare/tare.h"
#include "timing.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

enum { MAX_RUNS = 1000, CALIBRATION_SAMPLES = 16 };

typedef struct bench {
    const char *path, *shape;
    int run_count;
    tare_model *model, *prepared, *quantized;
    tare_session *sessions[2]; // float, integer
    double load_ms, calibrate_per_s, convert_ms;
    double median_ms[2], spread_ms[2];
} bench;

static tare_status load(bench *b, tare_error *err) {
    double times[15];
    for (int i = 0; i < 15; i++) {
        tare_model_destroy(b->model);
        b->model = NULL;
        const double start = now_ms();
        TRY(tare_model_read(b->path, NULL, &b->model, err));
        times[i] = now_ms() - start;
    }
    qsort(times, 15, sizeof *times, by_value);
    b->load_ms = times[7];
    return TARE_OK;
}

static tare_status open_random(const bench *b, int samples, tare_data **out, tare_error *err) {
    char spec[256];
    (void)snprintf(spec, sizeof spec, "random:%d:1:%s", samples, b->shape);
    return tare_data_open(spec, b->model, &(tare_data_options){.batch_size = 1}, out, err);
}

static tare_status calibrate(bench *b, tare_error *err) {
    tare_data *data = NULL;
    TRY(open_random(b, CALIBRATION_SAMPLES, &data, err));
    tare_batch batch;
    bool done = false;
    double spent = 0;
    tare_status status = TARE_OK;
    for (;;) {
        status = tare_data_next(data, &batch, &done, err);
        if (status != TARE_OK || done) break;
        const double start = now_ms();
        status = tare_calibrate(b->prepared, batch.inputs, batch.input_count, err);
        spent += now_ms() - start;
        if (status != TARE_OK) break;
    }
    tare_data_close(data);
    b->calibrate_per_s = CALIBRATION_SAMPLES / (spent / 1e3);
    return status;
}

static tare_status quantize(bench *b, tare_error *err) {
    tare_qconfig_mapping *mapping = NULL;
    tare_backend_config *backend = NULL;
    tare_status status = tare_qconfig_mapping_default("x86", false, -1, &mapping, err);
    if (status == TARE_OK) status = tare_backend_config_builtin("x86", &backend, err);
    if (status == TARE_OK)
        status = tare_prepare_fx(
            b->model, &(tare_prepare_options){.backend = backend, .qconfig_mapping = mapping},
            &b->prepared, err);
    if (status == TARE_OK) status = calibrate(b, err);
    const double start = now_ms();
    if (status == TARE_OK)
        status = tare_convert_fx(b->prepared, &(tare_convert_options){.backend = backend},
                                 &b->quantized, err);
    b->convert_ms = now_ms() - start;
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return status;
}

static tare_status run_once(tare_session *session, const tare_batch *batch, double *ms,
                            tare_error *err) {
    tare_tensor *outputs[16];
    size_t count = 0;
    const double start = now_ms();
    TRY(tare_session_run(session, batch->inputs, batch->input_count, outputs, 16, &count, err));
    *ms = now_ms() - start;
    for (size_t i = 0; i < count; i++) tare_tensor_release(outputs[i]);
    return TARE_OK;
}

static tare_status measure(bench *b, tare_error *err) {
    static double times[2][MAX_RUNS];
    tare_data *data = NULL;
    tare_batch batch;
    bool done = false;
    TRY(open_random(b, 1, &data, err));
    tare_status status = tare_data_next(data, &batch, &done, err);
    for (int i = -3; i < b->run_count && status == TARE_OK; i++) // three to warm up
        for (int s = 0; s < 2 && status == TARE_OK; s++)
            status = run_once(b->sessions[s], &batch, &times[s][i < 0 ? 0 : i], err);
    tare_data_close(data);
    for (int s = 0; s < 2 && status == TARE_OK; s++) {
        qsort(times[s], (size_t)b->run_count, sizeof(double), by_value);
        b->median_ms[s] = times[s][b->run_count / 2];
        b->spread_ms[s] = times[s][b->run_count * 9 / 10] - times[s][b->run_count / 10];
    }
    return status;
}

static tare_status run(bench *b, tare_error *err) {
    TRY(load(b, err));
    TRY(quantize(b, err));
    TRY(tare_session_create(b->model, NULL, &b->sessions[0], err));
    TRY(tare_session_create(b->quantized, NULL, &b->sessions[1], err));
    return measure(b, err);
}

static void report(const bench *b) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%s, %s, 1 thread, %s, %d runs\n", b->path, b->shape, tare_isa_name(), b->run_count);
    printf("  load            %10.3f ms\n", b->load_ms);
    printf("  calibrate       %10.1f samples/s\n", b->calibrate_per_s);
    printf("  convert         %10.3f ms\n", b->convert_ms);
    printf("  latency float   %10.4f ms (p10..p90 %.4f)\n", b->median_ms[0], b->spread_ms[0]);
    printf("  latency int8    %10.4f ms (p10..p90 %.4f), %.2f times faster\n", b->median_ms[1],
           b->spread_ms[1], b->median_ms[0] / b->median_ms[1]);
    printf("  peak memory     %10.1f MiB\n", (double)usage.ru_maxrss / 1024);
}

int main(int argc, char **argv) {
    if (argc == 2) {
        fprintf(stderr, "usage: %s [MODEL SHAPE [RUNS]]\n", argv[0]);
        return 2;
    }
    bench b = {.path = argc > 2 ? argv[1] : "data/digits/digits.safetensors",
               .shape = argc > 2 ? argv[2] : "1x8x8"};
    b.run_count = argc > 3 ? atoi(argv[3]) : 101;
    if (b.run_count < 1 || b.run_count > MAX_RUNS) {
        fprintf(stderr, "bench: RUNS is from 1 to %d\n", MAX_RUNS);
        return 2;
    }
    tare_error *err = tare_error_create();
    const tare_status status = run(&b, err);
    if (status == TARE_OK)
        report(&b);
    else
        fprintf(stderr, "bench: %s: %s\n", tare_error_where(err), tare_error_message(err));
    tare_session_destroy(b.sessions[0]);
    tare_session_destroy(b.sessions[1]);
    tare_model_destroy(b.quantized);
    tare_model_destroy(b.prepared);
    tare_model_destroy(b.model);
    tare_error_destroy(err);
    return status == TARE_OK ? 0 : 1;
}
