// SPDX-License-Identifier: Apache-2.0
// Reads and writes .npy files. The header is a Python dict literal with three keys in any order.
#include "io/data/npy.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, LONGEST_HEADER = 1 << 20, ALIGNMENT = 64 };

static const struct {
    const char *code; // without the byte order
    tare_dtype dtype;
} codes[] = {
    {"f4", TARE_FLOAT32}, {"f8", TARE_FLOAT64}, {"f2", TARE_FLOAT16}, {"i1", TARE_INT8},
    {"u1", TARE_UINT8},   {"i2", TARE_INT16},   {"u2", TARE_UINT16},  {"i4", TARE_INT32},
    {"i8", TARE_INT64},   {"b1", TARE_BOOL},
};
enum { QUANTIZED_COUNT = sizeof codes / sizeof *codes };

tare_status tare__npy_header_size(const unsigned char *bytes, size_t size, size_t *out,
                                  tare_error *err) {
    if (size < NPY_PREFIX || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "byte 0: an array begins with \\x93NUMPY, a version and a length");
    const unsigned major = bytes[6];
    if (major < 1 || major > 3)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "byte 6: version %u.%u of the format is unknown", major, bytes[7]);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8, prefix = 10;
    if (major > 1) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        prefix = 12;
    }
    if (length > LONGEST_HEADER)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "byte 8: a header of %zu bytes is over the limit", length);
    *out = prefix + length;
    return TARE_OK;
}

// --- the dict ---

typedef struct cursor {
    const char *begin, *at, *end;
    size_t offset; // of begin in the array's bytes
    tare_error *err;
} cursor;

static tare_status complain(const cursor *c, const char *expected) {
    return tare__fail(c->err, TARE_MALFORMED_FILE, "byte %zu: expected %s in the array's header",
                      c->offset + (size_t)(c->at - c->begin), expected);
}

static char peek(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
    return c->at < c->end ? *c->at : '\0';
}

