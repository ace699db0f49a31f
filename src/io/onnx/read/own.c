// SPDX-License-Identifier: Apache-2.0
// Reads files that tare wrote. Beside the nodes such a file holds the graph as JSON with what nodes
// cannot express: modules, names, the spelling of functions. The JSON is not trusted: the model is
// built from it and the file's tensors, written again in memory, and must give exactly the nodes
// and constants of the file.
#include "io/onnx/read/own.h"

#include <string.h>

#include "core/json/json.h"
#include "core/memory/alloc.h"
#include "core/tensor/map.h"
#include "io/data/data.h"
#include "io/onnx/read/tensors.h"
#include "io/onnx/write/file.h"
#include "io/onnx/write/wire.h"

typedef struct own_file {
    const onnx_file *file;
    const char *json, *sources; // lent
    onnx_data_files data_files;
    map initializers; // name -> tare_tensor *, references owned
    map tensors;      // tensors of the model: the same
    json_t *parsed;   // sources
    tare_error *err;
} own_file;

static const char *metadata_of(const onnx_file *file, const char *key) {
    const Onnx__ModelProto *m = file->model;
    for (size_t i = 0; i < m->n_metadata_props; i++)
        if (m->metadata_props[i]->key != NULL && strcmp(m->metadata_props[i]->key, key) == 0)
            return m->metadata_props[i]->value;
    return NULL;
}

// --- tensors ---

static tare_status keep(own_file *f, map *tensors, const char *name, tare_tensor *t) {
    if (!tare__map_has(tensors, name) && tare__map_set(tensors, name, t)) return TARE_OK;
    tare_tensor_release(t);
    return tare__map_has(tensors, name)
               ? tare__fail(f->err, TARE_MALFORMED_FILE, "duplicate tensor '%s'", name)
               : tare__out_of_memory(f->err);
}

static tare_status read_initializers(own_file *f) {
    const Onnx__GraphProto *g = f->file->model->graph;
    for (size_t i = 0; i < g->n_initializer; i++) {
        tare_tensor *t = NULL;
        const Onnx__TensorProto *proto = g->initializer[i];
        if (proto->name == NULL)
            return tare__fail(f->err, TARE_MALFORMED_FILE, "an initializer has no name");
        TARE_TRY(tare__onnx_read_tensor(f->file, &f->data_files, proto, &t, f->err));
        TARE_TRY(keep(f, &f->initializers, proto->name, t));
    }
    return TARE_OK;
}

static tare_status named(const own_file *f, const json_at *at, const char *key, tare_tensor **out) {
    const json_at name_at = tare__json_get(at, key);
    const char *name = NULL;
    TARE_TRY(tare__json_string(&name_at, &name, f->err));
    *out = tare__map_get(&f->initializers, name);
    return *out != NULL ? TARE_OK : tare__json_fail(&name_at, f->err, "no initializer '%s'", name);
}

// Makes a tensor with the dtype and shape of an entry.
static tare_status make_like(const own_file *f, const json_at *at, tare_tensor **out) {
    const json_at dtype_at = tare__json_get(at, "dtype"), shape_at = tare__json_get(at, "shape");
    const char *dtype = NULL;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__json_string(&dtype_at, &dtype, f->err));
    TARE_TRY(tare__json_expect(&shape_at, JSON_ARRAY, f->err));
    const size_t ndim = json_array_size(shape_at.value);
    if (ndim > TARE_MAX_DIMS) return tare__json_fail(&shape_at, f->err, "too many dimensions");
    for (size_t d = 0; d < ndim; d++) {
        const json_at size = tare__json_item(&shape_at, d);
        TARE_TRY(tare__json_int(&size, &shape[d], f->err));
    }
    return tare_tensor_create(tare_dtype_from_name(dtype), (int)ndim, shape, out, f->err);
}

// An initializer with another dtype or shape.
static tare_status converted(const own_file *f, const json_at *at, tare_tensor **out) {
    tare_tensor *from = NULL, *made = NULL;
    TARE_TRY(named(f, at, "initializer", &from));
    if (!tare__json_has(at, "dtype")) {
        *out = tare_tensor_retain(from);
        return TARE_OK;
    }
    TARE_TRY(make_like(f, at, &made));
    if (made->count != from->count) {
        tare_tensor_release(made);
        return tare__json_fail(at, f->err, "the sizes do not fit");
    }
    for (int64_t i = 0; i < made->count; i++) tare__tensor_set(made, i, tare__tensor_get(from, i));
    *out = made;
    return TARE_OK;
}

