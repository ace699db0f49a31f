// SPDX-License-Identifier: Apache-2.0
// Calls within composed operators, and ownership of their results.
#include "ops/compose.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/op.h"

tare_status tare__compose_fail(composer *c, const char *what) {
    if (c->status == TARE_OK) {
        op_call named = *c->call;
        c->status = tare__call_fail(&named, "%s", what);
    }
    return c->status;
}

// Makes the composer own the references of a result.
static value own(composer *c, value v) {
    if (c->status != TARE_OK) return tare__none();
    if (!tare__grow((void **)&c->owned, &c->capacity, c->count, sizeof *c->owned)) {
        tare__value_release_tensors(&v);
        c->status = tare__out_of_memory(c->call->err);
        return tare__none();
    }
    c->owned[c->count++] = v;
    return v;
}

static const value *keep_arguments(composer *c, const value *args, size_t count) {
    value *kept = tare__arena_array(c->call->memory, count + 1, sizeof *kept);
    if (kept == NULL)
        c->status = tare__out_of_memory(c->call->err);
    else
        memcpy(kept, args, count * sizeof *kept);
    return kept;
}

value tare__compose_op(composer *c, const char *id, const value *args, size_t count) {
    if (c->status != TARE_OK) return tare__none();
    op_call call = *c->call;
    if (c->shaped != NULL) args = keep_arguments(c, args, count);
    if (args == NULL) return tare__none();
    call.module = NULL;
    call.function = NULL;
    call.is_bound = false;
    call.only_first = false;
    call.args = args;
    call.arg_count = count;
    call.kwarg_count = 0;
    call.result = tare__none();
    c->status = c->run_row(&call, id, c->shapes_only);
    if (c->status != TARE_OK) return tare__none();
    if (c->shaped != NULL) c->status = c->shaped(c->user, &call);
    // The copy's lists are in the call's memory, like those of the arguments.
    value kept = tare__none();
    if (c->status == TARE_OK)
        c->status = tare__value_share(call.memory, &call.result, &kept, call.err);
    tare__value_release_tensors(&call.result);
    return own(c, c->status == TARE_OK ? kept : tare__none());
}

static value run_child(composer *c, const module *m, const char *child, value in) {
    const module *called = c->status == TARE_OK && m != NULL ? tare__module_child(m, child) : NULL;
    if (called == NULL || called->class->forward == NULL) return in;
    value out = tare__none();
    c->status = c->run_module(c->call, called, &in, c->shapes_only, &out);
    return own(c, out);
}

value tare__compose_child(composer *c, const module *m, const char *child, value in) {
    const module *called = m != NULL ? tare__module_child(m, child) : NULL;
    const value out = run_child(c, m, child, in);
    return called != NULL ? run_child(c, called, "activation_post_process", out) : out;
}

static value number_of(composer *c, const module *m, const char *name) {
    tare_tensor *t = tare__module_tensor(m, name);
    if (t == NULL) {
        char what[96];
        snprintf(what, sizeof what, "a QFunctional without its tensor '%s'", name);
        (void)tare__compose_fail(c, what);
        return tare__none();
    }
    return (value){.kind = VALUE_TENSOR, .as.tensor = t};
}

value tare__compose_functional(composer *c, const module *m, const char *child, const char *op,
                               value a, value b) {
    const module *f = m != NULL ? tare__module_child(m, child) : NULL;
    char id[64];
    if (f == NULL || !tare__module_has_tensor(f, "scale")) {
        const value sum = COMPOSE(c, op, a, b);
        return f != NULL ? run_child(c, f, "activation_post_process", sum) : sum;
    }
    snprintf(id, sizeof id, "quantized.%s", op);
    return COMPOSE(c, id, a, b, number_of(c, f, "scale"), number_of(c, f, "zero_point"));
}

value tare__compose_zeros(composer *c, const tare_tensor *like, int ndim, const int64_t *shape) {
    if (c->status != TARE_OK || like == NULL) return tare__none();
    tare_error *err = c->call->err;
    const qparams *q = like->q != NULL ? tare__qparams_per_tensor(like->dtype, 1, 0) : NULL;
    tare_tensor *t = NULL;
    if (like->q != NULL && q == NULL)
        c->status = tare__out_of_memory(err);
    else
        c->status =
            tare__tensor_meta(q != NULL ? like->dtype : TARE_FLOAT32, ndim, shape, q, &t, err);
    tare__qparams_release(q);
    if (c->status == TARE_OK && !c->shapes_only) c->status = tare__tensor_allocate(t, err);
    if (c->status == TARE_OK) return own(c, (value){.kind = VALUE_TENSOR, .as.tensor = t});
    tare_tensor_release(t);
    return tare__none();
}

