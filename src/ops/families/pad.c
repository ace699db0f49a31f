// SPDX-License-Identifier: Apache-2.0
// torch.nn.functional.pad, and the padding modes of convolutions.
#include "ops/families/pad.h"

#include <string.h>

#include "ops/families/families.h"
#include "ops/rules.h"

bool tare__pad_mode_from_name(const char *name, pad_mode *out) {
    static const struct {
        const char *name;
        pad_mode mode;
    } modes[] = {{"constant", PAD_CONSTANT},
                 {"zeros", PAD_CONSTANT},
                 {"reflect", PAD_REFLECT},
                 {"replicate", PAD_REPLICATE},
                 {"circular", PAD_CIRCULAR}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0) {
            *out = modes[i].mode;
            return true;
        }
    return false;
}

// The index in a row of `size` elements whose value is copied to index i. i is relative to the
// row's first element and may be outside of the row. -1: the constant is used.
static int64_t source_of(pad_mode mode, int64_t i, int64_t size) {
    if (i >= 0 && i < size) return i;
    switch (mode) {
    case PAD_REFLECT:
        return i < 0 ? -i : 2 * (size - 1) - i;
    case PAD_REPLICATE:
        return i < 0 ? 0 : size - 1;
    case PAD_CIRCULAR:
        return i < 0 ? i + size : i - size;
    case PAD_CONSTANT:
        break;
    }
    return -1;
}

// --- padding of arrays (pad_box) ---

// Trailing dimensions without padding are merged into `unit`.
pad_box tare__pad_box_of(const pad_call *call, const int *order, const tare_tensor *y) {
    pad_box b = {.mode = call->mode, .element = tare_dtype_size(y->dtype), .unit = 1};
    tare_tensor constant = *y;
    constant.data = b.fill;
    tare__tensor_set(&constant, 0, call->constant);
    if (y->ndim == 0) {
        b.ndim = 1;
        b.in[0] = b.out[0] = 1;
        return b;
    }
    for (b.ndim = y->ndim; b.ndim > 1; b.ndim--) {
        const int d = order[b.ndim - 1];
        if (call->before[d] != 0 || call->after[d] != 0) break;
        b.unit *= (size_t)y->shape[d];
    }
    for (int i = 0; i < b.ndim; i++) {
        b.in[i] = call->x->shape[order[i]];
        b.out[i] = y->shape[order[i]];
        b.before[i] = call->before[order[i]];
    }
    return b;
}

int64_t tare__pad_row_count(const pad_box *b) {
    int64_t count = 1;
    for (int i = 0; i + 1 < b->ndim; i++) count *= b->out[i];
    return count;
}

static void fill(const pad_box *b, size_t units, unsigned char *y) {
    static const unsigned char zeros[sizeof b->fill];
    const size_t count = units * b->unit;
    if (memcmp(b->fill, zeros, sizeof zeros) == 0)
        memset(y, 0, count * b->element);
    else
        for (size_t i = 0; i < count; i++) memcpy(y + i * b->element, b->fill, b->element);
}

// Fills elements [first, end) of a row of the result, which lie outside of the input's row.
static void pad_ends(const pad_box *b, const unsigned char *x, int64_t first, int64_t end,
                     unsigned char *y) {
    const int last = b->ndim - 1;
    const size_t bytes = b->unit * b->element;
    if (first >= end) return;
    if (b->mode == PAD_CONSTANT) {
        fill(b, (size_t)(end - first), y + (size_t)first * bytes);
        return;
    }
    for (int64_t i = first; i < end; i++)
        memcpy(y + (size_t)i * bytes,
               x + (size_t)source_of(b->mode, i - b->before[last], b->in[last]) * bytes, bytes);
}

static void pad_row(const pad_box *b, const unsigned char *x, unsigned char *y) {
    const int last = b->ndim - 1;
    const size_t bytes = b->unit * b->element;
    const int64_t before = b->before[last], out = b->out[last], behind = before + b->in[last];
    const int64_t first = before < 0 ? 0 : before < out ? before : out;
    const int64_t end = behind < first ? first : behind < out ? behind : out;
    pad_ends(b, x, 0, first, y);
    if (end > first)
        memcpy(y + (size_t)first * bytes, x + (size_t)(first - before) * bytes,
               (size_t)(end - first) * bytes);
    pad_ends(b, x, end, out, y);
}

// The row of the input that is copied to a row of the result; -1: constants.
static int64_t row_of(const pad_box *b, int64_t row) {
    int64_t from = 0, step = 1;
    for (int i = b->ndim - 2; i >= 0; i--) {
        const int64_t source = source_of(b->mode, row % b->out[i] - b->before[i], b->in[i]);
        if (source < 0) return -1;
        row /= b->out[i];
        from += source * step;
        step *= b->in[i];
    }
    return from;
}

