// SPDX-License-Identifier: Apache-2.0
// Quantizers by name and file, what they show, and what their linter finds.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

static const char toy[] = "examples/data/toy_quantizer.json";

static const char *file(const char *name, const char *content) {
    temp_write(temp_path(name), content, strlen(content));
    return temp_path(name);
}

static tare_status open_with(const char *names, const char *settings, bool is_qat,
                             tare_quantizer **out) {
    const tare_quantizer_open_options options = {
        .struct_size = sizeof options, .settings_path = settings, .is_qat = is_qat};
    return tare_quantizer_open(names, &options, out, job_error());
}

static void check_opens(const char *names, const char *settings, bool is_qat, const char *called) {
    tare_quantizer *q = NULL;
    CHECK_DONE(open_with(names, settings, is_qat, &q));
    assert_string_equal(tare_quantizer_name(q), called);
    tare_quantizer_destroy(q);
}

static void quantizers_are_found_by_what_they_are_called(void **state) {
    (void)state;
    check_opens("XNNPACKQuantizer", NULL, false, "XNNPACKQuantizer");
    check_opens("XNNPACKQuantizer", NULL, true, "XNNPACKQuantizer");
    check_opens(toy, NULL, false, "toy");
    check_opens("EmbeddingQuantizer,examples/data/toy_quantizer.json", NULL, false,
                "ComposableQuantizer");
    tare_quantizer *q = NULL;
    CHECK_REFUSED(open_with("XNNPACKQuantiser", NULL, false, &q), TARE_NOT_FOUND,
                  "no built-in quantizer 'XNNPACKQuantiser'");
    CHECK_REFUSED(open_with("EmbeddingQuantizer,", NULL, false, &q), TARE_INVALID_ARGUMENT,
                  "an empty name");
    CHECK_REFUSED(open_with("no/such.json", NULL, false, &q), TARE_IO, "no/such.json");
    CHECK_REFUSED(open_with("EmbeddingQuantizer", NULL, true, &q), TARE_INVALID_ARGUMENT,
                  "no option 'is_qat'");
}

static void settings_go_to_the_quantizer_that_they_name(void **state) {
    (void)state;
    tare_quantizer *q = NULL;
    const char *both = file("both.json", "{\"quantizers\": {\"toy\": {\"global\": null}, "
                                         "\"XNNPACKQuantizer\": {\"global\": {\"default\": {}}}}}");
    check_opens("XNNPACKQuantizer,examples/data/toy_quantizer.json", both, false,
                "ComposableQuantizer");
    CHECK_REFUSED(open_with("EmbeddingQuantizer,examples/data/toy_quantizer.json", both, false, &q),
                  TARE_MALFORMED_FILE, "settings for a quantizer that is not used");
    CHECK_REFUSED(open_with("XNNPACKQuantizer", both, false, &q), TARE_MALFORMED_FILE,
                  "'quantizers'");
    const char *bad = file("bad.json", "{\"quantizers\": {\"toy\": {\"globl\": null}}}");
    CHECK_REFUSED(open_with("EmbeddingQuantizer,examples/data/toy_quantizer.json", bad, false, &q),
                  TARE_MALFORMED_FILE, "bad.json: $.quantizers.toy");
}

static void configs_are_of_training_or_not_as_asked(void **state) {
    (void)state;
    tare_quantizer *q = NULL;
    CHECK_REFUSED(open_with(toy, NULL, true, &q), TARE_INVALID_ARGUMENT,
                  "the config of the whole model says is_qat: false");
    const char *qat = file("qat.json", "{\"module_name\": [[\"fc\", {\"default\": {\"is_qat\": "
                                       "true}}]]}");
    CHECK_REFUSED(open_with("XNNPACKQuantizer", qat, false, &q), TARE_INVALID_ARGUMENT,
                  "the config of fc says is_qat: true");
    check_opens("XNNPACKQuantizer", qat, true, "XNNPACKQuantizer");
    // A default config follows what is asked.
    const char *plain = file("plain.json", "{\"global\": {\"default\": {}}}");
    check_opens("XNNPACKQuantizer", plain, true, "XNNPACKQuantizer");
    check_opens("XNNPACKQuantizer", plain, false, "XNNPACKQuantizer");
}

