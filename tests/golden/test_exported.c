// SPDX-License-Identifier: Apache-2.0
// Programs that torch.export wrote compute what torch computed: node by node, and in a session.
// Data: tests/data/exported.zip, packed by tests/cases/pack.py from cases recorded with PyTorch
// 2.15. Other recorded cases may be named on the command line.
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "ops/text/print.h"
#include "replay/run.h"
#include "replay/text_compare.h"

static const char *places[64] = {"tests/data/exported.zip"};
static size_t place_count = 1;
static bool is_named; // on the command line

typedef enum way { NODE_BY_NODE, IN_SESSION, FROM_ARCHIVE } way;

static tare_status read_model(const recorded_case *c, way w, tare_model **out, tare_error *err) {
    return w == FROM_ARCHIVE ? case_exported_model(c, out, err) : case_model(c, out, err);
}

static tare_status run_float(const recorded_case *c, way w, findings *out, tare_error *err) {
    arena memory = {0};
    value *inputs = NULL;
    const tare_tensor **tensors = NULL;
    size_t count = 0;
    run_result result = {0};
    tare_model *model = NULL;
    tare_status status = read_model(c, w, &model, err);
    if (status == TARE_OK) status = replay_inputs(c, &memory, &inputs, &count, err);
    if (status == TARE_OK) status = replay_tensors(inputs, count, &memory, &tensors, err);
    if (status == TARE_OK) status = replay_run(model, inputs, count, &result, err);
    if (status == TARE_OK && w == IN_SESSION) {
        // A program in training mode moves its statistics: the second run gets a model of its own.
        tare_model_destroy(model);
        model = NULL;
        status = read_model(c, w, &model, err);
        if (status == TARE_OK && tensors != NULL)
            status = replay_in_session(model, tensors, count, &result, err);
    }
    if (status == TARE_OK) replay_compare(c, "float", &result, FINDING_VALUE, out);
    replay_run_release(&result);
    tare_model_destroy(model);
    tare__arena_release(&memory);
    return status;
}

// What the archive says is what torch's `.module()` prints.
static tare_status compare_print(const recorded_case *c, findings *out, tare_error *err) {
    const agreement exact = {.relative = 1e-15};
    tare_model *model = NULL;
    text printed = {0};
    TARE_TRY(case_exported_model(c, &model, err));
    const tare_status status = tare__print_model(model->root, &printed, err);
    if (status == TARE_OK)
        compare_texts("float_text", tare__text_chars(&printed), case_text(c, "float_text"), &exact,
                      out);
    tare__text_release(&printed);
    tare_model_destroy(model);
    return status;
}

// The number of differences.
static int check_case(const case_place *place, way w, size_t *count) {
    tare_error *err = tare_error_create();
    findings found = {0};
    recorded_case c = {0};
    tare_status status = case_read(place, &c, err);
    const bool is_meant = w != FROM_ARCHIVE || c.exported.data != NULL;
    if (status == TARE_OK && is_meant) status = run_float(&c, w, &found, err);
    if (status == TARE_OK && is_meant && w == FROM_ARCHIVE) status = compare_print(&c, &found, err);
    if (status != TARE_OK) findings_add_error(&found, FINDING_STRUCTURE, "float", err);
    const int differs = findings_any(&found) ? 1 : 0;
    if (differs) print_error("%s: %s\n", place->name, tare__text_chars(&found.first));
    *count += is_meant ? 1 : 0;
    findings_release(&found);
    case_release(&c);
    tare_error_destroy(err);
    return differs;
}

static void check_all(way w, size_t fewest) {
    case_list list = {0};
    int differing = 0;
    size_t count = 0;
    for (size_t i = 0; i < place_count; i++)
        assert_int_equal(case_list_add(&list, places[i], NULL), TARE_OK);
    for (size_t i = 0; i < list.count; i++) differing += check_case(&list.items[i], w, &count);
    if (differing > 0) fail_msg("%d of %zu programs differ", differing, count);
    assert_true(is_named || count >= fewest);
    case_list_release(&list);
}

static void programs_run_node_by_node_as_torch_ran_them(void **state) {
    (void)state;
    check_all(NODE_BY_NODE, 20);
}

static void programs_run_in_a_session_as_torch_ran_them(void **state) {
    (void)state;
    check_all(IN_SESSION, 20);
}

static void programs_are_read_from_their_archives(void **state) {
    (void)state;
    check_all(FROM_ARCHIVE, 5);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_run_node_by_node_as_torch_ran_them),
        cmocka_unit_test(programs_run_in_a_session_as_torch_ran_them),
        cmocka_unit_test(programs_are_read_from_their_archives),
    };
    for (int i = 1; i < argc && i <= 64; i++) {
        places[i - 1] = argv[i];
        place_count = (size_t)i;
        is_named = true;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
