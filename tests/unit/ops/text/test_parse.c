// SPDX-License-Identifier: Apache-2.0
// Every form of code is read and printed unchanged; errors state line and column.
#include "support/nodes.h"
#include "support/test.h"

#include "core/text/text.h"
#include "ops/classes/classes.h"
#include "ops/text/print.h"

static graph *parse(const char *code, const module *model) {
    graph *g = NULL;
    tare_error *err = tare_error_create();
    if (tare__parse_code(code, strlen(code), model, &g, err) != TARE_OK)
        fail_msg("%s: %s\n%s", tare_error_where(err), tare_error_message(err), code);
    tare_error_destroy(err);
    return g;
}

// Text that prints as it was read.
static void check_round_trip(const char *code) {
    graph *g = parse(code, NULL);
    text out = {0};
    CHECK_OK(tare__print_code(g, &out, NULL));
    assert_string_equal(tare__text_chars(&out), code);
    tare__text_release(&out);
    tare__graph_destroy(g);
}

#define BODY(lines) "def forward(self, x, y):\n" lines "    return x\n"

static void every_form_reads_back(void **state) {
    (void)state;
    check_round_trip(BODY("    add = x + 1;  add = None\n"));
    check_round_trip(BODY("    add = -1 + x;  add = None\n"));
    check_round_trip(BODY("    neg = -x;  neg = None\n"));
    check_round_trip("def forward(self, x : torch.Tensor) -> dict[str, torch.Tensor]:\n"
                     "    return {'out': x}\n");
    check_round_trip(BODY("    invert = ~x;  invert = None\n"));
    check_round_trip(BODY("    floordiv = x // y;  y = floordiv = None\n"));
    check_round_trip(BODY("    eq = torch.float32 == x;  eq = None\n"));
    check_round_trip(BODY("    ge = 2.5 >= x;  ge = None\n"));
    check_round_trip(BODY("    getitem = x[(0, slice(1, None, -1), None)];  getitem = None\n"));
    check_round_trip(BODY("    x += y;  iadd = x;  y = iadd = None\n"));
    check_round_trip(BODY("    x[[0, 1]] = y;  setitem = x;  y = setitem = None\n"));
    check_round_trip(BODY("    abs_1 = _operator_abs(x);  abs_1 = None\n"));
    check_round_trip("torch.fx._symbolic_trace.wrap(\"math_floor\")\n"
                     "torch.fx._symbolic_trace.wrap(\"math_sqrt\")\n"
                     "\n" BODY("    floor = math_floor(x);  floor = None\n"
                               "    sqrt = math_sqrt(x);  sqrt = None\n"
                               "    floor_1 = math_floor(x);  floor_1 = None\n"));
    check_round_trip(BODY("    len_1 = len(x);  len_1 = None\n"));
    check_round_trip(BODY("    getattr_1 = x.shape;  getattr_1 = None\n"));
    check_round_trip(BODY("    getattr_1 = getattr(x, 'a b');  getattr_1 = None\n"));
    check_round_trip(BODY("    view = x.view(-1, 2);  view = None\n"));
    check_round_trip(BODY("    to = x.to(torch.float16);  to = None\n"));
    check_round_trip(BODY("    conv = self.a.conv(x);  conv = None\n"));
    check_round_trip(
        BODY("    _0 = getattr(getattr(self, \"0\").b, \"1\")(x, y = y);  y = _0 = None\n"));
    check_round_trip(BODY("    w = getattr(self.seq, \"0\").weight;  w = None\n"));
    check_round_trip(BODY("    zeros = torch.zeros([1], device = device(type='cuda', index=1), "
                          "layout = torch.strided);  zeros = None\n"));
    check_round_trip(
        BODY("    f = torch.f('it\\'s \"\\n', {'a': (x,), 1: ()}, inf, -inf, nan, s0);  "
             "f = None\n"));
    check_round_trip(BODY("    f = torch.f(tensor(1.0, dtype=torch.float32), torch.nn.Linear, "
                          "torch.per_tensor_affine);  f = None\n"));
    check_round_trip(
        BODY("    f = torch.f(9223372036854775807, -9223372036854775808);  f = None\n"));
    check_round_trip(
        BODY("    cat : torch.Tensor = torch.cat([x, y], dim = 1);  y = cat = None\n"));
}

