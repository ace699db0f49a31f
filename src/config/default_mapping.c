// SPDX-License-Identifier: Apache-2.0
// Chooses the default qconfig mapping of a backend, and adapts it to the backend's bounds for
// weights.
#include <math.h>
#include <string.h>

#include "config/backend_config.h"
#include "config/qconfig.h"
#include "observe/observer_spec.h"

static const char own_name[] = "tare";

// The range of per-channel weights in mapping "tare". With -127 and 127 the greatest magnitude is
// exactly a level. With torch's step of 1/127.5 of it, it would be half a step off in every
// channel.
enum { OWN_LOW = -127, OWN_HIGH = 127 };

bool tare__qconfig_mapping_is_torch(const tare_qconfig_mapping *m) {
    return m->default_name != NULL && strcmp(m->default_name, own_name) != 0 &&
           !tare__default_mapping_is_of_weights(m->default_name);
}

bool tare__qconfig_mapping_is_own(const tare_qconfig_mapping *m) {
    return m->default_name != NULL && strcmp(m->default_name, own_name) == 0;
}

// True if activations meet the requirements of mapping "tare": quint8 from 0 to 255, and a minimal
// scale that is not above torch's.
static bool takes_bytes(const tare_dtype_config *d) {
    const tare_dtype_constraints *c = &d->input;
    const uint32_t range = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
    if (c->dtype != TARE_QUINT8 || d->is_dynamic > 0) return false;
    if ((c->set & range) == range &&
        (c->quant_min_lower_bound > 0 || c->quant_max_upper_bound < 255))
        return false;
    if (c->set & TARE_SET_SCALE_MIN && c->scale_min_lower_bound > (double)0x1p-23F) return false;
    return !(c->set & TARE_SET_SCALE_EXACT);
}

static bool backend_takes_bytes(const tare_backend_config *b) {
    for (size_t i = 0; i < b->count; i++)
        for (size_t k = 0; k < b->configs[i]->dtype_configs.count; k++)
            if (takes_bytes(&b->configs[i]->dtype_configs.items[k])) return true;
    return false;
}

static bool is_default(const char *name) {
    for (size_t i = 0; tare_qconfig_mapping_default_name_at(i) != NULL; i++)
        if (strcmp(tare_qconfig_mapping_default_name_at(i), name) == 0) return true;
    return false;
}

// --- bounds of weights and scales ---

typedef struct weight_bounds {
    int64_t low, high;
    double scale_min;
    double activation_scale_min; // 0: none
} weight_bounds;

static void narrow(weight_bounds *b, const tare_dtype_config *d) {
    const tare_dtype_constraints *c = &d->weight;
    const uint32_t range = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
    if (takes_bytes(d) && d->input.set & TARE_SET_SCALE_MIN)
        b->activation_scale_min = fmax(b->activation_scale_min, d->input.scale_min_lower_bound);
    if (c->dtype != TARE_QINT8 || !takes_bytes(d)) return;
    if ((c->set & range) == range) {
        b->low = (int64_t)fmax((double)b->low, ceil(c->quant_min_lower_bound));
        b->high = (int64_t)fmin((double)b->high, floor(c->quant_max_upper_bound));
    }
    if (c->set & TARE_SET_SCALE_MIN) b->scale_min = fmax(b->scale_min, c->scale_min_lower_bound);
}

static weight_bounds find_bounds(const tare_backend_config *backend) {
    weight_bounds b = {.low = OWN_LOW, .high = OWN_HIGH, .scale_min = 0};
    for (size_t i = 0; i < backend->count; i++)
        for (size_t k = 0; k < backend->configs[i]->dtype_configs.count; k++)
            narrow(&b, &backend->configs[i]->dtype_configs.items[k]);
    return b;
}

static bool is_int8(const tare_observer_spec *spec) {
    const observer_argument *dtype = spec != NULL ? tare__observer_spec_find(spec, "dtype") : NULL;
    return dtype != NULL && dtype->kind == ARGUMENT_DTYPE && dtype->as.dtype == TARE_QINT8;
}

// Replaces the qconfig, if its weights are int8, by one whose weights keep the bounds.
static tare_status bind_weight(tare_qconfig **q, const weight_bounds *b, tare_error *err) {
    if (*q == NULL || !is_int8((*q)->weight)) return TARE_OK;
    tare_observer_spec *weight = NULL;
    TARE_TRY(tare__observer_spec_clone((*q)->weight, &weight, err));
    tare_observer_spec_set_int(weight, "quant_min", b->low);
    tare_observer_spec_set_int(weight, "quant_max", b->high);
    if (b->scale_min > 0) tare_observer_spec_set_double(weight, "eps", b->scale_min);
    tare_status status = tare__observer_spec_status(weight, err);
    tare_qconfig *made = status == TARE_OK ? tare_qconfig_create((*q)->activation, weight) : NULL;
    tare_observer_spec_release(weight);
    TARE_TRY(status);
    if (made == NULL) return tare__out_of_memory(err);
    tare_qconfig_release(*q);
    *q = made;
    return TARE_OK;
}

// Replaces the qconfig, if its activations have a minimal scale (eps), by one with the backend's.
static tare_status bind_activation(tare_qconfig **q, const weight_bounds *b, tare_error *err) {
    if (*q == NULL || b->activation_scale_min <= 0 || (*q)->activation == NULL ||
        tare__observer_spec_find((*q)->activation, "eps") == NULL)
        return TARE_OK;
    tare_observer_spec *activation = NULL;
    TARE_TRY(tare__observer_spec_clone((*q)->activation, &activation, err));
    tare_observer_spec_set_double(activation, "eps", b->activation_scale_min);
    tare_status status = tare__observer_spec_status(activation, err);
    tare_qconfig *made = status == TARE_OK ? tare_qconfig_create(activation, (*q)->weight) : NULL;
    tare_observer_spec_release(activation);
    TARE_TRY(status);
    if (made == NULL) return tare__out_of_memory(err);
    tare_qconfig_release(*q);
    *q = made;
    return TARE_OK;
}

static tare_status bind(tare_qconfig **q, const weight_bounds *b, tare_error *err) {
    TARE_TRY(bind_activation(q, b, err));
    const bool is_bound = b->low != OWN_LOW || b->high != OWN_HIGH || b->scale_min > 0;
    return is_bound ? bind_weight(q, b, err) : TARE_OK;
}

static tare_status bind_all(tare_qconfig_mapping *m, const weight_bounds *b, tare_error *err) {
    tare_status status = bind(&m->global, b, err);
    for (size_t i = 0; i < m->object_type.count && status == TARE_OK; i++)
        status = bind(&m->object_type.items[i].qconfig, b, err);
    return status;
}

tare_status tare_qconfig_mapping_for_backend(const tare_backend_config *backend, bool is_qat,
                                             tare_qconfig_mapping **out, tare_error *err) {
    TARE_TRY(tare_backend_config_check(backend, err));
    const char *own = tare_backend_config_name(backend);
    const bool takes_ours = backend_takes_bytes(backend) || !is_default(own);
    tare_qconfig_mapping *made = NULL;
    TARE_TRY(tare_qconfig_mapping_default(takes_ours ? own_name : own, is_qat, -1, &made, err));
    const weight_bounds bounds = find_bounds(backend);
    const tare_status status = takes_ours ? bind_all(made, &bounds, err) : TARE_OK;
    if (status == TARE_OK)
        *out = made;
    else
        tare_qconfig_mapping_destroy(made);
    return status;
}
