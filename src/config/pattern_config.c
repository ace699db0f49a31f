// SPDX-License-Identifier: Apache-2.0
// torch's BackendPatternConfig: one entry of a backend config. The assign functions return their
// error (the JSON reader adds the place); pattern_setters.c records the first one until the config
// is used.
#include <string.h>

#include "config/backend_config.h"
#include "config/builtin_names.h"
#include "config/constraints.h"
#include "config/pattern_form.h"
#include "core/memory/alloc.h"

static const char *const observation_names[] = {
    [TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT] = "OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT",
    [TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT] = "OUTPUT_SHARE_OBSERVER_WITH_INPUT",
    [TARE_INPUT_OUTPUT_NOT_OBSERVED] = "INPUT_OUTPUT_NOT_OBSERVED",
};

const char *tare__observation_type_name(size_t type) {
    return type < sizeof observation_names / sizeof *observation_names ? observation_names[type]
                                                                       : NULL;
}

tare_dtype_config tare_dtype_config_init(void) {
    return (tare_dtype_config){.is_dynamic = -1};
}

tare_pattern_config *tare_pattern_config_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_pattern_config));
}

void tare_pattern_config_destroy(tare_pattern_config *p) {
    if (!p) return;
    tare__arena_release(&p->memory);
    tare__free(p->dtype_configs.items);
    tare__free(p->observations);
    tare__free(p->input_indexes);
    tare_error_destroy(p->first_error);
    tare__free(p);
}

static tare_status check_key_is_open(const tare_pattern_config *p, tare_error *err) {
    if (!p->is_stored) return TARE_OK;
    tare__fail(err, TARE_INVALID_ARGUMENT,
               "the pattern of a config inside a backend config is its key and cannot change");
    return tare__hint(err, TARE_INVALID_ARGUMENT, "set a new pattern config");
}

static tare_status only_one_pattern(tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "Only one of 'pattern' or 'pattern_complex_format' can be set");
}

// Stores all forms of the pattern in the config's arena. An earlier pattern there stays unused.
static tare_status adopt(tare_pattern_config *p, const pattern *spelled, bool is_complex,
                         tare_error *err) {
    pattern *forms = tare__arena_array(&p->memory, 3, sizeof *forms);
    if (!forms) return tare__out_of_memory(err);
    pattern *given = &forms[0], *reversed = &forms[1], *canonical = &forms[2];
    TARE_TRY(tare__pattern_copy(&p->memory, spelled, given, err));
    if (is_complex)
        *reversed = *given;
    else
        TARE_TRY(tare__pattern_reverse(&p->memory, given, reversed, err));
    TARE_TRY(tare__pattern_check(reversed, err));
    TARE_TRY(tare__pattern_canonical(&p->memory, reversed, canonical, err));
    *(is_complex ? &p->given_complex : &p->simple) = given;
    p->complex = canonical;
    p->is_complex_given = is_complex;
    return TARE_OK;
}

static tare_status read_names(const char *const *names, size_t count, pattern *items,
                              tare_error *err) {
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__pattern_from_name(names[i], &items[i], err));
    return TARE_OK;
}

tare_status tare__pattern_config_assign_simple(tare_pattern_config *p, const char *const *names,
                                               size_t count, bool is_tuple, tare_error *err) {
    TARE_TRY(check_key_is_open(p, err));
    if (p->given_complex) return only_one_pattern(err);
    arena scratch = {0};
    pattern *items = tare__arena_array(&scratch, count ? count : 1, sizeof *items);
    if (!items) return tare__out_of_memory(err);
    tare_status status = read_names(names, count, items, err);
    const pattern tuple = {.kind = PATTERN_TUPLE, .items = items, .item_count = count};
    if (status == TARE_OK) status = adopt(p, is_tuple ? &tuple : items, false, err);
    tare__arena_release(&scratch);
    return status;
}

