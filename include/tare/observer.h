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

/// How to make an observer: a class and its arguments, torch's `Class.with_args(..)`. Reference
/// counted; immutable once used in a qconfig. A setter that fails is remembered and reported at
/// first use; setters accept NULL, which a failed create left, and do nothing.
typedef struct tare_observer_spec tare_observer_spec;

/// Creates a spec without arguments. class_name: "MinMaxObserver", .. or the name of a registered
/// class; copied. NULL when memory is gone. The caller releases it.
TARE_API tare_observer_spec *tare_observer_spec_create(const char *class_name);
/// Adds a reference and returns its argument. NULL is allowed.
TARE_API tare_observer_spec *tare_observer_spec_retain(tare_observer_spec *spec);
/// Drops a reference; the last one frees the spec. NULL is allowed.
TARE_API void tare_observer_spec_release(tare_observer_spec *spec);
/// Sets an argument by name ("quant_min"), copied; setting it again replaces the value. Whether the
/// class has this argument, and of this type, is checked when an observer is made.
TARE_API void tare_observer_spec_set_int(tare_observer_spec *spec, const char *name, int64_t v);
/// As tare_observer_spec_set_int, for a float ("eps").
TARE_API void tare_observer_spec_set_double(tare_observer_spec *spec, const char *name, double v);
/// As tare_observer_spec_set_int, for a bool ("reduce_range").
TARE_API void tare_observer_spec_set_bool(tare_observer_spec *spec, const char *name, bool v);
/// As tare_observer_spec_set_int, for a dtype ("dtype").
TARE_API void tare_observer_spec_set_dtype(tare_observer_spec *spec, const char *name,
                                           tare_dtype v);
/// As tare_observer_spec_set_int, for a scheme ("qscheme").
TARE_API void tare_observer_spec_set_qscheme(tare_observer_spec *spec, const char *name,
                                             tare_qscheme v);
/// As tare_observer_spec_set_int, for the `observer` of a fake quantizer. The spec takes its own
/// reference of `v`.
TARE_API void tare_observer_spec_set_observer(tare_observer_spec *spec, const char *name,
                                              tare_observer_spec *v);

/// The arguments that an observer is made with.
typedef struct tare_observer_args tare_observer_args;
/// Reads an integer argument. False if it was not given as an integer; *out is then unchanged.
TARE_API bool tare_observer_args_int(const tare_observer_args *args, const char *name,
                                     int64_t *out);
/// Reads a float argument, or an integer one as a float. False if it was not given so; *out is then
/// unchanged.
TARE_API bool tare_observer_args_double(const tare_observer_args *args, const char *name,
                                        double *out);
/// Reads a bool argument. False if it was not given as a bool; *out is then unchanged.
TARE_API bool tare_observer_args_bool(const tare_observer_args *args, const char *name, bool *out);
/// Reads a dtype argument. False if it was not given as a dtype; *out is then unchanged.
TARE_API bool tare_observer_args_dtype(const tare_observer_args *args, const char *name,
                                       tare_dtype *out);
/// Reads a scheme argument. False if it was not given as a scheme; *out is then unchanged.
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
    // Schemes per group: neighbours along the last dimension that share parameters; 0: a whole row.
    int64_t group_size;
} tare_observer_info;

/// Receives the proposed parameters, lent for the call. count: 1, the channels, or the groups in
/// the order of the elements. zero_point:
/// whole numbers but for float qparams.
typedef tare_status (*tare_qparams_sink)(void *sink, int64_t count, const double *scale,
                                         const double *zero_point, tare_error *err);
/// Receives or gives one named entry of an observer's state; tensors are lent for the call.
typedef tare_status (*tare_state_save)(void *io, const char *name, const tare_tensor *tensor,
                                       tare_error *err);
typedef const tare_tensor *(*tare_state_load)(void *io, const char *name); // NULL: absent

/// A class of observers. `create` is called once per edge, `update` with every batch that passes,
/// `qparams` at convert. save, load and merge carry statistics over files and machines.
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
    /// Proposes parameters by one call of sink(sink_user, ..). NULL: has none. *is_calibrated: has
    /// it seen data? If not, the values are torch's defaults.
    tare_status (*qparams)(const void *state, tare_qparams_sink sink, void *sink_user,
                           bool *is_calibrated, tare_error *err);
    /// What print shows in parentheses; NULL: nothing.
    tare_status (*describe)(const void *state, tare_writer write, void *write_user,
                            tare_error *err);
    /// save passes every entry of the state to save(io, ..); load takes them back. NULL: nothing to
    /// keep. What load receives comes from a file and must be checked.
    tare_status (*save)(const void *state, tare_state_save save, void *io, tare_error *err);
    tare_status (*load)(void *state, tare_state_load load, void *io, tare_error *err);
    /// Merges the statistics of `from` into `into`. NULL: this class cannot merge.
    tare_status (*merge)(void *into, const void *from, tare_error *err);
    /// update ignores the order of a tensor's elements: x may have them in another order than its
    /// shape says (channels last), which saves reordering them.
    bool ignores_order;
    /// Seeing the same tensor twice changes nothing: a tensor that is the same for all data is
    /// shown once.
    bool is_idempotent;
} tare_observer_class;

#ifdef __cplusplus
}
#endif
#endif
