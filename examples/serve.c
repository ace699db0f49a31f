// SPDX-License-Identifier: Apache-2.0
// A server's side: a model that is in memory, what it takes and gives, and pictures that come as
// the bytes of PNG or JPEG files, or as pixels. README.md shows its main lines.
//
//     serve MODEL [PREPROCESS PICTURE..]      PREPROCESS: "imagenet", .. unless the model has one:
//     "-"
//
// Without pictures it runs one of its own: a ramp from black to white.
//
// ctest: examples/data/my_network.safetensors to_tensor
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tare/tare.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

typedef struct server {
    tare_model *model;
    tare_session *session;
    tare_preprocess *own;          // NULL: the model's
    tare_tensor_info input, first; // the names are lent by `shapes` and the model
    tare_shapes *shapes;
    tare_error *err;
} server;

// --- a file's bytes; a server has them from its network ---

static void *read_bytes(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t capacity = 0, count = 1;
    *size = 0;
    while (file != NULL && count > 0) {
        if (*size == capacity) {
            capacity = capacity * 2 + 65536;
            char *larger = realloc(bytes, capacity);
            if (larger == NULL) break;
            bytes = larger;
        }
        count = fread(bytes + *size, 1, capacity - *size, file);
        *size += count;
    }
    if (file != NULL) (void)fclose(file);
    return bytes;
}

// --- what the model takes and gives ---

static void print_info(const char *what, const tare_tensor_info *info) {
    printf("%s %s: %s [", what, info->name, tare_dtype_name(info->dtype));
    for (int d = 0; d < info->ndim; d++) {
        printf("%s", d > 0 ? ", " : "");
        if (info->shape[d] < 0)
            printf("any");
        else
            printf("%" PRId64, info->shape[d]);
    }
    printf(info->ndim < 0 ? "unknown]\n" : "]\n");
}

static tare_status begin(server *s, void *bytes, size_t size, const char *preprocess) {
    const tare_model_read_options copies = {.copies_file = true}; // `bytes` may go
    TRY(tare_model_read_memory(bytes, size, NULL, &copies, &s->model, s->err));
    TRY(tare_shapes_infer(s->model, NULL, 0, &s->shapes, s->err));
    for (size_t i = 0; i < tare_shapes_input_count(s->shapes); i++) {
        tare_tensor_info info;
        if (tare_shapes_input(s->shapes, i, &info)) print_info("input", &info);
    }
    for (size_t i = 0; i < tare_shapes_output_count(s->shapes); i++) {
        tare_tensor_info info;
        if (tare_shapes_output(s->shapes, i, &info)) print_info("output", &info);
    }
    (void)tare_shapes_input(s->shapes, 0, &s->input);
    (void)tare_shapes_output(s->shapes, 0, &s->first);
    if (strcmp(preprocess, "-") != 0) TRY(tare_preprocess_parse(preprocess, &s->own, s->err));
    return tare_session_create(s->model, NULL, &s->session, s->err);
}

// --- requests ---

static void print_answer(const tare_tensor *scores) {
    const float *score = tare_tensor_data(scores);
    int64_t best = 0;
    if (tare_tensor_dtype(scores) != TARE_FLOAT32) return;
    for (int64_t i = 1; i < tare_tensor_element_count(scores); i++)
        if (score[i] > score[best]) best = i;
    printf("class %" PRId64 "\n", best);
}

// Takes x over.
static tare_status answer(server *s, tare_tensor *x) {
    const tare_tensor *input = x;
    tare_tensor *output = NULL;
    const tare_status status = tare_session_run_named(s->session, &s->input.name, &input, 1,
                                                      &s->first.name, &output, 1, s->err);
    if (status == TARE_OK) print_answer(output);
    tare_tensor_release(output);
    tare_tensor_release(x);
    return status;
}

static const tare_preprocess *steps_of(const server *s) {
    return s->own != NULL ? s->own : tare_model_preprocess(s->model);
}

static tare_status answer_file(server *s, const char *path) {
    size_t size = 0;
    void *bytes = read_bytes(path, &size);
    tare_tensor *x = NULL;
    const tare_status status = tare_preprocess_bytes(steps_of(s), bytes, size, &x, s->err);
    free(bytes);
    return status == TARE_OK ? answer(s, x) : status;
}

static tare_status answer_ramp(server *s) {
    uint8_t pixels[32 * 32 * 3];
    for (int i = 0; i < 32 * 32 * 3; i++) pixels[i] = (uint8_t)(i / 3 * 255 / (32 * 32 - 1));
    const tare_pixels ramp = {.format = TARE_PIXELS_BGR, .data = pixels, .height = 32, .width = 32};
    tare_tensor *x = NULL;
    TRY(tare_preprocess_pixels(steps_of(s), &ramp, &x, s->err));
    return answer(s, x);
}

static tare_status serve(server *s, int argc, char **argv) {
    size_t size = 0;
    void *bytes = read_bytes(argv[1], &size);
    const tare_status status = begin(s, bytes, size, argc > 2 ? argv[2] : "-");
    free(bytes);
    if (status != TARE_OK || steps_of(s) == NULL) return status;
    if (argc < 4) return answer_ramp(s);
    for (int i = 3; i < argc; i++) TRY(answer_file(s, argv[i]));
    return TARE_OK;
}

int main(int argc, char **argv) {
    server s = {.err = tare_error_create()};
    if (argc < 2) return EXIT_FAILURE;
    const tare_status status = serve(&s, argc, argv);
    if (status != TARE_OK)
        fprintf(stderr, "serve: %s: %s (%s)\n", tare_error_where(s.err), tare_error_message(s.err),
                tare_error_hint(s.err));
    tare_session_destroy(s.session);
    tare_preprocess_destroy(s.own);
    tare_shapes_destroy(s.shapes);
    tare_model_destroy(s.model);
    tare_error_destroy(s.err);
    return status == TARE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
