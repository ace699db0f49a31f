// SPDX-License-Identifier: Apache-2.0
// A quantizer of a JSON file annotates a network; files that break its rules are refused.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

static const char toy[] = "examples/data/toy_quantizer.json";

static const char code[] = "def forward(self, x, w, b, v, u, c):\n"
                           "    conv2d = torch.ops.aten.conv2d.default(x, w, b, [2, 2])\n"
                           "    relu_ = torch.ops.aten.relu_.default(conv2d)\n"
                           "    conv2d_1 = torch.ops.aten.conv2d.default(relu_, v)\n"
                           "    add = torch.ops.aten.add.Tensor(conv2d_1, relu_)\n"
                           "    max_pool2d = torch.ops.aten.max_pool2d.default(add, [2, 2])\n"
                           "    cat = torch.ops.aten.cat.default([max_pool2d, relu_], 1)\n"
                           "    sigmoid = torch.ops.aten.sigmoid.default(cat)\n"
                           "    linear = torch.ops.aten.linear.default(sigmoid, u, c)\n"
                           "    return linear\n";

static tare_model *new_net(void) {
    tare_model *model = new_exported(NULL, code);
    set_module(model, "linear", "head", "torch.nn.modules.linear.Linear");
    return model;
}

static const char *annotated_with(const char *settings_json) {
    tare_model *model = new_net();
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    if (settings_json != NULL)
        CHECK_DONE(tare_quantizer_settings_from_json(settings_json, strlen(settings_json), "toy",
                                                     &s, job_error()));
    CHECK_DONE(tare_quantizer_read(toy, s, &q, job_error()));
    assert_string_equal(tare_quantizer_name(q), "toy");
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
    const char *seen = annotated(model);
    tare_quantizer_settings_destroy(s);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    return seen;
}

static void rules_annotate_their_matches(void **state) {
    (void)state;
    assert_string_equal(annotated_with(NULL),
                        "conv2d[x: int8, w: int8, b: int32]; relu_ -> int8; "
                        "conv2d_1[relu_: int8, v: int8] -> int8; "
                        "add[conv2d_1: int8, relu_: int8] -> int8; "
                        "max_pool2d[add: =add] -> =add; "
                        "cat[max_pool2d: int8, relu_: =max_pool2d/cat] -> =max_pool2d/cat; "
                        "sigmoid[cat: uint8] -> uint8; "
                        "linear[sigmoid: int8, u: int8] -> int8");
}

