// SPDX-License-Identifier: Apache-2.0
// Data for a model: io's batches, opened with the description of the model's inputs. Also writes
// arrays to files.
#include "model/data.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/text/text.h"
#include "io/data/data.h"
#include "io/data/npy.h"
#include "io/data/npz.h"
#include "io/native/safetensors.h"
#include "model/model.h"
#include "ops/op.h"

struct tare_data {
    data_source *source;
    data_batch batch; // lent to the caller
    int64_t limit;    // 0: none
    int64_t passed;   // samples so far, including those of other shards
    int64_t shard_index, shard_count, batch_size;
    int64_t batch_index; // of the next batch, counted over all shards
    int64_t fixed_batch; // the batch size that the model requires; 0: any
    int64_t held_out;    // samples that are held back, or that alone are read
    int64_t first;       // sample to read
    int64_t first_held;  // of those that are held out
    bool as_is;
    char *spec;
};

// The batch size for which the graph was exported, from its inputs' shapes; 0: any.
static int64_t fixed_batch(const data_input *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!inputs[i].is_example && inputs[i].ndim > 0 && inputs[i].shape[0] > 0)
            return inputs[i].shape[0];
    return 0;
}

static uint64_t memory_limit(const tare_read_limits *given, const tare_model *model) {
    tare_read_limits limits = {0};
    if (given != NULL) tare__struct_copy(&limits, sizeof limits, given);
    return limits.memory_bytes != 0 ? limits.memory_bytes : model->memory_limit;
}

// --- ranges of integer inputs: the rows of the embeddings that read them ---

static int64_t rows_of(const module *root, const node *n) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__module_find(root, n->target) : NULL;
    if (m != NULL && tare__class_op(m->class) == TARE_OP_EMBEDDING)
        return tare__module_int(m, "num_embeddings", 0);
    if (m != NULL || tare__node_op(n) != TARE_OP_EMBEDDING) return 0;
    for (size_t i = 0; i < n->input_count; i++) {
        const node *weight = n->inputs[i];
        while (weight->op != NODE_GET_ATTR && tare__node_arg(weight, 0) != NULL)
            weight = tare__node_arg(weight, 0);
        const tare_tensor *t =
            weight->op == NODE_GET_ATTR ? tare__module_find_tensor(root, weight->target) : NULL;
        if (t != NULL && t->ndim == 2) return t->shape[0];
    }
    return 0;
}

// True if the node only rearranges or converts its input's values.
static bool passes_on(const module *root, const node *n) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__module_find(root, n->target) : NULL;
    if (m != NULL) return m->class->role == ROLE_OBSERVER;
    return tare__op_has(tare__node_row(n), OP_KEEPS_QPARAMS) || tare__node_op(n) == TARE_OP_TO;
}

static bool reads_any(const node *n, const bool *carries) {
    for (size_t i = 0; i < n->input_count; i++)
        if (carries[n->inputs[i]->id]) return true;
    return false;
}

// The smallest number of rows of the embeddings that read the input, directly or through such
// nodes.
static tare_status find_bound(const module *root, const node *input, int64_t *bound,
                              tare_error *err) {
    bool *carries = tare__alloc_zeroed(root->graph->next_id + 1, sizeof *carries);
    if (carries == NULL) return tare__out_of_memory(err);
    carries[input->id] = true;
    for (const node *n = input->next; n != NULL; n = n->next) {
        if (!reads_any(n, carries)) continue;
        const int64_t rows = rows_of(root, n);
        if (rows > 0 && (*bound == 0 || rows < *bound)) *bound = rows;
        const node *first = tare__node_arg(n, 0);
        carries[n->id] = rows == 0 && first != NULL && carries[first->id] && passes_on(root, n);
    }
    tare__free(carries);
    return TARE_OK;
}

static tare_status describe_input(const module *root, const node *n, bool is_finite,
                                  data_input *out, tare_error *err) {
    TARE_TRY(tare__describe_input(n, out, err));
    out->is_finite = is_finite;
    return find_bound(root, n, &out->bound, err);
}

