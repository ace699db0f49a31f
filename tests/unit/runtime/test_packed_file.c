// SPDX-License-Identifier: Apache-2.0
// Files that hold packed weights, too: sessions read them where the file is mapped, with the bits
// of the plain ones on every level; what a file says of them is believed as far as it can be
// checked, and anything else is packed anew.
#include "support/test.h"

#include <jansson.h>

#include "core/alloc.h"
#include "io/safetensors.h"
#include "runtime/isa.h"
#include "runtime/kernels/product_weights.h"
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/temp.h"
#include "tare/session.h"

static const char packed_path[] = "packed.safetensors";

static tare_model *digits_in_integers(void) {
    tare_model *model = NULL;
    CHECK_DONE(tare_model_read("data/digits/digits.safetensors", NULL, &model, job_error()));
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 1, 8, 8);
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    return out;
}

static tare_model *read_back(const char *name) {
    tare_model *model = NULL;
    CHECK_DONE(tare_model_read(temp_path(name), NULL, &model, job_error()));
    return model;
}

static tare_tensor *run_once(const tare_model *model, bool reference) {
    tare_tensor *x = NEW_INPUT(3, 1, 8, 8);
    tare_tensor *y = output_with(model, &(tare_session_options){.reference = reference}, x);
    tare_tensor_release(x);
    return y;
}

static void check_bits(const tare_model *model, const tare_model *plain) {
    tare_tensor *expected = run_once(plain, true);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_tensor *found = run_once(model, false);
        check_same_tensor(found, expected);
        tare_tensor_release(found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
}

typedef struct layer_counts {
    size_t layers, mapped;
} layer_counts;

static tare_status count_layer(void *user, const char *path, module *m, tare_error *err) {
    layer_counts *counts = user;
    quantized_layer layer;
    packed_weights *w = NULL;
    (void)path;
    if (m->class->role != ROLE_QUANTIZED || tare__module_tensor(m, "weight") == NULL)
        return TARE_OK;
    TARE_TRY(tare__quantized_weights_read(m, &layer, err));
    const product_form form = tare__product_form_of(&layer);
    TARE_TRY(tare__product_weights_get(layer.weight, &form, &w, err));
    counts->layers++;
    counts->mapped += w->is_mapped;
    tare__packed_weights_release(w);
    return TARE_OK;
}

static layer_counts count_layers(const tare_model *model) {
    layer_counts counts = {0};
    CHECK_DONE(tare__module_walk(model->root, count_layer, &counts, job_error()));
    assert_true(counts.layers >= 3);
    return counts;
}

static void packed_weights_are_read_where_they_are(void **state) {
    (void)state;
    tare_model *plain = digits_in_integers();
    CHECK_DONE(tare_model_write_packed(plain, temp_path(packed_path), job_error()));
    tare_model *model = read_back(packed_path);
    const layer_counts counts = count_layers(model);
    assert_int_equal(counts.mapped, counts.layers);
    assert_int_equal(count_layers(plain).mapped, 0);
    check_bits(model, plain);
    // Written as models are, they are gone.
    CHECK_DONE(tare_model_write(model, temp_path("plain.safetensors"), job_error()));
    tare_model *again = read_back("plain.safetensors");
    assert_int_equal(count_layers(again).mapped, 0);
    check_bits(again, plain);
    tare_model_destroy(again);
    tare_model_destroy(model);
    tare_model_destroy(plain);
}

// --- files that were changed ---

typedef struct edit {
    const char *what;
    void (*change)(json_t *packing, map *tensors); // of the first layer
    const char *refusal;                           // NULL: that layer is packed anew
} edit;

static void another_version(json_t *packing, map *tensors) {
    (void)tensors;
    json_array_set_new(json_object_get(packing, "form"), 0, json_integer(99));
}

static void another_form(json_t *packing, map *tensors) {
    (void)tensors;
    json_array_set_new(json_object_get(packing, "form"), 2, json_integer(1 << 20));
}

static void negative_form(json_t *packing, map *tensors) {
    (void)tensors;
    json_array_set_new(json_object_get(packing, "form"), 1, json_integer(-1));
}

static void short_form(json_t *packing, map *tensors) {
    (void)tensors;
    json_array_remove(json_object_get(packing, "form"), 0);
}

static void replace_bytes(json_t *packing, map *tensors, tare_dtype dtype, int64_t less) {
    const char *name = json_string_value(json_object_get(packing, "bytes"));
    tare_tensor *old = tare__map_get(tensors, name), *made = NULL;
    const int64_t count = old->count / (int64_t)tare_dtype_size(dtype) - less;
    CHECK_OK(tare_tensor_create(dtype, 1, &count, &made, NULL));
    tare_tensor_release(old);
    assert_true(tare__map_set(tensors, name, made));
}

static void fewer_bytes(json_t *packing, map *tensors) {
    replace_bytes(packing, tensors, TARE_UINT8, 64);
}

static void no_bytes_at_all(json_t *packing, map *tensors) {
    const tare_tensor *t =
        tare__map_get(tensors, json_string_value(json_object_get(packing, "bytes")));
    replace_bytes(packing, tensors, TARE_UINT8, t->count);
}

static void words(json_t *packing, map *tensors) {
    replace_bytes(packing, tensors, TARE_INT32, 0);
}

static void bytes_of_another(json_t *packing, map *tensors) {
    (void)tensors;
    json_object_set_new(packing, "bytes", json_string("nowhere"));
}

static void weight_of_another(json_t *packing, map *tensors) {
    (void)tensors;
    json_object_set_new(packing, "weight", json_string("nowhere"));
}

static void own_bytes(json_t *packing, map *tensors) {
    const char *weight = json_string_value(json_object_get(packing, "weight"));
    char name[200];
    (void)tensors;
    snprintf(name, sizeof name, "%s.int_repr", weight);
    json_object_set_new(packing, "bytes", json_string(name));
}

static void unknown_key(json_t *packing, map *tensors) {
    (void)tensors;
    json_object_set_new(packing, "colour", json_string("blue"));
}

static const edit edits[] = {
    {"another version", another_version, NULL},
    {"another form", another_form, NULL},
    {"fewer bytes", fewer_bytes, NULL},
    {"no bytes at all", no_bytes_at_all, NULL},
    {"a negative number", negative_form, "no negative number"},
    {"a number too few", short_form, "expected 8 numbers, found 7"},
    {"words", words, "bytes in one dimension"},
    {"no such bytes", bytes_of_another, "no tensor 'nowhere'"},
    {"no such weight", weight_of_another, "no tensor 'nowhere'"},
    {"the weight's own bytes", own_bytes, "has another place"},
    {"an unknown key", unknown_key, "colour"},
};

// Writes the packed file once more, changed, with packed weights at the front as before.
static void write_edited(const edit *e) {
    safetensors file = {0};
    map first = {0};
    CHECK_DONE(tare__safetensors_read(temp_path(packed_path), &file, job_error()));
    const char *chars = tare__safetensors_metadata(&file, "tare.graph");
    json_t *json = json_loads(chars, 0, NULL);
    json_t *packed = json_object_get(json, "packed");
    assert_true(json_array_size(packed) >= 3);
    for (size_t i = 0; i < json_array_size(packed); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(packed, i), "bytes"));
        assert_true(tare__map_set(&first, name, packed));
    }
    e->change(json_array_get(packed, 0), &file.tensors);
    char *chars_now = json_dumps(json, JSON_COMPACT);
    json_t *metadata = json_pack("{s:s}", "tare.graph", chars_now);
    CHECK_DONE(tare__safetensors_write_first(temp_path("edited.safetensors"), &file.tensors, &first,
                                             metadata, job_error()));
    json_decref(metadata);
    free(chars_now);
    json_decref(json);
    tare__map_release(&first);
    tare__safetensors_release(&file);
}

