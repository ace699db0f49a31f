// SPDX-License-Identifier: Apache-2.0
// Lint for rule files: finds valid entries that are probably mistakes.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"
#include "quantizers/data/lint.h"
#include "quantizers/inductor.h"
#include "quantizers/quantizer.h"

static tare_status tell(lint *l, const advice *at, bool is_error, const char *format,
                        va_list args) {
    char problem[512];
    (void)vsnprintf(problem, sizeof problem, format, args);
    const tare_quantizer_finding finding = {.struct_size = sizeof finding,
                                            .path = at->path,
                                            .problem = problem,
                                            .remedy = at->remedy,
                                            .is_error = is_error};
    l->count++;
    l->error_count += is_error;
    return l->visit(l->user, &finding, l->err);
}

tare_status tare__lint_error(lint *l, const advice *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const tare_status status = tell(l, at, true, format, args);
    va_end(args);
    return status;
}

tare_status tare__lint_warning(lint *l, const advice *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const tare_status status = tell(l, at, false, format, args);
    va_end(args);
    return status;
}

// --- specs ---

static bool source_uses(const spec_source *source, const tare_qspec *spec) {
    for (; source != NULL; source = source->otherwise)
        if (source->spec == spec) return true;
    return false;
}

static bool rule_uses(const data_rule *rule, const tare_qspec *spec) {
    for (size_t i = 0; i < rule->node_count; i++) {
        const rule_node *n = &rule->nodes[i];
        if (source_uses(&n->output, spec)) return true;
        for (size_t k = 0; k < n->input_count; k++)
            if (source_uses(&n->inputs[k].source, spec)) return true;
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

static tare_status check_use(lint *l) {
    for (size_t i = 0; i < l->q->specs.count; i++) {
        if (is_used(l->q, l->q->specs.entries[i].value)) continue;
        advice at = {.remedy = "use it, or take it out"};
        (void)snprintf(at.path, sizeof at.path, "$.specs.%.120s", l->q->specs.entries[i].key);
        TARE_TRY(
            tare__lint_warning(l, &at, "nothing uses the spec '%s'", l->q->specs.entries[i].key));
    }
    return TARE_OK;
}

// --- operators ---

static bool is_exported(const char *target) {
    return tare__is_overload(target) || tare__op_id(tare__op_function(target)) == TARE_OP_GETITEM;
}

static tare_status check_operator(lint *l, const advice *at, const char *target) {
    if (!is_exported(target))
        return tare__lint_warning(l, at, "torch.export makes no calls of '%s'", target);
    return tare__op_function(target) != NULL
               ? TARE_OK
               : tare__lint_warning(l, at, "the operator '%s' is not known", target);
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

// True if `earlier` matches every form of the rule, which therefore never applies.
static tare_status takes_all(lint *l, const data_rule *earlier, const data_rule *rule, bool *out) {
    *out = earlier->origin_count == 0 && (!earlier->is_for_training || rule->is_for_training);
    for (size_t f = 0; f < rule->forms.count && *out; f++) {
        subgraph_matches matches = {0};
        for (size_t e = 0; e < earlier->forms.count; e++)
            TARE_TRY(tare__subgraph_find(earlier->forms.items[e], rule->forms.items[f]->graph,
                                         &l->memory, &matches, l->err));
        *out = matches.count > 0;
    }
    return TARE_OK;
}

static tare_status check_rule(lint *l, size_t index) {
    const data_rule *rule = &l->q->rules[index];
    advice at = {.remedy = "write it in functions of torch, or with the operator's exported name"};
    for (size_t f = 0; f < rule->forms.count && !rule->is_ready_made; f++) {
        (void)snprintf(at.path, sizeof at.path, "$.rules[%zu].pattern", index);
        TARE_TRY(check_form(l, &at, rule->forms.items[f]));
    }
    at.remedy = "put the larger pattern first";
    (void)snprintf(at.path, sizeof at.path, "$.rules[%zu]", index);
    for (size_t i = 0; i < index; i++) {
        bool is_taken = false;
        TARE_TRY(takes_all(l, &l->q->rules[i], rule, &is_taken));
        if (is_taken)
            return tare__lint_warning(l, &at,
                                      "rule '%s' never applies: rule '%s' matches its nodes before",
                                      rule->name, l->q->rules[i].name);
    }
    return TARE_OK;
}

// --- overlaps of lists and rules ---

// The rule that matches a single call of the operator; NULL: there is none.
static const data_rule *rule_of(const data_quantizer *q, const char *target) {
    for (size_t i = 0; i < q->rule_count; i++) {
        const data_rule *rule = &q->rules[i];
        if (rule->origin_count > 0 || rule->is_for_training) continue;
        for (size_t f = 0; f < rule->forms.count; f++) {
            const graph *g = rule->forms.items[f]->graph;
            const node *only = NULL;
            size_t calls = 0;
            for (const node *n = g->first; n != NULL; n = n->next)
                if (tare__node_is_call(n)) {
                    only = n;
                    calls++;
                }
            if (calls == 1 && strcmp(only->target, target) == 0) return rule;
        }
    }
    return NULL;
}

static tare_status check_overlap(lint *l, const char *key, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        advice at = {.remedy = "say it in one place"};
        const data_rule *rule = rule_of(l->q, names[i]);
        (void)snprintf(at.path, sizeof at.path, "$.%s[%zu]", key, i);
        if (rule != NULL)
            TARE_TRY(tare__lint_warning(l, &at, "rule '%s' matches calls of '%s' before",
                                        rule->name, names[i]));
        if (names != l->q->joins_inputs && tare__name_is_listed(names[i], l->q->joins_inputs))
            TARE_TRY(tare__lint_warning(l, &at, "'%s' is in joins_inputs, too", names[i]));
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[k], names[i]) == 0)
                TARE_TRY(tare__lint_warning(l, &at, "'%s' stands here twice", names[i]));
    }
    return TARE_OK;
}

