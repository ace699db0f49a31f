// SPDX-License-Identifier: Apache-2.0
// The rows EXPORT of ops/rows/, and the mapping from calls to the overloads that they name.
#include "ops/export_rows.h"

#include <stdio.h>
#include <string.h>

#include "core/text/text.h"

// The same for one, two and three dimensions.
#define CONV(d)                                                                                    \
    {"conv" #d "d.padding", "FT", "input weight bias stride padding' dilation groups"}, {          \
        "conv" #d "d.default", "FT"                                                                \
    }
#define INTERPOLATE(aten, r, params)                                                               \
    {                                                                                              \
        aten ".vec", "", "input size/output_size=None scale_factor/scale_factors=None " params,    \
            "torch.nn.functional.interpolate", r                                                   \
    }
#define NEAREST(d) INTERPOLATE("upsample_nearest" #d "d", d + 2, "mode~nearest align_corners")
#define SMOOTH(d, mode, name)                                                                      \
    INTERPOLATE("upsample_" name #d "d", d + 2, "mode!~" mode " align_corners=False")
// A function of one tensor.
#define UNARY(name)                                                                                \
    { name ".default", "TM" }
// An activation: F.name(input, .., inplace).
#define ACTIVATION(name, params)                                                                   \
    { name ".default", "FTM", "input" params " inplace" }

static const export_row rows[] = {
#define EXPORT(...) __VA_ARGS__,
#include "ops/rows/rows.def"
};

const export_row *tare__export_row_at(size_t index) {
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

// --- names ---

op_name tare__export_target(const char *overload, bool is_in_place) {
    op_name out;
    const size_t length = strcspn(overload, ".");
    (void)snprintf(out.text, sizeof out.text, "torch.ops.aten.%.*s%s%s", (int)length, overload,
                   is_in_place ? "_" : "", overload + length);
    return out;
}

static bool is_listed(const char *names, bool is_method, const char *target) {
    const size_t length = strlen(target);
    for (const char *at = names; at != NULL && *at != '\0';) {
        const size_t size = strcspn(at, "|");
        const bool is_dotted = *at == '.';
        if (is_dotted == is_method && size - is_dotted == length &&
            memcmp(at + is_dotted, target, length) == 0)
            return true;
        at += size + (at[size] == '|');
    }
    return false;
}

// True if `base` names the function of `overload`, "relu", or its in-place form: "relu_", or "iadd"
// of operator.
static bool is_base(const char *overload, const char *base, bool is_operator, bool *is_in_place) {
    const size_t length = strcspn(overload, ".");
    *is_in_place = is_operator && *base == 'i' && strncmp(base + 1, overload, length) == 0 &&
                   base[length + 1] == '\0';
    if (*is_in_place) return true;
    if (strncmp(base, overload, length) != 0) return false;
    *is_in_place = strcmp(base + length, "_") == 0;
    return base[length] == '\0' || *is_in_place;
}

// Synonyms are compared by the name that torch prints.
static bool is_in_namespace(const char *namespaces, const char *target, const char *base) {
    static const struct {
        char letter;
        const char *prefix;
    } prefixes[] = {
        {'T', "torch."}, {'F', "torch.nn.functional."}, {'N', "torch._C._nn."}, {'O', "operator."}};
    op_name name;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strchr(namespaces, prefixes[i].letter) == NULL) continue;
        (void)snprintf(name.text, sizeof name.text, "%s%s", prefixes[i].prefix, base);
        if (strcmp(tare__function_canonical(name.text), target) == 0) return true;
    }
    return false;
}

static bool calls_row(const export_row *row, const node *n, bool *is_in_place) {
    const bool is_method = n->op == NODE_CALL_METHOD;
    const char *target = is_method ? n->target : tare__function_canonical(n->target);
    const char *base = is_method ? target : tare__function_base_name(target);
    const bool is_operator = !is_method && tare__starts_with(target, "operator.");
    if (is_base(row->overload, base, is_operator, is_in_place) &&
        (is_method ? strchr(row->namespaces, 'M') != NULL
                   : is_in_namespace(row->namespaces, target, base)))
        return true;
    *is_in_place = false;
    return is_listed(row->names, is_method, target);
}

// True if the first argument is a constant, which no in-place function can write.
static bool begins_with_constant(const export_row *row) {
    return row->params != NULL && row->params[strcspn(row->params, " #")] == '#';
}

bool tare__export_call_of(const export_row *row, const node *n, export_call *out) {
    *out = (export_call){.row = row};
    if (!calls_row(row, n, &out->is_in_place)) return false;
    out->target = tare__export_target(row->overload, out->is_in_place);
    return tare__signature_listed(out->target.text, &out->signature) &&
           !(out->is_in_place && begins_with_constant(row));
}

// --- parameters ---

static export_word word_at(const char *chars, const char *ends) {
    return (export_word){chars, strcspn(chars, ends)};
}

static bool are_equal(export_word a, export_word b) {
    return a.length == b.length && memcmp(a.chars, b.chars, a.length) == 0;
}

// Parses one of "input/indices", "dim!", "mode!~linear", "p=0.5", "*shape".
static void read_param(const char *at, export_param *out) {
    out->takes_rest = *at == '*';
    out->name = out->argument = word_at(at + out->takes_rest, " /!&#'^~=");
    at = out->name.chars + out->name.length;
    if (*at == '/') {
        out->argument = word_at(at + 1, " !&#'^~=");
        at = out->argument.chars + out->argument.length;
    } else if (are_equal(out->name, word_at("input", ""))) {
        out->argument = word_at("self", "");
    }
    if (*at != '\0' && strchr("!&#'^", *at) != NULL) out->mark = *at++;
    if (*at == '~') out->string = word_at(at + 1, " ");
    if (*at == '=') out->fallback = word_at(at + 1, " ");
}

// Takes a parameter from the signature: aten's `self` is `input` in Python.
static bool param_of_signature(const signature *s, size_t i, export_param *out) {
    signature_param p;
    if (!tare__signature_param(s, i, &p)) return false;
    out->name = out->argument = (export_word){p.name, p.length};
    if (are_equal(out->name, word_at("self", ""))) out->name = word_at("input", "");
    out->is_keyword_only = p.is_keyword_only;
    return true;
}

bool tare__export_param(const export_call *c, size_t i, export_param *out) {
    const char *at = c->row->params;
    *out = (export_param){.mark = 0};
    if (at == NULL) return param_of_signature(&c->signature, i, out);
    for (; i > 0 && *at != '\0'; i--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    if (*at == '\0') return false;
    read_param(at, out);
    return !c->is_in_place || !are_equal(out->name, word_at("inplace", ""));
}

bool tare__export_param_named(const export_call *c, const char *name, size_t *index) {
    const export_word wanted = word_at(name, "");
    export_param p;
    for (*index = 0; tare__export_param(c, *index, &p); ++*index)
        if (are_equal(p.name, wanted)) return true;
    return false;
}

bool tare__export_param_of(const export_call *c, const signature_param *argument, size_t *index) {
    const export_word wanted = {argument->name, argument->length};
    export_param p;
    for (*index = 0; tare__export_param(c, *index, &p); ++*index)
        if (are_equal(p.argument, wanted) || are_equal(p.name, wanted)) return true;
    return false;
}
