// SPDX-License-Identifier: Apache-2.0
// The quantized forms of a graph, made by the flows: of FX mode fake-quantized, reference,
// decomposed and lowered ones, dynamic ones among them; of exported programs converted ones, those
// of integers written out, and lowered ones.
#include <stdio.h>
#include <string.h>

#include "support/differential/differential.h"
#include "tare/tare.h"

#define OBSERVED(class, fields) "{\"class\": \"" class "\", \"kwargs\": {" fields "}}"
#define QCONFIG(activation, weight)                                                                \
    "{\"global\": {\"activation\": " activation ", \"weight\": " weight "}}"
#define DYNAMIC                                                                                    \
    OBSERVED("PlaceholderObserver", "\"dtype\": \"torch.quint8\", \"quant_min\": 0, "              \
                                    "\"quant_max\": 255, \"is_dynamic\": true")
#define HALF(fields) OBSERVED("PlaceholderObserver", "\"dtype\": \"torch.float16\"" fields)
#define SYMMETRIC                                                                                  \
    OBSERVED("MinMaxObserver",                                                                     \
             "\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_symmetric\"")
#define PER_CHANNEL(dtype, scheme)                                                                 \
    OBSERVED("PerChannelMinMaxObserver",                                                           \
             "\"dtype\": \"torch." dtype "\", \"qscheme\": \"torch.per_channel_" scheme            \
             "\", \"ch_axis\": 0")

typedef struct mapping_row {
    const char *name, *json;
    bool is_qat;
} mapping_row;

static const mapping_row mappings[] = {
    {"x86", "{\"default\": \"x86\"}", false},
    {"tare", "{\"default\": \"tare\"}", false},
    {"qnnpack", "{\"default\": \"qnnpack\"}", false},
    {"onednn", "{\"default\": \"onednn\"}", false},
    {"symmetric_qnnpack", "{\"default\": \"symmetric_qnnpack\"}", false},
    {"fbgemm", "{\"default\": \"fbgemm\"}", false},
    {"dynamic", QCONFIG(DYNAMIC, SYMMETRIC), false},
    {"dynamic per channel", QCONFIG(DYNAMIC, PER_CHANNEL("qint8", "symmetric")), false},
    {"dynamic float16", QCONFIG(HALF(", \"is_dynamic\": true"), HALF("")), false},
    {"weights only",
     QCONFIG(OBSERVED("PlaceholderObserver", ""), PER_CHANNEL("quint8", "affine_float_qparams")),
     false},
    {"qat x86", "{\"default_qat\": \"x86\"}", true},
    {"qat qnnpack", "{\"default_qat\": \"qnnpack\"}", true},
};
enum { MAPPING_COUNT = sizeof mappings / sizeof *mappings };

// A flow may refuse a graph, but not for a fault of its own.
static bool is_fair(differential *d, tare_status status, const char *form) {
    if (status != TARE_INTERNAL || d->finding == NULL) return true;
    tare__text_printf(d->finding, "%s: an internal error: %s: %s\n", form, tare_error_where(d->err),
                      tare_error_message(d->err));
    return false;
}

// Takes the model, which is there if status says so.
static bool compare_made(differential *d, tare_status status, tare_model *made, const char *flow,
                         const char *form) {
    char words[512];
    snprintf(words, sizeof words, "%s %s", flow, form);
    const bool same =
        is_fair(d, status, words) && (status != TARE_OK || differential_compare(d, made, words));
    tare_model_destroy(made);
    return same;
}

// --- FX mode ---

typedef tare_status (*fx_convert)(const tare_model *prepared, const tare_convert_options *options,
                                  tare_model **out, tare_error *err);

static bool convert_fx(differential *d, const tare_model *prepared,
                       const tare_backend_config *backend, uint32_t engine, const char *flow) {
    static const struct {
        fx_convert convert;
        const char *form;
    } forms[] = {
        {tare_convert_to_reference_fx, "reference"},
        {tare_convert_to_reference_decomposed_fx, "decomposed"},
        {tare_convert_fx, "lowered"},
    };
    const tare_convert_options options = {.struct_size = sizeof options,
                                          .backend = backend,
                                          .engine = (tare_engine)engine,
                                          .is_lenient = true};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        tare_model *made = NULL;
        const tare_status status = forms[i].convert(prepared, &options, &made, d->err);
        if (!compare_made(d, status, made, flow, forms[i].form)) return false;
    }
    return true;
}

// Without observers, whose statistics would change from run to run.
static bool compare_fake_quantized(differential *d, tare_model *prepared, const char *flow) {
    char form[96];
    snprintf(form, sizeof form, "%s fake-quantized", flow);
    if (tare_model_set_training(prepared, false, d->err) != TARE_OK ||
        tare_model_enable_observer(prepared, false, d->err) != TARE_OK)
        return true;
    return differential_compare(d, prepared, form);
}

static bool quantize_fx(differential *d, const tare_model *model,
                        const tare_backend_config *backend, const mapping_row *row,
                        const char *flow) {
    tare_qconfig_mapping *mapping = NULL;
    tare_model *prepared = NULL;
    if (tare_qconfig_mapping_from_json(row->json, strlen(row->json), &mapping, d->err) != TARE_OK)
        return is_fair(d, TARE_INTERNAL, row->name);
    const tare_prepare_options options = {.struct_size = sizeof options,
                                          .backend = backend,
                                          .qconfig_mapping = mapping,
                                          .is_lenient = true};
    tare_status status = row->is_qat ? tare_prepare_qat_fx(model, &options, &prepared, d->err)
                                     : tare_prepare_fx(model, &options, &prepared, d->err);
    if (status == TARE_OK && row->is_qat) status = tare_model_set_training(prepared, false, d->err);
    if (status == TARE_OK) status = tare_calibrate(prepared, d->inputs, d->input_count, d->err);
    const bool same =
        is_fair(d, status, flow) &&
        (status != TARE_OK || ((!row->is_qat || compare_fake_quantized(d, prepared, flow)) &&
                               convert_fx(d, prepared, backend, choose(d->choices, 5), flow)));
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
    return same;
}

