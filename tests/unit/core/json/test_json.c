// SPDX-License-Identifier: Apache-2.0
// The JSON reader: broken text with its line, limits, types, unknown keys and paths of errors.
#define _XOPEN_SOURCE 700 // mkstemp, fdopen

#include "support/test.h"

#include <math.h>

#include "core/json/json.h"

static json_t *parse(const char *bytes) {
    json_t *value = NULL;
    CHECK_OK(tare__json_parse(bytes, strlen(bytes), &value, NULL));
    return value;
}

static void expect_refusal(const char *bytes, const char *where, const char *message) {
    json_t *value = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(tare__json_parse(bytes, strlen(bytes), &value, err), TARE_MALFORMED_FILE);
    assert_null(value);
    assert_string_equal(tare_error_where(err), where);
    if (!strstr(tare_error_message(err), message)) fail_msg("%s", tare_error_message(err));
    tare_error_destroy(err);
}

static void malformed_text_names_its_line(void **state) {
    (void)state;
    expect_refusal("{\"a\": 1,\n \"b\" 2}", "line 2 column 6", "':' expected");
    expect_refusal("{\"a\": 1, \"a\": 2}", "line 1 column 12", "duplicate object key");
    expect_refusal("[99999999999999999999]", "line 1 column 21", "too big integer");
    expect_refusal("[\"\xFF\"]", "line 1 column 2", "unable to decode byte 0xff");
    expect_refusal("", "line 1 column 0", "'[' or '{' expected");
    expect_refusal("[1] x", "line 1 column 5", "end of file expected");
    expect_refusal("[1e999]", "line 1 column 6", "real number overflow");
}

static void escapes_and_numbers_are_read(void **state) {
    (void)state;
    json_t *value = parse("[\"a\\n\\u00e9\\ud83d\\ude00\\\"\\/\", \"\", \"\xC3\xA9\x7F\", -0, 12, "
                          "-9223372036854775808, "
                          "9223372036854775807, 1.5e3, 1E-2, true, false, null, {}, []]");
    assert_string_equal(json_string_value(json_array_get(value, 0)),
                        "a\n\xC3\xA9\xF0\x9F\x98\x80\"/");
    assert_string_equal(json_string_value(json_array_get(value, 1)), "");
    assert_string_equal(json_string_value(json_array_get(value, 2)), "\xC3\xA9\x7F");
    assert_int_equal(json_integer_value(json_array_get(value, 3)), 0);
    assert_true(json_integer_value(json_array_get(value, 5)) == INT64_MIN);
    assert_true(json_integer_value(json_array_get(value, 6)) == INT64_MAX);
    assert_true(json_real_value(json_array_get(value, 7)) == 1500.0);
    assert_true(json_real_value(json_array_get(value, 8)) == 0.01);
    assert_true(json_is_true(json_array_get(value, 9)) && json_is_null(json_array_get(value, 11)));
    assert_int_equal(json_array_size(value), 14);
    json_decref(value);
}

