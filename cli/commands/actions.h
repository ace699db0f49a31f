// SPDX-License-Identifier: Apache-2.0
// Commands with actions as first operands: "tare backend show NAME".
#ifndef CLI_ACTIONS_H
#define CLI_ACTIONS_H

#include "options/command.h"
#include "tare/status.h"

/// Runs the action that the arguments name. --json is the only option.
int run_action(const command *self, int argc, char **argv);

extern const option action_options[];

/// The name of a finding's severity: "error" or "warning".
const char *finding_severity(bool is_error);
/// Ends a check with findings.
tare_status fail_findings(const char *name, size_t count, size_t error_count);

#endif
