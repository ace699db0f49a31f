// SPDX-License-Identifier: Apache-2.0
// The demo: the handwritten-digits network, quantized for two backends, beside its float self.
// usage: demo FOLDER [ROUNDS [IMAGES]]   in the top folder. Leaves the models in FOLDER and figures
// in FOLDER.json. Times ROUNDS runs of every image (5); calibrates on IMAGES images (all).
//
// ctest: build/demo-test 1 256
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tare/tare.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status try_status = (call);                                                     \
        if (try_status != TARE_OK) return try_status;                                              \
    } while (0)

static const char float_path[] = "data/digits/digits.safetensors";
static const char onnx_path[] = "data/digits/digits.onnx"; // the same network
static const char training_data[] = "data/digits/train.npz";
static const char test_data[] = "data/digits/test.npz";

enum { CALIBRATION_BATCH = 32, TEXT_SIZE = 16384 };

/// How much work to do.
typedef struct effort {
    int64_t round_count, calibration_limit; // limit 0: none
} effort;

/// What one backend is asked for. A NULL file means the built-in one of the backend's name.
typedef struct target {
    const char *name, *backend_file, *mapping_file;
} target;

static const target targets[] = {
    {"x86", NULL, NULL},
    {"my_backend", "examples/my_backend.json", "examples/my_mapping.json"},
};
enum { TARGET_COUNT = sizeof targets / sizeof *targets };

/// The figures of one target. Accuracies and agreement are fractions, times are per image.
typedef struct figures {
    double float_accuracy, int8_accuracy, agreement;
    double float_ms, int8_ms;
    long float_bytes, int8_bytes;
    tare_coverage coverage;
    bool onnx_differs;           // its ONNX file gives another model
    char explanation[TEXT_SIZE]; // a line per operator
} figures;

/// A growing list of times.
typedef struct times {
    double *ms;
    size_t count, capacity;
} times;

// --- small things ---

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static tare_status add_time(times *t, double ms) {
    if (t->count == t->capacity) {
        const size_t capacity = t->capacity > 0 ? 2 * t->capacity : 1024;
        double *larger = realloc(t->ms, capacity * sizeof *larger);
        if (larger == NULL) return TARE_OUT_OF_MEMORY;
        t->ms = larger;
        t->capacity = capacity;
    }
    t->ms[t->count++] = ms;
    return TARE_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const times *t) {
    if (t->count == 0) return 0;
    qsort(t->ms, t->count, sizeof *t->ms, by_size);
    return t->ms[t->count / 2];
}

static long file_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (long)info.st_size : 0;
}

static bool keep_text(void *user, const char *chars, size_t length) {
    char *text = user;
    const size_t used = strlen(text);
    if (length >= TEXT_SIZE - used) return false;
    memcpy(text + used, chars, length);
    text[used + length] = '\0';
    return true;
}

// --- quantize ---

static tare_status load_configs(const target *t, tare_backend_config **backend,
                                tare_qconfig_mapping **mapping, tare_error *err) {
    TRY(t->backend_file != NULL ? tare_backend_config_read(t->backend_file, backend, err)
                                : tare_backend_config_builtin(t->name, backend, err));
    return t->mapping_file != NULL ? tare_qconfig_mapping_read(t->mapping_file, mapping, err)
                                   : tare_qconfig_mapping_default(t->name, false, -1, mapping, err);
}

/// Training images only: the held-out ones are for judging.
static tare_status calibrate(tare_model *prepared, const effort *e, tare_error *err) {
    const tare_data_options options = {.batch_size = CALIBRATION_BATCH,
                                       .sample_limit = e->calibration_limit};
    tare_data *data = NULL;
    TRY(tare_data_open(training_data, prepared, &options, &data, err));
    const tare_status status = tare_calibrate_data(prepared, data, NULL, NULL, err);
    tare_data_close(data);
    return status;
}

