// SPDX-License-Identifier: Apache-2.0
// The resources of steps: the CPU's kernels, memory and threads.
#ifndef RUNTIME_KERNELS_CONTEXT_H
#define RUNTIME_KERNELS_CONTEXT_H

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/rows.h"
#include "runtime/kernels/scratch.h"

typedef struct kernel_context {
    isa_level isa;
    const elementwise_kernels *elementwise;
    const row_kernels *rows;
    workspace space;
} kernel_context;

#endif
