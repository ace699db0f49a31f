// SPDX-License-Identifier: Apache-2.0
// The identity of a model, as lines of text, so that differences can be shown.
#include "flow/calibrate/calibration_identity.h"

#include <inttypes.h>
#include <string.h>

#include "core/hash/digest.h"
#include "core/memory/alloc.h"
#include "ops/text/print.h"

static void release_list(name_list *list) {
    for (size_t i = 0; i < list->count; i++) tare__free(list->items[i]);
    tare__free(list->items);
    *list = (name_list){0};
}

void tare__identity_release(model_identity *id) {
    release_list(&id->nodes);
    release_list(&id->modules);
    release_list(&id->tensors);
}

tare_status tare__identity_add(name_list *list, const char *line, size_t length, tare_error *err) {
    char *copy = tare__strndup(line, length);
    if (copy != NULL &&
        tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items)) {
        list->items[list->count++] = copy;
        return TARE_OK;
    }
    tare__free(copy);
    return tare__out_of_memory(err);
}

static tare_status add_text(name_list *list, text *line, tare_error *err) {
    tare_status status = tare__text_status(line, err);
    if (status == TARE_OK)
        status = tare__identity_add(list, tare__text_chars(line), line->length, err);
    tare__text_release(line);
    return status;
}

// --- what there is ---

// The first line is "graph():".
static tare_status add_nodes(const graph *g, name_list *nodes, tare_error *err) {
    text printed = {0};
    tare_status status = tare__print_graph(g, &printed, err);
    if (status == TARE_OK) status = tare__text_status(&printed, err);
    const char *at = status == TARE_OK ? strchr(tare__text_chars(&printed), '\n') : NULL;
    while (at != NULL && status == TARE_OK) {
        const char *line = at + 1 + strspn(at + 1, " ");
        at = strchr(line, '\n');
        const size_t length = at != NULL ? (size_t)(at - line) : strlen(line);
        if (length > 0) status = tare__identity_add(nodes, line, length, err);
    }
    tare__text_release(&printed);
    return status;
}

static tare_status add_module(name_list *modules, const char *path, const module *m,
                              tare_error *err) {
    text line = {0};
    if (m->class->role == ROLE_CONTAINER) return TARE_OK; // it has no parameters of its own
    tare__text_printf(&line, "%s: %s(", path, m->class->name);
    for (size_t i = 0; i < m->config_count; i++) {
        tare__text_printf(&line, "%s%s=", i > 0 ? ", " : "", m->config[i].name);
        tare__print_value(&m->config[i].value, &line);
    }
    tare__text_char(&line, ')');
    return add_text(modules, &line, err);
}

static tare_status add_tensor(name_list *tensors, const char *path, const named_tensor *named,
                              tare_error *err) {
    const tare_tensor *t = named->tensor;
    text line = {0};
    tare__text_printf(&line, "%s%s%s: ", path, path[0] != '\0' ? "." : "", named->name);
    if (t == NULL || t->data == NULL) {
        tare__text_append(&line, "None");
        return add_text(tensors, &line, err);
    }
    tare__text_printf(&line, "%s[", tare_dtype_name(t->dtype));
    for (int d = 0; d < t->ndim; d++)
        tare__text_printf(&line, "%s%" PRId64, d > 0 ? ", " : "", t->shape[d]);
    tare__text_printf(&line, "] %016" PRIx64, tare__digest(0, t->data, tare__tensor_bytes(t)));
    return add_text(tensors, &line, err);
}

static tare_status add_contents(void *user, const char *path, module *m, tare_error *err) {
    model_identity *id = user;
    if (m->class->role == ROLE_OBSERVER) return TARE_OK;
    if (m->graph != NULL) TARE_TRY(add_nodes(m->graph, &id->nodes, err));
    TARE_TRY(add_module(&id->modules, path, m, err));
    for (size_t i = 0; i < m->tensor_count; i++)
        TARE_TRY(add_tensor(&id->tensors, path, &m->tensors[i], err));
    return TARE_OK;
}

static uint64_t hash_list(uint64_t before, const name_list *list) {
    for (size_t i = 0; i < list->count; i++)
        before = tare__digest(before, list->items[i], strlen(list->items[i]));
    return tare__digest(before, NULL, 0);
}

void tare__identity_hash(const model_identity *id, uint64_t *graph_hash, uint64_t *weight_hash) {
    *graph_hash = hash_list(hash_list(0, &id->nodes), &id->modules);
    *weight_hash = hash_list(0, &id->tensors);
}

tare_status tare__identity_of(const tare_model *model, model_identity *out, tare_error *err) {
    model_identity made = {0};
    const tare_status status = tare__module_walk(model->root, add_contents, &made, err);
    if (status != TARE_OK) {
        tare__identity_release(&made);
        return status;
    }
    tare__identity_hash(&made, &made.graph, &made.weights);
    *out = made;
    return TARE_OK;
}

// --- what differs ---

static const char *line_at(const name_list *list, size_t i) {
    return i < list->count ? list->items[i] : NULL;
}

// The first line at which the lists differ.
static bool find_difference(const name_list *ours, const name_list *theirs, const char **our_line,
                            const char **their_line) {
    const size_t most = ours->count > theirs->count ? ours->count : theirs->count;
    for (size_t i = 0; i < most; i++) {
        *our_line = line_at(ours, i);
        *their_line = line_at(theirs, i);
        if (*our_line == NULL || *their_line == NULL || strcmp(*our_line, *their_line) != 0)
            return true;
    }
    return false;
}

static tare_status other_item(const char *what, const char *ours, const char *theirs,
                              tare_error *err) {
    if (ours == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the state belongs to another model, which has one more %s: '%s'", what,
                          theirs);
    if (theirs == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the state belongs to another model, which lacks the %s '%s'", what,
                          ours);
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "the state belongs to another model: its %s is '%s', this model's is '%s'",
                      what, theirs, ours);
}

// For lines "name: type[shape] hash": do they differ only in the hash?
static tare_status other_tensor(const char *ours, const char *theirs, tare_error *err) {
    const char *hash = ours != NULL ? strrchr(ours, ' ') : NULL;
    const char *end = ours != NULL ? strchr(ours, ':') : NULL;
    const size_t alike = hash != NULL ? (size_t)(hash - ours) : 0;
    if (theirs == NULL || end == NULL || end > hash || strncmp(ours, theirs, alike + 1) != 0)
        return other_item("tensor", ours, theirs, err);
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "the state belongs to a model of the same graph with other weights: '%.*s' "
                      "has other values",
                      (int)(end - ours), ours);
}

tare_status tare__identity_check(const model_identity *ours, const model_identity *state,
                                 tare_error *err) {
    const char *our_line = NULL, *their_line = NULL;
    if (ours->graph == state->graph && ours->weights == state->weights) return TARE_OK;
    if (find_difference(&ours->nodes, &state->nodes, &our_line, &their_line))
        return other_item("node", our_line, their_line, err);
    if (find_difference(&ours->modules, &state->modules, &our_line, &their_line))
        return other_item("module", our_line, their_line, err);
    if (find_difference(&ours->tensors, &state->tensors, &our_line, &their_line))
        return other_tensor(our_line, their_line, err);
    return tare__fail(err, TARE_INVALID_ARGUMENT, "the state belongs to another model");
}
