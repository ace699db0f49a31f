// SPDX-License-Identifier: Apache-2.0
// Writing models as ONNX: what the file says, what is refused, and what comes back.
#include "support/test.h"

#include <math.h>

#include "model/model.h"
#include "support/models.h"
#include "support/temp.h"

#ifndef TARE_HAVE_ONNX

int main(void) {
    return skip_tests("this build has no ONNX");
}

#else

#include "io/onnx/write/write.h"
#include "ops/op.h"

static text report_of_last; // what the last call of `write` said

static tare_status write_as(const tare_model *model, const char *path, tare_onnx_options *options) {
    tare__text_clear(&report_of_last);
    options->struct_size = sizeof *options;
    options->report = tare__text_append_writer;
    options->report_user = &report_of_last;
    return tare_model_write_onnx(model, path, options, job_error());
}

static bool file_holds(const char *path, const char *part, size_t length) {
    size_t size = 0;
    bool found = false;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t i = 0; i + length <= size && !found; i++)
        found = memcmp(bytes + i, part, length) == 0;
    free(bytes);
    return found;
}

// Does a node of the file have this op_type, field 4 of NodeProto?
static void check_has_node(const char *path, const char *op_type) {
    char field[64];
    const int length = snprintf(field, sizeof field, "\x22%c%s", (char)strlen(op_type), op_type);
    if (!file_holds(path, field, (size_t)length)) fail_msg("no %s in %s", op_type, path);
}

static void check_has_value(const char *path, const char *name) {
    if (!file_holds(path, name, strlen(name))) fail_msg("no %s in %s", name, path);
}

static const tare_input_shape shape_x = {"x", 2, (const int64_t[]){-1, 4}};

static tare_model *of_code(const char *code) {
    return new_model(NULL, new_tree(), code);
}

// Reads what was written and compares what both compute.
static void check_same_outputs(const tare_model *model, const char *path) {
    tare_model *again = NULL;
    tare_tensor *x = NEW_INPUT(3, 4);
    CHECK_DONE(tare_model_read(path, NULL, &again, job_error()));
    assert_string_equal(printed(model), printed(again));
    tare_tensor *a = result_of(model, (const tare_tensor *const *)&x, 1);
    tare_tensor *b = result_of(again, (const tare_tensor *const *)&x, 1);
    check_same_tensor(a, b);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_tensor_release(x);
    tare_model_destroy(again);
}

static void write_and_check(const char *code, int opset, const char *op_type) {
    tare_model *m = of_code(code);
    tare_onnx_options o = {.opset = opset, .shapes = &shape_x, .shape_count = 1};
    CHECK_DONE(write_as(m, temp_path("m.onnx"), &o));
    check_has_node(temp_path("m.onnx"), op_type);
    check_same_outputs(m, temp_path("m.onnx"));
    tare_model_destroy(m);
}

static void a_call_is_one_rule_in_every_spelling(void **state) {
    (void)state;
    write_and_check("def forward(self, x):\n    y = torch.relu(x)\n    return y", 18, "Relu");
    write_and_check("def forward(self, x):\n    y = x.relu()\n    return y", 18, "Relu");
    write_and_check("def forward(self, x):\n    y = torch.ops.aten.relu.default(x)\n    return y",
                    18, "Relu");
}

static void an_operator_that_comes_later_is_made_of_others(void **state) {
    (void)state;
    static const char gelu[] = "def forward(self, x):\n    y = torch._C._nn.gelu(x)\n    return y";
    write_and_check(gelu, 13, "Erf");
    write_and_check(gelu, 20, "Gelu");
}

static void sizes_that_follow_the_batch_are_not_written(void **state) {
    (void)state;
    write_and_check("def forward(self, x):\n    n = x.size(0)\n    y = x.view(n, 2, 2)\n"
                    "    return y",
                    18, "Reshape");
    CHECK_HOLDS(tare__text_chars(&report_of_last), "\"batch\":\"open\"");
    write_and_check("def forward(self, x):\n    n = x.size(0)\n    z = torch.zeros(n, 4)\n"
                    "    y = x + z\n    return y",
                    18, "Shape");
    CHECK_HOLDS(tare__text_chars(&report_of_last), "\"batch\":\"open\"");
}

