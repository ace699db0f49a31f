// SPDX-License-Identifier: Apache-2.0
// Observers of one line of JSON.
#ifndef SUPPORT_OBSERVERS_H
#define SUPPORT_OBSERVERS_H

#include "ir/module.h"
#include "observe/observer_spec.h"

#define CLASS(name) "{\"class\": \"" name "\"}"
#define PER_CHANNEL                                                                                \
    "{\"class\": \"PerChannelMinMaxObserver\", \"kwargs\": {\"dtype\": \"torch.qint8\", "          \
    "\"qscheme\": \"torch.per_channel_symmetric\"}}"

tare_status read_spec(const char *json, tare_observer_spec **out, tare_error *err);
tare_observer_spec *spec_of(const char *json);
tare_status make(const char *json, module **out, tare_error *err);
module *made(const char *json);

tare_tensor *floats(int ndim, const int64_t *shape, const float *values);
tare_tensor *row(int64_t count, const float *values);
/// The observer sees a row of these.
void show(module *m, int64_t count, const float *values);
#define SHOW(m, ...) show(m, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__})

/// How it prints.
void assert_text(const module *m, const char *expected);
/// The caller releases them.
const qparams *qparams_of(const module *m);
void assert_same_qparams(const module *a, const module *b);
/// Of a sequence; some +-5.
float noise(uint32_t *seed);

#endif
