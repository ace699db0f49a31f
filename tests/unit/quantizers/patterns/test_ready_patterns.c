// SPDX-License-Identifier: Apache-2.0
// Ready-made patterns in networks that torch exported.
// Data: tests/data/ready_patterns.json, recorded by tests/data/record_ready.py with PyTorch 2.15.
#include "core/json/json.h"
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

static tare_subgraph_matches *find(const tare_model *model, const char *name,
                                   tare_subgraph_pattern **p) {
    tare_subgraph_matches *m = NULL;
    CHECK_DONE(tare_subgraph_pattern_ready(name, p, job_error()));
    CHECK_DONE(tare_subgraph_find(*p, model, &m, job_error()));
    return m;
}

static size_t check_network(const json_t *network) {
    const char *code = json_string_value(json_object_get(network, "exported")), *name = NULL;
    tare_model *model = new_exported(NULL, code);
    size_t wrong = 0;
    json_t *wanted = NULL;
    json_object_foreach(json_object_get(network, "matches"), name, wanted) {
        tare_subgraph_pattern *p = NULL;
        tare_subgraph_matches *m = find(model, name, &p);
        const size_t count = tare_subgraph_matches_count(m);
        if (count != (size_t)json_integer_value(wanted)) {
            print_message("%s: %zu of %s, not %lld in\n%s",
                          json_string_value(json_object_get(network, "name")), count, name,
                          (long long)json_integer_value(wanted), code);
            wrong++;
        }
        tare_subgraph_matches_destroy(m);
        tare_subgraph_pattern_destroy(p);
    }
    tare_model_destroy(model);
    return wrong;
}

static void patterns_are_found_in_what_torch_exports(void **state) {
    (void)state;
    json_t *networks = NULL;
    size_t wrong = 0;
    CHECK_DONE(tare__json_parse_file("tests/data/ready_patterns.json", &networks, job_error()));
    assert_true(json_array_size(networks) > 50);
    for (size_t i = 0; i < json_array_size(networks); i++)
        wrong += check_network(json_array_get(networks, i));
    assert_int_equal(wrong, 0);
    json_decref(networks);
}

static const char *named(const tare_subgraph_matches *m, const char *name) {
    const tare_node *n = tare_subgraph_match_node(m, 0, name);
    return n != NULL ? tare_node_name(n) : "-";
}

static void matches_tell_parts_by_name(void **state) {
    (void)state;
    tare_model *model = new_exported(
        NULL, "def forward(self, x, w, g, b, m, v):\n"
              "    conv2d = torch.ops.aten.conv2d.default(x, w, None, [2, 2])\n"
              "    norm = torch.ops.aten.batch_norm.default(conv2d, g, b, m, v, True, 0.1, "
              "1e-05, True)\n"
              "    add = torch.ops.aten.add.Tensor(x, norm)\n"
              "    relu_ = torch.ops.aten.relu_.default(add)\n"
              "    return (relu_, x)\n");
    tare_subgraph_pattern *p = NULL;
    tare_subgraph_matches *m = find(model, "conv_bn_add_relu", &p);
    tare_argument stride;
    tare_edge edge;
    // What is added is the layer's own input.
    assert_int_equal(tare_subgraph_matches_count(m), 1);
    assert_string_equal(named(m, "input"), "x");
    assert_string_equal(named(m, "other"), "x");
    assert_string_equal(named(m, "output"), "relu_");
    assert_true(tare_subgraph_match_edge(m, 0, "other", 0, &edge));
    assert_string_equal(tare_node_name(edge.node), "add");
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    m = find(model, "conv2d_bn", &p);
    assert_int_equal(tare_subgraph_matches_count(m), 1);
    assert_string_equal(named(m, "input"), "x");
    assert_string_equal(named(m, "weight"), "w");
    assert_string_equal(named(m, "bias"), "-");
    assert_string_equal(named(m, "layer"), "conv2d");
    assert_string_equal(named(m, "norm"), "norm");
    assert_string_equal(named(m, "output"), "norm");
    assert_true(tare_subgraph_match_argument(m, 0, "stride", &stride));
    assert_int_equal(stride.kind, TARE_ARGUMENT_LIST);
    assert_true(tare_subgraph_match_edge(m, 0, "input", 0, &edge));
    assert_string_equal(tare_node_name(edge.node), "conv2d");
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
}

static void every_listed_name_is_a_pattern(void **state) {
    (void)state;
    tare_ready_pattern ready;
    size_t i = 0;
    for (; tare_subgraph_ready_at(i, &ready); i++) {
        tare_subgraph_pattern *p = NULL;
        CHECK_DONE(tare_subgraph_pattern_ready(ready.name, &p, job_error()));
        assert_true(strlen(ready.what) > 0);
        tare_subgraph_pattern_destroy(p);
    }
    assert_true(i > 40);
}

static void unknown_names_get_a_hint(void **state) {
    (void)state;
    tare_subgraph_pattern *p = NULL;
    CHECK_REFUSED(tare_subgraph_pattern_ready("layer_nrom", &p, job_error()), TARE_NOT_FOUND,
                  "layer_norm");
    CHECK_REFUSED(tare_subgraph_pattern_ready("conv_bn_rely", &p, job_error()), TARE_NOT_FOUND,
                  "no ready-made pattern 'conv_bn_rely'");
    CHECK_REFUSED(tare_subgraph_pattern_ready("conv2", &p, job_error()), TARE_NOT_FOUND, "conv2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_found_in_what_torch_exports),
        cmocka_unit_test(matches_tell_parts_by_name),
        cmocka_unit_test(every_listed_name_is_a_pattern),
        cmocka_unit_test(unknown_names_get_a_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
