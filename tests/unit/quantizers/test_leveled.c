// SPDX-License-Identifier: Apache-2.0
// A coded quantizer, settings as for any other.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

// Every ReLU with its input and output, then a mark on what is read from it.
typedef struct counts {
    int levels, afterwards, gone;
} counts;

static tare_status annotate_relus(void *self, tare_model *model, const tare_quantizer_level *level,
                                  tare_error *err) {
    const tare_quantization_config *config = tare_level_config(level);
    ((counts *)self)->levels++;
    for (const tare_node *n = tare_model_first_node(model); n != NULL; n = tare_node_next(n)) {
        if (!tare_node_calls(n, "torch.ops.aten.relu.default")) continue;
        if (!tare_level_takes(level, &n, 1)) continue;
        TARE_TRY(tare_model_mark_annotated(model, n, true, err));
        if (config == NULL) continue;
        TARE_TRY(tare_model_annotate_input(model, n, tare_node_input(n, 0),
                                           config->input_activation, err));
        TARE_TRY(tare_model_annotate_output(model, n, config->output_activation, err));
    }
    return TARE_OK;
}

static tare_status propagate(void *self, tare_model *model, tare_error *err) {
    (void)model;
    (void)err;
    ((counts *)self)->afterwards++;
    return TARE_OK;
}

static void leave(void *self) {
    ((counts *)self)->gone++;
}

static const tare_quantizer_class relus = {
    .struct_size = sizeof relus, .name = "Relus", .annotate = propagate, .destroy = leave};

static tare_model *new_net(void) {
    tare_model *model = new_exported(NULL, "def forward(self, x):\n"
                                           "    a = torch.ops.aten.relu.default(x)\n"
                                           "    b = torch.ops.aten.relu.default(a)\n"
                                           "    c = torch.ops.aten.relu.default(b)\n"
                                           "    return c\n");
    set_module(model, "a", "body", "m.Body");
    set_module(model, "b", "head", "m.Head");
    return model;
}

#define ACT(dtype)                                                                                 \
    "{\"spec\": \"QuantizationSpec\", \"dtype\": \"torch." dtype "\", \"qscheme\": "               \
    "\"torch.per_tensor_affine\", \"observer_or_fake_quant_ctr\": {\"class\": "                    \
    "\"MinMaxObserver\", \"kwargs\": {}}}"
#define CONFIG(dtype)                                                                              \
    "{\"input_activation\": " ACT(dtype) ", \"output_activation\": " ACT(dtype) "}"

static const char *annotated_with(const char *json, counts *seen) {
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    tare_model *model = new_net();
    CHECK_DONE(tare_quantizer_settings_from_json(json, strlen(json), "Relus", &s, job_error()));
    CHECK_DONE(tare_quantizer_create_leveled(&relus, seen, annotate_relus, s, &q, job_error()));
    CHECK_DONE(tare_quantizer_transform(q, model, job_error()));
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
    const char *said = annotated(model);
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(s);
    tare_model_destroy(model);
    return said;
}

static void settings_come_one_by_one(void **state) {
    (void)state;
    counts seen = {0};
    assert_string_equal(
        annotated_with(
            "{\"global\": " CONFIG("int8") ", \"module_type\": [[\"m.Head\", null]], "
                                           "\"module_name\": [[\"body\", " CONFIG("uint8") "]]}",
            &seen),
        "a[x: uint8] -> uint8; c[b: int8] -> int8");
    assert_int_equal(seen.levels, 3);
    assert_int_equal(seen.afterwards, 1);
    assert_int_equal(seen.gone, 1);
    assert_string_equal(
        annotated_with("{\"operator\": [[\"torch.ops.aten.relu.default\", " CONFIG("int8") "]]}",
                       &seen),
        "a[x: int8] -> int8; b[a: int8] -> int8; c[b: int8] -> int8");
}

static void settings_that_fit_nothing_are_refused(void **state) {
    (void)state;
    counts seen = {0};
    tare_quantizer_settings *s = tare_quantizer_settings_create();
    tare_quantizer *q = NULL;
    tare_model *model = new_net();
    CHECK_REFUSED(tare_quantizer_create_leveled(&relus, &seen, NULL, s, &q, job_error()),
                  TARE_INVALID_ARGUMENT, "a function that annotates by them");
    tare_quantizer_settings_set_module_name(s, "tail", NULL);
    CHECK_DONE(tare_quantizer_create_leveled(&relus, &seen, annotate_relus, s, &q, job_error()));
    CHECK_REFUSED(tare_quantizer_annotate(q, model, job_error()), TARE_NOT_FOUND,
                  "the model has no module 'tail'");
    assert_int_equal(seen.levels, 0);
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(s);
    tare_model_destroy(model);
}

static void memory_may_run_out(void **state) {
    (void)state;
    counts seen = {0};
    tare_quantizer_settings *s = tare_quantizer_settings_create();
    tare_quantizer *q = NULL;
    tare_status status = TARE_OK;
    tare_quantizer_settings_set_module_name(s, "body", NULL);
    EVERY_ALLOCATION_FAILS(
        status, status = tare_quantizer_create_leveled(&relus, &seen, annotate_relus, s, &q, NULL),
        tare_quantizer_destroy(q));
    assert_int_equal(seen.gone, 1);
    tare_quantizer_settings_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_come_one_by_one),
        cmocka_unit_test(settings_that_fit_nothing_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
