// SPDX-License-Identifier: Apache-2.0
// Explain: one sentence per operator of the float model, from the decision record.
#include <string.h>

#include "model/coverage.h"
#include "model/pass.h"
#include "ops/flow_op.h"

// A decision about measured times only.
#define MEASURED "measured"

static bool is_one_of(const char *decision, const char *const *list) {
    while (*list != NULL && strcmp(decision, *list) != 0) list++;
    return *list != NULL;
}

// "PATH/" in the name of an operator of a graph inside; empty for the others.
static size_t prefix_length(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash != NULL ? (size_t)(slash - name) + 1 : 0;
}

// The last of these decisions about the node `name` of the graph that `like` is of.
static const tare_decision *last_of(const tare_model *model, const char *like, const char *name,
                                    const char *const *decisions) {
    const tare_decision *last = NULL;
    const size_t length = prefix_length(like);
    for (size_t i = 0; i < model->decisions.count; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (strncmp(d->node, like, length) == 0 && strcmp(d->node + length, name) == 0 &&
            is_one_of(d->decision, decisions))
            last = d;
    }
    return last;
}

static const char *const settling[] = {"observed", "annotated", "left float",
                                       "lowered",  "fused",     NULL};
static const char *const notes[] = {"folded", "rewritten", "dropped", NULL};

// The text about measured times; "" if there is none.
static const char *measured(const tare_model *model, const char *name) {
    const char *words = "";
    for (size_t i = 0; i < model->decisions.count; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (strcmp(d->decision, MEASURED) == 0 && strcmp(d->node, name) == 0) words = d->reason;
    }
    return words;
}

// The first node with an origin, and the module whose graph it is of.
typedef struct place {
    const module *root;
    const node *found;
} place;

static bool find_in(const module *root, const char *origin, place *at) {
    // Nodes of a graph inside have names PATH/NODE as their origin.
    const char *slash = strchr(origin, '/');
    for (const char *rest = origin; root != NULL && root->graph != NULL && slash != NULL;
         slash = strchr(rest, '/')) {
        root = tare__module_find_n(root, rest, (size_t)(slash - rest));
        rest = slash + 1;
    }
    if (root == NULL || root->graph == NULL) return false;
    for (const node *n = root->graph->first; n != NULL; n = n->next)
        if (n->origin != NULL && strcmp(n->origin, origin) == 0) {
            *at = (place){root, n};
            return true;
        }
    return false;
}

// The last of these decisions about an operator, or about the node that replaced it.
static const tare_decision *last_for(const tare_model *model, const char *name,
                                     const char *const *decisions) {
    place at;
    const tare_decision *found = last_of(model, name, name + prefix_length(name), decisions);
    if (found != NULL || !find_in(model->root, name, &at)) return found;
    for (const node *n = at.found; n != NULL && found == NULL; n = n->next)
        if (n->origin != NULL && strcmp(n->origin, name) == 0)
            found = last_of(model, name, n->name, decisions);
    return found;
}

// The decision that determined how an operator is computed: the last one, in the order of passes.
// Notes on its weight count only if there is no other.
static const tare_decision *settled_for(const tare_model *model, const char *name) {
    const tare_decision *d = last_for(model, name, settling);
    return d != NULL ? d : last_for(model, name, notes);
}

// Writes the reason of an operator in integers about which no pass decided: the model came with it.
static void write_as_it_came(const tare_model *model, const traced_op *op, text *out) {
    place at;
    const module *m = find_in(model->root, op->name, &at) && at.found->op == NODE_CALL_MODULE
                          ? tare__module_find(at.root, at.found->target)
                          : NULL;
    const bool is_grouped = m != NULL && m->class->role == ROLE_GROUPED;
    tare__text_append(out, is_grouped ? "its weights are integers, rows of its input are quantized "
                                        "at run time"
                                      : "it reads quantized values and gives such");
}