tare_status tare__pattern_config_assign_complex(tare_pattern_config *p, const pattern *spelled,
                                                tare_error *err) {
    TARE_TRY(check_key_is_open(p, err));
    if (p->simple) return only_one_pattern(err);
    return adopt(p, spelled, true, err);
}

static tare_status check_observation(tare_observation_type type, tare_error *err) {
    if (tare__observation_type_name((size_t)type)) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%d is no observation type", (int)type);
}

tare_status tare__pattern_config_assign_observation(tare_pattern_config *p,
                                                    tare_observation_type type, tare_error *err) {
    TARE_TRY(check_observation(type, err));
    p->observation_type = type;
    return TARE_OK;
}

static tare_status check_dtypes(const tare_dtype_config *d, tare_error *err) {
    TARE_TRY(tare__constraints_check("input_dtype", &d->input, err));
    TARE_TRY(tare__constraints_check("output_dtype", &d->output, err));
    TARE_TRY(tare__constraints_check("weight_dtype", &d->weight, err));
    if ((int)d->bias < TARE_DTYPE_UNSET || (int)d->bias >= TARE_DTYPE_COUNT)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%d is no dtype for bias_dtype",
                          (int)d->bias);
    if (d->is_dynamic < -1 || d->is_dynamic > 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected is_dynamic to be -1, 0 or 1, found %d", d->is_dynamic);
    return TARE_OK;
}

tare_status tare__pattern_config_append_dtypes(tare_pattern_config *p, const tare_dtype_config *d,
                                               tare_error *err) {
    TARE_TRY(check_dtypes(d, err));
    dtype_config_list *list = &p->dtype_configs;
    const tare_dtype_config copy = *d; // d may be in the list that grows
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return tare__out_of_memory(err);
    list->items[list->count++] = copy;
    return TARE_OK;
}

tare_status tare__pattern_config_replace_dtypes(tare_pattern_config *p,
                                                const tare_dtype_config *from, size_t count,
                                                tare_error *err) {
    for (size_t i = 0; i < count; i++) TARE_TRY(check_dtypes(&from[i], err));
    tare_dtype_config *items = NULL;
    if (count > 0) {
        items = tare__realloc_array(NULL, count, sizeof *items);
        if (!items) return tare__out_of_memory(err);
        memcpy(items, from, count * sizeof *items);
    }
    tare__free(p->dtype_configs.items);
    p->dtype_configs = (dtype_config_list){items, count, count};
    return TARE_OK;
}

static const char **module_field(tare_pattern_config *p, module_slot slot) {
    switch (slot) {
    case MODULE_ROOT:
        return &p->root_module;
    case MODULE_QAT:
        return &p->qat_module;
    case MODULE_REFERENCE_QUANTIZED:
        return &p->reference_quantized_module;
    case MODULE_FUSED:
        return &p->fused_module;
    case MODULE_SLOT_COUNT:
        break;
    }
    return NULL;
}

tare_status tare__pattern_config_assign_module(tare_pattern_config *p, module_slot slot,
                                               const char *type, tare_error *err) {
    pattern parsed = {0}, spelled = {0}, canonical = {0};
    if (type) {
        TARE_TRY(tare__pattern_from_name(type, &parsed, err));
        if (parsed.kind != PATTERN_MODULE)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a module class, found '%s'",
                              type);
        TARE_TRY(tare__pattern_canonical(&p->memory, &parsed, &canonical, err));
        TARE_TRY(tare__pattern_copy(&p->memory, &parsed, &spelled, err));
    }
    p->spelled_modules[slot] = spelled.name;
    *module_field(p, slot) = canonical.name;
    return TARE_OK;
}

