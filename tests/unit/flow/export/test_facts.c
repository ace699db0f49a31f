// SPDX-License-Identifier: Apache-2.0
// What the record says of annotated programs.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

static const char code[] = "def forward(self, x, w, v):\n"
                           "    conv2d = torch.ops.aten.conv2d.default(x, w)\n"
                           "    relu = torch.ops.aten.relu.default(conv2d)\n"
                           "    max_pool2d = torch.ops.aten.max_pool2d.default(relu, [2, 2])\n"
                           "    conv2d_1 = torch.ops.aten.conv2d.default(max_pool2d, v)\n"
                           "    add = torch.ops.aten.add.Tensor(conv2d_1, max_pool2d)\n"
                           "    erf = torch.ops.aten.erf.default(add)\n"
                           "    dead = torch.ops.aten.erf.default(add)\n"
                           "    return erf\n";

static tare_model *prepared_with(const char *settings_json) {
    tare_model *model = new_exported(NULL, code), *p = NULL;
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    set_module(model, "conv2d", "first", "torch.nn.modules.conv.Conv2d");
    set_module(model, "w", "first", "torch.nn.modules.conv.Conv2d");
    set_module(model, "conv2d_1", "second", "torch.nn.modules.conv.Conv2d");
    set_module(model, "erf", "last", "m.Erf");
    if (settings_json != NULL)
        CHECK_DONE(tare_quantizer_settings_from_json(settings_json, strlen(settings_json),
                                                     "XNNPACKQuantizer", &s, job_error()));
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", s, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(model, q, &p, job_error()));
    tare_quantizer_settings_destroy(s);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    return p;
}

static void every_operator_has_its_decision(void **state) {
    (void)state;
    tare_model *p = prepared_with(NULL);
    assert_string_equal(decided(p, "conv2d"), "prepare: annotated: XNNPACKQuantizer annotates 2 "
                                              "inputs as of 'conv_relu' [conv_relu]");
    assert_string_equal(decided(p, "relu"), "prepare: annotated: XNNPACKQuantizer annotates the "
                                            "output as of 'conv_relu' [conv_relu]");
    assert_string_equal(decided(p, "max_pool2d"),
                        "prepare: annotated: XNNPACKQuantizer annotates 1 input and the output as "
                        "of 'propagation' [propagation]");
    assert_string_equal(decided(p, "erf"), "prepare: left float: no rule of XNNPACKQuantizer "
                                           "annotates it [XNNPACKQuantizer]");
    assert_string_equal(decided(p, "dead"), ""); // nobody reads it
    tare_model_destroy(p);
}

static void edges_tell_specs_and_whom_they_share_with(void **state) {
    (void)state;
    tare_model *p = prepared_with(NULL);
    const char *pool = explained(p, "max_pool2d");
    CHECK_HOLDS(pool, "  quantizer: XNNPACKQuantizer, rule propagation\n");
    CHECK_HOLDS(pool, "  output: as 'relu'\n");
    CHECK_HOLDS(pool, "edge relu -> max_pool2d args[0] (input): activation_post_process_2 "
                      "(torch.ao.quantization.HistogramObserver): as 'relu'; shares the observer "
                      "of 'relu', whose spec agrees\n");
    const char *conv = explained(p, "conv2d");
    CHECK_HOLDS(conv, "  quantizer: XNNPACKQuantizer, rule conv_relu [global]\n");
    CHECK_HOLDS(conv, "edge w -> conv2d args[1] (weight): activation_post_process_1 "
                      "(torch.ao.quantization.MinMaxObserver): int8 -127..127 "
                      "per_tensor_symmetric by MinMaxObserver\n");
    CHECK_HOLDS(conv, "edge conv2d -> relu args[0] (input): no observer: both ends are inside one "
                      "pattern\n");
    CHECK_HOLDS(explained(p, "erf"), "  quantizer: XNNPACKQuantizer, no rule\n");
    tare_model_destroy(p);
}

static void every_node_and_every_edge_is_told_once(void **state) {
    (void)state;
    tare_model *p = prepared_with(NULL);
    const fact_table *nodes = &p->facts.tables[FACT_NODE], *edges = &p->facts.tables[FACT_EDGE];
    assert_int_equal(nodes->count, 7); // the calls
    assert_int_equal(edges->count, 11);
    for (int kind = FACT_NODE; kind <= FACT_EDGE; kind++) {
        const fact_table *t = &p->facts.tables[kind];
        const size_t key = kind == FACT_NODE ? 1 : 3;
        for (size_t i = 0; i < t->count; i++)
            for (size_t j = 0; j < i; j++) {
                bool is_same = true;
                for (size_t c = 0; c < key; c++)
                    is_same = is_same && !strcmp(t->rows[i].columns[c], t->rows[j].columns[c]);
                assert_false(is_same);
            }
    }
    tare_model_destroy(p);
}

