// SPDX-License-Identifier: Apache-2.0
// Prepare in FX mode: backend patterns, dtypes of edges, observers.
// Private to flow/fx.
#ifndef FLOW_FX_PREPARE_H
#define FLOW_FX_PREPARE_H

#include "flow/match.h"
#include "model/pass.h"

/// Specs for a node's tensors; NULL if the value is no tensor (torch's None).
typedef struct target_info {
    const tare_observer_spec *input, *output, *weight, *bias;
    int64_t weight_index, bias_index; // positions; -1: none
    bool reuses_input; // the output keeps the input's observer (qconfig of ReuseInputObserver)
    bool shares;       // the pattern's observation type is OUTPUT_SHARE_OBSERVER_WITH_INPUT
} target_info;

/// A match of a backend pattern, seen from its last node.
typedef struct prepare_match {
    const tare_pattern_config *config; // NULL: a module of the custom config
    node *last;
    const node *root;
    tare_match structure; // starts with the last node
    match_nodes nodes;    // the nodes of the structure, without those matched by wildcards
    bool shares;
    const char *refusal; // why the match stays float; NULL: it does not, or no qconfig applies
    const standalone_entry *standalone; // entry of the custom config, for a standalone module
    const char *observed_class;         // for a custom module
} prepare_match;

/// The result of checking one dtype config of a pattern against a qconfig.
typedef struct dtypes_try {
    size_t index;           // index of the config in the pattern
    bool is_accepted;       // if so, the rest is empty
    const char *constraint; // the first one that failed: "input_dtype.quant_max_upper_bound"
    const char *wanted, *found, *why;
} dtypes_try;
typedef struct support_log {
    text why;      // the sentence of the dtype config that passed most checks
    size_t passed; // the number of these checks
    dtypes_try *tries;
    size_t count;
} support_log;

/// Facts about a node before observers are inserted.
typedef struct prepare_node {
    prepare_match *match; // NULL: no pattern covers it
    qconfig_choice qconfig, equalization;
    target_info info;
    bool has_info;           // info is set by a match (the first one counts)
    bool is_observed;        // in a supported match: convert quantizes it
    bool is_integer;         // known to be a number, or a tensor of integers or bools
    const char *stays_float; // the rule that keeps it float, for the record; NULL: none
    bool has_no_tensor_args; // see tare__has_no_tensor_args
    const dtypes_try *tries; // for the match's dtype configs in order; NULL: not checked
    size_t try_count;
    const struct edge_note *notes; // about its inputs, latest first
    const char *output_rule;       // why its output is observed; NULL: it is not
} prepare_node;

typedef struct prepare_pass {
    pass *base;
    const tare_prepare_options *options;
    bool is_qat;
    bool leaves_weights; // torch's mapping: constraints on modules' weights are not applied
    tare_qconfig_mapping *mapping;            // a copy, extended by fusion
    tare_qconfig_mapping *equalization;       // the same; NULL: none
    tare_observer_spec *float_spec;           // PlaceholderObserver(dtype=torch.float32)
    tare_observer_spec *half_spec;            // PlaceholderObserver(dtype=torch.float16)
    tare_observer_spec *byte_spec;            // PlaceholderObserver(dtype=torch.quint8)
    const tare_prepare_custom_config *custom; // never NULL
    prepared_state *state;                    // the state for convert, under construction
    prepare_node *nodes;                      // by id, for the nodes before observers were inserted
    size_t node_count;
    size_t *match_order; // ids of matched nodes in the order of their first match
    size_t match_count;
} prepare_pass;

/// NULL for observers that were inserted since.
prepare_node *tare__prepare_node(const prepare_pass *p, const node *n);

