// SPDX-License-Identifier: Apache-2.0
// The ladder's state, and the functions for its steps.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_LADDER_H
#define DEBUG_IMPROVE_LADDER_H

#include "core/memory/arena.h"
#include "debug/analyze/exact.h"
#include "debug/improve/trials.h"
#include "model/model.h"
#include "tare/improve.h"

#define SOUND_DB   20.0          // what a model that begins below it aims at
#define USELESS_DB 5.0           // below this the noise has more than half the signal's size
enum { CHOICE_MODELS = 4 };      // that the step which chooses_speed makes before its first trial
enum { CORRECTION_SAMPLES = 8 }; // of the calibration, that biases are corrected with
#define FASTEST_KEY "fastest choice" // in the file of trials: fastest_ms and fastest_bytes

// The quality of a quantized model.
typedef struct worth {
    double db, ms;
    int64_t bytes;
    const double
        *sample_db; // [sample_count] of the ladder; NULL: known only from the file of trials
} worth;

// What a run and the tensors of a model may take.
typedef struct worth_limits {
    double ms, bytes;
} worth_limits;

// The float outputs for the first batches of some data.
typedef struct float_outputs {
    probe_outputs *batches;
    size_t count, capacity;
} float_outputs;

// A prepared model, and those of its operators that stay float.
typedef struct recipe {
    tare_model *prepared;
    tare_float_choice *choices; // names and reasons are in the ladder's memory
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
    double fastest_ms;         // of a run with the fastest choice for each layer; 0: not known
    tare_model *fastest_model; // NULL: the first one
    int64_t fastest_bytes;     // of its tensors; 0: not known
    bool may_cost_more;        // the best model within the usual limits is of no use
    tare_model *best_model;    // NULL: known only from the file of trials
    trial_book book;
    float_outputs check_floats; // of all of `check`
    float_outputs fit_floats;   // of the first samples of `calibration`
    size_t sample_count;        // of both
    tare_improve_result result;
    uint64_t begin_ns;
    double try_seconds;       // making, measuring and timing a model, the longest so far
    double calibrate_seconds; // the longest so far, at first by a guess
    double last_seconds;      // set aside for the step that is_last_word
    double choice_seconds;    // set aside for the step that chooses_speed, until it begins
    double range_seconds;     // set aside for the step that chooses_ranges, until it begins
    uint64_t trial_begin_ns;  // when the step began to make the model to be tried; 0: not set
    arena memory;
    tare_error *err;
} ladder;

/// A step of the ladder, in the order of trials.
typedef struct ladder_step {
    const char *name, *what;
    tare_status (*run)(ladder *l, const struct ladder_step *self);
    bool is_last_word;   // time is set aside for it; it takes fewer samples if that is little
    bool chooses_speed;  // time is set aside for it, and it runs, briefly, even if that is used up
    bool chooses_ranges; // time for a few trials is set aside for it, if they need no calibration
    bool may_slow;       // changes which operators run; otherwise the model is as fast as before
} ladder_step;

double tare__ladder_seconds(const ladder *l); // since the ladder began
/// What is left for making a prepared model, if it is to be calibrated (needs_data), tried, and
/// followed by the steps for which time is set aside within the time limit.
double tare__ladder_seconds_for(const ladder *l, bool needs_data);
/// The same for the step that is_last_word, which nothing follows.
double tare__ladder_seconds_for_last(const ladder *l);
/// True if the time is used up or the target is reached.
bool tare__ladder_is_over(ladder *l);
/// Converts the model of a recipe.
tare_status tare__ladder_make(const ladder *l, const recipe *r, bool as_reference,
                              tare_model **out);
/// Calibrates the prepared model. *is_late: the time was over before all samples were seen.
tare_status tare__ladder_calibrate(ladder *l, tare_model *prepared, bool *is_late);

/// The key of a trial in the file, in the ladder's memory; NULL: no memory.
char *tare__ladder_key(ladder *l, const ladder_step *step, const char *what);
/// If an earlier run tried this and did not keep it, reports it and sets *out.
tare_status tare__ladder_knows_useless(ladder *l, const ladder_step *step, const char *what,
                                       bool *out);
/// Tries a recipe and consumes it: it becomes the best one or is released.
tare_status tare__ladder_try(ladder *l, const ladder_step *step, const char *what, recipe *r,
                             bool *is_kept);
/// The same for the best recipe with another prepared model, which is consumed. needs_data: it must
/// be calibrated first.
tare_status tare__ladder_try_prepared(ladder *l, const ladder_step *step, const char *what,
                                      tare_model *made, bool needs_data);

/// What a step may cost: by the options. costs_more: without options, what a model of no use may
/// cost.
worth_limits tare__ladder_limits(const ladder *l, bool costs_more);
/// Keeps the float outputs of the given float model, or else of the first prepared one, once,
/// because steps may change weights.
tare_status tare__ladder_keep_floats(ladder *l);
void tare__ladder_release_floats(ladder *l);
/// The bytes of the model's tensors.
tare_status tare__ladder_bytes(const ladder *l, const tare_model *model, int64_t *out);
/// Sets all members of *out except ms.
tare_status tare__ladder_measure(ladder *l, tare_model *model, worth *out);
/// Times a run of each model in milliseconds, alternately, for about so many seconds.
tare_status tare__ladder_time(const ladder *l, const tare_model *const *models, size_t count,
                              double seconds, double *ms);

/// Times a run of a model against the best one, and near the limit of time against the fastest.
tare_status tare__ladder_time_model(const ladder *l, const tare_model *model, double *ms);
const ladder_step *tare__ladder_step_at(size_t index); // NULL past the end
/// Chooses the precision of each layer (precision.c).
tare_status tare__step_precision(ladder *l, const ladder_step *self);
/// Makes a prepared model from the best one's. *count 0: nothing to change.
typedef tare_status (*prepared_maker)(ladder *l, int choice, size_t *count, tare_model **out);
/// Tries what a step makes, unless there is no time or its outcome is known. A maker that refuses
/// does not apply to the model.
tare_status tare__ladder_try_made(ladder *l, const ladder_step *step, const char *what,
                                  prepared_maker make, int choice, bool needs_data);
/// Has inputs of linear layers quantized in each run (dynamic_inputs.c).
tare_status tare__step_dynamic(ladder *l, const ladder_step *self);

#endif
