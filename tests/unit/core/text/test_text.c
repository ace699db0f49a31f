// SPDX-License-Identifier: Apache-2.0
// Numbers, quotes and JSON strings are written as Python writes them, and failures are remembered.
#include "support/test.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "core/text/text.h"

// clang-format off
static const struct { double value; const char *text; } python[] = { // Python's repr
    {0.0, "0.0"}, {-0.0, "-0.0"}, {1.0, "1.0"}, {-1.0, "-1.0"}, {0.1, "0.1"}, {100.0, "100.0"},
    {1e-05, "1e-05"}, {0.0001, "0.0001"}, {0.00012345, "0.00012345"}, {1.5e-07, "1.5e-07"},
    {1e15, "1000000000000000.0"}, {1e16, "1e+16"}, {1.5e16, "1.5e+16"},
    {123456789012345680.0, "1.2345678901234568e+17"}, {9007199254740993.0, "9007199254740992.0"},
    {1e22, "1e+22"}, {1e23, "1e+23"}, {1e100, "1e+100"}, {1e-100, "1e-100"},
    {5e-324, "5e-324"}, {1.5e-323, "1.5e-323"}, {2.225073858507201e-308, "2.225073858507201e-308"},
    {DBL_MIN, "2.2250738585072014e-308"}, {DBL_MAX, "1.7976931348623157e+308"},
    {DBL_EPSILON, "2.220446049250313e-16"}, {1.1920928955078125e-07, "1.1920928955078125e-07"},
    {0.012824646197259426, "0.012824646197259426"}, {0.00390625, "0.00390625"},
    {0x1p-44, "5.684341886080802e-14"}, {0x1p-1017, "7.120236347223045e-307"}, // see round_to
    {-1.0416680574417114, "-1.0416680574417114"}, {1.0/3, "0.3333333333333333"}, {2.0/3, "0.6666666666666666"},
};
// clang-format on

static void doubles_read_as_in_python(void **state) {
    (void)state;
    char out[32];
    for (size_t i = 0; i < sizeof python / sizeof *python; i++) {
        tare__format_double(python[i].value, out);
        assert_string_equal(out, python[i].text);
    }
    tare__format_double(INFINITY, out);
    assert_string_equal(out, "inf");
    tare__format_double(-INFINITY, out);
    assert_string_equal(out, "-inf");
    tare__format_double(copysign(NAN, -1.0), out);
    assert_string_equal(out, "nan");
}

static uint64_t next_random(uint64_t *seed) { // xorshift64*
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 2685821657736338717u;
}

// Significant digits, without zeros at either end.
static int digit_count(const char *chars) {
    int count = 0, zeros = 0;
    for (; *chars && *chars != 'e'; chars++) {
        if (*chars == '0' && count > 0) zeros++;
        if (*chars < '1' || *chars > '9') continue;
        count += zeros + 1;
        zeros = 0;
    }
    return count;
}

static void any_double_reads_back_with_no_digit_too_many(void **state) {
    (void)state;
    uint64_t seed = 20240229;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 100000; i++) {
        const uint64_t bits = next_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        char out[32], shorter[64];
        tare__format_double(value, out);
        assert_true(strtod(out, NULL) == value);
        snprintf(shorter, sizeof shorter, "%.*e", digit_count(out) - 2, value);
        if (digit_count(out) > 1) assert_false(strtod(shorter, NULL) == value);
    }
}

static void the_locale_changes_nothing(void **state) {
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", NULL};
    size_t i = 0;
    while (commas[i] && !setlocale(LC_NUMERIC, commas[i])) i++;
    if (!commas[i]) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    char out[32];
    tare__format_double(-1234.5, out);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(out, "-1234.5");
}

static void strings_are_quoted_as_in_python(void **state) {
    (void)state;
    text t = {0};
    tare__text_quoted(&t, "mean");
    tare__text_quoted(&t, "it's");
    tare__text_quoted(&t, "'\"");
    tare__text_quoted(&t, "a\n\t\r\\\x01\x7F\xC3\xA4\xFF");
    assert_string_equal(tare__text_chars(&t), "'mean'\"it's\"'\\'\"'"
                                              "'a\\n\\t\\r\\\\\\x01\\x7f\xC3\xA4\\xff'");
    tare__text_release(&t);
}

