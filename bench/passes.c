// SPDX-License-Identifier: Apache-2.0
// How long the passes take, and how much memory: prepare and convert of a model, without
// calibration. usage: passes MODEL [BACKEND [ROUNDS]]
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tare/tare.h"
#include "timing.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

enum { MAX_ROUNDS = 100 };

typedef struct bench {
    const char *path;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    double read_ms[MAX_ROUNDS], prepare_ms[MAX_ROUNDS], convert_ms[MAX_ROUNDS];
} bench;

static tare_status run_round(bench *b, int round, tare_error *err) {
    tare_model *model = NULL, *prepared = NULL, *quantized = NULL;
    const double start = now_ms();
    TRY(tare_model_read(b->path, NULL, &model, err));
    const double read = now_ms();
    tare_status status = tare_prepare_fx(
        model, &(tare_prepare_options){.backend = b->backend, .qconfig_mapping = b->mapping},
        &prepared, err);
    const double prepare = now_ms();
    // What tare quantize does: nothing needs the float model any more.
    tare_model_destroy(model);
    const double begin = now_ms();
    if (status == TARE_OK)
        status = tare_convert_fx(prepared,
                                 &(tare_convert_options){.backend = b->backend, .is_lenient = true},
                                 &quantized, err);
    b->read_ms[round] = read - start;
    b->prepare_ms[round] = prepare - read;
    b->convert_ms[round] = now_ms() - begin;
    tare_model_destroy(prepared);
    tare_model_destroy(quantized);
    return status;
}

static double median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_value);
    return times[count / 2];
}

static void report(bench *b, int rounds, long resident_kib) {
    struct stat file;
    const double size = stat(b->path, &file) == 0 ? (double)file.st_size / 0x1p20 : 0;
    printf("%s, %s, %d rounds\n", b->path, tare_backend_config_name(b->backend), rounds);
    printf("  read         %10.3f ms\n", median(b->read_ms, rounds));
    printf("  prepare      %10.3f ms\n", median(b->prepare_ms, rounds));
    printf("  convert      %10.3f ms\n", median(b->convert_ms, rounds));
    printf("  peak memory  %10.1f MiB, %.2f times the file's %.1f MiB\n",
           (double)resident_kib / 1024, (double)resident_kib / 1024 / size, size);
}

static tare_status run(bench *b, const char *backend, int rounds, tare_error *err) {
    TRY(tare_backend_config_builtin(backend, &b->backend, err));
    TRY(tare_qconfig_mapping_default(backend, false, -1, &b->mapping, err));
    TRY(run_round(b, 0, err));
    // Of one round, as in a job; later ones find pieces of freed memory that do not fit.
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    for (int i = 0; i < rounds; i++) TRY(run_round(b, i, err));
    report(b, rounds, usage.ru_maxrss);
    return TARE_OK;
}

int main(int argc, char **argv) {
    const int rounds = argc > 3 ? atoi(argv[3]) : 11;
    if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: %s MODEL [BACKEND [ROUNDS]]\n", argv[0]);
        return 2;
    }
    bench b = {.path = argv[1]};
    tare_error *err = tare_error_create();
    const tare_status status = run(&b, argc > 2 ? argv[2] : "x86", rounds, err);
    if (status != TARE_OK)
        fprintf(stderr, "passes: %s: %s (%s)\n", tare_error_where(err), tare_error_message(err),
                tare_error_hint(err));
    tare_backend_config_destroy(b.backend);
    tare_qconfig_mapping_destroy(b.mapping);
    tare_error_destroy(err);
    return status == TARE_OK ? 0 : 1;
}
