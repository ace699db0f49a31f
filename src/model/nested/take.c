// SPDX-License-Identifier: Apache-2.0
// Takes a graph inside a graph out as a model for a pass, and puts back what the pass made.
#include "model/nested/nested.h"

#include "model/coverage.h"
#include "ops/flow_op.h"

// --- origins of nodes ---

static void strip_origins(module *root, const char *path) {
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        const char *name = n->origin != NULL ? tare__nested_name(n->origin, path) : NULL;
        if (name != NULL) n->origin = name;
        if (tare__reads_inner_graph(root, n)) strip_origins(tare__read_graph(root, n), path);
    }
}

static tare_status prefix_origins(module *root, const char *path, tare_error *err) {
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        if (n->origin != NULL) {
            n->origin = tare__arena_printf(&root->graph->memory, "%s/%s", path, n->origin);
            if (n->origin == NULL) return tare__out_of_memory(err);
        }
        if (tare__reads_inner_graph(root, n))
            TARE_TRY(prefix_origins(tare__read_graph(root, n), path, err));
    }
    return TARE_OK;
}

// --- records ---

static tare_status take_records(tare_model *outer, const char *path, tare_model *inner,
                                tare_error *err) {
    inner->engine = outer->engine;
    inner->is_inner = true;
    TARE_TRY(tare__record_copy_inner(&inner->decisions, &outer->decisions, path, err));
    TARE_TRY(tare__coverage_copy_inner(inner, outer, path, err));
    return tare__annotations_move_out(&outer->annotations, path, &inner->annotations, err);
}

tare_status tare__nested_open(tare_model *outer, const node *reader, module *root,
                              tare_model_stage stage, tare_model **out, tare_error *err) {
    tare_model *made = NULL;
    module *kept = tare__module_retain(root);
    const tare_status status = tare__model_create(outer->context, kept, stage, NULL, &made, err);
    if (status != TARE_OK) {
        tare__module_release(kept);
        return status;
    }
    *out = made;
    strip_origins(root, reader->target);
    return take_records(outer, reader->target, made, err);
}

// The operator that runs the graph, as the float model calls it.
static const char *operator_of(const node *reader) {
    for (size_t i = 0; i < reader->user_count; i++)
        if (tare__flow_op(reader->users[i]) != NULL) return reader->users[i]->origin;
    return NULL;
}

tare_status tare__nested_close(tare_model *outer, const node *reader, tare_model *made,
                               size_t known, tare_error *err) {
    const char *path = reader->target;
    TARE_TRY(prefix_origins(made->root, path, err));
    TARE_TRY(tare__record_append_inner(&outer->decisions, &made->decisions, known, path, '/', err));
    TARE_TRY(tare__facts_append_inner(&outer->facts, &made->facts, path, '/', err));
    TARE_TRY(tare__coverage_put_inner(outer, made, path, operator_of(reader), err));
    TARE_TRY(tare__module_set_path(outer->root, path, made->root, &tare__class_container, err));
    return tare__annotations_move_in(&outer->annotations, path, &made->annotations, err);
}
