// SPDX-License-Identifier: Apache-2.0
// Graphs that operators of control flow run are quantized like the same graph alone: equal
// integers, whoever computes them, and equal words about them.
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "dnnl/float_kernels.h"
#include "flow/calibrate/calibrate.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/temp.h"

enum { WIDTH = 6, ROUNDS = 5 };

#define WEIGHTS "    w = self.w\n    b = self.b\n"
#define CHOSEN                                                                                     \
    "def forward(self, x):\n" WEIGHTS "    y = torch.ops.aten.linear.default(x, w, b)\n"           \
    "    z = torch.ops.aten.relu.default(y)\n    return (z,)\n"
#define OTHER                                                                                      \
    "def forward(self, x):\n" WEIGHTS "    y = torch.ops.aten.linear.default(x, w, b)\n"           \
    "    return (y,)\n"
#define STEP                                                                                       \
    "def forward(self, s, x):\n" WEIGHTS "    y = torch.ops.aten.linear.default(x, w, b)\n"        \
    "    t = torch.ops.aten.add.Tensor(s, y)\n    z = torch.ops.aten.relu.default(y)\n"            \
    "    return (t, z)\n"
#define ROUND                                                                                      \
    "def forward(self, i, x):\n" WEIGHTS "    y = torch.ops.aten.linear.default(x, w, b)\n"        \
    "    t = torch.ops.aten.add.Tensor(x, y)\n    j = torch.ops.aten.sub.Tensor(i, 1)\n"           \
    "    return (j, t)\n"
#define GOES_ON "def forward(self, i, x):\n    c = torch.ops.aten.gt.Scalar(i, 0)\n    return c\n"

#define COND                                                                                       \
    "def forward(self, p, x):\n    first = self.first\n    second = self.second\n"                 \
    "    r = torch.ops.higher_order.cond(p, first, second, [x])\n    i = r[0]\n    return (i,)\n"
#define MAP                                                                                        \
    "def forward(self, xs):\n    first = self.first\n"                                             \
    "    r = torch.ops.higher_order.map_impl(first, [xs], [])\n    i = r[0]\n    return (i,)\n"
#define SCAN                                                                                       \
    "def forward(self, s, xs):\n    first = self.first\n"                                          \
    "    r = torch.ops.higher_order.scan(first, [s], [xs], [])\n    i = r[0]\n    j = r[1]\n"      \
    "    return (i, j)\n"
#define LOOP                                                                                       \
    "def forward(self, n, x):\n    second = self.second\n    first = self.first\n"                 \
    "    r = torch.ops.higher_order.while_loop(second, first, [n, x], [])\n    i = r[0]\n"         \
    "    j = r[1]\n    return (i, j)\n"

// --- models ---

// Numbers between -1 and 1 that depend on the seed.
static tare_tensor *random_tensor(unsigned seed, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, ndim, shape, &t, job_error()));
    for (int64_t i = 0; i < t->count; i++) {
        seed = seed * 1664525U + 1013904223U;
        tare__tensor_set(t, i, (double)(seed >> 8) / (1 << 23) - 1);
    }
    return t;
}
#define RANDOM(seed, ...)                                                                          \
    random_tensor((seed), (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),         \
                  (const int64_t[]){__VA_ARGS__})

static tare_model *graph_model(const char *code, unsigned seed) {
    module *root = new_tree();
    tare_tensor *w = RANDOM(seed, WIDTH, WIDTH), *b = RANDOM(seed + 1, WIDTH);
    CHECK_DONE(tare__module_set_tensor(root, "w", w, true, job_error()));
    CHECK_DONE(tare__module_set_tensor(root, "b", b, true, job_error()));
    tare_tensor_release(w);
    tare_tensor_release(b);
    return new_model(NULL, root, code);
}

static tare_model *flow_model(const char *code, const char *first, const char *second,
                              unsigned seed) {
    module *root = new_tree();
    const char *const codes[] = {first, second}, *const names[] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        if (codes[i] == NULL) continue;
        tare_model *inner = graph_model(codes[i], seed + (unsigned)i);
        CHECK_DONE(tare__module_set_child(root, names[i], inner->root, job_error()));
        tare_model_destroy(inner);
    }
    return new_model(NULL, root, code);
}

