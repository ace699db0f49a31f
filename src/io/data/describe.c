// SPDX-License-Identifier: Apache-2.0
// Reads the description of an input from its placeholder's meta.
#include <string.h>

#include "core/json/json.h"
#include "io/data/data.h"
#include "ir/call_names.h"

// Exported graphs state shape and dtype of their inputs: {"val": {"shape": [1, null], "dtype":
// ".."}}.
static tare_status read_value_meta(const json_at *val, data_input *out, tare_error *err) {
    if (!json_is_object(val->value)) return TARE_OK; // a list: not a tensor
    const json_at shape = tare__json_get(val, "shape"), dtype = tare__json_get(val, "dtype");
    const char *dtype_name = NULL;
    TARE_TRY(tare__json_expect(&shape, JSON_ARRAY, err));
    TARE_TRY(tare__json_string(&dtype, &dtype_name, err));
    const size_t ndim = json_array_size(shape.value);
    if (ndim > TARE_MAX_DIMS) return tare__json_fail(&shape, err, "too many dimensions");
    for (size_t d = 0; d < ndim; d++) {
        const json_at size = tare__json_item(&shape, d);
        out->shape[d] = -1; // symbolic
        if (json_is_integer(size.value)) TARE_TRY(tare__json_int(&size, &out->shape[d], err));
    }
    out->ndim = (int)ndim;
    out->dtype = tare_dtype_from_name(dtype_name);
    return TARE_OK;
}

tare_status tare__describe_input(const node *placeholder, data_input *out, tare_error *err) {
    *out = (data_input){
        .name = tare__input_name(placeholder), .argument = placeholder->target, .ndim = -1};
    if (placeholder->meta_json == NULL) return TARE_OK;
    json_t *meta = NULL;
    TARE_TRY(tare__json_parse(placeholder->meta_json, strlen(placeholder->meta_json), &meta, err));
    const json_at root = tare__json_root(meta);
    const json_at val = tare__json_get(&root, "val"), example = tare__json_get(&root, "example");
    tare_status status = TARE_OK;
    if (tare__json_has(&root, "val"))
        status = read_value_meta(&val, out, err);
    else if (tare__json_has(&root, "example"))
        status = read_value_meta(&example, out, err);
    out->is_example = !tare__json_has(&root, "val");
    json_decref(meta);
    return status == TARE_OK ? status : tare__at(err, status, "input '%s'", placeholder->name);
}
