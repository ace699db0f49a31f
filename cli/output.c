// SPDX-License-Identifier: Apache-2.0
// Files that a command writes itself.
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

static char *join(const char *folder, const char *name, const char *ending) {
    const char *slash = folder != NULL ? "/" : "";
    if (folder == NULL) folder = "";
    const size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = malloc(size);
    if (path != NULL) (void)snprintf(path, size, "%s%s%s%s", folder, slash, name, ending);
    return path;
}

static void release(output_file *out) {
    free(out->path);
    free(out->temporary);
    *out = (output_file){0};
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_writable_folder(const char *path) {
    if (access(path, F_OK) == 0 && !is_folder(path)) {
        errno = ENOTDIR;
        return false;
    }
    return access(path, W_OK | X_OK) == 0;
}

/// Whether something can be made at `path`, by the folder that it would stand in.
static tare_status check_parent(const char *path) {
    char *folder = join(path, "", "");
    if (folder == NULL) return TARE_OUT_OF_MEMORY;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    folder[length] = '\0';
    const bool is_good = is_writable_folder(length > 0 ? folder : ".");
    free(folder);
    return is_good ? TARE_OK : fail_here(path, NULL, "cannot be made: %s", strerror(errno));
}

tare_status output_check(const char *path) {
    if (strcmp(path, "-") == 0) return TARE_OK;
    if (is_folder(path)) return fail_here(path, NULL, "expected a file to write, found a folder");
    return check_parent(path);
}

tare_status output_check_model(const char *path) {
    const char *ending = strrchr(path, '.');
    if (ending != NULL && (strcmp(ending, ".onnx") == 0 || strcmp(ending, ".pt2") == 0))
        return fail_here(path, "end it in .safetensors; tare export --to onnx and --to pt2 go on",
                         "what is written here is a file of tare's own");
    return output_check(path);
}

tare_status output_check_folder(const char *folder) {
    if (access(folder, F_OK) != 0) return check_parent(folder);
    if (is_writable_folder(folder)) return TARE_OK;
    return fail_here(folder, NULL, "cannot be written to: %s", strerror(errno));
}

tare_status output_make_folder(const char *folder) {
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) return TARE_OK;
    return fail_here(folder, NULL, "the folder cannot be made: %s", strerror(errno));
}

tare_status output_open(output_file *out, const char *folder, const char *name) {
    out->path = join(folder, name, "");
    out->temporary = join(folder, name, ".tmp");
    if (out->path == NULL || out->temporary == NULL) {
        release(out);
        return TARE_OUT_OF_MEMORY;
    }
    out->stream = fopen(out->temporary, "w");
    if (out->stream != NULL) return TARE_OK;
    (void)fail_here(out->path, NULL, "the file cannot be made: %s", strerror(errno));
    release(out);
    return TARE_IO;
}

tare_status output_close(output_file *out, tare_status status) {
    if (out->stream == NULL) return status;
    const bool was_written = !ferror(out->stream);
    if (fclose(out->stream) != 0 || !was_written || status != TARE_OK ||
        rename(out->temporary, out->path) != 0) {
        if (status == TARE_OK) {
            (void)fail_here(out->path, NULL, "writing failed: %s", strerror(errno));
            status = TARE_IO;
        }
        (void)unlink(out->temporary);
    }
    release(out);
    return status;
}

void output_remove(const char *folder, const char *name) {
    char *path = join(folder, name, "");
    if (path != NULL) (void)unlink(path);
    free(path);
}