// --- show ---

static void showing_lists_rules_and_parts(void **state) {
    (void)state;
    tare_quantizer *q = NULL;
    text shown = {0};
    CHECK_DONE(open_with("ArmInductorQuantizer,examples/data/toy_quantizer.json", NULL, false, &q));
    CHECK_DONE(tare_quantizer_show(q, false, tare__text_append_writer, &shown, job_error()));
    CHECK_HOLDS(tare__text_chars(&shown), "ComposableQuantizer (composed)\n"
                                          "ArmInductorQuantizer (built-in)\n  config:\n");
    CHECK_HOLDS(tare__text_chars(&shown), "    Linear, LeakyReLU\n");
    CHECK_HOLDS(tare__text_chars(&shown), "toy (rules)\n");
    CHECK_HOLDS(tare__text_chars(&shown), "  joins_inputs:\n    torch.ops.aten.cat.default\n");
    tare__text_release(&shown);
    tare_quantizer_destroy(q);
}

// --- lint ---

static tare_status see(void *user, const tare_quantizer_finding *finding, tare_error *err) {
    (void)err;
    tare__text_printf(user, "%s: %s\n", finding->path, finding->problem);
    return TARE_OK;
}

#define SPEC                                                                                       \
    "{\"spec\": \"QuantizationSpec\", \"dtype\": \"torch.int8\", \"qscheme\": "                    \
    "\"torch.per_tensor_affine\", \"observer_or_fake_quant_ctr\": "                                \
    "{\"class\": \"MinMaxObserver\", \"kwargs\": {}}}"
#define RULE(name, pattern)                                                                        \
    "{\"name\": \"" name "\", \"pattern\": \"def forward(self, x):\\n" pattern                     \
    "\\n    return (y, {'y': y})\\n\", \"annotations\": {\"y\": {\"output_qspec\": "               \
    "\"output_activation\"}}}"

static void check_findings(const char *rest, const char *wanted) {
    tare_quantizer *q = NULL;
    text seen = {0};
    size_t count = 0;
    text json = {0};
    tare__text_printf(&json,
                      "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"q\", "
                      "\"specs\": {\"used\": " SPEC "}, \"config\": {\"output_activation\": "
                      "\"used\"}, %s}",
                      rest);
    CHECK_DONE(
        tare_quantizer_from_json(tare__text_chars(&json), json.length, NULL, &q, job_error()));
    CHECK_DONE(tare_quantizer_lint(q, see, &seen, &count, job_error()));
    assert_string_equal(tare__text_chars(&seen), wanted);
    assert_int_equal(count > 0, wanted[0] != '\0');
    tare__text_release(&seen);
    tare__text_release(&json);
    tare_quantizer_destroy(q);
}

static void the_linter_finds_what_cannot_be_meant(void **state) {
    (void)state;
    check_findings("\"rules\": [" RULE("relu", "    y = torch.nn.functional.relu(x)") "]", "");
    check_findings(
        "\"rules\": [], \"keeps_observer\": [\"torch.ops.aten.max_pol2d.default\"], "
        "\"joins_inputs\": [\"torch.cat\"]",
        "$.keeps_observer[0]: the operator 'torch.ops.aten.max_pol2d.default' is not known\n"
        "$.joins_inputs[0]: torch.export makes no calls of 'torch.cat'\n");
    check_findings("\"rules\": [" RULE("relu", "    y = torch.nn.functional.relu(x)") ", " RULE(
                       "two", "    z = torch.nn.functional.relu(x)\\n    y = torch.sigmoid(z)") "]",
                   "$.rules[1]: rule 'two' never applies: rule 'relu' matches its nodes before\n");
}

