// SPDX-License-Identifier: Apache-2.0
// Files hold what they were written with: whatever was changed since is found when they are read.
#include "support/test.h"

#include <jansson.h>

#include "core/tensor/map.h"
#include "io/native/model_digests.h"
#include "support/models.h"
#include "support/temp.h"

static const char path_of_model[] = "model.safetensors", path_of_edit[] = "edit.safetensors";

#define NETWORK "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n    return b\n"

// Two layers of `features` each way.
static tare_model *two_layers(int features) {
    char config[64];
    module *root = new_tree();
    snprintf(config, sizeof config, "in_features=%d, out_features=%d", features, features);
    put_module(root, NULL, "a", "torch.nn.Linear", config);
    put_module(root, NULL, "b", "torch.nn.Linear", config);
    return new_model(NULL, root, NETWORK);
}

static void write_two_layers(int features) {
    tare_model *model = two_layers(features);
    tare__tensor_set(tare__module_find_tensor(model->root, "b.weight"), 0, 7);
    CHECK_DONE(tare_model_write(model, temp_path(path_of_model), job_error()));
    tare_model_destroy(model);
}

static tare_status read_model(const char *name) {
    tare_model *model = NULL;
    const tare_status status = tare_model_read(temp_path(name), NULL, &model, job_error());
    assert_int_equal(model != NULL, status == TARE_OK);
    tare_model_destroy(model);
    return status;
}

// Changes a bit of a file's byte, and puts it back.
static tare_status read_with_changed_bit(unsigned char *bytes, size_t size, size_t at, int bit) {
    bytes[at] ^= (unsigned char)(1 << bit);
    temp_write(temp_path(path_of_edit), bytes, size);
    bytes[at] ^= (unsigned char)(1 << bit);
    return read_model(path_of_edit);
}

static size_t find_bytes(const unsigned char *bytes, size_t size, const char *wanted) {
    const size_t length = strlen(wanted);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, wanted, length) == 0) return i;
    fail_msg("no '%s'", wanted);
    return 0;
}

// Only a file whose key of digests has another name counts as one of others.
static void every_changed_bit_is_found(void **state) {
    (void)state;
    size_t size = 0;
    write_two_layers(3);
    unsigned char *bytes = temp_read(temp_path(path_of_model), &size);
    const size_t key = find_bytes(bytes, size, MODEL_DIGESTS), key_size = strlen(MODEL_DIGESTS);
    for (size_t i = 0; i < size; i++) {
        if (i >= key && i < key + key_size) continue;
        const int bit = (int)(i * 5 % 8);
        if (read_with_changed_bit(bytes, size, i, bit) == TARE_OK)
            fail_msg("bit %d of byte %zu of %zu", bit, i, size);
    }
    for (size_t cut = 1; cut < size; cut += 7) {
        temp_write(temp_path(path_of_edit), bytes, size - cut);
        assert_int_not_equal(read_model(path_of_edit), TARE_OK);
    }
    free(bytes);
}

static void a_changed_tensor_is_named(void **state) {
    (void)state;
    size_t size = 0;
    write_two_layers(3);
    unsigned char *bytes = temp_read(temp_path(path_of_model), &size);
    // The last tensor by name is the last of the file.
    assert_int_equal(read_with_changed_bit(bytes, size, size - 1, 0), TARE_MALFORMED_FILE);
    CHECK_HOLDS(tare_error_message(job_error()), "tensor 'b.weight': expected the digest ");
    CHECK_HOLDS(tare_error_message(job_error()), ", found ");
    CHECK_HOLDS(tare_error_where(job_error()), path_of_edit);
    CHECK_HOLDS(tare_error_hint(job_error()), "damaged or edited");
    free(bytes);
}

// --- files that were put together anew ---

typedef struct contents {
    json_t *graph, *digests;
    map *tensors;
} contents;

typedef struct edit {
    const char *what;
    void (*change)(contents *p);
    const char *refusal; // NULL: the file is read
} edit;

static void nothing(contents *p) {
    (void)p;
}

static void no_digests(contents *p) {
    json_decref(p->digests);
    p->digests = NULL;
}

static void another_graph(contents *p) {
    json_object_set_new(p->graph, "class_name", json_string("Other"));
}

static void swapped_tensors(contents *p) {
    tare_tensor *a = tare__map_get(p->tensors, "a.weight");
    assert_true(tare__map_set(p->tensors, "a.weight", tare__map_get(p->tensors, "b.weight")));
    assert_true(tare__map_set(p->tensors, "b.weight", a));
}

static void a_digest_too_few(contents *p) {
    json_object_del(json_object_get(p->digests, "tensors"), "a.bias");
}

static void a_digest_too_many(contents *p) {
    json_object_set_new(json_object_get(p->digests, "tensors"), "c", json_string("00"));
}

static void a_word(contents *p) {
    json_object_set_new(json_object_get(p->digests, "tensors"), "a.bias", json_string("none"));
}

static void a_number(contents *p) {
    json_object_set_new(json_object_get(p->digests, "tensors"), "a.bias", json_integer(1));
}

static void capitals(contents *p) {
    json_object_set_new(p->digests, "graph", json_string("0123456789ABCDEF"));
}

static void a_list(contents *p) {
    json_object_set_new(p->digests, "tensors", json_array());
}

static void another_algorithm(contents *p) {
    json_object_set_new(p->digests, "algorithm", json_string("crc32"));
}

static void another_key(contents *p) {
    json_object_set_new(p->digests, "colour", json_string("blue"));
}

