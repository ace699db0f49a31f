// SPDX-License-Identifier: Apache-2.0
// Models with sizes: "NAME=N,.." and "INPUT=NxNxN,.." as the library's options.
#include "models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { MOST_NAMES = 32 };

typedef struct sizes {
    char *dims_text, *shapes_text; // copies that the names point into
    tare_dim_size dims[MOST_NAMES];
    tare_input_shape shapes[MOST_NAMES];
    int64_t shape_sizes[MOST_NAMES][TARE_MAX_DIMS];
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

// The next "NAME=" of a list; its text ends at '='. NULL where there is none.
static char *next_name(char **at) {
    char *name = *at, *mark = strchr(name, '=');
    if (mark == NULL || mark == name) return NULL;
    *mark = '\0';
    *at = mark + 1;
    return name;
}

static tare_status read_dims(sizes *s, const char *given) {
    for (char *at = s->dims_text; at != NULL && *at != '\0';) {
        if (s->options.dim_count == MOST_NAMES)
            return fail_here("--dim", NULL, "more than %d names in '%s'", MOST_NAMES, given);
        tare_dim_size *dim = &s->dims[s->options.dim_count];
        dim->name = next_name(&at);
        if (dim->name == NULL || !read_size(&at, &dim->size) || (*at != '\0' && *at != ','))
            return fail_here("--dim", NULL, "expected NAME=SIZE,.., found '%s'", given);
        s->options.dim_count++;
        at += *at == ',';
    }
    return TARE_OK;
}

static tare_status read_shapes(sizes *s, const char *given) {
    for (char *at = s->shapes_text; at != NULL && *at != '\0';) {
        const size_t index = s->options.shape_count;
        if (index == MOST_NAMES)
            return fail_here("--shape", NULL, "more than %d inputs in '%s'", MOST_NAMES, given);
        tare_input_shape *shape = &s->shapes[index];
        shape->input = next_name(&at);
        bool is_shape = shape->input != NULL;
        for (bool more = is_shape; more && is_shape; at += more) {
            is_shape = shape->ndim < TARE_MAX_DIMS &&
                       read_size(&at, &s->shape_sizes[index][shape->ndim++]);
            more = is_shape && *at == 'x';
        }
        if (!is_shape || (*at != '\0' && *at != ','))
            return fail_here("--shape", NULL, "expected INPUT=1x3x224x224,.., found '%s'", given);
        shape->shape = s->shape_sizes[index];
        s->options.shape_count++;
        at += *at == ',';
    }
    return TARE_OK;
}

static tare_status fill(sizes *s, const size_options *given) {
    if (given->dims != NULL && (s->dims_text = strdup(given->dims)) == NULL)
        return TARE_OUT_OF_MEMORY;
    if (given->shapes != NULL && (s->shapes_text = strdup(given->shapes)) == NULL)
        return TARE_OUT_OF_MEMORY;
    TRY(read_dims(s, given->dims));
    TRY(read_shapes(s, given->shapes));
    s->options.struct_size = sizeof s->options;
    s->options.dims = s->dims;
    s->options.shapes = s->shapes;
    return TARE_OK;
}

tare_status read_model(const char *path, const size_options *given, tare_model **out,
                       tare_error *err) {
    sizes s = {.dims_text = NULL};
    tare_status status = fill(&s, given);
    if (status == TARE_OK) status = tare_model_read_with(path, NULL, &s.options, out, err);
    free(s.dims_text);
    free(s.shapes_text);
    return status;
}
