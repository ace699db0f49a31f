// SPDX-License-Identifier: Apache-2.0
// Outputs of batches, concatenated into one array per output.
#include "support/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/report.h"
#include "tare/memory.h"

tare_status gather_plain(tare_tensor **tensors, size_t count, tare_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (tare_tensor_qparam_count(tensors[i]) == 0) continue;
        tare_tensor *plain = NULL;
        TRY(tare_tensor_to_float(tensors[i], &plain, err));
        tare_tensor_release(tensors[i]);
        tensors[i] = plain;
    }
    return TARE_OK;
}

static bool append(gathered_output *o, tare_tensor *batch) {
    if (o->count == o->capacity) {
        const size_t capacity = o->capacity > 0 ? 2 * o->capacity : 16;
        tare_tensor **batches = tare_memory_reallocate(o->batches, capacity, sizeof(tare_tensor *));
        if (batches == NULL) return false;
        o->batches = batches;
        o->capacity = capacity;
    }
    o->batches[o->count++] = tare_tensor_retain(batch);
    return true;
}

tare_status gather_add(gathered *g, tare_tensor *const *tensors, size_t count, tare_error *err) {
    (void)err;
    g->count = count;
    for (size_t i = 0; i < count; i++)
        if (!append(&g->outputs[i], tensors[i])) return TARE_OUT_OF_MEMORY;
    return TARE_OK;
}

static bool can_follow(const tare_tensor *first, const tare_tensor *next) {
    const int ndim = tare_tensor_ndim(first);
    if (ndim == 0 || tare_tensor_ndim(next) != ndim ||
        tare_tensor_dtype(first) != tare_tensor_dtype(next))
        return false;
    return memcmp(tare_tensor_shape(first) + 1, tare_tensor_shape(next) + 1,
                  (size_t)(ndim - 1) * sizeof(int64_t)) == 0;
}

static size_t byte_count(const tare_tensor *t) {
    return (size_t)tare_tensor_element_count(t) * tare_dtype_size(tare_tensor_dtype(t));
}

static tare_status join(const gathered_output *o, const char *name, tare_tensor **out,
                        tare_error *err) {
    const tare_tensor *first = o->batches[0];
    if (o->count == 1) {
        *out = tare_tensor_retain(o->batches[0]);
        return TARE_OK;
    }
    int64_t shape[TARE_MAX_DIMS] = {0};
    for (size_t i = 0; i < o->count; i++) {
        if (!can_follow(first, o->batches[i]))
            return fail_here(name, "raise --batch, so that one batch holds all samples",
                             "the outputs of batches do not fit together");
        if (i == 0)
            memcpy(shape, tare_tensor_shape(first),
                   (size_t)tare_tensor_ndim(first) * sizeof(int64_t));
        else
            shape[0] += tare_tensor_shape(o->batches[i])[0];
    }
    TRY(tare_tensor_create(tare_tensor_dtype(first), tare_tensor_ndim(first), shape, out, err));
    char *to = tare_tensor_mutable_data(*out);
    for (size_t i = 0; i < o->count; i++) {
        memcpy(to, tare_tensor_data(o->batches[i]), byte_count(o->batches[i]));
        to += byte_count(o->batches[i]);
    }
    return TARE_OK;
}

tare_status gather_join(const gathered *g, const tare_session *session, joined_outputs *out,
                        tare_error *err) {
    for (; out->count < g->count; out->count++) {
        const size_t i = out->count;
        out->names[i] = tare_session_output_name(session, i);
        TRY(join(&g->outputs[i], out->names[i], &out->tensors[i], err));
    }
    return TARE_OK;
}

tare_status gather_join_all(const gathered *g, char (*names)[GATHER_NAME], joined_outputs *out,
                            tare_error *err) {
    for (; out->count < g->count; out->count++) {
        const size_t i = out->count;
        (void)snprintf(names[i], GATHER_NAME, g->count > 1 ? "output.%zu" : "output", i);
        out->names[i] = names[i];
        TRY(join(&g->outputs[i], names[i], &out->tensors[i], err));
    }
    return TARE_OK;
}

void joined_outputs_release(joined_outputs *joined) {
    for (size_t i = 0; i < GATHER_CAPACITY; i++) tare_tensor_release(joined->tensors[i]);
}

void gather_release(gathered *g) {
    for (size_t i = 0; i < GATHER_CAPACITY; i++) {
        for (size_t k = 0; k < g->outputs[i].count; k++)
            tare_tensor_release(g->outputs[i].batches[k]);
        tare_memory_release(g->outputs[i].batches);
    }
}
