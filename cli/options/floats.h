// SPDX-License-Identifier: Apache-2.0
// The option --float: in what layers of floats are computed.
#ifndef CLI_FLOATS_H
#define CLI_FLOATS_H

#include "options/command.h"

/// text: "f32", "bf16", or NULL for the usual, float32. Otherwise prints what is wrong with the
/// usage of the command `where`, and returns false.
bool read_float_type(const char *where, const char *text, bool *is_bf16);

#define FLOAT_OPTION(field)                                                                        \
    {                                                                                              \
        "float", "f32|bf16", "round inputs and weights of float layers to bfloat16", (field),      \
            OPTION_TEXT, 0, false                                                                  \
    }

#endif
