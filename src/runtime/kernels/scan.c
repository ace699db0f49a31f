// SPDX-License-Identifier: Apache-2.0
// The table of scans of floats.
#include "runtime/kernels/scan.h"

const scan_row tare__scan_rows[] = {
#define KERNEL(suffix, needs)                                                                      \
    {{needs},                                                                                      \
     {#suffix, f32_extremes__##suffix, f32_count_range__##suffix, f32_count_centred__##suffix}},
#include "runtime/kernels/f32_scan/kernels.def"
#undef KERNEL
};
const size_t tare__scan_row_count = sizeof tare__scan_rows / sizeof *tare__scan_rows;

const scan_kernels *tare__scan_choose(isa_level isa) {
    const scan_row *row = tare__kernel_choose(tare__scan_rows, sizeof *tare__scan_rows, isa);
    return &row->kernels;
}
