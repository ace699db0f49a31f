// SPDX-License-Identifier: Apache-2.0
// Observers become quantize, dequantize and reference modules, or a reason why they do not.
#include "support/models.h"
#include "support/test.h"

#define NN   "torch.nn."
#define NNQR "torch.ao.nn.quantized.reference."

typedef struct flow {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *prepared;
} flow;

static flow x86_flow(tare_model *model) {
    flow f = {builtin_backend("x86"), default_mapping("x86"), model, NULL};
    f.prepared = prepared(model, f.backend, f.mapping);
    return f;
}

static void drop(flow *f) {
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->model);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_backend_config_destroy(f->backend);
}

static tare_model *nested_linear(void) {
    module *root = new_tree();
    put_module(root, NULL, "block.fc", NN "Linear", "in_features=3, out_features=2");
    return new_model(NULL, root,
                     "def forward(self, x):\n    block_fc = self.block.fc(x)\n"
                     "    return block_fc\n");
}

// b reads what a gives; a is called behind b, too, where nothing may change what it computes.
static void equalization_leaves_a_layer_that_is_called_twice(void **state) {
    (void)state;
    static const char per_tensor[] = "{\"global\": \"default_qconfig\"}";
    static const char *const mappings[] = {
        "{\"module_name\": [[\"b\", \"default_equalization_qconfig\"]]}",
        "{\"global\": \"default_equalization_qconfig\"}"};
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
        module *root = new_tree();
        put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=3");
        put_module(root, NULL, "b", NN "Linear", "in_features=3, out_features=3");
        flow f = {.backend = builtin_backend("x86")};
        CHECK_DONE(tare_qconfig_mapping_from_json(per_tensor, strlen(per_tensor), &f.mapping,
                                                  job_error()));
        f.model = new_model(NULL, root,
                            "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
                            "    a_1 = self.a(b)\n    return a_1\n");
        tare_qconfig_mapping *equalization = NULL;
        CHECK_DONE(tare_qconfig_mapping_from_json(mappings[i], strlen(mappings[i]), &equalization,
                                                  job_error()));
        const tare_prepare_options options = {.struct_size = sizeof options,
                                              .backend = f.backend,
                                              .qconfig_mapping = f.mapping,
                                              .equalization = equalization};
        CHECK_DONE(tare_prepare_fx(f.model, &options, &f.prepared, job_error()));
        CALIBRATED(f.prepared, 4, 3);
        tare_model *q = referenced(f.prepared, f.backend);
        CHECK_HOLDS(printed(q), "_equalization_scale0 = self.");
        const tare_tensor *given = tare__module_find_tensor(f.model->root, "a.weight");
        const tare_tensor *found = tare__module_find_tensor(q->root, "a.weight");
        for (int64_t k = 0; k < given->count; k++)
            assert_float_equal(tare__f32(found)[k], tare__f32(given)[k], 0.0f);
        tare_model_destroy(q);
        tare_qconfig_mapping_destroy(equalization);
        drop(&f);
    }
}

// A norm's subclass that activates by itself: what is called inside stays when the norm is
// replaced.
static void called_parts_outlive_the_module_around_them(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=3");
    put_module(root, NULL, "bn.act", NN "Tanh", "");
    flow f = x86_flow(new_model(NULL, root,
                                "def forward(self, x):\n    bn = self.bn(x)\n"
                                "    bn_act = self.bn.act(bn)\n    return bn_act\n"));
    CALIBRATED(f.prepared, 1, 3, 4, 4);
    tare_model *q = lowered(f.prepared, f.backend);
    CHECK_HOLDS(printed(q), "(bn): QuantizedBatchNorm2d(");
    assert_non_null(tare__module_find_const(q->root, "bn.act"));
    tare_model_destroy(q);
    drop(&f);
}