static tare_status look(lint *l) {
    const data_quantizer *q = l->q;
    TARE_TRY(check_use(l));
    TARE_TRY(tare__lint_specs(l));
    for (size_t i = 0; i < q->rule_count; i++) TARE_TRY(check_rule(l, i));
    TARE_TRY(check_list(l, "keeps_observer", q->keeps_observer));
    TARE_TRY(check_overlap(l, "keeps_observer", q->keeps_observer));
    TARE_TRY(check_list(l, "joins_inputs", q->joins_inputs));
    TARE_TRY(check_overlap(l, "joins_inputs", q->joins_inputs));
    return check_list(l, "lifts_scalars", q->lifts_scalars);
}

tare_status tare_quantizer_lint(const tare_quantizer *q, tare_quantizer_finding_visitor visit,
                                void *user, size_t *count, tare_error *err) {
    lint l = {.q = tare__data_quantizer_of(q), .visit = visit, .user = user, .err = err};
    tare_status status = l.q != NULL ? look(&l) : TARE_OK;
    for (size_t i = 0; i < q->member_count && status == TARE_OK; i++) {
        size_t more = 0;
        status = tare_quantizer_lint(q->members[i], visit, user, &more, err);
        l.count += more;
    }
    tare__arena_release(&l.memory);
    if (status == TARE_OK) *count = l.count;
    return status;
}

static tare_status refuse_error(void *user, const tare_quantizer_finding *finding,
                                tare_error *err) {
    (void)user;
    if (!finding->is_error) return TARE_OK;
    const tare_status status = tare__fail(err, TARE_INVALID_ARGUMENT, "%s", finding->problem);
    tare__hint(err, status, "%s", finding->remedy);
    return tare__at(err, status, "%s", finding->path);
}

tare_status tare__quantizer_check(const tare_quantizer *q, tare_error *err) {
    lint l = {.q = tare__data_quantizer_of(q), .visit = refuse_error, .err = err};
    tare_status status = l.q != NULL ? tare__lint_specs(&l) : TARE_OK;
    tare__arena_release(&l.memory);
    if (status != TARE_OK) return tare__at(err, status, "quantizer '%s'", tare_quantizer_name(q));
    for (size_t i = 0; i < q->member_count && status == TARE_OK; i++)
        status = tare__quantizer_check(q->members[i], err);
    return status;
}
