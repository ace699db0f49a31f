// SPDX-License-Identifier: Apache-2.0
// Preprocessing as programs see it, and as models carry it.
#include "tare/preprocess.h"

#include "core/memory/alloc.h"
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

tare_status tare_preprocess_picture(const tare_preprocess *p, const char *path, tare_tensor **out,
                                    tare_error *err) {
    image picture = {0};
    tare_tensor *sample = NULL;
    TARE_TRY(tare__image_read(path, &picture, err));
    TARE_TRY(tare__at(err, tare__preprocess_apply(&p->steps, &picture, &sample, err), "%s", path));
    const int64_t shape[] = {1, sample->shape[0], sample->shape[1], sample->shape[2]};
    const tare_status status = tare__tensor_reshape(sample, 4, shape, out, err);
    tare_tensor_release(sample);
    return status;
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
