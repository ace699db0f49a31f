// SPDX-License-Identifier: Apache-2.0
// The images of a spec, and their labels.
// Private to io/data.
#ifndef IO_DATA_PICTURE_LIST_H
#define IO_DATA_PICTURE_LIST_H

#include "io/data/source.h"

typedef struct listed_picture {
    const char *path; // in the source's arena
    int64_t label;
} listed_picture;

typedef struct picture_list {
    listed_picture *items;
    size_t count, capacity;
    size_t position; // the next one to be returned
    bool has_labels;
} picture_list;

/// Fills l from s->spec: an image, a folder or a list. Never empty on success.
tare_status tare__picture_list_find(data_source *s, picture_list *l, tare_error *err);

#endif
