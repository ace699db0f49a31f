// SPDX-License-Identifier: Apache-2.0
// Observers inside the library: specs, the modules created from them, and their parameters.
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
    const tare_observer_class **user; // complete ones
    size_t user_count, user_capacity;
} observer_classes;
const tare_observer_class *tare__observer_class_find(const observer_classes *classes,
                                                     const char *name);
const char *tare__observer_class_name_at(const void *classes, size_t index); // for suggestions
/// True for a class that observes for input-weight equalization, in addition to the edge's
/// observer. is_input: it observes the input, not the weight.
bool tare__observer_class_is_equalizer(const tare_observer_class *class, bool *is_input);
bool tare__observer_class_is_fake_quantize(const tare_observer_class *class);
/// Refuses the name of an argument that the class does not know, with the nearest it knows.
tare_status tare__observer_class_check_argument(const tare_observer_class *class, const char *name,
                                                tare_error *err);

/// Module rows of the built-in classes ("torch.ao.quantization.HistogramObserver"), so that
/// prepared models can be read.
extern const class_table tare__observer_class_table;
/// The row of a user's class, which must live as long as the row.
void tare__observer_module_class(const tare_observer_class *class, module_class *out);
/// A copy of a user's class and its row in one block, which tare__free(row) frees. A class of
/// struct_size 0 counts as complete. Errors: a function that every class needs is missing.
tare_status tare__observer_class_copy(const tare_observer_class *user,
                                      const tare_observer_class **class, module_class **row,
                                      tare_error *err);
/// Writes statistics to model files and reads them.
extern const model_state_io tare__observer_state_io;
/// Refuses invalid descriptions: an empty range, eps or a fixed scale that is not positive and
/// finite, a fixed zero point outside of the range. Called for every observer that is created.
tare_status tare__observer_info_check(const tare_observer_info *info, tare_error *err);
/// A module of the class's row: ROLE_OBSERVER, config = the spec's arguments; its forward updates
/// the statistics and returns the input itself. A user's class is copied into the module. Errors:
/// an unknown class; an argument that the class does not know, or of a type that it does not read.
tare_status tare__observer_spec_instantiate(const observer_classes *classes,
                                            const tare_observer_spec *spec, module **out,
                                            tare_error *err);
/// The description that an instance would have. Fails as instantiate does.
tare_status tare__observer_spec_info(const observer_classes *classes,
                                     const tare_observer_spec *spec, tare_observer_info *out,
                                     tare_error *err);
const char *tare__observer_spec_class(const tare_observer_spec *spec);
bool tare__observer_spec_equal(const tare_observer_spec *a, const tare_observer_spec *b);
/// `functools.partial(..)`-free short form for messages: "MinMaxObserver(quant_min=0,
/// quant_max=127)".
void tare__observer_spec_text(const tare_observer_spec *spec, text *out);
/// Errors name the JSON path. Arguments of built-in classes are checked by name; classes that are
/// not built in may come from a context later, so their arguments wait for instantiate.
tare_status tare__observer_spec_from_json(const json_at *at, tare_observer_spec **out,
                                          tare_error *err);
void tare__observer_spec_to_json(const tare_observer_spec *spec, text *out);
tare_status tare__observer_spec_status(const tare_observer_spec *spec, tare_error *err);

/// Converts proposed parameters to those of an observer that `info` describes.
typedef struct qparams_wish {
    const tare_observer_info *info;
    qparams *made; // by the last proposal; the caller releases it
} qparams_wish;
/// A tare_qparams_sink whose user is a qparams_wish.
tare_status tare__take_qparams(void *wish, int64_t count, const double *scale,
                               const double *zero_point, tare_error *err);

/// For a module with ROLE_OBSERVER (asserted).
const tare_observer_info *tare__observer_info(const module *m);
const tare_observer_class *tare__observer_class_of(const module *m);
void *tare__observer_state(const module *m); // the class's own; not of a fake quantizer (asserted)
tare_status tare__observer_update(module *m, const tare_tensor *x, tare_error *err);
/// The same by given loops and threads, with the same outcome.
struct float_scan; // observe/classes/scan.h
tare_status tare__observer_update_by(module *m, const tare_tensor *x, const struct float_scan *scan,
                                     tare_error *err);
/// The proposed parameters as a new qparams (caller releases). quant_min/max are the observer's.
tare_status tare__observer_qparams(const module *m, const qparams **out, bool *is_calibrated,
                                   tare_error *err);
/// The spec that would make an observer like m, which has seen nothing. The caller releases *out.
tare_status tare__observer_spec_of(const module *m, tare_observer_spec **out, tare_error *err);
/// Statistics from tensors under bare names, as tare__observer_state_io saves them, into an
/// observer that has seen nothing; no tensors: nothing happens. Input is hostile.
tare_status tare__observer_load(module *m, const map *tensors, tare_error *err);
/// Exchanges the statistics of two observers with equal class and arguments.
void tare__observer_swap(module *a, module *b);
/// What can be skipped for it (see tare_observer_class); nothing for a fake quantizer.
bool tare__observer_watches(const module *m); // false: its update does nothing
bool tare__observer_ignores_order(const module *m);
bool tare__observer_is_idempotent(const module *m);
/// True if tare__observer_merge supports it.
bool tare__observer_is_mergeable(const module *m);
/// The statistics of `from` join those of `into`; both are of one class and its arguments. Nothing
/// happens for classes that watch nothing; TARE_UNSUPPORTED for those that cannot merge.
tare_status tare__observer_merge(module *into, const module *from, tare_error *err);

#endif
