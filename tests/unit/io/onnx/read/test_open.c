// SPDX-License-Identifier: Apache-2.0
// ONNX files whose inputs have open dimensions: read once, run at three sizes, in floats and in
// integers. Each is held against the same file read for that size alone.
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"
#include "support/onnx_bytes.h"
#include "support/temp.h"

#ifdef TARE_HAVE_ONNX

enum { MOST_WORD = 96, MOST_INTS = 8 };

// --- graphs as text ---
//
// A line is a node ("Gather s one > n axis=0"), ints ("ints one 1 2"), floats of a shape ("floats w
// 4 8"), one float ("number half 0.5"), an input ("input x N,S,8") or an output ("output y").

static size_t read_ints(const char *from, int64_t *out) {
    size_t count = 0;
    char *end = NULL;
    for (const char *at = from; count < MOST_INTS; at = end) {
        const long long number = strtoll(at, &end, 10);
        if (end == at) break;
        out[count++] = number;
        if (*end == ',') end++;
    }
    return count;
}

static void add_attribute(text *to, char *word) {
    int64_t ints[MOST_INTS];
    char *says = strchr(word, '=');
    assert_non_null(says);
    *says++ = '\0';
    const size_t count = read_ints(says, ints);
    if (*says >= 'a' && *says <= 'z')
        onnx_attr_text(to, word, says);
    else if (strchr(says, '.') != NULL)
        onnx_attr_float(to, word, strtof(says, NULL));
    else if (strchr(says, ',') != NULL)
        onnx_attr_ints(to, word, ints, count);
    else
        onnx_attr_int(to, word, ints[0]);
}

static void add_call(text *g, char *line) {
    char *attributes = strstr(line, " | ");
    char *results = strstr(line, " > "), *inputs = strchr(line, ' ');
    if (attributes != NULL) *attributes = '\0';
    assert_true(results != NULL && inputs != NULL);
    *results = '\0';
    *inputs = '\0';
    text call = onnx_node(line, "", inputs + 1, results + 3);
    char *save = NULL;
    for (char *word = attributes != NULL ? strtok_r(attributes + 3, " ", &save) : NULL;
         word != NULL; word = strtok_r(NULL, " ", &save))
        add_attribute(&call, word);
    onnx_add_node(g, call);
}

static void add_line(text *g, char *line) {
    char name[MOST_WORD], rest[MOST_WORD];
    int64_t ints[MOST_INTS];
    int at = 0;
    if (sscanf(line, "ints %95s %n", name, &at) == 1)
        onnx_int64s(g, name, ints, read_ints(line + at, ints));
    else if (sscanf(line, "floats %95s %n", name, &at) == 1)
        onnx_floats(g, name, (int)read_ints(line + at, ints), ints);
    else if (sscanf(line, "number %95s %95s", name, rest) == 2)
        onnx_number(g, name, strtof(rest, NULL));
    else if (sscanf(line, "input %95s %95s", name, rest) == 2)
        onnx_input(g, name, rest);
    else if (sscanf(line, "output %95s", name) == 1)
        onnx_output(g, name);
    else
        add_call(g, line);
}

