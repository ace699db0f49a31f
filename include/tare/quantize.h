// SPDX-License-Identifier: Apache-2.0
/// The flow: fuse, prepare, calibrate, convert, lower. Each pass takes a model and makes a new one.
#ifndef TARE_QUANTIZE_H
#define TARE_QUANTIZE_H

#include "tare/backend_config.h"
#include "tare/custom_config.h"
#include "tare/model.h"
#include "tare/qconfig.h"
#include "tare/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The rounding rules of integer operators, named after torch's engines (docs/differences.md). The
/// engine does not change the graph. It is stored in the lowered model.
typedef enum tare_engine {
    TARE_ENGINE_DEFAULT = 0, // x86
    TARE_ENGINE_X86 = 1,
    TARE_ENGINE_FBGEMM = 2,
    TARE_ENGINE_QNNPACK = 3,
    TARE_ENGINE_ONEDNN = 4,
} tare_engine;
/// The name of an engine ("x86"); "" for unknown numbers. Static storage.
TARE_API const char *tare_engine_name(tare_engine engine);
/// The engine with this name; "native" is x86. TARE_ENGINE_DEFAULT for unknown names.
TARE_API tare_engine tare_engine_from_name(const char *name);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_prepare_options {
    uint32_t struct_size;
    const tare_backend_config *backend;          // NULL: native
    const tare_qconfig_mapping *qconfig_mapping; // required
    bool is_lenient; // a selector that matches nothing is a warning in the record, not an error
    const tare_prepare_custom_config *custom_config; // NULL: none
    /// Input-weight equalization: a mapping of qconfigs with _InputEqualizationObserver for
    /// activations and _WeightEqualizationObserver for weights (torch's EqualizationQConfig). NULL:
    /// none.
    const tare_qconfig_mapping *equalization;
} tare_prepare_options;

/// A node of a prepared model that convert leaves float although its qconfig would quantize it.
/// Strings are lent for the call; the record keeps the rule and the reason.
typedef struct tare_float_choice {
    const char *node; // it computes an operator or calls a module; no observer
    const char *rule, *reason;
} tare_float_choice;

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_convert_options {
    uint32_t struct_size;
    const tare_backend_config *backend; // NULL: native
    tare_engine engine;
    bool is_lenient; // an observer without data gives scale 1 and a warning, not an error
    const tare_convert_custom_config *custom_config; // NULL: none
    /// NULL: the mapping of prepare. Otherwise it must have the selectors of that mapping, each
    /// with the same qconfig or NULL: convert can switch quantization off, but not on.
    const tare_qconfig_mapping *qconfig_mapping;
    bool keeps_original_weights; // see tare_model_original_weight
    /// Nodes to leave float; observers that stand only between such nodes are removed.
    /// TARE_NOT_FOUND for a name that the model does not have, TARE_INVALID_ARGUMENT for a node
    /// that stays float anyway.
    const tare_float_choice *float_choices;
    size_t float_choice_count;
    /// For equalization: where a layer multiplies its output by the next layer's scales, the
    /// observer of that output keeps the range of values that are not multiplied. As in torch, so
    /// that larger ones are cut off.
    bool keeps_equalized_ranges;
} tare_convert_options;

/// Fuses modules by the fusing patterns of a backend (NULL: native); `model` is not changed. The
/// caller destroys *out.
TARE_API tare_status tare_fuse_fx(const tare_model *model, const tare_backend_config *backend,
                                  tare_model **out, tare_error *err);
/// As tare_fuse_fx, with a custom config (NULL: none). TARE_NOT_FOUND for an attribute to preserve
/// that the model does not have.
TARE_API tare_status tare_fuse_fx_custom(const tare_model *model,
                                         const tare_backend_config *backend,
                                         const tare_fuse_custom_config *custom, tare_model **out,
                                         tare_error *err);
/// Fuses, matches the backend's patterns and inserts observers; `model` is not changed.
/// TARE_NOT_FOUND for a selector of the mapping that matches nothing, unless is_lenient. The caller
/// destroys *out.
TARE_API tare_status tare_prepare_fx(const tare_model *model, const tare_prepare_options *options,
                                     tare_model **out, tare_error *err);
/// As tare_prepare_fx, for quantization-aware training: fake quantizers instead of observers, batch
/// norms kept beside their convolutions, weighted modules in their QAT form. The mapping must
/// consist of fake quantizers ({"default_qat": "x86"}). As in torch, modules that are fused
/// together must be in the same mode. QAT modules start in training mode.
TARE_API tare_status tare_prepare_qat_fx(const tare_model *model,
                                         const tare_prepare_options *options, tare_model **out,
                                         tare_error *err);
