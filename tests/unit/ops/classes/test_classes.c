// SPDX-License-Identifier: Apache-2.0
// The table of module classes: unique names, related classes, and modules printed as torch prints.
#include "support/test.h"

#include "core/text/text.h"
#include "ops/classes/classes.h"
#include "ops/text/print.h"

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};

static void names_and_triples_are_unique(void **state) {
    (void)state;
    for (size_t t = 0; t < classes.table_count; t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const module_class *row = &tables[t]->rows[i];
            assert_ptr_equal(tare__class_find(&classes, row->name), row);
            assert_non_null(row->print_name);
            // Several float classes may share an operator: ConstantPad2d and ZeroPad2d.
            if (row->op && row->role != ROLE_FLOAT && !row->is_variant)
                assert_ptr_equal(
                    tare__class_triple(&classes, row->op, row->dims, row->role, row->fused), row);
        }
    }
}

static void check_triple(const char *op, int dims, module_role role, fused_with fused,
                         const char *name) {
    const module_class *class = tare__class_triple(&classes, op, dims, role, fused);
    assert_non_null(class);
    assert_string_equal(class->name, name);
}

static void neighbours_follow_from_the_triple(void **state) {
    (void)state;
    check_triple("conv", 2, ROLE_FUSED, FUSED_BN_RELU, "torch.ao.nn.intrinsic.ConvBnReLU2d");
    check_triple("conv", 3, ROLE_QAT, FUSED_BN, "torch.ao.nn.intrinsic.qat.ConvBn3d");
    check_triple("conv", 1, ROLE_QAT, FUSED_NONE, "torch.ao.nn.qat.Conv1d");
    check_triple("conv", 2, ROLE_REFERENCE, FUSED_NONE, "torch.ao.nn.quantized.reference.Conv2d");
    check_triple("conv", 2, ROLE_QUANTIZED, FUSED_RELU,
                 "torch.ao.nn.intrinsic.quantized.ConvReLU2d");
    check_triple("linear", 0, ROLE_DYNAMIC, FUSED_RELU,
                 "torch.ao.nn.intrinsic.quantized.dynamic.LinearReLU");
    check_triple("conv_transpose", 2, ROLE_QUANTIZED, FUSED_NONE,
                 "torch.ao.nn.quantized.ConvTranspose2d");
    check_triple("batch_norm", 3, ROLE_QUANTIZED, FUSED_RELU,
                 "torch.ao.nn.intrinsic.quantized.BNReLU3d");
    assert_null(tare__class_triple(&classes, "conv_transpose", 2, ROLE_QAT, FUSED_NONE));
}

static void check_public(const char *name, const char *expected) {
    char out[128];
    tare__class_public_name(name, out, sizeof out);
    assert_string_equal(out, expected);
}

static void public_names_leave_out_the_files(void **state) {
    (void)state;
    check_public("torch.nn.modules.linear.Linear", "torch.nn.Linear");
    check_public("torch.nn.Linear", "torch.nn.Linear");
    check_public("torch.ao.nn.intrinsic.modules.fused.ConvReLU2d",
                 "torch.ao.nn.intrinsic.ConvReLU2d");
    check_public("torch.ao.nn.intrinsic.qat.modules.conv_fused.ConvBn2d",
                 "torch.ao.nn.intrinsic.qat.ConvBn2d");
    check_public("torch.nn.quantized.dynamic.modules.linear.Linear",
                 "torch.ao.nn.quantized.dynamic.Linear");
    check_public("torch.ao.quantization.observer.MinMaxObserver",
                 "torch.ao.quantization.MinMaxObserver");
    check_public("torch.fx.graph_module.GraphModule", "torch.fx.GraphModule");
    check_public("my.modules.linear.Linear", "my.modules.linear.Linear");
    check_public("torch.nn.modules", "torch.nn.modules");
    check_public("torch.nn.modules.", "torch.nn.");
    char small[8];
    tare__class_public_name("torch.nn.modules.linear.Linear", small, sizeof small);
    assert_string_equal(small, "torch.n");
}

static module *new_module(const char *name) {
    const module_class *class = tare__class_find(&classes, name);
    if (!class) fail_msg("no class %s", name);
    module *m = NULL;
    CHECK_OK(tare__module_create(class, &m, NULL));
    return m;
}

static void set(module *m, const char *key, value v) {
    CHECK_OK(tare__module_set_config(m, key, &v, NULL));
}

