// SPDX-License-Identifier: Apache-2.0
// Copies a file's bytes when it is flushed; at the cut, the folder gets these copies.
#define _XOPEN_SOURCE 700 // stat
#include "faults/disk.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/system.h"

enum { MOST_ENTRIES = 256, LONGEST = 512 };

// What the disk has of a file: the bytes of the last time it was told to keep them.
typedef struct durable_file {
    ino_t number;
    char *bytes;
    size_t size;
} durable_file;

typedef struct durable_name {
    char path[LONGEST];
    ino_t number;
} durable_name;

static struct {
    char folder[LONGEST];
    disk_loss loss;
    long at, changes;
    durable_file files[MOST_ENTRIES];
    durable_name names[MOST_ENTRIES];
    size_t file_count, name_count;
} disk;

// --- what is on the disk ---

static durable_file *file_of(ino_t number) {
    for (size_t i = 0; i < disk.file_count; i++)
        if (disk.files[i].number == number) return &disk.files[i];
    if (disk.file_count == MOST_ENTRIES) abort();
    durable_file *f = &disk.files[disk.file_count++];
    *f = (durable_file){.number = number};
    return f;
}

static void keep_bytes(const char *path, ino_t number) {
    durable_file *f = file_of(number);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) abort();
    free(f->bytes);
    f->bytes = malloc(1 << 22);
    if (f->bytes == NULL) abort();
    f->size = fread(f->bytes, 1, 1 << 22, stream);
    fclose(stream);
}

static void each_file(const char *folder,
                      void (*visit)(const char *path, const struct stat *info)) {
    DIR *d = opendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[LONGEST];
        struct stat info;
        const int length = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (length < 0 || (size_t)length >= sizeof path) abort();
        if (e->d_name[0] == '.' || lstat(path, &info) != 0) continue;
        if (S_ISREG(info.st_mode)) visit(path, &info);
    }
    if (d != NULL) closedir(d);
}

static void keep_name(const char *path, const struct stat *info) {
    if (disk.name_count == MOST_ENTRIES) abort();
    durable_name *n = &disk.names[disk.name_count++];
    strcpy(n->path, path);
    n->number = info->st_ino;
}

static bool lies_in(const char *path, const char *folder) {
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' &&
           strchr(path + length + 1, '/') == NULL;
}

static void keep_names(const char *folder) {
    size_t kept = 0;
    for (size_t i = 0; i < disk.name_count; i++)
        if (!lies_in(disk.names[i].path, folder)) disk.names[kept++] = disk.names[i];
    disk.name_count = kept;
    each_file(folder, keep_name);
}

// --- the cut ---

static void write_bytes(const char *path, const durable_file *f) {
    FILE *stream = fopen(path, "wb");
    if (stream == NULL || fwrite(f->size > 0 ? f->bytes : "", 1, f->size, stream) != f->size ||
        fclose(stream) != 0)
        abort();
}

static void lose_bytes(const char *path, const struct stat *info) {
    write_bytes(path, file_of(info->st_ino));
}

static void lose_name(const char *path, const struct stat *info) {
    (void)info;
    if (unlink(path) != 0) abort();
}

static void in_all_folders(void (*visit)(const char *path, const struct stat *info)) {
    DIR *d = opendir(disk.folder);
    each_file(disk.folder, visit);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[LONGEST];
        struct stat info;
        const int length = snprintf(path, sizeof path, "%s/%s", disk.folder, e->d_name);
        if (length < 0 || (size_t)length >= sizeof path) abort();
        if (e->d_name[0] != '.' && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            each_file(path, visit);
    }
    if (d != NULL) closedir(d);
}

static void cut(void) {
    if (disk.loss == DISK_NAMES_KEPT) in_all_folders(lose_bytes);
    if (disk.loss == DISK_NAMES_LOST) {
        in_all_folders(lose_name);
        for (size_t i = 0; i < disk.name_count; i++)
            write_bytes(disk.names[i].path, file_of(disk.names[i].number));
    }
    _exit(DISK_CUT_STATUS);
}

static void before_change(void) {
    if (++disk.changes == disk.at) cut();
}

// --- calls ---

static bool is_of_disk(const char *path) {
    return strncmp(path, disk.folder, strlen(disk.folder)) == 0;
}

static int open_on_disk(const char *path, int flags, mode_t mode) {
    struct stat info;
    const bool makes = (flags & O_CREAT) != 0 && is_of_disk(path);
    if (makes) before_change();
    const int file = tare__system_own.open(path, flags, mode);
    // The number may be one of a file that is gone.
    if (makes && file >= 0 && fstat(file, &info) == 0) file_of(info.st_ino)->size = 0;
    return file;
}

static ssize_t write_to_disk(int file, const void *bytes, size_t size) {
    if (file > STDERR_FILENO) before_change();
    return tare__system_own.write(file, bytes, size);
}

static int bring_to_disk(int file) {
    char link[64], path[LONGEST];
    struct stat info;
    before_change();
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || fstat(file, &info) != 0) abort();
    path[length] = '\0';
    if (S_ISDIR(info.st_mode))
        keep_names(path);
    else
        keep_bytes(path, info.st_ino);
    return tare__system_own.fsync(file);
}

static int rename_on_disk(const char *from, const char *to) {
    before_change();
    return tare__system_own.rename(from, to);
}

static int unlink_on_disk(const char *path) {
    before_change();
    return tare__system_own.unlink(path);
}

static void keep_all(const char *path, const struct stat *info) {
    keep_name(path, info);
    keep_bytes(path, info->st_ino);
}

void disk_begin(const char *folder, disk_loss loss, long at) {
    static system_calls calls;
    memset(&disk, 0, sizeof disk);
    strcpy(disk.folder, folder);
    disk.loss = loss;
    disk.at = at;
    in_all_folders(keep_all);
    calls = tare__system_own;
    calls.open = open_on_disk;
    calls.write = write_to_disk;
    calls.fsync = bring_to_disk;
    calls.rename = rename_on_disk;
    calls.unlink = unlink_on_disk;
    tare__system_replace(&calls);
}
