// SPDX-License-Identifier: Apache-2.0
// The numeric debugger, beside what torchao's says of the same program
// (tests/data/record_debugger.py).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/data/npz.h"
#include "model/pass.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

enum { BATCH_COUNT = 2, MOST_ROWS = 16 };

// One handle of the recorded program.
typedef struct recorded {
    int64_t handle;
    char reference[64], node[64];
    double sqnr[BATCH_COUNT], mse[BATCH_COUNT];
} recorded;

typedef struct fixture {
    tare_model *program, *prepared, *converted;
    tare_tensor *batches[BATCH_COUNT];
    recorded rows[MOST_ROWS];
    size_t row_count;
} fixture;

static void read_rows(fixture *f) {
    FILE *file = fopen("tests/data/debugger/rows.txt", "r");
    assert_non_null(file);
    for (recorded *r = f->rows;
         f->row_count < MOST_ROWS &&
         fscanf(file, "%" SCNd64 " %63s %63s %lf %lf %lf %lf", &r->handle, r->reference, r->node,
                &r->sqnr[0], &r->mse[0], &r->sqnr[1], &r->mse[1]) == 7;
         r++)
        f->row_count++;
    assert_int_equal(fclose(file), 0);
    assert_int_equal(f->row_count, 9);
}

static void read_batches(fixture *f) {
    const int64_t shape[] = {2, 3, 8, 8};
    map arrays = {0};
    CHECK_OK(tare__npz_read("tests/data/debugger/input.npz", 0, &arrays, NULL));
    const float *x = tare_tensor_data(tare__map_get(&arrays, "x"));
    for (size_t i = 0; i < BATCH_COUNT; i++)
        CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 4, shape, x + i * 384, &f->batches[i], NULL));
    tare__tensor_map_release(&arrays);
}

static int set_up(void **state) {
    static fixture f;
    tare_quantizer *q = NULL;
    temp_make(state);
    read_rows(&f);
    read_batches(&f);
    CHECK_DONE(tare_model_read("tests/data/debugger/model.pt2", NULL, &f.program, job_error()));
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(f.program, q, &f.prepared, job_error()));
    for (size_t i = 0; i < BATCH_COUNT; i++) {
        const tare_tensor *x = f.batches[i];
        CHECK_DONE(tare_calibrate(f.prepared, &x, 1, job_error()));
    }
    CHECK_DONE(tare_convert_pt2e(f.prepared, NULL, &f.converted, job_error()));
    tare_quantizer_destroy(q);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < BATCH_COUNT; i++) tare_tensor_release(f->batches[i]);
    tare_model_destroy(f->program);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->converted);
    return temp_remove(state);
}

