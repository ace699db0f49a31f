// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Scans of floats. With AVX2.
#define SCAN(name) name##__avx2
#include "runtime/kernels/scan.h"

#include "observe/classes/scan_loops.h"

static int drop_common(int32_t found[SCAN_BLOCK], int32_t common) {
    (void)found, (void)common;
    return SCAN_BLOCK;
}