static tare_model *lower(tare_model *prepared) {
    tare_model *converted = NULL, *made = NULL;
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    CHECK_DONE(tare_lower_pt2e(converted, NULL, &made, job_error()));
    check_explained(converted);
    check_explained(made);
    tare_model_destroy(converted);
    return made;
}

static void calibrate(tare_model *prepared, const tare_tensor *a, const tare_tensor *b) {
    const tare_tensor *const inputs[] = {a, b};
    CHECK_DONE(tare_calibrate(prepared, inputs, b != NULL ? 2 : 1, job_error()));
}

// Both outputs; out[1] is NULL if there is one only.
static void run_on(const tare_model *model, const tare_session_options *options,
                   const tare_tensor *a, const tare_tensor *b, tare_tensor *out[2]) {
    const tare_tensor *const inputs[] = {a, b};
    tare_session *session = NULL;
    size_t count = 0;
    out[0] = out[1] = NULL;
    CHECK_DONE(tare_session_create(model, options, &session, job_error()));
    for (int again = 0; again < 2; again++) { // also by plans that were kept
        for (size_t i = 0; i < count; i++) tare_tensor_release(out[i]);
        CHECK_DONE(
            tare_session_run(session, inputs, b != NULL ? 2 : 1, out, 2, &count, job_error()));
    }
    tare_session_destroy(session);
}

// Both outputs of a float model, computed as calibration computes them.
static void run_float(const tare_model *model, const tare_tensor *a, const tare_tensor *b,
                      tare_tensor *out[2]) {
    const value inputs[] = {{.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)a},
                            {.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)b}};
    float_kernels *kernels = NULL;
    arena memory = {0};
    value result;
    CHECK_DONE(tare__float_kernels_create(NULL, &kernels, job_error()));
    const interpreter it = {.root = model->root, .thread_count = 1, .kernels = kernels};
    CHECK_DONE(tare__interpret(&it, inputs, 2, &memory, &result, job_error()));
    for (int i = 0; i < 2; i++) out[i] = tare_tensor_retain(result.as.items[i].as.tensor);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    tare__float_kernels_destroy(kernels);
}

static tare_tensor *row(const tare_tensor *t, int64_t at) {
    tare_tensor *rows = NULL, *made = NULL;
    CHECK_DONE(tare__tensor_rows((tare_tensor *)t, at, 1, &rows, job_error()));
    CHECK_DONE(tare_tensor_create(t->dtype, t->ndim - 1, t->shape + 1, &made, job_error()));
    memcpy(made->data, rows->data, tare__tensor_bytes(made));
    tare_tensor_release(rows);
    return made;
}

static tare_tensor *number(int64_t given) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(TARE_INT64, 0, NULL, &t, job_error()));
    tare__tensor_set(t, 0, (double)given);
    return t;
}

static void check_layers(const tare_model *whole, const tare_model *alone, const char *operator) {
    CHECK_HOLDS(printed(alone), operator);
    const module *inner = tare__module_find(whole->root, "first");
    tare_model view = {.context = whole->context, .root = (module *)inner, .stage = whole->stage};
    CHECK_HOLDS(printed(&view), operator);
}

// --- jobs ---

// What a test works with, released at its end.
typedef struct job {
    tare_model *whole, *alone; // at last in integers
    tare_tensor *tensors[64];
    size_t count;
} job;

static tare_tensor *keep(job *j, tare_tensor *t) {
    assert_true(j->count < 64);
    return t != NULL ? j->tensors[j->count++] = t : NULL;
}

static void begin(job *j, const char *code, const char *first, const char *second, unsigned seed) {
    tare_model *model = flow_model(code, first, second, seed), *single = graph_model(first, seed);
    *j = (job){.whole = prepared_program(model), .alone = prepared_program(single)};
    tare_model_destroy(model);
    tare_model_destroy(single);
}

static void lower_both(job *j, const char *operator) {
    tare_model *const prepared[] = {j->whole, j->alone};
    j->whole = lower(prepared[0]);
    j->alone = lower(prepared[1]);
    tare_model_destroy(prepared[0]);
    tare_model_destroy(prepared[1]);
    check_layers(j->whole, j->alone, operator);
}

