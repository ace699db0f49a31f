// SPDX-License-Identifier: Apache-2.0
// Linear layers whose floats go on in row blocks of rows: what the reference gives, for every
// level, number of threads and of rows, and which steps there are.
#include "support/test.h"

#include <math.h>

#include "core/tensor/tensor.h"
#include "runtime/kernels/isa.h"
#include "support/exported.h"
#include "support/models.h"
#include "support/plan_checks.h"

#define LAYER(name, x)                                                                             \
    "    w_" name " = self." name ".weight\n"                                                      \
    "    b_" name " = self." name ".bias\n"                                                        \
    "    " name " = torch.ops.aten.linear.default(" x ", w_" name ", b_" name ")\n"

// A feed-forward block: GELU between two layers, a residual sum and a norm that two read.
static const char block[] = "def forward(self, x):\n" LAYER("f1", "x") //
    "    act = torch.ops.aten.gelu.default(f1)\n" LAYER("f2", "act")   //
    "    add = torch.ops.aten.add.Tensor(x, f2)\n"
    "    w_norm = self.f2.bias\n"
    "    b_norm = self.f3.bias\n"
    "    norm = torch.ops.aten.layer_norm.default(add, [24], w_norm, b_norm)\n" //
    LAYER("f3", "norm") "    scaled = torch.ops.aten.sigmoid.default(f3)\n"
                        "    total = torch.ops.aten.add.Tensor(scaled, norm)\n"
                        "    return (total, norm)\n";

// Nothing is done to their floats.
static const char layers_alone[] = "def forward(self, x):\n" LAYER("f1", "x") LAYER("f2", "f1")
    LAYER("f3", "f2") "    return (f3, f1)\n";

static tare_quantizer *new_quantizer(bool is_dynamic) {
    static const char name[] = "X86InductorQuantizer";
    const tare_quantization_options options = {.struct_size = sizeof options,
                                               .is_dynamic = is_dynamic};
    tare_quantization_config config;
    tare_quantizer_settings *settings = tare_quantizer_settings_create();
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantization_config_default(name, &options, &config, job_error()));
    tare_quantizer_settings_set_global(settings, &config);
    CHECK_DONE(tare_quantizer_builtin(name, settings, &q, job_error()));
    tare_quantization_config_release(&config);
    tare_quantizer_settings_destroy(settings);
    return q;
}

static tare_model *lowered_of(const char *code, const tare_tensor *x, bool is_dynamic) {
    module *root = new_tree();
    put_module(root, NULL, "f1", "torch.nn.Linear", "in_features=24, out_features=50");
    put_module(root, NULL, "f2", "torch.nn.Linear", "in_features=50, out_features=24");
    put_module(root, NULL, "f3", "torch.nn.Linear", "in_features=24, out_features=24");
    tare_model *m = new_exported(root, code), *p = NULL, *c = NULL, *l = NULL;
    tare_quantizer *q = new_quantizer(is_dynamic);
    static const char *const layers[] = {"f1", "f2", "f3"};
    for (size_t i = 0; i < 3; i++) set_source(m, layers[i], layers[i], "torch._C._nn.linear");
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    if (!is_dynamic) CHECK_DONE(tare_calibrate(p, &x, 1, job_error()));
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    CHECK_DONE(tare_lower_pt2e(c, NULL, &l, job_error()));
    tare_quantizer_destroy(q);
    tare_model_destroy(c);
    tare_model_destroy(p);
    tare_model_destroy(m);
    return l;
}

typedef struct results {
    tare_tensor *at[2];
    char steps[256];
} results;

static results run(const tare_model *m, const tare_tensor *x, bool reference, int threads) {
    const tare_session_options options = {.reference = reference, .thread_count = threads};
    tare_session *s = NULL;
    tare_step step = {.struct_size = sizeof step};
    results out = {0};
    size_t count = 0;
    CHECK_DONE(tare_session_create(m, &options, &s, job_error()));
    for (int i = 0; i < 2; i++) { // memory that was used before
        for (size_t k = 0; k < 2; k++) tare_tensor_release(out.at[k]);
        CHECK_DONE(tare_session_run(s, &x, 1, out.at, 2, &count, job_error()));
    }
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        const size_t used = strlen(out.steps);
        (void)snprintf(out.steps + used, sizeof out.steps - used, "%s ", step.kind);
    }
    tare_session_destroy(s);
    return out;
}

static void release(results *r) {
    for (size_t k = 0; k < 2; k++) tare_tensor_release(r->at[k]);
}

// A quantized value that lies in the middle may be rounded the other way where sums have another
// order.
static void check_close(const tare_tensor *found, const tare_tensor *expected) {
    assert_int_equal(found->count, expected->count);
    for (int64_t i = 0; i < found->count; i++)
        assert_true(fabs(tare__tensor_get(found, i) - tare__tensor_get(expected, i)) < 0.02);
}

static void check_rows(const char *code, int64_t rows, bool is_dynamic, const char *steps) {
    tare_tensor *x = NEW_INPUT(2, rows, 24);
    tare_model *m = lowered_of(code, x, is_dynamic);
    results reference = run(m, x, true, 1), first = {0};
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++)
        for (int threads = 1; threads <= 3; threads++) {
            assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
            results found = run(m, x, false, threads);
            assert_string_equal(found.steps, steps);
            for (size_t k = 0; k < 2; k++) {
                check_close(found.at[k], reference.at[k]);
                if (first.at[k] != NULL) check_same_tensor(found.at[k], first.at[k]);
            }
            if (first.at[0] != NULL)
                release(&found);
            else
                first = found;
        }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    release(&first);
    release(&reference);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

static const char of_dynamic_layers[] = "dynamic quantize quantized row block dynamic quantize "
                                        "quantized row block dynamic quantize quantized row block ";

static void bands_of_any_rows_give_the_same_bits(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 5, 13, 64, 301};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_rows(
            block, rows[i], false,
            "quantized elements quantized row block quantized row block quantized row block ");
        check_rows(block, rows[i], true, of_dynamic_layers);
        check_rows(layers_alone, rows[i], true, of_dynamic_layers);
    }
}

static void a_failure_of_memory_leaves_nothing(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 7, 24);
    tare_model *m = lowered_of(block, x, true);
    check_run_without_memory(m, NULL, (const tare_tensor *[]){x}, 1);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_of_any_rows_give_the_same_bits),
        cmocka_unit_test(a_failure_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
