// SPDX-License-Identifier: Apache-2.0
#include "options/floats.h"

#include <string.h>

#include "support/report.h"

bool read_float_type(const char *where, const char *text, bool *is_bf16) {
    *is_bf16 = text != NULL && strcmp(text, "bf16") == 0;
    if (text == NULL || *is_bf16 || strcmp(text, "f32") == 0) return true;
    (void)wrong_usage(where, NULL, "--float: expected f32 or bf16, found '%s'", text);
    return false;
}
