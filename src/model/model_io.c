// SPDX-License-Identifier: Apache-2.0
// Model files: io writes modules and graph; this file adds the data of quantization.
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "io/model_any.h"
#include "io/pt2/write/write.h"
#include "model/coverage.h"
#include "model/model.h"
#include "model/model_io.h"
#include "model/nested/nested.h"
#include "model/operator_observers.h"
#include "observe/observer.h"

// Keys of a prepared model, and of a module in it that was prepared separately.
#define PREPARED_KEYS                                                                              \
    "prepared", "input_quantized", "output_quantized", "standalone", "qconfig_mapping", "is_qat"

static const char *const stage_names[] = {[TARE_STAGE_FLOAT] = "float",
                                          [TARE_STAGE_FUSED] = "fused",
                                          [TARE_STAGE_PREPARED] = "prepared",
                                          [TARE_STAGE_REFERENCE] = "reference",
                                          [TARE_STAGE_LOWERED] = "lowered"};
static const size_t stage_count = sizeof stage_names / sizeof *stage_names;

static const char *stage_name_at(const void *user, size_t index) {
    (void)user;
    return index < stage_count ? stage_names[index] : NULL;
}

static void indexes_to_json(const char *key, const index_list *list, text *out) {
    if (list->count == 0) return;
    tare__text_printf(out, ",\"%s\":", key);
    tare__index_list_to_json(list, out);
}

