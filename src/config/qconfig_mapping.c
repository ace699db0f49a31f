// SPDX-License-Identifier: Apache-2.0
// QConfig mappings: entries in the order in which they were set, and the lookups of passes.
#include <inttypes.h>
#include <string.h>

#include "config/qconfig.h"
#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "ops/classes/classes.h"
#include "ops/op.h"

// --- creation and destruction ---

tare_qconfig_mapping *tare_qconfig_mapping_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_qconfig_mapping));
}

static void release_rule(qconfig_rule *rule) {
    tare__free(rule->key);
    tare__free(rule->object_type);
    tare__free(rule->words);
    tare__python_regex_destroy(rule->regex);
    tare_qconfig_release(rule->qconfig);
    *rule = (qconfig_rule){0};
}

static void release_rules(qconfig_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) release_rule(&rules->items[i]);
    tare__free(rules->items);
    *rules = (qconfig_rules){0};
}

void tare_qconfig_mapping_destroy(tare_qconfig_mapping *mapping) {
    if (mapping == NULL) return;
    tare_qconfig_release(mapping->global);
    release_rules(&mapping->object_type);
    release_rules(&mapping->module_name_regex);
    release_rules(&mapping->module_name);
    release_rules(&mapping->module_name_object_type_order);
    tare_error_destroy(mapping->first_error);
    tare__free(mapping->default_name);
    tare__free(mapping);
}

// --- setters ---

// The canonical name of a class or function: public, and as torch prints it. Uses buffer if
// necessary.
typedef char type_name[256];
static const char *canonical_type(const char *type, type_name buffer) {
    tare__class_public_name(type, buffer, sizeof(type_name));
    return tare__function_canonical(buffer);
}