static void end(job *j) {
    tare_model_destroy(j->whole);
    tare_model_destroy(j->alone);
    for (size_t i = 0; i < j->count; i++) tare_tensor_release(j->tensors[i]);
}

// The outputs of a run are kept.
static void run(job *j, const tare_model *model, const tare_tensor *a, const tare_tensor *b,
                tare_tensor *out[2]) {
    run_on(model, NULL, a, b, out);
    keep(j, out[0]);
    keep(j, out[1]);
}

// --- equal to the graph alone ---

static void a_branch_in_integers_is_that_branch_alone(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 8; seed++) {
        job j;
        tare_tensor *a[2], *b[2];
        begin(&j, COND, CHOSEN, OTHER, seed);
        tare_tensor *x = keep(&j, RANDOM(seed + 7, 4, WIDTH)), *yes = keep(&j, number(1));
        tare_tensor *y = keep(&j, RANDOM(seed + 8, 3, WIDTH));
        calibrate(j.whole, yes, x);
        calibrate(j.alone, x, NULL);
        lower_both(&j, "torch.ops.quantized.linear_relu(");
        run(&j, j.whole, yes, y, a);
        run(&j, j.alone, y, NULL, b);
        check_same_tensor(a[0], b[0]);
        end(&j);
    }
}

static void every_item_of_a_map_is_its_graph_alone(void **state) {
    (void)state;
    job j;
    tare_tensor *a[2], *b[2];
    begin(&j, MAP, CHOSEN, NULL, 20);
    tare_tensor *xs = keep(&j, RANDOM(30, ROUNDS, 2, WIDTH));
    calibrate(j.whole, xs, NULL);
    for (int64_t i = 0; i < ROUNDS; i++) calibrate(j.alone, keep(&j, row(xs, i)), NULL);
    lower_both(&j, "torch.ops.quantized.linear_relu(");
    run(&j, j.whole, xs, NULL, a);
    for (int64_t i = 0; i < ROUNDS; i++) {
        run(&j, j.alone, keep(&j, row(xs, i)), NULL, b);
        check_same_tensor(keep(&j, row(a[0], i)), b[0]);
    }
    end(&j);
}

// The float graph alone, round by round, as calibration of the whole runs it.
static void calibrate_rounds(job *j, const char *body, unsigned seed, const tare_tensor *s,
                             const tare_tensor *xs) {
    tare_model *single = graph_model(body, seed);
    tare_tensor *out[2];
    for (int64_t i = 0; i < ROUNDS; i++) {
        tare_tensor *x = keep(j, row(xs, i));
        calibrate(j->alone, s, x);
        run_float(single, s, x, out);
        s = keep(j, out[0]);
        keep(j, out[1]);
    }
    tare_model_destroy(single);
}

static void a_scan_in_integers_is_its_rounds_alone(void **state) {
    (void)state;
    job j;
    tare_tensor *a[2], *b[2];
    begin(&j, SCAN, STEP, NULL, 40);
    tare_tensor *s = keep(&j, RANDOM(50, 2, WIDTH)), *xs = keep(&j, RANDOM(51, ROUNDS, 2, WIDTH));
    calibrate(j.whole, s, xs);
    calibrate_rounds(&j, STEP, 40, s, xs);
    lower_both(&j, "torch.ops.quantized.linear");
    run(&j, j.whole, s, xs, a);
    for (int64_t i = 0; i < ROUNDS; i++, s = b[0]) {
        run(&j, j.alone, s, keep(&j, row(xs, i)), b);
        check_same_tensor(keep(&j, row(a[1], i)), b[1]);
    }
    check_same_tensor(a[0], s);
    end(&j);
}

static void a_loop_in_integers_is_its_rounds_alone(void **state) {
    (void)state;
    job j;
    tare_tensor *a[2], *b[2];
    begin(&j, LOOP, ROUND, GOES_ON, 60);
    tare_tensor *n = keep(&j, number(3)), *start = keep(&j, RANDOM(70, 2, WIDTH)), *x = start;
    tare_model *single = graph_model(ROUND, 60);
    calibrate(j.whole, n, x);
    for (int64_t i = 3; i > 0; i--, x = b[1]) {
        calibrate(j.alone, keep(&j, number(i)), x);
        run_float(single, n, x, b);
        keep(&j, b[0]);
        keep(&j, b[1]);
    }
    tare_model_destroy(single);
    lower_both(&j, "torch.ops.quantized.linear");
    run(&j, j.whole, n, start, a);
    x = start;
    for (int64_t i = 3; i > 0; i--, x = b[1]) run(&j, j.alone, keep(&j, number(i)), x, b);
    check_same_tensor(a[1], x);
    end(&j);
}

