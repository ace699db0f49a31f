// SPDX-License-Identifier: Apache-2.0
// The names of a model's tensors, as torch's state_dict() lists them.
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/classes/classes.h"
#include "ops/quantized/layer.h"
#include "ops/text/print.h"

// Torch's state dict names for classes whose tensors have other names in tare, by role and operator
// family, separated by '|'. A '*' stands for the number of each layer and direction of a recurrent
// network.
#define PACKED_LINEAR    "scale|zero_point|_packed_params.dtype|_packed_params._packed_params"
#define PACKED_EMBEDDING "_packed_params.dtype|_packed_params._packed_weight"
#define PACKED_CONV      "weight|bias|scale|zero_point"
#define PACKED_CELL      "_packed_weight_ih|_packed_weight_hh"
static const struct {
    module_role role;
    const char *op, *names;
} renamed[] = {
#define STATE_NAMES(...) {__VA_ARGS__},
#include "ops/rows/rows.def"
};

static const char *names_of(const module *m) {
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (m->class->role == renamed[i].role && m->class->op != NULL &&
            strcmp(m->class->op, renamed[i].op) == 0)
            return renamed[i].names;
    return NULL;
}

static void print_name(const char *path, const char *name, size_t length, text *out) {
    if (*path != '\0') tare__text_printf(out, "%s.", path);
    tare__text_append_n(out, name, length);
    tare__text_char(out, '\n');
}

static void print_counted(const module *m, const char *path, const char *name, size_t length,
                          text *out) {
    const char *star = memchr(name, '*', length);
    const int64_t layers = tare__module_int(m, "num_layers", 1),
                  directions = tare__module_bool(m, "bidirectional", false) ? 2 : 1;
    for (int64_t i = 0; i < layers * directions && !out->failed; i++) {
        if (*path != '\0') tare__text_printf(out, "%s.", path);
        tare__text_append_n(out, name, (size_t)(star - name));
        tare__text_printf(out, "%lld", (long long)i);
        tare__text_append_n(out, star + 1, length - (size_t)(star + 1 - name));
        tare__text_char(out, '\n');
    }
}

static void print_list(const module *m, const char *path, const char *names, text *out) {
    while (*names != '\0') {
        const size_t length = strcspn(names, "|");
        if (memchr(names, '*', length) != NULL)
            print_counted(m, path, names, length, out);
        else
            print_name(path, names, length, out);
        names += length + (names[length] == '|');
    }
}

static void print_tensors(const module *m, const char *path, bool are_parameters, text *out) {
    for (size_t i = 0; i < m->tensor_count; i++) {
        const named_tensor *t = &m->tensors[i];
        if (t->is_parameter != are_parameters || t->tensor == NULL) continue;
        if (strstr(t->name, OUTPUT_NAME_JOINT) != NULL && m->class->role == ROLE_QUANTIZED)
            continue; // output parameters of one of several calls, which torch does not have
        print_name(path, t->name, strlen(t->name), out);
    }
}

// Two constants in torch's state dict of reference modules with one weight.
static void print_reference(const module *m, const char *path, text *out) {
    if (m->class->role != ROLE_REFERENCE) return;
    if (tare__module_config(m, "weight_qscheme") == NULL) return;
    print_list(m, path, "weight_qscheme|weight_dtype", out);
}

static void print_own(const module *m, const char *path, text *out) {
    const char *names = names_of(m);
    if (names != NULL) {
        print_list(m, path, names, out);
        return;
    }
    print_tensors(m, path, true, out);
    print_tensors(m, path, false, out);
    print_reference(m, path, out);
}

static tare_status print_module_state(void *user, const char *path, module *m, tare_error *err) {
    text names = {0};
    // Packed weights of functions come last: a hook of the root adds them to torch's state dict.
    if (m->class->role == ROLE_PACKED) return TARE_OK;
    print_own(m, path, user);
    if (m->class->name_state == NULL) return TARE_OK;
    const tare_status status = m->class->name_state(m, &names, err);
    if (status == TARE_OK) print_list(m, path, tare__text_chars(&names), user);
    tare__text_release(&names);
    return status;
}

tare_status tare__print_state(const module *root, text *out, tare_error *err) {
    TARE_TRY(tare__module_walk((module *)root, print_module_state, out, err));
    for (size_t i = 0; i < root->child_count; i++)
        if (root->children[i].module->class->role == ROLE_PACKED)
            print_name("", root->children[i].name, strlen(root->children[i].name), out);
    return tare__text_status(out, err);
}
