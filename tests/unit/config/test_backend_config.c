// SPDX-License-Identifier: Apache-2.0
// Backend configs: embedded files byte for byte, strict reading, builders, lookups and lint.
#include "config/backend_config.h"

#include "config/embedded.h"
#include "core/system/file.h"
#include "support/test.h"
#include "tare/qconfig.h"

static tare_error *err;

static int make_error(void **state) {
    (void)state;
    err = tare_error_create();
    return err ? 0 : -1;
}

static int drop_error(void **state) {
    (void)state;
    tare_error_destroy(err);
    return 0;
}

static tare_backend_config *parse(const char *json) {
    tare_backend_config *b = NULL;
    const tare_status status = tare_backend_config_from_json(json, strlen(json), &b, err);
    if (status != TARE_OK) fail_msg("%s: %s", tare_error_where(err), tare_error_message(err));
    return b;
}

static char *to_json(const tare_backend_config *b) {
    char *json = NULL;
    CHECK_OK(tare_backend_config_to_json(b, &json, err));
    return json;
}

static tare_backend_config *builtin(const char *name) {
    tare_backend_config *b = NULL;
    CHECK_OK(tare_backend_config_builtin(name, &b, err));
    return b;
}

static bool has_suffix(const char *name, const char *suffix) {
    const size_t length = strlen(name), rest = strlen(suffix);
    return length >= rest && strcmp(name + length - rest, suffix) == 0;
}

static bool is_backend_file(const embedded_file *file) {
    return !strchr(file->name, '/') && has_suffix(file->name, ".json");
}

static bool is_builtin_name(const char *name, size_t length) {
    for (size_t i = 0; tare_backend_config_builtin_name_at(i); i++) {
        const char *known = tare_backend_config_builtin_name_at(i);
        if (strlen(known) == length && strncmp(known, name, length) == 0) return true;
    }
    return false;
}

static void every_file_is_a_builtin_and_comes_back_byte_for_byte(void **state) {
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < tare__embedded_file_count; i++) {
        const embedded_file *file = &tare__embedded_files[i];
        if (!is_backend_file(file)) continue;
        const size_t length = strlen(file->name) - strlen(".json");
        assert_true(is_builtin_name(file->name, length));
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, file->name);
        tare_backend_config *b = builtin(name);
        char *json = to_json(b);
        // One that begins with another one is written out.
        if (strcmp(name, "tare") != 0) {
            assert_int_equal(strlen(json), file->size);
            assert_memory_equal(json, file->data, file->size);
        }
        tare__free(json);
        tare_backend_config_destroy(b);
        seen++;
    }
    assert_true(seen >= 9);
    assert_null(tare_backend_config_builtin_name_at(seen));
}

static void unknown_builtins_name_the_nearest(void **state) {
    (void)state;
    tare_backend_config *b = NULL;
    assert_int_equal(tare_backend_config_builtin("qnnpak", &b, err), TARE_NOT_FOUND);
    assert_string_equal(tare_error_message(err), "no built-in backend is called 'qnnpak'");
    assert_string_equal(tare_error_hint(err), "did you mean 'qnnpack'?");
    assert_int_equal(tare_backend_config_builtin("function_names", &b, NULL), TARE_NOT_FOUND);
    assert_null(b);
}

#define CONFIG(fields) "{\"configs\": [{\"pattern\": \"torch.nn.Linear\", " fields "}]}"
#define DTYPES(fields) CONFIG("\"dtype_configs\": [" fields "]")

