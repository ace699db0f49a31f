// SPDX-License-Identifier: Apache-2.0
// A backend's constraints on the quantization parameters of a tensor: reading, writing, printing
// and comparing them, from one table of fields.
#ifndef CONFIG_CONSTRAINTS_H
#define CONFIG_CONSTRAINTS_H

#include "core/json/emit.h"
#include "core/json/json.h"
#include "tare/backend_config.h"

/// Reads all fields except dtype from a JSON object; refuses unknown keys.
tare_status tare__constraints_from_json(const json_at *at, tare_dtype_constraints *c,
                                        tare_error *err);
/// Writes the fields that are set, torch's first, in torch's order.
void tare__constraints_emit(const tare_dtype_constraints *c, json_emitter *e);
/// "[q >= 0, scale <= 0.5]"; nothing if none is set.
void tare__constraints_to_text(const tare_dtype_constraints *c, text *t);
/// Compares dtype and all fields that are set.
bool tare__constraints_equal(const tare_dtype_constraints *a, const tare_dtype_constraints *b);
/// TARE_INVALID_ARGUMENT for unknown bits, NaNs, unknown schemes, and constraints without a dtype.
/// role: such as "input_dtype", for the message.
tare_status tare__constraints_check(const char *role, const tare_dtype_constraints *c,
                                    tare_error *err);
/// "torch.per_tensor_affine, torch.per_tensor_symmetric".
void tare__qschemes_to_text(uint32_t qschemes, text *t);

/// The key of the first field that has a value but not its TARE_SET_ bit, so that it would be
/// ignored; NULL: there is none.
const char *tare__constraints_without_bit(const tare_dtype_constraints *c);

#endif