// Records a setter's error, unless one is recorded already or memory ran out.
static void remember(tare_qconfig_mapping *m, tare_status status, const tare_error *from) {
    if (status == TARE_OK || m->first_status != TARE_OK) return;
    m->first_status = status;
    m->first_error = tare_error_create();
    tare__error_copy(m->first_error, from);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static qconfig_rule *find_rule(const qconfig_rules *rules, const char *key, const char *object_type,
                               int64_t index) {
    for (size_t i = 0; i < rules->count; i++) {
        qconfig_rule *rule = &rules->items[i];
        if (rule->index == index && same_text(rule->key, key) &&
            same_text(rule->object_type, object_type))
            return rule;
    }
    return NULL;
}

// Writes which operator a rule of the section module_name_object_type_order is about.
static tare_status describe_rule(qconfig_rule *rule, tare_error *err) {
    text words = {0};
    tare__text_printf(&words, "%s %" PRId64 " in %s", rule->object_type, rule->index,
                      rule->key[0] != '\0' ? rule->key : "the model");
    const tare_status status = tare__text_status(&words, err);
    if (status == TARE_OK) rule->words = tare__text_take(&words);
    tare__text_release(&words);
    return status;
}

// Copies the strings of `like`, and compiles its key if it is a regex.
static tare_status copy_rule(const qconfig_rule *like, bool is_regex, qconfig_rule *out,
                             tare_error *err) {
    qconfig_rule made = {.index = like->index};
    made.key = tare__strdup(like->key);
    if (like->object_type != NULL) made.object_type = tare__strdup(like->object_type);
    tare_status status = TARE_OK;
    if (made.key == NULL || (like->object_type != NULL && made.object_type == NULL))
        status = tare__out_of_memory(err);
    if (status == TARE_OK && is_regex)
        status = tare__python_regex_compile(made.key, &made.regex, err);
    if (status == TARE_OK && made.object_type != NULL) status = describe_rule(&made, err);
    if (status != TARE_OK) {
        release_rule(&made);
        return status;
    }
    made.qconfig = tare_qconfig_retain(like->qconfig);
    *out = made;
    return TARE_OK;
}

static tare_status add_rule(qconfig_rules *rules, const qconfig_rule *like, bool is_regex,
                            tare_error *err) {
    if (!tare__grow((void **)&rules->items, &rules->capacity, rules->count, sizeof *rules->items))
        return tare__out_of_memory(err);
    TARE_TRY(copy_rule(like, is_regex, &rules->items[rules->count], err));
    rules->count++;
    return TARE_OK;
}

static void set_rule(tare_qconfig_mapping *m, qconfig_rules *rules, const qconfig_rule *like) {
    qconfig_rule *old = find_rule(rules, like->key, like->object_type, like->index);
    if (old != NULL) {
        tare_qconfig_retain(like->qconfig);
        tare_qconfig_release(old->qconfig);
        old->qconfig = like->qconfig;
        return;
    }
    tare_error *err = tare_error_create();
    remember(m, add_rule(rules, like, rules == &m->module_name_regex, err), err);
    tare_error_destroy(err);
}

static bool refuse_null(tare_qconfig_mapping *m, const char *key) {
    if (m == NULL) return true; // creation failed, which is reported when the mapping is used
    if (key != NULL) return false;
    tare_error *err = tare_error_create();
    remember(m, tare__fail(err, TARE_INVALID_ARGUMENT, "a selector of a mapping is NULL"), err);
    tare_error_destroy(err);
    return true;
}

void tare_qconfig_mapping_set_global(tare_qconfig_mapping *mapping, tare_qconfig *qconfig) {
    if (mapping == NULL) return;
    tare_qconfig_retain(qconfig);
    tare_qconfig_release(mapping->global);
    mapping->global = qconfig;
}

void tare_qconfig_mapping_set_object_type(tare_qconfig_mapping *mapping, const char *object_type,
                                          tare_qconfig *qconfig) {
    type_name buffer;
    if (refuse_null(mapping, object_type)) return;
    char *key = (char *)canonical_type(object_type, buffer); // lent: set_rule copies
    set_rule(mapping, &mapping->object_type, &(qconfig_rule){.key = key, .qconfig = qconfig});
}

void tare_qconfig_mapping_set_module_name_regex(tare_qconfig_mapping *mapping, const char *regex,
                                                tare_qconfig *qconfig) {
    if (refuse_null(mapping, regex)) return;
    char *key = (char *)regex;
    set_rule(mapping, &mapping->module_name_regex, &(qconfig_rule){.key = key, .qconfig = qconfig});
}

void tare_qconfig_mapping_set_module_name(tare_qconfig_mapping *mapping, const char *module_name,
                                          tare_qconfig *qconfig) {
    if (refuse_null(mapping, module_name)) return;
    char *key = (char *)module_name;
    set_rule(mapping, &mapping->module_name, &(qconfig_rule){.key = key, .qconfig = qconfig});
}

void tare_qconfig_mapping_set_module_name_object_type_order(tare_qconfig_mapping *mapping,
                                                            const char *module_name,
                                                            const char *object_type, int64_t index,
                                                            tare_qconfig *qconfig) {
    type_name buffer;
    if (refuse_null(mapping, module_name) || refuse_null(mapping, object_type)) return;
    const qconfig_rule rule = {.key = (char *)module_name,
                               .object_type = (char *)canonical_type(object_type, buffer),
                               .index = index,
                               .qconfig = qconfig};
    set_rule(mapping, &mapping->module_name_object_type_order, &rule);
}

// --- status and copies ---

static tare_status qconfig_status(const tare_qconfig *q, tare_error *err) {
    if (q == NULL) return TARE_OK;
    TARE_TRY(tare__observer_spec_status(q->activation, err));
    return q->weight != NULL ? tare__observer_spec_status(q->weight, err) : TARE_OK;
}

static tare_status rules_status(const qconfig_rules *rules, tare_error *err) {
    for (size_t i = 0; i < rules->count; i++) {
        const tare_status status = qconfig_status(rules->items[i].qconfig, err);
        if (status != TARE_OK) return tare__at(err, status, "QConfig of '%s'", rules->items[i].key);
    }
    return TARE_OK;
}

tare_status tare__qconfig_mapping_status(const tare_qconfig_mapping *m, tare_error *err) {
    if (m->first_status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(err);
    if (m->first_status != TARE_OK) {
        tare__error_copy(err, m->first_error);
        return m->first_status;
    }
    TARE_TRY(qconfig_status(m->global, err));
    TARE_TRY(rules_status(&m->object_type, err));
    TARE_TRY(rules_status(&m->module_name_regex, err));
    TARE_TRY(rules_status(&m->module_name, err));
    return rules_status(&m->module_name_object_type_order, err);
}

static tare_status copy_rules(const qconfig_rules *from, bool is_regex, qconfig_rules *to,
                              tare_error *err) {
    for (size_t i = 0; i < from->count; i++) TARE_TRY(add_rule(to, &from->items[i], is_regex, err));
    return TARE_OK;
}

static tare_status copy_into(const tare_qconfig_mapping *from, tare_qconfig_mapping *to,
                             tare_error *err) {
    to->global = tare_qconfig_retain(from->global);
    TARE_TRY(copy_rules(&from->object_type, false, &to->object_type, err));
    TARE_TRY(copy_rules(&from->module_name_regex, true, &to->module_name_regex, err));
    TARE_TRY(copy_rules(&from->module_name, false, &to->module_name, err));
    TARE_TRY(copy_rules(&from->module_name_object_type_order, false,
                        &to->module_name_object_type_order, err));
    if (from->default_name == NULL) return TARE_OK;
    to->default_name = tare__strdup(from->default_name);
    return to->default_name != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare_qconfig_mapping_clone(const tare_qconfig_mapping *mapping,
                                       tare_qconfig_mapping **out, tare_error *err) {
    if (mapping == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "the mapping is NULL");
    TARE_TRY(tare__qconfig_mapping_status(mapping, err));
    tare_qconfig_mapping *made = tare_qconfig_mapping_create();
    if (made == NULL) return tare__out_of_memory(err);
    const tare_status status = copy_into(mapping, made, err);
    if (status != TARE_OK) {
        tare_qconfig_mapping_destroy(made);
        return status;
    }
    *out = made;
    return TARE_OK;
}

// --- lookups ---

qconfig_choice tare__qconfig_global(const tare_qconfig_mapping *m) {
    return (qconfig_choice){.qconfig = m->global, .section = "global"};
}

static qconfig_choice choice_of(const qconfig_rule *rule, const char *section,
                                qconfig_choice fallback) {
    if (rule == NULL) return fallback;
    return (qconfig_choice){.qconfig = rule->qconfig,
                            .section = section,
                            .key = rule->words != NULL ? rule->words : rule->key};
}

qconfig_choice tare__qconfig_by_type(const tare_qconfig_mapping *m, const char *type,
                                     qconfig_choice fallback) {
    type_name buffer;
    if (type == NULL || m->object_type.count == 0) return fallback;
    const char *key = canonical_type(type, buffer);
    return choice_of(find_rule(&m->object_type, key, NULL, 0), "object_type", fallback);
}

static qconfig_choice by_regex(const tare_qconfig_mapping *m, const char *path,
                               qconfig_choice fallback) {
    for (size_t i = 0; i < m->module_name_regex.count; i++) {
        const qconfig_rule *rule = &m->module_name_regex.items[i];
        if (tare__python_regex_match(rule->regex, path))
            return choice_of(rule, "module_name_regex", fallback);
    }
    return fallback;
}

static const qconfig_rule *find_prefix(const qconfig_rules *rules, const char *path,
                                       size_t length) {
    for (size_t i = 0; i < rules->count; i++) {
        const char *key = rules->items[i].key;
        if (strncmp(key, path, length) == 0 && key[length] == '\0') return &rules->items[i];
    }
    return NULL;
}

qconfig_choice tare__qconfig_by_exact_name(const tare_qconfig_mapping *m, const char *path,
                                           qconfig_choice fallback) {
    return choice_of(find_prefix(&m->module_name, path, strlen(path)), "module_name", fallback);
}

// Looks up the path itself, then its parents from the nearest. The root, "", has no entry of its
// own.
static qconfig_choice by_name(const tare_qconfig_mapping *m, const char *path,
                              qconfig_choice fallback) {
    for (size_t length = strlen(path); length > 0;) {
        const qconfig_rule *rule = find_prefix(&m->module_name, path, length);
        if (rule != NULL) return choice_of(rule, "module_name", fallback);
        while (length > 0 && path[length - 1] != '.') length--;
        if (length > 0) length--;
    }
    return fallback;
}

tare_status tare__qconfig_adjust(const tare_qconfig_mapping *m, const char *type, const char *path,
                                 qconfig_choice fallback, qconfig_choice *out, tare_error *err) {
    TARE_TRY(tare__qconfig_mapping_status(m, err));
    const qconfig_choice typed = tare__qconfig_by_type(m, type, fallback);
    *out = by_name(m, path, by_regex(m, path, typed));
    return TARE_OK;
}

qconfig_choice tare__qconfig_by_order(const tare_qconfig_mapping *m, const char *path,
                                      const char *type, int64_t index, qconfig_choice fallback) {
    type_name buffer;
    if (type == NULL || m->module_name_object_type_order.count == 0) return fallback;
    const qconfig_rule *rule =
        find_rule(&m->module_name_object_type_order, path, canonical_type(type, buffer), index);
    return choice_of(rule, "module_name_object_type_order", fallback);
}
