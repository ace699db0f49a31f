// SPDX-License-Identifier: Apache-2.0
// Proves that samples are independent: for every operator it is known that items of dimension 0 do
// not affect each other, and the shapes of two runs show that dimension 0 is the batch. The number
// of samples may be the first size of a shape, and must not be used otherwise.
#include <string.h>

#include "core/memory/alloc.h"
#include "observe/fake_quantize.h"
#include "observe/observer.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/quantized/rule.h"
#include "runtime/plan/samples.h"

typedef enum node_kind {
    FIXED,   // independent of the data
    BATCHED, // a tensor whose items along dimension 0 belong to the samples
    ITEMS,   // a tuple or list of such tensors
    SAMPLES, // the number of samples, or a tuple that begins with it
    SIZE,    // no tensor: computed from that number, or from data
} node_kind;

// Facts about a node, by its id. The two runs have one and two samples.
typedef struct node_facts {
    node_kind kind;
    int ndim[2]; // -1: no tensor, or not reached
    int64_t shape[2][TARE_MAX_DIMS];
    value made[2]; // results that are no tensors; tensors inside them are released
    bool is_seen, is_elementwise, is_by_sample, is_by_matrix, is_not_on_tensors;
    bool gives_items, picks_item;
    bool takes_shape; // shape as its second argument
    bool measures;    // the result depends on all elements
    bool meets;       // combines samples, in one of the runs
} node_facts;

typedef struct proof {
    const tare_model *model;
    node_facts *facts;
    size_t count;
    int run;
    arena memory;
    const node_facts *at; // the node whose inputs are inspected
    bool any_batched, any_items, any_samples, any_size, is_refused;
} proof;

// --- what is called ---

static bool trains(const op_call *call) {
    op_call copy = *call;
    bool training = false;
    const size_t i = tare__op_param_index(call->op, "training");
    copy.err = NULL;
    if (i >= call->param_count || call->module != NULL) return false;
    return tare__call_bool(&copy, i, false, &training) != TARE_OK || training;
}

// The parameter that makes an operator use the batch's means; param_count: none. An instance is one
// sample.
static size_t batch_means(const op_info *op, size_t param_count) {
    const bool is_of_instances = tare__op_param_index(op, "use_input_stats") < param_count;
    return is_of_instances ? param_count : tare__op_param_index(op, "running_mean");
}

// Without running means, the batch's means are used.
static bool measures_batch(const op_call *call) {
    if (call->op == NULL) return false;
    const size_t i = batch_means(call->op, call->param_count);
    return i < call->param_count && !tare__call_given(call, i);
}

static bool has_trait(const op_info *op, unsigned trait) {
    return op != NULL && (op->traits & trait) != 0;
}

// A quantized operator combines the same elements as its float operator.
static const op_info *meaning_of(const op_info *op) {
    const op_info *row = op != NULL ? tare__quantized_rule_op(op) : NULL;
    return row != NULL ? row : op;
}

// True if an operator that works along one dimension of its first input works along that of the
// samples.
static bool runs_along_samples(const op_call *call) {
    op_call copy = *call;
    const size_t i = tare__op_param_index(call->op, "dim");
    int dim = 0;
    copy.err = NULL;
    const tare_tensor *x = call->param_count > 0 ? tare__call_tensor(&copy, 0) : NULL;
    return x == NULL || i >= call->param_count ||
           tare__call_dim(&copy, i, 0, x->ndim, &dim) != TARE_OK || dim == 0;
}

static const op_info *row_of_class(const module_class *class) {
    return class->op != NULL ? tare__op_by_id(class->op, class->dims) : NULL;
}

// A fused module computes what its children do, with sums and ReLUs between them.
static bool are_by_sample(const module *fused) {
    bool all = fused->child_count > 0;
    for (size_t i = 0; i < fused->child_count; i++)
        all = all && has_trait(row_of_class(fused->children[i].module->class),
                               OP_BY_SAMPLE | OP_ELEMENTWISE);
    return all;
}

static bool only_watches(const module *m) {
    return m->class->role == ROLE_OBSERVER && tare__fake_quantize_kind_of(m) == NULL;
}

static void read_call(const op_call *call, node_facts *f) {
    const module *m = call->module;
    const op_info *op = meaning_of(call->op);
    f->is_elementwise = has_trait(op, OP_ELEMENTWISE);
    f->is_by_sample =
        has_trait(op, OP_BY_SAMPLE | OP_ALONG_DIM) && !trains(call) && !measures_batch(call);
    f->is_by_matrix = has_trait(op, OP_BY_MATRIX);
    f->is_not_on_tensors = has_trait(op, OP_NOT_ON_TENSORS);
    f->gives_items = has_trait(op, OP_ALONG_DIM) && tare__value_has_items(&call->result);
    f->picks_item = has_trait(op, OP_PICKS_ITEM);
    f->takes_shape = op != NULL && m == NULL && tare__op_param_index(op, "shape") == 1;
    f->measures = has_trait(op, OP_SHAPED_BY_DATA);
    if (has_trait(op, OP_ALONG_DIM) && runs_along_samples(call)) f->meets = true;
    if (m == NULL) return;
    f->is_by_matrix = false;
    if (m->class->role == ROLE_FUSED)
        f->is_by_sample = are_by_sample(m);
    else if (m->class->role == ROLE_OBSERVER)
        f->is_by_sample = only_watches(m);
    else if (m->class->role == ROLE_QUANTIZED) // its parameters are given: no range is measured
        f->is_by_sample = has_trait(row_of_class(m->class), OP_BY_SAMPLE | OP_ELEMENTWISE);
    else if (m->class->role != ROLE_FLOAT)
        f->is_by_sample = f->is_elementwise = false;
}

