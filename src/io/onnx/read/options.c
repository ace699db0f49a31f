// SPDX-License-Identifier: Apache-2.0
// Input sizes from the options, by name.
#include "io/onnx/read/options.h"

#include <inttypes.h>
#include <string.h>

bool tare__onnx_option_dim(const tare_model_read_options *options, const char *name, int64_t *out) {
    for (size_t i = 0; options != NULL && i < options->dim_count; i++)
        if (strcmp(options->dims[i].name, name) == 0) return *out = options->dims[i].size, true;
    return false;
}

bool tare__onnx_option_shape(const tare_model_read_options *options, const char *input, int *ndim,
                             int64_t out[TARE_MAX_DIMS]) {
    for (size_t i = 0; options != NULL && i < options->shape_count; i++) {
        const tare_input_shape *s = &options->shapes[i];
        if (strcmp(s->input, input) != 0) continue;
        *ndim = s->ndim;
        for (int d = 0; d < s->ndim; d++) out[d] = s->shape[d];
        return true;
    }
    return false;
}

// --- what was given for nothing ---

const char *tare__onnx_dim_name(const Onnx__TensorShapeProto__Dimension *d) {
    const bool has_name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                          d->dim_param != NULL && d->dim_param[0] != '\0';
    return has_name ? d->dim_param : NULL;
}

// The name of a dimension; "": none; NULL: past the last dimension.
static const char *dim_name(const Onnx__ValueInfoProto *input, size_t d) {
    const Onnx__TypeProto *type = input->type;
    if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        type->tensor_type->shape == NULL || d >= type->tensor_type->shape->n_dim)
        return NULL;
    const char *name = tare__onnx_dim_name(type->tensor_type->shape->dim[d]);
    return name != NULL ? name : "";
}

// The index-th name of a dimension, for suggestions in errors; NULL past the end.
static const char *dim_at(const void *user, size_t index) {
    const Onnx__GraphProto *g = user;
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name;
        for (size_t d = 0; (name = dim_name(g->input[i], d)) != NULL; d++)
            if (*name != '\0' && index-- == 0) return name;
    }
    return NULL;
}

static const char *input_at(const void *user, size_t index) {
    const Onnx__GraphProto *g = user;
    return index < g->n_input ? g->input[index]->name : NULL;
}

typedef const char *(*name_list)(const void *user, size_t index);

static tare_status check_name(const Onnx__GraphProto *g, const char *what, const char *name,
                              name_list at, tare_error *err) {
    const char *known;
    for (size_t i = 0; (known = at(g, i)) != NULL; i++)
        if (strcmp(known, name) == 0) return TARE_OK;
    return tare__suggest(
        err, tare__fail(err, TARE_NOT_FOUND, "no input of the model has %s '%s'", what, name), name,
        at, g);
}

static tare_status check_size(const char *name, int64_t size, tare_error *err) {
    if (size >= 1 && size <= INT32_MAX) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "'%s' cannot have the size %" PRId64, name, size);
}

tare_status tare__onnx_check_options(const tare_model_read_options *options,
                                     const Onnx__GraphProto *g, tare_error *err) {
    for (size_t i = 0; options != NULL && i < options->dim_count; i++) {
        TARE_TRY(check_name(g, "a dimension", options->dims[i].name, dim_at, err));
        TARE_TRY(check_size(options->dims[i].name, options->dims[i].size, err));
    }
    for (size_t i = 0; options != NULL && i < options->shape_count; i++) {
        const tare_input_shape *s = &options->shapes[i];
        TARE_TRY(check_name(g, "the name", s->input, input_at, err));
        if (s->ndim < 0 || s->ndim > TARE_MAX_DIMS)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "the shape of '%s' has %d dimensions, at most %d fit", s->input,
                              s->ndim, TARE_MAX_DIMS);
        for (int d = 0; d < s->ndim; d++) TARE_TRY(check_size(s->input, s->shape[d], err));
    }
    return TARE_OK;
}
