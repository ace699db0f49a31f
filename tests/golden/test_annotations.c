// SPDX-License-Identifier: Apache-2.0
// Quantizers annotate as torchao 0.18 did, node by node; and a quantizer that is data annotates as
// the coded one that it describes.
// Data: tests/data/annotations.zip, packed by tests/data/pack_annotations.py.
#include "support/test.h"

#include "flow/export/steps.h"
#include "replay/case.h"
#include "replay/recorded_quantizer.h"
#include "tare/tare.h"

static tare_status annotate(pass *p, const tare_quantizer *q, bool is_qat, char **out) {
    if (!is_qat) TARE_TRY(tare__pt2e_fuse(p));
    TARE_TRY(tare_quantizer_transform(q, p->model, p->err));
    TARE_TRY(tare_quantizer_annotate(q, p->model, p->err));
    if (is_qat) TARE_TRY(tare__pt2e_rewrite_for_training(p));
    return tare_model_annotations_to_json(p->model, out, p->err);
}

// What prepare has before observers are inserted; the caller frees *out.
static tare_status annotations_of(const tare_model *model, const tare_quantizer *q, bool is_qat,
                                  char **out, tare_error *err) {
    pass p;
    tare_status status = tare__pass_begin(&p, "prepare", model, NULL, err);
    if (status == TARE_OK) status = annotate(&p, q, is_qat, out);
    tare_model *annotated = NULL;
    status = tare__pass_end(&p, status, &annotated);
    tare_model_destroy(annotated);
    return status;
}

static bool is_qat(const recorded_case *c) {
    return json_is_true(json_object_get(c->json, "is_qat"));
}

// --- as torch did ---

static tare_status check_recorded(const recorded_case *c, findings *found, tare_error *err) {
    tare_model *model = NULL;
    tare_quantizer *q = NULL;
    char *ours = NULL;
    bool is_ours = false;
    // A sum reads the convolution beside the batch norm, which torchao folds all the same
    // (docs/differences.md; unit.flow.export.fuse).
    if (strcmp(c->name, "bn_multi_ns_arm_dyn") == 0) return TARE_OK;
    tare_status status = case_model(c, &model, err);
    if (status == TARE_OK) status = recorded_quantizer(c, &q, &is_ours, err);
    if (status == TARE_OK) status = annotations_of(model, q, is_qat(c), &ours, err);
    if (status == TARE_OK) {
        assert_true(is_ours);
        compare_annotations(ours, c, found);
    }
    tare_string_free(ours);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    return status;
}

// --- as data ---

static const char *const modes[] = {"{\"global\": {\"default\": {}}}",
                                    "{\"global\": {\"default\": {\"is_per_channel\": true}}}",
                                    "{\"global\": {\"default\": {\"is_qat\": true}}}"};

static tare_status annotations_by(const tare_model *model, const char *file, const char *mode,
                                  char **out, tare_error *err) {
    tare_quantizer_settings *s = NULL;
    tare_quantizer *q = NULL;
    const bool trains = strstr(mode, "is_qat") != NULL;
    tare_status status =
        tare_quantizer_settings_from_json(mode, strlen(mode), "XNNPACKQuantizer", &s, err);
    if (status == TARE_OK)
        status = file != NULL ? tare_quantizer_read(file, s, &q, err)
                              : tare_quantizer_builtin("XNNPACKQuantizer", s, &q, err);
    if (status == TARE_OK) status = annotations_of(model, q, trains, out, err);
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(s);
    return status;
}

static tare_status check_rules(const recorded_case *c, findings *found, tare_error *err) {
    tare_model *model = NULL;
    // The coded one finds a GRU's parts by their source, of which rules know the common ones only.
    if (strncmp(c->name, "gru_", strlen("gru_")) == 0) return TARE_OK;
    tare_status status = case_model(c, &model, err);
    for (size_t i = 0; i < 3 && status == TARE_OK; i++) {
        char *coded = NULL, *data = NULL;
        status = annotations_by(model, NULL, modes[i], &coded, err);
        if (status == TARE_OK)
            status = annotations_by(model, "examples/xnnpack_quantizer.json", modes[i], &data, err);
        if (status == TARE_OK && coded != NULL && data != NULL && strcmp(coded, data) != 0)
            findings_add(found, FINDING_STRUCTURE, "by rules: %s\nby code: %s", data, coded);
        tare_string_free(coded);
        tare_string_free(data);
    }
    tare_model_destroy(model);
    return status;
}

// --- all cases ---

typedef tare_status (*case_check)(const recorded_case *c, findings *found, tare_error *err);

static int check_case(const case_place *place, case_check check) {
    tare_error *err = tare_error_create();
    findings found = {0};
    recorded_case c = {0};
    tare_status status = case_read(place, &c, err);
    if (status == TARE_OK) status = check(&c, &found, err);
    if (status != TARE_OK) findings_add_error(&found, FINDING_STRUCTURE, "annotations", err);
    const int differs = findings_any(&found) ? 1 : 0;
    if (differs) print_error("%s: %s\n", place->name, tare__text_chars(&found.first));
    findings_release(&found);
    case_release(&c);
    tare_error_destroy(err);
    return differs;
}

static void check_all(case_check check, size_t step) {
    case_list list = {0};
    int differing = 0;
    assert_int_equal(case_list_add(&list, "tests/data/annotations.zip", NULL), TARE_OK);
    assert_true(list.count > 100);
    for (size_t i = 0; i < list.count; i += step) differing += check_case(&list.items[i], check);
    if (differing > 0) fail_msg("%d of %zu cases differ", differing, list.count);
    case_list_release(&list);
}

static void quantizers_annotate_as_torchaos_do(void **state) {
    (void)state;
    check_all(check_recorded, 1);
}

static void rules_annotate_as_the_integer_that_they_describe(void **state) {
    (void)state;
    check_all(check_rules, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantizers_annotate_as_torchaos_do),
        cmocka_unit_test(rules_annotate_as_the_integer_that_they_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
