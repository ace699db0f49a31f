// SPDX-License-Identifier: Apache-2.0
// What tare-replay takes for equal, and what not.
#include "replay/text_compare.h"
#include "support/test.h"

/// What is said to differ first; "" for nothing.
static const char *difference(const char *ours, const char *recorded, const agreement *numbers) {
    static char first[512];
    static const agreement plain = {0};
    findings found = {0};
    compare_texts("text", ours, recorded, numbers != NULL ? numbers : &plain, &found);
    (void)snprintf(first, sizeof first, "%s", tare__text_chars(&found.first));
    assert_int_equal(found.structure_count, first[0] != '\0');
    assert_int_equal(found.value_count, 0);
    findings_release(&found);
    return first;
}

static bool same(const char *ours, const char *recorded) {
    return difference(ours, recorded, NULL)[0] == '\0';
}

static void floats_compare_as_numbers(void **state) {
    (void)state;
    assert_true(same("f(scale=0.5, eps=1e-05)", "f(scale=0.50004, eps=0.00001)"));
    assert_false(same("f(scale=0.5)", "f(scale=0.5001)"));
    assert_false(same("f(scale=0.5)", "f(scale=-0.5)"));
    assert_false(same("f(1)", "f(1.0)"));
}

static void integers_and_names_compare_exactly(void **state) {
    (void)state;
    assert_true(same("layer1_0 = self.layer1(x, 3)\n", "layer1_0 = self.layer1(x, 3)\n"));
    assert_false(same("layer1_0 = self.layer1(x, 3)", "layer1_0 = self.layer1(x, 4)"));
    assert_false(same("layer1_0 = x", "layer1_1 = x"));
    assert_false(same("add_1e5 = x", "add_1e6 = x"));
    assert_false(same("x = None", "x  = None"));
    assert_false(same("x = None", "x = None;"));
}

static void the_first_line_to_differ_is_named(void **state) {
    (void)state;
    assert_string_equal(difference("a\n  b = 1\nc\n", "a\n  b = 2\nd\n", NULL),
                        "text line 2: expected 'b = 2', found 'b = 1'");
    assert_string_equal(difference("a\n", "a\nb\n", NULL),
                        "text line 2: expected 'b', found '(nothing)'");
    assert_string_equal(difference("a\nb\n", "a\n", NULL),
                        "text line 2: expected '(nothing)', found 'b'");
}

static void accepted_pairs_agree_and_no_others(void **state) {
    (void)state;
    agreement numbers = {0};
    assert_true(agreement_accept(&numbers, 127, 128));
    assert_true(agreement_accept(&numbers, 0.5, 0.51));
    assert_string_equal(difference("f(0.5, 127)", "f(0.51, 128)", &numbers), "");
    assert_true(difference("f(127)", "f(126)", &numbers)[0] != '\0');
    assert_true(difference("f(128)", "f(127)", &numbers)[0] != '\0');
    assert_true(difference("f(0.5)", "f(0.52)", &numbers)[0] != '\0');
    agreement_release(&numbers);
}

static void structure_is_told_before_values(void **state) {
    (void)state;
    findings found = {0};
    findings_add(&found, FINDING_VALUE, "a value");
    findings_add(&found, FINDING_STRUCTURE, "a name");
    findings_add(&found, FINDING_STRUCTURE, "another");
    assert_string_equal(tare__text_chars(&found.first), "a name");
    assert_string_equal(tare__text_chars(&found.detail), "a value\na name\nanother\n");
    findings_release(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_compare_as_numbers),
        cmocka_unit_test(integers_and_names_compare_exactly),
        cmocka_unit_test(the_first_line_to_differ_is_named),
        cmocka_unit_test(accepted_pairs_agree_and_no_others),
        cmocka_unit_test(structure_is_told_before_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