static void a_number_that_follows_the_batch_fixes_it(void **state) {
    (void)state;
    write_and_check("def forward(self, x):\n    n = x.size(0)\n    y = x / n\n    return y", 18,
                    "Div");
    CHECK_HOLDS(tare__text_chars(&report_of_last), "\"batch\":\"fixed\"");
    CHECK_HOLDS(tare__text_chars(&report_of_last), "the node computes with it");
}

// A batch of 1 would go, any other stays.
static void a_squeeze_of_the_batch_fixes_it(void **state) {
    (void)state;
    tare_model *m = of_code("def forward(self, x):\n    y = torch.squeeze(x, 0)\n    return y");
    tare_onnx_options o = {.shapes = &shape_x, .shape_count = 1};
    CHECK_DONE(write_as(m, temp_path("squeeze.onnx"), &o));
    CHECK_HOLDS(tare__text_chars(&report_of_last), "\"batch\":\"fixed\"");
    tare_model_destroy(m);
}

static void what_onnx_lacks_is_listed(void **state) {
    (void)state;
    tare_model *m = of_code("def forward(self, x):\n    y = torch.atan2(x, x)\n"
                            "    z = torch.cumprod(y, 1)\n    return z");
    tare_onnx_options o = {.shapes = &shape_x, .shape_count = 1};
    CHECK_REFUSED(write_as(m, temp_path("refused.onnx"), &o), TARE_UNSUPPORTED,
                  "2 nodes cannot be written as ONNX of opset 18: y (torch.atan2): ONNX export "
                  "does not support it; z (torch.cumprod): ONNX export does not support it");
    CHECK_HOLDS(tare__text_chars(&report_of_last),
                "\"refused\":[{\"node\":\"y\",\"operator\":\"torch.atan2\",\"reason\":");
    tare_model_destroy(m);
}

static void options_are_checked(void **state) {
    (void)state;
    tare_model *m = of_code("def forward(self, x):\n    y = torch.relu(x)\n    return y");
    tare_onnx_options o = {.opset = 12};
    CHECK_REFUSED(write_as(m, temp_path("n.onnx"), &o), TARE_INVALID_ARGUMENT, "13 to 21");
    o = (tare_onnx_options){0};
    CHECK_REFUSED(write_as(m, temp_path("n.onnx"), &o), TARE_INVALID_ARGUMENT,
                  "input 'x' has no shape");
    const tare_input_shape other = {"z", 1, (const int64_t[]){4}};
    o = (tare_onnx_options){.shapes = &other, .shape_count = 1};
    CHECK_REFUSED(write_as(m, temp_path("n.onnx"), &o), TARE_INVALID_ARGUMENT,
                  "the model has no input 'z'");
    tare_model_destroy(m);
}

// --- quantize and dequantize ---

#define Q "torch.ops.quantized_decomposed."

static void decomposed_parameters_keep_their_ranges(void **state) {
    (void)state;
    write_and_check("def forward(self, x):\n"
                    "    q = " Q "quantize_per_tensor.default(x, 0.1, 3, -128, 127, torch.int8)\n"
                    "    y = " Q "dequantize_per_tensor.default(q, 0.1, 3, -128, 127, torch.int8)\n"
                    "    return y",
                    13, "QuantizeLinear");
    write_and_check("def forward(self, x):\n"
                    "    q = " Q "quantize_per_tensor.default(x, 0.1, 0, 0, 15, torch.uint8)\n"
                    "    y = " Q "dequantize_per_tensor.default(q, 0.1, 0, 0, 15, torch.uint8)\n"
                    "    return y",
                    13, "Clip");
}

static void sixteen_bits_need_opset_21(void **state) {
    (void)state;
    static const char code[] =
        "def forward(self, x):\n"
        "    q = " Q "quantize_per_tensor.default(x, 0.001, 0, -32768, 32767, torch.int16)\n"
        "    y = " Q "dequantize_per_tensor.default(q, 0.001, 0, -32768, 32767, torch.int16)\n"
        "    return y";
    tare_model *m = of_code(code);
    tare_onnx_options o = {.opset = 20, .shapes = &shape_x, .shape_count = 1};
    CHECK_REFUSED(write_as(m, temp_path("n.onnx"), &o), TARE_UNSUPPORTED,
                  "QuantizeLinear takes torch.int16 from opset 21 on");
    tare_model_destroy(m);
    write_and_check(code, 21, "QuantizeLinear");
}

