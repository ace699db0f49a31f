// SPDX-License-Identifier: Apache-2.0
// Profiles: what the steps of a session's plan say of themselves, and when they are timed.
#include "support/test.h"

#include "core/memory/map.h"
#include "core/tensor/tensor.h"
#include "io/data/npz.h"
#include "support/models.h"
#include "tare/quantize.h"
#include "tare/session.h"

typedef struct digits {
    tare_model *real, *quantized;
    map images;
    tare_tensor *some;
} digits;

static tare_model *quantize(const digits *d) {
    tare_qconfig_mapping *mapping = NULL;
    tare_model *prepared = NULL, *quantized = NULL;
    const tare_tensor *images = tare__map_get(&d->images, "x");
    CHECK_OK(tare_qconfig_mapping_default("x86", false, -1, &mapping, NULL));
    const tare_prepare_options prepare = {.qconfig_mapping = mapping};
    CHECK_OK(tare_prepare_fx(d->real, &prepare, &prepared, NULL));
    CHECK_OK(tare_calibrate(prepared, &images, 1, NULL));
    const tare_convert_options convert = {.engine = tare_engine_from_name("x86")};
    CHECK_OK(tare_convert_fx(prepared, &convert, &quantized, NULL));
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
    return quantized;
}

static int set_up(void **state) {
    static digits d;
    const int64_t shape[] = {5, 1, 8, 8};
    CHECK_OK(tare_model_read("data/digits/digits.safetensors", NULL, &d.real, NULL));
    CHECK_OK(tare__npz_read("data/digits/test.npz", 0, &d.images, NULL));
    const tare_tensor *all = tare__map_get(&d.images, "x");
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 4, shape, tare_tensor_data(all), &d.some, NULL));
    d.quantized = quantize(&d);
    *state = &d;
    return 0;
}

static int tear_down(void **state) {
    digits *d = *state;
    tare_tensor_release(d->some);
    tare__tensor_map_release(&d->images);
    tare_model_destroy(d->real);
    tare_model_destroy(d->quantized);
    return 0;
}

static tare_session *session_of(const tare_model *model, bool reference) {
    tare_session *s = NULL;
    const tare_session_options options = {.reference = reference};
    CHECK_OK(tare_session_create(model, &options, &s, NULL));
    return s;
}

static void run_times(tare_session *s, const tare_tensor *x, int times) {
    for (int i = 0; i < times; i++) {
        tare_tensor *y[2] = {NULL};
        size_t count = 0;
        CHECK_OK(tare_session_run(s, &x, 1, y, 2, &count, NULL));
        for (size_t k = 0; k < count; k++) tare_tensor_release(y[k]);
    }
}

static int64_t all_macs(const tare_session *s) {
    int64_t macs = 0;
    tare_step step;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) macs += step.macs;
    return macs;
}

// How often a step computes this node; *out is the last such step.
static int count_steps(const tare_session *s, const char *name, tare_step *out) {
    int found = 0;
    tare_step step;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        for (size_t k = 0; k < step.node_count; k++) {
            if (strcmp(step.nodes[k], name) != 0) continue;
            *out = step;
            found++;
        }
    return found;
}

static void there_are_no_steps_before_the_first_run_and_in_references(void **state) {
    const digits *d = *state;
    tare_step step;
    tare_plan_memory memory;
    tare_session *s = session_of(d->real, false), *reference = session_of(d->real, true);
    run_times(reference, d->some, 1);
    assert_int_equal(tare_session_step_count(s), 0);
    assert_int_equal(tare_session_step_count(reference), 0);
    assert_false(tare_session_get_step(reference, 0, &step));
    assert_false(tare_session_get_memory(reference, &memory));
    tare_session_destroy(s);
    tare_session_destroy(reference);
}

static void steps_are_timed_while_profiling_is_on(void **state) {
    const digits *d = *state;
    tare_session *s = session_of(d->quantized, false);
    tare_step step;
    run_times(s, d->some, 1);
    assert_true(tare_session_get_step(s, 0, &step));
    assert_int_equal(step.run_count, 0);
    CHECK_OK(tare_session_profile(s, true, NULL));
    run_times(s, d->some, 3);
    const size_t count = tare_session_step_count(s);
    assert_true(count > 3);
    for (size_t i = 0; i < count; i++) {
        assert_true(tare_session_get_step(s, i, &step));
        assert_int_equal(step.run_count, 3);
        assert_true(step.lower_ns <= step.median_ns && step.median_ns <= step.upper_ns);
        assert_true(step.upper_ns > 0);
    }
    assert_false(tare_session_get_step(s, count, &step));
    CHECK_OK(tare_session_profile(s, false, NULL));
    run_times(s, d->some, 1);
    assert_true(tare_session_get_step(s, 0, &step));
    assert_int_equal(step.run_count, 0);
    tare_session_destroy(s);
}

