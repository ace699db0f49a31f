// SPDX-License-Identifier: Apache-2.0
// Runs a graph of unknown origin within limits: first its shapes alone, then, if they are small,
// its numbers. What the fuzzers of operators and of models share.
#ifndef FUZZ_BOUNDED_RUN_H
#define FUZZ_BOUNDED_RUN_H

#include <math.h>
#include <stdlib.h>

#include "ops/interpret.h"
#include "ops/op.h"

enum { MOST_INPUTS = 8, MOST_RESULTS = 200, MOST_ELEMENTS = 1 << 15 };

typedef struct budget {
    int64_t results, elements; // left
} budget;

static tare_status spend(budget *left, const value *v, tare_error *err) {
    if (--left->results < 0) return tare__fail(err, TARE_UNSUPPORTED, "too many results");
    if (v->kind == VALUE_TENSOR) {
        if (v->as.tensor->count > left->elements)
            return tare__fail(err, TARE_UNSUPPORTED, "too many elements");
        left->elements -= v->as.tensor->count;
    }
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        TARE_TRY(spend(left, &v->as.items[i], err));
    return TARE_OK;
}

static tare_status count_result(void *user, const node *n, const value *result, tare_error *err) {
    (void)n;
    return spend(user, result, err);
}

// Numbers of both signs, zeros, and what no arithmetic likes.
static void fill(tare_tensor *t) {
    static const double numbers[] = {0.5,  -1.25, 0,    3,   (double)NAN, 1e30,  -7,
                                     0.01, 2,     -0.0, 127, 1,           -1e-40};
    const size_t count = sizeof numbers / sizeof *numbers;
    const bool is_float = tare__dtype(t->dtype)->is_float;
    for (int64_t i = 0; i < t->count; i++)
        tare__tensor_set(t, i, is_float ? numbers[(size_t)i % count] : (double)(i % 3));
}

static void run_once(module *root, const value *inputs, size_t input_count, bool shapes_only,
                     tare_status *status) {
    budget left = {MOST_RESULTS, MOST_ELEMENTS};
    const interpreter it = {.root = root,
                            .linear_rule = REQUANT_F,
                            .conv_rule = REQUANT_O,
                            .thread_count = 1,
                            .memory_limit = 64 << 20,
                            .shapes_only = shapes_only,
                            .after = count_result,
                            .user = &left};
    arena memory = {0};
    value out = {0};
    tare_error *err = tare_error_create();
    *status = tare__interpret(&it, inputs, input_count, &memory, &out, err);
    if (*status != TARE_OK && tare_error_message(err)[0] == '\0') abort();
    if (*status == TARE_OK) tare__value_release_tensors(&out);
    tare_error_destroy(err);
    tare__arena_release(&memory);
}

static size_t count_placeholders(const graph *g) {
    size_t count = 0;
    for (const node *n = g->first; n != NULL; n = n->next) count += n->op == NODE_PLACEHOLDER;
    return count;
}

// Every input is the same tensor.
static void run_bounded(module *root, tare_tensor *input) {
    value inputs[MOST_INPUTS];
    tare_status status;
    const size_t count = count_placeholders(root->graph);
    if (count > MOST_INPUTS) return;
    for (size_t i = 0; i < count; i++)
        inputs[i] = (value){.kind = VALUE_TENSOR, .as.tensor = input};
    run_once(root, inputs, count, true, &status);
    if (status == TARE_OK) run_once(root, inputs, count, false, &status);
}

static inline void run_bounded_on(module *root, tare_dtype dtype, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    if (tare_tensor_create(dtype, ndim, shape, &t, NULL) != TARE_OK) abort();
    fill(t);
    run_bounded(root, t);
    tare_tensor_release(t);
}

#endif
