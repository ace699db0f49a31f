// SPDX-License-Identifier: Apache-2.0
// Results of trials as lines of text: db, ms, seconds, bytes, kept, key.
#include "debug/improve/trials.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"
#include "core/text/text.h"
#include "tare/file.h"

#define HEAD "tare improve 2 "

static tare_status bad(const trial_book *b, int line, tare_error *err) {
    return tare__at(
        err, tare__fail(err, TARE_MALFORMED_FILE, "line %d is not the outcome of a trial", line),
        "%s", b->path);
}

static tare_status append(trial_book *b, const trial_outcome *from, const char *key,
                          size_t key_length, tare_error *err) {
    if (!tare__grow((void **)&b->items, &b->capacity, b->count, sizeof *b->items))
        return tare__out_of_memory(err);
    trial_outcome *made = &b->items[b->count];
    *made = *from;
    made->key = tare__strndup(key, key_length);
    if (made->key == NULL) return tare__out_of_memory(err);
    b->count++;
    return TARE_OK;
}

static bool read_number(char **at, double *out) {
    char *end = NULL;
    *out = strtod(*at, &end);
    if (end == *at || *end != ' ') return false;
    *at = end + 1;
    return true;
}

static tare_status read_line(trial_book *b, char *line, int number, tare_error *err) {
    double fields[5];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!read_number(&line, &fields[i])) return bad(b, number, err);
    if (isnan(fields[0]) || !(fields[3] >= 0 && fields[3] < 1e18) || *line == '\0' ||
        !(fields[4] >= TARE_REFUSED_NOT && fields[4] <= TARE_REFUSED_TOO_LARGE))
        return bad(b, number, err);
    const trial_outcome outcome = {.db = fields[0],
                                   .ms = fields[1],
                                   .seconds = fields[2],
                                   .bytes = (int64_t)fields[3],
                                   .refusal = (tare_improve_refusal)fields[4]};
    return append(b, &outcome, line, strlen(line), err);
}

static tare_status read_lines(trial_book *b, char *all, tare_error *err) {
    char head[64];
    (void)snprintf(head, sizeof head, HEAD "%016" PRIx64, b->identity);
    int number = 0;
    for (char *line = all, *next = NULL; line != NULL && *line != '\0'; line = next) {
        char *end = strchr(line, '\n');
        next = end != NULL ? end + 1 : NULL;
        if (end == NULL) return bad(b, number + 1, err); // lines are written whole
        *end = '\0';
        if (++number > 1) {
            TARE_TRY(read_line(b, line, number, err));
        } else if (strncmp(line, HEAD, sizeof HEAD - 1) != 0) {
            return bad(b, number, err);
        } else if (strcmp(line, head) != 0) {
            return tare__hint(
                err,
                tare__fail(err, TARE_INVALID_ARGUMENT,
                           "'%s' belongs to another model, other data, steps or limits", b->path),
                "name another file, or remove this one");
        }
    }
    return TARE_OK;
}

tare_status tare__trials_read(trial_book *b, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    if (b->path == NULL || !tare__file_exists(b->path)) return TARE_OK;
    TARE_TRY(tare__file_read(b->path, &store, &data, &size, err));
    char *all = tare__strndup((const char *)data, size);
    tare__storage_release(store);
    if (all == NULL) return tare__out_of_memory(err);
    const tare_status status = read_lines(b, all, err);
    tare__free(all);
    return status;
}

static trial_outcome *find(const trial_book *b, const char *key) {
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->items[i].key, key) == 0) return &b->items[i];
    return NULL;
}

const trial_outcome *tare__trials_find(const trial_book *b, const char *key) {
    return find(b, key);
}

static tare_status write_all(const trial_book *b, tare_error *err) {
    text out = {0};
    tare__text_printf(&out, HEAD "%016" PRIx64 "\n", b->identity);
    for (size_t i = 0; i < b->count; i++) {
        const trial_outcome *o = &b->items[i];
        tare__text_printf(&out, "%.17g %.17g %.17g %" PRId64 " %d %s\n", o->db, o->ms, o->seconds,
                          o->bytes, (int)o->refusal, o->key);
    }
    const tare_status status = out.failed ? tare__out_of_memory(err)
                                          : tare_file_write(b->path, tare__text_chars(&out),
                                                            strlen(tare__text_chars(&out)), err);
    tare__text_release(&out);
    return status;
}

tare_status tare__trials_add(trial_book *b, const trial_outcome *outcome, tare_error *err) {
    trial_outcome *known = find(b, outcome->key);
    if (known == NULL) {
        TARE_TRY(append(b, outcome, outcome->key, strlen(outcome->key), err));
        known = &b->items[b->count - 1];
    }
    char *key = known->key;
    *known = *outcome;
    known->key = key;
    known->is_new = true;
    return b->path != NULL ? write_all(b, err) : TARE_OK;
}

void tare__trials_release(trial_book *b) {
    for (size_t i = 0; i < b->count; i++) tare__free(b->items[i].key);
    tare__free(b->items);
    *b = (trial_book){0};
}