// The file of a graph, with names in it replaced ("S" by "7").
static const char *write_graph(const char *lines) {
    text g = {0};
    char *copy = strdup(lines), *save = NULL;
    for (char *line = strtok_r(copy, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        add_line(&g, line);
    free(copy);
    text file = onnx_model(g, 18);
    const char *path = temp_path("open.onnx");
    temp_write(path, tare__text_chars(&file), file.length);
    tare__text_release(&file);
    return path;
}

static tare_model *read_lines(const char *lines, const tare_dim_size *dims, size_t count) {
    tare_model *model = NULL;
    const tare_model_read_options options = {.dims = dims, .dim_count = count};
    CHECK_DONE(tare_model_read_with(write_graph(lines), NULL, &options, &model, job_error()));
    return model;
}

// --- three sizes ---

enum { SIZES = 3, MOST_DIMS = 3, MOST_INPUTS = 2, MOST_OUTPUTS = 4 };

typedef struct open_case {
    const char *lines;
    const char *dims[MOST_DIMS]; // names
    int64_t sizes[SIZES][MOST_DIMS];
    const char *holds; // what the model prints
} open_case;

static size_t dims_of(const open_case *c, int size, tare_dim_size *out) {
    size_t count = 0;
    for (; count < MOST_DIMS && c->dims[count] != NULL; count++)
        out[count] = (tare_dim_size){c->dims[count], c->sizes[size][count]};
    return count;
}

// An input for one model, shaped as another says.
static tare_tensor *input_like(const tare_model *fixed, size_t i, int64_t batch) {
    tare_tensor_info info = {.struct_size = sizeof info};
    tare_shapes *shapes = NULL;
    int64_t shape[TARE_MAX_DIMS];
    CHECK_DONE(tare_shapes_infer(fixed, NULL, 0, &shapes, job_error()));
    assert_true(tare_shapes_input(shapes, i, &info));
    for (int d = 0; d < info.ndim; d++) shape[d] = info.shape[d] < 0 ? batch : info.shape[d];
    tare_tensor *x = new_input(info.ndim, shape);
    tare_shapes_destroy(shapes);
    return x;
}

static size_t run_model(const tare_model *model, tare_tensor *const *inputs, size_t count,
                        tare_tensor **outputs) {
    tare_session *session = NULL;
    size_t output_count = 0;
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, (const tare_tensor *const *)inputs, count, outputs,
                                MOST_OUTPUTS, &output_count, job_error()));
    tare_session_destroy(session);
    return output_count;
}

static void check_same_run(const tare_model *open, const tare_model *fixed, int64_t batch) {
    tare_tensor *inputs[MOST_INPUTS], *found[MOST_OUTPUTS], *expected[MOST_OUTPUTS];
    const size_t count = tare_model_input_count(fixed);
    assert_in_range(count, 1, MOST_INPUTS);
    for (size_t i = 0; i < count; i++) inputs[i] = input_like(fixed, i, batch);
    const size_t outputs = run_model(fixed, inputs, count, expected);
    assert_int_equal(run_model(open, inputs, count, found), outputs);
    for (size_t i = 0; i < outputs; i++) {
        assert_int_equal(found[i]->dtype, expected[i]->dtype);
        assert_int_equal(found[i]->ndim, expected[i]->ndim);
        for (int d = 0; d < found[i]->ndim; d++)
            assert_int_equal(found[i]->shape[d], expected[i]->shape[d]);
        for (int64_t k = 0; k < found[i]->count; k++)
            assert_float_equal(tare__tensor_get(found[i], k), tare__tensor_get(expected[i], k),
                               1e-5);
        tare_tensor_release(found[i]);
        tare_tensor_release(expected[i]);
    }
    for (size_t i = 0; i < count; i++) tare_tensor_release(inputs[i]);
}

static void check_case(const open_case *c) {
    tare_dim_size dims[MOST_DIMS];
    tare_model *open = read_lines(c->lines, NULL, 0);
    if (c->holds != NULL) CHECK_HOLDS(printed(open), c->holds);
    for (int i = 0; i < SIZES; i++) {
        tare_model *fixed = read_lines(c->lines, dims, dims_of(c, i, dims));
        check_same_run(open, fixed, c->sizes[i][0]);
        tare_model_destroy(fixed);
    }
    tare_model_destroy(open);
}

// --- sequences ---

// Heads as exporters write them: every size is gathered from a shape and put into another.
static const char heads[] = "input x N,S,8\n"
                            "MatMul x w > p\n"
                            "floats w 8 8\n"
                            "Shape x > s\n"
                            "ints i0 0\nints i1 1\nints two 2\nints four 4\nints all -1\n"
                            "Gather s i0 > n | axis=0\n"
                            "Gather s i1 > m | axis=0\n"
                            "Concat n m two four > split | axis=0\n"
                            "Reshape p split > h\n"
                            "Transpose h > t | perm=0,2,1,3\n"
                            "Transpose h > u | perm=0,2,3,1\n"
                            "MatMul t u > scores\n"
                            "Softmax scores > weights | axis=-1\n"
                            "MatMul weights t > v\n"
                            "Transpose v > b | perm=0,2,1,3\n"
                            "Concat n m all > joined | axis=0\n"
                            "Reshape b joined > y\n"
                            "output y\n";

