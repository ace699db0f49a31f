// SPDX-License-Identifier: Apache-2.0
// tare, the command line: finds and calls the command.
#define _XOPEN_SOURCE 700 // SIGPIPE, SIGXFSZ
#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "commands/help.h"
#include "options/usage.h"
#include "support/report.h"
#include "support/terminal.h"
#include "tare/file.h"

// To add a command: write a file that ends with its row, add the row's name to options/command.h,
// and a line here.
const command *const commands[] = {
    &print_command,
    &backend_command,
    &qconfig_command,
    &quantizer_command,
    &quantize_command,
    &analyze_command,
    &improve_command,
    &run_command,
    &bench_command,
    &explain_command,
    &compare_command,
    &calibrate_command,
    &preprocess_command,
    &export_command,
    &report_command,
    &version_command,
    &completion_command,
    &help_command,
    NULL,
};

static bool asks_for_help(int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static int run_command_line(int argc, char **argv) {
    const char *name = argv[0];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = help_command.name;
    if (strcmp(name, "--version") == 0) name = version_command.name;
    const command *found = find_command(name);
    if (found == NULL) return unknown_command(name);
    if (!asks_for_help(argc - 1, argv + 1)) return found->run(found, argc - 1, argv + 1);
    write_help(found, stdout);
    return finish_job(found->name, TARE_OK, NULL);
}

// Memory that a run frees serves the next one. Given back to the system, as glibc does with large
// blocks at first, it is cleared again, which takes a third of the time of a first run in floats.
static void keep_freed_memory(void) {
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 25); // the largest that it takes
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

int main(int argc, char **argv) {
    keep_freed_memory();
    // If the reader of a pipe exits, writing fails with an error message, and nothing is left half
    // done.
    (void)signal(SIGPIPE, SIG_IGN);
    // The same for a file that would exceed `ulimit -f`.
    (void)signal(SIGXFSZ, SIG_IGN);
    guard_terminals();
    // Without the guard the program works, too.
    (void)tare_file_guard(NULL);
    if (argc >= 2) return run_command_line(argc - 1, argv + 1);
    print_overview(stderr);
    return EXIT_WRONG_USAGE;
}
