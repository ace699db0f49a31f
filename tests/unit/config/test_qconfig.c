// SPDX-License-Identifier: Apache-2.0
// QConfigs and their mappings: reading and writing, defaults, precedence of sections, regexes.
#include "support/test.h"

#include "config/qconfig.h"
#include "core/json/json.h"

// --- helpers ---

static tare_qconfig *with_range(int64_t quant_max) {
    tare_observer_spec *activation = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_int(activation, "quant_min", 0);
    tare_observer_spec_set_int(activation, "quant_max", quant_max);
    tare_qconfig *q = tare_qconfig_create(activation, activation);
    tare_observer_spec_release(activation);
    assert_non_null(q);
    return q;
}

static tare_qconfig_mapping *mapping_of(const char *json) {
    tare_qconfig_mapping *m = NULL;
    CHECK_OK(tare_qconfig_mapping_from_json(json, strlen(json), &m, NULL));
    return m;
}

static tare_qconfig *named(const char *name) {
    tare_qconfig *q = NULL;
    CHECK_OK(tare_qconfig_named(name, &q, NULL));
    return q;
}

// --- qconfigs ---

static void names_are_the_keys_of_the_embedded_file(void **state) {
    (void)state;
    json_t *json = NULL, *one = NULL;
    const char *key = NULL;
    size_t i = 0;
    CHECK_OK(tare__embedded_json("qconfigs/qconfigs.json", &json, NULL));
    json_object_foreach(json, key, one) {
        tare_qconfig *q = NULL;
        assert_non_null(tare_qconfig_name_at(i));
        assert_string_equal(tare_qconfig_name_at(i++), key);
        CHECK_OK(tare_qconfig_named(key, &q, NULL));
        assert_non_null(q);
        tare_qconfig_release(q);
    }
    assert_null(tare_qconfig_name_at(i));
    json_decref(json);
}

static void qconfigs_read_back_from_json(void **state) {
    (void)state;
    for (size_t i = 0; tare_qconfig_name_at(i) != NULL; i++) {
        tare_qconfig *q = named(tare_qconfig_name_at(i)), *again = NULL;
        char *json = NULL;
        json_t *parsed = NULL;
        CHECK_OK(tare_qconfig_to_json(q, &json, NULL));
        CHECK_OK(tare__json_parse(json, strlen(json), &parsed, NULL));
        const json_at at = tare__json_root(parsed);
        CHECK_OK(tare__qconfig_from_json(&at, &again, NULL));
        assert_true(tare_qconfig_equal(q, again));
        tare_qconfig_release(q);
        tare_qconfig_release(again);
        json_decref(parsed);
        tare_string_free(json);
    }
}

static void qconfigs_print_their_arguments(void **state) {
    (void)state;
    tare_qconfig *q = named("default_qconfig");
    text t = {0};
    tare__qconfig_text(q, &t);
    assert_string_equal(tare__text_chars(&t),
                        "QConfig(activation=MinMaxObserver(quant_min=0, quant_max=127), "
                        "weight=MinMaxObserver(dtype=torch.qint8, "
                        "qscheme=torch.per_tensor_symmetric))");
    tare__text_release(&t);
    tare_qconfig_release(q);
}

static void equality_looks_at_class_and_arguments_in_any_order(void **state) {
    (void)state;
    tare_observer_spec *a = tare_observer_spec_create("HistogramObserver"),
                       *b = tare_observer_spec_create("HistogramObserver");
    tare_observer_spec_set_int(a, "quant_min", 0);
    tare_observer_spec_set_double(a, "eps", 0.5);
    tare_observer_spec_set_double(b, "eps", 0.5);
    tare_observer_spec_set_int(b, "quant_min", 0);
    assert_true(tare__observer_spec_equal(a, b));
    tare_observer_spec_set_bool(b, "quant_min", false); // False == 0 in Python
    assert_true(tare__observer_spec_equal(a, b));
    tare_observer_spec_set_bool(b, "reduce_range", false); // given, if only the default
    assert_false(tare__observer_spec_equal(a, b));
    tare_observer_spec_set_int(a, "bins", 1);
    assert_false(tare__observer_spec_equal(a, b));
    tare_observer_spec_release(a);
    tare_observer_spec_release(b);
    assert_true(tare_qconfig_equal(NULL, NULL));
    tare_qconfig *q = with_range(127), *same = with_range(127), *other = with_range(255);
    assert_true(tare_qconfig_equal(q, same));
    assert_false(tare_qconfig_equal(q, other));
    assert_false(tare_qconfig_equal(q, NULL));
    tare_qconfig_release(q);
    tare_qconfig_release(same);
    tare_qconfig_release(other);
}