// The outcome for an operator, in a few words.
static const char *outcome(const tare_model *model, const traced_op *op) {
    if (model->stage < TARE_STAGE_REFERENCE) return "float so far";
    return op->is_quantized ? "quantized" : "left float";
}

// True if the decision contradicts the final model.
static bool is_contradicted(const tare_model *model, const traced_op *host,
                            const tare_decision *d) {
    return model->stage >= TARE_STAGE_REFERENCE && host->is_quantized &&
           strcmp(d->decision, "left float") == 0;
}

// Writes into which operator this one was fused.
static void write_host(const tare_model *model, const traced_op *op, const traced_op *host,
                       text *out) {
    const tare_decision *own = settled_for(model, op->name);
    if (own != NULL)
        tare__text_append(out, own->reason);
    else
        tare__text_printf(out, "fused into '%s'", host->name);
}

// Writes the reason. For a fused operator, the reason is that of the operator into which it was
// fused, which the sentence names.
static void write_reason(const tare_model *model, const traced_op *op, text *out) {
    const traced_op *host = tare__traced_carrier(model, op);
    const tare_decision *d = settled_for(model, host->name);
    place at;
    if (host != op) {
        const tare_decision *own = settled_for(model, op->name);
        write_host(model, op, host, out);
        if (d == NULL || (own != NULL && strcmp(own->reason, d->reason) == 0)) return;
        tare__text_append(out, "; ");
    }
    if (d != NULL && !is_contradicted(model, host, d))
        tare__text_append(out, d->reason);
    else if (host->is_quantized)
        write_as_it_came(model, host, out);
    else if (host == op)
        tare__text_append(out, find_in(model->root, op->name, &at)
                                   ? "no pass has decided about it"
                                   : "nothing in the converted model needs its result");
    // A node may be observed and still stay float, if with its neighbours it does not form an
    // integer operator.
    const bool is_watched = d != NULL && (strcmp(d->decision, "observed") == 0 ||
                                          strcmp(d->decision, "annotated") == 0);
    if (is_watched && !host->is_quantized && model->stage >= TARE_STAGE_REFERENCE)
        tare__text_append(out, ", but no integer form of it exists between its neighbours");
}

static void explain_op(const tare_model *model, const traced_op *op, text *out) {
    tare__text_printf(out, "%s (%s): %s: ", op->name, op->subject, outcome(model, op));
    write_reason(model, op, out);
    const char *times = measured(model, tare__traced_carrier(model, op)->name);
    if (times[0] != '\0') tare__text_printf(out, "; %s", times);
    tare__text_append(out, "\n");
}

static void explain_decision(const tare_decision *d, text *out) {
    tare__text_printf(out, "  %s: %s: %s%s%s%s\n", d->pass, d->decision, d->reason,
                      d->rule[0] != '\0' ? " [" : "", d->rule, d->rule[0] != '\0' ? "]" : "");
}

static const char *op_name_at(const void *user, size_t index) {
    const tare_model *model = user;
    return index < model->op_count ? model->ops[index].name : NULL;
}

static tare_status check_node(const tare_model *model, const char *name, tare_error *err) {
    if (name == NULL || tare__traced_op(model, name) != NULL) return TARE_OK;
    for (size_t i = 0; i < model->decisions.count; i++)
        if (strcmp(model->decisions.items[i].node, name) == 0) return TARE_OK;
    return tare__suggest(err,
                         tare__fail(err, TARE_NOT_FOUND, "no decision about a node '%s'", name),
                         name, op_name_at, model);
}

static void explain_warnings(const tare_model *model, text *out) {
    for (size_t i = 0; i < model->decisions.count; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (strcmp(d->decision, "warning") == 0)
            tare__text_printf(out, "warning: %s%s%s\n", d->node, d->node[0] != '\0' ? ": " : "",
                              d->reason);
    }
}

// --- all facts about one node ---

static bool is_of(const fact *row, size_t column, const char *name) {
    return strcmp(row->columns[column], name) == 0;
}