static tare_status convert(const tare_model *model, const tare_backend_config *backend,
                           const tare_qconfig_mapping *mapping, const effort *e, tare_model **out,
                           tare_error *err) {
    const tare_prepare_options how_to_prepare = {.backend = backend, .qconfig_mapping = mapping};
    const tare_convert_options how_to_convert = {.backend = backend};
    tare_model *prepared = NULL;
    TRY(tare_prepare_fx(model, &how_to_prepare, &prepared, err));
    tare_status status = calibrate(prepared, e, err);
    if (status == TARE_OK) status = tare_convert_fx(prepared, &how_to_convert, out, err);
    tare_model_destroy(prepared);
    return status;
}

static tare_status quantize(const tare_model *model, const target *t, const effort *e,
                            tare_model **out, tare_error *err) {
    tare_backend_config *backend = NULL;
    tare_qconfig_mapping *mapping = NULL;
    tare_status status = load_configs(t, &backend, &mapping, err);
    if (status == TARE_OK) status = convert(model, backend, mapping, e, out, err);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return status;
}

// --- evaluate ---

/// Two models that run the same images in turns, so that a machine that changes its pace changes it
/// for both.
typedef struct race {
    tare_session *sessions[2]; // float, int8
    times times[2];
    int64_t correct[2], agreeing, image_count;
} race;

