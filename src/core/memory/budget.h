// SPDX-License-Identifier: Apache-2.0
// Limits on the memory of a job, for sizes that others determine: sizes in files, and shapes that
// follow from them.
#ifndef CORE_MEMORY_BUDGET_H
#define CORE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct memory_budget {
    uint64_t limit, used; // bytes
    /// Sets `used` to the current use, without memory that was released since. Called if too little
    /// is left; NULL: `used` is exact.
    tare_status (*recount)(void *user, uint64_t *used, tare_error *err);
    void *user;
} memory_budget;

/// The machine's memory in bytes; UINT64_MAX if unknown.
uint64_t tare__machine_memory(void);

/// The budget for reading a file of that size. limit 0: 16 times the size, at least 1 GiB, at most
/// the machine's memory.
memory_budget tare__file_budget(uint64_t limit, uint64_t file_bytes);
/// The budget for results of a run. limit 0: the machine's memory.
memory_budget tare__run_budget(uint64_t limit);

/// *out: this many bytes are left.
tare_status tare__budget_has(memory_budget *b, uint64_t bytes, bool *out, tare_error *err);
/// Takes bytes from the budget. TARE_LIMIT_EXCEEDED, with nothing taken, if fewer are left: the
/// message states what they are for (`what`: "array 'x'"), how many, and the limit; the hint says
/// how to raise it.
tare_status tare__budget_take(memory_budget *b, uint64_t bytes, const char *what, tare_error *err);
/// Sets the hint for such a failure. Returns its status argument.
tare_status tare__budget_hint(tare_error *err, tare_status status);

/// "1.9 GiB", "312 bytes".
#define BYTES_TEXT 32
const char *tare__bytes_text(uint64_t bytes, char out[BYTES_TEXT]);

#endif