static tare_model *copy_of(const tare_model *m) {
    tare_model *copy = NULL;
    CHECK_DONE(tare_model_write(m, temp_path("copy.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("copy.safetensors"), NULL, &copy, job_error()));
    return copy;
}

static int64_t handle_of(const tare_model *m, const char *name) {
    const tare_node *n = tare_model_find_node(m, name);
    if (n == NULL) fail_msg("there is no node '%s'", name);
    return tare_node_debug_handle(n);
}

static const char *last_with(const tare_model *m, int64_t handle) {
    const tare_node *n = tare_model_last_node(m);
    while (n != NULL && tare_node_debug_handle(n) != handle) n = tare_node_previous(n);
    return n != NULL ? tare_node_name(n) : "";
}

static tare_debug_comparison *compared(const tare_model *reference, const tare_model *model,
                                       tare_tensor *const *batches, size_t count) {
    tare_debug_comparison *c = NULL;
    CHECK_DONE(tare_debug_comparison_create(reference, model, NULL, &c, job_error()));
    for (size_t i = 0; i < count; i++) {
        const tare_tensor *x = batches[i];
        CHECK_DONE(tare_debug_compare(c, &x, 1, NULL, NULL, job_error()));
    }
    return c;
}

// --- numbering ---

static void check_program(const fixture *f, const tare_model *m, int64_t offset) {
    for (size_t i = 0; i < f->row_count; i++)
        assert_int_equal(handle_of(m, f->rows[i].reference), f->rows[i].handle + offset);
    assert_int_equal(handle_of(m, "x"), 0);
    assert_int_equal(handle_of(m, "conv1_weight"), 0);
    assert_int_equal(handle_of(m, "_guards_fn"), 0);
}

static void shift(tare_model *m, int64_t offset) {
    for (node *n = m->root->graph->first; n != NULL; n = n->next)
        if (n->debug_handle != 0) n->debug_handle += offset;
}

static void handles_of_a_program_are_those_of_torch(void **state) {
    const fixture *f = *state;
    tare_model *m = NULL;
    check_program(f, f->program, 0);
    m = copy_of(f->program);
    for (node *n = m->root->graph->first; n != NULL; n = n->next) n->debug_handle = 0;
    assert_false(tare_model_has_debug_handles(m));
    CHECK_OK(tare_debug_handles_generate(m, NULL));
    check_program(f, m, 0);
    // Those that are there stay, the others come behind them.
    tare__graph_find(m->root->graph, "linear")->debug_handle = 20;
    tare__graph_find(m->root->graph, "conv2d")->debug_handle = 0;
    CHECK_OK(tare_debug_handles_generate(m, NULL));
    assert_int_equal(handle_of(m, "linear"), 20);
    assert_int_equal(handle_of(m, "conv2d"), 21);
    assert_int_equal(handle_of(m, "relu"), 2);
    tare__graph_find(m->root->graph, "linear")->debug_handle = INT64_MAX;
    tare__graph_find(m->root->graph, "conv2d")->debug_handle = 0;
    CHECK_REFUSED(tare_debug_handles_generate(m, job_error()), TARE_INVALID_ARGUMENT,
                  "node 'conv2d': no debug handle is left");
    CHECK_REFUSED(tare_debug_handles_generate(NULL, job_error()), TARE_INVALID_ARGUMENT, "a model");
    tare_model_destroy(m);
}

// --- graphs in graphs ---

typedef struct numbers {
    bool forgets;    // first pass: keep what the file says, and forget it
    int64_t of[128]; // in order of the walk
    size_t count, seen;
} numbers;

static tare_status visit(void *user, const char *path, module *m, tare_error *err) {
    numbers *list = user;
    (void)path;
    (void)err;
    for (node *n = m->graph != NULL ? m->graph->first : NULL; n != NULL; n = n->next) {
        // Archives do not have these two; items take over what they are items of.
        if (n->op == NODE_GET_ATTR || strcmp(n->target, "operator.getitem") == 0) {
            if (list->forgets) n->debug_handle = 0;
            continue;
        }
        assert_true(list->count < 128);
        if (list->forgets) {
            list->of[list->count] = n->debug_handle;
            n->debug_handle = 0;
        } else {
            assert_int_equal(n->debug_handle, list->of[list->count]);
        }
        list->seen += n->debug_handle != 0;
        list->count++;
    }
    return TARE_OK;
}

static void graphs_of_control_flow_are_numbered_breadth_first(void **state) {
    (void)state;
    tare_model *m = NULL;
    numbers list = {.forgets = true};
    CHECK_DONE(tare_model_read("tests/data/debugger/branches.pt2", NULL, &m, job_error()));
    CHECK_OK(tare__module_walk(m->root, visit, &list, NULL));
    CHECK_OK(tare_debug_handles_generate(m, NULL));
    list.forgets = false;
    list.count = 0;
    CHECK_OK(tare__module_walk(m->root, visit, &list, NULL));
    assert_int_equal(list.seen, 13);
    tare_model_destroy(m);
}

static void check_file(const fixture *f, const tare_model *m, const char *name, int64_t offset) {
    tare_model *again = NULL;
    const char *path = temp_path(name);
    if (tare__ends_with(name, ".pt2"))
        CHECK_DONE(tare_model_write_pt2(m, path, job_error()));
    else
        CHECK_DONE(tare_model_write(m, path, job_error()));
    CHECK_DONE(tare_model_read(path, NULL, &again, job_error()));
    check_program(f, again, offset);
    tare_model_destroy(again);
}

static void handles_go_through_files(void **state) {
    const fixture *f = *state;
    tare_model *m = NULL, *again = NULL;
    m = copy_of(f->program);
    check_file(f, m, "same.safetensors", 0);
    check_file(f, m, "same.pt2", 0);
    shift(m, 100); // what the file said before is changed in it
    check_file(f, m, "other.safetensors", 100);
    check_file(f, m, "other.pt2", 100);
    tare__graph_find(m->root->graph, "linear")->debug_handle = 0;
    CHECK_DONE(tare_model_write_pt2(m, temp_path("none.pt2"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("none.pt2"), NULL, &again, job_error()));
    assert_int_equal(handle_of(again, "linear"), 0);
    assert_int_equal(handle_of(again, "flatten"), 108);
    tare_model_destroy(again);
    tare_model_destroy(m);
}

// --- passes ---

static void observers_and_conversions_have_what_they_watch(void **state) {
    const fixture *f = *state;
    for (const node *n = f->prepared->root->graph->first; n != NULL; n = n->next)
        if (tare__is_observer_node(f->prepared, n))
            assert_int_equal(n->debug_handle, tare__node_arg(n, 0)->debug_handle);
    for (size_t i = 0; i < f->row_count; i++)
        assert_string_equal(last_with(f->converted, f->rows[i].handle), f->rows[i].node);
    // A quantize, and every copy of its dequantize.
    assert_int_equal(handle_of(f->converted, "quantize_per_tensor_default_4"), 2);
    assert_int_equal(handle_of(f->converted, "dequantize_per_tensor_default_12"), 2);
    assert_int_equal(handle_of(f->converted, "quantize_per_tensor_default_3"), 0); // of the input
}

static void lowered_nodes_have_the_handle_of_the_last_operator(void **state) {
    const fixture *f = *state;
    tare_model *m = NULL;
    CHECK_DONE(tare_lower_pt2e(f->converted, NULL, &m, job_error()));
    assert_string_equal(tare_node_target(tare_model_find_node(m, "conv2d")),
                        "torch.ops.quantized.conv2d_relu");
    assert_int_equal(handle_of(m, "conv2d"), 2);
    assert_int_equal(handle_of(m, "conv2d_1"), 4);
    assert_int_equal(handle_of(m, "add"), 5);
    assert_int_equal(handle_of(m, "linear"), 9);
    assert_string_equal(last_with(m, 1), "");
    tare_model_destroy(m);
}

static void reference_representations_keep_handles(void **state) {
    const fixture *f = *state;
    const tare_convert_pt2e_options options = {.use_reference_representation = true};
    tare_model *m = NULL;
    CHECK_DONE(tare_convert_pt2e(f->prepared, &options, &m, job_error()));
    for (size_t i = 0; i < f->row_count; i++) {
        const char *name = last_with(m, f->rows[i].handle);
        if (*name == '\0') fail_msg("handle %" PRId64 " is lost", f->rows[i].handle);
    }
    tare_debug_comparison *c = compared(f->program, m, f->batches, 1);
    tare_debug_row row;
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++)
        if (!(row.sqnr_db > 35)) fail_msg("%s: %g dB", row.node, row.sqnr_db);
    tare_debug_comparison_destroy(c);
    tare_model_destroy(m);
}

static tare_model *small_network(void) {
    module *root = new_tree();
    tare_model *m = NULL;
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=3, out_channels=4, kernel_size=(3, 3)");
    put_module(root, NULL, "bn", "torch.nn.BatchNorm2d", "num_features=4");
    put_module(root, NULL, "relu", "torch.nn.ReLU", "");
    m = new_model(NULL, root,
                  "def forward(self, x):\n    conv = self.conv(x)\n    bn = self.bn(conv)\n"
                  "    relu = self.relu(bn)\n    add = relu + relu\n    return add\n");
    CHECK_OK(tare_debug_handles_generate(m, NULL));
    return m;
}

static void fx_passes_keep_handles(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *m = small_network(), *fused = NULL;
    assert_int_equal(handle_of(m, "conv"), 1);
    assert_int_equal(handle_of(m, "add"), 4);
    CHECK_DONE(tare_fuse_fx(m, backend, &fused, job_error()));
    assert_int_equal(handle_of(fused, "conv"), 3); // with the batch norm and the relu in it
    tare_model *p = prepared(m, backend, mapping);
    assert_int_equal(handle_of(p, "conv"), 3);
    assert_int_equal(handle_of(p, "activation_post_process_1"), 3);
    CALIBRATED(p, 2, 3, 6, 6);
    tare_model *r = referenced(p, backend), *l = lowered(p, backend);
    assert_int_equal(handle_of(r, "quantize_per_tensor_1"), 3);
    assert_int_equal(handle_of(r, "dequantize_1"), 3);
    assert_int_equal(handle_of(r, "conv_scale_0"), 0);
    assert_int_equal(handle_of(l, "conv"), 3);
    assert_string_equal(last_with(l, 4), "dequantize_2");
    assert_int_equal(handle_of(l, "add_1"), 4);
    tare_model *const models[] = {m, fused, p, r, l};
    for (size_t i = 0; i < 5; i++) tare_model_destroy(models[i]);
    tare_backend_config_destroy(backend);
    tare_qconfig_mapping_destroy(mapping);
}

// --- comparing ---

static void check_batch(const fixture *f, size_t batch) {
    tare_debug_comparison *c = compared(f->program, f->converted, &f->batches[batch], 1);
    tare_debug_row row;
    assert_true(tare_debug_comparison_by_handles(c));
    assert_int_equal(tare_debug_comparison_row_count(c), f->row_count);
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++) {
        const recorded *r = &f->rows[i];
        assert_int_equal(row.handle, r->handle);
        assert_string_equal(row.reference_node, r->reference);
        assert_string_equal(row.node, r->node);
        if (fabs(row.sqnr_db - r->sqnr[batch]) > 0.005 ||
            fabs(row.mse - r->mse[batch]) > 0.001 * r->mse[batch])
            fail_msg("%s: %g dB and %g, torch has %g and %g", row.node, row.sqnr_db, row.mse,
                     r->sqnr[batch], r->mse[batch]);
    }
    tare_debug_comparison_destroy(c);
}

static void what_it_finds_is_what_torch_finds(void **state) {
    for (size_t i = 0; i < BATCH_COUNT; i++) check_batch(*state, i);
}

static void sums_go_over_all_runs(void **state) {
    const fixture *f = *state;
    tare_debug_comparison *c = compared(f->program, f->converted, f->batches, BATCH_COUNT);
    tare_debug_row row;
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++) {
        const double mean = (f->rows[i].mse[0] + f->rows[i].mse[1]) / 2;
        assert_true(fabs(row.mse - mean) <= 0.001 * mean);
        assert_true(row.max_abs_error * row.max_abs_error >= row.mse);
    }
    tare_debug_comparison_destroy(c);
}

static void set_scale(tare_model *m, const char *name, double factor) {
    node *n = tare__graph_find(m->root->graph, name);
    assert_non_null(n);
    n->args[1].as.real *= factor;
}

static void a_planted_fault_is_the_worst_value(void **state) {
    const fixture *f = *state;
    tare_model *m = NULL;
    tare_debug_row row, worst = {.sqnr_db = INFINITY};
    m = copy_of(f->converted);
    set_scale(m, "dequantize_per_tensor_default_5", 2);
    tare_debug_comparison *c = compared(f->program, m, f->batches, BATCH_COUNT);
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++)
        if (row.sqnr_db < worst.sqnr_db) worst = row;
    assert_int_equal(worst.handle, 4); // relu_1
    assert_true(worst.sqnr_db < 7);    // 2 y instead of y: 20 log10(2)
    assert_string_equal(worst.target, "torch.ops.aten.relu.default");
    tare_debug_comparison_destroy(c);
    tare_model_destroy(m);
}

