// SPDX-License-Identifier: Apache-2.0
// Pictures and their preprocessing against what Pillow and torchvision made of them. Data:
// tests/data/images.npz, made by tests/data/record_images.py.
#include "support/test.h"

#include "io/data/npz.h"
#include "io/images/image.h"
#include "io/images/preprocess.h"
#include "support/temp.h"
#include "tare/preprocess.h"

static map recorded;

static int read_recorded(void **state) {
    CHECK_OK(tare__npz_read("tests/data/images.npz", 0, &recorded, NULL));
    return temp_make(state);
}

static int release_recorded(void **state) {
    tare__tensor_map_release(&recorded);
    return temp_remove(state);
}

// "NAME.suffix"; NULL if there is none.
static const tare_tensor *tensor_of(const char *name, const char *suffix) {
    char key[96];
    (void)snprintf(key, sizeof key, "%s.%s", name, suffix);
    return tare__map_get(&recorded, key);
}

static char *text_of(const char *name, const char *suffix) {
    const tare_tensor *t = tensor_of(name, suffix);
    assert_non_null(t);
    char *chars = calloc((size_t)t->count + 1, 1);
    assert_non_null(chars);
    memcpy(chars, t->data, (size_t)t->count);
    return chars;
}

#if !defined(TARE_HAVE_PNG) || !defined(TARE_HAVE_JPEG)
#define NEEDS_DECODERS skip()
#else
#define NEEDS_DECODERS (void)0
#endif

static tare_status decode(const char *name, image *out, tare_error *err) {
    const tare_tensor *file = tensor_of(name, "file");
    assert_non_null(file);
    return tare__image_decode(file->data, (size_t)file->count, IMAGE_MOST_PIXELS, out, err);
}

// A recorded key's name if it ends in `suffix`.
static bool name_with(const char *key, const char *suffix, char name[96]) {
    const char *dot = strrchr(key, '.');
    if (dot == NULL || strcmp(dot + 1, suffix) != 0) return false;
    (void)snprintf(name, 96, "%.*s", (int)(dot - key), key);
    return true;
}

static void pictures_are_read_as_pillow_reads_them(void **state) {
    (void)state;
    NEEDS_DECODERS;
    size_t count = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        char name[96];
        if (!name_with(recorded.entries[i].key, "file", name)) continue;
        const tare_tensor *expected = tensor_of(name, "pixels");
        image found = {0};
        tare_error *err = tare_error_create();
        if (decode(name, &found, err) != TARE_OK) fail_msg("%s: %s", name, tare_error_message(err));
        if (found.height != expected->shape[0] || found.width != expected->shape[1] ||
            found.channels != expected->shape[2])
            fail_msg("%s: %d x %d x %d", name, (int)found.height, (int)found.width, found.channels);
        if (memcmp(found.pixels, expected->data, (size_t)expected->count) != 0)
            fail_msg("%s: other pixels", name);
        tare__image_release(&found);
        tare_error_destroy(err);
        count++;
    }
    assert_true(count >= 20);
}

static void check_case(const char *name) {
    char *steps = text_of(name, "steps"), *picture = text_of(name, "picture");
    const tare_tensor *expected = tensor_of(name, "output");
    preprocess p = {0};
    image i = {0};
    tare_tensor *found = NULL;
    tare_error *err = tare_error_create();
    if (tare__preprocess_from_text(steps, &p, err) != TARE_OK)
        fail_msg("%s: %s: %s", name, tare_error_where(err), tare_error_message(err));
    CHECK_OK(decode(picture, &i, NULL));
    CHECK_OK(tare__preprocess_apply(&p, &i, &found, NULL));
    assert_int_equal(found->dtype, expected->dtype);
    assert_int_equal(found->ndim, expected->ndim);
    for (int d = 0; d < found->ndim; d++)
        if (found->shape[d] != expected->shape[d]) fail_msg("%s: another shape", name);
    if (memcmp(found->data, expected->data, tare__tensor_bytes(expected)) != 0)
        fail_msg("%s: other values", name);
    tare_tensor_release(found);
    tare_error_destroy(err);
    free(steps);
    free(picture);
}

static void tensors_are_torchvisions_to_the_bit(void **state) {
    (void)state;
    NEEDS_DECODERS;
    size_t count = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        char name[96];
        if (!name_with(recorded.entries[i].key, "steps", name)) continue;
        check_case(name);
        count++;
    }
    assert_true(count >= 50);
}

