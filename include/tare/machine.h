// SPDX-License-Identifier: Apache-2.0
/// Peak figures of the machine, measured: the roofline that a run is compared with.
#ifndef TARE_MACHINE_H
#define TARE_MACHINE_H

#include <stdint.h>

#include "tare/export.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Operations are multiplications and additions: a multiply-accumulate is two. A gigabyte is 10^9.
typedef struct tare_machine_peak {
    uint32_t struct_size;
    double int8_gops;    // of bytes in registers, with the instruction set level in use
    double float_gflops; // of float32
    double l2_gbs;       // reading: half of the second-level cache,
    double l3_gbs;       // eight times that cache,
    double memory_gbs;   // and far more than caches hold
} tare_machine_peak;

/// Measures these figures with `thread_count` threads at once (0: 1); takes about 0.6 s. Each
/// figure is the best of samples that are spread over that time. Other work on the machine makes
/// them smaller, never larger.
TARE_API tare_status tare_machine_measure(int thread_count, tare_machine_peak *out,
                                          tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
