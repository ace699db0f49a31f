// SPDX-License-Identifier: Apache-2.0
// Levels of instruction sets, lowest first. Every kernel row states the level that it needs. A
// machine with a level also has all lower levels of its architecture.
#ifndef RUNTIME_KERNELS_ISA_H
#define RUNTIME_KERNELS_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

typedef enum isa_level {
    ISA_SCALAR, // plain C
    // x86
    ISA_AVX2 = 1,       // AVX2 and FMA
    ISA_AVXVNNI = 2,    // and dot products of bytes in 256-bit registers
    ISA_AVX512VNNI = 3, // AVX-512 F, BW, DQ, VL and VNNI
    ISA_AMXINT8 = 4,    // and AMX's products of tiles of bytes
    // Arm, 64 bits
    ISA_NEON = 1,    // on every such CPU
    ISA_NEONDOT = 2, // dot products of signed bytes (+dotprod)
    ISA_I8MM = 3,    // and dot products of unsigned and signed bytes, and matrix products (+i8mm)
} isa_level;

const char *tare__isa_level_name(isa_level level); // "scalar"

/// The highest level that this build, the CPU and the operating system (which must save the wide
/// registers) all have. Linux is asked once to let this process use tiles, where there are any.
isa_level tare__isa_detect(void);

/// True if the CPU can permute bytes with tables of 128 (AVX-512 VBMI), which no level includes.
bool tare__isa_permutes_bytes(void);

/// Has the CPU products of signed bytes by signed ones (AVX-VNNI-INT8), which its level does not
/// promise?
bool tare__isa_multiplies_signed(void);

/// The level in use: the detected one, or the lower one that TARE_ISA in the environment names.
/// TARE_INVALID_ARGUMENT if that is no level or one that this machine lacks.
tare_status tare__isa_choose(isa_level *out, tare_error *err);

/// The level that a kernel without tiles has at this one.
static inline isa_level tare__isa_without_tiles(isa_level isa) {
    return isa == ISA_AMXINT8 ? ISA_AVX512VNNI : isa;
}

/// What a row of a kernel table requires of the CPU.
typedef struct kernel_needs {
    isa_level level;
    bool (*has)(void); // beyond the level; NULL: nothing
} kernel_needs;

/// True if a kernel with these requirements can run at this level.
bool tare__kernel_suits(const kernel_needs *needs, isa_level isa);
/// The first row of a table, sorted fastest first, that can run. Rows have row_bytes and begin with
/// their requirements; the last one has none.
const void *tare__kernel_choose(const void *rows, size_t row_bytes, isa_level isa);

#if defined(__x86_64__) || defined(__i386__)
/// The instructions of avxvnni have two encodings: that of AVX-512 (VL), which all CPUs of the next
/// level have, and that of AVX-VNNI, for CPUs without AVX-512.
static inline bool tare__isa_has_avx512_encoding(void) {
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

#endif
