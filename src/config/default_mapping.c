// SPDX-License-Identifier: Apache-2.0
// Which default mapping fits a backend.
#include <string.h>

#include "config/backend_config.h"
#include "tare/qconfig.h"

// What "tare" asks of activations: quint8, 0 to 255, the least scale that observers have.
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

tare_status tare_qconfig_mapping_for_backend(const tare_backend_config *backend, bool is_qat,
                                             tare_qconfig_mapping **out, tare_error *err) {
    TARE_TRY(tare_backend_config_check(backend, err));
    const char *own = tare_backend_config_name(backend);
    const bool takes_ours = backend_takes_bytes(backend) || !is_default(own);
    return tare_qconfig_mapping_default(takes_ours ? "tare" : own, is_qat, -1, out, err);
}
