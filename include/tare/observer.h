// SPDX-License-Identifier: Apache-2.0
/// Observers: watch the tensors on an edge and propose quantization parameters. The built-in ones
/// have torch's names and arguments; a user adds one by a tare_observer_class.
#ifndef TARE_OBSERVER_H
#define TARE_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/dtype.h"
#include "tare/status.h"
#include "tare/tensor.h"
#include "tare/writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How an observer is to be made: a class and its arguments, torch's `Class.with_args(..)`.
/// Immutable once used in a qconfig; reference counted. A setter that fails is remembered and
/// reported at first use; setters of NULL, what a failed create left, do nothing.
typedef struct tare_observer_spec tare_observer_spec;

/// class_name: "MinMaxObserver", .. or the name of a registered class. NULL when memory is gone.
TARE_API tare_observer_spec *tare_observer_spec_create(const char *class_name);
/// Returns its argument with one more reference; NULL is fine.
TARE_API tare_observer_spec *tare_observer_spec_retain(tare_observer_spec *spec);
TARE_API void tare_observer_spec_release(tare_observer_spec *spec); // NULL is fine
/// Sets an argument by its name ("quant_min", "eps"), copied; setting it again replaces the value.
/// Whether the class knows it, and takes this type, is checked when an observer is made.
TARE_API void tare_observer_spec_set_int(tare_observer_spec *spec, const char *name, int64_t v);
TARE_API void tare_observer_spec_set_double(tare_observer_spec *spec, const char *name, double v);
TARE_API void tare_observer_spec_set_bool(tare_observer_spec *spec, const char *name, bool v);
TARE_API void tare_observer_spec_set_dtype(tare_observer_spec *spec, const char *name,
                                           tare_dtype v);
TARE_API void tare_observer_spec_set_qscheme(tare_observer_spec *spec, const char *name,
                                             tare_qscheme v);
/// The `observer` of a fake quantizer. Takes its own reference.
TARE_API void tare_observer_spec_set_observer(tare_observer_spec *spec, const char *name,
                                              tare_observer_spec *v);

/// The arguments that an observer is made with.
typedef struct tare_observer_args tare_observer_args;
/// Each returns true and fills *out if the argument was given with that type (int reads as double
/// too).
TARE_API bool tare_observer_args_int(const tare_observer_args *args, const char *name,
                                     int64_t *out);
TARE_API bool tare_observer_args_double(const tare_observer_args *args, const char *name,
                                        double *out);
TARE_API bool tare_observer_args_bool(const tare_observer_args *args, const char *name, bool *out);
TARE_API bool tare_observer_args_dtype(const tare_observer_args *args, const char *name,
                                       tare_dtype *out);
TARE_API bool tare_observer_args_qscheme(const tare_observer_args *args, const char *name,
                                         tare_qscheme *out);

/// What a made observer is; backend constraints are checked against it.
typedef struct tare_observer_info {
    uint32_t struct_size;
    tare_dtype dtype;     // that it quantizes to
    tare_qscheme qscheme; // UNSET: it has none
    int channel_axis;     // per-channel schemes
    bool is_dynamic;
    bool has_range;               // quant_min and quant_max mean something
    int64_t quant_min, quant_max; // resolved, after reduce_range
    bool has_eps;
    float eps; // least scale
    bool has_fixed_qparams;
    float fixed_scale;
    int64_t fixed_zero_point;
    bool has_qparams;  // false: a placeholder; asking it for qparams is an error
    bool reuses_input; // the edge keeps its producer's observer
} tare_observer_info;

/// Receives the proposed parameters, lent for the call. count: 1, or the channels. zero_point:
/// whole numbers but for float qparams.
typedef tare_status (*tare_qparams_sink)(void *sink, int64_t count, const double *scale,
                                         const double *zero_point, tare_error *err);
/// Receives or gives one named piece of an observer's state; tensors are lent for the call.
typedef tare_status (*tare_state_save)(void *io, const char *name, const tare_tensor *tensor,
                                       tare_error *err);
typedef const tare_tensor *(*tare_state_load)(void *io, const char *name); // NULL: absent

/// A class of observers. Who calls whom: `create` once for every edge, `update` with every batch
/// that passes, `qparams` at convert. save, load and merge carry statistics over files and
/// machines.
typedef struct tare_observer_class {
    uint32_t struct_size;
    const char *name; // as specs name the class: "mine.Magnitude"
    const char *const
        *arguments; // NULL-terminated names that create understands; others are refused
    void *user;     // handed to create
    /// Reads args and makes the state; fills *info, which is zero before. An argument that was
    /// given and not read is an error of the job.
    tare_status (*create)(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err);
    void (*destroy)(void *state);
    /// An equal state of its own: passes copy models.
    tare_status (*clone)(const void *state, void **out, tare_error *err);
    /// Looks at a batch, lent for the call. NULL: nothing to watch.
    tare_status (*update)(void *state, const tare_tensor *x, tare_error *err);
    /// Proposes parameters: one call of sink(sink_user, ..). NULL: has none. *is_calibrated says
    /// whether anything was seen; if not, the values are torch's defaults.
    tare_status (*qparams)(const void *state, tare_qparams_sink sink, void *sink_user,
                           bool *is_calibrated, tare_error *err);
    /// What print shows in parentheses; NULL: nothing.
    tare_status (*describe)(const void *state, tare_writer write, void *write_user,
                            tare_error *err);
    /// Give every piece of the state to save(io, ..), and take it back. NULL: nothing to keep. What
    /// load gets comes from a file: it must be checked.
    tare_status (*save)(const void *state, tare_state_save save, void *io, tare_error *err);
    tare_status (*load)(void *state, tare_state_load load, void *io, tare_error *err);
    /// Statistics of `from` join `into`. NULL: this class cannot merge.
    tare_status (*merge)(void *into, const void *from, tare_error *err);
    /// The order of a tensor's elements says nothing to update: x may have them in another one than
    /// its shape says (channels last), which saves putting them in order.
    bool ignores_order;
    /// To see a tensor again changes nothing: of one that is the same for all data, one look is
    /// enough.
    bool is_idempotent;
} tare_observer_class;

#ifdef __cplusplus
}
#endif
#endif
