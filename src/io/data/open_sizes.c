// SPDX-License-Identifier: Apache-2.0
// Chooses sizes for the open dimensions of inputs.
#include <ctype.h>
#include <string.h>

#include "core/json/json.h"
#include "core/memory/alloc.h"
#include "io/data/data.h"
#include "ir/graph.h"

enum { PICTURE_SIZE = 224, LENGTH = 32, PICTURE_DIMS = 4 };

// The size that the dimension had in the exporter's example, which programs state beside the
// expression: {"tensor": {"sizes": [{"as_expr": {"hint": {"as_int": 12}}}]}}. 0: there is none.
static int64_t example_of(const json_t *meta, int dim) {
    const json_t *sizes = json_object_get(json_object_get(meta, "tensor"), "sizes");
    const json_t *expression = json_object_get(json_array_get(sizes, (size_t)dim), "as_expr");
    const json_t *size = json_object_get(json_object_get(expression, "hint"), "as_int");
    const json_int_t found = json_is_integer(size) ? json_integer_value(size) : 0;
    return found > 0 && found <= INT32_MAX ? found : 0;
}

// The dimension's name: {"val": {"shape": ["batch", "length"]}}. NULL: it has none.
static const char *name_of(const json_t *meta, int dim) {
    const json_t *shape = json_object_get(json_object_get(meta, "val"), "shape");
    return json_string_value(json_array_get(shape, (size_t)dim));
}

// False for an expression of names, such as "past + 1".
static bool is_name(const char *chars) {
    for (; *chars != '\0'; chars++)
        if (!isalnum((unsigned char)*chars) && strchr("_.-:", *chars) == NULL) return false;
    return true;
}

// The size of a dimension of this name among the inputs up to `last`. 0: there is none yet.
static int64_t size_of_name(json_t *const *metas, const data_input *inputs, size_t last,
                            const char *name) {
    for (size_t i = 0; i <= last; i++)
        for (int d = 0; d < inputs[i].ndim; d++) {
            const char *other = name_of(metas[i], d);
            if (other != NULL && inputs[i].usual[d] > 0 && strcmp(other, name) == 0)
                return inputs[i].usual[d];
        }
    return 0;
}

static void choose(json_t *const *metas, data_input *inputs, size_t i) {
    data_input *in = &inputs[i];
    for (int d = 1; d < in->ndim; d++) {
        const char *name = name_of(metas[i], d);
        if (in->shape[d] >= 0) continue;
        in->usual[d] = example_of(metas[i], d);
        if (in->usual[d] == 0 && name != NULL) in->usual[d] = size_of_name(metas, inputs, i, name);
        if (in->usual[d] == 0 && (name == NULL || is_name(name)))
            in->usual[d] = in->ndim >= PICTURE_DIMS && d >= 2 ? PICTURE_SIZE : LENGTH;
    }
}

static tare_status read_meta(const node *n, json_t **out, tare_error *err) {
    *out = NULL;
    if (n->meta_json == NULL) return TARE_OK;
    return tare__json_parse(n->meta_json, strlen(n->meta_json), out, err);
}

tare_status tare__choose_open_sizes(const node *first, data_input *inputs, size_t count,
                                    tare_error *err) {
    json_t **metas = tare__alloc_zeroed(count + 1, sizeof *metas);
    if (metas == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    size_t i = 0;
    for (const node *n = first; n != NULL && i < count && status == TARE_OK; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        status = read_meta(n, &metas[i], err);
        if (status == TARE_OK) choose(metas, inputs, i++);
    }
    for (size_t k = 0; k < count; k++) json_decref(metas[k]);
    tare__free(metas);
    return status;
}
