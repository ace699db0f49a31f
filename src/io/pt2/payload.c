// SPDX-License-Identifier: Apache-2.0
// Reads tensors. A record is a whole storage; a tensor is a view of it with sizes, strides and an
// offset.
#include "io/pt2/payload.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/arena.h"
#include "core/tensor/map.h"
#include "core/text/text.h"

// Most elements of a tensor that is larger than its record (zeros, or dimensions with stride 0).
enum { MOST_REPEATED = 1 << 24 };

// --- codes ---

static const tare_dtype dtypes[] = {
    [1] = TARE_UINT8,       [2] = TARE_INT8,      [3] = TARE_INT16,   [4] = TARE_INT32,
    [5] = TARE_INT64,       [6] = TARE_FLOAT16,   [7] = TARE_FLOAT32, [8] = TARE_FLOAT64,
    [12] = TARE_BOOL,       [13] = TARE_BFLOAT16, [28] = TARE_UINT16, [29] = TARE_FLOAT8_E4M3FN,
    [30] = TARE_FLOAT8_E5M2};
enum { DTYPE_CODES = sizeof dtypes / sizeof *dtypes };

tare_dtype tare__pt2_dtype(int64_t code) {
    return code >= 0 && code < DTYPE_CODES ? dtypes[code] : TARE_DTYPE_UNSET;
}

int tare__pt2_dtype_code(tare_dtype dtype) {
    for (int code = 1; code < DTYPE_CODES; code++)
        if (dtypes[code] == dtype) return dtype != TARE_DTYPE_UNSET ? code : 0;
    return 0;
}

static const char *name_of(const char *const *names, int64_t count, int64_t code) {
    return code >= 0 && code < count ? names[code] : NULL;
}

const char *tare__pt2_layout(int64_t code) {
    static const char *const names[] = {NULL,
                                        "torch.sparse_coo",
                                        "torch.sparse_csr",
                                        "torch.sparse_csc",
                                        "torch.sparse_bsr",
                                        "torch.sparse_bsc",
                                        "torch._mkldnn",
                                        "torch.strided"};
    return name_of(names, sizeof names / sizeof *names, code);
}

const char *tare__pt2_memory_format(int64_t code) {
    static const char *const names[] = {NULL, "torch.contiguous_format", "torch.channels_last",
                                        "torch.channels_last_3d", "torch.preserve_format"};
    return name_of(names, sizeof names / sizeof *names, code);
}

tare_status tare__pt2_read_json(pt2_archive *a, const char *name, json_t **out) {
    pt2_bytes bytes;
    TARE_TRY(tare__pt2_read_member(a, name, &bytes));
    const tare_status status = tare__json_parse((const char *)bytes.data, bytes.size, out, a->err);
    tare__storage_release(bytes.store);
    return status == TARE_OK ? TARE_OK : tare__at(a->err, status, "%s", name);
}

// --- one tensor ---

typedef struct placement {
    tare_dtype dtype;
    int ndim;
    int64_t size[TARE_MAX_DIMS], stride[TARE_MAX_DIMS], offset; // strides in elements
    int64_t count;
} placement;

static tare_status read_number(const json_at *at, int64_t *out, tare_error *err) {
    const json_at number = tare__json_get(at, "as_int");
    if (!json_is_object(at->value) || !tare__json_has(at, "as_int"))
        return tare__json_fail(at, err, "expected {\"as_int\": ..}: the sizes of data are numbers");
    TARE_TRY(tare__json_int(&number, out, err));
    return *out >= 0 ? TARE_OK : tare__json_fail(at, err, "%" PRId64 " is negative", *out);
}

static tare_status read_numbers(const json_at *at, int64_t *out, int *count, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    if (json_array_size(at->value) > TARE_MAX_DIMS)
        return tare__json_fail(at, err, "%zu dimensions; at most %d are known",
                               json_array_size(at->value), TARE_MAX_DIMS);
    *count = (int)json_array_size(at->value);
    for (int i = 0; i < *count; i++) {
        const json_at item = tare__json_item(at, (size_t)i);
        TARE_TRY(read_number(&item, &out[i], err));
    }
    return TARE_OK;
}

