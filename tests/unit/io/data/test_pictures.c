// SPDX-License-Identifier: Apache-2.0
// Pictures as data: files, folders, classes, lists, and several inputs by name.
#include "support/test.h"

#include <sys/stat.h>

#include "io/data/data.h"
#include "io/data/npy.h"
#include "support/temp.h"

static const data_input one_input[] = {{.name = "x", .ndim = -1}};
static const data_input two_inputs[] = {{.name = "image", .ndim = -1},
                                        {.name = "mask", .ndim = -1}};

// One of the fuzzer's pictures under another name.
static void put_picture(const char *name, const char *source) {
    char path[128];
    size_t size = 0;
    (void)snprintf(path, sizeof path, "tests/fuzz/corpus/image/%s", source);
    unsigned char *bytes = temp_read(path, &size);
    temp_write(temp_path(name), bytes, size);
    free(bytes);
}

static void put_text(const char *name, const char *chars) {
    temp_write(temp_path(name), chars, strlen(chars));
}

static void make_folder(const char *name) {
    assert_true(mkdir(temp_path(name), 0777) == 0);
}

static preprocess steps(const char *spec) {
    preprocess p = {0};
    CHECK_OK(tare__preprocess_from_text(spec, &p, NULL));
    return p;
}

#if !defined(TARE_HAVE_PNG) || !defined(TARE_HAVE_JPEG)
#define NEEDS_DECODERS skip()
#else
#define NEEDS_DECODERS (void)0
#endif

// All labels of a spec, as "0 0 1"; "-" for a batch without labels. Also checks that both epochs
// agree, and that skipping counts the same samples.
static const char *labels_of(const char *spec, int64_t batch_size) {
    static char out[256];
    const preprocess p = steps("resize=4x5");
    data_source *s = NULL;
    tare_error *err = tare_error_create();
    if (tare__data_open(spec, one_input, 1, batch_size, &p, &s, err) != TARE_OK)
        fail_msg("%s: %s: %s", spec, tare_error_where(err), tare_error_message(err));
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t count = 0;
        out[0] = '\0';
        for (bool done = false; !done;) {
            data_batch batch = {0};
            CHECK_OK(tare__data_next(s, &batch, &done, NULL));
            if (done) break;
            assert_true(batch.size <= batch_size || batch_size == 0);
            assert_int_equal(batch.inputs[0]->ndim, 4);
            assert_int_equal(batch.inputs[0]->shape[0], batch.size);
            assert_int_equal(batch.inputs[0]->shape[3], 5);
            count += batch.size;
            for (int64_t i = 0; i < batch.size; i++) {
                char label[24] = "-";
                if (batch.labels != NULL)
                    (void)snprintf(label, sizeof label, "%d",
                                   (int)((const int64_t *)batch.labels->data)[i]);
                (void)snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s",
                               out[0] != '\0' ? " " : "", label);
            }
            tare__data_batch_release(&batch);
        }
        assert_int_equal(tare__data_sample_count(s), count);
        CHECK_OK(tare__data_rewind(s, NULL));
        int64_t skipped = 0, samples = 0;
        do {
            CHECK_OK(tare__data_skip(s, &samples, NULL));
            skipped += samples;
        } while (samples > 0);
        assert_int_equal(skipped, count);
        CHECK_OK(tare__data_rewind(s, NULL));
    }
    tare__data_close(s);
    tare_error_destroy(err);
    return out;
}

static void folders_of_classes_are_numbered_by_name(void **state) {
    (void)state;
    NEEDS_DECODERS;
    make_folder("classes");
    make_folder("classes/cat");
    make_folder("classes/ant");
    make_folder("classes/Zebra");
    put_picture("classes/cat/1.png", "png_rgb");
    put_picture("classes/cat/2.JPG", "jpeg_2");
    put_picture("classes/ant/b.jpeg", "jpeg_grey");
    put_picture("classes/Zebra/a.png", "png_palette");
    put_text("classes/ant/.hidden", "");
    assert_string_equal(labels_of(temp_path("classes"), 2), "0 1 2 2");
    make_folder("flat");
    put_picture("flat/b.png", "png_rgb");
    put_picture("flat/a.jpg", "jpeg_2");
    assert_string_equal(labels_of(temp_path("flat"), 0), "- -");
    assert_string_equal(labels_of(temp_path("flat/b.png"), 4), "-");
}

