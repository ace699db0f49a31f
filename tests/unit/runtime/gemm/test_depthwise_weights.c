// SPDX-License-Identifier: Apache-2.0
// Packed depthwise weights: one copy for all who read a tensor, and none where a file holds them.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "runtime/gemm/depthwise_weights.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/temp.h"
#include "tare/session.h"

typedef struct shape {
    const char *config;
    size_t channels, height, width, stride; // of the window
} shape;

static const shape shapes[] = {
    {"in_channels=70, out_channels=70, kernel_size=3, padding=1, groups=70", 70, 3, 3, 1},
    {"in_channels=5, out_channels=5, kernel_size=3, stride=2, groups=5", 5, 3, 3, 2},
    {"in_channels=33, out_channels=33, kernel_size=(5, 3), groups=33", 33, 5, 3, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tare_model *layer_of(const shape *s) {
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d", s->config);
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    conv = self.conv(x)\n"
                                  "    return conv\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 2, (int64_t)s->channels, 9, 9);
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

static depthwise_form form_of(const shape *s, isa_level isa) {
    const conv_windows w = {.addends = 1,
                            .planes = 1,
                            .rows = s->height,
                            .columns = s->width,
                            .stride = {1, s->stride, s->stride},
                            .step = {1, 1, 1}};
    return tare__depthwise_form_of(tare__depthwise_choose(isa), &w, s->channels);
}

static packed_weights *weights_of(const tare_model *m, const depthwise_form *f) {
    const weight_taps plain = {.are_plain = true};
    const tare_tensor *w = tare__module_tensor(tare__module_find(m->root, "conv"), "weight");
    packed_weights *out = NULL;
    CHECK_DONE(tare__depthwise_weights_get(w, f, &plain, &out, job_error()));
    return out;
}

static tare_tensor *run(const tare_model *m, const shape *s, bool reference) {
    tare_tensor *x = NEW_INPUT(2, (int64_t)s->channels, 9, 9);
    tare_tensor *y = output_with(m, &(tare_session_options){.reference = reference}, x);
    tare_tensor_release(x);
    return y;
}

static void all_users_of_a_width_share_one_copy(void **state) {
    (void)state;
    tare_model *m = layer_of(&shapes[0]);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        const depthwise_form f = form_of(&shapes[0], (isa_level)isa);
        packed_weights *a = weights_of(m, &f), *b = weights_of(m, &f);
        assert_ptr_equal(a, b);
        assert_false(a->is_mapped);
        tare__packed_weights_release(b);
        tare__packed_weights_release(a);
    }
    tare_model_destroy(m);
}

static void check_packed(const shape *s) {
    const char *path = temp_path("packed.safetensors");
    tare_model *plain = layer_of(s), *m = NULL;
    CHECK_DONE(tare_model_write_packed(plain, path, job_error()));
    CHECK_DONE(tare_model_read(path, NULL, &m, job_error()));
    const depthwise_form f = form_of(s, tare__isa_detect());
    packed_weights *mapped = weights_of(m, &f), *packed = weights_of(plain, &f);
    assert_true(mapped->is_mapped);
    assert_memory_equal(mapped->words, packed->words,
                        f.blocks * tare__depthwise_block_words(&f) * sizeof(uint32_t));
    assert_memory_equal(mapped->sums, packed->sums, f.channels * sizeof(int32_t));
    tare_tensor *expected = run(plain, s, true);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) { // other widths pack anew
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_tensor *found = run(m, s, false);
        check_same_tensor(found, expected);
        tare_tensor_release(found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare__packed_weights_release(mapped);
    tare__packed_weights_release(packed);
    tare_model_destroy(m);
    tare_model_destroy(plain);
}

static void files_hold_them(void **state) {
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) check_packed(&shapes[i]);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *m = layer_of(&shapes[0]);
    const char *path = temp_path("packed.safetensors");
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_model_write_packed(m, path, NULL), (void)0);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_users_of_a_width_share_one_copy),
        cmocka_unit_test(files_hold_them),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
