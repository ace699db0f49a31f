// SPDX-License-Identifier: Apache-2.0
// Feeds saved inputs to a fuzzer's entry point where libFuzzer is not linked.
// usage: fuzz_NAME FOLDER|FILE..   Folders are read one level deep.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed_open_file(FILE *file, size_t size) {
    // Exactly as large as the input, so that a sanitizer sees a read past its end.
    uint8_t *data = malloc(size ? size : 1);
    if (!data) return -1;
    const int failed = fread(data, 1, size, file) != size;
    if (!failed) LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed ? -1 : 0;
}

static int feed_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    const int status = feed_open_file(file, size);
    fclose(file);
    return status;
}

// Returns how many inputs were fed, -1 when one could not be read.
static int feed(const char *path);

static int feed_folder(const char *path, DIR *folder) {
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        char inner[4096];
        const int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof inner) return -1;
        const int fed = feed(inner);
        if (fed < 0) return -1;
        count += fed;
    }
    return count;
}

static int feed(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return -1;
    if (!S_ISDIR(info.st_mode)) return feed_file(path, (size_t)info.st_size) == 0 ? 1 : -1;
    DIR *folder = opendir(path);
    if (!folder) return -1;
    const int count = feed_folder(path, folder);
    closedir(folder);
    return count;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const int fed = feed(argv[i]);
        if (fed < 0) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 1;
        }
        count += fed;
    }
    // An empty corpus would pass whatever the reader does.
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
