// SPDX-License-Identifier: Apache-2.0
// Adjacent pixels of an output row that a depthwise kernel computes as one pixel of as many more
// channels, so that few channels fill its registers: their windows lie side by side in the image.
// Rows with padding, with gaps between pixels, or of windows that are more than a pixel apart are
// copied first.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_PIXEL_GROUPS_H
#define RUNTIME_GEMM_PIXEL_GROUPS_H

#include "runtime/gemm/depthwise_weights.h"

typedef struct pixel_groups {
    size_t channels, pixels; // of a group: channels of a pixel, and pixels; 1: there are no groups
    size_t count;            // of a row, the last one of which may have fewer pixels
    size_t columns, step;    // of a window
    size_t phases;           // in which a row is copied: pixels that are stride[W] apart
    size_t phase_bytes, row_bytes; // of a copied row
} pixel_groups;

/// What is fastest for windows of some form (of single pixels).
pixel_groups tare__pixel_groups_of(const conv_windows *w, const depthwise_form *f);
/// The number of addresses that are listed for a row, and the bytes of its copies.
size_t tare__pixel_groups_addresses(const pixel_groups *g, const depthwise_form *f);
size_t tare__pixel_groups_bytes(const pixel_groups *g, const depthwise_form *f);
/// Forgets the copies of other images.
void tare__pixel_groups_begin(const depthwise_form *f, void *memory);

/// Lists the addresses of the columns of each group, of the rows of `list`, in which first and
/// column_count do not count:
///   to[(group * g->columns + column) * list->column_step + row]
/// w->channels: quantized values from a pixel to the next. memory: of a thread, begun; rows that it
/// has copied for windows above are not copied again. `padding`: its quantized value.
void tare__pixel_groups_list(const pixel_groups *g, const conv_windows *w, const column_list *list,
                             uint8_t padding, void *memory, const uint8_t **to);

#endif