static void nested_observers_are_compared_too(void **state) {
    (void)state;
    tare_observer_spec *inner = tare_observer_spec_create("MinMaxObserver"),
                       *other = tare_observer_spec_create("HistogramObserver"),
                       *a = tare_observer_spec_create("FakeQuantize"),
                       *b = tare_observer_spec_create("FakeQuantize");
    tare_observer_spec_set_observer(a, "observer", inner);
    tare_observer_spec_set_observer(b, "observer", other);
    assert_false(tare__observer_spec_equal(a, b));
    tare_observer_spec_set_observer(b, "observer", inner);
    assert_true(tare__observer_spec_equal(a, b));
    CHECK_OK(tare__observer_spec_status(b, NULL));
    tare_observer_spec_set_observer(b, "observer", b);
    assert_int_equal(tare__observer_spec_status(b, NULL), TARE_INVALID_ARGUMENT);
    tare_observer_spec_release(inner);
    tare_observer_spec_release(other);
    tare_observer_spec_release(a);
    tare_observer_spec_release(b);
}

static void an_unknown_name_is_refused_with_the_nearest(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    tare_qconfig *q = NULL;
    tare_qconfig_mapping *m = NULL;
    assert_int_equal(tare_qconfig_named("default_qconfg", &q, err), TARE_NOT_FOUND);
    assert_non_null(strstr(tare_error_hint(err), "default_qconfig"));
    assert_int_equal(tare_qconfig_mapping_default("x68", false, -1, &m, err), TARE_NOT_FOUND);
    assert_non_null(strstr(tare_error_message(err), "backend: x68 not supported"));
    assert_non_null(strstr(tare_error_hint(err), "x86"));
    assert_int_equal(tare_qconfig_mapping_default("x86", false, 1, &m, err), TARE_UNSUPPORTED);
    assert_int_equal(tare_qconfig_mapping_default("x86", true, 2, &m, err), TARE_UNSUPPORTED);
    assert_int_equal(tare_qconfig_mapping_default("symmetric_qnnpack", true, 0, &m, err),
                     TARE_UNSUPPORTED);
    tare_error_destroy(err);
}

// --- default mappings ---

static void assert_same_mapping(const tare_qconfig_mapping *a, const tare_qconfig_mapping *b) {
    char *left = NULL, *right = NULL;
    CHECK_OK(tare_qconfig_mapping_to_json(a, &left, NULL));
    CHECK_OK(tare_qconfig_mapping_to_json(b, &right, NULL));
    assert_string_equal(left, right);
    tare_string_free(left);
    tare_string_free(right);
}

static void check_default(const char *name, bool is_qat, int version) {
    tare_qconfig_mapping *m = NULL, *again = NULL, *clone = NULL;
    char *json = NULL;
    CHECK_OK(tare_qconfig_mapping_default(name, is_qat, version, &m, NULL));
    // Ours for training names the embeddings too; those of weights are for all.
    const size_t usual = tare_qconfig_mapping_default_backend(name) != NULL ? 0 : 23;
    assert_int_equal(m->object_type.count, is_qat && strcmp(name, "tare") == 0 ? 25 : usual);
    assert_string_equal(m->default_name, name);
    CHECK_OK(tare_qconfig_mapping_to_json(m, &json, NULL));
    CHECK_OK(tare_qconfig_mapping_from_json(json, strlen(json), &again, NULL));
    assert_same_mapping(m, again);
    CHECK_OK(tare_qconfig_mapping_clone(m, &clone, NULL));
    assert_same_mapping(m, clone);
    tare_string_free(json);
    tare_qconfig_mapping_destroy(m);
    tare_qconfig_mapping_destroy(again);
    tare_qconfig_mapping_destroy(clone);
}

