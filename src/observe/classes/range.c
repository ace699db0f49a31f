// SPDX-License-Identifier: Apache-2.0
// Observers with one range per tensor, channel or group: state, parameters, printing and
// serialization.
#include "observe/classes/range.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/tensor/text.h"
#include "observe/classes/extremes.h"
#include "observe/classes/weight_range.h"
#include "ops/rules.h"

static bool resize(range_state *s, int64_t count) {
    float *values = NULL;
    if (count > 0) {
        values = tare__alloc_zeroed((size_t)count, 2 * sizeof *values);
        if (values == NULL) return false;
    }
    tare__free(s->min);
    s->min = values;
    s->max = count > 0 ? values + count : NULL;
    s->count = count;
    for (int64_t c = 0; c < count; c++) {
        s->min[c] = INFINITY;
        s->max[c] = -INFINITY;
    }
    return true;
}

static bool is_uninitialized(const range_state *s) {
    if (s->is_per_channel) return s->count == 0;
    return s->min[0] == INFINITY && s->max[0] == -INFINITY;
}

// --- creation ---

// The runs of blanks in the messages are torch's: line continuations inside its string literals.
static tare_status refuse_scheme(const range_kind *kind, tare_qscheme scheme, tare_error *err) {
    if (kind->is_per_group)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "%s takes the schemes tare.per_group_symmetric and "
                          "tare.per_group_affine, found %s",
                          kind->name, tare_qscheme_name(scheme));
    if (kind->is_per_channel)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "%s's qscheme only support                     "
                          "torch.per_channel_symmetric, torch.per_channel_affine and "
                          "torch.per_channel_affine_float_qparams.",
                          kind->name);
    if (kind->is_averaging)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "%s's qscheme only support                 torch.per_tensor_symmetric "
                          "and torch.per_tensor_affine.                 but got: %s",
                          kind->name, tare_qscheme_name(scheme));
    return tare__fail(err, TARE_UNSUPPORTED,
                      "%s's qscheme only support torch.per_tensor_symmetric                     "
                      "and torch.per_tensor_affine.",
                      kind->name);
}

static tare_status check_dynamic(const range_kind *kind, bool is_dynamic, double constant,
                                 tare_error *err) {
    if (!is_dynamic) return TARE_OK;
    if (kind->is_per_channel)
        return tare__fail(err, TARE_UNSUPPORTED, "%s doesn't support dynamic quantization",
                          kind->name);
    if (!kind->is_averaging || constant == 1) return TARE_OK;
    char number[32];
    tare__format_double(constant, number);
    return tare__fail(err, TARE_UNSUPPORTED,
                      "%s doesn't support dynamic quantization for averaging constant of %s",
                      kind->name, number);
}

static tare_qscheme usual_scheme(const range_kind *kind) {
    if (kind->is_per_group) return TARE_PER_GROUP_SYMMETRIC;
    return kind->is_per_channel ? TARE_PER_CHANNEL_AFFINE : TARE_PER_TENSOR_AFFINE;
}

static bool suits(const range_kind *kind, tare_qscheme scheme) {
    if (kind->is_per_group) return tare__qscheme_is_per_group(scheme);
    return kind->is_per_channel ? tare__qscheme_is_per_channel(scheme)
                                : tare__qscheme_is_per_tensor(scheme);
}

