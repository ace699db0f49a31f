// SPDX-License-Identifier: Apache-2.0
// A recorded case: one call of prepare and convert, and what came out.
#ifndef REPLAY_CASE_H
#define REPLAY_CASE_H

#include <jansson.h>

#include "core/memory/arena.h"
#include "io/native/safetensors.h"
#include "tare/model.h"

/// Where a case lies: a folder, or a member folder of a zip archive.
typedef struct case_place {
    const char *name;    // the folder's own name
    const char *path;    // of the folder, or of the archive
    const char *members; // inside the archive: "NAME/"; NULL for a folder
} case_place;

typedef struct case_list { // zero-initialized is empty
    case_place *items;
    size_t count, capacity;
    arena memory;
} case_list;

/// Adds what `path` holds: a case folder, a folder of case folders and archives, or an archive.
/// TARE_NOT_FOUND when there is no case in it.
tare_status case_list_add(case_list *list, const char *path, tare_error *err);
void case_list_release(case_list *list);

/// A file in memory, kept by `store`.
typedef struct case_bytes {
    storage *store;
    const unsigned char *data;
    size_t size;
} case_bytes;

/// A file of the case.
tare_status case_read_file(const case_place *place, const char *file, case_bytes *out,
                           tare_error *err);

typedef struct recorded_case {
    const char *name;
    json_t *json;     // case.json
    safetensors data; // data.safetensors
    safetensors model;
    case_bytes exported;  // model.pt2; empty where the case has none
    bool starts_exported; // case_model reads that
} recorded_case;

tare_status case_read(const case_place *place, recorded_case *out, tare_error *err);
void case_release(recorded_case *c);

const char *case_text(const recorded_case *c, const char *key); // NULL if absent
/// The float model, anew at each call, from the recorded graph or (starts_exported) from the
/// exported program beside it. The caller destroys it.
tare_status case_model(const recorded_case *c, tare_model **out, tare_error *err);
/// The exported program as its archive has it. TARE_NOT_FOUND where the case has none.
tare_status case_exported_model(const recorded_case *c, tare_model **out, tare_error *err);

#endif
