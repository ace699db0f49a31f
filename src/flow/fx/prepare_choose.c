// SPDX-License-Identifier: Apache-2.0
// Prepare: chooses the dtype and observer of each node's tensors (torch's target_dtype_info).
#include <stdio.h>
#include <string.h>

#include "flow/fx/prepare.h"
#include "ops/op.h"

static target_info float_info(const prepare_pass *p) {
    return (target_info){.input = p->float_spec,
                         .output = p->float_spec,
                         .weight = p->float_spec,
                         .bias = p->float_spec,
                         .weight_index = -1,
                         .bias_index = -1};
}

// Values that are no tensors have no spec.
static target_info no_tensor_info(void) {
    return (target_info){.weight_index = -1, .bias_index = -1};
}

// True for torch's reuse-input qconfig: ReuseInputObserver with a NoopObserver for weights.
static tare_status is_reuse_input(const prepare_pass *p, const tare_qconfig *q, bool *out) {
    tare_observer_info info;
    TARE_TRY(tare__pass_spec_info(p->base, q->activation, &info));
    *out = info.reuses_input && q->weight != NULL &&
           strcmp(tare__observer_spec_class(q->weight), "NoopObserver") == 0;
    return TARE_OK;
}

// The observer of an operator's float input. A qconfig with fixed parameters states those of the
// result (sigmoid: 0 to 255/256). torch observes a float input with them, too, and cuts off what
// lies outside; tare's own mapping observes it as any other tensor.
static tare_status choose_input_spec(const prepare_pass *p, const tare_qconfig *q,
                                     const tare_observer_spec **out) {
    const tare_qconfig *global = p->mapping->global;
    tare_observer_info info, other;
    *out = q->activation;
    if (!tare__qconfig_mapping_is_own(p->mapping) || global == NULL) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(p->base, q->activation, &info));
    if (!info.has_fixed_qparams) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(p->base, global->activation, &other));
    if (!other.has_fixed_qparams && other.dtype == info.dtype) *out = global->activation;
    return TARE_OK;
}

static tare_status info_from_qconfig(prepare_pass *p, const prepare_match *match, const node *n,
                                     const tare_qconfig *q, target_info *out) {
    *out = no_tensor_info();
    if (tare__has_no_tensor_args(p, n)) return TARE_OK;
    bool is_half = false;
    TARE_TRY(tare__qconfig_is_half(p, q, &is_half));
    TARE_TRY(choose_input_spec(p, q, &out->input));
    out->output = q->activation;
    out->weight = q->weight;
    out->bias = is_half ? p->half_spec : p->float_spec;
    out->shares = match->shares;
    TARE_TRY(is_reuse_input(p, q, &out->reuses_input));
    if (n->op == NODE_CALL_FUNCTION) {
        const tare_pattern_config *config =
            tare__backend_config_for_operator(p->base->backend, n->target);
        if (config != NULL) {
            out->weight_index = tare__pattern_config_input_index(config, "weight");
            out->bias_index = tare__pattern_config_input_index(config, "bias");
        }
    }
    return TARE_OK;
}

// Sets the info of every node of the match, unless an earlier entry did. The first entry in match
// order, normally a pattern's last node, decides for the whole pattern.
static tare_status set_match(prepare_pass *p, const prepare_match *match, const tare_qconfig *q) {
    for (size_t i = 0; i < match->nodes.count; i++) {
        const node *n = match->nodes.items[i];
        prepare_node *entry = tare__prepare_node(p, n);
        if (entry->has_info) continue;
        entry->has_info = true;
        if (q != NULL) TARE_TRY(info_from_qconfig(p, match, n, q, &entry->info));
    }
    return TARE_OK;
}