static void set_pair(module *m, const char *key, int64_t a, int64_t b) {
    value items[] = {tare__int(a), tare__int(b)};
    set(m, key, (value){.kind = VALUE_TUPLE, .count = 2, .as.items = items});
}

static void put_tensor(module *m, const char *name, tare_tensor *t) {
    CHECK_OK(tare__module_set_tensor(m, name, t, true, NULL));
    tare_tensor_release(t);
}

static tare_tensor *float_scalar(float number) {
    tare_tensor *t = NULL;
    CHECK_OK(tare__tensor_scalar_float(number, &t, NULL));
    return t;
}

static tare_tensor *int_scalar(int64_t number) {
    tare_tensor *t = NULL;
    CHECK_OK(tare__tensor_scalar_int(number, &t, NULL));
    return t;
}

// Consumes m.
static void check_text(module *m, const char *expected) {
    text out = {0};
    CHECK_OK(tare__print_module(m, &out, NULL));
    assert_string_equal(tare__text_chars(&out), expected);
    tare__text_release(&out);
    tare__module_release(m);
}

static module *new_conv(const char *name) {
    module *m = new_module(name);
    set(m, "in_channels", tare__int(2));
    set(m, "out_channels", tare__int(4));
    set_pair(m, "kernel_size", 3, 3);
    set_pair(m, "stride", 1, 1);
    set_pair(m, "padding", 0, 0);
    set_pair(m, "dilation", 1, 1);
    set(m, "groups", tare__int(1));
    set(m, "padding_mode", tare__string("zeros"));
    put_tensor(m, "bias", float_scalar(0));
    return m;
}

static void convolutions_show_what_is_unusual(void **state) {
    (void)state;
    check_text(new_conv("torch.nn.Conv2d"), "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1))");
    module *m = new_conv("torch.ao.nn.quantized.reference.Conv2d");
    set_pair(m, "padding", 0, 1);
    set_pair(m, "dilation", 2, 2);
    set(m, "groups", tare__int(2));
    set(m, "padding_mode", tare__string("reflect"));
    CHECK_OK(tare__module_set_tensor(m, "bias", NULL, true, NULL));
    check_text(m, "QuantizedConv2d(Reference)(2, 4, kernel_size=(3, 3), stride=(1, 1), "
                  "padding=(0, 1), dilation=(2, 2), groups=2, bias=False, padding_mode=reflect)");
    m = new_conv("torch.nn.Conv2d");
    set(m, "padding", tare__string("same"));
    check_text(m, "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=same)");
    m = new_conv("torch.ao.nn.intrinsic.quantized.ConvReLU2d");
    set_pair(m, "padding", 1, 1);
    put_tensor(m, "scale", float_scalar(0.1f));
    put_tensor(m, "zero_point", int_scalar(64));
    check_text(m, "QuantizedConvReLU2d(2, 4, kernel_size=(3, 3), stride=(1, 1), "
                  "scale=0.10000000149011612, zero_point=64, padding=(1, 1))");
    m = new_conv("torch.nn.ConvTranspose2d");
    set_pair(m, "output_padding", 1, 1);
    check_text(m,
               "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(1, 1), output_padding=(1, 1))");
}

static module *new_linear(const char *name) {
    module *m = new_module(name);
    set(m, "in_features", tare__int(2));
    set(m, "out_features", tare__int(3));
    return m;
}

static tare_tensor *per_tensor_weight(void) {
    qparams *q = tare__qparams_per_tensor(TARE_QINT8, 0.5, 0);
    tare_tensor *t = NULL;
    CHECK_OK(tare__tensor_quantized(2, (const int64_t[]){3, 2}, q, &t, NULL));
    tare__qparams_release(q);
    return t;
}

static void quantized_linears_show_their_weights_scheme(void **state) {
    (void)state;
    check_text(new_linear("torch.nn.Linear"), "Linear(in_features=2, out_features=3, bias=False)");
    module *m = new_linear("torch.ao.nn.quantized.Linear");
    put_tensor(m, "weight", per_tensor_weight());
    put_tensor(m, "scale", float_scalar(0.5f));
    put_tensor(m, "zero_point", int_scalar(128));
    check_text(m, "QuantizedLinear(in_features=2, out_features=3, scale=0.5, zero_point=128, "
                  "qscheme=torch.per_tensor_affine)");
    m = new_linear("torch.ao.nn.quantized.dynamic.Linear");
    put_tensor(m, "weight", per_tensor_weight());
    check_text(m, "DynamicQuantizedLinear(in_features=2, out_features=3, dtype=torch.qint8, "
                  "qscheme=torch.per_tensor_affine)");
    m = new_linear("torch.ao.nn.quantized.dynamic.Linear");
    tare_tensor *half = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT16, 2, (const int64_t[]){3, 2}, &half, NULL));
    put_tensor(m, "weight", half);
    check_text(m, "DynamicQuantizedLinear(in_features=2, out_features=3, dtype=torch.float16)");
}

