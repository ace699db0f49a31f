// SPDX-License-Identifier: Apache-2.0
// Data of each input by name, `image=FOLDER,mask=FILE.npy,labels=FILE`: one source per input, read
// in parallel, and one array of labels.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"
#include "core/text/text.h"
#include "io/data/source.h"

/// The source of an input, and its current batch.
typedef struct entry {
    data_source *source; // NULL: not opened yet
    data_batch batch;
    int64_t position; // number of the batch's samples that were returned
    bool is_done;
} entry;

typedef struct named {
    entry *entries; // one per input
    tare_tensor *labels;
    int64_t position; // number of samples that were returned
} named;

// --- the spec ---

/// The length of the name at `at`, if it is known and followed by '='; else 0.
static size_t name_at(const data_source *s, const char *at) {
    const size_t length = strcspn(at, "=");
    if (at[length] != '=') return 0;
    size_t unused;
    const bool is_known =
        tare__data_find(s, at, length, &unused) || tare__data_is_label_name(at, length);
    return is_known ? length : 0;
}

bool tare__data_is_named(const data_source *s) {
    return name_at(s, s->spec) > 0;
}

// A ',' ends an entry only if another known name and '=' follow, because paths may contain commas.
static const char *end_of_entry(const data_source *s, const char *at) {
    for (at = strchr(at, ','); at != NULL; at = strchr(at + 1, ','))
        if (name_at(s, at + 1) > 0) return at;
    return NULL;
}

// --- labels ---

typedef struct numbers {
    int64_t *items;
    size_t count, capacity;
} numbers;

static tare_status add_number(numbers *n, const char *line, size_t length, tare_error *err) {
    double number = 0;
    const bool is_number = tare__parse_double(line, length, &number);
    if (!is_number || !(fabs(number) <= INT32_MAX) || number != floor(number))
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "expected one whole number a line, found '%.*s'",
                          (int)(length < 40 ? length : 40), line);
    if (!tare__grow((void **)&n->items, &n->capacity, n->count, sizeof *n->items))
        return tare__out_of_memory(err);
    n->items[n->count++] = (int64_t)number;
    return TARE_OK;
}

static tare_status read_numbers(const char *at, const char *end, numbers *n, tare_error *err) {
    for (size_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *next = stop != NULL ? stop + 1 : end;
        size_t length = (size_t)((stop != NULL ? stop : end) - at);
        while (length > 0 && strchr(" \t\r", at[length - 1]) != NULL) length--;
        if (length > 0) TARE_TRY(tare__at(err, add_number(n, at, length, err), "line %zu", number));
        at = next;
    }
    if (n->count > 0) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "there are no labels in it");
}

static tare_status read_label_lines(const char *path, tare_tensor **out, tare_error *err) {
    storage *file = NULL;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    numbers n = {0};
    TARE_TRY(tare__file_map(path, &file, &bytes, &size, err));
    tare_status status = read_numbers((const char *)bytes, (const char *)bytes + size, &n, err);
    tare__storage_release(file);
    if (status == TARE_OK) {
        const int64_t count = (int64_t)n.count;
        status = tare_tensor_from_data(TARE_INT64, 1, &count, n.items, out, err);
    }
    tare__free(n.items);
    return tare__at(err, status, "%s", path);
}

static tare_status take_only_batch(data_source *source, const char *path, tare_tensor **out,
                                   tare_error *err) {
    data_batch batch = {0}, more = {0};
    bool done = false;
    TARE_TRY(tare__data_next(source, &batch, &done, err)); // a source is never empty
    tare_status status = tare__data_next(source, &more, &done, err);
    if (status == TARE_OK && !done)
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected one array of labels", path);
    if (status == TARE_OK) *out = tare_tensor_retain(batch.inputs[0]);
    tare__data_batch_release(&batch);
    tare__data_batch_release(&more);
    return status;
}

static tare_status read_labels(const char *path, tare_tensor **out, tare_error *err) {
    static const data_input labels = {.name = "labels", .ndim = -1, .dtype = TARE_INT64};
    data_source *source = NULL;
    if (tare__ends_with(path, ".txt") || tare__ends_with(path, ".csv"))
        return read_label_lines(path, out, err);
    TARE_TRY(tare__data_open(path, &labels, 1, 0, NULL, &source, err));
    const tare_status status = take_only_batch(source, path, out, err);
    tare__data_close(source);
    return status;
}

// --- opening ---

static tare_status at_spec(const data_source *s, tare_status status, tare_error *err) {
    return tare__at(err, status, "%s", s->spec);
}

static tare_status open_entry(data_source *s, named *n, const char *name, const char *spec,
                              tare_error *err) {
    size_t i;
    if (tare__data_find(s, name, strlen(name), &i)) {
        if (n->entries[i].source != NULL)
            return at_spec(
                s, tare__fail(err, TARE_INVALID_ARGUMENT, "input '%s' is given twice", name), err);
        return tare__data_open(spec, &s->inputs[i], 1, s->batch_size,
                               s->takes_pictures ? &s->pictures : NULL, &n->entries[i].source, err);
    }
    if (n->labels != NULL)
        return at_spec(s, tare__fail(err, TARE_INVALID_ARGUMENT, "labels are given twice"), err);
    return read_labels(spec, &n->labels, err);
}