static const struct refusal {
    const char *json, *where, *message, *hint;
} refusals[] = {
    {"[]", "$", "expected an object, found an array", ""},
    {"{\"nam\": 1}", "$", "unknown key 'nam'", "did you mean 'name'?"},
    {"{\"name\": 1}", "$.name", "expected a string, found an integer", ""},
    {"{\"configs\": {}}", "$.configs", "expected an array, found an object", ""},
    {"{\"configs\": [1]}", "$.configs[0]",
     "Expected backend_config_dict['configs'] to be a dictionary", ""},
    {"{\"configs\": [{}]}", "$.configs[0]",
     "Either 'pattern' or 'pattern_complex_format' must be specified", ""},
    {"{\"configs\": [{\"pattern\": null}]}", "$.configs[0]",
     "Either 'pattern' or 'pattern_complex_format' must be specified", ""},
    {CONFIG("\"pattern_complex_format\": \"torch.nn.ReLU\""), "$.configs[0].pattern_complex_format",
     "Only one of 'pattern' or 'pattern_complex_format' can be set", ""},
    {"{\"configs\": [{\"pattern\": [\"torch.nn.Linear\"]}]}", "$.configs[0].pattern",
     "Expected a tuple with 2 or 3 elements, got: (torch.nn.Linear,)", ""},
    {"{\"configs\": [{\"pattern\": [\"a\", \"b\", \"c\", \"d\"]}]}", "$.configs[0].pattern",
     "Expected a tuple with 2 or 3 elements, got: (a, b, c, d)", ""},
    {"{\"configs\": [{\"pattern\": []}]}", "$.configs[0].pattern",
     "Expected a tuple with 2 or 3 elements, got: ()", ""},
    {"{\"configs\": [{\"pattern\": [\"torch.nn.Linear\", 0]}]}", "$.configs[0].pattern[1]",
     "expected a string, found an integer", ""},
    {"{\"configs\": [{\"pattern\": \"torch..Linear\"}]}", "$.configs[0].pattern",
     "expected an operator's name, found 'torch..Linear'",
     "such as torch.nn.Linear, torch.nn.functional.relu, or reshape"},
    {"{\"configs\": [{\"pattern_complex_format\": [\"operator.add\", [true]]}]}",
     "$.configs[0].pattern_complex_format[1][0]", "expected a string, found true", ""},
    {"{\"configs\": [{\"pattern_complex_format\": [0, \"torch.nn.Linear\"]}]}",
     "$.configs[0].pattern_complex_format",
     "expected a tuple of an operator and patterns of its arguments", ""},
    {"{\"configs\": [{\"pattern_complex_format\": [\"getattr\", \"a\", \"b\"]}]}",
     "$.configs[0].pattern_complex_format", "Expecting getattr pattern to have two elements", ""},
    {CONFIG("\"observation_typ\": 0"), "$.configs[0]", "unknown key 'observation_typ'",
     "did you mean 'observation_type'?"},
    {CONFIG("\"observation_type\": \"OUTPUT_SHARE_OBSERVER_WITH_INPUTS\""),
     "$.configs[0].observation_type",
     "unknown observation type 'OUTPUT_SHARE_OBSERVER_WITH_INPUTS'",
     "did you mean 'OUTPUT_SHARE_OBSERVER_WITH_INPUT'?"},
    {DTYPES("1"), "$.configs[0].dtype_configs[0]",
     "Expected a list of DTypeConfigs in backend_pattern_config_dict[\"dtype_configs\"], got "
     "'<class 'int'>'",
     ""},
    {DTYPES("{}, null"), "$.configs[0].dtype_configs[1]",
     "Expected a list of DTypeConfigs in backend_pattern_config_dict[\"dtype_configs\"], got "
     "'<class 'NoneType'>'",
     ""},
    {DTYPES("{\"input_dtype\": 3}"), "$.configs[0].dtype_configs[0].input_dtype",
     "Expected input_dtype to be a torch.dtype or DTypeWithConstraints", ""},
    {DTYPES("{\"weight_dtype\": {\"dtype\": \"torch.qint9\"}}"),
     "$.configs[0].dtype_configs[0].weight_dtype.dtype", "unknown dtype 'torch.qint9'",
     "did you mean 'torch.qint8'?"},
    {DTYPES("{\"output_dtype\": {\"quant_min_lower_bound\": 0}}"),
     "$.configs[0].dtype_configs[0].output_dtype.dtype", "expected a string, found nothing", ""},
    {DTYPES("{\"input_dtype\": {\"dtype\": \"torch.quint8\", \"scale_min\": 1}}"),
     "$.configs[0].dtype_configs[0].input_dtype", "unknown key 'scale_min'",
     "the keys here are dtype, quant_min_lower_bound, quant_max_upper_bound, "
     "scale_min_lower_bound, scale_max_upper_bound, scale_exact_match, zero_point_exact_match, "
     "allowed_qschemes, channel_axis, zero_point_lower_bound, zero_point_upper_bound, "
     "scale_power_of_two"},
    {DTYPES("{\"input_dtype\": {\"dtype\": \"torch.quint8\", \"quant_min_lower_bound\": \"0\"}}"),
     "$.configs[0].dtype_configs[0].input_dtype.quant_min_lower_bound",
     "expected a number, found a string", ""},
    {DTYPES("{\"input_dtype\": {\"dtype\": \"torch.quint8\", \"zero_point_exact_match\": 0.5}}"),
     "$.configs[0].dtype_configs[0].input_dtype.zero_point_exact_match",
     "expected an integer, found a number", ""},
    {DTYPES("{\"bias_dtype\": {\"dtype\": \"torch.float32\"}}"),
     "$.configs[0].dtype_configs[0].bias_dtype", "expected a string, found an object", ""},
    {DTYPES("{\"is_dynamic\": 1}"), "$.configs[0].dtype_configs[0].is_dynamic",
     "expected true or false, found an integer", ""},
    {CONFIG("\"root_module\": \"torch.nn.functional.linear\""), "$.configs[0].root_module",
     "expected a module class, found 'torch.nn.functional.linear'", ""},
    {CONFIG("\"reference_quantized_module\": \"torch.nn.Linear\""), "$.configs[0]",
     "unknown key 'reference_quantized_module'",
     "did you mean 'reference_quantized_module_for_root'?"},
    {CONFIG("\"fuser_method\": \"torch.ao.quantization.fuser_method_mappings.fuse_conv_bm\""),
     "$.configs[0].fuser_method",
     "no built-in fuser is called 'torch.ao.quantization.fuser_method_mappings.fuse_conv_bm'",
     "did you mean 'torch.ao.quantization.fuser_method_mappings.fuse_conv_bn'?"},
    {CONFIG("\"fuser_method\": \"mine\""), "$.configs[0].fuser_method",
     "no built-in fuser is called 'mine'", "pass a fuser of your own as a callback"},
    {CONFIG("\"fuser_method\": "
            "\"torch.ao.quantization.fuser_method_mappings._sequential_wrapper2()\""),
     "$.configs[0].fuser_method",
     "expected torch.ao.quantization.fuser_method_mappings._sequential_wrapper2(the fused class), "
     "found 'torch.ao.quantization.fuser_method_mappings._sequential_wrapper2()'",
     ""},
    {CONFIG("\"root_node_getter\": \"mine\""), "$.configs[0].root_node_getter",
     "no built-in getter is called 'mine'", "pass a getter of your own as a callback"},
    {CONFIG("\"extra_inputs_getter\": "
            "\"torch.ao.quantization.backend_config.onednn._conv_add_extra_inputs_getter_lift\""),
     "$.configs[0].extra_inputs_getter",
     "no built-in getter is called "
     "'torch.ao.quantization.backend_config.onednn._conv_add_extra_inputs_getter_lift'",
     "did you mean "
     "'torch.ao.quantization.backend_config.onednn._conv_add_extra_inputs_getter_left'?"},
    {CONFIG("\"num_tensor_args_to_observation_type\": {\"two\": "
            "\"OUTPUT_SHARE_OBSERVER_WITH_INPUT\"}"),
     "$.configs[0].num_tensor_args_to_observation_type",
     "expected a number of tensor arguments, found \"two\"", ""},
    {CONFIG("\"num_tensor_args_to_observation_type\": {\"2\": \"OUTPUT\"}"),
     "$.configs[0].num_tensor_args_to_observation_type[\"2\"]", "unknown observation type 'OUTPUT'",
     ""},
    {CONFIG("\"input_type_to_index\": {\"weigth\": 1}"), "$.configs[0].input_type_to_index.weigth",
     "unknown input 'weigth'", "did you mean 'weight'?"},
    {"{\"extends\": \"x68\"}", "$.extends", "no built-in backend is called 'x68'",
     "did you mean 'x86'?"},
    {"{\"dtypes\": {\"quint8\": {\"dtype\": \"qint8\"}}}", "$.dtypes.quint8",
     "'quint8' is a dtype, and cannot be a name for one", ""},
    {"{\"dtypes\": {\"act\": {\"dtype\": \"torch.quint9\"}}}", "$.dtypes.act.dtype",
     "unknown dtype 'torch.quint9'", "did you mean 'torch.quint8'?"},
    {"{\"dtypes\": {\"act\": \"torch.quint8\"}}", "$.dtypes.act",
     "expected an object, found a string", ""},
    {"{\"dtype_configs\": {\"int8\": {\"input\": \"quint8\"}}}", "$.dtype_configs.int8",
     "unknown key 'input'",
     "the keys here are input_dtype, output_dtype, weight_dtype, bias_dtype, is_dynamic"},
    {"{\"dtype_configs\": {\"int8\": {}}, \"configs\": [{\"pattern\": \"torch.nn.Linear\", "
     "\"dtype_configs\": [\"int4\"]}]}",
     "$.configs[0].dtype_configs[0]", "the file's 'dtype_configs' lack 'int4'",
     "did you mean 'int8'?"},
    {CONFIG("\"input_type_to_index\": {\"bias\": -1}"), "$.configs[0].input_type_to_index.bias",
     "expected the index of a positional argument, found -1", ""},
};

static void refusals_name_the_path_and_a_way_out(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        tare_backend_config *b = NULL;
        const tare_status status = tare_backend_config_from_json(r->json, strlen(r->json), &b, err);
        if (status != TARE_MALFORMED_FILE) fail_msg("not refused: %s", r->json);
        assert_null(b);
        assert_string_equal(tare_error_where(err), r->where);
        assert_string_equal(tare_error_message(err), r->message);
        assert_string_equal(tare_error_hint(err), r->hint);
    }
}

static void a_file_with_a_fault_is_named(void **state) {
    (void)state;
    tare_backend_config *b = NULL;
    assert_int_equal(tare_backend_config_read("examples/no_such_file.json", &b, err), TARE_IO);
    assert_int_equal(tare_backend_config_read("CMakeLists.txt", &b, err), TARE_MALFORMED_FILE);
    assert_non_null(strstr(tare_error_where(err), "CMakeLists.txt: line 1"));
    assert_null(b);
}

// The tutorial's dtypes: constraints on activations, none on the weight.
static tare_dtype_config tutorial_dtypes(void) {
    const tare_dtype_constraints quint8 = {.dtype = TARE_QUINT8,
                                           .set = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX |
                                                  TARE_SET_SCALE_MIN,
                                           .quant_max_upper_bound = 255,
                                           .scale_min_lower_bound = 0x1p-12};
    tare_dtype_config d = tare_dtype_config_init();
    d.input = d.output = quint8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    return d;
}