static void names_of_derived_specs_become_the_graphs(void **state) {
    (void)state;
    tare_model *model = new_net();
    tare_quantizer *q = NULL;
    tare_qspec *spec = NULL;
    tare_edge_name edge;
    CHECK_DONE(tare_quantizer_read(toy, NULL, &q, job_error()));
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
    assert_true(
        tare_annotation_input(tare_model_annotation(model, tare_model_find_node(model, "conv2d")),
                              tare_model_find_node(model, "b"), &spec));
    assert_int_equal(tare_qspec_get_kind(spec), TARE_QSPEC_DERIVED);
    assert_true(tare_qspec_target(spec, 1, &edge));
    assert_string_equal(edge.from, "w");
    assert_string_equal(edge.node, "conv2d");
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

static void settings_select_as_with_any_quantizer(void **state) {
    (void)state;
#define ACT                                                                                        \
    "{\"spec\": \"QuantizationSpec\", \"dtype\": \"torch.uint8\", \"qscheme\": "                   \
    "\"torch.per_tensor_affine\", \"observer_or_fake_quant_ctr\": {\"class\": "                    \
    "\"MinMaxObserver\", \"kwargs\": {}}}"
    assert_string_equal(
        annotated_with("{\"module_name\": [[\"head\", {\"input_activation\": " ACT "}]]}"),
        "linear[sigmoid: uint8, u: -]");
    assert_string_equal(annotated_with("{\"operator\": [[\"torch.ops.aten.add.Tensor\", "
                                       "{\"input_activation\": " ACT ", \"output_activation\": " ACT
                                       "}]]}"),
                        "add[conv2d_1: uint8, relu_: uint8] -> uint8; "
                        "max_pool2d[add: =add] -> =add");
    assert_string_equal(annotated_with("{\"module_type\": [[\"torch.nn.Linear\", null]],"
                                       " \"operator\": [[\"torch.ops.aten.conv2d.default\", null]]"
                                       "}"),
                        "");
}

// --- what a file may not say ---

#define FILE_OF(rules)                                                                             \
    "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"t\", \"config\": {}, "           \
    "\"rules\": [" rules "]}"
#define RELU                                                                                       \
    "\"name\": \"r\", \"pattern\": \"def forward(self, x):\\n    a = torch.relu(x)\\n"             \
    "    b = torch.sigmoid(a)\\n    return (b, {'in': x, 'a': a, 'b': b})\\n\""

static void check_bad(const char *json, tare_status status, const char *words) {
    tare_quantizer *q = NULL;
    CHECK_REFUSED(tare_quantizer_from_json(json, strlen(json), NULL, &q, job_error()), status,
                  words);
}

static void the_reader_is_strict(void **state) {
    (void)state;
    check_bad("{\"format\": \"x\", \"version\": 1}", TARE_MALFORMED_FILE, "tare-quantizer");
    check_bad("{\"format\": \"tare-quantizer\", \"version\": 2}", TARE_MALFORMED_FILE,
              "expected version 1, found 2");
    check_bad("{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"t\", "
              "\"specs\": {\"weight\": {}}}",
              TARE_MALFORMED_FILE, "an entry of the config");
    check_bad(FILE_OF("{\"name\": \"r\", \"colour\": 1}"), TARE_MALFORMED_FILE, "colour");
    check_bad(FILE_OF("{\"name\": \"r\", \"pattern\": \"def forward(self\"}"), TARE_MALFORMED_FILE,
              "$.rules[0].pattern");
    check_bad(FILE_OF("{\"name\": \"r\", \"pattern\": []}"), TARE_MALFORMED_FILE, "no pattern");
    check_bad(FILE_OF("{" RELU ", \"annotations\": {\"a\": {\"output_qspec\": \"act\"}}}"),
              TARE_MALFORMED_FILE, "no spec 'act'");
    check_bad(FILE_OF("{" RELU ", \"annotations\": {\"a\": {}}}, {" RELU "}"), TARE_MALFORMED_FILE,
              "a rule 'r' exists already");
}

static void rules_must_fit_their_patterns(void **state) {
    (void)state;
#define SHARED(node) "{\"spec\": \"SharedQuantizationSpec\", \"edge_or_node\": " node "}"
    check_bad(FILE_OF("{" RELU ", \"annotations\": {}}"), TARE_INVALID_ARGUMENT,
              "annotates nothing");
    check_bad(FILE_OF("{" RELU ", \"annotations\": {\"c\": {}}}"), TARE_INVALID_ARGUMENT,
              "names no 'c'");
    check_bad(FILE_OF("{" RELU ", \"annotations\": {\"b\": {\"input_qspec_map\": [[\"in\", "
                      "null]]}}}"),
              TARE_INVALID_ARGUMENT, "'b' does not read 'in'");
    check_bad(FILE_OF("{" RELU ", \"annotations\": {\"a\": {\"input_qspec_map\": [[\"in\", null], "
                      "[\"in\", null]]}}}"),
              TARE_INVALID_ARGUMENT, "a second entry of 'in'");
    check_bad(FILE_OF("{" RELU ", \"annotations\": {\"b\": {\"output_qspec\": " SHARED(
                  "{\"node\": \"a\"}") "}}}"),
              TARE_INVALID_ARGUMENT, "does not annotate");
    check_bad(
        FILE_OF("{" RELU ", \"annotations\": {\"a\": {\"output_qspec\": " SHARED(
            "{\"node\": \"b\"}") "}, \"b\": {\"output_qspec\": " SHARED("{\"node\": \"a\"}") "}}}"),
        TARE_INVALID_ARGUMENT, "which refers back to it");
}

static void memory_may_run_out(void **state) {
    (void)state;
    tare_quantizer *q = NULL;
    tare_model *model = new_net();
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_quantizer_read(toy, NULL, &q, NULL),
                           tare_quantizer_destroy(q));
    CHECK_OK(tare_quantizer_read(toy, NULL, &q, NULL));
    EVERY_ALLOCATION_FAILS(
        status,
        {
            tare_model_clear_annotations(model);
            status = tare_quantizer_annotate(q, model, NULL);
        },
        (void)0);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_annotate_their_matches),
        cmocka_unit_test(names_of_derived_specs_become_the_graphs),
        cmocka_unit_test(settings_select_as_with_any_quantizer),
        cmocka_unit_test(the_reader_is_strict),
        cmocka_unit_test(rules_must_fit_their_patterns),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
