// SPDX-License-Identifier: Apache-2.0
// Computes and compares digests. All bytes of a file are read once, by several threads if the file
// is large.
#include "io/native/model_digests.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/hash/checksum.h"
#include "core/json/json.h"
#include "core/memory/alloc.h"

#define ALGORITHM "xxh3-64"

enum {
    DIGEST_SIZE = 17, // 16 digits and the NUL
    MOST_HELPERS = 3, // more threads would be limited by memory bandwidth
    BYTES_PER_HELPER = 8 << 20
};

// --- digests ---

struct model_digests {
    const safetensors *file; // the file to be checked
    json_t *json;            // the digests stored in it
    const map *tensors;
    uint64_t *values;    // in the order of tensors
    _Atomic size_t next; // the next tensor to be computed
    pthread_t helpers[MOST_HELPERS];
    size_t helper_count;
    map indexes; // name -> index + 1; empty until packed weights need it
};

static uint64_t digest_of_tensor(const tare_tensor *t) {
    char description[32 + TARE_MAX_DIMS * 21];
    size_t length =
        (size_t)snprintf(description, sizeof description, "%s[", tare__dtype(t->dtype)->file_name);
    for (int i = 0; i < t->ndim; i++)
        length += (size_t)snprintf(description + length, sizeof description - length, "%s%" PRId64,
                                   i > 0 ? "," : "", t->shape[i]);
    description[length++] = ']';
    return tare__checksum(t->data, tare__tensor_bytes(t), tare__checksum(description, length, 0));
}

static void *take_tensors(void *user) {
    model_digests *d = user;
    for (;;) {
        const size_t i = atomic_fetch_add(&d->next, 1);
        if (i >= d->tensors->count) return NULL;
        d->values[i] = digest_of_tensor(d->tensors->entries[i].value);
    }
}

static size_t count_helpers(const map *tensors) {
    size_t bytes = 0, count = MOST_HELPERS;
    for (size_t i = 0; i < tensors->count; i++)
        bytes += tare__tensor_bytes(tensors->entries[i].value);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors <= (long)count) count = processors > 1 ? (size_t)processors - 1 : 0;
    return bytes / BYTES_PER_HELPER < count ? bytes / BYTES_PER_HELPER : count;
}

// Starts threads. If there are none, finish() computes all digests.
static tare_status begin(model_digests *d, tare_error *err) {
    d->values = tare__alloc_zeroed(d->tensors->count + 1, sizeof *d->values);
    if (d->values == NULL) return tare__out_of_memory(err);
    const size_t count = count_helpers(d->tensors);
    while (d->helper_count < count &&
           pthread_create(&d->helpers[d->helper_count], NULL, take_tensors, d) == 0)
        d->helper_count++;
    return TARE_OK;
}

static void wait_for_helpers(model_digests *d) {
    for (size_t i = 0; i < d->helper_count; i++) (void)pthread_join(d->helpers[i], NULL);
    d->helper_count = 0;
}

static void finish(model_digests *d) {
    (void)take_tensors(d);
    wait_for_helpers(d);
}

static tare_status index_names(model_digests *d, tare_error *err) {
    for (size_t i = 0; i < d->tensors->count; i++)
        if (!tare__map_set(&d->indexes, d->tensors->entries[i].key, tare__map_int(i + 1)))
            return tare__out_of_memory(err);
    return TARE_OK;
}

static void release(model_digests *d) {
    atomic_store(&d->next, d->tensors->count); // the rest is not needed any more
    wait_for_helpers(d);
    tare__free(d->values);
    tare__map_release(&d->indexes);
    json_decref(d->json);
}

static void write_digest(uint64_t value, char out[DIGEST_SIZE]) {
    snprintf(out, DIGEST_SIZE, "%016" PRIx64, value);
}

// Appends a tensor's digest to the text of a combined digest; false if there is no such tensor.
static bool join_digest(const model_digests *d, const char *name, text *joined) {
    const size_t index = (size_t)tare__map_get(&d->indexes, name);
    char chars[DIGEST_SIZE];
    if (index == 0) return false;
    write_digest(d->values[index - 1], chars);
    tare__text_printf(joined, "%s%s", joined->length > 0 ? " " : "", chars);
    return true;
}

static uint64_t digest_of_text(const text *t) {
    return tare__checksum(tare__text_chars(t), t->length, 0);
}

// --- writing ---

static void put_digest(uint64_t value, text *out) {
    char chars[DIGEST_SIZE];
    write_digest(value, chars);
    tare__text_printf(out, "\"%s\"", chars);
}

static tare_status put_origin(const model_digests *d, const packed_origin *origin, text *out,
                              tare_error *err) {
    text joined = {0};
    bool is_known = join_digest(d, origin->packed, &joined);
    tare__text_json_string(out, origin->packed);
    tare__text_append(out, ": {\"of\": [");
    for (size_t i = 0; i < MOST_ORIGINS && origin->of[i] != NULL; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__text_json_string(out, origin->of[i]);
        is_known &= join_digest(d, origin->of[i], &joined);
    }
    tare__text_append(out, "], \"digest\": ");
    put_digest(digest_of_text(&joined), out);
    tare__text_char(out, '}');
    const tare_status status = tare__text_status(&joined, err);
    tare__text_release(&joined);
    if (status != TARE_OK || is_known) return status;
    return tare__fail(err, TARE_INTERNAL,
                      "packed weights '%s' belong to none of the file's tensors", origin->packed);
}

