// SPDX-License-Identifier: Apache-2.0
// The public view of a graph shows every kind of node and argument.
#include <string.h>

#include "support/models.h"
#include "support/test.h"

static tare_model *small_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=3, out_features=2");
    tare_tensor *w = NEW_INPUT(2);
    CHECK_DONE(tare__module_set_tensor(root, "w", w, false, job_error()));
    tare_tensor_release(w);
    return new_model(NULL, root,
                     "def forward(self, x):\n    fc = self.fc(x)\n    w = self.w\n"
                     "    add = torch.add(fc, w, alpha = 2)\n"
                     "    cat = torch.cat([add, fc], 1)\n    to = cat.to(torch.float32)\n"
                     "    getitem = to[(slice(None, 1, None), True, 0.5)]\n    return getitem\n");
}

static void nodes_come_in_order_with_their_edges(void **state) {
    (void)state;
    tare_model *m = small_model();
    static const char *const names[] = {"x", "fc", "w", "add", "cat", "to", "getitem", "output"};
    static const tare_node_kind kinds[] = {TARE_NODE_PLACEHOLDER,   TARE_NODE_CALL_MODULE,
                                           TARE_NODE_GET_ATTR,      TARE_NODE_CALL_FUNCTION,
                                           TARE_NODE_CALL_FUNCTION, TARE_NODE_CALL_METHOD,
                                           TARE_NODE_CALL_FUNCTION, TARE_NODE_OUTPUT};
    const tare_node *n = tare_model_first_node(m);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++, n = tare_node_next(n)) {
        assert_string_equal(tare_node_name(n), names[i]);
        assert_int_equal(tare_node_get_kind(n), kinds[i]);
        assert_ptr_equal(tare_model_find_node(m, names[i]), n);
    }
    assert_null(n);
    assert_null(tare_model_find_node(m, "nobody"));
    const tare_node *fc = tare_model_find_node(m, "fc"), *add = tare_model_find_node(m, "add");
    assert_string_equal(tare_node_target(fc), "fc");
    assert_string_equal(tare_node_target(add), "torch.add");
    assert_int_equal(tare_node_user_count(fc), 2);
    assert_ptr_equal(tare_node_user(fc, 0), add);
    assert_null(tare_node_user(fc, 2));
    assert_int_equal(tare_node_input_count(add), 2);
    assert_ptr_equal(tare_node_input(add, 0), fc);
    assert_null(tare_node_input(add, 2));
    assert_string_equal(tare_module_class_name(tare_node_module(m, fc)), "torch.nn.Linear");
    assert_null(tare_node_module(m, add));
    const tare_node *w = tare_model_find_node(m, "w");
    assert_int_equal(tare_tensor_element_count(tare_node_tensor(m, w)), 2);
    assert_null(tare_node_tensor(m, fc));
    tare_model_destroy(m);
}

static void tensors_are_found_by_the_names_of_the_state(void **state) {
    (void)state;
    tare_model *m = small_model();
    tare_tensor *found = NULL;
    CHECK_DONE(tare_model_state_tensor(m, "w", &found, job_error()));
    assert_ptr_equal(found, tare_node_tensor(m, tare_model_find_node(m, "w")));
    tare_tensor_release(found);
    static const char *const strange[] = {"", ".", "fc", "fc.nobody", "nobody.weight", "w."};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        assert_int_equal(tare_model_state_tensor(m, strange[i], &found, job_error()),
                         TARE_NOT_FOUND);
        assert_null(found);
    }
    tare_model_destroy(m);
}

