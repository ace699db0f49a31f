// SPDX-License-Identifier: Apache-2.0
// What a rule of a file may say.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

#define SPEC(dtype)                                                                                \
    "{\"spec\": \"QuantizationSpec\", \"dtype\": \"torch." dtype "\", \"qscheme\": "               \
    "\"torch.per_tensor_affine\", \"observer_or_fake_quant_ctr\": {\"class\": "                    \
    "\"MinMaxObserver\", \"kwargs\": {}}}"
#define SHARED(what) "{\"spec\": \"SharedQuantizationSpec\", \"edge_or_node\": " what "}"
#define FILE_OF(more)                                                                              \
    "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"t\", \"config\": "               \
    "{\"input_activation\": " SPEC("int8") ", \"output_activation\": " SPEC("int8") "}, " more "}"
#define IN_OUT(in, out)                                                                            \
    "\"annotations\": {\"" out "\": {\"input_qspec_map\": [[\"" in "\", \"input_activation\"]], "  \
    "\"output_qspec\": \"output_activation\"}}"

static const char *annotated_by_settings(const char *json, const char *settings,
                                         tare_model *model) {
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    if (settings != NULL)
        CHECK_DONE(
            tare_quantizer_settings_from_json(settings, strlen(settings), "t", &s, job_error()));
    CHECK_DONE(tare_quantizer_from_json(json, strlen(json), s, &q, job_error()));
    CHECK_DONE(tare_quantizer_transform(q, model, job_error()));
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
    const char *seen = annotated(model);
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(s);
    tare_model_destroy(model);
    return seen;
}

static const char *annotated_by(const char *json, tare_model *model) {
    return annotated_by_settings(json, NULL, model);
}

static tare_model *new_net(void) {
    return new_exported(NULL, "def forward(self, x, w, b):\n"
                              "    conv2d = torch.ops.aten.conv2d.default(x, w, b, [2, 2])\n"
                              "    add = torch.ops.aten.add.Tensor(conv2d, x)\n"
                              "    relu = torch.ops.aten.relu.default(add)\n"
                              "    twice = torch.ops.aten.add.Tensor(relu, relu)\n"
                              "    more = torch.ops.aten.mul.Tensor(twice, 3)\n"
                              "    return more\n");
}

static void ready_made_matchers_name_the_parts(void **state) {
    (void)state;
    assert_string_equal(
        annotated_by(FILE_OF("\"rules\": [{\"name\": \"r\", \"matcher\": [\"conv2d_add_relu\", "
                             "\"conv2d_add\"], \"annotations\": {\"layer\": {\"input_qspec_map\": "
                             "[[\"input\", \"input_activation\"]]}, \"add\": {\"input_qspec_map\": "
                             "[[\"other\", \"input_activation\"]]}, \"output\": {\"output_qspec\": "
                             "\"output_activation\"}}}]"),
                     new_net()),
        "conv2d[x: int8]; add[x: int8]; relu -> int8");
}

static void two_names_of_one_node_add_up(void **state) {
    (void)state;
    tare_model *model = new_exported(NULL, "def forward(self, x, w, y):\n"
                                           "    conv2d = torch.ops.aten.conv2d.default(x, w)\n"
                                           "    add = torch.ops.aten.add.Tensor(conv2d, y)\n"
                                           "    return add\n");
    // Without an activation the sum is the output.
    assert_string_equal(
        annotated_by(FILE_OF("\"rules\": [{\"name\": \"r\", \"matcher\": \"conv_add\", "
                             "\"annotations\": {\"add\": {\"input_qspec_map\": [[\"other\", "
                             "\"input_activation\"]]}, \"output\": {\"output_qspec\": "
                             "\"output_activation\"}}}]"),
                     model),
        "add[y: int8] -> int8");
}

static void one_node_for_two_names_is_annotated_once(void **state) {
    (void)state;
    assert_string_equal(
        annotated_by(FILE_OF("\"rules\": [{\"name\": \"r\", \"matcher\": \"add\", \"annotations\": "
                             "{\"add\": {\"input_qspec_map\": [[\"left\", \"input_activation\"], "
                             "[\"right\", null]]}}}]"),
                     new_net()),
        "add[conv2d: int8, x: -]; twice[relu: int8]");
}