static void defaults_read_back_from_json(void **state) {
    (void)state;
    for (size_t i = 0; tare_qconfig_mapping_default_name_at(i) != NULL; i++) {
        const char *name = tare_qconfig_mapping_default_name_at(i);
        check_default(name, false, -1);
        if (tare_qconfig_mapping_default_backend(name) != NULL) {
            tare_qconfig_mapping *m = NULL;
            assert_int_equal(tare_qconfig_mapping_default(name, true, -1, &m, NULL),
                             TARE_UNSUPPORTED);
            continue;
        }
        check_default(name, true, -1);
        const bool has_old_qat =
            strcmp(name, "symmetric_qnnpack") != 0 && strcmp(name, "tare") != 0;
        if (has_old_qat) check_default(name, true, 0);
    }
}

// Everything of x86's but the bit that it gives up. In training that one refuses networks with
// embeddings; ours leaves them float.
static void ours_is_x86_with_all_bits(void **state) {
    (void)state;
    for (int is_qat = 0; is_qat < 2; is_qat++) {
        tare_qconfig_mapping *x86 = NULL, *ours = NULL, *same = NULL;
        CHECK_OK(tare_qconfig_mapping_default("x86", is_qat, -1, &x86, NULL));
        CHECK_OK(tare_qconfig_mapping_default("tare", is_qat, -1, &ours, NULL));
        char *json = NULL;
        CHECK_OK(tare_qconfig_mapping_to_json(x86, &json, NULL));
        static const char bit[] = "\"reduce_range\": true";
        for (char *at = json; (at = strstr(at, bit)) != NULL; at += sizeof bit - 1)
            memcpy(at, "\"reduce_range\":false", sizeof bit - 1);
        CHECK_OK(tare_qconfig_mapping_from_json(json, strlen(json), &same, NULL));
        const size_t common = same->object_type.count;
        assert_int_equal(ours->object_type.count, is_qat ? common + 2 : common);
        for (size_t i = common; i < ours->object_type.count; i++) {
            assert_memory_equal(ours->object_type.items[i].key, "torch.nn.Embedding", 18);
            assert_null(ours->object_type.items[i].qconfig);
        }
        tare_observer_info a, b;
        const observer_classes none = {0};
        for (size_t i = 0; i < common; i++) {
            assert_string_equal(same->object_type.items[i].key, ours->object_type.items[i].key);
            const tare_qconfig *p = same->object_type.items[i].qconfig;
            const tare_qconfig *q = ours->object_type.items[i].qconfig;
            CHECK_OK(tare__observer_spec_info(&none, p->activation, &a, NULL));
            CHECK_OK(tare__observer_spec_info(&none, q->activation, &b, NULL));
            assert_true(a.dtype == b.dtype && a.qscheme == b.qscheme &&
                        a.quant_min == b.quant_min && a.quant_max == b.quant_max &&
                        a.has_fixed_qparams == b.has_fixed_qparams);
            assert_true(tare__observer_spec_equal(p->weight, q->weight));
        }
        CHECK_OK(tare__observer_spec_info(&none, ours->global->activation, &b, NULL));
        assert_int_equal(b.quant_max, 255);
        tare_string_free(json);
        tare_qconfig_mapping_destroy(x86);
        tare_qconfig_mapping_destroy(ours);
        tare_qconfig_mapping_destroy(same);
    }
}

static void check_for_backend(const char *backend, const char *mapping) {
    tare_backend_config *b = NULL;
    tare_qconfig_mapping *m = NULL;
    CHECK_OK(tare_backend_config_builtin(backend, &b, NULL));
    CHECK_OK(tare_qconfig_mapping_for_backend(b, false, &m, NULL));
    assert_string_equal(m->default_name, mapping);
    tare_qconfig_mapping_destroy(m);
    tare_backend_config_destroy(b);
}

static void a_backend_gets_a_mapping_that_it_takes(void **state) {
    (void)state;
    check_for_backend("x86", "tare");
    check_for_backend("fbgemm", "tare");
    check_for_backend("executorch", "tare");
    check_for_backend("qnnpack", "tare"); // its constraints are those of symmetric qnnpack alone
}