static void packed_from_nowhere(contents *p) {
    json_object_set_new(
        p->digests, "packed",
        json_pack("{s:{s:[s], s:s}}", "a.weight", "of", "nowhere", "digest", "0123456789abcdef"));
}

static void nothing_packed(contents *p) {
    json_object_set_new(
        p->digests, "packed",
        json_pack("{s:{s:[], s:s}}", "nothing", "of", "digest", "0123456789abcdef"));
}

static const edit edits[] = {
    {"nothing", nothing, NULL},
    {"no digests", no_digests, NULL},
    {"another graph", another_graph, "the graph 'tare.graph': expected the digest"},
    {"swapped tensors", swapped_tensors, "tensor 'a.weight': expected the digest"},
    {"a digest too few", a_digest_too_few, "tensor 'a.bias' of the file has no digest"},
    {"a digest too many", a_digest_too_many, "the file has no tensor 'c'"},
    {"a word", a_word, "expected 16 hexadecimal digits, found 'none'"},
    {"a number", a_number, "expected a string"},
    {"capitals", capitals, "expected 16 hexadecimal digits, found '0123456789ABCDEF'"},
    {"a list", a_list, "expected an object"},
    {"another algorithm", another_algorithm, "expected the algorithm 'xxh3-64', found 'crc32'"},
    {"another key", another_key, "colour"},
    {"packed from nowhere", packed_from_nowhere, "no tensor 'nowhere'"},
    {"nothing packed", nothing_packed, "no tensor 'nothing'"},
};

static void write_edited(const edit *e) {
    safetensors file = {0};
    CHECK_DONE(tare__safetensors_read(temp_path(path_of_model), &file, job_error()));
    contents p = {.graph = json_loads(tare__safetensors_metadata(&file, MODEL_GRAPH), 0, NULL),
                  .digests = json_loads(tare__safetensors_metadata(&file, MODEL_DIGESTS), 0, NULL),
                  .tensors = &file.tensors};
    json_t *metadata = json_object(), *graph_before = json_deep_copy(p.graph);
    e->change(&p);
    // An unchanged graph keeps its bytes.
    char *chars = json_equal(graph_before, p.graph)
                      ? strdup(tare__safetensors_metadata(&file, MODEL_GRAPH))
                      : json_dumps(p.graph, 0);
    char *digests = p.digests != NULL ? json_dumps(p.digests, 0) : NULL;
    json_object_set_new(metadata, MODEL_GRAPH, json_string(chars));
    if (digests != NULL) json_object_set_new(metadata, MODEL_DIGESTS, json_string(digests));
    CHECK_DONE(tare__safetensors_write(temp_path(path_of_edit), p.tensors, metadata, job_error()));
    free(digests);
    free(chars);
    json_decref(graph_before);
    json_decref(p.graph);
    json_decref(p.digests);
    json_decref(metadata);
    tare__safetensors_release(&file);
}

static void digests_cover_all_that_a_file_holds(void **state) {
    (void)state;
    write_two_layers(3);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        print_message("%s\n", edits[i].what);
        write_edited(&edits[i]);
        if (edits[i].refusal == NULL)
            CHECK_DONE(read_model(path_of_edit));
        else
            CHECK_REFUSED(read_model(path_of_edit), TARE_MALFORMED_FILE, edits[i].refusal);
    }
}

static void who_asks_for_it_reads_what_differs(void **state) {
    (void)state;
    const tare_model_read_options options = {.struct_size = sizeof options,
                                             .ignores_digests = true};
    tare_model *model = NULL;
    write_two_layers(3);
    write_edited(&(edit){.change = swapped_tensors});
    CHECK_DONE(tare_model_read_with(temp_path(path_of_edit), NULL, &options, &model, job_error()));
    // Written again, it holds what it says.
    CHECK_DONE(tare_model_write(model, temp_path(path_of_edit), job_error()));
    tare_model_destroy(model);
    CHECK_DONE(read_model(path_of_edit));
}

// 36 MB, of which each thread takes tensors.
static void large_files_are_read_by_several_threads(void **state) {
    (void)state;
    size_t size = 0;
    write_two_layers(2124);
    CHECK_DONE(read_model(path_of_model));
    unsigned char *bytes = temp_read(temp_path(path_of_model), &size);
    CHECK_REFUSED(read_with_changed_bit(bytes, size, size - 1, 7), TARE_MALFORMED_FILE,
                  "tensor 'b.weight': expected the digest");
    CHECK_REFUSED(read_with_changed_bit(bytes, size, size / 4, 0), TARE_MALFORMED_FILE,
                  "tensor 'a.weight': expected the digest");
    free(bytes);
}

static tare_status check_digests(const safetensors *file, size_t *count) {
    model_digests *found = NULL;
    TARE_TRY(tare__model_digests_begin(file, &found, NULL));
    return tare__model_digests_end(found, count, NULL);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    safetensors file = {0};
    tare_status status = TARE_OK;
    size_t count = 0;
    write_two_layers(3);
    CHECK_DONE(tare__safetensors_read(temp_path(path_of_model), &file, job_error()));
    EVERY_ALLOCATION_FAILS(status, status = check_digests(&file, &count), )
    assert_int_equal(count, 4);
    tare__safetensors_release(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_changed_bit_is_found),
        cmocka_unit_test(a_changed_tensor_is_named),
        cmocka_unit_test(digests_cover_all_that_a_file_holds),
        cmocka_unit_test(who_asks_for_it_reads_what_differs),
        cmocka_unit_test(large_files_are_read_by_several_threads),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
