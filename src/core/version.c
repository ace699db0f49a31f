// SPDX-License-Identifier: Apache-2.0
// The version, which the build file defines.
#include "tare/version.h"

const char *tare_version(void) {
    return TARE_VERSION_STRING;
}
