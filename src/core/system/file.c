// SPDX-License-Identifier: Apache-2.0
// Files: reading, and writing through a temporary file, with the table of system calls.
#define _DEFAULT_SOURCE // flock
#include "core/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/memory/budget.h"
#include "core/system/mapping.h"
#include "core/system/system.h"
#include "core/text/text.h"
#include "tare/file.h"

static tare_status fail_io(tare_error *err, const char *path, const char *verb) {
    const int reason = errno;
    char words[128];
    if (strerror_r(reason, words, sizeof words) != 0)
        snprintf(words, sizeof words, "error %d", reason);
    const tare_status status = reason == ENOMEM ? TARE_OUT_OF_MEMORY : TARE_IO;
    tare__fail(err, status, "cannot %s: %s", verb, words);
    return tare__at(err, status, "%s", path);
}

// --- reading ---

typedef struct growing_bytes {
    unsigned char *data;
    size_t used, capacity;
    uint64_t most; // a longer input is refused
} growing_bytes;

static bool make_room(growing_bytes *b) {
    if (b->used < b->capacity) return true;
    const size_t wanted = b->capacity > 0 ? b->capacity * 2 : (size_t)1 << 16;
    unsigned char *grown = wanted > b->capacity ? tare__realloc_array(b->data, wanted, 1) : NULL;
    if (grown == NULL) return false;
    b->data = grown;
    b->capacity = wanted;
    return true;
}

static tare_status refuse_rest(const growing_bytes *b, const char *path, tare_error *err) {
    char most[BYTES_TEXT];
    tare__fail(err, TARE_LIMIT_EXCEEDED, "expected at most %s, found more",
               tare__bytes_text(b->most, most));
    tare__budget_hint(err, TARE_LIMIT_EXCEEDED);
    return tare__at(err, TARE_LIMIT_EXCEEDED, "%s", path);
}

// Reads to the end: a file may grow or shrink meanwhile.
static tare_status read_rest(int file, const char *path, growing_bytes *b, tare_error *err) {
    for (;;) {
        if (!make_room(b)) return tare__out_of_memory(err);
        const ssize_t count = tare__system()->read(file, b->data + b->used, b->capacity - b->used);
        if (count == 0) return TARE_OK;
        if (count < 0 && errno != EINTR) return fail_io(err, path, "read");
        if (count > 0) b->used += (size_t)count;
        if (b->used > b->most) return refuse_rest(b, path, err);
    }
}

// expected: the approximate number of bytes; 0 if unknown.
static tare_status read_descriptor(int file, const char *path, size_t expected, uint64_t most,
                                   storage **out, tare_error *err) {
    growing_bytes b = {.most = most};
    // One byte more, so that the end is detected without growing the buffer.
    if (expected > 0 && expected < SIZE_MAX) b.data = tare__alloc(expected + 1);
    if (b.data != NULL) b.capacity = expected + 1;
    const tare_status status = read_rest(file, path, &b, err);
    *out = status == TARE_OK ? tare__storage_adopt(b.data, b.used, b.data, tare__free) : NULL;
    if (*out != NULL) return TARE_OK;
    tare__free(b.data);
    return status != TARE_OK ? status : tare__out_of_memory(err);
}

static tare_status refuse_kind(const char *path, mode_t mode, tare_error *err) {
    const bool directory = S_ISDIR(mode);
    tare__fail(err, TARE_IO, "expected a regular file, found %s",
               directory ? "a directory" : "a device, pipe or socket");
    if (!directory) tare__hint(err, TARE_IO, "'-' reads from standard input");
    return tare__at(err, TARE_IO, "%s", path);
}

static tare_status load_regular(int file, const char *path, bool may_map, storage **out,
                                tare_error *err) {
    struct stat info;
    bool is_mapped = false;
    if (tare__system()->fstat(file, &info) != 0) return fail_io(err, path, "examine");
    if (!S_ISREG(info.st_mode)) return refuse_kind(path, info.st_mode, err);
    if ((uintmax_t)info.st_size > SIZE_MAX) return tare__out_of_memory(err);
    const size_t size = (size_t)info.st_size;
    if (may_map && size > 0 && !tare__system()->is_remote(file))
        TARE_TRY(tare__mapping_create(file, path, size, out, &is_mapped, err));
    return is_mapped ? TARE_OK : read_descriptor(file, path, size, UINT64_MAX, out, err);
}

// Limited, because a stream may never end. Half of the memory, because growing the buffer
// temporarily needs twice its size.
static tare_status load_standard_input(uint64_t limit, storage **out, tare_error *err) {
    const uint64_t most = limit != 0 ? limit : tare__machine_memory() / 2;
    return read_descriptor(STDIN_FILENO, "standard input", 0, most, out, err);
}

