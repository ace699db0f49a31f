// SPDX-License-Identifier: Apache-2.0
// Commands whose first operand is a verb: "tare backend show NAME".
#ifndef CLI_ACTIONS_H
#define CLI_ACTIONS_H

#include "options/command.h"
#include "tare/status.h"

/// Runs the action of the command that the arguments ask for; --json is the one option.
int run_action(const command *self, int argc, char **argv);

extern const option action_options[];

/// How a check calls what it found: "error" or "warning".
const char *finding_severity(bool is_error);
/// How a check that found something ends.
tare_status fail_findings(const char *name, size_t count, size_t error_count);

#endif