static bool take(cursor *c, char wanted) {
    if (peek(c) != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    const size_t length = strlen(word);
    peek(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

static tare_status read_string(cursor *c, char *out, size_t size) {
    const char quote = peek(c);
    if (quote != '\'' && quote != '"') return complain(c, "a string");
    const char *begin = ++c->at;
    while (c->at < c->end && *c->at != quote) c->at++;
    const size_t length = (size_t)(c->at - begin);
    if (c->at == c->end || length >= size) return complain(c, "a short string");
    memcpy(out, begin, length);
    out[length] = '\0';
    c->at++;
    return TARE_OK;
}

static tare_status read_dtype(cursor *c, npy_header *out) {
    char descr[32];
    if (peek(c) == '[')
        return tare__fail(c->err, TARE_UNSUPPORTED, "arrays of structures cannot be read");
    TARE_TRY(read_string(c, descr, sizeof descr));
    if (descr[0] == '>' && strcmp(descr, ">i1") != 0 && strcmp(descr, ">u1") != 0)
        return tare__fail(c->err, TARE_UNSUPPORTED, "the big-endian dtype '%s' cannot be read",
                          descr);
    const char *code = descr + (descr[0] != '\0' && strchr("<>|=", descr[0]) != NULL);
    for (size_t i = 0; i < QUANTIZED_COUNT; i++) {
        if (strcmp(codes[i].code, code) != 0) continue;
        out->dtype = codes[i].dtype;
        return TARE_OK;
    }
    return tare__fail(c->err, TARE_UNSUPPORTED, "arrays of dtype '%s' cannot be read", descr);
}

static tare_status read_size(cursor *c, int64_t *out) {
    if (peek(c) < '0' || *c->at > '9') return complain(c, "a size");
    int64_t number = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        const int digit = *c->at - '0';
        if (number > (INT64_MAX - digit) / 10) return complain(c, "a size of at most 64 bits");
        number = number * 10 + digit;
        c->at++;
    }
    *out = number;
    return TARE_OK;
}

static tare_status read_shape(cursor *c, npy_header *out) {
    if (!take(c, '(')) return complain(c, "a tuple");
    while (!take(c, ')')) {
        if (out->ndim == TARE_MAX_DIMS)
            return tare__fail(c->err, TARE_UNSUPPORTED, "an array has more than %d dimensions",
                              TARE_MAX_DIMS);
        TARE_TRY(read_size(c, &out->shape[out->ndim++]));
        if (!take(c, ',') && peek(c) != ')') return complain(c, "',' or ')'");
    }
    return TARE_OK;
}

static tare_status read_order(cursor *c, npy_header *out) {
    out->is_fortran_order = take_word(c, "True");
    return out->is_fortran_order || take_word(c, "False") ? TARE_OK : complain(c, "True or False");
}

static tare_status read_dict(cursor *c, npy_header *out) {
    static const struct {
        const char *key;
        tare_status (*read)(cursor *c, npy_header *out);
    } keys[] = {{"descr", read_dtype}, {"fortran_order", read_order}, {"shape", read_shape}};
    unsigned seen = 0;
    if (!take(c, '{')) return complain(c, "a dict");
    while (!take(c, '}')) {
        char key[32];
        size_t i = 0;
        TARE_TRY(read_string(c, key, sizeof key));
        while (i < 3 && strcmp(keys[i].key, key) != 0) i++;
        if (i == 3 || (seen >> i & 1) != 0)
            return complain(c, "descr, fortran_order and shape, once");
        seen |= 1u << i;
        if (!take(c, ':')) return complain(c, "':'");
        TARE_TRY(keys[i].read(c, out));
        if (!take(c, ',') && peek(c) != '}') return complain(c, "',' or '}'");
    }
    if (seen != 7) return complain(c, "descr, fortran_order and shape");
    return peek(c) == '\0' && c->at == c->end ? TARE_OK : complain(c, "nothing more");
}

tare_status tare__npy_parse_header(const unsigned char *bytes, size_t size, npy_header *out,
                                   tare_error *err) {
    npy_header made = {0};
    TARE_TRY(tare__npy_header_size(bytes, size, &made.header_bytes, err));
    if (made.header_bytes > size)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "byte 8: the header ends at byte %zu, the array at %zu",
                          made.header_bytes, size);
    const size_t prefix = bytes[6] > 1 ? 12 : 10;
    const char *begin = (const char *)bytes + prefix;
    cursor c = {begin, begin, (const char *)bytes + made.header_bytes, prefix, err};
    TARE_TRY(read_dict(&c, &made));
    int64_t count = 0;
    if (!tare__shape_count(made.ndim, made.shape, &count) ||
        !tare__mul_size((size_t)count, tare_dtype_size(made.dtype), &made.data_bytes))
        return tare__fail(err, TARE_MALFORMED_FILE, "the product of the array's sizes overflows");
    *out = made;
    return TARE_OK;
}

// --- the data ---

static tare_status check_bools(const npy_header *h, const unsigned char *bytes, tare_error *err) {
    if (h->dtype != TARE_BOOL) return TARE_OK;
    for (size_t i = 0; i < h->data_bytes; i++)
        if (bytes[i] > 1)
            return tare__fail(err, TARE_MALFORMED_FILE, "byte %zu: %u is not a boolean",
                              h->header_bytes + i, bytes[i]);
    return TARE_OK;
}

// Copies from Fortran order, in which the first index varies fastest, to row-major order.
static void copy_from_fortran(const npy_header *h, const unsigned char *from, tare_tensor *to) {
    const size_t element = tare_dtype_size(h->dtype);
    unsigned char *out = to->data;
    int64_t index[TARE_MAX_DIMS] = {0};
    for (int64_t i = 0; i < to->count; i++) {
        int64_t offset = 0;
        for (int d = h->ndim - 1; d >= 0; d--) offset = offset * h->shape[d] + index[d];
        memcpy(out + (size_t)i * element, from + (size_t)offset * element, element);
        for (int d = h->ndim - 1; d >= 0 && ++index[d] == h->shape[d]; d--) index[d] = 0;
    }
}

static tare_status make_tensor(storage *store, const npy_header *h, const unsigned char *bytes,
                               tare_tensor **out, tare_error *err) {
    if (h->is_fortran_order && h->ndim > 1) {
        TARE_TRY(tare_tensor_create(h->dtype, h->ndim, h->shape, out, err));
        copy_from_fortran(h, bytes, *out);
        return TARE_OK;
    }
    const unsigned char *begin = tare__storage_data(store);
    return tare__tensor_view(store, (size_t)(bytes - begin), h->dtype, h->ndim, h->shape, NULL, out,
                             err);
}

tare_status tare__npy_parse(storage *store, const unsigned char *data, size_t size,
                            tare_tensor **out, tare_error *err) {
    npy_header h = {0};
    TARE_TRY(tare__npy_parse_header(data, size, &h, err));
    if (h.data_bytes != size - h.header_bytes)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "byte %zu: the array's shape needs %zu bytes, the file has %zu",
                          h.header_bytes, h.data_bytes, size - h.header_bytes);
    TARE_TRY(check_bools(&h, data + h.header_bytes, err));
    return make_tensor(store, &h, data + h.header_bytes, out, err);
}

