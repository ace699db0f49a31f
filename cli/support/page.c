// SPDX-License-Identifier: Apache-2.0
// A page of text: collected in memory and printed at once.
#define _XOPEN_SOURCE 700 // open_memstream
#include "support/page.h"

#include <stdbool.h>
#include <stdlib.h>

tare_status page_open(page *p) {
    *p = (page){.stream = open_memstream(&p->chars, &p->length)};
    return p->stream != NULL ? TARE_OK : TARE_OUT_OF_MEMORY;
}

tare_status page_close(page *p, tare_status status) {
    // Such a stream fails only if memory ran out, whatever its writer reports afterwards.
    const bool is_whole = fflush(p->stream) == 0 && !ferror(p->stream);
    const bool is_closed = fclose(p->stream) == 0;
    p->stream = NULL;
    return is_whole && is_closed ? status : TARE_OUT_OF_MEMORY;
}

void page_release(page *p) {
    if (p->stream != NULL) (void)fclose(p->stream);
    free(p->chars);
    *p = (page){.chars = NULL};
}
