// SPDX-License-Identifier: Apache-2.0
/// The measured peak performance of the machine: the roofline for a run.
#ifndef TARE_MACHINE_H
#define TARE_MACHINE_H

#include <stdint.h>

#include "tare/export.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Peak figures over all measuring threads together. Operations are multiplications and additions:
/// a multiply-accumulate counts as two. A gigabyte is 10^9 bytes.
typedef struct tare_machine_peak {
    uint32_t struct_size;
    double int8_gops;    // 10^9 operations per second on int8, by the instruction set level in use
    double float_gflops; // 10^9 operations per second on float32
    double l2_gbs;       // GB per second read from an array of half the L2 cache's size per thread
    double l3_gbs;       // GB per second read from an array of 8 times the L2 cache's size
    double memory_gbs;   // GB per second read from 256 MiB
    /// 10^9 operations per second on int8 by vector instructions, of kernels that multiply no tiles
    /// (AMX): depthwise ones, and products of little depth. 0: int8_gops.
    double int8_vector_gops;
} tare_machine_peak;

/// Measures these figures with `thread_count` threads at once (0: 1). The call takes about 0.6 s
/// and 256 MiB. Each figure is the best of samples that are spread over that time, so other load on
/// the machine can lower it but not raise it. TARE_INVALID_ARGUMENT for a negative count or more
/// than 1024.
TARE_API tare_status tare_machine_measure(int thread_count, tare_machine_peak *out,
                                          tare_error *err);
/// Writes the peaks as JSON: {"format": "tare-machine-1", "int8_gops": .., ..}, with the names of
/// the fields.
TARE_API tare_status tare_machine_write(const tare_machine_peak *peak, const char *path,
                                        tare_error *err);
/// Reads such a file. TARE_MALFORMED_FILE for another kind of file, and for figures that are
/// missing or not positive. int8_vector_gops may be missing, as in files of older versions.
TARE_API tare_status tare_machine_read(const char *path, tare_machine_peak *out, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
