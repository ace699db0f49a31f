// SPDX-License-Identifier: Apache-2.0
// Graphs without a plan: their calls run by plans of their own, with the references' bits, whatever
// shapes and parameters come in turn.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "ops/op.h"
#include "runtime/kernels/isa.h"
#include "runtime/plan/call_plan.h"
#include "support/models.h"
#include "support/plan_checks.h"

static void put_gates(module *rnn) {
    static const struct {
        const char *name;
        int64_t columns; // 0: a bias
    } tensors[] = {{"weight_ih_l0", 18}, {"weight_hh_l0", 7}, {"bias_ih_l0", 0}, {"bias_hh_l0", 0}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int64_t shape[] = {28, tensors[i].columns};
        tare_tensor *t = new_input(shape[1] > 0 ? 2 : 1, shape);
        CHECK_DONE(tare__module_set_tensor(rnn, tensors[i].name, t, true, job_error()));
        tare_tensor_release(t);
    }
}

// The parameters of d depend on the data, and so would those of a plan of the whole.
static tare_model *without_plan(void) {
    module *root = new_tree();
    const char *const weights[] = {"w", "b"};
    for (size_t i = 0; i < 2; i++) {
        tare_tensor *t = NEW_INPUT(18);
        CHECK_DONE(tare__module_set_tensor(root, weights[i], t, true, job_error()));
        tare_tensor_release(t);
    }
    module *rnn = put_module(root, NULL, "rnn", "torch.nn.LSTM", "input_size=18, hidden_size=7");
    put_gates(rnn);
    return new_model(
        NULL, root,
        "def forward(self, x):\n"
        "    w = self.w\n"
        "    b = self.b\n"
        "    q = torch.quantize_per_tensor(x, 0.01, 120, torch.quint8)\n"
        "    pool = torch.nn.functional.max_pool2d(q, 3, 2, 1)\n"
        "    relu = torch.nn.functional.relu(q)\n"
        "    mean = torch.nn.functional.adaptive_avg_pool2d(relu, (1, 18))\n"
        "    sum_1 = torch.ops.quantized.add(relu, mean, 0.02, 100)\n"
        "    product = torch.ops.quantized.mul(sum_1, q, 0.02, 100)\n"
        "    norm = torch.ops.quantized.layer_norm(product, [18], w, b, 1e-05, 0.02, 120)\n"
        "    soft = torch.ops.quantized.softmax(norm, -1, 0.00390625, 0)\n"
        "    d = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)\n"
        "    act = torch.nn.functional.relu(d)\n"
        "    real = soft.dequantize()\n"
        "    other = act.dequantize()\n"
        "    last = pool.dequantize()\n"
        "    row = torch.flatten(real, 0, 1)\n"
        "    rnn = self.rnn(row)\n"
        "    hidden = rnn[0]\n"
        "    return (other, last, hidden)\n");
}

static void check_same_runs(tare_session *s, tare_session *reference, const tare_tensor *x) {
    run_outputs expected = outputs_of(reference, &x, 1);
    assert_int_equal(expected.count, 3);
    check_same_outputs(s, x, &expected);
    release_outputs(&expected);
}

static void changing_shapes_give_the_references_bits(void **state) {
    (void)state;
    tare_model *m = without_plan();
    tare_session *reference = session_with(m, &portable_reference);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        const tare_session_options options = {.thread_count = 1 + isa % 2, .portable_floats = true};
        tare_session *s = session_with(m, &options);
        for (int round = 0; round < 2; round++)
            for (int64_t n = 1; n <= 6; n++) { // more than are kept
                tare_tensor *x = NEW_INPUT(n, 3, 11, 18);
                check_same_runs(s, reference, x);
                tare_tensor_release(x);
            }
        assert_int_equal(count_steps(s, NULL, NULL), 0);
        tare_session_destroy(s);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_session_destroy(reference);
    tare_model_destroy(m);
}

