// SPDX-License-Identifier: Apache-2.0
// RecordingObserver: keeps a copy of every observed tensor.
#include <stdio.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "core/tensor/tensor.h"
#include "observe/classes/builtin.h"

typedef struct recording {
    tare_tensor **tensors; // immutable copies; clones of a state share them
    size_t count, capacity;
} recording;

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    info->dtype = TARE_QUINT8;
    tare_observer_args_dtype(args, "dtype", &info->dtype);
    recording *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *state = made;
    return TARE_OK;
}

static void clear(recording *s) {
    for (size_t i = 0; i < s->count; i++) tare_tensor_release(s->tensors[i]);
    tare__free(s->tensors);
    *s = (recording){0};
}

static void destroy(void *state) {
    if (state != NULL) clear(state);
    tare__free(state);
}

// Adds a reference to the tensor.
static tare_status keep(recording *s, tare_tensor *t, tare_error *err) {
    if (!tare__grow((void **)&s->tensors, &s->capacity, s->count, sizeof *s->tensors))
        return tare__out_of_memory(err);
    s->tensors[s->count++] = tare_tensor_retain(t);
    return TARE_OK;
}

static tare_status update(void *state, const tare_tensor *x, tare_error *err) {
    tare_tensor *copy = NULL;
    TARE_TRY(tare__tensor_copy(x, &copy, err));
    const tare_status status = keep(state, copy, err);
    tare_tensor_release(copy);
    return status;
}

static tare_status clone(const void *state, void **out, tare_error *err) {
    const recording *s = state;
    recording *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < s->count; i++) {
        const tare_status status = keep(made, s->tensors[i], err);
        if (status == TARE_OK) continue;
        destroy(made);
        return status;
    }
    *out = made;
    return TARE_OK;
}

typedef char tensor_name[32];
static void name_tensor(size_t i, tensor_name out) {
    snprintf(out, sizeof(tensor_name), "tensor_val.%zu", i);
}

static tare_status save_state(const void *state, tare_state_save save, void *io, tare_error *err) {
    const recording *s = state;
    for (size_t i = 0; i < s->count; i++) {
        tensor_name name;
        name_tensor(i, name);
        TARE_TRY(save(io, name, s->tensors[i], err));
    }
    return TARE_OK;
}

static tare_status load_state(void *state, tare_state_load load, void *io, tare_error *err) {
    recording read = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK; i++) {
        tensor_name name;
        name_tensor(i, name);
        const tare_tensor *t = load(io, name);
        if (t == NULL) break;
        tare_tensor *copy = NULL;
        status = tare__tensor_copy(t, &copy, err);
        if (status == TARE_OK) status = keep(&read, copy, err);
        tare_tensor_release(copy);
    }
    if (status != TARE_OK) return clear(&read), status;
    clear(state);
    *(recording *)state = read;
    return TARE_OK;
}

static const char *const arguments[] = {"dtype", NULL};
const tare_observer_class tare__recording_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "RecordingObserver",
    .arguments = arguments,
    .create = create,
    .destroy = destroy,
    .clone = clone,
    .update = update,
    .save = save_state,
    .load = load_state,
};