static uint32_t count_backends(void) {
    uint32_t count = 0;
    while (tare_backend_config_builtin_name_at(count) != NULL) count++;
    return count;
}

static bool quantize_by_backend(differential *d, const tare_model *model) {
    const mapping_row *row = &mappings[choose(d->choices, MAPPING_COUNT)];
    const char *name = tare_backend_config_builtin_name_at(choose(d->choices, count_backends()));
    tare_backend_config *backend = NULL;
    char flow[64];
    snprintf(flow, sizeof flow, "fx %s, %s", name, row->name);
    if (tare_backend_config_builtin(name, &backend, d->err) != TARE_OK)
        return is_fair(d, TARE_INTERNAL, name);
    const bool same = quantize_fx(d, model, backend, row, flow);
    tare_backend_config_destroy(backend);
    return same;
}

// --- exported programs ---

static bool lower_program(differential *d, const tare_model *prepared, const char *flow) {
    tare_model *converted = NULL, *made = NULL;
    const tare_convert_pt2e_options plain = {.struct_size = sizeof plain,
                                             .is_lenient = true,
                                             .keeps_quantize = choose(d->choices, 4) == 3};
    tare_status status = tare_convert_pt2e(prepared, &plain, &converted, d->err);
    if (status != TARE_OK) return is_fair(d, status, flow);
    const tare_lower_pt2e_options options = {.struct_size = sizeof options,
                                             .engine = (tare_engine)choose(d->choices, 5)};
    status = tare_lower_pt2e(converted, &options, &made, d->err);
    const bool same = compare_made(d, status, made, flow, "lowered");
    return compare_made(d, TARE_OK, converted, flow, "converted") && same;
}

static bool convert_program(differential *d, const tare_model *prepared, const char *flow) {
    tare_model *made = NULL;
    const tare_convert_pt2e_options written_out = {.struct_size = sizeof written_out,
                                                   .is_lenient = true,
                                                   .use_reference_representation = true};
    if (!lower_program(d, prepared, flow)) return false;
    const tare_status status = tare_convert_pt2e(prepared, &written_out, &made, d->err);
    return compare_made(d, status, made, flow, "written out");
}

static bool quantize_program(differential *d, const tare_model *model, const char *name,
                             const char *config, bool is_qat, const char *flow) {
    char json[128];
    tare_quantizer_settings *settings = NULL;
    tare_quantizer *quantizer = NULL;
    tare_model *prepared = NULL;
    snprintf(json, sizeof json, "{\"global\": {\"default\": {%s}}}", config);
    tare_status status =
        tare_quantizer_settings_from_json(json, strlen(json), name, &settings, d->err);
    if (status == TARE_OK) status = tare_quantizer_builtin(name, settings, &quantizer, d->err);
    if (status == TARE_OK)
        status = is_qat ? tare_prepare_qat_pt2e(model, quantizer, &prepared, d->err)
                        : tare_prepare_pt2e(model, quantizer, &prepared, d->err);
    if (status == TARE_OK && is_qat) status = tare_model_set_training(prepared, false, d->err);
    if (status == TARE_OK) status = tare_calibrate(prepared, d->inputs, d->input_count, d->err);
    const bool same =
        is_fair(d, status, flow) &&
        (status != TARE_OK || ((!is_qat || compare_fake_quantized(d, prepared, flow)) &&
                               convert_program(d, prepared, flow)));
    tare_model_destroy(prepared);
    tare_quantizer_destroy(quantizer);
    tare_quantizer_settings_destroy(settings);
    return same;
}

static bool quantize_by_quantizer(differential *d, const tare_model *model) {
    static const struct {
        const char *quantizer, *config;
        bool is_qat;
    } ways[] = {
        {"XNNPACKQuantizer", "\"is_per_channel\": true", false},
        {"X86InductorQuantizer", "", false},
        {"XNNPACKQuantizer", "", false},
        {"X86InductorQuantizer", "\"is_dynamic\": true", false},
        {"XNNPACKQuantizer", "\"is_dynamic\": true, \"is_per_channel\": true", false},
        {"ArmInductorQuantizer", "", false},
        {"XPUInductorQuantizer", "", false},
        {"EmbeddingQuantizer", "", false},
        {"XNNPACKQuantizer", "\"is_qat\": true, \"is_per_channel\": true", true},
        {"X86InductorQuantizer", "\"is_qat\": true", true},
    };
    const uint32_t at = choose(d->choices, sizeof ways / sizeof *ways);
    char flow[96];
    snprintf(flow, sizeof flow, "%s %s", ways[at].quantizer, ways[at].config);
    return quantize_program(d, model, ways[at].quantizer, ways[at].config, ways[at].is_qat, flow);
}

bool differential_quantize(differential *d, const tare_model *model) {
    return tare_model_is_exported(model) ? quantize_by_quantizer(d, model)
                                         : quantize_by_backend(d, model);
}
