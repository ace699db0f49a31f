// SPDX-License-Identifier: Apache-2.0
// Small relatives of the networks that people have: each reads, computes in float what torch
// computed, goes through every stage for x86 and gives the same integers on every instruction set.
// Data: tests/data/networks.zip, made by tests/data/pack_networks.py.
#include "support/test.h"

#include <math.h>

#include "golden/networks.h"
#include "model/coverage.h"
#include "model/model.h"
#include "replay/case.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"

typedef struct network {
    const char *name;
    double least_sqnr; // dB of the integer outputs
} network;

#define ROW(name, least_sqnr) {name, least_sqnr},
static const network networks[] = {NETWORKS(ROW)};

// --- the flow ---

static tare_model *quantized(const tare_model *model, const tensors *inputs, const network *n) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    calibrate_network(p, inputs);
    tare_model *reference = referenced(p, backend), *out = lowered(p, backend);
    check_preview(p, reference);
    const double found_sqnr = sqnr_over_many(model, reference, inputs);
    if (!(found_sqnr >= n->least_sqnr))
        fail_msg("%s: the reference form has %.1f dB, expected %.1f", n->name, found_sqnr,
                 n->least_sqnr);
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
        tensors found = run_tensors(model, inputs);
        if (coverage.float_island_count == 0)
            for (size_t i = 0; i < found.count; i++)
                check_same_tensor(expected->items[i], found.items[i]);
        else if (!(sqnr_of(expected, &found) > 40))
            fail_msg("%s: %s gives other values", n->name, tare__isa_level_name((isa_level)isa));
        release_tensors(&found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
}

static void check_network(void **state) {
    const network *n = *state;
    recorded_case c;
    tare_model *model = NULL;
    read_network(n->name, &c);
    CHECK_DONE(case_model(&c, &model, job_error()));
    const tensors inputs = tensors_of(&c.data, "input"), outputs = tensors_of(&c.data, "float");
    tensors found = run_tensors(model, &inputs);
    check_near(n->name, &outputs, &found);
    release_tensors(&found);
    tare_model *q = quantized(model, &inputs, n);
    found = run_tensors(q, &inputs);
    const double found_sqnr = sqnr_over_many(model, q, &inputs);
    print_message("%s: %.1f dB\n", n->name, found_sqnr);
    if (!(found_sqnr >= n->least_sqnr))
        fail_msg("%s: %.1f dB in integers, expected %.1f", n->name, found_sqnr, n->least_sqnr);
    check_levels(n, q, &inputs, &found);
    release_tensors(&found);
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
