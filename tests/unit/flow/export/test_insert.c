// SPDX-License-Identifier: Apache-2.0
// Annotations of edges, sources and values that no observer can watch are refused by name.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

#define SPEC                                                                                       \
    "{\"spec\": \"QuantizationSpec\", \"dtype\": \"torch.int8\", \"quant_min\": -128, "            \
    "\"quant_max\": 127, \"qscheme\": \"torch.per_tensor_affine\", "                               \
    "\"observer_or_fake_quant_ctr\": {\"class\": \"MinMaxObserver\", \"kwargs\": {}}}"
#define SHARED(what) "{\"spec\": \"SharedQuantizationSpec\", \"edge_or_node\": " what "}"
#define DERIVED(sources)                                                                           \
    "{\"spec\": \"DerivedQuantizationSpec\", \"dtype\": \"torch.int32\", \"derived_from\": "       \
    "[" sources "], \"derive_qparams_fn\": \"_derive_bias_qparams_from_act_and_weight_qparams\"}"

// A quantizer that says what it is told.
static tare_status say(void *self, tare_model *model, tare_error *err) {
    return tare_model_annotations_from_json(model, self, strlen(self), NULL, 0, err);
}

static tare_status prepare(const tare_model *model, const char *annotations, tare_model **out) {
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "Recited", .annotate = say};
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_create(&class, (void *)annotations, &q, job_error()));
    const tare_status status = tare_prepare_pt2e(model, q, out, job_error());
    tare_quantizer_destroy(q);
    return status;
}

static const char code[] = "def forward(self, x, w, b):\n"
                           "    linear = torch.ops.aten.linear.default(x, w, b)\n"
                           "    relu = torch.ops.aten.relu.default(linear)\n"
                           "    chunk = torch.ops.aten.chunk.default(relu, 2)\n"
                           "    getitem = chunk[0]\n"
                           "    add = torch.ops.aten.add.Tensor(getitem, 1, alpha = x)\n"
                           "    return add\n";

static tare_model *new_net(void) {
    tare_model *model = new_exported(NULL, code);
    node *chunk = tare__graph_find(model->root->graph, "chunk");
    chunk->meta_json = "{\"val\": [{\"shape\": [2], \"dtype\": \"torch.float32\"}, "
                       "{\"shape\": [2], \"dtype\": \"torch.float32\"}]}";
    return model;
}

static void check_bad(const char *annotations, tare_status status, const char *words) {
    tare_model *model = new_net(), *prepared = NULL;
    CHECK_REFUSED(prepare(model, annotations, &prepared), status, words);
    assert_null(prepared);
    tare_model_destroy(model);
}

static void edges_must_exist(void **state) {
    (void)state;
    check_bad("{\"relu\": {\"input_qspec_map\": [[\"x\", " SPEC "]]}}", TARE_NOT_FOUND,
              "node 'relu' is annotated with a spec for its input 'x', which it does not read");
    check_bad("{\"nobody\": {\"output_qspec\": " SPEC "}}", TARE_NOT_FOUND, "nobody");
}

static void sources_must_be_observed(void **state) {
    (void)state;
    check_bad("{\"linear\": {\"input_qspec_map\": [[\"x\", " SPEC "], [\"b\", " DERIVED(
                  "{\"edge\": [\"x\", \"linear\"]}, {\"edge\": [\"w\", \"linear\"]}") "]]}}",
              TARE_INVALID_ARGUMENT,
              "it is derived from ('w', 'linear'), which is not "
              "observed");
    check_bad("{\"linear\": {\"input_qspec_map\": [[\"x\", " SPEC
              "], [\"w\", null], [\"b\", " DERIVED(
                  "{\"edge\": [\"x\", \"linear\"]}, {\"edge\": [\"w\", \"linear\"]}") "]]}}",
              TARE_INVALID_ARGUMENT, "('w', 'linear'), which is not observed");
}

