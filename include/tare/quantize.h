// SPDX-License-Identifier: Apache-2.0
/// The flow: fuse, prepare, calibrate, convert, lower. A pass takes a model and hands out a new
/// one.
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

/// Arithmetic of integer operators, after the engines of torch (docs/differences.md): it decides
/// rounding, not the graph. Frozen in the lowered model.
typedef enum tare_engine {
    TARE_ENGINE_DEFAULT = 0, // x86
    TARE_ENGINE_X86 = 1,
    TARE_ENGINE_FBGEMM = 2,
    TARE_ENGINE_QNNPACK = 3,
    TARE_ENGINE_ONEDNN = 4,
} tare_engine;
/// "x86" and the like; "" for unknown numbers.
TARE_API const char *tare_engine_name(tare_engine engine);
/// TARE_ENGINE_DEFAULT if unknown. Backend names map to their engine ("native" to x86).
TARE_API tare_engine tare_engine_from_name(const char *name);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_prepare_options {
    uint32_t struct_size;
    const tare_backend_config *backend;          // NULL: native
    const tare_qconfig_mapping *qconfig_mapping; // needed
    bool is_lenient; // a selector that matches nothing is a warning in the record, not an error
    const tare_prepare_custom_config *custom_config; // NULL: none
    /// Input-weight equalization: a mapping of EqualizationQConfigs, whose activation observer is
    /// _InputEqualizationObserver, whose weight observer _WeightEqualizationObserver. NULL: none.
    const tare_qconfig_mapping *equalization;
} tare_prepare_options;

/// A node of a prepared model that stays float although its qconfig would quantize it, and why:
/// both go to the record.
typedef struct tare_float_choice {
    const char *node; // that computes an operator or calls a module, not an observer
    const char *rule, *reason;
} tare_float_choice;

typedef struct tare_convert_options {
    uint32_t struct_size;
    const tare_backend_config *backend; // NULL: native
    tare_engine engine;
    bool is_lenient; // an observer that saw nothing gives scale 1 and a warning, not an error
    const tare_convert_custom_config *custom_config; // NULL: none
    /// NULL: prepare's. Else it must have prepare's selectors, each with the same qconfig or none:
    /// convert can only switch quantization off.
    const tare_qconfig_mapping *qconfig_mapping;
    bool keeps_original_weights; // see tare_model_original_weight
    /// Nodes to leave float; an observer between such nodes alone goes, too. TARE_NOT_FOUND for a
    /// name that the model does not have, TARE_INVALID_ARGUMENT for one that stays float anyway.
    const tare_float_choice *float_choices;
    size_t float_choice_count;
} tare_convert_options;

/// Fuses what the backend fuses (NULL: native). The float model is not changed.
TARE_API tare_status tare_fuse_fx(const tare_model *model, const tare_backend_config *backend,
                                  tare_model **out, tare_error *err);
/// The same with a custom config (NULL: none). TARE_NOT_FOUND for an attribute to preserve that the
/// model does not have.
TARE_API tare_status tare_fuse_fx_custom(const tare_model *model,
                                         const tare_backend_config *backend,
                                         const tare_fuse_custom_config *custom, tare_model **out,
                                         tare_error *err);
/// Fuses, matches patterns and inserts observers. TARE_NOT_FOUND for a selector that matches
/// nothing.
TARE_API tare_status tare_prepare_fx(const tare_model *model, const tare_prepare_options *options,
                                     tare_model **out, tare_error *err);
/// As tare_prepare_fx, for quantization-aware training: fake quantizers instead of observers,
/// batch norms kept beside their convolutions, weighted modules in their QAT form. The mapping must
/// be one of fake quantizers ({"default_qat": "x86"}). Modules that are fused must be in one mode,
/// as torch demands; QAT modules begin in training mode whatever that is.
TARE_API tare_status tare_prepare_qat_fx(const tare_model *model,
                                         const tare_prepare_options *options, tare_model **out,
                                         tare_error *err);
/// Runs a prepared model once on these inputs; its observers watch. inputs: one tensor per model
/// input, as a batch; those at the end that have defaults may be left out. TARE_INVALID_ARGUMENT,
/// before any observer has seen them, for another number of inputs and for NaNs, named by input and
/// index. Infinities are let through, as the masks of some models have them; convert refuses what
/// observers cannot make parameters of. tare_calibrate_data refuses them, unless it is lenient.
TARE_API tare_status tare_calibrate(tare_model *prepared, const tare_tensor *const *inputs,
                                    size_t input_count, tare_error *err);
/// Train mode (true) or eval mode of a model and its modules, as torch's train() and eval(): batch
/// norms use the batch's statistics and update their own, or use their own. The batch norms of
/// frozen QAT modules stay as they are. The calls of an exported program, which say themselves
/// whether they train, stay as they are written, momentum and eps too: the mode is one of runs,
/// kept by passes, not by files.
TARE_API tare_status tare_model_set_training(tare_model *model, bool training, tare_error *err);
/// Do fake quantizers watch what passes (torch's enable_observer and disable_observer)? Those of a
/// new model do, in eval mode too.
TARE_API tare_status tare_model_enable_observer(tare_model *prepared, bool enabled,
                                                tare_error *err);
/// Do fake quantizers round what passes (enable_fake_quant, disable_fake_quant)?
TARE_API tare_status tare_model_enable_fake_quant(tare_model *prepared, bool enabled,
                                                  tare_error *err);
/// Do the batch norms inside QAT convolutions keep their statistics, in train mode too
/// (freeze_bn_stats), or follow the batches again (update_bn_stats)?
TARE_API tare_status tare_model_freeze_bn_stats(tare_model *prepared, bool frozen, tare_error *err);
/// What learnable fake quantizers do; new ones follow their observers.
typedef enum tare_learnable_mode {
    TARE_LEARNABLE_LEARN = 1,    // enable_param_learning: scale and zero point are parameters
    TARE_LEARNABLE_ESTIMATE = 2, // enable_static_estimate: they follow the observer
    TARE_LEARNABLE_OBSERVE = 3,  // enable_static_observation: as ESTIMATE, and nothing is rounded
} tare_learnable_mode;
TARE_API tare_status tare_model_set_learnable_mode(tare_model *prepared, tare_learnable_mode mode,
                                                   tare_error *err);
/// Replaces observers by quantize and dequantize, float modules by reference modules. options may
/// be NULL. TARE_INVALID_ARGUMENT for observers that have seen no data.
TARE_API tare_status tare_convert_to_reference_fx(const tare_model *prepared,
                                                  const tare_convert_options *options,
                                                  tare_model **out, tare_error *err);
/// As tare_convert_to_reference_fx, with quantized_decomposed operators and literal parameters.
TARE_API tare_status tare_convert_to_reference_decomposed_fx(const tare_model *prepared,
                                                             const tare_convert_options *options,
                                                             tare_model **out, tare_error *err);
/// Converts and lowers to integer modules and functions.
TARE_API tare_status tare_convert_fx(const tare_model *prepared,
                                     const tare_convert_options *options, tare_model **out,
                                     tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
