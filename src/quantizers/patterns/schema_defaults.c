// SPDX-License-Identifier: Apache-2.0
// Defaults of aten's schemas, a row for the operators of one signature. Spec: torch's
// native_functions.yaml.
#include "quantizers/patterns/schema_defaults.h"

#include <string.h>

#include "core/text/text.h"

enum { MOST_DEFAULTS = 7 };

typedef struct default_row {
    const char *operators; // without "torch.ops.aten." and the overload, '|' between
    size_t first;          // index of the first argument that has a default
    size_t count;
    value defaults[MOST_DEFAULTS];
} default_row;

// clang-format off
#define NONE  {.kind = VALUE_NONE}
#define INT(i) {.kind = VALUE_INT, .as.integer = (i)}
#define REAL(d) {.kind = VALUE_FLOAT, .as.real = (d)}
#define FALSE {.kind = VALUE_BOOL}
#define TRUE  {.kind = VALUE_BOOL, .as.boolean = true}
#define TEXT(s) {.kind = VALUE_STRING, .as.text = (s)}
#define EMPTY {.kind = VALUE_LIST}

static const default_row rows[] = {
    {"conv1d|conv2d|conv3d", 2, 5, {NONE, INT(1), INT(0), INT(1), INT(1)}},
    {"conv_transpose1d|conv_transpose2d|conv_transpose3d", 2, 6, {NONE, INT(1), INT(0), INT(0), INT(1), INT(1)}},
    {"linear", 2, 1, {NONE}},
    {"add|add_|sub|sub_", 2, 1, {INT(1)}},
    {"max_pool1d|max_pool2d|max_pool3d", 2, 4, {EMPTY, INT(0), INT(1), FALSE}},
    {"avg_pool1d", 2, 4, {EMPTY, INT(0), FALSE, TRUE}},
    {"avg_pool2d|avg_pool3d", 2, 5, {EMPTY, INT(0), FALSE, TRUE, NONE}},
    {"hardtanh|hardtanh_", 1, 2, {INT(-1), INT(1)}},
    {"leaky_relu|leaky_relu_", 1, 1, {REAL(0.01)}},
    {"elu|elu_", 1, 3, {INT(1), INT(1), INT(1)}},
    {"gelu|gelu_", 1, 1, {TEXT("none")}},
    {"clamp|clamp_", 1, 2, {NONE, NONE}},
    {"flatten", 1, 2, {INT(0), INT(-1)}},
    {"cat|stack", 1, 1, {INT(0)}},
    {"mean", 2, 2, {FALSE, NONE}},
    {"softmax|log_softmax", 2, 1, {NONE}},
    {"layer_norm", 2, 4, {NONE, NONE, REAL(1e-5), TRUE}},
    {"group_norm", 2, 4, {NONE, NONE, REAL(1e-5), TRUE}},
    {"embedding", 2, 3, {INT(-1), FALSE, FALSE}},
    {"scaled_dot_product_attention", 3, 5, {NONE, REAL(0.0), FALSE, NONE, FALSE}},
    {"slice", 1, 4, {INT(0), NONE, NONE, INT(1)}},
};
// clang-format on

static bool names(const char *list, const char *name, size_t length) {
    while (*list != '\0') {
        const size_t part = strcspn(list, "|");
        if (part == length && memcmp(list, name, length) == 0) return true;
        list += part + (list[part] == '|' ? 1 : 0);
    }
    return false;
}

bool tare__schema_default(const char *target, size_t index, value *out) {
    static const char prefix[] = "torch.ops.aten.";
    if (!tare__starts_with(target, prefix)) return false;
    const char *name = target + strlen(prefix);
    const size_t length = strcspn(name, ".");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!names(rows[i].operators, name, length)) continue;
        if (index < rows[i].first || index - rows[i].first >= rows[i].count) return false;
        *out = rows[i].defaults[index - rows[i].first];
        return true;
    }
    return false;
}

static bool says_the_same(const value *v, const value *fallback) {
    if (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE) {
        if (fallback->kind == VALUE_LIST) return v->count == 0;
        for (size_t i = 0; i < v->count; i++)
            if (!says_the_same(&v->as.items[i], fallback)) return false;
        return true;
    }
    double a = 0, b = 0;
    const bool are_numbers = v->kind != VALUE_BOOL && fallback->kind != VALUE_BOOL &&
                             tare__value_number(v, &a) && tare__value_number(fallback, &b);
    return are_numbers ? a == b : tare__value_equal(v, fallback);
}

bool tare__is_schema_default(const char *target, size_t index, const value *v) {
    value fallback;
    return tare__schema_default(target, index, &fallback) && says_the_same(v, &fallback);
}
