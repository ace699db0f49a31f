// SPDX-License-Identifier: Apache-2.0
// Never slower: the cheapest choice among all, and models that are what was chosen. What takes how
// long is up to the machine; what follows from it is not.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "golden/networks.h"
#include "model/coverage.h"
#include "runtime/tune/layer_costs.h"
#include "support/models.h"
#include "tare/never_slower.h"

// Two branches of layers that meet, with a view and a second reader of one value.
static tare_model *branches(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Conv2d", "in_channels=3, out_channels=4, kernel_size=1");
    put_module(root, NULL, "b", "torch.nn.Conv2d",
               "in_channels=4, out_channels=4, kernel_size=3, padding=1");
    put_module(root, NULL, "c", "torch.nn.Conv2d", "in_channels=4, out_channels=4, kernel_size=1");
    put_module(root, NULL, "d", "torch.nn.Linear", "in_features=256, out_features=5");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    a = self.a(x);  x = None\n"
                     "    relu = torch.nn.functional.relu(a, inplace = False);  a = None\n"
                     "    b = self.b(relu)\n"
                     "    c = self.c(relu);  relu = None\n"
                     "    add = b + c;  b = c = None\n"
                     "    flatten = torch.flatten(add, 1);  add = None\n"
                     "    d = self.d(flatten);  flatten = None\n"
                     "    return d\n");
}

// Its relu is fused into a.
enum { LAYERS = 6 };
static const char *const all[LAYERS] = {"a", "b", "c", "add", "flatten", "d"};

typedef struct flow {
    tare_model *model, *prepared;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_tensor *x;
} flow;

static int set_up(void **state) {
    static flow f;
    f.model = branches();
    f.backend = builtin_backend("x86");
    f.mapping = default_mapping("x86");
    f.prepared = prepared(f.model, f.backend, f.mapping);
    f.x = NEW_INPUT(2, 3, 8, 8);
    const tare_tensor *x = f.x;
    CHECK_DONE(tare_calibrate(f.prepared, &x, 1, job_error()));
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    flow *f = *state;
    tare_tensor_release(f->x);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->model);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_backend_config_destroy(f->backend);
    return 0;
}

static tare_model *without(const flow *f, const char *const *names, size_t count) {
    tare_float_choice choices[8] = {{0}};
    tare_model *out = NULL;
    for (size_t i = 0; i < count; i++)
        choices[i] = (tare_float_choice){names[i], "a rule", "a reason"};
    const tare_convert_options options = {.struct_size = sizeof options,
                                          .backend = f->backend,
                                          .float_choices = choices,
                                          .float_choice_count = count};
    CHECK_DONE(tare_convert_fx(f->prepared, &options, &out, job_error()));
    return out;
}

// --- models with layers left float ---

static void a_layer_left_float_says_why(void **state) {
    static const char *const names[] = {"b"};
    tare_model *m = without(*state, names, 1);
    assert_false(tare__traced_op(m, "b")->is_quantized);
    assert_true(tare__traced_op(m, "c")->is_quantized);
    assert_string_equal(decided(m, "b"), "convert: left float: a reason [a rule]");
    CHECK_HOLDS(printed(m), "Conv2d(4, 4");
    CHECK_HOLDS(printed(m), "QuantizedConv2d(4, 4");
    tare_model_destroy(m);
}

static void nothing_is_converted_between_layers_left_float(void **state) {
    const flow *f = *state;
    tare_model *m = without(f, all, LAYERS);
    CHECK_LACKS(printed(m), "quantize");
    const tare_tensor *x = f->x;
    tare_tensor *expected = result_of(f->model, &x, 1), *found = result_of(m, &x, 1);
    check_same_tensor(expected, found);
    tare_tensor_release(found);
    tare_tensor_release(expected);
    tare_model_destroy(m);
}