static tare_status open_entries(data_source *s, named *n, tare_error *err) {
    for (const char *at = s->spec, *end = NULL; at != NULL; at = end != NULL ? end + 1 : NULL) {
        const size_t length = name_at(s, at);
        const char *value = at + length + 1;
        end = end_of_entry(s, value);
        const char *name = tare__arena_strndup(&s->memory, at, length);
        const char *spec = tare__arena_strndup(&s->memory, value,
                                               end != NULL ? (size_t)(end - value) : strlen(value));
        if (name == NULL || spec == NULL) return tare__out_of_memory(err);
        if (spec[0] == '\0')
            return at_spec(
                s, tare__fail(err, TARE_INVALID_ARGUMENT, "expected data after '%s='", name), err);
        TARE_TRY(open_entry(s, n, name, spec, err));
    }
    for (size_t i = 0; i < s->input_count; i++)
        if (n->entries[i].source == NULL)
            return at_spec(s,
                           tare__fail(err, TARE_INVALID_ARGUMENT, "there is no data for input '%s'",
                                      s->inputs[i].name),
                           err);
    return TARE_OK;
}

// --- batches ---

static tare_status refill(entry *p, tare_error *err) {
    if (p->is_done || p->position < p->batch.size) return TARE_OK;
    tare__data_batch_release(&p->batch);
    p->position = 0;
    return tare__data_next(p->source, &p->batch, &p->is_done, err);
}

// Refills the entries' batches; *size: samples of the next batch. Fails unless all sources end at
// the same sample.
static tare_status advance(const data_source *s, named *n, int64_t *size, tare_error *err) {
    *size = s->batch_size > 0 ? s->batch_size : INT64_MAX;
    for (size_t i = 0; i < s->input_count; i++) {
        entry *p = &n->entries[i];
        TARE_TRY(refill(p, err));
        if (p->is_done != n->entries[0].is_done)
            return at_spec(
                s,
                tare__fail(err, TARE_INVALID_ARGUMENT, "input '%s' has %s samples than input '%s'",
                           s->inputs[i].name, p->is_done ? "fewer" : "more", s->inputs[0].name),
                err);
        const int64_t left = p->batch.size - p->position;
        if (left < *size) *size = left;
    }
    const int64_t labels = n->labels != NULL ? n->labels->shape[0] : 0;
    const bool is_short =
        n->entries[0].is_done ? n->position != labels : n->position + *size > labels;
    if (n->labels != NULL && is_short)
        return at_spec(s,
                       tare__fail(err, TARE_INVALID_ARGUMENT,
                                  "%" PRId64 " labels for %s%" PRId64 " samples", labels,
                                  n->entries[0].is_done ? "" : "at least ",
                                  n->entries[0].is_done ? n->position : n->position + *size),
                       err);
    return TARE_OK;
}

static tare_status take_labels(named *n, const entry *p, int64_t size, data_batch *out,
                               tare_error *err) {
    if (p->batch.labels == NULL) return TARE_OK;
    if (n->labels != NULL || out->labels != NULL)
        return tare__hint(err,
                          tare__fail(err, TARE_INVALID_ARGUMENT,
                                     "labels come with several inputs; expected them from one"),
                          "leave the labels out of all but one");
    return tare__data_slice(p->batch.labels, p->position, size, &out->labels, err);
}

static tare_status next(data_source *s, data_batch *out, bool *done, tare_error *err) {
    named *n = s->state;
    int64_t size = 0;
    TARE_TRY(advance(s, n, &size, err));
    *done = n->entries[0].is_done;
    if (*done) return TARE_OK;
    TARE_TRY(tare__data_batch_create(s, out, err));
    for (size_t i = 0; i < s->input_count; i++) {
        entry *p = &n->entries[i];
        TARE_TRY(tare__data_slice(p->batch.inputs[0], p->position, size, &out->inputs[i], err));
        TARE_TRY(take_labels(n, p, size, out, err));
    }
    if (n->labels != NULL)
        TARE_TRY(tare__data_slice(n->labels, n->position, size, &out->labels, err));
    for (size_t i = 0; i < s->input_count; i++) n->entries[i].position += size;
    n->position += size;
    out->size = size;
    return TARE_OK;
}

static tare_status rewind_named(data_source *s, tare_error *err) {
    named *n = s->state;
    n->position = 0;
    for (size_t i = 0; i < s->input_count; i++) {
        entry *p = &n->entries[i];
        tare__data_batch_release(&p->batch);
        p->position = 0;
        p->is_done = false;
        TARE_TRY(tare__data_rewind(p->source, err));
    }
    return TARE_OK;
}

static int64_t count(const data_source *s) {
    return tare__data_sample_count(((const named *)s->state)->entries[0].source);
}

static void close_named(data_source *s) {
    named *n = s->state;
    for (size_t i = 0; n->entries != NULL && i < s->input_count; i++) {
        tare__data_batch_release(&n->entries[i].batch);
        tare__data_close(n->entries[i].source);
    }
    tare__free(n->entries);
    tare_tensor_release(n->labels);
    tare__free(n);
}

// Not for labels, which are small and have been read already.
static void limit_entries(data_source *s) {
    const named *n = s->state;
    for (size_t i = 0; i < s->input_count; i++)
        tare__data_limit(n->entries[i].source, s->memory_limit);
}

tare_status tare__data_open_named(data_source *s, tare_error *err) {
    static const data_kind kind = {.next = next,
                                   .rewind = rewind_named,
                                   .close = close_named,
                                   .count = count,
                                   .limit = limit_entries};
    named *n = tare__alloc_zeroed(1, sizeof *n);
    if (n == NULL) return tare__out_of_memory(err);
    s->state = n;
    s->kind = &kind;
    n->entries = tare__alloc_zeroed(s->input_count + 1, sizeof *n->entries);
    return n->entries != NULL ? open_entries(s, n, err) : tare__out_of_memory(err);
}