// The quantized value (row, column) of a matrix that is stored transposed.
static unsigned turned_value(const tare_tensor *from, int64_t row, int64_t column, int64_t bits) {
    const int64_t middle = from->dtype == TARE_INT8 ? INT64_C(1) << (bits - 1) : 0;
    return (unsigned)(tare__tensor_get_int(from, column * from->shape[1] + row) + middle) &
           ((1U << bits) - 1);
}

// Group-wise quantized weights; of 4 bits, two in a byte.
static tare_status turned(const own_file *f, const json_at *at, tare_tensor **out) {
    const json_at bits_at = tare__json_get(at, "bits");
    tare_tensor *from = NULL, *made = NULL;
    int64_t bits = 0;
    TARE_TRY(named(f, at, "turned", &from));
    TARE_TRY(tare__json_int(&bits_at, &bits, f->err));
    if (bits != 4 && bits != 8) return tare__json_fail(&bits_at, f->err, "expected 4 or 8");
    TARE_TRY(make_like(f, at, &made));
    const int64_t each = 8 / bits;
    if (made->dtype != TARE_UINT8 || made->ndim != 2 || from->ndim != 2 ||
        tare_dtype_size(from->dtype) != 1 || from->shape[1] != made->shape[0] ||
        made->shape[1] > INT64_MAX / each || from->shape[0] != made->shape[1] * each) {
        tare_tensor_release(made);
        return tare__json_fail(at, f->err, "the sizes do not fit");
    }
    uint8_t *to = made->data;
    for (int64_t i = 0; i < made->count; i++) {
        const int64_t row = i / made->shape[1], column = i % made->shape[1] * each;
        to[i] = (uint8_t)(turned_value(from, row, column, bits) |
                          (each == 2 ? turned_value(from, row, column + 1, bits) << 4 : 0));
    }
    *out = made;
    return TARE_OK;
}

static tare_status listed(const own_file *f, const json_at *at, tare_tensor **out) {
    const json_at values = tare__json_get(at, "values");
    tare_tensor *made = NULL;
    TARE_TRY(tare__json_expect(&values, JSON_ARRAY, f->err));
    TARE_TRY(make_like(f, at, &made));
    tare_status status = TARE_OK;
    if ((int64_t)json_array_size(values.value) != made->count)
        status = tare__json_fail(&values, f->err, "the sizes do not fit");
    for (int64_t i = 0; i < made->count && status == TARE_OK; i++) {
        const json_at item = tare__json_item(&values, (size_t)i);
        double number = 0;
        int64_t integer = 0;
        if (json_is_integer(item.value)) {
            status = tare__json_int(&item, &integer, f->err);
            tare__tensor_set_int(made, i, integer);
        } else {
            status = tare__json_double(&item, &number, f->err);
            tare__tensor_set(made, i, number);
        }
    }
    if (status == TARE_OK)
        *out = made;
    else
        tare_tensor_release(made);
    return status;
}

typedef struct dequantization {
    tare_tensor *quantized, *scale, *zero_point; // the last may be NULL
    int64_t inner; // distance in elements between neighbours along the axis
} dequantization;

static tare_status read_dequantization(const own_file *f, const json_at *at, dequantization *d) {
    const json_at axis_at = tare__json_get(at, "axis");
    int64_t axis = 0;
    *d = (dequantization){.inner = 1};
    TARE_TRY(named(f, at, "codes", &d->quantized));
    TARE_TRY(named(f, at, "scale", &d->scale));
    if (tare__json_has(at, "zero_point")) TARE_TRY(named(f, at, "zero_point", &d->zero_point));
    if (tare__json_has(at, "axis")) TARE_TRY(tare__json_int(&axis_at, &axis, f->err));
    const bool fits = axis >= 0 && (axis < d->quantized->ndim || d->scale->count == 1) &&
                      (d->scale->count == 1 || d->scale->count == d->quantized->shape[axis]) &&
                      (d->zero_point == NULL || d->zero_point->count == d->scale->count);
    if (!fits) return tare__json_fail(at, f->err, "the scales do not fit");
    for (int i = (int)axis + 1; i < d->quantized->ndim; i++) d->inner *= d->quantized->shape[i];
    return TARE_OK;
}

// Dequantizes integers as DequantizeLinear does.
static tare_status dequantized(const own_file *f, const json_at *at, tare_tensor **out) {
    dequantization d;
    tare_tensor *made = NULL;
    TARE_TRY(read_dequantization(f, at, &d));
    TARE_TRY(
        tare_tensor_create(TARE_FLOAT32, d.quantized->ndim, d.quantized->shape, &made, f->err));
    for (int64_t i = 0; i < made->count; i++) {
        const int64_t c = d.scale->count == 1 ? 0 : i / d.inner % d.scale->count;
        const double zero = d.zero_point != NULL ? tare__tensor_get(d.zero_point, c) : 0;
        tare__f32(made)[i] =
            (float)(tare__tensor_get(d.quantized, i) - zero) * (float)tare__tensor_get(d.scale, c);
    }
    *out = made;
    return TARE_OK;
}