// The same of a program: a quantizer annotates what a backend config matches.
static void programs_have_layers_left_float(void **state) {
    static const char *const names[] = {"conv2d_1", "relu__1"};
    tare_model *program = NULL, *c = NULL, *q = NULL;
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    tare_float_choice choices[2];
    bool done = false;
    (void)state;
    CHECK_DONE(tare_model_read("tests/data/small_resnet18/model.pt2", NULL, &program, job_error()));
    CHECK_DONE(
        tare_data_open("tests/data/small_resnet18/input.npz", program, NULL, &data, job_error()));
    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    tare_model *p = prepare_program(program, "XNNPACKQuantizer", "", false);
    CHECK_DONE(tare_calibrate(p, batch.inputs, batch.input_count, job_error()));
    for (size_t i = 0; i < 2; i++) choices[i] = (tare_float_choice){names[i], "a rule", "a reason"};
    tare_convert_pt2e_options options = {
        .struct_size = sizeof options, .float_choices = choices, .float_choice_count = 2};
    CHECK_DONE(tare_convert_pt2e(p, &options, &c, job_error()));
    CHECK_DONE(tare_lower_pt2e(c, NULL, &q, job_error()));
    assert_false(tare__traced_op(q, "conv2d_1")->is_quantized);
    assert_true(tare__traced_op(q, "conv2d_2")->is_quantized);
    CHECK_HOLDS(explained(q, "conv2d_1"), "left float: a reason");
    tare_tensor *expected = result_of(c, batch.inputs, 1), *found = result_of(q, batch.inputs, 1);
    assert_true(expected->count == found->count);
    tare_tensor_release(expected);
    tare_tensor_release(found);
    tare_model_destroy(q);
    tare_model_destroy(c);
    c = NULL;
    choices[0].node = "nobody";
    CHECK_REFUSED(tare_convert_pt2e(p, &options, &c, job_error()), TARE_NOT_FOUND, "nobody");
    choices[0].node = "relu__1";
    CHECK_REFUSED(tare_convert_pt2e(p, &options, &c, job_error()), TARE_INVALID_ARGUMENT,
                  "stays float anyway");
    tare_data_close(data);
    tare_model_destroy(p);
    tare_model_destroy(program);
}

static void choices_without_effect_are_refused(void **state) {
    const flow *f = *state;
    const tare_float_choice unknown = {.node = "nobody"};
    const tare_float_choice twice[] = {{.node = "b"}, {.node = "b"}};
    tare_convert_options options = {.struct_size = sizeof options,
                                    .backend = f->backend,
                                    .float_choices = &unknown,
                                    .float_choice_count = 1};
    tare_model *m = NULL;
    CHECK_REFUSED(tare_convert_fx(f->prepared, &options, &m, job_error()), TARE_NOT_FOUND,
                  "nobody");
    options.float_choices = twice;
    options.float_choice_count = 2;
    CHECK_REFUSED(tare_convert_fx(f->prepared, &options, &m, job_error()), TARE_INVALID_ARGUMENT,
                  "stays float anyway");
    assert_null(m);
}

// --- the cheapest choice ---

static size_t layer_of(const layer_costs *c, const node *n) {
    return n->origin != NULL && tare__node_is_call(n) ? tare__layer_of(c, n->origin) : SIZE_MAX;
}

static bool is_int(const layer_costs *c, const bool *chosen, const node *n) {
    const size_t layer = layer_of(c, n);
    return layer != SIZE_MAX && chosen[layer];
}

static bool is_layer(const layer_costs *c, size_t i) {
    return c->parent[i] == i;
}

// What a choice costs, by the words of the header.
static double cost_of(const layer_costs *c, const bool *chosen) {
    double cost = 0;
    for (size_t i = 0; i < c->count; i++)
        if (is_layer(c, i)) cost += (double)(chosen[i] ? c->items[i].int_ns : c->items[i].float_ns);
    for (const node *n = c->floats->root->graph->first; n != NULL; n = n->next) {
        const bool gives = is_int(c, chosen, n);
        bool differs = false;
        for (size_t i = 0; i < n->user_count; i++)
            differs = differs || is_int(c, chosen, n->users[i]) != gives;
        if (differs && c->elements[n->id] > 0)
            cost += 300 + (gives ? c->dequantize_ns : c->quantize_ns) * (double)c->elements[n->id];
    }
    return cost;
}

