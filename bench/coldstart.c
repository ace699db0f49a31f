// SPDX-License-Identifier: Apache-2.0
// What a first result costs: wall time from a process's start to its end, and its peak memory,
// medians of many processes.
// usage: coldstart PROGRAM [ARGUMENT..]   e.g. coldstart build/bin/tare run MODEL --input X.npy
#define _DEFAULT_SOURCE // wait4
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

enum { WARM_UPS = 3, RUNS = 41 };

typedef struct cost {
    double ms, user_ms, system_ms, peak_mib;
} cost;

static double ms_of(struct timeval t) {
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static int start_once(char **argv, cost *out) {
    struct rusage used;
    int status = 0;
    const double start = now_ms();
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0) (void)dup2(nowhere, STDOUT_FILENO);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) return 0;
    *out = (cost){now_ms() - start, ms_of(used.ru_utime), ms_of(used.ru_stime),
                  (double)used.ru_maxrss / 1024};
    return 1;
}

static double median(const cost *costs, size_t offset) {
    double values[RUNS];
    for (int i = 0; i < RUNS; i++)
        values[i] = *(const double *)(const void *)((const char *)&costs[i] + offset);
    qsort(values, RUNS, sizeof *values, by_value);
    return values[RUNS / 2];
}

int main(int argc, char **argv) {
    cost costs[RUNS];
    if (argc < 2) {
        fprintf(stderr, "usage: coldstart PROGRAM [ARGUMENT..]\n");
        return 2;
    }
    for (int i = -WARM_UPS; i < RUNS; i++) {
        if (start_once(argv + 1, &costs[i < 0 ? 0 : i])) continue;
        fprintf(stderr, "coldstart: '%s' failed\n", argv[1]);
        return 1;
    }
    printf("%.1f ms (user %.1f, system %.1f), peak %.1f MiB\n", median(costs, offsetof(cost, ms)),
           median(costs, offsetof(cost, user_ms)), median(costs, offsetof(cost, system_ms)),
           median(costs, offsetof(cost, peak_mib)));
    return 0;
}
