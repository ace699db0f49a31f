// SPDX-License-Identifier: Apache-2.0
// Any text as a declaration of preprocessing; what is taken survives being written and read.
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "io/images/preprocess.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *spec = tare__strndup((const char *)data, size);
    preprocess steps = {0}, again = {0};
    if (spec != NULL && tare__preprocess_from_text(spec, &steps, NULL) == TARE_OK) {
        text json = {0};
        tare__preprocess_to_json(&steps, &json);
        if (!json.failed &&
            (tare__preprocess_from_text(tare__text_chars(&json), &again, NULL) != TARE_OK ||
             !tare__preprocess_equal(&steps, &again)))
            abort();
        tare__text_release(&json);
    }
    tare__free(spec);
    return 0;
}