static tare_status keep_name(tare_pattern_config *p, const char *name, const char **out,
                             tare_error *err) {
    *out = tare__arena_strdup(&p->memory, name);
    return *out ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__pattern_config_assign_fuser(tare_pattern_config *p, const char *name,
                                              const tare_backend_function *own, tare_error *err) {
    const char *kept = NULL;
    const fuser_name *row = NULL;
    const bool is_own = own != NULL && own->fuser != NULL;
    if (name && !is_own) TARE_TRY(tare__fuser_find(name, &row, NULL, 0, err));
    if (name) TARE_TRY(keep_name(p, name, &kept, err));
    p->fuser_method = kept;
    p->fuser = is_own ? own->fuser : NULL;
    p->fuser_user = is_own ? own->user : NULL;
    return TARE_OK;
}

static tare_status unknown_getter(const char *name,
                                  const char *(*name_at)(const void *unused, size_t index),
                                  tare_error *err) {
    tare__fail(err, TARE_NOT_FOUND, "no built-in getter is called '%s'", name);
    tare__hint(err, TARE_NOT_FOUND, "pass a getter of your own as a callback");
    return tare__suggest(err, TARE_NOT_FOUND, name, name_at, NULL);
}

tare_status tare__pattern_config_assign_root_getter(tare_pattern_config *p, const char *name,
                                                    const tare_backend_function *own,
                                                    tare_error *err) {
    const char *kept = NULL;
    const bool is_own = own != NULL && own->root_node_getter != NULL;
    tare_root_node_getter getter = is_own ? own->root_node_getter
                                   : name ? tare__root_node_getter_find(name)
                                          : NULL;
    if (name && !getter) return unknown_getter(name, tare__root_node_getter_name_at, err);
    if (name) TARE_TRY(keep_name(p, name, &kept, err));
    p->root_node_getter = getter;
    p->root_node_getter_user = is_own ? own->user : NULL;
    p->root_node_getter_name = kept;
    return TARE_OK;
}

tare_status tare__pattern_config_assign_extra_getter(tare_pattern_config *p, const char *name,
                                                     const tare_backend_function *own,
                                                     tare_error *err) {
    const char *kept = NULL;
    const bool is_own = own != NULL && own->extra_inputs_getter != NULL;
    tare_extra_inputs_getter getter = is_own ? own->extra_inputs_getter
                                      : name ? tare__extra_inputs_getter_find(name)
                                             : NULL;
    if (name && !getter) return unknown_getter(name, tare__extra_inputs_getter_name_at, err);
    if (name) TARE_TRY(keep_name(p, name, &kept, err));
    p->extra_inputs_getter = getter;
    p->extra_inputs_getter_user = is_own ? own->user : NULL;
    p->extra_inputs_getter_name = kept;
    return TARE_OK;
}

tare_status tare__pattern_config_assign_count(tare_pattern_config *p, int64_t tensor_arg_count,
                                              tare_observation_type type, tare_error *err) {
    TARE_TRY(check_observation(type, err));
    if (tensor_arg_count < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected a number of tensor arguments, found %lld",
                          (long long)tensor_arg_count);
    for (size_t i = 0; i < p->observation_count; i++) {
        if (p->observations[i].tensor_arg_count != tensor_arg_count) continue;
        p->observations[i].type = type;
        return TARE_OK;
    }
    if (!tare__grow((void **)&p->observations, &p->observation_capacity, p->observation_count,
                    sizeof *p->observations))
        return tare__out_of_memory(err);
    p->observations[p->observation_count++] = (observation_for_count){tensor_arg_count, type};
    return TARE_OK;
}

// torch's tensorrt config writes "input", which is never read.
static const char *const input_types[] = {"weight", "bias", "input"};

static const char *input_type_at(const void *unused, size_t i) {
    (void)unused;
    return i < sizeof input_types / sizeof *input_types ? input_types[i] : NULL;
}

static const char *known_input_type(const char *name) {
    const char *known = NULL;
    for (size_t i = 0; (known = input_type_at(NULL, i)) != NULL; i++)
        if (strcmp(known, name) == 0) break;
    return known;
}

static tare_status unknown_input_type(const char *name, tare_error *err) {
    tare__fail(err, TARE_INVALID_ARGUMENT, "unknown input '%s'", name);
    tare__hint(err, TARE_INVALID_ARGUMENT, "inputs are weight, bias and input");
    return tare__suggest(err, TARE_INVALID_ARGUMENT, name, input_type_at, NULL);
}

tare_status tare__pattern_config_assign_index(tare_pattern_config *p, const char *input,
                                              int64_t index, tare_error *err) {
    const char *known = known_input_type(input);
    if (!known) return unknown_input_type(input, err);
    if (index < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected the index of a positional argument, found %lld",
                          (long long)index);
    for (size_t i = 0; i < p->input_index_count; i++) {
        if (p->input_indexes[i].input != known) continue;
        p->input_indexes[i].index = index;
        return TARE_OK;
    }
    if (!tare__grow((void **)&p->input_indexes, &p->input_index_capacity, p->input_index_count,
                    sizeof *p->input_indexes))
        return tare__out_of_memory(err);
    p->input_indexes[p->input_index_count++] = (input_index){known, index};
    return TARE_OK;
}

static tare_status clone_names(const tare_pattern_config *p, tare_pattern_config *out,
                               tare_error *err) {
    for (int slot = 0; slot < MODULE_SLOT_COUNT; slot++)
        TARE_TRY(tare__pattern_config_assign_module(out, (module_slot)slot,
                                                    p->spelled_modules[slot], err));
    if (p->fuser_method) TARE_TRY(keep_name(out, p->fuser_method, &out->fuser_method, err));
    if (p->root_node_getter_name)
        TARE_TRY(keep_name(out, p->root_node_getter_name, &out->root_node_getter_name, err));
    if (p->extra_inputs_getter_name)
        TARE_TRY(keep_name(out, p->extra_inputs_getter_name, &out->extra_inputs_getter_name, err));
    return TARE_OK;
}

static tare_status clone_lists(const tare_pattern_config *p, tare_pattern_config *out,
                               tare_error *err) {
    TARE_TRY(tare__pattern_config_replace_dtypes(out, p->dtype_configs.items,
                                                 p->dtype_configs.count, err));
    for (size_t i = 0; i < p->observation_count; i++)
        TARE_TRY(tare__pattern_config_assign_count(out, p->observations[i].tensor_arg_count,
                                                   p->observations[i].type, err));
    for (size_t i = 0; i < p->input_index_count; i++)
        TARE_TRY(tare__pattern_config_assign_index(out, p->input_indexes[i].input,
                                                   p->input_indexes[i].index, err));
    return TARE_OK;
}

static tare_status clone_error(const tare_pattern_config *p, tare_pattern_config *out,
                               tare_error *err) {
    out->failed = p->failed;
    if (!p->first_error) return TARE_OK;
    out->first_error = tare_error_create();
    if (!out->first_error) return tare__out_of_memory(err);
    tare__error_copy(out->first_error, p->first_error);
    return TARE_OK;
}

static tare_status clone_into(const tare_pattern_config *p, tare_pattern_config *out,
                              tare_error *err) {
    const pattern *given = tare__pattern_config_given(p);
    if (given) TARE_TRY(adopt(out, given, p->is_complex_given, err));
    TARE_TRY(clone_names(p, out, err));
    TARE_TRY(clone_lists(p, out, err));
    out->observation_type = p->observation_type;
    out->fuser = p->fuser;
    out->fuser_user = p->fuser_user;
    out->root_node_getter = p->root_node_getter;
    out->root_node_getter_user = p->root_node_getter_user;
    out->extra_inputs_getter = p->extra_inputs_getter;
    out->extra_inputs_getter_user = p->extra_inputs_getter_user;
    return clone_error(p, out, err);
}

tare_status tare__pattern_config_clone(const tare_pattern_config *p, tare_pattern_config **out,
                                       tare_error *err) {
    tare_pattern_config *copy = tare_pattern_config_create();
    if (!copy) return tare__out_of_memory(err);
    const tare_status status = clone_into(p, copy, err);
    if (status != TARE_OK) {
        tare_pattern_config_destroy(copy);
        return status;
    }
    *out = copy;
    return TARE_OK;
}
