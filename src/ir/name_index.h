// SPDX-License-Identifier: Apache-2.0
// Finding a name among the named items of a growing array. A graph module may have ten thousand
// children.
// Private to ir.
#ifndef IR_NAME_INDEX_H
#define IR_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Open addressing: index + 1 of an item, 0 is free. Zero-initialized is an empty one.
typedef struct name_index {
    uint32_t *slots;
    size_t slot_count;
} name_index;

/// An array whose items begin with their name (a char *).
typedef struct named_items {
    const void *items;
    size_t size, count; // of an item; of items
} named_items;

enum { NAME_INDEX_NONE = -1 };
/// The index of the item whose name is the first `length` characters of `name`; NAME_INDEX_NONE if
/// there is none. Changes nothing, so that trees may be read by several threads.
ptrdiff_t tare__name_index_find(const name_index *x, const named_items *in, const char *name,
                                size_t length);
/// Room for the item that is about to be appended; false when memory is gone. Then, when it stands
/// in the array, add.
bool tare__name_index_reserve(name_index *x, const named_items *in);
void tare__name_index_add(name_index *x, const named_items *in);
/// After an item was removed.
void tare__name_index_refill(name_index *x, const named_items *in);
void tare__name_index_release(name_index *x);

#endif
