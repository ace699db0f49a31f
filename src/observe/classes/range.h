// SPDX-License-Identifier: Apache-2.0
// The state of observers with one range per tensor, channel or group, and their common functions.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_RANGE_H
#define OBSERVE_CLASSES_RANGE_H

#include "observe/classes/uniform.h"

typedef struct range_state {
    uniform base;
    const struct range_kind *kind;
    bool is_per_channel;      // or per group: several ranges
    float averaging_constant; // moving averages only
    int64_t ch_axis;          // per-channel only; negative counts from the last dimension
    int64_t group_size;       // per-group only; 0: a whole row
    int64_t count;            // of ranges: 1 per tensor; else channels or groups, 0 before any data
    float *min, *max;         // one block of 2 * count floats, which begins at min
} range_state;

/// How an update combines a new extreme with the stored one.
typedef struct range_join {
    float (*min)(const range_state *s, float kept, float found);
    float (*max)(const range_state *s, float kept, float found);
} range_join;
/// The joins of plain and of moving-average observers.
extern const range_join tare__join_extremes, tare__join_averages;

/// The differences between these classes; a class's `user`. name: the class. is_per_group: the
/// ranges are per group (is_per_channel is true as well). is_least_error: for weights, with the
/// range of least squared error.
typedef struct range_kind {
    const char *name;
    bool is_per_channel, is_per_group, is_averaging, is_least_error;
    const range_join *join;
} range_kind;
tare_status tare__range_create(void *kind, const tare_observer_args *args, void **state,
                               tare_observer_info *info, tare_error *err);
/// Finds the extremes of x and joins them to the stored ranges, or stores them if there are none
/// yet.
tare_status tare__range_update(void *state, const tare_tensor *x, tare_error *err);
tare_status tare__range_update_by(void *state, const tare_tensor *x, const float_scan *scan,
                                  tare_error *err);

/// Updates as torch's fused operator does: the first batch sets the number of channels, and an end
/// that is still infinite is replaced by the new value. observes: false: only the channels are
/// counted.
tare_status tare__range_update_fused(range_state *s, const tare_tensor *x, bool observes,
                                     tare_error *err);

void tare__range_destroy(void *state);
tare_status tare__range_clone(const void *state, void **out, tare_error *err);
tare_status tare__range_qparams(const void *state, tare_qparams_sink sink, void *sink_user,
                                bool *is_calibrated, tare_error *err);
tare_status tare__range_describe(const void *state, tare_writer write, void *write_user,
                                 tare_error *err);
tare_status tare__range_save(const void *state, tare_state_save save, void *io, tare_error *err);
tare_status tare__range_load(void *state, tare_state_load load, void *io, tare_error *err);
/// Takes the smaller minimum and the greater maximum: the result is the same for any split of the
/// data.
tare_status tare__range_merge(void *into, const void *from, tare_error *err);

/// The functions of these classes. A class adds its name, arguments, kind, and merge if it can be
/// merged.
#define RANGE_OBSERVER                                                                             \
    .struct_size = sizeof(tare_observer_class), .create = tare__range_create,                      \
    .destroy = tare__range_destroy, .clone = tare__range_clone, .update = tare__range_update,      \
    .qparams = tare__range_qparams, .describe = tare__range_describe, .save = tare__range_save,    \
    .load = tare__range_load

#endif
