// SPDX-License-Identifier: Apache-2.0
// Partitions of strict and default exports by source, with filters and chains of them.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

static const char code[] = "def forward(self, x, y):\n"
                           "    w = self.conv.weight\n"
                           "    conv2d = torch.ops.aten.conv2d.default(x, w)\n"
                           "    relu = torch.ops.aten.relu.default(conv2d)\n"
                           "    add = torch.ops.aten.add.Tensor(relu, y)\n"
                           "    relu_1 = torch.ops.aten.relu.default(add)\n"
                           "    return (relu_1, conv2d)\n";

static tare_model *new_net(void) {
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=4, out_channels=4, kernel_size=(1, 1)");
    return new_exported(root, code);
}

static const char *names(const tare_node *const *nodes, size_t count) {
    static char kept[4][256];
    static int next;
    char *out = kept[next++ % 4];
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (i > 0) strcat(out, " ");
        strcat(out, tare_node_name(nodes[i]));
    }
    return out;
}

// As a strict export leaves it: weights belong to the calls.
static tare_model *new_strict(void) {
    tare_model *model = new_net();
    set_source(model, "w", "conv", "torch.nn.Conv2d");
    set_source(model, "conv2d", "conv", "torch.nn.Conv2d");
    set_source(model, "relu", "relu", "torch.nn.ReLU");
    set_source(model, "add", "add", "operator.add");
    set_source(model, "relu_1", "relu_1", "torch.nn.functional.relu");
    return model;
}

// As a default export leaves it: the modules that ran.
static tare_model *new_default(void) {
    tare_model *model = new_net();
    set_module(model, "conv2d", "conv", "torch.nn.modules.conv.Conv2d");
    set_module(model, "relu", "relu", "torch.nn.modules.activation.ReLU");
    set_module(model, "relu_1", "relu", "torch.nn.modules.activation.ReLU");
    return model;
}

static void a_strict_export_gives_weights_to_their_call(void **state) {
    (void)state;
    tare_model *model = new_strict();
    const char *const wanted[] = {"torch.nn.ReLU", "torch.nn.Conv2d"};
    tare_partitions *found = NULL;
    tare_partition p;
    CHECK_OK(tare_source_partitions(model, wanted, 2, NULL, NULL, &found, NULL));
    assert_int_equal(tare_partitions_count(found), 2);
    assert_true(tare_partitions_at(found, 0, 0, &p)); // its nodes come first in the graph
    assert_string_equal(p.source, "torch.nn.Conv2d");
    assert_string_equal(names(p.nodes, p.node_count), "w conv2d");
    assert_string_equal(names(p.inputs, p.input_count), "x");
    assert_string_equal(names(p.outputs, p.output_count), "conv2d");
    assert_string_equal(names(p.params, p.param_count), "w");
    assert_true(tare_partitions_at(found, 1, 0, &p));
    assert_string_equal(names(p.nodes, p.node_count), "relu");
    assert_false(tare_partitions_at(found, 2, 0, &p));
    assert_false(tare_partitions_at(found, 0, 1, &p));
    tare_partitions_destroy(found);
    tare_model_destroy(model);
}

static void a_default_export_knows_modules_and_bare_names(void **state) {
    (void)state;
    tare_model *model = new_default();
    const char *const wanted[] = {"torch.nn.ReLU", "add", "torch.nn.Conv2d", "operator.add"};
    tare_partitions *found = NULL;
    tare_partition p;
    CHECK_OK(tare_source_partitions(model, wanted, 4, NULL, NULL, &found, NULL));
    assert_int_equal(tare_partitions_count(found), 3);
    assert_true(tare_partitions_at(found, 0, 0, &p));
    assert_string_equal(names(p.nodes, p.node_count), "conv2d");
    assert_int_equal(p.param_count, 0);
    assert_true(tare_partitions_at(found, 1, 0, &p)); // one module that is called twice
    assert_string_equal(names(p.nodes, p.node_count), "relu relu_1");
    assert_string_equal(names(p.outputs, p.output_count), "relu relu_1");
    assert_true(tare_partitions_at(found, 2, 0, &p));
    assert_string_equal(p.source, "add");
    assert_string_equal(names(p.inputs, p.input_count), "y relu");
    tare_partitions_destroy(found);
    tare_model_destroy(model);
}

static bool is_no_weight(void *user, const tare_node *n) {
    (void)user;
    return tare_node_get_kind(n) != TARE_NODE_GET_ATTR;
}

