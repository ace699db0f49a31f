// SPDX-License-Identifier: Apache-2.0
// The operator table: the families' rows, found by function name, method name or id.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/hash/hash.h"
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

// --- rows by the names of functions and methods ---

// Hash tables of all names, about 1300 of functions and 300 of methods, which the first look-up
// fills. The test unit.ops.table looks up all of them.
enum { FUNCTION_SLOTS = 4096, METHOD_SLOTS = 1024 };
typedef struct named_row {
    const char *name; // not terminated; NULL: a free slot
    size_t length;
    const op_info *op;
} named_row;

typedef struct name_table {
    named_row *slots;
    size_t slot_count, count;
} name_table;

static named_row function_slots[FUNCTION_SLOTS], method_slots[METHOD_SLOTS];
static name_table functions = {function_slots, FUNCTION_SLOTS, 0};
static name_table methods = {method_slots, METHOD_SLOTS, 0};
static pthread_once_t filled = PTHREAD_ONCE_INIT;

// The slot of a name, or the free slot where it would be inserted.
static named_row *slot_of(const name_table *t, const char *name, size_t length) {
    size_t at = tare__hash_name(name, length, t->slots) % t->slot_count;
    while (t->slots[at].name != NULL &&
           (t->slots[at].length != length || memcmp(t->slots[at].name, name, length) != 0))
        at = (at + 1) % t->slot_count;
    return &t->slots[at];
}

// If several rows have a name, the first one is found. One slot stays free, which ends every
// search.
static void add_name(name_table *t, const char *name, size_t length, const op_info *op) {
    named_row *slot = slot_of(t, name, length);
    assert(t->count < t->slot_count - 1);
    if (slot->name != NULL || t->count == t->slot_count - 1) return;
    *slot = (named_row){name, length, op};
    t->count++;
}

// The names in "a|b|c".
static void add_list(name_table *t, const char *list, const op_info *op) {
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, "|");
        add_name(t, list, length, op);
        list += length + (list[length] == '|' ? 1 : 0);
    }
}

// The names in "a b(remark) c(remark remark)".
static void add_overloads(const op_info *op) {
    for (const char *at = op->overloads; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, " (");
        add_name(&functions, at, length, op);
        at += length;
        if (*at == '(') at += strcspn(at, ")");
        at += strspn(at, ") ");
    }
}

// The functions of all rows come before all overloads.
static void fill(void) {
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++) {
        add_list(&functions, op->functions, op);
        add_list(&methods, op->methods, op);
    }
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++) add_overloads(op);
}

static const op_info *find(const name_table *t, const char *name) {
    (void)pthread_once(&filled, fill);
    return slot_of(t, name, strlen(name))->op;
}

const op_info *tare__op_method(const char *name) {
    return find(&methods, name);
}

// By the usual name of an overload. In place, views change the shape of their base.
static const op_info *by_usual_name(const char *name) {
    op_name usual;
    if (!tare__overload_usual_name(name, &usual)) return NULL;
    const op_info *op = find(&functions, usual.text);
    return tare__op_has(op, OP_MOVES_DATA) && tare__is_in_place_overload(name) ? NULL : op;
}

const op_info *tare__op_function(const char *name) {
    const char *canonical = tare__function_canonical(name);
    const op_info *op = find(&functions, canonical);
    if (op == NULL && canonical != name) op = find(&functions, name);
    return op != NULL ? op : by_usual_name(name);
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
