// SPDX-License-Identifier: Apache-2.0
// Where observers are inserted, by which qconfig, and how a backend's refusals read.
#include <math.h>

#include "core/text/text.h"
#include "model/pass.h"
#include "support/models.h"
#include "support/test.h"

#define CONV                                                                                       \
    "in_channels=2, out_channels=2, kernel_size=(1, 1), stride=(1, 1), padding=(0, 0), "           \
    "dilation=(1, 1), groups=1, padding_mode='zeros'"
#define NN "torch.nn."

// Prepares with x86's default mapping; the model is consumed.
static tare_model *x86_prepared(tare_model *model) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *out = prepared(model, backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    return out;
}

static const module *called(const tare_model *model, const char *name) {
    const node *n = tare__graph_find(model->root->graph, name);
    if (n == NULL) fail_msg("no node '%s' in\n%s", name, printed(model));
    return tare__called_module(model, n);
}

// --- observers ---

static void every_edge_of_a_quantized_operator_is_observed_once(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", CONV);
    put_module(root, NULL, "b", NN "Conv2d", CONV);
    tare_model *p = x86_prepared(new_model(NULL, root,
                                           "def forward(self, x):\n    a = self.a(x)\n"
                                           "    b = self.b(x)\n    add = a + b\n"
                                           "    return add\n"));
    CHECK_HOLDS(printed(p),
                "    activation_post_process_0 = self.activation_post_process_0(x);  x = None\n"
                "    a = self.a(activation_post_process_0)\n"
                "    activation_post_process_1 = self.activation_post_process_1(a);  a = None\n"
                "    b = self.b(activation_post_process_0);  activation_post_process_0 = None\n"
                "    activation_post_process_2 = self.activation_post_process_2(b);  b = None\n"
                "    add = activation_post_process_1 + activation_post_process_2;  "
                "activation_post_process_1 = activation_post_process_2 = None\n"
                "    activation_post_process_3 = self.activation_post_process_3(add);  add = None\n"
                "    return activation_post_process_3\n");
    CHECK_HOLDS(decided(p, "a"), "prepare: observed: the global selector asks for");
    CHECK_HOLDS(decided(p, "a"), "which the backend 'x86' supports [global]");
    tare_model_destroy(p);
}

static void cat_and_pooling_share_the_observer_of_their_input(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", CONV);
    put_module(root, NULL, "b", NN "Conv2d", CONV);
    put_module(root, NULL, "pool", NN "MaxPool2d",
               "kernel_size=1, stride=1, padding=0, dilation=1, ceil_mode=False");
    tare_model *p =
        x86_prepared(new_model(NULL, root,
                               "def forward(self, x):\n    a = self.a(x)\n    b = self.b(x)\n"
                               "    cat = torch.cat([a, b], dim = 1)\n    pool = self.pool(cat)\n"
                               "    reshape = pool.reshape(1, -1)\n    return reshape\n"));
    const module *a = called(p, "activation_post_process_1");
    const module *b = called(p, "activation_post_process_2");
    const module *cat = called(p, "activation_post_process_3");
    const module *pool = called(p, "activation_post_process_4");
    const module *reshape = called(p, "activation_post_process_5");
    assert_ptr_equal(a, b);
    assert_ptr_equal(a, cat);
    assert_ptr_equal(a, pool);
    assert_ptr_equal(a, reshape);
    assert_ptr_not_equal(a, called(p, "activation_post_process_0"));
    // Shared, it has seen everything: two convolutions, cat, pool, reshape.
    CALIBRATED(p, 1, 2, 2, 2);
    tare_model_destroy(p);
}

static void what_cannot_share_gets_no_observer_and_leaves_a_gap(void **state) {
    (void)state;
    // The mapping tells reshape to reuse its input's observer; an input of the model has none. The
    // number that was tried is spent all the same.
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", CONV);
    tare_model *p = x86_prepared(new_model(NULL, root,
                                           "def forward(self, x, y):\n"
                                           "    reshape = x.reshape(1, -1)\n    a = self.a(y)\n"
                                           "    return (reshape, a)\n"));
    CHECK_HOLDS(printed(p), "    reshape = x.reshape(1, -1);  x = None\n");
    CHECK_LACKS(printed(p), "activation_post_process_0");
    CHECK_HOLDS(printed(p),
                "    activation_post_process_1 = self.activation_post_process_1(y);  y = None\n");
    CHECK_HOLDS(printed(p),
                "    a = self.a(activation_post_process_1);  activation_post_process_1 = None\n"
                "    activation_post_process_2 = self.activation_post_process_2(a);  a = None\n");
    tare_model_destroy(p);
}

