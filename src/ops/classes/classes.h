// SPDX-License-Identifier: Apache-2.0
// The registry of module classes. Built-in classes are rows of constant tables; more classes can be
// registered at run time.
#ifndef OPS_CLASSES_CLASSES_H
#define OPS_CLASSES_CLASSES_H

#include "ir/module.h"

struct op_info;

/// A family's rows.
typedef struct class_table {
    const module_class *rows;
    size_t count;
} class_table;

/// Tables of classes, searched in order. The context's registry (model/context.c) is used when a
/// model is read.
typedef struct registry {
    const class_table *const *tables;
    size_t table_count;
    module_class **user; // registered at run time, owned
    size_t user_count, user_capacity;
} registry;

/// Every class, containers first; NULL past the end.
const module_class *tare__class_at(const registry *r, size_t index);
/// Its name, for suggestions: `classes` is a registry.
const char *tare__class_name_at(const void *classes, size_t index);
const module_class *tare__class_find(const registry *r, const char *name); // NULL if unknown
/// The class of the triple, e.g. ("conv", 2, ROLE_QUANTIZED, FUSED_RELU); NULL if there is none.
const module_class *tare__class_triple(const registry *r, const char *op, int dims,
                                       module_role role, fused_with fused);
/// The same for the operator that modules of the class compute.
const module_class *tare__class_of_op(const registry *r, const struct op_info *op, module_role role,
                                      fused_with fused);
/// "torch.nn.modules.linear.Linear" -> "torch.nn.Linear"; the argument itself if it has no public
/// form. Writes into out[size].
void tare__class_public_name(const char *name, char *out, size_t size);

/// Classes of torch.nn and torch.ao.nn, in every role.
extern const class_table tare__container_classes; // classes.c
extern const class_table tare__weighted_classes; // classes/weighted.c: linear, conv, embedding, rnn
extern const class_table tare__plain_classes;    // classes/plain.c: everything else
extern const class_table
    tare__custom_classes; // classes/custom.c: custom modules and their submodules
/// All of these tables, for the initializer of a registry's tables.
#define OPS_CLASS_TABLES                                                                           \
    &tare__container_classes, &tare__weighted_classes, &tare__plain_classes, &tare__custom_classes

extern const module_class tare__class_container;    // torch.nn.Module
extern const module_class tare__class_sequential;   // torch.nn.Sequential
extern const module_class tare__class_module_list;  // torch.nn.ModuleList
extern const module_class tare__class_graph_module; // torch.fx.GraphModule

#endif
