// SPDX-License-Identifier: Apache-2.0
// Rewrites a tuner's file so that every choice of a kernel is the other one.
#include "support/tuning.h"

#include <stdlib.h>
#include <string.h>

#include "core/system/file.h"
#include "core/text/text.h"
#include "support/temp.h"
#include "support/test.h"

size_t oppose_choices(const char *path) {
    static const char key[] = "\"kernel\": \"";
    size_t size = 0, count = 0;
    text out = {0};
    if (!tare__file_exists(path)) return 0;
    unsigned char *read = temp_read(path, &size);
    char *bytes = malloc(size + 1), *at = bytes;
    assert_true(read != NULL && bytes != NULL);
    memcpy(bytes, read, size);
    bytes[size] = '\0';
    free(read);
    const char *end = bytes + size;
    for (char *found; (found = strstr(at, key)) != NULL; count++) {
        found += strlen(key);
        tare__text_append_n(&out, at, (size_t)(found - at));
        const bool library = strncmp(found, "library", 7) == 0;
        tare__text_append(&out, library ? "product" : "library");
        at = found + 7; // both words have seven letters
    }
    tare__text_append_n(&out, at, (size_t)(end - at));
    temp_write(path, tare__text_chars(&out), strlen(tare__text_chars(&out)));
    tare__text_release(&out);
    free(bytes);
    return count;
}
