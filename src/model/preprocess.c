// SPDX-License-Identifier: Apache-2.0
// Public functions for preprocessing, which models may store.
#include "tare/preprocess.h"

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "model/model.h"

static tare_status make(const preprocess *steps, tare_preprocess **out, tare_error *err) {
    tare_preprocess *made = tare__alloc(sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->steps = *steps;
    *out = made;
    return TARE_OK;
}

tare_status tare_preprocess_parse(const char *spec, tare_preprocess **out, tare_error *err) {
    preprocess steps = {0};
    const tare_status status = tare__preprocess_from_text(spec, &steps, err);
    return status == TARE_OK ? make(&steps, out, err) : tare__at(err, status, "preprocess");
}

const char *tare_preprocess_preset_at(size_t index) {
    return tare__preprocess_preset_at(index);
}

tare_status tare_preprocess_read(const char *path, tare_preprocess **out, tare_error *err) {
    json_t *json = NULL;
    preprocess steps = {0};
    TARE_TRY(tare__json_parse_file(path, &json, err));
    const json_at root = tare__json_root(json);
    const tare_status status = tare__preprocess_from_json(&root, &steps, err);
    json_decref(json);
    return status == TARE_OK ? make(&steps, out, err) : tare__at(err, status, "%s", path);
}

void tare_preprocess_destroy(tare_preprocess *p) {
    tare__free(p);
}

tare_status tare_preprocess_to_json(const tare_preprocess *p, char **out, tare_error *err) {
    text json = {0};
    tare__preprocess_to_json(&p->steps, &json);
    char *chars = tare__text_take(&json);
    if (chars == NULL) return tare__out_of_memory(err);
    *out = chars;
    return TARE_OK;
}

bool tare_preprocess_equal(const tare_preprocess *a, const tare_preprocess *b) {
    return tare__preprocess_equal(&a->steps, &b->steps);
}

// Creates a batch of one picture. The picture's pixels are modified.
static tare_status make_batch(const tare_preprocess *p, image *picture, tare_tensor **out,
                              tare_error *err) {
    tare_tensor *sample = NULL;
    TARE_TRY(tare__preprocess_apply(&p->steps, picture, &sample, err));
    const int64_t shape[] = {1, sample->shape[0], sample->shape[1], sample->shape[2]};
    const tare_status status = tare__tensor_reshape(sample, 4, shape, out, err);
    tare_tensor_release(sample);
    return status;
}

tare_status tare_preprocess_picture(const tare_preprocess *p, const char *path, tare_tensor **out,
                                    tare_error *err) {
    image picture = {0};
    TARE_TRY(tare__image_read(path, &picture, err));
    return tare__at(err, make_batch(p, &picture, out, err), "%s", path);
}

tare_status tare_preprocess_bytes(const tare_preprocess *p, const void *bytes, size_t size,
                                  tare_tensor **out, tare_error *err) {
    image picture = {0};
    TARE_TRY(tare__image_decode(bytes, size, IMAGE_MOST_PIXELS, &picture, err));
    return make_batch(p, &picture, out, err);
}

// --- decoded pictures ---

// The bytes per pixel, and the positions of red, green and blue.
typedef struct pixel_layout {
    int bytes, channels, at[3];
} pixel_layout;

static const pixel_layout pixel_layouts[] = {
    [TARE_PIXELS_GRAY] = {1, 1, {0}},       [TARE_PIXELS_RGB] = {3, 3, {0, 1, 2}},
    [TARE_PIXELS_BGR] = {3, 3, {2, 1, 0}},  [TARE_PIXELS_RGBA] = {4, 3, {0, 1, 2}},
    [TARE_PIXELS_BGRA] = {4, 3, {2, 1, 0}},
};

static tare_status check_pixels(const tare_pixels *x, const pixel_layout *layout, tare_error *err) {
    if (x->data == NULL || x->height < 1 || x->width < 1 ||
        x->width > IMAGE_MOST_PIXELS / x->height)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected a picture of 1 to %lld pixels, found one %lld wide and %lld "
                          "high",
                          (long long)IMAGE_MOST_PIXELS, (long long)x->width, (long long)x->height);
    if (x->row_bytes != 0 && x->row_bytes < x->width * layout->bytes)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected rows of at least %lld bytes, found %lld",
                          (long long)(x->width * layout->bytes), (long long)x->row_bytes);
    return TARE_OK;
}

static void copy_pixels(const tare_pixels *x, const pixel_layout *layout, image *to) {
    const int64_t row_bytes = x->row_bytes != 0 ? x->row_bytes : x->width * layout->bytes;
    uint8_t *out = to->pixels;
    for (int64_t y = 0; y < x->height; y++) {
        const uint8_t *row = x->data + y * row_bytes;
        for (int64_t column = 0; column < x->width; column++)
            for (int c = 0; c < layout->channels; c++)
                *out++ = row[column * layout->bytes + layout->at[c]];
    }
}

tare_status tare_preprocess_pixels(const tare_preprocess *p, const tare_pixels *pixels,
                                   tare_tensor **out, tare_error *err) {
    tare_pixels given = {0};
    image picture = {0};
    tare__struct_copy(&given, sizeof given, pixels);
    const size_t count = sizeof pixel_layouts / sizeof *pixel_layouts;
    if ((size_t)given.format >= count || pixel_layouts[given.format].bytes == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "no pixel format %d", (int)given.format);
    const pixel_layout *layout = &pixel_layouts[given.format];
    TARE_TRY(check_pixels(&given, layout, err));
    TARE_TRY(tare__image_create(given.height, given.width, layout->channels, &picture, err));
    copy_pixels(&given, layout, &picture);
    return make_batch(p, &picture, out, err);
}

const tare_preprocess *tare_model_preprocess(const tare_model *model) {
    return model->preprocess;
}

tare_status tare_model_set_preprocess(tare_model *model, const tare_preprocess *p,
                                      tare_error *err) {
    tare_preprocess *copy = NULL;
    if (p != NULL) TARE_TRY(make(&p->steps, &copy, err));
    tare_preprocess_destroy(model->preprocess);
    model->preprocess = copy;
    return TARE_OK;
}
