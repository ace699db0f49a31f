// SPDX-License-Identifier: Apache-2.0
// Recurrent modules give the references' bits, in floats and with products that
// quantize their input on the fly, for every level and number of threads.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "ir/module.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"

typedef struct recurrent_case {
    const char *class, *config;
    int gates, layers, directions;
    bool is_cell;
} recurrent_case;

enum { INNER = 24, HIDDEN = 37 };

static void put_weight(module *m, const char *kind, const char *suffix, int64_t rows,
                       int64_t columns) {
    char name[64];
    const int64_t shape[] = {rows, columns};
    (void)snprintf(name, sizeof name, "%s%s", kind, suffix);
    tare_tensor *t = new_input(columns > 0 ? 2 : 1, shape);
    for (int64_t i = 0; i < t->count; i++) tare__f32(t)[i] *= 0.4F;
    CHECK_DONE(tare__module_set_tensor(m, name, t, true, job_error()));
    tare_tensor_release(t);
}

static void put_weights(module *m, const recurrent_case *c) {
    for (int layer = 0; layer < c->layers; layer++)
        for (int d = 0; d < c->directions; d++) {
            char suffix[32] = "";
            const int64_t width = c->gates * HIDDEN;
            const int64_t inner = layer == 0 ? INNER : c->directions * HIDDEN;
            if (!c->is_cell)
                (void)snprintf(suffix, sizeof suffix, "_l%d%s", layer, d > 0 ? "_reverse" : "");
            put_weight(m, "weight_ih", suffix, width, inner);
            put_weight(m, "weight_hh", suffix, width, HIDDEN);
            put_weight(m, "bias_ih", suffix, width, 0);
            put_weight(m, "bias_hh", suffix, width, 0);
        }
}

static tare_model *float_model(const recurrent_case *c) {
    module *root = new_tree();
    module *m = put_module(root, NULL, "rnn", c->class, c->config);
    put_weights(m, c);
    return new_model(NULL, root,
                     c->is_cell ? "def forward(self, x):\n    rnn = self.rnn(x)\n    return rnn\n"
                                : "def forward(self, x):\n    rnn = self.rnn(x)\n"
                                  "    first = rnn[0]\n    return first\n");
}

static tare_model *dynamic_model(const tare_model *model, const char *class) {
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig *qconfig = NULL;
    CHECK_DONE(tare_qconfig_named("default_dynamic_qconfig", &qconfig, job_error()));
    tare_qconfig_mapping_set_object_type(mapping, class, qconfig);
    tare_model *p = prepared(model, backend, mapping), *l = lowered(p, backend);
    tare_qconfig_release(qconfig);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(p);
    return l;
}

static tare_tensor *run(const tare_model *m, const tare_tensor *x, bool reference, bool portable,
                        int threads) {
    const tare_session_options options = {
        .reference = reference, .thread_count = threads, .portable_floats = portable};
    tare_session *s = NULL;
    tare_tensor *y[2] = {0};
    size_t count = 0;
    CHECK_DONE(tare_session_create(m, &options, &s, job_error()));
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++) tare_tensor_release(y[k]);
        y[0] = y[1] = NULL;
        CHECK_DONE(tare_session_run(s, &x, 1, y, 2, &count, job_error()));
    }
    tare_session_destroy(s);
    tare_tensor_release(y[1]);
    return y[0];
}

static void check_levels(const tare_model *m, const tare_tensor *x) {
    tare_tensor *expected = run(m, x, true, true, 1);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++)
        for (int k = 0; k < 4; k++) {
            assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
            tare_tensor *found = run(m, x, false, k % 2 != 0, 1 + k / 2);
            check_same_tensor(found, expected);
            tare_tensor_release(found);
        }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
}

static const recurrent_case cases[] = {
    {"torch.nn.LSTM", "input_size=24, hidden_size=37", 4, 1, 1, false},
    {"torch.nn.LSTM",
     "input_size=24, hidden_size=37, num_layers=2, batch_first=True, bidirectional=True", 4, 2, 2,
     false},
    {"torch.nn.GRU", "input_size=24, hidden_size=37, bidirectional=True", 3, 1, 2, false},
    {"torch.nn.LSTMCell", "input_size=24, hidden_size=37", 4, 1, 1, true},
    {"torch.nn.GRUCell", "input_size=24, hidden_size=37", 3, 1, 1, true},
};

// Threads share the products of float modules of `samples`, if these are many.
static void check_cases(int64_t samples) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t sequence[] = {5, samples, INNER}, row[] = {samples, INNER};
        tare_tensor *x = cases[i].is_cell ? new_input(2, row) : new_input(3, sequence);
        tare_model *m = float_model(&cases[i]);
        check_levels(m, x);
        tare_model *d = dynamic_model(m, cases[i].class);
        CHECK_HOLDS(printed(d), "DynamicQuantized");
        check_levels(d, x);
        tare_model_destroy(d);
        tare_model_destroy(m);
        tare_tensor_release(x);
    }
}

static void modules_of_all_levels_give_the_references_bits(void **state) {
    (void)state;
    check_cases(3);
    check_cases(26);
}

static void a_failure_of_memory_leaves_nothing(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(3, 2, INNER);
    tare_model *m = float_model(&cases[0]), *d = dynamic_model(m, cases[0].class);
    const tare_tensor *inputs[] = {x};
    check_run_without_memory(m, NULL, inputs, 1);
    check_run_without_memory(d, NULL, inputs, 1);
    tare_model_destroy(d);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_of_all_levels_give_the_references_bits),
        cmocka_unit_test(a_failure_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