static double least_cost(const layer_costs *c) {
    size_t layers[16], count = 0;
    double least = 1e300;
    for (size_t i = 0; i < c->count; i++)
        if (is_layer(c, i)) layers[count++] = i;
    for (size_t bits = 0; bits < (size_t)1 << count; bits++) {
        bool chosen[16] = {false};
        for (size_t i = 0; i < count; i++) chosen[layers[i]] = (bits >> i & 1) != 0;
        const double cost = cost_of(c, chosen);
        if (cost < least) least = cost;
    }
    return least;
}

static uint32_t next_random(uint32_t *state) {
    return *state = *state * 1664525u + 1013904223u;
}

static void draw_costs(layer_costs *c, uint32_t *random) {
    for (size_t i = 0; i < c->count; i++) {
        layer_cost *layer = &c->items[i];
        *layer = (layer_cost){.may_be_int = true,
                              .int_ns = next_random(random) % 2000000,
                              .float_ns = next_random(random) % 2000000};
    }
    c->quantize_ns = (double)(next_random(random) % 1000);
    c->dequantize_ns = (double)(next_random(random) % 1000);
}

static void no_choice_is_cheaper(void **state) {
    const flow *f = *state;
    tare_model *floats = without(f, all, LAYERS);
    const tare_tensor *x = f->x;
    const race_setting setting = {.inputs = &x, .input_count = 1};
    layer_costs c;
    uint32_t random = 5;
    CHECK_DONE(tare__layer_costs_begin(&c, floats, &setting, job_error()));
    assert_in_range(c.count, 5, 16);
    for (int i = 0; i < 100; i++) {
        bool chosen[16] = {false};
        size_t int_count = 0;
        draw_costs(&c, &random);
        CHECK_DONE(tare__layer_costs_choose(&c, job_error()));
        for (size_t k = 0; k < c.count; k++) {
            chosen[k] = !c.items[k].stays_float;
            int_count += chosen[k];
        }
        const double found = cost_of(&c, chosen), least = least_cost(&c);
        // Integers carry a handicap of 2 % and 200 ns.
        if (!(found <= least * 1.021 + 200 * (double)c.count))
            fail_msg("choice %d costs %g, where %g is possible (%zu in integers)", i, found, least,
                     int_count);
    }
    tare__layer_costs_release(&c);
    tare_model_destroy(floats);
}

static void boundaries_tell_what_a_change_would_cost(void **state) {
    tare_model *floats = without(*state, all, LAYERS);
    const tare_tensor *x = ((const flow *)*state)->x;
    const race_setting setting = {.inputs = &x, .input_count = 1};
    layer_costs c;
    uint32_t random = 9;
    CHECK_DONE(tare__layer_costs_begin(&c, floats, &setting, job_error()));
    draw_costs(&c, &random);
    CHECK_DONE(tare__layer_costs_choose(&c, job_error()));
    tare__layer_costs_note_boundaries(&c);
    for (size_t i = 0; i < c.count; i++) {
        bool chosen[16];
        if (!is_layer(&c, i)) continue;
        const layer_cost *layer = &c.items[i];
        for (size_t k = 0; k < c.count; k++) chosen[k] = !c.items[k].stays_float;
        const double before = cost_of(&c, chosen);
        chosen[i] = !chosen[i];
        const double change = cost_of(&c, chosen) - before;
        const double own = (double)(layer->stays_float ? layer->int_ns - layer->float_ns
                                                       : layer->float_ns - layer->int_ns);
        const double told = own + (double)(layer->other_ns - layer->boundary_ns);
        assert_true(change - told < 20 && told - change < 20);
    }
    tare__layer_costs_release(&c);
    tare_model_destroy(floats);
}

// --- the whole job ---

static tare_status make(const flow *f, tare_never_slower_result *result, tare_model **out) {
    const tare_tensor *x = f->x;
    const tare_convert_options convert = {.struct_size = sizeof convert, .backend = f->backend};
    const tare_never_slower_options options = {
        .struct_size = sizeof options, .inputs = &x, .input_count = 1, .seconds = 1e-3};
    *out = NULL;
    return tare_convert_never_slower_fx(f->prepared, &convert, &options, result, out, job_error());
}

