// SPDX-License-Identifier: Apache-2.0
// Recorded numeric vectors: one observer, fake quantizer or operator at a time, on exact inputs.
#ifndef REPLAY_NUMERICS_H
#define REPLAY_NUMERICS_H

#include <jansson.h>

#include "core/error.h"
#include "core/text/text.h"
#include "io/native/safetensors.h"

/// Called once for every case. difference: what differs first, one line; NULL: all is equal.
typedef void (*numerics_report)(void *user, const char *name, const char *difference);

/// The cases of one kind: NAME.json, a list of objects with an `id`, and the tensors ID.x in
/// NAME.safetensors. Either file may be compressed and end in .gz.
typedef struct numerics_cases {
    json_t *list;
    safetensors tensors;
} numerics_cases;
tare_status numerics_read(const char *dir, const char *name, numerics_cases *out, tare_error *err);
void numerics_release(numerics_cases *cases);
/// The tensor ID.name of a case, lent; NULL if absent.
const tare_tensor *numerics_tensor(const numerics_cases *cases, const json_t *one,
                                   const char *name);

/// One kind of vectors, DIR/NAME.json. run: one case; what it is of goes into `label`, what differs
/// first, or a failure's message, into `difference`.
typedef struct numerics_kind {
    const char *name;
    void (*run)(const numerics_cases *cases, const json_t *one, text *label, text *difference,
                tare_error *err);
} numerics_kind;
/// Statistics, scales and zero points equal to the last bit.
extern const numerics_kind numerics_observers;
/// Outputs, scales, zero points and statistics equal to the last bit.
extern const numerics_kind numerics_fake_quantizers;
/// Codes equal, float results bit-equal.
extern const numerics_kind numerics_operators;

/// Fails only when the vectors cannot be read; differences are reported, of "NAME/ID LABEL".
tare_status numerics_run(const numerics_kind *kind, const char *dir, numerics_report report,
                         void *user, tare_error *err);

#endif
