// SPDX-License-Identifier: Apache-2.0
// Attention that is written out: one step gives what its operators give one by one.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

enum { INPUTS = 4 };

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
    {"with another function of rows",
     "    transpose = k.transpose(-1, -2)\n"
     "    matmul = torch.bmm(q, transpose)\n"
     "    rms_norm = torch.nn.functional.rms_norm(matmul, [5])\n"
     "    matmul_1 = torch.bmm(rms_norm, v)\n"
     "    relu = torch.relu(m)\n"
     "    return (matmul_1, relu)\n",
     {{4, 9, 6}, {4, 5, 6}, {4, 5, 3}, {2, 2}},
     {3, 3, 3, 2},
     true},
    {"with a dtype that changes nothing",
     "    transpose = k.transpose(-1, -2)\n"
     "    matmul = torch.matmul(q, transpose)\n"
     "    add = matmul + m\n"
     "    softmax = torch.nn.functional.softmax(add, dim = -1, dtype = torch.float32)\n"
     "    matmul_1 = torch.matmul(softmax, v)\n"
     "    return matmul_1\n",
     HEADS, FOUR, true},
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

static bool has_library(void) {
    return strncmp(tare_build_features(), "no oneDNN", 9) != 0;
}

static void check_run(const scores_case *c, tare_session *s, const tare_tensor *const *inputs,
                      const run_outputs *expected) {
    run_outputs found = outputs_of(s, inputs, INPUTS);
    const bool is_one_step = count_steps(s, "attention", NULL) > 0;
    if (has_library() && is_one_step != c->is_one_step)
        fail_msg("%s: expected %s", c->what, is_one_step ? "more steps" : "one step");
    assert_int_equal(found.count, expected->count);
    for (size_t i = 0; i < found.count; i++)
        check_near_floats(found.at[i], expected->at[i], 2e-6F, c->what);
    release_outputs(&found);
}

static void one_step_gives_what_operators_give(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_model *model = make(&cases[i]);
        tare_tensor *inputs[INPUTS];
        fill(&cases[i], inputs);
        const tare_tensor *const *in = (const tare_tensor *const *)inputs;
        tare_session *reference = session_of(model, true);
        run_outputs expected = outputs_of(reference, in, INPUTS);
        for (int threads = 1; threads <= 3; threads++) {
            tare_session *s = session_on(model, threads);
            for (int k = 0; k < 2; k++) check_run(&cases[i], s, in, &expected);
            tare_session_destroy(s);
        }
        release_outputs(&expected);
        tare_session_destroy(reference);
        for (int k = 0; k < INPUTS; k++) tare_tensor_release(inputs[k]);
        tare_model_destroy(model);
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = make(&cases[1]);
    tare_tensor *inputs[INPUTS];
    fill(&cases[1], inputs);
    check_run_without_memory(model, NULL, (const tare_tensor *const *)inputs, INPUTS);
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