static void keep_shape(const tare_tensor *t, int run, node_facts *f) {
    f->ndim[run] = t->ndim;
    memcpy(f->shape[run], t->shape, sizeof t->shape);
}

static tare_status note_call(void *user, const node *n, const op_call *call, op_compute compute) {
    proof *p = user;
    (void)compute;
    if (n->owner != p->model->root->graph || n->id >= p->count) return TARE_OK;
    node_facts *f = &p->facts[n->id];
    f->is_seen = true;
    read_call(call, f);
    if (call->result.kind != VALUE_TENSOR)
        return tare__value_copy(&p->memory, &call->result, NULL, NULL, &f->made[p->run], NULL);
    keep_shape(call->result.as.tensor, p->run, f);
    return TARE_OK;
}

// --- runs on shapes ---

static tare_status share_meta(const tare_batch *batch, int64_t size, arena *memory, value **out) {
    *out = tare__arena_array(memory, batch->input_count + 1, sizeof **out);
    if (*out == NULL) return TARE_OUT_OF_MEMORY;
    for (size_t i = 0; i < batch->input_count; i++) (*out)[i] = tare__none();
    for (size_t i = 0; i < batch->input_count; i++) {
        const tare_tensor *x = batch->inputs[i];
        int64_t shape[TARE_MAX_DIMS];
        memcpy(shape, x->shape, sizeof shape);
        shape[0] = size;
        (*out)[i].kind = VALUE_TENSOR;
        (*out)[i].as.tensor = NULL;
        const tare_status status =
            tare__tensor_meta(x->dtype, x->ndim, shape, x->q, &(*out)[i].as.tensor, NULL);
        if (status == TARE_OK) continue;
        (*out)[i] = tare__none();
        return status;
    }
    return TARE_OK;
}

static tare_status infer(proof *p, const tare_batch *batch, int run) {
    const interpreter it = {.root = p->model->root,
                            .thread_count = 1,
                            .shapes_only = true,
                            .shaped = note_call,
                            .user = p};
    arena memory = {0};
    value *inputs = NULL, result = tare__none();
    p->run = run;
    tare_status status = share_meta(batch, run + 1, &memory, &inputs);
    if (status == TARE_OK)
        status = tare__interpret(&it, inputs, batch->input_count, &memory, &result, NULL);
    tare__value_release_tensors(&result);
    for (size_t i = 0; inputs != NULL && i < batch->input_count; i++)
        tare__value_release_tensors(&inputs[i]);
    tare__arena_release(&memory);
    return status;
}

// --- numbers ---

typedef struct samples_count {
    const proof *p;
    size_t found;
} samples_count;

static void count_samples(void *user, node *input) {
    samples_count *c = user;
    c->found += c->p->facts[input->id].kind == SAMPLES;
}

// True if the number of samples occurs in n only in this argument.
static bool is_only_in(const proof *p, const node *n, const value *argument) {
    samples_count here = {.p = p}, all = {.p = p};
    tare__value_each_node(argument, count_samples, &here);
    for (size_t i = 0; i < n->arg_count; i++)
        tare__value_each_node(&n->args[i], count_samples, &all);
    for (size_t i = 0; i < n->kwarg_count; i++)
        tare__value_each_node(&n->kwargs[i].value, count_samples, &all);
    return here.found == all.found;
}

static const value *first_of(const value *v) {
    return tare__value_has_items(v) && v->count > 0 ? &v->as.items[0] : v;
}

// As the first size of a shape, the number of samples only tells where the samples are.
static bool only_shapes(const proof *p, const node *n, const node_facts *f) {
    return f->takes_shape && n->arg_count > 1 && is_only_in(p, n, first_of(&n->args[1]));
}

// Picking and joining items of tuples changes no values. Anything else that is computed from the
// number of samples may be equal for one and two samples and differ for three.
static bool only_moves_items(const proof *p, const node *n, const node_facts *f) {
    if (f->picks_item) return n->arg_count > 0 && is_only_in(p, n, &n->args[0]);
    return f->is_elementwise && tare__value_has_items(&f->made[0]);
}

