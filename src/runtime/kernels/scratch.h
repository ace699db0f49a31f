// SPDX-License-Identifier: Apache-2.0
// Working memory of kernels, kept between runs and grown on demand.
#ifndef RUNTIME_KERNELS_SCRATCH_H
#define RUNTIME_KERNELS_SCRATCH_H

#include <stddef.h>

typedef struct scratch { // zero-initialized is a valid empty one
    unsigned char *data; // 64-byte aligned
    size_t size;
} scratch;

/// At least `size` bytes, contents unspecified but initialized; NULL when memory is gone.
void *tare__scratch_reserve(scratch *s, size_t size);
void tare__scratch_release(scratch *s);

#endif
