// SPDX-License-Identifier: Apache-2.0
// The fields of a module in torch's extra_repr.
#include "ops/text/describe.h"

#include <string.h>

#include "ops/text/print.h"

// Prints strings without quotes, everything else as Python does, and `usual` for an absent value.
static void print_bare(const value *v, const char *usual, text *out) {
    if (!v)
        tare__text_append(out, usual);
    else if (v->kind == VALUE_STRING)
        tare__text_append(out, v->as.text);
    else
        tare__print_value(v, out);
}

static void print_config(const value *v, const char *usual, text *out) {
    if (v)
        tare__print_value(v, out);
    else
        tare__text_append(out, usual);
}

// True if equal as in Python: 2 equals 2.0. Memory failures are recorded in `out`.
static bool reads_as(const value *v, const char *usual, text *out) {
    text shown = {0};
    print_bare(v, usual, &shown);
    bool equal = strcmp(tare__text_chars(&shown), usual) == 0;
    if (v->kind == VALUE_INT) {
        tare__text_append(&shown, ".0");
        equal = equal || strcmp(tare__text_chars(&shown), usual) == 0;
    }
    if (shown.failed) out->failed = true;
    tare__text_release(&shown);
    return equal;
}

static bool is_usual(const value *v, const char *usual, text *out) {
    if (!v) return true;
    if (v->kind != VALUE_TUPLE && v->kind != VALUE_LIST) return reads_as(v, usual, out);
    for (uint32_t i = 0; i < v->count; i++)
        if (!reads_as(&v->as.items[i], usual, out)) return false;
    return true;
}

static void print_tensor(const tare_tensor *t, const char *usual, text *out) {
    if (!t || !t->data || t->count != 1)
        tare__text_append(out, usual);
    else if (tare__dtype(t->dtype)->is_float)
        tare__text_double(out, tare__tensor_get(t, 0));
    else
        tare__text_printf(out, "%.0f", tare__tensor_get(t, 0));
}

static const char *weight_qscheme(const module *m) {
    const tare_tensor *weight = tare__module_tensor(m, "weight");
    return weight && weight->q ? tare_qscheme_name(weight->q->scheme) : NULL;
}

static bool is_shown(const module *m, const field *f, text *out) {
    switch (f->form) {
    case FIELD_UNLESS:
        return !is_usual(tare__module_config(m, f->key), f->usual, out);
    case FIELD_NO_TENSOR:
        return !tare__module_tensor(m, f->key);
    case FIELD_WEIGHT_QSCHEME:
        return weight_qscheme(m) != NULL;
    default:
        return true;
    }
}

static void print_field(const module *m, const field *f, text *out) {
    const tare_tensor *tensor = tare__module_tensor(m, f->key);
    if (f->form != FIELD_PLAIN) tare__text_printf(out, "%s=", f->key);
    switch (f->form) {
    case FIELD_PLAIN:
    case FIELD_NAMED:
        print_config(tare__module_config(m, f->key), f->usual, out);
        break;
    case FIELD_FROM:
        print_config(tare__module_config(m, f->usual), "False", out);
        break;
    case FIELD_UNLESS:
        print_bare(tare__module_config(m, f->key), f->usual, out);
        break;
    case FIELD_HAS_TENSOR:
    case FIELD_NO_TENSOR:
        tare__text_append(out, tensor ? "True" : "False");
        break;
    case FIELD_TENSOR:
        print_tensor(tensor, f->usual, out);
        break;
    case FIELD_WEIGHT_DTYPE:
        tensor = tare__module_tensor(m, "weight");
        tare__text_append(out, tensor ? tare_dtype_name(tensor->dtype) : f->usual);
        break;
    case FIELD_WEIGHT_QSCHEME:
        tare__text_append(out, weight_qscheme(m));
        break;
    case FIELD_END:
        break;
    }
}

tare_status tare__describe_fields(const module *m, text *out, tare_error *err) {
    bool any = false;
    for (const field *f = m->class->kind; f && f->form != FIELD_END; f++) {
        if (!is_shown(m, f, out)) continue;
        if (any) tare__text_append(out, ", ");
        print_field(m, f, out);
        any = true;
    }
    return tare__text_status(out, err);
}