static void operators_of_fixed_parameters_get_them(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=2");
    put_module(root, NULL, "s", NN "Sigmoid", "");
    put_module(root, NULL, "t", NN "Tanh", "");
    tare_model *p = x86_prepared(new_model(NULL, root,
                                           "def forward(self, x):\n    a = self.a(x)\n"
                                           "    s = self.s(a)\n    t = self.t(a)\n"
                                           "    return (s, t)\n"));
    CHECK_HOLDS(printed(p), "(activation_post_process_2): FixedQParamsObserver()");
    CHECK_HOLDS(printed(p), "(activation_post_process_3): FixedQParamsObserver()");
    CALIBRATED(p, 4, 3);
    const qparams *q = NULL;
    bool is_calibrated = false;
    CHECK_DONE(tare__observer_qparams(called(p, "activation_post_process_2"), &q, &is_calibrated,
                                      job_error()));
    assert_true(q->scale[0] == 1.0 / 256 && q->zero_point[0] == 0);
    tare__qparams_release(q);
    CHECK_DONE(tare__observer_qparams(called(p, "activation_post_process_3"), &q, &is_calibrated,
                                      job_error()));
    assert_true(q->scale[0] == 2.0 / 256 && q->zero_point[0] == 128);
    tare__qparams_release(q);
    tare_model_destroy(p);
}

static void sizes_are_not_observed(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=2");
    tare_model *p = x86_prepared(
        new_model(NULL, root,
                  "def forward(self, x):\n    a = self.a(x)\n    size = a.size(0)\n"
                  "    add = size + 1\n    view = a.view(size, -1)\n    return (view, add)\n"));
    CHECK_HOLDS(printed(p), "    add = size + 1\n");
    CHECK_HOLDS(printed(p), ".view(size, -1)");
    tare_model_destroy(p);
}

// --- the mapping ---

static tare_model *two_linears(void) {
    module *root = new_tree();
    put_module(root, NULL, "block.first", NN "Linear", "in_features=3, out_features=3");
    put_module(root, NULL, "block.second", NN "Linear", "in_features=3, out_features=3");
    return new_model(NULL, root,
                     "def forward(self, x):\n    block_first = self.block.first(x)\n"
                     "    block_second = self.block.second(block_first)\n"
                     "    return block_second\n");
}

// What an exporter writes: shape and dtype of an input.
static void give_example(tare_model *model, const char *input, const char *dtype) {
    text meta = {0};
    tare__text_printf(&meta, "{\"example\": {\"shape\": [2, 3], \"dtype\": \"%s\"}}", dtype);
    node *n = tare__graph_find(model->root->graph, input);
    n->meta_json = tare__arena_strdup(&model->root->graph->memory, tare__text_chars(&meta));
    tare__text_release(&meta);
}

static void integers_are_not_observed(void **state) {
    (void)state;
    static const char code[] = "def forward(self, x, mask):\n"
                               "    unsqueeze = mask.unsqueeze(-1)\n"
                               "    reshape = unsqueeze.reshape(2, 3)\n"
                               "    float_1 = reshape.float()\n"
                               "    mul = x * float_1\n"
                               "    return mul\n";
    for (int is_known = 0; is_known < 2; is_known++) {
        tare_model *model = new_model(NULL, new_tree(), code);
        give_example(model, "x", "torch.float32");
        if (is_known) give_example(model, "mask", "torch.int64");
        tare_model *p = x86_prepared(model);
        const char *observed = "unsqueeze = activation_post_process";
        if (is_known)
            CHECK_LACKS(printed(p), observed);
        else // as torch does
            CHECK_HOLDS(printed(p), observed);
        CHECK_HOLDS(printed(p), "(float_1)");
        tare_model_destroy(p);
    }
}