static void the_model_is_what_was_chosen(void **state) {
    const flow *f = *state;
    const char *left[8];
    size_t count = 0;
    tare_never_slower_result result;
    tare_model *m = NULL;
    CHECK_DONE(make(f, &result, &m));
    for (size_t i = 0; i < LAYERS; i++) {
        const char *words = decided(m, all[i]);
        if (strstr(words, "left float") != NULL) left[count++] = all[i];
        if (strstr(words, "left float") == NULL && tare__traced_op(m, all[i])->is_quantized)
            CHECK_HOLDS(explained(m, all[i]), "measure: measured: ");
    }
    assert_true(result.layer_count > 0 && result.float_ns > 0);
    assert_true(result.chosen_ns <= result.integer_ns);
    assert_int_equal(result.float_count > 0, count > 0);
    tare_model *expected = without(f, left, count);
    const tare_tensor *x = f->x;
    tare_tensor *a = result_of(expected, &x, 1), *b = result_of(m, &x, 1);
    check_same_tensor(a, b);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_model_destroy(expected);
    tare_model_destroy(m);
}

// --- predicted times ---

static const tare_machine_peak usual = {.int8_gops = 400, .float_gflops = 100, .l2_gbs = 100},
                               slow_integers = {
                                   .int8_gops = 1e-3, .float_gflops = 1e3, .l2_gbs = 100};

static tare_status predict(const flow *f, const tare_machine_peak *machine,
                           tare_never_slower_result *result, tare_model **out) {
    const tare_tensor *x = f->x;
    const tare_convert_options convert = {.struct_size = sizeof convert, .backend = f->backend};
    const tare_never_slower_options options = {.struct_size = sizeof options,
                                               .inputs = &x,
                                               .input_count = 1,
                                               .predicts = true,
                                               .machine = machine};
    *out = NULL;
    return tare_convert_never_slower_fx(f->prepared, &convert, &options, result, out, job_error());
}

static char *record_of(const tare_model *m) {
    char *copy = strdup(printed(m)); // the next call has the same memory
    assert_non_null(copy);
    return copy;
}

static void the_same_peaks_give_the_same_model(void **state) {
    tare_never_slower_result first, second;
    tare_model *a = NULL, *b = NULL;
    CHECK_DONE(predict(*state, &usual, &first, &a));
    CHECK_DONE(predict(*state, &usual, &second, &b));
    char *expected = record_of(a);
    assert_string_equal(printed(b), expected);
    assert_true(first.layer_count > 0 && first.integer_ns > 0 && first.float_ns > 0);
    assert_true(first.layer_count == second.layer_count && first.float_count == second.float_count);
    assert_true(first.kept_count == second.kept_count && first.float_ns == second.float_ns);
    assert_true(first.integer_ns == second.integer_ns && first.chosen_ns == second.chosen_ns);
    assert_int_equal(tare_model_decision_count(a), tare_model_decision_count(b));
    free(expected);
    tare_model_destroy(a);
    tare_model_destroy(b);
}

static void slow_integers_stay_float_and_say_why(void **state) {
    tare_never_slower_result result;
    tare_model *m = NULL;
    CHECK_DONE(predict(*state, &slow_integers, &result, &m));
    assert_true(result.float_count > 0 && result.chosen_ns < result.integer_ns);
    assert_false(tare__traced_op(m, "b")->is_quantized);
    const char *words = explained(m, "b");
    CHECK_HOLDS(words, "left float: predicted ");
    CHECK_HOLDS(words, " us in integers, ");
    CHECK_HOLDS(words, "0 GOPS of int8, 1000 GFLOPS, 100 GB/s) [cost model]");
    tare_model_destroy(m);
}

// Nothing is recorded of what is predicted to pay, so that the model is the same as without.
static void what_pays_is_converted_as_ever(void **state) {
    const tare_machine_peak fast = {.int8_gops = 1e6, .float_gflops = 1, .l2_gbs = 1e4};
    tare_never_slower_result result;
    tare_model *m = NULL, *plain = without(*state, NULL, 0);
    CHECK_DONE(predict(*state, &fast, &result, &m));
    assert_int_equal(result.float_count, 0);
    assert_int_equal(tare_model_decision_count(m), tare_model_decision_count(plain));
    char *expected = record_of(plain);
    assert_string_equal(printed(m), expected);
    free(expected);
    tare_model_destroy(plain);
    tare_model_destroy(m);
}