static void explain_pattern(const tare_model *model, const fact *about, text *out) {
    const fact_table *tries = &model->facts.tables[FACT_PATTERN];
    if (about->columns[NODE_PATTERN][0] != '\0')
        tare__text_printf(out, "  pattern: %s%s\n", about->columns[NODE_PATTERN],
                          is_of(about, NODE_PLACE, "inside") ? ", inside" : "");
    else
        tare__text_printf(out, "  pattern: %s\n",
                          about->columns[NODE_PLACE][0] != '\0' ? about->columns[NODE_PLACE]
                                                                : "none");
    for (size_t i = 0; i < tries->count; i++)
        if (is_of(&tries->rows[i], PATTERN_OF, about->columns[NODE_NAME]))
            tare__text_printf(out, "    not %s: %s\n", tries->rows[i].columns[PATTERN_TEXT],
                              tries->rows[i].columns[PATTERN_WHY]);
}

static void explain_dtypes(const tare_model *model, const char *name, text *out) {
    const fact_table *dtypes = &model->facts.tables[FACT_DTYPES];
    for (size_t i = 0; i < dtypes->count; i++) {
        const fact *row = &dtypes->rows[i];
        if (!is_of(row, DTYPES_OF, name)) continue;
        tare__text_printf(out, "  dtypes %s: %s", row->columns[DTYPES_INDEX],
                          row->columns[DTYPES_OUTCOME]);
        if (row->columns[DTYPES_WHY][0] != '\0')
            tare__text_printf(out, ": %s [%s]", row->columns[DTYPES_WHY],
                              row->columns[DTYPES_CONSTRAINT]);
        tare__text_char(out, '\n');
    }
}

static void explain_qconfig(const fact *about, text *out) {
    if (about->columns[NODE_QCONFIG][0] == '\0') {
        tare__text_append(out, "  qconfig: none");
    } else {
        tare__text_printf(out, "  qconfig: %s", about->columns[NODE_QCONFIG]);
    }
    if (about->columns[NODE_SECTION][0] != '\0')
        tare__text_printf(out, " [%s%s%s]", about->columns[NODE_SECTION],
                          about->columns[NODE_KEY][0] != '\0' ? ": " : "",
                          about->columns[NODE_KEY]);
    tare__text_char(out, '\n');
}

static void explain_edges(const tare_model *model, const char *name, text *out) {
    const fact_table *edges = &model->facts.tables[FACT_EDGE];
    for (size_t i = 0; i < edges->count; i++) {
        const fact *row = &edges->rows[i];
        if (!is_of(row, EDGE_FROM, name) && !is_of(row, EDGE_TO, name)) continue;
        tare__text_printf(out, "  edge %s -> %s %s (%s): ", row->columns[EDGE_FROM],
                          row->columns[EDGE_TO], row->columns[EDGE_ARGUMENT],
                          row->columns[EDGE_ROLE]);
        if (row->columns[EDGE_OBSERVER][0] != '\0')
            tare__text_printf(out, "%s (%s): ", row->columns[EDGE_OBSERVER],
                              row->columns[EDGE_CLASS]);
        tare__text_printf(out, "%s\n", row->columns[EDGE_RULE]);
    }
}

// Writes the quantizer's decision about the node.
static void explain_annotation(const fact *about, text *out) {
    tare__text_printf(out, "  quantizer: %s", about->columns[NODE_QUANTIZER]);
    if (about->columns[NODE_PATTERN][0] != '\0')
        tare__text_printf(out, ", rule %s", about->columns[NODE_PATTERN]);
    if (about->columns[NODE_PLACE][0] == '\0') tare__text_append(out, ", no rule");
    if (is_of(about, NODE_PLACE, "inside")) tare__text_append(out, ", inside its pattern");
    if (about->columns[NODE_SECTION][0] != '\0')
        tare__text_printf(out, " [%s%s%s]", about->columns[NODE_SECTION],
                          about->columns[NODE_KEY][0] != '\0' ? ": " : "",
                          about->columns[NODE_KEY]);
    if (about->columns[NODE_OUTPUT_SPEC][0] != '\0')
        tare__text_printf(out, "\n  output: %s", about->columns[NODE_OUTPUT_SPEC]);
    tare__text_char(out, '\n');
}