static void json_strings_and_numbers(void **state) {
    (void)state;
    text t = {0};
    tare__text_json_string(&t, "a\"b\\\n\x01\xE2\x82\xAC\xED\xA0\x80/");
    assert_string_equal(tare__text_chars(&t),
                        "\"a\\\"b\\\\\\n\\u0001\xE2\x82\xAC\\ufffd\\ufffd\\ufffd/\"");
    tare__text_clear(&t);
    tare__text_json_double(&t, 3.0);
    tare__text_char(&t, ' ');
    tare__text_json_double(&t, 1e16);
    tare__text_char(&t, ' ');
    tare__text_json_double(&t, -INFINITY);
    assert_string_equal(tare__text_chars(&t), "3.0 1e+16 {\"float\": \"-inf\"}");
    tare__text_release(&t);
}

static void a_cleared_text_remembers_what_failed(void **state) {
    (void)state;
    text t = {0};
    tare__alloc_fail_at(1);
    tare__text_append(&t, "lost");
    tare__alloc_fail_at(0);
    tare__text_clear(&t);
    tare__text_append(&t, "kept");
    assert_int_equal(tare__text_status(&t, NULL), TARE_OUT_OF_MEMORY);
    tare__text_release(&t);
}

static void appends_add_up(void **state) {
    (void)state;
    text t = {0};
    assert_string_equal(tare__text_chars(&t), "");
    for (int i = 0; i < 1000; i++) tare__text_printf(&t, "%d,", i % 10);
    tare__text_spaces(&t, 3);
    tare__text_append_n(&t, "xyz", 2);
    assert_int_equal(t.length, 2005);
    assert_string_equal(tare__text_chars(&t) + 1996, "8,9,   xy");
    char *taken = tare__text_take(&t);
    assert_int_equal(strlen(taken), 2005);
    assert_int_equal(t.length, 0);
    tare__free(taken);
    taken = tare__text_take(&t);
    assert_string_equal(taken, "");
    tare__free(taken);
}

static void a_failed_append_is_remembered(void **state) {
    (void)state;
    text t = {0};
    tare__alloc_fail_at(1);
    tare__text_append(&t, "lost");
    tare__alloc_fail_at(0);
    tare__text_append(&t, "more");
    assert_string_equal(tare__text_chars(&t), "");
    assert_int_equal(tare__text_status(&t, NULL), TARE_OUT_OF_MEMORY);
    assert_null(tare__text_take(&t));
    assert_int_equal(tare__text_status(&t, NULL), TARE_OK);
    tare__text_release(&t);
}

static void names_are_judged(void **state) {
    (void)state;
    assert_true(tare__is_identifier("_a1") && tare__is_identifier("x"));
    assert_false(tare__is_identifier("") || tare__is_identifier("1a") ||
                 tare__is_identifier("a.b"));
    assert_true(tare__starts_with("torch.nn", "torch.") && tare__ends_with("torch.nn", ".nn"));
    assert_false(tare__starts_with("to", "torch") || tare__ends_with("n", "nn"));
}

static void numbers_end_where_their_characters_end(void **state) {
    (void)state;
    double number = 0;
    assert_true(tare__parse_double("1e-05", 5, &number));
    assert_true(number == 1e-05);
    assert_true(tare__parse_double("2.5,7", 3, &number));
    assert_true(number == 2.5);
    assert_false(tare__parse_double("1\0x", 3, &number)); // a NUL is no end
    assert_false(tare__parse_double("1x", 2, &number));
    assert_false(tare__parse_double("nan", 3, &number));
    assert_false(tare__parse_double("", 0, &number));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_end_where_their_characters_end),
        cmocka_unit_test(doubles_read_as_in_python),
        cmocka_unit_test(any_double_reads_back_with_no_digit_too_many),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(strings_are_quoted_as_in_python),
        cmocka_unit_test(json_strings_and_numbers),
        cmocka_unit_test(a_cleared_text_remembers_what_failed),
        cmocka_unit_test(appends_add_up),
        cmocka_unit_test(a_failed_append_is_remembered),
        cmocka_unit_test(names_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