static void the_first_possible_spec_holds(void **state) {
    (void)state;
#define POOL                                                                                       \
    "{\"name\": \"pool\", \"matcher\": \"global_pool\", \"annotations\": {\"pool\": "              \
    "{\"input_qspec_map\": [[\"input\", [" SHARED(                                                 \
        "{\"node\": \"input\"}") ", "                                                              \
                                 "\"input_activation\"]]], \"output_qspec\": " SHARED(             \
                                     "{\"edge\": [\"input\", \"pool\"]}") "}}}"
    static const char code[] =
        "def forward(self, x):\n"
        "    relu = torch.ops.aten.relu.default(x)\n"
        "    one = torch.ops.aten.adaptive_avg_pool2d.default(relu, [2, 2])\n"
        "    two = torch.ops.aten.adaptive_avg_pool2d.default(x, [2, 2])\n"
        "    add = torch.ops.aten.add.Tensor(one, two)\n"
        "    return add\n";
    assert_string_equal(
        annotated_by(FILE_OF("\"rules\": [{\"name\": \"relu\", \"matcher\": \"relu\", " IN_OUT(
                         "input", "output") "}, " POOL "]"),
                     new_exported(NULL, code)),
        "relu[x: int8] -> int8; one[relu: =relu] -> =relu/one; two[x: int8] -> =x/two");
}

static void sources_choose_among_equal_operators(void **state) {
    (void)state;
    tare_model *model = new_net();
    set_source(model, "relu", "relu", "torch.nn.functional.relu");
    set_source(model, "twice", "twice", "torch.add");
    assert_string_equal(
        annotated_by(FILE_OF("\"rules\": [{\"name\": \"add\", \"matcher\": \"add\", \"sources\": "
                             "{\"add\": [\"torch.add\"]}, " IN_OUT("left", "add") "}]"),
                     model),
        "twice[relu: int8] -> int8");
}

static void examples_make_forms(void **state) {
    (void)state;
    static const char code[] =
        "def forward(self, x):\n"
        "    up = torch.ops.aten.upsample_nearest2d.vec(x, None, [2.0, 2.0])\n"
        "    return up\n";
    assert_string_equal(
        annotated_by(
            FILE_OF("\"rules\": [{\"name\": \"up\", \"pattern\": [[\"def forward(self, x, s):\", "
                    "\"    y = torch.nn.functional.interpolate(x, scale_factor = s)\", "
                    "\"    return (y, {'x': x, 'y': y})\"]], \"match_literals\": true, "
                    "\"examples\": [[[1, 2, 4], {\"constant\": 2.0}], [{\"shape\": [-1, 2, 4, 4], "
                    "\"dtype\": \"torch.float32\"}, {\"constant\": 2.0}]], " IN_OUT("x", "y") "}]"),
            new_exported(NULL, code)),
        "up[x: int8] -> int8");
}

static void numbers_become_tensors_to_be_observed(void **state) {
    (void)state;
    assert_string_equal(
        annotated_by(
            FILE_OF("\"lifts_scalars\": [\"torch.ops.aten.mul.Tensor\"], \"rules\": "
                    "[{\"name\": \"mul\", \"matcher\": \"mul\", \"annotations\": {\"mul\": "
                    "{\"input_qspec_map\": [[\"right\", \"input_activation\"]]}}}]"),
            new_net()),
        "more[_tensor_constant_0: int8]");
}

