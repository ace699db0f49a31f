// SPDX-License-Identifier: Apache-2.0
// Limits in bytes, and the messages for exceeding them.
#define _DEFAULT_SOURCE // _SC_PHYS_PAGES
#include "core/memory/budget.h"

#include <stdio.h>
#include <unistd.h>

// Arrays of zeros compress to a thousandth; real data rarely compresses to a sixteenth, and if it
// does it is small.
enum { TIMES_THE_FILE = 16 };
static const uint64_t least_for_files = (uint64_t)1 << 30;

uint64_t tare__machine_memory(void) {
#ifdef _SC_PHYS_PAGES
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0 && (uint64_t)pages <= UINT64_MAX / (uint64_t)page_bytes)
        return (uint64_t)pages * (uint64_t)page_bytes;
#endif
    return UINT64_MAX;
}

memory_budget tare__file_budget(uint64_t limit, uint64_t file_bytes) {
    if (limit != 0) return (memory_budget){.limit = limit};
    const uint64_t most = tare__machine_memory();
    const uint64_t wanted = file_bytes > most / TIMES_THE_FILE ? most : TIMES_THE_FILE * file_bytes;
    const uint64_t enough = wanted > least_for_files ? wanted : least_for_files;
    return (memory_budget){.limit = enough < most ? enough : most};
}

memory_budget tare__run_budget(uint64_t limit) {
    return (memory_budget){.limit = limit != 0 ? limit : tare__machine_memory()};
}

static uint64_t left(const memory_budget *b) {
    return b->used < b->limit ? b->limit - b->used : 0;
}

tare_status tare__budget_has(memory_budget *b, uint64_t bytes, bool *out, tare_error *err) {
    if (bytes > left(b) && b->recount != NULL) TARE_TRY(b->recount(b->user, &b->used, err));
    *out = bytes <= left(b);
    return TARE_OK;
}

tare_status tare__budget_take(memory_budget *b, uint64_t bytes, const char *what, tare_error *err) {
    char needed[BYTES_TEXT], used[BYTES_TEXT], limit[BYTES_TEXT];
    bool has_enough = false;
    TARE_TRY(tare__budget_has(b, bytes, &has_enough, err));
    if (has_enough) {
        b->used += bytes;
        return TARE_OK;
    }
    tare__fail(err, TARE_LIMIT_EXCEEDED,
               "%s would take %s of memory, with %s already in use; the limit is %s", what,
               tare__bytes_text(bytes, needed), tare__bytes_text(b->used, used),
               tare__bytes_text(b->limit, limit));
    return tare__budget_hint(err, TARE_LIMIT_EXCEEDED);
}

tare_status tare__budget_hint(tare_error *err, tare_status status) {
    return tare__hint(err, status,
                      "if this size is intended, raise the limit: memory_bytes in the library, "
                      "--max-memory on the command line");
}

const char *tare__bytes_text(uint64_t bytes, char out[BYTES_TEXT]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double)bytes / 1024;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) size /= 1024;
    if (bytes < 1024)
        (void)snprintf(out, BYTES_TEXT, "%u bytes", (unsigned)bytes);
    else
        (void)snprintf(out, BYTES_TEXT, "%.*f %s", size < 10 ? 1 : 0, size, units[unit]);
    return out;
}