static tare_status read_placement(const json_at *meta, placement *p, tare_error *err) {
    const json_at dtype = tare__json_get(meta, "dtype"), sizes = tare__json_get(meta, "sizes");
    const json_at strides = tare__json_get(meta, "strides");
    const json_at offset = tare__json_get(meta, "storage_offset");
    int64_t code = 0;
    int stride_count = 0;
    TARE_TRY(tare__json_expect(meta, JSON_OBJECT, err));
    TARE_TRY(tare__json_int(&dtype, &code, err));
    p->dtype = tare__pt2_dtype(code);
    if (p->dtype == TARE_DTYPE_UNSET)
        return tare__json_fail(
            &dtype, err, "tensors of the dtype with code %" PRId64 " are not supported", code);
    TARE_TRY(read_numbers(&sizes, p->size, &p->ndim, err));
    TARE_TRY(read_numbers(&strides, p->stride, &stride_count, err));
    TARE_TRY(read_number(&offset, &p->offset, err));
    if (stride_count != p->ndim)
        return tare__json_fail(&strides, err, "%d strides for %d dimensions", stride_count,
                               p->ndim);
    return tare__shape_count(p->ndim, p->size, &p->count)
               ? TARE_OK
               : tare__json_fail(&sizes, err, "the product of the sizes overflows");
}

// The largest index into the record that is used, or INT64_MAX if it overflows.
static int64_t last_index(const placement *p) {
    int64_t last = p->offset;
    for (int d = 0; d < p->ndim; d++) {
        const int64_t steps = p->size[d] - 1;
        if (steps > 0 && p->stride[d] > (INT64_MAX - last) / steps) return INT64_MAX;
        last += steps * p->stride[d];
    }
    return last;
}

static bool is_dense(const placement *p) {
    int64_t expected = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (p->size[d] != 1 && p->stride[d] != expected) return false;
        expected *= p->size[d];
    }
    return true;
}

static void gather_elements(const placement *p, const unsigned char *from, tare_tensor *y) {
    const size_t size = tare_dtype_size(p->dtype);
    for (int64_t i = 0; i < p->count; i++) {
        int64_t rest = i, at = p->offset;
        for (int d = p->ndim - 1; d >= 0; d--) {
            at += rest % p->size[d] * p->stride[d];
            rest /= p->size[d];
        }
        memcpy((char *)y->data + (size_t)i * size, from + (size_t)at * size, size);
    }
}

static tare_status create_tensor(const json_at *at, const placement *p, memory_budget *budget,
                                 tare_tensor **out, tare_error *err) {
    const size_t size = tare_dtype_size(p->dtype);
    const uint64_t bytes =
        (uint64_t)p->count > UINT64_MAX / size ? UINT64_MAX : (uint64_t)p->count * size;
    const tare_status status = tare__budget_take(budget, bytes, "the tensor", err);
    if (status != TARE_OK) return tare__json_place(at, status, err);
    return tare_tensor_create(p->dtype, p->ndim, p->size, out, err);
}

static tare_status make_tensor(const json_at *at, const pt2_bytes *bytes, const placement *p,
                               memory_budget *budget, tare_tensor **out, tare_error *err) {
    const size_t size = tare_dtype_size(p->dtype);
    if (bytes->size % size != 0)
        return tare__json_fail(at, err,
                               "size %zu is not a multiple of element size %zu for dtype %s",
                               bytes->size, size, tare_dtype_name(p->dtype));
    const int64_t stored = (int64_t)(bytes->size / size);
    // A record without data means zeros.
    const bool is_empty = p->count == 0 || stored == 0;
    if (!is_empty && last_index(p) >= stored)
        return tare__json_fail(
            at, err, "the record has %" PRId64 " elements, but the tensor reaches beyond", stored);
    if (!is_empty && is_dense(p)) {
        const unsigned char *begin = tare__storage_data(bytes->store);
        return tare__tensor_view(bytes->store,
                                 (size_t)(bytes->data - begin) + (size_t)p->offset * size, p->dtype,
                                 p->ndim, p->size, NULL, out, err);
    }
    if (p->count > stored && p->count > MOST_REPEATED)
        return tare__json_fail(at, err,
                               "%" PRId64 " elements out of a record of %" PRId64 " are too many",
                               p->count, stored);
    TARE_TRY(create_tensor(at, p, budget, out, err));
    if (!is_empty) gather_elements(p, bytes->data, *out);
    return TARE_OK;
}

// --- the table ---

typedef struct table {
    pt2_archive *archive;
    const char *folder;
    map *tensors;
    map first; // record and placement -> the tensor made of them, lent
    arena scratch;
} table;

