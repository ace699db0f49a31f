// SPDX-License-Identifier: Apache-2.0
// The registry of module classes, the containers, and the public names of classes.
#include "ops/classes/classes.h"

#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/classes/class_row.h"
#include "ops/op.h"

// Each container is an object of its own because callers name it; a table would need a copy.
#define CONTAINER(package, class_name)                                                             \
    { .name = package class_name, .print_name = class_name, .role = ROLE_CONTAINER }
const module_class tare__class_container = CONTAINER(NN, "Module");
const module_class tare__class_sequential = {
    .name = NN "Sequential", .print_name = "Sequential", .role = ROLE_CONTAINER, RUN_FUSED};
const module_class tare__class_module_list = CONTAINER(NN, "ModuleList");
const module_class tare__class_graph_module = CONTAINER("torch.fx.", "GraphModule");
static const module_class *const containers[] = {&tare__class_container, &tare__class_sequential,
                                                 &tare__class_module_list,
                                                 &tare__class_graph_module};

static const module_class other_containers[] = {
    CONTAINER(NN, "ModuleDict"),
    CONTAINER(NNQ, "FloatFunctional"),
    CONTAINER(NNQ, "FXFloatFunctional"),
};
const class_table tare__container_classes = {other_containers,
                                             sizeof other_containers / sizeof *other_containers};

const module_class *tare__class_at(const registry *r, size_t index) {
    const size_t container_count = sizeof containers / sizeof *containers;
    if (index < container_count) return containers[index];
    index -= container_count;
    for (size_t i = 0; i < r->table_count; i++) {
        if (index < r->tables[i]->count) return &r->tables[i]->rows[index];
        index -= r->tables[i]->count;
    }
    return index < r->user_count ? r->user[index] : NULL;
}

const char *tare__class_name_at(const void *classes, size_t index) {
    const module_class *class = tare__class_at(classes, index);
    return class ? class->name : NULL;
}

const module_class *tare__class_find(const registry *r, const char *name) {
    const module_class *class = NULL;
    for (size_t i = 0; (class = tare__class_at(r, i)); i++)
        if (strcmp(class->name, name) == 0) return class;
    return NULL;
}

const module_class *tare__class_triple(const registry *r, const char *op, int dims,
                                       module_role role, fused_with fused) {
    const module_class *class = NULL;
    for (size_t i = 0; (class = tare__class_at(r, i)); i++)
        if (class->op && !class->is_variant && class->role == role && class->dims == dims &&
            class->fused == fused && strcmp(class->op, op) == 0)
            return class;
    return NULL;
}

const module_class *tare__class_of_op(const registry *r, const op_info *op, module_role role,
                                      fused_with fused) {
    const module_class *class = NULL;
    for (size_t i = 0; (class = tare__class_at(r, i)); i++)
        if (!class->is_variant && class->role == role && class->fused == fused &&
            tare__class_row(class) == op)
            return class;
    return NULL;
}

// Packages that were moved. torch still accepts the old names.
static const struct {
    const char *old, *now;
} moved[] = {
    {"torch.nn.intrinsic.", "torch.ao.nn.intrinsic."},
    {"torch.nn.qat.", "torch.ao.nn.qat."},
    {"torch.nn.quantized.", "torch.ao.nn.quantized."},
    {"torch.nn.quantizable.", "torch.ao.nn.quantizable."},
    {"torch.quantization.", "torch.ao.quantization."},
};

static bool is_component(const char *at, const char *component) {
    const size_t length = strlen(component);
    return strncmp(at, component, length) == 0 && at[length] == '.';
}

// Length of the components at `at` that a public name omits: "modules.conv.", and the source files
// that define the classes of torch.fx and torch.ao.quantization.
static size_t hidden_length(const char *at) {
    static const char *const files[] = {"graph_module", "observer", "fake_quantize", "stubs"};
    if (is_component(at, "modules")) {
        const char *file = at + strlen("modules.");
        const char *dot = strchr(file, '.');
        return (size_t)((dot ? dot + 1 : file) - at);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (is_component(at, files[i])) return strlen(files[i]) + 1;
    return 0;
}

void tare__class_public_name(const char *name, char *out, size_t size) {
    size_t length = 0;
    if (size == 0) return;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        if (!tare__starts_with(name, moved[i].old)) continue;
        length = (size_t)snprintf(out, size, "%s", moved[i].now);
        name += strlen(moved[i].old);
        break;
    }
    const bool is_torch = length > 0 || tare__starts_with(name, "torch.");
    while (*name && length < size) {
        if (is_torch) name += hidden_length(name);
        const size_t segment = strcspn(name, ".") + (strchr(name, '.') ? 1 : 0);
        length += (size_t)snprintf(out + length, size - length, "%.*s", (int)segment, name);
        name += segment;
    }
}