static void every_broken_form_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *words;
    } rows[] = {
        {"[1,]", "invalid token"},
        {"[1 2]", "']' expected"},
        {"{\"a\": 1,}", "string or '}' expected"},
        {"{\"a\": 1", "'}' expected"},
        {"{1: 2}", "string or '}' expected"},
        {"[01]", "invalid number"},
        {"[-]", "invalid number"},
        {"[1.]", "invalid number"},
        {"[1e]", "invalid number"},
        {"[.5]", "invalid token"},
        {"[nul]", "invalid token"},
        {"[nullx]", "invalid token"},
        {"[NaN]", "invalid token"},
        {"[\"a", "premature end of input"},
        {"[\"a\\", "premature end of input"},
        {"[", "premature end of input"},
        {"[\"\\x\"]", "invalid escape"},
        {"[\"\\u12g4\"]", "invalid escape"},
        {"[\"\\u0000\"]", "not allowed"},
        {"[\"\\ud83d\"]", "surrogate"},
        {"[\"\\ud83d\\u0041\"]", "surrogate"},
        {"[\"\\ude00\"]", "surrogate"},
        {"[\"\n\"]", "control character 0xa"},
        {"[\"\xC3\"]", "unable to decode byte 0xc3"},
        {"[\"\xED\xA0\x80\"]", "unable to decode"},
        {"[\"\xC3", "unable to decode byte 0xc3"},
        {"[9223372036854775808]", "too big integer"},
        {"[-9223372036854775809]", "too big negative integer"},
        {"5", "'[' or '{' expected"},
        {"[1]]", "end of file expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = NULL;
        tare_error *err = tare_error_create();
        // Not NUL-terminated, so that a read past the end is seen.
        const size_t size = strlen(rows[i].bytes);
        char *bytes = malloc(size);
        memcpy(bytes, rows[i].bytes, size);
        assert_int_equal(tare__json_parse(bytes, size, &value, err), TARE_MALFORMED_FILE);
        if (!strstr(tare_error_message(err), rows[i].words))
            fail_msg("%s: %s", rows[i].bytes, tare_error_message(err));
        assert_null(value);
        free(bytes);
        tare_error_destroy(err);
    }
}

static void *json_alloc(size_t size) {
    return tare__alloc(size);
}

static void memory_that_is_gone_is_no_syntax_error(void **state) {
    (void)state;
    json_set_alloc_funcs(json_alloc, tare__free);
    const char *bytes = "{\"a long key, longer than any first buffer\": [1, 2.5, \"\\u00e9 and a "
                        "long string that must grow its buffer twice at least\", {}, null]}";
    json_t *value = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__json_parse(bytes, strlen(bytes), &value, NULL),
                           json_decref(value));
    json_set_alloc_funcs(malloc, free);
}

static void nesting_is_limited(void **state) {
    (void)state;
    char deep[300] = "";
    for (int i = 0; i < 64; i++) strcat(deep, "[");
    for (int i = 0; i < 64; i++) strcat(deep, "]");
    json_decref(parse(deep));
    memmove(deep + 2, deep, strlen(deep) + 1);
    deep[0] = '\n';
    deep[1] = '[';
    expect_refusal(deep, "line 2 column 65", "at most 64 levels");
    json_decref(
        parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\"]"));
}

static void only_the_given_bytes_are_read(void **state) {
    (void)state;
    json_t *value = NULL;
    const char bytes[] = {'[', '1', ']', 'x'};
    CHECK_OK(tare__json_parse(bytes, 3, &value, NULL));
    json_decref(value);
}