/// Step: converts linear functions of an exported program to modules if the mapping quantizes
/// weights of torch.nn.Linear group-wise.
tare_status tare__prepare_lift_linear(prepare_pass *p);
/// Step: finds nodes with integer values, if the model states the shapes of its inputs.
tare_status tare__prepare_find_integers(prepare_pass *p);
/// Step: assigns a qconfig to each node (spec: _generate_node_name_to_qconfig). Selectors that
/// match nothing are errors.
tare_status tare__prepare_qconfigs(prepare_pass *p, const module *original);
/// Step: matches backend patterns.
tare_status tare__prepare_match(prepare_pass *p);
/// Sets the items of a match and makes it cover their nodes.
tare_status tare__prepare_take(prepare_pass *p, prepare_match *match, const match_list *items);
/// Step: modules that the custom config names replace patterns. Selectors that match nothing are
/// errors.
tare_status tare__prepare_custom_matches(prepare_pass *p);
/// Step: prepares standalone modules, and replaces custom ones by observed ones.
tare_status tare__prepare_custom_modules(prepare_pass *p);
/// Prepares a module with a graph of its own; *out replaces it, *state is kept for convert.
tare_status tare__prepare_standalone(prepare_pass *p, const module *m, const char *path,
                                     const tare_prepare_options *options, module **out,
                                     prepared_state **state);
/// True if the entry asks for this input in quantized form.
bool tare__standalone_wants_quantized(const prepare_match *match, const node *n, const node *arg);
/// For a custom module that returns a tuple and observes its results itself: inserts a dequant stub
/// for every tensor in the tuple. No effect on other nodes.
tare_status tare__prepare_split_result(prepare_pass *p, node *n, bool *is_split);
/// Step, under tare's own mapping: finds values that stay float because one scale cannot represent
/// them.
tare_status tare__prepare_keep_ranges(prepare_pass *p);
/// Under tare's own mapping: the bound (relu6, clamp) that is the only user of n's output, possibly
/// through operators that return their input unchanged; only the bound's result is then observed.
/// NULL: there is none.
const node *tare__prepare_bound_of(const prepare_pass *p, const node *n);
/// Under tare's own mapping: true for an average of many values, which gets its own range.
bool tare__prepare_averages(const prepare_pass *p, const node *n);
/// Step: sets target_info of every node.
tare_status tare__prepare_choose(prepare_pass *p);
/// Step, under tare's own mapping: leaves operators between floats in float if integers gain
/// nothing.
tare_status tare__prepare_leave_islands(prepare_pass *p);
/// Step: inserts observers.
tare_status tare__prepare_insert(prepare_pass *p);

/// True if another quantized operator reads the node's input. Called before observers are inserted
/// for it.
bool tare__prepare_is_branch(const prepare_pass *p, const node *n);
/// Inserts the observers of input-weight equalization, after those of a root's inputs.
tare_status tare__prepare_equalize(prepare_pass *p, const prepare_node *entry, node *n,
                                   bool is_branch);
/// Whether some dtype config of the match's pattern accepts the qconfig of this node's entry. log
/// (may be NULL) records the result of each config, in scratch memory; the caller releases
/// log->why.
tare_status tare__prepare_is_supported(prepare_pass *p, const prepare_node *entry, bool *out,
                                       support_log *log);
/// True if the match's root is a module with a weight that convert quantizes.
bool tare__prepare_has_module_weight(const prepare_match *match);
/// The constraint on the weight in the accepted dtype config that the qconfig violates: a sentence
/// in log->why, or "".
tare_status tare__prepare_weight_refusal(prepare_pass *p, const prepare_node *entry,
                                         support_log *log);
/// Step: adds patterns, qconfig and dtypes of every call to the model's facts.
tare_status tare__prepare_find_facts(prepare_pass *p);
/// Records why the edge between two nodes got an observer or none, for the facts.
tare_status tare__prepare_note_edge(prepare_pass *p, const node *from, const node *to,
                                    const char *rule, ...) TARE_PRINTF(4, 5);
/// Step, after observers were inserted: adds every edge to the model's facts.
tare_status tare__prepare_edge_facts(prepare_pass *p);
/// torch's all_node_args_have_no_tensors, computed once for every node when the pass begins.
bool tare__has_no_tensor_args(const prepare_pass *p, const node *n);

/// True if the argument is n's weight, or its bias.
bool tare__is_weight_arg(const prepare_node *entry, const node *n, const node *arg);
bool tare__is_bias_arg(const prepare_node *entry, const node *n, const node *arg);
/// True if weight and activation of the qconfig are float16, so that the bias is, too.
tare_status tare__qconfig_is_half(const prepare_pass *p, const tare_qconfig *q, bool *out);

#endif
