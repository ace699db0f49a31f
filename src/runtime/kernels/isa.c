// SPDX-License-Identifier: Apache-2.0
// Chooses the instruction set: the CPU's best, or less if TARE_ISA says so.
#define _DEFAULT_SOURCE // syscall
#include "runtime/kernels/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(TARE_HAVE_X86_KERNELS)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(TARE_HAVE_ARM_KERNELS)
#include <sys/auxv.h>
#endif
#ifdef TARE_HAVE_DNNL
#include <oneapi/dnnl/dnnl_version.h>
#endif

#include "core/text/text.h"
#include "tare/session.h"

#if defined(TARE_HAVE_X86_KERNELS)
static const char *const level_names[] = {
    [ISA_SCALAR] = "scalar",         [ISA_AVX2] = "avx2",       [ISA_AVXVNNI] = "avxvnni",
    [ISA_AVX512VNNI] = "avx512vnni", [ISA_AMXINT8] = "amxint8",
};
#ifdef TARE_HAVE_AVXVNNIINT8
#define KERNELS_OF_256 "scalar, avx2, avxvnni, avxvnniint8, avx512vnni"
#else
#define KERNELS_OF_256 "scalar, avx2, avxvnni, avx512vnni"
#endif
#ifdef TARE_HAVE_AMXINT8
#define KERNELS KERNELS_OF_256 ", amxint8"
#else
#define KERNELS KERNELS_OF_256
#endif
#elif defined(TARE_HAVE_ARM_KERNELS)
static const char *const level_names[] = {
    [ISA_SCALAR] = "scalar", [ISA_NEON] = "neon", [ISA_NEONDOT] = "neondot", [ISA_I8MM] = "i8mm"};
#define KERNELS "scalar, neon, neondot, i8mm"
#else
static const char *const level_names[] = {[ISA_SCALAR] = "scalar"};
#define KERNELS "scalar"
#endif
enum { LEVEL_COUNT = sizeof level_names / sizeof *level_names };

const char *tare__isa_level_name(isa_level level) {
    return (size_t)level < LEVEL_COUNT ? level_names[level] : "";
}

#if defined(TARE_HAVE_X86_KERNELS)

// Bits of cpuid that not all compilers have names for: of leaf 7, the second part. The registers
// are those of AVX2.
static bool has_avxvnni(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1U << 4) != 0;
}

static bool has_avxvnniint8(void) {
#ifdef TARE_EMULATED_ISA
    return true;
#else
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (d & 1U << 4) != 0;
#endif
}

// The highest level that needs no leave of the system. The compilers' own test asks cpuid for the
// instructions, and xgetbv whether the system keeps the registers.
static isa_level detect_unasked(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return ISA_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
        return ISA_AVX512VNNI;
    return has_avxvnni() ? ISA_AVXVNNI : ISA_AVX2;
}

#if defined(TARE_EMULATED_ISA)
static bool may_use_tiles(void) {
    return true;
}
#elif defined(TARE_HAVE_AMXINT8) && defined(__linux__)
// AMX-TILE and AMX-INT8, and the one palette that kernels know: 8 tiles of 16 rows of 64 bytes.
static bool has_tiles(void) {
    const unsigned tiles_and_int8 = 3U << 24;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tiles_and_int8) != tiles_and_int8)
        return false;
    return __get_cpuid_count(0x1D, 1, &a, &b, &c, &d) && a == (1024U << 16 | 8192U) &&
           b == (8U << 16 | 64U) && (c & 0xFFFFU) == 16;
}

// Does the system keep the tiles' shapes and their data (bits 17 and 18)?
static bool system_keeps_tiles(void) {
    const unsigned has_xgetbv = 1U << 27, shapes_and_data = 3U << 17;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & has_xgetbv) == 0) return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & shapes_and_data) == shapes_and_data;
}

