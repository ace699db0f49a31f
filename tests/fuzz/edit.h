// SPDX-License-Identifier: Apache-2.0
// Edits of files that stay files of their format, for mutators: trees of JSON, messages of ONNX.
#ifndef FUZZ_EDIT_H
#define FUZZ_EDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/text.h"

enum { MOST_PLACES = 1 << 16, MOST_EDITS = 4 };

/// The numbers that edits are drawn by: a mutator's seed.
typedef struct edit_random {
    uint64_t state;
} edit_random;

edit_random edit_seed(unsigned seed);
/// A number below `below`; 0 for 0.
size_t edit_choose(edit_random *r, size_t below);

/// Changes a few places of a tree: values go, come twice, change places, keys and kinds.
void edit_json(edit_random *r, json_t *root);
/// The same of text that is JSON; what it is now goes to `out`. False: it is none.
bool edit_json_text(edit_random *r, const char *chars, size_t size, text *out);
/// The same of a packed ONNX model.
bool edit_onnx(edit_random *r, const uint8_t *bytes, size_t size, text *out);

#endif
