// SPDX-License-Identifier: Apache-2.0
// The rows SIGNATURE of ops/rows/, which the build sorts by name: one for every overload of aten
// and quantized_decomposed in the operator tables.
#include "ops/signatures.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"

static const char *const rows[] = {
#define SIGNATURE(row) row,
#include "ops/sorted_signatures.def"
#undef SIGNATURE
};

const char *tare__signature_at(size_t index) {
    return index < sizeof rows / sizeof *rows ? rows[index] : NULL;
}

// Compares a name with the name of a row, which ends at a parenthesis.
static int compare(const void *key, const void *row) {
    const char *name = key, *other = *(const char *const *)row;
    while (*name != '\0' && *name == *other) name++, other++;
    return (*name == '\0' ? '(' : *name) - *other;
}

static const char *const *row_of(const char *target) {
    static const char prefix[] = "torch.ops.";
    if (!tare__starts_with(target, prefix)) return NULL;
    return bsearch(target + strlen(prefix), rows, sizeof rows / sizeof *rows, sizeof *rows,
                   compare);
}

bool tare__signature_listed(const char *target, signature *out) {
    const char *const *row = row_of(target);
    if (row == NULL) return false;
    out->params = strchr(*row, '(') + 1;
    out->length = strcspn(out->params, ")");
    out->results = out->params + out->length + 1;
    out->results += *out->results == ' ' ? 1 : 0;
    return true;
}

bool tare__signature_of(const char *target, signature *out) {
    op_name usual;
    return tare__signature_listed(target, out) ||
           (tare__overload_usual_name(target, &usual) && tare__signature_listed(usual.text, out));
}

bool tare__signature_gives_several(const signature *s) {
    return strpbrk(s->results, " [") != NULL;
}

// Parses one of "self", "size[i]", "stride[i2]=1".
static void read_param(const char *at, signature_param *out) {
    out->name = at;
    out->length = strcspn(at, " [=)");
    at += out->length;
    if (*at == '[') {
        out->list_of = at[1];
        out->list_size = at[2] != ']' ? at[2] - '0' : 0;
        at += strcspn(at, "]") + 1;
    }
    if (*at == '=') out->fallback = at + 1;
}

bool tare__signature_param(const signature *s, size_t i, signature_param *out) {
    const char *const end = s->params + s->length;
    *out = (signature_param){0};
    for (const char *at = s->params; at < end; at += strcspn(at, " )") + 1) {
        if (*at == '*') {
            out->is_keyword_only = true;
        } else if (i-- == 0) {
            read_param(at, out);
            return true;
        }
    }
    return false;
}

bool tare__signature_find(const signature *s, const char *name, size_t *index) {
    signature_param p;
    for (*index = 0; tare__signature_param(s, *index, &p); ++*index)
        if (tare__is_word(p.name, p.length, name)) return true;
    return false;
}

// The static string equal to a string default of a signature, so that values need no memory; NULL:
// unknown.
static const char *string_of(const char *chars, size_t length) {
    static const char *const strings[] = {"none", "valid", "constant", "fro", "linear"};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (tare__is_word(chars, length, strings[i])) return strings[i];
    return NULL;
}

bool tare__signature_literal(const char *chars, size_t length, value *out) {
    double number = 0;
    *out = tare__none();
    if (tare__is_word(chars, length, "None")) return true;
    if (tare__is_word(chars, length, "True") || tare__is_word(chars, length, "False")) {
        *out = tare__bool(*chars == 'T');
    } else if (tare__is_word(chars, length, "[]")) {
        *out = (value){.kind = VALUE_LIST};
    } else if (*chars == '\'') {
        *out = tare__string(string_of(chars + 1, length - 2));
        return out->as.text != NULL;
    } else if (tare__is_word(chars, length, "torch.float32")) {
        *out = tare__dtype_value(TARE_FLOAT32);
    } else if (tare__parse_double(chars, length, &number)) {
        const bool is_float = memchr(chars, '.', length) || memchr(chars, 'e', length);
        *out = is_float ? tare__float(number) : tare__int((int64_t)number);
    } else {
        return false;
    }
    return true;
}

bool tare__signature_default(const signature_param *p, value *out) {
    *out = tare__none();
    return p->fallback != NULL &&
           tare__signature_literal(p->fallback, strcspn(p->fallback, " )"), out);
}
