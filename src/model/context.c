// SPDX-License-Identifier: Apache-2.0
// Contexts: the built-in classes and a user's. Also the public functions of modules.

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "model/model.h"
#include "model/user_class.h"

static const class_table *const builtin_tables[] = {OPS_CLASS_TABLES, &tare__observer_class_table};

static const tare_context builtin_context = {
    .classes = {.tables = builtin_tables,
                .table_count = sizeof builtin_tables / sizeof *builtin_tables}};

const tare_context *tare__context_or_builtin(const tare_context *context) {
    return context != NULL ? context : &builtin_context;
}

tare_status tare_context_create(tare_context **out, tare_error *err) {
    tare_context *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->classes.tables = builtin_context.classes.tables;
    made->classes.table_count = builtin_context.classes.table_count;
    *out = made;
    return TARE_OK;
}

void tare_context_destroy(tare_context *context) {
    if (context == NULL) return;
    for (size_t i = 0; i < context->classes.user_count; i++)
        tare__user_class_destroy(context->classes.user[i]);
    for (size_t i = 0; i < context->rule_count; i++) tare__free((char *)context->rules[i].name);
    tare__free(context->rules);
    tare__backend_functions_release(&context->functions);
    tare__free(context->classes.user);
    tare__free(context->observers.user);
    tare__free(context);
}

static tare_status add_row(registry *r, module_class *made, const char *what, tare_error *err) {
    if (tare__class_find(r, made->name) != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s class '%s' exists already", what,
                          made->name);
    if (!tare__grow((void **)&r->user, &r->user_capacity, r->user_count, sizeof *r->user))
        return tare__out_of_memory(err);
    r->user[r->user_count++] = made;
    return TARE_OK;
}

tare_status tare_context_add_module_class(tare_context *context,
                                          const tare_module_class *module_class_row,
                                          tare_error *err) {
    module_class *made = NULL;
    TARE_TRY(tare__user_class_create(module_class_row, &made, err));
    const tare_status status = add_row(&context->classes, made, "module", err);
    if (status != TARE_OK) tare__user_class_destroy(made);
    return status;
}

tare_status tare_context_add_observer_class(tare_context *context,
                                            const tare_observer_class *observer_class,
                                            tare_error *err) {
    observer_classes *o = &context->observers;
    const tare_observer_class *class = NULL;
    module_class *row = NULL; // the class in model files
    TARE_TRY(tare__observer_class_copy(observer_class, &class, &row, err));
    tare_status status = TARE_OK;
    if (tare__observer_class_find(o, class->name) != NULL)
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "observer class '%s' exists already",
                            class->name);
    else if (!tare__grow((void **)&o->user, &o->user_capacity, o->user_count, sizeof *o->user))
        status = tare__out_of_memory(err);
    if (status == TARE_OK) status = add_row(&context->classes, row, "observer", err);
    if (status == TARE_OK)
        o->user[o->user_count++] = class;
    else
        tare__free(row);
    return status;
}

tare_status tare_context_add_derive_rule(tare_context *context, const tare_derive_rule *rule,
                                         tare_error *err) {
    tare_derive_rule made = {0};
    tare__struct_copy(&made, sizeof made, rule);
    if (made.name == NULL || made.derive == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a derive rule needs a name and derive");
    bool is_taken = strcmp(made.name, tare_derive_bias_rule()->name) == 0;
    for (size_t i = 0; i < context->rule_count; i++)
        is_taken = is_taken || strcmp(made.name, context->rules[i].name) == 0;
    if (is_taken)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a derive rule '%s' exists already",
                          made.name);
    made.name = tare__strdup(made.name);
    if (made.name == NULL || !tare__grow((void **)&context->rules, &context->rule_capacity,
                                         context->rule_count, sizeof *context->rules)) {
        tare__free((char *)made.name);
        return tare__out_of_memory(err);
    }
    context->rules[context->rule_count++] = made;
    return TARE_OK;
}

tare_status tare_context_add_backend_function(tare_context *context,
                                              const tare_backend_function *function,
                                              tare_error *err) {
    return tare__backend_functions_add(&context->functions, function, err);
}

tare_status tare_backend_config_from_json_with(const tare_context *context, const char *json,
                                               size_t size, tare_backend_config **out,
                                               tare_error *err) {
    return tare__backend_config_parse(context != NULL ? &context->functions : NULL, json, size, out,
                                      err);
}

tare_status tare_backend_config_read_with(const tare_context *context, const char *path,
                                          tare_backend_config **out, tare_error *err) {
    return tare__backend_config_load(context != NULL ? &context->functions : NULL, path, out, err);
}

// tare_module is the public name of module, so that the public header does not need its definition.
static module *unwrap(const tare_module *m) {
    return (module *)m;
}

tare_status tare_module_create(const tare_context *context, const char *class_name,
                               tare_module **out, tare_error *err) {
    const registry *classes = &tare__context_or_builtin(context)->classes;
    const module_class *class = tare__class_find(classes, class_name);
    if (class == NULL)
        return tare__suggest(err,
                             tare__fail(err, TARE_NOT_FOUND, "no module class '%s'", class_name),
                             class_name, tare__class_name_at, classes);
    if (class->role == ROLE_OBSERVER)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "'%s' is an observer: prepare makes those from qconfigs", class_name);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, err));
    *out = (tare_module *)made;
    return TARE_OK;
}

void tare_module_release(tare_module *m) {
    tare__module_release(unwrap(m));
}

const char *tare_module_class_name(const tare_module *m) {
    return unwrap(m)->class->name;
}

bool tare_module_is_training(const tare_module *m) {
    return unwrap(m)->training;
}

void tare_module_set_training(tare_module *m, bool training) {
    unwrap(m)->training = training;
}

const tare_tensor *tare_module_tensor(const tare_module *m, const char *name) {
    return tare__module_tensor(unwrap(m), name);
}

tare_status tare_module_set_tensor(tare_module *m, const char *name, tare_tensor *tensor,
                                   tare_error *err) {
    return tare__module_set_tensor(unwrap(m), name, tensor, true, err);
}

const tare_module *tare_module_child(const tare_module *m, const char *name) {
    return (const tare_module *)tare__module_child(unwrap(m), name);
}

tare_status tare_module_set_child(tare_module *m, const char *name, const tare_module *child,
                                  tare_error *err) {
    return tare__module_set_child(unwrap(m), name, unwrap(child), err);
}

bool tare_module_observer_info(const tare_module *m, tare_observer_info *out) {
    const module *observer = unwrap(m);
    if (observer->class->role != ROLE_OBSERVER) return false;
    *out = *tare__observer_info(observer);
    out->struct_size = sizeof *out;
    return true;
}

int64_t tare_module_config_int(const tare_module *m, const char *key, int64_t otherwise) {
    return tare__module_int(unwrap(m), key, otherwise);
}

double tare_module_config_double(const tare_module *m, const char *key, double otherwise) {
    return tare__module_double(unwrap(m), key, otherwise);
}

tare_status tare_module_set_config_int(tare_module *m, const char *key, int64_t v,
                                       tare_error *err) {
    const value number = tare__int(v);
    return tare__module_set_config(unwrap(m), key, &number, err);
}

tare_status tare_module_set_config_double(tare_module *m, const char *key, double v,
                                          tare_error *err) {
    const value number = tare__float(v);
    return tare__module_set_config(unwrap(m), key, &number, err);
}

tare_status tare_module_copy_config(tare_module *m, const tare_module *from, tare_error *err) {
    return tare__module_copy_config(unwrap(m), unwrap(from), err);
}
