// SPDX-License-Identifier: Apache-2.0
// Shape inference without a run: the shape rules are evaluated with two different sizes for each
// open dimension. Result sizes that differ are open, too.
#include "model/shapes.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ir/call_names.h"
#include "model/model.h"
#include "ops/interpret.h"
#include "ops/op.h"

// The tensors that a node returns.
typedef struct node_shapes {
    tare_tensor_info *items; // in the arena
    size_t count;
} node_shapes;

struct tare_shapes {
    arena memory;
    const graph *graph;
    data_input *inputs;
    const node **input_nodes;
    size_t input_count;
    node_shapes *nodes; // by node id
    call_names output_names;
    node_shapes outputs;
    char *unknown; // NULL: all are known
};

// --- inputs ---

static tare_status describe_inputs(tare_shapes *s, const tare_model *model, tare_error *err) {
    const size_t count = tare_model_input_count(model);
    s->inputs = tare__arena_array(&s->memory, count + 1, sizeof *s->inputs);
    s->input_nodes = tare__arena_array(&s->memory, count + 1, sizeof *s->input_nodes);
    if (s->inputs == NULL || s->input_nodes == NULL) return tare__out_of_memory(err);
    for (const node *n = s->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        s->input_nodes[s->input_count] = n;
        TARE_TRY(tare__describe_input(n, &s->inputs[s->input_count], err));
        s->input_count++;
    }
    return TARE_OK;
}

static const char *input_name_at(const void *user, size_t index) {
    const tare_shapes *s = user;
    return index < s->input_count ? s->inputs[index].name : NULL;
}

static tare_status find_input(tare_shapes *s, const char *name, data_input **out, tare_error *err) {
    for (size_t i = 0; i < s->input_count; i++) {
        *out = &s->inputs[i];
        if (tare__data_input_is(*out, name)) return TARE_OK;
    }
    return tare__suggest(err, tare__fail(err, TARE_NOT_FOUND, "the model has no input '%s'", name),
                         name, input_name_at, s);
}

static tare_status check_given(const data_input *in, const tare_input_shape *given,
                               tare_error *err) {
    const bool is_known = in->ndim >= 0 && !in->is_example;
    if (given->ndim < 0 || given->ndim > TARE_MAX_DIMS || (is_known && given->ndim != in->ndim))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "input '%s': expected %d dimensions, found %d", in->name,
                          is_known ? in->ndim : TARE_MAX_DIMS, given->ndim);
    for (int d = 0; d < given->ndim; d++) {
        const int64_t found = given->shape[d], expected = is_known ? in->shape[d] : -1;
        if (found < -1 || (expected >= 0 && found >= 0 && found != expected))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "input '%s': expected a size of %lld in dimension %d, found %lld",
                              in->name, (long long)expected, d, (long long)found);
    }
    return TARE_OK;
}

static tare_status take_given(tare_shapes *s, const tare_input_shape *given, tare_error *err) {
    data_input *in = NULL;
    TARE_TRY(find_input(s, given->input, &in, err));
    TARE_TRY(check_given(in, given, err));
    const bool is_known = in->ndim >= 0 && !in->is_example;
    in->ndim = given->ndim;
    in->is_example = false;
    for (int d = 0; d < given->ndim; d++)
        if (!is_known || in->shape[d] < 0) in->shape[d] = given->shape[d];
    return TARE_OK;
}

tare_status tare__meta_input(const data_input *input, int64_t open, tare_tensor **out,
                             tare_error *err) {
    int64_t shape[TARE_MAX_DIMS] = {0};
    const tare_dtype dtype = input->dtype != TARE_DTYPE_UNSET ? input->dtype : TARE_FLOAT32;
    for (int d = 0; d < input->ndim; d++) shape[d] = input->shape[d] < 0 ? open : input->shape[d];
    return tare__tensor_meta(dtype, input->ndim, shape, NULL, out, err);
}

// --- shapes from the shape rules ---

typedef struct shape_run {
    tare_shapes *shapes;
    bool is_second; // compares with the shapes of the first run instead of recording
    tare_error *err;
} shape_run;

static size_t count_tensors(const value *v) {
    size_t count = v->kind == VALUE_TENSOR;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        count += count_tensors(&v->as.items[i]);
    return count;
}

