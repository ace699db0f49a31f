// SPDX-License-Identifier: Apache-2.0
// The sentences of explain for each operator at each stage, on networks of known outcome.
#include "core/json/json.h"
#include "support/models.h"
#include "support/test.h"

typedef struct flow {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *prepared, *lowered;
} flow;

// The tutorial: its backend, with its mapping or torch's default.
static flow tutorial(const char *model_name, bool with_default) {
    flow f = {.backend = my_backend(),
              .mapping = with_default ? default_mapping("x86") : my_mapping(),
              .model = read_example(model_name)};
    f.prepared = prepared(f.model, f.backend, f.mapping);
    CALIBRATED(f.prepared, 1, 3, 3, 10);
    f.lowered = lowered(f.prepared, f.backend);
    return f;
}

static void drop(flow *f) {
    tare_model_destroy(f->lowered);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->model);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_backend_config_destroy(f->backend);
}

// One line for each operator of the float model, in its order.
static void check_lines(const tare_model *model, const char *const *starts, size_t count) {
    const char *at = explained(model, NULL);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(at, starts[i], strlen(starts[i])) != 0)
            fail_msg("line %zu does not begin with '%s':\n%s", i + 1, starts[i], at);
        at = strchr(at, '\n') + 1;
    }
    assert_string_equal(at, "");
}
#define CHECK_LINES(model, ...)                                                                    \
    check_lines((model), (const char *const[]){__VA_ARGS__},                                       \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void every_operator_has_its_sentence(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", false);
    CHECK_LINES(f.lowered,
                "linear (torch.nn.Linear): quantized: computed in integers by QuantizedLinear\n",
                "conv (torch.nn.Conv2d): quantized: computed in integers by QuantizedConvReLU2d\n",
                "relu (torch.nn.ReLU): quantized: fused into ConvReLU2d at 'conv'; computed in "
                "integers by QuantizedConvReLU2d\n",
                "sigmoid (torch.nn.Sigmoid): left float: the backend 'my_backend' has no pattern "
                "for it\n");
    drop(&f);
}

static void a_batch_norm_in_between_is_told(void **state) {
    (void)state;
    flow f = tutorial("conv_bn_relu", false);
    CHECK_LINES(
        f.lowered, "linear (torch.nn.Linear): quantized: computed in integers by QuantizedLinear\n",
        "conv (torch.nn.Conv2d): left float: the backend 'my_backend' has it only in patterns such "
        "as (torch.nn.Conv2d, torch.nn.ReLU), which its neighbours do not match\n",
        "bn (torch.nn.BatchNorm2d): left float: the backend 'my_backend' has no pattern "
        "for it\n",
        "relu (torch.nn.ReLU): left float: the backend 'my_backend' has it only in patterns such "
        "as (torch.nn.Conv2d, torch.nn.ReLU), which its neighbours do not match\n",
        "sigmoid (torch.nn.Sigmoid): left float: ");
    drop(&f);
}

static void broken_constraints_are_told(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", true);
    CHECK_LINES(f.lowered,
                "linear (torch.nn.Linear): left float: the qconfig's activation eps "
                "(1.1920929e-07) is smaller than the backend's smallest scale (0.000244140625)\n",
                "conv (torch.nn.Conv2d): left float: the qconfig's activation eps",
                "relu (torch.nn.ReLU): left float: fused into ConvReLU2d at 'conv'; the qconfig's "
                "activation eps",
                "sigmoid (torch.nn.Sigmoid): left float: the backend 'my_backend' has no pattern "
                "for it\n");
    drop(&f);
}

// Of a selector by order: which operator it names.
static void a_selector_by_order_is_told_in_full(void **state) {
    (void)state;
    flow f = {.backend = my_backend(), .mapping = my_mapping(), .model = read_example("conv_relu")};
    tare_qconfig_mapping_set_module_name_object_type_order(f.mapping, "", "torch.nn.Linear", 0,
                                                           NULL);
    f.prepared = prepared(f.model, f.backend, f.mapping);
    CALIBRATED(f.prepared, 1, 3, 3, 10);
    f.lowered = lowered(f.prepared, f.backend);
    CHECK_HOLDS(
        explained(f.lowered, NULL),
        "linear (torch.nn.Linear): left float: the qconfig mapping asks for no quantization "
        "(module_name_object_type_order: torch.nn.Linear 0 in the model)\n");
    drop(&f);
}

// A backend that fuses a convolution with its relu, and quantizes only convolutions alone.
static void a_fused_class_without_a_pattern_is_named(void **state) {
    (void)state;
    static const char json[] =
        "{\"name\": \"b\", \"configs\": [{\"pattern\": [\"torch.nn.Conv2d\", \"torch.nn.ReLU\"], "
        "\"dtype_configs\": [], \"fused_module\": \"torch.ao.nn.intrinsic.ConvReLU2d\", "
        "\"fuser_method\": \"torch.ao.quantization.fuser_method_mappings._sequential_wrapper2("
        "torch.ao.nn.intrinsic.ConvReLU2d)\"}, {\"pattern\": \"torch.nn.Conv2d\", "
        "\"dtype_configs\": "
        "[{\"input_dtype\": \"torch.quint8\", \"output_dtype\": \"torch.quint8\", "
        "\"weight_dtype\": "
        "\"torch.qint8\", \"bias_dtype\": \"torch.float32\"}], \"root_module\": "
        "\"torch.nn.Conv2d\", "
        "\"reference_quantized_module_for_root\": \"torch.ao.nn.quantized.reference.Conv2d\"}]}";
    flow f = {.mapping = default_mapping("x86"), .model = read_example("conv_relu")};
    CHECK_DONE(tare_backend_config_from_json(json, strlen(json), &f.backend, job_error()));
    f.prepared = prepared(f.model, f.backend, f.mapping);
    CALIBRATED(f.prepared, 1, 3, 3, 10);
    f.lowered = lowered(f.prepared, f.backend);
    CHECK_HOLDS(explained(f.lowered, NULL),
                "conv (torch.nn.Conv2d): left float: the backend 'b' has no pattern for "
                "torch.ao.nn.intrinsic.ConvReLU2d, into which it is fused\n");
    drop(&f);
}

static void models_on_their_way_are_told_so_far(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", false);
    CHECK_HOLDS(explained(f.prepared, NULL), "linear (torch.nn.Linear): float so far: the ");
    assert_string_equal(explained(f.model, NULL), ""); // nothing was decided
    drop(&f);
}

static void a_node_has_all_its_decisions(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", false);
    const char *whole = explained(f.lowered, "conv");
    CHECK_HOLDS(whole, "conv (torch.nn.Conv2d): quantized: ");
    CHECK_HOLDS(whole, "\n  prepare: fused: fused into ConvReLU2d at 'conv' "
                       "[torch.ao.nn.intrinsic.ConvReLU2d]\n");
    CHECK_HOLDS(whole, "\n  prepare: observed: the object_type selector "
                       "'torch.ao.nn.intrinsic.ConvReLU2d' asks for QConfig(activation=");
    CHECK_HOLDS(whole, "\n  lower: lowered: computed in integers by QuantizedConvReLU2d [");
    CHECK_LACKS(whole, "linear (");
    drop(&f);
}

static bool swallow(void *user, const char *chars, size_t length) {
    (void)chars;
    *(size_t *)user += length;
    return true;
}

static bool refuse(void *user, const char *chars, size_t length) {
    (void)user;
    (void)chars;
    (void)length;
    return false;
}

static void an_unknown_node_is_an_error_with_a_suggestion(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", false);
    size_t written = 0;
    CHECK_REFUSED(tare_model_explain(f.lowered, "sigmoit", swallow, &written, job_error()),
                  TARE_NOT_FOUND, "no decision about a node 'sigmoit'");
    CHECK_REFUSED(tare_model_explain(f.lowered, "sigmoit", swallow, &written, job_error()),
                  TARE_NOT_FOUND, "did you mean 'sigmoid'?");
    CHECK_REFUSED(tare_model_explain_json(f.lowered, "sigmoit", swallow, &written, job_error()),
                  TARE_NOT_FOUND, "did you mean 'sigmoid'?");
    assert_int_equal(written, 0);
    CHECK_REFUSED(tare_model_explain(f.lowered, NULL, refuse, NULL, job_error()), TARE_IO,
                  "refused");
    drop(&f);
}

typedef struct page {
    char chars[1 << 15];
    size_t length;
} page;

static bool collect(void *user, const char *chars, size_t length) {
    page *p = user;
    if (p->length + length > sizeof p->chars) return false;
    memcpy(p->chars + p->length, chars, length);
    p->length += length;
    return true;
}

static void json_says_the_same(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", false);
    static page p;
    p.length = 0;
    CHECK_DONE(tare_model_explain_json(f.lowered, NULL, collect, &p, job_error()));
    json_t *json = NULL;
    CHECK_DONE(tare__json_parse(p.chars, p.length, &json, job_error()));
    const json_t *operators = json_object_get(json, "operators");
    assert_int_equal(json_array_size(operators), 4);
    assert_int_equal(json_array_size(json_object_get(json, "decisions")),
                     tare_model_decision_count(f.lowered));
    char line[512];
    for (size_t i = 0; i < 4; i++) {
        const json_t *op = json_array_get(operators, i);
        snprintf(line, sizeof line, "%s (%s): %s: %s\n",
                 json_string_value(json_object_get(op, "name")),
                 json_string_value(json_object_get(op, "subject")),
                 json_string_value(json_object_get(op, "outcome")),
                 json_string_value(json_object_get(op, "reason")));
        CHECK_HOLDS(explained(f.lowered, NULL), line);
    }
    // A linear layer of 10 by 3 over 3 x 3 rows.
    assert_int_equal(json_integer_value(json_object_get(json_array_get(operators, 0), "macs")),
                     3 * 3 * 10 * 3);
    json_decref(json);
    p.length = 0;
    CHECK_DONE(tare_model_explain_json(f.lowered, "conv", collect, &p, job_error()));
    CHECK_DONE(tare__json_parse(p.chars, p.length, &json, job_error()));
    assert_int_equal(json_array_size(json_object_get(json, "operators")), 1);
    json_decref(json);
    drop(&f);
}

static void decisions_are_numbered(void **state) {
    (void)state;
    flow f = tutorial("conv_relu", false);
    const size_t count = tare_model_decision_count(f.lowered);
    assert_true(count >= 6);
    tare_decision d;
    for (size_t i = 0; i < count; i++) {
        CHECK_DONE(tare_model_decision_at(f.lowered, i, &d, job_error()));
        assert_non_null(d.pass);
        assert_non_null(d.node);
        assert_non_null(d.subject);
        assert_non_null(d.rule);
        assert_true(d.reason[0] != '\0' && d.decision[0] != '\0');
    }
    CHECK_REFUSED(tare_model_decision_at(f.lowered, count, &d, job_error()), TARE_INVALID_ARGUMENT,
                  "decision");
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_has_its_sentence),
        cmocka_unit_test(a_batch_norm_in_between_is_told),
        cmocka_unit_test(broken_constraints_are_told),
        cmocka_unit_test(a_selector_by_order_is_told_in_full),
        cmocka_unit_test(a_fused_class_without_a_pattern_is_named),
        cmocka_unit_test(models_on_their_way_are_told_so_far),
        cmocka_unit_test(a_node_has_all_its_decisions),
        cmocka_unit_test(an_unknown_node_is_an_error_with_a_suggestion),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(decisions_are_numbered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