static void all_ways_to_run_give_the_same_bits(void **state) {
    (void)state;
    const tare_session_options ways[] = {
        {.thread_count = 1}, {.thread_count = 3}, {.reference = true}, {.portable_floats = true}};
    job j;
    begin(&j, SCAN, STEP, NULL, 80);
    tare_tensor *s = keep(&j, RANDOM(90, 9, WIDTH)), *xs = keep(&j, RANDOM(91, ROUNDS, 9, WIDTH));
    tare_tensor *a[2], *b[2];
    calibrate(j.whole, s, xs);
    calibrate_rounds(&j, STEP, 80, s, xs);
    lower_both(&j, "torch.ops.quantized.linear");
    run(&j, j.whole, s, xs, a);
    for (int i = 0; i < 5 + (int)tare__isa_detect(); i++) {
        if (i >= 4)
            assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)(i - 4)), 1), 0);
        run_on(j.whole, i < 4 ? &ways[i] : NULL, s, xs, b);
        check_same_tensor(a[0], b[0]);
        check_same_tensor(a[1], b[1]);
        tare_tensor_release(b[0]);
        tare_tensor_release(b[1]);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    end(&j);
}

// --- what is said of them ---

static void a_branch_that_calibration_never_took_stays_float(void **state) {
    (void)state;
    job j;
    tare_tensor *a[2], *b[2];
    tare_coverage c = {.struct_size = sizeof c};
    begin(&j, COND, CHOSEN, OTHER, 100);
    tare_tensor *x = keep(&j, RANDOM(101, 4, WIDTH)), *yes = keep(&j, number(1));
    tare_tensor *no = keep(&j, number(0));
    calibrate(j.whole, yes, x);
    calibrate(j.alone, x, NULL);
    lower_both(&j, "torch.ops.quantized.linear_relu(");
    CHECK_HOLDS(explained(j.whole, "second/y"), "left float: calibration never ran this graph");
    CHECK_HOLDS(explained(j.whole, "first/y"),
                "first/y (torch.ops.aten.linear.default): quantized: computed in integers by "
                "torch.ops.quantized.linear_relu");
    CHECK_HOLDS(explained(j.whole, NULL),
                "warning: second/output: calibration never ran this graph: it stays float");
    CHECK_HOLDS(explained(j.whole, "r"), "left float: it only runs graphs");
    CHECK_DONE(tare_model_coverage(j.whole, &c, job_error()));
    assert_int_equal(c.op_count, 5); // cond, its item, two layers, a relu
    assert_int_equal(c.quantized_op_count, 2);
    assert_true(c.macs > 0); // of what calibration ran
    assert_int_equal(c.quantized_macs, c.macs);
    tare_model *single = graph_model(OTHER, 101);
    run(&j, j.whole, no, x, a);
    run(&j, single, x, NULL, b);
    check_same_tensor(a[0], b[0]);
    tare_model_destroy(single);
    end(&j);
}

// Calibration, or that by shapes alone.
static void count_by(tare_model *prepared, bool by_shapes, const tare_tensor *a,
                     const tare_tensor *b) {
    const tare_tensor *const inputs[] = {a, b};
    arena memory = {0};
    value result = {0};
    bool is_stateful = false;
    if (by_shapes)
        CHECK_DONE(tare__calibrate_shapes(prepared, inputs, b != NULL ? 2 : 1, &memory, &result,
                                          &is_stateful, job_error()));
    else
        calibrate(prepared, a, b);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
}

