// SPDX-License-Identifier: Apache-2.0
// A hash index of the named items in a growing array. A graph module may have ten thousand
// children.
// Private to ir.
#ifndef IR_NAME_INDEX_H
#define IR_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A hash table with open addressing: index + 1 of an item, 0: free. Zero-initialized is empty.
typedef struct name_index {
    uint32_t *slots;
    size_t slot_count;
} name_index;

/// An array of items whose first member is their name (a char *).
typedef struct named_items {
    const void *items;
    size_t size, count; // size of an item; number of items
} named_items;

enum { NAME_INDEX_NONE = -1 };
/// The index of the item whose name is the first `length` characters of `name`; NAME_INDEX_NONE if
/// there is none. Does not modify the index, so several threads may read a tree.
ptrdiff_t tare__name_index_find(const name_index *x, const named_items *in, const char *name,
                                size_t length);
/// Makes room for one more item; false if out of memory. Call `add` after appending the item to the
/// array.
bool tare__name_index_reserve(name_index *x, const named_items *in);
void tare__name_index_add(name_index *x, const named_items *in);
/// Rebuilds the index after an item was removed.
void tare__name_index_refill(name_index *x, const named_items *in);
void tare__name_index_release(name_index *x);

#endif