static const open_case heads_case = {
    heads, {"N", "S"}, {{1, 3}, {2, 7}, {5, 12}}, "reshape(size, size_1, 2, 4)"};

static void heads_are_split_at_any_length(void **state) {
    (void)state;
    check_case(&heads_case);
}

// A causal mask of a range, and what older exporters write around Expand.
static const char mask_lines[] = "input x N,S,S\n"
                                 "Shape x > s\n"
                                 "ints i0 0\nints i1 1\nints zero 0\nints one 1\nints minus -1\n"
                                 "Gather s i1 > m1 | axis=0\n"
                                 "Squeeze m1 > m\nSqueeze zero > from\nSqueeze one > step\n"
                                 "Range from m step > r\n"
                                 "ints last 1\nints first 0\n"
                                 "Unsqueeze r last > column\nUnsqueeze r first > row\n"
                                 "LessOrEqual row column > seen\n"
                                 "Gather s i0 > n | axis=0\n"
                                 "Concat n minus minus > wanted | axis=0\n"
                                 "Shape wanted > rank\n"
                                 "ConstantOfShape rank > ones0\n"
                                 "Cast ones0 > ones1 | to=7\n"
                                 "Add ones1 one > ones\n"
                                 "Equal wanted minus > keeps\n"
                                 "Where keeps ones wanted > target\n"
                                 "ints front 0\n"
                                 "Unsqueeze seen front > seen3\n"
                                 "Cast seen3 > shown | to=1\n"
                                 "Expand shown target > mask\n"
                                 "Mul x mask > y\n"
                                 "output y\n";

static const open_case mask_case = {
    mask_lines, {"N", "S"}, {{1, 2}, {3, 5}, {2, 9}}, "torch.arange("};

static void masks_grow_with_the_sequence(void **state) {
    (void)state;
    check_case(&mask_case);
}

// Positions are cut from a table; the last token is taken; parts are halves.
static void parts_follow_the_sequence(void **state) {
    (void)state;
    static const char lines[] =
        "input x N,S,4\n"
        "floats table 1 64 4\n"
        "Shape x > s | start=1 end=2\n"
        "ints zero 0\nints one 1\nints two 2\nints big 3\n"
        "Slice table zero s one > positions\n"
        "Add x positions > a\n"
        "Sub s one > last1\nSqueeze last1 > last\n"
        "Gather a last > token | axis=1\n"
        "Div s two > half\nSub s half > rest\n"
        "Concat half rest > parts | axis=0\n"
        "Split a parts > front back | axis=1\n"
        "ReduceMean front one > f | keepdims=0\nReduceMax back one > b | keepdims=0\n"
        "Min s big > k\n"
        "TopK a k > best - | axis=1\n"
        "ReduceSum best one > top | keepdims=0\n"
        "Cast s > count | to=1\n"
        "ReduceSum a one > sum | keepdims=0\n"
        "Div sum count > mean\n"
        "Sum token f b top mean > y\n"
        "output y\n";
    static const open_case c = {lines, {"N", "S"}, {{1, 2}, {3, 5}, {2, 10}}, NULL};
    check_case(&c);
}

// Sizes that are data: a shape as a tensor, how many elements there are, triangles and copies.
static void sizes_are_values_too(void **state) {
    (void)state;
    static const char lines[] = "input x N,S\n"
                                "Shape x > s\nCast s > f | to=1\n"
                                "Size x > count\nCast count > c | to=1\n"
                                "ReduceProd s > product | keepdims=0\nCast product > p | to=1\n"
                                "ReduceSum x > total | keepdims=0\n"
                                "Div total c > mean\n"
                                "Mul f mean > sizes\n"
                                "Sum p sizes > y\n"
                                "ints last 2\nUnsqueeze x last > x3\n"
                                "ints ones 1 1\nints s1 1\nints s2 2\n"
                                "Slice s s1 s2 > m\n"
                                "Concat ones m > repeats | axis=0\n"
                                "Tile x3 repeats > square\n"
                                "Trilu square > upper | upper=0\n"
                                "Flatten upper > z | axis=2\n"
                                "output y\noutput z\n";
    static const open_case c = {lines, {"N", "S"}, {{1, 2}, {3, 5}, {2, 9}}, NULL};
    check_case(&c);
}

