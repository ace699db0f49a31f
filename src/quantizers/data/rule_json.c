// SPDX-License-Identifier: Apache-2.0
// Parses a rule of a quantizer's JSON file.
#include <string.h>

#include "config/qspec.h"
#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "quantizers/data/quantizer.h"
#include "quantizers/patterns/capture.h"
#include "quantizers/patterns/ready_patterns.h"

typedef struct reading {
    data_quantizer *q;
    arena scratch; // memory of examples
    tare_error *err;
} reading;

// --- examples ---

static tare_status read_shape(reading *r, const json_at *at, capture_input *out) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, r->err));
    out->rank = (int)json_array_size(at->value);
    int64_t *shape = tare__arena_array(&r->scratch, (size_t)out->rank + 1, sizeof *shape);
    if (shape == NULL) return tare__out_of_memory(r->err);
    for (int i = 0; i < out->rank; i++) {
        const json_at size = tare__json_item(at, (size_t)i);
        TARE_TRY(tare__json_int(&size, &shape[i], r->err));
    }
    out->shape = shape;
    return TARE_OK;
}

static tare_status read_constant(reading *r, const json_at *at, value *out) {
    const json_t *v = at->value;
    *out = tare__none();
    if (json_is_boolean(v)) *out = tare__bool(json_is_true(v));
    if (json_is_integer(v)) *out = tare__int(json_integer_value(v));
    if (json_is_real(v)) *out = tare__float(json_real_value(v));
    if (json_is_string(v)) {
        const char *chars = tare__arena_strdup(&r->scratch, json_string_value(v));
        if (chars == NULL) return tare__out_of_memory(r->err);
        *out = tare__string(chars);
    }
    if (json_is_object(v)) return tare__json_fail(at, r->err, "expected a constant or a list");
    if (!json_is_array(v)) return TARE_OK;
    *out = tare__value_sequence(&r->scratch, VALUE_LIST, (uint32_t)json_array_size(v));
    if (out->as.items == NULL) return tare__out_of_memory(r->err);
    for (uint32_t i = 0; i < out->count; i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(read_constant(r, &item, &out->as.items[i]));
    }
    return TARE_OK;
}

// Parses a shape, {"shape": .., "dtype": ..}, or {"constant": ..}.
static tare_status read_example_input(reading *r, const json_at *at, capture_input *out) {
    static const char *const keys[] = {"shape", "dtype", "constant", NULL};
    *out = (capture_input){.dtype = TARE_FLOAT32};
    if (json_is_array(at->value)) return read_shape(r, at, out);
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    out->is_constant = tare__json_has(at, "constant");
    if (out->is_constant && json_object_size(at->value) > 1)
        return tare__json_fail(at, r->err, "a constant has no shape or dtype");
    if (out->is_constant) {
        const json_at constant = tare__json_get(at, "constant");
        return read_constant(r, &constant, &out->constant);
    }
    const json_at shape = tare__json_get(at, "shape"), dtype = tare__json_get(at, "dtype");
    if (tare__json_has(at, "dtype")) {
        const char *name = NULL;
        TARE_TRY(tare__json_string(&dtype, &name, r->err));
        out->dtype = tare_dtype_from_name(name);
        if (out->dtype == TARE_DTYPE_UNSET)
            return tare__json_fail(&dtype, r->err, "no dtype '%s'", name);
    }
    return read_shape(r, &shape, out);
}

static tare_status read_examples(reading *r, const json_at *rule, capture_example **out,
                                 size_t *count) {
    const json_at list = tare__json_get(rule, "examples");
    *count = 0;
    if (!tare__json_has(rule, "examples")) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, r->err));
    *count = json_array_size(list.value);
    *out = tare__arena_array(&r->scratch, *count + 1, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < *count; i++) {
        const json_at example = tare__json_item(&list, i);
        TARE_TRY(tare__json_expect(&example, JSON_ARRAY, r->err));
        const size_t width = json_array_size(example.value);
        capture_input *inputs = tare__arena_array(&r->scratch, width + 1, sizeof *inputs);
        if (inputs == NULL) return tare__out_of_memory(r->err);
        for (size_t k = 0; k < width; k++) {
            const json_at at = tare__json_item(&example, k);
            TARE_TRY(read_example_input(r, &at, &inputs[k]));
        }
        (*out)[i] = (capture_example){.inputs = inputs, .count = width};
    }
    return TARE_OK;
}

// --- forms ---

typedef tare_status (*form_reader)(reading *r, const json_at *rule, const json_at *at,
                                   data_rule *out);

