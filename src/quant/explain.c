// SPDX-License-Identifier: Apache-2.0
// Explain: one sentence per operator of the float model, from the record.
#include <string.h>

#include "quant/coverage.h"
#include "quant/pass.h"

// The decision that settled an operator: the last one about it, passes in order; warnings aside.
static const tare_decision *settled_by(const tare_model *model, const char *name) {
    const tare_decision *last = NULL;
    for (size_t i = 0; i < model->decisions.count; i++) {
        const tare_decision *d = &model->decisions.items[i];
        if (strcmp(d->node, name) == 0 && strcmp(d->decision, "warning") != 0) last = d;
    }
    return last;
}

// What a model has become of an operator, in a word.
static const char *outcome(const tare_model *model, const traced_op *op) {
    if (model->stage < TARE_STAGE_REFERENCE) return "float so far";
    return op->is_quantized ? "quantized" : "left float";
}

// Why it is so. An operator inside a fused one shares the reason of that one, and says so.
static void write_reason(const tare_model *model, const traced_op *op, text *out) {
    const traced_op *host = tare__traced_carrier(model, op);
    const tare_decision *d = settled_by(model, host->name);
    if (host != op) {
        const tare_decision *own = settled_by(model, op->name);
        tare__text_append(out, own != NULL ? own->reason : "fused");
        if (d == NULL || (own != NULL && strcmp(own->reason, d->reason) == 0)) return;
        tare__text_append(out, "; ");
    }
    if (d != NULL)
        tare__text_append(out, d->reason);
    else if (host == op)
        tare__text_append(out, op->is_quantized ? "it reads and gives quantized values"
                                                : "no decision was recorded");
    // A node can be observed and stay float: its neighbours do not pair up into an integer
    // operator.
    if (d != NULL && strcmp(d->decision, "observed") == 0 && !host->is_quantized &&
        model->stage >= TARE_STAGE_REFERENCE)
        tare__text_append(out, ", but no integer form of it exists between its neighbours");
}

static void explain_op(const tare_model *model, const traced_op *op, text *out) {
    tare__text_printf(out, "%s (%s): %s: ", op->name, op->subject, outcome(model, op));
    write_reason(model, op, out);
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
    if (name == NULL || tare__traced_op(model, name) != NULL || settled_by(model, name) != NULL)
        return TARE_OK;
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
    tare__text_append(&out, "}\n");
    return tare__text_write(&out, status, write, user, err);
}