// A weight of 4 bits in a model: codes, and their dequantization.
static void weights_of_four_bits_are_packed(void **state) {
    (void)state;
    static const int8_t codes[] = {-8, 7, 0, 1, -1, 3, -5, 2, 6, -7, 4, 5};
    tare_tensor *w = NULL;
    module *root = new_tree();
    CHECK_DONE(
        tare_tensor_from_data(TARE_INT8, 2, (const int64_t[]){3, 4}, codes, &w, job_error()));
    CHECK_DONE(tare__module_set_tensor(root, "codes", w, false, job_error()));
    tare_tensor_release(w);
    tare_model *m =
        new_model(NULL, root,
                  "def forward(self, x):\n    c = self.codes\n"
                  "    w = " Q "dequantize_per_tensor.default(c, 0.5, 1, -8, 7, torch.int8)\n"
                  "    y = torch._C._nn.linear(x, w)\n    return y");
    tare_onnx_options o = {.opset = 21, .shapes = &shape_x, .shape_count = 1};
    CHECK_DONE(write_as(m, temp_path("four.onnx"), &o));
    check_has_value(temp_path("four.onnx"), "\x78\x10\x3f\x2b\x96\x54"); // two in a byte
    check_same_outputs(m, temp_path("four.onnx"));
    o.opset = 18;
    CHECK_DONE(write_as(m, temp_path("eight.onnx"), &o));
    check_same_outputs(m, temp_path("eight.onnx"));
    tare_model_destroy(m);
}

static void full_ranges_that_are_found_are_one_operator(void **state) {
    (void)state;
    static const char form[] =
        "def forward(self, x):\n"
        "    c = " Q "choose_qparams.tensor(x, %s, 1.1920928955078125e-07, %s)\n"
        "    s = c[0]\n    z = c[1]\n"
        "    q = " Q "quantize_per_tensor.tensor(x, s, z, %s, %s)\n"
        "    y = " Q "dequantize_per_tensor.tensor(q, s, z, %s, %s)\n"
        "    return y";
    char code[800];
    snprintf(code, sizeof code, form, "0, 255", "torch.uint8", "0, 255", "torch.uint8", "0, 255",
             "torch.uint8");
    write_and_check(code, 13, "DynamicQuantizeLinear");
    snprintf(code, sizeof code, form, "-128, 127", "torch.int8", "-128, 127", "torch.int8",
             "-128, 127", "torch.int8");
    write_and_check(code, 18, "ReduceMin");
}

// A linear layer in reference form under a backend's default mapping.
static tare_model *quantized_linear(bool lowers) {
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=4, out_features=3, bias=True");
    tare_model *m =
        new_model(NULL, root, "def forward(self, x):\n    fc = self.fc(x)\n    return fc");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(m, backend, mapping);
    CALIBRATED(p, 8, 4);
    tare_model *q = lowers ? lowered(p, backend) : referenced(p, backend);
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return q;
}

static void integer_layers_have_integer_biases(void **state) {
    (void)state;
    for (int lowers = 0; lowers <= 1; lowers++) {
        tare_model *m = quantized_linear(lowers);
        tare_onnx_options o = {0};
        CHECK_DONE(write_as(m, temp_path("fc.onnx"), &o));
        check_has_value(temp_path("fc.onnx"), "fc.bias_quantized");
        check_has_node(temp_path("fc.onnx"), "DequantizeLinear");
        tare_model_destroy(m);
    }
}

// Somebody has changed the file: it is read by its nodes.
static void a_changed_file_is_read_by_its_nodes(void **state) {
    (void)state;
    size_t size = 0;
    tare_model *m = of_code("def forward(self, x):\n    y = torch.sin(x)\n    return y");
    tare_model *again = NULL;
    tare_onnx_options o = {.shapes = &shape_x, .shape_count = 1};
    CHECK_DONE(write_as(m, temp_path("sin.onnx"), &o));
    unsigned char *bytes = temp_read(temp_path("sin.onnx"), &size);
    for (size_t i = 0; i + 5 < size; i++)
        if (memcmp(bytes + i, "\x22\x03Sin", 5) == 0) memcpy(bytes + i + 2, "Cos", 3);
    temp_write(temp_path("cos.onnx"), bytes, size);
    free(bytes);
    CHECK_DONE(tare_model_read(temp_path("cos.onnx"), NULL, &again, job_error()));
    CHECK_HOLDS(printed(again), "torch.cos(x)");
    tare_model_destroy(again);
    tare_model_destroy(m);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *m = quantized_linear(true), *again = NULL;
    const char *path = temp_path("oom.onnx");
    const tare_onnx_options o = {.struct_size = sizeof o, .external_data = true};
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_model_write_onnx(m, path, &o, NULL), (void)0);
    EVERY_ALLOCATION_FAILS(status, status = tare_model_read(path, NULL, &again, NULL),
                           tare_model_destroy(again));
    tare_model_destroy(m);
}

