// SPDX-License-Identifier: Apache-2.0
// What a backend computes from the integers of a layer is what the reference model gives.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor/tensor.h"
#include "support/faults.h"
#include "support/models.h"
#include "support/test.h"
#include "tare/data.h"
#include "tare/handoff.h"
#include "tare/pt2e.h"
#include "tare/quantizer.h"
#include "tare/session.h"

// --- what the reference model gives ---

typedef struct look_out {
    const char *name;
    tare_tensor *seen; // a copy
} look_out;

static tare_status keep(void *user, const char *name, const tare_tensor *t, tare_error *err) {
    look_out *l = user;
    return strcmp(l->name, name) == 0 ? tare__tensor_copy(t, &l->seen, err) : TARE_OK;
}

static tare_tensor *value_at(const tare_model *m, const tare_node *n, const tare_tensor *x) {
    look_out l = {.name = tare_node_name(n)};
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_create(m, NULL, &s, job_error()));
    tare_session_watch(s, keep, &l);
    CHECK_DONE(tare_session_run(s, &x, 1, &y, 1, &count, job_error()));
    tare_tensor_release(y);
    tare_session_destroy(s);
    assert_non_null(l.seen);
    return l.seen;
}

// --- what a backend computes ---

typedef struct geometry {
    int64_t stride, padding, groups;
    bool is_transposed;
} geometry;

static geometry geometry_of(const tare_module *m) {
    geometry g = {1, 0, 1, strstr(tare_module_class_name(m), "ConvTranspose") != NULL};
    (void)tare_module_config_ints(m, "stride", 1, &g.stride);
    int64_t pair[2];
    if (tare_module_config_ints(m, "stride", 2, pair)) g.stride = pair[0];
    if (tare_module_config_ints(m, "padding", 2, pair)) g.padding = pair[0];
    g.groups = tare_module_config_int(m, "groups", 1);
    return g;
}

// Sizes beyond the tensor's are 1: a linear layer is a convolution of one pixel.
static int64_t size_of(const tare_tensor *t, int d) {
    return d < t->ndim ? t->shape[d] : 1;
}

// x [N][C][H][W] at a pixel, minus the zero point; 0 in the padding.
static int64_t pixel(const tare_integer_layer *l, const tare_tensor *x, int64_t n, int64_t c,
                     int64_t h, int64_t w) {
    if (h < 0 || w < 0 || h >= size_of(x, 2) || w >= size_of(x, 3)) return 0;
    const int64_t i = ((n * x->shape[1] + c) * size_of(x, 2) + h) * size_of(x, 3) + w;
    return tare__tensor_get_int(x, i) - l->input.zero_point;
}

static int64_t weight_at(const tare_tensor *w, int64_t i, int64_t j, int64_t h, int64_t v,
                         int64_t channel) {
    const int64_t at = ((i * w->shape[1] + j) * size_of(w, 2) + h) * size_of(w, 3) + v;
    return tare__tensor_get_int(w, at) -
           (int64_t)tare_tensor_zero_point(w, channel % tare_tensor_qparam_count(w));
}

static int64_t sum_at(const tare_integer_layer *l, const geometry *g, const tare_tensor *x,
                      const int64_t *at) {
    const tare_tensor *w = l->weight;
    const int64_t inputs = x->shape[1] / g->groups, outputs = l->channel_count / g->groups;
    const int64_t group = at[1] / outputs;
    int64_t sum = l->bias != NULL ? tare__tensor_get_int(l->bias, at[1]) : 0;
    for (int64_t c = 0; c < inputs; c++)
        for (int64_t h = 0; h < size_of(w, 2); h++)
            for (int64_t v = 0; v < size_of(w, 3); v++) {
                const int64_t in = group * inputs + c;
                const int64_t y = at[2] + g->padding - h, z = at[3] + g->padding - v;
                if (!g->is_transposed)
                    sum += pixel(l, x, at[0], in, at[2] * g->stride + h - g->padding,
                                 at[3] * g->stride + v - g->padding) *
                           weight_at(w, at[1], c, h, v, at[1]);
                else if (y >= 0 && z >= 0 && y % g->stride == 0 && z % g->stride == 0)
                    sum += pixel(l, x, at[0], in, y / g->stride, z / g->stride) *
                           weight_at(w, in, at[1] % outputs, h, v, at[1]);
            }
    return sum;
}

