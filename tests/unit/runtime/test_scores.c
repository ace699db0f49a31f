// SPDX-License-Identifier: Apache-2.0
// Attention that is written out: one step gives what its operators give one by one.
#include "support/models.h"
#include "support/test.h"

#include <math.h>

#include "tare/session.h"

enum { INPUTS = 4, MOST_OUTPUTS = 2 };

typedef struct scores_case {
    const char *what, *body; // of forward(self, q, k, v, m)
    int64_t shape[INPUTS][4];
    int ndim[INPUTS];
    bool is_one_step;
} scores_case;

#define FOUR                                                                                       \
    { 4, 4, 4, 4 }
#define HEADS                                                                                      \
    {                                                                                              \
        {2, 3, 5, 8}, {2, 3, 7, 8}, {2, 3, 7, 6}, {                                                \
            2, 1, 1, 7                                                                             \
        }                                                                                          \
    }
#define LENGTHS                                                                                    \
    {                                                                                              \
        {2, 5, 3, 8}, {2, 7, 3, 8}, {2, 7, 3, 6}, {                                                \
            2, 1, 5, 1                                                                             \
        }                                                                                          \
    }

static const scores_case cases[] = {
    {"scaled and masked",
     "    transpose = k.transpose(-1, -2)\n"
     "    matmul = torch.matmul(q, transpose)\n"
     "    truediv = matmul / 2.5\n"
     "    add = truediv + m\n"
     "    softmax = torch.nn.functional.softmax(add, dim = -1)\n"
     "    matmul_1 = torch.matmul(softmax, v)\n"
     "    return matmul_1\n",
     HEADS, FOUR, true},
    {"with heads swapped before and behind",
     "    permute = q.permute(0, 2, 1, 3)\n"
     "    permute_1 = k.permute(0, 2, 3, 1)\n"
     "    permute_2 = v.permute(0, 2, 1, 3)\n"
     "    matmul = permute @ permute_1\n"
     "    mul = matmul * 0.3\n"
     "    add = m + mul\n"
     "    softmax = add.softmax(-1)\n"
     "    matmul_1 = softmax @ permute_2\n"
     "    permute_3 = matmul_1.permute(0, 2, 1, 3)\n"
     "    add_1 = permute_3 + 1.0\n"
     "    return add_1\n",
     LENGTHS, FOUR, true},
    {"without a mask and a scale",
     "    transpose = k.transpose(-1, -2)\n"
     "    matmul = torch.bmm(q, transpose)\n"
     "    softmax = torch.nn.functional.softmax(matmul, dim = -1)\n"
     "    matmul_1 = torch.bmm(softmax, v)\n"
     "    relu = torch.relu(m)\n"
     "    return (matmul_1, relu)\n",
     {{4, 9, 6}, {4, 5, 6}, {4, 5, 3}, {2, 2}},
     {3, 3, 3, 2},
     true},
    {"with scores that others read",
     "    transpose = k.transpose(-1, -2)\n"
     "    matmul = torch.matmul(q, transpose)\n"
     "    add = matmul + m\n"
     "    softmax = torch.nn.functional.softmax(add, dim = -1)\n"
     "    matmul_1 = torch.matmul(softmax, v)\n"
     "    return (matmul_1, softmax)\n",
     HEADS, FOUR, false},
    {"over queries",
     "    transpose = k.transpose(-1, -2)\n"
     "    matmul = torch.matmul(q, transpose)\n"
     "    add = matmul + m\n"
     "    softmax = torch.nn.functional.softmax(add, dim = 2)\n"
     "    matmul_1 = torch.matmul(softmax, v)\n"
     "    return matmul_1\n",
     HEADS, FOUR, false},
    {"with probabilities on the right",
     "    matmul = torch.matmul(q, k)\n"
     "    add = matmul + m\n"
     "    softmax = torch.nn.functional.softmax(add, dim = -1)\n"
     "    matmul_1 = torch.matmul(v, softmax)\n"
     "    return matmul_1\n",
     {{2, 3, 5, 8}, {2, 3, 8, 7}, {2, 3, 4, 5}, {5, 7}},
     {4, 4, 4, 2},
     false},
};

