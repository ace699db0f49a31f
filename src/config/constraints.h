// SPDX-License-Identifier: Apache-2.0
// A backend's constraints on the parameters of a tensor, field by field: one table for reading,
// writing, printing and comparing.
#ifndef CONFIG_CONSTRAINTS_H
#define CONFIG_CONSTRAINTS_H

#include "core/json/emit.h"
#include "core/json/json.h"
#include "tare/backend_config.h"

/// Reads the fields other than dtype of a JSON object; refuses keys that it does not know.
tare_status tare__constraints_from_json(const json_at *at, tare_dtype_constraints *c,
                                        tare_error *err);
/// Writes the fields that are set, torch's first, in torch's order.
void tare__constraints_emit(const tare_dtype_constraints *c, json_emitter *e);
/// "[q >= 0, scale <= 0.5]"; nothing if none is set.
void tare__constraints_to_text(const tare_dtype_constraints *c, text *t);
/// dtype and every field that is set.
bool tare__constraints_equal(const tare_dtype_constraints *a, const tare_dtype_constraints *b);
/// TARE_INVALID_ARGUMENT for unknown bits, NaNs, unknown schemes, and constraints without a dtype.
/// role: "input_dtype", for the message.
tare_status tare__constraints_check(const char *role, const tare_dtype_constraints *c,
                                    tare_error *err);
/// "torch.per_tensor_affine, torch.per_tensor_symmetric".
void tare__qschemes_to_text(uint32_t qschemes, text *t);

/// The key of the first field that has a value but not its TARE_SET_ bit, so that it asks for
/// nothing; NULL: there is none.
const char *tare__constraints_without_bit(const tare_dtype_constraints *c);

#endif
