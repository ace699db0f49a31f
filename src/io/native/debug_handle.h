// SPDX-License-Identifier: Apache-2.0
// Handles of the numeric debugger as torch stores them: meta["custom"]["numeric_debug_handle"]. A
// program's file has `custom` as a string of JSON, others as an object.
#ifndef IO_NATIVE_DEBUG_HANDLE_H
#define IO_NATIVE_DEBUG_HANDLE_H

#include "core/json/json.h"
#include "core/text/text.h"

/// The handle in `custom`; 0: there is none. custom may be NULL.
tare_status tare__debug_handle_read(const json_t *custom, int64_t *out, tare_error *err);
/// Appends `custom` as JSON with this handle instead of its own (0: without one); nothing if it is
/// then empty. If the handle is the same, appends it unchanged.
tare_status tare__debug_handle_write(const json_t *custom, int64_t handle, text *out,
                                     tare_error *err);

#endif
