// SPDX-License-Identifier: Apache-2.0
// Reads arrays from files. One file is open at a time, and batches are views of its arrays.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory/alloc.h"
#include "core/memory/map.h"
#include "core/system/file.h"
#include "core/system/system.h"
#include "core/text/text.h"
#include "io/data/npy.h"
#include "io/data/npz.h"
#include "io/data/source.h"
#include "io/native/safetensors.h"

typedef struct files {
    const char **paths; // in the source's arena
    size_t count, capacity;
    size_t next;      // index of the next file to open
    data_batch whole; // all samples of the current file
    int64_t position; // number of its samples that were returned
} files;

// --- finding files ---

static const char *const endings[] = {".npz", ".npy", ".safetensors"};

static bool is_readable_name(const char *name) {
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tare__ends_with(name, endings[i])) return true;
    return false;
}

static tare_status add_path(files *f, const char *path, tare_error *err) {
    if (path == NULL || !tare__grow((void **)&f->paths, &f->capacity, f->count, sizeof *f->paths))
        return tare__out_of_memory(err);
    f->paths[f->count++] = path;
    return TARE_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tare_status add_folder(data_source *s, files *f, DIR *folder, tare_error *err) {
    tare_status status = TARE_OK;
    for (const char *name; (name = tare__folder_next(folder, &status, err)) != NULL;) {
        if (!is_readable_name(name))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "'%s' is none of .npz, .npy and .safetensors", name);
        TARE_TRY(add_path(f, tare__arena_printf(&s->memory, "%s/%s", s->spec, name), err));
    }
    TARE_TRY(status);
    if (f->count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the folder has no data in it");
    qsort(f->paths, f->count, sizeof *f->paths, by_name);
    return TARE_OK;
}

static tare_status refuse_name(const data_source *s, const char *what, size_t length,
                               const char *name, tare_error *err) {
    text names = {0};
    for (size_t i = 0; i < s->input_count; i++)
        tare__text_printf(&names, "%s'%s'", i > 0 ? ", " : "", s->inputs[i].name);
    tare__fail(err, TARE_INVALID_ARGUMENT, "%s '%.*s' is no input of the model, which has %s", what,
               (int)length, name, s->input_count > 0 ? tare__text_chars(&names) : "none");
    tare__text_release(&names);
    return TARE_INVALID_ARGUMENT;
}

static tare_status unknown_kind(const data_source *s, tare_error *err) {
    struct stat info;
    const size_t length = strcspn(s->spec, "=/");
    if (tare__system()->stat(s->spec, &info) != 0) {
        const int reason = errno;
        if (length > 0 && s->spec[length] == '=')
            return refuse_name(s, "the name", length, s->spec, err);
        tare__fail(err, TARE_IO, "cannot open: %s", strerror(reason));
    } else {
        tare__fail(err, TARE_INVALID_ARGUMENT, "the name does not say which kind of data it is");
    }
    return tare__hint(
        err, TARE_INVALID_ARGUMENT,
        "DATA is a folder, random:N, or a file .npz, .npy, .safetensors, .csv, .csv.gz, "
        ".png, .jpg or .txt");
}

static tare_status find_files(data_source *s, files *f, tare_error *err) {
    struct stat info;
    const bool is_there = tare__system()->stat(s->spec, &info) == 0;
    if (is_there && S_ISDIR(info.st_mode)) {
        DIR *folder = tare__system()->opendir(s->spec);
        if (folder == NULL)
            return tare__fail(err, TARE_IO, "cannot open the folder: %s", strerror(errno));
        const tare_status status = add_folder(s, f, folder, err);
        tare__system()->closedir(folder);
        return status;
    }
    if (strcmp(s->spec, "-") == 0 || (is_there && is_readable_name(s->spec)))
        return add_path(f, s->spec, err);
    return unknown_kind(s, err);
}

// --- assigning arrays to inputs ---

static const char *const label_names[] = {"labels", "label", "y"};
static const char *const only_names[] = {"x", "input", "input.0", "arr_0"};

static bool is_among(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}
#define IS_AMONG(name, names) is_among(name, names, sizeof(names) / sizeof *(names))

bool tare__data_is_label_name(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof label_names / sizeof *label_names; i++)
        if (strlen(label_names[i]) == length && strncmp(label_names[i], name, length) == 0)
            return true;
    return false;
}

