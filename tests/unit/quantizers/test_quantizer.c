// SPDX-License-Identifier: Apache-2.0
// The annotations of each built-in quantizer on one network, as text, and settings they refuse.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

// Two blocks, whose convolutions and activations are modules: a residual addition, pooling, a
// linear layer, a product with a number.
static const char code[] = "def forward(self, x, w1, b1, w2, w3):\n"
                           "    conv2d = torch.ops.aten.conv2d.default(x, w1, b1)\n"
                           "    relu = torch.ops.aten.relu.default(conv2d)\n"
                           "    conv2d_1 = torch.ops.aten.conv2d.default(relu, w2)\n"
                           "    add = torch.ops.aten.add.Tensor(conv2d_1, relu)\n"
                           "    relu_1 = torch.ops.aten.relu.default(add)\n"
                           "    max_pool2d = torch.ops.aten.max_pool2d.default(relu_1, [2, 2])\n"
                           "    linear = torch.ops.aten.linear.default(max_pool2d, w3)\n"
                           "    mul = torch.ops.aten.mul.Tensor(linear, 2.0)\n"
                           "    return mul\n";

static tare_model *new_net(void) {
    tare_model *model = new_exported(NULL, code);
    set_module(model, "conv2d", "a.conv", "torch.nn.modules.conv.Conv2d");
    set_module(model, "relu", "a.relu", "torch.nn.modules.activation.ReLU");
    set_module(model, "conv2d_1", "b.conv", "torch.nn.modules.conv.Conv2d");
    set_module(model, "relu_1", "b.relu", "torch.nn.modules.activation.ReLU");
    set_module(model, "linear", "fc", "torch.nn.modules.linear.Linear");
    return model;
}

static void apply(const tare_quantizer *q, tare_model *model) {
    CHECK_DONE(tare_quantizer_transform(q, model, job_error()));
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
}

static const char *annotated_by(const char *name, const tare_quantizer_settings *settings) {
    tare_model *model = new_net();
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_builtin(name, settings, &q, job_error()));
    assert_string_equal(tare_quantizer_name(q), name);
    apply(q, model);
    const char *seen = annotated(model);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    return seen;
}

static tare_quantizer_settings *new_settings(const char *quantizer, const char *json) {
    tare_quantizer_settings *s = NULL;
    CHECK_DONE(tare_quantizer_settings_from_json(json, strlen(json), quantizer, &s, job_error()));
    return s;
}

static const char *annotated_with(const char *name, const char *json) {
    tare_quantizer_settings *s = new_settings(name, json);
    const char *seen = annotated_by(name, s);
    tare_quantizer_settings_destroy(s);
    return seen;
}

static void xnnpack_observes_operands_and_shares_pools(void **state) {
    (void)state;
    assert_string_equal(annotated_by("XNNPACKQuantizer", NULL),
                        "conv2d[x: int8, w1: int8, b1: -]; relu -> int8; "
                        "conv2d_1[relu: int8, w2: int8] -> int8; "
                        "add[conv2d_1: int8, relu: int8]; relu_1 -> int8; "
                        "max_pool2d[relu_1: =relu_1] -> =relu_1; "
                        "linear[max_pool2d: int8, w3: int8] -> int8; "
                        "mul[linear: int8, _tensor_constant_0: int8] -> int8");
}

static void dynamic_xnnpack_quantizes_linear_layers_inputs(void **state) {
    (void)state;
    assert_string_equal(
        annotated_with("XNNPACKQuantizer", "{\"global\": {\"default\": {\"is_dynamic\": true}}}"),
        "linear[max_pool2d: int8, w3: int8]");
}

