// SPDX-License-Identifier: Apache-2.0
// Thirteen small networks of architectures that nobody here wrote (tools/zoo.py): each computes in
// float what torch computed, and keeps in integers, under tare's own mapping, what ONNX Runtime's
// static int8 keeps with the same samples, less 1 dB. Data: tests/data/zoo.zip, made by
// tests/data/pack_zoo.py.
#include "support/test.h"

#include "golden/networks.h"
#include "model/model.h"
#include "replay/case.h"
#include "support/models.h"

static const char *const names[] = {"bert_masked", "albert",   "bart", "gpt2",      "llama",
                                    "gemma2",      "bloom",    "vit",  "segformer", "mobilenet_v1",
                                    "wav2vec2",    "edgenext", "cait"};

// The output that the peer's ratio is of: the first of torch's.
static double first_sqnr(const tensors *expected, const tensors *found) {
    const tensors x = {.items = {expected->items[0]}, .count = 1};
    const tensors y = {.items = {found->items[0]}, .count = 1};
    return sqnr_of(&x, &y);
}

static tare_model *in_integers(const tare_model *model, const tensors *samples) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(tare_qconfig_mapping_for_backend(backend, false, &mapping, job_error()));
    tare_model *p = prepared(model, backend, mapping);
    CHECK_DONE(tare_calibrate(p, samples->items, samples->count, job_error()));
    tare_model *out = lowered(p, backend), *reference = referenced(p, backend);
    check_preview(p, reference);
    tare_model_destroy(reference);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

static void check_network(void **state) {
    const char *name = *state;
    char members[64];
    const case_place place = {name, "tests/data/zoo.zip", members};
    snprintf(members, sizeof members, "%s/", name);
    recorded_case c;
    tare_model *model = NULL;
    CHECK_DONE(case_read(&place, &c, job_error()));
    CHECK_DONE(case_model(&c, &model, job_error()));
    const tensors inputs = tensors_of(&c.data, "input"), expected = tensors_of(&c.data, "float"),
                  samples = tensors_of(&c.data, "calibration");
    tensors found = run_tensors(model, &inputs);
    check_near(name, &expected, &found);
    release_tensors(&found);
    tare_model *q = in_integers(model, &samples);
    found = run_tensors(q, &inputs);
    const double peer = json_real_value(json_object_get(c.json, "peer_sqnr")),
                 sqnr = first_sqnr(&expected, &found);
    print_message("%s: %.1f dB, ONNX Runtime %.1f\n", name, sqnr, peer);
    if (!(sqnr >= peer - 1)) fail_msg("%s: %.1f dB, the peer has %.1f", name, sqnr, peer);
    release_tensors(&found);
    tare_model_destroy(q);
    tare_model_destroy(model);
    case_release(&c);
}

int main(void) {
    enum { COUNT = sizeof names / sizeof *names };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = check_network, .initial_state = (void *)names[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
