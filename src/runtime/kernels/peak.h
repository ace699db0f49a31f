// SPDX-License-Identifier: Apache-2.0
// Loops that reach a machine's peak: multiply-accumulates on operands in registers, and reading
// memory. The table of these kernels.
#ifndef RUNTIME_KERNELS_PEAK_H
#define RUNTIME_KERNELS_PEAK_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/isa.h"

enum { PEAK_READ_WORDS = 64 };

/// Results are returned, so that the compiler cannot remove the work.
typedef struct peak_kernels {
    kernel_needs needs;
    uint32_t (*multiply_integers)(size_t rounds); // unsigned times signed bytes, into int32
    float (*multiply_floats)(size_t rounds);
    uint64_t (*read)(const uint64_t *data, size_t count); // count: of PEAK_READ_WORDS
    size_t integers, floats;                              // multiply-accumulates per round
} peak_kernels;

/// The fastest ones at a level.
const peak_kernels *tare__peak_choose(isa_level isa);

#define KERNEL(needs, of_quantized, of_floats, integers, floats)                                   \
    uint32_t peak_quantized__##of_quantized(size_t rounds);                                        \
    float peak_floats__##of_floats(size_t rounds);                                                 \
    uint64_t peak_read__##of_floats(const uint64_t *data, size_t count);
#include "runtime/kernels/peak/kernels.def"
#undef KERNEL
uint32_t peak_quantized__avx512vl(size_t rounds); // the same as AVX-VNNI's, in another encoding

#endif
