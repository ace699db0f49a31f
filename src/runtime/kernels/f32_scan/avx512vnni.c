// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Scans of floats. With AVX-512.
#define SCAN(name) name##__avx512vnni
#include <immintrin.h>

#include "runtime/kernels/scan.h"

#include "observe/classes/scan_loops.h"

// Sixteen at a time are compressed to the others that are left. The elements stored beyond them are
// overwritten later.
static int drop_common(int32_t found[SCAN_BLOCK], int32_t common) {
    const __m512i wanted = _mm512_set1_epi32(common);
    int left = 0;
    for (int i = 0; i < SCAN_BLOCK; i += 16) {
        const __m512i bins = _mm512_loadu_si512(found + i);
        const __mmask16 others = _mm512_cmpneq_epi32_mask(bins, wanted);
        _mm512_storeu_si512(found + left, _mm512_maskz_compress_epi32(others, bins));
        left += __builtin_popcount(others);
    }
    return left;
}
