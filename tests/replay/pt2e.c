// SPDX-License-Identifier: Apache-2.0
// Cases of exported programs: prepared by our quantizer, or by the recorded annotations.
#include "replay/pt2e.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/export/steps.h"
#include "replay/recorded_quantizer.h"
#include "replay/text_compare.h"

bool pt2e_is_case(const recorded_case *c) {
    const char *kind = case_text(c, "kind");
    return kind != NULL && tare__starts_with(kind, "pt2e");
}

/// What torchao's tests derive by: the bias rule, or a weight's own scale.
static tare_status derive(void *user, const tare_qparams_view *sources, size_t count,
                          tare_qparams_sink sink, void *sink_user, tare_error *err) {
    const tare_derive_rule *bias = tare_derive_bias_rule();
    (void)user;
    if (count == 2) return bias->derive(bias->user, sources, count, sink, sink_user, err);
    double *zeros = tare__alloc_zeroed((size_t)sources[0].count + 1, sizeof *zeros);
    if (zeros == NULL) return tare__out_of_memory(err);
    const tare_status status = sink(sink_user, sources[0].count, sources[0].scale, zeros, err);
    tare__free(zeros);
    return status;
}

const tare_derive_rule pt2e_test_rule = {.struct_size = sizeof pt2e_test_rule,
                                         .name = "derive_qparams_fn",
                                         .derive = derive,
                                         .zero_point_dtype = TARE_FLOAT32};

static tare_status prepare_by(const recorded_case *c, const tare_model *model,
                              const tare_quantizer *quantizer, const pt2e_given *given,
                              tare_model **out, tare_error *err) {
    const bool is_qat = json_is_true(json_object_get(c->json, "is_qat"));
    return tare__pt2e_prepare(model, quantizer, is_qat, given, out, err);
}

/// By what was recorded, whatever the quantizer said.
static tare_status prepare_recorded(const recorded_case *c, const tare_model *model,
                                    const tare_quantizer *quantizer, char **annotated_text,
                                    tare_model **out, tare_error *err) {
    char *json = json_dumps(json_object_get(c->json, "annotations"), JSON_ENCODE_ANY);
    if (json == NULL) return tare__fail(err, TARE_MALFORMED_FILE, "case.json has no annotations");
    const pt2e_given given = {.json = json,
                              .size = strlen(json),
                              .rules = &pt2e_test_rule,
                              .rule_count = 1,
                              .annotated_text = annotated_text};
    const tare_status status = prepare_by(c, model, quantizer, &given, out, err);
    free(json);
    return status;
}

/// By what our quantizer says. Its annotations are compared; where they differ, the recorded ones
/// are taken, so that whatever else differs shows.
static tare_status prepare_ours(const recorded_case *c, const tare_model *model,
                                const tare_quantizer *quantizer, char **annotated_text,
                                findings *differ, tare_model **out, tare_error *err) {
    char *annotations = NULL;
    const pt2e_given given = {.annotations = &annotations, .annotated_text = annotated_text};
    const tare_status status = prepare_by(c, model, quantizer, &given, out, err);
    if (annotations != NULL) compare_annotations(annotations, c, differ);
    tare_string_free(annotations);
    if (status != TARE_OK) findings_add_error(differ, FINDING_STRUCTURE, "quantizer", err);
    if (!findings_any(differ)) return TARE_OK;
    if (status == TARE_OK) tare_model_destroy(*out);
    *out = NULL;
    tare_string_free(*annotated_text);
    *annotated_text = NULL;
    return prepare_recorded(c, model, quantizer, annotated_text, out, err);
}

static void compare_annotated(const recorded_case *c, const char *annotated,
                              const agreement *numbers, findings *out) {
    const char *recorded = case_text(c, "annotated_text");
    // The class of a graph inside another one was recorded as Python saw it just then.
    if (recorded == NULL || annotated == NULL || tare__starts_with(recorded, "<lambda>")) return;
    compare_texts("annotated_text", annotated, recorded, numbers, out);
}

tare_status pt2e_prepare(const recorded_case *c, const tare_model *model, const agreement *numbers,
                         findings *out, tare_model **prepared, tare_error *err) {
    tare_quantizer *quantizer = NULL;
    bool is_ours = false;
    char *annotated = NULL;
    findings differ = {0};
    TARE_TRY(recorded_quantizer(c, &quantizer, &is_ours, err));
    const tare_status status =
        is_ours ? prepare_ours(c, model, quantizer, &annotated, &differ, prepared, err)
                : prepare_recorded(c, model, quantizer, &annotated, prepared, err);
    if (numbers != NULL) {
        findings_join(out, &differ);
        compare_annotated(c, annotated, numbers, out);
    }
    findings_release(&differ);
    tare_string_free(annotated);
    tare_quantizer_destroy(quantizer);
    return status;
}

tare_status pt2e_convert(const recorded_case *c, const tare_model *prepared, tare_model **out,
                         tare_error *err) {
    const char *kind = case_text(c, "kind");
    const bool is_reference = strcmp(kind, "pt2e_reference_representation") == 0;
    if (!is_reference && strcmp(kind, "pt2e") != 0)
        return tare__fail(err, TARE_UNSUPPORTED, "cases of kind '%s'", kind);
    const tare_convert_pt2e_options options = {
        .struct_size = sizeof options,
        .keeps_quantize = json_is_false(json_object_get(c->json, "fold_quantize")),
        .is_lenient = true,
        .use_reference_representation = is_reference};
    return tare_convert_pt2e(prepared, &options, out, err);
}