static int64_t predicted_digit(const tare_tensor *scores) {
    const float *row = tare_tensor_data(scores);
    int64_t best = 0;
    for (int64_t i = 1; i < tare_tensor_element_count(scores); i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static tare_status run_image(race *r, int which, const tare_batch *image, int64_t *digit,
                             tare_error *err) {
    tare_tensor *scores = NULL;
    size_t count = 0;
    const double begin = now_ms();
    TRY(tare_session_run(r->sessions[which], image->inputs, image->input_count, &scores, 1, &count,
                         err));
    const tare_status status = add_time(&r->times[which], now_ms() - begin);
    *digit = predicted_digit(scores);
    tare_tensor_release(scores);
    return status;
}

static tare_status run_round(race *r, tare_data *data, tare_error *err) {
    for (bool done = false;;) {
        tare_batch image = {0};
        int64_t digits[2] = {0, 0};
        TRY(tare_data_next(data, &image, &done, err));
        if (done) return TARE_OK;
        for (int which = 0; which < 2; which++)
            TRY(run_image(r, which, &image, &digits[which], err));
        const int64_t label = *(const int64_t *)tare_tensor_data(image.labels);
        for (int which = 0; which < 2; which++)
            if (digits[which] == label) r->correct[which]++;
        if (digits[0] == digits[1]) r->agreeing++;
        r->image_count++;
    }
}

static tare_status run_race(race *r, const tare_model *model, int64_t round_count,
                            tare_error *err) {
    const tare_data_options one_by_one = {.batch_size = 1};
    tare_data *data = NULL;
    TRY(tare_data_open(test_data, model, &one_by_one, &data, err));
    tare_status status = TARE_OK;
    for (int64_t i = 0; i < round_count && status == TARE_OK; i++) {
        status = run_round(r, data, err);
        if (status == TARE_OK) status = tare_data_rewind(data, err);
    }
    tare_data_close(data);
    return status;
}

static tare_status evaluate(const tare_model *model, const tare_model *quantized, const effort *e,
                            figures *out, tare_error *err) {
    race r = {.image_count = 0};
    const tare_model *models[2] = {model, quantized};
    tare_status status = TARE_OK;
    for (int i = 0; i < 2 && status == TARE_OK; i++)
        status = tare_session_create(models[i], NULL, &r.sessions[i], err);
    if (status == TARE_OK) status = run_race(&r, model, e->round_count, err);
    if (status == TARE_OK && r.image_count > 0) {
        const double count = (double)r.image_count;
        out->float_accuracy = (double)r.correct[0] / count;
        out->int8_accuracy = (double)r.correct[1] / count;
        out->agreement = (double)r.agreeing / count;
        out->float_ms = median(&r.times[0]);
        out->int8_ms = median(&r.times[1]);
    }
    for (int i = 0; i < 2; i++) {
        tare_session_destroy(r.sessions[i]);
        free(r.times[i].ms);
    }
    return status;
}

static tare_status judge(const tare_model *model, const tare_model *quantized, const char *path,
                         const effort *e, figures *out, tare_error *err) {
    TRY(tare_model_write(quantized, path, err));
    TRY(evaluate(model, quantized, e, out, err));
    TRY(tare_model_coverage(quantized, &out->coverage, err));
    TRY(tare_model_explain(quantized, NULL, keep_text, out->explanation, err));
    out->float_bytes = file_bytes(float_path);
    out->int8_bytes = file_bytes(path);
    return TARE_OK;
}

static tare_status run_target(const tare_model *model, const target *t, const char *folder,
                              const effort *e, figures *out, tare_error *err) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/digits_%s.safetensors", folder, t->name);
    tare_model *quantized = NULL;
    TRY(quantize(model, t, e, &quantized, err));
    const tare_status status = judge(model, quantized, path, e, out, err);
    tare_model_destroy(quantized);
    return status;
}

// --- the same network from an ONNX file ---

static tare_status run_all(const tare_model *model, tare_tensor **out, tare_error *err) {
    tare_data *data = NULL;
    tare_session *session = NULL;
    tare_batch images = {0};
    size_t count = 0;
    bool done = false;
    TRY(tare_data_open(test_data, model, NULL, &data, err));
    tare_status status = tare_data_next(data, &images, &done, err);
    if (status == TARE_OK) status = tare_session_create(model, NULL, &session, err);
    if (status == TARE_OK)
        status = tare_session_run(session, images.inputs, images.input_count, out, 1, &count, err);
    tare_session_destroy(session);
    tare_data_close(data);
    return status;
}

static bool are_equal(const tare_tensor *a, const tare_tensor *b) {
    const size_t bytes = (size_t)tare_tensor_element_count(a) * sizeof(float);
    return tare_tensor_element_count(a) == tare_tensor_element_count(b) &&
           memcmp(tare_tensor_data(a), tare_tensor_data(b), bytes) == 0;
}

/// Quantizes it for the first target and compares with what `path` computes, to the bit.
static tare_status compare_onnx(const tare_model *onnx, const char *path, const effort *e,
                                bool *is_same, tare_error *err) {
    tare_model *models[2] = {NULL, NULL};
    tare_tensor *scores[2] = {NULL, NULL};
    tare_status status = tare_model_read(path, NULL, &models[0], err);
    if (status == TARE_OK) status = quantize(onnx, &targets[0], e, &models[1], err);
    for (int i = 0; i < 2 && status == TARE_OK; i++) status = run_all(models[i], &scores[i], err);
    if (status == TARE_OK) *is_same = are_equal(scores[0], scores[1]);
    for (int i = 0; i < 2; i++) {
        tare_tensor_release(scores[i]);
        tare_model_destroy(models[i]);
    }
    return status;
}

static tare_status run_onnx(const char *folder, const effort *e, figures *f, tare_error *err) {
    char path[1024];
    bool is_same = false;
    tare_model *onnx = NULL;
    const tare_status status = tare_model_read(onnx_path, NULL, &onnx, err);
    if (status == TARE_UNSUPPORTED) return TARE_OK; // this build reads no ONNX
    if (status != TARE_OK) return status;
    (void)snprintf(path, sizeof path, "%s/digits_%s.safetensors", folder, targets[0].name);
    printf("quantizing %s for %s: ", onnx_path, targets[0].name);
    const tare_status compared = compare_onnx(onnx, path, e, &is_same, err);
    if (compared == TARE_OK)
        printf("%s\n", is_same ? "the same outputs, to the bit" : "other outputs");
    f->onnx_differs = !is_same;
    tare_model_destroy(onnx);
    return compared;
}

// --- the table ---

static void print_header(void) {
    printf("\n%-26s", "");
    for (int i = 0; i < TARGET_COUNT; i++) printf("  %14s", targets[i].name);
    printf("\n");
}

#define PRINT_ROW(label, format, ...)                                                              \
    do {                                                                                           \
        printf("%-26s", label);                                                                    \
        for (int i = 0; i < TARGET_COUNT; i++) {                                                   \
            const figures *f = &all[i];                                                            \
            char cell[48];                                                                         \
            (void)snprintf(cell, sizeof cell, format, __VA_ARGS__);                                \
            printf("  %14s", cell);                                                                \
        }                                                                                          \
        printf("\n");                                                                              \
    } while (0)

static void print_table(const figures *all) {
    print_header();
    PRINT_ROW("float accuracy", "%.2f %%", 100 * f->float_accuracy);
    PRINT_ROW("int8 accuracy", "%.2f %%", 100 * f->int8_accuracy);
    PRINT_ROW("predictions that agree", "%.2f %%", 100 * f->agreement);
    PRINT_ROW("size on disk, float", "%.1f kB", (double)f->float_bytes / 1e3);
    PRINT_ROW("size on disk, int8", "%.1f kB", (double)f->int8_bytes / 1e3);
    PRINT_ROW("latency, float", "%.4f ms", f->float_ms);
    PRINT_ROW("latency, int8", "%.4f ms", f->int8_ms);
    PRINT_ROW("float over int8", "%.2f x", f->int8_ms > 0 ? f->float_ms / f->int8_ms : 0);
    PRINT_ROW("operators quantized", "%" PRIu64, f->coverage.quantized_op_count);
    PRINT_ROW("operators left float", "%" PRIu64,
              f->coverage.op_count - f->coverage.quantized_op_count);
    printf("\nAccuracy on the 360 held-out images; latency: median per image, batch 1, one thread, "
           "%s,\nfloat and int8 in turns.\n",
           tare_isa_name());
}

/// A line of the explanation, "NAME (OPERATOR): left float: REASON", taken apart in place.
typedef struct left_operator {
    char *name, *reason;
} left_operator;

static bool read_line(char *line, left_operator *out) {
    static const char mark[] = ": left float: ";
    char *reason = strstr(line, mark), *space = strchr(line, ' ');
    if (reason == NULL || space == NULL || space > reason) return false;
    *space = '\0';
    *out = (left_operator){.name = line, .reason = reason + strlen(mark)};
    return true;
}

static size_t read_lines(char *text, left_operator *out, size_t capacity) {
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line != NULL && count < capacity;
         line = strtok(NULL, "\n"))
        if (read_line(line, &out[count])) count++;
    return count;
}