static void check_edit(const edit *e, const tare_model *plain) {
    tare_model *model = NULL;
    print_message("%s\n", e->what);
    write_edited(e);
    const char *path = temp_path("edited.safetensors");
    if (e->refusal != NULL) {
        CHECK_REFUSED(tare_model_read(path, NULL, &model, job_error()), TARE_MALFORMED_FILE,
                      e->refusal);
        return;
    }
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    const layer_counts counts = count_layers(model);
    assert_int_equal(counts.mapped, counts.layers - 1);
    check_bits(model, plain);
    tare_model_destroy(model);
}

static void changed_files_are_refused_or_packed_anew(void **state) {
    (void)state;
    tare_model *plain = digits_in_integers();
    CHECK_DONE(tare_model_write_packed(plain, temp_path(packed_path), job_error()));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) check_edit(&edits[i], plain);
    tare_model_destroy(plain);
}

static void every_failed_allocation_is_survived(void **state) {
    (void)state;
    tare_model *plain = digits_in_integers(), *model = NULL;
    tare_status status = TARE_OUT_OF_MEMORY;
    for (long n = 1; status != TARE_OK; n++) {
        tare__alloc_fail_at(n);
        status = tare_model_write_packed(plain, temp_path(packed_path), NULL);
        tare__alloc_fail_at(0);
        assert_true(status == TARE_OK || status == TARE_OUT_OF_MEMORY);
    }
    status = TARE_OUT_OF_MEMORY;
    for (long n = 1; status != TARE_OK; n++) {
        tare__alloc_fail_at(n);
        status = tare_model_read(temp_path(packed_path), NULL, &model, NULL);
        tare__alloc_fail_at(0);
        assert_true(status == TARE_OK || status == TARE_OUT_OF_MEMORY);
    }
    tare_model_destroy(model);
    tare_model_destroy(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights_are_read_where_they_are),
        cmocka_unit_test(changed_files_are_refused_or_packed_anew),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
