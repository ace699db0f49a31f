// SPDX-License-Identifier: Apache-2.0
// Custom configs: as JSON, and what prepare and convert make of them.
#include "config/custom_config.h"
#include "ops/text/print.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include <math.h>

// --- JSON ---

static tare_prepare_custom_config *read_prepare(const char *json) {
    tare_prepare_custom_config *c = NULL;
    CHECK_DONE(tare_prepare_custom_config_from_json(json, strlen(json), &c, job_error()));
    return c;
}

static void configs_read_back_what_they_write(void **state) {
    (void)state;
    static const char full[] =
        "{\n \"standalone_module_name\": [[\"sub\", null, null, {\n \"input_quantized_idxs\": "
        "[0],\n"
        " \"output_quantized_idxs\": [0]\n}, null]],\n"
        " \"standalone_module_class\": [[\"my.Block\", null, null, null, null]],\n"
        " \"float_to_observed_custom_module_class\": {\"static\": {\"my.A\": \"my.B\"}},\n"
        " \"non_traceable_module_name\": [\"a\", \"b.c\"],\n"
        " \"non_traceable_module_class\": [\"my.Loop\"],\n \"input_quantized_idxs\": [1, 0],\n"
        " \"output_quantized_idxs\": [2],\n \"preserved_attributes\": [\"version\"]\n}\n";
    tare_prepare_custom_config *c = read_prepare(full), *copy = NULL;
    char *written = NULL, *again = NULL;
    CHECK_DONE(tare_prepare_custom_config_to_json(c, &written, job_error()));
    assert_string_equal(written, full);
    CHECK_DONE(tare__prepare_custom_config_clone(c, &copy, job_error()));
    CHECK_DONE(tare_prepare_custom_config_to_json(copy, &again, job_error()));
    assert_string_equal(again, full);
    tare_string_free(written);
    tare_string_free(again);
    tare_prepare_custom_config_destroy(copy);
    tare_prepare_custom_config_destroy(c);

    static const char convert[] = "{\n \"observed_to_quantized_custom_module_class\": {\"static\": "
                                  "{\"my.B\": \"my.C\"}},\n \"preserved_attributes\": [\"x\"]\n}\n";
    tare_convert_custom_config *to = NULL;
    CHECK_DONE(tare_convert_custom_config_from_json(convert, strlen(convert), &to, job_error()));
    CHECK_DONE(tare_convert_custom_config_to_json(to, &written, job_error()));
    assert_string_equal(written, convert);
    tare_string_free(written);
    tare_convert_custom_config_destroy(to);

    tare_fuse_custom_config *fuse = tare_fuse_custom_config_create();
    tare_fuse_custom_config_set_preserved_attributes(fuse, (const char *const[]){"x"}, 1);
    CHECK_DONE(tare_fuse_custom_config_to_json(fuse, &written, job_error()));
    assert_string_equal(written, "{\n \"preserved_attributes\": [\"x\"]\n}\n");
    tare_string_free(written);
    tare_fuse_custom_config_destroy(fuse);
}

