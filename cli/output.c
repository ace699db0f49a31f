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
    const size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = malloc(size);
    if (path != NULL) (void)snprintf(path, size, "%s/%s%s", folder, name, ending);
    return path;
}

static void release(output_file *out) {
    free(out->path);
    free(out->temporary);
    *out = (output_file){0};
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