// The plans that are made while profiling is on are timed, too.
static void later_plans_are_timed(void **state) {
    const digits *d = *state;
    const int64_t shape[] = {2, 1, 8, 8};
    tare_session *s = session_of(d->quantized, false);
    tare_tensor *two = NULL;
    tare_step step;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 4, shape, tare_tensor_data(d->some), &two, NULL));
    CHECK_OK(tare_session_profile(s, true, NULL));
    run_times(s, d->some, 1);
    run_times(s, two, 200);
    assert_true(tare_session_get_step(s, 0, &step));
    assert_int_equal(step.run_count, 200);
    assert_int_equal(step.input_shape[0], 2);
    tare_tensor_release(two);
    tare_session_destroy(s);
}

// Of floats the operators' rows count, of quantized values the packed layers.
static void integers_multiply_as_often_as_floats(void **state) {
    const digits *d = *state;
    tare_session *real = session_of(d->real, false), *quantized = session_of(d->quantized, false);
    run_times(real, d->some, 1);
    run_times(quantized, d->some, 1);
    assert_true(all_macs(real) > 10000000);
    assert_int_equal(all_macs(real), all_macs(quantized));
    tare_session_destroy(real);
    tare_session_destroy(quantized);
}

static void a_layer_says_what_computes_it_and_why(void **state) {
    const digits *d = *state;
    tare_session *real = session_of(d->real, false), *quantized = session_of(d->quantized, false);
    tare_step step;
    run_times(real, d->some, 1);
    run_times(quantized, d->some, 1);
    assert_int_equal(count_steps(quantized, "conv1", &step), 1);
    assert_string_equal(step.kind, "quantized layer");
    assert_string_equal(step.node, "conv1");
    assert_non_null(strstr(step.kernel, "qu8_product__"));
    assert_non_null(strstr(step.why, "integers: product"));
    assert_false(step.bits_may_differ);
    assert_int_equal(step.input_ndim, 4);
    assert_int_equal(step.input_bytes, 5 * 8 * 8);
    assert_int_equal(step.output_bytes, step.output_shape[1] * 5 * 8 * 8);
    assert_true(step.weight_bytes >= step.output_shape[1] * 9);
    assert_int_equal(count_steps(real, "conv1", &step), 1);
    assert_string_equal(step.op, "conv2d");
    assert_int_equal(step.input_bytes, 5 * 8 * 8 * 4);
    assert_int_equal(step.bits_may_differ, strcmp(step.kind, "layer") == 0);
    tare_session_destroy(real);
    tare_session_destroy(quantized);
}

// Of a graph over weights of 2 x 2: "conv2d of a module that pads", and the like.
static tare_model *in_calls(const char *expression) {
    char code[512];
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=2, out_channels=2, kernel_size=(2, 2), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, padding_mode='replicate'");
    put_module(root, NULL, "act", "torch.nn.Softshrink", "lambd=0.5");
    put_module(root, NULL, "input", "torch.nn.Linear", "in_features=4, out_features=6");
    put_module(root, NULL, "hidden", "torch.nn.Linear", "in_features=2, out_features=6");
    snprintf(
        code, sizeof code,
        "def forward(self, x):\n    w = self.conv.weight\n    m = x.view(2, 4)\n"
        "    t = m.t()\n    v = m.mean(1)\n    s = x.view(1, 2, 4)\n"
        "    h = torch.zeros(1, 1, 2)\n    wi = self.input.weight\n    wh = self.hidden.weight\n"
        "    bi = self.input.bias\n    bh = self.hidden.bias\n    y = %s\n    return y\n",
        expression);
    return new_model(NULL, root, code);
}

static bool is_told_to_differ(const char *expression) {
    tare_model *model = in_calls(expression);
    tare_tensor *x = NEW_INPUT(1, 2, 2, 2);
    tare_session *s = session_of(model, false);
    tare_step step = {.struct_size = sizeof step};
    bool told = false;
    run_times(s, x, 1);
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) told = told || step.bits_may_differ;
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
    return told;
}

static void a_call_says_whether_a_library_multiplies_in_it(void **state) {
    static const char *const multiply[] = {
        "self.conv(x)", "torch.convolution(x, w, None, 1, 1, 1, False, 0, 1)",
        "torch.gru(s, h, [wi, wh, bi, bh], True, 1, 0.0, False, False, True)"};
    (void)state;
    if (strstr(tare_build_features(), "no oneDNN") != NULL) skip();
    for (size_t i = 0; i < sizeof multiply / sizeof *multiply; i++)
        if (!is_told_to_differ(multiply[i])) fail_msg("%s is not told", multiply[i]);
    assert_false(is_told_to_differ("self.act(x)"));
    assert_false(is_told_to_differ("torch.addmm(v, m, t)")); // a small product
    assert_false(is_told_to_differ("torch.cumsum(x, 1)"));
}

