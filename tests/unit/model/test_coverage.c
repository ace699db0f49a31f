// SPDX-License-Identifier: Apache-2.0
// Operators and multiplications that are counted as integer or float, on networks counted by hand.
#include "core/text/text.h"
#include "model/coverage.h"
#include "support/models.h"
#include "support/test.h"
#include "tare/record.h"

#define NN "torch.nn."

static tare_coverage coverage_of(const tare_model *model) {
    tare_coverage c;
    CHECK_DONE(tare_model_coverage(model, &c, job_error()));
    return c;
}

// linear - exp - linear - tanh - exp, for the backend x86: two float operators apart.
static tare_model *islands(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=4");
    put_module(root, NULL, "b", NN "Linear", "in_features=4, out_features=2");
    return new_model(NULL, root,
                     "def forward(self, x):\n    a = self.a(x)\n    exp = torch.exp(a)\n"
                     "    neg = torch.neg(exp)\n    b = self.b(neg)\n"
                     "    exp_1 = torch.exp(b)\n    return exp_1\n");
}

static void operators_and_their_work_are_counted(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = islands(), *p = prepared(model, backend, mapping);
    tare_coverage c = coverage_of(model);
    assert_int_equal(c.op_count, 0); // no pass has looked at it
    assert_int_equal(c.weight_bytes, 4 * (12 + 4 + 8 + 2));
    assert_int_equal(c.quantized_weight_bytes, 0);
    c = coverage_of(p);
    assert_int_equal(c.op_count, 5);
    assert_int_equal(c.quantized_op_count, 0);
    assert_int_equal(c.macs, 0); // no shape is known
    CALIBRATED(p, 6, 3);
    c = coverage_of(p);
    assert_int_equal(c.macs, 3 * 4 + 4 * 2); // of one sample
    tare_model *q = lowered(p, backend);
    c = coverage_of(q);
    assert_int_equal(c.op_count, 5);
    assert_int_equal(c.quantized_op_count, 2);
    assert_int_equal(c.macs, 20);
    assert_int_equal(c.quantized_macs, 20);
    assert_int_equal(c.float_island_count, 2); // exp - neg, and the last exp
    assert_int_equal(c.quantized_weight_bytes, 12 + 8);
    tare_model *r = referenced(p, backend);
    c = coverage_of(r);
    assert_int_equal(c.quantized_op_count, 2);
    assert_int_equal(c.float_island_count, 2);
    tare_model_destroy(r);
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void fused_operators_count_with_their_carrier(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = read_example("conv_bn_relu"), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 2, 3, 3, 10);
    tare_model *q = lowered(p, backend);
    const tare_coverage c = coverage_of(q);
    assert_int_equal(c.op_count, 5); // linear, conv, bn, relu, sigmoid
    assert_int_equal(c.quantized_op_count, 5);
    assert_int_equal(c.float_island_count, 0);
    assert_int_equal(c.quantized_macs, c.macs);
    assert_string_equal(tare__traced_carrier(q, tare__traced_op(q, "relu"))->name, "conv");
    assert_string_equal(tare__traced_carrier(q, tare__traced_op(q, "bn"))->name, "conv");
    assert_null(tare__traced_op(q, "activation_post_process_0"));
    assert_null(tare__traced_op(q, NULL));
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void sizes_and_arithmetic_on_them_do_not_count(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = new_model(NULL, new_tree(),
                                  "def forward(self, x):\n"
                                  "    size = x.size(0)\n"
                                  "    shape = getattr(x, 'shape')\n"
                                  "    getitem = shape[1]\n"
                                  "    mul = size * getitem\n"
                                  "    transposed = getattr(x, 'T')\n"
                                  "    relu = torch.nn.functional.relu(transposed)\n"
                                  "    reshape = relu.reshape(mul)\n"
                                  "    return reshape\n");
    tare_model *p = prepared(model, backend, mapping);
    assert_int_equal(coverage_of(p).op_count, 3); // getattr of 'T', relu, reshape
    assert_null(tare__traced_op(p, "mul"));
    assert_int_equal(coverage_of(p).float_island_count, 0);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// The backend wants qint8 weights; prepare does not look at a module's weight, convert does.
static void a_module_whose_weight_stays_float_does_not_count(void **state) {
    (void)state;
    static const char quint8_weights[] = "{\"global\": {\"activation\": {\"class\": "
                                         "\"MinMaxObserver\", \"kwargs\": {\"quant_min\": 0, "
                                         "\"quant_max\": 127, \"eps\": 0.000244140625}}, "
                                         "\"weight\": {\"class\": \"MinMaxObserver\", "
                                         "\"kwargs\": {\"dtype\": \"torch.quint8\"}}}}";
    tare_backend_config *backend = my_backend();
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(tare_qconfig_mapping_from_json(quint8_weights, sizeof quint8_weights - 1, &mapping,
                                              job_error()));
    tare_model *model = read_example("conv_relu"), *p = prepared(model, backend, mapping);
    // The preview asks what convert is going to ask.
    text preview = {0};
    CHECK_DONE(tare_model_preview(p, false, tare__text_append_writer, &preview, job_error()));
    CHECK_HOLDS(tare__text_chars(&preview),
                "float: linear (torch.nn.Linear): the backend takes torch.quint8 inputs with "
                "torch.qint8 weights, the qconfig gives torch.quint8 and torch.quint8");
    CHECK_LACKS(tare__text_chars(&preview), "integers");
    tare__text_release(&preview);
    CALIBRATED(p, 1, 3, 10, 10);
    tare_model *r = referenced(p, backend);
    assert_int_equal(coverage_of(r).quantized_op_count, 0);
    tare_model_destroy(r);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void a_convolution_counts_a_product_for_each_weight_and_output(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=4, out_channels=6, kernel_size=(3, 3), stride=(1, 1), "
               "padding=(1, 1), dilation=(1, 1), groups=2, padding_mode='zeros'");
    tare_model *model =
        new_model(NULL, root, "def forward(self, x):\n    conv = self.conv(x)\n    return conv\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 3, 4, 5, 7);
    assert_int_equal(coverage_of(p).macs, 5 * 7 * 6 * (2 * 3 * 3));
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void put_tensor(module *m, const char *name, int ndim, const int64_t *shape) {
    tare_tensor *t = new_input(ndim, shape);
    CHECK_DONE(tare__module_set_tensor(m, name, t, true, job_error()));
    tare_tensor_release(t);
}

static void functions_and_recurrent_layers_count_too(void **state) {
    (void)state;
    module *root = new_tree();
    module *gru = put_module(root, NULL, "gru", NN "GRU",
                             "input_size=4, hidden_size=2, num_layers=1, bias=False, "
                             "batch_first=True, bidirectional=False");
    put_tensor(gru, "weight_ih_l0", 2, (const int64_t[]){6, 4});
    put_tensor(gru, "weight_hh_l0", 2, (const int64_t[]){6, 2});
    tare_model *model =
        new_model(NULL, root,
                  "def forward(self, x):\n    gru = self.gru(x)\n    getitem = gru[0]\n"
                  "    transpose = getitem.transpose(1, 2)\n    matmul = torch.matmul(getitem, "
                  "transpose)\n    return matmul\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 3, 5, 4);
    // Five steps of three gates on input and state; five by five sums of two products.
    assert_int_equal(coverage_of(p).macs, 5 * (3 * 2) * (4 + 2) + 5 * 5 * 2);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void shared_weights_are_counted_once(void **state) {
    (void)state;
    module *root = new_tree();
    module *a = put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=3");
    CHECK_DONE(tare__module_set_child(root, "b", a, job_error()));
    tare_model *model = new_model(
        NULL, root, "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n    return b\n");
    tare_model_facts facts;
    CHECK_DONE(tare_model_get_facts(model, &facts, job_error()));
    assert_int_equal(facts.parameter_count, 12);
    assert_int_equal(facts.weight_bytes, 48);
    assert_int_equal(facts.quantized_weight_bytes, 0);
    tare_model_destroy(model);
}

// --- the operator of the float model that a node gives ---

enum { CHAIN = 10000, FUSED = 5 };

static const char *link_name(size_t i) {
    static char names[2][32];
    static size_t turn;
    char *name = names[turn++ % 2];
    (void)snprintf(name, sizeof names[0], "neg_%zu", i);
    return name;
}

static tare_model *chain(void) {
    text code = {0};
    tare__text_append(&code, "def forward(self, x):\n    neg_0 = torch.neg(x)\n");
    for (size_t i = 1; i < CHAIN; i++)
        tare__text_printf(&code, "    neg_%zu = torch.neg(neg_%zu)\n", i, i - 1);
    tare__text_printf(&code, "    return neg_%d\n", CHAIN - 1);
    assert_int_equal(tare__text_status(&code, job_error()), TARE_OK);
    tare_model *model = new_model(NULL, new_tree(), code.chars);
    tare__text_release(&code);
    return model;
}

static void check_last(const tare_model *model, size_t at, size_t last) {
    assert_string_equal(tare_model_float_node(model, link_name(at)), link_name(last));
}

// Of a chain of 10,000 every node is asked for: looking through all operators each time takes
// a hundred million looks.
static void every_node_of_a_long_chain_knows_its_last_operator(void **state) {
    (void)state;
    tare_model *model = chain();
    check_last(model, 7, 7); // no pass has seen it
    CHECK_DONE(tare__coverage_begin(model, job_error()));
    for (size_t i = 0; i < CHAIN; i++)
        if (i % FUSED != 0)
            CHECK_DONE(tare__coverage_fused(model, link_name(i), link_name(i - 1), job_error()));
    for (size_t i = 0; i < CHAIN; i += FUSED) check_last(model, i, i + FUSED - 1);
    check_last(model, 1, 1); // computes nothing any more
    tare_model_destroy(model);
}

// Fused backwards, by way of what is fused later, and once more into another one.
static void the_order_of_fusions_does_not_matter(void **state) {
    (void)state;
    tare_model *model = chain();
    CHECK_DONE(tare__coverage_begin(model, job_error()));
    for (size_t i = 9; i > 5; i--)
        CHECK_DONE(tare__coverage_fused(model, link_name(i), link_name(i - 1), job_error()));
    check_last(model, 5, 9);
    CHECK_DONE(tare__coverage_fused(model, link_name(8), link_name(2), job_error()));
    check_last(model, 5, 7);
    check_last(model, 2, 9);
    CHECK_DONE(tare__coverage_fused(model, link_name(2), link_name(5), job_error()));
    check_last(model, 5, 9);
    check_last(model, 2, 2);
    tare_model_destroy(model);
}

// Rows of a table of integers are floats: what reads them computes in floats.
static void what_reads_rows_of_a_table_is_float(void **state) {
    (void)state;
    module *root = new_tree();
    module *table =
        put_module(root, NULL, "table", NN "Embedding", "num_embeddings=7, embedding_dim=4");
    tare_tensor *weight = NEW_INPUT(7, 4);
    CHECK_DONE(tare__module_set_tensor(table, "weight", weight, true, job_error()));
    tare_tensor_release(weight);
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    rows = self.table(x)\n"
                                  "    neg = torch.neg(rows)\n    return neg\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = NULL;
    static const char json[] = "{\"object_type\": [[\"torch.nn.Embedding\", "
                               "\"float_qparams_weight_only_qconfig\"]]}";
    CHECK_DONE(tare_qconfig_mapping_from_json(json, strlen(json), &mapping, job_error()));
    tare_model *p = prepared(model, backend, mapping), *q = lowered(p, backend);
    CHECK_HOLDS(explained(q, NULL), "rows (torch.nn.Embedding): quantized: ");
    CHECK_HOLDS(explained(q, NULL), "neg (torch.neg): left float: ");
    assert_int_equal(coverage_of(q).quantized_op_count, 1);
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_and_their_work_are_counted),
        cmocka_unit_test(fused_operators_count_with_their_carrier),
        cmocka_unit_test(sizes_and_arithmetic_on_them_do_not_count),
        cmocka_unit_test(a_module_whose_weight_stays_float_does_not_count),
        cmocka_unit_test(a_convolution_counts_a_product_for_each_weight_and_output),
        cmocka_unit_test(functions_and_recurrent_layers_count_too),
        cmocka_unit_test(shared_weights_are_counted_once),
        cmocka_unit_test(every_node_of_a_long_chain_knows_its_last_operator),
        cmocka_unit_test(the_order_of_fusions_does_not_matter),
        cmocka_unit_test(what_reads_rows_of_a_table_is_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
