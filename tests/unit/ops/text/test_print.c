// SPDX-License-Identifier: Apache-2.0
// Graphs are printed as torch.fx prints their code, constants and listings.
#include "support/nodes.h"
#include "support/test.h"

#include <math.h>

#include "ops/text/print.h"

#define NODE(n) tare__node_value(n)

// Consumes g.
static void check_code(graph *g, const char *expected) {
    text out = {0};
    CHECK_OK(tare__print_code(g, &out, NULL));
    assert_string_equal(tare__text_chars(&out), expected);
    tare__text_release(&out);
    tare__graph_destroy(g);
}

static void dead_values_are_cleaned_after_their_last_use(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *y = new_placeholder(g, "input");
    node *add = new_call(g, "operator.add", x, y);
    new_call(g, "torch.relu", x, NULL); // used by nobody
    node *cat = new_call(g, "torch.cat", add, add);
    new_output(g, cat);
    check_code(g, "def forward(self, x, input):\n"
                  "    input_1 = input\n"
                  "    add = x + input_1;  input_1 = None\n"
                  "    relu = torch.relu(x);  x = relu = None\n"
                  "    cat = torch.cat(add, add);  add = None\n"
                  "    return cat\n");
}

static void functions_of_python_become_operators(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    const value two = tare__int(2), full[] = {tare__none(), tare__none(), tare__none()};
    value items[] = {tare__int(0),
                     {.kind = VALUE_SLICE, .count = 3, .as.items = (value *)full},
                     {.kind = VALUE_ELLIPSIS}};
    const value index = {.kind = VALUE_TUPLE, .count = 3, .as.items = items};
    new_node(g, NODE_CALL_FUNCTION, "operator.pow", VALUES(NODE(x), two));
    new_node(g, NODE_CALL_FUNCTION, "operator.neg", VALUES(NODE(x)));
    new_node(g, NODE_CALL_FUNCTION, "operator.getitem", VALUES(NODE(x), index));
    new_node(g, NODE_CALL_FUNCTION, "operator.iadd", VALUES(NODE(x), two));
    new_node(g, NODE_CALL_FUNCTION, "operator.setitem", VALUES(NODE(x), index, two));
    new_node(g, NODE_CALL_FUNCTION, "operator.abs", VALUES(NODE(x)));
    new_node(g, NODE_CALL_FUNCTION, "getattr", VALUES(NODE(x), tare__string("shape")));
    new_node(g, NODE_CALL_FUNCTION, "getattr", VALUES(NODE(x), tare__string("a b")));
    new_node(g, NODE_CALL_FUNCTION, "operator.add", VALUES(NODE(x))); // too few for the operator
    new_output(g, x);
    check_code(g,
               "def forward(self, x):\n"
               "    pow_1 = x ** 2;  pow_1 = None\n"
               "    neg = -x;  neg = None\n"
               "    getitem = x[(0, slice(None, None, None), Ellipsis)];  getitem = None\n"
               "    x += 2;  iadd = x;  iadd = None\n"
               "    x[(0, slice(None, None, None), Ellipsis)] = 2;  setitem = x;  setitem = None\n"
               "    abs_1 = _operator_abs(x);  abs_1 = None\n"
               "    getattr_1 = x.shape;  getattr_1 = None\n"
               "    getattr_2 = getattr(x, 'a b');  getattr_2 = None\n"
               "    add = _operator_add(x);  add = None\n"
               "    return x\n");
}

static void paths_with_numbers_go_through_getattr(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    new_node(g, NODE_GET_ATTR, "seq.0.weight", NULL, 0);
    node *call = new_node(g, NODE_CALL_MODULE, "0.1.conv", VALUES(NODE(x)));
    node *method = new_node(g, NODE_CALL_METHOD, "view", VALUES(NODE(call), tare__int(-1)));
    new_output(g, method);
    check_code(g, "def forward(self, x):\n"
                  "    seq_0_weight = getattr(self.seq, \"0\").weight;  seq_0_weight = None\n"
                  "    _0_1_conv = getattr(getattr(self, \"0\"), \"1\").conv(x);  x = None\n"
                  "    view = _0_1_conv.view(-1);  _0_1_conv = None\n"
                  "    return view\n");
}

static void check_value(value v, const char *expected) {
    text out = {0};
    tare__print_value(&v, &out);
    assert_string_equal(tare__text_chars(&out), expected);
    tare__text_release(&out);
}

static void constants_print_as_in_python(void **state) {
    (void)state;
    value one[] = {tare__int(1), tare__float(0.1)};
    check_value(tare__none(), "None");
    check_value(tare__bool(true), "True");
    check_value(tare__float(1e-5), "1e-05");
    check_value(tare__float(INFINITY), "inf");
    check_value(tare__string("it's"), "\"it's\"");
    check_value((value){.kind = VALUE_TUPLE, .count = 1, .as.items = one}, "(1,)");
    check_value((value){.kind = VALUE_TUPLE, .count = 0, .as.items = one}, "()");
    check_value((value){.kind = VALUE_LIST, .count = 2, .as.items = one}, "[1, 0.1]");
    check_value((value){.kind = VALUE_DICT, .count = 2, .as.items = one}, "{1: 0.1}");
    check_value(tare__dtype_value(TARE_QUINT8), "torch.quint8");
    check_value((value){.kind = VALUE_QSCHEME, .as.qscheme = TARE_PER_CHANNEL_SYMMETRIC},
                "torch.per_channel_symmetric");
    check_value((value){.kind = VALUE_DEVICE, .as.text = "cpu"}, "device(type='cpu')");
    check_value((value){.kind = VALUE_DEVICE, .as.text = "cuda:1"}, "device(type='cuda', index=1)");
    check_value((value){.kind = VALUE_LAYOUT, .as.text = "torch.strided"}, "torch.strided");
}

static void listings_mark_nodes_and_count_users(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    const value sum = tare__string("sum");
    const keyword mode = {"mode", sum};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = "operator.add",
                            .args = (value[]){NODE(x), tare__int(3)},
                            .arg_count = 2,
                            .kwargs = &mode,
                            .kwarg_count = 1};
    node *add = NULL;
    CHECK_OK(tare__graph_insert(g, &spec, NULL, &add, NULL));
    new_node(g, NODE_CALL_FUNCTION, "getattr", VALUES(NODE(add), sum));
    new_node(g, NODE_GET_ATTR, "fc.weight", NULL, 0);
    new_output(g, add);
    text out = {0};
    CHECK_OK(tare__print_graph(g, &out, NULL));
    assert_string_equal(
        tare__text_chars(&out),
        "graph():\n"
        "    %x : [num_users=1] = placeholder[target=x]\n"
        "    %add : [num_users=2] = call_function[target=operator.add](args = (%x, 3), "
        "kwargs = {mode: sum})\n"
        "    %getattr_1 : [num_users=0] = call_function[target=builtins.getattr](args = (%add, "
        "sum), "
        "kwargs = {})\n"
        "    %fc_weight : [num_users=0] = get_attr[target=fc.weight]\n"
        "    return add\n");
    tare__text_release(&out);
    tare__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_values_are_cleaned_after_their_last_use),
        cmocka_unit_test(functions_of_python_become_operators),
        cmocka_unit_test(paths_with_numbers_go_through_getattr),
        cmocka_unit_test(constants_print_as_in_python),
        cmocka_unit_test(listings_mark_nodes_and_count_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
