// SPDX-License-Identifier: Apache-2.0
// ONNX files: what is read, and what is refused with one clear error.
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/temp.h"

#ifdef TARE_HAVE_ONNX

#include <math.h>

static tare_status read_file(const char *path, const tare_model_read_options *options,
                             tare_model **out) {
    return tare_model_read_with(path, NULL, options, out, job_error());
}

// The model of the graph, through a file. Takes the graph.
static tare_status read_graph_as(text g, int64_t opset, const tare_model_read_options *options,
                                 tare_model **out) {
    text file = onnx_model(g, opset);
    const char *path = temp_path("model.onnx");
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    return read_file(path, options, out);
}

static tare_status read_graph(text g, tare_model **out) {
    return read_graph_as(g, 17, NULL, out);
}

static void check_graph_refused(text g, tare_status status, const char *words) {
    tare_model *model = NULL;
    CHECK_REFUSED(read_graph(g, &model), status, words);
}

// x [N][2][4][4] -> convolution -> relu -> sum of both, in torch's spelling.
static text small_graph(void) {
    text g = {0}, conv = onnx_node("Conv", "/conv1/Conv", "x conv1.weight conv1.bias", "a");
    const int64_t weight[] = {3, 2, 3, 3}, bias[] = {3}, pads[] = {1, 1, 1, 1};
    onnx_attr_ints(&conv, "pads", pads, 4);
    onnx_add_node(&g, conv);
    onnx_call(&g, "Relu", "/relu/Relu", "a", "b");
    onnx_call(&g, "Add", "/Add", "a b", "y");
    onnx_input(&g, "x", "N,2,4,4");
    onnx_output(&g, "y");
    onnx_floats(&g, "conv1.weight", 4, weight);
    onnx_floats(&g, "conv1.bias", 1, bias);
    return g;
}

static void operators_with_parameters_become_modules(void **state) {
    (void)state;
    tare_model *model = NULL;
    CHECK_DONE(read_graph(small_graph(), &model));
    CHECK_HOLDS(printed(model), "(conv1): Conv2d(2, 3, kernel_size=(3, 3), stride=(1, 1), "
                                "padding=(1, 1))");
    CHECK_HOLDS(printed(model), "(relu): ReLU()");
    CHECK_HOLDS(printed(model), "add = conv1 + relu");
    tare_model_destroy(model);
}

static void any_batch_runs(void **state) {
    (void)state;
    tare_model *model = NULL;
    CHECK_DONE(read_graph(small_graph(), &model));
    for (int64_t batch = 1; batch <= 3; batch++) {
        tare_tensor *x = NEW_INPUT(batch, 2, 4, 4);
        tare_tensor *y = result_of(model, (const tare_tensor *const[]){x}, 1);
        assert_int_equal(y->shape[0], batch);
        assert_int_equal(y->shape[1], 3);
        tare_tensor_release(x);
        tare_tensor_release(y);
    }
    tare_model_destroy(model);
}

// y[i] = x[i] + i, as exporters count the samples: Shape, Gather, Range. backwards: y[i] = x[i] +
// (batch - i).
static tare_model *of_range_over_the_batch(bool backwards) {
    tare_model *model = NULL;
    text g = {0}, gather = onnx_node("Gather", "", "sizes zero", "n"),
         cast = onnx_node("Cast", "", backwards ? "back" : "rows", "floats");
    const int64_t zero[] = {0}, one[] = {1}, minus_one[] = {-1, 1};
    onnx_call(&g, "Shape", "", "x", "sizes");
    onnx_add_node(&g, gather);
    onnx_call(&g, "Squeeze", "", "n", "count");
    onnx_call(&g, "Squeeze", "", "zero", "begin");
    onnx_call(&g, "Squeeze", "", "one", "step");
    onnx_call(&g, "Range", "", "begin count step", "range");
    onnx_call(&g, "Reshape", "", "range shape", "rows");
    if (backwards) onnx_call(&g, "Sub", "", "n rows", "back");
    onnx_attr_int(&cast, "to", 1);
    onnx_add_node(&g, cast);
    onnx_call(&g, "Add", "", "x floats", "y");
    onnx_input(&g, "x", "N,2");
    onnx_output(&g, "y");
    onnx_int64s(&g, "zero", zero, 1);
    onnx_int64s(&g, "one", one, 1);
    onnx_int64s(&g, "shape", minus_one, 2);
    CHECK_DONE(read_graph(g, &model));
    return model;
}