static void complaints_name_the_path(void **state) {
    (void)state;
    json_t *value = parse("{\"configs\": [{}, {\"input dtype\": \"quint8\", \"x\": [1.5]}]}");
    const json_at root = tare__json_root(value), configs = tare__json_get(&root, "configs");
    const json_at config = tare__json_item(&configs, 1),
                  dtype = tare__json_get(&config, "input dtype");
    const json_at x = tare__json_get(&config, "x"), number = tare__json_item(&x, 0);
    const json_at absent = tare__json_item(&x, 1), below = tare__json_get(&absent, "y");
    tare_error *err = tare_error_create();
    int64_t out = 7;
    assert_int_equal(tare__json_int(&dtype, &out, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_where(err), "$.configs[1][\"input dtype\"]");
    assert_string_equal(tare_error_message(err), "expected an integer, found a string");
    assert_int_equal(tare__json_int(&number, &out, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_message(err), "expected an integer, found a number");
    assert_int_equal(tare__json_int(&below, &out, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_where(err), "$.configs[1].x[1].y");
    assert_string_equal(tare_error_message(err), "expected an integer, found nothing");
    assert_int_equal(tare__json_expect(&root, JSON_ARRAY, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_where(err), "$");
    assert_string_equal(tare_error_message(err), "expected an array, found an object");
    assert_int_equal(out, 7);
    tare_error_destroy(err);
    json_decref(value);
}

static void values_are_read_by_type(void **state) {
    (void)state;
    json_t *value = parse("{\"i\": -3, \"d\": 0.5, \"s\": \"x\", \"b\": true,"
                          " \"f\": {\"float\": \"-inf\"}, \"g\": {\"float\": \"big\"}}");
    const json_at root = tare__json_root(value);
    const json_at i = tare__json_get(&root, "i"), d = tare__json_get(&root, "d");
    const json_at s = tare__json_get(&root, "s"), b = tare__json_get(&root, "b");
    const json_at f = tare__json_get(&root, "f"), g = tare__json_get(&root, "g");
    int64_t integer = 0;
    double real = 0;
    const char *string = NULL;
    bool truth = false;
    CHECK_OK(tare__json_int(&i, &integer, NULL));
    CHECK_OK(tare__json_double(&d, &real, NULL));
    CHECK_OK(tare__json_string(&s, &string, NULL));
    CHECK_OK(tare__json_bool(&b, &truth, NULL));
    assert_true(integer == -3 && real == 0.5 && strcmp(string, "x") == 0 && truth);
    CHECK_OK(tare__json_double(&i, &real, NULL));
    assert_true(real == -3);
    CHECK_OK(tare__json_double(&f, &real, NULL));
    assert_true(isinf(real) && real < 0);
    assert_int_equal(tare__json_double(&g, &real, NULL), TARE_MALFORMED_FILE);
    assert_int_equal(tare__json_double(&s, &real, NULL), TARE_MALFORMED_FILE);
    assert_int_equal(tare__json_bool(&i, &truth, NULL), TARE_MALFORMED_FILE);
    assert_int_equal(tare__json_string(&b, &string, NULL), TARE_MALFORMED_FILE);
    assert_true(tare__json_has(&root, "i") && !tare__json_has(&root, "j"));
    json_decref(value);
}

static void unknown_keys_are_refused(void **state) {
    (void)state;
    static const char *const keys[] = {"dtype", "quant_min", NULL};
    json_t *value = parse("{\"dtype\": 1, \"qaunt_min\": 2}"), *other = parse("{\"scheme\": 1}");
    tare_error *err = tare_error_create();
    json_at root = tare__json_root(value);
    assert_int_equal(tare__json_only_keys(&root, keys, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_message(err), "unknown key 'qaunt_min'");
    assert_string_equal(tare_error_hint(err), "did you mean 'quant_min'?");
    root = tare__json_root(other);
    assert_int_equal(tare__json_only_keys(&root, keys, err), TARE_MALFORMED_FILE);
    assert_string_equal(tare_error_hint(err), "the keys here are dtype, quant_min");
    json_object_del(value, "qaunt_min");
    root = tare__json_root(value);
    CHECK_OK(tare__json_only_keys(&root, keys, err));
    tare_error_destroy(err);
    json_decref(value);
    json_decref(other);
}

static void a_file_is_named_in_its_complaints(void **state) {
    (void)state;
    char path[] = "/tmp/tare-test-json-XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *stream = fdopen(descriptor, "w");
    fputs("[1,", stream);
    fclose(stream);
    json_t *value = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(tare__json_parse_file(path, &value, err), TARE_MALFORMED_FILE);
    assert_ptr_equal(strstr(tare_error_where(err), path), tare_error_where(err));
    assert_non_null(strstr(tare_error_where(err), ": line 1 column 3"));
    remove(path);
    assert_int_equal(tare__json_parse_file(path, &value, err), TARE_IO);
    tare_error_destroy(err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_text_names_its_line),
        cmocka_unit_test(escapes_and_numbers_are_read),
        cmocka_unit_test(every_broken_form_is_refused),
        cmocka_unit_test(memory_that_is_gone_is_no_syntax_error),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(only_the_given_bytes_are_read),
        cmocka_unit_test(complaints_name_the_path),
        cmocka_unit_test(values_are_read_by_type),
        cmocka_unit_test(unknown_keys_are_refused),
        cmocka_unit_test(a_file_is_named_in_its_complaints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