static void without_handles_origins_match(void **state) {
    const fixture *f = *state;
    tare_model *m = NULL;
    tare_debug_row row;
    m = copy_of(f->program);
    for (node *n = m->root->graph->first; n != NULL; n = n->next) n->debug_handle = 0;
    tare_debug_comparison *c = compared(m, f->converted, f->batches, 1);
    assert_false(tare_debug_comparison_by_handles(c));
    assert_true(tare_debug_comparison_row(c, 0, &row));
    assert_string_equal(row.node, "conv2d");
    assert_string_equal(row.reference_node, "conv2d");
    assert_int_equal(row.handle, 0);
    tare_debug_comparison_destroy(c);
    tare_model_destroy(m);
}

// --- graphs inside ---

static const float own_weight[] = {0.5F, -1, 0.25F, 2, 1, -0.5F, 0.75F, 1.5F, -2};

// A map of a linear layer over rows, in which another map squares the elements.
static tare_model *mapped_model(float factor) {
    module *root = new_tree(), *body = new_tree(), *square = new_tree();
    tare_tensor *w = NEW_INPUT(3, 3);
    for (int i = 0; i < 9; i++) tare__f32(w)[i] = own_weight[i] * factor;
    CHECK_DONE(tare__module_set_tensor(body, "weight", w, true, job_error()));
    tare_tensor_release(w);
    tare_model *inner =
        new_model(NULL, square, "def forward(self, x):\n    m = x * x\n    return (m,)\n");
    CHECK_DONE(tare__module_set_child(body, "square", inner->root, job_error()));
    tare_model *mapped =
        new_model(NULL, body,
                  "def forward(self, x):\n    weight = self.weight\n"
                  "    linear = torch.nn.functional.linear(x, weight)\n    square = self.square\n"
                  "    r = torch.ops.higher_order.map_impl(square, [linear], [])\n    i = r[0]\n"
                  "    return (i,)\n");
    CHECK_DONE(tare__module_set_child(root, "body", mapped->root, job_error()));
    tare_model *m = new_model(NULL, root,
                              "def forward(self, x):\n    body = self.body\n"
                              "    r = torch.ops.higher_order.map_impl(body, [x], [])\n"
                              "    i = r[0]\n    return i\n");
    tare_model_destroy(mapped);
    tare_model_destroy(inner);
    return m;
}