static void parameters_keep_types_defaults_and_new_names(void **state) {
    (void)state;
    check_round_trip(
        "def forward(self, input : torch.Tensor, b : typing_Union[int,None] = None, *args):\n"
        "    input_1 = input\n"
        "    relu = torch.relu(input_1);  input_1 = None\n"
        "    return {'a': relu, 'b': (b, args)}\n");
    check_round_trip("def forward(self):\n"
                     "    return 1\n");
    graph *g = parse("def forward(self, x, input, z):\n"
                     "    relu = torch.relu(x);  x = None\n"
                     "    input_1 = input\n"
                     "    return input_1\n",
                     NULL);
    assert_string_equal(node_names(g), "x relu input_1 z output");
    tare__graph_destroy(g);
}

static void exported_programs_keep_their_frame(void **state) {
    (void)state;
    const char *code =
        "def forward(self, x, y):\n"
        "    x, y, = fx_pytree.tree_flatten_spec(([x, y], {}), self._in_spec)\n"
        "    fc_weight = self.fc.weight\n"
        "    linear = torch.ops.aten.linear.default(x, fc_weight);  x = fc_weight = None\n"
        "    return pytree.tree_unflatten((linear,), self._out_spec)\n";
    check_round_trip(code);
    graph *g = parse(code, NULL);
    assert_string_equal(node_names(g), "fc_weight x y linear output");
    tare__graph_destroy(g);
}

static void modules_and_hints_around_the_code_are_skipped(void **state) {
    (void)state;
    graph *g = parse("GraphModule(\n  (fc): Linear(in_features=1)\n)\n\n\n\n"
                     "def forward(self, x):\n    return x\n    \n"
                     "# To see more debug info, please use `graph_module.print_readable()`\n",
                     NULL);
    assert_string_equal(node_names(g), "x output");
    tare__graph_destroy(g);
}