static void observers_become_quantize_and_dequantize_with_buffers(void **state) {
    (void)state;
    flow f = x86_flow(nested_linear());
    CALIBRATED(f.prepared, 4, 3);
    tare_model *q = referenced(f.prepared, f.backend);
    CHECK_HOLDS(printed(q),
                "    block_fc_input_scale_0 = self.block_fc_input_scale_0\n"
                "    block_fc_input_zero_point_0 = self.block_fc_input_zero_point_0\n"
                "    quantize_per_tensor = torch.quantize_per_tensor(x, block_fc_input_scale_0, "
                "block_fc_input_zero_point_0, torch.quint8);  x = block_fc_input_scale_0 = "
                "block_fc_input_zero_point_0 = None\n"
                "    dequantize = quantize_per_tensor.dequantize();  quantize_per_tensor = None\n"
                "    block_fc = self.block.fc(dequantize);  dequantize = None\n"
                "    block_fc_scale_0 = self.block_fc_scale_0\n"
                "    block_fc_zero_point_0 = self.block_fc_zero_point_0\n");
    CHECK_HOLDS(printed(q), "    dequantize_1 = quantize_per_tensor_1.dequantize();");
    CHECK_HOLDS(printed(q), "(fc): QuantizedLinear(Reference)(in_features=3, out_features=2");
    const tare_tensor *scale = tare__module_find_tensor(q->root, "block_fc_scale_0");
    const tare_tensor *zero = tare__module_find_tensor(q->root, "block_fc_zero_point_0");
    assert_int_equal(scale->dtype, TARE_FLOAT32);
    assert_int_equal(scale->ndim, 0);
    assert_int_equal(zero->dtype, TARE_INT64);
    assert_int_equal(zero->ndim, 0);
    assert_int_equal(tare_model_get_stage(q), TARE_STAGE_REFERENCE);
    assert_int_equal(tare_model_get_stage(f.prepared), TARE_STAGE_PREPARED);
    tare_model_destroy(q);
    drop(&f);
}

static void reference_modules_hold_the_weight_s_parameters(void **state) {
    (void)state;
    flow f = x86_flow(nested_linear());
    CALIBRATED(f.prepared, 4, 3);
    tare_model *q = referenced(f.prepared, f.backend);
    const module *fc = tare__module_find(q->root, "block.fc");
    assert_string_equal(fc->class->name, NNQR "Linear");
    const tare_tensor *scale = tare__module_tensor(fc, "weight_scale");
    assert_int_equal(scale->count, 2); // per channel
    assert_int_equal(tare__module_tensor(fc, "weight_zero_point")->count, 2);
    // Symmetric: the greatest magnitude of a row becomes 127.5, whose halves torch divides by.
    const float *w =
        tare__module_tensor(tare__module_find(f.model->root, "block.fc"), "weight")->data;
    for (int row = 0; row < 2; row++) {
        float most = 0;
        for (int i = 0; i < 3; i++)
            most = w[row * 3 + i] > most    ? w[row * 3 + i]
                   : -w[row * 3 + i] > most ? -w[row * 3 + i]
                                            : most;
        assert_true(((const float *)scale->data)[row] == most / 127.5f);
    }
    tare_model_destroy(q);
    drop(&f);
}

static void the_decomposed_form_holds_literals(void **state) {
    (void)state;
    flow f = x86_flow(nested_linear());
    CALIBRATED(f.prepared, 4, 3);
    tare_model *q = NULL;
    const tare_convert_options options = {.backend = f.backend};
    CHECK_DONE(tare_convert_to_reference_decomposed_fx(f.prepared, &options, &q, job_error()));
    CHECK_HOLDS(printed(q), "torch.ops.quantized_decomposed.quantize_per_tensor.default(x, 0.0");
    CHECK_HOLDS(printed(q), ", 0, 127, torch.uint8)"); // x86 reduces the range
    CHECK_HOLDS(printed(q), "dequantize_per_tensor.default(quantize_per_tensor_default, 0.0");
    CHECK_LACKS(printed(q), "_scale_0");
    // It clamps to the observer's range, the reference form to all of quint8's: as the histogram
    // left some values outside, results agree where those are not.
    tare_tensor *x = NEW_INPUT(4, 3);
    float *values = tare_tensor_mutable_data(x);
    for (int i = 0; i < 12; i++) values[i] *= 0.25f;
    const tare_tensor *inputs[] = {x};
    tare_model *reference = referenced(f.prepared, f.backend);
    tare_tensor *y = result_of(q, inputs, 1), *wanted = result_of(reference, inputs, 1);
    check_same_tensor(y, wanted);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(reference);
    tare_model_destroy(q);
    drop(&f);
}