static void ranges_over_the_batch_are_as_long_as_it_is(void **state) {
    (void)state;
    tare_model *model = of_range_over_the_batch(false);
    for (int64_t batch = 1; batch <= 3; batch++) {
        tare_tensor *x = NEW_INPUT(batch, 2);
        tare_tensor *y = result_of(model, (const tare_tensor *const[]){x}, 1);
        for (int64_t i = 0; i < y->count; i++)
            assert_float_equal(((const float *)y->data)[i],
                               ((const float *)x->data)[i] + (float)(i / 2), 0);
        tare_tensor_release(y);
        tare_tensor_release(x);
    }
    tare_model_destroy(model);
}

// What the file computes from the batch, and no row of which is the same for another one, makes the
// graph one for the batch that it was read for.
static void constants_that_no_other_batch_has_fix_it(void **state) {
    (void)state;
    tare_model *model = of_range_over_the_batch(true);
    tare_data *data = NULL;
    tare_batch batch;
    bool done = false;
    const tare_data_options options = {.struct_size = sizeof options, .batch_size = 8};
    CHECK_DONE(tare_data_open("random:5", model, &options, &data, job_error()));
    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    assert_int_equal(batch.size, 1);
    tare_data_close(data);
    tare_tensor *x = NEW_INPUT(1, 2);
    tare_tensor *y = result_of(model, (const tare_tensor *const[]){x}, 1);
    for (int64_t i = 0; i < y->count; i++)
        assert_float_equal(((const float *)y->data)[i], ((const float *)x->data)[i] + 1, 0);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void nodes_may_stand_in_any_order(void **state) {
    (void)state;
    text g = {0};
    tare_model *model = NULL;
    onnx_call(&g, "Relu", "second", "a", "y");
    onnx_call(&g, "Relu", "first", "x", "a");
    onnx_input(&g, "x", "1,4");
    onnx_output(&g, "y");
    CHECK_DONE(read_graph(g, &model));
    CHECK_HOLDS(printed(model), "relu_1 = torch.nn.functional.relu(relu)");
    tare_model_destroy(model);
}

static void constants_are_computed_at_once(void **state) {
    (void)state;
    text g = {0};
    const int64_t shape[] = {4};
    tare_model *model = NULL;
    onnx_call(&g, "Add", "", "w w", "twice");
    onnx_call(&g, "Relu", "", "twice", "c");
    onnx_call(&g, "Add", "", "x c", "y");
    onnx_input(&g, "x", "1,4");
    onnx_output(&g, "y");
    onnx_floats(&g, "w", 1, shape);
    CHECK_DONE(read_graph(g, &model));
    CHECK_LACKS(printed(model), "relu");
    CHECK_HOLDS(printed(model), "x + _tensor_constant0");
    tare_model_destroy(model);
}

// As onnx_floats fills a tensor of this name.
static double element(char name, int64_t i) {
    return (double)(i * 37 % 19 - 9) / 16 + name / 1024.0;
}

// Standardized by the statistics of the input, whatever was stored: as weights may be.
static void norms_in_training_take_the_statistics_of_their_input(void **state) {
    (void)state;
    enum { ROWS = 4, COLUMNS = 3 };
    static const int64_t shape[] = {COLUMNS};
    text g = {0}, norm = onnx_node("BatchNormalization", "", "x s b m v", "y");
    tare_model *model = NULL;
    onnx_attr_int(&norm, "training_mode", 1);
    onnx_add_node(&g, norm);
    onnx_input(&g, "x", "N,3");
    onnx_output(&g, "y");
    for (const char *name = "sbmv"; *name != '\0'; name++)
        onnx_floats(&g, (const char[]){*name, '\0'}, 1, shape);
    CHECK_DONE(read_graph(g, &model));
    tare_tensor *x = NEW_INPUT(ROWS, COLUMNS);
    tare_tensor *y = result_of(model, (const tare_tensor *const[]){x}, 1);
    for (int c = 0; c < COLUMNS; c++) {
        double mean = 0, var = 0;
        for (int r = 0; r < ROWS; r++) mean += tare__f32(x)[r * COLUMNS + c] / ROWS;
        for (int r = 0; r < ROWS; r++) var += pow(tare__f32(x)[r * COLUMNS + c] - mean, 2) / ROWS;
        for (int r = 0; r < ROWS; r++) {
            const int at = r * COLUMNS + c;
            const double unit = (tare__f32(x)[at] - mean) / sqrt(var + 1e-5);
            assert_float_equal(tare__f32(y)[at], (float)(unit * element('s', c) + element('b', c)),
                               1e-5);
        }
    }
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_model_destroy(model);
}

// The product of a and b takes more than what all constants together may cost.
static void dear_constants_stay_nodes(void **state) {
    (void)state;
    enum { ROWS = 1024, INNER = 1024, COLUMNS = 1025 };
    static const int64_t a[] = {ROWS, INNER}, b[] = {INNER, COLUMNS};
    text g = {0};
    tare_model *model = NULL;
    onnx_call(&g, "MatMul", "", "a b", "c");
    onnx_call(&g, "Add", "", "x c", "y");
    onnx_input(&g, "x", "1024,1025");
    onnx_output(&g, "y");
    onnx_floats(&g, "a", 2, a);
    onnx_floats(&g, "b", 2, b);
    CHECK_DONE(read_graph(g, &model));
    CHECK_HOLDS(printed(model), "torch.matmul(");
    tare_tensor *x = NEW_INPUT(ROWS, COLUMNS);
    tare_tensor *y = result_of(model, (const tare_tensor *const[]){x}, 1);
    double sum = tare__f32(x)[1];
    for (int64_t k = 0; k < INNER; k++) sum += element('a', k) * element('b', k * COLUMNS + 1);
    assert_float_equal(tare__f32(y)[1], (float)sum, 1e-2); // 1,024 roundings near 110
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_model_destroy(model);
}

// --- sizes ---

static void sizes_may_be_given_by_name(void **state) {
    (void)state;
    tare_model *model = NULL;
    const int64_t weight[] = {6, 2};
    const tare_dim_size seq[] = {{"seq", 6}}, both[] = {{"seq", 6}, {"sq", 6}},
                        zero[] = {{"seq", 0}};
    tare_model_read_options options = {.dims = seq, .dim_count = 1};
    for (int round = 0; round < 4; round++) {
        text g = {0};
        onnx_call(&g, "MatMul", "", "x w", "y");
        onnx_floats(&g, "w", 2, weight);
        onnx_input(&g, "x", "batch,seq");
        onnx_output(&g, "y");
        if (round == 0)
            CHECK_REFUSED(read_graph(g, &model), TARE_INVALID_ARGUMENT, "dimension 1 ('seq') has no size");
        if (round == 1) {
            CHECK_DONE(read_graph_as(g, 17, &options, &model));
            tare_model_destroy(model);
        }
        if (round == 2) {
            options.dims = both;
            options.dim_count = 2;
            CHECK_REFUSED(read_graph_as(g, 17, &options, &model), TARE_NOT_FOUND,
                          "did you mean 'seq'?");
        }
        options.dims = round == 2 ? zero : options.dims;
        options.dim_count = round == 2 ? 1 : options.dim_count;
        if (round == 3)
            CHECK_REFUSED(read_graph_as(g, 17, &options, &model), TARE_INVALID_ARGUMENT, "size 0");
    }
}

static void shapes_may_be_given(void **state) {
    (void)state;
    tare_model *model = NULL;
    const int64_t shape[] = {1, 5}, other[] = {1, 2, 3};
    const tare_input_shape fits[] = {{"x", 2, shape}}, differs[] = {{"x", 3, other}};
    tare_model_read_options options = {.shapes = fits, .shape_count = 1};
    for (int round = 0; round < 2; round++) {
        text g = {0};
        onnx_call(&g, "Relu", "", "x", "y");
        onnx_input(&g, "x", "N,M");
        onnx_output(&g, "y");
        if (round == 0) {
            CHECK_DONE(read_graph_as(g, 17, &options, &model));
            tare_model_destroy(model);
        } else {
            options.shapes = differs;
            CHECK_REFUSED(read_graph_as(g, 17, &options, &model), TARE_INVALID_ARGUMENT,
                          "expected a shape of 2 dimensions as in the file, found 3");
        }
    }
}

// --- what is refused ---

static void other_opsets_are_refused(void **state) {
    (void)state;
    tare_model *model = NULL;
    CHECK_REFUSED(read_graph_as(small_graph(), 99, NULL, &model), TARE_UNSUPPORTED,
                  "opset 99, expected 11 to 21");
    CHECK_REFUSED(read_graph_as(small_graph(), 10, NULL, &model), TARE_UNSUPPORTED, "opset 10");
    CHECK_REFUSED(read_graph_as(small_graph(), -1, NULL, &model), TARE_UNSUPPORTED, "opset -1");
}

// Exporters write the newest one that they know, whatever is in the file.
static void newer_ir_versions_are_read(void **state) {
    (void)state;
    const struct {
        int64_t version;
        const char *words; // NULL: it is read
    } cases[] = {{14, NULL}, {99, NULL}, {2, "IR version 2, expected 3 or newer"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_model *model = NULL;
        text file = onnx_model(small_graph(), 17);
        pb_int(&file, 1, cases[i].version); // of a field that stands twice the last one counts
        const char *path = temp_path("model.onnx");
        temp_write(path, tare__text_chars(&file), file.length);
        tare__text_release(&file);
        if (cases[i].words != NULL)
            CHECK_REFUSED(read_file(path, NULL, &model), TARE_MALFORMED_FILE, cases[i].words);
        else
            CHECK_OK(read_file(path, NULL, &model));
        tare_model_destroy(model);
    }
}

static void circles_are_named(void **state) {
    (void)state;
    text g = {0};
    onnx_call(&g, "Add", "first", "x c", "a");
    onnx_call(&g, "Relu", "second", "a", "b");
    onnx_call(&g, "Relu", "third", "b", "c");
    onnx_input(&g, "x", "1,4");
    onnx_output(&g, "c");
    check_graph_refused(g, TARE_MALFORMED_FILE,
                        "node 'first' (Add) needs node 'third' (Relu) needs node 'second' (Relu) "
                        "needs the first one again");
}

static void unknown_operators_are_named(void **state) {
    (void)state;
    text g = {0}, other = {0};
    onnx_call(&g, "FancyOp", "the_node", "x", "y");
    onnx_input(&g, "x", "1,4");
    onnx_output(&g, "y");
    check_graph_refused(g, TARE_UNSUPPORTED, "node 'the_node' (FancyOp)");
    text relu = onnx_node("Relu", "n", "x", "y");
    pb_text(&relu, 7, "com.example");
    onnx_add_node(&other, relu);
    onnx_input(&other, "x", "1,4");
    onnx_output(&other, "y");
    check_graph_refused(other, TARE_UNSUPPORTED, "domain 'com.example'");
}

static void unknown_attributes_are_refused(void **state) {
    (void)state;
    text g = {0}, relu = onnx_node("Relu", "n", "x", "y");
    onnx_attr_int(&relu, "slope", 3);
    onnx_add_node(&g, relu);
    onnx_input(&g, "x", "1,4");
    onnx_output(&g, "y");
    check_graph_refused(g, TARE_UNSUPPORTED, "attribute 'slope'");
}

static void broken_graphs_are_refused(void **state) {
    (void)state;
    text missing = {0}, twice = {0}, none = {0}, ghost = {0};
    onnx_call(&missing, "Relu", "n", "nowhere", "y");
    onnx_output(&missing, "y");
    check_graph_refused(missing, TARE_MALFORMED_FILE, "'nowhere'");
    onnx_call(&twice, "Relu", "n", "x", "y");
    onnx_call(&twice, "Relu", "m", "x", "y");
    onnx_input(&twice, "x", "1,4");
    onnx_output(&twice, "y");
    check_graph_refused(twice, TARE_MALFORMED_FILE, "'y' is produced twice");
    onnx_input(&none, "x", "1,4");
    check_graph_refused(none, TARE_MALFORMED_FILE, "no output");
    onnx_input(&ghost, "x", "1,4");
    onnx_output(&ghost, "z");
    check_graph_refused(ghost, TARE_MALFORMED_FILE, "output 'z'");
}

static void shapes_that_disagree_name_the_operator(void **state) {
    (void)state;
    text g = {0};
    const int64_t weight[] = {3, 7, 3, 3};
    onnx_call(&g, "Conv", "the_conv", "x w", "y");
    onnx_input(&g, "x", "1,2,4,4");
    onnx_output(&g, "y");
    onnx_floats(&g, "w", 4, weight);
    check_graph_refused(g, TARE_INVALID_ARGUMENT, "node 'the_conv' (Conv)");
}

static void a_kernel_that_is_not_the_weights_is_refused(void **state) {
    (void)state;
    const int64_t weight[] = {3, 2, 3, 3}, kernel[] = {3, 5};
    for (size_t count = 1; count <= 2; count++) {
        text g = {0}, conv = onnx_node("Conv", "the_conv", "x w", "y");
        onnx_attr_ints(&conv, "kernel_shape", kernel, count);
        onnx_add_node(&g, conv);
        onnx_input(&g, "x", "1,2,8,8");
        onnx_output(&g, "y");
        onnx_floats(&g, "w", 4, weight);
        check_graph_refused(g, TARE_MALFORMED_FILE,
                            count == 1
                                ? "kernel_shape has 1 values, expected 2"
                                : "kernel_shape is 5 in dimension 1, expected the weight's size 3");
    }
}

// --- data beside the file ---

static void check_external(const char *location, const char *offset, const char *length,
                           tare_status status, const char *words) {
    text g = {0};
    tare_model *model = NULL;
    onnx_call(&g, "Add", "", "x w", "y");
    onnx_input(&g, "x", "1,4");
    onnx_output(&g, "y");
    onnx_external(&g, "w", 4, location, offset, length);
    if (status != TARE_OK) {
        check_graph_refused(g, status, words);
        return;
    }
    CHECK_DONE(read_graph(g, &model));
    const tare_tensor *w = tare__module_tensor(model->root, "w");
    assert_float_equal(tare__f32(w)[0], 1, 0);
    assert_float_equal(tare__f32(w)[3], 4, 0);
    tare_model_destroy(model);
}

static void data_beside_the_file_is_read(void **state) {
    (void)state;
    const float data[] = {9, 1, 2, 3, 4};
    temp_write(temp_path("data.bin"), data, sizeof data);
    check_external("data.bin", "4", "16", TARE_OK, NULL);
    check_external("./data.bin", "4", NULL, TARE_OK, NULL);
    check_external("missing.bin", "4", "16", TARE_IO, "'missing.bin', which is missing");
    check_external("data.bin", "8", "16", TARE_MALFORMED_FILE, "16 bytes at offset 8");
    check_external("data.bin", "18446744073709551615", "16", TARE_MALFORMED_FILE, "");
    check_external("data.bin", "-4", "16", TARE_MALFORMED_FILE, "offset '-4'");
    check_external("data.bin", "4", "12", TARE_MALFORMED_FILE, "expected 16 bytes");
    check_external("", NULL, NULL, TARE_MALFORMED_FILE, "without a name");
    check_external("../data.bin", "4", "16", TARE_MALFORMED_FILE, "outside of the model's folder");
    check_external("a/../../data.bin", "4", "16", TARE_MALFORMED_FILE, "outside");
    check_external("/etc/passwd", "0", "16", TARE_MALFORMED_FILE, "outside");
}

static void links_do_not_lead_outside(void **state) {
    (void)state;
    const float data[] = {1, 2, 3, 4};
    temp_write(temp_path("inside.bin"), data, sizeof data);
    assert_int_equal(symlink("/etc/passwd", temp_path("link.bin")), 0);
    assert_int_equal(symlink("inside.bin", temp_path("good.bin")), 0);
    assert_int_equal(symlink("/etc", temp_path("folder")), 0);
    check_external("link.bin", "0", "16", TARE_MALFORMED_FILE, "outside");
    check_external("folder/passwd", "0", "16", TARE_MALFORMED_FILE, "outside");
    check_external("good.bin", "0", "16", TARE_OK, NULL);
}

// --- bytes ---

static void check_bytes_refused(const void *bytes, size_t size, const char *words) {
    tare_model *model = NULL;
    const char *path = temp_path("bytes.onnx");
    temp_write(path, bytes, size);
    CHECK_REFUSED(read_file(path, NULL, &model), TARE_MALFORMED_FILE, words);
}
#define CHECK_BYTES_REFUSED(chars, words) check_bytes_refused(chars, sizeof(chars) - 1, words)

static void other_files_are_told_apart(void **state) {
    (void)state;
    CHECK_BYTES_REFUSED("\xff\xd8\xff\xe0\0\x10JFIF", "found a JPEG image");
    CHECK_BYTES_REFUSED("\x89PNG\r\n\x1a\n\0\0\0\r", "found a PNG image");
    CHECK_BYTES_REFUSED("PK\3\4\x14\0\0\0\x08\0", "found a zip archive");
    CHECK_BYTES_REFUSED("\x93NUMPY\1\0v\0", "found a NumPy array");
    CHECK_BYTES_REFUSED("", "found an empty file");
    CHECK_BYTES_REFUSED("import torch\nprint(torch)\n", "found text");
}

// Graphs in attributes in nodes in graphs .., as deep as 64 messages and beyond.
static void nested_bombs_are_refused(void **state) {
    (void)state;
    text inner = {0};
    for (int i = 0; i < 20000; i++) {
        text attribute = {0}, step = {0}, outer = {0};
        pb_message(&attribute, 6, inner);
        pb_message(&step, 5, attribute);
        pb_message(&outer, 1, step);
        inner = outer;
        if (inner.length > 60000) break;
    }
    check_graph_refused(inner, TARE_MALFORMED_FILE, "nested more than 64 deep");
}

static void damaged_files_do_no_harm(void **state) {
    (void)state;
    text file = onnx_model(small_graph(), 17);
    const char *path = temp_path("damaged.onnx");
    for (size_t i = 0; i < file.length; i++) {
        tare_model *model = NULL;
        const char was = file.chars[i];
        file.chars[i] = (char)(was ^ (1 << i % 8));
        temp_write(path, file.chars, file.length);
        const tare_status status = tare_model_read(path, NULL, &model, job_error());
        assert_int_not_equal(status, TARE_INTERNAL);
        assert_int_not_equal(status, TARE_OUT_OF_MEMORY);
        tare_model_destroy(model);
        file.chars[i] = was;
    }
    for (size_t size = 0; size < file.length; size += 5) {
        tare_model *model = NULL;
        temp_write(path, file.chars, size);
        assert_int_not_equal(tare_model_read(path, NULL, &model, NULL), TARE_OK);
    }
    tare__text_release(&file);
}

// x [2][6][4] with the length first, and both sizes in one dimension: for a batch of 2 only.
static text fixed_graph(void) {
    text g = {0}, turn = onnx_node("Transpose", "", "x", "t");
    const int64_t order[] = {1, 0, 2}, shape[] = {12, 4}, weight[] = {12, 4};
    onnx_attr_ints(&turn, "perm", order, 3);
    onnx_add_node(&g, turn);
    onnx_call(&g, "Reshape", "", "t shape", "m");
    onnx_call(&g, "Add", "", "m w", "y");
    onnx_int64s(&g, "shape", shape, 2);
    onnx_floats(&g, "w", 2, weight);
    onnx_input(&g, "x", "2,6,4");
    onnx_output(&g, "y");
    return g;
}

static void a_batch_that_the_file_fixes_is_the_one_that_data_has(void **state) {
    (void)state;
    const tare_data_options options = {.struct_size = sizeof options, .batch_size = 32};
    tare_model *model = NULL;
    tare_data *data = NULL;
    tare_batch batch;
    bool done = false;
    CHECK_DONE(read_graph(fixed_graph(), &model));
    CHECK_DONE(tare_data_open("random:5", model, &options, &data, job_error()));
    for (int i = 0; i < 2; i++) {
        CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
        assert_int_equal(batch.size, 2);
    }
    CHECK_REFUSED(tare_data_next(data, &batch, &done, job_error()), TARE_INVALID_ARGUMENT,
                  "the model takes 2 samples at a time, found a batch of 1");
    tare_data_close(data);
    tare_model_destroy(model);
    CHECK_DONE(read_graph(small_graph(), &model));
    CHECK_DONE(tare_data_open("random:5", model, &options, &data, job_error()));
    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    assert_int_equal(batch.size, 5);
    tare_data_close(data);
    tare_model_destroy(model);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    text file = onnx_model(small_graph(), 17);
    const char *path = temp_path("memory.onnx");
    temp_write(path, file.chars, file.length);
    tare__text_release(&file);
    tare_model *model = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_model_read(path, NULL, &model, NULL),
                           tare_model_destroy(model))
    static const char *const more[] = {"linear", "scopes"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        char name[100];
        (void)snprintf(name, sizeof name, "tests/fuzz/corpus/onnx/%s", more[i]);
        EVERY_ALLOCATION_FAILS(status, status = tare_model_read(name, NULL, &model, NULL),
                               tare_model_destroy(model))
    }
}

static void files_of_torch_say_that_norms_are_folded(void **state) {
    (void)state;
    tare_model *model = NULL, *again = NULL;
    CHECK_DONE(read_graph(small_graph(), &model));
    assert_true(model->norms_are_folded);
    CHECK_DONE(tare_model_write(model, temp_path("own.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("own.safetensors"), NULL, &again, job_error()));
    assert_true(again->norms_are_folded);
    assert_string_equal(printed(model), printed(again));
    tare_model_destroy(model);
    tare_model_destroy(again);
}

// 4 MiB of zeros out of one node.
static void computed_constants_are_held_to_the_limit(void **state) {
    (void)state;
    static const int64_t shape[] = {1024, 1024};
    tare_model *model = NULL;
    text g = {0};
    onnx_int64s(&g, "shape", shape, 2);
    onnx_call(&g, "ConstantOfShape", "fill", "shape", "zeros");
    onnx_call(&g, "Add", "add", "x zeros", "y");
    onnx_input(&g, "x", "N,1024");
    onnx_output(&g, "y");
    text file = onnx_model(g, 17);
    const char *path = temp_path("zeros.onnx");
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    const tare_read_limits limits = {.memory_bytes = 1 << 20};
    const tare_model_read_options options = {.limits = &limits};
    CHECK_REFUSED(read_file(path, &options, &model), TARE_LIMIT_EXCEEDED, "4.0 MiB");
    CHECK_DONE(read_file(path, NULL, &model));
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_with_parameters_become_modules),
        cmocka_unit_test(any_batch_runs),
        cmocka_unit_test(ranges_over_the_batch_are_as_long_as_it_is),
        cmocka_unit_test(constants_that_no_other_batch_has_fix_it),
        cmocka_unit_test(nodes_may_stand_in_any_order),
        cmocka_unit_test(constants_are_computed_at_once),
        cmocka_unit_test(norms_in_training_take_the_statistics_of_their_input),
        cmocka_unit_test(dear_constants_stay_nodes),
        cmocka_unit_test(sizes_may_be_given_by_name),
        cmocka_unit_test(shapes_may_be_given),
        cmocka_unit_test(other_opsets_are_refused),
        cmocka_unit_test(newer_ir_versions_are_read),
        cmocka_unit_test(circles_are_named),
        cmocka_unit_test(unknown_operators_are_named),
        cmocka_unit_test(unknown_attributes_are_refused),
        cmocka_unit_test(broken_graphs_are_refused),
        cmocka_unit_test(shapes_that_disagree_name_the_operator),
        cmocka_unit_test(a_kernel_that_is_not_the_weights_is_refused),
        cmocka_unit_test(data_beside_the_file_is_read),
        cmocka_unit_test(links_do_not_lead_outside),
        cmocka_unit_test(other_files_are_told_apart),
        cmocka_unit_test(nested_bombs_are_refused),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(a_batch_that_the_file_fixes_is_the_one_that_data_has),
        cmocka_unit_test(lost_memory_is_an_error),
        cmocka_unit_test(files_of_torch_say_that_norms_are_folded),
        cmocka_unit_test(computed_constants_are_held_to_the_limit),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
