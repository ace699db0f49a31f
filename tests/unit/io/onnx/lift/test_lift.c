// SPDX-License-Identifier: Apache-2.0
// Lifting: which calls of an ONNX file were modules, and under which paths.
#include "support/test.h"

#include <string.h>

#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/temp.h"

#ifdef TARE_HAVE_ONNX

// The model of the graph, as it prints. Takes the graph.
static const char *lifted(text g) {
    text file = onnx_model(g, 17);
    const char *path = temp_path("model.onnx");
    tare_model *model = NULL;
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    const char *text_of_model = printed(model);
    tare_model_destroy(model);
    return text_of_model;
}

static void add_conv(text *g, const char *name, const char *inputs, const char *output) {
    text conv = onnx_node("Conv", name, inputs, output);
    const int64_t pads[] = {1, 1, 1, 1};
    onnx_attr_ints(&conv, "pads", pads, 4);
    onnx_add_node(g, conv);
}

static void add_weight(text *g, const char *name) {
    const int64_t weight[] = {2, 2, 3, 3};
    onnx_floats(g, name, 4, weight);
}

static void torchscript_names_are_paths(void **state) {
    (void)state;
    text g = {0};
    add_conv(&g, "/layer1/layer1.0/conv1/Conv", "x onnx::Conv_5", "a");
    onnx_call(&g, "Relu", "/layer1/layer1.0/relu/Relu", "a", "b");
    onnx_call(&g, "Add", "/layer1/layer1.0/Add", "b x", "c");
    onnx_call(&g, "Relu", "/layer1/layer1.0/relu_1/Relu", "c", "d");
    onnx_call(&g, "Relu", "/blocks.0/blocks.0.1/Relu", "d", "e");
    onnx_call(&g, "Relu", "/Relu", "e", "y");
    add_weight(&g, "onnx::Conv_5");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "layer1_0_conv1 = getattr(self.layer1, \"0\").conv1(x)");
    CHECK_HOLDS(model, "layer1_0_relu = getattr(self.layer1, \"0\").relu(layer1_0_conv1)");
    CHECK_HOLDS(model, "layer1_0_relu_1 = getattr(self.layer1, \"0\").relu(add)");
    CHECK_HOLDS(model, "getattr(getattr(self.blocks, \"0\"), \"1\")(layer1_0_relu_1)");
    CHECK_HOLDS(model, "relu = torch.nn.functional.relu(blocks_0_1)");
}

static void second_calls_share_a_module_only_with_its_parameters(void **state) {
    (void)state;
    text same = {0}, other = {0};
    add_conv(&same, "/conv/Conv", "x onnx::Conv_5", "a");
    add_conv(&same, "/conv_1/Conv", "a onnx::Conv_5", "y");
    add_weight(&same, "onnx::Conv_5");
    onnx_input(&same, "x", "1,2,4,4");
    onnx_output(&same, "y");
    CHECK_HOLDS(lifted(same), "conv_1 = self.conv(conv)");
    add_conv(&other, "/conv/Conv", "x onnx::Conv_5", "a");
    add_conv(&other, "/conv_1/Conv", "a xnnx::Conv_6", "y");
    add_weight(&other, "onnx::Conv_5");
    add_weight(&other, "xnnx::Conv_6");
    onnx_input(&other, "x", "1,2,4,4");
    onnx_output(&other, "y");
    CHECK_HOLDS(lifted(other), "conv_1 = self.conv_1(conv)");
}

static void add_scoped(text *g, const char *op, const char *inputs, const char *output,
                       const char *names, const char *classes) {
    text n = onnx_node(op, output, inputs, output);
    onnx_scope_of(&n, names, classes);
    onnx_add_node(g, n);
}