static void fill_info(const tare_tensor *t, const char *name, tare_tensor_info *out) {
    *out = (tare_tensor_info){.struct_size = sizeof *out,
                              .name = name,
                              .dtype = t->dtype,
                              .ndim = t->ndim,
                              .qscheme = tare_tensor_qscheme(t)};
    memcpy(out->shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
    const bool is_per_tensor =
        tare_tensor_qparam_count(t) == 1 && tare__qscheme_is_per_tensor(out->qscheme);
    if (is_per_tensor) {
        out->scale = tare_tensor_scale(t, 0);
        out->zero_point = tare_tensor_zero_point(t, 0);
    }
}

static void open_sizes(const tare_tensor *t, tare_tensor_info *known) {
    if (t->ndim != known->ndim) known->ndim = -1;
    for (int d = 0; d < known->ndim; d++)
        if (t->shape[d] != known->shape[d]) known->shape[d] = -1;
}

static void visit_tensors(const value *v, bool is_second, const char *name, node_shapes *out) {
    if (v->kind == VALUE_TENSOR) {
        if (!is_second)
            fill_info(v->as.tensor, name, &out->items[out->count]);
        else if (out->items[out->count].ndim >= 0)
            open_sizes(v->as.tensor, &out->items[out->count]);
        out->count++;
    }
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        visit_tensors(&v->as.items[i], is_second, name, out);
}

// Records a node's shapes. A node with a varying number of tensors counts as unknown.
static tare_status note(void *user, const node *n, const value *result, tare_error *err) {
    shape_run *r = user;
    node_shapes *out = &r->shapes->nodes[n->id];
    const size_t count = count_tensors(result);
    if (r->is_second && count != out->count) out->count = 0;
    if (count == 0 || (r->is_second && out->count == 0)) return TARE_OK;
    if (!r->is_second)
        out->items = tare__arena_array(&r->shapes->memory, count, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(err);
    out->count = 0;
    visit_tensors(result, r->is_second, n->name, out);
    return TARE_OK;
}

static tare_status run_on(shape_run *r, const tare_model *model, const value *inputs,
                          size_t count) {
    arena memory = {0};
    value result = tare__none();
    const interpreter it = {.root = model->root,
                            .thread_count = 1,
                            .memory_limit = model->memory_limit,
                            .shapes_only = true,
                            .after = note,
                            .user = r};
    tare_status status = tare__interpret(&it, inputs, count, &memory, &result, r->err);
    if (status == TARE_OK)
        status = tare__output_names(it.root->graph, &result, &r->shapes->memory,
                                    &r->shapes->output_names, r->err);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    return status;
}

// The size for an open dimension; for a graph that accepts only one batch size, that of its
// example.
static int64_t stand_in(const data_input *in, int64_t open) {
    return open == 1 && in->is_example && in->ndim > 0 && in->shape[0] > 0 ? in->shape[0] : open;
}

static tare_status make_input(const data_input *known, int64_t open, value *out, tare_error *err) {
    data_input in = *known;
    tare_tensor *t = NULL;
    const int64_t size = stand_in(known, open);
    if (in.is_example && in.ndim > 0) in.shape[0] = -1; // the batch is open
    TARE_TRY(tare__meta_input(&in, size, &t, err));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

// The number of inputs to pass: the last inputs are omitted if they have defaults and unknown
// shapes.
static size_t fed_count(const tare_shapes *s) {
    size_t count = s->input_count;
    while (count > 0 && s->inputs[count - 1].ndim < 0 && s->input_nodes[count - 1]->arg_count > 0)
        count--;
    return count;
}

// Records all shapes with size `open` for open dimensions, or compares them with the recorded ones.
static tare_status run_with(tare_shapes *s, const tare_model *model, int64_t open, bool is_second,
                            tare_error *err) {
    shape_run r = {.shapes = s, .is_second = is_second, .err = err};
    const size_t count = fed_count(s);
    value *inputs = tare__alloc_zeroed(count + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = make_input(&s->inputs[i], open, &inputs[i], err);
    if (status == TARE_OK) status = run_on(&r, model, inputs, count);
    for (size_t i = 0; i < count; i++) tare__value_release_tensors(&inputs[i]);
    tare__free(inputs);
    return status;
}

static void forget(tare_shapes *s) {
    for (size_t i = 0; i < s->graph->next_id; i++) s->nodes[i] = (node_shapes){0};
}

static tare_status keep_reason(tare_shapes *s, const tare_error *why, tare_error *err) {
    const char *where = tare_error_where(why);
    s->unknown = tare__arena_printf(&s->memory, "%s%s%s", where, where[0] != '\0' ? ": " : "",
                                    tare_error_message(why));
    return s->unknown != NULL ? TARE_OK : tare__out_of_memory(err);
}

// True if a dimension other than the batch is open.
static bool has_open_size(const tare_shapes *s) {
    for (size_t i = 0; i < s->input_count; i++)
        for (int d = 1; d < s->inputs[i].ndim; d++)
            if (s->inputs[i].shape[d] < 0) return true;
    return false;
}

static tare_status run_two(tare_shapes *s, const tare_model *model, const int64_t open[2],
                           tare_error *err) {
    const tare_status status = run_with(s, model, open[0], false, err);
    return status == TARE_OK ? run_with(s, model, open[1], true, err) : status;
}

// Tries pairs of sizes: small ones, then those of images, then those of sound. If all fail, tries
// one size; if that fails, too, keeps the shapes up to the failure.
static tare_status infer(tare_shapes *s, const tare_model *model, tare_error *err) {
    static const int64_t sizes[][2] = {{2, 3}, {224, 288}, {4800, 8000}};
    tare_error *why = tare_error_create(), *other = tare_error_create();
    if (why == NULL || other == NULL) {
        tare_error_destroy(why);
        tare_error_destroy(other);
        return tare__out_of_memory(err);
    }
    tare_status status = run_two(s, model, sizes[0], why);
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes && status != TARE_OK &&
                       status != TARE_OUT_OF_MEMORY && has_open_size(s);
         i++) {
        forget(s);
        status = run_two(s, model, sizes[i], other);
    }
    tare_error_destroy(other);
    if (status != TARE_OK && status != TARE_OUT_OF_MEMORY) {
        forget(s);
        status = keep_reason(s, why, err);
        if (status == TARE_OK) status = run_with(s, model, 1, false, why);
    }
    tare_error_destroy(why);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(err) : TARE_OK;
}

static const data_input *unknown_input(const tare_shapes *s) {
    for (size_t i = 0; i < fed_count(s); i++)
        if (s->inputs[i].ndim < 0) return &s->inputs[i];
    return NULL;
}

// --- checking a pass's result ---

// Output values of the shape rules; is_known false: the model does not state its inputs' shapes.
typedef struct output_dtypes {
    tare_shapes *shapes;
    bool is_known;
    arena memory;
    value result;
} output_dtypes;

static void release_dtypes(output_dtypes *d) {
    tare__value_release_tensors(&d->result);
    tare__arena_release(&d->memory);
    tare_shapes_destroy(d->shapes);
}

static tare_status run_inputs(output_dtypes *d, const tare_model *model, const value *inputs,
                              size_t count, tare_error *err) {
    const interpreter it = {.root = model->root,
                            .thread_count = 1,
                            .memory_limit = model->memory_limit,
                            .shapes_only = true};
    d->is_known = true;
    return tare__interpret(&it, inputs, count, &d->memory, &d->result, err);
}

// Evaluates the shape rules; `open` as in make_input.
static tare_status find_dtypes(const tare_model *model, int64_t open, output_dtypes *out,
                               tare_error *err) {
    *out = (output_dtypes){.shapes = tare__alloc_zeroed(1, sizeof *out->shapes)};
    if (out->shapes == NULL) return tare__out_of_memory(err);
    out->shapes->graph = model->root->graph;
    TARE_TRY(describe_inputs(out->shapes, model, err));
    if (unknown_input(out->shapes) != NULL) return TARE_OK;
    const size_t count = fed_count(out->shapes);
    value *inputs = tare__alloc_zeroed(count + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = make_input(&out->shapes->inputs[i], open, &inputs[i], err);
    if (status == TARE_OK) status = run_inputs(out, model, inputs, count, err);
    for (size_t i = 0; i < count; i++) tare__value_release_tensors(&inputs[i]);
    tare__free(inputs);
    return status;
}

// Checks that integer and bool outputs keep their dtypes, which no quantization changes.
static tare_status compare_dtypes(const value *made, const value *source, tare_error *err) {
    if (made->kind == VALUE_TENSOR && source->kind == VALUE_TENSOR) {
        const tare_tensor *now = made->as.tensor, *before = source->as.tensor;
        if (before->q != NULL || tare__dtype(before->dtype)->is_float ||
            now->dtype == before->dtype)
            return TARE_OK;
        return tare__fail(err, TARE_INTERNAL, "an output must stay %s, found %s",
                          tare_dtype_name(before->dtype), tare_dtype_name(now->dtype));
    }
    if (!tare__value_has_items(made) || !tare__value_has_items(source)) return TARE_OK;
    for (uint32_t i = 0; i < made->count && i < source->count; i++)
        TARE_TRY(compare_dtypes(&made->as.items[i], &source->as.items[i], err));
    return TARE_OK;
}

static tare_status verify_with(const tare_model *made, const output_dtypes *source, int64_t open,
                               tare_error *err) {
    output_dtypes now;
    tare_status status = find_dtypes(made, open, &now, err);
    if (status == TARE_OK && now.is_known)
        status = compare_dtypes(&now.result, &source->result, err);
    release_dtypes(&now);
    return status;
}

// True if the refusal differs for other sizes and so is not about dtypes: per-channel scales of a
// tensor whose channels depend on the input fit only the calibrated batch size.
static bool follows_sizes(const tare_model *made, const output_dtypes *source,
                          const tare_error *refusal) {
    tare_error *again = tare_error_create();
    const tare_status status =
        again != NULL ? verify_with(made, source, 3, again) : TARE_OUT_OF_MEMORY;
    const bool same = status != TARE_OK && again != NULL &&
                      strcmp(tare_error_message(again), tare_error_message(refusal)) == 0;
    tare_error_destroy(again);
    return !same && status != TARE_OUT_OF_MEMORY;
}

// Verifies with one size. *is_said: the rules accept the source with inputs of this size. An error
// is left in `refusal`.
static tare_status verify_at(const tare_model *made, const tare_model *source, int64_t open,
                             bool *is_said, tare_error *refusal) {
    output_dtypes before;
    tare_error *why = tare_error_create();
    if (why == NULL) return TARE_OUT_OF_MEMORY;
    tare_status status = find_dtypes(source, open, &before, why);
    *is_said = status == TARE_OK;
    if (status != TARE_OUT_OF_MEMORY) status = TARE_OK;
    if (*is_said && before.is_known) {
        status = verify_with(made, &before, open, refusal);
        const bool may_be_sizes = status != TARE_OK && status != TARE_OUT_OF_MEMORY && open == 2;
        if (may_be_sizes && follows_sizes(made, &before, refusal)) status = TARE_OK;
    }
    release_dtypes(&before);
    tare_error_destroy(why);
    return status;
}

// True if the caller quantizes an input. The file does not tell: dequantize also accepts floats.
static bool takes_quantized(const tare_model *model) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (tare__op_has(tare__node_row(n), OP_DEQUANTIZES) && n->arg_count > 0 &&
            n->args[0].kind == VALUE_NODE && tare__node_is_input(n->args[0].as.node))
            return true;
    return false;
}

tare_status tare__verify_dtypes(const tare_model *made, const tare_model *source, tare_error *err) {
    if (takes_quantized(source) || takes_quantized(made)) return TARE_OK;
    tare_error *refusal = tare_error_create();
    if (refusal == NULL) return tare__out_of_memory(err);
    bool is_said = false;
    tare_status status = verify_at(made, source, 2, &is_said, refusal);
    // A graph for a fixed batch size accepts only that of its example.
    if (status == TARE_OK && !is_said) status = verify_at(made, source, 1, &is_said, refusal);
    if (status == TARE_OUT_OF_MEMORY)
        (void)tare__out_of_memory(err);
    else if (status != TARE_OK)
        (void)tare__fail(err, status, "%s%s%s", tare_error_where(refusal),
                         tare_error_where(refusal)[0] != '\0' ? ": " : "",
                         tare_error_message(refusal));
    tare_error_destroy(refusal);
    return status;
}

// --- outputs ---

static tare_status name_outputs(tare_shapes *s, tare_error *err) {
    const node *last = tare__graph_output(s->graph);
    const node_shapes none = {0}, *known = last != NULL ? &s->nodes[last->id] : &none;
    if (known->count == 0 || known->count != s->output_names.count)
        TARE_TRY(tare__output_names(s->graph, NULL, &s->memory, &s->output_names, err));
    const size_t count = s->output_names.count;
    s->outputs.items = tare__arena_array(&s->memory, count + 1, sizeof *s->outputs.items);
    if (s->outputs.items == NULL) return tare__out_of_memory(err);
    s->outputs.count = count;
    for (size_t i = 0; i < count; i++) {
        tare_tensor_info *out = &s->outputs.items[i];
        if (known->count == count)
            *out = known->items[i];
        else
            *out = (tare_tensor_info){.struct_size = sizeof *out, .ndim = -1};
        out->name = s->output_names.items[i];
    }
    return TARE_OK;
}

static tare_status fill(tare_shapes *s, const tare_model *model, const tare_input_shape *given,
                        size_t given_count, tare_error *err) {
    TARE_TRY(describe_inputs(s, model, err));
    for (size_t i = 0; i < given_count; i++) TARE_TRY(take_given(s, &given[i], err));
    s->nodes = tare__arena_array(&s->memory, s->graph->next_id + 1, sizeof *s->nodes);
    if (s->nodes == NULL) return tare__out_of_memory(err);
    const data_input *unknown = unknown_input(s);
    if (unknown == NULL) {
        TARE_TRY(infer(s, model, err));
    } else {
        s->unknown = tare__arena_printf(&s->memory, "input '%s': the model does not say its shape",
                                        unknown->name);
        if (s->unknown == NULL) return tare__out_of_memory(err);
    }
    return name_outputs(s, err);
}

// --- public functions ---

tare_status tare_shapes_infer(const tare_model *model, const tare_input_shape *given,
                              size_t given_count, tare_shapes **out, tare_error *err) {
    if (model == NULL || out == NULL || (given == NULL && given_count > 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "shapes need a model and a place for them");
    tare_shapes *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->graph = model->root->graph;
    const tare_status status = fill(made, model, given, given_count, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_shapes_destroy(made);
    return status;
}

void tare_shapes_destroy(tare_shapes *s) {
    if (s == NULL) return;
    tare__arena_release(&s->memory);
    tare__free(s);
}

const char *tare_shapes_unknown(const tare_shapes *s) {
    return s->unknown;
}

size_t tare_shapes_input_count(const tare_shapes *s) {
    return s->input_count;
}

bool tare_shapes_input(const tare_shapes *s, size_t index, tare_tensor_info *out) {
    if (index >= s->input_count) return false;
    const data_input *in = &s->inputs[index];
    *out = (tare_tensor_info){.struct_size = sizeof *out,
                              .name = in->name,
                              .dtype = in->dtype,
                              .ndim = in->ndim,
                              .is_example = in->is_example && in->ndim >= 0,
                              .is_optional = s->input_nodes[index]->arg_count > 0};
    for (int d = 0; d < in->ndim; d++) out->shape[d] = in->shape[d];
    if (in->is_example && in->ndim > 0) out->shape[0] = -1;
    return true;
}

size_t tare_shapes_output_count(const tare_shapes *s) {
    return s->outputs.count;
}

static bool read_item(const node_shapes *from, size_t index, tare_tensor_info *out) {
    if (index >= from->count) return false;
    *out = from->items[index];
    return true;
}

bool tare_shapes_output(const tare_shapes *s, size_t index, tare_tensor_info *out) {
    return read_item(&s->outputs, index, out);
}

bool tare_shapes_node(const tare_shapes *s, const tare_node *n, size_t index,
                      tare_tensor_info *out) {
    const node *of = (const node *)n;
    return of->owner == s->graph && read_item(&s->nodes[of->id], index, out);
}
