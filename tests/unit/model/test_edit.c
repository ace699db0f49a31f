// SPDX-License-Identifier: Apache-2.0
// The graph of a float model is changed from outside, and holds together whatever is asked.
#include <string.h>

#include "support/models.h"
#include "support/test.h"
#include "tare/edit.h"

static tare_model *small_model(void) {
    return new_model(
        NULL, new_tree(),
        "def forward(self, x, y):\n    add = torch.add(x, y)\n    relu = torch.relu(add)\n"
        "    mul = torch.mul(relu, relu)\n    return mul\n");
}

static const tare_node *node_of(const tare_model *m, const char *name) {
    const tare_node *n = tare_model_find_node(m, name);
    assert_non_null(n);
    return n;
}

static void calls_are_inserted_replaced_and_erased(void **state) {
    (void)state;
    tare_model *m = small_model();
    const tare_node *relu = node_of(m, "relu"), *made = NULL;
    const tare_new_call call = {.struct_size = sizeof call,
                                .kind = TARE_NODE_CALL_FUNCTION,
                                .target = "torch.sigmoid",
                                .arguments = "{\"args\": [{\"node\": \"add\"}]}",
                                .like = relu};
    CHECK_DONE(tare_model_insert_call(m, &call, relu, &made, job_error()));
    assert_ptr_equal(tare_node_next(made), relu);
    CHECK_DONE(tare_model_replace_uses(m, relu, made, NULL, job_error()));
    assert_int_equal(tare_node_user_count(relu), 0);
    CHECK_DONE(tare_model_erase_node(m, relu, job_error()));
    assert_null(tare_model_find_node(m, "relu"));
    assert_ptr_equal(tare_node_input(node_of(m, "mul"), 0), made);
    CHECK_DONE(tare_model_set_arguments(m, node_of(m, "mul"),
                                        "{\"args\": [{\"node\": \"sigmoid\"}, 2.5]}", job_error()));
    assert_int_equal(tare_node_argument_count(node_of(m, "mul")), 2);
    CHECK_DONE(tare__graph_verify(m->root->graph, job_error()));
    tare_model_destroy(m);
}

static void tensors_are_inserted(void **state) {
    (void)state;
    tare_model *m = small_model();
    tare_tensor *t = NEW_INPUT(3);
    const tare_node *made = NULL;
    CHECK_DONE(tare_model_insert_tensor(m, t, NULL, &made, job_error()));
    assert_ptr_equal(tare_node_tensor(m, made), t);
    assert_ptr_equal(tare_node_next(made), tare_model_last_node(m));
    tare_tensor_release(t);
    tare_model_destroy(m);
}

static void what_cannot_be_meant_is_refused(void **state) {
    (void)state;
    tare_model *m = small_model(), *other = small_model();
    const tare_node *add = node_of(m, "add"), *mul = node_of(m, "mul"), *made = NULL;
    tare_new_call call = {.struct_size = sizeof call,
                          .kind = TARE_NODE_CALL_FUNCTION,
                          .target = "torch.relu",
                          .arguments = "{\"args\": [{\"node\": \"mul\"}]}"};
    assert_int_equal(tare_model_insert_call(m, &call, mul, &made, NULL), TARE_MALFORMED_FILE);
    assert_int_equal(tare_model_insert_call(m, &call, node_of(m, "x"), &made, NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_model_insert_call(m, &call, node_of(other, "mul"), &made, NULL),
                     TARE_INVALID_ARGUMENT);
    call.arguments = "{\"args\": [";
    assert_int_equal(tare_model_insert_call(m, &call, NULL, &made, NULL), TARE_MALFORMED_FILE);
    call.target = "torch.nonsense";
    assert_int_equal(tare_model_insert_call(m, &call, NULL, &made, NULL), TARE_NOT_FOUND);
    assert_null(made);
    assert_int_equal(tare_model_erase_node(m, add, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_model_erase_node(m, tare_model_last_node(m), NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_model_replace_uses(m, add, mul, NULL, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_model_set_arguments(m, node_of(m, "x"), "{}", NULL),
                     TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_model_insert_tensor(m, NULL, NULL, &made, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_model_node_count(m), 6);
    CHECK_DONE(tare__graph_verify(m->root->graph, job_error()));
    tare_model_destroy(other);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_inserted_replaced_and_erased),
        cmocka_unit_test(tensors_are_inserted),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
