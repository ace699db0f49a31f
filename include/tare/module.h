// SPDX-License-Identifier: Apache-2.0
/// Modules, for extensions: a fuser or a module class (float, fused, reference, ..) of the user's
/// own.
#ifndef TARE_MODULE_H
#define TARE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/observer.h"
#include "tare/status.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A module: constructor values, tensors and child modules. Reference counted. One thread at a time
/// may use a module tree.
typedef struct tare_module tare_module;
/// A registry of the user's classes and functions, in addition to the built-in ones.
typedef struct tare_context tare_context;

/// Quantization parameters of a weight, or of a custom module's output, lent.
typedef struct tare_weight_qparams {
    uint32_t struct_size;
    tare_dtype dtype;
    tare_qscheme qscheme;
    int channel_axis;                 // >= 0; 0 for per-tensor schemes
    int64_t count;                    // 1 for per-tensor schemes
    const double *scale, *zero_point; // [count]
    int64_t quant_min, quant_max;
} tare_weight_qparams;

/// The stage of the flow that a class of modules belongs to.
typedef enum tare_module_role {
    TARE_MODULE_FLOAT = 1,
    TARE_MODULE_FUSED = 2,
    TARE_MODULE_QAT = 3,
    TARE_MODULE_REFERENCE = 4,
    TARE_MODULE_OBSERVED = 5,  // of custom modules: made from the float module by prepare
    TARE_MODULE_QUANTIZED = 6, // of custom modules: made from the observed module by convert
} tare_module_role;

/// A class of modules of the user's own. Convert calls `from_float` of a reference class with the
/// float module and its weight's parameters. For custom modules, prepare calls `from_float` of the
/// observed class with the float module and NULL, and convert calls that of the quantized class
/// with the observed module and the parameters of its output (torch's from_observed; NULL where the
/// output is not quantized). A run calls `shape`, then `forward`; tare_model_print calls
/// `describe`.
typedef struct tare_module_class {
    uint32_t struct_size;
    const char *name;       // qualified: "my_backend.reference.Linear"
    const char *print_name; // the name that tare_model_print shows
    tare_module_role role;
    void *user; // passed to each call; must outlive the context
    /// Copies what it needs from `source` into `made`, an empty module of this class
    /// (tare_module_set_*). NULL: constructor values and tensors are copied as they are, weight
    /// parameters as reference modules hold them.
    tare_status (*from_float)(void *user, const tare_module *source,
                              const tare_weight_qparams *weight, tare_module *made,
                              tare_error *err);
    /// Computes the shape of the result. Modules have one result, a float32 tensor; a quantized
    /// module's result is a tensor with the parameters of its output. out_shape has room for
    /// TARE_MAX_DIMS.
    tare_status (*shape)(void *user, const tare_module *module, const tare_tensor *const *inputs,
                         size_t input_count, int *out_ndim, int64_t *out_shape, tare_error *err);
    /// Computes the result into `out`, a tensor of that shape.
    tare_status (*forward)(void *user, const tare_module *module, const tare_tensor *const *inputs,
                           size_t input_count, tare_tensor *out, tare_error *err);
    /// Writes the text that tare_model_print shows in parentheses; NULL: none.
    tare_status (*describe)(void *user, const tare_module *module, tare_writer write,
                            void *write_user, tare_error *err);
} tare_module_class;

/// Creates an empty context. The caller destroys *out, after all models and modules that were made
/// with it.
TARE_API tare_status tare_context_create(tare_context **out, tare_error *err);
/// Frees a context. NULL is allowed.
TARE_API void tare_context_destroy(tare_context *context);
/// Registers a class of modules. The struct is copied; its strings and `user` are not, and must
/// outlive the context. TARE_INVALID_ARGUMENT if the name is taken or a required function is
/// missing.
TARE_API tare_status tare_context_add_module_class(tare_context *context,
                                                   const tare_module_class *module_class,
                                                   tare_error *err);
/// Registers a class of observers. The struct is copied; its strings and `user` are not, and must
/// outlive the context. TARE_INVALID_ARGUMENT if the name is taken or a required function is
/// missing.
TARE_API tare_status tare_context_add_observer_class(tare_context *context,
                                                     const tare_observer_class *observer_class,
                                                     tare_error *err);

/// Creates an empty module of a built-in class or one of the context (NULL: built-in ones only).
/// TARE_NOT_FOUND, with a suggestion, for unknown classes; TARE_INVALID_ARGUMENT for observer
/// classes, whose modules prepare makes from qconfigs. The caller releases *out.
TARE_API tare_status tare_module_create(const tare_context *context, const char *class_name,
                                        tare_module **out, tare_error *err);
/// Drops a reference; the last one frees the module. NULL is allowed.
TARE_API void tare_module_release(tare_module *module);
/// The qualified name of the module's class ("torch.nn.Conv2d"). Lent by the class.
TARE_API const char *tare_module_class_name(const tare_module *module);
/// Is the module in training mode? At first, the mode in which it was exported.
TARE_API bool tare_module_is_training(const tare_module *module);
/// Sets the training mode of this module alone; see tare_model_set_training for a whole model.
TARE_API void tare_module_set_training(tare_module *module, bool training);
/// A parameter or buffer by name ("weight"), lent by the module; NULL if absent.
TARE_API const tare_tensor *tare_module_tensor(const tare_module *module, const char *name);
/// Sets a parameter. The module takes its own reference; a NULL tensor registers None, as torch's
/// register_parameter does.
TARE_API tare_status tare_module_set_tensor(tare_module *module, const char *name,
                                            tare_tensor *tensor, tare_error *err);
/// A child by name, lent by the module; NULL if absent.
TARE_API const tare_module *tare_module_child(const tare_module *module, const char *name);
/// Sets a child. The module takes its own reference.
TARE_API tare_status tare_module_set_child(tare_module *module, const char *name,
                                           const tare_module *child, tare_error *err);
/// Reads the dtype, range, axis and other facts of an observer or fake quantizer of a prepared
/// model, with defaults resolved. False for other modules; *out is then unchanged.
TARE_API bool tare_module_observer_info(const tare_module *module, tare_observer_info *out);
/// An integer constructor value ("groups"); `otherwise` if it is absent or not an integer.
TARE_API int64_t tare_module_config_int(const tare_module *module, const char *key,
                                        int64_t otherwise);
/// A numeric constructor value, integers included; `otherwise` if it is absent or not a number.
TARE_API double tare_module_config_double(const tare_module *module, const char *key,
                                          double otherwise);
/// Sets an integer constructor value; the key is copied.
TARE_API tare_status tare_module_set_config_int(tare_module *module, const char *key, int64_t v,
                                                tare_error *err);
/// Sets a float constructor value; the key is copied.
TARE_API tare_status tare_module_set_config_double(tare_module *module, const char *key, double v,
                                                   tare_error *err);
/// Copies all constructor values of `from` to `module`.
TARE_API tare_status tare_module_copy_config(tare_module *module, const tare_module *from,
                                             tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