// What a cache and new tokens come to has the name of a sum.
static void names_may_be_sums(void **state) {
    (void)state;
    static const char lines[] = "input past N,P,4\ninput x N,P+1,4\n"
                                "ints one 1\n"
                                "Slice x zero one one > new\nints zero 0\n"
                                "Concat past new > all | axis=1\n"
                                "Add all x > y\n"
                                "output y\n";
    tare_model *model = read_lines(lines, NULL, 0);
    for (int64_t past = 1; past < 8; past += 3) {
        tare_tensor *inputs[] = {NEW_INPUT(2, past, 4), NEW_INPUT(2, past + 1, 4)}, *y = NULL;
        assert_int_equal(run_model(model, inputs, 2, &y), 1);
        assert_int_equal(y->shape[1], past + 1);
        tare_tensor_release(inputs[0]);
        tare_tensor_release(inputs[1]);
        tare_tensor_release(y);
    }
    tare_model_destroy(model);
}

// An exporter that calls one size by two names says less than the graph does.
static void sizes_of_two_names_are_one_where_the_graph_says_so(void **state) {
    (void)state;
    static const char lines[] = "input x s0,s1,4\ninput mask s2,s3,4\nMul x mask > y\noutput y\n";
    tare_model *model = read_lines(lines, NULL, 0);
    for (int64_t size = 1; size < 8; size += 3) {
        tare_tensor *inputs[] = {NEW_INPUT(2, size, 4), NEW_INPUT(2, size, 4)}, *y = NULL;
        assert_int_equal(run_model(model, inputs, 2, &y), 1);
        assert_int_equal(y->shape[1], size);
        tare_tensor_release(inputs[0]);
        tare_tensor_release(inputs[1]);
        tare_tensor_release(y);
    }
    tare_model_destroy(model);
}

// --- images ---

// A small network with what it saw enlarged to the size of the image again.
static const char picture[] = "input x N,2,H,W\n"
                              "floats w 3 2 3 3\nfloats v 2 3 1 1\n"
                              "Conv x w > a | pads=1,1,1,1 strides=2,2\n"
                              "Relu a > b\n"
                              "Conv b v > c\n"
                              "ints two 2\nints four 4\nints zero 0\nints i0 0\nints i2 2\n"
                              "Shape x > s\nSlice s two four > hw\n"
                              "Shape c > r\nSlice r zero two > nc\n"
                              "Concat nc hw > target | axis=0\n"
                              "Resize c - - target > big | mode=linear\n"
                              "Add big x > y\n"
                              "output y\n";

static const open_case picture_case = {
    picture, {"N", "H", "W"}, {{1, 8, 12}, {2, 13, 7}, {3, 20, 21}}, "interpolate("};

static void images_of_any_size_run(void **state) {
    (void)state;
    check_case(&picture_case);
}