static bool is_number_of_samples(const value *one, const value *two) {
    return one->kind == VALUE_INT && two->kind == VALUE_INT && one->as.integer == 1 &&
           two->as.integer == 2;
}

static bool begins_with_samples(const value *one, const value *two) {
    if (!tare__value_has_items(one) || one->kind != two->kind)
        return is_number_of_samples(one, two);
    if (one->count != two->count || one->count == 0) return false;
    for (uint32_t i = 1; i < one->count; i++)
        if (!tare__value_equal(&one->as.items[i], &two->as.items[i])) return false;
    return is_number_of_samples(&one->as.items[0], &two->as.items[0]);
}

static node_kind kind_of_number(const proof *p, const node *n, const node_facts *f) {
    if (p->any_size || f->measures || (p->any_samples && !only_moves_items(p, n, f))) return SIZE;
    if (tare__value_equal(&f->made[0], &f->made[1])) return FIXED;
    return begins_with_samples(&f->made[0], &f->made[1]) ? SAMPLES : SIZE;
}

// --- the proof ---

static bool follows(const node_facts *f) {
    return f->ndim[0] > 0 && f->ndim[0] == f->ndim[1] && f->shape[0][0] == 1 &&
           f->shape[1][0] == 2 &&
           memcmp(f->shape[0] + 1, f->shape[1] + 1, (size_t)(f->ndim[0] - 1) * sizeof(int64_t)) ==
               0;
}

// Broadcasting aligns the last dimensions: the samples are in the same dimension only if tensors
// have equally many dimensions.
static bool is_broadcast(const node_facts *f) {
    return f->is_elementwise || f->is_by_matrix;
}

static void look_at_input(void *user, node *input) {
    proof *p = user;
    const node_facts *f = &p->facts[input->id];
    p->any_size = p->any_size || f->kind == SIZE;
    p->any_items = p->any_items || f->kind == ITEMS;
    p->any_samples = p->any_samples || f->kind == SAMPLES;
    if (f->kind != BATCHED) return;
    p->any_batched = true;
    if (is_broadcast(p->at) && f->ndim[1] != p->at->ndim[1]) p->is_refused = true;
}

static bool keeps_samples_apart(const proof *p, const node *n, const node_facts *f) {
    const bool is_of_matrices = f->is_by_matrix && f->ndim[1] > 2;
    if (f->meets || f->measures || p->any_size) return false;
    if (p->any_samples && !only_shapes(p, n, f)) return false;
    if (p->any_items && f->picks_item) return !p->any_batched;
    return f->is_by_sample || f->is_elementwise || is_of_matrices;
}

static void judge_call(proof *p, const node *n) {
    node_facts *f = &p->facts[n->id];
    p->at = f;
    p->any_batched = p->any_items = p->any_samples = p->any_size = false;
    tare__node_each_input(n, look_at_input, p);
    const bool any_tensor = p->any_batched || p->any_items;
    if (!any_tensor && !p->any_samples && !p->any_size) return; // fixed
    const bool is_number = f->is_seen && f->ndim[1] < 0 && !f->gives_items;
    const bool is_apart = any_tensor && keeps_samples_apart(p, n, f);
    if (is_number && (f->is_not_on_tensors || !any_tensor))
        f->kind = kind_of_number(p, n, f);
    else if (is_apart && f->gives_items)
        f->kind = ITEMS;
    else if (is_apart && follows(f))
        f->kind = BATCHED;
    else
        p->is_refused = true;
}

// The inputs were created with the samples as dimension 0.
static void judge(proof *p) {
    for (const node *n = p->model->root->graph->first; n != NULL && !p->is_refused; n = n->next) {
        if (tare__node_is_input(n))
            p->facts[n->id].kind = BATCHED;
        else if (tare__node_is_call(n))
            judge_call(p, n);
    }
}

static void set_inputs(proof *p, const tare_batch *batch) {
    size_t i = 0;
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next) {
        node_facts *f = &p->facts[n->id];
        f->ndim[0] = f->ndim[1] = -1;
        if (!tare__node_is_input(n) || i >= batch->input_count) continue;
        const tare_tensor *x = batch->inputs[i++];
        for (int run = 0; run < 2; run++) {
            keep_shape(x, run, f);
            f->shape[run][0] = run + 1;
        }
    }
}

tare_status tare__samples_by_rule(const tare_model *prepared, const tare_batch *batch, bool *out,
                                  tare_error *err) {
    proof p = {.model = prepared, .count = prepared->root->graph->next_id};
    *out = false;
    p.facts = tare__alloc_zeroed(p.count + 1, sizeof *p.facts);
    if (p.facts == NULL) return tare__out_of_memory(err);
    set_inputs(&p, batch);
    tare_status status = infer(&p, batch, 1);
    if (status == TARE_OK) status = infer(&p, batch, 0);
    if (status == TARE_OK) judge(&p);
    *out = status == TARE_OK && !p.is_refused;
    tare__free(p.facts);
    tare__arena_release(&p.memory);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(err) : TARE_OK;
}
