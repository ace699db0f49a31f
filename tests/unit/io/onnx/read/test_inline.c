// SPDX-License-Identifier: Apache-2.0
// Functions of an ONNX model's own: what they come to, and what is refused.
#include "support/test.h"

#include <string.h>

#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/temp.h"

#ifdef TARE_HAVE_ONNX

// A graph of x[1][2][4][4] -> y.
static void close_graph(text *g) {
    onnx_input(g, "x", "1,2,4,4");
    onnx_output(g, "y");
}

static tare_status read_bytes(text file, tare_model **out) {
    const char *path = temp_path("model.onnx");
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    return tare_model_read(path, NULL, out, job_error());
}

// The model as it prints. Takes the file.
static const char *inlined(text file) {
    tare_model *model = NULL;
    CHECK_DONE(read_bytes(file, &model));
    const char *text_of_model = printed(model);
    tare_model_destroy(model);
    return text_of_model;
}

static void check_file_refused(text file, tare_status status, const char *words) {
    tare_model *model = NULL;
    CHECK_REFUSED(read_bytes(file, &model), status, words);
}

// A file whose graph is one call of "f" under the name "the_call".
static text file_of_call(text call) {
    text g = {0};
    onnx_add_node(&g, call);
    close_graph(&g);
    return onnx_model(g, 17);
}

static text plain_call(void) {
    return onnx_function_call("f", "the_call", "x", "y");
}

static text silu(void) {
    text f = onnx_function("f", "a", "b", "", 17);
    onnx_function_node(&f, onnx_node("Sigmoid", "", "a", "s"));
    onnx_function_node(&f, onnx_node("Mul", "", "a s", "b"));
    return f;
}

// --- what they come to ---

static void nodes_have_the_scope_of_their_call(void **state) {
    (void)state;
    text g = {0}, typed = onnx_function_call("f", "", "a", "y");
    onnx_add_node(&g, onnx_function_call("f", "/block/act/f", "x", "a"));
    onnx_scope_of(&typed, "['', 'other', 'silu']",
                  "['__main__.M', 'torch.nn.modules.activation.SiLU', 'aten.silu.default']");
    onnx_add_node(&g, typed);
    close_graph(&g);
    text file = onnx_model(g, 17);
    onnx_add_function(&file, silu());
    const char *model = inlined(file);
    CHECK_HOLDS(model, "block_act = self.block.act(x)");
    CHECK_HOLDS(model, "(act): SiLU()");
    CHECK_HOLDS(model, "(other): SiLU()");
}

static text leaky(void) {
    text f = onnx_function("f", "a", "b", "slope", 17);
    text n = onnx_node("LeakyRelu", "inner", "a", "b");
    onnx_attr_ref(&n, "alpha", "slope");
    onnx_function_node(&f, n);
    return f;
}

static void attributes_are_the_calls_or_the_default(void **state) {
    (void)state;
    text call = plain_call();
    onnx_attr_float(&call, "slope", 0.25f);
    text given = file_of_call(call);
    onnx_add_function(&given, leaky());
    CHECK_HOLDS(inlined(given), "leaky_relu(x, 0.25)");
    text absent = file_of_call(plain_call()); // the operator's own default
    onnx_add_function(&absent, leaky());
    CHECK_HOLDS(inlined(absent), "leaky_relu(x, 0.01)");
    text otherwise = file_of_call(plain_call()), f = leaky();
    onnx_function_default(&f, "slope", 0.5f);
    onnx_add_function(&otherwise, f);
    CHECK_HOLDS(inlined(otherwise), "leaky_relu(x, 0.5)");
    call = plain_call();
    onnx_attr_float(&call, "slope", 0.125f);
    text both = file_of_call(call);
    f = leaky();
    onnx_function_default(&f, "slope", 0.5f);
    onnx_add_function(&both, f);
    CHECK_HOLDS(inlined(both), "leaky_relu(x, 0.125)");
}

static void functions_call_functions_with_parameters(void **state) {
    (void)state;
    const int64_t weight[] = {2, 2, 1, 1};
    text g = {0}, outer = onnx_function("outer", "a w", "c", "", 17);
    onnx_add_node(&g, onnx_function_call("outer", "stem", "x stem.conv.weight", "y"));
    onnx_floats(&g, "stem.conv.weight", 4, weight);
    close_graph(&g);
    text file = onnx_model(g, 17);
    onnx_function_node(&outer, onnx_function_call("inner", "", "a w", "b"));
    onnx_function_node(&outer, onnx_function_call("f", "", "b", "c"));
    text inner = onnx_function("inner", "a w bias", "b", "", 17);
    onnx_function_node(&inner, onnx_node("Conv", "", "a w bias", "b")); // no bias is given
    onnx_add_function(&file, outer);
    onnx_add_function(&file, inner);
    onnx_add_function(&file, silu());
    const char *model = inlined(file);
    CHECK_HOLDS(model, "stem_conv = self.stem.conv(x)");
    CHECK_HOLDS(model, "(conv): Conv2d(2, 2, kernel_size=(1, 1), stride=(1, 1), bias=False)");
}

