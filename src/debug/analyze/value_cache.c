// SPDX-License-Identifier: Apache-2.0
// Values of a run, within budgets. Values on disk are mappings of files that are unlinked after
// writing: the system drops their pages from memory when it needs to, and nothing is left after a
// kill.
#include "debug/analyze/value_cache.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory/alloc.h"
#include "core/system/mapping.h"
#include "core/system/system.h"

typedef struct cached_value {
    tare_tensor *tensor;
    uint64_t *share; // budget to which the bytes return; NULL: none
    uint64_t bytes;
} cached_value;

enum { PATH_SIZE = 1024, SMALL = 4096 }; // bytes: smaller tensors stay in memory

tare_status tare__value_cache_begin(value_cache *c, size_t id_count, cache_budget *budget,
                                    tare_error *err) {
    *c = (value_cache){.budget = budget, .count = id_count};
    c->items = tare__alloc_zeroed(id_count + 1, sizeof *c->items);
    return c->items != NULL ? TARE_OK : tare__out_of_memory(err);
}

// --- files ---

// Opens a new file that only the user can read; -1 on failure.
static int open_temporary(char *path, size_t size) {
    const char *folder = getenv("TMPDIR");
    uint64_t random = 0;
    if (tare__system()->getentropy(&random, sizeof random) != 0) return -1;
    (void)snprintf(path, size, "%s/tare-values-%016" PRIx64,
                   folder != NULL && folder[0] != '\0' ? folder : "/tmp", random);
    return tare__system()->open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static bool write_all(int file, const char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t written = tare__system()->write(file, bytes, size);
        if (written <= 0) return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

// *out stays NULL if the disk is full.
static tare_status move_to_disk(const tare_tensor *t, tare_tensor **out, tare_error *err) {
    char path[PATH_SIZE];
    const size_t size = tare__tensor_bytes(t);
    const int file = open_temporary(path, sizeof path);
    storage *store = NULL;
    bool mapped = false;
    if (file < 0) return TARE_OK;
    const bool is_written = write_all(file, t->data, size);
    (void)tare__system()->unlink(path);
    tare_status status = TARE_OK;
    if (is_written) status = tare__mapping_create(file, path, size, &store, &mapped, err);
    (void)tare__system()->close(file);
    if (status == TARE_OK && mapped)
        status = tare__tensor_view(store, 0, t->dtype, t->ndim, t->shape, t->q, out, err);
    if (mapped) tare__storage_release(store);
    return status;
}

// --- keeping ---

static void drop(cached_value *v) {
    if (v->share != NULL) *v->share += v->bytes;
    tare_tensor_release(v->tensor);
    *v = (cached_value){0};
}

static bool fits(uint64_t *share, uint64_t bytes, cached_value *v) {
    if (bytes > *share) return false;
    v->share = share;
    v->bytes = bytes;
    return true;
}

tare_status tare__value_cache_put(value_cache *c, size_t id, const tare_tensor *t, bool is_required,
                                  tare_error *err) {
    const uint64_t bytes = tare__tensor_bytes(t);
    cached_value v = {0};
    drop(&c->items[id]);
    const bool in_memory = fits(&c->budget->memory_bytes, bytes, &v);
    if (!in_memory && bytes >= SMALL && fits(&c->budget->disk_bytes, bytes, &v))
        TARE_TRY(move_to_disk(t, &v.tensor, err));
    if (v.tensor == NULL && !in_memory) v.share = NULL; // the disk is full
    if (v.tensor == NULL && (in_memory || is_required))
        v.tensor = tare_tensor_retain((tare_tensor *)t); // NOLINT: counted, not changed
    if (v.share != NULL) *v.share -= bytes;
    c->items[id] = v;
    return TARE_OK;
}

tare_tensor *tare__value_cache_get(const value_cache *c, size_t id) {
    return c->items != NULL && id < c->count ? c->items[id].tensor : NULL;
}

void tare__value_cache_clear(value_cache *c) {
    for (size_t i = 0; c->items != NULL && i < c->count; i++) drop(&c->items[i]);
}

void tare__value_cache_release(value_cache *c) {
    tare__value_cache_clear(c);
    tare__free(c->items);
    *c = (value_cache){0};
}
