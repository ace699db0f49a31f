// SPDX-License-Identifier: Apache-2.0
// Finds images: a file, a folder of files, a folder with one folder per class (torchvision's
// ImageFolder), a text file of paths, or a CSV file.
#include "io/data/picture_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/math/float_to_int.h"
#include "core/memory/alloc.h"
#include "core/system/file.h"
#include "core/system/system.h"
#include "core/text/text.h"

// --- folders ---

static bool is_folder(const char *path) {
    struct stat info;
    return tare__system()->stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

typedef struct names {
    const char **items; // in the source's arena
    size_t count, capacity;
} names;

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The folder's visible entries as paths, sorted.
static tare_status list_folder(data_source *s, const char *path, names *out, tare_error *err) {
    DIR *folder = tare__system()->opendir(path);
    if (folder == NULL) {
        tare__fail(err, TARE_IO, "the folder cannot be opened");
        return tare__at(err, TARE_IO, "%s", path);
    }
    tare_status status = TARE_OK;
    bool has_memory = true;
    for (const char *name;
         has_memory && (name = tare__folder_next(folder, &status, err)) != NULL;) {
        const char *whole = tare__arena_printf(&s->memory, "%s/%s", path, name);
        has_memory = whole != NULL && tare__grow((void **)&out->items, &out->capacity, out->count,
                                                 sizeof *out->items);
        if (has_memory) out->items[out->count++] = whole;
    }
    tare__system()->closedir(folder);
    if (!has_memory) return tare__out_of_memory(err);
    TARE_TRY(status);
    if (out->count > 1) qsort(out->items, out->count, sizeof *out->items, by_name);
    return TARE_OK;
}

static tare_status add(picture_list *l, const char *path, int64_t label, tare_error *err) {
    if (!tare__grow((void **)&l->items, &l->capacity, l->count, sizeof *l->items))
        return tare__out_of_memory(err);
    l->items[l->count++] = (listed_picture){path, label};
    return TARE_OK;
}

static tare_status add_files(picture_list *l, const names *n, int64_t label, tare_error *err) {
    for (size_t i = 0; i < n->count; i++) {
        if (!tare__image_name(n->items[i]) || is_folder(n->items[i])) {
            tare__fail(err, TARE_INVALID_ARGUMENT, "expected .png, .jpg and .jpeg only");
            return tare__at(err, TARE_INVALID_ARGUMENT, "%s", n->items[i]);
        }
        TARE_TRY(add(l, n->items[i], label, err));
    }
    return TARE_OK;
}

static tare_status add_class(data_source *s, picture_list *l, const char *path, int64_t label,
                             tare_error *err) {
    names files = {0};
    tare_status status = list_folder(s, path, &files, err);
    if (status == TARE_OK && files.count == 0) {
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "the class has no pictures");
        (void)tare__at(err, status, "%s", path);
    }
    if (status == TARE_OK) status = add_files(l, &files, label, err);
    tare__free(files.items);
    return status;
}

