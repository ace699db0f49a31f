// SPDX-License-Identifier: Apache-2.0
// Finds cases: in folders, and in archives whose members are NAME/case.json and its companions.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"
#include "replay/case.h"
#include "replay/zip_memory.h"

static const char case_file[] = "case.json";

static tare_status add(case_list *list, const char *name, size_t name_length, const char *path,
                       const char *members, tare_error *err) {
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return tare__out_of_memory(err);
    case_place place = {.name = tare__arena_strndup(&list->memory, name, name_length),
                        .path = tare__arena_strdup(&list->memory, path)};
    if (members != NULL) place.members = tare__arena_strdup(&list->memory, members);
    if (place.name == NULL || place.path == NULL || (members != NULL && place.members == NULL))
        return tare__out_of_memory(err);
    list->items[list->count++] = place;
    return TARE_OK;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_case_folder(const char *path) {
    char file[4200];
    struct stat info;
    (void)snprintf(file, sizeof file, "%s/%s", path, case_file);
    return stat(file, &info) == 0;
}

/// The last component of a path, slashes at the end left out.
static const char *base_name(const char *path, size_t *length) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    *length = end - begin;
    return path + begin;
}

static tare_status add_folder(case_list *list, const char *path, tare_error *err) {
    char *real = realpath(path, NULL); // so that "." has a name
    const char *named = real != NULL ? real : path;
    size_t length = 0;
    const char *name = base_name(named, &length);
    const tare_status status = add(list, name, length, path, NULL, err);
    free(real);
    return status;
}

/// Members "NAME/case.json" name a case each; "case.json" at the top is one named after the
/// archive.
static tare_status add_member(case_list *list, const char *path, const char *member,
                              tare_error *err) {
    const size_t length = strlen(member), suffix = sizeof case_file - 1;
    if (length < suffix || strcmp(member + length - suffix, case_file) != 0) return TARE_OK;
    char folder[1024];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(length - suffix), member);
    size_t name_length = 0;
    const char *name = base_name(folder[0] != '\0' ? folder : path, &name_length);
    return add(list, name, name_length, path, folder, err);
}

static tare_status add_members(case_list *list, const char *path, unzFile zip, tare_error *err) {
    char member[1024];
    for (int at = unzGoToFirstFile(zip); at == UNZ_OK; at = unzGoToNextFile(zip)) {
        if (unzGetCurrentFileInfo64(zip, NULL, member, sizeof member, NULL, 0, NULL, 0) != UNZ_OK)
            break;
        TARE_TRY(add_member(list, path, member, err));
    }
    return TARE_OK;
}

static tare_status add_archive(case_list *list, const char *path, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    zip_memory memory = {.data = (unsigned char *)data, .size = size};
    unzFile zip = unzip_open(&memory);
    tare_status status = TARE_OK;
    if (zip == NULL) {
        status = tare__fail(err, TARE_MALFORMED_FILE, "%s: is no zip archive of cases", path);
    } else {
        status = add_members(list, path, zip, err);
        (void)unzClose(zip);
    }
    tare__storage_release(store);
    return status;
}

static tare_status add_entry(case_list *list, const char *folder, const char *name,
                             tare_error *err) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    if (is_case_folder(path)) return add_folder(list, path, err);
    const size_t length = strlen(name);
    const bool is_archive = length > 4 && strcmp(name + length - 4, ".zip") == 0;
    return is_archive && !is_folder(path) ? add_archive(list, path, err) : TARE_OK;
}

static tare_status add_entries(case_list *list, const char *path, tare_error *err) {
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) return tare__fail(err, TARE_IO, "%s: the folder cannot be read", path);
    tare_status status = TARE_OK;
    for (int i = 0; i < count; i++) {
        if (status == TARE_OK && entries[i]->d_name[0] != '.')
            status = add_entry(list, path, entries[i]->d_name, err);
        free(entries[i]);
    }
    free((void *)entries);
    return status;
}

tare_status case_list_add(case_list *list, const char *path, tare_error *err) {
    const size_t before = list->count;
    if (is_case_folder(path)) return add_folder(list, path, err);
    TARE_TRY(is_folder(path) ? add_entries(list, path, err) : add_archive(list, path, err));
    if (list->count > before) return TARE_OK;
    return tare__fail(err, TARE_NOT_FOUND, "%s: there is no case in it (a folder with %s)", path,
                      case_file);
}

void case_list_release(case_list *list) {
    tare__free(list->items);
    tare__arena_release(&list->memory);
    *list = (case_list){0};
}
