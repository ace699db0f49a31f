// SPDX-License-Identifier: Apache-2.0
// The smallest user of tare: prints the version of the library it runs with.
#include <stdio.h>

#include "tare/version.h"

int main(void) {
    puts(tare_version());
    return 0;
}
