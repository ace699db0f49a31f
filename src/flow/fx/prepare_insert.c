// SPDX-License-Identifier: Apache-2.0
// Prepare: inserts an observer for each edge that changes dtype (spec: insert_observers_for_model).
#include <string.h>

#include "config/pattern_form.h"
#include "config/qconfig.h"
#include "flow/fx/module_refusal.h"
#include "flow/fx/prepare.h"
#include "flow/insert.h"
#include "observe/dtype_roles.h"
#include "ops/op.h"

// The spec of a node's output; for an observer, that of the observed node.
static const tare_observer_spec *produced_spec(prepare_pass *p, const node *n) {
    while (tare__prepare_node(p, n) == NULL) {
        n = tare__node_arg(n, 0);
        if (n == NULL) return NULL;
    }
    return tare__prepare_node(p, n)->info.output;
}

// The spec that a node requires for one of its arguments.
static const tare_observer_spec *wanted_spec(const prepare_node *entry, const node *n,
                                             const node *arg) {
    if (tare__is_weight_arg(entry, n, arg)) {
        const bool stays_float =
            tare__op_has(tare__function_row(n), OP_FLOAT_WEIGHT) && tare__uses_first_name(n);
        return stays_float ? NULL : entry->info.weight;
    }
    return tare__is_bias_arg(entry, n, arg) ? entry->info.bias : entry->info.input;
}

static tare_status needs_observer(prepare_pass *p, const prepare_node *entry, const node *n,
                                  const node *arg, const tare_observer_info *wanted, bool *out) {
    tare_observer_info produced;
    TARE_TRY(tare__pass_spec_info(p->base, produced_spec(p, arg), &produced));
    *out = false;
    if (wanted->is_dynamic) {
        *out = tare__node_arg(n, 0) == arg; // only the first argument is dynamically quantized
    } else if (!entry->info.reuses_input && tare__dtype_has_role(wanted->dtype, DTYPE_OBSERVED)) {
        *out = (tare__dtype_has_role(produced.dtype, DTYPE_OBSERVED) ||
                produced.dtype == TARE_FLOAT32) &&
               produced.dtype != wanted->dtype;
    }
    return TARE_OK;
}

// Inputs of a standalone module are quantized if the module asks for it; the others are float.
static tare_status standalone_needs_observer(prepare_pass *p, const prepare_node *entry,
                                             const node *n, const node *arg, bool *out) {
    tare_observer_info produced;
    TARE_TRY(tare__pass_spec_info(p->base, produced_spec(p, arg), &produced));
    *out = produced.dtype != TARE_QUINT8 && tare__standalone_wants_quantized(entry->match, n, arg);
    return TARE_OK;
}

// Records why an input that is observed elsewhere, or not at all, gets no observer.
static tare_status note_unobserved(prepare_pass *p, const prepare_node *entry, const node *n,
                                   const node *arg, const tare_observer_info *wanted) {
    if (wanted->is_dynamic)
        return tare__prepare_note_edge(p, arg, n,
                                       "no observer: only the first argument is quantized on the "
                                       "fly");
    if (entry->info.reuses_input)
        return tare__prepare_note_edge(p, arg, n, "no observer: its qconfig reuses the input's");
    if (!tare__dtype_has_role(wanted->dtype, DTYPE_OBSERVED))
        return tare__prepare_note_edge(p, arg, n, "no observer: '%s' wants %s", n->name,
                                       tare_dtype_name(wanted->dtype));
    return tare__prepare_note_edge(p, arg, n, "no observer of its own: '%s' gives %s as it is",
                                   arg->name, tare_dtype_name(wanted->dtype));
}

static tare_status choose_input(insertion *in, const node *n, node *arg, bool is_first,
                                observer_wish *out) {
    (void)is_first;
    prepare_pass *p = in->user;
    const prepare_node *entry = tare__prepare_node(p, n);
    const tare_observer_spec *spec = wanted_spec(entry, n, arg);
    if (spec == NULL)
        return tare__prepare_note_edge(p, arg, n, "no observer: '%s' asks for none here", n->name);
    tare_observer_info wanted;
    TARE_TRY(tare__pass_spec_info(p->base, spec, &wanted));
    bool needed = false;
    TARE_TRY(entry->match->standalone != NULL ? standalone_needs_observer(p, entry, n, arg, &needed)
                                              : needs_observer(p, entry, n, arg, &wanted, &needed));
    if (!needed) return note_unobserved(p, entry, n, arg, &wanted);
    *out = (observer_wish){.spec = spec, .dtype = wanted.dtype};
    return TARE_OK;
}

