// SPDX-License-Identifier: Apache-2.0
// Output files of commands.
#include "support/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/report.h"
#include "tare/file.h"
#include "tare/memory.h"

static char *join(const char *folder, const char *name) {
    const char *slash = folder != NULL ? "/" : "";
    if (folder == NULL) folder = "";
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = tare_memory_allocate(size, 1);
    if (path != NULL) (void)snprintf(path, size, "%s%s%s", folder, slash, name);
    return path;
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

/// Fails unless the folder of `path` permits creating it.
static tare_status check_parent(const char *path) {
    char *folder = join(NULL, path);
    if (folder == NULL) return TARE_OUT_OF_MEMORY;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    folder[length] = '\0';
    const bool is_good = is_writable_folder(length > 0 ? folder : ".");
    tare_memory_release(folder);
    return is_good ? TARE_OK
                   : fail_here(path, "name a place in a folder that can be written",
                               "cannot be made: %s", strerror(errno));
}

tare_status output_check(const char *path) {
    if (strcmp(path, "-") == 0) return TARE_OK;
    if (is_folder(path))
        return fail_here(path, "name a file in it", "expected a file to write, found a folder");
    return check_parent(path);
}

tare_status output_check_model(const char *path) {
    const char *ending = strrchr(path, '.');
    if (ending != NULL && (strcmp(ending, ".onnx") == 0 || strcmp(ending, ".pt2") == 0))
        return fail_here(path,
                         "use the extension .safetensors, and tare export: --to onnx takes every "
                         "model, --to pt2 "
                         "programs up to --stop reference",
                         "the file is written in tare's own format");
    return output_check(path);
}

tare_status output_check_folder(const char *folder) {
    if (access(folder, F_OK) != 0) return check_parent(folder);
    if (is_writable_folder(folder)) return TARE_OK;
    return fail_here(folder, "name a folder that can be written", "cannot be written to: %s",
                     strerror(errno));
}

tare_status output_make_folder(const char *folder) {
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) return TARE_OK;
    return fail_here(folder, "name a place in a folder that can be written",
                     "the folder cannot be made: %s", strerror(errno));
}

tare_status output_open(output_file *out, const char *folder, const char *name) {
    *out = (output_file){.path = join(folder, name)};
    if (out->path != NULL && page_open(&out->text) == TARE_OK) return TARE_OK;
    tare_memory_release(out->path);
    *out = (output_file){.path = NULL};
    return TARE_OUT_OF_MEMORY;
}

// Prints an I/O error of the library with fail_here. Returns `status`.
static tare_status tell(const output_file *out, tare_status status, const tare_error *err) {
    const char *hint = tare_error_hint(err);
    if (status == TARE_IO)
        (void)fail_here(out->path,
                        *hint != '\0'
                            ? hint
                            : "check the path, its permissions and the free space of the device",
                        "%s", tare_error_message(err));
    return status;
}

static tare_status prepare_text(output_file *out) {
    tare_error *err = tare_error_create();
    const tare_status status = tell(
        out, tare_file_prepare(out->path, out->text.chars, out->text.length, &out->prepared, err),
        err);
    tare_error_destroy(err);
    return status;
}

tare_status output_prepare(output_file *out, tare_status status) {
    if (out->text.stream == NULL) return status;
    status = page_close(&out->text, status);
    return status == TARE_OK ? prepare_text(out) : status;
}

tare_status output_place(output_file *out, tare_status status) {
    tare_error *err = tare_error_create(); // NULL is allowed, too
    if (out->prepared != NULL && status == TARE_OK)
        status = tell(out, tare_file_place(out->prepared, err), err);
    else
        tare_file_discard(out->prepared);
    tare_error_destroy(err);
    page_release(&out->text);
    tare_memory_release(out->path);
    *out = (output_file){.path = NULL};
    return status;
}

tare_status output_close(output_file *out, tare_status status) {
    return output_place(out, output_prepare(out, status));
}

bool output_temporary_path(const char *stem, const char *ending, char *out, size_t size) {
    const char *folder = getenv("TMPDIR");
    struct timespec now = {0};
    (void)timespec_get(&now, TIME_UTC);
    const int length = snprintf(out, size, "%s/tare-%s-%ld-%ld%s",
                                folder != NULL && folder[0] != '\0' ? folder : "/tmp", stem,
                                (long)getpid(), now.tv_nsec, ending);
    return length > 0 && (size_t)length < size && strchr(out, '\'') == NULL;
}

void output_remove(const char *path) {
    (void)unlink(path);
}
