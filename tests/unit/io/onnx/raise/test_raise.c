// SPDX-License-Identifier: Apache-2.0
// What exporters take apart becomes one call again, and computes the same.
#include "support/test.h"

#ifdef TARE_HAVE_ONNX

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/temp.h"

// "Op: inputs -> output; Op: .." as a graph from x [2][3][4] to y. Numbers are 0-dimensional
// constants called by their value ("0.5"); weight and bias are [4] constants. `watched`: a result
// that is an output too, or NULL.
static text graph_of(const char *steps, const char *watched) {
    text g = {0};
    const int64_t four[] = {4};
    char copy[1024], *rest = copy;
    snprintf(copy, sizeof copy, "%s", steps);
    for (char *step; (step = strtok_r(rest, ";", &rest)) != NULL;) {
        char op[64], inputs[128], output[16];
        if (sscanf(step, " %63[^:]: %127[^>]> %15s", op, inputs, output) != 3)
            fail_msg("cannot read the step '%s'", step);
        *strstr(inputs, " -") = '\0';
        if (strncmp(op, "Mean", 4) == 0) {
            const int64_t axes[] = {-1};
            text n = onnx_node("ReduceMean", "", inputs, output);
            onnx_attr_ints(&n, "axes", axes, 1);
            onnx_add_node(&g, n);
        } else {
            onnx_call(&g, op, "", inputs, output);
        }
    }
    onnx_input(&g, "x", "2,3,4");
    onnx_output(&g, "y");
    if (watched != NULL) onnx_output(&g, watched);
    onnx_floats(&g, "weight", 1, four);
    onnx_floats(&g, "bias", 1, four);
    return g;
}

// A number as a Constant node.
static void add_number(text *g, const char *name) {
    text n = onnx_node("Constant", "", "", name), attribute = {0};
    const float number = strtof(name, NULL);
    pb_text(&attribute, 1, "value_float");
    pb_int(&attribute, 20, 1); // type FLOAT
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const unsigned char fixed[] = {0x15, (unsigned char)bits, (unsigned char)(bits >> 8),
                                   (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
    tare__text_append_n(&attribute, (const char *)fixed, sizeof fixed);
    pb_message(&n, 5, attribute);
    onnx_add_node(g, n);
}

static tare_model *model_of_steps(const char *steps, const char *watched) {
    static const char *const numbers[] = {"0.5",      "0",          "1",          "2",
                                          "3",        "6",          "20",         "1e-5",
                                          "0.044715", "1.41421356", "0.79788456", "0.70710678"};
    text g = graph_of(steps, watched);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) add_number(&g, numbers[i]);
    text file = onnx_model(g, 17);
    const char *path = temp_path("raise.onnx");
    tare_model *model = NULL;
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    return model;
}

// The steps are raised to `call`; the same steps, one of which is wanted outside, are not; and both
// compute the same.
static void check_raised(const char *steps, const char *watched, const char *call) {
    tare_model *raised = model_of_steps(steps, NULL), *apart = model_of_steps(steps, watched);
    const tare_tensor *x = NEW_INPUT(2, 3, 4);
    CHECK_HOLDS(printed(raised), call);
    CHECK_LACKS(printed(apart), call);
    tare_tensor *a = result_of(raised, &x, 1), *b = result_of(apart, &x, 1);
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        if (!(fabsf(tare__f32(a)[i] - tare__f32(b)[i]) <= 1e-5f))
            fail_msg("%s: element %lld is %g, was %g", call, (long long)i, (double)tare__f32(a)[i],
                     (double)tare__f32(b)[i]);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_tensor_release((tare_tensor *)x);
    tare_model_destroy(raised);
    tare_model_destroy(apart);
}

static void activations_are_raised(void **state) {
    (void)state;
    check_raised(
        "Div: x 1.41421356 -> a; Erf: a -> e; Add: e 1 -> s; Mul: x s -> m; Mul: m 0.5 -> y", "e",
        "gelu(x)");
    check_raised(
        "Mul: 0.70710678 x -> a; Erf: a -> e; Add: 1 e -> s; Mul: 0.5 x -> m; Mul: s m -> y", "a",
        "gelu(x)");
    check_raised("Pow: x 3 -> a; Mul: a 0.044715 -> b; Add: x b -> s; Mul: s 0.79788456 -> t; "
                 "Tanh: t -> u; Add: u 1 -> o; Mul: x 0.5 -> h; Mul: h o -> y",
                 "t", "gelu(x, approximate = 'tanh')");
    check_raised("Sigmoid: x -> s; Mul: s x -> y", "s", "silu(x)");
    check_raised("Softplus: x -> s; Tanh: s -> t; Mul: x t -> y", "t", "mish(x)");
    check_raised("Exp: x -> e; Add: e 1 -> s; Log: s -> y", "s", "softplus(x)");
    check_raised("Add: x 3 -> a; Clip: a 0 6 -> r; Mul: x r -> m; Div: m 6 -> y", "r",
                 "hardswish(x)");
    check_raised("Add: x 3 -> a; Clip: a 0 6 -> r; Div: r 6 -> y", "r", "hardsigmoid(x)");
}

static void norms_are_raised(void **state) {
    (void)state;
    const char *norm =
        "Mean: x -> m; Sub: x m -> c; Pow: c 2 -> q; Mean: q -> v; Add: v 1e-5 -> e; "
        "Sqrt: e -> r; ";
    char steps[400];
    snprintf(steps, sizeof steps, "%sDiv: c r -> y", norm);
    check_raised(steps, "v", "layer_norm(x, (4,), None, None, 1e-05)");
    snprintf(steps, sizeof steps, "%sDiv: c r -> n; Mul: weight n -> k; Add: k bias -> y", norm);
    check_raised(steps, "r", "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)");
    check_raised("Mul: x x -> q; Mean: q -> v; Add: v 1e-5 -> e; Sqrt: e -> r; Reciprocal: r -> i; "
                 "Mul: x i -> n; Mul: n weight -> y",
                 "i", "RMSNorm((4,), eps=1e-05, elementwise_affine=True)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_raised),
        cmocka_unit_test(norms_are_raised),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