// --- the rows ---

static void every_row_belongs_to_an_operator(void **state) {
    (void)state;
    const onnx_write_rule *r = NULL;
    for (size_t i = 0; (r = tare__onnx_write_rule_at(i)) != NULL; i++) {
        const bool is_kind = strstr(r->id, ".module") != NULL || strcmp(r->id, ONNX_RULED) == 0;
        if (!is_kind && tare__op_by_id(r->id, 0) == NULL) fail_msg("no operator '%s'", r->id);
        for (size_t k = 0; k < i; k++)
            if (strcmp(tare__onnx_write_rule_at(k)->id, r->id) == 0)
                fail_msg("'%s' has two rows", r->id);
    }
}

// "torch.relu" of "torch.nn.functional.relu|torch.relu": the first, or the method.
static void add_name(const op_info *op, text *out) {
    const char *names = op != NULL ? op->functions : NULL;
    if (names == NULL && op != NULL && op->methods != NULL) tare__text_append(out, "Tensor.");
    if (names == NULL && op != NULL) names = op->methods;
    if (names != NULL) tare__text_printf(out, "`%.*s`", (int)strcspn(names, "|"), names);
}

static void add_row(const onnx_write_rule *r, text *out) {
    tare__text_printf(out, "| %s | ", r->id);
    add_name(tare__op_by_id(r->id, 0), out);
    tare__text_printf(out, " | %s | ", *r->op_type != '\0' ? r->op_type : "refused");
    if (r->since > 13) tare__text_printf(out, "%d", r->since);
    tare__text_append(out, " |\n");
}

// The page is the table of rows: TARE_WRITE_DOCS=1 in the environment writes it anew.
static void the_documentation_lists_every_row(void **state) {
    (void)state;
    static const char path[] = "docs/onnx_operators.md";
    text page = {0};
    const onnx_write_rule *r = NULL;
    tare__text_append(
        &page, "# Operators as ONNX\n\n"
               "What [`tare export --to onnx`](onnx.md#writing) writes: every operator that "
               "is known, whatever spelling a graph has\n(a module, a function, a method, an "
               "aten overload), and the nodes that it becomes. Opsets 13 to 21 have all of\n"
               "them but where one is given. What is not here is refused by name. Written "
               "by the test `unit.io.onnx.write.write` from\nthe writer's rows.\n\n"
               "| operator | as torch calls it | ONNX | from opset |\n"
               "| --- | --- | --- | --- |\n");
    for (size_t i = 0; (r = tare__onnx_write_rule_at(i)) != NULL; i++) add_row(r, &page);
    if (getenv("TARE_WRITE_DOCS") != NULL) temp_write(path, page.chars, page.length);
    size_t size = 0;
    unsigned char *found = temp_read(path, &size);
    if (size != page.length || memcmp(found, page.chars, size) != 0)
        fail_msg("%s is not what the rows say: run this test with TARE_WRITE_DOCS=1", path);
    free(found);
    tare__text_release(&page);
}

static int release_report(void **state) {
    tare__text_release(&report_of_last);
    return temp_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_one_rule_in_every_spelling),
        cmocka_unit_test(an_operator_that_comes_later_is_made_of_others),
        cmocka_unit_test(sizes_that_follow_the_batch_are_not_written),
        cmocka_unit_test(a_number_that_follows_the_batch_fixes_it),
        cmocka_unit_test(a_squeeze_of_the_batch_fixes_it),
        cmocka_unit_test(what_onnx_lacks_is_listed),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(decomposed_parameters_keep_their_ranges),
        cmocka_unit_test(sixteen_bits_need_opset_21),
        cmocka_unit_test(weights_of_four_bits_are_packed),
        cmocka_unit_test(full_ranges_that_are_found_are_one_operator),
        cmocka_unit_test(integer_layers_have_integer_biases),
        cmocka_unit_test(a_changed_file_is_read_by_its_nodes),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_row_belongs_to_an_operator),
        cmocka_unit_test(the_documentation_lists_every_row),
    };
    return cmocka_run_group_tests(tests, temp_make, release_report);
}

#endif