static void explain_facts(const tare_model *model, const char *name, text *out) {
    const fact_table *nodes = &model->facts.tables[FACT_NODE];
    for (size_t i = 0; i < nodes->count; i++) {
        if (!is_of(&nodes->rows[i], NODE_NAME, name)) continue;
        if (nodes->rows[i].columns[NODE_QUANTIZER][0] != '\0') {
            explain_annotation(&nodes->rows[i], out);
            continue;
        }
        explain_pattern(model, &nodes->rows[i], out);
        explain_qconfig(&nodes->rows[i], out);
        explain_dtypes(model, name, out);
    }
    explain_edges(model, name, out);
}

tare_status tare_model_explain(const tare_model *model, const char *name, tare_writer write,
                               void *user, tare_error *err) {
    TARE_TRY(check_node(model, name, err));
    text out = {0};
    for (size_t i = 0; i < model->op_count; i++)
        if (name == NULL || strcmp(model->ops[i].name, name) == 0)
            explain_op(model, &model->ops[i], &out);
    if (name == NULL) {
        explain_warnings(model, &out);
    } else {
        for (size_t i = 0; i < model->decisions.count; i++)
            if (strcmp(model->decisions.items[i].node, name) == 0)
                explain_decision(&model->decisions.items[i], &out);
        explain_facts(model, name, &out);
    }
    return tare__text_write(&out, TARE_OK, write, user, err);
}

static void op_to_json(const tare_model *model, const traced_op *op, text *out) {
    text reason = {0};
    write_reason(model, op, &reason);
    tare__text_append(out, "{\"name\":");
    tare__text_json_string(out, op->name);
    tare__text_append(out, ",\"subject\":");
    tare__text_json_string(out, op->subject);
    tare__text_append(out, ",\"outcome\":");
    tare__text_json_string(out, outcome(model, op));
    tare__text_append(out, ",\"reason\":");
    tare__text_json_string(out, tare__text_chars(&reason));
    tare__text_printf(out, ",\"macs\":%lld}", (long long)op->macs);
    if (reason.failed) out->failed = true;
    tare__text_release(&reason);
}

static tare_status decisions_to_json(const tare_model *model, const char *name, text *out,
                                     tare_error *err) {
    record chosen = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < model->decisions.count && status == TARE_OK; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (name == NULL || strcmp(d->node, name) == 0)
            status = tare__record_add(&chosen, d, err, "%s", d->reason);
    }
    if (status == TARE_OK) status = tare__record_to_json(&chosen, out, err);
    tare__record_release(&chosen);
    return status;
}

// Writes one member of an object; nothing for "".
static void member_to_json(const char *separator, const char *key, const char *member, text *out) {
    if (member[0] == '\0') return;
    tare__text_printf(out, "%s\"%s\":", separator, key);
    tare__text_json_string(out, member);
}

// Writes the columns from `first` on as one object.
static void row_to_json(const fact *row, fact_kind kind, size_t first, text *out) {
    const char *separator = "{";
    for (size_t c = first; tare__fact_column(kind, c) != NULL; c++) {
        member_to_json(separator, tare__fact_column(kind, c), row->columns[c], out);
        if (row->columns[c][0] != '\0') separator = ",";
    }
    tare__text_append(out, separator[0] == '{' ? "{}" : "}");
}

// Writes an array of the rows about one node.
static void rows_to_json(const tare_model *model, fact_kind kind, const char *name, text *out) {
    const fact_table *t = &model->facts.tables[kind];
    const char *separator = "";
    tare__text_char(out, '[');
    for (size_t i = 0; i < t->count; i++) {
        if (!is_of(&t->rows[i], 0, name)) continue;
        tare__text_append(out, separator);
        row_to_json(&t->rows[i], kind, 1, out);
        separator = ",";
    }
    tare__text_char(out, ']');
}