// "input.3" -> 3 with the prefix "input.".
static bool position_in_name(const char *name, const char *prefix, size_t count, size_t *out) {
    if (!tare__starts_with(name, prefix)) return false;
    const char *digits = name + strlen(prefix);
    const size_t length = strlen(digits);
    if (length == 0 || length > 4 || strspn(digits, "0123456789") != length) return false;
    *out = (size_t)strtoul(digits, NULL, 10);
    return *out < count;
}

static bool find_input(const data_source *s, const char *array, size_t *out) {
    if (tare__data_find(s, array, strlen(array), out)) return true;
    *out = 0;
    if (s->input_count == 1) return IS_AMONG(array, only_names);
    return position_in_name(array, "input.", s->input_count, out) ||
           position_in_name(array, "arr_", s->input_count, out);
}

// Files of recorded test cases (with an array input.0) also contain outputs, which are ignored.
static bool is_recorded_result(const map *arrays, const char *name) {
    static const char *const results[] = {"float", "prepared", "converted", "weights", "frozen"};
    if (!tare__map_has(arrays, "input.0")) return false;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const size_t length = strlen(results[i]);
        if (strncmp(name, results[i], length) == 0 && (name[length] == '\0' || name[length] == '.'))
            return true;
    }
    return false;
}

static bool is_narrowed(const data_input *input, const tare_tensor *t) {
    return (t->dtype == TARE_FLOAT64 || t->dtype == TARE_FLOAT16) && input->dtype != t->dtype;
}

static tare_status place_input(const data_source *s, size_t i, tare_tensor *t, const char *array,
                               data_batch *out, tare_error *err) {
    if (out->inputs[i] != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "array '%s' is a second one for input '%s'",
                          array, s->inputs[i].name);
    if (is_narrowed(&s->inputs[i], t)) return tare_tensor_to_float(t, &out->inputs[i], err);
    out->inputs[i] = tare_tensor_retain(t);
    return TARE_OK;
}

static tare_status place_arrays(const data_source *s, const map *arrays, data_batch *out,
                                tare_error *err) {
    for (size_t a = 0; a < arrays->count; a++) {
        const char *name = arrays->entries[a].key;
        tare_tensor *t = arrays->entries[a].value;
        size_t i = 0;
        if (find_input(s, name, &i)) {
            TARE_TRY(place_input(s, i, t, name, out, err));
        } else if (tare__data_is_label_name(name, strlen(name)) && out->labels == NULL) {
            out->labels = tare_tensor_retain(t);
        } else if (!is_recorded_result(arrays, name)) {
            return refuse_name(s, "array", strlen(name), name, err);
        }
    }
    return TARE_OK;
}

static tare_status check_sample_counts(const data_source *s, data_batch *whole, tare_error *err) {
    for (size_t i = 0; i < s->input_count; i++) {
        const tare_tensor *t = whole->inputs[i];
        if (i == 0) whole->size = t->shape[0];
        if (t->shape[0] != whole->size)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "input '%s' has %" PRId64 " samples, input '%s' has %" PRId64,
                              s->inputs[i].name, t->shape[0], s->inputs[0].name, whole->size);
        if (whole->size == 0)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "there are no samples in it");
    }
    const tare_tensor *labels = whole->labels;
    if (labels != NULL && (labels->ndim == 0 || labels->shape[0] != whole->size))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%" PRId64 " labels for %" PRId64 " samples",
                          labels->ndim == 0 ? 1 : labels->shape[0], whole->size);
    return TARE_OK;
}

