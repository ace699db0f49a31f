// SPDX-License-Identifier: Apache-2.0
// Reads a quantizer's config, with torchao's checks.
#include "config/qspec.h"
#include "core/error.h"
#include "core/struct_size.h"
#include "core/text/text.h"

static tare_quantization_config known_fields(const tare_quantization_config *config) {
    tare_quantization_config known = {0};
    if (config != NULL) tare__struct_copy(&known, sizeof known, config);
    return known;
}

static tare_status activation(tare_qspec *spec, const char *what, tare_qspec **out,
                              tare_error *err) {
    *out = NULL;
    if (spec == NULL) return TARE_OK;
    const tare_qscheme scheme = spec->fields.qscheme;
    if (scheme != TARE_PER_TENSOR_AFFINE && scheme != TARE_PER_TENSOR_SYMMETRIC)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the %s activation must be per_tensor_affine or per_tensor_symmetric, "
                          "found %s",
                          what, scheme == TARE_QSCHEME_UNSET ? "None" : tare_qscheme_name(scheme));
    *out = spec;
    return TARE_OK;
}

tare_status tare_input_act_qspec(const tare_quantization_config *config, tare_qspec **out,
                                 tare_error *err) {
    return activation(known_fields(config).input_activation, "input", out, err);
}

tare_status tare_output_act_qspec(const tare_quantization_config *config, tare_qspec **out,
                                  tare_error *err) {
    return activation(known_fields(config).output_activation, "output", out, err);
}

static tare_status refuse_weight(const tare_qspec *spec, tare_error *err) {
    text printed = {0};
    tare__qspec_repr(spec, &printed);
    tare_status status = tare__text_status(&printed, err);
    if (status == TARE_OK)
        status =
            tare__fail(err, TARE_INVALID_ARGUMENT, "Unsupported quantization_spec %s for weight",
                       tare__text_chars(&printed));
    tare__text_release(&printed);
    return status;
}

tare_status tare_weight_qspec(const tare_quantization_config *config, tare_qspec **out,
                              tare_error *err) {
    tare_qspec *spec = known_fields(config).weight;
    *out = NULL;
    if (spec == NULL) return TARE_OK;
    switch (spec->fields.qscheme) {
    case TARE_QSCHEME_UNSET:
    case TARE_PER_TENSOR_SYMMETRIC:
    case TARE_PER_CHANNEL_SYMMETRIC:
        *out = spec;
        return TARE_OK;
    default:
        return refuse_weight(spec, err);
    }
}

tare_status tare_bias_qspec(const tare_quantization_config *config, tare_qspec **out,
                            tare_error *err) {
    tare_qspec *spec = known_fields(config).bias;
    *out = NULL;
    if (spec == NULL) return TARE_OK;
    if (spec->fields.dtype != TARE_FLOAT32)
        return tare__hint(err,
                          tare__fail(err, TARE_INVALID_ARGUMENT,
                                     "Only float dtype for bias is supported for bias right now"),
                          "derive it: tare_qspec_create_derived");
    *out = spec;
    return TARE_OK;
}