static void lists_name_pictures_beside_them(void **state) {
    (void)state;
    NEEDS_DECODERS;
    make_folder("listed");
    put_picture("listed/a b.png", "png_rgb");
    put_picture("listed/c,d.jpg", "jpeg_2");
    put_text("listed/plain.txt", "a b.png\r\n\n  \nc,d.jpg");
    assert_string_equal(labels_of(temp_path("listed/plain.txt"), 0), "- -");
    put_text("listed/numbered.txt", "a b.png 7\nc,d.jpg\t 12 \n");
    assert_string_equal(labels_of(temp_path("listed/numbered.txt"), 1), "7 12");
    put_text("listed/table.csv", "path,label\na b.png,3\na b.png,4\n");
    assert_string_equal(labels_of(temp_path("listed/table.csv"), 8), "3 4");
    put_text("listed/quoted.csv", "\xef\xbb\xbf\"a b.png\",3\n\"c,d.jpg\",4\n");
    assert_string_equal(labels_of(temp_path("listed/quoted.csv"), 8), "3 4");
    put_text("listed/bare.csv", "a b.png\n");
    assert_string_equal(labels_of(temp_path("listed/bare.csv"), 8), "-");
}

static void check_refused(const char *spec, const data_input *inputs, size_t count, const char *how,
                          const char *words) {
    const preprocess p = how != NULL ? steps(how) : (preprocess){0};
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    tare_error *err = tare_error_create();
    tare_status status = tare__data_open(spec, inputs, count, 8, how != NULL ? &p : NULL, &s, err);
    while (status == TARE_OK && !done) {
        status = tare__data_next(s, &batch, &done, err);
        if (status == TARE_OK) tare__data_batch_release(&batch);
    }
    if (status == TARE_OK) fail_msg("%s: was read", spec);
    char said[600];
    (void)snprintf(said, sizeof said, "%s: %s", tare_error_where(err), tare_error_message(err));
    if (!strstr(said, words)) fail_msg("'%s' does not say '%s'", said, words);
    tare__data_close(s);
    tare_error_destroy(err);
}

static void bad_pictures_are_refused_with_their_file(void **state) {
    (void)state;
    NEEDS_DECODERS;
    make_folder("bad");
    const char *how = "resize=4x5";
    check_refused(temp_path("bad"), one_input, 1, how, "no data in it");
    put_picture("bad/a.png", "png_rgb");
    put_picture("bad/b.png", "png_cut");
    check_refused(temp_path("bad"), one_input, 1, how, "bad/b.png: the PNG is broken");
    check_refused(temp_path("bad"), one_input, 1, NULL, "does not say how a picture");
    check_refused(temp_path("bad"), two_inputs, 2, how, "pictures for a model of 2 inputs");
    put_picture("bad/b.png", "png_grey");
    check_refused(temp_path("bad"), one_input, 1, "to_tensor", "b.png: the picture becomes");
    put_text("bad/c.gif", "GIF89a");
    check_refused(temp_path("bad"), one_input, 1, how, "bad/c.gif: expected .png");
    make_folder("mixed");
    make_folder("mixed/one");
    put_picture("mixed/a.png", "png_rgb");
    check_refused(temp_path("mixed"), one_input, 1, how, "found both");
    make_folder("empty_class");
    make_folder("empty_class/one");
    check_refused(temp_path("empty_class"), one_input, 1, how, "the class has no pictures");
    check_refused(temp_path("absent.png"), one_input, 1, how, "absent.png: cannot open");
    put_text("no_png.png", "not a picture");
    check_refused(temp_path("no_png.png"), one_input, 1, how, "neither PNG nor JPEG");
    const data_input narrow[] = {{.name = "x", .ndim = 4, .shape = {-1, 1, 4, 5}}};
    check_refused(temp_path("bad/a.png"), narrow, 1, how, "has the shape [1, 3, 4, 5]");
}

static void bad_lists_are_refused_with_their_line(void **state) {
    (void)state;
    NEEDS_DECODERS;
    make_folder("lists");
    put_picture("lists/a.png", "png_rgb");
    static const struct {
        const char *name, *content, *words;
    } cases[] = {
        {"lists/none.txt", "\n\n", "no pictures in it"},
        {"lists/word.txt", "a.png\nhello\n", "line 2: expected the path"},
        {"lists/label.txt", "a.png x\n", "line 1: expected a whole number"},
        {"lists/half.txt", "a.png 1.5\n", "whole number"},
        {"lists/some.txt", "a.png 1\na.png\n", "line 2: either all"},
        {"lists/gone.txt", "a.png\nb.png\n", "line 2: "},
        {"lists/gone.txt", "a.png\nb.png\n", "lists/b.png: cannot open"},
        {"lists/columns.csv", "a.png,1,2\n", "line 1: expected a whole number"},
        {"lists/late.csv", "path,label\na.png,1\nnumber,2\n", "line 3: expected the path"},
        {"lists/empty.txt", "", "no pictures in it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(cases[i].name, cases[i].content);
        check_refused(temp_path(cases[i].name), one_input, 1, "resize=4x5", cases[i].words);
    }
}

static void put_masks(const char *name, int64_t count) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 2, (int64_t[]){count, 3}, &t, NULL));
    for (int64_t i = 0; i < t->count; i++) tare__f32(t)[i] = (float)i;
    CHECK_OK(tare__npy_write(temp_path(name), t, NULL));
    tare_tensor_release(t);
}

