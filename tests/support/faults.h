// SPDX-License-Identifier: Apache-2.0
// Failures to order: a table of system calls (core/system/system.h) that goes to the system's own
// and fails the n-th of the chosen kinds, counted over all threads.
#ifndef SUPPORT_FAULTS_H
#define SUPPORT_FAULTS_H

#include <stdbool.h>

typedef enum fault_kind {
    FAULT_MEMORY = 1, // allocations
    FAULT_FILES = 2,  // calls on files and folders that can fail
} fault_kind;

typedef struct fault_order {
    int kinds;      // of fault_kind, or-ed; 0: none fails
    long at;        // 1: the next call; 0: none fails, all are counted
    bool stays;     // all later calls of these kinds fail, too
    int file_error; // errno of a file's call; 0: EIO
} fault_order;

/// Replaces the system's table; the count begins at 0.
void faults_order(fault_order order);
/// Back to the system's own.
void faults_end(void);
/// Calls of the chosen kinds since the order.
long faults_count(void);
/// Has the failure happened?
bool faults_happened(void);

/// The `request`-th allocation from now (1: the next one) fails once; 0: none does.
void tare__alloc_fail_at(long request);
/// True once that failure has happened.
bool tare__alloc_failed(void);

#endif