static double noise_of(const tare_debug_comparison *c, const char *name, int64_t count) {
    tare_debug_row row;
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++) {
        if (strcmp(row.node, name) != 0) continue;
        assert_string_equal(row.reference_node, name);
        assert_int_equal(row.element_count, count);
        return row.noise;
    }
    fail_msg("%s has no row", name);
    return 0;
}

// Twice the weight: of each round the difference is the value of the reference, and three times it
// where it is squared.
static void values_of_all_rounds_are_compared(void **state) {
    (void)state;
    enum { ROUNDS = 4, ROWS = 2 };
    tare_model *reference = mapped_model(1), *m = mapped_model(2);
    tare_tensor *x = NEW_INPUT(ROUNDS, ROWS, 3);
    tare_tensor *batches[] = {x, x};
    tare_debug_comparison *c = compared(reference, m, batches, 2);
    double once = 0, squared = 0;
    for (int n = 0; n < ROUNDS * ROWS; n++)
        for (int o = 0; o < 3; o++) {
            double y = 0;
            for (int i = 0; i < 3; i++)
                y += (double)tare__f32(x)[3 * n + i] * own_weight[3 * o + i];
            once += y * y;
            squared += 9 * y * y * y * y;
        }
    const int64_t count = 2 * ROUNDS * ROWS * 3;
    assert_true(fabs(noise_of(c, "body/linear", count) - 2 * once) < 1e-4 * once);
    assert_true(fabs(noise_of(c, "body/square/m", count) - 2 * squared) < 1e-4 * squared);
    assert_true(fabs(noise_of(c, "i", count) - 2 * squared) < 1e-4 * squared);
    tare_debug_comparison_destroy(c);
    tare_tensor_release(x);
    tare_model_destroy(m);
    tare_model_destroy(reference);
}

