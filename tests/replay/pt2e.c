// SPDX-License-Identifier: Apache-2.0
// Cases of exported programs: prepare by recorded annotations.
#include "replay/pt2e.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "pt2e/steps.h"
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

/// The recorded annotations come last, so that this one has nothing to say.
static tare_status annotate_nothing(void *self, tare_model *model, tare_error *err) {
    (void)self;
    (void)model;
    (void)err;
    return TARE_OK;
}

static tare_status prepare_given(const recorded_case *c, const tare_model *model,
                                 const pt2e_given *given, tare_model **out, tare_error *err) {
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "recorded", .annotate = annotate_nothing};
    tare_quantizer *quantizer = NULL;
    TARE_TRY(tare_quantizer_create(&class, NULL, &quantizer, err));
    const tare_status status = tare__pt2e_prepare(
        model, quantizer, json_is_true(json_object_get(c->json, "is_qat")), given, out, err);
    tare_quantizer_destroy(quantizer);
    return status;
}

tare_status pt2e_prepare(const recorded_case *c, const tare_model *model, const agreement *numbers,
                         findings *out, tare_model **prepared, tare_error *err) {
    char *json = json_dumps(json_object_get(c->json, "annotations"), JSON_ENCODE_ANY);
    if (json == NULL) return tare__fail(err, TARE_MALFORMED_FILE, "case.json has no annotations");
    char *annotated = NULL;
    const pt2e_given given = {.json = json,
                              .size = strlen(json),
                              .rules = &pt2e_test_rule,
                              .rule_count = 1,
                              .annotated_text = numbers != NULL ? &annotated : NULL};
    const tare_status status = prepare_given(c, model, &given, prepared, err);
    free(json);
    const char *recorded = case_text(c, "annotated_text");
    // The class of a graph inside another one was recorded as Python saw it just then.
    if (recorded != NULL && tare__starts_with(recorded, "<lambda>")) recorded = NULL;
    if (annotated != NULL && recorded != NULL)
        compare_texts("annotated_text", annotated, recorded, numbers, out);
    tare_string_free(annotated);
    return status;
}

tare_status pt2e_convert(const recorded_case *c, const tare_model *prepared, tare_model **out,
                         tare_error *err) {
    if (strcmp(case_text(c, "kind"), "pt2e") != 0)
        return tare__fail(err, TARE_UNSUPPORTED, "cases of kind '%s'", case_text(c, "kind"));
    const tare_convert_pt2e_options options = {
        .struct_size = sizeof options,
        .keeps_quantize = json_is_false(json_object_get(c->json, "fold_quantize")),
        .is_lenient = true};
    return tare_convert_pt2e(prepared, &options, out, err);
}