static tare_status put_origins(model_digests *d, const packed_origin *origins, size_t count,
                               text *out, tare_error *err) {
    if (count == 0) return TARE_OK;
    TARE_TRY(index_names(d, err));
    tare__text_append(out, ", \"packed\": {");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(put_origin(d, &origins[i], out, err));
    }
    tare__text_char(out, '}');
    return TARE_OK;
}

static void put_tensors(const model_digests *d, text *out) {
    for (size_t i = 0; i < d->tensors->count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__text_json_string(out, d->tensors->entries[i].key);
        tare__text_append(out, ": ");
        put_digest(d->values[i], out);
    }
}

tare_status tare__model_digests_to_json(const text *graph, const map *tensors,
                                        const packed_origin *origins, size_t origin_count,
                                        text *out, tare_error *err) {
    model_digests d = {.tensors = tensors};
    tare_status status = begin(&d, err);
    if (status == TARE_OK) finish(&d);
    tare__text_append(out, "{\"algorithm\": \"" ALGORITHM "\", \"graph\": ");
    put_digest(digest_of_text(graph), out);
    tare__text_append(out, ", \"tensors\": {");
    if (status == TARE_OK) put_tensors(&d, out);
    tare__text_char(out, '}');
    if (status == TARE_OK) status = put_origins(&d, origins, origin_count, out, err);
    tare__text_char(out, '}');
    release(&d);
    return status == TARE_OK ? tare__text_status(out, err) : status;
}

// --- checking ---

typedef struct checker {
    const safetensors *file;
    model_digests *found;
    const json_at *top;
    tare_error *err;
} checker;

static tare_status read_digest(const checker *c, const json_at *at, const char **out) {
    TARE_TRY(tare__json_string(at, out, c->err));
    if (strlen(*out) == DIGEST_SIZE - 1 && strspn(*out, "0123456789abcdef") == DIGEST_SIZE - 1)
        return TARE_OK;
    return tare__json_fail(at, c->err, "expected %d hexadecimal digits, found '%s'",
                           DIGEST_SIZE - 1, *out);
}

#define DAMAGE_HINT                                                                                \
    "the file was damaged or edited: fetch it or write it again; who means the edit leaves "       \
    "'" MODEL_DIGESTS "' out of its metadata"

// kind and name: "tensor", "fc.weight".
static tare_status compare(const checker *c, const json_at *at, uint64_t value, const char *kind,
                           const char *name) {
    const char *expected = NULL;
    char found[DIGEST_SIZE];
    TARE_TRY(read_digest(c, at, &expected));
    write_digest(value, found);
    if (strcmp(expected, found) == 0) return TARE_OK;
    tare__fail(c->err, TARE_MALFORMED_FILE, "%s '%s': expected the digest %s, found %s", kind, name,
               expected, found);
    return tare__hint(c->err, TARE_MALFORMED_FILE, DAMAGE_HINT);
}

static tare_status check_graph(const checker *c) {
    const json_at at = tare__json_get(c->top, "graph");
    const char *graph = tare__safetensors_metadata(c->file, MODEL_GRAPH);
    const uint64_t value = graph != NULL ? tare__checksum(graph, strlen(graph), 0) : 0;
    return compare(c, &at, value, "the graph", MODEL_GRAPH);
}

static tare_status check_tensors(const checker *c) {
    const json_at all = tare__json_get(c->top, "tensors"),
                  packed = tare__json_get(c->top, "packed");
    TARE_TRY(tare__json_expect(&all, JSON_OBJECT, c->err));
    const map *tensors = c->found->tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        const char *name = tensors->entries[i].key;
        const json_at at = tare__json_get(&all, name);
        if (at.value == NULL) {
            tare__json_fail(&all, c->err, "tensor '%s' of the file has no digest", name);
            return tare__hint(c->err, TARE_MALFORMED_FILE, DAMAGE_HINT);
        }
        const bool is_packed = tare__json_has(&packed, name);
        TARE_TRY(
            compare(c, &at, c->found->values[i], is_packed ? "packed weights" : "tensor", name));
    }
    return TARE_OK;
}

// Checks that no tensor is missing.
static tare_status check_names(const checker *c) {
    const json_at all = tare__json_get(c->top, "tensors");
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)all.value, name, item) {
        const json_at at = tare__json_get(&all, name);
        if (tare__safetensors_get(c->file, name) != NULL) continue;
        tare__json_fail(&at, c->err, "the file has no tensor '%s'", name);
        return tare__hint(c->err, TARE_MALFORMED_FILE, DAMAGE_HINT);
    }
    return TARE_OK;
}