static tare_backend_config *build_tutorial(void) {
    const tare_dtype_config dtypes = tutorial_dtypes();
    tare_backend_config *b = tare_backend_config_create("my_backend");
    tare_pattern_config *linear = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_add_dtype_config(linear, &dtypes);
    tare_pattern_config_set_root_module(linear, "torch.nn.Linear");
    tare_pattern_config_set_qat_module(linear, "torch.ao.nn.qat.Linear");
    tare_pattern_config_set_reference_quantized_module(linear,
                                                       "torch.ao.nn.quantized.reference.Linear");
    tare_pattern_config *conv_relu =
        tare_backend_config_add(b, "torch.nn.Conv2d", "torch.nn.ReLU", NULL);
    tare_pattern_config_set_fused_module(conv_relu, "torch.ao.nn.intrinsic.ConvReLU2d");
    tare_pattern_config_set_fuser_method(
        conv_relu, "torch.ao.quantization.fuser_method_mappings._sequential_wrapper2("
                   "torch.ao.nn.intrinsic.ConvReLU2d)");
    tare_pattern_config *fused =
        tare_backend_config_add(b, "torch.ao.nn.intrinsic.ConvReLU2d", NULL, NULL);
    tare_pattern_config_add_dtype_config(fused, &dtypes);
    tare_pattern_config_set_root_module(fused, "torch.nn.Conv2d");
    tare_pattern_config_set_qat_module(fused, "torch.ao.nn.intrinsic.qat.ConvReLU2d");
    tare_pattern_config_set_reference_quantized_module(fused,
                                                       "torch.ao.nn.quantized.reference.Conv2d");
    return b;
}

static void the_tutorials_backend_equals_its_file(void **state) {
    (void)state;
    tare_backend_config *built = build_tutorial(), *read = NULL;
    CHECK_OK(tare_backend_config_check(built, err));
    CHECK_OK(tare_backend_config_read("examples/my_backend.json", &read, err));
    char *from_c = to_json(built), *from_file = to_json(read);
    assert_string_equal(from_c, from_file);
    tare__free(from_c);
    tare__free(from_file);
    tare_backend_config_destroy(built);
    tare_backend_config_destroy(read);
}

static tare_backend_config *parsed(const char *json) {
    tare_backend_config *b = NULL;
    CHECK_OK(tare_backend_config_from_json(json, strlen(json), &b, NULL));
    return b;
}

static void check_equal(tare_backend_config *a, tare_backend_config *b) {
    char *one = NULL, *other = NULL;
    CHECK_OK(tare_backend_config_to_json(a, &one, NULL));
    CHECK_OK(tare_backend_config_to_json(b, &other, NULL));
    assert_string_equal(one, other);
    tare_string_free(one);
    tare_string_free(other);
    tare_backend_config_destroy(a);
    tare_backend_config_destroy(b);
}

static void names_stand_for_what_they_define(void **state) {
    (void)state;
    check_equal(
        parsed(
            "{\"$schema\": \"backend-config.json\", \"name\": \"n\", "
            "\"dtypes\": {\"act\": {\"dtype\": \"torch.quint8\", \"quant_max_upper_bound\": 127}}, "
            "\"dtype_configs\": {\"int8\": {\"input_dtype\": \"act\", \"output_dtype\": \"act\", "
            "\"weight_dtype\": \"qint8\"}}, \"configs\": [{\"pattern\": \"torch.nn.Linear\", "
            "\"dtype_configs\": [\"int8\", {\"input_dtype\": \"act\"}]}]}"),
        parsed(
            "{\"name\": \"n\", \"configs\": [{\"pattern\": \"torch.nn.Linear\", \"dtype_configs\": "
            "[{\"input_dtype\": {\"dtype\": \"torch.quint8\", \"quant_max_upper_bound\": 127}, "
            "\"output_dtype\": {\"dtype\": \"torch.quint8\", \"quant_max_upper_bound\": 127}, "
            "\"weight_dtype\": \"torch.qint8\"}, "
            "{\"input_dtype\": {\"dtype\": \"torch.quint8\", \"quant_max_upper_bound\": "
            "127}}]}]}"));
}

static void a_file_extends_a_builtin(void **state) {
    (void)state;
    tare_backend_config *expected = NULL;
    CHECK_OK(tare_backend_config_builtin("x86", &expected, NULL));
    const size_t count = tare_backend_config_count(expected);
    tare_backend_config_set_name(expected, "mine");
    tare_pattern_config *linear = tare_backend_config_add(expected, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_set_root_module(linear, "torch.nn.Linear");
    tare_backend_config *extended =
        parsed("{\"extends\": \"x86\", \"name\": \"mine\", \"configs\": [{\"pattern\": "
               "\"torch.nn.Linear\", \"root_module\": \"torch.nn.Linear\"}]}");
    assert_int_equal(tare_backend_config_count(extended), count); // replaced, not added
    check_equal(extended, expected);
    tare_backend_config *plain = parsed("{\"extends\": \"x86\"}");
    assert_string_equal(tare_backend_config_name(plain), "x86");
    tare_backend_config_destroy(plain);
}

static void an_equal_key_is_replaced_in_its_place(void **state) {
    (void)state;
    tare_backend_config *b = build_tutorial();
    tare_pattern_config *other = tare_pattern_config_create();
    tare_pattern_config_set_pattern(other, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_set_observation_type(other, TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT);
    tare_backend_config_set(b, other);
    CHECK_OK(tare_backend_config_check(b, err));
    assert_int_equal(tare_backend_config_count(b), 3);
    const tare_pattern_config *first = tare_backend_config_at(b, 0);
    assert_ptr_equal(first, other);
    assert_int_equal(first->order, 0);
    assert_null(first->root_module); // nothing of the old one is merged
    assert_int_equal(first->dtype_configs.count, 0);
    // (Conv2d, ReLU) in forward order and (ReLU, Conv2d) in complex form are one key.
    tare_pattern_config *complex = tare_pattern_config_create();
    tare_pattern_config_set_pattern_complex(complex, "[\"torch.nn.ReLU\", \"torch.nn.Conv2d\"]");
    tare_backend_config_set(b, complex);
    assert_int_equal(tare_backend_config_count(b), 3);
    assert_ptr_equal(tare_backend_config_at(b, 1), complex);
    assert_null(tare_backend_config_at(b, 3));
    assert_ptr_equal(tare_backend_config_mutable_at(b, 1), complex);
    assert_null(tare_backend_config_mutable_at(b, 3));
    assert_null(tare_backend_config_mutable_at(NULL, 0));
    tare_backend_config_destroy(b);
}

static void synonyms_of_one_function_are_one_key(void **state) {
    (void)state;
    tare_backend_config *b = tare_backend_config_create(NULL);
    tare_backend_config_add(b, "torch.nn.functional.conv2d", NULL, NULL);
    tare_backend_config_add(b, "torch.add", NULL, NULL);
    tare_backend_config_add(b, "operator.add", NULL, NULL); // another object than torch.add
    tare_backend_config_add(b, "torch.conv2d", NULL, NULL);
    assert_int_equal(tare_backend_config_count(b), 3);
    char *json = to_json(b);
    assert_non_null(strstr(json, "\"pattern\": \"torch.conv2d\"")); // the spelling of the last
    assert_null(strstr(json, "functional"));
    tare__free(json);
    tare_backend_config_destroy(b);
}

static void classes_are_compared_by_their_public_names(void **state) {
    (void)state;
    tare_backend_config *b = tare_backend_config_create(NULL);
    tare_pattern_config *p =
        tare_backend_config_add(b, "torch.nn.modules.linear.Linear", NULL, NULL);
    tare_pattern_config_set_root_module(p, "torch.nn.modules.linear.Linear");
    tare_pattern_config_set_reference_quantized_module(p, "mine.Linear");
    assert_ptr_equal(tare__backend_config_for_operator(b, "torch.nn.Linear"), p);
    assert_string_equal(tare__backend_config_reference_module(b, "torch.nn.Linear"), "mine.Linear");
    char *json = to_json(b);
    assert_non_null(strstr(json, "\"pattern\": \"torch.nn.modules.linear.Linear\""));
    assert_non_null(strstr(json, "\"root_module\": \"torch.nn.modules.linear.Linear\""));
    tare__free(json);
    tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);
    assert_int_equal(tare_backend_config_count(b), 1);
    tare_backend_config_destroy(b);
}

static void overloads_are_functions_though_capitalised(void **state) {
    (void)state;
    tare_pattern_config *p = tare_pattern_config_create();
    tare_pattern_config_set_pattern(p, "torch.ops.aten.add.Tensor", NULL, NULL);
    assert_int_equal(p->complex->kind, PATTERN_FUNCTION);
    tare_pattern_config_set_pattern(p, "__main__._Mine", NULL, NULL);
    assert_int_equal(p->complex->kind, PATTERN_MODULE);
    tare_pattern_config_set_pattern(p, "getattr", NULL, NULL);
    assert_int_equal(p->complex->kind, PATTERN_FUNCTION);
    tare_pattern_config_set_pattern(p, "relu_", NULL, NULL);
    assert_int_equal(p->complex->kind, PATTERN_METHOD);
    tare_pattern_config_destroy(p);
}

// The first error of one setter, as check tells it.
#define CHECK_REFUSES(call, status, where, message)                                                \
    do {                                                                                           \
        tare_backend_config *b = tare_backend_config_create("mine");                               \
        tare_pattern_config *p = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);        \
        call;                                                                                      \
        tare_pattern_config_set_root_module(p, "not a class"); /* a later error is not told */     \
        assert_int_equal(tare_backend_config_check(b, err), status);                               \
        assert_string_equal(tare_error_where(err), where);                                         \
        assert_string_equal(tare_error_message(err), message);                                     \
        char *json = NULL;                                                                         \
        assert_int_equal(tare_backend_config_to_json(b, &json, NULL), status);                     \
        tare_backend_config_destroy(b);                                                            \
    } while (0)