// Linux ends a process that uses tiles without having asked. It refuses, among others, where a
// thread's stack for signals is too small for tiles.
static bool system_lets_use_tiles(void) {
    const long request = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
    return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

static bool may_use_tiles(void) {
    enum { NOT_ASKED, REFUSED, ALLOWED };
    static atomic_int answer = NOT_ASKED;
    int found = atomic_load_explicit(&answer, memory_order_relaxed);
    if (found == NOT_ASKED) {
        found = has_tiles() && system_keeps_tiles() && system_lets_use_tiles() ? ALLOWED : REFUSED;
        atomic_store_explicit(&answer, found, memory_order_relaxed);
    }
    return found == ALLOWED;
}
#else
static bool may_use_tiles(void) {
    return false;
}
#endif

isa_level tare__isa_detect(void) {
    const isa_level unasked = detect_unasked();
    return unasked == ISA_AVX512VNNI && may_use_tiles() ? ISA_AMXINT8 : unasked;
}

#elif defined(TARE_HAVE_ARM_KERNELS)

// The kernel tells what the CPU has, as bits that AArch64's ABI fixes.
static isa_level detect_unasked(void) {
    const unsigned long asimddp = 1UL << 20, i8mm = 1UL << 13;
    if ((getauxval(AT_HWCAP) & asimddp) == 0) return ISA_NEON;
    return (getauxval(AT_HWCAP2) & i8mm) == 0 ? ISA_NEONDOT : ISA_I8MM;
}

isa_level tare__isa_detect(void) {
    return detect_unasked();
}

#else

static isa_level detect_unasked(void) {
    return ISA_SCALAR;
}

isa_level tare__isa_detect(void) {
    return detect_unasked();
}

#endif

bool tare__isa_permutes_bytes(void) {
#if defined(TARE_HAVE_X86_KERNELS)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi") != 0;
#else
    return false;
#endif
}

bool tare__isa_multiplies_signed(void) {
#if defined(TARE_HAVE_X86_KERNELS)
    return has_avxvnniint8();
#else
    return false;
#endif
}

// "scalar, avx2" into out: what this machine can be asked for.
static void list_levels(isa_level highest, char *out, size_t size) {
    out[0] = '\0';
    for (int i = 0; i <= (int)highest; i++) {
        if (i > 0) strncat(out, ", ", size - strlen(out) - 1);
        strncat(out, level_names[i], size - strlen(out) - 1);
    }
}

// Is that one of the levels up to `highest`?
static bool find_level(const char *name, isa_level highest, isa_level *out) {
    for (int i = 0; i <= (int)highest; i++)
        if (strcmp(name, level_names[i]) == 0) return *out = (isa_level)i, true;
    return false;
}

tare_status tare__isa_choose(isa_level *out, tare_error *err) {
    const char *wanted = getenv("TARE_ISA");
    const bool is_forced = wanted != NULL && wanted[0] != '\0';
    if (is_forced && find_level(wanted, detect_unasked(), out)) return TARE_OK;
    const isa_level highest = tare__isa_detect();
    *out = highest;
    if (!is_forced || find_level(wanted, highest, out)) return TARE_OK;
    char levels[64];
    list_levels(highest, levels, sizeof levels);
    for (int i = (int)highest + 1; i < (int)LEVEL_COUNT; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "TARE_ISA: this machine or build lacks '%s', it has %s", wanted,
                              levels);
    return tare__fail(err, TARE_INVALID_ARGUMENT, "TARE_ISA: expected one of %s, found '%s'",
                      levels, wanted);
}

const char *tare_isa_name(void) {
    isa_level level;
    if (tare__isa_choose(&level, NULL) != TARE_OK) level = tare__isa_detect();
    return level_names[level];
}

#define STRINGIFY(x) #x
#define TEXT_OF(x)   STRINGIFY(x)
#ifdef TARE_HAVE_DNNL
#define FLOAT_LIBRARY "oneDNN " TEXT_OF(DNNL_VERSION_MAJOR) "." TEXT_OF(DNNL_VERSION_MINOR)
#else
#define FLOAT_LIBRARY "no oneDNN"
#endif
#ifdef TARE_HAVE_PNG
#define PNG_LIBRARY "libpng"
#else
#define PNG_LIBRARY "no libpng"
#endif
#ifdef TARE_HAVE_JPEG
#define JPEG_LIBRARY "libjpeg"
#else
#define JPEG_LIBRARY "no libjpeg"
#endif
#ifdef TARE_HAVE_ONNX
#define ONNX_READER "ONNX"
#else
#define ONNX_READER "no ONNX"
#endif

const char *tare_build_features(void) {
    return FLOAT_LIBRARY "; " PNG_LIBRARY "; " JPEG_LIBRARY "; " ONNX_READER "; kernels: " KERNELS;
}

bool tare__kernel_suits(const kernel_needs *needs, isa_level isa) {
    return needs->level <= isa && (needs->has == NULL || needs->has());
}

const void *tare__kernel_choose(const void *rows, size_t row_bytes, isa_level isa) {
    const unsigned char *row = rows;
    while (!tare__kernel_suits((const kernel_needs *)(const void *)row, isa)) row += row_bytes;
    return row;
}