// By the fixed-point multiplier, as hardware has it; that one is the double, rounded.
static int64_t requantized(const tare_integer_layer *l, int64_t sum, int64_t c) {
    const double fixed = ldexp((double)l->fixed_multiplier[c], l->shift[c] - 31);
    assert_true(fabs(fixed - l->multiplier[c]) <= l->multiplier[c] * 0x1p-30);
    assert_true(l->fixed_multiplier[c] >= 1 << 30);
    const int64_t out = (int64_t)nearbyint((double)sum * fixed) + l->output.zero_point;
    return out < l->output_min ? l->output_min : out > l->output_max ? l->output_max : out;
}

static void check_layer(const tare_model *m, const char *name, const tare_tensor *input) {
    const tare_integer_layer *l = NULL;
    CHECK_DONE(tare_integer_layer_create(m, tare_model_find_node(m, name), &l, job_error()));
    assert_int_equal(l->struct_size, sizeof *l);
    assert_non_null(l->output_node);
    assert_int_equal(l->saturated_bias_count, 0);
    const tare_node *quantize = tare_node_input(l->input_node, 0);
    tare_tensor *x = value_at(m, quantize, input), *y = value_at(m, l->output_node, input);
    const geometry g = geometry_of(l->module);
    int64_t at[4] = {0}, i = 0, clamped = 0;
    for (at[0] = 0; at[0] < y->shape[0]; at[0]++)
        for (at[1] = 0; at[1] < y->shape[1]; at[1]++)
            for (at[2] = 0; at[2] < size_of(y, 2); at[2]++)
                for (at[3] = 0; at[3] < size_of(y, 3); at[3]++, i++) {
                    const int64_t found = requantized(l, sum_at(l, &g, x, at), at[1]);
                    const int64_t expected = tare__tensor_get_int(y, i);
                    clamped += found == l->output_min;
                    // One where the float sum and the integer one round apart.
                    if (llabs(found - expected) > 1)
                        fail_msg("%s[%lld]: %lld, expected %lld", name, (long long)i,
                                 (long long)found, (long long)expected);
                }
    assert_int_equal(i, y->count);
    if (l->has_relu) assert_true(l->output_min >= l->output.zero_point && clamped > 0);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_integer_layer_destroy(l);
}

static tare_model *small_network(void) {
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=4, out_channels=6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
               "dilation=(1, 1), groups=2, padding_mode='zeros'");
    put_module(root, NULL, "relu", "torch.nn.ReLU", "inplace=False");
    put_module(root, NULL, "up", "torch.nn.ConvTranspose2d",
               "in_channels=6, out_channels=4, kernel_size=(2, 2), stride=(2, 2), padding=(1, 1), "
               "output_padding=(0, 0), dilation=(1, 1), groups=2, padding_mode='zeros'");
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=256, out_features=3");
    return new_model(NULL, root,
                     "def forward(self, x):\n    conv = self.conv(x)\n    relu = self.relu(conv)\n"
                     "    up = self.up(relu)\n    flatten = torch.flatten(up, 1)\n"
                     "    fc = self.fc(flatten)\n    return fc\n");
}

