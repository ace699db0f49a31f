// SPDX-License-Identifier: Apache-2.0
// The version; the build file is the one place that states it.
#include "tare/version.h"

const char *tare_version(void) {
    return TARE_VERSION_STRING;
}
