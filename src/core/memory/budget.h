// SPDX-License-Identifier: Apache-2.0
// How much memory a job may take for what others decide on: sizes that stand in files, shapes that
// follow from them.
#ifndef CORE_MEMORY_BUDGET_H
#define CORE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct memory_budget {
    uint64_t limit, used; // bytes
    /// Sets `used` to what is in use by now, where `used` counts what was given back, too. Asked
    /// when too little is left; NULL: `used` is right.
    tare_status (*recount)(void *user, uint64_t *used, tare_error *err);
    void *user;
} memory_budget;

/// Bytes of memory that the machine has; UINT64_MAX where it does not say.
uint64_t tare__machine_memory(void);

/// What reading a file of so many bytes may take. limit 0: 16 times these, at least 1 GiB, at most
/// the machine's memory.
memory_budget tare__file_budget(uint64_t limit, uint64_t file_bytes);
/// What results of a run may take. limit 0: the machine's memory.
memory_budget tare__run_budget(uint64_t limit);

/// Are so many bytes left?
tare_status tare__budget_has(memory_budget *b, uint64_t bytes, bool *out, tare_error *err);
/// Takes so many bytes. TARE_LIMIT_EXCEEDED, with nothing taken, where fewer are left: the message
/// says whose they are (`what`: "array 'x'"), how many, and the limit; the hint how to raise it.
tare_status tare__budget_take(memory_budget *b, uint64_t bytes, const char *what, tare_error *err);
/// The hint of such a failure. Returns its status argument.
tare_status tare__budget_hint(tare_error *err, tare_status status);

/// "1.9 GiB", "312 bytes".
#define BYTES_TEXT 32
const char *tare__bytes_text(uint64_t bytes, char out[BYTES_TEXT]);

#endif