static void what_is_wrong_is_named_by_its_path(void **state) {
    (void)state;
    static const struct {
        const char *json, *words;
    } rows[] = {
        {"{\"output_quantized_idx\": [0]}", "output_quantized_idx"},
        {"{\"input_quantized_idxs\": [-1]}", "expected an index >= 0, found -1"},
        {"{\"input_quantized_idxs\": 0}", "$.input_quantized_idxs"},
        {"{\"standalone_module_name\": [[\"sub\"]]}", "$.standalone_module_name[0]"},
        {"{\"standalone_module_name\": [[\"sub\", null, [1], null, null]]}", "no effect"},
        {"{\"standalone_module_name\": [[\"sub\", {\"globl\": null}, null, null, null]]}",
         "$.standalone_module_name[0][1]"},
        {"{\"non_traceable_module_name\": [3]}", "$.non_traceable_module_name[0]"},
        {"{\"float_to_observed_custom_module_class\": {\"dynamic\": {}}}",
         "set_float_to_observed_mapping is currently only supported for static quantization"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_prepare_custom_config *c = NULL;
        CHECK_REFUSED(tare_prepare_custom_config_from_json(rows[i].json, strlen(rows[i].json), &c,
                                                           job_error()),
                      TARE_MALFORMED_FILE, rows[i].words);
        assert_null(c);
    }
}

static void a_setter_s_failure_is_told_where_the_config_is_used(void **state) {
    (void)state;
    tare_prepare_custom_config *c = tare_prepare_custom_config_create();
    char *json = NULL;
    tare_prepare_custom_config_set_float_to_observed(c, "my.A", NULL);
    CHECK_REFUSED(tare_prepare_custom_config_to_json(c, &json, job_error()), TARE_INVALID_ARGUMENT,
                  "expected two class names");
    tare_prepare_custom_config_set_preserved_attributes(NULL, NULL, 0); // nothing happens
    tare_prepare_custom_config_destroy(c);
}

// --- the flow ---

static tare_backend_config *backend;
static tare_qconfig_mapping *mapping;
static tare_context *context;

// y = x * factor, of float, observed and quantized classes.
static tare_status same_shape(void *user, const tare_module *m, const tare_tensor *const *inputs,
                              size_t count, int *ndim, int64_t *shape, tare_error *err) {
    (void)user;
    (void)m;
    (void)err;
    assert_int_equal(count, 1);
    *ndim = tare_tensor_ndim(inputs[0]);
    memcpy(shape, tare_tensor_shape(inputs[0]), (size_t)*ndim * sizeof *shape);
    return TARE_OK;
}

static tare_status scale(void *user, const tare_module *m, const tare_tensor *const *inputs,
                         size_t count, tare_tensor *out, tare_error *err) {
    (void)user;
    (void)count;
    (void)err;
    const double factor = tare_module_config_double(m, "factor", 1);
    for (int64_t i = 0; i < tare_tensor_element_count(out); i++)
        ((float *)tare_tensor_mutable_data(out))[i] =
            ((const float *)tare_tensor_data(inputs[0]))[i] * (float)factor;
    return TARE_OK;
}

// Codes in, codes out.
static tare_status scale_codes(void *user, const tare_module *m, const tare_tensor *const *inputs,
                               size_t count, tare_tensor *out, tare_error *err) {
    (void)user;
    (void)count;
    (void)err;
    const double factor = tare_module_config_double(m, "factor", 1);
    assert_int_equal(tare_tensor_dtype(inputs[0]), TARE_QUINT8);
    assert_int_equal(tare_tensor_dtype(out), TARE_QUINT8);
    for (int64_t i = 0; i < tare_tensor_element_count(out); i++) {
        const double x = (((const uint8_t *)tare_tensor_data(inputs[0]))[i] -
                          tare_tensor_zero_point(inputs[0], 0)) *
                         tare_tensor_scale(inputs[0], 0);
        const double q = x * factor / tare_tensor_scale(out, 0) + tare_tensor_zero_point(out, 0);
        ((uint8_t *)tare_tensor_mutable_data(out))[i] = (uint8_t)(q < 0     ? 0
                                                                  : q > 255 ? 255
                                                                            : q + 0.5);
    }
    return TARE_OK;
}

static tare_status from_float(void *user, const tare_module *source,
                              const tare_weight_qparams *weight, tare_module *made,
                              tare_error *err) {
    (void)user;
    assert_null(weight); // of the observed class
    return tare_module_copy_config(made, source, err);
}

static tare_status from_observed(void *user, const tare_module *source,
                                 const tare_weight_qparams *output, tare_module *made,
                                 tare_error *err) {
    (void)user;
    assert_string_equal(tare_module_class_name(source), "my.Observed");
    assert_non_null(output);
    assert_int_equal(output->count, 1);
    assert_true(output->scale[0] > 0);
    return tare_module_copy_config(made, source, err);
}

static const tare_module_class rows[] = {
    {.struct_size = sizeof(tare_module_class),
     .name = "my.Float",
     .print_name = "Float",
     .role = TARE_MODULE_FLOAT,
     .shape = same_shape,
     .forward = scale},
    {.struct_size = sizeof(tare_module_class),
     .name = "my.Observed",
     .print_name = "Observed",
     .role = TARE_MODULE_OBSERVED,
     .from_float = from_float,
     .shape = same_shape,
     .forward = scale},
    {.struct_size = sizeof(tare_module_class),
     .name = "my.Quantized",
     .print_name = "Quantized",
     .role = TARE_MODULE_QUANTIZED,
     .from_float = from_observed,
     .shape = same_shape,
     .forward = scale_codes},
};

static int begin(void **state) {
    (void)state;
    backend = builtin_backend("x86");
    mapping = default_mapping("x86");
    CHECK_DONE(tare_context_create(&context, job_error()));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_DONE(tare_context_add_module_class(context, &rows[i], job_error()));
    return 0;
}

static int end(void **state) {
    (void)state;
    tare_context_destroy(context);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return 0;
}

#define LINEAR "in_features=3, out_features=3"
#define NN     "torch.nn."

// A module of a user's class with a graph of its own, as the exporter writes a leaf.
static void put_block(module *root, const char *path) {
    static const char code[] = "def forward(self, x):\n    c = self.c(x)\n    return c\n";
    module *block = new_tree();
    const value class_name = tare__string("Block");
    put_module(block, NULL, "c", NN "Linear", LINEAR);
    CHECK_DONE(tare__parse_code(code, strlen(code), block, &block->graph, job_error()));
    CHECK_DONE(tare__module_set_config(block, "class_name", &class_name, job_error()));
    CHECK_DONE(tare__module_set_path(root, path, block, &tare__class_container, job_error()));
    tare__module_release(block);
}

static tare_model *block_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", LINEAR);
    put_block(root, "sub");
    return new_model(NULL, root,
                     "def forward(self, x):\n    a = self.a(x)\n    sub = self.sub(a)\n"
                     "    return sub\n");
}