static tare_model *make(const scores_case *c) {
    char code[1024];
    snprintf(code, sizeof code, "def forward(self, q, k, v, m):\n%s", c->body);
    return new_model(NULL, new_tree(), code);
}

static void fill(const scores_case *c, tare_tensor *out[INPUTS]) {
    uint64_t seed = 3;
    for (int i = 0; i < INPUTS; i++) {
        CHECK_DONE(tare_tensor_create(TARE_FLOAT32, c->ndim[i], c->shape[i], &out[i], job_error()));
        for (int64_t k = 0; k < out[i]->count; k++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            tare__f32(out[i])[k] = (float)(seed >> 40) / 4194304.0F - 2.0F;
        }
    }
}

// How many outputs there are.
static size_t run(const tare_model *model, const tare_session_options *options,
                  tare_tensor *const inputs[INPUTS], tare_tensor *outputs[MOST_OUTPUTS],
                  bool *is_one_step) {
    tare_session *session = NULL;
    tare_step step = {.struct_size = sizeof step};
    size_t count = 0;
    CHECK_DONE(tare_session_create(model, options, &session, job_error()));
    for (int i = 0; i < 2; i++) { // a second run finds the memory of the first
        for (size_t k = 0; k < count; k++) tare_tensor_release(outputs[k]);
        CHECK_DONE(tare_session_run(session, (const tare_tensor *const *)inputs, INPUTS, outputs,
                                    MOST_OUTPUTS, &count, job_error()));
    }
    *is_one_step = false;
    for (size_t i = 0; tare_session_get_step(session, i, &step); i++)
        *is_one_step = *is_one_step || strcmp(step.kind, "attention") == 0;
    tare_session_destroy(session);
    return count;
}

static void check_close(const char *what, const tare_tensor *a, const tare_tensor *b) {
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        if (!(fabsf(tare__f32(a)[i] - tare__f32(b)[i]) <= 2e-6F * (1 + fabsf(tare__f32(b)[i]))))
            fail_msg("%s: element %lld is %g, expected %g", what, (long long)i,
                     (double)tare__f32(a)[i], (double)tare__f32(b)[i]);
}

static bool has_library(void) {
    return strncmp(tare_build_features(), "no oneDNN", 9) != 0;
}

static void one_step_gives_what_operators_give(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_model *model = make(&cases[i]);
        tare_tensor *inputs[INPUTS], *expected[MOST_OUTPUTS], *found[MOST_OUTPUTS];
        const tare_session_options reference = {.reference = true};
        bool is_one_step;
        fill(&cases[i], inputs);
        const size_t count = run(model, &reference, inputs, expected, &is_one_step);
        for (int threads = 1; threads <= 3; threads++) {
            const tare_session_options options = {.thread_count = threads};
            assert_int_equal(run(model, &options, inputs, found, &is_one_step), count);
            if (has_library() && is_one_step != cases[i].is_one_step)
                fail_msg("%s: expected %s", cases[i].what, is_one_step ? "more steps" : "one step");
            for (size_t k = 0; k < count; k++) {
                check_close(cases[i].what, found[k], expected[k]);
                tare_tensor_release(found[k]);
            }
        }
        for (size_t k = 0; k < count; k++) tare_tensor_release(expected[k]);
        for (int k = 0; k < INPUTS; k++) tare_tensor_release(inputs[k]);
        tare_model_destroy(model);
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = make(&cases[1]);
    tare_tensor *inputs[INPUTS];
    fill(&cases[1], inputs);
    for (long request = 1;; request++) {
        tare_session *session = NULL;
        tare_tensor *y = NULL;
        size_t count = 0;
        tare__alloc_fail_at(request);
        tare_status status = tare_session_create(model, NULL, &session, job_error());
        if (status == TARE_OK)
            status = tare_session_run(session, (const tare_tensor *const *)inputs, INPUTS, &y, 1,
                                      &count, job_error());
        const bool was_denied = tare__alloc_failed();
        tare__alloc_fail_at(0);
        if (status == TARE_OK) tare_tensor_release(y);
        if (status != TARE_OK) assert_int_equal(status, TARE_OUT_OF_MEMORY);
        tare_session_destroy(session);
        if (!was_denied) break;
    }
    for (int k = 0; k < INPUTS; k++) tare_tensor_release(inputs[k]);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_gives_what_operators_give),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
