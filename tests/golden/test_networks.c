// SPDX-License-Identifier: Apache-2.0
// Small relatives of the networks that people have: each reads, computes in float what torch
// computed, goes through every stage for x86 and gives the same integers on every instruction set.
// Data: tests/data/networks.zip, made by tests/data/pack_networks.py.
#include "support/test.h"

#include <math.h>

#include "golden/networks.h"
#include "quant/coverage.h"
#include "quant/model.h"
#include "replay/case.h"
#include "runtime/isa.h"
#include "support/models.h"

typedef struct network {
    const char *name;
    double least_sqnr; // dB of the integer outputs
} network;

#define ROW(name, least_sqnr) {name, least_sqnr},
static const network networks[] = {NETWORKS(ROW)};

enum { MOST_TENSORS = 4 };

typedef struct tensors {
    const tare_tensor *items[MOST_TENSORS];
    size_t count;
} tensors;

static tensors tensors_of(const recorded_case *c, const char *prefix) {
    tensors found = {0};
    char name[32];
    for (; found.count < MOST_TENSORS; found.count++) {
        snprintf(name, sizeof name, "%s.%zu", prefix, found.count);
        found.items[found.count] = tare__safetensors_get(&c->data, name);
        if (found.items[found.count] == NULL) break;
    }
    assert_true(found.count > 0);
    return found;
}

static tensors run(const tare_model *model, const tensors *inputs) {
    tare_tensor *out[MOST_TENSORS] = {0};
    tare_session *session = NULL;
    tensors results = {0};
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, inputs->items, inputs->count, out, MOST_TENSORS,
                                &results.count, job_error()));
    for (size_t i = 0; i < results.count; i++) results.items[i] = out[i];
    tare_session_destroy(session);
    return results;
}

static void release(tensors *t) {
    for (size_t i = 0; i < t->count; i++) tare_tensor_release((tare_tensor *)t->items[i]);
    *t = (tensors){0};
}

// --- comparing ---

// 20 log10(|x| / |x - y|) over all outputs.
static double sqnr(const tensors *expected, const tensors *found) {
    double signal = 0, noise = 0;
    assert_int_equal(expected->count, found->count);
    for (size_t i = 0; i < expected->count; i++) {
        tare_tensor *x = NULL, *y = NULL;
        CHECK_DONE(tare_tensor_to_float(expected->items[i], &x, job_error()));
        CHECK_DONE(tare_tensor_to_float(found->items[i], &y, job_error()));
        assert_int_equal(x->count, y->count);
        for (int64_t k = 0; k < x->count; k++) {
            const double a = (double)tare__f32(x)[k], b = (double)tare__f32(y)[k];
            signal += a * a;
            noise += (a - b) * (a - b);
        }
        tare_tensor_release(x);
        tare_tensor_release(y);
    }
    return noise > 0 ? 10 * log10(signal / noise) : 1000;
}

// Within 1e-4 of the greatest value.
static void check_near(const char *name, const tensors *expected, const tensors *found) {
    assert_int_equal(expected->count, found->count);
    for (size_t i = 0; i < expected->count; i++) {
        const tare_tensor *x = expected->items[i], *y = found->items[i];
        assert_int_equal(x->count, y->count);
        float most = 0, error = 0;
        for (int64_t k = 0; k < x->count; k++) {
            most = fmaxf(most, fabsf(tare__f32(x)[k]));
            error = fmaxf(error, fabsf(tare__f32(x)[k] - tare__f32(y)[k]));
            assert_true(isfinite(tare__f32(y)[k]));
        }
        assert_true(most > 0);
        if (!(error <= 1e-4f * most))
            fail_msg("%s: output %zu differs from torch's by %g of %g", name, i, (double)error,
                     (double)most);
    }
}

// --- the flow ---

// Images and frames: standard normal, as the batch norms have seen. Words: the recorded ones.
static void calibrate(tare_model *p, const tensors *inputs) {
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    const tare_data_options options = {.struct_size = sizeof options, .batch_size = 8};
    bool done = false;
    if (inputs->items[0]->dtype != TARE_FLOAT32) {
        CHECK_DONE(tare_calibrate(p, inputs->items, inputs->count, job_error()));
        return;
    }
    CHECK_DONE(tare_data_open("random:16:1", p, &options, &data, job_error()));
    for (;;) {
        CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
        if (done) break;
        CHECK_DONE(tare_calibrate(p, batch.inputs, batch.input_count, job_error()));
    }
    tare_data_close(data);
}

static tare_model *quantized(const tare_model *model, const tensors *inputs, const tensors *outputs,
                             const network *n) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    calibrate(p, inputs);
    tare_model *reference = referenced(p, backend), *out = lowered(p, backend);
    tensors found = run(reference, inputs);
    const double found_sqnr = sqnr(outputs, &found);
    if (!(found_sqnr >= n->least_sqnr))
        fail_msg("%s: the reference form has %.1f dB, expected %.1f", n->name, found_sqnr,
                 n->least_sqnr);
    release(&found);
    tare_model_destroy(reference);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

// Equal bits where everything is in integers; float layers in between may round in another order.
static void check_levels(const network *n, const tare_model *model, const tensors *inputs,
                         const tensors *expected) {
    tare_coverage coverage = {.struct_size = sizeof coverage};
    CHECK_DONE(tare_model_coverage(model, &coverage, job_error()));
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tensors found = run(model, inputs);
        if (coverage.float_island_count == 0)
            for (size_t i = 0; i < found.count; i++)
                check_same_tensor(expected->items[i], found.items[i]);
        else if (!(sqnr(expected, &found) > 40))
            fail_msg("%s: %s gives other values", n->name, tare__isa_level_name((isa_level)isa));
        release(&found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
}

static void check_network(void **state) {
    const network *n = *state;
    char members[64];
    recorded_case c;
    tare_model *model = NULL;
    snprintf(members, sizeof members, "%s/", n->name);
    const case_place place = {n->name, "tests/data/networks.zip", members};
    CHECK_DONE(case_read(&place, &c, job_error()));
    CHECK_DONE(case_model(&c, &model, job_error()));
    const tensors inputs = tensors_of(&c, "input"), outputs = tensors_of(&c, "float");
    tensors found = run(model, &inputs);
    check_near(n->name, &outputs, &found);
    release(&found);
    tare_model *q = quantized(model, &inputs, &outputs, n);
    found = run(q, &inputs);
    const double found_sqnr = sqnr(&outputs, &found);
    print_message("%s: %.1f dB\n", n->name, found_sqnr);
    if (!(found_sqnr >= n->least_sqnr))
        fail_msg("%s: %.1f dB in integers, expected %.1f", n->name, found_sqnr, n->least_sqnr);
    check_levels(n, q, &inputs, &found);
    release(&found);
    tare_model_destroy(q);
    tare_model_destroy(model);
    case_release(&c);
}

int main(void) {
    enum { COUNT = sizeof networks / sizeof *networks };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){.name = networks[i].name,
                                       .test_func = check_network,
                                       .initial_state = (void *)&networks[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