static void the_defaults_of_x86_and_fbgemm_are_equal(void **state) {
    (void)state;
    tare_qconfig_mapping *x86 = NULL, *fbgemm = mapping_of("{\"default\": \"fbgemm\"}");
    CHECK_OK(tare_qconfig_mapping_default("x86", false, -1, &x86, NULL));
    assert_same_mapping(x86, fbgemm);
    assert_true(tare_qconfig_equal(x86->global, fbgemm->global));
    tare_qconfig_mapping *qat = mapping_of("{\"default_qat\": \"x86\"}");
    assert_string_equal(tare__observer_spec_class(qat->global->activation),
                        "FusedMovingAvgObsFakeQuantize"); // version 1 is torch's default
    tare_qconfig_mapping_destroy(qat);
    tare_qconfig_mapping_destroy(x86);
    tare_qconfig_mapping_destroy(fbgemm);
}

static void sections_beside_a_default_override_it(void **state) {
    (void)state;
    tare_qconfig_mapping *m =
        mapping_of("{\"default\": \"x86\", \"object_type\": "
                   "[[\"torch.nn.PReLU\", null], [\"torch.nn.Linear\", null]],"
                   " \"module_name\": [[\"fc\", null]]}");
    assert_int_equal(m->object_type.count, 24);
    assert_null(tare__qconfig_by_type(m, "torch.nn.PReLU", tare__qconfig_global(m)).qconfig);
    assert_int_equal(m->module_name.count, 1);
    assert_non_null(m->global);
    tare_qconfig_mapping_destroy(m);
}

// --- lookups ---

static qconfig_choice adjust(const tare_qconfig_mapping *m, const char *type, const char *path) {
    qconfig_choice out = {0};
    CHECK_OK(tare__qconfig_adjust(m, type, path, tare__qconfig_global(m), &out, NULL));
    return out;
}

static void assert_choice(qconfig_choice found, const tare_qconfig *qconfig, const char *section,
                          const char *key) {
    assert_ptr_equal(found.qconfig, qconfig);
    assert_string_equal(found.section, section);
    if (key == NULL)
        assert_null(found.key);
    else
        assert_string_equal(found.key, key);
}

static void later_sections_win(void **state) {
    (void)state;
    tare_qconfig *q[5];
    for (int i = 0; i < 5; i++) q[i] = with_range(i + 1);
    tare_qconfig_mapping *m = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(m, q[0]);
    tare_qconfig_mapping_set_object_type(m, "torch.nn.Linear", q[1]);
    tare_qconfig_mapping_set_module_name_regex(m, "head\\..*", q[2]);
    tare_qconfig_mapping_set_module_name(m, "head.fc", q[3]);
    tare_qconfig_mapping_set_module_name_object_type_order(m, "head", "torch.nn.Linear", 1, q[4]);
    assert_choice(adjust(m, "torch.nn.ReLU", "body"), q[0], "global", NULL);
    assert_choice(adjust(m, "torch.nn.Linear", "body"), q[1], "object_type", "torch.nn.Linear");
    assert_choice(adjust(m, "torch.nn.modules.linear.Linear", "body"), q[1], "object_type",
                  "torch.nn.Linear");
    assert_choice(adjust(m, "torch.nn.Linear", "head.x"), q[2], "module_name_regex", "head\\..*");
    assert_choice(adjust(m, "torch.nn.Linear", "head"), q[1], "object_type", "torch.nn.Linear");
    const qconfig_choice by_name = adjust(m, NULL, "head.fc");
    assert_choice(by_name, q[3], "module_name", "head.fc");
    assert_choice(tare__qconfig_by_order(m, "head", "torch.nn.Linear", 0, by_name), q[3],
                  "module_name", "head.fc");
    assert_choice(tare__qconfig_by_order(m, "head", "torch.nn.Linear", 1, by_name), q[4],
                  "module_name_object_type_order", "torch.nn.Linear 1 in head");
    for (int i = 0; i < 5; i++) tare_qconfig_release(q[i]);
    tare_qconfig_mapping_destroy(m);
}

