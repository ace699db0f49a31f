// SPDX-License-Identifier: Apache-2.0
// Levels of instruction sets, lowest first. Every kernel row names the level that it needs. A
// machine of a level has all that are lower on the list of its architecture.
#ifndef RUNTIME_KERNELS_ISA_H
#define RUNTIME_KERNELS_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

typedef enum isa_level {
    ISA_SCALAR, // plain C
    // x86
    ISA_AVX2 = 1,       // AVX2 and FMA
    ISA_AVXVNNI = 2,    // and dot products of bytes in registers of 256 bits
    ISA_AVX512VNNI = 3, // AVX-512 F, BW, DQ, VL and VNNI
    ISA_AMXINT8 = 4,    // and AMX's products of tiles of bytes
    // Arm, 64 bits
    ISA_NEON = 1,    // what every such CPU has
    ISA_NEONDOT = 2, // dot products of signed bytes (+dotprod)
    ISA_I8MM = 3,    // and of unsigned with signed ones, and products of matrices (+i8mm)
} isa_level;

const char *tare__isa_level_name(isa_level level); // "scalar"

/// The highest level that this build, the CPU and the operating system (which must save the wide
/// registers) all have. Linux is asked once to let this process use tiles, where there are any.
isa_level tare__isa_detect(void);

/// Has the CPU instructions that permute bytes by tables of 128 (AVX-512 VBMI), which its level
/// does not promise?
bool tare__isa_permutes_bytes(void);

/// Has the CPU products of signed bytes by signed ones (AVX-VNNI-INT8), which its level does not
/// promise?
bool tare__isa_multiplies_signed(void);

/// The level in use: the detected one, or the lower one that TARE_ISA in the environment names.
/// TARE_INVALID_ARGUMENT if that is no level or one that this machine lacks.
tare_status tare__isa_choose(isa_level *out, tare_error *err);

/// What a row of a table of kernels asks of the CPU.
typedef struct kernel_needs {
    isa_level level;
    bool (*has)(void); // what the level does not promise; NULL: nothing
} kernel_needs;

/// May kernels that need this run where this level is in use?
bool tare__kernel_suits(const kernel_needs *needs, isa_level isa);
/// The first row of a table, which has the best ones first, that may. Rows are of row_bytes and
/// begin with their needs; the last one needs nothing.
const void *tare__kernel_choose(const void *rows, size_t row_bytes, isa_level isa);

#if defined(__x86_64__) || defined(__i386__)
/// The instructions of avxvnni have two encodings: AVX-512's (VL), which all CPUs of the level
/// above have, and AVX-VNNI's, which those have that lack AVX-512.
static inline bool tare__isa_has_avx512_encoding(void) {
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

#endif