// Arguments that are never tensors: sizes, dims, masks.
typedef struct known_args {
    op_id method;
    const char *ending; // "_": the in-place method
    size_t first, last; // positional, inclusive
} known_args;
static const known_args known[] = {
    {TARE_OP_MASKED_FILL, "", 1, 2},
    {TARE_OP_PERMUTE, "", 1, SIZE_MAX},
    {TARE_OP_REPEAT, "", 1, SIZE_MAX},
    {TARE_OP_RESHAPE, "", 1, SIZE_MAX},
    {TARE_OP_TRANSPOSE, "", 1, SIZE_MAX},
    {TARE_OP_VIEW, "", 1, SIZE_MAX},
    {TARE_OP_SIZE, "", 1, 1},
    {TARE_OP_UNSQUEEZE, "", 1, 1},
    {TARE_OP_UNSQUEEZE, "_", 1, 1},
};

// Compares with the row's first name: torch does not handle swapaxes.
static bool is_method(const known_args *k, const char *target) {
    const op_name name = tare__op_method_name(tare__op_row(k->method));
    const size_t length = strlen(name.text);
    return strncmp(target, name.text, length) == 0 && strcmp(target + length, k->ending) == 0;
}

static bool is_shared_entry(const prepare_pass *p, const node *n) {
    const prepare_node *entry = tare__prepare_node(p, n);
    return entry->match != NULL && entry->match->shares;
}

// Clears the argument and its producers, as long as these return their input unchanged.
static void clear_chain(prepare_pass *p, const node *arg) {
    while (arg != NULL) {
        tare__prepare_node(p, arg)->info = no_tensor_info();
        if (!is_shared_entry(p, arg) || arg->arg_count == 0) return;
        arg = tare__node_arg(arg, 0);
    }
}

static const known_args *find_known(const node *n) {
    if (n->op != NODE_CALL_METHOD) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_method(&known[i], n->target)) return &known[i];
    return NULL;
}

static void clear_known(prepare_pass *p, const node *n) {
    const known_args *row = find_known(n);
    if (row == NULL) return;
    for (size_t i = row->first; i < n->arg_count && i <= row->last; i++)
        clear_chain(p, tare__node_arg(n, i));
}

static const char *pattern_name(const prepare_match *match) {
    return match->config->complex->kind == PATTERN_TUPLE ? "a pattern of several operators"
                                                         : match->config->complex->name;
}

// done: by node id, nodes that are already reset.
static void reset_match(prepare_pass *p, const prepare_match *match, bool *done) {
    for (size_t i = 0; i < match->nodes.count; i++) {
        const node *n = match->nodes.items[i];
        if (!done[n->id])
            tare__prepare_node(p, n)->info =
                tare__has_no_tensor_args(p, n) ? no_tensor_info() : float_info(p);
        done[n->id] = true;
    }
}

// What torch's mappings do not constrain, in one sentence for all layers.
typedef struct weight_report {
    size_t count;
    const node *first;
    const char *why;
} weight_report;

static tare_status report_weight(prepare_pass *p, const prepare_node *entry, support_log *log,
                                 weight_report *report) {
    if (!p->leaves_weights) return TARE_OK;
    tare__text_clear(&log->why);
    TARE_TRY(tare__prepare_weight_refusal(p, entry, log));
    if (tare__text_chars(&log->why)[0] == '\0' || report->count++ > 0) return TARE_OK;
    report->first = entry->match->last;
    report->why = tare__arena_strdup(&p->base->scratch, tare__text_chars(&log->why));
    return report->why != NULL ? TARE_OK : tare__out_of_memory(p->base->err);
}

static tare_status decide_report(prepare_pass *p, const weight_report *report) {
    if (report->count == 0) return TARE_OK;
    char more[64] = "";
    if (report->count > 1)
        (void)snprintf(more, sizeof more, " (and for %zu more)", report->count - 1);
    return TARE_DECIDE(p->base, report->first, "warning", "constraints",
                       "%s%s; torch's mapping '%s' is used as it is", report->why, more,
                       p->mapping->default_name);
}

// Leaves the match float, with the reason in the record of its last operator.
static tare_status refuse_match(prepare_pass *p, prepare_match *match, const char *why) {
    match->refusal = tare__arena_strdup(&p->base->scratch, why);
    if (match->refusal == NULL) return tare__out_of_memory(p->base->err);
    return TARE_DECIDE(p->base, match->last, "left float", pattern_name(match), "%s", why);
}