static tare_status match_arrays(const data_source *s, const map *arrays, const char *path,
                                data_batch *out, tare_error *err) {
    tare_status status = place_arrays(s, arrays, out, err);
    for (size_t i = 0; i < s->input_count && status == TARE_OK; i++)
        if (out->inputs[i] == NULL)
            status = tare__fail(err, TARE_INVALID_ARGUMENT, "there is no array for input '%s'",
                                s->inputs[i].name);
    if (status != TARE_OK) return tare__at(err, status, "%s", path);
    if (s->as_is) {
        out->size = 1;
        return TARE_OK;
    }
    for (size_t i = 0; i < s->input_count; i++)
        TARE_TRY(tare__data_check(s, i, out->inputs[i], path, s->inputs[i].name, err));
    status = check_sample_counts(s, out, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

// --- reading ---

// The array of a .npy file has no name and belongs to the only input.
static tare_status read_npy(const data_source *s, const char *path, map *arrays, tare_error *err) {
    tare_tensor *t = NULL;
    if (s->input_count != 1) {
        tare__fail(err, TARE_INVALID_ARGUMENT, "an array without a name for a model of %zu inputs",
                   s->input_count);
        return tare__at(err, TARE_INVALID_ARGUMENT, "%s", path);
    }
    TARE_TRY(tare__npy_read(path, &t, err));
    if (tare__map_set(arrays, s->inputs[0].name, t)) return TARE_OK;
    tare_tensor_release(t);
    return tare__out_of_memory(err);
}

static tare_status read_safetensors(const char *path, map *arrays, tare_error *err) {
    safetensors file = {0};
    TARE_TRY(tare__safetensors_read(path, &file, err));
    *arrays = file.tensors;
    file.tensors = (map){0};
    tare__safetensors_release(&file);
    return TARE_OK;
}

static tare_status read_arrays(const data_source *s, const char *path, map *arrays,
                               tare_error *err) {
    if (tare__ends_with(path, ".npy")) return read_npy(s, path, arrays, err);
    if (tare__ends_with(path, ".safetensors")) return read_safetensors(path, arrays, err);
    return tare__npz_read(path, s->memory_limit, arrays, err); // "-" too
}

static tare_status open_file(const data_source *s, files *f, const char *path, tare_error *err) {
    map arrays = {0};
    tare__data_batch_release(&f->whole);
    f->position = 0;
    tare_status status = read_arrays(s, path, &arrays, err);
    if (status == TARE_OK) status = tare__data_batch_create(s, &f->whole, err);
    if (status == TARE_OK) status = match_arrays(s, &arrays, path, &f->whole, err);
    tare__tensor_map_release(&arrays);
    if (status != TARE_OK) tare__data_batch_release(&f->whole);
    return status;
}

static tare_status whole_batch(const data_source *s, const files *f, data_batch *out,
                               tare_error *err) {
    TARE_TRY(tare__data_batch_create(s, out, err));
    for (size_t i = 0; i < s->input_count; i++)
        out->inputs[i] = tare_tensor_retain(f->whole.inputs[i]);
    out->size = 1;
    return TARE_OK;
}

static tare_status slice_batch(const data_source *s, const files *f, int64_t count, data_batch *out,
                               tare_error *err) {
    TARE_TRY(tare__data_batch_create(s, out, err));
    for (size_t i = 0; i < s->input_count; i++)
        TARE_TRY(tare__data_slice(f->whole.inputs[i], f->position, count, &out->inputs[i], err));
    if (f->whole.labels != NULL)
        TARE_TRY(tare__data_slice(f->whole.labels, f->position, count, &out->labels, err));
    out->size = count;
    return TARE_OK;
}

static tare_status next(data_source *s, data_batch *out, bool *done, tare_error *err) {
    files *f = s->state;
    while (f->position == f->whole.size) {
        if (f->next == f->count) {
            *done = true;
            return TARE_OK;
        }
        TARE_TRY(open_file(s, f, f->paths[f->next], err));
        f->next++;
    }
    const int64_t left = f->whole.size - f->position;
    const int64_t count = s->batch_size > 0 && s->batch_size < left ? s->batch_size : left;
    TARE_TRY(s->as_is ? whole_batch(s, f, out, err) : slice_batch(s, f, count, out, err));
    f->position += count;
    return TARE_OK;
}

// A single file stays open, so that the next epoch need not read and check it again.
static tare_status rewind_files(data_source *s, tare_error *err) {
    files *f = s->state;
    (void)err;
    f->position = 0;
    if (f->count > 1) {
        tare__data_batch_release(&f->whole);
        f->next = 0;
    }
    return TARE_OK;
}

// Unknown (0) if there are several files, because only the current one is open.
static int64_t count_files(const data_source *s) {
    const files *f = s->state;
    return f->count == 1 ? f->whole.size : 0;
}

static void close_files(data_source *s) {
    files *f = s->state;
    tare__data_batch_release(&f->whole);
    tare__free(f->paths);
    tare__free(f);
}

tare_status tare__data_open_files(data_source *s, tare_error *err) {
    static const data_kind kind = {.next = next,
                                   .rewind = rewind_files,
                                   .close = close_files,
                                   .count = count_files,
                                   .takes_as_is = true};
    files *f = tare__alloc_zeroed(1, sizeof *f);
    if (f == NULL) return tare__out_of_memory(err);
    s->state = f;
    s->kind = &kind; // from here on closing the source releases f
    const tare_status status = find_files(s, f, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", s->spec);
}