tare_status tare__npy_read(const char *path, tare_tensor **out, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    const tare_status status = tare__npy_parse(store, data, size, out, err);
    tare__storage_release(store);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

// --- writing ---

tare_status tare__npy_make_header(const tare_tensor *t, text *out, tare_error *err) {
    size_t i = 0;
    while (i < QUANTIZED_COUNT && codes[i].dtype != t->dtype) i++;
    if (i == QUANTIZED_COUNT || (t->data == NULL && t->count > 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a tensor of %s%s cannot be written to a NumPy file",
                          tare_dtype_name(t->dtype), t->data == NULL ? " without data" : "");
    text dict = {0};
    tare__text_printf(&dict, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                      tare_dtype_size(t->dtype) == 1 ? '|' : '<', codes[i].code);
    for (int d = 0; d < t->ndim; d++)
        tare__text_printf(&dict, "%s%" PRId64 "%s", d > 0 ? ", " : "", t->shape[d],
                          t->ndim == 1 ? "," : "");
    tare__text_append(&dict, "), }");
    const size_t unpadded = 10 + dict.length + 1;
    const size_t padding = (ALIGNMENT - unpadded % ALIGNMENT) % ALIGNMENT;
    const size_t length = dict.length + padding + 1; // far below 64 KiB with 8 dimensions
    const char prefix[4] = {1, 0, (char)(length & 0xff), (char)(length >> 8)};
    tare__text_append_n(out, magic, MAGIC_BYTES);
    tare__text_append_n(out, prefix, sizeof prefix);
    tare__text_append_n(out, tare__text_chars(&dict), dict.length);
    tare__text_spaces(out, padding);
    tare__text_char(out, '\n');
    const tare_status status = tare__text_status(&dict, err);
    tare__text_release(&dict);
    return status == TARE_OK ? tare__text_status(out, err) : status;
}

static tare_status write_file(const char *path, const text *header, const tare_tensor *t,
                              tare_error *err) {
    file_writer w = {0};
    TARE_TRY(tare__file_begin(&w, path, err));
    tare_status status = tare__file_write(&w, tare__text_chars(header), header->length, err);
    if (status == TARE_OK) status = tare__file_write(&w, t->data, tare__tensor_bytes(t), err);
    if (status == TARE_OK) status = tare__file_commit(&w, err);
    tare__file_abort(&w);
    return status;
}

tare_status tare__npy_write(const char *path, const tare_tensor *t, tare_error *err) {
    text header = {0};
    tare_status status = tare__npy_make_header(t, &header, err);
    if (status == TARE_OK) status = write_file(path, &header, t, err);
    tare__text_release(&header);
    return status;
}