// Positions that are computed: their sums, products and joins stay integers, numbers beside them
// too.
static void integers_are_not_annotated(void **state) {
    (void)state;
    static const char *const names[] = {"XNNPACKQuantizer", "X86InductorQuantizer"};
    static const char *const integers[] = {"i", "add", "mul"};
    static const char *const look_ups[] = {"torch.ops.aten.embedding.default(w, mul)",
                                           "torch.ops.aten.index_select.default(w, 0, mul)"};
    for (size_t k = 0; k < 4; k++) {
        char lines[512];
        (void)snprintf(lines, sizeof lines,
                       "def forward(self, i, w):\n"
                       "    add = torch.ops.aten.add.Tensor(i, 8)\n"
                       "    mul = torch.ops.aten.mul.Tensor(add, i)\n"
                       "    cat = torch.ops.aten.cat.default([mul, add])\n"
                       "    embedding = %s\n"
                       "    return (embedding, cat)\n",
                       look_ups[k / 2]);
        tare_model *model = new_exported(NULL, lines);
        tare_quantizer *q = NULL;
        for (size_t i = 0; i < 3; i++) set_dtype(model, integers[i], TARE_INT64);
        set_source(model, "cat", "cat", "torch.cat");
        CHECK_DONE(tare_quantizer_builtin(names[k % 2], NULL, &q, job_error()));
        apply(q, model);
        assert_string_equal(annotated(model), "");
        tare_tensor *eight = tare__module_find_tensor(model->root, "_tensor_constant_0");
        assert_true(eight == NULL || (eight->dtype == TARE_INT64 && *(int64_t *)eight->data == 8));
        tare_quantizer_destroy(q);
        tare_model_destroy(model);
    }
}

