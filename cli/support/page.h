// SPDX-License-Identifier: Apache-2.0
// Text that is collected in memory until it is certain that it will be printed.
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdio.h>

#include "tare/status.h"

/// Zero-initialized: empty.
typedef struct page {
    FILE *stream;
    char *chars; // NUL-terminated once the page is closed
    size_t length;
} page;

tare_status page_open(page *p);
/// Ends the text. status: of writing it. TARE_OUT_OF_MEMORY if text is missing.
tare_status page_close(page *p, tare_status status);
void page_release(page *p);

#endif
