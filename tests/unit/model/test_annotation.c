// SPDX-License-Identifier: Apache-2.0
// Annotations and their specs: torch's checks, order of inputs, JSON, and the bias's derived scale.
#include "model/annotation.h"
#include "support/models.h"
#include "support/test.h"

static tare_model *add_model(void) {
    return new_model(NULL, new_tree(),
                     "def forward(self, x, y):\n    add = x + y\n    mul = add * x\n"
                     "    return mul\n");
}

static const tare_node *node_of(const tare_model *m, const char *name) {
    const tare_node *n = tare_model_find_node(m, name);
    assert_non_null(n);
    return n;
}

static tare_qspec_fields int8_fields(tare_observer_spec *observer) {
    return (tare_qspec_fields){.struct_size = sizeof(tare_qspec_fields),
                               .dtype = TARE_INT8,
                               .observer = observer,
                               .has_quant_min = true,
                               .quant_min = -128,
                               .has_quant_max = true,
                               .quant_max = 127,
                               .qscheme = TARE_PER_TENSOR_AFFINE};
}

static tare_qspec *int8_spec(void) {
    tare_observer_spec *observer = tare_observer_spec_create("MinMaxObserver");
    const tare_qspec_fields f = int8_fields(observer);
    tare_qspec *spec = NULL;
    CHECK_DONE(tare_qspec_create(&f, &spec, job_error()));
    tare_observer_spec_release(observer);
    return spec;
}

static void specs_are_checked_with_torchs_sentences(void **state) {
    (void)state;
    tare_observer_spec *observer = tare_observer_spec_create("MinMaxObserver");
    tare_qspec *spec = NULL;
    tare_qspec_fields f = int8_fields(observer);
    f.quant_min = 3;
    f.quant_max = 1;
    CHECK_REFUSED(tare_qspec_create(&f, &spec, job_error()), TARE_INVALID_ARGUMENT,
                  "quant_min 3 must be <= quant_max 1.");
    f = int8_fields(observer);
    f.has_channel_axis = true;
    f.channel_axis = -1;
    CHECK_REFUSED(tare_qspec_create(&f, &spec, job_error()), TARE_INVALID_ARGUMENT,
                  "Ch_axis is < 0.");
    f = int8_fields(NULL);
    CHECK_REFUSED(tare_qspec_create(&f, &spec, job_error()), TARE_INVALID_ARGUMENT,
                  "needs an observer");
    f = int8_fields(observer);
    CHECK_REFUSED(tare_qspec_create_fixed(&f, &spec, job_error()), TARE_INVALID_ARGUMENT,
                  "only a QuantizationSpec has an observer");
    f = int8_fields(NULL);
    CHECK_REFUSED(
        tare_qspec_create_derived(&f, NULL, 0, tare_derive_bias_rule(), &spec, job_error()),
        TARE_INVALID_ARGUMENT, "needs derived_from");
    tare_observer_spec_release(observer);
}

static void an_annotation_keeps_the_order_of_its_inputs(void **state) {
    (void)state;
    tare_model *m = add_model();
    tare_qspec *spec = int8_spec(), *found = NULL;
    const tare_node *add = node_of(m, "add");
    assert_null(tare_model_annotation(m, add));
    CHECK_DONE(tare_model_annotate_input(m, add, node_of(m, "y"), spec, job_error()));
    CHECK_DONE(tare_model_annotate_input(m, add, node_of(m, "x"), NULL, job_error()));
    CHECK_DONE(tare_model_annotate_input(m, add, node_of(m, "y"), NULL, job_error()));
    const tare_annotation *a = tare_model_annotation(m, add);
    assert_int_equal(tare_annotation_input_count(a), 2);
    assert_string_equal(tare_annotation_input_at(a, 0, &found), "y");
    assert_null(found);
    assert_string_equal(tare_annotation_input_at(a, 1, &found), "x");
    assert_null(tare_annotation_input_at(a, 2, &found));
    assert_true(tare_annotation_allows_sharing(a) && tare_annotation_is_valid(a));
    assert_false(tare_annotation_is_marked(a));
    CHECK_REFUSED(
        tare_model_annotate_input(m, node_of(m, "mul"), node_of(m, "y"), spec, job_error()),
        TARE_INVALID_ARGUMENT, "node 'mul' does not read 'y'");
    tare_model_clear_annotation(m, add);
    assert_null(tare_model_annotation(m, add));
    tare_qspec_release(spec);
    tare_model_destroy(m);
}

