// SPDX-License-Identifier: Apache-2.0
// Bytes as choices of a graph, and of how it is quantized: every form of it gives the same bits
// however it runs and wherever it was stored.
#include <stdio.h>
#include <stdlib.h>

#include "support/differential/differential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    text finding = {0};
    if (!differential_check(data, size, NULL, &finding)) {
        fputs(tare__text_chars(&finding), stderr);
        abort();
    }
    tare__text_release(&finding);
    return 0;
}
