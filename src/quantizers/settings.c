// SPDX-License-Identifier: Apache-2.0
// Setters of a quantizer's settings.
#include "quantizers/settings.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"

tare_quantization_config tare__config_copy(const tare_quantization_config *from) {
    tare_quantization_config copy = {0};
    tare__struct_copy(&copy, sizeof copy, from);
    tare_qspec_retain(copy.input_activation);
    tare_qspec_retain(copy.output_activation);
    tare_qspec_retain(copy.weight);
    tare_qspec_retain(copy.bias);
    return copy;
}

void tare_quantization_config_release(tare_quantization_config *c) {
    tare_qspec_release(c->input_activation);
    tare_qspec_release(c->output_activation);
    tare_qspec_release(c->weight);
    tare_qspec_release(c->bias);
    *c = (tare_quantization_config){0};
}

tare_quantizer_settings *tare_quantizer_settings_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_quantizer_settings));
}

static void release_list(setting_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        tare__free(list->items[i].key);
        tare_quantization_config_release(&list->items[i].config);
    }
    tare__free(list->items);
}

void tare_quantizer_settings_destroy(tare_quantizer_settings *s) {
    if (s == NULL) return;
    tare_quantization_config_release(&s->global.config);
    release_list(&s->module_names);
    release_list(&s->module_types);
    release_list(&s->operators);
    tare__free(s);
}

static void set_config(setting *s, const tare_quantization_config *config) {
    const tare_quantization_config none = {0};
    const tare_quantization_config copy = tare__config_copy(config != NULL ? config : &none);
    tare_quantization_config_release(&s->config);
    s->config = copy;
    s->is_none = config == NULL;
}

static tare_status set_key(setting_list *list, const char *key,
                           const tare_quantization_config *config) {
    if (key == NULL) return TARE_INVALID_ARGUMENT;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].key, key) != 0) continue;
        set_config(&list->items[i], config);
        return TARE_OK;
    }
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return TARE_OUT_OF_MEMORY;
    setting made = {.key = tare__strdup(key)};
    if (made.key == NULL) return TARE_OUT_OF_MEMORY;
    set_config(&made, config);
    list->items[list->count++] = made;
    return TARE_OK;
}

static void note(tare_quantizer_settings *s, tare_status status) {
    if (s->status == TARE_OK) s->status = status;
}

void tare_quantizer_settings_set_global(tare_quantizer_settings *s,
                                        const tare_quantization_config *config) {
    if (s == NULL) return;
    s->has_global = true;
    set_config(&s->global, config);
}

void tare_quantizer_settings_set_module_name(tare_quantizer_settings *s, const char *name,
                                             const tare_quantization_config *config) {
    if (s != NULL) note(s, set_key(&s->module_names, name, config));
}

void tare_quantizer_settings_set_module_type(tare_quantizer_settings *s, const char *type,
                                             const tare_quantization_config *config) {
    if (s != NULL) note(s, set_key(&s->module_types, type, config));
}

void tare_quantizer_settings_set_operator(tare_quantizer_settings *s, const char *operator_name,
                                          const tare_quantization_config *config) {
    if (s != NULL) note(s, set_key(&s->operators, operator_name, config));
}

void tare_quantizer_settings_set_lenient(tare_quantizer_settings *s, bool is_lenient) {
    if (s != NULL) s->is_lenient = is_lenient;
}

static tare_status copy_list(setting_list *to, const setting_list *from) {
    for (size_t i = 0; i < from->count; i++) {
        const setting *s = &from->items[i];
        TARE_TRY(set_key(to, s->key, s->is_none ? NULL : &s->config));
    }
    return TARE_OK;
}

static tare_status copy_all(tare_quantizer_settings *to, const tare_quantizer_settings *from) {
    TARE_TRY(from->status);
    to->is_lenient = from->is_lenient;
    if (from->has_global)
        tare_quantizer_settings_set_global(to, from->global.is_none ? NULL : &from->global.config);
    TARE_TRY(copy_list(&to->module_names, &from->module_names));
    TARE_TRY(copy_list(&to->module_types, &from->module_types));
    return copy_list(&to->operators, &from->operators);
}

tare_status tare__settings_clone(const tare_quantizer_settings *from, tare_quantizer_settings **out,
                                 tare_error *err) {
    tare_quantizer_settings *made = tare_quantizer_settings_create();
    const tare_status status = made != NULL ? copy_all(made, from) : TARE_OUT_OF_MEMORY;
    if (status == TARE_OK) {
        *out = made;
        return TARE_OK;
    }
    tare_quantizer_settings_destroy(made);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(err);
    return tare__fail(err, status, "a setting of a quantizer was given without a name");
}