// --- ranges ---

// Two inputs, of which the second is ten times the first, over two runs.
static void ranges_are_those_of_the_reference(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Linear", "in_features=4, out_features=4");
    tare_model *m = new_model(NULL, root,
                              "def forward(self, x, y):\n    a = self.a(x)\n    add = a + y\n"
                              "    relu = torch.relu(add)\n    return relu\n");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_backend_config *backend = builtin_backend("x86");
    tare_model *p = prepared(m, backend, mapping), *l = NULL;
    tare_tensor *x = NEW_INPUT(3, 4), *y = NEW_INPUT(3, 4);
    const tare_tensor *const inputs[] = {x, y};
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < 12; i++) {
        tare__f32(y)[i] *= 10;
        least = fmin(least, (double)tare__f32(y)[i]);
        most = fmax(most, (double)tare__f32(y)[i]);
    }
    CHECK_DONE(tare_calibrate(p, inputs, 2, job_error()));
    l = lowered(p, backend);
    for (int has_ranges = 0; has_ranges < 2; has_ranges++) {
        const tare_debug_options options = {.struct_size = sizeof options,
                                            .has_ranges = has_ranges != 0};
        tare_debug_comparison *c = NULL;
        tare_tensor_range r;
        size_t count = 0, inputs_seen = 0;
        CHECK_DONE(tare_debug_comparison_create(m, l, &options, &c, job_error()));
        for (int run = 0; run < 2; run++)
            CHECK_DONE(tare_debug_compare(c, inputs, 2, NULL, NULL, job_error()));
        for (; tare_debug_comparison_get_range(c, count, &r); count++) {
            assert_string_equal(r.layer, "");
            assert_true(r.has_qparams && !r.is_weight && r.scale > 0);
            assert_int_equal(r.element_count, 24);
            assert_true(r.low <= r.seen_low + r.scale && r.high >= r.seen_high - r.scale);
            uint64_t values = 0;
            for (int bin = 0; bin < TARE_HISTOGRAM_BINS; bin++) values += r.histogram[bin];
            assert_true(values >= 12);
            inputs_seen += r.value[0] == '\0';
            if (r.value[0] != '\0' || r.seen_high < 5) continue;
            assert_float_equal(r.seen_low, least, 1e-6); // the second input
            assert_float_equal(r.seen_high, most, 1e-6);
        }
        assert_int_equal(inputs_seen, has_ranges != 0 ? 2 : 0);
        assert_true(has_ranges != 0 ? count >= 4 : count == 0);
        tare_debug_comparison_destroy(c);
    }
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model *const models[] = {m, p, l};
    for (size_t i = 0; i < 3; i++) tare_model_destroy(models[i]);
}

