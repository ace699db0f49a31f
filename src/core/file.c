// SPDX-License-Identifier: Apache-2.0
// Files: mapped in; written beside their final name and renamed when complete.
#define _DEFAULT_SOURCE     // madvise
#define _XOPEN_SOURCE   700 // realpath, fchmod, mmap

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

static tare_status fail_io(tare_error *err, const char *path, const char *verb) {
    const int reason = errno;
    char text[128];
    if (strerror_r(reason, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", reason);
    const tare_status status = reason == ENOMEM ? TARE_OUT_OF_MEMORY : TARE_IO;
    tare__fail(err, status, "cannot %s: %s", verb, text);
    return tare__at(err, status, "%s", path);
}

// --- in ---

typedef struct mapping {
    void *address;
    size_t size;
} mapping;

static void unmap(void *owner) {
    mapping *m = owner;
    munmap(m->address, m->size);
    tare__free(m);
}

// Whole pages only: their neighbours may be in use.
static void forget(void *data, size_t size) {
    const long page_size = sysconf(_SC_PAGESIZE);
    if (page_size <= 0) return;
    const uintptr_t page = (uintptr_t)page_size, address = (uintptr_t)data;
    const uintptr_t first = (address + page - 1) / page * page,
                    end = (address + size) / page * page;
    if (first < end) (void)madvise((char *)data + (first - address), end - first, MADV_DONTNEED);
}

static tare_status map_descriptor(int descriptor, const char *path, size_t size, storage **out,
                                  tare_error *err) {
    mapping *m = tare__alloc(sizeof *m);
    if (!m) return tare__out_of_memory(err);
    m->size = size;
    m->address = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (m->address == MAP_FAILED) {
        tare__free(m);
        return fail_io(err, path, "map");
    }
    *out = tare__storage_adopt(m->address, size, m, unmap);
    if (*out) {
        tare__storage_set_forget(*out, forget);
        return TARE_OK;
    }
    unmap(m);
    return tare__out_of_memory(err);
}

static tare_status map_regular(int descriptor, const char *path, storage **out, tare_error *err) {
    struct stat info;
    if (fstat(descriptor, &info) != 0) return fail_io(err, path, "examine");
    if (S_ISDIR(info.st_mode) || !S_ISREG(info.st_mode)) {
        const bool directory = S_ISDIR(info.st_mode);
        tare__fail(err, TARE_IO, "expected a regular file, found %s",
                   directory ? "a directory" : "a device, pipe or socket");
        if (!directory) tare__hint(err, TARE_IO, "'-' reads from standard input");
        return tare__at(err, TARE_IO, "%s", path);
    }
    if (info.st_size > 0) return map_descriptor(descriptor, path, (size_t)info.st_size, out, err);
    *out = tare__storage_create(0); // there is nothing to map in an empty file
    return *out ? TARE_OK : tare__out_of_memory(err);
}

static tare_status read_all(FILE *stream, unsigned char **out, size_t *size, tare_error *err) {
    unsigned char *bytes = NULL;
    size_t used = 0, capacity = 0;
    do {
        if (used == capacity) {
            const size_t wanted = capacity ? capacity * 2 : (size_t)1 << 16;
            unsigned char *grown = wanted > capacity ? tare__realloc_array(bytes, wanted, 1) : NULL;
            if (!grown) {
                tare__free(bytes);
                return tare__out_of_memory(err);
            }
            bytes = grown;
            capacity = wanted;
        }
        used += fread(bytes + used, 1, capacity - used, stream);
    } while (!feof(stream) && !ferror(stream));
    if (ferror(stream)) {
        tare__free(bytes);
        return fail_io(err, "standard input", "read");
    }
    *out = bytes;
    *size = used;
    return TARE_OK;
}

static tare_status read_standard_input(storage **out, tare_error *err) {
    unsigned char *bytes = NULL;
    size_t size = 0;
    TARE_TRY(read_all(stdin, &bytes, &size, err));
    *out = tare__storage_adopt(bytes, size, bytes, tare__free);
    if (*out) return TARE_OK;
    tare__free(bytes);
    return tare__out_of_memory(err);
}

static tare_status open_and_map(const char *path, storage **out, tare_error *err) {
    // Without O_NONBLOCK the open of a pipe that nobody writes to would wait for ever.
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return fail_io(err, path, "open");
    const tare_status status = map_regular(descriptor, path, out, err);
    close(descriptor); // a mapping outlives its descriptor
    return status;
}

tare_status tare__file_map(const char *path, storage **out, const unsigned char **data,
                           size_t *size, tare_error *err) {
    storage *store = NULL;
    TARE_TRY(strcmp(path, "-") == 0 ? read_standard_input(&store, err)
                                    : open_and_map(path, &store, err));
    *out = store;
    *data = tare__storage_data(store);
    *size = tare__storage_size(store);
    return TARE_OK;
}

// --- out ---

// A new file beside `path`. open applies the user's umask to 0666, which mkstemp would not, and
// O_EXCL keeps out of anything that is there.
static tare_status open_beside(const char *path, char **temporary, int *descriptor,
                               tare_error *err) {
    const size_t size = strlen(path) + 40;
    char *name = tare__alloc(size);
    if (!name) return tare__out_of_memory(err);
    for (unsigned attempt = 0; attempt < 1000; attempt++) {
        snprintf(name, size, "%s.tmp-%ld-%u", path, (long)getpid(), attempt);
        *descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*descriptor >= 0) {
            *temporary = name;
            return TARE_OK;
        }
        if (errno != EEXIST) break;
    }
    const tare_status status = fail_io(err, path, "create");
    tare__free(name);
    return status;
}

static tare_status begin_temporary(file_writer *w, const struct stat *old, tare_error *err) {
    int descriptor = -1;
    TARE_TRY(open_beside(w->path, &w->temporary, &descriptor, err));
    if (old) (void)fchmod(descriptor, old->st_mode & 0777); // as far as the file system goes along
    w->stream = fdopen(descriptor, "wb");
    if (w->stream) return TARE_OK;
    const tare_status status = fail_io(err, w->path, "open");
    close(descriptor);
    return status;
}

// What the path leads to decides: a new or regular file is written beside and renamed; a symbolic
// link stays and its target is replaced; a device or pipe is written to as it is.
static tare_status begin_path(file_writer *w, const char *path, tare_error *err) {
    struct stat info;
    char resolved[PATH_MAX];
    const bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        tare__fail(err, TARE_IO, "expected a file to write, found a directory");
        return tare__at(err, TARE_IO, "%s", path);
    }
    w->path = tare__strdup(exists && realpath(path, resolved) ? resolved : path);
    if (!w->path) return tare__out_of_memory(err);
    if (!exists || S_ISREG(info.st_mode)) return begin_temporary(w, exists ? &info : NULL, err);
    w->stream = fopen(path, "wb");
    return w->stream ? TARE_OK : fail_io(err, path, "open");
}

