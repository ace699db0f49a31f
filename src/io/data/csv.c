// SPDX-License-Identifier: Apache-2.0
// CSV files, possibly gzipped, with features and a label per row. Read as a stream, one batch at a
// time.
#define _XOPEN_SOURCE 700 // uselocale
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/data/source.h"

enum { DEFAULT_BATCH = 256, LONGEST_LINE = 1 << 24, FIRST_LINE = 1 << 12 };

typedef struct csv {
    gzFile file; // zlib reads uncompressed files, too
    locale_t c_locale;
    char *line;
    size_t capacity, line_number;
    size_t columns; // with the label; 0: not known yet
    float *row;     // [columns - 1] features of the current row
    int64_t label;
} csv;

static tare_status fail_line(const data_source *s, tare_error *err, const char *format, ...)
    TARE_PRINTF(3, 4);
static tare_status fail_line(const data_source *s, tare_error *err, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    tare__fail(err, TARE_MALFORMED_FILE, "%s", what);
    return tare__at(err, TARE_MALFORMED_FILE, "%s: line %zu", s->spec,
                    ((const csv *)s->state)->line_number);
}

static tare_status check_stream(const data_source *s, csv *c, tare_error *err) {
    int number = Z_OK;
    const char *message = gzerror(c->file, &number);
    if (number == Z_OK || number == Z_STREAM_END) return TARE_OK;
    if (number == Z_MEM_ERROR) return tare__out_of_memory(err);
    if (number == Z_ERRNO) return fail_line(s, err, "reading failed");
    // zlib prefixes its message with the path and ": ".
    const size_t path_length = strlen(s->spec);
    const bool has_path =
        strncmp(message, s->spec, path_length) == 0 && message[path_length] == ':';
    return fail_line(s, err, "%s", has_path ? message + path_length + 2 : message);
}

// The next line without its end; *end when there is none.
static tare_status read_line(data_source *s, csv *c, bool *end, tare_error *err) {
    size_t length = 0;
    c->line_number++;
    for (;;) {
        if (c->capacity - length < 2) {
            const size_t capacity = c->capacity > 0 ? 2 * c->capacity : FIRST_LINE;
            if (capacity > LONGEST_LINE) return fail_line(s, err, "the line is over 16 MB long");
            char *grown = tare__realloc_array(c->line, capacity, 1);
            if (grown == NULL) return tare__out_of_memory(err);
            c->line = grown;
            c->capacity = capacity;
        }
        const z_off_t before = gztell(c->file);
        if (gzgets(c->file, c->line + length, (int)(c->capacity - length)) == NULL) break;
        const size_t added = strlen(c->line + length);
        if (added != (size_t)(gztell(c->file) - before))
            return fail_line(s, err, "there is a NUL in the line");
        length += added;
        if (c->line[length - 1] == '\n') break;
    }
    TARE_TRY(check_stream(s, c, err));
    *end = length == 0;
    while (length > 0 && strchr("\r\n", c->line[length - 1]) != NULL) length--;
    c->line[length] = '\0';
    return TARE_OK;
}

// A number that ends at ',' or the end of the line, possibly in quotes.
static bool read_number(const char **at, double *out) {
    char *end = NULL;
    *at += strspn(*at, " ");
    const bool is_quoted = **at == '"';
    if (is_quoted) ++*at;
    if (**at == ',' || **at == '\0') return false;
    *out = strtod(*at, &end);
    if (is_quoted && (end == *at || *end++ != '"')) return false;
    while (*end == ' ') end++;
    if (end == *at || (*end != ',' && *end != '\0')) return false;
    *at = end + (*end == ',');
    return true;
}

static size_t count_columns(const char *line) {
    size_t count = 1;
    for (; *line != '\0'; line++) count += *line == ',';
    return count;
}

static tare_status read_row(const data_source *s, csv *c, tare_error *err) {
    const char *at = c->line;
    if (count_columns(c->line) != c->columns)
        return fail_line(s, err,
                         "the row has another number of columns than the first one: expected %zu, "
                         "found %zu",
                         c->columns, count_columns(c->line));
    for (size_t i = 0; i < c->columns; i++) {
        double number = 0;
        if (!read_number(&at, &number))
            return fail_line(s, err,
                             "expected numbers separated by ',', found '%.20s' in column %zu", at,
                             i + 1);
        if (isnan(number)) return fail_line(s, err, "column %zu is NaN", i + 1);
        if (s->inputs[0].is_finite && !isfinite((float)number))
            return fail_line(s, err, "column %zu is %g", i + 1, number);
        if (i + 1 < c->columns) {
            c->row[i] = (float)number;
        } else {
            if (number != floor(number) || fabs(number) > INT32_MAX)
                return fail_line(s, err, "the label in the last column is not a whole number: %g",
                                 number);
            c->label = (int64_t)number;
        }
    }
    return TARE_OK;
}

// --- batches ---

// A known shape must have as many elements as a row; an unknown one is [batch, features].
static tare_status sample_shape(const data_source *s, const csv *c, int *ndim, int64_t *shape,
                                tare_error *err) {
    const data_input *input = &s->inputs[0];
    const int64_t features = (int64_t)c->columns - 1;
    int64_t count = 1;
    *ndim = input->ndim > 1 ? input->ndim : 2;
    shape[1] = features;
    for (int d = 1; d < input->ndim; d++) {
        shape[d] = input->shape[d];
        if (shape[d] < 0) shape[d] = input->ndim == 2 ? features : 1;
        if (shape[d] > features)
            return fail_line(s, err, "the row has too few columns for the input");
        count *= shape[d];
        if (count > features) break;
    }
    if (input->ndim > 1 && count != features)
        return fail_line(s, err, "the row's columns do not fill the input's shape");
    return TARE_OK;
}