#define IN_PATTERN "backend config 'mine': pattern torch.nn.Linear"

static void builders_keep_their_first_error(void **state) {
    (void)state;
    tare_dtype_config nothing = tare_dtype_config_init(), wrong = tare_dtype_config_init();
    nothing.input.set = TARE_SET_QUANT_MIN;
    wrong.is_dynamic = 2;
    CHECK_REFUSES(tare_pattern_config_set_pattern(p, "torch.nn.ReLU", NULL, NULL),
                  TARE_INVALID_ARGUMENT, IN_PATTERN,
                  "the pattern of a config inside a backend config is its key and cannot change");
    CHECK_REFUSES(tare_pattern_config_set_fuser_method(p, "mine"), TARE_NOT_FOUND, IN_PATTERN,
                  "no built-in fuser is called 'mine'");
    CHECK_REFUSES(tare_pattern_config_set_root_module(p, "reshape"), TARE_INVALID_ARGUMENT,
                  IN_PATTERN, "expected a module class, found 'reshape'");
    CHECK_REFUSES(tare_pattern_config_set_observation_type(p, (tare_observation_type)3),
                  TARE_INVALID_ARGUMENT, IN_PATTERN, "3 is no observation type");
    CHECK_REFUSES(tare_pattern_config_add_dtype_config(p, NULL), TARE_INVALID_ARGUMENT, IN_PATTERN,
                  "expected a dtype config, found NULL");
    CHECK_REFUSES(tare_pattern_config_add_dtype_config(p, &nothing), TARE_INVALID_ARGUMENT,
                  IN_PATTERN,
                  "input_dtype has constraints but no dtype, so that they would have no effect");
    CHECK_REFUSES(tare_pattern_config_set_dtype_configs(p, &wrong, 1), TARE_INVALID_ARGUMENT,
                  IN_PATTERN, "expected is_dynamic to be -1, 0 or 1, found 2");
    CHECK_REFUSES(tare_pattern_config_set_input_type_to_index(p, NULL, 1), TARE_INVALID_ARGUMENT,
                  IN_PATTERN, "expected an input's name, found NULL");
    CHECK_REFUSES(tare_pattern_config_set_num_tensor_args_to_observation_type(
                      p, -1, TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT),
                  TARE_INVALID_ARGUMENT, IN_PATTERN,
                  "expected a number of tensor arguments, found -1");
    CHECK_REFUSES(tare_backend_config_set(b, tare_pattern_config_create()), TARE_INVALID_ARGUMENT,
                  "backend config 'mine'",
                  "Either 'pattern' or 'pattern_complex_format' must be specified");
    CHECK_REFUSES(tare_backend_config_add(b, NULL, "torch.nn.ReLU", NULL), TARE_INVALID_ARGUMENT,
                  "backend config 'mine'",
                  "Either 'pattern' or 'pattern_complex_format' must be specified");
    CHECK_REFUSES(tare_backend_config_set(b, p), TARE_INVALID_ARGUMENT, "backend config 'mine'",
                  "a pattern config was given to backend configs twice");
    // The error of a config that is replaced does not go with it.
    CHECK_REFUSES((tare_pattern_config_set_qat_module(p, ""),
                   p = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL)),
                  TARE_INVALID_ARGUMENT, "backend config 'mine'",
                  "expected an operator's name, found ''");
}