// Shapes tell the rounds of scan and map, also that there are none. Counts are per sample of the
// first input: the items of a map, the rows of a scan's carry.
static void rounds_count_as_often_as_they_run(void **state) {
    (void)state;
    static const struct {
        const char *code, *body;
        bool has_carry;
    } flows[] = {{MAP, CHOSEN, false}, {SCAN, STEP, true}};
    enum { ROWS = 2 };
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++)
        for (int64_t way = 0; way < 8; way++) {
            const int64_t rounds = way / 2;
            tare_model *model = flow_model(flows[i].code, flows[i].body, NULL, 200);
            tare_model *made = prepared_program(model);
            tare_tensor *s = RANDOM(201, ROWS, WIDTH), *xs = RANDOM(202, rounds, ROWS, WIDTH);
            tare_coverage c = {.struct_size = sizeof c};
            count_by(made, way % 2 == 1, flows[i].has_carry ? s : xs,
                     flows[i].has_carry ? xs : NULL);
            CHECK_DONE(tare_model_coverage(made, &c, job_error()));
            const int64_t samples = flows[i].has_carry ? ROWS : rounds > 0 ? rounds : 1;
            assert_int_equal(c.macs, rounds * ROWS * WIDTH * WIDTH / samples);
            tare_tensor_release(s);
            tare_tensor_release(xs);
            tare_model_destroy(made);
            tare_model_destroy(model);
        }
}

static void a_model_without_calibration_is_refused(void **state) {
    (void)state;
    tare_model *model = flow_model(COND, CHOSEN, OTHER, 110), *prepared = prepared_program(model),
               *made;
    CHECK_REFUSED(tare_convert_pt2e(prepared, NULL, &made, job_error()), TARE_INVALID_ARGUMENT,
                  "has seen no data");
    tare_model_destroy(model);
    tare_model_destroy(prepared);
}

static const char *preview(const tare_model *model, bool as_json, text *out) {
    tare__text_clear(out);
    CHECK_DONE(tare_model_preview(model, as_json, tare__text_append_writer, out, job_error()));
    return tare__text_chars(out);
}

static void previews_name_nodes_of_graphs_inside(void **state) {
    (void)state;
    tare_model *model = flow_model(COND, CHOSEN, OTHER, 120), *prepared = prepared_program(model);
    text out = {0};
    CHECK_HOLDS(preview(prepared, false, &out),
                "integers: first/y (torch.ops.aten.linear.default), first/z");
    CHECK_HOLDS(tare__text_chars(&out), "conversions: 2 tensors quantized, 2 dequantized");
    CHECK_HOLDS(preview(prepared, true, &out), "[\"first/y\",\"first/z\"]");
    CHECK_DONE(tare_model_check_requests(prepared, job_error()));
    tare__text_release(&out);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
}