// Windows: padded to whole ones, taken apart, put together, and cut to the image again.
static void windows_of_any_image_are_whole(void **state) {
    (void)state;
    static const char lines[] =
        "input x N,2,H,W\n"
        "ints four 4\nints zero 0\nints z2 0 0\nints i0 0\nints two 2\nints i2 2\nints i3 3\n"
        "ints all -1\n"
        "Shape x > s\n"
        "Gather s i2 > h | axis=0\nGather s i3 > w | axis=0\nGather s i0 > n | axis=0\n"
        "Mod h four > mh\nSub four mh > dh\nMod dh four > ph\n"
        "Mod w four > mw\nSub four mw > dw\nMod dw four > pw\n"
        "Concat z2 z2 z2 ph pw > pads | axis=0\n"
        "Pad x pads > p\n"
        "Shape p > ps\n"
        "Gather ps i2 > hh | axis=0\nGather ps i3 > ww | axis=0\n"
        "Div hh four > nh\nDiv ww four > nw\n"
        "Concat n two nh four nw four > six | axis=0\n"
        "Reshape p six > t\n"
        "Transpose t > q | perm=0,2,4,3,5,1\n"
        "Softmax q > o | axis=3\n"
        "Transpose o > back | perm=0,5,1,3,2,4\n"
        "Concat n two hh ww > whole | axis=0\n"
        "Reshape back whole > g\n"
        "Concat h w > ends | axis=0\nints axes 2 3\n"
        "Slice g z2 ends axes > y\n"
        "output y\n";
    static const open_case c = {lines, {"N", "H", "W"}, {{1, 8, 12}, {2, 5, 7}, {3, 4, 21}}, NULL};
    check_case(&c);
}

static void blocks_of_any_image_are_moved(void **state) {
    (void)state;
    static const char lines[] = "input x N,8,H,W\n"
                                "DepthToSpace x > a | blocksize=2\n"
                                "SpaceToDepth a > b | blocksize=2\n"
                                "Flatten b > y | axis=3\n"
                                "output y\n";
    static const open_case c = {lines, {"N", "H", "W"}, {{1, 2, 3}, {2, 5, 4}, {3, 4, 7}}, NULL};
    check_case(&c);
}

// --- written again ---

// The file of a model, without tare's own description of it, which would be read in its place.
static tare_model *read_as_others_do(const char *path) {
    static const char key[] = "tare.graph";
    tare_model *model = NULL;
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t i = 0; i + sizeof key < size; i++)
        if (memcmp(bytes + i, key, sizeof key - 1) == 0) bytes[i] = 'T';
    temp_write(path, bytes, size);
    free(bytes);
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    return model;
}

static void check_written(const open_case *c) {
    tare_dim_size dims[MOST_DIMS];
    const char *path = temp_path("written.onnx");
    tare_model *open = read_lines(c->lines, NULL, 0), *again = NULL;
    CHECK_DONE(tare_model_write_onnx(open, path, NULL, job_error()));
    CHECK_DONE(tare_model_read(path, NULL, &again, job_error()));
    assert_string_equal(printed(again), printed(open));
    tare_model_destroy(again);
    again = read_as_others_do(path);
    for (int i = 0; i < SIZES; i++) {
        tare_model *fixed = read_lines(c->lines, dims, dims_of(c, i, dims));
        check_same_run(again, fixed, c->sizes[i][0]);
        tare_model_destroy(fixed);
    }
    tare_model_destroy(again);
    tare_model_destroy(open);
}

static void open_dimensions_are_written(void **state) {
    (void)state;
    check_written(&heads_case);
    check_written(&mask_case);
    check_written(&picture_case);
}

// --- in integers ---

static tare_model *in_integers(const tare_model *model, const int64_t *shape, size_t ndim) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *watched = prepared(model, backend, mapping);
    calibrated(watched, ndim, shape);
    tare_model *made = lowered(watched, backend);
    tare_model_destroy(watched);
    tare_backend_config_destroy(backend);
    tare_qconfig_mapping_destroy(mapping);
    return made;
}

static void check_integers(const open_case *c, const int64_t *shape, size_t ndim,
                           const char *holds) {
    tare_dim_size dims[MOST_DIMS];
    tare_model *open = read_lines(c->lines, NULL, 0);
    tare_model *whole = in_integers(open, shape, ndim);
    CHECK_HOLDS(printed(whole), holds);
    for (int i = 0; i < SIZES; i++) {
        tare_model *fixed = read_lines(c->lines, dims, dims_of(c, i, dims));
        tare_tensor *x = input_like(fixed, 0, c->sizes[i][0]), *y = NULL, *reference = NULL;
        assert_int_equal(run_model(whole, &x, 1, &y), 1);
        assert_int_equal(run_model(fixed, &x, 1, &reference), 1);
        assert_true(tare__same_shape(y, reference));
        for (int64_t k = 0; k < y->count; k++)
            assert_float_equal(tare__tensor_get(y, k), tare__tensor_get(reference, k), 0.15);
        tare_tensor_release(x);
        tare_tensor_release(y);
        tare_tensor_release(reference);
        tare_model_destroy(fixed);
    }
    tare_model_destroy(whole);
    tare_model_destroy(open);
}