static void a_pattern_has_one_form(void **state) {
    (void)state;
    const char *const message = "Only one of 'pattern' or 'pattern_complex_format' can be set";
    tare_pattern_config *p = tare_pattern_config_create();
    tare_pattern_config_set_pattern(p, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_set_pattern(p, "torch.nn.Linear", "torch.nn.ReLU", NULL); // overwrites
    assert_int_equal(p->failed, TARE_OK);
    tare_pattern_config_set_pattern_complex(p, "\"torch.nn.ReLU\"");
    assert_string_equal(tare_error_message(p->first_error), message);
    tare_pattern_config_destroy(p);
    p = tare_pattern_config_create();
    tare_pattern_config_set_pattern_complex(p, "\"torch.nn.ReLU\"");
    assert_int_equal(p->failed, TARE_OK);
    tare_pattern_config_set_pattern(p, "torch.nn.Linear", NULL, NULL);
    assert_string_equal(tare_error_message(p->first_error), message);
    tare_pattern_config_destroy(p);
    p = tare_pattern_config_create();
    tare_pattern_config_set_pattern_complex(p, "\"torch.nn.ReLU\", \"torch.nn.ReLU\"");
    assert_string_equal(tare_error_message(p->first_error), "expected one pattern, found 2");
    tare_pattern_config_destroy(p);
}

static void passes_find_what_they_look_up(void **state) {
    (void)state;
    tare_backend_config *b = builtin("x86");
    assert_string_equal(tare_backend_config_name(b), "x86");
    const tare_pattern_config *conv = tare__backend_config_for_operator(b, "torch.conv2d");
    assert_non_null(conv);
    assert_ptr_equal(conv, tare__backend_config_for_operator(b, "torch.nn.functional.conv2d"));
    assert_int_equal(tare__pattern_config_input_index(conv, "weight"), 1);
    assert_int_equal(tare__pattern_config_input_index(conv, "bias"), 2);
    assert_int_equal(tare__pattern_config_input_index(conv, "input"), -1);
    assert_non_null(tare__backend_config_for_operator(b, "torch.nn.Conv2d"));
    assert_null(tare__backend_config_for_operator(b, "torch.nn.Conv7d"));
    assert_string_equal(tare__backend_config_reference_module(b, "torch.nn.Conv2d"),
                        "torch.ao.nn.quantized.reference.Conv2d");
    assert_null(tare__backend_config_reference_module(b, "torch.nn.ReLU"));
    assert_true(tare__backend_config_is_qat_module(b, "torch.ao.nn.qat.Linear"));
    assert_false(tare__backend_config_is_qat_module(b, "torch.nn.Linear"));
    assert_true(tare__backend_config_is_fused_module(b, "torch.ao.nn.intrinsic.ConvReLU2d"));
    assert_false(tare__backend_config_is_fused_module(b, "torch.nn.Conv2d"));
    tare_backend_config_destroy(b);
}

static void the_last_reference_module_of_a_root_wins(void **state) {
    (void)state;
    tare_backend_config *b = tare_backend_config_create("mine");
    tare_pattern_config *first = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_set_root_module(first, "torch.nn.Linear");
    tare_pattern_config_set_reference_quantized_module(first, "a.First");
    tare_pattern_config *second = tare_backend_config_add(b, "torch.nn.LSTM", NULL, NULL);
    tare_pattern_config_set_root_module(second, "torch.nn.Linear");
    assert_string_equal(tare__backend_config_reference_module(b, "torch.nn.Linear"), "a.First");
    tare_pattern_config_set_reference_quantized_module(second, "a.Second");
    assert_string_equal(tare__backend_config_reference_module(b, "torch.nn.Linear"), "a.Second");
    tare_backend_config_destroy(b);
}

static void observation_follows_the_number_of_tensors(void **state) {
    (void)state;
    tare_backend_config *b = builtin("native");
    const tare_pattern_config *add = tare__backend_config_for_operator(b, "operator.add");
    tare_observation_type type = TARE_INPUT_OUTPUT_NOT_OBSERVED;
    CHECK_OK(tare__pattern_config_observation(add, 1, &type, err));
    assert_int_equal(type, TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT);
    CHECK_OK(tare__pattern_config_observation(add, 2, &type, err));
    assert_int_equal(type, TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT);
    assert_int_equal(tare__pattern_config_observation(add, 3, &type, err), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_message(err),
                        "Must provide observation_type config for tensor number 3 in "
                        "num_tensor_args_to_observation_type for operator.add");
    const tare_pattern_config *cat = tare__backend_config_for_operator(b, "torch.cat");
    CHECK_OK(tare__pattern_config_observation(cat, 7, &type, err));
    assert_int_equal(type, TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT);
    tare_backend_config_destroy(b);
}

static void longest_patterns_are_tried_first(void **state) {
    (void)state;
    tare_backend_config *b = builtin("onednn");
    arena memory = {0};
    const tare_pattern_config **sorted = NULL;
    CHECK_OK(tare__backend_config_sorted(b, &memory, &sorted, err));
    bool is_single = false;
    for (size_t i = 0; i < b->count; i++) {
        const pattern *p = sorted[i]->complex;
        assert_true(!is_single || p->kind != PATTERN_TUPLE);
        is_single = p->kind != PATTERN_TUPLE;
        if (i == 0) continue;
        const pattern *before = sorted[i - 1]->complex;
        const size_t length = is_single ? 0 : tare__pattern_leaf_count(p);
        const size_t length_before =
            before->kind == PATTERN_TUPLE ? tare__pattern_leaf_count(before) : 0;
        assert_true(length <= length_before);
        if (length == length_before) assert_true(sorted[i - 1]->order < sorted[i]->order);
    }
    assert_int_equal(tare__pattern_leaf_count(sorted[0]->complex), 5);
    tare__arena_release(&memory);
    tare_backend_config_destroy(b);
}

static tare_status refuse_to_fuse(void *user, bool is_qat, const tare_module *const *modules,
                                  const char *const *function_names, size_t count,
                                  tare_module **out, tare_error *e) {
    (void)user, (void)is_qat, (void)modules, (void)function_names, (void)count, (void)out;
    return tare__fail(e, TARE_UNSUPPORTED, "never called");
}

static const tare_match_node *last_as_root(void *user, const tare_match *match) {
    ++*(int *)user;
    return tare_match_node_at(match, tare_match_count(match) - 1);
}

static void callbacks_are_kept_but_not_written(void **state) {
    (void)state;
    int calls = 0;
    tare_backend_config *b = build_tutorial();
    tare_pattern_config *p = tare_backend_config_add(b, "torch.nn.Linear", "torch.nn.Tanh", NULL);
    tare_pattern_config_set_fuser_callback(p, refuse_to_fuse, &calls);
    tare_pattern_config_set_root_node_getter(p, last_as_root, &calls);
    CHECK_OK(tare_backend_config_check(b, err));
    tare_backend_config *copy = NULL;
    CHECK_OK(tare_backend_config_clone(b, &copy, err));
    const tare_pattern_config *cloned = tare_backend_config_at(copy, 3);
    assert_true(tare__pattern_config_has_fuser(cloned));
    assert_ptr_equal(cloned->fuser, refuse_to_fuse);
    assert_ptr_equal(cloned->fuser_user, &calls);
    assert_null(cloned->root_node_getter(cloned->root_node_getter_user, NULL));
    assert_int_equal(calls, 1);
    char *json = NULL;
    assert_int_equal(tare_backend_config_to_json(copy, &json, err), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_message(err),
                        "the root node getter of pattern (torch.nn.Linear, torch.nn.Tanh) is a "
                        "callback, which JSON cannot hold");
    assert_null(json);
    tare_backend_config_destroy(copy);
    tare_backend_config_destroy(b);
}

static void a_clone_is_equal_and_independent(void **state) {
    (void)state;
    tare_backend_config *b = builtin("onednn"), *copy = NULL;
    CHECK_OK(tare_backend_config_clone(b, &copy, err));
    char *json = to_json(b), *of_copy = to_json(copy);
    assert_string_equal(json, of_copy);
    tare_backend_config_set_name(b, "other");
    tare_backend_config_destroy(b);
    tare__free(of_copy);
    of_copy = to_json(copy);
    assert_string_equal(json, of_copy);
    tare__free(json);
    tare__free(of_copy);
    tare_backend_config_destroy(copy);
}

static void files_name_functions_of_a_context(void **state) {
    (void)state;
    int calls = 0;
    tare_context *context = NULL;
    const tare_backend_function own = {.struct_size = sizeof own,
                                       .name = "mine.fuse",
                                       .fuser = refuse_to_fuse,
                                       .root_node_getter = last_as_root,
                                       .user = &calls};
    CHECK_OK(tare_context_create(&context, err));
    CHECK_OK(tare_context_add_backend_function(context, &own, err));
    static const char json[] =
        CONFIG("\"fuser_method\": \"mine.fuse\", \"root_node_getter\": \"mine.fuse\"");
    tare_backend_config *b = NULL, *copy = NULL;
    CHECK_OK(tare_backend_config_from_json_with(context, json, strlen(json), &b, err));
    tare_context_destroy(context); // the config keeps the functions
    CHECK_OK(tare_backend_config_clone(b, &copy, err));
    char *of_copy = to_json(copy);
    assert_non_null(strstr(of_copy, "\"fuser_method\": \"mine.fuse\""));
    assert_non_null(strstr(of_copy, "\"root_node_getter\": \"mine.fuse\""));
    const tare_pattern_config *cloned = tare_backend_config_at(copy, 0);
    assert_ptr_equal(cloned->fuser, refuse_to_fuse);
    assert_ptr_equal(cloned->fuser_user, &calls);
    assert_ptr_equal(cloned->root_node_getter, last_as_root);
    assert_string_equal(tare_pattern_config_get_fuser_method(cloned), "mine.fuse");
    assert_string_equal(tare_pattern_config_get_root_node_getter(cloned), "mine.fuse");
    tare_backend_config_destroy(copy);
    tare_backend_config_destroy(b);
    assert_int_equal(tare_backend_config_from_json(of_copy, strlen(of_copy), &b, err),
                     TARE_MALFORMED_FILE);
    tare__free(of_copy);
}

static void a_context_refuses_functions_that_cannot_be_named(void **state) {
    (void)state;
    tare_context *context = NULL;
    tare_backend_function own = {.struct_size = sizeof own, .name = "mine.fuse"};
    CHECK_OK(tare_context_create(&context, err));
    assert_int_equal(tare_context_add_backend_function(context, &own, err), TARE_INVALID_ARGUMENT);
    own.root_node_getter = last_as_root;
    CHECK_OK(tare_context_add_backend_function(context, &own, err));
    assert_int_equal(tare_context_add_backend_function(context, &own, err), TARE_INVALID_ARGUMENT);
    own.name = "torch.ao.quantization.fuser_method_mappings.fuse_conv_bn";
    assert_int_equal(tare_context_add_backend_function(context, &own, err), TARE_INVALID_ARGUMENT);
    own.name = NULL;
    assert_int_equal(tare_context_add_backend_function(context, &own, err), TARE_INVALID_ARGUMENT);
    // It has a getter of this name, but no fuser.
    static const char json[] = CONFIG("\"fuser_method\": \"mine.fuse\"");
    tare_backend_config *b = NULL;
    assert_int_equal(tare_backend_config_from_json_with(context, json, strlen(json), &b, err),
                     TARE_MALFORMED_FILE);
    assert_int_equal(tare_backend_config_read_with(context, "no such file", &b, err), TARE_IO);
    tare_context_destroy(context);
}

static void getters_say_what_setters_set(void **state) {
    (void)state;
    tare_backend_config *b = builtin("onednn");
    char *json = NULL;
    bool is_complex = false;
    size_t named = 0, counted = 0, indexed = 0, dtypes = 0, nested = 0;
    for (size_t i = 0; i < tare_backend_config_count(b); i++) {
        const tare_pattern_config *p = tare_backend_config_at(b, i);
        CHECK_OK(tare_pattern_config_get_pattern(p, &json, &is_complex, err));
        nested += is_complex;
        assert_true(json[0] == '"' || json[0] == '[');
        tare__free(json);
        named += tare_pattern_config_get_extra_inputs_getter(p) != NULL;
        int64_t number = -1;
        tare_observation_type type = 0;
        const char *input = NULL;
        counted += tare_pattern_config_tensor_arg_count_at(p, 0, &number, &type);
        indexed += tare_pattern_config_input_index_at(p, 0, &input, &number);
        dtypes += tare_pattern_config_dtype_config_count(p);
        assert_null(
            tare_pattern_config_dtype_config_at(p, tare_pattern_config_dtype_config_count(p)));
    }
    assert_true(named > 0 && counted > 0 && indexed > 0 && dtypes > 0 && nested > 0);
    tare_pattern_config *p = tare_backend_config_add(b, "a.Mine", NULL, NULL);
    const tare_dtype_config d = tare_dtype_config_init();
    tare_pattern_config_set_observation_type(p, TARE_INPUT_OUTPUT_NOT_OBSERVED);
    tare_pattern_config_add_dtype_config(p, &d);
    tare_pattern_config_set_root_module(p, "a.Root");
    tare_pattern_config_set_qat_module(p, "a.Qat");
    tare_pattern_config_set_reference_quantized_module(p, "a.Reference");
    tare_pattern_config_set_fused_module(p, "a.Fused");
    tare_pattern_config_set_input_type_to_index(p, "bias", 2);
    const tare_pattern_config *set = tare_backend_config_at(b, tare_backend_config_count(b) - 1);
    assert_ptr_equal(tare_backend_config_mutable_at(b, tare_backend_config_count(b) - 1), set);
    assert_int_equal(tare_pattern_config_get_observation_type(set), TARE_INPUT_OUTPUT_NOT_OBSERVED);
    assert_int_equal(tare_pattern_config_dtype_config_at(set, 0)->is_dynamic, -1);
    assert_string_equal(tare_pattern_config_get_root_module(set), "a.Root");
    assert_string_equal(tare_pattern_config_get_qat_module(set), "a.Qat");
    assert_string_equal(tare_pattern_config_get_reference_quantized_module(set), "a.Reference");
    assert_string_equal(tare_pattern_config_get_fused_module(set), "a.Fused");
    assert_null(tare_pattern_config_get_fuser_method(set));
    const char *input = NULL;
    int64_t index = 0;
    assert_true(tare_pattern_config_input_index_at(set, 0, &input, &index));
    assert_string_equal(input, "bias");
    assert_int_equal(index, 2);
    tare_backend_config_destroy(b);
    p = tare_pattern_config_create();
    CHECK_OK(tare_pattern_config_get_pattern(p, &json, NULL, err));
    assert_string_equal(json, "null");
    tare__free(json);
    tare_pattern_config_destroy(p);
}

static void bare_dtypes_and_nulls_are_read_as_torch_reads_them(void **state) {
    (void)state;
    tare_backend_config *b = parse(
        CONFIG("\"root_module\": null, \"dtype_configs\": [{\"input_dtype\": \"torch.quint8\", "
               "\"weight_dtype\": {\"dtype\": \"torch.qint8\", \"scale_exact_match\": 0.1, "
               "\"scale_max_upper_bound\": {\"float\": \"inf\"}}, \"bias_dtype\": null, "
               "\"is_dynamic\": false}]"));
    char *json = to_json(b);
    assert_string_equal(json,
                        "{\n \"name\": \"\",\n \"configs\": [\n  {\n"
                        "   \"observation_type\": \"OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT\",\n"
                        "   \"dtype_configs\": [\n    {\n"
                        "     \"input_dtype\": {\n      \"dtype\": \"torch.quint8\"\n     },\n"
                        "     \"weight_dtype\": {\n      \"dtype\": \"torch.qint8\",\n"
                        "      \"scale_max_upper_bound\": {\"float\": \"inf\"},\n"
                        "      \"scale_exact_match\": 0.1\n     },\n"
                        "     \"is_dynamic\": false\n    }\n   ],\n"
                        "   \"pattern\": \"torch.nn.Linear\"\n  }\n ]\n}");
    tare__free(json);
    tare_backend_config_destroy(b);
}

static bool collect(void *user, const char *chars, size_t length) {
    tare__text_append_n(user, chars, length);
    return true;
}

static bool refuse(void *user, const char *chars, size_t length) {
    (void)user, (void)chars, (void)length;
    return false;
}

static tare_status collect_finding(void *user, const tare_backend_finding *f, tare_error *unused) {
    (void)unused;
    tare__text_printf(user, "%s: %s: %s (%s)\n", f->path, f->pattern, f->problem, f->remedy);
    return TARE_OK;
}

static tare_status refuse_finding(void *user, const tare_backend_finding *f, tare_error *out) {
    (void)user, (void)f;
    return tare__fail(out, TARE_IO, "refused");
}

// torch's own configs name methods that no tensor has (hardsigmoid, hardsigmoid_, shape), and
// exported programs have operators of which not all have a row.
static tare_status count_all_but_names(void *user, const tare_backend_finding *f,
                                       tare_error *unused) {
    (void)unused;
    if (strstr(f->problem, "is not a known ") == NULL) ++*(size_t *)user;
    return TARE_OK;
}

static void builtins_have_no_lint(void **state) {
    (void)state;
    for (size_t i = 0; tare_backend_config_builtin_name_at(i); i++) {
        tare_backend_config *b = builtin(tare_backend_config_builtin_name_at(i));
        size_t count = 99, others = 0;
        CHECK_OK(tare_backend_config_lint(b, NULL, count_all_but_names, &others, &count, err));
        assert_int_equal(others, 0);
        assert_true(count <= 4);
        tare_backend_config_destroy(b);
    }
}

static void check_finding(const char *entry, const char *finding) {
    char json[1024];
    (void)snprintf(json, sizeof json, "{\"configs\": [%s]}", entry);
    tare_backend_config *b = parse(json);
    size_t count = 0;
    text out = {0};
    CHECK_OK(tare_backend_config_lint(b, NULL, collect_finding, &out, &count, err));
    if (strstr(tare__text_chars(&out), finding) == NULL)
        fail_msg("missing: %s\nin %s", finding, tare__text_chars(&out));
    tare__text_release(&out);
    tare_backend_config_destroy(b);
}

#define ONE_DTYPES(text) "\"dtype_configs\": [{" text "}]"
#define ROOT(name, reference)                                                                      \
    "\"root_module\": \"" name "\", \"reference_quantized_module_for_root\": \"" reference "\""
#define REFERENCE_LINEAR "torch.ao.nn.quantized.reference.Linear"

static void lint_finds_classes_and_dtypes_that_have_no_use(void **state) {
    (void)state;
    static const char some[] = ONE_DTYPES("\"input_dtype\": \"torch.quint8\"");
    char entry[768];
#define LINEAR_WITH(text)                                                                          \
    ((void)snprintf(entry, sizeof entry, "{\"pattern\": \"torch.nn.Linear\", " text ", %s}",       \
                    some),                                                                         \
     entry)
    check_finding(LINEAR_WITH(ROOT("torch.nn.Lineer", REFERENCE_LINEAR)),
                  "root_module torch.nn.Lineer is not a known module class");
    check_finding(LINEAR_WITH(ROOT(REFERENCE_LINEAR, REFERENCE_LINEAR)),
                  "root_module torch.ao.nn.quantized.reference.Linear is not a float module");
    check_finding(LINEAR_WITH(ROOT("torch.nn.Linear", "torch.ao.nn.quantized.Linear")),
                  "is not a reference module (name a class of that kind)");
    check_finding(LINEAR_WITH("\"qat_module\": \"torch.nn.Linear\""),
                  "qat_module torch.nn.Linear is not a module for training");
    check_finding(
        "{\"pattern\": [\"torch.nn.Linear\", \"torch.nn.ReLU\"], \"fused_module\": "
        "\"torch.ao.nn.intrinsic.LinearReLU\", \"fuser_method\": "
        "\"torch.ao.quantization.fuser_method_mappings._sequential_wrapper2(torch.ao.nn.intrinsic."
        "LinearReLU)\"}",
        "no pattern is for torch.ao.nn.intrinsic.LinearReLU, so the fused module stays float");
    check_finding(
        "{\"pattern\": \"torch.nn.Linear\", " ONE_DTYPES("\"weight_dtype\": \"torch.int8\"") "}",
        "weight_dtype: torch.nn.Linear: the observers of a qconfig give torch.qint8, not "
        "torch.int8 (name the quantized dtype)");
    check_finding("{\"pattern\": \"torch.nn.Linear\", " ONE_DTYPES(
                      "\"input_dtype\": \"torch.quint8\", \"output_dtype\": \"torch.quint8\", "
                      "\"is_dynamic\": true") "}",
                  "the output of dynamic quantization is float, not torch.quint8");
    check_finding(
        "{\"pattern\": \"torch.nn.Linear\", \"observation_type\": "
        "\"INPUT_OUTPUT_NOT_OBSERVED\", " ONE_DTYPES("\"output_dtype\": \"torch.quint8\"") "}",
        "INPUT_OUTPUT_NOT_OBSERVED has no effect beside torch.quint8");
}

static void lint_finds_patterns_in_reverse(void **state) {
    (void)state;
    static const char words[] = "torch.nn.Conv2d is last and torch.nn.ReLU first: patterns are "
                                "in forward order, weighted operators first (list the "
                                "operators in forward order)";
    check_finding("{\"pattern\": [\"torch.nn.ReLU\", \"torch.nn.Conv2d\"], \"dtype_configs\": []}",
                  words);
    check_finding("{\"pattern_complex_format\": [\"torch.nn.Conv2d\", \"torch.nn.ReLU\"], "
                  "\"dtype_configs\": []}",
                  words);
}

static void constraints_have_their_bits(void **state) {
    (void)state;
    tare_backend_config *b = tare_backend_config_create("b");
    tare_pattern_config *p = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);
    tare_dtype_config d = tare_dtype_config_init();
    text found = {0};
    size_t count = 0;
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    tare_dtype_constraints_set_quant_range(&d.input, 0, 127);
    tare_dtype_constraints_set_scale_min(&d.input, 0.5);
    tare_dtype_constraints_set_scale_max(&d.input, 2);
    tare_dtype_constraints_set_qschemes(&d.input, TARE_QSCHEME_BIT(TARE_PER_CHANNEL_AFFINE));
    tare_dtype_constraints_set_channel_axis(&d.input, 0);
    tare_dtype_constraints_set_zero_point_range(&d.input, 0, 0);
    tare_dtype_constraints_set_power_of_two(&d.input);
    tare_dtype_constraints_set_exact(&d.output, 0.25, 3);
    d.output.channel_axis = 1; // forgotten
    tare_pattern_config_add_dtype_config(p, &d);
    char *json = NULL;
    CHECK_OK(tare_backend_config_to_json(b, &json, NULL));
    static const char *const keys[] = {
        "\"quant_min_lower_bound\": 0",   "\"quant_max_upper_bound\": 127",
        "\"scale_min_lower_bound\": 0.5", "\"scale_max_upper_bound\": 2",
        "\"allowed_qschemes\"",           "\"channel_axis\": 0",
        "\"zero_point_lower_bound\": 0",  "\"zero_point_upper_bound\": 0",
        "\"scale_power_of_two\": true",   "\"scale_exact_match\": 0.25",
        "\"zero_point_exact_match\": 3"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strstr(json, keys[i]) == NULL) fail_msg("%s lacks %s", json, keys[i]);
    assert_null(strstr(json, "\"channel_axis\": 1"));
    CHECK_OK(tare_backend_config_lint(b, NULL, collect_finding, &found, &count, NULL));
    assert_non_null(
        strstr(tare__text_chars(&found), "output_dtype.channel_axis: torch.nn.Linear: channel_axis "
                                         "has a value but not its TARE_SET_ bit"));
    tare__text_release(&found);
    tare_string_free(json);
    tare_backend_config_destroy(b);
}