static tare_status load(const char *path, bool may_map, storage **out, tare_error *err) {
    if (strcmp(path, "-") == 0) return load_standard_input(0, out, err);
    // Without O_NONBLOCK, opening a pipe without a writer would block forever.
    const int file = tare__system()->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0) return fail_io(err, path, "open");
    const tare_status status = load_regular(file, path, may_map, out, err);
    tare__system()->close(file); // a mapping outlives its descriptor
    return status;
}

static tare_status hand_out(const char *path, bool may_map, storage **out,
                            const unsigned char **data, size_t *size, tare_error *err) {
    storage *store = NULL;
    TARE_TRY(load(path, may_map, &store, err));
    *out = store;
    *data = tare__storage_data(store);
    *size = tare__storage_size(store);
    return TARE_OK;
}

tare_status tare__file_map(const char *path, storage **out, const unsigned char **data,
                           size_t *size, tare_error *err) {
    return hand_out(path, true, out, data, size, err);
}

tare_status tare__file_read(const char *path, storage **out, const unsigned char **data,
                            size_t *size, tare_error *err) {
    return hand_out(path, false, out, data, size, err);
}

tare_status tare__standard_input_read(uint64_t limit, storage **out, const unsigned char **data,
                                      size_t *size, tare_error *err) {
    TARE_TRY(load_standard_input(limit, out, err));
    *data = tare__storage_data(*out);
    *size = tare__storage_size(*out);
    return TARE_OK;
}

bool tare__file_exists(const char *path) {
    return tare__system()->access(path, F_OK) == 0;
}

void tare__file_remove(const char *path) {
    (void)tare__system()->unlink(path);
}

const char *tare__folder_next(DIR *folder, tare_status *status, tare_error *err) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = tare__system()->readdir(folder);
        if (entry != NULL && entry->d_name[0] == '.') continue;
        if (entry != NULL) return entry->d_name;
        if (errno != 0) *status = fail_io(err, "the folder", "read on");
        return NULL;
    }
}

// --- names beside a path ---

enum { DIGITS = 16, BUFFER = 1 << 16 };
static const char temporary_mark[] = ".tmp-";

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

// The folder of `path`. It allocates nothing: a file that was renamed must not be reported as a
// failure because memory ran out.
static bool folder_of(const char *path, char out[PATH_MAX]) {
    const size_t length = (size_t)(base_of(path) - path);
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out, length > 0 ? path : ".", length > 0 ? length : 1);
    out[length > 0 ? length : 1] = '\0';
    return true;
}

// PATH.tmp-0123456789abcdef. A file name has at most NAME_MAX bytes: a long one is cut.
static size_t stem_length(const char *path) {
    const size_t length = strlen(base_of(path)), most = NAME_MAX - sizeof temporary_mark - DIGITS;
    return length < most ? length : most;
}

static bool is_stale_name(const char *name, const char *stem, size_t length, const char *before,
                          const char *after) {
    const size_t mark = strlen(before);
    if (strncmp(name, stem, length) != 0 || strncmp(name + length, before, mark) != 0) return false;
    const char *digits = name + length + mark;
    return strspn(digits, "0123456789abcdef") == DIGITS && strcmp(digits + DIGITS, after) == 0;
}

// Removes a file that is not locked. A writer locks its file after creating it, and then checks
// that it still exists.
static void remove_unlocked(const char *path) {
    struct stat info;
    const system_calls *system = tare__system();
    if (system->lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) return;
    const int file =
        system->open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0) return;
    if (system->flock(file, LOCK_EX | LOCK_NB) == 0) (void)system->unlink(path);
    system->close(file);
}

static void remove_stale(const char *path, size_t length, const char *before, const char *after,
                         const char *kept) {
    char folder[PATH_MAX];
    DIR *entries = folder_of(path, folder) ? tare__system()->opendir(folder) : NULL;
    text name = {0};
    for (const struct dirent *e; entries != NULL && (e = tare__system()->readdir(entries));) {
        if (!is_stale_name(e->d_name, base_of(path), length, before, after)) continue;
        if (kept != NULL && strcmp(e->d_name, base_of(kept)) == 0) continue;
        tare__text_clear(&name);
        tare__text_printf(&name, "%.*s%s", (int)(base_of(path) - path), path, e->d_name);
        if (tare__text_status(&name, NULL) == TARE_OK) remove_unlocked(tare__text_chars(&name));
    }
    if (entries != NULL) tare__system()->closedir(entries);
    tare__text_release(&name);
}

void tare__file_remove_stale(const char *path, const char *before, const char *after,
                             const char *kept) {
    remove_stale(path, strlen(base_of(path)), before, after, kept);
}

// --- folders ---

static int open_folder_of(const char *path) {
    char folder[PATH_MAX];
    if (!folder_of(path, folder)) return -1;
    return tare__system()->open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY, 0);
}

