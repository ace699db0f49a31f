// SPDX-License-Identifier: Apache-2.0
// Signatures of overloads: every name in the operator table has one, and their constants are read.
#include "support/test.h"

#include "core/text/text.h"
#include "ops/op.h"
#include "ops/signatures.h"

// Names without a row go to `missing`. An overload's name ends at its parameters:
// "relu.default(input)". A name without an overload stands for several, and has no row.
static void check_names(const char *names, text *missing) {
    static const char *const prefixes[] = {"torch.ops.aten.", "torch.ops.quantized_decomposed."};
    char name[256];
    signature ignored;
    while (names != NULL && *names != '\0') {
        const size_t length = strcspn(names, "| ("), end = strcspn(names, "| ");
        assert_true(length < sizeof name);
        memcpy(name, names, length);
        name[length] = '\0';
        for (size_t i = 0; i < 2; i++)
            if (tare__starts_with(name, prefixes[i]) &&
                strchr(name + strlen(prefixes[i]), '.') != NULL &&
                !tare__signature_of(name, &ignored))
                tare__text_printf(missing, " %s", name + strlen("torch.ops."));
        // The parameters of an overload hold '|' too.
        names += names[length] == '(' ? strcspn(names, ")") + 1 : end;
        names += strspn(names, "| ");
    }
}

static void every_exported_operator_has_a_signature(void **state) {
    (void)state;
    text missing = {0};
    signature ignored;
    for (size_t i = 0; tare__op_at(i) != NULL; i++) {
        check_names(tare__op_at(i)->functions, &missing);
        check_names(tare__op_at(i)->overloads, &missing);
    }
    if (missing.length > 0)
        fail_msg("ops/rows lacks signatures: run tools/signatures.py%s", missing.chars);
    assert_false(tare__signature_of("torch.conv2d", &ignored));
    assert_false(tare__signature_of("torch.ops.aten.conv2d", &ignored));
    assert_false(tare__signature_of("torch.ops.aten.conv2d.default(", &ignored));
}

static signature_param param_of(const char *target, size_t i) {
    signature s;
    signature_param p;
    assert_true(tare__signature_of(target, &s));
    assert_true(tare__signature_param(&s, i, &p));
    return p;
}

// tools/op_coverage.py takes the rows for what is known.
static void every_signature_has_an_operator(void **state) {
    (void)state;
    text missing = {0};
    for (size_t i = 0; tare__signature_at(i) != NULL; i++) {
        char target[128];
        snprintf(target, sizeof target, "torch.ops.%.*s", (int)strcspn(tare__signature_at(i), "("),
                 tare__signature_at(i));
        if (tare__op_function(target) == NULL) tare__text_printf(&missing, " %s", target);
    }
    if (missing.length > 0) fail_msg("no operator has the names%s", missing.chars);
}

static void parameters_say_how_they_are_given(void **state) {
    (void)state;
    signature s;
    signature_param p = param_of("torch.ops.aten.to.dtype_layout", 0);
    size_t index;
    assert_memory_equal(p.name, "self", p.length);
    assert_false(p.is_keyword_only);
    p = param_of("torch.ops.aten.to.dtype_layout", 1);
    assert_memory_equal(p.name, "dtype", p.length);
    assert_true(p.is_keyword_only);
    p = param_of("torch.ops.aten.cat.default", 0);
    assert_int_equal(p.length, strlen("tensors"));
    assert_int_equal(p.list_of, 'T');
    assert_int_equal(p.list_size, 0);
    p = param_of("torch.ops.aten.conv2d.default", 3);
    assert_int_equal(p.list_of, 'i');
    assert_int_equal(p.list_size, 2);
    assert_true(tare__signature_of("torch.ops.aten.cat.default", &s));
    assert_false(tare__signature_param(&s, 2, &p));
    assert_true(tare__signature_find(&s, "dim", &index));
    assert_int_equal(index, 1);
    assert_false(tare__signature_find(&s, "di", &index));
    assert_string_equal(s.results, "T");
}

static void results_are_counted(void **state) {
    (void)state;
    static const char *const several[] = {"torch.ops.aten.max.dim", "torch.ops.aten.split.Tensor",
                                          "torch.ops.quantized_decomposed.choose_qparams.tensor"};
    signature s;
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        assert_true(tare__signature_of(several[i], &s));
        assert_true(tare__signature_gives_several(&s));
    }
    assert_true(tare__signature_of("torch.ops.aten.max.default", &s));
    assert_false(tare__signature_gives_several(&s));
    assert_true(tare__signature_of("torch.ops.aten._assert_async.msg", &s));
    assert_false(tare__signature_gives_several(&s));
}

static value default_of(const char *target, size_t i) {
    const signature_param p = param_of(target, i);
    value v;
    assert_true(tare__signature_default(&p, &v));
    return v;
}