static tare_status add_entries(data_source *s, picture_list *l, const names *n, tare_error *err) {
    if (n->count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the folder has no data in it");
    size_t folders = 0;
    for (size_t i = 0; i < n->count; i++) folders += is_folder(n->items[i]);
    l->has_labels = folders == n->count;
    if (folders == 0) return add_files(l, n, 0, err);
    if (!l->has_labels)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected either pictures or one folder per class, found both");
    for (size_t i = 0; i < n->count; i++) TARE_TRY(add_class(s, l, n->items[i], (int64_t)i, err));
    return TARE_OK;
}

static tare_status find_in_folder(data_source *s, picture_list *l, tare_error *err) {
    names entries = {0};
    tare_status status = list_folder(s, s->spec, &entries, err);
    if (status == TARE_OK) status = add_entries(s, l, &entries, err);
    tare__free(entries.items);
    return status;
}

// --- lists ---

typedef struct line {
    const char *path;
    size_t path_length;
    const char *label; // NULL: none
    size_t label_length;
} line;

typedef struct list_reader {
    data_source *source;
    picture_list *list;
    const char *at, *end;
    size_t number, folder_length; // of the list's own folder in its path
    bool is_table;
} list_reader;

static bool is_picture_n(const char *chars, size_t length) {
    char ending[8] = "";
    const size_t taken = length < 6 ? length : 6; // "x.jpeg"
    memcpy(ending, chars + length - taken, taken);
    return tare__image_name(ending);
}

// Splits PATH [LABEL] at the last blank, unless the line ends in an image's extension. Paths may
// contain blanks.
static line split_list(const char *chars, size_t length) {
    line l = {.path = chars, .path_length = length};
    if (is_picture_n(chars, length)) return l;
    size_t at = length;
    while (at > 0 && chars[at - 1] != ' ' && chars[at - 1] != '\t') at--;
    if (at == 0) return l;
    l.label = chars + at;
    l.label_length = length - at;
    while (at > 0 && (chars[at - 1] == ' ' || chars[at - 1] == '\t')) at--;
    l.path_length = at;
    return l;
}

static line split_table(const char *chars, size_t length) {
    line l = {.path = chars, .path_length = length};
    const char *mark = length > 1 && chars[0] == '"' ? memchr(chars + 1, '"', length - 1) : NULL;
    const char *from = mark != NULL ? mark + 1 : chars;
    const char *comma = memchr(from, ',', length - (size_t)(from - chars));
    if (mark != NULL) {
        l.path = chars + 1;
        l.path_length = (size_t)(mark - l.path);
    }
    if (comma == NULL) return l;
    if (mark == NULL) l.path_length = (size_t)(comma - chars);
    l.label = comma + 1;
    l.label_length = length - (size_t)(l.label - chars);
    return l;
}

static tare_status parse_label(const line *l, int64_t *out, tare_error *err) {
    double number = 0;
    if (!tare__parse_double(l->label, l->label_length, &number) ||
        number != (double)tare__cut_int32(number))
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "expected a whole number for a label, found '%.*s'",
                          (int)(l->label_length < 40 ? l->label_length : 40), l->label);
    *out = (int64_t)number;
    return TARE_OK;
}

// Checked when the list is opened, so that a missing file does not fail hours later.
static tare_status check_there(const char *path, tare_error *err) {
    struct stat info;
    if (tare__system()->stat(path, &info) == 0) return TARE_OK;
    const tare_status status = tare__fail(err, TARE_IO, "cannot open: %s", strerror(errno));
    return tare__at(err, status, "%s", path);
}

static tare_status add_line(list_reader *r, const char *chars, size_t length, tare_error *err) {
    const line l = r->is_table ? split_table(chars, length) : split_list(chars, length);
    if (!is_picture_n(l.path, l.path_length)) {
        if (r->is_table && r->number == 1) return TARE_OK; // a header
        return tare__fail(err, TARE_MALFORMED_FILE, "expected the path of a .png, .jpg or .jpeg%s",
                          r->is_table ? " in the first column" : ", then a label or nothing");
    }
    if (r->list->count > 0 && r->list->has_labels != (l.label != NULL))
        return tare__fail(err, TARE_MALFORMED_FILE, "either all pictures have a label or none");
    r->list->has_labels = l.label != NULL;
    int64_t label = 0;
    if (l.label != NULL) TARE_TRY(parse_label(&l, &label, err));
    const size_t prefix = l.path[0] == '/' ? 0 : r->folder_length;
    const char *path = tare__arena_printf(&r->source->memory, "%.*s%.*s", (int)prefix,
                                          r->source->spec, (int)l.path_length, l.path);
    if (path == NULL) return tare__out_of_memory(err);
    TARE_TRY(check_there(path, err));
    return add(r->list, path, label, err);
}

// The next line, without its end and trailing blanks.
static bool next_line(list_reader *r, const char **chars, size_t *length) {
    static const char mark[] = "\xef\xbb\xbf"; // a UTF-8 byte order mark
    if (r->number == 0 && r->end - r->at >= 3 && memcmp(r->at, mark, 3) == 0) r->at += 3;
    if (r->at == r->end) return false;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    if (stop == NULL) stop = r->end;
    *chars = r->at;
    *length = (size_t)(stop - r->at);
    while (*length > 0 && strchr(" \t\r", (*chars)[*length - 1]) != NULL) --*length;
    r->at = stop < r->end ? stop + 1 : stop;
    r->number++;
    return true;
}