static void values_inside_are_their_own(void **state) {
    (void)state;
    text g = {0};
    onnx_add_node(&g, onnx_function_call("f", "", "x", "s")); // the function has an s too
    onnx_add_node(&g, onnx_function_call("f", "", "s", "y"));
    close_graph(&g);
    text file = onnx_model(g, 17);
    onnx_add_function(&file, silu());
    const char *model = inlined(file);
    CHECK_HOLDS(model, "silu = torch.nn.functional.silu(x)");
    CHECK_HOLDS(model, "silu_1 = torch.nn.functional.silu(silu)");
}

static void outputs_may_be_inputs_or_stand_twice(void **state) {
    (void)state;
    text g = {0}, f = onnx_function("f", "a", "a b b", "", 17);
    onnx_add_node(&g, onnx_function_call("f", "", "x", "p q r"));
    onnx_call(&g, "Add", "", "p q", "t");
    onnx_call(&g, "Mul", "", "t r", "y");
    close_graph(&g);
    text file = onnx_model(g, 17);
    onnx_function_node(&f, onnx_node("Relu", "", "a", "b"));
    onnx_add_function(&file, f);
    const char *model = inlined(file);
    CHECK_HOLDS(model, "add = x + relu");
    CHECK_HOLDS(model, "mul = add * relu");
}

static void functions_have_opsets_of_their_own(void **state) {
    (void)state;
    text file = file_of_call(plain_call()), f = onnx_function("f", "a", "b", "", 12);
    text n = onnx_node("Squeeze", "", "a", "b"); // from opset 13 on axes are an input
    const int64_t axes[] = {0};
    onnx_attr_ints(&n, "axes", axes, 1);
    onnx_function_node(&f, n);
    onnx_add_function(&file, f);
    CHECK_HOLDS(inlined(file), "squeeze");
}

static void functions_stand_before_operators(void **state) {
    (void)state;
    text file = file_of_call(onnx_function_call("Relu", "", "x", "y"));
    text f = onnx_function("Relu", "a", "b", "", 17);
    onnx_function_node(&f, onnx_node("Tanh", "", "a", "b"));
    onnx_add_function(&file, f);
    CHECK_HOLDS(inlined(file), "torch.tanh(x)");
}

// --- what is refused ---

// Its one function, called by node "the_call".
static void check_function_refused(text f, tare_status status, const char *words) {
    text file = file_of_call(plain_call());
    onnx_add_function(&file, f);
    check_file_refused(file, status, words);
}

static void circles_and_depth_are_refused(void **state) {
    (void)state;
    text self = onnx_function("f", "a", "b", "", 17);
    onnx_function_node(&self, onnx_function_call("f", "", "a", "b"));
    check_function_refused(self, TARE_MALFORMED_FILE, "the function 'f' calls itself");
    text file = file_of_call(onnx_function_call("f0", "the_call", "x", "y"));
    for (int i = 0; i < 40; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        text f = onnx_function(name, "a", "b", "", 17);
        onnx_function_node(&f, onnx_function_call(next, "", "a", "b"));
        onnx_add_function(&file, f);
    }
    check_file_refused(file, TARE_UNSUPPORTED, "more than 16 deep");
}

// Each calls the next 40 times: 40^12 nodes, or none at all, in a file of 30 kB.
static void bombs_are_refused(void **state) {
    (void)state;
    text file = file_of_call(onnx_function_call("f0", "the_call", "x", "y"));
    for (int i = 0; i < 12; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        text f = onnx_function(name, "a", "b", "", 17);
        for (int k = 0; k < 40; k++) onnx_function_node(&f, onnx_function_call(next, "", "a", ""));
        onnx_add_function(&file, f);
    }
    onnx_add_function(&file, onnx_function("f12", "a", "b", "", 17));
    check_file_refused(file, TARE_UNSUPPORTED, "take more than 64 MiB");
}

