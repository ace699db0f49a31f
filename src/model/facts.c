// SPDX-License-Identifier: Apache-2.0
// Facts: tables of strings.
#include "model/facts.h"

#include "core/memory/alloc.h"

typedef struct schema {
    const char *name;                  // of the table in JSON
    const char *columns[FACT_COLUMNS]; // NULL past the last
    size_t node_columns;               // the first columns are names of nodes
} schema;

static const schema schemas[FACT_KINDS] = {
    [FACT_NODE] = {"nodes",
                   {"name", "operator", "pattern", "place", "qconfig", "section", "key",
                    "quantizer", "output"},
                   1},
    [FACT_PATTERN] = {"patterns", {"node", "pattern", "why"}, 1},
    [FACT_DTYPES] = {"dtypes",
                     {"node", "index", "outcome", "constraint", "wanted", "found", "why"},
                     1},
    [FACT_EDGE] = {"edges", {"from", "to", "argument", "role", "observer", "class", "rule"}, 2},
};

const char *tare__fact_column(fact_kind kind, size_t column) {
    return column < FACT_COLUMNS ? schemas[kind].columns[column] : NULL;
}

tare_status tare__facts_add(fact_book *f, fact_kind kind, const char *const *columns,
                            tare_error *err) {
    fact_table *t = &f->tables[kind];
    if (!tare__grow((void **)&t->rows, &t->capacity, t->count, sizeof *t->rows))
        return tare__out_of_memory(err);
    fact row;
    for (size_t i = 0; i < FACT_COLUMNS; i++) {
        const bool is_said = schemas[kind].columns[i] != NULL && columns[i] != NULL;
        row.columns[i] =
            is_said && columns[i][0] != '\0' ? tare__arena_strdup(&f->memory, columns[i]) : "";
        if (row.columns[i] == NULL) return tare__out_of_memory(err);
    }
    t->rows[t->count++] = row;
    return TARE_OK;
}

tare_status tare__facts_copy(fact_book *to, const fact_book *from, tare_error *err) {
    for (int k = 0; k < FACT_KINDS; k++)
        for (size_t i = 0; i < from->tables[k].count; i++)
            TARE_TRY(tare__facts_add(to, (fact_kind)k, from->tables[k].rows[i].columns, err));
    return TARE_OK;
}

tare_status tare__facts_append_inner(fact_book *to, const fact_book *from, const char *path,
                                     char separator, tare_error *err) {
    for (int k = 0; k < FACT_KINDS; k++)
        for (size_t i = 0; i < from->tables[k].count; i++) {
            fact row = from->tables[k].rows[i];
            for (size_t c = 0; c < schemas[k].node_columns; c++) {
                row.columns[c] =
                    tare__arena_printf(&to->memory, "%s%c%s", path, separator, row.columns[c]);
                if (row.columns[c] == NULL) return tare__out_of_memory(err);
            }
            TARE_TRY(tare__facts_add(to, (fact_kind)k, row.columns, err));
        }
    return TARE_OK;
}

void tare__facts_release(fact_book *f) {
    for (int k = 0; k < FACT_KINDS; k++) tare__free(f->tables[k].rows);
    tare__arena_release(&f->memory);
    *f = (fact_book){0};
}

bool tare__facts_are_empty(const fact_book *f) {
    return f->tables[FACT_NODE].count == 0 && f->tables[FACT_EDGE].count == 0;
}

static void row_to_json(const schema *s, const fact *row, text *out) {
    const char *separator = "{";
    for (size_t i = 0; i < FACT_COLUMNS && s->columns[i] != NULL; i++) {
        if (row->columns[i][0] == '\0') continue;
        tare__text_printf(out, "%s\"%s\":", separator, s->columns[i]);
        tare__text_json_string(out, row->columns[i]);
        separator = ",";
    }
    tare__text_append(out, separator[0] == '{' ? "{}" : "}");
}

void tare__facts_to_json(const fact_book *f, text *out) {
    for (int k = 0; k < FACT_KINDS; k++) {
        tare__text_printf(out, "%s\"%s\":[", k == 0 ? "{" : ",", schemas[k].name);
        for (size_t i = 0; i < f->tables[k].count; i++) {
            if (i > 0) tare__text_char(out, ',');
            row_to_json(&schemas[k], &f->tables[k].rows[i], out);
        }
        tare__text_char(out, ']');
    }
    tare__text_char(out, '}');
}

static tare_status read_row(fact_book *f, fact_kind kind, const json_at *at, tare_error *err) {
    const schema *s = &schemas[kind];
    const char *keys[FACT_COLUMNS + 1] = {NULL}, *columns[FACT_COLUMNS] = {NULL};
    for (size_t i = 0; i < FACT_COLUMNS; i++) keys[i] = s->columns[i];
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    for (size_t i = 0; i < FACT_COLUMNS && keys[i] != NULL; i++) {
        const json_at value = tare__json_get(at, keys[i]);
        if (i < s->node_columns || tare__json_has(at, keys[i]))
            TARE_TRY(tare__json_string(&value, &columns[i], err));
    }
    return tare__facts_add(f, kind, columns, err);
}

tare_status tare__facts_from_json(fact_book *f, const json_at *at, tare_error *err) {
    const char *keys[FACT_KINDS + 1] = {NULL};
    for (int k = 0; k < FACT_KINDS; k++) keys[k] = schemas[k].name;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    for (int k = 0; k < FACT_KINDS; k++) {
        const json_at list = tare__json_get(at, keys[k]);
        TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
        for (size_t i = 0; i < json_array_size(list.value); i++) {
            const json_at item = tare__json_item(&list, i);
            TARE_TRY(read_row(f, (fact_kind)k, &item, err));
        }
    }
    return TARE_OK;
}
