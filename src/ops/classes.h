// SPDX-License-Identifier: Apache-2.0
// Module classes are rows. The built-in ones are constant; more can be registered.
#ifndef OPS_CLASSES_H
#define OPS_CLASSES_H

#include "ir/module.h"

/// Tables of classes, searched in order. Models are read against one; tare__registry_builtin() (quant/)
/// has everything built in.
typedef struct class_table {
    const module_class *rows;
    size_t count;
} class_table;

typedef struct registry {
    const class_table *tables;
    size_t table_count;
    module_class **user; // registered at run time, owned
    size_t user_count, user_capacity;
} registry;

const module_class *tare__class_find(const registry *r, const char *name); // NULL if unknown
/// The class of the triple, e.g. ("conv", 2, ROLE_QUANTIZED, FUSED_RELU); NULL if there is none.
const module_class *tare__class_triple(const registry *r, const char *op, int dims,
                                       module_role role, fused_with fused);
/// "torch.nn.modules.linear.Linear" -> "torch.nn.Linear"; the argument itself if it has no public form.
/// Writes into out[size].
void tare__class_public_name(const char *name, char *out, size_t size);

/// Float, fused, reference and quantized classes of torch.nn and torch.ao.nn (rows in ops/*.c).
extern const class_table tare__class_tables[];
extern const size_t tare__class_table_count;

extern const module_class tare__class_container;    // torch.nn.Module
extern const module_class tare__class_sequential;   // torch.nn.Sequential
extern const module_class tare__class_graph_module; // torch.fx.GraphModule

#endif