static void calls_that_do_not_fit_are_refused(void **state) {
    (void)state;
    text many = file_of_call(onnx_function_call("f", "the_call", "x x", "y"));
    onnx_add_function(&many, silu());
    check_file_refused(many, TARE_MALFORMED_FILE, "2 inputs, but its function 'f' takes 1");
    text more = file_of_call(onnx_function_call("f", "the_call", "x", "y z"));
    onnx_add_function(&more, silu());
    check_file_refused(more, TARE_MALFORMED_FILE, "2 outputs, but its function 'f' has 1");
    text call = plain_call();
    onnx_attr_int(&call, "what", 1);
    text unknown = file_of_call(call);
    onnx_add_function(&unknown, silu());
    check_file_refused(unknown, TARE_MALFORMED_FILE, "takes no attribute 'what'");
    call = plain_call();
    onnx_attr_int(&call, "slope", 1); // LeakyRelu's is a float
    text typed = file_of_call(call);
    onnx_add_function(&typed, leaky());
    check_file_refused(typed, TARE_MALFORMED_FILE, "refers to 'slope', which has another type");
    text missing = file_of_call(onnx_function_call("g", "the_call", "x", "y"));
    onnx_add_function(&missing, silu());
    check_file_refused(missing, TARE_UNSUPPORTED, "domain 'own'");
}

static void broken_functions_are_refused(void **state) {
    (void)state;
    text f = onnx_function("f", "a", "b", "", 0);
    onnx_function_node(&f, onnx_node("Relu", "", "a", "b"));
    check_function_refused(f, TARE_MALFORMED_FILE, "states no opset");
    check_function_refused(onnx_function("f", "a", "b", "", 99), TARE_UNSUPPORTED,
                           "its function has opset 99, expected 11 to 21");
    check_function_refused(onnx_function("f", "a", "b", "", 17), TARE_MALFORMED_FILE, "output 'y'");
    check_function_refused(onnx_function("f", "a a", "b", "", 17), TARE_MALFORMED_FILE,
                           "two inputs 'a'");
    check_function_refused(onnx_function("f", "-", "b", "", 17), TARE_MALFORMED_FILE,
                           "has no name");
    f = onnx_function("f", "a", "b", "", 17);
    onnx_function_node(&f, onnx_node("Add", "inner", "a outside", "b"));
    check_function_refused(f, TARE_MALFORMED_FILE, "node 'the_call' (Add)");
    f = silu();
    pb_text(&f, 11, "no attribute");
    check_function_refused(f, TARE_MALFORMED_FILE, "");
    text twice = file_of_call(plain_call());
    onnx_add_function(&twice, silu());
    onnx_add_function(&twice, silu());
    check_file_refused(twice, TARE_MALFORMED_FILE, "duplicate function 'f'");
}

static text everything(void) {
    text call = plain_call(), f = leaky();
    onnx_function_default(&f, "slope", 0.5f);
    text outer = onnx_function("outer", "a", "a b b", "", 17);
    onnx_function_node(&outer, onnx_function_call("f", "", "a", "b"));
    text g = {0};
    onnx_add_node(&g, onnx_function_call("outer", "/act/outer", "x", "p q x2"));
    onnx_add_node(&g, call);
    close_graph(&g);
    text file = onnx_model(g, 17);
    onnx_add_function(&file, f);
    onnx_add_function(&file, outer);
    return file;
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    text file = everything();
    const char *path = temp_path("memory.onnx");
    tare_model *model = NULL;
    tare_status status = TARE_OK;
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    EVERY_ALLOCATION_FAILS(status, status = tare_model_read(path, NULL, &model, NULL),
                           tare_model_destroy(model))
}

static void damaged_functions_do_no_harm(void **state) {
    (void)state;
    text file = everything();
    const char *path = temp_path("damaged.onnx");
    for (size_t i = 0; i < file.length * 8; i++) {
        tare_model *model = NULL;
        file.chars[i / 8] = (char)(file.chars[i / 8] ^ 1 << i % 8);
        temp_write(path, file.chars, file.length);
        const tare_status status = tare_model_read(path, NULL, &model, job_error());
        assert_int_not_equal(status, TARE_INTERNAL);
        assert_int_not_equal(status, TARE_OUT_OF_MEMORY);
        tare_model_destroy(model);
        file.chars[i / 8] = (char)(file.chars[i / 8] ^ 1 << i % 8);
    }
    tare__text_release(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_the_scope_of_their_call),
        cmocka_unit_test(attributes_are_the_calls_or_the_default),
        cmocka_unit_test(functions_call_functions_with_parameters),
        cmocka_unit_test(values_inside_are_their_own),
        cmocka_unit_test(outputs_may_be_inputs_or_stand_twice),
        cmocka_unit_test(functions_have_opsets_of_their_own),
        cmocka_unit_test(functions_stand_before_operators),
        cmocka_unit_test(circles_and_depth_are_refused),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(calls_that_do_not_fit_are_refused),
        cmocka_unit_test(broken_functions_are_refused),
        cmocka_unit_test(lost_memory_is_an_error),
        cmocka_unit_test(damaged_functions_do_no_harm),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