static tare_status open_source(tare_data *data, const tare_model *model, const char *spec,
                               const tare_data_options *options, tare_error *err) {
    const tare_preprocess *declared =
        options->preprocess != NULL ? options->preprocess : model->preprocess;
    const size_t count = tare_model_input_count(model);
    data_input *inputs = tare__alloc_zeroed(count + 1, sizeof *inputs);
    if (inputs == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    size_t i = 0;
    for (const node *n = model->root->graph->first; n != NULL && status == TARE_OK; n = n->next)
        if (tare__node_is_input(n))
            status = describe_input(model->root, n, options->is_finite, &inputs[i++], err);
    if (status == TARE_OK)
        status = tare__choose_open_sizes(model->root->graph->first, inputs, count, err);
    if (status == TARE_OK && !options->as_is) data->fixed_batch = fixed_batch(inputs, count);
    if (data->fixed_batch > 0) data->batch_size = data->fixed_batch; // it takes no others
    if (status == TARE_OK)
        status = tare__data_open(spec, inputs, count, data->batch_size,
                                 declared != NULL ? &declared->steps : NULL, &data->source, err);
    tare__free(inputs);
    if (status == TARE_OK) tare__data_limit(data->source, memory_limit(options->limits, model));
    if (status != TARE_OK || !options->as_is) return status;
    status = tare__data_take_as_is(data->source, err);
    if (status != TARE_OK) tare__data_close(data->source);
    return status;
}

// --- samples that are held out ---

// The number of all samples, even if that requires reading to the end; 0: unknown, for a stream.
static tare_status count_all(const tare_data *data, int64_t *out, tare_error *err) {
    *out = tare__data_sample_count(data->source);
    if (*out > 0 || strcmp(data->spec, "-") == 0) return TARE_OK;
    for (int64_t samples = 1; samples > 0; *out += samples)
        TARE_TRY(tare__data_skip(data->source, &samples, err));
    return tare__data_rewind(data->source, err);
}

enum { HELD_OUT_SHARE = 8 };

static int64_t whole(int64_t count, int64_t unit) {
    return count > 0 ? count / unit * unit : 0;
}

static tare_status hold_out(tare_data *data, int64_t wanted, tare_error *err) {
    const int64_t unit = data->fixed_batch > 0 ? data->fixed_batch : 1;
    int64_t all = 0;
    TARE_TRY(count_all(data, &all, err));
    if (all == 0) return TARE_OK;
    if (data->limit > 0 && data->limit < all) {
        data->first = (data->limit + unit - 1) / unit * unit;
        data->held_out = whole(all - data->first, unit);
    } else {
        data->held_out = whole(all / HELD_OUT_SHARE, unit);
        const int64_t most = whole(wanted, unit);
        if (data->held_out > most) data->held_out = most > 0 ? most : unit;
        if (data->held_out >= all) data->held_out = 0;
        data->first = all - data->held_out;
    }
    if (data->held_out > wanted && wanted >= unit) data->held_out = whole(wanted, unit);
    data->first_held = data->first;
    return TARE_OK;
}

// Skips to the first held-out sample.
static tare_status go_to_first(tare_data *data, tare_error *err) {
    for (int64_t at = 0, samples = 1; at < data->first && samples > 0; at += samples)
        TARE_TRY(tare__data_skip(data->source, &samples, err));
    return TARE_OK;
}

static tare_status begin_held_out(tare_data *data, tare_error *err) {
    if (data->held_out == 0) return tare__fail(err, TARE_INVALID_ARGUMENT, "no sample is held out");
    data->first = data->first_held;
    data->limit = data->held_out;
    return go_to_first(data, err);
}

static tare_status split(tare_data *data, const tare_data_options *options, tare_error *err) {
    if (options->hold_out <= 0) return TARE_OK;
    if (data->shard_count > 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "samples cannot be held out of a shard");
    TARE_TRY(hold_out(data, options->hold_out, err));
    if (!options->is_held_out) {
        if (data->held_out > 0 && (data->limit == 0 || data->first < data->limit))
            data->limit = data->first;
        data->first = 0;
        return TARE_OK;
    }
    return begin_held_out(data, err);
}

tare_status tare_data_turn_to_held_out(tare_data *data, tare_error *err) {
    data->batch_size = data->fixed_batch > 0 ? data->fixed_batch : 1;
    tare__data_set_batch_size(data->source, data->batch_size);
    TARE_TRY(begin_held_out(data, err));
    return tare_data_rewind(data, err);
}

int64_t tare_data_held_out_count(const tare_data *data) {
    return data->held_out;
}

tare_status tare_data_open(const char *spec, const tare_model *model,
                           const tare_data_options *options, tare_data **out, tare_error *err) {
    tare_data_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (known.is_held_out) known.batch_size = 1; // a fixed batch is what that becomes below
    if (known.sample_limit < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a limit of %lld samples",
                          (long long)known.sample_limit);
    if (known.shard_count < 0 || known.shard_index < 0 ||
        known.shard_index >= (known.shard_count > 0 ? known.shard_count : 1))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "shard %lld of %lld",
                          (long long)known.shard_index, (long long)known.shard_count);
    tare_data *data = tare__alloc_zeroed(1, sizeof *data);
    if (data == NULL) return tare__out_of_memory(err);
    data->limit = known.sample_limit;
    data->batch_size = known.batch_size;
    data->shard_index = known.shard_index;
    data->shard_count = known.shard_count > 0 ? known.shard_count : 1;
    data->as_is = known.as_is;
    data->spec = tare__strdup(spec);
    tare_status status =
        data->spec != NULL ? open_source(data, model, spec, &known, err) : tare__out_of_memory(err);
    if (status == TARE_OK) {
        status = split(data, &known, err);
        if (status != TARE_OK) tare__data_close(data->source);
    }
    if (status == TARE_OK) {
        *out = data;
        return TARE_OK;
    }
    tare__free(data->spec);
    tare__free(data);
    return status;
}