static void a_gru_needs_neither_a_first_nor_a_last_state(void **state) {
    (void)state;
    static const char *const inside[] = {"zeros", "gru", "getitem"};
    tare_model *model =
        new_exported(NULL, "def forward(self, x, w1, w2):\n"
                           "    zeros = torch.ops.aten.zeros.default([1, 4, 4])\n"
                           "    gru = torch.ops.aten.gru.input(x, zeros, [w1, w2], False, 1, 0.0, "
                           "False, False, True)\n"
                           "    getitem = gru[0]\n"
                           "    return getitem\n");
    for (size_t i = 0; i < 3; i++) set_module(model, inside[i], "gru", "torch.nn.modules.rnn.GRU");
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    apply(q, model);
    assert_string_equal(annotated(model), "gru[x: int8]; getitem -> int8");
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

static void x86_lets_the_next_reader_quantize(void **state) {
    (void)state;
    assert_string_equal(annotated_by("X86InductorQuantizer", NULL),
                        "conv2d[x: uint8, w1: int8, b1: -]; conv2d_1[relu: uint8, w2: int8]; "
                        "add[relu: uint8]; max_pool2d[relu_1: uint8] -> =relu_1/max_pool2d; "
                        "linear[max_pool2d: uint8, w3: int8]");
}

static void arm_knows_layers_only(void **state) {
    (void)state;
    assert_string_equal(annotated_by("ArmInductorQuantizer", NULL),
                        "conv2d[x: int8, w1: int8, b1: -]; conv2d_1[relu: int8, w2: int8]; "
                        "add[relu: int8]; linear[max_pool2d: int8, w3: int8]");
}

static void xpu_leaves_pools_alone(void **state) {
    (void)state;
    assert_string_equal(annotated_by("XPUInductorQuantizer", NULL),
                        "conv2d[x: int8, w1: int8, b1: -]; conv2d_1[relu: int8, w2: int8]; "
                        "add[relu: int8]; linear[max_pool2d: int8, w3: int8]");
}

static void earlier_levels_win(void **state) {
    (void)state;
    assert_string_equal(annotated_with("X86InductorQuantizer",
                                       "{\"module_name\": [[\"a.conv\", null]],"
                                       " \"operator\": [[\"torch.nn.Linear\", null]],"
                                       " \"global\": {\"default\": {\"reduce_range\": true}}}"),
                        "conv2d_1[relu: uint8, w2: int8]; add[relu: uint8]; "
                        "max_pool2d[relu_1: uint8] -> =relu_1/max_pool2d");
    // As in torchao a filter refuses weights, so that only linear layers can be named.
    assert_string_equal(
        annotated_with("XNNPACKQuantizer",
                       "{\"module_type\": [[\"torch.nn.Linear\", {\"default\": {}}]]}"),
        "linear[max_pool2d: int8, w3: int8] -> int8");
    assert_string_equal(
        annotated_with("XNNPACKQuantizer",
                       "{\"operator\": [[\"torch.ops.aten.mul.Tensor\", {\"default\": {}}]]}"),
        "mul[linear: int8, _tensor_constant_0: int8] -> int8");
}

static void check_refused_settings(const char *name, const char *json, tare_status status,
                                   const char *words) {
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    tare_model *model = new_net();
    tare_status got = tare_quantizer_settings_from_json(json, strlen(json), name, &s, job_error());
    if (got == TARE_OK) got = tare_quantizer_builtin(name, s, &q, job_error());
    if (got == TARE_OK) got = tare_quantizer_annotate(q, model, job_error());
    CHECK_REFUSED(got, status, words);
    tare_quantizer_settings_destroy(s);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

static void what_would_be_ignored_is_refused(void **state) {
    (void)state;
    check_refused_settings("X86InductorQuantizer",
                           "{\"module_name\": [[\"fc\", {\"default\": {\"is_dynamic\": true}}]],"
                           " \"global\": {\"default\": {}}}",
                           TARE_INVALID_ARGUMENT, "Mixed dynamic and static");
    check_refused_settings("X86InductorQuantizer",
                           "{\"module_name\": [[\"fc\", {\"default\": {\"is_qat\": true}}]],"
                           " \"global\": {\"default\": {}}}",
                           TARE_INVALID_ARGUMENT, "Mixed QAT and Non-QAT");
    check_refused_settings("X86InductorQuantizer",
                           "{\"module_type\": [[\"torch.nn.LSTM\", {\"default\": {}}]]}",
                           TARE_INVALID_ARGUMENT, "Unable to customize");
    check_refused_settings("X86InductorQuantizer",
                           "{\"module_type\": [[\"torch.nn.Linear\", null]],"
                           " \"operator\": [[\"torch.ops.aten.linear.default\", null]]}",
                           TARE_INVALID_ARGUMENT, "mean the same operator");
    check_refused_settings("X86InductorQuantizer", "{\"operator\": [[\"torch.matmul\", null]]}",
                           TARE_NOT_FOUND, "no operator 'torch.ops.aten.matmul.default'");
    check_refused_settings("XNNPACKQuantizer", "{\"module_name\": [[\"fc\", null]]}",
                           TARE_INVALID_ARGUMENT, "None is not supported yet");
    check_refused_settings("XNNPACKQuantizer", "{\"module_name\": [[\"head\", {\"default\": {}}]]}",
                           TARE_NOT_FOUND, "no module 'head'");
    check_refused_settings("XNNPACKQuantizer", "{\"module\": []}", TARE_MALFORMED_FILE, "module");
    check_refused_settings("XPUInductorQuantizer",
                           "{\"global\": {\"default\": {\"is_qat\": true}}}", TARE_INVALID_ARGUMENT,
                           "no option 'is_qat'");
    check_refused_settings("EmbeddingQuantizer", "{\"global\": null}", TARE_INVALID_ARGUMENT,
                           "valid weight quantization spec");
}

static void an_unknown_quantizer_gets_a_hint(void **state) {
    (void)state;
    tare_quantizer *q = NULL;
    CHECK_REFUSED(tare_quantizer_builtin("X86InductorQuantiser", NULL, &q, job_error()),
                  TARE_NOT_FOUND, "did you mean 'X86InductorQuantizer'?");
}

// --- embeddings, and quantizers in a row ---

static tare_model *new_tagger(void) {
    return new_exported(NULL, "def forward(self, ids, table, w):\n"
                              "    embedding = torch.ops.aten.embedding.default(table, ids)\n"
                              "    linear = torch.ops.aten.linear.default(embedding, w)\n"
                              "    return linear\n");
}

static tare_quantizer *builtin(const char *name) {
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_builtin(name, NULL, &q, job_error()));
    return q;
}

static void quantizers_in_a_row_add_to_each_other(void **state) {
    (void)state;
    tare_quantizer *const members[] = {builtin("EmbeddingQuantizer"), builtin("XNNPACKQuantizer")};
    tare_quantizer *q = NULL;
    tare_model *model = new_tagger();
    CHECK_DONE(tare_quantizer_compose(members, 2, &q, job_error()));
    apply(q, model);
    assert_string_equal(annotated(model), "embedding[table: uint8]; "
                                          "linear[embedding: int8, w: int8] -> int8");
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

static tare_status clear_all(void *self, tare_model *model, tare_error *err) {
    (void)self, (void)err;
    tare_model_clear_annotations(model);
    return TARE_OK;
}

static void a_later_quantizer_may_not_undo_an_earlier_one(void **state) {
    (void)state;
    const tare_quantizer_class clearing = {
        .struct_size = sizeof clearing, .name = "Clearing", .annotate = clear_all};
    tare_quantizer *members[] = {builtin("EmbeddingQuantizer"), builtin("EmbeddingQuantizer")};
    tare_quantizer *q = NULL;
    tare_model *model = new_tagger();
    CHECK_DONE(tare_quantizer_compose(members, 2, &q, job_error()));
    CHECK_REFUSED(tare_quantizer_annotate(q, model, job_error()), TARE_INVALID_ARGUMENT,
                  "Quantizer EmbeddingQuantizer has changed annotations on node embedding");
    tare_quantizer_destroy(q);
    tare_model_clear_annotations(model);
    members[0] = builtin("EmbeddingQuantizer");
    CHECK_DONE(tare_quantizer_create(&clearing, NULL, &members[1], job_error()));
    CHECK_DONE(tare_quantizer_compose(members, 2, &q, job_error()));
    CHECK_REFUSED(tare_quantizer_annotate(q, model, job_error()), TARE_INVALID_ARGUMENT,
                  "Quantizer Clearing has removed annotations on node embedding");
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

static void embeddings_stay_free_for_others(void **state) {
    (void)state;
    tare_model *model = new_tagger();
    tare_quantizer *q = builtin("EmbeddingQuantizer");
    apply(q, model);
    const tare_annotation *a =
        tare_model_annotation(model, tare_model_find_node(model, "embedding"));
    assert_false(tare_annotation_is_marked(a));
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
}

// --- training ---

static const char trained[] =
    "def forward(self, x, w, b, g, h, m, v):\n"
    "    conv2d = torch.ops.aten.conv2d.default(x, w, b, [2, 2])\n"
    "    batch_norm = torch.ops.aten.batch_norm.default(conv2d, g, h, m, v, True, 0.1, 1e-05, "
    "True)\n"
    "    relu_ = torch.ops.aten.relu_.default(batch_norm)\n"
    "    return relu_\n";

static const char *trained_by(const char *name) {
    tare_model *model = new_exported(NULL, trained);
    set_module(model, "conv2d", "conv", "torch.nn.modules.conv.Conv2d");
    set_module(model, "batch_norm", "bn", "torch.nn.modules.batchnorm.BatchNorm2d");
    set_module(model, "relu_", "relu", "torch.nn.modules.activation.ReLU");
    tare_quantizer_settings *s =
        new_settings(name, "{\"global\": {\"default\": {\"is_qat\": true}}}");
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_builtin(name, s, &q, job_error()));
    apply(q, model);
    const char *seen = annotated(model);
    assert_true(tare_annotation_is_marked(
        tare_model_annotation(model, tare_model_find_node(model, "conv2d"))));
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(s);
    tare_model_destroy(model);
    return seen;
}

static void training_takes_batch_norms_into_the_pattern(void **state) {
    (void)state;
    assert_string_equal(trained_by("XNNPACKQuantizer"),
                        "conv2d[x: int8, w: int8, b: -]; relu_ -> int8");
    assert_string_equal(trained_by("X86InductorQuantizer"),
                        "conv2d[x: uint8, w: int8, b: -]; relu_ -> uint8");
    // Without an activation in its patterns, Arm's ends at the batch norm.
    assert_string_equal(trained_by("ArmInductorQuantizer"),
                        "conv2d[x: int8, w: int8, b: -]; batch_norm -> int8");
}

// --- memory ---

static tare_status whole_job(const char *name) {
    tare_quantizer *q = NULL;
    tare_model *copy = NULL;
    static tare_model *net;
    if (net == NULL) net = new_net();
    module *root = NULL;
    tare_status status = tare__module_clone(net->root, &root, NULL);
    if (status == TARE_OK) {
        status = tare__model_create(NULL, root, TARE_STAGE_FLOAT, NULL, &copy, NULL);
        if (status != TARE_OK) tare__module_release(root);
    }
    if (status == TARE_OK) status = tare_quantizer_builtin(name, NULL, &q, NULL);
    if (status == TARE_OK) status = tare_quantizer_transform(q, copy, NULL);
    if (status == TARE_OK) status = tare_quantizer_annotate(q, copy, NULL);
    tare_quantizer_destroy(q);
    tare_model_destroy(copy);
    return status;
}

static void memory_may_run_out(void **state) {
    (void)state;
    assert_int_equal(whole_job("XNNPACKQuantizer"), TARE_OK); // makes the net
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = whole_job("XNNPACKQuantizer"), (void)0);
    EVERY_ALLOCATION_FAILS(status, status = whole_job("X86InductorQuantizer"), (void)0);
}

static void memory_may_run_out_while_reading_settings(void **state) {
    (void)state;
    static const char json[] =
        "{\"module_name\": [[\"a\", {\"default\": {\"is_qat\": true, \"is_dynamic\": true}}]],"
        " \"global\": {\"weight\": null, \"is_qat\": true}}";
    tare_quantizer_settings *s = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status,
                           status = tare_quantizer_settings_from_json(
                               json, strlen(json), "X86InductorQuantizer", &s, NULL),
                           tare_quantizer_settings_destroy(s));
}

