// SPDX-License-Identifier: Apache-2.0
// Mutates programs inside of their archive, so that fuzzing does not end at the zip layer: a
// member's JSON is edited as a tree, or its bytes are, and everything is packed again with sizes
// and checksums that are right. Now and then the archive's own bytes are mutated all the same.
#include <minizip/zip.h>
#include <stdint.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "edit.h"
#include "io/pt2/read/archive.h"
#include "replay/zip_memory.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// --- members ---

static void mutate_bytes(const pt2_bytes *bytes, size_t room, text *out) {
    const size_t capacity = bytes->size + room;
    uint8_t *copy = tare__alloc(capacity + 1);
    if (copy == NULL) return;
    if (bytes->size > 0) memcpy(copy, bytes->data, bytes->size);
    const size_t size = LLVMFuzzerMutate(copy, bytes->size, capacity);
    tare__text_append_n(out, (const char *)copy, size);
    tare__free(copy);
}

static bool write_member(zipFile zip, const char *name, const void *bytes, size_t size) {
    const zip_fileinfo info = {0};
    return zipOpenNewFileInZip(zip, name, &info, NULL, 0, NULL, 0, NULL, 0, 0) == ZIP_OK &&
           zipWriteInFileInZip(zip, bytes, (unsigned)size) == ZIP_OK &&
           zipCloseFileInZip(zip) == ZIP_OK;
}

static bool pack_member(edit_random *r, pt2_archive *a, zipFile zip, size_t index, bool is_chosen) {
    const pt2_member *m = a->members.entries[index].value;
    pt2_bytes bytes;
    text changed = {0};
    if (tare__pt2_read_member(a, m->name, &bytes) != TARE_OK) return false;
    const bool is_json = tare__ends_with(m->name, ".json");
    bool is_changed = is_chosen && is_json && edit_choose(r, 8) != 0 &&
                      edit_json_text(r, (const char *)bytes.data, bytes.size, &changed);
    if (is_chosen && !is_changed) {
        mutate_bytes(&bytes, 64, &changed);
        is_changed = true;
    }
    const bool ok =
        is_changed ? write_member(zip, m->full_name, tare__text_chars(&changed), changed.length)
                   : write_member(zip, m->full_name, bytes.data, bytes.size);
    tare__text_release(&changed);
    tare__storage_release(bytes.store);
    return ok;
}

// Mostly the program, at times a table, rarely anything else.
static size_t choose_member(edit_random *r, const pt2_archive *a) {
    const char *wanted = edit_choose(r, 4) != 0 ? "models/" : "_config.json";
    for (size_t tries = 0; tries < 16; tries++) {
        const size_t index = edit_choose(r, a->members.count);
        if (strstr(a->members.entries[index].key, wanted) != NULL) return index;
    }
    return edit_choose(r, a->members.count);
}

static bool repack(edit_random *r, pt2_archive *a, zip_memory *out) {
    if (a->members.count == 0) return false; // an archive of nothing opens, too
    zipFile zip = zip_open(out);
    if (zip == NULL) return false;
    const size_t chosen = choose_member(r, a);
    bool ok = true;
    for (size_t i = 0; i < a->members.count && ok; i++) ok = pack_member(r, a, zip, i, i == chosen);
    return zipClose(zip, NULL) == ZIP_OK && ok && !out->failed;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    edit_random r = edit_seed(seed);
    pt2_archive archive;
    zip_memory packed = {0};
    storage *store = NULL;
    size_t made = 0;
    if (edit_choose(&r, 16) != 0) store = tare__storage_adopt(data, size, NULL, NULL);
    if (store != NULL && tare__pt2_open(store, data, size, 0, NULL, &archive) == TARE_OK) {
        if (repack(&r, &archive, &packed) && packed.size <= max_size) made = packed.size;
        tare__pt2_close(&archive);
    }
    tare__storage_release(store);
    if (made > 0) memcpy(data, packed.data, made);
    tare__free(packed.data);
    return made > 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}