static void the_memory_holds_every_place(void **state) {
    const digits *d = *state;
    tare_session *s = session_of(d->quantized, false);
    tare_plan_memory memory;
    tare_plan_place buffer;
    size_t buffers = 0;
    int64_t end = 0;
    run_times(s, d->some, 1);
    assert_true(tare_session_get_memory(s, &memory));
    for (; tare_session_get_place(s, buffers, &buffer); buffers++) {
        assert_true(buffer.first_step <= buffer.last_step);
        assert_true(buffer.last_step < tare_session_step_count(s));
        if (buffer.offset + buffer.bytes > end) end = buffer.offset + buffer.bytes;
    }
    assert_true(buffers > 3);
    assert_int_equal(end, memory.block_bytes);
    assert_true(memory.least_bytes > 0 && memory.least_bytes <= memory.block_bytes);
    assert_true(memory.weight_bytes > 100000); // the network's parameters
    tare_session_destroy(s);
}

static tare_status profiled_job(const digits *d) {
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    const tare_tensor *x = d->some;
    size_t count = 0;
    TARE_TRY(tare_session_create(d->quantized, NULL, &s, NULL));
    tare_status status = tare_session_run(s, &x, 1, &y, 1, &count, NULL);
    if (status == TARE_OK) {
        tare_tensor_release(y);
        status = tare_session_profile(s, true, NULL);
    }
    if (status == TARE_OK) status = tare_session_run(s, &x, 1, &y, 1, &count, NULL);
    if (status == TARE_OK) tare_tensor_release(y);
    tare_session_destroy(s);
    return status;
}

// --- graphs inside ---

static void put_graph(module *root, const char *name, module *inner, const char *code) {
    tare_model *model = new_model(NULL, inner, code);
    CHECK_DONE(tare__module_set_child(root, name, model->root, job_error()));
    tare_model_destroy(model);
}

// A map whose rows are summed, and multiplied by a map of their elements.
static tare_model *nested_maps(void) {
    module *root = new_tree(), *body = new_tree();
    put_graph(body, "inner", new_tree(), "def forward(self, x):\n    m = x * x\n    return (m,)\n");
    put_graph(root, "body", body,
              "def forward(self, x):\n    inner = self.inner\n"
              "    r = torch.ops.higher_order.map_impl(inner, [x], [])\n    i = r[0]\n"
              "    s = i + x\n    t = torch.tanh(s)\n    return (t,)\n");
    return new_model(NULL, root,
                     "def forward(self, x):\n    body = self.body\n"
                     "    r = torch.ops.higher_order.map_impl(body, [x], [])\n    i = r[0]\n"
                     "    return i\n");
}

static size_t count_nested(const tare_session *s, const char *path, const char *wanted,
                           size_t run_count) {
    tare_step step = {.struct_size = sizeof step};
    const char *found = NULL;
    size_t count = 0;
    for (size_t i = 0; tare_session_get_nested_step(s, i, &step, &found); i++) {
        bool computes = false;
        for (size_t k = 0; k < step.node_count; k++) computes |= strcmp(step.nodes[k], wanted) == 0;
        if (!computes || strcmp(found, path) != 0) continue;
        assert_int_equal(step.run_count, run_count);
        assert_true(step.lower_ns <= step.median_ns && step.median_ns <= step.upper_ns);
        count++;
    }
    return count;
}

static void run_mapped(tare_session *s, const tare_tensor *x) {
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_OK(tare_session_run(s, &x, 1, &y, 1, &count, NULL));
    tare_tensor_release(y);
}

static void steps_of_graphs_inside_are_told(void **state) {
    (void)state;
    enum { ROUNDS = 3, INNER = 4 };
    tare_model *m = nested_maps();
    tare_session *s = session_of(m, false);
    tare_tensor *x = NEW_INPUT(ROUNDS, INNER, 5);
    CHECK_OK(tare_session_profile(s, true, NULL));
    assert_int_equal(count_nested(s, "body", "s", 0), 0);
    for (size_t runs = 1; runs <= 2; runs++) {
        run_mapped(s, x);
        assert_int_equal(count_nested(s, "body/inner", "m", runs * ROUNDS * INNER), 1);
    }
    CHECK_OK(tare_session_profile(s, false, NULL));
    run_mapped(s, x);
    assert_int_equal(count_nested(s, "body/inner", "m", 0), 1);
    tare_tensor_release(x);
    tare_session_destroy(s);
    tare_model_destroy(m);
}

static void profiles_survive_every_failed_allocation(void **state) {
    tare_status status;
    EVERY_ALLOCATION_FAILS(status, status = profiled_job(*state), (void)0)
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_no_steps_before_the_first_run_and_in_references),
        cmocka_unit_test(steps_are_timed_while_profiling_is_on),
        cmocka_unit_test(later_plans_are_timed),
        cmocka_unit_test(integers_multiply_as_often_as_floats),
        cmocka_unit_test(a_layer_says_what_computes_it_and_why),
        cmocka_unit_test(a_call_says_whether_a_library_multiplies_in_it),
        cmocka_unit_test(the_memory_holds_every_place),
        cmocka_unit_test(steps_of_graphs_inside_are_told),
        cmocka_unit_test(profiles_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