static tare_status note_observed(insertion *in, const node *n, const node *arg,
                                 const observer_wish *wish, bool is_new) {
    return tare__prepare_note_edge(in->user, arg, n, "observed %s: '%s' wants %s",
                                   is_new ? "for this input" : "with another reader's observer",
                                   n->name, tare_dtype_name(wish->dtype));
}

// --- sharing an input's observer ---

// The first node in an argument list, or NULL.
static void keep_first(void *user, node *n) {
    node **first = user;
    if (*first == NULL) *first = n;
}

static bool keeps_values(const prepare_pass *p, const node *n) {
    return tare__op_has(tare__called_row(p->base->model, n), OP_MOVES_DATA | OP_KEEPS_QPARAMS);
}

// Walks back from `n` to the nearest observer; NULL: there is none. torch walks through every
// operator, even if it changes values.
static node *find_observer(prepare_pass *p, node *n) {
    const bool is_own = tare__qconfig_mapping_is_own(p->mapping);
    while (n != NULL && !tare__is_observer_node(p->base->model, n)) {
        if (n->op == NODE_PLACEHOLDER || (is_own && !keeps_values(p, n))) return NULL;
        node *input = NULL;
        for (size_t i = 0; i < n->arg_count && input == NULL; i++)
            if (n->args[i].kind == VALUE_NODE) input = n->args[i].as.node;
        if (input == NULL && n->arg_count > 0 && tare__value_has_items(&n->args[n->arg_count - 1]))
            tare__value_each_node(&n->args[n->arg_count - 1], keep_first, &input);
        n = input;
    }
    return n;
}

// Replaces the observers of all other items of a list argument by the first item's.
static tare_status share_list(prepare_pass *p, const value *list, module *shared, bool *done) {
    for (uint32_t i = 1; i < list->count; i++) {
        const node *n = list->as.items[i].kind == VALUE_NODE ? list->as.items[i].as.node : NULL;
        while (n != NULL && !tare__is_observer_node(p->base->model, n)) n = tare__node_arg(n, 0);
        if (n == NULL) return TARE_OK;
        TARE_TRY(tare__module_set_child(p->base->model->root, n->target, shared, p->base->err));
    }
    *done = true;
    return TARE_OK;
}

// The observer that the inputs of n share with its output; NULL: there is none.
static tare_status share_inputs(prepare_pass *p, const node *n, module **out) {
    const value *first = NULL;
    *out = NULL;
    for (size_t i = 0; i < n->arg_count && first == NULL; i++) {
        const value_kind kind = n->args[i].kind;
        if (kind == VALUE_NODE || kind == VALUE_LIST || kind == VALUE_TUPLE) first = &n->args[i];
    }
    if (first == NULL) return TARE_OK;
    const bool is_list = first->kind != VALUE_NODE;
    if (is_list && first->count == 0) return TARE_OK;
    const value *head = is_list ? &first->as.items[0] : first;
    const node *observer = head->kind == VALUE_NODE ? find_observer(p, head->as.node) : NULL;
    if (observer == NULL) return TARE_OK;
    module *shared = tare__called_module(p->base->model, observer);
    bool is_shared = !is_list;
    if (is_list) TARE_TRY(share_list(p, first, shared, &is_shared));
    if (is_shared) *out = shared;
    return TARE_OK;
}

// --- outputs ---

// True if the output may share the observer of its input.
static bool shares(const prepare_pass *p, const prepare_node *entry, const node *n,
                   tare_dtype wanted) {
    const node *input = tare__node_arg(n, 0);
    const bool is_own = tare__qconfig_mapping_is_own(p->mapping);
    if (is_own && entry->info.shares &&
        (!keeps_values(p, n) || tare__prepare_averages(p, n) ||
         tare__prepare_bound_of(p, input) == n))
        return false;
    const bool is_unsigned = wanted == TARE_QUINT8 || wanted == TARE_UINT8;
    const bool same_graph = !(is_unsigned && input != NULL && input->op == NODE_PLACEHOLDER);
    return (entry->info.shares && same_graph) || entry->info.reuses_input;
}