bool tare__file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

tare_status tare__file_begin(file_writer *w, const char *path, tare_error *err) {
    *w = (file_writer){0};
    if (strcmp(path, "-") == 0) {
        w->stream = stdout;
        w->path = tare__strdup("standard output");
        return w->path ? TARE_OK : tare__out_of_memory(err);
    }
    const tare_status status = begin_path(w, path, err);
    if (status != TARE_OK) tare__file_abort(w);
    return status;
}

tare_status tare__file_write(file_writer *w, const void *data, size_t size, tare_error *err) {
    if (size == 0 || fwrite(data, 1, size, w->stream) == size) return TARE_OK;
    return fail_io(err, w->path, "write");
}

tare_status tare__file_commit(file_writer *w, tare_error *err) {
    tare_status status = TARE_OK;
    // A write that failed earlier shows only as the stream's error flag.
    const bool failed_before = ferror(w->stream) != 0;
    if (failed_before) errno = EIO;
    if (failed_before || fflush(w->stream) != 0) status = fail_io(err, w->path, "write");
    if (w->stream != stdout && fclose(w->stream) != 0 && status == TARE_OK)
        status = fail_io(err, w->path, "close");
    w->stream = NULL;
    if (status == TARE_OK && w->temporary && rename(w->temporary, w->path) != 0)
        status = fail_io(err, w->path, "rename into place");
    if (status == TARE_OK) {
        tare__free(w->temporary);
        w->temporary = NULL;
    }
    tare__file_abort(w); // removes the temporary file if something went wrong
    return status;
}

void tare__file_abort(file_writer *w) {
    if (w->stream && w->stream != stdout) fclose(w->stream);
    if (w->temporary) unlink(w->temporary);
    tare__free(w->temporary);
    tare__free(w->path);
    *w = (file_writer){0};
}