void tare__pad_rows(const pad_box *b, const void *x, int64_t first, int64_t end, void *y) {
    const int last = b->ndim - 1;
    const size_t bytes = b->unit * b->element;
    const size_t x_row = (size_t)b->in[last] * bytes, y_row = (size_t)b->out[last] * bytes;
    for (int64_t i = first; i < end; i++) {
        const int64_t from = row_of(b, i);
        unsigned char *to = (unsigned char *)y + (size_t)i * y_row;
        if (from < 0)
            fill(b, (size_t)b->out[last], to);
        else
            pad_row(b, (const unsigned char *)x + (size_t)from * x_row, to);
    }
}

void tare__pad_into(const pad_call *p, tare_tensor *y) {
    int order[TARE_MAX_DIMS];
    for (int d = 0; d < y->ndim; d++) order[d] = d;
    if (y->count == 0) return;
    const pad_box b = tare__pad_box_of(p, order, y);
    tare__pad_rows(&b, p->x->data, 0, tare__pad_row_count(&b), y->data);
}

// --- the operator ---

static tare_status check_amount(op_call *call, const pad_call *p, int d) {
    const int64_t most = p->before[d] > p->after[d] ? p->before[d] : p->after[d];
    const int64_t size = p->x->shape[d];
    const bool fits = p->mode == PAD_REFLECT    ? most < size
                      : p->mode == PAD_CIRCULAR ? most <= size
                                                : p->mode == PAD_CONSTANT || most <= 0 || size > 0;
    if (fits && p->before[d] + size + p->after[d] >= 0) return TARE_OK;
    return tare__call_fail(call, "padding by %lld and %lld does not fit a dimension of %lld",
                           (long long)p->before[d], (long long)p->after[d], (long long)size);
}

// The amounts are in pairs (before, after), beginning with the last dimension.
tare_status tare__pad_read(op_call *call, pad_call *p) {
    int64_t amounts[2 * TARE_MAX_DIMS];
    size_t count;
    const char *mode;
    *p = (pad_call){0};
    TARE_TRY(tare__call_need_tensor(call, 0, &p->x));
    TARE_TRY(tare__call_int_list(call, 1, sizeof amounts / sizeof *amounts, amounts, &count));
    TARE_TRY(tare__call_text(call, 2, "constant", &mode));
    if (!tare__pad_mode_from_name(mode, &p->mode))
        return tare__call_fail(call, "unknown mode '%s'", mode);
    if (count % 2 != 0 || (int)(count / 2) > p->x->ndim)
        return tare__call_fail(call, "%zu amounts do not fit %d dimensions", count, p->x->ndim);
    for (size_t i = 0; i < count / 2; i++) {
        const int d = p->x->ndim - 1 - (int)i;
        p->before[d] = amounts[2 * i];
        p->after[d] = amounts[2 * i + 1];
        if (amounts[2 * i] != (int32_t)amounts[2 * i] ||
            amounts[2 * i + 1] != (int32_t)amounts[2 * i + 1] || p->x->shape[d] > INT64_MAX / 2)
            return tare__call_fail(call, "an amount of padding is out of range");
        TARE_TRY(check_amount(call, p, d));
    }
    return tare__call_double(call, 3, 0, &p->constant);
}

static tare_status pad_shape(op_call *call) {
    pad_call p;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__pad_read(call, &p));
    for (int d = 0; d < p.x->ndim; d++) shape[d] = p.before[d] + p.x->shape[d] + p.after[d];
    return tare__call_result(call, p.x->dtype, p.x->ndim, shape, NULL);
}

static tare_status pad_reference(op_call *call) {
    pad_call p;
    TARE_TRY(tare__pad_read(call, &p));
    tare__pad_into(&p, tare__call_out(call));
    return TARE_OK;
}

#define PAD(name, names, more, parameters)                                                         \
    {                                                                                              \
        .id = name, .functions = names, .overloads = more, .params = parameters,                   \
        .traits = OP_KEEPS_QPARAMS, .shape = pad_shape, .reference = pad_reference                 \
    }

#define PAD_BY(name, mode) "torch.ops.aten." name ".default(mode=" mode ") "

static const op_info rows[] = {
    PAD("pad", "torch.nn.functional.pad|torch.ops.aten.pad.default",
        "torch.ops.aten.constant_pad_nd.default(mode=constant) " //
        PAD_BY("reflection_pad1d", "reflect") PAD_BY("reflection_pad2d", "reflect")
            PAD_BY("reflection_pad3d", "reflect") PAD_BY("replication_pad1d", "replicate")
                PAD_BY("replication_pad2d", "replicate") PAD_BY("replication_pad3d", "replicate"),
        "input/self|pad/padding|mode|value"),
    PAD("zero_pad", NULL, NULL, "input|padding"), // of modules
};

const op_table tare__pad_ops = OP_TABLE(rows);