static void rules_and_lists_may_not_speak_of_the_same(void **state) {
    (void)state;
    check_findings(
        "\"rules\": [" RULE(
            "relu", "    y = torch.nn.functional.relu(x)") "], "
                                                           "\"keeps_observer\": "
                                                           "[\"torch.ops.aten.relu.default\", "
                                                           "\"torch.ops.aten.cat.default\"], "
                                                           "\"joins_inputs\": "
                                                           "[\"torch.ops.aten.cat.default\", "
                                                           "\"torch.ops.aten.cat.default\"]",
        "$.keeps_observer[0]: rule 'relu' matches calls of 'torch.ops.aten.relu.default' "
        "before\n"
        "$.keeps_observer[1]: 'torch.ops.aten.cat.default' is in joins_inputs, too\n"
        "$.joins_inputs[1]: 'torch.ops.aten.cat.default' stands here twice\n");
    // A rule for training only, or for some sources, takes nothing from others.
    check_findings(
        "\"rules\": [{\"name\": \"a\", \"training_only\": true, \"matcher\": \"relu\", "
        "\"annotations\": {\"output\": {}}}, {\"name\": \"b\", \"sources\": {\"output\": "
        "[\"torch.nn.ReLU\"]}, \"matcher\": \"relu\", \"annotations\": {\"output\": {}}}, "
        "{\"name\": \"c\", \"matcher\": \"relu\", \"annotations\": {\"output\": {}}}]",
        "");
}

#define WITH_SPEC(rest)                                                                            \
    "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"q\", \"specs\": {\"s\": {" rest  \
    "}}, \"config\": {\"output_activation\": \"s\"}, \"rules\": []}"
#define OBSERVER(class) "\"observer_or_fake_quant_ctr\": {\"class\": \"" class "\", \"kwargs\": {}}"
#define PLAIN           "\"spec\": \"QuantizationSpec\", "
#define AFFINE          "\"qscheme\": \"torch.per_tensor_affine\", "

static void check_spec(const char *json, const char *words) {
    tare_quantizer *q = NULL;
    text seen = {0};
    size_t count = 0;
    CHECK_DONE(tare_quantizer_from_json(json, strlen(json), NULL, &q, job_error()));
    CHECK_DONE(tare_quantizer_lint(q, see, &seen, &count, job_error()));
    CHECK_HOLDS(tare__text_chars(&seen), words);
    tare__text_release(&seen);
    tare_quantizer_destroy(q);
}

static void specs_that_cannot_work_are_found(void **state) {
    (void)state;
    check_spec(WITH_SPEC(PLAIN AFFINE "\"dtype\": \"torch.int8\", \"quant_min\": 0, \"quant_max\": "
                                      "255, " OBSERVER("MinMaxObserver")),
               "$.specs.s.quant_max: torch.int8 does not hold 255\n");
    check_spec(WITH_SPEC(PLAIN AFFINE "\"dtype\": \"torch.int8\", \"quant_min\": 0, " OBSERVER(
                   "MinMaxObserver")),
               "$.specs.s.quant_max: the other end of the range is missing\n");
    check_spec(WITH_SPEC(PLAIN AFFINE "\"dtype\": \"torch.int8\", " OBSERVER("MinMaxObsever")),
               "$.specs.s.observer_or_fake_quant_ctr: there is no observer 'MinMaxObsever'\n");
    check_spec(
        WITH_SPEC(PLAIN AFFINE "\"dtype\": \"torch.int8\", " OBSERVER("PerChannelMinMaxObserver")),
        "$.specs.s.qscheme: PerChannelMinMaxObserver does not give torch.per_tensor_affine\n");
    check_spec(WITH_SPEC(PLAIN
                         "\"dtype\": \"torch.int8\", \"qscheme\": "
                         "\"torch.per_channel_symmetric\", " OBSERVER("PerChannelMinMaxObserver")),
               "$.specs.s.ch_axis: a scheme per channel needs an axis\n"
               "$.config.output_activation: ");
    check_spec(WITH_SPEC(PLAIN AFFINE "\"dtype\": \"torch.float16\", " OBSERVER("MinMaxObserver")),
               "torch.float16 is not an integer dtype, so nothing is observed\n");
    check_spec(
        WITH_SPEC(PLAIN AFFINE
                  "\"dtype\": \"torch.int8\", " OBSERVER("FusedMovingAvgObsFakeQuantize")),
        "$.config.is_qat: FusedMovingAvgObsFakeQuantize is for training, is_qat is not set\n");
#define FIXED(rest)                                                                                \
    "\"spec\": \"FixedQParamsQuantizationSpec\", " AFFINE "\"dtype\": \"torch.int8\", " rest
    check_spec(WITH_SPEC(FIXED("\"scale\": 0.5, \"zero_point\": 0")),
               "$.specs.s.quant_min: fixed parameters have no range\n");
    check_spec(WITH_SPEC(FIXED("\"scale\": -1, \"zero_point\": 200, \"quant_min\": -128, "
                               "\"quant_max\": 127")),
               "$.specs.s.scale: no scale is -1\n"
               "$.specs.s.zero_point: 200 lies outside of -128..127\n");
    check_spec(WITH_SPEC("\"spec\": \"DerivedQuantizationSpec\", " AFFINE
                         "\"dtype\": \"torch.int32\", \"derived_from\": [{\"node\": \"a\"}], "
                         "\"derive_qparams_fn\": "
                         "\"_derive_bias_qparams_from_act_and_weight_qparams\""),
               "$.specs.s.derived_from: the bias rule takes two sources, not 1\n");
}