// The output stays float; its users observe it.
static tare_status share_nothing(prepare_pass *p, prepare_node *entry, const node *n) {
    if (!tare__qconfig_mapping_is_own(p->mapping)) return TARE_OK;
    entry->info.input = entry->info.output = p->float_spec;
    entry->is_observed = false;
    return TARE_DECIDE(p->base, n, "left float", "sharing",
                       "it would share the observer of its input, which is float");
}

static tare_status observe_output(insertion *in, prepare_node *entry, node *n) {
    prepare_pass *p = in->user;
    tare_observer_info wanted;
    TARE_TRY(tare__pass_spec_info(p->base, entry->info.output, &wanted));
    if (!tare__dtype_has_role(wanted.dtype, DTYPE_OBSERVED) || wanted.is_dynamic ||
        entry->match->standalone != NULL)
        return TARE_OK;
    observer_wish wish = {.spec = entry->info.output};
    if (tare__prepare_bound_of(p, n) != NULL) {
        entry->output_rule = "observed after the operator that bounds it";
        return TARE_OK;
    }
    if (shares(p, entry, n, wanted.dtype)) {
        TARE_TRY(share_inputs(p, n, &wish.observer));
        // torch detects this only after inserting the observer.
        if (wish.observer == NULL) {
            TARE_TRY(share_nothing(p, entry, n));
            return tare__spend_observer_number(in);
        }
        entry->output_rule =
            entry->info.shares ? "observed with its input: OUTPUT_SHARE_OBSERVER_WITH_INPUT"
                               : "observed with its input: the qconfig reuses the input's observer";
    } else {
        entry->output_rule = "observed as an output of its own";
    }
    return tare__observe_output(in, n, &wish);
}

// --- the walk ---

static tare_status decide_observed(prepare_pass *p, const node *n, const prepare_node *entry) {
    text asked = {0};
    tare__qconfig_text(entry->qconfig.qconfig, &asked);
    tare_status status = tare__text_status(&asked, p->base->err);
    if (status == TARE_OK)
        status = TARE_DECIDE(p->base, n, "observed", entry->qconfig.section,
                             "the %s selector%s%s%s asks for %s, which the backend '%s' supports",
                             entry->qconfig.section, entry->qconfig.key != NULL ? " '" : "",
                             entry->qconfig.key != NULL ? entry->qconfig.key : "",
                             entry->qconfig.key != NULL ? "'" : "", tare__text_chars(&asked),
                             tare_backend_config_name(p->base->backend));
    tare__text_release(&asked);
    return status;
}

static bool mentions(const pattern *pat, pattern_kind kind, const char *name) {
    if (pat->kind == kind && pat->name != NULL) return strcmp(pat->name, name) == 0;
    if (pat->kind != PATTERN_TUPLE) return false;
    for (size_t i = 0; i < pat->item_count; i++)
        if (mentions(&pat->items[i], kind, name)) return true;
    return false;
}

// The first pattern that contains the node's operator among others; NULL: none.
static const tare_pattern_config *find_mention(const prepare_pass *p, const node *n) {
    pattern_kind kind = PATTERN_ANY;
    const char *name = tare__node_operator(n, p->base->model->root, &kind);
    for (size_t i = 0; name != NULL && i < p->base->backend->count; i++)
        if (mentions(p->base->backend->configs[i]->complex, kind, name))
            return p->base->backend->configs[i];
    return NULL;
}

