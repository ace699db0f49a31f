// SPDX-License-Identifier: Apache-2.0
// The loop over kinds of steps, with kinds that note who was asked for what.
#include "runtime/plan/dispatch.h"

#include <string.h>

#include "runtime/steps/steps.h"
#include "support/test.h"

enum { RECORDS = 3 };

// What was asked, in order: a kind's letter and a record's digit.
static char asked[64];

static void note(char kind, size_t record) {
    const size_t length = strlen(asked);
    assert_true(length + 2 < sizeof asked);
    asked[length] = kind;
    asked[length + 1] = (char)('0' + record);
    asked[length + 2] = '\0';
}

static bool heads_all(const plan_builder *b, const plan_record *r) {
    (void)b, (void)r;
    return true;
}

static bool heads_none(const plan_builder *b, const plan_record *r) {
    (void)b, (void)r;
    return false;
}

static bool extend_never(plan_builder *b, size_t head) {
    (void)b;
    note('n', head);
    return false;
}

static bool extend_always(plan_builder *b, size_t head) {
    (void)b;
    note('a', head);
    return true;
}

static void reserve(plan_builder *b, size_t record) {
    (void)b;
    note('r', record);
}

static tare_status cannot(plan_builder *b, size_t head, bool *done) {
    (void)b, (void)done;
    note('c', head);
    return TARE_OK;
}

static tare_status can(plan_builder *b, size_t head, bool *done) {
    (void)b;
    note('p', head);
    *done = true;
    return TARE_OK;
}

static tare_status call(plan_builder *b, size_t record, bool *done) {
    (void)b;
    note('l', record);
    *done = true;
    return TARE_OK;
}

static const step_class stranger = {.heads = heads_none, .extend = extend_always, .plan = can};
static const step_class reluctant = {
    .heads = heads_all, .extend = extend_never, .reserve = reserve, .plan = cannot};
static const step_class willing = {
    .heads = heads_all, .extend = extend_always, .reserve = reserve, .plan = can};
static const step_class a_call = {.plan = call};

static plan_builder builder_of(plan_record *records, const step_class *const *classes) {
    memset(records, 0, RECORDS * sizeof *records);
    for (size_t i = 0; i < RECORDS; i++) records[i].head = i;
    asked[0] = '\0';
    return (plan_builder){
        .records = records, .record_count = RECORDS, .classes = classes, .call = &a_call};
}

static void the_first_kind_that_heads_and_can_plans(void **state) {
    const step_class *const classes[] = {&stranger, &reluctant, &willing, &willing, NULL};
    plan_record records[RECORDS];
    plan_builder b = builder_of(records, classes);
    bool done = false;
    (void)state;
    assert_ptr_equal(tare__plan_class_of(&b, &records[0]), &reluctant);
    assert_int_equal(tare__plan_by_class(&b, 1, &done), TARE_OK);
    assert_true(done);
    assert_string_equal(asked, "c1p1");
}

static void later_kinds_are_those_behind_one(void **state) {
    const step_class *const classes[] = {&willing, &reluctant, NULL};
    plan_record records[RECORDS];
    plan_builder b = builder_of(records, classes);
    bool done = true;
    (void)state;
    assert_int_equal(tare__plan_by_later_class(&b, &willing, 2, &done), TARE_OK);
    assert_false(done);
    assert_string_equal(asked, "c2");
}

static void what_no_kind_can_is_a_call(void **state) {
    const step_class *const classes[] = {&reluctant, &stranger, NULL};
    plan_record records[RECORDS];
    plan_builder b = builder_of(records, classes);
    (void)state;
    assert_int_equal(tare__plan_one(&b, 0), TARE_OK);
    assert_string_equal(asked, "c0l0");
}

// Calls that are in a chain begin none; slices are reserved from the last call on.
static void the_first_kind_that_joins_extends_a_chain(void **state) {
    const step_class *const classes[] = {&stranger, &reluctant, &willing, &willing, NULL};
    plan_record records[RECORDS];
    plan_builder b = builder_of(records, classes);
    (void)state;
    records[1].head = 0;
    tare__plan_join(&b);
    assert_string_equal(asked, "n0a0n2a2r2r2r2r1r1r1r0r0r0");
}

static void each_listed_kind_heads_and_plans_and_is_listed_once(void **state) {
    size_t count = 0;
    (void)state;
    for (; tare__step_classes[count] != NULL; count++) {
        const step_class *class = tare__step_classes[count];
        assert_non_null(class->name);
        assert_true(class->heads != NULL && class->plan != NULL);
        for (size_t i = 0; i < count; i++) assert_ptr_not_equal(tare__step_classes[i], class);
    }
    assert_true(count > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_kind_that_heads_and_can_plans),
        cmocka_unit_test(later_kinds_are_those_behind_one),
        cmocka_unit_test(what_no_kind_can_is_a_call),
        cmocka_unit_test(the_first_kind_that_joins_extends_a_chain),
        cmocka_unit_test(each_listed_kind_heads_and_plans_and_is_listed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