static void fields_of_other_families(void **state) {
    (void)state;
    module *m = new_module("torch.nn.BatchNorm1d");
    set(m, "num_features", tare__int(3));
    set(m, "eps", tare__float(1e-5));
    set(m, "momentum", tare__none());
    set(m, "affine", tare__bool(false));
    set(m, "track_running_stats", tare__bool(true));
    check_text(m, "BatchNorm1d(3, eps=1e-05, momentum=None, affine=False, bias=False, "
                  "track_running_stats=True)");
    m = new_module("torch.nn.LSTM");
    set(m, "input_size", tare__int(3));
    set(m, "hidden_size", tare__int(4));
    set(m, "num_layers", tare__int(2));
    set(m, "bias", tare__bool(false));
    set(m, "batch_first", tare__bool(true));
    set(m, "dropout", tare__float(0.1));
    set(m, "bidirectional", tare__bool(false));
    check_text(m, "LSTM(3, 4, num_layers=2, bias=False, batch_first=True, dropout=0.1)");
    m = new_module("torch.nn.RNNCell");
    set(m, "input_size", tare__int(3));
    set(m, "hidden_size", tare__int(4));
    set(m, "nonlinearity", tare__string("relu"));
    check_text(m, "RNNCell(3, 4, nonlinearity=relu)");
    m = new_module("torch.nn.EmbeddingBag");
    set(m, "num_embeddings", tare__int(10));
    set(m, "embedding_dim", tare__int(3));
    set(m, "norm_type", tare__int(2));
    set(m, "mode", tare__string("sum"));
    check_text(m, "EmbeddingBag(10, 3, mode='sum')");
    m = new_module("torch.nn.Upsample");
    set(m, "scale_factor", tare__none());
    set_pair(m, "size", 2, 2);
    set(m, "mode", tare__string("bilinear"));
    check_text(m, "Upsample(size=(2, 2), mode='bilinear')");
    m = new_module("torch.nn.ReLU");
    set(m, "inplace", tare__bool(true));
    check_text(m, "ReLU(inplace=True)");
    check_text(new_module("torch.ao.nn.quantized.Hardswish"), "QuantizedHardswish()");
}

static void put(module *root, const char *path, module *m) {
    CHECK_OK(tare__module_set_path(root, path, m, &tare__class_container, NULL));
    tare__module_release(m);
}

static void children_are_indented_and_lists_grouped(void **state) {
    (void)state;
    module *root = new_module("torch.fx.GraphModule");
    put(root, "seq.0", new_linear("torch.nn.Linear"));
    put(root, "fc", new_linear("torch.ao.nn.qat.Linear"));
    put(root, "fc.weight_fake_quant", new_module("torch.nn.Identity"));
    module *list = new_module("torch.nn.ModuleList");
    put(root, "list", list);
    put(list, "0", new_module("torch.nn.ReLU"));
    put(list, "1", new_module("torch.nn.ReLU"));
    put(list, "2", new_module("torch.nn.Tanh"));
    put(list, "3", new_module("torch.nn.ReLU"));
    put(root, "empty", new_module("torch.nn.Module"));
    check_text(root, "GraphModule(\n"
                     "  (seq): Module(\n"
                     "    (0): Linear(in_features=2, out_features=3, bias=False)\n"
                     "  )\n"
                     "  (fc): Linear(\n"
                     "    in_features=2, out_features=3, bias=False\n"
                     "    (weight_fake_quant): Identity()\n"
                     "  )\n"
                     "  (list): ModuleList(\n"
                     "    (0-1): 2 x ReLU()\n"
                     "    (2): Tanh()\n"
                     "    (3): ReLU()\n"
                     "  )\n"
                     "  (empty): Module()\n"
                     ")");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_triples_are_unique),
        cmocka_unit_test(neighbours_follow_from_the_triple),
        cmocka_unit_test(public_names_leave_out_the_files),
        cmocka_unit_test(convolutions_show_what_is_unusual),
        cmocka_unit_test(quantized_linears_show_their_weights_scheme),
        cmocka_unit_test(fields_of_other_families),
        cmocka_unit_test(children_are_indented_and_lists_grouped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