static void integers_take_any_size_as_well(void **state) {
    (void)state;
    const int64_t sequence[] = {2, 6, 8}, frame[] = {2, 2, 16, 16};
    check_integers(&heads_case, sequence, 3, "Quantized");
    check_integers(&picture_case, frame, 4, "Quantized");
}

// --- what a model says of itself ---

static void open_dimensions_are_told(void **state) {
    (void)state;
    tare_model *model = read_lines(heads, NULL, 0), *again = NULL;
    tare_shapes *shapes = NULL;
    tare_tensor_info info = {.struct_size = sizeof info};
    const char *path = temp_path("open.safetensors");
    CHECK_DONE(tare_model_write(model, path, job_error()));
    CHECK_DONE(tare_model_read(path, NULL, &again, job_error()));
    assert_string_equal(printed(again), printed(model));
    CHECK_DONE(tare_shapes_infer(again, NULL, 0, &shapes, job_error()));
    assert_true(tare_shapes_input(shapes, 0, &info));
    assert_int_equal(info.shape[0], -1);
    assert_int_equal(info.shape[1], -1);
    assert_int_equal(info.shape[2], 8);
    assert_true(tare_shapes_output(shapes, 0, &info));
    assert_int_equal(info.shape[0], -1);
    assert_int_equal(info.shape[1], -1);
    assert_int_equal(info.shape[2], 8);
    tare_shapes_destroy(shapes);
    tare_model_destroy(model);
    tare_model_destroy(again);
}

// --- refused ---

static void check_needs_size(const char *lines, const char *words) {
    tare_model *model = NULL;
    CHECK_REFUSED(tare_model_read(write_graph(lines), NULL, &model, job_error()),
                  TARE_INVALID_ARGUMENT, words);
}

// The error names the dimension, and the node that is in the way.
static void sizes_that_cannot_stay_open_are_named(void **state) {
    (void)state;
    check_needs_size("input x N,S\nfloats w 6 2\nMatMul x w > y\noutput y\n",
                     "dimension 1 ('S') has no size, and cannot stay open");
    check_needs_size("input x N,S,T\nints i2 2\nShape x > s\nGather s i2 > t | axis=0\n"
                     "Unsqueeze x t > y\noutput y\n",
                     "dimension 2 ('T') has no size");
    check_needs_size("input x N,S\nints four 4\nints one 1\nCenterCropPad x four > y | axes=1,\n"
                     "output y\n",
                     "dimension 1 ('S') has no size");
}

static void sizes_are_not_blamed_for_operators(void **state) {
    (void)state;
    tare_model *model = NULL;
    const char *path = write_graph("input x N,S\nFancy x > y\noutput y\n");
    CHECK_REFUSED(tare_model_read(path, NULL, &model, job_error()), TARE_UNSUPPORTED,
                  "the operator 'Fancy' is not known");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_split_at_any_length),
        cmocka_unit_test(masks_grow_with_the_sequence),
        cmocka_unit_test(parts_follow_the_sequence),
        cmocka_unit_test(sizes_are_values_too),
        cmocka_unit_test(names_may_be_sums),
        cmocka_unit_test(sizes_of_two_names_are_one_where_the_graph_says_so),
        cmocka_unit_test(images_of_any_size_run),
        cmocka_unit_test(windows_of_any_image_are_whole),
        cmocka_unit_test(blocks_of_any_image_are_moved),
        cmocka_unit_test(open_dimensions_are_written),
        cmocka_unit_test(integers_take_any_size_as_well),
        cmocka_unit_test(open_dimensions_are_told),
        cmocka_unit_test(sizes_that_cannot_stay_open_are_named),
        cmocka_unit_test(sizes_are_not_blamed_for_operators),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
