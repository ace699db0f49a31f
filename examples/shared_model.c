// SPDX-License-Identifier: Apache-2.0
// One model, a session for each thread: THREADS threads make a session each and run it RUNS times,
// all at once, while one more makes and destroys sessions; ROUNDS times over. Every output must
// have the bits that a session alone gives in the same run of it.
//
//     shared_model MODEL SHAPE ROUNDS [THREADS]
//
// ctest: data/digits/digits.safetensors 2x1x8x8 3
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tare/tare.h"

enum { RUNS = 6, MOST_OUTPUTS = 8, MOST_THREADS = 256 };

// The outputs of a session's runs, one behind the other.
typedef struct trace {
    tare_tensor *outputs[RUNS][MOST_OUTPUTS];
    size_t counts[RUNS];
    tare_status status;
} trace;

typedef struct job {
    const tare_model *model;
    const tare_tensor *input;
    const trace *wanted; // NULL: sessions come and go, nothing is compared
    int wrong;
} job;

static void release(trace *t) {
    for (int r = 0; r < RUNS; r++)
        for (size_t i = 0; i < t->counts[r]; i++) tare_tensor_release(t->outputs[r][i]);
}

static void run_session(const tare_model *model, const tare_tensor *input, trace *out) {
    tare_session *session = NULL;
    *out = (trace){.status = tare_session_create(model, NULL, &session, NULL)};
    for (int r = 0; r < RUNS && out->status == TARE_OK; r++)
        out->status = tare_session_run(session, &input, 1, out->outputs[r], MOST_OUTPUTS,
                                       &out->counts[r], NULL);
    tare_session_destroy(session);
}

// Floats, as networks give.
static bool same_bits(const tare_tensor *a, const tare_tensor *b) {
    const int64_t count = tare_tensor_element_count(a);
    return tare_tensor_dtype(a) == TARE_FLOAT32 && tare_tensor_dtype(b) == TARE_FLOAT32 &&
           count == tare_tensor_element_count(b) &&
           memcmp(tare_tensor_data(a), tare_tensor_data(b), (size_t)count * sizeof(float)) == 0;
}

static int count_wrong(const trace *a, const trace *b) {
    int wrong = a->status != TARE_OK;
    for (int r = 0; r < RUNS; r++) {
        wrong += a->counts[r] != b->counts[r];
        for (size_t i = 0; i < a->counts[r] && i < b->counts[r]; i++)
            wrong += !same_bits(a->outputs[r][i], b->outputs[r][i]);
    }
    return wrong;
}

static void *work(void *user) {
    job *j = user;
    trace found;
    if (j->wanted != NULL) {
        run_session(j->model, j->input, &found);
        j->wrong += count_wrong(&found, j->wanted);
        release(&found);
        return NULL;
    }
    for (int i = 0; i < RUNS; i++) {
        tare_session *session = NULL;
        j->wrong += tare_session_create(j->model, NULL, &session, NULL) != TARE_OK;
        tare_session_destroy(session);
    }
    return NULL;
}

static int run_round(const tare_model *model, const tare_tensor *input, const trace *wanted,
                     int thread_count) {
    static job jobs[MOST_THREADS + 1];
    pthread_t threads[MOST_THREADS + 1];
    int started = 0, wrong = 0;
    for (int i = 0; i <= thread_count; i++) {
        jobs[i] = (job){model, input, i < thread_count ? wanted : NULL, 0};
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        wrong += jobs[i].wrong;
    }
    return started == thread_count + 1 ? wrong : wrong + 1;
}

static tare_tensor *read_shape(const char *chars) {
    int64_t shape[TARE_MAX_DIMS] = {0};
    int ndim = 0;
    tare_tensor *t = NULL;
    for (char *end; *chars != '\0' && ndim < TARE_MAX_DIMS; chars = *end == 'x' ? end + 1 : end) {
        shape[ndim++] = strtoll(chars, &end, 10);
        if (end == chars) return NULL;
    }
    if (tare_tensor_create(TARE_FLOAT32, ndim, shape, &t, NULL) != TARE_OK) return NULL;
    float *values = tare_tensor_mutable_data(t);
    for (int64_t i = 0; i < tare_tensor_element_count(t); i++) values[i] = (float)(i % 17) / 8 - 1;
    return t;
}

static int check(const tare_model *model, const tare_tensor *input, int rounds, int thread_count) {
    trace wanted;
    int wrong = 0, done = 0;
    run_session(model, input, &wanted);
    for (; done < rounds && wanted.status == TARE_OK; done++)
        wrong += run_round(model, input, &wanted, thread_count);
    printf("%d rounds of %d threads with %d runs each: %d wrong\n", done, thread_count, RUNS,
           wrong);
    release(&wanted);
    return wrong == 0 && wanted.status == TARE_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    tare_model *model = NULL;
    tare_tensor *input = argc > 2 ? read_shape(argv[2]) : NULL;
    const int rounds = argc > 3 ? atoi(argv[3]) : 0, threads = argc > 4 ? atoi(argv[4]) : 8;
    int result = 2;
    if (input == NULL || rounds < 1 || threads < 1 || threads > MOST_THREADS)
        (void)fprintf(stderr, "usage: shared_model MODEL SHAPE ROUNDS [THREADS]\n");
    else if (tare_model_read(argv[1], NULL, &model, NULL) != TARE_OK)
        (void)fprintf(stderr, "%s: cannot be read\n", argv[1]);
    else
        result = check(model, input, rounds, threads);
    tare_model_destroy(model);
    tare_tensor_release(input);
    return result;
}