static tare_status read_source(own_file *f, const char *name, const json_at *at) {
    static const char *const keys[] = {"initializer", "dtype", "shape",  "values", "codes", "scale",
                                       "zero_point",  "axis",  "turned", "bits",   NULL};
    tare_tensor *t = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, f->err));
    TARE_TRY(tare__json_only_keys(at, keys, f->err));
    if (tare__json_has(at, "codes"))
        TARE_TRY(dequantized(f, at, &t));
    else if (tare__json_has(at, "turned"))
        TARE_TRY(turned(f, at, &t));
    else if (tare__json_has(at, "values"))
        TARE_TRY(listed(f, at, &t));
    else
        TARE_TRY(converted(f, at, &t));
    return keep(f, &f->tensors, name, t);
}

// Reads the tensors of all entries, and the initializers that the model uses unchanged.
static tare_status read_tensors(own_file *f) {
    TARE_TRY(tare__json_parse(f->sources, strlen(f->sources), &f->parsed, f->err));
    const json_at root = tare__json_root(f->parsed), plain_at = tare__json_get(&root, "plain");
    const json_at made_at = tare__json_get(&root, "made");
    const char *name = NULL;
    json_t *item = NULL;
    TARE_TRY(tare__json_expect(&plain_at, JSON_ARRAY, f->err));
    TARE_TRY(tare__json_expect(&made_at, JSON_OBJECT, f->err));
    for (size_t i = 0; i < json_array_size(plain_at.value); i++) {
        const json_at at = tare__json_item(&plain_at, i);
        TARE_TRY(tare__json_string(&at, &name, f->err));
        tare_tensor *t = tare__map_get(&f->initializers, name);
        if (t == NULL) return tare__json_fail(&at, f->err, "no initializer '%s'", name);
        TARE_TRY(keep(f, &f->tensors, name, tare_tensor_retain(t)));
    }
    json_object_foreach((json_t *)made_at.value, name, item) {
        const json_at at = tare__json_get(&made_at, name);
        TARE_TRY(read_source(f, name, &at));
    }
    return TARE_OK;
}

// --- is it what the file holds? ---

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b, tare_error *err,
                         tare_status *status) {
    const size_t size = protobuf_c_message_get_packed_size(a);
    if (protobuf_c_message_get_packed_size(b) != size) return false;
    unsigned char *bytes = tare__alloc(2 * size + 1);
    if (bytes == NULL) {
        *status = tare__out_of_memory(err);
        return false;
    }
    protobuf_c_message_pack(a, bytes);
    protobuf_c_message_pack(b, bytes + size);
    const bool same = memcmp(bytes, bytes + size, size) == 0;
    tare__free(bytes);
    return same;
}

// Compares all fields of the schema. Metadata, which the schema lacks, has no effect.
static bool same_node(const Onnx__NodeProto *a, const Onnx__NodeProto *b, tare_error *err,
                      tare_status *status) {
    Onnx__NodeProto x = *a, y = *b;
    x.base.n_unknown_fields = y.base.n_unknown_fields = 0;
    x.doc_string = y.doc_string = NULL;
    return same_message(&x.base, &y.base, err, status);
}

static bool same_graph(const Onnx__GraphProto *a, const Onnx__GraphProto *b, tare_error *err,
                       tare_status *status) {
    if (a->n_node != b->n_node || a->n_input != b->n_input || a->n_output != b->n_output)
        return false;
    for (size_t i = 0; i < a->n_node; i++)
        if (!same_node(a->node[i], b->node[i], err, status)) return false;
    for (size_t i = 0; i < a->n_input; i++)
        if (!same_message(&a->input[i]->base, &b->input[i]->base, err, status)) return false;
    for (size_t i = 0; i < a->n_output; i++)
        if (!same_message(&a->output[i]->base, &b->output[i]->base, err, status)) return false;
    return true;
}

static bool same_tensor(const tare_tensor *a, const tare_tensor *b) {
    const bool is_alike =
        tare__dtype(a->dtype)->storage == tare__dtype(b->dtype)->storage && tare__same_shape(a, b);
    // int32 tensors are biases: they were computed from floats of 24 bits, so that equality cannot
    // be expected.
    if (!is_alike || tare__dtype(a->dtype)->storage == TARE_INT32 || a->count == 0) return is_alike;
    return memcmp(a->data, b->data, tare__tensor_bytes(a)) == 0;
}

