// SPDX-License-Identifier: Apache-2.0
// Internal interface of observers: specs, the modules created from them, and their parameters.
#ifndef OBSERVE_OBSERVER_H
#define OBSERVE_OBSERVER_H

#include "core/json/json.h"
#include "core/text/text.h"
#include "io/native/model_file.h"
#include "ir/module.h"
#include "ops/classes/classes.h"
#include "tare/observer.h"

/// Observer classes: the built-in ones, then the user's. A context holds them (model/model.h).
typedef struct observer_classes {
    const tare_observer_class **user; // copies with all fields of this version
    size_t user_count, user_capacity;
} observer_classes;
const tare_observer_class *tare__observer_class_find(const observer_classes *classes,
                                                     const char *name);
const char *tare__observer_class_name_at(const void *classes, size_t index); // for suggestions
/// True for a class that observes for input-weight equalization, in addition to the ordinary
/// observer of the same tensor. is_input: it observes the input, not the weight.
bool tare__observer_class_is_equalizer(const tare_observer_class *class, bool *is_input);
bool tare__observer_class_is_fake_quantize(const tare_observer_class *class);
/// Refuses the name of an argument that the class does not have; suggests the most similar one.
tare_status tare__observer_class_check_argument(const tare_observer_class *class, const char *name,
                                                tare_error *err);

/// Module classes for the built-in observers ("torch.ao.quantization.HistogramObserver"), so that
/// prepared models can be read.
extern const class_table tare__observer_class_table;
/// The module class for a user's observer class, which must live as long.
void tare__observer_module_class(const tare_observer_class *class, module_class *out);
/// Copies a user's class and its module class into one block, which tare__free(row) frees. A
/// struct_size of 0 stands for the present size. Errors: a required function is missing.
tare_status tare__observer_class_copy(const tare_observer_class *user,
                                      const tare_observer_class **class, module_class **row,
                                      tare_error *err);
/// Writes statistics to model files and reads them.
extern const model_state_io tare__observer_state_io;
/// Refuses invalid descriptions: an empty range, an eps or a fixed scale that is not positive and
/// finite, a fixed zero point outside of the range. Called for every observer that is created.
tare_status tare__observer_info_check(const tare_observer_info *info, tare_error *err);
/// Creates a module: ROLE_OBSERVER, config = the spec's arguments. Its forward updates the
/// statistics and returns its input. A user's class is copied into the module. Errors: an unknown
/// class; an argument that the class does not know, or whose type it does not read.
tare_status tare__observer_spec_instantiate(const observer_classes *classes,
                                            const tare_observer_spec *spec, module **out,
                                            tare_error *err);
/// The description of the observer that instantiate would create. Fails as instantiate does.
tare_status tare__observer_spec_info(const observer_classes *classes,
                                     const tare_observer_spec *spec, tare_observer_info *out,
                                     tare_error *err);
const char *tare__observer_spec_class(const tare_observer_spec *spec);
bool tare__observer_spec_equal(const tare_observer_spec *a, const tare_observer_spec *b);
/// Short form for messages, without `functools.partial(..)`: "MinMaxObserver(quant_min=0,
/// quant_max=127)".
void tare__observer_spec_text(const tare_observer_spec *spec, text *out);
/// Errors name the JSON path. Argument names of built-in classes are checked. Other classes may
/// come from a context later, so their arguments are checked by instantiate.
tare_status tare__observer_spec_from_json(const json_at *at, tare_observer_spec **out,
                                          tare_error *err);
void tare__observer_spec_to_json(const tare_observer_spec *spec, text *out);
tare_status tare__observer_spec_status(const tare_observer_spec *spec, tare_error *err);

/// Used to store proposed parameters as the qparams of an observer that `info` describes.
typedef struct qparams_wish {
    const tare_observer_info *info;
    qparams *made; // from the last proposal; the caller releases it
} qparams_wish;
/// A tare_qparams_sink whose user is a qparams_wish.
tare_status tare__take_qparams(void *wish, int64_t count, const double *scale,
                               const double *zero_point, tare_error *err);

/// For a module with ROLE_OBSERVER (asserted).
const tare_observer_info *tare__observer_info(const module *m);
const tare_observer_class *tare__observer_class_of(const module *m);
void *tare__observer_state(const module *m); // not for a fake quantizer (asserted)
tare_status tare__observer_update(module *m, const tare_tensor *x, tare_error *err);
/// The same with the given kernels and threads; the result is the same.
struct float_scan; // observe/classes/scan.h
tare_status tare__observer_update_by(module *m, const tare_tensor *x, const struct float_scan *scan,
                                     tare_error *err);
/// The proposed parameters as new qparams (the caller releases them). quant_min and quant_max are
/// the observer's.
tare_status tare__observer_qparams(const module *m, const qparams **out, bool *is_calibrated,
                                   tare_error *err);
/// The spec that creates an observer like m, without its data. The caller releases *out.
tare_status tare__observer_spec_of(const module *m, tare_observer_spec **out, tare_error *err);
/// Loads statistics from tensors with bare names, as tare__observer_state_io saves them, into an
/// observer without data; does nothing if there are no tensors. The input is untrusted.
tare_status tare__observer_load(module *m, const map *tensors, tare_error *err);
/// Another observer that sees all that m does; NULL: there is none. It is cloned, cleared and
/// merged with m, but not written to files.
const module *tare__observer_companion(const module *m);
/// Takes the reference to `companion`, in the place of the one before. m: no fake quantizer.
void tare__observer_take_companion(module *m, module *companion);
/// Exchanges the statistics of two observers with equal class and arguments, with the companions.
void tare__observer_swap(module *a, module *b);
/// Whether work may be skipped (see tare_observer_class); for a fake quantizer none may be.
bool tare__observer_watches(const module *m); // false: its update does nothing
bool tare__observer_ignores_order(const module *m);
bool tare__observer_is_idempotent(const module *m);
/// True if tare__observer_merge supports it.
bool tare__observer_is_mergeable(const module *m);
/// Merges the statistics of `from` into `into`; both have the same class and arguments. Does
/// nothing for classes that observe nothing; TARE_UNSUPPORTED for those that cannot be merged.
tare_status tare__observer_merge(module *into, const module *from, tare_error *err);

#endif