static void torchs_note_of_a_call_wins_over_the_operators_name(void **state) {
    (void)state;
    tare_model *model = new_default();
    const char *const wanted[] = {"add", "add_"};
    tare_partitions *found = NULL;
    tare_partition p;
    tare__graph_find(model->root->graph, "relu")->meta_json =
        "{\"torch_fn\": [\"add__1\", \"method_descriptor.add_\"]}";
    tare__graph_find(model->root->graph, "add")->meta_json =
        "{\"torch_fn\": [\"add__1\", \"method_descriptor.add_\"]}";
    CHECK_OK(tare_source_partitions(model, wanted, 2, NULL, NULL, &found, NULL));
    assert_int_equal(tare_partitions_count(found), 1);
    assert_true(tare_partitions_at(found, 0, 0, &p));
    assert_string_equal(p.source, "add_");
    assert_string_equal(names(p.nodes, p.node_count), "relu add");
    tare_partitions_destroy(found);
    tare_model_destroy(model);
}

static void a_filter_drops_whole_partitions(void **state) {
    (void)state;
    tare_model *model = new_strict();
    const char *const wanted[] = {"torch.nn.ReLU", "torch.nn.Conv2d"};
    tare_partitions *found = NULL;
    tare_partition p;
    CHECK_OK(tare_source_partitions(model, wanted, 2, is_no_weight, NULL, &found, NULL));
    assert_int_equal(tare_partitions_count(found), 1);
    assert_true(tare_partitions_at(found, 0, 0, &p));
    assert_string_equal(p.source, "torch.nn.ReLU");
    tare_partitions_destroy(found);
    tare_model_destroy(model);
}

static void chains_connect_types_and_their_equivalents(void **state) {
    (void)state;
    tare_model *model = new_strict();
    const char *const types[] = {"torch.add", "torch.nn.ReLU"};
    tare_partitions *found = NULL;
    tare_partition p;
    CHECK_OK(tare_sequential_partitions(model, types, 2, NULL, 0, NULL, NULL, &found, NULL));
    assert_int_equal(tare_partitions_count(found), 1);
    assert_true(tare_partitions_at(found, 0, 1, &p));
    assert_string_equal(p.source, "torch.nn.functional.relu");
    tare_partitions_destroy(found);
    // Without groups, a type is itself.
    static const char *const alone[] = {"a", NULL};
    static const char *const *const groups[] = {alone};
    CHECK_OK(tare_sequential_partitions(model, types, 2, groups, 1, NULL, NULL, &found, NULL));
    assert_int_equal(tare_partitions_count(found), 0);
    tare_partitions_destroy(found);
    tare_model_destroy(model);
}

static void types_of_a_chain_must_differ(void **state) {
    (void)state;
    tare_model *model = new_default();
    const char *const types[] = {"torch.nn.ReLU", "torch.nn.functional.relu_"};
    tare_partitions *found = NULL;
    CHECK_REFUSED(
        tare_sequential_partitions(model, types, 2, NULL, 0, NULL, NULL, &found, job_error()),
        TARE_INVALID_ARGUMENT, "must be unique");
    tare_model_destroy(model);
}

static void a_node_is_in_the_modules_that_ran(void **state) {
    (void)state;
    tare_model *model = new_exported(NULL, "def forward(self, x):\n"
                                           "    a = torch.ops.aten.relu.default(x)\n"
                                           "    return a\n");
    tare_node_meta *meta = NULL;
    set_module(model, "a", "L['self'].blocks.sub", "torch.nn.modules.linear.Linear");
    CHECK_DONE(tare_node_meta_read(tare_model_find_node(model, "a"), &meta, job_error()));
    assert_true(tare_node_meta_in_module(meta, "blocks.sub"));
    assert_false(tare_node_meta_in_module(meta, "blocks")); // not among those that ran
    assert_false(tare_node_meta_in_module(meta, "sub"));
    assert_true(tare_node_meta_in_class(meta, "torch.nn.Linear"));
    assert_false(tare_node_meta_in_class(meta, "torch.nn.ReLU"));
    tare_node_meta_destroy(meta);
    // What reads a weight has no stack.
    CHECK_DONE(tare_node_meta_read(tare_model_find_node(model, "x"), &meta, job_error()));
    assert_false(tare_node_meta_in_module(meta, ""));
    tare_node_meta_destroy(meta);
    tare_model_destroy(model);
}

static void memory_may_run_out(void **state) {
    (void)state;
    tare_model *model = new_default();
    const char *const types[] = {"torch.nn.Conv2d", "torch.nn.ReLU", "operator.add"};
    tare_partitions *found = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(
        status,
        status = tare_sequential_partitions(model, types, 3, NULL, 0, NULL, NULL, &found, NULL),
        tare_partitions_destroy(found));
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strict_export_gives_weights_to_their_call),
        cmocka_unit_test(a_default_export_knows_modules_and_bare_names),
        cmocka_unit_test(torchs_note_of_a_call_wins_over_the_operators_name),
        cmocka_unit_test(a_filter_drops_whole_partitions),
        cmocka_unit_test(chains_connect_types_and_their_equivalents),
        cmocka_unit_test(types_of_a_chain_must_differ),
        cmocka_unit_test(a_node_is_in_the_modules_that_ran),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
