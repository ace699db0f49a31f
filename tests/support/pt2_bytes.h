// SPDX-License-Identifier: Apache-2.0
// A small program of torch.export as bytes, whole and changed: tied weights, a transposed record,
// a batch that is open, a split in two and a buffer that is written.
#ifndef SUPPORT_PT2_BYTES_H
#define SUPPORT_PT2_BYTES_H

#include "ir/module.h"
#include "replay/zip_memory.h"

typedef struct pt2_member {
    const char *name;
    const void *bytes;
    size_t size;
    int method;
} pt2_member;
#define PT2_TEXT(name, chars)                                                                      \
    { name, chars, sizeof(chars) - 1, 0 }

enum { PT2_FORMAT, PT2_PROGRAM, PT2_WEIGHTS, PT2_WEIGHT_0, PT2_WEIGHT_1, PT2_MEMBERS };
extern const pt2_member pt2_plain[PT2_MEMBERS];

zip_memory pt2_pack(const pt2_member *members, size_t count); // data: tare__free
tare_status pt2_read_bytes(const zip_memory *bytes, module **out, tare_error *err);
/// The bytes are refused, the error's place or message holds these words, and it has a hint.
void pt2_check_refused(const zip_memory *bytes, const char *words);
void pt2_check_refused_members(const pt2_member *members, size_t count, const char *words);
/// The plain archive with `old` replaced by `new` in one member is refused.
void pt2_check_changed(int which, const char *old, const char *new, const char *words);

#endif