static bool same_initializers(const own_file *f, const onnx_image *made) {
    if (made->tensor_count != f->initializers.count) return false;
    for (size_t i = 0; i < made->tensor_count; i++) {
        const tare_tensor *t = tare__map_get(&f->initializers, made->tensors[i].name);
        if (t == NULL || !same_tensor(t, made->tensors[i].t)) return false;
    }
    return true;
}

static tare_status compare(const own_file *f, const onnx_image *made, bool *same) {
    text bytes = {0};
    onnx_file again;
    tare_status status = tare__onnx_image_outline(made, &bytes, f->err);
    if (status == TARE_OK)
        status = tare__onnx_file_open((const unsigned char *)tare__text_chars(&bytes), bytes.length,
                                      "-", &again, f->err);
    if (status == TARE_OK) {
        *same = f->file->opset == again.opset && same_initializers(f, made) &&
                same_graph(f->file->model->graph, again.model->graph, f->err, &status);
        tare__onnx_file_release(&again);
    }
    tare__text_release(&bytes);
    return status;
}

// --- written again ---

static const Onnx__TypeProto__Tensor *tensor_type(const Onnx__ValueInfoProto *info) {
    return info->type != NULL && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
               ? info->type->tensor_type
               : NULL;
}

// The input shapes that the file was written for.
static tare_status read_input(const Onnx__ValueInfoProto *info, data_input *out, tare_error *err) {
    const Onnx__TypeProto__Tensor *type = tensor_type(info);
    if (type == NULL || type->shape == NULL || type->shape->n_dim > TARE_MAX_DIMS ||
        info->name == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "an input has no shape");
    *out = (data_input){.name = info->name,
                        .ndim = (int)type->shape->n_dim,
                        .dtype = tare__onnx_type_to_dtype(type->elem_type)};
    for (int d = 0; d < out->ndim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[d];
        const bool has_size =
            dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        out->shape[d] = has_size ? dim->dim_value : -1;
    }
    return TARE_OK;
}

static tare_status write_again(own_file *f, module *root, onnx_image *out) {
    const Onnx__GraphProto *g = f->file->model->graph;
    data_input *inputs = tare__alloc_zeroed(g->n_input + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(f->err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < g->n_input && status == TARE_OK; i++)
        status = read_input(g->input[i], &inputs[i], f->err);
    const onnx_write_spec spec = {.root = root,
                                  .inputs = inputs,
                                  .input_count = g->n_input,
                                  .opset = f->file->opset,
                                  .json = f->json,
                                  .tensors = &f->tensors,
                                  .producer_version = ""};
    if (status == TARE_OK) status = tare__onnx_image(&spec, out, f->err);
    tare__free(inputs);
    return status;
}

static tare_status read_checked(own_file *f, const registry *classes, const model_state_io *state,
                                module **root, json_t **extra) {
    module *made = NULL;
    json_t *record = NULL;
    onnx_image again = {.tensor_count = 0};
    bool same = false;
    TARE_TRY(read_initializers(f));
    TARE_TRY(read_tensors(f));
    TARE_TRY(tare__model_from_json_and_tensors(f->json, &f->tensors, classes, state, &made, &record,
                                               f->err));
    tare_status status = write_again(f, made, &again);
    if (status == TARE_OK) status = compare(f, &again, &same);
    tare__onnx_image_release(&again);
    if (status == TARE_OK && same) {
        *root = made;
        *extra = record;
        return TARE_OK;
    }
    tare__module_release(made);
    json_decref(record);
    return status;
}

tare_status tare__onnx_read_own(const onnx_file *file, const registry *classes,
                                const model_state_io *state, module **root, json_t **extra,
                                tare_error *err) {
    own_file f = {.file = file,
                  .json = metadata_of(file, ONNX_MODEL_KEY),
                  .sources = metadata_of(file, ONNX_TENSORS_KEY),
                  .data_files = {.budget = {.limit = file->memory_limit}},
                  .err = err};
    *root = NULL;
    *extra = NULL;
    if (f.json == NULL || f.sources == NULL) return TARE_OK;
    const tare_status status = read_checked(&f, classes, state, root, extra);
    tare__tensor_map_release(&f.tensors);
    tare__tensor_map_release(&f.initializers);
    tare__onnx_data_files_release(&f.data_files);
    json_decref(f.parsed);
    return status == TARE_OUT_OF_MEMORY ? status : TARE_OK;
}
