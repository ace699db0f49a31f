// SPDX-License-Identifier: Apache-2.0
// The files of cli/report/page/, compiled into the program (tools/embed.c).
#ifndef CLI_REPORT_TEMPLATE_H
#define CLI_REPORT_TEMPLATE_H

#include <stddef.h>

typedef struct embedded_file {
    const char *name;
    const unsigned char *data; // `size` bytes of UTF-8
    size_t size;
} embedded_file;

/// page.html, then the files that are inserted into it, in this order.
extern const embedded_file report_page_files[];
extern const size_t report_page_file_count;

#endif