static tare_status join_origin(const checker *c, const json_at *name_at, text *joined) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(name_at, &name, c->err));
    if (join_digest(c->found, name, joined)) return TARE_OK;
    return tare__json_fail(name_at, c->err, "the file has no tensor '%s'", name);
}

static tare_status join_origins(const checker *c, const json_at *at, const char *packed,
                                text *joined) {
    const json_at of = tare__json_get(at, "of");
    TARE_TRY(tare__json_expect(&of, JSON_ARRAY, c->err));
    if (!join_digest(c->found, packed, joined))
        return tare__json_fail(at, c->err, "the file has no tensor '%s'", packed);
    for (size_t i = 0; i < json_array_size(of.value); i++) {
        const json_at item = tare__json_item(&of, i);
        TARE_TRY(join_origin(c, &item, joined));
    }
    return tare__text_status(joined, c->err);
}

static tare_status check_origin(const checker *c, const json_at *at, const char *packed) {
    static const char *const keys[] = {"of", "digest", NULL};
    const json_at digest = tare__json_get(at, "digest");
    const char *expected = NULL;
    char found[DIGEST_SIZE];
    text joined = {0};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, c->err));
    TARE_TRY(tare__json_only_keys(at, keys, c->err));
    TARE_TRY(read_digest(c, &digest, &expected));
    const tare_status status = join_origins(c, at, packed, &joined);
    write_digest(digest_of_text(&joined), found);
    tare__text_release(&joined);
    if (status != TARE_OK || strcmp(expected, found) == 0) return status;
    tare__fail(
        c->err, TARE_MALFORMED_FILE,
        "packed weights '%s' were packed from other weights: expected the digest %s of both, "
        "found %s",
        packed, expected, found);
    return tare__hint(c->err, TARE_MALFORMED_FILE,
                      "write the model again with --packed, from a file that holds");
}

static tare_status check_origins(checker *c) {
    if (!tare__json_has(c->top, "packed")) return TARE_OK;
    const json_at packed = tare__json_get(c->top, "packed");
    TARE_TRY(tare__json_expect(&packed, JSON_OBJECT, c->err));
    TARE_TRY(index_names(c->found, c->err));
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)packed.value, name, item) {
        const json_at at = tare__json_get(&packed, name);
        TARE_TRY(check_origin(c, &at, name));
    }
    return TARE_OK;
}

static tare_status check_algorithm(const checker *c) {
    const json_at at = tare__json_get(c->top, "algorithm");
    const char *name = NULL;
    TARE_TRY(tare__json_string(&at, &name, c->err));
    if (strcmp(name, ALGORITHM) == 0) return TARE_OK;
    tare__json_fail(&at, c->err, "expected the algorithm '" ALGORITHM "', found '%s'", name);
    return tare__hint(c->err, TARE_MALFORMED_FILE, "was the file written by a later version?");
}

static tare_status check_all(checker *c) {
    static const char *const keys[] = {"algorithm", "graph", "tensors", "packed", NULL};
    TARE_TRY(tare__json_expect(c->top, JSON_OBJECT, c->err));
    TARE_TRY(tare__json_only_keys(c->top, keys, c->err));
    TARE_TRY(check_algorithm(c));
    TARE_TRY(check_graph(c));
    TARE_TRY(check_names(c));
    finish(c->found);
    TARE_TRY(check_tensors(c));
    return check_origins(c);
}

static tare_status begin_file(model_digests *d, const char *chars, tare_error *err) {
    const tare_status status = tare__json_parse(chars, strlen(chars), &d->json, err);
    if (status != TARE_OK) return tare__at(err, status, MODEL_DIGESTS);
    return begin(d, err);
}

tare_status tare__model_digests_begin(const safetensors *file, model_digests **out,
                                      tare_error *err) {
    const char *chars = tare__safetensors_metadata(file, MODEL_DIGESTS);
    *out = NULL;
    if (chars == NULL) return TARE_OK;
    model_digests *d = tare__alloc_zeroed(1, sizeof *d);
    if (d == NULL) return tare__out_of_memory(err);
    d->file = file;
    d->tensors = &file->tensors;
    const tare_status status = begin_file(d, chars, err);
    if (status == TARE_OK)
        *out = d;
    else
        tare__model_digests_abandon(d);
    return status;
}

static tare_status compare_all(model_digests *d, tare_error *err) {
    const json_at top = tare__json_root(d->json);
    checker c = {.file = d->file, .found = d, .top = &top, .err = err};
    const tare_status status = check_all(&c);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, MODEL_DIGESTS);
}

tare_status tare__model_digests_end(model_digests *d, size_t *count, tare_error *err) {
    *count = 0;
    if (d == NULL) return TARE_OK;
    const tare_status status = compare_all(d, err);
    if (status == TARE_OK) *count = d->tensors->count;
    tare__model_digests_abandon(d);
    return status;
}

void tare__model_digests_abandon(model_digests *d) {
    if (d == NULL) return;
    release(d);
    tare__free(d);
}
