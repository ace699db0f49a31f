// SPDX-License-Identifier: Apache-2.0
// Prepare: which backend pattern covers which nodes, what every edge shall carry, where observers
// go.
// Private to flow/fx.
#ifndef FLOW_FX_PREPARE_H
#define FLOW_FX_PREPARE_H

#include "flow/match.h"
#include "model/pass.h"

/// What a node's tensors shall be: a spec each, NULL where the value is no tensor (torch's None).
typedef struct target_info {
    const tare_observer_spec *input, *output, *weight, *bias;
    int64_t weight_index, bias_index; // positional; -1: none
    bool reuses_input; // the output keeps the input's observer (qconfig of ReuseInputObserver)
    bool shares;       // the pattern's observation type is OUTPUT_SHARE_OBSERVER_WITH_INPUT
} target_info;

/// One match of a backend pattern, seen from its last node.
typedef struct prepare_match {
    const tare_pattern_config *config; // NULL: a module of the custom config, no pattern
    node *last;
    const node *root;
    tare_match structure; // the last node first
    match_nodes nodes;    // of the structure, without what wildcards stand for
    bool shares;
    const char *refusal; // why all of it stays float; NULL: it does not, or nobody asked for it
    const standalone_entry *standalone; // the custom config's, of a standalone module
    const char *observed_class;         // of a custom module
} prepare_match;

/// What one dtype config of a pattern said to a qconfig.
typedef struct dtypes_try {
    size_t index;           // of the config in its pattern
    bool is_accepted;       // then the rest is empty
    const char *constraint; // the first that refused: "input_dtype.quant_max_upper_bound"
    const char *wanted, *found, *why;
} dtypes_try;
typedef struct support_log {
    text why;      // what the dtype config said that accepted most of the qconfig
    size_t passed; // how many checks that were
    dtypes_try *tries;
    size_t count;
} support_log;

/// What is known of one node of the graph before observers are inserted.
typedef struct prepare_node {
    prepare_match *match; // NULL: no pattern covers it
    qconfig_choice qconfig, equalization;
    target_info info;
    bool has_info;           // the info came from a match (first come, first served)
    bool is_observed;        // inside a supported match: convert quantizes it
    bool is_integer;         // a number, or a tensor of integers or bools, for all that is known
    const char *stays_float; // the rule that keeps it float, as the record says; NULL: none
    bool has_no_tensor_args; // see tare__has_no_tensor_args
    const dtypes_try *tries; // of the match's dtype configs, in order; NULL: it was not asked
    size_t try_count;
    const struct edge_note *notes; // about its inputs, the newest first
    const char *output_rule;       // why its output is observed; NULL: it is not
} prepare_node;

typedef struct prepare_pass {
    pass *base;
    const tare_prepare_options *options;
    bool is_qat;
    bool
        leaves_weights; // torch's mapping: what a backend demands of modules' weights is no refusal
    tare_qconfig_mapping *mapping;            // the pass's copy, extended by fusion
    tare_qconfig_mapping *equalization;       // idem; NULL: none
    tare_observer_spec *float_spec;           // PlaceholderObserver(dtype=torch.float32)
    tare_observer_spec *half_spec;            // PlaceholderObserver(dtype=torch.float16)
    tare_observer_spec *byte_spec;            // PlaceholderObserver(dtype=torch.quint8)
    const tare_prepare_custom_config *custom; // never NULL
    prepared_state *state;                    // what convert will ask, in the making
    prepare_node *nodes; // by id, for the nodes that stood before observers were inserted
    size_t node_count;
    size_t *match_order; // ids of matched nodes in the order in which they were first recorded
    size_t match_count;
} prepare_pass;

/// NULL for nodes inserted since (observers).
prepare_node *tare__prepare_node(const prepare_pass *p, const node *n);