static void lint_finds_what_cannot_be_meant(void **state) {
    (void)state;
    tare_backend_config *b = parse(
        "{\"configs\": ["
        "{\"pattern\": \"torch.nn.Linear\", \"root_module\": \"torch.nn.Linear\", "
        "\"fused_module\": \"torch.ao.nn.intrinsic.LinearReLU\"},"
        "{\"pattern\": \"torch.nn.ReLU\", \"dtype_configs\": [{\"input_dtype\": {\"dtype\": "
        "\"torch.quint8\", \"quant_min_lower_bound\": 9, \"quant_max_upper_bound\": 1, "
        "\"zero_point_exact_match\": 3}}]},"
        "{\"pattern\": \"torch.nn.Lnear\", \"dtype_configs\": [{\"input_dtype\": {\"dtype\": "
        "\"torch.qint8\", \"quant_min_lower_bound\": 128, \"quant_max_upper_bound\": 255, "
        "\"allowed_qschemes\": [\"torch.per_tensor_affine\"], \"channel_axis\": 0, "
        "\"zero_point_lower_bound\": 300}}]},"
        "{\"pattern_complex_format\": [\"torch.nn.ReLU\", [\"torch.add\", \"MatchAllNode\", "
        "\"MatchAllNode\"]], \"dtype_configs\": [{\"input_dtype\": {\"dtype\": \"torch.quint8\", "
        "\"scale_exact_match\": 0.3, \"zero_point_exact_match\": 0, \"scale_power_of_two\": "
        "true}}]},"
        "{\"pattern_complex_format\": [\"torch.nn.ReLU\", [\"torch.add\", \"torch.nn.Conv2d\", "
        "\"MatchAllNode\"]], \"dtype_configs\": [{\"input_dtype\": {\"dtype\": \"torch.quint8\", "
        "\"scale_max_upper_bound\": 0}}]}]}");
    size_t count = 0;
    text out = {0};
    CHECK_OK(tare_backend_config_lint(b, NULL, collect_finding, &out, &count, err));
    assert_string_equal(
        tare__text_chars(&out),
        "$.configs[0]: torch.nn.Linear: without dtype_configs nothing is ever quantized (add "
        "dtype_configs, or drop the pattern)\n"
        "$.configs[0].fused_module: torch.nn.Linear: fused_module torch.ao.nn.intrinsic.LinearReLU "
        "has no fuser_method to make it (give a fuser_method, or drop it)\n"
        "$.configs[0].root_module: torch.nn.Linear: root_module works only with "
        "reference_quantized_module_for_root (name the reference module, or drop the root)\n"
        "$.configs[1].dtype_configs[0].input_dtype.quant_min_lower_bound: torch.nn.ReLU: "
        "quant_min_lower_bound 9 is above quant_max_upper_bound 1 (swap or widen the bounds)\n"
        "$.configs[1].dtype_configs[0].input_dtype.zero_point_exact_match: torch.nn.ReLU: "
        "scale_exact_match and zero_point_exact_match are enforced only together (set both, or "
        "neither)\n"
        "$.configs[1].dtype_configs[0].input_dtype.zero_point_exact_match: torch.nn.ReLU: "
        "zero_point_exact_match 3 is outside of 9..1 (move it into the range)\n"
        "$.configs[2]: torch.nn.Lnear: torch.nn.Lnear is not a known module class, so the pattern "
        "never matches (correct the name, or register the class in a context)\n"
        "$.configs[2].dtype_configs[0].input_dtype.quant_min_lower_bound: torch.nn.Lnear: "
        "torch.qint8 holds -128..127, nothing of which lies in 128..255 (swap or widen the "
        "bounds)\n"
        "$.configs[2].dtype_configs[0].input_dtype.zero_point_lower_bound: torch.nn.Lnear: no zero "
        "point lies in 300..255 (let the bounds overlap)\n"
        "$.configs[2].dtype_configs[0].input_dtype.channel_axis: torch.nn.Lnear: channel_axis "
        "bounds per-channel schemes, and allowed_qschemes has none (drop it, or allow a "
        "per-channel scheme)\n"
        "$.configs[3].dtype_configs[0].input_dtype.scale_exact_match: (torch.nn.ReLU, (torch.add, "
        "MatchAllNode, MatchAllNode)): scale_exact_match 0.3 is no power of two, which "
        "scale_power_of_two demands (give a positive scale)\n"
        "$.configs[4]: (torch.nn.ReLU, (torch.add, torch.nn.Conv2d, MatchAllNode)): the pattern "
        "(torch.nn.ReLU, (torch.add, MatchAllNode, MatchAllNode)) is tried before and matches "
        "everything that this one does (drop one, or make the other one narrower)\n"
        "$.configs[4].dtype_configs[0].input_dtype.scale_max_upper_bound: (torch.nn.ReLU, "
        "(torch.add, torch.nn.Conv2d, MatchAllNode)): no scale is as small as 0 (give a positive "
        "bound)\n");
    assert_int_equal(count, 13);
    assert_int_equal(tare_backend_config_lint(b, NULL, refuse_finding, NULL, &count, err), TARE_IO);
    tare__text_release(&out);
    tare_backend_config_destroy(b);
}

