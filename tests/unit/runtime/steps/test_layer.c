// SPDX-License-Identifier: Apache-2.0
// Float layers in bfloat16: off by no more than the rounding of weights and inputs, or refused.
#include "support/models.h"
#include "support/test.h"

#include <math.h>

#include "tare/session.h"

#define NN "torch.nn."

// One layer, whose products are summed in float32: |error| <= bound * sum |x||w|.
typedef struct layer_case {
    const char *name, *class, *config;
    int ndim;
    int64_t shape[4];
} layer_case;

#define CONV(in, out, kernel, pad, groups)                                                         \
    "in_channels=" #in ", out_channels=" #out ", kernel_size=(" #kernel ", " #kernel               \
    "), stride=(1, 1), padding=(" #pad ", " #pad "), dilation=(1, 1), groups=" #groups             \
    ", bias=False, padding_mode='zeros'"

static const layer_case cases[] = {
    {"a 3x3 convolution", NN "Conv2d", CONV(16, 40, 3, 1, 1), 4, {3, 16, 17, 13}},
    {"a 1x1 convolution", NN "Conv2d", CONV(48, 64, 1, 0, 1), 4, {1, 48, 14, 14}},
    {"a stem", NN "Conv2d", CONV(3, 32, 7, 3, 1), 4, {1, 3, 40, 40}},
    {"groups", NN "Conv2d", CONV(32, 64, 3, 1, 2), 4, {2, 32, 9, 9}},
    {"a linear layer", NN "Linear", "in_features=96, out_features=80, bias=False", 2, {33, 96}},
    {"one row", NN "Linear", "in_features=512, out_features=2100, bias=False", 2, {1, 512}},
};

static tare_model *make(const layer_case *c) {
    module *root = new_tree();
    put_module(root, NULL, "layer", c->class, c->config);
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    layer = self.layer(x)\n"
                     "    return layer\n");
}

static tare_status try_session(const tare_model *model, int threads, bool bf16,
                               tare_session **out) {
    const tare_session_options options = {.thread_count = threads, .bfloat16 = bf16};
    return tare_session_create(model, &options, out, job_error());
}

static tare_tensor *run(const tare_model *model, const tare_tensor *x, int threads, bool bf16) {
    tare_session *session = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_DONE(try_session(model, threads, bf16, &session));
    CHECK_DONE(tare_session_run(session, &x, 1, &y, 1, &count, job_error()));
    tare_session_destroy(session);
    return y;
}

static tare_tensor *make_input(const layer_case *c) {
    tare_tensor *x = NULL;
    uint64_t seed = 11;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, c->ndim, c->shape, &x, job_error()));
    for (int64_t i = 0; i < x->count; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        tare__f32(x)[i] = (float)(seed >> 40) / 8388608.0F - 1.0F;
    }
    return x;
}

static void take_sizes(tare_tensor *t) {
    for (int64_t i = 0; i < t->count; i++) tare__f32(t)[i] = fabsf(tare__f32(t)[i]);
}

static bool has_bf16(void) {
    tare_model *model = make(&cases[0]);
    tare_session *session = NULL;
    const tare_status status = try_session(model, 1, true, &session);
    if (status != TARE_OK) assert_int_equal(status, TARE_UNSUPPORTED);
    tare_session_destroy(session);
    tare_model_destroy(model);
    return status == TARE_OK;
}

// Rounding to 8 bits is off by 2^-9 of a number at most; a product of two, by a bit more than 2^-8.
static void check_case(const layer_case *c, int threads) {
    tare_model *model = make(c);
    tare_tensor *x = make_input(c);
    tare_tensor *wide = run(model, x, threads, false), *narrow = run(model, x, threads, true);
    take_sizes(x);
    take_sizes(tare__module_find_tensor(model->root, "layer.weight"));
    tare_tensor *sizes = run(model, x, threads, false);
    double worst = 0;
    bool any = false;
    for (int64_t i = 0; i < wide->count; i++) {
        const double off = fabs((double)tare__f32(narrow)[i] - (double)tare__f32(wide)[i]);
        const double share = off / (double)tare__f32(sizes)[i];
        worst = share > worst ? share : worst;
        any = any || off > 0;
    }
    if (worst > 0x1p-8 + 0x1p-17 + 0x1p-18) fail_msg("%s: off by %g of its size", c->name, worst);
    if (!any) fail_msg("%s: nothing was rounded", c->name);
    tare_tensor_release(sizes);
    tare_tensor_release(wide);
    tare_tensor_release(narrow);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void layers_are_off_by_the_rounding_of_what_they_multiply(void **state) {
    (void)state;
    if (!has_bf16()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) check_case(&cases[i], threads);
}

static void nobody_else_computes_it(void **state) {
    (void)state;
    tare_model *model = make(&cases[0]);
    tare_session *session = NULL;
    const tare_session_options reference = {.reference = true, .bfloat16 = true};
    const tare_session_options portable = {.portable_floats = true, .bfloat16 = true};
    CHECK_REFUSED(tare_session_create(model, &reference, &session, job_error()),
                  TARE_INVALID_ARGUMENT, "bfloat16 needs oneDNN");
    CHECK_REFUSED(tare_session_create(model, &portable, &session, job_error()),
                  TARE_INVALID_ARGUMENT, "bfloat16 needs oneDNN");
    tare_model_destroy(model);
}

static tare_status run_once(const tare_model *model, const tare_tensor *x) {
    tare_session *session = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    const tare_status status = try_session(model, 2, true, &session);
    if (status != TARE_OK) return status;
    const tare_status ran = tare_session_run(session, &x, 1, &y, 1, &count, job_error());
    if (ran == TARE_OK) tare_tensor_release(y);
    tare_session_destroy(session);
    return ran;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    if (!has_bf16()) skip();
    tare_model *model = make(&cases[0]);
    tare_tensor *x = make_input(&cases[0]);
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = run_once(model, x), (void)0);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_off_by_the_rounding_of_what_they_multiply),
        cmocka_unit_test(nobody_else_computes_it),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