/// One paragraph per reason, with the operators that it keeps float.
static void print_reasons(const target *t, figures *f) {
    left_operator left[64];
    const size_t count = read_lines(f->explanation, left, sizeof left / sizeof *left);
    if (count > 0) printf("\nLeft float for %s:\n", t->name);
    for (size_t i = 0; i < count; i++) {
        bool was_told = false;
        for (size_t k = 0; k < i; k++)
            was_told = was_told || strcmp(left[k].reason, left[i].reason) == 0;
        if (was_told) continue;
        printf("  %s:\n   ", left[i].reason);
        for (size_t k = i; k < count; k++)
            if (strcmp(left[k].reason, left[i].reason) == 0) printf(" %s", left[k].name);
        printf("\n");
    }
}

// --- the figures as JSON ---

static void write_figures(FILE *out, const figures *f, const char *indent) {
    (void)fprintf(out, "%s\"float_accuracy\": %.6f,\n", indent, f->float_accuracy);
    (void)fprintf(out, "%s\"int8_accuracy\": %.6f,\n", indent, f->int8_accuracy);
    (void)fprintf(out, "%s\"agreement\": %.6f,\n", indent, f->agreement);
    (void)fprintf(out, "%s\"float_bytes\": %ld,\n", indent, f->float_bytes);
    (void)fprintf(out, "%s\"int8_bytes\": %ld,\n", indent, f->int8_bytes);
    (void)fprintf(out, "%s\"float_ms\": %.6f,\n", indent, f->float_ms);
    (void)fprintf(out, "%s\"int8_ms\": %.6f,\n", indent, f->int8_ms);
    (void)fprintf(out, "%s\"quantized_ops\": %" PRIu64 ",\n", indent,
                  f->coverage.quantized_op_count);
    (void)fprintf(out, "%s\"float_ops\": %" PRIu64, indent,
                  f->coverage.op_count - f->coverage.quantized_op_count);
}

