// SPDX-License-Identifier: Apache-2.0
// Levels of instruction sets, lowest first. Every kernel row names the level that it needs.
#ifndef RUNTIME_ISA_H
#define RUNTIME_ISA_H

#include "core/error.h"

typedef enum isa_level {
    ISA_SCALAR,     // plain C
    ISA_AVX2,       // AVX2 and FMA
    ISA_AVX512VNNI, // AVX-512 F, BW, DQ, VL and VNNI
    ISA_LEVEL_COUNT,
} isa_level;

const char *tare__isa_level_name(isa_level level); // "scalar"

/// The highest level that this build, the CPU and the operating system (which must save the wide
/// registers) all have.
isa_level tare__isa_detect(void);

/// The level in use: the detected one, or the lower one that TARE_ISA in the environment names.
/// TARE_INVALID_ARGUMENT if that is no level or one that this machine lacks.
tare_status tare__isa_choose(isa_level *out, tare_error *err);

#endif