static void dynamo_metadata_says_path_and_class(void **state) {
    (void)state;
    text g = {0};
    add_scoped(&g, "Relu", "x", "a", "['', 'layer1', 'layer1.0', 'relu']",
               "['__main__.M', 'torch.nn.modules.container.Sequential', "
               "'torch.nn.modules.activation.ReLU', 'aten.relu.default']");
    add_scoped(&g, "Relu", "a", "b", "['', 'block', 'relu_1']",
               "['__main__.M', '__main__.Block', 'aten.relu.default']");
    add_scoped(&g, "Relu", "b", "c", "['', 'layer1', 'layer1.0@1', 'relu_2']",
               "['__main__.M', 'torch.nn.modules.container.Sequential', "
               "'torch.nn.modules.activation.ReLU', 'aten.relu.default']");
    onnx_call(&g, "Relu", "node_relu_3", "c", "y");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "layer1_0 = getattr(self.layer1, \"0\")(x)");
    CHECK_HOLDS(model, "relu = torch.nn.functional.relu(layer1_0)");
    CHECK_HOLDS(model, "layer1_1 = getattr(self.layer1, \"0\")(relu)");
    CHECK_HOLDS(model, "relu_1 = torch.nn.functional.relu(layer1_1)");
}

static void a_folded_batch_norm_does_not_take_the_convolution(void **state) {
    (void)state;
    text g = {0}, conv = onnx_node("Conv", "node_Conv_7", "x conv1.weight", "y");
    onnx_scope_of(&conv, "['', 'bn1', '_native_batch_norm_legit_no_training']",
                  "['__main__.M', 'torch.nn.modules.batchnorm.BatchNorm2d', "
                  "'aten._native_batch_norm_legit_no_training.default']");
    onnx_add_node(&g, conv);
    add_weight(&g, "conv1.weight");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    CHECK_HOLDS(lifted(g), "(conv1): Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), bias=False)");
}

static void parameters_of_ones_own_stay_functions(void **state) {
    (void)state;
    text g = {0};
    add_conv(&g, "/block/Conv", "x block.w", "y");
    add_weight(&g, "block.w");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "block_w = self.block.w");
    CHECK_HOLDS(model, "torch.conv2d(x, block_w");
}

static void files_without_scopes_name_modules_by_parameters_or_nodes(void **state) {
    (void)state;
    text g = {0};
    add_conv(&g, "Conv_0", "x features.0.weight", "a");
    add_conv(&g, "model/block 2/Conv2D", "a 27", "b");
    onnx_call(&g, "Relu", "Relu_2", "b", "y");
    add_weight(&g, "features.0.weight");
    add_weight(&g, "27");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "features_0 = getattr(self.features, \"0\")(x)");
    CHECK_HOLDS(model, "self.model.block_2.Conv2D(features_0)");
    CHECK_HOLDS(model, "torch.nn.functional.relu(");
}

