// SPDX-License-Identifier: Apache-2.0
// Names of engines.
#include <string.h>

#include "tare/quantize.h"

static const char *const names[] = {[TARE_ENGINE_DEFAULT] = "x86",
                                    [TARE_ENGINE_X86] = "x86",
                                    [TARE_ENGINE_FBGEMM] = "fbgemm",
                                    [TARE_ENGINE_QNNPACK] = "qnnpack",
                                    [TARE_ENGINE_ONEDNN] = "onednn"};

const char *tare_engine_name(tare_engine engine) {
    const size_t index = (size_t)engine; // may be any number
    return index < sizeof names / sizeof *names ? names[index] : "";
}

tare_engine tare_engine_from_name(const char *name) {
    for (size_t i = TARE_ENGINE_X86; i <= TARE_ENGINE_ONEDNN; i++)
        if (strcmp(name, names[i]) == 0) return (tare_engine)i;
    return strcmp(name, "native") == 0 ? TARE_ENGINE_X86 : TARE_ENGINE_DEFAULT;
}
