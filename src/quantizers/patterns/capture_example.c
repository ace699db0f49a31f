// SPDX-License-Identifier: Apache-2.0
// Runs a pattern on an example. A symbolic size is replaced by a large prime that models do not
// use; results that are multiples of it depend on the size.
#include "quantizers/patterns/capture_example.h"

#include "core/tensor/tensor.h"
#include "ops/classes/classes.h"
#include "ops/interpret.h"
#include "ops/op.h"

static const int64_t symbols[] = {10007, 10009, 10037, 10039};
enum { SYMBOL_COUNT = sizeof symbols / sizeof *symbols };

bool tare__capture_is_symbolic(int64_t size) {
    for (size_t i = 0; i < SYMBOL_COUNT; i++)
        if (size != 0 && size % symbols[i] == 0) return true;
    return false;
}

// Keeps numbers, and the rank of tensors; copies what is in the run's memory.
static tare_status keep_fact(arena *memory, const value *v, value *out, tare_error *err) {
    *out = *v;
    if (v->kind == VALUE_TENSOR) {
        *out = (value){.kind = VALUE_TENSOR, .count = (uint32_t)v->as.tensor->ndim};
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return tare__value_copy(memory, v, NULL, NULL, out, err);
    *out = tare__value_sequence(memory, v->kind, v->count);
    if (out->as.items == NULL) return tare__out_of_memory(err);
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(keep_fact(memory, &v->as.items[i], &out->as.items[i], err));
    return TARE_OK;
}

typedef struct recording {
    capture_facts *facts;
    arena *memory;
} recording;

static tare_status record(void *user, const node *n, const value *result, tare_error *err) {
    recording *r = user;
    r->facts->is_known[n->id] = true;
    return keep_fact(r->memory, result, &r->facts->by_id[n->id], err);
}

static tare_status make_tensor(const capture_input *input, value *out, tare_error *err) {
    int64_t shape[8];
    tare_tensor *made = NULL;
    if (input->rank < 0 || input->rank > 8)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected at most 8 dimensions, found %d",
                          input->rank);
    for (int i = 0; i < input->rank; i++) {
        shape[i] = input->shape[i];
        if (shape[i] < -SYMBOL_COUNT)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "expected a size, or -1 to -%d for a symbolic one, found %lld",
                              SYMBOL_COUNT, (long long)shape[i]);
        if (shape[i] < 0) shape[i] = symbols[-1 - shape[i]];
    }
    const tare_dtype dtype = input->dtype != TARE_DTYPE_UNSET ? input->dtype : TARE_FLOAT32;
    TARE_TRY(tare__tensor_meta(dtype, input->rank, shape, NULL, &made, err));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = made};
    return TARE_OK;
}

static tare_status make_inputs(const subgraph_pattern *p, const capture_example *example,
                               value *inputs, size_t *made, tare_error *err) {
    for (const node *n = p->graph->first; n != NULL && n->op == NODE_PLACEHOLDER; n = n->next) {
        if (*made == example->count)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "the example has %zu inputs, none for '%s'", *made, n->name);
        const capture_input *input = &example->inputs[*made];
        if (input->is_constant)
            inputs[*made] = input->constant;
        else
            TARE_TRY(tare__at(err, make_tensor(input, &inputs[*made], err), "'%s'", n->name));
        (*made)++;
    }
    if (*made == example->count) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "the example has %zu inputs, the pattern %zu parameters", example->count,
                      *made);
}

static tare_status interpret(subgraph_pattern *p, const value *inputs, size_t count, recording *r,
                             tare_error *err) {
    module *root = NULL;
    TARE_TRY(tare__module_create(&tare__class_graph_module, &root, err));
    root->graph = p->graph;
    const interpreter it = {.root = root, .shapes_only = true, .after = record, .user = r};
    arena memory = {0};
    value result = {.kind = VALUE_NONE};
    const tare_status status = tare__interpret(&it, inputs, count, &memory, &result, err);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    root->graph = NULL;
    tare__module_release(root);
    return status;
}

tare_status tare__capture_run(subgraph_pattern *p, const capture_example *example, arena *memory,
                              capture_facts *out, tare_error *err) {
    *out = (capture_facts){.count = p->graph->next_id};
    out->by_id = tare__arena_array(memory, out->count + 1, sizeof *out->by_id);
    out->is_known = tare__arena_array(memory, out->count + 1, sizeof *out->is_known);
    value *inputs = tare__arena_array(memory, example->count + 1, sizeof *inputs);
    if (out->by_id == NULL || out->is_known == NULL || inputs == NULL)
        return tare__out_of_memory(err);
    recording r = {.facts = out, .memory = memory};
    size_t made = 0;
    tare_status status = make_inputs(p, example, inputs, &made, err);
    if (status == TARE_OK) status = interpret(p, inputs, made, &r, err);
    for (size_t i = 0; i < made; i++) tare__value_release_tensors(&inputs[i]);
    return status;
}
