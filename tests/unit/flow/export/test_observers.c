// SPDX-License-Identifier: Apache-2.0
// Observers of one's own in every kind of spec, from code, settings and rules.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

// The greatest magnitude / 100, so that its scales are known when they are seen.
typedef struct hundredth {
    float most;
    tare_dtype dtype;
} hundredth;

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    hundredth *made = tare__alloc(sizeof *made);
    (void)user;
    if (made == NULL) return tare__out_of_memory(err);
    *made = (hundredth){.dtype = TARE_INT8};
    tare_observer_args_dtype(args, "dtype", &made->dtype);
    info->dtype = made->dtype;
    info->qscheme = TARE_PER_TENSOR_AFFINE;
    info->has_range = info->has_qparams = true;
    info->quant_min = -128;
    info->quant_max = 127;
    *state = made;
    return TARE_OK;
}

static tare_status clone(const void *state, void **out, tare_error *err) {
    hundredth *made = tare__alloc(sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *(const hundredth *)state;
    *out = made;
    return TARE_OK;
}

static tare_status update(void *state, const tare_tensor *x, tare_error *err) {
    hundredth *s = state;
    const float *values = tare_tensor_data(x);
    (void)err;
    for (int64_t i = 0; i < tare_tensor_element_count(x); i++)
        if (values[i] > s->most) s->most = values[i];
    return TARE_OK;
}

static tare_status propose(const void *state, tare_qparams_sink sink, void *sink_user,
                           bool *is_calibrated, tare_error *err) {
    const hundredth *s = state;
    const double scale = (double)s->most / 100, zero_point = 0;
    *is_calibrated = true;
    return sink(sink_user, 1, &scale, &zero_point, err);
}

static const char *const arguments[] = {"dtype", NULL};
static const tare_observer_class hundredth_class = {.struct_size = sizeof hundredth_class,
                                                    .name = "mine.Hundredth",
                                                    .arguments = arguments,
                                                    .create = create,
                                                    .destroy = tare__free,
                                                    .clone = clone,
                                                    .update = update,
                                                    .qparams = propose};

#define CTR "\"observer_or_fake_quant_ctr\": {\"class\": \"mine.Hundredth\", \"kwargs\": {}}"
#define SPEC                                                                                       \
    "{\"spec\": \"QuantizationSpec\", \"dtype\": \"torch.int8\", \"quant_min\": -128, "            \
    "\"quant_max\": 127, \"qscheme\": \"torch.per_tensor_affine\", " CTR "}"

static tare_context *new_context(void) {
    tare_context *context = NULL;
    CHECK_DONE(tare_context_create(&context, job_error()));
    CHECK_DONE(tare_context_add_observer_class(context, &hundredth_class, job_error()));
    return context;
}

static void set_parameter(module *root, const char *name, int64_t rows, const float *values) {
    tare_tensor *t = NULL;
    const int64_t shape[] = {rows, 2};
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, rows > 0 ? 2 : 1, rows > 0 ? shape : shape + 1,
                                     values, &t, job_error()));
    CHECK_DONE(tare__module_set_tensor(root, name, t, true, job_error()));
    tare_tensor_release(t);
}

static tare_model *new_net(tare_context *context) {
    static const float weight[] = {1, 2, 3, 4}, bias[] = {5, 6};
    module *root = new_tree();
    set_parameter(root, "w", 2, weight);
    set_parameter(root, "b", 0, bias);
    tare_model *m = new_model(context, root,
                              "def forward(self, x):\n    w = self.w\n    b = self.b\n"
                              "    linear = torch.ops.aten.linear.default(x, w, b)\n"
                              "    add = torch.ops.aten.add.Tensor(linear, x)\n    return add\n");
    for (node *n = m->root->graph->first; n != NULL; n = n->next)
        n->meta_json = "{\"val\": {\"shape\": [1, 2], \"dtype\": \"torch.float32\"}}";
    return m;
}

// The converted code after one sample, (7, 8).
static const char *converted_by(const tare_model *model, const tare_quantizer *q) {
    static const float values[] = {7, 8};
    static const int64_t shape[] = {1, 2};
    tare_model *prepared = NULL, *converted = NULL;
    tare_tensor *x = NULL;
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 2, shape, values, &x, job_error()));
    CHECK_DONE(tare_prepare_pt2e(model, q, &prepared, job_error()));
    CHECK_DONE(tare_calibrate(prepared, (const tare_tensor *const *)&x, 1, job_error()));
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    const char *code = printed(converted);
    tare_tensor_release(x);
    tare_model_destroy(prepared);
    tare_model_destroy(converted);
    return code;
}

static tare_status recite(void *self, tare_model *model, tare_error *err) {
    return tare_model_annotations_from_json(model, self, strlen(self), NULL, 0, err);
}

static tare_quantizer *new_reciter(const char *annotations) {
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "Recited", .annotate = recite};
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_create(&class, (void *)annotations, &q, job_error()));
    return q;
}

