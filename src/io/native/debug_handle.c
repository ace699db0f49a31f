// SPDX-License-Identifier: Apache-2.0
// Reads and writes handles of the numeric debugger in `custom`.
#include "io/native/debug_handle.h"

#include <string.h>

#include "core/json/write.h"

static const char key[] = "numeric_debug_handle";

// *out: the object in `custom`, a new reference; NULL if it holds none.
static tare_status parse(const json_t *custom, json_t **out, tare_error *err) {
    json_t *object = NULL;
    *out = NULL;
    if (json_is_object(custom)) *out = json_incref((json_t *)custom);
    if (!json_is_string(custom)) return TARE_OK;
    const char *chars = json_string_value(custom);
    const tare_status status = tare__json_parse(chars, strlen(chars), &object, NULL);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(err);
    // Exporters may store anything here; text that is not JSON has no handle.
    if (status != TARE_OK) return TARE_OK;
    if (json_is_object(object))
        *out = object;
    else
        json_decref(object);
    return TARE_OK;
}

static int64_t handle_of(const json_t *object) {
    const json_int_t handle = json_integer_value(json_object_get(object, key));
    return handle > 0 ? handle : 0;
}

tare_status tare__debug_handle_read(const json_t *custom, int64_t *out, tare_error *err) {
    json_t *object = NULL;
    TARE_TRY(parse(custom, &object, err));
    *out = handle_of(object);
    json_decref(object);
    return TARE_OK;
}

// An existing entry keeps its position.
static tare_status set_handle(json_t *object, int64_t handle, tare_error *err) {
    if (handle > 0)
        return json_object_set_new(object, key, json_integer(handle)) == 0
                   ? TARE_OK
                   : tare__out_of_memory(err);
    json_object_del(object, key);
    return TARE_OK;
}

tare_status tare__debug_handle_write(const json_t *custom, int64_t handle, text *out,
                                     tare_error *err) {
    json_t *object = NULL;
    TARE_TRY(parse(custom, &object, err));
    if (handle_of(object) == handle) {
        json_decref(object);
        if (json_is_string(custom))
            tare__text_append(out, json_string_value(custom));
        else if (custom != NULL)
            tare__json_write(custom, out);
        return TARE_OK;
    }
    json_t *changed = object != NULL ? json_copy(object) : json_object();
    json_decref(object);
    if (changed == NULL) return tare__out_of_memory(err);
    const tare_status status = set_handle(changed, handle, err);
    if (status == TARE_OK && json_object_size(changed) > 0) tare__json_write(changed, out);
    json_decref(changed);
    return status;
}