/// The first target's figures at the top, those of the others under their names.
static bool write_json(const char *path, const figures *all) {
    FILE *out = fopen(path, "w");
    if (out == NULL) return false;
    (void)fprintf(out, "{\n");
    write_figures(out, &all[0], " ");
    for (int i = 1; i < TARGET_COUNT; i++) {
        (void)fprintf(out, ",\n \"%s\": {\n", targets[i].name);
        write_figures(out, &all[i], "  ");
        (void)fprintf(out, "\n }");
    }
    (void)fprintf(out, "\n}\n");
    const bool was_written = !ferror(out);
    return fclose(out) == 0 && was_written;
}

// --- the demo ---

static tare_status run_demo(const char *folder, const effort *e, figures *all, tare_error *err) {
    tare_model *model = NULL;
    TRY(tare_model_read(float_path, NULL, &model, err));
    tare_status status = TARE_OK;
    for (int i = 0; i < TARGET_COUNT && status == TARE_OK; i++) {
        printf("quantizing for %s\n", targets[i].name);
        (void)fflush(stdout);
        status = run_target(model, &targets[i], folder, e, &all[i], err);
    }
    tare_model_destroy(model);
    return status == TARE_OK ? run_onnx(folder, e, &all[0], err) : status;
}

/// Like mkdir -p. Where a folder cannot be made, writing the model says so.
static void make_folders(const char *path) {
    char part[1024];
    for (size_t i = 1; i <= strlen(path) && i < sizeof part; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        (void)snprintf(part, sizeof part, "%.*s", (int)i, path);
        (void)mkdir(part, 0777);
    }
}

/// Both files give one model, and half a point is what quantizing for x86 may cost.
static bool is_right(const figures *f) {
    if (f->onnx_differs) {
        (void)fprintf(stderr, "demo: %s gives another model than %s\n", onnx_path, float_path);
        return false;
    }
    if (f->int8_accuracy >= f->float_accuracy - 0.005) return true;
    (void)fprintf(stderr, "demo: int8 is more than 0.5 points less accurate than float\n");
    return false;
}

static bool report(const char *folder, figures *all) {
    char path[1024];
    print_table(all);
    for (int i = 0; i < TARGET_COUNT; i++) print_reasons(&targets[i], &all[i]);
    (void)snprintf(path, sizeof path, "%s.json", folder);
    if (!write_json(path, all)) {
        (void)fprintf(stderr, "demo: %s: writing failed\n", path);
        return false;
    }
    printf("\nModels: %s/, figures: %s\n", folder, path);
    return is_right(&all[0]);
}

int main(int argc, char **argv) {
    static figures all[TARGET_COUNT];
    const effort e = {.round_count = argc > 2 ? atoi(argv[2]) : 5,
                      .calibration_limit = argc > 3 ? atoi(argv[3]) : 0};
    if (argc < 2 || argc > 4 || argv[1][0] == '-' || e.round_count < 1 || e.calibration_limit < 0) {
        (void)fprintf(stderr, "usage: demo FOLDER [ROUNDS [IMAGES]]\n");
        return 2;
    }
    make_folders(argv[1]);
    tare_error *err = tare_error_create();
    const tare_status status = run_demo(argv[1], &e, all, err);
    if (status != TARE_OK)
        (void)fprintf(stderr, "demo: %s: %s\n", tare_error_where(err), tare_error_message(err));
    tare_error_destroy(err);
    return status == TARE_OK && report(argv[1], all) ? 0 : 1;
}
