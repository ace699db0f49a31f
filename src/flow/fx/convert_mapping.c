// SPDX-License-Identifier: Apache-2.0
// Convert with its own qconfig mapping, which can only switch quantization off (spec: torch's
// _compare_prepare_convert_qconfig_mappings).
#include <string.h>

#include "flow/fx/convert.h"
#include "flow/node_qconfigs.h"

static const qconfig_rule *find_key(const qconfig_rules *rules, const char *key) {
    for (size_t i = 0; i < rules->count; i++)
        if (strcmp(rules->items[i].key, key) == 0) return &rules->items[i];
    return NULL;
}

static tare_status refuse_change(const char *section, const qconfig_rule *was,
                                 const qconfig_rule *is, tare_error *err) {
    text before = {0}, after = {0};
    tare__qconfig_text(was->qconfig, &before);
    tare__qconfig_text(is->qconfig, &after);
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT,
                   "Expected convert QConfigMapping to have the same qconfig as prepare for key %s "
                   "%s; prepare: %s; convert: %s",
                   section, was->key, tare__text_chars(&before), tare__text_chars(&after));
    tare__text_release(&before);
    tare__text_release(&after);
    return status;
}

static tare_status compare_rules(const char *section, const qconfig_rules *prepared,
                                 const qconfig_rules *given, tare_error *err) {
    for (size_t i = 0; i < prepared->count; i++) {
        const qconfig_rule *was = &prepared->items[i], *is = find_key(given, was->key);
        if (is == NULL)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "Missing key %s %s in convert QConfigMapping when it was present in "
                              "prepare",
                              section, was->key);
        if (is->qconfig != NULL && !tare_qconfig_equal(was->qconfig, is->qconfig))
            return refuse_change(section, was, is, err);
    }
    return TARE_OK;
}

static tare_status compare(const tare_qconfig_mapping *prepared, const tare_qconfig_mapping *given,
                           tare_error *err) {
    if (!tare_qconfig_equal(prepared->global, given->global))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Expected global qconfigs to be the same in the prepare and convert "
                          "quantization configs");
    TARE_TRY(compare_rules("object_type", &prepared->object_type, &given->object_type, err));
    TARE_TRY(compare_rules("module_name", &prepared->module_name, &given->module_name, err));
    return compare_rules("module_name_regex", &prepared->module_name_regex,
                         &given->module_name_regex, err);
}

static tare_status switch_off(void *user, const node *n, const qconfig_choice *choice) {
    convert_pass *c = user;
    const prepared_node *known = tare__prepared_node(c->prepared, n->name);
    if (known == NULL || known->qconfig == NULL)
        return TARE_OK; // an observer, or already switched off
    if (choice->qconfig == NULL) {
        c->switched_off[known - c->prepared->nodes] = true;
        return TARE_DECIDE(c->base, n, "left float", "convert mapping",
                           "the mapping given at convert asks for no quantization");
    }
    if (tare_qconfig_equal(known->qconfig, choice->qconfig)) return TARE_OK;
    return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                      "Expected node '%s' to have the same qconfig in the prepare and convert "
                      "QConfigMappings",
                      n->name);
}

static tare_status apply(convert_pass *c, tare_qconfig_mapping *mapping) {
    pass *p = c->base;
    if (c->prepared->is_qat) TARE_TRY(tare__mapping_extend_by_qat(p->backend, mapping, p->err));
    TARE_TRY(tare__mapping_extend_by_fusion(p, mapping));
    if (c->prepared->mapping != NULL) TARE_TRY(compare(c->prepared->mapping, mapping, p->err));
    return tare__choose_qconfigs(p, mapping, switch_off, c);
}

tare_status tare__convert_apply_mapping(convert_pass *c) {
    tare_qconfig_mapping *copy = NULL;
    if (c->options->qconfig_mapping == NULL) return TARE_OK;
    c->switched_off =
        tare__arena_array(&c->base->scratch, c->prepared->node_count + 1, sizeof *c->switched_off);
    if (c->switched_off == NULL) return tare__out_of_memory(c->base->err);
    TARE_TRY(tare_qconfig_mapping_clone(c->options->qconfig_mapping, &copy, c->base->err));
    const tare_status status = apply(c, copy);
    tare_qconfig_mapping_destroy(copy);
    return status;
}
