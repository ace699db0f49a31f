// SPDX-License-Identifier: Apache-2.0
// What it costs to start the command line: median wall time of a process that does nearly nothing.
// usage: startup [PROGRAM]     by default build/bin/tare
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

enum { RUNS = 101 };

// Milliseconds of one `PROGRAM version`, or -1 if it failed.
static double start_once(const char *program) {
    const double start = now_ms();
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0) (void)dup2(nowhere, STDOUT_FILENO);
        (void)execl(program, program, "version", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return -1;
    return now_ms() - start;
}

int main(int argc, char **argv) {
    const char *program = argc > 1 ? argv[1] : "build/bin/tare";
    double times[RUNS];
    for (int i = 0; i < RUNS; i++) {
        times[i] = start_once(program);
        if (times[i] < 0) {
            fprintf(stderr, "startup: '%s version' failed\n", program);
            return 1;
        }
    }
    qsort(times, RUNS, sizeof *times, by_value);
    printf("%s version: %.3f ms (p10..p90 %.3f)\n", program, times[RUNS / 2],
           times[RUNS * 9 / 10] - times[RUNS / 10]);
    return 0;
}