static const char *named_spec(const char *format) {
    static char spec[4096];
    char *out = spec;
    for (; *format != '\0'; format++) { // '@': the temporary folder
        if (*format == '@')
            out += sprintf(out, "%s", temp_folder());
        else
            *out++ = *format;
    }
    *out = '\0';
    return spec;
}

static void inputs_by_name_are_read_in_step(void **state) {
    (void)state;
    NEEDS_DECODERS;
    make_folder("named");
    make_folder("named/photos,x=1");
    put_picture("named/photos,x=1/a.png", "png_rgb");
    put_picture("named/photos,x=1/b.jpg", "jpeg_2");
    put_picture("named/photos,x=1/c.jpg", "jpeg_0");
    put_masks("named/three.npy", 3);
    put_masks("named/two.npy", 2);
    put_text("named/labels.txt", "5\n6\n\n7\n");
    put_text("named/short.txt", "5\n6\n");
    const preprocess p = steps("resize=4x5");
    data_source *s = NULL;
    CHECK_OK(tare__data_open(
        named_spec("image=@/named/photos,x=1,mask=@/named/three.npy,labels=@/named/labels.txt"),
        two_inputs, 2, 2, &p, &s, NULL));
    assert_int_equal(tare__data_sample_count(s), 3);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 3; i++) {
            data_batch batch = {0};
            bool done = false;
            CHECK_OK(tare__data_next(s, &batch, &done, NULL));
            assert_int_equal(done, i == 2);
            if (done) break;
            assert_int_equal(batch.size, i == 0 ? 2 : 1);
            assert_int_equal(batch.inputs[0]->shape[3], 5);
            assert_float_equal(tare__f32(batch.inputs[1])[1], i == 0 ? 1 : 7, 0);
            assert_int_equal(((const int64_t *)batch.labels->data)[0], i == 0 ? 5 : 7);
            tare__data_batch_release(&batch);
        }
        CHECK_OK(tare__data_rewind(s, NULL));
    }
    tare__data_close(s);
    const char *how = "resize=4x5";
    check_refused(named_spec("image=@/named/photos,x=1"), two_inputs, 2, how,
                  "no data for input 'mask'");
    check_refused(named_spec("image=@/named/photos,x=1,mask=@/named/two.npy"), two_inputs, 2, how,
                  "input 'mask' has fewer samples");
    check_refused(named_spec("mask=@/named/two.npy,image=@/named/photos,x=1,image=a.png"),
                  two_inputs, 2, how, "given twice");
    check_refused(
        named_spec("image=@/named/photos,x=1,mask=@/named/three.npy,labels=@/named/short.txt"),
        two_inputs, 2, how, "2 labels for at least 3 samples");
    put_text("named/long.txt", "5\n6\n7\n8\n");
    check_refused(named_spec("image=@/named/photos,x=1,mask=@/named/three.npy,y=@/named/long.txt"),
                  two_inputs, 2, how, "4 labels for 3 samples");
    put_text("named/words.txt", "5\nsix\n");
    check_refused(named_spec("image=@/named/photos,x=1,mask=@/named/three.npy,y=@/named/words.txt"),
                  two_inputs, 2, how, "line 2: expected one whole number");
    put_text("named/numbered.txt", "photos,x=1/a.png 1\nphotos,x=1/a.png 2\n");
    check_refused(named_spec("x=@/named/numbered.txt,y=@/named/short.txt"), one_input, 1, how,
                  "labels come with several inputs");
}

static tare_status read_all(const char *spec, const data_input *inputs, size_t count,
                            const preprocess *p) {
    data_source *s = NULL;
    tare_status status = tare__data_open(spec, inputs, count, 2, p, &s, NULL);
    for (bool done = false; status == TARE_OK && !done;) {
        data_batch batch = {0};
        status = tare__data_next(s, &batch, &done, NULL);
        tare__data_batch_release(&batch);
    }
    tare__data_close(s);
    return status;
}

// After the tests that made the folders.
static void every_allocation_may_fail(void **state) {
    (void)state;
    NEEDS_DECODERS;
    tare_status status = TARE_OK;
    const preprocess p = steps("resize=4x5");
    const char *classes = temp_path("classes");
    EVERY_ALLOCATION_FAILS(status, status = read_all(classes, one_input, 1, &p), (void)0);
    const char *list = temp_path("listed/numbered.txt");
    EVERY_ALLOCATION_FAILS(status, status = read_all(list, one_input, 1, &p), (void)0);
    const char *named =
        named_spec("image=@/named/photos,x=1,mask=@/named/three.npy,labels=@/named/labels.txt");
    EVERY_ALLOCATION_FAILS(status, status = read_all(named, two_inputs, 2, &p), (void)0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_of_classes_are_numbered_by_name),
        cmocka_unit_test(lists_name_pictures_beside_them),
        cmocka_unit_test(bad_pictures_are_refused_with_their_file),
        cmocka_unit_test(bad_lists_are_refused_with_their_line),
        cmocka_unit_test(inputs_by_name_are_read_in_step),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
