// SPDX-License-Identifier: Apache-2.0
// Options with sizes: "NAME=N,.." and "INPUT=NxNxN,..".
#include "support/models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/report.h"

typedef struct sizes {
    char *dims_text; // a copy that the names point into
    tare_dim_size dims[MOST_NAMES];
    shape_list shapes;
    tare_read_limits limits;
    tare_model_read_options options;
} sizes;

static bool read_size(char **at, int64_t *out) {
    char *end = NULL;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    const bool is_size = errno == 0 && end != *at && *out >= 1;
    *at = end;
    return is_size;
}

// The next "NAME=" of a list; its text ends at '='. NULL if there is none.
static char *next_name(char **at) {
    char *name = *at, *mark = strchr(name, '=');
    if (mark == NULL || mark == name) return NULL;
    *mark = '\0';
    *at = mark + 1;
    return name;
}

static bool has_dim(const sizes *s, const char *name) {
    for (size_t i = 0; i < s->options.dim_count; i++)
        if (strcmp(s->dims[i].name, name) == 0) return true;
    return false;
}

static tare_status read_dims(sizes *s, const char *given) {
    for (char *at = s->dims_text; at != NULL && *at != '\0';) {
        if (s->options.dim_count == MOST_NAMES)
            return fail_here("--dim", "leave some to the model", "more than %d names in '%s'",
                             MOST_NAMES, given);
        tare_dim_size *dim = &s->dims[s->options.dim_count];
        dim->name = next_name(&at);
        if (dim->name == NULL || !read_size(&at, &dim->size) || (*at != '\0' && *at != ','))
            return fail_here("--dim", "as in batch=1,height=224",
                             "expected NAME=SIZE,.., found '%s'", given);
        if (has_dim(s, dim->name))
            return fail_here("--dim", "leave one of them out", "'%s' is given twice", dim->name);
        s->options.dim_count++;
        at += *at == ',';
    }
    return TARE_OK;
}

// Reads a size. The first may be "N", a dynamic batch size (-1), if the list has a batch.
static bool read_shape_size(const shape_list *list, const tare_input_shape *shape, char **at,
                            int64_t *out) {
    if (!list->has_batch || shape->ndim != 0 || **at != 'N') return read_size(at, out);
    *out = -1;
    ++*at;
    return true;
}

static bool has_shape(const shape_list *list, const char *input) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->shapes[i].input, input) == 0) return true;
    return false;
}

tare_status read_shape_list(const char *option_name, const char *given, shape_list *list) {
    if (given == NULL) return TARE_OK;
    if ((list->text = copy_text(given)) == NULL) return TARE_OUT_OF_MEMORY;
    for (char *at = list->text; *at != '\0';) {
        const size_t index = list->count;
        if (index == MOST_NAMES)
            return fail_here(option_name, "leave some to the model", "more than %d inputs in '%s'",
                             MOST_NAMES, given);
        tare_input_shape *shape = &list->shapes[index];
        shape->input = next_name(&at);
        bool is_shape = shape->input != NULL;
        for (bool more = is_shape; more && is_shape; at += more) {
            is_shape = shape->ndim < TARE_MAX_DIMS &&
                       read_shape_size(list, shape, &at, &list->sizes[index][shape->ndim]);
            shape->ndim++;
            more = is_shape && *at == 'x';
        }
        if (!is_shape || (*at != '\0' && *at != ','))
            return fail_here(option_name, "sizes are whole numbers from 1 up",
                             "expected INPUT=1x3x224x224,.., found '%s'", given);
        if (has_shape(list, shape->input))
            return fail_here(option_name, "leave one of them out", "input '%s' is given twice",
                             shape->input);
        shape->shape = list->sizes[index];
        list->count++;
        at += *at == ',';
    }
    return TARE_OK;
}

void shape_list_release(shape_list *list) {
    tare_memory_release(list->text);
}

static tare_status fill(sizes *s, const size_options *given) {
    if (given->dims != NULL && (s->dims_text = copy_text(given->dims)) == NULL)
        return TARE_OUT_OF_MEMORY;
    TRY(read_dims(s, given->dims));
    TRY(read_shape_list("--shape", given->shapes, &s->shapes));
    s->options.struct_size = sizeof s->options;
    s->options.dims = s->dims;
    s->options.shapes = s->shapes.shapes;
    s->options.shape_count = s->shapes.count;
    s->limits.memory_bytes = (uint64_t)given->max_memory;
    s->options.limits = &s->limits;
    return TARE_OK;
}

tare_status read_model(const char *path, const size_options *given, tare_model **out,
                       tare_error *err) {
    sizes s = {.dims_text = NULL};
    tare_status status = fill(&s, given);
    if (status == TARE_OK) status = tare_model_read_with(path, NULL, &s.options, out, err);
    tare_memory_release(s.dims_text);
    shape_list_release(&s.shapes);
    return status;
}

tare_status warn_of_calibration_data(const char *command_name, const tare_model *prepared,
                                     tare_error *err) {
    for (size_t i = 0; i < tare_model_decision_count(prepared); i++) {
        tare_decision d = {.struct_size = sizeof d};
        TRY(tare_model_decision_at(prepared, i, &d, err));
        if (strcmp(d.rule, TARE_CALIBRATION_DATA_RULE) != 0) continue;
        (void)fprintf(stderr, "tare %s: warning: %s%s%s\n", command_name, d.node,
                      d.node[0] != '\0' ? ": " : "", d.reason);
    }
    return TARE_OK;
}
