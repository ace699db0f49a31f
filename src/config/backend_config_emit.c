// SPDX-License-Identifier: Apache-2.0
// Writes backend configs as JSON, with the keys and their order from torch's to_dict.
#include <inttypes.h>
#include <stdio.h>

#include "config/backend_config.h"
#include "config/constraints.h"
#include "config/pattern_form.h"
#include "core/json/emit.h"

static void emit_constraints(json_emitter *e, const char *role, const tare_dtype_constraints *c) {
    if (c->dtype == TARE_DTYPE_UNSET) return;
    tare__emit_key(e, role);
    tare__emit_open(e, '{');
    tare__emit_key(e, "dtype");
    tare__emit_string(e, tare_dtype_name(c->dtype));
    tare__constraints_emit(c, e);
    tare__emit_close(e, '}');
}

static void emit_dtype_config(json_emitter *e, const tare_dtype_config *d) {
    tare__emit_open(e, '{');
    emit_constraints(e, "input_dtype", &d->input);
    emit_constraints(e, "output_dtype", &d->output);
    emit_constraints(e, "weight_dtype", &d->weight);
    if (d->bias != TARE_DTYPE_UNSET) {
        tare__emit_key(e, "bias_dtype");
        tare__emit_string(e, tare_dtype_name(d->bias));
    }
    if (d->is_dynamic >= 0) {
        tare__emit_key(e, "is_dynamic");
        tare__emit_bool(e, d->is_dynamic > 0);
    }
    tare__emit_close(e, '}');
}

static void emit_optional(json_emitter *e, const char *key, const char *name) {
    if (!name) return;
    tare__emit_key(e, key);
    tare__emit_string(e, name);
}

static void emit_maps(json_emitter *e, const tare_pattern_config *p) {
    if (p->observation_count > 0) {
        tare__emit_key(e, "num_tensor_args_to_observation_type");
        tare__emit_open(e, '{');
        for (size_t i = 0; i < p->observation_count; i++) {
            char count[24];
            snprintf(count, sizeof count, "%" PRId64, p->observations[i].tensor_arg_count);
            emit_optional(e, count, tare__observation_type_name((size_t)p->observations[i].type));
        }
        tare__emit_close(e, '}');
    }
    if (p->input_index_count > 0) {
        tare__emit_key(e, "input_type_to_index");
        tare__emit_open(e, '{');
        for (size_t i = 0; i < p->input_index_count; i++) {
            tare__emit_key(e, p->input_indexes[i].input);
            tare__emit_int(e, p->input_indexes[i].index);
        }
        tare__emit_close(e, '}');
    }
}

static void emit_pattern_config(json_emitter *e, const tare_pattern_config *p) {
    tare__emit_open(e, '{');
    emit_optional(e, "observation_type", tare__observation_type_name((size_t)p->observation_type));
    tare__emit_key(e, "dtype_configs");
    tare__emit_open(e, '[');
    for (size_t i = 0; i < p->dtype_configs.count; i++)
        emit_dtype_config(e, &p->dtype_configs.items[i]);
    tare__emit_close(e, ']');
    if (!p->is_complex_given) {
        tare__emit_key(e, "pattern");
        tare__pattern_emit(p->simple, e);
    }
    emit_optional(e, "root_module", p->spelled_modules[MODULE_ROOT]);
    emit_optional(e, "qat_module", p->spelled_modules[MODULE_QAT]);
    emit_optional(e, "reference_quantized_module_for_root",
                  p->spelled_modules[MODULE_REFERENCE_QUANTIZED]);
    emit_optional(e, "fused_module", p->spelled_modules[MODULE_FUSED]);
    emit_optional(e, "fuser_method", p->fuser_method);
    emit_optional(e, "root_node_getter", p->root_node_getter_name);
    emit_optional(e, "extra_inputs_getter", p->extra_inputs_getter_name);
    emit_maps(e, p);
    if (p->is_complex_given) {
        tare__emit_key(e, "pattern_complex_format");
        tare__pattern_emit(p->given_complex, e);
    }
    tare__emit_close(e, '}');
}

static tare_status check_has_json(const tare_pattern_config *p, tare_error *err) {
    const char *callback = NULL;
    if (p->fuser && !p->fuser_method) callback = "fuser";
    if (p->root_node_getter && !p->root_node_getter_name) callback = "root node getter";
    if (p->extra_inputs_getter && !p->extra_inputs_getter_name) callback = "extra inputs getter";
    if (!callback) return TARE_OK;
    text shown = {0};
    tare__pattern_to_text(tare__pattern_config_given(p), &shown);
    tare__fail(err, TARE_UNSUPPORTED, "the %s of pattern %s is a callback, which JSON cannot hold",
               callback, tare__text_chars(&shown));
    tare__text_release(&shown);
    return TARE_UNSUPPORTED;
}

tare_status tare_backend_config_to_json(const tare_backend_config *b, char **out, tare_error *err) {
    TARE_TRY(tare__backend_config_status(b, err));
    for (size_t i = 0; i < b->count; i++) TARE_TRY(check_has_json(b->configs[i], err));
    text json = {0};
    json_emitter e = {.out = &json};
    tare__emit_open(&e, '{');
    tare__emit_key(&e, "name");
    tare__emit_string(&e, b->name);
    tare__emit_key(&e, "configs");
    tare__emit_open(&e, '[');
    for (size_t i = 0; i < b->count; i++) emit_pattern_config(&e, b->configs[i]);
    tare__emit_close(&e, ']');
    tare__emit_close(&e, '}');
    const tare_status status = tare__text_status(&json, err);
    if (status == TARE_OK) *out = tare__text_take(&json);
    tare__text_release(&json);
    return status;
}