// A value that decides nothing about the mask hides no dtype behind it.
static void integers_behind_unknown_values_are_not_observed(void **state) {
    (void)state;
    static const char code[] = "def forward(self, x, mask):\n"
                               "    sum_1 = mask.sum()\n"
                               "    item = sum_1.item()\n"
                               "    zeros = torch.zeros(item)\n"
                               "    unsqueeze = mask.unsqueeze(-1)\n"
                               "    reshape = unsqueeze.reshape(2, 3)\n"
                               "    float_1 = reshape.float()\n"
                               "    mul = x * float_1\n"
                               "    return (mul, zeros)\n";
    tare_model *model = new_model(NULL, new_tree(), code);
    give_example(model, "x", "torch.float32");
    give_example(model, "mask", "torch.int64");
    tare_model *p = x86_prepared(model);
    CHECK_LACKS(printed(p), "unsqueeze = activation_post_process");
    tare_model_destroy(p);
}

static void later_selectors_win(void **state) {
    (void)state;
    tare_model *model = two_linears();
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig *q = small_qconfig();
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
#define REASON(section)                                                                            \
    do {                                                                                           \
        tare_model *p = prepared(model, backend, mapping);                                         \
        CHECK_HOLDS(decided(p, "block_first"), section);                                           \
        tare_model_destroy(p);                                                                     \
    } while (0)
    REASON("left float: the qconfig mapping asks for no quantization (global)");
    tare_qconfig_mapping_set_global(mapping, q);
    REASON("observed: the global selector asks for");
    tare_qconfig_mapping_set_object_type(mapping, NN "Linear", NULL);
    REASON(
        "left float: the qconfig mapping asks for no quantization (object_type: torch.nn.Linear)");
    tare_qconfig_mapping_set_module_name_regex(mapping, "block\\.f.*", q);
    REASON("observed: the module_name_regex selector 'block\\.f.*' asks for");
    tare_qconfig_mapping_set_module_name(mapping, "block", NULL);
    REASON("left float: the qconfig mapping asks for no quantization (module_name: block)");
    tare_qconfig_mapping_set_module_name_object_type_order(mapping, "block", NN "Linear", 0, q);
    REASON("observed: the module_name_object_type_order selector 'torch.nn.Linear 0 in "
           "block' asks for");
    tare_model *p = prepared(model, backend, mapping);
    CHECK_HOLDS(decided(p, "block_second"), "(module_name: block)"); // it is number 1
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_qconfig_release(q);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
}

