// SPDX-License-Identifier: Apache-2.0
// Modules whose tensors do not fit their config are refused, with the shapes in the message.
#include "support/test.h"

#include "ops/classes/classes.h"
#include "ops/classes/module_check.h"

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};

static module *make(const char *class) {
    module *m = NULL;
    CHECK_OK(tare__module_create(tare__class_find(&classes, class), &m, NULL));
    return m;
}

static void set(module *m, const char *key, int64_t number) {
    const value v = tare__int(number);
    CHECK_OK(tare__module_set_config(m, key, &v, NULL));
}

static void put(module *m, const char *name, tare_dtype dtype, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(dtype, ndim, shape, &t, NULL));
    CHECK_OK(tare__module_set_tensor(m, name, t, true, NULL));
    tare_tensor_release(t);
}
#define PUT(m, name, ...)                                                                          \
    put(m, name, TARE_FLOAT32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),          \
        (const int64_t[]){__VA_ARGS__})

static void check_accepted(const module *m) {
    CHECK_OK(m->class->check(m, NULL));
}

static void check_refused(const module *m, const char *message) {
    tare_error *err = tare_error_create();
    assert_int_equal(m->class->check(m, err), TARE_INVALID_ARGUMENT);
    if (strstr(tare_error_message(err), message) == NULL)
        fail_msg("expected '%s' in '%s'", message, tare_error_message(err));
    tare_error_destroy(err);
}

static void weights_have_the_shape_of_the_config(void **state) {
    (void)state;
    module *m = make("torch.nn.Linear");
    set(m, "in_features", 3);
    set(m, "out_features", 2);
    check_refused(m, "expected a tensor 'weight' of shape [2, 3]");
    PUT(m, "weight", 3, 2);
    check_refused(m, "expected 'weight' of shape [2, 3], found [3, 2]");
    PUT(m, "weight", 2, 3);
    check_accepted(m);
    PUT(m, "bias", 3);
    check_refused(m, "expected 'bias' of shape [2], found [3]");
    put(m, "weight", TARE_INT64, 2, (const int64_t[]){2, 3});
    check_refused(m, "expected floats as 'weight', found torch.int64");
    tare__module_release(m);
}

static void transposed_convolutions_pad_with_zeros(void **state) {
    static const char *const names[] = {"torch.nn.ConvTranspose2d",
                                        "torch.ao.nn.quantized.reference.ConvTranspose2d"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        module *m = make(names[i]);
        const value zeros = tare__string("zeros"), reflect = tare__string("reflect");
        set(m, "kernel_size", 3);
        PUT(m, "weight", 4, 2, 3, 3);
        CHECK_OK(tare__module_set_config(m, "padding_mode", &zeros, NULL));
        check_accepted(m);
        CHECK_OK(tare__module_set_config(m, "padding_mode", &reflect, NULL));
        check_refused(m, "expected padding_mode 'zeros', found reflect");
        tare__module_release(m);
    }
}

static void convolutions_divide_by_groups(void **state) {
    (void)state;
    module *m = make("torch.ao.nn.quantized.reference.Conv2d");
    set(m, "in_channels", 4);
    set(m, "out_channels", 6);
    set(m, "kernel_size", 3);
    set(m, "groups", 2);
    PUT(m, "weight", 6, 4, 3, 3);
    check_refused(m, "expected 'weight' of shape [6, 2, 3, 3], found [6, 4, 3, 3]");
    PUT(m, "weight", 6, 2, 3, 3);
    check_accepted(m);
    set(m, "groups", 3);
    check_refused(m, "'groups' is not a size");
    set(m, "groups", 0);
    check_refused(m, "'groups' is not a size");
    set(m, "groups", 2);
    const value word = tare__string("three");
    CHECK_OK(tare__module_set_config(m, "kernel_size", &word, NULL));
    check_refused(m, "'kernel_size' is not a size");
    tare__module_release(m);
}

static void absent_values_promise_nothing(void **state) {
    (void)state;
    module *m = make("torch.nn.BatchNorm2d");
    PUT(m, "running_mean", 7);
    check_accepted(m);
    PUT(m, "running_mean", 7, 1);
    check_refused(m, "expected 'running_mean' of shape [-1], found [7, 1]");
    tare__module_release(m);
}

static void recurrent_layers_have_four_tensors_each(void **state) {
    (void)state;
    module *m = make("torch.nn.LSTM");
    set(m, "input_size", 3);
    set(m, "hidden_size", 2);
    set(m, "num_layers", 2);
    PUT(m, "weight_ih_l0", 8, 3);
    PUT(m, "weight_hh_l0", 8, 2);
    check_refused(m, "expected a tensor 'weight_ih_l1' of shape [8, 2]");
    PUT(m, "weight_ih_l1", 8, 2);
    PUT(m, "weight_hh_l1", 8, 2);
    check_accepted(m);
    PUT(m, "bias_hh_l1", 2);
    check_refused(m, "expected 'bias_hh_l1' of shape [8], found [2]");
    set(m, "hidden_size", INT64_MAX);
    check_refused(m, "is not a size");
    tare__module_release(m);
}

static void fused_modules_have_children(void **state) {
    (void)state;
    module *m = make("torch.ao.nn.intrinsic.ConvReLU2d"), *relu = make("torch.nn.ReLU");
    check_refused(m, "expected the fused modules as children");
    CHECK_OK(tare__module_set_child(m, "0", relu, NULL));
    check_accepted(m);
    tare__module_release(relu);
    tare__module_release(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_have_the_shape_of_the_config),
        cmocka_unit_test(transposed_convolutions_pad_with_zeros),
        cmocka_unit_test(convolutions_divide_by_groups),
        cmocka_unit_test(absent_values_promise_nothing),
        cmocka_unit_test(recurrent_layers_have_four_tensors_each),
        cmocka_unit_test(fused_modules_have_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