static tare_status prepare_with(const tare_model *model, const char *json, tare_model **out) {
    tare_prepare_custom_config *custom = read_prepare(json);
    const tare_prepare_options options = {.struct_size = sizeof options,
                                          .backend = backend,
                                          .qconfig_mapping = mapping,
                                          .custom_config = custom};
    const tare_status status = tare_prepare_fx(model, &options, out, job_error());
    tare_prepare_custom_config_destroy(custom);
    return status;
}

static tare_model *through_file(tare_model *model) {
    tare_model *read = NULL;
    CHECK_DONE(tare_model_write(model, temp_path("model.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("model.safetensors"), context, &read, job_error()));
    tare_model_destroy(model);
    return read;
}

static void a_standalone_module_of_a_class_is_lowered_by_itself(void **state) {
    (void)state;
    tare_model *model = block_model(), *p = NULL;
    CHECK_DONE(prepare_with(model,
                            "{\"standalone_module_class\": [[\"Block\", null, null, "
                            "{\"input_quantized_idxs\": [0], \"output_quantized_idxs\": [0]}, "
                            "null]]}",
                            &p));
    p = through_file(p); // what convert needs to know of the block goes along
    CALIBRATED(p, 2, 3);
    tare_model *l = lowered(p, backend);
    CHECK_HOLDS(printed(l), "  (sub): GraphModule(\n    (c): QuantizedLinear(");
    CHECK_HOLDS(printed(l), "    sub = self.sub(a);  a = None\n    dequantize");
    CHECK_HOLDS(decided(l, "sub.c"), "lower: lowered");
    tare_tensor *x = NEW_INPUT(2, 3);
    tare_tensor *y = result_of(l, (const tare_tensor *const[]){x}, 1);
    assert_int_equal(tare_tensor_dtype(y), TARE_FLOAT32);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(l);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static void a_block_that_nobody_names_stays_one_float_call(void **state) {
    (void)state;
    tare_model *model = block_model(), *p = NULL;
    CHECK_DONE(prepare_with(model, "{\"non_traceable_module_name\": [\"sub\"]}", &p));
    CHECK_HOLDS(printed(p), "(sub): Block(\n    (c): Linear(");
    CALIBRATED(p, 2, 3);
    tare_model *l = lowered(p, backend);
    CHECK_HOLDS(printed(l), "    dequantize_1 = a.dequantize();  a = None\n"
                            "    sub = self.sub(dequantize_1);  dequantize_1 = None\n"
                            "    return sub\n");
    tare_model_destroy(l);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static void selectors_that_match_nothing_are_refused(void **state) {
    (void)state;
    tare_model *model = block_model(), *p = NULL;
    CHECK_REFUSED(prepare_with(model, "{\"non_traceable_module_class\": [\"Blok\"]}", &p),
                  TARE_NOT_FOUND, "non_traceable_module_class selector 'Blok'");
    CHECK_REFUSED(
        prepare_with(model, "{\"standalone_module_name\": [[\"b\", null, null, null, null]]}", &p),
        TARE_NOT_FOUND, "standalone_module_name selector 'b'");
    CHECK_REFUSED(
        prepare_with(model, "{\"standalone_module_name\": [[\"a\", null, null, null, null]]}", &p),
        TARE_UNSUPPORTED, "has no graph of its own");
    CHECK_REFUSED(prepare_with(model, "{\"input_quantized_idxs\": [1]}", &p), TARE_INVALID_ARGUMENT,
                  "the model has 1 inputs");
    CHECK_REFUSED(prepare_with(model, "{\"preserved_attributes\": [\"version\"]}", &p),
                  TARE_NOT_FOUND, "no attribute 'version'");
    tare_model_destroy(model);
}

static tare_status convert_custom(const tare_model *p, tare_model **out) {
    tare_convert_custom_config *custom = tare_convert_custom_config_create();
    tare_convert_custom_config_set_observed_to_quantized(custom, "my.Observed", "my.Quantized");
    const tare_convert_options options = {
        .struct_size = sizeof options, .backend = backend, .custom_config = custom};
    const tare_status status = tare_convert_fx(p, &options, out, job_error());
    tare_convert_custom_config_destroy(custom);
    return status;
}

static void a_custom_module_is_observed_and_quantized_by_its_classes(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", LINEAR);
    put_module(root, context, "s", "my.Float", "factor=-2.0");
    tare_model *p = NULL, *l = NULL,
               *model = new_model(context, root,
                                  "def forward(self, x):\n    a = self.a(x)\n"
                                  "    s = self.s(a)\n    return s\n");
    CHECK_DONE(prepare_with(model,
                            "{\"float_to_observed_custom_module_class\": {\"static\": "
                            "{\"my.Float\": \"my.Observed\"}}}",
                            &p));
    CHECK_HOLDS(printed(p), "(s): Observed()");
    p = through_file(p);
    CALIBRATED(p, 2, 3);
    CHECK_DONE(convert_custom(p, &l));
    CHECK_HOLDS(printed(l), "    s = self.s(a);  a = None\n    dequantize");
    CHECK_HOLDS(printed(l), "(s): Quantized()");
    l = through_file(l);
    tare_tensor *x = NEW_INPUT(2, 3);
    tare_tensor *y = result_of(l, (const tare_tensor *const[]){x}, 1);
    tare_tensor *wanted = result_of(model, (const tare_tensor *const[]){x}, 1);
    for (int64_t i = 0; i < tare_tensor_element_count(y); i++)
        assert_true(fabs(tare__tensor_get(y, i) - tare__tensor_get(wanted, i)) < 0.1);
    tare_tensor_release(wanted);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(l);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static void preserved_attributes_survive_prepare_and_convert(void **state) {
    (void)state;
    static const char *const names[] = {"unused", "head"};
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", LINEAR);
    put_module(root, NULL, "head", NN "Linear", LINEAR);
    tare_tensor *t = NEW_INPUT(4);
    CHECK_DONE(tare__module_set_tensor(root, "unused", t, false, job_error()));
    tare_tensor_release(t);
    tare_model *p = NULL, *l = NULL,
               *model = new_model(NULL, root,
                                  "def forward(self, x):\n    a = self.a(x)\n"
                                  "    return a\n");
    tare_fuse_custom_config *fuse = tare_fuse_custom_config_create();
    tare_fuse_custom_config_set_preserved_attributes(fuse, names, 2);
    CHECK_DONE(tare_fuse_fx_custom(model, backend, fuse, &l, job_error()));
    assert_non_null(tare__module_tensor(l->root, "unused"));
    tare_fuse_custom_config_destroy(fuse);
    tare_model_destroy(l);
    CHECK_DONE(prepare_with(model, "{\"preserved_attributes\": [\"unused\", \"head\"]}", &p));
    CALIBRATED(p, 2, 3);
    tare_convert_custom_config *custom = tare_convert_custom_config_create();
    tare_convert_custom_config_set_preserved_attributes(custom, names, 2);
    const tare_convert_options options = {
        .struct_size = sizeof options, .backend = backend, .custom_config = custom};
    CHECK_DONE(tare_convert_fx(p, &options, &l, job_error()));
    assert_non_null(tare__module_tensor(l->root, "unused"));
    CHECK_HOLDS(printed(l), "(head): Linear(in_features=3, out_features=3, bias=True)");
    tare_convert_custom_config_destroy(custom);
    tare_model_destroy(l);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static void operands_by_keyword_are_lowered_and_alpha_is_not_lost(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", LINEAR);
    tare_model *p = NULL, *model = new_model(NULL, root,
                                             "def forward(self, x):\n    a = self.a(x)\n"
                                             "    add = torch.add(a, other = a)\n"
                                             "    add_1 = torch.add(add, a, alpha = 2)\n"
                                             "    return add_1\n");
    CHECK_DONE(prepare_with(model, "{}", &p));
    CALIBRATED(p, 2, 3);
    tare_model *l = lowered(p, backend);
    CHECK_HOLDS(printed(l), "torch.ops.quantized.add(a, a, ");
    CHECK_HOLDS(printed(l), "torch.add(dequantize_2, dequantize_1, alpha = 2)");
    tare_model_destroy(l);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static void original_weights_are_kept_when_asked_for(void **state) {
    (void)state;
    module *root = new_tree();
    tare_tensor *w = NEW_INPUT(2, 3), *b = NEW_INPUT(2);
    CHECK_DONE(tare__module_set_tensor(root, "w", w, true, job_error()));
    CHECK_DONE(tare__module_set_tensor(root, "b", b, true, job_error()));
    tare_model *p = NULL, *l = NULL,
               *model = new_model(NULL, root,
                                  "def forward(self, x):\n    w = self.w\n    b = self.b\n"
                                  "    linear = torch._C._nn.linear(x, w, b)\n"
                                  "    return linear\n");
    CHECK_DONE(prepare_with(model, "{}", &p));
    CALIBRATED(p, 2, 3);
    const tare_convert_options options = {
        .struct_size = sizeof options, .backend = backend, .keeps_original_weights = true};
    CHECK_DONE(tare_convert_fx(p, &options, &l, job_error()));
    l = through_file(l);
    check_same_tensor(tare_model_original_weight(l, "_packed_weight_0", 0), w);
    check_same_tensor(tare_model_original_weight(l, "_packed_weight_0", 1), b);
    assert_int_equal(
        tare_tensor_element_count(tare_model_original_weight(l, "_packed_weight_0", 2)), 2);
    assert_null(tare_model_original_weight(l, "_packed_weight_0", 4));
    assert_null(tare_model_original_weight(l, "_packed_weight_1", 0));
    tare_model_destroy(l);
    l = lowered(p, backend);
    assert_null(tare_model_original_weight(l, "_packed_weight_0", 0));
    tare_tensor_release(w);
    tare_tensor_release(b);
    tare_model_destroy(l);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static tare_status whole_job(const tare_model *model) {
    static const char json[] =
        "{\"standalone_module_name\": [[\"sub\", null, null, {\"input_quantized_idxs\": [0], "
        "\"output_quantized_idxs\": [0]}, null]], \"output_quantized_idxs\": [0]}";
    tare_prepare_custom_config *custom = NULL;
    tare_model *p = NULL, *r = NULL;
    tare_status status =
        tare_prepare_custom_config_from_json(json, strlen(json), &custom, job_error());
    const tare_prepare_options options = {.struct_size = sizeof options,
                                          .backend = backend,
                                          .qconfig_mapping = mapping,
                                          .custom_config = custom};
    const tare_convert_options lenient = {
        .struct_size = sizeof lenient, .backend = backend, .is_lenient = true};
    if (status == TARE_OK) status = tare_prepare_fx(model, &options, &p, job_error());
    if (status == TARE_OK)
        status = tare_model_write(p, temp_path("model.safetensors"), job_error());
    if (status == TARE_OK) status = tare_convert_fx(p, &lenient, &r, job_error());
    tare_model_destroy(r);
    tare_model_destroy(p);
    tare_prepare_custom_config_destroy(custom);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = block_model();
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = whole_job(model), (void)0);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs_read_back_what_they_write),
        cmocka_unit_test(what_is_wrong_is_named_by_its_path),
        cmocka_unit_test(a_setter_s_failure_is_told_where_the_config_is_used),
        cmocka_unit_test_setup_teardown(a_standalone_module_of_a_class_is_lowered_by_itself, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_block_that_nobody_names_stays_one_float_call, begin, end),
        cmocka_unit_test_setup_teardown(selectors_that_match_nothing_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_custom_module_is_observed_and_quantized_by_its_classes,
                                        begin, end),
        cmocka_unit_test_setup_teardown(preserved_attributes_survive_prepare_and_convert, begin,
                                        end),
        cmocka_unit_test_setup_teardown(operands_by_keyword_are_lowered_and_alpha_is_not_lost,
                                        begin, end),
        cmocka_unit_test_setup_teardown(original_weights_are_kept_when_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, begin, end),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