value tare__compose_list(composer *c, size_t count) {
    if (c->status != TARE_OK) return tare__none();
    const value list = tare__value_sequence(c->call->memory, VALUE_LIST, (uint32_t)count);
    if (list.as.items == NULL && count > 0) c->status = tare__out_of_memory(c->call->err);
    return list;
}

const tare_tensor *tare__compose_tensor(composer *c, value v) {
    if (c->status == TARE_OK && v.kind == VALUE_TENSOR) return v.as.tensor;
    (void)tare__compose_fail(c, "expected a tensor");
    return NULL;
}

value tare__compose_item(composer *c, value v, uint32_t i) {
    const bool fits = (v.kind == VALUE_TUPLE || v.kind == VALUE_LIST) && i < v.count;
    if (c->status == TARE_OK && fits) return v.as.items[i];
    (void)tare__compose_fail(c, "expected a tuple with more items");
    return tare__none();
}

value tare__compose_param(const composer *c, size_t i) {
    const op_call *call = c->call;
    return i < call->param_count && call->param[i] != NULL ? *call->param[i] : tare__none();
}

value tare__compose_param_or(const composer *c, size_t i, value otherwise) {
    const value v = tare__compose_param(c, i);
    return v.kind == VALUE_NONE ? otherwise : v;
}

const tare_tensor *tare__compose_need(composer *c, size_t i) {
    const tare_tensor *t = NULL;
    op_call call = *c->call; // a mutable copy; only error messages use it
    if (c->status == TARE_OK) c->status = tare__call_need_tensor(&call, i, &t);
    return c->status == TARE_OK ? t : NULL;
}

int64_t tare__compose_int(composer *c, size_t i, int64_t otherwise) {
    int64_t number = otherwise;
    op_call call = *c->call;
    if (c->status == TARE_OK) c->status = tare__call_int(&call, i, otherwise, &number);
    return number;
}

double tare__compose_double(composer *c, size_t i, double otherwise) {
    double number = otherwise;
    op_call call = *c->call;
    if (c->status == TARE_OK) c->status = tare__call_double(&call, i, otherwise, &number);
    return number;
}

bool tare__compose_bool(composer *c, size_t i, bool otherwise) {
    bool flag = otherwise;
    op_call call = *c->call;
    if (c->status == TARE_OK) c->status = tare__call_bool(&call, i, otherwise, &flag);
    return flag;
}

value tare__compose_ints(composer *c, const int64_t *ints, size_t count) {
    const value list = tare__compose_list(c, count);
    for (size_t i = 0; i < count && c->status == TARE_OK; i++)
        list.as.items[i] = tare__int(ints[i]);
    return list;
}

value tare__compose_with_nones(composer *c, value first, size_t count) {
    value tuple = tare__compose_list(c, count);
    if (c->status != TARE_OK) return tuple;
    tuple.kind = VALUE_TUPLE;
    tuple.as.items[0] = first;
    for (size_t i = 1; i < count; i++) tuple.as.items[i] = tare__none();
    return tuple;
}

value tare__compose_pair(composer *c, value first, value second) {
    const value tuple = tare__compose_with_nones(c, first, 2);
    if (c->status == TARE_OK) tuple.as.items[1] = second;
    return tuple;
}

static bool is_kept(const value *v, const value *kept, size_t kept_count) {
    for (size_t i = 0; i < kept_count; i++)
        if (v->kind == VALUE_TENSOR && kept[i].kind == VALUE_TENSOR &&
            v->as.tensor == kept[i].as.tensor)
            return true;
    return false;
}

void tare__compose_forget(composer *c, size_t mark, const value *kept, size_t kept_count) {
    size_t end = mark;
    for (size_t i = mark; i < c->count; i++) {
        if (is_kept(&c->owned[i], kept, kept_count))
            c->owned[end++] = c->owned[i];
        else
            tare__value_release_tensors(&c->owned[i]);
    }
    c->count = end;
}