static void every_observer_node_keeps_a_pair_of_its_own(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=3");
    flow f = x86_flow(new_model(NULL, root,
                                "def forward(self, x):\n    a = self.a(x)\n"
                                "    a_1 = self.a(a)\n"
                                "    cat = torch.cat([a, a_1], dim = 1)\n    return cat\n"));
    CALIBRATED(f.prepared, 4, 3);
    tare_model *q = referenced(f.prepared, f.backend);
    CHECK_HOLDS(printed(q), "a_scale_0 = self.a_scale_0");
    CHECK_HOLDS(printed(q), "a_scale_1 = self.a_scale_1"); // the smallest free number
    CHECK_HOLDS(printed(q), "cat = torch.cat([dequantize_1, dequantize_2], dim = 1)");
    CHECK_HOLDS(printed(q), "_scale_0 = self._scale_0"); // cat stands in no module
    // They shared an observer, so the buffers are equal.
    const double shared = tare__tensor_get(tare__module_find_tensor(q->root, "a_scale_0"), 0);
    assert_true(tare__tensor_get(tare__module_find_tensor(q->root, "a_scale_1"), 0) == shared);
    assert_true(tare__tensor_get(tare__module_find_tensor(q->root, "_scale_0"), 0) == shared);
    tare_model_destroy(q);
    drop(&f);
}

static void what_saw_no_data_is_an_error_or_a_warning(void **state) {
    (void)state;
    flow f = x86_flow(nested_linear());
    tare_model *q = NULL;
    tare_convert_options options = {.backend = f.backend};
    CHECK_REFUSED(tare_convert_fx(f.prepared, &options, &q, job_error()), TARE_INVALID_ARGUMENT,
                  "node 'activation_post_process_0': the observer 'activation_post_process_0' of "
                  "'x' has seen no data");
    CHECK_REFUSED(
        tare_convert_fx(f.prepared, &options, &q, job_error()), TARE_INVALID_ARGUMENT,
        "calibrate the prepared model before it is converted; tare quantize: --calibrate DATA");
    assert_null(q);
    options.is_lenient = true;
    CHECK_DONE(tare_convert_fx(f.prepared, &options, &q, job_error()));
    CHECK_HOLDS(explained(q, NULL),
                "warning: activation_post_process_0: its observer has seen no data: scale 1, zero "
                "point 0\n");
    const module *fc = tare__module_find(q->root, "block.fc");
    assert_true(tare__tensor_get(tare__module_tensor(fc, "scale"), 0) == 1.0);
    tare_model_destroy(q);
    drop(&f);
}

static void dead_integer_goes_but_what_acts_stays(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=2");
    put_module(root, NULL, "unused", NN "Linear", "in_features=3, out_features=2");
    flow f = x86_flow(new_model(NULL, root,
                                "def forward(self, x):\n    a = self.a(x)\n"
                                "    unused = self.unused(x)\n"
                                "    add_ = x.add_(1)\n    return a\n"));
    CALIBRATED(f.prepared, 4, 3);
    CHECK_HOLDS(printed(f.prepared), "unused = self.unused("); // prepare erases nothing
    tare_model *q = referenced(f.prepared, f.backend);
    CHECK_LACKS(printed(q), "unused");
    tare_model_destroy(q);
    drop(&f);
}

static void weights_that_the_backend_refuses_stay_float(void **state) {
    (void)state;
    tare_backend_config *backend = my_backend();
    tare_observer_spec *activation = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_double(activation, "eps", 1.0 / 4096);
    tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver"); // quint8
    tare_qconfig *q = tare_qconfig_create(activation, weight);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    tare_model *model = nested_linear(), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 3);
    tare_model *converted = referenced(p, backend);
    CHECK_HOLDS(printed(converted), "(fc): Linear(in_features=3, out_features=2, bias=True)");
    CHECK_HOLDS(
        decided(converted, "block_fc"),
        "convert: left float: the backend takes torch.quint8 inputs with torch.qint8 weights, "
        "the qconfig gives torch.quint8 and torch.quint8");
    tare_model_destroy(converted);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_qconfig_release(q);
    tare_observer_spec_release(weight);
    tare_observer_spec_release(activation);
    tare_backend_config_destroy(backend);
}