static void an_operator_may_be_left_float(void **state) {
    (void)state;
    const char *seen =
        annotated_with("XNNPACKQuantizer", "{\"global\": {\"default\": {}}, \"operator\": "
                                           "[[\"torch.ops.aten.add.Tensor\", null]]}");
    CHECK_LACKS(seen, "add[");
    CHECK_HOLDS(seen, "linear[");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_may_be_left_float),
        cmocka_unit_test(xnnpack_observes_operands_and_shares_pools),
        cmocka_unit_test(dynamic_xnnpack_quantizes_linear_layers_inputs),
        cmocka_unit_test(integers_are_not_annotated),
        cmocka_unit_test(a_gru_needs_neither_a_first_nor_a_last_state),
        cmocka_unit_test(x86_lets_the_next_reader_quantize),
        cmocka_unit_test(arm_knows_layers_only),
        cmocka_unit_test(xpu_leaves_pools_alone),
        cmocka_unit_test(earlier_levels_win),
        cmocka_unit_test(what_would_be_ignored_is_refused),
        cmocka_unit_test(an_unknown_quantizer_gets_a_hint),
        cmocka_unit_test(quantizers_in_a_row_add_to_each_other),
        cmocka_unit_test(a_later_quantizer_may_not_undo_an_earlier_one),
        cmocka_unit_test(embeddings_stay_free_for_others),
        cmocka_unit_test(training_takes_batch_norms_into_the_pattern),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(memory_may_run_out_while_reading_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
