// SPDX-License-Identifier: Apache-2.0
// Recorded numeric vectors: one observer, fake quantizer or operator at a time, on exact inputs.
#ifndef REPLAY_NUMERICS_H
#define REPLAY_NUMERICS_H

#include <jansson.h>

#include "core/error.h"
#include "io/safetensors.h"

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

/// DIR/observers.json: statistics, scales and zero points equal to the last bit. Fails only when
/// the vectors cannot be read; differences are reported.
tare_status numerics_run_observers(const char *dir, numerics_report report, void *user,
                                   tare_error *err);
/// DIR/fake_quantize.json: outputs, scales, zero points and statistics equal to the last bit.
tare_status numerics_run_fake_quantizers(const char *dir, numerics_report report, void *user,
                                         tare_error *err);
/// DIR/operators.json: codes equal, float results bit-equal. Failures and reports as above.
tare_status numerics_run_operators(const char *dir, numerics_report report, void *user,
                                   tare_error *err);

#endif