static void show_tells_every_fact(void **state) {
    (void)state;
    tare_backend_config *b = build_tutorial();
    text out = {0};
    CHECK_OK(tare_backend_config_show(b, collect, &out, err));
    const char *const beginning =
        "my_backend: 3 patterns\n"
        "\n"
        "torch.nn.Linear\n"
        "  dtypes       quint8[q >= 0, q <= 255, scale >= 0.000244140625] * qint8 + float32 -> "
        "quint8[q >= 0, q <= 255, scale >= 0.000244140625]\n"
        "  observation  output has its own observer\n"
        "  root         torch.nn.Linear\n"
        "  reference    torch.ao.nn.quantized.reference.Linear\n"
        "  qat          torch.ao.nn.qat.Linear\n"
        "\n"
        "(torch.nn.Conv2d, torch.nn.ReLU)\n";
    assert_memory_equal(out.chars, beginning, strlen(beginning));
    assert_int_equal(tare_backend_config_show(b, refuse, NULL, err), TARE_IO);
    tare__text_release(&out);
    tare_backend_config_destroy(b);
}

static bool count_bytes(void *user, const char *chars, size_t length) {
    (void)chars;
    *(size_t *)user += length;
    return true;
}

static tare_status build_and_drop(void) {
    tare_backend_config *b = build_tutorial();
    const tare_status status = tare_backend_config_check(b, NULL);
    tare_backend_config_destroy(b);
    return status;
}

