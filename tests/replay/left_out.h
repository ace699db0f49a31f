// SPDX-License-Identifier: Apache-2.0
// What a recorded call had and case.json leaves out.
#ifndef REPLAY_LEFT_OUT_H
#define REPLAY_LEFT_OUT_H

#include "tare/qconfig.h"

/// The mapping that convert was given: prepare's with some selectors switched off. *out: NULL when
/// the case has none of its own.
tare_status left_out_convert_mapping(const char *case_name, const tare_qconfig_mapping *prepared,
                                     tare_qconfig_mapping **out, tare_error *err);

#endif