static void settings_are_named_and_requests_are_checked(void **state) {
    (void)state;
    tare_model *p = prepared_with("{\"module_name\": [[\"first\", {\"default\": {}}]]}");
    CHECK_HOLDS(explained(p, "conv2d"), "rule conv [module_name: first]\n");
    CHECK_DONE(tare_model_check_requests(p, job_error()));
    tare_model_destroy(p);
    p = prepared_with("{\"module_name\": [[\"last\", {\"default\": {}}]]}");
    CHECK_REFUSED(
        tare_model_check_requests(p, job_error()), TARE_UNSUPPORTED,
        "node 'erf' (torch.ops.aten.erf.default): the module_name selector 'last' asks to "
        "quantize it, but it stays float: no rule of XNNPACKQuantizer annotates it");
    tare_model_destroy(p);
}

static void convert_tells_parameters_and_constants(void **state) {
    (void)state;
    tare_tensor *w = NULL;
    module *root = new_tree();
    const int64_t shape[] = {2, 4};
    const float weights[] = {-1, 1, 0, 0, 0.5f, 0, 0, 0}, ones[] = {-1, 1, 0, 0};
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 2, shape, weights, &w, job_error()));
    CHECK_DONE(tare__module_set_tensor(root, "w", w, true, job_error()));
    tare_tensor_release(w);
    tare_model *p = NULL, *c = NULL,
               *model = new_exported(root, "def forward(self, x):\n    w = self.w\n"
                                           "    linear = torch.ops.aten.linear.default(x, w)\n"
                                           "    return linear\n");
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(model, q, &p, job_error()));
    tare_tensor *x = NULL;
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 2, (int64_t[]){1, 4}, ones, &x, job_error()));
    CHECK_DONE(tare_calibrate(p, (const tare_tensor *const *)&x, 1, job_error()));
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    assert_string_equal(decided(c, "activation_post_process_1"),
                        "convert: converted: 'w' is quantized with scale 0.00787401572 and zero "
                        "point 0 [calibration]");
    CHECK_HOLDS(decided(c, "quantize_per_tensor_default_1"),
                "convert: folded: its integers are computed once and stored as '_frozen_param0'");
    tare_tensor_release(x);
    tare_model_destroy(c);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_quantizer_destroy(q);
}

static void coverage_counts_what_is_annotated_and_read_from_integers(void **state) {
    (void)state;
    tare_model *p = prepared_with(NULL), *c = NULL;
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    tare_coverage found = {.struct_size = sizeof found};
    CHECK_DONE(tare_convert_pt2e(p, &lenient, &c, job_error()));
    CHECK_DONE(tare_model_coverage(c, &found, job_error()));
    assert_int_equal(found.op_count, 6);
    assert_int_equal(found.quantized_op_count, 5);
    assert_int_equal(found.float_island_count, 1);
    tare_model_destroy(c);
    tare_model_destroy(p);
}

// A quantizer of one's own names its rules.
static tare_status annotate(void *self, tare_model *model, tare_error *err) {
    const tare_node *erf = tare_model_find_node(model, "erf");
    const tare_qspec_fields f = {
        .struct_size = sizeof f, .dtype = TARE_UINT8, .scale = 0.5, .has_quant_min = true};
    tare_qspec *fixed = NULL;
    (void)self;
    TARE_TRY(tare_qspec_create_fixed(&f, &fixed, err));
    tare_status status = tare_model_annotate_input(model, erf, tare_node_input(erf, 0), fixed, err);
    if (status == TARE_OK) status = tare_model_annotate_rule(model, erf, "my rule", err);
    tare_qspec_release(fixed);
    return status;
}

static void rules_of_ones_own_are_told(void **state) {
    (void)state;
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "Mine", .annotate = annotate};
    tare_model *model = new_exported(NULL, code), *p = NULL;
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_create(&class, NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(model, q, &p, job_error()));
    const char *told = explained(p, "erf");
    CHECK_HOLDS(told, "  quantizer: Mine, rule my rule\n");
    CHECK_HOLDS(told, "): uint8 of the fixed scale 0.5 and zero point 0\n");
    tare_quantizer_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_has_its_decision),
        cmocka_unit_test(edges_tell_specs_and_whom_they_share_with),
        cmocka_unit_test(every_node_and_every_edge_is_told_once),
        cmocka_unit_test(settings_are_named_and_requests_are_checked),
        cmocka_unit_test(convert_tells_parameters_and_constants),
        cmocka_unit_test(coverage_counts_what_is_annotated_and_read_from_integers),
        cmocka_unit_test(rules_of_ones_own_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