enum { LONGEST_LINE = 4096, TWO_LINES = 2 * LONGEST_LINE };

static tare_status read_lines(list_reader *r, tare_error *err) {
    const char *chars = NULL;
    size_t length = 0;
    while (next_line(r, &chars, &length)) {
        if (length == 0) continue;
        tare_status status = TARE_OK;
        if (length > LONGEST_LINE || memchr(chars, '\0', length) != NULL)
            status = tare__fail(err, TARE_MALFORMED_FILE, "the line is no path");
        else
            status = add_line(r, chars, length, err);
        if (status != TARE_OK) return tare__at(err, status, "line %zu", r->number);
    }
    if (r->list->count > 0) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "there are no pictures in it");
}

static tare_status open_lines(data_source *s, picture_list *l, storage **file, list_reader *out,
                              tare_error *err) {
    const unsigned char *bytes = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(s->spec, file, &bytes, &size, err));
    const char *slash = strrchr(s->spec, '/');
    *out = (list_reader){.source = s,
                         .list = l,
                         .at = (const char *)bytes,
                         .end = (const char *)bytes + size,
                         .folder_length = slash != NULL ? (size_t)(slash - s->spec) + 1 : 0,
                         .is_table = tare__ends_with(s->spec, ".csv")};
    return TARE_OK;
}

static tare_status find_in_list(data_source *s, picture_list *l, tare_error *err) {
    storage *file = NULL;
    list_reader r;
    TARE_TRY(open_lines(s, l, &file, &r, err));
    const tare_status status = read_lines(&r, err);
    tare__storage_release(file);
    return status;
}

// --- entry points ---

// True if one of the first two rows begins with an image's path. If the file cannot be read, *out
// is false, and opening the source reports the error.
static tare_status is_table_of_pictures(const char *path, bool *out, tare_error *err) {
    storage *file = NULL;
    const unsigned char *bytes = NULL;
    size_t size = 0, length = 0;
    const char *chars = NULL;
    const tare_status status = tare__file_map(path, &file, &bytes, &size, err);
    if (status != TARE_OK) return status == TARE_OUT_OF_MEMORY ? status : TARE_OK;
    // Two rows with paths of images are shorter; other files may have no line ends at all.
    if (size > TWO_LINES) size = TWO_LINES;
    list_reader r = {.at = (const char *)bytes, .end = (const char *)bytes + size};
    for (int i = 0; i < 2 && !*out && next_line(&r, &chars, &length); i++) {
        const line l = split_table(chars, length);
        *out = is_picture_n(l.path, l.path_length);
    }
    tare__storage_release(file);
    return TARE_OK;
}

static tare_status is_folder_of_pictures(const char *path, bool *out, tare_error *err) {
    DIR *folder = tare__system()->opendir(path);
    tare_status status = TARE_OK;
    if (folder == NULL) return TARE_OK; // opening the source reports the error
    for (const char *name; !*out && (name = tare__folder_next(folder, &status, err)) != NULL;) {
        char whole[4096];
        const int length = snprintf(whole, sizeof whole, "%s/%s", path, name);
        *out = tare__image_name(name) ||
               (length > 0 && (size_t)length < sizeof whole && is_folder(whole));
    }
    tare__system()->closedir(folder);
    return status;
}

tare_status tare__data_is_pictures(const char *spec, bool *out, tare_error *err) {
    *out = false;
    if (is_folder(spec)) return is_folder_of_pictures(spec, out, err);
    if (tare__ends_with(spec, ".csv"))
        return is_table_of_pictures(spec, out, err);
    else
        *out = tare__image_name(spec) || tare__ends_with(spec, ".txt");
    return TARE_OK;
}

tare_status tare__picture_list_find(data_source *s, picture_list *l, tare_error *err) {
    if (is_folder(s->spec)) return find_in_folder(s, l, err);
    if (tare__image_name(s->spec)) return add(l, s->spec, 0, err);
    return find_in_list(s, l, err);
}