static const char *kernel_of(const tare_model *model, const char *name) {
    const char *kernel = "";
    for (size_t i = 0; i < model->decisions.count; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (strcmp(d->node, name) == 0 && strcmp(d->decision, "lowered") == 0) kernel = d->rule;
    }
    return kernel;
}

static void outcome_to_json(const tare_model *model, const char *name, text *out) {
    const traced_op *op = tare__traced_op(model, name);
    if (op == NULL) return;
    text reason = {0};
    write_reason(model, op, &reason);
    member_to_json(",", "outcome", outcome(model, op), out);
    member_to_json(",", "kernel", kernel_of(model, name), out);
    member_to_json(",", "reason", tare__text_chars(&reason), out);
    if (reason.failed) out->failed = true;
    tare__text_release(&reason);
}

static void node_to_json(const tare_model *model, const fact *about, text *out) {
    const char *name = about->columns[NODE_NAME];
    tare__text_char(out, '{');
    member_to_json("", "name", name, out);
    member_to_json(",", "operator", about->columns[NODE_OPERATOR], out);
    member_to_json(",", "pattern", about->columns[NODE_PATTERN], out);
    member_to_json(",", "place", about->columns[NODE_PLACE], out);
    tare__text_append(out, ",\"not_matched\":");
    rows_to_json(model, FACT_PATTERN, name, out);
    member_to_json(",", "qconfig", about->columns[NODE_QCONFIG], out);
    member_to_json(",", "section", about->columns[NODE_SECTION], out);
    member_to_json(",", "key", about->columns[NODE_KEY], out);
    member_to_json(",", "quantizer", about->columns[NODE_QUANTIZER], out);
    member_to_json(",", "output", about->columns[NODE_OUTPUT_SPEC], out);
    tare__text_append(out, ",\"dtypes\":");
    rows_to_json(model, FACT_DTYPES, name, out);
    outcome_to_json(model, name, out);
    tare__text_char(out, '}');
}

static void facts_to_json(const tare_model *model, const char *name, text *out) {
    const fact_table *nodes = &model->facts.tables[FACT_NODE];
    const fact_table *edges = &model->facts.tables[FACT_EDGE];
    const char *separator = "";
    tare__text_append(out, ",\"nodes\":[");
    for (size_t i = 0; i < nodes->count; i++) {
        if (name != NULL && !is_of(&nodes->rows[i], NODE_NAME, name)) continue;
        tare__text_append(out, separator);
        node_to_json(model, &nodes->rows[i], out);
        separator = ",";
    }
    tare__text_append(out, "],\"edges\":[");
    separator = "";
    for (size_t i = 0; i < edges->count; i++) {
        const fact *row = &edges->rows[i];
        if (name != NULL && !is_of(row, EDGE_FROM, name) && !is_of(row, EDGE_TO, name)) continue;
        tare__text_append(out, separator);
        row_to_json(row, FACT_EDGE, 0, out);
        separator = ",";
    }
    tare__text_char(out, ']');
}

tare_status tare_model_explain_json(const tare_model *model, const char *name, tare_writer write,
                                    void *user, tare_error *err) {
    TARE_TRY(check_node(model, name, err));
    text out = {0};
    const char *separator = "";
    tare__text_append(&out, "{\"operators\":[");
    for (size_t i = 0; i < model->op_count; i++) {
        if (name != NULL && strcmp(model->ops[i].name, name) != 0) continue;
        tare__text_append(&out, separator);
        op_to_json(model, &model->ops[i], &out);
        separator = ",";
    }
    tare__text_append(&out, "],\"decisions\":");
    const tare_status status = decisions_to_json(model, name, &out, err);
    facts_to_json(model, name, &out);
    tare__text_append(&out, "}\n");
    return tare__text_write(&out, status, write, user, err);
}