static void check_selector_refused(tare_qconfig_mapping *mapping, const char *words,
                                   const char *hint) {
    tare_model *model = two_linears(), *p = NULL;
    tare_prepare_options options = {.qconfig_mapping = mapping};
    CHECK_REFUSED(tare_prepare_fx(model, &options, &p, job_error()), TARE_NOT_FOUND, words);
    CHECK_REFUSED(tare_prepare_fx(model, &options, &p, job_error()), TARE_NOT_FOUND, hint);
    assert_null(p);
    options.is_lenient = true;
    CHECK_DONE(tare_prepare_fx(model, &options, &p, job_error()));
    CHECK_HOLDS(explained(p, NULL), "warning: the ");
    CHECK_HOLDS(explained(p, NULL), "matches no module");
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

static void a_selector_that_matches_nothing_is_an_error(void **state) {
    (void)state;
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_module_name(mapping, "block.frist", NULL);
    check_selector_refused(mapping,
                           "the module_name selector 'block.frist' matches no module of the model",
                           "did you mean 'block.first'?");
    mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_module_name_regex(mapping, "blok\\..*", NULL);
    check_selector_refused(mapping, "the module_name_regex selector 'blok\\..*' matches no module",
                           "");
    mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_module_name_object_type_order(mapping, "block.seconds", NN "Linear", 0,
                                                           NULL);
    check_selector_refused(mapping,
                           "the module_name_object_type_order selector 'block.seconds' matches no",
                           "did you mean 'block.second'?");
}

static void fused_parts_need_equal_qconfigs(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=2");
    put_module(root, NULL, "b", NN "ReLU", "");
    tare_model *model = new_model(
        NULL, root, "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n    return b\n");
    tare_qconfig *q = small_qconfig();
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_object_type(mapping, NN "Linear", q);
    tare_model *p = NULL;
    const tare_prepare_options options = {.qconfig_mapping = mapping};
    CHECK_REFUSED(tare_prepare_fx(model, &options, &p, job_error()), TARE_INVALID_ARGUMENT,
                  "During fusion, we need to specify the same qconfigs for all module types in "
                  "torch.ao.nn.intrinsic.LinearReLU offending type: torch.nn.ReLU");
    CHECK_REFUSED(tare_prepare_fx(model, &options, &p, job_error()), TARE_INVALID_ARGUMENT,
                  "node 'a'");
    tare_qconfig_mapping_set_object_type(mapping, NN "ReLU", q);
    CHECK_DONE(tare_prepare_fx(model, &options, &p, job_error()));
    CHECK_HOLDS(decided(p, "a"),
                "the object_type selector 'torch.ao.nn.intrinsic.LinearReLU' asks for");
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_qconfig_release(q);
    tare_model_destroy(model);
}

// --- what backends refuse, and in which words ---

static tare_qconfig *qconfig_of(const char *json) {
    char mapping_json[1024];
    snprintf(mapping_json, sizeof mapping_json, "{\"global\": %s}", json);
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(
        tare_qconfig_mapping_from_json(mapping_json, strlen(mapping_json), &mapping, job_error()));
    tare_qconfig *q = tare_qconfig_retain(mapping->global);
    tare_qconfig_mapping_destroy(mapping);
    return q;
}

#define ACTIVATION(kwargs)                                                                         \
    "{\"activation\": {\"class\": \"MinMaxObserver\", \"kwargs\": {" kwargs "}}, "
#define WEIGHT(kwargs) "\"weight\": {\"class\": \"MinMaxObserver\", \"kwargs\": {" kwargs "}}}"
#define QINT8          WEIGHT("\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_symmetric\"")

static tare_model *one_linear(void) {
    module *root = new_tree();
    put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=2");
    return new_model(NULL, root, "def forward(self, x):\n    fc = self.fc(x)\n    return fc\n");
}

// The same as a function, whose weight is an argument.
static tare_model *one_function(void) {
    module *root = new_tree();
    tare_tensor *w = NEW_INPUT(2, 3);
    CHECK_DONE(tare__module_set_tensor(root, "w", w, true, job_error()));
    tare_tensor_release(w);
    return new_model(NULL, root,
                     "def forward(self, x):\n    w = self.w\n"
                     "    fc = torch._C._nn.linear(x, w)\n    return fc\n");
}

static void check_refusal(tare_model *model, tare_backend_config *backend, const char *qconfig,
                          const char *why) {
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig *q = qconfig_of(qconfig);
    tare_qconfig_mapping_set_global(mapping, q);
    tare_qconfig_release(q);
    tare_model *p = prepared(model, backend, mapping);
    if (why != NULL) {
        CHECK_HOLDS(decided(p, "fc"), "prepare: left float: ");
        CHECK_HOLDS(decided(p, "fc"), why);
        CHECK_LACKS(printed(p), "activation_post_process");
    } else {
        CHECK_HOLDS(decided(p, "fc"), "prepare: observed: ");
    }
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

static void check_left_float(tare_backend_config *backend, const char *qconfig, const char *why) {
    check_refusal(one_linear(), backend, qconfig, why);
}

static void each_constraint_is_refused_in_a_sentence(void **state) {
    (void)state;
    tare_backend_config *backend = my_backend();
    check_left_float(backend, ACTIVATION("\"eps\": 0.000244140625") QINT8, NULL);
    check_left_float(backend,
                     ACTIVATION("\"dtype\": \"torch.qint8\", \"eps\": 0.000244140625") QINT8,
                     "the backend wants torch.quint8 inputs, the qconfig gives torch.qint8");
    check_left_float(backend, ACTIVATION("\"eps\": 1e-05") QINT8,
                     "the qconfig's activation eps (9.99999975e-06) is smaller than the backend's "
                     "smallest scale "
                     "(0.000244140625)");
    tare_backend_config_destroy(backend);
}

static tare_backend_config *limited_backend(const tare_dtype_config *d) {
    tare_backend_config *b = tare_backend_config_create("limited");
    tare_pattern_config *p = tare_backend_config_add(b, NN "Linear", NULL, NULL);
    tare_pattern_config_add_dtype_config(p, d);
    tare_pattern_config_set_root_module(p, NN "Linear");
    tare_pattern_config_set_reference_quantized_module(p, "torch.ao.nn.quantized.reference.Linear");
    return b;
}

static void limits_are_compared_with_the_observer(void **state) {
    (void)state;
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    d.input.set = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
    d.input.quant_max_upper_bound = 127;
    tare_backend_config *backend = limited_backend(&d);
    check_left_float(
        backend, ACTIVATION("") QINT8,
        "the qconfig's activation range (0, 255) does not fall within the backend's (0, 127)");
    check_left_float(backend, ACTIVATION("\"reduce_range\": true") QINT8, NULL);
    check_left_float(backend,
                     "{\"activation\": {\"class\": \"PlaceholderObserver\", \"kwargs\": "
                     "{\"dtype\": \"torch.quint8\"}}, " QINT8,
                     "must specify quant_min and quant_max");
    tare_backend_config_destroy(backend);
    d.input.set = 0;
    d.output.dtype = TARE_QINT8;
    backend = limited_backend(&d);
    check_left_float(backend, ACTIVATION("") QINT8,
                     "the backend gives torch.qint8 outputs, the qconfig wants torch.quint8");
    tare_backend_config_destroy(backend);
    d.output.dtype = TARE_QUINT8;
    d.is_dynamic = 1;
    backend = limited_backend(&d);
    check_left_float(backend, ACTIVATION("") QINT8,
                     "the backend wants dynamic quantization here, the qconfig is static");
    tare_backend_config_destroy(backend);
    d.is_dynamic = -1;
    d.input.set = d.output.set = TARE_SET_SCALE_EXACT | TARE_SET_ZERO_POINT_EXACT;
    d.input.scale_exact_match = d.output.scale_exact_match = 0.25;
    backend = limited_backend(&d);
    check_left_float(backend, ACTIVATION("") QINT8, "must use a FixedQParamsObserver");
    check_left_float(
        backend,
        "{\"activation\": {\"class\": \"FixedQParamsObserver\", \"kwargs\": "
        "{\"scale\": 0.5, \"zero_point\": 0}}, " QINT8,
        "the qconfig's fixed scale 0.5 and zero point 0 are not the backend's 0.25 and 0");
    check_left_float(backend,
                     "{\"activation\": {\"class\": \"FixedQParamsObserver\", \"kwargs\": "
                     "{\"scale\": 0.25, \"zero_point\": 0}}, " QINT8,
                     NULL);
    tare_backend_config_destroy(backend);
}

static void weights_of_functions_have_limits_too(void **state) {
    (void)state;
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    d.weight.set = TARE_SET_SCALE_MIN;
    d.weight.scale_min_lower_bound = 0.5;
    tare_backend_config *backend = tare_backend_config_create("limited");
    tare_pattern_config *p = tare_backend_config_add(backend, "torch._C._nn.linear", NULL, NULL);
    tare_pattern_config_set_input_type_to_index(p, "weight", 1);
    tare_pattern_config_add_dtype_config(p, &d);
    CHECK_DONE(tare_backend_config_check(backend, job_error()));
    check_refusal(one_function(), backend, ACTIVATION("") QINT8,
                  "the qconfig's weight eps (1.1920929e-07) is smaller than the backend's smallest "
                  "scale (0.5)");
    check_refusal(one_function(), backend, ACTIVATION("") WEIGHT("\"dtype\": \"torch.quint8\""),
                  "the backend wants torch.qint8 weights, the qconfig gives torch.quint8");
    d.weight.set = 0;
    tare_pattern_config_set_dtype_configs(p, &d, 1);
    check_refusal(one_function(), backend, ACTIVATION("") QINT8, NULL);
    check_refusal(one_linear(), backend, ACTIVATION("") QINT8,
                  "the backend 'limited' has no pattern for it");
    tare_backend_config_destroy(backend);
}

// --- weights of modules ---

static tare_backend_config *bounded_backend(void) {
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    d.weight.set = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
    d.weight.quant_min_lower_bound = -127;
    d.weight.quant_max_upper_bound = 127;
    return limited_backend(&d);
}

static void check_weight_range(tare_backend_config *backend, tare_qconfig_mapping *mapping) {
    tare_model *model = one_linear(), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 1, 3);
    tare_model *r = referenced(p, backend);
    const tare_tensor *weight = tare__module_find_tensor(r->root, "fc.weight");
    const tare_tensor *scale = tare__module_find_tensor(r->root, "fc.weight_scale");
    const int64_t columns = weight->shape[1];
    for (int64_t i = 0; i < columns * weight->shape[0]; i++)
        assert_true(nearbyint(tare__tensor_get(weight, i) / tare__tensor_get(scale, i / columns)) >=
                    -127);
    tare_model_destroy(r);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

static void bounds_of_modules_weights_are_enforced(void **state) {
    (void)state;
    static const char range[] =
        "the qconfig's weight range (-128, 127) does not fall within the backend's (-127, 127)";
    tare_backend_config *backend = bounded_backend();
    check_refusal(one_linear(), backend, ACTIVATION("") QINT8, range);
    check_refusal(one_linear(), backend,
                  ACTIVATION("") WEIGHT("\"dtype\": \"torch.qint8\", \"quant_min\": -127, "
                                        "\"quant_max\": 127"),
                  NULL);
    // The default mapping is narrowed to what the backend takes.
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(tare_qconfig_mapping_for_backend(backend, false, &mapping, job_error()));
    check_weight_range(backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// torch does not look at them: its mappings by name are taken as they are, and the record tells.
static void bounds_of_modules_weights_are_reported_for_torch_s_mappings(void **state) {
    (void)state;
    tare_backend_config *backend = bounded_backend();
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = one_linear(), *p = prepared(model, backend, mapping);
    CHECK_HOLDS(decided(p, "fc"), "observed");
    CHECK_HOLDS(explained(p, "fc"), "warning: the qconfig's weight range (-128, 127) does not "
                                    "fall within the backend's (-127, 127); torch's mapping "
                                    "'x86' is used as it is");
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// --- wildcards ---

static const tare_match_node *second_of(void *user, const tare_match *match) {
    (void)user;
    return tare_match_node_at(match, 1);
}

// add(conv, anything), and a pattern for convolutions alone.
static tare_backend_config *sum_backend(void) {
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    tare_backend_config *backend = tare_backend_config_create("sums");
    tare_pattern_config *sum = tare_pattern_config_create();
    tare_pattern_config_set_pattern_complex(
        sum, "[\"operator.add\", \"torch.nn.Conv2d\", \"MatchAllNode\"]");
    tare_pattern_config_set_root_node_getter(sum, second_of, NULL);
    tare_pattern_config_add_dtype_config(sum, &d);
    tare_backend_config_set(backend, sum);
    tare_pattern_config *conv = tare_backend_config_add(backend, NN "Conv2d", NULL, NULL);
    tare_pattern_config_set_root_module(conv, NN "Conv2d");
    tare_pattern_config_set_reference_quantized_module(conv,
                                                       "torch.ao.nn.quantized.reference.Conv2d");
    tare_pattern_config_add_dtype_config(conv, &d);
    return backend;
}

static tare_model *sum_prepared(tare_backend_config *backend, const char *float_module) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", CONV);
    put_module(root, NULL, "b", NN "Conv2d", CONV);
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    a = self.a(x)\n    b = self.b(x)\n"
                                  "    add = a + b\n    return add\n");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    if (float_module != NULL) tare_qconfig_mapping_set_module_name(mapping, float_module, NULL);
    tare_model *p = prepared(model, backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
    return p;
}

static void a_wildcard_s_node_without_qconfig_leaves_the_match_alone(void **state) {
    (void)state;
    tare_backend_config *backend = sum_backend();
    tare_model *p = sum_prepared(backend, "b");
    CHECK_HOLDS(decided(p, "add"), "observed");
    CHECK_HOLDS(decided(p, "a"), "observed");
    CHECK_HOLDS(decided(p, "b"), "left float: the qconfig mapping asks for no quantization");
    CHECK_HOLDS(printed(p), "a = self.a(activation_post_process_0)");
    assert_false(tare__prepared_node(p->prepared, "b")->is_observed);
    tare_model_destroy(p);
    tare_backend_config_destroy(backend);
}

static void a_wildcard_s_node_has_a_pattern_of_its_own(void **state) {
    (void)state;
    tare_backend_config *backend = sum_backend();
    tare_model *p = sum_prepared(backend, NULL);
    // Its result is observed, so that the sum reads integers of it.
    CHECK_HOLDS(printed(p), "activation_post_process_1 = self.activation_post_process_1(b)");
    CHECK_HOLDS(printed(p), "add = a + activation_post_process_1;");
    tare_model_destroy(p);
    tare_backend_config_destroy(backend);
}

static void a_pattern_whose_root_has_no_qconfig_stays_float(void **state) {
    (void)state;
    tare_backend_config *backend = sum_backend();
    tare_model *p = sum_prepared(backend, "a");
    CHECK_HOLDS(decided(p, "add"), "left float: the qconfig mapping leaves 'a', the root of its "
                                   "pattern, float");
    CHECK_HOLDS(decided(p, "a"), "left float");
    CHECK_HOLDS(decided(p, "b"), "observed");
    tare_model_destroy(p);
    tare_backend_config_destroy(backend);
}

static void what_the_backend_does_not_list_is_left_float(void **state) {
    (void)state;
    tare_backend_config *backend = my_backend();
    tare_qconfig_mapping *mapping = my_mapping();
    tare_model *model = read_example("conv_bn_relu"), *p = prepared(model, backend, mapping);
    CHECK_HOLDS(decided(p, "bn"), "left float: the backend 'my_backend' has no pattern for it");
    CHECK_HOLDS(decided(p, "linear"), "observed");
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void the_tutorial_s_models_are_prepared_as_torch_does(void **state) {
    (void)state;
    tare_backend_config *backend = my_backend();
    tare_qconfig_mapping *mapping = my_mapping();
    tare_model *model = read_example("conv_relu"), *p = prepared(model, backend, mapping);
    CHECK_HOLDS(printed(p), "    linear = self.linear(activation_post_process_0);  "
                            "activation_post_process_0 = None\n");
    CHECK_HOLDS(printed(p), "    conv = self.conv(activation_post_process_1);  "
                            "activation_post_process_1 = None\n");
    CHECK_HOLDS(printed(p), "(conv): ConvReLU2d(");
    CHECK_HOLDS(printed(p), "    sigmoid = self.sigmoid(activation_post_process_2)");
    assert_int_equal(tare_model_get_stage(p), TARE_STAGE_PREPARED);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edge_of_a_quantized_operator_is_observed_once),
        cmocka_unit_test(cat_and_pooling_share_the_observer_of_their_input),
        cmocka_unit_test(what_cannot_share_gets_no_observer_and_leaves_a_gap),
        cmocka_unit_test(operators_of_fixed_parameters_get_them),
        cmocka_unit_test(sizes_are_not_observed),
        cmocka_unit_test(integers_are_not_observed),
        cmocka_unit_test(integers_behind_unknown_values_are_not_observed),
        cmocka_unit_test(later_selectors_win),
        cmocka_unit_test(a_selector_that_matches_nothing_is_an_error),
        cmocka_unit_test(fused_parts_need_equal_qconfigs),
        cmocka_unit_test(each_constraint_is_refused_in_a_sentence),
        cmocka_unit_test(limits_are_compared_with_the_observer),
        cmocka_unit_test(weights_of_functions_have_limits_too),
        cmocka_unit_test(bounds_of_modules_weights_are_enforced),
        cmocka_unit_test(bounds_of_modules_weights_are_reported_for_torch_s_mappings),
        cmocka_unit_test(a_wildcard_s_node_without_qconfig_leaves_the_match_alone),
        cmocka_unit_test(a_wildcard_s_node_has_a_pattern_of_its_own),
        cmocka_unit_test(a_pattern_whose_root_has_no_qconfig_stays_float),
        cmocka_unit_test(what_the_backend_does_not_list_is_left_float),
        cmocka_unit_test(the_tutorial_s_models_are_prepared_as_torch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
