// SPDX-License-Identifier: Apache-2.0
// A disk that loses power: a table of system calls that notes what was brought to the disk, and at
// a chosen moment makes of a folder what would be found in it then.
#ifndef FAULTS_DISK_H
#define FAULTS_DISK_H

typedef enum disk_loss {
    DISK_KILLED,     // the process ends; the system writes all that it was given
    DISK_NAMES_KEPT, // names are as they were, contents as they were last brought to the disk
    DISK_NAMES_LOST, // names are as their folder was last brought to the disk, too
    DISK_LOSS_COUNT
} disk_loss;

enum { DISK_CUT_STATUS = 99 };

/// Replaces the system's table. Before the `at`-th change of a file or folder (1: the first), the
/// folder becomes what is left, and the process ends with DISK_CUT_STATUS. folder: with folders in
/// it, but none in those; all that it holds now is on the disk.
void disk_begin(const char *folder, disk_loss loss, long at);

#endif