static void a_name_covers_its_descendants_and_the_nearest_wins(void **state) {
    (void)state;
    tare_qconfig *outer = with_range(1), *inner = with_range(2);
    tare_qconfig_mapping *m = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_module_name(m, "a", outer);
    tare_qconfig_mapping_set_module_name(m, "a.b", inner);
    tare_qconfig_mapping_set_module_name(m, "a.b.off", NULL);
    assert_choice(adjust(m, NULL, "a.c.d"), outer, "module_name", "a");
    assert_choice(adjust(m, NULL, "a.b.c"), inner, "module_name", "a.b");
    assert_choice(adjust(m, NULL, "a.b.off.x"), NULL, "module_name", "a.b.off");
    assert_choice(adjust(m, NULL, "ab"), NULL, "global", NULL);
    assert_choice(adjust(m, NULL, ""), NULL, "global", NULL);
    tare_qconfig_release(outer);
    tare_qconfig_release(inner);
    tare_qconfig_mapping_destroy(m);
}

static void the_first_regex_that_matches_wins(void **state) {
    (void)state;
    tare_qconfig *first = with_range(1), *second = with_range(2);
    tare_qconfig_mapping *m = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_module_name_regex(m, "conv*", first);
    tare_qconfig_mapping_set_module_name_regex(m, ".*", second);
    assert_choice(adjust(m, NULL, "conv1"), first, "module_name_regex", "conv*");
    assert_choice(adjust(m, NULL, "body.conv1"), second, "module_name_regex", ".*");
    tare_qconfig_mapping_set_module_name_regex(m, "conv*", NULL); // keeps its position
    assert_choice(adjust(m, NULL, "conv1"), NULL, "module_name_regex", "conv*");
    assert_int_equal(m->module_name_regex.count, 2);
    tare_qconfig_release(first);
    tare_qconfig_release(second);
    tare_qconfig_mapping_destroy(m);
}

static void names_of_one_function_are_one_key(void **state) {
    (void)state;
    tare_qconfig *q = with_range(1);
    tare_qconfig_mapping *m = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_object_type(m, "torch.conv2d", q);
    const qconfig_choice found =
        tare__qconfig_by_type(m, "torch.nn.functional.conv2d", tare__qconfig_global(m));
    assert_ptr_equal(found.qconfig, q);
    tare_qconfig_mapping_set_object_type(m, "torch.nn.functional.conv2d", NULL);
    assert_int_equal(m->object_type.count, 1);
    tare_qconfig_release(q);
    tare_qconfig_mapping_destroy(m);
}

// --- errors ---

static void assert_json_refused(const char *json, const char *where, const char *message) {
    tare_error *err = tare_error_create();
    tare_qconfig_mapping *m = NULL;
    assert_int_not_equal(tare_qconfig_mapping_from_json(json, strlen(json), &m, err), TARE_OK);
    assert_null(m);
    char found[1024];
    snprintf(found, sizeof found, "%s: %s", tare_error_where(err), tare_error_message(err));
    assert_non_null(strstr(found, where));
    assert_non_null(strstr(found, message));
    tare_error_destroy(err);
}

static void broken_json_is_refused_at_its_path(void **state) {
    (void)state;
    assert_json_refused("[]", "$", "object");
    assert_json_refused("{\"globl\": null}", "$", "globl");
    assert_json_refused("{\"default\": \"x87\"}", "$.default", "x87");
    assert_json_refused("{\"default\": \"x86\", \"default_qat\": \"x86\"}", "$", "exclude");
    assert_json_refused("{\"object_type\": {}}", "$.object_type", "array");
    assert_json_refused("{\"object_type\": [[\"a\"]]}", "$.object_type[0]", "2 elements");
    assert_json_refused("{\"module_name\": [[1, null]]}", "$.module_name[0][0]", "string");
    assert_json_refused("{\"global\": {\"weight\": null}}", "$.global.activation", "");
    assert_json_refused("{\"global\": {\"activation\": {\"clas\": \"MinMaxObserver\"}}}",
                        "$.global.activation", "clas");
    assert_json_refused("{\"global\": {\"activation\": {\"class\": \"A\", \"kwargs\": "
                        "{\"x\": []}}}}",
                        "$.global.activation.kwargs.x", "list");
    assert_json_refused("{\"module_name_object_type_order\": [[\"a\", \"b\", \"c\", null]]}",
                        "$.module_name_object_type_order[0][2]", "");
    assert_json_refused("{\"module_name_regex\": [[\"a(\", null]]}", "$.module_name_regex[0]",
                        "missing )");
}