static void nodes_of_other_models_are_refused(void **state) {
    (void)state;
    tare_model *m = add_model(), *other = add_model();
    CHECK_REFUSED(tare_model_annotate_output(m, node_of(other, "add"), NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "'add' is no node of this model's graph");
    tare_model_destroy(m);
    tare_model_destroy(other);
}

static const char recorded[] =
    "{\n \"add\": {\"input_qspec_map\": [[\"x\", {\"spec\": \"QuantizationSpec\", \"dtype\": "
    "\"torch.int8\", \"quant_min\": -128, \"quant_max\": 127, \"qscheme\": "
    "\"torch.per_channel_symmetric\", \"ch_axis\": 0, \"is_dynamic\": false, "
    "\"observer_or_fake_quant_ctr\": {\"class\": \"PerChannelMinMaxObserver\", \"kwargs\": "
    "{\"eps\": 0.000244140625}}}], [\"y\", {\"spec\": \"SharedQuantizationSpec\", "
    "\"edge_or_node\": {\"edge\": [\"x\", \"add\"]}}]], \"output_qspec\": {\"spec\": "
    "\"FixedQParamsQuantizationSpec\", \"dtype\": \"torch.uint8\", \"scale\": 0.00390625, "
    "\"zero_point\": 0, \"quant_min\": 0, \"quant_max\": null, \"qscheme\": null, "
    "\"is_dynamic\": false}, \"allow_implicit_sharing\": true, \"_annotated\": true},\n"
    " \"mul\": {\"input_qspec_map\": [], \"output_qspec\": {\"spec\": "
    "\"DerivedQuantizationSpec\", \"dtype\": \"torch.int32\", \"quant_min\": null, "
    "\"quant_max\": null, \"qscheme\": null, \"is_dynamic\": false, \"derived_from\": "
    "[{\"edge\": [\"x\", \"add\"]}, {\"node\": \"add\"}], \"derive_qparams_fn\": "
    "\"_derive_bias_qparams_from_act_and_weight_qparams\"}, \"allow_implicit_sharing\": false, "
    "\"_annotated\": false}\n}\n";

static void annotations_go_through_json_unchanged(void **state) {
    (void)state;
    tare_model *m = add_model(), *copy = NULL;
    char *json = NULL;
    CHECK_DONE(
        tare_model_annotations_from_json(m, recorded, strlen(recorded), NULL, 0, job_error()));
    CHECK_DONE(tare_model_annotations_to_json(m, &json, job_error()));
    assert_string_equal(json, recorded);
    tare_string_free(json);
    module *root = NULL;
    CHECK_DONE(tare__module_clone(m->root, &root, job_error()));
    CHECK_DONE(tare__model_create(NULL, root, TARE_STAGE_FLOAT, m, &copy, job_error()));
    CHECK_DONE(tare_model_annotations_to_json(copy, &json, job_error()));
    assert_string_equal(json, recorded);
    tare_string_free(json);
    tare_model_destroy(copy);
    tare_model_destroy(m);
}

static void broken_annotations_are_refused_at_their_place(void **state) {
    (void)state;
    static const struct {
        const char *json, *where;
    } rows[] = {
        {"{\"sub\": {}}", "no node 'sub'"},
        {"{\"add\": {\"input_qspec\": []}}", "input_qspec"},
        {"{\"add\": {\"input_qspec_map\": [[\"x\"]]}}", "expected a node and a spec"},
        {"{\"add\": {\"input_qspec_map\": [[\"x\", null], [\"x\", null]]}}",
         "a second entry of 'x'"},
        {"{\"add\": {\"output_qspec\": {\"spec\": \"Spec\"}}}", "no kind of spec 'Spec'"},
        {"{\"add\": {\"output_qspec\": {\"spec\": \"SharedQuantizationSpec\", \"edge_or_node\": "
         "{\"node\": \"z\"}}}}",
         "no node 'z'"},
        {"{\"add\": {\"output_qspec\": {\"spec\": \"DerivedQuantizationSpec\", \"dtype\": "
         "\"torch.int32\", \"derived_from\": [{\"node\": \"x\"}], \"derive_qparams_fn\": \"f\"}}}",
         "no rule 'f' to derive by"},
        {"{\"add\": {\"output_qspec\": {\"spec\": \"QuantizationSpec\", \"dtype\": \"torch.int\", "
         "\"observer_or_fake_quant_ctr\": {\"class\": \"MinMaxObserver\"}, \"ch_axis\": -1}}}",
         "Ch_axis is < 0."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *m = add_model();
        const tare_status status = tare_model_annotations_from_json(
            m, rows[i].json, strlen(rows[i].json), NULL, 0, job_error());
        check_refused(status, status != TARE_OK ? status : TARE_MALFORMED_FILE, rows[i].where,
                      rows[i].json);
        assert_null(tare_model_annotation(m, node_of(m, "add")));
        tare_model_destroy(m);
    }
}

static tare_status sum_channels(void *sink, int64_t count, const double *scale,
                                const double *zero_point, tare_error *err) {
    (void)err;
    double *out = sink;
    for (int64_t i = 0; i < count; i++) out[i] = scale[i] + 1000 * zero_point[i];
    return TARE_OK;
}

static void the_bias_rule_multiplies_scales(void **state) {
    (void)state;
    const double zero[] = {7, 8}, activation[] = {0.5}, weight[] = {0.25, 2};
    const tare_qparams_view sources[] = {
        {.struct_size = sizeof *sources, .count = 1, .scale = activation, .zero_point = zero},
        {.struct_size = sizeof *sources, .count = 2, .scale = weight, .zero_point = zero}};
    const tare_derive_rule *rule = tare_derive_bias_rule();
    double out[2] = {0};
    CHECK_DONE(rule->derive(rule->user, sources, 2, sum_channels, out, job_error()));
    assert_true(out[0] == 0.125 && out[1] == 1);
    CHECK_REFUSED(rule->derive(rule->user, sources, 1, sum_channels, out, job_error()),
                  TARE_INVALID_ARGUMENT, "found 1 sources");
}

static void meta_gives_modules_functions_and_shapes(void **state) {
    (void)state;
    tare_model *m = add_model();
    node *n = tare__graph_find(m->root->graph, "add");
    n->meta_json = "{\"val\": {\"shape\": [null, 3], \"dtype\": \"torch.float32\"}, "
                   "\"nn_module_stack\": [[\"L\", \"\", \"M\"], [\"L1\", \"a.b\", \"torch.nn.X\"]]"
                   ", \"source_fn_stack\": [[\"add\", \"_operator.add\"]]}";
    tare_node_meta *meta = NULL;
    CHECK_DONE(tare_node_meta_read(node_of(m, "add"), &meta, job_error()));
    assert_int_equal(meta->module_count, 2);
    assert_string_equal(meta->modules[1].name, "a.b");
    assert_string_equal(meta->modules[1].function, "torch.nn.X");
    assert_int_equal(meta->source_count, 1);
    assert_string_equal(meta->sources[0].function, "_operator.add");
    assert_true(meta->has_value && !meta->value_is_tuple && meta->value_count == 1);
    assert_int_equal(meta->values[0].rank, 2);
    assert_int_equal(meta->values[0].shape[0], -1);
    assert_int_equal(meta->values[0].shape[1], 3);
    assert_int_equal(meta->values[0].dtype, TARE_FLOAT32);
    tare_node_meta_destroy(meta);
    n->meta_json = "{\"nn_module_stack\": [3]}";
    CHECK_REFUSED(tare_node_meta_read(node_of(m, "add"), &meta, job_error()), TARE_MALFORMED_FILE,
                  "meta of node 'add'");
    CHECK_DONE(tare_node_meta_read(node_of(m, "mul"), &meta, job_error()));
    assert_false(meta->has_value);
    tare_node_meta_destroy(meta);
    tare_model_destroy(m);
}

static void memory_may_end_at_any_place(void **state) {
    (void)state;
    tare_model *m = add_model();
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(
        status,
        status = tare_model_annotations_from_json(m, recorded, strlen(recorded), NULL, 0, NULL),
        (void)0);
    char *json = NULL;
    EVERY_ALLOCATION_FAILS(status, status = tare_model_annotations_to_json(m, &json, NULL),
                           tare_string_free(json));
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(specs_are_checked_with_torchs_sentences),
        cmocka_unit_test(an_annotation_keeps_the_order_of_its_inputs),
        cmocka_unit_test(nodes_of_other_models_are_refused),
        cmocka_unit_test(annotations_go_through_json_unchanged),
        cmocka_unit_test(broken_annotations_are_refused_at_their_place),
        cmocka_unit_test(the_bias_rule_multiplies_scales),
        cmocka_unit_test(meta_gives_modules_functions_and_shapes),
        cmocka_unit_test(memory_may_end_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