// Waits for the lock. False if the file system has no locks.
static bool lock(int file) {
    int failed = 0;
    do failed = tare__system()->flock(file, LOCK_EX);
    while (failed != 0 && errno == EINTR);
    return failed == 0;
}

int tare__file_lock_folder(const char *path) {
    const int folder = open_folder_of(path);
    if (folder < 0) return -1;
    if (lock(folder)) return folder;
    tare__system()->close(folder);
    return -1;
}

void tare__file_unlock_folder(int folder) {
    if (folder >= 0) tare__system()->close(folder);
}

// Without this, a power failure may undo a rename. A folder that cannot be opened cannot be
// flushed, and some file systems do not support it.
static tare_status flush_folder(int folder, const char *path, tare_error *err) {
    if (folder < 0 || tare__system()->fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP)
        return TARE_OK;
    return fail_io(err, path, "bring the finished file's name to the disk");
}

// --- writing ---

static bool is_there_and_locked(int file) {
    struct stat info;
    (void)lock(file); // without locks, no process removes another one's files
    return tare__system()->fstat(file, &info) != 0 || info.st_nlink > 0;
}

// Creates a new file beside `path`. O_EXCL does not open existing files or links. open applies the
// user's umask to 0666, which mkstemp would not.
static tare_status open_beside(file_writer *w, tare_error *err) {
    const system_calls *system = tare__system();
    const size_t kept = (size_t)(base_of(w->path) - w->path) + stem_length(w->path);
    const size_t size = kept + sizeof temporary_mark + DIGITS;
    char *name = tare__alloc(size);
    uint64_t number = 0;
    if (name == NULL) return tare__out_of_memory(err);
    for (int attempt = 0; attempt < 100; attempt++) {
        if (system->getentropy(&number, sizeof number) != 0) break;
        snprintf(name, size, "%.*s%s%016llx", (int)kept, w->path, temporary_mark,
                 (unsigned long long)number);
        w->file = system->open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (w->file < 0 && errno != EEXIST) break;
        if (w->file >= 0 && is_there_and_locked(w->file)) {
            w->temporary = name;
            return TARE_OK;
        }
        if (w->file >= 0) system->close(w->file);
        w->file = -1;
    }
    const tare_status status = fail_io(err, w->path, "create");
    tare__free(name);
    return status;
}

// In /tmp and similar folders others may create a link with the name that is about to be written.
static tare_status check_link(const char *path, tare_error *err) {
    struct stat link, folder;
    const system_calls *system = tare__system();
    if (system->lstat(path, &link) != 0 || !S_ISLNK(link.st_mode)) return TARE_OK;
    char name[PATH_MAX];
    if (!folder_of(path, name) || system->stat(name, &folder) != 0)
        return fail_io(err, path, "examine the folder");
    if ((folder.st_mode & S_IWOTH) == 0 || link.st_uid == geteuid() || link.st_uid == folder.st_uid)
        return TARE_OK;
    tare__fail(err, TARE_IO,
               "expected a file to write, found another user's symbolic link in a "
               "folder that everybody may write to");
    tare__hint(err, TARE_IO, "write to a folder of your own, or remove the link");
    return tare__at(err, TARE_IO, "%s", path);
}

static tare_status begin_temporary(file_writer *w, const struct stat *old, tare_error *err) {
    remove_stale(w->path, stem_length(w->path), temporary_mark, "", NULL);
    TARE_TRY(open_beside(w, err));
    if (old != NULL) // if the file system permits it
        (void)tare__system()->fchmod(w->file, old->st_mode & 0777);
    return TARE_OK;
}

// A new or regular file at `path` is written beside it and renamed; a device or pipe is written
// directly.
static tare_status begin_path(file_writer *w, const char *path, tare_error *err) {
    struct stat info;
    char resolved[PATH_MAX];
    TARE_TRY(check_link(path, err));
    const bool exists = tare__system()->stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        tare__fail(err, TARE_IO, "expected a file to write, found a directory");
        return tare__at(err, TARE_IO, "%s", path);
    }
    const bool is_resolved = exists && tare__system()->realpath(path, resolved) != NULL;
    w->path = tare__strdup(is_resolved ? resolved : path);
    if (w->path == NULL) return tare__out_of_memory(err);
    if (!exists || S_ISREG(info.st_mode)) return begin_temporary(w, exists ? &info : NULL, err);
    w->file = tare__system()->open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0);
    return w->file >= 0 ? TARE_OK : fail_io(err, path, "open");
}

