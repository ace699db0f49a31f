// SPDX-License-Identifier: Apache-2.0
// The operator table: the families' rows, found by function name, method name or id.
#include <stdio.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/op.h"

static const op_table *const families[] = {
#define TABLE(family) &tare__##family##_ops,
    OP_FAMILIES(TABLE)
#undef TABLE
};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

const op_info *tare__op_at(size_t index) {
    for (size_t f = 0; f < FAMILY_COUNT; f++) {
        if (index < families[f]->count) return &families[f]->rows[index];
        index -= families[f]->count;
    }
    return NULL;
}

// Is `name` one of the names in "a|b|c"?
static bool is_listed(const char *list, const char *name, size_t length) {
    while (list != NULL && *list != '\0') {
        const char *end = strchr(list, '|');
        const size_t size = end != NULL ? (size_t)(end - list) : strlen(list);
        if (size == length && memcmp(list, name, length) == 0) return true;
        list = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static const char *functions_of(const op_info *op) {
    return op->functions;
}
static const char *methods_of(const op_info *op) {
    return op->methods;
}

static const op_info *find(const char *(*names)(const op_info *op), const char *name) {
    const size_t length = strlen(name);
    for (size_t f = 0; f < FAMILY_COUNT; f++)
        for (size_t i = 0; i < families[f]->count; i++)
            if (is_listed(names(&families[f]->rows[i]), name, length)) return &families[f]->rows[i];
    return NULL;
}

const op_info *tare__op_method(const char *name) {
    return find(methods_of, name);
}

static const op_info *find_overload(const char *name) {
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++)
        if (tare__op_overload(op, name) != NULL) return op;
    return NULL;
}

const op_info *tare__op_function(const char *name) {
    const op_info *op = find(functions_of, tare__function_canonical(name));
    return op != NULL ? op : find_overload(name);
}

static const op_info *find_id(const char *id) {
    const op_info *op = NULL;
    for (size_t f = 0; f < FAMILY_COUNT && op == NULL; f++)
        op = tare__op_of_family(families[f], id);
    return op;
}

const op_info *tare__op_by_id(const char *id, int dims) {
    char with_dims[64];
    const int length = snprintf(with_dims, sizeof with_dims, "%s%dd", id, dims);
    const op_info *op =
        dims > 0 && length > 0 && (size_t)length < sizeof with_dims ? find_id(with_dims) : NULL;
    return op != NULL ? op : find_id(id);
}