static void lost_memory_is_told(void **state) {
    (void)state;
    tare_model *m = without_plan();
    tare_tensor *x = NEW_INPUT(1, 3, 11, 18);
    const tare_tensor *const inputs[] = {x};
    check_run_without_memory(m, &(tare_session_options){.portable_floats = true}, inputs, 1);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

typedef struct call_case {
    arena memory;
    value args[2];
    op_call call;
    node n;
} call_case;

static void begin_call(call_case *c, const char *op, tare_tensor *x) {
    *c = (call_case){.args = {{.kind = VALUE_TENSOR, .as.tensor = x}}};
    c->call = (op_call){.op = tare__op_by_id(op, 0),
                        .node_name = "y",
                        .args = c->args,
                        .arg_count = 1,
                        .memory = &c->memory,
                        .err = job_error()};
    c->n = (node){.op = NODE_CALL_FUNCTION, .name = "y", .args = c->args, .arg_count = 1};
    CHECK_DONE(tare__call_bind(&c->call, c->call.op));
    CHECK_DONE(tare__op_shape(&c->call));
    CHECK_DONE(tare__call_allocate(&c->call));
}

static void end_call(call_case *c) {
    tare__value_release_tensors(&c->call.result);
    tare__arena_release(&c->memory);
}

typedef struct fixture {
    interpreter it;
    kernel_context kernels;
    plan_setting setting;
    call_plans plans;
    scratch block;
} fixture;

static void begin(fixture *f) {
    *f = (fixture){.it = {.thread_count = 1},
                   .kernels = {.elementwise = tare__elementwise_choose(ISA_SCALAR),
                               .rows = tare__row_kernels_choose(ISA_SCALAR)}};
    f->setting = (plan_setting){.it = &f->it, .kernels = &f->kernels};
}

static void end(fixture *f) {
    tare__call_plans_destroy(&f->plans);
    tare__scratch_release(&f->block);
}

static bool run(fixture *f, call_case *c) {
    bool handled = false;
    CHECK_DONE(tare__call_plans_run(&f->plans, &f->setting, &f->block, &c->n, &c->call, &handled));
    return handled;
}

static bool run_relu(fixture *f, int64_t count, double scale) {
    tare_tensor *x = NULL;
    qparams *q = tare__qparams_per_tensor(TARE_QUINT8, scale, 7);
    call_case c;
    CHECK_DONE(tare__tensor_quantized(1, &count, q, &x, job_error()));
    begin_call(&c, "relu", x);
    const bool handled = run(f, &c);
    assert_int_equal(tare__tensor_get_int(c.call.result.as.tensor, count - 1), 7);
    end_call(&c);
    tare_tensor_release(x);
    tare__qparams_release(q);
    return handled;
}

static void a_plan_is_kept_for_its_shapes_and_parameters(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    assert_true(run_relu(&f, 8, 0.5));
    const void *first = f.plans.newest;
    assert_true(run_relu(&f, 8, 0.5));
    assert_ptr_equal(f.plans.newest, first);
    assert_true(run_relu(&f, 9, 0.5));
    assert_ptr_not_equal(f.plans.newest, first);
    const void *second = f.plans.newest;
    assert_true(run_relu(&f, 9, 0.25));
    assert_ptr_not_equal(f.plans.newest, second);
    end(&f);
}

static void calls_that_no_step_is_for_are_left_to_the_reference(void **state) {
    (void)state;
    fixture f;
    call_case c;
    begin(&f);
    tare_tensor *x = NEW_INPUT(5);
    begin_call(&c, "relu", x);
    assert_false(run(&f, &c));
    assert_true(f.plans.has_none);
    assert_null(f.plans.newest);
    end_call(&c);
    tare_tensor_release(x);
    end(&f);
}

// As of what writes a view back.
static void calls_of_other_arguments_are_left_to_the_reference(void **state) {
    (void)state;
    fixture f;
    call_case c;
    begin(&f);
    tare_tensor *x = new_integers(TARE_QUINT8, 1, (const int64_t[]){4}, 0.5, 7);
    begin_call(&c, "relu", x);
    c.n.arg_count = 0;
    assert_false(run(&f, &c));
    assert_false(f.plans.has_none);
    end_call(&c);
    tare_tensor_release(x);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changing_shapes_give_the_references_bits),
        cmocka_unit_test(lost_memory_is_told),
        cmocka_unit_test(a_plan_is_kept_for_its_shapes_and_parameters),
        cmocka_unit_test(calls_that_no_step_is_for_are_left_to_the_reference),
        cmocka_unit_test(calls_of_other_arguments_are_left_to_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