// Reads code from a string or from a list of lines.
static tare_status join_lines(reading *r, const json_at *at, text *out) {
    if (json_is_string(at->value)) {
        tare__text_append(out, json_string_value(at->value));
        return tare__text_status(out, r->err);
    }
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(at->value); i++) {
        const json_at line = tare__json_item(at, i);
        const char *chars = NULL;
        TARE_TRY(tare__json_string(&line, &chars, r->err));
        tare__text_append(out, chars);
        tare__text_char(out, '\n');
    }
    return tare__text_status(out, r->err);
}

static tare_status read_code(reading *r, const json_at *rule, const json_at *at, data_rule *out) {
    subgraph_options options = {.ignore_literals = true, .shares_parameters = true};
    capture_example *examples = NULL;
    size_t count = 0;
    bool matches_literals = false;
    text code = {0};
    TARE_TRY(tare__json_flag(rule, "match_literals", &matches_literals, r->err));
    TARE_TRY(read_examples(r, rule, &examples, &count));
    options.ignore_literals = !matches_literals;
    tare_status status = join_lines(r, at, &code);
    if (status == TARE_OK)
        status = tare__json_place(at,
                                  tare__subgraph_forms_add(&out->forms, tare__text_chars(&code),
                                                           code.length, &options, examples, count,
                                                           r->err),
                                  r->err);
    tare__text_release(&code);
    return status;
}

static tare_status read_matcher(reading *r, const json_at *rule, const json_at *at,
                                data_rule *out) {
    static const char *const of_code[] = {"match_literals", "examples"};
    const char *name = NULL;
    out->is_ready_made = true;
    for (size_t i = 0; i < 2; i++)
        if (tare__json_has(rule, of_code[i]))
            return tare__json_fail(rule, r->err, "'%s' has no effect on a ready-made matcher",
                                   of_code[i]);
    TARE_TRY(tare__json_string(at, &name, r->err));
    return tare__json_place(at, tare__ready_pattern_forms(name, &out->forms, r->err), r->err);
}

// Reads one form, or a list of forms.
static tare_status read_forms(reading *r, const json_at *rule, data_rule *out) {
    const bool has_code = tare__json_has(rule, "pattern");
    if (has_code == tare__json_has(rule, "matcher"))
        return tare__json_fail(rule, r->err, "expected either 'pattern' or 'matcher'");
    const json_at at = tare__json_get(rule, has_code ? "pattern" : "matcher");
    const form_reader read = has_code ? read_code : read_matcher;
    if (json_is_string(at.value)) return read(r, rule, &at, out);
    TARE_TRY(tare__json_expect(&at, JSON_ARRAY, r->err));
    if (json_array_size(at.value) == 0) return tare__json_fail(&at, r->err, "no pattern");
    for (size_t i = 0; i < json_array_size(at.value); i++) {
        const json_at item = tare__json_item(&at, i);
        TARE_TRY(read(r, rule, &item, out));
    }
    return TARE_OK;
}

// --- specs ---

// Reads a spec, or a list of specs: the first one whose targets are annotated is used.
static tare_status read_source(reading *r, const json_at *at, spec_source *out) {
    if (!json_is_array(at->value)) return tare__data_spec_parse(r->q, at, true, out, r->err);
    const size_t count = json_array_size(at->value);
    if (count == 0) return tare__json_fail(at, r->err, "no spec");
    for (size_t i = 0; i < count; i++) {
        const json_at item = tare__json_item(at, i);
        if (json_is_array(item.value)) return tare__json_expect(&item, JSON_OBJECT, r->err);
        TARE_TRY(tare__data_spec_parse(r->q, &item, true, out, r->err));
        const bool is_conditional = out->spec != NULL && out->spec->target_count > 0;
        if (i + 1 == count) return TARE_OK;
        if (!is_conditional)
            return tare__json_fail(&item, r->err,
                                   "this spec always applies, so the ones after it are never used");
        out->otherwise = tare__alloc_zeroed(1, sizeof *out->otherwise);
        if (out->otherwise == NULL) return tare__out_of_memory(r->err);
        out = out->otherwise;
    }
    return TARE_OK;
}

static tare_status read_input(reading *r, const json_at *pair, rule_node *n) {
    TARE_TRY(tare__json_expect(pair, JSON_ARRAY, r->err));
    if (json_array_size(pair->value) != 2)
        return tare__json_fail(pair, r->err, "expected a name of the pattern and a spec");
    const json_at name = tare__json_item(pair, 0), spec = tare__json_item(pair, 1);
    if (!tare__grow((void **)&n->inputs, &n->input_capacity, n->input_count, sizeof *n->inputs))
        return tare__out_of_memory(r->err);
    rule_input *input = &n->inputs[n->input_count];
    *input = (rule_input){0};
    TARE_TRY(tare__json_text(&name, &input->input, r->err));
    n->input_count++;
    return read_source(r, &spec, &input->source);
}