static void lost_memory_leaves_nothing_behind(void **state) {
    (void)state;
    tare_status status = TARE_OK;
    tare_backend_config *b = NULL, *copy = NULL;
    char *json = NULL;
    EVERY_ALLOCATION_FAILS(status, status = build_and_drop(), (void)0);
    b = build_tutorial();
    EVERY_ALLOCATION_FAILS(status, status = tare_backend_config_clone(b, &copy, NULL),
                           tare_backend_config_destroy(copy));
    EVERY_ALLOCATION_FAILS(status, status = tare_backend_config_to_json(b, &json, NULL),
                           tare__free(json));
    size_t bytes = 0, count = 0;
    text found = {0};
    EVERY_ALLOCATION_FAILS(status, status = tare_backend_config_show(b, count_bytes, &bytes, NULL),
                           (void)0);
    tare_backend_config_add(b, "torch.nn.Tanh", NULL, NULL); // without dtypes: one finding
    EVERY_ALLOCATION_FAILS(
        status, status = tare_backend_config_lint(b, NULL, collect_finding, &found, &count, NULL),
        tare__text_clear(&found));
    tare__text_release(&found);
    assert_int_equal(count, 1);
    tare_backend_config_destroy(b);
    EVERY_ALLOCATION_FAILS(status,
                           status = tare_backend_config_read("examples/my_backend.json", &b, NULL),
                           tare_backend_config_destroy(b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_is_a_builtin_and_comes_back_byte_for_byte),
        cmocka_unit_test(unknown_builtins_name_the_nearest),
        cmocka_unit_test(refusals_name_the_path_and_a_way_out),
        cmocka_unit_test(a_file_with_a_fault_is_named),
        cmocka_unit_test(the_tutorials_backend_equals_its_file),
        cmocka_unit_test(names_stand_for_what_they_define),
        cmocka_unit_test(a_file_extends_a_builtin),
        cmocka_unit_test(an_equal_key_is_replaced_in_its_place),
        cmocka_unit_test(synonyms_of_one_function_are_one_key),
        cmocka_unit_test(classes_are_compared_by_their_public_names),
        cmocka_unit_test(overloads_are_functions_though_capitalised),
        cmocka_unit_test(builders_keep_their_first_error),
        cmocka_unit_test(a_pattern_has_one_form),
        cmocka_unit_test(passes_find_what_they_look_up),
        cmocka_unit_test(the_last_reference_module_of_a_root_wins),
        cmocka_unit_test(observation_follows_the_number_of_tensors),
        cmocka_unit_test(longest_patterns_are_tried_first),
        cmocka_unit_test(callbacks_are_kept_but_not_written),
        cmocka_unit_test(files_name_functions_of_a_context),
        cmocka_unit_test(a_context_refuses_functions_that_cannot_be_named),
        cmocka_unit_test(getters_say_what_setters_set),
        cmocka_unit_test(a_clone_is_equal_and_independent),
        cmocka_unit_test(bare_dtypes_and_nulls_are_read_as_torch_reads_them),
        cmocka_unit_test(builtins_have_no_lint),
        cmocka_unit_test(lint_finds_classes_and_dtypes_that_have_no_use),
        cmocka_unit_test(lint_finds_what_cannot_be_meant),
        cmocka_unit_test(lint_finds_patterns_in_reverse),
        cmocka_unit_test(constraints_have_their_bits),
        cmocka_unit_test(show_tells_every_fact),
        cmocka_unit_test(lost_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, make_error, drop_error);
}