static void a_root_without_a_reference_class_is_left_alone(void **state) {
    (void)state;
    tare_backend_config *backend = tare_backend_config_create("bare");
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    tare_pattern_config_add_dtype_config(tare_backend_config_add(backend, NN "Linear", NULL, NULL),
                                         &d);
    tare_qconfig *q = small_qconfig();
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    tare_model *model = nested_linear(), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 3);
    tare_model *converted = referenced(p, backend);
    CHECK_HOLDS(printed(converted), "block_fc = self.block.fc(dequantize)");
    CHECK_HOLDS(printed(converted), "(fc): Linear(in_features=3");
    tare_model_destroy(converted);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_qconfig_release(q);
    tare_backend_config_destroy(backend);
}

static tare_qconfig_mapping *words_mapping(void) {
    tare_observer_spec *activation = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(activation, "dtype", TARE_INT16);
    tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
    tare_qconfig *q = tare_qconfig_create(activation, weight);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    tare_qconfig_release(q);
    tare_observer_spec_release(weight);
    tare_observer_spec_release(activation);
    return mapping;
}

// As in torch 2.15, torch.quantize_per_tensor does not know int16, but the decomposed form does.
static void observers_of_16_bits_stay_and_their_operators_count_as_float(void **state) {
    (void)state;
    tare_backend_config *backend = tare_backend_config_create("words");
    tare_pattern_config *linear = tare_backend_config_add(backend, NN "Linear", NULL, NULL);
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_INT16;
    d.weight.dtype = TARE_QINT8;
    tare_pattern_config_add_dtype_config(linear, &d);
    tare_pattern_config_set_root_module(linear, NN "Linear");
    tare_pattern_config_set_reference_quantized_module(linear, NNQR "Linear");
    tare_qconfig_mapping *mapping = words_mapping();
    tare_model *model = nested_linear(), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 3);
    tare_model *const made[] = {referenced(p, backend), lowered(p, backend)};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        tare_coverage c = {.struct_size = sizeof c};
        CHECK_OK(tare_model_coverage(made[i], &c, NULL));
        assert_int_equal(c.op_count, 1);
        assert_int_equal(c.quantized_op_count, 0);
        assert_int_equal(c.conversion_count, 0);
        CHECK_HOLDS(printed(made[i]),
                    "activation_post_process_0 = self.activation_post_process_0(x)");
        CHECK_HOLDS(decided(made[i], "block_fc"),
                    "convert: left float: FX graph mode has no quantize operator for torch.int16");
        tare_model_destroy(made[i]);
    }
    tare_model *decomposed = NULL;
    const tare_convert_options options = {.struct_size = sizeof options, .backend = backend};
    CHECK_OK(tare_convert_to_reference_decomposed_fx(p, &options, &decomposed, NULL));
    CHECK_HOLDS(printed(decomposed), "-32768, 32767, torch.int16)");
    tare_model_destroy(decomposed);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equalization_leaves_a_layer_that_is_called_twice),
        cmocka_unit_test(observers_become_quantize_and_dequantize_with_buffers),
        cmocka_unit_test(called_parts_outlive_the_module_around_them),
        cmocka_unit_test(reference_modules_hold_the_weight_s_parameters),
        cmocka_unit_test(the_decomposed_form_holds_literals),
        cmocka_unit_test(every_observer_node_keeps_a_pair_of_its_own),
        cmocka_unit_test(what_saw_no_data_is_an_error_or_a_warning),
        cmocka_unit_test(dead_integer_goes_but_what_acts_stays),
        cmocka_unit_test(weights_that_the_backend_refuses_stay_float),
        cmocka_unit_test(a_root_without_a_reference_class_is_left_alone),
        cmocka_unit_test(observers_of_16_bits_stay_and_their_operators_count_as_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
