// SPDX-License-Identifier: Apache-2.0
// A quantizer defined by data: rules with patterns and specs, read from JSON.
#ifndef QUANTIZERS_DATA_QUANTIZER_H
#define QUANTIZERS_DATA_QUANTIZER_H

#include "core/memory/map.h"
#include "quantizers/patterns/subgraph.h"
#include "quantizers/settings.h"

/// Where a spec comes from.
typedef enum spec_origin {
    SPEC_NONE,
    SPEC_INPUT, // of the config in use
    SPEC_OUTPUT,
    SPEC_WEIGHT,
    SPEC_BIAS,
    SPEC_OWN, // the file's; its targets are node names of the pattern
} spec_origin;

typedef struct spec_source {
    spec_origin origin;
    tare_qspec *spec;              // only for SPEC_OWN
    struct spec_source *otherwise; // used if a target of the spec is not annotated; NULL: none
} spec_source;

typedef struct rule_input {
    char *input; // a node name of the pattern
    spec_source source;
} rule_input;

/// A rule's annotation of one node of its pattern; an empty one only marks the node.
typedef struct rule_node {
    char *name;
    rule_input *inputs;
    size_t input_count, input_capacity;
    bool has_output;
    spec_source output;
    bool refuses_sharing; // "allow_implicit_sharing": false
} rule_node;

/// Restricts a node of the pattern to calls that come from certain modules or functions.
typedef struct rule_origin {
    const char *name;
    const char *const *sources; // NULL-terminated
} rule_origin;

typedef struct data_rule {
    char *name;
    subgraph_forms forms;
    bool is_ready_made; // named by "matcher", not given as code
    rule_node *nodes;
    size_t node_count, node_capacity;
    // Node names, NULL-terminated, to be marked in addition to the annotated ones. NULL: all calls
    // of the match.
    const char *const *marks;
    const rule_origin *origins; // [origin_count]
    size_t origin_count;
    bool is_for_training; // only for configs with is_qat
} data_rule;

typedef struct data_quantizer {
    char *name;
    map specs; // name -> tare_qspec
    tare_quantizer_settings *settings;
    data_rule *rules;
    size_t rule_count, rule_capacity;
    // Operators whose output shares their input's observer, and operators whose inputs share one.
    const char **keeps_observer, **joins_inputs; // NULL-terminated
    const char **lifts_scalars; // operators whose scalar arguments become tensors, to be observed
    arena memory;               // memory of these names
} data_quantizer;

void tare__data_quantizer_destroy(void *self);
tare_status tare__data_transform(void *self, tare_model *model, tare_error *err);
tare_status tare__data_annotate(void *self, tare_model *model, tare_error *err);
/// Refuses rules that cannot work: node names that the pattern does not have, edges that do not
/// exist, specs that refer to edges which the rule does not annotate, or only to each other.
tare_status tare__data_rule_check(const data_rule *rule, tare_error *err);
/// Creates the quantizer. settings: as in tare_quantizer_from_json.
tare_status tare__data_quantizer_create(const json_t *json, const tare_quantizer_settings *settings,
                                        tare_quantizer **out, tare_error *err);
/// The data of a quantizer that came from a rule file; NULL for others.
const data_quantizer *tare__data_quantizer_of(const tare_quantizer *q);
/// Parses one rule of a file. Errors name the JSON path.
tare_status tare__data_rule_parse(data_quantizer *q, const json_at *at, data_rule *out,
                                  tare_error *err);
/// Parses a spec, the name of one in "specs", or, if may_be_config, the name of a config's field.
tare_status tare__data_spec_parse(const data_quantizer *q, const json_at *at, bool may_be_config,
                                  spec_source *out, tare_error *err);
/// Parses a list of names, NULL-terminated, in the quantizer's memory; empty if the key is missing.
tare_status tare__data_names_parse(data_quantizer *q, const json_at *object, const char *key,
                                   const char ***out, tare_error *err);
tare_status tare__data_quantizer_parse(const json_t *json, data_quantizer *out, tare_error *err);

#endif
