// SPDX-License-Identifier: Apache-2.0
// Graphs that operators of control flow run are prepared, calibrated and converted with the model
// that they stand in; the condition of a loop stays float.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include <math.h>

#include "flow/calibrate/calibrate.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/text/print.h"

typedef struct flow {
    const char *name, *body; // a recorded program, and where its body stands
    bool is_quantized;
} flow;

static const flow flows[] = {
    {"scan", "scan_combine_graph_0", true},
    {"while_loop", "while_loop_body_graph_0", true},
    {"while_loop", "while_loop_cond_graph_0", false},
    {"cond", "true_graph_0", true},
    {"map", "body_graph_0", true},
};

static tare_model *read_program(const char *name) {
    char path[128];
    tare_model *model = NULL;
    (void)snprintf(path, sizeof path, "tests/fuzz/corpus/pt2/%s", name);
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    return model;
}

// Of every input as its meta says: small numbers, and three rounds of a loop.
static size_t make_inputs(const tare_model *model, value inputs[8]) {
    size_t count = 0;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        data_input d;
        CHECK_DONE(tare__describe_input(n, &d, job_error()));
        tare_tensor *t = NULL;
        CHECK_DONE(tare_tensor_create(d.dtype, d.ndim, d.shape, &t, job_error()));
        for (int64_t i = 0; i < t->count; i++)
            tare__tensor_set(t, i, d.dtype == TARE_INT64 ? 3 : 0.25 * (double)(i % 5) - 0.4);
        inputs[count++] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    }
    return count;
}

static value run(tare_model *model, arena *memory) {
    value inputs[8], result;
    const size_t count = make_inputs(model, inputs);
    const interpreter it = {.root = model->root, .own = model->root, .thread_count = 1};
    CHECK_DONE(tare__interpret(&it, inputs, count, memory, &result, job_error()));
    for (size_t i = 0; i < count; i++) tare__value_release_tensors(&inputs[i]);
    return result;
}

static void check_near(const value *a, const value *b) {
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        const tare_tensor *x = a->as.items[i].as.tensor, *y = b->as.items[i].as.tensor;
        assert_int_equal(x->count, y->count);
        for (int64_t k = 0; k < x->count; k++)
            assert_true(fabs(tare__tensor_get(x, k) - tare__tensor_get(y, k)) < 0.05);
    }
}

// The body's code.
static const char *body_text(const tare_model *model, const char *body, text *out) {
    const module *m = tare__module_find(model->root, body);
    assert_non_null(m);
    tare__text_clear(out);
    CHECK_DONE(tare__print_model(m, out, job_error()));
    return tare__text_chars(out);
}

static void check_flow(const flow *f, bool goes_through_a_file) {
    tare_model *model = read_program(f->name), *converted = NULL;
    tare_model *prepared = prepared_program(model);
    text printed = {0};
    arena memory = {0};
    check_holds(body_text(prepared, f->body, &printed), "activation_post_process_0",
                f->is_quantized);
    value seen = run(prepared, &memory);
    tare__value_release_tensors(&seen);
    if (goes_through_a_file) {
        CHECK_DONE(tare_model_write(prepared, temp_path("p.safetensors"), job_error()));
        tare_model_destroy(prepared);
        CHECK_DONE(tare_model_read(temp_path("p.safetensors"), NULL, &prepared, job_error()));
    }
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    const char *code = body_text(converted, f->body, &printed);
    CHECK_LACKS(code, "activation_post_process");
    check_holds(code, "torch.ops.quantized_decomposed.quantize_per_tensor.default",
                f->is_quantized);
    value before = run(model, &memory), after = run(converted, &memory);
    check_near(&before, &after);
    // What torch can load again.
    CHECK_DONE(tare_model_write_pt2(converted, temp_path("c.pt2"), job_error()));
    tare__value_release_tensors(&before);
    tare__value_release_tensors(&after);
    tare__arena_release(&memory);
    tare__text_release(&printed);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare_model_destroy(converted);
}

static void bodies_are_quantized_with_the_model(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++) check_flow(&flows[i], false);
}

// Calibrates on data, or on shapes alone.
static uint64_t counted(const tare_model *program, bool by_shapes, uint64_t *open_loops) {
    tare_model *made = prepared_program(program);
    value inputs[8], result = {0};
    const tare_tensor *tensors[8];
    arena memory = {0};
    bool is_stateful = false;
    const size_t count = make_inputs(program, inputs);
    for (size_t i = 0; i < count; i++) tensors[i] = inputs[i].as.tensor;
    if (by_shapes)
        CHECK_DONE(tare__calibrate_shapes(made, tensors, count, &memory, &result, &is_stateful,
                                          job_error()));
    else
        CHECK_DONE(tare_calibrate(made, tensors, count, job_error()));
    tare_coverage c = {.struct_size = sizeof c};
    CHECK_DONE(tare_model_coverage(made, &c, job_error()));
    tare__value_release_tensors(&result);
    for (size_t i = 0; i < count; i++) tare__value_release_tensors(&inputs[i]);
    tare__arena_release(&memory);
    tare_model_destroy(made);
    *open_loops = c.open_loop_count;
    return c.macs;
}

