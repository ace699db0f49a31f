// SPDX-License-Identifier: Apache-2.0
// Writes the classes and functions of a match into one line.
#include "support/fuser_log.h"

#include <string.h>

void note(fuser_log *log, const tare_module *const *modules, const char *const *functions,
          size_t count) {
    log->seen[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strcat(log->seen, i > 0 ? " " : "");
        strcat(log->seen, modules[i] != NULL     ? tare_module_class_name(modules[i])
                          : functions[i] != NULL ? functions[i]
                                                 : "*");
    }
}
