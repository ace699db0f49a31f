// SPDX-License-Identifier: Apache-2.0
// The table of peak kernels.
#include "runtime/kernels/peak.h"

#define KERNEL(suffix, needs, codes, floats)                                                       \
    uint32_t peak_codes__##suffix(size_t rounds);                                                  \
    float peak_floats__##suffix(size_t rounds);                                                    \
    uint64_t peak_read__##suffix(const uint64_t *data, size_t count);
#include "runtime/kernels/peak/kernels.def"
#undef KERNEL

static const peak_kernels rows[] = {
#define KERNEL(suffix, needs, codes, floats)                                                       \
    {peak_codes__##suffix, peak_floats__##suffix, peak_read__##suffix, codes, floats, needs},
#include "runtime/kernels/peak/kernels.def"
#undef KERNEL
};

const peak_kernels *tare__peak_choose(isa_level isa) {
    const peak_kernels *k = rows;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}