static tare_status read_arguments(const range_kind *kind, const tare_observer_args *args,
                                  range_state *s, tare_error *err) {
    const tare_qscheme usual = usual_scheme(kind);
    tare_qscheme scheme = usual;
    bool is_dynamic = false;
    double constant = 0.01;
    tare_observer_args_qscheme(args, "qscheme", &scheme);
    tare_observer_args_bool(args, "is_dynamic", &is_dynamic);
    if (kind->is_averaging) tare_observer_args_double(args, "averaging_constant", &constant);
    if (!(constant >= 0 && constant <= 1))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "averaging_constant must be from 0 to 1, found %g", constant);
    if (kind->is_per_group)
        tare_observer_args_int(args, "group_size", &s->group_size);
    else if (kind->is_per_channel)
        tare_observer_args_int(args, "ch_axis", &s->ch_axis);
    if (!suits(kind, scheme)) return refuse_scheme(kind, scheme, err);
    if (s->ch_axis < -TARE_MAX_DIMS || s->ch_axis >= TARE_MAX_DIMS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "ch_axis %lld is outside every tensor",
                          (long long)s->ch_axis);
    TARE_TRY(check_dynamic(kind, is_dynamic, constant, err));
    TARE_TRY(tare__uniform_read(args, usual, &s->base, err));
    s->kind = kind;
    s->is_per_channel = kind->is_per_channel;
    s->averaging_constant = (float)constant;
    return tare__uniform_refuse_reduced_symmetric(
        &s->base, kind->is_per_channel ? " " : "                                        ", err);
}

tare_status tare__range_create(void *user, const tare_observer_args *args, void **state,
                               tare_observer_info *info, tare_error *err) {
    const range_kind *kind = user;
    range_state read = {0};
    TARE_TRY(read_arguments(kind, args, &read, err));
    range_state *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    *s = read;
    if (!resize(s, kind->is_per_channel ? 0 : 1)) {
        tare__free(s);
        return tare__out_of_memory(err);
    }
    tare__uniform_info(&s->base, info);
    info->channel_axis = (int)s->ch_axis;
    info->group_size = s->group_size;
    *state = s;
    return TARE_OK;
}

void tare__range_destroy(void *state) {
    range_state *s = state;
    if (s != NULL) tare__free(s->min);
    tare__free(s);
}

tare_status tare__range_clone(const void *state, void **out, tare_error *err) {
    const range_state *s = state;
    range_state *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *s;
    made->min = made->max = NULL;
    if (!resize(made, s->count)) {
        tare__free(made);
        return tare__out_of_memory(err);
    }
    if (s->count > 0) memcpy(made->min, s->min, 2 * (size_t)s->count * sizeof *s->min);
    *out = made;
    return TARE_OK;
}

// --- update ---

static float join_least(const range_state *s, float kept, float found) {
    (void)s;
    return tare__least(found, kept);
}
static float join_most(const range_state *s, float kept, float found) {
    (void)s;
    return tare__most(found, kept);
}
const range_join tare__join_extremes = {.min = join_least, .max = join_most};

// Rounds three times, as torch does: the difference, the product, the sum.
static float join_average(const range_state *s, float kept, float found) {
    return kept + s->averaging_constant * (found - kept);
}
const range_join tare__join_averages = {.min = join_average, .max = join_average};

static tare_status find_axis(const range_state *s, const tare_tensor *x, int *out,
                             tare_error *err) {
    const int64_t axis = s->ch_axis < 0 ? s->ch_axis + x->ndim : s->ch_axis;
    if (axis < 0 || axis >= x->ndim)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "ch_axis %lld is outside a tensor of %d dimensions",
                          (long long)s->ch_axis, x->ndim);
    *out = (int)axis;
    return TARE_OK;
}

// Finds the extremes of each group. Groups are contiguous.
static tare_status find_groups(const range_state *s, const tare_tensor *x, range_state *found,
                               tare_error *err) {
    const int64_t row = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    const int64_t size = s->group_size > 0 ? s->group_size : row;
    if (row % size != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "rows of %lld elements do not divide into groups of %lld", (long long)row,
                          (long long)size);
    const int64_t count = x->count / size;
    if (s->count != 0 && s->count != count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the tensors before had %lld groups, this one has %lld",
                          (long long)s->count, (long long)count);
    if (!resize(found, count)) return tare__out_of_memory(err);
    for (int64_t g = 0; g < count; g++)
        tare__extremes(tare__f32(x) + g * size, size, &found->min[g], &found->max[g]);
    return TARE_OK;
}

