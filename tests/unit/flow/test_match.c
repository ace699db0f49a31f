// SPDX-License-Identifier: Apache-2.0
// What callbacks of a pattern read of its match: elements, names, root and further inputs.
#include "flow/match.h"

#include "config/builtin_names.h"
#include "support/nodes.h"
#include "support/test.h"

#define NODE(n) tare__node_value(n)
#define ITEM(n)                                                                                    \
    { .node = tare__match_node_from(n) }
#define NESTED(m)                                                                                  \
    { .nested = (m) }
#define MATCH(...)                                                                                 \
    {                                                                                              \
        .count = sizeof((const match_item[]){__VA_ARGS__}) / sizeof(match_item),                   \
        .items = (const match_item[]) {                                                            \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static graph *g;
static node *x, *conv, *bn, *other, *add, *relu;

static int make_nodes(void **state) {
    (void)state;
    g = new_graph();
    x = new_placeholder(g, "x");
    conv = new_call(g, "conv", x, NULL);
    bn = new_call(g, "bn", conv, NULL);
    other = new_call(g, "other", x, NULL);
    add = new_call(g, "add", bn, other);
    relu = new_call(g, "relu", add, NULL);
    return 0;
}

static int drop_nodes(void **state) {
    (void)state;
    tare__graph_destroy(g);
    return 0;
}

static void callbacks_see_elements_names_and_inputs(void **state) {
    (void)state;
    const tare_match inner = MATCH(ITEM(bn), ITEM(conv));
    const tare_match m = MATCH(ITEM(relu), NESTED(&inner), {0});
    assert_int_equal(tare_match_count(&m), 3);
    assert_ptr_equal(tare_match_nested(&m, 1), &inner);
    assert_null(tare_match_node_at(&m, 1));
    assert_null(tare_match_nested(&m, 0));
    assert_null(tare_match_node_at(&m, 2)); // a constant
    assert_null(tare_match_node_at(&m, 3));
    assert_null(tare_match_nested(&m, 3));
    const tare_match_node *n = tare_match_node_at(&m, 0);
    assert_string_equal(tare_match_node_name(n), "relu");
    assert_string_equal(tare_match_node_name(tare_match_node_input(n, 0)), "add");
    assert_null(tare_match_node_input(n, 1));
    assert_null(tare_match_node_input(NULL, 0));
    assert_null(tare_match_node_name(NULL));
    assert_int_equal(tare_match_count(NULL), 0);
}

static void the_default_root_is_the_last_element(void **state) {
    (void)state;
    const tare_match inner = MATCH(ITEM(bn), ITEM(conv));
    const tare_match outer = MATCH(ITEM(relu), NESTED(&inner));
    const tare_match single = MATCH(ITEM(relu));
    const tare_match constant = MATCH(ITEM(relu), {0});
    assert_ptr_equal(tare__match_default_root(&outer), conv);
    assert_ptr_equal(tare__match_default_root(&single), relu);
    assert_null(tare__match_default_root(&constant));
}

static void a_match_is_flattened_in_its_order(void **state) {
    (void)state;
    const tare_match inner = MATCH(ITEM(bn), ITEM(conv));
    const tare_match outer = MATCH(ITEM(relu), NESTED(&inner), {0}, ITEM(other));
    const node *const expected[] = {relu, bn, conv, other};
    arena memory = {0};
    match_nodes nodes;
    CHECK_OK(tare__match_flatten(&memory, &outer, &nodes, NULL));
    assert_int_equal(nodes.count, 4);
    for (size_t i = 0; i < 4; i++) assert_ptr_equal(nodes.items[i], expected[i]);
    tare__arena_release(&memory);
}

#define ONEDNN "torch.ao.quantization.backend_config.onednn._"

// The pair of getters `form`, such as conv_bn_add_relu, of one side.
static void check_pair(const char *form, const char *side, const tare_match *m) {
    char root_name[128], extra_name[128];
    snprintf(root_name, sizeof root_name, ONEDNN "%s_root_node_getter_%s", form, side);
    snprintf(extra_name, sizeof extra_name, ONEDNN "%s_extra_inputs_getter_%s", form, side);
    const tare_root_node_getter root = tare__root_node_getter_find(root_name);
    const tare_extra_inputs_getter extra = tare__extra_inputs_getter_find(extra_name);
    assert_non_null(root);
    assert_non_null(extra);
    assert_ptr_equal(root(NULL, m), conv);
    const tare_match_node *out[2] = {NULL, NULL};
    assert_int_equal(extra(NULL, m, out, 2), 1);
    assert_ptr_equal(out[0], other);
    assert_int_equal(extra(NULL, m, out, 0), 0);
    // Another shape has no root and no extra input.
    const tare_match single = MATCH(ITEM(relu));
    assert_null(root(NULL, &single));
    assert_int_equal(extra(NULL, &single, out, 2), 0);
}

static void convolutions_are_found_on_both_sides(void **state) {
    (void)state;
    const tare_match pair = MATCH(ITEM(bn), ITEM(conv));
    const tare_match left = MATCH(ITEM(add), ITEM(conv), ITEM(other));
    const tare_match right = MATCH(ITEM(add), ITEM(other), ITEM(conv));
    const tare_match bn_left = MATCH(ITEM(add), NESTED(&pair), ITEM(other));
    const tare_match bn_right = MATCH(ITEM(add), ITEM(other), NESTED(&pair));
    check_pair("conv_add", "left", &left);
    check_pair("conv_add", "right", &right);
    check_pair("conv_bn_add", "left", &bn_left);
    check_pair("conv_bn_add", "right", &bn_right);
    const tare_match relu_left = MATCH(ITEM(relu), NESTED(&left));
    const tare_match relu_right = MATCH(ITEM(relu), NESTED(&right));
    const tare_match relu_bn_left = MATCH(ITEM(relu), NESTED(&bn_left));
    const tare_match relu_bn_right = MATCH(ITEM(relu), NESTED(&bn_right));
    check_pair("conv_add_relu", "left", &relu_left);
    check_pair("conv_add_relu", "right", &relu_right);
    check_pair("conv_bn_add_relu", "left", &relu_bn_left);
    check_pair("conv_bn_add_relu", "right", &relu_bn_right);
}

static void a_constant_operand_is_no_extra_input(void **state) {
    (void)state;
    const tare_match m = MATCH(ITEM(add), ITEM(conv), {0});
    const tare_match_node *out[1] = {NULL};
    assert_int_equal(tare__extra_inputs_getter_find(ONEDNN "conv_add_extra_inputs_getter_left")(
                         NULL, &m, out, 1),
                     0);
}

static void the_pool_under_getitem_is_the_root(void **state) {
    (void)state;
    const tare_match m = MATCH(ITEM(relu), ITEM(other), {0});
    const tare_root_node_getter getter = tare__root_node_getter_find(
        "torch.ao.quantization.backend_config._qnnpack_pt2e.get_pooling_configs.root_node_getter");
    assert_non_null(getter);
    assert_ptr_equal(getter(NULL, &m), other);
}

static void fusers_are_rows(void **state) {
    (void)state;
    const fuser_name *row = NULL;
    char fused[64] = "?";
    CHECK_OK(tare__fuser_find("torch.ao.quantization.fuser_method_mappings._sequential_wrapper2("
                              "torch.ao.nn.intrinsic.ConvReLU2d)",
                              &row, fused, sizeof fused, NULL));
    assert_true(row->holds_class);
    assert_string_equal(fused, "torch.ao.nn.intrinsic.ConvReLU2d");
    CHECK_OK(tare__fuser_find("torch.ao.quantization.fuser_method_mappings.fuse_conv_bn", &row,
                              fused, sizeof fused, NULL));
    assert_false(row->holds_class);
    assert_string_equal(row->subject, "Conv");
    assert_string_equal(fused, "");
    static const char *const broken[] = {
        "torch.ao.quantization.fuser_method_mappings._sequential_wrapper2",
        "torch.ao.quantization.fuser_method_mappings._sequential_wrapper2(",
        "torch.ao.quantization.fuser_method_mappings._sequential_wrapper2()",
        "torch.ao.quantization.fuser_method_mappings._sequential_wrapper2(A)B)",
        "torch.ao.quantization.fuser_method_mappings.fuse_conv_bn(A)",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_int_equal(tare__fuser_find(broken[i], &row, fused, sizeof fused, NULL),
                         TARE_INVALID_ARGUMENT);
    for (size_t i = 0; tare__fuser_name_at(i); i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(tare__fuser_name_at(i), tare__fuser_name_at(k));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_see_elements_names_and_inputs),
        cmocka_unit_test(the_default_root_is_the_last_element),
        cmocka_unit_test(a_match_is_flattened_in_its_order),
        cmocka_unit_test(convolutions_are_found_on_both_sides),
        cmocka_unit_test(a_constant_operand_is_no_extra_input),
        cmocka_unit_test(the_pool_under_getitem_is_the_root),
        cmocka_unit_test(fusers_are_rows),
    };
    return cmocka_run_group_tests(tests, make_nodes, drop_nodes);
}
