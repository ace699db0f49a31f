// SPDX-License-Identifier: Apache-2.0
// Lowering tables: the operators without a weight that torch lowers. Names and groups are torch's;
// other operators stay between dequantize and quantize (group_norm, torch.permute, the method
// flatten, prelu).
#include <string.h>

#include "flow/lower/fx/lower.h"

typedef struct special_row {
    const char *name;
    special_group group;
} special_row;

static const special_row functions[] = {
#define LOWERED(name, group) {name, SPECIAL_##group},
#include "ops/rows/rows.def"
};

static const special_row methods[] = {
#define LOWERED_METHOD(name, group) {name, SPECIAL_##group},
#include "ops/rows/rows.def"
};

static const special_row modules[] = {
#define LOWERED_CLASS(name, group) {name, SPECIAL_##group},
#include "ops/rows/rows.def"
};

static const special_row *find(const special_row *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

#define FIND(rows, name) find(rows, sizeof(rows) / sizeof *(rows), name)

special_group tare__special_function(const char *name) {
    const special_row *row = FIND(functions, name);
    return row != NULL ? row->group : SPECIAL_NONE;
}

special_group tare__special_method(const char *name) {
    const special_row *row = FIND(methods, name);
    return row != NULL ? row->group : SPECIAL_NONE;
}

special_group tare__special_module(const module_class *class) {
    const special_row *row = FIND(modules, class->name);
    return row != NULL ? row->group : SPECIAL_NONE;
}