static void check_error(const char *code, const module *model, const char *where,
                        const char *message) {
    graph *g = NULL;
    tare_error *err = tare_error_create();
    if (tare__parse_code(code, strlen(code), model, &g, err) == TARE_OK)
        fail_msg("accepted:\n%s", code);
    assert_int_equal(tare_error_status(err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_where(err), where);
    assert_string_equal(tare_error_message(err), message);
    tare_error_destroy(err);
}

static void errors_name_line_and_column(void **state) {
    (void)state;
    check_error("GraphModule()\n", NULL, "", "there is no line that begins with 'def '");
    check_error(BODY("    relu = torch.relu(z)\n"), NULL, "line 2, column 23",
                "nothing before this line is named 'z'");
    check_error(BODY("    x = torch.relu(x)\n"), NULL, "line 2, column 5",
                "the name 'x' is taken or reserved");
    check_error(BODY("    lambda = torch.relu(x)\n"), NULL, "line 2, column 5",
                "the name 'lambda' is taken or reserved");
    check_error(BODY("    a = torch.relu(x\n"), NULL, "line 2, column 21",
                "expected ')', found the end of the line");
    check_error(BODY("    a = 'abc\n"), NULL, "line 2, column 9",
                "the string has no end on its line");
    check_error(BODY("    a = torch.f(9223372036854775808)\n"), NULL, "line 2, column 17",
                "the integer does not fit into 64 bits");
    check_error(BODY("    a = torch.f(1, dim = 2, dim = 3)\n"), NULL, "line 2, column 5",
                "the keyword 'dim' is given twice");
    check_error(BODY("    a = torch.f(len(x))\n"), NULL, "line 2, column 17",
                "a call inside of an argument is not understood");
    check_error(BODY("    a = torch.f('\\q')\n"), NULL, "line 2, column 17",
                "the string holds an escape that tare cannot read");
    check_error(BODY("    x += y;  iadd = y\n"), NULL, "line 2, column 14",
                "the result must be what was changed");
    check_error(BODY("    a = x;  a = None\n"), NULL, "line 2, column 10", "expected an operation");
    check_error(BODY("    a = numpy.relu(x)\n"), NULL, "line 2, column 9",
                "'numpy.relu' is no function of torch");
    check_error(BODY("    a = torch.f('\t')\n"), NULL, "line 2, column 17",
                "the string holds a control character or is not UTF-8");
    check_error(BODY("    a = torch.f('\xff')\n"), NULL, "line 2, column 17",
                "the string holds a control character or is not UTF-8");
    check_error(BODY("    a = (1).real\n"), NULL, "line 2, column 9",
                "only computed values have members");
    check_error(BODY("    a = -(1)\n"), NULL, "line 2, column 9",
                "a sign in front of a number is part of the number");
    check_error(BODY("    a = (slice(1, 2, 3))[x]\n"), NULL, "line 2, column 9",
                "no operation begins with such a value");
    check_error(BODY("    a = getattr(self, '\"')\n"), NULL, "line 2, column 23",
                "no module or tensor has such a name");
    check_error(BODY("    a = getattr(self, '')\n"), NULL, "line 2, column 23",
                "no module or tensor has such a name");
    check_error(BODY("    a = getattr(self, 'b.')\n"), NULL, "line 2, column 23",
                "no module or tensor has such a name");
    check_error(BODY("    a = torch.f(device(type=':cuda'))\n"), NULL, "line 2, column 24",
                "a device has the name of its type and a number");
    check_error(BODY("    ?\n"), NULL, "line 2, column 5", "'?' is not expected here");
    check_error("def forward(self, x):\n    a = torch.relu(x)\n", NULL, "line 3, column 1",
                "the code ends without a return");
    check_error("def \n    return pytree.tree_unflatten((7,), self._out_spec)\n", NULL,
                "line 1, column 5", "expected a name, found the end of the line");
    check_error(BODY("") "    b = x + x\n", NULL, "line 3, column 5",
                "nothing may follow the return");
}

static void nesting_has_a_limit(void **state) {
    (void)state;
    char code[4096] = "def forward(self, x):\n    return ";
    for (int i = 0; i < 1000; i++) strcat(code, "[");
    check_error(code, NULL, "line 2, column 76", "values are nested more than 64 deep");
    strcpy(code, "def forward(self, x):\n    a = ");
    for (int i = 0; i < 400; i++) strcat(code, "getattr(");
    strcat(code, "self.b");
    check_error(code, NULL, "line 2, column 3215", "expected ',', found the end");
}

static void targets_are_looked_up_in_the_model(void **state) {
    (void)state;
    module *root = NULL, *fc = NULL;
    CHECK_OK(tare__module_create(&tare__class_graph_module, &root, NULL));
    CHECK_OK(tare__module_create(&tare__class_container, &fc, NULL));
    CHECK_OK(tare__module_set_path(root, "a.fc", fc, &tare__class_container, NULL));
    tare__module_release(fc);
    tare__graph_destroy(parse(BODY("    fc = self.a.fc(x);  fc = None\n"), root));
    check_error(BODY("    fc = self.a.fd(x)\n"), root, "line 2, column 10",
                "the model has no module 'a.fd'");
    check_error(BODY("    w = self.a.weight\n"), root, "line 2, column 9",
                "the model has no tensor 'a.weight'");
    tare__module_release(root);
}

static void lost_memory_leaves_nothing_behind(void **state) {
    (void)state;
    const char *code = "def forward(self, input : int = (1, [2]), y):\n"
                       "    input_1 = input\n"
                       "    a = torch.f('s', {1: input_1}, dim = slice(1, 2, 3));  input_1 = None\n"
                       "    a += y;  iadd = a\n"
                       "    b = getattr(self, \"0\").conv(a);  a = None\n"
                       "    return (b, device(type='cpu', index=0))\n";
    graph *g = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__parse_code(code, strlen(code), NULL, &g, NULL),
                           tare__graph_destroy(g));
    g = parse(code, NULL);
    text out = {0};
    EVERY_ALLOCATION_FAILS(status, tare__text_release(&out);
                           status = tare__print_code(g, &out, NULL), (void)0);
    tare__text_release(&out);
    tare__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_reads_back),
        cmocka_unit_test(parameters_keep_types_defaults_and_new_names),
        cmocka_unit_test(exported_programs_keep_their_frame),
        cmocka_unit_test(modules_and_hints_around_the_code_are_skipped),
        cmocka_unit_test(errors_name_line_and_column),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(targets_are_looked_up_in_the_model),
        cmocka_unit_test(lost_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
