// SPDX-License-Identifier: Apache-2.0
// A quantizer as data: rules of patterns and specs, read from JSON.
#ifndef QUANTIZERS_DATA_QUANTIZER_H
#define QUANTIZERS_DATA_QUANTIZER_H

#include "core/memory/map.h"
#include "quantizers/patterns/subgraph.h"
#include "quantizers/settings.h"

/// The origin of a spec.
typedef enum spec_origin {
    SPEC_NONE,
    SPEC_INPUT, // of the config that is at work
    SPEC_OUTPUT,
    SPEC_WEIGHT,
    SPEC_BIAS,
    SPEC_OWN, // the file's; its targets are names of the pattern
} spec_origin;

typedef struct spec_source {
    spec_origin origin;
    tare_qspec *spec;              // SPEC_OWN
    struct spec_source *otherwise; // if what the spec refers to is not annotated; NULL: none
} spec_source;

typedef struct rule_input {
    char *input; // a name of the pattern
    spec_source source;
} rule_input;

/// A rule's annotation of one node of its pattern; if empty, the node is only marked.
typedef struct rule_node {
    char *name;
    rule_input *inputs;
    size_t input_count, input_capacity;
    bool has_output;
    spec_source output;
    bool refuses_sharing; // allow_implicit_sharing: false
} rule_node;

/// The modules or functions that a node of the pattern must come from.
typedef struct rule_origin {
    const char *name;
    const char *const *sources; // NULL-terminated
} rule_origin;

typedef struct data_rule {
    char *name;
    subgraph_forms forms;
    bool is_ready_made; // the forms have a name, no code
    rule_node *nodes;
    size_t node_count, node_capacity;
    // Names, NULL-terminated, of nodes to be marked in addition to annotated ones. NULL: every call
    // of the match.
    const char *const *marks;
    const rule_origin *origins; // [origin_count]
    size_t origin_count;
    bool is_for_training; // for configs with is_qat only
} data_rule;

typedef struct data_quantizer {
    char *name;
    map specs; // name -> tare_qspec
    tare_quantizer_settings *settings;
    data_rule *rules;
    size_t rule_count, rule_capacity;
    // Operators whose output keeps their input's observer, and those whose inputs share one.
    const char **keeps_observer, **joins_inputs; // NULL-terminated
    const char **lifts_scalars; // operators whose numbers become tensors, so that they are observed
    arena memory;               // of these names
} data_quantizer;

void tare__data_quantizer_destroy(void *self);
tare_status tare__data_transform(void *self, tare_model *model, tare_error *err);
tare_status tare__data_annotate(void *self, tare_model *model, tare_error *err);
/// Refuses rules that cannot work as intended: names that the pattern lacks, edges that do not
/// exist, specs that refer to something that the rule does not annotate, or only to each other.
tare_status tare__data_rule_check(const data_rule *rule, tare_error *err);
/// Makes the quantizer. settings: as tare_quantizer_from_json has them.
tare_status tare__data_quantizer_create(const json_t *json, const tare_quantizer_settings *settings,
                                        tare_quantizer **out, tare_error *err);
/// The data of a quantizer that is one; NULL for others.
const data_quantizer *tare__data_quantizer_of(const tare_quantizer *q);
/// Reads one rule of a file. Errors name the JSON path.
tare_status tare__data_rule_parse(data_quantizer *q, const json_at *at, data_rule *out,
                                  tare_error *err);
/// A name of the file's specs, or with may_be_config of a field of the config, or a spec.
tare_status tare__data_spec_parse(const data_quantizer *q, const json_at *at, bool may_be_config,
                                  spec_source *out, tare_error *err);
/// A list of names, NULL-terminated, in the quantizer's memory; empty where the key is missing.
tare_status tare__data_names_parse(data_quantizer *q, const json_at *object, const char *key,
                                   const char ***out, tare_error *err);
tare_status tare__data_quantizer_parse(const json_t *json, data_quantizer *out, tare_error *err);

#endif