// --- pictures in memory ---

static void check_same_bytes(tare_tensor *found, const tare_tensor *expected) {
    assert_int_equal(found->dtype, expected->dtype);
    assert_int_equal(found->count, expected->count);
    assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
    tare_tensor_release(found);
}

// The recorded pixels in another order, each row followed by bytes that are nobody's.
static uint8_t *reordered(const tare_tensor *rgb, const int *order, int bytes, int64_t row_bytes) {
    uint8_t *out = malloc((size_t)(rgb->shape[0] * row_bytes));
    assert_non_null(out);
    memset(out, 0xa5, (size_t)(rgb->shape[0] * row_bytes));
    const uint8_t *from = rgb->data;
    for (int64_t y = 0; y < rgb->shape[0]; y++)
        for (int64_t x = 0; x < rgb->shape[1]; x++, from += 3)
            for (int c = 0; c < 3; c++) out[y * row_bytes + x * bytes + order[c]] = from[c];
    return out;
}

static void check_formats(const tare_preprocess *p, const tare_tensor *pixels,
                          const tare_tensor *expected) {
    static const struct {
        tare_pixel_format format;
        int bytes, order[3];
    } formats[] = {{TARE_PIXELS_RGB, 3, {0, 1, 2}},
                   {TARE_PIXELS_BGR, 3, {2, 1, 0}},
                   {TARE_PIXELS_RGBA, 4, {0, 1, 2}},
                   {TARE_PIXELS_BGRA, 4, {2, 1, 0}}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const int64_t row_bytes = pixels->shape[1] * formats[i].bytes + 5;
        uint8_t *data = reordered(pixels, formats[i].order, formats[i].bytes, row_bytes);
        const tare_pixels given = {.format = formats[i].format,
                                   .data = data,
                                   .height = pixels->shape[0],
                                   .width = pixels->shape[1],
                                   .row_bytes = row_bytes};
        tare_tensor *found = NULL;
        CHECK_OK(tare_preprocess_pixels(p, &given, &found, NULL));
        check_same_bytes(found, expected);
        free(data);
    }
}

static void pictures_in_memory_give_the_same_tensors(void **state) {
    (void)state;
    NEEDS_DECODERS;
    size_t count = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        char name[96];
        if (!name_with(recorded.entries[i].key, "steps", name)) continue;
        char *steps = text_of(name, "steps"), *picture = text_of(name, "picture");
        const tare_tensor *file = tensor_of(picture, "file"),
                          *pixels = tensor_of(picture, "pixels");
        const tare_tensor *expected = tensor_of(name, "output");
        tare_preprocess *p = NULL;
        tare_tensor *found = NULL;
        CHECK_OK(tare_preprocess_parse(steps, &p, NULL));
        CHECK_OK(tare_preprocess_bytes(p, file->data, (size_t)file->count, &found, NULL));
        assert_int_equal(found->ndim, 4);
        check_same_bytes(found, expected);
        if (pixels->shape[2] == 3) check_formats(p, pixels, expected);
        tare_preprocess_destroy(p);
        free(steps);
        free(picture);
        count++;
    }
    assert_true(count >= 50);
}