// Names with the same record, dtype, offset, shape and strides share a tensor.
static const char *key_of(table *t, const char *record, const placement *p) {
    text key = {0};
    tare__text_printf(&key, "%s %d %" PRId64, record, (int)p->dtype, p->offset);
    for (int d = 0; d < p->ndim; d++)
        tare__text_printf(&key, " %" PRId64 ",%" PRId64, p->size[d], p->stride[d]);
    const char *kept = key.failed ? NULL : tare__arena_strdup(&t->scratch, tare__text_chars(&key));
    tare__text_release(&key);
    return kept;
}

static tare_status read_entry(table *t, const json_at *at, const char *name) {
    tare_error *err = t->archive->err;
    const json_at path = tare__json_get(at, "path_name"), meta = tare__json_get(at, "tensor_meta");
    const json_at pickle = tare__json_get(at, "use_pickle");
    const char *record = NULL;
    placement p = {0};
    pt2_bytes bytes = {0};
    bool is_pickled = false;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_string(&path, &record, err));
    if (tare__json_has(at, "use_pickle")) TARE_TRY(tare__json_bool(&pickle, &is_pickled, err));
    if (is_pickled || json_is_null(meta.value)) {
        tare__fail(err, TARE_UNSUPPORTED, "'%s' is kept as a Python pickle, which is never read",
                   name);
        return tare__hint(err, TARE_UNSUPPORTED,
                          "for tensor subclasses, such as those of torchao's quantize_, save "
                          "program.run_decompositions({}); custom objects are not supported");
    }
    TARE_TRY(read_placement(&meta, &p, err));
    const char *member = tare__arena_printf(&t->scratch, "%s%s", t->folder, record);
    const char *key = key_of(t, record, &p);
    if (member == NULL || key == NULL) return tare__out_of_memory(err);
    tare_tensor *made = tare__map_get(&t->first, key);
    if (made != NULL) {
        made = tare_tensor_retain(made);
    } else {
        TARE_TRY(tare__pt2_read_member(t->archive, member, &bytes));
        const tare_status status = make_tensor(&path, &bytes, &p, &t->archive->budget, &made, err);
        tare__storage_release(bytes.store);
        TARE_TRY(status);
        // The checksum has read its pages, which may not be needed again soon.
        tare__tensor_forget(made);
        if (!tare__map_set(&t->first, key, made)) {
            tare_tensor_release(made);
            return tare__out_of_memory(err);
        }
    }
    if (tare__map_set(t->tensors, name, made)) return TARE_OK;
    tare_tensor_release(made);
    return tare__out_of_memory(err);
}

static tare_status read_table(table *t, const json_at *top) {
    const json_at config = tare__json_get(top, "config");
    TARE_TRY(tare__json_expect(top, JSON_OBJECT, t->archive->err));
    TARE_TRY(tare__json_expect(&config, JSON_OBJECT, t->archive->err));
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)config.value, name, item) {
        const json_at at = tare__json_get(&config, name);
        TARE_TRY(read_entry(t, &at, name));
        tare__arena_release(&t->scratch);
    }
    return TARE_OK;
}

// Older versions of torch stored all tensors in one pickle, without tables.
static tare_status refuse_legacy(pt2_archive *a, const char *folder, const char *model,
                                 arena *scratch) {
    const char *old = tare__arena_printf(scratch, "%s%s.pt", folder, model);
    if (old == NULL) return tare__out_of_memory(a->err);
    if (!tare__pt2_has(a, old)) return TARE_OK;
    tare__fail(a->err, TARE_UNSUPPORTED, "'%s' is a Python pickle, which is never read", old);
    return tare__hint(a->err, TARE_UNSUPPORTED, "save the program again with torch 2.9 or newer");
}

tare_status tare__pt2_read_payloads(pt2_archive *a, const char *folder, const char *model,
                                    map *tensors) {
    table t = {.archive = a, .folder = folder, .tensors = tensors};
    json_t *json = NULL;
    const char *kind = strstr(folder, "weights") != NULL ? "weights" : "constants";
    char name[1200];
    (void)snprintf(name, sizeof name, "%s%s_%s_config.json", folder, model, kind);
    tare_status status = refuse_legacy(a, folder, model, &t.scratch);
    if (status == TARE_OK && tare__pt2_has(a, name)) {
        status = tare__pt2_read_json(a, name, &json);
        const json_at top = tare__json_root(json);
        if (status == TARE_OK) {
            status = read_table(&t, &top);
            if (status != TARE_OK) tare__at(a->err, status, "%s", name);
        }
        json_decref(json);
    }
    tare__map_release(&t.first);
    tare__arena_release(&t.scratch);
    return status;
}