static tare_status read_node(reading *r, const json_at *at, rule_node *n) {
    static const char *const keys[] = {"input_qspec_map", "output_qspec", "allow_implicit_sharing",
                                       NULL};
    bool allows = true;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    if (tare__json_has(at, "input_qspec_map")) {
        const json_at inputs = tare__json_get(at, "input_qspec_map");
        TARE_TRY(tare__json_expect(&inputs, JSON_ARRAY, r->err));
        for (size_t i = 0; i < json_array_size(inputs.value); i++) {
            const json_at pair = tare__json_item(&inputs, i);
            TARE_TRY(read_input(r, &pair, n));
        }
    }
    if (tare__json_has(at, "output_qspec")) {
        const json_at output = tare__json_get(at, "output_qspec");
        n->has_output = true;
        TARE_TRY(read_source(r, &output, &n->output));
    }
    TARE_TRY(tare__json_flag(at, "allow_implicit_sharing", &allows, r->err));
    n->refuses_sharing = !allows;
    return TARE_OK;
}

static tare_status read_nodes(reading *r, const json_at *object, data_rule *rule) {
    const json_at list = tare__json_get(object, "annotations");
    const char *key = NULL;
    json_t *ignored = NULL;
    TARE_TRY(tare__json_expect(&list, JSON_OBJECT, r->err));
    json_object_foreach((json_t *)list.value, key, ignored) {
        const json_at at = tare__json_get(&list, key);
        if (!tare__grow((void **)&rule->nodes, &rule->node_capacity, rule->node_count,
                        sizeof *rule->nodes))
            return tare__out_of_memory(r->err);
        rule_node *n = &rule->nodes[rule->node_count];
        *n = (rule_node){.name = tare__strdup(key)};
        if (n->name == NULL) return tare__out_of_memory(r->err);
        rule->node_count++;
        TARE_TRY(read_node(r, &at, n));
    }
    return TARE_OK;
}

// --- marks and origins ---

static tare_status read_marks(reading *r, const json_at *object, data_rule *rule) {
    const char **names = NULL;
    if (!tare__json_has(object, "marks")) return TARE_OK;
    TARE_TRY(tare__data_names_parse(r->q, object, "marks", &names, r->err));
    rule->marks = names;
    return TARE_OK;
}

static tare_status read_origins(reading *r, const json_at *object, data_rule *rule) {
    const json_at list = tare__json_get(object, "sources");
    const char *key = NULL;
    json_t *ignored = NULL;
    if (!tare__json_has(object, "sources")) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_OBJECT, r->err));
    const size_t count = json_object_size(list.value);
    rule_origin *origins = tare__arena_array(&r->q->memory, count + 1, sizeof *origins);
    if (origins == NULL) return tare__out_of_memory(r->err);
    json_object_foreach((json_t *)list.value, key, ignored) {
        const char **sources = NULL;
        rule_origin *origin = &origins[rule->origin_count++];
        TARE_TRY(tare__data_names_parse(r->q, &list, key, &sources, r->err));
        *origin = (rule_origin){.name = tare__arena_strdup(&r->q->memory, key), .sources = sources};
        if (origin->name == NULL) return tare__out_of_memory(r->err);
    }
    rule->origins = origins;
    return TARE_OK;
}

static tare_status check_name(const reading *r, const json_at *at, const data_rule *rule) {
    for (const data_rule *other = r->q->rules; other != rule; other++)
        if (strcmp(other->name, rule->name) == 0)
            return tare__json_fail(at, r->err, "a rule '%s' exists already", rule->name);
    return TARE_OK;
}

static tare_status read_rule(reading *r, const json_at *at, data_rule *rule) {
    static const char *const keys[] = {"name",     "pattern", "matcher",       "match_literals",
                                       "examples", "sources", "training_only", "annotations",
                                       "marks",    NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at name = tare__json_get(at, "name");
    TARE_TRY(tare__json_text(&name, &rule->name, r->err));
    TARE_TRY(check_name(r, &name, rule));
    TARE_TRY(read_forms(r, at, rule));
    TARE_TRY(read_nodes(r, at, rule));
    TARE_TRY(read_marks(r, at, rule));
    TARE_TRY(read_origins(r, at, rule));
    TARE_TRY(tare__json_flag(at, "training_only", &rule->is_for_training, r->err));
    return tare__json_place(at, tare__data_rule_check(rule, r->err), r->err);
}

tare_status tare__data_rule_parse(data_quantizer *q, const json_at *at, data_rule *out,
                                  tare_error *err) {
    reading r = {.q = q, .err = err};
    const tare_status status = read_rule(&r, at, out);
    tare__arena_release(&r.scratch);
    return status;
}