static tare_status decide_unmatched(prepare_pass *p, const node *n) {
    const char *backend = tare_backend_config_name(p->base->backend);
    const tare_pattern_config *known = find_mention(p, n);
    const module *m = tare__called_module(p->base->model, n);
    if (known == NULL && m != NULL && m->class->role == ROLE_FUSED)
        return TARE_DECIDE(p->base, n, "left float", "backend patterns",
                           "the backend '%s' has no pattern for %s, into which it is fused",
                           backend, m->class->name);
    if (known == NULL)
        return TARE_DECIDE(p->base, n, "left float", "backend patterns",
                           "the backend '%s' has no pattern for it", backend);
    text name = {0};
    tare__pattern_to_text(tare__pattern_config_given(known), &name);
    tare_status status = tare__text_status(&name, p->base->err);
    if (status == TARE_OK)
        status = TARE_DECIDE(p->base, n, "left float", "backend patterns",
                             "the backend '%s' has it only in patterns such as %s, which its "
                             "neighbours do not match",
                             backend, tare__text_chars(&name));
    tare__text_release(&name);
    return status;
}

// Records why a call gets no observers although nothing refused it.
static tare_status decide_skipped(prepare_pass *p, const node *n, const prepare_node *entry) {
    if (entry->match == NULL) return decide_unmatched(p, n);
    const char *section = entry->qconfig.section != NULL ? entry->qconfig.section : "global";
    return TARE_DECIDE(p->base, n, "left float", section,
                       "the qconfig mapping asks for no quantization (%s%s%s)", section,
                       entry->qconfig.key != NULL ? ": " : "",
                       entry->qconfig.key != NULL ? entry->qconfig.key : "");
}

// For a call with a qconfig whose match is refused, or whose values are no float tensors.
static tare_status decide_refused(prepare_pass *p, const node *n, const prepare_node *entry) {
    const prepare_match *match = entry->match;
    if (match->refusal != NULL && match->last == n)
        return TARE_OK; // the reason is already recorded
    if (match->refusal != NULL)
        return TARE_DECIDE(p->base, n, "left float", "backend patterns",
                           "its pattern ends at '%s', which stays float: %s", match->last->name,
                           match->refusal);
    return TARE_DECIDE(p->base, n, "left float", "no floating tensors",
                       entry->is_integer ? "its values are integers or bools"
                                         : "its values are not tensors");
}

static tare_status observe_node(insertion *in, node *n) {
    prepare_pass *p = in->user;
    prepare_node *entry = tare__prepare_node(p, n);
    if (!tare__node_is_call(n)) return TARE_OK;
    if (entry->stays_float != NULL) return TARE_OK; // the reason is already recorded
    if (entry->match == NULL || entry->qconfig.qconfig == NULL) return decide_skipped(p, n, entry);
    bool is_supported = false;
    TARE_TRY(tare__prepare_is_supported(p, entry, &is_supported, NULL));
    if (!is_supported) return decide_refused(p, n, entry);
    for (size_t i = 0; i < entry->match->nodes.count; i++)
        tare__prepare_node(p, entry->match->nodes.items[i])->is_observed = true;
    TARE_TRY(decide_observed(p, n, entry));
    const bool is_branch = tare__prepare_is_branch(p, n);
    if (entry->match->root == n) {
        TARE_TRY(tare__observe_inputs(in, n));
        TARE_TRY(tare__prepare_equalize(p, entry, n, is_branch));
    }
    if (entry->match->last != n) return TARE_OK;
    bool is_split = false;
    TARE_TRY(tare__prepare_split_result(p, n, &is_split));
    return is_split ? TARE_OK : observe_output(in, entry, n);
}

// Observed, but no dtype config accepts the weight, so convert leaves it float.
static tare_status decide_module(prepare_pass *p, const node *n, const prepare_node *entry) {
    const prepare_match *match = entry->match;
    const char *why = NULL;
    if (match == NULL || match->root != n || !entry->is_observed ||
        !tare__prepare_has_module_weight(match))
        return TARE_OK;
    TARE_TRY(tare__module_refusal(p->base, tare__called_module(p->base->model, n),
                                  entry->qconfig.qconfig, &why));
    return why == NULL ? TARE_OK
                       : TARE_DECIDE(p->base, n, "left float", "dtype configs", "%s", why);
}

tare_status tare__prepare_insert(prepare_pass *p) {
    insertion in = {.p = p->base,
                    .user = p,
                    .visit = observe_node,
                    .choose = choose_input,
                    .tell = note_observed};
    TARE_TRY(tare__insert_observers(&in));
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next)
        if (tare__prepare_node(p, n) != NULL)
            TARE_TRY(decide_module(p, n, tare__prepare_node(p, n)));
    return TARE_OK;
}