static tare_status find_extremes(const range_state *s, const tare_tensor *x, const float_scan *scan,
                                 range_state *found, tare_error *err) {
    int axis = 0;
    if (s->kind->is_per_group) return find_groups(s, x, found, err);
    if (s->is_per_channel) TARE_TRY(find_axis(s, x, &axis, err));
    const int64_t count = s->is_per_channel ? x->shape[axis] : 1;
    if (s->is_per_channel && s->count != 0 && s->count != count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the tensors before had %lld channels on axis %lld, this one has %lld",
                          (long long)s->count, (long long)s->ch_axis, (long long)count);
    if (!resize(found, count)) return tare__out_of_memory(err);
    if (s->is_per_channel)
        tare__extremes_per_channel(x, axis, found->min, found->max);
    else
        tare__scan_extremes(scan, tare__f32(x), x->count, found->min, found->max);
    return TARE_OK;
}

// Copies the values of one channel to `out`, contiguously.
static void take_channel(const tare_tensor *x, int axis, int64_t channel, float *out) {
    const int64_t inner = tare__inner_count(x, axis), channels = x->shape[axis];
    for (int64_t outer = 0; outer < x->count / (inner * channels); outer++)
        memcpy(out + outer * inner, tare__f32(x) + (outer * channels + channel) * inner,
               (size_t)inner * sizeof *out);
}

// Replaces the extremes in `found` by the ranges with the least squared error.
static tare_status find_least_errors(const range_state *s, const tare_tensor *x, range_state *found,
                                     tare_error *err) {
    const int64_t size = found->count > 0 ? x->count / found->count : 0;
    int axis = 0;
    if (s->is_per_channel && !s->kind->is_per_group) TARE_TRY(find_axis(s, x, &axis, err));
    float *slice = tare__alloc_zeroed((size_t)size + 1, sizeof *slice);
    if (slice == NULL) return tare__out_of_memory(err);
    for (int64_t c = 0; c < found->count; c++) {
        if (s->is_per_channel && !s->kind->is_per_group)
            take_channel(x, axis, c, slice);
        else if (size > 0)
            memcpy(slice, tare__f32(x) + c * size, (size_t)size * sizeof *slice);
        tare__search_weight_range(&s->base, slice, size, &found->min[c], &found->max[c]);
    }
    tare__free(slice);
    return TARE_OK;
}

// Makes zeros +0: their sign must not depend on the order of the data.
static void drop_signs_of_zeros(range_state *s) {
    for (int64_t i = 0; i < 2 * s->count; i++) s->min[i] += 0.0F;
}

// Joins `found` to the state, or moves its values there if the state is new.
static void join_ranges(range_state *s, range_state *found, const range_join *join) {
    drop_signs_of_zeros(found);
    if (is_uninitialized(s)) {
        tare__free(s->min);
        s->min = found->min;
        s->max = found->max;
        s->count = found->count;
        found->min = NULL;
        return;
    }
    for (int64_t c = 0; c < s->count; c++) {
        s->min[c] = join->min(s, s->min[c], found->min[c]);
        s->max[c] = join->max(s, s->max[c], found->max[c]);
    }
}

tare_status tare__range_update_by(void *state, const tare_tensor *x, const float_scan *scan,
                                  tare_error *err) {
    range_state *s = state;
    tare_tensor *floats = NULL;
    range_state found = {0};
    if (x->count == 0) return TARE_OK;
    TARE_TRY(tare__observed_floats(x, &floats, err));
    tare_status status = find_extremes(s, floats, scan, &found, err);
    if (status == TARE_OK && s->kind->is_least_error)
        status = find_least_errors(s, floats, &found, err);
    if (status == TARE_OK) join_ranges(s, &found, s->kind->join);
    tare__free(found.min);
    tare_tensor_release(floats);
    return status;
}

tare_status tare__range_update(void *state, const tare_tensor *x, tare_error *err) {
    return tare__range_update_by(state, x, &tare__scan_alone, err);
}

static float join_fused(const range_state *s, float kept, float found) {
    return isinf(kept) ? found : join_average(s, kept, found);
}

