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

int64_t tare__pad_source(pad_mode mode, int64_t i, int64_t size) {
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

// Dimensions at the end that are not padded are copied as one line.
static int64_t line_length(const tare_tensor *x, const int64_t *before, const tare_tensor *y,
                           int *ndim) {
    int64_t length = 1;
    *ndim = y->ndim;
    while (*ndim > 0 && before[*ndim - 1] == 0 && x->shape[*ndim - 1] == y->shape[*ndim - 1])
        length *= y->shape[--*ndim];
    return length;
}

void tare__pad_into(const tare_tensor *x, pad_mode mode, const int64_t *before, double constant,
                    tare_tensor *y) {
    int ndim;
    const int64_t length = line_length(x, before, y, &ndim);
    const size_t size = tare_dtype_size(y->dtype) * (size_t)length;
    for (int64_t i = 0; i * length < y->count; i++) {
        int64_t rest = i, from = 0, step = 1;
        bool outside = false;
        for (int d = ndim - 1; d >= 0; d--) {
            const int64_t source =
                tare__pad_source(mode, rest % y->shape[d] - before[d], x->shape[d]);
            rest /= y->shape[d];
            outside = outside || source < 0;
            from += source * step;
            step *= x->shape[d];
        }
        if (!outside)
            memcpy((char *)y->data + (size_t)i * size, (const char *)x->data + (size_t)from * size,
                   size);
        for (int64_t k = 0; outside && k < length; k++)
            tare__tensor_set(y, i * length + k, constant);
    }
}

// --- the operator ---

typedef struct pad_plan {
    const tare_tensor *x;
    int64_t before[TARE_MAX_DIMS], after[TARE_MAX_DIMS];
    pad_mode mode;
} pad_plan;

static tare_status check_amount(op_call *call, const pad_plan *p, int d) {
    const int64_t most = p->before[d] > p->after[d] ? p->before[d] : p->after[d];
    const int64_t size = p->x->shape[d];
    const bool fits = p->mode == PAD_REFLECT    ? most < size
                      : p->mode == PAD_CIRCULAR ? most <= size
                                                : p->mode == PAD_CONSTANT || most <= 0 || size > 0;
    if (fits && p->before[d] + size + p->after[d] >= 0) return TARE_OK;
    return tare__call_fail(call, "padding by %lld and %lld does not fit a dimension of %lld",
                           (long long)p->before[d], (long long)p->after[d], (long long)size);
}

// The amounts come in pairs, the last dimension first.
static tare_status read_pad(op_call *call, pad_plan *p) {
    int64_t amounts[2 * TARE_MAX_DIMS];
    size_t count;
    const char *mode;
    *p = (pad_plan){0};
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
    return TARE_OK;
}

static tare_status pad_shape(op_call *call) {
    pad_plan p;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_pad(call, &p));
    for (int d = 0; d < p.x->ndim; d++) shape[d] = p.before[d] + p.x->shape[d] + p.after[d];
    return tare__call_result(call, p.x->dtype, p.x->ndim, shape, NULL);
}

static tare_status pad_reference(op_call *call) {
    pad_plan p;
    double constant;
    TARE_TRY(read_pad(call, &p));
    TARE_TRY(tare__call_double(call, 3, 0, &constant));
    tare__pad_into(p.x, p.mode, p.before, constant, tare__call_out(call));
    return TARE_OK;
}

#define PAD(name, names, more, parameters)                                                         \
    {                                                                                              \
        .id = name, .functions = names, .overloads = more, .params = parameters,                   \
        .traits = OP_KEEPS_QPARAMS, .shape = pad_shape, .reference = pad_reference                 \
    }

#define PAD_BY(name, mode) "torch.ops.aten." name ".default(input|padding|mode=" mode ") "

static const op_info rows[] = {
    PAD("pad", "torch.nn.functional.pad|torch.ops.aten.pad.default",
        "torch.ops.aten.constant_pad_nd.default(input|pad|value|mode=constant) " //
        PAD_BY("reflection_pad1d", "reflect") PAD_BY("reflection_pad2d", "reflect")
            PAD_BY("reflection_pad3d", "reflect") PAD_BY("replication_pad1d", "replicate")
                PAD_BY("replication_pad2d", "replicate") PAD_BY("replication_pad3d", "replicate"),
        "input/self|pad/padding|mode|value"),
    PAD("zero_pad", NULL, NULL, "input|padding"), // of modules
};

const op_table tare__pad_ops = OP_TABLE(rows);
