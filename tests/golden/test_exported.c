// SPDX-License-Identifier: Apache-2.0
// Programs that torch.export wrote compute what torch computed: node by node, and in a session.
// Data: tests/data/exported.zip, packed by tests/cases/pack.py from cases recorded with PyTorch
// 2.15. Other recorded cases may be named on the command line.
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "replay/run.h"

static const char *places[64] = {"tests/data/exported.zip"};
static size_t place_count = 1;
static bool is_named; // on the command line

enum { FEWEST_CASES = 20 };

static tare_status run_float(const recorded_case *c, bool in_session, findings *out,
                             tare_error *err) {
    arena memory = {0};
    value *inputs = NULL;
    const tare_tensor **tensors = NULL;
    size_t count = 0;
    run_result result = {0};
    tare_model *model = NULL;
    tare_status status = case_model(c, &model, err);
    if (status == TARE_OK) status = replay_inputs(c, &memory, &inputs, &count, err);
    if (status == TARE_OK) status = replay_tensors(inputs, count, &memory, &tensors, err);
    if (status == TARE_OK) status = replay_run(model, inputs, count, &result, err);
    if (status == TARE_OK && in_session) {
        // A program in training mode moves its statistics: the second run gets a model of its own.
        tare_model_destroy(model);
        model = NULL;
        status = case_model(c, &model, err);
        if (status == TARE_OK && tensors != NULL)
            status = replay_in_session(model, tensors, count, &result, err);
    }
    if (status == TARE_OK) replay_compare(c, "float", &result, FINDING_VALUE, out);
    replay_run_release(&result);
    tare_model_destroy(model);
    tare__arena_release(&memory);
    return status;
}

// The number of differences.
static int check_case(const case_place *place, bool in_session) {
    tare_error *err = tare_error_create();
    findings found = {0};
    recorded_case c = {0};
    tare_status status = case_read(place, &c, err);
    if (status == TARE_OK) status = run_float(&c, in_session, &found, err);
    if (status != TARE_OK) findings_add_error(&found, FINDING_STRUCTURE, "float", err);
    const int differs = findings_any(&found) ? 1 : 0;
    if (differs) print_error("%s: %s\n", place->name, tare__text_chars(&found.first));
    findings_release(&found);
    case_release(&c);
    tare_error_destroy(err);
    return differs;
}

static void check_all(bool in_session) {
    case_list list = {0};
    int differing = 0;
    for (size_t i = 0; i < place_count; i++)
        assert_int_equal(case_list_add(&list, places[i], NULL), TARE_OK);
    assert_true(is_named || list.count >= FEWEST_CASES);
    for (size_t i = 0; i < list.count; i++) differing += check_case(&list.items[i], in_session);
    if (differing > 0) fail_msg("%d of %zu programs differ", differing, list.count);
    case_list_release(&list);
}

static void programs_run_node_by_node_as_torch_ran_them(void **state) {
    (void)state;
    check_all(false);
}

static void programs_run_in_a_session_as_torch_ran_them(void **state) {
    (void)state;
    check_all(true);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_run_node_by_node_as_torch_ran_them),
        cmocka_unit_test(programs_run_in_a_session_as_torch_ran_them),
    };
    for (int i = 1; i < argc && i <= 64; i++) {
        places[i - 1] = argv[i];
        place_count = (size_t)i;
        is_named = true;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