static void pixels_that_cannot_be_are_refused(void **state) {
    (void)state;
    const uint8_t grey[] = {0, 51, 255, 102};
    tare_preprocess *p = NULL;
    tare_tensor *found = NULL;
    CHECK_OK(tare_preprocess_parse("to_tensor,color=gray", &p, NULL));
    const tare_pixels fine = {.format = TARE_PIXELS_GRAY, .data = grey, .height = 2, .width = 2};
    CHECK_OK(tare_preprocess_pixels(p, &fine, &found, NULL));
    assert_true(tare__f32(found)[1] == (float)(51 * (1.0 / 255)));
    assert_true(tare__f32(found)[2] == 1.0F);
    tare_tensor_release(found);
    tare_pixels wrong[6];
    for (size_t i = 0; i < 6; i++) wrong[i] = fine;
    wrong[0].format = (tare_pixel_format)0;
    wrong[1].format = (tare_pixel_format)99;
    wrong[2].data = NULL;
    wrong[3].height = 0;
    wrong[4].width = INT64_MAX;
    wrong[5].row_bytes = 1;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(tare_preprocess_pixels(p, &wrong[i], &found, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_preprocess_bytes(p, "GIF89a", 6, &found, NULL), TARE_MALFORMED_FILE);
    assert_int_equal(tare_preprocess_bytes(p, NULL, 0, &found, NULL), TARE_MALFORMED_FILE);
    tare_preprocess_destroy(p);
}

static void json_keeps_every_step(void **state) {
    (void)state;
    static const char *const specs[] = {
        "imagenet", "to_tensor", "dtype=uint8,layout=NHWC,color=bgr",
        "resize=20x30,interpolation=nearest,crop=7,color=gray,scale=1,mean=1,std=2/3",
        "imagenet,resize=232,interpolation=bicubic,antialias=false"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        preprocess p = {0}, again = {0};
        text json = {0};
        CHECK_OK(tare__preprocess_from_text(specs[i], &p, NULL));
        tare__preprocess_to_json(&p, &json);
        CHECK_OK(tare__preprocess_from_text(tare__text_chars(&json), &again, NULL));
        assert_true(tare__preprocess_equal(&p, &again));
        tare__text_release(&json);
    }
    preprocess a = {0}, b = {0};
    CHECK_OK(tare__preprocess_from_text("imagenet", &a, NULL));
    CHECK_OK(tare__preprocess_from_text("imagenet,crop=223", &b, NULL));
    assert_false(tare__preprocess_equal(&a, &b));
}

static void steps_without_sense_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *spec, *words;
    } cases[] = {
        {"imagnet", "neither a preset"},
        {"crop=20,imagenet", "expected KEY=VALUE"},
        {"rezise=3", "no step"},
        {"resize=0", "1 to 65536"},
        {"resize=70000", "1 to 65536"},
        {"resize=3x", "HEIGHTxWIDTH"},
        {"crop=3,crop=4", "twice"},
        {"interpolation=nearest", "no effect without a resize"},
        {"resize=3,interpolation=nearest,antialias=true", "no effect on nearest"},
        {"resize=3,interpolation=cubic", "no interpolation"},
        {"scale=0", "above 0"},
        {"scale=1/0", "above 0"},
        {"scale=x", "expected a number"},
        {"mean=1:2:3", "must be given together"},
        {"mean=1:2:3,std=1:0:1", "above 0"},
        {"mean=1:2,std=1:1", "2 numbers for 3"},
        {"mean=1:2:3:4,std=1:1:1", "A:B:C"},
        {"color=gray,mean=1:2:3,std=1:1:1", "3 numbers for 1 channel"},
        {"dtype=uint8,scale=1", "no effect on uint8"},
        {"dtype=int8", "no dtype"},
        {"", "neither a preset"},
        {"{\"resize\": 3}", "expected an object"},
        {"{\"resize\": {\"shorter\": 3, \"size\": [3, 3]}}", "one of"},
        {"{\"resize\": {}}", "one of"},
        {"{\"crop\": [3, 3]}", "crop"},
        {"{\"center_crop\": [3]}", "[height, width]"},
        {"{\"mean\": [1, 2], \"std\": [1, 2]}", "1 or 3"},
        {"{\"color\": \"RGB\"}", "no color"},
        {"{", "line 1"},
    };
    tare_error *err = tare_error_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        preprocess p = {0};
        assert_int_equal(tare__preprocess_from_text(cases[i].spec, &p, err), TARE_MALFORMED_FILE);
        if (!strstr(tare_error_message(err), cases[i].words) &&
            !strstr(tare_error_where(err), cases[i].words))
            fail_msg("%s: '%s: %s' lacks '%s'", cases[i].spec, tare_error_where(err),
                     tare_error_message(err), cases[i].words);
    }
    tare_error_destroy(err);
}

static void check_broken(const unsigned char *bytes, size_t size, const char *words) {
    image i = {0};
    tare_error *err = tare_error_create();
    const tare_status status = tare__image_decode(bytes, size, IMAGE_MOST_PIXELS, &i, err);
    assert_int_equal(status, TARE_MALFORMED_FILE);
    if (!strstr(tare_error_message(err), words))
        fail_msg("'%s' lacks '%s'", tare_error_message(err), words);
    assert_null(i.pixels);
    tare_error_destroy(err);
}

