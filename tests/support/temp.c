// SPDX-License-Identifier: Apache-2.0
// Makes a folder below TMPDIR, writes and reads files in it, and removes it recursively.
#define _XOPEN_SOURCE 700 // mkdtemp, nftw

#include "support/temp.h"

#include <ftw.h>

#include "support/test.h"

static char folder[128];

bool temp_make_folder(const char *stem, char *path, size_t size) {
    const char *wanted = getenv("TMPDIR");
    const char *above = wanted != NULL && wanted[0] == '/' ? wanted : "/tmp";
    const int length = snprintf(path, size, "%s/%s-XXXXXX", above, stem);
    return length > 0 && (size_t)length < size && mkdtemp(path) != NULL;
}

int temp_make(void **state) {
    (void)state;
    return temp_make_folder("tare-test", folder, sizeof folder) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

int temp_remove(void **state) {
    (void)state;
    return nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *temp_folder(void) {
    return folder;
}

const char *temp_path(const char *name) {
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void temp_write(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

unsigned char *temp_read(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}