void tare_data_close(tare_data *data) {
    if (data == NULL) return;
    tare__data_batch_release(&data->batch);
    tare__data_close(data->source);
    tare__free(data->spec);
    tare__free(data);
}

// Keeps only the first `count` samples of a tensor.
static tare_status cut_tensor(tare_tensor **t, int64_t count, tare_error *err) {
    tare_tensor *first = NULL;
    TARE_TRY(tare__tensor_rows(*t, 0, count, &first, err));
    tare_tensor_release(*t);
    *t = first;
    return TARE_OK;
}

static tare_status cut_batch(data_batch *batch, int64_t count, tare_error *err) {
    for (size_t i = 0; i < batch->input_count; i++)
        TARE_TRY(cut_tensor(&batch->inputs[i], count, err));
    if (batch->labels != NULL) TARE_TRY(cut_tensor(&batch->labels, count, err));
    batch->size = count;
    return TARE_OK;
}

static int64_t samples_left(const tare_data *data) {
    return data->limit > 0 ? data->limit - data->passed : INT64_MAX;
}

// Skips one batch; *samples: its samples, 0 at the end.
static tare_status skip_one(tare_data *data, int64_t *samples, tare_error *err) {
    *samples = 0;
    if (samples_left(data) > 0) TARE_TRY(tare__data_skip(data->source, samples, err));
    if (*samples > samples_left(data)) *samples = samples_left(data);
    data->passed += *samples;
    data->batch_index += *samples > 0;
    return TARE_OK;
}

// Skips the batches of other shards.
static tare_status skip_others(tare_data *data, bool *done, tare_error *err) {
    while (data->batch_index % data->shard_count != data->shard_index) {
        int64_t samples = 0;
        TARE_TRY(skip_one(data, &samples, err));
        *done = samples == 0;
        if (*done) return TARE_OK;
    }
    *done = samples_left(data) == 0;
    return TARE_OK;
}

static tare_status check_fixed_batch(const tare_data *data, tare_error *err) {
    if (data->fixed_batch == 0 || data->batch.size == data->fixed_batch) return TARE_OK;
    tare__fail(err, TARE_INVALID_ARGUMENT,
               "the model takes %" PRId64 " samples at a time, found a batch of %" PRId64,
               data->fixed_batch, data->batch.size);
    return tare__hint(err, TARE_INVALID_ARGUMENT,
                      "give whole batches, or export the model with an open batch "
                      "(dynamic_shapes, or dynamic_axes of ONNX)");
}

tare_status tare_data_next(tare_data *data, tare_batch *out, bool *done, tare_error *err) {
    tare__data_batch_release(&data->batch);
    data->batch = (data_batch){0};
    TARE_TRY(skip_others(data, done, err));
    if (!*done) TARE_TRY(tare__data_next(data->source, &data->batch, done, err));
    if (*done) return TARE_OK;
    if (data->batch.size > samples_left(data))
        TARE_TRY(cut_batch(&data->batch, samples_left(data), err));
    TARE_TRY(check_fixed_batch(data, err));
    data->passed += data->batch.size;
    data->batch_index++;
    *out = (tare_batch){.struct_size = sizeof *out,
                        .inputs = (const tare_tensor *const *)data->batch.inputs,
                        .input_count = data->batch.input_count,
                        .labels = data->batch.labels,
                        .size = data->batch.size};
    return TARE_OK;
}

