// SPDX-License-Identifier: Apache-2.0
// Generates text, as numbers of tokens: a decoder takes a token and its position, and gives logits.
// Its cache of keys and values is state, which the session keeps from run to run: the model and
// other sessions of it do not see it.
//
//     generate MODEL.pt2 TOKEN,TOKEN,.. COUNT [THREADS]
//
// tools/build_decoder.py makes such models, and so does transformers' static cache under
// torch.export. Each next token is the one with the greatest logit. Prints the tokens and how many
// a second were computed.
//
// ctest: examples/data/decoder.pt2 3,1,4 8
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tare/tare.h"

enum { MOST_TOKENS = 1 << 16 };

typedef struct decoder {
    tare_model *model;
    tare_session *session;
    tare_tensor *token, *position; // the inputs, of int64: [1][1] and [1]
    int64_t count;                 // tokens that it has seen
    tare_error *err;
} decoder;

static tare_status open_decoder(decoder *d, const char *path, int threads) {
    static const int64_t one[] = {1, 1};
    const tare_session_options options = {.struct_size = sizeof options, .thread_count = threads};
    tare_status status = tare_model_read(path, NULL, &d->model, d->err);
    if (status == TARE_OK) status = tare_session_create(d->model, &options, &d->session, d->err);
    if (status == TARE_OK) status = tare_tensor_create(TARE_INT64, 2, one, &d->token, d->err);
    if (status == TARE_OK) status = tare_tensor_create(TARE_INT64, 1, one, &d->position, d->err);
    return status;
}

static int64_t greatest(const tare_tensor *logits) {
    const float *x = tare_tensor_data(logits);
    int64_t best = 0;
    for (int64_t i = 1; i < tare_tensor_element_count(logits); i++)
        if (x[i] > x[best]) best = i;
    return best;
}

// The token that follows all that were given so far.
static tare_status next_token(decoder *d, int64_t token, int64_t *next) {
    const tare_tensor *const inputs[] = {d->token, d->position};
    tare_tensor *logits = NULL;
    size_t count = 0;
    *(int64_t *)tare_tensor_mutable_data(d->token) = token;
    *(int64_t *)tare_tensor_mutable_data(d->position) = d->count++;
    const tare_status status = tare_session_run(d->session, inputs, 2, &logits, 1, &count, d->err);
    if (status != TARE_OK) return status;
    *next = greatest(logits);
    tare_tensor_release(logits);
    return TARE_OK;
}

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The prompt goes through token by token; what follows the last one is the first that is new.
static tare_status generate(decoder *d, const char *prompt, long count) {
    int64_t token = 0;
    for (char *end; *prompt != '\0'; prompt = *end == ',' ? end + 1 : end) {
        token = strtoll(prompt, &end, 10);
        if (end == prompt) break;
        const tare_status status = next_token(d, token, &token);
        if (status != TARE_OK) return status;
    }
    const double start = seconds();
    for (long i = 0; i < count; i++) {
        printf("%" PRId64 "%s", token, i + 1 < count ? "," : "\n");
        if (i + 1 == count) break;
        const tare_status status = next_token(d, token, &token);
        if (status != TARE_OK) return status;
    }
    if (count > 1)
        fprintf(stderr, "%.1f tokens a second\n", (double)(count - 1) / (seconds() - start));
    return TARE_OK;
}

int main(int argc, char **argv) {
    const long count = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    if (argc < 4 || argc > 5 || count < 1 || count > MOST_TOKENS) {
        fprintf(stderr, "usage: generate MODEL.pt2 TOKEN,TOKEN,.. COUNT [THREADS]\n");
        return 2;
    }
    decoder d = {.err = tare_error_create()};
    tare_status status = open_decoder(&d, argv[1], argc > 4 ? atoi(argv[4]) : 1);
    if (status == TARE_OK) status = generate(&d, argv[2], count);
    if (status != TARE_OK) fprintf(stderr, "generate: %s\n", tare_error_message(d.err));
    tare_tensor_release(d.token);
    tare_tensor_release(d.position);
    tare_session_destroy(d.session);
    tare_model_destroy(d.model);
    tare_error_destroy(d.err);
    return status == TARE_OK ? 0 : 1;
}