static void defaults_are_values(void **state) {
    (void)state;
    value v = default_of("torch.ops.aten.conv2d.default", 2);
    assert_int_equal(v.kind, VALUE_NONE);
    v = default_of("torch.ops.aten.conv2d.default", 3);
    assert_int_equal(v.kind, VALUE_INT);
    assert_int_equal(v.as.integer, 1);
    v = default_of("torch.ops.aten.layer_norm.default", 4);
    assert_int_equal(v.kind, VALUE_FLOAT);
    assert_true(v.as.real == 1e-5);
    v = default_of("torch.ops.aten.layer_norm.default", 5);
    assert_int_equal(v.kind, VALUE_BOOL);
    assert_true(v.as.boolean);
    v = default_of("torch.ops.aten.max_pool2d.default", 2);
    assert_int_equal(v.kind, VALUE_LIST);
    assert_int_equal(v.count, 0);
    v = default_of("torch.ops.aten.gelu.default", 1);
    assert_string_equal(v.as.text, "none");
    const signature_param p = param_of("torch.ops.aten.conv2d.default", 1);
    assert_false(tare__signature_default(&p, &v));
}

// Constants that nobody knows would count as no defaults.
static void every_default_is_known(void **state) {
    (void)state;
    for (size_t row = 0; tare__signature_at(row) != NULL; row++) {
        char target[128];
        signature s;
        signature_param p;
        value v;
        snprintf(target, sizeof target, "torch.ops.%.*s",
                 (int)strcspn(tare__signature_at(row), "("), tare__signature_at(row));
        assert_true(tare__signature_of(target, &s));
        for (size_t i = 0; tare__signature_param(&s, i, &p); i++)
            if (p.fallback != NULL && !tare__signature_default(&p, &v))
                fail_msg("%s: default %s", target, p.fallback);
    }
}

// --- rows of operators have the same arguments in the same order ---

// Where a row means something else by its own rule.
static bool is_special(const char *name) {
    static const char *const names[] = {
        "torch.ops.aten.arange.default",             // of one number: the end
        "torch.ops.aten.einsum.default",             // a path that is passed over
        "torch.ops.aten.rsub.Tensor",                // without alpha
        "torch.ops.aten.linalg_vector_norm.default", // without a dtype
        "torch.ops.aten.to.device",                  // whose device means nothing
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static void check_order(const op_info *op, const char *name) {
    signature s;
    signature_param p;
    if (is_special(name) || !tare__signature_of(name, &s)) return;
    for (size_t i = 0; tare__signature_param(&s, i, &p); i++) {
        char argument[64];
        snprintf(argument, sizeof argument, "%.*s", (int)p.length, p.name);
        const size_t at = tare__op_param_index(op, argument);
        if (p.is_keyword_only ? at >= tare__op_param_count(op) : at != i)
            fail_msg("%s: '%s' is no argument, or another one, of row '%s'", name, argument,
                     op->id);
    }
}

// Arguments of an overload stand in the order of its signature: each is an argument of the row by
// its name, or a remark says that it has no meaning. remarks: "-x|mode=linear)", or "".
static void check_overload(const op_info *op, const char *name, const char *remarks) {
    signature s;
    signature_param p;
    if (!tare__signature_of(name, &s)) return;
    for (size_t i = 0; tare__signature_param(&s, i, &p); i++) {
        char argument[64], ignored[66];
        snprintf(argument, sizeof argument, "%.*s", (int)p.length, p.name);
        snprintf(ignored, sizeof ignored, "-%s", argument);
        const bool is_ignored = strstr(remarks, ignored) != NULL;
        const bool is_known = tare__op_param_index(op, argument) < tare__op_param_count(op);
        if (is_known == is_ignored)
            fail_msg("%s: '%s' is %s of row '%s'", name, argument,
                     is_known ? "ignored, and an argument" : "no argument", op->id);
    }
}

static void rows_agree_with_signatures(void **state) {
    (void)state;
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++) {
        char names[4096], *rest = names;
        snprintf(names, sizeof names, "%s", op->functions != NULL ? op->functions : "");
        for (char *name = strtok(names, "|"); name != NULL; name = strtok(NULL, "|"))
            check_order(op, name);
        snprintf(names, sizeof names, "%s", op->overloads != NULL ? op->overloads : "");
        while (*rest != '\0') {
            char *name = rest;
            rest += strcspn(rest, " ");
            if (*rest != '\0') *rest++ = '\0';
            char *remarks = strchr(name, '(');
            if (remarks != NULL) *remarks++ = '\0';
            check_overload(op, name, remarks != NULL ? remarks : "");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_exported_operator_has_a_signature),
        cmocka_unit_test(every_signature_has_an_operator),
        cmocka_unit_test(parameters_say_how_they_are_given),
        cmocka_unit_test(results_are_counted),
        cmocka_unit_test(defaults_are_values),
        cmocka_unit_test(every_default_is_known),
        cmocka_unit_test(rows_agree_with_signatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
