// SPDX-License-Identifier: Apache-2.0
// Files that hold packed weights, too: sessions read them where the file is mapped, with the bits
// of the plain ones on every level; what a file says of them is believed as far as it can be
// checked, and anything else is packed anew.
#include "support/test.h"

#include <inttypes.h>
#include <jansson.h>

#include "core/hash/checksum.h"
#include "core/memory/alloc.h"
#include "io/native/model_digests.h"
#include "runtime/gemm/product_weights.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/temp.h"
#include "tare/session.h"

static const char packed_path[] = "packed.safetensors";

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

// --- files that hold other bytes ---

// As model_digests.h says.
static uint64_t digest_of(const tare_tensor *packed) {
    char description[64];
    snprintf(description, sizeof description, "U8[%" PRId64 "]", packed->shape[0]);
    return tare__checksum(packed->data, (size_t)packed->count,
                          tare__checksum(description, strlen(description), 0));
}

static const tare_tensor *first_packed(const safetensors *file) {
    for (size_t i = 0; i < file->tensors.count; i++)
        if (strstr(file->tensors.entries[i].key, ".packed") != NULL)
            return file->tensors.entries[i].value;
    fail_msg("nothing is packed");
    return NULL;
}

// Packed weights of a file become others: those of its first layer lose a bit. with_digest: the
// digest of these bytes is made anew, as whoever puts files together from addends would.
static void write_with_other_bytes(bool with_digests, bool with_own_digest) {
    safetensors file = {0};
    map first = {0};
    CHECK_DONE(tare__safetensors_read(temp_path(packed_path), &file, job_error()));
    const tare_tensor *old = first_packed(&file);
    tare_tensor *made = NULL;
    CHECK_OK(tare__tensor_copy(old, &made, NULL));
    ((unsigned char *)made->data)[77] ^= 4;
    json_t *digests = json_loads(tare__safetensors_metadata(&file, MODEL_DIGESTS), 0, NULL);
    for (size_t i = 0; i < file.tensors.count; i++) {
        const char *name = file.tensors.entries[i].key;
        if (strstr(name, ".packed") == NULL) continue;
        assert_true(tare__map_set(&first, name, made));
        if (file.tensors.entries[i].value != old) continue;
        file.tensors.entries[i].value = made;
        char digest[32];
        snprintf(digest, sizeof digest, "%016" PRIx64, digest_of(made));
        if (with_own_digest)
            json_object_set_new(json_object_get(digests, "tensors"), name, json_string(digest));
    }
    json_t *metadata =
        json_pack("{s:s}", MODEL_GRAPH, tare__safetensors_metadata(&file, MODEL_GRAPH));
    char *chars = json_dumps(digests, 0);
    if (with_digests) json_object_set_new(metadata, MODEL_DIGESTS, json_string(chars));
    CHECK_DONE(tare__safetensors_write_first(temp_path("edited.safetensors"), &file.tensors, &first,
                                             metadata, job_error()));
    free(chars);
    json_decref(digests);
    json_decref(metadata);
    tare_tensor_release((tare_tensor *)old);
    tare__map_release(&first);
    tare__safetensors_release(&file);
}

static void other_packed_bytes_are_refused(void **state) {
    (void)state;
    tare_model *plain = digits_in_integers(), *model = NULL;
    CHECK_DONE(tare_model_write_packed(plain, temp_path(packed_path), job_error()));
    write_with_other_bytes(true, false);
    const char *path = temp_path("edited.safetensors");
    assert_int_equal(tare_model_read(path, NULL, &model, job_error()), TARE_MALFORMED_FILE);
    CHECK_HOLDS(tare_error_message(job_error()), "packed weights 'conv1.weight.packed': expected ");
    write_with_other_bytes(true, true);
    assert_int_equal(tare_model_read(path, NULL, &model, job_error()), TARE_MALFORMED_FILE);
    CHECK_HOLDS(tare_error_message(job_error()),
                "packed weights 'conv1.weight.packed' were packed from other weights");
    CHECK_HOLDS(tare_error_hint(job_error()), "--packed");
    tare_model_destroy(plain);
}

static void verifying_packs_again(void **state) {
    (void)state;
    tare_model_verified found = {.struct_size = sizeof found};
    tare_model *plain = digits_in_integers(), *model = NULL;
    CHECK_DONE(tare_model_verify(plain, &found, job_error()));
    assert_int_equal(found.digest_count, 0);
    assert_int_equal(found.packed_count, 0);
    CHECK_DONE(tare_model_write_packed(plain, temp_path(packed_path), job_error()));
    model = read_back(packed_path);
    CHECK_DONE(tare_model_verify(model, &found, job_error()));
    assert_true(found.digest_count > 10);
    assert_int_equal(found.packed_count, count_layers(model).layers);
    tare_model_destroy(model);
    // A file of an earlier version has no digests.
    write_with_other_bytes(false, false);
    model = read_back("edited.safetensors");
    CHECK_REFUSED(tare_model_verify(model, &found, job_error()), TARE_MALFORMED_FILE,
                  "byte 77 of ");
    tare_model_destroy(model);
    write_edited(&(edit){"another version", another_version, NULL});
    model = read_back("edited.safetensors");
    CHECK_REFUSED(tare_model_verify(model, &found, job_error()), TARE_UNSUPPORTED, "version 99");
    tare_model_destroy(model);
    write_edited(&(edit){"fewer bytes", fewer_bytes, NULL});
    model = read_back("edited.safetensors");
    CHECK_REFUSED(tare_model_verify(model, &found, job_error()), TARE_MALFORMED_FILE, "found ");
    tare_model_destroy(model);
    tare_model_destroy(plain);
}

// Depthwise weights lie in blocks as wide as the writer's registers, which verify packs anywhere.
static void verifying_knows_every_width(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Conv2d",
               "in_channels=70, out_channels=70, kernel_size=3, groups=70");
    tare_model *model =
        new_model(NULL, root, "def forward(self, x):\n    a = self.a(x)\n    return a\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 1, 70, 8, 8);
    tare_model *plain = lowered(p, backend);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        tare_model_verified found = {.struct_size = sizeof found};
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        CHECK_DONE(tare_model_write_packed(plain, temp_path(packed_path), job_error()));
        assert_int_equal(unsetenv("TARE_ISA"), 0);
        tare_model *packed = read_back(packed_path);
        CHECK_DONE(tare_model_verify(packed, &found, job_error()));
        assert_int_equal(found.packed_count, 1);
        tare_model_destroy(packed);
    }
    tare_model_destroy(plain);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
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
    tare_model_verified found = {.struct_size = sizeof found};
    EVERY_ALLOCATION_FAILS(status, status = tare_model_verify(model, &found, NULL), )
    tare_model_destroy(model);
    tare_model_destroy(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights_are_read_where_they_are),
        cmocka_unit_test(changed_files_are_refused_or_packed_anew),
        cmocka_unit_test(other_packed_bytes_are_refused),
        cmocka_unit_test(verifying_packs_again),
        cmocka_unit_test(verifying_knows_every_width),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