static tare_status begin(file_writer *w, const char *path, tare_error *err) {
    w->buffer = tare__alloc(BUFFER);
    if (w->buffer == NULL) return tare__out_of_memory(err);
    if (strcmp(path, "-") != 0) return begin_path(w, path, err);
    (void)fflush(stdout); // earlier output comes first
    w->file = STDOUT_FILENO;
    w->path = tare__strdup("standard output");
    return w->path != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__file_begin(file_writer *w, const char *path, tare_error *err) {
    *w = (file_writer){.file = -1};
    const tare_status status = begin(w, path, err);
    if (status != TARE_OK) tare__file_abort(w);
    return status;
}

static tare_status put(file_writer *w, const unsigned char *data, size_t size, tare_error *err) {
    while (size > 0) {
        const ssize_t count = tare__system()->write(w->file, data, size);
        if (count < 0 && errno != EINTR) return fail_io(err, w->path, "write");
        if (count <= 0) continue;
        data += count;
        size -= (size_t)count;
    }
    return TARE_OK;
}

static tare_status put_buffer(file_writer *w, tare_error *err) {
    const size_t used = w->used;
    w->used = 0;
    return put(w, w->buffer, used, err);
}

tare_status tare__file_write(file_writer *w, const void *data, size_t size, tare_error *err) {
    if (size == 0) return TARE_OK;
    if (size > BUFFER - w->used) TARE_TRY(put_buffer(w, err));
    if (size > BUFFER) return put(w, data, size, err);
    memcpy(w->buffer + w->used, data, size);
    w->used += size;
    return TARE_OK;
}

tare_status tare__file_flush(file_writer *w, tare_error *err) {
    TARE_TRY(put_buffer(w, err));
    // If a mapped file lost bytes, the output computed from them is invalid.
    TARE_TRY(tare__mapping_check(err));
    if (w->temporary == NULL || tare__system()->fsync(w->file) == 0) return TARE_OK;
    return fail_io(err, w->path, "bring to the disk");
}

tare_status tare__file_place(file_writer *w, const char *path, tare_error *err) {
    if (path == NULL) path = w->path;
    if (w->temporary == NULL) return TARE_OK;
    // Opened before the rename, because a failure afterwards would leave a file that exists.
    const int folder = open_folder_of(path);
    if (folder < 0 && errno != EACCES)
        return fail_io(err, path, "open the folder of the finished file");
    tare_status status = TARE_OK;
    if (tare__system()->rename(w->temporary, path) != 0) {
        status = fail_io(err, path, "rename into place");
    } else {
        tare__free(w->temporary);
        w->temporary = NULL;
        status = flush_folder(folder, path, err);
    }
    if (folder >= 0) tare__system()->close(folder);
    return status;
}

tare_status tare__file_commit(file_writer *w, tare_error *err) {
    const bool is_in_place = w->temporary == NULL;
    tare_status status = tare__file_flush(w, err);
    if (status == TARE_OK) status = tare__file_place(w, NULL, err);
    // Some systems report only now that data could not be written.
    if (status == TARE_OK && is_in_place && w->file > STDOUT_FILENO) {
        if (tare__system()->close(w->file) != 0) status = fail_io(err, w->path, "close");
        w->file = -1;
    }
    tare__file_abort(w); // removes the temporary file after a failure
    return status;
}

void tare__file_abort(file_writer *w) {
    if (w->temporary != NULL) (void)tare__system()->unlink(w->temporary);
    if (w->file > STDOUT_FILENO) tare__system()->close(w->file);
    tare__free(w->temporary);
    tare__free(w->path);
    tare__free(w->buffer);
    *w = (file_writer){.file = -1};
}

// --- for programs ---

struct tare_file {
    file_writer writer;
};

static tare_status prepare(const char *path, const void *bytes, size_t size, file_writer *w,
                           tare_error *err) {
    TARE_TRY(tare__file_begin(w, path, err));
    TARE_TRY(tare__file_write(w, bytes, size, err));
    // If nothing will be renamed, data that fits the buffer stays there.
    return w->temporary != NULL ? tare__file_flush(w, err) : TARE_OK;
}

tare_status tare_file_prepare(const char *path, const void *bytes, size_t size, tare_file **out,
                              tare_error *err) {
    tare_file *file = tare__alloc_zeroed(1, sizeof *file);
    if (file == NULL) return tare__out_of_memory(err);
    const tare_status status = prepare(path, bytes, size, &file->writer, err);
    if (status == TARE_OK)
        *out = file;
    else
        tare_file_discard(file);
    return status;
}

tare_status tare_file_place(tare_file *file, tare_error *err) {
    file_writer *w = &file->writer;
    const tare_status status =
        w->temporary != NULL ? tare__file_place(w, NULL, err) : tare__file_commit(w, err);
    tare_file_discard(file);
    return status;
}

void tare_file_discard(tare_file *file) {
    if (file == NULL) return;
    tare__file_abort(&file->writer);
    tare__free(file);
}

tare_status tare_file_write(const char *path, const void *bytes, size_t size, tare_error *err) {
    tare_file *file = NULL;
    TARE_TRY(tare_file_prepare(path, bytes, size, &file, err));
    return tare_file_place(file, err);
}