// Writes further members of an object: the record, or a standalone module's.
static void prepared_to_json(const prepared_state *s, text *out) {
    tare__text_append(out, ",\"prepared\":[");
    for (size_t i = 0; i < s->node_count; i++) {
        tare__text_append(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        tare__text_json_string(out, s->nodes[i].name);
        tare__text_printf(
            out, ",\"observed\":%s,\"qconfig\":", s->nodes[i].is_observed ? "true" : "false");
        tare__qconfig_to_json(s->nodes[i].qconfig, out);
        if (s->nodes[i].equalization != NULL) {
            tare__text_append(out, ",\"equalization\":");
            tare__qconfig_to_json(s->nodes[i].equalization, out);
        }
        tare__text_char(out, '}');
    }
    tare__text_char(out, ']');
    indexes_to_json("input_quantized", &s->input_quantized, out);
    indexes_to_json("output_quantized", &s->output_quantized, out);
    if (s->is_qat) tare__text_append(out, ",\"is_qat\":true");
    if (s->mapping != NULL) {
        tare__text_append(out, ",\"qconfig_mapping\":");
        tare__qconfig_mapping_to_json(s->mapping, out);
    }
    for (size_t i = 0; i < s->child_count; i++) {
        tare__text_append(out, i > 0 ? ",{\"path\":" : ",\"standalone\":[{\"path\":");
        tare__text_json_string(out, s->children[i].path);
        prepared_to_json(s->children[i].state, out);
        tare__text_append(out, i + 1 < s->child_count ? "}" : "}]");
    }
}

// Writes everything except modules and graph.
static tare_status extra_to_json(const tare_model *model, text *out, tare_error *err) {
    tare__text_printf(out,
                      "{\"stage\":\"%s\",\"engine\":\"%s\",\"float_islands\":%llu,"
                      "\"conversions\":%llu,\"decisions\":",
                      stage_names[model->stage], tare_engine_name(model->engine),
                      (unsigned long long)model->float_island_count,
                      (unsigned long long)model->conversion_count);
    TARE_TRY(tare__record_to_json(&model->decisions, out, err));
    if (!tare__facts_are_empty(&model->facts)) {
        tare__text_append(out, ",\"facts\":");
        tare__facts_to_json(&model->facts, out);
    }
    tare__text_append(out, ",\"operators\":");
    TARE_TRY(tare__coverage_to_json(model, out, err));
    if (model->preprocess != NULL) {
        tare__text_append(out, ",\"preprocess\":");
        tare__preprocess_to_json(&model->preprocess->steps, out);
    }
    if (model->norms_are_folded) tare__text_append(out, ",\"norms_folded\":true");
    if (model->prepared != NULL) prepared_to_json(model->prepared, out);
    TARE_TRY(tare__annotations_to_record(model, out, err));
    tare__text_char(out, '}');
    return tare__text_status(out, err);
}

tare_status tare__model_extra(const tare_model *model, json_t **out, tare_error *err) {
    text extra = {0};
    tare_status status = extra_to_json(model, &extra, err);
    if (status == TARE_OK)
        status = tare__json_parse(tare__text_chars(&extra), extra.length, out, err);
    tare__text_release(&extra);
    return status;
}

// Writes a prepared model as an exported program. Programs contain no modules, so fake quantizers
// are written as operators.
static tare_status write_prepared(const tare_model *model, const char *path, tare_error *err) {
    module *root = NULL;
    TARE_TRY(tare__module_clone(model->root, &root, err));
    tare_status status = tare__operators_from_observers(root, err);
    if (status == TARE_OK) status = tare__pt2_write(path, root, err);
    tare__module_release(root);
    return status;
}

tare_status tare_model_write_pt2(const tare_model *model, const char *path, tare_error *err) {
    if (model->stage == TARE_STAGE_PREPARED) return write_prepared(model, path, err);
    const tare_status status = tare__pt2_write(path, model->root, err);
    if (status != TARE_UNSUPPORTED || model->stage != TARE_STAGE_LOWERED) return status;
    tare__fail(err, TARE_UNSUPPORTED,
               "the model is lowered to integers, whose operators programs do not have");
    return tare__hint(err, TARE_UNSUPPORTED,
                      "quantize --stop reference writes the form that programs hold; export --to "
                      "onnx takes this one");
}

tare_status tare__model_write_packed(const tare_model *model, const char *path,
                                     const model_packings *packings, tare_error *err) {
    json_t *extra = NULL;
    tare_status status = tare__model_extra(model, &extra, err);
    if (status == TARE_OK)
        status = tare__model_file_write_packed(path, model->root, &tare__observer_state_io, extra,
                                               packings, err);
    json_decref(extra);
    return status;
}

tare_status tare_model_write(const tare_model *model, const char *path, tare_error *err) {
    return tare__model_write_packed(model, path, NULL, err);
}

static tare_status read_prepared_node(prepared_state *s, const json_at *at, tare_error *err) {
    static const char *const keys[] = {"name", "observed", "qconfig", "equalization", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at name = tare__json_get(at, "name"), observed = tare__json_get(at, "observed");
    const json_at config = tare__json_get(at, "qconfig");
    const char *text_of_name = NULL;
    bool is_observed = false;
    TARE_TRY(tare__json_string(&name, &text_of_name, err));
    TARE_TRY(tare__json_bool(&observed, &is_observed, err));
    if (tare__prepared_node(s, text_of_name) != NULL)
        return tare__json_fail(&name, err, "'%s' is listed twice", text_of_name);
    tare_qconfig *qconfig = NULL;
    TARE_TRY(tare__qconfig_from_json(&config, &qconfig, err));
    const tare_status status = tare__prepared_state_add(s, text_of_name, qconfig, is_observed, err);
    tare_qconfig_release(qconfig);
    if (status != TARE_OK || !tare__json_has(at, "equalization")) return status;
    const json_at equalization = tare__json_get(at, "equalization");
    return tare__qconfig_from_json(&equalization,
                                   &tare__prepared_node(s, text_of_name)->equalization, err);
}

static tare_status read_prepared(const json_at *object, prepared_state **out, tare_error *err);

static tare_status read_prepared_child(prepared_state *s, const json_at *at, tare_error *err) {
    static const char *const keys[] = {"path", PREPARED_KEYS, NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at path = tare__json_get(at, "path");
    const char *path_text = NULL;
    prepared_state *child = NULL;
    TARE_TRY(tare__json_string(&path, &path_text, err));
    if (tare__prepared_child(s, path_text) != NULL)
        return tare__json_fail(&path, err, "'%s' is listed twice", path_text);
    TARE_TRY(read_prepared(at, &child, err));
    return tare__prepared_state_add_child(s, path_text, child, err);
}

static tare_status read_indexes(const json_at *object, const char *key, index_list *out,
                                tare_error *err) {
    const json_at at = tare__json_get(object, key);
    return tare__json_has(object, key) ? tare__index_list_from_json(&at, out, err) : TARE_OK;
}

static tare_status read_mapping(const json_at *object, prepared_state *s, tare_error *err) {
    const json_at mapping = tare__json_get(object, "qconfig_mapping");
    const json_at is_qat = tare__json_get(object, "is_qat");
    if (tare__json_has(object, "is_qat")) TARE_TRY(tare__json_bool(&is_qat, &s->is_qat, err));
    if (!tare__json_has(object, "qconfig_mapping")) return TARE_OK;
    return tare__qconfig_mapping_from_json(&mapping, &s->mapping, err);
}

static tare_status fill_prepared(const json_at *object, const json_at *nodes, prepared_state *s,
                                 tare_error *err) {
    for (size_t i = 0; i < json_array_size(nodes->value); i++) {
        const json_at item = tare__json_item(nodes, i);
        TARE_TRY(read_prepared_node(s, &item, err));
    }
    TARE_TRY(read_indexes(object, "input_quantized", &s->input_quantized, err));
    TARE_TRY(read_indexes(object, "output_quantized", &s->output_quantized, err));
    TARE_TRY(read_mapping(object, s, err));
    if (!tare__json_has(object, "standalone")) return TARE_OK;
    const json_at standalone = tare__json_get(object, "standalone");
    TARE_TRY(tare__json_expect(&standalone, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(standalone.value); i++) {
        const json_at item = tare__json_item(&standalone, i);
        TARE_TRY(read_prepared_child(s, &item, err));
    }
    return TARE_OK;
}

// Reads the members listed in PREPARED_KEYS.
static tare_status read_prepared(const json_at *object, prepared_state **out, tare_error *err) {
    const json_at nodes = tare__json_get(object, "prepared");
    prepared_state *made = NULL;
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, err));
    TARE_TRY(tare__prepared_state_create(json_array_size(nodes.value), &made, err));
    const tare_status status = fill_prepared(object, &nodes, made, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare__prepared_state_release(made);
    return status;
}

static tare_status read_stage(tare_model *model, const json_at *root, tare_error *err) {
    const json_at at = tare__json_get(root, "stage");
    const char *name = NULL;
    TARE_TRY(tare__json_string(&at, &name, err));
    for (size_t i = 0; i < stage_count; i++)
        if (strcmp(name, stage_names[i]) == 0) {
            model->stage = (tare_model_stage)i;
            return TARE_OK;
        }
    return tare__suggest(err, tare__json_fail(&at, err, "no stage '%s'", name), name, stage_name_at,
                         NULL);
}

static tare_status read_engine(tare_model *model, const json_at *root, tare_error *err) {
    const json_at at = tare__json_get(root, "engine");
    const char *name = NULL;
    TARE_TRY(tare__json_string(&at, &name, err));
    model->engine = tare_engine_from_name(name);
    if (model->engine == TARE_ENGINE_DEFAULT)
        return tare__json_fail(&at, err, "no engine '%s'", name);
    return TARE_OK;
}

static tare_status read_preprocess(tare_model *model, const json_at *root, tare_error *err) {
    const json_at at = tare__json_get(root, "preprocess");
    tare_preprocess declared = {0};
    if (!tare__json_has(root, "preprocess")) return TARE_OK;
    TARE_TRY(tare__preprocess_from_json(&at, &declared.steps, err));
    return tare_model_set_preprocess(model, &declared, err);
}

static tare_status read_count(const json_at *root, const char *key, uint64_t *out,
                              tare_error *err) {
    const json_at at = tare__json_get(root, key);
    int64_t count = 0;
    TARE_TRY(tare__json_int(&at, &count, err));
    if (count < 0)
        return tare__json_fail(&at, err, "expected a number, found %lld", (long long)count);
    *out = (uint64_t)count;
    return TARE_OK;
}

// A model prepared or lowered by torch has no list of operators: it is derived from the graph.
static tare_status read_operators(tare_model *model, const json_at *root, tare_error *err) {
    const json_at at = tare__json_get(root, "operators");
    if (tare__json_has(root, "operators")) return tare__coverage_from_json(model, &at, err);
    TARE_TRY(tare__coverage_begin(model, err));
    return model->stage == TARE_STAGE_LOWERED ? tare__coverage_finish(model, NULL, err) : TARE_OK;
}

static tare_status read_extra(tare_model *model, const json_at *root, tare_error *err) {
    static const char *const keys[] = {"stage",      "engine",    "float_islands", "conversions",
                                       "decisions",  "operators", PREPARED_KEYS,   "norms_folded",
                                       "preprocess", "facts",     "annotations",   "derived",
                                       NULL};
    TARE_TRY(tare__json_expect(root, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(root, keys, err));
    const json_at decisions = tare__json_get(root, "decisions");
    TARE_TRY(read_stage(model, root, err));
    TARE_TRY(read_engine(model, root, err));
    if (tare__json_has(root, "operators"))
        TARE_TRY(read_count(root, "float_islands", &model->float_island_count, err));
    if (tare__json_has(root, "conversions"))
        TARE_TRY(read_count(root, "conversions", &model->conversion_count, err));
    if (tare__json_has(root, "norms_folded")) {
        const json_at folded = tare__json_get(root, "norms_folded");
        TARE_TRY(tare__json_bool(&folded, &model->norms_are_folded, err));
    }
    TARE_TRY(tare__record_from_json(&model->decisions, &decisions, err));
    if (tare__json_has(root, "facts")) {
        const json_at found = tare__json_get(root, "facts");
        TARE_TRY(tare__facts_from_json(&model->facts, &found, err));
    }
    TARE_TRY(read_operators(model, root, err));
    TARE_TRY(read_preprocess(model, root, err));
    if (tare__json_has(root, "prepared")) return read_prepared(root, &model->prepared, err);
    if (model->stage == TARE_STAGE_PREPARED && !tare__json_has(root, "annotations"))
        return tare__json_fail(root, err,
                               "a prepared model needs the key 'prepared' or 'annotations'");
    return tare__annotations_from_record(model, root, err);
}

static tare_status look_for_quantize(void *user, const tare_model *of, const char *prefix,
                                     tare_error *err) {
    bool *found = user;
    (void)prefix, (void)err;
    for (const node *n = of->root->graph->first; n != NULL && !*found; n = n->next)
        *found = tare__coverage_is_conversion(n) || tare__coverage_is_arithmetic(n) ||
                 tare__coverage_is_byte_weight(of, n);
    return TARE_OK;
}

// Recognizes models that another tool quantized: the file has no record, but the graph, or one
// inside it, contains quantize nodes. Such models are not quantized again.
static tare_status recognize_quantized(tare_model *model, tare_error *err) {
    bool found = false;
    if (model->stage != TARE_STAGE_FLOAT || model->root->graph == NULL) return TARE_OK;
    TARE_TRY(look_for_quantize(&found, model, "", err));
    TARE_TRY(tare__nested_visit(model, look_for_quantize, &found, err));
    if (found) model->stage = TARE_STAGE_REFERENCE;
    return TARE_OK;
}

static tare_status read_source(const model_source *from, const tare_context *context,
                               const tare_model_read_options *options, tare_model **out,
                               tare_error *err) {
    const tare_context *known = tare__context_or_builtin(context);
    tare_model_read_options given = {0};
    model_found found;
    tare_model *model = NULL;
    tare_read_limits limits = {0};
    if (options != NULL) tare__struct_copy(&given, sizeof given, options);
    if (given.limits != NULL) tare__struct_copy(&limits, sizeof limits, given.limits);
    given.limits = &limits; // with all fields set
    TARE_TRY(
        tare__model_any_read(from, &known->classes, &tare__observer_state_io, &given, &found, err));
    tare_status status = tare__model_create(
        context, found.root, found.is_quantized ? TARE_STAGE_REFERENCE : TARE_STAGE_FLOAT, NULL,
        &model, err);
    if (status != TARE_OK) tare__module_release(found.root);
    if (status == TARE_OK) {
        model->norms_are_folded = found.norms_are_folded;
        model->digest_count = found.digest_count;
        model->memory_limit = limits.memory_bytes;
    }
    if (status == TARE_OK && found.extra != NULL) {
        const json_at at = tare__json_root(found.extra);
        status = tare__at(err, read_extra(model, &at, err), "%s: record", from->path);
    }
    const bool has_record = found.extra != NULL;
    json_decref(found.extra);
    if (status == TARE_OK) status = recognize_quantized(model, err);
    if (status == TARE_OK && model->stage == TARE_STAGE_FLOAT && !has_record)
        status = tare__at(err, tare__observers_from_operators(model, err), "%s", from->path);
    if (status == TARE_OK)
        *out = model;
    else
        tare_model_destroy(model);
    return status;
}

tare_status tare_model_read_with(const char *path, const tare_context *context,
                                 const tare_model_read_options *options, tare_model **out,
                                 tare_error *err) {
    const model_source file = {.path = path};
    return read_source(&file, context, options, out, err);
}

tare_status tare_model_read_memory(const void *bytes, size_t size, const tare_context *context,
                                   const tare_model_read_options *options, tare_model **out,
                                   tare_error *err) {
    const model_source memory = {.path = "memory", .bytes = bytes, .size = size};
    if (bytes == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a model's bytes, found NULL");
    return read_source(&memory, context, options, out, err);
}

tare_status tare_model_read(const char *path, const tare_context *context, tare_model **out,
                            tare_error *err) {
    return tare_model_read_with(path, context, NULL, out, err);
}
