// SPDX-License-Identifier: Apache-2.0
// Files of tuners, for tests.
#ifndef SUPPORT_TUNING_H
#define SUPPORT_TUNING_H

#include <stddef.h>

/// Turns every choice in such a file into the other one; how many there are. 0 where the file is
/// not there, because there was nothing to choose.
size_t oppose_choices(const char *path);

#endif