static tare_model *numbered(const char *code) {
    tare_model *m = new_model(NULL, new_tree(), code);
    CHECK_OK(tare_debug_handles_generate(m, NULL));
    return m;
}

static void other_shapes_are_refused(void **state) {
    (void)state;
    tare_model *a = numbered("def forward(self, x):\n    y = torch.relu(x)\n    return y\n");
    tare_model *b = numbered("def forward(self, x):\n    y = torch.flatten(x)\n    return y\n");
    tare_tensor *x = NEW_INPUT(2, 3);
    const tare_tensor *const inputs[] = {x};
    tare_tensor *tensors[1];
    tare_debug_outputs outputs = {tensors, 1, 0};
    tare_debug_comparison *c = NULL;
    CHECK_OK(tare_debug_comparison_create(a, b, NULL, &c, NULL));
    CHECK_REFUSED(tare_debug_compare(c, inputs, 1, &outputs, NULL, job_error()),
                  TARE_INVALID_ARGUMENT,
                  "Cannot compare tensors with different shapes: ref=[2, 3] vs actual=[6]");
    assert_int_equal(outputs.count, 0);
    CHECK_REFUSED(tare_debug_comparison_create(a, NULL, NULL, &c, job_error()),
                  TARE_INVALID_ARGUMENT, "two models");
    tare_debug_comparison_destroy(c);
    tare_tensor_release(x);
    tare_model_destroy(a);
    tare_model_destroy(b);
}

