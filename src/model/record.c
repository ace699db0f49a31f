// SPDX-License-Identifier: Apache-2.0
// The decision record.
#include "model/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"

// The fields of a decision with their JSON keys, for both reading and writing.
#define DECISION_FIELDS(X) X(pass) X(node) X(subject) X(decision) X(rule) X(reason)

tare_status tare__record_keep(record *r, const tare_decision *d, tare_error *err) {
    if (!tare__grow((void **)&r->items, &r->capacity, r->count, sizeof *r->items))
        return tare__out_of_memory(err);
    tare_decision copy = {.struct_size = sizeof copy};
#define COPY_FIELD(field)                                                                          \
    copy.field = d->field == NULL ? "" : tare__arena_strdup(&r->memory, d->field);                 \
    if (copy.field == NULL) return tare__out_of_memory(err);
    DECISION_FIELDS(COPY_FIELD)
#undef COPY_FIELD
    r->items[r->count++] = copy;
    return TARE_OK;
}

tare_status tare__record_add(record *r, const tare_decision *d, tare_error *err, const char *reason,
                             ...) {
    char sentence[1024];
    va_list args;
    va_start(args, reason);
    (void)vsnprintf(sentence, sizeof sentence, reason, args);
    va_end(args);
    tare_decision full = *d;
    full.reason = sentence;
    return tare__record_keep(r, &full, err);
}

void tare__record_remove(record *r, const char *rule) {
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->items[i].rule, rule) != 0) r->items[kept++] = r->items[i];
    r->count = kept;
}

tare_status tare__record_copy(record *to, const record *from, tare_error *err) {
    for (size_t i = 0; i < from->count; i++) TARE_TRY(tare__record_keep(to, &from->items[i], err));
    return TARE_OK;
}

tare_status tare__record_append_inner(record *to, const record *from, size_t first,
                                      const char *path, char separator, tare_error *err) {
    for (size_t i = first; i < from->count; i++) {
        tare_decision d = from->items[i];
        if (d.node[0] != '\0')
            d.node = tare__arena_printf(&to->memory, "%s%c%s", path, separator, d.node);
        if (d.node == NULL) return tare__out_of_memory(err);
        TARE_TRY(tare__record_keep(to, &d, err));
    }
    return TARE_OK;
}

void tare__record_release(record *r) {
    tare__free(r->items);
    tare__arena_release(&r->memory);
    *r = (record){0};
}

tare_status tare__record_inherit(record *r, const char *from, const char *to, tare_error *err) {
    for (size_t i = r->count; i-- > 0;) {
        tare_decision d = r->items[i];
        if (strcmp(d.node, from) != 0 || strcmp(d.decision, "annotated") != 0) continue;
        d.node = to;
        return tare__record_add(r, &d, err, "%s", d.reason);
    }
    return TARE_OK;
}

tare_status tare__record_decided(const record *r, const char *decision, map *names,
                                 tare_error *err) {
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->items[i].decision, decision) == 0 &&
            !tare__map_set(names, r->items[i].node, names))
            return tare__out_of_memory(err);
    return TARE_OK;
}

tare_status tare__record_to_json(const record *r, text *out, tare_error *err) {
    tare__text_char(out, '[');
    for (size_t i = 0; i < r->count; i++) {
        const char *separator = i == 0 ? "{" : ",{";
#define WRITE_FIELD(field)                                                                         \
    if (r->items[i].field[0] != '\0') {                                                            \
        tare__text_printf(out, "%s\"" #field "\":", separator);                                    \
        tare__text_json_string(out, r->items[i].field);                                            \
        separator = ",";                                                                           \
    }
        DECISION_FIELDS(WRITE_FIELD)
#undef WRITE_FIELD
        tare__text_append(out, separator[0] == ',' && separator[1] == '\0' ? "}" : "{}");
    }
    tare__text_char(out, ']');
    return tare__text_status(out, err);
}

static tare_status read_field(const json_at *object, const char *key, const char **out,
                              tare_error *err) {
    *out = "";
    if (!tare__json_has(object, key)) return TARE_OK;
    const json_at at = tare__json_get(object, key);
    return tare__json_string(&at, out, err);
}

tare_status tare__record_from_json(record *r, const json_at *at, tare_error *err) {
    static const char *const keys[] = {
#define FIELD_KEY(field) #field,
        DECISION_FIELDS(FIELD_KEY)
#undef FIELD_KEY
            NULL};
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(at->value); i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(tare__json_expect(&item, JSON_OBJECT, err));
        TARE_TRY(tare__json_only_keys(&item, keys, err));
        tare_decision d = {.struct_size = sizeof d};
#define READ_FIELD(field) TARE_TRY(read_field(&item, #field, &d.field, err));
        DECISION_FIELDS(READ_FIELD)
#undef READ_FIELD
        TARE_TRY(tare__record_keep(r, &d, err));
    }
    return TARE_OK;
}