static void broken_pictures_are_refused(void **state) {
    (void)state;
    NEEDS_DECODERS;
    static const char *const names[] = {"png_rgb", "png_palette", "jpeg_2", "jpeg_progressive",
                                        "jpeg_cmyk"};
    check_broken((const unsigned char *)"", 0, "empty");
    check_broken((const unsigned char *)"GIF89a", 6, "neither PNG nor JPEG");
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const tare_tensor *file = tensor_of(names[n], "file");
        // The last bytes of both formats are an end mark without pixels.
        for (size_t size = 8; size + 20 < (size_t)file->count; size += 13) {
            unsigned char *cut = malloc(size); // exactly so long, so that a sanitizer watches it
            assert_non_null(cut);
            memcpy(cut, file->data, size);
            check_broken(cut, size, names[n][0] == 'p' ? "PNG is broken" : "JPEG is broken");
            free(cut);
        }
    }
}

static void a_flipped_byte_never_breaks_the_reader(void **state) {
    (void)state;
    NEEDS_DECODERS;
    static const char *const names[] = {"png_rgba", "jpeg_progressive", "jpeg_cmyk"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const tare_tensor *file = tensor_of(names[n], "file");
        for (int64_t at = 8; at < file->count; at++) {
            unsigned char *bytes = malloc((size_t)file->count);
            assert_non_null(bytes);
            memcpy(bytes, file->data, (size_t)file->count);
            bytes[at] ^= (unsigned char)(1 << (at % 8));
            image i = {0};
            (void)tare__image_decode(bytes, (size_t)file->count, 1 << 16, &i, NULL);
            tare__image_release(&i);
            free(bytes);
        }
    }
}

static void pictures_larger_than_a_limit_are_refused(void **state) {
    (void)state;
    NEEDS_DECODERS;
    static const char *const names[] = {"png_rgb", "jpeg_2"};
    for (size_t n = 0; n < 2; n++) {
        const tare_tensor *file = tensor_of(names[n], "file");
        image i = {0};
        CHECK_OK(tare__image_decode(file->data, (size_t)file->count, 19 * 26, &i, NULL));
        tare__image_release(&i);
        assert_int_equal(tare__image_decode(file->data, (size_t)file->count, 19 * 26 - 1, &i, NULL),
                         TARE_MALFORMED_FILE);
    }
}

// A header that claims more pixels than its bytes could hold asks for no memory.
static void a_short_png_cannot_claim_a_large_picture(void **state) {
    (void)state;
    NEEDS_DECODERS;
    static const unsigned char bomb[] = {
        0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n', 0,    0,   0,   13,  'I', 'H',
        'D',  'R',  0,    0,    0x20, 0,    0,    0,    0x20, 0,   8,   2,   0,   0,
        0,    0xf6, 0x34, 0x13, 0xfb, 0,    0,    0,    1,    'I', 'D', 'A', 'T'};
    check_broken(bomb, sizeof bomb, "");
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    NEEDS_DECODERS;
    static const char *const names[] = {"png_rgb", "png_palette_alpha", "jpeg_cmyk"};
    preprocess p = {0};
    CHECK_OK(tare__preprocess_from_text("imagenet,resize=12,crop=9", &p, NULL));
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        tare_status status = TARE_OK;
        image i = {0};
        EVERY_ALLOCATION_FAILS(status, status = decode(names[n], &i, NULL),
                               tare__image_release(&i));
        tare_tensor *t = NULL;
        EVERY_ALLOCATION_FAILS(
            status,
            {
                image again = {0};
                status = decode(names[n], &again, NULL);
                if (status == TARE_OK) status = tare__preprocess_apply(&p, &again, &t, NULL);
            },
            tare_tensor_release(t));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_read_as_pillow_reads_them),
        cmocka_unit_test(tensors_are_torchvisions_to_the_bit),
        cmocka_unit_test(pictures_in_memory_give_the_same_tensors),
        cmocka_unit_test(pixels_that_cannot_be_are_refused),
        cmocka_unit_test(json_keeps_every_step),
        cmocka_unit_test(steps_without_sense_are_refused),
        cmocka_unit_test(broken_pictures_are_refused),
        cmocka_unit_test(a_flipped_byte_never_breaks_the_reader),
        cmocka_unit_test(pictures_larger_than_a_limit_are_refused),
        cmocka_unit_test(a_short_png_cannot_claim_a_large_picture),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, read_recorded, release_recorded);
}