/// Step: linear functions of an exported program become modules, if the mapping quantizes the
/// weights of torch.nn.Linear per group.
tare_status tare__prepare_lift_linear(prepare_pass *p);
/// Step: which nodes' values are integers, where the model says the shapes of its inputs.
tare_status tare__prepare_find_integers(prepare_pass *p);
/// Step: one qconfig per node (spec: _generate_node_name_to_qconfig); selectors that match nothing
/// are errors.
tare_status tare__prepare_qconfigs(prepare_pass *p, const module *original);
/// Step: backend patterns to nodes.
tare_status tare__prepare_match(prepare_pass *p);
/// The match has these items, and covers their nodes.
tare_status tare__prepare_take(prepare_pass *p, prepare_match *match, const match_list *items);
/// Step: modules that the custom config names replace patterns; selectors that match nothing are
/// errors.
tare_status tare__prepare_custom_matches(prepare_pass *p);
/// Step: standalone modules are prepared, custom ones become observed ones.
tare_status tare__prepare_custom_modules(prepare_pass *p);
/// Prepares a module with a graph of its own; *out replaces it, *state is kept for convert.
tare_status tare__prepare_standalone(prepare_pass *p, const module *m, const char *path,
                                     const tare_prepare_options *options, module **out,
                                     prepared_state **state);
/// Does the entry ask for this input in quantized form?
bool tare__standalone_wants_quantized(const prepare_match *match, const node *n, const node *arg);
/// Of a custom module that returns a tuple and watches its results itself: every tensor in it goes
/// through a dequant stub of its own. Other nodes are left alone.
tare_status tare__prepare_split_result(prepare_pass *p, node *n, bool *is_split);
/// Step, under tare's own mapping: what stays float because no single scale holds its values.
tare_status tare__prepare_keep_ranges(prepare_pass *p);
/// Under tare's own mapping: the bound (relu6, clamp) that alone reads n's output, maybe through
/// operators that pass values on, so that only the bound's result is observed; NULL: there is none.
const node *tare__prepare_bound_of(const prepare_pass *p, const node *n);
/// Under tare's own mapping: is it an average of many values, which gets a range of its own?
bool tare__prepare_averages(const prepare_pass *p, const node *n);
/// Step: target_info of every node.
tare_status tare__prepare_choose(prepare_pass *p);
/// Step, under tare's own mapping: operators between floats that nothing is won for in integers.
tare_status tare__prepare_leave_islands(prepare_pass *p);
/// Step: observers into the graph.
tare_status tare__prepare_insert(prepare_pass *p);

/// Is the node's input read by another operator that is quantized? Asked before observers are
/// inserted for it.
bool tare__prepare_is_branch(const prepare_pass *p, const node *n);
/// The observers of input-weight equalization, after those of a root's inputs.
tare_status tare__prepare_equalize(prepare_pass *p, const prepare_node *entry, node *n,
                                   bool is_branch);
/// Does some dtype config of the match's pattern accept the qconfig of this node's entry? log (may
/// be NULL) gets what each of them said, in the pass's scratch memory; the caller releases
/// log->why.
tare_status tare__prepare_is_supported(prepare_pass *p, const prepare_node *entry, bool *out,
                                       support_log *log);
/// Does the match's root carry its weight in a module that convert quantizes?
bool tare__prepare_has_module_weight(const prepare_match *match);
/// What the dtype config that accepted the entry demands of its module's weight, and the qconfig
/// breaks: a sentence in log->why, or "".
tare_status tare__prepare_weight_refusal(prepare_pass *p, const prepare_node *entry,
                                         support_log *log);
/// Step: patterns, qconfig and dtypes of every call into the model's facts.
tare_status tare__prepare_find_facts(prepare_pass *p);
/// Remembers why the edge between two nodes got an observer or none, for the facts.
tare_status tare__prepare_note_edge(prepare_pass *p, const node *from, const node *to,
                                    const char *rule, ...) TARE_PRINTF(4, 5);
/// Step, when all observers stand: every edge into the model's facts.
tare_status tare__prepare_edge_facts(prepare_pass *p);
/// torch's all_node_args_have_no_tensors. Told once for every node, when the pass begins.
bool tare__has_no_tensor_args(const prepare_pass *p, const node *n);

/// The values of n's arguments that stand for its weight and bias.
bool tare__is_weight_arg(const prepare_node *entry, const node *n, const node *arg);
bool tare__is_bias_arg(const prepare_node *entry, const node *n, const node *arg);
/// Are weight and activation of the qconfig half floats, so that the bias is one too?
tare_status tare__qconfig_is_half(const prepare_pass *p, const tare_qconfig *q, bool *out);

#endif
