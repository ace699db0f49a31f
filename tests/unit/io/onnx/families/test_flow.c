// SPDX-License-Identifier: Apache-2.0
// Branches, loops and sequences of ONNX files: what they compute, and what is refused.
#include <math.h>

#include "support/test.h"

#ifdef TARE_HAVE_ONNX

#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/run.h"
#include "support/temp.h"

static void write_model(text g) {
    text bytes = onnx_model(g, 17);
    temp_write(temp_path("flow.onnx"), bytes.chars, bytes.length);
    tare__text_release(&bytes);
}

static text graph_of_x(void) {
    text g = {0};
    onnx_input(&g, "x", "N,3");
    return g;
}

// Runs the file on x [1][3], and compares its first output.
static void check_run(text g, const double x[3], const double *expected, size_t count) {
    tare_model *model = NULL;
    tare_session *session = NULL;
    tare_tensor *in = COUNTING(0, 1, 1, 3), *outputs[4] = {NULL};
    size_t found = 0;
    for (int i = 0; i < 3; i++) tare__tensor_set(in, i, x[i]);
    write_model(g);
    CHECK_DONE(tare_model_read(temp_path("flow.onnx"), NULL, &model, job_error()));
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, (const tare_tensor *const[]){in}, 1, outputs, 4, &found,
                                job_error()));
    check_floats(tare_tensor_retain(outputs[0]), expected, count);
    for (size_t i = 0; i < found; i++) tare_tensor_release(outputs[i]);
    tare_tensor_release(in);
    tare_session_destroy(session);
    tare_model_destroy(model);
}
#define RUNS(graph, x, ...)                                                                        \
    check_run(graph, x, (const double[]){__VA_ARGS__},                                             \
              sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void refuses(text g, const char *words) {
    tare_model *model = NULL;
    write_model(g);
    assert_int_not_equal(tare_model_read(temp_path("flow.onnx"), NULL, &model, job_error()),
                         TARE_OK);
    if (strstr(tare_error_message(job_error()), words) == NULL)
        fail_msg("'%s' lacks '%s'", tare_error_message(job_error()), words);
}

static const double positive[] = {1, 2, 3}, negative[] = {-1, -2, 1};

// --- If ---

// A graph of one node: op(x) > y.
static text branch(const char *op, const char *y) {
    text g = {0};
    onnx_call(&g, op, "", "x", y);
    onnx_output(&g, y);
    return g;
}

// y = then(x) if `of` has a number above zero, else otherwise(x).
static text choice_of(const char *of, const char *then, const char *otherwise, const char *y) {
    text g = graph_of_x();
    onnx_number(&g, "zero", 0);
    onnx_number(&g, "one", 1);
    onnx_call(&g, "ReduceMax", "", of, "most");
    onnx_call(&g, "Greater", "", "most zero", "holds");
    text n = onnx_node("If", "", "holds", y);
    onnx_attr_graph(&n, "then_branch", branch(then, "a"));
    onnx_attr_graph(&n, "else_branch", branch(otherwise, "b"));
    onnx_add_node(&g, n);
    return g;
}

static text choice(const char *of) {
    text g = choice_of(of, "Neg", "Abs", "y");
    onnx_output(&g, "y");
    return g;
}

static void a_constant_chooses_a_branch(void **state) {
    (void)state;
    RUNS(choice("one"), negative, 1, 2, -1);
    RUNS(choice("zero"), negative, 1, 2, 1);
}

static void data_choose_a_branch(void **state) {
    (void)state;
    static const double below[] = {-1, -2, -3};
    RUNS(choice("x"), positive, -1, -2, -3);
    RUNS(choice("x"), below, 1, 2, 3);
}

static void branches_of_different_shapes_need_a_constant(void **state) {
    (void)state;
    text g = choice_of("x", "Neg", "ReduceSum", "y");
    onnx_output(&g, "y");
    refuses(g, "results of different shapes");
}

static void sequences_need_a_constant(void **state) {
    (void)state;
    text g = choice_of("x", "SequenceConstruct", "SequenceConstruct", "s");
    onnx_call(&g, "SequenceLength", "", "s", "y");
    onnx_output(&g, "y");
    refuses(g, "chooses between sequences");
}

// --- Loop ---

// Adds the number of the iteration to h; gives each sum, too.
static text counting_body(void) {
    text g = {0};
    onnx_input(&g, "i", "1");
    onnx_input(&g, "before", "1");
    onnx_input(&g, "h", "N,3");
    text cast = onnx_node("Cast", "", "i", "number");
    onnx_attr_int(&cast, "to", 1);
    onnx_add_node(&g, cast);
    onnx_call(&g, "Add", "", "h number", "sum");
    onnx_call(&g, "Identity", "", "before", "after");
    onnx_call(&g, "Identity", "", "sum", "item");
    onnx_output(&g, "after");
    onnx_output(&g, "sum");
    onnx_output(&g, "item");
    return g;
}

static text counting_loop(int64_t rounds, const char *result) {
    text g = graph_of_x();
    onnx_int64s(&g, "rounds", &rounds, 1);
    text n = onnx_node("Loop", "", "rounds - x", "y items");
    onnx_attr_graph(&n, "body", counting_body());
    onnx_add_node(&g, n);
    onnx_output(&g, result);
    return g;
}

static void loops_are_unrolled(void **state) {
    (void)state;
    RUNS(counting_loop(3, "y"), positive, 4, 5, 6);
    RUNS(counting_loop(3, "items"), positive, 1, 2, 3, 2, 3, 4, 4, 5, 6);
    RUNS(counting_loop(0, "y"), positive, 1, 2, 3);
    refuses(counting_loop(INT64_MAX, "y"), "more than 16384 nodes");
    refuses(counting_loop(0, "items"), "produces the output 'items'");
}

static void a_number_of_iterations_is_int64(void **state) {
    (void)state;
    static const float numbers[] = {2, NAN};
    for (int i = 0; i < 2; i++) {
        text g = graph_of_x();
        onnx_number(&g, "rounds", numbers[i]);
        text n = onnx_node("Loop", "", "rounds - x", "y items");
        onnx_attr_graph(&n, "body", counting_body());
        onnx_add_node(&g, n);
        onnx_output(&g, "y");
        refuses(g, "the number of iterations is of torch.float32, expected torch.int64");
    }
}

// A loop that changes nothing, whose body has further parts.
static text idle_loop(int64_t rounds, text body, const char *results) {
    text g = graph_of_x();
    onnx_int64s(&g, "rounds", &rounds, 1);
    onnx_number(&g, "one", 1);
    onnx_number(&g, "zero", 0);
    onnx_call(&g, "Greater", "", "zero one", "no");
    onnx_input(&body, "i", "1");
    onnx_input(&body, "before", "1");
    onnx_input(&body, "h", "N,3");
    text n = onnx_node("Loop", "", "rounds - x", results);
    onnx_attr_graph(&n, "body", body);
    onnx_add_node(&g, n);
    onnx_output(&g, "y");
    return g;
}

static text idle_body(void) {
    text body = {0};
    onnx_output(&body, "before");
    onnx_output(&body, "h");
    return body;
}

// What a body holds beside its nodes is work in each iteration, too.
static void all_that_a_body_holds_is_counted(void **state) {
    (void)state;
    char name[16];
    text items = idle_body(), constants = idle_body(), branches = idle_body(), large = {0};
    text results = {0};
    tare__text_printf(&results, "y");
    for (int i = 0; i < 400; i++) {
        tare__text_printf(&results, " i%d", i);
        onnx_output(&items, "i");
        (void)snprintf(name, sizeof name, "c%d", i);
        onnx_number(&constants, name, 1);
        onnx_call(&large, "Neg", "", "h", name);
    }
    RUNS(idle_loop(100, idle_body(), "y"), positive, 1, 2, 3);
    refuses(idle_loop(INT64_MAX, items, tare__text_chars(&results)), "more than 16384 nodes");
    tare__text_release(&results);
    refuses(idle_loop(100, constants, "y"), "more than 16384 nodes");
    onnx_output(&large, "c0");
    text n = onnx_node("If", "", "no", "chosen");
    onnx_attr_graph(&n, "then_branch", large);
    onnx_attr_graph(&n, "else_branch", branch("Abs", "b"));
    onnx_add_node(&branches, n);
    refuses(idle_loop(100, branches, "y"), "more than 16384 nodes");
}

// Doubles h while its maximum is below 10.
static text doubling_loop(int64_t rounds) {
    text g = graph_of_x(), body = {0};
    onnx_int64s(&g, "rounds", &rounds, 1);
    onnx_number(&g, "two", 2);
    onnx_number(&g, "ten", 10);
    onnx_input(&body, "i", "1");
    onnx_input(&body, "before", "1");
    onnx_input(&body, "h", "N,3");
    onnx_call(&body, "Mul", "", "h two", "doubled");
    text most = onnx_node("ReduceMax", "", "doubled", "most");
    onnx_attr_int(&most, "keepdims", 0);
    onnx_add_node(&body, most);
    onnx_call(&body, "Less", "", "most ten", "after");
    onnx_output(&body, "after");
    onnx_output(&body, "doubled");
    text n = onnx_node("Loop", "", "rounds - x", "y");
    onnx_attr_graph(&n, "body", body);
    onnx_add_node(&g, n);
    onnx_output(&g, "y");
    return g;
}

static void data_end_a_loop(void **state) {
    (void)state;
    static const double large[] = {0, 0, 50};
    RUNS(doubling_loop(6), positive, 4, 8, 12);
    RUNS(doubling_loop(6), large, 0, 0, 100);
    RUNS(doubling_loop(1), positive, 2, 4, 6);
    refuses(doubling_loop(INT64_MAX), "without a known number of iterations");
}

// --- Scan ---

static void scans_are_unrolled(void **state) {
    (void)state;
    text g = graph_of_x(), body = {0};
    onnx_input(&body, "s", "N");
    onnx_input(&body, "item", "N");
    onnx_call(&body, "Add", "", "s item", "sum");
    onnx_call(&body, "Identity", "", "sum", "given");
    onnx_output(&body, "sum");
    onnx_output(&body, "given");
    text first = onnx_node("ReduceSum", "", "x axes", "start");
    onnx_attr_int(&first, "keepdims", 0);
    onnx_int64s(&g, "axes", (const int64_t[]){1}, 1);
    onnx_add_node(&g, first);
    text n = onnx_node("Scan", "", "start x", "last y");
    onnx_attr_graph(&n, "body", body);
    onnx_attr_int(&n, "num_scan_inputs", 1);
    onnx_attr_ints(&n, "scan_input_axes", (const int64_t[]){1}, 1);
    onnx_attr_ints(&n, "scan_input_directions", (const int64_t[]){1}, 1);
    onnx_attr_ints(&n, "scan_output_axes", (const int64_t[]){1}, 1);
    onnx_add_node(&g, n);
    onnx_output(&g, "y");
    RUNS(g, positive, 9, 11, 12);
}

// --- sequences ---

static void sequences_are_lists_of_values(void **state) {
    (void)state;
    text g = graph_of_x();
    onnx_int64s(&g, "second", (const int64_t[]){1}, 1);
    text split = onnx_node("SplitToSequence", "", "x", "a");
    onnx_attr_int(&split, "axis", 1);
    onnx_add_node(&g, split);
    onnx_call(&g, "SequenceAt", "", "a second", "item");
    onnx_call(&g, "Neg", "", "item", "minus");
    onnx_call(&g, "SequenceErase", "", "a second", "b");
    onnx_call(&g, "SequenceInsert", "", "b minus", "c");
    onnx_call(&g, "SequenceInsert", "", "c item second", "d");
    text join = onnx_node("ConcatFromSequence", "", "d", "y");
    onnx_attr_int(&join, "axis", 1);
    onnx_add_node(&g, join);
    onnx_output(&g, "y");
    RUNS(g, positive, 1, 2, 3, -2);
}

// Each insertion copies the sequence.
static void copies_of_sequences_are_limited(void **state) {
    (void)state;
    enum { ITEMS = 3000, INSERTIONS = 1000 };
    text g = graph_of_x(), inputs = {0};
    for (int i = 0; i < ITEMS; i++) tare__text_append(&inputs, i > 0 ? " x" : "x");
    onnx_call(&g, "SequenceConstruct", "", tare__text_chars(&inputs), "s0");
    tare__text_release(&inputs);
    for (int i = 0; i < INSERTIONS; i++) {
        char in[32], out[32];
        (void)snprintf(in, sizeof in, "s%d x", i);
        (void)snprintf(out, sizeof out, "s%d", i + 1);
        onnx_call(&g, "SequenceInsert", "", in, out);
    }
    onnx_call(&g, "ConcatFromSequence", "", "s1000", "y");
    onnx_output(&g, "y");
    refuses(g, "sequences come to more than 2097152 items");
}

// The file chooses the size of a slice.
static void slices_may_be_larger_than_the_input(void **state) {
    (void)state;
    text g = graph_of_x();
    text size = onnx_node("Constant", "", "", "size");
    onnx_attr_int(&size, "value_int", INT64_MAX);
    onnx_add_node(&g, size);
    onnx_int64s(&g, "first", (const int64_t[]){0}, 1);
    text split = onnx_node("SplitToSequence", "", "x size", "a");
    onnx_attr_int(&split, "axis", 1);
    onnx_add_node(&g, split);
    onnx_call(&g, "SequenceAt", "", "a first", "y");
    onnx_output(&g, "y");
    RUNS(g, positive, 1, 2, 3);
}

static void a_sequence_is_no_output(void **state) {
    (void)state;
    text g = graph_of_x();
    onnx_call(&g, "SequenceConstruct", "", "x x", "y");
    onnx_output(&g, "y");
    refuses(g, "the output 'y' is a sequence");
    text wrong = graph_of_x();
    onnx_call(&wrong, "SequenceConstruct", "", "x x", "a");
    onnx_call(&wrong, "Relu", "", "a", "y");
    onnx_output(&wrong, "y");
    refuses(wrong, "must be a tensor, found a list");
}

// --- hostile files ---

// Bodies within bodies.
static text nested(int depth) {
    if (depth == 0) return branch("Neg", "y0");
    char y[16], inner[16];
    text g = {0};
    (void)snprintf(y, sizeof y, "y%d", depth);
    (void)snprintf(inner, sizeof inner, "y%d", depth - 1);
    text n = onnx_node("If", "", "holds", y);
    onnx_attr_graph(&n, "then_branch", nested(depth - 1));
    onnx_attr_graph(&n, "else_branch", branch("Abs", inner));
    onnx_add_node(&g, n);
    onnx_output(&g, y);
    return g;
}

static void limits_hold(void **state) {
    (void)state;
    text g = graph_of_x();
    onnx_number(&g, "zero", 0);
    onnx_number(&g, "one", 1);
    onnx_call(&g, "Greater", "", "one zero", "holds");
    text n = onnx_node("If", "", "holds", "y");
    onnx_attr_graph(&n, "then_branch", nested(17));
    onnx_attr_graph(&n, "else_branch", branch("Abs", "b"));
    onnx_add_node(&g, n);
    onnx_output(&g, "y");
    refuses(g, "more than 16 deep");
    text missing = graph_of_x();
    onnx_int64s(&missing, "rounds", (const int64_t[]){2}, 1);
    onnx_call(&missing, "Loop", "", "rounds - x", "y");
    onnx_output(&missing, "y");
    refuses(missing, "the graph 'body' is missing");
    text taken = graph_of_x(), body = counting_body();
    onnx_input(&body, "x", "N,3");
    onnx_int64s(&taken, "rounds", (const int64_t[]){2}, 1);
    text loop = onnx_node("Loop", "", "rounds - x x", "y z items");
    onnx_attr_graph(&loop, "body", body);
    onnx_add_node(&taken, loop);
    onnx_output(&taken, "y");
    refuses(taken, "its body has 3 outputs, expected 4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_chooses_a_branch),
        cmocka_unit_test(data_choose_a_branch),
        cmocka_unit_test(branches_of_different_shapes_need_a_constant),
        cmocka_unit_test(sequences_need_a_constant),
        cmocka_unit_test(loops_are_unrolled),
        cmocka_unit_test(a_number_of_iterations_is_int64),
        cmocka_unit_test(all_that_a_body_holds_is_counted),
        cmocka_unit_test(data_end_a_loop),
        cmocka_unit_test(scans_are_unrolled),
        cmocka_unit_test(sequences_are_lists_of_values),
        cmocka_unit_test(copies_of_sequences_are_limited),
        cmocka_unit_test(slices_may_be_larger_than_the_input),
        cmocka_unit_test(a_sequence_is_no_output),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
