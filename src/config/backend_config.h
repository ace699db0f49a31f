// SPDX-License-Identifier: Apache-2.0
// Internal interface of backend configs: patterns in complex form, and lookups for passes.
#ifndef CONFIG_BACKEND_CONFIG_H
#define CONFIG_BACKEND_CONFIG_H

#include "config/backend_functions.h"
#include "core/memory/arena.h"
#include "ir/pattern.h"
#include "tare/backend_config.h"

typedef struct dtype_config_list {
    tare_dtype_config *items;
    size_t count, capacity;
} dtype_config_list;

typedef struct observation_for_count { // one entry of num_tensor_args_to_observation_type
    int64_t tensor_arg_count;
    tare_observation_type type;
} observation_for_count;
typedef struct input_index { // one entry of input_type_to_index
    const char *input;       // static storage
    int64_t index;
} input_index;

typedef enum module_slot {
    MODULE_ROOT,
    MODULE_QAT,
    MODULE_REFERENCE_QUANTIZED,
    MODULE_FUSED,
    MODULE_SLOT_COUNT
} module_slot;

struct tare_pattern_config {
    arena memory;          // patterns and names
    const pattern *simple; // as the user wrote it: an operator, or a forward list in items; NULL if
                           // complex was set
    const pattern *given_complex; // as the user wrote it, when the complex form was set; else NULL
    const pattern
        *complex; // reverse nested form with canonical names; NULL only before a pattern is set
    bool is_complex_given; // set by set_pattern_complex
    bool is_stored; // in a backend config, keyed by the pattern, which cannot change any more
    tare_observation_type observation_type;
    dtype_config_list dtype_configs;
    const char *root_module, *qat_module, *reference_quantized_module,
        *fused_module;                              // public names; NULL: unset
    const char *spelled_modules[MODULE_SLOT_COUNT]; // the same as the user wrote them
    const char *fuser_method; // a built-in fuser's name, or that of `fuser`; NULL if it has none
    tare_fuser fuser;         // name of a built-in fuser or of `fuser`; NULL if it has none
    void *fuser_user;
    const char *root_node_getter_name, *extra_inputs_getter_name; // NULL: none, or unnamed
    tare_root_node_getter root_node_getter;
    void *root_node_getter_user;
    tare_extra_inputs_getter extra_inputs_getter;
    void *extra_inputs_getter_user;
    observation_for_count *observations;
    size_t observation_count, observation_capacity;
    input_index *input_indexes;
    size_t input_index_count, input_index_capacity;
    tare_status failed;      // of the first setter that failed; TARE_OK if none
    tare_error *first_error; // its message; NULL if there is none, or memory ran out
    size_t order;            // position in the backend config
    bool is_inherited;       // of the built-in config that a file extends
    bool has_place;          // it was read from a file
    size_t place;            // the position in the file's own list
};

struct tare_backend_config {
    char *name;
    tare_pattern_config **configs; // in order; owned
    size_t count, capacity;
    tare_status failed; // as in tare_pattern_config
    tare_error *first_error;
};

// Like the public setters, but they return their error instead of recording it. After a failure
// nothing has changed.
/// Operators in forward order; is_tuple: false for a single operator.
tare_status tare__pattern_config_assign_simple(tare_pattern_config *p, const char *const *names,
                                               size_t count, bool is_tuple, tare_error *err);
/// spelled: the pattern as the user wrote it; copied.
tare_status tare__pattern_config_assign_complex(tare_pattern_config *p, const pattern *spelled,
                                                tare_error *err);
tare_status tare__pattern_config_assign_observation(tare_pattern_config *p,
                                                    tare_observation_type type, tare_error *err);
tare_status tare__pattern_config_append_dtypes(tare_pattern_config *p, const tare_dtype_config *d,
                                               tare_error *err);
tare_status tare__pattern_config_replace_dtypes(tare_pattern_config *p,
                                                const tare_dtype_config *from, size_t count,
                                                tare_error *err);
/// type, name NULL: unset.
tare_status tare__pattern_config_assign_module(tare_pattern_config *p, module_slot slot,
                                               const char *type, tare_error *err);
tare_status tare__pattern_config_assign_fuser(tare_pattern_config *p, const char *name,
                                              const tare_backend_function *own, tare_error *err);
tare_status tare__pattern_config_assign_root_getter(tare_pattern_config *p, const char *name,
                                                    const tare_backend_function *own,
                                                    tare_error *err);
tare_status tare__pattern_config_assign_extra_getter(tare_pattern_config *p, const char *name,
                                                     const tare_backend_function *own,
                                                     tare_error *err);
tare_status tare__pattern_config_assign_count(tare_pattern_config *p, int64_t tensor_arg_count,
                                              tare_observation_type type, tare_error *err);
tare_status tare__pattern_config_assign_index(tare_pattern_config *p, const char *input,
                                              int64_t index, tare_error *err);
tare_status tare__pattern_config_clone(const tare_pattern_config *p, tare_pattern_config **out,
                                       tare_error *err);
/// Stores p and takes ownership of it, after a failure too.
tare_status tare__backend_config_store(tare_backend_config *b, tare_pattern_config *p,
                                       tare_error *err);
/// "OUTPUT_SHARE_OBSERVER_WITH_INPUT"; NULL past the end.
const char *tare__observation_type_name(size_t type);
/// The pattern as the user gave it: in forward order if simple, nested if complex.
static inline const pattern *tare__pattern_config_given(const tare_pattern_config *p) {
    return p->is_complex_given ? p->given_complex : p->simple;
}

/// True if the pattern config has a built-in or a user's fuser.
bool tare__pattern_config_has_fuser(const tare_pattern_config *p);
/// The effective observation type for a root with this many tensor arguments; torch's
/// AssertionError if the number is not listed.
tare_status tare__pattern_config_observation(const tare_pattern_config *p, int64_t tensor_arg_count,
                                             tare_observation_type *out, tare_error *err);
/// Index of "weight" or "bias" among the positional arguments, -1 if unlisted.
int64_t tare__pattern_config_input_index(const tare_pattern_config *p, const char *input);
/// The config whose (complex) pattern is exactly this operator, a class or a function; NULL if
/// there is none.
const tare_pattern_config *tare__backend_config_for_operator(const tare_backend_config *b,
                                                             const char *operator_name);
/// The reference module class for a root module class; of several configs the last wins; NULL if
/// there is none.
const char *tare__backend_config_reference_module(const tare_backend_config *b, const char *root);
bool tare__backend_config_is_qat_module(const tare_backend_config *b, const char *type);
bool tare__backend_config_is_fused_module(const tare_backend_config *b, const char *type);
/// The first error of any setter, if one failed. Does not check whether the configs make sense.
tare_status tare__backend_config_status(const tare_backend_config *b, tare_error *err);
/// Configs in matching order (spec/fx_passes.md §3): longest tuples first, single operators last,
/// stable. *out is an array of b->count pointers in `a`.
tare_status tare__backend_config_sorted(const tare_backend_config *b, arena *a,
                                        const tare_pattern_config ***out, tare_error *err);

#endif