tare_status tare_data_skip(tare_data *data, int64_t batch_count, int64_t *sample_count,
                           tare_error *err) {
    *sample_count = 0;
    for (int64_t i = 0; i < batch_count; i++) {
        int64_t samples = 0;
        bool done = false;
        TARE_TRY(skip_others(data, &done, err));
        if (!done) TARE_TRY(skip_one(data, &samples, err));
        if (samples == 0) break;
        *sample_count += samples;
    }
    return TARE_OK;
}

int64_t tare_data_sample_count(const tare_data *data) {
    if (data->first > 0) return data->held_out;
    int64_t all = tare__data_sample_count(data->source);
    if (data->limit > 0 && (all == 0 || all > data->limit)) all = data->limit;
    if (data->shard_count == 1 || all == 0) return all;
    if (data->batch_size == 0) return 0;
    // Complete rounds over all shards, then this shard's samples of the last round.
    const int64_t round = data->batch_size * data->shard_count, rounds = all / round;
    int64_t rest = all % round - data->shard_index * data->batch_size;
    if (rest < 0) rest = 0;
    return rounds * data->batch_size + (rest < data->batch_size ? rest : data->batch_size);
}

data_cut tare__data_cut(const tare_data *data) {
    return (data_cut){.batch_size = data->batch_size,
                      .sample_limit = data->limit,
                      .shard_index = data->shard_index,
                      .shard_count = data->shard_count,
                      .fixed_batch = data->fixed_batch,
                      .spec = data->spec,
                      .as_is = data->as_is};
}

tare_status tare_data_rewind(tare_data *data, tare_error *err) {
    data->passed = data->batch_index = 0;
    TARE_TRY(tare__data_rewind(data->source, err));
    return go_to_first(data, err);
}

// --- arrays ---

tare_status tare_arrays_check_path(const char *path, tare_error *err) {
    static const char *const endings[] = {".npz", ".npy", ".safetensors"};
    if (strcmp(path, "-") == 0) return TARE_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tare__ends_with(path, endings[i])) return TARE_OK;
    return tare__hint(
        err, tare__fail(err, TARE_INVALID_ARGUMENT, "the name '%s' does not say the format", path),
        "end it in .npz, .npy or .safetensors");
}

static tare_status write_map(const char *path, const map *arrays, tare_error *err) {
    TARE_TRY(tare_arrays_check_path(path, err));
    if (strcmp(path, "-") == 0 || tare__ends_with(path, ".npz"))
        return tare__npz_write(path, arrays, err);
    if (tare__ends_with(path, ".safetensors") && tare__map_has(arrays, "__metadata__"))
        return tare__hint(err,
                          tare__fail(err, TARE_INVALID_ARGUMENT,
                                     "a .safetensors file cannot hold an array '__metadata__'"),
                          "write an .npz");
    if (tare__ends_with(path, ".safetensors"))
        return tare__safetensors_write(path, arrays, NULL, err);
    if (arrays->count != 1)
        return tare__hint(err,
                          tare__fail(err, TARE_INVALID_ARGUMENT,
                                     "an .npy file holds one array, not %zu", arrays->count),
                          "write an .npz");
    return tare__npy_write(path, arrays->entries[0].value, err);
}

tare_status tare_arrays_write(const char *path, const char *const *names,
                              const tare_tensor *const *tensors, size_t count, tare_error *err) {
    map arrays = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        if (names[i] == NULL || tensors[i] == NULL)
            status = tare__fail(err, TARE_INVALID_ARGUMENT, "array %zu has no %s", i,
                                names[i] == NULL ? "name" : "tensor");
        else if (tare__map_has(&arrays, names[i]))
            status = tare__fail(err, TARE_INVALID_ARGUMENT, "two arrays are called '%s'", names[i]);
        else if (!tare__map_set(&arrays, names[i], (void *)tensors[i]))
            status = tare__out_of_memory(err);
    }
    if (status == TARE_OK) status = write_map(path, &arrays, err);
    tare__map_release(&arrays);
    return status;
}