// Handles in descending order, each of two nodes. There are too many for a search through all nodes
// for each handle.
static void many_handles_are_matched(void **state) {
    (void)state;
    enum { PAIRS = 20000, PAIR_CHARS = 128 };
    char *code = malloc(PAIRS * PAIR_CHARS), *at = code;
    assert_non_null(code);
    at += sprintf(at, "def forward(self, x):\n    a_0 = torch.relu(x)\n");
    for (int i = 1; i < 2 * PAIRS; i++)
        at += sprintf(at, "    a_%d = torch.relu(a_%d);  a_%d = None\n", i, i - 1, i - 1);
    sprintf(at, "    return a_%d\n", 2 * PAIRS - 1);
    tare_model *m = new_model(NULL, new_tree(), code);
    int64_t index = 2 * PAIRS + 1;
    for (node *n = m->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_FUNCTION) n->debug_handle = index-- / 2;
    tare_debug_comparison *c = NULL;
    tare_debug_row row;
    CHECK_DONE(tare_debug_comparison_create(m, m, NULL, &c, job_error()));
    assert_int_equal(tare_debug_comparison_row_count(c), PAIRS);
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++) {
        assert_int_equal(row.handle, PAIRS - (int64_t)i);
        assert_string_equal(row.node, row.reference_node);
    }
    tare_debug_comparison_destroy(c);
    tare_model_destroy(m);
    free(code);
}

static void equal_models_do_not_differ(void **state) {
    const fixture *f = *state;
    tare_debug_comparison *c = compared(f->program, f->program, f->batches, 1);
    tare_debug_row row;
    for (size_t i = 0; tare_debug_comparison_row(c, i, &row); i++) {
        assert_true(row.element_count > 0);
        assert_true(isinf(row.sqnr_db) && row.sqnr_db > 0);
    }
    assert_false(tare_debug_comparison_row(c, f->row_count, &row));
    tare_debug_comparison_destroy(c);
    tare_debug_comparison_destroy(NULL);
}

static tare_status compare_once(const fixture *f) {
    const tare_tensor *x = f->batches[0];
    tare_model *m = NULL;
    tare_debug_comparison *c = NULL;
    tare_status status = tare_model_read("tests/data/debugger/model.pt2", NULL, &m, job_error());
    if (status == TARE_OK) status = tare_debug_handles_generate(m, job_error());
    if (status == TARE_OK)
        status = tare_debug_comparison_create(m, f->converted, NULL, &c, job_error());
    if (status == TARE_OK) status = tare_debug_compare(c, &x, 1, NULL, NULL, job_error());
    if (status == TARE_OK) assert_int_equal(tare_debug_comparison_row_count(c), f->row_count);
    tare_debug_comparison_destroy(c);
    tare_model_destroy(m);
    return status;
}

static void any_allocation_may_fail(void **state) {
    bool was_denied = true;
    for (long request = 1; was_denied; request++) {
        tare_error_clear(job_error());
        tare__alloc_fail_at(request);
        const tare_status status = compare_once(*state);
        was_denied = tare__alloc_failed();
        tare__alloc_fail_at(0);
        if (status != TARE_OK && (status != TARE_OUT_OF_MEMORY || !was_denied))
            fail_msg("allocation %ld: %s", request, tare_status_name(status));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_a_program_are_those_of_torch),
        cmocka_unit_test(graphs_of_control_flow_are_numbered_breadth_first),
        cmocka_unit_test(handles_go_through_files),
        cmocka_unit_test(observers_and_conversions_have_what_they_watch),
        cmocka_unit_test(lowered_nodes_have_the_handle_of_the_last_operator),
        cmocka_unit_test(reference_representations_keep_handles),
        cmocka_unit_test(fx_passes_keep_handles),
        cmocka_unit_test(what_it_finds_is_what_torch_finds),
        cmocka_unit_test(sums_go_over_all_runs),
        cmocka_unit_test(a_planted_fault_is_the_worst_value),
        cmocka_unit_test(without_handles_origins_match),
        cmocka_unit_test(values_of_all_rounds_are_compared),
        cmocka_unit_test(ranges_are_those_of_the_reference),
        cmocka_unit_test(many_handles_are_matched),
        cmocka_unit_test(other_shapes_are_refused),
        cmocka_unit_test(equal_models_do_not_differ),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