static void they_stand_in_plain_shared_and_derived_specs(void **state) {
    (void)state;
    static const char annotations[] =
        "{\"linear\": {\"input_qspec_map\": [[\"x\", " SPEC "], [\"w\", " SPEC "], [\"b\", "
        "{\"spec\": \"DerivedQuantizationSpec\", \"dtype\": \"torch.int32\", \"quant_min\": "
        "-2147483648, \"quant_max\": 2147483647, \"qscheme\": \"torch.per_tensor_symmetric\", "
        "\"derived_from\": [{\"edge\": [\"x\", \"linear\"]}, {\"edge\": [\"w\", \"linear\"]}], "
        "\"derive_qparams_fn\": \"_derive_bias_qparams_from_act_and_weight_qparams\"}]]}, "
        "\"add\": {\"input_qspec_map\": [[\"x\", {\"spec\": \"SharedQuantizationSpec\", "
        "\"edge_or_node\": {\"edge\": [\"x\", \"linear\"]}}]], \"output_qspec\": " SPEC "}}";
    tare_context *context = new_context();
    tare_model *model = new_net(context);
    tare_quantizer *q = new_reciter(annotations);
    const char *code = converted_by(model, q);
    CHECK_HOLDS(code, "(x, 0.07999999821186066, 0, -128, 127, torch.int8)"); // 8 / 100
    CHECK_HOLDS(code, "0.03999999910593033, 0, -128, 127, torch.int8)");     // 4 / 100
    CHECK_HOLDS(code, "0.0031999999191612005, 0, -2147483648, 2147483647, torch.int32)");
    CHECK_HOLDS(code, "(add, ");                           // the sum is observed
    CHECK_LACKS(code, " quantize_per_tensor_default_4 ="); // x once for both readers
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    tare_context_destroy(context);
}

static void they_stand_in_settings_and_rules(void **state) {
    (void)state;
    static const char settings[] = "{\"global\": {\"input_activation\": " SPEC
                                   ", \"output_activation\": " SPEC ", \"weight\": null}}";
    static const char rules[] =
        "{\"format\": \"tare-quantizer\", \"version\": 1, \"name\": \"t\", \"specs\": "
        "{\"own\": " SPEC
        "}, \"config\": {\"input_activation\": \"own\"}, \"rules\": [{\"name\": \"linear\", "
        "\"pattern\": \"def forward(self, x, w, b):\\n    y = torch.nn.functional.linear(x, w, "
        "b)\\n    return (y, {'x': x, 'y': y})\\n\", \"annotations\": {\"y\": "
        "{\"input_qspec_map\": [[\"x\", \"input_activation\"]]}}}]}";
    tare_context *context = new_context();
    tare_model *model = new_net(context);
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_settings_from_json(settings, strlen(settings), "XNNPACKQuantizer", &s,
                                                 job_error()));
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", s, &q, job_error()));
    CHECK_HOLDS(converted_by(model, q), "(x, 0.07999999821186066, 0, -128, 127, torch.int8)");
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(s);
    CHECK_DONE(tare_quantizer_from_json(rules, strlen(rules), NULL, &q, job_error()));
    CHECK_HOLDS(converted_by(model, q), "(x, 0.07999999821186066, 0, -128, 127, torch.int8)");
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    tare_context_destroy(context);
}

static void what_they_make_must_be_what_the_spec_says(void **state) {
    (void)state;
    static const char wide[] = "{\"linear\": {\"input_qspec_map\": [[\"x\", {\"spec\": "
                               "\"QuantizationSpec\", \"dtype\": \"torch.int8\", \"quant_min\": 0, "
                               "\"quant_max\": 127, " CTR "}]]}}";
    static const char symmetric[] =
        "{\"linear\": {\"input_qspec_map\": [[\"x\", {\"spec\": \"QuantizationSpec\", \"dtype\": "
        "\"torch.int8\", \"qscheme\": \"torch.per_tensor_symmetric\", " CTR "}]]}}";
    static const char dynamic[] =
        "{\"linear\": {\"input_qspec_map\": [[\"x\", {\"spec\": \"QuantizationSpec\", \"dtype\": "
        "\"torch.int8\", \"is_dynamic\": true, " CTR "}]]}}";
    static const char *const bad[][2] = {{wide, "the spec's range is not -128..127"},
                                         {symmetric, "the spec says torch.per_tensor_symmetric"},
                                         {dynamic, "the spec is dynamic"}};
    tare_context *context = new_context();
    tare_model *model = new_net(context), *prepared = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tare_quantizer *q = new_reciter(bad[i][0]);
        CHECK_REFUSED(tare_prepare_pt2e(model, q, &prepared, job_error()), TARE_INVALID_ARGUMENT,
                      bad[i][1]);
        tare_quantizer_destroy(q);
    }
    tare_model_destroy(model);
    tare_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_stand_in_plain_shared_and_derived_specs),
        cmocka_unit_test(they_stand_in_settings_and_rules),
        cmocka_unit_test(what_they_make_must_be_what_the_spec_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