// Of a model that has no integers there is nothing to predict.
static void what_cannot_be_predicted_is_converted_as_ever(void **state) {
    const flow *f = *state;
    tare_qconfig_mapping *none = tare_qconfig_mapping_create();
    const tare_prepare_options options = {.qconfig_mapping = none};
    tare_model *p = NULL, *m = NULL;
    tare_never_slower_result result;
    CHECK_DONE(tare_prepare_fx(f->model, &options, &p, job_error()));
    const tare_tensor *x = f->x;
    const tare_never_slower_options on_x = {
        .inputs = &x, .input_count = 1, .predicts = true, .machine = &usual};
    CHECK_DONE(tare_convert_never_slower_fx(p, NULL, &on_x, &result, &m, job_error()));
    assert_int_equal(result.layer_count, 0);
    assert_int_equal(tare_error_status(job_error()), TARE_OK);
    tare_tensor *expected = result_of(f->model, &x, 1), *found = result_of(m, &x, 1);
    check_same_tensor(expected, found);
    tare_tensor_release(found);
    tare_tensor_release(expected);
    tare_model_destroy(m);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(none);
}

static void peaks_of_nothing_are_refused(void **state) {
    const tare_machine_peak none = {.int8_gops = 400, .float_gflops = 0, .l2_gbs = 100};
    tare_model *m = NULL;
    CHECK_REFUSED(predict(*state, &none, NULL, &m), TARE_INVALID_ARGUMENT,
                  "peaks of the machine from");
    assert_null(m);
}

static void the_machine_is_measured_if_nothing_is_given(void **state) {
    tare_never_slower_result result;
    tare_model *m = NULL;
    CHECK_DONE(predict(*state, NULL, &result, &m));
    assert_true(result.float_ns > 0);
    tare_model_destroy(m);
}

static void memory_may_be_short_while_predicting(void **state) {
    tare_model *m = NULL;
    tare_status status;
    SOME_ALLOCATIONS_FAIL(53, status, status = predict(*state, &usual, NULL, &m),
                          tare_model_destroy(m));
}

static void memory_may_be_short(void **state) {
    tare_model *m = NULL;
    tare_status status;
    SOME_ALLOCATIONS_FAIL(53, status, status = make(*state, NULL, &m), tare_model_destroy(m));
}

static void what_cannot_be_timed_is_refused(void **state) {
    const flow *f = *state;
    tare_model *m = NULL;
    CHECK_REFUSED(tare_convert_never_slower_fx(f->model, NULL, NULL, NULL, &m, job_error()),
                  TARE_INVALID_ARGUMENT, "prepared");
    tare_qconfig_mapping *none = tare_qconfig_mapping_create();
    const tare_prepare_options options = {.qconfig_mapping = none};
    tare_model *p = NULL;
    CHECK_DONE(tare_prepare_fx(f->model, &options, &p, job_error()));
    const tare_tensor *x = f->x;
    const tare_never_slower_options on_x = {.inputs = &x, .input_count = 1};
    CHECK_REFUSED(tare_convert_never_slower_fx(p, NULL, &on_x, NULL, &m, job_error()),
                  TARE_INVALID_ARGUMENT, "nothing to time");
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_left_float_says_why),
        cmocka_unit_test(nothing_is_converted_between_layers_left_float),
        cmocka_unit_test(programs_have_layers_left_float),
        cmocka_unit_test(choices_without_effect_are_refused),
        cmocka_unit_test(no_choice_is_cheaper),
        cmocka_unit_test(boundaries_tell_what_a_change_would_cost),
        cmocka_unit_test(the_model_is_what_was_chosen),
        cmocka_unit_test(what_cannot_be_timed_is_refused),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(the_same_peaks_give_the_same_model),
        cmocka_unit_test(slow_integers_stay_float_and_say_why),
        cmocka_unit_test(what_pays_is_converted_as_ever),
        cmocka_unit_test(what_cannot_be_predicted_is_converted_as_ever),
        cmocka_unit_test(peaks_of_nothing_are_refused),
        cmocka_unit_test(the_machine_is_measured_if_nothing_is_given),
        cmocka_unit_test(memory_may_be_short_while_predicting),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