static void setters_remember_their_first_error(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    tare_qconfig_mapping *m = tare_qconfig_mapping_create(), *clone = NULL;
    tare_qconfig_mapping_set_module_name_regex(m, "(?=x)", NULL);
    tare_qconfig_mapping_set_module_name(m, NULL, NULL);
    assert_int_equal(tare__qconfig_mapping_status(m, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "regex '(?=x)'"));
    assert_int_equal(tare_qconfig_mapping_clone(m, &clone, err), TARE_INVALID_ARGUMENT);
    tare_qconfig_mapping_destroy(m);
    tare_error_destroy(err);
}

static void an_error_in_a_spec_is_an_error_of_the_mapping(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    tare_observer_spec *spec = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(spec, "dtype", (tare_dtype)77);
    tare_qconfig *q = tare_qconfig_create(spec, NULL);
    tare_qconfig_mapping *m = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_object_type(m, "torch.nn.Linear", q);
    assert_int_equal(tare__qconfig_mapping_status(m, err), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_where(err), "QConfig of 'torch.nn.Linear'");
    tare_qconfig_mapping_destroy(m);
    tare_qconfig_release(q);
    tare_observer_spec_release(spec);
    tare_error_destroy(err);
}

// --- regexes ---

typedef struct regex_case {
    const char *regex, *name;
    bool matches; // what Python's re.match says
} regex_case;

static void regexes_match_as_in_python(void **state) {
    (void)state;
    static const regex_case cases[] = {
        {"conv*", "con", true},
        {"conv*", "a.conv", false},
        {"", "anything", true},
        {"fc$", "fc", true},
        {"fc$", "fc1", false},
        {"layer\\d+\\.conv", "layer12.conv1", true},
        {"layer\\d+\\.conv", "layer12xconv1", false},
        {"\\w+$", "a_1", true},
        {"\\w+$", "a.1", false},
        {"a\\Sb", "a.b", true},
        {"a\\Db", "a1b", false},
        {"[a-c]+\\.[^0-9]", "abc.x", true},
        {"[a-c]+\\.[^0-9]", "abc.1", false},
        {"[\\w.]+$", "a.b_c", true},
        {"[]x]+$", "]x]", true},
        {"[x^-]+$", "^-x", true},
        {"[\\]\\\\-]+$", "]-\\", true},
        {"[^^]", "^", false},
        {"(?:a|b)c", "bc", true},
        {"(?P<name>a|b)c", "cc", false},
        {"(a|)c", "c", true},
        {"(|a)c", "ac", true},
        {"a|b", "b", true},
        {"a|", "zzz", true},
        {"x{2}$", "xx", true},
        {"x{2,}$", "xxxx", true},
        {"x{,2}$", "xx", true},
        {"x{,2}$", "xxx", false},
        {"x{1,2}y", "xxy", true},
        {"x{y", "x{y", true},
        {"x{}", "x{}", true},
        {"x]", "x]", true},
        {"a*?b+?c??", "aab", true},
        {"a\\+b", "a+b", true},
        {"a\\(b\\|", "a(b|", true},
        {"\\Aab\\Z", "ab", true},
        {"\\Aab\\Z", "abc", false},
        {"\xc3\xa9", "\xc3\xa9tage", true},
        {"[^a]", "\xc3\xa9tage", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        python_regex *regex = NULL;
        CHECK_OK(tare__python_regex_compile(cases[i].regex, &regex, NULL));
        if (tare__python_regex_match(regex, cases[i].name) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].regex, cases[i].name);
        tare__python_regex_destroy(regex);
    }
}

static void unusable_regexes_are_refused(void **state) {
    (void)state;
    static const char *const cases[] = {
        "*a",    "a**", "a|*",   "(*a)",      "(a",      "a)",        "[a",  "[^]",
        "a\\",   "\\1", "\\ba",  "(?=a)",     "(?!a)",   "(?i)a",     "a*+", "[z-a]",
        "[\\q]", "^*",  "(?P<a", "[^\\w\\W]", "a{2}{3}", "(?P=name)",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        python_regex *regex = NULL;
        tare_error *err = tare_error_create();
        if (tare__python_regex_compile(cases[i], &regex, err) != TARE_INVALID_ARGUMENT)
            fail_msg("'%s' was accepted", cases[i]);
        assert_non_null(strstr(tare_error_message(err), cases[i]));
        tare_error_destroy(err);
    }
}