// A root without a qconfig is not quantized, and the rest of the pattern is not quantized alone.
static bool has_bare_root(const prepare_pass *p, const prepare_match *match) {
    return match->config != NULL && match->root != match->last &&
           tare__prepare_node(p, match->root)->match == match &&
           tare__prepare_node(p, match->root)->qconfig.qconfig == NULL;
}

static tare_status look_at_entry(prepare_pass *p, prepare_node *entry, support_log *log,
                                 weight_report *report, bool *done) {
    prepare_match *match = entry->match;
    const prepare_node *last = tare__prepare_node(p, match->last);
    bool is_supported = false;
    log->count = 0;
    log->passed = 0;
    log->tries = NULL;
    tare__text_clear(&log->why);
    if (last->qconfig.qconfig != NULL && has_bare_root(p, match)) {
        tare__text_printf(&log->why,
                          "the qconfig mapping leaves '%s', the root of its pattern, float",
                          match->root->name);
    } else {
        TARE_TRY(tare__prepare_is_supported(p, entry, &is_supported, log));
        entry->tries = log->tries;
        entry->try_count = log->count;
    }
    TARE_TRY(tare__text_status(&log->why, p->base->err));
    if (is_supported && entry == last) TARE_TRY(report_weight(p, entry, log, report));
    if (is_supported || last->info.output == NULL) return TARE_OK;
    if (last->qconfig.qconfig != NULL && match->refusal == NULL)
        TARE_TRY(refuse_match(p, match, tare__text_chars(&log->why)));
    reset_match(p, match, done);
    return TARE_OK;
}

// Entries with a qconfig that the backend refuses stay float; the record says why.
static tare_status reset_unsupported(prepare_pass *p) {
    bool *done = tare__arena_array(&p->base->scratch, p->node_count + 1, sizeof *done);
    if (done == NULL) return tare__out_of_memory(p->base->err);
    support_log log = {0};
    weight_report report = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < p->match_count && status == TARE_OK; i++)
        status = look_at_entry(p, &p->nodes[p->match_order[i]], &log, &report, done);
    tare__text_release(&log.why);
    return status == TARE_OK ? decide_report(p, &report) : status;
}

// Otherwise an index past the inputs would be ignored silently.
static tare_status check_inputs(const prepare_pass *p, int64_t count) {
    const index_list *list = &p->custom->input_quantized;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] >= count)
            return tare__fail(p->base->err, TARE_INVALID_ARGUMENT,
                              "prepare custom config: input %lld is to be quantized, the model has "
                              "%lld inputs",
                              (long long)list->items[i], (long long)count);
    return TARE_OK;
}

tare_status tare__prepare_choose(prepare_pass *p) {
    const graph *g = p->base->model->root->graph;
    for (const node *n = g->first; n != NULL; n = n->next) p->nodes[n->id].info = float_info(p);
    for (size_t i = 0; i < p->match_count; i++) {
        const prepare_node *entry = &p->nodes[p->match_order[i]];
        TARE_TRY(set_match(p, entry->match, entry->qconfig.qconfig));
    }
    int64_t placeholder = 0;
    for (const node *n = g->first; n != NULL; n = n->next) {
        target_info *info = &p->nodes[n->id].info;
        if (n->op == NODE_PLACEHOLDER &&
            tare__index_list_has(&p->custom->input_quantized, placeholder++))
            info->input = info->output = p->byte_spec;
        if (n->op == NODE_OUTPUT && tare__index_list_has(&p->custom->output_quantized, 0))
            info->input = info->output = p->byte_spec;
        if (tare__node_is_call(n) && tare__has_no_tensor_args(p, n)) *info = no_tensor_info();
    }
    if (p->custom->input_quantized.count > 0) TARE_TRY(check_inputs(p, placeholder));
    for (const node *n = g->first; n != NULL; n = n->next) clear_known(p, n);
    TARE_TRY(reset_unsupported(p));
    for (const node *n = g->first; n != NULL; n = n->next)
        if (p->nodes[n->id].is_integer) p->nodes[n->id].info = no_tensor_info();
    return TARE_OK;
}