tare_status tare__range_update_fused(range_state *s, const tare_tensor *x, bool observes,
                                     tare_error *err) {
    range_state found = {0};
    if (x->count == 0) return TARE_OK;
    TARE_TRY(find_extremes(s, x, &tare__scan_alone, &found, err));
    tare_status status = TARE_OK;
    if (s->count == 0 && !resize(s, found.count)) status = tare__out_of_memory(err);
    if (status == TARE_OK && observes) {
        for (int64_t c = 0; c < s->count; c++) {
            s->min[c] = join_fused(s, s->min[c], found.min[c]);
            s->max[c] = join_fused(s, s->max[c], found.max[c]);
        }
    }
    tare__free(found.min);
    return status;
}

// --- parameters, text and files ---

tare_status tare__range_qparams(const void *state, tare_qparams_sink sink, void *sink_user,
                                bool *is_calibrated, tare_error *err) {
    const range_state *s = state;
    *is_calibrated = !is_uninitialized(s);
    if (!*is_calibrated) return tare__default_qparams(sink, sink_user, err);
    return tare__uniform_qparams(&s->base, s->count, s->min, s->max, sink, sink_user, err);
}

static void append_end(text *t, const range_state *s, const float *values) {
    if (s->is_per_channel)
        tare__text_float_tensor(t, values, (size_t)s->count);
    else
        tare__text_double(t, (double)values[0]);
}

tare_status tare__range_describe(const void *state, tare_writer write, void *write_user,
                                 tare_error *err) {
    const range_state *s = state;
    text t = {0};
    tare__text_append(&t, "min_val=");
    append_end(&t, s, s->min);
    tare__text_append(&t, ", max_val=");
    append_end(&t, s, s->max);
    return tare__text_write(&t, TARE_OK, write, write_user, err);
}

tare_status tare__range_save(const void *state, tare_state_save save, void *io, tare_error *err) {
    const range_state *s = state;
    const int ndim = s->is_per_channel ? 1 : 0;
    TARE_TRY(tare__save_eps(&s->base, save, io, err));
    TARE_TRY(tare__save_floats("min_val", ndim, (size_t)s->count, s->min, save, io, err));
    return tare__save_floats("max_val", ndim, (size_t)s->count, s->max, save, io, err);
}

tare_status tare__range_load(void *state, tare_state_load load, void *io, tare_error *err) {
    range_state *s = state;
    const tare_tensor *min = NULL, *max = NULL;
    TARE_TRY(tare__load_floats(load, io, "min_val", &min, err));
    TARE_TRY(tare__load_floats(load, io, "max_val", &max, err));
    if (min->count != max->count || (!s->is_per_channel && min->count != 1))
        return tare__fail(err, TARE_MALFORMED_FILE, "min_val has %lld values and max_val %lld",
                          (long long)min->count, (long long)max->count);
    TARE_TRY(tare__range_check(tare__f32(min), tare__f32(max), min->count, true, err));
    TARE_TRY(tare__load_eps(&s->base, load, io, err));
    if (!resize(s, min->count)) return tare__out_of_memory(err);
    for (int64_t c = 0; c < s->count; c++) {
        s->min[c] = tare__f32(min)[c];
        s->max[c] = tare__f32(max)[c];
    }
    return TARE_OK;
}

tare_status tare__range_merge(void *into, const void *from, tare_error *err) {
    range_state *s = into;
    const range_state *other = from;
    if (is_uninitialized(other)) return TARE_OK;
    if (s->is_per_channel && s->count == 0 && !resize(s, other->count))
        return tare__out_of_memory(err);
    if (s->count != other->count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "one state has %lld %s, the other one %lld",
                          (long long)s->count, s->kind->is_per_group ? "groups" : "channels",
                          (long long)other->count);
    for (int64_t c = 0; c < s->count; c++) {
        s->min[c] = tare__least(other->min[c], s->min[c]);
        s->max[c] = tare__most(other->max[c], s->max[c]);
    }
    return TARE_OK;
}