static void a_product_and_a_sum_are_a_linear_layer(void **state) {
    (void)state;
    text g = {0};
    const int64_t weight[] = {4, 3}, bias[] = {3};
    onnx_call(&g, "MatMul", "/fc/MatMul", "x onnx::MatMul_3", "a");
    onnx_call(&g, "Add", "/fc/Add", "fc.bias a", "b");
    onnx_call(&g, "MatMul", "/MatMul", "x own", "c");
    onnx_call(&g, "Add", "/Add", "b c", "y");
    onnx_floats(&g, "onnx::MatMul_3", 2, weight);
    onnx_floats(&g, "own", 2, weight);
    onnx_floats(&g, "fc.bias", 1, bias);
    onnx_input(&g, "x", "1,5,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "(fc): Linear(in_features=4, out_features=3, bias=True)");
    CHECK_HOLDS(model, "matmul = torch.matmul(x, own)");
}

static void spelled_out_functions_are_raised(void **state) {
    (void)state;
    text g = {0}, own = {0};
    onnx_call(&g, "Sigmoid", "/act/Sigmoid", "x", "a");
    onnx_call(&g, "Mul", "/act/Mul", "x a", "b");
    onnx_call(&g, "HardSigmoid", "/hs/HardSigmoid", "b", "c");
    onnx_call(&g, "Mul", "/Mul", "x c", "y");
    onnx_input(&g, "x", "1,5,4");
    onnx_output(&g, "y");
    CHECK_HOLDS(lifted(g), "(act): SiLU()");
    // Two calls of the user's are what they are.
    add_scoped(&own, "Sigmoid", "x", "a", "['', 'sigmoid']",
               "['__main__.M', 'aten.sigmoid.default']");
    add_scoped(&own, "Mul", "x a", "y", "['', 'mul']", "['__main__.M', 'aten.mul.Tensor']");
    onnx_input(&own, "x", "1,5,4");
    onnx_output(&own, "y");
    CHECK_HOLDS(lifted(own), "mul = x * sigmoid");
}

static void add_bounds(text *g) {
    onnx_input(g, "x", "1,2,4,4");
    onnx_output(g, "y");
    onnx_floats(g, "low", 0, NULL);
    onnx_floats(g, "high", 0, NULL);
}

static void a_clip_is_what_the_scope_says(void **state) {
    (void)state;
    const char *model = NULL;
    text names = {0}, classes = {0};
    onnx_call(&names, "Clip", "/act/Clip", "x low high", "a");
    onnx_call(&names, "Relu", "/block/Relu", "a", "b");
    onnx_call(&names, "Clip", "/block/Clip", "b low high", "c"); // beside another call
    onnx_call(&names, "Clip", "/one/Clip", "c low", "y");        // no Hardtanh has one bound
    add_bounds(&names);
    model = lifted(names);
    CHECK_HOLDS(model, "(act): Hardtanh(");
    CHECK_HOLDS(model, "clamp = torch.clamp(relu, min = ");
    CHECK_HOLDS(model, "clamp_1 = torch.clamp(clamp, min = ");
    add_scoped(&classes, "Clip", "x low high", "a", "['', 'act', 'hardtanh']",
               "['__main__.M', 'torch.nn.modules.activation.Hardtanh', 'aten.hardtanh.default']");
    add_scoped(&classes, "Clip", "a zero six", "b", "['', 'other', 'hardtanh_1']",
               "['__main__.M', 'torch.nn.modules.activation.Hardtanh', 'aten.hardtanh.default']");
    add_scoped(&classes, "Clip", "b zero six", "c", "['', 'six', 'hardtanh_2']",
               "['__main__.M', 'torch.nn.modules.activation.ReLU6', 'aten.hardtanh.default']");
    add_scoped(&classes, "Clip", "c low high", "d", "['', 'hardtanh_3']",
               "['__main__.M', 'aten.hardtanh.default']");
    add_scoped(&classes, "Clip", "d low high", "y", "['', 'clamp']",
               "['__main__.M', 'aten.clamp.default']");
    onnx_number(&classes, "zero", 0);
    onnx_number(&classes, "six", 6);
    add_bounds(&classes);
    model = lifted(classes);
    CHECK_HOLDS(model, "(act): Hardtanh(");
    CHECK_HOLDS(model, "(other): Hardtanh(min_val=0.0, max_val=6.0)");
    CHECK_HOLDS(model, "(six): ReLU6()");
    CHECK_HOLDS(model, "hardtanh = torch.nn.functional.hardtanh(six");
    CHECK_HOLDS(model, "clamp = torch.clamp(hardtanh");
}

static void reshapes_follow_the_batch(void **state) {
    (void)state;
    text g = {0};
    const int64_t shape[] = {1, 3, 2, 4}, flat[] = {1, 24};
    onnx_call(&g, "Reshape", "", "x shape", "a");
    onnx_call(&g, "Reshape", "", "a flat", "y");
    onnx_int64s(&g, "shape", shape, 4);
    onnx_int64s(&g, "flat", flat, 2);
    onnx_input(&g, "x", "1,6,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "x.reshape(-1, 3, 2, 4)");
    CHECK_HOLDS(model, "torch.flatten(reshape, 1)");
}

// Exporters of dynamic axes compute sizes from shapes: the batch need not come first then.
static void sizes_that_follow_from_shapes_follow_the_batch(void **state) {
    (void)state;
    text g = {0}, turn = onnx_node("Transpose", "", "x", "t");
    text join = onnx_node("Concat", "", "length batch heads", "split"),
         merge = onnx_node("Concat", "", "both minus", "flat");
    const int64_t order[] = {1, 0, 2}, heads[] = {2, 2}, zero[] = {0}, one[] = {1}, minus[] = {4},
                  kept[] = {0, 0, -1};
    onnx_attr_ints(&turn, "perm", order, 3);
    onnx_attr_int(&join, "axis", 0);
    onnx_attr_int(&merge, "axis", 0);
    onnx_add_node(&g, turn); // [6][N][4]
    onnx_call(&g, "Shape", "", "t", "shape");
    onnx_call(&g, "Gather", "", "shape zero", "length");
    onnx_call(&g, "Gather", "", "shape one", "batch");
    onnx_add_node(&g, join);
    onnx_call(&g, "Reshape", "", "t split", "s");
    onnx_call(&g, "Relu", "", "s", "a"); // [6][N][2][2]
    onnx_call(&g, "Reshape", "", "a kept", "k");
    onnx_call(&g, "Relu", "", "k", "b"); // [6][N][4]
    onnx_call(&g, "Mul", "", "length batch", "both");
    onnx_add_node(&g, merge);
    onnx_call(&g, "Reshape", "", "b flat", "y"); // [6 N][4]
    onnx_int64s(&g, "zero", zero, 1);
    onnx_int64s(&g, "one", one, 1);
    onnx_int64s(&g, "heads", heads, 2);
    onnx_int64s(&g, "minus", minus, 1);
    onnx_int64s(&g, "kept", kept, 3);
    onnx_input(&g, "x", "N,6,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "transpose.reshape(6, -1, 2, 2)");
    CHECK_HOLDS(model, "relu.reshape(6, -1, 4)");
    CHECK_HOLDS(model, "relu_1.reshape(-1, 4)");
}

static void constants_join_every_sample(void **state) {
    (void)state;
    text g = {0}, join = onnx_node("Concat", "", "token x", "y");
    const int64_t token[] = {1, 1, 4};
    onnx_attr_int(&join, "axis", 1);
    onnx_add_node(&g, join);
    onnx_floats(&g, "token", 3, token);
    onnx_input(&g, "x", "1,6,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "size = x.size(0)");
    CHECK_HOLDS(model, "expand = token.expand(size, -1, -1)");
    CHECK_HOLDS(model, "torch.cat([expand, x], 1)");
}

// Paths that would put a module inside of one that computes, or take a place twice.
static void no_two_modules_share_a_place(void **state) {
    (void)state;
    text g = {0};
    add_conv(&g, "a", "x onnx::1", "p");
    add_conv(&g, "a/b", "p onnx::2", "q");
    add_conv(&g, "a", "q nnx::3", "r");
    add_conv(&g, "", "r mnx::4", "y");
    add_weight(&g, "onnx::1");
    add_weight(&g, "onnx::2");
    add_weight(&g, "nnx::3");
    add_weight(&g, "mnx::4");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    const char *model = lifted(g);
    CHECK_HOLDS(model, "(a): Conv2d");
    CHECK_HOLDS(model, "(a_b): Conv2d");
    CHECK_HOLDS(model, "(a_1): Conv2d");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torchscript_names_are_paths),
        cmocka_unit_test(second_calls_share_a_module_only_with_its_parameters),
        cmocka_unit_test(dynamo_metadata_says_path_and_class),
        cmocka_unit_test(a_folded_batch_norm_does_not_take_the_convolution),
        cmocka_unit_test(parameters_of_ones_own_stay_functions),
        cmocka_unit_test(files_without_scopes_name_modules_by_parameters_or_nodes),
        cmocka_unit_test(a_product_and_a_sum_are_a_linear_layer),
        cmocka_unit_test(spelled_out_functions_are_raised),
        cmocka_unit_test(a_clip_is_what_the_scope_says),
        cmocka_unit_test(reshapes_follow_the_batch),
        cmocka_unit_test(sizes_that_follow_from_shapes_follow_the_batch),
        cmocka_unit_test(constants_join_every_sample),
        cmocka_unit_test(no_two_modules_share_a_place),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