// Records and integers of graphs inside are in the file.
static void files_keep_graphs_inside(void **state) {
    (void)state;
    job j;
    tare_model *again = NULL;
    tare_tensor *a[2], *b[2];
    begin(&j, COND, CHOSEN, OTHER, 130);
    tare_tensor *x = keep(&j, RANDOM(131, 4, WIDTH)), *yes = keep(&j, number(1));
    calibrate(j.whole, yes, x);
    CHECK_DONE(tare_model_write(j.whole, temp_path("p.safetensors"), job_error()));
    tare_model_destroy(j.whole);
    CHECK_DONE(tare_model_read(temp_path("p.safetensors"), NULL, &j.whole, job_error()));
    calibrate(j.alone, x, NULL);
    lower_both(&j, "torch.ops.quantized.linear_relu(");
    CHECK_DONE(tare_model_write(j.whole, temp_path("l.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("l.safetensors"), NULL, &again, job_error()));
    text before = {0};
    CHECK_DONE(tare_model_explain(j.whole, NULL, tare__text_append_writer, &before, job_error()));
    assert_string_equal(tare__text_chars(&before), explained(again, NULL));
    tare__text_release(&before);
    run(&j, j.whole, yes, x, a);
    run(&j, again, yes, x, b);
    check_same_tensor(a[0], b[0]);
    tare_model_destroy(again);
    end(&j);
}

static void chosen_nodes_inside_stay_float(void **state) {
    (void)state;
    tare_model *model = flow_model(COND, CHOSEN, OTHER, 140), *prepared = prepared_program(model);
    tare_model *converted = NULL;
    const tare_float_choice choice = {.node = "first/y", .rule = "test", .reason = "as was chosen"};
    const tare_convert_pt2e_options options = {
        .struct_size = sizeof options, .float_choices = &choice, .float_choice_count = 1};
    tare_tensor *x = RANDOM(141, 4, WIDTH), *yes = number(1), *no = number(0);
    calibrate(prepared, yes, x);
    calibrate(prepared, no, x);
    CHECK_DONE(tare_convert_pt2e(prepared, &options, &converted, job_error()));
    CHECK_HOLDS(explained(converted, "first/y"), "left float: as was chosen");
    CHECK_HOLDS(explained(converted, "second/y"), "quantized");
    tare_tensor_release(x);
    tare_tensor_release(yes);
    tare_tensor_release(no);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare_model_destroy(converted);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = flow_model(COND, CHOSEN, OTHER, 150), *prepared = prepared_program(model);
    tare_model *converted = NULL, *made = NULL;
    tare_tensor *x = RANDOM(151, 4, WIDTH), *yes = number(1);
    tare_status status;
    calibrate(prepared, yes, x);
    SOME_ALLOCATIONS_FAIL(17, status, status = tare_convert_pt2e(prepared, NULL, &made, NULL),
                          tare_model_destroy(made));
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    SOME_ALLOCATIONS_FAIL(17, status, status = tare_lower_pt2e(converted, NULL, &made, NULL),
                          tare_model_destroy(made));
    tare_tensor_release(x);
    tare_tensor_release(yes);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare_model_destroy(converted);
}

// --- arguments that become a graph's own ---

#define PASSED(graphs)                                                                             \
    "def forward(self, p, x):\n    first = self.first\n    second = self.second\n    w = self.w\n" \
    "    r = torch.ops.higher_order.cond(p, " graphs ", [x, w])\n    i = r[0]\n    return (i,)\n"
#define TAKES(line)                                                                                \
    "def forward(self, x, w):\n" line "    y = torch.ops.aten.linear.default(x, w)\n"              \
    "    return (y,)\n"

// The values that cond passes in the prepared model.
static uint32_t passed_values(const char *graphs, const char *inner) {
    enum { OPERANDS = 3 };
    module *root = new_tree();
    const char *const names[] = {"first", "second"};
    tare_tensor *w = RANDOM(9, WIDTH, WIDTH);
    uint32_t count = 0;
    for (int i = 0; i < 2; i++) {
        tare_model *taker = new_model(NULL, new_tree(), inner);
        CHECK_DONE(tare__module_set_child(root, names[i], taker->root, job_error()));
        tare_model_destroy(taker);
    }
    CHECK_DONE(tare__module_set_tensor(root, "w", w, true, job_error()));
    tare_model *model = new_model(NULL, root, graphs);
    tare_model *made = prepared_program(model);
    for (const node *n = made->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_FUNCTION && strstr(n->target, "cond") != NULL)
            count = n->args[OPERANDS].count;
    tare_tensor_release(w);
    tare_model_destroy(made);
    tare_model_destroy(model);
    return count;
}

static void weights_become_a_graphs_own_unless_others_see_them(void **state) {
    (void)state;
    assert_int_equal(passed_values(PASSED("first, second"), TAKES("")), 1);
    assert_int_equal(passed_values(PASSED("first, first"), TAKES("")), 2); // one graph twice
    assert_int_equal(passed_values(PASSED("first, second"),
                                   TAKES("    v = torch.ops.aten.view.default(w, [36])\n"
                                         "    u = torch.ops.aten.add_.Tensor(v, 1.0)\n")),
                     2); // written through a view
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_in_integers_is_that_branch_alone),
        cmocka_unit_test(every_item_of_a_map_is_its_graph_alone),
        cmocka_unit_test(a_scan_in_integers_is_its_rounds_alone),
        cmocka_unit_test(a_loop_in_integers_is_its_rounds_alone),
        cmocka_unit_test(all_ways_to_run_give_the_same_bits),
        cmocka_unit_test(a_branch_that_calibration_never_took_stays_float),
        cmocka_unit_test(rounds_count_as_often_as_they_run),
        cmocka_unit_test(a_model_without_calibration_is_refused),
        cmocka_unit_test(previews_name_nodes_of_graphs_inside),
        cmocka_unit_test(files_keep_graphs_inside),
        cmocka_unit_test(chosen_nodes_inside_stay_float),
        cmocka_unit_test(weights_become_a_graphs_own_unless_others_see_them),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