/// True for a model that tare_prepare_fx prepared with the mapping "tare" (the default of the
/// command line), whose graph need not be torch's.
TARE_API bool tare_model_is_prepared_own(const tare_model *model);
/// Runs a prepared model once on one batch; its observers collect statistics. inputs: one tensor
/// per model input; inputs at the end that have defaults may be left out. TARE_INVALID_ARGUMENT for
/// another number of inputs and for NaNs, with the input and the index; no observer has then seen
/// the batch. Infinities, which the masks of some models have, are accepted here
/// (tare_calibrate_data refuses them unless it is lenient); convert fails if they give no valid
/// parameters.
TARE_API tare_status tare_calibrate(tare_model *prepared, const tare_tensor *const *inputs,
                                    size_t input_count, tare_error *err);
/// Sets the training mode (true) or evaluation mode of a model and its modules, as torch's train()
/// and eval(): in training mode batch norms use the statistics of the batch and update their own.
/// Batch norms of frozen QAT modules do not change. The batch norms of an exported program keep the
/// arguments that they are written with; their mode is kept by passes, but not by files.
TARE_API tare_status tare_model_set_training(tare_model *model, bool training, tare_error *err);
/// Switches the observers inside fake quantizers on or off (torch's enable_observer and
/// disable_observer). They start switched on, in evaluation mode too. TARE_INVALID_ARGUMENT for
/// models that are not prepared.
TARE_API tare_status tare_model_enable_observer(tare_model *prepared, bool enabled,
                                                tare_error *err);
/// Switches the rounding of fake quantizers on or off (torch's enable_fake_quant and
/// disable_fake_quant). TARE_INVALID_ARGUMENT for models that are not prepared.
TARE_API tare_status tare_model_enable_fake_quant(tare_model *prepared, bool enabled,
                                                  tare_error *err);
/// Freezes the statistics of the batch norms in QAT convolutions, in training mode, too (torch's
/// freeze_bn_stats), or lets them follow the batches again (update_bn_stats). TARE_INVALID_ARGUMENT
/// for models that are not prepared.
TARE_API tare_status tare_model_freeze_bn_stats(tare_model *prepared, bool frozen, tare_error *err);
/// The mode of learnable fake quantizers. New ones are in ESTIMATE.
typedef enum tare_learnable_mode {
    TARE_LEARNABLE_LEARN = 1,    // enable_param_learning: scale and zero point are trained
    TARE_LEARNABLE_ESTIMATE = 2, // enable_static_estimate: scale and zero point follow the observer
    TARE_LEARNABLE_OBSERVE = 3,  // enable_static_observation: as ESTIMATE, without rounding
} tare_learnable_mode;
/// Sets the mode of all learnable fake quantizers. TARE_INVALID_ARGUMENT for other modes and for
/// models that are not prepared.
TARE_API tare_status tare_model_set_learnable_mode(tare_model *prepared, tare_learnable_mode mode,
                                                   tare_error *err);
/// Replaces observers by quantize and dequantize, and float modules by reference modules;
/// `prepared` is not changed. options may be NULL. TARE_INVALID_ARGUMENT for observers that have
/// seen no data, unless is_lenient. The caller destroys *out.
TARE_API tare_status tare_convert_to_reference_fx(const tare_model *prepared,
                                                  const tare_convert_options *options,
                                                  tare_model **out, tare_error *err);
/// As tare_convert_to_reference_fx, with quantized_decomposed operators, whose parameters are
/// literals in the graph.
TARE_API tare_status tare_convert_to_reference_decomposed_fx(const tare_model *prepared,
                                                             const tare_convert_options *options,
                                                             tare_model **out, tare_error *err);
/// Converts as tare_convert_to_reference_fx does and lowers to integer modules and functions.
/// Arguments and errors are the same.
TARE_API tare_status tare_convert_fx(const tare_model *prepared,
                                     const tare_convert_options *options, tare_model **out,
                                     tare_error *err);
/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_lower_options {
    uint32_t struct_size;
    /// The engine whose rounding rule the integer layers follow. The default is the engine in the
    /// model's record; without one, layers round as the quantize operators do (tare/pt2e.h).
    tare_engine engine;
} tare_lower_options;
/// Lowers a model with quantize and dequantize operators to integers: the reference model of either
/// flow, or a file that another quantizer wrote. Scales, zero points and integers stay as they are;
/// `reference` is not changed. The record says which operators stay float, and why. options may be
/// NULL. TARE_INVALID_ARGUMENT for models of another stage than TARE_STAGE_REFERENCE,
/// TARE_UNSUPPORTED for programs in reference representation (use_reference_representation). The
/// caller destroys *out.
TARE_API tare_status tare_lower(const tare_model *reference, const tare_lower_options *options,
                                tare_model **out, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