static void unused_specs_are_found(void **state) {
    (void)state;
    static const char json[] = "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"q\", "
                               "\"specs\": {\"lost\": " SPEC "}, \"config\": {}, \"rules\": []}";
    tare_quantizer *q = NULL;
    text seen = {0};
    size_t count = 0;
    CHECK_DONE(tare_quantizer_from_json(json, strlen(json), NULL, &q, job_error()));
    CHECK_DONE(tare_quantizer_lint(q, see, &seen, &count, job_error()));
    assert_string_equal(tare__text_chars(&seen), "$.specs.lost: nothing uses the spec 'lost'\n");
    tare__text_release(&seen);
    tare_quantizer_destroy(q);
}

static bool ignore(void *user, const char *chars, size_t length) {
    (void)user, (void)chars, (void)length;
    return true;
}

static void memory_may_end_at_any_place(void **state) {
    (void)state;
    tare_quantizer *q = NULL;
    tare_status status = TARE_OK;
    file("both.json",
         "{\"quantizers\": {\"toy\": {\"global\": {\"input_activation\": " SPEC "}}}}");
    const tare_quantizer_open_options options = {.struct_size = sizeof options,
                                                 .settings_path = temp_path("both.json")};
    EVERY_ALLOCATION_FAILS(
        status,
        status = tare_quantizer_open("XNNPACKQuantizer,examples/data/toy_quantizer.json", &options,
                                     &q, NULL),
        (tare_quantizer_destroy(q), q = NULL));
    size_t count = 0;
    text out = {0};
    CHECK_DONE(tare_quantizer_open(toy, NULL, &q, job_error()));
    EVERY_ALLOCATION_FAILS(status, status = tare_quantizer_lint(q, see, &out, &count, NULL),
                           (void)0);
    EVERY_ALLOCATION_FAILS(status, status = tare_quantizer_show(q, true, ignore, NULL, NULL),
                           (void)0);
    tare__text_release(&out);
    tare_quantizer_destroy(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantizers_are_found_by_what_they_are_called),
        cmocka_unit_test(settings_go_to_the_quantizer_that_they_name),
        cmocka_unit_test(configs_are_of_training_or_not_as_asked),
        cmocka_unit_test(showing_lists_rules_and_parts),
        cmocka_unit_test(the_linter_finds_what_cannot_be_meant),
        cmocka_unit_test(rules_and_lists_may_not_speak_of_the_same),
        cmocka_unit_test(specs_that_cannot_work_are_found),
        cmocka_unit_test(unused_specs_are_found),
        cmocka_unit_test(memory_may_end_at_any_place),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