static tare_status make_batch(const data_source *s, const csv *c, const float *rows,
                              const int64_t *labels, int64_t count, data_batch *out,
                              tare_error *err) {
    int64_t shape[TARE_MAX_DIMS];
    int ndim = 0;
    TARE_TRY(tare__data_batch_create(s, out, err));
    TARE_TRY(sample_shape(s, c, &ndim, shape, err));
    shape[0] = count;
    TARE_TRY(tare_tensor_from_data(TARE_FLOAT32, ndim, shape, rows, &out->inputs[0], err));
    TARE_TRY(tare_tensor_from_data(TARE_INT64, 1, &count, labels, &out->labels, err));
    out->size = count;
    return TARE_OK;
}

static tare_status begin_rows(const data_source *s, csv *c, tare_error *err) {
    int ndim = 0;
    int64_t shape[TARE_MAX_DIMS];
    if (c->columns < 2) return fail_line(s, err, "expected features and a label, found one column");
    TARE_TRY(sample_shape(s, c, &ndim, shape, err));
    c->row = tare__alloc_zeroed(c->columns, sizeof *c->row);
    return c->row != NULL ? TARE_OK : tare__out_of_memory(err);
}

// The number of columns is that of the first row. If the first field is not a number, the line is a
// header.
static tare_status read_first(data_source *s, csv *c, bool *end, tare_error *err) {
    TARE_TRY(read_line(s, c, end, err));
    const char *at = c->line;
    double number = 0;
    if (!*end && tare__starts_with(at, "\xef\xbb\xbf")) // a UTF-8 byte order mark
        memmove(c->line, at + 3, strlen(at + 3) + 1);
    if (!*end && !read_number(&at, &number)) TARE_TRY(read_line(s, c, end, err));
    if (*end)
        return tare__hint(err, fail_line(s, err, "there are no rows"),
                          "rows are numbers with ',' between, the last one a whole number: the "
                          "label; a heading may stand before");
    c->columns = count_columns(c->line);
    const tare_status status = begin_rows(s, c, err);
    if (status != TARE_OK) c->columns = 0;
    return status;
}

typedef struct rows {
    float *features;
    int64_t *labels;
    size_t features_capacity, labels_capacity, count;
} rows;

static tare_status keep_row(const csv *c, rows *r, tare_error *err) {
    const size_t row_bytes = (c->columns - 1) * sizeof(float);
    if (!tare__grow((void **)&r->features, &r->features_capacity, r->count, row_bytes) ||
        !tare__grow((void **)&r->labels, &r->labels_capacity, r->count, sizeof *r->labels))
        return tare__out_of_memory(err);
    memcpy(r->features + r->count * (c->columns - 1), c->row, row_bytes);
    r->labels[r->count++] = c->label;
    return TARE_OK;
}

static tare_status read_rows(data_source *s, csv *c, rows *r, tare_error *err) {
    const size_t wanted = s->batch_size > 0 ? (size_t)s->batch_size : DEFAULT_BATCH;
    while (r->count < wanted) {
        bool end = false;
        TARE_TRY(c->columns == 0 ? read_first(s, c, &end, err) : read_line(s, c, &end, err));
        if (end) break;
        if (c->line[0] == '\0') continue;
        TARE_TRY(read_row(s, c, err));
        TARE_TRY(keep_row(c, r, err));
    }
    return TARE_OK;
}

static tare_status next(data_source *s, data_batch *out, bool *done, tare_error *err) {
    csv *c = s->state;
    rows r = {0};
    // strtod depends on the program's locale, the file format does not.
    const locale_t before = uselocale(c->c_locale);
    tare_status status = read_rows(s, c, &r, err);
    uselocale(before);
    *done = status == TARE_OK && r.count == 0;
    if (status == TARE_OK && !*done)
        status = make_batch(s, c, r.features, r.labels, (int64_t)r.count, out, err);
    tare__free(r.features);
    tare__free(r.labels);
    return status;
}

static tare_status rewind_csv(data_source *s, tare_error *err) {
    csv *c = s->state;
    if (gzrewind(c->file) != 0) return tare__fail(err, TARE_IO, "%s cannot be read again", s->spec);
    tare__free(c->row);
    c->row = NULL;
    c->columns = c->line_number = 0;
    return TARE_OK;
}

static void close_csv(data_source *s) {
    csv *c = s->state;
    if (c->file != NULL) gzclose(c->file);
    if (c->c_locale != (locale_t)0) freelocale(c->c_locale);
    tare__free(c->line);
    tare__free(c->row);
    tare__free(c);
}

static tare_status open_csv(data_source *s, csv *c, tare_error *err) {
    if (s->input_count != 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "rows of text for a model of %zu inputs",
                          s->input_count);
    errno = 0;
    c->file = gzopen(s->spec, "rb");
    if (c->file == NULL)
        return errno != 0 && errno != ENOMEM
                   ? tare__fail(err, TARE_IO, "cannot open: %s", strerror(errno))
                   : tare__out_of_memory(err);
    c->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c->c_locale != (locale_t)0 ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__data_open_csv(data_source *s, tare_error *err) {
    static const data_kind kind = {.next = next, .rewind = rewind_csv, .close = close_csv};
    csv *c = tare__alloc_zeroed(1, sizeof *c);
    if (c == NULL) return tare__out_of_memory(err);
    s->state = c;
    s->kind = &kind;
    const tare_status status = open_csv(s, c, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", s->spec);
}