// A linear layer of 3 by 3 in each. A while_loop counts one round, and says so.
static void every_round_is_counted(void **state) {
    static const struct {
        const char *name;
        size_t along; // the input whose elements the layer multiplies
        uint64_t open_loops;
    } rows[] = {{"scan", 1, 0}, {"map", 0, 0}, {"while_loop", 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *program = read_program(rows[i].name);
        value inputs[8];
        const size_t count = make_inputs(program, inputs);
        const tare_tensor *first = inputs[0].as.tensor, *x = inputs[rows[i].along].as.tensor;
        const int64_t batch = first->ndim > 0 ? first->shape[0] : x->shape[0];
        for (int by_shapes = 0; by_shapes < 2; by_shapes++) {
            uint64_t open_loops = 0;
            assert_int_equal(counted(program, by_shapes, &open_loops), 3 * x->count / batch);
            assert_int_equal(open_loops, rows[i].open_loops);
        }
        for (size_t k = 0; k < count; k++) tare__value_release_tensors(&inputs[k]);
        tare_model_destroy(program);
    }
}

// As torchao 0.18 prints it.
static void a_prepared_body_is_what_torchao_makes(void **state) {
    (void)state;
    tare_model *model = read_program("scan"), *made = prepared_program(model);
    text printed = {0};
    assert_string_equal(
        body_text(made, "scan_combine_graph_0", &printed),
        "GraphModule(\n"
        "  (activation_post_process_3): HistogramObserver(min_val=inf, max_val=-inf)\n"
        "  (activation_post_process_0): HistogramObserver(min_val=inf, max_val=-inf)\n"
        "  (activation_post_process_1): MinMaxObserver(min_val=inf, max_val=-inf)\n"
        "  (activation_post_process_2): HistogramObserver(min_val=inf, max_val=-inf)\n"
        "  (activation_post_process_4): HistogramObserver(min_val=inf, max_val=-inf)\n"
        "  (activation_post_process_5): HistogramObserver(min_val=inf, max_val=-inf)\n"
        ")\n\n"
        "def forward(self, arg0_1, arg1_1, arg2_1, arg3_1):\n"
        "    activation_post_process_3 = self.activation_post_process_3(arg0_1);  arg0_1 = None\n"
        "    activation_post_process_0 = self.activation_post_process_0(arg1_1);  arg1_1 = None\n"
        "    activation_post_process_1 = self.activation_post_process_1(arg2_1);  arg2_1 = None\n"
        "    linear = torch.ops.aten.linear.default(activation_post_process_0, "
        "activation_post_process_1, arg3_1);  activation_post_process_0 = "
        "activation_post_process_1 = arg3_1 = None\n"
        "    activation_post_process_2 = self.activation_post_process_2(linear);  linear = None\n"
        "    add = torch.ops.aten.add.Tensor(activation_post_process_3, "
        "activation_post_process_2);  activation_post_process_3 = None\n"
        "    activation_post_process_4 = self.activation_post_process_4(add);  add = None\n"
        "    relu = torch.ops.aten.relu.default(activation_post_process_2);  "
        "activation_post_process_2 = None\n"
        "    activation_post_process_5 = self.activation_post_process_5(relu);  relu = None\n"
        "    return (activation_post_process_4, activation_post_process_5)\n");
    tare__text_release(&printed);
    tare_model_destroy(model);
    tare_model_destroy(made);
}

// Statistics and annotations of a body survive the model file.
static void bodies_go_through_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++) check_flow(&flows[i], true);
}

// A dequantize that two annotated nodes read is there twice: convert knows the body's annotations.
static void annotations_of_a_body_are_its_own(void **state) {
    (void)state;
    tare_model *model = read_program("scan"), *converted = NULL,
               *prepared = prepared_program(model);
    text printed = {0};
    arena memory = {0};
    value seen = run(prepared, &memory);
    tare__value_release_tensors(&seen);
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    CHECK_HOLDS(body_text(converted, "scan_combine_graph_0", &printed),
                "dequantize_per_tensor_default_6 = ");
    tare__arena_release(&memory);
    tare__text_release(&printed);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare_model_destroy(converted);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = read_program("scan"), *made = NULL;
    tare_quantizer *q = NULL;
    tare_status status;
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    SOME_ALLOCATIONS_FAIL(11, status, status = tare_prepare_pt2e(model, q, &made, NULL),
                          tare_model_destroy(made));
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_quantized_with_the_model),
        cmocka_unit_test(every_round_is_counted),
        cmocka_unit_test(a_prepared_body_is_what_torchao_makes),
        cmocka_unit_test(bodies_go_through_files),
        cmocka_unit_test(annotations_of_a_body_are_its_own),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