// The C library would write the repetitions out, or recurse once a group.
static void regexes_that_explode_are_refused(void **state) {
    (void)state;
    char groups[201] = {0}, long_one[1102] = {0}, nested[400] = "a";
    memset(groups, '(', 100);
    memset(groups + 100, ')', 100);
    memset(long_one, 'a', 1101);
    for (int i = 0; i < 30; i++) { // ((a+)+)+ ..
        char inner[400];
        memcpy(inner, nested, sizeof inner);
        snprintf(nested, sizeof nested, "(%.300s)+", inner);
    }
    const char *const cases[] = {
        groups,     long_one,       nested,           "(a{255}){255}", "((a{99}){99}){99}",
        "a{50000}", "(ab){,60000}", "(a{300,}){300,}"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        python_regex *regex = NULL;
        if (tare__python_regex_compile(cases[i], &regex, NULL) != TARE_INVALID_ARGUMENT)
            fail_msg("'%s' was accepted", cases[i]);
    }
    python_regex *regex = NULL;
    CHECK_OK(tare__python_regex_compile("(layer[0-9]{1,3}\\.){2}(conv|fc)+", &regex, NULL));
    assert_true(tare__python_regex_match(regex, "layer1.layer22.conv"));
    tare__python_regex_destroy(regex);
}

// --- memory ---

static tare_status whole_life(void) {
    static const char json[] = "{\"global\": null, \"module_name_regex\": [[\"a[bc]\", "
                               "{\"activation\": {\"class\": \"MinMaxObserver\", \"kwargs\": "
                               "{\"dtype\": \"torch.qint8\"}}, \"weight\": null}]], "
                               "\"object_type\": [[\"torch.nn.Linear\", null]], "
                               "\"module_name_object_type_order\": [[\"a\", \"b\", 0, null]]}";
    tare_qconfig_mapping *m = NULL, *clone = NULL;
    char *written = NULL;
    tare_status status = tare_qconfig_mapping_from_json(json, sizeof json - 1, &m, NULL);
    if (status == TARE_OK) status = tare_qconfig_mapping_clone(m, &clone, NULL);
    if (status == TARE_OK) status = tare_qconfig_mapping_to_json(clone, &written, NULL);
    tare_string_free(written);
    tare_qconfig_mapping_destroy(m);
    tare_qconfig_mapping_destroy(clone);
    return status;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state) {
    (void)state;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = whole_life(), (void)0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_keys_of_the_embedded_file),
        cmocka_unit_test(qconfigs_read_back_from_json),
        cmocka_unit_test(qconfigs_print_their_arguments),
        cmocka_unit_test(equality_looks_at_class_and_arguments_in_any_order),
        cmocka_unit_test(nested_observers_are_compared_too),
        cmocka_unit_test(an_unknown_name_is_refused_with_the_nearest),
        cmocka_unit_test(defaults_read_back_from_json),
        cmocka_unit_test(ours_is_x86_with_all_bits),
        cmocka_unit_test(a_backend_gets_a_mapping_that_it_takes),
        cmocka_unit_test(the_defaults_of_x86_and_fbgemm_are_equal),
        cmocka_unit_test(sections_beside_a_default_override_it),
        cmocka_unit_test(later_sections_win),
        cmocka_unit_test(a_name_covers_its_descendants_and_the_nearest_wins),
        cmocka_unit_test(the_first_regex_that_matches_wins),
        cmocka_unit_test(names_of_one_function_are_one_key),
        cmocka_unit_test(broken_json_is_refused_at_its_path),
        cmocka_unit_test(setters_remember_their_first_error),
        cmocka_unit_test(an_error_in_a_spec_is_an_error_of_the_mapping),
        cmocka_unit_test(regexes_match_as_in_python),
        cmocka_unit_test(unusable_regexes_are_refused),
        cmocka_unit_test(regexes_that_explode_are_refused),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
