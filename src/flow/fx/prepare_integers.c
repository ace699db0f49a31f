// SPDX-License-Identifier: Apache-2.0
// Prepare: finds values that are integers, bools or numbers, which are not quantized. torch does
// not check this: it observes a reshaped mask, and fails when it quantizes it.
#include "flow/fx/prepare.h"
#include "model/shapes.h"
#include "ops/interpret.h"
#include "ops/op.h"

static tare_status note_integers(void *user, const node *n, const value *result, tare_error *err) {
    (void)err;
    prepare_pass *p = user;
    prepare_node *entry = tare__prepare_node(p, n);
    double number;
    if (entry == NULL) return TARE_OK;
    if (result->kind == VALUE_TENSOR)
        entry->is_integer = !tare__dtype(result->as.tensor->dtype)->is_float;
    else
        entry->is_integer = tare__value_number(result, &number); // x.dim(), x.numel()
    return TARE_OK;
}

// Meta tensors for the inputs, with the shapes of export or calibration.
static tare_status make_inputs(const graph *g, value *inputs, size_t *count, bool *is_known,
                               tare_error *err) {
    *is_known = true;
    for (const node *n = g->first; n != NULL && *is_known; n = n->next) {
        data_input input;
        tare_tensor *t = NULL;
        if (!tare__node_is_input(n)) continue;
        TARE_TRY(tare__describe_input(n, &input, err));
        *is_known = input.ndim >= 0 && input.dtype != TARE_DTYPE_UNSET;
        if (!*is_known) break;
        TARE_TRY(tare__meta_input(&input, 1, &t, err));
        inputs[(*count)++] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    }
    return TARE_OK;
}

// Runs shape rules only. Values that depend on data count as float.
static tare_status run_shapes(prepare_pass *p, const value *inputs, size_t count) {
    arena memory = {0};
    value result = {0};
    const interpreter it = {.root = p->base->model->root,
                            .thread_count = 1,
                            .shapes_only = true,
                            .passes_over = true,
                            .after = note_integers,
                            .user = p};
    const tare_status status = tare__interpret(&it, inputs, count, &memory, &result, NULL);
    if (status == TARE_OK) tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(p->base->err) : TARE_OK;
}

tare_status tare__prepare_find_integers(prepare_pass *p) {
    const size_t most = tare_model_input_count(p->base->model);
    value *inputs = tare__arena_array(&p->base->scratch, most + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(p->base->err);
    size_t count = 0;
    bool is_known = false;
    tare_status status =
        make_inputs(p->base->model->root->graph, inputs, &count, &is_known, p->base->err);
    if (status == TARE_OK && is_known) status = run_shapes(p, inputs, count);
    for (size_t i = 0; i < count; i++) tare__value_release_tensors(&inputs[i]);
    return status;
}