static void marks_are_the_rules_choice(void **state) {
    (void)state;
    static const char json[] =
        FILE_OF("\"rules\": [{\"name\": \"conv\", \"matcher\": \"conv_add\", \"annotations\": "
                "{\"layer\": {\"input_qspec_map\": [[\"input\", \"input_activation\"]]}, "
                "\"weight\": {}}, \"marks\": [\"bias\"]}, {\"name\": \"add\", \"matcher\": "
                "\"add\", \"annotations\": {\"add\": {\"output_qspec\": "
                "\"output_activation\"}}}]");
    tare_quantizer *q = NULL;
    tare_model *model = new_net();
    CHECK_DONE(tare_quantizer_from_json(json, strlen(json), NULL, &q, job_error()));
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
    // The sum is not marked by the first rule, so that the second takes it.
    assert_string_equal(annotated(model), "conv2d[x: int8]; add -> int8; twice -> int8");
    static const char *const names[] = {"w", "b"};
    for (size_t i = 0; i < 2; i++)
        assert_true(tare_annotation_is_marked(
            tare_model_annotation(model, tare_model_find_node(model, names[i]))));
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

static void rules_of_training_wait_for_it(void **state) {
    (void)state;
    static const char json[] = FILE_OF(
        "\"rules\": [{\"name\": \"relu\", \"matcher\": \"relu\", \"training_only\": true, " IN_OUT(
            "input", "output") "}]");
    static const char training[] =
        "{\"global\": {\"input_activation\": " SPEC("uint8") ", "
                                                             "\"is_qat\": true}}";
    assert_string_equal(annotated_by(json, new_net()), "");
    assert_string_equal(annotated_by_settings(json, training, new_net()), "relu[add: uint8]");
}

static void parts_that_settings_name_are_theirs(void **state) {
    (void)state;
    static const char json[] =
        FILE_OF("\"rules\": [{\"name\": \"add\", \"matcher\": \"add\", " IN_OUT(
            "left", "add") "}], \"keeps_observer\": [\"torch.ops.aten.relu.default\"]");
    static const char head[] =
        "{\"global\": {\"input_activation\": " SPEC("uint8") "}, "
                                                             "\"module_name\": [[\"head\", null]]}";
    tare_model *model = new_net();
    set_module(model, "twice", "head", "m.Head");
    assert_string_equal(annotated_by_settings(json, head, model), "add[conv2d: uint8]");
    // What goes on with an observer by itself is left alone as well.
    static const char relu[] = "{\"global\": {\"input_activation\": " SPEC(
        "uint8") ", "
                 "\"output_activation\": " SPEC(
                     "uint8") "}, \"operator\": "
                              "[[\"torch.ops.aten.relu.default\", null]]}";
    assert_string_equal(annotated_by_settings(json, relu, new_net()),
                        "add[conv2d: uint8] -> uint8; twice[relu: uint8] -> uint8");
}

// --- what cannot be ---

static void check_bad(const char *rule, const char *words) {
    tare_quantizer *q = NULL;
    text json = {0};
    tare__text_printf(&json,
                      "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"t\", "
                      "\"config\": {}, \"rules\": [{\"name\": \"r\", %s}]}",
                      rule);
    const tare_status status =
        tare_quantizer_from_json(tare__text_chars(&json), json.length, NULL, &q, job_error());
    tare__text_release(&json);
    assert_int_not_equal(status, TARE_OK);
    CHECK_REFUSED(status, status, words);
}

static void the_reader_is_strict(void **state) {
    (void)state;
    check_bad("\"annotations\": {}", "either 'pattern' or 'matcher'");
    check_bad("\"matcher\": \"relu\", \"pattern\": \"\", \"annotations\": {}",
              "either 'pattern' or 'matcher'");
    check_bad("\"matcher\": \"rely\", \"annotations\": {}", "no ready-made pattern 'rely'");
    check_bad("\"matcher\": \"relu\", \"examples\": [], \"annotations\": {}",
              "'examples' has no effect on a ready-made matcher");
    check_bad("\"matcher\": \"relu\", \"annotations\": {\"output\": {\"output_qspec\": [null, "
              "null]}}",
              "this spec always applies");
    check_bad("\"matcher\": \"relu\", \"annotations\": {\"output\": {\"output_qspec\": []}}",
              "no spec");
    check_bad("\"matcher\": \"relu\", \"annotations\": {\"output\": {}}, \"marks\": [\"nobody\"]",
              "names no 'nobody'");
    check_bad("\"matcher\": \"relu\", \"annotations\": {\"output\": {}}, \"sources\": "
              "{\"nobody\": []}",
              "names no 'nobody'");
    check_bad("\"pattern\": \"def forward(self, x):\\n    y = torch.relu(x)\\n    return y\\n\", "
              "\"examples\": [[{\"constant\": 1, \"dtype\": \"torch.int8\"}]], \"annotations\": {}",
              "a constant has no shape or dtype");
    check_bad("\"pattern\": \"def forward(self, x):\\n    y = torch.relu(x)\\n    return y\\n\", "
              "\"examples\": [[{\"shape\": [1], \"dtype\": \"torch.int9\"}]], \"annotations\": {}",
              "no dtype 'torch.int9'");
    check_bad("\"matcher\": \"relu\", \"annotations\": {\"output\": {\"output_qspec\": " SHARED(
                  "{\"node\": \"output\"}") "}}",
              "which refers back to it");
    check_bad(
        "\"matcher\": \"relu\", \"annotations\": {\"output\": {\"output_qspec\": {\"spec\": "
        "\"DerivedQuantizationSpec\", \"dtype\": \"torch.int32\", \"derived_from\": [{\"node\": "
        "\"output\"}, {\"node\": \"output\"}], \"derive_qparams_fn\": "
        "\"_derive_bias_qparams_from_act_and_weight_qparams\"}}}",
        "which refers back to it");
}

static void memory_may_run_out(void **state) {
    (void)state;
    static const char *const files[] = {"examples/npu_quantizer.json",
                                        "examples/xnnpack_quantizer.json"};
    for (size_t i = 0; i < 2; i++) {
        tare_quantizer *q = NULL;
        tare_status status = TARE_OK;
        SOME_ALLOCATIONS_FAIL(4999, status, status = tare_quantizer_read(files[i], NULL, &q, NULL),
                              (tare_quantizer_destroy(q), q = NULL));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_made_matchers_name_the_parts),
        cmocka_unit_test(two_names_of_one_node_add_up),
        cmocka_unit_test(one_node_for_two_names_is_annotated_once),
        cmocka_unit_test(the_first_possible_spec_holds),
        cmocka_unit_test(sources_choose_among_equal_operators),
        cmocka_unit_test(examples_make_forms),
        cmocka_unit_test(numbers_become_tensors_to_be_observed),
        cmocka_unit_test(marks_are_the_rules_choice),
        cmocka_unit_test(rules_of_training_wait_for_it),
        cmocka_unit_test(parts_that_settings_name_are_theirs),
        cmocka_unit_test(the_reader_is_strict),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
