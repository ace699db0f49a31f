// SPDX-License-Identifier: Apache-2.0
// The ladder's state, and what its steps do with it. Private to debug/improve.
#ifndef DEBUG_IMPROVE_LADDER_H
#define DEBUG_IMPROVE_LADDER_H

#include "core/memory/arena.h"
#include "debug/analyze/probe.h"
#include "debug/improve/trials.h"
#include "model/model.h"
#include "tare/improve.h"

#define SOUND_DB 20.0 // below, accuracy goes before speed

// What a quantized model is worth.
typedef struct worth {
    double db, ms;
    int64_t bytes;
} worth;

// A prepared model, and the operators of it that stay float.
typedef struct recipe {
    tare_model *prepared;
    tare_float_choice *choices; // names and reasons in the ladder's memory
    size_t choice_count;
} recipe;

typedef struct ladder {
    const tare_model *prepared;
    tare_data *calibration, *check;
    tare_quantize_prepared quantize;
    void *user;
    tare_improve_options options;
    recipe best;
    worth best_worth, first_worth;
    tare_model *best_model; // NULL: known from the book only
    trial_book book;
    probe_outputs *floats; // of each batch of `check`
    size_t float_count, float_capacity;
    tare_improve_result result;
    uint64_t begin_ns;
    uint64_t
        trial_begin_ns; // of the step that makes a model to be tried; 0: it begins with the try
    arena memory;
    tare_error *err;
} ladder;

/// Steps, in the order of trial.
typedef struct ladder_step {
    const char *name, *what;
    tare_status (*run)(ladder *l, const struct ladder_step *self);
    bool is_last_word; // quick, and tried when the budget is gone, too
    bool may_slow;     // its models compute other operators; else a run takes as long as before
} ladder_step;

double tare__ladder_seconds(const ladder *l); // since it began
/// Is there no time left, or is the target reached?
bool tare__ladder_is_over(ladder *l);
/// The model of a recipe.
tare_status tare__ladder_make(const ladder *l, const recipe *r, bool as_reference,
                              tare_model **out);
/// The prepared model sees the calibration data.
tare_status tare__ladder_calibrate(const ladder *l, tare_model *prepared);

/// An earlier run of the ladder tried this and did not keep it: that is told, and *out is true.
tare_status tare__ladder_knows_useless(ladder *l, const ladder_step *step, const char *what,
                                       bool *out);
/// Tries a recipe, which is consumed: it is the best one afterwards, or it is gone.
tare_status tare__ladder_try(ladder *l, const ladder_step *step, const char *what, recipe *r,
                             bool *is_kept);
/// The same of the best recipe with another prepared model, which is consumed. needs_data: it has
/// to be calibrated first.
tare_status tare__ladder_try_prepared(ladder *l, const ladder_step *step, const char *what,
                                      tare_model *made, bool needs_data);

/// The float outputs of the first prepared model, once: steps may change its weights.
tare_status tare__ladder_keep_floats(ladder *l);
/// All of out but ms.
tare_status tare__ladder_measure(const ladder *l, tare_model *model, worth *out);
/// Times of a run in milliseconds, one run of each model after the other.
tare_status tare__ladder_time(const ladder *l, const tare_model *const *models, size_t count,
                              double *ms);

const ladder_step *tare__ladder_step_at(size_t index); // NULL past the end
/// Leaves layers float (float_layers.c).
tare_status tare__step_float_layers(ladder *l, const ladder_step *self);

#endif