static void sharing_needs_something_annotated(void **state) {
    (void)state;
    check_bad(
        "{\"relu\": {\"input_qspec_map\": [[\"linear\", " SHARED("{\"node\": \"linear\"}") "]]}}",
        TARE_NOT_FOUND, "('linear', 'relu') is to share with 'linear', which is not annotated");
    check_bad(
        "{\"linear\": {\"output_qspec\": " SHARED(
            "{\"node\": \"relu\"}") "}, \"relu\": "
                                    "{\"input_qspec_map\": [[\"linear\", " SPEC
                                    "]], \"output_qspec\": " SHARED("{\"node\": \"linear\"}") "}}",
        TARE_INVALID_ARGUMENT, "none gives the parameters: 'linear' -> 'relu' -> 'linear'");
}

static void derived_and_shared_specs_may_not_wait_for_each_other(void **state) {
    (void)state;
    check_bad("{\"linear\": {\"input_qspec_map\": [[\"x\", " SHARED(
                  "{\"edge\": [\"b\", \"linear\"]}") "], [\"w\", " SPEC
                                                     "], [\"b\", " DERIVED(
                                                         "{\"edge\": [\"x\", \"linear\"]}, "
                                                         "{\"edge\": [\"w\", \"linear\"]}") "]]}}",
              TARE_INVALID_ARGUMENT,
              "none gives the parameters: ('x', 'linear') -> ('b', 'linear') -> ('x', 'linear')");
}

static void several_tensors_have_no_observer(void **state) {
    (void)state;
    check_bad("{\"getitem\": {\"input_qspec_map\": [[\"chunk\", " SPEC "]]}}",
              TARE_INVALID_ARGUMENT, "its input 'chunk', which gives several tensors");
    // As in torch, an output's spec has no effect there; the record says so.
    tare_model *model = new_net(), *prepared = NULL;
    CHECK_DONE(prepare(model, "{\"chunk\": {\"output_qspec\": " SPEC "}}", &prepared));
    CHECK_LACKS(printed(prepared), "activation_post_process");
    bool is_said = false;
    tare_decision d = {.struct_size = sizeof d};
    for (size_t i = 0; i < tare_model_decision_count(prepared); i++) {
        CHECK_DONE(tare_model_decision_at(prepared, i, &d, job_error()));
        is_said = is_said || (strcmp(d.node, "chunk") == 0 &&
                              strstr(d.reason, "its output is not a single tensor") != NULL);
    }
    assert_true(is_said);
    tare_model_destroy(prepared);
    tare_model_destroy(model);
}

static void integers_have_no_observer(void **state) {
    (void)state;
    tare_model *model = new_net(), *prepared = NULL;
    set_dtype(model, "linear", TARE_INT32);
    CHECK_REFUSED(
        prepare(model, "{\"relu\": {\"input_qspec_map\": [[\"linear\", " SPEC "]]}}", &prepared),
        TARE_INVALID_ARGUMENT, "its input 'linear', which holds torch.int32");
    assert_null(prepared);
    tare_model_destroy(model);
}

static void keywords_are_not_observed(void **state) {
    (void)state;
    check_bad(
        "{\"add\": {\"input_qspec_map\": [[\"x\", " SPEC "]]}}", TARE_INVALID_ARGUMENT,
        "Kwarg 'alpha' contained type <class 'torch.fx.node.Node'> which is not supported for "
        "annotation.");
}

// The chain of producers of a first argument that is a number has no node to start at.
static void an_in_place_call_may_begin_with_a_number(void **state) {
    static const char in_place[] = "def forward(self, x):\n"
                                   "    add_ = torch.ops.aten.add_.Tensor(1, x)\n"
                                   "    return add_\n";
    (void)state;
    tare_model *model = new_exported(NULL, in_place), *prepared = NULL;
    CHECK_DONE(prepare(model, "{\"add_\": {\"input_qspec_map\": [[\"x\", " SPEC "]]}}", &prepared));
    CHECK_HOLDS(printed(prepared), "add_.Tensor(1, activation_post_process_0)");
    tare_model_destroy(prepared);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_must_exist),
        cmocka_unit_test(sources_must_be_observed),
        cmocka_unit_test(sharing_needs_something_annotated),
        cmocka_unit_test(derived_and_shared_specs_may_not_wait_for_each_other),
        cmocka_unit_test(several_tensors_have_no_observer),
        cmocka_unit_test(integers_have_no_observer),
        cmocka_unit_test(keywords_are_not_observed),
        cmocka_unit_test(an_in_place_call_may_begin_with_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
