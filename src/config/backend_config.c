// SPDX-License-Identifier: Apache-2.0
// torch's BackendConfig: an ordered list of pattern configs, keyed by their patterns in complex
// form, and the lookups of passes.
#include "config/backend_config.h"

#include <string.h>

#include "config/pattern_form.h"
#include "core/memory/alloc.h"

tare_backend_config *tare_backend_config_create(const char *name) {
    tare_backend_config *b = tare__alloc_zeroed(1, sizeof *b);
    char *copy = tare__strdup(name ? name : "");
    if (!b || !copy) {
        tare__free(b);
        tare__free(copy);
        return NULL;
    }
    b->name = copy;
    return b;
}

void tare_backend_config_destroy(tare_backend_config *b) {
    if (!b) return;
    for (size_t i = 0; i < b->count; i++) tare_pattern_config_destroy(b->configs[i]);
    tare__free(b->configs);
    tare__free(b->name);
    tare_error_destroy(b->first_error);
    tare__free(b);
}

// Records a failure unless one is recorded already. Takes ownership of err, which is NULL if there
// was no memory for it.
static void keep_first(tare_backend_config *b, tare_status status, tare_error *err) {
    if (status == TARE_OK || b->failed != TARE_OK) {
        tare_error_destroy(err);
        return;
    }
    b->failed = status;
    b->first_error = err;
}

void tare_backend_config_set_name(tare_backend_config *b, const char *name) {
    if (!b) return;
    char *copy = tare__strdup(name ? name : "");
    if (!copy) {
        keep_first(b, TARE_OUT_OF_MEMORY, NULL);
        return;
    }
    tare__free(b->name);
    b->name = copy;
}

const char *tare_backend_config_name(const tare_backend_config *b) {
    return b->name;
}
size_t tare_backend_config_count(const tare_backend_config *b) {
    return b->count;
}

tare_pattern_config *tare_backend_config_mutable_at(tare_backend_config *b, size_t index) {
    return b != NULL && index < b->count ? b->configs[index] : NULL;
}

const tare_pattern_config *tare_backend_config_at(const tare_backend_config *b, size_t index) {
    return index < b->count ? b->configs[index] : NULL;
}

// Moves the error of a pattern config that is removed to the backend config, so that no error is
// lost.
static void inherit_error(tare_backend_config *b, tare_pattern_config *p) {
    keep_first(b, p->failed, p->first_error);
    p->first_error = NULL;
}

static size_t find_key(const tare_backend_config *b, const pattern *key) {
    size_t i = 0;
    while (i < b->count && !tare__pattern_equal(b->configs[i]->complex, key)) i++;
    return i;
}

tare_status tare__backend_config_store(tare_backend_config *b, tare_pattern_config *p,
                                       tare_error *err) {
    if (p->is_stored) // owned already, so it is not destroyed here
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a pattern config was given to backend configs twice");
    if (!p->complex) {
        inherit_error(b, p);
        tare_pattern_config_destroy(p);
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Either 'pattern' or 'pattern_complex_format' must be specified");
    }
    const size_t position = find_key(b, p->complex);
    if (position < b->count) {
        inherit_error(b, b->configs[position]);
        tare_pattern_config_destroy(b->configs[position]);
    } else if (tare__grow((void **)&b->configs, &b->capacity, b->count, sizeof(*b->configs))) {
        b->count++;
    } else {
        tare_pattern_config_destroy(p);
        return tare__out_of_memory(err);
    }
    p->order = position;
    p->is_stored = true;
    b->configs[position] = p;
    return TARE_OK;
}

// Takes ownership of p; a failure is recorded in b.
static tare_status store_and_keep(tare_backend_config *b, tare_pattern_config *p) {
    tare_error *err = tare_error_create();
    const tare_status status = p ? tare__backend_config_store(b, p, err)
                                 : tare__out_of_memory(err); // it could not be created
    keep_first(b, status, err);
    return status;
}

void tare_backend_config_set(tare_backend_config *b, tare_pattern_config *p) {
    if (b)
        store_and_keep(b, p);
    else
        tare_pattern_config_destroy(p);
}

tare_pattern_config *tare_backend_config_add(tare_backend_config *config, const char *a,
                                             const char *b, const char *c) {
    if (!config) return NULL;
    tare_pattern_config *p = tare_pattern_config_create();
    tare_pattern_config_set_pattern(p, a, b, c);
    return store_and_keep(config, p) == TARE_OK ? p : NULL;
}

// Reports the error that a setter recorded, or only its status if there was no memory for a
// message.
static tare_status report(tare_status failed, const tare_error *kept, tare_error *err) {
    if (failed == TARE_OK) return TARE_OK;
    if (kept)
        tare__error_copy(err, kept);
    else
        tare__fail(err, failed, "a setter failed, and no memory was left to say more");
    return failed;
}

tare_status tare__backend_config_status(const tare_backend_config *b, tare_error *err) {
    if (!b) return tare__out_of_memory(err); // NULL is the result of a failed create
    tare_status status = report(b->failed, b->first_error, err);
    for (size_t i = 0; i < b->count && status == TARE_OK; i++) {
        status = report(b->configs[i]->failed, b->configs[i]->first_error, err);
        if (status == TARE_OK) continue;
        text shown = {0};
        tare__pattern_to_text(tare__pattern_config_given(b->configs[i]), &shown);
        tare__at(err, status, "pattern %s", tare__text_chars(&shown));
        tare__text_release(&shown);
    }
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "backend config '%s'", b->name);
}

