// SPDX-License-Identifier: Apache-2.0
// Runs a metric command: predictions in a temporary file, a number on its standard output.
#define _XOPEN_SOURCE 700 // popen
#include "accuracy/metric.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/output.h"
#include "support/report.h"
#include "tare/memory.h"

tare_status keep_predictions(void *user, const tare_tensor *const *floats,
                             const tare_tensor *const *quantized, size_t count,
                             const tare_batch *batch, tare_error *err) {
    predictions *p = user;
    tare_tensor *labels = (tare_tensor *)batch->labels; // NOLINT: counted, not changed
    if (count > GATHER_CAPACITY) count = GATHER_CAPACITY;
    TRY(gather_add(&p->floats, (tare_tensor *const *)floats, count, err));
    TRY(gather_add(&p->quantized, (tare_tensor *const *)quantized, count, err));
    return labels != NULL ? gather_add(&p->labels, &labels, 1, err) : TARE_OK;
}

void predictions_release(predictions *p) {
    gather_release(&p->floats);
    gather_release(&p->quantized);
    gather_release(&p->labels);
}

// --- the file ---

static tare_status write_predictions(const gathered *outputs, const gathered *labels,
                                     const char *path, tare_error *err) {
    char names[GATHER_CAPACITY][GATHER_NAME], label_name[GATHER_CAPACITY][GATHER_NAME];
    joined_outputs joined = {.count = 0}, truth = {.count = 0};
    const tare_tensor *all[GATHER_CAPACITY + 1];
    const char *all_names[GATHER_CAPACITY + 1];
    size_t count = 0;
    tare_status status = gather_join_all(outputs, names, &joined, err);
    if (status == TARE_OK) status = gather_join_all(labels, label_name, &truth, err);
    for (size_t i = 0; status == TARE_OK && i < joined.count; i++) {
        all[count] = joined.tensors[i];
        all_names[count++] = names[i];
    }
    if (status == TARE_OK && truth.count > 0) {
        all[count] = truth.tensors[0];
        all_names[count++] = "labels";
    }
    if (status == TARE_OK) status = tare_arrays_write(path, all_names, all, count, err);
    joined_outputs_release(&joined);
    joined_outputs_release(&truth);
    return status;
}

// --- the command ---

enum { OUTPUT_SIZE = 4096, LINE_SIZE = 8192, PATH_SIZE = 1024 };

static bool last_number(const char *text, double *out) {
    bool found = false;
    for (const char *at = text; *at != '\0';) {
        char *end = NULL;
        const double x = strtod(at, &end);
        if (end != at && (*end == '\0' || strchr(" \t\r\n", *end) != NULL)) {
            *out = x;
            found = true;
            at = end;
        } else {
            at += strcspn(at, " \t\r\n");
        }
        at += strspn(at, " \t\r\n");
    }
    return found && isfinite(*out);
}

static tare_status run_command(const char *program, const char *path, double *out) {
    char line[LINE_SIZE], output[OUTPUT_SIZE];
    const int length = snprintf(line, sizeof line, "%s '%s'", program, path);
    if (length < 0 || (size_t)length >= sizeof line)
        return fail_here("--metric", "write a script", "the command is too long");
    (void)fflush(NULL);
    FILE *stream = popen(line, "r"); // NOLINT: a command of the user, run by the user's shell
    if (stream == NULL) return fail_here("--metric", "try again", "no process could be started");
    size_t used = 0;
    for (int c = getc(stream); c != EOF; c = getc(stream)) {
        if (used == sizeof output - 1) memmove(output, output + 1, --used);
        output[used++] = (char)c;
    }
    output[used] = '\0';
    const int status = pclose(stream);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail_here("--metric", "run it by hand on an .npz that tare run --output wrote",
                         "the command '%s' failed (exit status %d)", program,
                         status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    if (last_number(output, out)) return TARE_OK;
    return fail_here("--metric", "let it print the metric as its last word",
                     "the command '%s' printed no number", program);
}

static tare_status measure_one(const char *program, const gathered *outputs, const gathered *labels,
                               double *out, tare_error *err) {
    char path[PATH_SIZE];
    if (!output_temporary_path("predictions", ".npz", path, sizeof path))
        return fail_here("TMPDIR", "name a folder without quotes in its path",
                         "no file for predictions can be named");
    tare_status status = write_predictions(outputs, labels, path, err);
    if (status == TARE_OK) status = run_command(program, path, out);
    output_remove(path);
    return status;
}

tare_status measure_metric(const char *program, const predictions *p, metric *out,
                           tare_error *err) {
    if (program == NULL) return TARE_OK;
    TRY(measure_one(program, &p->floats, &p->labels, &out->of_float, err));
    TRY(measure_one(program, &p->quantized, &p->labels, &out->of_quantized, err));
    out->has_values = true;
    return TARE_OK;
}
