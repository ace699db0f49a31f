// SPDX-License-Identifier: Apache-2.0
/// Observers collect statistics of the tensors on an edge and propose quantization parameters. The
/// built-in ones have torch's names and arguments; a tare_observer_class adds further ones.
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
/// counted; must not change once it is used in a qconfig. Setters return no status: the spec keeps
/// their first error and reports it at first use. They accept NULL, the result of a failed create,
/// and then do nothing.
typedef struct tare_observer_spec tare_observer_spec;

/// Creates a spec without arguments. class_name: "MinMaxObserver", .. or the name of a registered
/// class; copied. Returns NULL when memory is exhausted. The caller releases it.
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

/// Facts about an observer, against which backend constraints are checked.
typedef struct tare_observer_info {
    uint32_t struct_size;
    tare_dtype dtype;     // the dtype that it quantizes to
    tare_qscheme qscheme; // UNSET: it has none
    int channel_axis;     // per-channel schemes
    bool is_dynamic;
    bool has_range;               // quant_min and quant_max are set
    int64_t quant_min, quant_max; // resolved, after reduce_range
    bool has_eps;
    float eps; // the smallest scale
    bool has_fixed_qparams;
    float fixed_scale;
    int64_t fixed_zero_point;
    bool has_qparams;  // false: a placeholder, which proposes no parameters
    bool reuses_input; // the edge uses the observer of its producer
    // Schemes per group: neighbours along the last dimension that share parameters; 0: a whole row.
    int64_t group_size;
} tare_observer_info;

/// Receives the proposed parameters, [count] each, lent for the call. count: 1, the number of
/// channels, or the number of groups, in the order of the elements. Zero points are whole numbers,
/// except with float qparams.
typedef tare_status (*tare_qparams_sink)(void *sink, int64_t count, const double *scale,
                                         const double *zero_point, tare_error *err);
/// Receives one named entry of an observer's state; the tensor is lent for the call.
typedef tare_status (*tare_state_save)(void *io, const char *name, const tare_tensor *tensor,
                                       tare_error *err);
/// Returns one named entry of a saved state, lent for the call; NULL: absent.
typedef const tare_tensor *(*tare_state_load)(void *io, const char *name);

/// A class of observers. `create` is called once per edge, `update` with every batch on that edge,
/// `qparams` at convert. `save` and `load` keep statistics in files, `merge` joins those of several
/// machines.
typedef struct tare_observer_class {
    uint32_t struct_size;
    const char *name;             // the name in specs: "mine.Magnitude"
    const char *const *arguments; // names of create's arguments, ended by NULL; others are refused
    void *user;                   // passed to create
    /// Reads `args` and makes the state; fills *info, which is zero before the call. A given
    /// argument that create does not read is an error of prepare.
    tare_status (*create)(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err);
    void (*destroy)(void *state);
    /// Copies the state, because passes copy models.
    tare_status (*clone)(const void *state, void **out, tare_error *err);
    /// Adds a batch, lent for the call, to the statistics. NULL: the class keeps none.
    tare_status (*update)(void *state, const tare_tensor *x, tare_error *err);
    /// Proposes parameters by one call of sink(sink_user, ..). NULL: the class proposes none.
    /// *is_calibrated: has it seen data? If not, it proposes torch's defaults.
    tare_status (*qparams)(const void *state, tare_qparams_sink sink, void *sink_user,
                           bool *is_calibrated, tare_error *err);
    /// Writes the text that tare_model_print shows in parentheses; NULL: none.
    tare_status (*describe)(const void *state, tare_writer write, void *write_user,
                            tare_error *err);
    /// save passes every entry of the state to save(io, ..); load reads them by load(io, name).
    /// NULL: there is no state to keep. The tensors that load gets come from a file and must be
    /// checked.
    tare_status (*save)(const void *state, tare_state_save save, void *io, tare_error *err);
    tare_status (*load)(void *state, tare_state_load load, void *io, tare_error *err);
    /// Merges the statistics of `from` into `into`. NULL: this class cannot merge.
    tare_status (*merge)(void *into, const void *from, tare_error *err);
    /// update does not depend on the order of the elements: x may have them in another order than
    /// its shape says (channels last), which saves a copy.
    bool ignores_order;
    /// A second update with the same tensor changes nothing, so a tensor that is the same for all
    /// data is passed once.
    bool is_idempotent;
} tare_observer_class;

#ifdef __cplusplus
}
#endif
#endif