static tare_status clone_into(const tare_backend_config *b, tare_backend_config *out,
                              tare_error *err) {
    for (size_t i = 0; i < b->count; i++) {
        tare_pattern_config *copy = NULL;
        TARE_TRY(tare__pattern_config_clone(b->configs[i], &copy, err));
        TARE_TRY(tare__backend_config_store(out, copy, err));
    }
    out->failed = b->failed;
    if (!b->first_error) return TARE_OK;
    out->first_error = tare_error_create();
    if (!out->first_error) return tare__out_of_memory(err);
    tare__error_copy(out->first_error, b->first_error);
    return TARE_OK;
}

tare_status tare_backend_config_clone(const tare_backend_config *b, tare_backend_config **out,
                                      tare_error *err) {
    tare_backend_config *copy = tare_backend_config_create(b->name);
    if (!copy) return tare__out_of_memory(err);
    const tare_status status = clone_into(b, copy, err);
    if (status != TARE_OK) {
        tare_backend_config_destroy(copy);
        return status;
    }
    *out = copy;
    return TARE_OK;
}

bool tare__pattern_config_has_fuser(const tare_pattern_config *p) {
    return p->fuser_method || p->fuser;
}

static tare_status no_observation(const tare_pattern_config *p, int64_t tensor_arg_count,
                                  tare_error *err) {
    text shown = {0};
    tare__pattern_to_text(p->complex, &shown);
    tare__fail(err, TARE_INVALID_ARGUMENT,
               "Must provide observation_type config for tensor number %lld in "
               "num_tensor_args_to_observation_type for %s",
               (long long)tensor_arg_count, tare__text_chars(&shown));
    tare__text_release(&shown);
    return TARE_INVALID_ARGUMENT;
}

tare_status tare__pattern_config_observation(const tare_pattern_config *p, int64_t tensor_arg_count,
                                             tare_observation_type *out, tare_error *err) {
    if (p->observation_count == 0) {
        *out = p->observation_type;
        return TARE_OK;
    }
    for (size_t i = 0; i < p->observation_count; i++) {
        if (p->observations[i].tensor_arg_count != tensor_arg_count) continue;
        *out = p->observations[i].type;
        return TARE_OK;
    }
    return no_observation(p, tensor_arg_count, err);
}

int64_t tare__pattern_config_input_index(const tare_pattern_config *p, const char *input) {
    for (size_t i = 0; i < p->input_index_count; i++)
        if (strcmp(p->input_indexes[i].input, input) == 0) return p->input_indexes[i].index;
    return -1;
}

const tare_pattern_config *tare__backend_config_for_operator(const tare_backend_config *b,
                                                             const char *operator_name) {
    char buffer[256];
    const char *name = tare__operator_canonical(operator_name, buffer, sizeof buffer);
    for (size_t i = 0; i < b->count; i++) {
        const pattern *p = b->configs[i]->complex;
        const bool is_named =
            p->kind == PATTERN_MODULE || p->kind == PATTERN_FUNCTION || p->kind == PATTERN_METHOD;
        if (is_named && strcmp(p->name, name) == 0) return b->configs[i];
    }
    return NULL;
}

const char *tare__backend_config_reference_module(const tare_backend_config *b, const char *root) {
    char buffer[256];
    const char *name = tare__operator_canonical(root, buffer, sizeof buffer);
    for (size_t i = b->count; i-- > 0;) {
        const tare_pattern_config *p = b->configs[i];
        if (p->root_module && p->reference_quantized_module && strcmp(p->root_module, name) == 0)
            return p->reference_quantized_module;
    }
    return NULL;
}

bool tare__backend_config_is_qat_module(const tare_backend_config *b, const char *type) {
    char buffer[256];
    const char *name = tare__operator_canonical(type, buffer, sizeof buffer);
    for (size_t i = 0; i < b->count; i++)
        if (b->configs[i]->qat_module && strcmp(b->configs[i]->qat_module, name) == 0) return true;
    return false;
}

bool tare__backend_config_is_fused_module(const tare_backend_config *b, const char *type) {
    char buffer[256];
    const char *name = tare__operator_canonical(type, buffer, sizeof buffer);
    for (size_t i = 0; i < b->count; i++)
        if (b->configs[i]->fused_module && strcmp(b->configs[i]->fused_module, name) == 0)
            return true;
    return false;
}

// The number of operators in a tuple; 0 for a single operator, which sorts last.
static size_t tuple_length(const tare_pattern_config *p) {
    return p->complex->kind == PATTERN_TUPLE ? tare__pattern_leaf_count(p->complex) : 0;
}

tare_status tare__backend_config_sorted(const tare_backend_config *b, arena *a,
                                        const tare_pattern_config ***out, tare_error *err) {
    const tare_pattern_config **sorted =
        tare__arena_array(a, b->count ? b->count : 1, sizeof(*sorted));
    size_t *lengths = tare__arena_array(a, b->count ? b->count : 1, sizeof *lengths);
    if (!sorted || !lengths) return tare__out_of_memory(err);
    for (size_t i = 0; i < b->count; i++) {
        const size_t length = tuple_length(b->configs[i]);
        size_t position = i; // insertion sort is stable; the lists have some 200 entries
        for (; position > 0 && lengths[position - 1] < length; position--) {
            sorted[position] = sorted[position - 1];
            lengths[position] = lengths[position - 1];
        }
        sorted[position] = b->configs[i];
        lengths[position] = length;
    }
    *out = sorted;
    return TARE_OK;
}
