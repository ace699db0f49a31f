// SPDX-License-Identifier: Apache-2.0
// A library's convolutions of batches: where layers say so, each image has the bits that it has
// alone, whatever the batch and the threads.
#include "dnnl/float_layers.h"

#include "core/tensor/tensor.h"
#include "runtime/kernels/isa.h"
#include "support/test.h"
#include "tare/session.h"

enum { FORMS = 300, MOST_MACS = 4 << 20 };

typedef struct random_numbers {
    uint64_t state;
} random_numbers;

static uint64_t below(random_numbers *r, uint64_t end) {
    r->state = r->state * 6364136223846793005U + 1442695040888963407U;
    return (r->state >> 33) % end;
}

static int64_t pick(random_numbers *r, const int64_t *from, size_t count) {
    return from[below(r, count)];
}
#define PICK(r, ...)                                                                               \
    pick(r, (const int64_t[]){__VA_ARGS__},                                                        \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static int64_t macs_of(const float_conv *c) {
    return c->batch * c->out[1] * c->out[2] * c->out_channels * c->kernel[1] * c->kernel[2] *
           (c->in_channels / c->groups);
}

// false: there is no such convolution, or it would take long.
static bool random_form(random_numbers *r, float_conv *c) {
    *c = (float_conv){.batch = (int64_t)below(r, below(r, 4) == 0 ? 68 : 18) + 2,
                      .groups = 1,
                      .in_channels = PICK(r, 1, 3, 7, 8, 16, 24, 48, 64, 100, 256),
                      .out_channels = PICK(r, 1, 4, 8, 16, 32, 40, 64, 100, 256)};
    const int64_t kernel = PICK(r, 1, 1, 2, 3, 5, 7), pad = below(r, 2) == 0 ? kernel / 2 : 0;
    if (below(r, 4) == 0) c->groups = c->out_channels = c->in_channels; // depthwise
    if (below(r, 4) == 0 && c->in_channels % 4 == 0 && c->out_channels % 4 == 0) c->groups = 4;
    for (int d = 0; d < 3; d++)
        c->in[d] = c->out[d] = c->kernel[d] = c->stride[d] = c->dilation[d] = 1;
    for (int d = 1; d < 3; d++) {
        c->in[d] = PICK(r, 1, 2, 5, 7, 8, 12, 14, 28);
        c->kernel[d] = kernel;
        c->stride[d] = (int64_t)below(r, 2) + 1;
        c->pad[d] = pad;
        if (c->in[d] + 2 * pad < kernel) return false;
        c->out[d] = (c->in[d] + 2 * pad - kernel) / c->stride[d] + 1;
    }
    return macs_of(c) <= MOST_MACS;
}

static tare_tensor *numbers(random_numbers *r, int64_t count) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, NULL));
    for (int64_t i = 0; i < count; i++) tare__f32(t)[i] = (float)below(r, 20001) / 9970.0F - 1.0F;
    return t;
}

static int64_t image_size(int64_t channels, const int64_t size[3]) {
    return channels * size[1] * size[2];
}

// Returns whether the layer promises the same bits for any number of images. y: of images that are
// computed by_one alone.
static bool run(const float_conv *c, const float_weights *w, const tare_session_options *how,
                bool by_one, const tare_tensor *x, tare_tensor *y) {
    const int64_t x_step = image_size(c->in_channels, c->in);
    const int64_t y_step = image_size(c->out_channels, c->out);
    const float_epilogue relu = {.count = 1, .steps = {{.kind = ELEMENT_RELU}}};
    float_conv form = *c;
    thread_pool *pool = NULL;
    float_layers *layers = NULL;
    float_layer *layer = NULL;
    if (by_one) form.batch = 1;
    CHECK_OK(tare__thread_pool_create(how->thread_count, &pool, NULL));
    CHECK_OK(tare__float_layers_create(pool, how->bfloat16, &layers, NULL));
    CHECK_OK(tare__float_layer_conv(layers, &form, &relu, w, &layer, NULL));
    const bool has = layer != NULL, are_alike = has && tare__float_layer_images_are_alike(layer);
    for (int64_t i = 0; has && i < c->batch; i += form.batch)
        CHECK_OK(tare__float_layer_run(layer, tare__f32(x) + i * x_step, tare__f32(y) + i * y_step,
                                       NULL));
    tare__float_layer_destroy(layer);
    tare__float_layers_destroy(layers);
    tare__thread_pool_destroy(pool);
    return are_alike;
}

static bool check_form(random_numbers *r, const float_conv *c, bool rounds) {
    const int64_t weights =
        c->out_channels * (c->in_channels / c->groups) * c->kernel[1] * c->kernel[2];
    tare_tensor *x = numbers(r, c->batch * image_size(c->in_channels, c->in));
    tare_tensor *w = numbers(r, weights), *bias = numbers(r, c->out_channels);
    tare_tensor *first = numbers(r, c->batch * image_size(c->out_channels, c->out));
    tare_tensor *together = numbers(r, first->count), *again = numbers(r, first->count);
    const float_weights given = {.w = w, .bias = tare__f32(bias)};
    bool are_alike = true;
    for (int threads = 1; threads <= 3; threads++) {
        const tare_session_options how = {.thread_count = threads, .bfloat16 = rounds};
        tare_tensor *y = threads == 1 ? first : again;
        are_alike = run(c, &given, &how, true, x, y) && are_alike;
        are_alike = run(c, &given, &how, false, x, together) && are_alike;
        if (!are_alike) break;
        assert_memory_equal(y->data, first->data, tare__tensor_bytes(first));
        assert_memory_equal(together->data, first->data, tare__tensor_bytes(first));
    }
    tare_tensor_release(together);
    tare_tensor_release(again);
    tare_tensor_release(first);
    tare_tensor_release(bias);
    tare_tensor_release(w);
    tare_tensor_release(x);
    return are_alike;
}

static void check_forms(bool rounds) {
    random_numbers r = {11};
    int alike = 0;
    for (int i = 0; i < FORMS; i++) {
        float_conv c;
        while (!random_form(&r, &c)) continue;
        alike += check_form(&r, &c, rounds);
    }
    assert_true(alike > (tare__isa_detect() >= ISA_AVX2 ? FORMS / 2 : 0));
}

static void images_are_computed_alike_where_layers_say_so(void **state) {
    (void)state;
    check_forms(false);
}

static void so_are_rounded_ones(void **state) {
    float_layers *layers = NULL;
    (void)state;
    if (tare__float_layers_create(NULL, true, &layers, NULL) != TARE_OK) skip();
    tare__float_layers_destroy(layers);
    check_forms(true);
}

int main(void) {
    float_layers *layers = NULL;
    const tare_status status = tare__float_layers_create(NULL, false, &layers, NULL);
    if (status == TARE_OK && layers == NULL) return skip_tests("this build has no such library");
    tare__float_layers_destroy(layers);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_computed_alike_where_layers_say_so),
        cmocka_unit_test(so_are_rounded_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
