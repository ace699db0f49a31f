// SPDX-License-Identifier: Apache-2.0
// Lint of files of rules: what is allowed, but cannot mean what was meant.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/op.h"
#include "pt2e/data_quantizer.h"
#include "pt2e/quantizer.h"

typedef struct lint {
    const data_quantizer *q;
    tare_quantizer_finding_visitor visit;
    void *user;
    arena memory;
    size_t count;
    tare_error *err;
} lint;

// A place, and what to do about it.
typedef struct advice {
    char path[160];
    const char *remedy;
} advice;

static tare_status found(lint *l, const advice *at, const char *format, ...) TARE_PRINTF(3, 4);
static tare_status found(lint *l, const advice *at, const char *format, ...) {
    char problem[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    const tare_quantizer_finding finding = {
        .struct_size = sizeof finding, .path = at->path, .problem = problem, .remedy = at->remedy};
    l->count++;
    return l->visit(l->user, &finding, l->err);
}

// --- specs ---

static bool rule_uses(const data_rule *rule, const tare_qspec *spec) {
    for (size_t i = 0; i < rule->node_count; i++) {
        const rule_node *n = &rule->nodes[i];
        if (n->output.spec == spec) return true;
        for (size_t k = 0; k < n->input_count; k++)
            if (n->inputs[k].source.spec == spec) return true;
    }
    return false;
}

static bool is_used(const data_quantizer *q, const tare_qspec *spec) {
    const tare_quantization_config *c = &q->settings->global.config;
    if (spec == c->input_activation || spec == c->output_activation || spec == c->weight ||
        spec == c->bias)
        return true;
    for (size_t i = 0; i < q->rule_count; i++)
        if (rule_uses(&q->rules[i], spec)) return true;
    return false;
}

static tare_status check_specs(lint *l) {
    for (size_t i = 0; i < l->q->specs.count; i++) {
        if (is_used(l->q, l->q->specs.entries[i].value)) continue;
        advice at = {.remedy = "use it, or take it out"};
        (void)snprintf(at.path, sizeof at.path, "$.specs.%.120s", l->q->specs.entries[i].key);
        TARE_TRY(found(l, &at, "nothing uses the spec '%s'", l->q->specs.entries[i].key));
    }
    return TARE_OK;
}

// --- operators ---

static bool is_exported(const char *target) {
    return strncmp(target, "torch.ops.", strlen("torch.ops.")) == 0 ||
           strcmp(target, "operator.getitem") == 0;
}

static tare_status check_operator(lint *l, const advice *at, const char *target) {
    if (!is_exported(target)) return found(l, at, "torch.export makes no calls of '%s'", target);
    return tare__op_function(target) != NULL ? TARE_OK
                                             : found(l, at, "no operator '%s' is known", target);
}

static tare_status check_list(lint *l, const char *key, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        advice at = {.remedy = "name an operator as the exported graph does"};
        (void)snprintf(at.path, sizeof at.path, "$.%s[%zu]", key, i);
        TARE_TRY(check_operator(l, &at, names[i]));
    }
    return TARE_OK;
}

static tare_status check_form(lint *l, const advice *at, const subgraph_pattern *form) {
    for (const node *n = form->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_FUNCTION) TARE_TRY(check_operator(l, at, n->target));
    return TARE_OK;
}

// --- rules ---

// Does `earlier` find something in every form of the rule?
static tare_status takes_all(lint *l, const data_rule *earlier, const data_rule *rule, bool *out) {
    *out = true;
    for (size_t f = 0; f < rule->form_count && *out; f++) {
        subgraph_matches matches = {0};
        for (size_t e = 0; e < earlier->form_count; e++)
            TARE_TRY(tare__subgraph_find(earlier->forms[e], rule->forms[f]->graph, &l->memory,
                                         &matches, l->err));
        *out = matches.count > 0;
    }
    return TARE_OK;
}

static tare_status check_rule(lint *l, size_t index) {
    const data_rule *rule = &l->q->rules[index];
    advice at = {.remedy = "write it in functions of torch, or with the operator's exported name"};
    for (size_t f = 0; f < rule->form_count; f++) {
        (void)snprintf(at.path, sizeof at.path, "$.rules[%zu].pattern[%zu]", index, f);
        TARE_TRY(check_form(l, &at, rule->forms[f]));
    }
    at.remedy = "put the larger pattern first";
    (void)snprintf(at.path, sizeof at.path, "$.rules[%zu]", index);
    for (size_t i = 0; i < index; i++) {
        bool is_taken = false;
        TARE_TRY(takes_all(l, &l->q->rules[i], rule, &is_taken));
        if (is_taken)
            return found(l, &at, "rule '%s' never applies: '%s' takes its nodes before", rule->name,
                         l->q->rules[i].name);
    }
    return TARE_OK;
}

static tare_status look(lint *l) {
    TARE_TRY(check_specs(l));
    for (size_t i = 0; i < l->q->rule_count; i++) TARE_TRY(check_rule(l, i));
    TARE_TRY(check_list(l, "keeps_observer", l->q->keeps_observer));
    return check_list(l, "joins_inputs", l->q->joins_inputs);
}

tare_status tare_quantizer_lint(const tare_quantizer *q, tare_quantizer_finding_visitor visit,
                                void *user, size_t *count, tare_error *err) {
    lint l = {.q = tare__data_quantizer_of(q), .visit = visit, .user = user, .err = err};
    tare_status status = l.q != NULL ? look(&l) : TARE_OK;
    for (size_t i = 0; i < q->part_count && status == TARE_OK; i++) {
        size_t more = 0;
        status = tare_quantizer_lint(q->parts[i], visit, user, &more, err);
        l.count += more;
    }
    tare__arena_release(&l.memory);
    if (status == TARE_OK) *count = l.count;
    return status;
}