static void known_operators_are_told_from_others(void **state) {
    (void)state;
    static const char *const functions[] = {"torch.relu", "operator.add",
                                            "torch.ops.aten.relu.default"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_true(tare_operator_is_known(TARE_NODE_CALL_FUNCTION, functions[i]));
    assert_true(tare_operator_is_known(TARE_NODE_CALL_METHOD, "view"));
    assert_false(tare_operator_is_known(TARE_NODE_CALL_FUNCTION, "os.system"));
    assert_false(tare_operator_is_known(TARE_NODE_CALL_FUNCTION, "view"));
    assert_false(tare_operator_is_known(TARE_NODE_CALL_METHOD, "__class__"));
    assert_false(tare_operator_is_known(TARE_NODE_CALL_MODULE, "torch.relu"));
}

static void the_walk_goes_both_ways(void **state) {
    (void)state;
    tare_model *m = small_model();
    const tare_node *n = tare_model_last_node(m), *add = tare_model_find_node(m, "add"),
                    *fc = tare_model_find_node(m, "fc"), *cat = tare_model_find_node(m, "cat");
    size_t count = 0;
    for (const tare_node *at = n; at != NULL; at = tare_node_previous(at)) count++;
    assert_int_equal(count, 8);
    assert_int_equal(tare_model_node_count(m), 8);
    assert_int_equal(tare_node_get_kind(n), TARE_NODE_OUTPUT);
    assert_true(tare_node_calls(add, "torch.add"));
    assert_false(tare_node_calls(add, "torch.sub"));
    assert_true(tare_node_calls(tare_model_find_node(m, "to"), "to"));
    assert_false(tare_node_calls(fc, "fc"));
    assert_false(tare_node_calls(NULL, "torch.add"));
    assert_true(tare_node_reads(cat, fc));
    assert_false(tare_node_reads(add, cat));
    assert_ptr_equal(tare_node_only_user(add), cat);
    assert_null(tare_node_only_user(fc)); // add and cat
    assert_null(tare_node_meta_json(fc));
    tare_model_destroy(m);
}

static void arguments_show_what_they_are(void **state) {
    (void)state;
    tare_model *m = small_model();
    tare_argument a, item, bound;
    const tare_node *add = tare_model_find_node(m, "add");
    assert_int_equal(tare_node_argument_count(add), 2);
    assert_true(tare_node_keyword(add, "alpha", &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_INT);
    assert_int_equal(a.integer, 2);
    assert_string_equal(tare_node_keyword_name(add, 0), "alpha");
    assert_null(tare_node_keyword_name(add, 1));
    assert_false(tare_node_keyword(add, "out", &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_NONE);
    const tare_node *cat = tare_model_find_node(m, "cat");
    assert_true(tare_node_argument(cat, 0, &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_LIST);
    assert_int_equal(a.count, 2);
    assert_true(tare_argument_item(&a, 0, &item));
    assert_int_equal(item.kind, TARE_ARGUMENT_NODE);
    assert_ptr_equal(item.node, add);
    assert_false(tare_argument_item(&a, 2, &item));
    assert_false(tare_node_argument(cat, 2, &a));
    assert_true(tare_node_argument(tare_model_find_node(m, "to"), 1, &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_DTYPE);
    assert_int_equal(a.dtype, TARE_FLOAT32);
    assert_true(tare_node_argument(tare_model_find_node(m, "getitem"), 1, &a));
    assert_true(tare_argument_item(&a, 0, &item));
    assert_int_equal(item.kind, TARE_ARGUMENT_SLICE);
    assert_true(tare_argument_item(&item, 1, &bound));
    assert_int_equal(bound.integer, 1);
    assert_true(tare_argument_item(&a, 1, &item));
    assert_true(item.kind == TARE_ARGUMENT_BOOL && item.boolean);
    assert_true(tare_argument_item(&a, 2, &item));
    assert_true(item.kind == TARE_ARGUMENT_FLOAT && item.real == 0.5);
    tare_model_destroy(m);
}

static void modules_show_what_they_were_made_with(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=2, out_channels=2, kernel_size=(3, 1), stride=(2, 1), padding=1, "
               "dilation=(1, 1), groups=1, padding_mode='zeros'");
    tare_model *m =
        new_model(NULL, root, "def forward(self, x):\n    conv = self.conv(x)\n    return conv\n");
    const tare_module *conv = tare_node_module(m, tare_model_find_node(m, "conv"));
    tare_argument a, item;
    int64_t pair[2] = {7, 7};
    assert_true(tare_module_config(conv, "stride", &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_LIST);
    assert_true(tare_argument_item(&a, 0, &item));
    assert_int_equal(item.integer, 2);
    assert_true(tare_module_config(conv, "padding_mode", &a));
    assert_string_equal(a.text, "zeros");
    assert_false(tare_module_config(conv, "strides", &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_NONE);
    assert_true(tare_module_config_ints(conv, "kernel_size", 2, pair));
    assert_true(pair[0] == 3 && pair[1] == 1);
    assert_true(tare_module_config_ints(conv, "padding", 2, pair)); // one stands for both
    assert_true(pair[0] == 1 && pair[1] == 1);
    assert_false(tare_module_config_ints(conv, "stride", 3, pair));
    assert_false(tare_module_config_ints(conv, "padding_mode", 2, pair));
    assert_true(pair[0] == 1 && pair[1] == 1);
    assert_string_equal(tare_module_config_key(conv, 0), "in_channels");
    assert_null(tare_module_config_key(conv, 100));
    assert_string_equal(tare_module_tensor_name(conv, 0), "weight");
    assert_null(tare_module_tensor_name(conv, 100));
    assert_null(tare_module_child_name(conv, 0));
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_come_in_order_with_their_edges),
        cmocka_unit_test(tensors_are_found_by_the_names_of_the_state),
        cmocka_unit_test(known_operators_are_told_from_others),
        cmocka_unit_test(the_walk_goes_both_ways),
        cmocka_unit_test(arguments_show_what_they_are),
        cmocka_unit_test(modules_show_what_they_were_made_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