static void integers_of_a_layer_give_its_results(void **state) {
    (void)state;
    static const char *const backends[] = {"x86", "qnnpack"}; // per channel, per tensor
    for (size_t i = 0; i < 2; i++) {
        tare_backend_config *backend = builtin_backend(backends[i]);
        tare_qconfig_mapping *mapping = default_mapping(backends[i]);
        tare_model *m = small_network(), *watched = prepared(m, backend, mapping);
        CALIBRATED(watched, 2, 4, 10, 10);
        const tare_convert_options options = {.backend = backend};
        tare_model *reference = referenced(watched, backend), *decomposed = NULL;
        CHECK_DONE(
            tare_convert_to_reference_decomposed_fx(watched, &options, &decomposed, job_error()));
        tare_tensor *x = NEW_INPUT(2, 4, 10, 10);
        static const char *const layers[] = {"conv", "up", "fc"};
        for (size_t k = 0; k < 3; k++) {
            check_layer(reference, layers[k], x);
            check_layer(decomposed, layers[k], x);
        }
        const tare_integer_layer *l = NULL;
        const tare_node *conv = tare_model_find_node(reference, "conv");
        tare_status status = TARE_OK;
        EVERY_ALLOCATION_FAILS(status,
                               status = tare_integer_layer_create(reference, conv, &l, NULL),
                               (tare_integer_layer_destroy(l), l = NULL));
        tare_tensor_release(x);
        tare_model_destroy(decomposed);
        tare_model_destroy(reference);
        tare_model_destroy(watched);
        tare_model_destroy(m);
        tare_qconfig_mapping_destroy(mapping);
        tare_backend_config_destroy(backend);
    }
}

static void what_is_no_such_layer_is_said(void **state) {
    (void)state;
    tare_model *m = small_network();
    const tare_integer_layer *l = NULL;
    tare_node_qparams q;
    const tare_node *conv = tare_model_find_node(m, "conv"), *x = tare_model_first_node(m);
    CHECK_REFUSED(tare_integer_layer_create(m, conv, &l, job_error()), TARE_UNSUPPORTED,
                  "its input is float");
    CHECK_REFUSED(tare_integer_layer_create(m, tare_model_find_node(m, "relu"), &l, job_error()),
                  TARE_UNSUPPORTED, "neither a convolution");
    CHECK_REFUSED(tare_integer_layer_create(m, x, &l, job_error()), TARE_UNSUPPORTED, "'x'");
    assert_false(tare_node_get_qparams(m, conv, &q));
    assert_false(tare_node_get_qparams(m, x, &q));
    tare_integer_layer_destroy(NULL);
    tare_model_destroy(m);
}

// --- exported programs: integers of weights, or quantize calls of float ones, before a dequantize
// ---

static size_t count_layers(const tare_model *m) {
    size_t count = 0;
    for (const tare_node *n = tare_model_first_node(m); n != NULL; n = tare_node_next(n)) {
        const tare_integer_layer *l = NULL;
        if (tare_integer_layer_create(m, n, &l, NULL) != TARE_OK) continue;
        assert_null(l->module);
        assert_true(l->channel_count == l->weight->shape[0] && l->input.scale > 0);
        assert_true(l->bias == NULL || l->bias->count == l->channel_count);
        int64_t sum = 0;
        for (int64_t i = 0; i < l->weight->count / l->channel_count; i++)
            sum += tare__tensor_get_int(l->weight, i);
        assert_int_equal(sum, tare__tensor_get_int(l->weight_sums, 0));
        tare_integer_layer_destroy(l);
        count++;
    }
    return count;
}

static void layers_of_exported_programs_are_found(void **state) {
    (void)state;
    tare_model *m = NULL, *watched = NULL, *converted = NULL;
    tare_quantizer *quantizer = NULL;
    CHECK_DONE(tare_model_read("tests/data/small_resnet18/model.pt2", NULL, &m, job_error()));
    CHECK_DONE(tare_quantizer_open("XNNPACKQuantizer", NULL, &quantizer, job_error()));
    CHECK_DONE(tare_prepare_pt2e(m, quantizer, &watched, job_error()));
    tare_data *data = NULL;
    tare_batch batch = {0};
    bool done = false;
    CHECK_DONE(tare_data_open("tests/data/small_resnet18/input.npz", m, NULL, &data, job_error()));
    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    CHECK_DONE(tare_calibrate(watched, batch.inputs, batch.input_count, job_error()));
    CHECK_DONE(tare_convert_pt2e(watched, NULL, &converted, job_error()));
    assert_int_equal(count_layers(converted), 21);
    tare_data_close(data);
    tare_model_destroy(converted);
    tare_model_destroy(watched);
    tare_quantizer_destroy(quantizer);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_a_layer_give_its_results),
        cmocka_unit_test(what_is_no_such_layer_is_said),
        cmocka_unit_test(layers_of_exported_programs_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
